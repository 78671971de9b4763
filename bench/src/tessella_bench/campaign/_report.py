"""The table of a campaign."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from tessella_bench._machine import machine
from tessella_bench.campaign._outcome import DEFECTS, FINE, LOOSE, MISSED, REFUSED, UNFINISHED
from tessella_bench.campaign._parts import PARTS
from tessella_bench.campaign._record import Result

_USUAL = (FINE, REFUSED, UNFINISHED)
_COLUMNS = (*_USUAL, *DEFECTS)
_SHOWN = 200  # defects that are listed one by one


def table(results: Sequence[Result]) -> str:
    """Return the counts of a campaign as a Markdown table, one row for each part."""
    head = ["part", "cases", *_COLUMNS]
    rows = []
    for part in PARTS:
        own = [result for result in results if result.part == part]
        if own:
            rows.append([part, len(own), *_counts(own)])
    if not rows:
        return "No case has been run yet."
    rows.append(["**all**", len(results), *_counts(results)])
    lines = ["| " + " | ".join(head) + " |", "|---|" + "---:|" * (len(head) - 1)]
    lines += ["| " + " | ".join(_cell(value) for value in row) + " |" for row in rows]
    return "\n".join(lines)


def _counts(results: Iterable[Result]) -> list[int]:
    counts = Counter(result.outcome.verdict for result in results)
    return [counts[verdict] for verdict in _COLUMNS]


def _cell(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)


def document(results: Sequence[Result]) -> str:
    """Return the report of a campaign as Markdown: counts, kinds of cases, and all defects."""
    seconds = sum(result.seconds for result in results)
    found = [result for result in results if result.outcome.verdict in DEFECTS]
    parts = [
        "# Campaign",
        "Attempts to break the library. A false certificate is a bound or a gap that an "
        "independent implementation in extended precision does not confirm, up to the rounding of "
        "double precision. Refused cases have ended with an error that says what to change. A fit "
        "that has not converged says so. The other columns are defects.",
        f"{len(results):,} cases in {seconds / 3600:.1f} hours of one process, on "
        f"{machine()['processor'] or 'an unknown processor'}.",
        table(results),
        _codes(results),
        _loose(results),
        "## Kinds of cases",
        _kinds(results),
        "## Defects",
        _list(found),
    ]
    return "\n\n".join(parts) + "\n"


def _codes(results: Iterable[Result]) -> str:
    """Say which code the cases ran with: digests of the library and of the campaign."""
    counts = Counter((result.code or "unknown", result.part) for result in results)
    codes = sorted({code for code, _ in counts})
    if len(codes) == 1:
        return f"All cases ran with the same code, `{codes[0]}` (library, campaign)."
    lines = ["| code (library, campaign) | part | cases |", "|---|---|---:|"]
    lines += [f"| `{code}` | {part} | {n:,} |" for (code, part), n in sorted(counts.items())]
    return "\n".join(lines)


def _loose(results: Iterable[Result]) -> str:
    fits = [result for result in results if result.part == "fits"]
    count = sum(LOOSE in result.outcome.detail for result in fits)
    beyond = sum(MISSED in result.outcome.detail for result in fits)
    return (
        f"In {count:,} of {len(fits):,} fits the bound of the rounding errors of double precision "
        "was above the tolerance of the fit, so that a certificate was confirmed up to that bound "
        f"only. {beyond:,} fits missed their value or their lower bound by more than the "
        "tolerance, within that bound; one that is called optimal nevertheless is a defect."
    )


def _kinds(results: Iterable[Result]) -> str:
    found: dict[tuple[str, str], Counter[str]] = {}
    for result in results:
        kind = result.outcome.kind
        if result.part == "inputs":  # the name of the estimator is behind the last comma
            kind = kind.rpartition(", ")[0]
        verdict = result.outcome.verdict
        found.setdefault((result.part, kind), Counter())[
            verdict if verdict in _USUAL else "defects"
        ] += 1
    lines = [
        "| part | kind | cases | " + " | ".join((*_USUAL, "defects")) + " |",
        "|---|---|" + "---:|" * (2 + len(_USUAL)),
    ]
    for (part, kind), counts in sorted(found.items()):
        cells = [counts.total(), *(counts[verdict] for verdict in (*_USUAL, "defects"))]
        lines.append(f"| {part} | {kind} | " + " | ".join(map(_cell, cells)) + " |")
    return "\n".join(lines)


def _list(found: Sequence[Result]) -> str:
    if not found:
        return "None."
    lines = [
        f"- `--part {result.part} --case {result.number}`: **{result.outcome.verdict}**, "
        f"{result.outcome.kind}: {result.outcome.detail.replace('|', '/')}"
        for result in found[:_SHOWN]
    ]
    if len(found) > _SHOWN:
        lines.append(f"- and {len(found) - _SHOWN:,} more")
    return "\n".join(lines)
