"""Generalised polynomial kernels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tessella.kernels._base import FloatArray
from tessella.kernels._features import FiniteKernelSet
from tessella.kernels._monomials import (
    checked_degree,
    count_monomials,
    exponent_bytes,
    monomials,
)


@dataclass
class PolynomialKernels(FiniteKernelSet):
    """Generalised polynomial kernels ``k(x, y) = Z(x)ᵀ P Z(y)``.

    Z contains all monomials of total degree at most `degree`, so every polynomial kernel of that
    degree is in the set. The set is tractable but not universal: the learned function is a
    polynomial.

    Parameters
    ----------
    degree : int, default=2
        Largest total degree d of the monomials, which gives ``n_params = C(n + d, d)``.

    Examples
    --------
    >>> import numpy as np
    >>> from tessella.kernels import PolynomialKernels
    >>> bound = PolynomialKernels(degree=1).bind([[0.0, 0.5], [1.0, 0.25]])
    >>> bound.gram(np.eye(3)).tolist()
    [[1.25, 1.125], [1.125, 2.0625]]
    """

    degree: int = 2

    family: ClassVar[str | None] = "polynomial"

    def count_params(self, n_features: int) -> int:
        """See :meth:`KernelSet.count_params`; the result is the number of monomials."""
        return count_monomials(n_features, checked_degree(self.degree))

    def memory_estimate(self, n_samples: int, n_features: int, itemsize: int) -> int:
        """See :meth:`KernelSet.memory_estimate`."""
        tables = exponent_bytes(n_features, checked_degree(self.degree))
        return super().memory_estimate(n_samples, n_features, itemsize) + tables

    def count_nodes(self, n_features: int) -> int:
        """See :meth:`FiniteKernelSet.count_nodes`; one, because nothing is integrated."""
        del n_features
        return 1

    def features(self, X: FloatArray) -> FloatArray:
        """Return the monomials of each row, of shape (len(X), 1, n_params)."""
        return monomials(X.shape[1], checked_degree(self.degree))(X)[:, None, :]
