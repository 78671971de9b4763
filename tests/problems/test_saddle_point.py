from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference.svm import primal_value

from tessella.cones import PSD
from tessella.kernels import TessellatedKernels
from tessella.problems import SaddlePoint
from tessella.svm import DualProblem, SquaredLoss, best_intercept, relative_gap, solve_dual


def make(task, m=40, n=2, C=5.0, seed=0, degree=1):
    rng = np.random.default_rng(seed)
    X = rng.random((m, n))
    f = np.sin(5 * X[:, 0]) + X[:, -1]
    kernels = TessellatedKernels(degree, 0.3).bind(X)
    if task == "classification":
        dual = DualProblem.classification(np.where(f > np.median(f), 1.0, -1.0), C)
    else:
        dual = DualProblem.regression(f + 0.1 * rng.standard_normal(m), C, 0.05)
    return SaddlePoint(kernels, dual)


def random_feasible(problem, rng):
    n = problem.cone.side
    root = rng.standard_normal((n, rng.integers(1, n + 1)))
    P = root @ root.T
    P *= n / np.trace(P)
    w = problem.dual.feasible(rng.standard_normal(problem.dual.size) * problem.dual.upper.max())
    return P, w


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_bounds_by_their_definitions(task):
    problem = make(task)
    rng = np.random.default_rng(1)
    for _ in range(5):
        P, w = random_feasible(problem, rng)
        K = problem.kernels.gram(P)
        got = problem.certificate(P, w)
        offsets = np.linspace(-5, 5, 20001)
        scan = min(primal_value(K, problem.dual, w, b) for b in offsets[::20])
        assert got.upper <= scan + 1e-9 * abs(scan)
        attained = primal_value(K, problem.dual, w, got.intercept)
        assert got.upper == pytest.approx(attained, rel=1e-10)
        n = problem.cone.side
        top = np.linalg.eigvalsh(problem.kernels.gradient(w))[-1]
        expected = problem.dual.kappa(w) - 0.5 * n * top
        assert got.lower == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_residuals_are_those_of_the_offset_that_attains_the_upper_bound(task):
    problem = make(task)
    P, w = random_feasible(problem, np.random.default_rng(7))
    offset = problem.certificate(P, w).intercept[0]
    expected = problem.dual.linear - problem.kernels.gram(P) @ w - offset
    np.testing.assert_allclose(problem.at(w).residuals(P), expected, atol=1e-9)


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_every_lower_bound_is_below_every_upper_bound(task):
    problem = make(task)
    rng = np.random.default_rng(2)
    pairs = [random_feasible(problem, rng) for _ in range(20)]
    # Also near the optimum, where a wrong sign or factor would show.
    for P, _ in pairs[:5]:
        K = problem.kernels.gram(P, centred=True)
        pairs.append((P, solve_dual(K, problem.dual, tol=1e-8).w))
    certificates = [problem.certificate(P, w) for P, w in pairs]
    lowest = min(c.upper for c in certificates)
    highest = max(c.lower for c in certificates)
    assert highest <= lowest


def test_lower_bound_is_the_minimum_over_p():
    problem = make("regression")
    rng = np.random.default_rng(3)
    point = problem.at(random_feasible(problem, rng)[1])
    S = point.best_response
    assert problem.cone.contains(S)
    value = problem.dual.kappa(point.w) - 0.5 * point.w @ problem.kernels.gram(S) @ point.w
    assert point.lower == pytest.approx(value, rel=1e-10)
    for _ in range(20):
        P, _ = random_feasible(problem, rng)
        other = problem.dual.kappa(point.w) - 0.5 * point.w @ problem.kernels.gram(P) @ point.w
        assert point.lower <= other + 1e-9


def test_gradient_of_the_value_by_finite_differences():
    """d/dP of the optimal SVM value is -D(w)/2."""
    problem = make("regression", m=30)
    rng = np.random.default_rng(4)
    P, _ = random_feasible(problem, rng)
    P = 0.5 * P + 0.5 * problem.cone.centre
    Q, _ = random_feasible(problem, rng)

    def value(step):
        K = problem.kernels.gram(P + step * (Q - P), centred=True)
        return solve_dual(K, problem.dual, tol=1e-13)

    h = 1e-5
    slope = (value(h).objective - value(-h).objective) / (2 * h)
    D = problem.kernels.gradient(value(0.0).w)
    assert slope == pytest.approx(-0.5 * np.sum(D * (Q - P)), rel=1e-5)


def test_gap_equals_frank_wolfe_gap_at_an_exact_svm():
    problem = make("classification")
    P = problem.cone.centre
    K = problem.kernels.gram(P)
    w = solve_dual(K, problem.dual, tol=1e-12).w
    got = problem.certificate(P, w)
    n = problem.cone.side
    top = np.linalg.eigvalsh(problem.kernels.gradient(w))[-1]
    assert got.upper - got.lower == pytest.approx(0.5 * (n * top - w @ K @ w), rel=1e-6)


def test_infeasible_w_is_made_feasible_before_it_proves_anything():
    problem = make("classification")
    wild = np.full(problem.dual.size, 1e6)
    point = problem.at(wild)
    assert abs(point.w.sum()) < 1e-9 * np.abs(point.w).sum() + 1e-12
    assert (point.w <= problem.dual.upper).all()


def test_zero_w_certifies_a_wide_tube():
    problem = SaddlePoint(
        TessellatedKernels().bind(np.random.default_rng(0).random((8, 2))),
        DualProblem.regression(np.linspace(0, 1, 8), 1.0, 2.0),
    )
    certificate = problem.certificate(problem.cone.centre, np.zeros(8))
    assert certificate.upper == certificate.lower == certificate.gap == 0.0


def test_size_mismatch():
    with pytest.raises(ValueError, match="3 rows and the SVM has 2"):
        SaddlePoint(TessellatedKernels().bind(np.eye(3)), DualProblem.classification([1, -1], 1.0))


@settings(max_examples=100, deadline=None)
@given(m=st.integers(1, 12), eps=st.sampled_from([0.0, 0.1, 3.0]), seed=st.integers(0, 9999))
def test_best_intercept_beats_every_breakpoint(m, eps, seed):
    rng = np.random.default_rng(seed)
    C = rng.integers(0, 3, m).astype(float)
    if seed % 2:
        dual = DualProblem.classification(rng.choice([-1.0, 1.0], m), C)
    else:
        dual = DualProblem.regression(rng.integers(-2, 3, m).astype(float), C, eps)
    scores = rng.integers(-2, 3, m).astype(float)
    intercept, loss = best_intercept(dual, scores)

    def loss_at(b):
        r = dual.linear - scores - b
        return dual.upper @ np.maximum(r - dual.epsilon, 0) - dual.lower @ np.maximum(
            -r - dual.epsilon, 0
        )

    assert loss == pytest.approx(loss_at(intercept))
    r = dual.linear - scores
    breaks = np.concatenate([r - dual.epsilon, r + dual.epsilon])
    assert loss <= min(loss_at(b) for b in breaks) + 1e-9


def test_relative_gap():
    assert relative_gap(2.0, 1.0) == 0.5
    assert relative_gap(0.0, 0.0) == 0.0
    assert relative_gap(1.0, 1.0 + 1e-15) == 0.0


@pytest.mark.parametrize("C", [1e3, 1e6, 1e9])
def test_rounding_never_raises_a_lower_bound(C):
    # Rows that nearly agree with coefficients of opposite signs: the terms of the quadratic form
    # cancel, and what is left of them is rounding.
    rng = np.random.default_rng(6)
    X = 0.5 + 1e-4 * rng.random((30, 2))
    kernels = TessellatedKernels(1, 0.3).bind(X)
    dual = DualProblem.regression(rng.standard_normal(30), C, 0.05)
    P = kernels.cone.centre
    problem = SaddlePoint(kernels, dual, fixed=P)
    K = kernels.gram(P).astype(np.longdouble)
    for _ in range(40):
        w = dual.feasible(C * rng.uniform(-1.0, 1.0, 30))
        long = w.astype(np.longdouble)
        size = np.abs(long)
        exact = long @ dual.linear - dual.epsilon @ size - long @ K @ long / 2
        lower = problem.at(w).lower
        assert lower <= exact
        assert exact - lower <= 1e-12 * float(size @ np.abs(K) @ size)


def test_the_rough_bound_of_a_fixed_parameter_is_that_of_the_best_multiple():
    rng = np.random.default_rng(8)
    X = rng.random((30, 2))
    kernels = TessellatedKernels(1, 0.3).bind(X)
    dual = DualProblem.regression(rng.standard_normal(30), 3.0, 0.05)
    P = kernels.cone.centre
    problem = SaddlePoint(kernels, dual, fixed=P)
    K, w = kernels.gram(P), dual.feasible(rng.uniform(-3.0, 3.0, 30))
    bound, proof = problem.at(w).rough_lower()
    assert bound == pytest.approx(dual.kappa(proof) - 0.5 * proof @ K @ proof, rel=1e-9)
    shares = np.geomspace(1e-6, 1.0, 41)
    best = max(dual.kappa(s * w) - 0.5 * s**2 * (w @ K @ w) for s in shares)
    assert bound == pytest.approx(best, rel=1e-9)


@pytest.mark.parametrize("task", ["classification", "regression", "squared"])
@pytest.mark.parametrize("C", [1e3, 1e6, 1e9])
def test_rounding_never_lowers_an_upper_bound(task, C):
    # The same with the scores: they are rounding, of which a steep loss makes much.
    rng = np.random.default_rng(7)
    X = 0.5 + 1e-4 * rng.random((30, 2))
    kernels = TessellatedKernels(1, 0.3).bind(X)
    target = rng.standard_normal(30)
    dual = {
        "classification": lambda: DualProblem.classification(np.where(target > 0, 1.0, -1.0), C),
        "regression": lambda: DualProblem.regression(target, C, 0.05),
        "squared": lambda: DualProblem(SquaredLoss(target, C)),
    }[task]()
    P = kernels.cone.centre
    K = kernels.gram(P).astype(np.longdouble)
    for _ in range(40):
        w = dual.feasible(C * rng.uniform(-1.0, 1.0, 30))
        upper, intercept = SaddlePoint(kernels, dual).at(w).upper(P)
        long = w.astype(np.longdouble)
        scores = K @ long
        residual = dual.linear - scores - intercept[0]
        error = 1e-13 * np.abs(K) @ np.abs(long)
        exact, most = (
            loss_in_long_double(dual, residual, error=part) + long @ scores / 2
            for part in (0.0, error)
        )
        assert exact <= upper
        assert upper <= most + 1e-12 * float(np.abs(long) @ np.abs(K) @ np.abs(long))


def loss_in_long_double(dual, residual, error):
    size = np.abs(residual)
    if dual.is_smooth:
        return ((size + error) ** 2 / dual.curvature).sum() / 2
    slope = np.where(residual > 0, dual.upper, -dual.lower)
    if (dual.epsilon == 0.0).all():  # the hinge, whose other side may be within the error
        slope = np.where(size <= error, np.maximum(dual.upper, -dual.lower), slope)
    return (slope * np.maximum(size - dual.epsilon + error, 0)).sum()


def test_feature_norms_are_at_most_the_largest_ones():
    problem = make("regression")
    rng = np.random.default_rng(8)
    for _ in range(20):
        P, _ = random_feasible(problem, rng)
        assert (problem.feature_norms(P) <= problem.largest_feature_norms).all()
    assert SaddlePoint(problem.kernels, problem.dual, fixed=P).largest_feature_norms == (
        pytest.approx(problem.feature_norms(P))
    )


@pytest.mark.parametrize("factor", [1.0 + 1e-6, 1.5, 0.5])
def test_an_infeasible_parameter_proves_nothing(factor):
    problem = make("classification")
    P, w = random_feasible(problem, np.random.default_rng(9))
    assert np.isfinite(problem.certificate(P, w).upper)
    assert problem.certificate(factor * P, w).upper == np.inf


@pytest.mark.parametrize("task", ["classification", "regression"])
@pytest.mark.parametrize("size", [1.0, 1e-3])
def test_a_rough_bound_is_the_best_of_the_multiples_of_a_vector(task, size):
    problem = make(task)
    rng = np.random.default_rng(10)
    for _ in range(5):
        w = problem.dual.feasible(size * random_feasible(problem, rng)[1])
        bound, proof = problem.at(w).rough_lower()
        np.testing.assert_array_equal(problem.dual.feasible(proof), proof)
        # No more than the vector proves by the spectrum of its gradient, and no less than zero.
        assert 0.0 <= bound <= problem.at(proof).lower * (1 + 1e-12)
        largest = problem.cone.total * np.linalg.norm(problem.at(w).gradient)
        reach = float(np.abs(w) @ problem.largest_feature_norms) ** 2
        largest = min(largest, reach)
        shares = np.linspace(0.0, 1.0, 4001)
        best = max(problem.dual.kappa(t * w) - 0.5 * t**2 * largest for t in shares)
        assert bound == pytest.approx(best, rel=0.05, abs=1e-12)


def test_a_bound_of_the_support_by_the_norm():
    rng = np.random.default_rng(11)
    root = rng.standard_normal((6, 3))
    matrices, D = PSD(6), root @ root.T
    assert matrices.support(matrices.spectrum(D)) <= matrices.support_bound(D)
    thin = np.outer(root[:, 0], root[:, 0])  # of one direction, where the bound is attained
    support = matrices.support(matrices.spectrum(thin))
    assert matrices.support_bound(thin) == pytest.approx(support)
