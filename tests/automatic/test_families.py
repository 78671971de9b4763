"""Families of kernels with a scale for each column, against their formulas."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from tessella.automatic import FAMILIES
from tessella.kernels import TessellatedKernels, absolute_pair_sums

RNG = np.random.default_rng(0)
A, B = RNG.random((30, 4)), RNG.random((11, 4))
A[:2] = [[0.0, 1.0, 0.0, 1.0], [1.0, 0.0, 1.0, 1.0]]  # corners of the cube
SCALES = np.array([1.0, -0.5, 0.0, 2.0])


def direct(name, a, b):
    """The kernel of two rows, by its formula."""
    if name == "laplace":
        return np.exp(-np.sum(np.exp(SCALES) * np.abs(a - b)))
    if name == "gaussian":
        return np.exp(-0.5 * np.sum(np.exp(2.0 * SCALES) * (a - b) ** 2))
    if name == "matern":
        distance = np.sqrt(3.0 * np.sum(np.exp(2.0 * SCALES) * (a - b) ** 2))
        return (1.0 + distance) * np.exp(-distance)
    top = 1.0 + np.exp(-SCALES)
    return np.prod(np.sqrt((top - np.maximum(a, b)) / (top - np.minimum(a, b))))


@pytest.mark.parametrize("name", FAMILIES)
def test_kernel_matrices_are_those_of_the_formulas(name):
    family = FAMILIES[name]
    assert family.name == name
    for right in (A, B):
        expected = [[direct(name, a, b) for b in right] for a in A]
        np.testing.assert_allclose(family.gram(A, SCALES, right), expected, rtol=1e-12)
    K = family.gram(A, SCALES)
    np.testing.assert_allclose(K, family.gram(A, SCALES, A), rtol=1e-12)
    np.testing.assert_array_equal(K, K.T)
    np.testing.assert_array_equal(K.diagonal(), np.ones(len(A)))
    assert np.linalg.eigvalsh(K)[0] > -1e-12


@pytest.mark.parametrize("name", FAMILIES)
def test_gradient_of_a_sum_over_pairs(name):
    family, half = FAMILIES[name], RNG.normal(size=(30, 30))
    M = half + half.T

    def total(scales):
        return float((M * family.gram(A, scales)).sum())

    found = family.gradient(M * family.gram(A, SCALES), A, SCALES)
    for j, step in enumerate(1e-6 * np.eye(4)):
        slope = (total(SCALES + step) - total(SCALES - step)) / 2e-6
        assert found[j] == pytest.approx(slope, rel=1e-6, abs=1e-7)


@pytest.mark.parametrize("name", FAMILIES)
def test_a_larger_scale_is_a_narrower_kernel(name):
    family = FAMILIES[name]
    narrow, wide = (family.gram(A, SCALES + shift)[0, 1] for shift in (0.5, -0.5))
    assert narrow < wide
    # The steepness orders columns by how fast the kernel falls along them.
    fall = [1.0 - family.gram(np.array([[0.5], [0.6]]), SCALES[[j]])[0, 1] for j in range(4)]
    assert (np.argsort(fall) == np.argsort(family.steepness(SCALES))).all()
    # The parameter of a width gives a wider kernel for a larger width, and more columns share it.
    assert family.start(2.0, 4) < family.start(1.0, 4)
    assert family.start(1.0, 9) <= family.start(1.0, 4)


@pytest.mark.parametrize("name", ["laplace", "gaussian", "matern"])
def test_widths_are_relative_to_the_spread_of_uniform_columns(name):
    """With width 1, rows at a typical distance have a similar kernel for any number of columns."""
    family, values = FAMILIES[name], []
    for n in (2, 20, 80):
        rows = RNG.random((200, n))
        K = family.gram(rows, np.full(n, family.start(1.0, n)))
        values.append(np.median(K))
    assert np.ptp(np.log(values)) < 0.5


def test_tessellated_family_is_that_of_the_kernel_sets():
    margins = (0.3, 1.7, 0.05, 0.6)
    kernels = TessellatedKernels(0, margins, balance="pointwise")
    first = np.diag([2.0, 0.0])  # P on its first block, with the trace that is feasible
    expected = kernels.bind(A).gram(first)
    found = FAMILIES["tessellated"].gram(A, -np.log(margins))
    ratio = expected[0, 0] / found[0, 0]
    np.testing.assert_allclose(ratio * found, expected, rtol=1e-10)


def test_margins_have_a_smallest_value():
    """Below it nothing changes any more, and new rows beyond the cube stay finite."""
    family = FAMILIES["tessellated"]
    scales = np.array([8.0, 9.0, 1.0, 0.0])
    smaller = np.array([9.0, 11.0, 1.0, 0.0])
    K = family.gram(A, scales)
    np.testing.assert_array_equal(K, family.gram(A, smaller))
    gradient = family.gradient(np.ones_like(K) * K, A, scales)
    np.testing.assert_array_equal(gradient[:2], 0.0)
    assert (gradient[2:] != 0.0).all()
    outside = family.gram(np.full((2, 4), [[5.0], [-3.0]]), scales, A)
    assert np.isfinite(outside).all()
    assert (outside >= 0.0).all()
    assert (outside <= 1.0).all()


@pytest.mark.parametrize("n_rows", [1, 2, 37, 130])
def test_absolute_pair_sums(n_rows):
    rng = np.random.default_rng(n_rows)
    rows, half = rng.normal(size=(n_rows, 5)), rng.normal(size=(n_rows, n_rows))
    W = half + half.T
    expected = [(W * cdist(x[:, None], x[:, None], "cityblock")).sum() for x in rows.T]
    found = absolute_pair_sums(W, rows, n_jobs=1)
    np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-11)
    for n_jobs in (2, 3, 8):
        np.testing.assert_array_equal(absolute_pair_sums(W, rows, n_jobs=n_jobs), found)
    np.testing.assert_allclose(absolute_pair_sums(W, np.asfortranarray(rows)), found, rtol=1e-14)


def test_absolute_pair_sums_check_shapes():
    with pytest.raises(ValueError, match="W has shape"):
        absolute_pair_sums(np.ones((3, 2)), np.ones((3, 2)))


@pytest.mark.parametrize("name", FAMILIES)
def test_slopes_by_the_coordinates_of_rows(name):
    family = FAMILIES[name]
    rows, M = RNG.uniform(0.05, 0.95, (6, 4)), RNG.normal(size=(6, 11))
    found = family.slopes(M * family.gram(rows, SCALES, B), rows, B, SCALES)
    for j, step in enumerate(1e-6 * np.eye(4)):
        ends = [(M * family.gram(rows + s * step, SCALES, B)).sum(axis=1) for s in (1.0, -1.0)]
        np.testing.assert_allclose(found[:, j], (ends[0] - ends[1]) / 2e-6, rtol=1e-6, atol=1e-7)
