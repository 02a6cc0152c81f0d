"""A draft whose proposed rules are taken: no row of a run shows a pair that cannot be."""

import numpy as np
import pandas as pd
import pytest

from tests.pipeline.conftest import command
from tests.public.table_worlds import loosened


def broken(rows: pd.DataFrame) -> dict[str, float]:
    """Of which share of the rows each relation fails; a town that is not listed may lie in any county."""
    listed = rows[rows["town"] != "Other"]
    return {
        "county": float((listed["county"] != "k" + (listed["town"].str[1:].astype(int) % 8).astype(str)).mean()),
        "name": float((rows["name"] != "n" + rows["code"].astype(str)).mean()),
        "years": float((rows["end_year"] < rows["start_year"]).mean()),
    }


@pytest.mark.parametrize("taken", [False, True])
def test_rules_that_a_draft_proposes_keep_impossible_pairs_out_of_the_rows(tmp_path, monkeypatch, taken):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(5)
    town, code, start = rng.integers(0, 40, 3_000), rng.integers(0, 12, 3_000), rng.integers(1950, 2000, 3_000)
    town = np.where(rng.random(3_000) < 0.03, rng.integers(40, 100, 3_000), town)  # of these fewer than 10 rows each
    years = {"start_year": start, "end_year": start + rng.integers(0, 20, 3_000)}
    named = {"town": [f"t{t}" for t in town], "county": [f"k{t % 8}" for t in town]}
    frame = pd.DataFrame({**named, "code": code, "name": [f"n{c}" for c in code], **years})
    frame.to_csv("table.csv", index=False)
    assert broken(frame) == {"county": 0, "name": 0, "years": 0}
    assert command("schema", "table.csv", "output=own.yaml") == 0
    text = (tmp_path / "own.yaml").read_text(encoding="utf-8")
    (tmp_path / "own.yaml").write_text(loosened(text) if taken else text, encoding="utf-8")
    own = ["data=table", "data.path=table.csv", "data.schema=own.yaml", "evaluation.enabled=false"]
    assert (
        command("run", *own, "privacy.epsilon=1", "privacy.unit=record", "privacy.noise_seed=1", "hydra.run.dir=out")
        == 0
    )
    found = broken(pd.read_csv("out/release/synthetic.csv"))
    assert all(share == 0 if taken else share > 0.02 for share in found.values()), found
