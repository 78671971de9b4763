"""Errors and warnings of the command line: one line on standard error, and an exit code."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import typer

EXIT_BAD_INPUT = 2
EXIT_INTERRUPTED = 130


class CommandError(ValueError):
    """Error that the user can correct. Only its message is shown."""


def complain(kind: str, message: object) -> None:
    """Write one line to standard error.

    Parameters
    ----------
    kind : {"error", "warning", "note"}
        Severity of the message.
    message : object
        Message to write. Line breaks are replaced by spaces.
    """
    typer.echo(f"tessella: {kind}: {' '.join(str(message).split())}", err=True)


@contextmanager
def one_line_errors() -> Iterator[None]:
    """Turn errors that users can cause into one line and an exit code, without a traceback."""
    try:
        yield
    except KeyboardInterrupt:
        complain("error", "interrupted; nothing was written")
        raise typer.Exit(EXIT_INTERRUPTED) from None
    except BrokenPipeError:
        raise  # the reader of the output has stopped, which is not an error
    except OSError as error:
        name = f"{error.filename}: " if error.filename else ""
        complain("error", f"{name}{error.strerror or error}")
        raise typer.Exit(EXIT_BAD_INPUT) from None
    except (ValueError, MemoryError) as error:
        complain("error", str(error) or "not enough memory")
        raise typer.Exit(EXIT_BAD_INPUT) from None


@contextmanager
def collected_warnings() -> Iterator[list[str]]:
    """Collect the texts of Python's warnings in a list, each once, instead of printing them."""
    texts: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield texts
    texts.extend(dict.fromkeys(str(warning.message) for warning in caught))


def require_writable(output: Path, *, force: bool, inputs: tuple[Path, ...] = ()) -> None:
    """Raise an error if an output file cannot be written, before any computation starts.

    Parameters
    ----------
    output : Path
        Path of the file that will be written.
    force : bool
        Whether an existing file may be replaced.
    inputs : tuple of Path
        Paths of input files, which must not be overwritten.
    """
    folder = output.parent
    if not folder.is_dir():
        raise CommandError(f"{output}: the directory {folder} does not exist")
    if not os.access(folder, os.W_OK):
        raise CommandError(f"{output}: the directory {folder} is not writable")
    if not output.exists():
        return
    if not output.is_file():
        raise CommandError(f"{output}: this path exists and is not a regular file")
    if any(path.exists() and path.samefile(output) for path in inputs):
        raise CommandError(
            f"{output}: this file is an input of the command and would be overwritten"
        )
    if not force:
        raise CommandError(f"{output}: the file exists already; use --force to replace it")
