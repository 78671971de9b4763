"""The campaign itself: cases follow from their numbers, and hangs and crashes are counted."""

import json
import os
import signal
import sys

import numpy as np
import pytest

from tessella_bench.campaign import _command, _fits, _inputs, _parts, _problems, _runner
from tessella_bench.campaign._outcome import (
    CRASH,
    DEFECTS,
    FALSE,
    FINE,
    HANG,
    REFUSED,
    UNCLEAR,
    Outcome,
    is_clear,
    judged,
)
from tessella_bench.campaign._parts import PARTS, Part
from tessella_bench.campaign._record import RecordFile, Result
from tessella_bench.campaign._report import document, table

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


def outcomes(part, numbers):
    return {result.number: result.outcome for result in _runner.run_batch(part, numbers)}


@pytest.mark.parametrize(
    ("part", "numbers"),
    [
        ("fits", [0, 1, 5]),
        ("inputs", [0, 150, 400]),
        ("files", [0, 1, 2, 3, 4, 5, 6, 7]),
        pytest.param("kills", [0, 1, 2], marks=needs_fork),
        pytest.param("interrupts", [0, 1], marks=needs_fork),
        pytest.param("processes", [0, 4], marks=needs_fork),
        pytest.param("memory", [0, 1], marks=needs_fork),
        ("deadlines", [0, 1]),
    ],
)
def test_every_part_runs_and_finds_nothing(part, numbers):
    found = outcomes(PARTS[part], numbers)
    assert sorted(found) == numbers
    assert not [own for own in found.values() if own.verdict in DEFECTS]


def test_problems_follow_from_their_numbers():
    def problem(seed):
        return _problems.random_problem(np.random.default_rng(seed), _fits.ESTIMATORS)

    for seed in range(20):
        one, other = problem(seed), problem(seed)
        assert repr(one.model) == repr(other.model)
        np.testing.assert_array_equal(one.X, other.X)
        np.testing.assert_array_equal(one.y, other.y)
        assert 2 <= len(one.X) <= 60
        assert np.isfinite(one.X).all()


def test_problems_cover_what_they_should():
    drawn = [
        _problems.random_problem(np.random.default_rng(seed), _fits.ESTIMATORS)
        for seed in range(400)
    ]
    assert {type(own.model).__name__ for own in drawn} == set(_fits.ESTIMATORS)
    sizes = [np.abs(own.X).max() for own in drawn]
    assert min(sizes) < 1e-100
    assert max(sizes) > 1e100
    weights = [own.model.C for own in drawn]
    assert min(weights) < 1e-5
    assert max(weights) > 1e8
    assert any(own.weight is not None and (own.weight == 0).any() for own in drawn)
    classes = [len(np.unique(own.y)) for own in drawn if hasattr(own.model, "class_weight")]
    assert set(classes) == {2, 3, 4}


def test_the_table_of_inputs_is_large_and_has_no_row_twice():
    names = [own.name for own in _inputs.table()]
    assert len(names) == len(set(names)) == PARTS["inputs"].count >= 150


# ---- what a case has found


def test_false_claims_are_found():
    problem = _problems.random_problem(np.random.default_rng(3), ["LearnedKernelSVC"])
    model = problem.model.set_params(C=1.0, tol=1e-3).fit(problem.X, problem.y, problem.weight)
    assert _fits._checked("case", model, problem).verdict != FALSE
    model.lower_bound_ = 1.01 * model.objective_
    model.gap_ = 0.0
    assert _fits._checked("case", model, problem).verdict == FALSE


def test_errors_of_the_machinery_are_not_clear():
    def of(work):
        try:
            work()
        except Exception as error:
            return is_clear(error)

    from tessella import LearnedKernelSVC

    assert of(lambda: LearnedKernelSVC(C=-1.0).fit(np.eye(3), [0, 1, 1]))
    assert of(lambda: LearnedKernelSVC().fit(np.full((3, 3), np.nan), [0, 1, 1]))
    assert not of(lambda: np.zeros(3) + np.zeros(4))
    assert not of(lambda: 1 / 0)
    assert not of(lambda: {}["a"])
    assert judged("case", ZeroDivisionError("x")).verdict == UNCLEAR
    assert judged("case", MemoryError()).verdict == REFUSED


# ---- processes

MODULE = """
import os, signal, time
from tessella_bench.campaign._outcome import Outcome

def run(number, folder):
    if number == 1:
        os.kill(os.getpid(), signal.SIGSEGV)
    if number == 2:
        time.sleep(1000)
    if number == 3:
        raise KeyError("unclear")
    print("something that a library prints")
    return Outcome("fine", "fake", str(folder.is_dir()))
"""


@pytest.fixture
def fake_part(tmp_path, monkeypatch):
    """A part whose cases crash, hang and fail, in a module that workers can import."""
    sitecustomize = f"""
import sys, types
from tessella_bench.campaign import _parts
module = types.ModuleType("tessella_bench.campaign._fake")
exec({MODULE!r}, vars(module))
sys.modules["tessella_bench.campaign._fake"] = module
_parts.PARTS["fake"] = _parts.Part("fake", "_fake", 2.0, 10, 6)
"""
    (tmp_path / "sitecustomize.py").write_text(sitecustomize)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    part = Part("fake", "_fake", 2.0, 10, 6)
    monkeypatch.setitem(_parts.PARTS, "fake", part)
    return part


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_crashes_and_hangs_are_counted_and_the_others_run(fake_part):
    found = outcomes(fake_part, [0, 1, 2, 3, 4])
    assert [found[k].verdict for k in range(5)] == [FINE, CRASH, HANG, UNCLEAR, FINE]
    assert signal.Signals.SIGSEGV.name in found[1].detail
    assert found[0].detail == "True"  # it had a folder of its own
    assert "KeyError" in found[3].detail


def test_one_process_runs_all_cases_of_a_batch(fake_part, monkeypatch):
    started = []
    popen = _runner.subprocess.Popen
    monkeypatch.setattr(
        _runner.subprocess, "Popen", lambda *a, **k: started.append(a) or popen(*a, **k)
    )
    assert len(outcomes(fake_part, range(10, 18))) == 8
    assert len(started) == 1


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_a_campaign_goes_on_where_it_stopped(fake_part, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(_command, "PARTS", _parts.PARTS)
    options = ["--part", "fake", "--folder", str(tmp_path / "out")]
    assert _command.main([*options, "--count", "1"]) == 0
    record = tmp_path / "out" / "record.jsonl"
    first = record.read_text()
    assert _command.main([*options, "--count", "2", "--jobs", "2"]) == 1
    assert record.read_text().startswith(first)
    assert [json.loads(line)["number"] for line in record.read_text().splitlines()] == [0, 1]
    assert "fake: 1 of 2 cases to run" in capsys.readouterr().out
    assert _command.main([*options, "--count", "2", "--again"]) == 1
    assert len(record.read_text().splitlines()) == 3
    assert _command.main([*options, "--seconds", "0"]) == 1  # no time for another process
    assert len(record.read_text().splitlines()) == 3
    monkeypatch.setattr(_command, "code", lambda: "other-code")
    assert _command.main([*options, "--count", "1", "--current"]) == 1
    assert len(record.read_text().splitlines()) == 4
    assert "other-code" in (tmp_path / "out" / "report.md").read_text()


def test_one_case_by_its_number(capsys, tmp_path):
    assert _command.main(["--part", "inputs", "--case", "3", "--folder", str(tmp_path)]) == 0
    assert capsys.readouterr().out.startswith("inputs 3: refused")
    assert not list(tmp_path.iterdir())
    with pytest.raises(SystemExit, match="one --part"):
        _command.main(["--case", "3"])


# ---- record and report


def test_the_record_keeps_the_last_result_of_a_case(tmp_path):
    path = tmp_path / "new" / "record.jsonl"
    with RecordFile(path) as record:
        assert list(record.results()) == []
        record.add(Result("fits", 3, 1.0, Outcome(HANG, "process", "late")))
        record.add(Result("fits", 3, 2.0, Outcome(FINE, "LearnedKernelSVC", "optimal"), "ab-cd"))
        record.add(Result("files", 0, 0.1, Outcome(REFUSED, "model")))
    with path.open("a") as file:
        file.write('{"part": "fits", "num')  # a campaign that was killed
    with RecordFile(path) as record:
        record.add(Result("kills", 7, 0.1, Outcome(FINE, "save")))
    found = {(own.part, own.number): own for own in RecordFile(path).results()}
    assert set(found) == {("fits", 3), ("files", 0), ("kills", 7)}
    assert found["fits", 3] == Result(
        "fits", 3, 2.0, Outcome(FINE, "LearnedKernelSVC", "optimal"), "ab-cd"
    )


def test_the_report_counts_and_names_defects():
    results = [
        Result("fits", number, 1.0, Outcome(FINE, "LearnedKernelSVC", "optimal"))
        for number in range(1200)
    ]
    results.append(Result("fits", 1200, 1.0, Outcome(FALSE, "LearnedKernelSVR", "a | bound")))
    results.append(Result("kills", 0, 1.0, Outcome(CRASH, "save", "signal SIGSEGV")))
    lines = table(results).splitlines()
    assert lines[0].startswith("| part | cases | fine | refused | not converged | false certif")
    assert lines[2].replace(" ", "").startswith("|fits|1,201|1,200|0|0|1|0|")
    assert lines[-1].replace(" ", "").startswith("|**all**|1,202|1,200|0|0|1|0|1|")
    text = document(results)
    assert "`--part fits --case 1200`: **false certificate**" in text
    assert "| kills | save | 1 | 0 | 0 | 0 | 1 |" in text
    assert "same code" in text
    assert "None." in document(results[:3])
    assert table([]) == "No case has been run yet."
