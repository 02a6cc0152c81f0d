"""Synthetic rows in chunks, as a model says and the same for the same seed; and `synth`, which makes them again."""

from __future__ import annotations

import filecmp
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from mechanisms.sensitive.private_table import EMBEDDED
from pipeline import api
from pipeline.measuring.attempts import DrawChunk, streamed_rows
from pipeline.release_folder import read_release
from pipeline.settings.compose import compose_config
from pipeline.settings.config import load_config
from pipeline.stages import run
from synthesis.numbers.value_shapes import for_synthesis
from synthesis.synthesizers import SYNTHESIZERS
from tests.pipeline.conftest import TOWN, command, reply

RUN = ["run", *TOWN, "selection=pairs", "seed=5", "evaluation.enabled=false"]


def rows_of(folder: str) -> pd.DataFrame:
    return pd.read_csv(Path(folder) / "release" / "synthetic.csv")


@pytest.mark.parametrize("synthesis", ["pgm", "auto", "independent"])
def test_more_rows_than_a_chunk_holds_have_the_models_marginals(town, monkeypatch, synthesis) -> None:
    settings = [*RUN, f"synthesis={synthesis}", "synthesis.rows=2500"]
    assert command(*settings, "hydra.run.dir=whole") == 0
    monkeypatch.setattr("pipeline.settings.memory.CHUNK_ROWS", 1000)
    for folder in ("one", "other"):
        assert command(*settings, f"hydra.run.dir={folder}") == 0
    whole, one, other = (rows_of(folder) for folder in ("whole", "one", "other"))
    pd.testing.assert_frame_equal(one, other)
    assert len(one) == 2500 and not any(Path("one/internal/tmp").glob("*"))
    for column in ("sex", "job"):
        shares = [table[column].value_counts(normalize=True).sort_index() for table in (whole, one)]
        assert np.abs(shares[0] - shares[1]).max() < 0.02


def test_a_chunk_depends_on_the_seed_and_its_number_alone(one_run, tmp_path) -> None:
    schema, _, measurements = read_release(one_run / "release")
    coarse = for_synthesis(measurements, schema)
    model = SYNTHESIZERS["pgm"]().model(coarse)
    made = [
        streamed_rows(
            DrawChunk(model, schema, coarse, measurements, n, 100, tuple(np.random.default_rng(3).spawn(chunks))),
            tmp_path / str(n),
            EMBEDDED.spread,
        )
        for n, chunks in ((250, 3), (430, 5))
    ]
    assert [t.rows for t in made] == [250, 430]
    for one, other in zip(made[0].columns, made[1].columns, strict=True):
        assert (one[:200] == other[:200]).all()
    assert any((c[:100] != c[100:200]).any() for c in made[1].columns)


def test_only_rows_that_are_changed_until_they_fit_need_memory_for_all_of_them(town, capsys) -> None:
    asked = [*TOWN, "selection=pairs", "synthesis.rows=20000000000"]
    megabytes = re.search(r"predicted memory: ([0-9,]+) MB", reply(capsys, "plan", *asked, "synthesis=pgm").out)
    assert megabytes is not None and int(megabytes[1].replace(",", "")) < 2_000
    assert "is predicted to need" in reply(capsys, "run", *asked, "synthesis=gum", "hydra.run.dir=out", code=1).err
    assert not Path("out/internal/ledger.jsonl").exists() and not Path("out/release").exists()


def test_synth_without_overrides_makes_the_table_of_the_run_again(town: Path, tmp_path: Path) -> None:
    settings = [*TOWN, "privacy.noise_seed=3", "synthesis.seed=4", "evaluation.enabled=false"]
    done = run(load_config(settings), tmp_path / "run", quiet=True)
    again = api.synthesize(done, tmp_path / "again", "synthesis.seed=4")
    assert filecmp.cmp(done.table, again, shallow=False)
    of_run, of_synth = (compose_config(command, []).synthesis for command in ("config", "synth"))
    assert of_run == of_synth and of_synth.kind == "auto"
    other = api.synthesize(done, tmp_path / "other", "synthesis.seed=4", "synthesis=gum")
    assert not filecmp.cmp(done.table, other, shallow=False)


@pytest.mark.slow  # of fewer rows no pair is asked twice
def test_so_it_does_where_pairs_over_coarser_values_were_asked_twice(tmp_path: Path) -> None:
    """What is read from the release are other objects than what was asked: their answers are summed up all the same."""
    settings = ["data.rows=20000", "privacy.unit=record", "privacy.epsilon=5", "seed=5", "evaluation.enabled=false"]
    done = run(load_config(settings), tmp_path / "run", quiet=True)
    again = api.synthesize(done, tmp_path / "again", "seed=5")
    assert filecmp.cmp(done.table, again, shallow=False)
