"""Runs with declared steps, zeros, unit ids, rules of a draft and computed columns: every synthesizer keeps to them."""

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml

import pipeline
from mechanisms.public.domain import Attribute, Domain
from mechanisms.public.errors import UserError
from mechanisms.public.queries.query_matrices import Identity
from mechanisms.public.release import Measurements, NoisyMarginal
from mechanisms.public.release_files import check_readable, load_measurements
from mechanisms.public.rules.fine_columns import with_fine_columns
from mechanisms.public.schema.table_schema import load_schema, parse_schema
from mechanisms.public.tables.losses import percent
from pipeline.release_folder import read_release
from pipeline.settings.build import build_schema, build_workload
from pipeline.settings.config import load_config
from pipeline.settings.specs import build_specs
from pipeline.stages import run
from synthesis.persons.person_sizes import records_shares, with_records
from tests.pipeline.conftest import PAIRS, SCHEMA, TOWN, command, done_in, edit, people, reply, statement_of, worded
from tests.public.table_worlds import loosened

RULES = """\
  trade: {kind: categorical, values: [food, metal, paper], other: none}
  street: {kind: categorical, size: 30, one_way_only: true}
derive:
  trade: {from: job, map: trades.csv, conflict: mapping}
recode:
  who: {columns: [sex, job], combinations: all}
impossible:
  - {sex: f, job: clerk}
  - {age: {min: 30}, job: baker}
unit_id: {name: person, records: {2: 0.5, 4: 0.5}, same: [sex], order_by: [age]}
"""
UNSCORED = ["evaluation.enabled=false"]
TRADES = {"baker": "food", "smith": "metal", "clerk": "paper"}


@pytest.fixture
def street(town: Path) -> Path:
    """The town with a trade that follows from the job, a street, and rules."""
    frame = people(600).assign(trade=lambda t: t.job.map(TRADES), street=np.arange(600) % 30)
    frame.to_csv(town / "town.csv", index=False)
    (town / "trades.csv").write_text("job,trade\n" + "".join(f"{a},{b}\n" for a, b in TRADES.items()))
    edit(town / "town.yaml", "bins: {count: 10}", "bins: {count: 10}, joint_bins: {starts: [0, 3, 6]}")
    edit(town / "town.yaml", "leave_out", f"{RULES}leave_out")
    return town


def keeps_to_the_rules(frame: pd.DataFrame) -> None:
    assert ((frame.job.map(TRADES) == frame.trade) | ~frame.job.isin(TRADES)).all()
    assert not ((frame.sex == "f") & (frame.job == "clerk")).any()
    assert not ((frame.age >= 30) & (frame.job == "baker")).any()
    assert (frame.groupby("person").sex.nunique() == 1).all()
    assert frame.groupby("person").age.apply(lambda ages: ages.is_monotonic_increasing).all()
    assert frame.person.value_counts().max() <= 4


@pytest.mark.parametrize("synthesis", ["gum", "pgm", "independent"])
def test_every_synthesizer_keeps_to_the_rules_and_so_does_a_new_table(street, synthesis):
    assert command("run", *TOWN, *UNSCORED, f"synthesis={synthesis}", "hydra.run.dir=out", "privacy.epsilon=5") == 0
    frame = pd.read_csv("out/release/synthetic.csv")
    assert sorted(frame.columns) == ["age", "job", "person", "sex", "street", "trade"] and len(frame) > 300
    keeps_to_the_rules(frame)
    (street / "town.yaml").unlink()
    (street / "trades.csv").unlink()
    assert command("synth", "from=out/release", "output=more", f"synthesis={synthesis}", "synthesis.rows=200") == 0
    more = pd.read_csv("more/release/synthetic.csv")
    assert len(more) == 200
    keeps_to_the_rules(more)


OWN = {"adagrid": ["selection.targets=[]"], "aim": ["selection.k=[2]"]}
OWN |= {name: ["selection.public=public.csv"] for name in ("public", "groups")}


@pytest.mark.some(3)
@pytest.mark.parametrize("selection", ["mst", "mwem", "aim", "adagrid", "priview", "public", "groups"])
def test_every_selection_measures_what_the_steps_leave(street, selection):
    pd.read_csv("town.csv").iloc[:-1].to_csv("public.csv", index=False)  # the table itself is refused
    settings = [f"selection={selection}", *OWN.get(selection, []), "privacy.delta=1e-6", "privacy.epsilon=5"]
    made = run(load_config([*TOWN, *UNSCORED, "synthesis=pgm", *settings]), "out", quiet=True)
    cliques = {a.clique for a in made.measurements.answers}
    assert selection == "aim" or any("who" in c and len(c) > 1 for c in cliques)
    assert {c for c in cliques if "street" in c} == {("street",)}
    keeps_to_the_rules(pd.read_csv(made.table))


def test_only_the_one_way_marginal_of_a_lonely_column_is_measured(street):
    done = run(load_config([*TOWN, "privacy.epsilon=5"]), street / "out", quiet=True)
    cliques = [a.clique for a in done.measurements.answers]
    assert ("street",) in cliques and ("age (fine)",) in cliques and ("age", "who") in cliques
    assert not any("trade" in c or "job" in c for c in cliques)
    assert all(len(c) == 1 for c in cliques if "street" in c or "age (fine)" in c)
    assert done.scores is not None and load_schema(done.folder.release / "schema.yaml").measured.names == (
        "age", "age (fine)", "who", "street",
    )  # fmt: skip


def test_rows_that_contradict_a_rule_are_counted_for_the_operator_and_the_rule_wins(street, capsys):
    frame = pd.read_csv("town.csv")
    frame.loc[:4, "trade"] = "paper" if frame.job[0] != "clerk" else "food"
    wrong = int((frame.job.map(TRADES) != frame.trade).sum())
    frame.to_csv("town.csv", index=False)
    assert command("run", *TOWN, *UNSCORED, "console=always", "hydra.run.dir=out") == 0
    assert f"derive 'trade': {wrong} of 600 rows contradict it" in capsys.readouterr().err
    assert "contradict" not in "".join(p.read_text() for p in Path("out/release").rglob("*.[jy]*"))
    keeps_to_the_rules(pd.read_csv("out/release/synthetic.csv"))


def test_a_rule_that_refuses_stops_the_run_and_the_statement_says_that_it_could(street, capsys):
    edit(street / "town.yaml", "mapping", "refuse")
    assert command("run", *TOWN, *UNSCORED, "hydra.run.dir=good") == 0
    assert any("derive 'trade' refuses rows" in stop for stop in worded(Path("good/release"))["outside"])
    frame = pd.read_csv("town.csv")
    frame.loc[3, "trade"] = "paper" if frame.job[3] != "clerk" else "food"
    frame.to_csv("town.csv", index=False)
    said = reply(capsys, "run", *TOWN, "hydra.run.dir=out", code=1).err
    assert "derive 'trade': a row contradicts the rule" in said and "fix: " in said
    assert not Path("out/release").exists()


@pytest.fixture
def mapped(street: Path) -> Path:
    """The trade follows from the job with few exceptions, and no public document says how."""
    frame = pd.read_csv("town.csv")
    frame.loc[:19, "trade"] = "food"
    frame.to_csv("town.csv", index=False)
    text = (street / "town.yaml").read_text()
    rules = "recode:\n  who: {columns: [sex, job], combinations: all}\n"
    derive = "derive:\n  trade: {from: job, map: trades.csv, conflict: mapping}\n"
    assert rules in text and derive in text
    (street / "town.yaml").write_text(text.replace(rules, "").replace(derive, "mapped:\n  trade: {from: job}\n"))
    return street


@pytest.mark.parametrize("selection", ["pairs", "indif", "mst"])
def test_a_mapping_is_measured_with_noise_charged_and_fills_the_column(mapped, selection):
    settings = [f"selection={selection}", "synthesis=gum", "privacy.delta=1e-6", "privacy.epsilon=5"]
    done = run(load_config([*TOWN, *settings, "evaluation.enabled=false"]), mapped / "out", quiet=True)
    with_trade = {a.clique for a in done.measurements.answers if "trade" in a.clique}
    assert with_trade == {("job", "trade")}
    assert 0.99 < done.statement.spent["epsilon"] / 5 <= 1
    frame = pd.read_csv(done.table)
    assert len(frame) > 300 and ((frame.job.map(TRADES) == frame.trade) | ~frame.job.isin(TRADES)).all()
    assert load_schema(done.folder.release / "schema.yaml").rules.mapped[0].source == "job"
    assert command("synth", "from=out/release", "output=more", "synthesis=gum", "synthesis.rows=200") == 0
    more = pd.read_csv("more/release/synthetic.csv")
    assert ((more.job.map(TRADES) == more.trade) | ~more.job.isin(TRADES)).all()


def test_a_model_without_room_for_all_pairs_keeps_the_mapping_or_refuses(mapped):
    config = load_config([*TOWN, "synthesis=pgm", "selection.k=[2]"])
    schema = build_schema(build_specs(config))
    for cells in range(60, 400, 10):
        config.synthesis.options["max_cells"] = cells
        try:
            kept = build_workload(build_specs(config), schema)
        except UserError as error:
            assert error.where == "synthesis.max_cells"
        else:
            assert ("job", "trade") in kept.cliques


@pytest.mark.parametrize("synthesis", ["gum", "pgm", "independent"])
def test_low_counts_are_merged_after_the_one_way_marginals_and_come_back(town, synthesis):
    settings = ["selection=pairs", "selection.merge=4.5", "selection.floor=100", f"synthesis={synthesis}"]
    config = load_config([*TOWN, *UNSCORED, *settings, "privacy.delta=1e-6", "privacy.epsilon=20"])
    done = run(config, town / "out", quiet=True)
    sizes = {a.clique: a.query.rows for a in done.measurements.answers}
    assert sizes[("age",)] == 10 and sizes[("age", "sex")] == 2  # each age group has about 60 people: all are merged
    assert list(map(len, sizes)) == [1, 1, 1, 2, 2, 2]
    frame = pd.read_csv(done.table)
    assert sorted(set(frame.age // 10)) == list(range(10))
    assert 0.999 < done.statement.spent["epsilon"] / 20 <= 1


def broken(rows: pd.DataFrame) -> dict[str, float]:
    """Of which share of the rows each relation fails; a town that is not listed may lie in any county."""
    listed = rows[rows["town"] != "Other"]
    return {
        "county": float((listed["county"] != "k" + (listed["town"].str[1:].astype(int) % 8).astype(str)).mean()),
        "name": float((rows["name"] != "n" + rows["code"].astype(str)).mean()),
        "years": float((rows["end_year"] < rows["start_year"]).mean()),
    }


@pytest.mark.parametrize("taken", [False, True])
def test_rules_that_a_draft_proposes_keep_impossible_pairs_out_of_the_rows(folder, taken):
    rng = np.random.default_rng(5)
    town, code, start = rng.integers(0, 40, 3_000), rng.integers(0, 12, 3_000), rng.integers(1950, 2000, 3_000)
    town = np.where(rng.random(3_000) < 0.03, rng.integers(40, 100, 3_000), town)  # of these fewer than 10 rows each
    years = {"start_year": start, "end_year": start + rng.integers(0, 20, 3_000)}
    named = {"town": [f"t{t}" for t in town], "county": [f"k{t % 8}" for t in town]}
    frame = pd.DataFrame({**named, "code": code, "name": [f"n{c}" for c in code], **years})
    frame.to_csv("table.csv", index=False)
    assert broken(frame) == {"county": 0, "name": 0, "years": 0}
    assert command("schema", "table.csv", "output=own.yaml") == 0
    text = (folder / "own.yaml").read_text(encoding="utf-8")
    (folder / "own.yaml").write_text(loosened(text) if taken else text, encoding="utf-8")
    own = ["data=table", "data.path=table.csv", "data.schema=own.yaml", "evaluation.enabled=false"]
    own += ["privacy.epsilon=1", "privacy.unit=record", "privacy.noise_seed=1", "hydra.run.dir=out"]
    assert command("run", *own) == 0
    found = broken(pd.read_csv("out/release/synthetic.csv"))
    assert all(share == 0 if taken else share > 0.02 for share in found.values()), found


UNIT = "unit_id: {name: person, records: measured, same: [sex], order_by: [age]}\n"
PERSON = ["privacy.unit=person", "privacy.max_records=6", "privacy.epsilon=20", "privacy.delta=1e-6"]


@pytest.fixture
def flats(town: Path) -> Path:
    """600 rows: 60 persons with 4 records each, 180 with 2; the schema asks for their numbers."""
    frame = pd.read_csv("town.csv")
    frame["person"] = [f"a{i // 4}" for i in range(240)] + [f"b{i // 2}" for i in range(360)]
    frame.to_csv("town.csv", index=False)
    (town / "town.yaml").write_text(SCHEMA + UNIT)
    return town


@pytest.mark.parametrize("selection", [["selection=pairs"], ["selection=mst"]])
def test_synthetic_units_have_as_many_records_as_the_noisy_histogram_says(flats, selection):
    settings = [*TOWN, *PERSON, *selection, "synthesis=independent"]
    assert command("run", *settings, "hydra.run.dir=out") == 0
    frame = pd.read_csv("out/release/synthetic.csv")
    sizes = frame.person.value_counts().value_counts(normalize=True)
    assert frame.person.value_counts().max() <= 6
    assert abs(sizes[2] - 0.75) < 0.1 and abs(sizes[4] - 0.25) < 0.1
    assert (frame.groupby("person").sex.nunique() == 1).all()
    statement = statement_of("out")
    charge = next(e for e in statement["events"] if e["id"] == "units:person")
    assert charge["sensitivity"] == 1.0 and charge["share"] == 0.05 and charge["answered"]
    assert statement["private"] and 0.999 < statement["spent"]["epsilon"] / 20 <= 1
    assert "measured" in Path("out/release/schema.yaml").read_text()
    (flats / "town.yaml").unlink()
    assert command("synth", "from=out/release", "output=more", "synthesis.rows=300", "synthesis=independent") == 0
    assert abs(pd.read_csv("more/release/synthetic.csv").person.value_counts().mean() - 2.4) < 0.4


def test_jobs_of_a_sweep_share_the_counted_units(flats):
    values = ["privacy.unit_id_share=0.1,0.5", "synthesis=independent", "evaluation.enabled=false"]
    assert command("run", "-m", *TOWN, *PERSON, *values, "hydra.sweep.dir=many", "hydra/launcher=basic") == 0
    jobs = sorted(Path("many").glob("*/release"))
    assert len(jobs) == 2
    scales = [load_measurements(j / "measurements").histogram.scale for j in jobs]
    assert scales[0] > 1.5 * scales[1]
    assert all("person" in pd.read_csv(j / "synthetic.csv").columns for j in jobs)


def test_plan_shows_the_histogram_and_its_noise_before_a_row_is_read(flats, capsys):
    (flats / "town.csv").unlink()
    said = reply(capsys, "plan", *TOWN, *PERSON, "privacy.neighbouring=replace", "privacy.accountant=zcdp").out
    line = next(x for x in said.splitlines() if "records per person" in x)
    assert "1.41421 (L2)" in line or "2 (L1)" in line
    assert "5 %" in line


def test_a_histogram_of_noise_is_made_non_negative_and_one_without_units_makes_every_row_its_own(town):
    def noisy(values: list[float]) -> NoisyMarginal:
        return NoisyMarginal(("records per id",), Identity(len(values)), np.array(values), "gaussian", 1.0, "units:id")

    assert records_shares(noisy([6.0, -2.0, 3.0])) == ((1, 5 / 7), (3, 2 / 7))
    assert records_shares(noisy([-1.0, -2.0])) == ((1, 1.0),)
    (town / "town.yaml").write_text(SCHEMA + UNIT)
    schema = load_schema(town / "town.yaml")
    lost = Measurements(Domain((Attribute("age", 2),)), ())
    assert with_records(schema, lost) is schema


STAYS = """
name: stays
confirmed_public: true
columns:
  ward: {kind: categorical, values: [icu, surgery], missing: false}
  admitted: {kind: date, min: 2024-01-01, max: 2024-12-31, bins: month, missing: false}
  nights: {kind: integer, min: 0, max: 30, bins: {count: 6}}
  discharged: {kind: date, min: 2024-01-01, max: 2025-01-31, bins: month}
  hours: {kind: integer, min: 0, max: 720}
derive: {discharged: {expression: admitted + nights}, hours: {expression: 24 * nights}}
"""
SETTINGS = ["data=table", "data.path=stays.csv", "data.schema=stays.yaml"]


def whole_stays(rows: int = 300) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    admitted = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 366, rows), unit="D")
    nights = rng.integers(0, 31, rows)
    ward = np.where(nights > 9, "icu", "surgery")
    left = admitted + pd.to_timedelta(nights, unit="D")
    return pd.DataFrame(
        {"ward": ward, "admitted": admitted, "nights": nights, "discharged": left, "hours": 24 * nights}
    )


def kept(table: pd.DataFrame) -> bool:
    days = (pd.to_datetime(table.discharged) - pd.to_datetime(table.admitted)).dt.days
    return bool((days.fillna(-1) == table.nights.fillna(-1)).all())


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Path:
    computed = tmp_path_factory.mktemp("stays")
    table = whole_stays()
    table.loc[:59, "discharged"] = pd.Timestamp("2024-12-31")
    table.to_csv(computed / "stays.csv", index=False)
    (computed / "stays.yaml").write_text(STAYS.replace("720", "240"), encoding="utf-8")
    own = ["privacy.epsilon=5", "evaluation.metrics=[anita_1way]", "hydra.run.dir=out"]
    return done_in(computed, "run", *SETTINGS, *PAIRS, *own)


@pytest.fixture
def computed(done: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(done)
    return done


@pytest.mark.slow
def test_the_release_keeps_to_the_rule_nothing_of_the_column_was_measured_and_scores_know_its_values(computed) -> None:
    assert kept(pd.read_csv("out/release/synthetic.csv"))
    _, _, measurements = read_release(Path("out/release"))
    assert not any("discharged" in a.clique for a in measurements.answers)
    assert command("verify", "from=out/release") == 0
    numbers = {n["column"]: n for n in json.loads(Path("out/internal/scores.json").read_text())["numbers"]}
    assert numbers["discharged"]["synthetic"]["mean"] > numbers["admitted"]["synthetic"]["mean"]
    assert "discharged" in Path("out/internal/figures.json").read_text()


def test_a_run_says_in_how_many_synthetic_rows_bounds_clip_a_computed_value(computed) -> None:
    share = (pd.read_csv("out/release/synthetic.csv").nights > 10).mean()
    clipped = f"warning: derive 'hours': in {percent(share)} of the synthetic rows it lies beyond"
    assert clipped in Path("out/internal/run.log").read_text() and 0.2 < share < 0.9


@pytest.mark.parametrize("engine", ["duckdb", pytest.param("spark", marks=pytest.mark.slow)])
def test_a_release_keeps_how_long_stays_were_where_no_column_of_the_table_says_so(
    engine, tmp_path, monkeypatch, capsys
):
    """Two days in bins of a month each lost it; questions and conditions name the length."""
    monkeypatch.chdir(tmp_path)
    table = whole_stays(900)
    table.drop(columns="nights").to_csv("stays.csv", index=False)
    lines = [line for line in STAYS.splitlines() if "nights" not in line and "hours" not in line]
    rule = "derive: {discharged: {from: admitted, length: {max: 30, bins: {count: 6}}}}"
    Path("stays.yaml").write_text("\n".join([*lines, rule]), encoding="utf-8")
    own = ["privacy.epsilon=20", f"engine={engine}", "evaluation.enabled=false", "hydra.run.dir=out"]
    assert command("run", *SETTINGS, *PAIRS, *own) == 0 and command("verify", "from=out/release") == 0
    made = pd.read_csv("out/release/synthetic.csv", parse_dates=["admitted", "discharged"])
    days = (made.discharged - made.admitted).dt.days
    assert list(made) == ["ward", "admitted", "discharged"] and days.between(0, 30).all()
    assert days.mean() == pytest.approx(table.nights.mean(), abs=1.5)
    assert days[made.ward == "icu"].mean() > 2 * days[made.ward == "surgery"].mean()
    said = reply(capsys, "query", "from=out/release", "where={discharged_length: [10, 30]}").out
    count = float(re.search(r'^"\[10, 30\]",([0-9.]+)', said, re.MULTILINE)[1])
    assert count == pytest.approx((table.nights >= 10).sum(), rel=0.1)
    asked = reply(capsys, "query", "from=out/release", "estimate=mean", "column=discharged_length")
    assert "discharged_length is in days\n" in asked.err, "a mean of 1,327,990 without a unit"
    assert command("synth", "from=out/release", "rows=50", "where={discharged_length: [10, 30]}", "output=more") == 0
    more = pd.read_csv("more/release/synthetic.csv", parse_dates=["admitted", "discharged"])
    assert (more.discharged - more.admitted).dt.days.between(10, 30).all()


@pytest.mark.parametrize("length", ["{max: 30, bins: {count: 6}}", "{max: 90000, bins: {count: 9}, unit: seconds}"])
def test_a_release_is_read_with_the_fine_cells_of_a_length(length):
    """The schema of a run under default settings lost them: its release could not be read after all was spent."""
    fields = yaml.safe_load(STAYS.replace("kind: date,", "kind: datetime,"))
    fields["derive"] = {"discharged": {"from": "admitted", "length": yaml.safe_load(length)}}
    ran = with_fine_columns(parse_schema(fields, where="stays"), 256)
    assert "discharged_length (fine)" in ran.measured
    check_readable(ran)


def test_a_column_with_as_many_bins_as_joint_bins_has_one_fine_column():
    """Where a run discovered so many bins, it ended with two columns of one name after it was charged."""
    charge = {"kind": "float", "min": 0, "max": 10, "bins": {"count": 2}, "joint_bins": {"count": 2}}
    ran = with_fine_columns(parse_schema({"columns": {"charge": charge}}, where="charges"), 256)
    assert ran.measured.names == ("charge", "charge (fine)")
    check_readable(ran)
    with pytest.raises(UserError, match="both joint_bins and fine"):
        parse_schema({"columns": {"charge": charge | {"fine": 50}}}, where="charges")


@pytest.mark.parametrize("column", ["kind: integer", "kind: float, bins: {count: 4}", "kind: float, bins: discover"])
def test_the_assumed_bins_of_a_wide_range_to_be_discovered_are_not_cut(column):
    """The schema as written says nothing of them: under default settings, every such run ended with a fault."""
    fields = {"columns": {"charge": yaml.safe_load(f"{{{column}, bounds: discover}}")}}
    check_readable(with_fine_columns(parse_schema(fields, where="charges"), 256))


@pytest.mark.slow
def test_check_counts_the_rows_that_break_it(computed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = reply(capsys, "check", *SETTINGS[1:]).out
    assert "derive 'discharged': " in said and "of the rows hold another value than it says" in said
    share = percent((24 * whole_stays().nights > 240).mean())
    assert re.search(rf"^hours +integer +loses {share}", said, re.M) and said.endswith("run goes on\n"), "as it does"


def test_new_rows_keep_to_it_and_a_condition_on_it_is_refused(computed, capsys):
    assert command("synth", "from=out/release", "rows=40", "where={ward: icu}", "output=more") == 0
    assert kept(pd.read_csv("more/release/synthetic.csv"))
    assert command("synth", "from=out/release", "where={discharged: '2024-02-01'}", "output=none") == 1
    assert "conditions on admitted, nights" in capsys.readouterr().err
    assert command("query", "from=out/release", "marginal=[discharged]") == 1
    assert "ask about the columns that it is made from: admitted, nights" in capsys.readouterr().err


def test_frames_go_in_and_come_out(computed: Path) -> None:
    settings = {"epsilon": 5, "quiet": True, "selection": "oneway"}
    release = pipeline.fit(whole_stays(), "stays.yaml", **settings)
    release.save("saved")
    for own in (release, pipeline.load("saved")):
        made = own.sample(60)
        assert len(made) == 60 and kept(made) and list(made) == list(whole_stays())
        with pytest.raises(UserError, match="computed after rows are drawn"):
            own.sample(5, where={"discharged": "2024-02-01"})


def test_a_rehearsal_keeps_to_it(computed: Path) -> None:
    own = ["plan.rows=50", "evaluation.enabled=false", "hydra.run.dir=again"]
    assert command("rehearse", SETTINGS[0], SETTINGS[2], *PAIRS, *own) == 0
    assert kept(pd.read_csv("again/rehearsal.csv"))
