"""Exact leave-one-out of kernel machines with the squared loss.

The machine with kernel matrix K, weights s and parameter C minimises

    ½ aᵀKa + ½ Σ_i C s_i (y_i - f_i - b)²,      f = Ka,

which is the linear system (K + Λ)a + b1 = y, 1ᵀa = 0 with Λ = diag(1 / (C s_i)). With the matrix
H that maps targets to coefficients, a = Hy, the residual of row i in the machine that has not
seen it is a_i / H_ii. See :mod:`tessella.leave_one_out._centring` for the formula of H.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import lstsq
from scipy.linalg.lapack import dpotrf, dpotrs, dtrtri

from tessella.leave_one_out._centring import Centring
from tessella.leave_one_out._tridiagonal import TridiagonalForm

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

# Each round of a refinement tries this many points between the two neighbours of the best one, so
# that two rounds make the distance of neighbours 25 times smaller.
_POINTS_BETWEEN = 9
_REFINEMENTS = 2

# Above this product of C and the norm of the matrix, a Cholesky factor has lost too many digits
# of the directions in which the kernel matrix is singular.
_LARGEST_CHOLESKY_CONDITION = 1e8

# A negative eigenvalue beyond this fraction of the largest one is no rounding error, not even of
# kernel values in float32.
_LARGEST_INDEFINITENESS = 1e-5


@dataclass(frozen=True)
class RidgeSolution:
    """A kernel machine with the squared loss, for one value of C and any number of outputs.

    Attributes
    ----------
    coef : ndarray of shape (m, k)
        Coefficients of the rows for each output. The scores of the rows are
        ``K @ coef + intercept``.
    intercept : ndarray of shape (k,)
        Constant of each output.
    loo_residuals : ndarray of shape (m, k)
        Target of each row minus its score in the machine that has not seen this row (or its
        group). The targets minus these residuals are the leave-one-out predictions.
    """

    coef: FloatArray
    intercept: FloatArray
    loo_residuals: FloatArray


class BestC(NamedTuple):
    """The value of C with the smallest leave-one-out error.

    Attributes
    ----------
    C : float
        The value.
    loo_error : float
        Its leave-one-out error, as :meth:`RidgePath.loo_errors` defines it.
    """

    C: float
    loo_error: float


class _Residuals(NamedTuple):
    """Residuals of machines, of shape (n, m, k), times the weights: all rows, and leave-one-out."""

    errors: FloatArray
    residuals: FloatArray


class RidgePath:
    """Kernel machines with the squared loss for every C, from one reduction of the kernel matrix.

    The machine minimises ``a @ K @ a / 2 + C / 2 * sum(s * (y - K @ a - b)**2)`` over the
    coefficients a and the intercept b. After an orthogonal map that makes the centred kernel matrix
    tridiagonal, the machine of another C and all its leave-one-out residuals cost as much as two
    products with a matrix.

    Parameters
    ----------
    K : ndarray of shape (m, m)
        Symmetric positive semidefinite kernel matrix in float64. It may be singular.
    sample_weight : array-like of shape (m,), optional
        Positive weights s of the rows. By default all of them are 1. A row of weight 0 has to be
        left out by the caller.
    groups : array-like of shape (m,), optional
        Labels of groups. The rows of a group are left out together, with their whole weight. By
        default each row is left out by itself. Folds of cross-validation may be given as groups;
        the result is exact cross-validation without another fit.
    left_out : array-like of shape (m,), optional
        Fraction of the weight of each row that is left out with it, above 0 and at most 1. The
        default, the smaller one of 1 and ``1 / sample_weight``, treats weights as numbers of
        copies: of a row of weight 3 one copy is left out and two remain, and a row of weight 1 or
        less is left out as a whole. If weights are not numbers of copies, use 1. Not allowed
        together with `groups`.
    overwrite : bool, default=False
        Whether the memory of `K` may be used for the reduction. `K` is useless afterwards.

    Raises
    ------
    ValueError
        If there are less than two rows or groups, if a weight is not positive, if `K` has clearly
        negative eigenvalues, or if shapes or values are invalid.

    See Also
    --------
    ridge_leave_one_out : The same for one value of C, by a Cholesky factorisation.

    Notes
    -----
    The reduction takes 8m³/3 operations, as long as four values of C by
    :func:`ridge_leave_one_out` and less than the eigenvectors of the matrix. A value of C takes
    m²(2k + 5) operations for k outputs. The object holds m² numbers, and 2m² during the reduction.
    With groups, or for a value of C so large that rounding decides which directions are null, the
    eigenvectors are computed as well; this takes 3m² numbers for its time.

    Eigenvalues within rounding of zero are treated as zero, so duplicate rows, linear kernels
    and ``K = 0`` are no special cases. The diagonal of the inverse is a sum of squares in which
    nothing cancels. The residuals have a relative error of about 1e-16 times ``C * s`` times the
    norm of K, which is what rounding the entries of K changes. For larger values, where the
    machine interpolates, they are finite and belong to a kernel matrix that agrees with `K` to
    double precision.

    Examples
    --------
    >>> import numpy as np
    >>> from tessella.leave_one_out import RidgePath
    >>> x = np.linspace(0.0, 3.0, 30)
    >>> y = np.sin(2.0 * x)
    >>> path = RidgePath(np.exp(-np.subtract.outer(x, x) ** 2))
    >>> best = path.best(y, np.geomspace(0.01, 1e6, 9))
    >>> best.C > 1e3, best.loo_error < 1e-4
    (True, True)
    >>> solution = path.fit(y, best.C)
    >>> bool(np.isclose(np.mean(solution.loo_residuals**2), best.loo_error))
    True
    """

    def __init__(
        self,
        K: NDArray[np.float64],
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        *,
        left_out: ArrayLike | None = None,
        overwrite: bool = False,
    ) -> None:
        K = _checked_kernel(K)
        self._weight = _checked_weight(sample_weight, len(K))
        if groups is not None and left_out is not None:
            raise ValueError("left_out must be None with groups, which are left out as a whole.")
        self._left_out = _checked_fraction(left_out, self._weight)
        self._groups = _larger_groups(groups, len(K))
        if groups is not None:
            self._left_out = np.ones(len(K))
        self._kernel_sums: FloatArray = K @ self._weight
        centring = Centring(self._weight)
        self._root = centring.root
        self._form = _tridiagonal_form(centring, K, overwrite)
        if self._groups:
            self._form.diagonalise()

    def fit(self, Y: ArrayLike, C: float) -> RidgeSolution:
        """Return the machine for one value of C, with its leave-one-out residuals.

        Parameters
        ----------
        Y : array-like of shape (m,) or (m, k)
            Targets, one column for each output.
        C : float
            Weight of the loss; positive.

        Returns
        -------
        RidgeSolution
            Coefficients, intercepts and residuals, with one column for each output.
        """
        Y = _checked_targets(Y, len(self._weight))
        found = self._found(Y, _checked_grid([C]))
        coef = float(C) * found.errors[0]
        intercept = (self._weight @ Y - self._kernel_sums @ coef) / self._weight.sum()
        return RidgeSolution(coef, intercept, found.residuals[0])

    def loo_residuals(self, Y: ArrayLike, Cs: ArrayLike) -> FloatArray:
        """Return the leave-one-out residuals for several values of C.

        Parameters
        ----------
        Y : array-like of shape (m,) or (m, k)
            Targets, one column for each output.
        Cs : array-like of shape (n,)
            Weights of the loss; positive.

        Returns
        -------
        ndarray of shape (n, m, k)
            For each C, the target of each row minus its score in the machine that has not seen
            this row (or its group).
        """
        return self._found(_checked_targets(Y, len(self._weight)), _checked_grid(Cs)).residuals

    def loo_errors(self, Y: ArrayLike, Cs: ArrayLike) -> FloatArray:
        """Return the mean squared leave-one-out residual for several values of C.

        Parameters
        ----------
        Y : array-like of shape (m,) or (m, k)
            Targets, one column for each output.
        Cs : array-like of shape (n,)
            Weights of the loss; positive.

        Returns
        -------
        ndarray of shape (n,)
            Mean over the rows, weighted with their weights, and over the outputs.
        """
        squares = self.loo_residuals(Y, Cs) ** 2
        errors: FloatArray = self._weight @ squares.mean(axis=2).T / self._weight.sum()
        return errors

    def best(self, Y: ArrayLike, Cs: ArrayLike) -> BestC:
        """Return the C with the smallest leave-one-out error, refined between the given values.

        Parameters
        ----------
        Y : array-like of shape (m,) or (m, k)
            Targets, one column for each output.
        Cs : array-like of shape (n,)
            Values of C to try first. The best C lies between the smallest and the largest one.

        Returns
        -------
        BestC
            The best C and its error. If several values have the same error, the smallest one.

        Notes
        -----
        The neighbours of the best value enclose an interval, in which nine values are tried, and
        nine more between the neighbours of the best of these. This finds the minimum if the error
        has a single one in the interval.
        """
        grid = np.unique(_checked_grid(Cs))
        errors = self.loo_errors(Y, grid)
        for _ in range(_REFINEMENTS):
            place = int(errors.argmin())
            ends = grid[max(place - 1, 0)], grid[min(place + 1, len(grid) - 1)]
            if ends[0] == ends[1]:
                break
            between = np.geomspace(*ends, _POINTS_BETWEEN + 2)[1:-1]
            grid = np.concatenate([grid, between])
            errors = np.concatenate([errors, self.loo_errors(Y, between)])
            order = np.argsort(grid, kind="stable")
            grid, errors = grid[order], errors[order]
        place = int(errors.argmin())
        return BestC(float(grid[place]), float(errors[place]))

    def _found(self, Y: FloatArray, Cs: FloatArray) -> _Residuals:
        """The residuals of the machines and those of leave-one-out, for each C."""
        forms = self._form.forms(Cs)
        vectors = self._form.vectors
        inner = vectors.T @ (self._root[:, None] * Y)
        solved = self._form.solved(Cs, inner)
        columns = np.ascontiguousarray(solved.transpose(1, 0, 2)).reshape(len(inner), -1)
        errors = (vectors @ columns).reshape(len(Y), len(Cs), -1).transpose(1, 0, 2)
        errors = self._root[:, None] * errors
        spread = _spread_without(self._weight, self._left_out, forms)
        residuals: FloatArray = errors / spread[:, :, None]
        for own, C in zip(residuals, Cs, strict=True):
            self._fill_groups(own, inner, self._form.roots(C))
        return _Residuals(errors, residuals)

    def _fill_groups(self, residuals: FloatArray, inner: FloatArray, root: FloatArray) -> None:
        """Replace the residuals of rows in groups by those without the whole group.

        They are ``inv(H_gg) @ a_g``. As H_gg is a product WWᵀ and a_g is W times a vector, they
        solve a least squares problem with Wᵀ, and H_gg is not formed.
        """
        for rows in self._groups:
            factor = (self._form.vectors[rows] * root).T
            found, *_ = lstsq(
                factor,
                root[:, None] * inner,
                overwrite_a=True,
                overwrite_b=True,
                check_finite=False,
                lapack_driver="gelsy",
            )
            residuals[rows] = found / self._root[rows, None]


def ridge_leave_one_out(
    K: NDArray[np.float64],
    Y: ArrayLike,
    C: float,
    sample_weight: ArrayLike | None = None,
    *,
    left_out: ArrayLike | None = None,
    overwrite: bool = False,
) -> RidgeSolution:
    """Fit a kernel machine with the squared loss and leave out each row in turn, for one C.

    Parameters
    ----------
    K : ndarray of shape (m, m)
        Symmetric positive semidefinite kernel matrix in float64. It may be singular.
    Y : array-like of shape (m,) or (m, k)
        Targets, one column for each output.
    C : float
        Weight of the loss; positive.
    sample_weight : array-like of shape (m,), optional
        Positive weights of the rows. By default all of them are 1.
    left_out : array-like of shape (m,), optional
        Fraction of the weight of each row that is left out with it, above 0 and at most 1. The
        default, the smaller one of 1 and ``1 / sample_weight``, treats weights as numbers of
        copies.
    overwrite : bool, default=False
        Whether the memory of `K` may be used. `K` is useless afterwards.

    Returns
    -------
    RidgeSolution
        Coefficients, intercepts and leave-one-out residuals, with one column for each output.

    See Also
    --------
    RidgePath : The same for many values of C, and for groups of rows.

    Notes
    -----
    Takes 2m³/3 operations in level 3 BLAS, by a Cholesky factorisation and the inverse of the
    factor, and holds m² numbers. For more than about five values of C, :class:`RidgePath` is
    faster. If C times the norm of the matrix exceeds 1e8, the factor would lose the directions in
    which K is singular, and the result is computed by :class:`RidgePath`.

    Examples
    --------
    >>> import numpy as np
    >>> from tessella.leave_one_out import ridge_leave_one_out
    >>> solution = ridge_leave_one_out(np.zeros((3, 3)), [1.0, 2.0, 6.0], C=1.0)
    >>> solution.intercept.round(6).tolist()
    [3.0]
    >>> solution.loo_residuals.ravel().round(6).tolist()
    [-3.0, -1.5, 4.5]
    """
    K = _checked_kernel(K)
    weight = _checked_weight(sample_weight, len(K))
    fraction = _checked_fraction(left_out, weight)
    Y = _checked_targets(Y, len(K))
    strength = float(_checked_grid([C])[0])
    if strength * float(weight.max()) * float(np.linalg.norm(K)) > _LARGEST_CHOLESKY_CONDITION:
        return RidgePath(K, weight, left_out=fraction, overwrite=overwrite).fit(Y, strength)
    kernel_sums = K @ weight
    centring = Centring(weight)
    inverse = _inverse_factor(centring, K, strength, overwrite)
    errors = inverse @ centring.targets(Y)
    errors = centring.root[:, None] * centring.reflect(inverse.T @ errors)
    coef = strength * errors
    intercept = (weight @ Y - kernel_sums @ coef) / weight.sum()
    centring.reflect_in_place(inverse.T)
    spread = _spread_without(weight, fraction, np.einsum("ij,ij->j", inverse, inverse))
    return RidgeSolution(coef, intercept, errors / spread[:, None])


def last_left_out(
    K: NDArray[np.float64],
    Y: FloatArray,
    C: float,
    weight: FloatArray,
    left_out: FloatArray,
    count: int,
) -> FloatArray:
    """Leave out each of the last rows of a machine with the squared loss, for one C.

    Parameters
    ----------
    K : ndarray of shape (m, m)
        Symmetric positive semidefinite kernel matrix, whose memory is used.
    Y : ndarray of shape (m, k)
        Targets.
    C : float
        Weight of the loss.
    weight : ndarray of shape (m,)
        Positive weight of each row.
    left_out : ndarray of shape (m,)
        Fraction of the weight of each row that is left out with it.
    count : int
        Number of the rows to leave out.

    Returns
    -------
    ndarray of shape (count, k)
        Targets of the last rows minus their scores in the machines that have not seen them.

    See Also
    --------
    ridge_leave_one_out : The same for all rows, which takes the inverse of the whole factor.

    Notes
    -----
    Takes a Cholesky factorisation, because the last rows and columns of the inverse of a matrix
    need nothing but the last rows and columns of its factor. The relative error of the residuals is
    about 1e-16 times C times the norm of the weighted kernel matrix.

    Examples
    --------
    >>> import numpy as np
    >>> from tessella.leave_one_out import last_left_out
    >>> ones = np.ones(3)
    >>> y = np.array([[1.0], [2.0], [6.0]])
    >>> last_left_out(np.zeros((3, 3)), y, 1.0, ones, ones, 2).ravel().round(6).tolist()
    [-1.5, 4.5]
    """
    centring = Centring(weight)
    factor = _factor(centring, K, C, overwrite=True)
    right = np.column_stack([centring.normal, centring.targets(Y)])
    right[0, 0] = 0.0  # the first axis, that of the intercept, has no part in the inverse
    solved = dpotrs(factor, right, lower=1)[0]
    first = len(K) - count
    corner = dtrtri(factor[first:, first:], lower=1)[0]
    if first == 0:
        corner[0, 0] = 0.0
    spread = centring.last_diagonal(np.einsum("ij,ij->j", corner, corner), solved[:, 0])
    errors = centring.root[first:, None] * centring.reflect(solved[:, 1:])[first:]
    divisor = _spread_without(weight[first:], left_out[first:], spread)
    return np.asarray(errors / divisor[:, None])


def _tridiagonal_form(centring: Centring, K: FloatArray, overwrite: bool) -> TridiagonalForm:
    """The weighted kernel matrix on the hyperplane of zero sums, as VTVᵀ."""
    size = float(np.abs(K.diagonal() * centring.root**2).max())  # before K may be overwritten
    form = TridiagonalForm(centring.matrix(K, overwrite))
    # A kernel matrix that is nearly constant leaves nothing but the rounding of its own size.
    allowed = 100 * len(K) * np.finfo(float).eps * size
    if form.smallest < -_LARGEST_INDEFINITENESS * form.largest - allowed:
        raise ValueError(
            f"K is not positive semidefinite: on the vectors of zero sum its eigenvalues lie "
            f"between {form.smallest:.2e} and {form.largest:.2e}."
        )
    centring.reflect_in_place(form.vectors)
    return form


def _inverse_factor(centring: Centring, K: FloatArray, C: float, overwrite: bool) -> FloatArray:
    """Inverse of the Cholesky factor of I + C QAQ, with a zero first row and column."""
    inverse: FloatArray = dtrtri(_factor(centring, K, C, overwrite), lower=1, overwrite_c=1)[0]
    inverse[0, 0] = 0.0
    return inverse


def _factor(centring: Centring, K: FloatArray, C: float, overwrite: bool) -> FloatArray:
    """Lower Cholesky factor of I + C QAQ, of which the first row and column are those of I."""
    matrix = centring.matrix(K, overwrite)
    matrix *= C
    matrix.flat[:: len(K) + 1] += 1.0
    factor, failed = dpotrf(matrix, lower=1, clean=1, overwrite_a=1)
    if failed:
        raise ValueError(
            "K is not positive semidefinite: the Cholesky factorisation of K plus a positive "
            "diagonal has failed."
        )
    return np.asarray(factor)


def _spread_without(weight: FloatArray, left_out: FloatArray, spread: FloatArray) -> FloatArray:
    """Divisor of ``errors``, which are a / C: weight that stays, plus H / C of what is left out.

    If a row of weight s keeps s - r of it, its residual is ``a / (C (s - r) + H r / s)``. The rows
    are the last axis of `spread`, which is the diagonal of H / C divided by the weights.
    """
    removed = weight * left_out
    divisor: FloatArray = weight - removed + removed * spread
    return divisor


def _checked_kernel(K: NDArray[np.float64]) -> FloatArray:
    if not isinstance(K, np.ndarray) or K.dtype != np.float64:
        raise ValueError("K must be a numpy array of type float64.")
    if K.ndim != 2 or K.shape[0] != K.shape[1]:
        raise ValueError(f"K has shape {K.shape}, expected a square matrix.")
    if len(K) < 2:
        raise ValueError("Leaving out a row needs at least two rows.")
    if not np.isfinite(K).all():
        raise ValueError("K contains a NaN or an infinity.")
    return K


def _checked_weight(sample_weight: ArrayLike | None, size: int) -> FloatArray:
    if sample_weight is None:
        return np.ones(size)
    weight = np.asarray(sample_weight, dtype=np.float64)
    if weight.shape != (size,):
        raise ValueError(f"sample_weight has shape {weight.shape}, expected ({size},).")
    if not (np.isfinite(weight).all() and (weight > 0).all()):
        raise ValueError(
            "sample_weight must be finite and positive; leave out the rows of weight 0."
        )
    return weight


def _checked_fraction(left_out: ArrayLike | None, weight: FloatArray) -> FloatArray:
    if left_out is None:
        return 1.0 / np.maximum(weight, 1.0)
    fraction = np.asarray(left_out, dtype=np.float64)
    if fraction.shape != weight.shape:
        raise ValueError(f"left_out has shape {fraction.shape}, expected {weight.shape}.")
    if not ((fraction > 0) & (fraction <= 1)).all():
        raise ValueError("left_out must be above 0 and at most 1.")
    return fraction


def _larger_groups(groups: ArrayLike | None, size: int) -> list[IntArray]:
    """The rows of each group of more than one row."""
    if groups is None:
        return []
    labels = np.asarray(groups)
    if labels.shape != (size,):
        raise ValueError(f"groups has shape {labels.shape}, expected ({size},).")
    _, codes, counts = np.unique(labels, return_inverse=True, return_counts=True)
    if len(counts) < 2:
        raise ValueError("Leaving out a group needs at least two groups.")
    by_group = np.split(np.argsort(codes, kind="stable"), np.cumsum(counts)[:-1])
    return [rows for rows in by_group if len(rows) > 1]


def _checked_targets(Y: ArrayLike, size: int) -> FloatArray:
    targets = np.asarray(Y, dtype=np.float64)
    if targets.ndim == 1:
        targets = targets[:, None]
    if targets.ndim != 2 or len(targets) != size or not targets.shape[1]:
        raise ValueError(f"Y has shape {np.shape(Y)}, expected ({size},) or ({size}, k).")
    if not np.isfinite(targets).all():
        raise ValueError("Y contains a NaN or an infinity.")
    return targets


def _checked_grid(Cs: ArrayLike) -> FloatArray:
    grid = np.asarray(Cs, dtype=np.float64)
    if grid.ndim != 1 or not len(grid):
        raise ValueError(f"Cs has shape {grid.shape}, expected one dimension and an entry.")
    if not (np.isfinite(grid).all() and (grid > 0).all()):
        raise ValueError("C must be finite and positive.")
    return grid
