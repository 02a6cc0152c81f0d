"""Runs whose schema asks for a noisy histogram of records per unit: synthetic units are as large as the real ones."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from mechanisms.public.domain import Attribute, Domain
from mechanisms.public.queries.query_matrices import Identity
from mechanisms.public.release import Measurements, NoisyMarginal
from mechanisms.public.release_files import load_measurements
from mechanisms.public.schema.table_schema import load_schema
from synthesis.records_per_unit import records_shares, with_records
from tests.pipeline.conftest import SCHEMA, TOWN, command, reply, statement_of

UNIT = "unit_id: {name: person, records: measured, same: [sex], order_by: [age]}\n"
PERSON = ["privacy.unit=person", "privacy.max_records=6", "privacy.epsilon=20", "privacy.delta=1e-6"]


@pytest.fixture
def flats(town: Path) -> Path:
    """600 rows: 60 persons with 4 records each, 180 with 2; the schema asks for their numbers."""
    frame = pd.read_csv("town.csv")
    frame["person"] = [f"a{i // 4}" for i in range(240)] + [f"b{i // 2}" for i in range(360)]
    frame.to_csv("town.csv", index=False)
    (town / "town.yaml").write_text(SCHEMA + UNIT)
    return town


@pytest.mark.parametrize("selection", [["selection=pairs"], ["selection=mst"]])
def test_synthetic_units_have_as_many_records_as_the_noisy_histogram_says(flats, selection):
    settings = [*TOWN, *PERSON, *selection, "synthesis=independent"]
    assert command("run", *settings, "hydra.run.dir=out") == 0
    frame = pd.read_csv("out/release/synthetic.csv")
    sizes = frame.person.value_counts().value_counts(normalize=True)
    assert frame.person.value_counts().max() <= 6
    assert abs(sizes[2] - 0.75) < 0.1 and abs(sizes[4] - 0.25) < 0.1
    assert (frame.groupby("person").sex.nunique() == 1).all()
    statement = statement_of("out")
    charge = next(e for e in statement["events"] if e["id"] == "units:person")
    assert charge["sensitivity"] == 1.0 and charge["share"] == 0.05 and charge["answered"]
    assert statement["private"] and 0.999 < statement["spent"]["epsilon"] / 20 <= 1
    assert "measured" in Path("out/release/schema.yaml").read_text()
    (flats / "town.yaml").unlink()
    assert command("synth", "from=out/release", "output=more", "synthesis.rows=300", "synthesis=independent") == 0
    assert abs(pd.read_csv("more/release/synthetic.csv").person.value_counts().mean() - 2.4) < 0.4


def test_jobs_of_a_sweep_share_the_counted_units(flats):
    values = ["privacy.unit_id_share=0.1,0.5", "synthesis=independent", "evaluation.enabled=false"]
    assert command("run", "-m", *TOWN, *PERSON, *values, "hydra.sweep.dir=many", "hydra/launcher=basic") == 0
    jobs = sorted(Path("many").glob("*/release"))
    assert len(jobs) == 2
    scales = [load_measurements(j / "measurements").histogram.scale for j in jobs]
    assert scales[0] > 1.5 * scales[1]
    assert all("person" in pd.read_csv(j / "synthetic.csv").columns for j in jobs)


def test_plan_shows_the_histogram_and_its_noise_before_a_row_is_read(flats, capsys):
    (flats / "town.csv").unlink()
    said = reply(capsys, "plan", *TOWN, *PERSON, "privacy.neighbouring=replace", "privacy.accountant=zcdp").out
    line = next(x for x in said.splitlines() if "records per person" in x)
    assert "1.41421 (L2)" in line or "2 (L1)" in line
    assert "5 %" in line


def test_a_histogram_of_noise_is_made_non_negative_and_one_without_units_makes_every_row_its_own(town):
    def noisy(values: list[float]) -> NoisyMarginal:
        return NoisyMarginal(("records per id",), Identity(len(values)), np.array(values), "gaussian", 1.0, "units:id")

    assert records_shares(noisy([6.0, -2.0, 3.0])) == ((1, 5 / 7), (3, 2 / 7))
    assert records_shares(noisy([-1.0, -2.0])) == ((1, 1.0),)
    (town / "town.yaml").write_text(SCHEMA + UNIT)
    schema = load_schema(town / "town.yaml")
    lost = Measurements(Domain((Attribute("age", 2),)), ())
    assert with_records(schema, lost) is schema
