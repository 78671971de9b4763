"""Numbers that decide how long an automatic search takes, for each effort."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SearchSettings:
    """Sizes of the stages of a search.

    Attributes
    ----------
    screen_rows : int
        Rows on which all families, widths and scalings are compared first. The order of their
        errors on this many rows is nearly that on all rows, at a fraction of the cost.
    search_rows : int
        Rows on which the best of them are compared again and refined. More rows only enter the
        final fits.
    compared : int
        Number of pairs of a space and a family that are evaluated on the search rows.
    refined : int
        Number of those whose scales are then refined by descent.
    folds : int
        Folds that decide when the descent stops. Each has a descent of its own on the other rows,
        so that more folds leave more rows to each.
    descent_steps : int
        Largest number of steps of a descent. Most of the gain comes from the first few.
    first_rows : int
        Rows on which a descent starts, if a fold has clearly more of them. Most steps lead to
        nearly the same place on few rows, at a fraction of the cost.
    last_steps : int
        Number of steps on all rows of the fold, from where the descent on few of them has ended.
    average_steps : int
        Number of steps of the greedy average. The weights are multiples of its inverse.
    learned_strengths : tuple of float
        Values of C with which a kernel is learned.
    learned_rows : int
        Rows from which a kernel is learned. Its machine is that of all rows.
    most_learned_columns : int
        Largest number of columns times outputs for which a kernel is learned. The side of its
        matrix grows with the columns, and its cost with the outputs.
    svm_strengths : tuple of float
        Values of C with which support vector machines are tried.
    most_svm_classes : int
        Largest number of classes for which support vector machines are tried. They need a machine
        for each class, while squared-loss machines are one linear system for all classes, and
        seldom improve the average.
    svm_kurtosis : float
        Kurtosis of the held-out residuals from which support vector machines are tried in
        regression.
    grown : int
        Number of machines of the average whose scales are refined on more rows than the search
        had, if the table has them.
    growth_rows : int
        Rows of this refinement.
    growth_steps : int
        Largest number of its steps.
    largest_leaf : int
        Largest number of rows of an exact machine. More rows are divided into leaves.
    smallest_leaf : int
        Size to which leaves are made smaller in order to keep a time limit.
    trees : int
        Number of divisions into leaves whose predictions are averaged, if there is time for more
        than one.
    member_rows : int
        Largest sum of the training rows of all members, which bounds the time of the final fits of
        large tables. At least `least_members` machines are fitted on any table.
    least_members : int
        Number of machines that are fitted on any table, if the average has as many.
    """

    screen_rows: int = 400
    search_rows: int = 1200
    compared: int = 8
    refined: int = 4
    folds: int = 4
    descent_steps: int = 10
    first_rows: int = 500
    last_steps: int = 2
    average_steps: int = 20
    learned_strengths: tuple[float, ...] = (10.0,)
    learned_rows: int = 450
    most_learned_columns: int = 40
    svm_strengths: tuple[float, ...] = (1.0, 30.0)
    most_svm_classes: int = 0
    svm_kurtosis: float = 8.0
    grown: int = 3
    growth_rows: int = 4000
    growth_steps: int = 10
    largest_leaf: int = 4000
    smallest_leaf: int = 1000
    trees: int = 2
    member_rows: int = 60_000
    least_members: int = 3


EFFORTS = {
    "low": SearchSettings(
        screen_rows=300,
        search_rows=700,
        compared=3,
        refined=1,
        folds=3,
        descent_steps=8,
        learned_strengths=(),
        svm_strengths=(),
        grown=1,
        growth_rows=2000,
        growth_steps=8,
        largest_leaf=2000,
    ),
    "medium": SearchSettings(),
    "high": SearchSettings(
        screen_rows=800,
        search_rows=2000,
        compared=10,
        refined=8,
        folds=4,
        descent_steps=16,
        learned_strengths=(1.0, 10.0, 100.0),
        svm_strengths=(0.3, 3.0, 30.0, 300.0),
        most_svm_classes=10,
        svm_kurtosis=0.0,
        grown=5,
        growth_rows=6000,
        growth_steps=20,
        largest_leaf=8000,
        member_rows=240_000,
    ),
}
