"""Temporary folders: they are checked before they are used, and removed whatever happens."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import tempfile

import numpy as np
import pytest

from tessella.rows import LeafVectors, LeavesOnDisk

KEEPS_A_FOLDER = """
import sys
import numpy as np
from tessella.rows import LeavesOnDisk
store = LeavesOnDisk(2, 1, sys.argv[1], buffer_bytes=0)
store.append(np.array([0]), np.ones((1, 1)))
print("ready", flush=True)
sys.stdin.readline()
"""


def filled(folder):
    store = LeavesOnDisk(2, 1, folder, buffer_bytes=0)
    store.append(np.array([0, 1]), np.ones((2, 1)))
    return store


def child(folder):
    """A process that has a folder there until it is told to end."""
    process = subprocess.Popen(
        [sys.executable, "-c", KEEPS_A_FOLDER, str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "ready\n"
    return process


def test_folders_are_private_and_removed_when_closed(tmp_path):
    with filled(tmp_path) as store:
        (folder,) = tmp_path.iterdir()
        assert len(list(folder.iterdir())) == 2
        if os.name != "nt":
            assert folder.stat().st_mode & 0o777 == 0o700
        store.finish()
    assert list(tmp_path.iterdir()) == []
    store.close()
    with pytest.raises(RuntimeError, match="have been removed"):
        store.rows(0)


def test_no_rows_are_taken_after_closing(tmp_path):
    store = filled(tmp_path)
    store.close()
    for use in (lambda: store.append(np.array([0]), np.ones((1, 1))), store.finish):
        with pytest.raises(RuntimeError, match="have been removed"):
            use()


def test_the_default_is_the_folder_for_temporary_files(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with filled(None):
        assert len(list(tmp_path.iterdir())) == 1


def test_folders_are_removed_after_an_exception(tmp_path):
    with pytest.raises(KeyError), filled(tmp_path):
        raise KeyError
    assert list(tmp_path.iterdir()) == []


def test_folders_are_removed_with_their_object(tmp_path):
    store = filled(tmp_path)
    vectors = LeafVectors([1], store)
    vectors.set("w", 0, [1.0])
    del store
    gc.collect()
    assert vectors.get("w", 0).tolist() == [1.0]  # they need the folder
    del vectors
    gc.collect()
    assert list(tmp_path.iterdir()) == []


def test_replaced_leaves_leave_no_files(tmp_path):
    with filled(tmp_path) as store:
        store.finish()
        store.replace(0, [np.ones((1, 1)), np.ones((1, 1))])
        (folder,) = tmp_path.iterdir()
        assert len(list(folder.iterdir())) == 3
        vectors = LeafVectors([1], store)
        vectors.set("w", 0, [1.0])
        vectors.copy("never set", "w")
        assert len(list(folder.iterdir())) == 3


def test_folders_of_other_processes_stay_until_they_end(tmp_path):
    process = child(tmp_path)
    assert len(list(tmp_path.iterdir())) == 1
    with filled(tmp_path), filled(tmp_path):
        assert len(list(tmp_path.iterdir())) == 3
    process.communicate("end\n")
    assert process.returncode == 0
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.name == "nt", reason="Windows cannot tell whether a process runs")
def test_folders_of_killed_processes_are_removed_by_the_next(tmp_path):
    (tmp_path / "tessella-rows.notes").mkdir()
    process = child(tmp_path)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert len(list(tmp_path.iterdir())) == 2
    with filled(tmp_path):
        assert len(list(tmp_path.iterdir())) == 2
    assert [path.name for path in tmp_path.iterdir()] == ["tessella-rows.notes"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork()")
def test_a_child_of_fork_does_not_remove_the_folder(tmp_path):
    store = filled(tmp_path)
    number = os.fork()
    if not number:
        store.close()
        os._exit(0)
    assert os.waitpid(number, 0)[1] == 0
    store.finish()
    assert store.rows(0).tolist() == [[1.0]]
    store.close()


def test_too_little_space_is_an_error_before_anything_is_written(tmp_path):
    with pytest.raises(OSError, match=r"need 4194304.0 TiB .* left.*TMPDIR.*") as caught:
        LeavesOnDisk(2, 1, tmp_path, expected_bytes=1 << 62)
    assert caught.value.filename == str(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="missing"):
        LeavesOnDisk(2, 1, tmp_path / "missing")


@pytest.fixture
def small_files():
    """No file of this process may become larger than 10,000 bytes."""
    resource = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, hard))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_full_disk_is_passed_on_and_the_folder_is_removed(tmp_path, small_files):
    store = LeavesOnDisk(2, 1, tmp_path, buffer_bytes=1_000)
    with pytest.raises(OSError, match=r"too large.*TMPDIR"):
        store.append(np.zeros(2_000, dtype=int), np.ones((2_000, 1)))
    assert list(tmp_path.iterdir()) == []


def test_vectors_on_a_full_disk(tmp_path, small_files):
    store = filled(tmp_path)
    vectors = LeafVectors([1_000, 1_000], store)
    vectors.set("w", 0, np.ones(1_000))
    with pytest.raises(OSError, match=r"too large.*TMPDIR"):
        vectors.set("w", 1, np.ones(1_000))
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_was_cut_is_noticed(tmp_path):
    with filled(tmp_path) as store:
        store.finish()
        (folder,) = tmp_path.iterdir()
        for path in folder.iterdir():
            path.write_bytes(b"")
        with pytest.raises(OSError, match="was changed"):
            store.rows(0)
