"""Time of leave-one-out: squared loss for one and many values of C, and support vector machines.

All kernel matrices are those of an artificial problem. Seconds are processor time on one thread,
the smallest of several repetitions. Needs no data, and writes nothing but two tables.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from scipy.spatial.distance import cdist
from threadpoolctl import threadpool_limits

from tessella.leave_one_out import RidgePath, ridge_leave_one_out, svm_leave_one_out
from tessella.svm import DualProblem, solve_dual

FloatArray = NDArray[np.float64]

CS = np.geomspace(1e-2, 1e6, 15)
HEADINGS = " support  solve, ms  leave one out, ms  changed  solved again  again, ms per row"
SOLVED_AGAIN = 10  # rows without which a machine is solved again for comparison


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[1000, 2000])
    arguments = parser.parse_args()
    with threadpool_limits(1):
        print(f"{'rows':>6} {'squared loss':<44} {'ms':>8}")
        for rows in arguments.rows:
            for name, seconds in squared_loss(rows):
                print(f"{rows:>6} {name:<44} {1e3 * seconds:>8.1f}")
        print(f"\n{'rows':>6} {'machine':<24} {HEADINGS}")
        for rows in arguments.rows:
            for line in machines(rows):
                print(line)


def squared_loss(rows: int) -> list[tuple[str, float]]:
    """Seconds of each step for one kernel matrix."""
    X, y = problem(rows)
    K = np.exp(-4.0 * cdist(X, X, "sqeuclidean"))
    path = RidgePath(K)
    folds = RidgePath(K, groups=np.arange(rows) % 5)
    return [
        ("eigenvectors, driver 'evd'", least(lambda: decomposed(K, "evd"))),
        ("eigenvectors, driver 'evr'", least(lambda: decomposed(K, "evr"))),
        ("RidgePath(K)", least(lambda: RidgePath(K))),
        ("RidgePath(K), then 15 values of C", least(lambda: RidgePath(K).loo_errors(y, CS))),
        ("errors of 15 values of C", least(lambda: path.loo_errors(y, CS))),
        ("best C from 15 values", least(lambda: path.best(y, CS))),
        ("error of one C with 5 groups", least(lambda: folds.loo_errors(y, [1.0]))),
        ("ridge_leave_one_out(K, y, C)", least(lambda: ridge_leave_one_out(K, y, 10.0))),
    ]


def machines(rows: int) -> list[str]:
    """A line for each loss, kernel and C."""
    X, y = problem(rows)
    kernels = {
        "Gaussian": np.exp(-2.0 * cdist(X, X, "sqeuclidean")),
        "Laplace": np.exp(-cdist(X, X, "cityblock")),
    }
    lines = []
    for kernel, K in kernels.items():
        for C in (1.0, 100.0):
            labels = np.where(y > 0, 1.0, -1.0)
            for loss, dual in (
                ("hinge", DualProblem.classification(labels, C)),
                ("tube", DualProblem.regression(y, C, 0.1)),
            ):
                lines.append(f"{rows:>6} {f'{loss}, {kernel}, C = {C:g}':<24} " + machine(K, dual))
    return lines


def machine(K: FloatArray, dual: DualProblem) -> str:
    """Seconds and counts of one machine."""
    solution = solve_dual(K, dual)
    solve = least(lambda: solve_dual(K, dual))
    seconds, found = timed(lambda: svm_leave_one_out(K, dual, solution))
    support = np.flatnonzero(solution.w)
    chosen = support[:: max(1, len(support) // SOLVED_AGAIN)]
    again, _ = timed(lambda: [solved_without(K, dual, solution.w, i) for i in chosen])
    return (
        f"{len(support):>8} {1e3 * solve:>10.1f} {1e3 * seconds:>18.0f} {found.changed.sum():>8} "
        f"{found.n_resolved:>13} {1e3 * again / len(chosen):>18.1f}"
    )


def solved_without(K: FloatArray, dual: DualProblem, w: FloatArray, row: int) -> Any:
    """The machine without a row, from a warm start and as accurate as leave-one-out is."""
    factor = np.ones(dual.size)
    factor[row] = 0.0
    return solve_dual(K, dual.restrict(np.arange(dual.size), factor), w0=w, tol=1e-8, n_jobs=1)


def problem(rows: int) -> tuple[FloatArray, FloatArray]:
    """Rows in the unit cube and a standardised target with noise."""
    rng = np.random.default_rng(0)
    X = rng.random((rows, 5))
    y = np.sin(6.0 * X[:, 0]) + 2.0 * X[:, 1] * X[:, 2] + 0.3 * rng.standard_normal(rows)
    return X, (y - y.mean()) / y.std()


def decomposed(K: FloatArray, driver: str) -> Any:
    return eigh(K.copy(), driver=driver, overwrite_a=True, check_finite=False)


def timed(function: Callable[[], Any]) -> tuple[float, Any]:
    begin = time.process_time()
    result = function()
    return time.process_time() - begin, result


def least(function: Callable[[], Any]) -> float:
    return min(timed(function)[0] for _ in range(3))


if __name__ == "__main__":
    main()
