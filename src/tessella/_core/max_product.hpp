// The max-product matrix B[i, j] = prod_f min(left[i, f], right[j, f]), and what is made of it.
//
// With u = (b - x) / (b - a) this is the volume-normalised prod_f (b_f - max(x_f, y_f)) of the
// tessellated kernels, the only part of them that is not separable. All matrices are row-major
// and contiguous; products are formed in double whatever the storage is: with a hundred features
// they leave the range of float long before they stop to matter.
#pragma once

#include <cstddef>

#include "loops.hpp"

namespace tessella {

inline double dot(const double* a, const double* b, std::size_t size) {
  double sum = 0.0;
  for (std::size_t k = 0; k < size; ++k) sum += a[k] * b[k];
  return sum;
}

// B itself; `out` has `stride` elements between the starts of two rows. Of the symmetric matrix of
// the same rows on both sides, here and below, one half is computed and copied to the other.
template <class T>
void max_product(const double* left, std::size_t rows, const double* right, std::size_t cols,
                 std::size_t features, T* out, std::size_t stride, int threads);

// B @ weights.T without B: weights is (columns, cols), out (rows, columns). Recomputing B costs
// less than reading it from memory would.
void max_product_apply(const double* left, std::size_t rows, const double* right,
                       std::size_t cols, std::size_t features, const double* weights,
                       std::size_t columns, double* out, int threads);

// One side of a kernel matrix: room (count, features), high (count, rank), and the two thin
// factors (count, thin).
struct KernelSide {
  std::size_t count;
  Factors factors;
};

// out[i, j] = B[i, j] (high_i . high_j) + first_i . second_j + second_i . first_j,
// the same to the last bit when i and j change places.
template <class T>
void kernel_matrix(const KernelSide& left, const KernelSide& right, const FactorSizes& sizes,
                   T* out, std::size_t stride, int threads);

// out[i] += sum_j weights[j] times the entry (i, j) of that matrix, in double and without it.
void kernel_apply(const KernelSide& left, const KernelSide& right, const FactorSizes& sizes,
                  const double* weights, double* out, int threads);

}  // namespace tessella
