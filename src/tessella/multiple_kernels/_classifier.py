"""Classification with a weighted sum of kernels."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin

from tessella.estimators._machines import Machines, class_pairs
from tessella.estimators._one_vs_one import OneVsOneMixin, class_multipliers, encode_labels
from tessella.estimators._training_set import TrainingSet
from tessella.multiple_kernels._base import BaseMultipleKernel, Task
from tessella.multiple_kernels._bound import BoundDictionary
from tessella.multiple_kernels._fixed import weights_of_scores
from tessella.multiple_kernels._performance import accuracies

FloatArray = NDArray[np.float64]


class MultipleKernelSVC(ClassifierMixin, OneVsOneMixin, BaseMultipleKernel):  # type: ignore[misc]
    """Support vector classification with a weighted sum of kernels from a dictionary.

    Finds weights μ ≥ 0 with sum 1 and the machine with the kernel ``Σ μ_i k_i``: together, with a
    proof of how far from the optimum they can be, or the weights by a rule.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the loss, per sample. Dictionaries divide kernels by the mean of their diagonal
        unless told otherwise, so C means what it does for a Gaussian kernel in
        :class:`sklearn.svm.SVC`.
    kernels : "standard", list of kernels or KernelDictionary, default="standard"
        What to choose from. "standard" is :meth:`KernelDictionary.standard`: Gaussians with ten
        bandwidths from 0.5 to 10 and polynomials of degree 1 to 3, of all features and of each
        feature alone, which are 13 (n + 1) kernels. A list is ``KernelDictionary(list)``:
        features standardised, kernels divided by their mean diagonal.
    weighting : {"learned", "simple", "average", "alignment", "performance"}, default="learned"
        How the weights are found.

        - "learned": by our own solver, together with the machine, to a certified gap.
        - "simple": by SimpleMKL (Rakotomamonjy et al., 2008). Same optimum, many more SVMs.
        - "average": all equal (AMKL).
        - "alignment": largest centred alignment with the classes (CKA; Cortes et al., 2012), in
          closed form where that has no negative weight, else its least squares problem with
          weights ≥ 0.
        - "performance": in proportion to the accuracy of each kernel alone in threefold
          cross-validation (PWMK; Tanabe et al., 2008).
    tol : float, default=1e-3
        Certified relative gap at which to stop.
    max_iter : int, default=1000
        Limit on the solver's iterations.
    time_limit : float, default=None
        Limit in seconds on the solver; the best certified model so far is kept. The rules of
        "alignment" and "performance" take their time before that.
    decision_function_shape : {"ovr", "ovo"}, default="ovr"
        With more than two classes, whether `decision_function` has a column for each class or
        for each pair, as in :class:`sklearn.svm.SVC`.
    break_ties : bool, default=False
        With more than two classes, whether `predict` decides between classes that win as many
        pairs by their scores, rather than for the first of them.
    class_weight : dict or "balanced", default=None
        Multipliers of `C` by class, as in :class:`sklearn.svm.SVC`.
    verbose : int, default=0
        1 prints a line per iteration; 2 shows a live display, which needs rich on a terminal.
    n_jobs : int, default=None
        Threads; None for all the process may use.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels, in order.
    weights_ : ndarray of shape (n_kernels,)
        Weights of the kernels; not negative, with sum 1.
    dictionary_ : FittedDictionary
        The kernels, on the scale of the training rows: ``dictionary_.kernels[i]`` has weight i.
    kernel_ : CombinedKernel
        Their weighted sum: ``kernel_(X, Y)`` is its matrix, on raw features.
    support_, support_vectors_ : ndarray
        Rows of the training data with a nonzero coefficient in some machine: their numbers, and
        the rows. Equal rows with equal labels are one row here, the first of them.
    dual_coef_ : ndarray of shape (n_machines, n_support)
        Their signed coefficients: one row with two classes, else one for each pair of classes.
    intercept_ : ndarray of shape (n_machines,)
        Offsets: ``kernel_(X, support_vectors_) @ dual_coef_.T + intercept_`` are the scores.
    objective_, lower_bound_, gap_ : float
        With "learned" and "simple", certified upper and lower bounds of the optimum over weights
        and machines, and their relative difference. Otherwise the weights are no optimum of
        anything, and these are the bounds of their own SVM. With several machines, those of the
        sum over all of them.
    n_iter_ : int
        Iterations of the solver.
    history_ : tuple of IterationRecord
        Bounds, steps, SVMs on all samples and times of each iteration.
    status_ : str
        Why the solver stopped.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, when the training data had any.

    See Also
    --------
    MultipleKernelSVR : The same for regression.
    LearnedKernelSVC : Learns a kernel of a continuous family instead.

    Notes
    -----
    With more than two classes there is a machine for each pair of them, and all share the
    weights: the sum of their problems is convex, and one certificate holds for it.

    Kernel matrices are computed where they are needed and not kept, but for their weighted sum:
    a fit holds one m × m matrix, two more with "simple" and "performance", and three more of the
    samples that move with "learned". Models are kept with pickle or joblib.

    Examples
    --------
    >>> from sklearn.datasets import make_circles
    >>> from tessella import MultipleKernelSVC
    >>> X, y = make_circles(200, noise=0.1, factor=0.4, random_state=0)
    >>> model = MultipleKernelSVC().fit(X, y)
    >>> model.score(X, y) > 0.95
    True
    >>> model.gap_ <= model.tol
    True
    >>> from tessella.multiple_kernels import Gaussian, Polynomial
    >>> two = MultipleKernelSVC(kernels=[Gaussian(1.0), Polynomial(1)]).fit(X, y)
    >>> two.weights_.argmax()
    np.int64(0)
    """

    def __init__(
        self,
        C: float = 1.0,
        kernels: Any = "standard",
        *,
        weighting: str = "learned",
        tol: float = 1e-3,
        max_iter: int = 1000,
        time_limit: float | None = None,
        decision_function_shape: str = "ovr",
        break_ties: bool = False,
        class_weight: Any = None,
        verbose: int = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.C = C
        self.kernels = kernels
        self.weighting = weighting
        self.tol = tol
        self.max_iter = max_iter
        self.time_limit = time_limit
        self.decision_function_shape = decision_function_shape
        self.break_ties = break_ties
        self.class_weight = class_weight
        self.verbose = verbose
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Find the weights and the classifier.

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
        MultipleKernelSVC
            The fitted estimator.
        """
        return self._fit(X, y, sample_weight)

    def _check_params(self) -> None:
        super()._check_params()
        self._check_votes()

    def _task(self, X: FloatArray, y: Any, weight: FloatArray) -> Task:
        classes, codes = encode_labels(y, weight)
        weight = weight * class_multipliers(self.class_weight, classes, codes, weight)
        rows = TrainingSet.build(X, codes, weight)
        self.classes_ = classes
        pairs = class_pairs(len(classes))
        return Task(rows, Machines.one_vs_one(rows.y, self.C * rows.weight, pairs))

    def _targets(self, task: Task) -> FloatArray:
        indicators: FloatArray = (task.rows.y[:, None] == np.arange(len(self.classes_))) + 0.0
        return indicators

    def _performance(self, bound: BoundDictionary, task: Task) -> FloatArray:
        rows = task.rows
        return weights_of_scores(accuracies(bound, rows.y, self.C * rows.weight, rows.weight))
