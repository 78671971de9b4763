"""Display of a learned function of two features."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted, validate_data

from tessella.inspection._matplotlib import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    SKY,
    axes_for,
    diverging_colors,
)
from tessella.inspection._names import feature_index, without_names
from tessella.inspection._names import feature_names as names_of
from tessella.kernels import LearnedKernel, TessellatedKernels

FloatArray = NDArray[np.float64]

_FEW_LINES = 15  # support vectors
_SHORT_LEGEND = 6  # entries
_MARGIN = 0.08  # part of the range of a feature that is shown on each side of it
_CLASS_COLORS = (ORANGE, BLUE, GREEN, "#CC79A7", SKY, "#E69F00", GREY, "#F0E442")
_MARKERS = "osD^vP*X"


class DecisionSurfaceDisplay:
    """Display of a learned function of two features, with the cells of its tessellation.

    A tessellated kernel ``k(x, s)`` is a smooth function of x on both sides of the planes
    ``x_j = s_j`` and has a crease on these planes. The learned function is a sum over the support
    vectors s. The coordinates of the support vectors define a grid, and the function is smooth in
    each cell of this grid (it is a polynomial, unless the kernels are balanced pointwise). The
    display shows the lines of the grid. The opacity of a line increases with the coefficient of
    its support vector.

    Parameters
    ----------
    grid : pair of ndarray
        Values of the first and of the second feature.
    response : ndarray of shape (n, n)
        Values of the decision function or of the prediction on the grid. For more than two
        classes, the numbers of the predicted classes. The first axis belongs to the first feature.
    feature_names : pair of str
        Names of the two features.
    classes : ndarray, optional
        Class labels of a classifier.
    support_vectors : ndarray of shape (n_support, 2), optional
        Values of the two features in the support vectors, which define the lines of the grid.
    strength : ndarray of shape (n_support,), optional
        Absolute values of the coefficients of the support vectors.

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
    >>> from tessella.inspection import DecisionSurfaceDisplay
    >>> X, y = make_moons(100, noise=0.2, random_state=0)
    >>> model = LearnedKernelSVC().fit(X, y)
    >>> display = DecisionSurfaceDisplay.from_estimator(model, X, y)
    >>> display.ax_.get_xlabel(), display.ax_.get_ylabel()
    ('x0', 'x1')
    """

    def __init__(
        self,
        *,
        grid: tuple[FloatArray, FloatArray],
        response: NDArray[Any],
        feature_names: Sequence[str],
        classes: NDArray[Any] | None = None,
        support_vectors: FloatArray | None = None,
        strength: FloatArray | None = None,
    ) -> None:
        self.grid = grid
        self.response = response
        self.feature_names = list(feature_names)
        self.classes = classes
        self.support_vectors = support_vectors
        self.strength = strength

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any = None,
        y: Any = None,
        *,
        features: tuple[int | str, int | str] = (0, 1),
        point: ArrayLike | None = None,
        grid_resolution: int = 200,
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the learned function of a fitted estimator.

        Parameters
        ----------
        estimator : fitted estimator
            Classifier or regressor whose function is drawn. The cells of the tessellation are
            drawn if its ``kernel_`` is tessellated.
        X : array-like of shape (n_samples, n_features), optional
            Rows that determine the range of the display. By default, the support vectors are used.
        y : array-like of shape (n_samples,), optional
            Targets of the rows of X. If they are given, the rows are drawn as points.
        features : pair of int or str, default=(0, 1)
            Numbers or names of the two features to draw.
        point : array-like of shape (n_features,), optional
            Row that provides the values of all other features. By default, the medians of the
            features in X are used.
        grid_resolution : int, default=200
            Number of grid points along each feature.
        ax : matplotlib Axes, optional
            Axes to draw on. By default, a new figure is created.
        **kwargs : dict
            Further arguments of :meth:`plot`.

        Returns
        -------
        DecisionSurfaceDisplay
            The display, which has been drawn.
        """
        check_is_fitted(estimator)
        rows = (
            estimator.support_vectors_
            if X is None
            else validate_data(estimator, X, dtype=np.float64, reset=False)
        )
        if y is not None and len(y) != len(rows):
            raise ValueError(
                f"y has {len(y)} values, but there are {len(rows)} rows. To choose the features "
                "to draw, use features=(first, second)."
            )
        names = names_of(estimator, rows.shape[1])
        columns = [feature_index(feature, names) for feature in features]
        if len(set(columns)) != 2:
            raise ValueError(f"features={features!r} must be two different features.")
        across, up = (_grid(rows[:, column], grid_resolution) for column in columns)
        base = np.median(rows, axis=0) if point is None else np.asarray(point, dtype=np.float64)
        support, strength = _support(estimator, columns)
        display = cls(
            grid=(across, up),
            response=_response(estimator, base, columns, (across, up)),
            feature_names=[names[column] for column in columns],
            classes=estimator.classes_ if is_classifier(estimator) else None,
            support_vectors=support,
            strength=strength,
        )
        points = None if y is None else (rows[:, columns], np.asarray(y))
        return display.plot(ax, points=points, **kwargs)

    def plot(
        self,
        ax: Any = None,
        *,
        points: tuple[FloatArray, NDArray[Any]] | None = None,
        tessellation: bool = True,
        max_lines: int = 60,
        **kwargs: Any,
    ) -> Self:
        """Draw the display.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw on. By default, a new figure is created.
        points : (X, y), optional
            Rows with the two features, and their targets, which are drawn on the surface.
        tessellation : bool, default=True
            Whether the lines of the tessellation are drawn.
        max_lines : int, default=60
            Largest number of support vectors whose lines are drawn. The support vectors with the
            largest coefficients are chosen.
        **kwargs : dict
            Further arguments for ``Axes.imshow``, which draws the surface.

        Returns
        -------
        DecisionSurfaceDisplay
            The display itself.
        """
        ax = axes_for(ax, (6.8, 5.2))
        limits = [(grid[0], grid[-1]) for grid in self.grid]
        image = self._draw_surface(ax, kwargs)
        if tessellation and self.support_vectors is not None:
            self._draw_tessellation(ax, self.support_vectors, max_lines)
        if points is not None:
            self._draw_points(ax, *points, image)
        elif self.classes is not None:
            self._name_classes(ax, self.classes)
        ax.set(xlim=limits[0], ylim=limits[1])
        ax.set(xlabel=self.feature_names[0], ylabel=self.feature_names[1])
        self._draw_legend(ax)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    @staticmethod
    def _draw_legend(ax: Any) -> None:
        """Draw the legend where there are few points, or next to the axes if it is long."""
        count = len(ax.get_legend_handles_labels()[0])
        place: dict[str, Any] = {"loc": "best"}
        if count > _SHORT_LEGEND:
            place = {"loc": "upper left", "bbox_to_anchor": (1.0, 1.0)}
        if count:
            ax.legend(**place, framealpha=0.9, fontsize="small")

    def _draw_surface(self, ax: Any, kwargs: dict[str, Any]) -> Any:
        """Draw the surface in colours and return the image, which defines the colours of points."""
        across, up = self.grid
        style: dict[str, Any] = {
            "extent": (across[0], across[-1], up[0], up[-1]),
            "origin": "lower",
            "aspect": "auto",
            "interpolation": "bilinear",
        }
        if self.classes is None:
            image = ax.imshow(self.response.T, **style | {"cmap": "cividis"} | kwargs)
            ax.figure.colorbar(image, ax=ax, label="prediction")
            return image
        if len(self.classes) > 2:
            return self._draw_classes(ax, style | kwargs)
        limit = float(np.abs(self.response).max()) or 1.0
        style |= {"cmap": diverging_colors(), "vmin": -limit, "vmax": limit, "alpha": 0.6}
        image = ax.imshow(self.response.T, **style | kwargs)
        label = f"decision function (above 0: {self.classes[1]})"
        ax.figure.colorbar(image, ax=ax, label=label)
        ax.contour(*self.grid, self.response.T, levels=[0.0], colors="black", linewidths=1.8)
        ax.plot([], [], color="black", linewidth=1.8, label="decision boundary")
        return image

    def _draw_classes(self, ax: Any, style: dict[str, Any]) -> Any:
        from matplotlib.colors import ListedColormap

        count = len(self.classes)  # type: ignore[arg-type]
        colors = ListedColormap([_color(k) for k in range(count)])
        own = {"cmap": colors, "vmin": -0.5, "vmax": count - 0.5, "alpha": 0.35}
        image = ax.imshow(self.response.T, **own | style | {"interpolation": "nearest"})
        for k in range(count):  # one class against the rest, because class numbers have no order
            inside = np.equal(self.response.T, k).astype(float)
            ax.contour(*self.grid, inside, levels=[0.5], colors="black", linewidths=1.0)
        return image

    def _draw_tessellation(self, ax: Any, support: FloatArray, max_lines: int) -> None:
        strength = np.ones(len(support)) if self.strength is None else self.strength
        chosen = np.argsort(-strength, kind="stable")[:max_lines]
        # Many lines of the same strength must not hide the surface below them.
        most = 0.45 * min(1.0, 2 * _FEW_LINES / max(len(chosen), 1))
        opacity = 0.15 + most * strength[chosen] / max(float(strength.max(initial=0.0)), 1e-300)
        color = "white" if self.classes is None else GREY
        for row, alpha in zip(support[chosen], opacity, strict=True):
            ax.axvline(row[0], color=color, linewidth=0.7, alpha=alpha)
            ax.axhline(row[1], color=color, linewidth=0.7, alpha=alpha)
        ax.plot([], [], color=GREY, linewidth=0.8, label="cells of the tessellation")

    def _draw_points(self, ax: Any, X: FloatArray, y: NDArray[Any], image: Any) -> None:
        style = {"s": 26, "edgecolors": "white", "linewidths": 0.6, "zorder": 3}
        if self.classes is None:
            ax.scatter(*X.T, c=y, cmap=image.cmap, norm=image.norm, **style)
            return
        for k, label in enumerate(self.classes):
            # If a colour is used again, the marker differs.
            marker = _MARKERS[(k + k // len(_CLASS_COLORS)) % len(_MARKERS)]
            own = {"color": _color(k), "marker": marker, "label": f"{label}"}
            ax.scatter(*X[y == label].T, **own, **style)

    @staticmethod
    def _name_classes(ax: Any, classes: NDArray[Any]) -> None:
        """Add the colours of the classes to the legend if no points are drawn."""
        for k, label in enumerate(classes):
            ax.fill([], [], color=_color(k), alpha=0.6, label=f"{label}")


def _color(k: int) -> str:
    return _CLASS_COLORS[k % len(_CLASS_COLORS)]


def _grid(values: FloatArray, count: int) -> FloatArray:
    low, high = float(values.min()), float(values.max())
    margin = _MARGIN * (high - low) or 1.0
    return np.linspace(low - margin, high + margin, count)


def _support(estimator: Any, columns: list[int]) -> tuple[FloatArray | None, FloatArray | None]:
    """Return the two features of the support vectors, and the sizes of their coefficients.

    Both are None for an estimator whose kernel is not tessellated.
    """
    kernel = getattr(estimator, "kernel_", None)
    if not (isinstance(kernel, LearnedKernel) and isinstance(kernel.kernels, TessellatedKernels)):
        return None, None
    strength = np.abs(np.atleast_2d(estimator.dual_coef_)).sum(axis=0)
    return estimator.support_vectors_[:, columns], strength


def _response(
    estimator: Any, base: FloatArray, columns: list[int], grid: Sequence[FloatArray]
) -> NDArray[Any]:
    mesh = np.meshgrid(*grid, indexing="ij")
    points = np.tile(base, (mesh[0].size, 1))
    for column, values in zip(columns, mesh, strict=True):
        points[:, column] = values.ravel()
    with without_names():
        values = _evaluate(estimator, points)
    return values.reshape(mesh[0].shape)


def _evaluate(estimator: Any, points: FloatArray) -> NDArray[Any]:
    """Return predictions, the decision function of two classes, or the number of the class."""
    if not is_classifier(estimator):
        return np.asarray(estimator.predict(points))
    if len(estimator.classes_) == 2:
        return np.asarray(estimator.decision_function(points))
    numbers: NDArray[Any] = np.searchsorted(estimator.classes_, estimator.predict(points))
    return numbers
