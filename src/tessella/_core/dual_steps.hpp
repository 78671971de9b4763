// Steps of the interior point method for the dual problem of a support vector machine with a given
// kernel matrix, which may be a factor of low rank and a diagonal. The unknowns are nonnegative
// parts alpha of the dual vector with upper bounds, their multipliers zl and zu, and the multiplier
// nu of the sum:
//
//     sign (K w + nu) - cost - zl + zu = 0,   Σ w = 0,   alpha zl = mu,   (upper - alpha) zu = mu
//
// with w the sum of sign * alpha over the parts of each sample. Elimination leaves (K + T) dw = rhs
// with 1 / T the sum of 1 / (zl / alpha + zu / (upper - alpha)) over the parts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "linear_algebra.hpp"

namespace tessella {

// The problem, with f samples and N parts of the dual vector. Nothing is copied of the matrix.
struct DualStepsProblem {
  std::size_t samples, parts;
  // K by rows, or, with rank r > 0, the factor Z of K = ZᵀZ + diag(rest) with its r rows.
  std::size_t rank;
  const double *matrix, *rest;
  const std::int64_t* sample;  // of each part
  const double *sign, *cost, *upper;
};

class DualSteps {
 public:
  struct State {
    std::vector<double> alpha, zl, zu;
    double nu = 0.0;
  };

  DualSteps(const DualStepsProblem& problem, State state, double scale, double to_boundary,
            const LinearAlgebra& lapack);

  // Takes a predictor-corrector step; returns its length, 0 if rounding prevents a step.
  double advance();

  double merit() const { return merit_; }
  const State& state() const { return state_; }

 private:
  using Values = std::vector<double>;
  struct Step {
    Values alpha, w, zl, zu;
    double nu = 0.0;
  };

  void linearise();
  bool factorise();
  bool factorise_low_rank();
  Step newton_step(const Values& rl, const Values& ru);
  double reach(const Step& step) const;
  double complementarity_after(const Step& step, double length) const;
  void kernel_times(const Values& v, Values& out);
  void solve_once(const Values& rhs, Values& out);
  void solve(Values& rhs);

  LinearAlgebra lapack_;
  std::size_t f_, n_, r_;
  const double *matrix_, *rest_;
  double scale_, to_boundary_;
  std::vector<std::size_t> sample_, partner_;
  Values sign_, cost_, upper_;
  bool has_pairs_ = false;
  double widest_ = 0.0;  // of the diagonal of K

  State state_;
  double merit_ = 0.0;

  // At the current state.
  Values w_, scores_, alpha_residual_;
  double sum_residual_ = 0.0, gap_ = 0.0;

  // Of the current Newton equations: the factor of K + T, or of 1 + Z (rest + T)⁻¹ Zᵀ.
  int refinements_ = 0;
  Values above_, theta_, T_, diagonal_, factor_, solved_sum_;
  double sum_of_inverse_ = 0.0;

  // Workspaces.
  Values scaled_, inner_, product_;
};

}  // namespace tessella
