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
from collections.abc import Callable, Iterable
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from tessella.backend import limit_blas
from tessella.cones import Cone, Point, is_factor
from tessella.estimators._checkpoint import Checkpoint, StartingPoint, leaves_fingerprint
from tessella.estimators._leaf_model import BaseFunction, FittedLeaves
from tessella.estimators._leaf_rows import LeafRowsOfFit
from tessella.estimators._leaf_scan import Scan
from tessella.estimators._leaf_store import Cuts, LeafSpec, LeafSupport, Spread
from tessella.estimators._leaf_targets import LeafTargets
from tessella.estimators._one_vs_one import class_multipliers, require_classes
from tessella.estimators._relevance import representative_rows
from tessella.estimators._solving import FitCallbacks, fit_display
from tessella.estimators._state import SAMPLE_SIZE, FittedState
from tessella.estimators._training_set import TrainingSet
from tessella.kernels import BoundKernelSet, KernelSet, LearnedKernel, UnitBox
from tessella.partitions import Partition, leading_gradients
from tessella.rows import GrowingArray, RowSource
from tessella.solvers import (
    LeafPool,
    LeavesResult,
    Monitors,
    SolverResult,
    SolverStatus,
    StackedLeavesResult,
    as_solver_result,
    solve_leaves,
    working_memory,
)

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

#: Smallest value of ``max_leaf_rows``; leaves of fewer rows learn next to nothing.
LEAST_LEAF_ROWS = 50

_BASE_LEAVES = 2  # rows of the base function, as a multiple of the rows of a leaf
_BASE_PART = 4  # and at most this part of all rows
_BASE_TOL = 1e-2
_BASE_ITERATIONS = 1000  # whatever the limit of passes over the leaves
_BASE_TIME = 0.25  # of the time limit
_MOST_GRADIENTS, _LEAST_GRADIENTS, _GRADIENT_VALUES = 3000, 300, 100_000
_FEW = 2  # rows that are enough to bind a kernel set to
_STEP = 0.01  # of a difference that estimates a derivative, relative to the range of a feature


@dataclass(frozen=True)
class LeafRequest:
    """What a fit in leaves is asked for.

    Attributes
    ----------
    rows : LeafRowsOfFit
        The rows.
    feature_names : ndarray or None
        Names of the features.
    begun : float
        Moment of ``time.monotonic()`` at which the fit began.
    parameter0 : Point, optional
        Parameter of an earlier fit to start from.
    """

    rows: LeafRowsOfFit
    feature_names: NDArray[Any] | None
    begun: float
    parameter0: Point | None = None


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
        self._watching = Monitors([display, callbacks.callback])
        self._largest = int(estimator.max_leaf_rows)
        names = request.feature_names
        self._column = group_column(estimator.partition, request.rows.n_features, names)

    def state(self) -> FittedState:
        """Run all steps."""
        estimator, rows = self._estimator, self._request.rows
        try:
            self._phase(f"a sample of {rows.n_rows} rows")
            count = min(_BASE_LEAVES * self._largest, max(1, rows.n_rows // _BASE_PART))
            seen = rows.scan(count, classify=estimator._is_classifier, column=self._column)
            self._require_memory(seen)
            self._phase(f"base function from {len(seen.X)} rows")
            base = self._base_model(seen)
            task = estimator._leaf_task(seen, base)
            cuts = self._cuts(seen, base)
            scores = partial(_base_scores, base)
            n_machines = task.targets.n_machines
            spread = Spread(base.kernel_.box, task.code, scores, n_machines, estimator.n_jobs)
            self._phase(f"leaves of at most {self._largest} rows")
            partition = rows.divide(seen.n_rows, cuts, spread)
            return self._solved(seen, base, task, partition)
        finally:
            rows.close()

    def _phase(self, text: str) -> None:
        self._watching.phase(text)

    def _note(self, text: str) -> None:
        self._watching.note(text)

    def _base_model(self, seen: Scan) -> Any:
        """Return a fitted estimator of the same kind, learned on the sample.

        After Ctrl-C there is no partition yet, and so no model to keep.
        """
        estimator, limit = self._estimator, self._estimator.time_limit
        own: dict[str, Any] = {
            "max_leaf_rows": None,
            "checkpoint": None,
            "verbose": 0,
            "warm_start": False,
        }
        own |= {"max_iter": _BASE_ITERATIONS, "tol": max(_BASE_TOL, estimator.tol)}
        if limit is not None:
            own["time_limit"] = _BASE_TIME * limit
        model = clone(estimator).set_params(**own)
        vars(model).pop("_skl_callbacks", None)  # which follow the whole fit
        X, y, weight = estimator._base_rows(seen, model)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(X, y, sample_weight=weight)
        if model.status_ == SolverStatus.INTERRUPTED.value:
            raise KeyboardInterrupt
        return model

    def _cuts(self, seen: Scan, base: Any) -> Cuts:
        """Return where to cut, by the gradients of the base function or by the features alone."""
        estimator, box = self._estimator, base.kernel_.box
        sample = box.apply(seen.X)
        rows = gradients = None
        if estimator.partition == "gradient":
            most = _GRADIENT_VALUES // max(1, sample.shape[1])
            count = min(_MOST_GRADIENTS, max(_LEAST_GRADIENTS, most))
            rows = sample[:count]
            slopes = gradients_of(partial(_scaled_scores, base, seen.X[:count]), rows)
            gradients = leading_gradients(slopes)
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

    def _solved(self, seen: Scan, base: Any, task: LeafTask, partition: Partition) -> FittedState:
        """Learn the kernel of all leaves."""
        estimator, rows, kernel = self._estimator, self._request.rows, base.kernel_
        resolved, bound = self._bound_to_few(seen, kernel.box)
        cone = bound.cone
        start = _multiplied_out(kernel.parameter)
        single = cone.dimension == 1 and estimator._solver_name() == "auto"
        is_fixed = single or estimator._rule() is not None
        earlier = self._request.parameter0
        learned = False
        if earlier is not None and not is_fixed:
            # The parameter of another kernel set means nothing here.
            learned = cone.contains(_multiplied_out(earlier))
            start = _multiplied_out(earlier) if learned else start
        start = cone.checked(bound.free_parameter(start))
        fixed = start if is_fixed else None
        spec = LeafSpec(task.targets, resolved, kernel.box, estimator.precision, fixed)
        sizes = rows.sizes(task.targets)
        numbers = np.flatnonzero(sizes)
        pool = rows.pool(spec, numbers, sizes[numbers])
        checkpoint = self._checkpoint(kernel)
        known = None if checkpoint is None else checkpoint.start
        if known is not None:
            known.require_sizes(cone, int(sizes.sum()), estimator.checkpoint)
            start, learned = known.parameter, True

        def state_of(result: LeavesResult) -> FittedState:
            parameter = bound.kernel_parameter(result.parameter)
            learned = LearnedKernel(deepcopy(bound.kernels), parameter, kernel.box)
            supports = rows.supports(spec, numbers, pool, result)
            leaves = partial(FittedLeaves, partition, BaseFunction.of(base))
            return self._state(seen, task, learned, leaves, supports, result)

        monitors = known, checkpoint
        result = self._run(pool, cone, start, is_fixed, learned, monitors, state_of)
        if checkpoint is not None:
            finished = checkpoint.finish(as_solver_result(result, pool))
            result = replace(result, history=finished.history)
        return state_of(result)

    def _bound_to_few(self, seen: Scan, box: UnitBox) -> tuple[KernelSet, BoundKernelSet]:
        """Return the kernel set as the base function has resolved it, and bound to some rows."""
        rows = TrainingSet.build(seen.X, np.zeros(len(seen.X)), seen.weight)
        unit = box.apply(rows.X)
        resolved = self._estimator._kernel_set().resolve(unit, rows.weight)
        return resolved, resolved.bind_resolved(unit[:_FEW])

    def _run(
        self,
        pool: LeafPool,
        cone: Cone,
        start: Point,
        fixed: bool,
        learned: bool,
        monitors: tuple[StartingPoint | None, Checkpoint | None],
        state_of: Callable[[LeavesResult], FittedState],
    ) -> LeavesResult:
        """Run the solver, with all that watches it."""
        estimator, callbacks = self._estimator, self._callbacks
        if callbacks.scikit_learn is not None:
            callbacks.scikit_learn.state_of = lambda result: state_of(_of_leaves(result))
        known, checkpoint = monitors
        others = (checkpoint, callbacks.scikit_learn, callbacks.callback)
        spent = time.monotonic() - self._request.begun
        limit = estimator.time_limit
        return solve_leaves(
            pool,
            cone,
            start,
            fixed=fixed,
            tol=estimator.tol,
            max_iter=int(estimator.max_iter),
            time_limit=None if limit is None else max(0.0, limit - spent),
            n_jobs=estimator.n_jobs,
            callback=Monitors([known, self._display, *others]),
            learned=learned,
        )

    def _checkpoint(self, kernel: LearnedKernel) -> Checkpoint | None:
        estimator = self._estimator
        if estimator.checkpoint is None:
            return None
        digest = self._request.rows.digest()
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
        own = self._request.rows
        kernels, n_features = estimator._kernel_set(), own.n_features
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
        text = own.require_memory(leaf, rows, int(estimator.n_partitions), estimator.n_jobs)
        self._note(text)

    def _state(
        self,
        seen: Scan,
        task: LeafTask,
        learned: LearnedKernel,
        leaves_of: Callable[[IntArray], FittedLeaves],
        supports: Iterable[LeafSupport],
        result: LeavesResult,
    ) -> FittedState:
        """Return the fitted attributes that follow from a result."""
        model = _Growing.of(supports, self._request.rows, task)
        rows = TrainingSet.build(seen.X, np.zeros(len(seen.X)), seen.weight)
        return FittedState(
            n_features_in_=self._request.rows.n_features,
            feature_names_in_=self._request.feature_names,
            classes_=task.classes,
            epsilon_=task.epsilon,
            kernel_=learned,
            parameter_=learned.parameter,
            support_=model.index.finish()[:, 0],
            support_vectors_=model.vectors.finish(),
            dual_coef_=model.coefficients.finish().T,
            intercept_=np.array(model.intercepts),
            n_iter_=max(0, len(result.history) - 1),
            objective_=result.value,
            lower_bound_=result.lower,
            gap_=result.gap,
            history_=result.history,
            status_=result.status.value,
            solver_="leaves",
            validation_scores_=None,
            leaves_=leaves_of(np.cumsum(model.counts)),
            _n_rows=self._request.rows.n_rows,
            _target_scale=task.scale,
            _w_bound=None,
            _sample_rows=representative_rows(rows, SAMPLE_SIZE),
            _training_range=np.array([seen.low, seen.high]),
            rounds_=result.rounds,
        )


@dataclass
class _Growing:
    """The support vectors of a model, which grow leaf by leaf."""

    index: GrowingArray
    vectors: GrowingArray
    coefficients: GrowingArray
    intercepts: list[FloatArray]
    counts: list[int]

    @classmethod
    def of(cls, supports: Iterable[LeafSupport], rows: LeafRowsOfFit, task: LeafTask) -> _Growing:
        """Collect the support vectors of all leaves, on disk if they may not fit in memory."""
        on_disk = rows.on_disk
        model = cls(
            index=GrowingArray(1, np.intp, on_disk=on_disk),
            vectors=GrowingArray(rows.n_features, np.float64, on_disk=on_disk),
            coefficients=GrowingArray(task.targets.n_machines, np.float64, on_disk=on_disk),
            intercepts=[],
            counts=[],
        )
        for leaf in supports:
            model.index.append(leaf.index)
            model.vectors.append(leaf.vectors)
            model.coefficients.append(task.scale * leaf.coefficients.T)
            model.intercepts.append(task.scale * leaf.intercepts)
            model.counts.append(len(leaf.index))
        return model


# Parameters of a fit that do not define its problem.
_NOT_OF_THE_PROBLEM = (
    *("solver", "tol", "max_iter", "time_limit", "checkpoint", "warm_start", "verbose", "n_jobs"),
    *("warn_outside", "precision", "early_stopping", "validation_fraction", "n_iter_no_change"),
    *("random_state", "decision_function_shape", "break_ties"),
)


def _multiplied_out(parameter: Point) -> Point:
    """Return a parameter as a point of its cone, also if it is given by a factor."""
    product: Point = parameter @ parameter.T if is_factor(parameter) else parameter
    return product


def _base_scores(base: Any, X: FloatArray, n_jobs: int | None) -> FloatArray:
    """Return the scores of the base function with its constants."""
    scores: FloatArray = base._machine_scores(X, n_jobs) + base.intercept_
    return scores


def _of_leaves(result: SolverResult) -> LeavesResult:
    """Return the result of leaves that a record of their solver was made from."""
    assert isinstance(result, StackedLeavesResult)
    assert result.leaves is not None
    return result.leaves


def _scaled_scores(base: Any, X: FloatArray, scaled: FloatArray) -> FloatArray:
    """Return the scores of the base function for rows that differ from X in scaled features."""
    box = base.kernel_.box
    moved = X.copy()
    moved[:, box.kept] = box.invert(scaled)
    return _base_scores(base, moved, base.n_jobs)


def gradients_of(function: Callable[[FloatArray], FloatArray], rows: FloatArray) -> FloatArray:
    """Return gradients of the outputs of a function at scaled rows, by differences.

    Parameters
    ----------
    function : callable
        Outputs of scaled rows, one column for each of them.
    rows : ndarray of shape (k, n_scaled)
        Scaled rows. Differences do not leave their range, which need not be that of the unit cube.
        The slope along a feature without a range is zero.

    Returns
    -------
    ndarray of shape (k, n_outputs, n_scaled)
        Gradient of each output at each row.
    """
    low, high = rows.min(axis=0), rows.max(axis=0)
    slopes = []
    for j, step in enumerate(_STEP * (high - low)):
        ends = []
        for sign in (1.0, -1.0):
            moved = rows.copy()
            moved[:, j] = np.clip(moved[:, j] + sign * step, low[j], high[j])
            ends.append((moved[:, j], function(moved)))
        (right, above), (left, below) = ends
        slopes.append((above - below) / np.where(right > left, right - left, np.inf)[:, None])
    return np.stack(slopes, axis=2)


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


def as_arrays(source: RowSource) -> tuple[FloatArray, NDArray[Any], FloatArray]:
    """Return all rows, targets and weights of a source as arrays."""
    batches = list(source.batches())
    columns = zip(*((batch.X, batch.y, batch.weight) for batch in batches), strict=True)
    X, y, weight = (np.concatenate(column) for column in columns)
    return X, y, weight
