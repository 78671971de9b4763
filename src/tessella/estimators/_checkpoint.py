"""Checkpoints: files from which an interrupted fit continues.

Dual vectors are stored in the stacked layout of :mod:`tessella.estimators._layouts`, that of the
solver. It belongs to the merged and sorted rows, so the order of the rows may change between runs.
"""

from __future__ import annotations

import hashlib
import os
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tessella._archive import ArchiveError, ArchiveFormat, ArrayStore, remove_unfinished
from tessella.cones import Blocks, Cone, Point
from tessella.estimators._training_set import TrainingSet
from tessella.kernels import KernelSet, UnitBox
from tessella.solvers import IterationRecord, Monitor, SolverResult, SolverStatus
from tessella.solvers._result import continued
from tessella.svm import DualProblem

FloatArray = NDArray[np.float64]

INTERVAL = 30.0  # smallest number of seconds between two writes within a run

# After these the same fit would not get further; after all others it can be continued.
FINISHED = (SolverStatus.OPTIMAL, SolverStatus.VALIDATION, SolverStatus.STALLED)


class CheckpointError(ArchiveError):
    """A file cannot be read as a checkpoint, or it is the checkpoint of another fit."""


_FORMAT = ArchiveFormat(
    name="tessella-checkpoint",
    version=2,
    oldest=2,
    noun="checkpoint",
    error=CheckpointError,
    others={"tessella-model": "this is a model file, not a checkpoint."},
)


class StartingPoint(Monitor):
    """The result of an earlier run from which a run starts; dual vectors are stacked.

    Parameters
    ----------
    parameter : ndarray or Blocks
        Parameter of the kernel.
    w : ndarray of shape (m,) or None
        Dual vector of the best pair; None if the rows have changed.
    w_bound : ndarray of shape (m,) or None
        Dual vector that proves the lower bound.
    """

    def __init__(self, parameter: Point, w: FloatArray | None, w_bound: FloatArray | None) -> None:
        self.parameter = parameter
        self.w = w
        self._w_bound = w_bound

    def require_place_in(self, cone: Cone, dual: DualProblem, path: Any) -> None:
        """Raise CheckpointError if the pair of a checkpoint is not one of its problem."""
        if not cone.contains(self.parameter) or not all(
            _has_place_in(dual, w) for w in (self.w, self._w_bound)
        ):
            raise CheckpointError(
                f"{os.fspath(path)}: the checkpoint has a parameter or a dual vector that its "
                "problem cannot have. Delete it or give another path."
            )

    def require_sizes(self, cone: Cone, size: int, path: Any) -> None:
        """Raise CheckpointError if the pair cannot be one of leaves with some number of samples."""
        vectors = (self.w, self._w_bound)
        sized = all(w is not None and w.shape == (size,) for w in vectors)
        if not (cone.contains(self.parameter) and sized):
            raise CheckpointError(
                f"{os.fspath(path)}: the checkpoint has a parameter or a dual vector that its "
                "problem cannot have. Delete it or give another path."
            )

    def with_parameter(self, parameter: Point) -> StartingPoint:
        """The same dual vectors with another parameter."""
        return StartingPoint(parameter, self.w, self._w_bound)

    def known(self) -> Sequence[tuple[Point, FloatArray]]:
        """The parameter with the dual vectors of the best value and of the best lower bound."""
        return [(self.parameter, w) for w in (self.w, self._w_bound) if w is not None]


def _has_place_in(dual: DualProblem, w: FloatArray | None) -> bool:
    """Return whether a dual vector has the size of a problem and a value that does not overflow."""
    with np.errstate(over="ignore", invalid="ignore"):
        return w is not None and w.shape == (dual.size,) and bool(np.isfinite(dual.kappa(w)))


@dataclass(frozen=True)
class _CheckpointContent:
    """The content of a checkpoint file."""

    fingerprint: dict[str, str]
    finished: bool
    start: StartingPoint
    history: tuple[IterationRecord, ...]
    scores: list[float]


class Checkpoint(Monitor):
    """Writes the best certified pair of a fit to a file, and reads that of an earlier run.

    The file is replaced at records of the solver, at most every :data:`INTERVAL` seconds, and when
    the run ends for whatever reason. A failure to write is only a warning, because the fit itself
    can go on.

    Parameters
    ----------
    path : path-like
        Path of the file. An existing file is read at once.
    fingerprint : dict
        Digests from :func:`fingerprint`, with which those of an existing file have to agree.

    Attributes
    ----------
    start : StartingPoint or None
        The result of an earlier run of the same fit.
    scores : list of float
        Validation scores. It starts with those of the earlier run, and the monitor that computes
        scores appends to it.
    span : Span or None
        Span of the rows in whose coordinates the parameter is learned. The file has the parameter
        of the kernel set, because coordinates of the span differ from machine to machine.
    """

    def __init__(self, path: str | os.PathLike[str], fingerprint: dict[str, str]) -> None:
        self._path = Path(path)
        self._fingerprint = fingerprint
        remove_unfinished(path)
        earlier = self._read_earlier()
        self.start = None if earlier is None else earlier.start
        self.scores: list[float] = [] if earlier is None else earlier.scores
        self._history = () if earlier is None else earlier.history
        self.span: Any = None
        self._written = time.monotonic()
        self._unsaved: Callable[[], SolverResult] | None = None
        self._failed = False

    def _read_earlier(self) -> _CheckpointContent | None:
        if not self._path.exists():
            return None
        try:
            earlier = _read(self._path)
        except CheckpointError as error:
            raise CheckpointError(f"{error} Delete it or give another path.") from error
        changed = [k for k, v in self._fingerprint.items() if earlier.fingerprint.get(k) != v]
        if not changed:
            return earlier
        if earlier.finished:
            return None  # that fit is finished, so its file may be replaced
        raise CheckpointError(
            f"{self._path} is the checkpoint of another fit, which is not finished: it has other "
            f"{' and '.join(changed)}. Give another path, or delete the file if it is not needed."
        )

    def record(self, record: IterationRecord, answer: Callable[[], SolverResult]) -> None:  # noqa: ARG002
        """Write the file if enough time has passed since it was last written."""
        self._unsaved = answer
        if time.monotonic() - self._written >= INTERVAL:
            self.flush()

    def leaf(self, done: int, total: int, answer: Callable[[], SolverResult]) -> None:  # noqa: ARG002
        """Write the file within a pass over leaves, if enough time has passed."""
        if time.monotonic() - self._written >= INTERVAL:
            self._write(answer())

    def flush(self) -> None:
        """Write the latest record if it has not been written yet."""
        if self._unsaved is not None:
            self._write(self._unsaved())

    def finish(self, result: SolverResult) -> SolverResult:
        """Write the result of the run, and return it with the history of all runs."""
        self._write(result)
        return replace(result, history=self._whole_history(result))

    def _whole_history(self, result: SolverResult) -> tuple[IterationRecord, ...]:
        return continued(self._history, result.history)

    def _write(self, result: SolverResult) -> None:
        store = ArrayStore()
        history = self._whole_history(result)
        parameter = result.parameter if self.span is None else self.span.whole(result.parameter)
        several = isinstance(parameter, Blocks)
        blocks = parameter.parts if several else (parameter,)
        pair: dict[str, Any] = {"w": store.add(result.w, "w")}
        pair["w_bound"] = store.add(result.w_bound, "w_bound")
        pair["blocks"] = [store.add(block, f"block.{k}") for k, block in enumerate(blocks)]
        pair["several"] = several
        columns = {
            f.name: store.add(np.array([getattr(r, f.name) for r in history]), f"history.{f.name}")
            for f in fields(IterationRecord)
        }
        content = {
            "fingerprint": self._fingerprint,
            "finished": result.status in FINISHED,
            "seconds": history[-1].time,
            "gap": _finite(result.gap),
            "pair": pair,
            "history": columns,
            "validation_scores": [_finite(score) for score in self.scores],
        }
        try:
            _FORMAT.write(self._path, content, store)
        except OSError as error:
            if error.errno is None:  # raised by a signal handler, such as a TimeoutError
                raise
            self._warn_of_failure(error)
        self._written, self._unsaved = time.monotonic(), None

    def _warn_of_failure(self, error: OSError) -> None:
        if not self._failed:
            warnings.warn(
                f"The checkpoint {self._path} could not be written ({error}). The fit continues "
                "without it.",
                RuntimeWarning,
                stacklevel=2,
            )
        self._failed = True


def _finite(number: float) -> float | None:
    """Return a number as JSON can represent it: None for one that is not finite."""
    return float(number) if np.isfinite(number) else None


def _read(path: Path) -> _CheckpointContent:
    with _FORMAT.reading(path) as (manifest, arrays):
        _check_plain_values(manifest)
        pair = manifest["pair"]
        w, w_bound = arrays[pair["w"]], arrays[pair["w_bound"]]
        blocks = [arrays[name] for name in pair["blocks"]]
        shaped = all(a.ndim == 1 or (a.ndim == 2 and len(a) >= a.shape[1]) for a in blocks)
        finite = all(a.dtype == np.float64 and np.isfinite(a).all() for a in (*blocks, w, w_bound))
        counted = pair["several"] == (len(blocks) > 1) and blocks
        if not (shaped and finite and counted) or w.ndim != 1 or w.shape != w_bound.shape:
            raise ArchiveError("the arrays of the checkpoint do not fit together.")
        parameter: Point = Blocks(blocks) if pair["several"] else blocks[0]
        columns = {name: arrays[member].tolist() for name, member in manifest["history"].items()}
        rows = zip(*columns.values(), strict=True)
        history = tuple(IterationRecord(**dict(zip(columns, row, strict=True))) for row in rows)
        if not history or not all(record.is_sound for record in history):
            raise ArchiveError("the history of the checkpoint has records that no fit gives.")
        return _CheckpointContent(
            fingerprint=manifest["fingerprint"],
            finished=manifest["finished"],
            start=StartingPoint(parameter, w, w_bound),
            history=history,
            scores=[np.nan if own is None else own for own in manifest["validation_scores"]],
        )


def _check_plain_values(manifest: dict[str, Any]) -> None:
    """Raise an error for values of the manifest that no fit writes, such as text for a number."""
    fingerprint, scores, gap = (manifest[k] for k in ("fingerprint", "validation_scores", "gap"))
    sound = (
        isinstance(fingerprint, dict)
        and all(isinstance(own, str) for own in fingerprint.values())
        and type(manifest["finished"]) is type(manifest["pair"]["several"]) is bool
        and isinstance(scores, list)
        and all(own is None or type(own) in (int, float) for own in (*scores, gap))
        and (gap is None or gap >= 0)
        and type(manifest["seconds"]) in (int, float)
        and manifest["seconds"] >= 0
    )
    if not sound:
        raise ArchiveError("the checkpoint has values that no fit gives.")


def fingerprint(
    estimator: str,
    rows: TrainingSet,
    dual: DualProblem,
    kernels: KernelSet,
    box: UnitBox,
    rule: str | None = None,
) -> dict[str, str]:
    """Digests of everything that defines a training problem, by name.

    Solver, tolerance, limits, precision and threads are left out, so they may change between two
    runs. The second run certifies the pair of the first again, so that even an equal fingerprint
    of two different problems could not lead to a wrong certificate. `rule` names how a parameter
    that is not learned was chosen.
    """
    machine = [dual.linear, dual.lower, dual.upper, dual.epsilon]
    if dual.curvature.any():  # otherwise the digests of older checkpoints stay the same
        machine.append(dual.curvature)
    return {
        "estimator": estimator,
        "rows": _digest((rows.X, rows.y)),
        "C, weights or epsilon": _digest(tuple(machine)),
        "kernels": _digest((type(kernels), kernels.get_params(deep=False), rule)),
        "scaling": _digest(box),
    }


def leaves_fingerprint(
    estimator: str, rows: str, params: dict[str, Any], box: UnitBox
) -> dict[str, str]:
    """Digests of everything that defines a problem in leaves, by name.

    `rows` identifies the data, and `params` are the parameters of the estimator that define the
    problem, the partition among them.
    """
    return {
        "estimator": estimator,
        "rows": _digest(rows),
        "parameters": _digest(params),
        "scaling": _digest(box),
    }


def _digest(value: Any) -> str:
    digest = hashlib.sha256()
    _feed(digest.update, value)
    return digest.hexdigest()


def _feed(update: Callable[[bytes], None], value: Any) -> None:
    """Feed bytes that distinguish values; functions and classes are represented by their names."""
    if isinstance(value, np.ndarray):
        update(f"{value.dtype.str}{value.shape}".encode())
        update(np.ascontiguousarray(value).tobytes())
    elif isinstance(value, dict):
        _feed(update, sorted(value.items()))
    elif isinstance(value, list | tuple):
        update(f"{len(value)}(".encode())
        for item in value:
            _feed(update, item)
    elif isinstance(value, np.generic):
        _feed(update, value.item())
    elif is_dataclass(value) and not isinstance(value, type):
        _feed(update, (type(value), {f.name: getattr(value, f.name) for f in fields(value)}))
    elif value is None or isinstance(value, bool | int | float | str):
        update(f"{value!r};".encode())
    else:
        kind = value if hasattr(value, "__qualname__") else type(value)
        update(f"{kind.__module__}.{kind.__qualname__};".encode())


def check_path(path: Any) -> None:
    """Raise ValueError for a path that cannot be written, before any work is done."""
    if not isinstance(path, str | os.PathLike):
        raise ValueError(f"checkpoint={path!r} must be None or the path of a file.")
    folder = Path(path).absolute().parent
    if not folder.is_dir():
        raise ValueError(f"checkpoint={os.fspath(path)!r}: there is no directory {folder}.")
    if not os.access(folder, os.W_OK):
        raise ValueError(f"checkpoint={os.fspath(path)!r}: the directory {folder} is not writable.")
    if Path(path).exists() and not Path(path).is_file():
        raise ValueError(f"checkpoint={os.fspath(path)!r} exists and is not a regular file.")
