// The routines of BLAS and LAPACK that the core calls. They are those of SciPy, which Python hands
// over as pointers, so that the core links to no library of its own.
#pragma once

#include <cstddef>

namespace tessella {

struct LinearAlgebra {
  using Product = void (*)(char*, char*, int*, int*, int*, double*, double*, int*, double*, int*,
                           double*, double*, int*);
  using TimesVector = void (*)(char*, int*, int*, double*, double*, int*, double*, int*, double*,
                               double*, int*);
  using RankUpdate = void (*)(char*, char*, int*, int*, double*, double*, int*, double*, double*,
                              int*);
  using RankTwoUpdate = void (*)(char*, char*, int*, int*, double*, double*, int*, double*, int*,
                                 double*, double*, int*);
  using SymmetricTimes = void (*)(char*, int*, double*, double*, int*, double*, int*, double*,
                                  double*, int*);
  using Cholesky = void (*)(char*, int*, double*, int*, int*);
  using CholeskySolve = void (*)(char*, int*, int*, double*, int*, double*, int*, int*);
  using Eigenvalues = void (*)(char*, char*, int*, double*, int*, double*, double*, int*, int*);
  using SingularValues = void (*)(char*, char*, int*, int*, double*, int*, double*, double*, int*,
                                  double*, int*, double*, int*, int*);

  Product dgemm = nullptr;
  TimesVector dgemv = nullptr;
  RankUpdate dsyrk = nullptr;
  RankTwoUpdate dsyr2k = nullptr;
  SymmetricTimes dsymv = nullptr;
  Cholesky dpotrf = nullptr;
  CholeskySolve dpotrs = nullptr;
  Eigenvalues dsyev = nullptr;
  SingularValues dgesvd = nullptr;

  bool complete() const {
    return dgemm && dgemv && dsyrk && dsyr2k && dsymv && dpotrf && dpotrs && dsyev && dgesvd;
  }
};

}  // namespace tessella
