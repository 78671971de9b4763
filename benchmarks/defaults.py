"""The defaults of the estimators: held-out error of many settings that nobody has tuned.

For each of the four estimators with a learned kernel and each setting of `SETTINGS`: error on the
test rows of one division of each table, and seconds of the fit, both as ratios to the paper's
setting. Text becomes zeros and ones, gaps become medians. The error is the root mean squared error
or the share of wrong labels, with one wrong and one right label added so that it is never zero.
Means of ratios are geometric. Every fit is kept as it finishes, so an interrupted run goes on where
it stopped. Writes defaults.json and defaults.md, or defaults-division-1.json and so on for `--seed`
1: the smallest of many ratios is too small by chance, so what the first division suggests is
measured again on rows that had no part in the choice.
"""

from __future__ import annotations

import argparse
import time
import warnings
from functools import cache as remember
from typing import Any

import numpy as np
from _common import data_folder, options, say
from _report import Cache, write_report

import tessella
from tessella.estimators import paper_settings
from tessella.kernels import TessellatedKernels
from tessella.tabular import TabularEncoder
from tessella_bench.suite import divide, load_table

REGRESSION_SETS = (
    *("ailerons", "bike_sharing", "miami_housing", "puma32h", "qsar_aquatic_toxicity"),
    *("abalone", "airfoil", "cadata", "ccpp", "space_ga", "gas_turbine"),
)
CLASSIFICATION_SETS = (
    *("adult", "credit_approval", "electricity", "steel_plates", "german_numer"),
    *("pima", "fourclass", "transfusion", "shill_bidding", "liver"),
)
ESTIMATORS = {
    "LearnedKernelSVR": REGRESSION_SETS,
    "LearnedKernelRidge": REGRESSION_SETS,
    "LearnedKernelSVC": CLASSIFICATION_SETS,
    "LearnedKernelRidgeClassifier": CLASSIFICATION_SETS,
}
MOST_TEST_ROWS = 3000
WITH_TUBE = "LearnedKernelSVR"

# What the settings change in that of the paper.
ONE_CHANGE: tuple[dict[str, Any], ...] = (
    *({"scaling": scaling} for scaling in ("quantile", "robust")),
    *({"epsilon": epsilon} for epsilon in (0.02, "auto")),
    *({"C": C} for C in (1.0, 100.0)),
    *({"delta": delta} for delta in (0.1, 2.0)),
    {"balance": "unit"},
    *({"balance": "pointwise", "delta": delta} for delta in (0.5, 2.0, 8.0)),
    *(
        {"kernels": kernels, "width": width}
        for kernels in ("laplace", "matern", "gaussian")
        for width in (0.5, 1.0, 2.0)
    ),
)
POINTWISE = {"balance": "pointwise", "delta": 2.0}
COMBINATIONS: tuple[dict[str, Any], ...] = (
    {"C": 100.0, "epsilon": "auto"},
    {"epsilon": "auto", "scaling": "quantile"},
    {"C": 1.0, "balance": "unit"},
    *({"C": C, **POINTWISE} for C in (1.0, 0.1)),
    {"C": 1.0, **POINTWISE, "scaling": "quantile"},
    {"C": 1.0, **POINTWISE, "epsilon": "auto"},
    {"C": 1.0, **POINTWISE, "epsilon": "auto", "scaling": "quantile"},
    *({"degree": 0, "balance": "pointwise", "delta": delta} for delta in (2.0, 8.0)),
    {"degree": 0, **POINTWISE, "scaling": "quantile"},
    *({"degree": 0, **POINTWISE, "C": C} for C in (1.0, 100.0)),
)
SETTINGS = ({}, *ONE_CHANGE, *COMBINATIONS)


def main() -> None:
    arguments = _parse()
    keys = ("rows", "seed", "time_limit")
    cache = Cache(arguments, "defaults", {key: getattr(arguments, key) for key in keys})
    records = []
    for estimator, sets in ESTIMATORS.items():
        if estimator not in arguments.estimators:
            continue
        names = [name for name in sets if name in arguments.datasets]
        for changes in _asked(arguments):
            if "epsilon" in changes and estimator != WITH_TUBE:
                continue
            cells = {
                name: cache.cell(
                    f"{estimator}, {title(changes)}, {name}",
                    lambda e=estimator, c=changes, n=name: measure(e, c, n, arguments),
                )
                for name in names
            }
            records.append({"estimator": estimator, "changes": changes, "cells": cells})
            compare(records[-1], paper_of(records))
            say(f"{estimator}, {title(changes)}: {records[-1]['error_ratio']:.3f}")
    name = f"defaults-division-{arguments.seed}" if arguments.seed else "defaults"
    write_report(arguments, name, records, HEADERS, [_row(record) for record in records])


def _parse() -> argparse.Namespace:
    parser = options(__doc__, rows=700, datasets=(*REGRESSION_SETS, *CLASSIFICATION_SETS))
    parser.add_argument(
        "--estimators",
        nargs="+",
        choices=tuple(ESTIMATORS),
        default=list(ESTIMATORS),
        help="(default: all)",
    )
    parser.add_argument(
        "--time-limit", type=float, default=6.0, help="seconds of a fit (default: 6)"
    )
    parser.add_argument(
        "--settings",
        nargs="+",
        default=[],
        metavar="SETTING",
        help="settings in the words of the table, beside the paper's (default: all)",
    )
    return parser.parse_args()


def _asked(arguments: argparse.Namespace) -> list[dict[str, Any]]:
    wanted = {"paper", *arguments.settings}
    unknown = wanted - set(map(title, SETTINGS))
    if unknown:
        raise SystemExit(f"{unknown.pop()!r} is not a setting: {sorted(map(title, SETTINGS))}")
    return [c for c in SETTINGS if not arguments.settings or title(c) in wanted]


def title(changes: dict[str, Any]) -> str:
    """A setting in words: what it changes in the paper's."""
    return ", ".join(f"{name}={value}" for name, value in changes.items()) or "paper"


def model_of(estimator: str, changes: dict[str, Any]) -> Any:
    """The estimator with this setting."""
    task = "regression" if estimator == WITH_TUBE else "classification"  # which has no tube
    params = {**paper_settings(task), "balance": "none", **changes}
    degree, delta, balance = params["degree"], params["delta"], params.pop("balance")
    if params["kernels"] == "tessellated":
        params["kernels"] = TessellatedKernels(degree, delta, balance=balance)
    return getattr(tessella, estimator)(**params, n_jobs=1)


def measure(
    estimator: str, changes: dict[str, Any], name: str, arguments: argparse.Namespace
) -> dict[str, Any]:
    """Error on the test rows of one division, and the cost of the fit."""
    X, y, test_X, test_y = _division(name, arguments.rows, arguments.seed)
    model = model_of(estimator, changes).set_params(time_limit=arguments.time_limit)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the gap is reported instead
        begin = time.perf_counter()
        model.fit(X, y)
        seconds = time.perf_counter() - begin
        predicted = model.predict(test_X)
    if estimator in ("LearnedKernelSVR", "LearnedKernelRidge"):
        error = float(np.sqrt(np.mean((predicted - test_y) ** 2)))
    else:
        error = float((np.sum(predicted != test_y) + 1) / (len(test_y) + 2))
    return {"held_out": error, "fit_seconds": seconds, "gap": float(model.gap_)}


@remember
def _division(name: str, rows: int, seed: int) -> tuple[Any, ...]:
    table = load_table(name, data_folder())
    train, test = divide(table.task, table.y, rows, seed)
    test = np.random.default_rng(seed).permutation(test)[:MOST_TEST_ROWS]
    encoder = TabularEncoder().fit(table.X.iloc[train])
    return (
        *(encoder.transform(table.X.iloc[train]), table.y[train]),
        *(encoder.transform(table.X.iloc[test]), table.y[test]),
    )


def paper_of(records: list[dict[str, Any]]) -> dict[str, Any]:
    """The record of the paper's setting for the estimator of the last record."""
    own = records[-1]["estimator"]
    return next(r for r in records if r["estimator"] == own and not r["changes"])


def compare(record: dict[str, Any], paper: dict[str, Any]) -> None:
    """Write the ratios to the paper's setting into a record."""
    pairs = [(cell, paper["cells"][name]) for name, cell in record["cells"].items()]
    ratios = np.array([own["held_out"] / other["held_out"] for own, other in pairs])
    seconds = np.array([own["fit_seconds"] / other["fit_seconds"] for own, other in pairs])
    record["error_ratio"] = float(np.exp(np.mean(np.log(ratios))))
    record["best_ratio"], record["worst_ratio"] = float(ratios.min()), float(ratios.max())
    record["worst_set"] = list(record["cells"])[int(ratios.argmax())]
    record["lower_on"] = int(np.sum(ratios < 1))
    record["sets"] = len(ratios)
    record["seconds_ratio"] = float(np.exp(np.mean(np.log(seconds))))


HEADERS = (
    *("estimator", "setting", "mean error", "lower on", "best", "worst", "worst on"),
    "seconds",
)


def _row(record: dict[str, Any]) -> list[Any]:
    return [
        *(record["estimator"], title(record["changes"]), record["error_ratio"]),
        f"{record['lower_on']} of {record['sets']}",
        *(record["best_ratio"], record["worst_ratio"], record["worst_set"]),
        record["seconds_ratio"],
    ]


if __name__ == "__main__":
    main()
