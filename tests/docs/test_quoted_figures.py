"""README and documentation quote the committed JSON, and the check of that finds what drifts."""

from __future__ import annotations

import importlib
import json
import shutil
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def quoted():
    """The checker; it imports its neighbour, as a script does."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "docs" / "_ext"))
        return importlib.import_module("quoted_figures")


@pytest.fixture(scope="module")
def values(quoted):
    """The figures that it takes for granted."""
    return sys.modules[quoted.Figure.__module__]


def test_every_figure_agrees_with_its_file(quoted):
    problems = quoted.check(ROOT)
    advice = f"python docs/_ext/quoted_figures.py --update, or an entry in {quoted.TABLE}"
    assert not problems, "\n".join([*problems, advice])


# ------------------------------------------------------------------------- what the check notices


@pytest.fixture
def copy(quoted, values, tmp_path):
    """Everything the check reads, to be spoiled."""
    quotes = quoted.read_table(ROOT / quoted.TABLE).quotes
    names = [
        *quoted.pages(ROOT),
        *(quote.file for quote in quotes),
        quoted.TABLE,
        quoted.PICTURE,
        *values.SOURCES,
    ]
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def replace(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def change(path: Path, edit) -> None:
    content = json.loads(path.read_text())
    edit(content)
    path.write_text(json.dumps(content))


def fits_of(speed):
    (row,) = (row for row in speed["rows"] if row["row"] == 3)
    return row["cells"]


def test_a_changed_text_is_found_and_mended(quoted, values, copy):
    before = (copy / "README.md").read_text()
    figure = values.all_figures(ROOT)["fit-ratio-least"].text
    replace(copy / "README.md", f"takes {figure} to", "takes 0.0123 to")
    (problem,) = quoted.check(copy)
    assert 'says "0.0123"' in problem
    assert "benchmarks/results/speed.json" in problem
    assert quoted.update(copy) == [f'README.md: "0.0123" is now "{figure}" (fit-ratio-least)']
    assert (copy / "README.md").read_text() == before
    assert quoted.check(copy) == quoted.update(copy) == []


def test_a_new_measurement_is_written_wherever_it_is_quoted(quoted, values, copy):
    def slower(tuning):
        for result in tuning["results"]:
            if result["by"] == "KernelPathCV":
                result["ratio"] *= 11.0

    change(copy / "benchmarks/results/tuning.json", slower)
    assert {p.split(":")[0] for p in quoted.check(copy)} == {
        "README.md",
        "docs/architecture.md",
        "docs/guide/parameters.md",
    }
    quoted.update(copy)
    assert quoted.check(copy) == []
    most = values.all_figures(copy)["tuning-ratio-most"].text
    assert f"{most} times faster" in (copy / "README.md").read_text()


def test_a_table_is_a_figure_too(quoted, values, copy):
    path = copy / "benchmarks/reports/figures/README.md"
    before = path.read_text()
    line = values.all_figures(copy)["terrain-table"].text.splitlines()[1]
    path.write_text(before.replace(line + "\n", ""))
    (problem,) = quoted.check(copy)
    assert "terrain-table" in problem
    assert len(quoted.update(copy)) == 1
    assert path.read_text() == before


def test_a_file_that_lacks_what_is_quoted(quoted, copy):
    change(copy / "benchmarks/results/balance.json", lambda balance: balance.pop("results"))
    with pytest.raises(ValueError, match=r"balance\.json lacks .*'results'"):
        quoted.check(copy)


def test_a_text_that_was_rewritten_or_doubled(quoted, copy):
    replace(copy / "docs/guide/solvers.md", "O(m³) a step", "O(m^3) a step")
    problems = quoted.check(copy)
    assert any("found 0 times instead of once" in p for p in problems)
    assert sum("looks measured" in p for p in problems) == 2
    text = (copy / "README.md").read_text()
    (copy / "README.md").write_text(text + text)
    assert any("found 2 times instead of once" in p for p in quoted.check(copy))
    assert quoted.update(copy) == []  # nothing is guessed


def test_a_figure_without_an_entry(quoted, copy):
    path = copy / "docs/why.md"
    path.write_text(f"{path.read_text()}\nIt is 12 times faster.\n\n    x\n\n`30 s` and $4.5$\n")
    (problem,) = quoted.check(copy)
    line = path.read_text().splitlines().index("It is 12 times faster.") + 1
    assert problem.startswith(f"docs/why.md:{line}: '12' looks measured")


def test_an_exemption_that_exempts_nothing(quoted, copy):
    path = copy / quoted.TABLE
    path.write_text(
        f'{path.read_text()}\n[[exempt]]\nfile = "README.md"\ntext = "77 times"\nreason = "-"\n'
    )
    assert quoted.check(copy) == ['README.md: exempts nothing: "77 times"']


def test_a_claim_in_words_that_no_longer_holds(quoted, copy):
    def dearer(speed):
        for cell in fits_of(speed):
            cell["ratio"] = 7.0

    change(copy / "benchmarks/results/speed.json", dearer)
    quoted.update(copy)
    (problem,) = quoted.check(copy)
    assert "needs fit-ratio-median between 0.5 and 1.5" in problem
    replace(copy / "README.md", "About the price of one plain SVM.", "")
    (problem,) = quoted.check(copy)
    assert "no longer claims" in problem


def test_a_picture_of_other_data_is_drawn_again(quoted, copy):
    def longer(report):
        for row in report["tables"]["classification"]["rows"]:
            for cell in row["cells"].values():
                if "fit_seconds" in cell:
                    cell["fit_seconds"] += 1000.0

    change(copy / quoted.REPORT, longer)
    assert f"{quoted.PICTURE} was drawn from other data." in quoted.check(copy)
    assert f"{quoted.PICTURE}: drawn" in quoted.update(copy)
    assert quoted.check(copy) == []


def test_a_report_with_nothing_to_compare(quoted, copy):
    change(copy / quoted.REPORT, lambda report: report["tables"].clear())
    problems = quoted.check(copy)
    assert f"{quoted.PICTURE} was drawn from other data." in problems
    assert any("there is no figure overview-" in p for p in problems)
    quoted.update(copy)  # leaves what it cannot say


def test_the_table_is_checked(quoted, tmp_path):
    path = tmp_path / "table.toml"
    path.write_text('[[quote]]\nfile = "README.md"\ntext = "it takes {large-seconds}"\n')
    with pytest.raises(ValueError, match="words before, after and between"):
        quoted.read_table(path)
    path.write_text("[[quotes]]\n")
    with pytest.raises(ValueError, match="'quotes'"):
        quoted.read_table(path)


# --------------------------------------------------------------------------------------- its rules


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("takes 17 s and 2.9 GB", ["17", "2.9"]),
        ("13 to 40 steps", ["13", "40"]),
        ("two to five rounds", ["two", "five"]),
        ("12 Cholesky factorisations", ["12"]),
        ("raises it from 76 % to 85 %", ["76", "85"]),
        ("an accuracy of 0.981", ["0.981"]),
        ("half of its time", ["half"]),
        ("a gap of 9.5e-04", ["9.5e-04"]),
        ("hundreds of SVMs", ["hundreds"]),
        ("twice as fast", ["twice"]),
        ("1,200 times\nfaster", ["1,200"]),
        ("29,386 rows of nine features in section 3", []),
        ("a gap of 1e-6, version 1.2.3, `17 s`, $0.5 x$, [text](v0.5)", []),
        ("the tessellated half of the kernel", []),
    ],
)
def test_what_looks_measured(quoted, text, numbers):
    assert [text[a:b] for a, b in quoted.measured(text)] == numbers


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0147, "0.015"), (0.996, "1.0"), (17.19, "17"), (142.8, "140"), (2.6058, "2.6"), (0, "0")],
)
def test_two_digits(values, value, text):
    assert values.digits(value) == text


def test_every_figure_is_quoted(quoted, capsys):
    assert quoted.main(["--list"]) == 0
    assert "quoted by nobody" not in capsys.readouterr().out
