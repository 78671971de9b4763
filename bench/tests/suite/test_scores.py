"""Errors and log-loss."""

import numpy as np
import pytest
from sklearn import metrics

from tessella_bench.suite import log_loss
from tessella_bench.suite._scores import scores


def test_regression_error_is_one_less_r2():
    rng = np.random.default_rng(0)
    y, predicted = rng.random(30), rng.random(30)
    found = scores("regression", y, predicted)
    assert found["r2"] == pytest.approx(metrics.r2_score(y, predicted))
    assert found["error"] == pytest.approx(1 - found["r2"])
    with pytest.raises(ValueError, match="not finite"):
        scores("regression", y, np.full(30, np.nan))


def test_classification_error():
    found = scores("classification", np.array(["a", "b", "a", "a"]), np.array(["a", "a", "a", "b"]))
    assert found == {"error": 0.5, "accuracy": 0.5}


def test_log_loss_is_that_of_scikit_learn():
    rng = np.random.default_rng(0)
    chances = rng.dirichlet([1.0, 1.0, 1.0], 40)
    y = rng.choice(["a", "b", "c"], 40)
    assert log_loss(y, chances, ["a", "b", "c"]) == pytest.approx(metrics.log_loss(y, chances))


def test_class_that_was_not_learned_costs_a_finite_loss():
    y = np.array(["a", "z"])
    found = log_loss(y, [[0.5, 0.5], [1.0, 0.0]], ["a", "b"])
    assert found == pytest.approx(-(np.log(0.5) + np.log(1e-6)) / 2)


def test_class_that_was_ruled_out_costs_a_finite_loss():
    found = log_loss(np.array([1]), [[1.0, 0.0]], [0, 1])
    assert found == pytest.approx(-np.log(1e-6 / (1 + 1e-6)))


def test_chances_that_are_no_numbers_are_refused():
    with pytest.raises(ValueError, match="not finite"):
        log_loss(np.array([1]), [[np.nan, 0.0]], [0, 1])
