"""The console script as a process, and the demo."""

import os
import re
import subprocess
import sys

import pytest

import tessella

MAIN = "from tessella.cli import main; main()"


def shell(*arguments, cwd, program=MAIN):
    return subprocess.run(
        [sys.executable, "-c", program, *arguments], cwd=cwd, capture_output=True, text=True
    )


def test_exit_codes_of_the_process(tmp_path):
    result = shell("info", "missing.tsl", cwd=tmp_path)
    assert result.returncode == 2
    assert result.stdout == ""
    assert result.stderr == "tessella: error: missing.tsl: No such file or directory\n"


def test_process_that_works(people, tmp_path):
    people.to_csv(tmp_path / "train.csv", index=False)
    arguments = "fit train.csv --target group -o model.tsl"
    result = shell(*arguments.split(), cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert "\x1b" not in result.stdout + result.stderr


@pytest.mark.parametrize("package", ["typer", "rich", "pyarrow"])
def test_missing_packages(package, tmp_path):
    hidden = f"import sys; sys.modules[{package!r}] = None; {MAIN}"
    result = shell("--version", cwd=tmp_path, program=hidden)
    assert result.returncode == 1
    assert result.stdout == ""
    assert result.stderr == (
        f"tessella: error: the command line needs the package {package}; install all packages "
        "that it needs with python -m pip install 'tessella[cli]'\n"
    )


def test_run_as_a_module(tmp_path):
    command = [sys.executable, "-m", "tessella", "--version"]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert result.stdout == f"tessella {tessella.__version__}\n", result.stderr


def test_package_imports_nothing_extra(tmp_path):
    program = (
        "import sys, tessella.cli\n"
        "assert not {'typer', 'matplotlib'} & set(sys.modules)\n"
        "assert not [name for name in sys.modules if name.startswith('tessella.cli.')]"
    )
    assert shell(cwd=tmp_path, program=program).returncode == 0


def test_version_and_help(run):
    assert run("--version").stdout == f"tessella {tessella.__version__}\n"
    assert run("--help").exit_code == 0
    assert run("fit --help").exit_code == 0
    assert run("unknown").exit_code == 2


# --------------------------------------------------------------------------------------- demo


@pytest.fixture
def quick(monkeypatch):
    """Less effort: what the demo shows is tested here, not how well it learns."""
    for cls in (tessella.TessellaClassifier, tessella.TessellaRegressor):

        def hurried(self, *arguments, original=cls._fit):
            return original(self.set_params(effort="low", refine=False), *arguments)

        monkeypatch.setattr(cls, "_fit", hurried)


def test_demo_as_it_is(run, tmp_path):
    result = run("demo --no-plot")
    assert result.exit_code == 0, result.output
    for text in ("Digits", "Diabetes", "Tessella", "RBF SVM", "Logistic", "Ridge", "certified"):
        assert text in result.stdout
    # What the two data sets are there for.
    assert "Digits: a kernel has something to learn." in result.stdout
    assert "Diabetes: a kernel has nothing to learn." in result.stdout
    assert not os.listdir(tmp_path)


def test_demo_writes_a_picture(run, quick, tmp_path):
    result = run("demo --output picture.png")
    assert result.exit_code == 0, result.output
    assert "Figure: picture.png" in result.stdout
    assert "Warning" not in result.output
    assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")


def test_demo_picture_tells_the_scores_of_the_table(run, quick, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    result = run("demo --output picture.svg")
    assert result.exit_code == 0, result.output
    picture = (tmp_path / "picture.svg").read_text()
    scores = re.findall(
        r"│ (?:Tessella|RBF SVM|L\w+ regression|R\w+ regression) +│ +(\S+) ", result.stdout
    )
    assert len(scores) == 6
    for score in scores:
        assert score in picture


def test_demo_without_matplotlib(run, quick, monkeypatch, tmp_path):
    for name in [name for name in sys.modules if name.startswith("tessella.cli.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    monkeypatch.setitem(sys.modules, "matplotlib.colors", None)
    result = run("demo")
    assert result.exit_code == 0, result.output
    assert "note: no figure without matplotlib" in result.stderr
    assert not os.listdir(tmp_path)


def test_demo_outputs_that_cannot_be(fails):
    fails("demo --output missing/picture.png", "the directory missing does not exist")
    fails("demo --output picture.doc", "use a name that ends in one of .png")
