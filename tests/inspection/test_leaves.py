"""What is shown of models that divide rows into leaves."""

from dataclasses import replace

import numpy as np
import pytest

from tessella import LearnedKernelSVR, TessellaRegressor
from tessella.automatic import EFFORTS
from tessella.inspection._html import automatic_html, model_html
from tessella.inspection._summary import facts_of

RNG = np.random.default_rng(0)
X = RNG.random((240, 2))
Y = np.sin(5.0 * X[:, 0]) + X[:, 1]


@pytest.fixture(scope="module")
def model():
    return LearnedKernelSVR(max_leaf_rows=60, n_partitions=3, tol=0.05).fit(X, Y)


def test_facts_of_a_model_of_several_leaves(model):
    facts, partition = facts_of(model), model.leaves_.partition
    assert (facts.n_leaves, facts.n_trees) == (partition.n_leaves, 3)
    assert facts.support_vectors == len(model.support_vectors_) == model.leaves_.ends[-1]
    assert facts.rows == 240
    assert f"<td>{partition.n_leaves} in 3 trees</td>" in model_html(model)
    whole = LearnedKernelSVR(tol=0.05).fit(X, Y)
    assert facts_of(whole).n_leaves is facts_of(whole).n_trees is None
    assert "leaves" not in model_html(whole)


def test_automatic_models_show_the_leaves_of_all_machines(monkeypatch):
    monkeypatch.setitem(EFFORTS, "low", replace(EFFORTS["low"], refined=0))
    assert "leaves" not in automatic_html(TessellaRegressor(effort="low").fit(X, Y))
    monkeypatch.setitem(EFFORTS, "low", replace(EFFORTS["low"], largest_leaf=100, trees=1))
    model = TessellaRegressor(effort="low").fit(X, Y)
    leaves = sum(member.partition.n_leaves for member in model.members_)
    trees = len(model.members_)
    assert f"{leaves} in {trees} tree{'s' if trees > 1 else ''}<" in automatic_html(model)
