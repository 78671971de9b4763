"""The first pairs of a run with a time limit, and what is left when it ends in its first steps."""

from __future__ import annotations

import numpy as np
import pytest
from solvers.conftest import dual_of, make_problem, rows_of

from tessella.backend import OutOfTimeError
from tessella.kernels import KernelDictionary, SharedKernels, TessellatedKernels
from tessella.problems import SaddlePoint
from tessella.solvers import SolverStatus, fixed, run_solver, working_set
from tessella.solvers._plain import sample_sizes
from tessella.solvers._samples import sample_rows
from tessella.svm import DualProblem


def dictionary_problem(task="classification", m=90, n=3):
    X = rows_of(m, n)
    return SaddlePoint(KernelDictionary.standard().bind(X), dual_of(task, X))


def many_classes(k=10, per_class=6, n=3, *, dictionary):
    """A machine for each pair of classes."""
    rng = np.random.default_rng(0)
    code = np.repeat(np.arange(k), per_class)
    X = rng.random((len(code), n)) + 0.1 * code[:, None]
    pairs = [(a, b) for a in range(k) for b in range(a)]
    rows = [np.flatnonzero((code == a) | (code == b)) for a, b in pairs]
    duals = [
        DualProblem.classification(np.where(code[own] == a, 1.0, -1.0), 2.0)
        for own, (a, _) in zip(rows, pairs, strict=True)
    ]
    kernels = KernelDictionary.standard() if dictionary else TessellatedKernels(1, 0.3)
    bound = kernels.resolve(X).bind_machines(X, rows)
    return SaddlePoint(bound, DualProblem.stacked(duals))


def ridge(m=60, outputs=3):
    X = rows_of(m, 3)
    Y = np.random.default_rng(1).standard_normal((m, outputs)) + X[:, :1]
    kernels = TessellatedKernels(1, 0.3).bind(X)
    return SaddlePoint(SharedKernels(kernels, outputs), DualProblem.ridge(Y, np.full(m, 3.0)))


PROBLEMS = {
    "matrix": lambda: make_problem("classification", m=300, n=8),
    "regression": lambda: make_problem("regression", m=150, n=8),
    "dictionary": dictionary_problem,
    "many classes": lambda: many_classes(dictionary=False),
    "many classes, dictionary": lambda: many_classes(dictionary=True),
    "outputs": ridge,
}


def out_of_time(*_args, **_kwargs):
    raise OutOfTimeError


def stopped_at_once(name, problem, monkeypatch):
    """A run whose time is over when its solver begins."""
    from tessella.solvers import _run

    monkeypatch.setattr(_run.Run, "svm_at", out_of_time)
    monkeypatch.setattr(_run.Run, "record", out_of_time)
    monkeypatch.setattr(_run.Run, "record_point", out_of_time)
    return run_solver(name, problem, tol=1e-6, max_iter=50, time_limit=1e6)


@pytest.mark.parametrize("kind", PROBLEMS)
def test_a_run_that_ends_early_is_as_good_as_machines_with_a_fixed_kernel(kind, monkeypatch):
    problem = PROBLEMS[kind]()
    P = problem.kernels.plain_parameter
    plain = fixed(SaddlePoint(problem.kernels, problem.dual, fixed=P), tol=1e-4)
    result = stopped_at_once("auto", problem, monkeypatch)
    assert result.status is SolverStatus.TIME_LIMIT
    assert result.value <= plain.value * (1 + 2e-3)
    # The certificate is that of the pair, and its lower bound is one for the whole problem.
    again = problem.certificate(result.parameter, result.w)
    assert result.value == pytest.approx(again.upper, rel=1e-9)
    monkeypatch.undo()
    best = run_solver("auto", problem, tol=1e-4, max_iter=500)
    assert result.bound <= best.value
    assert result.value >= best.bound
    assert result.gap > 0.0


def test_without_a_time_limit_there_is_no_such_pair(monkeypatch):
    problem = make_problem("classification", m=100)
    monkeypatch.setattr("tessella.solvers._run.plain_machines", out_of_time)
    assert working_set(problem).status is SolverStatus.OPTIMAL
    assert working_set(problem, time_limit=1e6).status is SolverStatus.TIME_LIMIT


def test_out_of_time_before_any_pair_is_a_constant(monkeypatch):
    problem = dictionary_problem()
    monkeypatch.setattr("tessella.solvers._run.plain_machines", out_of_time)
    result = run_solver("auto", problem, tol=1e-3, max_iter=50, time_limit=1e6)
    assert result.status is SolverStatus.TIME_LIMIT
    assert not result.w.any()
    assert result.bound == 0.0
    assert result.value == pytest.approx(problem.certificate(result.parameter, result.w).upper)


def test_plain_parameters_are_feasible_and_cost_few_kernels():
    for make in PROBLEMS.values():
        problem = make()
        assert problem.cone.contains(problem.kernels.plain_parameter)
    weights = dictionary_problem().kernels.plain_parameter
    assert np.count_nonzero(weights) == 13
    X = rows_of(20, 3)
    single = KernelDictionary.standard().listed(3)[13:]  # on one feature each
    own = KernelDictionary(single).bind(X).plain_parameter
    np.testing.assert_allclose(own, np.full(39, 1 / 39))


def test_sizes_of_samples_grow_to_the_whole_problem():
    assert sample_sizes(100, 1) == [100]
    assert sample_sizes(500, 1) == [200, 500]
    assert sample_sizes(1000, 1) == [200, 600, 1000]
    assert sample_sizes(50000, 1) == [200, 600, 2000]
    assert sample_sizes(50000, 1, whole=True) == [200, 600, 1800, 5400, 16200, 50000]
    assert sample_sizes(9000, 45) == [540, 1620, 4860, 9000]
    assert sample_sizes(3000, 3, shared=True) == [600, 1800, 3000]


def listed_sizes(problem, monkeypatch, *, limit, machine, certificate):
    """Sizes of the samples of a run by a clock that only machines and certificates move."""
    from tessella.solvers import _plain, _run

    now, sizes = [0.0], []
    monkeypatch.setattr("time.monotonic", lambda: now[0])

    def solved(run, P, count):
        sizes.append(count)
        now[0] += machine * count
        return np.zeros(run.problem.dual.size)

    def keep(self, P, w):
        now[0] += certificate

    monkeypatch.setattr(_plain, "_solved", solved)
    monkeypatch.setattr(_run.Run, "keep_roughly", keep)
    run = _run.Run(
        *("test", problem), tol=1e-3, max_iter=9, time_limit=limit, n_jobs=1, callback=None
    )
    _plain.plain_machines(run)
    return sizes


def test_a_sample_is_begun_if_its_machines_and_a_certificate_fit(monkeypatch):
    problem = make_problem("classification", m=1000)
    for limit, expected in (
        (1.0, [200]),
        (4.0, [200]),
        (5.0, [200, 600]),
        (7.0, [200, 600, 1000]),
        (90.0, [200, 1000]),
    ):
        settings = {"limit": limit, "machine": 1e-3, "certificate": 1.0}
        assert listed_sizes(problem, monkeypatch, **settings) == expected


def test_the_samples_of_a_fixed_parameter_leave_the_whole_problem_to_the_solver(monkeypatch):
    learned = make_problem("classification", m=1000)
    problem = SaddlePoint(learned.kernels, learned.dual, learned.cone.centre)
    for limit, expected in ((4.0, [200]), (6.5, [200, 600]), (90.0, [200])):
        settings = {"limit": limit, "machine": 1e-3, "certificate": 1.0}
        assert listed_sizes(problem, monkeypatch, **settings) == expected


def test_the_machines_of_a_dictionary_have_samples_of_all_sizes(monkeypatch):
    """The first step of a solver is a pass over all kernels, far longer than a machine."""
    problem = dictionary_problem(m=2500, n=1)
    settings = {"limit": 1e6, "machine": 1e-9, "certificate": 0.0}
    assert listed_sizes(problem, monkeypatch, **settings)[-1] == 2500
    problem = make_problem("classification", m=2500)
    assert listed_sizes(problem, monkeypatch, **settings)[-1] == 2000


def test_a_dictionary_leaves_less_time_to_the_solver(monkeypatch):
    """After 200 rows, 2.3 seconds are left, and 600 rows are expected to take 1.8."""
    settings = {"limit": 2.5, "machine": 1e-3, "certificate": 0.0}
    problem = dictionary_problem(m=600, n=1)
    assert listed_sizes(problem, monkeypatch, **settings) == [200, 600]
    problem = make_problem("classification", m=600)
    assert listed_sizes(problem, monkeypatch, **settings) == [200]


def test_samples_of_machines_on_the_same_rows_are_the_same():
    problem = ridge(m=60, outputs=3)
    rows = sample_rows(problem.kernels, problem.dual, 30)
    assert len(rows) == 30
    np.testing.assert_array_equal(rows[:10] + 60, rows[10:20])
    assert problem.kernels.subset(rows).n_samples == 30


def test_samples_of_many_machines_end():
    """Each machine keeps samples of both classes, so that samples cannot shrink for ever."""
    problem = many_classes(dictionary=True)
    result = working_set(problem, tol=1e-2)
    assert result.status is SolverStatus.OPTIMAL
    assert result.gap <= 1e-2
