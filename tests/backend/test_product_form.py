from __future__ import annotations

import numpy as np
import pytest

from tessella.backend import KernelOnDemand, ProductForm
from tessella.kernels import PolynomialKernels, TessellatedKernels
from tessella.svm import DualProblem, solve_dual


def random_form(m, n, r, t, seed=0):
    rng = np.random.default_rng(seed)
    return ProductForm(
        rng.random((m, n)),
        rng.standard_normal((m, r)),
        rng.standard_normal((m, t)),
        rng.standard_normal((m, t)),
    )


def dense(form):
    room = np.ones((len(form), len(form)))
    for column in form.room.T:
        room *= np.minimum.outer(column, column)
    thin = form.first @ form.second.T
    return room * (form.high @ form.high.T) + thin + thin.T


SHAPES = [(1, 1, 1, 1), (5, 3, 2, 1), (16, 8, 1, 2), (33, 4, 5, 3), (50, 100, 3, 0), (40, 0, 0, 4)]
LARGE = (800, 12, 8, 6)  # enough work for several threads


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_matrix_by_its_definition(shape, dtype):
    form = random_form(*shape)
    expected = dense(form)
    out = np.empty(expected.shape, dtype)
    form.matrix(out, 2)
    size = np.abs(expected).max()
    np.testing.assert_allclose(out, expected, atol=size * (1e-13 if dtype == np.float64 else 1e-6))
    assert (out == out.T).all()


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_matrix_by_its_definition_on_several_threads(dtype):
    """The right block of a wider array: what stands beside it stays as it is."""
    form = random_form(*LARGE)
    expected = dense(form)
    m, size = len(form), np.abs(expected).max()
    wide = np.full((m, m + 3), -1.0, dtype)
    form.matrix(wide[:, :m], 3)
    np.testing.assert_allclose(
        wide[:, :m], expected, atol=size * (1e-13 if dtype == np.float64 else 1e-6)
    )
    assert (wide[:, m:] == -1.0).all()


@pytest.mark.parametrize("shape", [*SHAPES, (560, 5, 3, 1), LARGE], ids=str)
def test_product_and_blocks(shape):
    form = random_form(*shape)
    K = KernelOnDemand()
    K.hold(form)
    w = np.random.default_rng(1).standard_normal(len(form))
    w[::7] = 0.0
    expected = dense(form)
    size = np.abs(expected).max()
    close = {"rtol": 0, "atol": 1e-14 * size * len(form)}
    for threads in (1, 3):
        np.testing.assert_allclose(K.product(w, threads), expected @ w, **close)
    assert not K.product(np.zeros(len(form)), 1).any()
    rows = np.arange(0, len(form), 2)
    np.testing.assert_allclose(K.block(rows), expected[np.ix_(rows, rows)], atol=1e-13 * size)


@pytest.mark.parametrize("kernels", [TessellatedKernels(1, 0.3), PolynomialKernels(2)])
@pytest.mark.parametrize("centred", [False, True])
def test_product_form_of_a_kernel_set_is_its_matrix(kernels, centred):
    rng = np.random.default_rng(3)
    bound = kernels.bind(rng.random((30, 3)))
    root = rng.standard_normal((bound.n_params, 2))
    P = root @ root.T
    form = bound.product_form((root, root), centred=centred)
    out = np.empty((30, 30))
    form.matrix(out, 1)
    K = bound.gram(P, centred=centred)
    np.testing.assert_allclose(out, K, atol=1e-12 * np.abs(bound.gram(P)).max())


def test_powers_of_z_have_no_product_form():
    bound = TessellatedKernels(1, 0.3, "xz").bind([[0.0], [1.0]])
    assert not bound.kernels.by_rows
    assert bound.product_form(bound.cone.square(np.eye(bound.n_params))) is None


@pytest.mark.parametrize("rows_kept", [0, 7, 10_000])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_solve_by_rows_is_the_solve_of_the_matrix(rows_kept, dtype):
    """Whatever is evicted on the way: with few slots every row is computed many times."""
    rng = np.random.default_rng(4)
    m = 120
    bound = TessellatedKernels(1, 0.3).bind(rng.random((m, 2)), dtype=dtype)
    form = bound.product_form((np.eye(6), np.eye(6)), centred=True)
    K = KernelOnDemand(dtype, max_bytes=rows_kept * m * np.dtype(dtype).itemsize)
    K.hold(form)
    dual = DualProblem.regression(np.sin(9 * rng.random(m)), 50.0, 0.05)
    by_rows = solve_dual(K, dual, tol=1e-6)
    whole = solve_dual(bound.gram(np.eye(6), centred=True), dual, tol=1e-6)
    assert by_rows.gap <= 1e-6
    assert by_rows.objective == pytest.approx(whole.objective, rel=2e-6)
    np.testing.assert_allclose(by_rows.gradient, dual.linear - K.product(by_rows.w), atol=1e-9)


def test_another_kernel_forgets_the_rows_of_the_last():
    K = KernelOnDemand()
    dual = DualProblem.regression(np.linspace(-1, 1, 20), 10.0, 0.01)
    values = []
    for seed in (0, 1, 0):
        form = random_form(20, 2, 2, 1, seed)
        K.hold(ProductForm(form.room, form.high, 0.5 * form.second, form.second))
        values.append(solve_dual(K, dual, tol=1e-9).objective)
    assert values[0] == values[2] != values[1]


def test_misuse():
    with pytest.raises(TypeError, match="float32 or float64"):
        KernelOnDemand(np.int32)
    with pytest.raises(ValueError, match=r"call hold\(\) first"):
        KernelOnDemand().product(np.ones(3))
    K = KernelOnDemand()
    K.hold(random_form(4, 1, 1, 1))
    with pytest.raises(ValueError, match="K has 4 rows, expected 3"):
        solve_dual(K, DualProblem.regression([1.0, 2.0, 3.0], 1.0, 0.1))
    with pytest.raises(ValueError, match="lengths do not fit"):
        K.product(np.ones(3))
    with pytest.raises(ValueError, match="shapes or strides do not fit"):
        K.form.matrix(np.empty((3, 4)), 1)
