"""
The paper's numerical test
==========================

Choose a data set; the algorithm runs on five partitions into training and test samples, and the
mean and the standard deviation of its test score are printed: the accuracy in per cent for
classification, the mean squared error for regression.

.. code-block:: sh

    python examples/numerical_test.py breast_cancer diabetes

The sets here come with scikit-learn. ``tessella benchmark`` runs the paper's own protocol, with
its twelve sets and the choice of C and delta by cross-validation.
"""

import argparse
import time
import warnings

import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine
from sklearn.exceptions import ConvergenceWarning

from tessella.pmkl import evaluate_pmkl, pmkl


def wine():
    """The first of the three cultivars against the others."""
    X, y = load_wine(return_X_y=True)
    return X, np.where(y == 0, 1, -1)


DATASETS = {
    "breast_cancer": lambda: load_breast_cancer(return_X_y=True),
    "diabetes": lambda: load_diabetes(return_X_y=True),
    "wine": wine,
}
N_PARTITIONS = 5


def run_partition(x, y, seed, C):
    """Learn on four fifths of the samples, drawn at random; score on the others, its name, gap."""
    order = np.random.default_rng(seed).permutation(len(y))
    train, test = np.split(order, [4 * len(y) // 5])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the gap is printed instead
        f = pmkl(x[:, train], y[train], C=C)
    predicted = evaluate_pmkl(f, x[:, test])
    if f.type == "Classification":
        return 100 * np.mean(predicted == y[test]), "accuracy (%)", f.gap
    return np.mean((predicted - y[test]) ** 2), "mean squared error", f.gap


def main():
    """Run the sets named on the command line, by default all."""
    parser = argparse.ArgumentParser(description="PMKL on five partitions of a data set.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(DATASETS)}")
    parser.add_argument("--C", type=float, default=1.0, help="weight of the loss (default: 1)")
    arguments = parser.parse_args()
    for name in arguments.names or DATASETS:
        if name not in DATASETS:
            parser.error(f"unknown set {name!r}; use {', '.join(DATASETS)}")
        X, y = DATASETS[name]()
        begin = time.perf_counter()
        runs = [run_partition(X.T, y, seed, arguments.C) for seed in range(N_PARTITIONS)]
        seconds = (time.perf_counter() - begin) / N_PARTITIONS
        scores, kinds, gaps = zip(*runs, strict=True)
        print(
            f"{name}: {kinds[0]} {np.mean(scores):.2f} ± {np.std(scores, ddof=1):.2f}, "
            f"largest gap {max(gaps):.3f}, {seconds:.2f} s a partition"
        )


if __name__ == "__main__":
    main()
