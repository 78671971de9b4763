"""Automatic models: the front door of the library."""

from tessella.automatic._classifier import TessellaClassifier
from tessella.automatic._regressor import TessellaRegressor

__all__ = ["TessellaClassifier", "TessellaRegressor"]
