"""Tables and settings on which every engine must agree, and what is compared."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st

from mechanisms.public.rules.fine_columns import with_fine_columns
from mechanisms.public.schema.table_schema import Schema, parse_schema
from mechanisms.public.tables.scan import Source
from mechanisms.sensitive.contribution import PrivacyUnit
from mechanisms.sensitive.counting import exact_marginals
from mechanisms.sensitive.private_table import PrivateTable, load_private

KEY = b"a secret of 32 bytes, at least..."
FACTS = {
    "name": "t",
    "confirmed_public": True,
    "leave_out": ["id", "note"],
    "columns": {
        "city": {"kind": "categorical", "values": ["rome", "ça va", 'a"b', "two\nlines"]},
        "n": {"kind": "integer", "min": 0, "max": 30, "bins": {"count": 5}},
        "f": {"kind": "float", "min": -2, "max": 2, "bins": {"count": 3}},
        "day": {"kind": "date", "min": "2020-01-01", "max": "2020-12-31", "bins": "month"},
    },
    "recode": {"who": {"columns": ["city", "n"], "combinations": "all"}},
}
#: A row: its unit, what the schema reads, and a column that it leaves out.
Row = tuple[str, str, str, str, str, str]
HEAD = ("id", "city", "n", "f", "day", "note")


@cache
def contract_schema() -> Schema:
    return with_fine_columns(parse_schema(FACTS, where="t.yaml"), 40)


def rows_of(units: Sequence[str]) -> st.SearchStrategy[Row]:
    """Rows with odd values among them: quotes, line ends, gaps, numbers out of bounds or none."""
    cities = st.sampled_from(["rome", "ça va", 'a"b', "two\nlines", "", "paris", " "])
    numbers = st.sampled_from(["0", "3", "03", "7.0", "30", "31", "-1", "x", "", "1e1"])
    floats = st.sampled_from(["-2", "0.5", "1.999", "nan", "inf", "", "5"])
    days = st.sampled_from(["2020-01-01", "2020-02-29", "2021-01-01", "", "soon"])
    return st.tuples(st.sampled_from(units), cities, numbers, floats, days, st.sampled_from(["", "x,y"]))


#: Units of one and of many records, spelled in several ways, and rows without one.
TABLES = st.lists(rows_of(["ann", "Ann ", "bob", "7", "7.0", "cy", "", "NA", "ça", "a,b"]), max_size=60)


@dataclass(frozen=True)
class Setting:
    """How records count."""

    unit: PrivacyUnit
    holdout: float | None = None


SETTINGS = [
    Setting(PrivacyUnit()),
    Setting(PrivacyUnit(), 0.4),
    Setting(PrivacyUnit("id", 2)),
    Setting(PrivacyUnit("id", 3, missing="own"), 0.3),
    Setting(PrivacyUnit("id", 2, clip="truncate")),
    Setting(PrivacyUnit("id", 1, clip="truncate", missing="own"), 0.5),
    Setting(PrivacyUnit("id", 1000, clip="none")),
]


def loaded(source: Source, setting: Setting, workdir: Path, **engine: Any) -> PrivateTable:
    unit = setting.unit
    given = {"holdout": setting.holdout, "histogram": None if unit.column is None else unit.max_records, **engine}
    return load_private(source, contract_schema(), unit, workdir=workdir, key=KEY, **given)


def seen(private: PrivateTable) -> dict[str, Any]:
    """All that the driver learns of a table: sizes, what encoding could not take, and counts, weights among them."""
    schema = contract_schema()
    cliques = [(name,) for name in schema.measured.names]
    cliques += [*itertools.combinations(schema.synthesized.names, 2), schema.synthesized.names]
    counts = exact_marginals(private, cliques, batch_cells=10**6)
    return {
        "counts": [c.tolist() for c in counts],
        "rows": private.coded.rows,
        "encoding": private.encoding,
        "complete": private.complete,
        "aside": None if private.aside is None else np.asarray(private.aside).tolist(),
        "sizes": None if private.sizes is None else private.sizes.tolist(),
        "histogram": None if private.histogram is None else private.histogram.tolist(),
    }
