"""The layouts of dual coefficients, against loops over rows and machines."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tessella.estimators._layouts import DualLayouts, given_to_support, support_to_given
from tessella.estimators._machines import Machines, class_pairs
from tessella.estimators._training_set import TrainingSet


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 10_000), st.integers(2, 4))
def test_round_trips(seed, n_classes):
    rng = np.random.default_rng(seed)
    labels = np.concatenate([np.arange(n_classes), rng.integers(0, n_classes, 30)]).astype(float)
    X = rng.integers(0, 3, (len(labels), 2)).astype(float)  # with many equal rows
    weight = np.concatenate([np.ones(n_classes), rng.integers(0, 3, 30)])
    rows = TrainingSet.build(X, labels, weight)
    pairs = class_pairs(n_classes)
    machines = Machines.one_vs_one(rows.y, rows.weight, pairs)
    layouts = DualLayouts(rows.index, len(X), machines.rows)
    stacked = rng.standard_normal(machines.dual.size)
    as_given = layouts.stacked_to_given(stacked)
    np.testing.assert_array_equal(layouts.given_to_stacked(as_given), stacked)
    position = 0
    for k, pair in enumerate(pairs):
        for row in range(len(rows.y)):
            if rows.y[row] in pair:
                assert as_given[k, rows.index[row]] == stacked[position]
                position += 1
    assert position == len(stacked) == np.count_nonzero(as_given)
    support, coefficients = given_to_support(as_given)
    assert (np.diff(support) > 0).all()
    np.testing.assert_array_equal(rows.X[layouts.merged_rows(support)], X[support])
    np.testing.assert_array_equal(support_to_given(support, coefficients, len(X)), as_given)
