"""Any order of fits, warm starts, interruptions, files and failures gives true certificates.

Two fits of one problem prove bounds of the same optimum, however they were started: the value of
one is never below the bound of the other. Whatever a machine has done to a model before, a cold fit
of the same problem therefore has to agree with it.
"""

import tempfile
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import tessella
from tessella import (
    KernelPathCV,
    LearnedKernelRidge,
    LearnedKernelSVC,
    LearnedKernelSVR,
    MultipleKernelSVC,
    TessellatedKernels,
)
from tessella.kernels import Gaussian, Polynomial

RNG = np.random.default_rng(0)
X = RNG.random((28, 2))
TARGET = np.sin(5 * X[:, 0]) + X[:, 1] + 0.2 * RNG.standard_normal(28)
SIGN = np.where(np.median(TARGET) < TARGET, 1, -1)
THREE = np.digitize(TARGET, np.quantile(TARGET, [0.3, 0.7]))
FEW = (Gaussian(0.5), Gaussian(2.0), Polynomial(2))
ESTIMATORS = {
    "classifier": (LearnedKernelSVC(), SIGN),
    "several classes": (LearnedKernelSVC(), THREE),
    "separate": (LearnedKernelSVC(multi_class="separate"), THREE),
    "regressor": (LearnedKernelSVR(epsilon=0.1), TARGET),
    "ridge": (LearnedKernelRidge(), TARGET),
    "weights": (MultipleKernelSVC(kernels=FEW), SIGN),
}
SMALL = settings(
    derandomize=True,
    max_examples=8,
    stateful_step_count=6,
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
)
NAMES = st.sampled_from(sorted(ESTIMATORS))
WEIGHTS = st.sampled_from([0.1, 1.0, 10.0, 1000.0])
TOLERANCES = st.sampled_from([1e-2, 1e-4, 1e-6])
ROUNDING = 1e-9


def quietly(model, y, **others):
    """Fit without warnings about gaps, of which these tests make many."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X[: len(y)], y, **others)


def agree(one, other):
    """Assert that two models prove bounds of the same optimum."""
    slack = ROUNDING * max(abs(one.objective_), abs(other.objective_))
    assert one.objective_ >= other.lower_bound_ - slack
    assert other.objective_ >= one.lower_bound_ - slack


def is_sound(model):
    """Assert that a model's claims do not contradict each other."""
    assert model.gap_ == pytest.approx(
        max(0.0, model.objective_ - model.lower_bound_) / abs(model.objective_), abs=1e-12
    )
    assert (model.status_ == "optimal") <= (model.gap_ <= model.tol)
    assert np.isfinite(model.predict(X)).all()


class WarmStarts(RuleBasedStateMachine):
    """One estimator with warm_start through changes of everything, failures and files."""

    def __init__(self):
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.weight = None

    def teardown(self):
        self.folder.cleanup()

    @initialize(name=NAMES)
    def begin(self, name):
        model, self.y = ESTIMATORS[name]
        self.model = clone(model).set_params(warm_start=True, n_jobs=1)
        self.fit()

    def fit(self):
        quietly(self.model, self.y, sample_weight=self.weight)
        self.cold = quietly(
            clone(self.model).set_params(warm_start=False, max_iter=1000),
            self.y,
            sample_weight=self.weight,
        )

    @rule(C=WEIGHTS, tol=TOLERANCES)
    def change_parameters(self, C, tol):
        self.model.set_params(C=C, tol=tol)
        self.fit()

    @rule(seed=st.integers(0, 3))
    def change_weights(self, seed):
        rng = np.random.default_rng(seed)
        self.weight = None if seed == 0 else rng.integers(1, 4, len(self.y)).astype(float)
        self.fit()

    @rule(steps=st.integers(0, 2))
    def stop_early(self, steps):
        self.model.set_params(max_iter=steps)
        self.fit()
        self.model.set_params(max_iter=1000)

    @precondition(lambda self: not hasattr(self.model, "weighting"))
    @rule(degree=st.integers(0, 1))
    def change_the_kernels(self, degree):
        self.model.set_params(kernels=TessellatedKernels(degree=degree, floor=0.1))
        self.fit()

    @rule()
    def fail(self):
        before, scores = dict(vars(self.model)), self.model.predict(X)
        with pytest.raises(ValueError, match="NaN"):
            self.model.fit(np.full_like(X, np.nan), self.y)
        assert vars(self.model).keys() == before.keys()
        assert (self.model.predict(X) == scores).all()

    @rule()
    def save_and_load(self):
        path = Path(self.folder.name) / "model.tsl"
        tessella.save(self.model, path)
        again = tessella.load(path)
        assert (again.predict(X) == self.model.predict(X)).all()
        self.model = again
        self.fit()

    @invariant()
    def bounds_agree(self):
        if hasattr(self, "cold"):
            is_sound(self.model)
            agree(self.model, self.cold)


class Checkpoints(RuleBasedStateMachine):
    """One fit in pieces, with other solvers, tolerances and limits for each piece."""

    def __init__(self):
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "fit.ckpt"
        self.records = 0

    def teardown(self):
        self.folder.cleanup()

    @initialize(name=st.sampled_from(["classifier", "several classes", "regressor", "ridge"]))
    def begin(self, name):
        model, self.y = ESTIMATORS[name]
        self.plain = clone(model).set_params(C=10.0, n_jobs=1, tol=1e-6)
        self.cold = quietly(clone(self.plain), self.y)
        self.best, self.proved = np.inf, -np.inf

    def go_on(self, order=None, **params):
        model = clone(self.plain).set_params(checkpoint=self.path, **params)
        rows = np.arange(len(X)) if order is None else order
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(X[rows], self.y[rows])
        slack = ROUNDING * abs(model.objective_)
        assert model.objective_ <= self.best + slack
        assert model.lower_bound_ >= self.proved - slack
        assert len(model.history_) > self.records
        self.best, self.proved = model.objective_, model.lower_bound_
        self.records = len(model.history_)
        is_sound(model)
        agree(model, self.cold)
        assert [own.name for own in Path(self.folder.name).iterdir()] == [self.path.name]

    @rule(steps=st.integers(0, 3))
    def some_steps(self, steps):
        self.go_on(max_iter=steps)

    @rule(solver=st.sampled_from(["joint", "frank-wolfe", "hybrid"]))
    def another_solver(self, solver):
        self.go_on(max_iter=3, solver=solver)

    @rule(seed=st.integers(0, 5))
    def another_order_of_the_rows(self, seed):
        self.go_on(order=np.random.default_rng(seed).permutation(len(X)), max_iter=2)

    @rule(tol=TOLERANCES)
    def to_the_end(self, tol):
        self.go_on(tol=tol)

    @precondition(lambda self: self.path.exists())
    @rule(place=st.floats(0.0, 0.999))
    def a_damaged_file(self, place):
        whole = self.path.read_bytes()
        self.path.write_bytes(whole[: int(place * len(whole))])
        with pytest.raises(ValueError, match="Delete it or give another path"):
            clone(self.plain).set_params(checkpoint=self.path).fit(X, self.y)
        self.path.write_bytes(whole)


class Searches(RuleBasedStateMachine):
    """Searches over C, whose best model is certified on all rows like any other."""

    @initialize(name=st.sampled_from(["classifier", "regressor", "ridge", "weights"]))
    def begin(self, name):
        model, self.y = ESTIMATORS[name]
        self.search = KernelPathCV(clone(model).set_params(n_jobs=1), cv=2)

    @rule(
        grid=st.lists(WEIGHTS, min_size=1, max_size=3, unique=True),
        eliminate=st.booleans(),
    )
    def search_again(self, grid, eliminate):
        self.search.set_params(param_grid={"C": grid}, eliminate=eliminate)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            self.search.fit(X, self.y)
        best = self.search.best_estimator_
        assert self.search.best_params_["C"] == best.C
        assert best.C in grid
        is_sound(best)
        agree(best, quietly(clone(best), self.y))
        scores = np.asarray(self.search.cv_results_["mean_test_score"])
        assert self.search.best_score_ == np.nanmax(scores)

    @precondition(lambda self: hasattr(self.search, "best_estimator_"))
    @rule()
    def a_search_that_fails_leaves_the_last_one(self):
        before = self.search.predict(X)
        with pytest.raises(ValueError, match="NaN"):
            self.search.fit(np.full_like(X, np.nan), self.y)
        assert (self.search.predict(X) == before).all()


TestWarmStarts = WarmStarts.TestCase
TestCheckpoints = Checkpoints.TestCase
TestSearches = Searches.TestCase
TestWarmStarts.settings = TestCheckpoints.settings = TestSearches.settings = SMALL
