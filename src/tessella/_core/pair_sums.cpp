#include "pair_sums.hpp"

#include <cmath>

#include "simd.hpp"

namespace tessella {
namespace {

TESSELLA_SIMD double row_sum(const double* weights, const double* column, double own,
                             std::size_t count) {
  double sum = 0.0;
#pragma omp simd reduction(+ : sum)
  for (std::size_t j = 0; j < count; ++j) sum += weights[j] * std::fabs(own - column[j]);
  return sum;
}

}  // namespace

void absolute_pair_sums(const double* weights, const double* columns, std::size_t count,
                        std::size_t features, double* out, int threads) {
#pragma omp parallel for schedule(static) num_threads(threads)
  for (std::size_t f = 0; f < features; ++f) {
    const double* column = columns + f * count;
    double sum = 0.0;
    for (std::size_t i = 1; i < count; ++i)
      sum += row_sum(weights + i * count, column, column[i], i);
    out[f] = 2.0 * sum;
  }
}

}  // namespace tessella
