"""The private table: its rows, ids and files; and two tables joined by the id, however odd they are."""

import os
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mechanisms.public.errors import UserError
from mechanisms.public.persons.person_questions import questions_of
from mechanisms.public.persons.tally import WHOLE, by_question
from mechanisms.public.schema.table_schema import parse_schema
from mechanisms.public.tables.scan import Source, open_table
from mechanisms.public.units import Neighbouring
from mechanisms.sensitive.contribution import PrivacyUnit, UnitRows
from mechanisms.sensitive.engines.duckdb_engine import DuckdbEngine
from mechanisms.sensitive.joined_units import misfits, with_units
from mechanisms.sensitive.measurement import value_weights
from mechanisms.sensitive.private_table import PrivateTable, fingerprint, load_private
from tests.public.table_worlds import STEP, csv, schema, source

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
    assert np.array_equal(table.coded.weights, np.minimum(1 << 20, (20 << 20) // records))
    assert np.array_equal(table.coded.column("n"), ids % 10)


def test_the_fingerprint_tells_one_file_from_another(tmp_path: Path) -> None:
    first, second = csv(tmp_path, "a\n1\n", "1.csv"), csv(tmp_path, "a\n2\n", "2.csv")
    assert fingerprint(first) == fingerprint(first) != fingerprint(second)
    assert len(fingerprint(first)) == 32
    with pytest.raises(UserError, match="no such file"):
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
    time.sleep(STEP)
    table, engine, work = source(parts), Meanwhile(change), parts.parent / "w"
    columns, given = FACTS.columns[:1], UnitRows(table, RECORD, work)
    load_private(table, FACTS, RECORD, workdir=work, key=KEY, engine=engine)
    value_weights(given, columns, norm="l1", holdout=None, key=KEY, engine=engine)


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


SCHEMA = parse_schema(
    {
        "name": "stays",
        "source": "invented for a test",
        "confirmed_public": True,
        "columns": {
            "sex": {"kind": "categorical", "values": ["f", "m"], "missing": True},
            "age": {"kind": "integer", "min": 0, "max": 99, "bins": {"count": 5}},
            "day": {"kind": "integer", "min": 0, "max": 99, "bins": {"count": 5}},
            "ward": {"kind": "categorical", "values": ["a", "b", "c"], "missing": False},
        },
        "unit": {"column": "patient", "constant": ["sex", "age"], "order": "day", "records": {"max": 3}},
    },
    where="schema",
    folder=Path(),
)
UNIT = PrivacyUnit("patient", 3)
RECORDS = "patient,day,ward\n"


def opened(path: Path, threads: int = 2) -> Source:
    work = path.parent / f"work-{path.name}"
    work.mkdir(mode=0o700, exist_ok=True)
    return open_table(path, workdir=work, memory_limit_bytes=1 << 29, threads=threads)


def joined(
    folder: Path, records: str | Path, units: str | Path, unit: PrivacyUnit = UNIT, ids: str = "id"
) -> tuple[Source, list[str]]:
    """Both tables joined, of texts or files; and how they fit."""
    tables = []
    for name, given in (("records.csv", records), ("units.csv", units)):
        path = folder / name if isinstance(given, str) else given
        if isinstance(given, str):
            path.write_text(given, encoding="utf-8")
        tables.append(opened(path))
    work = folder / "joined"
    source = with_units(*tables, unit, ids=ids, where="data.units", workdir=work)
    return source, misfits(source, work)


def rows(source: Source) -> list[tuple[str, ...]]:
    texts = ", ".join(source.text(i) for i in range(len(source.names)))
    return [tuple(row) for row in source.lines(f"SELECT {texts} FROM {source.relation}")]


def test_records_keep_their_order_and_get_the_columns_of_their_unit(tmp_path: Path) -> None:
    records = RECORDS + "q,5,a\np,1,b\nq,2,c\n"
    source, told = joined(tmp_path, records, "sex,id,age\nf,p,30\nm,q,40\n")
    assert source.names == ("patient", "day", "ward", "sex", "age")
    assert rows(source) == [("q", "5", "a", "m", "40"), ("p", "1", "b", "f", "30"), ("q", "2", "c", "m", "40")]
    assert told == []


def test_what_does_not_fit_is_no_failure_and_is_told(tmp_path: Path) -> None:
    records = RECORDS + "p,1,a\nnobody,2,b\nnobody,3,b\n,4,c\n"
    source, told = joined(tmp_path, records, "id,sex\nq,m\np,f\nq,f\np,m\n,m\nNA,m\n")
    assert [row[3] for row in rows(source)] == ["f", "", ""], "who has no id does not count, and has no columns"
    assert told == [
        "1 units (2 records) have no row: its columns are missing",
        "1 units have a row and no record: they are not read",
        "2 units have several rows: the first one counts",
        "2 rows have no id: they are not read",
        "1 records have no id: left out where these do not count, else its columns are missing there",
    ]
    kept, _ = joined(tmp_path, records, "id,sex\np,f\n", PrivacyUnit("patient", 3, missing="own"))
    assert [row[3] for row in rows(kept)] == ["f", "", "", ""]


@pytest.mark.parametrize(
    ("rules", "texts", "sexes"),
    [
        (UNIT.rules, [" p ", "P", "1", "1.0", "01"], ["f", "f", "m", "m", "m"]),
        ((), [" p ", "P", "1", "1.0", "01"], ["", "", "m", "", ""]),
    ],
)
def test_ids_mean_the_same_unit_in_both_tables_as_the_rules_say(tmp_path, rules, texts, sexes) -> None:
    """A row of the table of units belongs to one unit, whichever rules tell units apart."""
    records = RECORDS + "".join(f"{text},1,a\n" for text in texts)
    source, _ = joined(tmp_path, records, "id,sex\np,f\n1,m\n", PrivacyUnit("patient", 3, rules=rules))
    assert [row[3] for row in rows(source)] == sexes
    assert [row[0] for row in rows(source)] == texts  # as they stand


@pytest.mark.parametrize("records", [RECORDS, RECORDS + "p,1,a\n"])
@pytest.mark.parametrize("units", ["id,sex,age\n", "id,sex,age\np,f,3\np,m,4\np,f,5\n", "id\np\n"])
def test_tables_without_rows_of_duplicates_alone_and_of_ids_alone(tmp_path: Path, records: str, units: str) -> None:
    source, told = joined(tmp_path, records, units)
    assert len(rows(source)) == records.count("\n") - 1
    assert ("1 units have several rows: the first one counts" in told) == ("p,m" in units)
    if "p,f" in units and "p,1" in records:
        assert rows(source)[0][3:] == ("f", "3")


@pytest.mark.slow
def test_parquet_and_compressed_texts_mix_and_each_keeps_its_types(tmp_path: Path) -> None:
    n = 200_000  # several groups of rows
    ids = np.random.default_rng(3).integers(0, 5000, n)
    frame = pd.DataFrame({"patient": ids, "day": np.arange(n), "at": pd.Timestamp("2020-01-01 10:00", tz="UTC")})
    pq.write_table(pa.Table.from_pandas(frame), tmp_path / "r.parquet", row_group_size=10_000)
    people = pd.DataFrame({"id": [f"{i}.0" for i in range(5000)], "age": np.arange(5000) % 90, "born": "0012"})
    people.to_csv(tmp_path / "u.csv.gz", index=False)
    source, told = joined(tmp_path, tmp_path / "r.parquet", tmp_path / "u.csv.gz")
    assert source.types == ("BIGINT", "BIGINT", "TIMESTAMP WITH TIME ZONE", "VARCHAR", "VARCHAR")
    read = source.lines(f"SELECT c0, c1, c3, c4 FROM {source.relation}")
    assert [row[1] for row in read] == list(range(n))
    assert all(int(age) == one % 90 and born == "0012" for one, _, age, born in read)
    assert not any("have no row" in line for line in told)
    pq.write_table(pa.Table.from_pandas(people), tmp_path / "u.parquet")
    frame.to_csv(tmp_path / "r.csv", index=False)
    again, _ = joined(tmp_path, tmp_path / "r.csv", tmp_path / "u.parquet")
    assert again.types[3:] == ("BIGINT", "VARCHAR")
    assert [row[3] for row in rows(again)] == [str(row[2]) for row in read]


def test_columns_of_every_kind_are_copied_as_they_are(tmp_path: Path) -> None:
    moment = pd.Timestamp("2020-01-02 03:04:05.000006")
    columns = {
        "patient": pa.array(["p"]),
        "ns": pa.array([moment.value], pa.timestamp("ns")),
        "utc": pa.array([moment.value], pa.timestamp("ns", "UTC")),
        "us": pa.array([moment.value // 1000], pa.timestamp("us", "UTC")),
        "long": pa.array([5], pa.duration("us")),
        "empty": pa.nulls(1),
        "day": pa.array([3], pa.date32()),
        "time": pa.array([3], pa.time64("us")),
        "money": pa.array([Decimal("1.50")], pa.decimal128(20, 2)),
        "bytes": pa.array([b"\x00"]),
        "nan": pa.array([float("nan")], pa.float32()),
        "big": pa.array([2**64 - 1], pa.uint64()),
        "flag": pa.array([True]),
        "word": pa.array(["x"]).dictionary_encode(),
    }
    pq.write_table(pa.table(columns), tmp_path / "r.parquet")
    alone = opened(tmp_path / "r.parquet")
    source, _ = joined(tmp_path, tmp_path / "r.parquet", "id,sex\np,f\n")
    assert source.types[:-1] == alone.types
    assert rows(source) == [(*rows(alone)[0], "f")]


@pytest.mark.parametrize(
    ("records", "units", "where", "said"),
    [
        (RECORDS, "id,ward\n", "data.units.path", "'ward' stands in both records.csv and units.csv"),
        (RECORDS, "key,sex\n", "data.units.id", "no column 'id' in units.csv"),
        ("day,ward\n", "id,sex\n", "privacy.unit", "no column 'patient' in records.csv"),
    ],
)
def test_mistakes_are_told_from_the_heads_alone(tmp_path: Path, records, units, where, said) -> None:
    with pytest.raises(UserError) as caught:
        joined(tmp_path, records, units)
    assert caught.value.where == where and said in caught.value.what


def test_a_file_that_is_broken_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError) as caught:
        joined(tmp_path, RECORDS + "p,1,a\n", "id,sex\np,f,3\n")
    assert "units.csv" in str(caught.value.where)


def test_either_table_that_changes_while_it_is_read_is_refused(tmp_path: Path) -> None:
    for name in ("records.csv", "units.csv"):
        source, _ = joined(tmp_path, RECORDS + "p,1,a\n", "id,sex,age\np,f,3\n")
        os.utime(tmp_path / name, ns=(1, 1))
        with pytest.raises(UserError, match="changed while it was read"):
            load_private(source, SCHEMA, UNIT, workdir=tmp_path / "w", key=b"k" * 16)


def counted(folder: Path, records: pd.DataFrame, units: pd.DataFrame, unit: PrivacyUnit) -> PrivateTable:
    folder.mkdir()
    records.to_csv(folder / "r.csv", index=False)
    units.to_csv(folder / "u.csv", index=False)
    source, _ = joined(folder, folder / "r.csv", folder / "u.csv", unit)
    return load_private(source, SCHEMA, unit, workdir=folder / "w", key=b"k" * 16)


def weights(table: PrivateTable, name: str) -> np.ndarray:
    """What each value of a column weighs, in units of 2**-WEIGHT_BITS records."""
    codes = np.asarray(table.coded.column(name))
    each = np.full(len(codes), WHOLE) if table.coded.weights is None else table.coded.weights
    return np.bincount(codes, each, minlength=table.coded.domain[name].size).astype(np.int64)


WAYS = [(c, m, r) for c in ("weight", "truncate") for m in ("drop", "own") for r in (UNIT.rules, ())]


@pytest.mark.parametrize(
    ("clip", "missing", "rules", "quick"),
    [(*WAYS[0], True), (*WAYS[7], True), *(pytest.param(*way, False, marks=pytest.mark.slow) for way in WAYS)],
)
def test_a_person_less_in_both_tables_moves_every_count_by_one_person(tmp_path, clip, missing, rules, quick) -> None:
    """The neighbour is a person: his records, and his rows in the table of units."""
    rng = np.random.default_rng(11)
    unit = PrivacyUnit("patient", 3, clip=clip, missing=missing, rules=rules)
    spelled = np.array(["{}", " {}", "{}.0", "0{}"])  # of one person under all rules, of four under none

    def drawn(size: int, most: int) -> pd.Series:
        texts = [f.format(i) for f, i in zip(rng.choice(spelled, size), rng.integers(0, most, size), strict=True)]
        return pd.Series(np.where(rng.random(size) < 0.05, "", texts))

    def person(ids: pd.Series) -> pd.Series:
        return pd.to_numeric(ids.str.strip(), errors="coerce").map("{:g}".format) if rules else ids

    n, m = (90, 40) if rules else (90, 80)
    days, wards = rng.integers(0, 99, n), rng.choice(["a", "b", "c"], n)
    records = pd.DataFrame({"patient": drawn(n, 12), "day": days, "ward": wards})
    ages, sexes = rng.integers(0, 99, m), rng.choice(["f", "m", ""], m)
    people = pd.DataFrame({"id": drawn(m, 15), "sex": sexes, "age": ages})  # some twice, absent, or without records
    whole = counted(tmp_path / "whole", records, people, unit)
    moved = set()
    ones = sorted({*person(records.patient)} - {"", "nan"})
    for number, one in enumerate(rng.permutation(ones)[: 5 if quick else 12]):
        left = records[person(records.patient) != one], people[person(people.id) != one]
        less = counted(tmp_path / str(number), *left, unit)
        assert whole.persons is not None and less.persons is not None
        for difference in by_question(whole.persons - less.persons, questions_of(SCHEMA)):
            assert (difference >= 0).all() and difference.sum() <= WHOLE
            moved.add(int(difference.sum()))
        for name in ("day", "ward"):
            difference = weights(whole, name) - weights(less, name)
            assert (difference >= 0).all() and difference.sum() <= 3 * WHOLE
    assert max(moved) == WHOLE
