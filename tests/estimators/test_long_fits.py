"""Fits that end early: the best certified model is kept, nothing is lost, and the next goes on."""

import os
import signal
import subprocess
import sys
import threading
import time
import warnings

import numpy as np
import pytest
from estimators.conftest import RIDGE, raw_scores, with_solver
from sklearn.base import clone
from sklearn.datasets import make_circles
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from tessella import LearnedKernelSVC, LearnedKernelSVR
from tessella.kernels import KernelSum, TessellatedKernels
from tessella.problems import SaddlePoint
from tessella.solvers import Monitor, SolverStatus, choose_solver
from tessella.svm import DualProblem, solve_dual

SOLVERS = ["working-set", "joint", "frank-wolfe", "apd", "hybrid"]


def stop_at(iteration, error):
    def callback(record):
        if record.iteration == iteration:
            raise error("mine")

    return callback


class Stopper(Monitor):
    def record(self, record, answer):
        return SolverStatus.CALLBACK if record.iteration == 2 else None


# Ways to end a fit before its time: parameters, callback, and the status that tells it.
ENDS = {
    "max_iter": ({"max_iter": 2}, None, "iteration limit"),
    "Ctrl-C": ({}, stop_at(2, KeyboardInterrupt), "interrupted"),
    "memory": ({}, stop_at(2, MemoryError), "out of memory"),
    "callback": ({}, Stopper(), "stopped by a callback"),
}


def cut_short(model, X, y, end):
    params, callback, status = ENDS[end]
    model = clone(model).set_params(tol=1e-11, **params)
    with pytest.warns(ConvergenceWarning, match=rf"\({status}\).*certified relative gap of"):
        model._fit(X, y, callback=callback)
    assert model.status_ == status
    return model


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("solver", ["working-set", "joint"])
def test_every_end_keeps_a_certified_model(every_case, end, solver):
    model, X, y = every_case
    model = cut_short(with_solver(model, solver), X, y, end)
    assert model.lower_bound_ < model.objective_ < np.inf
    assert model.gap_ == pytest.approx(1 - model.lower_bound_ / model.objective_)
    assert np.isfinite(raw_scores(model, X)).all()
    assert model.history_[-1].value >= model.objective_ * (1 - 1e-9)


def test_time_limit_keeps_a_certified_model(every_case, monkeypatch):
    model, X, y = every_case
    clock = iter(range(10**6))
    monkeypatch.setattr(time, "monotonic", lambda: float(next(clock)))
    solver = "frank-wolfe" if "solver" in model.get_params() else "auto"
    # Machines of linear systems read the clock less often, and loops over many kernels more often.
    params = model.get_params()
    several = isinstance(params.get("kernels"), KernelSum) or "weighting" in params
    limit = 25.0 if isinstance(model, RIDGE) else 120.0 if several else 30.0
    model = with_solver(model, solver).set_params(tol=1e-12, time_limit=limit)
    with pytest.warns(ConvergenceWarning, match=r"\(time limit\).*Raise time_limit"):
        model.fit(X, y)
    assert 1 < len(model.history_) < 40
    assert np.isfinite(raw_scores(model, X)).all()


def test_the_limit_covers_what_comes_before_the_solver(circles, monkeypatch):
    """The estimate of the noise alone takes the whole time of this fit."""
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])

    def noise_level(*_):
        now[0] += 100.0
        return 0.1

    monkeypatch.setattr("tessella.estimators._regressor.noise_level", noise_level)
    X, y = circles
    model = LearnedKernelSVR(tol=1e-9, time_limit=99.0)
    with pytest.warns(ConvergenceWarning, match="time limit"):
        model.fit(X, y)
    assert len(model.history_) == 1
    assert LearnedKernelSVR(time_limit=101.0).fit(X, y).status_ == "optimal"


def test_out_of_time_before_the_first_record_still_leaves_a_record(circles):
    model = LearnedKernelSVC(solver="working-set", tol=1e-9, time_limit=1e-9)
    with pytest.warns(ConvergenceWarning, match="time limit"):
        model.fit(*circles)
    assert len(model.history_) == 1
    assert model.history_[0].gap == model.gap_


RESUMED = [(s, e) for s in SOLVERS for e in ENDS if s == "working-set" or e == "Ctrl-C"]


@pytest.mark.parametrize(("solver", "end"), RESUMED)
def test_warm_start_resumes_after_every_end(every_case, end, solver):
    model, X, y = every_case
    model = cut_short(with_solver(model, solver).set_params(warm_start=True), X, y, end)
    reached, gap = model.history_[-1], model.gap_
    model.set_params(tol=1e-3, max_iter=1000).fit(X, y)
    assert model.status_ == "optimal"
    assert model.gap_ <= 1e-3
    # What was proved is never lost, neither the value nor the bound.
    assert model.history_[0].gap <= gap * (1 + 1e-6) + 1e-12
    assert model.history_[0].value <= reached.value * (1 + 1e-9)
    assert model.history_[0].bound >= reached.bound - 1e-9 * abs(reached.bound)


def test_warm_start_without_iterations_gives_the_same_model(every_case):
    model, X, y = every_case
    model = cut_short(clone(model).set_params(warm_start=True), X, y, "Ctrl-C")
    expected, gap = raw_scores(model, X), model.gap_
    model.set_params(max_iter=0)
    with pytest.warns(ConvergenceWarning, match="iteration limit"):
        model.fit(X, y)
    np.testing.assert_allclose(raw_scores(model, X), expected, rtol=1e-9, atol=1e-9)
    assert model.gap_ == pytest.approx(gap, rel=1e-6)


class InterruptedInTheFirstSvm(Monitor):
    def phase(self, text):
        if text.startswith("SVM 1 "):
            raise KeyboardInterrupt


def test_a_resumed_fit_that_is_interrupted_at_once_keeps_what_it_had(case):
    model, X, y = case
    solver = "frank-wolfe" if isinstance(model, RIDGE) else "working-set"
    model = cut_short(clone(model).set_params(warm_start=True, solver=solver), X, y, "Ctrl-C")
    gap = model.gap_
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        model._fit(X, y, callback=InterruptedInTheFirstSvm())
    assert model.gap_ <= gap * (1 + 1e-6)
    assert model.history_[-1].n_svm == 0


def interrupted(*args, **kwargs):
    raise KeyboardInterrupt


# ---- nothing lost of an earlier fit


def other_data(n_features=4):
    rng = np.random.default_rng(5)
    X = rng.random((60, n_features))
    return X, (X[:, 0] > 0.5).astype(int)


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError, RuntimeError])
@pytest.mark.parametrize("where", ["resolve", "first answer"])
def test_an_end_before_any_answer_keeps_the_earlier_fit(every_case, error, where, monkeypatch):
    model, X, y = every_case
    model = clone(model).fit(X, y)
    before, expected = dict(vars(model)), raw_scores(model, X)

    def fail(*args, **kwargs):
        raise error

    if where == "resolve":
        monkeypatch.setattr(type(model._kernel_set()), "resolve", fail)
    else:
        monkeypatch.setattr(SaddlePoint, "at", fail)
    with pytest.raises(error):
        model.fit(*other_data())
    monkeypatch.undo()
    assert vars(model) == before
    assert (raw_scores(model, X) == expected).all()


@pytest.mark.parametrize("error", [RuntimeError, SystemExit])
def test_a_callback_that_raises_is_heard_and_costs_nothing(every_case, error):
    model, X, y = every_case
    model = clone(model).fit(X, y)
    before = dict(vars(model))
    with pytest.raises(error, match="mine"):
        model._fit(*other_data(), callback=stop_at(1, error))
    assert vars(model) == before


def test_an_unfitted_estimator_stays_unfitted(every_case, monkeypatch):
    model, X, y = every_case
    model = clone(model)
    monkeypatch.setattr(type(model._kernel_set()), "resolve", interrupted)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    assert not hasattr(model, "n_features_in_")
    with pytest.raises(NotFittedError):
        model.predict(X)


def test_a_warning_made_an_error_does_not_cost_the_model(every_case):
    model, X, y = every_case
    model = clone(model).set_params(max_iter=1, tol=1e-9)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ConvergenceWarning):
            model.fit(X, y)
    assert np.isfinite(raw_scores(model, X)).all()


@pytest.mark.skipif(sys.platform == "win32", reason="signals to oneself are different there")
def test_ctrl_c_inside_the_solver_of_the_machines():
    """Another thread sends signals until one arrives while the second SVM is being solved."""
    X, y = make_circles(1500, noise=0.3, factor=0.6, random_state=0)
    begun, arrived = threading.Event(), threading.Event()

    class SecondSvm(Monitor):
        def phase(self, text):
            if text.startswith("SVM 2 "):
                begun.set()

    def handler(number, frame):
        while frame is not None and frame.f_code is not solve_dual.__code__:
            frame = frame.f_back
        if begun.is_set() and not arrived.is_set() and frame is not None:
            arrived.set()
            raise KeyboardInterrupt

    def send():
        begun.wait(60)
        while not arrived.wait(0.01):
            os.kill(os.getpid(), signal.SIGINT)

    before = signal.signal(signal.SIGINT, handler)
    sender = threading.Thread(target=send)
    sender.start()
    try:
        model = LearnedKernelSVC(C=1000.0, tol=1e-13, solver="frank-wolfe")
        with pytest.warns(ConvergenceWarning, match="interrupted"):
            model._fit(X, y, callback=SecondSvm())
    finally:
        begun.set()
        arrived.set()
        sender.join()
        signal.signal(signal.SIGINT, before)
    assert model.status_ == "interrupted"
    assert 0 < model.gap_ < np.inf


# ---- watching


def test_phases_are_told_before_they_begin():
    X, y = make_circles(1200, noise=0.2, factor=0.5, random_state=0)

    class Listener(Monitor):
        def __init__(self):
            self.heard = []

        def phase(self, text):
            self.heard.append(text)

        def record(self, record, answer):
            self.heard.append(record.iteration)

    listener = Listener()
    LearnedKernelSVC(tol=1e-6)._fit(X, y, callback=listener)
    assert listener.heard[:3] == ["first kernel from 200 rows", "SVM 1 on 1200 rows", 0]
    assert any(str(text).startswith("joint step on") for text in listener.heard)


def test_an_answer_can_be_had_at_every_record(circles):
    X, y = circles
    answers = []

    class Listener(Monitor):
        def record(self, record, answer):
            answers.append((record, answer()))

    LearnedKernelSVC(solver="working-set", tol=1e-6)._fit(X, y, callback=Listener())
    for record, answer in answers:
        assert answer.value == record.value
        assert answer.gap == record.gap
        assert answer.history[-1] == record


@pytest.mark.parametrize("solver", SOLVERS)
def test_the_bound_is_that_of_the_vector_said_to_prove_it(circles, solver):
    X, y = circles
    unit = (X - X.min(axis=0)) / np.ptp(X, axis=0)
    dual = DualProblem.classification(np.where(y == 1, 1.0, -1.0), 10.0)
    problem = SaddlePoint(TessellatedKernels().bind(unit), dual)
    result = choose_solver(solver, problem)(
        problem,
        tol=1e-3,
        max_iter=1000,
        time_limit=None,
        parameter0=None,
        w0=None,
        n_jobs=None,
        callback=None,
    )
    assert problem.at(result.w_bound).lower == pytest.approx(result.bound, rel=1e-12)


def test_no_iterations_after_an_optimal_fit(circles):
    X, y = circles
    model = LearnedKernelSVC(warm_start=True).fit(X, y)
    model.set_params(max_iter=0).fit(X, y)
    assert model.status_ == "optimal"
    assert model.n_iter_ == 0


def test_without_scikit_learns_callbacks():
    """As with scikit-learn before 1.9: everything works but set_callbacks."""
    program = (
        "import sys; sys.modules['sklearn.callback'] = None\n"
        "import numpy as np, tessella\n"
        "X = np.random.default_rng(0).random((40, 2)); y = X[:, 0] > X[:, 1]\n"
        "model = tessella.LearnedKernelSVC().fit(X, y)\n"
        "assert not hasattr(model, 'set_callbacks')\n"
        "assert model.gap_ <= model.tol\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_bad_parameters_are_named(circles):
    bad = {
        "validation_fraction": [0.0, 1.0, -1, "a", np.nan],
        "n_iter_no_change": [0, 1.5, True],
        "checkpoint": [3, "missing/folder/file", "."],
    }
    for name, values in bad.items():
        for value in values:
            with pytest.raises(ValueError, match=name):
                LearnedKernelSVR(**{name: value}).fit(*circles)
