"""Check every link and picture within a built site: ``python check_links.py docs/_build/html``.

Sphinx looks at references while it writes; this looks at what was written, fragments included.
"""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

_GENERATED = {"genindex.html", "search.html", "py-modindex.html"}


class Page(HTMLParser):
    """Targets and links of one page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: set[str] = {"", "top"}
        self.links: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collect what can be pointed at, and what points."""
        for name, value in attrs:
            if name == "id" and value:
                self.ids.add(value)
            elif value and (name == "src" or (name == "href" and tag == "a")):
                self.links.add(value)


def broken_links(site: Path) -> list[str]:
    """One line for each link of the site that leads nowhere."""
    # A theme keeps templates, which are no pages, among its static files.
    paths = [p for p in sorted(site.rglob("*.html")) if "_static" not in p.parts]
    pages = {path.resolve(): Page(path.read_text()) for path in paths}
    found = []
    for path, page in pages.items():
        for link in sorted(page.links):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc or path.name in _GENERATED:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not target.exists():
                found.append(f"{path.relative_to(site.resolve())}: {link} does not exist")
            elif target in pages and unquote(parts.fragment) not in pages[target].ids:
                found.append(f"{path.relative_to(site.resolve())}: {link} has no such place")
    return found


def main() -> int:
    """Print what is broken; the number of broken links, at most 1, is the exit status."""
    site = Path(sys.argv[1])
    if not (site / "index.html").is_file():
        sys.stderr.write(f"{site} holds no built site.\n")
        return 1
    found = broken_links(site)
    sys.stderr.write("".join(f"{line}\n" for line in found) + f"{len(found)} broken links\n")
    return int(bool(found))


if __name__ == "__main__":
    raise SystemExit(main())
