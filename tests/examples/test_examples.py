"""The examples run, and print what they promise."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import pytest

mpl.use("Agg")
EXAMPLES = Path(__file__).parent.parent.parent / "examples"


@pytest.fixture
def run(monkeypatch, capsys):
    """Run an example; give the numbers in each line it prints, and the figures it leaves."""
    monkeypatch.setattr(plt, "show", lambda: None)

    def runner(name):
        runpy.run_path(str(EXAMPLES / name), run_name="__main__")
        lines = capsys.readouterr().out.splitlines()
        return [[float(n) for n in re.findall(r"(?<![\w.])-?\d+\.\d+", line)] for line in lines]

    yield runner
    assert plt.get_fignums()
    plt.close("all")


def test_learned_kernel_elsewhere(run):
    own, other, process, rbf = (numbers[0] for numbers in run("plot_learned_kernel_elsewhere.py"))
    assert min(own, other, process) > 0.95
    assert process > rbf


def test_kernel_features(run):
    small, *scores = (numbers[0] for numbers in run("plot_kernel_features.py"))
    assert sorted(scores) == scores
    assert scores[-1] > small > 0.9


def test_relevance(run):
    _, *features, pair = run("plot_relevance.py")
    for true, learned, _ in features:
        assert learned == pytest.approx(true, abs=0.1)
    assert pair[0] > 20 * pair[1]


def test_calibrated_probabilities(run):
    likelier, machine, unsure, mean, brier = run("plot_calibrated_probabilities.py")
    assert likelier == [1.0]
    assert 0.9 < machine[0] < 1.0
    assert unsure[0] < 0.1
    assert mean[0] == pytest.approx(mean[1], abs=0.02)
    assert brier[0] < 0.8 * brier[1]


def test_prediction_intervals(run):
    _, single, several = run("plot_prediction_intervals.py")
    coverage, promise = single
    assert coverage == pytest.approx(promise, abs=0.08)
    mean, error = several
    assert error < 0.02
    assert mean == pytest.approx(promise, abs=0.02)


def test_tabular_pipeline(run):
    _, complete, gappy, whole_rows, _ = run("plot_tabular_pipeline.py")
    assert complete[0] > gappy[0] > whole_rows[0] + 0.02


def test_tuning_path(run):
    (_, delta), (validated,), (tuned,), (untuned,), (gap,) = run("plot_tuning_path.py")
    assert delta in (0.1, 0.5, 2.0)
    assert validated > 0.4
    assert tuned > untuned
    assert gap <= 1e-3


def test_pmkl_classification(run):
    (accuracy, gap), (boosted_gap,) = run("plot_pmkl_classification.py")
    assert accuracy > 0.95
    assert boosted_gap <= 1e-5 < gap <= 1e-2


def test_pmkl_regression(run):
    _, *degrees = run("plot_pmkl_regression.py")
    assert len(degrees) == 3
    for error, gap in degrees:
        assert error < 0.15**2  # less than the noise
        assert gap <= 1e-2


def test_numerical_test(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["numerical_test.py", "diabetes", "wine", "--C", "0.5"])
    runpy.run_path(str(EXAMPLES / "numerical_test.py"), run_name="__main__")
    diabetes, wine = capsys.readouterr().out.splitlines()
    assert diabetes.startswith("diabetes: mean squared error ")
    assert 2500 < float(diabetes.split()[4]) < 3500
    assert wine.startswith("wine: accuracy (%) ")
    assert float(wine.split()[3]) > 90
