"""Memory and threads of the machine, and the data structures of the compiled core."""

from tessella.backend._block_diagonal import BlockDiagonal
from tessella.backend._deadline import OutOfTimeError, check_deadline, deadline
from tessella.backend._machine_forms import MachineForms, MachineReports
from tessella.backend._memory import available_memory, format_bytes, require_memory
from tessella.backend._product_form import KernelOnDemand, ProductForm
from tessella.backend._threads import (
    effective_threads,
    in_threads,
    instruction_set,
    limit_blas,
)

__all__ = [
    "BlockDiagonal",
    "KernelOnDemand",
    "MachineForms",
    "MachineReports",
    "OutOfTimeError",
    "ProductForm",
    "available_memory",
    "check_deadline",
    "deadline",
    "effective_threads",
    "format_bytes",
    "in_threads",
    "instruction_set",
    "limit_blas",
    "require_memory",
]
