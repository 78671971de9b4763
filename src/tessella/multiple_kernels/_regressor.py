"""Regression with a weighted sum of kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tessella.estimators import LearnedKernelSVR
from tessella.estimators._problem import TrainingProblem
from tessella.kernels import BoundDictionary
from tessella.multiple_kernels._mixin import KernelWeightsMixin
from tessella.multiple_kernels.performance import squared_errors
from tessella.multiple_kernels.rules import weights_of_errors

FloatArray = NDArray[np.float64]


class MultipleKernelSVR(KernelWeightsMixin, LearnedKernelSVR):
    """Support vector regression with a weighted sum of kernels from a dictionary.

    Finds nonnegative weights μ with sum 1 and the machine with the kernel ``Σ μ_i k_i``. Weights
    and machine are found together, with a proof of how far from the optimum they can be, or the
    weights are given by a rule. The target is standardised before learning, and predictions are in
    its own units.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the loss of each sample. A dictionary divides kernels by the mean of their
        diagonal by default, so `C` has the meaning that it has for a Gaussian kernel in
        :class:`sklearn.svm.SVR`.
    kernels : "standard", list of kernels or KernelDictionary, default="standard"
        Kernels to weigh. "standard" is :meth:`KernelDictionary.standard`: Gaussians with ten
        bandwidths from 0.5 to 10 and polynomials of degree 1 to 3, of all features and of each
        feature alone, which are 13 (n + 1) kernels for n features. A list stands for
        ``KernelDictionary(list)``, which standardises features and divides each kernel by its mean
        diagonal.
    epsilon : float or "auto", default="auto"
        Half-width of the tube within which errors cost nothing, in standard deviations of y.
        "auto" estimates the noise before the fit and takes 0.612 of its standard deviation.
    weighting : {"learned", "simple", "average", "alignment", "performance"}, default="learned"
        How the weights are found.

        - "learned": together with the machine, to a certified gap.
        - "simple": by SimpleMKL (Rakotomamonjy et al., 2008), which finds the same optimum with
          many more support vector machines.
        - "average": all weights are equal (AMKL).
        - "alignment": the largest centred alignment with the target (CKA; Cortes et al., 2012),
          in closed form if that has no negative weight, and otherwise by its least squares
          problem with nonnegative weights.
        - "performance": by the mean squared error of each kernel alone in threefold
          cross-validation (PWMK; Qiu and Lane, 2009).
    tol : float, default=1e-3
        Certified relative gap at which the solver stops.
    max_iter : int, default=1000
        Largest number of iterations of the solver.
    time_limit : float, default=None
        Largest number of seconds of the fit. When it is reached, the best certified model so far
        is kept. A fit with a limit first solves machines with a fixed kernel, on as many rows as
        there is time for, so that it returns nothing worse than these. The rules "alignment" and
        "performance" take their time before that.
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
        and at the end. A later fit of the same problem (rows, weights, `C`, kernels;
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
    weights_ : ndarray of shape (n_kernels,)
        Weights of the kernels, which are not negative and sum to one.
    parameter_ : ndarray of shape (n_kernels,)
        Parameter of `kernel_`, as in the other estimators with a learned kernel. It is `weights_`.
    dictionary_ : FittedDictionary
        Kernels on the scale of the training rows: ``dictionary_.kernels[i]`` has weight i.
    kernel_ : LearnedKernel
        Weighted sum of the kernels, a function of rows in the units of the training data:
        ``kernel_(X, Y)`` is the kernel matrix.
    support_ : ndarray of shape (n_support,)
        Indices of the support vectors in the training data: the rows with a nonzero coefficient.
        Equal rows with equal targets are merged and count as the first one.
    support_vectors_ : ndarray of shape (n_support, n_features)
        Support vectors, in the units of the training data.
    dual_coef_ : ndarray of shape (1, n_support)
        Signed coefficients of the support vectors, in units of y.
    intercept_ : ndarray of shape (1,)
        Constant of the prediction, in units of y. Predictions are
        ``kernel_(X, support_vectors_) @ dual_coef_[0] + intercept_[0]``.
    objective_ : float
        Certified upper bound of the optimal value, for the standardised target. The optimum is
        over weights and machines if the weights are "learned" or "simple", and over the machines
        with the given weights otherwise.
    lower_bound_ : float
        Certified lower bound of the optimal value that `objective_` bounds from above.
    epsilon_ : float
        Half-width of the tube that was used, in standard deviations of y.
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
        Share of the weighted kernel that linear functions of the features explain, between 0 and
        1. See :func:`tessella.inspection.linear_share`. It is computed when it is first read.
    kernel_is_linear_ : bool
        Whether `linear_share_` is at least 0.99. The model is then nearly a linear one.
    loo_predictions_ : ndarray of shape (n_samples,)
        Prediction for each training row by the machine without this row, in units of y, for the
        learned weights. It is computed when it is first read, see
        :func:`tessella.leave_one_out.svm_leave_one_out`, and only by the estimator that was
        fitted, because copies and files do not contain the training rows. It neglects that the
        weights and the scale of y were learned from the row too. A row of weight k stands for k
        copies, of which one is left out. Rows of weight 0 have their ordinary predictions.
    loo_score_ : float
        R² of `loo_predictions_`, weighted with the sample weights.
    leaves_ : FittedLeaves
        Partition and base function of a fit in leaves, and the numbers of support vectors of each
        leaf. Only available after such a fit. Then `support_` has the rows of one leaf after the
        other, `intercept_` has the shape (n_leaves, n_machines), and `kernel_` is the kernel of
        rows in the same leaf.
    n_features_in_ : int
        Number of features of the training data.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features of the training data. Only available if it had names.

    See Also
    --------
    MultipleKernelSVC : Classification with a weighted sum of kernels.
    LearnedKernelSVR : Regression with a kernel of a continuous family.

    Notes
    -----
    The estimator is :class:`LearnedKernelSVR` with a :class:`KernelDictionary` as its kernel set,
    and everything that holds for that estimator holds here: long fits, saving, relevance, search.
    Kernel matrices are computed where they are needed and not kept, except for their weighted sum.

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
        epsilon: Any = "auto",
        weighting: str = "learned",
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
        self.epsilon = epsilon
        self.weighting = weighting
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

    def _targets(self, problem: TrainingProblem) -> FloatArray:
        """Return the standardised target as one column."""
        return problem.machines.dual.linear[:, None]

    def _performance_weights(
        self, problem: TrainingProblem, kernels: BoundDictionary
    ) -> FloatArray:
        """Return weights by the error of each kernel alone."""
        dual, weight = problem.machines.dual, problem.rows.weight
        return weights_of_errors(squared_errors(kernels, dual, weight))
