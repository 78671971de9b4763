"""``tessella benchmark suite``: tables as they come, and what others make of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from tessella_bench._cells import CellStore, Record
from tessella_bench._engine import BEST_CLOCK, Settings, fill
from tessella_bench._terminal import (
    EXIT_INTERRUPTED,
    default_folder,
    listed,
    note,
    progress,
)
from tessella_bench._write import write_blocks
from tessella_bench.suite._divisions import SIZES
from tessella_bench.suite._document import suite_document
from tessella_bench.suite._methods import VARIANT, variants
from tessella_bench.suite._plan import SuitePlan, make_suite_plan
from tessella_bench.suite._report import gather_suite

_ALL = "all"


def suite(
    datasets: Annotated[
        list[str] | None,
        typer.Option("--datasets", help="Only these sets; commas or repeated."),
    ] = None,
    methods: Annotated[
        list[str] | None,
        typer.Option(
            "--methods",
            help="Methods by name, or module:function for one of your own: a function of task, X "
            "(a DataFrame), y and seed that returns tessella_bench.Fitted(model); commas or "
            "repeated. All that are installed by default.",
        ),
    ] = None,
    rows: Annotated[
        str, typer.Option("--rows", help="Training rows: 1000, 4000 or all (both).")
    ] = _ALL,
    splits: Annotated[
        int,
        typer.Option("--splits", min=1, help="Divisions at 1,000 rows; there is one at 4,000."),
    ] = 3,
    jobs: Annotated[int, typer.Option("--jobs", min=1, help="Processes of one thread each.")] = 1,
    time_cap: Annotated[
        float,
        typer.Option(
            "--time-cap",
            help="Processor seconds for tuning and fit of a cell; beyond, the method is last.",
        ),
    ] = 600.0,
    cells: Annotated[
        Path | None,
        typer.Option(
            "--cells",
            help="Folder of the finished cells, which are reused.",
            show_default="suite/cells among the reports",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="Folder of the report.", show_default="the parent of --cells"
        ),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(
            "--data", help="Folder of the data sets.", show_default="what TESSELLA_DATA names"
        ),
    ] = None,
    python: Annotated[
        list[str] | None,
        typer.Option(
            "--python",
            help="METHOD=PATH: the interpreter of an environment that has tessella-bench and what "
            "the method needs. Repeated; PATH alone is for all methods without one.",
        ),
    ] = None,
    ablate: Annotated[
        list[str] | None,
        typer.Option(
            "--ablate",
            help="NAME=JSON: measure a variant of our estimator too, with these keywords of its "
            "constructor. Repeated; without --methods, nothing but the variants and the "
            "estimator itself is measured.",
        ),
    ] = None,
    fresh: Annotated[
        list[str] | None,
        typer.Option(
            "--fresh",
            help="Forget the cells of these methods (and of their variants) among those asked "
            "for, and measure them again; commas or repeated.",
        ),
    ] = None,
    report_only: Annotated[
        bool,
        typer.Option("--report-only", help="Measure nothing; report the cells that are there."),
    ] = False,
) -> None:
    """Tables with text and gaps, as they come, beside boosted trees, nets and other kernels."""
    sizes, folder = _sizes(rows), cells or default_folder() / "suite" / "cells"
    place = output or folder.parent
    wanted, names = listed(datasets), listed(methods)
    if report_only:
        _report(folder, place, (sizes, splits, wanted, names))
        return
    tried = variants(_keywords(ablate or []))
    if tried and names is None:
        names = ["tessella"]
    plan = make_suite_plan(
        wanted, names, sizes, splits, data, pythons=_pythons(python or []), variants=tried
    )
    settings = Settings(time_cap, jobs, data, plan.recipes, BEST_CLOCK)
    complete = _measure(plan, CellStore(folder), settings, listed(fresh) or [])
    _report(folder, place, (sizes, splits, None, None))
    if not complete:
        raise typer.Exit(EXIT_INTERRUPTED)


def _sizes(text: str) -> tuple[int, ...]:
    known = {str(size): (size,) for size in SIZES} | {_ALL: SIZES}
    if text not in known:
        raise ValueError(f"--rows {text} must be one of {', '.join(known)}.")
    return known[text]


def _pythons(texts: list[str]) -> dict[str, str]:
    """Interpreters by method; the empty name is for all others."""
    found = {}
    for text in texts:
        method, _, path = text.rpartition("=")
        found[method] = path
    return found


def _keywords(texts: list[str]) -> dict[str, dict[str, Any]]:
    """Keywords by the name of the variant."""
    found = {}
    for text in texts:
        name, _, keywords = text.partition("=")
        try:
            given = json.loads(keywords)
        except ValueError as error:
            raise ValueError(f"--ablate {text}: what follows = is not JSON ({error}).") from error
        if not name.strip() or not isinstance(given, dict):
            raise ValueError(f"--ablate {text} must be NAME=JSON, with an object of keywords.")
        found[name.strip()] = given
    return found


def _measure(plan: SuitePlan, store: CellStore, settings: Settings, fresh: list[str]) -> bool:
    """Measure what is missing; False if that was interrupted."""
    for sentence in plan.left_out:
        note(sentence)
    _forget(plan, store, fresh)
    store.folder.mkdir(parents=True, exist_ok=True)
    try:
        with progress(plan, _outcome) as watch:
            fill(plan, store, settings, watch)
    except KeyboardInterrupt:
        # The same command would forget them once more, if it was told to.
        same = "the same command, without --fresh," if fresh else "the same command"
        note(f"interrupted; finished cells are in {store.folder}, {same} goes on")
        return False
    return True


def _forget(plan: SuitePlan, store: CellStore, fresh: list[str]) -> None:
    for name in fresh:
        own = [c for c in plan.cells() if name in (c.method, c.method.partition(VARIANT)[0])]
        if not own:
            raise ValueError(f"--fresh {name}: this method is not among those to be measured.")
        for cell in own:
            store.forget(cell)


def _outcome(record: Record) -> str:
    chances = f", log-loss {record['log_loss']:.4g}" if "log_loss" in record else ""
    used = record["processor_seconds"]
    time = f"{record['seconds']:.1f} s on a GPU" if used is None else f"{used:.1f} s"
    return f"error {record['error']:.4g}{chances} in {time}"


def _report(folder: Path, place: Path, chosen: tuple[Any, ...]) -> None:
    if not folder.is_dir():
        raise ValueError(f"{folder}: no such folder; measure some cells, or use --cells")
    report = gather_suite(CellStore(folder), *chosen)
    if not report["sizes"]:
        note(f"{folder} holds no cells of what was asked for: there is no report")
        return
    from tessella_bench.suite._pictures import draw_suite  # matplotlib is slow to import

    place.mkdir(parents=True, exist_ok=True)
    pictures = draw_suite(report, place)
    for path in write_blocks(report, suite_document(report, pictures), pictures, place):
        typer.echo(f"Written: {path}")
