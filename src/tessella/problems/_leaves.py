"""The bounds of a problem whose machines are in leaves, from what each leaf contributes.

The machines of different leaves share the parameter and nothing else, so the terms of both bounds
are sums over the leaves, and the gradient is one too:

    Σ κ(w_j) - ½ support(Σ D(w_j))  ≤  OPT  ≤  Σ upper_j(P, w_j).

A leaf contributes its :class:`LeafEvidence`, whose size is that of the parameter, and no leaf is
needed to add up the others.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tessella.cones import Cone, Point
from tessella.problems._saddle_point import Certificate, DualPoint

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class LeafEvidence:
    """What a dual vector of a leaf contributes to the bounds of all leaves.

    Attributes
    ----------
    kappa : float
        Part of the dual value that does not depend on the kernel.
    rounding : float
        Allowance for the rounding of the lower bound.
    upper : float
        Primal value of the leaf, with an allowance for its rounding.
    intercept : ndarray of shape (n_machines,)
        Offsets of the machines of the leaf that attain `upper`.
    gradient : Point or None
        The point D(w) of the leaf, or None if the parameter is fixed or w is zero.
    form : float
        ``wᵀK(P)w`` for a fixed parameter, else 0.
    """

    kappa: float
    rounding: float
    upper: float
    intercept: FloatArray
    gradient: Point | None
    form: float = 0.0

    @classmethod
    def of(cls, point: DualPoint, P: Point) -> LeafEvidence:
        """Return the evidence of a dual vector of a leaf, with a parameter for the upper bound."""
        upper, intercept = point.upper(P)
        fixed = point.problem.fixed is not None
        return cls(
            kappa=point.problem.dual.kappa(point.w),
            rounding=point.rounding_of_lower,
            upper=upper,
            intercept=intercept,
            gradient=None if fixed or not point.w.any() else point.gradient,
            form=point.support if fixed else 0.0,
        )


class SumOfLeaves:
    """The sum of what leaves contribute, and the certificate that follows from it.

    Parameters
    ----------
    cone : Cone
        Cone that contains the parameter.
    evidence : iterable of LeafEvidence
        What leaves contribute; :meth:`add` takes more. The order of the leaves is that of the
        offsets.

    Notes
    -----
    It holds one point of the size of the parameter and the offsets, whatever the number of leaves.
    The lower bound costs one decomposition of that point.

    Examples
    --------
    >>> import numpy as np
    >>> from tessella.kernels import TessellatedKernels
    >>> from tessella.problems import LeafEvidence, SaddlePoint, SumOfLeaves
    >>> from tessella.svm import DualProblem
    >>> X = np.random.default_rng(0).random((60, 2))
    >>> total = None
    >>> for rows in (X[:30], X[30:]):
    ...     kernels = TessellatedKernels().bind(rows)
    ...     dual = DualProblem.regression(rows[:, 0], 1.0, 0.1)
    ...     total = SumOfLeaves(kernels.cone) if total is None else total
    ...     point = SaddlePoint(kernels, dual).at(rows[:, 0] - rows[:, 0].mean())
    ...     total.add(LeafEvidence.of(point, kernels.cone.centre))
    >>> certificate = total.certificate()
    >>> certificate.lower <= certificate.upper
    True
    """

    def __init__(self, cone: Cone, evidence: Iterable[LeafEvidence] = ()) -> None:
        self._cone = cone
        self._kappa = self._form = self._rounding = self._upper = 0.0
        self._gradient: Point | None = None
        self._intercepts: list[FloatArray] = []
        for part in evidence:
            self.add(part)

    def add(self, part: LeafEvidence) -> None:
        """Add the evidence of the next leaf."""
        self._kappa += part.kappa
        self._form += part.form
        self._rounding += part.rounding
        self._upper += part.upper
        self._intercepts.append(part.intercept)
        if part.gradient is not None:
            known = self._gradient
            self._gradient = part.gradient if known is None else known + part.gradient

    @property
    def intercepts(self) -> list[FloatArray]:
        """Offsets of the machines of each leaf."""
        return self._intercepts

    @property
    def gradient(self) -> Point | None:
        """The sum of the points D(w); None if all of them are zero."""
        return self._gradient

    @property
    def lower(self) -> float:
        """Lower bound of the optimum."""
        support = self._form
        if self._gradient is not None:
            support = self._cone.support(self._cone.spectrum(self._gradient))
        return self._kappa - 0.5 * support - self._rounding

    def certificate(self) -> Certificate:
        """Return the bounds that the dual vectors of all leaves prove with the parameter.

        Returns
        -------
        Certificate
            Sum of the upper bounds, the lower bound, and the offsets of all machines.
        """
        intercept = np.concatenate(self._intercepts) if self._intercepts else np.empty(0)
        return Certificate(upper=self._upper, lower=self.lower, intercept=intercept)
