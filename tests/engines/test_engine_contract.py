"""What every engine owes: it learns what the embedded engine learns, and a run makes the same answers and rows."""

import dataclasses
import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from mechanisms.sensitive.contribution import Aside, PrivacyUnit, UnitRows
from mechanisms.sensitive.engines.checked_engine import CheckedEngine
from mechanisms.sensitive.engines.duckdb_engine import DuckdbEngine
from mechanisms.sensitive.engines.engine import Engine
from mechanisms.sensitive.engines.engines import ENGINES, opened_engine
from pipeline.conf_folder import CONF
from tests.engines.contract import KEY, SETTINGS, contract_schema, loaded, seen
from tests.engines.test_engines import write
from tests.pipeline.conftest import PAIRS, TOWN, command

#: The slow one starts another program.
EVERY = [pytest.param(name, marks=pytest.mark.slow) if name == "spark" else name for name in ENGINES]


def mixed(rows: int) -> list[Any]:
    """Rows of the contract's kinds, of units with one record and with a tenth of all."""
    rng = np.random.default_rng(8)
    units = ["big", "", "NA", *(f"u{i}" for i in range(max(rows // 3, 1)))]
    share = [0.1, 0.02, 0.01, *[0.87 / (len(units) - 3)] * (len(units) - 3)]
    pick = lambda values: rng.choice(values, rows).tolist()  # noqa: E731
    return list(
        zip(
            rng.choice(units, rows, p=share).tolist(),
            pick(["rome", "ça va", 'a"b', "two\nlines", "", "paris", "ROMA "]),
            pick(["0", "3", "03", "30", "31", "x", ""]),
            pick(["-2", "0.5", "1.999", "nan", "5"]),
            pick(["2020-01-01", "2020-02-29", "2021-01-01", "soon"]),
            pick(["", "x,y"]),
            strict=True,
        )
    )


@pytest.fixture
def engine(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Engine]:
    """The engine as a run has it: one of others stands behind its checks. Tables have several slices."""
    monkeypatch.setattr("mechanisms.sensitive.engines.slices.SLICE_ROWS", 100)
    if request.param == "spark":
        yield request.getfixturevalue("spark")
        return
    with opened_engine(ENGINES[request.param](), tmp_path) as opened:
        yield opened


@pytest.mark.some(len(SETTINGS))  # the embedded engine is its own witness once
@pytest.mark.parametrize("setting", SETTINGS, ids=str)
@pytest.mark.parametrize("engine", EVERY, indirect=True)
def test_it_learns_what_the_embedded_engine_learns(engine: Engine, setting: Any, tmp_path: Path) -> None:
    for name, rows in {"many.parquet": 400, "many.csv": 400, "one.csv": 1, "none.parquet": 0}.items():
        table = write(tmp_path / name, mixed(rows))
        here = seen(loaded(table, setting, tmp_path / "a" / name))
        assert seen(loaded(table, setting, tmp_path / "b" / name, engine=engine)) == here


@pytest.mark.parametrize("unit", [PrivacyUnit(), PrivacyUnit("id", 2), PrivacyUnit("id", 2, missing="own")], ids=str)
@pytest.mark.parametrize("engine", EVERY, indirect=True)
def test_units_count_the_same_values(engine: Engine, unit: PrivacyUnit, tmp_path: Path) -> None:
    table = write(tmp_path / "t.parquet", mixed(400))
    columns, aside = contract_schema().columns[:2], Aside(KEY, 0.3)
    learned = [
        {n: sorted(v) for n, v in e.values(UnitRows(table, unit, tmp_path / w), columns, key=KEY, aside=aside).items()}
        for w, e in (("a", DuckdbEngine()), ("b", engine))
    ]
    assert learned[0] == learned[1] and any(learned[0].values())


@pytest.mark.parametrize("name", EVERY)
def test_a_run_makes_the_same_answers_and_the_same_rows(name: str, town: Path) -> None:
    fixed = ["seed=5", "evaluation.enabled=false", "privacy.unit=person", "privacy.max_records=2"]
    for home, engine in (("one", "duckdb"), ("other", name)):
        assert command("run", *TOWN, *PAIRS, *fixed, f"engine={engine}", f"hydra.run.dir={home}") == 0
    made = [_digests(town / home / "release") for home in ("one", "other")]
    assert made[0] == made[1] and len(made[0]) > 2


def _digests(release: Path) -> dict[str, str]:
    """Of the rows and of the answers; the papers name an engine of others."""
    files = [release / "synthetic.csv", *sorted(f for f in (release / "marginals").rglob("*") if f.is_file())]
    return {str(f.relative_to(release)): hashlib.sha256(f.read_bytes()).hexdigest() for f in files}


@pytest.mark.parametrize("name", [*ENGINES])
def test_the_settings_of_its_file_are_those_of_the_class(name: str) -> None:
    file = CONF / "engine" / f"{name}.yaml"
    made = ENGINES[name]()
    if file.is_file():
        given = yaml.safe_load(file.read_text(encoding="utf-8"))
        assert given.pop("kind") == name and given == dataclasses.asdict(made)  # type: ignore[call-overload]
    assert made.most_scored is None or made.most_scored > 0
    assert made == ENGINES[name]() and not isinstance(made, CheckedEngine)
