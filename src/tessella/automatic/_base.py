"""What the automatic classifier and the automatic regressor have in common."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from tessella.automatic._average import greedy_average
from tessella.automatic._clock import Clock
from tessella.automatic._encodings import ONE_HOT, TARGET, fit_encoding
from tessella.automatic._families import FAMILIES
from tessella.automatic._machines import FittedMachine, fit_machine
from tessella.automatic._search import Entry, Machine, Search
from tessella.automatic._settings import EFFORTS, SearchSettings
from tessella.automatic._spaces import Space
from tessella.automatic._table import TableReader
from tessella.automatic._targets import PlainTarget, Target
from tessella.backend import in_threads, limit_blas
from tessella.estimators._checks import require_positive
from tessella.estimators._training_set import TrainingSet
from tessella.kernels import SCALINGS
from tessella.tabular._input import table_columns

FloatArray = NDArray[np.float64]

_ENCODINGS = (ONE_HOT, TARGET)


class BaseAutomatic(BaseEstimator):  # type: ignore[misc]
    """Base class of :class:`TessellaClassifier` and :class:`TessellaRegressor`."""

    def __init__(
        self,
        *,
        effort: str = "medium",
        time_limit: float | None = None,
        categorical_features: Sequence[Hashable] | None = None,
        families: Sequence[str] = ("laplace", "gaussian", "tessellated"),
        scalings: Sequence[str] = ("quantile", "range"),
        encodings: Sequence[str] = (ONE_HOT,),
        refine: bool = True,
        average: bool = True,
        losses: str = "all",
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.effort = effort
        self.time_limit = time_limit
        self.categorical_features = categorical_features
        self.families = families
        self.scalings = scalings
        self.encodings = encodings
        self.refine = refine
        self.average = average
        self.losses = losses
        self.n_jobs = n_jobs
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags

    # -------------------------------------------------------------------------------- fitting

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> Any:
        self._check_params()
        clock = Clock(self.time_limit)
        scratch = copy(self)  # scikit-learn sets attributes while it validates: of a copy
        columns = table_columns(scratch, X, self.categorical_features, reset=True)
        n_rows = len(columns[0].values)
        target = scratch._read_target(y, n_rows)
        weight = _check_sample_weight(
            sample_weight, np.zeros((n_rows, 1)), dtype=np.float64, ensure_non_negative=True
        )
        reader = TableReader.fit(columns)
        rows = TrainingSet.build(reader.read(columns), target, weight)
        if len(rows.y) < 2:
            raise ValueError(
                f"n_samples={n_rows}: there is a single distinct row with a positive weight; a "
                "minimum of 2 is required."
            )
        with limit_blas():
            scratch._learn(reader, rows, clock)
        self.__dict__.update(
            {k: v for k, v in vars(scratch).items() if k not in self.get_params(deep=False)}
        )
        return self

    def _learn(self, reader: TableReader, rows: TrainingSet, clock: Clock) -> None:
        """Search, average and fit; sets the fitted attributes."""
        Y = self._outputs(rows.y, rows.weight)
        weight = rows.weight / rows.weight.mean()
        spaces = self._spaces(reader, rows.X, Y, weight)
        order = self._search_order(rows.y)
        settings = self._settings()
        chosen = order[: settings.search_rows]
        search = Search(
            n_jobs=self.n_jobs,
            spaces=spaces,
            families=tuple(self.families),
            rows=chosen,
            Y=Y,
            targets=self._targets(Y, weight),
            weight=weight,
            settings=settings,
            clock=clock,
            tell=self._tell,
        )
        entries = search.run()
        shares = self._shares(entries, Y[chosen], weight[chosen], settings)
        self._reader = reader
        self._held_out_rows = chosen
        self._machines = self._final_machines(entries, shares, Y, weight)
        held_out = sum(
            share * entry.held_out for share, entry in zip(shares, entries, strict=True)
        )
        self._finish(np.asarray(held_out), Y[chosen], rows.y[chosen], weight[chosen])
        self.leaderboard_ = _leaderboard(entries, shares)

    def _settings(self) -> SearchSettings:
        settings = EFFORTS[self.effort]
        if not self.refine:
            settings = replace(settings, refined=0)
        return settings if self.losses == "all" else replace(settings, svm_strengths=())

    def _spaces(
        self, reader: TableReader, codes: FloatArray, Y: FloatArray, weight: FloatArray
    ) -> list[Space]:
        categorical = reader.categorical
        names = self.encodings if categorical.any() else (ONE_HOT,)
        encoded = [fit_encoding(name, categorical, codes, Y, weight) for name in names]
        return [
            Space.build(encoding, features, weight, scaling)
            for encoding, features in encoded
            for scaling in self.scalings
        ]

    def _targets(self, Y: FloatArray, weight: FloatArray) -> tuple[Target, ...]:  # noqa: ARG002
        """What a machine may be fitted to."""
        return (PlainTarget(),)

    def _search_order(self, y: FloatArray) -> NDArray[np.intp]:
        """Return all rows in the order in which a search takes them."""
        return np.random.default_rng(0).permutation(len(y))

    def _shares(
        self, entries: list[Entry], Y: FloatArray, weight: FloatArray, settings: SearchSettings
    ) -> FloatArray:
        steps = settings.average_steps if self.average else 1
        return greedy_average([entry.held_out for entry in entries], Y, weight, steps)

    def _final_machines(
        self, entries: list[Entry], shares: FloatArray, Y: FloatArray, weight: FloatArray
    ) -> list[FittedMachine]:
        wanted = [
            (machine, float(share) / len(entry.machines))
            for entry, share in zip(entries, shares, strict=True)
            if share > 0
            for machine in entry.machines
        ]
        largest = self._settings().largest_leaf

        def fit(one: tuple[Machine, float]) -> FittedMachine:
            return fit_machine(*one, Y, weight, largest)

        return in_threads(fit, wanted, self.n_jobs)

    def _tell(self, text: str, done: float) -> None:
        del done
        if self.verbose:
            print(f"{type(self).__name__}: {text}", flush=True)

    def _check_params(self) -> None:
        if self.effort not in EFFORTS:
            raise ValueError(f"effort={self.effort!r} is unknown; use one of {tuple(EFFORTS)}.")
        if self.time_limit is not None:
            require_positive("time_limit", self.time_limit)
        known = {"families": tuple(FAMILIES), "scalings": SCALINGS, "encodings": _ENCODINGS}
        for name, allowed in known.items():
            given = getattr(self, name)
            if isinstance(given, str) or not len(given) or not set(given) <= set(allowed):
                raise ValueError(f"{name}={given!r} must be a sequence of some of {allowed}.")

    # ----------------------------------------------------------------------------- predicting

    def _scores(self, X: Any) -> FloatArray:
        check_is_fitted(self, "leaderboard_")
        codes = self._reader.read(table_columns(self, X, None, reset=False))
        coordinates: dict[int, FloatArray] = {}
        total = 0.0
        with limit_blas():
            for fitted in self._machines:
                space = fitted.machine.space
                if id(space) not in coordinates:
                    coordinates[id(space)] = space.apply(codes)
                total = total + fitted.share * fitted.outputs(coordinates[id(space)])
        return np.asarray(total)


def _leaderboard(entries: list[Entry], shares: FloatArray) -> list[dict[str, Any]]:
    order = sorted(range(len(entries)), key=lambda k: entries[k].error)
    return [
        {
            "error": entries[k].error,
            "weight": float(shares[k]),
            "family": entries[k].kernel.family,
            "learned": entries[k].kernel.learned,
            "scaling": entries[k].space.scaling,
            "encoding": entries[k].space.encoding.categories,
            "stage": entries[k].stage,
            "target": entries[k].machines[0].target.name,
            "loss": entries[k].machines[0].loss.name,
            "C": float(np.median([machine.C for machine in entries[k].machines])),
        }
        for k in order
    ]
