"""Kernel ridge regression with a learned kernel."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin

from tessella.backend import require_memory
from tessella.estimators._base import BaseLearnedKernel
from tessella.estimators._checks import loss_weights
from tessella.estimators._fit_rows import FitRows
from tessella.estimators._leaf_fit import LeafTask, regressor_task
from tessella.estimators._leaf_scan import Scan
from tessella.estimators._leaf_targets import SquaredTargets
from tessella.estimators._leave_one_out_svm import RegressorLeaveOneOutMixin
from tessella.estimators._machines import Machines
from tessella.estimators._problem import TrainingProblem, ValidatedData
from tessella.estimators._standardised import StandardisedTarget
from tessella.estimators._training_set import TrainingSet
from tessella.leave_one_out import ridge_leave_one_out

FloatArray = NDArray[np.float64]

_BYTES_PER_ENTRY = 3 * 8  # matrices of all pairs of rows that leave-one-out holds at once
_SOLVERS = ("auto", "joint", "newton", "frank-wolfe", "apd", "hybrid", "simple-mkl")


class BaseLearnedRidge(BaseLearnedKernel):
    """Base class of :class:`LearnedKernelRidge` and :class:`LearnedKernelRidgeClassifier`."""

    _is_smooth = True

    def _merged_loo_scores(self, rows: FitRows) -> FloatArray:
        """Scores of each output for the merged rows, without one copy of each: exact."""
        problem, losses = rows.problem, rows.problem.machines.dual.losses
        X = problem.rows.X
        require_memory(
            _BYTES_PER_ENTRY * len(X) ** 2,
            f"Leaving out each of {len(X)} rows",
            "Use folds instead, or fewer rows.",
        )
        targets = np.column_stack([loss.target for loss in losses])
        found = ridge_leave_one_out(
            self.kernel_(X, n_jobs=self.n_jobs),
            targets,
            1.0,
            1.0 / losses[0].curvature,
            left_out=1.0 / np.maximum(rows.copies, 1.0),
            overwrite=True,
        )
        scores: FloatArray = targets - found.loo_residuals
        return problem.target_scale * scores + problem.target_mean

    def _check_params(self) -> None:
        super()._check_params()
        if self.solver not in _SOLVERS:
            raise ValueError(
                f"solver={self.solver!r} cannot minimise the squared loss; use one of {_SOLVERS}."
            )

    def _frugal_solver(self) -> list[str]:
        return [] if self.solver == "newton" else ["solver='newton'"]


class LearnedKernelRidge(
    RegressorMixin,  # type: ignore[misc]
    BaseLearnedRidge,
    RegressorLeaveOneOutMixin,
):
    """Kernel ridge regression that learns its kernel, with a certificate.

    The kernel is chosen from a convex family, together with the regression that uses it, so that
    the regularised squared loss is as small as possible. The fit also proves how far the model can
    be from the best one: see ``gap_``. The squared loss has no tube, and for a given kernel the
    predictions for each training row without it are known exactly: see ``loo_predictions_``.

    The target is standardised before learning, and predictions are in its own units, so `C` does
    not have to change when y is measured in other units.

    Parameters
    ----------
    C : float, default=10.0
        Weight of the loss of each sample, for the standardised target. Kernels are normalised by
        the volume of their integration box, so a good value depends neither on `delta` nor on the
        number of features.
    kernels : {"tessellated", "polynomial", "gaussian", "matern", "laplace"} or KernelSet, \
            default="tessellated"
        Family of kernels to choose from. "tessellated" and "polynomial" are families with the
        parameters `degree` and `delta`. "gaussian", "matern" and "laplace" are single kernels with
        the parameter `width`, for which nothing is learned but the machine. A
        :class:`~tessella.kernels.KernelSet` has its own parameters. It may be a
        :class:`KernelDictionary`, whose weights are learned, or a sum of kernel sets such as
        ``TessellatedKernels() + KernelDictionary([Gaussian(1.0)])``, of which the kernel of each
        part and the share of each part are learned together.
    degree : int, default=1
        Largest degree of the monomials in the kernel, if `kernels` is a name.
    delta : float, default=0.5
        Margin of the integration box around the data scaled to [0, 1], if `kernels` is
        "tessellated".
    width : float, default=0.5
        Length scale of the kernel, if `kernels` is "gaussian", "matern" or "laplace". It is
        relative to the distance of typical rows, so a good value depends little on the number of
        features.
    scaling : {"range", "quantile", "robust"}, default="range"
        Map of each feature to [0, 1], which is part of the model. "range" is the affine map of the
        training range and goes on beyond it. "quantile" replaces values by their quantiles in the
        training data, so that outliers and skewed distributions do no harm. "robust" is affine
        between the quartiles and compresses the tails. The last two move values outside the
        training range to its edge. See :class:`~tessella.kernels.UnitBox` for the formulas. A
        :class:`KernelDictionary`, which standardises features itself, gets them unchanged with
        "range".
    feature_scale : array-like of shape (n_features,), default=None
        Factors in (0, 1] that pull each scaled feature towards the centre of the cube,
        ``½ + feature_scale * (x - ½)``, so that the kernel depends less on it. None does not pull.
        :func:`tessella.inspection.relevance_scale` computes factors from a fitted model.
    solver : {"auto", "joint", "newton", "frank-wolfe", "apd", "hybrid", "simple-mkl"}, \
            default="auto"
        Algorithm. "auto" chooses "joint" for a single output and "newton" for several classes.
        "simple-mkl" learns the weights of a :class:`KernelDictionary` only. The solvers
        "working-set" and "sdp" need a loss with bounds. See :mod:`tessella.solvers`.
    tol : float, default=1e-3
        Certified relative gap at which the solver stops.
    max_iter : int, default=1000
        Largest number of iterations of the solver.
    time_limit : float, default=None
        Largest number of seconds of the fit. When it is reached, the best certified model so far
        is kept. A fit with a limit first solves machines with a fixed kernel, on as many rows as
        there is time for, so that it returns nothing worse than these.
    precision : {"float64", "float32"}, default="float64"
        Data type of stored kernel matrices. "float32" needs half the memory. The certificate is
        always computed in float64, but gaps much below 1e-4 may not be reached with "float32".
    early_stopping : bool, default=False
        Whether to hold out validation rows and to stop when the score on them has not improved
        for `n_iter_no_change` records of the solver. The validation score decides only when to
        stop. The model that is kept is the best certified one, and its certificate is that of the
        problem on the other rows.
    validation_fraction : float, default=0.1
        Fraction of the rows that early stopping holds out.
    n_iter_no_change : int, default=5
        Number of records without a better validation score after which early stopping ends the
        fit.
    checkpoint : path-like, default=None
        File to which the best certified model of a long fit is written, at most every 30 seconds
        and at the end. A later fit of the same problem (rows, weights, `C`, kernels; solver,
        tolerance and limits may differ) continues from it. The checkpoint of another problem is
        replaced if that fit was finished, and is an error otherwise. Two fits that run at the same
        time need two files. `max_iter` and `time_limit` hold for each run; `history_` has the
        records of all runs.
    warm_start : bool, default=False
        Whether to start from the kernel of the previous fit and, if the number of rows is the
        same, from its dual coefficients. If there is a checkpoint, the fit starts from that.
    max_leaf_rows : int, default=None
        Largest number of rows of a leaf. With more rows than that, the rows are divided into
        leaves: a machine of a sample of the rows is the base function, and the machines of the
        leaves, which share one learned kernel and one certificate, correct it. Time and memory
        then grow in proportion to the number of rows. `X` may be the path of Parquet files, with
        the name of the target as `y`. None learns one machine from all rows. See the guide to
        large data.
    partition : {"gradient", "median"} or str or int, default="gradient"
        How rows are divided into leaves. "gradient" cuts across the directions in which the base
        function varies most, "median" cuts the features that are spread most. The name or the
        number of a column of numbers puts rows of different groups into different leaves.
    n_partitions : int, default=2
        Number of partitions with different cuts, whose predictions are averaged. The time of a fit
        is proportional to it.
    warn_outside : bool, default=False
        Whether to raise an :class:`ExtrapolationWarning` when rows to predict lie outside the
        range of the training data. :meth:`count_outside` returns the same information.
    verbose : int, default=0
        1 prints a line per iteration. 2 shows a live display, which needs rich on a terminal. Both
        tell the expected time of a fit of more than some ten seconds before it begins.
    random_state : int, RandomState instance or None, default=None
        Source of the random choice of validation rows for early stopping. Nothing else is random.
    n_jobs : int, default=None
        Number of threads. None uses all cores that the process may use.

    Attributes
    ----------
    kernel_ : LearnedKernel
        Learned kernel, a function of rows in the units of the training data: ``kernel_(X, Y)`` is
        the kernel matrix.
    parameter_ : ndarray or Blocks
        Parameter that the kernel was chosen by, which is that of `kernel_`: a positive
        semidefinite matrix for a family of kernels, the weights of a dictionary, or the
        :class:`~tessella.cones.Blocks` of a sum, with one of the two for each part. The trace of a
        block, divided by its number of rows, or the sum of its weights is the share of its part.
        If a matrix P has far more rows than the training data, it is a factor U of P = U Uᵀ, with
        fewer columns than rows.
    P_ : ndarray of shape (n_params, n_params)
        Same as `parameter_`, multiplied out if that is a factor. Only available if the parameter
        is one matrix.
    support_ : ndarray of shape (n_support,)
        Indices of the support vectors in the training data: the rows with a nonzero coefficient,
        which in general are all rows. Equal rows with equal targets are merged and count as the
        first one.
    support_vectors_ : ndarray of shape (n_support, n_features)
        Support vectors, in the units of the training data.
    dual_coef_ : ndarray of shape (1, n_support)
        Signed coefficients of the support vectors, in units of y.
    intercept_ : ndarray of shape (1,)
        Constant of the prediction, in units of y. Predictions are
        ``kernel_(X, support_vectors_) @ dual_coef_[0] + intercept_[0]``.
    objective_ : float
        Certified upper bound of the optimal value, for the standardised target.
    lower_bound_ : float
        Certified lower bound of the optimal value, for the standardised target.
    gap_ : float
        Certified relative gap: the difference of `objective_` and `lower_bound_`, divided by
        `objective_`. It is at most `tol` unless the solver stopped early.
    n_iter_ : int
        Number of iterations of the solver.
    history_ : tuple of IterationRecord
        Bounds, step length and time of each iteration.
    status_ : str
        Reason why the solver stopped: "optimal" if the gap reached `tol`.
    solver_ : str
        Name of the solver that was used.
    validation_scores_ : ndarray of shape (n_records,) or None
        Validation score of the best certified model at each record of the solver. None without
        early stopping.
    feature_relevance_ : ndarray of shape (n_features_in_,)
        Share of the variance of the learned function that involves each feature, between 0 and 1.
        See :func:`tessella.inspection.feature_relevance` for the formula. It is computed when it
        is first read, on at most 256 representative training rows that the model keeps.
    interaction_relevance_ : ndarray of shape (n_features_in_, n_features_in_)
        Share of the variance of the learned function that needs both features of a pair. See
        :func:`tessella.inspection.interaction_relevance`. It is computed when it is first read,
        and is NaN for pairs outside the 12 features of largest relevance.
    linear_share_ : float
        Share of the learned kernel that linear functions of the features explain, between 0 and 1.
        See :func:`tessella.inspection.linear_share`. It is computed when it is first read.
    kernel_is_linear_ : bool
        Whether `linear_share_` is at least 0.99. The model is then nearly a linear one.
    loo_predictions_ : ndarray of shape (n_samples,)
        Prediction for each training row by the fit without this row, in units of y, exact for the
        learned kernel. It is computed when it is first read, see
        :func:`tessella.leave_one_out.ridge_leave_one_out`, and only by the estimator that was
        fitted, because copies and files do not contain the training rows. It neglects that the
        kernel was learned from the row too. A row of weight k stands for k copies, of which one
        is left out. Rows of weight 0 have their ordinary predictions.
    loo_score_ : float
        R² of `loo_predictions_`, weighted with the sample weights.
    leaves_ : FittedLeaves
        Partition and base function of a fit in leaves, and the numbers of support vectors of each
        leaf. Only available after such a fit. Then `support_` has the rows of one leaf after the
        other, `intercept_` has the shape (n_leaves, n_machines), and `kernel_` is the kernel of
        rows in the same leaf.
    rounds_ : tuple of Round
        What each pass over the leaves has cost, see :class:`tessella.solvers.Round`. Only
        available after a fit in leaves, and not stored in model files.
    n_features_in_ : int
        Number of features of the training data.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features of the training data. Only available if it had names.

    See Also
    --------
    LearnedKernelRidgeClassifier : Classification with the squared loss.
    LearnedKernelSVR : Regression with the ε-insensitive loss.
    KernelPathCV : Cross-validated choice of `C` and the other parameters.

    Notes
    -----
    Features are scaled to [0, 1], so their units do not matter, and constant features are left
    out. All training rows are support vectors. With "auto" a fit takes about ten Cholesky
    factorisations of the side of the number of rows and holds six matrices of that side in
    float64; "newton" holds three.

    With the scale of the features, the family, `delta` and `C` chosen by held-out error, learning
    the matrix P of a family changes the held-out error little: choose these first, for example by
    ``loo_score_`` or :class:`KernelPathCV`.

    Examples
    --------
    >>> import numpy as np
    >>> from tessella import LearnedKernelRidge
    >>> rng = np.random.default_rng(0)
    >>> X = rng.random((150, 2))
    >>> y = np.sin(6 * X[:, 0]) * X[:, 1]
    >>> model = LearnedKernelRidge(C=1000.0).fit(X, y)
    >>> model.score(X, y) > model.loo_score_ > 0.95
    True
    """

    def __init__(
        self,
        C: float = 10.0,
        *,
        kernels: Any = "tessellated",
        degree: int = 1,
        delta: float = 0.5,
        width: float = 0.5,
        scaling: str = "range",
        feature_scale: Any = None,
        solver: str = "auto",
        tol: float = 1e-3,
        max_iter: int = 1000,
        time_limit: float | None = None,
        precision: str = "float64",
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 5,
        checkpoint: Any = None,
        warm_start: bool = False,
        max_leaf_rows: int | None = None,
        partition: Any = "gradient",
        n_partitions: int = 2,
        warn_outside: bool = False,
        verbose: int = 0,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.C = C
        self.kernels = kernels
        self.degree = degree
        self.delta = delta
        self.width = width
        self.scaling = scaling
        self.feature_scale = feature_scale
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.time_limit = time_limit
        self.precision = precision
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.checkpoint = checkpoint
        self.warm_start = warm_start
        self.max_leaf_rows = max_leaf_rows
        self.partition = partition
        self.n_partitions = n_partitions
        self.warn_outside = warn_outside
        self.verbose = verbose
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn the kernel and the regression function.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training data, dense and finite. With `max_leaf_rows`, it may be the path of Parquet
            files; `y` and `sample_weight` are then the names of their columns.
        y : array-like of shape (n_samples,)
            Target values.
        sample_weight : array-like of shape (n_samples,), optional
            Factors of `C` for each sample. A row of weight k counts like k copies, and a row of
            weight 0 is left out.

        Returns
        -------
        LearnedKernelRidge
            The fitted estimator.
        """
        return self._fit(X, y, sample_weight)

    def _y_checks(self) -> dict[str, Any]:
        return {"y_numeric": True}

    def _prepare(self, data: ValidatedData) -> TrainingProblem:
        weight, validation_set = self._hold_out(data)
        rows = TrainingSet.build(data.X, np.asarray(data.y, dtype=np.float64), weight)
        weights = loss_weights(self.C, rows.weight)
        target = StandardisedTarget.of(rows.y, rows.weight)
        target.require_room(weights)
        return TrainingProblem.build(
            data,
            rows,
            Machines.outputs(target.values[:, None], weights),
            self._kernel_set(),
            **self._scaling_params(),
            target_scale=target.scale,
            target_mean=target.mean,
            validation_set=validation_set,
        )

    def _leaf_task(self, seen: Scan, base: Any) -> LeafTask:  # noqa: ARG002
        scale = float(base._target_scale)
        return regressor_task(SquaredTargets(float(self.C), scale), scale, None)

    def predict(self, X: Any) -> FloatArray:
        """Predict the target of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows in the units of the training data.

        Returns
        -------
        ndarray of shape (n_samples,)
            Predicted values, in the units of y.
        """
        return self._scores(X)[:, 0]
