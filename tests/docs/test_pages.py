"""The pages name only what exists, leave nothing public out, and their programs run."""

from __future__ import annotations

import ast
import importlib
import pkgutil
import re
import sys
from pathlib import Path
from types import ModuleType, UnionType
from typing import Any, get_origin

import pytest
import typer

import tessella
from tessella_bench._command import benchmark
from tessella_bench.figures import FIGURES

ROOT = Path(__file__).parent.parent.parent
DOCS = ROOT / "docs"
PAGES = sorted(p for p in DOCS.rglob("*.md") if not {"_build", "_generated"} & set(p.parts))
PROGRAMS = [p for p in PAGES if "```python" in p.read_text() and p.name not in ("index.md",)]


# ------------------------------------------------------------------------ from paper to code


def resolve(path: str) -> object:
    """The object of a dotted path, whether it ends in a module, a name or a member."""
    parts = path.split(".")
    for split in range(len(parts), 0, -1):
        name = ".".join(parts[:split])
        try:
            found: object = importlib.import_module(name)
        except ModuleNotFoundError as error:
            if not name.startswith(error.name or "?"):
                raise
            continue
        for part in parts[split:]:
            found = getattr(found, part)
        return found
    raise ModuleNotFoundError(path)


def names_in(page: str, pattern: str) -> list[str]:
    return sorted(set(re.findall(pattern, (DOCS / page).read_text())))


@pytest.mark.parametrize("page", ["paper-to-code.md", "architecture.md", "guide/certificates.md"])
def test_named_tests_exist(page):
    named = names_in(page, r"`((?:bench/)?tests/[\w/]+\.py::\w+)`")
    assert len(named) > 3
    for name in named:
        path, function = name.split("::")
        defined = {
            node.name
            for node in ast.parse((ROOT / path).read_text()).body
            if isinstance(node, ast.FunctionDef)
        }
        assert function in defined, name


def test_named_functions_exist():
    named = names_in("paper-to-code.md", r"`(tessella(?:_bench)?(?:\.\w+)+)`")
    assert len(named) > 30
    for name in named:
        assert resolve(name) is not None, name


def test_named_commands_exist():
    named = names_in("paper-to-code.md", r"`python ((?:benchmarks|examples)/\w+\.py)")
    assert len(named) > 5
    for name in named:
        assert (ROOT / name).is_file(), name
    known = typer.main.get_command(benchmark).commands
    tasks = names_in("paper-to-code.md", r"`tessella benchmark (\w+)")
    assert {"classification", "regression", "figures"} <= set(tasks) <= set(known)
    assert set(names_in("paper-to-code.md", r"figures --names (\w+)")) == set(FIGURES)


def test_every_numbered_item_of_the_paper_has_a_row():
    text = (DOCS / "paper-to-code.md").read_text()
    rows = [line.split("|")[1] for line in text.splitlines() if line.startswith("| ")]
    numbered = {int(n) for row in rows for n in re.findall(r"\((\d+)\)", row)}
    assert numbered == set(range(1, 21))
    stated = {
        int(n)
        for row in rows
        if re.match(r" ?(Definition|Lemma|Proposition|Theorem|Corollary)", row)
        for n in re.findall(r"\d+", row)
    }
    assert stated == set(range(1, 16))
    algorithms = text[text.index("## Algorithms") : text.index("## Tables and figures")]
    first = [li.split("|")[1] for li in algorithms.splitlines() if re.match(r"\| \d", li)]
    assert {int(n) for cell in first for n in re.findall(r"\d+", cell)} >= set(range(1, 7))
    for kind, numbers in {"Tables?": {1, 2, 3, 4}, "Figure": {2, 3, 4, 6}}.items():
        found = (re.match(rf" {kind} ([\d, ]+)", row) for row in rows)
        assert {int(n) for m in found if m for n in re.findall(r"\d+", m[1])} == numbers
    for name in ("PMKL", "PMKL_Boosted", "paramsTK", "evaluatePMKL", "numericalTest.m"):
        assert f" `{name}` " in rows


def test_every_row_names_a_test():
    """Rows of equations, statements, algorithms, tables, figures and the interface."""
    text = (DOCS / "paper-to-code.md").read_text()
    rows = [li for li in text[: text.index("(errata)=")].splitlines() if li.startswith("| ")]
    assert len(rows) > 60
    for row in (r for r in rows if "| what |" not in r):
        assert re.search(r"`(?:bench/)?tests/", row.rsplit("|", 2)[1]), row


# -------------------------------------------------------------------------------- reference


def public_modules() -> list[ModuleType]:
    """Every module of the package whose path has no underscore, and the package."""
    found = [tessella]
    for info in pkgutil.walk_packages(tessella.__path__, "tessella."):
        if not any(part.startswith("_") for part in info.name.split(".")):
            module = importlib.import_module(info.name)
            if hasattr(module, "__all__"):
                found.append(module)
    return found


def documented() -> list[tuple[str, str]]:
    """Module and name of every entry of an autosummary table of the reference."""
    entries = []
    for page in (DOCS / "api").glob("*.rst"):
        module, inside = "", False
        for line in page.read_text().splitlines():
            if line.startswith(".. currentmodule::"):
                module = line.split("::")[1].strip()
            elif line.startswith(".. autosummary::"):
                inside = True
            elif line and not line.startswith(" "):
                inside = False
            elif inside and re.fullmatch(r"   \w+", line):
                entries.append((module, line.strip()))
    return entries


def is_alias(found: object) -> bool:
    """Whether an object is the name of a type of others, which has no page of its own."""
    return found is Any or isinstance(found, UnionType) or get_origin(found) is not None


def test_reference_has_every_public_name():
    have = documented()
    objects = [getattr(importlib.import_module(module), name) for module, name in have]
    missing = [
        f"{module.__name__}.{name}"
        for module in public_modules()
        for name in module.__all__
        if name != "__version__"
        and not is_alias(getattr(module, name))
        and not any(getattr(module, name) is known for known in objects)
    ]
    assert missing == []


def test_reference_explains_every_name_of_a_type():
    pages = "".join(page.read_text() for page in (DOCS / "api").glob("*.rst"))
    aliases = {n for m in public_modules() for n in m.__all__ if is_alias(getattr(m, n))}
    assert {"Callback", "Point"} <= aliases
    assert [name for name in sorted(aliases) if f"``{name}``" not in pages] == []


def test_reference_has_nothing_else_and_nothing_twice():
    have = documented()
    assert len(set(have)) == len(have)
    for module, name in have:
        assert name in importlib.import_module(module).__all__, f"{module}.{name}"


# --------------------------------------------------------------------------------- programs


@pytest.mark.parametrize("page", PROGRAMS, ids=lambda p: str(p.relative_to(DOCS)))
def test_programs_run(page, tmp_path, monkeypatch):
    """The programs of a page, one after the other in one namespace."""
    monkeypatch.chdir(tmp_path)
    module = ModuleType("page")
    monkeypatch.setitem(sys.modules, "page", module)
    namespace = vars(module)
    for program in re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL):
        exec(compile(program, str(page), "exec"), namespace)


@pytest.mark.parametrize("page", PROGRAMS, ids=lambda p: str(p.relative_to(DOCS)))
def test_programs_import_public_names_only(page):
    programs = re.findall(
        r"```(?:python|\{code-block\} python)\n(.*?)```", page.read_text(), re.DOTALL
    )
    for program in programs:
        for node in ast.walk(ast.parse(program)):
            modules = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names = node.names if isinstance(node, ast.Import | ast.ImportFrom) else []
            parts = [
                part for name in (*modules, *(a.name for a in names)) for part in name.split(".")
            ]
            assert not any(part.startswith("_") for part in parts), ast.unparse(node)


def test_the_guide_has_programs():
    assert {"quickstart.md", "extending.md", "saddle-point.md"} <= {p.name for p in PROGRAMS}


def test_every_example_is_in_the_order_of_the_gallery():
    order = ast.parse((DOCS / "_ext" / "tessella_pages.py").read_text())
    (listed,) = (
        ast.literal_eval(node.value)
        for node in order.body
        if isinstance(node, ast.Assign) and node.targets[0].id == "_ORDER"
    )
    assert sorted(listed) == sorted(p.name for p in (ROOT / "examples").glob("plot_*.py"))
