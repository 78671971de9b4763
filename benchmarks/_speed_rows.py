"""Row 13 of the speed table: predictions of one row, of some and of many, by every estimator."""

from __future__ import annotations

from _common import say
from _report import text
from _speed import Outcome, Session, prepare_memory, spread, worst
from predict_row import CASES, COLUMNS, ONE_ROW_MICROSECONDS, ROWS, measure

TRAINING_ROWS, FEATURES = 600, 10


def rows_predicted(session: Session) -> Outcome:
    """Row 13."""
    cells = []
    prepare_memory(1e8)
    for case in CASES:
        counts = session.sizes(ROWS, (1, 100))
        cells += measure(case, TRAINING_ROWS, FEATURES, counts, session.threads)
        slowest = worst([cell for cell in cells if cell["name"] == case.name], "ratio")
        say(f"  {case.name}, {case.task}: ratios up to {text(slowest)}")
    bad = [cell for cell in cells if cell["verdict"] != "ok"]
    one = [cell for cell in cells if cell["rows"] == 1]
    return Outcome(
        measured=f"one row {spread(one, 'microseconds')} µs; ratios {spread(cells, 'ratio')}",
        missed=f"{len(bad)} of {len(cells)}" if bad else "",
        columns=COLUMNS,
        cells=cells,
        notes=[
            f"Artificial rows with {FEATURES} features; estimators fitted to {TRAINING_ROWS} of "
            "them. The RBF machine has as many support vectors (fewer by at most one for each "
            "class where their number cannot be divided by that of the classes): it is fitted to "
            "that many rows and so small a C that every row is one. Judged are all methods and "
            f"numbers of rows, and {ONE_ROW_MICROSECONDS:g} µs for one row.",
        ],
    )
