"""Representation of a fitted model in a notebook: HTML tables and bars, without scripts.

The colours are those of the page, so the block can be read on light and on dark pages. All numbers
are text, and names that come from the user are escaped.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from html import escape
from typing import Any

import numpy as np

from tessella.inspection._linearity import NEARLY_ALL
from tessella.inspection._names import feature_names
from tessella.inspection._summary import (
    Facts,
    facts_of,
    kernel_weights,
    part_shares,
    quick_linear_share,
    quick_relevance,
)

_SHOWN = 10  # bars
_LONGEST_NAME = 44  # characters; only both ends of a longer name are shown

# Notebooks style tables with rules that only a more specific selector overrides.
_STYLE = """<style>
.tessella-summary { padding: 0.6em 0.8em; max-width: 64em; line-height: 1.4; text-align: left; }
.tessella-summary p { margin: 0 0 0.4em; font-weight: bold; }
.tessella-summary p.tessella-alarm { color: #d7263d; }
.tessella-summary table + p { margin-top: 0.6em; }
.tessella-summary .tessella-parts { display: flex; flex-wrap: wrap;
  align-items: flex-start; gap: 0.6em 2.5em; }
.tessella-summary table.tessella-table { border-collapse: collapse; border: 0; margin: 0;
  width: auto; font-size: inherit; color: inherit; table-layout: auto; }
.tessella-summary table.tessella-table caption { caption-side: top; text-align: left;
  padding: 0 0 0.15em; color: inherit; font-weight: bold; }
.tessella-summary table.tessella-table tr:nth-child(n) { background: none; border: 0; }
.tessella-summary table.tessella-table tr:nth-child(n) :is(th, td) { background: none; border: 0;
  padding: 0.1em 1em 0.1em 0; color: inherit; font-weight: normal; vertical-align: top;
  text-align: left; white-space: normal; max-width: 26em; overflow-wrap: anywhere; }
.tessella-summary table.tessella-table tr:nth-child(n) td { font-variant-numeric: tabular-nums;
  padding-right: 0; }
.tessella-summary .tessella-bar { display: inline-block; width: 7em; height: 0.75em;
  margin-right: 0.6em; background: rgba(128, 128, 128, 0.22); }
.tessella-summary .tessella-bar > span { display: block; height: 100%; background: #0072b2; }
.tessella-summary .tessella-number { white-space: nowrap; }
</style>"""

Rows = Iterable[tuple[str, str]]


def model_html(model: Any) -> str:
    """Return the HTML of a fitted model. This function never raises.

    Parameters
    ----------
    model : estimator of this library
        Model with a learned kernel or a weighted sum of kernels.

    Returns
    -------
    str
        HTML, or an empty string if the model is not fitted.
    """
    return _block("Fitted model", _model_parts(model))


def search_html(search: Any) -> str:
    """Return the HTML of a fitted search and of its best model. This function never raises.

    Parameters
    ----------
    search : KernelPathCV
        Fitted search. If its best estimator is a pipeline, the last step is shown.

    Returns
    -------
    str
        HTML, or an empty string if the search is not fitted.
    """
    best = _attempt(lambda: _table("Best point", _point(search)))
    model: Any = getattr(search, "best_estimator_", None)
    if hasattr(model, "steps"):
        model = model.steps[-1][1]
    return _block("Search", best + _model_parts(model))


def automatic_html(model: Any) -> str:
    """Return the HTML of a fitted automatic model. This function never raises.

    Parameters
    ----------
    model : TessellaClassifier or TessellaRegressor
        Automatic model.

    Returns
    -------
    str
        HTML, or an empty string if the model is not fitted.
    """
    if not hasattr(model, "members_"):
        return ""
    parts = [
        _attempt(lambda: _table("Model", _automatic_facts(model))),
        _attempt(lambda: _members(model)),
    ]
    return _block("Fitted model", f'<div class="tessella-parts">{"".join(parts)}</div>')


def _automatic_facts(model: Any) -> Rows:
    score = "accuracy" if hasattr(model, "classes_") else "R²"
    yield f"held-out {score}", f"{model.loo_score_:.4f}"
    yield "machines in the average", f"{len(model.members_):,}"
    divided = [own.partition for own in model.members_ if own.partition.n_leaves > 1]
    if divided:
        yield "leaves", _leaves(sum(p.n_leaves for p in divided), sum(p.n_trees for p in divided))
    yield "largest certified gap", f"{model.gap_:.1e}"
    yield "search", "complete" if model.search_complete_ else "ended early"
    yield "seconds", f"{model.fit_time_:.1f}"


def _members(model: Any) -> str:
    """Return the weights of the kinds of machines in the average as bars."""
    found = [(_kind(line), line["weight"]) for line in model.leaderboard_ if line["weight"] > 0]
    found.sort(key=lambda pair: -pair[1])
    return _bars("Average", ("machine", "weight"), found)


def _kind(line: dict[str, Any]) -> str:
    learned = "learned " if line["learned"] else ""
    return f"{learned}{line['family']}, {line['scaling']}, {line['loss']} loss"


def _attempt(part: Callable[[], str]) -> str:
    """Return a part, or an empty string if it fails: displaying a model must never raise."""
    try:
        return part()
    except Exception:
        return ""


def _block(label: str, content: str) -> str:
    if not content:
        return ""
    return (
        f'{_STYLE}<div class="tessella-summary" role="group" aria-label="{label}">{content}</div>'
    )


# ---------------------------------------------------------------------------------- parts


def _model_parts(model: Any) -> str:
    try:
        facts = facts_of(model)
    except Exception:  # not fitted, or fitted by a version with other attributes
        return ""
    parts = [
        _attempt(lambda: _table(_certificate_title(facts), _certificate(facts))),
        _attempt(lambda: _table("Model", _sizes(facts))),
        _attempt(lambda: _shares(model)),
        _attempt(lambda: _weights(model, facts)),
        _attempt(lambda: _relevance(model)),
    ]
    tone = "" if facts.is_usable else ' class="tessella-alarm"'
    texts = f"<p{tone}>{escape(verdict(facts))}</p>{_attempt(lambda: _linearity(model))}"
    return f'{texts}<div class="tessella-parts">{"".join(parts)}</div>'


def verdict(facts: Facts) -> str:
    """Return a sentence on how the fit ended, which agrees with the warning of the fit."""
    if facts.within_tol:
        return f"✓ Certified within tol: relative gap {facts.gap:.2e}, tol={facts.tol:g}"
    above = f"certified relative gap of {facts.gap:.2e}, above tol={facts.tol:g}"
    if facts.status == "optimal":  # the tolerance was changed after the fit
        return f"⚠ Certified for another tol: {above}"
    if not facts.is_usable:
        return f"✗ Do not use this model: stopped ({facts.status}) with a {above}"
    return f"⚠ Stopped ({facts.status}) with a {above}"


def _linearity(model: Any) -> str:
    """Return a note if the kernel is linear, and an empty string otherwise."""
    note = linear_note(quick_linear_share(model))
    return f"<p>{escape(note)}</p>" if note else ""


def linear_note(share: float | None) -> str:
    """Return a sentence about a kernel that is linear, and an empty string about others."""
    if share is None or not share >= NEARLY_ALL:
        return ""
    return (
        f"The kernel is linear: linear functions of the features explain {share:.1%} of it, so "
        "this is nearly a linear model"
    )


def _certificate_title(facts: Facts) -> str:
    by_rule = facts.weighting not in (None, "learned", "simple")
    return "Certificate of the SVM; its weights are given" if by_rule else "Certificate"


def _certificate(facts: Facts) -> Rows:
    yield "objective", f"{facts.objective:.6g}"
    yield "lower bound", f"{facts.lower_bound:.6g}"
    yield "relative gap", f"{facts.gap:.2e}"
    if facts.worst_gap is not None:
        yield "worst gap of a pair", f"≤ {facts.worst_gap:.2e}"
    if facts.solver is not None:
        yield "solver", facts.solver
    yield "iterations", f"{facts.iterations:,}"
    if facts.svm_solves is not None:
        yield "SVM solves", f"{facts.svm_solves:,}"
    if facts.newton_steps is not None:
        yield "Newton steps", f"{facts.newton_steps:,}"
    if facts.seconds is not None:
        yield "time", _duration(facts.seconds)


def _duration(seconds: float) -> str:
    return f"{seconds:,.0f} s" if seconds >= 100 else f"{seconds:.2g} s"


def _sizes(facts: Facts) -> Rows:
    for name, count in (
        ("rows", facts.rows),
        ("features", facts.features),
        ("support vectors", facts.support_vectors),
    ):
        if count is not None:
            yield name, f"{count:,}"
    if facts.n_leaves is not None and facts.n_trees is not None:
        yield "leaves", _leaves(facts.n_leaves, facts.n_trees)
    if facts.weighting is not None:
        yield "weighting", facts.weighting
    if len(facts.kernels) > 1:
        yield "learned kernels", f"{len(facts.kernels)}, one for each pair of classes"
    sides = facts.matrix_sides
    if sides:
        yield "side of P", ", ".join(f"{side:,}" for side in sides)
        if facts.ranks_are_quick:
            yield "rank of P", ", ".join(map(_span, facts.matrix_ranks()))


def _leaves(leaves: int, trees: int) -> str:
    return f"{leaves:,} in {trees} tree{'s' if trees > 1 else ''}"


def _span(values: list[int]) -> str:
    low, high = min(values), max(values)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def _relevance(model: Any) -> str:
    title = "Feature relevance: share of the variance of the learned function"
    shares = quick_relevance(model)
    if shares is None:
        return _table(title, [("not computed yet", "read feature_relevance_ to see it here")])
    names = feature_names(model, len(shares))
    order = np.argsort(-shares, kind="stable")
    return _bars(title, ("feature", "share"), [(names[j], float(shares[j])) for j in order])


def _shares(model: Any) -> str:
    shares = part_shares(model)
    if len(shares) < 2:
        return ""
    return _bars("Parts of the kernel: share of the trace", ("part", "share"), shares)


def _weights(model: Any, facts: Facts) -> str:
    if not facts.n_weights:
        return ""
    weights = kernel_weights(model)
    title = f"Kernel weights: {len(weights):,} of {facts.n_weights:,} are not zero"
    if len(facts.kernels) > 1:
        title = f"Kernel weights: means over {len(facts.kernels):,} pairs of classes"
    return _bars(title, ("kernel", "weight"), weights)


def _point(search: Any) -> Rows:
    for name, value in search.best_params_.items():
        yield str(name), f"{value:.6g}" if isinstance(value, float) else repr(value)
    if hasattr(search, "best_score_"):
        score = search.refit if search.multimetric_ else "score"
        yield f"mean {score}, {search.n_splits_} folds", f"{search.best_score_:.4g}"
    yield "points compared", f"{len(search.cv_results_['params']):,}"
    if hasattr(search, "refit_time_"):
        yield "time of the last fit", _duration(search.refit_time_)


# --------------------------------------------------------------------------------- tables


def _table(title: str, rows: Rows) -> str:
    lines = (
        f'<tr><th scope="row">{escape(name)}</th><td>{escape(text)}</td></tr>'
        for name, text in rows
    )
    return _framed(title, f"<tbody>{''.join(lines)}</tbody>")


def _bars(title: str, header: tuple[str, str], values: list[tuple[str, float]]) -> str:
    """Return the largest values as bars, with the sum of all other values below."""
    longest = max((value for _, value in values[:_SHOWN]), default=0.0)
    lines = [_bar(name, value, longest) for name, value in values[:_SHOWN]]
    others = [value for _, value in values[_SHOWN:]]
    if others:
        label = f"sum of {len(others):,} others" if len(others) > 1 else "1 other"
        # There is no bar, because a sum would look like the largest of the values.
        lines.append(_bar(label, math.fsum(others), math.inf))
    columns = "".join(f'<th scope="col">{name}</th>' for name in header)
    return _framed(title, f"<thead><tr>{columns}</tr></thead><tbody>{''.join(lines)}</tbody>")


def _bar(name: str, value: float, longest: float) -> str:
    percent = 100 * value / longest if 0 < longest < math.inf and math.isfinite(value) else 0.0
    track = f'<span class="tessella-bar"><span style="width: {percent:.1f}%"></span></span>'
    blank = '<span class="tessella-bar" style="background: none"></span>'
    return (
        f'<tr><th scope="row">{_shortened(name)}</th><td><span class="tessella-number">'
        f"{blank if longest == math.inf else track}{value:.3f}</span></td></tr>"
    )


def _shortened(name: str) -> str:
    if len(name) <= _LONGEST_NAME:
        return escape(name)
    half = _LONGEST_NAME // 2
    return f'<span title="{escape(name)}">{escape(name[:half])}…{escape(name[-half:])}</span>'


def _framed(title: str, content: str) -> str:
    return f'<table class="tessella-table"><caption>{escape(title)}</caption>{content}</table>'
