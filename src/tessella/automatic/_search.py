"""The search of an automatic model: screen all kinds of kernels, compare the best, refine them.

Every kernel is judged by the exact leave-one-out error of a squared-loss machine. Scalings,
families, widths and C are compared on a grid. The scales of the columns of the best of them are
then found by descent of the leave-one-out error. A descent could fit the noise of so many scales,
so it is cross-fitted: the scales of a fold are found from the errors of the rows of the other
folds, and the errors of its own rows decide when to stop. The held-out predictions that an entry
of the search reports are therefore not those that its scales were fitted to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from tessella.automatic._clock import Clock, OutOfTimeError
from tessella.automatic._families import FAMILIES
from tessella.automatic._objective import NotPositiveDefiniteError, leave_one_out_gradient
from tessella.automatic._settings import SearchSettings
from tessella.automatic._spaces import Space
from tessella.automatic._targets import PlainTarget, Target
from tessella.leave_one_out import RidgePath

FloatArray = NDArray[np.float64]

_CS = np.geomspace(0.1, 1e6, 15)
_LARGEST_CHANGE = 6.0  # of the logarithm of a scale in a descent
_C_RANGE = (-3.0, 14.0)  # of the logarithm of C in a descent
# Pull of the logarithms of the scales towards a common one, relative to the logarithm of the error.
_PULL = 0.03


@dataclass(frozen=True, eq=False)
class Machine:
    """A kernel machine that a search has found.

    Attributes
    ----------
    space : Space
        Encoding and scaling of the features.
    family : str
        Family of the kernel.
    scales : ndarray of shape (n_columns,)
        Logarithm of the scale of each column of the space.
    C : float
        Weight of the loss.
    target : Target
        What the machine is fitted to.
    factor : float
        Factor of predictions, for the logarithm of a target.
    """

    space: Space
    family: str
    scales: FloatArray
    C: float
    target: Target = PlainTarget()
    factor: float = 1.0


@dataclass(frozen=True, eq=False)
class Entry:
    """One or more machines with one set of held-out predictions.

    Attributes
    ----------
    machines : tuple of Machine
        Machines whose scores are averaged.
    held_out : ndarray of shape (m, k)
        Predictions of the search rows by machines that have not seen them.
    error : float
        Weighted mean of the squared held-out errors, summed over the outputs.
    stage : str
        "grid" or "descent".
    """

    machines: tuple[Machine, ...]
    held_out: FloatArray
    error: float
    stage: str

    @property
    def pair(self) -> tuple[Space, str]:
        """The space and the family of the machines."""
        return self.machines[0].space, self.machines[0].family


@dataclass
class Search:
    """A search for kernel machines on some rows.

    Parameters
    ----------
    spaces : list of Space
        Encodings and scalings to choose from.
    families : sequence of str
        Families to choose from.
    rows : ndarray of int
        Search rows, in random order.
    Y : ndarray of shape (m, k)
        Outputs of all rows.
    targets : sequence of Target
        What a machine may be fitted to.
    weight : ndarray of shape (m,)
        Weights of all rows.
    settings : SearchSettings
        Sizes of the stages.
    clock : Clock
        Time that is left.
    tell : callable
        Called with a line of text for every stage.
    """

    spaces: list[Space]
    families: tuple[str, ...]
    rows: NDArray[np.intp]
    Y: FloatArray
    targets: tuple[Target, ...]
    weight: FloatArray
    settings: SearchSettings
    clock: Clock
    tell: Callable[[str], None]
    entries: list[Entry] = field(default_factory=list)

    def run(self) -> list[Entry]:
        """Search until all stages are finished or the time is over, and return the entries."""
        try:
            starts = self._screen()
            self._compare(starts)
            self._refine()
        except OutOfTimeError:
            self.tell("the time limit ends the search")
        return self.entries

    # ---------------------------------------------------------------------------- the stages

    def _screen(self) -> list[Machine]:
        """Find the best width of every space and family on few rows, the best of them first."""
        found = []
        rows = self.rows[: self.settings.screen_rows]
        for space in self.spaces:
            for name in self.families:
                widths = FAMILIES[name].widths
                tried = [self._grid_point(space, name, width, rows) for width in widths]
                found.append(min(tried, key=lambda point: point[0]))
                self.clock.check(needed=bool(found))
        found.sort(key=lambda point: point[0])
        self.tell(f"{len(found)} kinds of kernels compared on {len(rows)} rows")
        return [machine for _, machine in found]

    def _grid_point(
        self, space: Space, family: str, width: float, rows: NDArray[np.intp]
    ) -> tuple[float, Machine]:
        scales = space.starting_scales(FAMILIES[family], width)
        best = self._path(space, family, scales, rows).best(self.Y[rows], _CS)
        return best.loo_error * self.Y.shape[1], Machine(space, family, scales, best.C)

    def _path(
        self, space: Space, family: str, scales: FloatArray, rows: NDArray[np.intp]
    ) -> RidgePath:
        A = space.coordinates[rows]
        K = FAMILIES[family].gram(A, scales)
        # Equal rows were merged, and they are left out together.
        return RidgePath(K, self.weight[rows], left_out=np.ones(len(rows)), overwrite=True)

    def _compare(self, starts: list[Machine]) -> None:
        """Evaluate the best of the screened machines on all search rows."""
        for machine in starts[: self.settings.compared]:
            self.entries.append(self._evaluated(machine))
            self.clock.check(needed=True)
        self.tell(f"best held-out error {min(e.error for e in self.entries):.4g} of the grid")

    def _evaluated(self, machine: Machine) -> Entry:
        """Evaluate a machine with its best C and its best target on the search rows."""
        path = self._path(machine.space, machine.family, machine.scales, self.rows)
        found = []
        for target in self.targets:
            Y = target.forward(self.Y[self.rows])
            best = path.best(Y, _CS)
            own = replace(machine, C=best.C, target=target)
            found.append(self._entry((own,), path.fit(Y, best.C).loo_residuals, "grid"))
        return min(found, key=lambda entry: entry.error)

    def _entry(self, machines: tuple[Machine, ...], residuals: FloatArray, stage: str) -> Entry:
        """Return an entry from the held-out residuals of what the machines are fitted to."""
        Y, weight, target = self.Y[self.rows], self.weight[self.rows], machines[0].target
        scores = target.forward(Y) - residuals
        factor = target.factor(scores, Y, weight)
        held_out = target.backward(scores, factor)
        error = float(weight @ ((Y - held_out) ** 2).sum(axis=1) / weight.sum())
        machines = tuple(replace(machine, factor=factor) for machine in machines)
        return Entry(machines, held_out, error, stage)

    def _refine(self) -> None:
        """Refine the scales of the best entries by cross-fitted descent."""
        best = sorted(self.entries, key=lambda entry: entry.error)[: self.settings.refined]
        for entry in best:
            refined = self._descended(entry)
            if refined is not None:
                self.entries.append(refined)
                self.tell(
                    f"{entry.pair[1]} kernels on {entry.pair[0].name} features: held-out error "
                    f"{entry.error:.4g}, with a scale for each column {refined.error:.4g}"
                )
            self.clock.check(needed=True)

    # ------------------------------------------------------------------------------- descent

    def _descended(self, entry: Entry) -> Entry | None:
        """Return an entry with a machine for each fold, or None if descent does not help."""
        (machine,) = entry.machines
        fold = np.random.default_rng(1).permutation(len(self.rows)) % self.settings.folds
        paths = [list(self._descent(machine, fold != k)) for k in range(self.settings.folds)]
        steps = max(map(len, paths))
        entries = [self._after(paths, fold, step) for step in range(1, steps)]
        best = min(entries, key=lambda own: own.error, default=entry)
        return best if best.error < entry.error else None

    def _after(
        self, paths: list[list[tuple[Machine, FloatArray]]], fold: NDArray[Any], step: int
    ) -> Entry:
        """Return the entry of the machines of all folds after a number of steps."""
        now = [path[min(step, len(path) - 1)] for path in paths]
        residuals = np.empty_like(now[0][1])
        for k, (_, own) in enumerate(now):
            residuals[fold == k] = own[fold == k]
        return self._entry(tuple(machine for machine, _ in now), residuals, "descent")

    def _descent(
        self, machine: Machine, counted: NDArray[np.bool_]
    ) -> Iterator[tuple[Machine, FloatArray]]:
        """Yield the machine and the leave-one-out residuals of all rows after every step."""
        objective = DescentObjective(self, machine, counted)
        start = np.append(np.zeros(objective.n_groups), np.log(machine.C))
        path = [objective.seen(start)]
        bounds = [(-_LARGEST_CHANGE, _LARGEST_CHANGE)] * objective.n_groups + [_C_RANGE]
        minimize(
            objective,
            start,
            jac=True,
            method="L-BFGS-B",
            bounds=bounds,
            callback=lambda x: path.append(objective.seen(x)),
            options={
                "maxiter": self.settings.descent_steps,
                "maxfun": 2 * self.settings.descent_steps,
            },
        )
        yield from path


class DescentObjective:
    """Logarithm of the leave-one-out error of counted rows, by the scales of groups and by C.

    The last parameter is the logarithm of C; the others are added to the logarithms of the scales
    of the columns of each group.
    """

    def __init__(self, search: Search, machine: Machine, counted: NDArray[np.bool_]) -> None:
        rows, space = search.rows, machine.space
        self._machine, self._clock = machine, search.clock
        self._A, self._group = space.coordinates[rows], space.group
        self._Y = machine.target.forward(search.Y[rows])
        self._weight = search.weight[rows]
        self._counted = self._weight * counted
        self._seen: dict[bytes, FloatArray] = {}
        self.n_groups = space.n_groups

    def machine_at(self, x: FloatArray) -> Machine:
        """Return the machine of a vector of parameters."""
        own = self._machine
        scales = own.scales + x[:-1][self._group]
        return replace(own, scales=scales, C=float(np.exp(x[-1])))

    def seen(self, x: FloatArray) -> tuple[Machine, FloatArray]:
        """Return the machine and its residuals at parameters that were evaluated last."""
        if x.tobytes() not in self._seen:
            self(x)
        residuals = self._seen[x.tobytes()]
        self._seen.clear()
        return self.machine_at(x), residuals

    def __call__(self, x: FloatArray) -> tuple[float, FloatArray]:
        """Return the objective and its gradient."""
        self._clock.check(needed=True)
        machine = self.machine_at(x)
        family = FAMILIES[machine.family]
        K = family.gram(self._A, machine.scales)
        try:
            found = leave_one_out_gradient(K, self._Y, 1.0 / machine.C, self._weight, self._counted)
        except NotPositiveDefiniteError:
            return np.inf, np.zeros_like(x)
        self._seen[x.tobytes()] = found.residuals
        by_column = family.gradient(found.kernel_gradient * K, self._A, machine.scales)
        gradient = np.empty_like(x)
        gradient[:-1] = np.bincount(self._group, by_column, minlength=self.n_groups)
        gradient[-1] = -found.diagonal_gradient
        gradient /= found.error
        spread = x[:-1] - x[:-1].mean()
        gradient[:-1] += 2.0 * _PULL / self.n_groups * spread
        return np.log(found.error) + _PULL * float(np.mean(spread**2)), gradient
