"""Break the library at random and measure how often the tests notice.

``tests/mutations.py`` has the mutations that somebody thought of. This draws some at random: a
place in the code of ``problems/``, ``svm/`` and ``kernels/``, and a change of that place, from the
operators of Cosmic Ray (another arithmetic operator, another comparison, a number that is one
larger, a negated condition, a loop that never runs, ...). Annotations and docstrings are left out,
because they do nothing. Each mutant is tried with the tests of its folder in a copy of the
package; if these do not notice, with the tests of the layers that use it. With a coverage file that
knows the tests of each line, those that run the line are tried, a random part of them first.

    python -m pytest --cov=tessella --cov-context=test --cov-report= -n 2
    python tests/random_mutations.py --count 60 --results mutants.jsonl --coverage .coverage
    python tests/random_mutations.py --count 300 --results mutants.jsonl   # goes on from there
    python tests/random_mutations.py --results mutants.jsonl --report mutants.md --count 0

The same seed and the same sources give the same mutants in the same order, and a larger count
contains a smaller one. Results are kept by the text of the mutant, so that a run that was stopped
goes on, and after a change of the tests only the survivors have to be tried again (``--retry``).
Needs the packages of the ``test`` extra, ``cosmic-ray`` and, for a coverage file, ``pytest-cov``.
"""

from __future__ import annotations

import argparse
import ast
import json
import random
import signal
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

from cosmic_ray import plugins
from cosmic_ray.ast import Visitor, get_ast
from cosmic_ray.mutating import mutate_code
from mutations import PACKAGE, Copy, MutationError, short

FOLDERS = ("problems", "svm", "kernels")
# The tests of the folder first, then those of its users; the first one that fails ends it.
TESTS = {
    "problems": (("problems",), ("solvers", "estimators/test_properties.py")),
    "svm": (("svm", "problems"), ("solvers", "estimators/test_properties.py")),
    "kernels": (
        ("kernels", "backend", "multiple_kernels/test_dictionary.py"),
        ("solvers/test_sums.py", "estimators", "inspection", "features"),
    ),
}

FIRST_TESTS = 40  # of those that run a line; most mutants are noticed by nearly any of them
MOST_TESTS = 1500  # that are named one by one; of more, the folders are tried

Place = tuple[tuple[int, int], tuple[int, int]]


@dataclass(frozen=True)
class Mutant:
    """A change of one place.

    Attributes
    ----------
    file : str
        The file within the package.
    line : int
        Where it is changed.
    operator : str
        The name of the operator of Cosmic Ray.
    old, new : str
        The changed lines, before and after.
    """

    file: str
    line: int
    operator: str
    old: str
    new: str

    @property
    def key(self) -> str:
        """What identifies it, as long as the lines stay the same."""
        return f"{self.file}: {self.old} -> {self.new}"


class Places(Visitor):
    """The places that each operator can change, in the order of Cosmic Ray's occurrences."""

    def __init__(self) -> None:
        self.found: dict[str, list[Place]] = {name: [] for name in operators()}

    def visit(self, node):
        for name, operator in operators().items():
            self.found[name] += operator.mutation_positions(node)
        return node


@cache
def operators() -> dict[str, object]:
    """Operators without parameters, by name."""
    left_out = ("Variable", "RemoveDecorator")  # need names, or change the interface
    names = [n for n in plugins.operator_names() if not n.split("/")[1].startswith(left_out)]
    return {name: plugins.get_operator(name)() for name in sorted(names)}


def silent_places(source: str) -> list[Place]:
    """Ranges of annotations and docstrings, which do nothing when the code runs."""
    found = []
    for node in ast.walk(ast.parse(source)):
        parts = [getattr(node, "annotation", None), getattr(node, "returns", None)]
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            parts.append(node.value)
        found += [
            ((p.lineno, p.col_offset), (p.end_lineno or 0, p.end_col_offset or 0))
            for p in parts
            if p is not None
        ]
    return found


def places_of(source: str) -> dict[Place, list[tuple[str, int]]]:
    """The places of a file that can be changed, each with its operators and occurrences."""
    silent = silent_places(source)
    found: dict[Place, list[tuple[str, int]]] = defaultdict(list)
    visitor = Places()
    visitor.walk(get_ast(source))
    for name, places in visitor.found.items():
        for occurrence, place in enumerate(places):
            if not any(start <= place[0] and place[1] <= end for start, end in silent):
                found[place].append((name, occurrence))
    return found


def differs(source: str, text: str) -> bool:
    """Whether a changed text is a program, and another one."""
    try:
        return ast.dump(ast.parse(text)) != ast.dump(ast.parse(source))
    except SyntaxError:  # the operator took the star of an argument list for a product
        return False


def changed_lines(before: str, after: str) -> tuple[int, str, str]:
    """The number of the first changed line, and the changed lines before and after."""
    old, new = before.splitlines(), after.splitlines()
    first = next(i for i, (a, b) in enumerate(zip(old, new, strict=False)) if a != b)
    last = next(i for i, (a, b) in enumerate(zip(old[::-1], new[::-1], strict=False)) if a != b)
    lines = ["\n".join(text[first : len(text) - last]).strip() for text in (old, new)]
    return first + 1, lines[0], lines[1]


def mutants(seed: int) -> Iterator[tuple[Mutant, str]]:
    """Mutants in a random order, each place once, with the text of the broken file."""
    draw = random.Random(seed)
    sources = {
        path.relative_to(PACKAGE).as_posix(): path.read_text()
        for folder in FOLDERS
        for path in sorted((PACKAGE / folder).glob("*.py"))
    }
    places = [(f, p, ways) for f, text in sources.items() for p, ways in places_of(text).items()]
    draw.shuffle(places)
    for file, _, ways in places:
        name, occurrence = draw.choice(ways)
        source = sources[file]
        text = mutate_code(source, operators()[name], occurrence)
        if text is None or not differs(source, text):
            continue
        line, old, new = changed_lines(source, text)
        yield Mutant(file, line, name.removeprefix("core/"), old, new), text


class Covering:
    """The tests that run each line of the package, from a coverage file with contexts."""

    def __init__(self, path: Path) -> None:
        from coverage import CoverageData

        self._data = CoverageData(str(path))
        self._data.read()
        files = self._data.measured_files()
        self._lines = {
            name.split("/tessella/", 1)[1]: self._data.contexts_by_lineno(name)
            for name in files
            if "/tessella/" in name
        }

    def tests(self, mutant: Mutant) -> list[tuple[str, ...]] | None:
        """Groups of tests to try one after the other; None if only the import runs the line."""
        start = start_of_statement((PACKAGE / mutant.file).read_text(), mutant.line)
        contexts = self._lines.get(mutant.file, {}).get(start, [])
        names = sorted({own.split("|")[0].removeprefix("tests/") for own in contexts if own})
        if not names:
            return None
        random.Random(0).shuffle(names)
        folder = mutant.file.split("/")[0]
        names.sort(key=lambda name: not name.startswith(TESTS[folder][0]))
        own = sum(name.startswith(TESTS[folder][0]) for name in names)
        first, near, far = (
            names[:FIRST_TESTS],
            names[FIRST_TESTS:own],
            names[max(own, FIRST_TESTS) :],
        )
        if len(far) > MOST_TESTS:
            return [tuple(first), *TESTS[folder]]
        return [tuple(group) for group in (first, near, far) if group]


def start_of_statement(source: str, line: int) -> int:
    """The first line of the innermost statement that a line belongs to."""
    around = [
        node
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.stmt) and node.lineno <= line <= (node.end_lineno or node.lineno)
    ]
    return max((node.lineno for node in around), default=line)


def noticed_by(
    mutant: Mutant, text: str, copy: Copy, covering: Covering | None = None
) -> str | None:
    """The test that fails with a mutant, or None; the copy is left as it was."""
    path = copy.package / mutant.file
    whole = path.read_text()
    path.write_text(text)
    own = None if covering is None else covering.tests(mutant)
    try:
        for tests in TESTS[mutant.file.split("/")[0]] if own is None else own:
            try:
                test = copy.failed_test(tests)
            except MutationError:
                return "(cannot be imported)"
            if test is not None:
                return test
        return None
    finally:
        path.write_text(whole)


def read_results(path: Path) -> dict[str, dict[str, object]]:
    """Results by mutant; a later line replaces an earlier one."""
    if not path.exists():
        return {}
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    return {row["key"]: row for row in rows}


def report(results: dict[str, dict[str, object]]) -> str:
    """The score of each folder, and the survivors."""
    lines = ["| folder | mutants | noticed | share |", "|---|---|---|---|"]
    for folder in (*FOLDERS, ""):
        rows = [r for r in results.values() if str(r["file"]).startswith(folder)]
        noticed = sum(r["test"] is not None for r in rows)
        share = f"{noticed / len(rows):.0%}" if rows else ""
        lines.append(f"| {folder or 'all'} | {len(rows)} | {noticed} | {share} |")
    lines += ["", "| survivor | before | after |", "|---|---|---|"]
    for row in sorted(results.values(), key=lambda r: (str(r["file"]), int(str(r["line"])))):
        if row["test"] is None:
            cells = [short(str(row[side]), 90).replace("|", "\\|") for side in ("old", "new")]
            lines.append(f"| {row['file']}:{row['line']} | `{cells[0]}` | `{cells[1]}` |")
    return "\n".join(lines) + "\n"


def main() -> int:
    """Try mutants; see the head of this file."""
    parser = argparse.ArgumentParser(description="Break the library at random.")
    parser.add_argument("--count", type=int, default=60, help="how many mutants in all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--results", type=Path, default=Path("mutants.jsonl"))
    parser.add_argument("--report", type=Path, help="a file for the table")
    parser.add_argument("--coverage", type=Path, help="a coverage file with the tests of each line")
    parser.add_argument("--retry", action="store_true", help="try the survivors again")
    options = parser.parse_args()
    # Tests of Ctrl-C need it to work; a shell turns it off for what it runs in the background.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    results = read_results(options.results)
    covering = Covering(options.coverage) if options.coverage else None
    chosen: list[dict[str, object]] = []
    with tempfile.TemporaryDirectory() as folder:
        copy = Copy(Path(folder) / "copy")
        for mutant, text in mutants(options.seed):
            if len(chosen) >= options.count:
                break
            known = results.get(mutant.key)
            if known is None or (options.retry and known["test"] is None):
                start = time.monotonic()
                test = noticed_by(mutant, text, copy, covering)
                seconds = round(time.monotonic() - start)
                known = {**asdict(mutant), "key": mutant.key, "test": test, "seconds": seconds}
                with options.results.open("a") as file:
                    file.write(json.dumps(known) + "\n")
                change = short(f"{mutant.old} -> {mutant.new}", 100)
                where = f"{mutant.file}:{mutant.line}"
                print(f"{seconds:5} s  {where:38} {change:100}  {test or 'NOBODY'}", flush=True)
            chosen.append(known)
    table = report({str(row["key"]): row for row in chosen})
    if options.report:
        options.report.write_text(table)
    print(table)
    return int(any(row["test"] is None for row in chosen))


if __name__ == "__main__":
    raise SystemExit(main())
