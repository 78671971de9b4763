"""Algorithms for the saddle point, one a file, and the one result they all return.

==============  ==================================================================================
working-set     An exact SVM on all samples, then the joint method on P and the samples that are
                free or nearly so. The default beyond 200 rows: a few SVM solves, whatever the gap.
                Beyond n_P = 64, P moves in the span of its leading directions only.
joint           One interior point iteration over all samples and P together: O(m³) a step, some
                13 to 40 steps, little dependent on the data. The default up to 200 rows.
frank-wolfe     The paper's Algorithm 2. Cheap steps, a gap that falls like 1/k: good for a coarse
                answer.
apd, hybrid     The accelerated primal-dual method of the paper's appendix with adaptive steps and
                restarts, alone or after Frank-Wolfe. Reaches small gaps with first-order steps.
sdp             The semidefinite program, by Clarabel: the ground truth for some hundred rows.
==============  ==================================================================================

SVM solves to a certified relative gap of 1e-6 (Newton steps for joint; a dash where 20 s were not
enough), degree 1, C and delta by cross-validation, from ``benchmarks/convergence.py``:

==============  =====  ====  ===========  =====  ===========  =====  ======
set             rows   n_P   working-set  joint  frank-wolfe  apd    hybrid
==============  =====  ====  ===========  =====  ===========  =====  ======
cancer_wbc      683    20    2            17     364          209    295
pima            768    18    2            13     4488         103    89
abalone         3000   18    3            26     -            74     51
hill_valley     1212   202   5            22     -            136    100
transfusion     748    10    3            13     18608        46     41
shill_bidding   3000   20    5            40     -            183    180
german_numer    1000   50    4            16     -            60     -
fourclass       862    6     2            14     5            46     22
gas_turbine     3000   20    3            17     -            72     172
airfoil         1503   12    2            15     6            48     25
ccpp            3000   10    3            15     -            64     53
cadata          3000   18    3            15     -            80     128
space_ga        3000   14    4            13     -            55     44
boston          506    28    3            18     -            766    428
==============  =====  ====  ===========  =====  ===========  =====  ======
"""

from tessella.solvers._monitor import Monitor, Monitors
from tessella.solvers._progress import TablePrinter
from tessella.solvers._registry import SOLVERS, check_solver, choose_solver, working_memory
from tessella.solvers._result import IterationRecord, SolverResult, SolverStatus
from tessella.solvers._run import Callback, Run, StopRun, SvmAnswer, run_to_end
from tessella.solvers.apd import apd
from tessella.solvers.fixed import fixed
from tessella.solvers.frank_wolfe import frank_wolfe
from tessella.solvers.hybrid import hybrid
from tessella.solvers.joint import joint
from tessella.solvers.sdp import sdp
from tessella.solvers.simple_mkl import simple_mkl
from tessella.solvers.working_set import WorkingSetSettings, working_set

__all__ = [
    "SOLVERS",
    "Callback",
    "IterationRecord",
    "Monitor",
    "Monitors",
    "Run",
    "SolverResult",
    "SolverStatus",
    "StopRun",
    "SvmAnswer",
    "TablePrinter",
    "WorkingSetSettings",
    "apd",
    "check_solver",
    "choose_solver",
    "fixed",
    "frank_wolfe",
    "hybrid",
    "joint",
    "run_to_end",
    "sdp",
    "simple_mkl",
    "working_memory",
    "working_set",
]
