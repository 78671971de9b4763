#include "svm_dual.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "dual_block.hpp"
#include "kernel_rows.hpp"
#include "loops.hpp"
#include "pair_steps.hpp"
#include "threads.hpp"

namespace tessella {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kIdleTests = 500;      // tests without progress after which rounding is to blame
constexpr std::size_t kWorthThreads = 1 << 21;  // entries of K below which one thread is faster
constexpr double kBlockAccuracy = 0.1;  // violation that is left in a block, relative to that before
constexpr std::int64_t kMostBlockSteps = 10;  // steps of a round for each sample of its block

template <class Rows>
class DualSolver {
 public:
  DualSolver(Rows& rows, const DualProblem& problem, const DualLimits& limits, double* w,
             double* gradient, int threads, DualWorkspace& workspace)
      : rows_(rows),
        problem_(problem),
        limits_(limits),
        size_(problem.size),
        w_(w),
        gradient_(gradient),
        threads_(threads),
        diagonal_(workspace.diagonal),
        up_offset_(workspace.up_offset),
        down_offset_(workspace.down_offset),
        breaks_(workspace.breaks) {
    for (std::vector<double>* own : {&diagonal_, &up_offset_, &down_offset_}) own->resize(size_);
    samples_ = {size_, problem.epsilon, problem.lower, problem.upper, diagonal_.data(), w_,
                gradient_, up_offset_.data(), down_offset_.data(), 0.0};
    double largest = 0.0;
    for (std::size_t k = 0; k < size_; ++k) {
      diagonal_[k] = rows_.diagonal(k);
      largest = std::max(largest, diagonal_[k]);
      warm_ = warm_ || w_[k] != 0.0;
      refresh_offsets(samples_, k);
    }
    // A curvature of zero (duplicate rows) means "go to the bound"; the floor keeps it finite.
    samples_.curvature_floor = std::max(1e-14 * largest, std::numeric_limits<double>::min());
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
    in_blocks_ = blocks_pay();
    // A warm start may be optimal already. At zero all breaks would have to be sorted to see it.
    std::int64_t next_test = warm_ ? 0 : test_period_, next_glance = warm_ ? glance_period_ : 0;
    DualStatus status = DualStatus::kOptimal;
    while (true) {
      const auto* row_i = in_blocks_ ? rows_.passing_row(up_.index) : rows_.row(up_.index);
      const Partner partner =
          row_loops_.find_partner(row_i, Growing{up_.value, diagonal_[up_.index]}, diagonal_.data(),
                       gradient_, down_offset_.data(), samples_.curvature_floor, size_);
      bool stationary = up_.value <= -kBlocked / 2 || partner.gain <= 0.0;
      if (iteration_ >= next_glance) {
        next_glance = iteration_ + glance_period_;
        if (looks_optimal()) next_test = iteration_;
        in_blocks_ = blocks_pay();
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
      if (in_blocks_ && block_round(partner.index)) continue;
      const auto* row_j = rows_.row(partner.index);
      const double step = move_pair(samples_, up_.index, partner.index, row_i[partner.index]);
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
  void recompute_gradient() {
    rows_.product(w_, gradient_, threads_);
    for (std::size_t k = 0; k < size_; ++k) gradient_[k] = problem_.linear[k] - gradient_[k];
  }

  // Rows that have to be computed are computed for many steps at once. Rows in memory are read as
  // fast by pair steps of the whole problem, unless all samples that move are members of a block
  // and have been met several times.
  bool blocks_pay() const {
    if (limits_.block_size == 0 || Rows::kComputed) return limits_.block_size > 0;
    std::int64_t support = 0;
    for (std::size_t k = 0; k < size_; ++k) support += w_[k] != 0.0 ? 1 : 0;
    const bool met_again = warm_ || (support > 0 && 2 * support <= iteration_);
    return met_again && support <= static_cast<std::int64_t>(limits_.block_size);
  }

  // Pair steps within a block that contains the best pair. Returns whether there were any.
  bool block_round(std::size_t partner) {
    if (!block_) block_ = std::make_unique<Block<typename Rows::Entry>>(limits_.block_size, size_);
    const Extremes ends = extremes();
    block_->choose(rows_, samples_, ends, up_.index, partner, threads_);
    std::int64_t most = kMostBlockSteps * static_cast<std::int64_t>(limits_.block_size);
    if (limits_.max_iter >= 0) most = std::min(most, limits_.max_iter - iteration_);
    const std::int64_t steps = block_->solve(kBlockAccuracy * (ends.up - ends.down), most);
    if (steps == 0) return false;
    rows_.add_rows(block_->write(samples_), gradient_, threads_);
    iteration_ += steps;
    fresh_ = false;
    find_up();
    return true;
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
    // A gradient computed afresh may raise the objective by a rounding error, again and again.
    exhausted_ = !narrowed && (exhausted_ || idle_tests_ >= kIdleTests);
    return exhausted_;
  }

  bool limit_reached(DualStatus& status) {
    if (limits_.max_iter >= 0 && iteration_ >= limits_.max_iter) {
      status = DualStatus::kMaxIter;
      return true;
    }
    if (iteration_ < next_look_) return false;
    next_look_ = iteration_ + 64;
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

  // The offset b that minimises the primal: a convex piecewise linear function of b whose slope
  // starts at -sum(upper) and rises by upper_k at F_k - eps_k and by -lower_k at F_k + eps_k.
  // Because w sums to zero, the primal does not fall above the largest derivative of the objective
  // when a sample grows, nor below the smallest when one shrinks: only the breaks in between, which
  // are few near the optimum, have to be sorted.
  double best_intercept() {
    constexpr double kInfinite = std::numeric_limits<double>::infinity();
    const Extremes ends = extremes();
    const bool between = ends.down < ends.up;
    const double low = between ? ends.down : -kInfinite, high = between ? ends.up : kInfinite;
    double slope = 0.0, total = 0.0, before = -kInfinite, after = kInfinite;
    breaks_.clear();
    const auto add_break = [&](double at, double rise) {
      if (rise <= 0.0) return;
      if (at < low) {
        before = std::max(before, at);
        slope += rise;
      } else if (at > high) {
        after = std::min(after, at);
      } else {
        breaks_.emplace_back(at, rise);
      }
    };
    for (std::size_t k = 0; k < size_; ++k) {
      total += problem_.upper[k];
      add_break(gradient_[k] - problem_.epsilon[k], problem_.upper[k]);
      add_break(gradient_[k] + problem_.epsilon[k], -problem_.lower[k]);
    }
    // A NaN has no place in an order; the values at this offset are NaNs too, and prove nothing.
    for (const auto& at : breaks_)
      if (std::isnan(at.first)) return at.first;
    std::sort(breaks_.begin(), breaks_.end());
    slope -= total;
    const double flat = 1e-12 * total;
    double last = before;
    for (const auto& [at, rise] : breaks_) {
      if (slope >= -flat && last > -kInfinite) return slope > flat ? last : 0.5 * (last + at);
      slope += rise;
      last = at;
    }
    // A flat bottom: every b of the interval is optimal, the middle is the fair choice.
    if (slope <= flat && last > -kInfinite && after < kInfinite) return 0.5 * (last + after);
    if (last > -kInfinite) return last;
    return after < kInfinite ? after : 0.0;
  }

  void measure() {
    intercept_ = best_intercept();
    const Values values = loops_.values_at(problem_, w_, gradient_, intercept_);
    objective_ = values.objective;
    gap_ = values.gap;
  }

  Extremes extremes() const {
    return loops_.extremes_of(gradient_, up_offset_.data(), down_offset_.data(), size_);
  }

  bool small_enough(const Values& values) const {
    return values.gap <= limits_.tol * std::fabs(values.objective + values.gap);
  }

  bool gap_reached() const { return small_enough({objective_, gap_}); }

  // Any offset proves a gap, the best one the smallest.
  bool looks_optimal() const {
    const Extremes ends = extremes();
    return small_enough(loops_.values_at(problem_, w_, gradient_, 0.5 * (ends.up + ends.down)));
  }

  double violation() const {
    const auto [up, down] = extremes();
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
  std::vector<double>&diagonal_, &up_offset_, &down_offset_;
  std::vector<std::pair<double, double>>& breaks_;
  Samples samples_{};
  std::int64_t test_period_ = 0, glance_period_ = 0;
  std::unique_ptr<Block<typename Rows::Entry>> block_;
  const Clock::time_point start_ = Clock::now();
  Clock::time_point last_poll_ = start_;

  bool warm_ = false;       // steps have been taken before this run
  bool in_blocks_ = false;  // the next steps are those of a block
  bool fresh_ = false;      // gradient_ computed from scratch, no step since
  std::int64_t iteration_ = 0, next_look_ = 0;
  Candidate up_{-kBlocked, 0};
  double intercept_ = 0.0, objective_ = 0.0, gap_ = 0.0;
  double best_objective_ = -kBlocked, best_gap_ = kBlocked;
  int idle_tests_ = 0;
  bool exhausted_ = false;
};

}  // namespace

template <class T>
void DenseRows<T>::product(const double* w, double* out, int threads) const {
  std::fill_n(out, size_, 0.0);
  add_rows(nonzeros(w, size_), out, threads);
}

template <class T>
void DenseRows<T>::add_rows(const Moves& moves, double* out, int threads) const {
  // Parts of the result that stay in the first-level cache, a part for each thread at least; rows
  // are read from memory faster in long pieces.
  constexpr std::size_t kShortest = 512, kLongest = 2048;
  const bool worthwhile = threads > 1 && moves.rows.size() * size_ > kWorthThreads;
  const std::size_t share = worthwhile ? size_ / static_cast<std::size_t>(threads) + 1 : size_;
  const std::size_t length = std::clamp(share, kShortest, kLongest);
  const RowLoops<T>& loops = row_loops<T>();
  const std::size_t parts = (size_ + length - 1) / length;
  parallel_for(parts, 1, thread_places(parts, 1, worthwhile ? threads : 1),
               [&](std::size_t, std::size_t first, std::size_t last) noexcept {
                 for (std::size_t part = first; part < last; ++part) {
                   const std::size_t begin = part * length;
                   const std::size_t width = std::min(length, size_ - begin);
                   for (std::size_t s = 0; s < moves.rows.size(); ++s)
                     loops.add_row(row(moves.rows[s]) + begin, moves.amounts[s],
                                   out + begin, width);
                 }
               });
}

template <class T>
void DenseRows<T>::entries(const std::size_t* rows, std::size_t count, const std::size_t* columns,
                           std::size_t width, T* out, std::size_t stride, int) const {
  // A row is read from its begin to its end, which processors foresee.
  std::vector<std::pair<std::size_t, std::size_t>> order(width);
  for (std::size_t j = 0; j < width; ++j) order[j] = {columns[j], j};
  std::sort(order.begin(), order.end());
  for (std::size_t i = 0; i < count; ++i) {
    const T* own = row(rows[i]);
    for (const auto& [column, j] : order) out[i * stride + j] = own[column];
  }
}

void RowsOnce::product(const double* w, double* out, int) const {
  std::fill_n(out, size_, 0.0);
  for (std::size_t k = 0; k < size_; ++k)
    if (w[k] != 0.0) row_loops<double>().add_row(row(k), w[k], out, size_);
}

void RowsOnce::add_rows(const Moves& moves, double* out, int) const {
  for (std::size_t s = 0; s < moves.rows.size(); ++s)
    row_loops<double>().add_row(row(moves.rows[s]), moves.amounts[s], out, size_);
}

void RowsOnce::entries(const std::size_t* rows, std::size_t count, const std::size_t* columns,
                       std::size_t width, double* out, std::size_t stride, int) const {
  for (std::size_t i = 0; i < count; ++i) {
    const double* own = row(rows[i]);
    for (std::size_t j = 0; j < width; ++j) out[i * stride + j] = own[columns[j]];
  }
}

template <class Rows>
DualReport solve_dual(Rows& rows, const DualProblem& problem, const DualLimits& limits, double* w,
                      double* gradient, int threads) {
  DualWorkspace workspace;
  return DualSolver<Rows>(rows, problem, limits, w, gradient, threads, workspace).run();
}

DualReport solve_small_dual(RowsOnce& rows, const DualProblem& problem, const DualLimits& limits,
                            double* w, double* gradient, DualWorkspace& workspace) {
  return DualSolver<RowsOnce>(rows, problem, limits, w, gradient, 1, workspace).run();
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
