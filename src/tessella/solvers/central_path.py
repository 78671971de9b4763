"""The saddle-point problem for the interior point method, whole or on some samples only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Self

import numpy as np
from numpy.typing import NDArray

from tessella.backend._lazy import cached_property
from tessella.cones import PSD, Cone, Face, Point, Sensitivities, inner
from tessella.kernels import BoundKernelSet, SharedKernels
from tessella.kernels._sensitivity import FactoredSensitivities, stack
from tessella.problems import SaddlePoint
from tessella.svm import (
    CentralPathProblem,
    CentralPathState,
    DualProblem,
    Halves,
    Linearisation,
    SmoothDual,
    shared_product,
    whole_matrix,
)

__all__ = [
    "HeldSamples",
    "RestrictedProblem",
    "WholeProblem",
    "inwards",
    "neutral_alpha",
    "solve_smooth",
    "state_at",
    "state_near",
]

FloatArray = NDArray[np.float64]
Rows = NDArray[np.intp]

_BEYOND_TOP = 0.02  # largest distance of ξ from the support, relative to it
_OF_ROOM = 0.9  # largest part of the room within its bounds by which a dual variable moves
_OF_BOUNDS = 0.1  # complementarity of all bounds, as a part of that of the cone


class WholeProblem(CentralPathProblem):
    """The problem in which all samples move; because Σw = 0, its kernel matrix is centred."""

    def __init__(self, problem: SaddlePoint) -> None:
        self.kernels = problem.kernels.restrict(np.arange(problem.dual.size))
        self.dual = problem.dual
        self.halves = Halves.of(problem.dual)
        self.sum_w = np.zeros(len(problem.dual.starts))
        self.cone = problem.cone
        self._rows = np.arange(problem.dual.size)

    def linearise(self, w: FloatArray, M: Point, L: Point) -> Linearisation:
        """See :meth:`CentralPathProblem.linearise`."""
        del M
        # Iterates need not satisfy Σw = 0, so the moments must be those of the centred kernel too.
        moments = self.kernels.moments(_centred(w, self.dual))
        K = self.kernels.factor_blocks(self.cone.square(L), True)
        inner_sensitivities = moments.sensitivities(None, self._rows)
        return Linearisation(
            K=K,
            sensitivities=_Centred(inner_sensitivities, self.dual),
            scores=shared_product(K, w),
            half_gradient=0.5 * moments.gradient,
        )


@dataclass(frozen=True)
class ThinProblem:
    """A problem of one machine whose kernel is given by thin matrices, for compiled steps.

    The kernel values of the samples are ``products_ij a_i·M a_j + ratio_i a_i·M l_j +
    ratio_j l_i·M a_j + box l_i·M l_j``. Sensitivities are ``sym(a_k g_kᵀ) + sym(l_k hᵀ)``.

    Attributes
    ----------
    products : ndarray of shape (f, f)
        Factors of the max-product part.
    a : ndarray of shape (f, r)
        Vectors of the max-product part.
    low : ndarray of shape (f, r)
        Vectors l of the separable part.
    ratio : ndarray of shape (f,)
        Factor that turns an entry of `a` into its moment.
    box : float
        Moment of the whole box.
    held_g : ndarray of shape (f, r)
        Part of the samples that are held in the vectors g.
    held_h : ndarray of shape (r,)
        Part of the samples that are held in the vector h.
    held_half_gradient : ndarray of shape (r, r)
        Part of the samples that are held in ½ D(w).
    total : float
        Sum of the eigenvalues of a feasible M.
    """

    products: FloatArray
    a: FloatArray
    low: FloatArray
    ratio: FloatArray
    box: float
    held_g: FloatArray
    held_h: FloatArray
    held_half_gradient: FloatArray
    total: float


@dataclass(frozen=True)
class HeldSamples:
    """What samples that are held contribute to the problem of the others.

    Attributes
    ----------
    sensitivities : Sensitivities
        Derivatives of the scores of the samples that move.
    half_gradient : Point
        ½ D(w) of the samples that are held, in coordinates of the face.
    sum_w : ndarray of shape (n_machines,)
        Sum that the dual variables of the samples that move have in each machine.
    """

    sensitivities: Sensitivities
    half_gradient: Point
    sum_w: FloatArray

    @classmethod
    def of(cls, problem: SaddlePoint, rows: Rows, w: FloatArray, face: Face) -> HeldSamples:
        """Return what all samples but `rows` contribute."""
        held = w.copy()
        held[rows] = 0.0
        moving = np.unique(problem.dual.machine_of[rows])
        point = problem.kernels.moments(held)
        return cls(
            sensitivities=point.sensitivities(face, rows),
            half_gradient=0.5 * point.face_gradient(face),
            sum_w=-problem.dual.sums(held)[moving],
        )

    @classmethod
    def stacked(cls, parts: Sequence[HeldSamples]) -> HeldSamples:
        """Return the contributions to several sets of machines, one after the other."""
        return cls(
            sensitivities=stack([part.sensitivities for part in parts]),
            half_gradient=reduce(add, (part.half_gradient for part in parts)),
            sum_w=np.concatenate([part.sum_w for part in parts]),
        )


class RestrictedProblem(CentralPathProblem):
    """The problem in which some samples move and the parameter moves within a face.

    The samples that are held enter only through their moments. Their contribution to the scores
    is linear in the parameter, and their contribution to D(w) is linear in the samples that move,
    plus a constant.

    Parameters
    ----------
    problem : SaddlePoint
        The whole problem.
    rows : ndarray of int
        Positions of the samples that move.
    w : ndarray of shape (m,)
        Dual vector of all samples, whose values outside `rows` are held.
    face : Face, optional
        Face of the cone in which the parameter moves. None, the default, is the whole cone.
    """

    def __init__(self, problem: SaddlePoint, rows: Rows, w: FloatArray, face: Face = None) -> None:
        self._assemble(
            problem.dual.restrict(rows),
            problem.kernels.restrict(rows, face),
            problem.cone.face(face),
            HeldSamples.of(problem, rows, w, face),
        )

    @classmethod
    def of_parts(
        cls,
        dual: DualProblem,
        kernels: BoundKernelSet,
        cone: Cone,
        held: Sequence[HeldSamples],
    ) -> RestrictedProblem:
        """Return the problem of samples of several parts, each with samples that it holds.

        Parameters
        ----------
        dual : DualProblem
            The samples that move, part after part.
        kernels : BoundKernelSet
            The kernel set on these samples, restricted to the face.
        cone : Cone
            Cone of the face.
        held : sequence of HeldSamples
            What the other samples of each part contribute.
        """
        problem = cls.__new__(cls)
        problem._assemble(dual, kernels, cone, HeldSamples.stacked(held))
        return problem

    def _assemble(
        self, dual: DualProblem, kernels: BoundKernelSet, cone: Cone, held: HeldSamples
    ) -> None:
        self.dual, self.halves, self.cone = dual, Halves.of(dual), cone
        self._kernels = kernels
        self._all = np.arange(dual.size)
        self.sum_w = held.sum_w
        self._held = held.sensitivities
        self._held_half_gradient = held.half_gradient

    @cached_property
    def thin(self) -> ThinProblem | None:
        """The arrays of a problem of one machine with a thin form; None for other problems."""
        rows, held, cone = self._kernels.thin_rows(), self._held, self.cone
        if rows is None or not isinstance(held, FactoredSensitivities) or not isinstance(cone, PSD):
            return None
        vectors = held.rowwise()
        return ThinProblem(
            products=rows.products,
            a=vectors.a,
            low=vectors.low,
            ratio=rows.ratio,
            box=rows.box,
            held_g=vectors.g,
            held_h=vectors.h[0],
            held_half_gradient=self._held_half_gradient,
            total=cone.total,
        )

    def start_values(self, w: FloatArray, M: Point) -> tuple[FloatArray, Point]:
        """Return the scores and ½ D(w) of :meth:`linearise`, if possible without a kernel matrix.

        The moments of several machines or of a dictionary take longer than their matrices.
        """
        if len(self.dual.starts) > 1 or not isinstance(self.cone, PSD):
            here = self.linearise(w, M, self.cone.factor(M))
            return here.scores, here.half_gradient
        moments = self._kernels.moments(w)
        half_gradient = 0.5 * moments.gradient + self._held.adjoint(w)
        scores = moments.scores(M) + self._held.apply(M)
        return scores, half_gradient + self._held_half_gradient

    def linearise(self, w: FloatArray, M: Point, L: Point) -> Linearisation:
        """See :meth:`CentralPathProblem.linearise`."""
        moments = self._kernels.moments(w)
        K = self._kernels.factor_blocks(self.cone.square(L), False)
        moving = moments.sensitivities(None, self._all)
        half_gradient = 0.5 * moments.gradient + self._held.adjoint(w)
        return Linearisation(
            K=K,
            sensitivities=moving.plus(self._held),
            scores=shared_product(K, w) + self._held.apply(M),
            half_gradient=half_gradient + self._held_half_gradient,
        )


class _Centred(Sensitivities):
    """Sensitivities of scores centred machine by machine, to go with a centred kernel matrix."""

    def __init__(self, inner: Sensitivities, dual: DualProblem) -> None:
        self._inner = inner
        self._dual = dual

    def _centred(self, values: FloatArray) -> FloatArray:
        return _centred(values, self._dual)

    def apply(self, M: Point) -> FloatArray:
        return self._centred(self._inner.apply(M))

    def adjoint(self, v: FloatArray) -> Point:
        return self._inner.adjoint(self._centred(v))

    def gram(self) -> FloatArray | None:
        G = self._inner.gram()
        if G is None:
            return None
        if len(self._dual.starts) > 1:
            return self._centred(self._centred(G).T)
        means = G.mean(axis=0)
        G -= means
        G -= (means - means.mean())[:, None]
        return G

    def transformed(self, F: Point) -> Self:
        return type(self)(self._inner.transformed(F), self._dual)

    def plus(self, other: Self) -> Self:
        return type(self)(self._inner.plus(other._inner), self._dual)

    def matrix(self) -> FloatArray:
        return self._centred(self._inner.matrix())

    def columns(self) -> FloatArray | None:
        columns = self._inner.columns()
        return None if columns is None else self._centred(columns)


def _centred(values: FloatArray, dual: DualProblem) -> FloatArray:
    """Return values, or rows of values, minus their mean within each machine."""
    counts = dual.sums(np.ones(dual.size))
    means = np.add.reduceat(values, dual.starts, axis=0).T / counts
    result: FloatArray = values - means.T[dual.machine_of]
    return result


def solve_smooth(kernels: BoundKernelSet, dual: DualProblem, P: Point) -> list[SmoothDual]:
    """Solve machines with a smooth loss for a feasible parameter, by linear systems.

    Machines that share their rows are one entry of the list, with one factorisation, and other
    machines are an entry each. The entries have the order of the dual vector.
    """
    shared = isinstance(kernels, SharedKernels)
    parts = [dual] if shared else dual.each
    factors = kernels.cone.positive_factors(P)
    return [
        SmoothDual(whole_matrix(part.factor_gram(factors, True, None), 1), own)
        for part, own in zip(kernels.machines[: len(parts)], parts, strict=True)
    ]


def state_near(
    problem: CentralPathProblem, M: Point, alpha: FloatArray
) -> tuple[CentralPathState, float]:
    """Return an iterate with the given interior M and α, and the scale of the scores."""
    halves, cone = problem.halves, problem.cone
    bounded = halves.bounded
    here = problem.linearise(halves.join(alpha), M, cone.factor(M))
    middle = np.array([np.median(here.scores[rows]) for rows in problem.dual.machines])
    spread = float(np.abs(here.scores - middle[problem.dual.machine_of]).max())
    scale = max(float(np.abs(problem.dual.linear).max()), spread, 1e-12)
    top = cone.support(cone.spectrum(here.half_gradient))
    highest = float(alpha.max(where=bounded, initial=0.0))
    even = highest * scale * len(alpha) / inner(cone.unit, cone.identity)
    xi = max(1.1 * top, even, 1e-12)
    state = CentralPathState(
        alpha=alpha,
        M=M,
        zl=np.where(bounded, scale, 0.0),
        zu=np.where(bounded, scale * highest / halves.above(alpha), 0.0),
        S=xi * cone.unit - here.half_gradient,
        nu=-middle,
        xi=xi,
    )
    return state, scale


def state_at(
    problem: RestrictedProblem, M: Point, w: FloatArray, residual: FloatArray, gap: float
) -> tuple[CentralPathState, float]:
    """Return an iterate at the answer of machines, and the scale of the scores.

    Its complementarity has the size of the gap that is left, so that the iteration does not lose
    what is known. :func:`state_near` starts from far inside instead.

    Parameters
    ----------
    problem : RestrictedProblem
        Problem to solve.
    M : Point
        Parameter from the interior of the cone.
    w : ndarray of shape (f,)
        Dual vector of the samples that move.
    residual : ndarray of shape (f,)
        Targets minus predictions of machines whose dual vector is near w.
    gap : float
        Relative gap that is left.
    """
    halves, cone, dual = problem.halves, problem.cone, problem.dual
    scores, half_gradient = problem.start_values(w, M)
    offsets = dual.linear - residual - scores
    nu = np.array([np.median(offsets[rows]) for rows in dual.machines])
    scale = max(float(np.abs(dual.linear).max()), float(np.abs(scores).max()), 1e-12)
    top = cone.support(cone.spectrum(half_gradient))
    xi = max((1.0 + min(_BEYOND_TOP, gap)) * top, 1e-12)
    left = xi - inner(half_gradient, M)  # complementarity of the cone
    mu = _OF_BOUNDS * left / max(halves.n_bounds, 1)
    # A part that is at a bound has the distance that goes with its multiplier.
    slope = halves.sign * (scores + nu[dual.machine_of])[halves.sample] - halves.cost
    given = halves.given(w)
    least = np.minimum(mu / np.maximum(np.abs(slope), 0.1 * scale), 0.1 * halves.upper)
    inside = np.clip(given, least, halves.upper - least, where=halves.bounded, out=given.copy())
    inside = _balanced(inside, given, least, halves, dual)
    state = CentralPathState(
        alpha=inside,
        M=M,
        zl=np.where(halves.bounded, mu / halves.below(inside), 0.0),
        zu=np.where(halves.bounded, mu / halves.above(inside), 0.0),
        S=xi * cone.unit - half_gradient,
        nu=nu,
        xi=xi,
    )
    return state, scale


def _balanced(
    inside: FloatArray, given: FloatArray, least: FloatArray, halves: Halves, dual: DualProblem
) -> FloatArray:
    """Return parts that are inside their bounds, with the sums of the dual vector as given.

    Those between their bounds move, if they have the room.

    A kernel that is not centred has a large constant part. With another sum, it would change the
    scores by far more than their residuals, and the iteration would take many steps to return.

    Parameters
    ----------
    inside : ndarray of shape (N,)
        Parts, at least `least` away from their bounds.
    given : ndarray of shape (N,)
        Parts with the sums to keep.
    least : ndarray of shape (N,)
        Distance from the bounds that the parts keep.
    halves : Halves
        The parts of the dual vector.
    dual : DualProblem
        The machines, each with a sum of its own.
    """
    machine, count = dual.machine_of[halves.sample], len(dual.starts)
    change = np.bincount(machine, halves.sign * (inside - given), minlength=count)
    # Parts at a bound stay there, where their distance belongs to their multiplier.
    room = np.where(halves.bounded, np.minimum(inside, halves.upper - inside) - least, 0.0)
    total = np.bincount(machine, room, minlength=count)
    share = np.clip(change / np.maximum(total, 1e-300), -_OF_ROOM, _OF_ROOM)
    balanced: FloatArray = inside - halves.sign * share[machine] * room
    return balanced


def inwards(halves: Halves, w: FloatArray) -> FloatArray:
    """Return the halves of w, moved a twentieth of the way into their box if they have one."""
    given = halves.given(w)
    return np.where(halves.bounded, 0.9 * given + 0.05 * halves.upper, given)


def neutral_alpha(problem: WholeProblem, M: Point) -> FloatArray:
    """Return halves to start from if only M is given.

    Samples with two halves start in the middle of their box, where w is zero. With one half per
    sample w cannot be zero, and the middle of the box is far too large if C is nearly that of a
    hard margin. The start is then the maximiser of the dual along a balanced ray. Without bounds
    the start is the solution for M, which is that of a linear system.
    """
    dual, halves = problem.dual, problem.halves
    if dual.is_smooth:
        return np.concatenate([own.w for own in solve_smooth(problem.kernels, dual, M)])
    if len(halves.sample) > halves.size:
        return 0.5 * halves.upper
    ray = dual.feasible(np.where(dual.linear > 0, dual.upper, dual.lower))
    box = float(np.abs(ray).max())
    ray = ray / box
    energy = inner(problem.kernels.moments(ray).gradient, M)
    peak = float(np.abs(ray).sum()) / max(1e-300, energy)
    cap = min(0.5 * box, np.sqrt(0.5 * box * peak), 100.0 * peak)
    alpha: FloatArray = np.maximum(np.abs(ray[halves.sample]), 1e-3) * cap
    return np.minimum(alpha, 0.9 * halves.upper)
