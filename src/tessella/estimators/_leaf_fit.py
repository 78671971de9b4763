"""A fit of many rows: a base function, a partition, and one kernel for the machines of all leaves.

With f₀ the function of a machine that was learned on a sample, and leaves of at most
``max_leaf_rows`` rows, the model is f(x) = f₀(x) + f_j(x) for a row x of leaf j. The functions f_j
have kernels k(x, z) · [x and z in the same leaf], which are kernels that are linear in P, so one P
is learned for all of them with one certificate (:mod:`tessella.solvers.leaves`). With several trees
the prediction is the mean of theirs, and the certificate is that of all their leaves together.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from tessella.backend import effective_threads, limit_blas, require_memory
from tessella.cones import Point, is_factor
from tessella.estimators._checkpoint import Checkpoint, leaves_fingerprint
from tessella.estimators._leaf_model import BaseFunction, FittedLeaves
from tessella.estimators._leaf_scan import Scan, row_hash, scan
from tessella.estimators._leaf_store import Cuts, LeafLoader, LeafStore, Spread
from tessella.estimators._leaf_targets import LeafTargets
from tessella.estimators._one_vs_one import class_multipliers, require_classes
from tessella.estimators._relevance import representative_rows
from tessella.estimators._solving import FitCallbacks, fit_display
from tessella.estimators._state import SAMPLE_SIZE, FittedState
from tessella.estimators._training_set import TrainingSet
from tessella.kernels import KernelSet, LearnedKernel
from tessella.rows import LeafVectors, LeavesOnDisk, RowSource
from tessella.solvers import (
    LeafPool,
    LeavesResult,
    LocalLeaves,
    Monitors,
    as_solver_result,
    solve_leaves,
    working_memory,
)

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

PoolOf = Callable[[LeafLoader, IntArray, LeafVectors], LeafPool]

#: Smallest value of ``max_leaf_rows``; leaves of fewer rows learn next to nothing.
LEAST_LEAF_ROWS = 50

_BASE_LEAVES = 2  # rows of the base function, as a multiple of the rows of a leaf
_BASE_PART = 4  # and at most this part of all rows
_BASE_TOL = 1e-2
_BASE_TIME = 0.25  # of the time limit
_MOST_GRADIENTS, _LEAST_GRADIENTS, _GRADIENT_VALUES = 3000, 300, 100_000
_STEP = 0.01  # of a difference that estimates a derivative, in the unit cube


@dataclass(frozen=True)
class LeafRequest:
    """What a fit in leaves is asked for.

    Attributes
    ----------
    source : RowSource
        The rows.
    on_disk : bool
        Whether the rows are divided on disk, because they are not in memory.
    feature_names : ndarray or None
        Names of the features.
    begun : float
        Moment of ``time.monotonic()`` at which the fit began.
    parameter0 : Point, optional
        Parameter of an earlier fit to start from.
    pool_of : callable, optional
        Makes the pool that runs the tasks. The default is one of threads.
    """

    source: RowSource
    on_disk: bool
    feature_names: NDArray[Any] | None
    begun: float
    parameter0: Point | None = None
    pool_of: PoolOf | None = None


@dataclass(frozen=True)
class LeafTask:
    """The kind of problem that an estimator poses, as a fit in leaves needs it.

    Attributes
    ----------
    targets : LeafTargets
        How targets become machines.
    code : callable
        Returns targets as numbers, and the weights of the losses.
    scale : float
        Units of the target in which machines are solved.
    classes : ndarray or None
        Sorted labels.
    epsilon : float or None
        Half-width of the tube, in units of `scale`.
    """

    targets: LeafTargets
    code: Callable[[NDArray[Any], FloatArray], tuple[FloatArray, FloatArray]]
    scale: float = 1.0
    classes: NDArray[Any] | None = None
    epsilon: float | None = None


def classifier_task(estimator: Any, seen: Scan, targets: LeafTargets) -> LeafTask:
    """Return the task of a classifier, whose targets are codes of classes."""
    classes, factors = _class_factors(estimator, seen)

    def code(y: NDArray[Any], weight: FloatArray) -> tuple[FloatArray, FloatArray]:
        codes = np.searchsorted(classes, y)
        return codes.astype(np.float64), weight * factors[codes]

    return LeafTask(targets, code, classes=classes)


def regressor_task(targets: LeafTargets, scale: float, epsilon: float | None) -> LeafTask:
    """Return the task of a regression."""

    def code(y: NDArray[Any], weight: FloatArray) -> tuple[FloatArray, FloatArray]:
        return np.asarray(y, dtype=np.float64), weight

    return LeafTask(targets, code, scale=scale, epsilon=epsilon)


def classifier_base_rows(
    estimator: Any, seen: Scan, model: Any
) -> tuple[FloatArray, NDArray[Any], FloatArray]:
    """Return the rows of the base function, with the factors of the classes in their weights."""
    classes, factors = _class_factors(estimator, seen)
    model.set_params(class_weight=None)
    return seen.X, seen.y, seen.weight * factors[np.searchsorted(classes, seen.y)]


def _class_factors(estimator: Any, seen: Scan) -> tuple[NDArray[Any], FloatArray]:
    """Return the classes, and the factor of the weights of the rows of each class."""
    assert seen.classes is not None
    require_classes(seen.classes, seen.n_rows)
    codes = np.arange(len(seen.classes), dtype=np.float64)
    given = estimator.class_weight
    return seen.classes, class_multipliers(given, seen.classes, codes, seen.class_weight)


def learn_in_leaves(estimator: Any, request: LeafRequest, callbacks: FitCallbacks) -> FittedState:
    """Fit an estimator to many rows; it gives its parameters only."""
    with fit_display(estimator) as display:
        fit = _LeavesFit(estimator, request, callbacks, display)
        with limit_blas():
            return fit.state()


class _LeavesFit:
    """The steps of a fit, and what each of them has found."""

    def __init__(
        self, estimator: Any, request: LeafRequest, callbacks: FitCallbacks, display: Any
    ) -> None:
        self._estimator, self._request = estimator, request
        self._callbacks, self._display = callbacks, display
        self._largest = int(estimator.max_leaf_rows)
        names = request.feature_names
        self._column = group_column(estimator.partition, request.source.n_features, names)

    def state(self) -> FittedState:
        """Run all steps."""
        estimator, source = self._estimator, self._request.source
        self._phase(f"a sample of {source.n_rows} rows")
        count = min(_BASE_LEAVES * self._largest, max(1, source.n_rows // _BASE_PART))
        seen = scan(source, count, classify=estimator._is_classifier, column=self._column)
        self._require_memory(seen)
        self._phase(f"base function from {len(seen.X)} rows")
        base = self._base_model(seen)
        task = estimator._leaf_task(seen, base)
        kernel: LearnedKernel = base.kernel_
        cuts = self._cuts(seen, base)
        spread = Spread(kernel.box, task.code, partial(_base_scores, base), task.targets.n_machines)
        self._phase(f"leaves of at most {self._largest} rows")
        store = LeafStore.build(source, seen.n_rows, cuts, spread, on_disk=self._request.on_disk)
        try:
            return self._solved(seen, base, task, store)
        finally:
            store.close()

    def _phase(self, text: str) -> None:
        if self._display is not None:
            self._display.phase(text)

    def _base_model(self, seen: Scan) -> Any:
        """Return a fitted estimator of the same kind, learned on the sample."""
        estimator, limit = self._estimator, self._estimator.time_limit
        own = {"max_leaf_rows": None, "checkpoint": None, "verbose": 0, "warm_start": False}
        if limit is not None:
            own["time_limit"] = _BASE_TIME * limit
        model = clone(estimator).set_params(**own, tol=max(_BASE_TOL, estimator.tol))
        X, y, weight = estimator._base_rows(seen, model)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            return model.fit(X, y, sample_weight=weight)

    def _cuts(self, seen: Scan, base: Any) -> Cuts:
        """Return where to cut, by the gradients of the base function or by the features alone."""
        estimator, box = self._estimator, base.kernel_.box
        sample = box.apply(seen.X)
        rows = gradients = None
        if estimator.partition == "gradient":
            most = _GRADIENT_VALUES // max(1, sample.shape[1])
            count = min(_MOST_GRADIENTS, max(_LEAST_GRADIENTS, most))
            rows = sample[:count]
            gradients = gradients_of(partial(_base_scores, base), box, rows)
        groups = seen.X[:, self._column] if self._column >= 0 else np.empty(0)
        return Cuts(
            largest=self._largest,
            n_trees=int(estimator.n_partitions),
            column=self._column,
            groups=seen.groups,
            rows=rows,
            gradients=gradients,
            sample=sample,
            sample_groups=groups,
        )

    def _solved(self, seen: Scan, base: Any, task: LeafTask, store: LeafStore) -> FittedState:
        estimator, kernel = self._estimator, base.kernel_
        kernels: KernelSet = kernel.kernels
        cone = kernels.cone(len(kernel.box.kept))
        start = kernel.parameter if self._request.parameter0 is None else self._request.parameter0
        start = start @ start.T if is_factor(start) else start
        single = cone.dimension == 1 and estimator._solver_name() == "auto"
        fixed = cone.checked(start) if single or estimator._rule() is not None else None
        loader = LeafLoader(
            store,
            task.targets,
            kernels,
            kernel.box,
            estimator.precision,
            fixed,
            np.empty(0, dtype=np.intp),
        )
        sizes = loader.sizes_of_all()
        loader = replace(loader, numbers=np.flatnonzero(sizes))
        sizes = sizes[loader.numbers]
        on_disk = store.rows if isinstance(store.rows, LeavesOnDisk) else None
        vectors = LeafVectors(sizes, on_disk)
        pool = self._pool(loader, sizes, vectors)
        checkpoint = self._checkpoint(kernel)
        known = None if checkpoint is None else checkpoint.start
        if known is not None:
            known.require_sizes(cone, int(sizes.sum()), estimator.checkpoint)
            start = known.parameter
        if fixed is None:
            start = _free(loader, start)
            known = None if known is None else known.with_parameter(start)
        state_of = partial(self._state, seen, base, task, loader, pool)
        monitor = self._callbacks.scikit_learn
        if monitor is not None:
            monitor.state_of = lambda result: state_of(result.leaves)
        others = (checkpoint, monitor, self._callbacks.callback)
        limit = estimator.time_limit
        spent = time.monotonic() - self._request.begun
        result = solve_leaves(
            pool,
            cone,
            start,
            fixed=fixed is not None,
            tol=estimator.tol,
            max_iter=int(estimator.max_iter),
            time_limit=None if limit is None else max(0.0, limit - spent),
            n_jobs=estimator.n_jobs,
            callback=Monitors([known, self._display, *others]),
            learned=known is not None or self._request.parameter0 is not None,
        )
        if checkpoint is not None:
            finished = checkpoint.finish(as_solver_result(result, pool))
            result = replace(result, history=finished.history)
        return state_of(result)

    def _pool(self, loader: LeafLoader, sizes: IntArray, vectors: LeafVectors) -> LeafPool:
        if self._request.pool_of is not None:
            return self._request.pool_of(loader, sizes, vectors)
        return LocalLeaves(loader, sizes.tolist(), self._estimator.n_jobs, vectors)

    def _checkpoint(self, kernel: LearnedKernel) -> Checkpoint | None:
        estimator = self._estimator
        if estimator.checkpoint is None:
            return None
        digest = source_digest(self._request.source)
        params = {
            name: value
            for name, value in estimator.get_params(deep=False).items()
            if name not in _NOT_OF_THE_PROBLEM
        }
        mark = leaves_fingerprint(type(estimator).__name__, digest, params, kernel.box)
        return Checkpoint(estimator.checkpoint, mark)

    def _require_memory(self, seen: Scan) -> None:
        """Raise MemoryError, before the long work begins, for leaves that do not fit."""
        estimator = self._estimator
        kernels, n_features = estimator._kernel_set(), self._request.source.n_features
        threads = effective_threads(estimator.n_jobs)
        itemsize = np.dtype(estimator.precision).itemsize
        rows = min(self._largest, seen.n_rows)
        leaf = kernels.memory_estimate(rows, n_features, itemsize) + working_memory(
            "working-set",
            [rows],
            itemsize,
            by_rows=kernels.by_rows,
            smooth=estimator._is_smooth,
            cone=kernels.cone_on_rows(rows, n_features),
        )
        stored = 0
        if not self._request.on_disk:
            trees = int(estimator.n_partitions)
            stored = 8 * (n_features + 4) * seen.n_rows * (trees + 1)
        require_memory(
            threads * leaf + stored,
            f"Learning a kernel on {seen.n_rows} rows of {n_features} features in leaves of "
            f"{rows} rows, {threads} at a time",
            "Use a smaller max_leaf_rows, fewer n_jobs, or rows that stay on disk: a numpy memmap "
            "or Parquet files.",
        )

    def _state(
        self,
        seen: Scan,
        base: Any,
        task: LeafTask,
        loader: LeafLoader,
        pool: LeafPool,
        result: LeavesResult,
    ) -> FittedState:
        """Return the fitted attributes that follow from a result."""
        request, kernel = self._request, base.kernel_
        parameter = result.parameter
        if loader.fixed is None:
            parameter = loader(0).bound().kernels.kernel_parameter(parameter)
        learned = LearnedKernel(deepcopy(kernel.kernels), parameter, kernel.box)
        parts = _Parts.of(loader, pool, result, task)
        leaves = FittedLeaves(loader.store.partition, BaseFunction.of(base), parts.ends)
        rows = TrainingSet.build(seen.X, np.zeros(len(seen.X)), seen.weight)
        return FittedState(
            n_features_in_=request.source.n_features,
            feature_names_in_=request.feature_names,
            classes_=task.classes,
            epsilon_=task.epsilon,
            kernel_=learned,
            parameter_=learned.parameter,
            support_=parts.index,
            support_vectors_=parts.vectors,
            dual_coef_=parts.coefficients,
            intercept_=parts.intercepts,
            n_iter_=max(0, len(result.history) - 1),
            objective_=result.value,
            lower_bound_=result.lower,
            gap_=result.gap,
            history_=result.history,
            status_=result.status.value,
            solver_="leaves",
            validation_scores_=None,
            leaves_=leaves,
            _n_rows=request.source.n_rows,
            _target_scale=task.scale,
            _w_bound=None,
            _sample_rows=representative_rows(rows, SAMPLE_SIZE),
            _training_range=np.array([seen.low, seen.high]),
        )


# Parameters of a fit that do not define its problem.
_NOT_OF_THE_PROBLEM = (
    *("solver", "tol", "max_iter", "time_limit", "checkpoint", "warm_start", "verbose", "n_jobs"),
    *("warn_outside", "precision", "early_stopping", "validation_fraction", "n_iter_no_change"),
    *("random_state", "decision_function_shape", "break_ties"),
)


@dataclass(frozen=True)
class _Parts:
    """Support vectors of all leaves with their coefficients, one leaf after the other."""

    index: IntArray
    vectors: FloatArray
    coefficients: FloatArray
    intercepts: FloatArray
    ends: IntArray

    @classmethod
    def of(cls, loader: LeafLoader, pool: LeafPool, result: LeavesResult, task: LeafTask) -> _Parts:
        n_machines = task.targets.n_machines
        place = {int(number): k for k, number in enumerate(loader.numbers)}
        index, vectors, coefficients, intercepts, counts = [], [], [], [], []
        for number in range(loader.store.n_leaves):
            rows, machines = loader.machines(number)
            constants = machines.constants.copy()
            coef = np.zeros((n_machines, len(rows.y)))
            if number in place:
                k, start = place[number], 0
                w = pool.vector(result.best, k)
                for machine, own in zip(machines.numbers, machines.rows, strict=True):
                    coef[machine, own] = w[start : start + len(own)]
                    start += len(own)
                constants[list(machines.numbers)] = result.intercepts[k]
            support = np.flatnonzero(coef.any(axis=0))
            index.append(rows.index[support])
            vectors.append(rows.X[support])
            coefficients.append(coef[:, support])
            intercepts.append(constants)
            counts.append(len(support))
        return cls(
            index=np.concatenate(index),
            vectors=np.concatenate(vectors),
            coefficients=task.scale * np.hstack(coefficients),
            intercepts=task.scale * np.array(intercepts),
            ends=np.cumsum(counts),
        )


def _base_scores(base: Any, X: FloatArray) -> FloatArray:
    """Return the scores of the base function with its constants."""
    scores: FloatArray = base._machine_scores(X, base.n_jobs) + base.intercept_
    return scores


def _free(loader: LeafLoader, parameter: Point) -> Point:
    """Return the point of the cone that stands for the parameter of a kernel."""
    bound = loader(0).bound().kernels
    return bound.cone.checked(bound.free_parameter(parameter))


def gradients_of(
    function: Callable[[FloatArray], FloatArray], box: Any, rows: FloatArray
) -> FloatArray:
    """Return gradients of the scores of a function at rows of the unit cube, by differences.

    With several machines, each row has the gradient of each of them, one machine after the other.

    Parameters
    ----------
    function : callable
        Scores of rows in the units of the data, one column for each machine.
    box : UnitBox
        Scaling of the features.
    rows : ndarray of shape (k, n_scaled)
        Scaled rows.
    """
    slopes = []
    for j in range(rows.shape[1]):
        ends = []
        for sign in (1.0, -1.0):
            moved = rows.copy()
            moved[:, j] = np.clip(moved[:, j] + sign * _STEP, 0.0, 1.0)
            ends.append((moved[:, j], function(box.invert(moved))))
        (high, above), (low, below) = ends
        slopes.append((above - below) / (high - low)[:, None])
    gradients: FloatArray = np.stack(slopes, axis=2)  # rows, machines, features
    # A row stands for itself once, so that its machines are summed by their root mean square.
    return gradients.reshape(-1, rows.shape[1]) if gradients.shape[1] == 1 else _combined(gradients)


def _combined(gradients: FloatArray) -> FloatArray:
    """Return for each row the leading direction of the gradients of all machines."""
    combined = np.empty((len(gradients), gradients.shape[2]))
    for own, result in zip(gradients, combined, strict=True):
        _, size, directions = np.linalg.svd(own, full_matrices=False)
        result[:] = size[0] * directions[0]
    return combined


def group_column(partition: Any, n_features: int, names: NDArray[Any] | None) -> int:
    """Return the column of groups that the parameter `partition` names, or -1.

    Raises
    ------
    ValueError
        If there is no such column.
    """
    if isinstance(partition, str) and partition in ("gradient", "median"):
        return -1
    if isinstance(partition, str):
        known = [] if names is None else names.tolist()
        if partition not in known:
            which = f"the features are {known[:10]}" if known else "the features have no names"
            raise ValueError(
                f"partition={partition!r} is neither 'gradient' nor 'median' nor the name of a "
                f"feature: {which}."
            )
        return known.index(partition)
    if not 0 <= partition < n_features:
        raise ValueError(
            f"partition={partition!r} is not the number of a column: there are {n_features}."
        )
    return int(partition)


def source_digest(source: RowSource) -> str:
    """Return a text that identifies rows, targets and weights, whatever their order."""
    total = np.zeros(2, dtype=np.uint64)
    with np.errstate(over="ignore"):
        for batch in source.batches():
            y = batch.y
            if y.dtype.kind not in "biuf":
                y = np.array([hash_of_text(str(label)) for label in y.tolist()], dtype=np.float64)
            rows = np.column_stack([batch.X, y.astype(np.float64), batch.weight])
            ranks = row_hash(rows)
            total[0] += ranks.sum(dtype=np.uint64)
            total[1] ^= np.bitwise_xor.reduce(ranks * np.uint64(0x9E3779B97F4A7C15))
    return f"{source.n_rows}-{int(total[0]):016x}-{int(total[1]):016x}"


def hash_of_text(text: str) -> float:
    """Return a number for a text that is the same in every process."""
    import zlib

    return float(zlib.crc32(text.encode()))


def as_arrays(source: RowSource) -> tuple[FloatArray, NDArray[Any], FloatArray]:
    """Return all rows, targets and weights of a source as arrays."""
    batches = list(source.batches())
    columns = zip(*((batch.X, batch.y, batch.weight) for batch in batches), strict=True)
    X, y, weight = (np.concatenate(column) for column in columns)
    return X, y, weight
