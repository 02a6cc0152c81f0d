"""Persons are scored wherever both tables tell whose each row is: of two files, beside a release, and in a run."""

import json
import math
import re
import shutil
from html import unescape
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from mechanisms.public.tables.scan import Source
from pipeline.scores import scored_tables
from tests.pipeline.browser import CHROMIUM, browsed
from tests.pipeline.conftest import PAIRS, TOWN, command, people, rebound
from tests.pipeline.test_pages import HOSTILE, assert_is_text

#: Whole runs and scores.
pytestmark = pytest.mark.slow

VISITS = """
name: visits
source: invented for the tests
confirmed_public: true
columns:
  ward: {kind: categorical, values: [east, west, north], missing: false}
  day: {kind: date, min: 2024-01-01, max: 2025-12-31, bins: {count: 20}}
  pulse: {kind: integer, min: 40, max: 180, bins: {count: 14}}
leave_out: [patient]
"""
TABLES = ["real=visits.csv", "synthetic=made.csv", "schema=visits.yaml", "output=scores.json"]
WHOSE = ["evaluation.subject=patient", "evaluation.order=day"]


def visits(persons: int, seed: int) -> pd.DataFrame:
    """Visits of patients a week apart, mostly; each has a ward and a pulse of his own. Written patient by patient."""
    rng = np.random.default_rng(seed)
    patient = np.repeat(np.arange(persons), rng.integers(1, 7, persons))
    ward = rng.integers(0, 3, persons)[patient]
    pulse = (rng.normal(80, 12, persons)[patient] + rng.normal(0, 4, len(patient))).round().astype(int)
    week = pd.Series(rng.choice([7, 7, 7, 7, 14, 31], len(patient))).groupby(patient).cumsum()
    day = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 300, persons)[patient] + week, unit="D")
    names = np.array(["east", "west", "north"])[ward]
    return pd.DataFrame({"patient": patient + 7000, "ward": names, "day": day.dt.date, "pulse": pulse})


@pytest.fixture
def clinic(folder: Path) -> Path:
    visits(300, 1).sample(frac=1, random_state=1).to_csv("visits.csv", index=False)
    visits(280, 2).to_csv("made.csv", index=False)
    Path("visits.yaml").write_text(VISITS, encoding="utf-8")
    return folder


def scored(folder: Path) -> dict:
    return json.loads((folder / "scores.json").read_text())["metrics"]


def test_persons_join_the_quick_metrics_where_both_tables_tell_whose_each_row_is(clinic):
    own = ("evaluation.fixed=[ward]", "evaluation.most_records=6", "report=report.html")
    assert command("score", *TABLES, *WHOSE, *own) == 0
    assert "next record 7 later (of dates: days, of times: seconds)" in Path("report.html").read_text()
    found = scored(clinic)
    assert {"tvd", "anita_2way", "persons"} <= found.keys() and found["persons"]["score"] < 0.15
    assert found["persons"]["reading"]["label"] == "good"
    told = found["persons"]["details"]
    assert told["usual_gap"] == "7"  # days
    levels = {(each["figure"], each["column"]): each for each in told["levels"]}
    real = visits(300, 1)
    gaps = pd.to_datetime(real["day"]).groupby(real["patient"]).diff().dropna()
    assert levels["gaps", ""]["real"] == pytest.approx((gaps == pd.Timedelta(7, "D")).mean())
    same = levels["same", "ward"]
    assert same["real"] == same["synthetic"] == 1 and same["shuffled"] < 0.5
    assert levels["records", ""]["real"] == pytest.approx(real.groupby("patient").size().mean())
    whole = {"nobody": 0, "apart": 0, "out_of_order": 0, "varying": {"ward": 0.0}, "beyond": 0}
    assert told["violations"]["synthetic"] == whole and told["violations"]["real"]["apart"] > 100


def test_without_an_id_in_the_synthetic_table_the_metric_says_so_where_it_was_asked_for_and_else_nothing(clinic):
    visits(280, 2).drop(columns="patient").to_csv("made.csv", index=False)
    assert command("score", *TABLES, *WHOSE) == 0
    assert "persons" not in scored(clinic)
    assert command("score", *TABLES, *WHOSE, "metrics=[persons,tvd]", "report=page.html") == 0
    assert "synthetic table has no column 'patient'" in scored(clinic)["persons"]["reason"]
    assert 'id="persons"' not in Path("page.html").read_text()


def section(page: str) -> str:
    return page.split('<section id="persons">')[1].split("</section>")[0]


def test_the_page_shows_figures_beside_shuffled_owners_and_a_dozen_whole_synthetic_persons(clinic):
    made = visits(280, 2).assign(pulse=lambda t: t["pulse"].clip(41, 178))
    made.to_csv("made.csv", index=False)
    assert command("score", *TABLES, *WHOSE, "metrics=persons", "report=page.html") == 0
    page = Path("page.html").read_text()
    drawn = section(page)
    heads = re.findall(r"<th[^>]*>(.*?)</th>", drawn)
    assert heads[:5] == ["", "real", "synthetic", "other half", "owners shuffled"]
    assert "next record 7 later" in drawn and "pulse: share of variance between persons" in drawn
    assert drawn.count("<svg") == 2
    shown = re.findall(r"<h3>Person \d+</h3>.*?</table>", drawn, re.DOTALL)
    by_patient = made.drop(columns="patient").astype(str).groupby(made["patient"])
    own = {tuple(map(tuple, rows.to_numpy().tolist())) for _, rows in by_patient}
    assert len(shown) == 12
    for person in shown:
        lines = [re.findall(r"<td[^>]*>(.*?)</td>", row) for row in re.findall(r"<tr>(.*?)</tr>", person)[1:]]
        assert tuple(map(tuple, lines)) in own
    assert "7000" not in drawn  # no id of either table
    if CHROMIUM:
        assert browsed([page], clinic)


def test_hostile_values_are_text_among_whole_persons(clinic):
    for name, seed in (("visits.csv", 1), ("made.csv", 2)):
        visits(50, seed).assign(ward=HOSTILE).rename(columns={"ward": HOSTILE}).to_csv(name, index=False)
    given = [*TABLES[:2], "schema=none", "output=scores.json", *WHOSE, "metrics=persons", "report=page.html"]
    assert command("score", *given) == 0
    drawn = section(Path("page.html").read_text())
    assert_is_text(drawn, times=12)
    assert unescape(drawn).count(f"<td>{HOSTILE}</td>") >= 12


def with_ids(path: Path, target: Path) -> None:
    """A table whose rows belong to persons of three records each."""
    table = pd.read_csv(path)
    table.insert(0, "person", [f"s{i // 3}" for i in range(len(table))])
    table.to_csv(target, index=False)


def test_a_release_tells_by_its_statement_which_column_is_the_persons(one_run, town):
    shutil.copytree(one_run / "release", town / "release")
    with_ids(one_run / "release" / "synthetic.csv", town / "release" / "synthetic.csv")
    rebound(town / "release")
    given = ["real=town.csv", "synthetic=release/synthetic.csv", "schema=town.yaml", "output=scores.json"]
    assert command("score", *given) == 0
    found = scored(town)["persons"]
    assert found["details"]["persons"]["real"] == people(600)["person"].nunique()
    rows = len(pd.read_csv(town / "release" / "synthetic.csv"))
    assert found["details"]["levels"][0]["synthetic"] == pytest.approx(rows / math.ceil(rows / 3))
    shutil.copy(one_run / "release" / "synthetic.csv", town / "release")
    rebound(town / "release")
    assert command("score", *given) == 0
    assert "persons" not in scored(town)


@pytest.mark.parametrize("holdout", [[], ["evaluation.holdout=0.3"]])
def test_a_run_whose_release_has_the_ids_scores_persons_of_the_rows_that_were_not_set_aside(town, monkeypatch, holdout):
    opened = scored_tables.open_released

    def open_with_ids(path: Path, *settings: object) -> Source:
        with_ids(path, town / "with_ids.csv")
        return opened(town / "with_ids.csv", *settings)

    unit = ["privacy.unit=person", "privacy.max_records=4", *holdout]
    assert command("run", *TOWN, *PAIRS, *unit, "hydra.run.dir=bare") == 0
    assert "persons" not in json.loads(Path("bare/internal/scores.json").read_text())["metrics"]
    monkeypatch.setattr(scored_tables, "open_released", open_with_ids)
    assert command("run", *TOWN, *PAIRS, *unit, "hydra.run.dir=out") == 0
    scores = json.loads(Path("out/internal/scores.json").read_text())
    found = scores["metrics"]["persons"]["details"]
    assert found["records"]["real"] == scores["rows"]["real"] < (600 if holdout else 601)
    assert found["violations"]["synthetic"]["nobody"] == 0
    assert 'id="persons"' in Path("out/internal/report.html").read_text()


def test_a_value_outside_the_schema_leaves_a_run_the_order_of_its_persons(clinic):
    """Gaps and spans were no part of the score, and real records stood as in the file, where one pulse was too high."""
    table = pd.read_csv("visits.csv")
    table.loc[0, "pulse"] = 999
    table.to_csv("visits.csv", index=False)
    unit = "unit: {column: patient, constant: [ward], order: day, records: {max: 6}}\n"
    Path("visits.yaml").write_text(VISITS.replace("leave_out: [patient]\n", unit), encoding="utf-8")
    own = ("data=table", "data.path=visits.csv", "data.schema=visits.yaml", "selection=oneway", "synthesis=independent")
    assert command("run", *own, "evaluation.metrics=[persons]", "hydra.run.dir=out") == 0
    details = json.loads(Path("out/internal/scores.json").read_text())["metrics"]["persons"]["details"]
    assert details["usual_gap"] == "7"
