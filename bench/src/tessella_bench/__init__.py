"""The paper's tables again: methods side by side on the same divisions of the same data.

A cell is one method on one division of one data set. Cells run in processes of their own, are
saved as they finish and are reused, so that a table can be filled over several runs. The command
``tessella benchmark`` is a thin layer over this package.
"""

from tessella_bench._cells import Cell, CellStore
from tessella_bench._engine import Settings, fill
from tessella_bench._methods import Fitted, Method, methods
from tessella_bench._plan import Plan, make_plan, stored_plan
from tessella_bench._report import gather
from tessella_bench._write import write_report

__all__ = [
    "Cell",
    "CellStore",
    "Fitted",
    "Method",
    "Plan",
    "Settings",
    "fill",
    "gather",
    "make_plan",
    "methods",
    "stored_plan",
    "write_report",
]
