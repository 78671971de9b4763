#include "dual_steps.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace tessella {

namespace {

constexpr double kLeastStep = 1e-8;  // a shorter step only changes rounding errors
constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();

double dot(const std::vector<double>& x, const std::vector<double>& y) {
  double sum = 0.0;
  for (std::size_t k = 0; k < x.size(); ++k) sum += x[k] * y[k];
  return sum;
}

double total(const std::vector<double>& x) {
  double sum = 0.0;
  for (const double own : x) sum += own;
  return sum;
}

// The larger value, NaN if there is one.
double larger(double x, double y) { return y <= x || std::isnan(x) ? x : y; }

}  // namespace

DualSteps::DualSteps(const DualStepsProblem& problem, State state, double scale,
                     double to_boundary, const LinearAlgebra& lapack)
    : lapack_(lapack),
      f_(problem.samples),
      n_(problem.parts),
      r_(problem.rank),
      matrix_(problem.matrix),
      rest_(problem.rest),
      scale_(scale),
      to_boundary_(to_boundary),
      sample_(problem.sample, problem.sample + n_),
      partner_(n_, kNone),
      sign_(problem.sign, problem.sign + n_),
      cost_(problem.cost, problem.cost + n_),
      upper_(problem.upper, problem.upper + n_),
      state_(std::move(state)) {
  std::vector<std::size_t> first(f_, kNone);
  for (std::size_t k = 0; k < n_; ++k) {
    std::size_t& before = first[sample_[k]];
    if (before == kNone) {
      before = k;
    } else {
      partner_[before] = k;
      has_pairs_ = true;
    }
  }
  for (Values* own : {&w_, &scores_, &T_, &diagonal_, &solved_sum_, &product_}) own->resize(f_);
  for (Values* own : {&alpha_residual_, &above_, &theta_}) own->resize(n_);
  factor_.resize(r_ ? r_ * r_ : f_ * f_);
  scaled_.resize(r_ * f_);
  inner_.resize(r_);
  for (std::size_t i = 0; i < f_; ++i) {
    double own = r_ ? rest_[i] : matrix_[i * f_ + i];
    for (std::size_t a = 0; a < r_; ++a) own += matrix_[a * f_ + i] * matrix_[a * f_ + i];
    widest_ = larger(widest_, std::abs(own));
  }
  linearise();
}

void DualSteps::kernel_times(const Values& v, Values& out) {
  int size = static_cast<int>(f_), rank = static_cast<int>(r_), one = 1;
  double unit = 1.0, zero = 0.0;
  double* matrix = const_cast<double*>(matrix_);
  double* given = const_cast<double*>(v.data());
  if (!r_) {
    char lower = 'L';
    lapack_.dsymv(&lower, &size, &unit, matrix, &size, given, &one, &zero, out.data(), &one);
    return;
  }
  // By columns, the factor is its transpose.
  char transposed = 'T', none = 'N';
  lapack_.dgemv(&transposed, &size, &rank, &unit, matrix, &size, given, &one, &zero, inner_.data(),
                &one);
  lapack_.dgemv(&none, &size, &rank, &unit, matrix, &size, inner_.data(), &one, &zero, out.data(),
                &one);
  for (std::size_t i = 0; i < f_; ++i) out[i] += rest_[i] * v[i];
}

void DualSteps::linearise() {
  std::fill(w_.begin(), w_.end(), 0.0);
  for (std::size_t k = 0; k < n_; ++k) w_[sample_[k]] += sign_[k] * state_.alpha[k];
  kernel_times(w_, scores_);
  double worst = 0.0;
  gap_ = 0.0;
  for (std::size_t k = 0; k < n_; ++k) {
    const double residual = sign_[k] * (scores_[sample_[k]] + state_.nu) - cost_[k] -
                            state_.zl[k] + state_.zu[k];
    alpha_residual_[k] = residual;
    worst = larger(worst, std::abs(residual));
    gap_ += state_.alpha[k] * state_.zl[k] + (upper_[k] - state_.alpha[k]) * state_.zu[k];
  }
  sum_residual_ = total(w_);
  const double value =
      std::abs(dot(cost_, state_.alpha) - 0.5 * dot(w_, scores_)) + 1e-12 * scale_;
  merit_ = larger(gap_ / value, worst / scale_);
}

double DualSteps::advance() {
  if (!std::isfinite(merit_)) return 0.0;
  for (std::size_t k = 0; k < n_; ++k) {
    above_[k] = upper_[k] - state_.alpha[k];
    if (!(state_.alpha[k] > 0.0 && above_[k] > 0.0)) return 0.0;  // rounding: it is at its bound
    theta_[k] = state_.zl[k] / state_.alpha[k] + state_.zu[k] / above_[k];
  }
  refinements_ = merit_ >= 1e-3 ? 0 : merit_ >= 1e-6 ? 1 : 2;
  if (!factorise()) return 0.0;
  std::fill(solved_sum_.begin(), solved_sum_.end(), 1.0);
  solve(solved_sum_);
  sum_of_inverse_ = total(solved_sum_);

  Values rl(n_), ru(n_);
  for (std::size_t k = 0; k < n_; ++k) {
    rl[k] = -state_.alpha[k] * state_.zl[k];
    ru[k] = -above_[k] * state_.zu[k];
  }
  const Step affine = newton_step(rl, ru);
  const double far = std::min(1.0, reach(affine));
  const double after = std::max(0.0, complementarity_after(affine, far));
  const double centring =
      far > 0.1 ? std::min(1.0, std::max(1e-8, std::pow(after / gap_, 3))) : 0.5;
  const double mu = centring * gap_ / static_cast<double>(2 * n_);
  for (std::size_t k = 0; k < n_; ++k) {
    rl[k] += mu - affine.alpha[k] * affine.zl[k];
    ru[k] += mu + affine.alpha[k] * affine.zu[k];
  }
  const Step step = newton_step(rl, ru);
  const double length = std::min(1.0, to_boundary_ * reach(step));
  if (!(std::isfinite(length) && length > kLeastStep)) return 0.0;
  for (std::size_t k = 0; k < n_; ++k) {
    state_.alpha[k] += length * step.alpha[k];
    state_.zl[k] += length * step.zl[k];
    state_.zu[k] += length * step.zu[k];
  }
  state_.nu += length * step.nu;
  linearise();
  return length;
}

// The Cholesky factor of the Newton equations; false if they are singular.
bool DualSteps::factorise() {
  std::fill(T_.begin(), T_.end(), 0.0);
  double softest = 0.0;
  for (std::size_t k = 0; k < n_; ++k) T_[sample_[k]] += 1.0 / theta_[k];
  for (const double own : T_) softest = larger(softest, own);
  // A sample without parts (weight zero) cannot move, which a very large T ensures.
  const double fixed = 1e12 * (widest_ + 1.0 / softest);
  for (double& own : T_) own = 1.0 / std::max(own, 1.0 / fixed);
  if (r_) return factorise_low_rank();
  std::copy(matrix_, matrix_ + f_ * f_, factor_.begin());
  for (std::size_t i = 0; i < f_; ++i) factor_[i * f_ + i] += T_[i];
  char lower = 'L';
  int size = static_cast<int>(f_), failed = 0;
  lapack_.dpotrf(&lower, &size, factor_.data(), &size, &failed);
  return failed == 0;
}

bool DualSteps::factorise_low_rank() {
  for (std::size_t i = 0; i < f_; ++i) {
    diagonal_[i] = rest_[i] + T_[i];
    product_[i] = 1.0 / std::sqrt(diagonal_[i]);
  }
  for (std::size_t a = 0; a < r_; ++a)
    for (std::size_t i = 0; i < f_; ++i)
      scaled_[a * f_ + i] = matrix_[a * f_ + i] * product_[i];
  char lower = 'L', transposed = 'T';
  int size = static_cast<int>(f_), rank = static_cast<int>(r_), failed = 0;
  double unit = 1.0, zero = 0.0;
  lapack_.dsyrk(&lower, &transposed, &rank, &size, &unit, scaled_.data(), &size, &zero,
                factor_.data(), &rank);
  for (std::size_t a = 0; a < r_; ++a) factor_[a * r_ + a] += 1.0;
  lapack_.dpotrf(&lower, &rank, factor_.data(), &rank, &failed);
  return failed == 0;
}

// out = (K + T)⁻¹ rhs, up to the rounding of the factor.
void DualSteps::solve_once(const Values& rhs, Values& out) {
  char lower = 'L', transposed = 'T', none = 'N';
  int size = static_cast<int>(f_), rank = static_cast<int>(r_), one = 1, failed = 0;
  double unit = 1.0, zero = 0.0;
  out = rhs;
  if (!r_) {
    lapack_.dpotrs(&lower, &size, &one, factor_.data(), &size, out.data(), &size, &failed);
    return;
  }
  // Woodbury's formula.
  double* matrix = const_cast<double*>(matrix_);
  for (std::size_t i = 0; i < f_; ++i) out[i] /= diagonal_[i];
  lapack_.dgemv(&transposed, &size, &rank, &unit, matrix, &size, out.data(), &one, &zero,
                inner_.data(), &one);
  lapack_.dpotrs(&lower, &rank, &one, factor_.data(), &rank, inner_.data(), &rank, &failed);
  lapack_.dgemv(&none, &size, &rank, &unit, matrix, &size, inner_.data(), &one, &zero,
                product_.data(), &one);
  for (std::size_t i = 0; i < f_; ++i) out[i] -= product_[i] / diagonal_[i];
}

// Replaces a right-hand side by the solution, refined where rounding matters.
void DualSteps::solve(Values& rhs) {
  Values solution(f_), rest(f_), correction(f_);
  solve_once(rhs, solution);
  for (int round = 0; round < refinements_; ++round) {
    kernel_times(solution, rest);
    for (std::size_t i = 0; i < f_; ++i) rest[i] = rhs[i] - rest[i] - T_[i] * solution[i];
    solve_once(rest, correction);
    for (std::size_t i = 0; i < f_; ++i) solution[i] += correction[i];
  }
  rhs.swap(solution);
}

DualSteps::Step DualSteps::newton_step(const Values& rl, const Values& ru) {
  Step step;
  Values rho(n_), rhs(f_, 0.0), change(f_);
  for (std::size_t k = 0; k < n_; ++k) {
    rho[k] = -alpha_residual_[k] + rl[k] / state_.alpha[k] - ru[k] / above_[k];
    rhs[sample_[k]] += sign_[k] * rho[k] / theta_[k];
  }
  for (std::size_t i = 0; i < f_; ++i) rhs[i] *= T_[i];
  solve(rhs);
  step.nu = (total(rhs) + sum_residual_) / sum_of_inverse_;
  step.w = std::move(rhs);
  for (std::size_t i = 0; i < f_; ++i) step.w[i] -= solved_sum_[i] * step.nu;

  // Of the two parts of a sample, only the one with the larger theta is a safe divisor. The change
  // of the scores is needed for samples with two parts.
  if (has_pairs_) kernel_times(step.w, change);
  step.alpha.resize(n_);
  for (std::size_t k = 0; k < n_; ++k) step.alpha[k] = sign_[k] * step.w[sample_[k]];
  for (std::size_t k = 0; k < n_; ++k) {
    if (partner_[k] == kNone) continue;
    const bool keep = theta_[k] >= theta_[partner_[k]];
    const std::size_t safe = keep ? k : partner_[k], other = keep ? partner_[k] : k;
    const std::size_t own = sample_[k];
    step.alpha[safe] = (rho[safe] - sign_[safe] * (change[own] + step.nu)) / theta_[safe];
    step.alpha[other] = sign_[other] * (step.w[own] - sign_[safe] * step.alpha[safe]);
  }
  step.zl.resize(n_);
  step.zu.resize(n_);
  for (std::size_t k = 0; k < n_; ++k) {
    step.zl[k] = (rl[k] - state_.zl[k] * step.alpha[k]) / state_.alpha[k];
    step.zu[k] = (ru[k] + state_.zu[k] * step.alpha[k]) / above_[k];
  }
  return step;
}

// The largest multiple of a step that stays within all bounds.
double DualSteps::reach(const Step& step) const {
  double fastest = 0.0;
  for (std::size_t k = 0; k < n_; ++k) {
    fastest = std::max(fastest, -step.alpha[k] / state_.alpha[k]);
    fastest = std::max(fastest, step.alpha[k] / above_[k]);
    fastest = std::max(fastest, -step.zl[k] / state_.zl[k]);
    fastest = std::max(fastest, -step.zu[k] / state_.zu[k]);
  }
  return fastest > 0.0 ? 1.0 / fastest : std::numeric_limits<double>::infinity();
}

double DualSteps::complementarity_after(const Step& step, double length) const {
  double sum = 0.0;
  for (std::size_t k = 0; k < n_; ++k) {
    const double alpha = state_.alpha[k] + length * step.alpha[k];
    sum += alpha * (state_.zl[k] + length * step.zl[k]);
    sum += (upper_[k] - alpha) * (state_.zu[k] + length * step.zu[k]);
  }
  return sum;
}

}  // namespace tessella
