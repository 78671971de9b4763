"""The picture of row 6: seconds of a fit against rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from tessella_bench.figures._style import BLUE, FONTS, GREY

PAPER_EXPONENTS = (2.4, 2.7)


def draw_growth(cells: list[dict[str, Any]], exponent: float, constant: float, path: Path) -> None:
    """Measured times, their power law, and the paper's exponents through the first point."""
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot as plt

    rows = np.array([cell["rows"] for cell in cells], dtype=float)
    seconds = np.array([cell["seconds"] for cell in cells])
    with plt.rc_context(FONTS):
        figure, axes = plt.subplots(figsize=(5.2, 3.8), layout="constrained")
        for guide, dashes in zip(PAPER_EXPONENTS, ("--", ":"), strict=True):
            axes.plot(
                rows,
                seconds[0] * (rows / rows[0]) ** guide,
                color=GREY,
                linestyle=dashes,
                label=f"exponent {guide} (the paper's)",
            )
        fitted = np.exp(constant) * rows**exponent
        axes.plot(rows, fitted, color=BLUE, label=f"least squares, exponent {exponent:.2f}")
        axes.plot(rows, seconds, "o", color=BLUE, label="measured")
        axes.set(
            xscale="log",
            yscale="log",
            xlabel="rows of California housing",
            ylabel="seconds of a fit, gap 1e-3",
        )
        axes.set_xticks(rows, [f"{int(count):,}" for count in rows])
        axes.minorticks_off()
        axes.legend(frameon=False)
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=150)
        plt.close(figure)
