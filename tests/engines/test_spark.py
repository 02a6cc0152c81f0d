"""Spark itself: what it counts is what the embedded engine counts, and the release is the same, byte for byte."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import numpy as np
import pytest

from mechanisms.public.coded_table import CodedTable
from mechanisms.public.domain import Attribute, Domain
from mechanisms.public.errors import UserError
from mechanisms.public.units import WEIGHT_BITS
from mechanisms.sensitive.contribution import PrivacyUnit, unit_numbers
from mechanisms.sensitive.engines import spark_engine
from mechanisms.sensitive.engines.spark_files import coded_parts
from mechanisms.sensitive.engines.spark_session import NEEDED
from mechanisms.sensitive.exact_answers import exact_marginals
from tests.audit.on_spark import check_rewritten
from tests.engines.contract import IDS_OF_TYPES, SETTINGS, Setting, loaded, seen
from tests.engines.test_engine_contract import mixed
from tests.engines.test_engines import PLACE, refused, with_ids, write
from tests.pipeline.conftest import PAIRS, TOWN, command, statement_of
from tests.pipeline.test_papers import OPEN, QUICK, TABLE, read_papers
from tests.pipeline.test_whole_persons import SCHEMA as PERSONS
from tests.pipeline.test_whole_persons import stays
from tests.public.table_worlds import source


def released(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def same_release(home: Path, *settings: str) -> None:
    """Runs with a fixed seed on both engines leave the same release."""
    common = ["seed=5", "evaluation.enabled=false", "limits.threads=1", *settings]
    assert command("run", *common, f"hydra.run.dir={home / 'one'}") == 0
    assert command("run", *common, "engine=spark", f"hydra.run.dir={home / 'other'}") == 0
    one, other = (released(home / name / "release") for name in ("one", "other"))
    assert one == other and len(one) > 5
    assert b"beside it were installed autodp" in other["statement.html"]  # the same words have to be true of both
    assert not any((home / "other" / "internal" / "tmp").glob("*"))
    shutil.rmtree(home / "one")
    shutil.rmtree(home / "other")


@pytest.mark.slow
def test_whole_persons_of_a_table_in_parts_are_the_embedded_engine_s_byte_for_byte(spark, tmp_path, monkeypatch):
    """Ties keep the order of the files, constants contradict, ids are missing, and bounds and C are discovered."""
    monkeypatch.chdir(tmp_path)
    frame = stays(120)
    frame.loc[::7, "patient"], frame.loc[::5, "day"], frame.loc[::11, "sex"] = "", "2020-03-01", "m"
    Path("stays").mkdir()
    for i in range(3):
        frame.iloc[i::3].to_parquet(f"stays/part-{i}.parquet", index=False)
    open_days = PERSONS.replace(
        "min: 2020-01-01, max: 2020-12-31", "bounds: discover, within: [2010-01-01, 2030-12-31]"
    )
    for text, more in ((PERSONS, ["evaluation.holdout=0.2"]), (open_days, ["privacy.max_records=discover"])):
        Path("stays.yaml").write_text(
            text + "unit: {column: patient, constant: [sex, town], order: day, records: {max: 5}}"
        )
        own = ["data=table", "data.path=stays", "data.schema=stays.yaml", "selection=oneway", "synthesis=independent"]
        same_release(tmp_path, *own, *more, "privacy.missing_unit=own", "privacy.delta=1e-6", "privacy.clip=truncate")


@pytest.mark.parametrize("missing", [pytest.param("drop", marks=pytest.mark.slow), "own"])
def test_spark_holds_ids_that_are_far_times_bytes_or_zero_to_their_bound(spark, missing, tmp_path) -> None:
    unit = PrivacyUnit("id", 1, missing=missing)
    for kind in ("timestamp us UTC", "decimal 38 38", "binary"):
        ids = IDS_OF_TYPES[kind]
        private = loaded(
            with_ids(tmp_path / f"{kind}.parquet", ids), Setting(unit), tmp_path / kind, engine=spark, of=PLACE
        )
        counts = next(exact_marginals(private.coded, [("place",)], batch_cells=10**6)) / 2**WEIGHT_BITS
        assert (counts[: len(ids)] > 0).all() and (counts[: len(ids)] <= 1).all()
        assert counts[9] == {"drop": 0, "own": 2}[missing]


def test_every_kind_of_id_that_spark_writes_is_one(spark, tmp_path) -> None:
    far = "9999-12-31 23:59:59.999999"
    kinds = f"timestamp'{far}' a, timestamp_ntz'{far}' b, date'9999-12-31' c, interval '0' day d, interval '0' month e"
    kinds += ", X'0001' f, cast(0 as decimal(2,2)) g, cast(0 as byte) h, double('inf') i, false j, '-' k"
    written = spark.session.sql(f"SELECT {kinds} FROM range(2)").coalesce(1).write
    for form in ("INT96", "TIMESTAMP_MICROS"):
        spark.session.conf.set("spark.sql.parquet.outputTimestampType", form)
        written.mode("overwrite").parquet(f"file:{tmp_path}/{form}")
        table = source(next((tmp_path / form).glob("*.parquet")))
        assert all(unit_numbers(table, PrivacyUnit(name, 1)).tolist() == [0, 0] for name in table.names)


def test_a_release_of_spark_is_the_embedded_engines_byte_for_byte(spark, town, monkeypatch) -> None:
    monkeypatch.setattr("pipeline.settings.memory.CHUNK_ROWS", 1000)
    drawn = []
    monkeypatch.setattr(spark_engine, "coded_parts", lambda *a: drawn.append(a[2]) or coded_parts(*a))
    settings = ["privacy.unit=person", "privacy.max_records=2", "selection=pairs", "synthesis=independent"]
    same_release(town, *TOWN, *settings, "synthesis.rows=2500")  # the default may ask over groups of values
    assert drawn == [range(3)]


@pytest.mark.parametrize("name", ["discovery", "rows without an id, own"])
def test_the_papers_of_a_private_release_of_spark_say_what_they_say_of_any(spark, town, name) -> None:
    (town / "open.yaml").write_text(OPEN)
    assert command("run", *QUICK, "engine=spark", "hydra.run.dir=out", *TABLE[name].settings) == 0
    assert statement_of(town / "out")["private"] is True
    read_papers(TABLE[name], town / "out/release")


def test_copies_of_rows_are_deleted_where_java_ended_before_and_a_refusal_of_java_is_told(tmp_path) -> None:
    """A signal to all processes of a run left them in the scratch folder, and "interrupted" was a fault of ours."""
    refused = pytest.importorskip("py4j.protocol").Py4JJavaError
    session, files, folder = MagicMock(), MagicMock(), tmp_path / "copies"
    session._jvm.org.apache.hadoop.fs.Path.side_effect = lambda text: MagicMock(
        toString=lambda: text, getFileSystem=lambda _: files
    )
    files.delete.side_effect = ConnectionRefusedError
    with pytest.raises(KeyboardInterrupt), spark_engine.private_place(session, str(folder)):
        folder.mkdir()
        (folder / "codes").write_text("1")
        raise KeyboardInterrupt
    assert not folder.exists()
    files.delete.side_effect = refused("delete: no permission", MagicMock())
    with pytest.raises(refused), spark_engine.private_place(session, str(folder)):
        pass


def test_a_session_that_a_run_starts_has_no_pages_no_log_of_events_and_a_driver_that_logs_nothing(spark) -> None:
    context = spark.session.sparkContext
    assert context.uiWebUrl is None and context.getConf().get("spark.eventLog.enabled") == "false"
    logger = context._jvm.org.apache.logging.log4j.LogManager.getRootLogger()
    assert (logger.getLevel().toString(), list(logger.getAppenders().keySet())) == ("OFF", ["none"])


def test_a_part_that_cannot_be_made_or_written_ends_the_run_with_its_reason(spark, tmp_path) -> None:
    domain = Domain((Attribute("a", 3, 0),))

    def part(number: int) -> CodedTable:
        if number == 2:
            raise UserError("no row is possible", where="where", fix="less")
        return CodedTable(domain, (np.full(2, number, np.uint8),))

    made = coded_parts(spark.session, part, range(2), str(tmp_path / "parts"))
    assert [c.tolist() for (c,) in made] == [[0, 0], [1, 1]]
    assert not any((tmp_path / "parts").iterdir())
    with pytest.raises(UserError, match="no row is possible"):
        next(coded_parts(spark.session, part, range(3), str(tmp_path / "other")))
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="cannot write"):
        next(coded_parts(spark.session, part, range(1), str(tmp_path / "file")))


def test_private_copies_lie_where_the_setting_says_whatever_the_folder_is_called(spark, tmp_path) -> None:
    from mechanisms.sensitive.engines.spark_engine import SparkEngine, private_place

    folder = tmp_path / "the ä%20 [1], {a}*"
    with private_place(spark.session, str(folder)) as place:
        assert folder.stat().st_mode & 0o777 == 0o700
        table = write(tmp_path / "t.csv", mixed(30))
        here, there = ({}, {"engine": SparkEngine(spark.session, place)})
        seen_by = [seen(loaded(table, SETTINGS[2], tmp_path / str(len(e)), **e)) for e in (here, there)]
        for each in seen_by:  # lone texts: by persons here, by ids as they stand there
            each["encoding"] = replace(each["encoding"], lone={})
        assert seen_by[0] == seen_by[1] and any(folder.glob("codes-*/part-*"))
    assert not folder.exists()


@pytest.mark.slow
def test_a_scratch_folder_that_has_no_path_gives_the_same(spark, tmp_path) -> None:
    """An address of Hadoop's: Spark writes and reads what elsewhere the tasks do."""
    from mechanisms.sensitive.engines.spark_engine import SparkEngine, private_place

    hadoop = spark.session.sparkContext._jsc.hadoopConfiguration()
    hadoop.set("fs.viewfs.mounttable.there.link./copies", f"file://{tmp_path}")
    tables = {"csv": mixed(300), "parquet": mixed(2)}
    with private_place(spark.session, "viewfs://there/copies/private") as place:
        engine = SparkEngine(spark.session, place)
        for form, rows in tables.items():
            table = write(tmp_path / f"t.{form}", rows)
            for i in (0, 2, 5):
                here = seen(loaded(table, SETTINGS[i], tmp_path / f"a{i}{form}"))
                assert seen(loaded(table, SETTINGS[i], tmp_path / f"b{i}{form}", engine=engine)) == here
        assert any((tmp_path / "private").glob("codes-*/*.parquet"))


@pytest.mark.slow
@pytest.mark.parametrize(
    "settings",
    [
        ["selection=pairs", "privacy.neighbouring=replace"],
        ["selection=mst", "synthesis=pgm"],
        ["selection=aim", "selection.k=[2]", "selection.rounds=3", "synthesis=pgm"],
        ["selection=indif"],
        ["selection=adagrid"],
        ["privacy.unit=person", "privacy.max_records=2", "privacy.clip=truncate", "evaluation.holdout=0.2"],
    ],
    ids=lambda s: s[0],
)
def test_each_selection_releases_the_same_on_spark(spark, town, settings) -> None:
    same_release(town, *TOWN, *settings)


def test_a_scratch_folder_that_cannot_be_made_is_named(spark, town, capsys) -> None:
    assert "cannot make a folder for private copies" in refused(capsys, "engine.scratch=town.csv/inside")


def test_parts_with_other_columns_are_named(spark, town, capsys) -> None:
    (town / "parts").mkdir()
    shutil.copy("town.csv", "parts/a.csv")
    Path("parts/b.csv").write_text("age,sex\n5,f\n", encoding="utf-8")
    assert "parts/b.csv: its columns do not agree with a.csv" in refused(capsys, "data.path=parts")


def test_a_part_that_is_gone_when_it_is_read_is_named(spark, tmp_path) -> None:
    for form in ("csv", "parquet"):
        for engine in ({}, {"engine": spark}):
            home = tmp_path / form / str(len(engine))
            for name in ("a", "b"):
                write(home / "parts" / f"{name}.{form}", mixed(20))
            table = source(home / "parts")
            (home / "parts" / f"b.{form}").unlink()
            with pytest.raises(UserError) as caught:
                loaded(table, SETTINGS[0], home / "rows", **engine)
            assert f"b.{form}" in str(caught.value) and caught.value.fix


def test_no_record_counts_twice_because_rows_move_among_parts_that_tasks_read(spark, tmp_path) -> None:
    check_rewritten(spark, tmp_path)


def test_a_private_copy_that_is_gone_when_it_is_counted_ends_the_run(spark, tmp_path) -> None:
    private = loaded(write(tmp_path / "t.csv", mixed(20)), SETTINGS[0], tmp_path / "rows", engine=spark)
    for copy in Path(spark.folder.removeprefix("file:")).glob("codes-*/part-*"):
        copy.unlink()
    with pytest.raises(UserError, match="is gone"):
        seen(private)


def test_no_setting_makes_spark_skip_rows_of_a_unit_while_its_records_are_counted(spark, tmp_path, monkeypatch) -> None:
    """Rows that cannot be read for a moment, and are there again when the weights are known, would weigh too much."""
    sizes, skip = spark_engine.EncodedRows._sizes, "spark.sql.files.ignoreCorruptFiles"

    def for_a_moment(rows: Any, aside: Any) -> Any:
        held = {Path(file): Path(file).read_bytes() for file in rows.rows.files[1:]}
        try:
            for file, content in held.items():
                file.write_bytes(bytes(len(content)))
            return sizes(rows, aside)
        finally:
            for file, content in held.items():
                file.write_bytes(content)

    monkeypatch.setattr(spark_engine.EncodedRows, "_sizes", for_a_moment)
    monkeypatch.setattr("mechanisms.sensitive.engines.slices.SLICE_ROWS", 7)
    table = write(tmp_path / "t.parquet", [("ann", "rome", "1", "0.5", "", "")] * 28)
    before = {name: spark.session.conf.get(name) for name in NEEDED}
    for name in before:
        spark.session.conf.unset(name)
    spark.session.conf.set(skip, "true")
    try:
        mine = spark_engine.SparkSettings().opened(tmp_path)
        with mine as engine, pytest.raises((UserError, RuntimeError)):
            loaded(table, Setting(PrivacyUnit("id", 10)), tmp_path / "rows", engine=engine)
        assert spark.session.conf.get(skip) == "true", "the session is as it was"
    finally:
        for name, value in before.items():
            spark.session.conf.set(name, value)


@pytest.mark.slow
def test_scores_of_a_large_table_count_all_rows_and_take_a_sample_where_they_need_rows(spark, town) -> None:
    """The sample has about 200 of 600 rows; counts, of values that the schema does not place too, are of all rows."""
    table = Path("town.csv").read_text(encoding="utf-8").replace(",12,", ",120,")
    Path("town.csv").write_text(table, encoding="utf-8")
    metrics = ["evaluation.metrics=[mgd,tvd,correlation,dependence]", "evaluation.seed=1"]
    common = ["run", *TOWN, *PAIRS, "seed=5", *metrics]
    for name, engine in (("one", []), ("other", ["engine=spark", "engine.score_rows=200"])):
        assert command(*common, *engine, f"hydra.run.dir={name}") == 0
    one, other = (json.loads(Path(n, "internal/scores.json").read_text()) for n in ("one", "other"))
    assert "sample" not in one and 120 < other["sample"]["rows"] < 280
    assert other["sample"]["of"] == ["correlation", "references", "numbers", "groups", "correlations"]
    assert not any(line.startswith("rows, and so totals") for line in other.get("first", ())), "the sample has fewer"
    assert other["rows"] == one["rows"] and other["tvd"] == one["tvd"] and other["mgd"] == one["mgd"]
    assert other["metrics"]["correlation"]["score"] != one["metrics"]["correlation"]["score"]
    kept = [{**scores["metrics"]["dependence"]["details"], "ends": None} for scores in (one, other)]
    assert kept[0] == kept[1] and kept[0]["dependent_pairs"]
    assert "From a sample of" in Path("other/internal/report.html").read_text(encoding="utf-8")
