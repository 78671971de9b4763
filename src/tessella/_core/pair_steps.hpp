// The step of a pair of samples, in the whole problem or in a block of it.
#pragma once

#include <algorithm>
#include <cstddef>

#include "loops.hpp"

namespace tessella {

// What a pair step reads and changes, an array for each.
struct Samples {
  std::size_t size;
  const double* epsilon;
  const double* lower;
  const double* upper;
  const double* diagonal;  // of the kernel matrix
  double* w;
  double* gradient;     // F = p - Kw
  double* up_offset;    // F - offset - b is the derivative of the objective when w grows
  double* down_offset;  // and when it shrinks
  double curvature_floor;
};

inline void refresh_offsets(const Samples& s, std::size_t k) {
  const double eps = s.epsilon[k];
  s.up_offset[k] = s.w[k] >= s.upper[k] ? kBlocked : (s.w[k] >= 0.0 ? eps : -eps);
  s.down_offset[k] = s.w[k] <= s.lower[k] ? -kBlocked : (s.w[k] > 0.0 ? eps : -eps);
}

// Between two bounds, where the derivatives when w grows and when it shrinks are the same.
inline bool is_free(const Samples& s, std::size_t k) { return s.up_offset[k] == s.down_offset[k]; }

// Moves w_i up and w_j down by the same amount, to the maximum along that line: the slope
// falls linearly and drops by 2 eps where w_i or w_j passes zero. Returns the amount.
inline double move_pair(const Samples& s, std::size_t i, std::size_t j, double kernel_ij) {
  const double curvature =
      std::max(s.diagonal[i] + s.diagonal[j] - 2.0 * kernel_ij, s.curvature_floor);
  double& grows = s.w[i];
  double& shrinks = s.w[j];
  const double start_i = grows, start_j = shrinks;
  double slope = (s.gradient[i] - s.up_offset[i]) - (s.gradient[j] - s.down_offset[j]);
  while (slope > 0.0) {
    const double stop_i = grows < 0.0 ? 0.0 : s.upper[i];
    const double stop_j = shrinks > 0.0 ? 0.0 : s.lower[j];
    const double room_i = stop_i - grows, room_j = shrinks - stop_j;
    const double move = std::min({slope / curvature, room_i, room_j});
    // Land on a kink or a bound exactly, so that later comparisons with it hold.
    grows = move == room_i ? stop_i : grows + move;
    shrinks = move == room_j ? stop_j : shrinks - move;
    slope -= curvature * move;
    if (move < room_i && move < room_j) break;
    if (grows == s.upper[i] || shrinks == s.lower[j]) break;
    if (grows == 0.0) slope -= 2.0 * s.epsilon[i];
    if (shrinks == 0.0) slope -= 2.0 * s.epsilon[j];
  }
  refresh_offsets(s, i);
  refresh_offsets(s, j);
  return 0.5 * ((grows - start_i) + (start_j - shrinks));
}

}  // namespace tessella
