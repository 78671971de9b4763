"""This installation against another one: the same fits, in turn, in two processes.

    python benchmarks/before_after.py --before /path/to/other/environment/bin/python

Guards a rewrite. The sets of the convergence benchmark are fitted to a gap of 1e-6 with the C and
delta of results/convergence.json, those of the benchmark of multiple kernels to gaps of 1e-2 and
1e-6 with the standard dictionary. Both processes run every fit several times, alternately; the
least processor time counts. The optima must agree to the two gaps, and no set may take more than
1.1 times as long. Writes before-after.json and before-after.md.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from _common import CLASSIFICATION, EPSILON, FIGURE_2, TWELVE, Dataset, load, options, say
from _report import text, write_report

SETS_OF_MULTIPLE_KERNELS = (
    *("heart", "pima", "abalone", "transfusion", "german_numer", "fourclass"),
    *("airfoil", "boston", "cadata"),
)
MOST_ROWS_OF_MULTIPLE_KERNELS = 500
SETS = tuple(dict.fromkeys((*FIGURE_2, *TWELVE, *SETS_OF_MULTIPLE_KERNELS)))
SLOWER = 1.1
SAME = 1e-6


def main() -> None:
    parser = options(__doc__, rows=3000, datasets=SETS)
    parser.add_argument("--before", required=True, help="Python of the other installation")
    parser.add_argument("--repeats", type=int, default=3, help="fits of each (default: 3)")
    arguments = parser.parse_args()
    records = []
    with Process(arguments.before) as before, Process(sys.executable) as after:
        for label, data, estimator, params in _cells(arguments):
            record = _compare(label, data, estimator, params, (before, after), arguments.repeats)
            records.append(record)
            say(f"{label}: {text(record['ratio'])} times the time before, {record['verdict']}")
    del arguments.before  # a path of this machine is no setting of the comparison
    headers = list(COLUMNS)
    rows = [[record[key] for key in COLUMNS.values()] for record in records]
    write_report(arguments, "before-after", records, headers, rows)


class Process:
    """A Python that fits what it is asked to."""

    def __init__(self, python: str) -> None:
        self._python = python
        script = Path(__file__).with_name("_fit_process.py")
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        self._process = subprocess.Popen(
            [python, str(script)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )

    def __enter__(self) -> Process:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()

    def fit(self, request: dict[str, Any]) -> dict[str, Any]:
        """The answer of one fit."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit(f"The process of {self._python} has ended.")
        answer: dict[str, Any] = json.loads(line)
        return answer


def _cells(arguments: argparse.Namespace) -> Any:
    """Label, data, estimator and parameters of every fit."""
    tuned = json.loads((Path(__file__).parent / "results" / "convergence.json").read_text())
    chosen = {record["name"]: record["tuning"] for record in tuned["results"]}
    for name in _asked((*FIGURE_2, *TWELVE), arguments):
        data = load(name, arguments.rows, arguments.seed)
        tuned_params = {key: chosen[name][key] for key in ("C", "delta")}
        params = {**tuned_params, "tol": 1e-6, **_tube(data)}
        yield name, data, _estimator("LearnedKernel", data), params
    for tol in (1e-2, 1e-6):
        for name in _asked(SETS_OF_MULTIPLE_KERNELS, arguments):
            rows = min(arguments.rows, MOST_ROWS_OF_MULTIPLE_KERNELS)
            data = load(name, rows, arguments.seed)
            params = {"C": 10.0, "tol": tol, **_tube(data)}
            yield f"{name}, dictionary, {tol:g}", data, _estimator("MultipleKernel", data), params


def _asked(names: Sequence[str], arguments: argparse.Namespace) -> list[str]:
    return [name for name in names if name in arguments.datasets]


def _tube(data: Dataset) -> dict[str, Any]:
    """The tube of a regression by number, because installations may have other defaults."""
    return {} if data.task == CLASSIFICATION else {"epsilon": EPSILON}


def _estimator(kind: str, data: Dataset) -> str:
    return f"{kind}{'SVC' if data.task == CLASSIFICATION else 'SVR'}"


def _compare(
    label: str,
    data: Dataset,
    estimator: str,
    params: dict[str, Any],
    processes: tuple[Process, Process],
    repeats: int,
) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "data.npz"
        np.savez(table, X=data.X, y=data.y)
        request = {"data": str(table), "estimator": estimator, "params": params}
        answers: tuple[list[dict[str, Any]], ...] = ([], [])
        for _ in range(repeats):
            for process, own in zip(processes, answers, strict=True):
                own.append(process.fit(request))
    before, after = (min(own, key=lambda answer: answer["seconds"]) for own in answers)
    ratio = after["seconds"] / before["seconds"]
    # Both optima lie between the bounds, so what is above the larger bound is error.
    bound = max(before["lower_bound"], after["lower_bound"])
    apart = max(before["objective"], after["objective"]) / bound - 1.0
    missed = [
        *(["slower"] if ratio > SLOWER else []),
        *(["gap not reached"] if after["gap"] > params["tol"] else []),
        *(["other optimum"] if apart > max(2 * params["tol"], SAME) else []),
    ]
    return {
        "set": label,
        "rows": len(data.y),
        "before": before,
        "after": after,
        "before_seconds": before["seconds"],
        "after_seconds": after["seconds"],
        "ratio": ratio,
        "apart": apart,
        "gap": after["gap"],
        "steps": f"{before['n_svm']}/{before['n_newton']} {after['n_svm']}/{after['n_newton']}",
        "verdict": "missed: " + ", ".join(missed) if missed else "ok",
    }


COLUMNS = {
    "set": "set",
    "rows": "rows",
    "before (s)": "before_seconds",
    "after (s)": "after_seconds",
    "ratio": "ratio",
    "optima apart": "apart",
    "gap": "gap",
    "SVMs/Newton steps, before and after": "steps",
    "verdict": "verdict",
}


if __name__ == "__main__":
    main()
