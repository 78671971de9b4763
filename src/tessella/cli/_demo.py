"""The command ``tessella demo``, which compares three models on each of two data sets."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sklearn.compose import TransformedTargetRegressor
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR

from tessella.cli._errors import CommandError, collected_warnings, complain, require_writable
from tessella.cli._render import (
    NOTHING,
    as_duration,
    as_gap,
    show_line,
    show_rows,
    show_sentence,
)
from tessella.estimators import LearnedKernelSVC, LearnedKernelSVR

_STRENGTHS = (0.1, 1.0, 10.0)
_PICTURES = (".png", ".pdf", ".svg")
_MEANING = (
    "The certified gap is a proof: no kernel of the family, with any support vector machine, has a "
    "training objective that is smaller than the one found by more than this fraction. The other "
    "models do not learn their kernel, so they have no such gap. The regularisation of each model "
    "was chosen by 3-fold cross-validation, and the time is that of the final fit."
)


@dataclass(frozen=True)
class Entry:
    """Model that was fitted on the training rows of a data set, with its test score."""

    name: str
    model: Any
    score: float
    seconds: float
    support: int | None
    gap: float | None
    warnings: list[str]


@dataclass(frozen=True)
class Comparison:
    """Models on one data set. The first model is that of Tessella."""

    title: str
    score_name: str
    entries: list[Entry]


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
    for compare in (_classification, _regression):
        comparison = compare()
        _show(comparison)
        comparisons.append(comparison)
    show_sentence(_MEANING)
    if picture is not None:
        _draw(comparisons, picture)


def _classification() -> Comparison:
    X, y = load_breast_cancer(return_X_y=True)
    models = {
        "Tessella": _tuned(LearnedKernelSVC(), "C"),
        "RBF SVM": _tuned(make_pipeline(StandardScaler(), SVC()), "svc__C"),
        "Logistic regression": _tuned(
            make_pipeline(StandardScaler(), LogisticRegression()), "logisticregression__C"
        ),
    }
    return _compare("Breast cancer", "test accuracy", models, X, y, stratify=y)


def _regression() -> Comparison:
    X, y = load_diabetes(return_X_y=True)
    # Tessella standardises the target, so the model it is compared with does too.
    svr = TransformedTargetRegressor(
        make_pipeline(StandardScaler(), SVR()), transformer=StandardScaler()
    )
    models = {
        "Tessella": _tuned(LearnedKernelSVR(), "C"),
        "RBF SVM": _tuned(svr, "regressor__svr__C"),
        "Ridge regression": _tuned(make_pipeline(StandardScaler(), Ridge()), "ridge__alpha"),
    }
    return _compare("Diabetes", "test R²", models, X, y, stratify=None)


def _tuned(model: Any, parameter: str) -> GridSearchCV:
    """Return a search that chooses the regularisation of a model by cross-validation."""
    return GridSearchCV(model, {parameter: _STRENGTHS}, cv=3)


def _compare(
    name: str, score_name: str, models: dict[str, Any], X: Any, y: Any, stratify: Any
) -> Comparison:
    parts = train_test_split(X, y, test_size=0.25, random_state=0, stratify=stratify)
    entries = [_entry(label, model, *parts) for label, model in models.items()]
    counts = f"{len(parts[0])} training rows, {len(parts[1])} test rows"
    title = f"{name}: {counts}, {X.shape[1]} features"
    return Comparison(title, score_name, entries)


def _entry(name: str, model: Any, X_train: Any, X_test: Any, y_train: Any, y_test: Any) -> Entry:
    with collected_warnings() as texts:
        model.fit(X_train, y_train)
    best = model.best_estimator_
    return Entry(
        name=name,
        model=best,
        score=float(best.score(X_test, y_test)),
        seconds=float(model.refit_time_),
        support=_count_support(best),
        gap=getattr(best, "gap_", None),
        warnings=texts,
    )


def _count_support(model: Any) -> int | None:
    """Return the number of support vectors of the last step of a pipeline, or None."""
    model = getattr(model, "regressor_", model)
    last = model[-1] if hasattr(model, "steps") else model
    return len(last.support_) if hasattr(last, "support_") else None


def _show(comparison: Comparison) -> None:
    rows = [
        [
            entry.name,
            f"{entry.score:.3f}",
            as_gap(entry.gap),
            as_duration(entry.seconds),
            NOTHING if entry.support is None else str(entry.support),
        ]
        for entry in comparison.entries
    ]
    header = ["model", comparison.score_name, "certified gap", "fit time", "support vectors"]
    show_rows(comparison.title, header, rows)
    for entry in comparison.entries:
        for text in entry.warnings:
            show_line(f"Note on {entry.name}: {text}")


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
