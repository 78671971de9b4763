"""List the versions of the site for the switch on its pages.

``python site_versions.py folder https://example.org/tessella/`` looks for built sites in the
subfolders of ``folder``: ``dev`` for the development version, and ``1.2`` for each release. It
writes ``switcher.json``, which every page reads, and ``index.html``, which leads to the newest
release, or to ``dev`` as long as there is none.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

_REDIRECT = """<!DOCTYPE html>
<meta charset="utf-8">
<title>Tessella</title>
<meta http-equiv="refresh" content="0; url={folder}/">
<a href="{folder}/">Tessella</a>
"""


def releases(site: Path) -> list[str]:
    """Folders of releases that hold a site, the newest first."""
    found = [path.parent.name for path in site.glob("*/index.html")]
    numbered = [name for name in found if re.fullmatch(r"\d+\.\d+", name)]
    return sorted(numbered, key=lambda name: [int(part) for part in name.split(".")], reverse=True)


def entries(site: Path, url: str) -> list[dict[str, object]]:
    """What the switch shows, in the form that the theme of the site reads."""
    root = url.rstrip("/")
    listed: list[dict[str, object]] = []
    if (site / "dev" / "index.html").is_file():
        listed.append({"name": "development", "version": "dev", "url": f"{root}/dev/"})
    for position, name in enumerate(releases(site)):
        entry: dict[str, object] = {"name": name, "version": name, "url": f"{root}/{name}/"}
        if position == 0:
            entry |= {"name": f"{name} (stable)", "preferred": True}
        listed.append(entry)
    return listed


def main() -> int:
    """Write the two files; 1 if there is no site to list."""
    site, url = Path(sys.argv[1]), sys.argv[2]
    listed = entries(site, url)
    if not listed:
        sys.stderr.write(f"{site} has no folder of a version with a built site.\n")
        return 1
    (site / "switcher.json").write_text(json.dumps(listed, indent=2) + "\n")
    newest = (releases(site) or ["dev"])[0]
    (site / "index.html").write_text(_REDIRECT.format(folder=newest))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
