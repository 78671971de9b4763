"""Fuzzed fits: whatever the data and the parameters, a certificate is true or not given."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import tessella
from tessella_bench.campaign._automatic import automatic_faults
from tessella_bench.campaign._certificates import faults_by, missed, recompute
from tessella_bench.campaign._outcome import FALSE, FINE, LOOSE, MISSED, UNFINISHED, Outcome, judged
from tessella_bench.campaign._problems import (
    Problem,
    random_labels,
    random_problem,
    random_rows,
    random_targets,
    random_weights,
)

ESTIMATORS = (
    "LearnedKernelSVC",
    "LearnedKernelSVR",
    "LearnedKernelRidge",
    "LearnedKernelRidgeClassifier",
    "MultipleKernelSVC",
    "MultipleKernelSVR",
)
_AUTOMATIC, _SEARCHES = 0.02, 0.02  # shares of the cases
_EFFORTS = ("low", "low", "medium", "high")


def run(number: int, folder: Path) -> Outcome:
    """Fit a random estimator, and compute its certificate again."""
    del folder
    rng = np.random.default_rng([1, number])
    which = rng.random()
    if which < _AUTOMATIC:
        return _automatic(rng)
    problem = random_problem(rng, ESTIMATORS)
    kind = type(problem.model).__name__
    if which < _AUTOMATIC + _SEARCHES:
        return _search(rng, problem, f"KernelPathCV of {kind}")
    try:
        model = problem.fit()
    except Exception as error:
        return judged(kind, error)
    return _checked(kind, model, problem)


def _checked(kind: str, model: Any, problem: Problem) -> Outcome:
    """Return what the independent implementation says about a fitted model."""
    claims = f"{model.status_}, gap {model.gap_:.2e}, {model.solver_}"
    again = recompute(model, problem.X, problem.y, problem.weight)
    found = faults_by(model, again)
    if found:
        return Outcome(FALSE, kind, f"{claims}: {' '.join(found)}")
    if not again.rounding + again.dual_rounding <= model.tol * abs(model.objective_):
        claims += f", {LOOSE}"
    if missed(model, again) > model.tol * abs(model.objective_):
        claims += f", {MISSED}"
        if model.status_ == "optimal":  # rounding is no excuse for a claim that is not true
            return Outcome(FALSE, kind, claims)
    scores = model.predict(problem.X)
    if scores.dtype.kind == "f" and not np.isfinite(scores).all() and model.status_ == "optimal":
        return Outcome(FALSE, kind, f"{claims}: predictions are not finite")
    return Outcome(FINE if model.status_ == "optimal" else UNFINISHED, kind, claims)


def _search(rng: np.random.Generator, problem: Problem, kind: str) -> Outcome:
    """Search over C; the best estimator is certified on all rows."""
    grid = 10.0 ** np.sort(rng.uniform(-3, 4, 3))
    problem.model.set_params(tol=1e-3, max_iter=200)
    search = tessella.KernelPathCV(problem.model, {"C": grid}, cv=2)
    try:
        search.fit(problem.X, problem.y, sample_weight=problem.weight)
    except Exception as error:
        return judged(kind, error)
    return _checked(kind, search.best_estimator_, problem)


def _automatic(rng: np.random.Generator) -> Outcome:
    """Fit an automatic model; its members are certified, and it is no worse than a constant."""
    X = random_rows(rng)
    classifies = bool(rng.random() < 0.5)
    y = random_labels(rng, X) if classifies else random_targets(rng, X)
    weight = random_weights(rng, y, classifies)
    cls = tessella.TessellaClassifier if classifies else tessella.TessellaRegressor
    effort = _EFFORTS[rng.integers(len(_EFFORTS))]
    kind = f"{cls.__name__}, {effort}"
    try:
        model = cls(effort=effort, n_jobs=1).fit(X, y, sample_weight=weight)
    except Exception as error:
        return judged(kind, error)
    claims = f"gap {model.gap_:.2e}, {len(model.members_)} members"
    found = automatic_faults(model, X, y, weight)
    if found:
        return Outcome(FALSE, kind, f"{claims}: {' '.join(found)}")
    return Outcome(FINE, kind, claims)
