"""``python -m tessella.benchmarking.figures``: draw the figures."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tessella.benchmarking.figures import FIGURES, MissingDataError, draw_all


def main() -> None:
    """Read the command line and draw."""
    parser = argparse.ArgumentParser(prog="python -m tessella.benchmarking.figures")
    parser.add_argument("--output", type=Path, required=True, help="folder of the pictures")
    parser.add_argument("--only", nargs="+", metavar="NAME", choices=FIGURES, help="which ones")
    parser.add_argument("--data-home", type=Path, help="folder of the data sets")
    parser.add_argument("--quick", action="store_true", help="tiny sizes, to see that it runs")
    parser.add_argument("--fresh", action="store_true", help="measure everything again")
    given = parser.parse_args()
    try:
        draw_all(
            given.output, given.data_home, given.only, given.quick, fresh=given.fresh, say=_say
        )
    except (ImportError, MissingDataError) as error:
        parser.exit(2, f"{error}\n")


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
