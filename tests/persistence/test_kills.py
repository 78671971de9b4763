"""A process killed at any moment of a write leaves a file that loads: the old one or the new."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from persistence.common import SIGN, TARGET, X, gaps_in, manifest_of
from sklearn.base import clone

import tessella
from tessella import (
    KernelDictionary,
    LearnedKernelSVC,
    LearnedKernelSVR,
    MultipleKernelSVC,
    TessellatedKernels,
)
from tessella.kernels import Gaussian, Polynomial

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")

# Runs `work(path, doom)` in a process of its own for every stage; `doom()` makes the next write
# end in a SIGKILL at that stage. One interpreter for all of them, because starting one is slow.
PROGRAM = """
import itertools, os, signal, sys, time, zipfile
from pathlib import Path
import numpy as np
import tessella
from tessella.kernels import Gaussian, Polynomial

def die(*args):
    os.kill(os.getpid(), signal.SIGKILL)

def doom(stage):
    writestr, replace, count = zipfile.ZipFile.writestr, os.replace, [0]
    def dying_writestr(archive, *args):
        if count[0] == int(stage.removeprefix("member")):
            archive.fp.write(b"half a mem")
            archive.fp.flush()
            die()
        count[0] += 1
        writestr(archive, *args)
    def dying_replace(*args):
        replace(*args)
        die()
    if stage.startswith("member"):
        zipfile.ZipFile.writestr = dying_writestr
    elif stage == "fsync":
        os.fsync = die
    elif stage == "replace":
        os.replace = die
    else:
        os.replace = dying_replace

def in_a_process_of_its_own(work, stage):
    child = os.fork()
    if child == 0:
        work(stage)
        os._exit(1)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL, (stage, status)
"""
STAGES = ["member0", "member3", "fsync", "replace", "replaced"]


def run(program, *arguments):
    command = [sys.executable, "-c", PROGRAM + program, *map(str, arguments)]
    subprocess.run(command, check=True, env={**os.environ, "OPENBLAS_NUM_THREADS": "1"})


def test_killed_during_save(tmp_path):
    old = LearnedKernelSVC().fit(X, SIGN)
    new = LearnedKernelSVR().fit(X, TARGET)
    tessella.save(new, tmp_path / "new.tsl")
    for stage in STAGES:
        tessella.save(old, tmp_path / f"{stage}.tsl")
    run(
        """
folder = Path(sys.argv[1])
model = tessella.load(folder / "new.tsl")
def work(stage):
    doom(stage)
    tessella.save(model, folder / f"{stage}.tsl")
for stage in sys.argv[2:]:
    in_a_process_of_its_own(work, stage)
""",
        tmp_path,
        *STAGES,
    )
    for stage in STAGES:
        model = tessella.load(tmp_path / f"{stage}.tsl")
        expected = new if stage == "replaced" else old
        assert type(model) is type(expected)
        assert (model.predict(X) == expected.predict(X)).all()


@pytest.fixture(scope="module")
def killed(tmp_path_factory):
    """Checkpoints of fits that were killed in their first or in their third write."""
    folder = tmp_path_factory.mktemp("killed")
    np.save(folder / "X.npy", X)
    np.save(folder / "y.npy", SIGN)
    run(
        """
folder = Path(sys.argv[1])
X, y = np.load(folder / "X.npy"), np.load(folder / "y.npy")
FEW = [Gaussian(0.5), Gaussian(2.0), Polynomial(2)]
both = tessella.TessellatedKernels() + tessella.KernelDictionary(FEW)
models = {
    "matrix": tessella.LearnedKernelSVC(solver="working-set"),
    "weights": tessella.MultipleKernelSVC(10.0, FEW),
    "sum": tessella.LearnedKernelSVC(kernels=both, solver="working-set"),
}
minutes = itertools.count(0.0, 60.0)  # so that every record is written
time.monotonic = lambda: next(minutes)
def work(stage, kind, writes):
    def callback(record):
        if record.iteration + 1 == writes:
            doom(stage)
    if not writes:
        doom(stage)
    own = folder / f"{kind}-{stage}-{writes}"
    own.mkdir()
    model = models[kind].set_params(tol=1e-7, n_jobs=1, checkpoint=own / "fit.ckpt")
    model._fit(X, y, callback=callback)
for kind in models:
    for writes in (0, 2):
        for stage in sys.argv[2:]:
            in_a_process_of_its_own(lambda stage: work(stage, kind, writes), stage)
""",
        folder,
        *STAGES,
    )
    return folder


FEW = [Gaussian(0.5), Gaussian(2.0), Polynomial(2)]
MODELS = {
    "matrix": LearnedKernelSVC(solver="working-set"),
    "weights": MultipleKernelSVC(10.0, FEW),
    "sum": LearnedKernelSVC(
        kernels=TessellatedKernels() + KernelDictionary(FEW), solver="working-set"
    ),
}


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("writes", [0, 2])
@pytest.mark.parametrize("stage", STAGES)
def test_killed_during_a_fit(killed, kind, stage, writes, tmp_path):
    shutil.copytree(killed / f"{kind}-{stage}-{writes}", tmp_path, dirs_exist_ok=True)
    path = Path(tmp_path / "fit.ckpt")
    leftovers = [p for p in tmp_path.iterdir() if p != path]
    assert len(leftovers) == (stage != "replaced")
    records = writes + (stage == "replaced")
    assert path.exists() == (records > 0)
    gap = np.inf
    if records:
        gaps = gaps_in(path)
        assert len(gaps) == records
        assert not manifest_of(path)["finished"]
        gap = gaps[-1]
    model = clone(MODELS[kind]).set_params(tol=1e-7, checkpoint=path)
    seen = []
    model._fit(X, SIGN, callback=seen.append)
    assert seen[0].gap <= gap * (1 + 1e-6)
    assert model.status_ == "optimal"
    assert len(model.history_) == records + len(seen)
    whole = clone(model).set_params(checkpoint=None).fit(X, SIGN)
    assert model.objective_ == pytest.approx(whole.objective_, rel=2e-7)
    assert list(tmp_path.iterdir()) == [path]
