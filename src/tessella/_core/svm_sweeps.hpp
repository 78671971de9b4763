// Sweeps over all samples: the inner loops of the dual solver.
//
// Each is compiled for several instruction sets and chosen at run time (see simd.hpp).
#pragma once

#include <cstddef>

#include "svm_dual.hpp"

namespace tessella {

constexpr double kBlocked = 1e300;  // offset that takes a sample out of a search

struct Candidate {
  double value = -kBlocked;
  std::size_t index = 0;
};

struct Partner {
  double gain = 0.0;  // of the best partner, 0 when there is none
  std::size_t index = 0;
};

// What find_partner needs to know of the growing sample i.
struct Growing {
  double up;        // derivative of the objective when w_i grows
  double diagonal;  // K_ii
};

// Sums over the samples that make up the duality gap for a given offset b.
struct Values {
  double objective = 0.0, gap = 0.0;
};

struct Extremes {
  double up, down;
};

// F -= step * (row_i - row_j), then the sample that gains most by growing.
Candidate update_and_find_up(const float* row_i, const float* row_j, double step,
                             double* gradient, const double* up_offset, std::size_t size);
Candidate update_and_find_up(const double* row_i, const double* row_j, double step,
                             double* gradient, const double* up_offset, std::size_t size);

// The sample to shrink while i grows: largest increase of the objective along the pair.
Partner find_partner(const float* row_i, const Growing& i, const double* diagonal,
                     const double* gradient, const double* down_offset, double floor,
                     std::size_t size);
Partner find_partner(const double* row_i, const Growing& i, const double* diagonal,
                     const double* gradient, const double* down_offset, double floor,
                     std::size_t size);

// target += scale * row
void add_row(const float* row, double scale, double* target, std::size_t size);
void add_row(const double* row, double scale, double* target, std::size_t size);

Values values_at(const DualProblem& p, const double* w, const double* gradient, double intercept);

// Largest derivative of the objective when a sample grows, smallest when one shrinks.
Extremes extremes_of(const double* gradient, const double* up_offset, const double* down_offset,
                     std::size_t size);

}  // namespace tessella
