"""Data, estimators and slow references for the tests of fits in leaves."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from tessella import (
    LearnedKernelRidge,
    LearnedKernelRidgeClassifier,
    LearnedKernelSVC,
    LearnedKernelSVR,
    MultipleKernelSVC,
    MultipleKernelSVR,
)
from tessella.kernels import Gaussian, Polynomial

FEW = (Gaussian(0.5), Gaussian(2.0), Polynomial(2))
LEAVES = {"max_leaf_rows": 120, "n_jobs": 1}
NEW = np.random.default_rng(1).random((60, 3)) * [10.0, 1.0, 300.0]


def waves(m=600, seed=0):
    """Rows in units of their own, and a function of them with noise."""
    rng = np.random.default_rng(seed)
    X = rng.random((m, 3)) * [10.0, 1.0, 300.0]
    f = np.sin(X[:, 0]) + 2.0 * X[:, 1] * (X[:, 2] / 300.0)
    return X, 100.0 + 5.0 * (f + 0.1 * rng.standard_normal(m))


X, Y = waves()
SIGN = np.where(np.median(Y) < Y, "yes", "no")
THREE = np.array(["a", "b", "c"])[np.digitize(Y, np.quantile(Y, [0.3, 0.7]))]
CASES = {
    "two classes": (LearnedKernelSVC(**LEAVES), SIGN),
    "three classes": (LearnedKernelSVC(decision_function_shape="ovo", **LEAVES), THREE),
    "class weights": (
        LearnedKernelSVC(
            3.0, class_weight={"a": 2.0, "b": 0.5}, decision_function_shape="ovo", **LEAVES
        ),
        THREE,
    ),
    "balanced": (LearnedKernelSVC(class_weight="balanced", partition="median", **LEAVES), SIGN),
    "regression": (LearnedKernelSVR(**LEAVES), Y),
    "given tube": (LearnedKernelSVR(4.0, epsilon=0.05, n_partitions=1, **LEAVES), Y),
    "ridge": (LearnedKernelRidge(n_partitions=3, **LEAVES), Y),
    "ridge of two classes": (LearnedKernelRidgeClassifier(**LEAVES), SIGN),
    "ridge classes": (LearnedKernelRidgeClassifier(class_weight="balanced", **LEAVES), THREE),
    "weights": (MultipleKernelSVC(10.0, FEW, **LEAVES), SIGN),
    "average": (MultipleKernelSVC(10.0, FEW, weighting="average", **LEAVES), SIGN),
    "weights of a regression": (MultipleKernelSVR(10.0, FEW, **LEAVES), Y),
    "single kernel": (LearnedKernelSVR(kernels="matern", **LEAVES), Y),
}


def leaf_of_row(tree, a, group=None):
    """The leaf of a scaled row, cut by cut."""
    place = int(tree.roots[0 if group is None else list(tree.groups).index(group)])
    while place >= 0:
        above = float(np.sum(a * tree.directions[place])) > tree.thresholds[place]
        place = int(tree.sides[place, int(above)])
    return -1 - place


def slow_leaves(model, rows):
    """The leaves of rows, one column for each tree."""
    partition, scaled = model.leaves_.partition, model.kernel_.box.apply(rows)
    first, columns = 0, []
    for tree in partition.trees:
        groups = [None] * len(rows)
        if partition.column >= 0:
            groups = rows[:, partition.column].tolist()
        own = [leaf_of_row(tree, a, group) for a, group in zip(scaled, groups, strict=True)]
        columns.append(first + np.array(own))
        first += int((tree.sides < 0).sum() + (tree.roots < 0).sum())
    return np.column_stack(columns)


def support_of(model, k):
    """The support vectors of a leaf and their coefficients."""
    ends = [0, *model.leaves_.ends.tolist()]
    own = slice(ends[k], ends[k + 1])
    return model.support_vectors_[own], model.dual_coef_[:, own]


def base_scores(model, rows):
    base = model.leaves_.base
    return base.kernel(rows, base.support_vectors) @ base.dual_coef.T + base.intercept


def leaf_scores(model, k, rows):
    """What the machines of a leaf add to the base function."""
    vectors, coefficients = support_of(model, k)
    if not len(vectors):
        return np.tile(model.intercept_[k], (len(rows), 1))
    return model.kernel_(rows, vectors) @ coefficients.T + model.intercept_[k]


def slow_scores(model, rows):
    """Predictions leaf by leaf and row by row: base function plus the mean over the trees."""
    scores = base_scores(model, rows)
    for i, leaves in enumerate(slow_leaves(model, rows)):
        parts = [leaf_scores(model, k, rows[i : i + 1])[0] for k in leaves]
        scores[i] += np.mean(parts, axis=0)
    return scores


def scores(model, rows):
    """The scores of a model, one column for each machine."""
    found = model.decision_function(rows) if hasattr(model, "classes_") else model.predict(rows)
    return found.reshape(len(rows), -1)


def row_weights(model, y, weight=None):
    """Weights of the losses: C, sample weight and class weight."""
    weight = np.ones(len(y)) if weight is None else weight
    given = getattr(model, "class_weight", None)
    if given == "balanced":
        totals = {label: weight[y == label].sum() for label in model.classes_}
        given = {k: weight.sum() / (len(totals) * total) for k, total in totals.items()}
    factors = np.array([(given or {}).get(label, 1.0) for label in y])
    return model.C * weight * factors


def slow_value(model, rows, y, weight=None):
    """The value of the model computed from it alone: regularisation and losses of all leaves."""
    C, scale, base = row_weights(model, y, weight), model._target_scale, base_scores(model, rows)
    total = 0.0
    for leaves in slow_leaves(model, rows).T:
        for k in np.unique(leaves):
            own = leaves == k
            vectors, coefficients = support_of(model, k)
            w = coefficients / scale
            if len(vectors):
                total += 0.5 * np.sum((w @ model.kernel_(vectors, vectors)) * w)
            found = base[own] + leaf_scores(model, k, rows[own])
            total += slow_loss(model, y[own], found, C[own])
    return total


def slow_loss(model, y, found, C):
    if isinstance(model, LearnedKernelRidgeClassifier):
        classes = model.classes_[1:] if len(model.classes_) == 2 else model.classes_
        codes = np.column_stack([np.where(y == label, 1.0, -1.0) for label in classes])
        return 0.5 * np.sum(C[:, None] * (codes - found) ** 2)
    if isinstance(model, LearnedKernelSVC):
        count = len(model.classes_)
        pairs = [(1, 0)] if count == 2 else list(combinations(range(count), 2))
        total = 0.0
        for machine, (a, b) in enumerate(pairs):
            sign = (y == model.classes_[a]).astype(float) - (y == model.classes_[b])
            total += np.sum(C * np.abs(sign) * np.maximum(0.0, 1.0 - sign * found[:, machine]))
        return total
    residual = np.abs(y - found[:, 0]) / model._target_scale
    if isinstance(model, LearnedKernelRidge):
        return 0.5 * np.sum(C * residual**2)
    return np.sum(C * np.maximum(0.0, residual - model.epsilon_))
