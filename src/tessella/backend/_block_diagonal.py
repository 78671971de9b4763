"""Block diagonal matrices, such as the kernel matrices of several machines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


class BlockDiagonal:
    """A symmetric matrix of which only the blocks on the diagonal are kept.

    Parameters
    ----------
    blocks : sequence of ndarray
        Symmetric blocks, in their order.

    Examples
    --------
    >>> import numpy as np
    >>> from tessella.backend import BlockDiagonal
    >>> K = BlockDiagonal([np.array([[2.0]]), np.eye(2)])
    >>> (K @ np.array([1.0, 2.0, 3.0])).tolist()
    [2.0, 2.0, 3.0]
    """

    def __init__(self, blocks: Sequence[NDArray[Any]]) -> None:
        self.blocks = tuple(blocks)
        self.dtype = self.blocks[0].dtype
        ends = np.cumsum([len(block) for block in self.blocks]).tolist()
        self.slices = list(map(slice, [0, *ends[:-1]], ends))

    @classmethod
    def of_values(cls, values: FloatArray, sizes: NDArray[np.int64]) -> BlockDiagonal:
        """Return the matrix whose blocks lie one after the other in one array, which it keeps."""
        ends = np.cumsum(sizes * sizes)[:-1]
        parts = zip(np.split(values, ends), sizes.tolist(), strict=True)
        return cls([part.reshape(size, size) for part, size in parts])

    def __len__(self) -> int:
        return int(self.slices[-1].stop)

    def __matmul__(self, v: NDArray[Any]) -> NDArray[Any]:
        parts = zip(self.blocks, self.slices, strict=True)
        return np.concatenate([block @ v[rows] for block, rows in parts])

    def diagonal(self) -> NDArray[Any]:
        """Return the diagonal."""
        return np.concatenate([block.diagonal() for block in self.blocks])

    def whole(self, out: NDArray[Any] | None = None) -> NDArray[Any]:
        """Return the matrix with its zeros, in `out` if that is given."""
        K = np.empty((len(self), len(self)), self.dtype) if out is None else out
        K.fill(0.0)
        return self.added_to(K)

    def added_to(self, matrix: NDArray[Any]) -> NDArray[Any]:
        """Add the blocks to a matrix, and return it."""
        for block, rows in zip(self.blocks, self.slices, strict=True):
            matrix[rows, rows] += block
        return matrix
