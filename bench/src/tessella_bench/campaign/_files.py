"""Changed model files and checkpoints: a file is read as it was written, or refused.

Some of the cases change bytes, as a disk or a transfer does. The checksums have to notice, or the
change must not matter. More than half change a value and write the checksums that belong to it, as
a program could, so that the checks of values have to notice. Such a file may be read if its values
are those of some model, but a model that is read has to predict numbers, its certificate has to
follow from its bounds, and it has to be the same model after it is saved and read again.
"""

from __future__ import annotations

import hashlib
import io
import json
import tempfile
import zipfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import tessella
from tessella import KernelDictionary, TessellatedKernels
from tessella.kernels import Gaussian, Polynomial, PolynomialKernels
from tessella.persistence import ModelFileError
from tessella_bench.campaign._certificates import faults
from tessella_bench.campaign._outcome import CHANGED, FALSE, FINE, REFUSED, Outcome, judged

FloatArray = NDArray[np.float64]
Members = dict[str, bytes]

_RNG = np.random.default_rng(0)
_X = _RNG.random((24, 3))
_SIGN = np.where(_X[:, 0] > _X[:, 1], "yes", "no")
_THREE = np.digitize(_X[:, 0], [0.3, 0.7])
_TARGET = 10.0 + np.sin(5 * _X[:, 0]) + _X[:, 1]
_NEW = _RNG.random((9, 3))
_FEW = (Gaussian(0.5), Polynomial(2))
_TRIES = 3  # largest number of changes of a file
_RESIGNED, _OF_CHECKPOINTS = 0.6, 0.25  # shares of the cases


def _fitted() -> list[Any]:
    """Return one model of each kind."""
    sums = TessellatedKernels(floor=0.2) + KernelDictionary(_FEW)
    return [
        tessella.LearnedKernelSVC().fit(_X, _SIGN),
        tessella.LearnedKernelSVC(multi_class="separate").fit(_X, _THREE),
        tessella.LearnedKernelSVC(kernels=sums, scaling="quantile", max_iter=3).fit(_X, _SIGN),
        tessella.LearnedKernelSVR(kernels=PolynomialKernels(2)).fit(_X, _TARGET),
        tessella.LearnedKernelRidgeClassifier(scaling="robust").fit(_X, _THREE),
        tessella.LearnedKernelRidge(kernels="laplace").fit(_X, _TARGET),
        tessella.MultipleKernelSVC(kernels=_FEW).fit(_X, _THREE),
        tessella.MultipleKernelSVR(kernels=_FEW).fit(_X, _TARGET),
        tessella.TessellaClassifier(effort="low", n_jobs=1).fit(_X, _THREE),
        tessella.TessellaRegressor(effort="low", n_jobs=1).fit(_X, _TARGET),
    ]


@cache
def _models() -> list[tuple[Any, bytes]]:
    """Return the models and their files, which one process makes once."""
    found = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.tsl"
        for model in _fitted():
            tessella.save(model, path, metadata={"note": "campaign"})
            found.append((model, path.read_bytes()))
    return found


def _resumable() -> list[tuple[Any, NDArray[Any]]]:
    """Return estimators that leave a checkpoint, with their targets."""
    sums = TessellatedKernels() + KernelDictionary(_FEW)
    return [
        (tessella.LearnedKernelSVC(tol=1e-6, max_iter=4), _SIGN),
        (tessella.LearnedKernelSVR(kernels=sums, tol=1e-6, max_iter=4), _TARGET),
        (tessella.MultipleKernelSVC(kernels=_FEW, tol=1e-7, max_iter=1), _THREE),
        (tessella.LearnedKernelRidge(tol=1e-6, max_iter=3), _TARGET),
    ]


@cache
def _checkpoints() -> list[bytes]:
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for number, (model, y) in enumerate(_resumable()):
            path = Path(folder) / f"{number}.ckpt"
            model.set_params(checkpoint=path).fit(_X, y)
            found.append(path.read_bytes())
    return found


def run(number: int, folder: Path) -> Outcome:
    """Change a file, and read it."""
    rng = np.random.default_rng([2, number])
    signed = bool(rng.random() < _RESIGNED)
    change = _resigned if signed else _damaged
    suffix = "re-signed" if signed else "damaged"
    if rng.random() < _OF_CHECKPOINTS:
        which = int(rng.integers(len(_checkpoints())))
        return _resumed(f"checkpoint, {suffix}", which, change(rng, _checkpoints()[which]), folder)
    model, data = _models()[rng.integers(len(_models()))]
    path = folder / "model.tsl"
    path.write_bytes(change(rng, data))
    return _loaded(f"model, {suffix}", path, model, signed)


# ------------------------------------------------------------------------------------- judging


def _loaded(kind: str, path: Path, model: Any, signed: bool) -> Outcome:
    try:
        again = tessella.load(path)
        scores = _scores(again)
    except ModelFileError as error:
        return Outcome(REFUSED, kind, str(error)[len(str(path)) :][:200])
    except Exception as error:
        return judged(kind, error)
    same = _same(scores, _scores(model)) and _same(again.predict(_NEW), model.predict(_NEW))
    if same and _claims(again) == _claims(model):
        return Outcome(FINE, kind, "unchanged")
    if not signed:
        return Outcome(CHANGED, kind, "the model is another one, and the checksums agree")
    if not np.isfinite(scores).all():
        return Outcome(CHANGED, kind, "predictions are not finite")
    return _coherent(kind, again, scores, path)


def _scores(model: Any) -> Any:
    with np.errstate(all="ignore"):
        if hasattr(model, "decision_function"):
            return model.decision_function(_NEW)
        return model.predict_proba(_NEW) if hasattr(model, "classes_") else model.predict(_NEW)


def _same(left: Any, right: Any) -> bool:
    left, right = np.asarray(left), np.asarray(right)
    return left.dtype == right.dtype and np.array_equal(left, right)


def _claims(model: Any) -> list[str]:
    names = ("objective_", "lower_bound_", "gap_", "status_", "n_iter_", "classes_")
    return [repr(getattr(model, name, None)) for name in names]


def _coherent(kind: str, model: Any, scores: Any, path: Path) -> Outcome:
    """Judge a re-signed file that was read as another model: its claims must not contradict."""
    gap = model.gap_
    if type(gap) not in (int, float) or not gap >= 0.0:
        return Outcome(CHANGED, kind, f"gap_ is {gap!r}")
    if hasattr(model, "objective_") and np.isfinite(gap):
        expected = (model.objective_ - model.lower_bound_) / abs(model.objective_ or 1.0)
        if abs(gap - max(0.0, expected)) > 1e-6 * (1.0 + abs(expected)):
            return Outcome(FALSE, kind, f"gap_ is {gap!r}, that of the bounds is {expected!r}")
    try:
        tessella.save(model, path)
        again = tessella.load(path)
    except Exception as error:
        detail = f"a file was read that cannot be written again: {error!r}"
        return Outcome(CHANGED, kind, detail[:300])
    if not _same(_scores(again), scores) or _claims(again) != _claims(model):
        return Outcome(CHANGED, kind, "the model is another one after it was saved")
    return Outcome(FINE, kind, "a plausible other model")


def _resumed(kind: str, which: int, data: bytes, folder: Path) -> Outcome:
    """Continue the fit of a changed checkpoint; what it certifies has to be true."""
    model, y = _resumable()[which]
    path = folder / "fit.ckpt"
    path.write_bytes(data)
    try:
        model.set_params(checkpoint=path, max_iter=1000).fit(_X, y)
    except Exception as error:
        if type(error).__name__ == "CheckpointError":  # names the file and what to do
            return Outcome(REFUSED, kind, str(error)[len(str(path)) :][:200])
        return judged(kind, error)
    found = faults(model, _X, y)
    return Outcome(FALSE, kind, " ".join(found)) if found else Outcome(FINE, kind, "resumed")


# ------------------------------------------------------------------------------ changes of bytes


def _damaged(rng: np.random.Generator, data: bytes) -> bytes:
    changed = bytearray(data)
    for _ in range(int(rng.integers(1, _TRIES + 1))):
        start = int(rng.integers(len(changed))) if changed else 0
        length = int(rng.choice([1, 1, 8, 64, 512]))
        kind = int(rng.integers(7))
        if kind <= 1 and changed:
            changed[start] ^= 1 << int(rng.integers(8))
        elif kind == 2:
            changed = changed[:start]
        elif kind == 3:
            del changed[start : start + length]
        elif kind == 4:
            changed[start:start] = rng.integers(0, 256, length, dtype=np.uint8).tobytes()
        elif kind == 5:
            changed[start : start + length] = bytes(len(changed[start : start + length]))
        else:
            other = int(rng.integers(len(changed) or 1))
            changed[start : start + length] = changed[other : other + length]
    return bytes(changed)


# ----------------------------------------------------------------------------- changes of values


def _resigned(rng: np.random.Generator, data: bytes) -> bytes:
    """Change a value of the manifest or of an array, with checksums that agree."""
    members = dict(_members(data))
    manifest = json.loads(members["manifest.json"])
    for _ in range(int(rng.integers(1, _TRIES + 1))):
        if rng.random() < 0.5 and manifest["arrays"]:
            _change_array(rng, members, manifest)
        else:
            _change_json(rng, manifest)
    return _signed(members, manifest)


@cache
def _members(data: bytes) -> Members:
    """Return the members of one of the few files that all cases begin with."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def _signed(members: Members, manifest: dict[str, Any]) -> bytes:
    text = json.dumps(manifest).encode()
    own = {
        **members,
        "manifest.json": text,
        "manifest.sha256": hashlib.sha256(text).hexdigest().encode(),
    }
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name, content in own.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def _change_array(rng: np.random.Generator, members: Members, manifest: dict[str, Any]) -> None:
    specs = manifest["arrays"]
    if not isinstance(specs, dict) or not specs:
        return
    name = list(specs)[rng.integers(len(specs))]
    if name not in members:
        return
    array = np.load(io.BytesIO(members[name]), allow_pickle=False)
    changes: list[Callable[[], Any]] = [
        lambda: _with_entry(rng, array, np.nan),
        lambda: _with_entry(rng, array, np.inf),
        lambda: _with_entry(rng, array, -1e300),
        lambda: _with_entry(rng, array, 0.0),
        lambda: _with_factor(rng, array, -1.0),
        lambda: _with_factor(rng, array, 1.0 + float(10.0 ** rng.uniform(-15, -1))),
        lambda: _with_factor(rng, array, float(10.0 ** rng.uniform(-300, 300))),
        lambda: rng.permutation(array) if array.ndim else array,
        lambda: -array if array.dtype.kind in "fi" else array[::-1],
        lambda: array * 1e6 if array.dtype.kind == "f" else array,
        lambda: array[:-1],
        lambda: np.concatenate([array, array]) if array.ndim else array,
        lambda: array.T,
        lambda: array.ravel(),
        lambda: array[..., None],
        lambda: array.astype(np.float32) if array.dtype.kind == "f" else array,
        lambda: array.astype(str),
        lambda: np.full_like(array, array.flat[0]) if array.size else array,
    ]
    with np.errstate(all="ignore"):
        changed = np.asarray(changes[rng.integers(len(changes))]())
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, changed, version=(1, 0), allow_pickle=False)
    members[name] = buffer.getvalue()
    specs[name] = {
        "dtype": changed.dtype.str,
        "shape": list(changed.shape),
        "sha256": hashlib.sha256(members[name]).hexdigest(),
    }


def _with_factor(rng: np.random.Generator, array: Any, factor: float) -> Any:
    if array.dtype.kind != "f" or not array.size:
        return array
    changed = array.copy()
    changed.flat[int(rng.integers(array.size))] *= factor
    return changed


def _with_entry(rng: np.random.Generator, array: Any, value: float) -> Any:
    if array.dtype.kind not in "fi" or not array.size:
        return array
    changed = array.copy()
    place = int(rng.integers(array.size))
    changed.flat[place] = value if array.dtype.kind == "f" else int(np.nan_to_num(value) % 2**31)
    return changed


def _change_json(rng: np.random.Generator, manifest: dict[str, Any]) -> None:
    """Replace, remove or add one value somewhere in a manifest."""
    places = list(_places(manifest))
    holder, key = places[rng.integers(len(places))]
    value = holder[key]
    others: list[Any] = [
        "text",
        None,
        True,
        -1,
        0,
        1e308,
        {},
        [],
        {"$type": "float", "text": "nan"},
        {"$type": "float", "text": "inf"},
        -value if type(value) in (int, float) else "-1",
        str(value),
        [value],
        2 * value if type(value) in (int, float) else value,
        value * (1.0 + 1e-3 * rng.standard_normal()) if type(value) is float else value,
        value + 1 if type(value) is int else value,
    ]
    if rng.random() < 0.1 and isinstance(holder, dict):
        del holder[key]
    else:
        holder[key] = others[rng.integers(len(others))]


def _places(value: Any) -> Any:
    """Yield every holder and key of nested JSON values, except for the checksums themselves."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inner in items:
        if key in ("arrays", "sha256"):
            continue
        yield value, key
        if isinstance(inner, dict | list):
            yield from _places(inner)
