"""Numbers keep their shape from the table to the release, and from the release to every table made of it again."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml

import pipeline
from mechanisms.public.schema.table_schema import parse_schema
from pipeline import release_folder
from pipeline.release_folder import cells_frame, read_release
from pipeline.report.last_lines import scored_lines
from tests.pipeline.conftest import TOWN, command, done_in, edit, reply, statement_of

SCHEMA = """
name: hospital
source: invented for the tests
confirmed_public: true
columns:
  ward: {kind: categorical, values: [a, b, c], missing: false}
  charge: {kind: float, min: 0, max: 1000000, bins: {count: 20}, decimals: 2}
  stay: {kind: integer, min: 0, max: 200, bins: {count: 5}, missing: false}
"""
#: Below these levels half of a ward's charges lie: most of them in the first of 20 bins, which ends at 50,000.
LEVELS = {"a": 7.0, "b": 8.0, "c": 9.0}
HOSPITAL = ["data=table", "data.path=hospital.csv", "data.schema=hospital.yaml", "evaluation.enabled=false"]


def hospital(rows: int = 30_000) -> pd.DataFrame:
    rng = np.random.default_rng(2)
    ward = rng.choice(list(LEVELS), rows)
    charge = np.exp(rng.normal(pd.Series(ward).map(LEVELS).to_numpy(), 1.0)).clip(0, 1e6).round(2)
    stay = np.where(rng.random(rows) < 0.3, 0, rng.geometric(0.2, rows).clip(0, 200))
    return pd.DataFrame({"ward": ward, "charge": np.where(rng.random(rows) < 0.1, np.nan, charge), "stay": stay})


@pytest.fixture(scope="module")
def done(tmp_path_factory) -> Path:
    """The folder of a run of the default on the hospital, fixed noise."""
    folder = tmp_path_factory.mktemp("numbers")
    hospital().to_csv(folder / "hospital.csv", index=False)
    (folder / "hospital.yaml").write_text(SCHEMA, encoding="utf-8")
    return done_in(folder, "run", *HOSPITAL, "privacy.noise_seed=5", "synthesis.seed=5", "hydra.run.dir=out")


def assert_shape_kept(made: pd.DataFrame) -> None:
    real = hospital()
    assert made.charge.mean() == pytest.approx(real.charge.mean(), rel=0.05), "3.6 times as large from even bins"
    assert made.stay.mean() == pytest.approx(real.stay.mean(), rel=0.05)
    assert (made.stay == 0).mean() == pytest.approx((real.stay == 0).mean(), abs=0.02)
    assert made.charge.isna().mean() == pytest.approx(real.charge.isna().mean(), abs=0.02)
    for q in (0.25, 0.5, 0.75, 0.99):
        assert made.charge.quantile(q) == pytest.approx(real.charge.quantile(q), rel=0.1)
    means = pd.DataFrame({"real": real.groupby("ward").charge.mean(), "made": made.groupby("ward").charge.mean()})
    assert ((means.made / means.real - 1).abs() < 0.15).all()
    assert made.charge.dropna().map(lambda v: round(v, 2) == v).all()


def test_the_released_table_and_one_made_again_of_it_keep_means_quantiles_peaks_and_groups(done, monkeypatch):
    assert_shape_kept(pd.read_csv(done / "out" / "release" / "synthetic.csv"))
    monkeypatch.chdir(done)
    assert command("synth", "from=out/release", "output=again", "synthesis.seed=9") == 0
    assert_shape_kept(pd.read_csv(done / "again" / "release" / "synthetic.csv"))


def test_zeros_stay_apart_from_small_amounts_in_every_pair_of_a_heavy_tailed_column(folder):
    """Nine of ten amounts lie in the first twentieth of a hundredth of the range, and half of all are 0."""
    rng = np.random.default_rng(12)
    region = rng.integers(0, 6, 30_000)
    amount = np.exp(rng.normal(7.2, 1.9, region.size)).clip(0.01, 16_500_000).round(2)
    amount[rng.random(region.size) < 0.4 + 0.04 * region] = 0.0
    real = pd.DataFrame({"region": region, "amount": amount, "paid": np.where(amount > 0, "yes", "no")})
    real.to_csv("paid.csv", index=False)
    Path("paid.yaml").write_text("""confirmed_public: true
columns:
  region: {kind: categorical, size: 6, missing: false}
  amount: {kind: float, min: 0, max: 17000000, bins: {count: 20}, decimals: 2, missing: false}
  paid: {kind: flag, "true": ["yes"], "false": ["no"], missing: false}
""")
    own = ["data.path=paid.csv", "data.schema=paid.yaml", "privacy.noise_seed=3", "synthesis.seed=3"]
    assert command("run", "data=table", *own, "evaluation.enabled=false", "hydra.run.dir=out") == 0
    made = pd.read_csv("out/release/synthetic.csv")
    assert ((made.amount == 0) != (made.paid == "no")).mean() < 0.01, "one in two without a bin of its own for 0"
    shares = [(d.amount == 0).groupby(d.region).mean() for d in (real, made)]
    assert (abs(shares[1] - shares[0]) < 0.03).all()
    for q in (0.6, 0.9):
        assert made.amount.quantile(q) == pytest.approx(real.amount.quantile(q), rel=0.15)


def test_fine_columns_are_paid_for_named_in_plan_and_statement_and_read_back_from_the_release(
    done, capsys, monkeypatch
):
    monkeypatch.chdir(done)
    said = statement_of(done / "out")
    fine = [e for e in said["events"] if e.get("stage") == "fine"]
    assert {tuple(e["clique"]) for e in fine} == {("charge (fine)",), ("stay (fine)",)}
    assert sum(e["share"] for e in fine) == pytest.approx(0.1) and all(e["answered"] for e in fine)
    assert said["spent"]["epsilon"] == pytest.approx(1.0, rel=1e-3) and said["spent"]["epsilon"] <= 1.0
    text = reply(capsys, "plan", *HOSPITAL, "plan.rows=30000", "plan.details=true").out
    assert "numbers and dates, each alone" in text and "charge (fine)" in text
    schema, _, measurements = read_release(done / "out" / "release")
    assert schema.measured == measurements.domain and set(schema.fine) == {"charge", "stay"}
    assert {"charge (fine)", "stay (fine)"} <= {n for a in measurements.answers for n in a.clique}
    declared = yaml.safe_load((done / "out" / "release" / "schema.yaml").read_text(encoding="utf-8"))["columns"]
    assert declared["charge"]["fine"] == 256 and "fine" not in declared["ward"]
    assert not any("shape" in fields for fields in declared.values()), "the released schema holds public facts alone"


def test_charges_stand_in_their_order_and_the_release_is_sound(town):
    assert command("run", *TOWN, "evaluation.enabled=false", "hydra.run.dir=out") == 0
    assert command("verify", "out/release") == 0
    said = statement_of(town / "out")
    stages = list(dict.fromkeys(e["stage"] for e in said["events"]))
    assert stages[:3] == ["given", "fine", "scores"], "though the slots of fine columns stand behind those of distances"
    assert json.loads((town / "out/release/measurements/index.json").read_text())["distances"]["answers"] > 0


@pytest.mark.parametrize("setting", ["selection=pairs", "selection.marginals=[[age]]", "selection.fine_cells=0"])
def test_where_no_fine_cells_are_wanted_a_column_may_ask_for_them_except_beside_listed_marginals(town, setting):
    own = ["run", *TOWN, setting, "synthesis=independent", "evaluation.enabled=false"]
    assert command(*own, "hydra.run.dir=none") == 0
    edit(town / "town.yaml", "bins: {count: 10}", "bins: {count: 10}, fine: 20")
    assert command(*own, "hydra.run.dir=own") == 0
    none, own = (read_release(town / name / "release") for name in ("none", "own"))
    asked = ("age (fine)",) in {a.clique for a in own[2].answers}
    assert not none[0].fine and asked != ("[[age]]" in setting)


def test_rows_given_a_range_follow_the_curve_inside_it(done, monkeypatch):
    monkeypatch.chdir(done)
    condition = ["where={charge: [1234, 4000]}", "rows=800"]
    assert command("synth", "from=out/release", "output=given", "synthesis.seed=3", *condition) == 0
    made, real = pd.read_csv(done / "given" / "release" / "synthetic.csv").charge, hospital().charge
    assert len(made) == 800 and made.between(1234, 4000).all()
    inside = real[real.between(1234, 4000)]
    assert made.mean() == pytest.approx(inside.mean(), rel=0.05)


def test_narrow_bins_over_a_wide_range_are_measured_scored_and_read_again(folder):
    """Such a run was refused for its scores; without these it spent its budget on a release that nothing could read."""
    columns = {"fare": {"kind": "integer", "min": 0, "max": 1000, "bins": {"count": 100}, "missing": False}}
    Path("s.yaml").write_text(yaml.safe_dump({"columns": columns, "confirmed_public": True}), encoding="utf-8")
    rng = np.random.default_rng(4)
    pd.DataFrame({"fare": rng.geometric(0.02, 3000)}).to_csv("t.csv", index=False)
    assert command("run", "data=table", "data.path=t.csv", "data.schema=s.yaml", "hydra.run.dir=out") == 0
    assert command("verify", "out/release") == 0
    assert command("synth", "from=out/release", "output=again") == 0


def test_a_column_of_which_a_tenth_of_the_records_lies_elsewhere_is_named_beside_the_accuracy():
    """One column of fifteen held a third of its records in a value of a sixth, under "single columns fair"."""
    names = np.array(["a", "b", "c", "d"])
    real = pd.DataFrame({"one": names[np.arange(2000) % 4], "two": names[np.arange(2000) % 3]})
    made = real.assign(one=names[np.where(np.arange(2000) % 7 < 2, 0, np.arange(2000) % 4)])
    for own, said in ((made, ["farthest from the real table: one (21% of its records misplaced)"]), (real, [])):
        lines = scored_lines(pipeline.score(real, own, metrics=["anita_1way"]))
        assert [line for line in lines if line.startswith("farthest")] == said


def test_a_pair_of_which_a_quarter_of_the_records_lies_elsewhere_is_named_beside_good_columns():
    """Rents no longer followed areas (a correlation of 0.91 was 0.14), and "pairs good" was all that a run said."""
    real = pd.DataFrame({"area": np.arange(2000) % 100, "rent": np.arange(2000) % 100, "year": np.arange(2000) // 500})
    made = real.assign(rent=np.random.default_rng(0).permutation(real["rent"]))
    (line,) = [t for t in scored_lines(pipeline.score(real, made, metrics="quick")) if t.startswith("farthest")]
    assert line.startswith("farthest from the real table: area × rent (") and line.count("×") == 1


def test_means_far_from_the_real_ones_are_said_beside_the_accuracy_of_columns():
    """A total that binning had halved stood under "columns good": of amounts, few rows hold it."""
    rng = np.random.default_rng(0)
    n = 2000
    costs, ages = np.exp(rng.normal(5, 2, n)), rng.integers(18, 90, n)
    real = pd.DataFrame({"cost": costs, "age": ages, "off": rng.normal(0, 9, n)})
    made = real.assign(cost=real["cost"].clip(upper=real["cost"].quantile(0.97)), off=real["off"] + 0.5)
    made["age"] = rng.integers(18, 94, n)
    (line,) = pipeline.score(real, made, metrics=["anita_1way"]).notices
    cost, few = made["cost"].mean(), np.sort(costs)[-20:].sum() / costs.sum()
    said = f"cost {cost:,.0f} (real {costs.mean():,.0f}; 1% of the real rows hold {few:.0%} of the total)"
    assert line == f"means, and so totals, far from the real ones: {said}", "no word of age, nor of what lies around 0"
    rows, means = pipeline.score(real, pd.concat([made, made]), metrics=["anita_1way"]).notices
    assert rows == "rows, and so totals, far from the real ones: 4,000 (real 2,000)"
    assert means.startswith(f"means far from the real ones: {said}"), "this total is not so far as its mean"
    worse = real.assign(off=real["off"] + 3, age=real["age"] * 2)
    (line,) = pipeline.score(real, worse, metrics=["anita_1way"]).notices
    assert "off 3" in line and "age 10" in line and "cost" not in line
    fallen = real.assign(age=54)
    fallen.loc[:9, "age"] = 53  # all in one bin of a column with the right mean
    (line,) = pipeline.score(real, fallen, metrics=["anita_1way"]).notices
    assert line == "standard deviations, far from the real ones: age 0.0706 (real 20.8)"
    for seed in range(3):
        drawn = real.sample(n, replace=True, random_state=seed)
        assert not pipeline.score(real, drawn, metrics=["anita_1way"]).notices


def test_labels_of_many_codes_are_told_apart_without_comparing_all_with_all(monkeypatch):
    """A minute for 60,000 codes, in each of their marginals."""
    compared = []

    class Label(str):
        __hash__ = str.__hash__

        def __eq__(self, other):
            compared.append(other)
            return str(self) == str(other)

    monkeypatch.setattr(release_folder, "attribute_labels", lambda *_: [Label(k % 1999) for k in range(2000)])
    schema = parse_schema({"columns": {"c": {"kind": "categorical", "size": 2000, "missing": False}}}, where="s")
    labels = cells_frame(schema, ("c",))["c"]
    assert labels[1999] == "(0)" and len({*map(str, labels)}) == 2000 and len(compared) < 20_000
