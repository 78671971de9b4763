"""Row 5 of the speed table: the max-product matrix against the roofs of the machine."""

from __future__ import annotations

from typing import Any

import numpy as np
from _common import say
from _report import text
from _roofs import Roofs, measure_roofs
from _speed import Outcome, Session, alternate, prepare_memory, spread, timed
from numpy.typing import NDArray

from tessella import _core

FloatArray = NDArray[np.float64]

TARGET = 0.5
FEATURES = (4, 8, 16, 32)
ROWS, QUICK_ROWS = 6000, 1000

# A minimum and a product per feature, for every entry of the matrix. An entry point that computes
# one triangle and mirrors it would need half of them: count 1 then.
FLOPS_PER_FEATURE = 2.0


def max_product(session: Session) -> Outcome:
    """Row 5."""
    rows = QUICK_ROWS if session.quick else ROWS
    prepare_memory(24.0 * rows**2)
    roofs = measure_roofs()
    say(f"  {roofs.described()}")
    cells: list[dict[str, Any]] = []
    for features in FEATURES:
        cells += _cells(rows, features, roofs, session.threads)
        say(f"  {features} features: {spread(cells[-2:], 'of_roof')} of the roof")
    least = min(cell["of_roof"] for cell in cells)
    below = [cell for cell in cells if cell["of_roof"] < TARGET]
    most = max(cell["of_roof"] for cell in cells)
    return Outcome(
        measured=f"{text(least)} to {text(most)} of the roof",
        missed=f"{len(below)} of {len(cells)} below {TARGET:g}" if below else "",
        columns=COLUMNS,
        cells=cells,
        notes=[
            roofs.described(),
            f"{rows:,} rows against themselves. The roof is the larger of the time to write the "
            "matrix (at the rate of a fill, since it is only written) and of the flops at the rate "
            "of a matrix product in float64, in which the entries are computed for both storages; "
            "a minimum and a product count two, although no fused instruction does both. "
            "`of a copy` is the rate of writing against that of a copy.",
            "The array is reused, so its pages are there; `first touch` is a call that writes to a "
            "new array.",
        ],
    )


def _cells(rows: int, features: int, roofs: Roofs, threads: int) -> list[dict[str, Any]]:
    """Both storages in turn: one after the other, a busy minute would hit only one of them."""
    room = np.random.default_rng(features).random((rows, features))
    calls = [_Product(room, np.dtype(dtype), threads) for dtype in (np.float32, np.float64)]
    clocks = [timed(call) for call in calls]
    first_touch = [clock.best for clock in clocks]
    best = [clock.best for clock in alternate(*calls)]
    return [
        _cell(call.out, features, seconds, roofs) | {"first_touch": first}
        for call, seconds, first in zip(calls, best, first_touch, strict=True)
    ]


class _Product:
    """A call that fills the same array each time; its pages come with the first."""

    def __init__(self, room: FloatArray, dtype: np.dtype[Any], threads: int) -> None:
        self._room, self._threads = room, threads
        self.out: NDArray[Any] = np.empty((len(room), len(room)), dtype)

    def __call__(self) -> None:
        _core.max_product(self._room, self._room, self.out, self._threads)


def _cell(out: NDArray[Any], features: int, seconds: float, roofs: Roofs) -> dict[str, Any]:
    rows = len(out)
    flops = FLOPS_PER_FEATURE * features * rows**2
    by_flops, by_bytes = 1e-9 * flops / roofs.gemm64, 1e-9 * out.nbytes / roofs.fill
    bound = max(by_flops, by_bytes)
    return {
        "storage": out.dtype.name,
        "rows": rows,
        "features": features,
        "seconds": seconds,
        "gflop_per_s": 1e-9 * flops / seconds,
        "gb_per_s": 1e-9 * out.nbytes / seconds,
        "roof": "flops" if by_flops >= by_bytes else "bytes",
        "roof_seconds": bound,
        "of_roof": bound / seconds,
        "of_copy": 1e-9 * out.nbytes / seconds / roofs.copy,
    }


COLUMNS = {
    "storage": "storage",
    "features": "features",
    "seconds": "seconds",
    "first touch (s)": "first_touch",
    "GFlop/s": "gflop_per_s",
    "GB/s written": "gb_per_s",
    "roof": "roof",
    "roof (s)": "roof_seconds",
    "of the roof": "of_roof",
    "of a copy": "of_copy",
}
