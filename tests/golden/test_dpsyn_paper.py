"""Li et al. 2021b (DPSyn): theory, rare values, MWEM, GUM in Appendix A, and what section 5 does, against the text."""

import itertools
import json
import math
import re
import shutil
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import linprog

from mechanisms.accounting.currencies import Mu, gaussian_epsilon, gaussian_mu
from mechanisms.public.coded_table import CodedTable
from mechanisms.public.domain import Attribute, Domain
from mechanisms.public.errors import UserError
from mechanisms.public.queries.cell_sums import merged_query, rare_groups
from mechanisms.public.queries.query_matrices import Identity
from mechanisms.public.release import Measurements, NoisyMarginal
from mechanisms.public.rules.engineering import engineer, undo
from mechanisms.public.schema.table_schema import Schema, load_schema, parse_schema
from pipeline.conf_folder import SCHEMAS
from pipeline.experiments.challenge import smaller
from pipeline.experiments.challenge_settings import ChallengeSettings, rounds, schema_at
from pipeline.experiments.experiment_settings import settings_of
from pipeline.experiments.gallery.all_experiments import names_of_all
from pipeline.experiments.maps import smaller as smaller_map
from pipeline.report.plan_theory import gaussian_marginals, least_epsilon, pure_marginals
from pipeline.settings import build
from pipeline.settings.config import Config, load_config
from pipeline.settings.methods import build_synthesizer
from pipeline.settings.specs import build_specs
from synthesis.consistency.agree import ConsistentTargets, Target
from synthesis.consistency.merged_values import merged_values, rare_zeros
from synthesis.contract import synthesize
from synthesis.gum.gradual_update import UpdateWork, shrink_factor
from synthesis.gum.gum_settings import GumSpec
from synthesis.gum.layout import lay_out
from synthesis.papers.mcf import McfSpec
from synthesis.papers.multiplicative_weights import WeightsSpec, updated, weights_table
from tests.public.table_worlds import coded


def test_ten_times_the_rows_ten_times_the_pure_marginals_and_a_hundred_times_the_others():
    """Sections 4 and 6.1, with a cell's standard deviation of 10⁻³ of the rows at ε = 1, δ = 10⁻⁹."""
    mu = gaussian_mu(1.0, 1e-9)
    pure = [pure_marginals(1e-3 * n, 1.0, 1.0) for n in (10**5, 10**6, 10**7)]
    assert pure == [70, 707, 7071]
    other = [gaussian_marginals(1e-3 * n, mu, 1.0) for n in (10**5, 10**6, 10**7)]
    assert other[1] == pytest.approx(100 * other[0], rel=0.01) and other[2] == pytest.approx(100 * other[1], rel=0.01)
    tenth = [gaussian_marginals(100.0, gaussian_mu(e, 1e-9), 1.0) for e in (1.0, 0.1)]
    assert tenth[0] / tenth[1] == pytest.approx(100, rel=0.25), "a tenth of the budget: close to a hundredth of them"


@pytest.mark.parametrize("stddev", [40.0, 250.0])
def test_so_many_marginals_fit_and_one_more_does_not(stddev):
    count = pure_marginals(stddev, 1.0, 2.0)
    scale = stddev / math.sqrt(2)
    assert count * 2.0 / scale <= 1.0 < (count + 1) * 2.0 / scale
    count = gaussian_marginals(stddev, gaussian_mu(1.0, 1e-9), math.sqrt(2))
    spent = [gaussian_epsilon(Mu(math.sqrt(2 * k) / stddev), 1e-9) for k in (count, count + 1)]
    assert spent[0] <= 1.0 * (1 + 1e-9) < spent[1]


def best_failure(epsilon: float, *, rows: int, wrong: float) -> float:
    """The least η that any ε-DP method reaches for one candidate at θ = 1/2: a linear programme over all tables.

    A table is its count c of the candidate; p_c is the probability to put it out; neighbours differ by one.
    """
    counts, upper, right = np.arange(rows + 1), [], []

    def say(entries: dict[int, float], limit: float) -> None:
        row = np.zeros(rows + 2)  # the last is η
        for place, value in entries.items():
            row[place] += value
        upper.append(row)
        right.append(limit)

    for c in counts:
        if c > rows * (0.5 + wrong):
            say({c: -1.0, -1: -1.0}, -1.0)
        elif c < rows * (0.5 - wrong):
            say({c: 1.0, -1: -1.0}, 0.0)
    growth = math.exp(epsilon)
    for one, two in [*itertools.pairwise(counts), *itertools.pairwise(counts[::-1])]:
        say({one: 1.0, two: -growth}, 0.0)
        say({one: -1.0, two: growth}, growth - 1)
    found = linprog([0.0] * (rows + 1) + [1.0], A_ub=upper, b_ub=right, bounds=[(0, 1)] * (rows + 2))
    return float(found.fun)


@pytest.mark.parametrize(("rows", "wrong"), [(8, 0.25), (12, 0.25), (20, 0.1)])
def test_no_pure_method_of_all_is_useful_below_the_least_epsilon(rows, wrong):
    """Brute force: the bound holds for the best method that there is, and is no more than three times too small."""
    for eta in (0.05, 0.2):
        least = least_epsilon(wrong, eta, 1, rows, 1)
        assert best_failure(least, rows=rows, wrong=wrong) > eta
        assert best_failure(3 * least, rows=rows, wrong=wrong) < eta


TYPES = Domain((Attribute("type", 6), Attribute("unit", 2)))
PAIR = ("type", "unit")


def answers(counts, sigma: float, *, merged: bool) -> Measurements:
    """One-way counts of the types, and the pair as `selection.merge=4.5 selection.floor=800` asks it, without noise."""
    one = NoisyMarginal(("type",), Identity(6), np.array(counts, float), "gaussian", sigma, "0")
    pair = np.outer(np.maximum(counts, 0), [0.25, 0.75]).ravel()
    groups = rare_groups(TYPES, (one,), 4.5, 800.0)
    query = merged_query(TYPES, PAIR, groups) if merged else Identity(12)
    return Measurements(TYPES, (one, NoisyMarginal(PAIR, query, query.answer(pair), "gaussian", sigma, "1")))


def rows_of(known: Measurements, spec) -> list[int]:
    table = synthesize(known, spec, rows=8000, rng=np.random.default_rng(0)).table
    return np.bincount(table.columns[0], minlength=6).tolist()


@pytest.mark.parametrize("merged", [True, False])
@pytest.mark.parametrize("spec", [GumSpec, McfSpec])
def test_a_total_below_theta_makes_all_of_them_zero(spec, merged):
    """A sum of 90 under θ = 800 (σ = 10): none of the four values occurs; without the rule all of them do."""
    known = answers([5000, 2910, 40, 30, 15, 5], 10.0, merged=merged)
    made = rows_of(known, spec(rare=4.5, floor=800.0))
    assert made[2:] == [0, 0, 0, 0] and sum(made) == 8000
    assert all(n > 0 for n in rows_of(known, spec())[2:5])


@pytest.mark.parametrize("merged", [True, False])
def test_a_total_above_theta_is_one_value_that_stands_for_all(merged):
    known = answers([5000, 1800, 500, 400, 250, 50], 10.0, merged=merged)
    made = rows_of(known, GumSpec(rare=4.5, floor=800.0))
    assert sum(made[2:]) == pytest.approx(1200, abs=60)
    assert all(n > 0 for n in made[2:])
    assert not merged or merged_values(known)["type"].tolist() == [0, 1, 2, 2, 2, 2]


def test_a_single_rare_value_is_zero_too():
    """One value alone is not merged with anything; its own count is the total."""
    known = answers([4000, 1500, 1400, 900, 900, 300], 10.0, merged=True)
    assert merged_values(known) == {}
    assert rows_of(known, GumSpec(rare=4.5, floor=800.0))[5] == 0


def test_theta_is_the_larger_of_both_limits_and_an_attribute_that_is_rare_altogether_stays():
    low = answers([5000, 2910, 40, 30, 15, 5], 10.0, merged=False)
    for rare, floor, gone in ((4.5, 0.0, 0), (9.5, 0.0, 4), (3.0, 100.0, 4), (0.0, 0.0, 0)):
        zeros = rare_zeros(low, {}, rare=rare, floor=floor)
        assert sum(int(cells.sum()) for _, cells in zeros) == gone, (rare, floor)
    tiny = answers([50, 40, 30, 20, 10, 5], 10.0, merged=False)
    assert rare_zeros(tiny, {}, rare=4.5, floor=800.0) == []


TWO = Domain((Attribute("a", 2), Attribute("b", 2)))


def measured(domain: Domain, *known: tuple[tuple[str, ...], list[float]]) -> Measurements:
    answers = [
        NoisyMarginal(c, Identity(len(v)), np.array(v), "laplace", 1.0, str(i)) for i, (c, v) in enumerate(known)
    ]
    return Measurements(domain, tuple(answers))


def test_one_update_is_that_of_multiplicative_weights():
    """A(x) exp(q(x) (m − q(A)) / 2n), normalised: a uniform table of 100 and an answer of 90 and 10 for two halves."""
    answer = measured(TWO, (("a",), [90.0, 10.0])).answers[0]
    changed = updated(TWO, np.full((2, 2), 25.0), answer, 100.0)
    weights = np.exp(np.array([40.0, -40.0]) / 200)
    assert changed == pytest.approx(np.outer(weights / weights.sum() * 50, [1.0, 1.0]))


def test_the_basic_version_is_the_mean_of_all_tables_with_one_update_each():
    """T + 1 = 3 approximations: the uniform one, and one after each of two answers."""
    known = measured(TWO, (("a",), [90.0, 10.0]), (("b",), [30.0, 70.0]))
    first = updated(TWO, np.full((2, 2), 25.0), known.answers[0], 100.0)
    second = updated(TWO, first, known.answers[1], 100.0)
    mean = (25.0 + first + second) / 3
    assert weights_table(known, WeightsSpec(version="basic")) == pytest.approx(mean)


def test_the_improved_version_agrees_with_all_answers_and_the_basic_one_is_far_from_them():
    """100 iterations over all pairs of query and answer: "a state that is consistent with all known" answers."""
    known = measured(TWO, (("a",), [90.0, 10.0]), (("b",), [30.0, 70.0]), (("a", "b"), [28.0, 62.0, 2.0, 8.0]))
    improved, basic = (weights_table(known, WeightsSpec(version=v)) for v in ("improved", "basic"))
    assert improved.sum(axis=1) == pytest.approx([90, 10], abs=0.5)
    assert improved.ravel() == pytest.approx([28, 62, 2, 8], abs=1.0)
    assert np.abs(basic.sum(axis=1) - [90, 10]).max() > 20


def test_rows_follow_the_table_and_a_domain_that_is_too_large_is_refused():
    known = measured(TWO, (("a", "b"), [280.0, 620.0, 20.0, 80.0]))
    table = synthesize(known, WeightsSpec(), rows=1000, rng=np.random.default_rng(0)).table
    counts = np.bincount(2 * table.columns[0].astype(int) + table.columns[1], minlength=4)
    assert counts == pytest.approx(weights_table(known, WeightsSpec()).ravel(), abs=2)
    large = Domain(tuple(Attribute(n, 200) for n in "abc"))
    with pytest.raises(UserError, match="every cell of the whole table"):
        weights_table(measured(large, (("a",), [1.0] * 200)), WeightsSpec())
    with pytest.raises(UserError, match=r"synthesis\.version"):
        WeightsSpec(version="best")


PEOPLE = Domain((Attribute("income", 2), Attribute("gender", 2), Attribute("age", 3)))
BOTH = ("income", "gender")


def preset() -> GumSpec:
    spec = build_synthesizer(load_config(["synthesis=gum_paper"]).synthesis)
    assert isinstance(spec, GumSpec)
    return spec


def work(*rows: tuple[int, ...], times: int = 1, seed: int = 0) -> UpdateWork:
    columns = (np.repeat(c, times) for c in zip(*rows, strict=True))
    return UpdateWork.start(coded(PEOPLE, columns), np.random.default_rng(seed))


def test_figure_4_two_of_five_records_change_at_alpha_2_and_duplicates_keep_the_age():
    """Figure 4: 4 and 1 of 5 records, wanted 1 and 4; α = 2 and β = 0.5 make 2 and 3 of them."""
    five = [(1, 0, 0), (1, 0, 1), (1, 0, 1), (1, 0, 0), (1, 1, 2)]  # income; male, female; teenager, adult, elderly
    target = Target(BOTH, np.array([[0.0, 0.0], [0.2, 0.8]]), 1.0)
    for share, elderly in ((0.0, 300), (0.5, 200), (1.0, 100)):  # Duplicate: all are as v5
        rows, many = work(*five), work(*five, times=100)
        moved, off = rows.update(target, alpha=2.0, replace=share, as_paper=True)
        assert (moved, off) == (2, pytest.approx(0.6))
        assert list(rows.counts(BOTH)) == [0, 0, 2, 3]
        many.update(target, alpha=2.0, replace=share, as_paper=True)
        women = many.counts(("gender", "age"))[3:]
        assert women.sum() == 300 and women[2] == pytest.approx(elderly, abs=2)
    assert shrink_factor(np.array([3.0]), np.array([4]), 2.0) == pytest.approx(0.5)


def test_an_empty_cell_grows_by_nothing_as_the_formula_says_and_by_a_part_of_its_target_in_ours():
    """A.2: min(n_t − n_s, α n_s) is 0 where n_s is; with target 50 and α = 0.2 ours adds 10."""
    target = Target(BOTH, np.array([[50.0, 0.0], [50.0, 0.0]]), 1.0)
    for as_paper, grown in ((True, 0), (False, 10)):
        rows = work((1, 0, 0), times=100)
        rows.update(target, alpha=0.2, replace=1.0, as_paper=as_paper)
        assert rows.counts(BOTH)[0] == grown


def test_a_cell_grows_by_a_factor_of_at_most_one_and_alpha_and_others_shrink_in_one_proportion():
    """Section 5.5: "each cell will increase by a factor of at most 1 + α"; A.2: min(n_s − n_t, β n_s)."""
    rows = work((0, 0, 0), (0, 1, 0), (1, 0, 0), (1, 0, 1), (1, 1, 0), (1, 1, 1), times=100)
    target = Target(BOTH, np.array([[200.0, 170.0], [40.0, 190.0]]), 1.0)
    rows.update(target, alpha=0.2, replace=0.5, as_paper=True)
    assert list(rows.counts(BOTH)) == [120, 120, 170, 190], "β = 0.15: 30 of the 160 too many, and all 10 of the others"


def test_the_four_decays_are_those_of_section_a_3():
    step = GumSpec(alpha=0.2, schedule="step", decay=0.84, step=10)
    assert [step.growth(t) for t in (0, 9, 10, 25)] == pytest.approx([0.2, 0.2, 0.2 * 0.84, 0.2 * 0.84**2])
    assert GumSpec(alpha=0.2, schedule="exponential", rate=0.1).growth(5) == pytest.approx(0.2 * math.exp(-0.5))
    assert GumSpec(alpha=0.2, schedule="linear", rate=0.1).growth(5) == pytest.approx(0.2 / 1.5)
    assert GumSpec(alpha=0.2, schedule="sqrt", rate=0.1).growth(5) == pytest.approx(0.2 / math.sqrt(1.5))


def test_the_preset_is_the_appendix_and_nothing_of_ours():
    spec = preset()
    assert spec.alpha == 0.2 and spec.schedule == "step" and spec.start == "oneway" and spec.descents == 0
    assert spec.updates == "paper" and spec.lone == "once"
    assert GumSpec(replace=1, replace_last=1).replaced(7) == 1, "Replace alone"
    assert spec.replaced(0) > spec.replaced(50) > spec.replaced(spec.iterations - 1) == 0, (
        "more Duplicate towards the end"
    )


def test_columns_of_degree_one_are_appended_once():
    """A.3: of the chain a-b-c-d-e the ends stand in one marginal each; ours takes the whole tree off, end by end."""
    domain = Domain(tuple(Attribute(n, 2) for n in "abcde"))
    chain = tuple(Target((a, b), np.full((2, 2), 25.0), 1.0) for a, b in zip("abcd", "bcde", strict=True))
    targets = ConsistentTargets(domain, 100.0, chain)
    once, again = (lay_out(targets, again=a) for a in (False, True))
    assert {n for part in once.appended for n in part.lone} == {"a", "e"}
    assert [names for names, _ in once.groups] == [("b", "c", "d")]
    assert not again.groups and {n for part in again.appended for n in part.lone} == set("abcde")


LNG, LAT = "Location - Lng", "Location - Lat"


def settings(name: str) -> Config:
    return load_config([f"experiment={name}"])


def fire(epsilon: float) -> Schema:
    name = schema_at(settings_of(settings("dpsyn_fire"), ChallengeSettings), epsilon)
    return load_schema(SCHEMAS / name)


def test_at_low_epsilon_coordinates_have_one_way_marginals_alone():
    """Section 5.3: "we just obtain one-way marginals for them"."""
    schema = fire(0.1)
    assert {LNG, LAT} <= schema.engineering.alone
    assert schema.measured[LNG].size == schema.measured[LAT].size == 100


def test_at_mid_range_epsilon_coordinates_are_in_joint_marginals_with_their_rare_values_merged():
    """Section 5.3: "recode them into attributes X and Y by removing values that have low count"."""
    schema, own = fire(1), settings("dpsyn_fire").selection.options
    assert not {LNG, LAT} & schema.engineering.alone and {LNG, LAT} <= set(schema.measured.names)
    assert own["merge"] == 4.5 and own["floor"] == 800, "θ = max(4.5 σ, 800)"


def test_at_high_epsilon_a_marginal_of_100_by_100_is_one_column_that_joins_boxes():
    """Section 5.3: "a 100 × 100 2-way marginal between them, and recode it into a new attribute"."""
    schema, own = fire(10), settings("dpsyn_fire").selection.options
    assert 10 in settings_of(settings("dpsyn_fire"), ChallengeSettings).epsilons, (
        "the highest of the source's ε, 0.1 to 10"
    )
    assert schema.measured["Coordinates"].size == 100 * 100
    assert not {LNG, LAT} & set(schema.measured.names)
    assert not {"Coordinates", "Box"} & schema.engineering.alone
    assert schema.measured.cells(("Coordinates", "Box")) <= own["max_cells"], "the pair is a candidate"


@pytest.mark.parametrize("epsilon", [0.1, 1])
def test_without_budget_boxes_are_random(epsilon):
    """Section 5.3: "we simply assign random values to this attribute"."""
    schema = fire(epsilon)
    assert "Box" not in schema.measured and schema.domain["Box"].size == 2089
    rng = np.random.default_rng(0)
    rows = CodedTable(schema.measured, tuple(np.zeros(20_000, np.uint16) for _ in schema.measured.attributes))
    boxes = undo(rows, schema.engineering, rng).column("Box")
    counts = np.bincount(boxes, minlength=2089)
    assert ((counts - 20_000 / 2089) ** 2 / (20_000 / 2089)).sum() == pytest.approx(2088, abs=6 * math.sqrt(2 * 2088))


def test_without_budget_addresses_are_random_where_their_list_is_given(tmp_path):
    """Section 5.3: "we simply assign random values to this attribute"; the published list has 17,704 of them."""
    places = {"kind": "categorical", "values": [f"{n}00 Block" for n in range(17_704)], "missing": False}
    line = f"columns:\n  Address: {json.dumps(places | {'unmeasured': True})}\n"
    text = (SCHEMAS / "dpsyn_fire_low.yaml").read_text(encoding="utf-8")
    text = "leave_out: []\n" + re.sub("columns:.*\n", line, text, count=1)
    (tmp_path / "low.yaml").write_text(text, encoding="utf-8")
    shutil.copy(SCHEMAS / "fire_calls.yaml", tmp_path)
    schema = load_schema(tmp_path / "low.yaml")
    assert "Address" not in schema.measured and schema.domain["Address"].size == 17_704
    assert "Box" not in schema.measured and "Unit_Info" in schema.measured


def test_a_random_column_is_written_to_the_schema_read_back_and_never_counted(tmp_path):
    columns = {
        "box": {"kind": "categorical", "size": 50, "unmeasured": True},
        "kind": {"kind": "categorical", "values": ["a", "b"], "missing": False},
    }
    schema = parse_schema({"name": "t", "columns": columns}, where="t.yaml", folder=tmp_path)
    assert schema.measured.names == ("kind",)
    (tmp_path / "t.yaml").write_text(schema.to_yaml())
    assert load_schema(tmp_path / "t.yaml").measured == schema.measured
    rows = coded(schema, [[3, 4], [0, 1]])
    measured, conflicts = engineer(rows, schema.engineering)
    assert measured.domain.names == ("kind",) and not sum(conflicts.values())


@pytest.mark.parametrize(
    ("box", "rules", "said"),
    [
        ({"one_way_only": True}, {}, "measured in part"),
        ({"kind": "integer", "min": 0, "max": 9}, {}, "the column is integer"),
        ({}, {"mapped": {"box": "kind"}}, "box"),
        ({}, {"recode": {"both": {"columns": ["box", "kind"], "combinations": "all"}}}, "box"),
    ],
)
def test_rules_about_a_random_column_are_refused(box, rules, said, tmp_path):
    columns = {
        "box": {"kind": "categorical", "values": ["1", "2"], "unmeasured": True} | box,
        "kind": {"kind": "categorical", "values": ["a", "b"], "missing": False},
    }
    if "min" in box:
        del columns["box"]["values"]
    with pytest.raises(UserError, match=said):
        _ = parse_schema({"name": "t", "columns": columns, **rules}, where="t.yaml", folder=tmp_path).measured


@pytest.mark.parametrize(
    ("name", "records"),
    [("nist2018_fire", 305_119), ("dpsyn_fire", 305_119), ("nist2018_pums", 661_967), ("dpsyn_acs", 170_254)],
)
def test_delta_is_at_most_one_over_the_square_of_the_records(name, records):
    """Section 5.1: δ ≤ 1/N²."""
    delta = settings(name).privacy.delta
    assert 0.5 / records**2 < delta <= 1 / records**2


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("nist2018_fire", {"round 1": ["density"], "round 2": ["density", "range_2018"]}),
        ("nist2018_pums", {"round 3": ["density", "range_2018", "gini"]}),
    ],
)
def test_the_metrics_of_a_round_have_equal_weights(name, wanted):
    """Section 5.1: one metric, two and three in the three rounds, "treated as having equal weights"."""
    assert settings_of(settings(name), ChallengeSettings).rounds == wanted
    scores = {"density": 900_000.0, "range_2018": 600_000.0, "gini": 300_000.0}
    rows = [{"metric": m, "score": s, "floor": None} for m, s in scores.items()]
    made = {r["metric"]: r["score"] for r in rounds(wanted, rows, {})}
    assert made == {r: sum(scores[m] for m in metrics) / len(metrics) for r, metrics in wanted.items()}


def test_wages_have_fewer_bins_at_low_epsilon():
    """Section 5.4: "apply different bucketizing scheme for different privacy budget"."""
    config = settings("nist2018_pums")
    own = settings_of(config, ChallengeSettings)
    low = load_schema(SCHEMAS / str(schema_at(own, 0.3))).measured["INCWAGE"].size
    assert schema_at(own, 1) is None and schema_at(own, 8) is None
    assert 1 < low < build.build_schema(build_specs(config)).measured["INCWAGE"].size


def test_recoded_groups_and_flags_are_those_of_the_text():
    """Section 5.3: Unit_Info, Call_Type_Info, Priority_Info; which of the eight synchronous times are missing."""
    measured = fire(1).measured
    sizes = {"Unit_Info": 2 * 10, "Call_Type_Info": 5 * 32, "Priority_Info": 2 * 8 * 8, "Time_Availability": 2**8}
    assert {name: measured[name].size for name in sizes} == sizes
    assert {"Watch Date", "Call Date"} <= set(measured.names)


def test_companies_and_bins_of_taxi_trips_are_those_of_the_text():
    """McKenna 2021, Preprocessing: the sizes of its table."""
    domain = load_schema(SCHEMAS / "chicago_taxi.yaml").domain
    printed = {"company_id": 57, "fare": 11, "tips": 11, "trip_total": 11, "trip_seconds": 11, "trip_miles": 11}
    printed |= {"pickup_community_area": 78, "dropoff_community_area": 78, "shift": 21}
    assert {name: domain[name].size for name in printed} == printed


@pytest.mark.parametrize("name", sorted(set(names_of_all()) - {"dpsyn_figure2", "nist_crc"}))
def test_the_small_version_keeps_the_method(name):
    """Fewer rows, releases, runs, samples, pairs and floors: choice, noise, passes of the synthesis, metrics stay."""
    config = load_config([f"experiment={name}", "smoke=true"])
    challenge = config.experiment.kind == "challenge"
    small = smaller(config) if challenge else smaller_map(config)
    assert small.synthesis == replace(config.synthesis, rows=small.synthesis.rows)
    assert small.mechanism == config.mechanism and small.privacy == config.privacy
    assert small.evaluation == config.evaluation
    options = [{n: v for n, v in c.selection.options.items() if n != "max_cells"} for c in (config, small)]
    assert small.selection.kind == config.selection.kind and options[0] == options[1]
    if not challenge:
        lists = {"dpsyn", "laplace", "samples", "repeats"}
        own, less = ({n: v for n, v in c.experiment.options.items() if n not in lists} for c in (config, small))
        assert own == less and (small.data.rows or 0) < (config.data.rows or 0)
        return
    own, less = settings_of(config, ChallengeSettings), settings_of(small, ChallengeSettings)
    kept = {n: getattr(own, n) for n in ("epsilons", "variants", "samples", "anonymous", "repeats", "rows", "floors")}
    assert less.rows < own.rows and replace(less, **kept) == own


def test_an_epsilon_of_schemas_that_is_no_number_is_one_clear_message():
    config = load_config(["experiment=dpsyn_fire", "++experiment.schemas={low: dpsyn_fire_low.yaml}"])
    with pytest.raises(UserError, match=r"experiment\.schemas"):
        schema_at(settings_of(config, ChallengeSettings), 1.0)
    assert build.build_schema(build_specs(config)).name == "dpsyn_fire"
