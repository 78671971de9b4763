"""
Numerical test of the paper
===========================

The program runs the algorithm of the paper on five partitions of a data set into training and test
samples. It prints the mean and the standard deviation of the test score, which is the accuracy in
per cent for classification and the mean squared error for regression.

.. code-block:: sh

    python examples/numerical_test.py breast_cancer diabetes

The data sets in this program come with scikit-learn. The command ``tessella benchmark`` runs the
protocol of the paper, with its data sets and with C and delta chosen by cross-validation.
"""

import argparse
import time
import warnings

import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine
from sklearn.exceptions import ConvergenceWarning

from tessella.pmkl import evaluate_pmkl, pmkl


def wine():
    """Return the wine data with the first cultivar as one class and the others as the other."""
    X, y = load_wine(return_X_y=True)
    return X, np.where(y == 0, 1, -1)


DATASETS = {
    "breast_cancer": lambda: load_breast_cancer(return_X_y=True),
    "diabetes": lambda: load_diabetes(return_X_y=True),
    "wine": wine,
}
N_PARTITIONS = 5


def run_partition(x, y, seed, C):
    """Train on four fifths of the samples, and return the test score, its name and the gap."""
    order = np.random.default_rng(seed).permutation(len(y))
    train, test = np.split(order, [4 * len(y) // 5])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the program prints the gap instead
        f = pmkl(x[:, train], y[train], C=C)
    predicted = evaluate_pmkl(f, x[:, test])
    if f.type == "Classification":
        return 100 * np.mean(predicted == y[test]), "accuracy (%)", f.gap
    return np.mean((predicted - y[test]) ** 2), "mean squared error", f.gap


def main():
    """Run the data sets named on the command line, or all of them."""
    parser = argparse.ArgumentParser(description="PMKL on five partitions of a data set.")
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"data sets to run: {', '.join(DATASETS)}"
    )
    parser.add_argument("--C", type=float, default=1.0, help="weight of the loss (default: 1)")
    arguments = parser.parse_args()
    for name in arguments.names or DATASETS:
        if name not in DATASETS:
            parser.error(f"unknown data set {name!r}; use {', '.join(DATASETS)}")
        X, y = DATASETS[name]()
        begin = time.perf_counter()
        runs = [run_partition(X.T, y, seed, arguments.C) for seed in range(N_PARTITIONS)]
        seconds = (time.perf_counter() - begin) / N_PARTITIONS
        scores, kinds, gaps = zip(*runs, strict=True)
        print(
            f"{name}: {kinds[0]} {np.mean(scores):.2f} ± {np.std(scores, ddof=1):.2f}, "
            f"largest gap {max(gaps):.3f}, {seconds:.2f} s per partition"
        )


if __name__ == "__main__":
    main()
