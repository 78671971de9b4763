"""What the suite measures: sizes, divisions, sets and methods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike

from tessella.datasets import DataError
from tessella_bench._cells import Cell, Recipe
from tessella_bench._methods import Method
from tessella_bench.suite._data import load_table, suite_names
from tessella_bench.suite._divisions import DIVISIONS, SIZES, sizes_of, training_rows
from tessella_bench.suite._methods import find_method, missing, suite_methods


@dataclass(frozen=True)
class SuiteSet:
    """A set that is there.

    Attributes
    ----------
    name, task : str
        Its name and what it asks for.
    rows : int
        Rows of the table.
    """

    name: str
    task: str
    rows: int


@dataclass(frozen=True)
class SuitePlan:
    """Sizes, sets and methods.

    Attributes
    ----------
    sizes : tuple of int
        Training rows that are asked for.
    splits : int
        Divisions at the smallest size; larger sizes have at most their own number.
    sets : tuple of SuiteSet
        From the smallest to the largest.
    methods : tuple of Method
        The most important first.
    recipes : mapping
        How each method is run, by name.
    left_out : tuple of str
        What was not asked for by name and cannot be measured here, a sentence each.
    """

    sizes: tuple[int, ...]
    splits: int
    sets: tuple[SuiteSet, ...]
    methods: tuple[Method, ...]
    recipes: Mapping[str, Recipe] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()

    def groups(self) -> list[list[Cell]]:
        """Per size and division: all methods, one after the other, on all sets.

        Returns
        -------
        list of list of Cell
            So that a run that is interrupted has compared the most important methods on all sets.
        """
        groups = [
            [
                Cell(data.name, method.name, split, size)
                for method in self.methods
                for data in self.sets
                if size in sizes_of(data.rows) and data.task in method.tasks
            ]
            for size in self.sizes
            for split in range(divisions(size, self.splits))
        ]
        return [group for group in groups if group]

    def cells(self) -> list[Cell]:
        """All cells in the order in which they are measured."""
        return [cell for group in self.groups() for cell in group]

    def weight(self, cell: Cell) -> float:
        """A guess at the work of a cell, for the time that is left."""
        rows = next(data.rows for data in self.sets if data.name == cell.dataset)
        return float(training_rows(rows, cell.rows or rows) ** 1.5)


def divisions(size: int, splits: int) -> int:
    """Divisions at a size, if so many are wanted at the smallest."""
    return splits if size == SIZES[0] else min(splits, DIVISIONS[size])


def make_suite_plan(
    datasets: Sequence[str] | None = None,
    method_names: Sequence[str] | None = None,
    sizes: Sequence[int] = SIZES,
    splits: int = DIVISIONS[SIZES[0]],
    data_home: str | PathLike[str] | None = None,
    *,
    pythons: Mapping[str, str] | None = None,
    variants: Mapping[str, Recipe] | None = None,
) -> SuitePlan:
    """Find out what can be measured, before anything is.

    Parameters
    ----------
    datasets : sequence of str, optional
        Names of sets; by default all of the suite that are there.
    method_names : sequence of str, optional
        Names of methods, or ``module:function``; by default all that are installed.
    sizes : sequence of int
        Training rows: 1000, 4000 or both.
    splits : int, default=3
        Divisions at 1,000 rows; there is one at 4,000.
    data_home : path, optional
        As for :func:`tessella.datasets.load`.
    pythons : mapping, optional
        Interpreters of single methods, by name; the name "" is for all others.
    variants : mapping, optional
        Recipes of variants of our method, which are measured in addition.

    Returns
    -------
    SuitePlan
        With every set read and checked once.
    """
    if splits < 1:
        raise ValueError(f"splits={splits} must be at least 1.")
    left_out: list[str] = []
    sets = _sets(datasets, data_home, left_out)
    recipes = _recipes(method_names, pythons or {}, variants or {})
    chosen = []
    for name, recipe in recipes.items():
        method = find_method(name)
        why = missing(method, recipe.python)
        if why is None:
            chosen.append(method)
        elif method_names is None and name not in (variants or {}):
            left_out.append(f"{name} is left out: {why}.")
        else:
            raise ValueError(f"The method {name!r} cannot be used: {why}.")
    return SuitePlan(tuple(sizes), splits, sets, tuple(chosen), recipes, tuple(left_out))


def _sets(
    datasets: Sequence[str] | None, data_home: str | PathLike[str] | None, left_out: list[str]
) -> tuple[SuiteSet, ...]:
    found = []
    for name in dict.fromkeys(suite_names(data_home) if datasets is None else datasets):
        try:
            table = load_table(name, data_home)
        except DataError as error:
            if datasets is not None:
                raise
            left_out.append(f"{name} is left out: {error}")
            continue
        found.append(SuiteSet(name, table.task, len(table.y)))
    if not found:
        raise DataError(f"There is nothing to measure. {' '.join(left_out)}")
    return tuple(sorted(found, key=lambda data: (data.rows, data.name)))


def _recipes(
    method_names: Sequence[str] | None, pythons: Mapping[str, str], variants: Mapping[str, Recipe]
) -> dict[str, Recipe]:
    names = method_names
    if names is None:
        names = [method.name for method in suite_methods()]
    plain = {name: Recipe(find_method(name).edition) for name in names}
    return {
        name: replace(recipe, python=_python(name, pythons))
        for name, recipe in (plain | dict(variants)).items()
    }


def _python(name: str, pythons: Mapping[str, str]) -> str | None:
    """The interpreter of a method; that of our own is also that of its variants."""
    base = name.partition("/")[0]
    return pythons.get(name) or pythons.get(base) or pythons.get("")
