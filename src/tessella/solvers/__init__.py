"""Algorithms for the saddle-point problem, and the result that all of them return.

Each algorithm is a function in a file of its own. All of them stop on the same certified gap.

==============  ==================================================================================
working-set     An exact SVM on all samples alternates with the joint method on the parameter and
                on the samples that are free or nearly so. The default for more than 60 rows. A
                large parameter moves in its leading directions only.
joint           One interior point iteration over all samples and the parameter together, which
                costs O(m³) a step. The default for up to 60 rows.
newton          Newton's method in the parameter alone, for losses without bounds such as the
                squared loss: a linear system for all machines at a time. The default for several
                machines with such a loss; the default for a single one is joint.
frank-wolfe     Algorithm 2 of the paper. Its steps are cheap and its gap falls like 1/k, so it is
                suited to approximate solutions.
apd             The accelerated primal-dual method of the paper's appendix, with adaptive steps
                and restarts. Reaches small gaps with first-order steps.
hybrid          Frank-Wolfe, followed by the accelerated primal-dual method.
sdp             The semidefinite program, solved by Clarabel: the reference solution for some
                hundred rows.
simple-mkl      SimpleMKL, a reduced gradient method for the weights of a dictionary of kernels.
fixed           The machines of a parameter that is not learned. It is chosen for problems with a
                fixed parameter, whatever the name.
leaves          Machines on many parts of the rows, by tasks on one part at a time
                (:func:`solve_leaves`), for fits with ``max_leaf_rows``.
==============  ==================================================================================

Measurements are on the page "Benchmarks" of the documentation (``docs/benchmarks.md``).
"""

from tessella.solvers._estimate import Estimate
from tessella.solvers._fallback import run_solver
from tessella.solvers._leaf_pool import LeafPool, LocalLeaves
from tessella.solvers._leaf_run import LeavesResult, StackedLeavesResult, as_solver_result
from tessella.solvers._leaf_tasks import LeafProblem
from tessella.solvers._monitor import Monitor, Monitors
from tessella.solvers._progress import TablePrinter
from tessella.solvers._registry import (
    SOLVERS,
    check_solver,
    choose_solver,
    parameter_memory,
    working_memory,
)
from tessella.solvers._result import IterationRecord, Round, SolverResult, SolverStatus
from tessella.solvers._run import Callback, Run, StopRun, SvmAnswer, run_to_end
from tessella.solvers.apd import apd
from tessella.solvers.fixed import fixed
from tessella.solvers.frank_wolfe import frank_wolfe
from tessella.solvers.hybrid import hybrid
from tessella.solvers.joint import joint
from tessella.solvers.leaves import LeavesSettings, solve_leaves
from tessella.solvers.newton import NewtonSettings, newton
from tessella.solvers.sdp import sdp
from tessella.solvers.simple_mkl import simple_mkl
from tessella.solvers.working_set import WorkingSetSettings, working_set

__all__ = [
    "SOLVERS",
    "Callback",
    "Estimate",
    "IterationRecord",
    "LeafPool",
    "LeafProblem",
    "LeavesResult",
    "LeavesSettings",
    "LocalLeaves",
    "Monitor",
    "Monitors",
    "NewtonSettings",
    "Round",
    "Run",
    "SolverResult",
    "SolverStatus",
    "StackedLeavesResult",
    "StopRun",
    "SvmAnswer",
    "TablePrinter",
    "WorkingSetSettings",
    "apd",
    "as_solver_result",
    "check_solver",
    "choose_solver",
    "fixed",
    "frank_wolfe",
    "hybrid",
    "joint",
    "newton",
    "parameter_memory",
    "run_solver",
    "run_to_end",
    "sdp",
    "simple_mkl",
    "solve_leaves",
    "working_memory",
    "working_set",
]
