"""The setting of the paper by name."""

from __future__ import annotations

import numpy as np
import pytest

from tessella import LearnedKernelSVC, LearnedKernelSVR
from tessella.estimators import paper_settings

PAPER = {"C": 10.0, "kernels": "tessellated", "degree": 1, "delta": 0.5, "scaling": "range"}


def test_values_of_the_paper():
    assert paper_settings("classification") == PAPER
    assert paper_settings("regression") == {**PAPER, "epsilon": 0.1}


@pytest.mark.parametrize(
    ("task", "estimator"), [("classification", LearnedKernelSVC), ("regression", LearnedKernelSVR)]
)
def test_estimators_accept_them(task, estimator):
    settings = paper_settings(task)
    model = estimator(**settings)
    assert {name: model.get_params()[name] for name in settings} == settings
    X = np.random.default_rng(0).random((40, 2))
    y = X[:, 0] * X[:, 1]
    model.fit(X, y > 0.25 if task == "classification" else y)
    assert model.gap_ <= model.tol
    assert getattr(model, "epsilon_", 0.1) == 0.1


def test_each_call_returns_a_new_dictionary():
    paper_settings("regression")["epsilon"] = 3.0
    assert paper_settings("regression")["epsilon"] == 0.1


def test_refusal():
    with pytest.raises(ValueError, match="task='ranking' is unknown; use one of"):
        paper_settings("ranking")
