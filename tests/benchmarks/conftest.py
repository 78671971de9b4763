from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))  # scripts, not a package


@pytest.fixture
def arguments(tmp_path):
    from argparse import Namespace

    return Namespace(output=tmp_path, fresh=False, rows=50)
