"""What a notebook shows of an estimator: scikit-learn's diagram, the certificate, relevance."""

from __future__ import annotations

import pickle
import sys
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
import sklearn
from estimators.conftest import FEW, sum_of_sets
from sklearn.base import BaseEstimator, clone
from sklearn.datasets import load_iris, make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import laplacian_kernel
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from tessella import (
    IntegralKernels,
    KernelDictionary,
    KernelPathCV,
    LearnedKernelRidge,
    LearnedKernelRidgeClassifier,
    LearnedKernelSVC,
    LearnedKernelSVR,
    MultipleKernelSVC,
    MultipleKernelSVR,
    PolynomialKernels,
    make_tabular_pipeline,
)
from tessella.kernels import FunctionKernel, Gaussian, Polynomial, kernel_name

HAS_HOOK = hasattr(BaseEstimator, "_get_fitted_attr_html")  # scikit-learn 1.9
CLASS = 'class="tessella-summary"'


class Tables(HTMLParser):
    """Rows of the tables of a summary, by their first cell; and its text."""

    def __init__(self, html):
        super().__init__()
        self.rows, self.text, self.titles = {}, [], []
        self._cells, self._in_caption = [], False
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        if tag == "tr":
            self._cells = []
        elif tag in ("th", "td"):
            self._cells.append("")
        self._in_caption = tag == "caption"
        self.titles += [value for name, value in attrs if name == "title"]

    def handle_endtag(self, tag):
        if tag == "tr" and len(self._cells) == 2:
            self.rows[self._cells[0]] = self._cells[1]
        if tag in ("td", "th", "tr"):
            self._in_caption = False

    def handle_data(self, data):
        self.text.append(data)
        if self._cells and not self._in_caption:
            self._cells[-1] += data


def shown(model):
    """The summary in what a notebook is given, where it is once."""
    html = model._repr_mimebundle_()["text/html"]
    assert html.count(CLASS) == model._repr_html_().count(CLASS) == 1
    assert html.count("<table") == html.count("</table>")
    return Tables(html[html.index(CLASS) - len("<div ") :])


def verdict(tables):
    return next(text for text in tables.text if text.startswith(("✓", "⚠", "✗")))


@pytest.fixture(scope="module")
def labelled():
    X, y = make_classification(120, 14, n_informative=5, random_state=0)
    return X, y


@pytest.fixture(scope="module")
def wide(labelled):
    return LearnedKernelSVC().fit(*labelled)


# ----------------------------------------------------------------------------- certificate


def test_the_certificate_is_that_of_the_attributes(case):
    model, X, y = case
    model = clone(model).fit(X, y)
    rows = shown(model).rows
    assert rows["objective"] == f"{model.objective_:.6g}"
    assert rows["lower bound"] == f"{model.lower_bound_:.6g}"
    assert rows["relative gap"] == f"{model.gap_:.2e}"
    assert rows["solver"] == model.solver_
    assert rows["iterations"] == str(model.n_iter_)
    assert rows["SVM solves"] == str(model.history_[-1].n_svm)
    assert rows["Newton steps"] == str(model.history_[-1].n_newton)
    assert rows["time"].endswith(" s")
    assert rows["rows"] == str(len(X))
    assert rows["features"] == str(X.shape[1])
    assert rows["support vectors"] == str(len(model.support_))
    assert rows["side of P"] == str(len(model.P_))
    assert rows["rank of P"] == str(np.linalg.matrix_rank(model.P_, hermitian=True))
    assert verdict(shown(model)).startswith("✓ Certified within tol")
    assert "Parameters" in model._repr_html_() or not HAS_HOOK  # scikit-learn's own part


def test_a_stopped_fit_says_so_in_the_words_of_its_warning(circles):
    model = LearnedKernelSVC(max_iter=6, tol=1e-9, solver="joint")
    with pytest.warns(ConvergenceWarning) as caught:
        model.fit(*circles)
    assert model.gap_ < 0.1
    warning, text = str(caught[0].message), verdict(shown(model))
    assert text.startswith("⚠ Stopped (iteration limit)")
    assert "Do not use" not in warning
    for words in (
        "stopped (iteration limit)",
        f"certified relative gap of {model.gap_:.2e}, above",
    ):
        assert words in warning
        assert words in text.replace("Stopped", "stopped")


def test_a_fit_far_from_its_optimum_is_not_to_be_used(circles):
    model = LearnedKernelSVC(C=1000.0, max_iter=0, solver="frank-wolfe")
    with pytest.warns(ConvergenceWarning) as caught:
        model.fit(*circles)
    assert model.gap_ > 0.1
    warning = str(caught[0].message)
    assert warning.startswith("Do not use this model: the frank-wolfe solver stopped (iteration ")
    assert f"certified relative gap of {model.gap_:.2e}, above tol=0.001" in warning
    assert warning.endswith("Raise max_iter, or accept a larger tol.")
    assert verdict(shown(model)).startswith("✗ Do not use this model: stopped (iteration limit)")
    assert 'class="tessella-alarm"' in model._repr_html_()


def test_a_large_tolerance_was_asked_for(circles):
    model = LearnedKernelSVC(C=1000.0, max_iter=0, solver="frank-wolfe", tol=10.0).fit(*circles)
    assert model.gap_ > 0.1
    assert verdict(shown(model)).startswith("✓ Certified within tol")


@pytest.mark.parametrize("kernels", ["polynomial", "tessellated"])
def test_a_linear_kernel_is_told(kernels, circles):
    model = LearnedKernelSVC(kernels=kernels, degree=1).fit(*circles)
    told = any(text.startswith("The kernel is linear: ") for text in shown(model).text)
    assert told == (kernels == "polynomial") == model.kernel_is_linear_


def test_a_tolerance_changed_after_the_fit_is_not_called_reached(circles):
    model = LearnedKernelSVC().fit(*circles)
    model.set_params(tol=model.gap_ / 10)
    assert verdict(shown(model)).startswith("⚠ Certified for another tol")


def test_several_classes_with_a_kernel_each():
    model = LearnedKernelSVC(multi_class="separate").fit(*load_iris(return_X_y=True))
    rows = shown(model).rows
    ends = [history[-1] for history in model.history_]
    assert rows["worst gap of a pair"] == f"≤ {max(end.gap for end in ends):.2e}"
    assert rows["SVM solves"] == str(sum(end.n_svm for end in ends))
    assert rows["learned kernels"] == "3, one for each pair of classes"
    assert rows["side of P"] == str(len(model.P_[0]))


# ------------------------------------------------------------------------------- relevance


def test_the_ten_largest_shares_and_the_sum_of_the_others(wide):
    rows = shown(wide).rows
    order = np.argsort(-wide.feature_relevance_, kind="stable")
    for j in order[:10]:
        assert rows[f"x{j}"] == f"{wide.feature_relevance_[j]:.3f}"
    assert not {f"x{j}" for j in order[10:]} & set(rows)
    assert rows["sum of 4 others"] == f"{wide.feature_relevance_[order[10:]].sum():.3f}"


def test_the_longest_bar_is_the_largest_share(wide):
    html = wide._repr_html_()
    shares = np.sort(wide.feature_relevance_)[::-1][:10]
    for share in shares:
        assert f"width: {100 * share / shares[0]:.1f}%" in html


def relevance_is_shown(model):
    """Whether a notebook shows the relevance of a model that nobody has asked for it."""
    assert "feature_relevance_" not in vars(model)
    missing = "not computed yet" in shown(model).rows
    assert ("feature_relevance_" in vars(model)) != missing
    return not missing


def test_relevance_that_takes_long_is_not_computed_to_show_a_model(case):
    model, X, y = case
    model = clone(model).set_params(kernels=KernelDictionary([laplacian_kernel])).fit(X, y)
    assert shown(model).rows["not computed yet"] == "read feature_relevance_ to see it here"
    assert "feature_relevance_" not in vars(model)
    first = model.feature_relevance_[0]
    assert shown(model).rows["x0"] == f"{first:.3f}"


def cosines(z, rows):
    return np.cos(z @ rows.T)[:, :, None]


def test_time_of_relevance_grows_with_the_kernels_that_have_a_weight(circles):
    X, y = circles
    idle = np.random.default_rng(0).random((len(X), 6))
    wide = np.column_stack([X, idle])
    learned, average = (
        MultipleKernelSVC(weighting=weighting).fit(wide, y) for weighting in ("learned", "average")
    )
    assert np.count_nonzero(learned.weights_) < 15 < 100 < np.count_nonzero(average.weights_)
    assert relevance_is_shown(learned)
    assert not relevance_is_shown(average)
    one = MultipleKernelSVC(kernels=[Gaussian(1.0)], weighting="average").fit(wide, y)
    assert relevance_is_shown(one)
    assert relevance_is_shown(LearnedKernelSVC(kernels=sum_of_sets()).fit(X, y))


def test_time_of_relevance_grows_with_rows_and_features():
    rng = np.random.default_rng(0)
    X = rng.random((1500, 60))
    y = rng.integers(0, 2, 1500)  # nothing to learn, so that nearly all rows are support vectors
    model = LearnedKernelSVC(0.01, tol=0.1)
    assert relevance_is_shown(clone(model).fit(X[:256, :25], y[:256]))
    assert not relevance_is_shown(clone(model).fit(X[:, :25], y))
    assert not relevance_is_shown(clone(model).fit(X[:256], y[:256]))


def test_kernels_of_unknown_cost_are_taken_to_be_slow(circles):
    assert relevance_is_shown(LearnedKernelSVC().fit(*circles))
    for kernels in (
        IntegralKernels(cosines, lower=[-1.0] * 2, upper=[1.0] * 2, nodes=8),
        KernelDictionary([laplacian_kernel]),
        PolynomialKernels() + KernelDictionary([laplacian_kernel]),
    ):
        model = LearnedKernelSVC(kernels=kernels, tol=0.1).fit(*circles)
        assert not relevance_is_shown(model)


def test_names_are_escaped_and_long_ones_keep_both_ends(circles):
    X, y = circles
    evil, long = "<script>alert('&')</script>", "start" + 90 * "<i>" + "end"
    model = LearnedKernelSVC().fit(pd.DataFrame(X, columns=[evil, long]), y)
    html = model._repr_html_()
    tables = shown(model)
    assert evil in tables.rows
    assert "<script>alert" not in html.split(CLASS)[1]
    assert "<i>" not in html.split(CLASS)[1]
    (short,) = (name for name in tables.rows if name.startswith("start"))
    assert short.endswith("end")
    assert len(short) < 50
    assert long in tables.titles


# ------------------------------------------------------------------- sums of given kernels


def test_largest_weights_by_the_names_of_kernels_and_features(circles):
    X, y = circles
    frame = pd.DataFrame(X, columns=["left <b>", "right"])
    kernels = [Gaussian(1.0, features=0), Gaussian(1.0, features=1), Polynomial(2)]
    model = MultipleKernelSVC(kernels=kernels).fit(frame, y)
    rows = shown(model).rows
    names = [
        "Gaussian(bandwidth=1.0) of left <b>",
        "Gaussian(bandwidth=1.0) of right",
        "Polynomial(degree=2)",
    ]
    for name, weight in zip(names, model.weights_, strict=True):
        assert (name in rows) == (weight > 0)
        assert weight == 0 or rows[name] == f"{weight:.3f}"
    assert rows["weighting"] == "learned"
    assert rows["rows"] == str(len(X))
    assert rows["relative gap"] == f"{model.gap_:.2e}"
    assert "side of P" not in rows


def test_weights_by_a_rule_are_not_said_to_be_certified(waves):
    model = MultipleKernelSVR(weighting="average").fit(*waves)
    tables = shown(model)
    assert "Certificate of the SVM; its weights are given" in tables.text
    assert tables.rows["sum of 29 others"] == f"{29 / 39:.3f}"


def test_names_of_other_kernels():
    kernel = FunctionKernel(laplacian_kernel, (0, 1, 2, 4, 3))
    assert kernel_name(kernel, list("abcde")) == (
        "FunctionKernel(function=laplacian_kernel) of a, b, c and 2 more"
    )
    assert kernel_name(Polynomial(3, 0.5), []) == "Polynomial(degree=3, offset=0.5)"
    assert kernel_name("something else", []) == "'something else'"


@pytest.mark.parametrize("estimator", [LearnedKernelSVC, MultipleKernelSVC])
def test_a_dictionary_shows_weights_and_relevance_in_every_estimator(circles, estimator):
    model = estimator(kernels=KernelDictionary(FEW)).fit(*circles)
    tables = shown(model)
    used = np.count_nonzero(model.parameter_)
    assert f"Kernel weights: {used} of 3 are not zero" in tables.text
    assert tables.rows["Gaussian(bandwidth=2.0)"] == f"{model.parameter_[1]:.3f}"
    assert tables.rows["x0"] == f"{model.feature_relevance_[0]:.3f}"
    assert "side of P" not in tables.rows


def test_a_sum_shows_its_parts_with_their_shares(circles):
    X, y = circles
    frame = pd.DataFrame(X, columns=["left", "right"]).assign(flat=1.0)
    kernels = sum_of_sets() + PolynomialKernels(2).on_features([1])
    model = LearnedKernelSVC(kernels=kernels).fit(frame, y)
    matrix, weights, other = model.parameter_
    tables = shown(model)
    assert "Parts of the kernel: share of the trace" in tables.text
    # The constant column is in no part that does not name features.
    shares = {
        "TessellatedKernels() of left, right": np.trace(matrix) / len(matrix),
        "KernelDictionary of 3 kernels of left, right": weights.sum(),
        "PolynomialKernels() of right": np.trace(other) / len(other),
    }
    assert sum(shares.values()) == pytest.approx(1.0)
    for name, share in shares.items():
        assert tables.rows[name] == f"{share:.3f}"
    assert tables.rows["Gaussian(bandwidth=0.5) of left, right"] == f"{weights[0]:.3f}"
    assert tables.rows["side of P"] == "6, 3"
    ranks = [np.linalg.matrix_rank(P, hermitian=True) for P in (matrix, other)]
    assert tables.rows["rank of P"] == f"{ranks[0]}, {ranks[1]}"


def test_weights_of_pairs_of_classes_are_shown_by_their_means():
    model = MultipleKernelSVC(kernels=FEW, multi_class="separate")
    tables = shown(model.fit(*load_iris(return_X_y=True)))
    assert "Kernel weights: means over 3 pairs of classes" in tables.text
    mean = np.mean([weights[0] for weights in model.weights_])
    assert tables.rows["Gaussian(bandwidth=0.5)"] == f"{mean:.3f}"
    assert tables.rows["learned kernels"] == "3, one for each pair of classes"
    assert len(model.dictionary_) == 3


# ------------------------------------------------------------------------------- searches


@pytest.mark.parametrize("in_pipeline", [False, True])
def test_a_search_shows_its_best_point_and_the_model_there(circles, in_pipeline):
    estimator = LearnedKernelSVC()
    prefix = "learnedkernelsvc__" if in_pipeline else ""
    if in_pipeline:
        estimator = make_pipeline(StandardScaler(), estimator)
    search = KernelPathCV(estimator, {f"{prefix}C": [0.1, 10.0]}, cv=3)
    assert CLASS not in search._repr_html_()
    search.fit(*circles)
    rows = shown(search).rows
    best = search.best_estimator_[-1] if in_pipeline else search.best_estimator_
    assert rows[f"{prefix}C"] == f"{search.best_params_[f'{prefix}C']:.6g}"
    assert rows["mean score, 3 folds"] == f"{search.best_score_:.4g}"
    assert rows["points compared"] == "2"
    assert rows["relative gap"] == f"{best.gap_:.2e}"
    assert rows["x0"] == f"{best.feature_relevance_[0]:.3f}"


def test_a_search_without_a_last_fit_shows_its_best_point(circles):
    search = KernelPathCV(LearnedKernelSVC(), {"C": [1.0, 10.0]}, cv=3, refit=False).fit(*circles)
    html = search._repr_html_()
    assert "Best point" in html
    assert "Certificate" not in html.split(CLASS)[1]


# ------------------------------------------------------------------------------- pipelines


def test_pipelines_are_drawn_and_show_it_where_scikit_learn_asks(circles):
    X, y = circles
    frame = pd.DataFrame(X, columns=["left", "right"])
    for pipeline in (
        make_pipeline(StandardScaler(), LearnedKernelSVC()),
        make_tabular_pipeline("classifier").set_output(transform="pandas"),
        make_pipeline(StandardScaler(), MultipleKernelSVC(kernels=[Gaussian(1.0)])),
        make_pipeline(StandardScaler(), KernelPathCV(param_grid={"C": [1.0]}, cv=2)),
    ):
        assert CLASS not in pipeline._repr_html_()
        html = pipeline.fit(frame, y)._repr_html_()
        assert type(pipeline[-1]).__name__ in html
        asked = HAS_HOOK and not isinstance(pipeline[-1], KernelPathCV)
        assert html.count(CLASS) == asked


# ----------------------------------------------------------------------------- never raises


@pytest.mark.parametrize(
    "model",
    [
        LearnedKernelSVC(),
        LearnedKernelSVR(),
        LearnedKernelRidge(),
        LearnedKernelRidgeClassifier(),
        MultipleKernelSVC(),
        MultipleKernelSVR(),
    ],
    ids=lambda model: type(model).__name__,
)
def test_unfitted_is_scikit_learns_diagram(model):
    html = model._repr_html_()
    assert CLASS not in html
    assert type(model).__name__ in html
    assert KernelPathCV()._repr_html_()


@pytest.mark.parametrize(
    "make", [LearnedKernelSVC, MultipleKernelSVC, LearnedKernelRidgeClassifier]
)
def test_whatever_is_missing_the_rest_is_shown(make, circles):
    fitted = make().fit(*circles)
    fitted._repr_html_()
    for name in vars(pickle.loads(pickle.dumps(fitted))):
        if name in fitted.get_params():
            continue
        model = pickle.loads(pickle.dumps(fitted))
        delattr(model, name)
        assert type(model).__name__ in model._repr_html_()
        setattr(model, name, "nonsense")
        assert type(model).__name__ in model._repr_mimebundle_()["text/html"]
    assert CLASS not in clone(fitted)._repr_html_()


def test_old_models_without_rows_and_history_still_show_their_certificate(circles):
    model = LearnedKernelSVC().fit(*circles)
    for name in ("history_", "_n_rows", "_sample_rows", "solver_"):
        delattr(model, name)
    rows = shown(model).rows
    assert rows["objective"] == f"{model.objective_:.6g}"
    assert not {"rows", "time", "solver", "x0"} & set(rows)


def test_text_where_text_is_asked_for(circles):
    model = LearnedKernelSVC(C=3.0).fit(*circles)
    with sklearn.config_context(display="text"):
        assert not hasattr(model, "_repr_html_")
        assert model._repr_mimebundle_() == {"text/plain": "LearnedKernelSVC(C=3.0)"}


def test_matplotlib_is_not_needed(circles, monkeypatch):
    model = LearnedKernelSVC().fit(*circles)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    assert "x0" in shown(model).rows
