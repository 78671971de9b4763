"""Programs in processes of their own, so that a crash or a hang fails one test only."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap

import pytest

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork()")
needs_timer = pytest.mark.skipif(
    not hasattr(signal, "setitimer"), reason="the system has no timer that sends a signal"
)


def output_of(*command, seconds=300, before=None, **environment):
    """Return what a Python program prints; it has to end in time and with status 0.

    The command is a program as a text, or "-m" or a file with arguments. If it does not end in
    time, it is killed with all the processes that it has started. `before` is called in the
    new process, and `environment` changes its environment.
    """
    first, *rest = command
    words = ["-c", textwrap.dedent(first), *rest] if "\n" in first else list(command)
    process = subprocess.Popen(
        [sys.executable, "-X", "faulthandler", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
        start_new_session=True,
        preexec_fn=before,
    )
    try:
        printed, complaints = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        pytest.fail(f"The program has not ended: {process.communicate()}")
    assert process.returncode == 0, complaints
    return printed
