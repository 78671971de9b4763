"""Exceptions of signal handlers: Ctrl-C keeps the best model, everything else is passed on."""

from __future__ import annotations

import os

import numpy as np
import pytest
from reference.processes import needs_timer, output_of

from tessella import LearnedKernelSVC
from tessella.svm import DualStatus, solve_dual

# Fits that would take a minute; a lost signal ends in a model.
LONG_FITS = """
import signal, sys, warnings
import numpy as np
from tessella import LearnedKernelSVC, LearnedKernelSVR, MultipleKernelSVC, TessellaClassifier
from tessella.svm import DualProblem, DualSettings, solve_dual

warnings.simplefilter("ignore")
rng = np.random.default_rng(0)
X = rng.random((800, 4))
target = np.sin(5 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.3 * rng.standard_normal(800)
sign = np.where(target > np.median(target), 1.0, -1.0)
LONG = {"C": 1e5, "tol": 1e-13, "time_limit": 60.0}

def dual():
    K = np.exp(-0.01 * ((X[:, None] - X[None]) ** 2).sum(axis=2))
    settings = DualSettings(min_pair_steps=10**12)
    return solve_dual(
        K, DualProblem.regression(target, 1e6, 0.0), tol=0.0, time_limit=60.0, settings=settings
    )

FITS = {
    "dual": dual,
    "svc": lambda: LearnedKernelSVC(**LONG).fit(X, sign),
    "svr": lambda: LearnedKernelSVR(**LONG).fit(X, target),
    "paper": lambda: LearnedKernelSVC(solver="frank-wolfe", **LONG).fit(X, sign),
    "several": lambda: MultipleKernelSVC(**LONG).fit(X, sign),
    "automatic": lambda: TessellaClassifier(effort="high", n_jobs=1).fit(X, sign),
}
fit = FITS[sys.argv[1]]
"""


@needs_timer
@pytest.mark.parametrize("name", ["dual", "svc", "svr", "paper", "several", "automatic"])
def test_an_exception_of_a_signal_handler_is_passed_on(name):
    program = """
class Alarm(BaseException):
    pass

def ring(*_):
    rung.append(kind)
    raise kind("of the handler")

caught = set()
signal.signal(signal.SIGALRM, ring)
for kind in (TimeoutError, ValueError, Alarm):
    for delay in (0.03, 0.3, 1.0):
        rung = []
        signal.setitimer(signal.ITIMER_REAL, delay)
        try:
            answer = fit()
            signal.setitimer(signal.ITIMER_REAL, 0.0)
        except kind as error:
            assert type(error) is kind and error.args == ("of the handler",), error
            caught.add(kind)
        else:
            assert not rung, f"{kind.__name__} after {delay} seconds is lost: {answer!r}"
print(len(caught))
"""
    assert output_of(LONG_FITS + program, name).strip() == "3"


@needs_timer
@pytest.mark.parametrize("name", ["svc", "svr", "several"])
def test_ctrl_c_keeps_the_best_model(name):
    """Nothing before there is a model with a certificate, and the best of them afterwards."""
    program = """
signal.signal(signal.SIGALRM, signal.default_int_handler)
delay = 0.02
while True:
    signal.setitimer(signal.ITIMER_REAL, delay)
    try:
        model = fit()
    except KeyboardInterrupt:
        delay *= 1.5
        continue
    break
print(model.status_)
assert 0.0 <= model.gap_ < 1.0
assert np.isfinite(model.predict(X)).all()
"""
    assert output_of(LONG_FITS + program, name).strip() == "interrupted"


def test_a_caller_without_use_for_half_a_solution(monkeypatch):
    """Leave-one-out predictions and automatic models do not take it for a solution."""
    from svm.work import make_problem

    K, dual = make_problem("classification", m=40)
    solution = solve_dual(K, dual)
    assert solution.unless_interrupted() is solution

    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("tessella.svm._dual._DualSolver.alternate", interrupt)
    stopped = solve_dual(K, dual)
    assert stopped.status is DualStatus.INTERRUPTED
    with pytest.raises(KeyboardInterrupt):
        stopped.unless_interrupted()


@pytest.mark.parametrize("error", [TimeoutError("of a handler"), OSError("of a handler")])
def test_an_exception_while_a_checkpoint_is_written(monkeypatch, tmp_path, error):
    """What the system refuses is a warning; what a signal handler raises is not of the system."""
    rng = np.random.default_rng(0)
    X, y = rng.random((60, 3)), rng.integers(0, 2, 60)

    def replace(*_):
        raise error

    monkeypatch.setattr(os, "replace", replace)
    with pytest.raises(type(error), match="of a handler"):
        LearnedKernelSVC(checkpoint=tmp_path / "checkpoint").fit(X, y)
