"""The data sets of the paper: descriptions, sources and functions that load them.

The package does not contain any data. The function :func:`load` reads data sets from a folder, and
downloads missing ones from OpenML if a copy is known there.
"""

from tessella.datasets._dataset import Dataset
from tessella.datasets._load import DataError, data_folder, load, names_in
from tessella.datasets._registry import DatasetInfo, describe, names

__all__ = [
    "DataError",
    "Dataset",
    "DatasetInfo",
    "data_folder",
    "describe",
    "load",
    "names",
    "names_in",
]
