"""Where things are in a text file: read again, slowly, once something is known to be wrong."""

from __future__ import annotations

import csv
import gzip
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO


@dataclass(frozen=True)
class Ragged:
    """A record with more or fewer fields than the header."""

    line: int
    found: int
    expected: int


@dataclass(frozen=True)
class CsvRecords:
    """Records of a delimited text file with the lines they start on.

    Attributes
    ----------
    path : Path
        The file, compressed when it ends in ``.gz``.
    delimiter : str
        What separates fields.
    """

    path: Path
    delimiter: str

    def __iter__(self) -> Iterator[tuple[int, list[str]]]:
        """Line (from 1) and fields of each record, the header included, blank lines not."""
        # What this reader cannot make sense of is where the records end: it only helps messages.
        with self._open() as file, suppress(csv.Error):
            reader = csv.reader(file, delimiter=self.delimiter)
            start = 1
            for fields in reader:
                if fields:
                    yield start, fields
                start = reader.line_num + 1

    def line_of(self, index: int) -> int:
        """Line of a data row, counted from 0 after the header."""
        for position, (line, _) in enumerate(self):
            if position == index + 1:
                return line
        return index + 2

    def first_ragged(self) -> Ragged | None:
        """The first record that is not as long as the header."""
        expected = None
        for line, fields in self:
            if expected is None:
                expected = len(fields)
            elif len(fields) != expected:
                return Ragged(line, len(fields), expected)
        return None

    def separated_by(self, other: str) -> bool:
        """Whether the header is one field, with another separator in it."""
        header: list[str] = []
        with suppress(OSError, EOFError):  # left to the reader proper, which says what is wrong
            header = next((fields for _, fields in self), [])
        return len(header) == 1 and other in header[0]

    def is_header_only(self) -> bool:
        """Whether there is a header and nothing after it."""
        return sum(1 for _ in self) == 1

    def _open(self) -> TextIO:
        opener = gzip.open if self.path.name.lower().endswith(".gz") else open
        file: TextIO = opener(self.path, "rt", encoding="utf-8-sig", errors="replace", newline="")
        return file
