"""The report of the suite as headings, paragraphs, tables and pictures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tessella_bench._document import (
    NOTHING,
    Block,
    Heading,
    Paragraph,
    Picture,
    Table,
    circumstances_block,
    counted_sets,
    in_seconds,
)
from tessella_bench._methods import CLASSIFICATION, REGRESSION
from tessella_bench.suite._comparison import DONE, EMPTY, GROUPS, LAST, PARTLY
from tessella_bench.suite._methods import OURS

_PROTOCOL = (
    "Every method gets the table as it comes: a data frame with numbers, text and gaps. The "
    "training part has the number of rows in the heading, or 80 % of the rows of a smaller table; "
    "larger sizes are used for tables that have 5,000 rows for 4,000. The test part is the rest, "
    "at most 10,000 rows. Classes keep their shares, the seed is the number of the division, and "
    "all methods have the same divisions. The value of a set is the mean over its divisions. "
    "Tuning sees the training part alone. All methods run with one thread; a cell that has used "
    "more processor seconds than its cap is ended. Cells that were ended or failed rank last. "
    "Error is the share of wrong classes, or the mean squared error over the variance of the test "
    "target (1 − R²). Seconds are those of the processor for tuning and fit; cells that were "
    "measured on a GPU, where xRFM runs if there is one, have none."
)
_TIES = (
    "A tie is a difference of at most 1 % of the larger error or, in a classification, of at most "
    "one standard error of a share, sqrt(p (1 − p) / n) with the mean p of the two errors and the "
    "n test rows of a division."
)


def suite_document(report: dict[str, Any], pictures: Iterable[str] = ()) -> list[Block]:
    """Arrange a report.

    Parameters
    ----------
    report : dict
        As :func:`gather_suite` gives it.
    pictures : iterable of str
        Keys of the pictures that there are: the sizes.

    Returns
    -------
    list of Block
        In reading order.
    """
    there = set(pictures)
    blocks: list[Block] = [Heading(1, "The suite: tables as they come"), Paragraph(_PROTOCOL)]
    for size, part in report["sizes"].items():
        blocks.append(Heading(2, f"{int(size):,} training rows"))
        if size in there:
            blocks.append(Picture(size, f"Mean ranks and seconds at {int(size):,} rows"))
        blocks += _section(part, report["methods"])
    return [*blocks, *circumstances_block(report)]


def _section(part: dict[str, Any], titles: Mapping[str, str]) -> list[Block]:
    return [
        *_warnings(part),
        *_ranks(part, titles),
        *_against(part, titles),
        *_seconds(part, titles),
        *_errors(part, titles, REGRESSION, "Error of the regressions (1 − R²)"),
        *_errors(part, titles, CLASSIFICATION, "Error of the classifications in %"),
        *_log_loss(part, titles),
        *_failures(part, titles),
        *_average(part),
        *_ablation(part),
    ]


def _warnings(part: dict[str, Any]) -> list[Block]:
    blocks: list[Block] = []
    if part["other_divisions"]:
        names = ", ".join(part["other_divisions"])
        text = f"The methods did not all have the same rows of {names}: measure these again."
        blocks.append(Paragraph(text))
    if part["without_result"]:
        names = ", ".join(part["without_result"])
        blocks.append(Paragraph(f"No method has a result on {names}, which are left out."))
    return blocks


# ------------------------------------------------------------------------------------------ ranks


def _ranks(part: dict[str, Any], titles: Mapping[str, str]) -> list[Block]:
    found = {group: ranks for group, ranks in part["ranks"].items() if ranks is not None}
    if not found:
        return [Paragraph("There are no two methods to compare yet.")]
    means = {g: dict(zip(r["methods"], r["mean"], strict=True)) for g, r in found.items()}
    names = dict.fromkeys(name for group in means.values() for name in group)
    rows = [
        [titles[name], *(f"{m[name]:.2f}" if name in m else NOTHING for m in means.values())]
        for name in names
    ]
    strong = {
        (i, j + 1)
        for j, group in enumerate(means.values())
        for i, name in enumerate(names)
        if name in group and group[name] == min(group.values())
    }
    header = [f"{group}: {counted_sets(ranks['sets'])}" for group, ranks in found.items()]
    return [
        Heading(3, "Mean rank of the error"),
        Paragraph(" ".join(_about_ranks(group, ranks, titles) for group, ranks in found.items())),
        Table(["method", *header], rows, strong),
    ]


def _about_ranks(group: str, ranks: dict[str, Any], titles: Mapping[str, str]) -> str:
    text = f"{group[0].upper()}{group[1:]}: {len(ranks['methods'])} methods"
    if ranks["critical_difference"] is not None:
        text += (
            f", mean ranks less than {ranks['critical_difference']:.2f} apart are not told apart "
            "(Nemenyi, 5 %)"
        )
    if ranks["friedman_p"] is not None:
        text += f", Friedman p = {ranks['friedman_p']:.2g}"
    if ranks["not_ranked"]:
        text += (
            f"; not measured on all of them: {', '.join(titles[m] for m in ranks['not_ranked'])}"
        )
    return f"{text}."


def _against(part: dict[str, Any], titles: Mapping[str, str]) -> list[Block]:
    rows = [
        [titles[name], *(_counts(groups[group]) for group in GROUPS)]
        for name, groups in part["against"].items()
        if any(groups["all"].values())
    ]
    if not rows:
        return []
    header = [f"{titles[OURS]} against", *GROUPS]
    return [Heading(3, "Wins / ties / losses"), Paragraph(_TIES), Table(header, rows)]


def _counts(found: Mapping[str, int]) -> str:
    return f"{found['wins']} / {found['ties']} / {found['losses']}"


# ---------------------------------------------------------------------------------------- seconds


def _seconds(part: dict[str, Any], titles: Mapping[str, str]) -> list[Block]:
    rows = [
        [
            titles[name],
            in_seconds(found["geometric_mean"]),
            in_seconds(found["largest"]),
            str(found["sets"]),
            NOTHING if found["ratio"] is None else f"{found['ratio']:.2f}",
            str(found["capped"]),
        ]
        for name, found in part["seconds"].items()
    ]
    header = ["method", "geometric mean", "largest", "sets", "over LightGBM tuned", "capped"]
    text = (
        "Processor seconds of tuning and fit, over the sets of the mean rank on which a method "
        "has a time. The ratio is the geometric mean over those on which both have one. A capped "
        "cell counts with its cap."
    )
    return [Heading(3, "Seconds"), Paragraph(text), Table(header, rows)]


# ----------------------------------------------------------------------------------------- errors


def _errors(
    part: dict[str, Any], titles: Mapping[str, str], task: str, heading: str
) -> list[Block]:
    sets = [row for row in part["sets"] if row["task"] == task]
    if not sets:
        return []
    factor, digits = (1.0, 4) if task == REGRESSION else (100.0, 2)
    return [
        Heading(3, heading),
        _values(sets, part["methods"], titles, "error", (factor, digits)),
    ]


def _values(
    sets: Sequence[dict[str, Any]],
    methods: Sequence[str],
    titles: Mapping[str, str],
    key: str,
    form: tuple[float, int],
) -> Table:
    rows, strong = [], set()
    for i, row in enumerate(sets):
        cells = [row["cells"][name] for name in methods]
        rows.append([_name_of(row), *(_text(cell, key, form) for cell in cells)])
        done = {j: c[key] for j, c in enumerate(cells) if c["state"] == DONE and key in c}
        strong |= {(i, j + 1) for j, value in done.items() if value == min(done.values())}
    return Table(["set (train × columns)", *(titles[name] for name in methods)], rows, strong)


def _name_of(row: dict[str, Any]) -> str:
    text = f", {row['text_features']} text" if row["text_features"] else ""
    classes = f", {row['classes']} classes" if row["classes"] else ""
    return f"{row['name']} ({row['train_rows']:,} × {row['features']}{text}{classes})"


def _text(cell: dict[str, Any], key: str, form: tuple[float, int]) -> str:
    if cell["state"] == LAST:
        return "capped" if cell["capped"] else "failed"
    if cell["state"] == EMPTY or key not in cell:
        return NOTHING
    factor, digits = form
    part = f" ({cell['divisions']})" if cell["state"] == PARTLY else ""
    return f"{factor * cell[key]:.{digits}f}{part}"


def _log_loss(part: dict[str, Any], titles: Mapping[str, str]) -> list[Block]:
    ranks = part["log_loss_ranks"]
    sets = [row for row in part["sets"] if row["task"] == CLASSIFICATION]
    if ranks is None:
        return []
    pairs = zip(ranks["methods"], ranks["mean"], strict=True)
    rows = [[titles[name], f"{mean:.2f}"] for name, mean in pairs]
    shown = [name for name in part["methods"] if name in ranks["methods"]]
    text = "Among the methods with probabilities; those below 1e-6 count as that."
    return [
        Heading(3, "Log-loss"),
        Paragraph(f"{text} {_about_ranks('log-loss', ranks, titles)}"),
        Table(["method", f"mean rank: {counted_sets(ranks['sets'])}"], rows),
        _values(sets, shown, titles, "log_loss", (1.0, 4)),
    ]


def _failures(part: dict[str, Any], titles: Mapping[str, str]) -> list[Block]:
    rows = [[titles[f["method"]], f["dataset"], f["why"]] for f in part["failures"]]
    if not rows:
        return []
    return [Heading(3, "Ended or failed"), Table(["method", "set", "why"], rows, left=3)]


# --------------------------------------------------------------------------------- our own method


def _average(part: dict[str, Any]) -> list[Block]:
    found = part["average"]
    if found is None:
        return []
    rows = [
        [kind, value, f"{100 * shares['fits']:.0f} %", f"{100 * shares['weight']:.0f} %"]
        for kind, values in found["parts"].items()
        for value, shares in values.items()
    ]
    text = (
        f"Over {found['fits']} fits, which average {found['mean_members']:.1f} members: how many "
        "fits have such a member, and its mean share of the weight."
    )
    return [
        Heading(3, "What is in the average"),
        Paragraph(text),
        Table(["part", "value", "fits", "weight"], rows, left=2),
    ]


def _ablation(part: dict[str, Any]) -> list[Block]:
    if not part["ablation"]:
        return []
    rows = []
    for found in part["ablation"].values():
        groups = [found["groups"][group] for group in GROUPS]
        times = found["seconds_ratio"]
        rows.append(
            [
                found["title"],
                str(found["fits"]),
                *(_ratio(group["error_ratio"]) for group in groups),
                _counts(found["groups"]["all"]),
                _ratio(times),
            ]
        )
    header = ["variant", "fits", *GROUPS, "wins / ties / losses of the whole", "seconds"]
    text = (
        "Variants of Tessella: geometric mean over the sets of the variant's error over that of "
        "the whole, so that a value above one is what the part that was taken away brings; and the "
        "same of the processor seconds. Both are compared on the divisions that the variant was "
        "measured on, whose number is that of its fits."
    )
    return [Heading(3, "Ablation"), Paragraph(text), Table(header, rows)]


def _ratio(value: float | None) -> str:
    return NOTHING if value is None else f"{value:.3f}"
