"""Exact leave-one-out of kernel machines with the squared loss.

The machine with kernel matrix K, weights s and parameter C minimises

    ½ aᵀKa + ½ Σ_i C s_i (y_i - f_i - b)²,      f = Ka,

which is the linear system (K + Λ)a + b1 = y, 1ᵀa = 0 with Λ = diag(1 / (C s_i)). With the matrix
H that maps targets to coefficients, a = Hy, the residual of row i in the machine that has not
seen it is a_i / H_ii. See :mod:`tessella.leave_one_out._centring` for the formula of H.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import lstsq

from tessella.leave_one_out._centring import Centring
from tessella.leave_one_out._squared import (
    RidgeSolution,
    checked_fraction,
    checked_grid,
    checked_kernel,
    checked_targets,
    checked_weight,
    spread_without,
)
from tessella.leave_one_out._tridiagonal import TridiagonalForm

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

# Each round of a refinement tries this many points between the two neighbours of the best one, so
# that two rounds make the distance of neighbours 25 times smaller.
_POINTS_BETWEEN = 9
_REFINEMENTS = 2

# A negative eigenvalue beyond this fraction of the largest one is no rounding error, not even of
# kernel values in float32.
_LARGEST_INDEFINITENESS = 1e-5


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
        K = checked_kernel(K)
        self._weight = checked_weight(sample_weight, len(K))
        if groups is not None and left_out is not None:
            raise ValueError("left_out must be None with groups, which are left out as a whole.")
        self._left_out = checked_fraction(left_out, self._weight)
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
        Y = checked_targets(Y, len(self._weight))
        found = self._found(Y, checked_grid([C]))
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
        return self._found(checked_targets(Y, len(self._weight)), checked_grid(Cs)).residuals

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
        grid = np.unique(checked_grid(Cs))
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
        spread = spread_without(self._weight, self._left_out, forms)
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
