"""Small problems of multiple kernel learning, and their matrices one by one."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from tessella.kernels import KernelDictionary, StackedKernels
from tessella.problems import SaddlePoint
from tessella.svm import DualProblem

TASKS = ("classification", "regression", "three classes")
FEW = KernelDictionary.standard((0.5, 2.0, 10.0), (1, 2))


def rows_of(size, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((size, 3)) * [1.0, 10.0, 0.1]
    signal = X[:, 0] * X[:, 1] / 10 + 10 * X[:, 2] + 0.3 * rng.standard_normal(size)
    return X, signal


def machines_of(task, signal, C=2.0):
    """Rows and dual problem of each machine: one for each pair of three classes."""
    if task == "regression":
        return [(np.arange(len(signal)), DualProblem.regression(signal / signal.std(), C, 0.1))]
    codes = np.digitize(signal, [0.0] if task == "classification" else [-0.6, 0.6])
    machines = []
    for first, second in combinations(np.unique(codes), 2):
        rows = np.flatnonzero((codes == first) | (codes == second))
        labels = np.where(codes[rows] == first, 1.0, -1.0)
        machines.append((rows, DualProblem.classification(labels, C)))
    return machines


def problem_of(task, size, *, kernels=FEW, C=2.0, n_jobs=1, dtype=np.float64):
    """A saddle point of any kernel set, and its rows."""
    X, signal = rows_of(size)
    return bound_problem(kernels, X, machines_of(task, signal, C), n_jobs, dtype), X


def bound_problem(kernels, X, machines, n_jobs=1, dtype=np.float64):
    resolved = kernels.resolve(X)
    parts = [resolved.bind_resolved(X[own], dtype=dtype, n_jobs=n_jobs) for own, _ in machines]
    if len(parts) == 1:
        return SaddlePoint(parts[0], machines[0][1])
    return SaddlePoint(StackedKernels(parts), DualProblem.stacked([dual for _, dual in machines]))


def block_matrices(problem, X, task):
    """Kernel matrices on the samples of all machines, block diagonal, one by one."""
    signal = rows_of(len(X))[1]
    fitted = problem.kernels.kernels
    blocks = np.zeros((len(fitted), problem.dual.size, problem.dual.size))
    pairs = list(zip(machines_of(task, signal), problem.dual.machines, strict=True))
    for number, block in enumerate(blocks):
        K = fitted.matrix(number, X)
        for (own, _), part in pairs:
            block[part, part] = K[np.ix_(own, own)]
    return blocks
