"""scikit-learn's callbacks, where it has them."""

import io

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import tessella
from tessella import LearnedKernelSVC, LearnedKernelSVR

callback = pytest.importorskip("sklearn.callback")


class Recorder:
    """A callback that writes down what it is told."""

    def __init__(self, stop_at=None):
        self.events = []
        self.fitted = []
        self._stop_at = stop_at

    def setup(self, estimator, context):
        self.events.append("setup")

    def teardown(self, estimator, context):
        self.events.append("teardown")

    def on_fit_task_begin(self, estimator, context):
        self.events.append(("begin", context.task_name))

    def on_fit_task_end(self, estimator, context, *, X=None, y=None, fitted_estimator=None):
        self.events.append(("end", context.task_name))
        if context.task_name == "iteration":
            self.fitted.append((fitted_estimator, fitted_estimator.score(X, y)))
            return len(self.fitted) == self._stop_at
        return False


def test_tasks_follow_the_gap(circles):
    X, y = circles
    recorder = Recorder()
    model = LearnedKernelSVC(tol=1e-3).set_callbacks(recorder).fit(X, y)
    events = recorder.events
    assert events[:3] == ["setup", ("begin", "fit"), ("begin", "gap 1e-01")]
    assert events[-3:] == [("end", "gap 1e-03"), ("end", "fit"), "teardown"]
    stages = [name for kind, name in events[1:-1] if kind == "begin" and name.startswith("gap")]
    assert stages == ["gap 1e-01", "gap 1e-02", "gap 1e-03"]
    iterations = [event for event in events if event == ("end", "iteration")]
    assert len(iterations) == len(model.history_)
    # An iteration belongs to the order of magnitude that it started in.
    before = sum(record.gap > 0.1 for record in model.history_) + 1
    assert events.index(("end", "gap 1e-01")) == 3 + 2 * before


def test_callbacks_see_fitted_models(every_case):
    model, X, y = every_case
    recorder = Recorder()
    model = clone(model).set_callbacks(recorder).fit(X, y)
    gaps = [fitted.gap_ for fitted, _ in recorder.fitted]
    assert gaps == [record.gap for record in model.history_]
    assert recorder.fitted[-1][1] == pytest.approx(model.score(X, y), abs=0.02)


def test_a_callback_can_stop_the_fit(every_case):
    model, X, y = every_case
    model = clone(model).set_params(tol=1e-12).set_callbacks(Recorder(stop_at=2))
    with pytest.warns(ConvergenceWarning, match="stopped by a callback"):
        model.fit(X, y)
    assert len(model.history_) == 2
    assert np.isfinite(model.gap_)


def test_teardown_whatever_happens(circles):
    X, y = circles
    recorder = Recorder()
    model = LearnedKernelSVC().fit(X, y).set_callbacks(recorder)
    before = dict(vars(model))

    def fail(record):
        raise RuntimeError("mine")

    with pytest.raises(RuntimeError, match="mine"):
        model._fit(X, y, callback=fail)
    assert recorder.events[-1] == "teardown"
    assert vars(model) == before
    recorder.events.clear()
    with pytest.raises(ValueError, match="NaN"):
        model.fit(np.full_like(X, np.nan), y)
    assert recorder.events[-1] == "teardown"


def test_scikit_learns_progress_bar_shows_the_gap(circles, monkeypatch):
    console = pytest.importorskip("rich.console")
    import rich.progress

    screen = console.Console(file=io.StringIO(), force_terminal=True, width=100)
    monkeypatch.setattr(rich.progress, "get_console", lambda: screen)
    X, y = circles
    LearnedKernelSVC(tol=1e-3).set_callbacks(callback.ProgressBar()).fit(X, y)
    text = screen.file.getvalue()
    for part in ("LearnedKernelSVC - fit", "gap 1e-01", "gap 1e-02", "gap 1e-03", "100%"):
        assert part in text


def test_scoring_monitor_within_a_pipeline(circles):
    X, y = circles
    monitor = callback.ScoringMonitor(scoring="accuracy")
    model = LearnedKernelSVC().set_callbacks(monitor)
    pipeline = make_pipeline(StandardScaler(), model).fit(X, y)
    data = monitor.get_logs().data
    assert len(data) == len(pipeline[-1].history_) + 1
    assert data[-1]["accuracy"] == pytest.approx(pipeline.score(X, y))


def test_progress_of_a_pipeline_reaches_the_solver(circles):
    X, y = circles

    class Propagated(Recorder):
        max_propagation_depth = None

        def on_fit_task_end(self, estimator, context, *, fitted_estimator=None):
            self.events.append(("end", context.task_name))

    recorder = Propagated()
    make_pipeline(StandardScaler(), LearnedKernelSVC()).set_callbacks(recorder).fit(X, y)
    assert ("end", "gap 1e-03") in recorder.events
    assert recorder.events.count("teardown") == 1


def test_callbacks_are_no_part_of_a_saved_model(circles, tmp_path):
    X, y = circles
    model = LearnedKernelSVC().set_callbacks(Recorder()).fit(X, y)
    tessella.save(model, tmp_path / "model.tsl")
    assert (tessella.load(tmp_path / "model.tsl").predict(X) == model.predict(X)).all()


def test_what_is_no_callback_is_refused():
    with pytest.raises(TypeError, match="callbacks"):
        LearnedKernelSVR().set_callbacks(print)


@pytest.mark.parametrize(
    ("tol", "name"), [(0.5, "gap 5e-01"), (0.1, "gap 1e-01"), (20.0, "gap 2e+01")]
)
def test_a_large_tolerance_is_one_stage(circles, tol, name):
    recorder = Recorder()
    LearnedKernelSVC(tol=tol).set_callbacks(recorder).fit(*circles)
    begun = [event[1] for event in recorder.events if event[0] == "begin"]
    assert [task for task in begun if task.startswith("gap")] == [name]
