"""A process that runs some cases of a part: ``python -m tessella_bench.campaign._worker``.

It prints a line when it is ready, and one with the outcome of each case, in their order. Whoever
reads them knows which case was running when the process died or stopped answering.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
import warnings
from dataclasses import asdict
from pathlib import Path

from tessella_bench.campaign._outcome import Outcome, judged
from tessella_bench.campaign._parts import PARTS, Run

READY, END = "ready", "end"
_IN_MEMORY = next((own for own in ("/dev/shm",) if os.access(own, os.W_OK)), None)


def main(part: str, numbers: list[int]) -> None:
    """Run cases, and print what they find."""
    warnings.simplefilter("ignore")  # a campaign makes thousands of models that do not converge
    # What the library prints must not look like a result.
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    run = PARTS[part].run
    print(READY, file=answers)
    for number in numbers:
        started = time.monotonic()
        outcome = run_case(run, number)
        seconds = time.monotonic() - started
        print(END, json.dumps([number, seconds, asdict(outcome)]), file=answers)


def run_case(run: Run, number: int) -> Outcome:
    """Run one case in a folder of its own, in memory where the system has such folders."""
    with tempfile.TemporaryDirectory(prefix="campaign-", dir=_IN_MEMORY) as folder:
        try:
            return run(number, Path(folder))
        except Exception as error:
            return judged("case", error)


if __name__ == "__main__":
    main(sys.argv[1], [int(number) for number in sys.argv[2].split(",")])
