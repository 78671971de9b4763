"""What every cone knows, and what follows from it for all of them alike."""

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
    """A point as a combination of vertices of the feasible set that it picks itself.

    Attributes
    ----------
    values : ndarray of shape (degree,)
        For a gradient D, ``<D, vertex_i>``; for a parameter, the share of each vertex.
    frame : object
        What the vertices are made of; only the cone can read it.
    """

    values: FloatArray
    frame: Frame


@dataclass(frozen=True)
class LeadingFace:
    """A face in which the optimum is likely to lie.

    Attributes
    ----------
    face : Face
        The face; None stands for everything.
    complete : bool
        Whether nothing outside the face looks promising, so that a larger one would not help.
    """

    face: Face
    complete: bool


class Scaling(ABC):
    """The variables of Nesterov and Todd at a pair (M, S) of interior points.

    In them both points are the same: M = F·Λ and S = F⁻ᵀ·Λ with Λ diagonal, so that the
    linearised complementarity is diagonal too.
    """

    factor: Point  # the argument of Sensitivities.transformed

    @abstractmethod
    def to_scaled(self, D: Point) -> Point:
        """A point of the dual space (a gradient, a slack) in scaled variables."""

    @abstractmethod
    def from_scaled(self, X: Point) -> Point:
        """A parameter from its scaled variables."""

    @abstractmethod
    def towards(self, mu: float, dX: Point | None = None, dZ: Point | None = None) -> Point:
        """Right-hand side of the complementarity: ``μΛ⁻¹ - Λ``, less the error of a step.

        With dX and dZ, the second-order error of that predictor step is subtracted, which is
        Mehrotra's correction.
        """

    @abstractmethod
    def room(self, change: Point) -> float:
        """Largest step along a scaled change that stays in the cone; infinite if all do."""

    @abstractmethod
    def complementarity(self, dX: Point, dZ: Point, length: float) -> float:
        """``<Λ + length dX, Λ + length dZ>``."""


class Cone(ABC):
    """A cone with a trace; its feasible set are the points of trace one.

    Attributes
    ----------
    degree : int
        Parameter of the barrier: the side of a matrix, the number of weights.
    """

    degree: int

    # ------------------------------------------------------------------ what a cone has to say

    @property
    @abstractmethod
    def unit(self) -> Point:
        """The point u of the dual space for which ``<u, P>`` is the trace of P."""

    @property
    @abstractmethod
    def identity(self) -> Point:
        """The identity matrix; weights of one."""

    @abstractmethod
    def spectrum(self, D: Point) -> Spectrum:
        """``<D, v>`` for the vertices v of the feasible set that D is made of, ascending."""

    @abstractmethod
    def shares(self, P: Point) -> Spectrum:
        """P as a combination of vertices: their shares, which sum to the trace of P."""

    @abstractmethod
    def compose(self, shares: FloatArray, frame: Frame) -> Point:
        """The combination of the vertices of a frame with given shares."""

    @abstractmethod
    def forms(self, D: Point, frame: Frame) -> FloatArray:
        """``<D, v>`` for the vertices v of a frame."""

    @property
    @abstractmethod
    def sizes(self) -> FloatArray:
        """Squared Frobenius norm of the vertices of a frame."""

    @abstractmethod
    def factor(self, M: Point) -> Any:
        """Root of an interior point: M = L Lᵀ. LinAlgError if M is not interior."""

    @abstractmethod
    def square(self, L: Any) -> Factors:
        """The factors of L Lᵀ."""

    @abstractmethod
    def factors(self, P: Point) -> Factors:
        """Thin factors of a symmetric point of any sign, from which kernel matrices are made."""

    @abstractmethod
    def positive_factors(self, P: Point) -> Factors:
        """The same of a feasible point, whose negative parts are rounding and are dropped."""

    @abstractmethod
    def scaling(self, L: Any, S: Point) -> Scaling:
        """Nesterov-Todd scaling at (L Lᵀ, S). LinAlgError if S is not interior."""

    @abstractmethod
    def face(self, face: Face) -> Cone:
        """The cone of a face, in its own coordinates."""

    @abstractmethod
    def compress(self, face: Face, D: Point) -> Point:
        """A gradient as the face sees it: the adjoint of :meth:`expand`."""

    @abstractmethod
    def restrict(self, face: Face, P: Point) -> Point:
        """The part of a feasible point within a face, in coordinates of the face."""

    @abstractmethod
    def expand(self, face: Face, M: Point) -> Point:
        """A point of a face in coordinates of the whole cone."""

    @abstractmethod
    def leading_face(
        self, P: Point, D: Point, spectrum: Spectrum, size: int, memory: list[Any]
    ) -> LeadingFace:
        """The face of about `size` directions in which the optimum is likely to lie.

        It contains P (up to what is negligible), the leading directions of D, and those of
        earlier calls that may still matter.

        Parameters
        ----------
        P : Point
            Feasible point.
        D : Point
            Gradient of wᵀK(P)w at the current dual vector.
        spectrum : Spectrum
            The spectrum of D.
        size : int
            Number of directions.
        memory : list
            What the cone remembers from call to call of one run; empty at first.
        """

    @property
    @abstractmethod
    def moves_whole(self) -> bool:
        """Whether the cone is so small that its points always move in all directions at once."""

    @property
    @abstractmethod
    def effective_degree(self) -> int:
        """About how many entries of a parameter a sample of rows has to decide."""

    @abstractmethod
    def subsample_size(self, n_samples: int, least: int) -> int:
        """Number of samples that should find a first parameter; 0 to start from the centre.

        Parameters
        ----------
        n_samples : int
            Number of all samples.
        least : int
            Number of samples below which the parameter is decided poorly.
        """

    @abstractmethod
    def magnitude(self, D: Point) -> float:
        """A size for points of the dual space, in units of ``<D, P>`` with P feasible."""

    @property
    @abstractmethod
    def dimension(self) -> int:
        """Number of independent entries of a point."""

    @abstractmethod
    def vector(self, P: Point) -> FloatArray:
        """The independent entries of P, scaled so that inner products are those of points."""

    @abstractmethod
    def point(self, vector: FloatArray) -> Point:
        """The inverse of :meth:`vector`."""

    @abstractmethod
    def read(self, P: Any) -> Point:
        """P as a point of this cone's space, not necessarily feasible; ValueError otherwise."""

    @abstractmethod
    def describe(self) -> str:
        """The feasible set in words, for messages."""

    # ------------------------------------------------------------------- what follows from it

    def trace(self, P: Point) -> float:
        """The trace of P; one for a feasible point."""
        return inner(self.unit, P)

    @property
    def centre(self) -> Point:
        """The analytic centre of the feasible set: it prefers no direction."""
        frame = self.shares(self.identity).frame
        return self.compose(np.full(self.degree, 1.0 / self.degree), frame)

    @property
    def radius(self) -> float:
        """Largest eigenvalue, or weight, that a feasible point can have."""
        return float(np.sqrt(self.sizes.max()))

    def support(self, spectrum: Spectrum) -> float:
        """The largest ``<D, P>`` over feasible P, for the spectrum of a gradient D.

        Gradients of kernel sets lie in the cone, so a negative value is rounding.
        """
        return max(0.0, float(spectrum.values.max(initial=0.0)))

    def vertex(self, spectrum: Spectrum) -> Point:
        """A feasible P that attains the support function of D."""
        shares = np.zeros(len(spectrum.values))
        shares[np.argmax(spectrum.values)] = 1.0
        return self.compose(shares, spectrum.frame)

    def normalised(self, P: Point) -> Point:
        """P with trace one."""
        return P / self.trace(P)

    def project(self, A: Point) -> Point:
        """The feasible point nearest to A in the Frobenius norm; one eigendecomposition."""
        own = self.shares(A)
        return self.compose(project_on_simplex(own.values, self.sizes), own.frame)

    def trimmed(self, P: Point, D: Point, cost: float) -> Point:
        """P without the vertices that contribute next to nothing, with trace one.

        An interior point method leaves P with full rank where the optimum has rank one or two,
        and the cost of every kernel value grows with the rank. Vertices are dropped as long as
        what they contribute to ``wᵀK(P)w / 2``, with D = D(w), and what the others gain by taking
        over their share stay below `cost` together.
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
        """The vertex of P whose exchange for the best one gains most: its share, and itself."""
        own = self.shares(P)
        loss = own.values * (support - self.forms(D, own.frame))
        loss[own.values <= _NO_SHARE] = -np.inf
        shares = np.zeros(len(loss))
        worst = int(np.argmax(loss))
        shares[worst] = 1.0
        return float(own.values[worst]), self.compose(shares, own.frame)

    def contains(self, P: Point, rtol: float = 1e-8) -> bool:
        """Whether P is feasible, up to `rtol` times the largest possible entry."""
        try:
            given = self.read(P)
        except ValueError:
            return False
        if not np.isfinite(self.vector(given)).all():
            return False
        balanced = abs(self.trace(given) - 1.0) <= rtol
        return balanced and bool((self.shares(given).values >= -rtol).all())

    def checked(self, P: ArrayLike | Blocks | None) -> Point:
        """P as a feasible point, the centre for None; ValueError when it is not feasible."""
        if P is None:
            return self.centre
        given = self.read(P)
        if not self.contains(given):
            raise ValueError(f"The starting parameter must be {self.describe()}.")
        return given

    def interior(self, P: Point) -> Point:
        """A feasible point moved a tenth of the way to the centre."""
        return 0.9 * self.normalised(P) + 0.1 * self.centre


_NO_SHARE = 1e-12  # share of the trace below which a vertex is rounding


def project_on_simplex(values: FloatArray, sizes: FloatArray) -> FloatArray:
    """The point of ``{x >= 0, sum(x) == 1}`` nearest to `values`.

    Distances are measured by ``Σ sizes (x - values)²``. The nearest point is ``max(values - shift
    / sizes, 0)``. With the j largest entries of ``values * sizes`` positive, the sum fixes the
    shift; the right j is the largest one for which the j-th entry stays positive.
    """
    order = np.argsort(-(values * sizes), kind="stable")
    sorted_values, inverse = values[order], 1.0 / sizes[order]
    shifts = (np.cumsum(sorted_values) - 1.0) / np.cumsum(inverse)
    last = np.flatnonzero(sorted_values > shifts * inverse)[-1]
    projected: FloatArray = np.maximum(values - shifts[last] / sizes, 0.0)
    return projected
