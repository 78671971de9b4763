"""Nyström features of a learned kernel."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris, make_moons
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from tessella import (
    KernelDictionary,
    KernelFeatures,
    LearnedKernelSVC,
    LearnedKernelSVR,
    MultipleKernelSVR,
    TessellatedKernels,
)
from tessella.kernels import Gaussian, Polynomial

METHODS = ["k-means", "leverage", "random"]


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.random((200, 3)) ** 2 * [1.0, 100.0, 0.01] + [0.0, -5.0, 3.0]
    U = (X - X.min(axis=0)) / np.ptp(X, axis=0)
    return X, np.sin(5.0 * U[:, 0]) * U[:, 1] + U[:, 2]


@pytest.fixture(scope="module")
def model(data):
    return LearnedKernelSVR().fit(*data)


@parametrize_with_checks([KernelFeatures(), KernelFeatures(landmarks="k-means", n_components=5)])
def test_scikit_learn_checks(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        check(estimator)


# ---- how well the kernel is approximated


@pytest.mark.parametrize("landmarks", METHODS)
def test_exact_when_every_row_is_a_landmark(model, data, landmarks):
    X, _ = data
    Z = KernelFeatures(model.kernel_, n_components=200, landmarks=landmarks).fit_transform(X)
    K = model.kernel_(X)
    np.testing.assert_allclose(Z @ Z.T, K, rtol=0, atol=1e-12 * K.max())


@pytest.mark.parametrize("landmarks", METHODS)
def test_error_falls_and_stays_near_the_best_possible(model, data, landmarks):
    X, _ = data
    K = model.kernel_(X)
    spectrum = np.linalg.eigvalsh(K)[::-1]
    errors = []
    for count in (5, 20, 80, 160):
        transformer = KernelFeatures(
            model.kernel_, n_components=count, landmarks=landmarks, random_state=0
        )
        Z = transformer.fit_transform(X)
        assert Z.shape == (200, count)
        rest = K - Z @ Z.T
        # Nyström never exceeds the kernel: what it leaves is positive semidefinite.
        assert np.linalg.eigvalsh(rest)[0] > -1e-12 * spectrum[0]
        errors.append(np.trace(rest))
        assert spectrum[count:].sum() <= errors[-1] * (1 + 1e-9)
        assert errors[-1] < 4.0 * spectrum[count:].sum()
    assert (np.diff(errors) < 0).all()


def test_equals_the_kernel_at_the_landmarks(model, data):
    X, _ = data
    transformer = KernelFeatures(model.kernel_, n_components=20, random_state=0).fit(X)
    L = transformer.components_
    K = model.kernel_(X, L)
    np.testing.assert_allclose(
        transformer.transform(X) @ transformer.transform(L).T, K, rtol=0, atol=1e-12 * K.max()
    )
    gram = transformer.normalization_.T @ model.kernel_(L) @ transformer.normalization_
    np.testing.assert_allclose(gram, np.eye(20), atol=1e-9)
    assert (np.diff(transformer.eigenvalues_) < 0).all()


def test_rank_deficient_kernel_gives_fewer_features(data):
    X, y = data
    kernel = LearnedKernelSVR(kernels="polynomial", degree=1).fit(X, y).kernel_
    transformer = KernelFeatures(kernel, n_components=50, random_state=0).fit(X)
    Z = transformer.transform(X)
    assert Z.shape[1] <= 4  # 1, x0, x1, x2
    assert len(transformer.get_feature_names_out()) == Z.shape[1]
    np.testing.assert_allclose(Z @ Z.T, kernel(X), rtol=1e-9)


def test_duplicates_are_one_landmark(model, data):
    X, _ = data
    repeated = np.repeat(X[:30], 5, axis=0)
    for landmarks in METHODS:
        transformer = KernelFeatures(model.kernel_, n_components=50, landmarks=landmarks)
        Z = transformer.fit_transform(repeated)
        assert transformer.components_.shape == (30, 3)
        K = model.kernel_(repeated)
        np.testing.assert_allclose(Z @ Z.T, K, rtol=0, atol=1e-12 * K.max())


def ridge_leverage_scores(K, dimension):
    """Diagonal of K (K + ridge I)⁻¹, with the ridge that makes its trace the dimension."""
    values, vectors = np.linalg.eigh(K)
    values = np.maximum(values, 0.0)
    shares = np.logspace(-12, 3, 4000)[:, None] * values.max()
    ridge = shares[np.argmin(np.abs((values / (values + shares)).sum(axis=1) - dimension)), 0]
    return (vectors**2) @ (values / (values + ridge))


def test_leverage_draws_rows_by_their_scores(model):
    """How often a row becomes a landmark, over many seeds, against draws by exact scores."""
    rng = np.random.default_rng(0)
    low, span = model.kernel_.box.offset, model.kernel_.box.span
    crowd, few = 0.4 + 0.1 * rng.random((60, 3)), rng.random((20, 3))
    X = low + span * np.vstack([crowd, few])
    count, seeds = 20, 400
    drawn = np.zeros(len(X))
    for seed in range(seeds):
        features = KernelFeatures(model.kernel_, n_components=count, random_state=seed).fit(X)
        same = (X[:, None] == features.components_).all(axis=2)
        assert (same.sum(axis=0) == 1).all()
        drawn += same.any(axis=1)
    scores = ridge_leverage_scores(model.kernel_(X), 0.25 * count)
    expected = np.zeros(len(X))
    for _ in range(20 * seeds):
        expected[rng.choice(len(X), count, replace=False, p=scores / scores.sum())] += 0.05
    assert drawn.sum() == count * seeds
    assert np.corrcoef(drawn, expected)[0, 1] > 0.99
    # The crowd and the few as wholes, within what chance and the rough scores explain.
    assert drawn[60:].sum() == pytest.approx(expected[60:].sum(), rel=0.1)


def test_leverage_finds_the_odd_ones_out(model):
    # One dense cluster and ten rows apart from it: uniform sampling misses most of the ten.
    rng = np.random.default_rng(0)
    cluster = 0.2 + 0.001 * rng.random((500, 3))
    apart = np.linspace(0.3, 1.0, 10)[:, None] * np.ones(3)
    low, span = model.kernel_.box.offset, model.kernel_.box.span
    X = low + span * np.vstack([cluster, apart])
    found = {
        landmarks: KernelFeatures(
            model.kernel_, n_components=30, landmarks=landmarks, random_state=0
        ).fit(X)
        for landmarks in ("leverage", "random")
    }
    edge = low[0] + 0.25 * span[0]
    count = {name: int((f.components_[:, 0] > edge).sum()) for name, f in found.items()}
    assert count["leverage"] >= 8
    assert count["random"] <= 3


def test_k_means_centres_are_means_of_rows(model, data):
    X, _ = data
    X = np.column_stack([X[:, :2], np.full(200, 3.005)])  # a constant column is left alone
    transformer = KernelFeatures(
        model.kernel_, n_components=7, landmarks="k-means", random_state=0
    ).fit(X)
    assert transformer.components_.shape == (7, 3)
    np.testing.assert_allclose(transformer.components_[:, 2], 3.005)
    assert (transformer.components_ >= X.min(axis=0) - 1e-12).all()
    assert (transformer.components_ <= X.max(axis=0) + 1e-12).all()


def test_k_means_counts_copies_of_a_row(model):
    """Two clusters of two rows each, some of them several times: the means of all rows."""
    low, span = model.kernel_.box.offset, model.kernel_.box.span
    places = np.array([[0.1, 0.1, 0.2], [0.2, 0.1, 0.1], [0.9, 0.8, 0.9], [0.8, 0.9, 0.9]])
    X = low + span * np.repeat(places, [7, 1, 2, 6], axis=0)
    transformer = KernelFeatures(
        model.kernel_, n_components=2, landmarks="k-means", random_state=0
    ).fit(X)
    found = transformer.components_[np.argsort(transformer.components_[:, 0])]
    np.testing.assert_allclose(found, [X[:8].mean(axis=0), X[8:].mean(axis=0)], rtol=1e-12)


def test_rows_are_taken_in_tiles_of_32_megabytes(model, monkeypatch):
    low, span = model.kernel_.box.offset, model.kernel_.box.span
    X = low + span * np.random.default_rng(1).random((30_000, 3))
    transformer = KernelFeatures(
        model.kernel_, n_components=200, landmarks="random", random_state=0
    ).fit(X[:300])
    parts = [transformer.transform(X[k : k + 1000]) for k in range(0, len(X), 1000)]
    rows = []
    original = type(model.kernel_).__call__

    def counted(self, X, *args, **kwargs):
        rows.append(len(X))
        return original(self, X, *args, **kwargs)

    monkeypatch.setattr(type(model.kernel_), "__call__", counted)
    whole = transformer.transform(X)
    np.testing.assert_allclose(whole, np.vstack(parts), rtol=0, atol=1e-9 * np.abs(whole).max())
    assert sum(rows) == len(X)
    assert len(rows) == 2
    assert 8 * 200 * max(rows) <= 32 * 2**20


# ---- where the kernel comes from


def test_takes_a_kernel_a_fitted_estimator_or_a_frozen_one(model, data):
    X, _ = data
    expected = KernelFeatures(model.kernel_, n_components=9, random_state=0).fit_transform(X)
    for given in (model, FrozenEstimator(model)):
        transformer = KernelFeatures(given, n_components=9, random_state=0)
        assert (transformer.fit_transform(X) == expected).all()
    assert (clone(transformer).fit_transform(X) == expected).all()  # a frozen one stays fitted


def test_fits_a_copy_of_an_estimator_that_is_not_fitted(data):
    X, y = data
    given = LearnedKernelSVR(C=2.0, kernels=TessellatedKernels(delta=0.9))
    transformer = KernelFeatures(given, n_components=9, n_learn=200).fit(X, y)
    assert not hasattr(given, "kernel_")
    assert transformer.kernel_ == clone(given).fit(X, y).kernel_
    with pytest.raises(NotFittedError, match="kernel_ of a fitted estimator"):
        KernelFeatures(given).fit(X)


def test_learns_from_the_target_it_is_given(data):
    X, y = data
    assert KernelFeatures().fit(X, y).kernel_ == LearnedKernelSVR().fit(X, y).kernel_
    labels = np.where(y > np.median(y), "high", "low")
    assert KernelFeatures().fit(X, labels).kernel_ == LearnedKernelSVC().fit(X, labels).kernel_


def test_learns_on_some_rows_only(data):
    X, y = data
    transformer = KernelFeatures(n_learn=50, random_state=0).fit(X, y)
    rng = np.random.RandomState(0)
    rows = np.sort(rng.permutation(200)[:50])
    assert transformer.kernel_ == LearnedKernelSVR().fit(X[rows], y[rows]).kernel_


def test_a_rare_class_is_among_the_rows_to_learn_from(data):
    X, _ = data
    labels = np.zeros(200, dtype=int)
    labels[17] = 1
    for seed in range(5):
        KernelFeatures(n_learn=10, random_state=seed).fit(X, labels)


def test_several_classes():
    X, y = load_iris(return_X_y=True)
    model = make_pipeline(
        KernelFeatures(n_components=40, random_state=0), LogisticRegression(max_iter=2000)
    )
    assert model.fit(X, y).score(X, y) > 0.95
    assert np.trace(model[0].kernel_.P) == pytest.approx(len(model[0].kernel_.P))


LEARNERS = {
    "weights": MultipleKernelSVR(kernels=[Gaussian(0.5), Polynomial(2)]),
    "dictionary": LearnedKernelSVR(kernels=KernelDictionary.standard()),
    "sum": LearnedKernelSVR(kernels=TessellatedKernels() + KernelDictionary([Gaussian(0.5)])),
}


@pytest.mark.parametrize("name", LEARNERS)
@pytest.mark.parametrize("landmarks", METHODS)
def test_features_of_weights_and_sums(name, landmarks, data):
    X, y = data
    transformer = KernelFeatures(
        clone(LEARNERS[name]), n_components=200, n_learn=120, landmarks=landmarks, random_state=0
    )
    features = transformer.fit(X, y).transform(X)
    K = transformer.kernel_(X)
    np.testing.assert_allclose(features @ features.T, K, atol=1e-6 * K.max())
    assert make_pipeline(transformer, Ridge(1e-3)).fit(X, y).score(X, y) > 0.9


def test_without_target_the_middle_of_the_family(data):
    X, _ = data
    transformer = KernelFeatures(n_components=10).fit(X)
    np.testing.assert_array_equal(transformer.kernel_.P, np.eye(8))
    unit = (X - X.min(axis=0)) / np.ptp(X, axis=0)
    expected = TessellatedKernels().cross(unit, unit, np.eye(8))
    np.testing.assert_allclose(transformer.kernel_(X), expected, rtol=1e-12)


# ---- as a part of scikit-learn


def test_linear_model_on_features_is_the_kernel_machine(model, data):
    X, y = data
    features = KernelFeatures(model.kernel_, n_components=200).fit(X)
    ridge = Ridge(0.1, fit_intercept=False, solver="cholesky").fit(features.transform(X), y)
    K = model.kernel_(X)
    expected = K @ np.linalg.solve(K + 0.1 * np.eye(200), y)
    np.testing.assert_allclose(ridge.predict(features.transform(X)), expected, rtol=1e-6)


def test_search_over_its_parameters():
    X, y = make_moons(150, noise=0.2, random_state=0)
    kernel = LearnedKernelSVC().fit(X, y).kernel_
    pipeline = make_pipeline(KernelFeatures(kernel, random_state=0), LogisticRegression())
    grid = {"kernelfeatures__n_components": [2, 40]}
    search = GridSearchCV(pipeline, grid, cv=3).fit(X, y)
    assert search.best_params_ == {"kernelfeatures__n_components": 40}
    assert search.best_score_ > 0.85


def test_names_and_frames(model, data):
    frame = pd.DataFrame(data[0], columns=["a", "b", "c"])
    transformer = KernelFeatures(model.kernel_, n_components=3, random_state=0)
    transformer.set_output(transform="pandas").fit(frame)
    result = transformer.transform(frame)
    assert list(result.columns) == ["kernelfeatures0", "kernelfeatures1", "kernelfeatures2"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        KernelFeatures(n_components=3).fit(frame, data[1]).transform(frame)


def test_deterministic_and_picklable(data):
    X, y = data
    for landmarks in METHODS:
        transformer = KernelFeatures(
            n_components=11, landmarks=landmarks, n_learn=80, random_state=3
        )
        first = transformer.fit(X, y).transform(X)
        assert (pickle.loads(pickle.dumps(transformer)).transform(X) == first).all()
        assert (clone(transformer).fit(X, y).transform(X) == first).all()


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"n_components": 0}, "n_components=0"),
        ({"n_components": 2.5}, "n_components=2.5"),
        ({"n_learn": True}, "n_learn=True"),
        ({"landmarks": "grid"}, "landmarks='grid'"),
        ({"kernel": "rbf"}, "kernel='rbf'"),
    ],
)
def test_bad_parameters(params, message, data):
    with pytest.raises(ValueError, match=message):
        KernelFeatures(**params).fit(*data)


def test_kernel_of_other_data_is_refused(model):
    with pytest.raises(ValueError, match="3 features, but X has 2"):
        KernelFeatures(model.kernel_).fit(np.random.default_rng(0).random((10, 2)))


def test_constant_data_is_refused():
    with pytest.raises(ValueError, match="constant"):
        KernelFeatures().fit(np.ones((10, 2)))
