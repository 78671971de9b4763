"""Partitions of rows into leaves, by trees of cuts."""

from tessella.partitions._build import CutRule, cut_tree, grouped_tree, leading_gradients
from tessella.partitions._partition import CutTree, Partition, UnknownGroupError, grafted

__all__ = [
    "CutRule",
    "CutTree",
    "Partition",
    "UnknownGroupError",
    "cut_tree",
    "grafted",
    "grouped_tree",
    "leading_gradients",
]
