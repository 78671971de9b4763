"""Algorithms for the saddle point, one a file, and the one result they all return."""

from tessella.solvers._progress import TablePrinter
from tessella.solvers._registry import SOLVERS, check_solver, choose_solver
from tessella.solvers._result import IterationRecord, SolverResult, SolverStatus
from tessella.solvers.apd import apd
from tessella.solvers.frank_wolfe import frank_wolfe
from tessella.solvers.hybrid import hybrid
from tessella.solvers.joint import joint
from tessella.solvers.sdp import sdp
from tessella.solvers.working_set import working_set

__all__ = [
    "SOLVERS",
    "IterationRecord",
    "SolverResult",
    "SolverStatus",
    "TablePrinter",
    "apd",
    "check_solver",
    "choose_solver",
    "frank_wolfe",
    "hybrid",
    "joint",
    "sdp",
    "working_set",
]
