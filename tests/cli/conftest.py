"""Small tables and a way to run the command."""

import io
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest

from tessella.cli import main


@dataclass(frozen=True)
class Result:
    """How a command ended and what it wrote."""

    exit_code: int
    stdout: str
    stderr: str

    @property
    def output(self):
        return self.stdout + self.stderr


@pytest.fixture(scope="session")
def people():
    """A regression target, a class as text, and three features."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(40, 3))
    frame = pd.DataFrame(X, columns=["age", "height", "weight"])
    frame["income"] = 100 * np.sin(X[:, 0]) + X[:, 1]
    frame["group"] = np.where(X[:, 0] * X[:, 1] > 0, "left", "right")
    return frame


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Run ``tessella`` in an empty directory; arguments are split at spaces."""
    monkeypatch.chdir(tmp_path)

    def invoke(*arguments):
        words = [a for text in arguments for a in text.split()]
        monkeypatch.setattr(sys, "argv", ["tessella", *words])
        streams = [io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2)]
        with (
            redirect_stdout(streams[0]),
            redirect_stderr(streams[1]),
            pytest.raises(SystemExit) as end,
        ):
            main()
        written = [stream.buffer.getvalue().decode() for stream in streams]
        return Result(end.value.code or 0, *written)

    return invoke


@pytest.fixture
def fails(run):
    """Run ``tessella`` and expect one line of complaint with some text in it."""

    def invoke(arguments, *texts, code=2):
        result = run(arguments)
        assert result.exit_code == code, result.output
        assert result.stderr.startswith("tessella: error: ")
        assert result.stderr.count("\n") == 1
        for text in texts:
            assert text in result.stderr
        return result

    return invoke
