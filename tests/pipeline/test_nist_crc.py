"""NIST's Collaborative Research Cycle: each feature set is released and scored alone, and handed in with its labels."""

import csv
import hashlib
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from mechanisms.public.schema.table_schema import load_schema
from pipeline.conf_folder import SCHEMAS
from pipeline.experiments.nist_crc import WHERE, _exact, parts_of
from pipeline.settings.config import load_config
from tests.pipeline.conftest import command, reply

TWO = ["experiment.only=[industry,family]", "experiment.sets.industry=[PUMA,RAC1P]"]
TWO.append("experiment.sets.family=[AGEP,SEX,NPF,NOC]")
SMALL = [*TWO, "experiment.epsilons=[1]", "experiment.repeats=1", "experiment.floors=false", "synthesis=independent"]


CYCLE = ["experiment=nist_crc", "data.path=national2019.csv", *SMALL]


@pytest.fixture
def excerpt(folder):
    """300 people in the dictionary's values, in the place of NIST's file."""
    national, rng = load_schema(SCHEMAS / "national2019.yaml"), np.random.default_rng(0)
    texts = {n: rng.choice(np.array(national[n].values), 300) for n in ("PUMA", "RAC1P", "SEX")}
    family = rng.integers(2, 6, 300)
    texts |= {"NPF": np.where(rng.random(300) < 0.3, "N", family.astype(str)), "AGEP": rng.integers(0, 96, 300)}
    pd.DataFrame(texts | {"NOC": rng.integers(0, 2, 300)}).to_csv("national2019.csv", index=False)
    return folder


def made(*further: str) -> tuple[str, list[dict], Path]:
    assert command("run", *CYCLE, *further, "hydra.run.dir=out") == 0
    folder = Path("out/submission/deid_data/dp-synthesis-pipeline_auto/national")
    labels = [json.loads(p.read_text())["labels"] for p in sorted(folder.glob("*.json"))]
    return Path("out/submission/abstract.md").read_text(), labels, folder


def test_each_set_is_scored_by_itself_and_handed_in_with_its_labels(excerpt):
    abstract, labels, folder = made()
    facts = json.loads(Path("out/internal/experiment.json").read_text())
    assert [(r["dataset"], r["epsilon"]) for r in facts["rows"]] == [("industry", 1), ("family", 1)]
    tiny, family = facts["rows"]
    assert tiny["score"] is None and "no pairs" in tiny["reason"]
    assert 0 < family["score"] < 1000 and family["reported"] == 804, "beside the archive's entry of the same set"
    assert not any(WHERE in note for note in facts["notes"])
    of_family, of_tiny = labels
    assert of_tiny["features list"] == "PUMA, RAC1P" and of_tiny["feature set name"] == "industry-focused"
    assert of_family["feature set name"] == "family-focused" and of_family["target dataset"] == "national2019"
    assert (of_family["epsilon"], of_family["delta"], of_family["privacy category"]) == ("1", "2.2e-07", "dp")
    assert [_exact(e) for e in (1.0, 2.0000009, 1e-9)] == ["1", "2.0000009", "1e-09"], "no smaller number is claimed"
    data = (folder / "auto_e_1_family_1.csv").read_text()
    assert of_family["deid data id"] == hashlib.sha1(data.encode()).hexdigest()
    rows = list(csv.DictReader(data.splitlines()))
    assert {r["NPF"] for r in rows} > {"N"} and not any("" in r.values() for r in rows), "N is what is missing"
    told = [r for r in rows if "N" not in (r["NPF"], r["NOC"])]
    assert all(int(r["NOC"]) < int(r["NPF"]) for r in told), "a rule of the schema"
    assert "ε = 1, δ = 2.2e-07" in abstract and "NOT private" not in abstract
    assert str(family["score"])[:5] not in abstract, "scores saw the rows"


def test_the_report_of_two_files_has_sdnists_tables(excerpt, capsys):
    files = ["real=national2019.csv", "synthetic=national2019.csv", "schema=national2019", "report=report.html"]
    assert command("score", *files, "metrics=[sdnist_kmarginal]", "evaluation.area=PUMA") == 0
    assert json.loads(capsys.readouterr().out)["metrics"]["sdnist_kmarginal"]["score"] == 1000
    page = Path("report.html").read_text()
    section = page[page.index('id="sdnist"') :]
    for text in ("10% of the real rows", "Areas that lose most", "are unique in both by SEX"):
        assert text in section
    assert command("score", *files, "metrics=[tvd]") == 0
    assert 'id="sdnist"' not in Path("report.html").read_text()


def test_a_fixed_seed_is_labelled_as_not_private(excerpt):
    abstract, labels, _ = made("seed=3")
    assert {each["privacy category"] for each in labels} == {"non_dp"}
    assert all("NOT private: the noise seed is fixed" in each["privacy label detail"] for each in labels)
    assert "**NOT private: 2 of 2 tables.**" in abstract


def test_without_the_table_the_experiment_says_where_it_is_published(folder, capsys):
    assert command("run", "experiment=nist_crc", "smoke=true", *SMALL, "experiment.rows=300", "hydra.run.dir=out") == 0
    assert WHERE in capsys.readouterr().out
    facts = json.loads(Path("out/internal/experiment.json").read_text())
    assert any(WHERE in note for note in facts["notes"])
    labels = [json.loads(p.read_text())["labels"] for p in Path("out/submission").rglob("*.json")]
    assert {each["target dataset"] for each in labels} == {"generated rows, not national2019"}


def test_one_budget_holds_the_releases_of_all_sets_before_the_first_is_made(excerpt, capsys):
    shared = ["budget.ledger=people.json", "budget.limit={epsilon: 1.2, delta: 1e-6}", "budget.table=national"]
    assert "2 releases of ε = 2 in all" in reply(capsys, "run", *CYCLE, *shared, "hydra.run.dir=out", code=1).err
    assert not list(Path("out").glob("*/epsilon-1"))


def test_a_set_asks_for_no_column_that_it_lacks():
    parts = dict(parts_of(load_config(["experiment=nist_crc"])))
    assert list(parts) == ["demographic", "industry", "family", "simple", "all"]
    assert parts["demographic"].selection.options["important"] == []
    weights = {n: parts[n].selection.options["important_weight"] for n in ("industry", "family", "simple", "all")}
    assert weights == {"industry": 7, "family": 9, "simple": 19, "all": 22}, "in so many triples is a pair of the area"
    assert all(parts[n].selection.options["important"] == ["PUMA"] for n in weights)
    own = dict(parts_of(load_config(["experiment=nist_crc", "selection.important=[AGEP,SEX]"])))
    assert own["industry"].selection.options["important"] == ["SEX"]
    assert parts["demographic"].experiment.options["roles"] == {}
    assert parts["all"].experiment.options["roles"] == {"area": "PUMA"}
    assert {len(p.experiment.options["columns"]) for p in parts.values()} == {10, 9, 11, 21, 24}


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("experiment.only=[famly]", "did you mean 'family'"),
        ("experiment.sets.family=[PUMMA]", "did you mean 'PUMA'"),
        ("+experiment.submission.tema=us", "no such word 'tema'"),
    ],
)
def test_a_wrong_setting_is_named_with_a_way_out(override, said, excerpt, capsys):
    assert said in reply(capsys, "run", *CYCLE, override, "hydra.run.dir=out", code=1).err


def test_the_abstract_names_the_unit_that_the_releases_protect(excerpt):
    abstract, _, _ = made("privacy.unit=PUMA", "privacy.max_records=2")
    assert "each protects all records with the same value of 'PUMA' at" in abstract and "one record" not in abstract


def test_tables_that_the_submission_cannot_hold_are_refused_before_anything_is_spent(excerpt, capsys):
    assert "release.format" in reply(capsys, "run", *CYCLE, "release.format=parquet", "hydra.run.dir=out", code=1).err
    assert not Path("out").exists()
