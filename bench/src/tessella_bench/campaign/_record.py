"""Results of cases as lines of JSON, from which a campaign goes on."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from tessella_bench.campaign._outcome import Outcome

_FLUSH_SECONDS = 2.0  # how much work a campaign that is killed may lose


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
    code : str
        Which code was attacked, and by which code, from :func:`tessella_bench.campaign._code.code`.
    """

    part: str
    number: int
    seconds: float
    outcome: Outcome
    code: str = ""


class RecordFile:
    """A file with one line of JSON for each finished case, in the order in which they finished.

    Lines are collected for some seconds before they are written. A campaign that is killed runs
    the cases of these seconds again, and a line that was cut is not read. As a context manager it
    writes what is left at the end.

    Parameters
    ----------
    path : Path
        Path of the file, which need not exist.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lines: list[str] = []
        self._written = time.monotonic()

    def __enter__(self) -> RecordFile:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.flush()

    def add(self, result: Result) -> None:
        """Append a result."""
        line = {"part": result.part, "number": result.number, "seconds": round(result.seconds, 4)}
        self._lines.append(json.dumps({**line, **asdict(result.outcome), "code": result.code}))
        if time.monotonic() - self._written > _FLUSH_SECONDS:
            self.flush()

    def flush(self) -> None:
        """Write the results that were added."""
        if self._lines:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            text = "\n".join(self._lines) + "\n"
            with self._path.open("a+b") as file:
                # The last line of a campaign that was killed must not take the next one with it.
                file.write((b"\n" if self._is_cut() else b"") + text.encode())
        self._lines, self._written = [], time.monotonic()

    def _is_cut(self) -> bool:
        """Return whether the last line of the file has no end."""
        with self._path.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - 1))
            return file.read() not in (b"", b"\n")

    def results(self) -> Iterator[Result]:
        """Yield the results; of a case that has several, the last one counts."""
        self.flush()
        latest: dict[tuple[str, int], Result] = {}
        for line in self._path.read_text().splitlines() if self._path.exists() else []:
            try:
                result = _result(json.loads(line))
            except (KeyError, ValueError):  # the last line of a campaign that was killed
                continue
            latest[result.part, result.number] = result
        yield from latest.values()


def _result(found: dict[str, Any]) -> Result:
    outcome = Outcome(found["verdict"], found["kind"], found["detail"])
    own = (found["part"], found["number"], found["seconds"], outcome)
    return Result(*own, found.get("code", ""))
