"""The private table: its rows, its ids, its files, and counts that are kept."""

from __future__ import annotations

import shutil
import stat
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mechanisms.public.coded_table import CodedTable
from mechanisms.public.domain import Attribute, Domain
from mechanisms.public.errors import UserError
from mechanisms.public.marginals import count_cliques
from mechanisms.public.units import Neighbouring
from mechanisms.sensitive.contribution import PrivacyUnit
from mechanisms.sensitive.engines.duckdb_engine import DuckdbEngine
from mechanisms.sensitive.kept_counts import kept_counts
from mechanisms.sensitive.private_table import PrivateTable, fingerprint, load_private
from mechanisms.sensitive.value_weights import value_weights
from tests.public.table_worlds import csv, schema, source

KEY = bytes(32)
FACTS = schema(city={"kind": "categorical", "values": ["x", "y"]}, n={"kind": "integer", "min": 0, "max": 9})
RECORD = PrivacyUnit()


def loaded(folder: Path, text: str, unit: PrivacyUnit = RECORD, work: str = "w") -> PrivateTable:
    return load_private(source(csv(folder, text)), FACTS, unit, workdir=folder / work, key=KEY)


def test_one_record_per_unit_keeps_every_row_as_it_is(tmp_path: Path) -> None:
    table = loaded(tmp_path, "city,n\nx,1\nz,5\n")
    assert [c.tolist() for c in table.coded.columns] == [[0, 2], [1, 5]]
    assert table.coded.weights is None and table.complete and table.max_records == 1
    assert table.encoding.outside == {"city": 1, "n": 0}
    assert repr(table) == "PrivateTable({'city': 3, 'n': 11}, unit='record', max_records=1)", "columns, and never rows"


def test_the_number_of_rows_is_public_only_under_replace_with_one_record_per_unit(tmp_path: Path) -> None:
    record, people = (loaded(tmp_path, "city,n\nx,1\ny,5\n", unit) for unit in (RECORD, PrivacyUnit("city", 1)))
    assert record.public_rows(Neighbouring.REPLACE) == 2
    assert record.public_rows(Neighbouring.ADD_REMOVE) is None
    assert people.public_rows(Neighbouring.REPLACE) is None and people.public_rows(Neighbouring.ADD_REMOVE) is None


def test_the_unit_may_be_an_attribute_too(tmp_path: Path) -> None:
    table = loaded(tmp_path, "city,n\nx,1\nx,2\ny,3\n", PrivacyUnit("city", 1))
    assert table.coded.column("city").tolist() == [0, 0, 1]
    assert table.coded.weights is not None and table.coded.weights.tolist() == [1 << 19, 1 << 19, 1 << 20]


@pytest.mark.parametrize("rows", ["", "x,1\n"])
@pytest.mark.parametrize("unit", [RECORD, PrivacyUnit("n", 2), PrivacyUnit("city", 1, "truncate")])
def test_an_empty_table_and_one_row_work(rows: str, unit: PrivacyUnit, tmp_path: Path) -> None:
    table = loaded(tmp_path, "city,n\n" + rows, unit)
    assert table.coded.rows == len(rows) // 4


def test_a_table_where_no_row_has_an_id_is_empty(tmp_path: Path) -> None:
    table = loaded(tmp_path, "city,n,id\nx,1,\ny,2,\n", PrivacyUnit("id", 2))
    assert table.coded.rows == 0 and not table.complete


def test_ids_of_typed_files_are_their_exact_values(tmp_path: Path) -> None:
    ids = {
        "whole": pa.array([2**60, 2**60 + 1, 2**60, None], pa.int64()),
        "real": pa.array([1.0, 1.0, 2.0, float("nan")]),
        "long": pa.array([10**30, 10**30 + 1, 10**30, None], pa.decimal128(38, 0)),
    }
    pq.write_table(pa.table({"city": ["x"] * 4, "n": [1, 2, 3, 4], **ids}), tmp_path / "t.parquet")
    for name, weights in (("whole", [1, 2, 1]), ("real", [1, 1, 2]), ("long", [1, 2, 1])):
        table = load_private(
            source(tmp_path / "t.parquet"), FACTS, PrivacyUnit(name, 1), workdir=tmp_path / name, key=KEY
        )
        assert table.coded.weights is not None
        assert (table.coded.weights >> 19).tolist() == weights and table.coded.column("n").tolist() == [1, 2, 3]


def test_files_of_the_truth_are_for_the_owner_alone_and_the_ids_are_gone(tmp_path: Path) -> None:
    loaded(tmp_path, "city,n\nx,1\n", PrivacyUnit("n", 1), "w/x")
    assert (tmp_path / "w").stat().st_mode & 0o777 == (tmp_path / "w" / "x").stat().st_mode & 0o777 == 0o700
    assert not list((tmp_path / "w").rglob("*.parquet"))


def test_many_units_in_several_batches_agree_with_a_count_by_hand(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    ids = (rng.zipf(1.5, 400_000) % 5_000).astype(np.int64)
    pq.write_table(
        pa.table({"city": pa.array(["x"] * len(ids)), "n": pa.array(ids % 10), "id": ids}), tmp_path / "t.parquet"
    )
    table = load_private(source(tmp_path / "t.parquet"), FACTS, PrivacyUnit("id", 20), workdir=tmp_path / "w", key=KEY)
    records = np.bincount(ids)[ids]
    assert table.coded.weights is not None
    assert np.array_equal(table.coded.weights, np.minimum(1 << 20, (20 << 20) // records))
    assert np.array_equal(table.coded.column("n"), ids % 10)


def test_the_fingerprint_tells_one_file_from_another(tmp_path: Path) -> None:
    first, second = csv(tmp_path, "a\n1\n", "1.csv"), csv(tmp_path, "a\n2\n", "2.csv")
    assert fingerprint(first) == fingerprint(first) != fingerprint(second)
    assert len(fingerprint(first)) == 32
    with pytest.raises(UserError, match="cannot be read"):
        fingerprint(tmp_path / "none.csv")


@dataclass(frozen=True)
class Meanwhile(DuckdbEngine):
    """Somebody works on the table while it is read."""

    change: Callable[[], object]

    def encode(self, *given: Any, **named: Any) -> Any:
        self.change()
        return super().encode(*given, **named)

    def values(self, *given: Any, **named: Any) -> Any:
        self.change()
        return super().values(*given, **named)


def read_meanwhile(parts: Path, change: Callable[[], object]) -> None:
    """A table of two parts is opened, and then read for its counts and its values."""
    parts.mkdir()
    for name, rows in (("a.csv", "x,1\ny,2\n"), ("b.csv", "x,3\n")):
        csv(parts, "city,n\n" + rows, name)
    table, engine, work = source(parts), Meanwhile(change), parts.parent / "w"
    columns, rest = FACTS.columns[:1], {"norm": "l1", "holdout": None, "key": KEY, "workdir": work, "engine": engine}
    load_private(table, FACTS, RECORD, workdir=work, key=KEY, engine=engine)
    value_weights(table, columns, RECORD, **rest)  # type: ignore[arg-type]


@pytest.mark.parametrize("read", ["load", "values"])
def test_a_table_that_is_written_while_it_is_read_is_refused(read: str, tmp_path: Path) -> None:
    """A row that moves from a part that is read yet to one that is not counts twice."""
    parts, seen = tmp_path / "parts", []

    def at(change: Callable[[], object]) -> Callable[[], object]:
        # loading reads twice: the rows, and whether one of them alone holds a text of the schema
        return lambda: seen.append(read) or (change() if len(seen) == (1 if read == "load" else 3) else None)

    def moved() -> None:
        csv(parts, "city,n\nx,3\n", "a.csv")
        csv(parts, "city,n\nx,1\ny,2\n", "b.csv")

    for name, change in (
        ("a.csv", moved),
        ("a.csv", lambda: csv(parts, "city,n\ny,2\nx,1\n", "a.csv")),  # as many bytes as before
        ("b.csv", lambda: csv(parts, "city,n\nx,3\nx,3\n", "b.csv")),
    ):
        with pytest.raises(UserError, match=f"{name}: the table changed while it was read"):
            read_meanwhile(parts, at(change))
        assert len(seen) == (2 if read == "load" else 3)
        shutil.rmtree(parts)
        seen.clear()
    read_meanwhile(parts, at(lambda: csv(parts, "city,n\nx,3\n", "later.csv")))
    assert len(seen) == 3, "a part that comes later is none of the table's"


DOMAIN = Domain((Attribute("a", 3), Attribute("b", 2)))
CLIQUES = [("a",), ("a", "b")]


def table(rows, known=None):
    rng = np.random.default_rng(rows)
    columns = (rng.integers(0, 3, rows).astype(np.uint8), rng.integers(0, 2, rows).astype(np.uint8))
    return CodedTable(DOMAIN, columns, known=known)


def test_counts_are_made_once_and_read_after_that(tmp_path):
    folder = tmp_path / "counts"
    truth = [c.tolist() for c in count_cliques(table(50), CLIQUES)]
    assert [c.tolist() for c in count_cliques(table(50, kept_counts(folder)), CLIQUES)] == truth
    (file,) = folder.glob("*.npy")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700

    def never(table, cliques):
        raise AssertionError("counted again")

    again = kept_counts(folder)(table(50), CLIQUES, never)
    assert [c.tolist() for c in again] == truth
    again[0][0] = -1  # a reader's own copy
    assert [c.tolist() for c in kept_counts(folder)(table(50), CLIQUES, never)] == truth


def test_each_list_of_marginals_has_its_own_counts(tmp_path):
    known = table(50, kept_counts(tmp_path))
    assert count_cliques(known, CLIQUES[:1])[0].tolist() == count_cliques(known, CLIQUES)[0].tolist()
    assert len(list(tmp_path.glob("*.npy"))) == 2


def test_what_has_no_room_is_counted_again(tmp_path, monkeypatch):
    monkeypatch.setattr("mechanisms.sensitive.kept_counts.MOST_BYTES", 10)
    known = table(50, kept_counts(tmp_path))
    assert count_cliques(known, CLIQUES)[1].sum() == 50
    assert not list(tmp_path.glob("*.npy"))


def test_a_full_disk_costs_the_counts_that_would_be_kept_and_nothing_else(tmp_path, monkeypatch):
    def full(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "save", full)
    assert count_cliques(table(50, kept_counts(tmp_path)), CLIQUES)[1].sum() == 50
    assert not list(tmp_path.glob("*.np*")) and not list(tmp_path.glob("*.part"))
