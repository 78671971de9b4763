"""Descents that begin on few rows and go on with all rows of a fold."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import LbfgsInvHessProduct

from tessella.automatic._clock import Clock
from tessella.automatic._descent import LeaveOneOutObjective, Start, _updated
from tessella.automatic._encodings import ONE_HOT, fit_encoding
from tessella.automatic._entries import Machine
from tessella.automatic._kernels import ScaledKernel
from tessella.automatic._search import Search
from tessella.automatic._settings import SearchSettings
from tessella.automatic._spaces import Space
from tessella.automatic._targets import PlainTarget

M = 160
RNG = np.random.default_rng(0)
X = RNG.random((M, 4))
Y = (np.sin(6.0 * X[:, 1]) + X[:, 2] ** 2 + 0.1 * RNG.normal(size=M))[:, None]
ONES = np.ones(M)
SETTINGS = SearchSettings(
    screen_rows=80, compared=2, refined=2, first_rows=50, learned_strengths=(), svm_strengths=()
)


def space():
    encoding = fit_encoding(ONE_HOT, np.zeros(4, dtype=bool), X, Y, ONES)
    return Space.build(encoding, encoding.apply(X), ONES, "range")


def machine(scales=0.5):
    return Machine(space(), ScaledKernel("gaussian", np.full(4, scales)), 10.0)


def objective(rows, others):
    return LeaveOneOutObjective(machine(), rows, others, Y, ONES, ONES, Clock(None))


def search(Y=Y, **settings):
    return Search(
        spaces=[space()],
        families=["gaussian", "laplace"],
        rows=np.random.default_rng(3).permutation(M),
        Y=Y,
        targets=(PlainTarget(),),
        weight=ONES,
        left_out=ONES,
        settings=replace(SETTINGS, **settings),
        clock=Clock(None),
        tell=lambda *_: None,
        n_jobs=1,
    )


def diagonal_metric(diagonal):
    return LbfgsInvHessProduct(np.diag(diagonal), np.eye(len(diagonal)))


def test_the_metric_maps_the_change_of_the_gradient_to_the_step():
    rng = np.random.default_rng(0)
    step, change = rng.normal(size=(2, 5))
    change *= np.sign(step @ change)
    diagonal = rng.random(5) + 0.1
    metric = diagonal_metric(diagonal)
    updated = _updated(metric, step, change)
    np.testing.assert_allclose(updated @ change, step, atol=1e-12)
    found = updated.todense()
    left = np.eye(5) - np.outer(step, change) / (step @ change)
    expected = left @ np.diag(diagonal) @ left.T + np.outer(step, step) / (step @ change)
    np.testing.assert_allclose(found, expected, atol=1e-12)
    assert _updated(metric, step, -change) is metric


def test_scores_are_those_of_fits_to_the_rows():
    """Each of them, with the gradient or without, is that of a system with the intercept."""
    rows, others = np.arange(100), np.arange(100, M)
    descent = objective(rows, others)
    start = Start(descent.start, diagonal_metric(np.full(5, 0.1)))
    path = descent.descend_further(start, 3)
    assert len(path) >= 2
    for own, scores in path:
        A = own.space.coordinates
        system = np.ones((101, 101))
        system[:100, :100] = own.kernel.matrix(A[rows]) + np.eye(100) / own.C
        system[100, 100] = 0.0
        solved = np.linalg.solve(system, np.vstack([Y[rows], [[0.0]]]))
        expected = own.kernel.matrix(A[others], A[rows]) @ solved[:100] + solved[100]
        np.testing.assert_allclose(scores, expected, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("size", [0.1, 1e3])  # the second one is far too large a step
def test_every_evaluated_step_reduces_the_error(size):
    descent = objective(np.arange(100), np.arange(100, M))
    start = Start(descent.start, diagonal_metric(np.full(5, size)))
    path = descent.descend_further(start, 6)
    values = []
    for own, _ in path[:-1]:
        changes = own.kernel.scales - machine().kernel.scales
        values.append(descent(np.append(changes, np.log(own.C)))[0])
    assert len(values) > 2
    assert (np.diff(values) < 0).all()


def test_a_descent_from_few_rows_ends_near_the_minimum_of_all():
    few, rows = objective(np.arange(60), np.arange(0)), np.arange(120)
    start = few.minimised(10)
    whole = objective(rows, np.arange(120, M))
    best = whole(whole.minimised(60).x)[0]
    own, _ = whole.descend_further(start, 6)[-2]
    found = whole(np.append(own.kernel.scales - machine().kernel.scales, np.log(own.C)))[0]
    assert found < best + 0.1 * (whole(whole.start)[0] - best)


def test_no_fold_has_a_part_in_its_own_scales():
    """Other targets of the rows of a fold change the scales of all folds but its own."""
    one = search()
    fold = one._folds()
    rows, changed = one.rows, Y.copy()
    changed[rows[fold == 1]] = np.random.default_rng(1).normal(size=((fold == 1).sum(), 1))
    found = []
    for outputs in (Y, changed):
        own = search(outputs)
        starts = own._first_descents(machine(), fold)
        assert starts is not None
        assert all(start is not None for start in starts)
        parts = [(fold != k, start) for k, start in enumerate(starts)]
        found.append([own._descent(machine(), part)[-1][0] for part in parts])
    same = [np.array_equal(a.kernel.scales, b.kernel.scales) for a, b in zip(*found, strict=True)]
    assert same == [False, True, False, False]


def test_held_out_predictions_of_every_row_are_those_of_its_fold():
    entries = search().run()
    refined = [own for own in entries if own.stage == "descent"]
    assert refined
    own_search = search()
    fold, rows = own_search._folds(), own_search.rows
    for entry in refined:
        for k, own in enumerate(entry.machines):
            K = own.kernel.matrix(own.space.coordinates[rows])
            G = np.linalg.inv(K + np.eye(M) / own.C)
            H = G - np.outer(G.sum(axis=0), G.sum(axis=0)) / G.sum()
            expected = Y[rows] - H @ Y[rows] / np.diag(H)[:, None]
            np.testing.assert_allclose(
                entry.held_out[fold == k], expected[fold == k], rtol=1e-5, atol=1e-6
            )
