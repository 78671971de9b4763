"""Row 12 of the speed table: whole fits and predictions against scikit-learn-intelex."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from _common import CLASSIFICATION, EPSILON, Dataset, load, say
from _environments import environment
from _report import text
from _speed import (
    Outcome,
    Session,
    alternate,
    at_most,
    estimator,
    fit_facts,
    in_process,
    prepare_memory,
    spread,
    standardised,
)
from _speed_fit import FIT_SETS, TOL, quiet_fit
from _speed_tuning import OUR_ROWS, RBF_ROWS, choose_ours, choose_rbf
from numpy.typing import NDArray

FIT_TARGET, PREDICT_TARGET = 1.0, 0.25
PREDICTED = 20_000

_REQUIREMENTS = (("scikit-learn-intelex>=2026,<2027",),)
_PEER_SECONDS = 3.0  # of repetitions of each call


def against_sklearnex(session: Session) -> Outcome:
    """Row 12."""
    cells = []
    for name, rows in FIT_SETS.items():
        whole = load(name)
        cells.append(
            _cell(whole.take(300 if session.quick else rows, session.seed), whole, session)
        )
        fit, predict = (text(cells[-1][key]) for key in ("fit_ratio", "predict_ratio"))
        say(f"  {name} {cells[-1]['rows']}: fit {fit}, predict {predict}")
    missed = [
        f"{what}: {over}"
        for what, over in (
            ("fit", at_most(cells, "fit_ratio", FIT_TARGET)),
            ("predict", at_most(cells, "predict_ratio", PREDICT_TARGET)),
        )
        if over
    ]
    loose = [cell["set"] for cell in cells if cell["gap"] > TOL]
    missed += [f"gap of {', '.join(loose)}"] if loose else []
    return Outcome(
        measured=f"fit {spread(cells, 'fit_ratio')}; predict {spread(cells, 'predict_ratio')}",
        missed=", ".join(missed),
        columns=COLUMNS,
        cells=cells,
        notes=[
            "scikit-learn-intelex in an environment of its own, with its patch applied before "
            "scikit-learn's machines are imported. A call of which it does not report that it "
            "ran the accelerated version is an error.",
            f"C and delta by two-fold cross-validation on {OUR_ROWS} rows, C and gamma of the RBF "
            f"machine on {RBF_ROWS:,}, features standardised, both with the same standardised "
            f"targets and tube. The {PREDICTED:,} rows to predict are drawn from the set.",
        ],
    )


def _cell(data: Dataset, whole: Dataset, session: Session) -> dict[str, Any]:
    ours, theirs = choose_ours(data, session), choose_rbf(data, session)
    drawn = np.random.default_rng(session.seed).integers(len(whole.X), size=PREDICTED)
    new = whole.X[drawn[: 1000 if session.quick else None]]
    key = f"{data.name} {len(data.y)} C={theirs['C']:g} gamma={theirs['gamma']:g}"
    known = session.known(key)
    peer = known or session.keep(key, _run_peer(data, new, theirs, session))
    prepare_memory(24.0 * len(data.y) ** 2)
    model = estimator(data.task, **ours, tol=TOL, n_jobs=session.threads)
    fit = alternate(lambda: quiet_fit(model, data.X, data.y))[0]
    predict = alternate(lambda: model.predict(new))[0]
    return {
        "set": data.name,
        "rows": len(data.y),
        "peer_version": peer["version"],
        "peer_module": peer["module"],
        "peer_cached": known is not None,
        "peer_fit_seconds": peer["fit_seconds"],
        "fit_seconds": fit.best,
        "fit_ratio": fit.best / peer["fit_seconds"],
        "peer_predict_seconds": peer["predict_seconds"],
        "predict_seconds": predict.best,
        "predict_ratio": predict.best / peer["predict_seconds"],
        "peer_support": peer["support"],
        **fit_facts(fit.result),
    }


def _run_peer(
    data: Dataset, new: NDArray[np.float64], chosen: dict[str, float], session: Session
) -> dict[str, Any]:
    folder = session.arguments.output / "cache" / "sklearnex-environment"
    python = environment(folder, _REQUIREMENTS)
    settings = {"C": chosen["C"], "gamma": chosen["gamma"], "cache_size": 2000.0}
    if data.task != CLASSIFICATION:
        settings["epsilon"] = EPSILON
    with tempfile.TemporaryDirectory() as place:
        table = Path(place) / "rows.npz"
        np.savez(table, X=data.X, y=standardised(data), new=new)
        request = {
            "data": str(table),
            "task": data.task,
            "settings": settings,
            "threads": session.threads,
            "seconds": _PEER_SECONDS,
        }
        found: dict[str, Any] = in_process("_sklearnex_process.py", request, python)
    if not found["accelerated"]:
        raise RuntimeError(f"scikit-learn-intelex did not run its own code for {data.name}.")
    return found


COLUMNS = {
    "set": "set",
    "rows": "rows",
    "version": "peer_version",
    "class of": "peer_module",
    "cached": "peer_cached",
    "its fit (s)": "peer_fit_seconds",
    "our fit (s)": "fit_seconds",
    "ratio of the fits": "fit_ratio",
    "its predict (s)": "peer_predict_seconds",
    "our predict (s)": "predict_seconds",
    "ratio of the predictions": "predict_ratio",
    "its support": "peer_support",
    "our support": "support",
    "gap": "gap",
    "objective": "objective",
}
