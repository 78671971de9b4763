"""The interface of the software of the paper: ``pmkl``, ``params_tk`` and ``evaluate_pmkl``.

This module is intended for users of the software of Talitckii, Colbert and Peet, and for readers of
their paper. The functions do not compute anything themselves. Each function calls an estimator, and
all results are those of the estimator.

====================================  ============================================================
paper                                 this module
====================================  ============================================================
``f = PMKL(x, y, Type, C, params)``   :func:`pmkl`: Frank-Wolfe, the solver "frank-wolfe"
``f = PMKL_Boosted(...)``             :func:`pmkl_boosted`: Frank-Wolfe and then the accelerated
                                      method, the solver "hybrid"
``paramsTK(degree, delta, epsilon,    :func:`params_tk`
maxit, tol)``
``evaluatePMKL(f, xTest)``            :func:`evaluate_pmkl`
====================================  ============================================================

The solvers are those of the paper, with its errata applied. The default solver of the estimators
(``solver="auto"``) reaches the same optimum in a fraction of the time; see
:class:`~tessella.LearnedKernelSVC` and :class:`~tessella.LearnedKernelSVR`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tessella.estimators import LearnedKernelSVC, LearnedKernelSVR, paper_settings

__all__ = ["PMKLParams", "PMKLSolution", "evaluate_pmkl", "params_tk", "pmkl", "pmkl_boosted"]

FloatArray = NDArray[np.float64]

CLASSIFICATION, REGRESSION = "Classification", "Regression"
_FAMILIES = {"TK": "tessellated", "GPK": "polynomial"}


@dataclass(frozen=True)
class PMKLParams:
    """Optional parameters of :func:`pmkl`, with the default values of the paper.

    Attributes
    ----------
    kernel : {"TK", "GPK"}
        Family of kernels: tessellated kernels ("TK") or generalised polynomial kernels ("GPK").
    degree : int
        Largest degree of the monomials.
    delta : float
        Margin of the integration box, which is [0 - delta, 1 + delta] in every scaled feature. It
        is used for tessellated kernels only.
    epsilon : float
        Largest error of a regression that costs nothing, in standard deviations of y.
    maxit : int
        Largest number of iterations. It is the parameter `max_iter` of the estimators.
    tol : float
        Certified gap, *relative* to the objective, at which the solver stops. It is the parameter
        `tol` of the estimators. (The tolerance of the paper is a difference, whose meaning depends
        on C, the box and the units of y.)
    """

    kernel: str = "TK"
    degree: int = 1
    delta: float = 0.5
    epsilon: float = 0.1
    maxit: int = 100
    tol: float = 0.01


@dataclass(frozen=True, eq=False)
class PMKLSolution:
    """Result of :func:`pmkl`: the optimal P and α, and the parameters of the problem.

    Attributes
    ----------
    type : {"Classification", "Regression"}
        Task that was solved.
    C : float
        Weight of the loss.
    params : PMKLParams
        Optional parameters that were used.
    alpha : ndarray of shape (n_samples,)
        Optimal dual vector, in the order of the samples. In a classification its entries lie in
        [0, C], and the second of the sorted labels has the sign +1. In a regression its entries lie
        in [-C, C], times the standard deviation of y. Equal samples share the entry of the first
        of them, whose bound is C times the number of these samples.
    b : float
        Intercept of the predictor.
    gap : float
        Certified relative distance from the optimum, which is the attribute ``gap_`` of the model.
    labels : ndarray of shape (2,) or None
        Two labels in sorted order, or None for a regression.
    samples_in_columns : bool
        Whether the columns of x are the samples, which is the convention of the paper.
    model : LearnedKernelSVC or LearnedKernelSVR
        Fitted estimator, with the learned kernel, the certificate and the history. If the labels
        are fractions, which classifiers do not accept, they were replaced by 0 and 1 in this model.
    """

    type: str
    C: float
    params: PMKLParams
    alpha: FloatArray
    b: float
    gap: float
    labels: NDArray[Any] | None
    samples_in_columns: bool
    model: LearnedKernelSVC | LearnedKernelSVR

    @property
    def P(self) -> FloatArray:  # noqa: N802 - the name in the paper
        """Optimal matrix of the kernel, of shape (n_params, n_params): ``P_`` of the model."""
        matrix: FloatArray = self.model.P_
        return matrix


def params_tk(
    degree: int | None = None,
    delta: float | None = None,
    epsilon: float | None = None,
    maxit: int | None = None,
    tol: float | None = None,
) -> PMKLParams:
    """Create the parameters for tessellated kernels. None and ``[]`` stand for a default.

    Parameters
    ----------
    degree : int, default=1
        Largest degree of the monomials.
    delta : float, default=0.5
        Margin of the integration box around the data, which is scaled to [0, 1].
    epsilon : float, default=0.1
        Largest error of a regression that costs nothing, in standard deviations of y.
    maxit : int, default=100
        Largest number of iterations.
    tol : float, default=0.01
        Certified relative gap at which the solver stops.

    Returns
    -------
    PMKLParams
        Parameters for :func:`pmkl` and :func:`pmkl_boosted`.

    Examples
    --------
    >>> from tessella.pmkl import params_tk
    >>> params_tk(2, None, None, 50)
    PMKLParams(kernel='TK', degree=2, delta=0.5, epsilon=0.1, maxit=50, tol=0.01)
    """
    given = {"degree": degree, "delta": delta, "epsilon": epsilon, "maxit": maxit, "tol": tol}
    return _settings(given)


def pmkl(
    x: ArrayLike,
    y: ArrayLike,
    type: str | None = None,
    C: float = 10.0,
    params: PMKLParams | Mapping[str, Any] | None = None,
) -> PMKLSolution:
    """Learn a kernel and a support vector machine with the Frank-Wolfe algorithm of the paper.

    Parameters
    ----------
    x : array-like of shape (n_features, n_samples) or (n_samples, n_features)
        Samples. In the paper, the columns of x are the samples. The dimension whose length is that
        of y counts the samples. If both dimensions have this length, the columns are the samples.
        An array with one dimension contains samples of a single feature.
    y : array-like of shape (n_samples,), (1, n_samples) or (n_samples, 1)
        Outputs of a regression, or labels of a classification.
    type : {"Classification", "Regression"}, optional
        Task to solve, in upper or lower case. By default, the task is a classification if y has
        exactly two distinct values, and a regression otherwise.
    C : float, default=10
        Weight of the loss, which should be chosen by cross-validation. It is the parameter `C` of
        the estimators and applies to kernels divided by the volume of the box and to a standardised
        target; see the notes.
    params : PMKLParams or mapping, optional
        Optional parameters, as returned by :func:`params_tk`, or a mapping with some of the fields
        of :class:`PMKLParams`.

    Returns
    -------
    PMKLSolution
        Solution, which :func:`evaluate_pmkl` uses for predictions.

    See Also
    --------
    pmkl_boosted : Learn a kernel with the combined algorithm, for small gaps.

    Notes
    -----
    The result is that of ``LearnedKernelSVC`` or ``LearnedKernelSVR`` with
    ``solver="frank-wolfe"``, ``max_iter=maxit`` and the parameters of the same names. If a run ends
    after `maxit` iterations with a gap above `tol`, it issues a warning and returns the best
    certified result.

    In the paper, the kernel is not divided by the volume V = (1 + 2 delta)^n of the box, where n is
    the number of features that vary, and the target is not standardised. To solve exactly the
    problem of the paper, use C V as the weight. In a regression, use C V / s and epsilon / s, where
    s is the standard deviation of y. The predictor and P are then the same. With many features
    this weight is very large.

    Examples
    --------
    >>> import numpy as np
    >>> from tessella.pmkl import evaluate_pmkl, pmkl
    >>> rng = np.random.default_rng(0)
    >>> x = rng.uniform(-1, 1, (2, 100))  # samples in columns
    >>> y = np.where((x**2).sum(axis=0) < 0.6, 1, -1)
    >>> f = pmkl(x, y)
    >>> f.type
    'Classification'
    >>> bool(np.mean(evaluate_pmkl(f, x) == y) > 0.95)
    True
    """
    return _learn("frank-wolfe", x, y, type, C, params)


def pmkl_boosted(
    x: ArrayLike,
    y: ArrayLike,
    type: str | None = None,
    C: float = 10.0,
    params: PMKLParams | Mapping[str, Any] | None = None,
) -> PMKLSolution:
    """Learn a kernel and a support vector machine with the combined algorithm of the paper.

    The combined algorithm reaches small gaps. It runs Frank-Wolfe to a gap of 0.01, and then the
    accelerated primal-dual method to the gap `tol`. With the default value of `tol` the second
    stage has nothing to do, so choose a smaller value, and a larger `maxit`, which limits the
    iterations of both stages together.

    Parameters
    ----------
    x : array-like of shape (n_features, n_samples) or (n_samples, n_features)
        Samples. In the paper, the columns of x are the samples; see :func:`pmkl`.
    y : array-like of shape (n_samples,), (1, n_samples) or (n_samples, 1)
        Outputs of a regression, or labels of a classification.
    type : {"Classification", "Regression"}, optional
        Task to solve. By default, the task is a classification if y has exactly two distinct
        values, and a regression otherwise.
    C : float, default=10
        Weight of the loss, which should be chosen by cross-validation.
    params : PMKLParams or mapping, optional
        Optional parameters, as returned by :func:`params_tk`, or a mapping with some of the fields
        of :class:`PMKLParams`.

    Returns
    -------
    PMKLSolution
        Solution of the solver "hybrid", which :func:`evaluate_pmkl` uses for predictions.

    See Also
    --------
    pmkl : Learn a kernel with the Frank-Wolfe algorithm.

    Examples
    --------
    >>> import numpy as np
    >>> from tessella.pmkl import params_tk, pmkl_boosted
    >>> x = np.random.default_rng(0).random((2, 60))
    >>> f = pmkl_boosted(x, np.sin(5 * x[0]) * x[1], params=params_tk(maxit=2000, tol=1e-5))
    >>> f.gap <= 1e-5
    True
    """
    return _learn("hybrid", x, y, type, C, params)


def evaluate_pmkl(f: PMKLSolution, x_test: ArrayLike) -> NDArray[Any]:
    """Predict with the optimal support vector machine.

    Parameters
    ----------
    f : PMKLSolution
        Solution that was returned by :func:`pmkl` or :func:`pmkl_boosted`.
    x_test : array-like of shape (n_features, n_samples) or (n_samples, n_features)
        Samples to predict for. The dimension whose length is the number of features counts the
        features. If both dimensions have this length, the samples are arranged as in the training
        data. An array with one dimension contains one sample, or samples of a single feature.

    Returns
    -------
    ndarray of shape (n_samples,)
        Predicted labels, or predicted outputs in the units of y. For decision values, use
        ``f.model.decision_function``.
    """
    if not isinstance(f, PMKLSolution):
        raise TypeError(f"f must be a result of pmkl or pmkl_boosted, not {f.__class__.__name__}.")
    predicted: NDArray[Any] = f.model.predict(_test_rows(f, np.asarray(x_test)))
    if f.labels is None:
        return predicted
    return f.labels[np.searchsorted(f.model.classes_, predicted)]


# -------------------------------------------------------------------------------------- solution


def _learn(
    solver: str,
    x: ArrayLike,
    y: ArrayLike,
    type: str | None,
    C: float,
    params: PMKLParams | Mapping[str, Any] | None,
) -> PMKLSolution:
    settings = _settings(params)
    outputs = _outputs(y)
    rows, in_columns = _training_rows(np.asarray(x), len(outputs))
    task = _task(type, outputs)
    labels, targets = None, outputs
    if task == CLASSIFICATION:
        labels, numbers = np.unique(outputs, return_inverse=True)
        # Classifiers of scikit-learn refuse fractions, because they look like a regression target.
        if labels.dtype.kind == "f" and (labels % 1.0).any():
            targets = numbers
    model = _estimator(task, solver, C, settings).fit(rows, targets)
    return PMKLSolution(
        type=task,
        C=C,
        params=settings,
        alpha=_alpha(model, len(outputs), signed=task == REGRESSION),
        b=float(model.intercept_[0]),
        gap=model.gap_,
        labels=labels,
        samples_in_columns=in_columns,
        model=model,
    )


def _estimator(
    task: str, solver: str, C: float, params: PMKLParams
) -> LearnedKernelSVC | LearnedKernelSVR:
    common: dict[str, Any] = {
        **paper_settings(task.lower()),
        "C": C,
        "kernels": _FAMILIES[params.kernel],
        "degree": params.degree,
        "delta": params.delta,
        "solver": solver,
        "max_iter": params.maxit,
        "tol": params.tol,
    }
    if task == CLASSIFICATION:
        return LearnedKernelSVC(**common)
    return LearnedKernelSVR(**{**common, "epsilon": params.epsilon})


def _alpha(model: Any, n_samples: int, *, signed: bool) -> FloatArray:
    alpha = np.zeros(n_samples)
    w = model.dual_coef_[0]
    alpha[model.support_] = w if signed else np.abs(w)
    return alpha


# ------------------------------------------------------------------------------ checks of arguments


def _is_empty(value: Any) -> bool:
    """Return whether a value is None or [], which stand for a default in the paper."""
    return value is None or (isinstance(value, list | tuple | np.ndarray) and len(value) == 0)


def _settings(params: PMKLParams | Mapping[str, Any] | None) -> PMKLParams:
    """Return the complete parameters after they were checked."""
    if params is None:
        return PMKLParams()
    if isinstance(params, Mapping):
        known = {field.name for field in fields(PMKLParams)}
        unknown = sorted(set(params) - known)
        if unknown:
            raise ValueError(f"params has no field {unknown[0]!r}; its fields are {sorted(known)}.")
        given = {name: value for name, value in params.items() if not _is_empty(value)}
        params = PMKLParams(**{**asdict(PMKLParams()), **given})
    if not isinstance(params, PMKLParams):
        raise TypeError(
            f"params must be a result of params_tk or a mapping, not {params.__class__.__name__}."
        )
    if params.kernel not in _FAMILIES:
        raise ValueError(
            f"params.kernel={params.kernel!r} is unknown; use 'TK' (tessellated) or 'GPK' "
            "(generalised polynomial)."
        )
    return params


def _outputs(y: ArrayLike) -> NDArray[Any]:
    outputs = np.asarray(y)
    if outputs.ndim == 2 and 1 in outputs.shape:
        outputs = outputs.ravel()
    if outputs.ndim != 1 or len(outputs) == 0:
        raise ValueError(
            f"y must be a row or a column with one output for each sample, but it has shape "
            f"{np.shape(y)}."
        )
    return outputs


def _task(type: str | None, outputs: NDArray[Any]) -> str:
    """Return the given task, or determine it from the number of distinct outputs."""
    n_distinct = len(np.unique(outputs))
    if type is None:
        if n_distinct != 2 and outputs.dtype.kind not in "biuf":
            raise ValueError(
                f"y has {n_distinct} distinct values that are not numbers, but pmkl supports two "
                "labels only. For more classes use tessella.LearnedKernelSVC."
            )
        return CLASSIFICATION if n_distinct == 2 else REGRESSION
    task = str(type).capitalize()
    if task not in (CLASSIFICATION, REGRESSION):
        raise ValueError(
            f"type={type!r} is unknown; use 'Classification' or 'Regression', or None to choose "
            "the task by the number of distinct outputs."
        )
    if task == CLASSIFICATION and n_distinct != 2:
        raise ValueError(
            f"type='Classification' needs two distinct labels, but y has {n_distinct}. For more "
            "classes use tessella.LearnedKernelSVC; for a numeric target use type='Regression'."
        )
    return task


def _training_rows(x: NDArray[Any], n_samples: int) -> tuple[NDArray[Any], bool]:
    """Return the samples in rows, and whether they were in columns."""
    if x.ndim == 1 and len(x) == n_samples:
        return x[:, None], False
    if x.ndim != 2 or n_samples not in x.shape:
        raise ValueError(
            f"x has shape {x.shape} and y has {n_samples} outputs: one dimension of x must have "
            "this length. The samples are the columns or the rows of x."
        )
    in_columns = x.shape[1] == n_samples
    return (x.T if in_columns else x), in_columns


def _test_rows(f: PMKLSolution, x: NDArray[Any]) -> NDArray[Any]:
    """Return the test samples in rows."""
    n_features = f.model.n_features_in_
    if x.ndim == 1:
        x = x[:, None] if n_features == 1 else x[None, :]
    if x.ndim != 2 or n_features not in x.shape:
        raise ValueError(
            f"x_test has shape {x.shape} and the model has {n_features} features: one dimension "
            "of x_test must have this length."
        )
    if x.shape[0] == x.shape[1]:
        return x.T if f.samples_in_columns else x
    return x.T if x.shape[0] == n_features else x
