"""Several machines of wide rows, which are solved together with a matrix that mixes them."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from tessella.kernels import TessellatedKernels
from tessella.problems import SaddlePoint
from tessella.solvers import Run, SolverStatus, StopRun, WorkingSetSettings, working_set
from tessella.solvers._mixed_machines import MixedMachines, mixed_start
from tessella.svm import DualProblem


def wide_classes(m: int, n: int, classes: int = 3, C: float = 1.0) -> SaddlePoint:
    rng = np.random.default_rng(2)
    X = rng.random((m, n))
    score = X[:, 0] + X[:, 1] + 0.3 * rng.standard_normal(m)
    y = np.digitize(score, np.quantile(score, np.linspace(0, 1, classes + 1)[1:-1]))
    rows = [np.flatnonzero((y == a) | (y == b)) for a, b in combinations(range(classes), 2)]
    signs = [np.where(y[own] == y[own].min(), 1.0, -1.0) for own in rows]
    duals = [DualProblem.classification(own, C) for own in signs]
    kernels = TessellatedKernels(1, 0.3).bind_machines(X, rows)
    return SaddlePoint(kernels, DualProblem.stacked(duals))


@pytest.fixture(scope="module")
def mixed() -> MixedMachines:
    problem = wide_classes(24, 30)
    rows = problem.kernels.common_rows()
    K = rows.kernels.gram(problem.cone.degree * problem.cone.centre)
    return MixedMachines(problem.dual, K, rows.index)


def random_matrix(seed: int) -> np.ndarray:
    root = np.random.default_rng(seed).standard_normal((3, 3))
    return root @ root.T / np.sum(root * root)


def value_of(mixed: MixedMachines, w: np.ndarray, M: np.ndarray) -> float:
    """½ Σ_kl M_kl w_kᵀ K w_l, entry by entry."""
    index, own = mixed._index, mixed.dual.machine_of
    f = range(len(w))
    terms = (M[own[i], own[j]] * mixed._K[index[i], index[j]] * w[i] * w[j] for i in f for j in f)
    return 0.5 * sum(terms)


def test_scores_and_gradient_are_the_derivatives_of_the_definition(mixed):
    rng = np.random.default_rng(0)
    M = random_matrix(1)
    w = rng.standard_normal(mixed.dual.size)
    here = mixed.linearise(w, M, M)
    step = 1e-6
    for i in rng.permutation(len(w))[:6]:
        change = step * (np.arange(len(w)) == i)
        slope = (value_of(mixed, w + change, M) - value_of(mixed, w - change, M)) / (2 * step)
        assert here.scores[i] == pytest.approx(slope, rel=1e-6)
    assert value_of(mixed, w, M) == pytest.approx(float(np.sum(here.half_gradient * M)))
    np.testing.assert_allclose(here.K @ w, here.scores, rtol=1e-10)
    np.testing.assert_allclose(here.sensitivities.apply(M), here.scores, rtol=1e-10)
    other = random_matrix(2)
    expected = mixed.linearise(w, other, other).scores
    np.testing.assert_allclose(here.sensitivities.apply(other), expected, rtol=1e-10)


@pytest.mark.parametrize("classes", [3, 4])
def test_the_first_pair_is_nearly_optimal(classes):
    """The reference is the optimum that rounds within faces find, to a far smaller gap."""
    problem = wide_classes(40, 60, classes)
    rounds = WorkingSetSettings(most_mixed=0)
    optimum = working_set(problem, tol=1e-6, settings=rounds)
    assert optimum.status is SolverStatus.OPTIMAL
    run = Run("test", problem, tol=1e-9, max_iter=9, time_limit=None, n_jobs=1, callback=None)
    P, point = mixed_start(run, None)
    assert problem.has_unit_trace(P)
    certificate = problem.certificate(P, run.svm_at(P, point.w, 1e-8).w)
    assert point.lower <= optimum.value
    assert point.lower >= (1 - 1e-3) * optimum.value
    assert optimum.bound <= certificate.upper <= (1 + 1e-3) * optimum.value
    answer = working_set(problem, tol=1e-6)
    assert answer.status is SolverStatus.OPTIMAL
    assert answer.value == pytest.approx(optimum.value, rel=2e-6)


def test_a_fit_of_wide_classes_needs_no_rounds():
    problem = wide_classes(90, 400, 4)
    answer = working_set(problem, tol=1e-3)
    assert answer.gap <= 1e-3
    assert len(answer.history) == 1
    assert np.linalg.matrix_rank(answer.parameter, tol=1e-6) <= 6


def test_a_run_without_time_ends():
    problem = wide_classes(40, 60)
    run = Run("test", problem, tol=1e-9, max_iter=9, time_limit=0.0, n_jobs=1, callback=None)
    with pytest.raises(StopRun):
        mixed_start(run, None)
