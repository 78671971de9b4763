"""The report as headings, paragraphs, tables and pictures, for any format."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from tessella_bench._methods import CLASSIFICATION
from tessella_bench._report import BROKEN, DONE, EMPTY, NONE, PARTLY

NOTHING = "—"


@dataclass(frozen=True)
class Heading:
    """A heading; level 1 is the title."""

    level: int
    text: str


@dataclass(frozen=True)
class Paragraph:
    """Running text."""

    text: str


@dataclass(frozen=True)
class Table:
    """A table whose first `left` columns are text; `strong` are the (row, column) in bold."""

    header: list[str]
    rows: list[list[str]]
    strong: set[tuple[int, int]] = field(default_factory=set)
    left: int = 1


@dataclass(frozen=True)
class Picture:
    """A picture by its key, and what it shows."""

    key: str
    text: str


Block = Heading | Paragraph | Table | Picture

_PROTOCOL = (
    "Protocol: {splits} random divisions into 80 % to learn from and 20 % to test on, the same "
    "for all methods; parameters by two-fold cross-validation inside the training part alone. "
    "TKL: C and delta (beyond 20,000 rows by 5,000 of them, drawn at random); RF, XGBoost and the "
    "other boosted trees: 50 to 650 trees in steps of 50; the kernel dictionaries: C; plain "
    "machines: C and width. Where the best C is an end of its values, they go on, two decades at "
    "a time, up to 1e8 or down to 1e-4; plain machines stop after ten million steps. The tube of "
    "every support vector regression is 0.1 in the target's unit, as in the paper, but at most a "
    "tenth of its deviation (CA, Space). The net has three hidden layers of 50 and stops early. "
    "± is the standard deviation over the divisions. N/A is what was stopped at the cap of its "
    "cell, or is not meant for so many rows (the table of seconds says which); {dash} is not "
    "measured yet, and (k) means k divisions so far."
)


def document(report: dict[str, Any], pictures: Iterable[str] = ()) -> list[Block]:
    """Arrange a report.

    Parameters
    ----------
    report : dict
        As :func:`gather` gives it.
    pictures : iterable of str
        Keys of the pictures that there are: ``overview``, ``<task>-ranks``, ``<task>-scores``.

    Returns
    -------
    list of Block
        In reading order.
    """
    blocks: list[Block] = [
        Heading(1, "Tessella beside the paper and other methods"),
        Paragraph(_PROTOCOL.format(splits=report["splits"], dash=NOTHING)),
    ]
    there = set(pictures)
    if "overview" in there:
        blocks.append(Picture("overview", "Mean ranks and seconds of the main methods"))
    for task, table in report["tables"].items():
        blocks += _section(task, table, report, there)
    blocks += _among_the_papers(report)
    blocks += circumstances_block(report)
    return blocks


def _section(
    task: str, table: dict[str, Any], report: dict[str, Any], pictures: set[str]
) -> list[Block]:
    titles = {name: about["title"] for name, about in report["methods"].items()}
    known = {name: titles[name] for name in titles if name in table["rows"][0]["cells"]}
    shown = {n: t for n, t in known.items() if any(_measured(r, n) for r in table["rows"])}
    blocks: list[Block] = [Heading(2, f"{task.capitalize()}: {table['metric']}")]
    if not shown:
        return [*blocks, Paragraph("No cell has been measured yet.")]
    absent = [title for name, title in known.items() if name not in shown]
    blocks.append(_scores(task, table, shown))
    if absent:
        blocks.append(Paragraph(f"Not measured yet: {', '.join(absent)}."))
    blocks += _beside(table, report, shown)
    blocks += _improvement(table, titles)
    blocks += _ranks(table, titles)
    texts = {"ranks": "Mean ranks and critical difference", "scores": "Scores of all divisions"}
    for key, text in texts.items():
        if f"{task}-{key}" in pictures:
            blocks.append(Picture(f"{task}-{key}", f"{text}, {task}"))
    blocks += [Heading(3, "Seconds"), _seconds(table, shown), *_gaps(table, shown)]
    return [*blocks, *_notes(table)]


def _measured(row: dict[str, Any], method: str) -> bool:
    return bool(row["cells"][method]["state"] != EMPTY)


def _scores(task: str, table: dict[str, Any], shown: dict[str, str]) -> Table:
    rows, strong = [], set()
    for i, row in enumerate(table["rows"]):
        cells = [row["cells"][name] for name in shown]
        rows.append([_name_of(row), *map(score_text, cells)])
        means = {j: cell["mean"] for j, cell in enumerate(cells) if cell["state"] == DONE}
        if means:
            best = (max if task == CLASSIFICATION else min)(means.values())
            strong |= {(i, j + 1) for j, mean in means.items() if mean == best}
    return Table(["data set (rows × features)", *shown.values()], rows, strong)


def _name_of(row: dict[str, Any]) -> str:
    return f"{row['title']} ({row['rows']:,} × {row['features']})"


def score_text(cell: dict[str, Any]) -> str:
    """A cell of the table of scores."""
    if cell["state"] == NONE:
        return "N/A"
    if cell["state"] == EMPTY:
        return NOTHING
    if cell["state"] == BROKEN:
        return "failed"
    part = f" ({cell['splits']})" if cell["state"] == PARTLY else ""
    return with_deviation(cell["mean"], cell["deviation"]) + part


def with_deviation(mean: float, deviation: float | None) -> str:
    """Mean and deviation, with three digits after the leading one of the mean at most."""
    digits = 2 if abs(mean) >= 1 else 4
    text = f"{mean:.{digits}f}"
    return text if deviation is None else f"{text} ± {deviation:.{digits}f}"


def _beside(table: dict[str, Any], report: dict[str, Any], shown: dict[str, str]) -> list[Block]:
    """Ours and the paper's, method by method."""
    rows = []
    for row in table["rows"]:
        for name, title in shown.items():
            cell = row["cells"][name]
            if "paper" in cell and cell["state"] != EMPTY:
                rows.append([_name_of(row), title, *_pair(cell)])
    if not rows:
        return []
    header = ["data set", "method", "here", "paper", "distance", "", "s here", "s paper"]
    about = (
        f"The paper's values are those of {table['paper_table']} of {report['paper']['source']}, "
        f"measured on {report['paper']['machine']}. Distance is in deviations of the paper's "
        "value; divisions, grids and software differ. Seconds are those of the fit with chosen "
        "parameters."
    )
    leader, title = next(iter(shown.items()))
    return [
        Heading(3, "Beside the paper"),
        Paragraph(about),
        Paragraph(verdicts(table["rows"], leader, title)),
        Table(header, rows, left=2),
    ]


def verdicts(rows: list[dict[str, Any]], method: str, title: str) -> str:
    """On which sets a method is as good as in the paper, within one deviation, and where not."""
    found: dict[str, list[str]] = {"within": [], "better": [], "worse": []}
    for row in rows:
        cell = row["cells"][method]
        if "verdict" in cell:
            part = f" ({cell['splits']} divisions)" if cell["state"] == PARTLY else ""
            found[cell["verdict"]].append(row["title"] + part)
    said = {
        "within": "within one deviation of the paper's value",
        "better": "better by more than one",
        "worse": "worse by more than one",
    }
    parts = [f"{said[key]} on {', '.join(names)}" for key, names in found.items() if names]
    return f"{title} is {'; '.join(parts)}." if parts else f"{title} has nothing to compare yet."


def _pair(cell: dict[str, Any]) -> list[str]:
    theirs, seconds = cell["paper"]["score"], cell["paper"]["seconds"]
    far = cell.get("deviations_from_paper")
    return [
        score_text(cell),
        "N/A" if theirs is None else with_deviation(*theirs),
        NOTHING if far is None else f"{far:+.1f}",
        cell.get("verdict", NOTHING),
        in_seconds(cell.get("fit_seconds")),
        "N/A" if seconds is None else in_seconds(seconds[0]),
    ]


def _improvement(table: dict[str, Any], titles: dict[str, str]) -> list[Block]:
    found = table["improvement"]
    rows = [
        [titles[name], *(_percent(values[key]) for key in ("ours", "paper_same", "paper"))]
        for name, values in found["values"].items()
        if any(value is not None for value in values.values())
    ]
    text = (
        "Average improvement as the paper defines it: the score divided by the mean of all methods "
        "on the data set, averaged over the data sets, less 100 %. Here it is over "
        f"{', '.join(titles[m] for m in found['methods'])} on {counted_sets(found['sets'])}; the "
        "second column is what the paper's values give for the same methods and sets. The paper "
        f"states {found['stated_for_tkl']:+.2f} % for TKL; the last column is what its printed "
        "means give for all its methods and sets."
    )
    header = ["method", "here", "paper, the same", "paper, all"]
    return [Heading(3, "Average improvement"), Paragraph(text), Table(header, rows)]


def counted_sets(names: list[str]) -> str:
    """How many data sets, in words."""
    return f"{len(names)} data set{'s' if len(names) != 1 else ''}"


def _percent(value: float | None) -> str:
    return NOTHING if value is None else f"{value:+.2f} %"


def _ranks(table: dict[str, Any], titles: dict[str, str]) -> list[Block]:
    ranks = table["ranks"]
    if ranks is None:
        return []
    pairs = zip(ranks["methods"], ranks["mean"], strict=True)
    rows = [[titles[name], f"{mean:.2f}"] for name, mean in pairs]
    text = f"Ranks over {counted_sets(ranks['sets'])}, where all these are measured; N/A is last."
    if ranks["friedman_p"] is not None:
        text += f" Friedman's test: p = {ranks['friedman_p']:.2g}."
    if ranks["critical_difference"] is not None:
        text += (
            f" Mean ranks less than {ranks['critical_difference']:.2f} apart are not told apart "
            "(Nemenyi's test, 5 %)."
        )
    if ranks["not_ranked"]:
        text += f" Not ranked: {', '.join(titles[name] for name in ranks['not_ranked'])}."
    return [Heading(3, "Mean rank"), Paragraph(text), Table(["method", "mean rank"], rows)]


def _among_the_papers(report: dict[str, Any]) -> list[Block]:
    """Mean ranks of the paper's methods alone, task by task and together."""
    found = {key: ranks for key, ranks in report["among_the_papers"].items() if ranks}
    if "both" not in found:
        return []
    means = {key: dict(zip(r["methods"], r["mean"], strict=True)) for key, r in found.items()}
    # Those ranked on all sets first; a method may be ranked in one task alone.
    names = dict.fromkeys(name for ranks in reversed(found.values()) for name in ranks["methods"])
    rows = [
        [
            report["methods"][name]["title"],
            *(f"{ranks[name]:.2f}" if name in ranks else NOTHING for ranks in means.values()),
        ]
        for name in names
    ]
    header = [f"{key}: {counted_sets(ranks['sets'])}" for key, ranks in found.items()]
    text = "Mean ranks of the paper's methods alone, on the paper's data sets."
    return [
        Heading(2, "The paper's methods among themselves"),
        Paragraph(text),
        Table(["method", *header], rows),
    ]


def _seconds(table: dict[str, Any], shown: dict[str, str]) -> Table:
    rows = [
        [_name_of(row), *(_times(row["cells"][name]) for name in shown)] for row in table["rows"]
    ]
    return Table(["data set: tuning + fit", *shown.values()], rows)


def _gaps(table: dict[str, Any], shown: dict[str, str]) -> list[Block]:
    """The largest certified gap of each method that has certificates."""
    parts = []
    for name, title in shown.items():
        gaps = [row["cells"][name].get("largest_gap") for row in table["rows"]]
        present = [gap for gap in gaps if gap is not None]
        if present:
            parts.append(f"{title} {max(present):.1e}")
    text = f"Largest certified relative gap of a final fit: {', '.join(parts)}."
    return [Paragraph(text)] if parts else []


def _times(cell: dict[str, Any]) -> str:
    if "mean" not in cell:
        return str(cell.get("why", NOTHING))
    return f"{in_seconds(cell['tune_seconds'])} + {in_seconds(cell['fit_seconds'])}"


def in_seconds(seconds: float | None) -> str:
    """Seconds as they are printed."""
    if seconds is None:
        return NOTHING
    return f"{seconds:.2f}" if seconds < 10 else f"{seconds:.0f}"


def _notes(table: dict[str, Any]) -> list[Block]:
    rows = [[r["title"], r["target_rule"], r["note"]] for r in table["rows"] if r["target_rule"]]
    if not rows:
        return []
    return [Heading(3, "Notes on the data"), Table(["data set", "target", "note"], rows, left=3)]


def circumstances_block(report: dict[str, Any]) -> list[Block]:
    """With what the cells were measured."""
    found = report["measured_with"]
    versions = "; ".join(f"{name} {', '.join(vs)}" for name, vs in found["versions"].items())
    text = (
        f"{found['cells']} cells, one thread each, on {'; '.join(found['machines']) or NOTHING}. "
        f"Versions: {versions or NOTHING}. Report of {report['date']}."
    )
    if found["median_load"] is not None:
        text += (
            f" The median load of the machine at the start of a cell was {found['median_load']:.1f}"
            ": where that is more than its cores, seconds are too many, for all methods alike."
        )
    return [Heading(2, "Measured with"), Paragraph(text)]
