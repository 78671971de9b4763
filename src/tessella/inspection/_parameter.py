"""Display of the matrix P of a kernel."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tessella.cones import is_factor
from tessella.inspection._matplotlib import axes_for, diverging_colors
from tessella.inspection._names import feature_names as names_of
from tessella.inspection._names import one_kernel
from tessella.inspection._summary import KernelPart, kernel_parts
from tessella.kernels import BasisFunction, LearnedKernel, basis_functions

FloatArray = NDArray[np.float64]

_NUMBERS = 12  # largest number of rows for which entries are written into their cells
_SHORT = 3  # characters of a label that fits next to another label
_REGION_TITLES = {"[z≥x]": "z ≥ x", "[z≱x]": "z ≱ x"}


class ParameterDisplay:
    """Display of the matrix P of a learned kernel, with the names of its basis functions.

    The kernel is ``k(x, y) = ∫ N(z, x)ᵀ P N(z, y) dz``. An entry of P shows how much two functions
    of the vector N contribute together. An entry on the diagonal shows which part of the fixed
    trace belongs to one function.

    Parameters
    ----------
    P : array-like of shape (n_params, n_params) or (n_params, r)
        Matrix of the kernel, or a factor U of the matrix U Uᵀ with fewer columns than rows.
    functions : sequence of BasisFunction
        Basis functions that the rows of P stand for, as returned by
        :func:`tessella.kernels.basis_functions`.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes on which the display was drawn.
    figure_ : matplotlib Figure
        Figure that contains the axes.
    shown_ : ndarray
        Matrix as it was drawn: P itself, or P with some rows aggregated.
    labels_ : list of str
        Names of the rows of ``shown_``.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from tessella import LearnedKernelSVC
    >>> from tessella.inspection import ParameterDisplay
    >>> model = LearnedKernelSVC().fit(*make_moons(100, noise=0.2, random_state=0))
    >>> display = ParameterDisplay.from_estimator(model)
    >>> display.labels_
    ['1', 'x0', 'x1', '1', 'x0', 'x1']
    """

    def __init__(self, P: ArrayLike, *, functions: Sequence[BasisFunction]) -> None:
        self.P: FloatArray = np.asarray(P, dtype=np.float64)
        self.functions = list(functions)

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, part: int | None = None, ax: Any = None, **kwargs: Any
    ) -> Self:
        """Draw the matrix P of a fitted estimator.

        Parameters
        ----------
        estimator : fitted LearnedKernelSVC or LearnedKernelSVR
            Estimator whose ``kernel_`` is drawn.
        part : int, optional
            Number of the part to draw, from 0, if the kernels of the estimator are a sum of kernel
            sets. It can be left out if only one part has a matrix.
        ax : matplotlib Axes, optional
            Axes to draw on. By default, a new figure is created.
        **kwargs : dict
            Further arguments of :meth:`plot`.

        Returns
        -------
        ParameterDisplay
            The display, which has been drawn.
        """
        kernel = one_kernel(estimator)
        names = names_of(estimator, kernel.n_features_in)
        return cls.from_kernel(kernel, part=part, feature_names=names, ax=ax, **kwargs)

    @classmethod
    def from_kernel(
        cls,
        kernel: LearnedKernel,
        *,
        part: int | None = None,
        feature_names: Sequence[str] | None = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the matrix P of a learned kernel.

        Parameters
        ----------
        kernel : LearnedKernel
            Kernel whose matrix is drawn.
        part : int, optional
            Number of the part to draw, from 0, if the kernel is from a sum of kernel sets. It can
            be left out if only one part has a matrix.
        feature_names : sequence of str, optional
            Names of all columns of the data. By default, x0, x1 and so on.
        ax : matplotlib Axes, optional
            Axes to draw on. By default, a new figure is created.
        **kwargs : dict
            Further arguments of :meth:`plot`.

        Returns
        -------
        ParameterDisplay
            The display, which has been drawn.

        Raises
        ------
        ValueError
            If the parameter is not a matrix but the weights of a dictionary, or if several parts
            of a sum have a matrix and `part` is not given.
        """
        names = names_of(None, kernel.n_features_in) if feature_names is None else feature_names
        chosen = _part_with_matrix(kernel_parts(kernel), part)
        seen = [names[column] for column in chosen.columns]
        functions = basis_functions(chosen.kernels, seen)
        return cls(chosen.parameter, functions=functions).plot(ax, **kwargs)

    def plot(self, ax: Any = None, *, max_shown: int = 24, **kwargs: Any) -> Self:
        """Draw the display.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw on. By default, a new figure is created.
        max_shown : int, default=24
            Largest number of rows of a matrix that is drawn entry by entry. Of a larger matrix,
            the rows with the largest diagonal entries are drawn, and the remaining rows of each
            region are aggregated in one row and one column "others". The entries of aggregated
            rows and columns are the Frobenius norms of the corresponding blocks.
        **kwargs : dict
            Further arguments for ``Axes.imshow``, which draws the matrix.

        Returns
        -------
        ParameterDisplay
            The display itself.
        """
        shown, labels, regions = self._aggregated(max_shown)
        side = len(shown)
        size = float(np.clip(2.6 + 0.32 * side, 4.8, 10.5))
        ax = axes_for(ax, (size + 0.9, size))
        limit = float(np.abs(shown).max(initial=0.0)) or 1.0
        style = {"cmap": diverging_colors(), "vmin": -limit, "vmax": limit} | kwargs
        image = ax.imshow(shown, **style)
        ax.figure.colorbar(image, ax=ax, shrink=0.8, label="entry of P")
        long = max(map(len, labels)) > _SHORT
        ax.set_xticks(range(side), labels, rotation=90 if long else 0)
        ax.set_yticks(range(side), labels)
        ax.set_xlabel("monomials of the features, scaled to [0, 1]")
        ax.tick_params(length=0)
        if side <= _NUMBERS:
            _write_numbers(ax, shown, limit)
        _separate_regions(ax, regions)
        self.shown_, self.labels_ = shown, labels
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _aggregated(self, max_shown: int) -> tuple[FloatArray, list[str], list[str]]:
        """Return the matrix to draw, its labels, and the region of each row."""
        groups = self._groups(max_shown)
        shown = np.array([[self._entry(rows, columns) for columns in groups] for rows in groups])
        labels = [
            self.functions[group[0]].monomial if len(group) == 1 else f"{len(group)} others"
            for group in groups
        ]
        return shown, labels, [self.functions[group[0]].region for group in groups]

    def _groups(self, max_shown: int) -> list[list[int]]:
        """Return groups of rows of P that share a row of the display."""
        side = len(self.P)
        if side <= max_shown:
            return [[i] for i in range(side)]
        regions = list(dict.fromkeys(function.region for function in self.functions))
        room = max(max_shown - len(regions), 1)
        factored = is_factor(self.P)
        diagonal = np.einsum("ir,ir->i", self.P, self.P) if factored else np.diag(self.P)
        large = set(np.argsort(-diagonal, kind="stable")[:room].tolist())
        groups: list[list[int]] = []
        for region in regions:
            members = [i for i in range(side) if self.functions[i].region == region]
            groups += [[i] for i in members if i in large]
            rest = [i for i in members if i not in large]
            groups += [rest] if rest else []
        return groups

    def _entry(self, rows: list[int], columns: list[int]) -> float:
        single = len(rows) == len(columns) == 1
        if is_factor(self.P):
            ours, theirs = self.P[rows], self.P[columns]
            if single:
                return float(ours[0] @ theirs[0])
            # The norm of ours @ theirs.T, which may have as many entries as P.
            squared = float(np.vdot(ours.T @ ours, theirs.T @ theirs))
            return float(np.sqrt(max(0.0, squared)))
        block = self.P[np.ix_(rows, columns)]
        return float(block[0, 0]) if single else float(np.linalg.norm(block))


def _part_with_matrix(parts: list[KernelPart], number: int | None) -> KernelPart:
    """Return the part with this number; without a number, the only part that has a matrix."""
    matrices = [k for k, part in enumerate(parts) if part.is_matrix]
    if number is None and len(matrices) == 1:
        number = matrices[0]
    if number is None and matrices:
        raise ValueError(f"Several parts of the kernel have a matrix; give one of part={matrices}.")
    if number is not None and not 0 <= number < len(parts):
        raise ValueError(f"part={number!r} does not exist; the kernel has {len(parts)} parts.")
    if number is None or not parts[number].is_matrix:
        raise ValueError(
            "The parameter is the weights of a dictionary and not a matrix. The weights are in the "
            "attribute parameter_ of the estimator, and its display in a notebook shows them."
        )
    return parts[number]


def _write_numbers(ax: Any, shown: FloatArray, limit: float) -> None:
    for (i, j), entry in np.ndenumerate(shown):
        color = "white" if abs(entry) > 0.7 * limit else "black"
        ax.text(j, i, f"{entry:.2g}", ha="center", va="center", fontsize=8, color=color)


def _separate_regions(ax: Any, regions: list[str]) -> None:
    """Draw lines between the regions, and their names along the top and the right."""
    edges = [i for i in range(1, len(regions)) if regions[i] != regions[i - 1]]
    for edge in edges:
        ax.axhline(edge - 0.5, color="black", linewidth=1.2)
        ax.axvline(edge - 0.5, color="black", linewidth=1.2)
    bounds = [0, *edges, len(regions)]
    for first, last in pairwise(bounds):
        title = _REGION_TITLES.get(regions[first], regions[first])
        middle = 0.5 * (first + last - 1)
        ax.text(middle, -0.7, title, ha="center", va="bottom")
        ax.text(len(regions) - 0.3, middle, title, ha="left", va="center")
