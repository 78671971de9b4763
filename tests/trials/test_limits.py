"""A newcomer's fit under a limit of the shell: a process that really is limited.

Other first tries have their tests where the code is: files with text, gaps or semicolons
(tests/cli), a model read in a new process, kills and checkpoints (tests/persistence), Ctrl-C and
scikit-learn's searches (tests/estimators).
"""

import subprocess
import sys

import pytest

UNDER_A_LIMIT = """
import resource
from pathlib import Path

import numpy as np
from tessella import LearnedKernelSVR

X = np.random.default_rng(0).random((6000, 2))
used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + 2**28, resource.RLIM_INFINITY))
model = LearnedKernelSVR(solver="joint")
try:
    model.fit(X, X[:, 0])
except MemoryError as error:
    print(error)
print(hasattr(model, "kernel_"))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the limit is one of Linux")
def test_a_limit_of_the_shell_is_respected():
    result = subprocess.run(
        [sys.executable, "-c", UNDER_A_LIMIT], capture_output=True, text=True, check=True
    )
    refusal, fitted = result.stdout.splitlines()
    assert "6000 rows of 2 features needs" in refusal
    assert "solver='working-set'" in refusal
    assert fitted == "False"
