"""Learned kernels as covariance functions of scikit-learn's Gaussian processes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.gaussian_process.kernels import Hyperparameter, Kernel

from tessella.kernels import LearnedKernel

__all__ = ["LearnedGPKernel"]

FloatArray = NDArray[np.float64]


class LearnedGPKernel(Kernel):  # type: ignore[misc]
    """Learned kernel, times a scale, as a kernel of :mod:`sklearn.gaussian_process`.

    The learned kernel itself remains fixed. Its `scale` is a hyperparameter that the Gaussian
    process tunes. The operators ``+``, ``*`` and ``**`` combine the kernel with other kernels of
    scikit-learn.

    Parameters
    ----------
    kernel : LearnedKernel
        Learned kernel, such as the ``kernel_`` of a fitted estimator.
    scale : float, default=1.0
        Factor by which the kernel is multiplied. It is a variance, not a standard deviation.
    scale_bounds : pair of floats or "fixed", default=(1e-5, 1e5)
        Lower and upper bound on `scale` when the Gaussian process tunes it. With "fixed", it is
        not tuned.

    See Also
    --------
    tessella.KernelFeatures : Compute explicit features, for data with many rows.

    Notes
    -----
    ``KernelRidge``, ``KernelPCA`` and ``Nystroem`` of scikit-learn evaluate an object of this class
    on whole matrices, whereas they call an ordinary function once for each pair of rows. For these
    estimators, use this class rather than the learned kernel itself.

    A learned kernel is neither stationary nor normalised, so the prior variance ``k(x, x)`` depends
    on x.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.gaussian_process import GaussianProcessRegressor
    >>> from sklearn.gaussian_process.kernels import WhiteKernel
    >>> from tessella import LearnedKernelSVR
    >>> from tessella.gaussian_process import LearnedGPKernel
    >>> rng = np.random.default_rng(0)
    >>> X = rng.random((160, 2))
    >>> y = np.sin(6 * X[:, 0]) * X[:, 1] + 0.1 * rng.standard_normal(160)
    >>> model = LearnedKernelSVR().fit(X, y)
    >>> kernel = LearnedGPKernel(model.kernel_) + WhiteKernel(0.01)
    >>> process = GaussianProcessRegressor(kernel, normalize_y=True).fit(X, y)
    >>> mean, deviation = process.predict(X, return_std=True)
    >>> bool(np.mean(np.abs(y - mean) < 2 * deviation) > 0.9)
    True
    """

    def __init__(
        self,
        kernel: LearnedKernel,
        scale: float = 1.0,
        scale_bounds: tuple[float, float] | str = (1e-5, 1e5),
    ) -> None:
        self.kernel = kernel
        self.scale = scale
        self.scale_bounds = scale_bounds

    @property
    def hyperparameter_scale(self) -> Hyperparameter:
        """The hyperparameter `scale`, which the Gaussian process may tune."""
        return Hyperparameter("scale", "numeric", self.scale_bounds)

    def __call__(self, X: Any, Y: Any = None, eval_gradient: bool = False) -> Any:
        """Compute the kernel matrix and, on request, its gradient.

        Parameters
        ----------
        X : array-like of shape (m, n_features)
            Rows in the units of the training data of the kernel.
        Y : array-like of shape (l, n_features), optional
            Rows in the units of the training data of the kernel. By default, the rows of X.
        eval_gradient : bool, default=False
            Whether the gradient with respect to the logarithm of `scale` is returned as well. This
            requires that Y is None.

        Returns
        -------
        K : ndarray of shape (m, l)
            Kernel matrix.
        K_gradient : ndarray of shape (m, m, 1), or (m, m, 0) if `scale` is fixed
            Derivative of the kernel matrix with respect to log(scale). It is returned only if
            `eval_gradient` is true.
        """
        if eval_gradient and Y is not None:
            raise ValueError("The gradient can be computed for Y=None only.")
        K: FloatArray = self.scale * self._learned()(X, Y)
        if not eval_gradient:
            return K
        # d(scale · k) / d log(scale) is the matrix itself.
        free = 0 if self.hyperparameter_scale.fixed else 1
        return K, np.repeat(K[:, :, None], free, axis=2)

    def diag(self, X: Any) -> FloatArray:
        """Compute the diagonal of the kernel matrix, which is the prior variance at each row.

        Parameters
        ----------
        X : array-like of shape (m, n_features)
            Rows in the units of the training data of the kernel.

        Returns
        -------
        ndarray of shape (m,)
            Variance at each row.
        """
        variance: FloatArray = self.scale * self._learned().diag(X)
        return variance

    def is_stationary(self) -> bool:
        """Return False, because a learned kernel does not depend on ``x - y`` alone."""
        return False

    def _learned(self) -> LearnedKernel:
        if not isinstance(self.kernel, LearnedKernel):
            raise TypeError(
                f"kernel={self.kernel!r} must be a LearnedKernel, such as the kernel_ of a fitted "
                "estimator."
            )
        return self.kernel

    def __repr__(self) -> str:
        return f"{type(self).__name__}(scale={self.scale:.3g})"
