"""Random estimators and data, each of which follows from a random generator alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import tessella
from tessella import KernelDictionary, TessellatedKernels
from tessella.kernels import (
    Gaussian,
    GaussianKernels,
    KernelSet,
    LaplaceKernels,
    MaternKernels,
    Polynomial,
    PolynomialKernels,
)

FloatArray = NDArray[np.float64]

_MOST_PARAMS = 30  # the independent implementation computes a matrix for each pair of parameters
_LABELS: tuple[Sequence[Any], ...] = (
    (0, 1, 2, 3),
    (-1, 1, 5, 9),
    ("no", "yes", "maybe", "never"),
    (-0.0, 1.0, 2.0, 1e9),
)


@dataclass(frozen=True)
class Problem:
    """An estimator that is not fitted, and its training data.

    Attributes
    ----------
    model : estimator
        The estimator.
    X : ndarray of shape (n_samples, n_features)
        Features.
    y : ndarray of shape (n_samples,)
        Labels or targets.
    weight : ndarray of shape (n_samples,) or None
        Sample weights.
    """

    model: Any
    X: FloatArray
    y: NDArray[Any]
    weight: FloatArray | None

    def fit(self) -> Any:
        """Fit the estimator, and return it."""
        return self.model.fit(self.X, self.y, sample_weight=self.weight)


def random_problem(rng: np.random.Generator, names: Sequence[str]) -> Problem:
    """Return a random problem for one of the estimators that are named."""
    name = names[int(rng.integers(len(names)))]
    X = random_rows(rng)
    classifies = name.endswith(("SVC", "Classifier"))
    y = random_labels(rng, X) if classifies else random_targets(rng, X)
    model = random_estimator(rng, name, X.shape[1], len(np.unique(y)) if classifies else 0)
    return Problem(model, X, y, random_weights(rng, y, classifies))


# --------------------------------------------------------------------------------------- data


def random_rows(rng: np.random.Generator) -> FloatArray:
    """Return 2 to 60 rows of 1 to 5 features, of any kind and on any scale."""
    # Few rows are quick and degenerate more often, so that most tables have few.
    m = int(rng.integers(2, 61) if rng.random() < 0.3 else np.exp(rng.uniform(*np.log([2, 61]))))
    n = int(rng.choice([1, 2, 3, 4, 5], p=[0.2, 0.35, 0.25, 0.1, 0.1]))
    kinds: list[Callable[[], Any]] = [
        lambda: rng.random((m, n)),
        lambda: rng.standard_normal((m, n)),
        lambda: rng.integers(0, 4, (m, n)).astype(float),  # many equal rows
        lambda: rng.standard_cauchy((m, n)),
        lambda: np.round(rng.random((m, n)), 1) + rng.choice([0.0, 1e6, 1e12]),
        lambda: rng.integers(0, 2, (m, 1)) + 1e-9 * rng.standard_normal((m, n)),
    ]
    X: FloatArray = kinds[rng.integers(len(kinds))]()
    if n > 1 and rng.random() < 0.1:
        X[:, 0] = X[0, 0]  # a constant column
    if rng.random() < 0.25:
        X = X * 10.0 ** rng.uniform(-300, 300, n)
    if not (X[0] != X).any():
        X[0, 0] += max(1.0, abs(X[0, 0]))  # so that one column is not constant
    return X


def random_labels(rng: np.random.Generator, X: FloatArray) -> NDArray[Any]:
    """Return labels of two to four classes, each of which occurs."""
    m = len(X)
    count = int(min(m, rng.choice([2, 2, 2, 3, 4])))
    codes = rng.integers(0, count, m)
    if rng.random() < 0.6:  # labels that a function of the features nearly gives
        order = np.argsort(X[:, rng.integers(X.shape[1])], kind="stable")
        codes[order] = np.sort(codes)
    flipped = rng.random(m) < rng.choice([0.0, 0.1])
    codes[flipped] = rng.integers(0, count, int(flipped.sum()))
    codes[rng.permutation(m)[:count]] = np.arange(count)
    labels = np.array(_LABELS[rng.integers(len(_LABELS))][:count])
    return labels[codes]


def random_targets(rng: np.random.Generator, X: FloatArray) -> FloatArray:
    """Return targets of any kind, on any scale and with any offset."""
    m = len(X)
    with np.errstate(all="ignore"):
        Z = (X - X.min(axis=0)) / np.where(np.ptp(X, axis=0) > 0, np.ptp(X, axis=0), 1.0)
    Z = np.nan_to_num(Z)
    kinds: list[Callable[[], Any]] = [
        lambda: Z @ rng.standard_normal(Z.shape[1]),
        lambda: np.sin(6 * Z[:, 0]) + 0.1 * rng.standard_normal(m),
        lambda: rng.standard_normal(m),
        lambda: rng.standard_cauchy(m),
        lambda: np.floor(4 * Z[:, 0]),
        lambda: np.full(m, 3.0),
        lambda: np.where(np.arange(m) == 0, 1e6, 0.0),
    ]
    y: FloatArray = np.asarray(kinds[rng.integers(len(kinds))](), dtype=np.float64)
    if rng.random() < 0.25:
        y = y * 10.0 ** rng.uniform(-300, 300)
    if rng.random() < 0.15:
        y = y + np.abs(y).max() * 10.0 ** rng.uniform(0, 12)
    return y


def random_weights(
    rng: np.random.Generator, y: NDArray[Any], classifies: bool
) -> FloatArray | None:
    """Return sample weights, of which some may be zero, or None."""
    m = len(y)
    kinds: list[Callable[[], Any]] = [
        lambda: None,
        lambda: None,
        lambda: rng.integers(1, 4, m).astype(float),
        lambda: rng.random(m) + 0.01,
        lambda: 10.0 ** rng.uniform(-6, 6, m),
        lambda: (rng.random(m) < 0.8).astype(float),
    ]
    weight: FloatArray | None = kinds[rng.integers(len(kinds))]()
    if weight is None:
        return None
    kept = np.unique(y, return_index=True)[1] if classifies else np.arange(min(2, m))
    weight[kept] = np.maximum(weight[kept], 1e-6)  # every class keeps a row
    return weight


# --------------------------------------------------------------------------------- estimators


def random_estimator(rng: np.random.Generator, name: str, n: int, n_classes: int) -> Any:
    """Return an estimator that is not fitted, with random parameters."""
    params: dict[str, Any] = {
        "C": float(10.0 ** rng.uniform(-6, 9)),
        "tol": float(10.0 ** rng.uniform(-7, -1)),
        "time_limit": 0.6,
        "n_jobs": int(rng.choice([1, 1, 1, 2])),
    }
    if rng.random() < 0.1:
        params["max_iter"] = int(rng.integers(0, 10))
    if rng.random() < 0.05:
        params["precision"] = "float32"
    if name.startswith("Multiple"):
        params |= _multiple_kernel_params(rng, n)
    else:
        params |= _learned_kernel_params(rng, n, smooth="Ridge" in name)
    if name in ("LearnedKernelSVC", "MultipleKernelSVC", "LearnedKernelRidgeClassifier"):
        params["class_weight"] = [None, None, "balanced"][rng.integers(3)]
    if name.endswith("SVC") and n_classes > 2 and rng.random() < 0.3:
        params["multi_class"] = "separate"
    if name.endswith("SVR"):
        params["epsilon"] = ["auto", 0.0, 0.1, 1.5][rng.integers(4)]
    return getattr(tessella, name)(**params)


def _learned_kernel_params(rng: np.random.Generator, n: int, *, smooth: bool) -> dict[str, Any]:
    solvers = ["auto"] * 6 + ["joint", "frank-wolfe", "apd", "hybrid"]
    solvers.append("newton" if smooth else "working-set")
    return {
        "kernels": random_kernels(rng, n),
        "scaling": ["range", "range", "quantile", "robust"][rng.integers(4)],
        "solver": solvers[rng.integers(len(solvers))],
    }


def _multiple_kernel_params(rng: np.random.Generator, n: int) -> dict[str, Any]:
    weightings = ["learned"] * 4 + ["simple", "average", "alignment"]
    return {
        "kernels": "standard" if rng.random() < 0.2 else random_dictionary(rng, n),
        "weighting": weightings[rng.integers(len(weightings))],
    }


def random_kernels(rng: np.random.Generator, n: int) -> Any:
    """Return the name of a family, or a kernel set for rows of n features."""
    if rng.random() < 0.3:
        names = ["tessellated", "polynomial", "gaussian", "matern", "laplace"]
        return names[rng.integers(len(names))]
    kinds: list[Callable[[], Any]] = [
        lambda: _random_tessellated(rng, n),
        lambda: _random_tessellated(rng, n),
        lambda: PolynomialKernels(degree=int(rng.integers(1, 4 if n < 3 else 2))),
        lambda: random_dictionary(rng, n),
        lambda: _random_single(rng),
        lambda: _random_tessellated(rng, n) + random_dictionary(rng, n),
        lambda: TessellatedKernels().on_features([int(rng.integers(n))]) + PolynomialKernels(1),
    ]
    return kinds[rng.integers(len(kinds))]()


def _random_tessellated(rng: np.random.Generator, n: int) -> KernelSet:
    fitting = [
        (degree, monomials)
        for degree in (0, 1, 1, 2)
        for monomials in ("x", "x", "xz")
        if TessellatedKernels(degree=degree, monomials=monomials).count_params(n) <= _MOST_PARAMS
    ]
    degree, monomials = fitting[rng.integers(len(fitting))]
    return TessellatedKernels(
        degree=degree,
        monomials=monomials,
        delta=float(10.0 ** rng.uniform(-2, 1)),
        balance=["none", "unit", "pointwise"][rng.integers(3)],
        floor=float(rng.choice([0.0, 0.0, 0.3, 1.0])),
    )


def _random_single(rng: np.random.Generator) -> KernelSet:
    kinds: Sequence[Callable[..., KernelSet]] = (GaussianKernels, MaternKernels, LaplaceKernels)
    return kinds[int(rng.integers(len(kinds)))](width=float(10.0 ** rng.uniform(-2, 1)))


def random_dictionary(rng: np.random.Generator, n: int) -> KernelDictionary:
    """Return a dictionary of one to six kernels, some of them on single features."""
    kernels: list[Any] = []
    for _ in range(int(rng.integers(1, 7))):
        features = (int(rng.integers(n)),) if rng.random() < 0.3 else None
        if rng.random() < 0.6:
            kernels.append(Gaussian(float(10.0 ** rng.uniform(-1, 1)), features=features))
        else:
            kernels.append(Polynomial(int(rng.integers(1, 4)), features=features))
    return KernelDictionary(kernels)
