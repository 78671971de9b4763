"""The parts of a fit that a profile tells apart, and the flops and bytes that each needs.

"Needs" is what the mathematics asks of an algorithm that uses symmetry and reads every matrix
once: products with a symmetric result count half, and a matrix in memory is read where a part
has to look at it, not where one implementation does. The max-product matrix is never in memory:
its entries are computed inside the gradient, the Gram matrix and the rows that pair steps ask for,
and their flops, a minimum and a product for each feature, are counted there.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from _timers import Namer, Probe, Timers

GRAM, GRADIENT, CERTIFICATE = "Gram", "gradient", "certificate"
FORM = "factors of K(P)"
SVM_COLD, SVM_WARM = "SVM cold", "SVM warm"
PAIRS, NEWTON, BETWEEN = "pair steps and their rows", "Newton steps", "rest"
INTERIOR = "interior point steps"
PREPARE, FITTED = "checks and scaling", "fitted attributes"
EIGEN = "eigenproblem"
FIRST_P = "first P, on a subsample"
SET = "working set"
SET_KERNEL, SET_SENSITIVITIES = f"{SET}: kernel and moments", f"{SET}: sensitivities"
SET_CHOLESKY, SET_SOLVES, SET_REST = f"{SET}: Cholesky", f"{SET}: solves", f"{SET}: rest"
REST = "rest (Python)"

ORDER = (
    *(PREPARE, FORM, GRAM, GRADIENT, CERTIFICATE),
    *(
        f"{svm}: {part}"
        for svm in (SVM_COLD, SVM_WARM)
        for part in (PAIRS, NEWTON, INTERIOR, BETWEEN)
    ),
    *(EIGEN, FIRST_P, SET_KERNEL, SET_SENSITIVITIES, SET_CHOLESKY, SET_SOLVES, SET_REST),
    *(FITTED, REST),
)


def probes(whole: int) -> list[Probe]:
    """What to time in a fit of `whole` distinct rows."""
    sensitivity = "tessella.kernels._sensitivity"
    bound = "tessella.kernels._tessellated:BoundTessellated"
    moments = "tessella.kernels._tessellated_moments:TessellatedMoments"
    compiled = "tessella.solvers._compiled_steps:CompiledInteriorPoint"
    rounds = "tessella.solvers.working_set:_WorkingSet"
    estimator = "tessella.estimators._base:BaseLearnedKernel"
    return [
        Probe(f"{estimator}._validated", _outside(PREPARE)),
        Probe("tessella:LearnedKernelSVC._prepare", _outside(PREPARE)),
        Probe("tessella:LearnedKernelSVR._prepare", _outside(PREPARE)),
        Probe("tessella.estimators._solving:_bind", _outside(PREPARE)),
        Probe("tessella.estimators._base:require_width_memory", _outside(PREPARE)),
        Probe("tessella.estimators._solving:require_fit_memory", _outside(PREPARE)),
        Probe("tessella.estimators._solving:fitted_state", _outside(FITTED)),
        Probe(f"{rounds}._joint_parameter", _first_p),
        Probe(f"{rounds}._parameter_in_rounds", _first_p),
        Probe(f"{bound}.product_form", _outside(FORM)),
        Probe(f"{bound}.factor_gram", _of_whole(GRAM, whole), _gram_work),
        Probe("tessella.backend:ProductForm.matrix", _outside(GRAM), _form_work),
        Probe(f"{bound}.moments", _of_whole(GRADIENT, whole), _moments_work),
        Probe(f"{moments}.factor_scores", _never, _scores_work),
        Probe("tessella.solvers._run:Run.record_point", _outside(CERTIFICATE)),
        Probe("tessella.solvers._run:Run.replace", _outside(CERTIFICATE)),
        Probe("tessella.solvers._run:solve_dual", _svm_row),
        Probe("tessella._core:solve_dual", _part_of_svm(PAIRS), _pair_work),
        Probe("tessella.svm._dual:newton_step", _part_of_svm(NEWTON), _svm_newton_work),
        Probe("tessella.svm._dual:low_rank", _part_of_svm(INTERIOR)),
        Probe("tessella.svm._dual:interior_point", _part_of_svm(INTERIOR)),
        Probe("tessella.backend:KernelOnDemand.block", _part_of_svm(NEWTON)),
        Probe("numpy.linalg:eigh", _eigen_row, _eigh_work),
        Probe("numpy.linalg:eigvalsh", _eigen_row, _eigvalsh_work),
        Probe("tessella.solvers.working_set:RestrictedProblem.__init__", _outside(SET_REST)),
        Probe("tessella.solvers.working_set:state_near", _outside(SET_REST)),
        Probe("tessella.svm:InteriorPoint.__init__", _outside(SET_REST)),
        Probe("tessella.svm:InteriorPoint.advance", _outside(SET_REST)),
        Probe(f"{compiled}.__init__", _outside(SET_REST)),
        Probe(f"{compiled}.advance", _outside(SET_REST)),
        Probe("scipy.linalg.lapack:dpotrf", _within_set(SET_CHOLESKY), _cholesky_work),
        Probe("scipy.linalg.lapack:dpotrs", _within_set(SET_SOLVES), _solve_work),
        Probe(
            f"{sensitivity}:FactoredSensitivities.gram",
            _outside(SET_SENSITIVITIES),
            _sensitivities_work,
        ),
    ]


# ---------------------------------------------------------------------------------------- rows


def _first_p(timers: Timers, args: Any, kwargs: Any) -> str:
    del timers, args, kwargs
    return FIRST_P


def _never(timers: Timers, args: Any, kwargs: Any) -> None:
    del timers, args, kwargs


def _outside(name: str) -> Namer:
    """That row, except on the subsample, which is one row for itself."""

    def namer(timers: Timers, args: Any, kwargs: Any) -> str | None:
        del args, kwargs
        return None if FIRST_P in timers.running else name

    return namer


def _within_set(name: str) -> Namer:
    """That row inside the working set's; elsewhere the row around."""

    def namer(timers: Timers, args: Any, kwargs: Any) -> str | None:
        del args, kwargs
        return name if _in_set(timers) and FIRST_P not in timers.running else None

    return namer


def _in_set(timers: Timers) -> bool:
    return any(name.startswith(SET) for name in timers.running)


def _of_whole(name: str, whole: int) -> Namer:
    """That row for the kernel set on all samples; the working set's when it is on fewer."""

    def namer(timers: Timers, args: Any, kwargs: Any) -> str | None:
        del kwargs
        if FIRST_P in timers.running:
            return None
        restricted = _in_set(timers) and args[0].n_samples < whole
        return SET_KERNEL if restricted else name

    return namer


def _svm_row(timers: Timers, args: Any, kwargs: Any) -> str | None:
    del args
    if FIRST_P in timers.running:
        return None
    start = kwargs.get("w0")
    cold = start is None or not np.any(start)  # zeros tell the solver nothing
    return f"{SVM_COLD if cold else SVM_WARM}: {BETWEEN}"


def _part_of_svm(part: str) -> Namer:
    def namer(timers: Timers, args: Any, kwargs: Any) -> str | None:
        del args, kwargs
        around = timers.running[-1].removesuffix(BETWEEN)
        return None if FIRST_P in timers.running else f"{around}{part}"

    return namer


def _eigen_row(timers: Timers, args: Any, kwargs: Any) -> str | None:
    del args, kwargs
    return None if FIRST_P in timers.running or _in_set(timers) else EIGEN


# ---------------------------------------------------------------------------------------- work


def _gram_work(args: Any, kwargs: Any, result: Any) -> tuple[float, float]:
    """Max-product, a product of r columns and two of r + 1, for half of the entries.

    All of K is written.
    """
    del kwargs, result
    bound, (left, _) = args[:2]
    entries, r, n = bound.n_samples**2, left.shape[1], bound.side.room.shape[1]
    return entries * (n + 3.0 * r + 3.0), float(entries * bound.dtype.itemsize)


def _form_work(args: Any, kwargs: Any, result: Any) -> tuple[float, float]:
    """The same for thin matrices whose number of columns is known."""
    del kwargs, result
    form, out = args[:2]
    widths = form.room.shape[1] + form.high.shape[1] + 2.0 * form.first.shape[1]
    return out.size * widths, float(out.nbytes)


def _moments_work(args: Any, kwargs: Any, result: Any) -> tuple[float, float]:
    """The max-product of all rows with the support, times the weighted monomials."""
    del kwargs, result
    bound, w = args[:2]
    support, width = int(np.count_nonzero(w)), bound.side.zeta_high.shape[1]
    n = bound.side.room.shape[1]
    return (
        2.0 * bound.n_samples * support * (n + width),
        8.0 * (bound.n_samples + support) * (n + width),
    )


def _scores_work(args: Any, kwargs: Any, result: Any) -> tuple[float, float]:
    """Four thin products: the monomials times the factor, and the moments times the factor."""
    del kwargs
    width, r = args[1][0].shape
    return 4.0 * len(result) * width * r, 16.0 * len(result) * width


def _pair_work(args: Any, kwargs: Any, result: Any) -> tuple[float, float]:
    """Two rows of K a step, and once the gradient from scratch."""
    del kwargs
    w, steps = args[5], result[1]
    m, support = len(w), int(np.count_nonzero(w))
    itemsize = getattr(args[0], "itemsize", 8)  # rows on demand do not say
    return 12.0 * m * steps + 2.0 * m * support, itemsize * m * 2.0 * steps


def _svm_newton_work(args: Any, kwargs: Any, result: Any) -> tuple[float, float]:
    """One Cholesky factorisation on the free samples."""
    del kwargs, result
    free = len(args[1])
    return free**3 / 3.0, 8.0 * free**2


def _eigh_work(args: Any, kwargs: Any, result: Any) -> tuple[float, float]:
    del kwargs, result
    return 9.0 * len(args[0]) ** 3, 16.0 * args[0].size


def _eigvalsh_work(args: Any, kwargs: Any, result: Any) -> tuple[float, float]:
    del kwargs, result
    return 4.0 / 3.0 * len(args[0]) ** 3, 8.0 * args[0].size


def _cholesky_work(args: Any, kwargs: Any, result: Any) -> tuple[float, float]:
    del kwargs, result
    return len(args[0]) ** 3 / 3.0, 8.0 * args[0].size


def _solve_work(args: Any, kwargs: Any, result: Any) -> tuple[float, float]:
    """Two triangular solves: the factor is read twice."""
    del kwargs
    factor, right = args[0], result[0]
    return 2.0 * factor.size * right.size / len(right), 8.0 * factor.size


def _sensitivities_work(args: Any, kwargs: Any, result: Any) -> tuple[float, float]:
    """Four products of about p columns and one of 2p + 1, for half of the entries."""
    del kwargs
    return result.size * (6.0 * args[0]._pushed.shape[1] + 5.0), 8.0 * result.size
