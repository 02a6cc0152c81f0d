"""`privacy.max_records: discover`: C follows from noisy counts, in one budget, and anybody can choose it again."""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path

import pytest

import pipeline
from pipeline.statement.verify import verify
from tests.pipeline.conftest import PAIRS, TOWN, command, done_once, people, statement_of, worded
from tests.pipeline.test_discovery_runs import OPEN, with_leaf

SETTINGS = ["privacy.unit=person", "privacy.max_records=discover", "privacy.max_records_cap=20", "privacy.epsilon=20"]
RUN = [*TOWN, *PAIRS, *SETTINGS, "evaluation.enabled=false"]


@pytest.fixture(scope="module")
def once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return done_once(tmp_path_factory.mktemp("c"), "run", *RUN, "hydra.run.dir=out")


@pytest.fixture
def run(once: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(once, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_c_is_what_noisy_counts_say_and_all_else_is_calibrated_to_it(once: Path) -> None:
    statement = statement_of(once / "out")
    first, *rest = statement["events"]
    asked = first["discovery"]
    assert first["id"] == "discovery:(records per unit)" and first["sensitivity"] == 1 and asked["cap"] == 20
    assert len(asked["noisy"]) == 6 and asked["chosen"] == statement["unit"]["max_records"] in (2, 4, 8, 16)
    assert {e["sensitivity"] for e in rest} == {statement["unit"]["max_records"]}
    assert statement["private"] and first["share"] == pytest.approx(0.1)
    assert any(
        "C = " in fact and "noisy counts of this run" in fact
        for fact in worded(once / "out" / "release")["public_facts"]
    )
    lines = [json.loads(line) for line in (once / "out" / "internal" / "ledger.jsonl").read_text().splitlines()]
    assert [i for i, line in enumerate(lines) if "plan" in line] == [0, 2]
    verdict = verify(once / "out" / "release")
    assert verdict.sound, verdict.as_text()


def test_a_larger_share_of_large_units_gives_a_larger_c(run: Path) -> None:
    table = people(600)
    table["person"] = [f"p{i // 15}" for i in range(len(table))]
    table.to_csv("town.csv", index=False)
    assert command("run", *RUN, "hydra.run.dir=many") == 0
    assert (
        statement_of(Path("many"))["unit"]["max_records"]
        in (16, 20)
        > (statement_of(Path("out"))["unit"]["max_records"],)
    )


@pytest.mark.parametrize(
    ("name", "forged", "said"),
    [
        ("unit.max_records", 1, "the noisy counts of units say"),
        ("discovery.chosen", 16, "follows as"),
        ("discovery.noisy", [0.0, 0.0, 0.0, 0.0, 0.0, 900.0], "the noisy counts of units say 20"),
        ("discovery.noisy", None, "shows the opposite"),
        ("discovery.cap", 4, "counts for"),
        ("sensitivity", 0.5, "moves by 1 when one unit changes"),
        ("discovery.noise_per_record", 1e9, "the noisy counts of units say 1"),
        ("discovery.noise_per_record", 1.0, "discovery.noise_per_record is 1.0, and follows as"),
        ("discovery.noisy", "moved", "counts of units that are not on the lattice"),
        ("discovery.what", ["bounds"], "discovery.what"),
    ],
)
def test_a_c_that_does_not_follow_is_told(run: Path, name: str, forged: object, said: str) -> None:
    event, path = ("", name) if name.startswith("unit") else ("(records per unit)", name)
    moved = (lambda noisy: [n + 1e-9 for n in noisy]) if forged == "moved" else forged
    verdict = with_leaf(run / "out" / "release", event, path, moved)
    assert not verdict.sound and said in verdict.as_text(), verdict.as_text()


def test_a_run_goes_on_with_the_same_c(run: Path) -> None:
    before = statement_of(run / "out")
    shutil.rmtree(run / "out" / "release")
    assert command("run", *RUN, "hydra.run.dir=out", "resume=true") == 0
    assert statement_of(run / "out") == before


def test_columns_and_c_are_discovered_together_the_columns_at_one_record_per_unit(run: Path) -> None:
    (run / "town.yaml").write_text(OPEN, encoding="utf-8")
    settings = [*RUN[:-2], "privacy.epsilon=60", "privacy.delta=1e-6", "evaluation.enabled=false"]
    for further in ([], ["mechanism=laplace", "privacy.neighbouring=replace", "privacy.clip=truncate"]):
        out = f"open{len(further)}"
        assert command("run", *settings, *further, f"hydra.run.dir={out}") == 0
        first = [e for e in statement_of(run / out)["events"] if e.get("discovery")]
        assert [e["sensitivity"] for e in first] == pytest.approx([1, math.sqrt(2), 1] if not further else [2, 4, 2])
        assert first[2]["discovery"]["values_per_unit"] == 1 and sum(e["share"] for e in first) == pytest.approx(0.1)
        verdict = verify(run / out / "release")
        assert verdict.sound, verdict.as_text()


def test_a_plan_a_look_a_rehearsal_and_a_frame_know_it(run: Path, capsys) -> None:
    assert command("plan", *RUN) == 0
    said = capsys.readouterr().out
    assert "C records to be discovered, at most 20" in said and "one more record of C costs" in said
    assert command("check", "data.path=town.csv", "data.schema=town.yaml", *SETTINGS[:3]) == 0
    assert "have more than privacy.max_records" not in capsys.readouterr().out
    assert command("rehearse", TOWN[0], TOWN[2], *RUN[3:], "plan.rows=80", "hydra.run.dir=again") == 0
    facts = {"schema": "town.yaml", "unit": "person", "max_records": "discover", "epsilon": 20, "selection": "pairs"}
    release = pipeline.fit(people(600), **facts, **{"privacy.max_records_cap": 20}, quiet=True)
    assert release.statement["unit"]["max_records"] in (2, 4, 8, 16)  # 20 only if noise is 5 of its standard deviations
