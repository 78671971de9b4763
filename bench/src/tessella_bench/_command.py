"""``tessella benchmark``: the paper's tables, filled cell by cell, and its figures."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from tessella_bench import CellStore, Settings, fill, gather, make_plan, stored_plan, write_report
from tessella_bench._terminal import (
    ELSEWHERE,
    EXIT_INTERRUPTED,
    IN_CHECKOUT,
    default_folder,
    listed,
    note,
    progress,
)
from tessella_bench.figures import MissingDataError, draw_all
from tessella_bench.suite._command import suite

benchmark = typer.Typer(
    help="Compare with other methods on the paper's data sets, by the paper's protocol.",
    no_args_is_help=True,
)

_Datasets = Annotated[
    list[str] | None,
    typer.Option("--datasets", help="Other sets than the paper's; commas or repeated."),
]
_Methods = Annotated[
    list[str] | None,
    typer.Option(
        "--methods",
        help="Methods by name, or module:function for one of your own: a function of task, X, y "
        "and seed that returns tessella_bench.Fitted(model); commas or repeated. All that "
        "are installed by default.",
    ),
]
_Splits = Annotated[int, typer.Option("--splits", min=1, help="Random divisions of the data.")]
_Jobs = Annotated[int, typer.Option("--jobs", min=1, help="Processes of one thread each.")]
_TimeCap = Annotated[
    float,
    typer.Option("--time-cap", help="Seconds for tuning and fit of a cell; beyond, it is N/A."),
]
_Cells = Annotated[
    Path | None,
    typer.Option(
        "--cells",
        help="Folder of the finished cells, which are reused.",
        show_default=f"{IN_CHECKOUT / 'cells'} in a checkout, else {ELSEWHERE / 'cells'}",
    ),
]
_Output = Annotated[
    Path | None,
    typer.Option(
        "--output", "-o", help="Folder of the report.", show_default="the parent of --cells"
    ),
]
_Data = Annotated[
    Path | None,
    typer.Option(
        "--data", help="Folder of the data sets.", show_default="what TESSELLA_DATA names"
    ),
]
_ReportOnly = Annotated[
    bool,
    typer.Option("--report-only", help="Measure nothing; report the cells that are there."),
]


def _add(task: str, text: str) -> None:
    """Add the command of a table; the three differ in nothing but their sets."""

    def command(
        datasets: _Datasets = None,
        methods: _Methods = None,
        splits: _Splits = 5,
        jobs: _Jobs = 1,
        time_cap: _TimeCap = 1800.0,
        cells: _Cells = None,
        output: _Output = None,
        data: _Data = None,
        report_only: _ReportOnly = False,
    ) -> None:
        folder = cells or default_folder() / "cells"
        place = output or folder.parent
        wanted, names = listed(datasets), listed(methods)
        if report_only:
            _report(folder, place, splits, task, wanted, names)
            return
        limits = {"time_cap": time_cap, "jobs": jobs, "data_home": data}
        _measure(folder, place, limits, (task, wanted, names, splits, data))

    command.__doc__ = text
    benchmark.command(task)(command)


_add("classification", "Accuracies on the six sets of the paper's table.")
_add("regression", "Squared errors on the six sets of the paper's table, and cpusmall.")
_add("all", "Both tables.")


benchmark.command()(suite)


@benchmark.command()
def figures(
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Folder of the pictures.")
    ] = IN_CHECKOUT / "figures",
    names: Annotated[
        list[str] | None, typer.Option("--names", help="Only these; commas or repeated.")
    ] = None,
    data: _Data = None,
    quick: Annotated[bool, typer.Option("--quick", help="Small versions, to try it out.")] = False,
    fresh: Annotated[bool, typer.Option("--fresh", help="Measure everything again.")] = False,
) -> None:
    """Draw the paper's figures again."""
    try:
        drawn = draw_all(output, data, listed(names), quick, fresh=fresh, say=typer.echo)
    except MissingDataError as error:
        raise ValueError(str(error)) from error
    for path in drawn:
        typer.echo(f"Written: {path}")


def _measure(cells: Path, output: Path, limits: dict[str, Any], chosen: tuple[Any, ...]) -> None:
    """Measure what is missing, then report all cells of the folder."""
    settings = Settings(**limits)
    plan = make_plan(*chosen)
    for sentence in plan.left_out:
        note(sentence)
    cells.mkdir(parents=True, exist_ok=True)
    interrupted = False
    try:
        with progress(plan, _outcome) as watch:
            fill(plan, CellStore(cells), settings, watch)
    except KeyboardInterrupt:
        interrupted = True
        note(f"interrupted; finished cells are in {cells}, the same command goes on")
    _report(cells, output, plan.splits, "all", None, None)
    if interrupted:
        raise typer.Exit(EXIT_INTERRUPTED)


def _report(
    cells: Path,
    output: Path,
    splits: int,
    task: str,
    datasets: list[str] | None,
    methods: list[str] | None,
) -> None:
    if not cells.is_dir():
        raise ValueError(f"{cells}: no such folder; measure some cells, or use --cells")
    tasks = ("classification", "regression") if task == "all" else (task,)
    store = CellStore(cells)
    plan = stored_plan(store, splits, tasks=tasks, datasets=datasets, method_names=methods)
    if not plan.methods:
        note(f"{cells} holds no cells of what was asked for: there is no report")
        return
    for path in write_report(gather(plan, store), output):
        typer.echo(f"Written: {path}")


def _outcome(record: dict[str, Any]) -> str:
    unit = " %" if record["metric"] == "accuracy" else ""
    seconds = record["tune_seconds"] + record["fit_seconds"]
    return f"{record['score']:.4g}{unit} in {seconds:.1f} s"
