"""Row 13 of the speed table: nearly separable data, the SVM alone and the whole fit."""

from __future__ import annotations

from typing import Any

from _common import load, say
from _report import text
from _speed import Outcome, Session, at_most, spread
from _speed_fit import TOL, fit_cell
from _speed_svm import COLD_TARGET, cold_cells

SET, C, DELTA = "shill_bidding", 100.0, 0.5
FIT_TARGET = 1.5


def nearly_separable(session: Session) -> Outcome:
    """Row 13."""
    data = load(SET, 400 if session.quick else None, session.seed)
    machines = [_of_machine(cell) for cell in cold_cells(data, (C,), session)]
    fit = _of_fit(fit_cell(data, data, {"C": C, "delta": DELTA}, session))
    say(f"  whole fit: ratio {text(fit['ratio'])}")
    worse = [cell["P"] for cell in machines if not cell["no_worse"]]
    missed = [
        at_most(machines, "ratio", COLD_TARGET),
        at_most([fit], "ratio", FIT_TARGET),
        f"{len(worse)} objectives worse" if worse else "",
        f"gap {fit['gap']:.0e}" if fit["gap"] > TOL else "",
    ]
    return Outcome(
        measured=f"SVM {spread(machines, 'ratio')}, whole fit {text(fit['ratio'])}",
        missed=", ".join(part for part in missed if part),
        columns=COLUMNS,
        cells=[*machines, fit],
        notes=[
            f"The whole of {SET} with C = {C:g}. The SVM is measured as in row 1, against libsvm "
            "with the same matrix, and the fit as in row 3, against one fit of an RBF machine "
            "with cross-validated C and gamma.",
        ],
    )


def _of_machine(cell: dict[str, Any]) -> dict[str, Any]:
    return {"what": f"SVM, P {cell['P']}", "peer": "libsvm", **cell}


def _of_fit(cell: dict[str, Any]) -> dict[str, Any]:
    setting = f"RBF machine, C={cell['peer_C']:g}, gamma={cell['peer_gamma']:.3g}"
    return {"what": "whole fit", "peer": setting, **cell}


COLUMNS = {
    "what": "what",
    "rows": "rows",
    "C": "C",
    "against": "peer",
    "its seconds": "peer_seconds",
    "cached": "peer_cached",
    "ours (s)": "seconds",
    "ratio": "ratio",
    "our gap": "gap",
    "our objective": "objective",
    "its objective": "peer_objective",
    "its gap": "peer_gap",
}
