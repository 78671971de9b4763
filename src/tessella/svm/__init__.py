"""Kernel machines for a given kernel matrix: losses, the dual problem and its solver."""

from tessella.svm._dual import solve_dual
from tessella.svm._halves import Halves
from tessella.svm._interior import interior_point
from tessella.svm._loss import HingeLoss, Loss, PiecewiseLinearLoss, TubeLoss
from tessella.svm._problem import DualProblem, best_intercept, best_intercepts
from tessella.svm._settings import CostModel, DualSettings
from tessella.svm._solution import DualSolution, DualStatus, relative_gap

__all__ = [
    "CostModel",
    "DualProblem",
    "DualSettings",
    "DualSolution",
    "DualStatus",
    "Halves",
    "HingeLoss",
    "Loss",
    "PiecewiseLinearLoss",
    "TubeLoss",
    "best_intercept",
    "best_intercepts",
    "interior_point",
    "relative_gap",
    "solve_dual",
]
