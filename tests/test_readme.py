"""The README's example prints what the README says."""

from __future__ import annotations

import ast
import contextlib
import io
import re
from pathlib import Path

import pytest

README = Path(__file__).parent.parent / "README.md"


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


def test_every_certificate_names_a_test_that_exists():
    section = README.read_text().split("## What is certified")[1].split("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("| ")]
    named = re.findall(r"\[test\]\((tests/[\w/]+\.py)#(\w+)\)", section)
    assert len(named) == len(rows) - 2  # the heading, and the row of what is not certified
    for path, function in named:
        tree = ast.parse((README.parent / path).read_text())
        defined = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
        assert function in defined, f"{path}: {function}"


def test_links_and_pictures_exist():
    targets = re.findall(r"\]\(([^)#\s]+)", README.read_text())
    assert len(targets) > 20
    for target in targets:
        assert (README.parent / target).exists(), target
