"""The default selection: what it looks at, what it spends, and wide tables."""

import itertools
import json
import math
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from evaluation.tvd import tvd_cliques
from mechanisms.public.coded_table import CodedTable
from mechanisms.public.designs import pair_view
from mechanisms.public.designs.finer_values import most_noise_by_answers, most_noise_by_distance
from mechanisms.public.designs.pair_view import (
    FALSE_SHARE,
    MOST_PAIRS,
    discovered,
    heaviest_forest,
    pairs_looked_at,
    shrunk,
)
from mechanisms.public.domain import Attribute, Domain
from mechanisms.public.errors import UserError
from mechanisms.public.queries.cell_sums import MergedQuery
from mechanisms.public.release_files import load_measurements
from mechanisms.public.workload import MOST_LISTED, all_k_way
from mechanisms.selection.context import Part, Reserve
from mechanisms.selection.screening import _part_for
from pipeline.report.plan_tables import as_text, describe
from pipeline.settings import build
from pipeline.settings.config import load_config
from pipeline.settings.specs import build_specs
from synthesis.contract import synthesize
from synthesis.pgm.elimination import maximal
from synthesis.synthesizers import SYNTHESIZERS
from tests.bench.grid.cell import ours
from tests.bench.grid.coded import coded_table
from tests.bench.grid.errors import distance, errors
from tests.bench.grid.families import family_table, network, survey
from tests.bench.grid.methods import METHODS
from tests.bench.grid.tables import GridTable
from tests.pipeline.conftest import TOWN, command, reply, town

__all__ = ["town"]  # the fixture
METHOD = {m.name: m for m in METHODS}


def designed(*overrides):
    """The specs, schema, workload and plan of these settings."""
    specs = build_specs(load_config(list(overrides)))
    schema = build.build_schema(specs)
    workload = build.build_workload(specs, schema)
    return specs, schema, workload, build.build_plan(specs, workload, schema)


def plan_json(*overrides):
    return designed(*overrides)[-1].to_json()


@pytest.mark.parametrize(
    "given",
    [
        ["selection.marginals=[[hour,weekday],[priority]]"],
        ["selection.closure=[[incident_group,priority,hour]]"],
        ["selection.k=[1]"],
        ["selection.weights=[{marginal: [hour], weight: 2}]"],
        ["selection.merge=4.5"],
        ["privacy.accountant=advanced", "mechanism=gaussian"],  # which has no filter
    ],
)
def test_marginals_that_somebody_names_and_all_pairs_under_any_accountant_are_measured_in_one_round(given):
    assert plan_json(*given) == plan_json("selection=pairs", *given)


def test_all_of_the_budget_is_planned_and_pure_noise_serves():
    for settings in ([], ["privacy.accountant=basic", "privacy.delta=0"], ["privacy.accountant=auto"]):
        plan = plan_json("selection=auto", *settings)
        assert plan["reserve"] and plan["total"]["epsilon"] == pytest.approx(1.0, rel=1e-3)


@pytest.mark.parametrize("share", [None, 0.3])
def test_the_fine_cells_of_all_columns_together_take_a_tenth_of_the_budget_or_as_much_as_is_said(share):
    plan = plan_json(*([] if share is None else [f"selection.fine_share={share}"]))
    fine = [s["share"] for s in plan["measurements"] if s["stage"] == "fine"]
    assert len(fine) == 4 and math.fsum(fine) == pytest.approx(share or 0.1)


@pytest.mark.parametrize(("epsilon", "bound", "over"), [(1, 1, 1), (0.1, 1, 1), (10, 1, 10), (10, 20, 1), (40, 20, 2)])
def test_looks_take_less_of_a_large_budget(epsilon, bound, over):
    """A fifth for columns and 2 % for distances, where ε is at most C."""
    plan = plan_json(f"privacy.epsilon={epsilon}", f"privacy.max_records={bound}", "selection.fine_cells=0")
    looks, columns = (
        sum(s["share"] for s in plan["measurements"] if bool(s["scores"]) is scored) for scored in (True, False)
    )
    assert looks == pytest.approx(0.02 / over, rel=1e-6) and columns == pytest.approx(0.2 / over, rel=1e-6)
    assert plan["reserve"]["share"] == pytest.approx(1 - 0.22 / over, rel=1e-6)


@pytest.mark.parametrize(("columns", "times"), [(30, 1.0), (64, 2016 / 2000), (100, 4950 / 2000), (150, 5.0)])
def test_a_look_at_thousands_of_pairs_takes_more(tmp_path, columns, times):
    """In proportion to their number, a public fact, so that its noise stays; at most a tenth of the budget."""
    plan = plan_json(*table_of(tmp_path, columns, size=3))
    looks = sum(s["share"] for s in plan["measurements"] if s["scores"])
    assert looks == pytest.approx(0.02 * times, rel=1e-6)


@pytest.mark.parametrize("distances", [1, 3, 14])
@pytest.mark.parametrize("part", [0.005, 0.06, 1.0])
@pytest.mark.parametrize("settings", [[], ["privacy.max_records=3", "privacy.unit=incident"]])
def test_a_second_look_costs_its_part_of_the_reserve(distances, part, settings):
    """Under zCDP and Gaussian DP: m distances move by C·√m together, and noise of that over μ costs μ²/2."""
    *_, plan = designed(*settings, "privacy.accountant=gdp", "mechanism=gaussian")
    event, whole = plan.scores_event(7, part, distances), plan.reserve_event
    assert plan.budget.max_records == (3 if settings else 5)
    assert event.id == f"purse:0007:distances-{distances}" and not plan.buys_answers(event)
    assert event.sensitivity == pytest.approx(plan.budget.max_records * np.sqrt(distances), rel=1e-9)
    cost = (event.sensitivity / event.scale) ** 2 / (whole.sensitivity / whole.scale) ** 2
    assert part * (1 - 1e-6) < cost <= part
    assert plan.accountant.share(event, whole) <= part


def measured(folder, *settings):
    run = ["run", *TOWN, "selection=auto", "synthesis=auto", "evaluation.enabled=false", "seed=3"]
    assert command(*run, f"hydra.run.dir={folder}", *settings) == 0
    return load_measurements(folder / "release" / "measurements")


def test_a_budget_that_drowns_pairs_is_spent_on_columns(town):
    known = measured(town / "poor", "privacy.epsilon=0.05")
    assert {len(a.clique) for a in known.answers} == {1}
    names = [a.clique[0] for a in known.answers]
    often = {n: names.count(n) for n in names}
    assert often.pop("age (fine)") == 1 and set(often.values()) == {2}, "first to see, then with all that is left"


def test_a_budget_that_shows_a_dependence_is_spent_on_it(town):
    known = measured(town / "rich", "privacy.epsilon=20")
    assert any({"age", "job"} <= set(a.clique) for a in known.answers)
    said = json.loads((town / "rich" / "release" / "privacy.json").read_text(encoding="utf-8"))
    assert said["spent"]["epsilon"] == pytest.approx(20, rel=1e-3)


@pytest.mark.slow
def test_a_pair_of_too_many_cells_is_asked_over_coarser_values(town):
    schema = yaml.safe_load((town / "town.yaml").read_text(encoding="utf-8"))
    schema["columns"]["age"]["bins"] = {"count": 50}
    (town / "town.yaml").write_text(yaml.safe_dump(schema), encoding="utf-8")
    known = measured(town / "coarse", "privacy.epsilon=50", "selection.max_cells=40", "selection.combine_cells=0")
    pair = next(a for a in known.answers if set(a.clique) == {"age", "job"})
    assert isinstance(pair.query, MergedQuery) and pair.query.rows <= 40 < pair.query.columns
    for name in ("gum", "independent", "maxent", "pgm"):  # a column is merged in one way: every synthesizer takes it
        table = synthesize(known, SYNTHESIZERS[name](), rows=50, rng=np.random.default_rng(1)).table
        assert table.rows == 50


def test_a_column_and_its_near_copy_are_asked_over_their_own_values():
    """Taxes by state and their squares: over six groups of values each, half of the records had another state's."""
    rng = np.random.default_rng(5)
    state, rows = rng.integers(0, 40, 9000), np.arange(9000)
    columns = {"tax": state, "squared": np.where(rng.random(9000) < 0.98, state * 3 // 2, rng.integers(0, 60, 9000))}
    columns |= {"age": np.clip(rng.normal(20, 6, 9000), 0, 39).astype(int), "sex": rows % 2}
    columns |= {"wage": np.clip(columns["age"] + rng.normal(0, 6, 9000), 0, 39).astype(int)}
    sizes = {n: 60 if n == "squared" else int(c.max()) + 1 for n, c in columns.items()}
    made = ours(METHOD["auto"], GridTable("states", coded_table(columns, sizes, list(columns))), 1.0, 0)
    drawn = made.table
    same = np.mean(drawn.column("squared") == drawn.column("tax").astype(int) * 3 // 2)
    assert same > 0.9


@pytest.mark.parametrize(("spread", "most"), [(0.7, 0.15), (2.0, 0.2)])
def test_two_columns_on_a_curve_are_asked_over_finer_values_and_those_about_a_line_over_coarser(spread, most):
    """Ages by depth: over seven groups .35 of the records were in other cells; over 40, a wide band has .23."""
    rng = np.random.default_rng(7)
    depth = rng.integers(0, 40, 9_000)
    curve = depth**2 / 39 if spread < 1 else depth
    age = np.clip(curve + rng.normal(0, spread, 9_000), 0, 39).astype(int)
    columns = {"depth": depth, "age": age, "kind": (depth + rng.integers(0, 20, 9_000)) // 20}
    table = coded_table(columns, {"depth": 40, "age": 40, "kind": 3}, ["depth", "age"])
    made = ours(METHOD["auto"], GridTable("ice", table), 1.0, 0).table
    assert distance(CodedTable(made.domain, table.columns), made, ("depth", "age")) < most


def test_a_pair_that_a_curve_runs_through_up_and_down_is_asked_over_finer_values_once_its_first_answers_show_it():
    """Temperatures by week: by their distance alone they might fill twice the cells; .41 of records in other cells."""
    rng = np.random.default_rng(3)
    week = np.repeat(np.arange(56), 120)
    warm = np.clip(np.rint(9.5 + 8 * np.sin(week / 9) + rng.normal(0, 0.7, week.size)), 0, 19).astype(int)
    table = coded_table({"week": week, "warm": warm}, {"week": 56, "warm": 20}, ["week", "warm"])
    made = ours(METHOD["auto"], GridTable("year", table), 1.0, 0).table
    assert distance(CodedTable(made.domain, table.columns), made, ("week", "warm")) < 0.25


@pytest.mark.parametrize("groups", [[0, 0, 0, 0], [0, 0, 1, 1]])
def test_a_pair_of_which_one_group_holds_all_records_is_not_asked_over_finer_values(groups):
    """At little budget one group has all values, or all records; noise alone may call such a pair dependent."""
    sides = [np.bincount(groups, [10.0, 10.0, 0.0, 0.0]).astype(float), np.array([10.0, 10.0])]
    assert most_noise_by_distance(sides, 20.0, 2.0, (4, 4)) == 0
    assert most_noise_by_answers(np.full((2, 2), 5.0), (2, 2), 10.0, 20.0, 16) == 0, "answers that noise hides"


@pytest.mark.parametrize("shape", ["a curve", "a band up and down", "an area", "two lines"])
def test_first_answers_foretell_how_much_noise_the_filled_ones_of_finer_cells_bear(shape):
    """By 12 × 12 groups of 48 × 48 values; a last one without order stays apart where neighbours are joined."""
    rng, told = np.random.default_rng(11), []
    left = rng.integers(0, 48, 20_000)
    right = {
        "a curve": 24 + 20 * np.sin(left / 7) + rng.normal(0, 0.7, left.size),
        "a band up and down": 24 + 20 * np.sin(left / 7) + rng.normal(0, 4, left.size),
        "an area": rng.integers(0, 48, left.size),
        "two lines": np.where(rng.random(left.size) < 0.5, left, 47 - left) + rng.normal(0, 0.7, left.size),
    }[shape]
    right = np.clip(np.rint(right), 0, 47).astype(int)
    finer = np.bincount(left * 48 + right, minlength=48 * 48)
    exact = finer.reshape(12, 4, 12, 4).sum(axis=(1, 3)).astype(float)
    for _ in range(20):
        noisy = exact + rng.normal(0, 20, exact.shape)
        told.append(most_noise_by_answers(noisy, (11, 11), 20.0, 20_000.0, 48 * 48))
    filled, even = (left.size**2 / float((t.astype(float) ** 2).sum()) for t in (finer, exact))
    true = (1 - filled / (even * 16)) * left.size / filled
    assert 0.4 * true - 0.5 < np.mean(told) < 1.3 * true + 1
    about_a_line = np.eye(12) * 1_600 + rng.normal(0, 20, (12, 12))
    assert most_noise_by_answers(about_a_line, (12, 12), 20.0, 20_000.0, 48 * 48) == 0


@pytest.mark.parametrize(("epsilon", "most"), [(10.0, 0.15), (1.0, 0.49)])
def test_two_columns_of_few_records_are_asked_over_their_own_values_where_noise_is_small(epsilon, most):
    """A season that comes again: over groups of values .26 and .51 of the records were in other cells."""
    rng = np.random.default_rng(6)
    month = rng.integers(0, 40, 1_200)
    deaths = np.clip(10 + 5 * np.cos(month * np.pi / 6) + rng.normal(0, 2, 1_200), 0, 19).astype(int)
    table = coded_table({"month": month, "deaths": deaths}, {"month": 40, "deaths": 20}, ["month", "deaths"])
    made = ours(METHOD["auto"], GridTable("deaths", table), epsilon, 0).table
    assert distance(CodedTable(made.domain, table.columns), made, ("month", "deaths")) < most


def test_marks_of_few_persons_keep_most_of_their_correlation():
    """Pairs of ordered columns are asked over values that hold far more than noise: 20 × 20 cells would drown."""
    rng = np.random.default_rng(11)
    ability = rng.normal(size=3000)
    marks = {f"m{i}": 0.8 * ability + 0.6 * rng.normal(size=3000) for i in range(8)}
    codes = {n: np.clip(np.round(10 + 4 * z), 0, 19).astype(int) for n, z in marks.items()}
    table = coded_table(codes, dict.fromkeys(codes, 20), list(codes))
    made = ours(METHOD["auto"], GridTable("marks", table, drawn=True), 1.0, 3).table
    real, kept = (np.corrcoef([t.column(n) for n in codes])[np.triu_indices(8, 1)] for t in (table, made))
    assert (kept > 0.5 * real).all(), "of each pair"


@pytest.mark.slow
def test_a_look_that_shows_nothing_through_much_noise_is_asked_again():
    """300 pairs of few persons: noise of 40 % of the records. The reserve pays for a second look at all of them."""
    answers = survey(np.random.default_rng(1), 900, 25, 4)
    run = ours(METHOD["auto"], GridTable("answers", answers, drawn=True), 3.0, 0)
    assert sum(len(c) == 2 for c in run.answered) > 25
    assert errors("answers", answers, run.table, run.answered).kept > 0.3


@pytest.mark.parametrize("named", ["gdp", "zcdp", "basic"])
def test_the_part_of_a_second_look_has_the_noise_that_it_is_for_under_every_accountant_by_name(named):
    *_, plan = designed("data=demo", f"privacy.accountant={named}", "privacy.epsilon=5")
    context = Mock(reserve=Reserve(plan.reserve_event, plan.power, plan.accountant))
    context.event = lambda part, pairs: plan.scores_event(part.number, part.share, pairs)
    noise = 4 * context.event(Part(1.0), 50).stddev
    assert context.event(Part(_part_for(context, 50, noise)), 50).stddev == pytest.approx(noise)


@pytest.mark.parametrize("seed", [3, 4, 5])
def test_where_every_pair_pays_and_all_lie_in_larger_marginals_no_budget_is_set_apart(seed):
    """Else pairs that depend for certain are asked by themselves, before anything larger is.

    The larger marginals tell enough of their columns, which are not asked again.
    """
    binary = family_table("binary", 4)
    names = binary.domain.names[:6]
    six = coded_table({n: binary.column(n) for n in names}, dict.fromkeys(names, 2))
    sizes = {}
    for most in (1000, 0):
        method = replace(METHOD["auto"], settings=(*METHOD["auto"].settings, f"selection.combine_cells={most}"))
        answered = ours(method, GridTable("six", six, drawn=True), 1.0, seed).answered
        sizes[most] = [len(c) for c in answered[len(names) :]]
    assert sizes[1000] == [3, 3, 5, 2], "one round"
    assert sizes[0].count(2) > 15, "each pair, and those of a forest twice"


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=50), st.floats(1e-3, 1e6))
def test_shrunk_values_lie_between_0_and_the_largest_and_keep_their_order(values, stddev):
    given_values = np.array(values)
    result = shrunk(given_values, np.full(len(values), stddev))
    assert (result >= 0).all() and (result <= max(given_values.max(), 0) * (1 + 1e-9)).all()
    slack = 1e-9 * (1 + np.abs(given_values).max())
    assert (np.diff(result[np.argsort(given_values, kind="stable")]) >= -slack).all()


@pytest.mark.parametrize("count", [21, 105, 435])
def test_the_largest_of_many_noisy_values_is_not_taken_for_more_than_it_is(count):
    """Of noise alone little is left, where each of the largest would come out far too high; few large ones stay."""
    rng = np.random.default_rng(count)
    nothing, few = [], []
    for _ in range(20):
        noise, stddev = rng.normal(0, 0.1, count), np.full(count, 0.1)
        nothing.append(shrunk(noise, stddev).max())
        few.append(shrunk(np.where(np.arange(count) < 2, 1.0, 0.0) + noise, stddev)[:2].mean())
    assert np.mean(nothing) < 0.06  # the largest of 21 values of noise alone is 0.19 on average
    assert np.mean(few) == pytest.approx(1.0, abs=0.06)


def test_few_of_the_pairs_that_are_taken_to_depend_do_not():
    """10 of 100 depend: of what is taken to, no more than a stated share is noise; with noise 30 % larger, more is."""
    shares = {}
    for scale in (1.0, 1.3):
        rng = np.random.default_rng(3)
        wrong = []
        for _ in range(400):
            shown = discovered(np.where(np.arange(100) < 10, 4.0, 0.0) + scale * rng.normal(size=100))
            wrong.append(shown[10:].sum() / max(shown.sum(), 1))
        shares[scale] = np.mean(wrong), np.std(wrong) / 20
    mean, error = shares[1.0]
    assert mean < FALSE_SHARE + 3 * error < shares[1.3][0]


def test_a_forest_has_the_largest_gaps_and_no_circle():
    pairs = [("a", "b"), ("b", "c"), ("a", "c"), ("c", "d"), ("e", "f")]
    assert heaviest_forest(pairs, np.array([5.0, 4.0, 3.0, 1.0, 0.0])) == (0, 1, 3)


@pytest.mark.parametrize(("epsilon", "most"), [(0.1, 1.05), pytest.param(10.0, 0.8, marks=pytest.mark.slow)])
def test_it_is_not_worse_than_independent_columns_and_better_where_the_budget_allows(epsilon, most):
    """Networks drawn anew by seed; means over six seeds."""
    means = {}
    for name in ("auto", "independent"):
        off = []
        for seed in range(6):
            table = GridTable("small_network", family_table("small_network", seed), drawn=True)
            run = ours(METHOD[name], table, epsilon, seed)
            off.append(errors("small_network", table.coded, run.table, run.answered).two)
        means[name] = np.mean(off)
    assert means["auto"] <= most * means["independent"]


def share_off(real, synthetic, pair):
    """The total variation distance of a pair of columns."""
    shares = []
    for table in (real, synthetic):
        codes = np.ravel_multi_index([np.asarray(table.column(n), np.int64) for n in pair], real.domain.shape(pair))
        shares.append(np.bincount(codes, minlength=real.domain.cells(pair)) / table.rows)
    return 0.5 * np.abs(shares[0] - shares[1]).sum()


@pytest.mark.slow
def test_pairs_of_an_important_column_have_less_error_than_without():
    """Networks drawn anew by seed: the error falls by more than two standard errors of its mean."""
    gains = []
    for seed in range(8):
        real = network(np.random.default_rng([seed, 7]), 4000, 9, 10)
        name = real.domain.names[5]
        pairs = [(n, name) for n in real.domain.names if n != name]
        off = []
        for more in ((), (f"selection.important=[{name}]",)):
            method = replace(METHOD["auto"], settings=(*METHOD["auto"].settings, *more))
            made = ours(method, GridTable("network", real, drawn=True), 3.0, seed)
            off.append(np.mean([share_off(real, made.table, p) for p in pairs]))
        gains.append(off[0] - off[1])
    assert np.mean(gains) > 2 * np.std(gains, ddof=1) / np.sqrt(len(gains))


def test_important_columns_are_public_and_charge_nothing_more(capsys):
    more = ["selection.important=[hour,priority]", "selection.important_weight=5"]
    with_them, without = plan_json(*more), plan_json()
    assert with_them["method"].pop("important") == (("hour", 5.0), ("priority", 5.0))
    assert with_them == without
    assert "count more: hour (5 times), priority (5 times)" in reply(capsys, "plan", *more).out


@pytest.mark.parametrize(
    ("settings", "where"),
    [
        (["selection.important=[our]"], "selection.important"),
        (["selection.important=[hour]", "selection.k=[2]"], "selection.important"),
        (["selection.important=[hour]", "privacy.accountant=advanced", "mechanism=gaussian"], "selection.important"),
    ],
)
def test_what_cannot_be_important_is_refused_by_its_setting(settings, where):
    with pytest.raises(UserError) as refused:
        plan_json(*settings)
    assert refused.value.where == where and refused.value.fix


#: Columns of a table with 51,040 pairs.
WIDE = 320


def table_of(folder: Path, columns: int, size: int = 2) -> list[str]:
    """The settings of a table of so many columns, each of so many values."""
    names = [f"c{i}" for i in range(columns)]
    table = GridTable("wide", coded_table({n: np.zeros(3, np.int64) for n in names}, dict.fromkeys(names, size)))
    path = folder / "wide.json"
    path.write_text(json.dumps(table.schema()), encoding="utf-8")
    return ["data=table", f"data.path={path}", f"data.schema={path}"]


@pytest.fixture(scope="module")
def wide(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    return table_of(tmp_path_factory.mktemp("wide"), WIDE)


def plan_text(*overrides: str, details: bool = False) -> str:
    return as_text(describe(*designed(*overrides)), details)


@given(st.integers(2, 12), st.sets(st.integers(0, 11)), st.integers(0, 70))
def test_pairs_are_all_or_those_of_important_columns_and_never_too_many(columns, marked, most):
    names = [f"c{i:02}" for i in range(columns)]
    important = {n for i, n in enumerate(names) if i in marked}
    with pytest.MonkeyPatch.context() as changed:
        changed.setattr(pair_view, "MOST_PAIRS", most)
        looked_at = pairs_looked_at(names, important)
    every = list(itertools.combinations(names, 2))
    held = [[p for p in every if len(important & set(p)) >= least] for least in (0, 1, 2)]
    assert list(looked_at) == next((pairs for pairs in held if len(pairs) <= most), [])


def test_the_default_measures_columns_alone_where_pairs_are_too_many_and_says_so(wide: list[str]) -> None:
    assert math.comb(WIDE, 2) > MOST_PAIRS
    text = plan_text(*wide)
    assert "51,040 pairs are too many: columns alone are measured" in text and "selection.important" in text
    assert "look at distances" not in text


def test_pairs_of_important_columns_are_looked_at_in_a_wide_table(wide: list[str]) -> None:
    text = plan_text(*wide, "selection.important=[c7,c300]", details=True)
    assert f"{2 * (WIDE - 1) - 1} distances from independence" in text
    assert f"{math.comb(WIDE, 2) - 2 * (WIDE - 1) + 1:,} pairs are too many" in text


def test_marginals_too_many_to_list_are_refused_with_a_way_out() -> None:
    domain = Domain(tuple(Attribute(f"c{i}", 2) for i in range(10_000)))
    with pytest.raises(UserError, match=r"49,995,000 2-way marginals of 10,000 columns.*") as refused:
        all_k_way(domain, [1, 2], max_cells=100)
    assert "selection.marginals=" in refused.value.fix
    assert math.comb(10_000, 2) > MOST_LISTED >= len(all_k_way(domain, [1], max_cells=100).cliques)


def test_a_plan_of_many_charges_shows_a_thousand_and_the_totals(tmp_path: Path) -> None:
    text = plan_text(*table_of(tmp_path, 1_500), details=True)
    assert "… and 500 more charges" in text and "rounds, in all" in text
    assert "1500 measurements of 3,000 cells" in text


def test_three_way_marginals_are_drawn_as_from_the_list_of_all() -> None:
    names = [f"c{i:02}" for i in range(12)]
    triples = list(itertools.combinations(names, 3))
    picked = np.sort(np.random.default_rng(0).choice(len(triples), 100, replace=False))
    drawn = tvd_cliques(Domain(tuple(Attribute(n, 2) for n in names)))["3-way"]
    assert drawn == [triples[i] for i in picked]
    assert len(tvd_cliques(Domain(tuple(Attribute(f"c{i}", 2) for i in range(500))))["3-way"]) == 100


@given(st.lists(st.integers(0, 127), max_size=12))
def test_maximal_cliques_lie_in_no_other(cliques: list[int]) -> None:
    distinct = set(cliques)
    lonely = [c for c in distinct if not any(c != o and c & o == c for o in distinct)]
    assert maximal(cliques) == sorted(lonely)
