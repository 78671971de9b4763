"""Compiled interior point steps against those of the general iteration, which any cone can use."""

from __future__ import annotations

import numpy as np
import pytest
from solvers.conftest import make_problem
from solvers.test_frank_wolfe import assert_certified

from tessella import _core
from tessella.kernels import GaussianKernels, PolynomialKernels, TessellatedKernels
from tessella.problems import SaddlePoint
from tessella.solvers import SolverStatus, joint, working_set
from tessella.solvers._compiled_steps import CompiledInteriorPoint, interior_point
from tessella.solvers.central_path import (
    RestrictedProblem,
    _balanced,
    inwards,
    state_at,
    state_near,
)
from tessella.svm import DualProblem, InteriorPoint

KERNELS = {
    "degree 1": TessellatedKernels(1, 0.3),
    "degree 2": TessellatedKernels(2, 0.5),
    "unit": TessellatedKernels(1, 0.3, balance="unit"),
    "pointwise": TessellatedKernels(1, 0.3, balance="pointwise"),
}


def restricted(task, kernels, *, directions=None, m=90, rows=50, seed=0, weights=None):
    rng = np.random.default_rng(seed)
    X = rng.random((m, 4))
    target = np.sin(4 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.2 * rng.standard_normal(m)
    C = 3.0 * (np.ones(m) if weights is None else weights)
    if task == "regression":
        dual = DualProblem.regression(target, C, 0.1)
    else:
        dual = DualProblem.classification(np.where(target > 0.8, 1.0, -1.0), C)
    problem = SaddlePoint(kernels.bind(X), dual)
    moving = np.sort(rng.permutation(m)[:rows])
    w = dual.feasible(rng.standard_normal(m))
    side = problem.cone.degree
    V = None if directions is None else np.linalg.qr(rng.standard_normal((side, directions)))[0]
    return RestrictedProblem(problem, moving, w, V), w[moving]


def first_state(problem, w):
    cone = problem.cone
    return state_near(problem, cone.interior(cone.centre), inwards(problem.halves, w))


@pytest.mark.parametrize("directions", [None, 5])
@pytest.mark.parametrize("name", KERNELS)
def test_start_values_are_those_of_the_linearisation(task, name, directions):
    """They come from moments, and those of the linearisation from a kernel matrix."""
    problem, w = restricted(task, KERNELS[name], directions=directions)
    cone = problem.cone
    M = cone.interior(cone.centre, 0.1)
    scores, half_gradient = problem.start_values(w, M)
    expected = problem.linearise(w, M, cone.factor(M))
    size = np.abs(expected.scores).max()
    np.testing.assert_allclose(scores, expected.scores, rtol=0, atol=1e-11 * size)
    np.testing.assert_allclose(half_gradient, expected.half_gradient, rtol=1e-10)


@pytest.mark.parametrize("size", [1.0, 3.0])
def test_a_start_at_an_answer_keeps_the_sum_and_stays_inside(task, size):
    """Samples at their bounds are moved inside, and those between make up for it."""
    problem, w = restricted(task, KERNELS["degree 1"], rows=70)
    w = np.clip(size * w, problem.dual.lower, problem.dual.upper)
    M = problem.cone.interior(problem.cone.centre, 0.1)
    residual = problem.dual.linear - problem.start_values(w, M)[0]
    state, _ = state_at(problem, M, w, residual, 0.05)
    halves = problem.halves
    assert (state.alpha > 0).all()
    assert (state.alpha < halves.upper).all()
    moved = halves.join(state.alpha) - w
    assert np.abs(moved).max() > 1e-4
    assert abs(moved.sum()) < 1e-10 * np.abs(moved).sum()


def test_the_sum_is_kept_by_samples_with_room(task):
    """Most samples are at a bound, on the same side of the sum, and stay where they are."""
    problem, _ = restricted(task, KERNELS["degree 1"], rows=70)
    halves, dual, rng = problem.halves, problem.dual, np.random.default_rng(3)
    w = np.where(rng.random(dual.size) < 0.6, dual.upper, 0.4 * dual.upper + 0.6 * dual.lower)
    given, least = halves.given(w), 0.05 * halves.upper
    inside = np.clip(given, least, halves.upper - least)
    balanced = _balanced(inside, given, least, halves, dual)
    assert abs(halves.join(inside).sum() - w.sum()) > 1.0
    assert halves.join(balanced).sum() == pytest.approx(w.sum(), rel=1e-12, abs=1e-10)
    at_bound = (inside <= least) | (inside >= halves.upper - least)
    np.testing.assert_array_equal(balanced[at_bound], inside[at_bound])
    assert (balanced >= least).all()
    assert (balanced <= halves.upper - least).all()


def assert_same_steps(problem, w, count=9):
    start = first_state(problem, w)
    general, compiled = InteriorPoint(problem, *start), CompiledInteriorPoint(problem, *start)
    first = general.merit
    assert compiled.merit == pytest.approx(first, rel=1e-10)
    for _ in range(count):
        length = general.advance()
        assert compiled.advance() == pytest.approx(length, rel=1e-6)
        assert compiled.merit == pytest.approx(general.merit, rel=1e-5)
        found, expected = compiled.state, general.state
        for name in ("alpha", "zl", "zu", "M", "S", "nu"):
            own, other = getattr(found, name), getattr(expected, name)
            close = 1e-8 * np.abs(other).max()
            np.testing.assert_allclose(own, other, rtol=0, atol=close, err_msg=name)
        assert found.xi == pytest.approx(expected.xi, rel=1e-8)
        np.testing.assert_array_equal(found.M, found.M.T)
    assert general.merit < 0.1 * first


@pytest.mark.parametrize("directions", [None, 5])
@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("task", ["classification", "regression"])
def test_steps_are_those_of_the_general_iteration(task, name, directions):
    assert_same_steps(*restricted(task, KERNELS[name], directions=directions))


def test_steps_with_refined_solutions():
    """Below a merit of a thousandth, and again of a millionth, solutions are refined."""
    problem, w = restricted("classification", KERNELS["degree 1"])
    start = first_state(problem, w)
    general, compiled = InteriorPoint(problem, *start), CompiledInteriorPoint(problem, *start)
    for _ in range(30):
        general.advance()
        compiled.advance()
        if general.merit < 1e-8:
            break
    assert general.merit < 1e-8
    assert compiled.merit < 1e-7
    np.testing.assert_allclose(compiled.state.M, general.state.M, atol=1e-5)


def test_samples_without_weight_do_not_move():
    weights = np.ones(90)
    weights[::7] = 0.0
    problem, w = restricted("regression", KERNELS["degree 1"], weights=weights)
    assert len(problem.halves.sample) < 2 * problem.dual.size
    assert_same_steps(problem, w)


def test_a_state_that_is_not_inside_stays_where_it_is():
    problem, w = restricted("classification", KERNELS["degree 1"])
    state, scale = first_state(problem, w)
    alpha = state.alpha.copy()
    alpha[3] = 0.0
    outside = type(state)(**{**vars(state), "alpha": alpha})
    for method in (InteriorPoint, CompiledInteriorPoint):
        assert method(problem, outside, scale).advance() == 0.0
    singular = type(state)(**{**vars(state), "M": np.zeros_like(state.M)})
    steps = CompiledInteriorPoint(problem, singular, scale)
    assert np.isnan(steps.merit)
    assert steps.advance() == 0.0
    np.testing.assert_array_equal(steps.state.alpha, state.alpha)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_not_finite_stops_the_steps(value):
    problem, w = restricted("classification", KERNELS["degree 1"])
    state, scale = first_state(problem, w)
    zl = state.zl.copy()
    zl[0] = value
    steps = CompiledInteriorPoint(problem, type(state)(**{**vars(state), "zl": zl}), scale)
    assert not np.isfinite(steps.merit)
    assert steps.advance() == 0.0


@pytest.mark.parametrize("kernels", [TessellatedKernels(1, 0.3, "xz"), PolynomialKernels(2)])
def test_other_kernel_sets_use_the_general_iteration(kernels):
    problem, w = restricted("classification", kernels)
    assert isinstance(interior_point(problem, *first_state(problem, w)), InteriorPoint)


def test_single_kernels_have_no_thin_form():
    assert GaussianKernels(0.5).bind(np.random.default_rng(0).random((5, 2))).thin_rows() is None


@pytest.mark.parametrize("m", [90, 400, 2500])
def test_the_working_set_method_uses_them_up_to_many_samples(task, m, monkeypatch):
    used = []
    advance = CompiledInteriorPoint.advance

    def counted(self):
        used.append(None)
        return advance(self)

    monkeypatch.setattr(CompiledInteriorPoint, "advance", counted)
    problem = make_problem(task, m=m, n=5, C=5.0)
    answer = working_set(problem, tol=1e-5)
    assert answer.status is SolverStatus.OPTIMAL
    assert_certified(problem, answer)
    assert used
    if m < 1000:
        assert answer.value == pytest.approx(joint(problem, tol=1e-6).value, rel=2e-5)


def test_shapes_that_do_not_fit_are_refused():
    problem, w = restricted("classification", KERNELS["degree 1"])
    state, scale = first_state(problem, w)
    with pytest.raises(ValueError, match="shapes do not fit"):
        CompiledInteriorPoint(problem, type(state)(**{**vars(state), "zu": state.zu[1:]}), scale)
    steps = CompiledInteriorPoint(problem, state, scale)
    with pytest.raises(ValueError, match="sizes do not fit"):
        steps._steps.read(*(np.empty(2) for _ in range(3)), *(np.empty((2, 2)) for _ in range(2)))
    assert isinstance(steps._steps, _core.JointSteps)
