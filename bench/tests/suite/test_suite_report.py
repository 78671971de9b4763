"""The report of the suite, from made-up cells."""

import math

import pytest

from tessella_bench import Cell, CellStore
from tessella_bench._cells import PROTOCOL
from tessella_bench._write import markdown
from tessella_bench.suite._comparison import compared
from tessella_bench.suite._document import suite_document
from tessella_bench.suite._pictures import draw_suite
from tessella_bench.suite._report import gather_suite

MACHINE = {"processor": "abacus", "usable_cores": 1, "memory_gib": 1.0, "system": "none"}


def put(store, dataset, method, error, *, split=0, rows=1000, seconds=1.0, **more):
    task = "regression" if dataset.startswith("r") else "classification"
    text = 2 if dataset.endswith("text") else 0
    record = {
        **{"dataset": dataset, "method": method, "split": split, "rows": rows},
        **{"protocol": PROTOCOL, "status": "ok", "time_cap": 600.0, "machine": MACHINE},
        **{"versions": {"numpy": "1"}, "task": task, "table_rows": 2000, "train_rows": 1000},
        **{"test_rows": 1000, "features": 4, "text_features": text, "division": "same"},
        **{"classes": None if task == "regression" else 3, "error": error, "params": {}},
        **{"seconds": 2 * seconds, "processor_seconds": seconds, "gap": None},
        "predict_processor_seconds": 0.1,
    } | more
    store.write(Cell(dataset, method, split, rows), record)


@pytest.fixture
def store(tmp_path):
    """Three sets; ours, a peer that is better on one, and one that fails on one."""
    store = CellStore(tmp_path / "cells")
    for dataset, ours, theirs in [("r1", 0.10, 0.20), ("r2text", 0.30, 0.10), ("c1", 0.20, 0.201)]:
        for split, shift in ((0, 0.01), (1, -0.01)):
            chances = {"log_loss": ours} if dataset == "c1" else {}
            put(store, dataset, "tessella", ours + shift, split=split, seconds=2.0, **chances)
            chances = {"log_loss": 0.1} if dataset == "c1" else {}
            put(store, dataset, "lightgbm-tuned", theirs, split=split, seconds=8.0, **chances)
    put(store, "r1", "forest", 0.05)
    put(store, "r1", "forest", 0.05, split=1)
    put(store, "r2text", "forest", "ValueError: no", status="failed")
    put(store, "c1", "forest", None, status="time-cap")
    return store


def report(store, **more):
    return gather_suite(store, **({"splits": 2} | more))


def part(store, **more):
    return report(store, **more)["sizes"]["1000"]


def row(found, name):
    return next(row for row in found["sets"] if row["name"] == name)


def test_value_of_a_set_is_the_mean_over_its_divisions(store):
    cell = row(part(store), "r1")["cells"]["tessella"]
    assert cell["state"] == "done"
    assert cell["error"] == pytest.approx(0.10)
    assert cell["deviation"] == pytest.approx(0.02 / math.sqrt(2))
    assert cell["processor_seconds"] == 2.0


def test_what_failed_or_was_ended_ranks_last_and_is_listed(store):
    found = part(store)
    ranks = found["ranks"]["all"]
    table = {
        name: dict(zip(ranks["methods"], values, strict=True))
        for name, values in zip(ranks["sets"], ranks["table"], strict=True)
    }
    assert table["r1"] == {"forest": 1, "tessella": 2, "lightgbm-tuned": 3}
    assert table["r2text"] == {"lightgbm-tuned": 1, "tessella": 2, "forest": 3}
    assert table["c1"] == {"tessella": 1, "lightgbm-tuned": 2, "forest": 3}
    assert [(f["dataset"], f["why"]) for f in found["failures"]] == [
        ("r2text", "ValueError: no"),
        ("c1", "more than 600 s"),
    ]


def test_groups_of_sets(store):
    ranks = part(store)["ranks"]
    assert set(ranks["regression"]["sets"]) == {"r1", "r2text"}
    assert ranks["classification"]["sets"] == ["c1"]
    assert ranks["mixed tables"]["sets"] == ["r2text"]
    assert ranks["all"]["critical_difference"] == pytest.approx(
        2.343 * math.sqrt(12 / 18), rel=1e-3
    )


def test_wins_ties_and_losses(store):
    found = part(store)["against"]
    assert found["lightgbm-tuned"]["all"] == {"wins": 1, "ties": 1, "losses": 1}
    assert found["forest"]["all"] == {"wins": 2, "ties": 0, "losses": 1}
    assert found["forest"]["mixed tables"] == {"wins": 1, "ties": 0, "losses": 0}


@pytest.mark.parametrize(
    ("task", "ours", "theirs", "verdict"),
    [
        ("regression", 0.1000, 0.1009, "ties"),
        ("regression", 0.1000, 0.1011, "wins"),
        ("regression", 0.1011, 0.1000, "losses"),
        # sqrt(p (1 - p) / 1000) with p = 0.105 and 0.1045: 0.00969 and 0.00967
        ("classification", 0.100, 0.110, "wins"),
        ("classification", 0.100, 0.109, "ties"),
        ("regression", None, 0.1, "losses"),
        ("regression", 0.1, None, "wins"),
        ("regression", None, None, "ties"),
    ],
)
def test_rule_of_ties(task, ours, theirs, verdict):
    cells = {
        name: {"state": "last"} if error is None else {"state": "done", "error": error}
        for name, error in (("a", ours), ("b", theirs))
    }
    found = {"task": task, "test_rows": 1000, "cells": cells | {"c": {"state": "partly"}}}
    assert compared(found, "a", "b") == verdict
    assert compared(found, "a", "c") is None
    assert compared(found, "a", "d") is None


def test_seconds_and_their_ratio(store):
    found = part(store)["seconds"]
    assert found["tessella"]["geometric_mean"] == pytest.approx(2.0)
    assert found["tessella"]["ratio"] == pytest.approx(0.25)
    assert found["lightgbm-tuned"]["ratio"] == pytest.approx(1.0)
    assert found["forest"]["capped"] == 1
    assert found["forest"]["geometric_mean"] == pytest.approx(math.sqrt(600))  # r1, and the cap


def test_log_loss_is_ranked_among_those_that_have_it(store):
    ranks = part(store)["log_loss_ranks"]
    assert ranks["methods"] == ["lightgbm-tuned", "tessella"]
    assert ranks["sets"] == ["c1"]


def test_cells_that_are_not_there_are_gaps(store):
    found = part(store, splits=3)
    assert row(found, "r1")["cells"]["tessella"]["state"] == "partly"
    assert found["ranks"]["all"] is None or found["ranks"]["all"]["sets"] == []
    one = part(store, splits=1)
    assert row(one, "r1")["cells"]["tessella"]["error"] == pytest.approx(0.11)
    only = report(store, datasets=["r1"], method_names=["forest", "tessella"])
    assert list(only["methods"]) == ["tessella", "forest"]
    assert [r["name"] for r in only["sizes"]["1000"]["sets"]] == ["r1"]
    assert report(store, sizes=[4000])["sizes"] == {}


def test_sets_that_one_method_alone_has_do_not_hide_a_comparison(store):
    for name in ("r3", "r4", "r5", "r6", "r7", "r8", "r9"):
        put(store, name, "tessella", 0.1)
        put(store, name, "tessella", 0.1, split=1)
    ranks = part(store)["ranks"]["all"]
    assert set(ranks["sets"]) == {"r1", "r2text", "c1"}
    assert len(ranks["methods"]) == 3


def test_methods_on_other_rows_are_told(store):
    put(store, "r1", "forest", 0.05, split=1, division="other")
    found = report(store)
    assert found["sizes"]["1000"]["other_divisions"] == ["r1"]
    assert "measure these again" in markdown(suite_document(found), {})


def test_parts_of_the_average(store):
    gauss = {"family": "gauss", "loss": "square", "learned": False, "weight": 3.0}
    tiles = {"family": "tessellated", "loss": "square", "learned": True, "weight": 1.0}
    put(store, "r1", "tessella", 0.1, params={"members": [gauss, tiles]})
    put(store, "r1", "tessella", 0.1, split=1, params={"members": [gauss]})
    found = part(store)["average"]
    assert (found["fits"], found["mean_members"]) == (2, 1.5)
    assert found["parts"]["family"] == {
        "gauss": {"fits": 1.0, "weight": pytest.approx(0.875)},
        "tessellated": {"fits": 0.5, "weight": pytest.approx(0.125)},
    }
    assert found["parts"]["learned"]["True"]["fits"] == 0.5
    assert "encoding" not in found["parts"]


def test_variants_are_compared_with_the_whole_and_not_ranked(store):
    for dataset, error in (("r1", 0.4), ("c1", 0.0)):
        for split in (0, 1):
            put(store, dataset, "tessella/less", error, split=split, seconds=1.0)
    found = part(store)
    assert "tessella/less" not in found["ranks"]["all"]["methods"]
    variant = found["ablation"]["tessella/less"]
    # No error among 1,000 rows counts as half of one.
    expected = math.sqrt((0.4 / 0.1) * (0.0005 / 0.2))
    assert variant["groups"]["all"]["error_ratio"] == pytest.approx(expected)
    assert variant["groups"]["regression"]["error_ratio"] == pytest.approx(4.0)
    assert variant["groups"]["mixed tables"] == {
        **{"error_ratio": None, "sets": 0},
        **{"wins": 0, "ties": 0, "losses": 0},
    }
    assert variant["seconds_ratio"] == pytest.approx(0.5)


def test_a_variant_is_compared_on_the_divisions_that_it_has(store):
    put(store, "r1", "tessella/less", 0.22)
    variant = part(store)["ablation"]["tessella/less"]
    assert variant["fits"] == 1
    assert variant["groups"]["all"]["sets"] == 1
    assert variant["groups"]["all"]["error_ratio"] == pytest.approx(0.22 / 0.11)


def test_document_and_picture(store, tmp_path):
    put(store, "r1", "tessella/less", 0.4)
    put(store, "r1", "tessella/less", 0.4, split=1)
    put(store, "r1", "tessella", 0.11, params={"members": [{"family": "gauss", "weight": 1.0}]})
    found = report(store)
    pictures = draw_suite(found, tmp_path)
    assert [path.name for path in pictures.values()] == ["suite-1000.png"]
    assert (tmp_path / "suite-1000.svg").exists()
    text = markdown(suite_document(found, pictures), pictures)
    assert "## 1,000 training rows" in text
    assert "![Mean ranks and seconds at 1,000 rows](suite-1000.png)" in text
    assert "| LightGBM tuned | 1 / 1 / 1 |" in text
    assert "| r2text (1,000 × 4, 2 text) | 0.3000 | **0.1000** | failed |" in text
    assert "| c1 (1,000 × 4, 3 classes) | **20.00** | 20.10 | capped |" in text
    assert "| random forest | c1 | more than 600 s |" in text
    assert "| family | gauss | 100 % | 100 % |" in text
    assert "| less | 2 | 4.000 |" in text
