"""Tables of the benchmarks page, from the committed JSON: no figure is copied by hand."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from statistics import mean, median, stdev
from typing import Any

import accuracy_tables
from markdown_tables import table

Json = dict[str, Any]


def write_all(benchmarks: Path, output: Path) -> None:
    """Write a Markdown fragment for each table to `output`."""
    results, reports = benchmarks / "results", benchmarks / "reports"
    report = read(reports, "report")
    output.mkdir(exist_ok=True)
    makers = {
        "speed": lambda: speed(read(results, "speed")),
        "fits": lambda: fits(read(results, "speed")),
        "convergence": lambda: convergence(read(results, "convergence")),
        "tuning": lambda: tuning(read(results, "tuning")),
        "classes": lambda: several_classes(read(results, "several-classes")),
        "grid": lambda: default_grid(read(results, "tuning-grid")),
        "balance": lambda: balance(read(results, "balance")),
        "sdp": lambda: semidefinite(read(results, "sdp")),
        "protocol": lambda: protocol(read(results, "protocol")),
        "strength": lambda: strength(read(results, "strength")),
        "kernels": lambda: multiple_kernels(read(results, "multiple-kernels")),
    }
    for task in ("classification", "regression"):
        makers[task] = partial(accuracy_tables.scores, report, task)
        makers[f"{task}_standings"] = partial(accuracy_tables.standings, report, task, reports)
    for name, make in makers.items():
        write_changed(output / f"{name}.md", make())


def write_changed(path: Path, text: str) -> None:
    """A file that did not change must not look new, or Sphinx reads its page again."""
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def read(results: Path, name: str) -> Json:
    """One committed result."""
    content: Json = json.loads((results / f"{name}.json").read_text())
    return content


def speed(result: Json) -> str:
    """The ten targets, met or not."""
    rows = [
        (str(r["row"]), r["what"], r["peer"], r["target"], r["measured"], r["verdict"])
        for r in result["rows"]
    ]
    met = sum(r["verdict"] == "ok" for r in result["rows"])
    head = ("", "what", "peer", "target", "measured", "verdict")
    busy = [r["row"] for r in result["rows"] if r["load"] > 0.5]
    lines = [f"{met} of {len(rows)} targets are met.", "", table(head, rows, "")]
    if busy:
        lines += [
            "",
            f"The machine was busy before the run began in {len(busy)} of {len(rows)} rows (load "
            "above 0.5): their times are rough.",
        ]
    return "\n".join(lines) + _machine(result["rows"][0])


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


def tuning(result: Json) -> str:
    """KernelPathCV beside GridSearchCV."""
    rows = [
        (
            r["name"],
            f"{r['rows']:,}",
            r["by"],
            str(r["fits"]),
            number(r["seconds"]),
            "–" if r.get("ratio") is None else number(r["ratio"]),
            f"{r['choice']['C']:g}, {r['choice']['delta']:g}",
            f"{r['score']:.4f}",
            r.get("verdict", "–"),
        )
        for r in result["results"]
    ]
    head = ("set", "rows", "search", "fits", "s", "times faster", "C, delta", "score", "verdict")
    return table(head, rows, "-r-rrr-r-") + _machine(result)


def several_classes(result: Json) -> str:
    """One kernel for all pairs of classes, one for each, and SVC."""
    rows = []
    for record in result["results"]:
        splits = record["splits"]
        mean = {key: sum(c[key] for c in splits) / len(splits) for key in ("accuracy", "seconds")}
        gaps = [cell["gap"] for cell in splits if cell["gap"] is not None]
        rows.append(
            (
                record["name"],
                record["method"],
                str(len(splits)),
                f"{mean['accuracy']:.3f}",
                number(mean["seconds"]),
                number(max(gaps)) if gaps else "–",
            )
        )
    head = ("set", "method", "splits", "test accuracy", "fit, s", "largest gap")
    return table(head, rows, "--rrrr") + _machine(result)


def multiple_kernels(result: Json) -> str:
    """Our weights of a dictionary beside SimpleMKL's and EasyMKL's."""
    rows = [
        (
            r["set"],
            f"{r['rows']:,}",
            f"{r['learned_used']} of {r['kernels']}",
            number(r["learned_seconds"]),
            str(r["learned_n_svm"]),
            number(r["learned_gap"]),
            number(r["simple_seconds"]),
            str(r["simple_n_svm"]),
            number(r["simple_gap"]),
            number(r["speed_up"]),
            number(r["easy_seconds"]) if "easy_seconds" in r else "–",
            f"{r['easy_above']:.0%}" if "easy_above" in r else "–",
        )
        for r in result["results"]
    ]
    head = ("set", "rows", "kernels used", "learned (s)", "SVMs", "gap", "SimpleMKL (s)")
    more = ("its SVMs", "its gap", "times faster", "EasyMKL (s)", "its value above the optimum")
    return table((*head, *more), rows, "-" + "r" * 11) + _machine(result)


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


def semidefinite(result: Json) -> str:
    """The semidefinite program beside Frank-Wolfe and the default solver."""
    rows = [
        (
            r["name"],
            str(r["rows"]),
            f"{r['sign']}{number(r['sdp_seconds'])}",
            number(r["frank-wolfe"]["seconds"]),
            number(r["auto"]["seconds"]),
            number(r["auto"]["gap"]),
            f"{r['sign']}{r['speed_up']:,.0f}",
        )
        for r in result["results"]
        if r["sdp_seconds"] is not None
    ]
    head = ("set", "rows", "SDP (s)", "Frank-Wolfe (s)", "auto (s)", "gap of auto", "times faster")
    return table(head, rows, "-rrrrrr") + _machine(result)


def protocol(result: Json) -> str:
    """Test errors of each reading of the paper's protocol."""
    rows = []
    for record in result["results"]:
        errors = sorted(record["errors"])
        cells = (
            mean_and_spread(errors, 2),
            *(f"{e:.2f}" for e in (median(errors), errors[0], errors[-1])),
        )
        rows.append((record["variant"], str(len(errors)), *cells))
    head = ("variant", "divisions", "test error (MSE)", "median", "smallest", "largest")
    return table(head, rows, "-rrrrr") + _machine(result)


def strength(result: Json) -> str:
    """Test accuracy of each method against C."""
    rows = [
        (record["method"], *(mean_and_spread(values, 1) for values in record["accuracy"]))
        for record in result["results"]
    ]
    strengths = result["results"][0]["strengths"]
    head = ("test accuracy in %", *(f"C = {C:,.0f}" for C in strengths))
    return table(head, rows, "-" + "r" * len(strengths)) + _machine(result)


def mean_and_spread(values: list[float], digits: int) -> str:
    """Mean and standard deviation of values from several divisions."""
    return f"{mean(values):.{digits}f} ± {stdev(values):.{digits}f}"


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
