"""Positions of records in a text file, which is read again to locate errors."""

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
    """Record with more or fewer fields than the header."""

    line: int
    found: int
    expected: int


@dataclass(frozen=True)
class CsvRecords:
    """Records of a delimited text file, with the lines on which they start.

    Attributes
    ----------
    path : Path
        Path of the file. The file is compressed if its name ends in ``.gz``.
    delimiter : str
        Character that separates fields.
    """

    path: Path
    delimiter: str

    def __iter__(self) -> Iterator[tuple[int, list[str]]]:
        """Yield the line (from 1) and the fields of the header and of each record."""
        # Records that cannot be parsed end the iteration; it is used for messages only.
        with self._open() as file, suppress(csv.Error):
            reader = csv.reader(file, delimiter=self.delimiter)
            start = 1
            for fields in reader:
                if fields:
                    yield start, fields
                start = reader.line_num + 1

    def line_of(self, index: int) -> int:
        """Return the line of a data row. Data rows are counted from 0."""
        for position, (line, _) in enumerate(self):
            if position == index + 1:
                return line
        return index + 2

    def first_ragged(self) -> Ragged | None:
        """Return the first record whose length differs from that of the header."""
        expected = None
        for line, fields in self:
            if expected is None:
                expected = len(fields)
            elif len(fields) != expected:
                return Ragged(line, len(fields), expected)
        return None

    def separated_by(self, other: str) -> bool:
        """Return whether the header is a single field that contains another separator."""
        header: list[str] = []
        with suppress(OSError, EOFError):  # reported when the file is read as a table
            header = next((fields for _, fields in self), [])
        return len(header) == 1 and other in header[0]

    def is_header_only(self) -> bool:
        """Return whether the file contains a header and no other records."""
        return sum(1 for _ in self) == 1

    def _open(self) -> TextIO:
        opener = gzip.open if self.path.name.lower().endswith(".gz") else open
        file: TextIO = opener(self.path, "rt", encoding="utf-8-sig", errors="replace", newline="")
        return file
