"""The dual of the support vector machine: problem, compiled solver, answer."""

from tessella.svm._dual import DualSolution, DualStatus, relative_gap, solve_dual
from tessella.svm._halves import Halves
from tessella.svm._interior_point import (
    CentralPathProblem,
    CentralPathState,
    InteriorPoint,
    Linearisation,
)
from tessella.svm._loss import best_intercept, best_intercepts
from tessella.svm._problem import DualProblem

__all__ = [
    "CentralPathProblem",
    "CentralPathState",
    "DualProblem",
    "DualSolution",
    "DualStatus",
    "Halves",
    "InteriorPoint",
    "Linearisation",
    "best_intercept",
    "best_intercepts",
    "relative_gap",
    "solve_dual",
]
