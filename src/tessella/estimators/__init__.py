"""scikit-learn estimators: thin faces of the solvers."""

from tessella.estimators._classifier import LearnedKernelSVC
from tessella.estimators._outside import ExtrapolationWarning, OutsideCount
from tessella.estimators._regressor import LearnedKernelSVR

__all__ = ["ExtrapolationWarning", "LearnedKernelSVC", "LearnedKernelSVR", "OutsideCount"]
