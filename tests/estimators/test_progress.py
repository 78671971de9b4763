"""The live display of a fit."""

import io
import sys

import numpy as np
import pytest
from rich.console import Console
from sklearn.base import clone
from sklearn.datasets import make_circles

import tessella.progress
from tessella import LearnedKernelSVC
from tessella.progress import ProgressDisplay, part_done


@pytest.fixture
def screen():
    return Console(file=io.StringIO(), force_terminal=True, width=160)


def shown(screen):
    return screen.file.getvalue()


def test_shows_what_matters(screen):
    X, y = make_circles(500, noise=0.2, factor=0.5, random_state=0)
    model = LearnedKernelSVC(tol=1e-4)
    with ProgressDisplay(model.tol, console=screen) as display:
        model._fit(X, y, callback=display)
        display._progress.refresh()
    last = model.history_[-1]
    for part in (
        f"gap {last.gap:.1e} → 1e-04",
        f"value {last.value:.5g}",
        f"SVMs {last.n_svm}",
        "done",
    ):
        assert part in shown(screen)


def test_phases_are_shown_while_they_last(screen):
    with ProgressDisplay(1e-3, console=screen) as display:
        for text in ("first kernel from 200 rows", "SVM 1 on 100000 rows"):
            display.phase(text)
            display._progress.refresh()
            assert text in shown(screen)


def test_a_narrow_screen_still_shows_that_it_lives():
    screen = Console(file=io.StringIO(), force_terminal=True, width=60, color_system=None)
    with ProgressDisplay(1e-3, console=screen) as display:
        display._progress.update(display._task, state="gap 1.0e-01 → 1e-03  value 123.45  SVMs 12")
        display.phase("joint step on 800 rows")
        display._progress.refresh()
    assert "0:00:00" in shown(screen)


def test_a_failed_fit_is_not_done(screen):
    with pytest.raises(KeyboardInterrupt), ProgressDisplay(1e-3, console=screen):
        raise KeyboardInterrupt
    assert "stopped" in shown(screen)
    assert "done" not in shown(screen)


def test_disabled_writes_nothing(screen):
    with ProgressDisplay(1e-3, console=screen, disable=True) as display:
        display.phase("SVM")
    assert shown(screen) == ""


def test_verbose_two_is_the_display(case, monkeypatch, screen, capsys):
    model, X, y = case
    display = tessella.estimators._base.ProgressDisplay
    monkeypatch.setattr(
        tessella.estimators._base, "ProgressDisplay", lambda tol: display(tol, console=screen)
    )
    model = clone(model).set_params(verbose=2).fit(X, y)
    assert "gap" in shown(screen)
    assert capsys.readouterr().out == ""


def test_without_rich_a_clear_error_comes_first(case, monkeypatch):
    model, X, y = case
    model = clone(model).fit(X, y)
    monkeypatch.setitem(sys.modules, "rich.progress", None)
    with pytest.raises(ImportError, match=r"needs rich.*verbose=1"):
        clone(model).set_params(verbose=2).fit(X, y)
    assert clone(model).set_params(verbose=1).fit(X, y).gap_ <= model.tol


def test_a_notebook_without_its_widgets_is_told_so(monkeypatch):
    screen = Console(file=io.StringIO(), force_jupyter=True)
    monkeypatch.setattr(tessella.progress, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"needs ipywidgets.*verbose=1"):
        ProgressDisplay(1e-3, console=screen)


def test_part_done():
    assert part_done(np.inf, np.inf, 1e-3) == 0.0
    assert part_done(2.0, 1.0, 1e-3) == 0.0
    assert part_done(1.0, 1.0, 1e-3) == 0.0
    assert part_done(1e-4, 1.0, 1e-3) == 1.0
    assert part_done(1e-4, 1e-5, 1e-3) == 1.0
    assert part_done(10**-1.5, 1.0, 1e-3) == pytest.approx(0.5)
