"""Results of cases as lines of JSON, from which a campaign goes on."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from tessella_bench.campaign._outcome import Outcome


@dataclass(frozen=True)
class Result:
    """The outcome of one case.

    Attributes
    ----------
    part : str
        Name of the part.
    number : int
        Number of the case, from which it follows.
    seconds : float
        Seconds that it took.
    outcome : Outcome
        What it has found.
    """

    part: str
    number: int
    seconds: float
    outcome: Outcome


class RecordFile:
    """A file with one line of JSON for each finished case, in the order in which they finished.

    Parameters
    ----------
    path : Path
        Path of the file, which need not exist.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def add(self, result: Result) -> None:
        """Append a result; a campaign that is killed loses the cases in work only."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        line = {"part": result.part, "number": result.number, "seconds": round(result.seconds, 3)}
        with self._path.open("a") as file:
            file.write(json.dumps({**line, **asdict(result.outcome)}) + "\n")

    def results(self) -> Iterator[Result]:
        """Yield the results; of a case that has several, the last one counts."""
        latest: dict[tuple[str, int], Result] = {}
        for line in self._path.read_text().splitlines() if self._path.exists() else []:
            try:
                found = json.loads(line)
                outcome = Outcome(found["verdict"], found["kind"], found["detail"])
                result = Result(found["part"], found["number"], found["seconds"], outcome)
            except (KeyError, ValueError):  # the last line of a campaign that was killed
                continue
            latest[result.part, result.number] = result
        yield from latest.values()

    def finished(self, part: str) -> set[int]:
        """Return the numbers of the finished cases of a part."""
        return {result.number for result in self.results() if result.part == part}
