// Steps of the interior point method for the saddle point over a matrix P and some samples of one
// machine. The method is that of InteriorPoint in svm/_interior_point.py, which is for any cone and
// any number of machines; here all of a step is compiled, because a step with few samples consists
// of many operations on small arrays.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "linear_algebra.hpp"

namespace tessella {

// The problem, with f samples, r directions of P and N parts of the dual vector. Matrices of f rows
// are stored by rows, and those of side r are symmetric.
struct JointProblem {
  std::size_t samples, directions, parts;
  // Kernel values are products_ij a_i·P a_j + ratio_i a_i·P l_j + ratio_j l_i·P a_j + box l_i·P l_j.
  // The products are not copied.
  const double *products, *a, *low, *ratio;
  double box;
  // Samples that are held: their part of the sensitivities sym(a gᵀ) + sym(l hᵀ) and of ½ D(w).
  const double *held_g, *held_h, *held_half_gradient;
  const std::int64_t* sample;  // of each part
  const double *sign, *cost, *upper, *curvature;
  double sum_w;  // of the samples that move
  double total;  // sum of the eigenvalues of a feasible P
};

class JointSteps {
 public:
  // Parts of the state: alpha, zl and zu of the parts, P and its slack S, and two multipliers.
  struct State {
    std::vector<double> alpha, zl, zu, P, S;
    double nu = 0.0, xi = 0.0;
  };

  JointSteps(const JointProblem& problem, State state, double scale, double to_boundary,
             const LinearAlgebra& lapack);

  // Takes a predictor-corrector step; returns its length, 0 if rounding prevents a step.
  double advance();

  double merit() const { return merit_; }
  const State& state() const { return state_; }

 private:
  using Values = std::vector<double>;
  struct Step {
    Values alpha, w, X, Z, zl, zu;
    double nu = 0.0, xi = 0.0;
  };

  bool linearise();
  void kernel_matrix();
  void half_gradient();
  bool prepare();
  bool scale_parameter();
  void scaled_sensitivities();
  bool factorise();
  bool border();
  Step newton_step(const Values& rl, const Values& ru, const Values& rX);
  double reach(const Step& step);
  double complementarity_after(const Step& step, double length) const;
  bool move(const Step& step, double length);

  void solve(Values& rhs, std::size_t columns = 1);
  void times(const double* v, double* out);
  void kernel_times(const double* v, double* out);
  void apply(const Values& a, const Values& g, const Values& low, const Values& h, const Values& X,
             double* out);
  void adjoint(const Values& a, const Values& g, const Values& low, const Values& h,
               const double* v, Values& out);
  double room(const Values& change);
  void turned(const Values& thin, Values& out);
  void to_scaled(const Values& D, Values& out);
  void from_scaled(const Values& X, Values& out);
  void multiply(char left, char right, std::size_t rows, std::size_t columns, std::size_t inner,
                const double* A, std::size_t lda, const double* B, std::size_t ldb, double* C,
                std::size_t ldc);
  double below(std::size_t part, double alpha) const;
  double above(std::size_t part, double alpha) const;

  LinearAlgebra lapack_;
  std::size_t f_, r_, n_;
  double box_, sum_w_, total_, scale_, to_boundary_;
  const double* products_;
  Values a_, low_, ratio_, held_g_, held_h_, held_half_;
  std::vector<std::size_t> sample_, partner_;
  Values sign_, cost_, upper_, curvature_;
  std::vector<char> bounded_;
  std::size_t bounds_ = 0;

  State state_;
  double merit_ = 0.0;

  // At the current state.
  Values w_, g_, h_, scores_, half_, K_, root_;
  Values alpha_residual_, cone_residual_;
  double sum_residual_ = 0.0, trace_residual_ = 0.0, gap_ = 0.0;

  // Of the current Newton equations, in scaled variables.
  int refinements_ = 0;
  Values below_, above_, theta_, T_, R_, diagonal_, unit_, residual_;
  Values sa_, sg_, sl_, sh_, H_, trace_row_, solved_border_;
  double small_[4] = {0.0, 0.0, 0.0, 0.0};

  // Workspaces.
  Values thin_, other_thin_, square_, other_square_, small_square_, small_work_, side_, vector_;
  Values lapack_work_;
};

}  // namespace tessella
