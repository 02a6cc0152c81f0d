"""Tables and settings on which every engine must agree, and what is compared."""

import itertools
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from mechanisms.public.rules.fine_columns import with_fine_columns
from mechanisms.public.schema.table_schema import Schema, parse_schema
from mechanisms.public.tables.scan import Source
from mechanisms.sensitive.contribution import PrivacyUnit
from mechanisms.sensitive.exact_answers import exact_marginals
from mechanisms.sensitive.private_table import PrivateTable, load_private

KEY = b"a secret of 32 bytes, at least..."
FACTS = {
    "name": "t",
    "confirmed_public": True,
    "leave_out": ["id", "note"],
    "columns": {
        "city": {
            "kind": "categorical",
            "values": ["rome", "ça va", 'a"b', "two\nlines"],
            "spellings": {"rome": ["Roma"], "ça va": ["OK"]},
        },
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
    cities = st.sampled_from(["rome", "ça va", 'a"b', "two\nlines", "", "paris", " ", " ROME", "roma", "Ça Va "])
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


def loaded(source: Source, setting: Setting, workdir: Path, of: Schema | None = None, **engine: Any) -> PrivateTable:
    unit, schema = setting.unit, of or contract_schema()
    given = {"holdout": setting.holdout, "histogram": None if unit.column is None else unit.max_records, **engine}
    return load_private(source, schema, unit, workdir=workdir, key=KEY, **given)


def seen(private: PrivateTable) -> dict[str, Any]:
    """All that the driver learns of a table: sizes, what encoding could not take, and counts, weights among them."""
    schema = contract_schema()
    cliques = [(name,) for name in schema.measured.names]
    cliques += [*itertools.combinations(schema.synthesized.names, 2), schema.synthesized.names]
    counts = exact_marginals(private.coded, cliques, batch_cells=10**6)
    return {
        "counts": [c.tolist() for c in counts],
        "rows": private.coded.rows,
        "encoding": private.encoding,
        "complete": private.complete,
        "aside": None if private.aside is None else np.asarray(private.aside).tolist(),
        "sizes": None if private.sizes is None else private.sizes.tolist(),
        "histogram": None if private.histogram is None else private.histogram.tolist(),
    }


def _ints(values: Sequence[int], kind: Any, width: int = 64) -> Any:
    return pa.array(values, getattr(pa, f"int{width}")()).cast(kind)


def _far(unit: str, zone: str | None) -> Any:
    """The last moment of the year 9999, the first of the year 1, the ends of what the type holds, and 1970."""
    per_second = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[unit]
    years = [253_402_300_800 * per_second - 1, -62_135_596_800 * per_second - 1] if unit != "ns" else [1]
    ends = [2**63 - 1, 2**63 - 2, -(2**63) + 1, -(2**63)] if unit in {"us", "ns"} else []
    return _ints([0, *years, *ends], pa.timestamp(unit, zone))


#: Values that are ids, of every type in which a Parquet file can hold them: the ends of each, zero, and odd ones.
IDS_OF_TYPES: dict[str, Any] = {
    **{f"timestamp {u} {z}": _far(u, z) for u in ("s", "ms", "us", "ns") for z in (None, "UTC", "Asia/Tokyo")},
    "date32": _ints([2**31 - 1, -(2**31), -(2**31) + 1, 0], pa.date32(), 32),
    "date64": _ints([86_400_000 * (2**31 - 1), 0], pa.date64()),
    "time32": _ints([0, 86_399], pa.time32("s"), 32),
    "time64": _ints([0, 86_399_999_999_999], pa.time64("ns")),
    **{f"int{n}": pa.array([0, -(2 ** (n - 1)), 2 ** (n - 1) - 1], f"int{n}") for n in (8, 16, 32, 64)},
    **{f"uint{n}": pa.array([0, 2**n - 1], f"uint{n}") for n in (8, 16, 32, 64)},
    "half": pa.array(np.array([0, np.inf, -np.inf], np.float16)),
    **{f"float{n}": pa.array([0.0, np.inf, -np.inf, 1e-30, 1e30], f"float{n}") for n in (32, 64)},
    "bool": pa.array([True, False]),
    "duration": _ints([0, 2**63 - 1], pa.duration("us")),
    **{f"decimal {p} {s}": pa.array([Decimal(0)], pa.decimal128(p, s)) for p, s in ((2, 2), (38, 38), (5, 0), (5, 2))},
    **{str(k): pa.array(["a", "0", "-"], k) for k in (pa.string(), pa.large_string())},
    "dictionary": pa.array(["a", "0"]).dictionary_encode(),
    "binary": pa.array(
        [b"a", b"\0", b"\0\1", b"\x01\x02", b"\xff", "\u200b".encode(), b" \x1f", b" ", b"\t\n"], pa.binary()
    ),
    "fixed binary": pa.array([b"\0\0\0\1", b"\0\0\0\2", b"\xff\0\0\0"], pa.binary(4)),
    "uuid": pa.array([uuid.UUID(int=i).bytes for i in (0, 1)], pa.binary(16)).cast(pa.uuid()),
}
#: Types of which equal values may be written in several ways, and others in one.
NO_IDS: dict[str, Any] = {
    "list": pa.array([[1]]),
    "struct": pa.array([{"a": 1}]),
    "map": pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int64())),
    "json": pa.array(['{"a": 1}'], pa.string()).cast(pa.json_()),
    "decimal of 39 digits": pa.array([Decimal(10**38), Decimal(10**38 + 1)], pa.decimal256(39, 0)),
    "decimal of 76 digits": pa.array([Decimal(0)], pa.decimal256(76, 76)),
}
