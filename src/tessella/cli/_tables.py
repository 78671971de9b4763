"""Functions that read tables and report the position of errors."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset
import pyarrow.parquet
from numpy.typing import NDArray

from tessella.cli._csv_records import CsvRecords
from tessella.cli._errors import CommandError, complain
from tessella.cli._frames import Frame
from tessella.tabular._columns import DATE, NUMBER

FloatArray = NDArray[np.float64]

_DELIMITERS = {".csv": ",", ".csv.gz": ",", ".tsv": "\t", ".tsv.gz": "\t"}
_SEMICOLON = ";"  # separator of spreadsheets in which numbers have a decimal comma
PARQUET = ".parquet"
_PART_ROWS = 65_536  # of a file that is read in parts
#: What pyarrow reads ahead of the part that is used.
READ_AHEAD = {"batch_readahead": 1, "fragment_readahead": 1}
_NAMES_SHOWN = 5
# Text that a column of booleans has in a text file.
_BOOLEANS = {"true": 1.0, "false": 0.0, "True": 1.0, "False": 0.0, "TRUE": 1.0, "FALSE": 0.0}


@dataclass(frozen=True)
class Table:
    """Columns of a file, which are checked when they are used.

    Attributes
    ----------
    path : Path
        Path of the file.
    columns : dict of str to ChunkedArray
        Columns of the file, in order.
    records : CsvRecords or None
        Positions of the rows in a text file, or None for a binary file.
    dates : dict of str to ChunkedArray
        Dates and times of a text file. The same columns are text in `columns`, so that they are
        refused as numbers in the words of the file and can be labels.
    first : int
        Number of rows of the file before those of the table.
    """

    path: Path
    columns: dict[str, Any]
    records: CsvRecords | None
    dates: dict[str, Any] = field(default_factory=dict)
    first: int = 0

    def require(self, name: str) -> None:
        """Raise an error that suggests similar names if a column does not exist."""
        if name in self.columns:
            return
        close = get_close_matches(name, self.columns, n=3, cutoff=0.5)
        hint = (
            f"did you mean {listed(close)}?" if close else f"the columns are {listed(self.columns)}"
        )
        if len(self.columns) == 1 and self.records is not None:
            hint += f"; is the separator {self.records.delimiter!r}?"
        raise CommandError(f"{self.path}: there is no column {name!r}; {hint}")

    def matrix(self, names: Sequence[str]) -> FloatArray:
        """Return the numbers in the named columns, with shape (rows, columns)."""
        return np.column_stack([self.numbers(name) for name in names])

    def numbers(self, name: str) -> FloatArray:
        """Return the numbers in a column, with 1 and 0 for true and false."""
        column = self._present(name)
        kind = column.type
        if _is_text(kind):
            values = self._parsed(name, column)
        elif _is_number(kind) or pa.types.is_boolean(kind):
            values = column.cast(pa.float64(), safe=False).to_numpy()
        else:
            self._fail(name, 0, f"{column[0].as_py()!r} is not a number but has type {kind}")
        self._refuse(name, np.isnan(values), "missing value")
        self._refuse(name, np.isinf(values), "infinite value")
        return np.asarray(values, dtype=np.float64)

    def labels(self, name: str) -> NDArray[Any]:
        """Return class labels: text, booleans, whole numbers, or other numbers as text."""
        column = self._present(name)
        if _is_text(column.type):
            return np.array([str(value) for value in column.to_pylist()])
        if pa.types.is_boolean(column.type) or pa.types.is_integer(column.type):
            return np.asarray(column.to_numpy())
        values = self.numbers(name)
        # scikit-learn treats fractions as a continuous target, so such labels become text.
        whole = (values == np.round(values)).all()
        return values if whole else np.array([repr(value) for value in values.tolist()])

    def frame(self, names: Sequence[str], kinds: Sequence[str] | None = None) -> Frame:
        """Return some columns as a frame, with text, dates and gaps.

        Parameters
        ----------
        names : sequence of str
            Names of the columns.
        kinds : sequence of str, optional
            Kind of each column in the training data of a model: "number", "date" or "category". By
            default, the values determine the kinds.

        Returns
        -------
        Frame
            Frame for an automatic model.
        """
        wanted = zip(names, [None] * len(names) if kinds is None else kinds, strict=True)
        return Frame({name: self._feature(name, kind) for name, kind in wanted})

    def _feature(self, name: str, kind: str | None) -> NDArray[Any]:
        """Return the values of a column, which has to be of some kind if it is not None."""
        values = self._values(name)
        letter = values.dtype.kind
        empty = letter == "O" and all(value is None for value in values)
        if kind == NUMBER and not (empty or letter in "bf"):
            return self._as_numbers(name, values)
        if kind == DATE and not (empty or letter in "mM"):
            return self._as_dates(name, values)
        return values

    def _values(self, name: str) -> NDArray[Any]:
        """Return the values of a column as they are, with None, NaN or NaT where they are missing.

        Columns of booleans with gaps and columns of text become arrays of objects.
        """
        column = self.dates[name] if name in self.dates else self._decoded(name)
        kind = column.type
        if pa.types.is_null(kind) or pa.types.is_boolean(kind):
            values = np.array(column.to_pylist(), dtype=object)
            return values.astype(bool) if column.null_count == 0 else values
        if _is_text(kind):
            texts = column.to_pylist()
            return np.array([t if t and t.strip() else None for t in texts], dtype=object)
        if _is_number(kind):
            values = column.cast(pa.float64(), safe=False).to_numpy()
            self._refuse(name, np.isinf(values), "infinite value")
            return np.asarray(values)
        if pa.types.is_time(kind):
            whole = pa.int64() if pa.types.is_time64(kind) else pa.int32()
            counts = column.cast(whole).cast(pa.int64())
            return np.asarray(counts.cast(pa.duration(kind.unit)).to_numpy())
        if pa.types.is_temporal(kind):
            return np.asarray(column.to_numpy())
        if _is_binary(kind):
            self._fail(name, 0, "contains bytes that are not UTF-8 text")
        return self._fail(name, 0, f"is of type {kind}; leave it out with --drop, or convert it")

    def _as_numbers(self, name: str, values: NDArray[Any]) -> FloatArray:
        numbers = np.full(len(values), np.nan)
        for index, value in enumerate(values):
            if value is None:
                continue
            try:
                numbers[index] = float(_BOOLEANS.get(value, value))
            except (TypeError, ValueError):
                self._fail(name, index, f"{str(value)!r} is not a number")
        self._refuse(name, np.isinf(numbers), "infinite value")
        return numbers

    def _as_dates(self, name: str, values: NDArray[Any]) -> NDArray[Any]:
        dates = np.full(len(values), None)
        for index, value in enumerate(values):
            if value is None:
                continue
            try:
                dates[index] = datetime.fromisoformat(value)
            except (TypeError, ValueError):
                self._fail(name, index, f"{str(value)!r} is not a date")
        return dates

    def is_categorical(self, name: str) -> bool:
        """Return whether a column contains text or booleans."""
        kind = self._decoded(name).type
        return _is_text(kind) or bool(pa.types.is_boolean(kind))

    def _decoded(self, name: str) -> Any:
        column = self.columns[name]
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        return column

    def _present(self, name: str) -> Any:
        """Return a column after checking that it has no missing values."""
        column = self._decoded(name)
        missing = column.is_null().to_numpy()
        if _is_binary(column.type):
            self._fail(name, 0, "contains bytes that are not UTF-8 text")
        if _is_text(column.type):
            missing = np.array([v is None or not v.strip() for v in column.to_pylist()], dtype=bool)
        self._refuse(name, missing, "missing value")
        return column

    def _parsed(self, name: str, column: Any) -> FloatArray:
        values = np.empty(len(column))
        for index, text in enumerate(column.to_pylist()):
            try:
                values[index] = float(text)
            except ValueError:
                self._fail(name, index, f"{text!r} is not a number")
        return values

    def _refuse(self, name: str, wrong: NDArray[Any], what: str) -> None:
        if wrong.any():
            self._fail(name, int(np.flatnonzero(wrong)[0]), what)

    def _fail(self, name: str, index: int, what: str) -> NoReturn:
        if self.records is None:
            place = f"row {self.first + index + 1}"
        else:
            place = f"line {self.records.line_of(index)}"
        raise CommandError(f"{self.path}: column {name!r}, {place}: {what}")


def listed(names: Sequence[str] | dict[str, Any]) -> str:
    """Format names for a message: the first names, and the number of others."""
    shown = [repr(name) for name in list(names)[:_NAMES_SHOWN]]
    more = len(names) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")


def read_table(path: Path, text: Collection[str] = ()) -> Table:
    """Read a CSV, TSV or Parquet file, chosen by suffix.

    Parameters
    ----------
    path : Path
        Path with the suffix ``.csv``, ``.csv.gz``, ``.tsv``, ``.tsv.gz`` or ``.parquet``.
    text : collection of str
        Columns of a text file that are read as text, even if they contain numbers.

    Returns
    -------
    Table
        Table with at least one row and with distinct column names.
    """
    if path.is_dir():
        raise CommandError(
            f"{path}: this is a folder; Parquet files of a folder are fitted with --model "
            "learned-kernel --max-leaf-rows 5000, which reads them in parts"
        )
    suffix = _suffix(path)
    if not path.exists():
        raise CommandError(f"{path}: the file does not exist")
    if not path.is_file():
        raise CommandError(f"{path}: this path is not a regular file")
    if not path.stat().st_size:
        raise CommandError(f"{path}: the file is empty")
    if suffix == PARQUET:
        return _checked(path, _read_parquet(path), None)
    records = CsvRecords(path, _DELIMITERS[suffix])
    if records.delimiter == "," and records.separated_by(_SEMICOLON):
        records = CsvRecords(path, _SEMICOLON)
    return _checked(path, *_read_csv(records, text))


def read_in_parts(path: Path) -> Iterator[Table]:
    """Read a table, and Parquet files in parts so that they may be larger than memory.

    Parameters
    ----------
    path : Path
        File as for :func:`read_table`, or a folder of Parquet files.

    Yields
    ------
    Table
        Some rows, in the order of the file or of the paths in a folder.
    """
    if path.is_file() and _suffix(path) != PARQUET:
        yield read_table(path)
        return
    first = 0
    for batch in parquet_dataset(path).to_batches(batch_size=_PART_ROWS, **READ_AHEAD):
        if batch.num_rows:
            table = _without_index(path, pa.Table.from_batches([batch]), quiet=first > 0)
            yield replace(_checked(path, table, None), first=first)
            first += batch.num_rows
    if not first:
        raise CommandError(f"{path}: there is a header but no rows")


def parquet_dataset(path: Path) -> Any:
    """Return the dataset of a Parquet file, or of the files in a folder."""
    if not path.exists():
        raise CommandError(f"{path}: the file does not exist")
    if path.is_file() and not path.stat().st_size:
        raise CommandError(f"{path}: the file is empty")
    try:
        return pa.dataset.dataset(path.absolute(), format="parquet", partitioning="hive")
    except (pa.ArrowException, OSError) as error:
        raise CommandError(f"{path}: there is no Parquet file, or one is damaged") from error


def _suffix(path: Path) -> str:
    known = [*_DELIMITERS, PARQUET]
    for suffix in known:
        if path.name.lower().endswith(suffix):
            return suffix
    raise CommandError(f"{path}: unknown type of file; use one of {', '.join(known)}")


def _checked(
    path: Path, table: Any, records: CsvRecords | None, dates: dict[str, Any] | None = None
) -> Table:
    names: list[str] = table.column_names
    repeated = {name: None for name in names if names.count(name) > 1}
    if repeated:
        raise CommandError(f"{path}: more than one column is called {listed(repeated)}")
    if "" in names:
        raise CommandError(
            f"{path}: column {names.index('') + 1} has no name; remove it if it numbers the rows"
        )
    if not table.num_rows:
        raise CommandError(f"{path}: there is a header but no rows")
    return Table(path, dict(zip(names, table.columns, strict=True)), records, dates or {})


def _read_parquet(path: Path) -> Any:
    try:
        table = pa.parquet.ParquetFile(path).read()
    except (pa.ArrowInvalid, OSError) as error:
        raise CommandError(f"{path}: the file is not a Parquet file, or it is damaged") from error
    return _without_index(path, table)


def _without_index(path: Path, table: Any, *, quiet: bool = False) -> Any:
    """Leave out the index columns of pandas, and tell it."""
    index = pandas_index(table.schema)
    if index and not quiet:
        complain("note", f"{path}: index columns are left out: {listed(index)}")
    return table.drop_columns(index) if index else table


def pandas_index(schema: Any) -> list[str]:
    """Return the columns that pandas treats as an index."""
    metadata = schema.pandas_metadata or {}
    named = [name for name in metadata.get("index_columns", []) if isinstance(name, str)]
    return [name for name in named if name in schema.names]


def _read_csv(records: CsvRecords, text: Collection[str]) -> tuple[Any, CsvRecords, dict[str, Any]]:
    """Return the table of a text file, its records, and its columns of dates and times."""
    path, as_text = records.path, dict.fromkeys(text, pa.string())
    try:
        table = _parse_csv(records, as_text)
        names = table.column_names  # the names are decoded here, which may fail
        kinds = zip(names, table.schema.types, strict=True)
        temporal = [name for name, kind in kinds if pa.types.is_temporal(kind)]
        dates = {name: table.column(name) for name in temporal if names.count(name) == 1}
        if temporal:
            table = _parse_csv(records, as_text | dict.fromkeys(temporal, pa.string()))
        if records.delimiter == _SEMICOLON:
            table = _with_decimal_commas(records, table, text)
        return table, records, dates
    except UnicodeDecodeError as error:
        raise CommandError(f"{path}: the column names are not UTF-8 text") from error
    except pa.ArrowInvalid as error:
        raise CommandError(f"{path}: {_why_invalid(records, str(error))}") from error
    except OSError as error:
        raise CommandError(f"{path}: the file cannot be read ({error})") from error


def _parse_csv(records: CsvRecords, types: dict[str, Any], decimal_point: str = ".") -> Any:
    return pa.csv.read_csv(
        records.path,
        parse_options=pa.csv.ParseOptions(delimiter=records.delimiter, newlines_in_values=True),
        convert_options=pa.csv.ConvertOptions(
            strings_can_be_null=True, column_types=types, decimal_point=decimal_point
        ),
    )


def _with_decimal_commas(records: CsvRecords, table: Any, text: Collection[str]) -> Any:
    """Convert text columns that contain numbers with decimal commas to numbers."""
    other = _parse_csv(records, {}, ",")
    for index, name in enumerate(table.column_names):
        column = other.column(index)
        wanted = _is_text(table.column(index).type) and name not in text
        if wanted and _is_number(column.type):
            table = table.set_column(index, name, column)
    return table


def _why_invalid(records: CsvRecords, message: str) -> str:
    ragged = records.first_ragged()
    if ragged is not None:
        return f"line {ragged.line} has {ragged.found} fields, but the header has {ragged.expected}"
    if records.is_header_only():
        return "there is a header but no rows"
    return "the file is empty" if "Empty CSV" in message else message


def _is_text(kind: Any) -> bool:
    types = pa.types
    views = getattr(types, "is_string_view", None)  # exists in newer versions of pyarrow
    return bool(types.is_string(kind) or types.is_large_string(kind) or (views and views(kind)))


def _is_binary(kind: Any) -> bool:
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind))


def _is_number(kind: Any) -> bool:
    types = pa.types
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind))
