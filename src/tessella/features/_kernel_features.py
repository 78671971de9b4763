"""Transformer that computes Nyström features."""

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

_TILE_BYTES = 32 * 2**20  # size of a tile of the kernel matrix between rows and landmarks


class KernelFeatures(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Nyström features of a learned kernel.

    The transformer maps every row x to a vector φ(x) such that ``φ(x) @ φ(y)`` approximates
    k(x, y). To do so, it projects the kernel onto `n_components` landmarks. A linear model on these
    features is a kernel machine with the learned kernel, and its cost grows linearly with the
    number of rows. In this way the kernel can be learned on some thousands of rows and then be
    used to train on millions of rows.

    Parameters
    ----------
    kernel : LearnedKernel or estimator, default=None
        Kernel of the features, or estimator that provides it.

        - A :class:`~tessella.LearnedKernel`, such as the ``kernel_`` of a fitted estimator, is used
          as it is.
        - A fitted estimator provides its ``kernel_``. Note that :func:`sklearn.base.clone`, which
          every search and every cross-validation calls, returns an estimator that is not fitted.
          In these cases, pass the ``kernel_`` instead of the estimator.
        - Of an estimator that is not fitted, such as ``LearnedKernelSVR(C=1)``, a copy is fitted
          on at most `n_learn` rows.
        - None learns the kernel with ``LearnedKernelSVC()`` if the target contains classes, and
          with ``LearnedKernelSVR()`` if it is continuous. Whole numbers are classes; to treat them
          as a continuous target, pass ``LearnedKernelSVR()``. Without a target, the kernel is the
          centre of the tessellated family, P = I on the box of the training data.
    n_components : int, default=100
        Number of landmarks. If there are fewer distinct rows, all of them are landmarks. The
        number of features is the numerical rank of the kernel matrix of the landmarks, which can
        be smaller than the number of landmarks.
    landmarks : {"leverage", "k-means", "random"}, default="leverage"
        Method that chooses the landmarks. It considers at most 20,000 distinct rows, or 10 rows
        per landmark if that is more, which are drawn at random.

        - "leverage" draws rows with probabilities proportional to their approximate ridge leverage
          scores. The scores are computed in two rounds: from a uniform sample of two rows per
          landmark, and then from a sample of the same size that is drawn by the scores of the first
          round. The ridge is chosen such that the effective dimension is a quarter of
          `n_components`.
        - "k-means" uses the centres of clusters of the scaled rows. It is suitable for a small
          number of landmarks on clustered data. On other data, the centres are far from the
          boundary of the data, where the approximation is then worse.
        - "random" draws rows uniformly. It is the fastest method.
    n_learn : int, default=1000
        Largest number of rows on which an estimator is fitted to learn the kernel. The rows are
        drawn at random.
    random_state : int, RandomState or None, default=None
        Seed for drawing rows and landmarks.
    n_jobs : int, default=None
        Number of threads. None means all cores that the process may use.

    Attributes
    ----------
    kernel_ : LearnedKernel
        Kernel that the features approximate.
    components_ : ndarray of shape (n_landmarks, n_features_in_)
        Landmarks, in the units of the data.
    normalization_ : ndarray of shape (n_landmarks, n_features_out)
        Matrix that maps kernel values to features: the features of X are
        ``kernel_(X, components_) @ normalization_``.
    eigenvalues_ : ndarray of shape (n_features_out,)
        Eigenvalues of the kernel matrix of the landmarks, in decreasing order, one for each
        feature.
    n_features_in_ : int
        Number of columns of the training data.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns of the training data. Defined only if the columns have names.

    See Also
    --------
    tessella.gaussian_process.LearnedGPKernel : Use a learned kernel in Gaussian processes.

    Notes
    -----
    Let L be the landmarks and ``K_LL = V diag(λ) Vᵀ`` the eigenvalue decomposition of their kernel
    matrix. The features are ``k(x, L) V diag(λ)^-½``, restricted to the eigenvalues above the
    rounding level, ``λ > n_landmarks · 2⁻⁵² · max λ``, because smaller ones would only amplify
    noise. The matrix ``φ(X) φ(X)ᵀ`` is then the Nyström approximation ``K_XL K_LL⁺ K_LX``. The
    difference between K and this approximation is positive semidefinite, it does not grow when
    landmarks are added, and it is zero on the landmarks.

    The cost of `fit` is O(n_components³), in addition to the choice of the landmarks. The cost of
    `transform` is O(n_components) kernel values and n_components · n_features_out multiplications
    per row. Rows are processed in tiles, so that `transform` needs 32 MB in addition to the
    features, whatever the number of rows.

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
        """Learn the kernel if necessary, and choose the landmarks.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training data, dense and finite.
        y : array-like of shape (n_samples,), optional
            Target from which the kernel is learned. It is ignored if the kernel is given.

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
        """Compute the features of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows in the units of the training data.

        Returns
        -------
        ndarray of shape (n_samples, n_features_out)
            Features of the rows.
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
        """Number of features, which ``get_feature_names_out`` needs."""
        return int(self.normalization_.shape[1])

    def _check_params(self) -> None:
        for name in ("n_components", "n_learn"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, Integral) or value < 1:
                raise ValueError(f"{name}={value!r} must be an integer >= 1.")
        if self.landmarks not in LANDMARKS:
            raise ValueError(f"landmarks={self.landmarks!r} is unknown; use one of {LANDMARKS}.")

    # ------------------------------------------------------------------------- the kernel

    def _find_kernel(self, X: FloatArray, y: Any, rng: np.random.RandomState) -> LearnedKernel:
        kernel = self._given_kernel()
        if kernel is None:
            kernel = _unlearned(X) if y is None and self.kernel is None else self._learn(X, y, rng)
        if kernel.n_features_in != X.shape[1]:
            raise ValueError(
                f"The kernel was learned on {kernel.n_features_in} features, but X has "
                f"{X.shape[1]}."
            )
        return kernel

    def _given_kernel(self) -> LearnedKernel | None:
        """Return the kernel that the parameter `kernel` provides, or None."""
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
                f"The {type(self.kernel).__name__} given as kernel is not fitted, and it cannot be "
                "fitted without y. Pass y, or pass the kernel_ of a fitted estimator. (Cloning a "
                "transformer, as every search does, also clones the estimator in it, and the clone "
                "is not fitted.)"
            )
        y = column_or_1d(y, warn=True)
        check_consistent_length(X, y)
        learner = clone(self.kernel) if self.kernel is not None else self._default_learner(y)
        rows = _some_rows(y, int(self.n_learn), rng)
        found = getattr(learner.fit(X[rows], y[rows]), "kernel_", None)
        if not isinstance(found, LearnedKernel):
            raise ValueError(
                f"{learner!r} did not learn a single kernel: its kernel_ is {found!r}."
            )
        return found

    def _default_learner(self, y: NDArray[Any]) -> Any:
        kind = type_of_target(y, input_name="y", raise_unknown=True)
        if kind in ("binary", "multiclass"):
            return LearnedKernelSVC(n_jobs=self.n_jobs)
        if kind == "continuous":
            return LearnedKernelSVR(n_jobs=self.n_jobs)
        raise ValueError(f"Cannot learn a kernel from a target of type {kind!r}.")


def _unlearned(X: FloatArray) -> LearnedKernel:
    """Return the kernel at the centre of the tessellated family, on the box of X."""
    box = UnitBox.fit(X)
    if not len(box.kept):
        raise ValueError(
            f"All {X.shape[1]} features are constant, so no kernel can distinguish the rows."
        )
    kernels = TessellatedKernels()
    return LearnedKernel(kernels, np.eye(kernels.count_params(len(box.kept))), box)


def _some_rows(y: NDArray[Any], count: int, rng: np.random.RandomState) -> NDArray[np.intp]:
    """Return at most `count` random rows, with at least one row of each class if possible."""
    order = rng.permutation(len(y))
    if len(order) <= count:
        return np.arange(len(y))
    if type_of_target(y) in ("binary", "multiclass"):
        _, first = np.unique(y[order], return_index=True)
        order = np.concatenate([order[first], np.delete(order, first)])
    return np.sort(order[:count])
