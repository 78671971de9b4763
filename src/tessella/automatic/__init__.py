"""Automatic models for tables: the front door of the library.

The estimators need no other name of this module. The parts of their search are public for those
who want to look at a model or to build a search of their own.
"""

from tessella.automatic._average import blended_average, greedy_average, soft_average
from tessella.automatic._classifier import TessellaClassifier
from tessella.automatic._encodings import Encoding, fit_encoding
from tessella.automatic._families import FAMILIES
from tessella.automatic._machines import BaseMachine, FittedMachine
from tessella.automatic._regressor import TessellaRegressor
from tessella.automatic._settings import EFFORTS, SearchSettings

__all__ = [
    "EFFORTS",
    "FAMILIES",
    "BaseMachine",
    "Encoding",
    "FittedMachine",
    "SearchSettings",
    "TessellaClassifier",
    "TessellaRegressor",
    "blended_average",
    "fit_encoding",
    "greedy_average",
    "soft_average",
]
