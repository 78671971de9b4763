from typing import Any

from numpy import float32, float64, int64
from numpy.typing import NDArray

class DualSteps:
    def __init__(
        self,
        matrix: NDArray[float64],
        rest: NDArray[float64],
        sample: NDArray[int64],
        sign: NDArray[float64],
        cost: NDArray[float64],
        upper: NDArray[float64],
        alpha: NDArray[float64],
        zl: NDArray[float64],
        zu: NDArray[float64],
        nu: float,
        scale: float,
        to_boundary: float,
        blas: dict[str, Any],
        lapack: dict[str, Any],
    ) -> None: ...
    def advance(self) -> float: ...
    @property
    def merit(self) -> float: ...
    def read(self, alpha: NDArray[float64], zl: NDArray[float64], zu: NDArray[float64]) -> None: ...

class JointSteps:
    def __init__(
        self,
        products: NDArray[float64],
        a: NDArray[float64],
        low: NDArray[float64],
        ratio: NDArray[float64],
        box: float,
        held_g: NDArray[float64],
        held_h: NDArray[float64],
        held_half_gradient: NDArray[float64],
        sample: NDArray[int64],
        sign: NDArray[float64],
        cost: NDArray[float64],
        upper: NDArray[float64],
        curvature: NDArray[float64],
        sum_w: float,
        total: float,
        alpha: NDArray[float64],
        zl: NDArray[float64],
        zu: NDArray[float64],
        P: NDArray[float64],
        S: NDArray[float64],
        nu: float,
        xi: float,
        scale: float,
        to_boundary: float,
        blas: dict[str, Any],
        lapack: dict[str, Any],
    ) -> None: ...
    def advance(self) -> float: ...
    @property
    def merit(self) -> float: ...
    def read(
        self,
        alpha: NDArray[float64],
        zl: NDArray[float64],
        zu: NDArray[float64],
        P: NDArray[float64],
        S: NDArray[float64],
    ) -> tuple[float, float]: ...

class KernelRows:
    def __init__(self) -> None: ...
    def reset(
        self,
        room: NDArray[float64],
        high: NDArray[float64],
        first: NDArray[float64],
        second: NDArray[float64],
        capacity: int,
    ) -> None: ...
    def product(self, w: NDArray[float64], out: NDArray[float64], threads: int) -> None: ...

class KernelRows32(KernelRows): ...

def instruction_set() -> str: ...
def machine_matrices(
    room: NDArray[float64],
    high: NDArray[float64],
    first: NDArray[float64],
    second: NDArray[float64],
    starts: NDArray[int64],
    index: NDArray[int64],
    out: NDArray[float64],
    threads: int,
) -> None: ...
def push_machines(
    room: NDArray[float64],
    starts: NDArray[int64],
    index: NDArray[int64],
    weights: NDArray[float64],
    out: NDArray[float64],
    threads: int,
) -> None: ...
def solve_machines(
    room: NDArray[float64],
    high: NDArray[float64],
    first: NDArray[float64],
    second: NDArray[float64],
    starts: NDArray[int64],
    index: NDArray[int64],
    linear: NDArray[float64],
    epsilon: NDArray[float64],
    lower: NDArray[float64],
    upper: NDArray[float64],
    w: NDArray[float64],
    gradient: NDArray[float64],
    tol: float,
    steps_per_sample: int,
    seconds: float,
    threads: int,
    steps: NDArray[int64],
    intercepts: NDArray[float64],
    objectives: NDArray[float64],
    finished: NDArray[int64],
) -> tuple[int, int]: ...
def max_product(
    left: NDArray[float64],
    right: NDArray[float64],
    out: NDArray[float64] | NDArray[float32],
    threads: int,
) -> None: ...
def sum_sensitivities(
    pairs: NDArray[float64],
    ah: NDArray[float64],
    gh: NDArray[float64],
    lh: NDArray[float64],
    hh: NDArray[float64],
    starts: NDArray[int64],
    first: int,
    out: NDArray[float64],
    threads: int,
) -> None: ...
def absolute_pair_sums(
    weights: NDArray[float64],
    columns: NDArray[float64],
    out: NDArray[float64],
    threads: int,
) -> None: ...
def tridiagonal_forms(
    ratios: NDArray[float64],
    inverses: NDArray[float64],
    columns: NDArray[float64],
    out: NDArray[float64],
    threads: int,
) -> None: ...
def max_product_apply(
    left: NDArray[float64],
    right: NDArray[float64],
    weights: NDArray[float64],
    out: NDArray[float64],
    threads: int,
) -> None: ...
def kernel_matrix(
    room_left: NDArray[float64],
    high_left: NDArray[float64],
    first_left: NDArray[float64],
    second_left: NDArray[float64],
    room_right: NDArray[float64],
    high_right: NDArray[float64],
    first_right: NDArray[float64],
    second_right: NDArray[float64],
    out: NDArray[float64] | NDArray[float32],
    threads: int,
) -> None: ...
def solve_dual(
    kernel: NDArray[float64] | NDArray[float32] | KernelRows,
    linear: NDArray[float64],
    epsilon: NDArray[float64],
    lower: NDArray[float64],
    upper: NDArray[float64],
    w: NDArray[float64],
    gradient: NDArray[float64],
    tol: float,
    gradient_at: NDArray[float64] | None,
    max_iter: int,
    block_size: int,
    seconds: float,
    threads: int,
) -> tuple[int, int, float, float, float, float]: ...
