"""Checkpoints: what a fit leaves on the disk, who may go on from it, and what is refused."""

import io
import itertools
import json
import os
import time
import warnings

import numpy as np
import pytest
from persistence.common import (
    FEW,
    SIGN,
    TARGET,
    X,
    gaps_in,
    manifest_of,
    members_of,
    sum_of_sets,
)
from persistence.test_refusals import rewrite, write
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import tessella
from tessella import (
    IntegralKernels,
    KernelDictionary,
    LearnedKernelSVC,
    LearnedKernelSVR,
    MultipleKernelSVC,
    MultipleKernelSVR,
    PolynomialKernels,
    TessellatedKernels,
)
from tessella.estimators import CheckpointError
from tessella.persistence import ModelFileError

TIGHT = 1e-7


CASES = {
    "classification": (LearnedKernelSVC(solver="working-set"), SIGN),
    "regression": (LearnedKernelSVR(solver="working-set"), TARGET),
    "weights": (MultipleKernelSVC(10.0, FEW), SIGN),
    "weights regression": (MultipleKernelSVR(10.0), TARGET),
    "sum": (LearnedKernelSVC(kernels=sum_of_sets(), solver="working-set"), SIGN),
}


@pytest.fixture(params=CASES)
def case(request, tmp_path):
    """An estimator with a checkpoint, and its target."""
    model, y = CASES[request.param]
    return clone(model).set_params(tol=TIGHT, checkpoint=tmp_path / "fit.ckpt"), y


def interrupt_at(iteration):
    def callback(record):
        if record.iteration == iteration:
            raise KeyboardInterrupt

    return callback


def interrupted(model, y, iteration=1, rows=X, **options):
    with pytest.warns(ConvergenceWarning, match=r"interrupted.*go on from the checkpoint .*ckpt"):
        return clone(model)._fit(rows, y, callback=interrupt_at(iteration), **options)


def first_new_record(model, y, **options):
    """Where a fit starts: its first record of its own."""
    seen = []
    model._fit(X, y, callback=seen.append, **options)
    return seen[0]


def test_an_interrupted_fit_goes_on(case):
    model, y = case
    whole = clone(model).set_params(checkpoint=None).fit(X, y)
    cut = interrupted(model, y)
    assert not manifest_of(model.checkpoint)["finished"]
    again = clone(model)
    first = first_new_record(again, y)
    assert first.gap <= cut.gap_ * (1 + 1e-6)
    assert again.status_ == "optimal"
    assert again.objective_ == pytest.approx(whole.objective_, rel=2 * TIGHT)
    assert manifest_of(model.checkpoint)["finished"]


def test_history_and_counts_go_on(case):
    model, y = case
    cut = interrupted(model, y)
    again = clone(model).fit(X, y)
    earlier = len(cut.history_)
    assert again.history_[:earlier] == cut.history_
    assert [r.iteration for r in again.history_] == list(range(len(again.history_)))
    for name in ("time", "n_svm", "svm_iter", "n_newton"):
        values = [getattr(r, name) for r in again.history_]
        assert values == sorted(values)
    gaps = [r.gap for r in again.history_]
    assert all(b <= a * (1 + 1e-6) for a, b in itertools.pairwise(gaps))


def test_the_order_of_rows_and_the_way_to_solve_may_change(case):
    model, y = case
    cut = interrupted(model, y)
    order = np.random.default_rng(0).permutation(len(X))
    way = {"solver": "joint"} if "solver" in model.get_params() else {"weighting": "simple"}
    other = clone(model).set_params(**way, tol=1e-4, max_iter=500, time_limit=600.0, n_jobs=1)
    seen = []
    other._fit(X[order], y[order], callback=seen.append)
    assert seen[0].value <= cut.objective_ * (1 + 1e-6)
    assert seen[0].bound >= cut.lower_bound_ - 1e-6 * abs(cut.lower_bound_)
    assert other.status_ == "optimal"


def test_no_iterations_give_the_model_of_the_checkpoint(case):
    model, y = case
    cut = interrupted(model, y)
    again = clone(model).set_params(max_iter=0)
    with pytest.warns(ConvergenceWarning, match="iteration limit"):
        again.fit(X, y)
    np.testing.assert_allclose(again.predict(X), cut.predict(X), rtol=1e-9)
    assert again.gap_ == pytest.approx(cut.gap_, rel=1e-6)


OTHER_SUM = KernelDictionary(FEW[:2]) + TessellatedKernels()
CHANGES = [
    ("classification", {"C": 3.0}, "C, weights or epsilon"),
    ("classification", {"degree": 2}, "kernels"),
    ("classification", {"kernels": PolynomialKernels(2)}, "kernels"),
    ("regression", {"epsilon": 0.2}, "C, weights or epsilon"),
    ("regression", {"kernels": TessellatedKernels(delta=0.1)}, "kernels"),
    ("weights", {"C": 3.0}, "C, weights or epsilon"),
    ("weights", {"kernels": FEW[:2]}, "kernels"),
    ("weights", {"kernels": KernelDictionary(FEW, standardise=False)}, "kernels"),
    ("weights", {"weighting": "average"}, "kernels"),
    ("weights regression", {"epsilon": 0.2}, "C, weights or epsilon"),
    ("weights regression", {"weighting": "alignment"}, "kernels"),
    ("sum", {"C": 3.0}, "C, weights or epsilon"),
    ("sum", {"kernels__0__delta": 0.1}, "kernels"),
    ("sum", {"kernels__1__standardise": False}, "kernels"),
    ("sum", {"kernels": OTHER_SUM}, "kernels"),
]


@pytest.mark.parametrize(("case", "change", "what"), CHANGES, ids=repr, indirect=["case"])
def test_another_problem_is_refused(case, change, what):
    model, y = case
    interrupted(model, y)
    before = model.checkpoint.read_bytes()
    with pytest.raises(CheckpointError, match=f"of another fit.*other {what}.*delete"):
        clone(model).set_params(**change).fit(X, y)
    assert model.checkpoint.read_bytes() == before


def test_other_data_is_refused(case):
    model, y = case
    cut = interrupted(model, y)
    before = model.checkpoint.read_bytes()
    nudged = X.copy()
    nudged[7, 1] = np.nextafter(nudged[7, 1], np.inf)
    for rows, target, weight in ((nudged, y, None), (X[1:], y[1:], None), (X, y, np.arange(40.0))):
        with pytest.raises(CheckpointError, match="of another fit"):
            clone(model).fit(rows, target, sample_weight=weight)
    assert model.checkpoint.read_bytes() == before
    other = LearnedKernelSVR if "classes_" in vars(cut) else LearnedKernelSVC
    with pytest.raises(CheckpointError, match="other estimator"):
        other(checkpoint=model.checkpoint).fit(X, SIGN)


def test_a_finished_fit_gives_its_answer_again_and_then_its_place(case):
    model, y = case
    first = clone(model).fit(X, y)
    again = clone(model)
    record = first_new_record(again, y)
    assert record.gap <= TIGHT
    assert again.n_iter_ == 0
    assert again.objective_ == pytest.approx(first.objective_, rel=TIGHT)
    other = clone(model).set_params(C=3.0).fit(X, y)
    fresh = clone(model).set_params(C=3.0, checkpoint=None).fit(X, y)
    assert other.history_[0].iteration == 0
    assert len(other.history_) == len(fresh.history_)
    assert other.objective_ == fresh.objective_


def test_warm_start_serves_where_there_is_no_checkpoint(case):
    model, y = case
    cut = interrupted(model.set_params(warm_start=True), y)
    gap = cut.gap_
    model.checkpoint.unlink()
    assert first_new_record(cut, y).gap <= gap * (1 + 1e-6)


def test_blocks_are_stored(tmp_path):
    model = LearnedKernelSVC(kernels=sum_of_sets(), tol=TIGHT, checkpoint=tmp_path / "fit.ckpt")
    cut = interrupted(model, SIGN)
    pair = manifest_of(model.checkpoint)["pair"]
    assert pair["several"]
    members = members_of(model.checkpoint)
    stored = [np.load(io.BytesIO(members[name])) for name in pair["blocks"]]
    for array, block in zip(stored, cut.parameter_, strict=True):
        np.testing.assert_array_equal(array, block)


@pytest.mark.parametrize("weighting", ["average", "alignment", "performance"])
def test_weights_by_a_rule_have_checkpoints_too(weighting, tmp_path):
    path = tmp_path / "fit.ckpt"
    model = MultipleKernelSVC(10.0, FEW, weighting=weighting, tol=TIGHT, checkpoint=path)
    with pytest.warns(ConvergenceWarning, match="go on from the checkpoint"):
        cut = clone(model).set_params(tol=1e-15)._fit(X, SIGN, callback=interrupt_at(0))
    changed = {"average": "alignment"}.get(weighting, "average")
    with pytest.raises(CheckpointError, match="other kernels"):
        clone(model).set_params(weighting=changed).fit(X, SIGN)
    again = clone(model)
    assert first_new_record(again, SIGN).gap <= cut.gap_ * (1 + 1e-6)
    assert again.status_ == "optimal"
    np.testing.assert_array_equal(again.weights_, cut.weights_)


def test_writes_wait_for_their_time(tmp_path, monkeypatch):
    model, y = LearnedKernelSVC(checkpoint=tmp_path / "fit.ckpt"), SIGN
    model.set_params(solver="apd", tol=1e-13, max_iter=29)
    writes, clock = [], [0.0]
    original = os.replace
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])

    def counting(source, target):
        writes.append(clock[0])
        original(source, target)

    monkeypatch.setattr(os, "replace", counting)

    def tick(record):
        clock[0] = 10.0 * (record.iteration + 1)

    with pytest.warns(ConvergenceWarning, match="iteration limit"):
        clone(model)._fit(X, y, callback=tick)
    assert len(gaps_in(model.checkpoint)) == 30
    # Every 30 seconds, and at the end. A record is told of before its callback moves the clock.
    assert writes == [*np.arange(30.0, 300.0, 30.0), 300.0]


def test_a_callback_that_fails_leaves_the_checkpoint_written(case):
    model, y = case

    def fail(record):
        if record.iteration == 2:
            raise RuntimeError("mine")

    with pytest.raises(RuntimeError, match="mine"):
        clone(model)._fit(X, y, callback=fail)
    assert not manifest_of(model.checkpoint)["finished"]
    gaps = gaps_in(model.checkpoint)
    assert len(gaps) >= 2
    again = clone(model)
    assert first_new_record(again, y).gap <= gaps[-1] * (1 + 1e-6)


def test_a_full_disk_is_a_warning(case, monkeypatch):
    model, y = case

    def fail(*args):
        raise OSError(28, "No space left on device")

    minutes = itertools.count(0.0, 60.0)  # so that every record is written
    monkeypatch.setattr(time, "monotonic", lambda: next(minutes))
    monkeypatch.setattr(os, "fsync", fail)
    with pytest.warns(RuntimeWarning, match="No space left") as caught:
        fitted = clone(model).fit(X, y)
    assert len(caught) == 1
    assert fitted.status_ == "optimal"
    assert not list(model.checkpoint.parent.iterdir())


def test_early_stopping_goes_on_with_its_patience(tmp_path):
    model = LearnedKernelSVC(
        early_stopping=True,
        validation_fraction=0.3,
        n_iter_no_change=3,
        random_state=0,
        tol=1e-12,
        solver="frank-wolfe",
        checkpoint=str(tmp_path / "fit.ckpt"),
    )
    with pytest.warns(ConvergenceWarning, match="validation score"):
        first = clone(model).fit(X, SIGN)
    with pytest.warns(ConvergenceWarning, match="validation score"):
        again = clone(model).fit(X, SIGN)
    scores = first.validation_scores_
    assert (again.validation_scores_[: len(scores)] == scores).all()
    assert len(again.validation_scores_) == len(scores) + 1
    with pytest.raises(ValueError, match="integer random_state"):
        clone(model).set_params(random_state=None).fit(X, SIGN)


def waves(z, rows):
    phase = z @ rows.T
    return np.stack([np.cos(phase), np.sin(phase)], axis=-1)


def test_kernels_made_of_code_have_checkpoints_too(tmp_path):
    kernels = IntegralKernels(waves, lower=[-1.0] * 3, upper=[1.0] * 3, nodes=8)
    model = LearnedKernelSVC(kernels=kernels, tol=1e-6, checkpoint=tmp_path / "fit.ckpt")
    interrupted(model, SIGN)
    clone(model).fit(X, SIGN)
    assert manifest_of(model.checkpoint)["finished"]


def test_a_model_with_a_checkpoint_can_be_saved(case, tmp_path):
    model, y = case
    fitted = interrupted(model, y)
    tessella.save(fitted, tmp_path / "model.tsl")
    again = tessella.load(tmp_path / "model.tsl")
    assert again.checkpoint == str(model.checkpoint)
    assert (again.predict(X) == fitted.predict(X)).all()


# ---- refused to load


@pytest.fixture
def checkpoint(tmp_path):
    model = LearnedKernelSVC(tol=TIGHT, solver="working-set", checkpoint=tmp_path / "fit.ckpt")
    interrupted(model, SIGN)
    return model


def refused(model, message):
    before = model.checkpoint.read_bytes()
    with pytest.raises(CheckpointError, match=message) as caught:
        clone(model).fit(X, SIGN)
    text = str(caught.value)
    assert "\n" not in text
    assert model.checkpoint.name in text
    assert text.endswith("Delete it or give another path.")
    assert model.checkpoint.read_bytes() == before


def test_a_checkpoint_is_not_a_model_and_a_model_not_a_checkpoint(checkpoint, tmp_path):
    with pytest.raises(ModelFileError, match=r"the checkpoint of a fit, not a model.*max_iter=0"):
        tessella.load(checkpoint.checkpoint)
    tessella.save(LearnedKernelSVC().fit(X, SIGN), tmp_path / "fit.ckpt")
    refused(checkpoint, "a model file, not a checkpoint")


@pytest.mark.parametrize("content", [b"", b"a,b\n1,2\n", b"PK\x03\x04" + b"\0" * 50])
def test_foreign_files(checkpoint, content):
    checkpoint.checkpoint.write_bytes(content)
    refused(checkpoint, "not a Tessella checkpoint|truncated")


def test_truncated(checkpoint):
    whole = checkpoint.checkpoint.read_bytes()
    for length in (4, 100, len(whole) // 2, len(whole) - 1):
        checkpoint.checkpoint.write_bytes(whole[:length])
        refused(checkpoint, "truncated|damaged")


def test_tampered(checkpoint):
    path = checkpoint.checkpoint
    members = members_of(path)
    name = "arrays/w.npy"
    write(path, {**members, name: members[name][:-8] + np.float64(7.0).tobytes()})
    refused(checkpoint, "checksum")
    text = members["manifest.json"].replace(b'"finished": false', b'"finished": true')
    assert text != members["manifest.json"]
    write(path, {**members, "manifest.json": text})
    refused(checkpoint, "checksum")


def test_newer(checkpoint):
    path = checkpoint.checkpoint
    rewrite(path, members_of(path), format_version=3, tessella_version="9.1")
    refused(checkpoint, r"written by Tessella 9\.1")


def test_older(checkpoint):
    path = checkpoint.checkpoint
    rewrite(path, members_of(path), format_version=1, tessella_version="0.0")
    refused(checkpoint, r"Tessella 0\.0, format 1; this version reads formats from 2 on")


@pytest.mark.parametrize("field", ["pair", "history", "fingerprint", "validation_scores"])
@pytest.mark.parametrize("value", [None, {"P": "arrays/nothing.npy"}, 3])
def test_nonsense_in_the_manifest(checkpoint, field, value):
    path = checkpoint.checkpoint
    rewrite(path, members_of(path), **{field: value})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(CheckpointError):
            clone(checkpoint).fit(X, SIGN)


def test_parts_that_do_not_fit_together(checkpoint):
    path = checkpoint.checkpoint
    members = members_of(path)
    pair = json.loads(members["manifest.json"])["pair"]
    for wrong in ({"several": True}, {"blocks": []}, {"w": pair["blocks"][0]}):
        rewrite(path, dict(members), pair={**pair, **wrong})
        refused(checkpoint, "do not fit together")
