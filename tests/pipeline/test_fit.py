"""`pipeline.fit`: frames in and out, by the very stages of the command."""

import datetime
import enum
import errno
import json
import os
import sys
import tempfile
import traceback
import types
import uuid
from decimal import Decimal
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pipeline
from mechanisms.public.errors import UserError
from mechanisms.public.schema.table_schema import load_schema, parse_schema
from pipeline.frames.frame_files import object_texts, write_frame
from pipeline.frames.frame_kinds import Kind, keep_kinds, kinds_file, stored_kinds
from pipeline.stage_bars import Stages
from pipeline.statement.signing import MANIFEST, file_digest
from pipeline.statement.verify import verify
from tests.pipeline.conftest import PAIRS, SCHEMA, TOWN, command, people, reply

COLUMNS = {
    "id": {"kind": "integer", "min": 0, "max": 400, "bins": {"count": 4}, "missing": False},
    "stay": {"kind": "integer", "min": 0, "max": 9},
    "fare": {"kind": "float", "min": 0, "max": 50},
    "sex": {"kind": "categorical", "values": ["F", "M"], "missing": False},
    "job": {"kind": "categorical", "values": ["baker", "smith"], "other": "else"},
    "ward": {"kind": "categorical", "values": ["a", "b", "c", "d"], "missing": False},
    "grade": {"kind": "categorical", "values": [1, 2, 3], "missing": False},
    "insured": {"kind": "flag", "missing": False},
    "smoker": {"kind": "flag"},
    "born": {"kind": "date", "min": "1980-01-01", "max": "1980-12-31", "missing": False},
    "seen": {"kind": "datetime", "min": "2020-01-01", "max": "2020-12-31", "bins": "month", "missing": False},
    "told": {"kind": "date", "min": "2020-01-01", "max": "2020-12-31", "format": "%d.%m.%Y", "missing": False},
}
HOSPITAL = {"name": "hospital", "columns": COLUMNS, "confirmed_public": True}
#: Where not every kind matters.
FEW = HOSPITAL | {"columns": {n: COLUMNS[n] for n in ("sex", "stay", "smoker")}}
QUICK = {"selection": "oneway", "synthesis": "independent", "quiet": True}


def patients(rows: int = 200, seed: int = 1) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    days = pd.to_datetime("2020-01-01") + pd.to_timedelta(rng.integers(0, 366, rows), unit="D")
    return pd.DataFrame(
        {
            "note": "not in the schema",
            "seen": days.astype("datetime64[ns]"),
            "id": np.arange(rows),
            "stay": pd.array(rng.integers(0, 10, rows), dtype="Int32"),
            "fare": (rng.random(rows) * 50).astype("float32"),
            "sex": pd.Series(rng.choice(["F", "M"], rows), dtype=object),
            "job": pd.Series(rng.choice(["baker", "smith", "judge"], rows), dtype="string"),
            "ward": pd.Categorical(rng.choice(["a", "b"], rows), ordered=True),
            "grade": rng.integers(1, 4, rows),
            "insured": rng.random(rows) < 0.5,
            "smoker": pd.array(rng.random(rows) < 0.3, dtype="boolean"),
            "born": pd.Series([datetime.date(1980, 1, 1 + i % 28) for i in range(rows)], dtype=object),
            "told": days.strftime("%d.%m.%Y"),
        }
    )


@pytest.fixture(scope="module")
def hospital() -> pipeline.Release:
    return pipeline.fit(patients(), HOSPITAL, epsilon=100, **QUICK)


def test_rows_come_out_as_many_as_asked_in_the_columns_order_and_dtypes_of_the_frame(hospital):
    frame, made = patients(), hospital.sample(123)
    assert len(made) == 123 and list(made.columns) == list(frame.columns[1:])
    same = [n for n in made.columns if n not in {"ward"}]
    assert made[same].dtypes.to_dict() == frame[same].dtypes.to_dict()
    assert isinstance(made["born"][0], datetime.date) and made["insured"].isin([True, False]).all()
    assert pd.to_datetime(made["told"], format="%d.%m.%Y").dt.year.eq(2020).all()
    assert set(made["job"].dropna()) <= {"baker", "smith", "else"} and made["fare"].dropna().between(0, 50).all()
    assert made["ward"].dtype == pd.CategoricalDtype(["a", "b", "c", "d"], ordered=True), "not those of the rows"


def test_dtypes_do_not_tell_whether_the_private_frame_has_gaps(hospital):
    """Pandas makes floats of whole numbers with a gap, and objects of flags: one row would show in a dtype."""
    with_gap = patients().astype({"stay": "float64", "smoker": object})
    without = patients().astype({"stay": "int64", "smoker": bool})
    with_gap.loc[3, ["stay", "smoker"]] = [np.nan, None]
    for flag, dtype in (({}, "boolean"), ({"true": ["yes"], "false": ["no"], "spellings": "common"}, "object")):
        facts = FEW | {"columns": FEW["columns"] | {"smoker": COLUMNS["smoker"] | flag}}
        kinds = [pipeline.fit(f, facts, **QUICK).sample(5).dtypes.to_dict() for f in (with_gap, without)]
        assert kinds[0] == kinds[1]
        assert str(kinds[0]["stay"]) == "Int64" and str(kinds[0]["smoker"]) == dtype


def test_the_file_of_kinds_beside_a_release_does_not_tell_of_gaps_either(tmp_path):
    frame, written = patients().astype({"stay": "int64"}), []
    for name, own in (("whole", frame), ("gap", frame.astype({"stay": "float64"}))):
        pipeline.fit(own, FEW, **QUICK).save(tmp_path / name)
        written.append(json.loads((tmp_path / f"{name}.frame.json").read_text())["columns"])
    assert written[0] == written[1]


def test_one_unit_whose_id_is_the_end_of_time_weighs_no_more_than_its_bound():
    end = datetime.datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=datetime.UTC)
    others = [datetime.datetime(2024, 1, 1, i, tzinfo=datetime.UTC) for i in range(20)]
    ids = pa.array([end] * 3000 + others, pa.timestamp("us", "UTC"))
    frame = pa.table({"uid": ids, "a": ["x"] * 3000 + ["y"] * 20})
    facts = {"columns": {"a": {"kind": "categorical", "values": ["x", "y"]}}, "confirmed_public": True}
    own = {"unit": "uid", "max_records": 1, "privacy": {"missing_unit": "own"}}
    counts = pipeline.fit(frame, facts, epsilon=100, **own, **QUICK).marginal(["a"])["count"]
    assert abs(counts[0] - 1) < 9 and abs(counts[1] - 20) < 9


@pytest.mark.parametrize("library", ["polars", "pyarrow"])
def test_frames_go_in_by_the_arrow_interface_and_come_out_in_every_form(library, tmp_path):
    frame = patients().drop(columns=["ward", "note"]).astype({"job": object})
    arrow = pa.Table.from_pandas(frame, preserve_index=False).append_column("ward", pa.array(["a", "b"] * 100))
    polars = pl.from_arrow(arrow).with_columns(pl.col("ward").cast(pl.Categorical), pl.col("id").cast(pl.Int16))
    release = pipeline.fit(polars if library == "polars" else arrow.to_reader(), HOSPITAL, seed=1, **QUICK)
    made, same = release.sample(50, seed=1, form="pandas"), release.sample(50, seed=1, form="arrow")
    assert isinstance(release.sample(1), pl.DataFrame if library == "polars" else pd.DataFrame)
    assert isinstance(release.sample(3, form="polars"), pl.DataFrame)
    with pytest.raises(UserError, match="form"):
        release.sample(3, form="spark")
    assert len(made) == 50 and isinstance(made, pd.DataFrame) and isinstance(same, pa.Table)
    assert made.columns.tolist() == same.column_names == [*frame.columns, "ward"]
    assert made["id"].tolist() == same["id"].to_pylist()
    if library == "polars":
        assert same.schema.field("id").type == pa.int16() and str(made["ward"].dtype) == "category"
        kinds = release.sample(30).schema
        told = {"id": pl.Int16, "insured": pl.Boolean, "born": pl.Date, "ward": pl.Categorical}
        assert {name: kinds[name] for name in told} == told and pl.from_arrow(same).schema["born"] == pl.Date
        assert pipeline.load(release.save(tmp_path / "kept"), synthesis="independent").sample(30).schema == kinds


def test_listed_numbers_with_fractions_and_whole_ones_are_numbers_again_and_codes_are_texts():
    """A draft proposes the list for marks; whoever followed it could take no mean of them."""
    listed = {"mark": [1.0, 1.3, 5.0], "code": ["007", "012"], "site": ["101", "305"]}
    columns = {n: {"kind": "categorical", "values": v, "missing": False} for n, v in listed.items()}
    frame = pd.DataFrame({"mark": [1.0, 1.3] * 50, "code": [7, 12] * 50, "site": [101, 305] * 50})
    for whole in (np.int64, np.float64):  # one gap in the frame makes the other of them
        own = frame.astype({"code": whole, "site": whole})
        kinds = pipeline.fit(own, {"columns": columns, "confirmed_public": True}, **QUICK).sample(5).dtypes
        assert [str(kinds[name]) for name in ("mark", "code", "site")] == ["float64", "str", "int64"]


@pytest.mark.parametrize(("gap", "dtype"), [(["9"], "Int64"), (["", "9"], "Int64"), (["x", "9"], "str")])
def test_listed_whole_numbers_beside_a_code_of_a_gap_are_numbers_again(gap, dtype):
    columns = {"consent": {"kind": "categorical", "values": [0, 1], "missing": gap}}
    release = pipeline.fit(pd.DataFrame({"consent": [0, 1, 9] * 40}), {"columns": columns}, **QUICK)
    assert str(release.sample(50)["consent"].dtype) == dtype


def test_numbers_with_a_code_for_others_are_texts_whatever_is_drawn():
    facts = {"columns": {"stay": COLUMNS["stay"] | {"other": "else"}}, "confirmed_public": True}
    release = pipeline.fit(patients().astype({"stay": "float64"}), facts, **QUICK)
    assert {str(release.sample(n)["stay"].dtype) for n in (1, 2, 50)} == {"str"}


def test_what_the_frame_calls_its_columns_is_kept(tmp_path):
    frame = pd.DataFrame({0: [1, 2, 3], "b": [0, 1, 2]})
    facts = {"columns": {"0": {"kind": "integer", "min": 0, "max": 5}}, "confirmed_public": True}
    assert pipeline.fit(frame, facts, **QUICK).sample(4).columns.tolist() == [0]


def test_nothing_is_left_behind(folder, monkeypatch):
    (folder / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder / "temporary"))
    release = pipeline.fit(patients(), FEW, **QUICK)
    release.sample(10)
    card = release.score(patients(), holdout=patients(60, seed=2), metrics=["tvd"])
    said = f"private: ε = {release.statement['guarantee']['epsilon']:.6g}"
    assert card.release["private"] and said in repr(card) and said in card._repr_html_(), "as beside a file"
    assert card.privacy.to_json()["rows"]["holdout"] == 60
    assert pipeline.score(patients(), patients(), FEW, metrics=["tvd"]).tvd["2-way"]["max"] == 0
    with pytest.raises(UserError, match="smoker"):
        pipeline.fit(patients().assign(smoker="perhaps"), FEW, **QUICK)
    assert [p.name for p in folder.rglob("*")] == ["temporary"]


def test_values_that_the_frame_s_kind_cannot_hold_come_out_as_the_schema_makes_them():
    """Records read as numbers: all of them are unreadable, and made-up numbers are no records."""
    records = pd.array([{"a": 1}] * 100, dtype=pd.ArrowDtype(pa.struct([("a", pa.int64())])))
    schema = {"columns": {"x": {"kind": "integer", "min": 0, "max": 9}}, "confirmed_public": True}
    release = pipeline.fit(pd.DataFrame({"x": records}), schema, epsilon=9, quiet=True, **{"data.max_unplaced": 1})
    assert pd.api.types.is_integer_dtype(release.sample(5)["x"])


def test_a_named_folder_keeps_both_sides_and_the_scores(tmp_path):
    release = pipeline.fit(patients(), FEW, folder=tmp_path / "mine", **QUICK, evaluation={"metrics": ["tvd"]})
    assert "tvd" in json.loads((tmp_path / "mine/internal/scores.json").read_text())
    assert pipeline.load(tmp_path / "mine").statement == release.statement
    with pytest.raises(UserError, match=r"folder: this folder already holds a run\n.*another folder"):
        pipeline.fit(patients(), FEW, folder=tmp_path / "mine", **QUICK)


def test_off_a_terminal_fit_says_what_its_release_cannot_show_and_nothing_of_rows(capsys):
    frame = pd.DataFrame({"sex": ["F", "M"] * 100, "plz": [f"{i:05}" for i in range(200)], "job": "a"})
    frame.loc[0, "job"] = "vet"
    columns = {"sex": COLUMNS["sex"], "plz": {"kind": "zip", "digits": 5, "prefix": 3, "missing": False}}
    columns["job"] = {"kind": "categorical", "values": ["a", "vet"], "missing": False}
    pipeline.fit(frame, HOSPITAL | {"columns": columns}, epsilon=5, **QUICK | {"quiet": False})
    said = capsys.readouterr().err
    assert "warning: no pair of columns was measured" in said and "1 mostly noise: plz" in said
    assert "warning: 'plz': the last 2 digits are drawn evenly" in said
    assert "texts of one person" in said and "alone holds" not in said, "that there is one would tell of a row"


def test_it_is_the_very_run_of_the_command(town):
    frame = people(600)
    given = {"unit": "person", "max_records": 4, "epsilon": 2, "delta": 1e-6, "quiet": True, "seed": 7}
    release = pipeline.fit(frame, "town.yaml", **given, selection="pairs", synthesis="gum")
    settings = ["privacy.unit=person", "privacy.max_records=4", "privacy.epsilon=2", "privacy.delta=1e-6", "seed=7"]
    assert command("run", *TOWN, *PAIRS, *settings, "evaluation.enabled=false", "hydra.run.dir=out") == 0
    saved = release.save("saved")
    theirs = {p.relative_to("out/release"): p.read_bytes() for p in Path("out/release").rglob("*") if p.is_file()}
    ours = {p.relative_to(saved): p.read_bytes() for p in saved.rglob("*") if p.is_file()}
    assert ours == theirs
    assert not release.private and "NOT private: the noise seed is fixed" in repr(release)


def test_settings_are_the_commands_own(hospital):
    release = pipeline.fit(
        people(300),
        {"columns": {"sex": {"kind": "categorical", "values": ["f", "m"]}}, "confirmed_public": True},
        quiet=True,
        delta=0,
        mechanism="laplace",
        selection={"kind": "pairs", "k": [1]},
        privacy={"accountant": "basic"},
        statement={"publisher": "the town, its office"},
        **{"privacy.neighbouring": "replace"},
    )
    said = release.statement
    assert said["accountant"] == "basic" and said["neighbouring"] == "replace" and said["guarantee"]["delta"] == 0
    assert said["events"][0]["mechanism"] == "laplace" and said["published"]["publisher"] == "the town, its office"
    assert release.private and repr(release).startswith("Release('schema', private: ε = 1")
    assert hospital.statement["unit"]["column"] is None


WRONG = [
    ({"privacy": {"acountant": "zcdp"}}, "did you mean 'privacy.accountant'"),
    ({"selection": "ami"}, "no selection called 'ami'"),
    *(({"selection": odd}, "no selection called") for odd in ([], range(3), "\0", "x" * 5000)),
    ({"accept": {"metric": "l1"}}, "no such setting"),
    ({"epsilon": "much"}, "privacy.epsilon"),
    ({"unit": "person"}, "privacy.max_records"),
    ({"unit": "persn", "max_records": 2}, "did you mean 'person'"),
    ({"data": "adult"}, "the frame is the table"),
    ({"privacy.epsilon": 2, "resume": True}, "fix: epsilon="),
    ({"hydra.run.dir": "out"}, "folder="),
    ({"evaluation": {"metrics": ["tvd"]}}, "release.score(frame)"),
    ({"plugins": {1, 2}}, "got set"),
    ({"epsilo": 2}, "did you mean 'epsilon'"),
    ({"max_record": 2}, "did you mean 'max_records'"),
    ({"statment": {"publisher": "x"}}, "did you mean 'statement'"),
    ({"selection.max_cels": 5}, "did you mean 'selection.max_cells'"),
    ({"format": "json"}, "only the command prints"),
    ({"unit": "nobody", "max_records": 2}, "no column 'nobody' in the frame"),
    ({"quiet": "no"}, "quiet: got 'no'"),
]


def refused(frame, schema, **settings):
    with pytest.raises(UserError) as error:
        pipeline.fit(frame, schema, **settings)
    assert ".parquet" not in str(error.value), "no file that nobody made is named"
    return str(error.value)


@pytest.mark.parametrize(("settings", "said"), WRONG, ids=lambda w: str(w)[:30])
def test_a_mistake_is_the_commands_message(town, settings, said):
    assert said in refused(people(50), "town.yaml", **{"quiet": True, **settings})


class Odd:
    """An object that cannot be written, and whose equals are others."""

    def __str__(self) -> str:
        raise RuntimeError("no text")


MIXED = [Decimal("sNaN"), 4, "4", 4.0, Decimal("4.00"), np.int8(4), 2**70, "seven", True, None, pd.NaT, 10**5000]
MIXED += [Odd(), [1], "\udc80"]
#: Where the units matter alone.
WARDS = {"columns": {"ward": {"kind": "categorical", "values": ["a", "b"]}}, "confirmed_public": True}


def test_equal_objects_that_are_ids_have_one_text():
    west, utc = datetime.timezone(datetime.timedelta(hours=1)), datetime.UTC
    for equal in (
        [pd.Timedelta(days=1), datetime.timedelta(1), np.timedelta64(1, "D"), np.timedelta64(24, "h")],
        [float("inf"), Decimal("Infinity"), np.float32("inf")],
        [-float("inf"), Decimal("-Infinity")],
        *([2**n, 2.0**n, Decimal(2**n), np.float64(2**n)] for n in (53, 60, 80, 150, 1000)),
        [-(2**63), -(2.0**63), np.int64(-(2**63)), Decimal(-(2**63))],
        [0.1, np.float64(0.1), Decimal.from_float(0.1)],
        [0.0, -0.0, 0, Decimal("-0.00"), Decimal("0E-99")],
        [10**300, Decimal("1e300")],
        [datetime.time(1, tzinfo=west), datetime.time(0, tzinfo=utc)],
        [datetime.datetime(2024, 1, 1, 1, tzinfo=west), pd.Timestamp("2024-01-01", tz="UTC")],
    ):
        assert all(value == equal[0] for value in equal)
        assert len(set(object_texts(pd.Series(equal, dtype=object), None).to_pylist())) == 1


@pytest.mark.parametrize("beside", [[], ["a text"], [Decimal(1)]])
@pytest.mark.parametrize("unseen", [b"\x00", b" ", b"\t\n", b"\xe2\x80\x8b"])
def test_bytes_of_a_frame_that_show_nothing_are_an_id_and_weigh_no_more_than_its_bound(unseen, beside):
    ids = [*[unseen] * 300, *beside]
    frame = pd.DataFrame({"who": pd.Series(ids, dtype=object), "ward": "a"})
    own = {"unit": "who", "max_records": 1, "privacy.missing_unit": "own"}
    release = pipeline.fit(frame, WARDS, epsilon=1e4, **own, **QUICK)
    assert release.marginal(["ward"])["count"].round().tolist()[0] == 1 + len(beside)


@pytest.mark.filterwarnings("ignore::polars.exceptions.PolarsInefficientMapWarning")
def test_addresses_of_objects_are_refused_as_ids_and_the_way_out_that_is_named_gives_equal_objects_one():
    """Polars holds UUIDs as Python objects, and its Arrow stream gives where they lie: each row was a unit."""
    frame = pl.DataFrame({"who": [*(uuid.UUID(int=1) for _ in range(300)), None], "ward": "a"})
    facts, unit, ids = WARDS, {"unit": "who", "max_records": 1}, frame.select("who")
    for read in (
        lambda: pipeline.fit(frame, facts, **unit, **QUICK),
        lambda: pipeline.fit(frame.to_arrow(), facts, **unit, **QUICK),
        lambda: pipeline.fit(frame.to_arrow().to_pandas(types_mapper=pd.ArrowDtype), facts, **unit, **QUICK),
        lambda: pipeline.fit(frame.select("ward", who=pl.lit("1")), facts, units=ids, **unit, **QUICK),
        lambda: pipeline.check(frame, facts, **unit),
        lambda: pipeline.draft(frame, unit="who"),
        lambda: pipeline.score(frame, frame, facts),
    ):
        with pytest.raises(UserError, match=r"'who' holds 8 bytes.*\n.*pl\.col\('who'\)\.map_elements\(str, "):
            read()
    texts = frame.with_columns(pl.col("who").map_elements(str, return_dtype=pl.String))
    assert texts["who"].null_count() == 1
    assert pipeline.fit(texts, facts, epsilon=1e4, **unit, **QUICK).marginal(["ward"])["count"].round()[0] == 1


@pytest.mark.parametrize("kind", ["JSON", "TIMETZ"])
def test_types_of_a_duckdb_relation_with_several_texts_for_a_value_are_refused_as_ids_alone(kind):
    texts = """('{"a":1}'), ('{"a": 1}')""" if kind == "JSON" else "('12:00:00+00'), ('13:00:00+01')"
    with duckdb.connect() as engine:
        rows = engine.sql(f"SELECT v::{kind} AS who, 'a' AS ward FROM (VALUES {texts}) t(v)")
        with pytest.raises(UserError, match=r"privacy\.unit: the column 'who' holds .*several ways"):
            pipeline.fit(rows, WARDS, unit="who", max_records=1, **QUICK)
        assert pipeline.fit(rows, WARDS, epsilon=1e4, **QUICK).marginal(["ward"])["count"].round()[0] == 2


class Ward(str, enum.Enum):  # noqa: UP042 - a StrEnum writes itself as its value
    """A text whose own way of writing itself is another one."""

    EAST = "east"


@pytest.mark.parametrize("beside", ["a text", 5, None, Decimal(1), "\udc80"])
@pytest.mark.parametrize(
    ("value", "text"), [(Ward.EAST, "east"), *((Decimal(n), None) for n in ("NaN", "sNaN", "-sNaN12"))]
)
def test_a_text_that_writes_itself_otherwise_and_a_decimal_that_is_none_are_read_so_whatever_stands_beside_them(
    value, text, beside
):
    first, other = object_texts(pd.Series([value, beside], dtype=object), None).to_pylist()
    assert first == text and (beside == "\udc80" or other == (None if beside is None else str(beside)))


def test_no_value_of_a_column_of_objects_stops_a_run_or_changes_how_another_is_read():
    days = [datetime.date(2020, 1, 2), "02.01.2020", np.datetime64("2020-01-02"), pd.Timestamp("2020-01-02", tz="UTC")]
    told = COLUMNS["told"] | {"bins": {"count": 366}, "missing": True}
    facts = {"columns": {"stay": COLUMNS["stay"], "told": told}, "confirmed_public": True}
    frame = pd.DataFrame({"stay": MIXED, "told": [*days, *[Odd()] * 11], "mixed": MIXED}, dtype=object)
    frame["complex"] = 2 + 1j  # of a kind that no table holds; the schema does not name it
    release = pipeline.fit(frame, facts, epsilon=1e4, **{"data.max_unplaced": 1}, **QUICK)
    assert release.marginal(["stay"])["count"].round().tolist()[4] == 5
    assert sorted(release.marginal(["told"])["count"].round())[-2:] == [4, 11]


def test_a_refused_frame_of_arrow_quotes_no_value_and_decimals_of_hundreds_are_numbers(tmp_path):
    """Whoever prints the error prints those behind it: Arrow's own names the time that it cannot write."""
    far = pa.table({"a": pa.array([{"t": 2**60 + 7}], pa.struct([("t", pa.timestamp("s"))]))})
    with pytest.raises(UserError, match="of a kind that no table holds") as caught:
        write_frame(far, tmp_path / "frame.parquet")
    assert str(2**60 + 7) not in "".join(traceback.format_exception(caught.value))
    write_frame(pa.table({"a": pa.array([Decimal(300)], pa.decimal128(5, -2))}), tmp_path / "frame.parquet")
    assert pq.read_table(tmp_path / "frame.parquet")["a"].to_pylist() == [300]


def test_a_column_that_no_file_holds_is_named(tmp_path):
    """A database's column of intervals was "a column of the frame", among many."""
    stay = pa.array([(0, 1, 0)], pa.month_day_nano_interval())
    with pytest.raises(UserError, match="column 'stay' is of a kind that no table holds"):
        write_frame(pa.table({"a": [1], "stay": stay}), tmp_path / "frame.parquet")


def test_a_column_that_no_file_holds_and_no_schema_names_is_not_read(tmp_path):
    """Whatever its kind: of values of several kinds, of which Arrow makes no column, and of intervals."""
    facts = parse_schema(FEW, where="facts")
    frame = patients(3).assign(mixed=["a", 1, 2.5])
    stay = pa.array([(0, 1, 0)] * 3, pa.month_day_nano_interval())
    table = pa.Table.from_pandas(patients(3)).append_column("interval", stay)
    for odd in (frame, table):
        write_frame(odd, tmp_path / "frame.parquet", facts, {})
        assert sorted(pq.read_schema(tmp_path / "frame.parquet").names) == ["sex", "smoker", "stay"]


def test_categories_of_arrow_in_pandas_are_read_in_as_many_pieces_as_they_come(tmp_path):
    pieces = [pa.array([*texts], pa.string()).dictionary_encode() for texts in ("ab", "ba", "")]
    series = pd.Series(pd.arrays.ArrowExtensionArray(pa.chunked_array(pieces)))
    write_frame(pd.DataFrame({"ward": series}), tmp_path / "frame.parquet")
    assert pq.read_table(tmp_path / "frame.parquet")["ward"].to_pylist() == [*"abba"]


@pytest.mark.parametrize("scale", [-5, -35])
def test_no_decimal_of_hundreds_stops_a_frame(scale, tmp_path):
    """Whether a frame is read follows from its kinds: 38 digits before five zeros are a number, and an id, too."""
    numbers = (10**37, 10**37 + 1, 3)
    ticks = b"".join(n.to_bytes(16, "little") for n in numbers)
    large = pa.Array.from_buffers(pa.decimal128(38, scale), 3, [None, pa.py_buffer(ticks)])
    for array in (large, large[2:]):
        write_frame(pa.table({"a": array}), tmp_path / "frame.parquet")
        read = pq.read_table(tmp_path / "frame.parquet")["a"].to_pylist()
        assert len({*read}) == len(array), "no two ids are one"
        assert [float(n) for n in read] == pytest.approx([n * 10.0**-scale for n in numbers][-len(array) :])


@pytest.mark.parametrize("kind", ["id", "fare", "ward", "grade", "smoker", "born", "seen", "told"])
def test_of_objects_the_kind_follows_from_the_schema_and_never_from_the_rows(kind, tmp_path):
    facts = parse_schema({"columns": {kind: COLUMNS[kind]}}, where="facts")

    def kept(*values: object, of: str = "object") -> object:
        """All that is kept of a frame beside what crosses the wall."""
        frame = pd.DataFrame({kind: pd.Series([None, None, *values], dtype=object).astype(of)})
        return write_frame(frame, tmp_path / "frame.parquet", facts, {})

    assert kept() == kept("a") == kept(3) == kept(datetime.date(1980, 1, 2)) == kept("a", 3)
    assert kept(of="category") == kept("a", 3, of="category")
    texts = pd.DataFrame({kind: pd.Series(["a"]).astype("category")})
    assert write_frame(texts, tmp_path / "frame.parquet", facts, {}) == kept(of="category"), "of texts alone, too"


@pytest.mark.parametrize("library", ["polars", "pyarrow"])
@pytest.mark.parametrize(("kind", "value"), [("smoker", True), ("born", datetime.date(1980, 1, 2)), ("job", "baker")])
def test_a_column_of_gaps_alone_has_the_kind_that_one_value_would_give_it(kind, value, library):
    facts = {"columns": {kind: COLUMNS[kind]}, "confirmed_public": True}
    dtypes = []
    for last in (None, value):
        table = pa.table({kind: [*[None] * 99, last]})
        frame = table if library == "pyarrow" else pl.DataFrame({kind: [*[None] * 99, last]})
        dtypes.append(pipeline.fit(frame, facts, **{"data.max_unplaced": 1}, **QUICK).sample(5)[kind].dtype)
    assert dtypes[0] == dtypes[1]


def test_lengths_of_time_are_refused_with_a_way_out_wherever_they_are_read(town):
    frame = people(50).assign(stay=pd.to_timedelta(np.arange(50), unit="s"))
    pipeline.fit(frame, "town.yaml", **QUICK)
    facts = {"columns": {"stay": COLUMNS["stay"]}, "confirmed_public": True}
    said = r"schema: column 'stay'.*holds lengths of time.*\n.*frame\['stay'\]\.dt\.total_seconds\(\)"
    frame.to_parquet("stay.parquet")
    for table in (frame, pa.Table.from_pandas(frame)):
        with pytest.raises(UserError, match=said):
            pipeline.fit(table, facts, **QUICK)
    with pytest.raises(UserError, match=said):
        pipeline.score("stay.parquet", "stay.parquet", facts)
    assert command("schema", "stay.parquet", "output=stay.yaml") == 0
    assert "stay" in load_schema(Path("stay.yaml")).leave_out


def test_far_times_of_a_frame_are_values_and_with_fine_ones_of_a_file_scored_as_none_and_stop_nothing(tmp_path):
    far = pd.DataFrame({"seen": np.array([2**62, 0, -(2**62)], "datetime64[s]")})
    facts = {"columns": {"seen": COLUMNS["seen"]}, "confirmed_public": True}
    for table in (far, pa.table({"seen": pa.array([2**62, 0, None], pa.timestamp("s", "UTC")).dictionary_encode()})):
        assert len(pipeline.fit(table, facts, **{"data.max_unplaced": 1}, **QUICK).sample(5)) == 5

    far = pa.array([2**63 - 1, -(2**63) + 1, 1, 10**15] * 9)
    days = pa.array([2**31 - 1, -(2**31), 0, 9] * 9, pa.int32()).cast(pa.date32())
    times = {f"{unit} {zone}": far.cast(pa.timestamp(unit, zone)) for unit in ("us", "ns") for zone in (None, "UTC")}
    path = tmp_path / "far.parquet"
    pq.write_table(pa.table({"d": days, **times}), path)
    assert pipeline.score(path, path, metrics=["tvd", "correlation"]).tvd["1-way"]["max"] == 0


SEX = {"columns": {"sex": COLUMNS["sex"]}, "confirmed_public": True}
#: (A frame, its schema, words of the answer).
UNFIT = [
    ([1, 2], SEX, "got list"),
    (pl.DataFrame({"a": [1]}).lazy(), SEX, "collect() it first"),
    (pd.Series(["f", "m"], name="sex"), SEX, "got Series"),
    (pd.DataFrame([[1, 2]], columns=["sex", "sex"]), SEX, "named twice in the header: 'sex'"),
    (pd.DataFrame(), SEX, "no columns"),
    (pd.DataFrame({"sex": [2 + 1j]}), SEX, "sex"),
    (pd.DataFrame({"sex": ["f"]}), "town.yaml", "no columns 'age', 'job'"),
    (people(20).assign(sex=[[1]] * 20), "town.yaml", "column 'sex'"),
    (people(50).rename(columns={"age": "aeg"}), "town.yaml", "no column 'age' in the frame\n  fix: did you mean 'aeg'"),
    (people(50).set_index("age"), "town.yaml", "reset_index"),
    (people(9), {"columns": {"age": {"kind": "integer", "min": 0}}}, "schema: column 'age': integer needs min and max"),
    (people(9), {"colums": {}}, "column"),
    (people(9), 7, "got int"),
    (people(9), "twon.yaml", "no schema file 'twon.yaml'"),
    (people(9), SEX | {"source": "\ud800"}, "stands in a text, and is no letter"),
]


@pytest.mark.parametrize(("frame", "schema", "said"), UNFIT, ids=[said for *_, said in UNFIT])
def test_what_is_no_table_no_schema_or_not_of_it_is_one_clear_message(town, frame, schema, said):
    assert said in refused(frame, schema, **QUICK)


def test_the_look_refuses_before_anything_is_charged(town):
    lost = people(100).assign(sex="unknown", job="baker")
    book = {"ledger": "people.json", "limit": {"epsilon": 3, "delta": 1e-8}}
    facts = SCHEMA.replace("values: [f, m], missing: false", "values: [f, m]")
    Path("town.yaml").write_text(facts)
    with pytest.raises(UserError, match="column 'sex'"):
        pipeline.fit(lost, "town.yaml", budget=book, **QUICK)
    assert not Path("people.json").exists() or not json.loads(Path("people.json").read_text())["bookings"]
    pipeline.fit(people(100), "town.yaml", budget=book, epsilon=2, **QUICK)
    with pytest.raises(UserError, match="more than the ledger has left"):
        pipeline.fit(people(100), "town.yaml", budget=book, epsilon=3, **QUICK)


def test_a_saved_release_is_sound_and_loads_again_with_the_kinds_of_the_frame(hospital, tmp_path):
    """These stand in a file beside the release, which may be lost."""
    saved = hospital.save(tmp_path / "kept")
    assert verify(saved).sound
    again = pipeline.load(saved, synthesis="independent")
    assert again.statement == hospital.statement
    pd.testing.assert_frame_equal(again.sample(30, seed=4), hospital.sample(30, seed=4))
    pd.testing.assert_frame_equal(again.marginal(["ward"]), hospital.marginal("ward"))
    assert not [p for p in saved.rglob("*") if "frame" in p.name], "the release holds what a run's holds"
    beside = kinds_file(saved)
    beside.write_text(json.dumps(json.loads(beside.read_text()) | {"release": "0" * 64}))
    assert str(pipeline.load(saved).sample(5)["ward"].dtype) == "str", "of another release"
    kinds = json.loads(beside.read_text()) | {"release": file_digest(saved / MANIFEST)}
    kinds["columns"]["stay"]["label"] = [1]
    for damaged in ("{", json.dumps(kinds)):
        beside.write_text(damaged)
        with pytest.raises(UserError, match=r"kept\.frame\.json"):
            pipeline.load(saved)
    beside.unlink()
    assert str(pipeline.load(saved).sample(5)["stay"].dtype) == "Int64"
    with pytest.raises(UserError, match="is there already"):
        hospital.save(saved)
    (saved / "schema.yaml").write_text("columns: {}")
    with pytest.raises(UserError, match=r"schema\.yaml \(edited\)"):
        pipeline.load(saved)
    with pytest.raises(UserError, match="not the release folder"):
        pipeline.load(tmp_path)


def test_a_place_in_which_no_folder_can_be_made_is_named(hospital, tmp_path, monkeypatch, capsys):
    (tmp_path / "loop").symlink_to("loop")
    saved, place = hospital.save(tmp_path / "kept"), tmp_path / "loop" / "rows"
    said = reply(capsys, "synth", f"from={saved}", f"output={place}", code=1).err
    assert "fix: another folder" in said and "hydra" not in said

    def shut(*place, **more):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(tempfile, "mkdtemp", shut)
    with pytest.raises(UserError, match=f"cannot write .*shut .{os.strerror(errno.EROFS)}"):
        hospital.save(tmp_path / "shut")


def test_new_rows_on_a_full_disk_leave_no_folder_behind(hospital, tmp_path, monkeypatch, capsys):
    saved = hospital.save(tmp_path / "kept")
    before = {*tmp_path.iterdir()}

    def full(*file):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    said = reply(capsys, "synth", f"from={saved}", f"output={tmp_path / 'new' / 'rows'}", code=1).err
    assert "No space left" in said
    with pytest.raises(UserError, match="cannot write"):
        hospital.save(tmp_path / "other" / "rows")
    assert {*tmp_path.iterdir()} == before


def test_a_mistake_in_a_mapping_names_no_file_that_was_written_of_it():
    with pytest.raises(UserError, match="is the table itself") as mistake:
        pipeline.plan(None, HOSPITAL | {"source": "hospital"})
    assert mistake.value.where == "data.schema"


def test_conditions_name_columns_by_numbers_and_truth_values_too():
    frame = pd.DataFrame({2020: [1, 2] * 50, "true": [0, 1] * 50})
    columns = {name: {"kind": "integer", "min": 0, "max": 3} for name in (2020, True)}
    release = pipeline.fit(frame, {"columns": columns, "confirmed_public": True}, epsilon=100, **QUICK)
    assert set(release.sample(9, where={2020: np.array([1, 1]), True: [0, 1]})[2020]) == {1}
    assert release.count({2020: np.array([1, 1])})["2020"][0] == "[1, 1]"
    with pytest.raises(UserError, match="where="):
        release.count({object(): 1})


@pytest.mark.parametrize("kind", ["integer", "float"])
@pytest.mark.parametrize("far", [float("inf"), 1e300, pytest.param(10**400, id="whole"), 50])
def test_a_range_may_end_anywhere_beyond_the_bounds(kind, far):
    release = pipeline.fit(
        pd.DataFrame({"x": [*range(40)] * 5}),
        {"columns": {"x": {"kind": kind, "min": 0, "max": 39, "bins": {"count": 4}}}, "confirmed_public": True},
        epsilon=100,
        **QUICK,
    )
    for beyond, inside in (([-far, 13], [0, 13]), ([25, far], [25, 39]), ([-far, far], [0, 39])):
        assert release.count({"x": beyond})["count"].tolist() == release.count({"x": inside})["count"].tolist()
        assert release.sample(30, where={"x": beyond})["x"].between(*inside).all()
    with pytest.raises(UserError, match=r"no value there|no width"):
        release.count({"x": [far, far + 1]})


def test_a_set_which_has_no_order_is_no_range_from_low_to_high():
    """Of two numbers it was one: all that lies between them was counted, or the condition was refused for its hash."""
    release = pipeline.fit(
        pd.DataFrame({"x": [1, 2] * 50}),
        {"columns": {"x": {"kind": "integer", "min": 0, "max": 3}}, "confirmed_public": True},
        epsilon=100,
        **QUICK,
    )
    for ask in (release.count, lambda where: release.sample(2, where=where)):
        with pytest.raises(UserError, match=r"column 'x' has no value .*\{1, 3\}"):
            ask({"x": frozenset({1, 3})})


@pytest.mark.parametrize(
    ("ask", "says"),
    [
        (lambda release: pipeline.load(3), "3 is no path"),
        (lambda release: pipeline.query(None), "RUN/release"),
        (lambda release: pipeline.estimate(5, "mean", "age"), "5 is no path"),
        (lambda release: pipeline.synthesize(release, None), "output: None is no path"),
        (lambda release: pipeline.rehearse(None, HOSPITAL, folder=5), "folder: 5 is no path"),
        (lambda release: pipeline.fit(patients(), HOSPITAL, folder=5), "folder: 5 is no path"),
        (lambda release: pipeline.load(""), "path: '' is no path"),
        *(
            (lambda release, name=name: pipeline.load(name), "path: .* is no name that the system takes")
            for name in ("a\0b", "\udcfc", "x" * 300, "~no-such-person/x")
        ),
        (lambda release: pipeline.fit(patients(), "x" * 300), "schema: .* is no name that the system takes"),
        (lambda release: pipeline.draft("x" * 300), "the table: .* is no name that the system takes"),
        *(
            (
                lambda release, own=own: pipeline.fit(patients(), HOSPITAL, **own),
                f"{[*own][-1]}: .* is no name that the",
            )
            for own in (
                {"budget.ledger": "~no-such-person/x"},
                {"budget.ledger": "x" * 300},
                {"synthesis": "gum", "synthesis.public": "~no-such-person/x"},
                {"selection": "public", "selection.public": "~no-such-person/x"},
            )
        ),
    ],
)
def test_what_is_no_path_is_named(ask, says, hospital, tmp_path):
    with pytest.raises(UserError, match=says):
        ask(hospital.save(tmp_path / "kept"))


@pytest.mark.parametrize("arrow", [pa.decimal128(5, 2), pa.dictionary(pa.int32(), pa.string()), pa.list_(pa.int8())])
def test_kinds_of_arrow_in_pandas_are_read_as_they_were_kept(arrow, tmp_path):
    """Pandas writes the names of types with parameters, and does not read them."""
    (tmp_path / "release").mkdir()
    (tmp_path / "release" / MANIFEST).write_text("{}")
    kinds = {"x": Kind("x", "real", pd.ArrowDtype(arrow)), "y": Kind("y", "real", arrow)}
    keep_kinds(tmp_path / "release", kinds, "pandas")
    assert stored_kinds(tmp_path / "release") == (kinds, "pandas")


def test_scores_take_frames_on_either_side(town):
    frame = people(300)
    Path("made.csv").write_text(people(200, seed=2).to_csv(index=False))
    mixed = pipeline.score(pl.from_pandas(frame), "made.csv", "town.yaml", metrics=["tvd"]).tvd
    assert mixed == pipeline.score(frame, people(200, seed=2), "town.yaml", "metrics=[tvd]").tvd
    assert mixed["1-way"]["mean"] > 0


def test_a_notebook_sees_how_far_each_stage_is(monkeypatch):
    """IPython is not installed here: what stands for it keeps what a notebook would show."""
    shown: list[str] = []

    class Handle:
        def update(self, said: dict[str, str], raw: bool) -> None:
            shown[-1] = said["text/plain"]

    def display(said: dict[str, str], raw: bool, display_id: bool) -> Handle:
        shown.append(said["text/plain"])
        return Handle()

    module = types.ModuleType("IPython.display")
    module.display = display  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", types.ModuleType("IPython"))
    monkeypatch.setitem(sys.modules, "IPython.display", module)
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    monkeypatch.setattr("pipeline.stage_bars.EVERY", 0)
    show = Stages()
    with show.stage("measure") as report:
        report(1, 4, "marginals")
        assert shown == ["measure       25% marginals"]
    assert shown[0].endswith(" s") and show.seconds["measure"] >= 0
    with Stages(quiet=True).stage("measure") as report:
        report(1, 4)
    assert len(shown) == 1


def test_codes_whose_zeros_a_program_dropped_are_those_that_are_listed():
    """`pd.read_csv` reads 0012 as 12: with `other` the column was lost whole, and a run spent; without, none ran."""
    codes = np.array([12, 107, 3001, 4])
    listed = {"kind": "categorical", "values": ["0012", "0107", "3001", "00", "4"], "other": "Other"}
    for kind in (np.int64, np.float64):
        frame = pd.DataFrame({"school": codes[np.arange(400) % 4].astype(kind)})
        given = pipeline.fit(frame, {"columns": {"school": listed}, "confirmed_public": True}, epsilon=50, **QUICK)
        counts = given.marginal(["school"]).set_index("school")["count"]
        assert (counts[["0012", "0107", "3001", "4"]] > 80).all() and abs(counts["Other"]) < 20, counts
        made = given.sample(50)["school"]
        assert set(made.dropna().astype(str)) <= {"0012", "0107", "3001", "4", "00", "Other"}, set(made)


def test_a_list_of_which_a_column_holds_no_text_is_refused_before_anything_is_spent():
    frame = pd.DataFrame({"sex": ["f", "m"] * 20})
    schema = {"columns": {"sex": {"kind": "categorical", "values": ["F", "M"], "other": "x"}}, "confirmed_public": True}
    with pytest.raises(UserError, match="lost of column 'sex'") as refused:
        pipeline.fit(frame, schema, **QUICK)
    assert "dtype=str" in refused.value.fix and "data.path" not in refused.value.fix
    frame.loc[0, "sex"] = "F"
    assert pipeline.fit(frame, schema, evaluation={"enabled": False}, **QUICK).private, "no scores are asked for"


def test_sparse_columns_are_written_as_what_they_hold(tmp_path):
    sparse = pd.DataFrame({"age": pd.arrays.SparseArray([0, 0, 3]), "sex": pd.arrays.SparseArray([True, False, False])})
    write_frame(sparse, tmp_path / "frame.parquet")
    assert pd.read_parquet(tmp_path / "frame.parquet").to_dict("list") == sparse.to_dict("list")
