// Eight doubles that are worked on together.
//
// Compilers map them to the registers of the instruction set at hand: one of AVX-512, two of AVX,
// four of SSE2 or NEON. Written out because loops over small arrays, which mean the same, are not
// reliably kept in registers. Every width rounds alike.
#pragma once

#include <cstddef>
#include <cstring>

#include "simd.hpp"

namespace tessella {

constexpr std::size_t kLanes = 8;

#if defined(__GNUC__)
typedef double Lanes __attribute__((vector_size(kLanes * sizeof(double))));
TESSELLA_INLINE Lanes all(double value) {
  return Lanes{value, value, value, value, value, value, value, value};
}
TESSELLA_INLINE Lanes lower_of(Lanes a, Lanes b) { return a < b ? a : b; }
TESSELLA_INLINE void save(const Lanes& source, float* target) {
  typedef float FloatLanes __attribute__((vector_size(kLanes * sizeof(float))));
  const FloatLanes rounded = __builtin_convertvector(source, FloatLanes);
  std::memcpy(target, &rounded, sizeof rounded);
}
#else
struct Lanes {
  double v[kLanes];
  double operator[](std::size_t k) const { return v[k]; }
};
template <class Operation>
inline Lanes each(const Lanes& a, const Lanes& b, Operation operation) {
  Lanes result;
  for (std::size_t k = 0; k < kLanes; ++k) result.v[k] = operation(a.v[k], b.v[k]);
  return result;
}
inline Lanes operator+(const Lanes& a, const Lanes& b) {
  return each(a, b, [](double x, double y) { return x + y; });
}
inline Lanes operator*(const Lanes& a, const Lanes& b) {
  return each(a, b, [](double x, double y) { return x * y; });
}
inline Lanes& operator+=(Lanes& a, const Lanes& b) { return a = a + b; }
inline Lanes& operator*=(Lanes& a, const Lanes& b) { return a = a * b; }
inline Lanes all(double value) {
  Lanes result;
  for (double& entry : result.v) entry = value;
  return result;
}
inline Lanes lower_of(const Lanes& a, const Lanes& b) {
  return each(a, b, [](double x, double y) { return x < y ? x : y; });
}
inline void save(const Lanes& source, float* target) {
  for (std::size_t k = 0; k < kLanes; ++k) target[k] = static_cast<float>(source[k]);
}
#endif

TESSELLA_INLINE void load(const double* source, Lanes& target) {
  std::memcpy(&target, source, sizeof target);
}
TESSELLA_INLINE void save(const Lanes& source, double* target) {
  std::memcpy(target, &source, sizeof source);
}

}  // namespace tessella
