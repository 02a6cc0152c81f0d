"""The Python functions beside `fit`, and `where=`: rows that satisfy a condition, in words that nobody can overlook."""

import datetime
import json
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import yaml

import pipeline
from mechanisms.public.errors import UserError
from mechanisms.public.schema.table_schema import load_schema
from pipeline import score
from pipeline.settings.config import EvaluationConfig, schema_path
from pipeline.settings.scoring import MANY_ROWS, affordable, build_scores
from pipeline.statement.verify import verify
from tests.pipeline.conftest import PAIRS, SCHEMA, TOWN, command, done_once, people, rebound, reply
from tests.pipeline.test_fit import COLUMNS, HOSPITAL, patients

ROWS = 400
CLINIC_COLUMNS = {
    "age": {"kind": "integer", "min": 0, "max": 99, "bins": {"count": 10}, "missing": False},
    "sex": {"kind": "categorical", "values": ["f", "m"], "missing": False},
    "ward": {"kind": "categorical", "values": ["a", "b", "c"]},
    "insured": {"kind": "flag", "missing": False},
    "smoker": {"kind": "flag", "true": ["yes"], "false": ["no"], "missing": False},
    "born": {"kind": "date", "min": "1980-01-01", "max": "1980-12-31", "missing": False},
}
CLINIC = {"name": "clinic", "columns": CLINIC_COLUMNS, "confirmed_public": True}


def clinic() -> pd.DataFrame:
    rng = np.random.default_rng(1)
    return pd.DataFrame(
        {
            "patient": np.arange(ROWS) // 2,
            "age": pd.array(rng.integers(0, 100, ROWS), dtype="Int16"),
            "sex": pd.Categorical(rng.choice(["f", "m"], ROWS)),
            "ward": pd.array(rng.choice(["a", "b", "c"], ROWS), dtype="string"),
            "insured": rng.random(ROWS) < 0.5,
            "smoker": rng.choice(["yes", "no"], ROWS),
            "born": [datetime.date(1980, 1 + i % 12, 1 + i % 28) for i in range(ROWS)],
        }
    )


def two_tables() -> tuple[pd.DataFrame, pd.DataFrame, dict[str, object]]:
    """Visits without the ages, the patients' ages, and these under another name of the id, as settings say it."""
    people = clinic()[["patient", "age"]].drop_duplicates("patient")
    by_no = {"units": people.rename(columns={"patient": "no"}), "data.units.id": "no"}
    return clinic().drop(columns="age"), people, by_no


@pytest.fixture(scope="module")
def release() -> pipeline.Release:
    return pipeline.fit(clinic(), CLINIC, epsilon=100, selection="pairs", synthesis="pgm", quiet=True)


def test_calls_from_several_threads_have_their_own_settings():
    at_once = threading.Barrier(4)

    def epsilon(wanted: int) -> float:
        at_once.wait(30)
        return float(pipeline.plan(clinic(), CLINIC, epsilon=wanted, selection="oneway")["budget"]["epsilon"])

    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(epsilon, range(1, 5))) == [1, 2, 3, 4]


def test_a_draft_is_a_mapping_that_fit_takes_and_a_text_to_be_corrected():
    drafted = pipeline.draft(clinic(), name="clinic", unit="patient")
    assert drafted["name"] == "clinic" and set(drafted["columns"]) >= {"age", "sex", "ward"}
    assert drafted["confirmed_public"] is False and str(drafted) == drafted.text
    assert "confirmed_public: false" in drafted.text and "#" in drafted.text
    assert drafted["unit"]["column"] == "patient"
    drafted = pipeline.draft(clinic(), name="clinic")  # persons are another test's
    made = pipeline.fit(clinic(), drafted, selection="oneway", synthesis="independent", quiet=True)
    assert not made.private
    with pytest.raises(UserError, match="did you mean 'units'"):
        pipeline.draft(clinic(), unitz="people.csv")
    with pytest.raises(UserError, match=r"cluster: column 'ward'.*\n"):
        pipeline.draft(clinic(), cluster={"ward": {"coordinates": "none.csv", "levels": [2]}})


def test_the_name_of_a_draft_names_no_file(tmp_path):
    """Rows were written to that path, over what lay there, and stayed; a name ended at its first point."""
    mine = tmp_path / "visits.parquet"
    mine.write_text("mine", encoding="utf-8")
    for name in (str(mine.with_suffix("")), "2024.visits"):
        assert pipeline.draft(patients(400), name=name)["name"] == name
    assert [mine] == [*tmp_path.iterdir()] and mine.read_text(encoding="utf-8") == "mine"


def test_no_frame_and_arrays_in_a_schema_are_one_message():
    for ask in (pipeline.draft, lambda f: pipeline.check(f, CLINIC), lambda f: pipeline.score(clinic(), f)):
        with pytest.raises(UserError, match="frame: got NoneType"):
            ask(None)
    listed = {"columns": {"ward": {"kind": "categorical", "values": np.array(["a", "b"])}}}
    with pytest.raises(UserError, match="a list of texts"):
        pipeline.check(clinic(), listed)


def test_a_draft_keeps_the_order_of_categories_that_have_one():
    """Of a dose (low, mid, high) it made the alphabet's list."""
    levels, some = ["low", "never", "mid", "high"], np.array(["high", "low", "mid"] * 40)
    frame = pd.DataFrame({"dose": pd.Categorical(some, levels, ordered=True), "arm": pd.Categorical(some, levels)})
    columns = pipeline.draft(frame)["columns"]
    assert columns["dose"] == columns["arm"] | {"values": ["low", "mid", "high"], "ordinal": True}
    polars = pytest.importorskip("polars")
    enum = polars.DataFrame({"dose": polars.Series(some, dtype=polars.Enum(levels)), "arm": some})
    assert pipeline.draft(enum)["columns"] == columns


def test_clocks_periods_and_intervals_are_drafted_as_they_are_read_and_come_back_as_written():
    ages = pd.Series(np.arange(300) % 90)
    frame = pd.DataFrame({"year": pd.PeriodIndex([str(1990 + i % 30) for i in range(300)], freq="Y")})
    frame["band"] = pd.cut(ages, [-1, 18, 65, 99])
    frame["span"] = pd.IntervalIndex.from_tuples([(0, 1.5)] * 300, "left")
    frame["at"] = pd.Series([datetime.time(i % 24, i % 59) for i in range(300)]).astype(pd.ArrowDtype(pa.time64("us")))
    draft = pipeline.draft(frame, name="kinds")
    assert (draft["columns"]["year"]["min"], draft["columns"]["at"]["format"]) == (1990, "%H:%M:%S")
    assert draft["columns"]["band"]["values"] == [str(band) for band in frame["band"].cat.categories]
    assert draft["columns"]["span"] == {"kind": "constant", "value": "[0, 1.5)"}  # equal numbers have one text
    look = pipeline.check(frame, draft)
    assert not look["refused"] and all(column["lost"] == 0 for column in look["columns"].values()), look
    forms = {"kind": "datetime", "min": "1900-01-01", "max": "1900-01-01", "formats": ["%H:%M", "%H:%M:%S"]}
    assert not pipeline.check(frame[["at"]], {"columns": {"at": forms}})["refused"]


def test_records_and_lists_in_a_frame_are_left_out_of_a_draft_and_stop_nothing():
    """Structs of polars refused the frame; dicts of pandas were '<dict>', the same value in all rows."""
    homes = [{"street": f"Main St {i}", "flats": [{"door": str(i)}]} for i in range(300)]
    frame = pd.DataFrame(
        {"n": np.arange(300) % 7, "home": homes, "tags": [[str(i)] if i % 5 else None for i in range(300)]}
    )
    for given in (frame, pl.DataFrame({"n": frame["n"].to_list(), "home": homes})):
        drafted = pipeline.draft(given, name="homes")
        assert set(drafted["columns"]) == {"n"} and "home" in drafted["leave_out"]


def test_a_look_says_that_times_with_a_zone_are_read_as_utc_shows_them_in_objects_too():
    times = pd.date_range("2024-01-01 00:30", periods=60, freq="D", tz="Europe/Vienna")
    facts = {"columns": {"seen": {"kind": "datetime", "min": "2023-12-31", "max": "2024-12-31", "missing": False}}}
    for seen, zoned in ((times.astype(object), 1), (times.tz_localize(None).astype(object), 0)):
        look = pipeline.check(pd.DataFrame({"seen": seen}), facts)
        assert str(look).count("column 'seen': times with a zone are read as UTC's clock shows them") == zoned


def test_a_draft_says_by_which_clock_its_bounds_of_times_with_a_zone_are():
    """Midnight of the first of January in Vienna is drafted as December."""
    times = pd.date_range("2024-01-01", periods=60, freq="D", tz="Europe/Vienna")
    text = str(pipeline.draft(pd.DataFrame({"seen": times, "plain": times.tz_localize(None)}), name="clinic"))
    zoned, plain = [line for line in text.splitlines() if "# guess" in line]
    assert "read as UTC's clock shows them" in zoned and "min: '2023-12-01'" in text and "UTC" not in plain


def test_a_look_is_that_of_the_command_and_names_the_frame():
    frame = clinic().assign(smoker=["perhaps"] * 300 + ["no"] * 100)
    looked = pipeline.check(frame, CLINIC, unit="patient", max_records=2)
    assert looked["rows"] == ROWS and looked["refused"] == ["smoker"] and not looked["private"]
    assert str(looked).startswith("the frame: 400 rows, 7 columns, under clinic (6 columns)")
    with pytest.raises(UserError, match="the frame") as refused:
        pipeline.check(frame, CLINIC, unit="patent", max_records=2)
    assert ".parquet" not in str(refused.value) and "did you mean 'patient'" in str(refused.value)


def test_a_plan_takes_what_fit_takes_and_the_number_of_rows_from_the_frame():
    planned = pipeline.plan(clinic(), CLINIC, epsilon=2, unit="patient", max_records=2, selection="oneway")
    assert (planned["rows"], planned["unit"], planned["max_records"]) == (ROWS, "patient", 2)
    assert len(planned["measurements"]) == len(CLINIC_COLUMNS) and "patient" in str(planned)
    assert str(planned).startswith("NOT private: the rows of the frame were counted (plan={'rows': N} takes")
    for public in (pipeline.plan(None, CLINIC), pipeline.plan(clinic(), CLINIC, plan={"rows": 500})):
        assert "NOT private" not in str(public)
    assert pipeline.plan(None, CLINIC)["rows"] is None
    with pytest.raises(UserError, match="did you mean 'epsilon'"):
        pipeline.plan(None, CLINIC, epsilo=2)
    with pytest.raises(UserError, match="folder=: nothing is kept"):
        pipeline.plan(None, CLINIC, folder="out")
    visits, people, by_no = two_tables()
    for units in ({"units": people}, by_no):
        assert pipeline.plan(visits, CLINIC, unit="patient", max_records=2, **units)["rows"] == ROWS


def test_a_rehearsal_reads_no_row_and_gives_rows_in_the_kinds_of_the_frame(capsys):
    settings = {"selection": "oneway", "synthesis": "independent", "quiet": True, "plan": {"rows": 300}}
    made = pipeline.rehearse(clinic(), CLINIC, unit="patient", max_records=2, **settings | {"quiet": False})
    assert "rehearsal-" not in capsys.readouterr().err, "a folder that is gone"
    assert not made.private and "noise_seed" in str(made.statement["reasons_not_private"])
    own = clinic().drop(columns="patient")
    assert made.sample(5).dtypes.to_dict().keys() == own.dtypes.to_dict().keys()
    assert made.sample(5)["age"].dtype == "Int16" and made.sample(5)["insured"].dtype == bool
    with pytest.raises(UserError, match="no column 'age' in the frame"):
        pipeline.rehearse(clinic().drop(columns="age"), CLINIC, **settings)
    visits, _, by_no = two_tables()
    made = pipeline.rehearse(visits, CLINIC, unit="patient", max_records=2, **by_no, **settings)
    assert list(made.sample(5).columns) == [*visits.columns[1:], "age"] and made.sample(5)["age"].dtype == "Int16"


@pytest.mark.slow
def test_one_row_comes_out_for_each_row_of_conditions_in_their_order(release):
    rng = np.random.default_rng(2)
    asked = pd.DataFrame({"sex": rng.choice(["f", "m"], 40), "insured": rng.random(40) < 0.5, "age": 30})
    asked.loc[1::2, "age"] = rng.integers(0, 90, 20)
    for given in (asked, pl.from_pandas(asked), pa.Table.from_pandas(asked)):
        made = release.sample(given, seed=3)
        assert len(made) == 40 and list(made.columns) == list(clinic().columns[1:])
        assert made[list(asked)].astype(object).equals(asked.astype(object))
    assert made.attrs["given"]["effective_rows"] == 40 and made["ward"].nunique() > 1
    only = release.sample(asked[["sex"]], where={"ward": ["a", "b"]}, form="arrow")
    assert only["sex"].to_pylist() == asked["sex"].tolist() and set(only["ward"].to_pylist()) <= {"a", "b"}
    days = release.sample(pd.DataFrame({"born": [datetime.date(1980, 3, 4), datetime.date(1980, 7, 1)]}))
    assert days["born"].tolist() == [datetime.date(1980, 3, 4), datetime.date(1980, 7, 1)]
    gaps = release.sample(pd.DataFrame({"ward": ["a", None]}))
    assert gaps["ward"].isna().tolist() == [False, True]


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (pd.DataFrame({"sax": ["f"]}), "sax"),
        (pd.DataFrame({"sex": ["x"]}), "no value 'x'"),
        (pd.DataFrame({"sex": []}), "no row"),
        *((pd.DataFrame({"age": [cell]}), "one value in each cell") for cell in ([3, 4], {3}, {3: 4}, pd.Series([3]))),
        (pd.Series(["f"], name="sex"), "one column|Series"),
        ("many", "got 'many'"),
        *((rows, "rows") for rows in (-1, 2.5, True)),
        (10**12, "1,000,000,000,000 synthetic rows are predicted to need"),
    ],
)
def test_rows_that_cannot_be_are_one_message(release, asked, said):
    with pytest.raises(UserError, match=said):
        release.sample(asked)


def test_what_is_public_is_listed_and_nothing_else():
    assert {"draft", "check", "plan", "rehearse", "fit", "load", "score"} <= set(dir(pipeline))
    assert dir(pipeline) == sorted(pipeline.__all__) and not {"TYPE_CHECKING", "Any"} & set(dir(pipeline))
    assert all(getattr(pipeline, name) is not None for name in dir(pipeline))


def mgd(real, synthetic, **settings):
    card = score(real, synthetic, "town.yaml", metrics=["mgd"], detail="all", evaluation=settings)
    return card.mgd, card.dives


def test_mgd_takes_frames_and_paths_alike_and_its_deep_dive_gives_frames(town):
    made = people(500, seed=2)
    made.to_csv("made.csv", index=False)
    one, _ = mgd("town.csv", "made.csv")
    two, _ = mgd(people(600), made)
    assert one.score == two.score > 0
    assert mgd(made, made)[0].score == 0
    listed, _ = mgd(made, people(600), targets=[{"attributes": ["age"], "weights": {"age": 1}}], delta=0)
    assert listed.marginals[0].target.delta == 0
    assert list(listed.frame().columns) == ["marginal", "aemc", "weight", "share", "cells", "solver"]
    with pytest.raises(UserError, match="dleta"):
        mgd(made, made, dleta=0)
    (dive,) = mgd(people(600), made, targets=[{"attributes": ["age", "job"]}], delta=0.0)[1]
    assert dive.aemc > 0 and {"age", "job", "real", "synthetic", "cost"} <= set(dive.bins.columns)


def test_on_very_many_rows_the_quick_metrics_are_those_on_top():
    spec = build_scores(EvaluationConfig(), load_schema(schema_path("demo")))
    assert affordable(spec, MANY_ROWS) == spec
    assert affordable(spec, MANY_ROWS + 1).metrics == ("mgd", "tvd")
    asked = build_scores(EvaluationConfig(metrics=["mgd", "density"]), load_schema(schema_path("demo")))
    assert affordable(asked, 10**9) == asked


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


def test_two_names_of_bins_are_no_range_and_the_rows_say_so(hospital):
    weeks = ["1980-01-01 to 1980-01-06", "1980-04-07 to 1980-04-13"]
    given = hospital.sample(5, where={"born": weeks}).attrs["given"]
    assert given["notes"] == [f"born: {weeks[0]} and {weeks[1]} are two bins; a range has two dates as its ends"]
    assert "notes" not in hospital.sample(5, where={"born": ["1980-01-01", "1980-04-30"]}).attrs["given"]


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
        ({"fare": [7, 7]}, "single numbers have no width"),
        ({"sex": []}, "an empty list"),
        ("sex == 'F'", "got str"),
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


def test_gaps_columns_and_ranges_of_a_frame_are_conditions(hospital):
    """NaN was a single number without a width, pd.NA no value; a column was one text of many lines."""
    for gap in (pd.NA, np.nan, pd.NaT, None):
        assert hospital.sample(9, where={"smoker": gap, "fare": [gap]})[["smoker", "fare"]].isna().all(axis=None)
        assert hospital.count({"smoker": gap})["count"].notna().all()
    for some in (pd.Series(["a", "b"]), np.array(["a", "b"]), pd.Index(["a", "b"])):
        assert set(hospital.sample(60, where={"ward": some})["ward"]) == {"a", "b"}
    assert hospital.sample(30, where={"stay": range(2, 5)})["stay"].isin([2, 3, 4]).all()


@pytest.mark.parametrize("asked", [{"by": 5}, {"by": [["sex"]]}, {"other": ["sex"]}, {"quantile": "0.5"}])
def test_what_is_no_column_and_no_number_is_one_message(hospital, asked):
    for ask in (lambda: hospital.estimate("mean", "age", **asked), lambda: hospital.bounds(asked)):
        with pytest.raises(UserError):
            ask()


def test_a_keyword_that_estimates_have_not_is_told_with_the_way_to_ask(hospital):
    with pytest.raises(UserError, match=r"estimate: where=: no such keyword\n.*for conditions count\(where\)"):
        hospital.estimate("mean", "stay", where={"sex": "F"})


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
