// Run-time choice of vector width.
//
// A function marked TESSELLA_SIMD is compiled once per instruction set and the loader picks the
// widest one the processor has, so one portable binary serves every x86-64 machine. Elsewhere
// (aarch64, where NEON is the baseline, or platforms without ifunc) the marker is empty.
#pragma once

#if defined(__x86_64__) && defined(__linux__) && defined(__GLIBC__) && defined(__GNUC__) && \
    !defined(__clang__)
#define TESSELLA_SIMD \
  __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define TESSELLA_SIMD
#endif

// For the body shared by several TESSELLA_SIMD functions: it takes on the caller's instruction set.
#if defined(__GNUC__)
#define TESSELLA_INLINE inline __attribute__((always_inline))
#else
#define TESSELLA_INLINE inline
#endif
