"""What ``tessella info`` shows of an automatic model."""

from __future__ import annotations

from typing import Any

from tessella.cli._predict import feature_columns
from tessella.cli._render import as_duration, as_gap, as_text, in_leaves, show_pairs, show_rows

_SHOWN = 10  # rows of a table for people


def describe_automatic(info: dict[str, Any], model: Any) -> dict[str, Any]:
    """Return the description of an automatic model."""
    names = feature_columns(info) or [str(j) for j in range(model.n_features_in_)]
    relevance = model.feature_relevance_.tolist()
    columns = zip(names, info["columns"], relevance, strict=True)
    classes = info["classes"]
    return {
        "estimator": info["estimator"],
        "task": "regression" if classes is None else "classification",
        "classes": classes,
        "target": info["metadata"].get("target"),
        "parameters": info["params"],
        "distinct_rows": model.members_[0].coef.shape[1],
        "columns": [
            {"name": name, "kind": kind, "relevance": share} for name, kind, share in columns
        ],
        "score": "R2" if classes is None else "accuracy",
        "loo_score": model.loo_score_,
        "gap": model.gap_,
        "search_complete": model.search_complete_,
        "seconds": model.fit_time_,
        "members": [_member(member) for member in model.members_],
        "leaderboard": info["leaderboard"],
        "tessella_version": info["tessella_version"],
        "format_version": info["format_version"],
        "metadata": info["metadata"],
    }


def _member(member: Any) -> dict[str, Any]:
    machine = member.machine
    return {
        "weight": member.share,
        "gap": member.gap,
        "family": machine.kernel.family,
        "learned": machine.kernel.learned,
        "scaling": machine.space.scaling,
        "encoding": machine.space.encoding.categories,
        "loss": machine.loss.name,
        "target": machine.target.name,
        "C": machine.C,
        "leaves": member.partition.n_leaves,
        "trees": member.partition.n_trees,
    }


def show_automatic(title: str, description: dict[str, Any]) -> None:
    """Print a description as tables: the model, its members, its columns and the leaderboard."""
    show_pairs(title, _pairs(description))
    members = sorted(description["members"], key=lambda own: -own["weight"])
    header = ["members of the average", "weight", "scaling", "loss", "C", "certified gap"]
    _show_some(header, [_machine_row(own, as_gap(own["gap"])) for own in members])
    relevant = sorted(description["columns"], key=lambda own: -own["relevance"])
    rows = [[own["name"], f"{own['relevance']:.3f}", own["kind"]] for own in relevant]
    _show_some(["most relevant columns", "relevance", "kind"], rows)
    header = ["leaderboard of the search", "weight", "scaling", "loss", "C", "held-out error"]
    board = description["leaderboard"]
    _show_some(header, [_machine_row(own, as_text(own["error"])) for own in board])


def _pairs(description: dict[str, Any]) -> dict[str, str]:
    members = description["members"]
    counts = {"columns": len(description["columns"]), "machines": len(members)}
    divided = [own for own in members if own["leaves"] > 1]
    leaves = in_leaves(sum(m["leaves"] for m in divided), sum(m["trees"] for m in divided))
    complete = description["search_complete"]
    pairs = {
        "estimator": description["estimator"],
        "task": description["task"],
        "target": description["target"],
        "classes": description["classes"] and ", ".join(map(str, description["classes"])),
        "distinct rows": str(description["distinct_rows"]),
        **{name: str(count) for name, count in counts.items()},
        "leaves of all machines": leaves if divided else "",
        f"leave-one-out {description['score']}": f"{description['loo_score']:.4f}",
        "certified gap": as_gap(description["gap"]),
        "search": "finished" if complete else "ended before everything was tried",
        "time": as_duration(description["seconds"]),
        "tessella version": description["tessella_version"],
    }
    return {name: value for name, value in pairs.items() if value}


def _machine_row(own: dict[str, Any], last: str) -> list[str]:
    learned = " with a learned matrix" if own["learned"] else ""
    loss = own["loss"] if own["target"] != "logarithm" else f"{own['loss']} of the logarithm"
    weight = f"{own['weight']:.3f}"
    return [f"{own['family']}{learned}", weight, own["scaling"], loss, f"{own['C']:.3g}", last]


def _show_some(header: list[str], rows: list[list[str]]) -> None:
    more = len(rows) - _SHOWN
    title = "" if more <= 0 else f"{_SHOWN} of {len(rows)}"
    show_rows(title, header, rows[:_SHOWN])
