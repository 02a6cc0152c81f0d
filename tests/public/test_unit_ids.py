"""Unit ids: the rows of one unit agree where they must, stand together in order, and are as many as declared."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from mechanisms.public.coded_table import CodedTable
from mechanisms.public.errors import UserError
from mechanisms.public.schema.table_schema import Schema, load_schema, parse_schema
from mechanisms.public.tables.codec import decode_table, write_table

COLUMNS = {"company": {"kind": "categorical", "size": 5}, "hour": {"kind": "categorical", "size": 24, "ordinal": True}}


def facts(folder: Path = Path(), **unit: Any) -> Schema:
    given = {"name": "t", "columns": COLUMNS, "leave_out": ["taxi"], "unit_id": {"name": "taxi", **unit}}
    return parse_schema(given, where="t.yaml", folder=folder)


def rows(schema: Schema, count: int) -> CodedTable:
    rng = np.random.default_rng(3)
    return CodedTable(schema.domain, tuple(rng.integers(0, a.size, count, np.uint8) for a in schema.domain.attributes))


def test_units_have_the_declared_numbers_of_records() -> None:
    schema = facts(records={1: 0.5, 4: 0.5})
    frame = decode_table(rows(schema, 10_000), schema, np.random.default_rng(0))
    sizes = frame.taxi.value_counts().value_counts(normalize=True)
    assert len(frame) == 10_000 and abs(sizes[1] - 0.5) < 0.01 and abs(sizes[4] - 0.5) < 0.01


def test_records_of_a_unit_share_its_columns_and_stand_together_in_order() -> None:
    schema = facts(records={3: 0.5, 7: 0.5}, same=["company"], order_by=["hour"])
    frame = decode_table(rows(schema, 2_000), schema, np.random.default_rng(0))
    assert (frame.groupby("taxi").company.nunique() == 1).all()
    assert (frame.taxi.diff().fillna(0) >= 0).all()
    assert frame.groupby("taxi").hour.apply(lambda hours: hours.is_monotonic_increasing).all()


def test_ids_come_from_a_public_list_by_its_columns_and_weights(tmp_path: Path) -> None:
    lines = [f"T{c}{i},{c},{i}" for c in range(4) for i in (1, 3)]  # company 4 is in no line
    (tmp_path / "taxis.csv").write_text("taxi,company,records\n" + "\n".join(lines) + "\n")
    schema = facts(tmp_path, units="taxis.csv", same=["company"])
    frame = decode_table(rows(schema, 8_000), schema, np.random.default_rng(0))
    known = frame[frame.company < 4]
    assert (known.taxi.str[1].astype(int) == known.company).all()
    assert abs((known.taxi.str[2] == "3").mean() - 0.75) < 0.01
    assert frame.taxi.notna().all()
    (tmp_path / "s.yaml").write_text(schema.to_yaml())
    (tmp_path / "taxis.csv").unlink()
    assert load_schema(tmp_path / "s.yaml") == schema


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz", "a.parquet"])
@pytest.mark.parametrize("count", [0, 1, 500])
def test_written_tables_have_the_ids_as_their_last_column(name: str, count: int, tmp_path: Path) -> None:
    schema = facts(records={2: 1.0}, same=["company"])
    write_table(tmp_path / name, rows(schema, count), schema, np.random.default_rng(0), chunk_rows=64)
    read = pd.read_parquet if name.endswith("parquet") else pd.read_csv
    frame = read(tmp_path / name)
    assert list(frame.columns) == ["company", "hour", "taxi"] and len(frame) == count
    assert frame.taxi.value_counts().max() <= 2 if count else True
    assert (frame.groupby("taxi").company.nunique() == 1).all()


def test_without_a_declaration_no_column_is_added() -> None:
    schema = parse_schema({"name": "t", "columns": COLUMNS}, where="t.yaml")
    assert list(decode_table(rows(schema, 5), schema, np.random.default_rng(0)).columns) == ["company", "hour"]


@pytest.mark.parametrize(
    ("unit", "says"),
    [
        ({"units": "none.csv"}, "cannot read"),
        ({"units": [["T1", 0.0]]}, "a weight above 0"),
        ({"units": [["T1", "9", 1]], "same": ["company"]}, "column 'company' has no value '9'"),
        ({"record": {1: 1}}, "unknown field 'record'"),
    ],
)
def test_a_mistake_is_named(unit: dict[str, Any], says: str) -> None:
    with pytest.raises(UserError) as caught:
        facts(**unit)
    assert "unit_id" in str(caught.value) and says in str(caught.value)
