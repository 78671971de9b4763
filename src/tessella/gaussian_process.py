"""The learned kernel as a covariance function of scikit-learn's Gaussian processes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.gaussian_process.kernels import Hyperparameter, Kernel

from tessella.kernels import LearnedKernel

__all__ = ["LearnedGPKernel"]

FloatArray = NDArray[np.float64]


class LearnedGPKernel(Kernel):  # type: ignore[misc]
    """``scale`` times a learned kernel, as a kernel of :mod:`sklearn.gaussian_process`.

    The learned kernel itself stays fixed; its `scale` is a hyperparameter that the Gaussian
    process tunes, and ``+``, ``*`` and ``**`` combine it with any kernel of scikit-learn.

    Parameters
    ----------
    kernel : LearnedKernel
        The ``kernel_`` of a fitted estimator.
    scale : float, default=1.0
        Factor of the kernel: a variance, not a standard deviation.
    scale_bounds : pair of floats or "fixed", default=(1e-5, 1e5)
        Where the Gaussian process looks for `scale`; "fixed" leaves it as it is.

    See Also
    --------
    tessella.KernelFeatures : Explicit features, when there are too many rows for a matrix.

    Notes
    -----
    ``KernelRidge``, ``KernelPCA`` and ``Nystroem`` of scikit-learn ask such an object for whole
    matrices, where they would call a plain function once per pair of rows. It is the fast way to
    use a learned kernel there.

    A learned kernel is not stationary and not normalised: the prior variance ``k(x, x)`` differs
    from place to place.

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
        """What the Gaussian process may tune."""
        return Hyperparameter("scale", "numeric", self.scale_bounds)

    def __call__(self, X: Any, Y: Any = None, eval_gradient: bool = False) -> Any:
        """Kernel matrix and, on request, its gradient in the logarithm of `scale`.

        Parameters
        ----------
        X : array-like of shape (m, n_features)
            Rows in the units of the training data of the kernel.
        Y : array-like of shape (l, n_features), optional
            Other rows; X when left out.
        eval_gradient : bool, default=False
            Return the gradient as well. Only when Y is left out.

        Returns
        -------
        K : ndarray of shape (m, l)
            The matrix.
        K_gradient : ndarray of shape (m, m, 1), or (m, m, 0) when `scale` is fixed
            Its derivative in log(scale), when `eval_gradient` is true.
        """
        if eval_gradient and Y is not None:
            raise ValueError("The gradient is defined for Y=None only.")
        K: FloatArray = self.scale * self._learned()(X, Y)
        if not eval_gradient:
            return K
        # d(scale · k) / d log(scale) is the matrix itself.
        free = 0 if self.hyperparameter_scale.fixed else 1
        return K, np.repeat(K[:, :, None], free, axis=2)

    def diag(self, X: Any) -> FloatArray:
        """Variance at each row, without the matrix.

        Parameters
        ----------
        X : array-like of shape (m, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (m,)
        """
        variance: FloatArray = self.scale * self._learned().diag(X)
        return variance

    def is_stationary(self) -> bool:
        """Tell that it is not: a learned kernel depends on more than ``x - y``."""
        return False

    def _learned(self) -> LearnedKernel:
        if not isinstance(self.kernel, LearnedKernel):
            raise TypeError(
                f"kernel={self.kernel!r} must be a LearnedKernel, the kernel_ of a fitted "
                "estimator."
            )
        return self.kernel

    def __repr__(self) -> str:
        return f"{type(self).__name__}(scale={self.scale:.3g})"
