"""What the figure of convergence keeps of a run."""

from __future__ import annotations

from tessella_bench.figures import _convergence as convergence


def test_thinned_history_keeps_both_ends():
    history = tuple(range(5000))
    kept = convergence.thinned(history, 100)
    assert len(kept) <= 100
    assert (kept[0], kept[-1]) == (0, 4999)
    assert convergence.thinned(history[:7], 100) == list(range(7))
