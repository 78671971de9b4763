"""The ``tessella`` command, which fits models, predicts and shows a demo without writing Python.

The packages of the command line are imported when :func:`main` runs, so that an installation
without them can report what is missing.
"""

from __future__ import annotations

import sys

__all__ = ["main"]

_EXTRAS = ("typer", "click", "rich", "pyarrow")


def main() -> None:
    """Entry point of the console script."""
    try:
        from tessella.cli._app import app
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing not in _EXTRAS:
            raise
        sys.stderr.write(
            f"tessella: error: the command line needs the package {missing}; install all packages "
            "that it needs with python -m pip install 'tessella[cli]'\n"
        )
        raise SystemExit(1) from None
    app(prog_name="tessella")
