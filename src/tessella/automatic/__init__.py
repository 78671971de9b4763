"""Automatic models for tables: the front door of the library."""

from tessella.automatic._classifier import TessellaClassifier
from tessella.automatic._machines import FittedMachine
from tessella.automatic._regressor import TessellaRegressor

__all__ = ["FittedMachine", "TessellaClassifier", "TessellaRegressor"]
