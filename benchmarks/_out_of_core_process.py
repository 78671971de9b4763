"""Writes a folder of Parquet files, or fits one, in a process of its own; see out_of_core.py."""

from __future__ import annotations

import json
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from _large_data import BLOCK_ROWS, COLUMNS, TEST_ROWS_FROM, Rows, errors, leaves_of, make_rows
from _watched import peak_bytes, processor_seconds
from numpy.typing import NDArray

TARGET = "target"
GROUP_BLOCKS = 10  # blocks of a row group, which is what a reader holds at once
TEST_ROWS = 20_000
_NOISE_STREAM = 1 << 32  # seeds of the further columns, apart from those of the table


def main() -> None:
    """Answer a request, a JSON object in the first argument, on the last line of the output."""
    request = json.loads(sys.argv[1])
    warnings.simplefilter("ignore")  # the gap is reported instead
    action = {"write": write, "fit": fit}[request.pop("action")]
    print(json.dumps(action(**request)))


# ----------------------------------------------------------------------------------- writing


def write(
    *, folder: str, rows: int, columns: int, file_rows: int, kind: str, seed: int
) -> dict[str, Any]:
    """Files of a table, one row group after the other, so that memory does not grow."""
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    begin = time.perf_counter()
    files = [
        _write_file(place / f"part-{k:05d}.parquet", first, min(file_rows, rows - first), request)
        for request in [(columns, kind, seed)]
        for k, first in enumerate(range(0, rows, file_rows))
    ]
    return {
        "seconds": time.perf_counter() - begin,
        "peak_bytes": peak_bytes(),
        "rows": rows,
        "columns": columns,
        "files": len(files),
        "bytes": sum(files),
    }


def _write_file(path: Path, first: int, count: int, table: tuple[int, str, int]) -> int:
    """Bytes of a file with some rows; a file that is complete is kept."""
    import pyarrow as pa
    from pyarrow import parquet

    if path.is_file():
        return path.stat().st_size
    columns, kind, seed = table
    draft = path.with_suffix(".part")
    writer = None
    group = GROUP_BLOCKS * BLOCK_ROWS
    for begin in range(first, first + count, group):
        rows = make_rows(min(group, first + count - begin), kind, seed, begin)
        X = widened(rows.X, columns, seed, begin)
        arrays = {f"x{k}": pa.array(np.ascontiguousarray(X[:, k])) for k in range(columns)}
        content = pa.table({**arrays, TARGET: pa.array(rows.y)})
        if writer is None:
            writer = parquet.ParquetWriter(draft, content.schema, use_dictionary=False)
        writer.write_table(content)
    assert writer is not None
    writer.close()
    draft.replace(path)
    return path.stat().st_size


def widened(X: NDArray[np.float64], columns: int, seed: int, first: int) -> NDArray[np.float64]:
    """The columns of the table, and uniform ones without effect up to so many."""
    if columns == COLUMNS:
        return X
    key = np.array([_NOISE_STREAM + seed, first], np.uint64)
    rng = np.random.Generator(np.random.Philox(key=key))
    return np.hstack([X, rng.random((len(X), columns - COLUMNS))])


# ----------------------------------------------------------------------------------- fitting


def fit(
    *, folder: str, columns: int, kind: str, seed: int, settings: dict[str, Any]
) -> dict[str, Any]:
    """A fit of the folder, and its errors on other rows."""
    from tessella import LearnedKernelSVC, LearnedKernelSVR

    model = (LearnedKernelSVR if kind == "regression" else LearnedKernelSVC)(**settings)
    before = peak_bytes()
    begin, used = time.perf_counter(), processor_seconds()
    model.fit(folder, TARGET)
    seconds, used = time.perf_counter() - begin, processor_seconds() - used
    answer = {
        "seconds": seconds,
        "processor_seconds": used,
        "peak_bytes": peak_bytes(),
        "peak_bytes_before": before,
        "gap": float(model.gap_),
        "status": str(model.status_),
        "objective": float(model.objective_),
        "leaves": leaves_of(model),
        "rounds": len(model.history_),
    }
    test = make_rows(TEST_ROWS, kind, seed, TEST_ROWS_FROM)
    predicted = model.predict(widened(test.X, columns, seed, TEST_ROWS_FROM))
    return {**answer, **errors(kind, predicted, Rows(test.X, test.y, test.clean))}


if __name__ == "__main__":
    main()
