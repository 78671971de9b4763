"""Fetching, against a server on this machine."""

import hashlib
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest
from datasets.conftest import described

from tessella import datasets
from tessella.datasets import DataError

ABALONE = b"""% a comment
@RELATION abalone
@ATTRIBUTE Sex {M,F,I}
@ATTRIBUTE Length NUMERIC
@ATTRIBUTE Class_number_of_rings {8,9,10}
@DATA
M,0.455,9
I,0.35,8
F,?,10
F,0.53,10
"""
HEART = b"""@relation heart
@attribute age numeric
@attribute class {absent, present}
@data
70,present
67,absent
"""
ROWS = np.array([[1.0, 0.455, 9.0], [3.0, 0.35, 8.0], [2.0, 0.53, 10.0]])


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")


@pytest.fixture
def server(monkeypatch):
    """A server with some files; what they say of themselves can be changed."""
    files = {183: ABALONE, 53: HEART}
    changes = {}
    asked = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            data_id = int(self.path.rpartition("/")[2])
            if data_id not in files:
                self.send_error(412, "No such data set")
                return
            content = files[data_id]
            if self.path.startswith("/api/v1/json/data/"):
                about = {
                    "name": f"set {data_id}",
                    "url": f"{address}/files/{data_id}",
                    "md5_checksum": hashlib.md5(content).hexdigest(),
                }
                content = json.dumps({"data_set_description": about | changes}).encode()
            self.send_response(200)
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *args):
            pass

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    address = f"http://127.0.0.1:{http.server_port}"
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    monkeypatch.setenv("TESSELLA_OPENML", address)
    yield {"files": files, "changes": changes, "asked": asked}
    http.shutdown()
    http.server_close()
    thread.join()


@pytest.fixture
def empty(tmp_path, monkeypatch):
    folder = tmp_path / "cache"
    folder.mkdir()
    monkeypatch.setenv("TESSELLA_DATA", str(folder))
    return folder


def test_fetched_once_and_then_read_from_the_folder(server, empty):
    info = described("abalone", ROWS)
    first = datasets.load(info)
    assert server["asked"] == ["/api/v1/json/data/183", "/files/183"]
    assert [path.name for path in empty.iterdir()] == ["abalone.csv.gz"]
    second = datasets.load(info)
    assert len(server["asked"]) == 2
    for data in (first, second):
        np.testing.assert_array_equal(data.X, ROWS[:, :2])  # the row with a gap is left out
        np.testing.assert_array_equal(data.y, [1, 0, 1])
        assert data.feature_names == ("Sex", "Length")


def test_labels_become_classes(server, empty):
    info = described("heart", np.array([[70.0, 1.0], [67.0, -1.0]]))
    np.testing.assert_array_equal(datasets.load(info).y, [1, 0])


def test_folder_is_made_when_it_is_the_default_one(server, tmp_path, monkeypatch):
    monkeypatch.delenv("TESSELLA_DATA", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    datasets.load(described("abalone", ROWS))
    assert (tmp_path / ".cache/tessella/data/abalone.csv.gz").exists()


def test_other_rows_are_not_stored(server, empty):
    with pytest.raises(
        DataError, match=r"set 183 .*3 rows.* is not the expected data set 'abalone'"
    ):
        datasets.load("abalone")
    assert list(empty.iterdir()) == []


@pytest.mark.parametrize(
    ("changes", "content", "text"),
    [
        ({"md5_checksum": "0" * 32}, ABALONE, "damaged: its MD5 checksum"),
        ({}, b"no arff", "cannot be read"),
        ({}, HEART, "has no column 'Class_number_of_rings'.*are age, class"),
        (
            {},
            ABALONE.replace(b"{M,F,I}", b"{M,F,I,X}").replace(b"M,0.4", b"X,0.4"),
            "contains text",
        ),
        ({"url": "http://127.0.0.1:9/none"}, ABALONE, "could not be downloaded.*Without a network"),
    ],
)
def test_answers_that_are_of_no_use(server, empty, changes, content, text):
    server["changes"] |= changes
    server["files"][183] = content
    with pytest.raises(DataError, match=text):
        datasets.load("abalone")
    assert list(empty.iterdir()) == []


def test_server_without_the_set(server, empty):
    del server["files"][183]
    with pytest.raises(DataError, match="answered 412"):
        datasets.load("abalone")


def test_no_network(empty, monkeypatch):
    monkeypatch.setenv("TESSELLA_OPENML", "http://127.0.0.1:9")
    with pytest.raises(
        DataError, match=r"save abalone\.csv\.gz in the folder yourself.*TESSELLA_DATA"
    ):
        datasets.load("abalone")


def test_folder_that_cannot_be_written(server, empty, monkeypatch):
    def refuse(*args):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("os.replace", refuse)
    with pytest.raises(DataError, match=r"cannot be stored .* Permission denied"):
        datasets.load(described("abalone", ROWS))
    assert list(empty.iterdir()) == []
