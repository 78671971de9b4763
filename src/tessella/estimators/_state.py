"""The fitted state: everything that a fit gives to its estimator, built and assigned at once."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tessella.estimators._layouts import given_to_support
from tessella.estimators._leaf_model import FittedLeaves
from tessella.estimators._prediction import PredictorCache
from tessella.estimators._problem import TrainingProblem
from tessella.estimators._relevance import LAZY_ATTRIBUTES, representative_rows
from tessella.kernels import KernelSet, LearnedKernel
from tessella.solvers import IterationRecord, Round, SolverResult, SolverStatus
from tessella.svm import relative_gap

FloatArray = NDArray[np.float64]
History = tuple[IterationRecord, ...]

SAMPLE_SIZE = 256  # rows of the larger relevance table

# scikit-learn reads a meaning into the presence of these, so None means that they are absent.
_OPTIONAL = ("classes_", "feature_names_in_", "epsilon_", "leaves_", "rounds_")

# Private attributes that belong to one fit but are not part of its result.
_TRANSIENT = ("_predictor_cache", "_start_kernel", "_fit_rows")


@dataclass(frozen=True)
class FittedState:
    """The fitted attributes of an estimator, under the names that they have there.

    The public ones are described in :class:`LearnedKernelSVC`. With a kernel for each pair of
    classes, ``kernel_``, ``parameter_``, ``history_`` and ``validation_scores_`` are lists.

    Attributes
    ----------
    _n_rows : int
        Number of rows of the training data as given.
    _target_scale : float
        Standard deviation of the target, by which ``dual_coef_`` is multiplied.
    _w_bound : ndarray of shape (n_machines, _n_rows) or None
        Coefficients that prove ``lower_bound_``, for the standardised target and in the layout of
        the data as given. None if ``dual_coef_`` proves it.
    _sample_rows : ndarray of shape (at most 256, n_features)
        Training rows from which the relevance of features is computed.
    _training_range : ndarray of shape (2, n_features)
        Smallest and largest value of each feature in the rows that the model was learned from.
    """

    n_features_in_: int
    feature_names_in_: NDArray[Any] | None
    classes_: NDArray[Any] | None
    epsilon_: float | None
    kernel_: LearnedKernel | list[LearnedKernel]
    parameter_: Any
    support_: NDArray[np.intp]
    support_vectors_: FloatArray
    dual_coef_: FloatArray
    intercept_: FloatArray
    n_iter_: int
    objective_: float
    lower_bound_: float
    gap_: float
    history_: History | list[History]
    status_: str
    solver_: str
    validation_scores_: FloatArray | list[FloatArray | None] | None
    leaves_: FittedLeaves | None
    _n_rows: int
    _target_scale: float
    _w_bound: FloatArray | None
    _sample_rows: FloatArray
    _training_range: FloatArray
    rounds_: tuple[Round, ...] | None = None

    def attributes(self) -> dict[str, Any]:
        """The attributes by name, without those that this model does not have."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {k: v for k, v in values.items() if v is not None or k not in _OPTIONAL}

    def assign_to(self, estimator: Any) -> None:
        """Replace whatever an earlier fit has left in an estimator, in one assignment."""
        others = {k: v for k, v in vars(estimator).items() if k not in _NAMES_OF_A_FIT}
        estimator.__dict__ = others | self.attributes() | {"_predictor_cache": PredictorCache()}

    def fitted_copy(self, estimator: Any) -> Any:
        """A copy of the estimator that has this state, as if it had been fitted."""
        model = copy(estimator)
        self.assign_to(model)
        return model


_NAMES_OF_A_FIT = {f.name for f in fields(FittedState)} | {*LAZY_ATTRIBUTES, *_TRANSIENT}


def fitted_state(
    problem: TrainingProblem, kernels: KernelSet, scores: Sequence[float], result: SolverResult
) -> FittedState:
    """The fitted state that follows from the result of a solver.

    Parameters
    ----------
    problem : TrainingProblem
        What was solved.
    kernels : KernelSet
        The kernel set as it was bound, with nothing left that depends on the training rows.
    scores : sequence of float
        Scores on the validation rows so far.
    result : SolverResult
        The answer.
    """
    kernel = LearnedKernel(kernels, result.parameter, problem.box)
    # Whoever wants to check the certificate again, or to resume the fit, needs what proves it.
    proved = np.array_equal(result.w, result.w_bound)
    return FittedState(
        kernel_=kernel,
        parameter_=kernel.parameter,
        **_common(problem, problem.target_scale * problem.layouts.stacked_to_given(result.w)),
        intercept_=problem.target_scale * result.intercept + problem.target_mean,
        n_iter_=result.n_iter,
        objective_=result.value,
        lower_bound_=result.bound,
        gap_=result.gap,
        history_=result.history,
        status_=result.status.value,
        solver_=result.solver,
        validation_scores_=None if problem.validation_set is None else np.array(scores),
        _w_bound=None if proved else problem.layouts.stacked_to_given(result.w_bound),
    )


def _common(problem: TrainingProblem, coefficients: FloatArray) -> dict[str, Any]:
    """The attributes that follow from a problem and its coefficients on the rows as given."""
    support, dual_coef = given_to_support(coefficients)
    return {
        "n_features_in_": problem.rows.X.shape[1],
        "feature_names_in_": problem.feature_names,
        "classes_": problem.classes,
        "epsilon_": problem.epsilon,
        "support_": support,
        "support_vectors_": problem.rows.X[problem.layouts.merged_rows(support)],
        "dual_coef_": dual_coef,
        "leaves_": None,
        "_n_rows": problem.n_given,
        "_target_scale": problem.target_scale,
        "_sample_rows": representative_rows(problem.rows, SAMPLE_SIZE),
        "_training_range": np.array([problem.rows.X.min(axis=0), problem.rows.X.max(axis=0)]),
    }


def combined_state(
    problem: TrainingProblem,
    parts: Sequence[FittedState],
    coefficients: FloatArray,
    w_bound: FloatArray | None,
) -> FittedState:
    """The states of machines that were solved one by one, as the state of one model.

    Parameters
    ----------
    problem : TrainingProblem
        The problem of all machines.
    parts : sequence of FittedState
        The state of each machine.
    coefficients, w_bound : ndarray of shape (n_machines, n_given)
        Coefficients of all machines, and those that prove the bounds, on the rows as given.
    """
    # The problems are independent of each other, so their values and their bounds add up.
    value = sum(part.objective_ for part in parts)
    bound = sum(part.lower_bound_ for part in parts)
    validated = problem.validation_set is not None
    return FittedState(
        kernel_=[part.kernel_ for part in parts],  # type: ignore[misc]
        parameter_=[part.parameter_ for part in parts],
        **_common(problem, coefficients),
        intercept_=np.concatenate([part.intercept_ for part in parts]),
        n_iter_=sum(part.n_iter_ for part in parts),
        objective_=value,
        lower_bound_=bound,
        gap_=relative_gap(value, bound),
        history_=[part.history_ for part in parts],  # type: ignore[misc]
        status_=_overall_status([part.status_ for part in parts]),
        solver_=parts[0].solver_,
        validation_scores_=[part.validation_scores_ for part in parts] if validated else None,  # type: ignore[misc]
        _w_bound=w_bound,
    )


def _overall_status(statuses: Sequence[str]) -> str:
    """Why the fit as a whole is not better: an interrupt, or else the first shortfall."""
    optimal, interrupted = SolverStatus.OPTIMAL.value, SolverStatus.INTERRUPTED.value
    short = [status for status in statuses if status != optimal]
    if interrupted in short:
        return interrupted
    return short[0] if short else optimal
