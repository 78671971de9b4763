"""The checker of the built site finds what is broken, and only that."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

CHECKER = Path(__file__).parent.parent.parent / "docs" / "_ext" / "check_links.py"


def check(site: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(CHECKER), str(site)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_links_within_the_site(tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "picture.png").write_bytes(b"")
    (tmp_path / "index.html").write_text(
        '<h1 id="here"></h1><a href="#here"></a><a href="sub/a.html#x%20y"></a>'
        '<img src="picture.png"><a href="https://example.org/nowhere"></a>'
    )
    (tmp_path / "sub" / "a.html").write_text('<p id="x y"></p><a href="../index.html"></a>')
    good = check(tmp_path)
    assert good.returncode == 0, good.stderr
    (tmp_path / "sub" / "a.html").write_text('<img src="lost.png"><a href="../index.html#no">')
    bad = check(tmp_path)
    assert bad.returncode == 1
    assert sorted(bad.stderr.splitlines()) == [
        "3 broken links",
        "index.html: sub/a.html#x%20y has no such place",
        "sub/a.html: ../index.html#no has no such place",
        "sub/a.html: lost.png does not exist",
    ]


def test_a_folder_without_a_site(tmp_path):
    assert check(tmp_path).returncode == 1
