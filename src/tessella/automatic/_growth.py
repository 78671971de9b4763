"""Growth of the machines of a search to more rows than it had.

More rows tell finer structure: the best kernels become narrower, C changes, and columns whose
effect was lost in the noise begin to matter. The leave-one-out error of so many rows would cost too
much. With many rows it is not needed: some of them are held out, and the scales of the best
machines descend the error of these. Their held-out predictions also decide the weights in the
average.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tessella.automatic._clock import Clock, OutOfTimeError
from tessella.automatic._descent import HeldOutObjective
from tessella.automatic._entries import GROWN, Entry, Machine
from tessella.automatic._kernels import ScaledKernel
from tessella.automatic._settings import SearchSettings
from tessella.backend import effective_threads, in_threads

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

_HELD_OUT = 4  # one of so many rows
# Time of an evaluation relative to one of the search with as many rows, which has eigenvectors.
_EVALUATION_PART = 0.1
_LEAST_GAIN = 2.0  # in standard errors


@dataclass
class Growth:
    """Descent of the machines of an average on more rows than the search had.

    Parameters
    ----------
    rows : ndarray of int
        Rows to grow to, those of the search first.
    Y : ndarray of shape (m, k)
        Outputs of all rows: the standardised target, or indicators of the classes.
    weight : ndarray of shape (m,)
        Weights of all rows.
    settings : SearchSettings
        Numbers of entries and steps.
    clock : Clock
        Time that is left.
    tell : callable
        Called with the text and the finished fraction after every entry.
    seconds : float
        Time of an evaluation with the rows of the search.
    n_jobs : int or None
        Number of threads.
    """

    rows: IntArray
    Y: FloatArray
    weight: FloatArray
    settings: SearchSettings
    clock: Clock
    tell: Callable[[str, float], None]
    seconds: float
    n_jobs: int | None = None
    complete: bool = False

    @staticmethod
    def n_rows(available: int, settings: SearchSettings) -> int:
        """Return the number of rows to grow to, zero if that would not be more than the search."""
        rows = min(available, settings.growth_rows)
        fitted = rows - rows // _HELD_OUT
        return rows if settings.grown and fitted >= settings.search_rows else 0

    @property
    def fitted(self) -> IntArray:
        """The rows of the fits."""
        return self.rows[: len(self.rows) - len(self.rows) // _HELD_OUT]

    @property
    def held_out(self) -> IntArray:
        """The rows of the errors, none of which the search has seen."""
        return self.rows[len(self.fitted) :]

    def run(self, entries: list[Entry], shares: FloatArray) -> list[Entry]:
        """Grow the entries with the largest shares until the time is over.

        A KeyboardInterrupt ends the growth like the time limit.
        """
        grown: list[Entry] = []
        try:
            grown += self._grown_kernels(entries, shares)
            grown += self._other_machines(entries, shares)
            self.complete = True
        except OutOfTimeError:
            self.tell("the time limit ends the refinement", 1.0)
        except KeyboardInterrupt:
            self.tell("interrupted; the best machines found so far are used", 1.0)
        return grown

    def _grown_kernels(self, entries: list[Entry], shares: FloatArray) -> list[Entry]:
        starts = _distinct_starts(entries, shares)[: self.settings.grown]
        grown: list[Entry] = []
        at_once = effective_threads(self.n_jobs)
        for k in range(0, len(starts), at_once):
            found = in_threads(self._descended, starts[k : k + at_once], self.n_jobs)
            grown += [entry for entry in found if entry is not None]
            if not grown:
                raise OutOfTimeError
            self.tell(
                f"held-out error {min(entry.error for entry in grown):.4g} with scales refined "
                f"on {len(self.rows)} rows",
                min(1.0, (k + at_once) / len(starts)),
            )
        return grown

    def _descended(self, entry: Entry) -> Entry | None:
        """Return an entry after its descent, or None if the time was over before it began.

        The descent has fitted the held-out rows a little. A gain that is not larger than their
        noise may be no more than that, and the machines of the search are kept.
        """
        machine, seconds = _mean_machine(entry), self.seconds * _EVALUATION_PART
        objective = HeldOutObjective(
            machine, self.fitted, self.held_out, self.Y, self.weight, self.clock, seconds
        )
        path = objective.descend(self.settings.growth_steps)
        if not path:
            return None
        (_, before), (grown, after) = path[0], path[-1]
        wanted = machine.target.forward(self.Y[self.held_out])
        if self._gain((wanted - before) ** 2, (wanted - after) ** 2) > _LEAST_GAIN:
            return self._entry((grown,), after)
        return self._entry(entry.machines, before)

    def _gain(self, before: FloatArray, after: FloatArray) -> float:
        """Return by how many standard errors the squared errors of the held-out rows fall."""
        share = self.weight[self.held_out] / self.weight[self.held_out].sum()
        falls = (before - after).sum(axis=1)
        mean = float(share @ falls)
        deviation = float(np.sqrt(share**2 @ (falls - mean) ** 2))
        return mean / deviation if deviation > 0.0 else 0.0

    def _other_machines(self, entries: list[Entry], shares: FloatArray) -> list[Entry]:
        """Evaluate the machines of the average without scales to refine, as they are."""
        others = [
            machine
            for entry, share in zip(entries, shares, strict=True)
            if share > 0 and not _has_scales(entry)
            for machine in entry.machines[:1]
        ]
        found = []
        for machine in others:
            self.clock.check(self.seconds)
            found.append(self._entry((machine,), self._scores(machine)))
        return found

    def _scores(self, machine: Machine) -> FloatArray:
        A, Y = machine.space.coordinates, machine.target.forward(self.Y[self.fitted])
        K = machine.kernel.matrix(A[self.fitted])
        solution = machine.loss.solve(K, Y, machine.C, self.weight[self.fitted])
        cross = machine.kernel.matrix(A[self.held_out], A[self.fitted])
        return cross @ solution.coef + solution.intercept

    def _entry(self, machines: tuple[Machine, ...], scores: FloatArray) -> Entry:
        Y, weight = self.Y[self.held_out], self.weight[self.held_out]
        return Entry.of_scores(machines, scores, Y, weight, GROWN, len(self.fitted))


def _has_scales(entry: Entry) -> bool:
    own = entry.machines[0]
    scaled = isinstance(own.kernel, ScaledKernel) and own.loss.name == "squared"
    return scaled and own.space.n_groups > 0  # columns that do not vary have none


def _distinct_starts(entries: list[Entry], shares: FloatArray) -> list[Entry]:
    """Return an entry for each space, family and target, those with the largest shares first.

    Entries of the grid and of the descent from there would grow to the same machine.
    """
    chosen: dict[tuple[int, str, str], tuple[float, Entry]] = {}
    for entry, share in zip(entries, shares, strict=True):
        if share > 0 and _has_scales(entry):
            key = (id(entry.space), entry.kernel.family, entry.machines[0].target.name)
            total, own = chosen.get(key, (0.0, entry))
            chosen[key] = (total + share, min(own, entry, key=lambda one: one.error))
    best = sorted(chosen.values(), key=lambda one: -one[0])
    return [entry for _, entry in best]


def _mean_machine(entry: Entry) -> Machine:
    """Return one machine with the geometric means of the scales and of C of all folds."""
    first = entry.machines[0]
    assert isinstance(first.kernel, ScaledKernel)
    scales = [one.kernel.scales for one in entry.machines if isinstance(one.kernel, ScaledKernel)]
    kernel = replace(first.kernel, scales=np.mean(scales, axis=0))
    C = float(np.exp(np.mean([np.log(machine.C) for machine in entry.machines])))
    return replace(first, kernel=kernel, C=C)
