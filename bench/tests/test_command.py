"""``tessella benchmark`` from end to end."""

import json
import os
import sys
from dataclasses import dataclass

import pytest

from tessella.cli import main
from tessella_bench import _engine

METHODS = "--methods fake_methods:average,fake_methods:neighbour"


@dataclass(frozen=True)
class Result:
    """How a command ended and what it wrote."""

    exit_code: int
    stdout: str
    stderr: str


@pytest.fixture
def run(home, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)

    def invoke(text):
        monkeypatch.setattr(sys, "argv", ["tessella", "benchmark", *text.split()])
        with pytest.raises(SystemExit) as end:
            main()
        return Result(end.value.code or 0, *capsys.readouterr())

    return invoke


def test_two_methods_and_two_divisions(run, tmp_path):
    command = f"classification --datasets tiny {METHODS} --splits 2 --jobs 2"
    result = run(command)
    assert result.exit_code == 0, result.stderr
    assert result.stderr.count("tiny fake_methods:") == 4
    assert "tiny fake_methods:neighbour 1: 100 % in" in result.stderr
    folder = tmp_path / "tessella-benchmark"
    text = (folder / "report.md").read_text()
    assert "| tiny (40 × 2) |" in text
    cells = [json.loads(p.read_text()) for p in folder.glob("cells/tiny/*neighbour-*.json")]
    assert len(cells) == 2
    assert f"**{(cells[0]['score'] + cells[1]['score']) / 2:.2f} ±" in text
    report = json.loads((folder / "report.json").read_text())
    assert report["tables"]["classification"]["ranks"]["methods"][0] == "fake_methods:neighbour"
    before = {path: os.stat(path).st_mtime_ns for path in folder.glob("cells/*/*.json")}
    assert len(before) == 4
    again = run(command)
    assert again.exit_code == 0
    assert again.stderr == ""  # nothing was measured
    assert {path: os.stat(path).st_mtime_ns for path in before} == before


def test_report_only(run, tmp_path, monkeypatch):
    assert "no such folder" in run("all --report-only").stderr
    monkeypatch.setattr(_engine, "run_in_process", lambda *_: {"status": "time-cap"})
    assert run(f"all --datasets tiny {METHODS} --cells here/cells --time-cap 1").exit_code == 0
    monkeypatch.delenv("TESSELLA_DATA")
    result = run("regression --report-only --cells here/cells -o there")
    assert result.exit_code == 0
    assert "Classification" not in (tmp_path / "there/report.md").read_text()
    result = run("all --report-only --cells here/cells --methods rf")
    assert "holds no cells of what was asked for" in result.stderr


def test_checkouts_keep_their_cells(run, tmp_path, monkeypatch):
    (tmp_path / "benchmarks").mkdir()
    monkeypatch.setattr(_engine, "run_in_process", lambda *_: {"status": "time-cap"})
    assert run(f"all --datasets tiny {METHODS}").exit_code == 0
    assert len(list(tmp_path.glob("benchmarks/reports/cells/tiny/*-0.json"))) == 2


def test_interrupt_keeps_cells_and_reports(run, tmp_path, monkeypatch):
    def interrupted(cell, settings, stop):
        if cell.split:
            raise KeyboardInterrupt
        return {"status": "ok", "score": 1.0, "metric": "accuracy", "task": "classification",
                "train_rows": 32, "test_rows": 8, "features": 2, "gap": None, "tune_seconds": 0.0,
                "fit_seconds": 1.0, "predict_seconds": 0.0}  # fmt: skip

    monkeypatch.setattr(_engine, "run_in_process", interrupted)
    result = run(f"all --datasets tiny {METHODS} --splits 2")
    assert result.exit_code == 130
    assert "finished cells are in" in result.stderr
    assert len(list(tmp_path.glob("tessella-benchmark/cells/tiny/*-0.json"))) == 2
    assert "1.00 (1)" in (tmp_path / "tessella-benchmark/report.md").read_text()


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ("all --datasets tinny", "Did you mean 'tiny'"),
        ("regression --datasets tiny", "'tiny' is a classification, and regression was asked for"),
        ("all --datasets tiny --methods boosting", "no method 'boosting'"),
        ("all --datasets tiny --time-cap 0", "time_cap=0.0 must be a positive number"),
        ("all --data nowhere", "data_home names 'nowhere', which is not a folder"),
    ],
)
def test_mistakes_are_told_in_one_line(run, arguments, text):
    result = run(arguments)
    assert result.exit_code == 2
    assert result.stderr.startswith("tessella: error: ")
    assert result.stderr.count("\n") == 1
    assert text in result.stderr


def test_figures(run, tmp_path, monkeypatch):
    asked = []

    def draw_all(output, data_home, names, quick, *, fresh, say):
        asked.append((str(output), data_home, names, quick, fresh))
        say("halfway")
        return [output / "one.png"]

    monkeypatch.delenv("TESSELLA_DATA")
    result = run("figures -o out --names rank")
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
    assert result.stderr.startswith("tessella: error: The data set")
    monkeypatch.setattr("tessella_bench._command.draw_all", draw_all)
    result = run("figures -o out --names a,b --quick --fresh")
    assert result.exit_code == 0
    assert result.stdout == "halfway\nWritten: out/one.png\n"
    assert asked == [("out", None, ["a", "b"], True, True)]
