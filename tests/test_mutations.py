"""The mutations of ``tests/mutations`` can be made: their lines and their tests are still there."""

from __future__ import annotations

from pathlib import Path

import pytest
from mutations import PACKAGE, read_explanations, read_mutations


@pytest.mark.parametrize("mutation", read_mutations(), ids=lambda own: own.function)
def test_every_mutation_finds_its_line_and_its_tests(mutation):
    text = (PACKAGE / mutation.file).read_text(encoding="utf-8")
    assert mutation.applied(text) != text
    assert all((Path(__file__).parent / name).exists() for name in mutation.tests)


@pytest.mark.parametrize("survivor", read_explanations(), ids=lambda own: own.new)
def test_every_explained_survivor_finds_its_line(survivor):
    text = (PACKAGE / survivor.file).read_text(encoding="utf-8")
    assert survivor.old in text
    assert survivor.why
