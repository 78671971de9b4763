#include "joint_steps.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace tessella {

namespace {

constexpr double kLeastStep = 1e-8;  // a shorter step only changes rounding errors
constexpr std::size_t kBlock = 32;   // side of the blocks in which a matrix is read across
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();

using Values = std::vector<double>;

Values copied(const double* first, std::size_t count) { return Values(first, first + count); }

double dot(const Values& x, const Values& y) {
  double sum = 0.0;
  for (std::size_t k = 0; k < x.size(); ++k) sum += x[k] * y[k];
  return sum;
}

double dot(const double* x, const double* y, std::size_t count) {
  double sum = 0.0;
  for (std::size_t k = 0; k < count; ++k) sum += x[k] * y[k];
  return sum;
}

// The largest value, NaN if there is one.
double largest(std::initializer_list<double> values) {
  double result = -kInfinity;
  for (const double value : values)
    if (!(value <= result)) result = std::isnan(result) ? result : value;
  return result;
}

bool all_finite(const Values& values) {
  return std::all_of(values.begin(), values.end(), [](double x) { return std::isfinite(x); });
}

void symmetrise(Values& square, std::size_t side) {
  for (std::size_t j = 0; j < side; ++j)
    for (std::size_t i = 0; i < j; ++i) {
      const double mean = 0.5 * (square[i + j * side] + square[j + i * side]);
      square[i + j * side] = square[j + i * side] = mean;
    }
}

}  // namespace

JointSteps::JointSteps(const JointProblem& problem, State state, double scale, double to_boundary,
                       const LinearAlgebra& lapack)
    : lapack_(lapack),
      f_(problem.samples),
      r_(problem.directions),
      n_(problem.parts),
      box_(problem.box),
      sum_w_(problem.sum_w),
      total_(problem.total),
      scale_(scale),
      to_boundary_(to_boundary),
      products_(problem.products),
      a_(copied(problem.a, f_ * r_)),
      low_(copied(problem.low, f_ * r_)),
      ratio_(copied(problem.ratio, f_)),
      held_g_(copied(problem.held_g, f_ * r_)),
      held_h_(copied(problem.held_h, r_)),
      held_half_(copied(problem.held_half_gradient, r_ * r_)),
      sample_(problem.sample, problem.sample + n_),
      partner_(n_, kNone),
      sign_(copied(problem.sign, n_)),
      cost_(copied(problem.cost, n_)),
      upper_(copied(problem.upper, n_)),
      curvature_(copied(problem.curvature, n_)),
      bounded_(n_),
      state_(std::move(state)) {
  std::vector<std::size_t> first(f_, kNone);
  for (std::size_t k = 0; k < n_; ++k) {
    bounded_[k] = std::isfinite(upper_[k]);
    bounds_ += bounded_[k] ? 2 : 0;
    std::size_t& before = first[sample_[k]];
    if (before == kNone) {
      before = k;
    } else {
      partner_[before] = k;
    }
  }
  const std::size_t thin = f_ * r_, square = f_ * f_, side = r_ * r_;
  for (Values* own : {&g_, &thin_, &other_thin_, &sa_, &sg_, &sl_}) own->resize(thin);
  for (Values* own : {&K_, &H_, &square_, &other_square_}) own->resize(square);
  for (Values* own : {&half_, &root_, &cone_residual_, &R_, &unit_, &residual_, &small_square_,
                      &small_work_})
    own->resize(side);
  for (Values* own : {&w_, &scores_, &T_, &trace_row_, &vector_}) own->resize(f_);
  for (Values* own : {&h_, &sh_, &diagonal_, &side_}) own->resize(r_);
  for (Values* own : {&alpha_residual_, &below_, &above_, &theta_}) own->resize(n_);
  lapack_work_.resize(std::max<std::size_t>(64, 40 * r_));
  if (!linearise()) merit_ = std::numeric_limits<double>::quiet_NaN();
}

double JointSteps::below(std::size_t part, double alpha) const {
  return bounded_[part] ? alpha : 1.0;
}

double JointSteps::above(std::size_t part, double alpha) const {
  return bounded_[part] ? upper_[part] - alpha : 1.0;
}

// C = op(A) op(B), all stored by columns.
void JointSteps::multiply(char left, char right, std::size_t rows, std::size_t columns,
                          std::size_t inner, const double* A, std::size_t lda, const double* B,
                          std::size_t ldb, double* C, std::size_t ldc) {
  int m = static_cast<int>(rows), n = static_cast<int>(columns), k = static_cast<int>(inner);
  int la = static_cast<int>(lda), lb = static_cast<int>(ldb), lc = static_cast<int>(ldc);
  double one = 1.0, zero = 0.0;
  lapack_.dgemm(&left, &right, &m, &n, &k, &one, const_cast<double*>(A), &la,
                const_cast<double*>(B), &lb, &zero, C, &lc);
}

// A thin matrix is stored by rows, which is its transpose by columns.
void JointSteps::turned(const Values& thin, Values& out) {
  multiply('T', 'N', r_, f_, r_, R_.data(), r_, thin.data(), r_, out.data(), r_);
}

void JointSteps::to_scaled(const Values& D, Values& out) {
  multiply('T', 'N', r_, r_, r_, R_.data(), r_, D.data(), r_, small_work_.data(), r_);
  multiply('N', 'N', r_, r_, r_, small_work_.data(), r_, R_.data(), r_, out.data(), r_);
}

void JointSteps::from_scaled(const Values& X, Values& out) {
  multiply('N', 'N', r_, r_, r_, R_.data(), r_, X.data(), r_, small_work_.data(), r_);
  multiply('N', 'T', r_, r_, r_, small_work_.data(), r_, R_.data(), r_, out.data(), r_);
  symmetrise(out, r_);
}

// <Γ_k, X> of all samples, with Γ_k = sym(a_k g_kᵀ) + sym(l_k hᵀ).
void JointSteps::apply(const Values& a, const Values& g, const Values& low, const Values& h,
                       const Values& X, double* out) {
  multiply('N', 'N', r_, f_, r_, X.data(), r_, a.data(), r_, thin_.data(), r_);
  for (std::size_t i = 0; i < r_; ++i) side_[i] = dot(&X[i * r_], h.data(), r_);
  for (std::size_t k = 0; k < f_; ++k)
    out[k] = dot(&thin_[k * r_], &g[k * r_], r_) + dot(&low[k * r_], side_.data(), r_);
}

// Σ_k v_k Γ_k.
void JointSteps::adjoint(const Values& a, const Values& g, const Values& low, const Values& h,
                         const double* v, Values& out) {
  std::fill(side_.begin(), side_.end(), 0.0);
  for (std::size_t k = 0; k < f_; ++k)
    for (std::size_t i = 0; i < r_; ++i) {
      thin_[k * r_ + i] = v[k] * g[k * r_ + i];
      side_[i] += v[k] * low[k * r_ + i];
    }
  multiply('N', 'T', r_, r_, f_, a.data(), r_, thin_.data(), r_, out.data(), r_);
  for (std::size_t j = 0; j < r_; ++j)
    for (std::size_t i = 0; i < r_; ++i) out[i + j * r_] += side_[i] * h[j];
  symmetrise(out, r_);
}

// The linearisation at the current state; false if P is not positive definite.
bool JointSteps::linearise() {
  root_ = state_.P;
  char lower = 'L';
  int side = static_cast<int>(r_), failed = 0;
  lapack_.dpotrf(&lower, &side, root_.data(), &side, &failed);
  if (failed) return false;
  for (std::size_t j = 1; j < r_; ++j)
    for (std::size_t i = 0; i < j; ++i) root_[i + j * r_] = 0.0;
  std::fill(w_.begin(), w_.end(), 0.0);
  for (std::size_t k = 0; k < n_; ++k) w_[sample_[k]] += sign_[k] * state_.alpha[k];
  half_gradient();
  apply(a_, g_, low_, h_, state_.P, scores_.data());
  kernel_matrix();

  double worst = 0.0, kappa = 0.0;
  gap_ = dot(state_.P, state_.S);
  for (std::size_t k = 0; k < n_; ++k) {
    const double alpha = state_.alpha[k], bent = curvature_[k] * alpha;
    const double residual = sign_[k] * (scores_[sample_[k]] + state_.nu) - cost_[k] + bent -
                            state_.zl[k] + state_.zu[k];
    alpha_residual_[k] = residual;
    worst = largest({worst, std::abs(residual)});
    kappa += cost_[k] * alpha - 0.5 * bent * alpha;
    gap_ += below(k, alpha) * state_.zl[k] + above(k, alpha) * state_.zu[k];
  }
  sum_residual_ = -sum_w_;
  for (const double own : w_) sum_residual_ += own;
  double trace = 0.0, outside = 0.0;
  for (std::size_t i = 0; i < r_; ++i) trace += state_.P[i + i * r_];
  trace_residual_ = trace / total_ - 1.0;
  for (std::size_t j = 0; j < r_; ++j)
    for (std::size_t i = 0; i < r_; ++i) {
      const std::size_t k = i + j * r_;
      cone_residual_[k] = (i == j ? state_.xi / total_ : 0.0) - half_[k] - state_.S[k];
      outside = largest({outside, std::abs(cone_residual_[k])});
    }
  const double value = std::abs(kappa - 0.5 * dot(w_, scores_)) + 1e-12 * scale_;
  merit_ = largest({gap_ / value, total_ * outside / value, worst / scale_,
                    std::abs(trace_residual_)});
  return true;
}

// g, h and ½ D(w), of which the samples that move have one half of their sensitivities.
void JointSteps::half_gradient() {
  Values& own = g_;
  for (std::size_t k = 0; k < f_; ++k)
    for (std::size_t i = 0; i < r_; ++i) thin_[k * r_ + i] = w_[k] * a_[k * r_ + i];
  multiply('N', 'N', r_, f_, f_, thin_.data(), r_, products_, f_, own.data(), r_);
  Values tail(r_, 0.0);
  std::fill(h_.begin(), h_.end(), 0.0);
  for (std::size_t k = 0; k < f_; ++k)
    for (std::size_t i = 0; i < r_; ++i) {
      tail[i] += w_[k] * low_[k * r_ + i];
      h_[i] += w_[k] * ratio_[k] * a_[k * r_ + i];
    }
  Values half_h(r_);
  for (std::size_t i = 0; i < r_; ++i) {
    h_[i] += box_ * tail[i];
    half_h[i] = 0.5 * h_[i] + held_h_[i];
    h_[i] += held_h_[i];
  }
  for (std::size_t k = 0; k < f_; ++k)
    for (std::size_t i = 0; i < r_; ++i) {
      const std::size_t at = k * r_ + i;
      own[at] += ratio_[k] * tail[i];
      other_thin_[at] = 0.5 * own[at] + held_g_[at];
      own[at] += held_g_[at];
    }
  adjoint(a_, other_thin_, low_, half_h, w_.data(), half_);
  for (std::size_t k = 0; k < half_.size(); ++k) half_[k] += held_half_[k];
}

// The lower triangle of K(P), by columns.
void JointSteps::kernel_matrix() {
  multiply('T', 'N', r_, f_, r_, root_.data(), r_, a_.data(), r_, thin_.data(), r_);
  multiply('T', 'N', r_, f_, r_, root_.data(), r_, low_.data(), r_, other_thin_.data(), r_);
  char lower = 'L', transposed = 'T';
  int size = static_cast<int>(f_), inner = static_cast<int>(r_);
  double one = 1.0, zero = 0.0;
  lapack_.dsyrk(&lower, &transposed, &size, &inner, &one, thin_.data(), &inner, &zero, K_.data(),
                &size);
  for (std::size_t j = 0; j < f_; ++j)
    for (std::size_t i = j; i < f_; ++i) K_[i + j * f_] *= products_[i + j * f_];
  for (std::size_t k = 0; k < f_; ++k)
    for (std::size_t i = 0; i < r_; ++i) {
      const std::size_t at = k * r_ + i;
      thin_[at] = ratio_[k] * thin_[at] + 0.5 * box_ * other_thin_[at];
    }
  lapack_.dsyr2k(&lower, &transposed, &size, &inner, &one, thin_.data(), &inner,
                 other_thin_.data(), &inner, &one, K_.data(), &size);
}

double JointSteps::advance() {
  if (!std::isfinite(merit_)) return 0.0;
  for (std::size_t k = 0; k < n_; ++k) {
    below_[k] = below(k, state_.alpha[k]);
    above_[k] = above(k, state_.alpha[k]);
    if (!(below_[k] > 0.0 && above_[k] > 0.0)) return 0.0;  // rounding has moved it to its bound
  }
  if (!prepare()) return 0.0;
  Values rl(n_), ru(n_), rX(r_ * r_, 0.0);
  for (std::size_t k = 0; k < n_; ++k) {
    rl[k] = -below_[k] * state_.zl[k];
    ru[k] = -above_[k] * state_.zu[k];
  }
  for (std::size_t i = 0; i < r_; ++i) rX[i + i * r_] = -diagonal_[i];
  const Step affine = newton_step(rl, ru, rX);
  const double far = std::min(1.0, reach(affine));
  const double after = std::max(0.0, complementarity_after(affine, far));
  const double centring =
      far > 0.1 ? std::min(1.0, std::max(1e-8, std::pow(after / gap_, 3))) : 0.5;
  const double mu = centring * gap_ / static_cast<double>(bounds_ + r_);

  for (std::size_t k = 0; k < n_; ++k) {
    const double aim = bounded_[k] ? mu : 0.0;
    rl[k] += aim - affine.alpha[k] * affine.zl[k];
    ru[k] += aim + affine.alpha[k] * affine.zu[k];
  }
  // The second-order error of the predictor.
  multiply('N', 'N', r_, r_, r_, affine.X.data(), r_, affine.Z.data(), r_, small_square_.data(),
           r_);
  symmetrise(small_square_, r_);
  for (std::size_t j = 0; j < r_; ++j)
    for (std::size_t i = 0; i < r_; ++i)
      rX[i + j * r_] -= small_square_[i + j * r_] * 2.0 / (diagonal_[i] + diagonal_[j]);
  for (std::size_t i = 0; i < r_; ++i) rX[i + i * r_] += mu / diagonal_[i];
  const Step step = newton_step(rl, ru, rX);
  const double length = std::min(1.0, to_boundary_ * reach(step));
  if (!(std::isfinite(length) && length > kLeastStep)) return 0.0;
  return move(step, length) ? length : 0.0;
}

// The Newton equations at the current state; false if they are singular.
bool JointSteps::prepare() {
  refinements_ = merit_ >= 1e-3 ? 0 : merit_ >= 1e-6 ? 1 : 2;
  for (std::size_t k = 0; k < n_; ++k)
    theta_[k] = curvature_[k] + state_.zl[k] / below_[k] + state_.zu[k] / above_[k];
  if (!scale_parameter()) return false;
  for (std::size_t j = 0; j < r_; ++j)
    for (std::size_t i = 0; i < r_; ++i)
      unit_[i + j * r_] = dot(&R_[i * r_], &R_[j * r_], r_) / total_;
  to_scaled(cone_residual_, residual_);
  scaled_sensitivities();
  return factorise() && border();
}

// The scaling P = R Λ Rᵀ and S = R⁻ᵀ Λ R⁻¹ with a diagonal Λ.
bool JointSteps::scale_parameter() {
  char lower = 'L', none = 'N', all = 'A';
  int side = static_cast<int>(r_), failed = 0, room = static_cast<int>(lapack_work_.size());
  Values G = state_.S;
  lapack_.dpotrf(&lower, &side, G.data(), &side, &failed);
  if (failed) return false;
  for (std::size_t j = 1; j < r_; ++j)
    for (std::size_t i = 0; i < j; ++i) G[i + j * r_] = 0.0;
  multiply('T', 'N', r_, r_, r_, G.data(), r_, root_.data(), r_, small_square_.data(), r_);
  double unused = 0.0;
  int one = 1;
  lapack_.dgesvd(&none, &all, &side, &side, small_square_.data(), &side, diagonal_.data(), &unused,
                 &one, G.data(), &side, lapack_work_.data(), &room, &failed);
  if (failed || !(diagonal_[r_ - 1] > 0.0)) return false;
  multiply('N', 'T', r_, r_, r_, root_.data(), r_, G.data(), r_, R_.data(), r_);
  for (std::size_t j = 0; j < r_; ++j)
    for (std::size_t i = 0; i < r_; ++i) R_[i + j * r_] /= std::sqrt(diagonal_[j]);
  return true;
}

void JointSteps::scaled_sensitivities() {
  turned(a_, sa_);
  turned(g_, sg_);
  turned(low_, sl_);
  for (std::size_t i = 0; i < r_; ++i) sh_[i] = dot(&R_[i * r_], h_.data(), r_);
}

// The Cholesky factor of K + J Jᵀ + T, whose second term has the products <Γ_k, Γ_l>.
bool JointSteps::factorise() {
  char lower = 'L', transposed = 'T';
  int size = static_cast<int>(f_), inner = static_cast<int>(r_), failed = 0;
  double one = 1.0, zero = 0.0, half = 0.5;
  lapack_.dsyrk(&lower, &transposed, &size, &inner, &one, sa_.data(), &inner, &zero,
                square_.data(), &size);
  lapack_.dsyrk(&lower, &transposed, &size, &inner, &one, sg_.data(), &inner, &zero,
                other_square_.data(), &size);
  multiply('T', 'N', f_, f_, r_, sa_.data(), r_, sg_.data(), r_, H_.data(), f_);
  const double hh = dot(sh_, sh_);
  Values lh(f_);
  for (std::size_t k = 0; k < f_; ++k) {
    const double ah = dot(&sa_[k * r_], sh_.data(), r_), gh = dot(&sg_[k * r_], sh_.data(), r_);
    lh[k] = dot(&sl_[k * r_], sh_.data(), r_);
    for (std::size_t i = 0; i < r_; ++i) {
      const std::size_t at = k * r_ + i;
      thin_[at] = gh * sa_[at] + ah * sg_[at] + 0.5 * hh * sl_[at];
    }
  }
  for (std::size_t left = 0; left < f_; left += kBlock)
    for (std::size_t top = left; top < f_; top += kBlock)
      for (std::size_t j = left; j < std::min(f_, left + kBlock); ++j)
        for (std::size_t i = std::max(top, j); i < std::min(f_, top + kBlock); ++i) {
          const std::size_t at = i + j * f_;
          const double crossed = H_[at] * H_[j + i * f_];
          H_[at] = K_[at] + 0.5 * (square_[at] * other_square_[at] + crossed + lh[i] * lh[j]);
        }
  lapack_.dsyr2k(&lower, &transposed, &size, &inner, &half, thin_.data(), &inner, sl_.data(),
                 &inner, &one, H_.data(), &size);

  std::fill(T_.begin(), T_.end(), 0.0);
  for (std::size_t k = 0; k < n_; ++k) T_[sample_[k]] += 1.0 / theta_[k];
  double softest = 0.0, widest = 0.0;
  for (std::size_t k = 0; k < f_; ++k) {
    softest = largest({softest, T_[k]});
    widest = largest({widest, std::abs(K_[k + k * f_])});
  }
  // A sample without parts (weight zero) cannot move, which a very large T ensures.
  const double fixed = 1e12 * (widest + 1.0 / softest);
  for (std::size_t k = 0; k < f_; ++k) {
    T_[k] = 1.0 / std::max(T_[k], 1.0 / fixed);
    H_[k + k * f_] += T_[k];
  }
  lapack_.dpotrf(&lower, &size, H_.data(), &size, &failed);
  return failed == 0;
}

// The equations of the sum of w and of the trace of P after the elimination of w.
bool JointSteps::border() {
  apply(sa_, sg_, sl_, sh_, unit_, trace_row_.data());
  for (double& value : trace_row_) value = -value;
  solved_border_.assign(f_, 1.0);
  solved_border_.insert(solved_border_.end(), trace_row_.begin(), trace_row_.end());
  solve(solved_border_, 2);
  const double *sum = solved_border_.data(), *trace = sum + f_;
  double sums[2] = {0.0, 0.0};
  for (std::size_t k = 0; k < f_; ++k) {
    sums[0] += sum[k];
    sums[1] += trace[k];
  }
  small_[0] = sums[0];
  small_[1] = sums[1];
  small_[2] = dot(trace_row_.data(), sum, f_);
  small_[3] = dot(trace_row_.data(), trace, f_) - dot(unit_, unit_);
  return small_[0] * small_[3] - small_[1] * small_[2] != 0.0;
}

void JointSteps::kernel_times(const double* v, double* out) {
  char lower = 'L';
  int size = static_cast<int>(f_), step = 1;
  double one = 1.0, zero = 0.0;
  lapack_.dsymv(&lower, &size, &one, K_.data(), &size, const_cast<double*>(v), &step, &zero, out,
                &step);
}

// The matrix of the Newton equations times a vector.
void JointSteps::times(const double* v, double* out) {
  adjoint(sa_, sg_, sl_, sh_, v, small_square_);
  apply(sa_, sg_, sl_, sh_, small_square_, out);
  Values product(f_);
  kernel_times(v, product.data());
  for (std::size_t k = 0; k < f_; ++k) out[k] += product[k] + T_[k] * v[k];
}

// Replaces right-hand sides, one after the other, by the solutions, refined where rounding matters.
void JointSteps::solve(Values& rhs, std::size_t columns) {
  char lower = 'L';
  int size = static_cast<int>(f_), count = static_cast<int>(columns), failed = 0;
  Values solution = rhs, rest(rhs.size());
  lapack_.dpotrs(&lower, &size, &count, H_.data(), &size, solution.data(), &size, &failed);
  for (int round = 0; round < refinements_; ++round) {
    for (std::size_t c = 0; c < columns; ++c) times(&solution[c * f_], &rest[c * f_]);
    for (std::size_t k = 0; k < rest.size(); ++k) rest[k] = rhs[k] - rest[k];
    lapack_.dpotrs(&lower, &size, &count, H_.data(), &size, rest.data(), &size, &failed);
    for (std::size_t k = 0; k < rest.size(); ++k) solution[k] += rest[k];
  }
  rhs.swap(solution);
}

JointSteps::Step JointSteps::newton_step(const Values& rl, const Values& ru, const Values& rX) {
  Step step;
  Values rho(n_), rhs(f_, 0.0), pushed(r_ * r_);
  for (std::size_t k = 0; k < n_; ++k) {
    rho[k] = -alpha_residual_[k] + rl[k] / below_[k] - ru[k] / above_[k];
    rhs[sample_[k]] += sign_[k] * rho[k] / theta_[k];
  }
  for (std::size_t k = 0; k < pushed.size(); ++k) pushed[k] = rX[k] - residual_[k];
  apply(sa_, sg_, sl_, sh_, pushed, vector_.data());
  for (std::size_t k = 0; k < f_; ++k) rhs[k] = T_[k] * rhs[k] - vector_[k];
  solve(rhs);

  double sum = sum_residual_;
  for (const double own : rhs) sum += own;
  const double trace = dot(trace_row_, rhs) - dot(unit_, pushed) - trace_residual_;
  const double determinant = small_[0] * small_[3] - small_[1] * small_[2];
  step.nu = (sum * small_[3] - small_[1] * trace) / determinant;
  step.xi = (small_[0] * trace - small_[2] * sum) / determinant;
  step.w = std::move(rhs);
  for (std::size_t k = 0; k < f_; ++k)
    step.w[k] -= solved_border_[k] * step.nu + solved_border_[f_ + k] * step.xi;

  step.X.resize(r_ * r_);
  step.Z.resize(r_ * r_);
  adjoint(sa_, sg_, sl_, sh_, step.w.data(), small_square_);
  for (std::size_t k = 0; k < step.X.size(); ++k) {
    const double pull = small_square_[k] - step.xi * unit_[k];
    step.X[k] = pushed[k] + pull;
    step.Z[k] = residual_[k] - pull;
  }
  Values change(f_);
  kernel_times(step.w.data(), change.data());
  apply(sa_, sg_, sl_, sh_, step.X, vector_.data());
  for (std::size_t k = 0; k < f_; ++k) change[k] += step.nu + vector_[k];

  // Of the two parts of a sample, only the one with the larger theta is a safe divisor.
  step.alpha.resize(n_);
  for (std::size_t k = 0; k < n_; ++k) step.alpha[k] = sign_[k] * step.w[sample_[k]];
  for (std::size_t k = 0; k < n_; ++k) {
    if (partner_[k] == kNone) continue;
    const bool keep = theta_[k] >= theta_[partner_[k]];
    const std::size_t safe = keep ? k : partner_[k], other = keep ? partner_[k] : k;
    const std::size_t own = sample_[k];
    step.alpha[safe] = (rho[safe] - sign_[safe] * change[own]) / theta_[safe];
    step.alpha[other] = sign_[other] * (step.w[own] - sign_[safe] * step.alpha[safe]);
  }
  step.zl.resize(n_);
  step.zu.resize(n_);
  for (std::size_t k = 0; k < n_; ++k) {
    step.zl[k] = (rl[k] - state_.zl[k] * step.alpha[k]) / below_[k];
    step.zu[k] = (ru[k] + state_.zu[k] * step.alpha[k]) / above_[k];
  }
  return step;
}

// The largest multiple of a scaled change that keeps a matrix positive semidefinite.
double JointSteps::room(const Values& change) {
  if (!all_finite(change)) return std::numeric_limits<double>::quiet_NaN();
  for (std::size_t j = 0; j < r_; ++j)
    for (std::size_t i = 0; i < r_; ++i)
      small_square_[i + j * r_] =
          change[i + j * r_] / (std::sqrt(diagonal_[i]) * std::sqrt(diagonal_[j]));
  char none = 'N', lower = 'L';
  int side = static_cast<int>(r_), work = static_cast<int>(lapack_work_.size()), failed = 0;
  lapack_.dsyev(&none, &lower, &side, small_square_.data(), &side, side_.data(),
                lapack_work_.data(), &work, &failed);
  if (failed) return std::numeric_limits<double>::quiet_NaN();
  return side_[0] >= 0.0 ? kInfinity : -1.0 / side_[0];
}

double JointSteps::reach(const Step& step) {
  const double first = room(step.X), second = room(step.Z);
  if (std::isnan(first) || std::isnan(second)) return std::numeric_limits<double>::quiet_NaN();
  double fastest = 0.0;
  for (std::size_t k = 0; k < n_; ++k) {
    if (!bounded_[k]) continue;
    fastest = std::max(fastest, -step.alpha[k] / below_[k]);
    fastest = std::max(fastest, step.alpha[k] / above_[k]);
    fastest = std::max(fastest, -step.zl[k] / state_.zl[k]);
    fastest = std::max(fastest, -step.zu[k] / state_.zu[k]);
  }
  return std::min({first, second, fastest > 0.0 ? 1.0 / fastest : kInfinity});
}

double JointSteps::complementarity_after(const Step& step, double length) const {
  double sum = 0.0;
  for (std::size_t k = 0; k < n_; ++k) {
    const double alpha = state_.alpha[k] + length * step.alpha[k];
    sum += below(k, alpha) * (state_.zl[k] + length * step.zl[k]);
    sum += above(k, alpha) * (state_.zu[k] + length * step.zu[k]);
  }
  for (std::size_t j = 0; j < r_; ++j)
    for (std::size_t i = 0; i < r_; ++i) {
      const double middle = i == j ? diagonal_[i] : 0.0;
      const std::size_t k = i + j * r_;
      sum += (middle + length * step.X[k]) * (middle + length * step.Z[k]);
    }
  return sum;
}

// The state after a step, linearised; false, with the old state, if rounding leaves the cone.
bool JointSteps::move(const Step& step, double length) {
  const State before = state_;
  Values dP(r_ * r_), pull(r_ * r_);
  from_scaled(step.X, dP);
  // S is computed from its equation, and not from its scaled change, so that the equation holds up
  // to rounding.
  adjoint(a_, g_, low_, h_, step.w.data(), pull);
  for (std::size_t k = 0; k < dP.size(); ++k) {
    const bool on_diagonal = k % (r_ + 1) == 0;
    state_.P[k] += length * dP[k];
    state_.S[k] += length * (cone_residual_[k] - pull[k] + (on_diagonal ? step.xi / total_ : 0.0));
  }
  for (std::size_t k = 0; k < n_; ++k) {
    state_.alpha[k] += length * step.alpha[k];
    state_.zl[k] += length * step.zl[k];
    state_.zu[k] += length * step.zu[k];
  }
  state_.nu += length * step.nu;
  state_.xi += length * step.xi;
  if (linearise()) return true;
  state_ = before;
  return false;
}

}  // namespace tessella
