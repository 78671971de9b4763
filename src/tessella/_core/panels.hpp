// Matrices in the order in which the loops over panels read them, see panel_loops.hpp.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "loops.hpp"

namespace tessella {

inline std::size_t panel_count(std::size_t columns) { return (columns + kPanel - 1) / kPanel; }

// right is (columns, inner), row-major; the last panel is padded with zeros.
inline void pack_panels(const double* right, std::size_t columns, std::size_t inner,
                        std::vector<double>& packed) {
  packed.assign(panel_count(columns) * kPanel * inner, 0.0);
  for (std::size_t j = 0; j < columns; ++j) {
    double* panel = packed.data() + (j / kPanel) * kPanel * inner + j % kPanel;
    for (std::size_t f = 0; f < inner; ++f) panel[f * kPanel] = right[j * inner + f];
  }
}

inline std::vector<double> pack_panels(const double* right, std::size_t columns,
                                       std::size_t inner) {
  std::vector<double> packed;
  pack_panels(right, columns, inner, packed);
  return packed;
}

// The rows of a block side by side, inner dimension outermost as in a panel. Where there are fewer
// than kRows the last one is repeated.
class RowBlock {
 public:
  explicit RowBlock(std::size_t inner) : inner_(inner), packed_(inner * kRows) {}

  const double* pack(const double* left, std::size_t first, std::size_t count) {
    for (std::size_t i = 0; i < kRows; ++i) {
      const double* row = left + (first + std::min(i, count - 1)) * inner_;
      for (std::size_t f = 0; f < inner_; ++f) packed_[f * kRows + i] = row[f];
    }
    return packed_.data();
  }

 private:
  std::size_t inner_;
  std::vector<double> packed_;
};

// The same for all factors of a kernel matrix.
class FactorPanels {
 public:
  FactorPanels() = default;
  FactorPanels(const Factors& right, std::size_t columns, const FactorSizes& sizes) {
    pack(right, columns, sizes);
  }

  // Memory for so many columns, with which pack() allocates nothing.
  void reserve(std::size_t columns, const FactorSizes& sizes) {
    const std::size_t padded = panel_count(columns) * kPanel;
    room_.reserve(padded * sizes.features);
    high_.reserve(padded * sizes.rank);
    first_.reserve(padded * sizes.thin);
    second_.reserve(padded * sizes.thin);
  }

  void pack(const Factors& right, std::size_t columns, const FactorSizes& sizes) {
    pack_panels(right.room, columns, sizes.features, room_);
    pack_panels(right.high, columns, sizes.rank, high_);
    pack_panels(right.first, columns, sizes.thin, first_);
    pack_panels(right.second, columns, sizes.thin, second_);
  }

  Factors factors() const { return {room_.data(), high_.data(), first_.data(), second_.data()}; }

 private:
  std::vector<double> room_, high_, first_, second_;
};

class FactorBlock {
 public:
  explicit FactorBlock(const FactorSizes& sizes)
      : room_(sizes.features), high_(sizes.rank), first_(sizes.thin), second_(sizes.thin) {}

  Factors pack(const Factors& left, std::size_t first, std::size_t count) {
    return {room_.pack(left.room, first, count), high_.pack(left.high, first, count),
            first_.pack(left.first, first, count), second_.pack(left.second, first, count)};
  }

 private:
  RowBlock room_, high_, first_, second_;
};

}  // namespace tessella
