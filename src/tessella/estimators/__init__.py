"""scikit-learn estimators: thin faces of the solvers."""

from tessella.estimators._classifier import LearnedKernelSVC
from tessella.estimators._regressor import LearnedKernelSVR

__all__ = ["LearnedKernelSVC", "LearnedKernelSVR"]
