"""Several classes: one learned kernel for all pairs, one for each, and scikit-learn's SVC.

On iris, wine and digits, which come with scikit-learn. Random stratified 80/20 splits; C and delta
(SVC: C and gamma, on standardised features) are chosen by two-fold cross-validation within the
training part. Test accuracy, seconds of the fit with the chosen parameters, support vectors and the
certified gap. Writes several-classes.json and several-classes.md.
"""

from __future__ import annotations

import argparse
import time
import warnings
from typing import Any

import numpy as np
from _common import options, say
from _report import Cache, write_report
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.model_selection import GridSearchCV, StratifiedKFold, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from tessella import KernelPathCV, LearnedKernelSVC

SETS = {"iris": load_iris, "wine": load_wine, "digits": load_digits}
SHARED, SEPARATE, RBF = "one kernel for all pairs", "one for each pair", "SVC, RBF"
OURS = {"C": (1.0, 10.0, 100.0), "delta": (0.1, 1.0)}
PEER = {"svc__C": (1.0, 10.0, 100.0), "svc__gamma": ("scale", 0.01, 0.1)}


def main() -> None:
    arguments = _parse()
    cache = Cache(arguments, "several-classes", {"seed": arguments.seed})
    records = []
    for name in arguments.datasets:
        for method in (SHARED, SEPARATE, RBF):
            splits = [
                cache.cell(
                    f"{name}: {method}, split {split}",
                    lambda n=name, m=method, k=split: measure(n, m, arguments.seed + k),
                )
                for split in range(arguments.splits)
            ]
            records.append({"name": name, "method": method, "splits": splits})
            say(f"{name}, {method}: {np.mean([cell['accuracy'] for cell in splits]):.4f}")
    write_report(arguments, "several-classes", records, HEADERS, [_row(r) for r in records])


def _parse() -> argparse.Namespace:
    parser = options(__doc__, rows=None, datasets=tuple(SETS))
    parser.add_argument("--splits", type=int, default=3, help="(default: 3)")
    return parser.parse_args()


def measure(name: str, method: str, seed: int) -> dict[str, Any]:
    """One method on one split."""
    X, y = SETS[name](return_X_y=True)
    parts = train_test_split(X, y, test_size=0.2, stratify=y, random_state=seed)
    X_train, X_test, y_train, y_test = parts
    folds = StratifiedKFold(2, shuffle=True, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        search = _search(method, folds).fit(X_train, y_train)
        begin = time.perf_counter()
        model = search.best_estimator_.fit(X_train, y_train)
        seconds = time.perf_counter() - begin
    machine = model[-1] if method == RBF else model
    return {
        "accuracy": float(model.score(X_test, y_test)),
        "seconds": seconds,
        "params": dict(search.best_params_),
        "support": len(machine.support_),
        "gap": None if method == RBF else float(model.gap_),
    }


def _search(method: str, folds: StratifiedKFold) -> Any:
    if method == RBF:
        return GridSearchCV(make_pipeline(StandardScaler(), SVC()), PEER, cv=folds)
    mode = "shared" if method == SHARED else "separate"
    return KernelPathCV(LearnedKernelSVC(multi_class=mode), OURS, cv=folds)


HEADERS = ("set", "method", "splits", "test accuracy", "fit s", "support vectors", "worst gap")


def _row(record: dict[str, Any]) -> list[Any]:
    splits = record["splits"]
    accuracies = [cell["accuracy"] for cell in splits]
    gaps = [cell["gap"] for cell in splits if cell["gap"] is not None]
    return [
        *(record["name"], record["method"], len(splits)),
        f"{np.mean(accuracies):.4f} ± {np.std(accuracies):.4f}",
        float(np.mean([cell["seconds"] for cell in splits])),
        int(np.mean([cell["support"] for cell in splits])),
        max(gaps) if gaps else None,
    ]


if __name__ == "__main__":
    main()
