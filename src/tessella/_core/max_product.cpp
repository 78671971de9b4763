#include "max_product.hpp"

#include <algorithm>
#include <vector>

#include "simd.hpp"

namespace tessella {
namespace {

constexpr std::size_t kPanel = 16;  // columns whose products live in registers together
constexpr std::size_t kRows = 4;    // rows that share one load of a panel
constexpr std::size_t kWorthThreads = 1 << 18;

// Columns regrouped in panels of kPanel, features outermost inside a panel, so that the inner
// loop reads one contiguous stream. The last panel is padded with zeros.
std::vector<double> pack_panels(const double* right, std::size_t cols, std::size_t features) {
  const std::size_t panels = (cols + kPanel - 1) / kPanel;
  std::vector<double> packed(panels * kPanel * features, 0.0);
  for (std::size_t j = 0; j < cols; ++j) {
    double* panel = packed.data() + (j / kPanel) * kPanel * features + j % kPanel;
    for (std::size_t f = 0; f < features; ++f) panel[f * kPanel] = right[j * features + f];
  }
  return packed;
}

TESSELLA_SIMD
void row_block(const double* left, std::size_t count, const double* packed, std::size_t cols,
               std::size_t features, double* buffer, std::size_t buffer_stride) {
  const double* rows[kRows];
  for (std::size_t i = 0; i < kRows; ++i) rows[i] = left + std::min(i, count - 1) * features;
  const std::size_t panels = (cols + kPanel - 1) / kPanel;
  for (std::size_t p = 0; p < panels; ++p) {
    const double* panel = packed + p * kPanel * features;
    double acc[kRows][kPanel];
    for (std::size_t i = 0; i < kRows; ++i)
      for (std::size_t c = 0; c < kPanel; ++c) acc[i][c] = 1.0;
    for (std::size_t f = 0; f < features; ++f) {
      const double* column = panel + f * kPanel;
      for (std::size_t i = 0; i < kRows; ++i) {
        const double u = rows[i][f];
        for (std::size_t c = 0; c < kPanel; ++c)
          acc[i][c] *= u < column[c] ? u : column[c];
      }
    }
    for (std::size_t i = 0; i < count; ++i)
      std::copy(acc[i], acc[i] + kPanel, buffer + i * buffer_stride + p * kPanel);
  }
}

}  // namespace

template <class T>
void max_product(const double* left, std::size_t rows, const double* right, std::size_t cols,
                 std::size_t features, T* out, std::size_t stride, int threads) {
  if (rows == 0 || cols == 0) return;
  const std::vector<double> packed = pack_panels(right, cols, features);
  const std::size_t padded = (cols + kPanel - 1) / kPanel * kPanel;
  const auto blocks = static_cast<std::ptrdiff_t>((rows + kRows - 1) / kRows);
  // Waking threads for less than some tens of microseconds of work costs more than it saves,
  // and far more where several processes share the cores.
  const bool worthwhile = rows * cols * (features + 2) > kWorthThreads;
#pragma omp parallel num_threads(threads) if (worthwhile)
  {
    std::vector<double> buffer(kRows * padded);
#pragma omp for schedule(static)
    for (std::ptrdiff_t block = 0; block < blocks; ++block) {
      const std::size_t first = static_cast<std::size_t>(block) * kRows;
      const std::size_t count = std::min(kRows, rows - first);
      row_block(left + first * features, count, packed.data(), cols, features, buffer.data(),
                padded);
      for (std::size_t i = 0; i < count; ++i) {
        const double* source = buffer.data() + i * padded;
        T* target = out + (first + i) * stride;
        for (std::size_t j = 0; j < cols; ++j) target[j] = static_cast<T>(source[j]);
      }
    }
  }
}

template void max_product<float>(const double*, std::size_t, const double*, std::size_t,
                                 std::size_t, float*, std::size_t, int);
template void max_product<double>(const double*, std::size_t, const double*, std::size_t,
                                  std::size_t, double*, std::size_t, int);

}  // namespace tessella
