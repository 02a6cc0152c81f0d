"""A unit in the schema: settings may repeat it, contradictions are refused before all; open ends and odd persons."""

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import yaml

from mechanisms.public.errors import UserError
from mechanisms.public.schema.table_schema import load_schema, parse_schema
from pipeline.frames.fit import columns_beside
from pipeline.look.rehearse import write_rows
from pipeline.look.table_look import check
from pipeline.measuring.attempts import check_answers
from pipeline.settings.build import build_schema
from pipeline.settings.compose import compose_config
from pipeline.settings.config import CheckConfig, load_config, typed
from pipeline.settings.specs import build_specs, settled
from pipeline.statement.verify import verify
from tests.pipeline.conftest import command, copy_of, done_in, reply, statement_of
from tests.pipeline.forgeries import with_leaf
from tests.pipeline.test_contradictions import forged as papers_of
from tests.pipeline.test_contradictions import read
from tests.pipeline.test_whole_persons import stays

UNIT = "unit: {column: patient, constant: [sex, born], order: admitted, records: {max: 3}}\n"
FEW = """
name: stays
source: invented for the tests
confirmed_public: true
columns:
  sex: {kind: categorical, values: [f, m], missing: false}
  born: {kind: integer, min: 1900, max: 2020, bins: {count: 12}}
  admitted: {kind: date, min: 2020-01-01, max: 2023-12-31, bins: year}
  ward: {kind: categorical, values: [a, b, c], missing: false}
"""
OWN = ["data=table", "data.path=stays.csv", "data.schema=stays.yaml"]


def few_stays() -> pd.DataFrame:
    """Patients with two stays on one day, a stay without a day, two sexes, five stays, and one alone."""
    rows = [
        ("p1", "f", 1950, "2020-03-01", "a"),
        ("p2", "m", 1980, "2021-01-01", "b"),
        ("p1", "f", 1950, "2020-03-01", "b"),
        ("p1", "f", 1950, "2022-01-01", "c"),
        ("p2", "m", 1980, "", "b"),
        ("p3", "f", 1960, "2021-05-05", "a"),
        ("p3", "m", 1960, "2021-06-05", "a"),
        *(("p4", "m", 1999, f"2023-01-0{i}", "c") for i in range(1, 6)),
        ("p5", "f", 2001, "2020-07-07", "a"),
    ]
    return pd.DataFrame(rows, columns=["patient", "sex", "born", "admitted", "ward"])


@pytest.fixture
def few_clinic(folder: Path) -> Path:
    few_stays().to_csv("stays.csv", index=False)
    Path("stays.yaml").write_text(FEW + UNIT)
    return folder


def refusal(*settings: str) -> str:
    with pytest.raises(UserError) as error:
        build_specs(load_config([*OWN, *settings]))
    return f"{error.value.where}: {error.value.what}; {error.value.fix}"


def looked(*settings: str) -> tuple[list[str], list[str]]:
    """The hints and warnings of `check` about whole persons."""
    look = check(typed(compose_config("check", [*OWN, *settings]), CheckConfig))
    return [h for h in look.hints if h.startswith("unit: ")], [w for w in look.warnings if w.startswith("unit: ")]


@pytest.mark.parametrize(
    "settings", [[], ["privacy.unit=patient"], ["privacy.max_records=3"], ["data.unit=patient", "data.max_records=3"]]
)
def test_the_block_alone_is_enough_and_the_settings_may_repeat_it(few_clinic, settings):
    specs = build_specs(load_config([*OWN, *settings]))
    assert (specs.unit.column, specs.unit.max_records, specs.budget.max_records) == ("patient", 3, 3)
    assert (specs.config.privacy.unit, specs.config.privacy.max_records) == ("patient", 3)
    assert settled(specs.config) == specs.config
    schema = build_schema(specs)
    assert schema.rules.unit == specs.declared.rules.unit and schema.measured.names[:1] == ("admitted",)
    assert columns_beside(specs.config, schema)["patient"] == "privacy.unit", "of a frame it is read too"


@pytest.mark.slow
def test_fewer_records_may_count_than_a_person_has_and_the_schema_of_the_run_says_so(few_clinic):
    specs = build_specs(load_config([*OWN, "privacy.max_records=2"]))
    unit = build_schema(specs).rules.unit
    assert (specs.unit.max_records, specs.budget.max_records, unit.max_records, unit.bound) == (2, 2, 3, 2)
    saved = yaml.safe_load(build_schema(specs).to_yaml())
    assert saved["unit"]["records"] == {"max": 3, "counted": 2}
    assert parse_schema(saved, where="saved").rules.unit == unit
    Path("stays.yaml").write_text(FEW + UNIT.replace("max: 3", "max: 3, counted: 2"))
    assert build_specs(load_config(OWN)).unit.max_records == 2
    assert "but the schema says unit: {records: {max: 3, counted: 2}}" in (said := refusal("privacy.max_records=3"))
    assert "; privacy.max_records=2, or null" in said, "as it is written on the command line"
    for wrong in ("0", "4", "true", "two"):
        Path("stays.yaml").write_text(FEW + UNIT.replace("max: 3", f"max: 3, counted: {wrong}"))
        assert "unit: records: counted: got" in refusal() and "from 1 to 3" in refusal()


def test_without_a_unit_in_the_schema_settings_mean_what_they_meant(few_clinic):
    Path("stays.yaml").write_text(FEW)
    alone = build_specs(load_config(OWN))
    assert (alone.unit.column, alone.unit.max_records, alone.config.privacy.unit) == (None, 1, "record")
    by_data = build_specs(load_config([*OWN, "data.unit=patient", "data.max_records=7"]))
    assert (by_data.unit.column, by_data.unit.max_records) == ("patient", 7)
    assert build_specs(load_config([*OWN, "data.unit=patient", "privacy.unit=record"])).unit.column is None


@pytest.mark.parametrize(
    ("setting", "own"),
    [
        *((setting, "{column: patient}") for setting in ("privacy.unit=record", "privacy.unit=who", "data.unit=who")),
        *((f"{group}.max_records=4", "{records: {max: 3}}") for group in ("privacy", "data")),
    ],
)
def test_a_contradiction_is_refused_by_every_command_before_any_charge_and_names_both_places(
    few_clinic, capsys, setting, own
):
    name, _, value = setting.partition("=")
    said = f"{name}: got {value if value == '4' else repr(value)}, but the schema says unit: {own}"
    for asked in (["plan", *OWN], ["run", *OWN, "hydra.run.dir=out"], ["rehearse", *OWN[2:]], ["check", *OWN]):
        if asked[0] != "check" or name.startswith("privacy"):
            assert said in reply(capsys, *asked, setting, code=1).err, asked
    assert not list(Path().glob("**/ledger*"))
    if name == "data.unit":  # as of the demo, where only the path was given
        assert "data=table" in reply(capsys, "plan", *OWN, setting, code=1).err
    if name.endswith("max_records"):
        sweep = ["run", "-m", *OWN, f"{name}=3,4", "hydra.sweep.dir=sweep"]
        assert said in reply(capsys, *sweep, code=1).err and not list(Path("sweep").glob("**/privacy.json"))


def test_check_refuses_names_of_columns_that_a_run_refuses(few_clinic, capsys):
    """It said that a run goes on."""
    Path("stays.yaml").write_text((FEW + UNIT).replace("sex", "first admitted"))
    pd.read_csv("stays.csv").rename(columns={"sex": "first admitted"}).to_csv("stays.csv", index=False)
    for asked in (["check", *OWN], ["run", *OWN, "hydra.run.dir=out"]):
        assert "two questions about persons are called" in reply(capsys, *asked, code=1).err, asked


def test_a_column_that_is_called_as_one_row_is_no_unit(few_clinic):
    Path("stays.yaml").write_text(FEW + UNIT.replace("patient", "record"))
    for settings in ([], ["privacy.unit=record"]):
        assert "privacy.unit: the schema says unit: {column: record}, which means one row" in refusal(*settings)


def test_a_plan_names_the_unit_and_tells_of_half_as_many_records(few_clinic, capsys):
    facts = json.loads(reply(capsys, "plan", *OWN, "plan.format=json", "plan.rows=1000").out)
    named = [line["with"] for line in facts["expected"]["what_would_help"]]
    assert facts["unit"] == "patient" and "privacy.max_records=2 (units with more lose the rest)" in named
    noise, largest = [m["stddev"] for m in facts["persons"]], max(facts["persons"], key=lambda m: m["cells"])
    said = " ".join(reply(capsys, "plan", *OWN).out.split())
    assert f"noise ± {min(noise):.3g} to {max(noise):.3g} units a cell" in said and min(noise) < max(noise)
    assert f"the largest of {largest['cells']:,} cells ({' × '.join(largest['clique'])})" in said


def test_a_plan_names_the_pairs_with_a_constant_that_no_question_holds(few_clinic, capsys):
    """A constant of more than 200 codes stands beside nothing: who plans it is told of each pair."""
    wide = FEW.replace("columns:\n", "columns:\n  canton: {kind: categorical, size: 201}\n")
    Path("wide.yaml").write_text(wide + UNIT.replace("[sex", "[canton, sex"))
    plans = [reply(capsys, "plan", *OWN[:2], f"data.schema={name}.yaml").out for name in ("stays", "wide")]
    said = [" ".join(text.split()) for text in plans]
    few = "(constants of persons beside columns of records): canton × sex, canton × born, canton × admitted and 1 more"
    assert f"never asked, and as unrelated {few}" in said[1] and "never asked" not in said[0]


def test_a_rehearsed_table_has_constant_constants_and_no_more_records_than_declared(few_clinic):
    schema = build_schema(build_specs(load_config(OWN)))
    write_rows(Path("rows.csv"), schema, 400, column="patient", most=3, rng=np.random.default_rng(0))
    frame = pd.read_csv("rows.csv", keep_default_na=False)
    by_person = frame.groupby("patient")
    assert len(frame) == 400 and by_person.size().max() == 3 and frame.sex.nunique() == 2
    assert (by_person.sex.nunique() == 1).all() and list(frame)[-1] == "patient"


def test_check_tells_of_constants_ties_gaps_and_bounds(few_clinic, capsys):
    hints, warnings = looked()
    assert hints == [
        "unit: records: persons with more than 3 records: 1; each of their records weighs less, and no synthetic "
        "person has more",
        "unit: constant: 'sex' has several values in 1 of the 4 persons with several records; one of them is taken, by "
        "a keyed hash",
        "unit: order: 7.7 % of the rows (1) have no value of 'admitted', and stand behind the others of their person",
        "unit: order: rows with the same place as the one before, by admitted: 1; the order of the file decides, or a "
        "further column",
    ]
    assert warnings == []
    assert "as many of their records count, by chance" in looked("privacy.clip=truncate")[0][0]
    assert "in neither columns nor leave_out" not in reply(capsys, "check", *OWN, "format=json").out, "of the ids"


def test_check_tells_of_rows_without_an_id_as_well_where_each_is_a_unit_of_its_own(few_clinic):
    few_stays().assign(patient="", born=1950).to_csv("stays.csv", index=False)
    assert looked()[1] == looked("privacy.missing_unit=own")[1] != []


def test_check_orders_by_codes_where_the_order_is_ordinal_and_by_the_file_where_there_is_none(few_clinic):
    ordinal = FEW.replace("values: [a, b, c]", "values: [a, b, c], ordinal: true")
    Path("stays.yaml").write_text(ordinal + UNIT.replace("order: admitted", "order: [admitted, ward]"))
    assert not [h for h in looked()[0] if "same place" in h]
    Path("stays.yaml").write_text(ordinal + UNIT.replace("order: admitted", "order: ward"))
    assert [h for h in looked()[0] if "same place as the one before, by ward: 6;" in h]
    Path("stays.yaml").write_text(FEW + UNIT.replace("order: admitted, ", ""))
    assert "unit: no order: the records of each person stand in the order of the file" in looked()[0]


SCHEMA = """name: stays
source: invented for a test
confirmed_public: true
columns:
  sex: {kind: categorical, values: [f, m], missing: false}
  town: {kind: categorical, values: discover}
  born: {kind: integer, bounds: discover, within: [1800, 2100], missing: false}
  day: {kind: date, bounds: discover, within: ["2000-01-01", "2040-12-31"], missing: false}
  ward: {kind: categorical, values: [w00, w01, w02, w03, w04, w05, w06, w07, w08, w09, w10, w11], missing: false}
  cost: {kind: integer, min: 0, max: 99, bins: {count: 10}}
unit: {column: patient, constant: [sex, town, born], order: day, records: {max: 12}}
"""
STAYS = ["data=table", "data.path=stays.csv", "data.schema=stays.yaml", "selection=oneway", "synthesis=independent"]
STAYS += ["privacy.delta=1e-6", "evaluation.enabled=false"]
RUN = [*STAYS, "privacy.epsilon=40", "privacy.max_records=discover"]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One run: a town of one person alone, and two persons of 30 records."""
    folder = tmp_path_factory.mktemp("open")
    frame = stays(900)
    frame["born"] = 1950 + frame.patient.str[1:].astype(int) % 40
    frame.loc[frame.patient == "p3", "town"] = "Atlantis"
    many = pd.concat([frame[frame.patient == name].iloc[[0] * 30] for name in ("p1", "p2")])
    pd.concat([frame, many]).to_csv(folder / "stays.csv", index=False)
    (folder / "stays.yaml").write_text(SCHEMA)
    return done_in(folder, "run", *RUN, "hydra.run.dir=out")


@pytest.fixture
def place(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return copy_of(made, tmp_path / "stays", monkeypatch)


def test_columns_of_the_block_become_concrete_and_c_is_part_of_the_unit(made: Path) -> None:
    schema, statement = load_schema(made / "out" / "release" / "schema.yaml"), statement_of(made / "out")
    unit = schema.rules.unit
    assert unit is not None and not schema.to_discover and unit.constant == ("sex", "town", "born")
    assert schema["town"].values == ("A", "B", "C") and 1940 <= schema["born"].low <= 1950
    assert schema["day"].discovered == ("bounds",) and unit.order == ("day",)
    assert unit.max_records == 12 and unit.bound == statement["unit"]["max_records"] in (4, 8)
    first = {e["id"].split(":")[1]: e for e in statement["events"] if e.get("discovery")}
    assert {n: first[n]["discovery"].get("constant") for n in first} == {
        "(records per unit)": None, "town": True, "born": True, "day": None,
    }  # fmt: skip
    assert first["town"]["discovery"]["values_per_unit"] == 1
    counted = {e["sensitivity"] for e in statement["events"] if e["id"].startswith("persons:")}
    assert counted == {1} and verify(made / "out" / "release").sound
    for name, times in (("statement.html", 2), ("deployment.yaml", 1)):
        text = (made / "out" / "release" / name).read_text()
        assert text.count("in counts of records: ") == text.count("all records of a unit, which together") == times
    assert not any(b"Atlantis" in p.read_bytes() for p in (made / "out" / "release").rglob("*") if p.is_file())


def test_records_beyond_c_are_made_up_for_by_the_sizes_of_persons(made: Path) -> None:
    real, frame = (pd.read_csv(made / p, keep_default_na=False) for p in ("stays.csv", "out/release/synthetic.csv"))
    counted = real.groupby("patient").size().clip(upper=12)
    assert abs(len(frame) / counted.sum() - 1) < 0.04
    assert abs(frame.patient.nunique() / real.patient.nunique() - 1) < 0.06
    assert (frame.groupby("patient")[["sex", "town", "born"]].nunique() == 1).all(axis=None)
    assert frame.groupby("patient").day.apply(lambda d: d.is_monotonic_increasing).all()


@pytest.mark.slow
def test_a_declared_c_below_the_largest_size_keeps_the_number_of_records_too(place: Path) -> None:
    text = (place / "out" / "release" / "schema.yaml").read_text()
    found = statement_of("out")["unit"]["max_records"]
    Path("two.yaml").write_text(text.replace("max: 12", "max: 5").replace(f"counted: {found}", "counted: 2"))
    settings = [s for s in RUN if "max_records" not in s and "data.schema" not in s]
    assert command("run", *settings, "data.schema=two.yaml", "hydra.run.dir=two") == 0
    real, frame = pd.read_csv("stays.csv"), pd.read_csv("two/release/synthetic.csv")
    assert statement_of("two")["unit"]["max_records"] == 2
    for name in ("statement.html", "deployment.yaml"):
        said = Path("two/release", name).read_text()
        assert "C = 2 follows from noisy counts of units of an earlier release" in said
        assert "C = 2 is declared" not in said
        assert "(records per unit) (C), from noisy answers of an earlier release" in " ".join(said.split())
    sizes, own = (f.groupby("patient").size().clip(upper=5) for f in (real, frame))
    assert abs(own.sum() / sizes.sum() - 1) < 0.04
    assert abs(sizes.value_counts(normalize=True) - own.value_counts(normalize=True)).sum() < 0.1
    assert command("synth", "from=two/release", "output=again", "synthesis=independent") == 0
    assert len(pd.read_csv("again/release/synthetic.csv")) == len(frame)


@pytest.mark.parametrize(
    ("event", "name", "forged"),
    [
        ("day", "discovery.constant", True),
        ("born", "discovery.constant", False),
        ("town", "discovery.values_per_unit", 4),
        ("(records per unit)", "discovery.lost_record", 1.0),
        ("", "unit.max_records", 12),
    ],
)
def test_what_is_said_of_constants_follows_from_the_schema(place: Path, event: str, name: str, forged: object) -> None:
    release = place / "out" / "release"
    if name.endswith("constant") and forged is True:
        statement = json.loads((release / "privacy.json").read_text())
        next(e for e in statement["events"] if e["id"] == f"discovery:{event}")["discovery"]["constant"] = None
        (release / "privacy.json").write_text(json.dumps(statement))
    assert not with_leaf(release, event, name, forged).sound


def test_answers_about_persons_stand_in_the_order_of_their_charges(place: Path) -> None:
    """Two of as many cells had changed places, each with the other's counts, and `verify` called it sound."""
    release = place / "out" / "release"
    said, index = read(release)
    index["persons"].reverse()
    papers_of(release, said, index)
    assert any("another order than their receipts" in c.finding for c in verify(release).checks)


def test_a_bound_that_is_said_is_not_discovered(place: Path, capsys) -> None:
    Path("stays.yaml").write_text(SCHEMA.replace("max: 12", "max: 12, counted: 4"))
    assert "the schema's unit says that 4 of a unit's records count" in reply(capsys, "plan", *RUN, code=1).err
    Path("stays.yaml").write_text(SCHEMA.replace("max: 12", "max: 1"))
    assert command("plan", *RUN) == 1
    assert command("check", "data.path=stays.csv", "data.schema=stays.yaml", "privacy.max_records=discover") == 1


@pytest.mark.slow
def test_a_release_of_persons_may_be_tried_until_its_records_are_near(place: Path) -> None:
    settings = ["accept=[{metric: l1, marginals: 1, at_most: 400}]", "accept_tries=2", "hydra.run.dir=tried"]
    Path("stays.yaml").write_text(Path("out/release/schema.yaml").read_text())
    run = [s for s in RUN if "max_records" not in s]
    assert command("run", *run, *settings) == 0
    assert verify(place / "tried" / "release").sound
    frame = pd.read_csv("tried/release/synthetic.csv", keep_default_na=False)  # a person may have no town
    assert (frame.groupby("patient")[["sex", "town"]].nunique() == 1).all(axis=None)


ODD_SCHEMA = """name: stays
source: invented for a test
confirmed_public: true
columns:
  sex: {kind: categorical, values: [f, m]}
  day: {kind: date, min: 2020-01-01, max: 2020-12-31, bins: {count: 4}}
  ward: {kind: categorical, values: [a, b, c], missing: false}
unit: {column: patient, constant: sex, order: day, records: {max: 4}}
"""
ODD_RUN = [*STAYS, "privacy.epsilon=20", "data.max_unplaced=1"]
TWO = ["data.units.path=patients.csv", "data.units.id=patient"]


def odd_stays(**columns: object) -> pd.DataFrame:
    """400 rows of 200 persons, of whom each has two, with some columns in the place of the usual ones."""
    n = np.arange(400)
    days = pd.Series(pd.to_datetime("2020-01-01") + pd.to_timedelta(n % 365, unit="D")).dt.date
    usual = {"patient": [f"p{i // 2}" for i in n], "sex": np.where(n // 2 % 2, "f", "m"), "day": days}
    return pd.DataFrame({**usual, "ward": np.array(["a", "b", "c"])[n % 3], **columns})


N = np.arange(400)
#: A name → the table, and words that `check` says of it.
ODD: dict[str, tuple[pd.DataFrame, list[str]]] = {
    "ids that are null": (
        odd_stays(patient=[["", "NA", "  ", f"p{i // 8}"][i % 4] for i in N]),
        ["50 units", "300 rows without an id, which do not count"],
    ),
    "constants that contradict everywhere": (
        odd_stays(sex=np.where(N % 2, "f", "m")),
        ["'sex' has several values in 200 of the 200 persons", "is it constant? if not"],
    ),
    "an order that is missing": (odd_stays(day=""), ["100.0 % of the rows (400) have no value of 'day'"]),
    "an order that is tied": (odd_stays(day="2020-02-29"), ["rows with the same place as the one before, by day: 200"]),
    "persons beyond C": (odd_stays(patient=[f"p{i // 40}" for i in N]), ["persons with more than 4 records: 10"]),
    "one record a person": (odd_stays(patient=[f"p{i}" for i in N]), ["no id repeats: one record a person"]),
    "one person in all": (odd_stays(patient="p"), ["all rows are one person's"]),
    "no id at all": (odd_stays(patient=""), ["0 units", "400 rows without an id"]),
    "no row": (odd_stays().head(0), []),
}


@pytest.fixture
def clinic(folder: Path) -> Path:
    Path("stays.yaml").write_text(ODD_SCHEMA)
    return folder


def check_whole(frame: pd.DataFrame) -> None:
    each = frame.groupby("patient", dropna=False)
    assert not len(frame) or (each.size().max() <= 4 and (each.sex.nunique() <= 1).all())


@pytest.mark.some(3)
@pytest.mark.parametrize("name", ODD)
def test_a_run_takes_rows_as_they_are_and_check_tells(clinic: Path, name: str, capsys) -> None:
    frame, said = ODD[name]
    frame.to_csv("stays.csv", index=False)
    told = " ".join(reply(capsys, "check", *ODD_RUN[1:3], "data.max_unplaced=1").out.split())
    assert all(words in told for words in said), told
    without = frame.patient.map(str.strip).isin(["", "NA"]).any()
    for missing in ("drop", "own") if without else ("drop",):  # of ids that are all there both say the same
        assert command("run", *ODD_RUN, f"privacy.missing_unit={missing}", f"hydra.run.dir={missing}") == 0
        made = pd.read_csv(Path(missing) / "release" / "synthetic.csv")
        check_whole(made)
    if name == "no id at all":  # never one pooled person: as many as there are rows
        assert made.patient.nunique() > 300


@pytest.mark.slow
def test_scores_count_rows_without_an_id_as_nobodys_and_spellings_of_an_id_as_one(clinic: Path) -> None:
    frame = ODD["ids that are null"][0]
    frame["patient"] = frame["patient"].where(N % 8 > 2, frame["patient"].str.upper())  # P0 is p0
    frame.to_csv("stays.csv", index=False)
    scored = ["evaluation.enabled=true", "evaluation.metrics=[persons]", "hydra.run.dir=out"]
    assert command("run", *(s for s in ODD_RUN if not s.startswith("evaluation")), *scored) == 0
    two = ["real=stays.csv", "synthetic=out/release/synthetic.csv", "metrics=[persons]", "output=two.json"]
    assert command("score", *two) == 0
    for scores in ("out/internal/scores.json", "two.json"):
        assert json.loads(Path(scores).read_text())["metrics"]["persons"]["details"]["persons"]["real"] == 50, scores


def test_ids_that_must_be_there_refuse_the_run_before_any_charge(clinic: Path, capsys) -> None:
    ODD["ids that are null"][0].to_csv("stays.csv", index=False)
    assert command("run", *ODD_RUN, "privacy.missing_unit=refuse", "hydra.run.dir=out") == 1
    assert "privacy.missing_unit" in capsys.readouterr().err and not list(Path().glob("out/**/ledger.jsonl"))


def test_a_table_of_units_may_lack_ids_hold_others_and_hold_some_twice(clinic: Path, capsys) -> None:
    odd_stays().drop(columns="sex").to_csv("stays.csv", index=False)
    ids = [*(f"p{i}" for i in range(150)), *(f"p{i}" for i in range(20)), *(f"q{i}" for i in range(30)), "", " "]
    pd.DataFrame({"patient": ids, "sex": ["f"] * 150 + ["m"] * 52}).to_csv("patients.csv", index=False)
    told = " ".join(reply(capsys, "check", *ODD_RUN[1:3], *TWO, "data.max_unplaced=1").out.split())
    # nor named: it may lie at an address, the end of which named nothing (s&port=5432#patients)
    assert "table of units: 50 units (100 records) have no row: its columns are missing" in told
    assert "30 units have a row and no record: they are not read" in told
    assert "20 units have several rows: the first one counts" in told and "2 rows have no id: they are not read" in told
    assert command("run", *ODD_RUN, *TWO, "hydra.run.dir=out") == 0
    made = pd.read_csv("out/release/synthetic.csv")
    check_whole(made)
    by_person = made.groupby("patient").sex.first()
    assert by_person.isna().mean() > 0.1 and (by_person == "f").mean() > 0.6  # 150 f, 50 in no table of units


def test_ids_of_others_are_told_whether_they_are_left_out_or_would_be_measured(clinic: Path, capsys) -> None:
    odd_stays(mother=[f"p{i // 3}" for i in N]).to_csv("stays.csv", index=False)
    told = " ".join(reply(capsys, "check", *ODD_RUN[1:3]).out.split())
    assert "'mother': 134 of its 134 values are ids of 'patient': who belongs to whom is not measured" in told
    listed = "columns:\n  mother: {kind: categorical, values: [p1, p2], other: other}"
    Path("stays.yaml").write_text(ODD_SCHEMA.replace("columns:", listed))
    told = " ".join(reply(capsys, "check", *ODD_RUN[1:3]).out.split())
    assert "are ids of 'patient', and it would be measured: leave_out: [mother]" in told


def test_a_question_about_persons_that_was_lost_is_named():
    asked = [SimpleNamespace(person_question=SimpleNamespace(label=(f"persons: {n}", "ward"))) for n in "ab"]
    plan = SimpleNamespace(of=lambda _: asked, buys_answers=lambda _: True, histogram=None)
    answers = SimpleNamespace(answers=[1], persons=[SimpleNamespace(clique=("persons: a", "ward"))], histogram=None)
    said: list[str] = []
    check_answers(answers, plan, SimpleNamespace(events={"x": 1}), SimpleNamespace(warn=said.extend))
    assert said == ["1 of 2 questions about persons are spent without an answer: persons: b, ward"]
