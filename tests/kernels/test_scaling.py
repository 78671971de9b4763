"""The scaling of features to the unit cube, against its definitions."""

from __future__ import annotations

import numpy as np
import pytest

from tessella.kernels import SCALINGS, UnitBox

RNG = np.random.default_rng(0)
COLUMNS = {
    "normal": RNG.standard_normal(700),
    "heavy tail": np.exp(4.0 * RNG.standard_normal(700)),
    "both tails": np.tan(3.1 * (RNG.random(700) - 0.5)),
    "a fifth is zero": np.where(RNG.random(700) < 0.2, 0.0, RNG.standard_normal(700)),
    "mostly zero": np.where(RNG.random(700) < 0.8, 0.0, RNG.exponential(size=700)),
    "binary": (RNG.random(700) < 0.1).astype(float),
    "three values": RNG.integers(0, 3, 700).astype(float),
    "huge": 1e300 * RNG.standard_cauchy(700).clip(-1e7, 1e7),
    "tiny": 1e-300 * RNG.random(700),
    "far from zero": 1e9 + RNG.random(700),
}


def middle_quantile(values, weight, x):
    """Weight below x and half of the weight at x, relative to all weight."""
    return (weight[values < x].sum() + 0.5 * weight[values == x].sum()) / weight.sum()


@pytest.fixture(params=COLUMNS, ids=str)
def values(request):
    return COLUMNS[request.param]


@pytest.mark.parametrize("scaling", SCALINGS)
def test_map_is_increasing_from_zero_to_one(values, scaling):
    box = UnitBox.fit(values[:, None], scaling=scaling)
    levels = np.unique(values)
    scaled = box.apply(levels[:, None])[:, 0]
    assert (scaled[0], scaled[-1]) == (0.0, 1.0)
    assert (np.diff(scaled) > 0).all()
    assert box.counts[0] <= 200
    assert (box.offset[0], box.feature_scale[0]) == (levels[0], 1.0)


def test_range_is_the_affine_map_to_the_last_bit(values):
    low, high = values.min(), values.max()
    expected = (values - low) / (high - low)
    assert (UnitBox.fit(values[:, None]).apply(values[:, None])[:, 0] == expected).all()


def test_quantile_is_near_the_middle_of_the_interval_that_a_value_fills(values):
    weight = RNG.integers(1, 4, len(values)).astype(float)
    box = UnitBox.fit(values[:, None], weight, scaling="quantile")
    levels = np.unique(values)
    middle = np.array([middle_quantile(values, weight, x) for x in levels])
    expected = (middle - middle[0]) / (middle[-1] - middle[0])
    found = box.apply(levels[:, None])[:, 0]
    tolerance = 1e-14 if len(levels) <= 200 else 0.0102
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance)


def test_value_that_fills_a_fifth_of_the_rows_gets_the_middle_of_its_interval():
    values = np.concatenate([np.zeros(1000), np.linspace(-3.0, 5.0, 4001)])
    box = UnitBox.fit(values[:, None], scaling="quantile")
    around = box.apply(np.array([[-0.002], [0.0], [0.002]]))[:, 0]
    np.testing.assert_allclose(around, [0.3, 0.4, 0.5], atol=2e-3)


def test_robust_formula(values):
    weight = RNG.integers(1, 4, len(values)).astype(float)
    copies = np.sort(np.repeat(values, weight.astype(int)))
    lower, median, upper = copies[
        np.ceil(np.array([0.25, 0.5, 0.75]) * len(copies)).astype(int) - 1
    ]
    half = 0.5 * (upper - lower)
    if half == 0:
        half = np.mean(np.abs(copies / 1e10 - median / 1e10)) * 1e10

    def formula(x):
        z = (x - median) / half
        if abs(z) <= 1:
            return 0.5 + 0.25 * z
        return 1 - 0.25 / z if z > 0 else -0.25 / z

    levels = np.unique(values)
    plain = np.array([formula(x) for x in levels])
    expected = (plain - plain[0]) / (plain[-1] - plain[0])
    found = UnitBox.fit(values[:, None], weight, scaling="robust").apply(levels[:, None])[:, 0]
    np.testing.assert_allclose(found, expected, rtol=0, atol=5e-3)
    inner = np.abs(levels - median) <= half
    np.testing.assert_allclose(found[inner], expected[inner], rtol=0, atol=1e-9)


@pytest.mark.parametrize("scaling", SCALINGS)
def test_weights_are_copies_to_the_last_bit(values, scaling):
    count = RNG.integers(1, 5, len(values))
    weighted = UnitBox.fit(values[:, None], count.astype(float), scaling=scaling)
    copied = UnitBox.fit(np.repeat(values, count)[:, None], scaling=scaling)
    assert weighted == copied
    assert hash(weighted) == hash(copied)
    assert weighted == UnitBox.fit(np.repeat(values, count)[::-1, None], scaling=scaling)
    assert UnitBox.fit(values[1:, None] * 2, scaling=scaling) != weighted


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("scaling", SCALINGS)
def test_columns_together_have_the_maps_of_each_of_them(monkeypatch, scaling, weighted):
    """Columns are sorted in blocks, and those with the same number of values come together."""
    monkeypatch.setattr("tessella.kernels._scaling._BLOCK_ENTRIES", 3 * 700)
    columns = [np.full(700, 2.0), *COLUMNS.values(), RNG.standard_normal(700)]
    X = np.column_stack(columns)
    weight = RNG.integers(1, 4, 700).astype(float) if weighted else np.ones(700)
    whole = UnitBox.fit(X, weight, scaling=scaling)
    assert whole.kept.tolist() == list(range(1, len(columns)))
    alone = [UnitBox.fit(X[:, [j]], weight, scaling=scaling) for j in whole.kept]
    np.testing.assert_array_equal(whole.knots, np.concatenate([box.knots for box in alone]))
    np.testing.assert_array_equal(whole.heights, np.concatenate([box.heights for box in alone]))
    np.testing.assert_array_equal(whole.counts, np.concatenate([box.counts for box in alone]))


@pytest.mark.parametrize("scaling", ["quantile", "robust"])
def test_values_that_differ_by_rounding_are_one_value(scaling):
    clean = np.repeat([0.3, 1.0, 7.0], [40, 30, 30])
    noisy = clean.copy()
    noisy[:20] = 0.1 + 0.2
    box = UnitBox.fit(noisy[:, None], scaling=scaling)
    np.testing.assert_allclose(
        box.apply(noisy[:, None]),
        UnitBox.fit(clean[:, None], scaling=scaling).apply(clean[:, None]),
        atol=1e-12,
    )


def test_outside_the_training_range():
    X = np.random.default_rng(1).exponential(size=(500, 1))
    far = np.array([[-1e6], [X.max() + 1e6], [1e300]])
    span = np.ptp(X)
    line = UnitBox.fit(X).apply(far)[:, 0]
    np.testing.assert_allclose(line, (far[:, 0] - X.min()) / span, rtol=1e-12)
    for scaling in ("quantile", "robust"):
        box = UnitBox.fit(X, scaling=scaling, feature_scale=np.array([0.5]))
        assert box.apply(far)[:, 0].tolist() == [0.25, 0.75, 0.75]


@pytest.mark.parametrize("scaling", SCALINGS)
def test_feature_scale_pulls_to_the_centre(scaling):
    X = np.random.default_rng(2).standard_normal((300, 3))
    scale = np.array([1.0, 0.3, 0.01])
    plain = UnitBox.fit(X, scaling=scaling).apply(X)
    box = UnitBox.fit(X, scaling=scaling, feature_scale=scale)
    np.testing.assert_allclose(box.apply(X), 0.5 + scale * (plain - 0.5), atol=1e-15)
    np.testing.assert_allclose(box.feature_scale, scale, atol=1e-15)
    np.testing.assert_allclose(box.invert(box.apply(X)), X, atol=1e-12)


@pytest.mark.parametrize("scaling", SCALINGS)
def test_constant_columns(scaling):
    X = np.column_stack([np.full(9, 3.0), np.arange(9.0) ** 2, np.full(9, -1.0)])
    dropped = UnitBox.fit(X, scaling=scaling)
    assert dropped.kept.tolist() == [1]
    kept = UnitBox.fit(X, scaling=scaling, keep_constant=True).apply(X + np.array([5.0, 0.0, 0.0]))
    np.testing.assert_array_equal(kept[:, [0, 2]], 0.0)
    np.testing.assert_array_equal(kept[:, [1]], dropped.apply(X))
    assert UnitBox.fit(X[:, [0]], scaling=scaling).apply(X[:, [0]]).shape == (9, 0)


def test_one_feature_can_be_affine_and_another_one_curved():
    X = np.column_stack([np.arange(50) % 2, np.arange(50.0) ** 3])
    box = UnitBox.fit(X, scaling="quantile")
    assert box.counts.tolist() == [2, 50]
    np.testing.assert_array_equal(box.apply(X)[:, 0], X[:, 0])


def test_refusals():
    with pytest.raises(ValueError, match="scaling='rank' is unknown; use one of"):
        UnitBox.fit(np.arange(3.0)[:, None], scaling="rank")
    for scaling in SCALINGS:
        with pytest.raises(ValueError, match="range of feature 0 overflows"):
            UnitBox.fit(np.array([[-1.7e308], [1.7e308]]), scaling=scaling)


def test_the_first_feature_with_too_large_a_range_is_named():
    X = np.zeros((3, 4))
    X[0, [1, 3]], X[1, [1, 3]] = -1.7e308, 1.7e308
    with pytest.raises(ValueError, match="range of feature 1 overflows"):
        UnitBox.fit(X)


def test_robust_tails_are_compressed_up_to_their_last_knot():
    """Beyond half an interquartile range, z is at 1 - 1/(4z), here at 2**20 of them."""
    values = np.concatenate([np.linspace(-2.0, 2.0, 401), [2.0**20, 2.0**21]])[:, None]
    box = UnitBox.fit(values, scaling="robust")
    place = box.apply(np.array([[2.0**20 - 1.0], [2.0**20], [2.0**20 * 1.04]]))[:, 0]
    slopes = np.diff(place) / np.array([1.0, 2.0**20 * 0.04])
    assert slopes[0] > 1.5 * slopes[1]
