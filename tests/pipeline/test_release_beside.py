"""The release beside a table that is scored, and releases in formats of one entry."""

from __future__ import annotations

import importlib
import json
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import pipeline
from evaluation.attacks.promise_bounds import AttackPromise
from mechanisms.public.tables.formats import CSV, FORMATS
from pipeline.scores.release_beside import release_beside
from tests.pipeline.conftest import PAIRS, TOWN, command, done_in, people, rebound, statement_of, write_town
from tests.pipeline.formats import departures

ATTACK = ["metrics=[membership_inference]", "evaluation.attacks=60"]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs of the town without a holdout's persons, whose unit is a person, and a record."""
    folder = write_town(tmp_path_factory.mktemp("made"))
    whole = people(900)
    aside = np.random.default_rng(5).random(300)[whole["person"].str[1:].astype(int)] < 0.3
    whole[~aside].to_csv(folder / "town.csv", index=False)
    whole[aside].to_csv(folder / "held.csv", index=False)
    own = ["selection=pairs", "synthesis=independent", "evaluation.enabled=false"]
    unit = ["privacy.unit=person", "privacy.max_records=4"]
    done_in(folder, "run", *TOWN, *own, *unit, "hydra.run.dir=persons")
    return done_in(folder, "run", *TOWN, *own, "seed=1", "hydra.run.dir=seeded")


def scored(folder: Path, synthetic: Path, *more: str, capsys: pytest.CaptureFixture[str]) -> tuple[dict, str]:
    output = synthetic.parent.parent / "scores.json"
    given = [f"real={folder / 'town.csv'}", f"holdout={folder / 'held.csv'}", f"schema={folder / 'town.yaml'}"]
    capsys.readouterr()
    assert command("score", *given, f"synthetic={synthetic}", f"output={output}", *ATTACK, *more) == 0
    return json.loads(output.read_text()), capsys.readouterr().out


def test_the_statement_beside_a_table_is_said_and_bounds_the_attack_on_its_unit(made, capsys):
    scores, lines = scored(made, made / "persons" / "release" / "synthetic.csv", capsys=capsys)
    said = statement_of(made / "persons")
    assert scores["release"]["private"] and scores["release"]["epsilon"] == said["guarantee"]["epsilon"]
    assert "says private: ε = 1" in scores["first"][0] and "'person' (add_remove)" in lines
    attack = scores["metrics"]["membership_inference"]["details"]
    assert attack["unit"] == "all rows of a unit"
    curve = [(e, d) for d, e in said["curve"] if e is not None]  # the least bound of all of them
    least = min((np.exp(e) - 1 + 2 * d) / (np.exp(e) + 1) for e, d in [(1.0, said["guarantee"]["delta"]), *curve])
    assert attack["bound"]["advantage"] == pytest.approx(least) and 0 < least < np.tanh(0.5) + 1e-3
    assert "at most by ε" in lines and "by a coin of their own" in lines


def test_no_bound_stands_beside_an_attack_on_another_unit_or_without_the_units_column(made, capsys, tmp_path):
    for name in ("town.csv", "held.csv"):
        pd.read_csv(made / name).drop(columns="person").to_csv(tmp_path / name, index=False)
    shutil.copy(made / "town.yaml", tmp_path)
    for folder, asked in ((made, ["evaluation.subject=job"]), (tmp_path, [])):
        table = made / "persons" / "release" / "synthetic.csv"
        scores, _ = scored(folder, table, *asked, capsys=capsys)
        assert scores["release"]["private"]
        assert "bound" not in scores["metrics"]["membership_inference"]["details"]


def test_a_release_that_is_not_private_is_said_to_be_none(made, capsys):
    scores, lines = scored(made, made / "seeded" / "release" / "synthetic.csv", capsys=capsys)
    assert not scores["release"]["private"] and "says NOT PRIVATE: the noise seed is fixed" in lines
    assert "bound" not in scores["metrics"]["membership_inference"]["details"]


@pytest.mark.parametrize("how", ["another table", "edited statement", "no manifest", "damaged"])
def test_a_statement_that_nothing_binds_to_the_table_is_not_taken(made, tmp_path, how):
    shutil.copytree(made / "persons" / "release", tmp_path / "release")
    table, statement = tmp_path / "release" / "synthetic.csv", tmp_path / "release" / "privacy.json"
    if how == "another table":
        people(50).to_csv(table, index=False)
    elif how == "no manifest":
        (tmp_path / "release" / "manifest.json").unlink()
    elif how == "damaged":
        statement.write_text('{"version": 3, "guarantee": {"epsilon": "much", "delta": 0}}')
        rebound(tmp_path / "release")
    else:
        statement.write_text(statement.read_text().replace('"epsilon": 1', '"epsilon": 0.1'))
    facts, line = release_beside(table)
    assert facts is None and "is not taken for its statement" in line


def test_the_schema_of_the_release_is_the_default_where_the_manifest_binds_it(made, tmp_path, monkeypatch):
    release = made / "persons" / "release"
    tvd = {"metrics": ["tvd"]}
    own = pipeline.score(made / "town.csv", release / "synthetic.csv", **tvd)
    named = pipeline.score(made / "town.csv", release / "synthetic.csv", release / "schema.yaml", **tvd)
    plain = pipeline.score(made / "town.csv", release / "synthetic.csv", "none", **tvd)
    assert own.outcomes["tvd"].score == named.outcomes["tvd"].score != plain.outcomes["tvd"].score
    assert "read by the schema of the release" in own.notices[-1]
    assert not any("the schema of the release" in line for card in (named, plain) for line in card.notices)
    shutil.copytree(release, tmp_path / "release")
    (tmp_path / "release" / "schema.yaml").write_text("name: other")
    edited = pipeline.score(made / "town.csv", tmp_path / "release" / "synthetic.csv", **tvd)
    assert edited.outcomes["tvd"].score == plain.outcomes["tvd"].score


def test_several_tables_are_read_by_one_schema(made, tmp_path, monkeypatch):
    release, aside = made / "persons" / "release", tmp_path / "other.csv"
    people(300).to_csv(aside, index=False)
    both = pipeline.score(made / "town.csv", [release / "synthetic.csv", aside], metrics=["tvd"])
    alone = pipeline.score(made / "town.csv", aside, release / "schema.yaml", metrics=["tvd"])
    assert both.cards["other.csv"].outcomes["tvd"].score == alone.outcomes["tvd"].score
    assert all("read by the schema of the release" in card.notices[-1] for card in both.cards.values())
    shutil.copytree(release, tmp_path / "release")
    schema = tmp_path / "release" / "schema.yaml"
    schema.write_text(schema.read_text() + "# another\n")
    rebound(tmp_path / "release")
    pair = [release / "synthetic.csv", tmp_path / "release" / "synthetic.csv"]
    differ = pipeline.score(made / "town.csv", {str(i): t for i, t in enumerate(pair)}, metrics=["tvd"])
    assert all("different schemas" in card.notices[-1] for card in differ.cards.values())
    assert "0, 1: the releases have different schemas" in repr(differ)


def test_units_and_promises_are_read_back_as_they_were_stated_and_frames_have_no_statement(made, monkeypatch):
    facts, _ = release_beside(made / "persons" / "release" / "synthetic.csv")
    assert facts.of.column == "person" and facts.of.max_records == 4 and facts.of.rules
    assert isinstance(facts.promise, AttackPromise) and len(facts.promise.pairs) > 1
    assert release_beside(made / "town.csv") == (None, "")
    monkeypatch.chdir(made / "persons" / "release")
    card = pipeline.score(people(100), pd.read_csv("synthetic.csv"), metrics=["tvd"])
    assert card.release is None and not any("statement" in line for line in card.notices)


PAGE = (Path(__file__).parents[2] / "docs" / "adding" / "format.md").read_text(encoding="utf-8")
(EXAMPLE,) = re.findall(r"<!-- file: .*?/feather.py -->\n```python\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture
def feather(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The example of the page, as a module beside the project, where it is not added yet."""
    if "feather" in FORMATS:
        yield "feather"
        return
    place = tmp_path_factory.mktemp("module")
    (place / "feather.py").write_text(EXAMPLE, encoding="utf-8")
    monkeypatch.syspath_prepend(place)
    FORMATS["feather"] = importlib.import_module("feather").FEATHER
    yield "feather"
    del FORMATS["feather"], sys.modules["feather"]


@pytest.mark.parametrize("name", ["csv.gz", "feather"])
def test_run_verify_synth_score_and_query_take_a_format_that_is_one_entry(name, feather, town, capsys):
    seeds = ["privacy.noise_seed=3", "synthesis.seed=3"]
    for form in (name, "csv"):
        settings = [f"release.format={form}", f"hydra.run.dir={form}", *seeds]
        assert command("run", *TOWN, *PAIRS, *settings) == 0
    release, table = Path(name) / "release", FORMATS[name].released
    assert (release / table).is_file() and not (release / CSV.released).exists()
    assert departures(release) == []
    (file,) = json.loads((release / "croissant.json").read_text())["distribution"]
    assert (file["name"], file["encodingFormat"]) == (table, FORMATS[name].media)
    scores = [json.loads((Path(form) / "internal" / "scores.json").read_text())["metrics"] for form in (name, "csv")]
    assert scores[0] == scores[1]
    capsys.readouterr()
    command("verify", f"from={name}/release")  # but for its noise seed it is sound
    assert re.findall(r"NO +(\w+)", said := capsys.readouterr().out) == ["private"] and "ok  tables" in said
    assert command("synth", "from=csv/release", f"release.format={name}", "output=again", "synthesis.seed=4") == 0
    assert command("synth", f"from={name}/release", "output=plain", "synthesis.seed=4") == 0
    assert command("score", "real=town.csv", f"synthetic=again/release/{table}", "output=a.json") == 0
    assert command("score", "real=town.csv", "synthetic=plain/release/synthetic.csv", "output=b.json") == 0
    a, b = (json.loads(Path(f).read_text())["metrics"] for f in ("a.json", "b.json"))
    assert a == b
    assert command("query", f"from={name}/release", "bounds=true", "output=bounds.csv") == 0
    assert len(Path("bounds.csv").read_text().splitlines()) == 7


def test_a_resumed_run_reads_the_rows_of_its_format_again(feather, town):
    run = ("run", *TOWN, *PAIRS, "hydra.run.dir=out", "release.format=feather")
    assert command(*run) == 0
    assert command(*run, "resume=true") == 0
