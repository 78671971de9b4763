// Register blocks: some rows of one matrix against a panel of columns of another.
//
// The right-hand matrix is regrouped in panels of kPanel columns, its inner dimension outermost
// within a panel, so that the innermost loops read contiguous columns, and a block of
// kRows x kPanel results lives in registers.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "lanes.hpp"

namespace tessella {

constexpr std::size_t kHalves = 2;
constexpr std::size_t kPanel = kHalves * kLanes;
constexpr std::size_t kRows = 4;

using Block = Lanes[kRows][kHalves];

inline std::size_t panel_count(std::size_t columns) { return (columns + kPanel - 1) / kPanel; }

// right is (columns, inner), row-major; the last panel is padded with zeros.
inline std::vector<double> pack_panels(const double* right, std::size_t columns,
                                       std::size_t inner) {
  std::vector<double> packed(panel_count(columns) * kPanel * inner, 0.0);
  for (std::size_t j = 0; j < columns; ++j) {
    double* panel = packed.data() + (j / kPanel) * kPanel * inner + j % kPanel;
    for (std::size_t f = 0; f < inner; ++f) panel[f * kPanel] = right[j * inner + f];
  }
  return packed;
}

// The rows of a block side by side, inner dimension outermost as in a panel: broadcasting an entry
// is then one load from one pointer. Where there are fewer than kRows the last one is repeated.
class RowBlock {
 public:
  RowBlock(const double* left, std::size_t first, std::size_t count, std::size_t inner)
      : packed_(inner * kRows) {
    for (std::size_t i = 0; i < kRows; ++i) {
      const double* row = left + (first + std::min(i, count - 1)) * inner;
      for (std::size_t f = 0; f < inner; ++f) packed_[f * kRows + i] = row[f];
    }
  }
  const double* data() const { return packed_.data(); }

 private:
  std::vector<double> packed_;
};

// block[i][c] = prod_f min(row_i[f], panel[f][c])
TESSELLA_INLINE void min_product(const RowBlock& rows, const double* panel, std::size_t inner,
                                 Block& block) {
  for (std::size_t i = 0; i < kRows; ++i)
    for (std::size_t h = 0; h < kHalves; ++h) block[i][h] = all(1.0);
  const double* entry = rows.data();
  for (std::size_t f = 0; f < inner; ++f, panel += kPanel, entry += kRows) {
    Lanes column[kHalves];
    for (std::size_t h = 0; h < kHalves; ++h) load(panel + h * kLanes, column[h]);
    for (std::size_t i = 0; i < kRows; ++i) {
      const Lanes u = all(entry[i]);
      for (std::size_t h = 0; h < kHalves; ++h) block[i][h] *= lower_of(u, column[h]);
    }
  }
}

// block[i][c] += sum_f row_i[f] * panel[f][c]
TESSELLA_INLINE void add_dot_product(const RowBlock& rows, const double* panel,
                                     std::size_t inner, Block& block) {
  const double* entry = rows.data();
  for (std::size_t f = 0; f < inner; ++f, panel += kPanel, entry += kRows) {
    Lanes column[kHalves];
    for (std::size_t h = 0; h < kHalves; ++h) load(panel + h * kLanes, column[h]);
    for (std::size_t i = 0; i < kRows; ++i) {
      const Lanes u = all(entry[i]);
      for (std::size_t h = 0; h < kHalves; ++h) block[i][h] += u * column[h];
    }
  }
}

TESSELLA_INLINE void clear(Block& block) {
  for (std::size_t i = 0; i < kRows; ++i)
    for (std::size_t h = 0; h < kHalves; ++h) block[i][h] = all(0.0);
}

template <class T>
TESSELLA_INLINE void store(const Block& block, std::size_t count, std::size_t width, T* out,
                           std::size_t stride) {
  for (std::size_t i = 0; i < count; ++i, out += stride) {
    if (width == kPanel) {
      for (std::size_t h = 0; h < kHalves; ++h) save(block[i][h], out + h * kLanes);
    } else {
      T whole[kPanel];
      for (std::size_t h = 0; h < kHalves; ++h) save(block[i][h], whole + h * kLanes);
      std::copy(whole, whole + width, out);
    }
  }
}

}  // namespace tessella
