"""What a fit knows besides its rows and machines, and how it ends."""

from __future__ import annotations

from dataclasses import dataclass

from tessella.estimators._callbacks import CallbackMonitor
from tessella.estimators._early_stopping import HeldOut
from tessella.solvers import SolverResult, SolverStatus
from tessella.solvers._run import Callback


@dataclass(frozen=True)
class Given:
    """What a training set does not say about the data as given.

    Attributes
    ----------
    n_rows : int
        Number of rows.
    target_scale, target_mean : float
        Spread and mean of the target that learning has divided by and subtracted.
    held_out : HeldOut or None
        Rows for early stopping.
    """

    n_rows: int
    target_scale: float = 1.0
    target_mean: float = 0.0
    held_out: HeldOut | None = None


@dataclass(frozen=True)
class Watchers:
    """Who follows a fit from outside: a caller's callback, and those of scikit-learn."""

    callback: Callback | None
    hooks: CallbackMonitor | None


@dataclass(frozen=True)
class Outcome:
    """How a fit ended, for whoever has to be told."""

    solver: str
    status: SolverStatus
    n_iter: int
    gap: float

    @classmethod
    def of(cls, result: SolverResult) -> Outcome:
        """The end of a fit with a single run."""
        return cls(result.solver, result.status, result.n_iter, result.gap)
