"""Figures of persons, against loops over the persons of small worlds."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from evaluation.persons.person_figures import Cuts, cuts_of, distance, errors, likeness, person_figures, size_buckets
from evaluation.persons.person_scores import violations
from evaluation.values.value_tables import NOBODY
from tests.evaluation.persons.small_worlds import NUMBERS, anova, apart, histories, steps, table, world

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
