"""`where=`: rows that satisfy a condition, from Python and from the command, in words that cannot be overlooked."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest
import yaml

import pipeline
from mechanisms.public.errors import UserError
from pipeline.statement.verify import verify
from tests.pipeline.conftest import PAIRS, SCHEMA, TOWN, command, done_once, people, rebound, reply
from tests.pipeline.test_fit import COLUMNS, HOSPITAL, patients

pytestmark = pytest.mark.usefixtures("folder")
TOWN_COLUMNS = yaml.safe_load(SCHEMA)["columns"]
SHARP = {"epsilon": 100, "delta": 1e-6, "quiet": True, "selection": "oneway"}


@pytest.fixture(scope="module")
def hospital() -> pipeline.Release:
    frame = patients(600)
    return pipeline.fit(frame.assign(id=frame["id"] % 401), HOSPITAL, **SHARP, synthesis="pgm")


CONDITIONS = [
    ({"sex": "F"}, lambda f: f["sex"] == "F"),
    ({"job": ["smith", "else"]}, lambda f: f["job"].isin(["smith", "else"])),
    ({"stay": 4}, lambda f: f["stay"] == 4),
    ({"stay": [1, 4, 6]}, lambda f: f["stay"].isin([1, 4, 6])),
    ({"stay": [4, 6]}, lambda f: f["stay"].between(4, 6)),
    ({"stay": None}, lambda f: f["stay"].isna()),
    ({"id": [95, 130], "sex": ["M"]}, lambda f: f["id"].between(95, 130) & (f["sex"] == "M")),
    ({"id": [99, 101, 250]}, lambda f: f["id"].isin([99, 101, 250])),
    ({"fare": [11.3, 14.1]}, lambda f: f["fare"].between(11.3, 14.1)),
    ({"insured": True, "smoker": False}, lambda f: f["insured"] & ~f["smoker"]),
    ({"grade": 2}, lambda f: f["grade"] == 2),
    ({"born": ["1980-01-05", "1980-01-20"]}, lambda f: f["born"].map(lambda day: 5 <= day.day <= 20)),
    ({"seen": "2020-02-29"}, lambda f: f["seen"].dt.normalize() == pd.Timestamp("2020-02-29")),
]


@pytest.mark.parametrize(("where", "holds"), CONDITIONS, ids=[str(w) for w, _ in CONDITIONS])
def test_exactly_so_many_rows_and_all_of_them_satisfy_the_condition(hospital, where, holds):
    made = hospital.sample(150, where=where)
    assert len(made) == 150 and holds(made).all()
    assert made.dtypes.equals(hospital.sample(3).dtypes)
    assert made.attrs["given"]["effective_rows"] == 150 and "exact" in made.attrs["given"]["rows"]
    assert json.loads(json.dumps(made.attrs["given"])) == made.attrs["given"]


@pytest.mark.parametrize("synthesis", ["gum", "auto"])
def test_every_synthesizer_satisfies_it_and_says_how(synthesis):
    release = pipeline.fit(people(600), {"columns": TOWN_COLUMNS, "confirmed_public": True}, epsilon=50, quiet=True,
                           selection="pairs", synthesis=synthesis)  # fmt: skip
    made = release.sample(800, where={"sex": "f", "age": [25, 44]})
    assert len(made) == 800 and (made["sex"] == "f").all() and made["age"].between(25, 44).all()
    given = made.attrs["given"]
    assert given["where"] == {"sex": "f", "age": [25, 44]} and 0 < given["effective_rows"] <= 800
    assert (synthesis == "gum") <= ("by weight" in given["rows"])
    real, young = people(600).query("sex == 'f' and 30 <= age <= 44"), made.query("age >= 30")
    assert (young["job"] == "smith").mean() == pytest.approx((real["job"] == "smith").mean(), abs=0.08)
    again = [release.sample(5, where={"job": "baker"}, seed=2)["age"].tolist() for _ in range(2)]
    assert again[0] == again[1]


def test_no_rows_are_an_empty_frame_of_the_same_kinds_and_arrow_tables_say_what_was_asked(hospital):
    for where in (None, {"sex": "F"}, {"id": [95, 130]}):
        made = hospital.sample(0, where=where)
        assert len(made) == 0 and made.dtypes.equals(hospital.sample(3).dtypes)
    made = hospital.sample(20, where={"sex": "F"}, form="arrow")
    assert isinstance(made, pa.Table) and set(made["sex"].to_pylist()) == {"F"}
    assert json.loads(made.schema.metadata[b"given"])["where"] == {"sex": "F"}
    assert "given" not in hospital.sample(5).attrs


@pytest.mark.parametrize(
    ("where", "said"),
    [
        ({"sx": "F"}, "did you mean 'sex'"),
        ({"sex": "G"}, "column 'sex' has no value 'G'"),
        ({"job": "zzzzzz"}, "values such as"),
        ({"sex": None}, "has no value"),
        ({"fare": 12.5}, r"a range: \[low, high\]"),
        ({"fare": [60, 70]}, "has no value there"),
        ({"sex": []}, "an empty list"),
        ({"ward": "d", "sex": "F"}, "satisf"),
    ],
)
def test_a_condition_that_cannot_be_is_one_clear_message(hospital, where, said):
    release, rows = hospital, 10
    if "ward" in where:  # nobody is in ward d, and nothing is expected there
        facts, rows = HOSPITAL | {"columns": {n: COLUMNS[n] for n in ("sex", "ward")}}, None
        release = pipeline.fit(patients(), facts, **SHARP | {"epsilon": 1e6}, synthesis="independent")
    with pytest.raises(UserError, match=said) as refused:
        release.sample(rows, where=where)
    assert ", ," not in str(refused.value), "no empty value among those that are told"


def test_a_range_that_cuts_a_bin_of_ordered_columns_is_refused():
    columns = {n: COLUMNS["born"] | {"bins": {"count": 4}} for n in ("first", "last")}
    frame = pd.DataFrame({"first": ["1980-02-01"] * 50, "last": ["1980-06-01"] * 50})
    facts = {"columns": columns, "confirmed_public": True, "ordered": [["first", "last"]]}
    release = pipeline.fit(frame, facts, **SHARP, synthesis="pgm")
    with pytest.raises(UserError, match="orders the values of 'first'"):
        release.sample(5, where={"first": ["1980-01-15", "1980-02-15"]})
    made = release.sample(40, where={"last": ["1980-01-01", "1980-07-01"]})
    assert (made["last"] <= "1980-07-01").all() and (made["first"] <= made["last"]).all()
    with pytest.raises(UserError, match="by their names; this cuts '") as refused:
        release.sample(5, where={"last": ["1980-01-01", "1980-02-15"]})
    assert len(release.sample(5, where={"last": str(refused.value).split("'")[-2]})) == 5


def test_rules_of_the_schema_hold_and_their_columns_can_be_asked():
    columns = TOWN_COLUMNS | {"trade": {"kind": "categorical", "values": ["food", "metal", "paper"], "other": "none"}}
    pairs = [["baker", "food"], ["smith", "metal"], ["clerk", "paper"]]
    Path("trades.csv").write_text("job,trade\n" + "".join(f"{a},{b}\n" for a, b in pairs))
    facts = {"columns": columns, "confirmed_public": True}
    facts |= {"derive": {"trade": {"from": "job", "map": "trades.csv"}}, "impossible": [{"sex": "f", "job": "clerk"}]}
    frame = people(600).assign(trade=lambda f: f["job"].map(dict(pairs))).query("sex == 'm' or job != 'clerk'")
    release = pipeline.fit(frame, facts, epsilon=20, quiet=True, selection="pairs", synthesis="pgm")
    made = release.sample(60, where={"trade": ["metal", "paper"], "age": [50, 69]})
    assert len(made) == 60 and made["job"].isin(["smith", "clerk"]).all() and made["age"].between(50, 69).all()
    assert not ((made["sex"] == "f") & (made["job"] == "clerk")).any()


@pytest.fixture(scope="module")
def sharp(tmp_path_factory) -> Path:
    """A run of the town with little noise: under much of it, a part may be empty."""
    settings = [*TOWN, *PAIRS, "privacy.epsilon=100", "evaluation.enabled=false", "hydra.run.dir=out"]
    return done_once(tmp_path_factory.mktemp("sharp"), "run", *settings) / "out"


@pytest.mark.parametrize("synthesis", ["gum", "pgm"])
def test_the_command_says_what_the_table_holds_wherever_one_looks(sharp, capsys, synthesis):
    shutil.copytree(sharp / "release", "release")
    asked = ["where={sex: f, age: [20, 34]}", "rows=90", f"synthesis={synthesis}", "output=part"]
    said = reply(capsys, "synth", "from=release", *asked).out
    assert "a table of rows with sex = f; age = [20, 34]" in said and "independent rows" in said
    part = Path("part/release")
    table = pd.read_csv(part / "synthetic.csv")
    assert len(table) == 90 and (table["sex"] == "f").all() and table["age"].between(20, 34).all()
    manifest = json.loads((part / "manifest.json").read_text())
    assert manifest["given"]["where"] == {"sex": "f", "age": [20, 34]} and manifest["rows_asked"] == 90
    assert ("exact" in manifest["given"]["rows"]) == (synthesis == "pgm")
    assert "Not the whole table: only rows with sex = f; age = [20, 34]" in (part / "statement.html").read_text()
    assert json.loads((part / "croissant.json").read_text())["name"].endswith("only rows with sex = f; age = [20, 34]")
    assert (part / "privacy.json").read_bytes() == Path("release/privacy.json").read_bytes(), "no privacy cost"
    verdict = verify(part)
    assert verdict.sound and "rows with sex = f; age = [20, 34] only" in verdict.as_text()
    loaded = pipeline.load(part)
    assert "a table of rows with sex = f; age = [20, 34] only" in repr(loaded) and len(loaded.sample(7)) == 7
    for asked_of_a_part in (lambda: loaded.score(people(50)), loaded.bounds, lambda: pipeline.bounds(part)):
        with pytest.raises(UserError, match="of a table with only rows with sex = f"):
            asked_of_a_part()
    assert command("synth", "from=part/release", "output=whole", "synthesis=independent") == 0
    assert "given" not in json.loads(Path("whole/release/manifest.json").read_text())


def test_a_part_that_is_passed_off_as_the_whole_is_noticed(sharp):
    shutil.copytree(sharp / "release", "release")
    assert command("synth", "from=release", "where={sex: f}", "rows=20", "output=part", "synthesis=independent") == 0
    part = Path("part/release")
    manifest = json.loads((part / "manifest.json").read_text())
    (part / "manifest.json").write_text(json.dumps({k: v for k, v in manifest.items() if k != "given"}))
    rebound(part)
    assert "statement.html does not say" in verify(part).as_text()
