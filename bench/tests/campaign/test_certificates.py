"""The second implementation of certificates agrees with the library, and finds false claims."""

from copy import deepcopy

import numpy as np
import pytest

from tessella import (
    KernelDictionary,
    LearnedKernelRidge,
    LearnedKernelRidgeClassifier,
    LearnedKernelSVC,
    LearnedKernelSVR,
    MultipleKernelSVC,
    MultipleKernelSVR,
)
from tessella.kernels import (
    Gaussian,
    GaussianKernels,
    Polynomial,
    PolynomialKernels,
    TessellatedKernels,
)
from tessella_bench.campaign._certificates import faults, recompute
from tessella_bench.campaign._definitions import family_of, largest_eigenvalue

_RNG = np.random.default_rng(0)
X = _RNG.random((24, 2))
y = np.sin(5 * X[:, 0]) + X[:, 1] + 0.1 * _RNG.standard_normal(24)
TARGETS = {"two": (y > y.mean()).astype(int), "three": np.digitize(y, [0.6, 1.1]), "number": y}
WEIGHT = _RNG.integers(0, 4, 24).astype(float)

TESSELLATED = TessellatedKernels(degree=1, monomials="xz", balance="unit", floor=0.2)
SUM = TessellatedKernels(degree=0).on_features([1]) + PolynomialKernels(2)
DICTIONARY = KernelDictionary([Gaussian(0.5), Polynomial(3)], True, "cosine").with_floor(0.3)

MODELS = [
    (LearnedKernelSVC(), "two"),
    (LearnedKernelSVC(kernels=SUM, class_weight="balanced"), "two"),
    (LearnedKernelSVC(kernels=TESSELLATED, class_weight={0: 3.0}), "three"),
    (LearnedKernelSVC(multi_class="separate"), "three"),
    (LearnedKernelSVC(kernels="polynomial", tol=1e-6), "two"),
    (LearnedKernelSVR(kernels=TESSELLATED), "number"),
    (LearnedKernelSVR(scaling="robust", feature_scale=[1.0, 0.3], epsilon=0.1), "number"),
    (LearnedKernelRidge(kernels=TessellatedKernels(balance="pointwise")), "number"),
    (LearnedKernelRidge(kernels="laplace", scaling="quantile"), "number"),
    (LearnedKernelRidge(kernels="gaussian"), "number"),
    (LearnedKernelRidgeClassifier(kernels="matern"), "three"),
    (LearnedKernelRidgeClassifier(kernels=DICTIONARY), "two"),
    (MultipleKernelSVC(), "two"),
    (MultipleKernelSVC(multi_class="separate"), "three"),
    (MultipleKernelSVC(weighting="alignment"), "three"),
    (MultipleKernelSVR(), "number"),
    (MultipleKernelSVR(weighting="simple"), "number"),
]


def _name(case):
    model, target = case
    return f"{type(model).__name__}-{target}-{str(model.kernels)[:24]}"


@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["plain", "weighted"])
@pytest.mark.parametrize("case", MODELS, ids=_name)
def test_certificates_of_the_library_are_proved(case, weight):
    model, target = case
    given = TARGETS[target]
    model.fit(X, given, sample_weight=weight)
    again = recompute(model, X, given, weight)
    assert faults(model, X, given, weight) == []
    assert again.primal == pytest.approx(model.objective_, rel=1e-10)
    assert again.attained == pytest.approx(model.objective_, rel=1e-10)
    assert again.dual == pytest.approx(model.lower_bound_, rel=1e-9)
    assert again.gap == pytest.approx(model.gap_, rel=1e-3, abs=1e-12)


def test_copies_of_rows_are_weights():
    rows = np.repeat(np.arange(24), WEIGHT.astype(int))
    model = LearnedKernelSVR().fit(X[rows], y[rows])
    assert faults(model, X[rows], y[rows]) == []


def _halved(model, name):
    setattr(model, name, 0.5 * getattr(model, name))


FORGERIES = {
    "value": lambda model: setattr(model, "objective_", 0.9 * model.objective_),
    "bound": lambda model: setattr(model, "lower_bound_", 1.01 * model.lower_bound_),
    "gap": lambda model: setattr(model, "gap_", 0.0),
    "status": lambda model: setattr(model, "tol", 1e-9),
    "intercept": lambda model: setattr(model, "intercept_", model.intercept_ + 0.1),
    "coefficients": lambda model: _halved(model, "dual_coef_"),
    "not a number": lambda model: setattr(model, "objective_", np.nan),
}


@pytest.mark.parametrize("name", FORGERIES)
@pytest.mark.parametrize("estimator", [LearnedKernelSVC, LearnedKernelSVR, LearnedKernelRidge])
def test_forged_certificates_are_found(estimator, name):
    given = TARGETS["two" if estimator is LearnedKernelSVC else "number"]
    model = deepcopy(estimator().fit(X, given))
    FORGERIES[name](model)
    assert faults(model, X, given) != []


def test_a_parameter_outside_its_cone_is_found():
    model = MultipleKernelSVR().fit(X, y)
    model.kernel_.parameter[0] -= 0.01
    assert any("infeasible" in fault for fault in faults(model, X, y))


def test_tessellated_kernels_are_the_integral_of_their_basis():
    """One feature, by the midpoint rule on a grid that has the rows at edges of cells."""
    rows = np.array([[0.0], [0.25], [1.0]], dtype=np.longdouble)
    kernels = TessellatedKernels(degree=1, monomials="xz", delta=0.5)
    P = np.random.default_rng(1).standard_normal((6, 6))
    P = P @ P.T
    cells = 4000
    z = -0.5 + 2.0 * (np.arange(cells) + 0.5) / cells

    def basis(x):
        monomials = np.stack([np.ones_like(z), np.full_like(z, x), z])  # by the power of z
        above = z >= x
        return np.vstack([monomials * above, monomials * ~above])

    expected = [
        [np.mean(basis(float(a[0])) * (P @ basis(float(b[0]))), axis=1).sum() for b in rows]
        for a in rows
    ]
    found = family_of(kernels, rows).matrix(P)
    np.testing.assert_allclose(found.astype(float), np.array(expected), rtol=1e-6)


def test_largest_eigenvalue_is_an_upper_bound_to_the_last_digits():
    A = np.random.default_rng(2).standard_normal((9, 9)) * 10.0 ** np.arange(9)
    D = (A @ A.T).astype(np.longdouble)
    found = float(largest_eigenvalue(D))
    assert found == pytest.approx(np.linalg.eigvalsh(D.astype(float))[-1], rel=1e-14)
    assert largest_eigenvalue(np.zeros((2, 2), np.longdouble)) == 0.0


def test_an_outlier_of_small_weight_takes_no_digits_from_the_others():
    given, weight = 1e-9 * y, np.full(24, 1e6)
    given[0], weight[0] = 1.0, 1e-6
    model = LearnedKernelSVR(C=10.0, epsilon=0.1).fit(X, given, sample_weight=weight)
    again = recompute(model, X, given, weight)
    assert faults(model, X, given, weight) == []
    assert again.attained == pytest.approx(again.primal, rel=1e-12)


def test_the_bound_of_rounding_is_small_and_grows_with_what_cancels():
    plain = LearnedKernelRidge(kernels=GaussianKernels(width=1.0)).fit(X, y)
    narrow = LearnedKernelRidge(kernels=GaussianKernels(width=0.01)).fit(X, y)
    small, large = (recompute(own, X, y) for own in (plain, narrow))
    assert 0.0 < small.rounding < 1e-10 * small.primal
    assert 0.0 < small.dual_rounding < 1e-9 * small.primal
    assert large.rounding > 100 * small.rounding
