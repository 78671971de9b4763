#include "cpu.hpp"

#include <cstdint>

#if defined(__x86_64__) || defined(_M_X64)
#if defined(_MSC_VER)
#include <intrin.h>
#else
#include <cpuid.h>
#endif
#define TESSELLA_X86
#endif

namespace tessella {
namespace {

#if defined(TESSELLA_X86)

struct Words {
  std::uint32_t a, b, c, d;
};

Words cpuid(std::uint32_t leaf) {
#if defined(_MSC_VER)
  int words[4];
  __cpuidex(words, static_cast<int>(leaf), 0);
  return {static_cast<std::uint32_t>(words[0]), static_cast<std::uint32_t>(words[1]),
          static_cast<std::uint32_t>(words[2]), static_cast<std::uint32_t>(words[3])};
#else
  Words words{0, 0, 0, 0};
  __cpuid_count(leaf, 0, words.a, words.b, words.c, words.d);
  return words;
#endif
}

// The registers that the operating system saves when it switches between threads. The processor
// may know wider ones, which must not be used then.
std::uint32_t saved_registers() {
#if defined(_MSC_VER)
  return static_cast<std::uint32_t>(_xgetbv(0));
#else
  std::uint32_t low, high;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return low;
#endif
}

constexpr std::uint32_t bit(int position) { return std::uint32_t{1} << position; }

constexpr bool has_all(std::uint32_t word, std::uint32_t wanted) {
  return (word & wanted) == wanted;
}

struct Features {
  bool avx2 = false, avx512 = false;
};

Features detected() {
  Features found;
  constexpr std::uint32_t kXsave = bit(27), kAvx = bit(28);      // leaf 1, third word
  constexpr std::uint32_t kAvx2 = bit(5);                        // leaf 7, second word
  constexpr std::uint32_t kAvx512 =                              // F, DQ, CD, BW, VL
      bit(16) | bit(17) | bit(28) | bit(30) | bit(31);
  constexpr std::uint32_t kWide = bit(1) | bit(2);               // xmm and ymm
  constexpr std::uint32_t kWidest = kWide | bit(5) | bit(6) | bit(7);  // masks and zmm
  if (cpuid(0).a < 7 || !has_all(cpuid(1).c, kXsave | kAvx)) return found;
  const std::uint32_t saved = saved_registers(), features = cpuid(7).b;
  found.avx2 = has_all(saved, kWide) && has_all(features, kAvx2);
  found.avx512 = found.avx2 && has_all(saved, kWidest) && has_all(features, kAvx512);
  return found;
}

const Features& features() {
  static const Features found = detected();
  return found;
}

#endif

}  // namespace

#if defined(TESSELLA_X86)
bool has_avx2() { return features().avx2; }
bool has_avx512() { return features().avx512; }
#else
bool has_avx2() { return false; }
bool has_avx512() { return false; }
#endif

}  // namespace tessella
