"""Frozen seeds: the integers of the noisy answers of a run stay as they are, whatever moves in the house.

A change of a method on purpose retakes them (`python -m tests.pipeline.test_frozen_runs`), with a line in CHANGELOG.
"""

import hashlib
import json
import os
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml

from mechanisms.public.release_files import load_measurements
from mechanisms.public.units import WEIGHT_BITS
from tests.pipeline.conftest import SCHEMA, TOWN, command, people

GOLDEN = Path(__file__).parent / "frozen_runs.json"
UNIT = ["privacy.unit=person", "privacy.max_records=4"]
PURE = ["mechanism=laplace", "privacy.accountant=basic"]
ITEMS = ["data=table", "data.path=items.csv", "data.schema=items.yaml"]
RUNS = {
    "pairs": ["selection=pairs", "synthesis=gum"],
    "pairs pure": ["selection=pairs", "synthesis=independent", *UNIT, *PURE],
    "pairs replaced": ["selection=pairs", "synthesis=pgm", "privacy.accountant=zcdp", "privacy.neighbouring=replace"],
    "pairs merged": ["selection=pairs", "selection.merge=3", "selection.floor=10", "synthesis=mcf"],
    "oneway advanced": ["selection=oneway", "synthesis=maxent", "mechanism=gaussian", "privacy.accountant=advanced"],
    "adagrid given": ["selection=adagrid", "selection.closure=[[age,sex,job]]", "synthesis=pgm", *UNIT],
    "adagrid tree": ["selection=adagrid", "selection.targets=[job]", "synthesis=pgm"],
    "mst": ["selection=mst", "synthesis=pgm"],
    "mwem": ["selection=mwem", "synthesis=gum", "selection.rounds=1"],
    "indif": ["selection=indif", "synthesis=gum"],
    "indif pure": ["selection=indif", "synthesis=independent", *PURE],
    "groups": ["selection=groups", "synthesis=gum", "privacy.accountant=zcdp"],
    "public": ["selection=public", "selection.public=public.csv", "synthesis=gum"],
    "priview": [*ITEMS, "selection=priview", "selection.view_cells=16", "synthesis=maxent"],
    "priview fixed": [*ITEMS, "selection=priview", "selection.view_cells=16", "selection.rows=300", "synthesis=gum"],
    "privbasis": [*ITEMS, "selection=privbasis", "selection.items=3", "selection.pairs=2", "synthesis=gum"],
    "aim": ["selection=aim", "selection.k=[2]", "synthesis=pgm"],
}


def write_worlds(folder: Path) -> None:
    people(600).to_csv(folder / "town.csv", index=False)
    people(500, seed=7).to_csv(folder / "public.csv", index=False)
    (folder / "town.yaml").write_text(SCHEMA, encoding="utf-8")
    rng = np.random.default_rng(5)
    bought = rng.random((300, 5)) < np.array([0.5, 0.4, 0.3, 0.6, 0.2])
    bought[:, 1] |= bought[:, 0]
    names = [f"i{k}" for k in range(5)]
    pd.DataFrame(np.where(bought, "y", "n"), columns=names).to_csv(folder / "items.csv", index=False)
    column = {"kind": "categorical", "values": ["n", "y"], "missing": False}
    facts = {"name": "items", "source": "invented", "confirmed_public": True, "columns": dict.fromkeys(names, column)}
    (folder / "items.yaml").write_text(yaml.safe_dump(json.loads(json.dumps(facts)), sort_keys=False), encoding="utf-8")


def digest_of(folder: Path, name: str) -> str:
    """A run's noisy answers as whole lattice units, with what was asked and charged."""
    data = [] if any(s.startswith("data=") for s in RUNS[name]) else TOWN
    settings = ["privacy.epsilon=8", "seed=11", "evaluation.enabled=false", f"hydra.run.dir={folder / name}"]
    assert command("run", *data, *RUNS[name], *settings, "limits.threads=1") == 0
    known = load_measurements(folder / name / "release" / "measurements")
    digest = hashlib.blake2b(digest_size=16)
    for answer in known.answers:
        digest.update(json.dumps([answer.event, answer.clique, answer.query.rows]).encode())
        digest.update(np.rint(answer.values * 2.0**WEIGHT_BITS).astype(np.int64).tobytes())
    return digest.hexdigest()


@pytest.mark.parametrize("name", RUNS)
def test_the_noisy_answers_of_a_frozen_seed_are_what_they_were(name, folder):
    write_worlds(folder)
    assert digest_of(folder, name) == json.loads(GOLDEN.read_text(encoding="utf-8"))[name]


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        os.chdir(place)
        write_worlds(Path(place))
        GOLDEN.write_text(json.dumps({n: digest_of(Path(place), n) for n in RUNS}, indent=1) + "\n", encoding="utf-8")
