"""The training problem: what a fit makes of its data before a solver starts."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tessella.backend._lazy import cached_property
from tessella.estimators._checks import fit_box
from tessella.estimators._early_stopping import ValidationSet
from tessella.estimators._layouts import DualLayouts
from tessella.estimators._machines import Machines, class_pairs
from tessella.estimators._training_set import TrainingSet
from tessella.kernels import KernelSet, UnitBox

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class ValidatedData:
    """The arguments of ``fit`` after scikit-learn's checks.

    Attributes
    ----------
    X : ndarray of shape (n_given, n_features)
        Features.
    y : ndarray of shape (n_given,)
        Targets or labels.
    weight : ndarray of shape (n_given,)
        Sample weights.
    feature_names : ndarray of shape (n_features,) or None
        Names of the features, if the data had any.
    begun : float
        Moment of ``time.monotonic()`` at which the fit began.
    """

    X: FloatArray
    y: NDArray[Any]
    weight: FloatArray
    feature_names: NDArray[Any] | None
    begun: float


@dataclass(frozen=True)
class TrainingProblem:
    """The problem that a solver gets, and what is needed to turn its answer into a model.

    Attributes
    ----------
    rows : TrainingSet
        Merged and sorted rows.
    machines : Machines
        The support vector machines on these rows.
    box : UnitBox
        Scaling of the features to the unit cube.
    n_given : int
        Number of rows of the data as given.
    begun : float
        Moment of ``time.monotonic()`` from which on its time counts.
    feature_names : ndarray or None
        Names of the features, if the data had any.
    classes : ndarray or None
        Sorted labels; None for regression.
    target_scale, target_mean : float
        Standard deviation and mean that the target was standardised with.
    epsilon : float or None
        Half-width of the tube for the standardised target; None if the loss has none.
    validation_set : ValidationSet or None
        Rows that early stopping holds out.
    """

    rows: TrainingSet
    machines: Machines
    box: UnitBox
    n_given: int
    begun: float
    feature_names: NDArray[Any] | None = None
    classes: NDArray[Any] | None = None
    target_scale: float = 1.0
    target_mean: float = 0.0
    epsilon: float | None = None
    validation_set: ValidationSet | None = None

    @classmethod
    def build(
        cls,
        data: ValidatedData,
        rows: TrainingSet,
        machines: Machines,
        kernels: KernelSet,
        *,
        scaling: str = "range",
        feature_scale: Any = None,
        **others: Any,
    ) -> TrainingProblem:
        """The problem of some rows of validated data, scaled as the kernel set wants them."""
        box = fit_box(rows.X, rows.weight, kernels, scaling, feature_scale)
        names = data.feature_names
        return cls(rows, machines, box, len(data.X), data.begun, feature_names=names, **others)

    @cached_property
    def layouts(self) -> DualLayouts:
        """The layouts of its dual coefficients."""
        return DualLayouts(self.rows.index, self.n_given, self.machines.rows)

    def of_machine(self, k: int) -> TrainingProblem:
        """The problem of one pair of classes by itself, with the scaling of all rows."""
        assert self.classes is not None
        first, second = class_pairs(len(self.classes))[k]
        # Positive scores are for the first class of a pair, and for classes_[1] of a classifier.
        labels = self.classes[[second, first]]
        validation_set = self.validation_set
        return replace(
            self,
            rows=self.rows.subset(self.machines.rows[k]),
            begun=time.monotonic(),
            machines=Machines.single(self.machines.dual.each[k]),
            classes=labels,
            validation_set=None if validation_set is None else validation_set.of_labels(labels),
        )
