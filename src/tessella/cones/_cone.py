"""The base class of cones: what each cone defines, and what follows for all of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tessella.cones._blocks import Blocks, Point, inner

FloatArray = NDArray[np.float64]

Frame = Any  # eigenvectors for matrices, None for weights, one for each block of a product
Face = Any  # an orthonormal span for matrices, indices for weights; None stands for everything
Factors = Any  # a pair (L, R) with P = L Rᵀ for matrices, the weights themselves for weights


@dataclass(frozen=True)
class Spectrum:
    """Decomposition of a point by vertices of the feasible set, such as an eigendecomposition.

    Attributes
    ----------
    values : ndarray of shape (degree,)
        For a gradient D, the inner products ``<D, vertex_i>``. For a parameter, the share of each
        vertex.
    frame : object
        Data from which the cone builds the vertices. Only the cone can interpret it.
    """

    values: FloatArray
    frame: Frame


@dataclass(frozen=True)
class LeadingFace:
    """A face in which the optimum is likely to lie.

    Attributes
    ----------
    face : Face
        Face of the cone. None stands for the whole cone.
    complete : bool
        Whether no direction outside the face is promising, so that a larger face would not help.
    """

    face: Face
    complete: bool


class Scaling(ABC):
    """The variables of Nesterov and Todd at a pair (M, S) of interior points.

    In these variables both points are equal: M = F·Λ and S = F⁻ᵀ·Λ with a diagonal Λ, so that the
    linearised complementarity is diagonal too.
    """

    factor: Point  # the argument of Sensitivities.transformed

    @abstractmethod
    def to_scaled(self, D: Point) -> Point:
        """Return a point of the dual space (a gradient or a slack) in scaled variables."""

    @abstractmethod
    def from_scaled(self, X: Point) -> Point:
        """Return a parameter from its scaled variables."""

    @abstractmethod
    def towards(self, mu: float, dX: Point | None = None, dZ: Point | None = None) -> Point:
        """Return ``μΛ⁻¹ - Λ``, the right-hand side of the complementarity equation.

        If a predictor step dX and dZ is given, its second-order error is subtracted, which is
        Mehrotra's correction.
        """

    @abstractmethod
    def room(self, change: Point) -> float:
        """Return the largest step along a scaled change within the cone, which may be infinite."""

    @abstractmethod
    def complementarity(self, dX: Point, dZ: Point, length: float) -> float:
        """Return ``<Λ + length dX, Λ + length dZ>``, the complementarity after a step."""


class Cone(ABC):
    """Base class of cones with a trace; the feasible set consists of the points of trace one.

    Attributes
    ----------
    degree : int
        Parameter of the barrier, which is the side of a matrix or the number of weights.
    """

    degree: int

    # -------------------------------------------------------------- what each cone has to define

    @property
    @abstractmethod
    def unit(self) -> Point:
        """The point u of the dual space for which ``<u, P>`` is the trace of P."""

    @property
    @abstractmethod
    def identity(self) -> Point:
        """The identity matrix, or weights that are all one."""

    @abstractmethod
    def spectrum(self, D: Point) -> Spectrum:
        """Return ``<D, v>`` for the vertices v of the decomposition of D, in ascending order."""

    @abstractmethod
    def shares(self, P: Point) -> Spectrum:
        """Return P as a combination of vertices, whose shares sum to the trace of P."""

    @abstractmethod
    def compose(self, shares: FloatArray, frame: Frame) -> Point:
        """Return the combination of the vertices of a frame with given shares."""

    @abstractmethod
    def forms(self, D: Point, frame: Frame) -> FloatArray:
        """Return ``<D, v>`` for the vertices v of a frame."""

    @property
    @abstractmethod
    def sizes(self) -> FloatArray:
        """Squared Frobenius norm of the vertices of a frame."""

    @abstractmethod
    def factor(self, M: Point) -> Any:
        """Return the root L of an interior point M = L Lᵀ; LinAlgError if M is not interior."""

    @abstractmethod
    def square(self, L: Any) -> Factors:
        """Return the factors of L Lᵀ."""

    @abstractmethod
    def factors(self, P: Point) -> Factors:
        """Return thin factors of any symmetric point, from which kernel matrices are computed."""

    @abstractmethod
    def positive_factors(self, P: Point) -> Factors:
        """Return thin factors of a feasible point; negative parts are rounding and are dropped."""

    @abstractmethod
    def trace_of(self, factors: Factors) -> float:
        """Return the trace of a point that is given by its factors."""

    @abstractmethod
    def scaling(self, L: Any, S: Point) -> Scaling:
        """Return the Nesterov-Todd scaling at (L Lᵀ, S); LinAlgError if S is not interior."""

    @abstractmethod
    def face(self, face: Face) -> Cone:
        """Return the cone of a face, in coordinates of the face."""

    @abstractmethod
    def compress(self, face: Face, D: Point) -> Point:
        """Return a gradient in coordinates of a face, by the adjoint of :meth:`expand`."""

    @abstractmethod
    def restrict(self, face: Face, P: Point) -> Point:
        """Return the part of a feasible point within a face, in coordinates of the face."""

    @abstractmethod
    def expand(self, face: Face, M: Point) -> Point:
        """Return a point of a face in coordinates of the whole cone."""

    @abstractmethod
    def leading_face(
        self,
        P: Point,
        D: Point,
        spectrum: Spectrum,
        size: int,
        memory: list[Any],
        whole: int | None = None,
    ) -> LeadingFace:
        """Return a face of about `size` directions in which the optimum is likely to lie.

        The face contains P (up to a negligible part), the leading directions of D, and directions
        of earlier calls that may still matter.

        Parameters
        ----------
        P : Point
            Feasible point.
        D : Point
            Gradient of wᵀK(P)w at the current dual vector.
        spectrum : Spectrum
            Spectrum of D.
        size : int
            Number of directions of the face.
        memory : list
            Data that the cone keeps between the calls of one run. The list is empty at first.
        whole : int, optional
            Largest degree up to which all directions belong to the face. The default is that of
            :attr:`moves_whole`.
        """

    @property
    @abstractmethod
    def moves_whole(self) -> bool:
        """Whether the cone is so small that its points always move in all directions."""

    @property
    @abstractmethod
    def effective_degree(self) -> int:
        """Approximate number of entries of a parameter that a sample of rows has to determine."""

    @abstractmethod
    def subsample_size(self, n_samples: int, least: int) -> int:
        """Return the number of samples on which to learn a first parameter, or 0 for the centre.

        Parameters
        ----------
        n_samples : int
            Number of all samples.
        least : int
            Number of samples below which the parameter is determined poorly.
        """

    @abstractmethod
    def magnitude(self, D: Point) -> float:
        """Return the size of a point of the dual space, in units of ``<D, P>`` with P feasible."""

    @property
    @abstractmethod
    def dimension(self) -> int:
        """Number of independent entries of a point."""

    @abstractmethod
    def vector(self, P: Point) -> FloatArray:
        """Return the independent entries of P, scaled so that inner products are preserved."""

    @abstractmethod
    def point(self, vector: FloatArray) -> Point:
        """Return the point with the given entries, the inverse of :meth:`vector`."""

    @abstractmethod
    def read(self, P: Any) -> Point:
        """Return P as a point of the space of this cone; ValueError if that is not possible."""

    @abstractmethod
    def describe(self) -> str:
        """Return a description of the feasible set for messages."""

    # ------------------------------------------------------------------- what follows from it

    def trace(self, P: Point) -> float:
        """Return the trace of P, which is one for a feasible point."""
        return inner(self.unit, P)

    @property
    def centre(self) -> Point:
        """The analytic centre of the feasible set, which prefers no direction."""
        frame = self.shares(self.identity).frame
        return self.compose(np.full(self.degree, 1.0 / self.degree), frame)

    @property
    def largest_side(self) -> int:
        """Side of the largest matrix that has to be decomposed, which is 0 for weights."""
        return self.degree

    @property
    def radius(self) -> float:
        """Largest eigenvalue, or weight, that a feasible point can have."""
        return float(np.sqrt(self.sizes.max()))

    def support(self, spectrum: Spectrum) -> float:
        """Return the largest ``<D, P>`` over feasible P, for the spectrum of a gradient D.

        Gradients of kernel sets lie in the cone, so a negative value is a rounding error and is
        replaced by zero. If the spectrum contains a NaN, the result is one too.
        """
        return float(spectrum.values.max(initial=0.0))

    def vertex(self, spectrum: Spectrum) -> Point:
        """Return a feasible P that attains the support function of D."""
        shares = np.zeros(len(spectrum.values))
        shares[np.argmax(spectrum.values)] = 1.0
        return self.compose(shares, spectrum.frame)

    def balanced_response(self, spectrum: Spectrum, most: int | None = None) -> Point:
        """Return the feasible P whose shares are in proportion to the roots of the spectrum of D.

        If `most` is given, P has no more directions than that.

        For the dual vector w of machines with the kernel of the centre, this P minimises the sum
        of the values of their functions, which are written in terms of the basis functions: with
        G = P D P, the sum of the squared norms is ``trace(P⁻¹ G)``, which is smallest for P in
        proportion to the root of G. Directions that are rounding errors are left out.
        """
        shares = np.sqrt(np.maximum(spectrum.values, 0.0))
        shares[shares < _NO_ROOT * shares.max(initial=0.0)] = 0.0
        if most is not None:
            shares[np.argsort(shares)[:-most]] = 0.0
        return self.compose(shares / float(shares.sum()), spectrum.frame)

    def graded_response(self, spectrum: Spectrum, rest: float) -> Point:
        """Return the best response mixed with all directions, in proportion to the spectrum of D.

        With the best response alone, a function has one direction, and a direction that is missing
        can be expensive. Directions that are small even together are left out.

        Parameters
        ----------
        spectrum : Spectrum
            Spectrum of D(w).
        rest : float
            Part of P that has the shares of the spectrum.
        """
        values = np.maximum(spectrum.values, 0.0)
        order = np.argsort(values)
        values[order[np.cumsum(values[order]) < _LITTLE * float(values.sum())]] = 0.0
        shares = rest * values / float(values.sum())
        shares[order[-1]] += 1.0 - rest
        return self.compose(shares, spectrum.frame)

    def normalised(self, P: Point) -> Point:
        """Return P scaled to trace one."""
        return P / self.trace(P)

    def project(self, A: Point) -> Point:
        """Return the feasible point nearest to A in the Frobenius norm.

        For matrices the cost is one eigendecomposition.
        """
        own = self.shares(A)
        return self.compose(project_on_simplex(own.values, self.sizes), own.frame)

    def trimmed(self, P: Point, D: Point, cost: float) -> Point:
        """Return P without the vertices whose contribution is negligible, with trace one.

        An interior point method returns a P of full rank even if the optimum has rank one or two,
        and the cost of every kernel value grows with the rank. Vertices are dropped as long as
        their contribution to ``wᵀK(P)w / 2``, with D = D(w), and the gain of the other vertices
        from their share are together below `cost`.
        """
        own = self.shares(P)
        lent = own.values * self.forms(D, own.frame)
        taken = own.values / float(own.values.sum()) * inner(D, P)
        price = np.maximum(lent, taken)
        order = np.argsort(price)
        harmless = np.cumsum(0.5 * price[order]) <= cost
        harmless[-1] = False
        shares = np.maximum(own.values, 0.0)
        shares[order[harmless]] = 0.0
        return self.compose(shares / float(shares.sum()), own.frame)

    def worst_vertex(self, P: Point, D: Point, support: float) -> tuple[float, Point]:
        """Return the share of the vertex of P whose exchange for the best gains most, and it."""
        own = self.shares(P)
        loss = own.values * (support - self.forms(D, own.frame))
        loss[own.values <= _NO_SHARE] = -np.inf
        shares = np.zeros(len(loss))
        worst = int(np.argmax(loss))
        shares[worst] = 1.0
        return float(own.values[worst]), self.compose(shares, own.frame)

    def read_factors(self, P: Any) -> Factors:
        """Return thin factors of a point as :meth:`read` takes it."""
        return self.factors(self.read(P))

    def contains(self, P: Point, rtol: float = 1e-8) -> bool:
        """Return whether P is feasible, up to `rtol` times the largest possible entry."""
        return abs(self.share(P, rtol) - 1.0) <= rtol

    def share(self, P: Point, rtol: float) -> float:
        """Return the trace of a point of the cone, or NaN if P is no such point.

        Shares of vertices may be negative by `rtol` times the trace, or by `rtol` if P is hardly
        larger than that.
        """
        try:
            given = self.read(P)
        except ValueError:
            return np.nan
        if not np.isfinite(self.vector(given)).all():
            return np.nan
        trace = self.trace(given)
        least = -rtol * (trace if trace > rtol else 1.0)
        return trace if (self.shares(given).values >= least).all() else np.nan

    def checked(self, P: ArrayLike | Blocks | None) -> Point:
        """Return P, or the centre for None; ValueError if P is not feasible."""
        if P is None:
            return self.centre
        given = self.read(P)
        if not self.contains(given):
            raise ValueError(f"The starting parameter must be {self.describe()}.")
        return given

    def interior(self, P: Point, part: float = 0.1) -> Point:
        """Return a feasible point moved a part of the way to the centre."""
        return (1.0 - part) * self.normalised(P) + part * self.centre


_LITTLE = 1e-4  # part of a spectrum, below which directions do not matter even together
_NO_ROOT = 1e-6  # ratio of two shares below which the root of a share is one of a rounding error
_NO_SHARE = 1e-12  # share of the trace below which a vertex is a rounding error


def project_on_simplex(values: FloatArray, sizes: FloatArray) -> FloatArray:
    """Return the point of ``{x >= 0, sum(x) == 1}`` nearest to `values`.

    Distances are measured by ``Σ sizes (x - values)²``. The nearest point is ``max(values - shift
    / sizes, 0)``. If the j largest entries of ``values * sizes`` are positive, the sum determines
    the shift; the correct j is the largest one for which the j-th entry is positive.

    Raises
    ------
    LinAlgError
        If a value is not finite. A run of a solver ends with it like at a limit.
    """
    if not np.isfinite(values).all():
        raise np.linalg.LinAlgError("A point that is not finite has no projection.")
    # The same multiple of 1 / sizes can be subtracted from all values. Without it the shift would
    # be as large as the values, and the last digits of large values are larger than the result.
    # The largest value becomes exactly zero.
    top = np.argmax(values * sizes)
    values = values - values[top] * (sizes[top] / sizes)
    order = np.argsort(-(values * sizes), kind="stable")
    sorted_values, inverse = values[order], 1.0 / sizes[order]
    shifts = (np.cumsum(sorted_values) - 1.0) / np.cumsum(inverse)
    last = np.flatnonzero(sorted_values > shifts * inverse)[-1]
    projected: FloatArray = np.maximum(values - shifts[last] / sizes, 0.0)
    return projected
