// The dual of the soft-margin support vector machine, for a given dense kernel matrix.
//
//   maximise   p'w - sum_i eps_i |w_i| - 1/2 w'Kw     over   lower <= w <= upper,  sum w = 0
//
// with lower <= 0 <= upper. Classification is p = y, eps = 0 and the box [0, C] or [-C, 0];
// regression is p = y and the box [-C, C]. Keeping the kink of |w| in place of two nonnegative
// halves leaves m variables instead of 2m.
//
// Method: sequential minimal optimisation with second-order choice of the pair. The gradient
// F = p - Kw is kept exactly up to date by each step, and one pass over two rows of K both
// applies the step and finds the next candidate. Where it pays, steps are taken in blocks of
// samples, see dual_block.hpp. The stopping test is the duality gap of all samples.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

namespace tessella {

struct DualProblem {
  std::size_t size;
  const double* linear;   // p
  const double* epsilon;  // eps, >= 0
  const double* lower;    // <= 0
  const double* upper;    // >= 0
};

enum class DualStatus : int {
  kOptimal = 0,      // relative gap <= tol
  kMaxIter = 1,      // iteration limit
  kDeadline = 2,     // time limit
  kInterrupted = 3,  // asked to stop from outside
  kPrecision = 4,    // no step changes w any more in double precision
};

struct DualReport {
  DualStatus status;
  std::int64_t iterations;
  double intercept;  // best offset b of f = Kw + b
  double objective;  // dual value, a lower bound of the SVM's optimum
  double primal;     // primal value at (w, b), an upper bound of it
  double violation;  // largest KKT violation, 0 when optimal
};

struct DualLimits {
  double tol;                   // relative gap
  bool resumed;                 // `gradient` is that of w, up to the rounding of earlier steps
  std::int64_t max_iter;        // negative: none
  std::size_t block_size;       // samples of a block, at least 2; zero: none
  double seconds;               // negative: none
  std::function<bool()> abort;  // polled about ten times a second; true stops the solver
};

// Arrays of a solver. Where their memory is reserved, a solver without blocks allocates nothing.
struct DualWorkspace {
  std::vector<double> diagonal, up_offset, down_offset;
  std::vector<std::pair<double, double>> breaks;

  void reserve(std::size_t size) {
    for (std::vector<double>* own : {&diagonal, &up_offset, &down_offset}) own->reserve(size);
    breaks.reserve(2 * size);
  }
};

// The entries of a vector that are not zero.
struct Moves {
  std::vector<std::size_t> rows;
  std::vector<double> amounts;
};

inline Moves nonzeros(const double* w, std::size_t size) {
  Moves moves;
  for (std::size_t k = 0; k < size; ++k) {
    if (w[k] == 0.0) continue;
    moves.rows.push_back(k);
    moves.amounts.push_back(w[k]);
  }
  return moves;
}

// Rows of a matrix that exists as a whole: size x size, symmetric, row-major.
template <class T>
class DenseRows {
 public:
  using Entry = T;
  static constexpr bool kComputed = false;  // found in memory
  DenseRows(const T* kernel, std::size_t size) : kernel_(kernel), size_(size) {}
  const T* row(std::size_t k) const { return kernel_ + k * size_; }
  const T* passing_row(std::size_t k) const { return row(k); }
  double diagonal(std::size_t k) const { return static_cast<double>(row(k)[k]); }
  // out = K w
  void product(const double* w, double* out, int threads) const;
  // out += K times the vector of the moves
  void add_rows(const Moves& moves, double* out, int threads) const;
  // out[i, j] = K[rows[i], columns[j]]
  void entries(const std::size_t* rows, std::size_t count, const std::size_t* columns,
               std::size_t width, T* out, std::size_t stride, int threads) const;

 private:
  const T* kernel_;
  std::size_t size_;
};

// `w` is a feasible start on entry and the answer on exit, feasible whatever the status;
// `gradient` receives F = p - Kw of the answer. `Rows` is DenseRows or KernelRows.
template <class Rows>
DualReport solve_dual(Rows& rows, const DualProblem& problem, const DualLimits& limits, double* w,
                      double* gradient, int threads);

// Rows of the kernel matrix of a small machine, each computed when it is first asked for and kept.
class RowsOnce {
 public:
  using Entry = double;
  static constexpr bool kComputed = false;  // once: pair steps then find them in memory
  virtual ~RowsOnce() = default;

  const double* row(std::size_t k) const {
    if (!known_[k]) {
      compute(k, values_.data() + k * size_);
      known_[k] = 1;
    }
    return values_.data() + k * size_;
  }
  const double* passing_row(std::size_t k) const { return row(k); }
  virtual double diagonal(std::size_t k) const = 0;
  void product(const double* w, double* out, int threads) const;
  void add_rows(const Moves& moves, double* out, int threads) const;
  void entries(const std::size_t* rows, std::size_t count, const std::size_t* columns,
               std::size_t width, double* out, std::size_t stride, int threads) const;

 protected:
  void reserve(std::size_t most) {
    values_.resize(most * most);
    known_.resize(most);
  }
  void begin(std::size_t size) {
    size_ = size;
    std::fill_n(known_.begin(), size, 0);
  }
  virtual void compute(std::size_t k, double* out) const = 0;

  std::size_t size_ = 0;

 private:
  mutable std::vector<double> values_;
  mutable std::vector<char> known_;
};

// The same by pair steps alone, by one thread and within a reserved workspace.
DualReport solve_small_dual(RowsOnce& rows, const DualProblem& problem, const DualLimits& limits,
                            double* w, double* gradient, DualWorkspace& workspace);

}  // namespace tessella
