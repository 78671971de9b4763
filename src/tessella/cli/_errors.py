"""How the command speaks of what went wrong: one line, on standard error, and an exit code."""

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
    """Something the user can put right; its text is all that is shown."""


def complain(kind: str, message: object) -> None:
    """Write one line to standard error.

    Parameters
    ----------
    kind : {"error", "warning", "note"}
        How bad it is.
    message : object
        What happened; line breaks in its text become spaces.
    """
    typer.echo(f"tessella: {kind}: {' '.join(str(message).split())}", err=True)


@contextmanager
def one_line_errors() -> Iterator[None]:
    """Turn what users can cause into one line and an exit code, never a traceback."""
    try:
        yield
    except KeyboardInterrupt:
        complain("error", "interrupted, nothing was written")
        raise typer.Exit(EXIT_INTERRUPTED) from None
    except BrokenPipeError:
        raise  # the reader of our output had enough: not an error to speak of
    except OSError as error:
        name = f"{error.filename}: " if error.filename else ""
        complain("error", f"{name}{error.strerror or error}")
        raise typer.Exit(EXIT_BAD_INPUT) from None
    except (ValueError, MemoryError) as error:
        complain("error", str(error) or "not enough memory")
        raise typer.Exit(EXIT_BAD_INPUT) from None


@contextmanager
def collected_warnings() -> Iterator[list[str]]:
    """Keep Python's warnings from the screen; the list holds their texts, each once."""
    texts: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield texts
    texts.extend(dict.fromkeys(str(warning.message) for warning in caught))


def require_writable(output: Path, *, force: bool, inputs: tuple[Path, ...] = ()) -> None:
    """Refuse an output that could not be written, before any work is done for it.

    Parameters
    ----------
    output : Path
        File that will be written.
    force : bool
        Whether an existing file may be replaced.
    inputs : tuple of Path
        Files that are read, and must not be replaced by mistake.
    """
    folder = output.parent
    if not folder.is_dir():
        raise CommandError(f"{output}: the directory {folder} does not exist")
    if not os.access(folder, os.W_OK):
        raise CommandError(f"{output}: the directory {folder} is not writable")
    if not output.exists():
        return
    if not output.is_file():
        raise CommandError(f"{output}: exists and is not a regular file")
    if any(path.exists() and path.samefile(output) for path in inputs):
        raise CommandError(f"{output}: is an input of this command and would be overwritten")
    if not force:
        raise CommandError(f"{output}: exists already; use --force to replace it")
