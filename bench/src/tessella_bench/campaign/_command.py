"""The command of the campaign."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from tessella_bench.campaign._code import code
from tessella_bench.campaign._outcome import DEFECTS
from tessella_bench.campaign._parts import PARTS
from tessella_bench.campaign._record import RecordFile, Result
from tessella_bench.campaign._report import document, table
from tessella_bench.campaign._runner import run_cases
from tessella_bench.campaign._worker import run_case

REPORTS = Path("benchmarks/reports/campaign")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the campaign, or a part of it; return 1 if there are defects, and 0 otherwise."""
    options = _parser().parse_args(arguments)
    names = options.part or [name for name, part in PARTS.items() if part.possible]
    if options.case is not None:
        return _repeat(names, options.case)
    with RecordFile(options.folder / "record.jsonl") as record:
        if not options.report:
            deadline = None if options.seconds is None else time.monotonic() + options.seconds
            for name in names:
                _run_part(name, record, options, deadline)
        results = list(record.results())
    options.folder.mkdir(parents=True, exist_ok=True)
    (options.folder / "report.md").write_text(document(results))
    _say(table(results))
    return int(any(result.outcome.verdict in DEFECTS for result in results))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description="Attack the library with random fits, bad inputs, changed files, kills, "
        "signals, processes and limits, and count what goes wrong. A campaign goes on where the "
        "last one has stopped."
    )
    add = parser.add_argument
    add("--part", action="append", choices=list(PARTS), help="a part to run; may be repeated")
    add("--count", type=int, help="number of cases of each part; by default that of the part")
    add("--seconds", type=float, help="start no new process after that many seconds")
    add("--jobs", type=int, default=1, help="number of processes at the same time")
    add("--case", type=int, help="repeat the case of this number in this process, and show it")
    add("--again", action="store_true", help="run cases again whose last verdict is a defect")
    add("--current", action="store_true", help="run cases again that were run with other code")
    add("--report", action="store_true", help="write the report of the cases so far, run none")
    add("--folder", type=Path, default=REPORTS, help="where the record and the report are")
    return parser


def _run_part(
    name: str, record: RecordFile, options: argparse.Namespace, deadline: float | None
) -> None:
    part = PARTS[name]
    finished = {
        result.number
        for result in record.results()
        if result.part == name
        and not (options.again and result.outcome.verdict in DEFECTS)
        and not (options.current and result.code != code())
    }
    count = part.count if options.count is None else options.count
    numbers = [number for number in range(count) if number not in finished]

    def tell(result: Result) -> None:
        record.add(replace(result, code=code()))
        if result.outcome.verdict in DEFECTS:
            _say(_line(result))

    _say(f"{name}: {len(numbers):,} of {count:,} cases to run")
    run_cases(part, numbers, tell, options.jobs, deadline)


def _repeat(names: Sequence[str], number: int) -> int:
    """Run one case here, without a time limit and without a record."""
    if len(names) != 1:
        raise SystemExit("--case needs one --part.")
    started = time.monotonic()
    outcome = run_case(PARTS[names[0]].run, number)
    _say(_line(Result(names[0], number, time.monotonic() - started, outcome)))
    return int(outcome.verdict in DEFECTS)


def _line(result: Result) -> str:
    own = result.outcome
    return f"{result.part} {result.number}: {own.verdict}, {own.kind}: {own.detail}"


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()
