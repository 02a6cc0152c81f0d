"""Releases that are accepted by a noisy score, or withheld: what is published, what it costs, kills at every step."""

import itertools
import json
import os
import shutil
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest

from mechanisms.accounting.private_selection import PrivateSelection
from mechanisms.public.errors import UserError
from mechanisms.public.units import plain_digits
from mechanisms.sensitive.noise import SeededNoise
from pipeline.measuring.acceptance import Withheld, _within
from pipeline.settings.config import load_config
from pipeline.stages import run
from pipeline.sweeps.job_process import JobOutcome
from pipeline.sweeps.planned_jobs import Job
from pipeline.sweeps.results import choice_warning, results_table
from tests.pipeline.conftest import TOWN, command, reply, statement_of

#: One marginal, no scores of the report: a run of a moment.
QUICK = [*TOWN, "selection.marginals=[[age,sex],[job]]", "synthesis=independent", "evaluation.enabled=false"]
QUICK += ["privacy.epsilon=2", "privacy.delta=1e-6"]


def accept(at_most: float | None = None, k: int = 1) -> str:
    limit = "" if at_most is None else f", at_most: {at_most}"
    return f"accept=[{{metric: l1, marginals: {k}{limit}}}]"


def ledger(path: Path) -> list[str]:
    return [json.loads(line)["event"]["id"] for line in path.read_text().splitlines()[1:]]


def score_of(said: dict) -> dict:
    (event,) = [e for e in said["events"] if "accept" in e]
    return event


def test_a_score_that_was_charged_and_lost_accepts_nothing_where_a_threshold_decides():
    limits = [SimpleNamespace(criterion=SimpleNamespace(at_most=limit)) for limit in (5.0, None)]
    state: Any = SimpleNamespace(plan=SimpleNamespace(scores=limits))
    assert _within(state, [5.0, None]) and not _within(state, [5.1, 1.0]) and not _within(state, [None, 1.0])


def test_a_release_within_the_threshold_is_published_with_its_noisy_figure(town, capsys):
    assert command("run", *QUICK, accept(10_000), "hydra.run.dir=r") == 0
    said = statement_of(town / "r")
    event = score_of(said)
    assert event["accept"] == {
        "metric": "l1", "marginals": 1, "of": "mean", "compared": 3, "left_out": 0, "at_most": 10_000.0,
    }  # fmt: skip
    assert 0 < event["standard_error"] == event["stddev"] < 100
    assert -5 * event["stddev"] < event["noisy"] < 10_000
    assert said["selection"] is None
    assert said["spent"]["epsilon"] <= said["budget"]["epsilon"] == 2
    assert ledger(town / "r" / "internal" / "ledger.jsonl")[-1] == "accept:0", "after all else, of a fixed table"
    printed = capsys.readouterr().out
    assert "  folder    r\n  publish   release/synthetic.csv (" in printed
    assert f"mean L1 distance of 3 1-way marginals: {plain_digits(event['noisy'])} ± " in printed


def test_a_release_beyond_the_threshold_is_withheld_and_its_cost_stays(town, capsys):
    arguments = ("run", *QUICK, accept(0, k=2), "hydra.run.dir=r")
    first = reply(capsys, *arguments, code=1)
    assert "error: accept: the release was not accepted and is withheld (mean L1 distance of all 3 2-way" in first.err
    assert "resume=true" not in first.err
    assert not (town / "r" / "release").exists()
    inside = town / "r" / "internal"
    facts = json.loads((inside / "withheld.json").read_text())
    assert 1.9999 < facts["guarantee"]["epsilon"] <= 2
    assert facts["private"] is True
    table = results_table([(Job((), {}, town / "r"), JobOutcome("withheld", ""))])
    assert table["spent_epsilon"].tolist() == [facts["guarantee"]["epsilon"]], "a sweep counts it"
    before = {p: p.read_bytes() for p in [inside / "ledger.jsonl", *inside.glob("answers/*"), inside / "scored.json"]}
    assert [x for x in reply(capsys, *arguments, "resume=true", code=1).err.splitlines() if "error" in x] == [
        x for x in first.err.splitlines() if "error" in x
    ], "the same verdict, by the same figure"
    assert {p: p.read_bytes() for p in before} == before


def test_several_tries_cost_what_plan_says_before_and_tell_nothing_about_each_other(town, capsys):
    again = [*QUICK, accept(35), "accept_tries=40"]
    printed = reply(capsys, "plan", *again).out
    assert "at most 40 tries expected, each with ε₁ = 1, δ₁ = 2.5e-08" in printed
    assert "ε = 2 ε₁, δ = 40 δ₁" in printed
    assert "the plan spends: ε = 2, δ = 1e-06" in printed
    releases, config, seed = {}, load_config(again), 0
    while len(releases) < 2 and seed < 40:
        seed += 1
        config.privacy.noise_seed = seed
        with suppress(Withheld):
            run(config, town / f"r{seed}", quiet=True)
            winner = max(p.name for p in (town / f"r{seed}" / "internal" / "tries").glob("0*"))
            releases.setdefault(winner == "0001", town / f"r{seed}")
    assert set(releases) == {True, False}, "of both kinds"
    early, late = (statement_of(releases[first]) for first in (True, False))
    assert early["budget"] == late["budget"] == {"epsilon": 2.0, "delta": 1e-6}
    assert early["spent"]["epsilon"] == pytest.approx(2)
    assert early["selection"] == late["selection"]
    assert early["selection"]["tries_expected_at_most"] == 40
    assert early["selection"]["one_try"] == {"epsilon": 1.0, "delta": 2.5e-8}
    names = [[e["id"] for e in s["events"]] for s in (early, late)]
    assert names[0] == names[1], "no name tells the number of the try"
    assert score_of(late)["noisy"] <= 35
    files = [sorted(str(p.relative_to(r)) for p in (r / "release").rglob("*")) for r in releases.values()]
    assert files[0] == files[1]
    rejected = releases[False] / "internal" / "tries" / "0001"
    assert not (rejected / "candidate.npz").exists()
    assert len(ledger(rejected / "ledger.jsonl")) == len(names[0]), "each try is a whole one, booked on its own"


@pytest.mark.parametrize("wanted", [accept(10_000), accept()])
def test_a_public_seed_of_synthesis_does_not_betray_which_try_was_taken(town, wanted):
    """A seed of its own for each try would tell its number: only one would repeat the table from its answers."""
    late, number = None, 0
    while late is None and number < 20:
        number += 1
        root = town / f"r{number}"
        config = load_config([*QUICK, wanted, "accept_tries=8", f"privacy.noise_seed={number}", "synthesis.seed=5"])
        run(config, root, quiet=True)
        (taken,) = (root / "internal" / "tries").glob("*/candidate.npz")
        late = root if taken.parent.name != "0001" or "at_most" in wanted else None
    assert late is not None
    assert command("synth", f"from={late / 'release'}", "synthesis=independent", "synthesis.seed=5") == 0
    (repeated,) = (town / "outputs").rglob("synthetic.csv")
    assert repeated.read_bytes() == (late / "release" / "synthetic.csv").read_bytes()


def test_without_a_threshold_the_best_noisy_score_is_released(town, capsys):
    for seed in (3, 4):
        root = town / f"r{seed}"
        config = load_config([*QUICK, accept(), "accept_tries=4", f"seed={seed}"])
        run(config, root, quiet=True)
        tries = root / "internal" / "tries"
        scores = [json.loads(p.read_text())[0] for p in sorted(tries.glob("0*/scored.json"))]
        assert len(scores) == json.loads((tries / "most.json").read_text())
        assert score_of(statement_of(root))["noisy"] == min(scores)
        assert len(set(scores)) == len(scores), "each try has noise of its own"
        assert len(list(tries.glob("*/candidate.npz"))) == 1
        assert statement_of(root)["selection"]["one_try"]["epsilon"] == pytest.approx(2 / 3)
        before = {p: p.read_bytes() for p in (root / "release").rglob("*") if p.is_file()}
        config.resume = True
        run(config, root, quiet=True)
        assert {p: p.read_bytes() for p in (root / "release").rglob("*") if p.is_file()} == before
        shutil.rmtree(root / "release")
        (root / "internal" / "release.json").unlink()
        run(config, root)
        said = capsys.readouterr().err
        assert "release " in said and "measure " not in said, "a log told that the release is of a kept try"


def test_when_no_try_is_accepted_nothing_is_told_about_any(town, capsys):
    assert command("run", *QUICK, accept(0, k=2), "accept_tries=2", "hydra.run.dir=r") == 1
    said = [line for line in capsys.readouterr().err.splitlines() if line.startswith("error")]
    expected = "no try was accepted before a secret coin stopped them"
    assert said == [f"error: accept: the release was not accepted and is withheld ({expected})"]
    assert not (town / "r" / "release").exists()


class Killed(BaseException):
    """Stands for a kill: nothing in the pipeline catches it."""


@contextmanager
def killed_at(step: int, monkeypatch: pytest.MonkeyPatch):
    """Everything ends the moment before the step-th thing would be durable on disk."""
    real, left = os.fsync, [step]

    def fsync(handle):
        left[0] -= 1
        if left[0] == 0:
            raise Killed
        real(handle)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fsync)
        yield


def test_a_coin_that_stops_the_tries_is_never_tossed_again(town, capsys):
    assert command("run", *QUICK, accept(10_000), "accept_tries=3", "hydra.run.dir=r") == 0
    tries = town / "r" / "internal" / "tries"
    before = {p: p.read_bytes() for p in tries.rglob("*.jsonl")}
    (tries / "most.json").unlink()
    shutil.rmtree(town / "r" / "release")
    assert command("run", *QUICK, accept(10_000), "accept_tries=3", "hydra.run.dir=r", "resume=true") == 1
    assert "how many tries the coins allow is gone" in capsys.readouterr().err
    assert {p: p.read_bytes() for p in tries.rglob("*.jsonl")} == before and not (town / "r" / "release").exists()


@pytest.mark.slow
@pytest.mark.parametrize("tries", [1, 3])
def test_a_kill_at_any_step_never_draws_twice_and_never_changes_the_verdict(town, monkeypatch, tries):
    several, most = PrivateSelection(tries, False), min(tries, 2)
    seed = next(s for s in range(100) if several.most_tries(SeededNoise(s).stream("accept:stop")) == most)
    fixed = [*QUICK, f"accept_tries={tries}", "selection.marginals=[[sex]]", f"seed={seed}"]
    config = load_config([*fixed, accept(10**6 if tries == 1 else None)])
    figure = score_of(run(config, town / "whole", quiet=True).statement.to_json())["noisy"]
    for step in itertools.count(1):
        root = town / f"killed{step}"
        try:
            with killed_at(step, monkeypatch):
                run(config, root, quiet=True)
            break
        except Killed:
            drawn = {p: p.read_bytes() for p in root.glob("internal/**/answers/*.npz")}
            drawn |= {p: p.read_bytes() for p in root.glob("internal/**/*.json") if "accept" in p.name}
        again = replace(config, resume=(root / "internal" / "manifest.json").exists())
        try:
            event = score_of(run(again, root, quiet=True).statement.to_json())
            scores = [json.loads(p.read_text())[0] for p in root.glob("internal/**/scored.json")]
            assert event["noisy"] == min(s for s in scores if s is not None)
            assert figure in scores or len(scores) < tries or None in scores
        except UserError as error:  # the one answer, or the score that decides, was charged and lost
            assert tries == 1
            assert isinstance(error, Withheld) or "spent without an answer" in str(error)
            assert not (root / "release").exists()
        for path in root.glob("internal/**/ledger.jsonl"):
            assert len(ledger(path)) == len(set(ledger(path))), "charged once, answered or not"
        assert {p: p.read_bytes() for p in drawn} == drawn
    assert step > 8


def test_choosing_by_scores_is_warned_of_wherever_there_are_several_scored_releases():
    rows = [{"job": j, "score": 0.1, "private": True} for j in ("a", "a", "b")]
    assert "not covered" in choice_warning(pd.DataFrame(rows))
    assert choice_warning(pd.DataFrame(rows[:2])) == "", "one release: nothing to choose from"
    withheld = {"job": "b", "score": None, "private": True}
    assert choice_warning(pd.DataFrame([rows[0], withheld])) == ""


@pytest.mark.slow
def test_a_sweep_says_that_choosing_by_its_scores_is_not_covered_and_counts_what_was_withheld(town, capsys):
    settings = [*QUICK[:-2], "evaluation.enabled=true", "privacy.epsilon=1,2", "hydra.sweep.dir=s"]
    said = reply(capsys, "run", "-m", *settings).out
    assert "choosing among these releases by their scores is not covered" in said
    assert "published together they spend at most ε = 3," in said
    assert "Choosing among these releases" in (town / "s" / "internal" / "sweep.html").read_text()
    said = reply(capsys, "run", "-m", *settings[:-1], accept(0, k=2), "hydra.sweep.dir=t", code=1)
    assert "published together they spend at most ε = 3," in said.out
    assert "choosing among" not in said.out, "there is nothing to choose from"
    assert "withheld" in said.err
    assert "2 of 2 releases were not accepted" in (town / "t" / "internal" / "sweep.html").read_text()
