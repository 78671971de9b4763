"""Facts about a fitted model, collected in one place for everything that displays a model."""

from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tessella.inspection._names import feature_names
from tessella.kernels import PolynomialKernels, TessellatedKernels

FloatArray = NDArray[np.float64]

_QUICK_SECONDS = 0.25  # longest time for computing the relevance when a model is displayed
_QUICK_SIDE = 400  # largest number of rows of a P whose rank is computed for a display
_LEVELS = 16  # levels of a feature in the table from which the relevance is computed
_FEW_NAMES = 3  # names of features shown in the name of a kernel


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
        Number of support vectors.
    matrices : tuple of ndarray
        Matrix P of each learned kernel. Most models have one; weighted sums of given kernels have
        none.
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
    matrices: tuple[FloatArray, ...]

    @property
    def within_tol(self) -> bool:
        """Whether the gap is at most the tolerance."""
        return bool(self.gap <= self.tol)

    @property
    def matrix_side(self) -> int | None:
        """Number of rows of P, which is the same for all kernels of a model."""
        return len(self.matrices[0]) if self.matrices else None

    @property
    def ranks_are_quick(self) -> bool:
        """Whether the ranks can be computed without a noticeable delay."""
        return sum(float(len(P)) ** 3 for P in self.matrices) <= _QUICK_SIDE**3

    def matrix_ranks(self) -> list[int]:
        """Return the numerical rank of each P."""
        return [int(np.linalg.matrix_rank(P, hermitian=True)) for P in self.matrices]


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
        matrices=tuple(kernel.P for kernel in _learned_kernels(model)),
    )


def _as_list(value: Any) -> list[Any]:
    """Return a list unchanged, None as an empty list, and anything else as a list of one item."""
    if value is None:
        return []
    return value if isinstance(value, list) else [value]


def _learned_kernels(model: Any) -> list[Any]:
    return [kernel for kernel in _as_list(model.kernel_) if hasattr(kernel, "P")]


# ------------------------------------------------------------------------------ relevance


def quick_relevance(model: Any) -> FloatArray | None:
    """Return ``feature_relevance_`` if it is known or quick to compute, and None otherwise."""
    known = vars(model).get("feature_relevance_")
    if known is None and relevance_seconds(model) <= _QUICK_SECONDS:
        known = model.feature_relevance_
    return None if known is None else np.asarray(known)


def relevance_seconds(model: Any) -> float:
    """Estimate the time for computing the relevance of the features on one core.

    The estimate is based on measurements. A value of the learned function costs a fixed time, a
    time for each row of P, and a time for each feature of each support vector. The cost of a
    kernel set that is defined in Python is not known and is assumed to be high.
    """
    kernels = _learned_kernels(model)
    known = (TessellatedKernels, PolynomialKernels)
    if not all(isinstance(kernel.kernels, known) for kernel in kernels):
        return np.inf
    count, width = model.support_vectors_.shape
    microseconds = sum(0.3 + 0.015 * len(kernel.P) + 7.5e-5 * count * width for kernel in kernels)
    return float(1e-6 * microseconds * len(model._sample_rows) * _LEVELS * width)


# ---------------------------------------------------------------------------- weights


def kernel_weights(model: Any) -> list[tuple[str, float]]:
    """Return the names and weights of the kernels of a weighted sum, except those of weight zero.

    Parameters
    ----------
    model : fitted MultipleKernelSVC or MultipleKernelSVR
        Model whose weights are returned. Features have their names if the model knows them.

    Returns
    -------
    list of (str, float)
        Names and weights, in the order of decreasing weights.
    """
    weights = np.asarray(model.weights_)
    names = feature_names(model, model.n_features_in_)
    order = np.argsort(-weights, kind="stable")
    kernels = model.dictionary_.kernels
    return [(kernel_name(kernels[k], names), float(weights[k])) for k in order if weights[k] > 0]


def kernel_name(kernel: Any, names: list[str]) -> str:
    """Return a name that contains the type of a kernel and the features that it depends on."""
    if not is_dataclass(kernel):
        return repr(kernel)
    settings = [(f.name, getattr(kernel, f.name), f.default) for f in fields(kernel)]
    parts = [
        f"{name}={_short(value)}"
        for name, value, default in settings
        if name != "features" and value != default
    ]
    features = getattr(kernel, "features", None)
    text = f"{type(kernel).__name__}({', '.join(parts)})"
    return text if features is None else f"{text} of {_listed([names[j] for j in features])}"


def _short(value: Any) -> str:
    return value.__name__ if hasattr(value, "__name__") else repr(value)


def _listed(names: list[str]) -> str:
    hidden = len(names) - _FEW_NAMES
    return ", ".join(names[:_FEW_NAMES]) + (f" and {hidden} more" if hidden > 0 else "")
