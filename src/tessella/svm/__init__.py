"""The dual of the support vector machine: problem, compiled solver, answer."""

from tessella.svm._dual import DualProblem, DualSolution, DualStatus, relative_gap, solve_dual

__all__ = ["DualProblem", "DualSolution", "DualStatus", "relative_gap", "solve_dual"]
