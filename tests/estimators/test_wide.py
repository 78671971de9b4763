"""Fits of tables with more columns than rows, whose parameter is kept as a factor."""

from __future__ import annotations

import pickle
import tracemalloc

import numpy as np
import pytest
from estimators.conftest import raw_scores
from reference.wide import WholeKernels
from sklearn.base import clone

from tessella import (
    KernelDictionary,
    LearnedKernelRidge,
    LearnedKernelRidgeClassifier,
    LearnedKernelSVC,
    LearnedKernelSVR,
    TessellatedKernels,
    load,
)
from tessella.cones import Blocks
from tessella.inspection import ParameterDisplay, relevance_scale
from tessella.inspection._summary import facts_of
from tessella.kernels import Gaussian
from tessella.pmkl import pmkl

ROWS, COLUMNS = 40, 300
N_PARAMS = 2 * (COLUMNS + 1)
SUM = TessellatedKernels() + KernelDictionary([Gaussian(10.0), Gaussian(30.0)])

MODELS = {
    "classification": LearnedKernelSVC(C=0.01),
    "regression": LearnedKernelSVR(C=0.01, epsilon=0.1),
    "ridge": LearnedKernelRidge(C=0.01),
    "classes": LearnedKernelSVC(C=0.01),
    "ridge classes": LearnedKernelRidgeClassifier(C=0.01),
    "sum": LearnedKernelSVC(C=0.01, kernels=SUM),
}


def table(name, rows=ROWS, columns=COLUMNS, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((rows, columns))
    score = X[:, 0] + X[:, 1] + 0.5 * rng.standard_normal(rows)
    if name in ("regression", "ridge"):
        return X, 10.0 + 3.0 * score
    return X, np.digitize(score, [-0.7, 0.7] if "classes" in name else [0.0])


@pytest.fixture(params=MODELS)
def case(request):
    return clone(MODELS[request.param]), *table(request.param)


def matrix_of(model):
    return model.parameter_[0] if isinstance(model.parameter_, Blocks) else model.parameter_


def test_the_parameter_is_a_factor(case):
    model, X, y = case
    model.fit(X, y)
    assert model.gap_ <= model.tol
    U = matrix_of(model)
    assert len(U) == N_PARAMS
    assert U.shape[1] <= 2 * ROWS
    assert model.kernel_.shares.sum() == pytest.approx(1.0)
    if not isinstance(model.parameter_, Blocks):
        assert np.trace(model.P_) == pytest.approx(N_PARAMS)
        np.testing.assert_array_equal(model.P_, U @ U.T)


@pytest.mark.parametrize("name", ["classification", "regression", "ridge"])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_certificate_is_one_of_the_whole_parameter(name, weighted):
    """Both bounds from whole matrices: the kernel of P, and the largest eigenvalue of D(w)."""
    X, y = table(name)
    rng = np.random.default_rng(7)
    weight = rng.integers(1, 4, ROWS).astype(float) if weighted else np.ones(ROWS)
    model = clone(MODELS[name]).set_params(tol=1e-5).fit(X, y, sample_weight=weight)
    mean = np.average(y, weights=weight)
    deviation = np.sqrt(np.average((y - mean) ** 2, weights=weight))
    unit = (X - X.min(axis=0)) / np.ptp(X, axis=0)
    reference, C = WholeKernels(unit), model.C * weight
    scale = 1.0 if name == "classification" else deviation
    w = np.zeros(ROWS)
    w[model.support_] = model.dual_coef_[0] / scale
    witness = w if model._w_bound is None else model._w_bound[0]
    K = reference.gram(model.P_)
    scores = K @ w + (model.intercept_[0] - (0.0 if name == "classification" else mean)) / scale
    target = np.where(y == 1, 1.0, -1.0) if name == "classification" else (y - mean) / deviation
    if name == "classification":
        loss = np.maximum(0.0, 1.0 - target * scores)
        kappa = np.abs(witness).sum()
    elif name == "regression":
        loss = np.maximum(0.0, np.abs(target - scores) - model.epsilon)
        kappa = target @ witness - model.epsilon * np.abs(witness).sum()
    else:
        loss = 0.5 * (target - scores) ** 2
        kappa = target @ witness - 0.5 * (witness**2 / C).sum()
    upper = 0.5 * w @ K @ w + C @ loss
    largest = np.linalg.eigvalsh(reference.gradient(witness))[-1]
    lower = kappa - 0.5 * N_PARAMS * largest
    assert abs(witness.sum()) < 1e-9 * np.abs(witness).sum()
    if name != "ridge":
        assert (np.abs(witness) <= C * (1.0 + 1e-12)).all()
    assert model.objective_ == pytest.approx(upper, rel=1e-8)
    assert model.lower_bound_ == pytest.approx(lower, rel=1e-8)
    assert model.gap_ <= 1e-5


def test_predictions_are_those_of_the_whole_parameter():
    X, y = table("classification")
    model = LearnedKernelSVC(C=0.01).fit(X, y)
    new = 0.5 * table("classification", seed=1)[0]
    low, span = X.min(axis=0), np.ptp(X, axis=0)
    inside = np.clip(new, low, low + span)
    pair = WholeKernels((inside - low) / span, (model.support_vectors_ - low) / span)
    expected = pair.gram(model.P_) @ model.dual_coef_[0] + model.intercept_[0]
    np.testing.assert_allclose(model.decision_function(inside), expected, atol=1e-9)


def test_the_optimum_is_that_of_the_whole_parameter(case, monkeypatch):
    model, X, y = case
    inside = clone(model).set_params(tol=1e-6).fit(X, y)
    monkeypatch.setattr("tessella.kernels._row_span._LEAST_SIDE", 10**9)
    whole = clone(model).set_params(tol=1e-6).fit(X, y)
    assert matrix_of(whole).shape == (N_PARAMS, N_PARAMS)
    assert inside.objective_ == pytest.approx(whole.objective_, rel=3e-6)
    scores = raw_scores(whole, X)
    np.testing.assert_allclose(raw_scores(inside, X), scores, atol=0.02 * np.abs(scores).max())


def test_weights_are_copies(case):
    model, X, y = case
    weight = np.ones(ROWS)
    weight[[2, 5]] = 2.0
    weight[9] = 0.0
    given = clone(model).fit(X, y, sample_weight=weight)
    rows = np.repeat(np.arange(ROWS), weight.astype(int))
    copied = clone(model).fit(X[rows], y[rows])
    np.testing.assert_array_equal(matrix_of(given), matrix_of(copied))
    assert given.objective_ == copied.objective_


def test_files_and_pickles(case, tmp_path):
    model, X, y = case
    model.fit(X, y)
    model.save(tmp_path / "model.tsl")
    expected = raw_scores(model, X)
    for again in (load(tmp_path / "model.tsl"), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(matrix_of(again), matrix_of(model))
        np.testing.assert_array_equal(raw_scores(again, X), expected)
        assert again.kernel_ == model.kernel_


def test_a_wrong_factor_in_a_file_is_refused(tmp_path):
    X, y = table("classification")
    model = LearnedKernelSVC(C=0.01).fit(X, y)
    model.kernel_.parameter[:] *= 1.01
    model.save(tmp_path / "model.tsl")
    with pytest.raises(ValueError, match="not one that its kernel set can have"):
        load(tmp_path / "model.tsl")


def test_warm_starts_go_on_where_the_last_fit_ended(case):
    model, X, y = case
    model.set_params(warm_start=True).fit(X, y)
    gap = model.gap_
    model.fit(X, y)
    assert model.history_[0].gap <= gap * (1.0 + 1e-6) + 1e-12
    # Other rows have another span, and fewer rows have a smaller one.
    model.fit(X[:30], y[:30])
    assert model.gap_ <= model.tol
    assert len(matrix_of(model)) == N_PARAMS


def test_a_whole_matrix_is_a_start_of_few_rows():
    X, y = table("classification", rows=260)
    model = LearnedKernelSVC(C=0.01, warm_start=True).fit(X, y)
    assert model.parameter_.shape == (N_PARAMS, N_PARAMS)
    model.fit(X[:ROWS], y[:ROWS])
    assert model.parameter_.shape[1] <= 2 * ROWS
    assert model.gap_ <= model.tol


def test_checkpoints(case, tmp_path):
    model, X, y = case
    path = tmp_path / "checkpoint"
    model.set_params(checkpoint=path, max_iter=0, tol=1e-15)
    with pytest.warns(UserWarning, match="gap"):
        first = clone(model).fit(X, y)
    assert path.stat().st_size < 8 * N_PARAMS**2 / 2
    with pytest.warns(UserWarning, match="gap"):
        again = clone(model).fit(X, y)
    assert again.history_[len(first.history_)].gap <= first.gap_ * (1.0 + 1e-6) + 1e-9
    last = clone(model).set_params(max_iter=100, tol=1e-3).fit(X, y)
    assert last.gap_ <= 1e-3
    assert last.objective_ <= first.objective_ * (1.0 + 1e-9)


def test_every_pair_of_classes_has_its_own_span():
    X, y = table("classes")
    model = LearnedKernelSVC(C=0.01, multi_class="separate").fit(X, y)
    assert [own.shape[0] for own in model.parameter_] == [N_PARAMS] * 3
    assert all(own.shape[1] < ROWS for own in model.parameter_)
    assert [P.shape for P in model.P_] == [(N_PARAMS, N_PARAMS)] * 3
    assert model.gap_ <= model.tol


@pytest.mark.parametrize("solver", ["joint", "apd", "working-set"])
def test_all_solvers_work_in_the_span(solver):
    X, y = table("classification", rows=20)
    model = LearnedKernelSVC(C=1e-4, solver=solver, tol=0.02, max_iter=2000).fit(X, y)
    best = LearnedKernelSVC(C=1e-4, tol=1e-6).fit(X, y)
    assert model.parameter_.shape[1] <= 40
    assert model.objective_ == pytest.approx(best.objective_, rel=0.02)


def test_narrow_tables_and_floors_keep_the_matrix():
    X, y = table("classification", columns=100)
    assert LearnedKernelSVC(C=0.01).fit(X, y).parameter_.shape == (202, 202)
    X, y = table("classification", columns=140)
    model = LearnedKernelSVC(C=0.01, kernels=TessellatedKernels(floor=0.2)).fit(X, y)
    assert model.parameter_.shape == (282, 282)
    assert np.linalg.eigvalsh(model.P_)[0] > 0.199


@pytest.mark.filterwarnings("ignore:Do not use this model")
def test_the_interface_of_the_paper():
    X, y = table("classification")
    solution = pmkl(X.T, y, "Classification", 0.01)
    assert solution.P.shape == (N_PARAMS, N_PARAMS)
    assert solution.model.parameter_.shape[1] <= 2 * ROWS


def test_inspection_reads_factors():
    X, y = table("classification")
    model = LearnedKernelSVC(C=0.01).fit(X, y)
    facts = facts_of(model)
    assert facts.matrix_sides == [N_PARAMS]
    rank = np.linalg.matrix_rank(model.P_, hermitian=True)
    assert facts.matrix_ranks() == [[rank]]
    assert f"{N_PARAMS}" in model._repr_html_()
    factored = ParameterDisplay.from_estimator(model, max_shown=8)
    whole = ParameterDisplay(model.P_, functions=factored.functions).plot(max_shown=8)
    assert factored.labels_ == whole.labels_
    np.testing.assert_allclose(factored.shown_, whole.shown_, atol=1e-9 * N_PARAMS)
    few = LearnedKernelSVC(C=0.01).fit(X[:, :150], y)
    scale = relevance_scale(few)
    assert scale.shape == (150,)
    assert set(np.argsort(scale)[-2:]) == {0, 1}


@pytest.mark.parametrize("name", ["classification", "regression", "ridge", "ridge classes"])
def test_nothing_has_the_size_of_the_whole_matrix(name, tmp_path):
    columns = 3000
    X, y = table(name, columns=columns)
    tracemalloc.start()
    try:
        model = clone(MODELS[name]).set_params(checkpoint=tmp_path / "checkpoint").fit(X, y)
        model.predict(X)
        model.save(tmp_path / "model.tsl")
        again = load(tmp_path / "model.tsl")
        again.set_params(warm_start=True, checkpoint=None).fit(X, y)
        pickle.loads(pickle.dumps(again)).kernel_(X)
        assert np.isnan(again.linear_share_)  # there are more features than rows
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(model.parameter_) == 2 * (columns + 1)
    table_of_exponents = (columns + 1) * columns  # a byte for each would be too much
    assert peak < 3 * table_of_exponents < 8 * (2 * columns) ** 2 / 10
