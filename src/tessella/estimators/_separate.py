"""Several classes with a kernel for each pair of them, instead of one for all."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tessella.estimators._early_stopping import HeldOut
from tessella.estimators._fitting import Given, Outcome, Watchers
from tessella.estimators._machines import Machines
from tessella.estimators._training_set import TrainingSet
from tessella.kernels import UnitBox
from tessella.solvers import SolverResult, SolverStatus
from tessella.svm import DualProblem, relative_gap

FloatArray = NDArray[np.float64]
Pairs = Sequence[tuple[int, int]]

_LEAST_SECONDS = 1e-3  # of a pair whose turn comes when the time is over


def learn_separately(
    model: Any, rows: TrainingSet, pairs: Pairs, box: UnitBox, given: Given, watchers: Watchers
) -> Outcome:
    """Learn a kernel and a machine for each pair of classes, and keep them all in `model`.

    All kernels have the scaling of all rows. Once the time is over, or after Ctrl-C, the pairs
    that are left get the first certified answer of their solver.
    """
    deadline = None if model.time_limit is None else time.monotonic() + model.time_limit
    parts: list[Any] = []
    results: list[SolverResult] = []
    for k, pair in enumerate(pairs):
        part = _part(model, k, pair, len(pairs))
        if deadline is not None:
            part.time_limit = max(_LEAST_SECONDS, deadline - time.monotonic())
        if any(result.status is SolverStatus.INTERRUPTED for result in results):
            part.max_iter = 0
        own, machine = _problem(rows, pair, model.C)
        seen = replace(given, held_out=_of_pair(given.held_out, model.classes_[list(pair)]))
        # Callbacks of scikit-learn see the fit as a whole: its parts are no models of its classes.
        results.append(part._solve(own, machine, seen, Watchers(watchers.callback, None), box))
        parts.append(part)
    status = _worst([result.status for result in results])
    _combine(model, rows, parts, given, status)
    if watchers.hooks is not None:
        watchers.hooks.model_of = lambda _: model
        watchers.hooks.finish(results[-1])
    return Outcome(results[0].solver, status, model.n_iter_, model.gap_)


def _part(model: Any, k: int, pair: tuple[int, int], n_pairs: int) -> Any:
    """A binary classifier for one pair, as far as the last fit knows it already."""
    part = copy(model)
    part.classes_ = model.classes_[[pair[1], pair[0]]]
    if model.checkpoint is not None:
        part.checkpoint = f"{os.fspath(model.checkpoint)}.{k}"
    kernels = vars(part).pop("kernel_", None)
    if isinstance(kernels, list) and len(kernels) == n_pairs:
        part.kernel_ = kernels[k]
        if hasattr(model, "dual_coef_"):  # not so where only kernels were handed over
            part.dual_coef_ = model.dual_coef_[k : k + 1]
            part._w_bound = None if model._w_bound is None else model._w_bound[k : k + 1]
    return part


def _problem(rows: TrainingSet, pair: tuple[int, int], C: float) -> tuple[TrainingSet, Machines]:
    """The rows of two classes and their machine, positive for the first."""
    chosen = np.flatnonzero(np.isin(rows.y, pair))
    own = TrainingSet(rows.X[chosen], rows.y[chosen], rows.weight[chosen], rows.index[chosen])
    signs = np.where(own.y == pair[0], 1.0, -1.0)
    return own, Machines.single(DualProblem.classification(signs, C * own.weight))


def _of_pair(held_out: HeldOut | None, labels: NDArray[Any]) -> HeldOut | None:
    if held_out is None:
        return None
    own = np.isin(held_out.y, labels)
    return HeldOut(held_out.X[own], held_out.y[own], held_out.weight[own])


def _worst(statuses: Sequence[SolverStatus]) -> SolverStatus:
    """Why the fit as a whole is not better: an interrupt, else the first shortfall."""
    short = [status for status in statuses if status is not SolverStatus.OPTIMAL]
    if SolverStatus.INTERRUPTED in short:
        return SolverStatus.INTERRUPTED
    return short[0] if short else SolverStatus.OPTIMAL


def _combine(
    model: Any, rows: TrainingSet, parts: Sequence[Any], given: Given, status: SolverStatus
) -> None:
    """The attributes of all parts as those of one model; certificates add up."""
    coefficients = np.zeros((len(parts), given.n_rows))
    for k, part in enumerate(parts):
        coefficients[k, part.support_] = part.dual_coef_[0]
    place = np.empty(given.n_rows, dtype=np.intp)
    place[rows.index] = np.arange(len(rows.index))
    support = np.flatnonzero(coefficients.any(axis=0))
    model.kernel_ = [part.kernel_ for part in parts]
    model.P_ = [part.P_ for part in parts]
    model.support_ = support
    model.support_vectors_ = rows.X[place[support]]
    model.dual_coef_ = coefficients[:, support]
    model.intercept_ = np.concatenate([part.intercept_ for part in parts])
    model.n_iter_ = sum(part.n_iter_ for part in parts)
    model.objective_ = sum(part.objective_ for part in parts)
    model.lower_bound_ = sum(part.lower_bound_ for part in parts)
    model.gap_ = relative_gap(model.objective_, model.lower_bound_)
    model.history_ = [part.history_ for part in parts]
    model.status_ = status.value
    model.solver_ = parts[0].solver_
    scores = None if given.held_out is None else [part.validation_scores_ for part in parts]
    model.validation_scores_ = scores
    model._n_rows = given.n_rows
    model._target_scale = 1.0
    model._w_bound = _bounds(parts, coefficients)
    model._keep_sample(rows)


def _bounds(parts: Sequence[Any], coefficients: FloatArray) -> FloatArray | None:
    """The dual vectors that prove the lower bounds, if any part is unfinished."""
    if all(part._w_bound is None for part in parts):
        return None
    pairs = zip(parts, coefficients, strict=True)
    return np.vstack([w[None] if part._w_bound is None else part._w_bound for part, w in pairs])
