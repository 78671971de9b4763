"""``tessella benchmark suite`` from end to end."""

import json
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from tessella.cli._app import app
from tessella_bench import _engine
from tessella_bench.suite import _methods

METHODS = "--methods fake_suite_methods:usual,fake_suite_methods:first"


@pytest.fixture
def run(suite_home, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return lambda *texts: CliRunner().invoke(
        app, ["benchmark", "suite", *texts[0].split(), *texts[1:]]
    )


@pytest.fixture
def ours(monkeypatch):
    """A stand-in for our estimator."""
    method = replace(_methods.SUITE_METHODS["tessella"], needs=None)
    monkeypatch.setitem(_methods.SUITE_METHODS, "tessella", method)


@pytest.fixture
def answers(monkeypatch):
    """Cells are answered, not measured; gives what was asked for."""
    asked = []

    def answer(cell, settings, stop):
        asked.append((cell.method, cell.dataset, dict(settings.recipe(cell.method).options)))
        return {
            **{"status": "ok", "task": "regression", "table_rows": 60, "train_rows": 48},
            **{"test_rows": 12, "features": 3, "text_features": 1, "classes": None},
            **{"division": "d", "error": 0.5, "r2": 0.5, "seconds": 1.0},
            **{"processor_seconds": 1.0, "predict_processor_seconds": 0.0, "params": {}},
        }

    monkeypatch.setattr(_engine, "run_in_process", answer)
    return asked


def test_two_methods_on_tables_with_text(run, tmp_path):
    command = f"--datasets paints,prices {METHODS} --splits 1 --jobs 2 --time-cap 60"
    result = run(command)
    assert result.exit_code == 0, result.output
    assert "prices fake_suite_methods:usual 1000 0: error " in result.stderr
    folder = tmp_path / "tessella-benchmark" / "suite"
    report = json.loads((folder / "report.json").read_text())
    assert report["sizes"]["1000"]["ranks"]["all"]["sets"] == ["prices", "paints"]
    assert "paints (48 × 3, 1 text, 5 classes)" in (folder / "report.md").read_text()
    again = run(command)
    assert (again.exit_code, again.stderr) == (0, "")  # nothing was measured
    shown = run("--report-only --splits 1 --datasets prices -o elsewhere")
    assert shown.exit_code == 0
    assert "paints" not in (tmp_path / "elsewhere/report.md").read_text()


def test_fresh_forgets_a_method(run, answers):
    command = f"--datasets prices {METHODS} --splits 1"
    assert run(command).exit_code == 0
    assert len(answers) == 2
    assert run(f"{command} --fresh fake_suite_methods:first").exit_code == 0
    assert [method for method, *_ in answers[2:]] == ["fake_suite_methods:first"]


def test_variants_of_our_estimator(run, answers, ours):
    variants = ["--ablate", 'one={"families": ["gauss"]}', "--ablate", 'none={"rounds": 0}']
    assert run("--datasets prices --splits 1", *variants).exit_code == 0
    assert answers == [
        ("tessella", "prices", {}),
        ("tessella/one", "prices", {"families": ["gauss"]}),
        ("tessella/none", "prices", {"rounds": 0}),
    ]
    run("--datasets prices --splits 1", *variants[:2])
    assert len(answers) == 3
    run("--datasets prices --splits 1", "--ablate", 'one={"families": ["laplace"]}')
    assert answers[3:] == [("tessella/one", "prices", {"families": ["laplace"]})]
    run("--datasets prices --splits 1 --fresh tessella", *variants[:2])
    assert [name for name, *_ in answers[4:]] == ["tessella", "tessella/one"]


def test_interrupt_keeps_cells_and_reports(run, answers, tmp_path, monkeypatch):
    answer = _engine.run_in_process

    def interrupted(cell, settings, stop):
        if cell.split:
            raise KeyboardInterrupt
        return answer(cell, settings, stop)

    monkeypatch.setattr(_engine, "run_in_process", interrupted)
    result = run(f"--datasets prices {METHODS} --splits 2")
    assert result.exit_code == 130
    assert "the same command goes on" in result.stderr
    folder = tmp_path / "tessella-benchmark/suite"
    assert len(list(folder.glob("cells/prices/*-1000-0.json"))) == 2
    assert "(1)" in (folder / "report.md").read_text()


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ("--rows 2000", "--rows 2000 must be one of 1000, 4000, all"),
        ("--datasets paint", "paint"),
        ("--methods boosting", "no method 'boosting'"),
        ("--methods forest --python forest=/no/python", "/no/python cannot be run"),
        ("--ablate few=3", "must be NAME=JSON"),
        ("--ablate few", "is not JSON"),
        (f"{METHODS} --fresh forest --datasets prices", "not among those to be measured"),
        ("--report-only", "no such folder"),
    ],
)
def test_mistakes_are_told_in_one_line(run, arguments, text):
    result = run(arguments)
    assert result.exit_code == 2
    assert result.stderr.startswith("tessella: error: ")
    assert result.stderr.count("\n") == 1
    assert text in result.stderr
