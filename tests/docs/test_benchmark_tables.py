"""The tables of the benchmarks page come from the committed results."""

from __future__ import annotations

import copy
import importlib
import json
import re
import sys
from pathlib import Path

import pytest

from tessella_bench._document import NOTHING

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


@pytest.fixture(scope="module")
def accuracy():
    return extension("accuracy_tables")


@pytest.fixture
def report():
    return json.loads((BENCHMARKS / "reports" / "report.json").read_text())


def test_every_fragment_is_included_and_nothing_else(tables, tmp_path):
    tables.write_all(BENCHMARKS, tmp_path)
    pages = [p for p in (ROOT / "docs").rglob("*.md") if "_build" not in p.parts]
    wanted = {name for p in pages for name in re.findall(r"_generated/(\w+\.md)", p.read_text())}
    elsewhere = {"claims.md"}  # tests/docs/test_claims.py
    assert {p.name for p in tmp_path.iterdir()} == wanted - elsewhere


def test_figures_are_those_of_the_results(tables, tmp_path):
    tables.write_all(BENCHMARKS, tmp_path)
    speed = json.loads((RESULTS / "speed.json").read_text())["rows"]
    text = (tmp_path / "speed.md").read_text()
    assert f"{sum(r['verdict'] == 'ok' for r in speed)} of {len(speed)} targets" in text
    for row in speed:
        assert f"| {row['measured']} | {row['verdict']} |" in text
    grid = json.loads((RESULTS / "tuning-grid.json").read_text())["results"]
    name, lost = "the default grid", []
    for result in grid:
        (loss,) = (v for k, v in result["losses"].items() if name in k)
        lost.append(loss)
    line = next(li for li in (tmp_path / "grid.md").read_text().splitlines() if name in li)
    assert f"| {sum(lost) / len(lost):.4f} | {max(lost):.4f} |" in line


def test_tables_are_rectangular(tables, tmp_path):
    tables.write_all(BENCHMARKS, tmp_path)
    for path in tmp_path.iterdir():
        lines = [li for li in path.read_text().splitlines() if li.startswith("|")]
        assert len({len(re.findall(r"(?<!\\)\|", li)) for li in lines}) == 1, path.name
        assert len(lines) > 3


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


# ------------------------------------------------------------------------------------ accuracy


def columns(text):
    """Cells of the lines of a Markdown table, without its rule."""
    lines = [li for li in text.splitlines() if li.startswith("|")]
    return [[c.strip() for c in li.strip("|").split("|")] for i, li in enumerate(lines) if i != 1]


def last_digit(value):
    """Half of the last digit that is shown."""
    return 0.00501 if value >= 1 else 0.0000501


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_scores_are_those_of_the_report(accuracy, report, task):
    head, *lines = columns(accuracy.scores(report, task))
    rows = report["tables"][task]["rows"]
    assert len(lines) == len(rows)
    for line, row in zip(lines, rows, strict=True):
        cell = row["cells"]["tkl"]
        if "mean" in cell:
            shown = float(line[1].strip("*").split()[0])
            assert shown == pytest.approx(cell["mean"], abs=last_digit(cell["mean"]))
        assert ("paper" in cell) == (line[2] != NOTHING)
    assert head[1:3] == ["TKL", "TKL, paper"]


def test_the_best_is_bold_and_the_direction_is_right(accuracy, report):
    for task, best in (("classification", max), ("regression", min)):
        for line, row in zip(
            columns(accuracy.scores(report, task))[1:], report["tables"][task]["rows"], strict=True
        ):
            means = [c["mean"] for c in row["cells"].values() if c["state"] == "done"]
            bold = [cell.strip("*").split()[0] for cell in line if cell.startswith("**")]
            assert bool(bold) == bool(means)
            for text in bold:
                assert float(text) == pytest.approx(best(means), abs=last_digit(best(means)))


def test_any_part_of_the_report_will_do(accuracy, report, tmp_path):
    part = copy.deepcopy(report)
    found = part["tables"]["classification"]
    found["rows"] = found["rows"][:2]
    for row in found["rows"]:
        row["cells"] = {"tkl": row["cells"]["tkl"], "rf": {"state": "not measured"}}
    found["rows"][0]["cells"]["tkl"] |= {"state": "partly", "splits": 1, "deviation": None}
    found["rows"][1]["cells"]["rf"] = {"state": "n/a", "why": "more than 60 s"}
    found["ranks"] = None
    head, first, second = columns(accuracy.scores(part, "classification"))
    assert head[3:] == ["RF"]
    assert first[1].endswith("(1)")
    assert first[3] == NOTHING
    assert second[3] == "N/A"
    assert "Not enough" in accuracy.standings(part, "classification", tmp_path)
    del part["tables"]["classification"]
    assert accuracy.scores(part, "classification").startswith("Not measured")
    assert "Not enough" in accuracy.standings(part, "classification", tmp_path)


def test_pictures_that_are_there_are_shown(accuracy, report, tmp_path):
    assert "{image}" not in accuracy.standings(report, "regression", tmp_path)
    text = accuracy.standings(report, "regression", BENCHMARKS / "reports")
    for link in re.findall(r"{image} (.*)", text):
        assert (ROOT / "docs" / link).resolve().is_file()
    assert text.count("{image}") == 2
