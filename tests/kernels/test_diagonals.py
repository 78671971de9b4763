"""Diagonals of the kernels of a dictionary, and what machines on many parts of the rows share."""

from __future__ import annotations

import time

import numpy as np
import pytest

import tessella.kernels._bound_dictionary as bound_dictionary
from tessella.backend import OutOfTimeError, deadline
from tessella.kernels import FunctionKernel, Gaussian, KernelDictionary, Polynomial
from tessella.kernels import _diagonals as module
from tessella.kernels._diagonals import diagonals, means_and_minima

RNG = np.random.default_rng(0)
X = RNG.standard_normal((30, 4))


def linear(left, right):
    return left @ right.T


KERNELS = [
    Gaussian(1.0),
    Polynomial(2),
    Polynomial(3, 0.5, features=(1,)),
    Gaussian(2.0, features=(2,)),
    Polynomial(3, 0.5, features=(3,)),
    Polynomial(2, features=(0, 1)),
    FunctionKernel(linear),
    Polynomial(1, 0.0, features=(0,)),
]


@pytest.mark.parametrize("entries", [1 << 20, 30])
def test_diagonals_are_those_of_single_kernels(entries, monkeypatch):
    monkeypatch.setattr(module, "_BLOCK_ENTRIES", entries)
    which = [7, 0, 2, 3, 4, 5, 6]
    seen = []
    for numbers, values in diagonals(KERNELS, which, X):
        assert values.shape in ((30, 1), (30, len(numbers)))
        columns = np.broadcast_to(values, (30, len(numbers))).T
        for number, column in zip(numbers, columns, strict=True):
            np.testing.assert_allclose(column, KERNELS[number].diag(X), rtol=1e-14)
        seen += numbers
    assert sorted(seen) == sorted(which)


def test_means_and_minima():
    weight = RNG.random(30) + 0.1
    means, minima = means_and_minima(KERNELS, X, weight)
    own = [kernel.diag(X) for kernel in KERNELS]
    np.testing.assert_allclose(means, [np.average(d, weights=weight) for d in own], rtol=1e-13)
    np.testing.assert_allclose(minima, [d.min() for d in own], rtol=1e-14)
    assert means[0] == means[3] == 1.0


@pytest.mark.parametrize("normalisation", ["trace", "cosine", None])
def test_the_diagonal_of_a_sum_is_that_of_its_matrix(normalisation):
    dictionary = KernelDictionary(KERNELS, normalisation=normalisation)
    bound = dictionary.bind(X)
    weights = RNG.dirichlet(np.ones(len(KERNELS)))
    np.testing.assert_allclose(bound.diag(weights), np.diagonal(bound.gram(weights)), rtol=1e-12)


def test_a_kernel_matrix_is_symmetric_to_the_last_bit(monkeypatch):
    monkeypatch.setattr("tessella.kernels._dictionary._MIRRORED", 8)
    bound = KernelDictionary.standard().bind(X)
    K = bound.gram(bound.cone.centre)
    np.testing.assert_array_equal(K, K.T)
    kernels = bound.kernels
    expected = sum(kernels.matrix(k, X) for k in range(len(kernels))) / len(kernels)
    np.testing.assert_allclose(K, expected, rtol=1e-12)


# ---- machines


ROWS = [np.arange(12), np.arange(8, 30), np.arange(0, 30, 2)]


def test_machines_are_those_of_their_rows():
    dictionary = KernelDictionary.standard().resolve(X)
    machines = dictionary.bind_machines(X, ROWS)
    weights = RNG.dirichlet(np.ones(len(dictionary)))
    whole = dictionary.bind(X).gram(weights)
    for machine, rows in zip(machines.machines, ROWS, strict=True):
        np.testing.assert_allclose(machine.gram(weights), whole[np.ix_(rows, rows)], rtol=1e-12)


@pytest.mark.parametrize(("share", "kept"), [(1.0, True), (0.9, False)])
def test_machines_share_the_memory_for_matrices_of_kernels(share, kept, monkeypatch):
    dictionary = KernelDictionary([Gaussian(1.0), Polynomial(2)]).resolve(X)
    most = 3 * 8 * 2 * 22**2  # three machines with up to 22 rows each
    monkeypatch.setattr(bound_dictionary, "MOST_STACKED_BYTES", share * most)
    machines = dictionary.bind_machines(X, ROWS).machines
    second = machines[1].restrict(np.arange(22))
    assert (second.stack is not None) is kept
    smaller = machines[1].subset(np.arange(4)).restrict(np.arange(4))
    assert smaller.stack is not None
    alone = dictionary.bind(X).restrict(np.arange(22))
    assert alone.stack is not None


# ---- deadlines


@pytest.mark.parametrize("part", ["gram", "moments"])
def test_a_pass_over_the_kernels_ends_at_its_deadline(part, monkeypatch):
    bound = KernelDictionary.standard().bind(X)
    ticks = iter(range(10**6))
    monkeypatch.setattr(time, "monotonic", lambda: float(next(ticks)))
    passes = {
        "gram": lambda: bound.gram(bound.cone.centre),
        "moments": lambda: bound.moments(np.linspace(-1.0, 1.0, 30)).gradient,
    }
    with deadline(2.0), pytest.raises(OutOfTimeError):
        passes[part]()
    assert next(ticks) <= 5
    passes[part]()
