"""Encoding of tables with text, categories, dates and missing values."""

from tessella.tabular._encoder import TabularEncoder
from tessella.tabular._pipeline import make_tabular_pipeline

__all__ = ["TabularEncoder", "make_tabular_pipeline"]
