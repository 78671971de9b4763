"""First parameters of leaves with a large parameter, and the rounds in a face of its cone."""

from __future__ import annotations

import numpy as np
import pytest
from solvers.test_leaves import solved, some_leaves, stacked

from tessella.cones import PSD
from tessella.kernels import TessellatedKernels, bind_to_machines
from tessella.solvers import LeafProblem, LeavesSettings, LocalLeaves, SolverStatus, joint
from tessella.solvers._factor_descent import FLOOR
from tessella.solvers._leaf_descent import _Descent, parameter_by_passes
from tessella.svm import DualProblem


def many_features(m=60, count=2, n=12, loss="squared", C=3.0, seed=0):
    """Leaves whose function depends on other features in each of them."""
    rng = np.random.default_rng(seed)
    X = rng.random((m, n))
    kernels = TessellatedKernels(1, 0.4).resolve(X)
    leaves = []
    for k, own in enumerate(np.array_split(np.arange(m), count)):
        f = np.sin(4 * X[own, k % n]) * X[own, (k + 1) % n]
        y = (f - f.mean()) / f.std() + 0.1 * rng.standard_normal(len(own))
        if loss == "squared":
            dual = DualProblem.ridge(y[:, None], C)
        else:
            dual = DualProblem.regression(y, C, 0.3)
        leaves.append(LeafProblem(kernels, X[own], (np.arange(len(own)),), dual))
    return leaves


def exact(leaves):
    """Solves the machines of all leaves, and counts how often."""
    whole = stacked(leaves)
    calls = []

    def solve(P):
        calls.append(P)
        w = []
        for part, loss in zip(whole.kernels.machines, whole.dual.losses, strict=True):
            A = part.gram(P) + np.diag(1.0 / loss.C)
            solutions = np.linalg.solve(A, np.column_stack([loss.target, np.ones(len(A))]))
            w.append(solutions @ [1.0, -solutions[:, 0].sum() / solutions[:, 1].sum()])
        D = whole.at(np.concatenate(w)).gradient
        return whole.dual.kappa(np.concatenate(w)) - 0.5 * float(np.sum(D * P)), D

    return whole, solve, calls


def test_the_slope_of_the_descent_is_that_of_the_value():
    whole, solve, _ = exact(many_features())
    descent = _Descent(solve, whole.cone, 1e-3, 100)
    rng = np.random.default_rng(1)
    U = rng.standard_normal((whole.cone.degree, 3))
    direction = rng.standard_normal(U.shape)
    value, slope = descent._at(U)
    step = 1e-4
    ends = [descent._at(U + sign * step * direction)[0] for sign in (1.0, -1.0)]
    assert np.sum(slope * direction) == pytest.approx((ends[0] - ends[1]) / (2 * step), rel=1e-4)
    # The value is that of the normalised parameter with a little of all directions.
    P = (1.0 - FLOOR) * whole.cone.normalised(U @ U.T) + FLOOR * whole.cone.centre
    assert value == pytest.approx(solve(P)[0])


@pytest.mark.parametrize("passes", [0, 1, 4, 12])
def test_the_descent_takes_so_many_passes_and_gets_better(passes):
    whole, solve, calls = exact(many_features())
    assert isinstance(whole.cone, PSD)
    P = parameter_by_passes(solve, whole.cone, 1e-4, passes)
    assert whole.cone.contains(P)
    assert len(calls) <= 3 + passes
    values = [solve(at)[0] for at in calls[2:]]
    found, centre = solve(P)[0], solve(whole.cone.centre)[0]
    assert found < centre
    if passes == 12:
        optimum = joint(whole, tol=1e-4).value
        assert found <= min(values) * (1 + 1e-2)
        assert found <= optimum * 1.1


def test_a_step_that_raises_the_value_is_shortened():
    """A value that is a parabola of the factor, whose first step is far too long."""
    cone = PSD(3)
    values = []

    def solve(P):
        # <A, P> has the gradient A, and the solver wants D with value slope -D/2.
        A = np.diag([1.0, 2.0, 3.0])
        values.append(float(np.sum(A * P)))
        return values[-1], -2.0 * A

    found = _Descent(solve, cone, 1e-9, 60).parameter(cone.centre)
    assert np.sum(np.diag([1.0, 2.0, 3.0]) * found) < 1.05 * cone.degree
    assert max(values) == values[0]


@pytest.mark.parametrize(("loss", "C"), [("squared", 0.1), ("tube", 0.05)])
def test_a_large_cone_is_solved_in_a_face(loss, C):
    """With 70 features, the parameter has more than 64 rows."""
    leaves = many_features(1200 if loss == "tube" else 400, 4, n=70, loss=loss, C=C)
    cone = leaves[0].bound().cone
    settings = LeavesSettings()
    assert cone.dimension > settings.whole * (settings.whole + 1) // 2
    result, pool = solved(leaves, tol=1e-2, settings=settings, max_iter=200)
    assert result.gap <= 1e-2
    assert result.status is SolverStatus.OPTIMAL
    whole = stacked(leaves)
    again = whole.certificate(result.parameter, pool.stacked(result.best))
    assert result.value == pytest.approx(again.upper, rel=1e-8)
    assert result.lower == pytest.approx(whole.at(pool.stacked(result.bound)).lower, rel=1e-8)


# ------------------------------------------------------------------------------- pools and kernels


@pytest.mark.parametrize("share", [0.0, 0.4, 1.0])
def test_vectors_of_a_pool_are_mixed(share):
    pool = LocalLeaves.of(some_leaves(90, 3), 1)
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((2, 90))
    pool.set_stacked("a", a)
    pool.set_stacked("b", b)
    pool.mix("a", "b", share)
    assert pool.stacked("a") == pytest.approx((1 - share) * a + share * b)
    assert np.array_equal(pool.stacked("b"), b)
    pool.copy("b", "c")
    pool.set_vector("b", 1, np.zeros(30))
    assert np.array_equal(pool.stacked("c"), b)
    assert not pool.vector("b", 1).any()
    assert not pool.stacked("unknown").any()


def test_tasks_run_on_chosen_leaves():
    pool = LocalLeaves.of(some_leaves(90, 3), 2)

    def task(leaf, w, number, *, n_jobs):
        return w + number, float(leaf.rows[0, 0])

    found = list(pool.map(task, lambda k: (k + 1.0,), read="x", write="y", leaves=[0, 2]))
    assert found == [leaf.rows[0, 0] for leaf in np.array(some_leaves(90, 3), object)[[0, 2]]]
    assert [float(pool.vector("y", k)[0]) for k in range(3)] == [1.0, 0.0, 3.0]


def test_machines_of_some_rows_and_of_all_rows():
    X = np.random.default_rng(0).random((20, 2))
    kernels = TessellatedKernels(1, 0.4).resolve(X)
    P = kernels.bind_resolved(X).cone.centre
    K = kernels.bind_resolved(X).gram(P)
    alone = bind_to_machines(kernels, X, [np.arange(20)])
    assert alone.gram(P) == pytest.approx(K)
    shared = bind_to_machines(kernels, X, [np.arange(20)] * 3)
    assert shared.n_samples == 60
    assert np.asarray(shared.gram(P)) == pytest.approx(K)
    w = np.random.default_rng(1).standard_normal(60)
    expected = sum(kernels.bind_resolved(X).gradient(own) for own in w.reshape(3, 20))
    assert shared.gradient(w) == pytest.approx(expected)
    some = [np.arange(20), np.arange(5, 20)]
    apart = bind_to_machines(kernels, X, some)
    assert [part.n_samples for part in apart.machines] == [20, 15]
    for part, own in zip(apart.machines, some, strict=True):
        assert part.gram(P) == pytest.approx(K[np.ix_(own, own)])


def test_a_run_that_is_stopped_within_the_passes_keeps_the_best():
    leaves = many_features(120, 3, n=70, C=0.1)
    result, pool = solved(leaves, tol=1e-6, settings=LeavesSettings(), max_iter=2)
    assert result.status is SolverStatus.MAX_ITER
    assert len(result.history) == 3
    again = stacked(leaves).certificate(result.parameter, pool.stacked(result.best))
    assert result.value == pytest.approx(again.upper, rel=1e-8)


def test_averages_of_passes_prove_a_bound_of_their_own():
    leaves = many_features(400, 4, n=70, C=0.02)
    bounds = []
    for averaged in (0.4, 1.0):  # with 1, the average is the vector of the last pass
        settings = LeavesSettings(averaged=averaged)
        result, _ = solved(leaves, tol=1e-6, settings=settings, max_iter=4)
        bounds.append(result.lower)
    assert bounds[0] > bounds[1]
