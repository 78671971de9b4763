"""The semidefinite program in a process of its own, which can be ended."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

from _common import Dataset, saddle_point, solve
from _report import attempt

from tessella.backend import available_memory, format_bytes
from tessella.kernels import TessellatedKernels
from tessella.problems import SaddlePoint

_GRACE = 120.0  # seconds beyond the cap, to build the program, finish an iteration and answer
_ANY_ROWS = 10**9  # the memory is our own care here


def find_sdp() -> Callable[..., Any] | None:
    """The SDP solver, or None while it or Clarabel is missing."""
    if find_spec("clarabel") is None:
        return None
    try:
        from tessella.solvers.sdp import sdp
    except ImportError:
        return None
    found: Callable[..., Any] = sdp
    return found


def problem_of(data: Dataset, C: float, delta: float) -> SaddlePoint:
    """Degree 1, as in the paper's Table 1."""
    return saddle_point(data, TessellatedKernels(delta=delta), C)


def run_solver(
    solver: Any, problem: SaddlePoint, tol: float, cap: float, **more: Any
) -> dict[str, Any]:
    """One run, as values for JSON."""
    result, seconds = solve(solver, problem, tol=tol, time_limit=cap, **more)
    return {
        "solver": result.solver,
        "status": result.status.value,
        "seconds": seconds,
        "gap": result.gap,
        "value": result.value,
        "bound": result.bound,
        "iterations": result.n_iter,
        "n_svm": result.n_svm,
    }


def sdp_in_process(data: Dataset, C: float, delta: float, tol: float, cap: float) -> dict[str, Any]:
    """The SDP on `data`: a run, a cell with "capped", or an "error".

    The process is spawned rather than forked, because threads do not survive a fork, and not every
    library starts new ones in the child.
    """
    shortage = _memory_shortage(problem_of(data, C, delta))
    if shortage:
        return {"error": shortage}
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_child, args=(sender, data, C, delta, tol, cap), daemon=True)
    process.start()
    sender.close()
    answer: dict[str, Any]
    try:
        if receiver.poll(cap + _GRACE):
            answer = receiver.recv()
        else:
            answer = {"capped": True, "seconds": cap, "status": "stopped at the cap"}
    except EOFError:
        process.join()
        answer = {"error": f"the process ended with exit code {process.exitcode} (memory?)"}
    finally:
        if process.is_alive():
            process.kill()
        process.join()
    return answer


def _child(sender: Any, data: Dataset, C: float, delta: float, tol: float, cap: float) -> None:
    sdp = find_sdp()
    problem = problem_of(data, C, delta)
    answer = attempt(lambda: run_solver(sdp, problem, tol, cap, max_rows=_ANY_ROWS))
    if "error" not in answer:
        answer["capped"] = answer["status"] == "time limit"
    sender.send(answer)
    sender.close()


def _memory_shortage(problem: SaddlePoint) -> str | None:
    """Why the program does not fit, or None: a benchmark must not take the machine down."""
    try:
        from tessella.solvers.sdp import memory_estimate
    except ImportError:
        return None
    needed = memory_estimate(problem.dual.size, problem.cone.degree)
    available = available_memory()
    if available is None or needed < 0.9 * available:
        return None
    return f"needs {format_bytes(needed)} of memory, {format_bytes(available)} are available"
