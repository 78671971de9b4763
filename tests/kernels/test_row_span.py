"""The span of the rows: kernels on few wide rows see a small part of their parameter."""

from __future__ import annotations

import numpy as np
import pytest
from reference.wide import WholeKernels

from tessella.cones import PSD, Blocks, ProductCone, is_factor
from tessella.kernels import (
    Gaussian,
    KernelDictionary,
    LearnedKernel,
    PolynomialKernels,
    TessellatedKernels,
    UnitBox,
)
from tessella.kernels._row_span import RowSpan
from tessella.problems import SaddlePoint
from tessella.svm import DualProblem

ROWS = 12
FEW = KernelDictionary([Gaussian(3.0), Gaussian(9.0)])

SETS = {
    "plain": (TessellatedKernels(), 140),
    "degree 2": (TessellatedKernels(degree=2), 25),
    "unit": (TessellatedKernels(balance="unit"), 140),
    "pointwise": (TessellatedKernels(balance="pointwise"), 140),
    "scales": (TessellatedKernels(balance=np.linspace(0.5, 2.0, 282)), 140),
    "margins": (TessellatedKernels(delta=np.linspace(0.1, 3.0, 140)), 140),
    "polynomial": (PolynomialKernels(degree=2), 25),
    "on features": (TessellatedKernels().on_features(range(3, 139)), 140),
}


def wide_rows(columns, rows=ROWS, seed=0):
    X = np.random.default_rng(seed).random((rows, columns))
    return (X - X.min(axis=0)) / np.ptp(X, axis=0)


@pytest.fixture(params=SETS, ids=str)
def case(request):
    kernels, columns = SETS[request.param]
    X = wide_rows(columns)
    kernels = kernels.resolve(X)
    whole, span = kernels.bind_resolved(X), kernels.row_span(X)
    return kernels, X, whole, span, whole.in_span(span)


def random_symmetric(side, seed=0):
    A = np.random.default_rng(seed).standard_normal((side, side))
    return A + A.T


def dual_vector(seed=1):
    w = np.random.default_rng(seed).standard_normal(ROWS)
    return w - w.mean()


def close(found, expected, tol=1e-11):
    np.testing.assert_allclose(found, expected, rtol=0, atol=tol * np.abs(expected).max())


def test_the_directions_are_orthonormal_and_few(case):
    kernels, X, whole, span, small = case
    V = span.times(np.eye(span.side))
    close(V.T @ V, np.eye(span.side))
    assert V.shape == (whole.cone.side, small.cone.side)
    assert small.cone.side <= 2 * ROWS < whole.cone.side
    assert (small.cone.side, small.cone.total) == (span.side, whole.cone.side)
    assert kernels.cone_on_rows(*X.shape).side == span.side


def test_kernel_matrices_are_those_of_the_whole_parameter(case):
    _, X, whole, span, small = case
    P, V = random_symmetric(whole.cone.side), span.times(np.eye(span.side))
    M = random_symmetric(span.side, seed=2)
    close(small.gram(V.T @ P @ V), whole.gram(P))  # whatever P has beyond the span
    close(small.gram(M), whole.gram(V @ M @ V.T))
    close(small.gram(M, centred=True), whole.gram(V @ M @ V.T, centred=True))
    close(small.diag(M), whole.diag(V @ M @ V.T))
    near = wide_rows(X.shape[1], rows=5, seed=3)
    close(small.cross(near, M), whole.cross(near, V @ M @ V.T))


def test_gradients_lie_in_the_span(case):
    _, _, whole, span, small = case
    w, V = dual_vector(), span.times(np.eye(span.side))
    D, own = whole.gradient(w), small.gradient(w)
    close(V @ own @ V.T, D)
    spectrum = np.linalg.eigvalsh(D)
    close(np.linalg.eigvalsh(own), spectrum[-span.side :])
    assert np.abs(spectrum[: -span.side]).max() < 1e-12 * spectrum[-1]


def test_scores_and_sensitivities_are_those_of_the_whole_parameter(case):
    _, _, whole, span, small = case
    V, M = span.times(np.eye(span.side)), random_symmetric(span.side)
    ours, theirs = small.moments(dual_vector()), whole.moments(dual_vector())
    close(ours.scores(M), theirs.scores(V @ M @ V.T))
    rows = np.array([1, 4, 7])
    face = np.linalg.qr(np.random.default_rng(5).standard_normal((span.side, 3)))[0]
    for own, other in ((None, V), (face, V @ face)):
        pair = ours.sensitivities(own, rows), theirs.sensitivities(other, rows)
        close(*(gamma.matrix() for gamma in pair))


def test_faces_of_the_span(case):
    _, X, whole, span, small = case
    V, rows = span.times(np.eye(span.side)), np.array([0, 3, 4, 9])
    face = np.linalg.qr(np.random.default_rng(5).standard_normal((span.side, 3)))[0]
    inner = np.linalg.qr(np.random.default_rng(6).standard_normal((3, 2)))[0]
    part = small.restrict(rows, face).restrict(np.array([1, 2]), inner)
    M, V = random_symmetric(2), V @ face @ inner
    chosen = whole.subset(rows[1:3])
    assert (part.cone.side, part.cone.total) == (2, whole.cone.side)
    close(part.gram(M), chosen.gram(V @ M @ V.T))
    near = wide_rows(X.shape[1], rows=5, seed=3)
    close(part.cross(near, M), chosen.cross(near, V @ M @ V.T))


def test_certificates_are_those_of_the_whole_parameter(case):
    _, _, whole, span, small = case
    dual = DualProblem.classification(np.where(np.arange(ROWS) % 2, 1.0, -1.0), np.full(ROWS, 0.1))
    M = random_symmetric(span.side)
    M = small.cone.normalised(M @ M)
    w = 0.1 * np.clip(dual_vector(), -1.0, 1.0)
    ours = SaddlePoint(small, dual).certificate(M, w)
    U = span.whole(M)
    theirs = SaddlePoint(whole, dual).certificate(U @ U.T, w)
    assert ours.lower == pytest.approx(theirs.lower, rel=1e-9)
    assert ours.upper == pytest.approx(theirs.upper, rel=1e-9)


def test_factors_stand_for_their_matrices(case):
    kernels, X, whole, span, _ = case
    M = random_symmetric(span.side)
    U = span.whole(M @ M)
    P, w = U @ U.T, dual_vector()[:, None]
    assert is_factor(U)
    near = wide_rows(X.shape[1], rows=5, seed=3)
    close(kernels.cross(near, X, U), kernels.cross(near, X, P))
    close(kernels.diag(near, U), kernels.diag(near, P))
    close(whole.gram(U), whole.gram(P))
    for columns in (w, np.hstack([w, -2.0 * w])):
        found = kernels.predictor(U, X, columns).scores(near)
        close(found, kernels.cross(near, X, P) @ columns)


def test_parameters_in_coordinates_of_the_span(case):
    _, _, whole, span, small = case
    M = random_symmetric(span.side)
    M = small.cone.normalised(M @ M)
    U = span.whole(M)
    close(span.own(U), M)
    close(span.own(U @ U.T), M)
    assert whole.cone.trace(U) == pytest.approx(1.0, rel=1e-12)
    # A parameter that is not in the span keeps its trace and its direction.
    P = whole.cone.normalised(random_symmetric(whole.cone.side) @ random_symmetric(whole.cone.side))
    own = span.own(P)
    assert small.cone.trace(own) == pytest.approx(1.0, rel=1e-12)
    close(small.gram(own) * (whole.gram(P)[0, 0] / small.gram(own)[0, 0]), whole.gram(P))


def test_diagonal_matrices_need_no_products(case):
    *_, span, _ = case
    M = np.diag(np.arange(span.side, dtype=float))
    V, U = span.times(np.eye(span.side)), span.whole(M)
    assert U.shape == (span.n_params, span.side - 1)
    close(U @ U.T, V @ M @ V.T)


def test_what_rows_cannot_see_becomes_the_centre():
    span = RowSpan([np.eye(300)[:, :4]])
    beyond = np.zeros((300, 1))
    beyond[-1] = 300.0**0.5
    np.testing.assert_allclose(span.own(beyond), 75.0 * np.eye(4))


def test_the_reference_is_the_kernel_set():
    X = wide_rows(140)
    whole, reference = TessellatedKernels().bind(X), WholeKernels(X)
    P, w = random_symmetric(282), dual_vector()
    close(reference.gram(P), whole.gram(P))
    close(reference.gradient(w), whole.gradient(w))


def test_parts_of_a_sum_have_their_own_span():
    X = wide_rows(140)
    kernels = (TessellatedKernels() + FEW + TessellatedKernels().on_features([0, 1])).resolve(X)
    whole, span = kernels.bind_resolved(X), kernels.row_span(X)
    small = whole.in_span(span)
    assert [part is None for part in span.parts] == [False, True, True]
    M = Blocks([random_symmetric(24) @ random_symmetric(24), np.array([0.3, 0.2]), np.eye(6)])
    P = span.whole(M)
    close(small.gram(M), whole.gram(P))
    close(small.gram(span.own(P)), whole.gram(P))
    near = wide_rows(140, rows=5, seed=3)
    close(small.cross(near, M), kernels.cross(near, X, P))
    assert isinstance(whole.cone, ProductCone)
    assert whole.cone.trace(P) == pytest.approx(small.cone.trace(M), rel=1e-12)
    assert whole.cone.contains(span.whole(small.cone.normalised(M)))
    nothing = span.whole(Blocks([np.zeros((24, 24)), np.array([0.5, 0.5]), np.zeros((6, 6))]))
    assert whole.cone.contains(nothing)
    close(kernels.cross(near, X, nothing), FEW.resolve(X).cross(near, X, np.array([0.5, 0.5])))


@pytest.mark.parametrize(
    ("kernels", "rows", "columns"),
    [
        (TessellatedKernels(), 12, 100),  # a small matrix
        (TessellatedKernels(), 130, 140),  # rows with nearly as many directions
        (TessellatedKernels(floor=0.1), 12, 140),
        (TessellatedKernels().with_floor(0.1), 12, 140),
        (TessellatedKernels(monomials="xz"), 12, 140),
        (TessellatedKernels() + FEW, 12, 100),
        (FEW, 12, 140),
    ],
    ids=str,
)
def test_other_parameters_are_learned_as_they_are(kernels, rows, columns):
    X = wide_rows(columns, rows=rows)
    kernels = kernels.resolve(X)
    assert kernels.row_span(X) is None
    assert kernels.cone_on_rows(rows, columns).degree == kernels.cone(columns).degree


def test_factors_are_feasible_by_their_trace():
    cone = PSD(300)
    U = np.zeros((300, 2))
    U[0, 0], U[1, 1] = 15.0, np.sqrt(75.0)
    assert cone.contains(U)
    assert not cone.contains(1.001 * U)
    assert not cone.contains(np.full((300, 2), np.nan))
    assert not PSD(301).contains(U)
    assert cone.trace(U) == pytest.approx(cone.trace(U @ U.T))
    np.testing.assert_array_equal(cone.read(U), U @ U.T)


def test_a_learned_kernel_multiplies_its_factor_out():
    X = wide_rows(140)
    span = TessellatedKernels().row_span(X)
    U = span.whole(span.cone.centre)
    kernel = LearnedKernel(TessellatedKernels(), U, UnitBox.identity(140))
    np.testing.assert_array_equal(kernel.P, U @ U.T)
    close(kernel(X), WholeKernels(X).gram(U @ U.T))
    close(kernel(X), kernel(X, X.copy()))
    assert kernel == LearnedKernel(TessellatedKernels(), U.copy(), UnitBox.identity(140))
    assert kernel.shares.tolist() == [1.0]
