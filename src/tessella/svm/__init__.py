"""Kernel machines for a given kernel matrix: losses, the dual problem and its solver.

The interior point iteration lives here too. It serves the machines alone and, with a parameter of
a cone, all solvers that learn a kernel.
"""

from tessella.svm._dual import solve_dual, whole_matrix
from tessella.svm._halves import Halves
from tessella.svm._interior import interior_point
from tessella.svm._interior_point import (
    CentralPathProblem,
    CentralPathState,
    InteriorPoint,
    Linearisation,
    shared_product,
)
from tessella.svm._loss import HingeLoss, Loss, PiecewiseLinearLoss, SquaredLoss, TubeLoss
from tessella.svm._low_rank import LowRankMatrix, low_rank
from tessella.svm._machines import MachinesSolution, solve_machines
from tessella.svm._problem import DualProblem, best_intercept, best_intercepts
from tessella.svm._settings import CostModel, DualSettings
from tessella.svm._smooth import RidgeInverse, SmoothDual
from tessella.svm._solution import DualSolution, DualStatus, relative_gap

__all__ = [
    "CentralPathProblem",
    "CentralPathState",
    "CostModel",
    "DualProblem",
    "DualSettings",
    "DualSolution",
    "DualStatus",
    "Halves",
    "HingeLoss",
    "InteriorPoint",
    "Linearisation",
    "Loss",
    "LowRankMatrix",
    "MachinesSolution",
    "PiecewiseLinearLoss",
    "RidgeInverse",
    "SmoothDual",
    "SquaredLoss",
    "TubeLoss",
    "best_intercept",
    "best_intercepts",
    "interior_point",
    "low_rank",
    "relative_gap",
    "shared_product",
    "solve_dual",
    "solve_machines",
    "whole_matrix",
]
