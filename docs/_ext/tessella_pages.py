"""Pages that are made when the documentation is built, and the order of the gallery."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import benchmark_tables
import claims
from sphinx.util.nodes import make_refnode

_ATTRIBUTE_IN_SHAPE = re.compile(r"(?<=\w)_(?=[,)])")

_DOCS = Path(__file__).parent.parent

# From the first question to the special ones; an example that is not named comes last.
_ORDER = [
    "plot_automatic_table.py",
    "plot_why_learn.py",
    "plot_decision_surfaces.py",
    "plot_terrain.py",
    "plot_against_boosting.py",
    "plot_delta.py",
    "plot_tuning_path.py",
    "plot_solvers.py",
    "plot_relevance.py",
    "plot_calibrated_probabilities.py",
    "plot_prediction_intervals.py",
    "plot_tabular_pipeline.py",
    "plot_learned_kernel_elsewhere.py",
    "plot_leaves.py",
    "plot_kernel_features.py",
    "plot_custom_kernel.py",
    "plot_multiple_kernels.py",
    "plot_sum_of_kernel_sets.py",
    "plot_pmkl_classification.py",
    "plot_pmkl_regression.py",
]


def example_order(filename: str) -> tuple[int, str]:
    """Key by which the gallery is sorted."""
    name = Path(filename).name
    return (_ORDER.index(name) if name in _ORDER else len(_ORDER), name)


def _readable(_app: Any, _what: str, _name: str, _obj: Any, _opts: Any, lines: list[str]) -> None:
    """Docstrings are written for a terminal; say in reStructuredText what they mean.

    An underscore at the end of a name in a shape is no link, and an indented formula after a
    paragraph is set as it stands.
    """
    last = ""
    result: list[str] = []
    for line in lines:
        starts_block = line.startswith("    ") and result and not result[-1].strip()
        after_text = last and not last.startswith((" ", ".. ", "- ")) and not last.endswith("::")
        if starts_block and after_text:
            result += ["::", ""]
        if " of shape (" in line:
            line = _ATTRIBUTE_IN_SHAPE.sub(r"\\_", line)
        result.append(line)
        last = line if line.strip() else last
    lines[:] = result


def _documented_elsewhere(app: Any, env: Any, node: Any, content: Any) -> Any:
    """A link to a name of ours that is documented in the module where it is defined.

    Pages and docstrings may call it by the package, or by its own name alone.
    """
    package, _, name = str(node["reftarget"]).rpartition(".")
    if node.get("refdomain") != "py" or (package and not package.startswith("tessella")):
        return None
    known = env.get_domain("py").objects
    found = [
        key
        for key, entry in known.items()
        if key.startswith("tessella.") and key.endswith(f".{name}") and not entry.aliased
    ]
    if len(found) != 1:
        return None
    entry = known[found[0]]
    return make_refnode(
        app.builder, node["refdoc"], entry.docname, entry.node_id, content, found[0]
    )


def _generate(_: Any) -> None:
    benchmarks = _DOCS.parent / "benchmarks"
    benchmark_tables.write_all(benchmarks, _DOCS / "_generated")
    benchmark_tables.write_changed(_DOCS / "_generated/claims.md", claims.claims(benchmarks))


def setup(app: Any) -> dict[str, Any]:
    """Called by Sphinx."""
    app.connect("builder-inited", _generate, priority=100)
    app.connect("missing-reference", _documented_elsewhere)
    # Before numpydoc, whose own hook has the usual priority.
    app.connect("autodoc-process-docstring", _readable, priority=100)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
