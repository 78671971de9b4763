"""Decisions of the dual solver: which kind of step comes next, and for how long.

Pair steps find the support vectors, Newton steps find the values of those between their bounds,
and an interior point method solves what both approach too slowly. The classes here hold what the
decisions depend on. They take no steps themselves.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tessella.svm._settings import DualSettings
from tessella.svm._solution import DualSolution


@dataclass
class Progress:
    """Best values so far, and the number of rounds that have not improved them."""

    best_gap: float = np.inf
    best_objective: float = -np.inf
    idle_rounds: int = 0

    def update(self, solution: DualSolution, settings: DualSettings) -> None:
        """Compare the solution of a round of pair steps with the best values so far."""
        resolution = settings.objective_resolution * abs(solution.objective)
        risen = solution.objective > self.best_objective + resolution
        narrowed = solution.gap < settings.gap_progress * self.best_gap
        self.idle_rounds = 0 if risen or narrowed else self.idle_rounds + 1
        self.best_gap = min(self.best_gap, solution.gap)
        self.best_objective = max(self.best_objective, solution.objective)


@dataclass
class Effort:
    """Number of steps taken, in total and since the last run of the interior point method.

    Whether the solver has looked for a factor of low rank is kept too; it does so once.
    """

    pair_steps: int = 0
    pair_seconds: float = 0.0  # estimated duration of the pair steps
    newton_steps: int = 0
    interior_point_runs: int = 0
    earlier_pair_seconds: float = 0.0
    earlier_newton_steps: int = 0
    has_factorised: bool = False

    def add_pair_steps(self, n_steps: int, cost: float) -> None:
        """Count pair steps of an estimated duration."""
        self.pair_steps += n_steps
        self.pair_seconds += n_steps * cost

    def add_interior_point_run(self, n_steps: int, *, whole: bool) -> None:
        """Count a run of `n_steps` Newton steps and start the count since the last run anew.

        Runs with the whole kernel matrix are counted, unlike the one with a factor of low rank.
        """
        self.interior_point_runs += whole
        self.newton_steps += n_steps
        self.earlier_pair_seconds = self.pair_seconds
        self.earlier_newton_steps = self.newton_steps

    def interior_point_pays(self, size: int, settings: DualSettings) -> bool:
        """Return whether the steps since the last run were long enough to try another run."""
        if self.interior_point_runs == settings.max_interior_point_runs:
            return False
        if size > settings.max_interior_point_size:
            return False
        cost = settings.costs.interior_point(size)
        return self._spent(size, settings) > settings.interior_point_share * cost

    def search_pays(self, size: int, most: int, settings: DualSettings) -> bool:
        """Return whether the steps were long enough to look for a factor of low rank."""
        search = settings.search_share * settings.costs.factorisation(size, most)
        return self._spent(size, settings) >= search

    def low_rank_pays(self, size: int, rank: int, settings: DualSettings) -> bool:
        """Return whether the steps were long enough to use a factor of some rank."""
        cost = settings.costs.low_rank(size, rank)
        return self._spent(size, settings) > settings.interior_point_share * cost

    def _spent(self, size: int, settings: DualSettings) -> float:
        """Return the estimated duration of the steps since the last run."""
        newton_steps = self.newton_steps - self.earlier_newton_steps
        typical_newton_step = settings.costs.newton_step(size // settings.assumed_free_share)
        pair_seconds = self.pair_seconds - self.earlier_pair_seconds
        return pair_seconds + newton_steps * typical_newton_step


@dataclass
class Schedule:
    """How many pair steps come next, and whether a Newton step follows them.

    Costs of a Newton step are given in pair steps of the same duration.

    Attributes
    ----------
    settings : DualSettings
        Constants of the solver.
    next_pair_steps : int
        Number of pair steps of the next round.
    newton_ratio : float
        A Newton step may cost this many times as much as the pair steps before it.
    newton_enabled : bool
        Whether Newton steps are still in use. Without them pair steps run until the end.
    pair_steps_since_newton : int
        Number of pair steps since the last Newton step or interior point run.
    gradient_is_known : bool
        Whether the gradient at the end of the last round can be updated: few samples have moved
        since, if any.
    """

    settings: DualSettings
    next_pair_steps: int
    newton_ratio: float
    newton_enabled: bool = True
    pair_steps_since_newton: int = 0
    gradient_is_known: bool = False

    @classmethod
    def cold_start(cls, settings: DualSettings, size: int) -> Schedule:
        """Begin with one pair step per sample: the support vectors are not known yet."""
        return cls(settings, max(settings.min_pair_steps, size), newton_ratio=1.0)

    @classmethod
    def warm_start(cls, settings: DualSettings, newton_cost: int) -> Schedule:
        """Begin with an early Newton step: most support vectors are known already."""
        first = max(settings.min_pair_steps, newton_cost // settings.warm_pair_share)
        return cls(settings, first, newton_ratio=settings.warm_newton_ratio)

    @property
    def pair_step_limit(self) -> int:
        """Largest number of pair steps of the next round; negative for no limit."""
        return self.next_pair_steps if self.newton_enabled else -1

    def newton_is_due(self, newton_cost: int) -> bool:
        """Return whether the pair steps since the last Newton step pay for another one."""
        return newton_cost <= self.newton_ratio * self.pair_steps_since_newton

    def after_pair_steps(self, n_steps: int, progress: Progress) -> None:
        """Count a round of pair steps, and give up Newton steps when rounds gain nothing."""
        self.pair_steps_since_newton += n_steps
        if progress.idle_rounds >= self.settings.max_idle_rounds:
            self.give_up_newton()  # only pair steps recognise the limit of double precision

    def give_up_newton(self) -> None:
        """Leave the rest to pair steps."""
        self.newton_enabled = False

    def wait_for_newton(self, newton_cost: int) -> None:
        """Continue with the pair steps that are missing until a Newton step is due."""
        missing = int(newton_cost / self.newton_ratio) - self.pair_steps_since_newton
        self.next_pair_steps = max(self.settings.min_pair_steps, missing)
        self.gradient_is_known = True

    def after_newton_step(self, newton_cost: int) -> None:
        """Continue with pair steps that take as long as the Newton step did."""
        self.next_pair_steps = newton_cost
        self.pair_steps_since_newton = 0
        self.newton_ratio = 1.0
        self.gradient_is_known = True

    def after_failed_newton_step(self) -> None:
        """Continue with more pair steps than before: the free samples have not settled."""
        self.next_pair_steps *= self.settings.pair_growth
        self.gradient_is_known = True

    def after_interior_point(self) -> None:
        """Continue with a few pair steps from the point that the method has found."""
        self.next_pair_steps = self.settings.min_pair_steps
        self.pair_steps_since_newton = 0
        self.gradient_is_known = False
