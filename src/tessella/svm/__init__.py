"""Kernel machines for a given kernel matrix: losses, the dual problem and its solver."""

from tessella.svm._dual import DualSolution, DualStatus, relative_gap, solve_dual
from tessella.svm._halves import Halves
from tessella.svm._loss import HingeLoss, Loss, PiecewiseLinearLoss, TubeLoss
from tessella.svm._problem import DualProblem, best_intercept, best_intercepts

__all__ = [
    "DualProblem",
    "DualSolution",
    "DualStatus",
    "Halves",
    "HingeLoss",
    "Loss",
    "PiecewiseLinearLoss",
    "TubeLoss",
    "best_intercept",
    "best_intercepts",
    "relative_gap",
    "solve_dual",
]
