"""The command ``tessella demo``, which compares three models on each of two data sets."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sklearn.base import is_classifier
from sklearn.compose import TransformedTargetRegressor
from sklearn.datasets import load_diabetes, load_digits
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR

from tessella.automatic import TessellaClassifier, TessellaRegressor
from tessella.cli._errors import CommandError, collected_warnings, complain, require_writable
from tessella.cli._fit import search_display
from tessella.cli._render import as_duration, show_line, show_rows, show_sentence

_STRENGTHS = (0.1, 1.0, 10.0, 100.0)
_RIDGES = (0.1, 1.0, 10.0, 100.0, 1000.0)
_GAMMAS = ("scale", 0.003, 0.01, 0.03, 0.1)
_PICTURES = (".png", ".pdf", ".svg")
# Part of the error of the linear model that is gone, or not: what is said about the data set.
_CLEAR_GAIN, _NO_GAIN = 0.15, 0.05
_MEANING = (
    "Tessella compares scalings, families of kernels, widths and C by leave-one-out errors on the "
    "training rows, refines a scale for every column, and averages the best machines. The others "
    "are tuned by 3-fold cross-validation. Held-out scores are those of the tuning, on training "
    "rows, and times include the tuning. Every machine of the average is certified to be the "
    "optimum of its training problem, which says nothing about test rows."
)


@dataclass(frozen=True)
class Entry:
    """Model that was fitted on the training rows of a data set, with its test score."""

    name: str
    model: Any
    score: float
    held_out_score: float
    seconds: float
    warnings: list[str]


@dataclass(frozen=True)
class Comparison:
    """Models on one data set: that of Tessella, an RBF machine and a linear model.

    Attributes
    ----------
    name : str
        Name of the data set.
    score_name : str
        Name of the score.
    entries : list of Entry
        The models, in this order.
    parts : tuple
        Training and test features, training and test targets.
    feature_names : list of str
        Names of the features.
    """

    name: str
    score_name: str
    entries: list[Entry]
    parts: tuple[Any, ...]
    feature_names: list[str]

    @property
    def gain(self) -> float:
        """Part of the error of the linear model that the model of Tessella does not make."""
        ours, linear = self.entries[0].score, self.entries[-1].score
        return 1.0 - (1.0 - ours) / (1.0 - linear) if linear < 1.0 else 0.0

    @property
    def remark(self) -> str:
        """A sentence on whether a kernel has something to learn on this data set."""
        linear = self.entries[-1].name.lower()
        if self.gain >= _CLEAR_GAIN:
            return (
                f"{self.name}: a kernel has something to learn. {self.gain:.0%} of the test error "
                f"of {linear} is gone."
            )
        if abs(self.gain) <= _NO_GAIN:
            return (
                f"{self.name}: a kernel has nothing to learn. The test error is that of {linear}, "
                "which is quicker and easier to explain: use it on such data."
            )
        change = "lower" if self.gain > 0 else "higher"
        return (
            f"{self.name}: the test error is {abs(self.gain):.0%} {change} than that of {linear}."
        )


def run_demo(picture: Path | None) -> None:
    """Fit the models, print a table for each data set, and write a figure.

    Parameters
    ----------
    picture : Path or None
        Path of the figure to write. No figure is written if it is None.
    """
    if picture is not None:
        if picture.suffix.lower() not in _PICTURES:
            raise CommandError(f"{picture}: use a name that ends in one of {', '.join(_PICTURES)}")
        require_writable(picture, force=True)
    comparisons = []
    for compare in (_digits, _diabetes):
        comparison = compare()
        _show(comparison)
        comparisons.append(comparison)
    show_sentence(_MEANING)
    if picture is not None:
        _draw(comparisons, picture)


def _digits() -> Comparison:
    """Images of digits, of which few are used for training."""
    data = load_digits()
    models = {
        "Tessella": TessellaClassifier(),
        "RBF SVM": _tuned(
            make_pipeline(StandardScaler(), SVC()), svc__C=_STRENGTHS, svc__gamma=_GAMMAS
        ),
        "Logistic regression": _tuned(
            make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000)),
            logisticregression__C=_STRENGTHS,
        ),
    }
    return _compare("Digits", "accuracy", models, data, train_size=400)


def _diabetes() -> Comparison:
    data = load_diabetes()
    # Tessella standardises the target, so the machine it is compared with does too.
    svr = TransformedTargetRegressor(
        make_pipeline(StandardScaler(), SVR()), transformer=StandardScaler()
    )
    models = {
        "Tessella": TessellaRegressor(),
        "RBF SVM": _tuned(svr, regressor__svr__C=_STRENGTHS, regressor__svr__gamma=_GAMMAS),
        "Ridge regression": _tuned(make_pipeline(StandardScaler(), Ridge()), ridge__alpha=_RIDGES),
    }
    return _compare("Diabetes", "R²", models, data, train_size=331)


def _tuned(model: Any, **grid: Any) -> GridSearchCV:
    """Return a search that chooses the parameters of a model by cross-validation."""
    return GridSearchCV(model, grid, cv=3)


def _compare(
    name: str, score_name: str, models: dict[str, Any], data: Any, train_size: int
) -> Comparison:
    stratify = data.target if is_classifier(models["Tessella"]) else None
    parts = train_test_split(
        data.data, data.target, train_size=train_size, random_state=0, stratify=stratify
    )
    entries = [_entry(label, model, *parts) for label, model in models.items()]
    return Comparison(name, score_name, entries, tuple(parts), list(data.feature_names))


def _entry(name: str, model: Any, X_train: Any, X_test: Any, y_train: Any, y_test: Any) -> Entry:
    begin = time.perf_counter()
    with collected_warnings() as texts:
        if isinstance(model, GridSearchCV):
            model.fit(X_train, y_train)
        else:
            model._fit(X_train, y_train, None, search_display())
    seconds = time.perf_counter() - begin
    score = float(model.score(X_test, y_test))
    searched = isinstance(model, GridSearchCV)
    held_out = model.best_score_ if searched else model.loo_score_
    return Entry(name, model, score, float(held_out), seconds, texts)


def _show(comparison: Comparison) -> None:
    rows = [
        [
            entry.name,
            f"{entry.score:.3f}",
            f"{entry.held_out_score:.3f}",
            as_duration(entry.seconds),
        ]
        for entry in comparison.entries
    ]
    X_train, X_test = comparison.parts[:2]
    counts = f"{len(X_train)} training rows, {len(X_test)} test rows"
    names = [f"{kind} {comparison.score_name}" for kind in ("test", "held-out")]
    show_rows(f"{comparison.name}: {counts}", ["model", *names, "time"], rows)
    for entry in comparison.entries:
        for text in entry.warnings:
            show_line(f"Note on {entry.name}: {text}")
    show_sentence(comparison.remark + "\n")


def _draw(comparisons: list[Comparison], picture: Path) -> None:
    try:
        from tessella.cli._demo_plot import draw
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "matplotlib":
            raise
        complain("note", "no figure without matplotlib: python -m pip install 'tessella[plot]'")
        return
    draw(comparisons, picture)
    show_line(f"Figure: {picture}")
