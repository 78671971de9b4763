"""The computer and the versions, as far as they explain a result."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_info

from tessella.backend import effective_threads

# Those whose versions explain a result.
PACKAGES = (
    *("tessella", "numpy", "scipy", "scikit-learn", "pandas"),
    *("xgboost", "lightgbm", "catboost", "torch", "xrfm", "pytabkit"),
)
THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def machine() -> dict[str, Any]:
    """The computer, as far as it explains a time."""
    return {
        "processor": _processor(),
        "usable_cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None,
        "threads": effective_threads(),
        "memory_gib": _memory_gib(),
        "system": f"{platform.system()} {platform.machine()}",
        "blas": sorted(
            {f"{p['internal_api']} {p['version']}" for p in threadpool_info() if is_blas(p)}
        ),
        "environment": {k: os.environ[k] for k in THREAD_VARIABLES if k in os.environ},
    }


def versions(packages: Sequence[str]) -> dict[str, str | None]:
    """Python, some packages, and the commit of this checkout.

    Parameters
    ----------
    packages : sequence of str
        Names of distributions.

    Returns
    -------
    dict
        None for what is not installed, or for the commit outside of git.
    """
    found: dict[str, str | None] = {"python": platform.python_version()}
    for package in packages:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = None
    return found | {"commit": commit()}


def commit() -> str | None:
    """The checked-out commit, marked when files differ from it; None outside of git."""
    command = ["git", "describe", "--always", "--dirty", "--abbrev=10"]
    try:
        answer = subprocess.run(
            command, cwd=Path(__file__).parent, capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return answer.stdout.strip()


def is_blas(pool: dict[str, Any]) -> bool:
    """Whether a pool of threads is BLAS's."""
    return pool.get("user_api") == "blas"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or "unknown"
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or "unknown"


def _memory_gib() -> float | None:
    try:
        return round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30, 1)
    except (AttributeError, OSError, ValueError):
        return None
