"""Rows of data for fits on parts of many rows, which never hold more than some of the rows.

A source reads rows in batches, from arrays (:class:`ArraySource`) or from Parquet files
(:class:`ParquetSource`). A store collects them by leaf, in memory (:class:`LeavesInMemory`) or in
a folder that is removed afterwards (:class:`LeavesOnDisk`), and :class:`LeafVectors` keeps numbers
that belong to the rows of each leaf.
"""

from tessella.rows._array import ArraySource
from tessella.rows._choose import is_stored, source_of
from tessella.rows._disk import LeavesOnDisk
from tessella.rows._growing import GrowingArray
from tessella.rows._leaves import LeafRows, LeavesInMemory
from tessella.rows._parquet import ParquetSource
from tessella.rows._source import Batch, RowSource
from tessella.rows._vectors import LeafVectors

__all__ = [
    "ArraySource",
    "Batch",
    "GrowingArray",
    "LeafRows",
    "LeafVectors",
    "LeavesInMemory",
    "LeavesOnDisk",
    "ParquetSource",
    "RowSource",
    "is_stored",
    "source_of",
]
