"""How hard a margin a data set wants: test accuracy against C, of TKL and of averaged kernels.

Hill Valley by default, where the rows have scales of their own and no grid that serves other data
reaches far enough. AMKL is there with the dictionary of the report, on all features and on each
alone, and with its thirteen kernels on all features. Writes strength.json and strength.md.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from _common import options, say
from _report import Cache, write_report

from tessella import KernelDictionary, LearnedKernelSVC, MultipleKernelSVC
from tessella.datasets import load

STRENGTHS = (1e2, 1e4, 1e6, 1e8)


def _averaged(C: float, *, each_feature: bool) -> MultipleKernelSVC:
    dictionary = KernelDictionary.standard(each_feature=each_feature)
    return MultipleKernelSVC(C=C, kernels=dictionary, weighting="average", n_jobs=1)


METHODS: dict[str, Callable[[float], Any]] = {
    "TKL, delta 0.3": lambda C: LearnedKernelSVC(C=C, delta=0.3, n_jobs=1),
    "AMKL, 13 (n + 1) kernels": lambda C: _averaged(C, each_feature=True),
    "AMKL, 13 kernels of all features": lambda C: _averaged(C, each_feature=False),
}
HEADERS = ("set", "method", *(f"C = {C:.0e}" for C in STRENGTHS))


def main() -> None:
    arguments = _parse()
    cache = Cache(arguments, "strength", {"seed": arguments.seed})
    records = []
    for name in arguments.datasets:
        for method in METHODS:
            accuracy = [
                [
                    cache.cell(
                        f"{name}: {method}, C {C:g}, division {split}",
                        lambda n=name, m=method, c=C, k=split: measure(n, m, c, k),
                    )["accuracy"]
                    for split in range(arguments.splits)
                ]
                for C in STRENGTHS
            ]
            records.append(
                {"name": name, "method": method, "strengths": STRENGTHS, "accuracy": accuracy}
            )
            say(f"{name}, {method}: {[round(float(np.mean(a)), 1) for a in accuracy]}")
    write_report(arguments, "strength", records, HEADERS, [_row(record) for record in records])


def _parse() -> argparse.Namespace:
    parser = options(__doc__, rows=None, datasets=("hill_valley",))
    parser.add_argument("--splits", type=int, default=5, help="divisions (default: 5)")
    return parser.parse_args()


def measure(name: str, method: str, C: float, split: int) -> dict[str, float]:
    """Test accuracy in per cent, and the certified gap, on one division."""
    data = load(name)
    train, test = data.split(split)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = METHODS[method](C).fit(data.X[train], data.y[train])
    right = model.predict(data.X[test]) == data.y[test]
    return {"accuracy": 100.0 * float(np.mean(right)), "gap": float(model.gap_)}


def _row(record: dict[str, Any]) -> list[Any]:
    scores = [np.array(values) for values in record["accuracy"]]
    return [
        *(record["name"], record["method"]),
        *(f"{own.mean():.1f} ± {own.std(ddof=1):.1f}" for own in scores),
    ]


if __name__ == "__main__":
    main()
