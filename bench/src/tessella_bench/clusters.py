"""How long a round of a fit with leaves takes on a cluster: a simulation with measured constants.

A fit divides its rows into leaves. In each round a coordinator hands one task for each leaf, or for
several, to the cores; every task answers with the evidence of its leaves, and with all of it the
coordinator computes the next parameter. Four things take time:

===========  =====================================================================================
tasks        A leaf of r rows takes ``leaf_seconds * r ** leaf_exponent`` on one core.
scheduler    Hands over the tasks one after the other, `task_seconds` each.
transfer     A leaf sends ``8 * n_params ** 2 + packet_bytes`` through the one link of the
             coordinator, which carries `bandwidth` bytes per second, and `latency` seconds pass
             each way.
coordinator  ``coordinator_seconds + coordinator_leaf_seconds * leaves * n_params ** 2``, when all
             evidence is there.
===========  =====================================================================================

``python -m tessella_bench.clusters constants.json`` prints a table of large fits. The file is an
object with the attributes of :class:`Constants`.
"""

from __future__ import annotations

import heapq
import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

__all__ = ["Constants", "PartitionedFit", "RoundTimes", "load_constants", "simulate", "table"]

_BYTES = 8  # of a number


@dataclass(frozen=True)
class Constants:
    """What was measured on one machine, in seconds and bytes.

    Attributes
    ----------
    leaf_seconds : float
        Seconds of one core for a leaf of one row.
    coordinator_seconds : float
        Seconds of the coordinator in each round.
    coordinator_leaf_seconds : float
        Seconds of the coordinator for each leaf and each entry of a parameter.
    leaf_exponent : float
        Growth of the seconds of a leaf with its rows.
    packet_bytes : float
        Bytes of a leaf in a round beyond its evidence, both ways.
    bandwidth : float
        Bytes per second of the link of the coordinator.
    latency : float
        Seconds of a message without content.
    task_seconds : float
        Seconds of the scheduler for a task.
    """

    leaf_seconds: float
    coordinator_seconds: float
    coordinator_leaf_seconds: float
    leaf_exponent: float = 1.4
    packet_bytes: float = 1000.0
    bandwidth: float = 1e9
    latency: float = 1e-3
    task_seconds: float = 1e-3

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise ValueError(f"{field.name} must be a number, not {value!r}.")
            if not 0.0 <= value < math.inf:
                raise ValueError(f"{field.name} must be finite and not negative, not {value!r}.")
        if self.bandwidth == 0.0:
            raise ValueError("bandwidth must be positive.")


@dataclass(frozen=True)
class PartitionedFit:
    """A fit whose rows are divided.

    Attributes
    ----------
    rows : int
        Rows of the table.
    leaf_rows : int
        Mean rows of a leaf.
    trees : int
        Trees of cuts; each of them holds all rows.
    n_params : int
        Side of the matrix that is learned.
    rounds : int
        Rounds until the gap is small enough.
    spread : float
        Sizes of leaves are even between ``1 - spread`` and ``1 + spread`` times the mean.
    leaves_per_task : int
        Leaves that the scheduler hands over at once.
    """

    rows: int
    leaf_rows: int = 5000
    trees: int = 2
    n_params: int = 22
    rounds: int = 20
    spread: float = 0.0
    leaves_per_task: int = 1

    def __post_init__(self) -> None:
        for name in ("rows", "leaf_rows", "trees", "n_params", "rounds", "leaves_per_task"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, not {getattr(self, name)}.")
        if not 0.0 <= self.spread < 1.0:
            raise ValueError(f"spread must be in [0, 1), not {self.spread}.")

    @property
    def leaves(self) -> int:
        """Leaves of all trees."""
        return self.trees * math.ceil(self.rows / self.leaf_rows)


@dataclass(frozen=True)
class RoundTimes:
    """Seconds of one round.

    Attributes
    ----------
    cores : int
        Cores of the cluster.
    seconds : float
        Whole round.
    tasks : float
        Seconds that a core computes, on average.
    transfer : float
        Seconds that the link of the coordinator is busy.
    coordinator : float
        Seconds of the coordinator.
    scheduler : float
        Seconds that the scheduler is busy.
    task_seconds : float
        Seconds of all tasks together.
    busy : tuple of float
        Seconds that each core computes.
    """

    cores: int
    seconds: float
    tasks: float
    transfer: float
    coordinator: float
    scheduler: float
    task_seconds: float
    busy: tuple[float, ...]

    @property
    def efficiency(self) -> float:
        """Part of the time of all cores in which they compute."""
        return self.task_seconds / (self.cores * self.seconds) if self.seconds else 1.0

    @property
    def saturated(self) -> str:
        """What is busy for the largest part of the round."""
        parts = {
            "tasks": self.tasks,
            "transfer": self.transfer,
            "coordinator": self.coordinator,
            "scheduler": self.scheduler,
        }
        return max(parts, key=lambda name: parts[name])


# ---------------------------------------------------------------------------------- simulation


def simulate(fit: PartitionedFit, constants: Constants, cores: int) -> RoundTimes:
    """Simulate one round, event by event.

    The scheduler gives the next task, in a fixed order, to the core that is free first, one task
    at a time. Answers pass the link of the coordinator in the order in which they are ready.

    Parameters
    ----------
    fit : PartitionedFit
        What is computed.
    constants : Constants
        How long its parts take.
    cores : int
        Cores of the cluster.

    Returns
    -------
    RoundTimes
        Of any round: all have the same leaves.
    """
    if cores < 1:
        raise ValueError(f"cores must be at least 1, not {cores}.")
    leaf_bytes = _BYTES * fit.n_params**2 + constants.packet_bytes
    free = [(0.0, core) for core in range(cores)]
    busy = [0.0] * cores
    handed, n_tasks, answers = 0.0, 0, []
    for seconds, leaves in _tasks(fit, constants):
        since, core = free[0]
        handed = max(handed, since) + constants.task_seconds
        end = handed + constants.latency + seconds
        heapq.heapreplace(free, (end, core))
        busy[core] += seconds
        answers.append((end + constants.latency, leaves * leaf_bytes / constants.bandwidth))
        n_tasks += 1
    received = 0.0
    for ready, carried in sorted(answers):
        received = max(received, ready) + carried
    coordinator = (
        constants.coordinator_seconds
        + constants.coordinator_leaf_seconds * fit.leaves * fit.n_params**2
    )
    total = math.fsum(busy)
    return RoundTimes(
        cores=cores,
        seconds=received + coordinator,
        tasks=total / cores,
        transfer=math.fsum(carried for _, carried in answers),
        coordinator=coordinator,
        scheduler=n_tasks * constants.task_seconds,
        task_seconds=total,
        busy=tuple(busy),
    )


def _tasks(fit: PartitionedFit, constants: Constants) -> Iterator[tuple[float, int]]:
    """Seconds and leaves of each task, large and small ones mixed."""
    seconds = constants.leaf_seconds * _leaf_rows(fit) ** constants.leaf_exponent
    for first in range(0, len(seconds), fit.leaves_per_task):
        part = seconds[first : first + fit.leaves_per_task]
        yield float(part.sum()), len(part)


def _leaf_rows(fit: PartitionedFit) -> Any:
    """Rows of each leaf: of equal distances, in a fixed order without a pattern."""
    golden = (math.sqrt(5.0) - 1.0) / 2.0
    places = np.arange(1, fit.leaves + 1) * golden % 1.0
    mean = fit.trees * fit.rows / fit.leaves
    return mean * (1.0 + fit.spread * (2.0 * places - 1.0))


# --------------------------------------------------------------------------------------- table


_HEADERS = (
    *("rows", "cores", "leaves", "round s", "tasks s", "transfer s", "coordinator s"),
    *("scheduler s", "efficiency", "saturated", "rounds", "fit h"),
)


def table(fits: Sequence[PartitionedFit], cores: Sequence[int], constants: Constants) -> str:
    """A Markdown table of simulated fits.

    Parameters
    ----------
    fits : sequence of PartitionedFit
        What is computed.
    cores : sequence of int
        Sizes of the cluster.
    constants : Constants
        What was measured.

    Returns
    -------
    str
        A line for each fit and each number of cores.
    """
    lines = [_line(_HEADERS), _line(["---:"] * len(_HEADERS))]
    for fit in fits:
        for number in cores:
            found = simulate(fit, constants, number)
            parts = (found.seconds, found.tasks, found.transfer)
            hours = fit.rounds * found.seconds / 3600.0
            cells = [
                *(f"{fit.rows:.0e}".replace("e+0", "e"), f"{number:,}", f"{fit.leaves:,}"),
                *(f"{seconds:.3g}" for seconds in (*parts, found.coordinator, found.scheduler)),
                *(f"{found.efficiency:.2f}", found.saturated, str(fit.rounds), f"{hours:.3g}"),
            ]
            lines.append(_line(cells))
    return "\n".join(lines)


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def load_constants(path: Path) -> Constants:
    """Read measured constants.

    Parameters
    ----------
    path : Path
        A JSON object with the attributes of :class:`Constants`, or one whose "constants" is such
        an object.

    Returns
    -------
    Constants
        What the file holds; defaults where it says nothing.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ValueError(f"{path} cannot be read as JSON: {error}") from error
    found = content.get("constants", content) if isinstance(content, dict) else content
    if not isinstance(found, dict):
        raise ValueError(f"{path} must be an object with the names of constants.")
    known = {field.name for field in fields(Constants)}
    unknown, missing = sorted(set(found) - known), sorted(_REQUIRED - set(found))
    if unknown or missing:
        wrong = f"does not know {', '.join(unknown)}" if unknown else f"lacks {', '.join(missing)}"
        raise ValueError(f"{path} {wrong}; the names are {', '.join(sorted(known))}.")
    return Constants(**found)


_REQUIRED = {"leaf_seconds", "coordinator_seconds", "coordinator_leaf_seconds"}


def clusters(
    constants: Annotated[Path, typer.Argument(help="JSON of the measured constants.")],
    rows: Annotated[list[float] | None, typer.Option(help="Default: 1e8 and 1e9.")] = None,
    cores: Annotated[list[int] | None, typer.Option(help="Default: 100 and 1000.")] = None,
    leaf_rows: Annotated[int, typer.Option(min=1, help="Mean rows of a leaf.")] = 5000,
    trees: Annotated[int, typer.Option(min=1, help="Trees of cuts.")] = 2,
    n_params: Annotated[int, typer.Option(min=1, help="Side of the learned matrix.")] = 22,
    rounds: Annotated[int, typer.Option(min=1, help="Rounds of the fit.")] = 20,
    spread: Annotated[float, typer.Option(help="Of the sizes of leaves, below 1.")] = 0.0,
    leaves_per_task: Annotated[int, typer.Option(min=1, help="Leaves of a task.")] = 1,
) -> None:
    """Simulate fits with leaves on a cluster, from measured constants."""
    shape = (leaf_rows, trees, n_params, rounds, spread, leaves_per_task)
    fits = [PartitionedFit(int(number), *shape) for number in rows or (1e8, 1e9)]
    typer.echo(table(fits, cores or (100, 1000), load_constants(constants)))


if __name__ == "__main__":
    typer.run(clusters)
