"""The interface of the paper's software: ``pmkl``, ``params_tk``, ``evaluate_pmkl``.

For whoever comes from the software of Talitckii, Colbert and Peet, or reads their text beside
this library. Nothing is computed here: each function chooses an estimator, and every value is the
estimator's own, bit for bit.

====================================  ============================================================
paper                                 here
====================================  ============================================================
``f = PMKL(x, y, Type, C, params)``   :func:`pmkl`: Frank-Wolfe, the solver "frank-wolfe"
``f = PMKL_Boosted(...)``             :func:`pmkl_boosted`: Frank-Wolfe and then the accelerated
                                      method, the solver "hybrid"
``paramsTK(degree, delta, epsilon,    :func:`params_tk`
maxit, tol)``
``evaluatePMKL(f, xTest)``            :func:`evaluate_pmkl`
====================================  ============================================================

The solvers are those of the paper, with its errata applied. The estimators' own default
(``solver="auto"``) reaches the same optimum in a fraction of the time: see
:class:`~tessella.LearnedKernelSVC` and :class:`~tessella.LearnedKernelSVR`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tessella.estimators import LearnedKernelSVC, LearnedKernelSVR

__all__ = ["PMKLParams", "PMKLSolution", "evaluate_pmkl", "params_tk", "pmkl", "pmkl_boosted"]

FloatArray = NDArray[np.float64]

CLASSIFICATION, REGRESSION = "Classification", "Regression"
_FAMILIES = {"TK": "tessellated", "GPK": "polynomial"}


@dataclass(frozen=True)
class PMKLParams:
    """The optional parameters, with the paper's defaults.

    Attributes
    ----------
    kernel : {"TK", "GPK"}
        Tessellated kernels or generalised polynomial kernels.
    degree : int
        Largest degree of the monomials.
    delta : float
        The box of integration is [0 - delta, 1 + delta] in every feature; for "TK".
    epsilon : float
        Half-width of the tube of the regression, in standard deviations of y.
    maxit : int
        Limit on iterations: the estimators' `max_iter`.
    tol : float
        Stopping tolerance: the estimators' `tol`, a certified gap *relative* to the objective.
        (The paper's is a difference, whose meaning changes with C, the box and the units of y.)
    """

    kernel: str = "TK"
    degree: int = 1
    delta: float = 0.5
    epsilon: float = 0.1
    maxit: int = 100
    tol: float = 0.01


@dataclass(frozen=True, eq=False)
class PMKLSolution:
    """What :func:`pmkl` returns: the optimal P and α, and what was asked for.

    Attributes
    ----------
    type : {"Classification", "Regression"}
        The task.
    C : float
        Weight of the loss.
    params : PMKLParams
        All other parameters.
    P : ndarray of shape (n_params, n_params)
        The optimal matrix of the kernel: the model's ``P_``.
    alpha : ndarray of shape (n_samples,)
        The optimal dual vector, in the order of the samples: in [0, C] for classification, where
        the second of the two labels in order has the sign +1; in [-C, C] times the standard
        deviation of y for regression. Equal samples share one entry, that of the first of them,
        whose bound is C times their number.
    b : float
        Intercept of the predictor.
    gap : float
        Certified relative distance from the optimum: the model's ``gap_``.
    labels : ndarray of shape (2,) or None
        The two labels in order; None for regression.
    samples_in_columns : bool
        Whether the samples were read as the columns of x, the paper's convention.
    model : LearnedKernelSVC or LearnedKernelSVR
        The fitted estimator, with the learned kernel, the certificate and the history. Where the
        labels are fractions, which classifiers do not take, it was given 0 and 1 for them.
    """

    type: str
    C: float
    params: PMKLParams
    P: FloatArray
    alpha: FloatArray
    b: float
    gap: float
    labels: NDArray[Any] | None
    samples_in_columns: bool
    model: LearnedKernelSVC | LearnedKernelSVR


def params_tk(
    degree: int | None = None,
    delta: float | None = None,
    epsilon: float | None = None,
    maxit: int | None = None,
    tol: float | None = None,
) -> PMKLParams:
    """Parameters for tessellated kernels; None, or the paper's empty matrix, for a default.

    Parameters
    ----------
    degree : int, default=1
        Largest degree of the monomials.
    delta : float, default=0.5
        Margin of the box of integration around the data scaled to [0, 1].
    epsilon : float, default=0.1
        Half-width of the tube of the regression, in standard deviations of y.
    maxit : int, default=100
        Limit on iterations.
    tol : float, default=0.01
        Certified relative gap at which to stop.

    Returns
    -------
    PMKLParams

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
    """Positive matrix kernel learning, by the paper's Frank-Wolfe algorithm.

    Parameters
    ----------
    x : array-like of shape (n_features, n_samples) or (n_samples, n_features)
        Samples, by the paper in columns. The side that is as long as y counts the samples; where
        both are, the columns are the samples. One dimension means one feature.
    y : array-like of shape (n_samples,), (1, n_samples) or (n_samples, 1)
        Outputs or labels.
    type : {"Classification", "Regression"}, optional
        Task, in letters of any case. By default classification if y has exactly two distinct
        values, regression otherwise.
    C : float, default=10
        Weight of the loss, to be chosen by cross-validation. It is the estimators' `C`, for
        kernels divided by the volume of the box and for a standardised target; see the notes.
    params : PMKLParams or mapping, optional
        From :func:`params_tk`, or a mapping with some of the fields of :class:`PMKLParams`.

    Returns
    -------
    PMKLSolution
        For :func:`evaluate_pmkl`.

    See Also
    --------
    pmkl_boosted : The same for high accuracy.

    Notes
    -----
    The answer is that of ``LearnedKernelSVC`` or ``LearnedKernelSVR`` with
    ``solver="frank-wolfe"``, ``max_iter=maxit`` and the parameters of the same names. A run that
    ends at `maxit` above `tol` warns and keeps its best certified answer.

    The paper's kernel is not divided by the volume V = (1 + 2 delta)^n of the box, n being the
    number of features that vary, and its target not standardised. To solve its problem to the
    letter give C V, in regression C V / s and epsilon / s with s the standard deviation of y:
    predictor and P are then the same. For many features that is a very large C.

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
    """Positive matrix kernel learning for high accuracy: Frank-Wolfe, then the accelerated method.

    The paper's combined algorithm: Frank-Wolfe to a gap of 0.01, the accelerated primal-dual
    method from there to `tol`. With the default `tol` the second stage has nothing to do, so give
    a smaller one, and a larger `maxit`, which counts the iterations of both.

    Parameters
    ----------
    x, y, type, C, params
        As for :func:`pmkl`.

    Returns
    -------
    PMKLSolution
        As of :func:`pmkl`, from the solver "hybrid".

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
    """Predicted outputs of the optimal support vector machine.

    Parameters
    ----------
    f : PMKLSolution
        From :func:`pmkl` or :func:`pmkl_boosted`.
    x_test : array-like of shape (n_features, n_samples) or (n_samples, n_features)
        Samples. The side that is as long as the number of features counts them; where both are,
        the array is read as the training data was. One dimension means one sample, or samples of
        one feature.

    Returns
    -------
    ndarray of shape (n_samples,)
        Labels as in the training data, or outputs in the units of y. Decision values are
        ``f.model.decision_function``'s.
    """
    if not isinstance(f, PMKLSolution):
        raise TypeError(
            f"f must be what pmkl or pmkl_boosted returned, not {f.__class__.__name__}."
        )
    predicted: NDArray[Any] = f.model.predict(_test_rows(f, np.asarray(x_test)))
    if f.labels is None:
        return predicted
    return f.labels[np.searchsorted(f.model.classes_, predicted)]


# --------------------------------------------------------------------------------------- learning


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
        # scikit-learn takes fractions for a regression target, and so do its classifiers.
        if labels.dtype.kind == "f" and (labels % 1.0).any():
            targets = numbers
    model = _estimator(task, solver, C, settings).fit(rows, targets)
    return PMKLSolution(
        type=task,
        C=C,
        params=settings,
        P=model.P_,
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
        "kernels": _FAMILIES[params.kernel],
        "degree": params.degree,
        "delta": params.delta,
        "solver": solver,
        "max_iter": params.maxit,
        "tol": params.tol,
    }
    if task == CLASSIFICATION:
        return LearnedKernelSVC(C, **common)
    return LearnedKernelSVR(C, epsilon=params.epsilon, **common)


def _alpha(model: Any, n_samples: int, *, signed: bool) -> FloatArray:
    alpha = np.zeros(n_samples)
    w = model.dual_coef_[0]
    alpha[model.support_] = w if signed else np.abs(w)
    return alpha


# ---------------------------------------------------------------------------------------- reading


def _is_empty(value: Any) -> bool:
    """None or [], the paper's sign for a default."""
    return value is None or (isinstance(value, list | tuple | np.ndarray) and len(value) == 0)


def _settings(params: PMKLParams | Mapping[str, Any] | None) -> PMKLParams:
    """The parameters in full, once they are known to have a meaning."""
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
            f"params must come from params_tk, or be a mapping, not {params.__class__.__name__}."
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
            f"y must be a row or a column of outputs, one for each sample, not of shape "
            f"{np.shape(y)}."
        )
    return outputs


def _task(type: str | None, outputs: NDArray[Any]) -> str:
    """The task asked for, or the one that the number of distinct outputs tells."""
    n_distinct = len(np.unique(outputs))
    if type is None:
        if n_distinct != 2 and outputs.dtype.kind not in "biuf":
            raise ValueError(
                f"y has {n_distinct} distinct values that are not numbers: pmkl tells two labels "
                "apart. For more classes use tessella.LearnedKernelSVC."
            )
        return CLASSIFICATION if n_distinct == 2 else REGRESSION
    task = str(type).capitalize()
    if task not in (CLASSIFICATION, REGRESSION):
        raise ValueError(
            f"type={type!r} is unknown; use 'Classification' or 'Regression', or None to let the "
            "number of distinct outputs decide."
        )
    if task == CLASSIFICATION and n_distinct != 2:
        raise ValueError(
            f"type='Classification' needs two distinct labels and y has {n_distinct}. For more "
            "classes use tessella.LearnedKernelSVC; for numbers, type='Regression'."
        )
    return task


def _training_rows(x: NDArray[Any], n_samples: int) -> tuple[NDArray[Any], bool]:
    """Samples in rows, and whether they were in columns."""
    if x.ndim == 1 and len(x) == n_samples:
        return x[:, None], False
    if x.ndim != 2 or n_samples not in x.shape:
        raise ValueError(
            f"x has shape {x.shape} and y has {n_samples} outputs: one side of x must be that "
            "long. Samples are columns of x, or rows."
        )
    in_columns = x.shape[1] == n_samples
    return (x.T if in_columns else x), in_columns


def _test_rows(f: PMKLSolution, x: NDArray[Any]) -> NDArray[Any]:
    """Test samples in rows."""
    n_features = f.model.n_features_in_
    if x.ndim == 1:
        x = x[:, None] if n_features == 1 else x[None, :]
    if x.ndim != 2 or n_features not in x.shape:
        raise ValueError(
            f"x_test has shape {x.shape} and the model {n_features} features: one side of x_test "
            "must be that long."
        )
    if x.shape[0] == x.shape[1]:
        return x.T if f.samples_in_columns else x
    return x.T if x.shape[0] == n_features else x
