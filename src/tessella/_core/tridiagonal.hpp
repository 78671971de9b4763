// Quadratic forms with the inverses of tridiagonal matrices.
#pragma once

#include <cstddef>

namespace tessella {

// Factors L D Lᵀ of some tridiagonal matrices of one size: for each of them, one after the other,
// the entries of L below the diagonal, of which the first is not used and has to be zero, and the
// inverses of the entries of D.
struct TridiagonalFactors {
  const double* ratios;
  const double* inverses;
  std::size_t systems, size;
};

// out[s, i] = v_iᵀ T_s⁻¹ v_i for every matrix T_s and the vectors v_i = columns[:, i].
//
// `columns` is (size, count) and row-major. Threads divide the vectors, so that the result does not
// depend on how many there are.
void tridiagonal_forms(const TridiagonalFactors& factors, const double* columns, std::size_t count,
                       double* out, int threads);

}  // namespace tessella
