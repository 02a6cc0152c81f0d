"""`query` of a range that cuts a bin: it says so, and its interval holds whatever the bin hides."""

import io

import numpy as np
import pandas as pd
import pytest

from mechanisms.public.errors import UserError
from mechanisms.public.queries.query_matrices import Identity, SparseQuery
from mechanisms.public.release import Measurements, NoisyMarginal
from mechanisms.public.rules.fine_columns import with_fine_columns
from mechanisms.public.schema.fine_cells import fine_codes, plain_edges
from mechanisms.public.schema.table_schema import parse_schema
from pipeline.inference.estimate_questions import EstimateQuestion as question
from pipeline.inference.estimates import estimate
from pipeline.release_query import answer
from tests.pipeline.conftest import PAIRS, TOWN, command, people, reply

AGES = parse_schema(
    {
        "columns": {
            "age": {"kind": "integer", "min": 0, "max": 119, "bins": {"count": 6}, "missing": False},
            "fare": {"kind": "float", "min": 0, "max": 100, "bins": {"edges": [0, 10, 100]}, "missing": False},
            "sex": {"kind": "categorical", "values": ["f", "m"], "missing": True},
        }
    },
    where="s",
)


def worded(ages, fares=(900.0, 100.0), sigma=5.0):
    """Noisy answers without luck: the counts themselves."""
    answers = [
        NoisyMarginal(("age",), Identity(6), np.array(ages, float), "gaussian", sigma, "x"),
        NoisyMarginal(("fare",), Identity(2), np.array(fares, float), "gaussian", sigma, "y"),
        NoisyMarginal(("sex",), Identity(3), np.array([40.0, 50, 10]), "gaussian", sigma, "z"),
    ]
    return Measurements(AGES.measured, tuple(answers))


NOISE = 1.96 * 5


@pytest.mark.parametrize(
    ("where", "count", "low", "high", "cut"),
    [
        # only the table knows how many of the 110 records from 100 to 119 are at most 110: all of them, or none
        ({"age": [80, 110]}, 60 + 110 * 11 / 20, 60 - NOISE, 170 + NOISE * np.sqrt(2), "age: 100 to 119"),
        ({"fare": [50, 60]}, None, 0, 100 + NOISE, "fare: 10 to 100"),
        ({"age": [20, 59]}, 600, 600 - NOISE * np.sqrt(2), 600 + NOISE * np.sqrt(2), ""),  # its noise alone
    ],
)
def test_a_range_that_cuts_a_bin_may_hold_all_of_it_and_one_of_whole_bins_has_the_interval_of_its_noise(
    where, count, low, high, cut
):
    row = answer(AGES, worded([300.0, 400, 200, 80, 60, 110]), where=where).iloc[0]
    assert row["cut"] == cut and (count is None or row["count"] == pytest.approx(count, abs=0.01))
    assert (row["low"], row["high"]) == pytest.approx((low, high), abs=0.02)


def test_one_value_and_lists_of_values_are_asked_alike():
    known = worded([300.0, 400, 200, 80, 60, 110])
    assert answer(AGES, known, where={"age": 25})["count"][0] == 20
    assert answer(AGES, known, where={"age": [25, 26, 45]})["count"][0] == 50
    assert answer(AGES, known, where={"sex": None})["count"][0] == 10
    assert answer(AGES, known, where={"sex": ["f", "missing"]})["count"][0] == 50


def test_answers_of_merged_bins_tell_no_part_of_them():
    halves = SparseQuery.of(np.kron(np.eye(2), np.ones(3)))
    answers = (NoisyMarginal(("age",), halves, np.array([900.0, 250]), "gaussian", 5.0, "x"),)
    known = Measurements(AGES.measured, answers)
    assert answer(AGES, known, where={"age": [0, 59]})["count"][0] == 900
    with pytest.raises(UserError, match="over coarser values"):
        answer(AGES, known, where={"age": [0, 20]})


CHARGES = with_fine_columns(
    parse_schema(
        {
            "columns": {
                "charge": {"kind": "float", "min": 0, "max": 100_000, "bins": {"count": 20}, "decimals": 2},
                "stay": {"kind": "integer", "min": 0, "max": 199, "bins": {"count": 10}, "missing": False},
                "sex": {"kind": "categorical", "values": ["f", "m"], "missing": False},
            }
        },
        where="s",
    ),
    256,
)


def stays(rows=20_000):
    rng = np.random.default_rng(4)
    charge = np.where(rng.random(rows) < 0.1, 1_500.0, np.round(np.exp(rng.normal(7.5, 1.0, rows)), 2))
    stay = rng.geometric(0.08, rows).clip(0, 199)
    return pd.DataFrame({"charge": charge.clip(0, 100_000), "stay": stay, "sex": rng.integers(0, 2, rows)})


def noisy_answers(table, rng, sigma=15.0):
    """Answers about every column, its fine cells, and stay by sex, as a run would leave them."""
    cells, answers = {}, []
    for name, column in ((n, CHARGES[n]) for n in ("charge", "stay")):
        bins = np.searchsorted(plain_edges(column), table[name], side="right") - 1
        cells[name] = np.minimum(bins, column.value_codes - 1)
        cells[f"{name} (fine)"] = fine_codes(column, cells[name], table[name].to_numpy(float))
    cells["sex"] = table.sex.to_numpy()
    for clique in (("charge",), ("charge (fine)",), ("stay",), ("stay (fine)",), ("stay", "sex")):
        shape = CHARGES.measured.shape(clique)
        counts = np.bincount(np.ravel_multi_index([cells[n] for n in clique], shape), minlength=np.prod(shape))
        values = counts + sigma * rng.standard_normal(counts.size)
        answers.append(NoisyMarginal(clique, Identity(counts.size), values, "gaussian", sigma, "-".join(clique)))
    return Measurements(CHARGES.measured, tuple(answers))


def test_a_range_that_cuts_bins_is_counted_by_fine_cells_and_its_interval_holds_the_truth():
    table, rng = stays(), np.random.default_rng(5)
    inside, widths, errors = [], [], []
    for _ in range(200):
        known = noisy_answers(table, rng)
        for name, top in (("charge", 20_000), ("stay", 60)):
            low, high = np.sort(rng.uniform(0, top, 2)).round(2 if name == "charge" else 0).tolist()
            row = answer(CHARGES, known, where={name: [low, high]}).iloc[0]
            truth = table[name].between(low, high).sum()
            inside.append(row["low"] <= truth <= row["high"])
            widths.append(row["high"] - row["low"])
            errors.append(abs(row["count"] - truth))
    assert np.mean(inside) >= 0.95
    assert np.median(widths) < 600 and np.median(errors) < 120, "bins alone: intervals of thousands of records"


@pytest.mark.parametrize(
    ("name", "value"), [("charge", [500.0, 7_000.0]), ("stay", [3, 11]), ("charge", [5_000.0, 10_000.0])]
)
def test_a_query_and_an_estimate_of_one_range_say_which_cells_each_counted_and_that_they_may_differ(name, value):
    known = noisy_answers(stays(), np.random.default_rng(7))
    finely = answer(CHARGES, known, where={name: value})
    by_bins = estimate(CHARGES, known, question("count", name, value=value))
    assert finely["count"][0] != by_bins["estimate"][0]
    (said,) = finely.attrs["notes"]
    assert f"fine cells of {name}; estimate=count" in said and "may give another answer" in said
    by_cells = f"where={{{name}: {value}}} counts by its fine cells"
    assert f"counted by the bins of {name}; {by_cells}" in by_bins.attrs["notes"][-1]


def test_of_one_way_to_count_nothing_is_said():
    known = noisy_answers(stays(), np.random.default_rng(7))
    whole = answer(CHARGES, known, where={"stay": [20, 39]})
    counted = estimate(CHARGES, known, question("count", "stay", value=[20, 39]))
    assert whole["count"][0] == pytest.approx(counted["estimate"][0], abs=0.01)
    assert "notes" not in whole.attrs and not any("another answer" in n for n in counted.attrs["notes"])


def test_a_range_of_whole_numbers_cuts_no_fine_cell_and_has_the_interval_of_its_noise():
    known = [noisy_answers(stays(), np.random.default_rng(seed)) for seed in range(60)]
    told = pd.concat([answer(CHARGES, k, where={"stay": [3, 11]}) for k in known])
    truth = stays().stay.between(3, 11).sum()
    assert (told["cut"] == "").all() and told.low.le(truth).mul(told.high.ge(truth)).mean() >= 0.9
    assert told["count"].std() == pytest.approx(told["standard_error"].iloc[0], rel=0.3)
    assert (told["high"] - told["low"]).iloc[0] == pytest.approx(3.92 * told["standard_error"].iloc[0], abs=0.1)


def test_an_end_on_a_peak_holds_the_peak_or_not():
    """2,000 charges are 1,500.00; whether a range that ends there has them, its fine cell does not tell."""
    table, known = stays(), noisy_answers(stays(), np.random.default_rng(6))
    for low, high in ((700, 1_500), (700, 1_499.99), (1_500, 2_600)):
        row = answer(CHARGES, known, where={"charge": [low, high]}).iloc[0]
        assert row["low"] <= table.charge.between(low, high).sum() <= row["high"]


def test_a_cut_bin_among_other_conditions_counts_by_the_columns_curve_and_keeps_the_wide_interval():
    table = stays()
    truth = ((table.stay <= 6) & (table.sex == 1)).sum()
    first = ((table.stay < 20) & (table.sex == 1)).sum()
    known = [noisy_answers(table, np.random.default_rng(seed)) for seed in range(40)]
    told = pd.concat([answer(CHARGES, k, where={"stay": [0, 6], "sex": "m"}) for k in known])
    assert (told["count"] - truth).abs().max() < 0.05 * first, "spread evenly it would be 35 % of the first bin"
    assert abs(0.35 * first - truth) > 0.1 * first
    assert (told["low"] <= 0).all() and (told["cut"] == "stay: 0 to 19").all()
    assert (told["high"] >= first).mean() >= 0.85 and (told["high"] < 1.05 * first).all(), "intervals of 95 %"


def test_the_command_says_which_bins_are_cut(town, capsys):
    assert command("run", *TOWN, *PAIRS, "privacy.epsilon=1000", "evaluation.enabled=false", "hydra.run.dir=out") == 0
    said = reply(capsys, "query", "from=out/release", "where={age: [22, 45], sex: f}")
    row = pd.read_csv(io.StringIO(said.out)).iloc[0]
    real = people(600)
    truth = (real["age"].between(22, 45) & (real["sex"] == "f")).sum()
    assert row["cut"] == "age: 20 to 29; age: 40 to 49" and row["low"] <= truth <= row["high"]
    assert "cuts 2 bins" in said.err and "whatever lies inside" in said.err
