"""Small problems of multiple kernel learning, and their matrices one by one."""

from __future__ import annotations

import numpy as np

from tessella.estimators._machines import Machines, class_pairs
from tessella.multiple_kernels import KernelDictionary
from tessella.multiple_kernels._bound import BoundDictionary
from tessella.multiple_kernels._problem import WeightsProblem
from tessella.svm import DualProblem

TASKS = ("classification", "regression", "three classes")


def rows_of(size, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((size, 3)) * [1.0, 10.0, 0.1]
    signal = X[:, 0] * X[:, 1] / 10 + 10 * X[:, 2] + 0.3 * rng.standard_normal(size)
    return X, signal


def machines_of(task, signal, C=2.0):
    if task == "regression":
        return Machines.single(DualProblem.regression(signal / signal.std(), C, 0.1))
    codes = np.digitize(signal, [0.0] if task == "classification" else [-0.6, 0.6]) + 0.0
    pairs = class_pairs(2 if task == "classification" else 3)
    return Machines.one_vs_one(codes, np.full(len(codes), C), pairs)


def problem_of(task, size, *, dictionary=None, C=2.0, n_jobs=1):
    X, signal = rows_of(size)
    fitted = (dictionary or KernelDictionary.standard((0.5, 2.0, 10.0), (1, 2))).fit(X)
    machines = machines_of(task, signal, C)
    return WeightsProblem(BoundDictionary(fitted, X, machines, n_jobs)), X


def block_matrices(problem, X):
    """Kernel matrices on the samples of all machines, block diagonal, one by one."""
    machines, dictionary = problem.kernels.machines, problem.kernels.dictionary
    blocks = []
    for number in range(len(dictionary)):
        K, full = dictionary.matrix(number, X), np.zeros((problem.dual.size,) * 2)
        for own, part in zip(machines.rows, problem.dual.machines, strict=True):
            full[part, part] = K[np.ix_(own, own)]
        blocks.append(full)
    return np.array(blocks)
