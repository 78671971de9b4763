"""The live display of a fit."""

import io
import sys
from types import ModuleType, SimpleNamespace

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
    display = tessella.estimators._solving.ProgressDisplay
    monkeypatch.setattr(
        tessella.estimators._solving, "ProgressDisplay", lambda tol: display(tol, console=screen)
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


class Notebook:
    """Stands for IPython: keeps every output, and the clock of the line from running."""

    def __init__(self, monkeypatch):
        self.outputs = []
        monkeypatch.setattr(tessella.progress, "_REDRAWN_EVERY", 3600.0)
        ipython, display = ModuleType("IPython"), ModuleType("IPython.display")
        ipython.get_ipython = lambda: SimpleNamespace(kernel=self)
        display.display = self.show
        monkeypatch.setitem(sys.modules, "IPython", ipython)
        monkeypatch.setitem(sys.modules, "IPython.display", display)
        monkeypatch.setitem(sys.modules, "rich.progress", None)  # nothing else is needed

    def show(self, bundle, *, raw, display_id):
        assert raw
        assert display_id
        self.outputs.append(bundle)
        return SimpleNamespace(update=lambda bundle, raw: self.outputs.append(bundle))


def test_a_notebook_has_a_line_of_html_that_stays(case, monkeypatch, capsys):
    notebook = Notebook(monkeypatch)
    model, X, y = case
    model = clone(model).set_params(verbose=2).fit(X, y)
    first, last = notebook.outputs[0], notebook.outputs[-1]
    assert first["text/plain"] == "preparing  0:00:00"
    end = model.history_[-1]
    state = f"gap {end.gap:.1e} → 1e-03  value {end.value:.5g}  SVMs {end.n_svm}"
    assert last["text/plain"].startswith(f"done  {state}")
    assert '<progress max="1" value="1.000">' in last["text/html"]
    assert capsys.readouterr().out == ""


def test_a_notebook_sees_phases_and_a_clock_while_they_last(monkeypatch):
    notebook = Notebook(monkeypatch)
    monkeypatch.setattr(tessella.progress, "_REDRAWN_EVERY", 1e-3)
    with ProgressDisplay(1e-3) as display:
        display.phase("SVM 1 of <many> rows")
        begin = display._progress._begin
        display._progress._begin = begin - 3725
        while "1:02:0" not in notebook.outputs[-1]["text/plain"]:
            display._progress._over.wait(1e-3)
    assert any("SVM 1 of &lt;many&gt; rows" in out["text/html"] for out in notebook.outputs)
    assert not display._progress._clock.is_alive()


def test_a_failed_fit_in_a_notebook_is_not_done(monkeypatch):
    notebook = Notebook(monkeypatch)
    with pytest.raises(KeyboardInterrupt), ProgressDisplay(1e-3):
        raise KeyboardInterrupt
    assert notebook.outputs[-1]["text/plain"].startswith("stopped")


def test_ipython_on_a_terminal_is_no_notebook(monkeypatch):
    ipython = ModuleType("IPython")
    ipython.get_ipython = object
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    assert not tessella.progress._in_notebook()
    monkeypatch.delitem(sys.modules, "IPython")
    assert not tessella.progress._in_notebook()
