"""What the automatic classifier and the automatic regressor have in common."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Hashable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from tessella.automatic._average import blended_average, greedy_average
from tessella.automatic._clock import Clock
from tessella.automatic._copies import left_out_fraction
from tessella.automatic._encodings import ONE_HOT, TARGET, fit_encoding
from tessella.automatic._entries import GROWN, Entry, Machine
from tessella.automatic._families import FAMILIES
from tessella.automatic._growth import Growth
from tessella.automatic._machines import FittedMachine, LeafSizes, fit_machine
from tessella.automatic._relevance import relevance_of_columns
from tessella.automatic._search import FIRST_FITS, Search
from tessella.automatic._settings import EFFORTS, SearchSettings
from tessella.automatic._spaces import Space
from tessella.automatic._table import TableReader
from tessella.automatic._targets import PlainTarget, Target
from tessella.backend import effective_threads, in_threads, limit_blas
from tessella.estimators._checks import (
    loss_weights,
    require_flags,
    require_positive,
    require_threads,
    require_unmasked,
    require_verbosity,
)
from tessella.estimators._notebook import NotebookStepMixin
from tessella.estimators._training_set import TrainingSet
from tessella.inspection._html import automatic_html
from tessella.kernels import SCALINGS
from tessella.progress import SearchDisplay
from tessella.tabular._input import table_columns

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]
Tell = Callable[[str, float], None]

_ENCODINGS = (ONE_HOT, TARGET)
_LOSSES = ("squared", "svm")
_RELEVANCE_ROWS = 128
# Part of the time that a search may take if its machines are refined on more rows afterwards.
_SEARCH_PART = 0.5
_SPACE_PART = 0.2  # of the time that is left that another space of features may take
_FITS_FROM = 0.9  # part of the progress at which the final fits begin


@dataclass(frozen=True, eq=False)
class Average:
    """Entries of a search, with their weights in the average of a model.

    Attributes
    ----------
    entries : list of Entry
        All entries.
    shares : ndarray of shape (n_entries,)
        Weight of each entry in the average.
    rows : ndarray of int
        Rows of the held-out predictions of the entries with a share.
    complete : bool
        Whether all stages of the search were finished.
    fit_seconds : callable
        Expected seconds of a fit of one machine on all rows, by the largest size of a leaf and the
        number of trees.
    """

    entries: list[Entry]
    shares: FloatArray
    rows: IntArray
    complete: bool
    fit_seconds: Callable[[int, int], float]

    @property
    def held_out(self) -> FloatArray:
        """Held-out predictions of the outputs of the rows by the average."""
        parts = zip(self.shares, self.entries, strict=True)
        return np.asarray(sum(share * entry.held_out for share, entry in parts if share > 0))


class BaseAutomatic(NotebookStepMixin, BaseEstimator):  # type: ignore[misc]
    """Base class of :class:`TessellaClassifier` and :class:`TessellaRegressor`."""

    _softness: float  # part of the weights that depend on the error of each entry alone

    def __init__(
        self,
        *,
        effort: str = "medium",
        time_limit: float | None = None,
        categorical_features: Sequence[Hashable] | None = None,
        families: Sequence[str] = ("laplace", "matern", "gaussian", "tessellated"),
        scalings: Sequence[str] = ("quantile", "range"),
        encodings: Sequence[str] = (ONE_HOT, TARGET),
        losses: Sequence[str] = _LOSSES,
        refine: bool = True,
        learn: bool = True,
        average: bool = True,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.effort = effort
        self.time_limit = time_limit
        self.categorical_features = categorical_features
        self.families = families
        self.scalings = scalings
        self.encodings = encodings
        self.losses = losses
        self.refine = refine
        self.learn = learn
        self.average = average
        self.n_jobs = n_jobs
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags

    # -------------------------------------------------------------------------------- fitting

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Search for the best machines on a table, and fit them to all of its rows.

        Parameters
        ----------
        X : frame or array-like of shape (n_samples, n_features)
            Table with numbers, text, categories, dates and missing values: a frame of pandas or
            polars, an array, or a list of rows.
        y : array-like of shape (n_samples,)
            Target, or labels of the classes.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the rows. A weight of k is equivalent to k copies of the row.

        Returns
        -------
        self
            The fitted model.
        """
        return self._fit(X, y, sample_weight, self._display())

    def _fit(
        self, X: Any, y: Any, sample_weight: Any, display: AbstractContextManager[Tell]
    ) -> Self:
        """Fit the model, and tell its progress to the function that a display yields."""
        self._check_params()
        clock = Clock(self.time_limit)
        scratch = copy(self)  # nothing of the model changes before the fit has succeeded
        columns = table_columns(scratch, X, self.categorical_features, reset=True)
        n_rows = len(columns[0].values)
        require_unmasked(y=y, sample_weight=sample_weight)
        target = scratch._read_target(y, n_rows)
        weight = _check_sample_weight(
            sample_weight, np.zeros((n_rows, 1)), dtype=np.float64, ensure_non_negative=True
        )
        if not weight.any():
            raise ValueError("All sample weights are zero; at least one has to be positive.")
        reader = TableReader.fit(columns)
        rows = TrainingSet.build(reader.read(columns), target, weight)
        loss_weights(1.0, rows.weight)  # raises an error if they overflow or vanish
        if len(rows.y) < 2:
            raise ValueError(
                f"n_samples={n_rows}: there is a single distinct row with a positive weight; a "
                "minimum of 2 is required."
            )
        with limit_blas(), display as tell:
            scratch._learn(reader, rows, clock, tell)
        found, params = vars(scratch), self.get_params(deep=False)
        self.__dict__.update({key: found[key] for key in found if key not in params})
        return self

    def _read_target(self, y: Any, n_rows: int) -> FloatArray:
        """Check the target and return it as numbers."""
        raise NotImplementedError

    def _outputs(self, y: FloatArray, weight: FloatArray) -> FloatArray:
        """Return the outputs that machines predict, of shape (m, k)."""
        raise NotImplementedError

    def _targets(self, Y: FloatArray, weight: FloatArray) -> tuple[Target, ...]:  # noqa: ARG002
        """Return what a squared-loss machine may be fitted to."""
        return (PlainTarget(),)

    def _search_order(self, y: FloatArray) -> IntArray:
        """Return all rows in the order in which a search takes them."""
        return np.random.default_rng(0).permutation(len(y))

    def _calibrate(self, held_out: FloatArray, y: FloatArray, weight: FloatArray) -> None:
        """Set the attributes that come from the held-out predictions."""
        raise NotImplementedError

    def _learn(self, reader: TableReader, rows: TrainingSet, clock: Clock, tell: Tell) -> None:
        """Search, average and fit; sets the fitted attributes."""
        Y = self._outputs(rows.y, rows.weight)
        weight = rows.weight / rows.weight.mean()
        # Encodings count rows, of which one of weight k is k; weights below one are relative.
        counts = rows.weight / min(1.0, rows.weight.mean())
        spaces, all_spaces = self._spaces(reader, rows.X, Y, counts, clock)
        left_out = left_out_fraction(rows.X, reader.categorical, rows.weight)
        found = self._search(spaces, rows.y, Y, weight, left_out, clock, tell)
        members = self._members(found, Y, weight, clock, tell)
        self._reader = reader
        self._rows = rows.X[found.rows[:_RELEVANCE_ROWS]]
        self.members_ = members
        self.gap_ = max(member.gap for member in members)
        self.leaderboard_ = _leaderboard(found)
        self.search_complete_ = found.complete and all_spaces
        self._calibrate(found.held_out, rows.y[found.rows], weight[found.rows])
        self.fit_time_ = clock.elapsed

    def _spaces(
        self,
        reader: TableReader,
        codes: FloatArray,
        Y: FloatArray,
        weight: FloatArray,
        clock: Clock,
    ) -> tuple[list[Space], bool]:
        """Return the spaces of features for which there is time, and whether these are all."""
        categorical = reader.categorical
        names = self.encodings if categorical.any() else (ONE_HOT,)
        spaces: list[Space] = []
        seconds = 0.0  # of the last one
        for name in names:
            encoding = fit_encoding(name, categorical, codes, Y, weight)
            features = encoding.apply(codes)
            for scaling in self.scalings:
                begin = clock.elapsed
                if spaces and seconds > _SPACE_PART * clock.left:
                    return spaces, False
                spaces.append(Space.build(encoding, features, weight, scaling))
                seconds = clock.elapsed - begin
        return spaces, True

    def _search(
        self,
        spaces: list[Space],
        y: FloatArray,
        Y: FloatArray,
        weight: FloatArray,
        left_out: FloatArray,
        clock: Clock,
        tell: Tell,
    ) -> Average:
        settings = self._settings()
        order = self._search_order(y)
        n_grown = Growth.n_rows(len(order), settings)
        search = Search(
            spaces=spaces,
            families=self.families,
            rows=order[: settings.search_rows],
            Y=Y,
            targets=self._targets(Y, weight),
            weight=weight,
            left_out=left_out,
            settings=settings,
            clock=clock.part(_SEARCH_PART) if n_grown else clock,
            tell=_part_of(tell, 0.0, _SEARCH_PART) if n_grown else tell,
            n_jobs=self.n_jobs,
        )
        entries = [entry for entry in search.run() if np.isfinite(entry.error)]
        if not entries:
            raise ValueError(
                "No machine has finite held-out errors: the features or the target have values "
                "that double precision cannot compare. Rescale them."
            )
        shares = self._shares(entries, search.rows, Y, weight)
        average = Average(entries, shares, search.rows, search.complete, search.fit_seconds)
        if not n_grown or search.interrupted:
            return average
        clock.reserve(search.final_seconds())
        growth = Growth(
            rows=order[:n_grown],
            Y=Y,
            weight=weight,
            settings=settings,
            clock=clock,
            tell=_part_of(tell, _SEARCH_PART, _FITS_FROM),
            seconds=search.seconds_with(n_grown),
            n_jobs=self.n_jobs,
        )
        return self._grown(average, growth)

    def _grown(self, average: Average, growth: Growth) -> Average:
        """Return the average of the machines that were refined on more rows."""
        found = growth.run(average.entries, average.shares)
        grown = [entry for entry in found if np.isfinite(entry.error)]
        complete = average.complete and growth.complete
        if not grown:
            return replace(average, complete=complete)
        shares = self._shares(grown, growth.held_out, growth.Y, growth.weight)
        shares = np.append(np.zeros(len(average.entries)), shares)
        entries = average.entries + grown
        return replace(
            average, entries=entries, shares=shares, rows=growth.held_out, complete=complete
        )

    def _shares(
        self, entries: list[Entry], rows: IntArray, Y: FloatArray, weight: FloatArray
    ) -> FloatArray:
        """Return the weights of entries in the average, from their predictions of some rows."""
        held_out, steps = [entry.held_out for entry in entries], self._settings().average_steps
        if self.average:
            return blended_average(held_out, Y[rows], weight[rows], steps, self._softness)
        return greedy_average(held_out, Y[rows], weight[rows], 1)

    def _settings(self) -> SearchSettings:
        settings = EFFORTS[self.effort]
        if not self.refine:
            settings = replace(settings, refined=0, grown=0)
        if not self.learn:
            settings = replace(settings, learned_strengths=())
        return settings if "svm" in self.losses else replace(settings, svm_strengths=())

    def _members(
        self, average: Average, Y: FloatArray, weight: FloatArray, clock: Clock, tell: Tell
    ) -> list[FittedMachine]:
        """Fit the machines of the average on all rows, those with the largest weights first.

        When the time is over, the remaining machines are left out.
        """
        wanted = [
            (machine, float(share) / len(entry.machines))
            for entry, share in zip(average.entries, average.shares, strict=True)
            if share > 0
            for machine in entry.machines
        ]
        wanted.sort(key=lambda one: -one[1])
        settings = self._settings()
        wanted = wanted[: max(settings.least_members, settings.member_rows // len(Y))]
        at_once = effective_threads(self.n_jobs)
        sizes = self._leaf_sizes(average, -(-len(wanted) // at_once), clock)

        def fit(one: tuple[Machine, float]) -> FittedMachine:
            return fit_machine(*one, Y, weight, sizes)

        members: list[FittedMachine] = []
        begin = clock.elapsed
        for k in range(0, len(wanted), at_once):
            batch_seconds = (clock.elapsed - begin) / max(1, k // at_once)
            if members and clock.left < batch_seconds:
                break
            members += in_threads(fit, wanted[k : k + at_once], self.n_jobs)
            tell(f"{len(members)} of {len(wanted)} machines fitted on {len(Y)} rows", 1.0)
        total = sum(member.share for member in members)
        return [replace(member, share=member.share / total) for member in members]

    def _leaf_sizes(self, average: Average, n_batches: int, clock: Clock) -> LeafSizes:
        """Return the size of leaves, and the number of trees, for which there is time.

        Leaves are as large as the time for the first machines allows, because smaller leaves cost
        less. There are several trees if there is time for them in all machines.
        """
        settings, first = self._settings(), min(n_batches, FIRST_FITS)
        largest, trees = settings.largest_leaf, settings.trees
        while largest > settings.smallest_leaf:
            if first * average.fit_seconds(largest, 1) <= clock.left:
                break
            largest //= 2
        enough = n_batches * average.fit_seconds(largest, trees) <= clock.left
        return LeafSizes(largest, trees if enough else 1)

    @contextmanager
    def _display(self) -> Iterator[Tell]:
        """Yield a function that shows the progress as `verbose` asks."""
        if self.verbose > 1:
            with SearchDisplay() as display:
                yield display.tell
        else:
            yield _print_line if self.verbose else _say_nothing

    def _check_params(self) -> None:
        if self.effort not in EFFORTS:
            raise ValueError(f"effort={self.effort!r} is unknown; use one of {tuple(EFFORTS)}.")
        if self.time_limit is not None:
            require_positive("time_limit", self.time_limit)
        known = {
            "families": tuple(FAMILIES),
            "scalings": SCALINGS,
            "encodings": _ENCODINGS,
            "losses": _LOSSES,
        }
        for name, allowed in known.items():
            given = getattr(self, name)
            listed = isinstance(given, Collection) and not isinstance(given, str)
            if not (listed and len(given) and set(given) <= set(allowed)):
                raise ValueError(f"{name}={given!r} must be a sequence of some of {allowed}.")
        require_threads(self.n_jobs)
        require_verbosity(self.verbose)
        require_flags(refine=self.refine, learn=self.learn, average=self.average)
        if "squared" not in self.losses:
            raise ValueError(
                f"losses={self.losses!r} must contain 'squared': kernels are compared by the "
                "leave-one-out errors of squared-loss machines."
            )

    # ----------------------------------------------------------------------------- predicting

    def _average_outputs(self, X: Any) -> FloatArray:
        """Return the average of the predictions of all members for a table."""
        check_is_fitted(self, "members_")
        return self._outputs_of_codes(self._reader.read(table_columns(self, X, None, reset=False)))

    def _outputs_of_codes(self, codes: FloatArray) -> FloatArray:
        coordinates: dict[int, FloatArray] = {}
        total: Any = 0.0
        with limit_blas():
            for member in self.members_:
                space = member.machine.space
                if id(space) not in coordinates:
                    coordinates[id(space)] = space.apply(codes)
                total = total + member.share * member.outputs(coordinates[id(space)])
        return np.asarray(total)

    @property
    def feature_relevance_(self) -> FloatArray:
        """Share of the variance of the predictions that involves each column of the table."""
        check_is_fitted(self, "members_")
        return relevance_of_columns(self._outputs_of_codes, self._rows)

    def _summary_html(self) -> str:
        """The summary of the fit in a notebook; empty before the fit."""
        return automatic_html(self)

    # --------------------------------------------------------------------------------- saving

    def save(self, path: str | os.PathLike[str], *, metadata: dict[str, Any] | None = None) -> None:
        """Write the fitted model to one file of arrays and JSON.

        Parameters
        ----------
        path : path-like
            File to write, by convention with the suffix ``.tsl``. :func:`tessella.load` reads it.
        metadata : dict, optional
            Data to store with the model; anything that JSON can represent.

        See Also
        --------
        tessella.save : The same as a function, with the exceptions that it raises.
        """
        from tessella.persistence import save  # not above, because it imports the estimators

        save(self, path, metadata=metadata)

    def _is_consistent(self) -> bool:
        """Return whether the parts of a model that was read from a file fit together."""
        n_columns = self.n_features_in_
        if not (
            len(self.members_)
            and self._reader.is_consistent(n_columns)
            and self._rows.ndim == 2
            and self._rows.shape[1] == n_columns
            and all(member.is_consistent(n_columns) for member in self.members_)
        ):
            return False
        try:
            found = self._outputs_of_codes(self._rows[:1])
        except (IndexError, ValueError):
            return False
        return found.shape == (1, self._n_outputs) and bool(np.isfinite(found).all())

    @property
    def _n_outputs(self) -> int:
        """Number of the outputs of the machines."""
        raise NotImplementedError


def _print_line(text: str, done: float) -> None:
    print(f"[{done:4.0%}] {text}", flush=True)  # noqa: T201 - asked for by verbose=1


def _say_nothing(text: str, done: float) -> None:
    del text, done


def _part_of(tell: Tell, begin: float, end: float) -> Tell:
    """Return a function that tells the progress of a part of the work."""
    return lambda text, done: tell(text, begin + (end - begin) * done)


def require_target(estimator: Any, y: Any) -> None:
    """Raise ValueError if there is no target."""
    if y is None:
        raise ValueError(
            f"This {type(estimator).__name__} estimator requires y to be passed, but the target y "
            "is None."
        )


def require_length(y: NDArray[Any], n_rows: int) -> None:
    """Raise ValueError unless there is a target for every row."""
    if len(y) != n_rows:
        raise ValueError(
            f"Found input variables with inconsistent numbers of samples: {[n_rows, len(y)]}"
        )


def _leaderboard(found: Average) -> list[dict[str, Any]]:
    def place(k: int) -> tuple[bool, float]:
        # Errors after the growth are those of other rows and other numbers of training rows.
        return found.entries[k].stage != GROWN, found.entries[k].error

    order = sorted(range(len(found.entries)), key=place)
    return [_line(found.entries[k], float(found.shares[k])) for k in order]


def _line(entry: Entry, share: float) -> dict[str, Any]:
    first = entry.machines[0]
    return {
        "error": entry.error,
        "weight": share,
        "family": first.kernel.family,
        "learned": first.kernel.learned,
        "scaling": first.space.scaling,
        "encoding": first.space.encoding.categories,
        "loss": first.loss.name,
        "target": first.target.name,
        "stage": entry.stage,
        "rows": entry.n_rows,
        "C": float(np.median([machine.C for machine in entry.machines])),
    }
