"""Multiple kernel learning: "learned" against SimpleMKL and MKLpy's EasyMKL.

For each set, the standard dictionary of 13 (n + 1) kernels: seconds, SVMs on all rows and certified
gap of "learned" and of "simple", both asked for the same gap. EasyMKL, from MKLpy 0.6 in an
environment of its own that this script makes, optimises something else: its weights are judged by
an exact SVM, whose value is compared with the optimum, and with the time after which "learned" has
a value as low. Its time is that of its weights alone; the kernel matrices, which it has to be
given, are counted beside. It has no regression. Then the weights of MKLpy's AverageMKL
and CKA against ours on the same kernels, for a dictionary whose closed form has no negative
weight and for one where it has. (Where features take two values or repeat each other the system
of the closed form is singular, and its solutions need not agree.) Writes multiple-kernels.json and
multiple-kernels.md.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from _common import CLASSIFICATION, EPSILON, Dataset, load, options, say, solve
from _environments import environment
from _report import text, write_report
from _speed import in_process
from numpy.typing import NDArray

from tessella.backend import limit_blas
from tessella.kernels import FittedDictionary, Gaussian, KernelDictionary, Polynomial
from tessella.multiple_kernels.rules import alignment_system, alignment_weights, closed_form
from tessella.problems import SaddlePoint
from tessella.svm import DualProblem, relative_gap

FloatArray = NDArray[np.float64]

SETS = (
    *("heart", "pima", "abalone", "transfusion", "german_numer", "fourclass"),
    *("airfoil", "boston", "cadata"),
)
C = 10.0
FASTER = 5.0
_REQUIREMENTS = (("torch==2.13.0",), ("MKLpy==0.6", "scikit-learn", "cvxopt"))
# Two unlike kernels: the closed form of their alignment has no negative weight. Then many.
UNLIKE = KernelDictionary([Gaussian(0.5), Polynomial(1)], normalisation=None)
ALIKE = KernelDictionary.standard((0.5, 2.0), (2,), normalisation=None)


def main() -> None:
    parser = options(__doc__, rows=500, datasets=SETS)
    parser.add_argument("--tol", type=float, default=1e-2, help="gap (default: 0.01)")
    parser.add_argument(
        "--limit", type=float, default=120.0, help="seconds for SimpleMKL (default: 120)"
    )
    arguments = parser.parse_args()
    python = environment(arguments.output / "cache" / "mklpy-environment", _REQUIREMENTS)
    records = []
    for name in arguments.datasets:
        data = load(name, arguments.rows, arguments.seed)
        with limit_blas():
            record = compare(data, python, arguments)
        records.append(record)
        say(f"{name}: {text(record['speed_up'])} times faster than SimpleMKL, {record['verdict']}")
    write_report(
        arguments, "multiple-kernels", records, list(COLUMNS), [_row(record) for record in records]
    )


def problem_of(data: Dataset) -> tuple[FittedDictionary, SaddlePoint]:
    """The standard dictionary on the rows of a set, with their SVM; a new one for every solver."""
    if data.task == CLASSIFICATION:
        dual = DualProblem.classification(data.y, C)
    else:
        dual = DualProblem.regression((data.y - data.y.mean()) / data.y.std(), C, EPSILON)
    dictionary = KernelDictionary.standard().resolve(data.X)
    return dictionary, SaddlePoint(dictionary.bind(data.X), dual)


def compare(data: Dataset, python: str, arguments: argparse.Namespace) -> dict[str, Any]:
    """All that is measured on one set."""
    dictionary, _ = problem_of(data)
    record: dict[str, Any] = {
        "set": data.name,
        "task": data.task,
        "rows": len(data.y),
        "kernels": len(dictionary),
    }
    ours = _timed("auto", data, arguments.tol, None)
    theirs = _timed("simple-mkl", data, arguments.tol, arguments.limit)
    record |= {f"learned_{key}": value for key, value in ours.items()}
    record |= {f"simple_{key}": value for key, value in theirs.items()}
    record["speed_up"] = theirs["seconds"] / ours["seconds"]
    if data.task == CLASSIFICATION:
        record |= _easy(data, dictionary, ours["path"], python)
        record |= _agreement(data, python)
    record["verdict"] = verdict(record, arguments.tol)
    return record


def _timed(solver: str, data: Dataset, tol: float, time_limit: float | None) -> dict[str, Any]:
    _, problem = problem_of(data)
    result, seconds = solve(solver, problem, tol=tol, time_limit=time_limit)
    return {
        "seconds": seconds,
        "gap": result.gap,
        "path": [(entry.time, entry.value) for entry in result.history],
        "n_svm": result.n_svm,
        "value": result.value,
        "bound": result.bound,
        "used": int(np.count_nonzero(result.parameter)),
    }


def _easy(
    data: Dataset, dictionary: FittedDictionary, path: list[tuple[float, float]], python: str
) -> dict[str, Any]:
    """EasyMKL's time, and how far above the optimum an exact SVM with its weights is."""
    found = _mklpy(data, dictionary, ["EasyMKL"], python)["EasyMKL"]
    begin = time.perf_counter()
    for k in range(len(dictionary)):
        dictionary.matrix(k, data.X)
    seconds = time.perf_counter() - begin
    _, problem = problem_of(data)
    weights = np.maximum(found["weights"], 0.0)
    given = SaddlePoint(problem.kernels, problem.dual, fixed=weights / weights.sum())
    value = solve("auto", given, tol=1e-6, time_limit=None)[0].value
    best, _ = solve("auto", problem, tol=1e-5, time_limit=None)
    return {
        "easy_seconds": found["seconds"],
        "easy_matrices": seconds,
        "easy_value": value,
        "learned_as_low": next((t for t, reached in path if reached <= value), None),
        "easy_above": relative_gap(value, best.bound),
    }


def _agreement(data: Dataset, python: str) -> dict[str, Any]:
    """Largest differences between MKLpy's weights and ours."""
    largest: dict[str, Any] = {}
    for label, recipe in (("unlike", UNLIKE), ("alike", ALIKE)):
        dictionary = recipe.resolve(data.X)
        found = _mklpy(data, dictionary, ["AverageMKL", "CKA"], python)
        bound = dictionary.bind(data.X)
        rows = (data.y[:, None], np.ones(len(data.y)))
        theirs = np.array(found["CKA"]["weights"])
        closed = closed_form(*alignment_system(bound, *rows))
        even = np.array(found["AverageMKL"]["weights"]) - 1.0 / len(dictionary)
        largest[f"average_{label}"] = float(np.abs(even).max())
        largest[f"closed_{label}"] = _apart(theirs, closed)
        largest[f"negative_{label}"] = int((theirs < 0).sum())
        if not largest[f"negative_{label}"]:
            largest[f"alignment_{label}"] = _apart(theirs, alignment_weights(bound, *rows))
    return largest


def _apart(left: FloatArray, right: FloatArray) -> float:
    """Largest difference of two vectors of length one."""
    return float(np.abs(left / np.linalg.norm(left) - right / np.linalg.norm(right)).max())


def _mklpy(
    data: Dataset, dictionary: FittedDictionary, algorithms: list[str], python: str
) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "kernels.npz"
        matrices = np.array([dictionary.matrix(k, data.X) for k in range(len(dictionary))])
        np.savez(table, kernels=matrices, labels=data.y)
        request = {"data": str(table), "algorithms": algorithms}
        answer: dict[str, Any] = in_process("_mklpy_process.py", request, python)
        return answer


def verdict(record: dict[str, Any], tol: float) -> str:
    """Whether "learned" keeps its promises on a set."""
    missed = []
    if record["learned_gap"] > tol:
        missed.append("gap not reached")
    if record["speed_up"] < FASTER:
        missed.append(f"below {FASTER:g} times SimpleMKL")
    if record["simple_gap"] > tol:
        missed.append("SimpleMKL did not reach the gap")
    if record["learned_n_svm"] >= record["simple_n_svm"]:
        missed.append("no fewer SVMs")
    if "easy_seconds" in record:
        whole = record["easy_seconds"] + record["easy_matrices"]
        if record["learned_as_low"] is None or record["learned_as_low"] > whole:
            missed.append("EasyMKL has its value sooner")
    if record.get("alignment_unlike", 0.0) > 1e-6:
        missed.append("alignment differs")
    return "missed: " + ", ".join(missed) if missed else "ok"


COLUMNS = {
    "set": "set",
    "task": "task",
    "rows": "rows",
    "kernels": "kernels",
    "learned (s)": "learned_seconds",
    "SVMs": "learned_n_svm",
    "gap": "learned_gap",
    "kernels used": "learned_used",
    "SimpleMKL (s)": "simple_seconds",
    "its SVMs": "simple_n_svm",
    "its gap": "simple_gap",
    "times faster": "speed_up",
    "EasyMKL (s)": "easy_seconds",
    "its matrices (s)": "easy_matrices",
    "its value above the optimum": "easy_above",
    "learned as low after (s)": "learned_as_low",
    "CKA, unlike kernels": "alignment_unlike",
    "closed form, alike kernels": "closed_alike",
    "its negative weights": "negative_alike",
    "verdict": "verdict",
}


def _row(record: dict[str, Any]) -> list[Any]:
    return [record.get(key) for key in COLUMNS.values()]


if __name__ == "__main__":
    main()
