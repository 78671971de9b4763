"""The data sets of the paper: what they are, where they come from, and how to read them.

No data comes with the package. :func:`load` reads a folder, and fetches what is missing from
OpenML where a copy is known there.
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
