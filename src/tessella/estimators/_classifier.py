"""Classification with a learned kernel."""

from __future__ import annotations

from typing import Any, Self

from sklearn.base import ClassifierMixin

from tessella.estimators._base import BaseLearnedKernel
from tessella.estimators._machines import Machines, class_pairs
from tessella.estimators._one_vs_one import OneVsOneMixin, class_multipliers, encode_labels
from tessella.estimators._problem import TrainingProblem, ValidatedData
from tessella.estimators._separate import solve_separately
from tessella.estimators._solving import FitCallbacks
from tessella.estimators._state import FittedState
from tessella.estimators._training_set import TrainingSet
from tessella.estimators._warm_start import PreviousFit


class LearnedKernelSVC(ClassifierMixin, OneVsOneMixin, BaseLearnedKernel):  # type: ignore[misc]
    """Support vector classification that learns its kernel, with a certificate.

    Finds the kernel of a convex family and the support vector machine on it together, and proves
    how far the answer can be from the optimum: ``gap_``.

    Parameters
    ----------
    C : float, default=10.0
        Weight of the loss, per sample. Kernels are normalised by the volume of their integration
        box, so a good value does not depend on `delta` nor on the number of features.
    kernels : {"tessellated", "polynomial"} or KernelSet, default="tessellated"
        The family to choose from. The names use `degree` and `delta`; a
        :class:`~tessella.kernels.KernelSet` brings its own.
    degree : int, default=1
        Largest degree of the monomials, when `kernels` is a name.
    delta : float, default=0.5
        Margin of the integration box around the data scaled to [0, 1], when `kernels` is
        "tessellated".
    solver : {"auto", "working-set", "joint", "frank-wolfe", "apd", "hybrid", "sdp"}, \
            default="auto"
        Algorithm; "auto" chooses by the size of the problem. See :mod:`tessella.solvers`.
    tol : float, default=1e-3
        Certified relative gap at which to stop.
    max_iter : int, default=1000
        Limit on the solver's iterations.
    time_limit : float, default=None
        Limit in seconds. The best certified model so far is kept.
    precision : {"float64", "float32"}, default="float64"
        Storage of kernel matrices. "float32" halves the memory; the certificate is computed in
        float64 either way, but gaps much below 1e-4 may be out of reach.
    multi_class : {"shared", "separate"}, default="shared"
        With more than two classes there is a machine for each pair of them. "shared" learns one
        kernel for all, together: the sum of their problems is convex, and one certificate holds
        for it. "separate" learns a kernel for each pair, and `kernel_`, `P_`, `history_` and
        `validation_scores_` are lists.
    decision_function_shape : {"ovr", "ovo"}, default="ovr"
        With more than two classes, whether `decision_function` has a column for each class or
        for each pair, as in :class:`sklearn.svm.SVC`.
    break_ties : bool, default=False
        With more than two classes, whether `predict` decides between classes that win as many
        pairs by their scores, rather than for the first of them.
    class_weight : dict or "balanced", default=None
        Multipliers of `C` by class, as in :class:`sklearn.svm.SVC`.
    early_stopping : bool, default=False
        Hold a part of the rows out of the training problem and stop when the score on them has
        not improved for `n_iter_no_change` records of the solver. Only the time of the stop is
        decided so: the model kept is the best certified one, and its certificate is that of the
        problem on the rows that were not held out.
    validation_fraction : float, default=0.1
        Part of the rows to hold out, of every class alike, with early stopping.
    n_iter_no_change : int, default=5
        Records without a better score to wait for, with early stopping.
    checkpoint : path-like, default=None
        File that keeps the best certified pair of a long fit, replaced at most every 30 seconds
        and at the end. A fit of the same problem (rows, weights, `C`, kernels; whatever its
        solver, tolerance and limits) goes on from it. The checkpoint of another problem is an
        error as long as that is unfinished, and is replaced otherwise. One path serves one fit
        at a time. Limits are those of each run; `history_` covers all of them.
    warm_start : bool, default=False
        Start from the kernel (and, for the same rows, the dual vector) of the previous fit,
        however that ended. A checkpoint comes first.
    warn_outside : bool, default=False
        Whether to warn (:class:`ExtrapolationWarning`) when rows to predict lie outside the range
        of the training data, with their number, the features and what the kernel does there.
        :meth:`count_outside` gives the same at any time.
    verbose : int, default=0
        1 prints a line per iteration; 2 shows a live display, which needs rich on a terminal.
    random_state : int, RandomState instance or None, default=None
        Draws the rows that early stopping holds out; nothing else is random.
    n_jobs : int, default=None
        Threads; None for all the process may use.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels, in order.
    kernel_ : LearnedKernel
        The kernel: ``kernel_(X, Y)`` is its matrix, on raw features.
    P_ : ndarray of shape (n_params, n_params)
        Its matrix.
    support_ : ndarray of shape (n_support,)
        Rows of the training data with a nonzero coefficient in some machine. Equal rows with
        equal labels are one row here, the first of them.
    support_vectors_ : ndarray of shape (n_support, n_features)
        Those rows.
    dual_coef_ : ndarray of shape (n_machines, n_support)
        Their signed coefficients: one row with two classes, else one for each pair of classes.
    intercept_ : ndarray of shape (n_machines,)
        Offsets: ``kernel_(X, support_vectors_) @ dual_coef_.T + intercept_`` are the scores.
    objective_, lower_bound_, gap_ : float
        Certified upper and lower bounds of the optimum, and their relative difference; with
        several machines, those of the sum over all of them.
    n_iter_ : int
        Iterations of the solver.
    history_ : tuple of IterationRecord
        Bounds, steps and times of each iteration.
    status_, solver_ : str
        Why the solver stopped, and which one it was.
    validation_scores_ : ndarray of shape (n_records,) or None
        Score of the best certified model on the rows held out, at each record; None without
        early stopping.
    feature_relevance_ : ndarray of shape (n_features_in_,)
        Share of the variance of the learned function that involves each feature, between 0 and 1;
        see :func:`tessella.inspection.feature_relevance` for the formula. Computed when first
        read, on at most 256 representative training rows, which the model keeps for this.
    interaction_relevance_ : ndarray of shape (n_features_in_, n_features_in_)
        Share that needs both features of a pair; see
        :func:`tessella.inspection.interaction_relevance`. Computed when first read. NaN for pairs
        outside the 12 features of largest relevance.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, when the training data had any.

    See Also
    --------
    LearnedKernelSVR : The same for regression.

    Notes
    -----
    Features are scaled to [0, 1] and constant ones dropped, so their units do not matter.
    A fit holds the kernel's rows of the support vectors, as many as memory allows, and costs a
    few SVM solves (the whole matrix, twice, with "frank-wolfe").

    Examples
    --------
    >>> from sklearn.datasets import make_circles
    >>> from tessella import LearnedKernelSVC
    >>> X, y = make_circles(200, noise=0.1, factor=0.4, random_state=0)
    >>> model = LearnedKernelSVC().fit(X, y)
    >>> model.score(X, y) > 0.95
    True
    >>> model.gap_ <= model.tol
    True
    """

    def __init__(
        self,
        C: float = 10.0,
        *,
        kernels: Any = "tessellated",
        degree: int = 1,
        delta: float = 0.5,
        solver: str = "auto",
        tol: float = 1e-3,
        max_iter: int = 1000,
        time_limit: float | None = None,
        precision: str = "float64",
        multi_class: str = "shared",
        decision_function_shape: str = "ovr",
        break_ties: bool = False,
        class_weight: Any = None,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 5,
        checkpoint: Any = None,
        warm_start: bool = False,
        warn_outside: bool = False,
        verbose: int = 0,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.C = C
        self.kernels = kernels
        self.degree = degree
        self.delta = delta
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.time_limit = time_limit
        self.precision = precision
        self.multi_class = multi_class
        self.decision_function_shape = decision_function_shape
        self.break_ties = break_ties
        self.class_weight = class_weight
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.checkpoint = checkpoint
        self.warm_start = warm_start
        self.warn_outside = warn_outside
        self.verbose = verbose
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn the kernel and the classifier.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training data, dense and finite.
        y : array-like of shape (n_samples,)
            Labels, of any type and any number of classes from two on.
        sample_weight : array-like of shape (n_samples,), optional
            Multipliers of `C`. Weight k is the same as k copies, weight 0 as absence.

        Returns
        -------
        LearnedKernelSVC
            The fitted estimator.
        """
        return self._fit(X, y, sample_weight)

    def _check_params(self) -> None:
        super()._check_params()
        if self.multi_class not in ("shared", "separate"):
            raise ValueError(
                f"multi_class={self.multi_class!r} is unknown; use 'shared' or 'separate'."
            )
        self._check_votes()

    def _prepare(self, data: ValidatedData) -> TrainingProblem:
        classes, codes = encode_labels(data.y, data.weight)
        weight, validation_set = self._hold_out(data, stratify=True)
        weight = weight * class_multipliers(self.class_weight, classes, codes, weight)
        rows = TrainingSet.build(data.X, codes, weight)
        pairs = class_pairs(len(classes))
        machines = Machines.one_vs_one(rows.y, self.C * rows.weight, pairs)
        return TrainingProblem.build(
            data, rows, machines, classes=classes, validation_set=validation_set
        )

    def _solve(
        self, problem: TrainingProblem, callbacks: FitCallbacks, previous: PreviousFit | None
    ) -> FittedState:
        if self.multi_class == "separate" and len(problem.machines) > 1:
            return solve_separately(self, problem, callbacks, previous)
        return super()._solve(problem, callbacks, previous)
