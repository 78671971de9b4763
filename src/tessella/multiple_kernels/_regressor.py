"""Regression with a weighted sum of kernels."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin

from tessella.estimators._checks import require_positive
from tessella.estimators._machines import Machines
from tessella.estimators._regressor import _mean_and_deviation
from tessella.estimators._training_set import TrainingSet
from tessella.multiple_kernels._base import BaseMultipleKernel, Task
from tessella.multiple_kernels._bound import BoundDictionary
from tessella.multiple_kernels._fixed import weights_of_errors
from tessella.multiple_kernels._performance import squared_errors
from tessella.svm import DualProblem

FloatArray = NDArray[np.float64]


class MultipleKernelSVR(RegressorMixin, BaseMultipleKernel):  # type: ignore[misc]
    """Support vector regression with a weighted sum of kernels from a dictionary.

    The target is centred and divided by its standard deviation before learning, and predictions
    are given back in its own units. So `epsilon` is a fraction of the spread of y.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the loss, per sample, for the standardised target.
    kernels : "standard", list of kernels or KernelDictionary, default="standard"
        What to choose from, as in :class:`MultipleKernelSVC`.
    epsilon : float, default=0.1
        Half-width of the tube without loss, in standard deviations of y.
    weighting : {"learned", "simple", "average", "alignment", "performance"}, default="learned"
        How the weights are found, as in :class:`MultipleKernelSVC`. "alignment" aligns kernels
        with ``y yᵀ``. "performance" is ``(Σ M - M_i)``, normalised, for the mean squared errors M
        of the kernels in threefold cross-validation (Qiu and Lane, 2009).
    tol : float, default=1e-3
        Certified relative gap at which to stop.
    max_iter : int, default=1000
        Limit on the solver's iterations.
    time_limit : float, default=None
        Limit in seconds on the solver; the best certified model so far is kept.
    verbose : int, default=0
        1 prints a line per iteration; 2 shows a live display, which needs rich on a terminal.
    n_jobs : int, default=None
        Threads; None for all the process may use.

    Attributes
    ----------
    weights_ : ndarray of shape (n_kernels,)
        Weights of the kernels; not negative, with sum 1.
    dictionary_ : FittedDictionary
        The kernels, on the scale of the training rows.
    kernel_ : CombinedKernel
        Their weighted sum: ``kernel_(X, Y)`` is its matrix, on raw features.
    support_, support_vectors_ : ndarray
        Rows of the training data with a nonzero coefficient: their numbers, and the rows. Equal
        rows with equal targets are one row here, the first of them.
    dual_coef_ : ndarray of shape (1, n_support)
        Their signed coefficients, in units of y.
    intercept_ : ndarray of shape (1,)
        Offset of the prediction, in units of y.
    objective_, lower_bound_, gap_ : float
        Certified upper and lower bounds of the optimum for the standardised target, and their
        relative difference; of the weights' own SVM where a rule gives the weights.
    n_iter_, history_, status_
        Iterations of the solver, their records, and why it stopped.
    n_features_in_, feature_names_in_
        Number of features, and their names when the training data had any.

    See Also
    --------
    MultipleKernelSVC : The same for classification, with more on weights and dictionaries.
    LearnedKernelSVR : Learns a kernel of a continuous family instead.

    Examples
    --------
    >>> import numpy as np
    >>> from tessella import MultipleKernelSVR
    >>> rng = np.random.default_rng(0)
    >>> X = rng.random((150, 3))
    >>> y = np.sin(6 * X[:, 0]) + X[:, 1] ** 2
    >>> model = MultipleKernelSVR(C=10.0).fit(X, y)
    >>> model.score(X, y) > 0.95
    True
    >>> len(model.weights_)
    52
    """

    def __init__(
        self,
        C: float = 1.0,
        kernels: Any = "standard",
        *,
        epsilon: float = 0.1,
        weighting: str = "learned",
        tol: float = 1e-3,
        max_iter: int = 1000,
        time_limit: float | None = None,
        verbose: int = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.C = C
        self.kernels = kernels
        self.epsilon = epsilon
        self.weighting = weighting
        self.tol = tol
        self.max_iter = max_iter
        self.time_limit = time_limit
        self.verbose = verbose
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Find the weights and the regression function.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training data, dense and finite.
        y : array-like of shape (n_samples,)
            Targets.
        sample_weight : array-like of shape (n_samples,), optional
            Multipliers of `C`. Weight k is the same as k copies, weight 0 as absence.

        Returns
        -------
        MultipleKernelSVR
            The fitted estimator.
        """
        return self._fit(X, y, sample_weight)

    def _y_checks(self) -> dict[str, Any]:
        return {"y_numeric": True}

    def _check_params(self) -> None:
        super()._check_params()
        require_positive("epsilon", self.epsilon, or_zero=True)

    def _task(self, X: FloatArray, y: Any, weight: FloatArray) -> Task:
        rows = TrainingSet.build(X, np.asarray(y, dtype=np.float64), weight)
        mean, scale = _mean_and_deviation(rows.y, rows.weight)
        dual = DualProblem.regression(
            (rows.y - mean) / scale, self.C * rows.weight, float(self.epsilon)
        )
        return Task(rows, Machines.single(dual), scale, mean)

    def _targets(self, task: Task) -> FloatArray:
        return task.machines.dual.linear[:, None]

    def _performance(self, bound: BoundDictionary, task: Task) -> FloatArray:
        return weights_of_errors(squared_errors(bound, task.machines.dual, task.rows.weight))

    def predict(self, X: Any) -> FloatArray:
        """Prediction for each row, in the units of y.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows in the units of the training data.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return self._scores(X)[:, 0]
