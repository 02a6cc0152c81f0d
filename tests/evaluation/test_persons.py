"""Figures and scores of whole persons, against loops over the persons of small worlds."""

import itertools
import json
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from evaluation.metric import Options
from evaluation.metrics import METRICS
from evaluation.outcome import compute
from evaluation.persons.person_figures import (
    Cuts,
    PersonRows,
    RowColumn,
    cuts_of,
    distance,
    errors,
    likeness,
    person_figures,
    size_buckets,
)
from evaluation.persons.person_scores import drawn_shares, scored_persons, violations, whole_persons
from evaluation.values.value_tables import NOBODY
from mechanisms.public.coded_table import CodedTable
from mechanisms.public.domain import Attribute, Domain

NUMBERS = np.array([0.0, 1.0, 2.5, 4.0, np.nan])


def world(rows: int, persons: int, seed: int, *, nobody: float = 0.1) -> PersonRows:
    """A home that most records of a person share, a number that is like within a person, and a constant sex."""
    rng = np.random.default_rng(seed)
    owner = rng.integers(0, persons, rows)
    homes, levels, sexes = rng.integers(0, 6, persons), rng.integers(0, 4, persons), rng.integers(0, 2, persons)
    kept = rng.random((2, rows)) < 0.8
    home = np.where(kept[0], homes[owner], rng.integers(0, 6, rows)).astype(np.uint8)
    level = np.where(kept[1], levels[owner], rng.integers(0, 5, rows)).astype(np.uint8)
    sex = sexes[owner].astype(np.uint8)
    order = np.where(rng.random(rows) < 0.1, np.nan, rng.integers(0, 12, rows))
    columns = (
        RowColumn("home", home, np.minimum(home, 3)),
        RowColumn("level", level, level, NUMBERS),
        RowColumn("sex", sex, sex, fixed=True),
    )
    return PersonRows(np.where(rng.random(rows) < nobody, NOBODY, owner), columns, order)


def table(*rows: tuple[int, float, int], fixed: bool = False, ordered: bool = True) -> PersonRows:
    """(person, place in the order, code of the only column)."""
    owner, order, codes = (np.array(c) for c in zip(*rows, strict=True)) if rows else (np.zeros(0, int),) * 3
    column = RowColumn("v", codes.astype(np.uint8), codes.astype(np.uint8), fixed=fixed)
    return PersonRows(owner.astype(np.int64), (column,), order.astype(float) if ordered else None)


def histories(rows: PersonRows) -> list[list[int]]:
    """The rows of each person, in order: known places first, ties as in the file."""
    by_person: dict[int, list[int]] = {}
    for i, person in enumerate(rows.owner.tolist()):
        if person != NOBODY:
            by_person.setdefault(person, []).append(i)
    if rows.order is not None:
        for own in by_person.values():
            own.sort(key=lambda i: (np.isnan(rows.order[i]), 0.0 if np.isnan(rows.order[i]) else rows.order[i]))
    return [by_person[p] for p in sorted(by_person)]


def steps(rows: PersonRows) -> list[tuple[int, int]]:
    return [pair for own in histories(rows) for pair in itertools.pairwise(own)]


def anova(groups: list[list[float]]) -> float:
    """The share of variance between groups, term by term."""
    groups = [g for g in groups if g]
    n, k = sum(map(len, groups)), len(groups)
    middle = sum(map(sum, groups)) / n
    means = [sum(g) / len(g) for g in groups]
    between = sum(len(g) * (m - middle) ** 2 for g, m in zip(groups, means, strict=True)) / (k - 1)
    within = sum((x - m) ** 2 for g, m in zip(groups, means, strict=True) for x in g) / (n - k)
    size = (n - sum(len(g) ** 2 for g in groups) / n) / (k - 1)
    return (between - within) / (between + (size - 1) * within)


def apart(a: Counter, b: Counter) -> float:
    return sum(abs(a[x] / a.total() - b[x] / b.total()) for x in a.keys() | b.keys()) / 2


WORLDS = [world(300, 40, 1), world(300, 200, 2), world(80, 3, 3, nobody=0), world(200, 30, 4, nobody=0.7)]


def figures_of(rows):
    return person_figures(rows, cuts_of(rows))


@pytest.mark.parametrize("rows", WORLDS)
def test_levels_are_those_of_a_loop_over_persons(rows):
    found, own, following = figures_of(rows), histories(rows), steps(rows)
    assert (found.persons, found.records) == (len(own), sum(map(len, own)))
    assert found.levels["records"][""] == pytest.approx(np.mean([len(p) for p in own]))
    for column in rows.columns:
        same = [column.codes[a] == column.codes[b] for a, b in following]
        assert found.levels["same"][column.name] == pytest.approx(np.mean(same))
        if column.numbers is None:
            distinct = [len({int(column.codes[i]) for i in p}) for p in own]
            assert found.levels["distinct"][column.name] == pytest.approx(np.mean(distinct))
    numbers = [[float(NUMBERS[c]) for c in rows.columns[1].codes[p] if not np.isnan(NUMBERS[c])] for p in own]
    assert list(found.levels["likeness"]) == ["level"]
    assert found.levels["likeness"]["level"] == pytest.approx(anova(numbers))


@pytest.mark.parametrize("rows", WORLDS)
def test_gaps_and_spans_are_those_between_known_places(rows):
    cuts, own, order = cuts_of(rows), histories(rows), rows.order
    gaps = [order[b] - order[a] for a, b in steps(rows) if not np.isnan(order[a]) and not np.isnan(order[b])]
    spans = [np.nanmax(order[p]) - np.nanmin(order[p]) for p in own if not np.isnan(order[p]).all()]
    found = person_figures(rows, cuts)
    assert sorted(rows.sorted.gaps) == sorted(gaps) and min(gaps) >= 0
    assert sorted(found.spans) == sorted(spans) and found.levels["spans"][""] == pytest.approx(np.mean(spans))
    low, high = (float(x) for x in (cuts[0].label.split(" to ") * 2)[:2])
    assert found.levels["gaps"][""] == pytest.approx(np.mean([low <= g <= high for g in gaps]))
    assert found.counts["gaps"][""].max() == round(found.levels["gaps"][""] * len(gaps))


@pytest.mark.parametrize("pair", [(WORLDS[0], WORLDS[1]), (WORLDS[0], world(320, 40, 6)), (WORLDS[2], WORLDS[0])])
def test_errors_are_distances_of_what_loops_over_persons_count(pair):
    cuts = cuts_of(pair[0])
    figures = [person_figures(rows, cuts) for rows in pair]
    found = errors(*figures)
    columns = range(len(pair[0].columns))

    def mean(count, own=columns):
        return pytest.approx(np.mean([apart(*(Counter(count(rows, rows.columns[i])) for rows in pair)) for i in own]))

    assert found["next"] == mean(lambda r, c: [(c.buckets[a], c.buckets[b]) for a, b in steps(r)])
    assert found["values"] == mean(lambda r, c: [v for p in histories(r) for v in {int(x) for x in c.buckets[p]}])
    assert found["distinct"] == mean(lambda r, c: [len({int(x) for x in c.codes[p]}) for p in histories(r)], (0, 2))
    assert found["records"] == mean(lambda r, c: [len(p) for p in histories(r)])
    assert found["constants"] == mean(lambda r, c: [c.codes[p[0]] for p in histories(r)], (2,))
    sizes = [0, 1, 2, 2, 3, 3, 3, 3, *[4] * 8, *[5] * 16, *[6] * 32]
    assert found["pairs"] == mean(lambda r, c: [(c.codes[p[0]], sizes[len(p) - 1]) for p in histories(r)], (2,))
    both = [f.levels["same"] for f in figures]
    assert found["same"] == pytest.approx(np.mean([abs(both[0][n] - both[1][n]) for n in both[0]]))
    assert found["likeness"] == pytest.approx(abs(np.diff([f.levels["likeness"]["level"] for f in figures])[0]))
    assert {n for n, v in errors(figures[0], figures[0]).items() if v} == set()


def test_the_order_of_rows_means_nothing_but_where_places_tie():
    rows = world(400, 50, 5)
    order = np.random.default_rng(1).permutation(400).astype(float)
    rows = replace(rows, order=order)
    mixed = rows.at(np.random.default_rng(2).permutation(400))
    assert errors(figures_of(rows), figures_of(mixed)) == dict.fromkeys(errors(figures_of(rows), figures_of(rows)), 0.0)
    ties = table((0, 1, 0), (0, 1, 0), (0, 1, 1))
    assert figures_of(ties).levels["same"]["v"] == 0.5
    assert figures_of(ties.at(np.array([0, 2, 1]))).levels["same"]["v"] == 0.0


def test_without_an_order_rows_follow_each_other_as_in_the_file():
    rows = table((7, 3, 0), (5, 1, 1), (7, 2, 1), (NOBODY, 0, 0), (5, 0, 1), ordered=False)
    found = figures_of(rows)
    assert found.levels["same"]["v"] == 0.5
    assert not {"gaps", "spans"} & (found.levels.keys() | found.counts.keys()) and not len(found.spans)
    assert errors(found, found)["gaps"] is None


@pytest.mark.parametrize("seed", range(5))
def test_likeness_is_one_of_alike_records_none_of_shuffled_ones_and_that_of_equal_groups(seed):
    rng = np.random.default_rng(seed)
    person = np.repeat(np.arange(500), 4)
    level = rng.normal(size=500)
    assert likeness(level[person], person) == pytest.approx(1)
    mixture = level[person] + rng.normal(size=2000)
    assert likeness(mixture, person) == pytest.approx(0.5, abs=0.06)
    assert likeness(rng.permutation(mixture), person) == pytest.approx(0, abs=0.06)
    assert likeness(1e9 + mixture, person) == pytest.approx(likeness(mixture, person), abs=1e-6)
    for undefined in (np.full(2000, 3.0), np.full(2000, np.nan)):
        assert likeness(undefined, person) is None
    assert likeness(mixture, np.arange(2000)) is None and likeness(mixture, np.zeros(2000, int)) is None


def test_buckets_of_gaps_hold_every_number_and_frequent_ones_alone():
    gaps = np.array([1.0] * 80 + [0.0] * 9 + [2.0] * 7 + [30.0] * 4)
    cuts = Cuts.of(gaps)
    assert cuts.label == "1" and cuts.counts(gaps)[cuts.usual] == 80
    assert cuts.counts(np.array([-5.0, 1.0, 500.0])).sum() == 3
    assert Cuts.of(np.empty(0)).counts(gaps).tolist() == [100]
    sizes, buckets = [1, 2, 3, 4, 5, 8, 9, 16, 17, 1024, 1025], [0, 1, 2, 2, 3, 3, 4, 4, 5, 10, 11]
    assert size_buckets(np.array(sizes)).tolist() == buckets


def test_persons_have_the_constant_of_their_first_record_though_it_varies():
    found = figures_of(table((5, 2, 0), (5, 1, 2), (3, 1, 1), (3, 4, 0), (8, 1, 2), fixed=True)).counts
    assert found["constants"]["v"].tolist() == [0, 1, 2]
    assert sorted(found["pairs"]["v × records"].tolist())[-3:] == [1, 1, 1]


def test_a_distance_needs_something_to_compare_with():
    assert distance(np.array([1, 1]), np.array([0, 0, 2])) == 1 and distance(np.array([2]), np.array([1, 1])) == 0.5
    assert distance(np.array([1]), np.array([0])) == 1 and distance(np.array([0]), np.array([1])) is None


def test_more_persons_and_values_than_a_table_of_marks_may_have_are_sorted(monkeypatch):
    rows = WORLDS[0]
    marked = figures_of(rows)
    monkeypatch.setattr("evaluation.persons.person_figures.MARKS", 1)
    assert figures_of(rows).levels == marked.levels


@pytest.mark.parametrize("rows", WORLDS)
def test_violations_are_those_of_a_loop_over_rows(rows):
    last: dict[int, int] = {}
    apart_rows = late = 0
    for i, person in enumerate(rows.owner.tolist()):
        if person != NOBODY:
            apart_rows += person in last and last[person] != i - 1
            late += last.get(person) == i - 1 and rows.order[i] < rows.order[i - 1]
            last[person] = i
    found = violations(rows, 5)
    assert (found["apart"], found["out_of_order"]) == (apart_rows, late)
    assert found["nobody"] == int((rows.owner == NOBODY).sum())
    assert found["beyond"] == sum(len(p) > 5 for p in histories(rows))
    assert found["varying"] == {"sex": 0.0} and violations(rows)["beyond"] is None


def test_whole_persons_break_nothing_and_a_constant_that_varies_is_seen():
    whole = table((4, 0, 1), (4, 0, 1), (4, 7, 1), (2, 3, 0), (9, 1, 1), fixed=True)
    assert violations(whole, 3) == {
        "nobody": 0, "apart": 0, "out_of_order": 0, "varying": {"v": 0.0}, "beyond": 0,
    }  # fmt: skip
    torn = table((4, 5, 1), (4, 0, 0), (2, 3, 0), (4, 7, 1), (NOBODY, 3, 0), (NOBODY, 1, 1), (2, 1, 0), fixed=True)
    assert violations(torn, 2) == {
        "nobody": 2, "apart": 2, "out_of_order": 1, "varying": {"v": 0.5}, "beyond": 1,
    }  # fmt: skip
    assert violations(table((1, 2, 0), (1, 1, 0), ordered=False))["out_of_order"] is None


def test_a_gap_beside_a_value_is_no_second_value_of_a_constant() -> None:
    rows = table((0, 0, 1), (0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 1, 1), (1, 2, 0), (2, 0, 2), fixed=True)
    with_gap = replace(rows, columns=(replace(rows.columns[0], gap=2),))
    assert violations(rows)["varying"] == {"v": 2 / 3} and violations(with_gap)["varying"] == {"v": 1 / 3}


def test_the_truth_scores_0_and_shuffled_owners_about_1():
    real = world(4000, 500, 1)
    found = [scored_persons(real, other).score for other in (real, real.shuffled(np.random.default_rng(9)))]
    assert found[0] == 0 and found[1] == pytest.approx(1, abs=0.05)


def test_the_more_owners_are_shuffled_the_higher_is_the_score_and_a_second_sample_scores_as_halves_do():
    real, scores = world(4000, 500, 1), []
    for share in (0.1, 0.3, 0.6, 1.0):
        owner, rng = real.owner.copy(), np.random.default_rng(2)
        some = np.flatnonzero((rng.random(4000) < share) & (owner != NOBODY))
        owner[some] = rng.permutation(owner[some])
        scores.append(scored_persons(real, replace(real, owner=owner)).score)
    assert scores == sorted(scores) and scores[0] > 0.02 and scores[-1] > 0.9
    first, second = (world(4000, 500, 1).halves(np.random.default_rng(s))[0] for s in (1, 2))
    again = scored_persons(first, second)
    assert 0 < again.score < 0.25 and 0 < again.ends.honest < 0.4 and again.ends.poor == 1


def test_shuffling_keeps_rows_and_numbers_of_records_and_halves_part_persons():
    real = world(600, 80, 3)
    shuffled, (first, second) = real.shuffled(np.random.default_rng(4)), real.halves(np.random.default_rng(5))
    assert sorted(shuffled.owner) == sorted(real.owner) and (shuffled.owner != real.owner).sum() > 300
    assert ((shuffled.owner == NOBODY) == (real.owner == NOBODY)).all() and shuffled.columns is real.columns
    parts = [{*half.owner.tolist()} for half in (first, second)]
    assert not parts[0] & parts[1] and len(parts[0]) == len(parts[1]) == 40 and NOBODY not in parts[0] | parts[1]
    assert len(first.owner) + len(second.owner) == (real.owner != NOBODY).sum()


def test_wrong_numbers_of_records_cost_though_shuffling_never_changes_them():
    real = world(3000, 300, 6, nobody=0)
    split = replace(real, owner=real.owner * 2 + np.arange(3000) % 2)
    found = scored_persons(real, split)
    assert found.errors["shuffled"]["records"] == 0 and found.errors["synthetic"]["records"] > 0.5
    assert found.score > 0.3


def test_what_cannot_be_scored_says_why():
    real = world(60, 10, 7)
    nobody = replace(real, owner=np.full(60, NOBODY))
    for pair, side in (((nobody, real), "real"), ((real, nobody), "synthetic"), ((real, real.at([])), "synthetic")):
        found = scored_persons(*pair)
        assert found.score is None and found.to_json()["reason"] == f"no row of the {side} table has a subject"
        json.dumps(found.drawn(None, Options())["persons"] | {"people": None}, allow_nan=False)
    one = table((3, 1, 0), (3, 2, 1), (3, 3, 0))
    alone = table(*((i, i, i % 2) for i in range(9)))
    alike = table(*((i % 3, i, 0) for i in range(9)), ordered=False)
    for rows in (one, alone, alike):
        assert "shuffled owners change nothing" in scored_persons(rows, rows).to_json()["reason"]


def test_what_the_synthetic_table_alone_has_not_is_wholly_lost():
    real = world(2000, 200, 8, nobody=0)
    alone = replace(real, owner=np.arange(2000))
    found = scored_persons(real, alone).errors["synthetic"]
    assert found["same"] == found["likeness"] == found["next"] == found["gaps"] == 1


def test_shown_persons_are_whole_in_order_and_from_few_records_to_many():
    rows = world(900, 100, 9)
    found = whole_persons(rows, lambda name, code: f"{name} {code}", seed=1)
    sizes = [p["records"] for p in found["shown"]]
    assert len(sizes) == 12 and sizes == sorted(sizes) and found["columns"] == ["home", "level", "sex"]
    told = [[[f"{c.name} {c.codes[i]}" for c in rows.columns] for i in own] for own in histories(rows)]
    assert all(person["rows"] in told for person in found["shown"])
    long = whole_persons(table(*((0, i, i % 5) for i in range(40))), lambda _, code: str(code))
    assert long["shown"] == [{"records": 40, "rows": [[str(i % 5)] for i in range(25)]}]


@pytest.mark.parametrize(
    ("real", "made"), [([1, 1, 2, 5], [1, 3]), ([0.5, 2.25], [7.0, 0.0]), ([4], [4]), ([0, 99], [7])]
)
def test_shares_of_persons_add_up_and_lie_in_the_groups_of_their_labels(real, made):
    found = drawn_shares(np.array(real), np.array(made))
    assert len(found["labels"]) == len(found["real"]) == len(found["synthetic"]) <= 30
    assert sum(found["real"]) == pytest.approx(1) == sum(found["synthetic"])
    ends = [[float(x) for x in (label.split(" to ") * 2)[:2]] for label in found["labels"]]
    for side, numbers in (("real", real), ("synthetic", made)):
        for (low, high), share in zip(ends, found[side], strict=True):
            whole = all(float(n).is_integer() for n in (*real, *made))
            inside = [low <= n <= high if whole else low - 1e-2 <= n < high + 1e-2 for n in numbers]
            assert share <= np.mean(inside) + 1e-9
    assert drawn_shares(np.empty(0), np.array(made)) is None


def persons_of(rows, domain, **options):
    codes = CodedTable(domain, tuple(c.codes for c in rows.columns))
    settings = {"fixed": ["sex"], "most_records": 3}
    both = {"subject": (rows.owner, rows.owner), "order": (rows.order, rows.order)}
    return compute(METRICS["persons"], codes, codes, None, Options(settings=settings, **both, **options))


def test_the_metric_takes_constants_bounds_and_order_and_places_of_ordered_codes_as_numbers():
    rows = world(500, 60, 10)
    domain = Domain((Attribute("home", 6), Attribute("level", 5, 4), Attribute("sex", 2)))
    outcome = persons_of(rows, domain)
    own = scored_persons(*(replace(rows, columns=(
        rows.columns[0], replace(rows.columns[1], numbers=np.array([0, 1, 2, 3, np.nan])), rows.columns[2],
    )),) * 2)  # fmt: skip
    assert outcome.score == 0 and outcome.reading.label == "good"
    assert outcome.result.figures["real"].levels == own.figures["real"].levels
    broken = outcome.result.broken["synthetic"]
    assert broken["varying"] == {"sex": 0.0} and broken["beyond"] == sum(len(p) > 3 for p in histories(rows))
    drawn = outcome.result.drawn(None, Options())["persons"]
    assert {"levels", "errors", "violations", "shares", "people"} <= drawn.keys()
    assert "people" not in outcome.to_json()["details"]  # no row of either table stands in scores.json
