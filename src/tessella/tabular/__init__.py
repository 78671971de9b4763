"""Tables as people have them: text, categories, dates and missing values on the way to a model."""

from tessella.tabular._encoder import TabularEncoder
from tessella.tabular._pipeline import make_tabular_pipeline

__all__ = ["TabularEncoder", "make_tabular_pipeline"]
