"""What a release relies on agrees: one version, and workflows that call scripts that exist."""

from __future__ import annotations

import os
import re
from importlib.metadata import version
from pathlib import Path

import pytest

import tessella

ROOT = Path(__file__).parents[1]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def test_the_version_is_written_once():
    assert version("tessella") == tessella.__version__
    written = [ROOT / "pyproject.toml", ROOT / "CITATION.cff", ROOT / "docs" / "conf.py"]
    for path in written:
        assert tessella.__version__ not in path.read_text(), path


def test_the_changelog_begins_with_the_version():
    first = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert first is not None
    assert first[1] == tessella.__version__.removesuffix(".dev0")


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_call_what_exists(workflow):
    text = workflow.read_text()
    for name in re.findall(r"uses: \./(\S+)", text):
        assert (ROOT / name).is_file(), name
    for name in re.findall(r"(?:bash|python) ((?:\.ci|docs)/[\w/.]+)", text):
        assert (ROOT / name).is_file(), name
    # Actions of others are pinned to a version that does not move to the next major one.
    for action in re.findall(r"uses: ([^.\s]\S+)", text):
        assert re.search(r"@(v\d+|release/v\d+)$", action), action


@pytest.mark.skipif(os.name == "nt", reason="Windows has no bit for it")
def test_scripts_can_be_executed():
    scripts = [p for p in (ROOT / ".ci").iterdir() if p.is_file() and not p.suffix]
    assert {p.name for p in scripts} >= {"run", "oldest", "newest", "sanitize", "wheel"}
    assert all(os.access(path, os.X_OK) for path in scripts)
