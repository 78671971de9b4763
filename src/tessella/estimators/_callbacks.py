"""scikit-learn's callbacks (from its version 1.9 on) as monitors of a run.

``sklearn.callback`` imports rich where it is installed, so it is imported here only by a fit
that has callbacks.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, Self, TypeVar

from tessella.solvers import IterationRecord, Monitor, SolverResult, SolverStatus

T = TypeVar("T")

if find_spec("sklearn.callback") is None:

    class CallbackSupport:
        """Nothing: this scikit-learn has no callbacks."""

else:

    class CallbackSupport:  # type: ignore[no-redef]
        """``set_callbacks``, as scikit-learn's own estimators have it."""

        def set_callbacks(self, *callbacks: Any) -> Self:
            """Set callbacks for the fits to come, such as ``sklearn.callback.ProgressBar()``.

            The task "fit" has a subtask for each order of magnitude of the certified gap on its
            way to `tol`, and each of these one for each record of the solver. A callback that
            asks to stop ends the fit with the best certified model.

            Parameters
            ----------
            *callbacks : callback instances
                The callbacks; none to remove those set before.

            Returns
            -------
            estimator
                The estimator itself.
            """
            from sklearn.callback import CallbackSupportMixin

            CallbackSupportMixin.set_callbacks(self, *callbacks)
            return self


class CallbackMonitor(Monitor):
    """Tells the callbacks of an estimator what its solver does.

    Parameters
    ----------
    estimator : estimator
        The one that is fitted; its callbacks are set up here.
    X, y, sample_weight : array-like
        The data as given.

    Attributes
    ----------
    model_of : callable
        A fitted estimator from a SolverResult; set when the fit knows how to make one.
    """

    def __init__(self, estimator: Any, X: Any, y: Any, sample_weight: Any) -> None:
        from sklearn.callback import CallbackSupportMixin

        self.model_of: Callable[[SolverResult], Any] | None = None
        self._estimator = estimator
        metadata = None if sample_weight is None else {"sample_weight": sample_weight}
        self._data = {"X": X, "y": y, "metadata": metadata}
        self._levels = gap_levels(estimator.tol)
        self._fit = CallbackSupportMixin._init_callback_context(
            estimator, max_subtasks=len(self._levels)
        )
        self._fit.call_on_fit_task_begin(estimator=estimator, **self._data)
        self._next_stage()

    def _next_stage(self) -> None:
        self._stage = self._fit.subcontext(f"gap {self._levels[0]:.0e}", max_subtasks=None)
        self._stage.call_on_fit_task_begin(estimator=self._estimator, **self._data)

    def record(
        self, record: IterationRecord, answer: Callable[[], SolverResult]
    ) -> SolverStatus | None:
        """One subtask; and the end of as many orders of magnitude as the gap has passed."""
        iteration = self._stage.subcontext("iteration")
        iteration.call_on_fit_task_begin(estimator=self._estimator, **self._data)
        stop = self._end(iteration, answer)
        while len(self._levels) > 1 and record.gap <= self._levels[0]:
            del self._levels[0]
            stop |= self._stage.call_on_fit_task_end(estimator=self._estimator, **self._data)
            self._next_stage()
        return SolverStatus.CALLBACK if stop else None

    def finish(self, result: SolverResult) -> None:
        """The end of the fit."""
        self._stage.call_on_fit_task_end(estimator=self._estimator, **self._data)
        self._end(self._fit, lambda: result)

    def _end(self, context: Any, answer: Callable[[], SolverResult]) -> bool:
        def attributes() -> dict[str, Any]:
            assert self.model_of is not None
            return dict(vars(self.model_of(answer())))

        return bool(
            context.call_on_fit_task_end(
                estimator=self._estimator, reconstruction_attributes=attributes, **self._data
            )
        )


def run_with_callbacks(
    estimator: Any,
    X: Any,
    y: Any,
    sample_weight: Any,
    body: Callable[[CallbackMonitor | None], T],
) -> T:
    """Run the body of a fit; what its callbacks have set up is taken down whatever happens."""
    if not hasattr(estimator, "_skl_callbacks"):
        return body(None)
    from sklearn.callback import with_callbacks

    @with_callbacks  # type: ignore[untyped-decorator]
    def managed(estimator: Any) -> T:
        return body(CallbackMonitor(estimator, X, y, sample_weight))

    result: T = managed(estimator)
    return result


def gap_levels(tol: float) -> list[float]:
    """Gaps at which a part of a fit is done: a tenth, a hundredth, ... and in the end `tol`.

    Examples
    --------
    >>> from tessella.estimators._callbacks import gap_levels
    >>> gap_levels(5e-3)
    [0.1, 0.01, 0.005]
    """
    decades = math.ceil(-math.log10(tol) - 1e-9)
    return [10.0**-k for k in range(1, decades)] + [tol]
