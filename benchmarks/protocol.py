"""What the paper leaves open, and how much it matters: the tube, the margins tried, degree, basis,
rows to learn from.

The paper's protocol (two folds choose C and delta, then one fit) on random divisions of a data set,
Airfoil by default, with one choice after the other changed. XGBoost, which has none of them, tells
how much is due to the divisions alone. Writes protocol.json and protocol.md.
"""

from __future__ import annotations

import argparse
import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from _common import options, say
from _report import Cache, write_report

from tessella import KernelPathCV, LearnedKernelSVR
from tessella.datasets import load
from tessella.kernels import TessellatedKernels
from tessella_bench._trees import xgboost
from tessella_bench._tuning import SCORING, folds, tube

TASK = "regression"
# Rows to learn from as the paper prints them; the others are its test rows.
PAPER_ROWS = {"airfoil": 1300, "boston": 404, "ccpp": 8000}
STRENGTHS = (0.1, 1.0, 10.0, 100.0, 1000.0, 10000.0)
COARSE, FINE = (0.1, 1.0, 4.0), (0.1, 0.3, 1.0, 4.0)


@dataclass(frozen=True)
class Variant:
    """One way to read the paper.

    Attributes
    ----------
    title : str
        What is different.
    deltas, strengths : tuple of float
        The grid.
    kernels : TessellatedKernels
        The family.
    unit_tube : bool
        Whether the tube is 0.1 in the target's unit, and not in its deviations.
    paper_rows : bool
        Learn from as many rows as the paper, and not from 80 %.
    peer : bool
        XGBoost instead.
    oracle : bool
        C and delta by the test rows: what no way to choose them could beat.
    """

    title: str
    deltas: tuple[float, ...] = FINE
    strengths: tuple[float, ...] = STRENGTHS
    kernels: TessellatedKernels = field(default_factory=TessellatedKernels)
    unit_tube: bool = True
    paper_rows: bool = False
    peer: bool = False
    oracle: bool = False


VARIANTS = (
    Variant("tube of 0.1 deviations, delta 0.1, 1, 4", COARSE, unit_tube=False),
    Variant("tube of 0.1 in the target's unit", COARSE),
    Variant("and delta 0.3: as in the report"),
    Variant("as in the report, C and delta by the test rows", oracle=True),
    Variant("as in the report, degree 2", kernels=TessellatedKernels(degree=2)),
    Variant(
        "as in the report, basis in x and z, C 100, 1000",
        strengths=(100.0, 1000.0),
        deltas=(0.1, 0.3, 1.0),
        kernels=TessellatedKernels(monomials="xz"),
    ),
    Variant("as in the report, the paper's rows", paper_rows=True),
    Variant("XGBoost", peer=True),
    Variant("XGBoost, the paper's rows", paper_rows=True, peer=True),
)


def main() -> None:
    arguments = _parse()
    cache = Cache(arguments, "protocol", {"seed": arguments.seed})
    records = []
    for name in arguments.datasets:
        for variant in VARIANTS:
            errors = [
                cache.cell(
                    f"{name}: {variant.title}, division {split}",
                    lambda n=name, v=variant, k=split: measure(n, v, k),
                )["mse"]
                for split in range(_divisions(variant, arguments))
            ]
            records.append({"name": name, "variant": variant.title, "errors": errors})
            say(f"{name}, {variant.title}: {np.mean(errors):.4g}")
    write_report(arguments, "protocol", records, HEADERS, [_row(record) for record in records])


def _parse() -> argparse.Namespace:
    parser = options(__doc__, rows=None, datasets=("airfoil",))
    parser.add_argument("--splits", type=int, default=5, help="divisions (default: 5)")
    parser.add_argument(
        "--paper-splits", type=int, default=20, help="with the paper's rows (default: 20)"
    )
    return parser.parse_args()


def _divisions(variant: Variant, arguments: argparse.Namespace) -> int:
    return arguments.paper_splits if variant.paper_rows else arguments.splits


def measure(name: str, variant: Variant, split: int) -> dict[str, float]:
    """Test error of one variant on one division."""
    data = load(name)
    rows = len(data.y)
    share = 1.0 - PAPER_ROWS[name] / rows if variant.paper_rows else 0.2
    train, test = data.split(split, share)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if variant.oracle:
            search = _searched(variant, data.X, data.y, [(train, test)])
            return {"mse": float(-search.best_score_)}
        model = _fitted(variant, data.X[train], data.y[train], split)
        return {"mse": float(np.mean((model.predict(data.X[test]) - data.y[test]) ** 2))}


def _fitted(variant: Variant, X: Any, y: Any, split: int) -> Any:
    if variant.peer:
        return xgboost(TASK, X, y, split).model
    return _searched(variant, X, y, folds(TASK, split))


def _searched(variant: Variant, X: Any, y: Any, divisions: Any) -> KernelPathCV:
    machine = LearnedKernelSVR(
        kernels=variant.kernels, epsilon=tube(y) if variant.unit_tube else 0.1, n_jobs=1
    )
    grid = {"C": variant.strengths, "kernels__delta": variant.deltas}
    return KernelPathCV(machine, grid, cv=divisions, scoring=SCORING[TASK]).fit(X, y)


HEADERS = ("set", "variant", "divisions", "test MSE", "median", "smallest", "largest")


def _row(record: dict[str, Any]) -> list[Any]:
    errors = np.array(record["errors"])
    return [
        *(record["name"], record["variant"], len(errors)),
        f"{errors.mean():.3g} ± {errors.std(ddof=1):.2g}",
        *(f"{value:.3g}" for value in (np.median(errors), errors.min(), errors.max())),
    ]


if __name__ == "__main__":
    main()
