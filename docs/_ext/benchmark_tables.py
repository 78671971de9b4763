"""Tables that no script writes as the pages need them, from the committed JSON.

The other tables of the site are those that the scripts write; pages include them as they are.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

Json = dict[str, Any]

# Tables of scripts that take hours, which pages show as soon as they have been measured.
_LONG = (
    *("large-data", "large-data-growth", "large-data-held-out", "out-of-core"),
    *("clusters", "cluster-plan", "partition-rules"),
)


def write_all(benchmarks: Path, output: Path) -> None:
    """Write a Markdown fragment for each table to `output`."""
    results = benchmarks / "results"
    output.mkdir(exist_ok=True)
    tables = {
        "fits": fits(read(results, "speed")),
        "convergence": convergence(read(results, "convergence")),
        "grid": default_grid(read(results, "tuning-grid")),
        "balance": balance(read(results, "balance")),
    }
    tables |= {name.replace("-", "_"): written(results, name) for name in _LONG}
    for name, text in tables.items():
        write_changed(output / f"{name}.md", text)


def write_changed(path: Path, text: str) -> None:
    """A file that did not change must not look new, or Sphinx reads its page again."""
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def read(results: Path, name: str) -> Json:
    """One committed result."""
    content: Json = json.loads((results / f"{name}.json").read_text())
    return content


def written(results: Path, name: str) -> str:
    """The table that a script has written; nothing before its first run."""
    path = results / f"{name}.md"
    return path.read_text() if path.exists() else ""


def fits(result: Json) -> str:
    """One whole fit beside one of an RBF machine."""
    cells = next(r for r in result["rows"] if r["row"] == 3)["cells"]
    rows = [
        (
            c["set"],
            f"{c['rows']:,}",
            number(c["peer_seconds"]),
            number(c["seconds"]),
            number(c["ratio"]),
            number(c["gap"]),
            score(c["score"]),
            score(c["peer_score"]),
        )
        for c in cells
    ]
    head = ("set", "rows", "RBF (s)", "ours (s)", "ratio", "gap", "our score", "RBF score")
    return table(head, rows, "-rrrrrrr") + "\n"


def convergence(result: Json) -> str:
    """Seconds of each solver to a gap of 1e-3 and 1e-6."""
    names = ["working-set", "joint", "frank-wolfe", "apd", "hybrid"]
    rows = [
        (
            r["name"],
            f"{r['rows']:,}",
            str(r["n_params"]),
            str(r["rank"]),
            *(
                f"{reached(r['solvers'].get(s), '0.001')} / {reached(r['solvers'].get(s), '1e-06')}"
                for s in names
            ),
        )
        for r in result["results"]
    ]
    return table(("set", "rows", "n_P", "rank", *names), rows, "-rrrrrrrr") + _machine(result)


def reached(run: Json | None, gap: str) -> str:
    """Seconds until a certified gap, or a dash."""
    seconds = None if run is None else run["seconds_to"].get(gap)
    return "–" if seconds is None else number(seconds)


def default_grid(result: Json) -> str:
    """What the best point of a grid loses, on average and at most."""
    grids = list(result["results"][0]["losses"])
    rows = []
    for grid in grids:
        lost = [r["losses"][grid] for r in result["results"]]
        rows.append((grid, f"{sum(lost) / len(lost):.4f}", f"{max(lost):.4f}"))
    return table(("grid", "mean loss", "largest loss"), rows, "-rr") + _machine(result)


def balance(result: Json) -> str:
    """Score of each balance on each set, the best in bold."""
    kinds = list(dict.fromkeys(r["balance"] for r in result["results"]))
    sets: dict[str, dict[str, float]] = {}
    features: dict[str, int] = {}
    for r in result["results"]:
        value = r["accuracy" if r["task"] == "classification" else "r2"]
        sets.setdefault(r["name"], {})[r["balance"]] = value
        features[r["name"]] = r["features"]
    rows = []
    for name, scores in sets.items():
        best = max(scores.values())
        cells = (f"{scores[k]:.3f}" for k in kinds)
        marked = (
            f"**{cell}**" if scores[k] == best else cell
            for k, cell in zip(kinds, cells, strict=True)
        )
        rows.append((name, str(features[name]), *marked))
    return table(("set", "features", *kinds), rows, "-rrrr") + _machine(result)


def table(head: Sequence[str], rows: Iterable[Sequence[str]], align: str) -> str:
    """A Markdown table; `align` has r for columns of numbers."""
    marks = ["---:" if i < len(align) and align[i] == "r" else "---" for i, _ in enumerate(head)]
    lines = [head, marks, *rows]
    return "\n".join(
        "| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines
    )


def score(value: float | None) -> str:
    """Accuracy or R²; a dash where all rows were trained on."""
    return "–" if value is None else f"{value:.3f}"


def number(value: float) -> str:
    """Three digits."""
    if value != 0 and (abs(value) < 1e-3 or abs(value) >= 1e5):
        return f"{value:.1e}"
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}"


def _machine(result: Json) -> str:
    machine, versions = result["machine"], result["versions"]
    commit = versions.get("commit") or result.get("commit")
    return (
        f"\n\n{machine['processor']}, {machine['usable_cores']} cores, "
        f"{machine['memory_gib']:g} GiB; tessella {versions['tessella']} ({commit}), "
        f"numpy {versions['numpy']}, scikit-learn {versions['scikit-learn']}, "
        f"Python {versions['python']}; {result['date'][:10]}.\n"
    )
