"""A setting of which nothing depends is refused, by every command that takes it."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from mechanisms.public.errors import UserError
from pipeline.settings.config import load_config
from pipeline.settings.read_where import TABLE
from pipeline.settings.specs import build_specs
from tests.pipeline.conftest import TOWN, reply, write_town

ALONE = [
    *("data.units.id=x", "data.rows=5", "data.seed=1", "data.rows_of_one_unit=true", "data.max_records=3"),
    *("privacy.clip=truncate", "privacy.missing_unit=own", "privacy.missing_unit_values=[none]"),
    *("privacy.unit_id_rules=[trim]", "privacy.unit_id_share=0.1", "privacy.person_share=0.2"),
    *("privacy.discovery_share=0.2", "privacy.max_records_cap=7", "accept_share=0.1", "accept_tries=2"),
    *("budget.limit={epsilon: 3, delta: 1e-6}", "budget.accountant=gdp", "budget.slack=0.1", "budget.table=mine"),
    *("evaluation.subject=nope", "evaluation.order=age", "evaluation.longitude=age", "evaluation.latitude=age"),
]
#: What metrics bring, unless these metrics are asked for; a map's columns, unless all three are known.
OF_METRICS = [
    *("evaluation.attacks=5", "evaluation.predict=[sex]", "evaluation.group=job", "evaluation.gini_index=usual"),
    *("evaluation.time=age", "evaluation.ways=6", "evaluation.distance=mixed"),
]
#: Of these the town does not say what would read them.
BESIDE = {"release.dialect": ["release.format=parquet", "release.dialect=plain"]}
BESIDE["data.delimiter"] = ["data.path=town.parquet", "data.delimiter=;"]
BESIDE["data.encoding"] = ["data.path=sqlite:///town.db", "data.table=t", "data.encoding=latin-1"]
BESIDE["seed"] = ["seed=3", "privacy.noise_seed=4", "synthesis.seed=5"]
SCORE = ["score", "real=town.csv", "synthetic=town.csv"]
OTHERS = {
    "units.id": ["schema", "town.csv", "units.id=x"],
    "delimiter": ["schema", "town.parquet", "delimiter=;"],
    "encoding": ["score", "real=town.parquet", "synthetic=town.parquet", "encoding=latin-1"],
    "delimiter ": [*SCORE, "delimiter=;"],
    "evaluation.attacks": [*SCORE, "evaluation.attacks=5", "report=r.html"],
}
#: Of scores, each with a value.
VALUES = {"holdout": "0.2", "enabled": "false", "subject": "nope", "order": "age", "longitude": "age"}
OTHERS |= {f"evaluation.{name}": [*SCORE, f"evaluation.{name}={value}"] for name, value in VALUES.items()}
READ = [
    ["evaluation.metrics=[singling_out,tstr]", "evaluation.attacks=5", "evaluation.predict=[sex]"],
    ["evaluation.metrics=all", "evaluation.ways=6", "evaluation.gini_index=usual", "evaluation.distance=mixed"],
    ["evaluation.time=age", "evaluation.segment=job", "evaluation.kind=sex", "evaluation.metrics=[tvd]"],
    ["evaluation.longitude=age", "evaluation.latitude=income", "evaluation.subject=job", "evaluation.order=age"],
    ["privacy.unit=person", "privacy.max_records=3", "evaluation.subject=person", "evaluation.order=age"],
    ["budget.ledger=b.json", "budget.table=mine", "budget.limit={epsilon: 3, delta: 1e-6}"],
    ["privacy.unit=person", "privacy.max_records=3", "privacy.clip=truncate", "privacy.unit_id_rules=[trim]"],
    ["privacy.unit=person", "privacy.max_records=discover", "privacy.max_records_cap=7", "privacy.discovery_share=0.2"],
    ["data.unit=person", "data.max_records=3", "accept=[{metric: l1, marginals: 1, at_most: 9}]", "accept_share=0.1"],
    ["data.delimiter=;", "release.dialect=plain", "seed=3", "synthesis.seed=4"],
]


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = write_town(tmp_path_factory.mktemp("read"))
    pd.read_csv(folder / "town.csv").to_parquet(folder / "town.parquet")
    return folder


def test_every_setting_of_the_table_is_tried() -> None:
    tried = {name.partition("=")[0].strip() for name in (*ALONE, *BESIDE, *OTHERS)} - {"seed"}
    tried -= {name.partition("=")[0] for name in OF_METRICS}
    assert tried == {name for names, _, _ in TABLE for name in names.split()}


@pytest.mark.parametrize("given", [*ALONE, *BESIDE, *OF_METRICS])
def test_what_nothing_reads_is_refused(given: str, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(here)
    with pytest.raises(UserError, match=r"nothing .*reads it\n.*leave it out") as error:
        build_specs(load_config([*TOWN, *BESIDE.get(given, [given])]))
    assert error.value.where == given.partition("=")[0]


@pytest.mark.parametrize("name", OTHERS)
def test_so_it_is_by_other_commands(name, here, monkeypatch, capsys):
    monkeypatch.chdir(here)
    said = reply(capsys, *OTHERS[name], code=1).err
    assert f"error: {name.strip()}: got" in said and "nothing here reads it" in said


@pytest.mark.parametrize("given", READ, ids=lambda g: g[-1])
def test_what_is_read_is_taken(given: list[str], here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(here)
    build_specs(load_config([*TOWN, *given]))
