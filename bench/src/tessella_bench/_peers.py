"""Neural nets, plain support vector machines and Gaussian processes."""

from __future__ import annotations

from functools import partial
from typing import Any

from sklearn.compose import TransformedTargetRegressor
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.metrics.pairwise import laplacian_kernel
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR

from tessella_bench._methods import CLASSIFICATION, Fitted, NotApplicableError
from tessella_bench._tuning import Stopwatch, grid_search, tube

_STRENGTHS = (0.1, 1.0, 10.0, 100.0, 1000.0)
_WIDTHS = (0.01, 0.1, 1.0, 10.0)  # gamma times the number of features, which are standardised
_GP_MOST_ROWS = 3000
_MATRIX_MOST_ROWS = 10_000  # SVC wants the matrix of such a kernel whole, and copies it
_CACHE_MB = 500
_MOST_STEPS = 10_000_000  # of libsvm, which may need hours at the largest C


def neural_net(task: str, X: Any, y: Any, seed: int) -> Fitted:
    """Three hidden layers of 50; stops when a validation set has not improved 50 times."""
    kind = MLPClassifier if task == CLASSIFICATION else MLPRegressor
    net = kind(
        hidden_layer_sizes=(50, 50, 50),
        early_stopping=True,
        validation_fraction=0.15,
        n_iter_no_change=50,
        max_iter=2000,
        random_state=seed,
    )
    return _fitted(_scaled(task, net), X, y)


def svm_rbf(task: str, X: Any, y: Any, seed: int) -> Fitted:
    """A machine with a Gaussian kernel: C and width by cross-validation."""
    gammas = [width / X.shape[1] for width in _WIDTHS]
    return _machine(task, {"gamma": gammas}, X, y, seed)


def svm_laplacian(task: str, X: Any, y: Any, seed: int) -> Fitted:
    """A machine with the kernel exp(-gamma |x - z|₁): C and width by cross-validation."""
    if len(y) > _MATRIX_MOST_ROWS:
        raise NotApplicableError(f"a whole kernel matrix for more than {_MATRIX_MOST_ROWS} rows")
    kernels = [partial(laplacian_kernel, gamma=width / X.shape[1]) for width in _WIDTHS]
    return _machine(task, {"kernel": kernels}, X, y, seed)


def gaussian_process(task: str, X: Any, y: Any, seed: int) -> Fitted:
    """A Gaussian process whose width, scale and noise maximise the marginal likelihood."""
    if len(y) > _GP_MOST_ROWS:
        raise NotApplicableError(f"more than {_GP_MOST_ROWS} training rows")
    kernel = ConstantKernel() * RBF()
    if task == CLASSIFICATION:
        model = GaussianProcessClassifier(kernel, random_state=seed)
    else:
        model = GaussianProcessRegressor(kernel + WhiteKernel(), random_state=seed)
    return _fitted(_scaled(task, model), X, y)


def _machine(task: str, widths: dict[str, Any], X: Any, y: Any, seed: int) -> Fitted:
    classify = task == CLASSIFICATION
    limits = {"cache_size": _CACHE_MB, "max_iter": _MOST_STEPS}
    machine = SVC(**limits) if classify else SVR(epsilon=tube(y), **limits)
    step = "svc" if classify else "svr"
    prefix = f"{step}__" if classify else f"regressor__{step}__"
    grid = {f"{prefix}{name}": values for name, values in ({"C": _STRENGTHS} | widths).items()}
    return grid_search(task, _scaled(task, machine), grid, X, y, seed)


def _scaled(task: str, model: Any) -> Any:
    """The model with standardised features, and a standardised target in a regression."""
    pipeline = make_pipeline(StandardScaler(), model)
    if task == CLASSIFICATION:
        return pipeline
    return TransformedTargetRegressor(pipeline, transformer=StandardScaler())


def _fitted(model: Any, X: Any, y: Any) -> Fitted:
    watch = Stopwatch()
    with watch():
        model.fit(X, y)
    return Fitted(model, {}, 0.0, watch.seconds)
