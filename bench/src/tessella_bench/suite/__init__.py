"""The suite: the model that needs no choices beside other methods, on tables as they come.

A cell is one method on one division of one table at one size. The engine that measures cells is
the one of the paper's tables; the divisions, the scores and the report are the suite's own.
"""

from tessella_bench.suite._data import SuiteTable, load_table, suite_names
from tessella_bench.suite._divisions import SIZES, divide, training_rows
from tessella_bench.suite._measure import prepare
from tessella_bench.suite._methods import suite_methods, variants
from tessella_bench.suite._plan import SuitePlan, make_suite_plan
from tessella_bench.suite._scores import log_loss

__all__ = [
    "SIZES",
    "SuitePlan",
    "SuiteTable",
    "divide",
    "load_table",
    "log_loss",
    "make_suite_plan",
    "prepare",
    "suite_methods",
    "suite_names",
    "training_rows",
    "variants",
]
