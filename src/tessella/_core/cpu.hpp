// What the processor and the operating system offer.
#pragma once

namespace tessella {

// Whether code compiled for AVX2, or for AVX-512 with F, BW, CD, DQ and VL, can run here.
bool has_avx2();
bool has_avx512();

}  // namespace tessella
