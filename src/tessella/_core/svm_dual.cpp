#include "svm_dual.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "kernel_rows.hpp"
#include "loops.hpp"
#include "threads.hpp"

namespace tessella {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kIdleTests = 500;      // tests without progress after which rounding is to blame
constexpr std::size_t kWorthThreads = 1 << 21;  // entries of K below which one thread is faster

template <class Rows>
class DualSolver {
 public:
  DualSolver(Rows& rows, const DualProblem& problem, const DualLimits& limits, double* w,
             double* gradient, int threads)
      : rows_(rows),
        problem_(problem),
        limits_(limits),
        size_(problem.size),
        w_(w),
        gradient_(gradient),
        threads_(threads),
        diagonal_(size_),
        up_offset_(size_),
        down_offset_(size_) {
    double largest = 0.0;
    for (std::size_t k = 0; k < size_; ++k) {
      diagonal_[k] = rows_.diagonal(k);
      largest = std::max(largest, diagonal_[k]);
      refresh_offsets(k);
    }
    // A curvature of zero (duplicate rows) means "go to the bound"; the floor keeps it finite.
    curvature_floor_ = std::max(1e-14 * largest, std::numeric_limits<double>::min());
    // The best offset costs O(m log m): look for it about once per pass over the samples, and
    // in between make do with the middle of the violating pair, whose gap costs as much as a step.
    test_period_ = std::max<std::int64_t>(200, static_cast<std::int64_t>(size_) / 2);
    glance_period_ = std::max<std::int64_t>(16, test_period_ / 16);
  }

  DualReport run() {
    if (limits_.resumed)
      find_up();
    else
      restart();
    std::int64_t next_test = 0, next_glance = glance_period_;
    DualStatus status = DualStatus::kOptimal;
    while (true) {
      const auto* row_i = rows_.row(up_.index);
      const Partner partner =
          row_loops_.find_partner(row_i, Growing{up_.value, diagonal_[up_.index]}, diagonal_.data(),
                       gradient_, down_offset_.data(), curvature_floor_, size_);
      bool stationary = up_.value <= -kBlocked / 2 || partner.gain <= 0.0;
      if (iteration_ >= next_glance) {
        next_glance = iteration_ + glance_period_;
        if (looks_optimal()) next_test = iteration_;
      }
      if (stationary || iteration_ >= next_test) {
        next_test = iteration_ + test_period_;
        measure();
        stationary = stationary || at_rounding_floor();
        if (stationary || gap_reached()) {
          if (confirmed(status)) break;
          next_test = iteration_;
          continue;
        }
      }
      if (limit_reached(status)) break;
      const auto* row_j = rows_.row(partner.index);
      const double step = move_pair(up_.index, partner.index, row_i[partner.index]);
      if (step == 0.0) {
        if (confirmed(status)) break;
        continue;
      }
      fresh_ = false;
      ++iteration_;
      up_ = row_loops_.update_and_find_up(row_i, row_j, step, gradient_, up_offset_.data(), size_);
    }
    // At the end of a budget the caller goes on from here: the updated gradient will do.
    if (!fresh_ && status != DualStatus::kMaxIter) recompute_gradient();
    measure();
    return {status, iteration_, intercept_, objective_, objective_ + gap_, violation()};
  }

 private:
  // Derivatives of the objective when w_k grows or shrinks are F_k - offset - b.
  void refresh_offsets(std::size_t k) {
    const double eps = problem_.epsilon[k];
    up_offset_[k] = w_[k] >= problem_.upper[k] ? kBlocked : (w_[k] >= 0.0 ? eps : -eps);
    down_offset_[k] = w_[k] <= problem_.lower[k] ? -kBlocked : (w_[k] > 0.0 ? eps : -eps);
  }

  void recompute_gradient() {
    rows_.product(w_, gradient_, threads_);
    for (std::size_t k = 0; k < size_; ++k) gradient_[k] = problem_.linear[k] - gradient_[k];
  }

  // A gradient free of the rounding that steps accumulate, and the candidate that follows.
  void restart() {
    recompute_gradient();
    fresh_ = true;
    find_up();
  }

  // A step of zero along any pair only searches.
  void find_up() {
    up_ = loops_.of_double.update_and_find_up(gradient_, gradient_, 0.0, gradient_,
                                              up_offset_.data(), size_);
  }

  // No claim is made on an updated gradient: the first call recomputes it and lets the loop try
  // again, the second one ends the run.
  bool confirmed(DualStatus& status) {
    if (!fresh_) {
      restart();
      return false;
    }
    status = gap_reached() ? DualStatus::kOptimal : DualStatus::kPrecision;
    return true;
  }

  // Below the resolution of double precision steps go on for ever and change nothing: the
  // optimality conditions hold up to the rounding of the gradient itself, or neither the
  // objective, which every step should raise, nor the gap has moved over many passes.
  bool at_rounding_floor() {
    double reach = 0.0, largest = 0.0, target = 0.0;
    for (std::size_t k = 0; k < size_; ++k) {
      const double root = std::sqrt(std::max(diagonal_[k], 0.0));
      largest = std::max(largest, root);
      reach += root * std::fabs(w_[k]);
      target = std::max(target, std::fabs(problem_.linear[k]));
    }
    const double noise = std::numeric_limits<double>::epsilon() * (target + largest * reach);
    if (violation() <= noise) return true;
    const bool raised = objective_ > best_objective_ + 1e-15 * std::fabs(objective_);
    const bool narrowed = gap_ < 0.99 * best_gap_;
    best_objective_ = std::max(best_objective_, objective_);
    best_gap_ = std::min(best_gap_, gap_);
    idle_tests_ = raised || narrowed ? 0 : idle_tests_ + 1;
    return idle_tests_ >= kIdleTests;
  }

  bool limit_reached(DualStatus& status) {
    if (limits_.max_iter >= 0 && iteration_ >= limits_.max_iter) {
      status = DualStatus::kMaxIter;
      return true;
    }
    if (iteration_ % 64 != 0) return false;
    const auto now = Clock::now();
    if (limits_.seconds >= 0.0 &&
        std::chrono::duration<double>(now - start_).count() >= limits_.seconds) {
      status = DualStatus::kDeadline;
      return true;
    }
    if (now - last_poll_ > std::chrono::milliseconds(100)) {
      last_poll_ = now;
      if (limits_.abort && limits_.abort()) {
        status = DualStatus::kInterrupted;
        return true;
      }
    }
    return false;
  }

  // Moves w_i up and w_j down by the same amount, to the maximum along that line: the slope
  // falls linearly and drops by 2 eps where w_i or w_j passes zero. Returns the amount.
  double move_pair(std::size_t i, std::size_t j, double kernel_ij) {
    const double curvature =
        std::max(diagonal_[i] + diagonal_[j] - 2.0 * kernel_ij, curvature_floor_);
    const double start_i = w_[i], start_j = w_[j];
    double slope = (gradient_[i] - up_offset_[i]) - (gradient_[j] - down_offset_[j]);
    while (slope > 0.0) {
      const double stop_i = w_[i] < 0.0 ? 0.0 : problem_.upper[i];
      const double stop_j = w_[j] > 0.0 ? 0.0 : problem_.lower[j];
      const double room_i = stop_i - w_[i], room_j = w_[j] - stop_j;
      const double move = std::min({slope / curvature, room_i, room_j});
      // Land on a kink or a bound exactly, so that later comparisons with it hold.
      w_[i] = move == room_i ? stop_i : w_[i] + move;
      w_[j] = move == room_j ? stop_j : w_[j] - move;
      slope -= curvature * move;
      if (move < room_i && move < room_j) break;
      if (w_[i] == problem_.upper[i] || w_[j] == problem_.lower[j]) break;
      if (w_[i] == 0.0) slope -= 2.0 * problem_.epsilon[i];
      if (w_[j] == 0.0) slope -= 2.0 * problem_.epsilon[j];
    }
    refresh_offsets(i);
    refresh_offsets(j);
    return 0.5 * ((w_[i] - start_i) + (start_j - w_[j]));
  }

  // The offset b that minimises the primal: a convex piecewise linear function of b whose slope
  // starts at -sum(upper) and rises by upper_k at F_k - eps_k and by -lower_k at F_k + eps_k.
  double best_intercept() {
    breaks_.clear();
    double slope = 0.0;
    for (std::size_t k = 0; k < size_; ++k) {
      slope -= problem_.upper[k];
      if (problem_.upper[k] > 0.0)
        breaks_.emplace_back(gradient_[k] - problem_.epsilon[k], problem_.upper[k]);
      if (problem_.lower[k] < 0.0)
        breaks_.emplace_back(gradient_[k] + problem_.epsilon[k], -problem_.lower[k]);
    }
    if (breaks_.empty()) return 0.0;
    // A NaN has no place in an order; the values at this offset are NaNs too, and prove nothing.
    for (const auto& at : breaks_)
      if (std::isnan(at.first)) return at.first;
    std::sort(breaks_.begin(), breaks_.end());
    const double flat = 1e-12 * std::fabs(slope);
    for (std::size_t k = 0; k + 1 < breaks_.size(); ++k) {
      slope += breaks_[k].second;
      if (slope > flat) return breaks_[k].first;
      // A flat bottom: every b of the interval is optimal, the middle is the fair choice.
      if (slope >= -flat) return 0.5 * (breaks_[k].first + breaks_[k + 1].first);
    }
    return breaks_.back().first;
  }

  void measure() {
    intercept_ = best_intercept();
    const Values values = loops_.values_at(problem_, w_, gradient_, intercept_);
    objective_ = values.objective;
    gap_ = values.gap;
  }

  bool small_enough(const Values& values) const {
    return values.gap <= limits_.tol * std::fabs(values.objective + values.gap);
  }

  bool gap_reached() const { return small_enough({objective_, gap_}); }

  // Any offset proves a gap, the best one the smallest.
  bool looks_optimal() const {
    const Extremes ends =
        loops_.extremes_of(gradient_, up_offset_.data(), down_offset_.data(), size_);
    return small_enough(loops_.values_at(problem_, w_, gradient_, 0.5 * (ends.up + ends.down)));
  }

  double violation() const {
    const auto [up, down] =
        loops_.extremes_of(gradient_, up_offset_.data(), down_offset_.data(), size_);
    return up > -kBlocked / 2 && down < kBlocked / 2 ? std::max(0.0, up - down) : 0.0;
  }

  Rows& rows_;
  const Loops& loops_ = loops();
  const RowLoops<typename Rows::Entry>& row_loops_ = row_loops<typename Rows::Entry>();
  const DualProblem& problem_;
  const DualLimits& limits_;
  const std::size_t size_;
  double* w_;
  double* gradient_;
  const int threads_;
  std::vector<double> diagonal_, up_offset_, down_offset_;
  std::vector<std::pair<double, double>> breaks_;
  double curvature_floor_ = 0.0;
  std::int64_t test_period_ = 0, glance_period_ = 0;
  const Clock::time_point start_ = Clock::now();
  Clock::time_point last_poll_ = start_;

  bool fresh_ = false;  // gradient_ computed from scratch, no step since
  std::int64_t iteration_ = 0;
  Candidate up_{-kBlocked, 0};
  double intercept_ = 0.0, objective_ = 0.0, gap_ = 0.0;
  double best_objective_ = -kBlocked, best_gap_ = kBlocked;
  int idle_tests_ = 0;
};

}  // namespace

template <class T>
void DenseRows<T>::product(const double* w, double* out, int threads) const {
  std::vector<std::size_t> support;
  for (std::size_t k = 0; k < size_; ++k)
    if (w[k] != 0.0) support.push_back(k);
  // Parts of the result that stay in the first-level cache, a part for each thread at least; rows
  // are read from memory faster in long pieces.
  constexpr std::size_t kShortest = 512, kLongest = 2048;
  const bool worthwhile = threads > 1 && support.size() * size_ > kWorthThreads;
  const std::size_t share = worthwhile ? size_ / static_cast<std::size_t>(threads) + 1 : size_;
  const std::size_t length = std::clamp(share, kShortest, kLongest);
  const RowLoops<T>& loops = row_loops<T>();
  const std::size_t parts = (size_ + length - 1) / length;
  parallel_for(parts, 1, thread_places(parts, 1, worthwhile ? threads : 1),
               [&](std::size_t, std::size_t first, std::size_t last) noexcept {
                 for (std::size_t part = first; part < last; ++part) {
                   const std::size_t begin = part * length;
                   const std::size_t width = std::min(length, size_ - begin);
                   std::fill_n(out + begin, width, 0.0);
                   for (const std::size_t s : support)
                     loops.add_row(row(s) + begin, w[s], out + begin, width);
                 }
               });
}

template <class Rows>
DualReport solve_dual(Rows& rows, const DualProblem& problem, const DualLimits& limits, double* w,
                      double* gradient, int threads) {
  return DualSolver<Rows>(rows, problem, limits, w, gradient, threads).run();
}

template class DenseRows<float>;
template class DenseRows<double>;
template DualReport solve_dual(DenseRows<float>&, const DualProblem&, const DualLimits&, double*,
                               double*, int);
template DualReport solve_dual(DenseRows<double>&, const DualProblem&, const DualLimits&, double*,
                               double*, int);
template DualReport solve_dual(KernelRows<float>&, const DualProblem&, const DualLimits&, double*,
                               double*, int);
template DualReport solve_dual(KernelRows<double>&, const DualProblem&, const DualLimits&,
                               double*, double*, int);

}  // namespace tessella
