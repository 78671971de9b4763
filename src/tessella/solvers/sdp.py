"""The whole problem as one semidefinite program, a reference for small samples."""

from __future__ import annotations

import importlib
import time
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tessella.backend import format_bytes
from tessella.cones import PSD, Cone, Point, ProductCone
from tessella.kernels import BoundKernelSet
from tessella.problems import SaddlePoint
from tessella.solvers._result import SolverResult, SolverStatus
from tessella.solvers._run import Callback, Run, require_bounds, run_to_end
from tessella.svm import DualProblem

FloatArray = NDArray[np.float64]

_MAX_BYTES = 8 * 2**30
_MAX_ROWS = 1000
_BYTES_PER_COEFFICIENT = 56  # the dense map, its sparse form, Clarabel's copy, its KKT matrix
_BYTES_PER_HESSIAN_ENTRY = 110  # measured: the KKT matrix and its factor with indices and fill
_TIGHTEST = 1e-10  # smallest tolerance that Clarabel is given; it often does not reach it
_SVM_TOL = 1e-9


def sdp(
    problem: SaddlePoint,
    *,
    tol: float = 1e-5,
    max_iter: int = 200,
    time_limit: float | None = None,
    parameter0: Point | None = None,
    w0: FloatArray | None = None,
    max_rows: int = _MAX_ROWS,
    n_jobs: int | None = None,
    callback: Callback | None = None,
) -> SolverResult:
    """Solve the semidefinite program of Lanckriet et al. and Colbert and Peet with Clarabel.

        minimise ½t + Σ upper ξ⁺ + |lower| ξ⁻    over P ⪰ 0, trace P = n_P, u, b, t, ξ ≥ 0
        subject to  ξ⁺ ≥ r - ε,  ξ⁻ ≥ -r - ε,  r = linear - u - b,   [K(P) u; uᵀ t] ⪰ 0

    The solver is a reference for small problems; :func:`joint` solves the same problem thousands
    of times faster. It needs the extra ``sdp``.

    Primal: ``min_P max_w κ(w) - ½ wᵀK(P)w``, of which the program above is the inner dual. The
    value is that of an exact SVM for the P that Clarabel returns, made feasible. Dual bound:
    ``κ(w) - (n_P/2) λ_max(D(w))``, for the better one of the w of this SVM and the multipliers of
    Clarabel. The status is OPTIMAL if the certified relative gap between the two, computed by
    `problem`, is at most `tol`, whatever status Clarabel reports.

    Parameters
    ----------
    problem : SaddlePoint
        Problem to solve: a kernel set, which should be bound in float64, and the dual problem of
        its machines.
    tol : float
        Certified relative gap that counts as optimal. The tolerance of Clarabel is a thousandth
        of it, but not below 1e-10.
    max_iter : int
        Largest number of iterations of Clarabel.
    time_limit : float, optional
        Largest number of seconds, which is passed on to Clarabel. Building the program is not
        interrupted, and Ctrl-C takes effect only after Clarabel has returned.
    parameter0 : Point, optional
        Feasible parameter to start from. The default is the centre of the feasible set. If the
        parameter is one matrix P, a factor U of P = U Uᵀ with fewer columns than rows is accepted.
    w0 : ndarray of shape (m,), optional
        Dual vector to start from.
    max_rows : int
        Largest number of rows. Larger problems are refused.
    n_jobs : int, optional
        Number of threads of the SVM solves. None uses all cores that the process may use.
    callback : callable or Monitor, optional
        Called with the :class:`IterationRecord` of the start and that of the end.

    Returns
    -------
    SolverResult
        Best certified pair of a parameter and a dual vector. Its ``history`` has two records.

    Raises
    ------
    ImportError
        If Clarabel is not installed.
    ValueError
        If there are more than `max_rows` rows, or the estimated memory is too large.

    Notes
    -----
    With N = (m+1)(m+2)/2, Clarabel factorises a dense block of side N in every iteration, which
    takes O(m⁶) operations and O(m⁴) bytes. It needs 20 to 40 iterations. A memory of 8 GiB is
    enough for about m = 155.
    """
    require_bounds("sdp", problem)
    P = problem.cone.checked(parameter0)
    clarabel = _clarabel()
    _refuse_large(problem.kernels, max_rows)
    run = Run(
        "sdp",
        problem,
        tol=tol,
        max_iter=max_iter,
        time_limit=time_limit,
        n_jobs=n_jobs,
        callback=callback,
    )
    deadline = None if time_limit is None else time.monotonic() + time_limit

    def body(_: Run) -> SolverStatus:
        start = run.svm(problem.kernels.gram(P, centred=True), P, w0, 0.1 * tol).w
        run.record(P, start, step=0.0)
        return _solve(run, clarabel, max_iter, deadline)

    return run_to_end(run, body)


def memory_estimate(n_samples: int, dimension: int) -> int:
    """Return the bytes that :func:`sdp` needs for a number of rows and of parameter entries."""
    triangle = n_samples * (n_samples + 1) // 2
    side = triangle + n_samples + 1
    coefficients = triangle * dimension
    return _BYTES_PER_COEFFICIENT * coefficients + _BYTES_PER_HESSIAN_ENTRY * side**2 // 2


def _refuse_large(kernels: BoundKernelSet, max_rows: int) -> None:
    m, needed = kernels.n_samples, memory_estimate(kernels.n_samples, kernels.cone.dimension)
    remedy = "Use the solver 'joint', or fewer rows"
    if m > max_rows:
        raise ValueError(
            f"The semidefinite program has {m} rows, more than max_rows={max_rows}, and would "
            f"take about {format_bytes(needed)}. {remedy}, or raise max_rows."
        )
    # A caller who raises max_rows accepts the cost; with the default, memory is limited here.
    if needed > _MAX_BYTES and max_rows <= _MAX_ROWS:
        raise ValueError(
            f"The semidefinite program for {m} rows and {kernels.cone.dimension} parameters would "
            f"take about {format_bytes(needed)}, more than {format_bytes(_MAX_BYTES)}. {remedy}, "
            f"or raise max_rows above {_MAX_ROWS} to try nevertheless."
        )


def _clarabel() -> Any:
    try:
        return importlib.import_module("clarabel")
    except ImportError as error:
        raise ImportError(
            "The solver 'sdp' needs Clarabel: python -m pip install 'tessella[sdp]'"
        ) from error


def _solve(run: Run, clarabel: Any, max_iter: int, deadline: float | None) -> SolverStatus:
    problem = run.problem
    program = _Program(problem.kernels, problem.dual)
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.max_iter = max_iter
    accuracy = max(_TIGHTEST, 1e-3 * run.tol)
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = accuracy
    if deadline is not None:
        settings.time_limit = max(0.0, deadline - time.monotonic())
    run.phase("semidefinite program by Clarabel")
    answer = program.solve(clarabel, settings)
    if not (np.isfinite(answer.x).all() and np.isfinite(answer.z).all()):
        return SolverStatus.STALLED  # after a numerical failure only the starting pair is left
    P = problem.cone.project(program.parameter(answer.x))
    multipliers = program.dual_vector(answer.z)
    # An error δ of the value is an error √δ of P, which changes the w of the SVM to first order if
    # the top eigenvalue of D is double. The w of Clarabel then proves a better bound.
    run.raise_bound(problem.at(multipliers))
    K = problem.kernels.gram(P, centred=True)
    w = run.svm(K, P, multipliers, max(1e-12, min(_SVM_TOL, 0.1 * run.tol))).w
    run.record(P, w, step=1.0)
    return {
        "MaxIterations": SolverStatus.MAX_ITER,
        "MaxTime": SolverStatus.TIME_LIMIT,
    }.get(str(answer.status), SolverStatus.STALLED)


class _Program:
    """The program in the form of Clarabel: minimise q·x with b - A x in a product of cones.

    The vector x stacks the entries of the parameter, u, t, b, ξ⁺ and ξ⁻. Triangles are stored as
    in Clarabel: the upper one, column by column, with the entries off the diagonal multiplied by
    √2, which preserves inner products.
    """

    def __init__(self, kernels: BoundKernelSet, dual: DualProblem) -> None:
        self._cone, self._m = kernels.cone, kernels.n_samples
        self._size = kernels.cone.dimension
        # In these units the kernel matrix and the objective have entries of size one.
        self._unit = max(float(np.mean(kernels.diag(kernels.cone.identity))), np.finfo(float).tiny)
        self._up, self._down = np.flatnonzero(dual.upper > 0), np.flatnonzero(dual.lower < 0)
        self.q = self._objective(dual)
        self.A, self.b = self._constraints(kernels, dual)

    def _objective(self, dual: DualProblem) -> FloatArray:
        weights = np.concatenate([dual.upper[self._up], -dual.lower[self._down]])
        self._scale = max(float(weights.max(initial=0.0)), np.finfo(float).tiny)
        before = np.zeros(self._size + self._m)
        q = np.concatenate([before, [0.5 / self._unit], np.zeros(len(dual.starts)), weights])
        scaled: FloatArray = q / self._scale
        return scaled

    def _constraints(self, kernels: BoundKernelSet, dual: DualProblem) -> tuple[Any, FloatArray]:
        """Return the rows of the cones, in the order of :meth:`_cones`, and the right-hand side."""
        m, size = self._m, self._size
        up, down = self._up, self._down
        n_slack = len(up) + len(down)
        eye = sparse.identity(m, format="csr")
        trace = sparse.csr_array(self._cone.vector(self._cone.unit)[None, :])
        slack = sparse.identity(n_slack)
        machines = np.arange(len(dual.starts))
        offset = (dual.machine_of[:, None] == machines).astype(np.float64)
        offsets = sparse.csr_array(np.vstack([-offset[up], offset[down]]))
        selected = sparse.vstack([-eye[up], eye[down]])
        linear_map = sparse.csr_array(-_kernel_map(kernels) / self._unit)
        # columns:  P              u                    t     b     slacks
        rows = [
            [trace, _zeros(1, m), _zeros(1, 1), _zeros(1, len(machines)), _zeros(1, n_slack)],
            [_zeros(n_slack, size), None, None, None, -slack],
            [None, selected, None, offsets, -slack],
            [-sparse.identity(size), None, None, None, None],
            [linear_map, None, None, None, None],
            [None, -np.sqrt(2.0) * eye, None, None, None],
            [None, None, sparse.csr_array([[-1.0]]), None, None],
        ]
        edges = np.concatenate(
            [(dual.epsilon - dual.linear)[up], (dual.epsilon + dual.linear)[down]]
        )
        b = np.concatenate([[1.0], np.zeros(n_slack), edges])
        A = sparse.csc_matrix(sparse.bmat(rows))
        return A, np.concatenate([b, np.zeros(A.shape[0] - len(b))])

    def _cones(self, clarabel: Any) -> list[Any]:
        return [
            clarabel.ZeroConeT(1),
            clarabel.NonnegativeConeT(2 * (len(self._up) + len(self._down))),
            *_clarabel_cones(self._cone, clarabel),
            clarabel.PSDTriangleConeT(self._m + 1),
        ]

    def solve(self, clarabel: Any, settings: Any) -> Any:
        """Return the solution of Clarabel."""
        quadratic = sparse.csc_matrix((len(self.q), len(self.q)))
        cones = self._cones(clarabel)
        return clarabel.DefaultSolver(quadratic, self.q, self.A, self.b, cones, settings).solve()

    def parameter(self, x: Any) -> Point:
        """Return the parameter of a solution."""
        return self._cone.point(np.asarray(x, dtype=np.float64)[: self._size])

    def dual_vector(self, z: Any) -> FloatArray:
        """Return the dual vector of a solution, the multipliers of the losses."""
        n_up, n_down = len(self._up), len(self._down)
        first = 1 + n_up + n_down
        alpha = self._scale * np.asarray(z, dtype=np.float64)[first : first + n_up + n_down]
        w = np.zeros(self._m)
        w[self._up] += alpha[:n_up]
        w[self._down] -= alpha[n_up:]
        return w


def _clarabel_cones(cone: Cone, clarabel: Any) -> list[Any]:
    """Return a cone as a list of cones of Clarabel, whose entries have the same order."""
    if isinstance(cone, ProductCone):
        return [own for part in cone.cones for own in _clarabel_cones(part, clarabel)]
    if isinstance(cone, PSD):
        return [clarabel.PSDTriangleConeT(cone.side)]
    return [clarabel.NonnegativeConeT(cone.dimension)]


def _kernel_map(kernels: BoundKernelSet) -> FloatArray:
    """Return the map from the entries of P to the triangle of K(P), one column per entry."""
    triangle = PSD(kernels.n_samples)
    columns = np.eye(kernels.cone.dimension)
    return np.column_stack(
        [triangle.vector(kernels.gram(kernels.cone.point(unit))) for unit in columns]
    )


def _zeros(rows: int, columns: int) -> Any:
    return sparse.csr_array((rows, columns))
