"""The switch of versions lists what is on the site."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "docs" / "_ext" / "site_versions.py"


def list_versions(site: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(SCRIPT), str(site), "https://example.org/tessella/"]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def add(site: Path, *folders: str) -> None:
    for folder in folders:
        (site / folder).mkdir()
        (site / folder / "index.html").write_text("")


def test_releases_are_sorted_by_number_and_the_newest_is_preferred(tmp_path):
    add(tmp_path, "0.9", "0.10", "dev", "_static", "pictures")
    (tmp_path / "1.0").mkdir()  # without a site
    assert list_versions(tmp_path).returncode == 0
    assert json.loads((tmp_path / "switcher.json").read_text()) == [
        {"name": "development", "version": "dev", "url": "https://example.org/tessella/dev/"},
        {
            "name": "0.10 (stable)",
            "version": "0.10",
            "url": "https://example.org/tessella/0.10/",
            "preferred": True,
        },
        {"name": "0.9", "version": "0.9", "url": "https://example.org/tessella/0.9/"},
    ]
    assert "url=0.10/" in (tmp_path / "index.html").read_text()


def test_before_the_first_release_the_site_leads_to_dev(tmp_path):
    add(tmp_path, "dev")
    assert list_versions(tmp_path).returncode == 0
    assert "url=dev/" in (tmp_path / "index.html").read_text()


def test_a_folder_without_a_site(tmp_path):
    done = list_versions(tmp_path)
    assert done.returncode == 1
    assert "no folder of a version" in done.stderr
    assert not list(tmp_path.iterdir())
