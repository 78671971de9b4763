"""How many threads a piece of work really uses."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]

needs_task_list = pytest.mark.skipif(
    not Path("/proc/self/task").is_dir(), reason="the system does not list a process's threads"
)

_PROGRAM = """
import os, sys, threading
from importlib import import_module
module, size, *names = sys.argv[1:]
works = [getattr(import_module(module), name) for name in names]
# Threads of Python that have ended stay in the list for a moment.
of_python = set()
threading.setprofile(lambda *_: of_python.add(threading.get_native_id()))

def count():
    return sum(int(task) not in of_python for task in os.listdir("/proc/self/task"))

before = count()
for n_jobs, work in enumerate(works, start=2):
    work(int(size), n_jobs)
    print(count() - before + 1)
"""


def threads_used(module, size, *names):
    """Threads of each of some functions of (size, n_jobs), with n_jobs 2, 3, 4 and so on.

    Read from the threads of a process of its own. The compiled core keeps those it has started,
    so a function shows whether it uses more of them than the ones before it.
    """
    alone = {"OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    env = {k: v for k, v in os.environ.items() if not k.startswith(("OMP_", "GOMP_"))} | alone
    env["PYTHONPATH"] = os.pathsep.join([*filter(None, [env.get("PYTHONPATH")]), str(TESTS)])
    command = [sys.executable, "-c", _PROGRAM, module, str(size), *names]
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=env)
    return [int(line) for line in done.stdout.split()]
