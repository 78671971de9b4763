"""Algorithms for the saddle point, one a file, and the one result they all return.

==============  ==================================================================================
working-set     An exact SVM on all samples, then the joint method on P and the samples that are
                free or nearly so. The default beyond 200 rows: a few SVM solves, whatever the gap.
                Beyond n_P = 64, P moves in the span of its leading directions only.
joint           One interior point iteration over all samples and P together: O(m³) a step, some
                10 to 30 steps, hardly dependent on the data. The default up to 200 rows.
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
cancer_wbc      683    20    2            27     512          208    277
pima            768    18    2            22     4188         101    89
abalone         3000   18    2            -      -            74     51
hill_valley     1212   202   5            28     -            82     181
transfusion     748    10    3            17     -            51     33
shill_bidding   3000   20    5            -      -            182    269
german_numer    1000   50    5            16     -            56     -
fourclass       862    6     3            16     5            46     21
gas_turbine     3000   20    3            18     -            72     -
airfoil         1503   12    3            18     6            47     25
ccpp            3000   10    3            21     -            60     35
cadata          3000   18    3            20     -            78     131
space_ga        3000   14    4            21     -            52     42
boston          506    28    4            18     -            753    776
==============  =====  ====  ===========  =====  ===========  =====  ======
"""

from tessella.solvers._progress import TablePrinter
from tessella.solvers._registry import SOLVERS, check_solver, choose_solver, working_memory
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
    "working_memory",
    "working_set",
]
