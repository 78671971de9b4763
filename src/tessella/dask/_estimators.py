"""The estimators whose fits run on a cluster."""

from __future__ import annotations

import time
from copy import copy
from typing import Any, ClassVar, Self

import numpy as np
from distributed import Client
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from tessella.dask._chunks import Chunks, is_collection
from tessella.dask._cluster import Cluster, current_client
from tessella.dask._predictions import lazily
from tessella.dask._rows import DaskRows
from tessella.dask._scores import accuracy, r_squared
from tessella.estimators import LearnedKernelSVC, LearnedKernelSVR
from tessella.estimators._leaf_fit import LeafRequest

_OF_THE_LIBRARY = ("_predictor_cache", "_fit_rows", "_skl_callbacks")


class _OnCluster(BaseEstimator):  # type: ignore[misc]
    """What the estimators of this package have in common."""

    client: Client | None
    max_leaf_rows: int | None
    _local_class: ClassVar[type[Any]]

    @property
    def client_(self) -> Client:
        """Client that fits use: the parameter `client`, or the current one."""
        return current_client(self.client)

    def to_local(self) -> Any:
        """Return the fitted model as an estimator without a cluster.

        Returns
        -------
        LearnedKernelSVC or LearnedKernelSVR
            Estimator with the same parameters and the same fitted attributes, whose methods run in
            this process. :func:`tessella.save` stores it.
        """
        check_is_fitted(self, "kernel_")
        return self._local()

    def _local(self) -> Any:
        """Return the estimator without a cluster, fitted if this one is."""
        params = self.get_params(deep=False)
        del params["client"]
        local = self._local_class(**params)
        for name, value in vars(self).items():
            if name not in params and name not in ("client", *_OF_THE_LIBRARY):
                setattr(local, name, value)
        return local

    def _check_leaves(self) -> None:
        if self.max_leaf_rows is None:
            raise ValueError(
                "max_leaf_rows=None must be a number, for example 5000: a fit on a cluster "
                f"divides its rows into leaves. {self._local_class.__name__} learns one machine."
            )
        super()._check_leaves()

    def _learn(
        self, X: Any, y: Any, sample_weight: Any, callback: Any, monitor: Any
    ) -> tuple[Any, Any]:
        """Fit the chunks of the rows on the cluster."""
        begun = time.monotonic()
        cluster = Cluster(self.client_)
        chunks = Chunks.of(cluster, X, y, sample_weight)
        local = self._local()
        if chunks.n_rows <= int(self.max_leaf_rows or 0):
            X, y, sample_weight = chunks.gathered(cluster)
            state, _ = local._learn(X, y, sample_weight, callback, monitor)
            return state, None
        request = LeafRequest(DaskRows(cluster, chunks), chunks.names, begun)
        return local._learn_in_leaves(request, callback, monitor), None

    def _lazily(self, X: Any, method: str, example: NDArray[Any], *, as_series: bool = True) -> Any:
        """Return what a method returns for the rows of a collection; `example` is that of none."""
        model = self.to_local().set_params(n_jobs=1)
        return lazily(model, X, method, example, as_series=as_series)

    def save(self, path: Any, *, metadata: dict[str, Any] | None = None) -> None:
        """Write the fitted model to one file, as an estimator without a cluster.

        Parameters
        ----------
        path : path-like
            File to write, by convention with the suffix ``.tsl``. :func:`tessella.load` reads it.
        metadata : dict, optional
            Data to store with the model; anything that JSON can represent.
        """
        self.to_local().save(path, metadata=metadata)

    def __getstate__(self) -> dict[str, Any]:
        # A client belongs to its process.
        state: dict[str, Any] = super().__getstate__()
        return {**state, "client": None}

    def __sklearn_clone__(self) -> Self:
        cloned: Self = BaseEstimator.__sklearn_clone__(copy(self))
        cloned.client = self.client
        return cloned


class DaskLearnedKernelSVR(_OnCluster, LearnedKernelSVR):
    """Support vector regression that learns its kernel on a Dask cluster.

    The rows are divided into leaves, see `max_leaf_rows`, and each leaf is a task on a worker. The
    model is that of :class:`~tessella.estimators.LearnedKernelSVR` with the same parameters, up to
    rounding, whatever the number of workers and chunks.

    All parameters but `client`, and all fitted attributes but `client_`, are those of
    :class:`~tessella.estimators.LearnedKernelSVR`.

    Parameters
    ----------
    max_leaf_rows : int, default=5000
        Largest number of rows of a leaf. With fewer rows than that, they are fitted in this
        process.
    n_jobs : int, default=None
        Number of threads of this process. Tasks on workers use one thread.
    client : distributed.Client, default=None
        Client whose workers run the tasks. None is the current client.

    Attributes
    ----------
    client_ : distributed.Client
        The client that fits use.

    See Also
    --------
    DaskLearnedKernelSVC : Classification.

    Notes
    -----
    A pass over the leaves sends to the client, for each leaf, a few multiples of the size of the
    parameter, and sends the parameter to each worker; `rounds_` has the bytes of each pass. The
    rows, and the dual vectors, stay on the cluster. The model, which is its support vectors, is
    sent to the client at the end.

    Examples
    --------
    >>> import dask.array as da
    >>> import numpy as np
    >>> from distributed import Client
    >>> from tessella.dask import DaskLearnedKernelSVR
    >>> rng = np.random.default_rng(0)
    >>> X = rng.random((600, 2))
    >>> y = np.sin(6 * X[:, 0]) * X[:, 1]
    >>> with Client(processes=False, n_workers=1, dashboard_address=None) as client:
    ...     model = DaskLearnedKernelSVR(max_leaf_rows=300, tol=1e-2)
    ...     model = model.fit(da.from_array(X, chunks=(200, 2)), da.from_array(y, chunks=200))
    >>> model.score(X, y) > 0.9
    True
    """

    _local_class = LearnedKernelSVR

    def __init__(
        self,
        C: float = 10.0,
        *,
        epsilon: Any = "auto",
        kernels: Any = "tessellated",
        degree: int = 1,
        delta: float = 0.5,
        width: float = 0.5,
        scaling: str = "range",
        feature_scale: Any = None,
        solver: str = "auto",
        tol: float = 1e-3,
        max_iter: int = 1000,
        time_limit: float | None = None,
        precision: str = "float64",
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 5,
        checkpoint: Any = None,
        warm_start: bool = False,
        max_leaf_rows: int | None = 5000,
        partition: Any = "gradient",
        n_partitions: int = 2,
        warn_outside: bool = False,
        verbose: int = 0,
        random_state: Any = None,
        n_jobs: int | None = None,
        client: Client | None = None,
    ) -> None:
        super().__init__(
            C,
            epsilon=epsilon,
            kernels=kernels,
            degree=degree,
            delta=delta,
            width=width,
            scaling=scaling,
            feature_scale=feature_scale,
            solver=solver,
            tol=tol,
            max_iter=max_iter,
            time_limit=time_limit,
            precision=precision,
            early_stopping=early_stopping,
            validation_fraction=validation_fraction,
            n_iter_no_change=n_iter_no_change,
            checkpoint=checkpoint,
            warm_start=warm_start,
            max_leaf_rows=max_leaf_rows,
            partition=partition,
            n_partitions=n_partitions,
            warn_outside=warn_outside,
            verbose=verbose,
            random_state=random_state,
            n_jobs=n_jobs,
        )
        self.client = client

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn the kernel and the regression function.

        Parameters
        ----------
        X : array or data frame of Dask, of shape (n_samples, n_features)
            Training data, with one chunk of columns or several. Arrays in memory are sent to the
            cluster.
        y : array or series of Dask, of shape (n_samples,)
            Target values.
        sample_weight : array or series of Dask, of shape (n_samples,), optional
            Factors of `C` for each sample.

        Returns
        -------
        DaskLearnedKernelSVR
            The fitted estimator.

        Raises
        ------
        ClusterError
            If the cluster cannot do the work, or is lost.
        """
        return self._fit(X, y, sample_weight)

    def predict(self, X: Any) -> Any:
        """Predict the target of each row.

        Parameters
        ----------
        X : array or data frame of Dask, or array-like, of shape (n_samples, n_features)
            Rows in the units of the training data.

        Returns
        -------
        dask.array.Array, dask.dataframe.Series or ndarray of shape (n_samples,)
            Predicted values, in the units of y: a series for a data frame of Dask, and an array of
            the kind of X otherwise. Collections of Dask are computed when they are needed.
        """
        if not is_collection(X):
            return super().predict(X)
        check_is_fitted(self, "kernel_")
        return self._lazily(X, "predict", np.empty(0))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Compute the coefficient of determination R² of the predictions.

        Parameters
        ----------
        X : array or data frame of Dask, or array-like, of shape (n_samples, n_features)
            Rows in the units of the training data.
        y : array or series of Dask, or array-like, of shape (n_samples,)
            Target values.
        sample_weight : array or series of Dask, or array-like, of shape (n_samples,), optional
            Weights of the rows.

        Returns
        -------
        float
            R². Of collections of Dask, no row is sent to this process.
        """
        if not is_collection(X):
            return float(super().score(X, y, sample_weight))
        predicted = self._lazily(X, "predict", np.empty(0), as_series=False)
        return r_squared(predicted, y, sample_weight)


class DaskLearnedKernelSVC(_OnCluster, LearnedKernelSVC):
    """Support vector classifier that learns its kernel on a Dask cluster.

    The rows are divided into leaves, see `max_leaf_rows`, and each leaf is a task on a worker. The
    model is that of :class:`~tessella.estimators.LearnedKernelSVC` with the same parameters, up to
    rounding, whatever the number of workers and chunks.

    All parameters but `client`, and all fitted attributes but `client_`, are those of
    :class:`~tessella.estimators.LearnedKernelSVC`.

    Parameters
    ----------
    max_leaf_rows : int, default=5000
        Largest number of rows of a leaf. With fewer rows than that, they are fitted in this
        process.
    n_jobs : int, default=None
        Number of threads of this process. Tasks on workers use one thread.
    client : distributed.Client, default=None
        Client whose workers run the tasks. None is the current client.

    Attributes
    ----------
    client_ : distributed.Client
        The client that fits use.

    See Also
    --------
    DaskLearnedKernelSVR : Regression, with an example.

    Notes
    -----
    What is sent over the network is described in :class:`DaskLearnedKernelSVR`.
    """

    _local_class = LearnedKernelSVC

    def __init__(
        self,
        C: float = 10.0,
        *,
        kernels: Any = "tessellated",
        degree: int = 1,
        delta: float = 0.5,
        width: float = 0.5,
        scaling: str = "range",
        feature_scale: Any = None,
        solver: str = "auto",
        tol: float = 1e-3,
        max_iter: int = 1000,
        time_limit: float | None = None,
        precision: str = "float64",
        multi_class: str = "shared",
        decision_function_shape: str = "ovr",
        break_ties: bool = False,
        class_weight: Any = None,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 5,
        checkpoint: Any = None,
        warm_start: bool = False,
        max_leaf_rows: int | None = 5000,
        partition: Any = "gradient",
        n_partitions: int = 2,
        warn_outside: bool = False,
        verbose: int = 0,
        random_state: Any = None,
        n_jobs: int | None = None,
        client: Client | None = None,
    ) -> None:
        super().__init__(
            C,
            kernels=kernels,
            degree=degree,
            delta=delta,
            width=width,
            scaling=scaling,
            feature_scale=feature_scale,
            solver=solver,
            tol=tol,
            max_iter=max_iter,
            time_limit=time_limit,
            precision=precision,
            multi_class=multi_class,
            decision_function_shape=decision_function_shape,
            break_ties=break_ties,
            class_weight=class_weight,
            early_stopping=early_stopping,
            validation_fraction=validation_fraction,
            n_iter_no_change=n_iter_no_change,
            checkpoint=checkpoint,
            warm_start=warm_start,
            max_leaf_rows=max_leaf_rows,
            partition=partition,
            n_partitions=n_partitions,
            warn_outside=warn_outside,
            verbose=verbose,
            random_state=random_state,
            n_jobs=n_jobs,
        )
        self.client = client

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn the kernel and the classifier.

        Parameters
        ----------
        X : array or data frame of Dask, of shape (n_samples, n_features)
            Training data, with one chunk of columns or several. Arrays in memory are sent to the
            cluster.
        y : array or series of Dask, of shape (n_samples,)
            Labels of any type, with at least two classes.
        sample_weight : array or series of Dask, of shape (n_samples,), optional
            Factors of `C` for each sample.

        Returns
        -------
        DaskLearnedKernelSVC
            The fitted estimator.

        Raises
        ------
        ClusterError
            If the cluster cannot do the work, or is lost.
        """
        return self._fit(X, y, sample_weight)

    def predict(self, X: Any) -> Any:
        """Predict the label of each row.

        Parameters
        ----------
        X : array or data frame of Dask, or array-like, of shape (n_samples, n_features)
            Rows in the units of the training data.

        Returns
        -------
        dask.array.Array, dask.dataframe.Series or ndarray of shape (n_samples,)
            Predicted labels: a series for a data frame of Dask, and an array of the kind of X
            otherwise. Collections of Dask are computed when they are needed.
        """
        if not is_collection(X):
            return super().predict(X)
        check_is_fitted(self, "kernel_")
        return self._lazily(X, "predict", self.classes_[:0])

    def decision_function(self, X: Any) -> Any:
        """Compute the scores of each row, in the shapes of :class:`sklearn.svm.SVC`.

        Parameters
        ----------
        X : array or data frame of Dask, or array-like, of shape (n_samples, n_features)
            Rows in the units of the training data.

        Returns
        -------
        dask.array.Array, dask.dataframe.Series or ndarray
            Scores as those of :meth:`LearnedKernelSVC.decision_function`: a series for a data frame
            of Dask and two classes, otherwise an array.
        """
        if not is_collection(X):
            return super().decision_function(X)
        check_is_fitted(self, "kernel_")
        example = self._decisions(np.zeros((1, len(self.dual_coef_))))[:0]
        return self._lazily(X, "decision_function", example)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Compute the accuracy of the predictions.

        Parameters
        ----------
        X : array or data frame of Dask, or array-like, of shape (n_samples, n_features)
            Rows in the units of the training data.
        y : array or series of Dask, or array-like, of shape (n_samples,)
            Labels.
        sample_weight : array or series of Dask, or array-like, of shape (n_samples,), optional
            Weights of the rows.

        Returns
        -------
        float
            Accuracy. Of collections of Dask, no row is sent to this process.
        """
        if not is_collection(X):
            return float(super().score(X, y, sample_weight))
        check_is_fitted(self, "kernel_")
        predicted = self._lazily(X, "predict", self.classes_[:0], as_series=False)
        return accuracy(predicted, y, sample_weight)
