"""The reference interface gives the estimators' own values, bit for bit."""

from __future__ import annotations

from dataclasses import asdict

import numpy as np
import pytest
from sklearn.datasets import load_diabetes
from sklearn.exceptions import ConvergenceWarning

from tessella import LearnedKernelSVC, LearnedKernelSVR
from tessella.pmkl import PMKLParams, evaluate_pmkl, params_tk, pmkl, pmkl_boosted

PAPER = {"kernel": "TK", "degree": 1, "delta": 0.5, "epsilon": 0.1, "maxit": 100, "tol": 0.01}


def make(task, m=80, n=3, seed=0):
    """Samples in rows, and their outputs."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (m, n))
    y = 5.0 + 3.0 * np.sin(2 * X[:, 0]) * X[:, 1]
    return (X, y) if task == "regression" else (X, np.where(y > 5.0, 1, -1))


def same_model(f, model):
    np.testing.assert_array_equal(f.P, model.P_)
    np.testing.assert_array_equal(f.model.dual_coef_, model.dual_coef_)
    np.testing.assert_array_equal(f.model.support_, model.support_)
    assert (f.b, f.gap) == (model.intercept_[0], model.gap_)


def test_defaults_are_the_papers():
    assert asdict(params_tk()) == asdict(PMKLParams()) == PAPER
    assert params_tk(None, [], (), np.array([]), None) == PMKLParams()
    assert asdict(params_tk(2, 0.1, 0.05, 7, 1e-4)) == {
        "kernel": "TK", "degree": 2, "delta": 0.1, "epsilon": 0.05, "maxit": 7, "tol": 1e-4,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("learn", "solver"), [(pmkl, "frank-wolfe"), (pmkl_boosted, "hybrid")], ids=["fw", "boosted"]
)
@pytest.mark.parametrize("task", ["classification", "regression"])
def test_defaults_equal_the_estimator(learn, solver, task):
    X, y = make(task)
    f = learn(X.T, y)
    estimator = LearnedKernelSVC if task == "classification" else LearnedKernelSVR
    more = {} if task == "classification" else {"epsilon": 0.1}
    model = estimator(C=10, delta=0.5, degree=1, tol=0.01, max_iter=100, solver=solver, **more)
    same_model(f, model.fit(X, y))
    assert f.type == task.capitalize()
    assert f.model.solver_ == solver
    X_new = make(task, seed=1)[0]
    np.testing.assert_array_equal(evaluate_pmkl(f, X_new.T), model.predict(X_new))


@pytest.mark.parametrize("kernel", ["TK", "GPK"])
def test_every_parameter_reaches_the_estimator(kernel):
    X, y = make("regression")
    params = {"kernel": kernel, "degree": 2, "delta": 0.2, "epsilon": 0.3, "maxit": 400,
              "tol": 0.05}  # fmt: skip
    f = pmkl(X.T, y, "regression", 2.5, params)
    family = {"TK": "tessellated", "GPK": "polynomial"}[kernel]
    model = LearnedKernelSVR(
        *(2.5,), epsilon=0.3, kernels=family, degree=2, delta=0.2, solver="frank-wolfe",
        max_iter=400, tol=0.05,
    )  # fmt: skip
    same_model(f, model.fit(X, y))
    assert f.model.get_params() == model.set_params(scaling="range").get_params()
    assert (f.C, asdict(f.params)) == (2.5, params)


def test_boosted_reaches_what_frank_wolfe_does_not():
    X, y = (array[:150] for array in load_diabetes(return_X_y=True))  # an optimum of rank two
    params = params_tk(maxit=200, tol=1e-5)
    with pytest.warns(ConvergenceWarning, match="frank-wolfe"):
        plain = pmkl(X.T, y, params=params)
    boosted = pmkl_boosted(X.T, y, params=params)
    assert boosted.gap <= 1e-5 < plain.gap


@pytest.mark.parametrize("given", ["Classification", "classification", "CLASSIFICATION"])
def test_the_task_may_be_written_in_any_case(given):
    X, y = make("classification", m=30)
    assert pmkl(X, y, given).type == "Classification"


@pytest.mark.parametrize(
    ("y", "expected"),
    [
        (np.tile([0.0, 7.0], 20), "Classification"),
        (np.tile([0.25, 7.5], 20), "Classification"),
        (np.tile(["no", "yes"], 20), "Classification"),
        (np.tile([False, True], 20), "Classification"),
        (np.tile([0, 1, 2, 3], 10), "Regression"),
        (np.full(40, 2.0), "Regression"),
    ],
)
def test_two_distinct_values_mean_classification(y, expected):
    x = np.random.default_rng(0).random((2, 40))
    f = pmkl(x, y)
    assert f.type == expected
    assert set(evaluate_pmkl(f, x)) <= set(y) or expected == "Regression"


def test_two_values_may_be_a_regression():
    X, y = make("classification", m=30)
    f = pmkl(X, y, "Regression")
    np.testing.assert_array_equal(f.P, pmkl(X, y.astype(float), "Regression").P)
    assert isinstance(f.model, LearnedKernelSVR)


# --------------------------------------------------------------------------------------- arrays


def test_samples_in_columns_or_rows():
    X, y = make("regression", m=50)
    columns, rows = pmkl(X.T, y), pmkl(X, y)
    assert (columns.samples_in_columns, rows.samples_in_columns) == (True, False)
    np.testing.assert_array_equal(columns.alpha, rows.alpha)
    X_new = make("regression", m=7, seed=1)[0]
    expected = rows.model.predict(X_new)
    for f in (columns, rows):
        for x_test in (X_new, X_new.T):
            np.testing.assert_array_equal(evaluate_pmkl(f, x_test), expected)
        np.testing.assert_allclose(evaluate_pmkl(f, X_new[3]), expected[3:4], rtol=1e-13)


def test_square_arrays_have_samples_in_columns():
    X, y = make("regression", m=6, n=6)
    f = pmkl(X.T, y)
    assert f.samples_in_columns
    np.testing.assert_array_equal(f.P, LearnedKernelSVR(
        epsilon=0.1, solver="frank-wolfe", max_iter=100, tol=0.01).fit(X, y).P_)  # fmt: skip


def test_square_test_data_is_read_like_the_training_data():
    X, y = make("regression", m=40)
    square = make("regression", m=3, seed=2)[0]
    rows, columns = pmkl(X, y), pmkl(X.T, y)
    np.testing.assert_array_equal(evaluate_pmkl(rows, square), rows.model.predict(square))
    np.testing.assert_array_equal(evaluate_pmkl(columns, square.T), rows.model.predict(square))


def test_one_feature():
    x = np.linspace(0, 1, 30)
    y = np.sin(6 * x)
    for given in (x, x[None, :], x[:, None]):
        f = pmkl(given, y[None, :])
        np.testing.assert_array_equal(evaluate_pmkl(f, given), f.model.predict(x[:, None]))


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_alpha_is_the_papers_dual_vector(task):
    X, y = make(task)
    f = pmkl(X.T, y)
    X_new = make(task, seed=1)[0]
    K = f.model.kernel_(X_new, X)
    if task == "classification":
        assert f.alpha.min() >= 0.0
        assert f.alpha.max() <= f.C
        w = y * f.alpha
        expected = f.model.decision_function(X_new)
    else:
        assert np.abs(f.alpha).max() <= f.C * y.std() * (1 + 1e-12)
        w = f.alpha
        expected = f.model.predict(X_new)
    assert w.sum() == pytest.approx(0.0, abs=1e-9)
    np.testing.assert_allclose(K @ w + f.b, expected, rtol=1e-9, atol=1e-9)


def test_the_papers_own_problem_in_its_units():
    """C V / s and epsilon / s on a standardised target: the notes of `pmkl`."""
    from tessella.kernels import TessellatedKernels, UnitBox
    from tessella.problems import SaddlePoint
    from tessella.solvers import joint
    from tessella.svm import DualProblem

    X, y = make("regression", m=40, n=2)
    C, epsilon, delta, s = 0.3, 0.2, 0.5, y.std()
    volume = (1 + 2 * delta) ** 2
    f = pmkl_boosted(
        X, y, C=C * volume / s, params=params_tk(1, delta, epsilon / s, 3000, 1e-8)
    )  # fmt: skip
    rows = UnitBox.fit(X).apply(X)
    # Undivided integrals are V times ours: the same saddle point with V K and C, over V.
    bound = TessellatedKernels(delta=delta).bind(rows)
    dual = DualProblem.regression(y - y.mean(), np.full(40, C * volume), epsilon)
    answer = joint(SaddlePoint(bound, dual), tol=1e-8)
    np.testing.assert_allclose(f.model.objective_ * s**2, answer.value, rtol=1e-6)
    np.testing.assert_allclose(f.P, answer.parameter, atol=1e-2)


# --------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"x": np.ones((3, 7))}, r"shape \(3, 7\) and y has 20 outputs"),
        ({"x": np.ones((3, 20, 1))}, r"shape \(3, 20, 1\)"),
        ({"y": np.ones((4, 5))}, r"shape \(4, 5\)"),
        ({"type": "ranking"}, "type='ranking' is unknown"),
        (
            {"type": "classification", "y": np.arange(20) % 3},
            "needs two distinct labels, but y has 3",
        ),
        ({"y": np.array(list("abcde") * 4)}, "5 distinct values that are not numbers"),
        ({"params": {"bound": 0.5}}, "no field 'bound'"),
        ({"params": {"kernel": "RBF"}}, "params.kernel='RBF' is unknown"),
        ({"params": params_tk(tol=-1.0)}, "tol=-1.0"),
        ({"params": params_tk(maxit=2.5)}, "max_iter=2.5"),
        ({"C": 0}, "C=0"),
    ],
)
def test_errors_say_what_is_wrong(change, message):
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match=message):
        pmkl(**({"x": rng.random((3, 20)), "y": rng.random(20)} | change))


def test_wrong_kinds_of_objects():
    X, y = make("regression", m=30)
    with pytest.raises(TypeError, match="params_tk"):
        pmkl(X, y, params=0.5)
    with pytest.raises(TypeError, match="result of pmkl"):
        evaluate_pmkl(X, X)
    with pytest.raises(ValueError, match=r"shape \(4, 5\) and the model has 3 features"):
        evaluate_pmkl(pmkl(X, y), np.ones((4, 5)))
