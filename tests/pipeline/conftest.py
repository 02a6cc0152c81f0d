"""A tiny town on disk: a table, its schema, and a way to run commands as a user would, in this process."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from pipeline.cli import main
from pipeline.look import run_look
from pipeline.statement.signing import file_digests
from pipeline.statement.words import words_of

SCHEMA = """
name: town
source: invented for the tests
confirmed_public: true
columns:
  age: {kind: integer, min: 0, max: 99, bins: {count: 10}, missing: false}
  sex: {kind: categorical, values: [f, m], missing: false}
  job: {kind: categorical, values: [baker, smith, clerk], other: other}
leave_out: [note]
"""


def people(rows: int, seed: int = 1) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    age = rng.integers(0, 100, rows)
    sex = np.where(rng.random(rows) < 0.4, "f", "m")
    job = np.where(age < 30, "baker", np.where(sex == "f", "smith", "clerk"))
    person = rng.integers(0, max(rows // 3, 1), rows)
    return pd.DataFrame({"person": [f"p{i}" for i in person], "age": age, "sex": sex, "job": job, "note": "x"})


def write_town(folder: Path) -> Path:
    """The folder with town.csv (600 rows, 200 persons) and town.yaml."""
    people(600).to_csv(folder / "town.csv", index=False)
    (folder / "town.yaml").write_text(SCHEMA, encoding="utf-8")
    return folder


@pytest.fixture(autouse=True)
def no_look_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """A look at the rows that fails stops no run; in tests it does, where they do not ask for it (`failure_lines`)."""

    def raised(error: Exception) -> list[str]:
        raise error

    monkeypatch.setattr(run_look, "failure_lines", raised)


@pytest.fixture
def town(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The town's folder, which is the current one."""
    monkeypatch.chdir(write_town(tmp_path))
    return tmp_path


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, which is the current one."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


TOWN = ["data=table", "data.path=town.csv", "data.schema=town.yaml"]
#: Marginals that are known before the run: six of the town, measured in one round.
PAIRS = ["selection=pairs", "synthesis=gum"]


def command(*arguments: str) -> int:
    """`python -m pipeline …`, in this process; a sweep's jobs in turn, if no other way is named: in half the time.

    What a test gives takes the place of what settings of several tests say.
    """
    sweeps = "-m" in arguments and not any(a.startswith("hydra/launcher=") for a in arguments)
    last = {a.partition("=")[0]: i for i, a in enumerate(arguments)}
    own = [a for i, a in enumerate(arguments) if "=" not in a or last[a.partition("=")[0]] == i]
    return main([*own, *(["hydra/launcher=basic"] if sweeps else [])])


def edit(path: Path, old: str, new: str) -> None:
    """One place of a text is another."""
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


def reply(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> Any:
    """What a command alone prints (`out`) and says (`err`), which ends with this exit code."""
    capsys.readouterr()
    assert command(*arguments) == code
    return capsys.readouterr()


def done_in(folder: Path, *arguments: str) -> Path:
    """A folder in which a command is done: whoever changes what it left does so in a copy."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert command(*arguments) == 0
    return folder


def done_once(folder: Path, *arguments: str) -> Path:
    """The same on the town, which is written there."""
    return done_in(write_town(folder), *arguments)


def copy_of(folder: Path, place: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of a folder in another place, which is the current one."""
    shutil.copytree(folder, place, dirs_exist_ok=True)
    monkeypatch.chdir(place)
    return place


def keep(place: Path) -> Path:
    """The same folder, whose copy `put_back` puts back."""
    shutil.copytree(place, place.with_name("kept"))
    return place


def put_back(place: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder as it was kept, in its own place, where a run is no copy of itself; it is the current one."""
    shutil.rmtree(place)
    shutil.copytree(place.with_name("kept"), place)
    monkeypatch.chdir(place)
    return place


def statement_of(run: Path | str) -> dict[str, Any]:
    return json.loads(Path(run, "release", "privacy.json").read_text(encoding="utf-8"))


def worded(release: Path) -> dict[str, Any]:
    """The statement of a release, with the sentences of its papers in the place of the fields that they are made of."""
    said = json.loads((release / "privacy.json").read_text(encoding="utf-8"))
    return {**said, **words_of(said)}


@pytest.fixture(scope="session")
def one_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One run of the town for all tests that read it or go on from a copy of it."""
    settings = [*PAIRS, "privacy.unit=person", "privacy.max_records=4", "hydra.run.dir=out"]
    return done_once(tmp_path_factory.mktemp("one_run"), "run", *TOWN, *settings) / "out"


def rebound(release):
    """A forger's work: the manifest made anew over edited files."""
    manifest = json.loads((release / "manifest.json").read_text())
    there = {k: v for k, v in file_digests(release).items() if k not in {"manifest.json", "signature.json"}}
    (release / "manifest.json").write_text(json.dumps({**manifest, "files": there}, indent=1) + "\n")
