"""Predictions of a fitted model, prepared when they are first needed and kept with the model."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted, validate_data

from tessella.backend import limit_blas
from tessella.estimators._checks import require_unmasked
from tessella.estimators._leaf_model import LeavesPredictor
from tessella.kernels import LearnedKernel

FloatArray = NDArray[np.float64]

# OpenBLAS computes products with fewer multiplications in the calling thread, so that there is no
# need to limit its threads, which would take longer than such a product.
_SERIAL_PRODUCTS = 9000

_NOT_COPIED = ("_predictor_cache", "_fit_rows")


class ModelPredictor:
    """The support vectors of a fitted model, ready for predictions.

    Parameters
    ----------
    kernel : LearnedKernel or list of LearnedKernel
        The kernel of all machines, or one for each machine.
    support_vectors : ndarray of shape (n_support, n_features)
        Support vectors.
    dual_coef : ndarray of shape (n_machines, n_support)
        Coefficients of each machine.
    """

    def __init__(
        self,
        kernel: LearnedKernel | list[LearnedKernel],
        support_vectors: FloatArray,
        dual_coef: FloatArray,
    ) -> None:
        self._sources = (kernel, support_vectors, dual_coef)
        if isinstance(kernel, list):
            own = [(k, w != 0.0, w) for k, w in zip(kernel, dual_coef, strict=True)]
            self._parts = [k.predictor(support_vectors[of], w[of, None]) for k, of, w in own]
        else:
            self._parts = [kernel.predictor(support_vectors, dual_coef.T)]
        self._products_per_row = max(part.products_per_row for part in self._parts)

    def prepared_from(self, kernel: Any, support_vectors: Any, dual_coef: Any) -> bool:
        """Whether these are the very objects that the predictor was prepared from."""
        mine = self._sources
        return kernel is mine[0] and support_vectors is mine[1] and dual_coef is mine[2]

    def scores(self, X: FloatArray, n_jobs: int | None) -> FloatArray:
        """Kernel expansion of each machine without its intercept: (n_samples, n_machines)."""
        serial = len(X) * self._products_per_row <= _SERIAL_PRODUCTS
        with nullcontext() if serial else limit_blas():
            if len(self._parts) == 1:
                return self._parts[0].scores(X, n_jobs=n_jobs)
            return np.hstack([part.scores(X, n_jobs=n_jobs) for part in self._parts])


class PredictorCache:
    """Holds the predictor of a model from the first prediction on.

    An estimator gets an empty one with its fitted attributes, because a prediction must not add
    an attribute to it.
    """

    def __init__(self) -> None:
        self._predictor: ModelPredictor | LeavesPredictor | None = None

    def get(
        self, kind: type[ModelPredictor] | type[LeavesPredictor], *attributes: Any
    ) -> ModelPredictor | LeavesPredictor:
        """The predictor of some attributes; built anew if one of them was replaced."""
        predictor = self._predictor
        if not isinstance(predictor, kind) or not predictor.prepared_from(*attributes):
            with limit_blas():
                predictor = kind(*attributes)
            # Two threads may both come here; either of their predictors is right.
            self._predictor = predictor
        return predictor


class PredictionMixin:
    """Adds the scores of new rows to an estimator with a learned kernel."""

    kernel_: Any
    support_vectors_: FloatArray
    dual_coef_: FloatArray
    intercept_: FloatArray
    leaves_: Any
    n_features_in_: int
    _predictor_cache: PredictorCache

    def _machine_scores(self, X: FloatArray, n_jobs: int | None) -> FloatArray:
        """Scores of each machine without its intercept, of shape (n_samples, n_machines).

        A model of several leaves has a function and constants that depend on the leaf, and its
        scores contain both.
        """
        if "_predictor_cache" not in vars(self):  # after pickle, copy or a model file
            self._predictor_cache = PredictorCache()
        own = (self.kernel_, self.support_vectors_, self.dual_coef_)
        if "leaves_" in vars(self):
            of_leaves = (self.leaves_, self.intercept_)
            return self._predictor_cache.get(LeavesPredictor, *own, *of_leaves).scores(X, n_jobs)
        return self._predictor_cache.get(ModelPredictor, *own).scores(X, n_jobs)

    @property
    def _constants(self) -> FloatArray:
        """What is added to the scores of the machines: their intercepts, or zeros with leaves."""
        return np.zeros(1) if "leaves_" in vars(self) else self.intercept_

    def _rows_to_predict(self, X: Any) -> FloatArray:
        """X as checked by scikit-learn, by a short cut where nothing can be wrong with it."""
        if "kernel_" not in vars(self):
            check_is_fitted(self, "kernel_")
        if (
            type(X) is np.ndarray
            and X.dtype == np.float64
            and X.ndim == 2
            and len(X)
            and X.shape[1] == self.n_features_in_
            and X.flags.c_contiguous
            and "feature_names_in_" not in vars(self)
            and np.isfinite(X).all()
        ):
            return X
        require_unmasked(X=X)
        rows: FloatArray = validate_data(self, X, dtype=np.float64, order="C", reset=False)
        return rows

    def __getstate__(self) -> dict[str, Any]:
        # Copies, pickles and skops files do without the predictor, which is rebuilt when needed,
        # and without the training rows.
        state: dict[str, Any] = super().__getstate__()  # type: ignore[assignment]
        return {name: value for name, value in state.items() if name not in _NOT_COPIED}
