"""Sums of kernel sets: every solver, one convex program, one certificate."""

from __future__ import annotations

import numpy as np
import pytest
from reference.programs import kernel_learning, multiple_kernel_value
from solvers.conftest import dual_of, rows_of
from solvers.test_frank_wolfe import assert_certified

from tessella.cones import PSD, Blocks, ProductCone, inner
from tessella.kernels import (
    Gaussian,
    KernelDictionary,
    Polynomial,
    PolynomialKernels,
    StackedKernels,
    TessellatedKernels,
)
from tessella.problems import SaddlePoint
from tessella.solvers import SOLVERS, SolverStatus, WorkingSetSettings, joint, working_set
from tessella.svm import DualProblem

TINY = WorkingSetSettings(first_rows=12, rows_per_param=1)
TESSELLATED = TessellatedKernels(1, 0.3)
SUMS = {
    "tessellated and a dictionary": TESSELLATED
    + KernelDictionary([Gaussian(0.5), Gaussian(2.0), Polynomial(2)]),
    "groups of features": TESSELLATED.on_features([0])
    + TESSELLATED.on_features([1, 2])
    + PolynomialKernels(1),
    "several margins": TessellatedKernels(0, 0.1) + TessellatedKernels(0, 1.0),
    "a sum within a sum": (TessellatedKernels(0, 0.3) + PolynomialKernels(1)).on_features([0, 2])
    + KernelDictionary([Gaussian(1.0)]),
}
# Those of first order, whose last digits take many iterations.
COARSE = {"frank-wolfe": 1e-3, "apd": 1e-4, "hybrid": 1e-4}


@pytest.fixture(params=SUMS, ids=str)
def kernels(request):
    return SUMS[request.param]


@pytest.fixture(scope="module")
def programs():
    """Problems and their optima by the generic program, each computed once."""
    return {}


def problem_of(kernels, task, m=30, C=4.0):
    X = rows_of(m, 3)
    return SaddlePoint(kernels.bind(X), dual_of(task, X, C))


@pytest.mark.parametrize("label", SUMS)
@pytest.mark.parametrize("name", sorted(set(SOLVERS) - {"newton", "simple-mkl"}))
def test_every_solver_finds_the_optimum_of_the_generic_program(name, label, task, programs):
    if (label, task) not in programs:
        problem = problem_of(SUMS[label], task, m=20)
        programs[label, task] = problem, kernel_learning(problem.kernels, problem.dual)[0]
    problem, optimum = programs[label, task]
    tol = COARSE.get(name, 1e-6)
    result = SOLVERS[name](problem, tol=tol, max_iter=3000)
    assert result.status is SolverStatus.OPTIMAL
    assert_certified(problem, result)
    assert result.bound <= optimum * (1 + 1e-6)
    assert optimum * (1 - 1e-6) <= result.value <= optimum * (1 + tol + 1e-6)


def leaves(cone, point):
    """Cones that are no products, each with its part of a point."""
    if not isinstance(cone, ProductCone):
        return [(cone, point)]
    parts = zip(cone.cones, point, strict=True)
    return [pair for part, own in parts for pair in leaves(part, own)]


def random_feasible(cone, rng):
    """Shares of the parts at random, and in each a point of random rank."""

    def of(part):
        if isinstance(part, ProductCone):
            shares = rng.dirichlet(np.full(len(part.cones), 0.5))
            return Blocks(t * of(own) for t, own in zip(shares, part.cones, strict=True))
        if isinstance(part, PSD):
            root = rng.standard_normal((part.side, rng.integers(1, part.side + 1)))
            P = root @ root.T
            return P * (part.side / np.trace(P))
        return rng.dirichlet(np.ones(part.count))

    return of(cone)


def test_the_bound_is_the_largest_over_the_blocks(kernels, task):
    problem = problem_of(kernels, task)
    rng = np.random.default_rng(0)
    for _ in range(5):
        w = problem.dual.feasible(rng.standard_normal(problem.dual.size))
        tops = []
        for cone, D in leaves(problem.cone, problem.kernels.gradient(w)):
            if isinstance(cone, PSD):
                tops.append(cone.side * np.linalg.eigvalsh(D)[-1])
            else:
                tops.append(D.max())
        point = problem.at(w)
        assert point.lower == pytest.approx(problem.dual.kappa(w) - 0.5 * max(tops), rel=1e-10)
        P = point.best_response
        assert problem.cone.contains(P)
        assert point.dual_value(P) == pytest.approx(point.lower, rel=1e-10)
        assert w @ problem.kernels.gram(P) @ w == pytest.approx(max(tops), rel=1e-9)


def test_no_feasible_pair_contradicts_the_bounds(kernels, task):
    problem = problem_of(kernels, task)
    rng = np.random.default_rng(1)
    best = joint(problem, tol=1e-8)
    uppers, lowers = [best.value], [best.bound]
    for _ in range(15):
        P = random_feasible(problem.cone, rng)
        assert problem.cone.contains(P)
        w = problem.dual.feasible(best.w + 0.3 * rng.standard_normal(len(best.w)))
        certificate = problem.certificate(P, w)
        uppers.append(certificate.upper)
        lowers.append(certificate.lower)
        assert problem.at(w).dual_value(P) >= certificate.lower - 1e-9
        # Also near the optimum, where a wrong share of a part would show.
        near = 0.99 * best.parameter + 0.01 * P
        uppers.append(problem.certificate(near, best.w).upper)
    assert max(lowers) <= min(uppers) * (1 + 1e-12)
    assert min(uppers) >= best.bound


def test_a_sum_is_never_worse_than_its_parts(task):
    parts = (TESSELLATED, KernelDictionary([Gaussian(0.5), Gaussian(2.0), Polynomial(2)]))
    problem = problem_of(parts[0] + parts[1], task, m=60)
    whole = joint(problem, tol=1e-7)
    alone = [joint(problem_of(part, task, m=60), tol=1e-7) for part in parts]
    assert whole.value <= min(result.value for result in alone) * (1 + 1e-6)
    # All of the trace on one part is that part's problem.
    left = Blocks([alone[0].parameter, np.zeros(3)])
    certificate = problem.certificate(left, alone[0].w)
    assert certificate.upper == pytest.approx(alone[0].value, rel=1e-9)


def test_a_sum_with_itself_has_the_value_of_one():
    problem = problem_of(TESSELLATED + TESSELLATED, "regression", m=50)
    once = joint(problem_of(TESSELLATED, "regression", m=50), tol=1e-8)
    assert joint(problem, tol=1e-8).value == pytest.approx(once.value, rel=1e-6)


def test_weights_in_two_blocks_are_weights(task):
    """Two dictionaries are one: the shares of a product of simplices are those of a simplex."""
    singles = [Gaussian(0.5), Gaussian(2.0), Polynomial(1), Polynomial(2)]
    both = KernelDictionary(singles[:1]) + KernelDictionary(singles[1:])
    problem, X = problem_of(both, task), rows_of(30, 3)
    fitted = KernelDictionary(singles).resolve(X)
    optimum = multiple_kernel_value([fitted.matrix(k, X) for k in range(4)], problem.dual)
    for solver in (joint, working_set):
        assert solver(problem, tol=1e-7).value == pytest.approx(optimum, rel=1e-6)


def test_the_working_set_on_many_rows_agrees_with_the_joint_method(kernels, task):
    problem = problem_of(kernels, task, m=250)
    result = working_set(problem, tol=1e-6, settings=TINY)
    assert result.status is SolverStatus.OPTIMAL
    assert_certified(problem, result)
    assert result.value == pytest.approx(joint(problem, tol=1e-7).value, rel=3e-6)


def test_optimality_of_the_shares(task):
    """A part with a share attains the support function; the others stay below it."""
    problem = problem_of(SUMS["tessellated and a dictionary"], task, m=80)
    result = joint(problem, tol=1e-9)
    D = problem.kernels.gradient(result.w)
    support = problem.cone.support(problem.cone.spectrum(D))
    assert inner(D, result.parameter) == pytest.approx(support, rel=1e-6)
    for cone, own, gradient in zip(problem.cone.cones, result.parameter, D, strict=True):
        if cone.trace(own) > 1e-3:
            share = inner(gradient, own) / cone.trace(own)
            assert share == pytest.approx(support, rel=1e-4)


def test_several_machines_share_the_sum():
    X = rows_of(26, 3)
    resolved = SUMS["tessellated and a dictionary"].resolve(X)
    rows = [np.arange(0, 18), np.arange(8, 26)]
    stack = StackedKernels([resolved.bind_resolved(X[own]) for own in rows])
    duals = [
        DualProblem.classification(np.where(X[rows[0], 0] > 0.5, 1.0, -1.0), 2.0),
        DualProblem.regression(X[rows[1], 1] * X[rows[1], 2], 3.0, 0.05),
    ]
    problem = SaddlePoint(stack, DualProblem.stacked(duals))
    optimum = kernel_learning(problem.kernels, problem.dual)[0]
    for result in (joint(problem, tol=1e-7), working_set(problem, tol=1e-7, settings=TINY)):
        assert result.status is SolverStatus.OPTIMAL
        assert result.value == pytest.approx(optimum, rel=1e-5)
        assert result.intercept.shape == (2,)
