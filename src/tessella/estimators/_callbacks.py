"""scikit-learn's callbacks (since its version 1.9) as monitors of a run.

``sklearn.callback`` imports rich if that is installed, which takes time. So it is imported only by
a fit that has callbacks.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, Self, TypeVar

from tessella.estimators._state import FittedState
from tessella.solvers import IterationRecord, Monitor, SolverResult, SolverStatus

T = TypeVar("T")

if find_spec("sklearn.callback") is None:

    class CallbackSupport:
        """Adds nothing, because the installed version of scikit-learn has no callbacks."""

else:

    class CallbackSupport:  # type: ignore[no-redef]
        """Adds the method ``set_callbacks`` of scikit-learn's own estimators."""

        def set_callbacks(self, *callbacks: Any) -> Self:
            """Set callbacks for later fits, such as ``sklearn.callback.ProgressBar()``.

            The task "fit" has a subtask for each order of magnitude of the certified gap between
            one and `tol`, and each of these has a subtask for each record of the solver. If a
            callback asks to stop, the fit ends and keeps the best certified model.

            Parameters
            ----------
            *callbacks : callback instances
                The callbacks. Without any, those set before are removed.

            Returns
            -------
            estimator
                The estimator itself.
            """
            from sklearn.callback import CallbackSupportMixin

            CallbackSupportMixin.set_callbacks(self, *callbacks)
            return self


class CallbackMonitor(Monitor):
    """Reports the progress of a solver to the callbacks of an estimator.

    Parameters
    ----------
    estimator : estimator
        The estimator that is being fitted. Its callbacks are set up here.
    X, y, sample_weight : array-like
        The data as passed to ``fit``.

    Attributes
    ----------
    state_of : callable
        Function that makes a FittedState from a SolverResult. It is set as soon as the training
        problem is known.
    """

    def __init__(self, estimator: Any, X: Any, y: Any, sample_weight: Any) -> None:
        from sklearn.callback import CallbackSupportMixin

        self.state_of: Callable[[SolverResult], FittedState] | None = None
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
        """Report one subtask, and the end of each order of magnitude that the gap has passed."""
        iteration = self._stage.subcontext("iteration")
        iteration.call_on_fit_task_begin(estimator=self._estimator, **self._data)
        stop = self._end(iteration, lambda: self._state(answer()))
        while len(self._levels) > 1 and record.gap <= self._levels[0]:
            del self._levels[0]
            stop |= self._stage.call_on_fit_task_end(estimator=self._estimator, **self._data)
            self._next_stage()
        return SolverStatus.CALLBACK if stop else None

    def _state(self, result: SolverResult) -> FittedState:
        assert self.state_of is not None
        return self.state_of(result)

    def finish(self, state: FittedState) -> None:
        """Report the end of the fit."""
        self._stage.call_on_fit_task_end(estimator=self._estimator, **self._data)
        self._end(self._fit, lambda: state)

    def _end(self, context: Any, state: Callable[[], FittedState]) -> bool:
        return bool(
            context.call_on_fit_task_end(
                estimator=self._estimator,
                reconstruction_attributes=lambda: state().attributes(),
                **self._data,
            )
        )


def run_with_callbacks(
    estimator: Any,
    X: Any,
    y: Any,
    sample_weight: Any,
    body: Callable[[CallbackMonitor | None], T],
) -> T:
    """Run the body of a fit within scikit-learn's callback context.

    The context takes down whatever the callbacks have set up, also after an error.
    """
    from sklearn.callback import with_callbacks

    @with_callbacks  # type: ignore[untyped-decorator]
    def managed(estimator: Any) -> T:
        return body(CallbackMonitor(estimator, X, y, sample_weight))

    result: T = managed(estimator)
    return result


def gap_levels(tol: float) -> list[float]:
    """Gaps at which a subtask of a fit is done: a tenth, a hundredth and so on, and last `tol`.

    Examples
    --------
    >>> from tessella.estimators._callbacks import gap_levels
    >>> gap_levels(5e-3)
    [0.1, 0.01, 0.005]
    """
    decades = math.ceil(-math.log10(tol) - 1e-9)
    return [10.0**-k for k in range(1, decades)] + [tol]
