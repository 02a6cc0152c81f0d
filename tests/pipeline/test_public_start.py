"""`synthesis.public`: synthetic rows that start from those of a public table, and the statement that says so."""

import json
import shutil
from pathlib import Path

import pandas as pd
import pytest

from mechanisms.public.errors import UserError
from pipeline.measuring.public_tables import started
from pipeline.settings.build import build_schema
from pipeline.settings.config import SynthesisConfig, load_config
from pipeline.settings.methods import build_synthesizer
from pipeline.settings.specs import build_specs
from pipeline.statement.restated import restated
from pipeline.statement.start_table import start_in
from synthesis.synthesizers import SYNTHESIZERS
from tests.pipeline.conftest import TOWN, command, people, reply, worded

START = ["synthesis=gum", "synthesis.public=known.csv"]
FEW = [*TOWN, "evaluation.enabled=false", "selection=oneway", "privacy.epsilon=9", "synthesis.seed=3"]
HELD = "from whose rows the synthetic ones were changed"


@pytest.fixture
def known(town: Path) -> Path:
    """A town whose neighbouring town is public: there smiths are old and bakers are young, as here."""
    people(500, seed=7).to_csv(town / "known.csv", index=False)
    return town


def public_facts(folder: Path) -> list[str]:
    return [fact for fact in worded(folder / "release")["public_facts"] if HELD in fact]


def test_what_no_answer_tells_stays_as_in_the_public_table_and_what_one_tells_does_not(known, capsys):
    """Li et al. 2021b, section 7: public data improve a private release. Only one-way marginals are measured here."""
    table = pd.read_csv(known / "known.csv")
    table["sex"] = "f"  # what is public is wrong here, and one noisy answer mends it
    table.to_csv(known / "known.csv", index=False)
    assert command("run", *FEW, "synthesis=gum", "hydra.run.dir=plain") == 0
    assert command("run", *FEW, *START, "hydra.run.dir=out") == 0
    real, (plain, made) = pd.read_csv("town.csv"), (pd.read_csv(f"{n}/release/synthetic.csv") for n in ("plain", "out"))
    truth, without, started = (float(((t["age"] < 30) & (t["job"] == "baker")).mean()) for t in (real, plain, made))
    assert abs(started - truth) < 0.05 < abs(without - truth)
    assert abs((made["sex"] == "f").mean() - (real["sex"] == "f").mean()) < 0.02
    assert not public_facts(known / "plain")
    said = " ".join(capsys.readouterr().out.split())
    _, plainly, started_with = said.split("warning no pair of columns was measured")
    assert "no more than the schema says" in plainly and "public table" not in plainly
    assert "the synthetic table shows what the public table 'known.csv' shows" in started_with


def test_the_statement_names_the_table_or_is_found_out_and_synth_makes_the_same_rows(known):
    assert command("run", *FEW, *START, "hydra.run.dir=out") == 0
    (sentence,) = public_facts(known / "out")
    assert sentence.startswith("the table 'known.csv' (synthesis.public)") and "SHA-256" in sentence
    said = worded(known / "out" / "release")
    assert "a public table with the very rows of the private one refuses the run" in said["outside"]
    assert command("verify", "from=out/release") == 0
    assert command("synth", "from=out/release", *START, "synthesis.seed=3", "output=again") == 0
    first, again = (known / f / "release" / "synthetic.csv" for f in ("out", "again"))
    assert first.read_bytes() == again.read_bytes()
    release = known / "out" / "release"
    said, index = (json.loads((release / n).read_text()) for n in ("privacy.json", "measurements/index.json"))
    assert restated(release, said, index)[0]
    silent = {**said, "public_facts": [f for f in said["public_facts"] if f["fact"] != "public_start"]}
    assert restated(release, silent, index) == (False, "outside has 2 entries, not 1"), "outside names a public table"


def test_synth_takes_no_other_public_table_than_the_run_did(known, capsys):
    assert command("run", *FEW, "synthesis=gum", "hydra.run.dir=plain") == 0
    assert command("run", *FEW, *START, "hydra.run.dir=out") == 0
    people(400, seed=8).to_csv("known.csv", index=False)
    for run in ("plain", "out"):
        error = reply(capsys, "synth", f"from={run}/release", *START, f"output=new-{run}", code=1).err
        assert "was not made from this public table" in error and "synthesis.public" in error
        assert not Path(f"new-{run}").exists()


@pytest.mark.parametrize("kind", [k for k, spec in SYNTHESIZERS.items() if "public" not in spec.__dataclass_fields__])
def test_a_synthesizer_without_a_public_start_says_which_has_one(kind, known, capsys):
    for way in (["plan", *TOWN], ["run", *TOWN, "hydra.run.dir=out"]):
        error = reply(capsys, *way, f"synthesis={kind}", "synthesis.public=known.csv", code=1).err
        assert "a public start is for synthesis=gum alone" in error and "synthesis.public=known.csv" in error
        assert "synthesis=gum (or gum_paper) synthesis.public=FILE, or leave it out" in error
        assert not Path("out").exists()
    with pytest.raises(UserError, match="a public start is for synthesis=gum alone"):
        build_synthesizer(SynthesisConfig(kind, options={"public": "known.csv"}))


def test_merged_values_and_a_resumed_run_keep_the_start(known, capsys):
    own = [*TOWN, "evaluation.enabled=false", "selection=indif", "selection.merge=4.5", "hydra.run.dir=out"]
    assert command("run", *own, *START) == 0
    people(400, seed=8).to_csv("known.csv", index=False)
    shutil.rmtree("out/release")
    assert "changed since the run began: start" in reply(capsys, "run", *own, *START, "resume=true", code=1).err


def test_a_public_table_that_changed_since_its_digest_was_taken_is_refused(known):
    config = load_config([*TOWN, *START])
    spec, schema = build_synthesizer(config.synthesis), build_schema(build_specs(config))
    digest = start_in(config.synthesis)
    assert started(spec, config.synthesis, schema, digest) is not spec
    people(400, seed=8).to_csv("known.csv", index=False)
    with pytest.raises(UserError, match="changed while it was read"):
        started(spec, config.synthesis, schema, digest)
