"""One kernel for the machines of many leaves: bounds, optimum, limits, and the pool."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from reference.programs import kernel_learning

from tessella.cones import PSD
from tessella.kernels import (
    Gaussian,
    KernelDictionary,
    PolynomialKernels,
    StackedKernels,
    TessellatedKernels,
)
from tessella.problems import LeafEvidence, SaddlePoint, SumOfLeaves
from tessella.solvers import (
    LeafProblem,
    LeavesSettings,
    LocalLeaves,
    Monitor,
    SolverStatus,
    as_solver_result,
    joint,
    solve_leaves,
    working_set,
)
from tessella.solvers import fixed as solve_fixed
from tessella.solvers._curvature import curvature
from tessella.solvers._iterate import best_iterate
from tessella.solvers._leaf_run import n_bytes_of
from tessella.solvers._leaf_tasks import Wanted, solve_leaf
from tessella.solvers._quadratic_model import QuadraticModel
from tessella.svm import DualProblem

EVERYTHING = LeavesSettings(curved=10**6, moving=10**6)


def regression(X, y, C, loss):
    if loss == "squared":
        return DualProblem.ridge(y[:, None], C)
    return DualProblem.regression(y, C, 0.05)


def some_leaves(m=90, count=3, *, kernels=None, loss="tube", C=2.0, seed=0, n=2):
    """Leaves of a regression or a classification, cut along the first feature."""
    rng = np.random.default_rng(seed)
    X = rng.random((m, n))
    X = X[np.argsort(X[:, 0])]
    f = np.sin(5 * X[:, 0]) + X[:, 1] ** 2 * X[:, 0]
    y = f + 0.1 * rng.standard_normal(m)
    kernels = kernels or TessellatedKernels(1, 0.4)
    kernels = kernels.resolve(X)
    leaves = []
    for own in np.array_split(np.arange(m), count):
        if loss == "hinge":
            labels = np.where(y[own] > np.median(y[own]), 1.0, -1.0)
            dual = DualProblem.classification(labels, C).with_linear(labels - 0.2 * X[own, 1])
        else:
            dual = regression(X[own], y[own], C, loss)
        leaves.append(LeafProblem(kernels, X[own], (np.arange(len(own)),), dual))
    return leaves


def three_classes(m=150, count=2, seed=0):
    """Leaves with a machine for each pair of classes, of which one leaf lacks a class."""
    rng = np.random.default_rng(seed)
    X = rng.random((m, 2))
    y = np.digitize(X[:, 0] + 0.6 * X[:, 1] + 0.1 * rng.standard_normal(m), [0.6, 0.95])
    leaves = []
    for own in np.array_split(np.argsort(X[:, 0]), count):
        rows, duals = [], []
        for a, b in ((0, 1), (0, 2), (1, 2)):
            pair = np.flatnonzero((y[own] == a) | (y[own] == b))
            signs = np.where(y[own][pair] == a, 1.0, -1.0)
            if len(np.unique(signs)) == 2:
                rows.append(pair)
                duals.append(DualProblem.classification(signs, 3.0))
        leaves.append(
            LeafProblem(TessellatedKernels(1, 0.4), X[own], tuple(rows), DualProblem.stacked(duals))
        )
    return leaves


def stacked(leaves):
    """The same problem as one stack of machines."""
    parts = [machine for leaf in leaves for machine in leaf.bound().kernels.machines]
    return SaddlePoint(StackedKernels(parts), DualProblem.stacked([leaf.dual for leaf in leaves]))


def solved(leaves, **options):
    pool = LocalLeaves.of(leaves, options.get("n_jobs", 1))
    cone = leaves[0].bound().cone
    settings = {"tol": 1e-6, "settings": EVERYTHING} | options
    return solve_leaves(pool, cone, cone.centre, **settings), pool


CASES = {
    "tube": lambda: some_leaves(),
    "hinge": lambda: some_leaves(loss="hinge"),
    "squared": lambda: some_leaves(loss="squared"),
    "three classes": three_classes,
    "weights": lambda: some_leaves(kernels=KernelDictionary([Gaussian(0.3), Gaussian(1.0)])),
    "sum": lambda: some_leaves(
        kernels=TessellatedKernels(1, 0.4) + KernelDictionary([Gaussian(0.5)])
    ),
    "polynomial": lambda: some_leaves(kernels=PolynomialKernels(2)),
}


@pytest.mark.parametrize("case", CASES)
def test_the_answer_is_the_optimum_of_the_stack_of_all_machines(case):
    leaves = CASES[case]()
    result, pool = solved(leaves, max_iter=200, tol=1e-4)
    whole = stacked(leaves)
    reference = joint(whole, tol=1e-8)
    assert result.gap <= 1e-4
    assert result.status is SolverStatus.OPTIMAL
    assert result.lower <= reference.value * (1 + 1e-7)
    assert reference.bound * (1 - 1e-7) <= result.value <= reference.value * (1 + 2e-4)
    # The bounds are those that the whole problem proves with the same parameter and dual vectors.
    again = whole.certificate(result.parameter, pool.stacked(result.best))
    assert result.value == pytest.approx(again.upper, rel=1e-9)
    assert result.lower == pytest.approx(whole.at(pool.stacked(result.bound)).lower, rel=1e-9)
    assert np.concatenate(result.intercepts) == pytest.approx(again.intercept, abs=1e-9)


def test_the_generic_program_agrees():
    leaves = some_leaves(24, 3)
    whole = stacked(leaves)
    optimum = kernel_learning(whole.kernels, whole.dual)[0]
    result, _ = solved(leaves, tol=1e-5)
    assert result.lower <= optimum * (1 + 1e-6)
    assert optimum * (1 - 1e-6) <= result.value <= optimum * (1 + 2e-5)


@pytest.mark.parametrize("loss", ["tube", "hinge", "squared"])
def test_few_hessians_and_few_moving_samples_find_the_same_optimum(loss):
    leaves = some_leaves(600, 12, loss=loss)
    settings = LeavesSettings(curved=3, moving=60, least_moving=2, least_sample=100)
    result, _ = solved(leaves, tol=1e-3, settings=settings)
    reference = working_set(stacked(leaves), tol=1e-5) if loss != "squared" else None
    assert result.gap <= 1e-3
    if reference is not None:
        assert reference.bound <= result.value <= reference.value * (1 + 1e-3)


def test_evidence_adds_up_to_the_bounds_of_the_whole():
    leaves = three_classes()
    whole, rng = stacked(leaves), np.random.default_rng(3)
    w = whole.dual.feasible(rng.uniform(whole.dual.lower, whole.dual.upper))
    P = whole.cone.interior(whole.cone.vertex(whole.at(w).spectrum), 0.4)
    total, start = SumOfLeaves(whole.cone), 0
    for leaf in leaves:
        own = w[start : start + leaf.dual.size]
        start += leaf.dual.size
        total.add(LeafEvidence.of(leaf.bound().at(own), P))
    expected = whole.certificate(P, w)
    assert total.certificate().upper == pytest.approx(expected.upper, rel=1e-11)
    assert total.certificate().lower == pytest.approx(expected.lower, rel=1e-9)
    assert total.certificate().lower <= expected.lower + 1e-9 * abs(expected.lower)
    assert total.certificate().intercept == pytest.approx(expected.intercept)


def test_vectors_of_zeros_prove_the_bounds_of_constants():
    leaves = some_leaves()
    P = leaves[0].bound().cone.centre
    total = SumOfLeaves(
        leaves[0].bound().cone,
        (LeafEvidence.of(leaf.bound().at(np.zeros(leaf.dual.size)), P) for leaf in leaves),
    )
    assert total.gradient is None
    assert total.certificate().lower == 0.0
    losses = sum(leaf.dual.primal_loss(np.zeros(leaf.dual.size))[1] for leaf in leaves)
    assert total.certificate().upper == pytest.approx(losses)


@pytest.mark.parametrize("loss", ["tube", "hinge", "squared"])
def test_curvature_is_the_second_difference_of_the_value(loss):
    (leaf,) = some_leaves(50, 1, loss=loss, C=1.0)
    problem, cone = leaf.bound(), leaf.bound().cone
    P = cone.centre
    direction = cone.vertex(problem.at(joint(problem, tol=1e-6).w).spectrum) - P

    def optimal(at):
        fixed = SaddlePoint(problem.kernels, problem.dual, at)
        return problem.at(solve_fixed(fixed, tol=1e-11).w)

    step = 1e-4
    here = optimal(P)
    H = curvature(problem, here, P, None, 10**6)
    gradients = [optimal(P + sign * step * direction).gradient for sign in (1.0, -1.0)]
    slopes = [-0.5 * cone.vector(own) @ cone.vector(direction) for own in gradients]
    expected = (slopes[0] - slopes[1]) / (2 * step)
    found = cone.vector(direction) @ H @ cone.vector(direction)
    assert found == pytest.approx(expected, rel=2e-2)


def test_threads_change_nothing():
    leaves = some_leaves(300, 9)
    one, first = solved(leaves, tol=1e-3, n_jobs=1)
    three, second = solved(leaves, tol=1e-3, n_jobs=3)
    assert one.value == pytest.approx(three.value, rel=1e-12)
    assert np.allclose(first.stacked("best"), second.stacked("best"), atol=1e-9)


def test_a_fixed_parameter_needs_one_pass():
    leaves = some_leaves()
    P = leaves[0].bound().cone.centre
    given = [
        LeafProblem(leaf.kernels, leaf.rows, leaf.machine_rows, leaf.dual, fixed=P)
        for leaf in leaves
    ]
    result, _ = solved(given, fixed=True, tol=1e-4)
    assert result.gap <= 1e-4
    assert np.array_equal(result.parameter, P)
    assert [own.kind for own in result.rounds] == ["certify", "solve"]


class Interrupting(Monitor):
    """Raises an exception after some leaves of the first pass."""

    def __init__(self, after, error):
        self.after, self.error = after, error

    def leaf(self, done, total, answer):
        if done == self.after:
            raise self.error


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_ctrl_c_keeps_the_leaves_that_are_done(n_jobs):
    leaves = some_leaves(300, 6)
    settings = LeavesSettings(least_sample=10**6)
    result, pool = solved(
        leaves, callback=Interrupting(3, KeyboardInterrupt()), settings=settings, n_jobs=n_jobs
    )
    assert result.status is SolverStatus.INTERRUPTED
    w = [pool.vector(result.best, k) for k in range(6)]
    assert [bool(own.any()) for own in w] == [True] * 3 + [False] * 3
    whole = stacked(leaves)
    again = whole.certificate(result.parameter, pool.stacked(result.best))
    assert result.value == pytest.approx(again.upper, rel=1e-9)
    constants = sum(leaf.dual.primal_loss(np.zeros(leaf.dual.size))[1] for leaf in leaves)
    assert result.value < constants


class HalfCopied(LocalLeaves):
    """Leaves of which Ctrl-C comes in the middle of a copy of the best dual vectors."""

    left = 0

    def copy(self, source, target):
        self.left -= "best" in target
        if self.left or "best" not in target:
            super().copy(source, target)
            return
        for k in range(self.n_leaves // 2):
            self.set_vector(target, k, self.vector(source, k))
        raise KeyboardInterrupt


@pytest.mark.parametrize("copies", [2, 3, 4])
def test_ctrl_c_while_vectors_are_copied_leaves_the_last_pair_whole(copies):
    leaves = some_leaves(300, 6)
    pool = HalfCopied.of(leaves, 1)
    pool.left = copies
    cone = leaves[0].bound().cone
    result = solve_leaves(pool, cone, cone.centre, tol=1e-9, learned=True)
    assert pool.left == 0
    assert result.status is SolverStatus.INTERRUPTED
    again = stacked(leaves).certificate(result.parameter, pool.stacked(result.best))
    assert result.value == pytest.approx(again.upper, rel=1e-9)
    assert np.concatenate(result.intercepts) == pytest.approx(again.intercept, abs=1e-9)


def test_other_exceptions_are_passed_on_and_no_thread_remains():
    with pytest.raises(OSError, match="the disk"):
        solved(
            some_leaves(300, 6),
            callback=Interrupting(2, OSError("the disk")),
            n_jobs=3,
            settings=LeavesSettings(least_sample=10**6),
        )
    assert not [own for own in threading.enumerate() if "ThreadPool" in own.name]


def test_without_time_the_answer_is_that_of_constants():
    leaves = some_leaves(300, 6)
    result, _ = solved(leaves, time_limit=1e-9)
    assert result.status is SolverStatus.TIME_LIMIT
    constants = sum(leaf.dual.primal_loss(np.zeros(leaf.dual.size))[1] for leaf in leaves)
    assert result.value <= constants * (1 + 1e-12)


def test_max_iter_limits_the_records():
    result, _ = solved(some_leaves(300, 6), max_iter=0)
    assert result.status is SolverStatus.MAX_ITER
    assert len(result.history) == 1


def test_a_known_pair_is_where_a_run_goes_on():
    leaves = some_leaves(300, 6)
    first, pool = solved(leaves, tol=1e-3)

    class Known(Monitor):
        def known(self):
            answer = as_solver_result(first, pool)
            return [(answer.parameter, answer.w), (answer.parameter, answer.w_bound)]

    cone = leaves[0].bound().cone
    fresh = LocalLeaves.of(leaves, 1)
    again = solve_leaves(
        fresh, cone, first.parameter, tol=1e-3, callback=Known(), learned=True, max_iter=0
    )
    assert again.value == pytest.approx(first.value, rel=1e-12)
    assert again.lower == pytest.approx(first.lower, rel=1e-9)
    # The next pass begins with the known vectors, which are nearly solutions.
    steps = []
    for callback in (Known(), None):
        fresh = LocalLeaves.of(leaves, 1)
        options = {"tol": 1e-9, "learned": True, "max_iter": 1}
        run = solve_leaves(fresh, cone, first.parameter, callback=callback, **options)
        steps.append(run.history[0].svm_iter)
    assert steps[0] < steps[1]


def test_samples_that_machines_share_are_the_same_rows():
    rng = np.random.default_rng(0)
    X = rng.random((40, 2))
    dual = DualProblem.ridge(rng.standard_normal((40, 3)), 2.0)
    leaf = LeafProblem(TessellatedKernels(1, 0.4), X, (np.arange(40),) * 3, dual)
    samples, weight = leaf.some_samples(30)
    first = samples[:10]
    assert np.array_equal(samples, np.concatenate([first, first + 40, first + 80]))
    assert (weight == 4.0).all()
    part = leaf.subset(samples, weight)
    assert part.rows.shape == (10, 2)
    assert part.dual.linear == pytest.approx(dual.linear[samples])


def test_bytes_of_arrays_are_counted_wherever_they_are():
    leaf = some_leaves(30, 1)[0]
    _, answer = solve_leaf(
        leaf, np.zeros(30), leaf.bound().cone.centre, 1e-3, None, Wanted(), n_jobs=1
    )
    gradient = answer.evidence.gradient
    assert n_bytes_of(answer) == gradient.nbytes + answer.evidence.intercept.nbytes
    assert n_bytes_of([{"a": np.zeros(3)}, (np.zeros(2), "text", None)]) == 40
    assert n_bytes_of(SolverStatus.TIME_LIMIT) == 0


def test_a_leaf_without_time_ends_the_run_with_all_leaves():
    """A leaf that is stopped keeps its best vector, and the others are solved as well."""
    leaves, stopped = some_leaves(300, 6), []

    class Watch(Monitor):
        def leaf(self, done, total, answer):
            stopped.append(done)

    class Hurried(LocalLeaves):
        def map(self, task, arguments, **options):
            if task is solve_leaf:
                given = arguments
                seconds = [1e-9 if k == 2 else None for k in range(6)]
                arguments = lambda k: (*given(k)[:2], seconds[k], given(k)[3])  # noqa: E731
            return super().map(task, arguments, **options)

    pool = Hurried.of(leaves, 1)
    cone = leaves[0].bound().cone
    result = solve_leaves(pool, cone, cone.centre, callback=Watch(), time_limit=1e3)
    assert result.status is SolverStatus.TIME_LIMIT
    assert stopped == [1, 2, 3, 4, 5, 6]
    again = stacked(leaves).certificate(result.parameter, pool.stacked(result.best))
    assert result.value == pytest.approx(again.upper, rel=1e-9)


def test_a_leaf_without_time_keeps_its_vector():
    (leaf,) = some_leaves(60, 1)
    P = leaf.bound().cone.centre
    w, _ = solve_leaf(leaf, np.zeros(60), P, 1e-3, None, Wanted(), n_jobs=1)
    kept, answer = solve_leaf(leaf, w, P, 1e-9, 1e-9, Wanted(10, True), n_jobs=1)
    assert answer.stopped is SolverStatus.TIME_LIMIT
    assert np.allclose(kept, w)
    assert answer.moving is None
    assert answer.curvature is None


def test_the_quadratic_model_is_minimised_within_the_cone():
    cone = PSD(2)
    D = np.array([[0.4, 0.2], [0.2, -0.4]])
    H = np.eye(cone.dimension)
    # Of -<D, M - M0> / 2 + |M - M0|² / 2, for M0 the unit matrix and a D without a trace.
    found = QuadraticModel(cone, np.eye(2), D, H).minimiser(1e-9, 60)
    assert found == pytest.approx(np.eye(2) + 0.5 * D, abs=1e-4)
    # A gradient that is too large for the cone leads to its boundary.
    far = QuadraticModel(cone, np.eye(2), 100.0 * np.diag([1.0, -1.0]), H).minimiser(1e-9, 60)
    assert far == pytest.approx(np.diag([2.0, 0.0]), abs=1e-3)


def test_the_best_iterate_is_returned():
    class Method:
        """Merits that fall, rise a little and then by far."""

        def __init__(self, merits):
            self.merits, self.place = merits, 0

        merit = property(lambda self: self.merits[self.place])
        state = property(lambda self: self.place)

        def advance(self):
            self.place += 1
            return 1.0

    assert best_iterate(Method([8.0, 4.0, 5.0, 2.0, 3.0, 9e9, 1.0]), 0.1, 50, lambda: False) == 3
    assert best_iterate(Method([8.0, 4.0, 0.05, 0.01]), 0.1, 50, lambda: False) == 2
    assert best_iterate(Method([8.0, 4.0, 3.0, 2.0]), 0.1, 2, lambda: False) == 2
    assert best_iterate(Method([8.0, 4.0, 3.0, 2.0]), 0.1, 50, lambda: True) == 1
