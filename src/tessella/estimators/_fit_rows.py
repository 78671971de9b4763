"""The training rows that an estimator keeps after a fit, for what is computed when it is read."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tessella.estimators._problem import TrainingProblem, ValidatedData

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class FitRows:
    """The rows of a fit, as long as the estimator that was fitted is in memory.

    Copies, pickles and model files do not contain them.

    Attributes
    ----------
    problem : TrainingProblem
        The problem that was solved, with the merged rows.
    weight : ndarray of shape (n_given,)
        Sample weights of the rows as given.
    unseen : ndarray of shape (n_unseen, n_features)
        The rows as given that the model was not learned from: rows of weight zero, and those that
        early stopping has held out.
    """

    problem: TrainingProblem
    weight: FloatArray
    unseen: FloatArray

    @classmethod
    def of(cls, data: ValidatedData, problem: TrainingProblem) -> FitRows:
        """The rows of a problem and of the data that it was made from."""
        unseen = data.X[problem.rows.of_given < 0]
        return cls(problem, np.array(data.weight), unseen)

    @property
    def seen(self) -> NDArray[np.bool_]:
        """Whether the model was learned from each row as given."""
        seen: NDArray[np.bool_] = self.problem.rows.of_given >= 0
        return seen

    @property
    def copies(self) -> FloatArray:
        """Number of copies that each merged row stands for: the sum of its sample weights."""
        of_given = self.problem.rows.of_given
        seen = of_given >= 0
        count = len(self.problem.rows.X)
        return np.bincount(of_given[seen], self.weight[seen], count).astype(np.float64)
