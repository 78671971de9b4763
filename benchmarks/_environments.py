"""Python environments of peers that need packages of their own."""

from __future__ import annotations

import subprocess
import sys
import venv
from collections.abc import Sequence
from pathlib import Path

from _common import say


def environment(folder: Path, requirements: Sequence[Sequence[str]]) -> str:
    """The Python of an environment, made when it is not there yet.

    Each of the requirements is what one call of pip installs.
    """
    python = folder / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    ready = folder / "complete"
    if not ready.is_file():
        say(f"  making the environment {folder.name}")
        venv.create(folder, with_pip=True, clear=True)
        for packages in requirements:
            command = [str(python), "-m", "pip", "install", "--quiet", *packages]
            subprocess.run(command, check=True, capture_output=True)
        ready.touch()
    return str(python)
