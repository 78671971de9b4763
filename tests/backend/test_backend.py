from __future__ import annotations

import errno
import os
import subprocess
import sys
import threading

import pytest
import threadpoolctl

from tessella.backend import (
    _threads,
    available_memory,
    effective_threads,
    format_bytes,
    require_memory,
)


def test_threads():
    assert effective_threads(3) == 3
    assert effective_threads() >= 1
    assert effective_threads(-1) >= 1
    assert effective_threads(-10_000) == 1
    assert effective_threads(10**9) == max(64, os.cpu_count())
    with pytest.raises(ValueError, match="n_jobs=0"):
        effective_threads(0)


@pytest.mark.parametrize(
    ("text", "threads"),
    [("3", 3), ("2,4", 2), (" 5 ", 5), ("", None), ("0", None), ("-1", None), ("many", None)],
)
def test_threads_of_the_environment(monkeypatch, text, threads):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    cores = effective_threads()
    monkeypatch.setenv("OMP_NUM_THREADS", text)
    assert effective_threads() == (threads or cores)
    assert effective_threads(7) == 7


def test_an_error_of_a_signal_handler_is_not_taken_for_one_of_the_system(monkeypatch):
    def read(path):
        raise TimeoutError("of a signal handler")

    monkeypatch.setattr("tessella.backend._memory._read", read)
    with pytest.raises(TimeoutError, match="of a signal handler"):
        available_memory()


def test_format_bytes():
    assert format_bytes(12) == "12 B"
    assert format_bytes(1536) == "1.5 KiB"
    assert format_bytes(3 * 2**30) == "3.0 GiB"
    assert format_bytes(5 * 2**40) == "5.0 TiB"


def test_available_memory_is_plausible():
    available = available_memory()
    assert available is None or 0 <= available < 2**50


MEMINFO = "/proc/meminfo"
LIMIT, USAGE = "/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"
NO_FILES = dict.fromkeys(
    [
        *(MEMINFO, LIMIT, USAGE, "/proc/self/statm"),
        "/sys/fs/cgroup/memory/memory.limit_in_bytes",
        "/sys/fs/cgroup/memory/memory.usage_in_bytes",
    ]
)


@pytest.fixture
def system(monkeypatch):
    """A system whose files say what the test wants; a file without a text cannot be read."""
    files = dict(NO_FILES)

    def read(path):
        if files[path] is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return files[path].encode()

    def no_answer(name):
        raise ValueError(name)

    monkeypatch.setattr("tessella.backend._memory._read", read)
    monkeypatch.setattr(os, "sysconf", no_answer, raising=False)
    return files


def test_require_memory(system):
    system[MEMINFO] = f"MemTotal: 99999999 kB\nMemFree: 7 kB\nMemAvailable: {2**20} kB\n"
    assert available_memory() == 2**30
    require_memory(2**30, "A fit", "")
    with pytest.raises(MemoryError, match=r"A fit needs 2.0 GiB .* 1.0 GiB .* Buy more."):
        require_memory(2**31, "A fit", "Buy more.")


def test_where_the_system_does_not_tell_nothing_is_refused(system):
    assert available_memory() is None
    require_memory(2**60, "A fit", "")


def test_container_limit_counts(system):
    system.update({MEMINFO: "MemAvailable: 5 kB\n", LIMIT: "1000\n", USAGE: "400\n"})
    assert available_memory() == 600
    system[USAGE] = "1400\n"
    assert available_memory() == 0
    system[LIMIT] = "max\n"
    assert available_memory() == 5 * 1024


def test_import_is_light():
    code = (
        "import sys, tessella; "
        "heavy = {'matplotlib', 'torch', 'cvxpy', 'dask', 'typer', 'rich', 'polars', 'skops'}; "
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_another_thread_finds_the_libraries(monkeypatch):
    """What a signal handler raises inside of threadpoolctl, in the main thread, would be lost."""
    seen = []

    class Controller(_threads.ThreadpoolController):
        def __init__(self):
            seen.append(threading.current_thread() is threading.main_thread())
            super().__init__()

    monkeypatch.setattr(_threads, "ThreadpoolController", Controller)
    found = _threads._loaded_blas.__wrapped__()
    assert seen == [False]
    expected = threadpoolctl.ThreadpoolController().select(user_api="blas").lib_controllers
    assert [own.filepath for own in found] == [own.filepath for own in expected]


def test_libraries_are_found_without_another_thread(monkeypatch):
    def no_memory(*_):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(_threads._thread, "start_new_thread", no_memory)
    assert _threads._loaded_blas.__wrapped__()


def test_a_limit_that_is_not_entered_is_not_held(monkeypatch):
    """A signal handler may raise an exception while the threads of BLAS are being set."""
    limit, before = _threads.limit_blas(1), [own.num_threads for own in _threads._loaded_blas()]
    set_threads, calls = _threads._BlasLimit._set, []

    def interrupted():
        set_threads()
        calls.append(len(_threads._BlasLimit._held))
        if len(calls) == 1:
            raise TimeoutError

    monkeypatch.setattr(_threads._BlasLimit, "_set", staticmethod(interrupted))
    with pytest.raises(TimeoutError), limit:
        raise AssertionError("entered")
    assert calls == [1, 0]
    assert (_threads._BlasLimit._held, _threads._BlasLimit._before) == ([], [])
    assert [own.num_threads for own in _threads._loaded_blas()] == before
