"""Every figure in README and documentation, traced to its JSON.

    python docs/_ext/quoted_figures.py            # what does not agree; exit status 1
    python docs/_ext/quoted_figures.py --update   # write the texts and the picture anew
    python docs/_ext/quoted_figures.py --list     # each figure, its file, and who quotes it

`docs/quoted_figures.toml` says which texts quote which figures of `figure_values.py`. A text is
found by the words around its figures, so `--update` needs no marks in it. Whatever else looks like
a measurement (see `_MEASURED`) has to be listed there as well, with the reason why it is none.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

from figure_values import Figure, all_figures

ROOT = Path(__file__).parents[2]
TABLE = "docs/quoted_figures.toml"
PICTURE, REPORT = "benchmarks/reports/overview.png", "benchmarks/reports/report.json"
_NOT_OURS = {"_build", "_generated", "auto_examples"}

Span = tuple[int, int]
Figures = dict[str, Figure]

_NUMBER = r"\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?"
_WORD = (
    r"(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|thirteen|fourteen|fifteen"
    r"|sixteen|seventeen|eighteen|nineteen|twenty|dozens|hundreds|thousands|millions)"
)
_PART = r"(?:half|thirds?|quarters?|fifths?|tenths?)"
_UNIT = (
    r"(?:s|ms|seconds?|minutes?|hours?|[kKMGT]i?B|%|per cent|×|times"
    r"|(?:(?:Newton|pair|Cholesky)\s+)?(?:steps|rounds|iterations|solves|SVMs|fits|factorisations))"
)


# --------------------------------------------------------------------------------------- the table


@dataclass(frozen=True)
class Quote:
    """A text with the names of figures in braces, and the page it stands on."""

    file: str
    text: str

    @property
    def names(self) -> list[str]:
        """Figures, in their order in the text."""
        return re.findall(r"{([\w-]+)}", self.text)

    def find(self, page: str, figures: Figures) -> list[re.Match[str]]:
        """Where the page has this text, with any other figures in the places of these."""
        places = [_place(figures[name].text) for name in self.names]
        return list(re.finditer(_flexible(self.text, places), page))


@dataclass(frozen=True)
class Claim:
    """A claim in words that holds while a figure lies between two bounds."""

    file: str
    text: str
    figure: str
    least: float
    most: float


@dataclass(frozen=True)
class Exemption:
    """A text whose numbers are no measurements, and why. The file ``*`` is any, or none."""

    file: str
    text: str
    reason: str


@dataclass(frozen=True)
class Table:
    """The content of the TOML file."""

    quotes: list[Quote]
    claims: list[Claim]
    exemptions: list[Exemption]


def read_table(path: Path) -> Table:
    """Read the table; an entry that lacks something is an error that names it."""
    content = tomllib.loads(path.read_text(encoding="utf-8"))
    unknown = set(content) - {"quote", "claim", "exempt"}
    if unknown:
        raise ValueError(f"{path.name} has sections of another kind: {sorted(unknown)}.")
    quotes = [Quote(**entry) for entry in content.get("quote", [])]
    for quote in quotes:
        if not quote.names or re.search(r"^{[\w-]+}|{[\w-]+}$|}{", quote.text):
            raise ValueError(f"A quote needs words before, after and between figures: {quote}.")
    unbounded = {"least": float("-inf"), "most": float("inf")}
    claims = [Claim(**unbounded | entry) for entry in content.get("claim", [])]
    return Table(quotes, claims, [Exemption(**entry) for entry in content.get("exempt", [])])


def _flexible(text: str, places: Sequence[str] = ()) -> str:
    """A pattern for the text, however its lines are broken, with patterns for its figures."""
    parts = re.split(r"{[\w-]+}", text) if places else [text]
    literal = [re.sub(r"(?:\\?\s)+", r"\\s+", re.escape(part)) for part in parts]
    return "".join(a + b for a, b in zip_longest(literal, places, fillvalue=""))


def _place(figure: str) -> str:
    """A group for what may stand in the place of a figure: a number for a number."""
    if re.fullmatch(rf"{_NUMBER}|{_WORD}", figure):
        return rf"\b({_NUMBER}|{_WORD})"
    if "\n" in figure:
        return r"((?:[^\n]+\n)*?[^\n]+?)"  # the body of a table
    return r"([^\n]{1,600}?)"


# --------------------------------------------------------------------------------------- the pages


def pages(root: Path) -> list[str]:
    """The texts that are checked."""
    found = [p for p in (root / "docs").rglob("*.md") if not _NOT_OURS & set(p.parts)]
    named = [str(p.relative_to(root)) for p in found]
    others = ("CHANGELOG.md", "benchmarks/README.md", "benchmarks/reports/figures/README.md")
    return ["README.md", *others, *sorted(named)]


_TIME = r"(?:time|work|memory|second|minute|hour)"
# What looks like a measurement: a number with a unit, a number with a decimal point, a part of
# somebody's time. Sizes (rows, features, classes) and powers of ten (tolerances) do not.
_MEASURED = re.compile(
    rf"\b(?:{_NUMBER}|{_WORD})(?:\s+(?:and|to|or)\s+(?:{_NUMBER}|{_WORD}))?(?:\s+of)?\s*{_UNIT}(?!\w)"
    rf"|(?<![\w.])\d+\.\d+(?:e[-+]?\d+)?(?!\w|\.\d)"
    rf"|\b{_PART}\s+(?:of\s+)?(?:its|the|their|a|an)\s+{_TIME}\b"
    rf"|\b(?:twice|{_WORD}\s+times)\s+as\s+(?:fast|quick|slow|long|much)\b"
)
_TOKEN = re.compile(rf"{_NUMBER}|\b{_WORD}\b|\b{_PART}\b|\btwice\b")
_CODE = re.compile(
    r"^(```+|~~~+).*?^\1|`[^`\n]+`|\$\$.*?\$\$|\$[^$\n]+\$|(?<=\])\([^)\n]*\)|<!--.*?-->",
    re.DOTALL | re.MULTILINE,
)


def measured(page: str) -> Iterator[Span]:
    """Places of the numbers of a page that look like measurements; code and formulas apart."""
    text = _CODE.sub(lambda match: re.sub(r"[^\n]", " ", match.group()), page)
    for match in _MEASURED.finditer(text):
        for token in _TOKEN.finditer(match.group()):
            yield match.start() + token.start(), match.start() + token.end()


# --------------------------------------------------------------------------------------- the check


def check(root: Path = ROOT) -> list[str]:
    """Everything that does not agree, one sentence each."""
    table, figures = read_table(root / TABLE), all_figures(root)
    names = pages(root) + sorted({quote.file for quote in table.quotes} - set(pages(root)))
    texts = {name: (root / name).read_text(encoding="utf-8") for name in names}
    problems = [] if _picture_is_current(root) else [f"{PICTURE} was drawn from other data."]
    covered: dict[str, list[Span]] = {name: [] for name in texts}
    for quote in table.quotes:
        problems += _check_quote(quote, texts, figures, covered)
    for claim in table.claims:
        problems += _check_claim(claim, texts, figures)
    prose = {name: texts[name] for name in pages(root)}  # and no code that is quoted from
    return problems + _check_coverage(table.exemptions, prose, covered)


def _check_quote(
    quote: Quote, texts: dict[str, str], figures: Figures, covered: dict[str, list[Span]]
) -> list[str]:
    missing = [name for name in quote.names if name not in figures]
    if missing:
        return [f"{quote.file}: there is no figure {', '.join(missing)} for {_short(quote.text)}"]
    matches = quote.find(texts.get(quote.file, ""), figures)
    if len(matches) != 1:
        return [f"{quote.file}: found {len(matches)} times instead of once: {_short(quote.text)}"]
    problems = []
    for number, name in enumerate(quote.names, start=1):
        covered[quote.file].append(matches[0].span(number))
        said, figure = matches[0][number], figures[name]
        if _differ(said, figure.text):
            problems.append(
                f"{quote.file}: says {_short(said)}; {figure.source} gives {_short(figure.text)} "
                f"({name}) in {_short(quote.text)}"
            )
    return problems


def _check_claim(claim: Claim, texts: dict[str, str], figures: Figures) -> list[str]:
    if not re.search(_flexible(claim.text), texts.get(claim.file, "")):
        return [f"{claim.file}: no longer claims {_short(claim.text)}"]
    figure = figures.get(claim.figure)
    if figure is None:
        return [f"{claim.file}: there is no figure {claim.figure} for {_short(claim.text)}"]
    if claim.least <= figure.value <= claim.most:
        return []
    return [
        f"{claim.file}: {_short(claim.text)} needs {claim.figure} between {claim.least:g} and "
        f"{claim.most:g}; {figure.source} gives {figure.text}"
    ]


def _check_coverage(
    exemptions: list[Exemption], texts: dict[str, str], covered: dict[str, list[Span]]
) -> list[str]:
    """Measurements that no entry knows, and exemptions that exempt nothing."""
    problems, used = [], set()
    for name, text in texts.items():
        own = [e for e in exemptions if e.file in (name, "*")]
        exempt = {e: [match.span() for match in re.finditer(_flexible(e.text), text)] for e in own}
        for token in measured(text):
            if _inside(token, covered[name]):
                continue
            by = [e for e, spans in exempt.items() if _inside(token, spans)]
            used.update(by)
            if not by:
                line = text.count("\n", 0, token[0]) + 1
                around = text[max(0, token[0] - 40) : token[1] + 25].replace("\n", " ")
                problems.append(
                    f"{name}:{line}: {text[slice(*token)]!r} looks measured and has no entry in "
                    f"{TABLE}: ...{around}..."
                )
    idle = [e for e in exemptions if e not in used and e.file != "*"]
    return problems + [f"{e.file}: exempts nothing: {_short(e.text)}" for e in idle]


def _inside(token: Span, spans: list[Span]) -> bool:
    return any(first <= token[0] and token[1] <= last for first, last in spans)


def _differ(said: str, figure: str) -> bool:
    return said.split() != figure.split()


def _short(text: str) -> str:
    line = " ".join(text.split())
    return f'"{line if len(line) < 90 else line[:87] + "..."}"'


# ------------------------------------------------------------------------------------- the picture


def _overview(root: Path) -> dict[str, Any] | None:
    from tessella_bench._overview import overview

    return overview(json.loads((root / REPORT).read_text(encoding="utf-8")))


def _picture_is_current(root: Path) -> bool:
    from PIL import Image

    from tessella_bench._overview import MARK, fingerprint

    data, path = _overview(root), root / PICTURE
    if data is None or not path.is_file():
        return False
    with Image.open(path) as picture:
        return bool(picture.info.get(MARK) == fingerprint(data))


def _draw(root: Path) -> None:
    from tessella_bench._overview import draw_overview

    data = _overview(root)
    if data is not None:
        draw_overview(data, root / PICTURE)


# -------------------------------------------------------------------------------------- the update


def update(root: Path = ROOT) -> list[str]:
    """Write the figures into the texts, and draw the picture; tells what was changed."""
    table, figures = read_table(root / TABLE), all_figures(root)
    changed = []
    if not _picture_is_current(root):
        _draw(root)
        changed.append(f"{PICTURE}: drawn")
    for quote in table.quotes:
        path = root / quote.file
        page = path.read_text(encoding="utf-8")
        known = all(name in figures for name in quote.names)
        matches = quote.find(page, figures) if known else []
        if len(matches) != 1:
            continue  # the check says so
        for number, name in reversed(list(enumerate(quote.names, start=1))):
            (first, last), new = matches[0].span(number), figures[name].text
            if _differ(page[first:last], new):
                said = _short(page[first:last])
                changed.append(f"{quote.file}: {said} is now {_short(new)} ({name})")
                page = page[:first] + new + page[last:]
        path.write_text(page, encoding="utf-8")
    return changed


def listing(root: Path = ROOT) -> str:
    """Each figure with its value, its file and the pages that quote it."""
    table, lines = read_table(root / TABLE), []
    for name, figure in all_figures(root).items():
        quoted = {q.file for q in table.quotes if name in q.names}
        quoted |= {c.file for c in table.claims if c.figure == name}
        where = ", ".join(sorted(quoted)) or "nobody"
        lines.append(f"{name} = {figure.text}\n    from {figure.source}, quoted by {where}")
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    """The command; returns its exit status."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--update", action="store_true", help="write texts and picture anew")
    parser.add_argument("--list", action="store_true", help="print every figure and its source")
    options = parser.parse_args(arguments)
    if options.list:
        sys.stdout.write(listing() + "\n")
        return 0
    if options.update:
        sys.stdout.write("".join(f"{line}\n" for line in update()))
    problems = check()
    sys.stderr.write("".join(f"{line}\n" for line in problems))
    sys.stdout.write(f"{len(problems)} problems\n" if problems else "All figures agree.\n")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
