"""Tessellated kernels of degree one by their definition, with whole matrices."""

import numpy as np


class WholeKernels:
    """The kernel set on rows of the unit cube, with a matrix P of side 2 (n + 1).

    The integrals of products of the indicators of {z ≥ x} and its complement over the box, divided
    by its volume, are products of lengths.
    """

    def __init__(self, X, Y=None, delta=0.5):
        Y = X if Y is None else Y
        low, high = -delta, 1.0 + delta
        length = high - low
        both = np.prod((high - np.maximum(X[:, None, :], Y[None, :, :])) / length, axis=2)
        ours, theirs = (np.prod((high - rows) / length, axis=1) for rows in (X, Y))
        first, second = ours[:, None] - both, theirs[None, :] - both
        self.overlaps = ((both, first), (second, 1.0 - both - first - second))
        self.left, self.right = (np.column_stack([np.ones(len(rows)), rows]) for rows in (X, Y))

    def gram(self, P):
        half = self.left.shape[1]
        blocks = ((P[:half, :half], P[:half, half:]), (P[half:, :half], P[half:, half:]))
        return sum(
            self.overlaps[i][j] * (self.left @ blocks[i][j] @ self.right.T)
            for i in range(2)
            for j in range(2)
        )

    def gradient(self, w):
        """D(w) with <D(w), P> = w @ gram(P) @ w for every P."""
        weighted = w[:, None] * self.left
        return np.block(
            [[weighted.T @ self.overlaps[i][j] @ weighted for j in range(2)] for i in range(2)]
        )
