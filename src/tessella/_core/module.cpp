// Bindings of the compiled core. Checks that shapes fit; everything else is checked in Python.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <exception>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "dual_steps.hpp"
#include "joint_steps.hpp"
#include "kernel_rows.hpp"
#include "loops.hpp"
#include "machines.hpp"
#include "max_product.hpp"
#include "pair_sums.hpp"
#include "sensitivity_sums.hpp"
#include "svm_dual.hpp"
#include "tridiagonal.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

using Vector = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using PointOrNone = std::optional<Vector>;
using Numbers = nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using MutableVector = nb::ndarray<double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Matrix = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Tensor = nb::ndarray<const double, nb::ndim<3>, nb::c_contig, nb::device::cpu>;
using MutableMatrix = nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <class T>
using Kernel = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <class T>
using Tile = nb::ndarray<T, nb::ndim<2>, nb::device::cpu>;

// For the time of a computation other threads have the interpreter. What the C++ library keeps for
// the exceptions of a thread is allocated when it is first asked for, and without memory for it
// the process ends: it is asked for here, before the computation uses memory up.
struct Computing {
  const int exceptions = std::uncaught_exceptions();
  nb::gil_scoped_release release;
};

template <class T>
void max_product(const Matrix& left, const Matrix& right, Tile<T> out, int threads) {
  if (left.shape(1) != right.shape(1) || out.shape(0) != left.shape(0) ||
      out.shape(1) != right.shape(0) || (out.shape(1) > 1 && out.stride(1) != 1))
    throw std::invalid_argument("max_product: shapes or strides do not fit");
  const Computing computing;
  tessella::max_product<T>(left.data(), left.shape(0), right.data(), right.shape(0),
                           left.shape(1), out.data(), static_cast<std::size_t>(out.stride(0)),
                           threads);
}

void max_product_apply(const Matrix& left, const Matrix& right, const Matrix& weights,
                       MutableMatrix out, int threads) {
  if (left.shape(1) != right.shape(1) || weights.shape(1) != right.shape(0) ||
      out.shape(0) != left.shape(0) || out.shape(1) != weights.shape(0))
    throw std::invalid_argument("max_product_apply: shapes do not fit");
  const Computing computing;
  tessella::max_product_apply(left.data(), left.shape(0), right.data(), right.shape(0),
                              left.shape(1), weights.data(), weights.shape(0), out.data(),
                              threads);
}

void sum_sensitivities(const Tensor& pairs, const Matrix& ah, const Matrix& gh, const Matrix& lh,
                       const Matrix& hh, const Numbers& starts, std::size_t first,
                       MutableMatrix out, int threads) {
  const std::size_t count = out.shape(0), groups = hh.shape(0), rows = pairs.shape(1) / 3;
  bool fits = out.shape(1) == count && first + rows <= count && pairs.shape(0) == 3 &&
              pairs.shape(1) == 3 * rows && pairs.shape(2) == count - first &&
              hh.shape(1) == groups && starts.shape(0) == groups + 1;
  for (const Matrix* own : {&ah, &gh, &lh})
    fits = fits && own->shape(0) == groups && own->shape(1) == count;
  if (!fits) throw std::invalid_argument("sum_sensitivities: shapes do not fit");
  const std::int64_t* start = starts.data();
  if (start[0] != 0 || start[groups] != static_cast<std::int64_t>(count) ||
      !std::is_sorted(start, start + groups + 1))
    throw std::invalid_argument("sum_sensitivities: the groups do not fit");
  const tessella::SensitivityProducts products{count,     first,     rows,      groups,   start,
                                               pairs.data(), ah.data(), gh.data(), lh.data(),
                                               hh.data()};
  const Computing computing;
  tessella::sum_sensitivities(products, out.data(), threads);
}

void absolute_pair_sums(const Matrix& weights, const Matrix& columns, MutableVector out,
                        int threads) {
  const std::size_t count = weights.shape(0);
  if (weights.shape(1) != count || columns.shape(1) != count ||
      out.shape(0) != columns.shape(0))
    throw std::invalid_argument("absolute_pair_sums: shapes do not fit");
  const Computing computing;
  tessella::absolute_pair_sums(weights.data(), columns.data(), count, columns.shape(0),
                               out.data(), threads);
}

void tridiagonal_forms(const Matrix& ratios, const Matrix& inverses, const Matrix& columns,
                       MutableMatrix out, int threads) {
  const std::size_t systems = ratios.shape(0), size = ratios.shape(1);
  if (inverses.shape(0) != systems || inverses.shape(1) != size || columns.shape(0) != size ||
      out.shape(0) != systems || out.shape(1) != columns.shape(1))
    throw std::invalid_argument("tridiagonal_forms: shapes do not fit");
  const Computing computing;
  tessella::tridiagonal_forms({ratios.data(), inverses.data(), systems, size}, columns.data(),
                              columns.shape(1), out.data(), threads);
}

tessella::KernelSide kernel_side(const Matrix& room, const Matrix& high, const Matrix& first,
                                 const Matrix& second) {
  const std::size_t count = room.shape(0);
  if (high.shape(0) != count || first.shape(0) != count || second.shape(0) != count ||
      first.shape(1) != second.shape(1))
    throw std::invalid_argument("kernel_matrix: shapes do not fit");
  return {count, {room.data(), high.data(), first.data(), second.data()}};
}

template <class T>
void kernel_matrix(const Matrix& room_left, const Matrix& high_left, const Matrix& first_left,
                   const Matrix& second_left, const Matrix& room_right, const Matrix& high_right,
                   const Matrix& first_right, const Matrix& second_right, Tile<T> out,
                   int threads) {
  const auto left = kernel_side(room_left, high_left, first_left, second_left);
  const auto right = kernel_side(room_right, high_right, first_right, second_right);
  if (room_left.shape(1) != room_right.shape(1) || high_left.shape(1) != high_right.shape(1) ||
      first_left.shape(1) != first_right.shape(1) || out.shape(0) != left.count ||
      out.shape(1) != right.count || (out.shape(1) > 1 && out.stride(1) != 1))
    throw std::invalid_argument("kernel_matrix: shapes or strides do not fit");
  const Computing computing;
  const tessella::FactorSizes sizes{room_left.shape(1), high_left.shape(1), first_left.shape(1)};
  tessella::kernel_matrix<T>(left, right, sizes, out.data(),
                             static_cast<std::size_t>(out.stride(0)), threads);
}

// True when Ctrl-C was pressed. The pending KeyboardInterrupt is cleared: the solver returns its
// best answer with a status, and the caller decides what to raise. What other signal handlers
// raise is no business of the solver: it is passed on as it is.
bool interrupted() {
  nb::gil_scoped_acquire acquire;
  if (PyErr_CheckSignals() == 0) return false;
  if (!PyErr_ExceptionMatches(PyExc_KeyboardInterrupt)) throw nb::python_error();
  PyErr_Clear();
  return true;
}

template <class Rows>
nb::tuple solve_dual(Rows& rows, std::size_t size, const Vector& linear, const Vector& epsilon,
                     const Vector& lower, const Vector& upper, MutableVector w,
                     MutableVector gradient, double tol, const PointOrNone& gradient_at,
                     std::int64_t max_iter, std::size_t block_size, double seconds, int threads) {
  for (const std::size_t length : {linear.shape(0), epsilon.shape(0), lower.shape(0),
                                   upper.shape(0), w.shape(0), gradient.shape(0)})
    if (length != size) throw std::invalid_argument("solve_dual: lengths do not fit");
  if (gradient_at && gradient_at->shape(0) != size)
    throw std::invalid_argument("solve_dual: lengths do not fit");
  if (size == 0) throw std::invalid_argument("solve_dual: no samples");
  if (block_size == 1 || block_size > size)
    throw std::invalid_argument("solve_dual: a block has 2 samples at least, and not more than all");
  const tessella::DualProblem problem{size, linear.data(), epsilon.data(), lower.data(),
                                      upper.data()};
  const tessella::DualLimits limits{tol, gradient_at ? gradient_at->data() : nullptr, max_iter,
                                    block_size, seconds, interrupted};
  tessella::DualReport report;
  {
    const Computing computing;
    report = tessella::solve_dual(rows, problem, limits, w.data(), gradient.data(), threads);
  }
  return nb::make_tuple(static_cast<int>(report.status), report.iterations, report.intercept,
                        report.objective, report.primal, report.violation);
}

using MutableNumbers = nb::ndarray<std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

tessella::Machines machines_of(const Matrix& room, const Matrix& high, const Matrix& first,
                               const Matrix& second, const Numbers& starts,
                               const Numbers& index) {
  const tessella::KernelSide rows = kernel_side(room, high, first, second);
  const std::size_t samples = index.shape(0);
  if (starts.shape(0) < 2 || starts.data()[0] != 0 ||
      starts.data()[starts.shape(0) - 1] != static_cast<std::int64_t>(samples) ||
      !std::is_sorted(starts.data(), starts.data() + starts.shape(0)))
    throw std::invalid_argument("machines: shapes do not fit");
  for (std::size_t k = 0; k < samples; ++k)
    if (index.data()[k] < 0 || static_cast<std::size_t>(index.data()[k]) >= rows.count)
      throw std::invalid_argument("machines: there is no such row");
  return {rows, {room.shape(1), high.shape(1), first.shape(1)}, starts.shape(0) - 1,
          starts.data(), index.data()};
}

// Machines are solved some at a time, so that signals and the clock are looked at in between.
// Returns the number of machines that were tried and the reason to stop.
nb::tuple solve_machines(const Matrix& room, const Matrix& high, const Matrix& first,
                         const Matrix& second, const Numbers& starts, const Numbers& index,
                         const Vector& linear, const Vector& epsilon, const Vector& lower,
                         const Vector& upper, MutableVector w, MutableVector gradient, double tol,
                         std::int64_t steps_per_sample,
                         double seconds, int threads, MutableNumbers steps,
                         MutableVector intercepts, MutableVector objectives,
                         MutableNumbers finished) {
  using Clock = std::chrono::steady_clock;
  constexpr double kBatch = 2e8;  // operations between two looks
  const auto machines = machines_of(room, high, first, second, starts, index);
  const std::size_t samples = index.shape(0);
  for (const std::size_t length : {linear.shape(0), epsilon.shape(0), lower.shape(0),
                                   upper.shape(0), w.shape(0), gradient.shape(0)})
    if (length != samples) throw std::invalid_argument("solve_machines: lengths do not fit");
  for (const std::size_t length : {steps.shape(0), intercepts.shape(0), objectives.shape(0),
                                   finished.shape(0)})
    if (length != machines.count)
      throw std::invalid_argument("solve_machines: lengths do not fit");
  const tessella::DualProblem problem{samples, linear.data(), epsilon.data(), lower.data(),
                                      upper.data()};
  std::vector<tessella::DualReport> reports(machines.count);
  const auto start = Clock::now();
  auto status = tessella::DualStatus::kOptimal;
  std::size_t done = 0;
  while (done < machines.count) {
    std::size_t last = done;
    for (double cost = 0.0; last < machines.count && cost < kBatch; ++last) {
      const auto size = static_cast<double>(machines.size(last));
      const auto entry = static_cast<double>(room.shape(1) + high.shape(1) + 2 * first.shape(1));
      cost += size * size * (entry + 3.0 * static_cast<double>(steps_per_sample));
    }
    {
      const Computing computing;
      tessella::solve_machines(machines, problem, {done, last, tol, steps_per_sample}, w.data(),
                               gradient.data(), reports.data(), threads);
    }
    for (; done < last; ++done) {
      const tessella::DualReport& report = reports[done];
      steps.data()[done] = report.iterations;
      intercepts.data()[done] = report.intercept;
      objectives.data()[done] = report.objective;
      finished.data()[done] = report.status == tessella::DualStatus::kOptimal;
    }
    const double passed = std::chrono::duration<double>(Clock::now() - start).count();
    if (interrupted()) {
      status = tessella::DualStatus::kInterrupted;
      break;
    }
    if (seconds >= 0.0 && passed >= seconds) {
      status = tessella::DualStatus::kDeadline;
      break;
    }
  }
  return nb::make_tuple(done, static_cast<int>(status));
}

void machine_matrices(const Matrix& room, const Matrix& high, const Matrix& first,
                      const Matrix& second, const Numbers& starts, const Numbers& index,
                      MutableVector out, int threads) {
  const auto machines = machines_of(room, high, first, second, starts, index);
  std::size_t entries = 0;
  for (std::size_t c = 0; c < machines.count; ++c) entries += machines.size(c) * machines.size(c);
  if (out.shape(0) != entries)
    throw std::invalid_argument("machine_matrices: lengths do not fit");
  const Computing computing;
  tessella::machine_matrices(machines, out.data(), threads);
}

void push_machines(const Matrix& room, const Numbers& starts, const Numbers& index,
                   const Matrix& weights, MutableMatrix out, int threads) {
  const tessella::Machines machines{{room.shape(0), {room.data(), nullptr, nullptr, nullptr}},
                                    {room.shape(1), 0, 0},
                                    starts.shape(0) - 1,
                                    starts.data(),
                                    index.data()};
  if (starts.shape(0) < 2 || weights.shape(0) != index.shape(0) ||
      out.shape(0) != index.shape(0) || out.shape(1) != weights.shape(1))
    throw std::invalid_argument("push_machines: shapes do not fit");
  for (std::size_t k = 0; k < index.shape(0); ++k)
    if (index.data()[k] < 0 || static_cast<std::size_t>(index.data()[k]) >= room.shape(0))
      throw std::invalid_argument("push_machines: there is no such row");
  const Computing computing;
  tessella::push_machines(machines, weights.data(), weights.shape(1), out.data(), threads);
}

template <class T>
nb::tuple solve_dense(const Kernel<T>& kernel, const Vector& linear, const Vector& epsilon,
                      const Vector& lower, const Vector& upper, MutableVector w,
                      MutableVector gradient, double tol, const PointOrNone& gradient_at,
                     std::int64_t max_iter,
                      std::size_t block_size, double seconds, int threads) {
  if (kernel.shape(0) != kernel.shape(1))
    throw std::invalid_argument("solve_dual: the kernel matrix is not square");
  tessella::DenseRows<T> rows(kernel.data(), kernel.shape(0));
  return solve_dual(rows, kernel.shape(0), linear, epsilon, lower, upper, w, gradient, tol,
                    gradient_at, max_iter, block_size, seconds, threads);
}

template <class T>
nb::tuple solve_rows(tessella::KernelRows<T>& rows, const Vector& linear, const Vector& epsilon,
                     const Vector& lower, const Vector& upper, MutableVector w,
                     MutableVector gradient, double tol, const PointOrNone& gradient_at,
                     std::int64_t max_iter, std::size_t block_size, double seconds, int threads) {
  return solve_dual(rows, rows.size(), linear, epsilon, lower, upper, w, gradient, tol,
                    gradient_at, max_iter, block_size, seconds, threads);
}

template <class T>
void reset_rows(tessella::KernelRows<T>& rows, const Matrix& room, const Matrix& high,
                const Matrix& first, const Matrix& second, std::size_t capacity) {
  const auto side = kernel_side(room, high, first, second);
  rows.reset(side.factors, side.count, {room.shape(1), high.shape(1), first.shape(1)}, capacity);
}

template <class T>
void bind_rows(nb::module_& m, const char* name) {
  using Rows = tessella::KernelRows<T>;
  nb::class_<Rows>(m, name, "Rows of a kernel matrix in product form, computed on demand.")
      .def(nb::init<>())
      .def("reset", &reset_rows<T>, "room"_a, "high"_a, "first"_a, "second"_a, "capacity"_a,
           "A new kernel; at most `capacity` of its rows are kept.")
      .def("product", [](const Rows& rows, const Vector& w, MutableVector out, int threads) {
        if (w.shape(0) != rows.size() || out.shape(0) != rows.size())
          throw std::invalid_argument("product: lengths do not fit");
        const Computing computing;
        rows.product(w.data(), out.data(), threads);
      }, "w"_a, "out"_a.noconvert(), "threads"_a, "out = K @ w.");
}

// A routine of BLAS or LAPACK from the table of SciPy, whose capsules are named by the types of the
// arguments. Libraries with integers of 64 bits are refused.
template <class Function>
Function routine(const nb::dict& table, const char* name) {
  const nb::object capsule = table[name];
  const char* types = PyCapsule_GetName(capsule.ptr());
  if (types == nullptr || std::string(types).find("int *") == std::string::npos) {
    PyErr_Clear();
    throw std::invalid_argument(std::string("the routine ") + name + " has unknown arguments");
  }
  return reinterpret_cast<Function>(PyCapsule_GetPointer(capsule.ptr(), types));
}

tessella::LinearAlgebra linear_algebra(const nb::dict& blas, const nb::dict& lapack) {
  using Table = tessella::LinearAlgebra;
  Table found;
  found.dgemm = routine<Table::Product>(blas, "dgemm");
  found.dgemv = routine<Table::TimesVector>(blas, "dgemv");
  found.dsyrk = routine<Table::RankUpdate>(blas, "dsyrk");
  found.dsyr2k = routine<Table::RankTwoUpdate>(blas, "dsyr2k");
  found.dsymv = routine<Table::SymmetricTimes>(blas, "dsymv");
  found.dpotrf = routine<Table::Cholesky>(lapack, "dpotrf");
  found.dpotrs = routine<Table::CholeskySolve>(lapack, "dpotrs");
  found.dsyev = routine<Table::Eigenvalues>(lapack, "dsyev");
  found.dgesvd = routine<Table::SingularValues>(lapack, "dgesvd");
  return found;
}

std::vector<double> values_of(const Vector& given) {
  return {given.data(), given.data() + given.shape(0)};
}

std::vector<double> values_of(const Matrix& given) {
  return {given.data(), given.data() + given.shape(0) * given.shape(1)};
}

// The steps, and the array that they read.
struct KeptJointSteps {
  Matrix products;
  tessella::JointSteps steps;
};

void make_joint_steps(KeptJointSteps* kept, const Matrix& products, const Matrix& a,
                      const Matrix& low, const Vector& ratio, double box, const Matrix& held_g,
                      const Vector& held_h, const Matrix& held_half_gradient,
                      const Numbers& sample, const Vector& sign, const Vector& cost,
                      const Vector& upper, const Vector& curvature, double sum_w, double total,
                      const Vector& alpha, const Vector& zl, const Vector& zu, const Matrix& P,
                      const Matrix& S, double nu, double xi, double scale, double to_boundary,
                      const nb::dict& blas, const nb::dict& lapack) {
  const std::size_t f = a.shape(0), r = a.shape(1), n = sample.shape(0);
  const auto fits = [](const Matrix& own, std::size_t rows, std::size_t columns) {
    return own.shape(0) == rows && own.shape(1) == columns;
  };
  if (!(fits(products, f, f) && fits(low, f, r) && ratio.shape(0) == f && fits(held_g, f, r) &&
        held_h.shape(0) == r && fits(held_half_gradient, r, r) && fits(P, r, r) && fits(S, r, r)))
    throw std::invalid_argument("JointSteps: shapes do not fit");
  for (const Vector* own : {&sign, &cost, &upper, &curvature, &alpha, &zl, &zu})
    if (own->shape(0) != n) throw std::invalid_argument("JointSteps: shapes do not fit");
  for (std::size_t k = 0; k < n; ++k)
    if (sample.data()[k] < 0 || static_cast<std::size_t>(sample.data()[k]) >= f)
      throw std::invalid_argument("JointSteps: there is no such sample");
  if (f == 0 || r == 0 || n == 0) throw std::invalid_argument("JointSteps: nothing moves");
  const tessella::LinearAlgebra routines = linear_algebra(blas, lapack);
  tessella::JointProblem problem{f, r, n, products.data(), a.data(), low.data(), ratio.data(), box,
                                 held_g.data(), held_h.data(), held_half_gradient.data(),
                                 sample.data(), sign.data(), cost.data(), upper.data(),
                                 curvature.data(), sum_w, total};
  tessella::JointSteps::State state{values_of(alpha), values_of(zl), values_of(zu), values_of(P),
                                    values_of(S), nu, xi};
  const Computing computing;
  new (kept) KeptJointSteps{
      products, tessella::JointSteps(problem, std::move(state), scale, to_boundary, routines)};
}

template <class Array>
void write(const std::vector<double>& values, Array& out) {
  if (out.size() != values.size()) throw std::invalid_argument("state: sizes do not fit");
  std::copy(values.begin(), values.end(), out.data());
}

nb::tuple read_joint_steps(const KeptJointSteps& kept, MutableVector alpha, MutableVector zl,
                           MutableVector zu, MutableMatrix P, MutableMatrix S) {
  const auto& state = kept.steps.state();
  write(state.alpha, alpha);
  write(state.zl, zl);
  write(state.zu, zu);
  write(state.P, P);
  write(state.S, S);
  return nb::make_tuple(state.nu, state.xi);
}

void bind_joint_steps(nb::module_& m) {
  nb::class_<KeptJointSteps>(m, "JointSteps",
                             "Interior point steps over a matrix P and some samples.")
      .def("__init__", &make_joint_steps, "products"_a.noconvert(), "a"_a, "low"_a, "ratio"_a, "box"_a,
           "held_g"_a, "held_h"_a, "held_half_gradient"_a, "sample"_a, "sign"_a, "cost"_a,
           "upper"_a, "curvature"_a, "sum_w"_a, "total"_a, "alpha"_a, "zl"_a, "zu"_a, "P"_a, "S"_a,
           "nu"_a, "xi"_a, "scale"_a, "to_boundary"_a, "blas"_a, "lapack"_a)
      .def("advance", [](KeptJointSteps& kept) {
        const Computing computing;
        return kept.steps.advance();
      }, "Takes a step; returns its length, 0 if rounding prevents a step.")
      .def_prop_ro("merit", [](const KeptJointSteps& kept) { return kept.steps.merit(); },
                   "The largest of the relative residuals.")
      .def("read", &read_joint_steps, "alpha"_a.noconvert(), "zl"_a.noconvert(),
           "zu"_a.noconvert(), "P"_a.noconvert(), "S"_a.noconvert(),
           "Writes the state to the arrays; returns (nu, xi).");
}

// The steps, and the arrays that they read.
struct KeptDualSteps {
  Matrix matrix;
  Vector rest;
  tessella::DualSteps steps;
};

void make_dual_steps(KeptDualSteps* kept, const Matrix& matrix, const Vector& rest,
                     const Numbers& sample, const Vector& sign, const Vector& cost,
                     const Vector& upper, const Vector& alpha, const Vector& zl, const Vector& zu,
                     double nu, double scale, double to_boundary, const nb::dict& blas,
                     const nb::dict& lapack) {
  const std::size_t f = matrix.shape(1), n = sample.shape(0);
  const bool whole = rest.shape(0) == 0;
  if (whole ? matrix.shape(0) != f : rest.shape(0) != f || matrix.shape(0) == 0)
    throw std::invalid_argument("DualSteps: shapes do not fit");
  for (const Vector* own : {&sign, &cost, &upper, &alpha, &zl, &zu})
    if (own->shape(0) != n) throw std::invalid_argument("DualSteps: shapes do not fit");
  for (std::size_t k = 0; k < n; ++k)
    if (sample.data()[k] < 0 || static_cast<std::size_t>(sample.data()[k]) >= f)
      throw std::invalid_argument("DualSteps: there is no such sample");
  if (f == 0 || n == 0) throw std::invalid_argument("DualSteps: nothing moves");
  const tessella::LinearAlgebra routines = linear_algebra(blas, lapack);
  const tessella::DualStepsProblem problem{f, n, whole ? 0 : matrix.shape(0), matrix.data(),
                                           rest.data(), sample.data(), sign.data(), cost.data(),
                                           upper.data()};
  tessella::DualSteps::State state{values_of(alpha), values_of(zl), values_of(zu), nu};
  const Computing computing;
  new (kept) KeptDualSteps{
      matrix, rest, tessella::DualSteps(problem, std::move(state), scale, to_boundary, routines)};
}

void bind_dual_steps(nb::module_& m) {
  nb::class_<KeptDualSteps>(m, "DualSteps", "Interior point steps for a given kernel matrix.")
      .def("__init__", &make_dual_steps, "matrix"_a.noconvert(), "rest"_a.noconvert(), "sample"_a,
           "sign"_a, "cost"_a, "upper"_a, "alpha"_a, "zl"_a, "zu"_a, "nu"_a, "scale"_a,
           "to_boundary"_a, "blas"_a, "lapack"_a)
      .def("advance", [](KeptDualSteps& kept) {
        const Computing computing;
        return kept.steps.advance();
      }, "Takes a step; returns its length, 0 if rounding prevents a step.")
      .def_prop_ro("merit", [](const KeptDualSteps& kept) { return kept.steps.merit(); },
                   "The larger of the relative residuals.")
      .def("read", [](const KeptDualSteps& kept, MutableVector alpha, MutableVector zl,
                      MutableVector zu) {
        const auto& state = kept.steps.state();
        write(state.alpha, alpha);
        write(state.zl, zl);
        write(state.zu, zu);
      }, "alpha"_a.noconvert(), "zl"_a.noconvert(), "zu"_a.noconvert(),
           "Writes the parts of the dual vector and the multipliers of their bounds.");
}

}  // namespace

NB_MODULE(_native, m) {
  m.doc() = "Compiled loops of Tessella.";
  tessella::loops();  // a wrong TESSELLA_SIMD is an error of the import, not of the first fit
  m.def("instruction_set", [] { return tessella::loops().name; },
        "The instruction set of the loops in use: baseline, avx2 or avx512.");
  m.def("max_product", &max_product<double>, "left"_a, "right"_a, "out"_a.noconvert(), "threads"_a,
        "out[i, j] = prod_f min(left[i, f], right[j, f]).");
  m.def("max_product", &max_product<float>, "left"_a, "right"_a, "out"_a.noconvert(), "threads"_a);
  m.def("max_product_apply", &max_product_apply, "left"_a, "right"_a, "weights"_a,
        "out"_a.noconvert(), "threads"_a, "out = B @ weights.T for the max-product matrix B.");
  m.def("kernel_matrix", &kernel_matrix<double>, "room_left"_a, "high_left"_a, "first_left"_a,
        "second_left"_a, "room_right"_a, "high_right"_a, "first_right"_a, "second_right"_a,
        "out"_a.noconvert(), "threads"_a,
        "out = B * (high @ high.T) + first @ second.T + second @ first.T, left against right.");
  m.def("kernel_matrix", &kernel_matrix<float>, "room_left"_a, "high_left"_a, "first_left"_a,
        "second_left"_a, "room_right"_a, "high_right"_a, "first_right"_a, "second_right"_a,
        "out"_a.noconvert(), "threads"_a);
  m.def("sum_sensitivities", &sum_sensitivities, "pairs"_a, "ah"_a, "gh"_a, "lh"_a, "hh"_a,
        "starts"_a, "first"_a, "out"_a.noconvert(), "threads"_a,
        "Inner products of the sensitivities of a block of samples with those from it on.");
  m.def("absolute_pair_sums", &absolute_pair_sums, "weights"_a, "columns"_a, "out"_a.noconvert(),
        "threads"_a, "out[f] = sum_ij weights[i, j] * abs(columns[f, i] - columns[f, j]).");
  m.def("solve_machines", &solve_machines, "room"_a, "high"_a, "first"_a, "second"_a, "starts"_a,
        "index"_a, "linear"_a, "epsilon"_a, "lower"_a, "upper"_a, "w"_a.noconvert(),
        "gradient"_a.noconvert(), "tol"_a, "steps_per_sample"_a, "seconds"_a, "threads"_a,
        "steps"_a.noconvert(), "intercepts"_a.noconvert(), "objectives"_a.noconvert(),
        "finished"_a.noconvert(),
        "Solves the duals of machines on parts of the same rows by pair steps, in place; returns "
        "(number of machines tried, status).");
  m.def("machine_matrices", &machine_matrices, "room"_a, "high"_a, "first"_a, "second"_a,
        "starts"_a, "index"_a, "out"_a.noconvert(), "threads"_a,
        "The kernel matrices of machines on parts of the same rows, one after the other.");
  m.def("push_machines", &push_machines, "room"_a, "starts"_a, "index"_a, "weights"_a,
        "out"_a.noconvert(), "threads"_a,
        "out = B @ weights for the max-product matrix B of each machine.");
  m.def("tridiagonal_forms", &tridiagonal_forms, "ratios"_a, "inverses"_a, "columns"_a,
        "out"_a.noconvert(), "threads"_a,
        "out[s, i] = v.T @ inv(T) @ v for v = columns[:, i] and the factors of T, see "
        "tridiagonal.hpp.");
  bind_rows<double>(m, "KernelRows");
  bind_rows<float>(m, "KernelRows32");
  bind_joint_steps(m);
  bind_dual_steps(m);
  const char* doc =
      "Solves the SVM dual in place; returns (status, iterations, intercept, objective, primal, "
      "violation).";
  const auto define = [&](auto function) {
    m.def("solve_dual", function, "kernel"_a.noconvert(), "linear"_a, "epsilon"_a, "lower"_a,
          "upper"_a, "w"_a.noconvert(), "gradient"_a.noconvert(), "tol"_a,
          nb::arg("gradient_at").none(), "max_iter"_a, "block_size"_a, "seconds"_a, "threads"_a, doc);
  };
  define(&solve_dense<double>);
  define(&solve_dense<float>);
  define(&solve_rows<double>);
  define(&solve_rows<float>);
}
