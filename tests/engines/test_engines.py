"""The same codes, sizes, weights and counts from every engine, however the rows are ordered and cut into parts."""

import csv
import itertools
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mechanisms.public.coded_table import count_cliques
from mechanisms.public.domain import Attribute, Domain
from mechanisms.public.errors import UserError
from mechanisms.public.tables.scan import Source
from mechanisms.public.units import WEIGHT_BITS
from mechanisms.sensitive.contribution import PrivacyUnit, unit_numbers
from mechanisms.sensitive.engines import coins
from mechanisms.sensitive.engines import slices as slicing
from mechanisms.sensitive.engines.spark_counts import BLOCK, CountCodes, sum_blocks, summed
from mechanisms.sensitive.engines.spark_session import explained
from mechanisms.sensitive.engines.spark_tasks import FAULT, EncodeSlices
from mechanisms.sensitive.exact_answers import exact_marginals
from mechanisms.sensitive.private_table import load_private
from tests.engines.contract import HEAD, IDS_OF_TYPES, KEY, NO_IDS, SETTINGS, TABLES, Row, contract_schema, loaded, seen
from tests.pipeline.conftest import TOWN, reply
from tests.public.table_worlds import schema, source


def write(path: Path, rows: list[Row]) -> Source:
    """The rows as CSV, or as Parquet with small groups of rows."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".parquet":
        columns = {name: pa.array([r[i] for r in rows], pa.string()) for i, name in enumerate(HEAD)}
        pq.write_table(pa.table(columns), path, row_group_size=7)
    else:
        with path.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file, lineterminator="\n").writerows([HEAD, *rows])
    return source(path)


def in_tasks(table: Source, unit: PrivacyUnit) -> list[Any]:
    """The batches that the executors' own task makes of each slice of the table."""
    task = EncodeSlices(table, unit, KEY, 1 << 28, contract_schema())
    parts = slicing.slices(table, rows=10)
    given = [pa.RecordBatch.from_pydict({"part": [part], "relation": [relation]}) for part, relation in parts]
    return [batch for part in given for batch in task(iter([part]))]


@given(TABLES)
@settings(max_examples=8)
def test_slices_give_each_row_once_with_the_codes_and_units_of_the_whole(rows: list[Row]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        table = write(Path(folder) / "t.parquet", rows)
        parts = slicing.slices(table, rows=10)
        assert len(parts) == max(-(-len(rows) // 14), 1), "a slice ends with the second group of seven rows"
        apart = pa.Table.from_batches(
            in_tasks(table, PrivacyUnit("id", 2)), EncodeSlices(table, PrivacyUnit(), KEY, 0, contract_schema()).fields
        )
        whole = loaded(table, SETTINGS[0], Path(folder) / "w").coded
        for i, column in enumerate(whole.columns):
            assert apart.column(i).to_pylist() == column.tolist()
        assert sum(facts[0] for facts in apart.column("marks").to_pylist() if facts) == len(rows)


PLACE = schema(place={"kind": "integer", "min": 0, "max": 9, "missing": False})


def with_ids(path: Path, ids: Any) -> Source:
    """Each id in three rows, which hold its place among them, then two rows without an id."""
    three = pa.array([place for place in range(len(ids)) for _ in range(3)] + [9, 9])
    given = ids.take(pc.if_else(pc.equal(three, 9), pa.scalar(None, pa.int64()), three))
    pq.write_table(pa.table({"id": given, "place": three}), path)
    return source(path)


@pytest.mark.some(2)  # every type, under one of the rules
@pytest.mark.parametrize("missing", ["drop", "own"])
@pytest.mark.parametrize("kind", IDS_OF_TYPES)
def test_no_value_of_any_type_is_no_id_and_none_has_more_than_its_bound(kind, missing, tmp_path) -> None:
    ids, unit = IDS_OF_TYPES[kind], PrivacyUnit("id", 1, missing=missing)
    table = with_ids(tmp_path / "t.parquet", ids)
    private = load_private(table, PLACE, unit, workdir=tmp_path / "w", key=KEY)
    counts = next(exact_marginals(private.coded, [("place",)], batch_cells=10**6)) / 2**WEIGHT_BITS
    assert counts[9] == {"drop": 0, "own": 2}[missing], "rows without an id"
    assert (counts[: len(ids)] > 0).all() and (counts[: len(ids)] <= 1).all(), "each has an id, and one bound"
    task = EncodeSlices(table, unit, None, 1 << 28, PLACE)
    given = [pa.RecordBatch.from_pydict({"part": [p], "relation": [r]}) for p, r in slicing.slices(table, rows=4)]
    units = [u for batch in task(given) for u in batch.column("unit").to_pylist()]
    assert units[-2:] == [None, None] and None not in units[:-2], "as Spark's executors read them"
    assert all(len(set(units[i : i + 3])) == 1 for i in range(0, 3 * len(ids), 3))


@pytest.mark.parametrize("kind", NO_IDS)
def test_a_type_of_which_equal_values_have_several_texts_is_refused_as_an_id(kind, tmp_path) -> None:
    with pytest.raises(UserError, match=r"privacy\.unit: .*equal ones may be written in several ways"):
        unit_numbers(with_ids(tmp_path / "t.parquet", NO_IDS[kind]), PrivacyUnit("id", 1))


DOMAIN = Domain((Attribute("a", 300), Attribute("b", 7), Attribute("c", 90)))
CLIQUES = (("a",), ("a", "b"), ("a", "c"), ("b", "c"), ("a", "b", "c"))


@given(st.integers(0, 2**32), st.lists(st.integers(0, 400), max_size=6), st.booleans())
@settings(max_examples=20)
def test_counts_of_parts_sum_to_the_counts_of_the_whole(seed: int, sizes: list[int], weighted: bool) -> None:
    """Cells of 189,000 lie in several blocks, dense and sparse ones; parts may be empty."""
    rng = np.random.default_rng(seed)
    columns = [rng.integers(0, a.size, sum(sizes)).astype(np.int32) for a in DOMAIN.attributes]
    weights = rng.integers(0, 1 << 20, sum(sizes)).astype(np.int32)
    arrays = [*columns, *([weights] if weighted else [])]
    names = tuple("abcw"[: len(arrays)])
    task, blocks = CountCodes(DOMAIN, CLIQUES, names, weighted), []
    with tempfile.TemporaryDirectory() as folder:
        for start, end in itertools.pairwise(np.cumsum([0, *sizes])):
            path = f"{folder}/{len(blocks)}.parquet"
            pq.write_table(pa.table(dict(zip(names, [a[start:end] for a in arrays], strict=True))), path)
            blocks += task.of_files([path])
    sums = summed(sum_blocks(blocks))
    flat = np.concatenate([sums.get(i, np.zeros(BLOCK, np.int64)) for i in range(4)])
    from mechanisms.public.coded_table import CodedTable, code_dtype

    codes = tuple(c.astype(code_dtype(a.size)) for c, a in zip(columns, DOMAIN.attributes, strict=True))
    table = CodedTable(DOMAIN, codes, weights.astype(np.uint32) if weighted else None)
    expected = np.concatenate(count_cliques(table, CLIQUES))
    assert (flat[: expected.size] == expected).all() and not flat[expected.size :].any()


@pytest.mark.slow
@given(TABLES, st.randoms(use_true_random=False))
@settings(max_examples=2)
def test_neither_order_nor_form_of_the_file_changes_what_the_driver_learns(rows: list[Row], chance: Any) -> None:
    turned = list(rows)
    chance.shuffle(turned)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        tables = [write(folder / "a" / "t.csv", rows), write(folder / "b" / "t.parquet", turned)]
        for setting in (SETTINGS[1], SETTINGS[3], SETTINGS[5]):
            both = [seen(loaded(t, setting, t.path.parent / "w")) for t in tables]
            assert [f.pop("aside") is None for f in both] == [setting.holdout is None] * 2
            assert both[0] == both[1]


@pytest.mark.parametrize("copy", ["t.csv", "t.parquet"])
def test_parts_that_a_format_of_others_merged_are_read_once(copy: str, tmp_path: Path) -> None:
    """Its reader may hand over one copy of all parts: read for each of them, a record counted as often as there are."""
    whole = write(tmp_path / copy, [("ann", "rome", "1", "1", "2020-01-01", "x")] * 20)
    merged = replace(whole, parts=(tmp_path / "one.mine", tmp_path / "other.mine"))
    given = [relation for _, relation in slicing.slices(merged, rows=5)]
    assert sum(merged.lines(f"SELECT count(*) FROM {relation}")[0][0] for relation in given) == 20


def test_a_slice_that_cannot_be_read_gives_its_reason_as_data(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("id,city,n,f,day,note\nann,rome,1,1,2020-01-01,x\nbob,secret\n", encoding="utf-8")
    batches = in_tasks(source(tmp_path / "t.csv"), PrivacyUnit())
    faults = [text for batch in batches for text in batch.column(FAULT).to_pylist() if text]
    assert len(faults) == 1 and "malformed at line 3" in faults[0] and "secret" not in faults[0]


def test_an_error_of_a_task_holds_no_value_of_a_row() -> None:
    wrong = pa.RecordBatch.from_pydict({"a": ["secret"]})
    with pytest.raises(RuntimeError, match=r"a task failed with ValueError at \w+\.py:\d+") as caught:
        list(CountCodes(Domain((Attribute("a", 3),)), (("a",),), ("a",), False).of_batches([wrong]))
    assert "secret" not in str(caught.value) and caught.value.__suppress_context__


@pytest.mark.parametrize(
    ("message", "says"),
    [
        ("ModuleNotFoundError: No module named 'mechanisms'", "an executor's Python has no mechanisms"),
        ("[PYTHON_VERSION_MISMATCH] Python in worker has different version: 3.9", "another version"),
        ("java.lang.OutOfMemoryError: Java heap space, row: secret", "too little memory"),
        ("java.io.IOException: No space left on device", "a disk of an executor is full"),
        ("[PATH_NOT_FOUND] Path does not exist: file:/secret", "is gone"),
        ("java.io.IOException: Mkdirs failed to create file:/secret", "cannot be written"),
        ('Cannot run program "python9"', "cannot start Python"),
    ],
)
def test_what_a_cluster_lacks_is_said_in_one_line(message: str, says: str) -> None:
    error = explained(f"An error occurred while calling o1.parquet.\n{message}\n\tat secret")
    assert isinstance(error, UserError) and says in error.what
    assert "secret" not in str(error) and "fix: " in str(error)


def test_what_nobody_foresaw_is_a_fault_of_ours_and_quotes_nothing() -> None:
    error = explained("An error occurred.\njava.lang.ArithmeticException: row secret")
    assert isinstance(error, RuntimeError) and str(error) == "Spark stopped: ArithmeticException"
    inner = explained("pyspark: RuntimeError: a task failed with KeyError at codec.py:12\nsecret")
    assert str(inner) == "a task failed with KeyError at codec.py:12"


RUN = ["run", *TOWN, "engine=spark", "hydra.run.dir=out"]


def refused(capsys: pytest.CaptureFixture[str], *more: str) -> str:
    """What a run says that Spark cannot carry: one error, nothing charged, and the folder is free."""
    said = reply(capsys, *RUN, *more, code=1)
    assert not Path("out/internal/ledger.jsonl").exists() and not Path("out/release").exists()
    assert not Path("out/internal/manifest.json").exists() and "Traceback" not in said.err + said.out
    return said.err


@pytest.fixture
def no_spark_yet(monkeypatch) -> None:
    """As in a process in which no session of Spark has run."""
    pyspark = pytest.importorskip("pyspark", reason="left out: PySpark is not installed")
    sql = pytest.importorskip("pyspark.sql")
    monkeypatch.delenv("PYSPARK_GATEWAY_PORT", raising=False)
    monkeypatch.setattr(pyspark.SparkContext, "_active_spark_context", None)
    monkeypatch.setattr(sql.SparkSession, "getActiveSession", staticmethod(lambda: None))


def test_without_java_a_run_says_so(town, capsys, monkeypatch, no_spark_yet) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(town))
    assert "Spark needs Java, and there is none" in refused(capsys)


def test_an_old_java_is_named(town, capsys, monkeypatch, no_spark_yet) -> None:
    java = town / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\necho 'openjdk version \"1.8.0_392\"' >&2\n", encoding="utf-8")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(town))
    assert "is Java 8" in refused(capsys)


def test_without_pyspark_the_extra_is_named(town, capsys, monkeypatch) -> None:
    monkeypatch.setattr("mechanisms.public.members.find_spec", lambda name: None)
    assert "pip install pyspark (the extra `spark`" in refused(capsys)


@pytest.mark.parametrize(
    ("master", "says"),
    [
        ("here", "engine.master: got 'here'"),
        ("spark://here", "engine.master: got 'spark://here'"),
        ("spark://127.0.0.1:1", "no master answers at spark://127.0.0.1:1"),
    ],
)
def test_a_master_that_is_none_or_silent_is_named(town, capsys, monkeypatch, no_spark_yet, master, says) -> None:
    monkeypatch.setattr("mechanisms.sensitive.engines.spark_session.check_java", lambda: None)
    assert says in refused(capsys, f"engine.master={master}")


def test_the_key_is_in_no_name_of_an_engine_that_is_shown() -> None:
    from mechanisms.sensitive.contribution import Aside

    assert KEY.hex() not in repr(Aside(KEY, 0.5)) and repr(KEY) not in repr(Aside(KEY, 0.5))


def test_each_choice_has_coins_of_its_own() -> None:
    starts = [start(KEY) for start in (coins.of_truncation, coins.of_unit_aside, coins.of_row_aside)]
    starts += [coins.of_value(KEY, name) for name in ("a", "b")]
    assert not any(one.startswith(other) for one, other in itertools.permutations(starts, 2))


def test_nobody_without_the_key_can_write_two_records_of_one_digest(tmp_path) -> None:
    """Who knew the digest could write records whose coins hang together; the engines agree on it."""
    table = write(tmp_path / "t.parquet", [("", "rome", "1", "2", "", f"x{i}") for i in range(20)])
    other, unit = bytes(range(32)), PrivacyUnit()
    with table.connect() as engine:
        here, again, there = (
            engine.execute(f"SELECT {coins.content(table, key)} FROM {table.relation}").fetchall()
            for key in (KEY, KEY, other)
        )
    assert here == again and not set(here) & set(there) and len(set(here)) == 20
    assert all(len(digest) == 64 for (digest,) in here), "SHA-256"
    cut = write(tmp_path / "cut.parquet", [("", "rome", "12", "3", "", ""), ("", "rome", "1", "23", "", "")])
    with cut.connect() as engine:
        digests = engine.execute(f"SELECT {coins.content(cut, KEY)} FROM {cut.relation}").fetchall()
    assert digests[0] != digests[1], "of the cells, not of what they are together"
    task = EncodeSlices(table, unit, KEY, 1 << 28, contract_schema())
    (batch,) = task(iter([pa.RecordBatch.from_pydict({"part": [str(table.path)], "relation": [table.relation]})]))
    assert batch.column("content").to_pylist() == [digest for (digest,) in here]
    assert KEY.hex() not in repr(task) and repr(KEY) not in repr(task)
