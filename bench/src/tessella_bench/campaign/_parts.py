"""The parts of the campaign."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from tessella_bench.campaign._outcome import Outcome

Run = Callable[[int, Path], Outcome]


@dataclass(frozen=True)
class Part:
    """One part of the campaign.

    Attributes
    ----------
    name : str
        Name of the part.
    module : str
        Module of this package with a function ``run(number, folder)``, where `folder` is an empty
        folder for the case.
    seconds : float
        Seconds after which a case counts as a hang.
    batch : int
        Number of cases in one process.
    count : int
        Number of cases of a whole campaign.
    needs_fork : bool
        Whether the cases need the system call fork.
    """

    name: str
    module: str
    seconds: float
    batch: int
    count: int
    needs_fork: bool = False

    @property
    def run(self) -> Run:
        """The function that runs a case."""
        found: Run = import_module(f"tessella_bench.campaign.{self.module}").run
        return found

    @property
    def possible(self) -> bool:
        """Whether the part can run on this system."""
        return hasattr(os, "fork") or not self.needs_fork


PARTS = {
    part.name: part
    for part in (
        Part("fits", "_fits", 120.0, 2_000, 100_000),
        Part("inputs", "_inputs", 60.0, 250, 709),
        Part("files", "_files", 60.0, 5_000, 100_000),
        Part("kills", "_kills", 60.0, 20, 200, needs_fork=True),
        Part("interrupts", "_interrupts", 60.0, 20, 200, needs_fork=True),
        Part("processes", "_processes", 120.0, 10, 100, needs_fork=True),
        Part("memory", "_limits", 120.0, 10, 100, needs_fork=True),
        Part("deadlines", "_deadlines", 120.0, 10, 200),
    )
}
