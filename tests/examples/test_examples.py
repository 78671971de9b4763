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

    with plt.rc_context():  # an example may choose a style
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


def test_leaves(run):
    *fits, base, gap = run("plot_leaves.py")
    machines, leaves = ([numbers[0] for numbers in part] for part in (fits[:3], fits[3:]))
    for errors in (machines, leaves):
        assert sorted(errors, reverse=True) == errors
    assert leaves[1] == pytest.approx(machines[2], rel=0.2)  # of equally many rows
    assert leaves[2] < 0.5 * base[0]
    assert gap[0] <= 1e-2


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


def test_why_learn(run):
    (_, rbf), (_, learned) = ((0, *numbers) for numbers in run("plot_why_learn.py"))
    assert learned > rbf > 0.9


def test_decision_surfaces(run):
    scores = [numbers[0] for numbers in run("plot_decision_surfaces.py")]
    assert len(scores) == 6
    assert min(scores) > 0.9
    for rbf, learned in zip(scores[::2], scores[1::2], strict=True):
        assert learned == pytest.approx(rbf, abs=0.03)


def test_against_boosting(run):
    smooth_ours, smooth_rbf, smooth_trees, ours, rbf, trees = run("plot_against_boosting.py")
    assert smooth_ours[0] > smooth_trees[0]
    assert smooth_trees[-1] > max(smooth_ours[-1], smooth_rbf[-1])
    assert all(tree > max(pair) for tree, *pair in zip(trees, ours, rbf, strict=True))


def test_delta(run):
    scores = [numbers[-1] for numbers in run("plot_delta.py")]
    assert sorted(scores, reverse=True) == scores
    assert scores[0] > 0.9


def test_solvers(run):
    lines = run("plot_solvers.py")
    assert len(lines) == 6
    values, bounds = ([numbers[k] for numbers in lines] for k in (0, 1))
    assert max(bounds) <= min(values) + 1e-4  # one optimum, between all bounds
    assert max(values) == pytest.approx(min(values), rel=1e-3)


def test_custom_kernel(run):
    ours, circle, *_ = run("plot_custom_kernel.py")
    assert circle[0] < 0.8 * ours[0]
    assert circle[1] == 0.0 < ours[1]
    assert max(ours[2], circle[2]) <= 1e-3


def test_terrain(run):
    gaussian, ours, _ = run("plot_terrain.py")
    assert ours[0] < gaussian[0]  # with defaults
    assert gaussian[1] < ours[1] < ours[0]  # tuned


def test_multiple_kernels(run):
    (bound, *_), (learned,), (alignment,), (average,), _, *scores = run("plot_multiple_kernels.py")
    assert bound <= learned < min(alignment, average)
    best = [max(numbers) for numbers in scores]
    assert len(best) == 3
    assert min(best) > 0.38
    assert max(best) < min(best) + 0.05


def test_sum_of_kernel_sets(run):
    (value, bound), *shares_and_scores = run("plot_sum_of_kernel_sets.py")
    assert bound <= value * (1 + 1e-12)
    place, time, rest = (numbers[0] for numbers in shares_and_scores[:3])
    assert min(place, time) > rest
    assert place + time + rest == pytest.approx(1.0, abs=0.02)
    *others, groups = (numbers[-1] for numbers in shares_and_scores[3:])
    assert groups > max(others) + 0.05
