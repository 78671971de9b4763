"""Archives of arrays and JSON that are written atomically and verified when they are read.

An archive is a zip file without compression that contains

- ``manifest.json``: the contents as JSON, and the dtype, shape and SHA-256 of every array;
- ``manifest.sha256``: the SHA-256 of the manifest;
- ``arrays/*.npy``: the arrays.

An archive contains no code, and reading it does not execute any. The checksums detect damage and
accidental changes; they are not a signature. Model files and checkpoints are two such formats.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
import platform
import re
import uuid
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from errno import ENOENT
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from tessella._version import __version__

Arrays = dict[str, NDArray[Any]]

_MANIFEST = "manifest.json"
_DIGEST = "manifest.sha256"
_ARRAY_KINDS = "biufUS"
_EPOCH = (1980, 1, 1, 0, 0, 0)  # the same content always gives the same bytes


class ArchiveError(ValueError):
    """An object cannot be written to an archive, or a file cannot be read as an archive."""


def storable(dtype: np.dtype[Any]) -> bool:
    """Return whether arrays of a dtype can be stored in an archive."""
    return dtype.kind in _ARRAY_KINDS and dtype.type is not np.longdouble


class ArrayStore:
    """Arrays to be written to an archive. An array that is added twice is stored once."""

    def __init__(self) -> None:
        self.members: dict[str, bytes] = {}
        self.specs: dict[str, dict[str, Any]] = {}
        # The arrays are kept as well, because the id of a deleted array may be reused.
        self._names: dict[int, tuple[str, NDArray[Any]]] = {}

    def add(self, array: NDArray[Any], name: str) -> str:
        """Store an array of a storable dtype, and return the name of its member."""
        if id(array) not in self._names:
            self._names[id(array)] = self._store(array, f"arrays/{name}.npy"), array
        return self._names[id(array)][0]

    def _store(self, array: NDArray[Any], member: str) -> str:
        buffer = io.BytesIO()
        np.lib.format.write_array(buffer, array, version=(1, 0), allow_pickle=False)
        data = self.members[member] = buffer.getvalue()
        shape = list(array.shape)
        self.specs[member] = {"dtype": array.dtype.str, "shape": shape, "sha256": _sha256(data)}
        return member


@dataclass(frozen=True)
class ArchiveFormat:
    """One kind of archive.

    Attributes
    ----------
    name : str
        Name of the format in the manifest.
    version : int
        Version of the format that is written, and the newest version that can be read.
    oldest : int
        Oldest version of the format that can be read.
    noun : str
        Name of such a file in messages.
    error : type of ArchiveError
        Error that is raised if a file cannot be read or written.
    others : mapping of str to str
        Messages for archives of other formats, by the name of the format.
    """

    name: str
    version: int
    oldest: int
    noun: str
    error: type[ArchiveError]
    others: Mapping[str, str] = field(default_factory=dict)

    def write(
        self, path: str | os.PathLike[str], content: dict[str, Any], store: ArrayStore
    ) -> None:
        """Write an archive, which replaces an existing file only once it is complete."""
        target = Path(os.path.realpath(path))
        if target.exists() and not target.is_file():
            raise self.error(f"{os.fspath(path)} exists and is not a regular file.")
        if not target.parent.is_dir():  # otherwise the error would name a temporary file
            raise FileNotFoundError(ENOENT, "The folder does not exist", str(target.parent))
        manifest = {
            "format": self.name,
            "format_version": self.version,
            "tessella_version": __version__,
            **content,
            "arrays": store.specs,
        }
        text = json.dumps(manifest, indent=1, allow_nan=False).encode()
        members = {_MANIFEST: text, _DIGEST: _sha256(text).encode(), **store.members}
        _write_atomically(target, members)

    @contextmanager
    def reading(self, path: str | os.PathLike[str]) -> Iterator[tuple[dict[str, Any], Arrays]]:
        """Read and verify the manifest and the arrays of a file.

        Errors in the body of the ``with`` statement are raised as errors of the file as well.
        """
        with open(path, "rb") as file:
            try:
                yield self._read(file)
            except ArchiveError as error:
                raise self.error(f"{os.fspath(path)}: {error}") from error
            except MemoryError:
                raise
            except Exception as error:  # zipfile, json and decoding raise many kinds of errors
                reason = " ".join(str(error).split()) or type(error).__name__
                raise self.error(f"{os.fspath(path)}: the file is damaged ({reason}).") from error

    def _read(self, file: BinaryIO) -> tuple[dict[str, Any], Arrays]:
        head = file.read(4)
        size = file.seek(0, os.SEEK_END)
        if not zipfile.is_zipfile(file):
            truncated = head == b"PK\x03\x04"
            raise ArchiveError("truncated file." if truncated else f"not a Tessella {self.noun}.")
        with zipfile.ZipFile(file) as archive:
            members = self._checked_members(archive, size)
            manifest = self._read_manifest(archive, members)
            _check_names(set(members), {_MANIFEST, _DIGEST, *manifest["arrays"]})
            specs = manifest["arrays"].items()
            return manifest, {
                name: self._read_array(name, archive.read(members[name]), spec)
                for name, spec in specs
            }

    def _checked_members(self, archive: zipfile.ZipFile, size: int) -> dict[str, zipfile.ZipInfo]:
        """Return the members by name, after checking that none is larger than the file."""
        infos = archive.infolist()
        members = {info.filename: info for info in infos}
        if _MANIFEST not in members:
            raise ArchiveError(f"not a Tessella {self.noun}: the archive has no {_MANIFEST}.")
        if len(members) < len(infos):
            raise ArchiveError("two members of the archive have the same name.")
        for info in infos:
            if info.compress_type != zipfile.ZIP_STORED or info.compress_size != info.file_size:
                raise ArchiveError(f"{info.filename} is compressed, but {self.noun}s never are.")
        if sum(info.file_size for info in infos) > size:
            raise ArchiveError("the members are larger than the file.")
        return members

    def _read_manifest(
        self, archive: zipfile.ZipFile, members: dict[str, zipfile.ZipInfo]
    ) -> dict[str, Any]:
        text = archive.read(members[_MANIFEST])
        if _DIGEST in members and archive.read(members[_DIGEST]).decode() != _sha256(text):
            raise ArchiveError(f"the checksum of {_MANIFEST} is wrong: the file was changed.")
        manifest = json.loads(text)
        name = manifest.get("format") if isinstance(manifest, dict) else None
        if name != self.name:
            other = f"not a Tessella {self.noun}: {_MANIFEST} has another format."
            raise ArchiveError(self.others.get(str(name), other))
        version = manifest["format_version"]
        if not isinstance(version, int) or isinstance(version, bool) or version < 1:
            raise ArchiveError(f"the format version {version!r} does not exist.")
        if version > self.version:
            raise ArchiveError(
                f"written by Tessella {manifest.get('tessella_version')}, format {version}; this "
                f"version reads up to {self.version}: upgrade Tessella."
            )
        if version < self.oldest:
            raise ArchiveError(
                f"written by Tessella {manifest.get('tessella_version')}, format {version}; this "
                f"version reads formats from {self.oldest} on: use the {self.noun} with that "
                "version, or fit again."
            )
        return manifest  # type: ignore[no-any-return]

    def _read_array(self, name: str, data: bytes, spec: dict[str, Any]) -> NDArray[Any]:
        """Return the array of a member. Its header is verified before memory is allocated."""
        if _sha256(data) != spec["sha256"]:
            raise ArchiveError(f"the checksum of {name} is wrong: the file was changed.")
        stream = io.BytesIO(data)
        if np.lib.format.read_magic(stream) != (1, 0):
            raise ArchiveError(f"{name} is not an array of version 1.0.")
        shape, fortran_order, dtype = np.lib.format.read_array_header_1_0(stream)
        if dtype.kind not in _ARRAY_KINDS or not dtype.itemsize:
            raise ArchiveError(f"{name} has dtype {dtype}, which {self.noun}s never contain.")
        if dtype.str != spec["dtype"] or list(shape) != spec["shape"]:
            raise ArchiveError(f"{name} does not have the dtype and shape in the manifest.")
        start = stream.tell()
        if min(shape, default=0) < 0 or len(data) - start != math.prod(shape) * dtype.itemsize:
            raise ArchiveError(f"the size of {name} does not match its shape.")
        if start == len(data):
            return np.empty(shape, dtype)
        array = np.frombuffer(data, dtype, offset=start).copy()
        return array.reshape(shape[::-1]).T if fortran_order else array.reshape(shape)


def remove_unfinished(path: str | os.PathLike[str]) -> None:
    """Delete temporary files that a process left behind when it was killed while writing a file.

    Only files for this very path are deleted, and only those of processes of this machine that no
    longer run: another process may be writing the same file at this moment.
    """
    target = Path(os.path.realpath(path))
    ours = re.compile(rf"\.{re.escape(target.name)}\.{machine_digest()}-(\d+)-[0-9a-f]{{32}}\.tmp")
    with suppress(OSError):  # a folder that cannot be listed, or a file of somebody else
        for entry in target.parent.iterdir():
            found = ours.fullmatch(entry.name)
            if found and entry not in _IN_WORK and not is_other_process(int(found[1])):
                entry.unlink(missing_ok=True)


# Temporary files that this process is writing, perhaps in several threads.
_IN_WORK: set[Path] = set()


def machine_digest() -> str:
    """Return a short digest of the name of this machine: only its processes can be looked up."""
    return _sha256(platform.node().encode())[:8]


def is_other_process(number: int) -> bool:
    """Return whether a process of that number is running that is not this one."""
    if number == os.getpid():
        return False  # of an earlier process with the same number, as happens in containers
    if os.name == "nt":
        return False  # signals would end the process, and files in use cannot be deleted there
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True


def _write_atomically(target: Path, members: dict[str, bytes]) -> None:
    remove_unfinished(target)
    own = f"{machine_digest()}-{os.getpid()}-{uuid.uuid4().hex}"
    temporary = target.with_name(f".{target.name}.{own}.tmp")
    _IN_WORK.add(temporary)
    try:
        with open(temporary, "xb") as file:
            with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
                for name, data in members.items():
                    archive.writestr(zipfile.ZipInfo(name, _EPOCH), data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    finally:
        _IN_WORK.discard(temporary)


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _check_names(present: set[str], expected: set[str]) -> None:
    if expected - present:
        raise ArchiveError(f"the member {min(expected - present)} is missing.")
    if present - expected:
        raise ArchiveError(f"the member {min(present - expected)} does not belong there.")
