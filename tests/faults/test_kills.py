"""Processes that are killed while they write leave nothing that a later write does not remove."""

import os
import signal

import numpy as np
import pytest
from reference.processes import needs_fork

import tessella
from tessella import LearnedKernelSVC, LearnedKernelSVR

RNG = np.random.default_rng(0)
X = RNG.random((40, 2))
SIGN = np.where(X[:, 0] > X[:, 1], 1, -1)

pytestmark = needs_fork


def killed(work):
    """Run some work in a forked process, which has to end by SIGKILL."""
    child = os.fork()
    if child == 0:
        try:
            work()
        finally:
            os._exit(0)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status)
    assert os.WTERMSIG(status) == signal.SIGKILL


def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)


def die_in_write(work):
    """Run some work that ends when its first file is complete but not in its place."""

    def doomed():
        os.fsync = die
        work()

    killed(doomed)


def test_a_killed_save_leaves_the_old_model_and_the_next_save_nothing_else(tmp_path):
    old, new = LearnedKernelSVC().fit(X, SIGN), LearnedKernelSVR().fit(X, X[:, 0])
    path, other = tmp_path / "fit", tmp_path / "fit.2"
    for target in (path, other):
        tessella.save(old, target)
        die_in_write(lambda target=target: tessella.save(new, target))
    assert len(list(tmp_path.iterdir())) == 4
    assert (tessella.load(path).predict(X) == old.predict(X)).all()
    tessella.save(new, path)  # removes its own orphan, and not that of fit.2
    assert len(list(tmp_path.iterdir())) == 3
    tessella.save(new, other)
    assert sorted(tmp_path.iterdir()) == [path, other]
    assert (tessella.load(other).predict(X) == new.predict(X)).all()


def test_a_save_leaves_the_file_of_a_process_that_still_writes(tmp_path):
    model, path = LearnedKernelSVC().fit(X, SIGN), tmp_path / "model.tsl"
    ready, go_on = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        fsync = os.fsync

        def slow(file):
            os.write(ready[1], b"x")
            os.read(go_on[0], 1)
            fsync(file)

        os.fsync = slow
        try:
            tessella.save(model, path)
        finally:
            os._exit(0)
    os.read(ready[0], 1)
    tessella.save(model, path)
    left = [own for own in tmp_path.iterdir() if own != path]
    assert len(left) == 1
    os.write(go_on[1], b"x")
    os.waitpid(child, 0)
    assert list(tmp_path.iterdir()) == [path]
    assert (tessella.load(path).predict(X) == model.predict(X)).all()
    for end in (*ready, *go_on):
        os.close(end)


@pytest.mark.parametrize("multi_class", ["shared", "separate"])
def test_killed_checkpoints_of_pairs_are_kept_apart(multi_class, tmp_path):
    y = np.digitize(X[:, 0], [0.3, 0.7])
    path = tmp_path / "fit"
    model = LearnedKernelSVC(multi_class=multi_class, checkpoint=path, n_jobs=1)
    die_in_write(lambda: model.fit(X, y))
    assert len(list(tmp_path.iterdir())) == 1
    model.fit(X, y)
    expected = [path] if multi_class == "shared" else [tmp_path / f"fit.{k}" for k in range(3)]
    assert sorted(tmp_path.iterdir()) == expected
    assert model.status_ == "optimal"


def test_a_killed_fit_goes_on(tmp_path):
    path = tmp_path / "fit.ckpt"
    model = LearnedKernelSVC(tol=1e-7, checkpoint=path, n_jobs=1)
    part = LearnedKernelSVC(tol=1e-7, checkpoint=path, n_jobs=1, max_iter=3)
    with pytest.warns(UserWarning, match="gap"):
        part.fit(X, SIGN)
    before = path.read_bytes()
    die_in_write(lambda: model.fit(X, SIGN))
    assert path.read_bytes() == before
    model.fit(X, SIGN)
    assert model.status_ == "optimal"
    assert model.history_[: len(part.history_)] == part.history_
    assert list(tmp_path.iterdir()) == [path]
