"""Writing the report: Markdown, HTML, JSON and pictures."""

from __future__ import annotations

import base64
import html
import json
import os
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tessella_bench._document import Block, Heading, Paragraph, Picture, Table, document

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; color: #1d1d1f; background: #fff;
       max-width: 76rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.7rem; } h2 { font-size: 1.35rem; margin-top: 2.5rem; } h3 { margin-top: 2rem; }
p { max-width: 48rem; }
div.table { overflow-x: auto; }
table { border-collapse: collapse; font-size: .85rem; font-variant-numeric: tabular-nums; }
th, td { padding: .3rem .7rem; border-bottom: 1px solid #ddd; text-align: right;
         vertical-align: top; }
td { white-space: nowrap; } .text { white-space: normal; text-align: left; max-width: 40rem; }
td.text:first-child { white-space: nowrap; } th { border-bottom: 2px solid #888; }
tr:hover td { background: #f4f7fa; }
img { max-width: 100%; height: auto; }
"""


def write_report(report: dict[str, Any], folder: Path) -> list[Path]:
    """Write ``report.md``, ``report.html`` and ``report.json``, and pictures.

    Parameters
    ----------
    report : dict
        As :func:`gather` gives it.
    folder : Path
        Where to; made if need be. The HTML file stands alone, with the pictures inside.

    Returns
    -------
    list of Path
        The files.
    """
    from tessella_bench._pictures import draw  # worker processes have no use for matplotlib

    folder.mkdir(parents=True, exist_ok=True)
    pictures = draw(report, folder)
    return write_blocks(report, document(report, pictures), pictures, folder)


def write_blocks(
    report: dict[str, Any], blocks: Sequence[Block], pictures: Mapping[str, Path], folder: Path
) -> list[Path]:
    """Write a document in all formats.

    Parameters
    ----------
    report : dict
        Numbers, for ``report.json``.
    blocks : sequence of Block
        The document.
    pictures : mapping
        Files by key, which lie in the folder.
    folder : Path
        Where to; it exists.

    Returns
    -------
    list of Path
        The files.
    """
    texts = {
        "report.md": markdown(blocks, pictures),
        "report.html": standalone_html(blocks, pictures),
        "report.json": json.dumps(report, indent=1) + "\n",
    }
    for name, text in texts.items():
        _replace(folder / name, text)
    return [*(folder / name for name in texts), *pictures.values()]


def markdown(blocks: Sequence[Block], pictures: Mapping[str, Path]) -> str:
    """The document as Markdown, with links to the pictures.

    Parameters
    ----------
    blocks : sequence of Block
        The document.
    pictures : mapping
        Files by key.

    Returns
    -------
    str
        The text.
    """
    parts = []
    for block in blocks:
        match block:
            case Heading(level, text):
                parts.append(f"{'#' * level} {text}")
            case Paragraph(text):
                parts.append(text)
            case Picture(key, text):
                parts.append(f"![{text}]({pictures[key].name})")
            case Table():
                parts.append(_markdown_table(block))
    return "\n\n".join(parts) + "\n"


def _markdown_table(table: Table) -> str:
    def line(cells: Sequence[str]) -> str:
        return f"| {' | '.join(cell.replace('|', '&#124;') for cell in cells)} |"

    rows = [
        [f"**{cell}**" if (i, j) in table.strong else cell for j, cell in enumerate(row)]
        for i, row in enumerate(table.rows)
    ]
    rule = "|" + "---|" * table.left + "---:|" * (len(table.header) - table.left)
    return "\n".join([line(table.header), rule, *map(line, rows)])


def standalone_html(blocks: Sequence[Block], pictures: Mapping[str, Path]) -> str:
    """The document as one HTML file that needs no other.

    Parameters
    ----------
    blocks : sequence of Block
        The document.
    pictures : mapping
        Files by key; their content becomes part of the text.

    Returns
    -------
    str
        The text.
    """
    parts = []
    for block in blocks:
        match block:
            case Heading(level, text):
                parts.append(f"<h{level}>{html.escape(text)}</h{level}>")
            case Paragraph(text):
                parts.append(f"<p>{html.escape(text)}</p>")
            case Picture(key, text):
                data = base64.b64encode(pictures[key].read_bytes()).decode("ascii")
                source = f"data:image/png;base64,{data}"
                parts.append(f'<p><img alt="{html.escape(text)}" src="{source}"></p>')
            case Table():
                parts.append(_html_table(block))
    title = next((b.text for b in blocks if isinstance(b, Heading)), "Report")
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{html.escape(title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
        + "\n".join(parts)
        + "\n</body>\n</html>\n"
    )


def _html_table(table: Table) -> str:
    def kind_of(j: int) -> str:
        return ' class="text"' if j < table.left else ""

    def cell(i: int, j: int, text: str) -> str:
        shown = html.escape(text)
        if (i, j) in table.strong:
            shown = f"<strong>{shown}</strong>"
        return f"<td{kind_of(j)}>{shown}</td>"

    head = "".join(
        f"<th{kind_of(j)}>{html.escape(text)}</th>" for j, text in enumerate(table.header)
    )
    rows = [
        f"<tr>{''.join(cell(i, j, text) for j, text in enumerate(row))}</tr>"
        for i, row in enumerate(table.rows)
    ]
    body = "\n".join(rows)
    return (
        f'<div class="table"><table>\n<thead><tr>{head}</tr></thead>\n'
        f"<tbody>\n{body}\n</tbody>\n</table></div>"
    )


def _replace(path: Path, text: str) -> None:
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}.tmp")
    try:
        temporary.write_text(text, encoding="utf-8")
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
