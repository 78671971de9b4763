#include "max_product.hpp"

#include <algorithm>
#include <vector>

#include "panels.hpp"

namespace tessella {
namespace {

constexpr std::size_t kStrip = 16;  // panels whose products stay in the first-level cache

template <class T>
TESSELLA_INLINE void product_rows_impl(const RowBlock& rows, std::size_t count,
                                       const double* packed, std::size_t cols,
                                       std::size_t features, T* out, std::size_t stride) {
  for (std::size_t j = 0; j < cols; j += kPanel) {
    Block block;
    min_product(rows, packed + j * features, features, block);
    store(block, count, std::min(kPanel, cols - j), out + j, stride);
  }
}

TESSELLA_SIMD void product_rows(const RowBlock& rows, std::size_t count, const double* packed,
                                std::size_t cols, std::size_t features, float* out,
                                std::size_t stride) {
  product_rows_impl(rows, count, packed, cols, features, out, stride);
}
TESSELLA_SIMD void product_rows(const RowBlock& rows, std::size_t count, const double* packed,
                                std::size_t cols, std::size_t features, double* out,
                                std::size_t stride) {
  product_rows_impl(rows, count, packed, cols, features, out, stride);
}

// sums[i * columns + c] += sum over the strip of B[i, j] * weights[c, j]
TESSELLA_SIMD void apply_strip(const RowBlock& rows, const double* packed, std::size_t panels,
                               std::size_t features, const double* weights,
                               std::size_t weight_stride, std::size_t columns, double* sums) {
  Block products[kStrip];
  for (std::size_t p = 0; p < panels; ++p)
    min_product(rows, packed + p * kPanel * features, features, products[p]);
  for (std::size_t c = 0; c < columns; ++c) {
    const double* weight = weights + c * weight_stride;
    Block partial;
    clear(partial);
    for (std::size_t p = 0; p < panels; ++p, weight += kPanel) {
      Lanes w[kHalves];
      for (std::size_t h = 0; h < kHalves; ++h) load(weight + h * kLanes, w[h]);
      for (std::size_t i = 0; i < kRows; ++i)
        for (std::size_t h = 0; h < kHalves; ++h) partial[i][h] += products[p][i][h] * w[h];
    }
    for (std::size_t i = 0; i < kRows; ++i) {
      Lanes pair = partial[i][0];
      for (std::size_t h = 1; h < kHalves; ++h) pair += partial[i][h];
      double sum = 0.0;
      for (std::size_t l = 0; l < kLanes; ++l) sum += pair[l];
      sums[i * columns + c] += sum;
    }
  }
}

// Panels of the right-hand side of a kernel matrix.
struct PackedSide {
  std::vector<double> room, high, first, second;
};

template <class T>
TESSELLA_INLINE void kernel_rows_impl(const KernelSide& left, std::size_t start,
                                      std::size_t count, const PackedSide& right,
                                      std::size_t cols, std::size_t features, std::size_t rank,
                                      std::size_t thin, T* out, std::size_t stride) {
  const RowBlock room(left.room, start, count, features);
  const RowBlock high(left.high, start, count, rank);
  const RowBlock first(left.first, start, count, thin);
  const RowBlock second(left.second, start, count, thin);
  for (std::size_t j = 0; j < cols; j += kPanel) {
    Block result, factor, mirrored;
    min_product(room, right.room.data() + j * features, features, result);
    clear(factor);
    add_dot_product(high, right.high.data() + j * rank, rank, factor);
    for (std::size_t i = 0; i < kRows; ++i)
      for (std::size_t h = 0; h < kHalves; ++h) result[i][h] *= factor[i][h];
    clear(factor);
    clear(mirrored);
    add_dot_product(first, right.second.data() + j * thin, thin, factor);
    add_dot_product(second, right.first.data() + j * thin, thin, mirrored);
    for (std::size_t i = 0; i < kRows; ++i)
      for (std::size_t h = 0; h < kHalves; ++h) result[i][h] += factor[i][h] + mirrored[i][h];
    store(result, count, std::min(kPanel, cols - j), out + j, stride);
  }
}

TESSELLA_SIMD void kernel_rows(const KernelSide& left, std::size_t start, std::size_t count,
                               const PackedSide& right, std::size_t cols, std::size_t features,
                               std::size_t rank, std::size_t thin, float* out,
                               std::size_t stride) {
  kernel_rows_impl(left, start, count, right, cols, features, rank, thin, out, stride);
}
TESSELLA_SIMD void kernel_rows(const KernelSide& left, std::size_t start, std::size_t count,
                               const PackedSide& right, std::size_t cols, std::size_t features,
                               std::size_t rank, std::size_t thin, double* out,
                               std::size_t stride) {
  kernel_rows_impl(left, start, count, right, cols, features, rank, thin, out, stride);
}

// Below about a millisecond of work one thread is better: it has nobody to wait for, and where
// several processes share the cores waiting can cost a hundred times the work.
bool worth_threads(std::size_t rows, std::size_t cols, std::size_t work) {
  constexpr std::size_t kWorthThreads = 1 << 24;
  return rows * cols * (work + 2) > kWorthThreads;
}

// Calls body(first row, number of rows) for all blocks of rows, in parallel; dynamically, so that
// a core that is busy elsewhere does less.
template <class Body>
void for_row_blocks(std::size_t rows, int threads, bool parallel, const Body& body) {
  const auto blocks = static_cast<std::ptrdiff_t>((rows + kRows - 1) / kRows);
#pragma omp parallel for schedule(dynamic, 16) num_threads(threads) if (parallel)
  for (std::ptrdiff_t block = 0; block < blocks; ++block) {
    const std::size_t first = static_cast<std::size_t>(block) * kRows;
    body(first, std::min(kRows, rows - first));
  }
}

}  // namespace

template <class T>
void max_product(const double* left, std::size_t rows, const double* right, std::size_t cols,
                 std::size_t features, T* out, std::size_t stride, int threads) {
  if (rows == 0 || cols == 0) return;
  const std::vector<double> packed = pack_panels(right, cols, features);
  for_row_blocks(rows, threads, worth_threads(rows, cols, features),
                 [&](std::size_t first, std::size_t count) {
                   product_rows(RowBlock(left, first, count, features), count, packed.data(),
                                cols, features, out + first * stride, stride);
                 });
}

void max_product_apply(const double* left, std::size_t rows, const double* right,
                       std::size_t cols, std::size_t features, const double* weights,
                       std::size_t columns, double* out, int threads) {
  std::fill(out, out + rows * columns, 0.0);
  if (rows == 0 || cols == 0) return;
  const std::vector<double> packed = pack_panels(right, cols, features);
  const std::size_t panels = panel_count(cols), padded = panels * kPanel;
  std::vector<double> padded_weights(columns * padded, 0.0);
  for (std::size_t c = 0; c < columns; ++c)
    std::copy(weights + c * cols, weights + (c + 1) * cols, padded_weights.data() + c * padded);
  for_row_blocks(
      rows, threads, worth_threads(rows, cols, features + columns),
      [&](std::size_t first, std::size_t count) {
        const RowBlock block(left, first, count, features);
        std::vector<double> sums(kRows * columns, 0.0);
        for (std::size_t p = 0; p < panels; p += kStrip)
          apply_strip(block, packed.data() + p * kPanel * features,
                      std::min(kStrip, panels - p), features,
                      padded_weights.data() + p * kPanel, padded, columns, sums.data());
        std::copy(sums.data(), sums.data() + count * columns, out + first * columns);
      });
}

template <class T>
void kernel_matrix(const KernelSide& left, const KernelSide& right, std::size_t features,
                   std::size_t rank, std::size_t thin, T* out, std::size_t stride, int threads) {
  if (left.count == 0 || right.count == 0) return;
  const PackedSide packed{pack_panels(right.room, right.count, features),
                          pack_panels(right.high, right.count, rank),
                          pack_panels(right.first, right.count, thin),
                          pack_panels(right.second, right.count, thin)};
  for_row_blocks(left.count, threads,
                 worth_threads(left.count, right.count, features + rank + 2 * thin),
                 [&](std::size_t first, std::size_t count) {
                   kernel_rows(left, first, count, packed, right.count, features, rank, thin,
                               out + first * stride, stride);
                 });
}

template void max_product<float>(const double*, std::size_t, const double*, std::size_t,
                                 std::size_t, float*, std::size_t, int);
template void max_product<double>(const double*, std::size_t, const double*, std::size_t,
                                  std::size_t, double*, std::size_t, int);
template void kernel_matrix<float>(const KernelSide&, const KernelSide&, std::size_t, std::size_t,
                                   std::size_t, float*, std::size_t, int);
template void kernel_matrix<double>(const KernelSide&, const KernelSide&, std::size_t,
                                    std::size_t, std::size_t, double*, std::size_t, int);

}  // namespace tessella
