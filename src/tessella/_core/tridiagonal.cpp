#include "tridiagonal.hpp"

#include <algorithm>
#include <vector>

#include "loops.hpp"
#include "threads.hpp"

namespace tessella {

void tridiagonal_forms(const TridiagonalFactors& factors, const double* columns, std::size_t count,
                       double* out, int threads) {
  constexpr std::size_t kWorthThreads = 1 << 20;  // entries below which one thread is faster
  const Loops& table = loops();
  const std::size_t size = factors.size, systems = factors.systems;
  const std::size_t panels = (count + kSolved - 1) / kSolved;
  const bool worthwhile = systems * size * count > kWorthThreads;
  const std::size_t places = thread_places(panels, 1, worthwhile ? threads : 1);
  // The vectors of a panel side by side, in the second-level cache for all matrices.
  std::vector<double> panel_of(places * size * kSolved, 0.0), sums_of(places * systems * kSolved);
  parallel_for(panels, 1, places,
               [&](std::size_t place, std::size_t begin, std::size_t end) noexcept {
                 double* panel = panel_of.data() + place * size * kSolved;
                 double* sums = sums_of.data() + place * systems * kSolved;
                 for (std::size_t p = begin; p < end; ++p) {
                   const std::size_t first = p * kSolved;
                   const std::size_t width = std::min(kSolved, count - first);
                   for (std::size_t j = 0; j < size; ++j)
                     std::copy_n(columns + j * count + first, width, panel + j * kSolved);
                   table.solved_squares(panel, size, factors.ratios, factors.inverses, systems,
                                        sums);
                   for (std::size_t s = 0; s < systems; ++s)
                     std::copy_n(sums + s * kSolved, width, out + s * count + first);
                 }
               });
}

}  // namespace tessella
