"""Classification with a learned kernel."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets, type_of_target

from tessella.estimators._base import BaseLearnedKernel, Given, Watchers
from tessella.estimators._training_set import TrainingSet
from tessella.solvers import SolverResult
from tessella.svm import DualProblem

FloatArray = NDArray[np.float64]


class LearnedKernelSVC(ClassifierMixin, BaseLearnedKernel):  # type: ignore[misc]
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
        1 prints a line per iteration; 2 shows a live display, which needs rich.
    random_state : int, RandomState instance or None, default=None
        Draws the rows that early stopping holds out; nothing else is random.
    n_jobs : int, default=None
        Threads; None for all the process may use.

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
        Labels; positive scores mean the second.
    kernel_ : LearnedKernel
        The kernel: ``kernel_(X, Y)`` is its matrix, on raw features.
    P_ : ndarray of shape (n_params, n_params)
        Its matrix.
    support_ : ndarray of shape (n_support,)
        Rows of the training data with a nonzero coefficient. Equal rows with equal labels are
        one row here, the first of them.
    support_vectors_ : ndarray of shape (n_support, n_features)
        Those rows.
    dual_coef_ : ndarray of shape (1, n_support)
        Their signed coefficients.
    intercept_ : ndarray of shape (1,)
        Offset of the decision function.
    objective_, lower_bound_, gap_ : float
        Certified upper and lower bounds of the optimum, and their relative difference.
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

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn the kernel and the classifier.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training data, dense and finite.
        y : array-like of shape (n_samples,)
            Labels of two classes.
        sample_weight : array-like of shape (n_samples,), optional
            Multipliers of `C`. Weight k is the same as k copies, weight 0 as absence.

        Returns
        -------
        LearnedKernelSVC
            The fitted estimator.
        """
        return self._fit(X, y, sample_weight)

    def _learn(self, X: Any, y: Any, sample_weight: Any, watchers: Watchers) -> SolverResult:
        X, y, weight = self._validated(X, y, sample_weight)
        classes, signs = _encode_labels(y, weight)
        weight, held_out = self._hold_out(X, y, weight, stratify=True)
        weight = weight * _class_multipliers(self.class_weight, classes, signs, weight)
        rows = TrainingSet.build(X, signs, weight)
        dual = DualProblem.classification(rows.y, self.C * rows.weight)
        self.classes_ = classes
        return self._solve(rows, dual, Given(len(X), held_out=held_out), watchers)

    def decision_function(self, X: Any) -> FloatArray:
        """Signed score of each row; positive for ``classes_[1]``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows in the units of the training data.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return self._scores(X)

    def predict(self, X: Any) -> NDArray[Any]:
        """Label of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows in the units of the training data.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        positive = self._scores(X) > 0
        labels: NDArray[Any] = self.classes_[positive.astype(np.intp)]
        return labels


def _encode_labels(y: NDArray[Any], weight: FloatArray) -> tuple[NDArray[Any], FloatArray]:
    """The two classes, and -1 or +1 for each sample."""
    check_classification_targets(y)
    # Rows of weight zero are absent: a class that only they have does not exist.
    classes = np.unique(y[weight > 0])
    if len(classes) < 2:
        raise ValueError(
            f"Classification needs two classes and the training data has one class only: "
            f"{classes.tolist()[0]!r}."
        )
    if len(classes) > 2:
        raise ValueError(
            "Only binary classification is supported. The type of the target is "
            f"{type_of_target(y)}: it has {len(classes)} classes. Use "
            "sklearn.multiclass.OneVsRestClassifier(LearnedKernelSVC())."
        )
    return classes, np.where(y == classes[1], 1.0, -1.0)


def _class_multipliers(
    class_weight: Any, classes: NDArray[Any], signs: FloatArray, weight: FloatArray
) -> FloatArray:
    """Factor of each sample's weight from `class_weight`."""
    if class_weight is None:
        return np.ones_like(weight)
    if isinstance(class_weight, str) and class_weight == "balanced":
        # By total weight, not by count: a weight of k has to act like k copies.
        totals = [weight[signs < 0].sum(), weight[signs > 0].sum()]
        factors = [sum(totals) / (2 * total) for total in totals]
    elif isinstance(class_weight, dict):
        unknown = set(class_weight) - set(classes.tolist())
        if unknown:
            raise ValueError(
                f"class_weight names {sorted(map(str, unknown))}, which are not among the classes "
                f"{classes.tolist()}."
            )
        factors = [float(class_weight.get(label, 1.0)) for label in classes.tolist()]
        if min(factors) <= 0:
            raise ValueError(f"class_weight={class_weight!r} must hold positive numbers.")
    else:
        raise ValueError(f"class_weight={class_weight!r} must be None, 'balanced' or a dict.")
    multipliers: FloatArray = np.where(signs > 0, factors[1], factors[0])
    return multipliers
