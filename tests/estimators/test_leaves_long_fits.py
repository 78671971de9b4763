"""Long fits in leaves: checkpoints, Ctrl-C, limits of time, what is printed, temporary files."""

from __future__ import annotations

import os
import signal
import tempfile
import tracemalloc
import warnings

import numpy as np
import pytest
from estimators.leaf_cases import (
    CASES,
    FEW,
    LEAVES,
    NEW,
    SIGN,
    X,
    Y,
    base_scores,
    scores,
    slow_scores,
    slow_value,
)
from persistence.common import gaps_in, manifest_of
from reference.processes import needs_fork
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from tessella import LearnedKernelRidge, LearnedKernelSVC, LearnedKernelSVR, MultipleKernelSVC
from tessella.estimators import CheckpointError
from tessella.solvers import Monitor

NAMES = ("three classes", "regression", "ridge", "weights")
TIGHT = 1e-5


class Stopping(Monitor):
    """Does something after some leaves of a pass over all of them, or at a record."""

    def __init__(self, action, *, leaf=None, record=None, in_pass=1):
        self.action, self.at_leaf, self.at_record = action, leaf, record
        self.in_pass = in_pass
        self.passes = 0

    def leaf(self, done, total, answer):
        self.passes += done == 1
        if done == self.at_leaf and self.passes == self.in_pass:
            self.action()

    def record(self, record, answer):
        if record.iteration == self.at_record:
            self.action()


class Seen(Monitor):
    """The records of a run, and its phases."""

    def __init__(self):
        self.records, self.phases = [], []

    def phase(self, text):
        self.phases.append(text)

    def record(self, record, answer):
        self.records.append(record)


def interrupt():
    raise KeyboardInterrupt


def fail():
    raise OSError("of a test")


@pytest.fixture
def scratch(monkeypatch, tmp_path):
    """The folder in which temporary folders are made."""
    folder = tmp_path / "scratch"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", os.fspath(folder))
    return folder


@pytest.fixture
def mapped(tmp_path):
    np.save(tmp_path / "X.npy", X)
    return np.load(tmp_path / "X.npy", mmap_mode="r")


@pytest.fixture
def always(monkeypatch):
    """Lets a checkpoint be written after every leaf and at every record."""
    monkeypatch.setattr("tessella.estimators._checkpoint.INTERVAL", 0.0)


# ---------------------------------------------------------------------------------- checkpoints


@pytest.mark.parametrize("name", NAMES)
def test_a_fit_goes_on_from_its_checkpoint(name, tmp_path):
    model, y = CASES[name]
    path = tmp_path / "fit.ckpt"
    model = clone(model).set_params(tol=TIGHT, checkpoint=path)
    with pytest.warns(ConvergenceWarning, match=r"interrupted.*go on from the checkpoint"):
        part = clone(model)._fit(X, y, callback=Stopping(interrupt, record=0))
    assert not manifest_of(path)["finished"]
    seen = Seen()
    model._fit(X, y, callback=seen)
    assert model.history_[: len(part.history_)] == part.history_
    # The kernel of the checkpoint is known, so that none is learned on a sample.
    assert not [text for text in seen.phases if text.startswith("first kernel")]
    assert seen.records[0].gap <= part.gap_ * (1 + 1e-6)
    assert model.gap_ <= TIGHT
    whole = clone(model).set_params(checkpoint=None).fit(X, y)
    assert model.objective_ == pytest.approx(whole.objective_, rel=2 * TIGHT)
    assert slow_value(model, X, y) == pytest.approx(model.objective_, rel=1e-7)
    assert manifest_of(path)["finished"]
    assert list(tmp_path.iterdir()) == [path]


def test_a_finished_fit_is_certified_again_and_no_more(tmp_path):
    model = clone(CASES["ridge"][0]).set_params(checkpoint=tmp_path / "fit.ckpt").fit(X, Y)
    seen = Seen()
    again = clone(model)._fit(X, Y, callback=seen)
    assert again.objective_ <= model.objective_ * (1 + 1e-12)
    assert len(seen.records) == 1
    assert scores(again, NEW) == pytest.approx(scores(model, NEW), abs=0.05)


@needs_fork
@pytest.mark.parametrize("stored", [False, True], ids=["in memory", "on disk"])
def test_a_fit_that_is_killed_within_its_first_pass_goes_on(
    stored, always, scratch, mapped, tmp_path
):
    path, rows = tmp_path / "fit.ckpt", mapped if stored else X
    model = LearnedKernelSVR(checkpoint=path, tol=TIGHT, **LEAVES)
    child = os.fork()
    if child == 0:
        try:
            die = Stopping(lambda: os.kill(os.getpid(), signal.SIGKILL), leaf=4)
            clone(model)._fit(rows, Y, callback=die)
        finally:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status)
    assert os.WTERMSIG(status) == signal.SIGKILL
    assert not manifest_of(path)["finished"]
    assert len(gaps_in(path)) == 1
    assert len(list(scratch.iterdir())) == stored
    seen = Seen()
    model._fit(rows, Y, callback=seen)
    whole = clone(model).set_params(checkpoint=None).fit(X, Y)
    assert model.gap_ <= TIGHT
    assert model.objective_ == pytest.approx(whole.objective_, rel=2 * TIGHT)
    # What the killed process has left is gone.
    assert not list(scratch.iterdir())
    assert {own.name for own in tmp_path.iterdir()} == {"fit.ckpt", "scratch", "X.npy"}


def test_leaves_that_are_done_are_in_the_checkpoint(always, tmp_path):
    """With the leaves of half a pass, the next fit begins below the value of constants."""
    path = tmp_path / "fit.ckpt"
    model = LearnedKernelRidge(checkpoint=path, **LEAVES)
    with pytest.raises(OSError, match="of a test"):
        model._fit(X, Y, callback=Stopping(fail, leaf=8))
    model.set_params(max_iter=0)
    with pytest.warns(ConvergenceWarning):
        half = clone(model).fit(X, Y)
    with pytest.warns(ConvergenceWarning):
        none = clone(model).set_params(checkpoint=None).fit(X, Y)
    assert half.objective_ < none.objective_
    assert slow_value(half, X, Y) == pytest.approx(half.objective_, rel=1e-7)


def test_a_checkpoint_within_a_pass_adds_no_record(always, tmp_path):
    model = LearnedKernelRidge(checkpoint=tmp_path / "fit.ckpt", **LEAVES).fit(X, Y)
    assert [own.iteration for own in model.history_] == list(range(len(model.history_)))
    plain = LearnedKernelRidge(**LEAVES).fit(X, Y)
    assert len(plain.history_) == len(model.history_)


def unfinished(path, **options):
    model = LearnedKernelRidge(checkpoint=path, **(LEAVES | options))
    with pytest.warns(ConvergenceWarning):
        clone(model).set_params(max_iter=0).fit(X, Y)
    return model


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"X": X * [1.0, 1.0, 1.001]}, "rows and scaling"),
        ({"y": Y + 1e-9 * np.arange(len(Y))}, "rows"),
        ({"weight": np.where(np.arange(len(X)) == 3, 2.0, 1.0)}, "rows"),
        ({"C": 5.0}, "parameters"),
        ({"max_leaf_rows": 150}, "parameters"),
        ({"n_partitions": 1}, "parameters"),
        ({"partition": "median"}, "parameters"),
        ({"degree": 2}, "parameters"),
    ],
    ids=str,
)
def test_the_checkpoint_of_another_fit_is_refused(change, what, tmp_path):
    model = unfinished(tmp_path / "fit.ckpt")
    before = (tmp_path / "fit.ckpt").read_bytes()
    rows, y, weight = (change.get(k, v) for k, v in (("X", X), ("y", Y), ("weight", None)))
    params = {k: v for k, v in change.items() if k not in ("X", "y", "weight")}
    with pytest.raises(CheckpointError, match=rf"another fit.*it has other {what}\."):
        model.set_params(**params).fit(rows, y, sample_weight=weight)
    assert (tmp_path / "fit.ckpt").read_bytes() == before


def test_another_order_and_other_limits_are_the_same_fit(mapped, tmp_path):
    model = unfinished(tmp_path / "fit.ckpt")
    order = np.random.default_rng(0).permutation(len(X))
    model.set_params(tol=1e-4, n_jobs=2, time_limit=1e3).fit(X[order], Y[order])
    assert model.gap_ <= 1e-4
    other = unfinished(tmp_path / "other.ckpt").fit(mapped, Y)
    assert other.gap_ <= other.tol


def test_text_labels_are_a_part_of_the_rows(tmp_path):
    model = LearnedKernelSVC(checkpoint=tmp_path / "fit.ckpt", max_iter=0, **LEAVES)
    with pytest.warns(ConvergenceWarning):
        model.fit(X, SIGN)
    with pytest.raises(CheckpointError, match="it has other rows"):
        model.fit(X, np.where(SIGN == "yes", "no", "yes"))


# ------------------------------------------------------------------------------ Ctrl-C and time


@pytest.mark.parametrize("name", NAMES)
def test_ctrl_c_keeps_a_model_that_says_what_it_is_worth(name):
    model, y = CASES[name]
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        part = clone(model)._fit(X, y, callback=Stopping(interrupt, leaf=5))
    assert part.status_ == "interrupted"
    assert slow_value(part, X, y) == pytest.approx(part.objective_, rel=1e-7)
    assert scores(part, NEW) == pytest.approx(slow_scores(part, NEW), rel=1e-8, abs=1e-8)
    assert part.lower_bound_ <= clone(model).fit(X, y).objective_ <= part.objective_
    ends = part.leaves_.ends
    assert ends[4] > 0
    assert ends[4] == ends[-1]  # the others have constants


@pytest.mark.parametrize("name", ["three classes", "ridge"])
def test_ctrl_c_in_a_later_pass_keeps_the_pass_before(name):
    model, y = CASES[name]
    model = clone(model).set_params(tol=1e-12)
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        part = clone(model)._fit(X, y, callback=Stopping(interrupt, leaf=2, in_pass=2))
    assert slow_value(part, X, y) == pytest.approx(part.objective_, rel=1e-7)
    assert part.score(X, y) > 0.9


def test_ctrl_c_within_the_machines_of_a_leaf_ends_the_pass(monkeypatch):
    """The solver of the machines turns Ctrl-C into a status, which is not that of one leaf."""
    count = [0]
    solve = "tessella.svm._dual._DualSolver.alternate"
    from tessella.svm import _dual

    alternate = _dual._DualSolver.alternate
    running = [False]

    def interrupted(self, *arguments):
        if running[0]:
            count[0] += 1
            raise KeyboardInterrupt
        return alternate(self, *arguments)

    class Begin(Monitor):
        def phase(self, text):
            running[0] = text.startswith("SVM")

    monkeypatch.setattr(solve, interrupted)
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        model = LearnedKernelSVR(**LEAVES)._fit(X, Y, callback=Begin())
    assert count == [1]
    assert model.status_ == "interrupted"
    assert model.predict(NEW) == pytest.approx(slow_scores(model, NEW)[:, 0])


def test_ctrl_c_before_there_are_leaves_ends_the_fit(monkeypatch):
    """The base function alone is no model of the rows, even if its fit has kept one."""
    fit = LearnedKernelRidge.fit

    def interrupted(self, *arguments, **options):
        fit(self, *arguments, **options)
        self.status_ = "interrupted"
        return self

    model = LearnedKernelRidge(**LEAVES)
    monkeypatch.setattr(LearnedKernelRidge, "fit", interrupted)
    with pytest.raises(KeyboardInterrupt):
        model._fit(X, Y)
    assert not hasattr(model, "kernel_")


def test_without_time_there_are_the_base_function_and_constants():
    with pytest.warns(ConvergenceWarning, match="time"):
        model = LearnedKernelSVR(time_limit=1e-6, **LEAVES).fit(X, Y)
    assert model.status_ == "time limit"
    assert not len(model.support_)
    assert np.isfinite(model.objective_)
    assert slow_value(model, X, Y) == pytest.approx(model.objective_, rel=1e-7)
    found = model.predict(NEW) - base_scores(model, NEW)[:, 0]
    assert set(np.round(found, 9)) <= set(
        np.round([np.mean([a, b]) for a in model.intercept_ for b in model.intercept_], 9)
    )


def test_no_iterations_and_few_of_them():
    for max_iter in (0, 1, 2):
        with pytest.warns(ConvergenceWarning):
            model = LearnedKernelRidge(max_iter=max_iter, tol=1e-9, **LEAVES).fit(X, Y)
        assert len(model.history_) <= max_iter + 1
        assert model.status_ == "iteration limit"
        assert slow_value(model, X, Y) == pytest.approx(model.objective_, rel=1e-7)


def test_a_failing_fit_leaves_the_model_before():
    model = LearnedKernelRidge(**LEAVES).fit(X, Y)
    before = dict(vars(model))
    with pytest.raises(OSError, match="of a test"):
        model._fit(X, Y[::-1].copy(), callback=Stopping(fail, leaf=2))
    assert vars(model) == before


# ------------------------------------------------------------------------------- what is printed


def test_a_line_for_each_step(capsys, mapped, scratch):
    LearnedKernelRidge(verbose=1, **LEAVES).fit(X, Y)
    printed = capsys.readouterr().out
    assert "leaves of 120 rows, 1 at a time: at most about" in printed
    assert "GiB of memory" in printed
    assert "temporary files" not in printed
    assert "iter" in printed
    LearnedKernelRidge(verbose=1, **LEAVES).fit(mapped, Y)
    assert "GiB in temporary files" in capsys.readouterr().out


def test_a_live_display(capsys):
    pytest.importorskip("rich")
    LearnedKernelRidge(verbose=2, **LEAVES).fit(X, Y)
    assert "done" in capsys.readouterr().out


# ------------------------------------------------------------------------------- temporary files


def test_temporary_folders_are_gone_after_a_fit(scratch, mapped):
    found = []
    watch = Stopping(lambda: found.append(list(scratch.iterdir())), leaf=1)
    LearnedKernelRidge(**LEAVES)._fit(mapped, Y, callback=watch)
    assert [len(own) for own in found] == [1]
    assert not list(scratch.iterdir())


@pytest.mark.parametrize("error", [OSError("of a test"), KeyboardInterrupt()], ids=repr)
@pytest.mark.parametrize("place", [{"leaf": 3}, {"record": 0}], ids=str)
def test_temporary_folders_are_gone_after_an_exception(error, place, scratch, mapped):
    def stop():
        assert len(list(scratch.iterdir())) == 1
        raise error

    model = LearnedKernelRidge(tol=1e-9, **LEAVES)
    if isinstance(error, KeyboardInterrupt):
        with pytest.warns(ConvergenceWarning, match="interrupted"):
            model._fit(mapped, Y, callback=Stopping(stop, **place))
    else:
        with pytest.raises(OSError, match="of a test"):
            model._fit(mapped, Y, callback=Stopping(stop, **place))
    assert not list(scratch.iterdir())


def test_temporary_folders_are_gone_if_the_rows_fail(scratch, mapped, monkeypatch):
    """An error in the second pass, when the folder is there already."""
    from tessella.rows import ArraySource

    batches, count = ArraySource.batches, [0]

    def failing(self):
        count[0] += 1
        yield from batches(self)
        if count[0] == 2:
            assert len(list(scratch.iterdir())) == 1
            raise OSError("of a test")

    monkeypatch.setattr(ArraySource, "batches", failing)
    with pytest.raises(OSError, match="of a test") as caught:
        LearnedKernelRidge(**LEAVES).fit(mapped, Y)
    assert count == [2]
    assert not list(scratch.iterdir())
    assert caught.tb is not None  # which keeps all objects of the fit


def test_memory_of_a_fit_from_disk_does_not_grow_with_the_rows(monkeypatch, scratch, tmp_path):
    """Rows of 38 MB in float64 are never in memory together, and neither is a tree of leaves."""
    monkeypatch.setattr("tessella.rows._source._BATCH_BYTES", 1 << 20)
    monkeypatch.setattr("tessella.estimators._leaf_store._COARSE_BYTES", 1 << 20)
    defaults = {"expected_bytes": 0, "folder": None, "buffer_bytes": 1 << 20}
    from tessella.rows import LeavesOnDisk

    order = ("folder", "buffer_bytes", "expected_bytes")
    monkeypatch.setattr(LeavesOnDisk.__init__, "__defaults__", tuple(defaults[k] for k in order))
    rng = np.random.default_rng(0)
    m, n = 100_000, 48
    np.save(tmp_path / "X.npy", rng.random((m, n), dtype=np.float32))
    rows = np.load(tmp_path / "X.npy", mmap_mode="r")
    y = rng.random(m, dtype=np.float32)
    model = LearnedKernelRidge(
        kernels="gaussian", max_leaf_rows=300, n_partitions=1, partition="median", n_jobs=1
    ).set_params(max_iter=0)
    tracemalloc.start()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model._fit(rows, y)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert model.leaves_.n_leaves >= 330
    assert peak < 0.5 * 8 * m * n
    assert not list(scratch.iterdir())


def test_the_average_of_kernels_is_interrupted_too():
    model = MultipleKernelSVC(10.0, FEW, weighting="average", **LEAVES)
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        part = model._fit(X, SIGN, callback=Stopping(interrupt, leaf=2))
    assert slow_value(part, X, SIGN) == pytest.approx(part.objective_, rel=1e-7)
