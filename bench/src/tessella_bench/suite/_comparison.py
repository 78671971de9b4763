"""Comparing methods over the sets of the suite: ranks, wins, seconds, parts of the average."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tessella_bench._methods import CLASSIFICATION, REGRESSION
from tessella_bench._report import ranks_by_loss
from tessella_bench._statistics import Scores
from tessella_bench.suite._methods import OURS, VARIANT, YARDSTICK

DONE, LAST, PARTLY, EMPTY = "done", "last", "partly", "not measured"
CLOSE = 0.01  # relative difference of errors that is a tie
MEMBER_PARTS = ("family", "scaling", "encoding", "loss", "learned")

Row = Mapping[str, Any]  # a set of the report
GROUPS: dict[str, Callable[[Row], bool]] = {
    "all": lambda _row: True,
    REGRESSION: lambda row: bool(row["task"] == REGRESSION),
    CLASSIFICATION: lambda row: bool(row["task"] == CLASSIFICATION),
    "mixed tables": lambda row: bool(row["text_features"]),
}


def settled(rows: Sequence[Row], value: str) -> Scores:
    """Values by set and method where all divisions are known; None is last."""
    return {
        row["name"]: {
            name: cell.get(value)
            for name, cell in row["cells"].items()
            if cell["state"] in (DONE, LAST)
        }
        for row in rows
    }


def ranks(rows: Sequence[Row], methods: Sequence[str]) -> dict[str, Any]:
    """Mean ranks of the errors, with critical differences, for each group of sets.

    Parameters
    ----------
    rows : sequence of dict
        Sets of the report.
    methods : sequence of str
        Whom to rank, the most important first.

    Returns
    -------
    dict
        By group; None where there is nothing to compare.
    """
    return {
        group: ranks_by_loss(settled([row for row in rows if belongs(row)], "error"), methods)
        for group, belongs in GROUPS.items()
    }


def log_loss_ranks(rows: Sequence[Row], methods: Sequence[str]) -> dict[str, Any] | None:
    """Mean ranks of the log-loss, among the methods that have probabilities on some set."""
    classes = [row for row in rows if row["task"] == CLASSIFICATION]
    known = [
        name
        for name in methods
        if any(row["cells"][name].get("log_loss") is not None for row in classes)
    ]
    losses = {
        row["name"]: {name: value for name, value in found.items() if name in known}
        for row, found in zip(classes, settled(classes, "log_loss").values(), strict=True)
    }
    return ranks_by_loss(losses, known)


# -------------------------------------------------------------------------- wins, ties and losses


def against(rows: Sequence[Row], methods: Sequence[str], ours: str = OURS) -> dict[str, Any]:
    """How often our error is lower, about the same and higher than that of each other method.

    Parameters
    ----------
    rows : sequence of dict
        Sets of the report.
    methods : sequence of str
        The others.
    ours : str
        Our method.

    Returns
    -------
    dict
        By method and group: wins, ties and losses, over the sets where both are settled.
    """
    result: dict[str, Any] = {}
    for method in methods:
        result[method] = {}
        for group, belongs in GROUPS.items():
            counts = {"wins": 0, "ties": 0, "losses": 0}
            for row in filter(belongs, rows):
                verdict = compared(row, ours, method)
                if verdict is not None:
                    counts[verdict] += 1
            result[method][group] = counts
    return result


def compared(row: Row, ours: str, other: str) -> str | None:
    """Whether our error on a set is a win, a tie or a loss; None if one is not settled.

    It is a tie if the errors differ by at most 1 % of the larger one or, in a classification, by
    at most the standard error of a share, sqrt(p (1 - p) / n) with the mean p of the two errors
    and the n test rows of one division.
    """
    cells = [row["cells"].get(name, {"state": EMPTY}) for name in (ours, other)]
    if any(cell["state"] not in (DONE, LAST) for cell in cells):
        return None
    mine, theirs = (cell.get("error") for cell in cells)
    if mine is None or theirs is None:
        return "ties" if mine == theirs else "losses" if mine is None else "wins"
    margin = CLOSE * max(mine, theirs)
    if row["task"] == CLASSIFICATION:
        share = 0.5 * (mine + theirs)
        margin = max(margin, np.sqrt(share * (1.0 - share) / row["test_rows"]))
    if abs(mine - theirs) <= margin:
        return "ties"
    return "wins" if mine < theirs else "losses"


# --------------------------------------------------------------------------------------- seconds


def seconds(rows: Sequence[Row], methods: Sequence[str]) -> dict[str, Any]:
    """Processor seconds of tuning and fit, and their ratio to those of tuned LightGBM.

    Parameters
    ----------
    rows : sequence of dict
        Sets of the report.
    methods : sequence of str
        All methods.

    Returns
    -------
    dict
        By method: geometric means over the sets; "capped" of them count with the cap, which is
        less than they would have taken.
    """
    result = {}
    base = _known_seconds(rows, YARDSTICK)
    for name in methods:
        known = _known_seconds(rows, name)
        ratios = [value / base[key] for key, value in known.items() if key in base]
        result[name] = {
            "geometric_mean": _geometric_mean(list(known.values())),
            "largest": max(known.values(), default=None),
            "ratio": _geometric_mean(ratios),
            "sets": len(known),
            "sets_of_ratio": len(ratios),
            "capped": sum(bool(row["cells"][name].get("capped")) for row in rows),
        }
    return result


def _known_seconds(rows: Sequence[Row], method: str) -> dict[str, float]:
    found = {row["name"]: _seconds(row, method) for row in rows}
    return {name: value for name, value in found.items() if value is not None}


def _seconds(row: Row, method: str) -> float | None:
    cell = row["cells"].get(method, {})
    found: float | None = cell.get("processor_seconds")
    return None if found is None else max(found, 0.01)  # the clock's step


def _geometric_mean(values: Sequence[float]) -> float | None:
    return float(np.exp(np.mean(np.log(values)))) if values else None


# -------------------------------------------------------------------- what is inside the average


def parts_of_the_average(records: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    """How often each family, scaling, encoding, loss and a learned P is in the average.

    Parameters
    ----------
    records : sequence of dict
        Cells of our method, whose "params" have a list "members" of dictionaries.

    Returns
    -------
    dict or None
        By part and value: the share of the fits that have it, and its mean share of the weight.
        None if no fit has told its members.
    """
    fits = [record["params"]["members"] for record in records if _has_members(record)]
    if not fits:
        return None
    found: dict[str, dict[str, list[float]]] = {part: defaultdict(list) for part in MEMBER_PARTS}
    for members in fits:
        total = sum(abs(member.get("weight", 1.0)) for member in members) or 1.0
        for part in MEMBER_PARTS:
            shares: dict[str, float] = defaultdict(float)
            for member in members:
                if part in member:
                    shares[str(member[part])] += abs(member.get("weight", 1.0)) / total
            for value, share in shares.items():
                found[part][value].append(share)
    return {
        "fits": len(fits),
        "mean_members": float(np.mean([len(members) for members in fits])),
        "parts": {
            part: {
                value: {"fits": len(shares) / len(fits), "weight": sum(shares) / len(fits)}
                for value, shares in sorted(values.items(), key=lambda item: -sum(item[1]))
            }
            for part, values in found.items()
            if values
        },
    }


def _has_members(record: Mapping[str, Any]) -> bool:
    return bool((record.get("params") or {}).get("members"))


# -------------------------------------------------------------------------------------- ablation


def ablation(rows: Sequence[Row], variants: Sequence[str], ours: str = OURS) -> dict[str, Any]:
    """Variants of our method beside the method itself.

    Parameters
    ----------
    rows : sequence of dict
        Sets of the report.
    variants : sequence of str
        Names of the variants.
    ours : str
        The method itself.

    Returns
    -------
    dict
        By variant and group: "error_ratio", the geometric mean of its error over ours (above one:
        the variant is worse), the number of sets, and our wins, ties and losses against it; and
        "seconds_ratio", the same of the processor seconds.
    """
    counts = against(rows, variants, ours)
    result: dict[str, Any] = {}
    for name in variants:
        times = [
            (_seconds(row, name), _seconds(row, ours)) for row in rows if compared(row, ours, name)
        ]
        result[name] = {
            "title": name.partition(VARIANT)[2],
            "seconds_ratio": _geometric_mean([a / b for a, b in times if a and b]),
            "groups": {
                group: _ratio([row for row in rows if belongs(row)], name, ours)
                | counts[name][group]
                for group, belongs in GROUPS.items()
            },
        }
    return result


def _ratio(rows: Sequence[Row], variant: str, ours: str) -> dict[str, Any]:
    ratios = []
    for row in rows:
        cells = [row["cells"].get(name, {"state": EMPTY}) for name in (variant, ours)]
        if all(cell["state"] == DONE for cell in cells):
            # No error can be told from none by fewer rows than there are.
            least = 0.5 / row["test_rows"] if row["task"] == CLASSIFICATION else 1e-12
            one, other = (max(cell["error"], least) for cell in cells)
            ratios.append(one / other)
    return {"error_ratio": _geometric_mean(ratios), "sets": len(ratios)}
