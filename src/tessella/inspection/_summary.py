"""Facts about a fitted model, collected in one place for everything that displays a model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tessella.cones import is_factor
from tessella.inspection._names import feature_names
from tessella.kernels import (
    FittedDictionary,
    FunctionKernel,
    IntegralKernels,
    KernelSet,
    KernelsOnFeatures,
    KernelSum,
    LearnedKernel,
    PolynomialKernels,
    TessellatedKernels,
    basis_functions,
    kernel_name,
)
from tessella.kernels._names import shortened_list

FloatArray = NDArray[np.float64]

#: Certified relative gap above which a model that stopped early should not be used.
LARGEST_USABLE_GAP = 0.1

_QUICK_SECONDS = 0.25  # longest time for computing the relevance when a model is displayed
_QUICK_SIDE = 400  # largest number of rows of a P whose rank is computed for a display
_PER_KERNEL = 0.008  # microseconds for a value of a Gaussian or a polynomial kernel
_LEVELS = 16  # levels of a feature in the table from which the relevance is computed


def is_far_from_optimal(gap: float, tol: float) -> bool:
    """Return whether a fit stopped so far from its optimum that its model should not be used.

    Such a model can be worse than a constant, because its kernel and its machine are those of the
    first steps of a solver. A tolerance that is larger than the limit was asked for, so it counts.
    """
    return not gap <= max(tol, LARGEST_USABLE_GAP)


@dataclass(frozen=True, eq=False)
class KernelPart:
    """A part of a learned kernel that has one matrix or one vector of weights as its parameter.

    Attributes
    ----------
    kernels : KernelSet
        Kernel set of the part.
    parameter : ndarray
        Positive semidefinite matrix P of the part, or a factor U of P = U Uᵀ with fewer columns
        than rows, or the weights of the part.
    columns : ndarray of int
        Columns of the data that the part sees.
    n_features : int
        Number of columns of the data.
    share : float
        Share of the part in the trace of all parameters; the shares of a kernel sum to one.
    """

    kernels: KernelSet
    parameter: FloatArray
    columns: NDArray[np.intp]
    n_features: int
    share: float

    @property
    def is_matrix(self) -> bool:
        """Whether the parameter is a matrix, and not weights."""
        return self.parameter.ndim == 2

    def name(self, names: Sequence[str]) -> str:
        """Return a name with the settings of the part and the features that it sees."""
        if isinstance(self.kernels, FittedDictionary):
            text = f"KernelDictionary of {len(self.kernels)} kernels"
        else:
            text = kernel_name(self.kernels, names)
        if len(self.columns) == self.n_features:
            return text
        return f"{text} of {shortened_list([names[j] for j in self.columns])}"


def kernel_parts(kernel: LearnedKernel) -> list[KernelPart]:
    """Return the parts of a learned kernel: one, or those of a sum of kernel sets."""
    return _parts(kernel.kernels, kernel.parameter, kernel.box.kept, kernel.n_features_in)


def _parts(
    kernels: KernelSet, parameter: Any, columns: NDArray[np.intp], n_features: int
) -> list[KernelPart]:
    if isinstance(kernels, KernelsOnFeatures):
        return _parts(kernels.kernels, parameter, columns[list(kernels.features)], n_features)
    if isinstance(kernels, KernelSum):
        each = zip(kernels.parts, parameter, strict=True)
        return [part for own in each for part in _parts(*own, columns, n_features)]
    share = kernels.cone(len(columns)).trace(parameter)
    return [KernelPart(kernels, parameter, columns, n_features, share)]


@dataclass(frozen=True)
class Facts:
    """The certificate and the size of a fitted model.

    Values that a model does not provide are None.

    Attributes
    ----------
    objective : float
        Certified upper bound on the optimum.
    lower_bound : float
        Certified lower bound on the optimum.
    gap : float
        Difference of the two bounds, relative to the objective.
    worst_gap : float or None
        Largest gap of a single kernel at its last record, if several kernels were learned
        separately. The final gap of each kernel is at most this value.
    tol : float
        Gap at which the fit was to stop.
    status : str
        Reason why the solver stopped, as in ``status_``.
    iterations : int
        Number of iterations of the solver.
    solver : str or None
        Name of the solver.
    weighting : str or None
        Rule that determined the weights of several kernels.
    svm_solves : int or None
        Number of support vector machines that were solved.
    newton_steps : int or None
        Number of Newton steps.
    seconds : float or None
        Duration of the fit.
    rows : int or None
        Number of training rows.
    features : int or None
        Number of features.
    support_vectors : int
        Number of support vectors. A model of several leaves has them in its leaves, and others in
        its base function.
    n_leaves : int or None
        Number of leaves of all trees, for a model of several leaves.
    n_trees : int or None
        Number of trees, whose predictions are averaged.
    kernels : tuple of tuple of KernelPart
        Parts of each learned kernel. Most models have one kernel with one part. A sum of kernel
        sets has several parts, and a model with separate pairs of classes has several kernels.
    """

    objective: float
    lower_bound: float
    gap: float
    worst_gap: float | None
    tol: float
    status: str
    iterations: int
    solver: str | None
    weighting: str | None
    svm_solves: int | None
    newton_steps: int | None
    seconds: float | None
    rows: int | None
    features: int | None
    support_vectors: int
    n_leaves: int | None
    n_trees: int | None
    kernels: tuple[tuple[KernelPart, ...], ...]

    @property
    def within_tol(self) -> bool:
        """Whether the gap is at most the tolerance."""
        return bool(self.gap <= self.tol)

    @property
    def is_usable(self) -> bool:
        """Whether the fit came so far that its model may be used."""
        return not is_far_from_optimal(self.gap, self.tol)

    @property
    def matrices(self) -> list[list[FloatArray]]:
        """Matrices of the parts that have one, or factors: for each part, one for each kernel."""
        parts = zip(*self.kernels, strict=True)
        return [[part.parameter for part in own] for own in parts if own[0].is_matrix]

    @property
    def matrix_sides(self) -> list[int]:
        """Number of rows of P of each part that has a matrix."""
        return [len(own[0]) for own in self.matrices]

    @property
    def n_weights(self) -> int:
        """Number of weights of all dictionaries of a kernel."""
        parts = self.kernels[0] if self.kernels else ()
        return sum(len(part.parameter) for part in parts if not part.is_matrix)

    @property
    def ranks_are_quick(self) -> bool:
        """Whether the ranks can be computed without a noticeable delay."""
        sizes = (float(len(P)) * P.shape[1] ** 2 for own in self.matrices for P in own)
        return bool(sum(sizes) <= _QUICK_SIDE**3)

    def matrix_ranks(self) -> list[list[int]]:
        """Return the numerical ranks of the matrices."""
        return [[_rank(P) for P in own] for own in self.matrices]


def _rank(P: FloatArray) -> int:
    """Return the numerical rank of a matrix, or of U Uᵀ for a factor U of it."""
    if not is_factor(P):
        return int(np.linalg.matrix_rank(P, hermitian=True))
    squares = np.linalg.svd(P, compute_uv=False) ** 2
    return int((squares > len(P) * np.finfo(float).eps * squares.max(initial=0.0)).sum())


def facts_of(model: Any) -> Facts:
    """Collect the facts of a fitted model from its attributes, without computing anything.

    Parameters
    ----------
    model : fitted estimator of this library
        Model with a learned kernel or a weighted sum of kernels.

    Returns
    -------
    Facts
        The certificate and the size of the model.

    Raises
    ------
    AttributeError
        If the model is not fitted.
    """
    histories = _as_list(getattr(model, "history_", None))
    ends = [history[-1] for history in histories if history]
    several = len(histories) > 1
    partition = model.leaves_.partition if hasattr(model, "leaves_") else None
    return Facts(
        objective=float(model.objective_),
        lower_bound=float(model.lower_bound_),
        gap=float(model.gap_),
        worst_gap=max(end.gap for end in ends) if several and ends else None,
        tol=float(model.tol),
        status=str(model.status_),
        iterations=int(model.n_iter_),
        solver=getattr(model, "solver_", None),
        weighting=getattr(model, "weighting", None),
        svm_solves=sum(end.n_svm for end in ends) if ends else None,
        newton_steps=sum(end.n_newton for end in ends) if ends else None,
        seconds=sum(end.time for end in ends) if ends else None,
        rows=getattr(model, "_n_rows", None),
        features=getattr(model, "n_features_in_", None),
        support_vectors=len(model.support_vectors_),
        n_leaves=None if partition is None else partition.n_leaves,
        n_trees=None if partition is None else partition.n_trees,
        kernels=tuple(tuple(kernel_parts(kernel)) for kernel in _as_list(model.kernel_)),
    )


def _as_list(value: Any) -> list[Any]:
    """Return a list unchanged, None as an empty list, and anything else as a list of one item."""
    if value is None:
        return []
    return value if isinstance(value, list) else [value]


# ------------------------------------------------------------------------------ relevance


def quick_relevance(model: Any) -> FloatArray | None:
    """Return ``feature_relevance_`` if it is known or quick to compute, and None otherwise."""
    known = vars(model).get("feature_relevance_")
    if known is None and relevance_seconds(model) <= _QUICK_SECONDS:
        known = model.feature_relevance_
    return None if known is None else np.asarray(known)


def quick_linear_share(model: Any) -> float | None:
    """Return ``linear_share_`` if it is known or quick to compute, and None otherwise."""
    known = vars(model).get("linear_share_")
    if known is None and _kernel_is_quick(model):
        known = getattr(model, "linear_share_", None)
    return None if known is None else float(known)


def _kernel_is_quick(model: Any) -> bool:
    """Return whether a small kernel matrix takes no noticeable time."""
    parts = [part for kernel in _as_list(model.kernel_) for part in kernel_parts(kernel)]
    slow = (FunctionKernel, IntegralKernels)
    return not any(
        isinstance(own, slow)
        for part in parts
        for own in (part.kernels, *getattr(part.kernels, "kernels", ()))
    )


def relevance_seconds(model: Any) -> float:
    """Estimate the time for computing the relevance of the features on one core.

    The estimate is based on measurements. A value of the learned function costs, for a family of
    kernels, a fixed time, a time for each row of P, and a time for each feature of each support
    vector. For a dictionary it costs a time for each support vector and each kernel that has a
    weight. The cost of a kernel that is defined in Python is not known and is assumed to be high.
    """
    parts = [part for kernel in _as_list(model.kernel_) for part in kernel_parts(kernel)]
    count, width = model.support_vectors_.shape
    microseconds = sum(_microseconds(part, count) for part in parts)
    return float(1e-6 * microseconds * len(model._sample_rows) * _LEVELS * width)


def _microseconds(part: KernelPart, n_support: int) -> float:
    """Estimate the time for one value of the learned function."""
    kernels, width = part.kernels, len(part.columns)
    if isinstance(kernels, TessellatedKernels | PolynomialKernels):
        return 0.3 + 0.015 * len(part.parameter) + 7.5e-5 * n_support * width
    if not isinstance(kernels, FittedDictionary):
        return np.inf
    used = [kernels.kernels[k] for k in np.flatnonzero(part.parameter)]
    if any(isinstance(kernel, FunctionKernel) for kernel in used):
        return np.inf
    return 0.3 + _PER_KERNEL * n_support * len(used)


# ---------------------------------------------------------------------------- weights


def part_shares(model: Any) -> list[tuple[str, float]]:
    """Return the names and shares of the parts of a sum of kernel sets, in the order of the sum.

    Parameters
    ----------
    model : fitted estimator of this library
        Model whose shares are returned. If it has a kernel for each pair of classes, the shares
        are means over the pairs.

    Returns
    -------
    list of (str, float)
        Names and shares, which sum to one. The list has one entry if the kernels are not a sum.
    """
    names = feature_names(model, model.n_features_in_)
    kernels = [kernel_parts(kernel) for kernel in _as_list(model.kernel_)]
    return [
        (own[0].name(names), float(np.mean([part.share for part in own])))
        for own in zip(*kernels, strict=True)
    ]


def kernel_weights(model: Any) -> list[tuple[str, float]]:
    """Return the names and weights of the kernels of all dictionaries of a model.

    Parameters
    ----------
    model : fitted estimator of this library
        Model whose weights are returned. Features have their names if the model knows them. If it
        has weights for each pair of classes, they are means over the pairs.

    Returns
    -------
    list of (str, float)
        Names and weights of the kernels whose weight is not zero, in the order of decreasing
        weights. The list is empty if the kernels of the model have no dictionary.
    """
    names = feature_names(model, model.n_features_in_)
    kernels = [kernel_parts(kernel) for kernel in _as_list(model.kernel_)]
    found: dict[str, float] = {}
    for part in (part for parts in kernels for part in parts if not part.is_matrix):
        for name, weight in zip(_names_of_weights(part, names), part.parameter, strict=True):
            found[name] = found.get(name, 0.0) + float(weight) / len(kernels)
    used = [(name, weight) for name, weight in found.items() if weight > 0]
    return sorted(used, key=lambda pair: -pair[1])


def _names_of_weights(part: KernelPart, names: Sequence[str]) -> list[str]:
    seen = [names[j] for j in part.columns]
    own = [function.monomial for function in basis_functions(part.kernels, seen)]
    if len(part.columns) == part.n_features:
        return own
    return [name if " of " in name else f"{name} of {shortened_list(seen)}" for name in own]
