"""Where the time of the search of an automatic model goes, on one thread.

Needs no data, and writes nothing but a table. The target is that of the search, 5 s at 1,200 rows
of 10 columns.
"""

from __future__ import annotations

import argparse

from _report import markdown_table, text
from _speed_search import (
    MOST_SECONDS,
    SEARCH_COLUMNS,
    SEARCH_COLUMNS_OF_TABLE,
    SEARCH_ROWS,
    made_up,
    search_cell,
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=SEARCH_ROWS)
    parser.add_argument("--columns", type=int, default=SEARCH_COLUMNS)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    cells = [
        search_cell(data) for data in made_up(arguments.rows, arguments.columns, arguments.seed)
    ]
    lines = [
        [
            *(text(cell[key]) for key in SEARCH_COLUMNS_OF_TABLE.values()),
            "ok" if cell["search"] <= MOST_SECONDS else f"above {MOST_SECONDS:g} s",
        ]
        for cell in cells
    ]
    print(markdown_table((*SEARCH_COLUMNS_OF_TABLE, "verdict"), lines))


if __name__ == "__main__":
    main()
