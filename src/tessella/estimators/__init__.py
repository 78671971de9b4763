"""Estimators with the interface of scikit-learn that learn their kernel."""

from tessella.estimators._checkpoint import CheckpointError
from tessella.estimators._classifier import LearnedKernelSVC
from tessella.estimators._leaf_model import BaseFunction, FittedLeaves
from tessella.estimators._outside import ExtrapolationWarning, OutsideCount
from tessella.estimators._paper import paper_settings
from tessella.estimators._regressor import LearnedKernelSVR
from tessella.estimators._ridge import LearnedKernelRidge
from tessella.estimators._ridge_classifier import LearnedKernelRidgeClassifier

__all__ = [
    "BaseFunction",
    "CheckpointError",
    "ExtrapolationWarning",
    "FittedLeaves",
    "LearnedKernelRidge",
    "LearnedKernelRidgeClassifier",
    "LearnedKernelSVC",
    "LearnedKernelSVR",
    "OutsideCount",
    "paper_settings",
]
