"""The command ``tessella info``, which shows the contents of a model file."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import typer

from tessella.cli._info_automatic import describe_automatic, show_automatic
from tessella.cli._predict import feature_columns
from tessella.cli._render import as_gap, as_text, show_pairs, show_sentence
from tessella.inspection._html import linear_note, verdict
from tessella.inspection._summary import (
    Facts,
    facts_of,
    kernel_weights,
    part_shares,
    quick_linear_share,
)
from tessella.kernels import FittedDictionary, Gaussian, KernelSet, Polynomial
from tessella.persistence import kernel_list, load, read_info

_FEW = 8  # items of a list that are shown to people
_OPTIONAL = (
    "classes",
    "target",
    "feature_names",
    "leaves",
    "trees",
    "side_of_P",
    "rank_of_P",
    "shares_of_parts",
    "kernel_weights",
    "linear_share",
)


def show_info(path: Path, *, as_json: bool) -> None:
    """Print the contents of a model file, as a table or as JSON.

    Parameters
    ----------
    path : Path
        Path of the model file.
    as_json : bool
        Whether JSON is printed instead of a table.
    """
    info, model = read_info(path), load(path)
    automatic = "leaderboard" in info
    description = jsonable(describe_automatic(info, model) if automatic else describe(info, model))
    if as_json:
        typer.echo(json.dumps(description, indent=2, allow_nan=False))
    elif automatic:
        show_automatic(str(path), description)
    else:
        show_pairs(str(path), _for_people(description))
        _show_verdict(model, description)


def _show_verdict(model: Any, description: dict[str, Any]) -> None:
    """Print what a user of the model has to know: that it is not to be used, or is linear."""
    facts = facts_of(model)
    if not facts.within_tol:
        show_sentence(verdict(facts), style=None if facts.is_usable else "bold red")
    note = linear_note(description["linear_share"])
    if note:
        show_sentence(note)


def describe(info: dict[str, Any], model: Any) -> dict[str, Any]:
    """Return the description of a model with a learned kernel or weighted kernels."""
    facts = facts_of(model)
    return {
        "estimator": info["estimator"],
        "task": "regression" if info["classes"] is None else "classification",
        "classes": info["classes"],
        "target": info["metadata"].get("target"),
        "parameters": info["params"],
        "rows": facts.rows,
        "features": facts.features,
        "feature_names": feature_columns(info),
        **_kernel(model, facts),
        "support_vectors": facts.support_vectors,
        "leaves": facts.n_leaves,
        "trees": facts.n_trees,
        "objective": facts.objective,
        "lower_bound": facts.lower_bound,
        "gap": facts.gap,
        "usable": facts.is_usable,
        "linear_share": quick_linear_share(model),
        "status": facts.status,
        "solver": facts.solver,
        "iterations": facts.iterations,
        "svm_solves": facts.svm_solves,
        "newton_steps": facts.newton_steps,
        "seconds": facts.seconds,
        "tessella_version": info["tessella_version"],
        "format_version": info["format_version"],
        "metadata": info["metadata"],
    }


def _kernel(model: Any, facts: Facts) -> dict[str, Any]:
    """Return the kernel set, and of its parts the matrices, shares and weights."""
    kernels = jsonable(kernel_list(model.kernel_)[0].kernels)
    shares, weights = part_shares(model), kernel_weights(model)
    return {
        "kernel_family": kernels.pop("family"),
        "kernel_parameters": kernels,
        "side_of_P": _one_or_all(facts.matrix_sides),
        "rank_of_P": _one_or_all([max(ranks) for ranks in facts.matrix_ranks()]),
        "shares_of_parts": [list(pair) for pair in shares] if len(shares) > 1 else None,
        "kernel_weights": [list(pair) for pair in weights] if facts.n_weights else None,
    }


def _one_or_all(values: list[int]) -> Any:
    """Return None, the only value, or all values of a list."""
    return values if len(values) > 1 else next(iter(values), None)


def jsonable(value: Any) -> Any:
    """Convert a value to plain JSON: text keys, kernel sets by family, None for infinities."""
    if isinstance(value, dict):
        return {str(key): jsonable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [jsonable(item) for item in value]
    if isinstance(value, FittedDictionary):  # its kernels are listed with their weights
        return {"family": "dictionary", "n_kernels": len(value)}
    if isinstance(value, KernelSet):
        return {"family": value.family, **jsonable(value.get_params(deep=False))}
    if isinstance(value, Gaussian | Polynomial):
        return {"kernel": type(value).__name__, **jsonable(vars(value))}
    if isinstance(value, np.ndarray):
        return jsonable(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def _for_people(description: dict[str, Any]) -> dict[str, str]:
    hidden = {"metadata", "format_version", "usable"}
    hidden |= {key for key in _OPTIONAL if description[key] is None}
    pairs = {key: value for key, value in description.items() if key not in hidden}
    texts = {key.replace("_", " "): _as_cell(value) for key, value in pairs.items()}
    texts["gap"] = as_gap(description["gap"])
    return texts


def _as_cell(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key}={_as_item(item)}" for key, item in value.items())
    if isinstance(value, list):
        return ", ".join(map(_as_item, value))
    return as_text(value)


def _as_item(value: Any) -> str:
    """Return an item of a list or a dict as text, with brackets around what it contains."""
    match value:
        case {"family": family, **settings}:
            return f"{family}({_as_cell(settings)})"
        case {"kernel": kernel, **settings}:
            given = {key: item for key, item in settings.items() if item is not None}
            return f"{kernel}({_as_cell(given)})"
        case [str(name), float(share)]:
            return f"{name} {share:.3g}"
        case list() if len(value) > _FEW:
            return f"[{_as_cell(value[:_FEW])} and {len(value) - _FEW} more]"
        case list():
            return f"[{_as_cell(value)}]"
        case dict():
            return f"{{{_as_cell(value)}}}"
    return as_text(value)
