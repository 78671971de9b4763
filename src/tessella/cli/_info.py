"""The command ``tessella info``, which shows the contents of a model file."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import typer

from tessella.cli._predict import feature_columns
from tessella.cli._render import as_gap, as_text, show_pairs
from tessella.inspection._summary import facts_of
from tessella.kernels import KernelSet
from tessella.persistence import load, read_info


def show_info(path: Path, *, as_json: bool) -> None:
    """Print the contents of a model file, as a table or as JSON.

    Parameters
    ----------
    path : Path
        Path of the model file.
    as_json : bool
        Whether JSON is printed instead of a table.
    """
    description = describe(path)
    if as_json:
        typer.echo(json.dumps(description, indent=2, allow_nan=False))
    else:
        show_pairs(str(path), _for_people(description))


def describe(path: Path) -> dict[str, Any]:
    """Return the contents of a model file as values that JSON can represent."""
    info, model = read_info(path), load(path)
    facts = facts_of(model)
    description: dict[str, Any] = _jsonable(
        {
            "estimator": info["estimator"],
            "task": "regression" if info["classes"] is None else "classification",
            "classes": info["classes"],
            "target": info["metadata"].get("target"),
            "parameters": info["params"],
            "rows": facts.rows,
            "features": facts.features,
            "feature_names": feature_columns(info),
            "kernel_family": info["kernel_set"]["family"],
            "kernel_parameters": info["kernel_set"]["params"],
            "side_of_P": facts.matrix_side,
            "rank_of_P": max(facts.matrix_ranks()),
            "support_vectors": facts.support_vectors,
            "objective": facts.objective,
            "lower_bound": facts.lower_bound,
            "gap": facts.gap,
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
    )
    return description


def _jsonable(value: Any) -> Any:
    """Convert a value to plain JSON: text keys, kernel sets by family, None for infinities."""
    if isinstance(value, dict):
        return {str(key): _jsonable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_jsonable(item) for item in value]
    if isinstance(value, KernelSet):
        return {"family": value.family, **value.get_params()}
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def _for_people(description: dict[str, Any]) -> dict[str, str]:
    hidden = {"metadata", "format_version"}
    hidden |= {key for key in ("classes", "target", "feature_names") if description[key] is None}
    pairs = {key: value for key, value in description.items() if key not in hidden}
    texts = {key.replace("_", " "): _as_cell(value) for key, value in pairs.items()}
    texts["gap"] = as_gap(description["gap"])
    return texts


def _as_cell(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key}={as_text(item)}" for key, item in value.items())
    if isinstance(value, list):
        return ", ".join(map(as_text, value))
    return as_text(value)
