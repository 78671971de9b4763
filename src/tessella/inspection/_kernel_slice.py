"""Display of a kernel around a point."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tessella.inspection._matplotlib import BLUE, GREY, ORANGE, axes_for, tidy
from tessella.inspection._names import feature_index, one_kernel
from tessella.inspection._names import feature_names as names_of
from tessella.kernels import LearnedKernel

FloatArray = NDArray[np.float64]

_MARGIN = 0.05  # part of the range of a feature that is shown on each side of it


class KernelSliceDisplay:
    """Display of the kernel ``k(p, x)`` around a point p, along one or two features of x.

    All other features of x have the same values as in p.

    Parameters
    ----------
    point : array-like of shape (n_features,)
        The point p.
    features : tuple of one or two int
        Numbers of the features that vary.
    grid : sequence of ndarray
        Values of each of the features that vary.
    values : ndarray of shape (n,) or (n, n)
        Values of the kernel on the grid. The first axis belongs to the first feature.
    feature_names : sequence of str
        Names of all features.
    normalized : bool, default=False
        Whether the values are cosines, ``k(p, x) / sqrt(k(p, p) k(x, x))``.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes on which the display was drawn.
    figure_ : matplotlib Figure
        Figure that contains the axes.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from tessella import LearnedKernelSVC
    >>> from tessella.inspection import KernelSliceDisplay
    >>> X, y = make_moons(100, noise=0.2, random_state=0)
    >>> model = LearnedKernelSVC().fit(X, y)
    >>> display = KernelSliceDisplay.from_estimator(model, X[0], features=(0, 1))
    >>> display.values.shape
    (100, 100)
    """

    def __init__(
        self,
        *,
        point: ArrayLike,
        features: tuple[int, ...],
        grid: Sequence[FloatArray],
        values: FloatArray,
        feature_names: Sequence[str],
        normalized: bool = False,
    ) -> None:
        self.point: FloatArray = np.asarray(point, dtype=np.float64)
        self.features = features
        self.grid = list(grid)
        self.values = values
        self.feature_names = list(feature_names)
        self.normalized = normalized

    @classmethod
    def from_estimator(
        cls, estimator: Any, point: ArrayLike, features: Any = 0, **kwargs: Any
    ) -> Self:
        """Draw a slice of the kernel of a fitted estimator.

        Parameters
        ----------
        estimator : fitted LearnedKernelSVC or LearnedKernelSVR
            Estimator whose ``kernel_`` is drawn.
        point : array-like of shape (n_features,)
            The point p, in the units of the training data.
        features : int, str, or a pair of them, default=0
            Numbers or names of the features that vary.
        **kwargs : dict
            Further arguments of :meth:`from_kernel`.

        Returns
        -------
        KernelSliceDisplay
            The display, which has been drawn.
        """
        kernel = one_kernel(estimator)
        names = names_of(estimator, kernel.n_features_in)
        return cls.from_kernel(kernel, point, features, **{"feature_names": names} | kwargs)

    @classmethod
    def from_kernel(
        cls,
        kernel: LearnedKernel,
        point: ArrayLike,
        features: Any = 0,
        *,
        feature_names: Sequence[str] | None = None,
        normalize: bool = False,
        grid_resolution: int | None = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Draw a slice of a learned kernel.

        Parameters
        ----------
        kernel : LearnedKernel
            Kernel to draw.
        point : array-like of shape (n_features,)
            The point p, in the units of the training data.
        features : int, str, or a pair of them, default=0
            Numbers or names of the features that vary.
        feature_names : sequence of str, optional
            Names of all features. By default, x0, x1 and so on.
        normalize : bool, default=False
            Whether the cosine ``k(p, x) / sqrt(k(p, p) k(x, x))`` is drawn instead of the kernel.
        grid_resolution : int, optional
            Number of grid points along each feature. The default is 400 for one feature and 100
            for two features.
        ax : matplotlib Axes, optional
            Axes to draw on. By default, a new figure is created.
        **kwargs : dict
            Further arguments of :meth:`plot`.

        Returns
        -------
        KernelSliceDisplay
            The display, which has been drawn.
        """
        names = names_of(None, kernel.n_features_in) if feature_names is None else feature_names
        chosen = features if isinstance(features, tuple | list) else (features,)
        if len(chosen) not in (1, 2):
            raise ValueError(f"features={features!r} must be one feature or a pair of them.")
        columns = tuple(feature_index(feature, names) for feature in chosen)
        count = grid_resolution or (400 if len(columns) == 1 else 100)
        center = np.array(point, dtype=np.float64).ravel()
        if len(center) != kernel.n_features_in:
            raise ValueError(
                f"point has {len(center)} values, but the kernel takes {kernel.n_features_in}."
            )
        grid = [_grid(kernel, column, center[column], count, names) for column in columns]
        values = _values(kernel, center, columns, grid, normalize)
        display = cls(
            point=center,
            features=columns,
            grid=grid,
            values=values,
            feature_names=names,
            normalized=normalize,
        )
        return display.plot(ax, **kwargs)

    def plot(self, ax: Any = None, **kwargs: Any) -> Self:
        """Draw the display.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw on. By default, a new figure is created.
        **kwargs : dict
            Further arguments for ``Axes.plot`` (one feature) or ``Axes.contourf`` (two features).

        Returns
        -------
        KernelSliceDisplay
            The display itself.
        """
        ax = axes_for(ax, (6.4, 3.8) if len(self.features) == 1 else (6.0, 4.8))
        label = "cosine of p and x" if self.normalized else "k(p, x)"
        if len(self.features) == 1:
            self._draw_line(ax, label, kwargs)
        else:
            self._draw_surface(ax, label, kwargs)
        ax.set_xlabel(self.feature_names[self.features[0]])
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _draw_line(self, ax: Any, label: str, kwargs: dict[str, Any]) -> None:
        center, grid = self.point[self.features[0]], self.grid[0]
        ax.plot(grid, self.values, **{"color": BLUE, "linewidth": 2} | kwargs)
        ax.axvline(center, color=GREY, linestyle="--", linewidth=1)
        ax.plot(center, np.interp(center, grid, self.values), "o", color=ORANGE, zorder=3)
        ax.annotate(" p", (center, 1.0), xycoords=("data", "axes fraction"), va="top", color=GREY)
        ax.set_ylabel(label)
        tidy(ax)

    def _draw_surface(self, ax: Any, label: str, kwargs: dict[str, Any]) -> None:
        surface = ax.contourf(
            *self.grid, self.values.T, **{"levels": 24, "cmap": "cividis"} | kwargs
        )
        center = self.point[list(self.features)]
        ax.plot(*center, "o", color=ORANGE, markeredgecolor="white", markersize=8, label="p")
        ax.legend(loc="upper right", framealpha=0.9)
        ax.figure.colorbar(surface, ax=ax, label=label)
        ax.set_ylabel(self.feature_names[self.features[1]])


def _grid(
    kernel: LearnedKernel, column: int, center: float, count: int, names: Sequence[str]
) -> FloatArray:
    """Return values of a feature that cover its range in the training data, a margin, and p."""
    place = np.flatnonzero((kernel.box.kept == column) & np.isfinite(kernel.box.span))
    if not len(place):
        raise ValueError(
            f"Feature {names[column]!r} was constant in the training data, so the kernel does not "
            "depend on it."
        )
    low, span = kernel.box.offset[place[0]], kernel.box.span[place[0]]
    low, high = min(low, center), max(low + span, center)
    margin = _MARGIN * (high - low)
    return np.linspace(low - margin, high + margin, count)


def _values(
    kernel: LearnedKernel,
    center: FloatArray,
    columns: tuple[int, ...],
    grid: Sequence[FloatArray],
    normalize: bool,
) -> FloatArray:
    mesh = np.meshgrid(*grid, indexing="ij")
    points = np.tile(center, (mesh[0].size, 1))
    for column, values in zip(columns, mesh, strict=True):
        points[:, column] = values.ravel()
    result = kernel(points, center[None, :])[:, 0]
    if normalize:
        result = result / np.sqrt(kernel.diag(points) * kernel.diag(center[None, :]))
    return result.reshape(mesh[0].shape)
