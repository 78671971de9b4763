"""Time of single predictions: a model with a learned kernel beside SVC with an RBF kernel.

Both models are fitted to the same rows of an artificial problem, as many as give the learned one
about 500 support vectors. Times are those of the public methods, including their checks, as the
smallest of several repetitions. Needs no data, and writes nothing but a table.
"""

from __future__ import annotations

import argparse
import timeit
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.svm import SVC

from tessella import LearnedKernelSVC

FloatArray = NDArray[np.float64]

METHODS = ("predict", "decision_function")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--support", type=int, default=500, help="least number of support vectors")
    parser.add_argument("--features", type=int, default=10)
    parser.add_argument("--rows", type=int, nargs="+", default=[1, 1000], help="rows to predict")
    parser.add_argument("--n-jobs", type=int, default=None, help="threads of the learned model")
    arguments = parser.parse_args()
    X, y = problem(20 * arguments.support, arguments.features)
    ours, svc = fitted(X, y, arguments.support, arguments.n_jobs)
    print(f"support vectors: ours {len(ours.support_)}, SVC {len(svc.support_)}")
    print(f"{'rows':>6} {'method':<18} {'ours, µs':>10} {'SVC, µs':>10} {'ours / SVC':>10}")
    for count in arguments.rows:
        new, _ = problem(count, arguments.features, seed=1)
        for method in METHODS:
            times = [1e6 * seconds(getattr(model, method), new) for model in (ours, svc)]
            ratio = times[0] / times[1]
            print(f"{count:>6} {method:<18} {times[0]:>10.1f} {times[1]:>10.1f} {ratio:>10.2f}")


def problem(rows: int, features: int, seed: int = 0) -> tuple[FloatArray, NDArray[np.int64]]:
    """Two classes that overlap, so that many rows are support vectors."""
    rng = np.random.default_rng(seed)
    X = rng.random((rows, features))
    signal = np.sin(4.0 * X[:, 0]) + X[:, 1] * X[:, -1] + 0.7 * rng.standard_normal(rows)
    return X, (signal > 0.6).astype(np.int64)


def fitted(
    X: FloatArray, y: NDArray[np.int64], support: int, n_jobs: int | None
) -> tuple[LearnedKernelSVC, SVC]:
    """Both models on the fewest rows, in steps, that give ours enough support vectors."""
    for rows in range(support, len(X) + 1, max(1, support // 5)):
        ours = LearnedKernelSVC(C=1.0, tol=1e-2, n_jobs=n_jobs).fit(X[:rows], y[:rows])
        if len(ours.support_) >= support:
            return ours, SVC().fit(X[:rows], y[:rows])
    raise SystemExit(f"{len(X)} rows do not give {support} support vectors.")


def seconds(predict: Any, X: FloatArray) -> float:
    """Seconds of one call: the smallest mean of seven runs of calls."""
    timer = timeit.Timer(lambda: predict(X))
    calls, _ = timer.autorange()
    return min(timer.repeat(repeat=7, number=calls)) / calls


if __name__ == "__main__":
    main()
