"""NIST's board in BENCHMARKS.md: the tables that runs of `experiment=nist_crc` wrote, every run's score, and the plot.

python -m tests.bench.board outputs/RUN [outputs/RUN …]
"""

import argparse
import csv
from collections.abc import Sequence
from pathlib import Path

from mechanisms.public.files import write_whole
from mechanisms.public.text_table import markdown
from tests.bench.tables_apart import BOARD, DATA, plots, table_under, write_rows

PAGE = Path("BENCHMARKS.md")
FIGURES = Path("docs/benchmarks") / DATA


def joined(page: str, folders: Sequence[Path]) -> str:
    """The page with the rows that the runs wrote, in their order, in the place of the board's own."""
    texts = [(folder / "internal/table.md").read_text(encoding="utf-8") for folder in folders]
    tables = [table_under(text, text.partition("\n")[0]) for text in texts]
    start = page.index("\n|", page.index(BOARD)) + 1
    rows = markdown(tables[0][0], [row for each in tables for row in each[1:]])
    return page[:start] + "\n".join(rows) + page[page.index("\n\n", start) :]


def every_run(folders: Sequence[Path]) -> list[list[str]]:
    texts = [(folder / "internal/table.csv").read_text(encoding="utf-8") for folder in folders]
    tables = [list(csv.reader(text.splitlines())) for text in texts]
    return [tables[0][0], *(row for each in tables for row in each[1:])]


def main() -> None:
    form = argparse.ArgumentParser(prog="python -m tests.bench.board", description=__doc__)
    form.add_argument("folders", nargs="+", type=Path, help="of runs of experiment=nist_crc")
    folders = form.parse_args().folders
    page = joined(PAGE.read_text(encoding="utf-8"), folders)
    write_rows(FIGURES / "board.csv", every_run(folders))
    plots(page, FIGURES)
    write_whole(PAGE, page)


if __name__ == "__main__":
    main()
