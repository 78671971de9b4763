// Loops over panels, for the instruction set that includes this file.
//
// The right-hand matrix is regrouped in panels of kPanel columns, its inner dimension outermost
// within a panel, so that the innermost loops read contiguous columns. The rows of a block lie side
// by side in the same way: broadcasting an entry is then one load from one pointer.
#pragma once

#include <cstddef>

#include "lanes.hpp"
#include "loops.hpp"

namespace tessella {
namespace TESSELLA_SET {
namespace {

constexpr std::size_t kHalves = kPanel / kLanes;
// Rows whose results for a panel live in registers: half of the registers hold them.
constexpr std::size_t kGroup =
    kHalves * kParts * kRows <= kRegisters / 2 ? kRows : (kParts <= 2 ? kRows / 2 : 1);

template <std::size_t N>
using Block = Lanes[N][kHalves];

TESSELLA_INLINE std::size_t least(std::size_t a, std::size_t b) { return a < b ? a : b; }

template <std::size_t N>
TESSELLA_INLINE void fill(Block<N>& block, double value) {
  for (std::size_t i = 0; i < N; ++i)
    for (std::size_t h = 0; h < kHalves; ++h) block[i][h] = all(value);
}

// block[i][c] = prod_f min(row_i[f], panel[f][c]); entries of a row are `Stride` apart
template <std::size_t N, std::size_t Stride>
TESSELLA_INLINE void min_product(const double* rows, const double* panel, std::size_t inner,
                                 Block<N>& block) {
  fill<N>(block, 1.0);
  for (std::size_t f = 0; f < inner; ++f, panel += kPanel, rows += Stride) {
    Lanes column[kHalves];
    for (std::size_t h = 0; h < kHalves; ++h) column[h] = load(panel + h * kLanes);
    for (std::size_t i = 0; i < N; ++i) {
      const Lanes u = all(rows[i]);
      for (std::size_t h = 0; h < kHalves; ++h)
        block[i][h] = block[i][h] * lower_of(u, column[h]);
    }
  }
}

// block[i][c] = sum_f row_i[f] * panel[f][c]
template <std::size_t N, std::size_t Stride>
TESSELLA_INLINE void dot_product(const double* rows, const double* panel, std::size_t inner,
                                 Block<N>& block) {
  fill<N>(block, 0.0);
  for (std::size_t f = 0; f < inner; ++f, panel += kPanel, rows += Stride) {
    Lanes column[kHalves];
    for (std::size_t h = 0; h < kHalves; ++h) column[h] = load(panel + h * kLanes);
    for (std::size_t i = 0; i < N; ++i) {
      const Lanes u = all(rows[i]);
      for (std::size_t h = 0; h < kHalves; ++h) block[i][h] = block[i][h] + u * column[h];
    }
  }
}

template <std::size_t N, class T>
TESSELLA_INLINE void store(const Block<N>& block, std::size_t count, std::size_t width, T* out,
                           std::size_t stride) {
  for (std::size_t i = 0; i < N; ++i, out += stride) {
    if (i >= count) break;
    if (width == kPanel) {
      for (std::size_t h = 0; h < kHalves; ++h) save(block[i][h], out + h * kLanes);
    } else {
      T whole[kPanel];
      for (std::size_t h = 0; h < kHalves; ++h) save(block[i][h], whole + h * kLanes);
      for (std::size_t c = 0; c < width; ++c) out[c] = whole[c];
    }
  }
}

template <class T>
void product_rows(const double* rows, std::size_t count, const double* panels, std::size_t cols,
                  std::size_t features, T* out, std::size_t stride) {
  for (std::size_t j = 0; j < cols; j += kPanel)
    for (std::size_t g = 0; g < count; g += kGroup) {
      Block<kGroup> block;
      min_product<kGroup, kRows>(rows + g, panels + j * features, features, block);
      store<kGroup>(block, count - g, least(kPanel, cols - j), out + g * stride + j, stride);
    }
}

void apply_strip(const double* rows, const double* panels, std::size_t n_panels,
                 std::size_t features, const double* weights, std::size_t weight_stride,
                 std::size_t columns, double* sums) {
  for (std::size_t g = 0; g < kRows; g += kGroup) {
    Block<kGroup> products[kStrip];
    for (std::size_t p = 0; p < n_panels; ++p)
      min_product<kGroup, kRows>(rows + g, panels + p * kPanel * features, features, products[p]);
    for (std::size_t c = 0; c < columns; ++c) {
      const double* weight = weights + c * weight_stride;
      Block<kGroup> partial;
      fill<kGroup>(partial, 0.0);
      for (std::size_t p = 0; p < n_panels; ++p, weight += kPanel)
        for (std::size_t h = 0; h < kHalves; ++h) {
          const Lanes w = load(weight + h * kLanes);
          for (std::size_t i = 0; i < kGroup; ++i)
            partial[i][h] = partial[i][h] + products[p][i][h] * w;
        }
      for (std::size_t i = 0; i < kGroup; ++i) {
        Lanes pair = partial[i][0];
        for (std::size_t h = 1; h < kHalves; ++h) pair = pair + partial[i][h];
        sums[(g + i) * columns + c] += sum_of(pair);
      }
    }
  }
}

// result = B * (high . high) + first . second + second . first for one panel
template <std::size_t N, std::size_t Stride>
TESSELLA_INLINE void kernel_panel(const Factors& rows, const Factors& panels, std::size_t j,
                                  const FactorSizes& sizes, Block<N>& result) {
  Block<N> factor, mirrored;
  min_product<N, Stride>(rows.room, panels.room + j * sizes.features, sizes.features, result);
  dot_product<N, Stride>(rows.high, panels.high + j * sizes.rank, sizes.rank, factor);
  for (std::size_t i = 0; i < N; ++i)
    for (std::size_t h = 0; h < kHalves; ++h) result[i][h] = result[i][h] * factor[i][h];
  dot_product<N, Stride>(rows.first, panels.second + j * sizes.thin, sizes.thin, factor);
  dot_product<N, Stride>(rows.second, panels.first + j * sizes.thin, sizes.thin, mirrored);
  // The two thin products first: their sum does not change when rows and columns change places.
  for (std::size_t i = 0; i < N; ++i)
    for (std::size_t h = 0; h < kHalves; ++h)
      result[i][h] = result[i][h] + (factor[i][h] + mirrored[i][h]);
}

template <class T>
void kernel_rows(const Factors& rows, std::size_t count, const Factors& panels, std::size_t cols,
                 const FactorSizes& sizes, T* out, std::size_t stride) {
  for (std::size_t j = 0; j < cols; j += kPanel)
    for (std::size_t g = 0; g < count; g += kGroup) {
      const Factors group{rows.room + g, rows.high + g, rows.first + g, rows.second + g};
      Block<kGroup> result;
      kernel_panel<kGroup, kRows>(group, panels, j, sizes, result);
      store<kGroup>(result, count - g, least(kPanel, cols - j), out + g * stride + j, stride);
    }
}

template <class T>
void kernel_row(const Factors& row, const Factors& panels, std::size_t cols,
                const FactorSizes& sizes, T* out) {
  for (std::size_t j = 0; j < cols; j += kPanel) {
    Block<1> result;
    kernel_panel<1, 1>(row, panels, j, sizes, result);
    store<1>(result, 1, least(kPanel, cols - j), out + j, 0);
  }
}

}  // namespace
}  // namespace TESSELLA_SET
}  // namespace tessella
