"""The commands and their options."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

import tessella
from tessella.cli._fit import Task, fit_file
from tessella.cli._info import show_info
from tessella.cli._plugins import CommandGroup
from tessella.cli._predict import predict_file
from tessella.estimators import LearnedKernelSVC, LearnedKernelSVR

app = typer.Typer(
    cls=CommandGroup,
    help="Learn the kernel together with the support vector machine, with a certificate.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

_DEFAULTS = (LearnedKernelSVC().get_params(), LearnedKernelSVR().get_params())


def _option(flag: str, param: str, text: str) -> Any:
    """An option that shows the default of the estimators and leaves it to them."""
    values = dict.fromkeys(str(d[param]) for d in _DEFAULTS if d.get(param) is not None)
    return typer.Option(flag, help=text, show_default=" or ".join(values) or False)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"tessella {tessella.__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option("--version", help="Show the version.", callback=_show_version, is_eager=True),
    ] = False,
) -> None:
    pass


@app.command()
def fit(
    train: Annotated[Path, typer.Argument(help="Training data: .csv, .csv.gz, .tsv or .parquet.")],
    target: Annotated[str, typer.Option("--target", help="Column to predict.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Model file to write (.tsl).")],
    task: Annotated[
        Task, typer.Option("--task", help="auto: classification for text or two distinct values.")
    ] = Task.auto,
    drop: Annotated[
        list[str] | None,
        typer.Option("--drop", help="Column to leave out, such as an identifier; repeat for more."),
    ] = None,
    C: Annotated[float | None, _option("--C", "C", "Weight of the loss.")] = None,
    epsilon: Annotated[
        float | None,
        _option("--epsilon", "epsilon", "Tube without loss, in standard deviations of the target."),
    ] = None,
    degree: Annotated[
        int | None, _option("--degree", "degree", "Largest degree of the monomials.")
    ] = None,
    delta: Annotated[
        float | None, _option("--delta", "delta", "Margin of the integration box.")
    ] = None,
    tol: Annotated[
        float | None, _option("--tol", "tol", "Certified relative gap at which to stop.")
    ] = None,
    max_iter: Annotated[
        int | None, _option("--max-iter", "max_iter", "Limit on iterations.")
    ] = None,
    time_limit: Annotated[
        float | None, _option("--time-limit", "time_limit", "Limit in seconds; none if not given.")
    ] = None,
    precision: Annotated[
        str | None, _option("--precision", "precision", "Storage of kernels: float64 or float32.")
    ] = None,
    checkpoint: Annotated[
        Path | None,
        _option(
            "--checkpoint", "checkpoint", "File that keeps a long fit; the same command goes on."
        ),
    ] = None,
    jobs: Annotated[
        int | None, _option("--jobs", "n_jobs", "Threads; all cores if not given.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing output.")] = False,
) -> None:
    """Fit a model to a table and save it. Ctrl-C keeps the best model found so far."""
    given = {
        "C": C,
        "epsilon": epsilon,
        "degree": degree,
        "delta": delta,
        "tol": tol,
        "max_iter": max_iter,
        "time_limit": time_limit,
        "precision": precision,
        "checkpoint": checkpoint,
        "n_jobs": jobs,
    }
    params = {name: value for name, value in given.items() if value is not None}
    fit_file(train, target, output, task, params, drop=drop or (), force=force)


@app.command()
def predict(
    model: Annotated[Path, typer.Argument(help="Model file.")],
    new: Annotated[Path, typer.Argument(help="Rows to predict for: .csv, .tsv or .parquet.")],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="CSV file to write.", show_default="standard output"),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing output.")] = False,
) -> None:
    """Predict for the rows of a table; columns are found by name."""
    predict_file(model, new, output, force=force)


@app.command()
def info(
    model: Annotated[Path, typer.Argument(help="Model file.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show what is inside a model file."""
    show_info(model, as_json=as_json)


@app.command()
def demo(
    output: Annotated[Path, typer.Option("--output", "-o", help="Picture to write.")] = Path(
        "tessella-demo.png"
    ),
    plot: Annotated[
        bool, typer.Option(" /--no-plot", help="Write no picture.", show_default=False)
    ] = True,
) -> None:
    """Compare with familiar models on two data sets of scikit-learn."""
    from tessella.cli._demo import run_demo  # loads much of scikit-learn, which no other needs

    run_demo(output if plot else None)
