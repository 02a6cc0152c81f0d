"""The law of the codec: encoding what was written from codes gives the same codes, whatever the column."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mechanisms.public.coded_table import CodedTable
from mechanisms.public.schema.table_schema import Schema, load_schema, parse_schema
from mechanisms.public.tables.write_table import write_table
from tests.conftest import few
from tests.public.table_worlds import decode_table, encoded

TEXTS = st.one_of(
    st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), max_size=5),
    st.sampled_from(
        ["", " ", " lead", "a,b", 'say "so"', '"', "l\nm", "l\r\nm", "\r", "NA", "nan", "NULL", "null", "é", "2.0"]
    ),
)


@st.composite
def labels(draw: st.DrawFn) -> dict[str, Any]:
    """Listed values, with or without a label for others and texts for gaps."""
    texts = draw(st.lists(TEXTS, min_size=4, max_size=8, unique=True))
    fields: dict[str, Any] = {"kind": "categorical", "values": texts[:-2]}
    fields |= {"other": texts[-2]} if draw(st.booleans()) and texts[-2] else {}
    fields |= {"missing": [texts[-1]]} if draw(st.booleans()) and texts[-1] else {"missing": False}
    return fields if draw(st.booleans()) else {k: v for k, v in fields.items() if k != "missing" or v}


@st.composite
def numbers(draw: st.DrawFn) -> dict[str, Any]:
    low = draw(st.integers(-(2**40), 2**40))
    span = draw(st.integers(1, 3000))
    if draw(st.booleans()):
        bins = draw(st.one_of(st.none(), st.integers(1, span).map(lambda n: {"count": n})))
        fields: dict[str, Any] = {"kind": "integer", "min": low, "max": low + span}
        fields |= {} if bins is None else {"bins": bins}
        fields |= {"multiple_of": draw(st.integers(2, 600))} if draw(st.booleans()) else {}
        fields |= draw(st.sampled_from([{}, {"strip": ["$", ","]}, {"strip": [".", " EUR"], "decimal": ","}]))
    else:
        scale = draw(st.sampled_from([1e-9, 0.01, 1.0, 1e9]))
        fields = {"kind": "float", "min": (low % 997) * scale, "max": (low % 997 + span) * scale}
        fields |= {"bins": {"count": draw(st.integers(1, 70))}}
        written = {"decimals": draw(st.integers(0, 6))}, {"multiple_of": draw(st.sampled_from([0.05, 0.3, 2.5, 1e-9]))}
        fields |= draw(st.sampled_from([{}, *written]))
        fields |= draw(st.sampled_from([{}, {"strip": ["$", ","]}, {"decimal": ","}, {"strip": ["."], "decimal": ","}]))
    return fields | draw(further())


@st.composite
def edges(draw: st.DrawFn) -> dict[str, Any]:
    kind = draw(st.sampled_from(["integer", "float"]))
    whole = st.integers(-1000, 1000)
    cuts = sorted(
        draw(st.lists(whole if kind == "integer" else st.floats(-1e6, 1e6), min_size=2, max_size=9, unique=True))
    )
    if kind == "float":
        cuts = sorted({round(c, 3) for c in cuts}) if len({round(c, 3) for c in cuts}) > 1 else [0.0, 1.0]
    return {"kind": kind, "bins": {"edges": cuts}} | draw(further())


@st.composite
def dates(draw: st.DrawFn) -> dict[str, Any]:
    kind = draw(st.sampled_from(["date", "datetime"]))
    low = np.datetime64("1899-12-01") + draw(st.integers(0, 60_000))
    high = low + draw(st.integers(370, 3000))
    units = ["year", "month", "week", "day", "month_of_year", "day_of_week"]
    units += ["hour", "hour_of_day"] if kind == "datetime" else []
    fields: dict[str, Any] = {"kind": kind, "min": str(low), "max": str(high)}
    fields["bins"] = draw(
        st.one_of(
            st.sampled_from(units).map(lambda u: {"calendar": u}),
            st.integers(1, 370).map(lambda n: {"count": n}),
            st.just({"edges": [str(low), str(low + 7), str(low + 300)]}),
        )
    )
    if "edges" in fields["bins"]:
        del fields["min"], fields["max"]
    form = draw(st.sampled_from([None, "%d.%m.%Y" if kind == "date" else "%d.%m.%Y %H:%M:%S", "%A, %d %B %Y %H:%M:%S"]))
    if draw(st.booleans()):
        return fields | {"formats": [form or "ISO", "%Y/%m/%d", *(["ISO"] if form else [])]} | draw(further())
    return fields | ({} if form is None else {"format": form}) | draw(further())


@st.composite
def postal(draw: st.DrawFn) -> dict[str, Any]:
    digits = draw(st.integers(1, 9))
    return {"kind": "zip", "digits": digits, "prefix": draw(st.integers(1, min(digits, 3)))} | draw(further())


@st.composite
def further(draw: st.DrawFn) -> dict[str, Any]:
    fields: dict[str, Any] = {"missing": draw(st.sampled_from([True, False, ["?", "none"]]))}
    return fields | draw(st.sampled_from([{}, {"other": "else, where"}]))


FLAGS = st.sampled_from(
    [
        {"kind": "flag"},
        {"kind": "flag", "true": ["Y", "y"], "false": [""]},
        {"kind": "flag", "missing": False, "other": "?"},
        {"kind": "flag", "spellings": "common"},
        {"kind": "flag", "spellings": "common", "true": ["Ja"], "false": ["Nein"], "missing": ["k. A."]},
    ]
)
CODES = st.integers(1, 300).map(lambda n: {"kind": "categorical", "size": n})
WHOLE = st.lists(st.integers(-50, 50), min_size=1, unique=True).map(lambda v: {"kind": "categorical", "values": v})
COLUMNS = st.one_of(labels(), numbers(), edges(), dates(), postal(), FLAGS, CODES, WHOLE)
CONSTANTS = st.sampled_from(
    [{}, {"constant": {"kind": "constant", "value": "a, b"}}, {"constant": {"kind": "constant"}}]
)
NAMES = st.text(st.characters(exclude_categories=("Cs", "Cc", "Zl", "Zp")), min_size=1, max_size=6)


@pytest.fixture(autouse=True, scope="module")
def few_rows_at_a_time() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mechanisms.public.tables.write_table.CHUNK_ROWS", 17)
        yield


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".parquet"])
@given(data=st.data())
@few(30)
def test_written_codes_encode_to_themselves(suffix: str, data: st.DataObject) -> None:
    columns = data.draw(st.dictionaries(NAMES, COLUMNS, min_size=1, max_size=3)) | data.draw(CONSTANTS)
    facts = parse_schema({"name": "t", "columns": columns}, where="t.yaml")
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    rows = data.draw(st.sampled_from([0, 1, 40]))
    table = CodedTable(facts.domain, tuple(every_code(c.size, rows, rng) for c in facts.columns))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"table{suffix}"
        write_table(path, table, facts, rng)
        again, report = encoded(path, facts)
        for column, old, new in zip(facts.columns, table.columns, again.columns, strict=True):
            assert old.tolist() == new.tolist(), column
        assert not any(report.outside.values()) and not any(report.unplaced.values())
    frame = decode_table(table, facts, rng)
    assert list(frame.columns) == list(facts.domain.names) and len(frame) == rows


@given(data=st.data())
@settings(max_examples=60)
def test_every_schema_reads_back_from_its_yaml(data: st.DataObject) -> None:
    columns = data.draw(st.dictionaries(NAMES, COLUMNS, min_size=1, max_size=3)) | data.draw(CONSTANTS)
    facts: Schema = parse_schema({"name": "t", "columns": columns}, where="t.yaml")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.yaml"
        path.write_text(facts.to_yaml(), encoding="utf-8")
        assert load_schema(path) == facts


def every_code(size: int, rows: int, rng: np.random.Generator) -> np.ndarray[Any, np.dtype[np.unsignedinteger]]:
    """Random codes, the first and the last ones among them."""
    codes = rng.integers(0, size, rows)
    codes[: min(rows, 4)] = [0, size - 1, max(size - 2, 0), max(size - 3, 0)][: min(rows, 4)]
    return codes.astype(np.min_scalar_type(size))
