"""`synth` without overrides makes rows as `run` does: the choice of the synthesizer reads the release alone."""

from __future__ import annotations

import filecmp
from pathlib import Path

import pytest

from pipeline import api
from pipeline.settings.compose import compose_config
from pipeline.settings.config import load_config
from pipeline.stages import run
from tests.pipeline.conftest import TOWN


def test_synth_has_the_synthesizer_of_run_by_default() -> None:
    of_run, of_synth = (compose_config(command, []).synthesis for command in ("config", "synth"))
    assert of_run == of_synth and of_synth.kind == "auto"


def test_synth_without_overrides_makes_the_table_of_the_run_again(town: Path, tmp_path: Path) -> None:
    settings = [*TOWN, "privacy.noise_seed=3", "synthesis.seed=4", "evaluation.enabled=false"]
    done = run(load_config(settings), tmp_path / "run", quiet=True)
    again = api.synthesize(done, tmp_path / "again", "synthesis.seed=4")
    assert filecmp.cmp(done.table, again, shallow=False)
    other = api.synthesize(done, tmp_path / "other", "synthesis.seed=4", "synthesis=gum")
    assert not filecmp.cmp(done.table, other, shallow=False)


@pytest.mark.slow  # of fewer rows no pair is asked twice
def test_so_it_does_where_pairs_over_coarser_values_were_asked_twice(tmp_path: Path) -> None:
    """What is read from the release are other objects than what was asked: their answers are summed up all the same."""
    settings = ["data.rows=20000", "privacy.unit=record", "privacy.epsilon=5", "seed=5", "evaluation.enabled=false"]
    done = run(load_config(settings), tmp_path / "run", quiet=True)
    again = api.synthesize(done, tmp_path / "again", "seed=5")
    assert filecmp.cmp(done.table, again, shallow=False)
