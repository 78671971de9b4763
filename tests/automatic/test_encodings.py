"""Encodings of tables as features, by hand and against slow definitions."""

from __future__ import annotations

import numpy as np
import pytest

from tessella.automatic import fit_encoding

NAN = np.nan


def fit(categories, categorical, codes, y=None, weight=None):
    codes = np.asarray(codes, dtype=float)
    targets = np.zeros((len(codes), 1)) if y is None else np.asarray(y, dtype=float)
    weight = np.ones(len(codes)) if weight is None else np.asarray(weight, dtype=float)
    encoding = fit_encoding(categories, np.asarray(categorical), codes, targets, weight)
    return encoding, encoding.apply(codes)


# ---- numbers and gaps


def test_gaps_are_filled_with_the_median_and_marked():
    codes = [[1.0, 9.0], [2.0, NAN], [NAN, NAN], [4.0, NAN], [NAN, 7.0], [100.0, 8.0]]
    encoding, features = fit("one-hot", [False, False], codes)
    assert encoding.medians.tolist() == [2.0, 8.0]
    # The first column has two gaps, too few for an indicator; the second has three.
    assert encoding.gappy.tolist() == [1]
    assert features.tolist() == [
        [1.0, 9.0, 0.0],
        [2.0, 8.0, 1.0],
        [2.0, 8.0, 1.0],
        [4.0, 8.0, 1.0],
        [2.0, 7.0, 0.0],
        [100.0, 8.0, 0.0],
    ]
    np.testing.assert_array_equal(encoding.apply(np.array(codes)), features)
    assert encoding.groups.tolist() == [0, 1, 2]
    assert encoding.sources.tolist() == [0, 1, 1]


def test_a_column_without_any_value():
    encoding, features = fit("one-hot", [False, False], [[NAN, 1.0], [NAN, 2.0]])
    assert encoding.medians.tolist() == [0.0, 1.0]
    assert np.isfinite(features).all()


def test_medians_count_weights_as_copies():
    rng = np.random.default_rng(0)
    codes = rng.normal(size=(15, 2))
    codes[rng.random((15, 2)) < 0.2] = NAN
    weight = rng.integers(1, 5, 15)
    merged, _ = fit("one-hot", [False, False], codes, weight=weight)
    copies, _ = fit("one-hot", [False, False], np.repeat(codes, weight, axis=0))
    np.testing.assert_array_equal(merged.medians, copies.medians)
    np.testing.assert_array_equal(merged.gappy, copies.gappy)


@pytest.mark.parametrize("weighted", [False, True])
def test_medians_of_columns_without_gaps(weighted):
    """The smallest value with half of the weight at or below it."""
    rng = np.random.default_rng(1)
    codes = np.round(rng.normal(size=(31, 40)), 1)
    weight = rng.integers(1, 5, 31).astype(float) if weighted else np.full(31, 0.3)
    encoding, _ = fit("one-hot", np.zeros(40, dtype=bool), codes, weight=weight)
    expected = [
        min(x for x in column if 2.0 * weight[column <= x].sum() >= weight.sum())
        for column in codes.T
    ]
    assert encoding.medians.tolist() == expected


# ---- one-hot


def test_frequent_categories_have_a_column():
    column = np.array([0, 0, 0, 1, 1, 1, 1, 2, 2, 3, 3, 3, NAN, NAN, NAN])
    encoding, features = fit("one-hot", [True], column[:, None])
    (levels,) = encoding.levels
    assert sorted(levels.tolist()) == [-1, 0, 1, 3]  # -1 for gaps; 2 has two rows only
    for k, level in enumerate(levels):
        expected = np.isnan(column) if level < 0 else column == level
        np.testing.assert_array_equal(features[:, k], expected)
    new = encoding.apply(np.array([[2.0], [-1.0], [NAN], [3.0]]))
    assert new[0].tolist() == new[1].tolist() == [0.0] * 4  # rare and unknown: nothing is known
    assert new[2, levels.tolist().index(-1)] == 1.0
    assert new[3, levels.tolist().index(3)] == 1.0
    assert (new.sum(axis=1) == [0, 0, 1, 1]).all()


def test_of_two_categories_one_column_says_all():
    _, features = fit("one-hot", [True], np.repeat([0.0, 1.0], 4)[:, None])
    assert features.shape == (8, 1)
    assert set(features[:4, 0]) != set(features[4:, 0])
    gaps, features = fit("one-hot", [True], np.array([0, 0, 0, NAN, NAN, NAN])[:, None])
    assert features.shape == (6, 1)
    assert gaps.apply(np.array([[0.0], [NAN]])).ravel().tolist() in ([0.0, 1.0], [1.0, 0.0])
    # A third category that is rare keeps both columns, because it is neither of them.
    _, features = fit("one-hot", [True], np.array([0, 0, 0, 1, 1, 1, 2.0])[:, None])
    assert features.shape == (7, 2)


def test_at_most_thirty_columns_for_the_most_frequent_categories():
    counts = np.arange(3, 43)
    column = np.repeat(np.arange(40.0), counts)
    encoding, features = fit("one-hot", [True], column[:, None])
    assert encoding.levels[0].tolist() == list(range(10, 40))
    assert features.shape == (len(column), 30)


def test_levels_count_weights_as_copies():
    codes, weight = np.arange(6.0)[:, None], np.array([1, 2, 3, 4, 5, 2.9])
    encoding, _ = fit("one-hot", [True], codes, weight=weight)
    assert encoding.levels[0].tolist() == [2, 3, 4]


def test_groups_and_sources_of_mixed_tables():
    rng = np.random.default_rng(0)
    codes = np.column_stack(
        [rng.integers(0, 3, 60), rng.normal(size=60), rng.integers(0, 4, 60), rng.normal(size=60)]
    ).astype(float)
    codes[:5, 1] = NAN
    categorical = [True, False, True, False]
    encoding, features = fit("one-hot", categorical, codes)
    # Numbers, the indicator of gaps, then the categories; a group for each of them.
    assert encoding.groups.tolist() == [0, 1, 2, 3, 3, 3, 4, 4, 4, 4]
    assert encoding.sources.tolist() == [1, 3, 1, 0, 2]
    assert features.shape == (60, 10)
    encoding, features = fit("target", categorical, codes, np.eye(3)[rng.integers(0, 3, 60)])
    assert encoding.groups.tolist() == [0, 1, 2, 3, 3, 3, 4, 4, 4]
    assert encoding.sources.tolist() == [1, 3, 1, 0, 2]
    assert features.shape == (60, 9)
    assert len(encoding.apply(codes).T) == 9


# ---- means of the target


def shrunk(rows, y, weight, everything):
    """Mean target of some rows with ten rows of the mean of all."""
    total = np.average(y[everything], axis=0, weights=weight[everything])
    sums = (weight[rows, None] * y[rows]).sum(axis=0)
    return (sums + 10.0 * total) / (weight[rows].sum() + 10.0)


def test_codes_of_new_rows_are_shrunk_means():
    rng = np.random.default_rng(1)
    column = rng.integers(0, 4, 150).astype(float)
    column[:26] = NAN
    y, weight = rng.normal(size=(150, 1)), rng.uniform(0.5, 2.0, 150)
    encoding, _ = fit("target", [True], column[:, None], y, weight)
    everything = np.arange(150)
    for value in (0.0, 1.0, 2.0, 3.0, NAN):
        rows = np.flatnonzero(np.isnan(column) if np.isnan(value) else column == value)
        expected = shrunk(rows, y, weight, everything)
        np.testing.assert_allclose(encoding.apply(np.array([[value]]))[0], expected, rtol=1e-12)
    unknown = encoding.apply(np.array([[-1.0], [7.0]]))
    np.testing.assert_allclose(unknown[0], np.average(y, axis=0, weights=weight), rtol=1e-12)


def test_rare_categories_and_unknown_ones_get_the_mean_of_all_rows():
    """The mean of a few rows would tell a machine the target of each of them."""
    rng = np.random.default_rng(2)
    column = np.repeat([0.0, 1.0, 2.0], [9, 10, 41])
    y = rng.normal(size=(60, 1))
    encoding, features = fit("target", [True], column[:, None], y)
    np.testing.assert_allclose(features[:9], y.mean(), rtol=1e-12)
    assert (np.abs(features[9:] - y.mean()) > 1e-6).all()
    np.testing.assert_allclose(encoding.apply(np.array([[-1.0]])), y.mean(), rtol=1e-12)


def test_a_category_has_one_code():
    """Codes that differ within a category would depend on the targets of folds."""
    rng = np.random.default_rng(3)
    column = rng.integers(0, 3, 90).astype(float)
    _, features = fit("target", [True], column[:, None], rng.normal(size=(90, 1)))
    for value in range(3):
        assert len(np.unique(features[column == value])) == 1


def test_classes_become_frequencies():
    rng = np.random.default_rng(3)
    column = rng.integers(0, 3, 60).astype(float)
    two = np.eye(2)[rng.integers(0, 2, 60)]
    _, features = fit("target", [True], column[:, None], two)
    assert features.shape == (60, 1)  # of two classes, one says all
    many = np.eye(12)[np.repeat(np.arange(12), [30, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12])]
    column = rng.integers(0, 3, len(many)).astype(float)
    encoding, features = fit("target", [True], column[:, None], many)
    assert features.shape == (len(many), 8)
    frequent = [0, 5, 6, 7, 8, 9, 10, 11]  # the eight classes with the most rows
    rows = np.flatnonzero(column == 1.0)
    expected = shrunk(rows, many, np.ones(len(many)), np.arange(len(many)))[frequent]
    np.testing.assert_allclose(encoding.apply(np.array([[1.0]]))[0], expected, rtol=1e-12)


@pytest.mark.parametrize("categories", ["one-hot", "target"])
def test_a_table_without_categories_or_without_numbers(categories):
    numbers = np.arange(8.0).reshape(4, 2)
    _, features = fit(categories, [False, False], numbers)
    np.testing.assert_array_equal(features, numbers)
    encoding, features = fit(categories, [True], np.repeat([0.0, 1.0], 5)[:, None])
    assert features.shape == (10, 1)
    assert encoding.sources.tolist() == [0]
