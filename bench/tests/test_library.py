"""What this package uses of tessella."""

import ast
import re
from pathlib import Path

import tessella_bench

PACKAGE = Path(tessella_bench.__file__).parent


def modules_imported_by(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def test_private_names_of_the_library_are_imported_in_one_place():
    private = {
        path.name
        for path in PACKAGE.rglob("*.py")
        for name in modules_imported_by(path)
        if re.match(r"tessella\.(\w+\.)*_", name)
    }
    assert private == {"_library.py"}
