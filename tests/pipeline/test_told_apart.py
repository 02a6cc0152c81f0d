"""A release that copies rows, one that overfits and one with ε = 1 are told apart by the verdict and by attacks."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.pipeline.conftest import command

ROWS = 3000
ATTACKS = "[tvd,singling_out,linkage,attribute_inference,membership_inference]"


def mixed(rows: int, seed: int) -> pd.DataFrame:
    """Numbers and words that hang together through what nobody sees."""
    rng = np.random.default_rng(seed)
    hidden = rng.random(rows)
    frame = {"wage": np.round(20_000 * np.exp(hidden + rng.normal(0, 0.4, rows))).astype(int)}
    frame["age"] = np.clip(18 + 60 * hidden + rng.normal(0, 8, rows), 18, 90).astype(int)
    for i, values in enumerate((12, 30, 5, 8)):
        noisy = np.clip(hidden + rng.normal(0, 0.25, rows), 0, 0.999)
        frame[f"word{i}"] = [f"w{int(v * values)}" for v in noisy]
    frame["code"] = [f"c{v}" for v in rng.integers(0, 40, rows)]
    return pd.DataFrame(frame)


def clustered(rows: int, seed: int) -> pd.DataFrame:
    """Nine groups, alike inside, with outliers."""
    rng = np.random.default_rng(seed)
    middles = np.random.default_rng(99).integers(0, 100, (9, 8))
    values = middles[rng.integers(0, 9, rows)] + np.round(rng.standard_t(3, (rows, 8)) * 4).astype(int)
    return pd.DataFrame(np.clip(values, -30, 130), columns=[f"v{i}" for i in range(8)])


SCHEMAS = {
    "mixed": {
        "wage": {"kind": "integer", "min": 0, "max": 500_000, "bins": {"count": 50}},
        "age": {"kind": "integer", "min": 18, "max": 90, "bins": {"count": 12}},
        **{
            f"word{i}": {"kind": "categorical", "values": [f"w{v}" for v in range(n)]}
            for i, n in enumerate((12, 30, 5, 8))
        },
        "code": {"kind": "categorical", "values": [f"c{v}" for v in range(40)]},
    },
    "clustered": {f"v{i}": {"kind": "integer", "min": -30, "max": 130, "bins": {"count": 80}} for i in range(8)},
}


def write_schema(columns: dict) -> None:
    facts = {"name": "made", "source": "invented", "confirmed_public": True, "columns": columns}
    Path("made.yaml").write_text(json.dumps(facts), encoding="utf-8")


def with_one_value_changed(real: pd.DataFrame) -> pd.DataFrame:
    """What overfits: each row a training row but for one value, which is another row's."""
    rng = np.random.default_rng(1)
    made, place = real.copy(), rng.integers(0, real.shape[1], len(real))
    for i, name in enumerate(real.columns):
        made[name] = np.where(place == i, rng.permutation(real[name].to_numpy()), real[name])
    return made


@pytest.mark.slow
@pytest.mark.parametrize("family", [mixed, clustered])
def test_copies_overfitting_and_epsilon_1_are_told_apart(family, folder):
    whole = family(3 * ROWS, 5)
    real, holdout, fresh = (whole.iloc[i * ROWS : (i + 1) * ROWS] for i in range(3))
    real.to_csv("real.csv", index=False)
    holdout.to_csv("holdout.csv", index=False)
    write_schema(SCHEMAS[family.__name__])
    data = ["data=table", "data.path=real.csv", "data.schema=made.yaml", "privacy.epsilon=1"]
    assert command("run", *data, "evaluation.enabled=false", "hydra.run.dir=out") == 0
    tables = {
        "copies": pd.concat([real.iloc[: ROWS // 50], fresh.iloc[ROWS // 50 :]]),
        "overfit": with_one_value_changed(real),
        "epsilon": pd.read_csv("out/release/synthetic.csv"),
        "fresh": fresh,
    }
    privacy, auc = {}, {}
    for name, table in tables.items():
        table.to_csv(f"{name}.csv", index=False)
        asked = ["real=real.csv", f"synthetic={name}.csv", "holdout=holdout.csv", "schema=made.yaml"]
        assert command("score", *asked, f"metrics={ATTACKS}", f"output={name}.json") == 0
        scores = json.loads((folder / f"{name}.json").read_text())
        privacy[name] = scores["privacy"]
        auc[name] = scores["metrics"]["membership_inference"]["details"]["attacks"]
    verdicts = {name: p["verdict"] for name, p in privacy.items()}
    assert verdicts.pop("epsilon") != "failed"  # its rows follow from noise, and may be too few matches to be judged
    assert verdicts == {"copies": "failed", "overfit": "failed", "fresh": "passed"}
    assert privacy["copies"]["why"] == "copies of training rows"
    assert auc["overfit"]["distance"]["auc"]["low"] > 0.6
    for name in ("epsilon", "fresh"):
        assert all(a["auc"]["low"] <= 0.55 and a["auc"]["high"] < 0.62 for a in auc[name].values())


def test_a_run_shows_what_its_promise_allows_beside_the_attack(folder, capsys):
    mixed(600, 2).to_csv("real.csv", index=False)
    write_schema(SCHEMAS["mixed"])
    settings = ["data=table", "data.path=real.csv", "data.schema=made.yaml", "evaluation.holdout=0.4"]
    settings += ["privacy.epsilon=1", "evaluation.metrics=[membership_inference]", "console=always"]
    settings += ["selection=oneway", "synthesis=independent"]
    assert command("run", *settings, "hydra.run.dir=out") == 0
    scores = json.loads((folder / "out" / "internal" / "scores.json").read_text())
    bound = scores["metrics"]["membership_inference"]["details"]["bound"]
    assert bound["epsilon"] == pytest.approx(1, abs=0.01)
    assert 0.1 < bound["advantage"] <= 0.463 and 0.5 < bound["auc"] <= 0.732
    page = (folder / "out" / "internal" / "report.html").read_text(encoding="utf-8")
    assert 'id="attacks"' in page and "at most, by ε = 1" in page
    assert "attack, membership by" in capsys.readouterr().out
    assert command("run", *settings, "privacy.neighbouring=replace", "hydra.run.dir=other") == 0
    scores = json.loads((folder / "other" / "internal" / "scores.json").read_text())
    assert "bound" not in scores["metrics"]["membership_inference"]["details"]


def test_the_verdict_of_a_run_reads_values_and_not_bins(folder):
    rng = np.random.default_rng(0)
    pd.DataFrame({"a": rng.integers(0, 10_000, 900), "b": rng.integers(0, 10_000, 900)}).to_csv("real.csv", index=False)
    columns = {name: {"kind": "integer", "min": 0, "max": 9_999, "bins": {"count": 4}} for name in "ab"}
    write_schema(columns)
    settings = ["data=table", "data.path=real.csv", "data.schema=made.yaml", "evaluation.holdout=0.4"]
    settings += ["evaluation.metrics=[tvd]", "selection=oneway", "synthesis=independent"]
    assert command("run", *settings, "hydra.run.dir=out") == 0
    privacy = json.loads((folder / "out" / "internal" / "scores.json").read_text())["privacy"]
    assert privacy["rows"]["training"] + privacy["rows"]["holdout"] == 900
    assert privacy["holdout_rows_that_equal_a_training_row"]["share"] < 0.01
