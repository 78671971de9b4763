"""The ``tessella`` command: fit, predict, info and demo without writing Python.

Nothing beyond the library itself is imported until :func:`main` runs, so that an installation
without the extra packages can say what is missing.
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
            f"tessella: error: the command line needs the package {missing}; this installs all it "
            "needs: python -m pip install 'tessella[cli]'\n"
        )
        raise SystemExit(1) from None
    app(prog_name="tessella")
