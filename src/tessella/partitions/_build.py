"""Cuts of rows at quantiles of the directions in which a function varies most."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tessella.partitions._partition import CutTree, joined

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

# Largest part of the rows by which a tree with a seed moves a cut.
_MOVED = 0.15
# Rows with gradients that a node needs to have a direction of its own.
_LEAST_GRADIENTS = 100
# Deviation of a coordinate, relative to the largest, below which it is constant.
_NO_SPREAD = 1e-9


@dataclass(frozen=True, eq=False)
class CutRule:
    """How rows are cut.

    Attributes
    ----------
    largest : int
        Largest number of rows of a leaf.
    rows, gradients : ndarray of shape (k, n_features) or None
        Some rows, scaled to the unit cube, and the gradients of a function at these rows. A cut is
        then across the direction in which the function varies most among the rows of the node.
        None cuts the feature that is spread most, relative to its spread among all rows.
    seed : int or None
        None cuts so that leaves have about equal sizes. A seed moves each cut at random, so that
        the cuts of two trees are at different places.
    """

    largest: int
    rows: FloatArray | None = None
    gradients: FloatArray | None = None
    seed: int | None = None


def cut_tree(A: FloatArray, rule: CutRule) -> CutTree:
    """Divide rows into leaves.

    With gradients g and the standard deviations s of the features among the rows of a node, the
    direction of its cut is ``q / s``, where q is the leading eigenvector of the mean of
    ``(s g)(s g)ᵀ``: the function varies most along it, in units of the spread of each feature. A
    node with few gradients takes those of the node above.

    Parameters
    ----------
    A : ndarray of shape (m, n_features)
        Rows, scaled to the unit cube. The tree does not depend on their order.
    rule : CutRule
        How to cut.

    Returns
    -------
    CutTree
        Tree whose leaves have at most ``rule.largest`` of the rows, unless rows are equal.

    Notes
    -----
    The cost is that of one product of all rows with a direction for each level of the tree, and a
    decomposition of the side of the features for each cut.

    Examples
    --------
    >>> import numpy as np
    >>> from tessella.partitions import CutRule, cut_tree
    >>> A = np.random.default_rng(0).random((1000, 2))
    >>> gradients = np.column_stack([np.cos(3 * A[:, 0]), np.zeros(len(A))])
    >>> tree = cut_tree(A, CutRule(largest=250, rows=A, gradients=gradients))
    >>> tree.directions.tolist()  # the second feature has no effect
    [[1.0, 0.0], [1.0, 0.0], [1.0, 0.0]]
    >>> tree.leaf_of(np.array([[0.1, 0.9], [0.9, 0.1]])).tolist()
    [0, 3]
    """
    return _Growth(A, rule).tree()


def grouped_tree(A: FloatArray, rule: CutRule, group: FloatArray, groups: FloatArray) -> CutTree:
    """Divide rows into groups, and the rows of each group into leaves.

    Parameters
    ----------
    A : ndarray of shape (m, n_features)
        Rows, scaled to the unit cube.
    rule : CutRule
        How to cut the rows of a group.
    group : ndarray of shape (m,)
        Group of each row.
    groups : ndarray of shape (n_groups,)
        All groups, ascending. A group without rows is a leaf.

    Returns
    -------
    CutTree
        Tree whose leaves have rows of one group each.
    """
    return joined([cut_tree(A[group == own], rule) for own in groups], groups)


def leading_gradients(gradients: FloatArray) -> FloatArray:
    """Return one gradient for each row, for a function with several outputs.

    Parameters
    ----------
    gradients : ndarray of shape (k, n_outputs, n_features)
        Gradient of each output at each row.

    Returns
    -------
    ndarray of shape (k, n_features)
        Leading direction of the gradients of each row, as long as they are along it together.
    """
    if gradients.shape[1] == 1:
        return gradients[:, 0]
    leading = np.empty((len(gradients), gradients.shape[2]))
    for own, result in zip(gradients, leading, strict=True):
        _, size, directions = np.linalg.svd(own, full_matrices=False)
        result[:] = size[0] * directions[0]
    return leading


class _Growth:
    """The cuts that have been made, and the rule of the next ones."""

    def __init__(self, A: FloatArray, rule: CutRule) -> None:
        self._A, self._rule = A, rule
        self._spread = A.std(axis=0) if len(A) else np.ones(A.shape[1])
        self._rng = None if rule.seed is None else np.random.default_rng(rule.seed)
        self._directions: list[FloatArray] = []
        self._thresholds: list[float] = []
        self._sides: list[list[int]] = []
        self._n_leaves = 0

    def tree(self) -> CutTree:
        """Cut until no leaf is too large."""
        known = None
        if self._rule.rows is not None:
            known = np.arange(len(self._rule.rows))
        root = self._grow(np.arange(len(self._A)), known, known)
        count, width = len(self._thresholds), self._A.shape[1]
        return CutTree(
            directions=np.array(self._directions, dtype=np.float64).reshape(count, width),
            thresholds=np.array(self._thresholds, dtype=np.float64),
            sides=np.array(self._sides, dtype=np.intp).reshape(count, 2),
            roots=np.array([root], dtype=np.intp),
            groups=np.empty(0),
        )

    def _grow(self, rows: IntArray, known: IntArray | None, trusted: IntArray | None) -> int:
        """Cut some rows, and return the number of the cut, or -1 - k for a leaf.

        `known` are the rows with gradients on this side of all cuts, and `trusted` those of the
        last node that had enough of them.
        """
        if known is not None and len(known) >= _LEAST_GRADIENTS:
            trusted = known
        cut = self._cut(rows, trusted) if len(rows) > self._rule.largest else None
        if cut is None:
            self._n_leaves += 1
            return -self._n_leaves
        direction, threshold = cut
        number = len(self._thresholds)
        self._directions.append(direction)
        self._thresholds.append(threshold)
        self._sides.append([0, 0])
        above = _products(self._A[rows], direction) > threshold
        beyond = None
        if known is not None:
            assert self._rule.rows is not None
            beyond = _products(self._rule.rows[known], direction) > threshold
        for side, chosen in enumerate((~above, above)):
            own = None
            if known is not None and beyond is not None:
                own = known[beyond if side else ~beyond]
            self._sides[number][side] = self._grow(rows[chosen], own, trusted)
        return number

    def _cut(self, rows: IntArray, trusted: IntArray | None) -> tuple[FloatArray, float] | None:
        """Return the direction and the threshold of a cut; None if all rows are equal."""
        A = self._A[rows]
        spread = A.std(axis=0)
        count = -(-len(rows) // self._rule.largest)  # leaves that are needed at least
        part = (count // 2) / count
        if self._rng is not None:
            part += float(self._rng.uniform(-_MOVED, _MOVED))
        for direction in self._directions_of(spread, trusted):
            products = _products(A, direction)
            threshold = float(np.quantile(products, part, method="lower"))
            if threshold == products.max():  # many rows are equal: the cut is below them
                smaller = products[products < threshold]
                if not len(smaller):
                    continue
                threshold = float(smaller.max())
            # In the middle between two rows, so that rounding moves neither of them.
            beyond = float(products[products > threshold].min())
            middle = threshold + 0.5 * (beyond - threshold)
            return direction, middle if middle < beyond else threshold
        return None

    def _directions_of(self, spread: FloatArray, trusted: IntArray | None) -> list[FloatArray]:
        """Return directions to cut, the best one first."""
        varies = spread > _NO_SPREAD * float(spread.max(initial=0.0))
        found = []
        if trusted is not None:
            assert self._rule.gradients is not None
            steps = self._rule.gradients[trusted] * np.where(varies, spread, 0.0)
            values, vectors = np.linalg.eigh(steps.T @ steps)
            for value, vector in zip(values[::-1], vectors.T[::-1], strict=True):
                if value > 0.0:
                    scaled = np.where(varies, vector / np.where(varies, spread, 1.0), 0.0)
                    found.append(_signed(scaled / np.linalg.norm(scaled)))
        relative = np.where(varies, spread / np.maximum(self._spread, 1e-300), 0.0)
        order = np.argsort(-relative, kind="stable")
        return found + [np.eye(len(spread))[k] for k in order if varies[k]]


def _products(A: FloatArray, direction: FloatArray) -> FloatArray:
    """Return the product of each row with a direction, computed as :class:`CutTree` does."""
    products: FloatArray = np.einsum("ij,j->i", A, direction)
    return products


def _signed(direction: FloatArray) -> FloatArray:
    """Return a direction or its opposite, so that its largest entry is positive."""
    return direction if direction[np.argmax(np.abs(direction))] > 0 else -direction
