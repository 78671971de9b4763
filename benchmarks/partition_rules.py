"""Rules of a partition, compared by the held-out errors of the same rows.

How many trees are averaged, and whether cuts follow the gradients of the base function or the
spread of the features, on the sets of large.py and on made-up rows. Each fit is a model of leaves
of --max-leaf-rows rows; its error is divided by that of the default rule on the same division. The
base function alone is a machine of as many rows as the base of these models has.
Writes partition-rules.json and partition-rules.md.
"""

from __future__ import annotations

import argparse
import warnings
from typing import Any

import numpy as np
from _common import options, say
from _large_process import Division, made_up, of_set, ours, scores
from _report import Cache, write_report

MADE_UP = "made up"
SETS = (MADE_UP, "cadata", "bike_sharing", "electricity", "gas_turbine")
MADE_UP_ROWS = 40_000
DEFAULT = "gradient, 2 trees"
RULES: dict[str, dict[str, Any]] = {
    DEFAULT: {"partition": "gradient", "n_partitions": 2},
    "gradient, 1 tree": {"partition": "gradient", "n_partitions": 1},
    "gradient, 3 trees": {"partition": "gradient", "n_partitions": 3},
    "median, 2 trees": {"partition": "median", "n_partitions": 2},
}
BASE = "base function alone"


def main() -> None:
    arguments = _parse()
    settings = {"max_leaf_rows": arguments.max_leaf_rows, "tol": arguments.tol}
    cache = Cache(arguments, "partition-rules", settings)
    records = []
    for name in arguments.datasets:
        errors: dict[str, list[float]] = {rule: [] for rule in (*RULES, BASE)}
        for seed in range(arguments.seeds):
            given = name, seed, arguments.rows, settings, arguments.threads
            cell = cache.cell(f"{name}-{seed}", lambda own=given: measure(*own))
            for rule, own in errors.items():
                own.append(cell[rule])
        record = {"name": name, "errors": errors}
        say(f"{name}: " + ", ".join(f"{rule} {np.mean(own):.4f}" for rule, own in errors.items()))
        records.append(record)
    write_report(arguments, "partition-rules", records, HEADERS, [_row(own) for own in records])


def _parse() -> argparse.Namespace:
    parser = options(__doc__, rows=MADE_UP_ROWS, datasets=SETS)
    parser.add_argument("--max-leaf-rows", type=int, default=2500, help="default: 2500")
    parser.add_argument("--tol", type=float, default=1e-2, help="of all fits (default: 0.01)")
    parser.add_argument("--threads", type=int, default=2, help="of every fit (default: 2)")
    parser.add_argument("--seeds", type=int, default=3, help="divisions of a set (default: 3)")
    return parser.parse_args()


def measure(
    name: str, seed: int, rows: int, settings: dict[str, Any], threads: int
) -> dict[str, float]:
    """The held-out error of each rule, and of the base function of the default one."""
    data = _division(name, seed, rows)
    found, model = {}, None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for rule, own in RULES.items():
            fitted = ours(data.task, {**settings, **own, "n_jobs": threads}).fit(data.X, data.y)
            found[rule] = scores(data, fitted.predict(data.test.X), with_clean=False)["test_error"]
            model = fitted if rule == DEFAULT else model
    found[BASE] = scores(data, _of_base(model, data), with_clean=False)["test_error"]
    return found


def _division(name: str, seed: int, rows: int) -> Division:
    if name == MADE_UP:
        return made_up(kind="regression", rows=rows, seed=seed)
    return of_set(name=name, most=rows, seed=seed)


def _of_base(model: Any, data: Division) -> Any:
    """Predictions of the base function of a model."""
    values = model.leaves_.base.scores(np.ascontiguousarray(data.test.X), None)[:, 0]
    classes = getattr(model, "classes_", None)
    return values if classes is None else classes[(values > 0).astype(int)]


HEADERS = ("set", "error of the default", *(rule for rule in RULES if rule != DEFAULT), BASE)


def _row(record: dict[str, Any]) -> list[Any]:
    means = {rule: float(np.mean(own)) for rule, own in record["errors"].items()}
    others = [rule for rule in (*RULES, BASE) if rule != DEFAULT]
    ratios = [f"{means[rule] / means[DEFAULT]:.3f}" for rule in others]
    return [record["name"], f"{means[DEFAULT]:.4g}", *ratios]


if __name__ == "__main__":
    main()
