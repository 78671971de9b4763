"""Display of the bounds and of the gap during a fit."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from tessella.inspection._matplotlib import (
    BLUE,
    GREY,
    ORANGE,
    SKY,
    load_pyplot,
    tidy,
    whole_numbers,
)

_FEW = 40  # largest number of records that are drawn with markers
_ROOM = 0.35  # part of the final value shown above and below it; early bounds are far away
_LABELS = {"iteration": "iteration", "time": "time in seconds"}


class ConvergenceDisplay:
    """Display of the bounds on the optimum, and of their gap, during a fit.

    The optimum lies in the shaded band between the two bounds at all times.

    Parameters
    ----------
    iteration : array-like of shape (n_records,)
        Number of iterations at each record.
    time : array-like of shape (n_records,)
        Seconds since the start of the fit at each record.
    value : array-like of shape (n_records,)
        Upper bound on the optimum at each record.
    bound : array-like of shape (n_records,)
        Lower bound on the optimum at each record.
    gap : array-like of shape (n_records,)
        Difference of the upper and the lower bound at each record, relative to the upper bound.
    tol : float, optional
        Gap at which the fit was to stop.

    Attributes
    ----------
    ax_ : matplotlib Axes, or ndarray of two Axes
        Axes on which the display was drawn; two if both quantities were drawn.
    figure_ : matplotlib Figure
        The figure they belong to.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from tessella import LearnedKernelSVR
    >>> from tessella.inspection import ConvergenceDisplay
    >>> model = LearnedKernelSVR().fit(*load_diabetes(return_X_y=True))
    >>> display = ConvergenceDisplay.from_estimator(model)
    >>> [ax.get_ylabel() for ax in display.ax_]
    ['objective', 'relative gap']
    """

    def __init__(
        self,
        *,
        iteration: ArrayLike,
        time: ArrayLike,
        value: ArrayLike,
        bound: ArrayLike,
        gap: ArrayLike,
        tol: float | None = None,
    ) -> None:
        self.iteration = np.asarray(iteration)
        self.time = np.asarray(time)
        self.value = np.asarray(value)
        self.bound = np.asarray(bound)
        self.gap = np.asarray(gap)
        self.tol = tol

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None, **kwargs: Any) -> Self:
        """Draw the bounds and the gap during the fit of an estimator.

        Parameters
        ----------
        estimator : fitted LearnedKernelSVC or LearnedKernelSVR
            Estimator whose ``history_`` is drawn.
        ax : matplotlib Axes, or sequence of two, optional
            Axes to draw on; two axes if both quantities are drawn. By default, a new figure is
            created.
        **kwargs : dict
            Further arguments of :meth:`plot`.

        Returns
        -------
        ConvergenceDisplay
            The display, which has been drawn.
        """
        check_is_fitted(estimator, "history_")
        if isinstance(estimator.history_, list):
            raise ValueError(
                f"The estimator was fitted in {len(estimator.history_)} runs, one for each pair of "
                "classes (multi_class='separate'), so there is no single history to draw."
            )
        columns = {
            name: [getattr(record, name) for record in estimator.history_]
            for name in ("iteration", "time", "value", "bound", "gap")
        }
        return cls(**columns, tol=estimator.tol).plot(ax, **kwargs)

    def plot(
        self, ax: Any = None, *, against: str = "iteration", quantity: str = "both", **kwargs: Any
    ) -> Self:
        """Draw the display.

        Parameters
        ----------
        ax : matplotlib Axes, or sequence of two for both quantities, optional
            Axes to draw on. By default, a new figure is created.
        against : {"iteration", "time"}, default="iteration"
            Quantity on the horizontal axis.
        quantity : {"both", "bounds", "gap"}, default="both"
            Quantity to draw: the bounds, the gap, or both of them in two axes.
        **kwargs : dict
            Further arguments for ``Axes.plot``, which draws the lines.

        Returns
        -------
        ConvergenceDisplay
            The display itself.
        """
        draw = {"bounds": [self._draw_bounds], "gap": [self._draw_gap]}
        draw["both"] = draw["bounds"] + draw["gap"]
        if against not in _LABELS:
            raise ValueError(f"against={against!r} is unknown; use 'iteration' or 'time'.")
        if quantity not in draw:
            raise ValueError(f"quantity={quantity!r} is unknown; use 'both', 'bounds' or 'gap'.")
        axes = self._axes(ax, len(draw[quantity]))
        for axis, method in zip(axes, draw[quantity], strict=True):
            method(axis, getattr(self, against), kwargs)
            tidy(axis)
            if against == "iteration":
                whole_numbers(axis.xaxis)
        axes[-1].set_xlabel(_LABELS[against])
        self.ax_ = axes if len(axes) > 1 else axes[0]
        self.figure_ = axes[0].figure
        return self

    @staticmethod
    def _axes(ax: Any, count: int) -> NDArray[Any]:
        if ax is None:
            size = (6.4, 3.4 if count == 1 else 5.2)
            _, ax = load_pyplot().subplots(count, figsize=size, sharex=True, layout="constrained")
        axes = np.atleast_1d(np.asarray(ax, dtype=object))
        if axes.shape != (count,):
            raise ValueError(
                f"The display needs {count} axes, but {axes.size} were given. To draw on one axes, "
                "use quantity='bounds' or quantity='gap'."
            )
        return axes

    def _draw_bounds(self, ax: Any, x: NDArray[Any], kwargs: dict[str, Any]) -> None:
        style = self._line_style() | kwargs
        ax.fill_between(x, self.bound, self.value, color=SKY, alpha=0.25, linewidth=0)
        ax.plot(x, self.value, **{"color": ORANGE, "label": "upper bound (the model)"} | style)
        ax.plot(x, self.bound, **{"color": BLUE, "label": "lower bound (the proof)"} | style)
        final = float(self.value[-1])
        room = max(_ROOM * abs(final), 1.2 * (final - float(self.bound[-1])))
        if np.isfinite(room) and room > 0:
            ax.set_ylim(final - room, final + room)
        ax.set_ylabel("objective")
        ax.legend(loc="best", frameon=False)

    def _draw_gap(self, ax: Any, x: NDArray[Any], kwargs: dict[str, Any]) -> None:
        # A logarithmic axis cannot show a gap of zero or a gap that is not known yet.
        shown = np.where((self.gap > 0) & np.isfinite(self.gap), self.gap, np.nan)
        ax.plot(x, shown, **{"color": BLUE} | self._line_style() | kwargs)
        if self.tol is not None:
            ax.axhline(self.tol, color=GREY, linestyle="--", linewidth=1.2)
            ax.annotate(
                f"tol = {self.tol:g}",
                (0.0, self.tol),
                (4, 3),
                xycoords=("axes fraction", "data"),
                textcoords="offset points",
                color=GREY,
            )
        ax.set_yscale("log")
        ax.set_ylabel("relative gap")

    def _line_style(self) -> dict[str, Any]:
        return {"linewidth": 2, "marker": "o" if len(self.gap) < _FEW else None, "markersize": 4}
