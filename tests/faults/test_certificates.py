"""A number that is not finite is never a certificate, and a certificate is what a model attains."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from tessella import (
    KernelDictionary,
    LearnedKernelRidge,
    LearnedKernelSVC,
    LearnedKernelSVR,
    MultipleKernelSVC,
    MultipleKernelSVR,
)
from tessella.cones import PSD, Nonnegative
from tessella.kernels import FiniteKernelSet, Gaussian, PolynomialKernels
from tessella.problems import SaddlePoint
from tessella.solvers import Run, SolverStatus, fixed, frank_wolfe, run_solver
from tessella.svm import DualProblem, relative_gap, solve_dual

WEIGHTINGS = ("learned", "simple", "average", "alignment", "performance")
NOT_FINITE = (np.nan, np.inf, -np.inf)


def data(m=30, n=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.random((m, n))
    y = np.sin(5 * X[:, 0]) + X[:, 1] + 0.1 * rng.standard_normal(m)
    return X, y, (y > np.median(y)).astype(int)


# ------------------------------------------------------------------------------------------ gaps


@pytest.mark.parametrize("other", [1.0, 0.0, np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("value", NOT_FINITE)
def test_a_bound_that_is_not_finite_proves_nothing(value, other):
    assert relative_gap(value, other) == np.inf
    assert relative_gap(other, value) == np.inf


@pytest.mark.parametrize(
    ("upper", "lower", "gap"),
    [
        (4.0, 3.0, 0.25),
        (-4.0, -5.0, 0.25),
        (3.0, 3.0, 0.0),
        (0.0, 0.0, 0.0),
        (1.0, 1.0 + 1e-14, 0.0),  # rounding
        (1.0, 1.5, 0.5),  # a contradiction
        (1e286, 1e300, 1e14),
        (0.0, -1e-300, np.inf),
        (3e-319, 0.0, 1.0),  # below the smallest normal number
        (1e308, -1e308, np.inf),
    ],
)
def test_gaps_of_finite_bounds(upper, lower, gap):
    assert relative_gap(upper, lower) == pytest.approx(gap, rel=1e-9)


@pytest.mark.parametrize("cone", [PSD(3), Nonnegative(3)], ids=str)
def test_the_support_function_keeps_a_nan(cone):
    identity = cone.identity
    spectrum = cone.spectrum(identity)
    spectrum.values[...] = np.nan
    assert np.isnan(cone.support(spectrum))


# -------------------------------------------------------------------------- kernels with a NaN


def gaussian_with(value, where):
    """Return a function that is a Gaussian kernel but for some pairs of rows."""

    def kernel(A, B):
        squares = ((A[:, None] - B[None]) ** 2).sum(axis=2)
        return np.where(where(squares), value, np.exp(-squares))

    return kernel


def _far(squares):
    return squares > 3.0


@pytest.mark.parametrize("value", NOT_FINITE)
@pytest.mark.parametrize("weighting", WEIGHTINGS)
@pytest.mark.parametrize("estimator", [MultipleKernelSVC, MultipleKernelSVR])
def test_a_kernel_with_a_nan_off_the_diagonal_is_an_error(estimator, weighting, value):
    X, y, labels = data()
    kernels = [gaussian_with(value, _far), Gaussian(1.0)]
    target = labels if estimator is MultipleKernelSVC else y
    with pytest.raises(ValueError, match="gave a NaN or an infinity"):
        estimator(kernels=kernels, weighting=weighting).fit(X, target)


def test_a_single_pair_of_many_rows_is_enough():
    """More rows than are checked beforehand, of which one pair has a NaN."""
    X, _, labels = data(500)

    def kernel(A, B):
        K = np.exp(-((A[:, None] - B[None]) ** 2).sum(axis=2))
        (a,), (b,) = (np.nonzero(np.isclose(rows, HOLE).all(axis=1)) for rows in (A, B))
        if len(a) and len(B) > 1:
            K[a[0], (b[0] + 1) % len(B) if len(b) else 0] = np.nan
        return K

    HOLE = X[7]
    dictionary = KernelDictionary([kernel, Gaussian(1.0)], standardise=False)
    with pytest.raises(ValueError, match="gave a NaN or an infinity"):
        MultipleKernelSVC(kernels=dictionary).fit(X, labels)


def test_a_kernel_with_a_nan_for_new_rows_is_an_error_of_the_prediction():
    X, _, labels = data()
    model = MultipleKernelSVC(kernels=[gaussian_with(np.nan, lambda squares: squares > 1e3)])
    model.fit(X, labels)
    with pytest.raises(ValueError, match="gave a NaN or an infinity"):
        model.predict(X + 1e4)


@pytest.mark.parametrize("estimator", [LearnedKernelSVC, LearnedKernelSVR, LearnedKernelRidge])
def test_a_kernel_set_of_a_user_with_a_nan_is_an_error(estimator):
    class Broken(FiniteKernelSet):
        def count_params(self, n_features):
            return n_features

        def count_nodes(self, n_features):
            return 1

        def features(self, X):
            return np.where(X.max() == X, np.nan, X)[:, None, :]

    X, y, labels = data()
    with pytest.raises(ValueError, match="values of nan"):
        estimator(kernels=Broken()).fit(X, labels if estimator is LearnedKernelSVC else y)


def bound_with_nan():
    """A polynomial kernel set on rows of which one has a coordinate that overflows its powers."""
    X, _, labels = data(12)
    X[3, 0] = 1e200
    return PolynomialKernels(2).bind(X), DualProblem.classification(2.0 * labels - 1.0, C=1.0)


@pytest.mark.parametrize("solve", [frank_wolfe, fixed], ids=lambda solver: solver.__name__)
@pytest.mark.filterwarnings("ignore:.*(overflow|invalid):RuntimeWarning")
def test_solvers_return_no_pair_without_finite_bounds(solve):
    kernels, dual = bound_with_nan()
    parameter = kernels.cone.centre if solve is fixed else None
    with pytest.raises(ValueError, match=r"not finite|no finite bounds|converge|NaN"):
        solve(SaddlePoint(kernels, dual, parameter), tol=1e-3, max_iter=10)


@pytest.mark.filterwarnings("ignore:.*(overflow|invalid):RuntimeWarning")
def test_a_nan_does_not_become_part_of_a_bound():
    kernels, dual = bound_with_nan()
    point = SaddlePoint(kernels, dual, kernels.cone.centre).at(dual.linear)
    assert not np.isfinite(point.upper(kernels.cone.centre)[0])
    assert not np.isfinite(point.support)
    assert not np.isfinite(point.lower)
    assert point.certificate(kernels.cone.centre).gap == np.inf


@pytest.mark.filterwarnings("ignore:.*(overflow|invalid):RuntimeWarning")
def test_a_run_keeps_no_pair_without_finite_bounds():
    kernels, dual = bound_with_nan()
    centre = kernels.cone.centre
    limits = {"tol": 1e-3, "max_iter": 5, "time_limit": None, "n_jobs": 1, "callback": None}
    run = Run("trial", SaddlePoint(kernels, dual, centre), **limits)
    run.record(centre, dual.linear, 0.0)
    assert not run.has_answer
    assert run.gap == np.inf


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_the_dual_solver_refuses_entries_that_are_not_finite(value):
    x = np.linspace(-1.0, 1.0, 40)
    K = np.exp(-(np.subtract.outer(x, x) ** 2))
    K[19, 20] = K[20, 19] = value  # the two rows next to the other class
    with pytest.raises(ValueError, match=r"not finite|NaN or an infinity"):
        solve_dual(K, DualProblem.classification(np.where(x > 0, 1.0, -1.0), C=10.0))


# --------------------------------------------------------------------------- indefinite kernels


@pytest.mark.parametrize("weighting", WEIGHTINGS)
@pytest.mark.parametrize("estimator", [MultipleKernelSVC, MultipleKernelSVR])
def test_an_indefinite_kernel_is_an_error(estimator, weighting):
    X, y, labels = data()
    target = labels if estimator is MultipleKernelSVC else y

    def distance(A, B):
        return 1.0 - np.sqrt(((A[:, None] - B[None]) ** 2).sum(axis=2))

    with pytest.raises(ValueError, match="not positive semidefinite"):
        estimator(kernels=[distance], weighting=weighting).fit(X, target)


def test_an_indefinite_kernel_of_a_problem_is_found_by_its_form():
    """K = 1 - 2 x xᵀ has a negative form for w = (1, -1), which no bound may use as zero."""
    X = np.array([[1.0], [-1.0], [0.5]])
    kernels = KernelDictionary([Gaussian(1.0)], standardise=False).resolve(X).bind(X)

    class Indefinite(type(kernels)):
        def scores(self, weights, w):
            return (1.0 - 2.0 * X @ X.T) @ w

    kernels.__class__ = Indefinite
    point = SaddlePoint(kernels, DualProblem.classification([1, -1, -1], C=1.0)).at([1, -1, 0])
    with pytest.raises(ValueError, match="not positive semidefinite"):
        point.upper(np.ones(1))


# ------------------------------------------------------------------------ what a model attains


def attained_by(model, X, y, loss):
    """Primal value of the predictions, in extended precision and in units of the deviation."""
    wide = np.longdouble
    relative = y.astype(wide) - wide(y[0])
    scale = np.sqrt(np.mean((relative - relative.mean()) ** 2))
    residual = (y.astype(wide) - model.predict(X).astype(wide)) / scale
    w = model.dual_coef_[0].astype(wide) / scale
    K = model.kernel_(model.support_vectors_).astype(wide)
    return float(w @ K @ w / 2 + model.C * loss(residual).sum())


@pytest.mark.parametrize("C", [1.0, 1000.0])
@pytest.mark.parametrize("offset", [0.0, 1e6, 1e9, 1e12, -2e12])
@pytest.mark.parametrize("estimator", [LearnedKernelSVR, LearnedKernelRidge, MultipleKernelSVR])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_predictions_attain_the_published_value(estimator, offset, C):
    X, y, _ = data(40, seed=3)
    y = y + offset
    model = estimator(C=C).fit(X, y)

    def loss(residual):
        if estimator is LearnedKernelRidge:
            return residual**2 / 2
        return np.maximum(np.abs(residual) - model.epsilon_, 0)

    assert attained_by(model, X, y, loss) <= model.objective_ * (1 + 2e-9)
    assert model.gap_ == relative_gap(model.objective_, model.lower_bound_)
    assert (model.status_ == "optimal") == (model.gap_ <= model.tol)


def test_a_value_that_rounding_spoils_is_reported():
    X, y, _ = data(40, seed=3)
    with pytest.warns(ConvergenceWarning, match="Subtract a constant from y"):
        model = LearnedKernelSVR(C=1e4, epsilon=0.1).fit(X, y + 2e12)
    assert model.gap_ > model.tol
    assert model.status_ == SolverStatus.STALLED.value
    assert model.score(X, y + 2e12) > 0.99


# -------------------------------------------------------------------- other solvers after a stall


def hard_for_interior_points():
    rng = np.random.default_rng(44)
    n, m = rng.integers(1, 5), rng.integers(6, 25)
    X = rng.random((m, n))
    return X, np.arange(m) % 2


def test_auto_goes_on_where_the_joint_method_stalls():
    X, labels = hard_for_interior_points()
    assert len(X) == 8
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        alone = LearnedKernelSVC(C=1e9, solver="joint").fit(X, labels)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = LearnedKernelSVC(C=1e9).fit(X, labels)
    assert model.status_ == "optimal"
    assert model.gap_ <= model.tol
    assert model.objective_ <= alone.objective_
    # The rounding of some BLAS libraries lets the joint method reach the tolerance.
    assert (model.solver_ == "joint") == (alone.gap_ <= alone.tol)
    records = model.history_
    assert [record.iteration for record in records] == list(range(len(records)))
    for name, rising in (("time", 1), ("n_svm", 1), ("bound", 1), ("value", -1)):
        values = np.array([getattr(record, name) for record in records])
        assert (rising * np.diff(values) >= 0).all(), name


def test_auto_goes_on_where_the_working_set_stalls():
    X, y, _ = data(33, 4, seed=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = MultipleKernelSVR().fit(X, y)
    assert model.gap_ <= model.tol


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_limits_hold_for_all_solvers_together():
    X, labels = hard_for_interior_points()
    alone = LearnedKernelSVC(C=1e9, solver="joint").fit(X, labels)
    few = LearnedKernelSVC(C=1e9, max_iter=alone.n_iter_ + 2).fit(X, labels)
    assert alone.n_iter_ <= few.n_iter_ <= alone.n_iter_ + 2
    assert few.gap_ <= alone.gap_
    named = LearnedKernelSVC(C=1e9, solver="joint", max_iter=10**6).fit(X, labels)
    assert named.n_iter_ == alone.n_iter_  # a solver that was asked for by name is the only one


def test_other_solvers_start_from_nothing_worse():
    """Also with a callback that stops the run at its first record."""
    X, labels = hard_for_interior_points()
    model = LearnedKernelSVC(C=1e9)
    kernels = PolynomialKernels(1).bind(X)
    problem = SaddlePoint(kernels, DualProblem.classification(2.0 * labels - 1.0, C=model.C))
    seen = []
    result = run_solver("auto", problem, tol=1e-3, max_iter=1000, callback=seen.append)
    assert result.gap <= 1e-3 or result.status is not SolverStatus.OPTIMAL
    assert [record.iteration for record in seen] == list(range(len(seen)))
    assert len(result.history) == len(seen)


def test_a_finished_model_keeps_the_proof_of_its_bound():
    """Its coefficients alone would prove less, and a warm start has nothing else."""
    rng = np.random.default_rng(0)
    X = rng.random((30, 3))
    y = np.sin(5 * X[:, 0]) + X[:, 1] + 0.1 * rng.standard_normal(30)
    labels = (y > y.mean()).astype(int)
    model = LearnedKernelSVC(kernels="polynomial", tol=1e-6).fit(X, labels)
    assert model.gap_ <= 1e-6
    bound = model.lower_bound_
    model.set_params(warm_start=True, max_iter=0).fit(X, labels)
    assert model.lower_bound_ == pytest.approx(bound, rel=1e-9)
    assert model.gap_ <= 1e-6
