"""What is to be measured: which cells, in which order, and what has to be left out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from os import PathLike

from tessella.datasets import DataError, describe, load
from tessella.datasets import names as registered_names
from tessella_bench._cells import Cell, CellStore, Record
from tessella_bench._methods import (
    BOTH,
    CLASSIFICATION,
    REGRESSION,
    Method,
    find_method,
    methods,
)

# The paper's tables of accuracies and of errors; cpusmall stands beside Space.
TABLES = {
    CLASSIFICATION: (
        *("abalone", "hill_valley", "transfusion", "shill_bidding", "german_numer", "fourclass"),
    ),
    REGRESSION: (*("gas_turbine", "airfoil", "ccpp", "cadata", "space_ga", "cpusmall", "boston"),),
}
DEFAULT_SPLITS = 5


@dataclass(frozen=True)
class PlannedSet:
    """A data set that is there.

    Attributes
    ----------
    name, task : str
        Its name and what it asks for.
    rows, features : int
        Its shape.
    """

    name: str
    task: str
    rows: int
    features: int


@dataclass(frozen=True)
class Plan:
    """Data sets, methods and divisions.

    Attributes
    ----------
    sets : tuple of PlannedSet
        From the smallest to the largest.
    methods : tuple of Method
        In the order of the columns.
    splits : int
        Number of divisions.
    left_out : tuple of str
        What was not asked for by name and cannot be measured here, a sentence each.
    """

    sets: tuple[PlannedSet, ...]
    methods: tuple[Method, ...]
    splits: int
    left_out: tuple[str, ...] = ()

    def cells(self) -> list[Cell]:
        """All cells: set by set, and the first division of every method before the second.

        Returns
        -------
        list of Cell
            In the order in which they are measured.
        """
        return [
            Cell(data.name, method.name, split)
            for data in self.sets
            for split in range(self.splits)
            for method in self.methods
            if data.task in method.tasks
        ]

    def groups(self) -> list[list[Cell]]:
        """Per data set: the first division, then all others.

        Returns
        -------
        list of list of Cell
            A group begins when the one before has ended, so that a method that is capped on the
            first division is known to be before the second begins.
        """
        groups: list[list[Cell]] = []
        for data in self.sets:
            cells = [cell for cell in self.cells() if cell.dataset == data.name]
            groups.append([cell for cell in cells if cell.split == 0])
            groups.append([cell for cell in cells if cell.split > 0])
        return groups

    def weight(self, cell: Cell) -> float:
        """A guess at the work of a cell, for the time that is left."""
        rows = next(data.rows for data in self.sets if data.name == cell.dataset)
        return float(rows**1.5)


def make_plan(
    task: str,
    datasets: Sequence[str] | None = None,
    method_names: Sequence[str] | None = None,
    splits: int = DEFAULT_SPLITS,
    data_home: str | PathLike[str] | None = None,
) -> Plan:
    """Find out what can be measured, before anything is.

    Parameters
    ----------
    task : {"classification", "regression", "all"}
        Which of the paper's tables.
    datasets : sequence of str, optional
        Other sets than those of the table; sets of the other task are an error.
    method_names : sequence of str, optional
        Names of methods, or ``module:function``; by default all that are installed.
    splits : int, default=5
        Number of divisions into training and test part.
    data_home : path, optional
        As for :func:`tessella.datasets.load`.

    Returns
    -------
    Plan
        With every data set read and checked once.
    """
    if splits < 1:
        raise ValueError(f"splits={splits} must be at least 1.")
    wanted = [task] if task != "all" else [CLASSIFICATION, REGRESSION]
    left_out: list[str] = []
    if datasets is None:
        names = [name for each in wanted for name in TABLES[each]]
        sets = _present(names, data_home, left_out)
    else:
        sets = [_planned(name, data_home) for name in dict.fromkeys(datasets)]
    for data in sets:
        if data.task not in wanted:
            raise ValueError(f"{data.name!r} is a {data.task}, and {task} was asked for.")
    if not sets:
        raise DataError(f"There is nothing to measure. {' '.join(left_out)}")
    chosen = _usable(left_out) if method_names is None else _named(method_names)
    return Plan(_ordered(sets), tuple(chosen), splits, tuple(left_out))


def stored_plan(
    store: CellStore,
    splits: int = DEFAULT_SPLITS,
    *,
    tasks: Iterable[str] = BOTH,
    datasets: Sequence[str] | None = None,
    method_names: Sequence[str] | None = None,
) -> Plan:
    """What there are cells of, for a report; needs no data.

    Parameters
    ----------
    store : CellStore
        Where the cells are.
    splits : int, default=5
        Number of divisions of the report.
    tasks, datasets, method_names : iterable of str, optional
        Only these.

    Returns
    -------
    Plan
        The sets of the paper's tables and others with cells; the methods that have any.
    """
    records = [
        record
        for record in store.records()
        if (datasets is None or record["dataset"] in datasets)
        and (method_names is None or record["method"] in method_names)
    ]
    names = dict.fromkeys(name for task in tasks for name in TABLES[task])
    sets = {name: _registered(name) for name in names if datasets is None or name in datasets}
    registered = registered_names()
    for record in records:
        name = record["dataset"]
        if name not in sets and (name in registered or "features" in record):
            sets[name] = _registered(name) if name in registered else _recorded(record)
    kept = [data for data in sets.values() if data.task in tuple(tasks)]
    with_cells = {record["method"] for record in records}
    known = [method for method in methods() if method.name in with_cells]
    others = sorted(with_cells - {method.name for method in known})
    known += [Method(name, name.rpartition(":")[2], name) for name in others]
    return Plan(_ordered(kept), tuple(known), splits)


def _registered(name: str) -> PlannedSet:
    info = describe(name)
    return PlannedSet(name, info.task, *info.shape)


def _recorded(record: Record) -> PlannedSet:
    rows = record["train_rows"] + record["test_rows"]
    return PlannedSet(record["dataset"], record["task"], rows, record["features"])


def _ordered(sets: Iterable[PlannedSet]) -> tuple[PlannedSet, ...]:
    return tuple(sorted(sets, key=lambda data: (data.rows, data.features)))


def _planned(name: str, data_home: str | PathLike[str] | None) -> PlannedSet:
    data = load(name, data_home)
    return PlannedSet(name, data.task, *data.X.shape)


def _present(
    names: Iterable[str], data_home: str | PathLike[str] | None, left_out: list[str]
) -> list[PlannedSet]:
    sets = []
    for name in names:
        try:
            sets.append(_planned(name, data_home))
        except DataError as error:
            left_out.append(f"{name} is left out: {error}")
    return sets


def _usable(left_out: list[str]) -> list[Method]:
    usable = []
    for method in methods():
        missing = method.missing()
        if missing is None:
            usable.append(method)
        else:
            left_out.append(f"{method.name} is left out: {missing}.")
    return usable


def _named(names: Sequence[str]) -> list[Method]:
    chosen = [find_method(name) for name in dict.fromkeys(names)]
    for method in chosen:
        missing = method.missing()
        if missing is not None:
            raise ValueError(f"The method {method.name!r} cannot be used: {missing}.")
    return chosen
