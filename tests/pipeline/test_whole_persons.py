"""Runs whose schema declares a unit: whole synthetic persons, constant, in order, alike, and within the rules."""

import json
import shutil
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml

import pipeline
from mechanisms.public.coded_table import CodedTable
from mechanisms.public.errors import UserError
from mechanisms.public.release_files import load_measurements
from mechanisms.public.schema.table_schema import parse_schema
from mechanisms.public.tables.decode import Owned
from pipeline import row_maker
from pipeline.row_maker import RowMaker, build_condition
from tests.pipeline.conftest import command, copy_of, done_in, reply, statement_of
from tests.pipeline.formats import departures
from tests.pipeline.test_contradictions import forged as made_anew
from tests.pipeline.test_contradictions import read

SCHEMA = """name: stays
source: invented for a test
confirmed_public: true
columns:
  sex: {kind: categorical, values: [f, m], missing: false}
  town: {kind: categorical, values: [A, B, C], missing: false}
  day: {kind: date, min: 2020-01-01, max: 2020-12-31, bins: {count: 12}, missing: false}
  ward: {kind: categorical, values: [w00, w01, w02, w03, w04, w05, w06, w07, w08, w09, w10, w11], missing: false}
  cost: {kind: integer, min: 0, max: 99, bins: {count: 10}}
"""
UNIT = "unit: {column: patient, constant: [sex, town], order: day, records: {max: 5}}\n"
RUN = ["data=table", "data.path=stays.csv", "data.schema=stays.yaml", "selection=pairs", "synthesis=independent"]
RUN += ["privacy.delta=1e-6", "evaluation.enabled=false"]


def stays(persons: int = 1500) -> pd.DataFrame:
    """Persons who stay on their ward in three of four steps, and whose cost is much their own."""
    rng = np.random.default_rng(7)
    rows = []
    for i in range(persons):
        sex, town, ward = rng.choice(["f", "m"]), rng.choice(["A", "B", "C"], p=[0.6, 0.3, 0.1]), int(rng.integers(12))
        level, day = rng.integers(0, 90), int(rng.integers(0, 250))
        for _ in range(int(rng.integers(1, 6))):
            cost = int(min(max(level + rng.integers(-6, 7), 0), 99))
            rows.append((f"p{i}", sex, town, f"2020-{1 + day // 31:02d}-{1 + day % 28:02d}", f"w{ward:02d}", cost))
            day, ward = day + int(rng.integers(1, 25)), ward if rng.random() < 0.75 else int(rng.integers(12))
    return pd.DataFrame(rows, columns=["patient", "sex", "town", "day", "ward", "cost"]).sample(frac=1, random_state=1)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One run at a large ε, for all who only read it."""
    folder = tmp_path_factory.mktemp("stays")
    stays().to_csv(folder / "stays.csv", index=False)
    (folder / "stays.yaml").write_text(SCHEMA + UNIT)
    return done_in(folder, "run", *RUN, "privacy.epsilon=40", "hydra.run.dir=out")


@pytest.fixture
def place(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return copy_of(made, tmp_path / "stays", monkeypatch)


def kept_ward(frame: pd.DataFrame) -> float:
    """Of the records with one before of the same person: those on the same ward."""
    ordered = frame.sort_values(["patient", "day"], kind="stable")
    follows = ordered.patient == ordered.patient.shift()
    return float((ordered.ward == ordered.ward.shift())[follows].mean())


def check_persons(frame: pd.DataFrame) -> None:
    """What holds whatever the noise is."""
    assert frame.columns[-1] == "patient"
    assert frame.patient.diff().fillna(1).isin([0, 1]).all() and frame.patient.iloc[0] == 1
    each = frame.groupby("patient")
    assert each.size().max() <= 5
    assert (each[["sex", "town"]].nunique() == 1).all(axis=None)
    assert each.day.apply(lambda d: d.is_monotonic_increasing).all()


def test_persons_are_whole_constant_in_order_and_as_alike_as_the_real_ones(place: Path) -> None:
    real, frame = pd.read_csv("stays.csv"), pd.read_csv("out/release/synthetic.csv")
    check_persons(frame)
    sizes, own = (f.groupby("patient").size().value_counts(normalize=True) for f in (real, frame))
    assert abs(sizes - own).sum() < 0.1
    assert abs(frame.patient.nunique() / real.patient.nunique() - 1) < 0.05
    assert abs(kept_ward(frame) - kept_ward(real)) < 0.12 and kept_ward(real) > 0.7
    first, mine = (f.groupby("patient").town.first().value_counts(normalize=True) for f in (real, frame))
    assert abs(first - mine).sum() < 0.05
    between, whole = (f.groupby("patient").cost.mean().std() for f in (frame, real))
    assert between > 0.7 * whole  # owners at random: half


def test_each_question_is_charged_for_one_person_and_the_release_is_sound(place: Path, capsys) -> None:
    statement = statement_of("out")
    asked = [e for e in statement["events"] if e["id"].startswith("persons:")]
    assert len(asked) > 8 and all(e["sensitivity"] == 1 and e["answered"] for e in asked)
    assert {e["sensitivity"] for e in statement["events"]} == {1, 5}
    about_constants = 27.0  # sex, town: alone (ten each); beside the number of records, each other, and two columns
    changing = 2 + 2 + 2 + 2 + 1 + 1 + 0.5  # records, first and last day, who stays; distinct wards; mean and next cost
    share = 0.07 + 0.05 * about_constants / changing
    assert abs(sum(e["share"] for e in asked) - share) < 1e-9
    assert len(load_measurements(Path("out/release/measurements")).persons) == len(asked)
    assert reply(capsys, "verify", "from=out/release").out.strip().endswith("sound")
    page = Path("out/release/statement.html").read_text()
    assert f"{len(asked)} histograms of units" in page
    assert "town" not in {n for e in statement["events"] if e not in asked for n in e["clique"] or ()}


def test_a_run_that_is_resumed_says_how_many_persons_its_release_holds(place: Path, capsys) -> None:
    persons = pd.read_csv("out/release/synthetic.csv").patient.nunique()
    again = reply(capsys, "run", *RUN, "privacy.epsilon=40", "hydra.run.dir=out", "resume=true").out
    assert f"rows of {persons:,} persons)" in " ".join(again.split())


@pytest.mark.slow
def test_the_last_lines_name_the_column_in_which_persons_are_farthest_from_real_ones(place: Path, capsys) -> None:
    scored = [*(r for r in RUN if "evaluation" not in r), "evaluation.metrics=[persons]", "console=always"]
    seeds = ["privacy.noise_seed=1", "synthesis.seed=1"]  # by chance kinship shows at this ε too
    lines = " ".join(reply(capsys, "run", *scored, *seeds, "privacy.epsilon=0.2", "hydra.run.dir=few").out.split())
    own, real = (100 * kept_ward(pd.read_csv(t)) for t in ("few/release/synthetic.csv", "stays.csv"))
    assert own < real - 21
    assert f"persons: ward is as in the record before in {own:.0f}% of steps (real: {real:.0f}%)" in lines
    summary = " ".join(Path("few/internal/summary.txt").read_text().split())
    assert "constant in a person, stand in these alone pairs" in summary and "of these as of persons" in summary


@pytest.mark.slow
def test_the_last_lines_say_where_there_are_far_fewer_persons(place: Path, capsys) -> None:
    """Rules parted so many persons in two that 3,585 stood for 2,283, and the scores' lines named only their rows."""
    scored = [*(r for r in RUN if "evaluation" not in r), "evaluation.metrics=[persons]", "console=always"]
    assert command("run", *scored, "privacy.epsilon=40", "synthesis.rows=1000", "hydra.run.dir=half") == 0
    lines = " ".join(capsys.readouterr().out.split())
    own, real = (pd.read_csv(t).patient.nunique() for t in ("half/release/synthetic.csv", "stays.csv"))
    assert f"persons: far from the real number: {own:,} (real {real:,})" in lines
    table = pd.read_csv("stays.csv").astype({"patient": "object"})
    table.loc[::5, "patient"] = ""  # each is a person, whom no id counts
    table.to_csv("gaps.csv", index=False)
    settings = [*scored, "data.path=gaps.csv", "privacy.missing_unit=own", "privacy.epsilon=40", "hydra.run.dir=gaps"]
    assert command("run", *settings) == 0
    assert "far from the real number" not in capsys.readouterr().out


@pytest.mark.slow
def test_more_and_fewer_rows_are_whole_persons_too_and_a_seed_gives_them_again(place: Path) -> None:
    for name, rows in (("few", 200), ("many", 9000), ("one", 1)):
        settings = ["from=out/release", f"synthesis.rows={rows}", "synthesis=independent", "synthesis.seed=3"]
        assert command("synth", *settings, f"output={name}") == 0
        frame = pd.read_csv(f"{name}/release/synthetic.csv")
        assert len(frame) == rows
        check_persons(frame)
        if rows > 1:  # more persons, not larger ones
            assert abs(frame.groupby("patient").size().mean() - 3) < 0.4
    settings = ["from=out/release", "synthesis.rows=200", "synthesis=independent", "synthesis.seed=3", "output=again"]
    assert command("synth", *settings) == 0
    few, again = (Path(n, "release/synthetic.csv").read_bytes() for n in ("few", "again"))
    assert few == again
    assert command("verify", "from=many/release") == 0


def test_an_answer_under_the_name_of_another_question_of_as_many_cells_is_found(place: Path, capsys) -> None:
    said, index = read(Path("out/release"))
    asked = [e for e in said["events"] if e["id"].startswith("persons:")]
    one, other = next((a, b) for a, b in combinations(asked, 2) if a["cells"] == b["cells"])
    names = {one["id"]: other["clique"], other["id"]: one["clique"]}
    for holder, key in ((said["events"], "id"), (index["persons"], "event")):
        for entry in (e for e in holder if e[key] in names):
            entry["clique"] = names[entry[key]]
    made_anew(Path("out/release"), said, index)
    assert "is nothing that the schema asks about persons" in reply(capsys, "verify", "from=out/release", code=1).out


@pytest.mark.parametrize("forged", [{"column": "visit"}, {"max_records": 4}])
def test_a_statement_about_another_unit_than_the_schema_s_is_found(place: Path, capsys, forged: dict) -> None:
    release, said = Path("out/release"), statement_of("out")
    said["unit"] |= forged
    made_anew(release, said, read(release)[1])
    assert command("verify", "from=out/release") == 1
    assert "schema.yaml says unit: 'patient' with C = 5, and privacy.json" in capsys.readouterr().out


def test_what_was_asked_about_persons_stands_in_the_order_of_the_schema(place: Path, capsys) -> None:
    said, index = read(Path("out/release"))
    asked = said["events"][-2:]
    said["events"][-2:] = asked[::-1]
    index["persons"] = sorted(index["persons"], key=lambda a: a["event"] == asked[0]["id"])
    made_anew(Path("out/release"), said, index)
    assert command("verify", "from=out/release") == 1
    assert f"{asked[0]['id']} does not stand where a plan would have it" in capsys.readouterr().out


@pytest.mark.slow
def test_a_run_goes_on_from_its_saved_answers(place: Path) -> None:
    first = load_measurements(Path("out/release/measurements")).persons
    shutil.rmtree("out/release")
    assert command("run", *RUN, "privacy.epsilon=40", "hydra.run.dir=out", "resume=true") == 0
    again = load_measurements(Path("out/release/measurements")).persons
    assert all((a.values == b.values).all() for a, b in zip(first, again, strict=True))
    check_persons(pd.read_csv("out/release/synthetic.csv"))


def test_without_a_unit_nothing_is_asked_and_nothing_is_linked(place: Path) -> None:
    Path("stays.yaml").write_text(SCHEMA + "leave_out: [patient]\n")
    assert command("run", *RUN, "privacy.epsilon=40", "hydra.run.dir=plain") == 0
    assert "patient" not in pd.read_csv("plain/release/synthetic.csv").columns
    assert not load_measurements(Path("plain/release/measurements")).persons
    assert "persons" not in json.loads(Path("plain/release/measurements/index.json").read_text())


def test_a_condition_that_a_rule_about_constants_forbids_is_refused_before_any_row_is_made() -> None:
    facts = yaml.safe_load(SCHEMA + UNIT) | {"impossible": [{"town": ["A", "B"], "cost": {"min": 50}}]}
    schema = parse_schema(facts, where="test")
    with pytest.raises(UserError, match="forbids them, of town × cost"):
        build_condition(schema, {"town": "A", "cost": [60, 79]})
    assert build_condition(schema, {"town": ["A", "C"], "cost": [60, 79]}) is not None


@pytest.mark.parametrize(("usual", "most"), [(10_000, 200_000), (90_000, 360_000), (400_000, 1_000_000)])
def test_no_more_rows_are_linked_for_a_rare_condition_than_are_linked_soon(usual, most, monkeypatch) -> None:
    """Of twenty rows that hardly anybody satisfies a million were linked, which took many minutes."""
    schema, made = parse_schema(yaml.safe_load(SCHEMA + UNIT), where="test"), list[int]()
    condition = build_condition(schema, {"town": "C"})

    def nobody(self: RowMaker, rows: int, report: object) -> CodedTable:
        made.append(rows)
        return CodedTable(schema.domain, tuple(np.zeros(rows, np.uint8) for _ in schema.columns))

    monkeypatch.setattr(RowMaker, "_coded", nobody)
    monkeypatch.setattr(row_maker, "linked", lambda coded, *_: Owned(coded, np.ones(coded.rows, np.int64), {}))
    monkeypatch.setattr(row_maker, "as_written", lambda schema, measurements: schema)
    monkeypatch.setattr(row_maker, "default_rows", lambda measurements: usual)
    maker = RowMaker(schema, None, None, np.random.default_rng(1))
    with pytest.raises(UserError, match=f"0 of {most:,} made rows"):
        maker.draw(20, condition)
    assert max(made) == most


@pytest.mark.slow
def test_a_condition_chooses_whole_persons_by_their_constants_and_records_by_the_rest(place: Path, capsys) -> None:
    settings = ["from=out/release", "synthesis.rows=100", "synthesis=independent"]
    days = ("2020-03-05", "2020-05-17")
    for name, where in (("men", "town: [A, C]"), ("both", f"day: ['{days[0]}', '{days[1]}']")):
        asked = f"{{sex: [m], {where}}}"
        assert "link " in reply(capsys, "synth", *settings, f"where={asked}", f"output={name}").err
        frame = pd.read_csv(f"{name}/release/synthetic.csv")
        check_persons(frame)
        assert len(frame) == 100
        assert (frame.sex == "m").all() and (name == "men" or frame.day.between(*days).all())
    men = pd.read_csv("men/release/synthetic.csv")
    assert men.town.isin(["A", "C"]).all() and men.groupby("patient").size().mean() > 2
    given = json.loads(Path("men/release/manifest.json").read_text())["given"]
    assert given["effective_rows"] == men.patient.nunique() and "whole synthetic persons" in given["rows"]
    assert command("verify", "from=men/release") == 0
    release = pipeline.load("out/release", synthesis="independent")
    frame = release.sample(where={"sex": "f", "town": "B"}, seed=5)
    assert (frame.sex == "f").all() and (frame.town == "B").all() and 100 < len(frame) < 1500
    real = pd.read_csv("stays.csv")
    whole = real[(real.sex == "f") & (real.town == "B")]
    assert abs(len(frame) / len(whole) - 1) < 0.3  # no number asked for: as many as there are
    assert len(release.sample(600, where={"town": "C"}, seed=5)) == 600  # more than one table has: more are made
    frame = release.sample(100, where={"ward": ["w03"]}, seed=5)
    assert len(frame) == 100 and (frame.ward == "w03").all()
    check_persons(frame)
    with pytest.raises(UserError, match="no value 'x'"):
        release.sample(9, where={"sex": "x"})
    asked = pd.DataFrame({"sex": ["f", "m", "f", "m", "m", "f"], "town": ["A", "A", "C", "B", "A", "A"]})
    frame = release.sample(asked, seed=5)  # one row for each: of unequal conditions no person is the same
    assert frame[["sex", "town"]].to_numpy().tolist() == asked.to_numpy().tolist()
    assert (frame.groupby("patient")[["sex", "town"]].nunique() == 1).all(axis=None)
    assert set(frame.patient) == {*range(1, frame.patient.nunique() + 1)} and frame.patient.nunique() >= 4


def test_linking_is_a_stage_of_its_own(made: Path) -> None:
    log = (made / "out/internal/run.log").read_text()
    assert "'link': " in log and log.index("'synthesize'") < log.index("'link'") < log.index("'release'")


def test_questions_about_persons_are_answered_from_what_was_counted_of_them(place: Path, capsys) -> None:
    persons = pd.read_csv("stays.csv").groupby("patient").agg(
        sex=("sex", "first"), town=("town", "first"), records=("day", "size"), first=("day", "min")
    )  # fmt: skip
    release = pipeline.load("out/release")
    counts = release.marginal(["town", "sex"], level="persons").set_index(["sex", "town"])
    real = persons.groupby(["sex", "town"]).size().reindex(counts.index)
    assert (abs(counts["count"] - real) < 5 * counts.standard_error).all()
    assert counts.standard_error.max() < 5  # of records, of which five count, it were five times as much
    clipped = [[n for n in c.attrs["notes"] if "clipping" in n] for c in (counts, release.count({"day": "2020-01-01"}))]
    assert not clipped[0] and len(clipped[1]) == 1, "a person counts once; of records, as many as clipping left"
    sizes = release.marginal(["records"], level="persons")
    real = persons.records.value_counts().sort_index().to_numpy()
    assert (abs(sizes["count"] - real) < 5 * sizes.standard_error).all()
    (few,) = release.count({"records": [1, 2], "sex": "f"}, level="persons")["count"]
    assert abs(few - ((persons.records <= 2) & (persons.sex == "f")).sum()) < 30
    mean = release.estimate("mean", "records", level="persons")
    assert "the largest number of records also stands for more" in "; ".join(mean.attrs["notes"])
    (mean,) = mean.estimate
    assert abs(mean - persons.records.mean()) < 0.1
    share = pipeline.estimate("out/release", "proportion", "town", value="A", by="sex", level="persons")
    assert ((share.low < 0.65) & (share.high > 0.55)).all()
    first = release.marginal(["first day"], level="persons")
    assert len(first) == 12 and abs(first["count"].sum() - len(persons)) < 60
    said = reply(capsys, "query", "from=out/release", "marginal=[town]", "level=persons")
    assert said.out.startswith("town,count,standard_error,low,high") and "counts of persons" in said.err


@pytest.mark.parametrize(
    ("asked", "where", "said"),
    [
        (["marginal=[town]"], "marginal", "level=persons, with constants and `records` alone; or count in the synth"),
        (["estimate=proportion", "column=town", "value=A"], "column", "level=persons"),
        (["marginal=[ward]", "level=persons"], "marginal", "no column 'ward' of persons"),
        (["marginal=[town,records]", "level=persons"], "marginal", "records × town over coarser values"),
        (["bounds=true", "level=persons"], "level", "level=records"),
        (["distances=true", "level=persons"], "level", "level=records"),
        (["marginal=[town]", "level=people"], "level", "persons"),
    ],
)
def test_questions_that_a_level_cannot_answer_name_the_way_out(made, capsys, monkeypatch, asked, where, said):
    monkeypatch.chdir(made)
    error = reply(capsys, "query", "from=out/release", *asked, code=1).err
    assert where in error and said in error


def joined(release: Path, form: str = "csv") -> pd.DataFrame:
    """Both tables of a release as one, after each was looked at."""
    read = pd.read_parquet if form == "parquet" else pd.read_csv
    records, persons = (read(release / f"{name}.{form}") for name in ("synthetic", "synthetic_persons"))
    assert [*persons.columns] == ["sex", "town", "patient"] and persons.patient.is_unique
    assert [*records.columns] == ["day", "ward", "cost", "patient"]
    assert {*persons.patient} == {*records.patient}
    return records.merge(persons, on="patient")[["sex", "town", "day", "ward", "cost", "patient"]]


@pytest.mark.slow
def test_two_tables_join_to_what_one_holds_and_are_read_back_as_it_is(place: Path, capsys) -> None:
    settings = ["from=out/release", "synthesis=independent", "synthesis.rows=600", "synthesis.seed=3"]
    assert command("synth", *settings, "output=one") == 0
    one, whole = Path("one/release"), pd.read_csv("one/release/synthetic.csv")
    for form in ("csv", "parquet"):
        assert command("synth", *settings, "release.tables=two", f"release.format={form}", f"output={form}") == 0
        two = Path(form, "release")
        capsys.readouterr()
        assert command("verify", f"from={two}") == 0, capsys.readouterr().out
        frame = joined(two, form)
        assert frame.astype({"day": str}).equals(whole.astype({"day": str}))
        assert departures(two) == []
        facts = json.loads((two / "croissant.json").read_text())
        assert [f["name"] for f in facts["distribution"]] == [f"synthetic.{form}", f"synthetic_persons.{form}"]
        assert facts["recordSet"][1]["key"] == {"@id": "persons/patient"}
        assert "two synthetic tables, of persons and of their records" in (two / "statement.html").read_text()
        release = pipeline.load(two)
        bounds, scores = release.bounds(), release.score("stays.csv", metrics=["tvd"]).to_json()["tvd"]
        assert command("score", "real=stays.csv", f"synthetic={two}/synthetic.{form}", "metrics=[tvd]",
                       "output=scores.json") == 0  # fmt: skip
        assert json.loads(Path("scores.json").read_text())["tvd"] == scores
        other = pipeline.load(one)
        assert bounds.equals(other.bounds()) and scores == other.score("stays.csv", metrics=["tvd"]).to_json()["tvd"]
    persons = Path("csv/release/synthetic_persons.csv")
    persons.write_text(persons.read_text().replace("\nf,", "\nm,", 1))
    assert "synthetic_persons.csv" in reply(capsys, "verify", "from=csv/release", code=1).out


def test_a_run_writes_two_tables_and_scores_both(place: Path) -> None:
    stays(150).to_csv("stays.csv", index=False)
    quick = ("selection=oneway", "evaluation.enabled=true", "evaluation.metrics=[tvd]", "privacy.epsilon=40")
    assert command("run", *RUN, *quick, "hydra.run.dir=new", "release.tables=two") == 0
    check_persons(joined(Path("new/release")))
    scores = json.loads(Path("new/internal/scores.json").read_text())
    assert scores["tvd"]["1-way"]["marginals"] == 5
    assert command("verify", "from=new/release") == 0


def test_two_tables_need_constants_and_are_refused_before_any_row_is_read(place: Path, capsys) -> None:
    for unit in (UNIT.replace("constant: [sex, town], ", ""), "leave_out: [patient]\n"):
        Path("stays.yaml").write_text(SCHEMA + unit)
        error = reply(capsys, "run", *RUN, "release.tables=two", "hydra.run.dir=new", code=1).err
        assert "release.tables" in error and "release.tables=joined" in error and not Path("new").exists()


@pytest.mark.slow
def test_times_follow_their_fine_answers_where_few_cells_hold_nearly_all(place: Path) -> None:
    """Exams of two months stood evenly in all twelve, since the mean of all fine cells lay within their noise."""
    quarters = SCHEMA.replace("bins: {count: 12}", "bins: {count: 4}, fine: 180")
    Path("stays.yaml").write_text(quarters + UNIT)
    frame, near = stays(), [f"2020-{month:02}-{day:02}" for month in (2, 8) for day in range(1, 15)]
    frame["day"] = np.random.default_rng(3).choice(near, len(frame))
    frame.to_csv("stays.csv", index=False)
    assert command("run", *RUN, "selection=oneway", "privacy.epsilon=3", "hydra.run.dir=fine") == 0
    days = pd.read_csv("fine/release/synthetic.csv", parse_dates=["day"]).day.dt
    assert (days.month.isin([2, 8]) & (days.day < 16)).mean() > 0.6, "evenly it would be a sixth"


@pytest.mark.slow
def test_constants_of_many_values_keep_those_that_persons_have(place: Path) -> None:
    """A thousand codes, of which three are held: noise in the others is taken for noise."""
    codes = ", ".join(f"z{i:03}" for i in range(1000))
    Path("stays.yaml").write_text(SCHEMA.replace("values: [A, B, C]", f"values: [{codes}]") + UNIT)
    frame = stays()
    frame["town"] = frame.town.map({"A": "z007", "B": "z500", "C": "z900"})
    frame.to_csv("stays.csv", index=False)
    assert command("run", *RUN, "privacy.epsilon=10", "hydra.run.dir=towns") == 0
    own = pd.read_csv("towns/release/synthetic.csv").groupby("patient").town.first().value_counts(normalize=True)
    assert own.reindex(["z007", "z500", "z900"]).fillna(0).sum() > 0.6


def test_few_persons_lie_at_the_far_bounds_of_a_constant() -> None:
    """Adults of 120 to 250 pounds between public bounds of 50 and 400, which wide bins at both ends take."""
    rng = np.random.default_rng(5)
    weights = np.repeat(np.clip(rng.normal(185, 20, 3000), 120, 250).round(), 2)
    frame = pd.DataFrame(
        {"who": np.repeat(np.arange(3000), 2), "weight": weights, "ward": rng.choice(["a", "b"], 6000)}
    )
    bins = {"edges": [50, 150, 160, 170, 180, 190, 200, 210, 220, 401]}
    columns = {
        "weight": {"kind": "integer", "bins": bins, "missing": False},
        "ward": {"kind": "categorical", "values": ["a", "b"]},
    }
    unit = {"column": "who", "constant": ["weight"], "records": {"max": 2}}
    schema = {"name": "n", "source": "made up", "confirmed_public": True, "columns": columns, "unit": unit}
    release = pipeline.fit(frame, schema, epsilon=10, delta=1e-6, seed=3, quiet=True)
    made = release.sample(seed=1).drop_duplicates("who")["weight"]
    assert (made < 110).mean() < 0.002 and (made > 260).mean() < 0.002
    assert made.std() == pytest.approx(weights.std(), rel=0.1)


def test_what_is_derived_is_asked_once(place: Path) -> None:
    rows = "".join(f"w{i:02},{'north' if i < 6 else 'south'}\n" for i in range(12))
    Path("sides.csv").write_text("ward,side\n" + rows)
    columns = SCHEMA + "  side: {kind: categorical, values: [north, south], missing: false}\n"
    Path("stays.yaml").write_text(columns + UNIT + "derive: {side: {from: ward, map: sides.csv}}\n")
    frame = pd.read_csv("stays.csv")
    frame["side"] = np.where(frame.ward < "w06", "north", "south")
    frame.to_csv("stays.csv", index=False)
    assert command("run", *RUN, "privacy.epsilon=40", "hydra.run.dir=sides") == 0
    assert not [e for e in statement_of("sides")["events"] if "side" in e["id"]]
    made = pd.read_csv("sides/release/synthetic.csv")
    assert ((made.ward < "w06") == (made.side == "north")).all()


DATE = """{kind: date, min: 1930-01-01, max: 2021-12-31, missing: false,
    bins: {edges: [1930-01-01, 1960-01-01, 1990-01-01, 2020-01-01, 2020-07-01, 2021-01-01, 2021-07-01, 2021-12-31]}}"""
RULED = f"""name: stays
source: invented for a test
confirmed_public: true
columns:
  sex: {{kind: categorical, values: [f, m], missing: false}}
  born: {DATE}
  admitted: {DATE}
  ward: {{kind: categorical, values: [surgery, maternity, urology], missing: false}}
unit: {{column: patient, constant: [sex, born], order: admitted, records: {{max: 4}}}}
ordered: [[born, admitted]]
impossible: [{{sex: m, ward: maternity}}, {{sex: f, ward: urology}}]
"""


def ruled_stays(persons: int = 300) -> pd.DataFrame:
    """Half of the persons were born in the years of the table; five rows break a rule."""
    rng, last = np.random.default_rng(7), pd.Timestamp("2021-12-31")
    most = np.where(rng.random(persons) < 0.5, 730, 30_000)
    sex, born = rng.choice(["f", "m"], persons), last - pd.to_timedelta(rng.integers(0, most), unit="D")
    who = np.repeat(np.arange(persons), rng.integers(1, 5, persons))
    start = np.maximum(born[who], pd.Timestamp("2020-01-01"))
    day = start + (last - start) * rng.random(who.size)
    ward = np.where(rng.random(who.size) < 0.3, np.where(sex[who] == "f", "maternity", "urology"), "surgery")
    ward[np.flatnonzero(sex[who] == "f")[:5]] = "urology"
    days = {name: d.strftime("%Y-%m-%d") for name, d in (("born", born[who]), ("admitted", day))}
    return pd.DataFrame({"patient": who, "sex": sex[who], **days, "ward": ward})


def check_rows(frame: pd.DataFrame, rows: int) -> None:
    """What holds of every table, whatever the noise is."""
    assert len(frame) >= rows
    assert not ((frame.sex + frame.ward).isin(["mmaternity", "furology"]) | (frame.born > frame.admitted)).any()
    each = frame.groupby("patient")
    assert (each[["sex", "born"]].nunique() == 1).all(axis=None)
    assert each.admitted.apply(lambda d: d.is_monotonic_increasing).all() and each.size().max() <= 4


def test_every_row_of_every_table_keeps_to_the_rules(folder, capsys):
    ruled_stays().to_csv("stays.csv", index=False)
    (folder / "stays.yaml").write_text(RULED)
    own, again = ["data.path=stays.csv", "data.schema=stays.yaml"], ["synth", "from=out/release"]
    again.append("synthesis=independent")
    further = ("selection=pairs", "synthesis=independent", "evaluation.enabled=false", "hydra.run.dir=out")
    assert command("run", "data=table", *own, *further, "privacy.epsilon=2", "privacy.delta=1e-6") == 0
    frame = pd.read_csv("out/release/synthetic.csv")
    check_rows(frame, 600)
    assert (frame.born >= "2020").mean() > 0.2 and {"maternity", "urology"} <= {*frame.ward}
    assert command(*again, "release.tables=two", "output=two") == 0
    persons, records = (pd.read_csv(f"two/release/{name}.csv") for name in ("synthetic_persons", "synthetic"))
    check_rows(records.merge(persons, on="patient", validate="many_to_one"), 600)
    for number, where in enumerate(("born: [2020-01-01, 2020-12-31]", "ward: urology")):
        assert command(*again, f"where={{{where}}}", f"output=w{number}") == 0
        check_rows(pd.read_csv(f"w{number}/release/synthetic.csv"), 20)
    capsys.readouterr()
    assert command("verify", "from=out/release") == 0 and command("check", *own) == 0
    said = capsys.readouterr().out
    assert "sound" in said and "impossible: sex × ward: 0.7 % of the rows break it (by their bins)" in said
