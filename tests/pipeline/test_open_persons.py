"""Whole persons whose columns, and whose C, a run discovers: in one budget, sound, and without losing records."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pandas as pd
import pytest

from mechanisms.public.schema.table_schema import load_schema
from pipeline.statement.verify import verify
from tests.pipeline.conftest import command, statement_of
from tests.pipeline.test_discovery_runs import with_leaf
from tests.pipeline.test_whole_persons import stays

SCHEMA = """name: stays
source: invented for a test
confirmed_public: true
columns:
  sex: {kind: categorical, values: [f, m], missing: false}
  town: {kind: categorical, values: discover}
  born: {kind: integer, bounds: discover, within: [1800, 2100], missing: false}
  day: {kind: date, bounds: discover, within: ["2000-01-01", "2040-12-31"], missing: false}
  ward: {kind: categorical, values: [w00, w01, w02, w03, w04, w05, w06, w07, w08, w09, w10, w11], missing: false}
  cost: {kind: integer, min: 0, max: 99, bins: {count: 10}}
unit: {column: patient, constant: [sex, town, born], order: day, records: {max: 12}}
"""
RUN = [
    *("data=table", "data.path=stays.csv", "data.schema=stays.yaml", "selection=oneway", "synthesis=independent"),
    *("privacy.delta=1e-6", "privacy.epsilon=40", "privacy.max_records=discover", "evaluation.enabled=false"),
]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One run: a town of one person alone, and two persons of 30 records."""
    folder = tmp_path_factory.mktemp("open")
    frame = stays(900)
    frame["born"] = 1950 + frame.patient.str[1:].astype(int) % 40
    frame.loc[frame.patient == "p3", "town"] = "Atlantis"
    many = pd.concat([frame[frame.patient == name].iloc[[0] * 30] for name in ("p1", "p2")])
    pd.concat([frame, many]).to_csv(folder / "stays.csv", index=False)
    (folder / "stays.yaml").write_text(SCHEMA)
    with pytest.MonkeyPatch.context() as here:
        here.chdir(folder)
        assert command("run", *RUN, "hydra.run.dir=out") == 0
    return folder


@pytest.fixture
def place(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(made, tmp_path / "stays")
    monkeypatch.chdir(tmp_path / "stays")
    return tmp_path / "stays"


def test_columns_of_the_block_become_concrete_and_c_is_part_of_the_unit(made: Path) -> None:
    schema, statement = load_schema(made / "out" / "release" / "schema.yaml"), statement_of(made / "out")
    unit = schema.rules.unit
    assert unit is not None and not schema.to_discover and unit.constant == ("sex", "town", "born")
    assert schema["town"].values == ("A", "B", "C") and 1940 <= schema["born"].low <= 1950
    assert schema["day"].discovered == ("bounds",) and unit.order == ("day",)
    assert unit.max_records == 12 and unit.bound == statement["unit"]["max_records"] in (4, 8)
    first = {e["id"].split(":")[1]: e for e in statement["events"] if e.get("discovery")}
    assert {n: first[n]["discovery"].get("constant") for n in first} == {
        "(records per unit)": None, "town": True, "born": True, "day": None,
    }  # fmt: skip
    assert first["town"]["discovery"]["values_per_unit"] == 1
    counted = {e["sensitivity"] for e in statement["events"] if e["id"].startswith("persons:")}
    assert counted == {1} and verify(made / "out" / "release").sound
    assert not any(b"Atlantis" in p.read_bytes() for p in (made / "out" / "release").rglob("*") if p.is_file())


def test_records_beyond_c_are_made_up_for_by_the_sizes_of_persons(made: Path) -> None:
    real, frame = (pd.read_csv(made / p, keep_default_na=False) for p in ("stays.csv", "out/release/synthetic.csv"))
    counted = real.groupby("patient").size().clip(upper=12)
    assert abs(len(frame) / counted.sum() - 1) < 0.04
    assert abs(frame.patient.nunique() / real.patient.nunique() - 1) < 0.06
    assert (frame.groupby("patient")[["sex", "town", "born"]].nunique() == 1).all(axis=None)
    assert frame.groupby("patient").day.apply(lambda d: d.is_monotonic_increasing).all()


def test_a_declared_c_below_the_largest_size_keeps_the_number_of_records_too(place: Path) -> None:
    text = (place / "out" / "release" / "schema.yaml").read_text()
    found = statement_of("out")["unit"]["max_records"]
    Path("two.yaml").write_text(text.replace("max: 12", "max: 5").replace(f"counted: {found}", "counted: 2"))
    settings = [s for s in RUN if "max_records" not in s and "data.schema" not in s]
    assert command("run", *settings, "data.schema=two.yaml", "hydra.run.dir=two") == 0
    real, frame = pd.read_csv("stays.csv"), pd.read_csv("two/release/synthetic.csv")
    assert statement_of("two")["unit"]["max_records"] == 2
    assert abs(len(frame) / real.groupby("patient").size().clip(upper=5).sum() - 1) < 0.04
    assert command("synth", "from=two/release", "output=again", "synthesis=independent") == 0
    assert len(pd.read_csv("again/release/synthetic.csv")) == len(frame)


@pytest.mark.parametrize(
    ("event", "name", "forged"),
    [
        ("day", "discovery.constant", True),
        ("born", "discovery.constant", False),
        ("town", "discovery.values_per_unit", 4),
        ("(records per unit)", "discovery.lost_record", 1.0),
        ("", "unit.max_records", 12),
    ],
)
def test_what_is_said_of_constants_follows_from_the_schema(place: Path, event: str, name: str, forged: object) -> None:
    release = place / "out" / "release"
    if name.endswith("constant") and forged is True:
        statement = json.loads((release / "privacy.json").read_text())
        next(e for e in statement["events"] if e["id"] == f"discovery:{event}")["discovery"]["constant"] = None
        (release / "privacy.json").write_text(json.dumps(statement))
    assert not with_leaf(release, event, name, forged).sound


def test_a_bound_that_is_said_is_not_discovered(place: Path, capsys) -> None:
    Path("stays.yaml").write_text(SCHEMA.replace("max: 12", "max: 12, counted: 4"))
    assert command("plan", *RUN) == 1
    assert "the schema's unit says that 4 of a unit's records count" in capsys.readouterr().err
    Path("stays.yaml").write_text(SCHEMA.replace("max: 12", "max: 1"))
    assert command("plan", *RUN) == 1
    assert command("check", "data.path=stays.csv", "data.schema=stays.yaml", "privacy.max_records=discover") == 1


def test_a_release_of_persons_may_be_tried_until_its_records_are_near(place: Path) -> None:
    settings = ["accept=[{metric: l1, marginals: 1, at_most: 400}]", "accept_tries=2", "hydra.run.dir=tried"]
    Path("stays.yaml").write_text(Path("out/release/schema.yaml").read_text())
    run = [s for s in RUN if "max_records" not in s]
    assert command("run", *run, *settings) == 0
    assert verify(place / "tried" / "release").sound
    frame = pd.read_csv("tried/release/synthetic.csv", keep_default_na=False)  # a person may have no town
    assert (frame.groupby("patient")[["sex", "town"]].nunique() == 1).all(axis=None)
