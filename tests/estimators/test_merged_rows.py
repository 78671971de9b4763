"""Equal rows are one row with the sum of their weights, however they are given."""

from __future__ import annotations

import numpy as np
import pytest

from tessella import LearnedKernelSVC, LearnedKernelSVR


@pytest.mark.parametrize("estimator", [LearnedKernelSVC(), LearnedKernelSVR()], ids=str)
def test_weights_add_up_to_the_same_bits_in_any_order(estimator):
    rng = np.random.default_rng(0)
    X = np.repeat(rng.random((20, 2)), 3, axis=0)
    y = np.sin(6 * X[:, 0]) > X[:, 1]
    weight = np.tile([0.1, 0.2, 0.3], 20)
    assert (0.1 + 0.2) + 0.3 != (0.3 + 0.2) + 0.1
    answers = set()
    for order in (np.arange(60), np.arange(60)[::-1], rng.permutation(60), rng.permutation(60)):
        model = estimator.fit(X[order], y[order], sample_weight=weight[order])
        numbers = np.concatenate([model.intercept_, model.P_.ravel(), np.sort(model.dual_coef_[0])])
        answers.add((model.objective_, model.gap_, *numbers.tolist()))
    assert len(answers) == 1
