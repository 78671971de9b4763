"""The transformer from rows to Nyström features."""

from __future__ import annotations

from numbers import Integral
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import (
    check_consistent_length,
    check_is_fitted,
    column_or_1d,
    validate_data,
)

from tessella.backend import limit_blas
from tessella.estimators import LearnedKernelSVC, LearnedKernelSVR
from tessella.features._landmarks import LANDMARKS, choose_landmarks
from tessella.kernels import LearnedKernel, TessellatedKernels, UnitBox

FloatArray = NDArray[np.float64]

_TILE_BYTES = 32 * 2**20  # of the kernel between some rows and all landmarks


class KernelFeatures(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Nyström features of a learned kernel.

    Gives every row a vector φ(x) with ``φ(x) @ φ(y)`` close to k(x, y), by projecting the kernel
    on `n_components` landmarks. A linear model on these features is a kernel machine with that
    kernel, at a cost that grows with the number of rows and not with its square: learn the kernel
    on some thousands of rows, then train on millions.

    Parameters
    ----------
    kernel : LearnedKernel or estimator, default=None
        Where the kernel comes from.

        - A :class:`~tessella.LearnedKernel`, the ``kernel_`` of a fitted estimator: that one.
        - A fitted estimator: its ``kernel_``. Note that :func:`sklearn.base.clone`, and with it
          every search and cross-validation, takes the fit away from an estimator; give the
          ``kernel_`` there.
        - An estimator that is not fitted, such as ``LearnedKernelSVR(C=1)``: a copy of it is
          fitted on at most `n_learn` rows.
        - None: as with ``LearnedKernelSVC()`` for a target of classes, ``LearnedKernelSVR()`` for
          a continuous one. Whole numbers are classes; give a ``LearnedKernelSVR()`` to say that
          they are not. Without a target there is nothing to learn from, and the kernel is the
          middle of the tessellated family, P = I on the box of the training data.
    n_components : int, default=100
        Number of landmarks, fewer where there are not as many distinct rows. The number of
        features is the numerical rank of the kernel on them, which can be smaller.
    landmarks : {"leverage", "k-means", "random"}, default="leverage"
        How they are found, among at most 20,000 distinct rows (10 per landmark if that is more),
        drawn at random from those given.

        - "leverage": rows drawn with probabilities proportional to their approximate ridge
          leverage scores. Those come in two rounds, from a uniform sample of two rows per landmark
          and then from as many rows drawn by the scores of the first round, with the ridge that
          makes the effective dimension a quarter of `n_components`.
        - "k-means": centres of clusters of the scaled rows. Good for few landmarks on data in
          clusters; on other data centres keep away from the edges, where the kernel has to be
          known too.
        - "random": rows drawn uniformly, the quickest.
    n_learn : int, default=1000
        Rows, drawn at random, that an estimator is fitted on.
    random_state : int, RandomState or None, default=None
        Seed of every draw.
    n_jobs : int, default=None
        Threads; None for all the process may use.

    Attributes
    ----------
    kernel_ : LearnedKernel
        The kernel of the features.
    components_ : ndarray of shape (n_landmarks, n_features_in_)
        The landmarks, in the units of the data.
    normalization_ : ndarray of shape (n_landmarks, n_features_out)
        ``kernel_(X, components_) @ normalization_`` are the features.
    eigenvalues_ : ndarray of shape (n_features_out,)
        Of the kernel on the landmarks, in decreasing order, one per feature.
    n_features_in_ : int
        Number of columns of the data.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, when the data had any.

    See Also
    --------
    tessella.gaussian_process.LearnedGPKernel : The kernel itself, for scikit-learn.

    Notes
    -----
    With L the landmarks and ``K_LL = V diag(λ) Vᵀ``, the features are ``k(x, L) V diag(λ)^-½``
    over the eigenvalues above rounding, ``λ > n_landmarks · 2⁻⁵² · max λ``: dividing by smaller
    ones would only amplify noise. ``φ(X) φ(X)ᵀ`` is then the Nyström approximation
    ``K_XL K_LL⁺ K_LX``. It never exceeds K (the difference is positive semidefinite), does not
    become worse when landmarks are added, and equals K on the landmarks.

    `fit` costs O(n_components³) beside the landmarks, `transform` O(n_components) kernel values
    and n_components · n_features_out multiplications per row. Rows are taken in tiles, so that
    beyond the features themselves it needs 32 MB whatever their number.

    References
    ----------
    C. Williams, M. Seeger: *Using the Nyström method to speed up kernel machines*, NIPS 2000.
    K. Zhang, I. Tsang, J. Kwok: *Improved Nyström low-rank approximation and error analysis*,
    ICML 2008 (k-means). C. Musco, C. Musco: *Recursive sampling for the Nyström method*,
    NIPS 2017 (leverage scores).

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import Ridge
    >>> from sklearn.pipeline import make_pipeline
    >>> from tessella import KernelFeatures
    >>> rng = np.random.default_rng(0)
    >>> X = rng.random((3000, 2))
    >>> y = np.sin(6 * X[:, 0]) * X[:, 1]
    >>> features = KernelFeatures(n_components=60, n_learn=200, random_state=0)
    >>> model = make_pipeline(features, Ridge(1e-3)).fit(X, y)
    >>> model.score(X, y) > 0.95
    True
    """

    def __init__(
        self,
        kernel: Any = None,
        *,
        n_components: int = 100,
        landmarks: str = "leverage",
        n_learn: int = 1000,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.kernel = kernel
        self.n_components = n_components
        self.landmarks = landmarks
        self.n_learn = n_learn
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the kernel if need be, and choose the landmarks.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training data, dense and finite.
        y : array-like of shape (n_samples,), optional
            Target. Not looked at when the kernel is given.

        Returns
        -------
        KernelFeatures
            The fitted transformer.
        """
        self._check_params()
        X = validate_data(self, X, dtype=np.float64, order="C", ensure_min_samples=2)
        rng = check_random_state(self.random_state)
        kernel = self._find_kernel(X, y, rng)
        with limit_blas(self.n_jobs, self.n_components):
            components = choose_landmarks(
                self.landmarks, kernel, X, int(self.n_components), rng, self.n_jobs
            )
            eigenvalues, vectors = eigh(kernel(components, n_jobs=self.n_jobs))
        rounding = len(components) * np.finfo(float).eps * eigenvalues[-1]
        kept = np.flatnonzero(eigenvalues > rounding)[::-1]
        self.kernel_ = kernel
        self.components_ = components
        self.eigenvalues_ = eigenvalues[kept]
        self.normalization_ = vectors[:, kept] / np.sqrt(eigenvalues[kept])
        return self

    def transform(self, X: Any) -> FloatArray:
        """Features of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows in the units of the training data.

        Returns
        -------
        ndarray of shape (n_samples, n_features_out)
        """
        check_is_fitted(self, "normalization_")
        X = validate_data(self, X, dtype=np.float64, order="C", reset=False)
        step = max(1, _TILE_BYTES // (8 * len(self.components_)))
        features = np.empty((len(X), self._n_features_out))
        with limit_blas(self.n_jobs, len(self.components_)):
            for start in range(0, len(X), step):
                tile = slice(start, start + step)
                K = self.kernel_(X[tile], self.components_, n_jobs=self.n_jobs)
                np.matmul(K, self.normalization_, out=features[tile])
        return features

    @property
    def _n_features_out(self) -> int:
        """For ``get_feature_names_out``."""
        return int(self.normalization_.shape[1])

    def _check_params(self) -> None:
        for name in ("n_components", "n_learn"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, Integral) or value < 1:
                raise ValueError(f"{name}={value!r} must be a whole number >= 1.")
        if self.landmarks not in LANDMARKS:
            raise ValueError(f"landmarks={self.landmarks!r} is unknown; use one of {LANDMARKS}.")

    # ------------------------------------------------------------------------- the kernel

    def _find_kernel(self, X: FloatArray, y: Any, rng: np.random.RandomState) -> LearnedKernel:
        kernel = self._given_kernel()
        if kernel is None:
            kernel = _unlearned(X) if y is None and self.kernel is None else self._learn(X, y, rng)
        if kernel.n_features_in != X.shape[1]:
            raise ValueError(
                f"The kernel was learned on {kernel.n_features_in} features, and X has "
                f"{X.shape[1]}."
            )
        return kernel

    def _given_kernel(self) -> LearnedKernel | None:
        """The kernel that the parameter holds, if it holds one."""
        if isinstance(self.kernel, LearnedKernel):
            return self.kernel
        if self.kernel is not None and not hasattr(self.kernel, "fit"):
            raise ValueError(
                f"kernel={self.kernel!r} must be a LearnedKernel, such as the kernel_ of a fitted "
                "estimator, an estimator or None."
            )
        found = getattr(self.kernel, "kernel_", None)
        return found if isinstance(found, LearnedKernel) else None

    def _learn(self, X: FloatArray, y: Any, rng: np.random.RandomState) -> LearnedKernel:
        if y is None:
            raise NotFittedError(
                f"The {type(self.kernel).__name__} given as kernel is not fitted, and without y it "
                "cannot be. Pass y, or the kernel_ of a fitted estimator (copying a transformer, "
                "as every search does, takes the fit away from an estimator in it)."
            )
        y = column_or_1d(y, warn=True)
        check_consistent_length(X, y)
        learner = clone(self.kernel) if self.kernel is not None else self._default_learner(y)
        rows = _some_rows(y, int(self.n_learn), rng)
        found = getattr(learner.fit(X[rows], y[rows]), "kernel_", None)
        if not isinstance(found, LearnedKernel):
            raise ValueError(f"{learner!r} did not learn one kernel: its kernel_ is {found!r}.")
        return found

    def _default_learner(self, y: NDArray[Any]) -> Any:
        kind = type_of_target(y, input_name="y", raise_unknown=True)
        if kind in ("binary", "multiclass"):
            return LearnedKernelSVC(n_jobs=self.n_jobs)
        if kind == "continuous":
            return LearnedKernelSVR(n_jobs=self.n_jobs)
        raise ValueError(f"Cannot learn a kernel from a target of type {kind!r}.")


def _unlearned(X: FloatArray) -> LearnedKernel:
    """The kernel in the middle of the tessellated family, on the box of X."""
    box = UnitBox.fit(X)
    if not len(box.kept):
        raise ValueError(
            f"All {X.shape[1]} features are constant, so no kernel can tell the rows apart."
        )
    kernels = TessellatedKernels()
    return LearnedKernel(kernels, np.eye(kernels.count_params(len(box.kept))), box)


def _some_rows(y: NDArray[Any], count: int, rng: np.random.RandomState) -> NDArray[np.intp]:
    """At most `count` rows at random, one of each class first where y holds classes."""
    order = rng.permutation(len(y))
    if len(order) <= count:
        return np.arange(len(y))
    if type_of_target(y) in ("binary", "multiclass"):
        _, first = np.unique(y[order], return_index=True)
        order = np.concatenate([order[first], np.delete(order, first)])
    return np.sort(order[:count])
