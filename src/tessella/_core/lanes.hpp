// Eight doubles that are worked on together.
//
// They are held in the registers of the instruction set that this translation unit is compiled for:
// one of AVX-512, two of AVX2, four of SSE2 or NEON. Intrinsics rather than loops over small
// arrays, because compilers do not reliably keep those in registers, and rather than vector
// extensions, because not every compiler has them. Products are never contracted with sums, so
// every width rounds alike.
//
// Everything here has internal linkage: the file is compiled for several instruction sets, and the
// linker must not take a function of one of them for another.
#pragma once

#include <cstddef>

#if defined(__AVX512F__) || defined(__AVX2__)
#include <immintrin.h>
#elif defined(__x86_64__) || defined(_M_X64)
#include <emmintrin.h>
#elif defined(__aarch64__) || defined(_M_ARM64)
#include <arm_neon.h>
#endif

#if defined(_MSC_VER) && !defined(__clang__)
#define TESSELLA_INLINE __forceinline
#else
#define TESSELLA_INLINE inline __attribute__((always_inline))
#endif

namespace tessella {
namespace TESSELLA_SET {
namespace {

constexpr std::size_t kLanes = 8;

// ---- one register

#if defined(__AVX512F__)

using Register = __m512d;
constexpr std::size_t kRegisters = 32;
TESSELLA_INLINE Register same(double value) { return _mm512_set1_pd(value); }
TESSELLA_INLINE Register read(const double* source) { return _mm512_loadu_pd(source); }
TESSELLA_INLINE Register read(const float* source) {
  return _mm512_cvtps_pd(_mm256_loadu_ps(source));
}
TESSELLA_INLINE void write(Register a, double* target) { _mm512_storeu_pd(target, a); }
TESSELLA_INLINE void write(Register a, float* target) {
  _mm256_storeu_ps(target, _mm512_cvtpd_ps(a));
}
TESSELLA_INLINE Register plus(Register a, Register b) { return _mm512_add_pd(a, b); }
TESSELLA_INLINE Register minus(Register a, Register b) { return _mm512_sub_pd(a, b); }
TESSELLA_INLINE Register times(Register a, Register b) { return _mm512_mul_pd(a, b); }
TESSELLA_INLINE Register over(Register a, Register b) { return _mm512_div_pd(a, b); }
TESSELLA_INLINE Register lower(Register a, Register b) { return _mm512_min_pd(a, b); }
TESSELLA_INLINE Register higher(Register a, Register b) { return _mm512_max_pd(a, b); }
TESSELLA_INLINE Register magnitude(Register a) { return _mm512_abs_pd(a); }
TESSELLA_INLINE Register where_positive(Register sign, Register a) {
  return _mm512_maskz_mov_pd(_mm512_cmp_pd_mask(sign, _mm512_setzero_pd(), _CMP_GT_OQ), a);
}
TESSELLA_INLINE bool some_equal(Register a, Register b) {
  return _mm512_cmp_pd_mask(a, b, _CMP_EQ_OQ) != 0;
}

#elif defined(__AVX2__)

using Register = __m256d;
constexpr std::size_t kRegisters = 16;
TESSELLA_INLINE Register same(double value) { return _mm256_set1_pd(value); }
TESSELLA_INLINE Register read(const double* source) { return _mm256_loadu_pd(source); }
TESSELLA_INLINE Register read(const float* source) {
  return _mm256_cvtps_pd(_mm_loadu_ps(source));
}
TESSELLA_INLINE void write(Register a, double* target) { _mm256_storeu_pd(target, a); }
TESSELLA_INLINE void write(Register a, float* target) { _mm_storeu_ps(target, _mm256_cvtpd_ps(a)); }
TESSELLA_INLINE Register plus(Register a, Register b) { return _mm256_add_pd(a, b); }
TESSELLA_INLINE Register minus(Register a, Register b) { return _mm256_sub_pd(a, b); }
TESSELLA_INLINE Register times(Register a, Register b) { return _mm256_mul_pd(a, b); }
TESSELLA_INLINE Register over(Register a, Register b) { return _mm256_div_pd(a, b); }
TESSELLA_INLINE Register lower(Register a, Register b) { return _mm256_min_pd(a, b); }
TESSELLA_INLINE Register higher(Register a, Register b) { return _mm256_max_pd(a, b); }
TESSELLA_INLINE Register magnitude(Register a) {
  return _mm256_andnot_pd(_mm256_set1_pd(-0.0), a);
}
TESSELLA_INLINE Register where_positive(Register sign, Register a) {
  return _mm256_and_pd(_mm256_cmp_pd(sign, _mm256_setzero_pd(), _CMP_GT_OQ), a);
}
TESSELLA_INLINE bool some_equal(Register a, Register b) {
  return _mm256_movemask_pd(_mm256_cmp_pd(a, b, _CMP_EQ_OQ)) != 0;
}

#elif defined(__x86_64__) || defined(_M_X64)

using Register = __m128d;
constexpr std::size_t kRegisters = 16;
TESSELLA_INLINE Register same(double value) { return _mm_set1_pd(value); }
TESSELLA_INLINE Register read(const double* source) { return _mm_loadu_pd(source); }
TESSELLA_INLINE Register read(const float* source) {
  return _mm_set_pd(static_cast<double>(source[1]), static_cast<double>(source[0]));
}
TESSELLA_INLINE void write(Register a, double* target) { _mm_storeu_pd(target, a); }
TESSELLA_INLINE void write(Register a, float* target) {
  const __m128 rounded = _mm_cvtpd_ps(a);
  _mm_store_ss(target, rounded);
  _mm_store_ss(target + 1, _mm_shuffle_ps(rounded, rounded, 1));
}
TESSELLA_INLINE Register plus(Register a, Register b) { return _mm_add_pd(a, b); }
TESSELLA_INLINE Register minus(Register a, Register b) { return _mm_sub_pd(a, b); }
TESSELLA_INLINE Register times(Register a, Register b) { return _mm_mul_pd(a, b); }
TESSELLA_INLINE Register over(Register a, Register b) { return _mm_div_pd(a, b); }
TESSELLA_INLINE Register lower(Register a, Register b) { return _mm_min_pd(a, b); }
TESSELLA_INLINE Register higher(Register a, Register b) { return _mm_max_pd(a, b); }
TESSELLA_INLINE Register magnitude(Register a) { return _mm_andnot_pd(_mm_set1_pd(-0.0), a); }
TESSELLA_INLINE Register where_positive(Register sign, Register a) {
  return _mm_and_pd(_mm_cmpgt_pd(sign, _mm_setzero_pd()), a);
}
TESSELLA_INLINE bool some_equal(Register a, Register b) {
  return _mm_movemask_pd(_mm_cmpeq_pd(a, b)) != 0;
}

#elif defined(__aarch64__) || defined(_M_ARM64)

using Register = float64x2_t;
constexpr std::size_t kRegisters = 32;
TESSELLA_INLINE Register same(double value) { return vdupq_n_f64(value); }
TESSELLA_INLINE Register read(const double* source) { return vld1q_f64(source); }
TESSELLA_INLINE Register read(const float* source) { return vcvt_f64_f32(vld1_f32(source)); }
TESSELLA_INLINE void write(Register a, double* target) { vst1q_f64(target, a); }
TESSELLA_INLINE void write(Register a, float* target) { vst1_f32(target, vcvt_f32_f64(a)); }
TESSELLA_INLINE Register plus(Register a, Register b) { return vaddq_f64(a, b); }
TESSELLA_INLINE Register minus(Register a, Register b) { return vsubq_f64(a, b); }
TESSELLA_INLINE Register times(Register a, Register b) { return vmulq_f64(a, b); }
TESSELLA_INLINE Register over(Register a, Register b) { return vdivq_f64(a, b); }
// A comparison and a choice, which treat a NaN as the minimum and maximum of x86 do.
TESSELLA_INLINE Register lower(Register a, Register b) {
  return vbslq_f64(vcltq_f64(a, b), a, b);
}
TESSELLA_INLINE Register higher(Register a, Register b) {
  return vbslq_f64(vcgtq_f64(a, b), a, b);
}
TESSELLA_INLINE Register magnitude(Register a) { return vabsq_f64(a); }
TESSELLA_INLINE Register where_positive(Register sign, Register a) {
  return vbslq_f64(vcgtq_f64(sign, vdupq_n_f64(0.0)), a, vdupq_n_f64(0.0));
}
TESSELLA_INLINE bool some_equal(Register a, Register b) {
  const uint64x2_t equal = vceqq_f64(a, b);
  return (vgetq_lane_u64(equal, 0) | vgetq_lane_u64(equal, 1)) != 0;
}

#else

using Register = double;
constexpr std::size_t kRegisters = 16;
TESSELLA_INLINE Register same(double value) { return value; }
TESSELLA_INLINE Register read(const double* source) { return *source; }
TESSELLA_INLINE Register read(const float* source) { return static_cast<double>(*source); }
TESSELLA_INLINE void write(Register a, double* target) { *target = a; }
TESSELLA_INLINE void write(Register a, float* target) { *target = static_cast<float>(a); }
TESSELLA_INLINE Register plus(Register a, Register b) { return a + b; }
TESSELLA_INLINE Register minus(Register a, Register b) { return a - b; }
TESSELLA_INLINE Register times(Register a, Register b) { return a * b; }
TESSELLA_INLINE Register over(Register a, Register b) { return a / b; }
TESSELLA_INLINE Register lower(Register a, Register b) { return a < b ? a : b; }
TESSELLA_INLINE Register higher(Register a, Register b) { return a > b ? a : b; }
TESSELLA_INLINE Register magnitude(Register a) { return a < 0.0 ? -a : a; }
TESSELLA_INLINE Register where_positive(Register sign, Register a) { return sign > 0.0 ? a : 0.0; }
TESSELLA_INLINE bool some_equal(Register a, Register b) { return a == b; }

#endif

// ---- eight doubles

constexpr std::size_t kWidth = sizeof(Register) / sizeof(double);
constexpr std::size_t kParts = kLanes / kWidth;

struct Lanes {
  Register part[kParts];
};

TESSELLA_INLINE Lanes all(double value) {
  Lanes result;
  for (std::size_t k = 0; k < kParts; ++k) result.part[k] = same(value);
  return result;
}

template <class T>
TESSELLA_INLINE Lanes load(const T* source) {
  Lanes result;
  for (std::size_t k = 0; k < kParts; ++k) result.part[k] = read(source + k * kWidth);
  return result;
}

// The first `count` of eight, and zeros for the others.
TESSELLA_INLINE Lanes load_first(const double* source, std::size_t count) {
  if (count == kLanes) return load(source);
  double entry[kLanes] = {};
  for (std::size_t k = 0; k < count; ++k) entry[k] = source[k];
  return load(entry);
}

template <class T>
TESSELLA_INLINE void save(const Lanes& a, T* target) {
  for (std::size_t k = 0; k < kParts; ++k) write(a.part[k], target + k * kWidth);
}

TESSELLA_INLINE Lanes operator+(const Lanes& a, const Lanes& b) {
  Lanes result;
  for (std::size_t k = 0; k < kParts; ++k) result.part[k] = plus(a.part[k], b.part[k]);
  return result;
}

TESSELLA_INLINE Lanes operator-(const Lanes& a, const Lanes& b) {
  Lanes result;
  for (std::size_t k = 0; k < kParts; ++k) result.part[k] = minus(a.part[k], b.part[k]);
  return result;
}

TESSELLA_INLINE Lanes operator*(const Lanes& a, const Lanes& b) {
  Lanes result;
  for (std::size_t k = 0; k < kParts; ++k) result.part[k] = times(a.part[k], b.part[k]);
  return result;
}

TESSELLA_INLINE Lanes operator/(const Lanes& a, const Lanes& b) {
  Lanes result;
  for (std::size_t k = 0; k < kParts; ++k) result.part[k] = over(a.part[k], b.part[k]);
  return result;
}

// a < b ? a : b, that is, b where one of them is a NaN.
TESSELLA_INLINE Lanes lower_of(const Lanes& a, const Lanes& b) {
  Lanes result;
  for (std::size_t k = 0; k < kParts; ++k) result.part[k] = lower(a.part[k], b.part[k]);
  return result;
}

// a > b ? a : b, that is, b where one of them is a NaN.
TESSELLA_INLINE Lanes higher_of(const Lanes& a, const Lanes& b) {
  Lanes result;
  for (std::size_t k = 0; k < kParts; ++k) result.part[k] = higher(a.part[k], b.part[k]);
  return result;
}

TESSELLA_INLINE Lanes magnitude_of(const Lanes& a) {
  Lanes result;
  for (std::size_t k = 0; k < kParts; ++k) result.part[k] = magnitude(a.part[k]);
  return result;
}

// sign > 0 ? a : 0
TESSELLA_INLINE Lanes where_positive(const Lanes& sign, const Lanes& a) {
  Lanes result;
  for (std::size_t k = 0; k < kParts; ++k)
    result.part[k] = where_positive(sign.part[k], a.part[k]);
  return result;
}

TESSELLA_INLINE bool some_equal(const Lanes& a, const Lanes& b) {
  bool found = false;
  for (std::size_t k = 0; k < kParts; ++k) found = found || some_equal(a.part[k], b.part[k]);
  return found;
}

// The sum in the order of the lanes, which is the same for every instruction set.
TESSELLA_INLINE double sum_of(const Lanes& a) {
  double entry[kLanes];
  save(a, entry);
  double sum = 0.0;
  for (std::size_t k = 0; k < kLanes; ++k) sum += entry[k];
  return sum;
}

TESSELLA_INLINE double highest_of(const Lanes& a) {
  double entry[kLanes];
  save(a, entry);
  double top = entry[0];
  for (std::size_t k = 1; k < kLanes; ++k) top = entry[k] > top ? entry[k] : top;
  return top;
}

TESSELLA_INLINE double lowest_of(const Lanes& a) {
  double entry[kLanes];
  save(a, entry);
  double bottom = entry[0];
  for (std::size_t k = 1; k < kLanes; ++k) bottom = entry[k] < bottom ? entry[k] : bottom;
  return bottom;
}

}  // namespace
}  // namespace TESSELLA_SET
}  // namespace tessella
