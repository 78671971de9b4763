"""Kernel matrices in the form that the compiled core processes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from tessella import _core
from tessella.backend._memory import available_memory

FloatArray = NDArray[np.float64]

_MEMORY_SHARE = 0.4  # part of the available memory that is used for stored rows


@dataclass(frozen=True)
class ProductForm:
    """Symmetric matrix that is defined by the factors of its entries.

    The entry K[i, j] is the sum of a max-product part
    ``Π_f min(room_i[f], room_j[f]) (high_i · high_j)`` and a separable part
    ``first_i · second_j + second_i · first_j``.

    Attributes
    ----------
    room : ndarray of shape (m, n)
        Factors of the product in the max-product part. It may have no columns.
    high : ndarray of shape (m, r)
        Vectors of the inner product in the max-product part. It may have no columns.
    first : ndarray of shape (m, t)
        First vectors of the separable part.
    second : ndarray of shape (m, t)
        Second vectors of the separable part.
    """

    room: FloatArray
    high: FloatArray
    first: FloatArray
    second: FloatArray

    def __post_init__(self) -> None:
        for name in ("room", "high", "first", "second"):
            object.__setattr__(self, name, np.ascontiguousarray(getattr(self, name), np.float64))

    def __len__(self) -> int:
        return len(self.room)

    def matrix(self, out: NDArray[Any], threads: int) -> None:
        """Write the matrix to `out`. The result is exactly symmetric."""
        side = (self.room, self.high, self.first, self.second)
        _core.kernel_matrix(*side, *side, out, threads)

    def restrict(self, rows: NDArray[np.intp]) -> ProductForm:
        """Return the submatrix of some rows and the same columns."""
        return ProductForm(self.room[rows], self.high[rows], self.first[rows], self.second[rows])

    def centred(self, row_means: FloatArray) -> ProductForm:
        """Return the matrix HKH with H = I - 11ᵀ/m, given the means of the rows of K."""
        separable = centred_separable(self.first, self.second, row_means)
        return ProductForm(self.room, self.high, *separable)


def centred_separable(
    first: FloatArray, second: FloatArray, row_means: FloatArray, mean: float | None = None
) -> tuple[FloatArray, FloatArray]:
    """Return the separable part of a symmetric matrix minus its row and column means.

    The mean of all entries is that of the row means, unless their columns have other weights.
    """
    shift = 0.5 * (row_means.mean() if mean is None else mean) - row_means
    return np.column_stack([first, shift]), np.column_stack([second, np.ones_like(shift)])


class KernelOnDemand:
    """Kernel matrix whose rows are computed when a solver needs them.

    Pair steps of the whole problem store the rows for later steps. Pair steps in blocks compute
    them once for many steps and store nothing.

    Parameters
    ----------
    dtype : float32 or float64
        Data type of the stored rows.
    max_bytes : int, optional
        Largest amount of memory for stored rows. If it is exceeded, the least recently used rows
        are deleted. By default, two fifths of the available memory are used.

    Examples
    --------
    >>> import numpy as np
    >>> from tessella.backend import KernelOnDemand, ProductForm
    >>> x = np.array([[-2.0], [-1.0], [1.0], [2.0]])
    >>> none = np.empty((4, 0))
    >>> K = KernelOnDemand()
    >>> K.hold(ProductForm(none, none, 0.5 * x, x))
    >>> K.product(np.array([1.0, 0.0, 0.0, 1.0])).tolist()
    [0.0, 0.0, 0.0, 0.0]
    >>> K.block(np.array([0, 3])).tolist()
    [[4.0, -4.0], [-4.0, 4.0]]
    """

    def __init__(self, dtype: DTypeLike = np.float64, max_bytes: int | None = None) -> None:
        self.dtype = np.dtype(dtype)
        if self.dtype not in (np.float32, np.float64):
            raise TypeError(f"dtype must be float32 or float64, not {self.dtype}.")
        self.native = _core.KernelRows32() if self.dtype == np.float32 else _core.KernelRows()
        self._max_bytes = max_bytes
        self._form: ProductForm | None = None

    def hold(self, form: ProductForm) -> None:
        """Replace the matrix by another one, whose rows use the same memory."""
        if self._max_bytes is None:
            available = available_memory()
            everything = self.dtype.itemsize * len(form) ** 2
            share = everything if available is None else int(_MEMORY_SHARE * available)
            self._max_bytes = share
        capacity = self._max_bytes // max(1, self.dtype.itemsize * len(form))
        self.native.reset(form.room, form.high, form.first, form.second, capacity)
        self._form = form

    @property
    def form(self) -> ProductForm:
        """Current matrix."""
        if self._form is None:
            raise ValueError("There is no kernel matrix yet: call hold() first.")
        return self._form

    def __len__(self) -> int:
        return 0 if self._form is None else len(self._form)

    def product(self, w: FloatArray, threads: int = 1) -> FloatArray:
        """Compute ``K @ w`` in float64, without the stored rows."""
        out = np.empty(len(self.form))
        self.native.product(np.ascontiguousarray(w, np.float64), out, threads)
        return out

    def row(self, k: int, threads: int = 1) -> FloatArray:
        """Compute row k in float64, without the stored rows."""
        unit = np.zeros(len(self.form))
        unit[k] = 1.0
        return self.product(unit, threads)

    def diagonal(self) -> FloatArray:
        """Compute the diagonal in float64."""
        form = self.form
        own = form.room.prod(axis=1) * (form.high**2).sum(axis=1)
        diagonal: FloatArray = own + 2.0 * (form.first * form.second).sum(axis=1)
        return diagonal

    def block(self, rows: NDArray[np.intp], threads: int = 1) -> FloatArray:
        """Compute ``K[rows][:, rows]`` in float64."""
        out = np.empty((len(rows), len(rows)))
        self.form.restrict(rows).matrix(out, threads)
        return out
