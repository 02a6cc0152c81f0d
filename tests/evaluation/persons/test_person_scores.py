"""The score of whole persons: 0 for the truth, 1 for shuffled owners, and what stands between."""

import json
from dataclasses import replace

import numpy as np
import pytest

from evaluation.metric import Options
from evaluation.metrics import METRICS
from evaluation.outcome import compute
from evaluation.persons.person_scores import drawn_shares, scored_persons, whole_persons
from evaluation.values.value_tables import NOBODY
from mechanisms.public.coded_table import CodedTable
from mechanisms.public.domain import Attribute, Domain
from tests.evaluation.persons.small_worlds import histories, table, world


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
