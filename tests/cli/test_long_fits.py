"""``tessella fit`` for fits that take long."""

import re

import pytest

import tessella

COMMAND = (
    "fit train.csv --model learned-kernel --target group -o m.tsl --force --tol 1e-9 "
    "--checkpoint fit.ckpt"
)


@pytest.fixture
def table(people, tmp_path):
    people.drop(columns="income").to_csv(tmp_path / "train.csv", index=False)
    return tmp_path


def test_the_same_command_goes_on(run, table):
    short = run(f"{COMMAND} --max-iter 1")
    assert short.exit_code == 0
    assert "not converged (iteration limit)" in short.stderr
    assert short.stderr.endswith("; the same command continues from fit.ckpt\n")
    first = tessella.load(table / "m.tsl")
    result = run(COMMAND)
    assert result.exit_code == 0
    assert result.stderr == ""
    second = tessella.load(table / "m.tsl")
    assert second.status_ == "optimal"
    assert second.history_[: len(first.history_)] == first.history_


def test_the_checkpoint_of_another_fit_is_refused(run, fails, table):
    run(f"{COMMAND} --max-iter 1")
    fails(f"{COMMAND} --C 3", "fit.ckpt is the checkpoint of another fit", "C, weights")
    fails(COMMAND.replace("fit.ckpt", "missing/fit.ckpt"), "there is no directory")
    (table / "fit.ckpt").write_text("something else")
    fails(COMMAND, "not a Tessella checkpoint", "Delete it")


def test_a_checkpoint_is_not_a_model(run, fails, table):
    run(f"{COMMAND} --max-iter 1")
    fails("info fit.ckpt", "this is the checkpoint of a fit, not a model")


def test_progress_goes_to_a_terminal_only(run, table, monkeypatch):
    assert run(COMMAND).stderr == ""
    # What rich takes for a terminal of that width, wherever its output goes.
    for name, value in {"FORCE_COLOR": "1", "TERM": "xterm-256color", "COLUMNS": "160"}.items():
        monkeypatch.setenv(name, value)
    written = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", run(COMMAND).stderr)
    assert "gap" in written
    assert "→ 1e-09" in written
