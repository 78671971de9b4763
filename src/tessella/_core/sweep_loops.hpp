// Loops over all samples, for the instruction set that includes this file.
//
// Searches find the maximum of each block first, which is done in registers, and look for its
// index only in the winning block.
#pragma once

#include <cmath>
#include <cstddef>

#include "lanes.hpp"
#include "loops.hpp"

namespace tessella {
namespace TESSELLA_SET {
namespace {

constexpr std::size_t kBlock = 256;  // samples per block in searches for a maximum

TESSELLA_INLINE std::size_t block_end(std::size_t start, std::size_t size) {
  return size - start < kBlock ? size : start + kBlock;
}

// The first k from `start` on at which `value_at` is `value`, which is among the values before
// `stop`. `values_at` are the same values, eight at a time.
template <class Eight, class One>
TESSELLA_INLINE std::size_t index_of(double value, std::size_t start, std::size_t stop,
                                     const Eight& values_at, const One& value_at) {
  const Lanes wanted = all(value);
  std::size_t k = start;
  while (k + kLanes <= stop && !some_equal(values_at(k), wanted)) k += kLanes;
  while (k + 1 < stop && value_at(k) != value) ++k;
  return k;
}

template <class T>
Candidate update_and_find_up(const T* row_i, const T* row_j, double step, double* gradient,
                             const double* up_offset, std::size_t size) {
  Candidate best{-kBlocked, 0};
  const Lanes steps = all(step);
  for (std::size_t start = 0; start < size; start += kBlock) {
    const std::size_t stop = block_end(start, size);
    Lanes tops = all(-kBlocked);
    std::size_t k = start;
    for (; k + kLanes <= stop; k += kLanes) {
      const Lanes value = load(gradient + k) - steps * (load(row_i + k) - load(row_j + k));
      save(value, gradient + k);
      tops = higher_of(value - load(up_offset + k), tops);
    }
    double top = highest_of(tops);
    for (; k < stop; ++k) {
      const double difference = static_cast<double>(row_i[k]) - static_cast<double>(row_j[k]);
      gradient[k] -= step * difference;
      const double up = gradient[k] - up_offset[k];
      top = up > top ? up : top;
    }
    if (top > best.value) best.value = top, best.index = start;
  }
  best.index = index_of(
      best.value, best.index, block_end(best.index, size),
      [&](std::size_t k) { return load(gradient + k) - load(up_offset + k); },
      [&](std::size_t k) { return gradient[k] - up_offset[k]; });
  return best;
}

template <class T>
Partner find_partner(const T* row_i, const Growing& i, const double* diagonal,
                     const double* gradient, const double* down_offset, double floor,
                     std::size_t size) {
  const auto gain_of = [&](std::size_t k) {
    const double slope = i.up - (gradient[k] - down_offset[k]);
    const double curvature = i.diagonal + diagonal[k] - 2.0 * static_cast<double>(row_i[k]);
    return slope > 0.0 ? slope * slope / (curvature > floor ? curvature : floor) : 0.0;
  };
  Partner best{0.0, 0};
  const Lanes up = all(i.up), own = all(i.diagonal), two = all(2.0), floors = all(floor);
  const auto gains_of = [&](std::size_t k) {
    const Lanes slope = up - (load(gradient + k) - load(down_offset + k));
    const Lanes curvature = own + load(diagonal + k) - two * load(row_i + k);
    return where_positive(slope, slope * slope / higher_of(curvature, floors));
  };
  for (std::size_t start = 0; start < size; start += kBlock) {
    const std::size_t stop = block_end(start, size);
    Lanes tops = all(0.0);
    std::size_t k = start;
    for (; k + kLanes <= stop; k += kLanes) tops = higher_of(gains_of(k), tops);
    double top = highest_of(tops);
    for (; k < stop; ++k) {
      const double gain = gain_of(k);
      top = gain > top ? gain : top;
    }
    if (top > best.gain) best.gain = top, best.index = start;
  }
  best.index = index_of(best.gain, best.index, block_end(best.index, size), gains_of, gain_of);
  return best;
}

template <class T>
void add_row(const T* row, double scale, double* target, std::size_t size) {
  const Lanes scales = all(scale);
  std::size_t k = 0;
  for (; k + kLanes <= size; k += kLanes)
    save(load(target + k) + scales * load(row + k), target + k);
  for (; k < size; ++k) target[k] += scale * static_cast<double>(row[k]);
}

double absolute_sum(const double* weights, const double* column, double own, std::size_t count) {
  const Lanes owns = all(own);
  Lanes even = all(0.0), odd = all(0.0);  // two sums, because one waits for its last addition
  std::size_t k = 0;
  for (; k + 2 * kLanes <= count; k += 2 * kLanes) {
    even = even + load(weights + k) * magnitude_of(owns - load(column + k));
    odd = odd + load(weights + k + kLanes) * magnitude_of(owns - load(column + k + kLanes));
  }
  double sum = sum_of(even + odd);
  for (; k < count; ++k) sum += weights[k] * std::fabs(own - column[k]);
  return sum;
}

// Several systems at a time, because a step of one waits for its last step.
template <std::size_t kSystems>
TESSELLA_INLINE void add_solved_squares(const double* panel, std::size_t size,
                                        const double* ratios, const double* inverses,
                                        double* sums) {
  Lanes x[kSystems], sum[kSystems];
  for (std::size_t s = 0; s < kSystems; ++s) x[s] = sum[s] = all(0.0);
  for (std::size_t j = 0; j < size; ++j) {
    const Lanes given = load(panel + j * kLanes);
    for (std::size_t s = 0; s < kSystems; ++s) {
      x[s] = given - all(ratios[s * size + j]) * x[s];
      sum[s] = sum[s] + x[s] * x[s] * all(inverses[s * size + j]);
    }
  }
  for (std::size_t s = 0; s < kSystems; ++s) save(sum[s], sums + s * kLanes);
}

void solved_squares(const double* panel, std::size_t size, const double* ratios,
                    const double* inverses, std::size_t systems, double* sums) {
  static_assert(kSolved == kLanes, "a panel is as wide as the lanes");
  std::size_t s = 0;
  for (; s + 2 <= systems; s += 2)
    add_solved_squares<2>(panel, size, ratios + s * size, inverses + s * size, sums + s * kLanes);
  if (s < systems)
    add_solved_squares<1>(panel, size, ratios + s * size, inverses + s * size, sums + s * kLanes);
}

// Adds the terms of `count` samples from k on, at most kLanes. The Fenchel gap of a sample is never
// negative, so the sum loses nothing to cancellation; rounding may make it so. A maximum with zero
// takes a NaN along.
TESSELLA_INLINE void add_terms(const DualProblem& p, const double* w, const double* gradient,
                               double intercept, std::size_t k, std::size_t count,
                               Lanes& objective, Lanes& gap) {
  const auto at_k = [&](const double* values) { return load_first(values + k, count); };
  const Lanes zero = all(0.0), weight = at_k(w), slope = at_k(gradient);
  const Lanes epsilon = at_k(p.epsilon), residual = slope - all(intercept);
  const Lanes above = residual - epsilon, below = zero - residual - epsilon;
  const Lanes loss =
      at_k(p.upper) * higher_of(zero, above) - at_k(p.lower) * higher_of(zero, below);
  const Lanes cost = epsilon * magnitude_of(weight);
  const Lanes excess = loss - weight * residual + cost;
  gap = gap + higher_of(zero, excess);
  objective = objective + (all(0.5) * weight * (at_k(p.linear) + slope) - cost);
}

Values values_at(const DualProblem& p, const double* w, const double* gradient,
                 double intercept) {
  Lanes objective = all(0.0), gap = all(0.0);
  std::size_t k = 0;
  for (; k + kLanes <= p.size; k += kLanes)
    add_terms(p, w, gradient, intercept, k, kLanes, objective, gap);
  if (k < p.size) add_terms(p, w, gradient, intercept, k, p.size - k, objective, gap);
  return {sum_of(objective), sum_of(gap)};
}

Extremes extremes_of(const double* gradient, const double* up_offset, const double* down_offset,
                     std::size_t size) {
  Lanes ups = all(-kBlocked), downs = all(kBlocked);
  std::size_t k = 0;
  for (; k + kLanes <= size; k += kLanes) {
    const Lanes slope = load(gradient + k);
    ups = higher_of(slope - load(up_offset + k), ups);
    downs = lower_of(slope - load(down_offset + k), downs);
  }
  Extremes ends{highest_of(ups), lowest_of(downs)};
  for (; k < size; ++k) {
    const double grow = gradient[k] - up_offset[k], shrink = gradient[k] - down_offset[k];
    ends.up = grow > ends.up ? grow : ends.up;
    ends.down = shrink < ends.down ? shrink : ends.down;
  }
  return ends;
}

}  // namespace
}  // namespace TESSELLA_SET
}  // namespace tessella
