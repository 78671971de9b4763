"""Tables of accuracy for the benchmarks page, from the report of ``tessella benchmark``.

The report may hold any part of the plan: methods, sets and divisions that are not measured yet
are left out or marked.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from markdown_tables import table

from tessella_bench._document import NOTHING, score_text, verdicts, with_deviation
from tessella_bench._report import EMPTY

Json = dict[str, Any]

_TIED = "\N{NO-BREAK SPACE}"
_ABSENT = {"state": EMPTY}
_PICTURES = {
    "ranks": "Mean ranks of the methods and the critical difference",
    "scores": "Scores of all methods on all divisions",
}


def scores(report: Json, task: str) -> str:
    """Mean and deviation of every method on every set, and the paper's value for ours."""
    found = report["tables"].get(task)
    shown = _measured(report, found)
    if not shown:
        return "Not measured yet.\n"
    ours = next(iter(shown))
    title = shown.pop(ours)
    rows = []
    for row in found["rows"]:
        cells = row["cells"]
        best = _best(cells, task)
        texts = {name: _score(cells.get(name, _ABSENT), best) for name in (ours, *shown)}
        shape = f"{row['rows']:,}{_TIED}×{_TIED}{row['features']}"
        name = f"{row['title']} ({shape})"
        rows.append((name, texts[ours], _printed(cells[ours]), *(texts[n] for n in shown)))
    head = ("data set (rows × features)", title, f"{title}, paper", *shown.values())
    return (
        f"{task.capitalize()}, {found['metric']}; the paper's values are those of its "
        f"{found['paper_table'].split(' (')[0]}.\n\n"
        + table(head, rows, "-" + "r" * (len(head) - 1))
        + f"\n\n{verdicts(found['rows'], ours, title)} {_circumstances(report)}\n"
    )


def standings(report: Json, task: str, reports: Path) -> str:
    """Mean rank and average improvement of every method, and the pictures that there are."""
    found = report["tables"].get(task)
    titles = {name: about["title"] for name, about in report["methods"].items()}
    ranks = (found or {}).get("ranks")
    if not ranks:
        return "Not enough is measured yet to rank methods.\n"
    gains = found["improvement"]
    rows = [
        (titles[name], f"{mean:.2f}", *_gains(gains["values"].get(name, {})))
        for name, mean in zip(ranks["methods"], ranks["mean"], strict=True)
    ]
    head = ("method", "mean rank", "improvement", "paper, the same", "paper, all")
    return (
        f"{_rules(ranks, gains, titles)}\n\n{table(head, rows, '-rrrr')}\n{_images(task, reports)}"
    )


def _measured(report: Json, found: Json | None) -> dict[str, str]:
    """Titles of the methods with at least one cell that is measured."""
    if found is None:
        return {}
    return {
        name: about["title"]
        for name, about in report["methods"].items()
        if any(row["cells"].get(name, {}).get("state") != "not measured" for row in found["rows"])
        and any(name in row["cells"] for row in found["rows"])
    }


def _best(cells: Json, task: str) -> float | None:
    means = [cell["mean"] for cell in cells.values() if cell["state"] == "done"]
    if not means:
        return None
    return max(means) if task == "classification" else min(means)


def _score(cell: Json, best: float | None) -> str:
    text = score_text(cell).replace(" ", _TIED)
    return f"**{text}**" if cell["state"] == "done" and cell["mean"] == best else text


def _printed(cell: Json) -> str:
    value = cell.get("paper", {}).get("score")
    return NOTHING if value is None else with_deviation(*value).replace(" ", _TIED)


def _circumstances(report: Json) -> str:
    about = report["measured_with"]
    versions = ", ".join(f"{name} {'/'.join(vs)}" for name, vs in about["versions"].items())
    machines = "; ".join(about["machines"])
    return f"{about['cells']} cells on {machines}; {versions}; {report['date'][:10]}."


def _gains(values: Json) -> list[str]:
    found = (values.get(key) for key in ("ours", "paper_same", "paper"))
    return [NOTHING if value is None else f"{value:+.2f}{_TIED}%" for value in found]


def _rules(ranks: Json, gains: Json, titles: dict[str, str]) -> str:
    text = f"Ranks over {len(ranks['sets'])} data sets on which all these methods are measured"
    if ranks["friedman_p"] is not None:
        text += f"; Friedman's test has p = {ranks['friedman_p']:.2g}"
    if ranks["critical_difference"] is not None:
        text += (
            f", and mean ranks less than {ranks['critical_difference']:.2f} apart are not told "
            "apart (Nemenyi's test, 5 %)"
        )
    if ranks["not_ranked"]:
        text += f"; not ranked: {', '.join(titles[name] for name in ranks['not_ranked'])}"
    over = ", ".join(titles[name] for name in gains["methods"])
    return (
        f"{text}. Improvement is the paper's measure: score divided by the mean of all methods, "
        f"averaged over the sets, less 100 %. Here it is over {over} on {len(gains['sets'])} sets; "
        "beside it is what the paper's values give for the same, and for all its methods and sets. "
        f"The paper states {gains['stated_for_tkl']:+.2f} % for TKL."
    )


def _images(task: str, reports: Path) -> str:
    """Pictures, by their place relative to the benchmarks page."""
    return "".join(
        f"\n```{{image}} ../benchmarks/reports/{task}-{kind}.png\n"
        f":alt: {text}, {task}\n:target: _images/{task}-{kind}.png\n```\n"
        for kind, text in _PICTURES.items()
        if (reports / f"{task}-{kind}.png").is_file()
    )
