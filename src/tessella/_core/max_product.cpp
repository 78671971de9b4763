#include "max_product.hpp"

#include <algorithm>
#include <vector>

#include "loops.hpp"
#include "panels.hpp"
#include "threads.hpp"

namespace tessella {
namespace {

// Below about a millisecond of work one thread is better: it has nobody to wait for, and where
// several processes share the cores waiting can cost a hundred times the work.
int worth_threads(std::size_t rows, std::size_t cols, std::size_t work, int threads) {
  constexpr std::size_t kWorthThreads = 1 << 24;
  return rows * cols * (work + 2) > kWorthThreads ? threads : 1;
}

// Calls body(scratch, first row, number of rows) for all blocks of rows, where each thread has a
// copy of `scratch`.
template <class Scratch, class Body>
void for_row_blocks(std::size_t rows, int threads, const Scratch& scratch, const Body& body) {
  constexpr std::size_t kChunk = 16;
  const std::size_t blocks = (rows + kRows - 1) / kRows;
  const std::size_t places = thread_places(blocks, kChunk, threads);
  std::vector<Scratch> own(places, scratch);
  parallel_for(blocks, kChunk, places,
               [&](std::size_t place, std::size_t begin, std::size_t end) noexcept {
                 for (std::size_t block = begin; block < end; ++block) {
                   const std::size_t first = block * kRows;
                   body(own[place], first, std::min(kRows, rows - first));
                 }
               });
}

// The first panel of a block of rows that has to be computed: in a symmetric matrix, the one with
// its part of the diagonal.
std::size_t first_panel(bool symmetric, std::size_t row) {
  return symmetric ? row / kPanel * kPanel : 0;
}

// Copies the entries above the diagonal of a square matrix to those below.
template <class T>
void mirror(T* out, std::size_t side, std::size_t stride, int threads) {
  constexpr std::size_t kTile = 32;  // two tiles fit in the first-level cache
  const std::size_t tiles = (side + kTile - 1) / kTile;
  parallel_for(
      tiles, 1, thread_places(tiles, 1, threads),
      [&](std::size_t, std::size_t begin, std::size_t end) noexcept {
        for (std::size_t tile = begin; tile < end; ++tile)
          for (std::size_t left = 0; left <= tile * kTile; left += kTile)
            for (std::size_t i = tile * kTile; i < std::min(side, (tile + 1) * kTile); ++i)
              for (std::size_t j = left; j < std::min(i, left + kTile); ++j)
                out[i * stride + j] = out[j * stride + i];
      });
}

// Whether half of a symmetric matrix is computed and copied to the other half. Copying is bound by
// memory, and takes longer than computing entries of few factors or a matrix outside the cache.
bool worth_mirroring(std::size_t side, std::size_t factors) {
  constexpr std::size_t kLargest = 1500, kFewest = 24;
  return side <= kLargest && factors >= kFewest;
}

bool same(const Factors& left, const Factors& right) {
  return left.room == right.room && left.high == right.high && left.first == right.first &&
         left.second == right.second;
}

struct BlockSums {
  RowBlock rows;
  std::vector<double> sums;
};

}  // namespace

template <class T>
void max_product(const double* left, std::size_t rows, const double* right, std::size_t cols,
                 std::size_t features, T* out, std::size_t stride, int threads) {
  if (rows == 0 || cols == 0) return;
  const std::vector<double> packed = pack_panels(right, cols, features);
  const RowLoops<T>& loops = row_loops<T>();
  const bool symmetric = left == right && rows == cols && worth_mirroring(rows, features);
  const int used = worth_threads(rows, cols, features, threads);
  for_row_blocks(rows, used, RowBlock(features),
                 [&](RowBlock& block, std::size_t first, std::size_t count) {
                   const std::size_t j = first_panel(symmetric, first);
                   loops.product_rows(block.pack(left, first, count), count,
                                      packed.data() + j * features, cols - j, features,
                                      out + first * stride + j, stride);
                 });
  if (symmetric) mirror(out, rows, stride, used);
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
  const Loops& table = loops();
  for_row_blocks(
      rows, worth_threads(rows, cols, features + columns, threads),
      BlockSums{RowBlock(features), std::vector<double>(kRows * columns)},
      [&](BlockSums& block, std::size_t first, std::size_t count) {
        const double* packed_rows = block.rows.pack(left, first, count);
        std::vector<double>& sums = block.sums;
        std::fill(sums.begin(), sums.end(), 0.0);
        for (std::size_t p = 0; p < panels; p += kStrip)
          table.apply_strip(packed_rows, packed.data() + p * kPanel * features,
                            std::min(kStrip, panels - p), features,
                            padded_weights.data() + p * kPanel, padded, columns, sums.data());
        std::copy(sums.data(), sums.data() + count * columns, out + first * columns);
      });
}

template <class T>
void kernel_matrix(const KernelSide& left, const KernelSide& right, const FactorSizes& sizes,
                   T* out, std::size_t stride, int threads) {
  if (left.count == 0 || right.count == 0) return;
  const FactorPanels packed(right.factors, right.count, sizes);
  const Factors panels = packed.factors();
  const RowLoops<T>& loops = row_loops<T>();
  const std::size_t entry = sizes.features + sizes.rank + 2 * sizes.thin;
  const bool symmetric = left.count == right.count && same(left.factors, right.factors) &&
                         worth_mirroring(left.count, entry);
  const int used = worth_threads(left.count, right.count, entry, threads);
  for_row_blocks(left.count, used, FactorBlock(sizes),
                 [&](FactorBlock& block, std::size_t first, std::size_t count) {
                   const std::size_t j = first_panel(symmetric, first);
                   const Factors rest{panels.room + j * sizes.features,
                                      panels.high + j * sizes.rank, panels.first + j * sizes.thin,
                                      panels.second + j * sizes.thin};
                   loops.kernel_rows(block.pack(left.factors, first, count), count, rest,
                                     right.count - j, sizes, out + first * stride + j, stride);
                 });
  if (symmetric) mirror(out, left.count, stride, used);
}

void kernel_apply(const KernelSide& left, const KernelSide& right, const FactorSizes& sizes,
                  const double* weights, double* out, int threads) {
  if (left.count == 0 || right.count == 0) return;
  const std::size_t features = sizes.features, rank = sizes.rank, thin = sizes.thin;
  const std::vector<double> packed = pack_panels(right.factors.room, right.count, features);
  const std::size_t panels = panel_count(right.count), padded = panels * kPanel;
  std::vector<double> high_weights(rank * padded, 0.0), first(thin, 0.0), second(thin, 0.0);
  for (std::size_t j = 0; j < right.count; ++j) {
    for (std::size_t r = 0; r < rank; ++r)
      high_weights[r * padded + j] = weights[j] * right.factors.high[j * rank + r];
    for (std::size_t t = 0; t < thin; ++t) {
      first[t] += weights[j] * right.factors.first[j * thin + t];
      second[t] += weights[j] * right.factors.second[j * thin + t];
    }
  }
  const Loops& table = loops();
  for_row_blocks(
      left.count, worth_threads(left.count, right.count, features + rank, threads),
      BlockSums{RowBlock(features), std::vector<double>(kRows * rank)},
      [&](BlockSums& block, std::size_t begin, std::size_t count) {
        const double* packed_rows = block.rows.pack(left.factors.room, begin, count);
        std::fill(block.sums.begin(), block.sums.end(), 0.0);
        for (std::size_t p = 0; p < panels; p += kStrip)
          table.apply_strip(packed_rows, packed.data() + p * kPanel * features,
                            std::min(kStrip, panels - p), features,
                            high_weights.data() + p * kPanel, padded, rank, block.sums.data());
        for (std::size_t i = 0; i < count; ++i) {
          const std::size_t k = begin + i;
          out[k] += dot(left.factors.high + k * rank, block.sums.data() + i * rank, rank) +
                    dot(left.factors.first + k * thin, second.data(), thin) +
                    dot(left.factors.second + k * thin, first.data(), thin);
        }
      });
}

template void max_product<float>(const double*, std::size_t, const double*, std::size_t,
                                 std::size_t, float*, std::size_t, int);
template void max_product<double>(const double*, std::size_t, const double*, std::size_t,
                                  std::size_t, double*, std::size_t, int);
template void kernel_matrix<float>(const KernelSide&, const KernelSide&, const FactorSizes&,
                                   float*, std::size_t, int);
template void kernel_matrix<double>(const KernelSide&, const KernelSide&, const FactorSizes&,
                                    double*, std::size_t, int);

}  // namespace tessella
