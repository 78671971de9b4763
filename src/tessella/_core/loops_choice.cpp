// The choice of a table of loops, see loops.hpp.
#include <cstdlib>
#include <stdexcept>
#include <string>

#include "cpu.hpp"
#include "loops.hpp"

namespace tessella {
namespace {

// From narrow to wide.
enum class Set { kBaseline, kAvx2, kAvx512 };

// TESSELLA_SIMD is the widest set that may be used; without it that is the widest there is.
Set widest_allowed() {
  const char* wish = std::getenv("TESSELLA_SIMD");
  const std::string name = wish == nullptr ? "" : wish;
  if (name.empty() || name == "avx512") return Set::kAvx512;
  if (name == "avx2") return Set::kAvx2;
  if (name == "baseline") return Set::kBaseline;
  throw std::invalid_argument("The environment variable TESSELLA_SIMD is \"" + name +
                              "\"; expected baseline, avx2 or avx512.");
}

const Loops& chosen() {
  const Set widest = widest_allowed();
#if defined(TESSELLA_X86_SETS)
  if (widest >= Set::kAvx512 && has_avx512()) return avx512::kLoops;
  if (widest >= Set::kAvx2 && has_avx2()) return avx2::kLoops;
#else
  static_cast<void>(widest);
#endif
  return baseline::kLoops;
}

}  // namespace

const Loops& loops() {
  static const Loops& table = chosen();
  return table;
}

}  // namespace tessella
