"""The roofs of this machine, measured: products of matrices, copies and writes of memory."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_info

from tessella.backend import effective_threads
from tessella_bench._machine import is_blas

_GEMM_SIDE = 3000
_STREAM_BYTES = 2**28  # of one array: several times the last-level cache


@dataclass(frozen=True)
class Roofs:
    """What the machine can do with all its threads.

    Attributes
    ----------
    gemm64, gemm32 : float
        GFlop/s of a square matrix product, two flops per multiply-add.
    copy, fill : float
        GB/s of a copy, bytes read plus bytes written, and of a plain write.
    threads, blas_threads : int
        Threads of the copies and writes, and those that BLAS has: fewer where the environment
        limits it. On a busy machine several threads may do no more than one.
    """

    gemm64: float
    gemm32: float
    copy: float
    fill: float
    threads: int
    blas_threads: int

    def bound(self, flops: float, bytes_moved: float) -> tuple[float, str]:
        """Least seconds in float64 for that much work, and the roof that says so."""
        compute, memory = 1e-9 * flops / self.gemm64, 1e-9 * bytes_moved / self.copy
        return (compute, "flops") if compute >= memory else (memory, "bytes")

    def as_dict(self) -> dict[str, Any]:
        """For JSON and tables."""
        return asdict(self)

    def described(self) -> str:
        """One line."""
        return (
            f"Roofs: GEMM {self.gemm64:.0f} GFlop/s in float64, {self.gemm32:.0f} in float32 "
            f"(threads of BLAS: {self.blas_threads}); copy {self.copy:.1f} GB/s, read and written, "
            f"fill {self.fill:.1f} GB/s (threads: {self.threads})."
        )


def measure_roofs(repeats: int = 5) -> Roofs:
    """All roofs, the best of some repetitions each."""
    threads = effective_threads()
    return Roofs(
        gemm64=gemm_rate(np.float64, repeats),
        gemm32=gemm_rate(np.float32, repeats),
        copy=_stream_rate(_copy, 2, repeats, threads),
        fill=_stream_rate(_fill, 1, repeats, threads),
        threads=threads,
        blas_threads=max(pool["num_threads"] for pool in threadpool_info() if is_blas(pool)),
    )


def gemm_rate(dtype: Any, repeats: int = 5, side: int = _GEMM_SIDE) -> float:
    """GFlop/s of a product of square matrices, with the threads that BLAS takes by itself."""
    rng = np.random.default_rng(0)
    a, b = rng.random((side, side)).astype(dtype), rng.random((side, side)).astype(dtype)
    out = np.empty_like(a)
    return 2e-9 * side**3 / best_of(lambda: np.matmul(a, b, out=out), repeats)


def best_of(call: Callable[[], Any], repeats: int) -> float:
    """Seconds of the fastest call, after one that warms up."""
    call()
    seconds = []
    for _ in range(repeats):
        begin = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - begin)
    return min(seconds)


def _stream_rate(
    action: Callable[[NDArray[Any], NDArray[Any]], None],
    passes: int,
    repeats: int,
    threads: int,
) -> float:
    source, target = np.ones(_STREAM_BYTES // 8), np.zeros(_STREAM_BYTES // 8)
    # numpy moves memory with one thread and without the GIL: a slice for each of ours.
    parts = list(zip(np.array_split(source, threads), np.array_split(target, threads), strict=True))
    with ThreadPoolExecutor(threads) as pool:

        def all_parts() -> None:
            list(pool.map(lambda part: action(*part), parts))

        return 1e-9 * passes * target.nbytes / best_of(all_parts, repeats)


def _copy(source: NDArray[Any], target: NDArray[Any]) -> None:
    np.copyto(target, source)


def _fill(source: NDArray[Any], target: NDArray[Any]) -> None:
    del source
    target.fill(1.5)
