"""Random mistakes of all commands end in one message with a cure; nothing is written, and nothing is spent."""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.pipeline.conftest import PAIRS, TOWN, done_once
from tests.pipeline.mistakes import ending, faults, files_of
from tests.pipeline.random_mistakes import Mistake, nothing, random_mistake

BUDGET = ["budget.ledger=town.json", "budget.limit={epsilon: 3, delta: 1e-6}", "evaluation.metrics=[tvd]"]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The town, a run R of it, and the budget that the run booked in."""
    return done_once(tmp_path_factory.mktemp("finished"), "run", *TOWN, *PAIRS, *BUDGET, "hydra.run.dir=R")


def wrong_answers(seeds: range, finished: Path, place: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is wrong with the answers to so many mistakes, each made where all files are as they were."""
    wrong, fresh = [], False
    for seed in seeds:
        if not fresh:
            monkeypatch.chdir(finished)
            shutil.rmtree(place, ignore_errors=True)
            shutil.copytree(finished, place)
            monkeypatch.chdir(place)
        made = random_mistake(random.Random(seed))
        made.files(place)
        end = ending(place, made.made)
        fresh = made.files is nothing and not end.changed
        wrong += [f"{seed}: {made.kind}: {' '.join(made.arguments)}: {fault}\n{end.err}" for fault in faults(end)]
    return wrong


PARTS = [range(40), *(pytest.param(range(1000 + n, 1050 + n), marks=pytest.mark.slow) for n in range(0, 500, 50))]


@pytest.mark.parametrize("seeds", PARTS, ids=lambda seeds: str(seeds.start))
def test_random_mistakes_end_in_one_message_with_a_cure(finished, tmp_path, monkeypatch, seeds):
    assert not wrong_answers(seeds, finished, tmp_path / "town", monkeypatch)


def test_a_wrong_answer_is_seen(finished, tmp_path, monkeypatch):
    """A command without a mistake, and one that writes something, are no good answers."""
    place = tmp_path / "town"
    shutil.copytree(finished, place)
    monkeypatch.chdir(place)
    good = Mistake("none", nothing, ("query", "from=R/release", "marginal=[age]", "output=age.csv"))
    assert faults(ending(place, good.made)) == ["exit code 0", "0 messages", "no cure", "changed: age.csv"]


@pytest.mark.slow
def test_the_real_command_line_answers_as_this_process_does(finished, tmp_path, monkeypatch):
    place = tmp_path / "town"
    for seed in range(0, 400, 20):
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(finished, place)
        made = random_mistake(random.Random(seed))
        made.files(place)
        if made.call is not None:
            continue
        before = files_of(place)
        line = [sys.executable, "-m", "pipeline", *made.arguments]
        done = subprocess.run(line, cwd=place, capture_output=True, text=True, errors="replace", check=False)
        assert done.returncode == 1, made
        assert done.stderr.count("error: ") == 1, done.stderr
        assert "Traceback" not in done.stderr
        assert files_of(place) == before
