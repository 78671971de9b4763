#include "sensitivity_sums.hpp"

#include <algorithm>

#include "threads.hpp"

namespace tessella {
namespace {

std::size_t group_of(const SensitivityProducts& all, std::size_t sample) {
  const std::int64_t* end = all.starts + all.groups;
  const auto wanted = static_cast<std::int64_t>(sample);
  return static_cast<std::size_t>(std::upper_bound(all.starts, end, wanted) - all.starts) - 1;
}

void sum_row(const SensitivityProducts& all, std::size_t row, double* out) {
  const std::size_t count = all.count, width = count - all.first, sample = all.first + row;
  const std::size_t own = group_of(all, sample);
  const auto pair = [&](std::size_t theirs, std::size_t ours) {
    return all.pairs + ((theirs * 3 + ours) * all.rows + row) * width;
  };
  const double *aa = pair(0, 0), *gg = pair(1, 1), *ll = pair(2, 2), *ag = pair(1, 0);
  const double *ga = pair(0, 1), *al = pair(2, 0), *la = pair(0, 2), *gl = pair(2, 1);
  const double* lg = pair(1, 2);
  // Products of the other samples with the h of this one.
  const double *their_ah = all.ah + own * count, *their_gh = all.gh + own * count;
  const double* their_lh = all.lh + own * count;
  for (std::size_t group = group_of(all, all.first); group < all.groups; ++group) {
    const double our_ah = all.ah[group * count + sample], our_gh = all.gh[group * count + sample];
    const double our_lh = all.lh[group * count + sample], hh = all.hh[own * all.groups + group];
    const std::size_t begin = std::max(static_cast<std::size_t>(all.starts[group]), all.first);
    const std::size_t end = static_cast<std::size_t>(all.starts[group + 1]);
    for (std::size_t j = begin; j < end; ++j) {
      const std::size_t k = j - all.first;
      out[sample * count + j] =
          0.5 * (aa[k] * gg[k] + ag[k] * ga[k] + al[k] * our_gh + our_ah * gl[k] +
                 la[k] * their_gh[j] + their_ah[j] * lg[k] + ll[k] * hh + our_lh * their_lh[j]);
    }
  }
}

}  // namespace

void sum_sensitivities(const SensitivityProducts& all, double* out, int threads) {
  constexpr std::size_t kWorthThreads = 1 << 16;  // entries below which one thread is faster
  const bool worthwhile = all.rows * (all.count - all.first) > kWorthThreads;
  parallel_for(all.rows, 1, thread_places(all.rows, 1, worthwhile ? threads : 1),
               [&](std::size_t, std::size_t begin, std::size_t end) noexcept {
                 for (std::size_t row = begin; row < end; ++row) sum_row(all, row, out);
               });
  const std::size_t after = all.first + all.rows;
  for (std::size_t j = after; j < all.count; ++j)
    for (std::size_t i = all.first; i < after; ++i) out[j * all.count + i] = out[i * all.count + j];
}

}  // namespace tessella
