"""Displays: what they compute, what they draw, what they refuse."""

from __future__ import annotations

import subprocess
import sys

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris, make_moons
from sklearn.exceptions import NotFittedError
from sklearn.svm import SVC

from tessella import (
    KernelDictionary,
    LearnedKernelSVC,
    LearnedKernelSVR,
    MultipleKernelSVC,
    PolynomialKernels,
    TessellatedKernels,
    make_tabular_pipeline,
)
from tessella.inspection import (
    ConvergenceDisplay,
    DecisionSurfaceDisplay,
    KernelSliceDisplay,
    ParameterDisplay,
    RelevanceDisplay,
    feature_relevance,
    interaction_relevance,
)
from tessella.kernels import BasisFunction, Gaussian, Polynomial, basis_names


@pytest.fixture(scope="module")
def moons():
    X, y = make_moons(100, noise=0.2, random_state=0)
    return LearnedKernelSVC().fit(X, y), X, y


@pytest.fixture(scope="module")
def named():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.random((90, 3)) * [1.0, 10.0, 0.1], columns=["age", "flat", "size"])
    frame["flat"] = 1.0
    return LearnedKernelSVR().fit(frame, frame["age"] * frame["size"]), frame


def drawn(display):
    """The picture can really be made."""
    display.figure_.canvas.draw()
    return display


# ---- convergence


def test_convergence_draws_the_history(moons):
    model, _, _ = moons
    display = drawn(ConvergenceDisplay.from_estimator(model))
    bounds, gap = display.ax_
    upper, lower = (line.get_ydata() for line in bounds.get_lines())
    np.testing.assert_array_equal(upper, [record.value for record in model.history_])
    np.testing.assert_array_equal(lower, [record.bound for record in model.history_])
    shown = gap.get_lines()[0].get_ydata()
    np.testing.assert_array_equal(shown, [record.gap for record in model.history_])
    assert gap.get_lines()[1].get_ydata()[0] == model.tol
    assert gap.get_yscale() == "log"
    assert gap.get_xlabel() == "iteration"


def test_convergence_on_given_axes(moons):
    model, _, _ = moons
    _, ax = plt.subplots()
    display = drawn(ConvergenceDisplay.from_estimator(model, ax=ax, quantity="gap", against="time"))
    assert display.ax_ is ax
    assert display.figure_ is ax.figure
    assert ax.get_xlabel() == "time in seconds"
    np.testing.assert_array_equal(ax.get_lines()[0].get_xdata(), [r.time for r in model.history_])
    with pytest.raises(ValueError, match="needs 2 axes"):
        ConvergenceDisplay.from_estimator(model, ax=ax)
    assert drawn(display.plot(plt.subplots(2)[1])).ax_.shape == (2,)


def test_convergence_before_bounds_are_known():
    display = ConvergenceDisplay(
        iteration=[0, 1, 2],
        time=[0.0, 0.1, 0.2],
        value=[5.0, 3.0, 2.0],
        bound=[-np.inf, 1.0, 2.0],
        gap=[np.inf, 0.5, 0.0],
    )
    shown = drawn(display.plot()).ax_[1].get_lines()[0].get_ydata()
    np.testing.assert_array_equal(np.isnan(shown), [True, False, True])


def test_convergence_refuses_unknown_words(moons):
    model, _, _ = moons
    with pytest.raises(ValueError, match="against='epoch'"):
        ConvergenceDisplay.from_estimator(model, against="epoch")
    with pytest.raises(ValueError, match="quantity='loss'"):
        ConvergenceDisplay.from_estimator(model, quantity="loss")
    with pytest.raises(NotFittedError):
        ConvergenceDisplay.from_estimator(LearnedKernelSVC())


# ---- the matrix P


def test_parameter_shows_p_with_names(named):
    model, _ = named
    display = drawn(ParameterDisplay.from_estimator(model))
    np.testing.assert_array_equal(display.ax_.images[0].get_array(), model.P_)
    assert display.ax_.get_xlabel() == "monomials of the features, scaled to [0, 1]"
    assert display.labels_ == ["1", "age", "size"] * 2  # the constant column is not there
    assert [t.get_text() for t in display.ax_.get_yticklabels()] == display.labels_
    texts = [text.get_text() for text in display.ax_.texts]
    assert texts.count("z ≥ x") == texts.count("z ≱ x") == 2
    assert f"{model.P_[0, 0]:.2g}" in texts


def test_parameter_of_a_set_without_regions():
    X, y = make_moons(60, noise=0.2, random_state=0)
    model = LearnedKernelSVC(kernels=PolynomialKernels(2)).fit(X, y)
    display = drawn(ParameterDisplay.from_kernel(model.kernel_, feature_names=["a", "b"]))
    assert display.labels_ == ["1", "a", "b", "a²", "a·b", "b²"]


def sum_of_sets():
    return TessellatedKernels() + KernelDictionary([Gaussian(0.5), Gaussian(2.0)])


def test_parameter_of_a_part_of_a_sum(named):
    _, frame = named
    kernels = sum_of_sets()
    model = LearnedKernelSVR(kernels=kernels).fit(frame, frame["age"] * frame["size"])
    display = drawn(ParameterDisplay.from_estimator(model))  # only one part has a matrix
    np.testing.assert_array_equal(display.shown_, model.parameter_[0])
    assert display.labels_ == ["1", "age", "size"] * 2
    kernels += PolynomialKernels(2).on_features([2])
    model = LearnedKernelSVR(kernels=kernels).fit(frame, frame["age"] * frame["size"])
    display = drawn(ParameterDisplay.from_estimator(model, part=2))
    assert display.labels_ == ["1", "size", "size²"]
    for part, message in (
        (None, r"Several parts .*part=\[0, 2\]"),
        (1, "the weights of a dictionary"),
        (3, "part=3 does not exist; the kernel has 3 parts"),
    ):
        with pytest.raises(ValueError, match=message):
            ParameterDisplay.from_estimator(model, part=part)


@pytest.mark.parametrize("make", [LearnedKernelSVC, MultipleKernelSVC])
def test_weights_are_not_drawn_as_a_matrix(make):
    X, y = make_moons(60, noise=0.2, random_state=0)
    model = make(kernels=KernelDictionary([Gaussian(0.5), Gaussian(2.0)])).fit(X, y)
    with pytest.raises(ValueError, match=r"weights of a dictionary .* attribute parameter_"):
        ParameterDisplay.from_estimator(model)


def test_names_of_the_parameter_of_a_sum():
    kernels = TessellatedKernels(0) + KernelDictionary([Gaussian(1.0)], each_feature=True)
    kernels += PolynomialKernels(1).on_features([1])
    names = basis_names(kernels, ["a", "b"])
    single = "Gaussian(bandwidth=1.0)"
    assert names == ["1·[z≥x]", "1·[z≱x]", single, f"{single} of a", f"{single} of b", "1", "b"]
    X = np.random.default_rng(0).random((20, 2))
    assert basis_names(kernels.resolve(X), ["a", "b"]) == names
    assert len(names) == kernels.cone(2).degree


@pytest.mark.parametrize(
    "display", [ConvergenceDisplay, KernelSliceDisplay, RelevanceDisplay, DecisionSurfaceDisplay]
)
@pytest.mark.parametrize("kind", ["weights", "sum"])
def test_every_other_display_draws_weights_and_sums(display, kind, moons):
    _, X, y = moons
    model = MultipleKernelSVC(kernels=[Gaussian(0.5), Polynomial(2)])
    if kind == "sum":
        model = LearnedKernelSVC(kernels=sum_of_sets())
    arguments = [X[0]] if display is KernelSliceDisplay else []
    arguments = [X, y] if display is DecisionSurfaceDisplay else arguments
    drawn(display.from_estimator(model.fit(X, y), *arguments))


def test_large_parameter_is_aggregated():
    rng = np.random.default_rng(0)
    root = rng.standard_normal((40, 3)) * np.linspace(0.1, 2.0, 40)[:, None]
    P = root @ root.T
    functions = [BasisFunction(f"f{i}", "[z≥x]" if i < 20 else "[z≱x]") for i in range(40)]
    display = drawn(ParameterDisplay(P, functions=functions).plot(max_shown=12))
    assert display.shown_.shape == (12, 12)
    large = np.argsort(-np.diag(P))[:10]
    assert {label for label in display.labels_ if "others" not in label} == {f"f{i}" for i in large}
    # Nothing is lost: the sum of squares is that of P.
    assert (display.shown_**2).sum() == pytest.approx((P**2).sum())
    first = [i for i in range(20) if i not in large]
    others = display.labels_.index(f"{len(first)} others")
    assert display.shown_[others, others] == pytest.approx(np.linalg.norm(P[np.ix_(first, first)]))
    assert drawn(display.plot(max_shown=40)).shown_.shape == (40, 40)


# ---- slices of the kernel


def test_slice_along_one_feature(named):
    model, frame = named
    point = frame.to_numpy()[4]
    display = drawn(KernelSliceDisplay.from_estimator(model, point, "size", grid_resolution=50))
    moved = np.tile(point, (50, 1))
    moved[:, 2] = display.grid[0]
    np.testing.assert_allclose(display.values, model.kernel_(moved, point[None])[:, 0], rtol=1e-12)
    assert display.grid[0][0] < frame["size"].min() < frame["size"].max() < display.grid[0][-1]
    assert display.ax_.get_xlabel() == "size"
    assert display.ax_.get_ylabel() == "k(p, x)"


def test_slice_along_two_features(moons):
    model, X, _ = moons
    display = drawn(KernelSliceDisplay.from_estimator(model, X[3], (1, 0), grid_resolution=30))
    assert display.values.shape == (30, 30)
    x = np.array([display.grid[1][7], display.grid[0][20]])
    assert display.values[20, 7] == pytest.approx(model.kernel_(x, X[3]), rel=1e-12)
    assert (display.ax_.get_xlabel(), display.ax_.get_ylabel()) == ("x1", "x0")


def test_normalized_slice_is_a_cosine(moons):
    model, X, _ = moons
    display = KernelSliceDisplay.from_kernel(model.kernel_, X[3], 0, normalize=True)
    assert np.abs(display.values).max() <= 1 + 1e-12
    at_point = np.interp(X[3, 0], display.grid[0], display.values)
    assert at_point == pytest.approx(1.0, abs=1e-3)


def test_slice_refuses_what_is_not_there(named):
    model, frame = named
    point = frame.to_numpy()[0]
    with pytest.raises(ValueError, match="no feature 'weight'"):
        KernelSliceDisplay.from_estimator(model, point, "weight")
    with pytest.raises(ValueError, match="no feature 3"):
        KernelSliceDisplay.from_estimator(model, point, 3)
    with pytest.raises(ValueError, match="constant"):
        KernelSliceDisplay.from_estimator(model, point, "flat")
    with pytest.raises(ValueError, match="one feature or a pair"):
        KernelSliceDisplay.from_estimator(model, point, (0, 1, 2))
    with pytest.raises(ValueError, match="2 values"):
        KernelSliceDisplay.from_estimator(model, point[:2], 0)


# ---- relevance


def test_relevance_bars(regression):
    model, X, _ = regression
    display = drawn(RelevanceDisplay.from_estimator(model, X, interactions=True))
    total, pairs = feature_relevance(model, X), interaction_relevance(model, X)
    np.testing.assert_array_equal(display.total, total)
    widths = [bar.get_width() for bar in display.ax_.patches]
    order = np.argsort(-total, kind="stable")
    np.testing.assert_allclose(np.add(widths[:8], widths[8:16]), total[order], rtol=1e-12)
    assert widths[16] == pairs.max()
    labels = [label.get_text() for label in display.ax_.get_yticklabels()]
    assert labels[:8] == [f"x{j}" for j in order]
    assert labels[8] == "x0 × x1"
    assert len(labels) == 13


def test_relevance_of_a_table_has_the_names_that_the_model_sees():
    """Those of its features, which are not the columns."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"x": rng.random(60), "t": rng.choice(["a", "b"], 60), "one": "z"})
    y = table["x"] + (table["t"] == "a")
    model = make_tabular_pipeline(LearnedKernelSVR(tol=1e-2)).fit(table, y)
    display = RelevanceDisplay.from_estimator(model, interactions=True)
    assert display.feature_names == ["x", "t_a", "t_b", "one_z"]
    np.testing.assert_array_equal(display.total, feature_relevance(model[-1]))
    with pytest.raises(ValueError, match=r"could not convert string.*without X"):
        RelevanceDisplay.from_estimator(model, table)
    model.fit(table.drop(columns="one").assign(z=1.0), y)
    assert RelevanceDisplay.from_estimator(model).feature_names == ["x", "z", "t_a", "t_b"]


def test_relevance_of_many_features_shows_the_largest():
    total = np.linspace(0.0, 0.1, 30)
    names = [f"f{j}" for j in range(30)]
    display = drawn(RelevanceDisplay(total, total / 2, feature_names=names).plot(max_features=4))
    labels = [label.get_text() for label in display.ax_.get_yticklabels()]
    assert labels == ["f29", "f28", "f27", "f26"]
    assert "30 features" in display.ax_.get_title()


# ---- decision surfaces


def test_surface_of_a_classifier(moons):
    model, X, y = moons
    display = drawn(DecisionSurfaceDisplay.from_estimator(model, X, y, grid_resolution=40))
    x = np.array([[display.grid[0][12], display.grid[1][30]]])
    assert display.response[12, 30] == pytest.approx(model.decision_function(x)[0], rel=1e-12)
    np.testing.assert_array_equal(display.support_vectors, model.support_vectors_)
    labels = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert labels == ["decision boundary", "cells of the tessellation", "0", "1"]


def test_lines_of_the_tessellation_are_the_strongest_support_vectors(moons):
    model, X, _ = moons
    display = drawn(DecisionSurfaceDisplay.from_estimator(model, X, max_lines=5))
    lines = [line for line in display.ax_.get_lines() if len(line.get_xdata()) == 2]
    upright = sorted(line.get_xdata()[0] for line in lines[0::2])
    strongest = np.argsort(-np.abs(model.dual_coef_[0]), kind="stable")[:5]
    np.testing.assert_allclose(upright, np.sort(model.support_vectors_[strongest, 0]))
    none = drawn(DecisionSurfaceDisplay.from_estimator(model, X, tessellation=False))
    assert not [line for line in none.ax_.get_lines() if len(line.get_xdata()) == 2]


def test_the_function_has_its_creases_on_those_lines(moons):
    # What the lines claim: second differences vanish up to curvature except across a line.
    model, X, _ = moons
    support = np.sort(model.support_vectors_[:, 0])
    gaps = np.diff(support)
    k = int(np.argmax(gaps))
    inside = np.linspace(support[k], support[k + 1], 7)
    points = np.column_stack([inside, np.full(7, float(X[:, 1].mean()))])
    third = np.diff(model.decision_function(points), n=3)
    assert np.abs(third).max() < 1e-9  # degree one times the max-product: a quadratic


def test_surface_of_a_regression_at_a_point(named):
    model, frame = named
    point = np.array([0.5, 1.0, 0.03])
    display = drawn(
        DecisionSurfaceDisplay.from_estimator(
            model,
            frame,
            frame["age"],
            features=("size", "age"),
            point=point,
            grid_resolution=20,
        )
    )
    row = pd.DataFrame([[display.grid[1][5], 1.0, display.grid[0][9]]], columns=frame.columns)
    assert display.response[9, 5] == pytest.approx(model.predict(row)[0], rel=1e-12)
    assert (display.ax_.get_xlabel(), display.ax_.get_ylabel()) == ("size", "age")
    assert display.classes is None


def test_surface_of_several_classes_and_of_other_estimators():
    X, y = load_iris(return_X_y=True)
    X, labels = X[:, :2], np.array(["a", "b", "c"])[y]
    model = SVC().fit(X, labels)
    display = drawn(DecisionSurfaceDisplay.from_estimator(model, X, labels, grid_resolution=30))
    x = np.array([[display.grid[0][4], display.grid[1][8]]])
    assert model.classes_[display.response[4, 8]] == model.predict(x)[0]
    assert display.support_vectors is None  # an RBF has no cells


def legend_texts(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def test_colours_of_classes_are_explained_without_points_as_well(moons):
    model, X, _ = moons
    display = drawn(DecisionSurfaceDisplay.from_estimator(model, X))
    assert legend_texts(display.ax_)[-2:] == ["0", "1"]
    bar = display.figure_.axes[-1]
    assert bar.get_ylabel() == "decision function (above 0: 1)"


def test_many_classes_differ_in_colour_or_marker_and_their_legend_hides_nothing():
    rng = np.random.default_rng(0)
    X, y = rng.random((60, 2)), np.arange(60) % 12
    display = drawn(DecisionSurfaceDisplay.from_estimator(SVC().fit(X, y), X, y))
    points = [item for item in display.ax_.collections if item.get_label().isdigit()]
    looks = {
        (tuple(item.get_facecolor()[0]), item.get_paths()[0].vertices.tobytes()) for item in points
    }
    assert len(points) == len(looks) == 12
    left = display.ax_.get_legend().get_window_extent().x0
    assert left >= display.ax_.get_window_extent().x1


def test_surface_refuses_features_in_the_place_of_targets(named):
    model, X = named[:2]
    with pytest.raises(ValueError, match=r"y has 2 values.*features=\(first, second\)"):
        DecisionSurfaceDisplay.from_estimator(model, X, [0, 1])


def test_surface_refuses_one_feature_twice(moons):
    model, X, _ = moons
    with pytest.raises(ValueError, match="two different features"):
        DecisionSurfaceDisplay.from_estimator(model, X, features=(1, 1))


# ---- matplotlib


def test_missing_matplotlib_is_explained(moons, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    model, _, _ = moons
    with pytest.raises(ImportError, match=r"tessella\[plot\]"):
        ParameterDisplay.from_estimator(model)


def test_importing_does_not_import_matplotlib():
    program = "import sys, tessella.inspection; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
