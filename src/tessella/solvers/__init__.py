"""Algorithms for the saddle point, one a file, and the one result they all return."""

from tessella.solvers._progress import TablePrinter
from tessella.solvers._registry import SOLVERS, get_solver
from tessella.solvers._result import IterationRecord, SolverResult, SolverStatus
from tessella.solvers.frank_wolfe import frank_wolfe

__all__ = [
    "SOLVERS",
    "IterationRecord",
    "SolverResult",
    "SolverStatus",
    "TablePrinter",
    "frank_wolfe",
    "get_solver",
]
