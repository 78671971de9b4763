"""Rows outside the range of the training data: counted, named, and announced when asked for."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from tessella import (
    ExtrapolationWarning,
    KernelDictionary,
    LearnedKernelSVR,
    MultipleKernelSVR,
    PolynomialKernels,
    TessellatedKernels,
)
from tessella.kernels import Gaussian

# Three features with ranges [0, 1], [10, 30] and one that is constant.
TRAINING = np.column_stack([np.linspace(0, 1, 30), 10 + 20 * np.linspace(0, 1, 30)[::-1] ** 2])
TRAINING = np.column_stack([TRAINING, np.full(30, 5.0)])
TARGET = TRAINING[:, 0] + 0.1 * TRAINING[:, 1]
ROWS = np.array(
    [
        [0.0, 10.0, 5.0],  # a corner of the box is inside
        [1.0, 30.0, 9.0],  # and a feature that was constant is not looked at
        [1.25, 20.0, 5.0],  # a quarter of the range above
        [-0.1, 50.0, 5.0],  # below in one feature, a whole range above in the other
        [0.5, 9.0, 5.0],  # 0.05 ranges below
    ]
)


def fitted(kernels="tessellated", **params):
    return LearnedKernelSVR(kernels=kernels, **params).fit(TRAINING, TARGET)


def test_counts():
    counted = fitted().count_outside(ROWS)
    assert (counted.n_rows, counted.n_outside, counted.n_beyond) == (5, 3, 1)
    assert counted.per_feature.tolist() == [2, 2, 0]
    np.testing.assert_allclose(counted.furthest, [0.25, 1.0, 0.0])
    assert counted.feature_names == ("x0", "x1", "x2")


@pytest.mark.parametrize("standardise", [True, False])
@pytest.mark.parametrize("make", [LearnedKernelSVR, MultipleKernelSVR])
def test_counts_are_those_of_the_data_whatever_the_kernels_see(make, standardise):
    few = KernelDictionary([Gaussian(1.0), Gaussian(9.0, features=1)], standardise=standardise)
    counted = make(kernels=few).fit(TRAINING, TARGET).count_outside(ROWS)
    assert (counted.n_rows, counted.n_outside, counted.n_beyond) == (5, 3, 0)
    assert counted.per_feature.tolist() == [2, 2, 0]
    np.testing.assert_allclose(counted.furthest, [0.25, 1.0, 0.0])


def test_training_rows_are_inside(every_case):
    model, X, y = every_case
    counted = clone(model).fit(X, y).count_outside(X)
    assert counted.n_outside == 0
    assert str(counted) == f"All {len(X)} rows lie within the range of the training data."


def test_message_names_rows_features_and_rule():
    names = ["height", "weight", "age"]
    model = LearnedKernelSVR(warn_outside=True)
    model.fit(pd.DataFrame(TRAINING, columns=names), TARGET)
    with pytest.warns(ExtrapolationWarning) as caught:
        model.predict(pd.DataFrame(ROWS, columns=names))
    assert str(caught[0].message) == (
        "3 of 5 rows lie outside the range of the training data, mostly in 'height' (2 rows, by "
        "up to 0.25 times its range), 'weight' (2 rows, by up to 1 times its range). 1 row of "
        "them is beyond 0.5 times that range, where the kernel goes on as a polynomial of degree "
        "1 (out_of_box='extrapolate')."
    )
    assert caught[0].filename == __file__


@pytest.mark.parametrize(
    ("kernels", "rule"),
    [
        (TessellatedKernels(2, 0.5), r"polynomial of degree 2 \(out_of_box='extrapolate'\)"),
        (TessellatedKernels(1, 0.5, out_of_box="clip"), r"stays constant \(out_of_box='clip'\)"),
        (TessellatedKernels(1, 0.5, out_of_box="error"), "refuses points"),
        (TessellatedKernels(1, 2.0), "None of them is beyond 2 times that range"),
        ("polynomial", "There the kernel is given by the same formula"),
        (KernelDictionary([Gaussian(1.0)]), "There the kernel is given by the same formula"),
        (
            PolynomialKernels(1) + TessellatedKernels(1, 0.5, out_of_box="clip"),
            r"beyond 0.5 times that range, where .* stays constant",
        ),
    ],
    ids=str,
)
def test_rule_is_that_of_the_kernel_set(kernels, rule):
    assert re.search(rule, str(fitted(kernels).count_outside(ROWS)))


def test_silent_unless_asked_and_when_nothing_is_outside():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted().predict(ROWS)
        fitted(warn_outside=True).predict(TRAINING)


def test_warning_changes_no_prediction():
    with pytest.warns(ExtrapolationWarning):
        warned = fitted(warn_outside=True).predict(ROWS)
    np.testing.assert_array_equal(warned, fitted().predict(ROWS))


def test_refusals():
    with pytest.raises(NotFittedError):
        LearnedKernelSVR().count_outside(ROWS)
    with pytest.raises(ValueError, match="X has 2 features"):
        fitted().count_outside(ROWS[:, :2])
