"""The README is short, its example prints what it says, and what it links to exists."""

from __future__ import annotations

import ast
import contextlib
import io
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"


def test_example_output_is_real():
    text = README.read_text()
    program = re.search(r"```python\n(.*?)```", text, re.DOTALL).group(1)
    promised = re.search(r"```text\n(.*?)```", text, re.DOTALL).group(1).splitlines()
    assert len(program.splitlines()) <= 20
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        exec(compile(program, "README.md", "exec"), {})
    printed = output.getvalue().splitlines()
    assert len(printed) == len(promised)
    for line, expected in zip(printed, promised, strict=True):
        label, number = re.match(r"(.*?)\s{2,}(\S+)", line).groups()
        expected_label, expected_number = re.match(r"(.*?)\s{2,}(\S+)", expected).groups()
        assert label == expected_label
        if label == "certified gap":  # the last Newton step depends on rounding
            assert float(number) <= 1e-3
        else:
            assert float(number) == pytest.approx(float(expected_number), rel=0.02)


def test_it_is_short_and_begins_with_a_result():
    lines = README.read_text().splitlines()
    assert len(lines) <= 120
    assert lines.index("```text") < 30


def test_every_certificate_names_a_test_that_exists():
    page = (ROOT / "docs/guide/certificates.md").read_text()
    rows = [line for line in page.splitlines() if line.startswith("| ")]
    named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)` \|$", page, re.MULTILINE)
    assert len(named) == len(rows) - 2  # the heads of the two tables
    for path, function in named:
        tree = ast.parse((ROOT / path).read_text())
        defined = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
        assert function in defined, f"{path}: {function}"


def test_links_and_pictures_exist():
    targets = re.findall(r"\]\(([^)#\s]+)", README.read_text())
    assert len(targets) > 20
    for target in targets:
        assert (ROOT / target).exists(), target
