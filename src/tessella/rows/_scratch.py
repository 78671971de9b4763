"""Folders for temporary files, which do not outlive their process."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import uuid
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from errno import ENOSPC
from pathlib import Path

from tessella._archive import is_other_process, machine_digest
from tessella.backend import format_bytes

_PREFIX = "tessella-rows"
_REMEDY = "The environment variable TMPDIR chooses another folder"

# Folders of this process. Others of the same number are those of an earlier process.
_IN_USE: set[Path] = set()


class Scratch:
    """A folder for temporary files.

    It is removed by :meth:`close`, when the object is deleted, and when the interpreter ends.
    Folders of processes of this machine that were killed are removed when the next one is made.

    Parameters
    ----------
    parent : path-like or None
        Where the folder is made; by default where temporary files of Python are.
    expected : int
        Number of bytes that have to be free there.

    Raises
    ------
    OSError
        If the disk has less free space, or the folder cannot be made.
    """

    def __init__(self, parent: str | os.PathLike[str] | None, expected: int) -> None:
        where = Path(tempfile.gettempdir() if parent is None else parent).absolute()
        remove_abandoned(where)
        _require_space(where, expected)
        name = f"{_PREFIX}.{machine_digest()}-{os.getpid()}-{uuid.uuid4().hex}.tmp"
        self.path = where / name
        _IN_USE.add(self.path)
        self._remove = weakref.finalize(self, _remove, self.path, os.getpid())
        os.mkdir(self.path, 0o700)

    @property
    def closed(self) -> bool:
        """Whether the folder has been removed."""
        return not self._remove.alive

    def close(self) -> None:
        """Remove the folder and all files in it."""
        self._remove()

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Remove the folder if writing fails, because what is half written is of no use."""
        try:
            yield
        except OSError as error:
            self.close()
            reason = f"{error.strerror or error}. {_REMEDY}"
            raise OSError(error.errno, reason, str(self.path.parent)) from error
        except BaseException:
            self.close()
            raise


def remove_abandoned(parent: Path) -> None:
    """Remove the folders of processes of this machine that no longer run.

    Parameters
    ----------
    parent : Path
        Folder in which they are.
    """
    if os.name == "nt":
        return  # whether a process runs cannot be asked there without ending it
    ours = re.compile(rf"{re.escape(_PREFIX)}\.{machine_digest()}-(\d+)-[0-9a-f]{{32}}\.tmp")
    with suppress(OSError):  # a folder that cannot be listed
        for entry in parent.iterdir():
            found = ours.fullmatch(entry.name)
            if found and entry not in _IN_USE and not is_other_process(int(found[1])):
                shutil.rmtree(entry, ignore_errors=True)


def _require_space(parent: Path, expected: int) -> None:
    free = shutil.disk_usage(parent).free
    if free < expected:
        raise OSError(
            ENOSPC,
            f"Temporary files need {format_bytes(expected)} and the disk of this folder has "
            f"{format_bytes(free)} left. {_REMEDY}",
            str(parent),
        )


def _remove(path: Path, owner: int) -> None:
    if os.getpid() != owner:
        return  # a child of fork() has a copy of the object, but the folder is not its own
    shutil.rmtree(path, ignore_errors=True)
    _IN_USE.discard(path)
