"""The strongest relations of a release: named at the end of a run, and kept by the synthetic table."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import yaml

from mechanisms.public.coded_table import CodedTable
from mechanisms.public.designs.deviations import PairCells
from mechanisms.public.domain import Attribute, Domain
from mechanisms.public.errors import UserError
from mechanisms.public.queries.query_matrices import Identity
from mechanisms.public.release import Measurements, NoisyDistances
from mechanisms.public.schema.table_schema import parse_schema
from pipeline import load
from pipeline.inference.marginal_estimates import ReleaseEvidence
from pipeline.inference.relations import distances, in_words, strongest
from synthesis.independent import independent_marginals
from tests.pipeline.conftest import command
from tests.pipeline.test_decided import FOUR, TRUTH, answer, column, release


def rows(joint):
    codes = np.repeat(np.arange(TRUTH.size), np.rint(joint.ravel()).astype(int))
    columns = np.unravel_index(codes, TRUTH.shape)
    return CodedTable(FOUR, (*(c.astype(np.uint8) for c in columns), np.zeros(codes.size, np.uint8)))


#: ½ Σ |joint − product| of a and b, which are one: 1 − Σ p².
SHARE = 1 - (0.4**2 + 0.3**2 + 0.2**2 + 0.1**2)
UNRELATED = np.einsum("a,b,c->abc", [0.4, 0.3, 0.2, 0.1], [400.0, 300, 200, 100], [0.25, 0.75])


@pytest.mark.parametrize("distances", [True, False])
def test_a_strong_relation_is_named_with_its_share_and_independence_is_not(distances):
    measured = release(1, 2.0, answer(("a", "b"), 2.0, 1), answer(("a", "c"), 2.0, 2))
    (found,) = strongest(measured if distances else replace(measured, distances=None), rows(TRUTH))
    assert found.pair == ("a", "b") and found.least is not distances
    assert found.share == pytest.approx(SHARE, abs=0.05)
    assert found.kept == pytest.approx(SHARE, abs=0.03)


def test_columns_that_nobody_asked_for_alone_are_no_relation_by_being_uneven():
    known = release(1, 2.0, answer(("a", "b"), 2.0, 1), answer(("a", "c"), 2.0, 2))
    pairs = tuple(a for a in known.answers if len(a.clique) == 2)
    assert [r.pair for r in strongest(replace(known, answers=pairs, distances=None), rows(TRUTH))] == [("a", "b")]


def test_a_relation_that_the_synthetic_table_lacks_is_called_lost():
    measured = release(1, 2.0, answer(("a", "b"), 2.0, 1))
    (kept,), (lost,) = strongest(measured, rows(TRUTH)), strongest(measured, rows(UNRELATED))
    assert "(table: 70%)" in in_words([kept])
    assert "(table: 0%, lost)" in in_words([lost])


def test_a_relation_is_judged_by_the_standard_error_that_distances_are_printed_with():
    """The distance is at 1.9 and 2.1 of them beyond independent columns, whatever it is in its own noise alone."""
    columns = {a.name: {"kind": "categorical", "values": list(range(a.size))} for a in FOUR.attributes}
    schema, measured = parse_schema({"columns": columns}, where="four"), release(1, 20.0)
    error = ReleaseEvidence(measured).distance_error(("a", "b"))
    table = distances(schema, measured).set_index("marginal")
    assert table.loc["a × b", "standard_error"] == round(error, 2) > 4 * 20
    known = measured.distances
    independent = distances_of_nothing(measured)
    for errors, named in ((1.9, 0), (2.1, 1)):
        values = np.array([independent + errors * error, 0.0, 0.0])
        assert len(strongest(replace(measured, distances=replace(known, values=values)), None)) == named


def distances_of_nothing(measured):
    """How far a and b would be from their product by chance and by the noise of their one-way counts."""
    evidence = ReleaseEvidence(measured)
    sides = tuple(evidence.independent((n,)) for n in "ab")
    expected = evidence.independent(("a", "b"))
    return PairCells.of_pair(expected, sides, (20.0, 20.0), Identity(expected.size)).base(measured.distances.below)


def test_independent_columns_of_few_records_are_no_relation():
    domain = Domain(tuple(Attribute(n, 12) for n in "abcdef"))
    pairs = tuple(itertools.combinations("abcdef", 2))
    for seed in range(20):
        drawn = np.random.default_rng(seed)
        codes = drawn.integers(0, 12, (6, 600))
        ones = [np.bincount(c, minlength=12) + drawn.normal(0, 15.0, 12) for c in codes]
        answers = tuple(column(n, v, 15.0) for n, v in zip("abcdef", ones, strict=True))
        expected = independent_marginals(Measurements(domain, answers))
        of = dict(zip("abcdef", codes, strict=True))
        counts = {(a, b): np.bincount(of[a] * 12 + of[b], minlength=144) for a, b in pairs}
        exact = [np.abs(counts[pair] - expected(pair)).sum() for pair in pairs]
        noisy = np.array(exact) + drawn.normal(0, 10.0, len(pairs))
        scored = NoisyDistances(pairs, np.ones(len(pairs), np.bool_), noisy, 6, "gaussian", 10.0, "y")
        assert strongest(Measurements(domain, answers, distances=scored), None) == ()


def test_noise_alone_is_no_relation():
    """Four standard errors: red by chance in fewer than one of 10⁴ drawings, and these are seeded."""
    for seed in range(20):
        noisy = release(seed, 2_000.0, answer(("a", "b"), 2_000.0, seed), answer(("a", "c"), 2_000.0, seed))
        assert strongest(noisy, rows(TRUTH)) == ()
        assert strongest(replace(noisy, distances=None), rows(TRUTH)) == ()


WARDS, SHIFTS = ["surgery", "care", "births", "eyes", "skin"], ["day", "late", "night"]
NUMBERS = {"cost": 99, "days": 49, "age": 99}
LISTS = {"ward": WARDS, **{name: ["no", "yes"] for name in ("smokes", "ill", "insured")}, "shift": SHIFTS}
COLUMNS = {n: {"kind": "integer", "min": 0, "max": most, "bins": {"count": 10}} for n, most in NUMBERS.items()}
COLUMNS |= {name: {"kind": "categorical", "values": values} for name, values in LISTS.items()}
SCHEMA = {"confirmed_public": True, "columns": {name: own | {"missing": False} for name, own in COLUMNS.items()}}
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
    numbers = {"cost": cost.astype(int), "days": days.astype(int), "age": age.astype(int)}
    texts = {"ward": np.array(WARDS)[ward], "smokes": np.where(smokes, "yes", "no"), "ill": ill, "insured": insured}
    return pd.DataFrame({**numbers, **texts, "shift": rng.choice(SHIFTS, ROWS)})


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


def shown(release, *asked, **more):
    """The lines of an estimate; none where no answer tells it, be it over coarser values."""
    try:
        return release.estimate(*asked, **more).to_dict("records")
    except UserError as error:
        assert "no measured marginal" in str(error)
        return []


def shown_figures(release):
    """Question → (figure, standard error) of the released answers, where they tell it."""
    figures = {}
    for line in shown(release, "correlation", "age", "days", within_bin="midpoint"):
        figures["correlation", "age", "days"] = (line["estimate"], line["standard_error"])
    for a, b in (("smokes", "ill"), ("ill", "insured")):
        for line in shown(release, "odds_ratio", a, b):
            figures["odds_ratio", a, b] = (math.log(line["estimate"]), line["standard_error"] / line["estimate"])
    for name in ("cost", "age"):
        (whole,) = shown(release, "mean", name, within_bin="midpoint")
        for line in shown(release, "mean", name, by="ward", within_bin="midpoint"):
            error = math.hypot(line["standard_error"], whole["standard_error"])
            figures["mean", name, line["ward"]] = (line["estimate"] - whole["estimate"], error)
    return {k: (f, e) for k, (f, e) in figures.items() if np.isfinite(f) and np.isfinite(e)}


@pytest.mark.slow
def test_relations_that_the_answers_show_keep_their_sign_and_size(tmp_path):
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
