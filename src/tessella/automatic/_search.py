"""The search of an automatic model: screen all kinds of kernels, compare the best, refine them.

Every kernel is judged by the exact leave-one-out error of a squared-loss machine. Scalings,
families, widths and C are compared on a grid. The scales of the columns of the best of them are
then found by descent of the leave-one-out error. A descent could fit the noise of so many scales,
so it is cross-fitted: the scales of a fold are found on the rows of the other folds alone, and the
errors of its own rows decide when to stop. The leave-one-out predictions that an entry of the
search reports are therefore not those that its scales were fitted to. Support vector
machines with the best kernel are candidates like the others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tessella.automatic._clock import Clock, OutOfTimeError
from tessella.automatic._descent import LeaveOneOutObjective, Start
from tessella.automatic._entries import DESCENT, GRID, LEARNED, Entry, Machine, or_infinite
from tessella.automatic._families import FAMILIES
from tessella.automatic._kernels import (
    CertifiedKernel,
    MachineKernel,
    ScaledKernel,
    learn_kernel,
)
from tessella.automatic._losses import Hinge, Tube
from tessella.automatic._settings import SearchSettings
from tessella.automatic._spaces import Space
from tessella.automatic._targets import MarginTarget, Target
from tessella.backend import effective_threads, in_threads
from tessella.leave_one_out import RidgePath, last_left_out
from tessella.solvers import Estimate

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

# The first value makes a constant of every machine, so that none is worse than a constant.
_CONSTANT_C = 1e-9
_CS = np.concatenate([[_CONSTANT_C], np.geomspace(0.1, 1e6, 15)])
# Time of a final fit relative to an evaluation of as many rows, without their kernel matrix: a
# Cholesky factorisation takes a small part of the time of an eigendecomposition.
_FIT_PART = 0.2
# Evaluations on few rows that have to follow a screening with a time limit: another one, and a fit.
_SCREEN_MARGIN = 3.0
# Evaluations of a step of a descent, with their gradients, and machines of a usual average.
_EVALUATIONS_PER_STEP = 2.0
_USUAL_MEMBERS = 10
#: Final fits for which a search with a time limit leaves time.
FIRST_FITS = 2
# Fewer rows do not tell one scale from another.
_FEWEST_REFINED_ROWS = 20
# Ratio of the rows of a fold and of the first rows from which a descent begins on the latter.
_CLEARLY_MORE = 1.5
# Fewer rows do not tell one learned kernel from another.
_FEWEST_LEARNED_ROWS = 30
_NO_ROWS = np.empty(0, dtype=np.intp)
# Half-width of the tube in deviations of the held-out residuals.
_TUBE = 0.3


@dataclass
class Search:
    """A search for kernel machines on some rows.

    Parameters
    ----------
    spaces : sequence of Space
        Encodings and scalings to choose from.
    families : sequence of str
        Families to choose from.
    rows : ndarray of int
        Search rows, in random order.
    Y : ndarray of shape (m, k)
        Outputs of all rows: the standardised target, or indicators of the classes.
    targets : sequence of Target
        What a squared-loss machine may be fitted to.
    weight : ndarray of shape (m,)
        Weights of all rows.
    left_out : ndarray of shape (m,)
        Fraction of the weight of each row that is left out with it.
    settings : SearchSettings
        Sizes of the stages.
    clock : Clock
        Time that is left.
    tell : callable
        Called with the text and the finished fraction of the search after every step.
    n_jobs : int or None
        Number of threads.
    """

    spaces: Sequence[Space]
    families: Sequence[str]
    rows: IntArray
    Y: FloatArray
    targets: Sequence[Target]
    weight: FloatArray
    left_out: FloatArray
    settings: SearchSettings
    clock: Clock
    tell: Callable[[str, float], None]
    n_jobs: int | None = None
    entries: list[Entry] = field(default_factory=list)
    complete: bool = False
    interrupted: bool = False
    seconds: float = 0.0  # of the first evaluation with all search rows
    gram_seconds: float = 0.0  # of its kernel matrix
    _shortened: bool = False

    def run(self) -> list[Entry]:
        """Search until all stages are finished or the time is over, and return the entries.

        A KeyboardInterrupt ends the search like the time limit, once there is an entry.
        """
        try:
            self._compare(self._screen())
            self._refine()
            self._try_learned_kernels()
            self._try_other_losses()
            self.complete = not self._shortened
        except OutOfTimeError:
            self.tell("the time limit ends the search", 1.0)
        except KeyboardInterrupt:
            if not self.entries:
                raise
            self.interrupted = True
            self.tell("interrupted; the best machines found so far are used", 1.0)
        return self.entries

    @property
    def best(self) -> Entry:
        """The entry with the smallest held-out error."""
        return min(self.entries, key=lambda entry: entry.error)

    # ---------------------------------------------------------------------------- the stages

    def _screen(self) -> list[Machine]:
        """Find the best width of every space and family on few rows, the best of them first."""
        rows = self.rows[: self.settings.screen_rows]
        pairs = [(space, family) for space in self.spaces for family in self.families]
        found = []
        for batch in _batches(pairs, self.n_jobs):
            found += in_threads(partial(self._best_width, rows), batch, self.n_jobs)
            if self.clock.left <= _SCREEN_MARGIN * self.seconds:
                break
        found.sort(key=lambda point: point[0])
        self.tell(f"{len(found)} kinds of kernels compared on {len(rows)} rows", 0.1)
        return [machine for _, machine in found]

    def _best_width(self, rows: IntArray, pair: tuple[Space, str]) -> tuple[float, Machine]:
        """Find the best of the widths that there is time for, from the middle of them outwards."""
        space, family = pair
        widths, longest = FAMILIES[family].widths, 0.0
        found: dict[float, tuple[float, Machine]] = {}
        for width in sorted(widths, key=lambda one: abs(widths.index(one) - len(widths) // 2)):
            begin = self.clock.elapsed
            if found and self.clock.left < _SCREEN_MARGIN * longest:
                break
            found[width] = self._grid_point(space, family, width, rows)
            longest = max(longest, self.clock.elapsed - begin)
        self.seconds = max(self.seconds, longest)
        return min((found[width] for width in widths if width in found), key=lambda own: own[0])

    def _grid_point(
        self, space: Space, family: str, width: float, rows: IntArray
    ) -> tuple[float, Machine]:
        kernel = ScaledKernel(family, space.starting_scales(FAMILIES[family], width))
        best = self._path(space, kernel, rows).best(self.Y[rows], _CS)
        return or_infinite(best.loo_error), Machine(space, kernel, best.C)

    def _path(self, space: Space, kernel: MachineKernel, rows: IntArray) -> RidgePath:
        begin = 0.0 if self.entries else self.clock.elapsed
        K = kernel.matrix(space.coordinates[rows])
        if not self.entries:
            self.gram_seconds = max(self.gram_seconds, self.clock.elapsed - begin)
        return RidgePath(K, self.weight[rows], left_out=self.left_out[rows], overwrite=True)

    def _compare(self, starts: list[Machine]) -> None:
        """Evaluate the best of the screened machines on all search rows."""
        self._shorten(min(self.settings.screen_rows, len(self.rows)))
        # The first one in any case: a model of one machine is better than none.
        begin = self.clock.elapsed
        self.entries.append(self._evaluated(starts[0]))
        self.seconds = self.clock.elapsed - begin
        self.clock.reserve(self.final_seconds())
        self._tell_expected(len(starts))
        for batch in _batches(starts[1 : self.settings.compared], self.n_jobs):
            self.clock.check()
            self.entries += in_threads(self._evaluated, batch, self.n_jobs)
        self.tell(f"held-out error {self.best.error:.4g} of the best kind of kernel", 0.25)

    def _shorten(self, screened: int) -> None:
        """Take the rows of the screening for all stages if the time is not enough for more.

        The time of the screening tells that of an evaluation with all rows, and of a final fit in
        the smallest leaves.
        """
        all_rows, self.rows = self.rows, self.rows[:screened]
        needed = self.seconds_with(len(all_rows)) + self.fit_seconds(self.settings.smallest_leaf)
        self._shortened = len(all_rows) > screened and needed > self.clock.left
        if not self._shortened:
            self.rows = all_rows

    def seconds_with(self, n_rows: int) -> float:
        """Estimate the time of an evaluation with another number of rows.

        That of the kernel matrix is quadratic in them, and the rest is cubic.
        """
        return self._scaled(n_rows, 1.0)

    def fit_seconds(self, largest_leaf: int, n_trees: int = 1) -> float:
        """Estimate the time of a fit of one machine on all rows.

        Parameters
        ----------
        largest_leaf : int
            Largest number of rows of a leaf.
        n_trees : int
            Number of trees, each of which has all rows in its leaves.
        """
        n_rows = len(self.Y)
        leaves = -(-n_rows // largest_leaf)  # which have about equal sizes
        if leaves == 1:
            return self._scaled(n_rows, _FIT_PART)
        gram = min(self.gram_seconds, self.seconds)
        between = gram * n_rows * largest_leaf / len(self.rows) ** 2  # all rows and the sample
        base = self._scaled(largest_leaf, _FIT_PART) + between
        return base + n_trees * leaves * self._scaled(-(-n_rows // leaves), _FIT_PART)

    def _tell_expected(self, n_starts: int) -> None:
        """Tell how long the fit may take, if that is long, by the first evaluation."""
        settings, threads = self.settings, effective_threads(self.n_jobs)
        compared = min(n_starts, settings.compared)
        fitted = self.seconds_with(len(self.rows) * (settings.folds - 1) // settings.folds)
        steps = _EVALUATIONS_PER_STEP * settings.descent_steps * settings.folds
        descents = min(compared, settings.refined) * steps * fitted
        fits = min(_USUAL_MEMBERS, settings.member_rows // len(self.Y) + settings.least_members)
        fitting = fits * self.fit_seconds(settings.largest_leaf, settings.trees)
        ahead = (compared * self.seconds + descents + fitting) / threads
        estimate = Estimate(self.clock.elapsed + ahead, self.clock.limit)
        if estimate.is_long or estimate.exceeds_limit:
            self.tell(f"expected time: {estimate}", 0.15)

    def final_seconds(self) -> float:
        """Estimate the time of the first final fits, in leaves that are not the largest."""
        settings = self.settings
        leaf = max(settings.smallest_leaf, settings.largest_leaf // 2)
        return FIRST_FITS * self.fit_seconds(leaf)

    def _scaled(self, n_rows: int, part: float) -> float:
        ratio, gram = n_rows / len(self.rows), min(self.gram_seconds, self.seconds)
        return float(gram * ratio**2 + part * (self.seconds - gram) * ratio**3)

    def _evaluated(self, machine: Machine) -> Entry:
        """Evaluate a machine with its best C and its best target on the search rows."""
        path = self._path(machine.space, machine.kernel, self.rows)
        found = []
        for target in self.targets:
            Y = target.forward(self.Y[self.rows])
            best = path.best(Y, _CS)
            own = replace(machine, C=best.C, target=target)
            scores = Y - path.fit(Y, best.C).loo_residuals
            found.append(self._entry((own,), scores, GRID))
        return min(found, key=lambda entry: entry.error)

    def _entry(self, machines: tuple[Machine, ...], scores: FloatArray, stage: str) -> Entry:
        """Return an entry from the held-out scores of the machines."""
        Y, weight = self.Y[self.rows], self.weight[self.rows]
        return Entry.of_scores(machines, scores, Y, weight, stage, len(self.rows))

    def _refine(self) -> None:
        """Refine the scales of the best entries by cross-fitted descent."""
        if len(self.rows) < _FEWEST_REFINED_ROWS:
            return
        best = sorted(self.entries, key=lambda entry: entry.error)[: self.settings.refined]
        for done, entry in enumerate(best, start=1):
            self.clock.check()
            refined = self._descended(entry)
            if refined is not None:
                self.entries.append(refined)
            error = entry.error if refined is None else refined.error
            self.tell(
                f"{entry.kernel.family} kernels on {entry.space.name} features: held-out error "
                f"{entry.error:.4g}, with a scale for each column {error:.4g}",
                0.25 + 0.65 * done / len(best),
            )
        self.clock.check()  # a descent that was cut short is no complete search

    # ------------------------------------------------------------------------------- descent

    def _descended(self, entry: Entry) -> Entry | None:
        """Return an entry with a machine for each fold, or None if descent does not help."""
        (machine,) = entry.machines
        if not machine.space.n_groups or not entry.error:
            return None  # no column varies, or the target is constant
        fold = self._folds()
        starts = self._first_descents(machine, fold)
        if starts is None:
            return None
        parts = [(fold != k, start) for k, start in enumerate(starts)]
        descents = in_threads(partial(self._descent, machine), parts, self.n_jobs)
        machines = self._at_best_step(descents, fold)
        if all(_same_scales(own, machine) for own in machines):
            return None
        refined = self._entry(
            tuple(machines), self._by_machine(self._squared_scores, machines), DESCENT
        )
        return refined if refined.error < entry.error else None

    def _folds(self) -> IntArray:
        count = min(self.settings.folds, len(self.rows))
        return np.random.default_rng(1).permutation(len(self.rows)) % count

    def _at_best_step(
        self, descents: list[list[tuple[Machine, FloatArray]]], fold: IntArray
    ) -> list[Machine]:
        """Return the machines of the folds after the step with the smallest error of the folds.

        There are none if the time was over before all folds had one.
        """
        best: list[Machine] = []
        if not all(descents):
            return best
        smallest = np.inf
        for step in range(max(map(len, descents))):
            now = [path[min(step, len(path) - 1)] for path in descents]
            machines = [machine for machine, _ in now]
            scores = np.empty((len(fold), self.Y.shape[1]))
            for k, (_, own) in enumerate(now):
                scores[fold == k] = own
            error = self._entry(tuple(machines), scores, DESCENT).error
            if error < smallest:
                best, smallest = machines, error
        return best

    def _first_descents(self, machine: Machine, fold: IntArray) -> list[Start | None] | None:
        """Return for each fold where a descent on few other rows leads, None without such descents.

        The folds of a half share a descent on rows of the other half. None instead of the list if
        the time is over.
        """
        count, wanted = int(fold.max()) + 1, self.settings.first_rows
        if np.sum(fold != 0) < _CLEARLY_MORE * wanted:
            return [None] * count
        halves = [fold >= count // 2, fold < count // 2]
        try:
            found = in_threads(partial(self._start, machine), halves, self.n_jobs)
        except OutOfTimeError:
            return None
        return [found[k >= count // 2] for k in range(count)]

    def _start(self, machine: Machine, used: NDArray[np.bool_]) -> Start:
        """Return where a descent on the first of the rows `used` leads."""
        objective = self._objective(machine, self.rows[used][: self.settings.first_rows])
        return objective.minimised(self.settings.descent_steps)

    def _descent(
        self, machine: Machine, part: tuple[NDArray[np.bool_], Start | None]
    ) -> list[tuple[Machine, FloatArray]]:
        """Return the machine, and its scores of the other rows, at the start and after every step.

        Only the rows that are used decide the steps, and the scores are those of a fit to them.
        """
        used, start = part
        objective = self._objective(machine, self.rows[used], self.rows[~used])
        if start is None:
            return objective.descend(self.settings.descent_steps)
        return objective.descend_further(start, self.settings.last_steps)

    def _objective(
        self, machine: Machine, rows: IntArray, others: IntArray = _NO_ROWS
    ) -> LeaveOneOutObjective:
        seconds = self.seconds_with(len(rows))  # the first one is estimated by that of the grid
        return LeaveOneOutObjective(
            machine, rows, others, self.Y, self.weight, self.left_out, self.clock, seconds
        )

    def _by_machine(
        self,
        scores_of: Callable[[Machine, NDArray[np.bool_]], FloatArray],
        machines: Sequence[Machine],
    ) -> FloatArray:
        """Return the scores of every row by the machine of its own fold, or by a single machine."""
        fold = self._folds() if len(machines) > 1 else np.zeros(len(self.rows), dtype=np.intp)
        own = [fold == k for k in range(len(machines))]
        found = in_threads(
            lambda one: scores_of(*one), list(zip(machines, own, strict=True)), self.n_jobs
        )
        scores = np.empty((len(fold), found[0].shape[1]))
        for part, part_scores in zip(own, found, strict=True):
            scores[part] = part_scores
        return scores

    def _squared_scores(self, machine: Machine, own: NDArray[np.bool_]) -> FloatArray:
        """Return the leave-one-out scores of some rows by the machine of all search rows."""
        rows, count = np.concatenate([self.rows[~own], self.rows[own]]), int(own.sum())
        Y = machine.target.forward(self.Y[rows])
        K = machine.kernel.matrix(machine.space.coordinates[rows])
        weight, left_out = self.weight[rows], self.left_out[rows]
        return Y[-count:] - last_left_out(K, Y, machine.C, weight, left_out, count)

    # ------------------------------------------------------------------------ learned kernels

    def _try_learned_kernels(self) -> None:
        """Evaluate machines whose kernel is learned with a certificate, on the best space.

        The kernel of a fold is learned on the rows of the other folds, so that the held-out
        predictions are not those of rows it was learned from.
        """
        grid = [entry for entry in self.entries if entry.stage == GRID]
        first = min(grid, key=lambda entry: entry.error).machines[0]
        size, fold = first.space.coordinates.shape[1] * self.Y.shape[1], self._folds()
        if not 0 < size <= self.settings.most_learned_columns or self._is_poor(fold):
            return
        for strength in self.settings.learned_strengths:
            self.clock.check()
            learn = partial(self._learned, first, strength)
            parts = [fold == k for k in range(fold.max() + 1)]
            machines = in_threads(learn, parts, self.n_jobs)
            scores = self._by_machine(self._squared_scores, machines)
            self.entries.append(self._entry(tuple(machines), scores, LEARNED))
            self.tell(f"learned kernels: held-out error {self.entries[-1].error:.4g}", 0.92)

    def _is_poor(self, fold: IntArray) -> bool:
        """Return whether some fold leaves too few rows or classes to learn a kernel from."""
        if len(fold) < _FEWEST_LEARNED_ROWS:
            return True
        Y = self.Y[self.rows]
        if Y.shape[1] > 1 and 2 * Y.shape[1] >= len(Y) // 2:  # as good as no copies of a class
            return True
        return any((np.ptp(Y[fold != k], axis=0) == 0.0).all() for k in range(fold.max() + 1))

    def _learned(self, first: Machine, strength: float, left_out: NDArray[np.bool_]) -> Machine:
        """Return the machine of a kernel that is learned without some rows."""
        rows = self.rows[~left_out][: self.settings.learned_rows]
        A, Y = first.space.coordinates[rows], first.target.forward(self.Y[rows])
        kernel = CertifiedKernel(learn_kernel(A, Y, strength, self.weight[rows]))
        few = self.rows[: self.settings.screen_rows]
        Y = first.target.forward(self.Y[few])
        best = self._path(first.space, kernel, few).best(Y, _CS)
        return replace(first, kernel=kernel, C=best.C)

    # ---------------------------------------------------------------------------- other losses

    def _try_other_losses(self) -> None:
        """Evaluate support vector machines with the kernels of the best entry.

        In regression they can only be better where the noise has long tails.
        """
        best, settings = self.best, self.settings
        classes = self.Y.shape[1]
        if classes > 1 and classes > settings.most_svm_classes:
            return
        if classes == 1 and self._kurtosis(best) < settings.svm_kurtosis:
            return
        loss, target = self._margin_loss(best)
        for strength in self.settings.svm_strengths:
            self.clock.check()
            machines = [replace(own, C=strength, loss=loss, target=target) for own in best.machines]
            scores = self._by_machine(self._svm_scores, machines)
            self.entries.append(self._entry(tuple(machines), scores, best.stage))
            self.tell(
                f"{loss.name} loss with C={strength:g}: held-out error "
                f"{self.entries[-1].error:.4g}",
                0.95,
            )

    def _kurtosis(self, entry: Entry) -> float:
        """Return the kurtosis of the held-out residuals; that of normal noise is three."""
        residual = (self.Y[self.rows] - entry.held_out)[:, 0]
        share = self.weight[self.rows] / self.weight[self.rows].sum()
        variance = float(share @ residual**2)
        return float(share @ residual**4) / variance**2 if variance > 0 else 0.0

    def _margin_loss(self, best: Entry) -> tuple[Any, Target]:
        if self.Y.shape[1] > 1:
            return Hinge(), MarginTarget()
        target = best.machines[0].target
        residual = self.Y[self.rows] - best.held_out
        weight = self.weight[self.rows]
        deviation = np.sqrt(weight @ residual[:, 0] ** 2 / weight.sum())
        return Tube(float(_TUBE * deviation)), target

    def _svm_scores(self, machine: Machine, own: NDArray[np.bool_]) -> FloatArray:
        """Return the leave-one-out scores of some rows by the machine of all search rows."""
        K = machine.kernel.matrix(machine.space.coordinates[self.rows])
        Y, loss = machine.target.forward(self.Y[self.rows]), machine.loss
        assert isinstance(loss, Hinge | Tube)
        weight, left_out = self.weight[self.rows], self.left_out[self.rows]
        return loss.held_out_scores(K, Y, machine.C, weight, left_out, np.flatnonzero(own))


def _same_scales(one: Machine, other: Machine) -> bool:
    assert isinstance(one.kernel, ScaledKernel)
    assert isinstance(other.kernel, ScaledKernel)
    return np.array_equal(one.kernel.scales, other.kernel.scales)


def _batches(items: list[Any], n_jobs: int | None) -> list[list[Any]]:
    """Return the items in batches of as many as run at a time."""
    size = effective_threads(n_jobs)
    return [items[k : k + size] for k in range(0, len(items), size)]
