// The max-product matrix: out[i, j] = prod_f min(left[i, f], right[j, f]).
//
// With u = (b - x) / (b - a) this is the volume-normalised prod_f (b_f - max(x_f, y_f)) of the
// tessellated kernels, the only part of them that is not separable.
#pragma once

#include <cstddef>

namespace tessella {

// left is (rows, features) and right (cols, features), both row-major and contiguous; out has
// `stride` elements between the starts of two rows. Products are formed in double whatever T is:
// with a hundred features they leave the range of float long before they stop to matter.
template <class T>
void max_product(const double* left, std::size_t rows, const double* right, std::size_t cols,
                 std::size_t features, T* out, std::size_t stride, int threads);

}  // namespace tessella
