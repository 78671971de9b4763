"""What people ask of a fitted model first, gathered in one place for all who show it."""

from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tessella.inspection._names import feature_names
from tessella.kernels import PolynomialKernels, TessellatedKernels

FloatArray = NDArray[np.float64]

_QUICK_SECONDS = 0.25  # that showing a model may take for its relevance, once
_QUICK_SIDE = 400  # of a P whose rank is found in some ten milliseconds
_LEVELS = 16  # of a feature, in the table that relevance is read from
_FEW_NAMES = 3  # of features, in the name of a kernel


@dataclass(frozen=True)
class Facts:
    """The certificate and the size of a fitted model; None for what it does not tell.

    Attributes
    ----------
    objective, lower_bound, gap : float
        Certified bounds, and their relative difference.
    worst_gap : float or None
        Largest gap of a single kernel at its last record, where several were learned apart; its
        final gap is no larger.
    tol : float
        The gap that is asked for.
    status : str
        Why the solver stopped, as in ``status_``.
    iterations : int
        Of the solver.
    solver, weighting : str or None
        The algorithm; the rule for the weights of several kernels.
    svm_solves, newton_steps, seconds : number or None
        What the fit took.
    rows, features, support_vectors : int or None
        Sizes of the data and of the model.
    matrices : tuple of ndarray
        P of each learned kernel; most models have one, sums of given kernels none.
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
        """Whether the certificate is as good as was asked for."""
        return bool(self.gap <= self.tol)

    @property
    def matrix_side(self) -> int | None:
        """Side of P, the same for all kernels of a model."""
        return len(self.matrices[0]) if self.matrices else None

    @property
    def ranks_are_quick(self) -> bool:
        """Whether finding them is not felt."""
        return sum(float(len(P)) ** 3 for P in self.matrices) <= _QUICK_SIDE**3

    def matrix_ranks(self) -> list[int]:
        """Numerical rank of each P."""
        return [int(np.linalg.matrix_rank(P, hermitian=True)) for P in self.matrices]


def facts_of(model: Any) -> Facts:
    """Gather the facts of a fitted model from its attributes; nothing is computed.

    Parameters
    ----------
    model : fitted estimator of this library
        With a learned kernel or a weighted sum of kernels.

    Returns
    -------
    Facts

    Raises
    ------
    AttributeError
        When it is not fitted.
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
    """A list as it is, anything else as its only item, None as an empty one."""
    if value is None:
        return []
    return value if isinstance(value, list) else [value]


def _learned_kernels(model: Any) -> list[Any]:
    return [kernel for kernel in _as_list(model.kernel_) if hasattr(kernel, "P")]


# ------------------------------------------------------------------------------ relevance


def quick_relevance(model: Any) -> FloatArray | None:
    """``feature_relevance_`` where it is known already, or quickly found; else None."""
    known = vars(model).get("feature_relevance_")
    if known is None and relevance_seconds(model) <= _QUICK_SECONDS:
        known = model.feature_relevance_
    return None if known is None else np.asarray(known)


def relevance_seconds(model: Any) -> float:
    """About how long the relevance of the features takes on one core.

    Read off measurements: a value of the learned function costs a fixed time, one for each row
    of P and one for each feature of each support vector. What a kernel set that was defined in
    Python costs is not known, and taken to be long.
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
    """Names and weights of the kernels of a weighted sum, without those of weight zero.

    Parameters
    ----------
    model : fitted MultipleKernelSVC or MultipleKernelSVR
        Its features are called by their names, where it knows any.

    Returns
    -------
    list of (str, float)
        The largest first.
    """
    weights = np.asarray(model.weights_)
    names = feature_names(model, model.n_features_in_)
    order = np.argsort(-weights, kind="stable")
    kernels = model.dictionary_.kernels
    return [(kernel_name(kernels[k], names), float(weights[k])) for k in order if weights[k] > 0]


def kernel_name(kernel: Any, names: list[str]) -> str:
    """What a kernel is, and which features it looks at."""
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
