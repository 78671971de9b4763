from dataclasses import replace

import numpy as np
import pytest
from datasets.conftest import write_table

from tessella import datasets
from tessella.datasets import DataError, Dataset

PAPER = {
    *("liver", "cancer_wbc", "heart", "pima", "hill_valley", "shill_bidding", "abalone"),
    *("transfusion", "german_numer", "fourclass", "gas_turbine", "airfoil", "ccpp", "cadata"),
    *("space_ga", "boston"),
}
COLUMNS = ["sex", "length", "target"]  # of the abalone of the tests


# ------------------------------------------------------------------------------------ registry


def test_registry_holds_the_papers_sixteen_and_two_more():
    assert set(datasets.names()) == PAPER | {"cpusmall", "gas_turbine_nox"}
    assert len(datasets.names("classification")) == 10
    assert set(datasets.names("classification")).isdisjoint(datasets.names("regression"))


@pytest.mark.parametrize("name", sorted(PAPER))
def test_entries_are_complete(name):
    info = datasets.describe(name)
    assert info.name == name
    for text in (info.title, info.source, info.licence, info.citation, info.target_rule):
        assert text
    assert len(info.checksum) == 64
    assert min(info.shape) > 0


def test_unknown_names_are_answered_with_near_ones():
    with pytest.raises(ValueError, match="Did you mean 'abalone'"):
        datasets.describe("abalon")
    with pytest.raises(ValueError, match="task='clustering' must be one of"):
        datasets.names("clustering")


# ------------------------------------------------------------------------------------- loading


def test_abalone_is_mature_from_nine_rings(home):
    data = datasets.load(home["infos"]["abalone"])
    np.testing.assert_array_equal(data.X, home["abalone"][:, :2])
    np.testing.assert_array_equal(data.y, home["abalone"][:, 2] >= 9)
    assert data.task == "classification"
    assert data.y.dtype == np.int64
    assert data.feature_names == ("sex", "length")
    assert {8.0, 9.0} <= set(home["abalone"][:, 2])  # both sides of the border are tried


def test_gas_turbine_predicts_the_yield_from_everything_else_and_the_year(home):
    table = home["gas_turbine"]
    data = datasets.load(home["infos"]["gas_turbine"])
    assert data.feature_names == ("AT", "CDP", "CO", "NOX", "year")
    np.testing.assert_array_equal(data.y, table[:, 1])
    np.testing.assert_array_equal(data.X[:, :4], table[:, [0, 2, 3, 4]])
    np.testing.assert_array_equal(data.X[:, 4], [2011] * 4 + [2012] * 6)
    other = datasets.load(home["infos"]["gas_turbine_nox"])  # of the same file
    assert other.feature_names == ("AT", "TEY", "CDP")
    np.testing.assert_array_equal(other.y, table[:, 4])


def test_names_stand_for_the_descriptions_of_the_registry(home):
    by_name = datasets.load("abalone", verify=False)
    described = datasets.load(home["infos"]["abalone"])
    assert by_name.name == described.name == "abalone"
    np.testing.assert_array_equal(by_name.X, described.X)
    np.testing.assert_array_equal(by_name.y, described.y)
    old = datasets.load(replace(home["infos"]["abalone"], threshold=12.0))
    np.testing.assert_array_equal(old.y, home["abalone"][:, 2] >= 12)


def test_sets_of_ones_own(home):
    data = datasets.load("own")
    np.testing.assert_array_equal(data.X, home["own"][:, :3])
    np.testing.assert_array_equal(data.y, np.tile([0, 1], 10))
    assert datasets.names_in() == ("abalone", "gas_turbine", "gas_turbine_nox", "own")


def test_data_home_comes_before_the_environment(home, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    (other / "abalone.csv.gz").write_bytes((home["folder"] / "abalone.csv.gz").read_bytes())
    (home["folder"] / "abalone.csv.gz").unlink()
    assert len(datasets.load(home["infos"]["abalone"], other).y) == 30


def test_checksum_is_of_the_rows_in_any_order(home):
    """The description in `home` has the checksum of the rows as they were written first."""
    info = home["infos"]["abalone"]
    file, columns, table = home["folder"] / "abalone.csv.gz", COLUMNS, home["abalone"]
    order = np.random.default_rng(1).permutation(len(table))
    write_table(file, columns, table[order])
    np.testing.assert_array_equal(datasets.load(info).X, table[order, :2])
    nudged = table.copy()
    nudged[3, 1] = np.nextafter(nudged[3, 1], 9.0)
    for other in (table[:, [1, 0, 2]], nudged, table[1:], np.vstack([table, table[:1]])):
        write_table(file, columns, other)
        with pytest.raises(DataError, match="the checksum of its rows differs"):
            datasets.load(info)


def test_wrong_rows_are_refused_unless_wanted(home):
    assert datasets.describe("abalone").checksum != home["infos"]["abalone"].checksum
    with pytest.raises(DataError, match=r"abalone.csv.gz has 30 rows .* checksum .*verify=False"):
        datasets.load("abalone")
    assert len(datasets.load("abalone", verify=False).y) == 30


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("abalonne", "Did you mean 'abalone'"),
        ("picture", "not a table of features and a target: picture.npz"),
        ("gone", "gone.csv.gz is listed in the manifest of its folder but does not exist"),
        ("fourclass", "no copy of 'fourclass' on OpenML is known.*LIBSVM"),
    ],
)
def test_sets_that_are_not_there(home, name, text):
    with pytest.raises(DataError, match=text):
        datasets.load(name)


def test_missing_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("TESSELLA_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(DataError, match=r"TESSELLA_DATA names .*nowhere.* not a folder"):
        datasets.load("abalone")
    with pytest.raises(DataError, match="data_home names"):
        datasets.load("abalone", tmp_path / "no")


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"a,target\n1,x\n", "not a table of numbers"),
        (b"a,b,target\n1,2\n", "header has 3 columns, but the rows have 2"),
        (b"a,target\n1,nan\n", "missing or infinite"),
    ],
)
def test_files_that_are_not_tables(tmp_path, content, text):
    (tmp_path / "MANIFEST.json").write_text(
        '{"sets": [{"name": "own", "file": "own.csv", "task": "regression"}]}'
    )
    (tmp_path / "own.csv").write_bytes(content)
    with pytest.raises(DataError, match=text):
        datasets.load("own", tmp_path)


def test_damaged_files(tmp_path):
    (tmp_path / "fourclass.csv.gz").write_bytes(b"no gzip")
    with pytest.raises(DataError, match="not a table"):
        datasets.load("fourclass", tmp_path)
    (tmp_path / "MANIFEST.json").write_text("[]")
    with pytest.raises(DataError, match="not a manifest"):
        datasets.load("fourclass", tmp_path)


# -------------------------------------------------------------------------------------- splits


def rows(count):
    return Dataset("rows", "regression", np.zeros((count, 1)), np.zeros(count), ("x",))


def test_divisions_are_fixed_disjoint_and_complete():
    train, test = rows(11).split(3)
    np.testing.assert_array_equal(test, [4, 5])  # for all time
    np.testing.assert_array_equal(np.sort(np.concatenate([train, test])), np.arange(11))
    assert not np.array_equal(test, rows(11).split(4)[1])
    assert len(rows(1000).split(0)[1]) == 200


def test_divisions_need_rows():
    with pytest.raises(ValueError, match="gives 2 training rows and 0 test rows"):
        rows(2).split(0)
