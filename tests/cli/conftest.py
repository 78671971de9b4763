"""Small tables and a way to run the command."""

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from tessella.cli._app import app


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
        return CliRunner().invoke(app, [a for text in arguments for a in text.split()])

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
