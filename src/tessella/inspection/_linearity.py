"""How much of a learned kernel linear functions of the features explain."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

#: Share from which a kernel counts as linear.
NEARLY_ALL = 0.99


def linear_share(model: Any, X: Any = None) -> float:
    """Return the share of the learned kernel that linear functions of the features explain.

    A kernel is an inner product of functions of a row. The share is the part of the variance of
    these functions, over the given rows, that the best linear functions of the scaled features
    explain. With the centred kernel matrix ``K`` and the projection ``Q`` onto the centred features
    it is ``trace(Q K Q) / trace(K)``. It is 1 for an affine kernel, with which a support vector
    machine is a linear model.

    Parameters
    ----------
    model : fitted estimator of this library
        Model with a learned kernel or a weighted sum of kernels. If it has a kernel for each pair
        of classes, the smallest of their shares is returned.
    X : array-like of shape (n_samples, n_features), optional
        Rows in the units of the training data. By default, the at most 256 representative training
        rows that a model keeps are used.

    Returns
    -------
    float
        Share in [0, 1]. It is NaN if there are no more distinct rows than features, because any
        function of so few rows is linear, and for a constant kernel.

    Notes
    -----
    A share near 1 means that the model is nearly linear unless C is very large. It does not mean
    that the model is bad: where the target is a linear function, a linear kernel is the right one.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from tessella import LearnedKernelSVC
    >>> from tessella.inspection import linear_share
    >>> X, y = make_moons(80, noise=0.2, random_state=0)
    >>> curved = LearnedKernelSVC().fit(X, y)
    >>> linear_share(curved) < 0.9
    True
    >>> straight = LearnedKernelSVC(kernels="polynomial", degree=1).fit(X, y)
    >>> round(linear_share(straight), 6)
    1.0
    """
    rows = model._sample_rows if X is None else np.asarray(X, dtype=np.float64)
    kernels = model.kernel_ if isinstance(model.kernel_, list) else [model.kernel_]
    return float(np.min([_share(kernel, rows) for kernel in kernels]))


def _share(kernel: Any, rows: FloatArray) -> float:
    features = kernel.box.apply(rows)
    features = features - features.mean(axis=0)
    directions, sizes, _ = np.linalg.svd(features, full_matrices=False)
    used = directions[:, sizes > 1e-10 * max(1.0, sizes[0])] if len(sizes) else directions
    if used.shape[1] >= len(np.unique(rows, axis=0)) - 1:
        return float("nan")
    K = np.asarray(kernel(rows, rows), dtype=np.float64)
    size = float(np.trace(K))
    K = K - K.mean(axis=0)
    K = K - K.mean(axis=1)[:, None]
    total = float(np.trace(K))
    if total <= 1e-12 * size:
        return float("nan")  # a constant kernel has no variance
    return float(np.clip(np.einsum("ij,ij->", used, K @ used) / total, 0.0, 1.0))
