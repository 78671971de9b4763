"""Losses against slow definitions, and a loss that the package does not know."""

from __future__ import annotations

import pickle
from dataclasses import FrozenInstanceError, dataclass, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from tessella.kernels import TessellatedKernels
from tessella.problems import SaddlePoint
from tessella.svm import (
    DualProblem,
    Halves,
    HingeLoss,
    PiecewiseLinearLoss,
    SquaredLoss,
    TubeLoss,
    best_intercept,
    best_intercepts,
    solve_dual,
)


@dataclass(frozen=True)
class OwnSquaredLoss:
    """``weight * (target - score)**2 / 2``: no bounds, and a conjugate with curvature."""

    target: np.ndarray
    weight: np.ndarray

    epsilon = property(lambda self: np.zeros(len(self.target)))
    lower = property(lambda self: np.full(len(self.target), -np.inf))
    upper = property(lambda self: np.full(len(self.target), np.inf))
    curvature = property(lambda self: 1.0 / self.weight)

    def values(self, residual):
        return 0.5 * self.weight * residual**2

    def conjugate(self, w):
        return 0.5 * float(self.curvature @ w**2)

    def best_intercept(self, residual):
        return float(np.average(residual, weights=self.weight))

    def restrict(self, rows, factor):
        return OwnSquaredLoss(self.target[rows], factor * self.weight[rows])

    def with_target(self, target):
        return replace(self, target=target)


RNG = np.random.default_rng(0)
SIGNS = np.where(np.arange(12) % 3 == 0, 1.0, -1.0)
WEIGHT = RNG.uniform(0.2, 3.0, 12)
LOSSES = {
    "hinge": HingeLoss(SIGNS, WEIGHT),
    "tube": TubeLoss(RNG.standard_normal(12), WEIGHT, 0.3),
    "tube without width": TubeLoss(RNG.standard_normal(12), WEIGHT, 0.0),
    "two slopes": PiecewiseLinearLoss(
        RNG.standard_normal(12), RNG.random(12), -RNG.random(12), WEIGHT
    ),
    "squared": SquaredLoss(RNG.standard_normal(12), WEIGHT),
    "own squared": OwnSquaredLoss(RNG.standard_normal(12), WEIGHT),
}


@pytest.fixture(params=LOSSES)
def loss(request):
    return LOSSES[request.param]


@pytest.fixture
def rng():
    return np.random.default_rng(1)


def samples(loss):
    """The loss of each sample by itself."""
    return [loss.restrict(np.array([k]), np.ones(1)) for k in range(len(loss.target))]


def values(loss, residuals):
    """The loss of one sample at many residuals."""
    return np.array([loss.values(np.array([r])).sum() for r in residuals])


# ---- each loss by its definition


def test_hinge_loss_by_its_definition(rng):
    loss, scores = LOSSES["hinge"], 3 * rng.standard_normal(12)
    expected = WEIGHT @ np.maximum(0.0, 1.0 - SIGNS * scores)
    assert loss.values(loss.target - scores).sum() == pytest.approx(expected, rel=1e-14)


def test_tube_loss_by_its_definition(rng):
    loss, scores = LOSSES["tube"], 3 * rng.standard_normal(12)
    expected = WEIGHT @ np.maximum(0.0, np.abs(loss.target - scores) - 0.3)
    assert loss.values(loss.target - scores).sum() == pytest.approx(expected, rel=1e-14)


def test_conjugate_is_the_largest_value_over_residuals(loss):
    for one in samples(loss):
        # The kinks are on the grid, and between the bounds the maximum is not far out.
        residuals = np.concatenate([np.linspace(-8.0, 8.0, 1601), one.epsilon, -one.epsilon])
        penalties = values(one, residuals)
        low, high = np.maximum(one.lower, -1.5), np.minimum(one.upper, 1.5)
        for share in (0.1, 0.5, 0.9):
            w = (1.0 - share) * low + share * high
            largest = float((w * residuals - penalties).max())
            assert largest - 1e-12 <= one.conjugate(w) <= largest + 1e-4


def test_conjugate_is_made_of_epsilon_and_curvature(loss, rng):
    w = np.clip(rng.standard_normal(12), loss.lower, loss.upper)
    expected = (loss.epsilon * np.abs(w) + 0.5 * loss.curvature * w**2).sum()
    assert loss.conjugate(w) == pytest.approx(expected, rel=1e-14)


def test_bounds_are_the_slopes_far_from_zero(loss):
    far = 1e6
    for one in samples(loss):
        rise, fall = values(one, [far + 1.0, -far]) - values(one, [far, -far - 1.0])
        for slope, bound in ((rise, one.upper[0]), (fall, one.lower[0])):
            if np.isinf(bound):
                assert slope * np.sign(bound) > 1e5
            else:
                assert slope == pytest.approx(bound, abs=1e-6)


@settings(max_examples=40, deadline=None)
@given(name=st.sampled_from(sorted(LOSSES)), r=st.floats(-5, 5), share=st.floats(0, 1))
def test_fenchel_young(name, r, share):
    """The loss plus its conjugate is at least the product, and equal at the slope of the loss."""
    for one in samples(LOSSES[name]):
        residual, step = np.array([r]), 1e-6
        low, high = np.maximum(one.lower, -9.0), np.minimum(one.upper, 9.0)
        w = (1.0 - share) * low + share * high
        assert one.values(residual).sum() + one.conjugate(w) >= float(w @ residual) - 1e-12
        before, after = values(one, [r - step, r + step])
        slope = np.clip((after - before) / (2 * step), one.lower, one.upper)
        total = one.values(residual).sum() + one.conjugate(slope)
        # At a kink the central difference lies between the slopes, and so it is one of them.
        assert total == pytest.approx(float(slope @ residual), abs=1e-4)


def test_best_intercept_against_a_grid_and_a_generic_minimiser(loss, rng):
    for _ in range(10):
        residual = 2.0 * rng.standard_normal(12)
        found = loss.best_intercept(residual)
        smallest = loss.values(residual - found).sum()
        assert (
            smallest
            <= min(loss.values(residual - b).sum() for b in np.linspace(-6, 6, 4001)) + 1e-12
        )
        generic = minimize_scalar(lambda b: loss.values(residual - b).sum(), bounds=(-9, 9))  # noqa: B023
        assert smallest == pytest.approx(generic.fun, abs=1e-4)
        assert smallest <= generic.fun + 1e-12


def test_restriction_is_the_weighted_loss_of_some_samples(loss, rng):
    rows, factor = np.array([7, 2, 2, 11]), np.array([0.5, 1.0, 3.0, 2.0])
    part, residual = loss.restrict(rows, factor), rng.standard_normal(4)
    expected = sum(
        f * samples(loss)[k].values(np.array([r])).sum()
        for f, k, r in zip(factor, rows, residual, strict=True)
    )
    assert part.values(residual).sum() == pytest.approx(expected, rel=1e-13)
    assert (part.target == loss.target[rows]).all()


def test_other_targets_leave_the_loss_of_residuals_alone(loss, rng):
    other, residual = loss.with_target(np.arange(12.0)), rng.standard_normal(12)
    assert (other.target == np.arange(12.0)).all()
    assert other.values(residual).sum() == loss.values(residual).sum()


# ---- the dual problem delegates to its losses


def test_dual_problem_of_any_loss(loss, rng):
    dual, scores = DualProblem(loss), rng.standard_normal(12)
    w = dual.feasible(rng.standard_normal(12))
    assert dual.kappa(w) == pytest.approx(loss.target @ w - loss.conjugate(w), rel=1e-13)
    (intercept,), value = dual.primal_loss(scores)
    assert intercept == loss.best_intercept(loss.target - scores)
    assert value == loss.values(loss.target - scores - intercept).sum()
    for name in ("epsilon", "lower", "upper", "curvature"):
        assert (getattr(dual, name) == getattr(loss, name)).all()
    assert (dual.linear == loss.target).all()


def test_stacked_problem_is_the_sum_of_its_machines(rng):
    machines = [DualProblem(loss) for loss in LOSSES.values()]
    stack, scores = DualProblem.stacked(machines), rng.standard_normal(12 * len(LOSSES))
    assert stack.starts.tolist() == [12 * k for k in range(len(LOSSES))]
    w = stack.feasible(rng.standard_normal(stack.size))
    parts = [(m, w[rows], scores[rows]) for m, rows in zip(machines, stack.machines, strict=True)]
    assert stack.kappa(w) == pytest.approx(sum(m.kappa(v) for m, v, _ in parts), rel=1e-13)
    intercepts, value = best_intercepts(stack, scores)
    alone = [best_intercept(m, s) for m, _, s in parts]
    assert intercepts.tolist() == [b for b, _ in alone]
    assert value == pytest.approx(sum(v for _, v in alone), rel=1e-13)
    with pytest.raises(ValueError, match="6 machines; use best_intercepts"):
        best_intercept(stack, scores)


def test_restriction_of_a_stack_leaves_out_machines_without_samples():
    stack = DualProblem(LOSSES["hinge"], LOSSES["tube"], LOSSES["squared"])
    rows, factor = np.array([1, 4, 30, 35]), np.array([1.0, 2.0, 3.0, 4.0])
    part = stack.restrict(rows, factor)
    assert part.starts.tolist() == [0, 2]
    assert (part.linear == stack.linear[rows]).all()
    assert (part.upper[:2] == factor[:2] * stack.upper[rows[:2]]).all()
    assert part.curvature[2:] == pytest.approx(stack.curvature[rows[2:]] / factor[2:])
    with pytest.raises(ValueError, match="ascending order"):
        stack.restrict(rows[::-1])
    with pytest.raises(ValueError, match="at least one sample"):
        stack.restrict(rows[:0])


@settings(max_examples=60, deadline=None)
@given(name=st.sampled_from(sorted(LOSSES)), seed=st.integers(0, 1000), scale=st.floats(0.01, 100))
def test_feasible_points_have_a_zero_sum_within_the_bounds(name, seed, scale):
    dual = DualProblem(LOSSES[name])
    given_w = scale * np.random.default_rng(seed).standard_normal(12)
    w = dual.feasible(given_w)
    assert np.isfinite(w).all()
    assert (w >= dual.lower).all()
    assert (w <= dual.upper).all()
    assert abs(w.sum()) <= 1e-13 * max(np.abs(w).sum(), np.abs(given_w).sum())
    np.testing.assert_allclose(dual.feasible(w), w, rtol=0, atol=1e-12 * np.abs(w).max())


def test_feasible_point_without_bounds_is_the_nearest_one(rng):
    dual, w = DualProblem(LOSSES["squared"]), rng.standard_normal(12)
    np.testing.assert_allclose(dual.feasible(w), w - w.mean(), atol=1e-14)


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 0.3, 0.49, 0.51, 0.7, 3.0])
@pytest.mark.parametrize("spread", [1.0, -1.0])
def test_kappa_rises_if_some_pair_of_samples_raises_it(epsilon, spread):
    """Targets that differ by one need a tube of half that width to be left alone."""
    constant = DualProblem.regression(np.full(3, 4.0), C=1.0, epsilon=epsilon + 0.01)
    other = DualProblem.regression(spread * np.array([-0.5, 0.1, 0.5]), C=2.0, epsilon=epsilon)
    classes = [DualProblem.classification(labels, C=1.0) for labels in ([1, 1], [-1, -1], [1, -1])]
    for dual in (constant, other, *classes, DualProblem.stacked([constant, other])):
        assert dual.kappa_rises() == pair_raises_kappa(dual)


def pair_raises_kappa(dual):
    step = 1e-6 * np.eye(dual.size)
    pairs = [
        step[i] - step[j]
        for i in range(dual.size)
        for j in range(dual.size)
        if dual.machine_of[i] == dual.machine_of[j]
    ]
    feasible = [w for w in pairs if (w <= dual.upper).all() and (w >= dual.lower).all()]
    return any(dual.kappa(w) > 1e-12 for w in feasible)


def test_losses_survive_pickling():
    for loss in (LOSSES["hinge"], LOSSES["tube"], LOSSES["two slopes"]):
        dual = pickle.loads(pickle.dumps(DualProblem(loss)))
        assert type(dual.losses[0]) is type(loss)
        assert (dual.upper == loss.upper).all()


# ---- a loss that the package does not know


@pytest.mark.parametrize("C", [0.1, 10.0, 1e4])
def test_certificate_of_the_squared_loss_is_tight_at_its_linear_system(C):
    """With K = K(I) the optimum solves (K + diag(1/(C s))) w + b = y and sum(w) = 0."""
    rng = np.random.default_rng(1)
    X, y, s = rng.random((40, 2)), rng.standard_normal(40), rng.uniform(0.5, 2.0, 40)
    kernels = TessellatedKernels(1, 0.3).bind(X)
    identity = np.eye(kernels.n_params)
    system = np.ones((41, 41))
    system[:40, :40] = kernels.gram(identity) + np.diag(1.0 / (C * s))
    system[40, 40] = 0.0
    *w, b = np.linalg.solve(system, np.append(y, 0.0))
    problem = SaddlePoint(kernels, DualProblem(SquaredLoss(y, C * s)))
    point = problem.at(w)
    certificate = point.certificate(identity)
    assert certificate.upper == pytest.approx(point.dual_value(identity), rel=1e-10)
    assert certificate.intercept[0] == pytest.approx(b, rel=1e-8)
    assert certificate.lower <= certificate.upper
    # Any other vector proves less.
    other = problem.at(np.asarray(w) + 0.1 * np.abs(w).max() * rng.standard_normal(40))
    assert other.dual_value(identity) < point.dual_value(identity)
    assert other.certificate(identity).upper > certificate.upper


@pytest.mark.parametrize("name", ["squared", "own squared"])
def test_the_squared_loss_needs_no_bounds(name):
    dual = DualProblem(LOSSES[name])
    assert not dual.is_boxed
    assert dual.is_smooth
    assert not DualProblem(LOSSES["hinge"]).is_smooth
    halves = Halves.of(dual)
    assert not halves.bounded.any()
    assert halves.n_bounds == 0
    w = np.linspace(-2.0, 5.0, 12)
    np.testing.assert_array_equal(halves.join(halves.given(w)), w)
    np.testing.assert_array_equal(halves.settled(w, 0.0 * w, 0.0 * w), w)
    np.testing.assert_array_equal(halves.above(w), np.ones(12))


def test_a_squared_loss_needs_positive_weights():
    with pytest.raises(ValueError, match="C must be positive"):
        SquaredLoss([1.0, 2.0], [1.0, 0.0])
    with pytest.raises(ValueError, match="target contains a NaN"):
        SquaredLoss([1.0, np.nan], 1.0)


def test_solvers_of_bounded_losses_refuse_curvature_within_bounds():
    class Huber(OwnSquaredLoss):
        lower = property(lambda self: -self.weight)
        upper = property(lambda self: self.weight)

    dual = DualProblem(Huber(LOSSES["squared"].target, WEIGHT))
    with pytest.raises(ValueError, match="got Huber"):
        solve_dual(np.eye(12), dual)
    with pytest.raises(ValueError, match="got Huber"):
        Halves.of(dual)


# ---- bad input


def test_bad_losses():
    fine = np.ones(3)
    with pytest.raises(ValueError, match="at least one sample"):
        DualProblem()
    with pytest.raises(ValueError, match=r"upper has shape \(2,\), expected \(3,\)"):
        DualProblem(PiecewiseLinearLoss(fine, fine, -fine, fine[:2]))
    with pytest.raises(ValueError, match="upper contains a NaN or an infinity"):
        PiecewiseLinearLoss(fine, fine, -fine, np.inf * fine)
    with pytest.raises(ValueError, match="lower must not be positive"):
        DualProblem(PiecewiseLinearLoss(fine, fine, fine, fine))
    with pytest.raises(ValueError, match="upper must not be negative"):
        DualProblem(PiecewiseLinearLoss(fine, fine, -fine, -fine))
    with pytest.raises(ValueError, match="curvature must not be negative"):
        DualProblem(OwnSquaredLoss(fine, -fine))
    with pytest.raises(ValueError, match="target contains a NaN"):
        DualProblem(OwnSquaredLoss(np.nan * fine, fine))
    with pytest.raises(ValueError, match="C must be finite"):
        HingeLoss([1.0, -1.0], np.inf)


@pytest.mark.parametrize(
    "loss", [HingeLoss([-1, 1], 2.0), TubeLoss([0.0, 1.0], 2.0, 0.1), SquaredLoss([0.0, 1.0], 2.0)]
)
def test_losses_cannot_be_changed(loss):
    """Problems keep what they have computed from their losses."""
    with pytest.raises(FrozenInstanceError):
        loss.target = np.zeros(2)
    with pytest.raises(ValueError, match="read-only"):
        loss.target[0] = 3.0
    if isinstance(loss, SquaredLoss):
        with pytest.raises(ValueError, match="read-only"):
            loss.C[0] = 3.0


def test_a_loss_with_one_bound_is_not_smooth():
    @dataclass(frozen=True)
    class OneSided(OwnSquaredLoss):
        @property
        def upper(self):
            return np.full(len(self.target), 5.0)

    target = np.array([0.0, 1.0, 3.0])
    assert DualProblem(OwnSquaredLoss(target, np.ones(3))).is_smooth
    assert not DualProblem(OneSided(target, np.ones(3))).is_smooth


def test_a_smooth_dual_takes_no_pair_steps():
    answer = solve_dual(np.eye(3), DualProblem.ridge([0.0, 1.0, 5.0], 2.0))
    assert (answer.n_iter, answer.n_newton) == (0, 1)


def test_distance_to_the_nearest_kink():
    """The kinks of a tube are at both of its ends; a sample of weight zero has none to reach."""
    tube = DualProblem(TubeLoss([0.0, 0.0, 0.0], [1.0, 1.0, 0.0], 0.1))
    np.testing.assert_allclose(
        tube.distance_to_kink(np.array([0.3, -0.15, 0.1])), [0.2, 0.05, np.inf]
    )
    hinge = DualProblem.classification([1.0, -1.0], 1.0)
    np.testing.assert_allclose(hinge.distance_to_kink(np.array([-0.4, -0.3])), [0.4, 0.3])
