"""Rows of a data set, and its fixed divisions into training and test part."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

CLASSIFICATION, REGRESSION = "classification", "regression"
TASKS = (CLASSIFICATION, REGRESSION)


@dataclass(frozen=True, eq=False)
class Dataset:
    """The rows of a data set.

    Attributes
    ----------
    name : str
        By which it was loaded.
    task : {"classification", "regression"}
        What its target asks for.
    X : ndarray of shape (n_samples, n_features)
        Features, unscaled, float64.
    y : ndarray of shape (n_samples,)
        Classes 0 and 1 as integers, or targets in their own unit.
    feature_names : tuple of str
        Names of the columns of `X`.
    """

    name: str
    task: str
    X: NDArray[np.float64]
    y: NDArray[np.float64] | NDArray[np.int64]
    feature_names: tuple[str, ...]

    def split(
        self, seed: int, test_fraction: float = 0.2
    ) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Divide the rows at random, always in the same way for the same seed.

        Parameters
        ----------
        seed : int
            Number of the division.
        test_fraction : float, default=0.2
            Part of the rows to test on, between 0 and 1; their number is rounded.

        Returns
        -------
        train, test : ndarray of int
            Indices of the rows, in ascending order.

        Examples
        --------
        >>> import numpy as np
        >>> from tessella.datasets import Dataset
        >>> data = Dataset("ten", "regression", np.zeros((10, 1)), np.arange(10.0), ("x",))
        >>> train, test = data.split(seed=0)
        >>> test
        array([2, 8])
        """
        rows = len(self.y)
        held_out = round(test_fraction * rows)
        if not 0 < held_out < rows:
            raise ValueError(
                f"test_fraction={test_fraction!r} leaves {rows - held_out} of {rows} rows to learn "
                f"from and {held_out} to test on; both parts need rows."
            )
        # RandomState, because its stream is promised never to change: the divisions are fixed.
        order = np.random.RandomState(seed).permutation(rows)
        return np.sort(order[held_out:]), np.sort(order[:held_out])
