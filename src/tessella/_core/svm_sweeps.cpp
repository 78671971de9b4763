#include "svm_sweeps.hpp"

#include <algorithm>
#include <cmath>

#include "simd.hpp"

namespace tessella {

constexpr std::size_t kBlock = 256;  // samples per block in searches for a maximum

// The sweeps below find the maximum of each block first, which vectorises, and look for its
// index only in the winning block. Each is written once for both storage types and inlined into
// a pair of functions compiled for several instruction sets.

// F -= step * (row_i - row_j), then the sample that gains most by growing.
template <class T>
TESSELLA_INLINE Candidate update_and_find_up_impl(const T* row_i, const T* row_j, double step,
                                                  double* gradient, const double* up_offset,
                                                  std::size_t size) {
  Candidate best;
  std::size_t best_block = 0;
  for (std::size_t start = 0; start < size; start += kBlock) {
    const std::size_t stop = std::min(size, start + kBlock);
    double top = -kBlocked;
#pragma omp simd reduction(max : top)
    for (std::size_t k = start; k < stop; ++k) {
      const double difference = static_cast<double>(row_i[k]) - static_cast<double>(row_j[k]);
      const double value = gradient[k] - step * difference;
      gradient[k] = value;
      const double up = value - up_offset[k];
      top = up > top ? up : top;
    }
    if (top > best.value) best.value = top, best_block = start;
  }
  best.index = best_block;
  for (std::size_t k = best_block, stop = std::min(size, best_block + kBlock); k < stop; ++k)
    if (gradient[k] - up_offset[k] == best.value) {
      best.index = k;
      break;
    }
  return best;
}

TESSELLA_SIMD Candidate update_and_find_up(const float* row_i, const float* row_j, double step,
                                           double* gradient, const double* up_offset,
                                           std::size_t size) {
  return update_and_find_up_impl(row_i, row_j, step, gradient, up_offset, size);
}
TESSELLA_SIMD Candidate update_and_find_up(const double* row_i, const double* row_j, double step,
                                           double* gradient, const double* up_offset,
                                           std::size_t size) {
  return update_and_find_up_impl(row_i, row_j, step, gradient, up_offset, size);
}

// The sample to shrink while i grows: largest increase of the objective along the pair.
template <class T>
TESSELLA_INLINE Partner find_partner_impl(const T* row_i, const Growing& i,
                                          const double* diagonal, const double* gradient,
                                          const double* down_offset, double floor,
                                          std::size_t size) {
  const auto gain_of = [&](std::size_t k) {
    const double slope = i.up - (gradient[k] - down_offset[k]);
    double curvature = i.diagonal + diagonal[k] - 2.0 * static_cast<double>(row_i[k]);
    curvature = curvature > floor ? curvature : floor;
    return slope > 0.0 ? slope * slope / curvature : 0.0;
  };
  Partner best;
  std::size_t best_block = 0;
  for (std::size_t start = 0; start < size; start += kBlock) {
    const std::size_t stop = std::min(size, start + kBlock);
    double top = 0.0;
#pragma omp simd reduction(max : top)
    for (std::size_t k = start; k < stop; ++k) {
      const double gain = gain_of(k);
      top = gain > top ? gain : top;
    }
    if (top > best.gain) best.gain = top, best_block = start;
  }
  best.index = best_block;
  for (std::size_t k = best_block, stop = std::min(size, best_block + kBlock); k < stop; ++k)
    if (gain_of(k) == best.gain) {
      best.index = k;
      break;
    }
  return best;
}

TESSELLA_SIMD Partner find_partner(const float* row_i, const Growing& i, const double* diagonal,
                                   const double* gradient, const double* down_offset,
                                   double floor, std::size_t size) {
  return find_partner_impl(row_i, i, diagonal, gradient, down_offset, floor, size);
}
TESSELLA_SIMD Partner find_partner(const double* row_i, const Growing& i, const double* diagonal,
                                   const double* gradient, const double* down_offset,
                                   double floor, std::size_t size) {
  return find_partner_impl(row_i, i, diagonal, gradient, down_offset, floor, size);
}

template <class T>
TESSELLA_INLINE void add_row_impl(const T* row, double scale, double* target, std::size_t size) {
#pragma omp simd
  for (std::size_t k = 0; k < size; ++k) target[k] += scale * static_cast<double>(row[k]);
}

TESSELLA_SIMD void add_row(const float* row, double scale, double* target, std::size_t size) {
  add_row_impl(row, scale, target, size);
}
TESSELLA_SIMD void add_row(const double* row, double scale, double* target, std::size_t size) {
  add_row_impl(row, scale, target, size);
}

TESSELLA_SIMD Values values_at(const DualProblem& p, const double* w, const double* gradient,
                               double intercept) {
  double objective = 0.0, gap = 0.0;
#pragma omp simd reduction(+ : objective, gap)
  for (std::size_t k = 0; k < p.size; ++k) {
    const double residual = gradient[k] - intercept;
    const double above = residual - p.epsilon[k], below = -residual - p.epsilon[k];
    const double loss = p.upper[k] * (above > 0.0 ? above : 0.0) -
                        p.lower[k] * (below > 0.0 ? below : 0.0);
    const double cost = p.epsilon[k] * std::fabs(w[k]);
    // Fenchel gap of one sample: never negative, so the sum loses nothing to cancellation.
    const double excess = loss - w[k] * residual + cost;
    gap += excess > 0.0 ? excess : 0.0;
    objective += 0.5 * w[k] * (p.linear[k] + gradient[k]) - cost;
  }
  return {objective, gap};
}

// Largest derivative of the objective when a sample grows, smallest when one shrinks.
TESSELLA_SIMD Extremes extremes_of(const double* gradient, const double* up_offset,
                                   const double* down_offset, std::size_t size) {
  double up = -kBlocked, down = kBlocked;
#pragma omp simd reduction(max : up) reduction(min : down)
  for (std::size_t k = 0; k < size; ++k) {
    const double grow = gradient[k] - up_offset[k], shrink = gradient[k] - down_offset[k];
    up = grow > up ? grow : up;
    down = shrink < down ? shrink : down;
  }
  return {up, down};
}

}  // namespace tessella
