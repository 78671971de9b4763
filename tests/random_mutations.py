"""Break the library at random and measure how often the tests notice.

``tests/mutations.py`` has the mutations that somebody thought of. This draws some at random: a
place in the code of ``problems/``, ``svm/`` and ``kernels/``, and a change of that place, from the
operators of Cosmic Ray (another arithmetic operator, another comparison, a number that is one
larger, a negated condition, a loop that never runs, ...). Annotations and docstrings are left out,
because they do nothing. Each mutant is tried with the tests of its folder in a copy of the
package; if these do not notice, with the tests of the layers that use it. With a coverage file that
knows the tests of each line, those that run the line are tried: a few first, then some hundreds,
all functions of tests before more cases of one, and rather quick ones than slow ones. The sample is
small, so a survivor may be one that other tests notice, never the other way round.

    python -m pytest --cov=tessella --cov-context=test --cov-report= --junitxml=junit.xml -n 2
    python tests/random_mutations.py --count 60 --results mutants.jsonl --coverage .coverage
    python tests/random_mutations.py --count 300 --results mutants.jsonl   # goes on from there
    python tests/random_mutations.py --results mutants.jsonl --report mutants.md --count 0

The same seed and the same sources give the same mutants in the same order, and a larger count
contains a smaller one. Results are kept by the text of the mutant, so that a run that was stopped
goes on, and after a change of the tests only the survivors have to be tried again (``--retry``,
with ``--tests`` by the new tests alone).
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
from bisect import bisect
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cache
from itertools import accumulate
from pathlib import Path
from typing import TypeGuard
from xml.etree import ElementTree

from cosmic_ray import plugins
from cosmic_ray.ast import Visitor, get_ast
from cosmic_ray.mutating import mutate_code
from mutations import PACKAGE, SECONDS, Copy, MutationError, read_explanations, short

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

# Tests that are tried, at most so many and for at most so many seconds: a few of the folder's tests
# that run the line, which notice most mutants, then more of them, then any tests that run it, then
# others of the folder. These are for objects that are made while tests are collected: coverage does
# not know which test they belong to.
GROUPS = (("near", 40, 8.0), ("near", 200, 15.0), ("running", 150, 10.0), ("folder", 200, 8.0))
USUAL = 0.1  # seconds of a test whose duration is not known

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
    """Mutants in a random order with the text of the broken file; each place and key once."""
    draw = random.Random(seed)
    sources = {
        path.relative_to(PACKAGE).as_posix(): path.read_text()
        for folder in FOLDERS
        for path in sorted((PACKAGE / folder).glob("*.py"))
    }
    places = [(f, p, ways) for f, text in sources.items() for p, ways in places_of(text).items()]
    draw.shuffle(places)
    drawn = set()
    for file, _, ways in places:
        name, occurrence = draw.choice(ways)
        source = sources[file]
        text = mutate_code(source, operators()[name], occurrence)
        if text is None or not differs(source, text):
            continue
        line, old, new = changed_lines(source, text)
        mutant = Mutant(file, line, name.removeprefix("core/"), old, new)
        if mutant.key not in drawn:
            drawn.add(mutant.key)
            yield mutant, text


class Covering:
    """The tests that run each line of the package, from a coverage file with contexts.

    Parameters
    ----------
    path : Path
        The coverage file.
    known : set of str
        The tests that there are; the file may be older.
    seconds : dict
        The durations of some tests.
    """

    def __init__(self, path: Path, known: set[str], seconds: dict[str, float]) -> None:
        from coverage import CoverageData

        data = CoverageData(str(path))
        data.read()
        self._known = known
        self._seconds = seconds
        # Lines that only the import runs have no test.
        self._lines = {
            name.split("/tessella/", 1)[1]: data.contexts_by_lineno(name)
            for name in data.measured_files()
            if "/tessella/" in name
        }

    def tests(self, mutant: Mutant) -> list[tuple[str, ...]]:
        """Groups of tests to try one after the other."""
        lines = running_lines((PACKAGE / mutant.file).read_text(), mutant.line)
        names = self._running(mutant.file, lines) or self._running(mutant.file, None)
        running = in_random_order(names, self._seconds)
        near = TESTS[mutant.file.split("/")[0]][0]
        folder = [name for name in sorted(self._known) if name.startswith(near)]
        pools = {
            "near": [name for name in running if name.startswith(near)],
            "running": running,
            "folder": in_random_order(folder, self._seconds),
        }
        groups: list[tuple[str, ...]] = []
        for pool, most, budget in GROUPS:
            tried = {name for group in groups for name in group}
            wanted = [name for name in pools[pool] if name not in tried][:most]
            spent = list(accumulate(self._seconds.get(name, USUAL) for name in wanted))
            groups.append(tuple(wanted[: bisect(spent, budget)]))
        return [group for group in groups if group]

    def patience(self, tests: tuple[str, ...]) -> float:
        """Seconds after which tests are taken not to end."""
        return 100 + 10 * sum(self._seconds.get(name, USUAL) for name in tests)

    def _running(self, file: str, lines: set[int] | None) -> list[str]:
        """The tests that run some lines of a file, or any of its lines."""
        contexts = self._lines.get(file, {})
        chosen = contexts if lines is None else lines & contexts.keys()
        names = {
            own.split("|")[0].removeprefix("tests/") for line in chosen for own in contexts[line]
        }
        return sorted(names & self._known)


def in_random_order(names: list[str], seconds: dict[str, float]) -> list[str]:
    """First one case of every function of tests, then the second cases; rather quick ones first."""
    draw = random.Random(0)
    late = {name: draw.expovariate(1) * (seconds.get(name, USUAL) + USUAL) for name in names}
    cases: dict[str, int] = defaultdict(int)
    turn = {}
    for name in sorted(names, key=late.__getitem__):
        function = name.split("[")[0]
        turn[name] = cases[function]
        cases[function] += 1
    return sorted(names, key=lambda name: (turn[name], late[name]))


def read_seconds(path: Path) -> dict[str, float]:
    """The durations of tests, from a file that pytest has written with ``--junitxml``."""
    return {
        f"{case.get('classname', '').replace('.', '/').removeprefix('tests/')}.py"
        f"::{case.get('name')}": float(case.get("time", USUAL))
        for case in ElementTree.parse(path).iter("testcase")
    }


def running_lines(source: str, line: int) -> set[int]:
    """The lines that tests run when they depend on a line.

    This is the start of its statement. The head of a function and what the import sets run once for
    all tests; for these it is the body of the function, or the statements with an assigned name.
    """
    tree = ast.parse(source)
    own = statement_at(tree, line)
    if isinstance(own, ast.FunctionDef):
        return {node.lineno for part in own.body for node in ast.walk(part) if has_lines(node)}
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    if any(first_line(node) <= line <= (node.end_lineno or 0) for node in functions):
        return {own.lineno}
    names = {
        node.id
        for node in ast.walk(own)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
    readers = [
        node
        for node in ast.walk(tree)
        if (isinstance(node, ast.Name) and node.id in names)
        or (isinstance(node, ast.Attribute) and node.attr in names)
    ]
    return {statement_at(tree, node.lineno).lineno for node in readers}


def has_lines(node: ast.AST) -> TypeGuard[ast.expr | ast.stmt]:
    """Whether a node says where it is."""
    return isinstance(node, ast.expr | ast.stmt)


def statement_at(tree: ast.Module, line: int) -> ast.stmt:
    """The innermost statement that a line belongs to."""
    around = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.stmt) and first_line(node) <= line <= (node.end_lineno or 0)
    ]
    return max(around, key=lambda node: node.lineno)


def first_line(node: ast.stmt) -> int:
    """Where a statement starts, with its decorators."""
    return min([node.lineno, *(part.lineno for part in getattr(node, "decorator_list", []))])


def failing_alone(copy: Copy, tests: tuple[str, ...], patience: float) -> str | None:
    """The first test that fails, by itself too, or None: a sample is an unusual order of tests."""
    while tests:
        test = copy.failed_test(tests, patience)
        if test not in tests or copy.failed_test((test,), patience) is not None:
            return test
        tests = tuple(name for name in tests if name != test)
    return None


def noticed_by(
    mutant: Mutant, text: str, copy: Copy, covering: Covering | None, given: tuple[str, ...]
) -> str | None:
    """The test that fails with a mutant, or None; the copy is left as it was.

    The tests are those that are given, those of a coverage file, or those of the folders.
    """
    path = copy.package / mutant.file
    whole = path.read_text()
    path.write_text(text)
    groups = [given] if given else list(TESTS[mutant.file.split("/")[0]])
    if covering is not None:
        groups = covering.tests(mutant)
    try:
        for tests in groups:
            patience = SECONDS if covering is None else covering.patience(tests)
            try:
                test = failing_alone(copy, tests, patience)
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
    """The score of each folder, and the survivors with what explains them."""
    lines = [
        "# Random mutants",
        "",
        "Changes of random places of the code, and how many of them the tests notice "
        "(`tests/random_mutations.py`). A sample of the tests that run a line is tried, so a "
        "survivor may be one that other tests notice. Tests are added for survivors, so that the "
        "share of a sample that has been worked on is above that of a new one.",
        "",
        "| folder | mutants | noticed | share |",
        "|---|---:|---:|---:|",
    ]
    for folder in (*FOLDERS, ""):
        rows = [r for r in results.values() if str(r["file"]).startswith(folder)]
        noticed = sum(r["test"] is not None for r in rows)
        share = f"{noticed / len(rows):.0%}" if rows else ""
        lines.append(f"| {folder or '**all**'} | {len(rows)} | {noticed} | {share} |")
    why = {(e.file, e.old, e.new): e.why for e in read_explanations()}
    lines += ["", "## Survivors", "", "| line | before | after | why |", "|---|---|---|---|"]
    for row in sorted(results.values(), key=lambda r: (str(r["file"]), int(str(r["line"])))):
        if row["test"] is None:
            cells = [short(str(row[side]), 90).replace("|", "\\|") for side in ("old", "new")]
            reason = why.get((str(row["file"]), str(row["old"]), str(row["new"])), "")
            lines.append(
                f"| {row['file']}:{row['line']} | `{cells[0]}` | `{cells[1]}` | {reason} |"
            )
    return "\n".join(lines) + "\n"


def main() -> int:
    """Try mutants; see the head of this file."""
    parser = argparse.ArgumentParser(description="Break the library at random.")
    parser.add_argument("--count", type=int, default=60, help="how many mutants in all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--results", type=Path, default=Path("mutants.jsonl"))
    parser.add_argument("--report", type=Path, help="a file for the table")
    parser.add_argument("--coverage", type=Path, help="a coverage file with the tests of each line")
    parser.add_argument("--durations", type=Path, help="durations of tests, in JUnit's format")
    parser.add_argument("--tests", nargs="+", default=[], help="tests to try, below tests/")
    parser.add_argument("--retry", action="store_true", help="try the survivors again")
    options = parser.parse_args()
    # Tests of Ctrl-C need it to work; a shell turns it off for what it runs in the background.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    results = read_results(options.results)
    covering = None
    chosen: list[dict[str, object]] = []
    tried = False
    with tempfile.TemporaryDirectory() as folder:
        copy = Copy(Path(folder) / "copy")
        if options.coverage:
            seconds = read_seconds(options.durations) if options.durations else {}
            covering = Covering(options.coverage, copy.tests(), seconds)
        for mutant, text in mutants(options.seed):
            if len(chosen) >= options.count:
                break
            known = results.get(mutant.key)
            if known is None or (options.retry and known["test"] is None):
                start = time.monotonic()
                test = noticed_by(mutant, text, copy, covering, tuple(options.tests))
                seconds = round(time.monotonic() - start)
                known = {**asdict(mutant), "key": mutant.key, "test": test, "seconds": seconds}
                with options.results.open("a") as file:
                    file.write(json.dumps(known) + "\n")
                change = short(f"{mutant.old} -> {mutant.new}", 100)
                where = f"{mutant.file}:{mutant.line}"
                print(f"{seconds:5} s  {where:38} {change:100}  {test or 'NOBODY'}", flush=True)
                tried = True
            chosen.append(known)
        noticing = {str(row["test"]) for row in chosen if "::" in str(row["test"])}
        wrong = failing_alone(copy, tuple(sorted(noticing)), SECONDS) if tried else None
    if wrong is not None:
        print(f"error: {wrong} fails without any mutation.")
        return 2
    table = report({str(row["key"]): row for row in chosen})
    if options.report:
        options.report.write_text(table)
    print(table)
    return int(any(row["test"] is None for row in chosen))


if __name__ == "__main__":
    raise SystemExit(main())
