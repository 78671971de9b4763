"""Fuzzed fits: whatever the data and the parameters, a certificate is true or not given."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import tessella
from tessella_bench.campaign._certificates import faults, recompute
from tessella_bench.campaign._outcome import FALSE, FINE, UNFINISHED, Outcome, judged
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
_AUTOMATIC, _SEARCHES = 0.01, 0.03  # shares of the cases
_OF_THE_TOLERANCE = 1e-2  # that rounding the predictions may take


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
    found = confirmed_faults(model, problem)
    if found:
        return Outcome(FALSE, kind, f"{claims}: {' '.join(found)}")
    scores = model.predict(problem.X)
    if scores.dtype.kind == "f" and not np.isfinite(scores).all() and model.status_ == "optimal":
        return Outcome(FALSE, kind, f"{claims}: predictions are not finite")
    return Outcome(FINE if model.status_ == "optimal" else UNFINISHED, kind, claims)


def confirmed_faults(model: Any, problem: Problem) -> list[str]:
    """Return the faults of a certificate that are more than the rounding of predictions.

    A target with a large offset leaves few digits for what was learned. The library compares the
    value of its predictions with the certified one where that can matter, and tolerates a hundredth
    of the tolerance; so does the campaign.
    """
    data = (problem.X, problem.y, problem.weight)
    found = faults(model, *data)
    if len(found) != 1 or not found[0].startswith("The predictions attain"):
        return found
    tolerated = _OF_THE_TOLERANCE * model.tol * abs(model.objective_)
    missed = recompute(model, *data).attained - model.objective_
    return [] if missed <= tolerated else found


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
    """Fit an automatic model; its predictions have to be numbers, and its gap a small one."""
    X = random_rows(rng)
    classifies = bool(rng.random() < 0.5)
    y = random_labels(rng, X) if classifies else random_targets(rng, X)
    weight = random_weights(rng, y, classifies)
    cls = tessella.TessellaClassifier if classifies else tessella.TessellaRegressor
    try:
        model = cls(effort="low", n_jobs=1, time_limit=20.0).fit(X, y, sample_weight=weight)
        scores = model.predict_proba(X) if classifies else model.predict(X)
    except Exception as error:
        return judged(cls.__name__, error)
    claims = f"gap {model.gap_:.2e}"
    if not np.isfinite(scores).all() or not model.gap_ >= 0.0:
        return Outcome(FALSE, cls.__name__, f"{claims}: predictions are not finite")
    return Outcome(FINE, cls.__name__, claims)
