"""The equations of a Newton step, solved in three ways, against a dense system of all unknowns."""

from __future__ import annotations

import numpy as np
import pytest

from tessella.backend import BlockDiagonal
from tessella.kernels._sensitivity import RowwiseSensitivities
from tessella.svm import DualProblem, _newton_factors
from tessella.svm._newton_factors import (
    CoupledMachines,
    MachineFactors,
    SlowConvergenceError,
    WholeFactor,
)

SIZES = (9, 1, 14, 6)
SIDE = 7


class Equations:
    """K, T and J of four machines, a right-hand side, and the solution of the dense system."""

    def __init__(self, seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        f, count = sum(SIZES), len(SIZES)
        roots = [rng.standard_normal((size, 3)) for size in SIZES]
        self.K = BlockDiagonal([root @ root.T for root in roots])
        self.T = 10.0 ** rng.uniform(-3, 2, f)
        scales = 10.0 ** rng.uniform(-2, 1, SIDE)
        vectors = (rng.standard_normal((f, SIDE)) * scales for _ in range(3))
        h = rng.standard_normal((count, SIDE)) * scales
        self.J = RowwiseSensitivities(*vectors, h, np.repeat(np.arange(count), SIZES))
        labels = [np.where(np.arange(size) % 2, 1.0, -1.0) for size in SIZES]
        machines = [DualProblem.classification(own, 1.0) for own in labels]
        self.dual = DualProblem.stacked(machines)
        self.rhs, self.sums = rng.standard_normal(f), rng.standard_normal(count)
        E = np.equal.outer(self.dual.machine_of, np.arange(count)).astype(float)
        matrix = self.K.whole() + np.diag(self.T) + self.J.matrix() @ self.J.matrix().T
        system = np.block([[matrix, E], [E.T, np.zeros((count, count))]])
        self.expected = np.split(np.linalg.solve(system, np.r_[self.rhs, self.sums]), [f])

    def check(self, answer, rtol=1e-8):
        for got, expected in zip(answer, self.expected, strict=True):
            np.testing.assert_allclose(got, expected, rtol=rtol, atol=rtol * abs(expected).max())


@pytest.fixture(scope="module")
def equations():
    return Equations()


@pytest.mark.parametrize("kind", ["whole", "dense", "machines"])
def test_factorisations_solve_the_dense_system(kind, equations):
    e = equations
    if kind == "machines":
        factor = MachineFactors(e.K, e.T, e.J.matrix(), e.dual)
    else:
        factor = WholeFactor(e.K if kind == "whole" else e.K.whole(), e.T, e.J, e.dual)
    e.check(factor.solve(e.rhs, e.sums))


@pytest.mark.parametrize("columns", [1, 5, SIDE * (SIDE + 1) // 2])
def test_conjugate_gradients_solve_the_dense_system(columns, equations, monkeypatch):
    monkeypatch.setattr(_newton_factors, "_ACCURACY", 1e-13)
    monkeypatch.setattr(_newton_factors, "_MOST_PRODUCTS", 200)
    e = equations
    factor = CoupledMachines(e.K, e.T, e.J, e.J.couplings(columns), e.dual)
    e.check(factor.solve(e.rhs, e.sums), rtol=1e-7)


def test_every_iterate_has_the_sums(equations):
    """The accuracy of conjugate gradients is that of w; the sums are exact."""
    e = equations
    w, _ = CoupledMachines(e.K, e.T, e.J, e.J.couplings(5), e.dual).solve(e.rhs, e.sums)
    np.testing.assert_allclose(e.dual.sums(w), e.sums, rtol=1e-11)
    np.testing.assert_allclose(w, e.expected[0], atol=1e-2 * abs(e.expected[0]).max())


def test_the_preconditioner_is_exact_with_all_columns(equations, monkeypatch):
    """One product to find it out, and none for a right-hand side of zeros."""
    monkeypatch.setattr(_newton_factors, "_MOST_PRODUCTS", 2)
    e = equations
    factor = CoupledMachines(e.K, e.T, e.J, e.J.couplings(SIDE * (SIDE + 1) // 2), e.dual)
    e.check(factor.solve(e.rhs, e.sums), rtol=1e-4)
    w, nu = factor.solve(np.zeros_like(e.rhs), np.zeros_like(e.sums))
    assert not w.any()
    assert not nu.any()


def test_slow_convergence_is_reported(equations, monkeypatch):
    monkeypatch.setattr(_newton_factors, "_MOST_PRODUCTS", 1)
    e = equations
    factor = CoupledMachines(e.K, e.T, e.J, e.J.couplings(1), e.dual)
    with pytest.raises(SlowConvergenceError):
        factor.solve(e.rhs, e.sums)


def test_couplings_are_the_largest_columns_and_the_blocks(equations):
    J = equations.J
    gram, slices = J.gram(), equations.K.slices
    everything = J.couplings(SIDE * (SIDE + 1) // 2)
    np.testing.assert_allclose(everything.columns @ everything.columns.T, gram, rtol=1e-10)
    for block, rows in zip(everything.blocks, slices, strict=True):
        np.testing.assert_allclose(block, gram[rows, rows], rtol=1e-10)
    few = J.couplings(6).columns
    left = np.trace(gram) - np.sum(few * few)
    best = np.sort(np.sum(everything.columns**2, axis=0))[:-6].sum()
    assert best <= left * (1 + 1e-9) < 1.5 * best
