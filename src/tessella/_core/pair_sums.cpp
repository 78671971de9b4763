#include "pair_sums.hpp"

#include "loops.hpp"
#include "threads.hpp"

namespace tessella {

void absolute_pair_sums(const double* weights, const double* columns, std::size_t count,
                        std::size_t features, double* out, int threads) {
  constexpr std::size_t kWorthThreads = 1 << 21;  // pairs below which one thread is faster
  const Loops& table = loops();
  const bool worthwhile = features * count * count > kWorthThreads;
  parallel_for(features, 1, thread_places(features, 1, worthwhile ? threads : 1),
               [&](std::size_t, std::size_t begin, std::size_t end) noexcept {
                 for (std::size_t f = begin; f < end; ++f) {
                   const double* column = columns + f * count;
                   double sum = 0.0;
                   for (std::size_t i = 1; i < count; ++i)
                     sum += table.absolute_sum(weights + i * count, column, column[i], i);
                   out[f] = 2.0 * sum;
                 }
               });
}

}  // namespace tessella
