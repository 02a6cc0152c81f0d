"""What a released answer shows beyond its noise is in the synthetic table: group means, odds ratios, correlations."""

import math

import numpy as np
import pandas as pd
import pytest
import yaml

from mechanisms.public.errors import UserError
from pipeline import load
from tests.pipeline.conftest import command

SCHEMA = {
    "name": "hospital",
    "source": "invented for the tests",
    "confirmed_public": True,
    "columns": {
        "cost": {"kind": "integer", "min": 0, "max": 99, "bins": {"count": 10}, "missing": False},
        "days": {"kind": "integer", "min": 0, "max": 49, "bins": {"count": 10}, "missing": False},
        "age": {"kind": "integer", "min": 0, "max": 99, "bins": {"count": 10}, "missing": False},
        "ward": {"kind": "categorical", "values": ["surgery", "care", "births", "eyes", "skin"], "missing": False},
        "smokes": {"kind": "categorical", "values": ["no", "yes"], "missing": False},
        "ill": {"kind": "categorical", "values": ["no", "yes"], "missing": False},
        "insured": {"kind": "categorical", "values": ["no", "yes"], "missing": False},
        "shift": {"kind": "categorical", "values": ["day", "late", "night"], "missing": False},
    },
}
ROWS = 8_000
#: A relation is shown by the answers where it is so many standard errors from none: by noise alone one of 30,000 is.
SHOWN = 4.0
#: The synthetic size of it over the size that the answers show lies in this band, wider by two standard errors.
BAND = (0.7, 1.3)


def hospital(seed):
    """Relations whose strength and sign the seed draws, from strong ones to ones that noise drowns."""
    rng = np.random.default_rng([seed, 11])

    def yes(logit):
        return np.where(rng.random(ROWS) < 1 / (1 + np.exp(-logit)), "yes", "no")

    def sign():
        return rng.choice([-1.0, 1.0])

    ward = rng.choice(5, ROWS, p=[0.3, 0.06, 0.14, 0.2, 0.3])
    age = np.clip(rng.normal(45 + sign() * 12 * (ward == 2), 18), 0, 99)
    r = sign() * rng.uniform(0.3, 0.8)
    days = np.clip(25 + 11 * (r * (age - 45) / 18 + math.sqrt(1 - r * r) * rng.normal(size=ROWS)), 0, 49)
    means = rng.permutation([20, 35, 45, 55, 80])
    cost = np.clip(rng.normal(means[ward], 14), 0, 99)
    smokes = rng.random(ROWS) < 0.35
    ill = yes(-0.5 + sign() * rng.uniform(0.8, 2.0) * smokes)
    insured = yes(0.4 + sign() * rng.uniform(0.1, 0.8) * (ill == "yes"))
    names = SCHEMA["columns"]["ward"]["values"]
    return pd.DataFrame(
        {
            "cost": cost.astype(int),
            "days": days.astype(int),
            "age": age.astype(int),
            "ward": [names[w] for w in ward],
            "smokes": np.where(smokes, "yes", "no"),
            "ill": ill,
            "insured": insured,
            "shift": rng.choice(["day", "late", "night"], ROWS),
        }
    )


def middle(column, width):
    return column // width * width + (width - 1) / 2


def synthetic_figures(table):
    """Question → the synthetic figure, as a distance from no relation."""
    cost, days, age = middle(table["cost"], 10), middle(table["days"], 5), middle(table["age"], 10)
    figures = {("correlation", "age", "days"): np.corrcoef(age, days)[0, 1]}
    for a, b in (("smokes", "ill"), ("ill", "insured")):
        n = pd.crosstab(table[a], table[b]).reindex(index=["no", "yes"], columns=["no", "yes"], fill_value=0) + 0.5
        figures["odds_ratio", a, b] = math.log(n.iloc[1, 1] * n.iloc[0, 0] / (n.iloc[0, 1] * n.iloc[1, 0]))
    for name, values in (("cost", cost), ("age", age)):
        for ward, mean in values.groupby(table["ward"]).mean().items():
            figures["mean", name, ward] = mean - values.mean()
    return figures


def shown_figures(release):
    """Question → (figure, standard error) of the released answers, where they tell it."""
    figures = {}
    line = figure(release, "correlation", "age", "days", within_bin="midpoint")
    if line is not None:
        figures["correlation", "age", "days"] = (line["estimate"], line["standard_error"])
    for a, b in (("smokes", "ill"), ("ill", "insured")):
        line = figure(release, "odds_ratio", a, b)
        if line is not None:
            figures["odds_ratio", a, b] = (math.log(line["estimate"]), line["standard_error"] / line["estimate"])
    for name in ("cost", "age"):
        whole = figure(release, "mean", name, within_bin="midpoint")
        lines = worded(release, "mean", name, by="ward", within_bin="midpoint")
        for _, line in (lines if lines is not None else pd.DataFrame()).iterrows():
            error = math.hypot(line["standard_error"], whole["standard_error"])
            figures["mean", name, line["ward"]] = (line["estimate"] - whole["estimate"], error)
    return {k: (f, e) for k, (f, e) in figures.items() if np.isfinite(f) and np.isfinite(e)}


def worded(release, *asked, **more):
    """The estimate; None where no answer tells it, be it over coarser values."""
    try:
        return release.estimate(*asked, **more)
    except UserError as error:
        assert "no measured marginal" in str(error)
        return None


def figure(release, *asked, **more):
    lines = worded(release, *asked, **more)
    return None if lines is None else lines.iloc[0]


@pytest.mark.slow
def test_relations_that_the_answers_show_keep_their_sign_and_size(tmp_path):
    """Ten tables under the default at ε = 1."""
    (tmp_path / "s.yaml").write_text(yaml.safe_dump(SCHEMA), encoding="utf-8")
    kept, kinds = [], set()
    for seed in range(10):
        hospital(seed).to_csv(tmp_path / "t.csv", index=False)
        data = ["data=table", f"data.path={tmp_path}/t.csv", f"data.schema={tmp_path}/s.yaml"]
        where = tmp_path / f"run{seed}"
        more = ["evaluation.enabled=false", f"seed={seed}", f"hydra.run.dir={where}"]
        assert command("run", *data, *more) == 0
        shown = shown_figures(load(where / "release"))
        made = synthetic_figures(pd.read_csv(where / "release" / "synthetic.csv"))
        for asked, (value, error) in shown.items():
            if abs(value) > SHOWN * error:
                slack = 2 * error / abs(value)
                ratio = made[asked] / value
                kept.append((seed, *asked, round(value, 3), round(error, 3), round(ratio, 3)))
                kinds.add(asked[0])
                assert BAND[0] - slack < ratio < BAND[1] + slack and ratio > 0, kept[-1]
    assert kinds == {"correlation", "odds_ratio", "mean"} and len(kept) >= 60, "the tables have relations to keep"
