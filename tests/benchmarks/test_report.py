from __future__ import annotations

import json
import math

import _report
import numpy as np
import pytest


def test_json_holds_numbers_of_numpy_and_no_infinities(tmp_path):
    path = tmp_path / "new" / "a.json"
    _report.write_json(path, {"a": np.float64(2), "b": np.array([1, 2]), "c": math.inf, 1e-2: None})
    assert json.loads(path.read_text()) == {"a": 2.0, "b": [1, 2], "c": None, "0.01": None}
    assert [p.name for p in path.parent.iterdir()] == ["a.json"]


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        *[(None, "–"), (math.nan, "–"), (3, "3"), ("ok", "ok"), (0.0, "0"), (1234.5, "1234")],
        *[(0.12345, "0.123"), (1.5e-6, "1.5e-06"), (123456.0, "1.2e+05"), (12.0, "12")],
    ],
)
def test_text_of_numbers(value, shown):
    assert _report.text(value) == shown


def test_table_lines_up_and_is_markdown():
    table = _report.markdown_table(["set", "gap"], [["pima", 1e-7], ["fourclass", None]])
    lines = table.splitlines()
    assert len({len(line) for line in lines}) == 1
    assert lines[0] == "| set       |     gap |"
    assert lines[1] == "|-----------|--------:|"
    assert lines[3] == "| fourclass |       – |"


def test_cache_computes_once_and_survives(arguments):
    calls = []

    def compute():
        calls.append(1)
        return {"score": np.float64(0.5)}

    cache = _report.Cache(arguments, "cells", {"rows": 50})
    assert "a" not in cache
    assert cache.cell("a", compute)["score"] == 0.5
    again = _report.Cache(arguments, "cells", {"rows": 50})
    assert again.cell("a", compute)["score"] == 0.5
    assert "a" in again
    assert len(calls) == 1


def test_cache_is_of_its_settings_only_and_can_be_refused(arguments):
    _report.Cache(arguments, "cells", {"rows": 50}).cell("a", lambda: {"score": 1})
    assert "a" not in _report.Cache(arguments, "cells", {"rows": 60})
    assert "a" in _report.Cache(arguments, "cells", {"rows": 50})
    arguments.fresh = True
    assert "a" not in _report.Cache(arguments, "cells", {"rows": 50})


def test_a_failed_cell_is_reported_and_tried_again(arguments):
    def fail():
        raise ValueError("no luck")

    cache = _report.Cache(arguments, "cells", {})
    assert cache.cell("a", fail) == {"error": "ValueError: no luck"}
    assert cache.cell("a", lambda: {"score": 1})["score"] == 1


def test_report_has_the_machine_and_the_versions(arguments, capsys):
    path = _report.write_report(arguments, "demo", [{"x": 1}], ["x", "verdict"], [[1, "ok"]])
    content = json.loads(path.read_text())
    assert content["results"] == [{"x": 1}]
    assert content["settings"] == {"rows": 50}
    assert content["versions"]["tessella"]
    assert content["versions"]["numpy"] == np.__version__
    assert content["machine"]["threads"] >= 1
    assert "| ok" in path.with_suffix(".md").read_text()
    assert "| ok" in capsys.readouterr().out
