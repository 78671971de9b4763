"""Kernels of the machines of an automatic model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from tessella.automatic._families import FAMILIES
from tessella.estimators import LearnedKernelRidge, LearnedKernelRidgeClassifier
from tessella.estimators._leaf_fit import gradients_of
from tessella.kernels import LearnedKernel, TessellatedKernels

FloatArray = NDArray[np.float64]

_FLOOR = 0.1  # part of the plain kernel of the family in a learned one
_TOL = 0.01  # certified gap of learned kernels; held-out errors do not change below


class MachineKernel(Protocol):
    """A kernel on the coordinates of a space."""

    @property
    def family(self) -> str:
        """Name of the family of the kernel."""
        ...

    @property
    def learned(self) -> bool:
        """Whether the kernel is one whose parameter was learned with a certificate."""
        ...

    def matrix(self, A: FloatArray, B: FloatArray | None = None) -> FloatArray:
        """Return the kernel matrix between the rows of A and those of B, by default those of A."""
        ...

    def slopes(self, A: FloatArray, B: FloatArray, coef: FloatArray) -> FloatArray:
        """Return the gradients of functions at some rows.

        Parameters
        ----------
        A : ndarray of shape (m, n)
            The rows.
        B : ndarray of shape (n_training, n)
            Rows whose kernel functions are added.
        coef : ndarray of shape (n_training, k)
            Coefficients of k functions.

        Returns
        -------
        ndarray of shape (m, k, n)
            Gradient of each function at each row.
        """
        ...


@dataclass(frozen=True, eq=False)
class ScaledKernel:
    """A kernel of a family with a scale for each column.

    Attributes
    ----------
    family : str
        Name of the family.
    scales : ndarray of shape (n_columns,)
        Logarithm of the scale of each column.
    """

    family: str
    scales: FloatArray
    learned = False

    def matrix(self, A: FloatArray, B: FloatArray | None = None) -> FloatArray:
        """See :meth:`MachineKernel.matrix`."""
        K: FloatArray = FAMILIES[self.family].gram(A, self.scales, B)
        return K

    def slopes(self, A: FloatArray, B: FloatArray, coef: FloatArray) -> FloatArray:
        """See :meth:`MachineKernel.slopes`."""
        K, family = self.matrix(A, B), FAMILIES[self.family]
        return np.stack([family.slopes(K * own, A, B, self.scales) for own in coef.T], axis=1)


@dataclass(frozen=True, eq=False)
class CertifiedKernel:
    """A kernel whose positive matrix was learned, with a certificate, on some of the rows.

    Attributes
    ----------
    kernel : LearnedKernel
        The kernel.
    """

    kernel: LearnedKernel
    learned = True

    @property
    def family(self) -> str:
        """Name of the family of the kernel."""
        return str(self.kernel.kernels.family)

    def matrix(self, A: FloatArray, B: FloatArray | None = None) -> FloatArray:
        """See :meth:`MachineKernel.matrix`."""
        K = np.asarray(self.kernel(A, A if B is None else B), dtype=np.float64)
        return 0.5 * (K + K.T) if B is None else K

    def slopes(self, A: FloatArray, B: FloatArray, coef: FloatArray) -> FloatArray:
        """See :meth:`MachineKernel.slopes`; the gradients are those of differences."""
        function = self.kernel.predictor(B, coef)
        return gradients_of(lambda rows: function.scores(rows, n_jobs=1), A)


def learn_kernel(A: FloatArray, Y: FloatArray, C: float, weight: FloatArray) -> LearnedKernel:
    """Learn a tessellated kernel for outputs with the squared loss, to a certified gap.

    Parameters
    ----------
    A : ndarray of shape (m, n)
        Rows in the unit cube.
    Y : ndarray of shape (m, k)
        One output of a regression, or indicators of the classes.
    C : float
        Weight of the loss.
    weight : ndarray of shape (m,)
        Weight of each row.

    Returns
    -------
    LearnedKernel
        The learned kernel. A floor under its positive matrix keeps it universal.
    """
    kernels = TessellatedKernels(degree=1, balance="pointwise", floor=_FLOOR)
    options: dict[str, Any] = {"kernels": kernels, "C": C, "tol": _TOL, "n_jobs": 1}
    if Y.shape[1] == 1:
        model: Any = LearnedKernelRidge(**options).fit(A, Y[:, 0], weight)
    else:
        model = LearnedKernelRidgeClassifier(**options).fit(A, np.argmax(Y, axis=1), weight)
    return model.kernel_  # type: ignore[no-any-return]
