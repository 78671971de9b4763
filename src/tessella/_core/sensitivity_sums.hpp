// Inner products of sensitivities of several machines, from products of their vectors.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tessella {

// The sensitivities of samples k = first, ..., count - 1 are sym(a_k g_k') + sym(l_k h') with an h
// for each group of consecutive samples.
struct SensitivityProducts {
  std::size_t count;   // samples in all
  std::size_t first;   // the first sample of the block
  std::size_t rows;    // samples of the block
  std::size_t groups;
  const std::int64_t* starts;  // (groups + 1): first sample of each group, and `count`
  // (3, 3 rows, count - first): products of a, g and l of the samples from `first` on (the first
  // index) with a, g and l of the block (the second index, one after the other).
  const double* pairs;
  // (groups, count): products of a, g and l of all samples with each h.
  const double* ah;
  const double* gh;
  const double* lh;
  const double* hh;  // (groups, groups): products of the vectors h
};

// Writes the inner products of the block with all samples from `first` on to the rows of the block
// in `out`, of shape (count, count), and to the same columns. Threads divide the rows.
void sum_sensitivities(const SensitivityProducts& products, double* out, int threads);

}  // namespace tessella
