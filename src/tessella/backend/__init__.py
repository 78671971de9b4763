"""What the library knows of the machine: threads and memory."""

from tessella.backend._memory import available_memory, format_bytes, require_memory
from tessella.backend._threads import effective_threads, limit_blas

__all__ = [
    "available_memory",
    "effective_threads",
    "format_bytes",
    "limit_blas",
    "require_memory",
]
