// Sums over all pairs of rows, weighted by a symmetric matrix.
#pragma once

#include <cstddef>

namespace tessella {

// out[f] = sum over i and j of weights[i, j] * |columns[f, i] - columns[f, j]|.
//
// `weights` is symmetric, of side `count`, and only its lower triangle is read. `columns` holds one
// feature after the other. Threads divide the features, so that the sums do not depend on how many
// there are.
void absolute_pair_sums(const double* weights, const double* columns, std::size_t count,
                        std::size_t features, double* out, int threads);

}  // namespace tessella
