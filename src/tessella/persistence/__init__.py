"""Model files, which store a fitted estimator as plain data in one file.

A model file is an archive of arrays and JSON (:mod:`tessella._archive`). Its manifest contains the
class, the parameters and the fitted attributes of the estimator, and metadata of the caller.

A model file contains no code, and reading it does not execute any. The classes that it can contain
are listed in :mod:`tessella.persistence._types`, together with the kernel sets that were registered
with :func:`register_kernel_set`; saving a value of any other type raises an error. JSON stores a
float64 with all its digits, so a loaded model makes exactly the same predictions.

Loading checks more than checksums: values that no fit gives, such as a parameter that is not
positive semidefinite or a gap that is not that of the bounds, are refused.
"""

from __future__ import annotations

import json
import os
from typing import Any

from sklearn.utils.validation import check_is_fitted

from tessella._archive import ArchiveFormat, Arrays, ArrayStore
from tessella.persistence._checks import check_automatic, check_model
from tessella.persistence._checks import kernel_list as kernel_list
from tessella.persistence._coding import Decoder, Encoder
from tessella.persistence._types import (
    AUTOMATIC,
    MODULES,
    NEEDED,
    NEEDED_AUTOMATIC,
    NOT_OF_THE_MODEL,
    SKOPS_TRUSTED,
    ModelFileError,
    estimator_class,
    full_name,
    register_kernel_set,
)

__all__ = [
    "SKOPS_TRUSTED",
    "ModelFileError",
    "load",
    "read_info",
    "register_kernel_set",
    "save",
]

_FORMAT = ArchiveFormat(
    name="tessella-model",
    # 2: the parameter of a kernel may be weights or blocks, not only a matrix
    # 3: the scaling of a feature is a list of knots, not only an offset and a span
    # 4: machines of automatic models have a base machine and a partition of several trees
    version=4,
    oldest=4,
    noun="model file",
    error=ModelFileError,
    others={
        "tessella-checkpoint": "this is the checkpoint of a fit, not a model. To continue the fit, "
        "fit again with the same data and checkpoint=..., or with max_iter=0 to get the model of "
        "the checkpoint; then save the model."
    },
)


def save(
    model: Any, path: str | os.PathLike[str], *, metadata: dict[str, Any] | None = None
) -> None:
    """Write a fitted estimator to a model file.

    The file is written atomically: an existing file is replaced only once the new file is complete
    and on the disk.

    Parameters
    ----------
    model : estimator
        Fitted estimator to save: one of those of this library that predict.
    path : path-like
        Path of the file. By convention, its suffix is ``.tsl``.
    metadata : dict, optional
        Additional data to store in the file. It can contain anything that JSON can represent, and
        :func:`read_info` returns it.

    Raises
    ------
    ModelFileError
        If the model contains something that is not plain data, such as a function in a
        :class:`~tessella.KernelDictionary` or a kernel set that is not registered. Use pickle or
        joblib for such a model.
    sklearn.exceptions.NotFittedError
        If the model is not fitted.

    See Also
    --------
    register_kernel_set : Make model files store a kernel set of your own.
    """
    _FORMAT.write(path, *_content(model, {} if metadata is None else metadata))


def load(path: str | os.PathLike[str]) -> Any:
    """Load the estimator of a model file.

    Parameters
    ----------
    path : path-like
        Path of a file that was written by :func:`save`.

    Returns
    -------
    estimator
        Fitted estimator. Its predictions are exactly those of the estimator that was saved.

    Raises
    ------
    ModelFileError
        If the file is not a model file, is damaged, was written in a format that this version does
        not read, or contains a kernel set that is not registered.
    """
    with _FORMAT.reading(path) as (manifest, arrays):
        return _build(manifest, arrays)


def read_info(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read the description of a model file, without creating the estimator.

    Parameters
    ----------
    path : path-like
        Path of a file that was written by :func:`save`.

    Returns
    -------
    dict
        Contents of the manifest with plain values. Its keys include ``tessella_version``,
        ``estimator``, ``params``, ``fitted`` (scalar attributes), ``classes`` and
        ``feature_names`` (lists or None) and ``metadata``. There is also ``kernel_set`` (``family``
        and ``params`` of the kernel set on the scale of the training data), or ``leaderboard`` and
        ``columns`` (kinds of the columns of the table) for an automatic model.

    Raises
    ------
    ModelFileError
        If the file is not a model file, is damaged, was written in a format that this version does
        not read, or contains a kernel set that is not registered. The checksums are verified as
        in :func:`load`.
    """
    with _FORMAT.reading(path) as (manifest, arrays):
        decoder = Decoder(manifest, arrays)
        fitted = decoder.named(manifest["fitted"])
        lists = (fitted.get("classes_"), fitted.get("feature_names_in_"))
        classes, names = (None if values is None else values.tolist() for values in lists)
        described = {key: value for key, value in manifest.items() if key != "shared"}
        return {
            **described,
            "params": decoder.named(manifest["params"]),
            **_summary(manifest["estimator"], fitted),
            "fitted": {k: v for k, v in fitted.items() if isinstance(v, int | float | str)},
            "classes": classes,
            "feature_names": names,
        }


def _summary(estimator: str, fitted: dict[str, Any]) -> dict[str, Any]:
    """Return what the description of a model file says about the kernels of a model."""
    if estimator in AUTOMATIC:
        columns = list(fitted["_reader"].kinds)
        return {"leaderboard": fitted["leaderboard_"], "columns": columns}
    kernels = kernel_list(fitted["kernel_"])[0].kernels
    params = kernels.get_params(deep=False)
    return {"kernel_set": {"family": kernels.family, "params": params}}


def _content(model: Any, metadata: dict[str, Any]) -> tuple[dict[str, Any], ArrayStore]:
    """Return the manifest and the arrays of a model, before anything is written."""
    name = type(model).__name__
    if full_name(type(model)) != f"{MODULES.get(name)}.{name}":
        remedy = "store model.to_local()" if hasattr(model, "to_local") else "use pickle or joblib"
        raise ModelFileError(
            f"A {name} cannot be stored in a model file, only {', '.join(MODULES)} can; {remedy}."
        )
    check_is_fitted(model, NEEDED_AUTOMATIC if name in AUTOMATIC else NEEDED)
    params = model.get_params(deep=False)
    left_out = {*params, *NOT_OF_THE_MODEL}
    fitted = {key: value for key, value in vars(model).items() if key not in left_out}
    encoder = Encoder()
    content = {
        "estimator": name,
        "params": encoder.named(params),
        "fitted": encoder.named(fitted),
        "metadata": _checked_metadata(metadata),
        "shared": encoder.shared,
    }
    return content, encoder.store


def _checked_metadata(metadata: dict[str, Any]) -> dict[str, Any]:
    try:
        unchanged = json.loads(json.dumps(metadata, allow_nan=False)) == metadata
    except (TypeError, ValueError, RecursionError):
        unchanged = False
    if not unchanged or not isinstance(metadata, dict):
        raise ModelFileError(
            "metadata must be a dict that JSON can represent: its keys must be text and its "
            "numbers finite, and it must contain lists instead of tuples."
        )
    return metadata


def _build(manifest: dict[str, Any], arrays: Arrays) -> Any:
    cls = estimator_class(manifest["estimator"])
    decoder = Decoder(manifest, arrays)
    params = decoder.named(manifest["params"])
    model = cls(**params)
    for name, value in decoder.named(manifest["fitted"]).items():
        if name in params or name.startswith("__") or callable(getattr(cls, name, None)):
            raise ModelFileError(f"{name!r} is not a fitted attribute of {cls.__name__}.")
        setattr(model, name, value)
    if manifest["estimator"] in AUTOMATIC:
        check_automatic(model)
    else:
        check_model(model)
    return model
