"""Learning a kernel with the squared loss, for one output and for several that share it."""

from __future__ import annotations

import itertools
import warnings

import cvxpy as cp
import numpy as np
import pytest
from reference.programs import _assembled, _Block, _leaves
from solvers.test_frank_wolfe import assert_certified

from tessella.cones import inner
from tessella.kernels import (
    Gaussian,
    KernelDictionary,
    Polynomial,
    SharedKernels,
    StackedKernels,
    TessellatedKernels,
)
from tessella.problems import SaddlePoint
from tessella.solvers import (
    SOLVERS,
    NewtonSettings,
    SolverStatus,
    apd,
    choose_solver,
    fixed,
    frank_wolfe,
    joint,
    newton,
    sdp,
    simple_mkl,
    working_memory,
    working_set,
)
from tessella.solvers.newton import small_sample
from tessella.svm import DualProblem, HingeLoss, RidgeInverse, SmoothDual, SquaredLoss, solve_dual

SETS = {
    "matrix": TessellatedKernels(1, 0.3),
    "full": TessellatedKernels(1, 0.3, "xz"),
    "weights": KernelDictionary([Gaussian(0.3), Gaussian(2.0), Polynomial(2)]),
    "sum": TessellatedKernels(0, 0.3) + KernelDictionary([Gaussian(0.3), Polynomial(2)]),
}


def data(m, n_outputs=1, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.random((m, 2))
    f = np.column_stack(
        [np.sin(5 * X[:, 0]) + X[:, 1], X[:, 0] * X[:, 1], np.cos(4 * X[:, 1]), X[:, 0] > 0.5]
    )
    Y = f[:, :n_outputs] + 0.2 * rng.standard_normal((m, n_outputs))
    return X, Y, rng.integers(1, 4, m).astype(float)


def make_problem(name, m=18, n_outputs=1, C=6.0):
    X, Y, weight = data(m, n_outputs)
    bound = SETS[name].bind(X)
    kernels = bound if n_outputs == 1 else SharedKernels(bound, n_outputs)
    return SaddlePoint(kernels, DualProblem.ridge(Y, C * weight))


def semidefinite_value(problem, floor=0.0):
    """Optimal value as a semidefinite program with a Schur complement for each output."""
    kernels, dual = problem.kernels.machines[0], problem.dual
    m, blocks = kernels.n_samples, [_Block(part) for part in _leaves(kernels.cone)]
    K = 0
    for number, block in enumerate(blocks):
        for entry, unit in enumerate(block.units()):
            point = [unit if k == number else np.zeros(b.shape) for k, b in enumerate(blocks)]
            K = K + block.entries[entry] * kernels.gram(_assembled(kernels.cone, iter(point)))
    value, constraints = 0, [sum(b.share for b in blocks) == 1, *(b.positive for b in blocks)]
    for block in blocks:
        least = np.eye(block.shape[0]) if len(block.shape) == 2 else 1.0 / block.shape[0]
        above = block.variable - floor * least
        constraints.append(above >> 0 if len(block.shape) == 2 else above >= 0)
    for loss in dual.losses:
        big, b = cp.Variable((m + 1, m + 1), PSD=True), cp.Variable()
        constraints.append(big[:m, :m] == K)
        residual = loss.target - big[:m, m] - b
        value += 0.5 * big[m, m] + 0.5 * cp.sum_squares(cp.multiply(np.sqrt(loss.C), residual))
    program = cp.Problem(cp.Minimize(value), constraints)
    with warnings.catch_warnings():
        # Clarabel is asked for more digits than it can always give; the tests say how many count.
        warnings.filterwarnings("ignore", "Solution may be inaccurate")
        program.solve(solver=cp.CLARABEL, tol_gap_rel=1e-9, tol_gap_abs=1e-9, tol_feas=1e-9)
    return float(program.value)


@pytest.mark.parametrize("n_outputs", [1, 3])
@pytest.mark.parametrize("name", SETS)
def test_solvers_agree_with_the_semidefinite_program(name, n_outputs):
    problem = make_problem(name, n_outputs=n_outputs)
    value = semidefinite_value(problem)
    for solver, tol in ((joint, 1e-6), (newton, 1e-6), (apd, 1e-6), (frank_wolfe, 1e-4)):
        result = solver(problem, tol=tol, max_iter=3000)
        assert result.status is SolverStatus.OPTIMAL, solver
        assert result.gap <= tol
        assert_certified(problem, result)
        assert result.value == pytest.approx(value, rel=3 * tol)
        assert result.bound <= value * (1 + 1e-6)
    centre = fixed(SaddlePoint(problem.kernels, problem.dual, problem.cone.centre), tol=1e-9)
    assert centre.value > 1.01 * value  # there was something to learn


def test_frank_wolfe_reaches_a_small_gap():
    for n_outputs in (1, 3):
        problem = make_problem("matrix", 40, n_outputs)
        result = frank_wolfe(problem, tol=1e-6, max_iter=5000)
        assert result.status is SolverStatus.OPTIMAL
        assert result.value == pytest.approx(joint(problem, tol=1e-8).value, rel=2e-6)


@pytest.mark.parametrize("n_outputs", [1, 3])
def test_weights_by_simple_mkl(n_outputs):
    problem = make_problem("weights", 40, n_outputs)
    result = simple_mkl(problem, tol=1e-4)
    assert result.status is SolverStatus.OPTIMAL
    assert result.value == pytest.approx(newton(problem, tol=1e-8).value, rel=2e-4)


@pytest.mark.parametrize("name", SETS)
def test_shared_rows_are_a_stack_of_equal_machines(name):
    X, Y, weight = data(15, 3)
    bound, rng = SETS[name].bind(X), np.random.default_rng(0)
    shared, stacked = SharedKernels(bound, 3), StackedKernels([bound] * 3)
    P, w = bound.cone.centre, rng.standard_normal(45)
    K = stacked.gram(P)
    np.testing.assert_allclose(shared.gram(P), K[:15, :15], rtol=1e-12)
    np.testing.assert_allclose(shared.times(shared.gram(P), w), K @ w, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(shared.diag(P), stacked.diag(P))
    np.testing.assert_allclose(shared.cross(X[:4], P), stacked.cross(X[:4], P))
    vector = bound.cone.vector
    gradients = vector(shared.gradient(w)), vector(stacked.gradient(w))
    np.testing.assert_allclose(*gradients, rtol=1e-10, atol=1e-12)
    some = np.array([1, 4, 7])
    part = shared.restrict(shared.spread(some))
    np.testing.assert_allclose(part.gram(P), K[np.ix_(some, some)], rtol=1e-10)
    with pytest.raises(ValueError, match="must keep the same rows"):
        shared.restrict(np.array([1, 16, 32]))
    dual = DualProblem.ridge(Y, weight)
    values = [joint(SaddlePoint(own, dual), tol=1e-8).value for own in (shared, stacked)]
    assert values[0] == pytest.approx(values[1], rel=1e-7)
    assert newton(SaddlePoint(stacked, dual), tol=1e-8).value == pytest.approx(values[0], rel=1e-7)


def test_several_outputs_are_the_sum_of_their_values():
    """For a fixed kernel nothing couples the outputs."""
    problem = make_problem("matrix", 30, 3)
    P = problem.cone.centre
    whole = fixed(SaddlePoint(problem.kernels, problem.dual, P), tol=1e-10)
    K = problem.kernels.gram(P)
    alone = [solve_dual(K, machine) for machine in problem.dual.each]
    assert whole.value == pytest.approx(sum(own.objective for own in alone), rel=1e-10)
    np.testing.assert_allclose(whole.intercept, [own.intercept for own in alone], rtol=1e-8)
    np.testing.assert_allclose(whole.w, np.concatenate([own.w for own in alone]), atol=1e-9)


def test_newton_values_fall_and_bounds_rise():
    history = newton(make_problem("matrix", 60, 2), tol=1e-9).history
    for earlier, later in itertools.pairwise(history):
        assert later.value <= earlier.value
        assert later.bound >= earlier.bound
        assert later.n_svm == earlier.n_svm + 1
    assert history[-1].gap <= 1e-9


@pytest.mark.parametrize("name", ["matrix", "weights", "sum"])
def test_newton_within_faces_reaches_the_same_optimum(name):
    problem = make_problem(name, 40, 2)
    small = NewtonSettings(whole=1, directions=2)
    result = newton(problem, tol=1e-7, settings=small)
    assert result.status is SolverStatus.OPTIMAL
    assert result.value == pytest.approx(newton(problem, tol=1e-8).value, rel=1e-6)


@pytest.mark.parametrize("name", ["matrix", "weights", "sum"])
@pytest.mark.parametrize("n_outputs", [1, 4])
def test_newton_starts_from_a_small_sample(name, n_outputs):
    problem = make_problem(name, 60, n_outputs)
    settings = NewtonSettings(first_rows=20, rows_per_param=1)
    sample = small_sample(problem, settings)
    assert sample.kernels.machines[0].n_samples == 20
    assert len(sample.dual.losses) == min(3, n_outputs)
    # The weight of the loss is that of all rows, and so is the size of the outputs.
    total = sum(loss.C.sum() for loss in sample.dual.losses[:1])
    assert total == pytest.approx(problem.dual.losses[0].C.sum(), rel=0.2)
    squares = [
        sum(float(loss.target @ loss.target) for loss in own.dual.losses) / own.dual.size
        for own in (problem, sample)
    ]
    assert 0.3 < n_outputs * squares[0] / (min(3, n_outputs) * squares[1]) < 3
    result = newton(problem, tol=1e-7, settings=settings)
    assert result.history[0].n_newton > 0
    if name == "matrix":
        assert result.history[0].value < newton(problem, tol=1e-7).history[0].value
    assert result.gap <= 1e-7
    assert result.value == pytest.approx(joint(problem, tol=1e-8).value, rel=1e-6)
    assert small_sample(problem, NewtonSettings()) is None


def test_newton_goes_on_from_a_given_pair():
    problem = make_problem("matrix", 60, 2)
    first = newton(problem, tol=1e-2)
    again = newton(problem, tol=1e-8, parameter0=first.parameter, w0=first.w)
    assert again.history[0].value <= first.value * (1 + 1e-12)
    assert again.gap <= 1e-8
    none = newton(problem, tol=1e-8, parameter0=first.parameter, w0=first.w, max_iter=0)
    assert none.status is SolverStatus.MAX_ITER
    assert none.value <= first.value * (1 + 1e-12)


def test_float32_kernels_are_certified():
    X, Y, _ = data(60, 2)
    kernels = SharedKernels(TessellatedKernels(1, 0.3).bind(X, dtype=np.float32), 2)
    problem = SaddlePoint(kernels, DualProblem.ridge(Y, 5.0))
    assert choose_solver("auto", problem) is newton
    assert newton(problem, tol=1e-4).gap <= 1e-4
    assert frank_wolfe(problem, tol=1e-3).gap <= 1e-3


# ---- a floor under the parameter


@pytest.mark.parametrize("name", ["matrix", "weights"])
def test_a_floor_is_a_constraint_of_the_same_problem(name):
    X, Y, weight = data(18)
    dual, floor = DualProblem.ridge(Y, 6.0 * weight), 0.3
    plain = SETS[name].bind(X)
    value = semidefinite_value(SaddlePoint(plain, dual), floor)
    bound = SETS[name].with_floor(floor).bind(X)
    problem = SaddlePoint(bound, dual)
    for solver, tol in ((joint, 1e-6), (newton, 1e-6), (frank_wolfe, 1e-4)):
        result = solver(problem, tol=tol, max_iter=3000)
        assert result.status is SolverStatus.OPTIMAL
        assert_certified(problem, result)
        assert result.value == pytest.approx(value, rel=3 * tol)
        P = bound.kernel_parameter(result.parameter)
        assert plain.cone.contains(P)
        lowest = np.linalg.eigvalsh(P)[0] if P.ndim == 2 else len(P) * P.min()
        assert lowest >= floor - 1e-9
        # The kernel of the set without the floor has this value.
        K = plain.gram(P)
        assert solve_dual(K, dual).objective == pytest.approx(result.value, rel=1e-5)
        free = bound.free_parameter(P)
        np.testing.assert_allclose(free, result.parameter, atol=1e-8)
    assert value > 1.001 * joint(SaddlePoint(plain, dual), tol=1e-8).value


@pytest.mark.parametrize("name", SETS)
def test_the_bound_with_a_floor_is_that_of_its_support_function(name):
    X, Y, weight = data(20)
    dual = DualProblem.ridge(Y, weight)
    plain, raised = SETS[name].bind(X), SETS[name].with_floor(0.4).bind(X)
    w = dual.feasible(np.random.default_rng(1).standard_normal(20))
    D = plain.gradient(w)
    cone = plain.cone
    support = 0.4 * inner(D, cone.centre) + 0.6 * cone.support(cone.spectrum(D))
    bound = SaddlePoint(raised, dual).at(w).lower
    assert bound == pytest.approx(dual.kappa(w) - 0.5 * support, rel=1e-10)


def test_a_floor_of_one_leaves_nothing_to_learn():
    X, Y, weight = data(30)
    dual = DualProblem.ridge(Y, weight)
    plain, raised = SETS["matrix"].bind(X), TessellatedKernels(1, 0.3, floor=1.0).bind(X)
    result = frank_wolfe(SaddlePoint(raised, dual), tol=1e-9)
    assert result.n_iter == 0
    np.testing.assert_array_equal(raised.kernel_parameter(result.parameter), np.eye(6))
    K = plain.gram(np.eye(6))
    assert result.value == pytest.approx(solve_dual(K, dual).objective, rel=1e-9)
    np.testing.assert_array_equal(raised.free_parameter(np.eye(6)), np.eye(6))


def test_a_floor_of_zero_is_no_floor():
    X, _, _ = data(30)
    zero = TessellatedKernels(1, 0.3, floor=0.0)
    assert type(zero.bind(X)) is type(SETS["matrix"].bind(X))
    assert type(SETS["weights"].with_floor(0.0).bind(X)) is type(SETS["weights"].bind(X))
    assert SETS["matrix"].with_floor(0.0) == zero


@pytest.mark.parametrize("floor", [-0.1, 1.5, np.nan, "much", None])
def test_bad_floors(floor):
    X, _, _ = data(10)
    with pytest.raises(ValueError, match="between 0 and 1"):
        TessellatedKernels(floor=floor).bind(X)
    with pytest.raises(ValueError, match="between 0 and 1"):
        SETS["weights"].with_floor(floor)


def test_what_lies_below_the_floor_is_projected():
    X, _, _ = data(10)
    bound = TessellatedKernels(1, 0.3, floor=0.5).bind(X)
    vertex = np.zeros((6, 6))
    vertex[0, 0] = 6.0
    free = bound.free_parameter(vertex)
    assert bound.cone.contains(free)
    np.testing.assert_allclose(free, vertex, atol=1e-12)


# ---- the linear system


def test_solutions_satisfy_the_optimality_conditions():
    X, Y, weight = data(50, 3)
    K = X @ X.T  # of rank two
    answer = SmoothDual(K, DualProblem.ridge(Y, weight))
    W = answer.w.reshape(3, 50).T
    np.testing.assert_allclose(K @ W + W / weight[:, None] + answer.intercepts, Y, atol=1e-10)
    np.testing.assert_allclose(W.sum(axis=0), 0.0, atol=1e-10)
    np.testing.assert_allclose(answer.residual, (Y - K @ W).T.ravel(), atol=1e-12)
    # Another curvature for each output needs a factorisation for each.
    losses = [SquaredLoss(y, (k + 1) * weight) for k, y in enumerate(Y.T)]
    mixed = SmoothDual(K, DualProblem(*losses))
    for k, loss in enumerate(losses):
        alone = solve_dual(K, DualProblem(loss))
        np.testing.assert_allclose(mixed.w[50 * k : 50 * (k + 1)], alone.w, atol=1e-10)
        assert mixed.intercepts[k] == pytest.approx(alone.intercept, abs=1e-10)
        assert alone.gap <= 1e-12


def test_the_matrix_of_a_ridge_inverse():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((20, 30))
    K, curvature = A @ A.T, rng.uniform(0.1, 2.0, 20)
    G = np.linalg.inv(K + np.diag(curvature))
    H = G - np.outer(G.sum(axis=1), G.sum(axis=0)) / G.sum()
    inverse, J = RidgeInverse(K, curvature), rng.standard_normal((20, 5))
    np.testing.assert_allclose(inverse.form(J), J.T @ H @ J, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(inverse.solve(J)[0], H @ J, rtol=1e-8, atol=1e-10)


def test_a_nearly_singular_matrix_is_solved():
    ones = np.ones((30, 30))
    dual = DualProblem.ridge(np.arange(30.0), 1e9)
    answer = solve_dual(1e6 * ones - 1e-9 * np.eye(30), dual)  # not quite positive
    assert np.isfinite(answer.w).all()
    assert answer.objective <= answer.primal


# ---- which solver


def test_auto_chooses_by_the_number_of_outputs():
    assert choose_solver("auto", make_problem("matrix")) is joint
    assert choose_solver("auto", make_problem("matrix", 300)) is joint
    assert choose_solver("auto", make_problem("matrix", 300, 2)) is newton
    matrices = working_memory("auto", [100], 4, by_rows=True, smooth=True)
    assert matrices == 6 * 8 * 100**2
    assert working_memory("newton", [100], 4, by_rows=True, smooth=True) == 3 * 8 * 100**2


def test_solvers_that_need_bounds_say_so():
    problem = make_problem("matrix")
    for solver in (working_set, sdp):
        with pytest.raises(
            ValueError, match=r"needs a loss with finite bounds.*SquaredLoss.*'joint'"
        ):
            solver(problem)
    with pytest.raises(ValueError, match="safe_steps"):
        apd(problem, safe_steps=True)
    X, Y, _ = data(20)
    hinge = SaddlePoint(TessellatedKernels().bind(X), DualProblem(HingeLoss(np.sign(Y[:, 0]), 1.0)))
    with pytest.raises(ValueError, match=r"without bounds.*SquaredLoss; got HingeLoss"):
        SOLVERS["newton"](hinge, tol=1e-3, max_iter=9)


# ---- many features: machines before Newton steps


def wide_problem(m=60, n=40, n_outputs=1, C=6.0, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.random((m, n))
    Y = X[:, :n_outputs] + 0.2 * rng.standard_normal((m, n_outputs))
    bound = TessellatedKernels().bind(X)
    kernels = bound if n_outputs == 1 else SharedKernels(bound, n_outputs)
    return SaddlePoint(kernels, DualProblem.ridge(Y - Y.mean(axis=0), np.full(m, C)))


def test_many_features_need_machines_only():
    problem = wide_problem()
    result = joint(problem, tol=1e-6)
    assert_certified(problem, result)
    assert result.status is SolverStatus.OPTIMAL
    assert (result.n_svm, result.history[-1].n_newton) == (1, 0)
    start = problem.cone.centre  # from a given parameter, Newton steps find the same optimum
    steps = joint(problem, tol=1e-6, parameter0=start)
    assert steps.history[-1].n_newton > 0
    assert result.value == pytest.approx(steps.value, rel=2e-6)


@pytest.mark.parametrize("n_outputs", [2, 4])
def test_many_features_and_several_outputs_start_near_the_optimum(n_outputs):
    problem = wide_problem(n_outputs=n_outputs)
    result = newton(problem, tol=1e-5)
    assert_certified(problem, result)
    assert result.status is SolverStatus.OPTIMAL
    assert result.history[0].gap < 0.02
    reference = frank_wolfe(problem, tol=2e-3, max_iter=3000)
    assert result.value <= reference.value * (1 + 1e-9)
    assert result.value >= reference.bound


def test_a_limit_within_the_first_machines_leaves_a_certified_pair():
    result = newton(wide_problem(n_outputs=3), tol=1e-12, time_limit=0.0)
    assert result.status is SolverStatus.TIME_LIMIT
    assert np.isfinite(result.gap)
