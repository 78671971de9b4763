"""The tables of the benchmarks page come from the committed results."""

from __future__ import annotations

import importlib
import json
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
BENCHMARKS = ROOT / "benchmarks"
RESULTS = BENCHMARKS / "results"


def extension(name):
    """A module of the documentation's own extension."""
    folder = str(ROOT / "docs" / "_ext")
    sys.path.insert(0, folder)
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(folder)


@pytest.fixture(scope="module")
def tables():
    return extension("benchmark_tables")


def test_every_fragment_is_included_and_nothing_else(tables, tmp_path):
    tables.write_all(BENCHMARKS, tmp_path)
    pages = [p for p in (ROOT / "docs").rglob("*.md") if "_build" not in p.parts]
    wanted = {name for p in pages for name in re.findall(r"_generated/(\w+\.md)", p.read_text())}
    elsewhere = {"claims.md"}  # tests/docs/test_claims.py
    assert {p.name for p in tmp_path.iterdir()} == wanted - elsewhere


def test_figures_are_those_of_the_results(tables, tmp_path):
    tables.write_all(BENCHMARKS, tmp_path)
    balance = json.loads((RESULTS / "balance.json").read_text())["results"]
    text = (tmp_path / "balance.md").read_text()
    best = max(r["accuracy"] for r in balance if r["name"] == "hill_valley")
    (line,) = (li for li in text.splitlines() if li.startswith("| hill_valley |"))
    assert re.findall(r"\*\*(.*?)\*\*", line) == [f"{best:.3f}"]
    grid = json.loads((RESULTS / "tuning-grid.json").read_text())["results"]
    name, lost = "the default grid", []
    for result in grid:
        (loss,) = (v for k, v in result["losses"].items() if name in k)
        lost.append(loss)
    line = next(li for li in (tmp_path / "grid.md").read_text().splitlines() if name in li)
    assert f"| {sum(lost) / len(lost):.4f} | {max(lost):.4f} |" in line


def test_tables_are_rectangular(tables, tmp_path):
    tables.write_all(BENCHMARKS, tmp_path)
    for path in (p for p in tmp_path.iterdir() if p.read_text()):
        lines = [li for li in path.read_text().splitlines() if li.startswith("|")]
        assert len({len(re.findall(r"(?<!\\)\|", li)) for li in lines}) == 1, path.name
        assert len(lines) >= 3  # names, a rule, and a row at least: some scripts measure one fit


def test_tables_of_long_scripts_are_included_once_they_are_there(tables, tmp_path):
    table = "| rows |\n|---|\n| 10 |\n"
    (tmp_path / "large-data.md").write_text(table)
    assert tables.written(tmp_path, "large-data") == table
    assert tables.written(tmp_path, "clusters") == ""
    tables.write_all(BENCHMARKS, tmp_path / "pages")
    names = {path.stem.replace("_", "-") for path in (tmp_path / "pages").iterdir()}
    empty = {p.stem for p in (tmp_path / "pages").iterdir() if not p.read_text()}
    assert {"large-data", "out-of-core", "cluster-plan"} <= names
    assert not any((RESULTS / f"{name.replace('_', '-')}.md").exists() for name in empty)


def test_an_unchanged_fragment_is_not_written_again(tables, tmp_path):
    tables.write_all(BENCHMARKS, tmp_path)
    before = {p: p.stat().st_mtime_ns for p in tmp_path.iterdir()}
    tables.write_all(BENCHMARKS, tmp_path)
    assert {p: p.stat().st_mtime_ns for p in tmp_path.iterdir()} == before


@pytest.mark.parametrize(
    ("value", "text"), [(0.0, "0"), (0.0004, "4.0e-04"), (0.123456, "0.123"), (12549.2, "12,549")]
)
def test_numbers(tables, value, text):
    assert tables.number(value) == text
