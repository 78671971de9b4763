"""Commands and options of the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

import tessella
from tessella.cli._fit import Model, Task, fit_file
from tessella.cli._info import show_info
from tessella.cli._plugins import CommandGroup
from tessella.cli._predict import predict_file
from tessella.estimators import LearnedKernelSVC, LearnedKernelSVR

app = typer.Typer(
    cls=CommandGroup,
    help="Fit kernel machines to tables, predict with them, and show what they have learned.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

_DEFAULTS = (LearnedKernelSVC().get_params(), LearnedKernelSVR().get_params())


_AUTOMATIC = "Options of --model automatic"
_LEARNED_KERNEL = "Options of --model learned-kernel"


def _option(flag: str, param: str, text: str, panel: str | None = None) -> Any:
    """Create an option that shows the default value of the estimators in its help."""
    values = dict.fromkeys(str(d[param]) for d in _DEFAULTS if d.get(param) is not None)
    default = " or ".join(values) or False
    return typer.Option(flag, help=text, show_default=default, rich_help_panel=panel)


def _own_option(flag: str, param: str, text: str) -> Any:
    """Create an option of machines with a learned kernel."""
    return _option(flag, param, text, _LEARNED_KERNEL)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"tessella {tessella.__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Show the version and exit.", callback=_show_version, is_eager=True
        ),
    ] = False,
) -> None:
    pass


@app.command()
def fit(
    train: Annotated[
        Path,
        typer.Argument(
            help="Training data: .csv, .csv.gz, .tsv or .parquet; with --max-leaf-rows also a "
            "folder of Parquet files."
        ),
    ],
    target: Annotated[str, typer.Option("--target", help="Name of the column to predict.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Model file to write (.tsl).")],
    task: Annotated[
        Task,
        typer.Option(
            "--task",
            help="Task; auto means classification if the target is text or has two values.",
        ),
    ] = Task.auto,
    drop: Annotated[
        list[str] | None,
        typer.Option("--drop", help="Column to leave out, such as an identifier. Can be repeated."),
    ] = None,
    model: Annotated[
        Model,
        typer.Option(
            "--model",
            help="automatic takes text, dates and gaps, and chooses everything itself. "
            "learned-kernel is one support vector machine with a learned kernel, for numbers.",
        ),
    ] = Model.automatic,
    time_limit: Annotated[
        float | None,
        _option(
            "--time-limit", "time_limit", "Time limit in seconds. By default there is no limit."
        ),
    ] = None,
    jobs: Annotated[
        int | None, _option("--jobs", "n_jobs", "Number of threads. By default all cores are used.")
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Replace an existing output file.")
    ] = False,
    effort: Annotated[
        str | None,
        typer.Option(
            "--effort",
            help="How much is tried: low, medium or high.",
            show_default="medium",
            rich_help_panel=_AUTOMATIC,
        ),
    ] = None,
    categorical: Annotated[
        list[str] | None,
        typer.Option(
            "--categorical",
            help="Column of numbers to treat as categories, such as codes. Can be repeated.",
            rich_help_panel=_AUTOMATIC,
        ),
    ] = None,
    C: Annotated[float | None, _own_option("--C", "C", "Weight of the loss.")] = None,
    epsilon: Annotated[
        float | None,
        _own_option(
            "--epsilon",
            "epsilon",
            "Largest error without loss, in standard deviations of the target.",
        ),
    ] = None,
    degree: Annotated[
        int | None, _own_option("--degree", "degree", "Largest degree of the monomials.")
    ] = None,
    delta: Annotated[
        float | None,
        _own_option("--delta", "delta", "Margin of the integration box around the scaled data."),
    ] = None,
    solver: Annotated[
        str | None, _own_option("--solver", "solver", "Algorithm that learns the kernel.")
    ] = None,
    tol: Annotated[
        float | None, _own_option("--tol", "tol", "Certified relative gap at which the fit stops.")
    ] = None,
    max_iter: Annotated[
        int | None, _own_option("--max-iter", "max_iter", "Largest number of iterations.")
    ] = None,
    precision: Annotated[
        str | None,
        _own_option("--precision", "precision", "Precision of stored kernels: float64 or float32."),
    ] = None,
    checkpoint: Annotated[
        Path | None,
        _own_option(
            "--checkpoint",
            "checkpoint",
            "File that stores the state of the fit; repeat the command to continue.",
        ),
    ] = None,
    max_leaf_rows: Annotated[
        int | None,
        _own_option(
            "--max-leaf-rows",
            "max_leaf_rows",
            "Divide more rows than this into leaves, such as 5000. Parquet files are then read in "
            "parts and may be larger than memory.",
        ),
    ] = None,
) -> None:
    """Fit a model to a table and save it. Ctrl-C keeps the best model found so far.

    A table: tessella fit houses.csv --target price -o model.tsl

    A folder of Parquet files with numbers, larger than memory: tessella fit trips --target seconds
    --model learned-kernel --max-leaf-rows 5000 -o model.tsl
    """
    given = {
        "effort": effort,
        "categorical_features": categorical or None,
        "solver": solver,
        "C": C,
        "epsilon": epsilon,
        "degree": degree,
        "delta": delta,
        "tol": tol,
        "max_iter": max_iter,
        "time_limit": time_limit,
        "precision": precision,
        "checkpoint": checkpoint,
        "max_leaf_rows": max_leaf_rows,
        "n_jobs": jobs,
    }
    params = {name: value for name, value in given.items() if value is not None}
    fit_file(train, target, output, task, model, params, drop=drop or (), force=force)


@app.command()
def predict(
    model: Annotated[Path, typer.Argument(help="Path of a model file.")],
    new: Annotated[
        Path,
        typer.Argument(
            help="Table with rows to predict for: .csv, .tsv, .parquet or a folder of them."
        ),
    ],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="CSV file to write.", show_default="standard output"),
    ] = None,
    proba: Annotated[
        bool,
        typer.Option("--proba", help="Also write the probability of each class."),
    ] = False,
    interval: Annotated[
        float | None,
        typer.Option(
            "--interval",
            help="Also write the ends of intervals that contain the target with this probability, "
            "such as 0.9.",
            show_default=False,
        ),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Replace an existing output file.")
    ] = False,
) -> None:
    """Predict for the rows of a table. The columns are matched by name."""
    predict_file(model, new, output, proba=proba, interval=interval, force=force)


@app.command()
def info(
    model: Annotated[Path, typer.Argument(help="Path of a model file.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Show the contents of a model file."""
    show_info(model, as_json=as_json)


@app.command()
def demo(
    output: Annotated[Path, typer.Option("--output", "-o", help="Figure to write.")] = Path(
        "tessella-demo.png"
    ),
    plot: Annotated[
        bool, typer.Option(" /--no-plot", help="Do not write a figure.", show_default=False)
    ] = True,
) -> None:
    """Compare Tessella with other models on two data sets of scikit-learn."""
    # Imports much of scikit-learn, which other commands do not need.
    from tessella.cli._demo import run_demo

    run_demo(output if plot else None)
