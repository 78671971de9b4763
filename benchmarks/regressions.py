"""Has one of the hottest functions become slower? Their times against a stored baseline.

Each function runs at a fixed size on made-up data, with one thread, in turn with a matrix product
of the same run, and counts as a multiple of that product's time: what the machine is, and what
else it does, cancels to a good part. One that seems slow is measured again before it is called
slow. Exits with status 1 when a multiple is more than 1.5 times the stored one, with 2 without a
baseline. --update stores the measured ones in results/hot-functions.json.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from _report import commit, machine, markdown_table, text, versions, write_json
from numpy.typing import NDArray

from tessella import _core
from tessella.backend import limit_blas
from tessella.kernels import TessellatedKernels
from tessella.problems import SaddlePoint
from tessella.solvers.central_path import WholeProblem, neutral_alpha, state_near
from tessella.svm import DualProblem, InteriorPoint, solve_dual

FloatArray = NDArray[np.float64]
Call = Callable[[], Any]

ALLOWED = 1.5
SIZES = {"rows": 2000, "newton_rows": 600, "features": 8, "gemm_side": 1000}
_THREADS, _REPEATS, _ROUNDS = 1, 7, 3


def main() -> None:
    arguments = _parse()
    functions = hot_functions()
    found = {name: _multiple(prepare) for name, prepare in functions.items()}
    stored = None if arguments.update else _baseline(arguments.baseline)
    if stored is not None:
        for _ in range(_ROUNDS - 1):
            for name in _slow(found, stored):
                again = _multiple(functions[name])
                found[name] = min(found[name], again, key=lambda cell: cell["multiple"])
    _report(found, stored)
    if arguments.update:
        _update(arguments.baseline, found)
    elif stored is None:
        print(f"No baseline for these sizes in {arguments.baseline.name}: store one with --update.")
        raise SystemExit(2)
    elif slow := _slow(found, stored):
        print(f"Slower than {ALLOWED:g} times the baseline: {', '.join(slow)}.")
        raise SystemExit(1)


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--update", action="store_true", help="store a new baseline")
    parser.add_argument(
        "--baseline",
        type=Path,
        default=Path(__file__).parent / "results" / "hot-functions.json",
        help="file of the baseline (default: benchmarks/results/hot-functions.json)",
    )
    return parser.parse_args()


# ----------------------------------------------------------------------------------- functions


def hot_functions() -> dict[str, Callable[[], Call]]:
    """By name, what prepares a call, untimed, and hands it out."""
    X, dual = _regression(SIZES["rows"])
    bound = TessellatedKernels().bind(X, n_jobs=_THREADS)
    P, P_before = _parameters(bound.n_params)
    K, room = bound.gram(P, centred=True), np.ascontiguousarray(1.0 - X)
    w = _solve(K, dual, None).w
    w_before = _solve(bound.gram(P_before, centred=True), dual, None).w
    out = np.empty_like(K)
    return {
        "max_product": lambda: lambda: _core.max_product(room, room, out, _THREADS),
        "gram": lambda: lambda: bound.gram(P, centred=True, out=out),
        "moments": lambda: lambda: bound.moments(w),
        "solve_dual, cold": lambda: lambda: _solve(K, dual, None),
        "solve_dual, warm": lambda: lambda: _solve(K, dual, w_before),
        "Newton step of the joint method": _newton_step,
    }


def _regression(rows: int) -> tuple[FloatArray, DualProblem]:
    rng = np.random.default_rng(0)
    X = rng.random((rows, SIZES["features"]))
    y = np.sin(6 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.3 * rng.normal(size=rows)
    return X, DualProblem.regression((y - y.mean()) / y.std(), 10.0, 0.1)


def _parameters(side: int) -> tuple[FloatArray, FloatArray]:
    """P of an outer step and of the one before: near rank one, as learned ones are."""
    rng = np.random.default_rng(1)
    first, change = rng.normal(size=(2, side))
    matrices = []
    for direction in (first, first + 0.1 * change):
        P = 0.95 * np.outer(direction, direction) / (direction @ direction) * side
        matrices.append(P + 0.05 * np.eye(side))
    return matrices[0], matrices[1]


def _solve(K: FloatArray, dual: DualProblem, start: FloatArray | None) -> Any:
    return solve_dual(K, dual, w0=start, tol=1e-4, n_jobs=_THREADS)


def _newton_step() -> Call:
    """A step from the same place each time: a step moves the method on."""
    X, dual = _regression(SIZES["newton_rows"])
    problem = SaddlePoint(TessellatedKernels().bind(X, n_jobs=_THREADS), dual)
    whole, M = WholeProblem(problem), problem.cone.centre
    return InteriorPoint(whole, *state_near(whole, M, neutral_alpha(whole, M))).advance


# ----------------------------------------------------------------------------------- measuring


def _multiple(prepare: Callable[[], Call]) -> dict[str, float]:
    """Best time of a function and of a matrix product, in turn, and their ratio."""
    a = np.random.default_rng(2).random((SIZES["gemm_side"], SIZES["gemm_side"]))
    product = np.empty_like(a)
    ours, gemm = [], []
    with limit_blas(_THREADS, len(a)):
        for _ in range(_REPEATS + 1):
            gemm.append(_seconds(lambda: np.matmul(a, a, out=product)))
            ours.append(_seconds(prepare()))
    # The first of each warmed up.
    best, unit = min(ours[1:]), min(gemm[1:])
    return {"seconds": best, "gemm_seconds": unit, "multiple": best / unit}


def _seconds(call: Call) -> float:
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


# ------------------------------------------------------------------------------------ baseline


def _baseline(path: Path) -> dict[str, dict[str, float]] | None:
    """The stored multiples, unless they are of other sizes."""
    if not path.is_file():
        return None
    content = json.loads(path.read_text())
    functions: dict[str, dict[str, float]] = content["functions"]
    return functions if content["sizes"] == SIZES else None


def _update(path: Path, found: dict[str, dict[str, float]]) -> None:
    about = {
        "benchmark": "hot-functions",
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": commit(),
        "machine": machine(),
        "versions": versions(),
    }
    write_json(path, about | {"sizes": SIZES, "functions": found})
    print(f"Written: {path}")


def _slow(found: dict[str, dict[str, float]], stored: dict[str, dict[str, float]]) -> list[str]:
    return [
        name
        for name, cell in found.items()
        if name in stored and cell["multiple"] > ALLOWED * stored[name]["multiple"]
    ]


def _report(found: dict[str, dict[str, float]], stored: dict[str, dict[str, float]] | None) -> None:
    lines = []
    for name, cell in found.items():
        before = (stored or {}).get(name, {}).get("multiple")
        ratio = None if before is None else cell["multiple"] / before
        verdict = "–" if ratio is None else "ok" if ratio <= ALLOWED else f"slower: {text(ratio)}"
        lines.append([name, cell["seconds"], cell["multiple"], before, ratio, verdict])
    headers = ("function", "seconds", "matrix products", "stored", "ratio", "verdict")
    print(markdown_table(headers, lines))


if __name__ == "__main__":
    main()
