// The inner loops, which are compiled once for each instruction set and chosen at run time.
//
// loops.cpp is compiled several times (see CMakeLists.txt), each time into a table of functions.
// loops() is the table of the widest instruction set that the processor has, so one portable binary
// serves every machine. All tables give the same results to the last bit: sums are formed in
// eight partial sums whatever the width of a register is, and no product is fused with a sum.
//
// Only plain data and pointers here, and no functions of the standard library in loops.cpp: an
// inline function of it that is compiled for AVX-512 could be the copy that the linker keeps for
// all translation units, and would end the process on any other machine.
#pragma once

#include <cstddef>

#include "svm_dual.hpp"

namespace tessella {

// ---- register blocks: some rows of one matrix against a panel of columns of another

constexpr std::size_t kPanel = 16;  // columns of a panel
constexpr std::size_t kRows = 4;    // rows of a block
constexpr std::size_t kStrip = 16;  // panels whose products stay in the first-level cache
constexpr std::size_t kSolved = 8;  // vectors whose tridiagonal systems are solved side by side

// The factors of a kernel matrix in product form, see max_product.hpp: of one row, of the rows of
// a block side by side, or of all columns in panels.
struct Factors {
  const double* room;
  const double* high;
  const double* first;
  const double* second;
};

struct FactorSizes {
  std::size_t features, rank, thin;
};

// ---- sweeps over all samples: the inner loops of the dual solver

constexpr double kBlocked = 1e300;  // offset that takes a sample out of a search

struct Candidate {
  double value;
  std::size_t index;
};

struct Partner {
  double gain;  // of the best partner, 0 when there is none
  std::size_t index;
};

// What find_partner needs to know of the growing sample i.
struct Growing {
  double up;        // derivative of the objective when w_i grows
  double diagonal;  // K_ii
};

// Sums over the samples that make up the duality gap for a given offset b. A NaN in any of the
// samples makes the sums a NaN.
struct Values {
  double objective, gap;
};

struct Extremes {
  double up, down;
};

// ---- the tables

// Loops over rows that are stored as float or as double.
template <class T>
struct RowLoops {
  // out[i, j] = prod_f min(row_i[f], column_j[f]) for the rows of a block
  void (*product_rows)(const double* rows, std::size_t count, const double* panels,
                       std::size_t cols, std::size_t features, T* out, std::size_t stride);
  // Rows of a kernel matrix in product form, for the rows of a block and for one row.
  void (*kernel_rows)(const Factors& rows, std::size_t count, const Factors& panels,
                      std::size_t cols, const FactorSizes& sizes, T* out, std::size_t stride);
  void (*kernel_row)(const Factors& row, const Factors& panels, std::size_t cols,
                     const FactorSizes& sizes, T* out);
  // F -= step * (row_i - row_j), then the sample that gains most by growing.
  Candidate (*update_and_find_up)(const T* row_i, const T* row_j, double step, double* gradient,
                                  const double* up_offset, std::size_t size);
  // The sample to shrink while i grows: largest increase of the objective along the pair.
  Partner (*find_partner)(const T* row_i, const Growing& i, const double* diagonal,
                          const double* gradient, const double* down_offset, double floor,
                          std::size_t size);
  // target += scale * row
  void (*add_row)(const T* row, double scale, double* target, std::size_t size);
};

struct Loops {
  const char* name;
  RowLoops<float> of_float;
  RowLoops<double> of_double;
  // sums[i, c] += sum over a strip of panels of B[i, j] * weights[c, j]
  void (*apply_strip)(const double* rows, const double* panels, std::size_t n_panels,
                      std::size_t features, const double* weights, std::size_t weight_stride,
                      std::size_t columns, double* sums);
  // sum_j weights[j] * |own - column[j]|
  double (*absolute_sum)(const double* weights, const double* column, double own,
                         std::size_t count);
  // sums[s, lane] = sum_j x[j]² * inverses[s, j] with x[j] = panel[j, lane] - ratios[s, j] * x[j-1]
  void (*solved_squares)(const double* panel, std::size_t size, const double* ratios,
                         const double* inverses, std::size_t systems, double* sums);
  Values (*values_at)(const DualProblem& problem, const double* w, const double* gradient,
                      double intercept);
  // Largest derivative of the objective when a sample grows, smallest when one shrinks.
  Extremes (*extremes_of)(const double* gradient, const double* up_offset,
                          const double* down_offset, std::size_t size);
};

// The table in use: of the widest instruction set that the processor has and the environment
// variable TESSELLA_SIMD allows. Throws std::invalid_argument when it names none.
const Loops& loops();

template <class T>
const RowLoops<T>& row_loops();
template <>
inline const RowLoops<float>& row_loops<float>() {
  return loops().of_float;
}
template <>
inline const RowLoops<double>& row_loops<double>() {
  return loops().of_double;
}

namespace baseline {
extern const Loops kLoops;
}
#if defined(TESSELLA_X86_SETS)
namespace avx2 {
extern const Loops kLoops;
}
namespace avx512 {
extern const Loops kLoops;
}
#endif

}  // namespace tessella
