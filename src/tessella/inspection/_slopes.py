"""Slopes of a learned function along its features, and the feature scales that follow."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted, validate_data

from tessella.inspection._names import model_of
from tessella.inspection._summary import kernel_parts
from tessella.kernels import FittedDictionary, LearnedKernel
from tessella.kernels._functions import require_number

FloatArray = NDArray[np.float64]

_STEP = 1e-5  # of central differences, in the scale of the unit cube
_LEAST = 1e-3  # smallest feature scale


def relevance_scale(estimator: Any, power: float = 1.0, *, X: Any = None) -> FloatArray:
    r"""Compute feature scales for another round of a fit, from the slopes of a fitted model.

    With :math:`g_j` the root mean square over training rows of the slope of the learned function
    along feature j, on the scale of the unit cube,

    .. math::

        s_j = \max\left(\left(\frac{g_j}{\max_k g_k}\right)^{\mathrm{power}}, 10^{-3}\right).

    As the parameter `feature_scale` of the next fit, this array pulls features that the function
    hardly depends on towards the centre of the cube. For tessellated kernels, a pull is equivalent
    to a larger margin of the feature, :math:`\delta_j = (\delta + (1 - s_j)/2)/s_j`. Such rounds
    can help if many features are irrelevant, and they can do harm. Decide by held-out error whether
    the next round is better.

    Parameters
    ----------
    estimator : fitted estimator
        ``LearnedKernelSVC``, ``LearnedKernelSVR`` or another estimator with a learned kernel, or a
        pipeline that ends with one. If it was itself fitted with a `feature_scale`, the slopes
        are those with respect to the features before they were pulled, so the result replaces the
        earlier array. The slopes of all machines of a classifier are summed as squares.
    power : float, default=1.0
        Exponent of the relative slopes. Smaller values such as 0.5 pull less.
    X : array-like of shape (n_samples, n_features), optional
        Rows over which squared slopes are averaged. The default is the training rows that the
        estimator has kept, at most 256 that represent all of them.

    Returns
    -------
    ndarray of shape (n_features,)
        Feature scales between 0.001 and 1, of which the largest is 1. All are 1 if the learned
        function is constant.

    See Also
    --------
    feature_relevance : Compute the share of the variance of the learned function that involves
        each feature.

    Notes
    -----
    The cost is that of two predictions for each row and feature.

    Examples
    --------
    >>> import numpy as np
    >>> from tessella import LearnedKernelSVR
    >>> from tessella.inspection import relevance_scale
    >>> X = np.random.default_rng(0).random((200, 3))
    >>> model = LearnedKernelSVR().fit(X, np.sin(5 * X[:, 0]) + 0.5 * X[:, 1])
    >>> scale = relevance_scale(model)
    >>> scale.round(1)
    array([1. , 0.2, 0.1])
    >>> again = LearnedKernelSVR(feature_scale=scale).fit(X, np.sin(5 * X[:, 0]) + 0.5 * X[:, 1])
    """
    require_number("power", power, above_zero=True)
    model = model_of(estimator, None)
    check_is_fitted(model, "kernel_")
    if X is None:
        rows = model._sample_rows
    elif model is estimator:
        rows = validate_data(model, X, dtype=np.float64, reset=False)
    else:
        transformed = estimator[:-1].transform(X)
        rows = validate_data(model, transformed, dtype=np.float64, reset=False)
    slopes = _mean_slopes(model, rows)
    largest = float(slopes.max(initial=0.0))
    if largest == 0.0:
        return np.ones(len(slopes))
    scale: FloatArray = np.maximum((slopes / largest) ** float(power), _LEAST)
    return scale


def _mean_slopes(model: Any, rows: FloatArray) -> FloatArray:
    """Return the root mean square of the slopes along each feature, over rows and machines.

    A model of several leaves has those of its base function, which is smooth across the cuts.
    """
    if hasattr(model, "leaves_"):
        base = model.leaves_.base
        squares = _squared_slopes(base.kernel, base.support_vectors, base.dual_coef, rows)
        whole: FloatArray = np.sqrt(squares)
        return whole
    kernels = model.kernel_ if isinstance(model.kernel_, list) else [model.kernel_]
    coefficients = model.dual_coef_ if len(kernels) > 1 else [model.dual_coef_]
    squares = np.zeros(rows.shape[1])
    if not len(model.support_vectors_):
        return squares
    for kernel, own in zip(kernels, coefficients, strict=True):
        squares += _squared_slopes(kernel, model.support_vectors_, np.atleast_2d(own), rows)
    slopes: FloatArray = np.sqrt(squares)
    return slopes


def _squared_slopes(
    kernel: LearnedKernel, support: FloatArray, coefficients: FloatArray, rows: FloatArray
) -> FloatArray:
    """Return the mean squared slope along each feature, summed over the rows of coefficients."""
    if all(isinstance(part.kernels, FittedDictionary) for part in kernel_parts(kernel)):
        raise ValueError(
            "A dictionary of kernels standardises features itself, so it takes no feature_scale."
        )
    box = kernel.box
    function = kernel.kernels.predictor(
        kernel.parameter, box.apply(support), np.ascontiguousarray(coefficients.T)
    )
    unit, result = box.apply(rows), np.zeros(box.n_features_in)
    for k, column in enumerate(box.kept):
        # A step before the feature is pulled, which is shorter afterwards.
        step = np.zeros(unit.shape[1])
        step[k] = _STEP * box.feature_scale[k]
        change = function.scores(unit + step) - function.scores(unit - step)
        result[column] = np.sum(np.mean((change / (2.0 * _STEP)) ** 2, axis=0))
    return result
