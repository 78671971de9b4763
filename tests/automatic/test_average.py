"""The greedy average, against all averages of so many members."""

from __future__ import annotations

from itertools import combinations_with_replacement

import numpy as np
import pytest

from tessella.automatic import greedy_average


def case(seed, entries=4, outputs=2):
    rng = np.random.default_rng(seed)
    Y = rng.normal(size=(25, outputs))
    held_out = [
        Y + rng.normal(size=Y.shape) * rng.uniform(0.2, 1.0) + 0.2 * rng.normal()
        for _ in range(entries)
    ]
    return held_out, Y, rng.uniform(0.2, 3.0, 25)


def error(weights, held_out, Y, weight):
    mean = sum(w * own for w, own in zip(weights, held_out, strict=True))
    return float(weight @ ((mean - Y) ** 2).sum(axis=1) / weight.sum())


def step_by_step(held_out, Y, weight, steps):
    """The same greedy choice with the errors of all averages computed anew."""
    chosen, best, best_error = [], None, np.inf
    for _ in range(steps):
        trials = [np.bincount([*chosen, k], minlength=len(held_out)) for k in range(len(held_out))]
        errors = [error(t / t.sum(), held_out, Y, weight) for t in trials]
        chosen.append(int(np.argmin(errors)))
        if min(errors) < best_error:
            best, best_error = trials[chosen[-1]] / len(chosen), min(errors)
    return best


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("steps", [1, 2, 7, 20])
def test_every_step_adds_the_best_entry(seed, steps):
    held_out, Y, weight = case(seed)
    found = greedy_average(held_out, Y, weight, steps)
    np.testing.assert_allclose(found, step_by_step(held_out, Y, weight, steps), atol=1e-12)
    assert found.sum() == pytest.approx(1.0)
    assert (found >= 0).all()


@pytest.mark.parametrize("seed", range(6))
def test_between_the_best_entry_and_the_best_average(seed):
    held_out, Y, weight = case(seed)
    singles = [error(row, held_out, Y, weight) for row in np.eye(4)]
    found = error(greedy_average(held_out, Y, weight, 6), held_out, Y, weight)
    assert found <= min(singles)
    picks = (
        np.bincount(own, minlength=4) / size
        for size in range(1, 7)
        for own in combinations_with_replacement(range(4), size)
    )
    best = min(error(weights, held_out, Y, weight) for weights in picks)
    assert best <= found + 1e-12
    assert found <= 1.05 * best


def test_one_step_is_the_best_entry():
    held_out, Y, weight = case(0)
    errors = [error(row, held_out, Y, weight) for row in np.eye(4)]
    np.testing.assert_array_equal(
        greedy_average(held_out, Y, weight, 1), np.eye(4)[np.argmin(errors)]
    )


def test_opposite_errors_cancel():
    Y = np.zeros((10, 1))
    wave = np.sin(np.arange(10.0))[:, None]
    noise = np.cos(3.0 * np.arange(10.0))[:, None]
    found = greedy_average([wave, -wave, 5.0 + noise], Y, np.ones(10), 20)
    np.testing.assert_allclose(found, [0.5, 0.5, 0.0])


def test_rows_count_by_their_weight():
    Y = np.zeros((2, 1))
    first, second = np.array([[0.0], [1.0]]), np.array([[1.0], [0.0]])
    for weight, expected in (([9.0, 1.0], [1.0, 0.0]), ([1.0, 9.0], [0.0, 1.0])):
        found = greedy_average([first, second], Y, np.array(weight), 1)
        np.testing.assert_array_equal(found, expected)


def test_a_perfect_entry_stays_alone():
    held_out, Y, weight = case(3)
    found = greedy_average([*held_out, Y.copy()], Y, weight, 20)
    np.testing.assert_array_equal(found, [0, 0, 0, 0, 1])
