from __future__ import annotations

import subprocess
import sys

import pytest

from tessella.backend import _memory as memory
from tessella.backend import available_memory, effective_threads, format_bytes, require_memory


def test_threads():
    assert effective_threads(3) == 3
    assert effective_threads() >= 1
    assert effective_threads(-1) >= 1
    assert effective_threads(-10_000) == 1
    with pytest.raises(ValueError, match="n_jobs=0"):
        effective_threads(0)


def test_format_bytes():
    assert format_bytes(12) == "12 B"
    assert format_bytes(1536) == "1.5 KiB"
    assert format_bytes(3 * 2**30) == "3.0 GiB"
    assert format_bytes(5 * 2**40) == "5.0 TiB"


def test_available_memory_is_plausible():
    available = available_memory()
    assert available is None or 0 <= available < 2**50


def test_require_memory(monkeypatch):
    monkeypatch.setattr(memory, "available_memory", lambda: 2**30)
    require_memory(2**30, "A fit", "")
    with pytest.raises(MemoryError, match=r"A fit needs 2.0 GiB .* 1.0 GiB .* Buy more."):
        require_memory(2**31, "A fit", "Buy more.")
    monkeypatch.setattr(memory, "available_memory", lambda: None)
    require_memory(2**60, "A fit", "")


def test_container_limit_counts(monkeypatch, tmp_path):
    limit, usage = tmp_path / "max", tmp_path / "current"
    limit.write_text("1000\n")
    usage.write_text("400\n")
    monkeypatch.setattr(memory, "_CGROUP_FILES", ((str(limit), str(usage)),))
    assert available_memory() == 600
    limit.write_text("max\n")
    assert available_memory() != 600


def test_import_is_light():
    code = (
        "import sys, tessella; "
        "heavy = {'matplotlib', 'torch', 'cvxpy', 'dask', 'typer', 'rich', 'polars', 'skops'}; "
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
