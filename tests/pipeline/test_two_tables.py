"""Runs on two tables, records and one row per person: as on one table that was joined before, and total in odd ones."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pandas as pd
import pytest

import pipeline
from mechanisms.public.errors import UserError
from tests.pipeline.conftest import command, reply
from tests.pipeline.test_whole_persons import SCHEMA, UNIT, stays

#: Whole runs of two tables.
pytestmark = pytest.mark.slow

FAST = ("selection=oneway", "synthesis=independent", "privacy.delta=1e-6", "evaluation.enabled=false")
TWO = ("data=table", "data.path=stays.csv", "data.schema=stays.yaml", "data.units.path=people.csv", "data.units.id=id")


@pytest.fixture
def place(folder: Path) -> Path:
    """Stays without sex and town, which stand in a table of people; and the same as one table."""
    whole = stays(150)
    whole.to_csv("whole.csv", index=False)
    whole.drop(columns=["sex", "town"]).to_csv("stays.csv", index=False)
    people = whole.drop_duplicates("patient")[["town", "patient", "sex"]].rename(columns={"patient": "id"})
    people.sample(frac=1, random_state=2).to_csv("people.csv", index=False)
    Path("stays.yaml").write_text(SCHEMA + UNIT)
    return folder


def names_of(folder: Path) -> set[str]:
    return {p.name for p in folder.rglob("*")}


def test_two_tables_are_as_good_as_one_that_was_joined_before(place: Path) -> None:
    fixed = (*FAST, "privacy.noise_seed=4", "synthesis.seed=5")
    alone = ("data.units.path=null", "data.units.id=null", "data.path=whole.csv", "hydra.run.dir=one")
    assert command("run", *TWO, *fixed, *alone) == 0
    people = pd.read_csv("people.csv")
    people.to_csv("folk.csv", index=False)
    people.to_csv("folk.csv.gz", index=False)
    people.to_parquet("folk.parquet")
    with closing(sqlite3.connect("folk.db")) as database:
        people.to_sql("folk", database, index=False)
    for two, file in enumerate(("folk.csv", "folk.csv.gz", "folk.parquet", "sqlite:///folk.db#folk")):
        assert command("run", *TWO, f"data.units.path={file}", *fixed, f"hydra.run.dir={two}") == 0
        for name in ("synthetic.csv", "measurements/index.json", "schema.yaml"):
            assert Path(str(two), "release", name).read_bytes() == Path("one/release", name).read_bytes(), file
        facts = [json.loads(Path(n, "internal/manifest.json").read_text())["data"] for n in ("one", str(two))]
        assert [f.count("+") for f in facts] == [0, 1]
    assert not {"joined.parquet", "unit-ids.parquet", "record-ids.parquet"} & names_of(place)


def test_the_scores_of_a_run_and_of_the_command_read_both(place: Path, capsys) -> None:
    scored = ("evaluation.enabled=true", "evaluation.metrics=[tvd]", "privacy.epsilon=30")
    assert command("run", *TWO, *FAST, *scored, "hydra.run.dir=out") == 0
    assert command("verify", "from=out/release") == 0
    for name in ("statement.html", "deployment.yaml"):
        text = Path("out/release", name).read_text()
        assert text.count("and its rows in the table of units") in (1, 2) and "data.units" not in text
    table = "synthetic=out/release/synthetic.csv"
    own = ("units.path=people.csv", "units.id=id", "metrics=[tvd]")
    assert command("score", "real=stays.csv", table, *own, "output=two.json") == 0
    assert command("score", "real=whole.csv", table, "metrics=[tvd]", "output=one.json") == 0
    one, two = (json.loads(Path(f"{n}.json").read_text())["tvd"] for n in ("one", "two"))
    assert one == two
    card = pipeline.score(pd.read_csv("stays.csv"), "out/release/synthetic.csv", "stays.yaml", metrics=["tvd"],
                          units=pd.read_csv("people.csv"), **{"units.id": "id"})  # fmt: skip
    again = pipeline.score("whole.csv", "out/release/synthetic.csv", "stays.yaml", metrics=["tvd"])
    assert card.to_json()["tvd"] == again.to_json()["tvd"]
    assert "no column to join by" in reply(capsys, "score", "real=stays.csv", table, *own, "schema=none", code=1).err


def test_a_frame_of_units_stands_beside_a_frame_of_records(place: Path) -> None:
    settings = {"selection": "oneway", "synthesis": "independent", "quiet": True, "delta": 1e-6, "epsilon": 30}
    people = pd.read_csv("people.csv").assign(note="not read")
    release = pipeline.fit(pd.read_csv("stays.csv"), "stays.yaml", units=people, **{"data.units.id": "id"}, **settings)
    frame = release.sample(200)
    assert {"sex", "town", "patient"} <= {*frame.columns}
    real = pd.read_csv("people.csv").town.value_counts(normalize=True)
    assert abs(frame.groupby("patient").town.first().value_counts(normalize=True) - real).max() < 0.2
    release.save("saved")
    own = {"metrics": ["tvd"], "units": people, "units.id": "id"}
    beside = pipeline.score(pd.read_csv("stays.csv"), "saved/synthetic.csv", **own)
    assert release.score(pd.read_csv("stays.csv"), **own).tvd == beside.tvd and beside.tvd["1-way"]["marginals"] > 2
    with pytest.raises(UserError, match="no column 'patient'"):
        pipeline.fit(pd.read_csv("stays.csv"), "stays.yaml", units=people, **settings)


def test_a_frame_without_its_units_names_where_they_are_given(place: Path) -> None:
    with pytest.raises(UserError, match=r"no column of constants of persons, 'sex', 'town', in the frame") as refused:
        pipeline.fit(pd.read_csv("stays.csv"), "stays.yaml", quiet=True)
    assert "units=FRAME" in str(refused.value)


def test_a_first_row_in_the_place_of_a_header_is_not_quoted(place: Path, capsys) -> None:
    people = pd.read_csv("people.csv")
    people.to_csv("people.csv", index=False, header=False)
    said = reply(capsys, "run", *TWO, *FAST, "hydra.run.dir=out", code=1)
    assert "people.csv: few or none" in said.err and str(people.id[0]) not in said.err + said.out


def test_a_table_of_units_without_rows_leaves_its_columns_missing(place: Path) -> None:
    Path("people.csv").write_text("id,sex,town\n")
    open_columns = SCHEMA.replace("[f, m], missing: false", "[f, m]").replace("[A, B, C], missing: false", "[A, B, C]")
    Path("stays.yaml").write_text(open_columns + UNIT)
    assert command("run", *TWO, *FAST, "privacy.epsilon=100", "hydra.run.dir=out") == 0
    frame = pd.read_csv("out/release/synthetic.csv")
    assert frame.sex.isna().mean() > 0.9


def test_a_draft_reads_both(place: Path, capsys) -> None:
    both = ("stays.csv", "units.path=people.csv", "units.id=id")
    draft = reply(capsys, "schema", *both, "privacy.unit=patient").out
    assert all(f"{name}:" in draft for name in ("ward", "town", "sex"))
    assert "no column to join by" in reply(capsys, "schema", *both, code=1).err


@pytest.mark.parametrize(
    ("change", "where", "said"),
    [
        (["data.units.path=none.csv"], "none.csv", ""),
        (["data.units.id=key"], "data.units.id", "no column 'key' in people.csv"),
        (["data.units.path=stays.csv", "data.units.id=patient"], "data.units.path", "'day' stands in both"),
        (["engine=spark"], "engine", "duckdb"),
        (["data.schema=plain.yaml"], "data.units", "each record is a unit"),
        (["experiment=nist2021_sprint1"], "data.units", "an experiment reads one table"),
        (["data=demo", "data.path=null", "data.schema=demo", "privacy.unit=caller_id"], "data.units", "of one's own"),
    ],
)
def test_mistakes_are_told_before_any_charge(place: Path, capsys, change, where, said) -> None:
    Path("plain.yaml").write_text(SCHEMA + "leave_out: [patient]\n")
    error = reply(capsys, "run", *TWO, *change, *FAST, "hydra.run.dir=out", code=1).err
    assert where in error and said in error
    assert not Path("out/internal/ledger.jsonl").exists()


def test_a_column_of_ids_is_enough_without_a_unit_in_the_schema(place: Path) -> None:
    Path("plain.yaml").write_text(SCHEMA + "leave_out: [patient]\n")
    unit = ("data.schema=plain.yaml", "privacy.unit=patient", "privacy.max_records=5", "privacy.epsilon=30")
    assert command("run", *TWO, *unit, *FAST, "hydra.run.dir=out") == 0
    real, frame = (pd.read_csv(n).town.value_counts(normalize=True) for n in ("whole.csv", "out/release/synthetic.csv"))
    assert abs(real - frame).max() < 0.1


def test_a_rehearsal_opens_neither(place: Path, capsys) -> None:
    asked = ("data.schema=stays.yaml", "selection=oneway", "synthesis=independent", "plan.rows=200")
    assert command("rehearse", *asked, "data.units.path=people.csv", "hydra.run.dir=r") == 1
    assert "opens no table" in capsys.readouterr().err
    assert command("rehearse", *asked, "hydra.run.dir=r") == 0


def test_the_jobs_of_a_sweep_join_both_and_skip_only_what_is_the_same(place: Path, capsys) -> None:
    sweep = ("run", "-m", *TWO, *FAST, "privacy.epsilon=5,50", "release.format=parquet", "hydra.sweep.dir=sweep")
    assert command(*sweep) == 0
    tables = [pd.read_parquet(path) for path in Path("sweep").glob("*/release/synthetic.parquet")]
    assert len(tables) == 2 and all((t.groupby("patient").sex.nunique() == 1).all() for t in tables)
    assert not {"joined.parquet"} & names_of(place)
    capsys.readouterr()
    assert command(*sweep, "resume=true") == 0
    Path("people.csv").write_text(Path("people.csv").read_text() + "A,someone,f\n")
    assert command(*sweep, "resume=true") != 0


def test_a_schema_is_not_confirmed_by_the_table_of_units(place: Path, capsys) -> None:
    Path("stays.yaml").write_text(SCHEMA.replace("invented for a test", "people.csv") + UNIT)
    assert "people.csv" in reply(capsys, "run", *TWO, *FAST, "hydra.run.dir=out", code=1).err
