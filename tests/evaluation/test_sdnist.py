"""SDNist's k-marginal score against a transcription of its definition, and against what NIST published of one table."""

import itertools
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from evaluation.metric import Inputs, Options
from evaluation.metrics import METRICS
from evaluation.papers.challenges.kmarginal import SUBSAMPLES, distances, in_bins, matches
from evaluation.values.value_tables import Values
from mechanisms.public.schema.table_schema import load_schema, part_of
from pipeline.conf_folder import SCHEMAS
from tests.evaluation.worlds import result_of, values_of

NATIONAL = load_schema(SCHEMAS / "national2019.yaml")
NUMBERS = ("AGEP", "PINCP", "POVPIP", "PWGTP", "WGTP")


def people(rows: int, seed: int) -> pd.DataFrame:
    """Rows in the dictionary's values; who is poor depends on age, area and sex."""
    rng = np.random.default_rng(seed)
    age = rng.integers(0, 96, rows)
    poor = np.minimum(rng.integers(0, 400, rows) + age * 3, 501)
    areas = np.array(NATIONAL["PUMA"].values or ())[rng.integers(0, 4, rows)]
    density = pd.Series(areas).map(dict(zip(sorted(set(areas)), (2731.2, 33632.6, 73.0, 90.7), strict=False)))
    income = np.where(age < 15, "N", (rng.integers(-3, 90, rows) * 1000).astype(float).astype(str))
    return pd.DataFrame(
        {
            "PUMA": areas,
            "AGEP": age,
            "SEX": np.where(poor > 200, 1, 2),
            "NOC": np.where(rng.random(rows) < 0.1, "N", rng.integers(0, 4, rows).astype(str)),
            "DENSITY": density,
            "INDP": rng.choice(["N", "170", "9920"], rows),
            "PINCP": income,
            "POVPIP": np.where(rng.random(rows) < 0.1, "N", poor.astype(str)),
        }
    )


def read(folder: Path, real: pd.DataFrame, synthetic: pd.DataFrame) -> Values:
    return values_of(folder, real, synthetic, part_of(NATIONAL, list(real.columns), where="test"))


def transcribed(real: pd.DataFrame, synthetic: pd.DataFrame, by: str | None) -> float:
    """As SDNist's files do it: ranks of the target in 20 parts, the other table cut at each part's largest value."""
    sides = [f.astype(str).copy() for f in (real, synthetic)]
    for name in set(NUMBERS) & set(real.columns):
        there = [side[name] != "N" for side in sides]
        known = [side.loc[t, name].astype(float).astype(int) for side, t in zip(sides, there, strict=True)]
        part = known[0].rank(pct=True).apply(lambda x: int(20 * x) if x < 1 else 19)
        sides[0].loc[there[0], name] = part.astype(str)
        ends = known[0].groupby(part).max()
        cut = known[1].apply(lambda v, e=ends: e.index[min(int((e < v).sum()), len(e) - 1)])
        sides[1].loc[there[1], name] = cut.astype(str)
    if "DENSITY" in real:
        edges = [0, 150, *np.logspace(np.log10(10), np.log10(52864.7 + 500), 21)[8:]]
        for side in sides:
            side["DENSITY"] = pd.cut(side["DENSITY"].astype(float), edges, labels=False)
    names = sorted(set(real.columns) - {by, "INDP"})
    apart = []
    for pair in itertools.combinations(names, 2):
        columns = [*pair, *([] if by is None else [by])]
        p, q = (side.groupby(columns).size() / len(side) for side in sides)
        apart.append(p.subtract(q, fill_value=0).abs().sum())
    return float(500 * (2 - np.mean(apart)))


def scored(values, by):
    tables = values.tables["real"], values.tables["synthetic"]
    return result_of("sdnist_kmarginal", *tables, {"area": by}, values=values)


@pytest.mark.parametrize("by", [None, "PUMA"])
def test_the_score_is_the_one_of_sdnists_files(by, tmp_path):
    real, synthetic = people(3000, 1), people(2000, 2)
    synthetic.loc[:50, "PINCP"] = "5000000.0"
    synthetic.loc[50:90, "DENSITY"] = 15097.5
    values = read(tmp_path, real, synthetic)
    made = scored(values, by)
    assert made.score == pytest.approx(transcribed(real, synthetic, by), abs=1e-9)
    assert [each["share"] for each in made.details["subsamples"]] == list(SUBSAMPLES)
    scores = [each["score"] for each in made.details["subsamples"]]
    assert scores[0] < scores[1] < scores[2] < 1000 and made.details["independent"] < scores[1]


def test_an_areas_score_counts_its_own_records_alone(tmp_path):
    real = people(3000, 1)
    first = real["PUMA"].iloc[0]
    synthetic = real.assign(SEX=real["SEX"].where(real["PUMA"] != first, 3 - real["SEX"]))
    values = read(tmp_path, real, synthetic)
    made = scored(values, "PUMA")
    areas, columns = made.details["areas"], [each["column"] for each in made.details["columns"]]
    scores = {each["area"]: each["score"] for each in areas}
    assert all(score == pytest.approx(1000) for area, score in scores.items() if area != first)
    assert areas[0]["area"] == first and scores[first] < 900
    assert columns[0] == "SEX" and "INDP" not in columns


def test_matches_are_counted_as_by_hand(tmp_path):
    real = pd.DataFrame({"SEX": [1, 2, 1, 1], "HISP": [0, 0, 3, 3], "AGEP": [40, 41, 42, 42]})
    synthetic = pd.DataFrame({"SEX": [1, 2, 2], "HISP": [0, 0, 4], "AGEP": [40, 50, 60]})
    values = read(tmp_path, real, synthetic)
    found = matches(values.tables["real"], values.tables["synthetic"])
    assert (found["unique"], found["exact"]) == (2, 1), "the twins are nobody's own; one of two others is seen again"
    assert (found["quasi"], found["apparent"], found["agreeing"]) == (["SEX", "HISP"], 2, 0.5)


#: Columns, and what NIST printed of its own subsamples, in reports of AIM and MST (the archive's release 1.1).
PUBLISHED = {
    "demographic": ("AGEP,SEX,MSP,RAC1P,HOUSING_TYPE,OWN_RENT,EDU,PINCP_DECILE,DVET,DEYE", (969, 987, 996)),
    "industry": ("PUMA,SEX,MSP,HISP,RAC1P,OWN_RENT,INDP_CAT,EDU,PINCP_DECILE", (848, 935, 983)),
    "family": ("PUMA,AGEP,SEX,MSP,HISP,RAC1P,NOC,NPF,OWN_RENT,PINCP_DECILE,POVPIP", (833, 930, 981)),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_subsamples_of_the_published_table_score_as_published(name, tmp_path):
    path = Path(os.environ.get("DATA_DIR", "data")) / "national2019.csv.gz"
    if not path.exists():
        pytest.skip(f"left out: no {path.name} (DATA_DIR says where)")
    columns, published = PUBLISHED[name]
    real = pd.read_csv(path, dtype=str, keep_default_na=False)[columns.split(",")]
    values = read(tmp_path, real, real.head(100))
    by = "PUMA" if "PUMA" in columns else None
    made = scored(values, by)
    assert [each["score"] for each in made.details["subsamples"]] == pytest.approx(published, abs=4)
    if name == "family":
        binned = in_bins(
            Inputs(METRICS["sdnist_kmarginal"], *2 * [values.tables["real"]], None, Options(values=values))
        )[0]
        counts = np.bincount(binned.column("POVPIP"))
        assert counts.max() == 9972 and counts[:-1].min() == 333, "as NIST's report counts the bins of POVPIP"
        assert distances(binned, binned, by).score == 1000
