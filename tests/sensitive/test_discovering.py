"""Values and trees leave by the one exit: each unit counts once per value, and what leaves was charged before."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from mechanisms.accounting.budget import Budget
from mechanisms.accounting.ledger import Ledger
from mechanisms.accounting.planned_discovery import plan_discovery
from mechanisms.accounting.thresholds import weight_of
from mechanisms.public.discovery.scouting import questions_of, scouting_schema
from mechanisms.public.discovery.wanted import union_sensitivity
from mechanisms.public.errors import UserError
from mechanisms.public.units import WEIGHT_BITS, Neighbouring
from mechanisms.sensitive.contribution import PrivacyUnit
from mechanisms.sensitive.discovering import discover, released_values
from mechanisms.sensitive.noise import SeededNoise
from mechanisms.sensitive.private_table import load_private
from mechanisms.sensitive.value_weights import MAX_TEXT, ValueWeights, may_be_listed, value_weights
from tests.public.table_worlds import csv, schema, source

KEY = bytes(32)
FACTS = schema(
    city={"kind": "categorical", "values": "discover", "missing": ["?"], "other": "else"},
    n={"kind": "integer", "bounds": "discover", "within": [0, 9], "bins": "discover"},
)
ROWS = [("u", "rome", 1), ("u", "rome", 1), ("u", "oslo", 2), ("v", "rome", 9), ("w", "?", 3), ("w", "else", 3)]


def weighed(tmp_path: Path, rows, unit: PrivacyUnit, norm="l2", holdout=None) -> dict[str, int]:
    work = tmp_path / "w"
    work.mkdir(exist_ok=True, mode=0o700)
    path = csv(tmp_path, "id,city,n\n" + "".join(f"{i},{c},{n}\n" for i, c, n in rows))
    facts = [FACTS["city"]]
    found = value_weights(source(path), facts, unit, key=KEY, norm=norm, holdout=holdout, workdir=work)["city"]
    assert not list(work.glob("*.parquet")) and "rome" not in repr(found)
    return dict(zip(found.texts, found.units.tolist(), strict=True))


def test_each_record_counts_once_where_it_is_the_unit_and_gaps_and_other_do_not(tmp_path: Path) -> None:
    one = 1 << WEIGHT_BITS
    assert weighed(tmp_path, ROWS, PrivacyUnit()) == {"rome": 3 * one, "oslo": one}


def test_a_unit_counts_once_per_value_however_many_records_hold_it(tmp_path: Path) -> None:
    two = weight_of(2, "l2")
    assert weighed(tmp_path, ROWS, PrivacyUnit("id", 3)) == {"rome": two + (1 << WEIGHT_BITS), "oslo": two}
    halves = weighed(tmp_path, ROWS, PrivacyUnit("id", 3), norm="l1")
    assert halves["oslo"] == 1 << (WEIGHT_BITS - 1)


def test_a_unit_with_more_values_than_c_counts_with_c_of_them_at_random(tmp_path: Path) -> None:
    rows = [(f"u{i}", f"city {k}", 1) for i in range(60) for k in range(5)]
    found = weighed(tmp_path, rows, PrivacyUnit("id", 2))
    assert sum(found.values()) == 120 * weight_of(2, "l2")
    assert len(found) == 5 and max(found.values()) < 60 * weight_of(2, "l2")


@pytest.mark.parametrize("missing", ["drop", "own"])
def test_rows_without_an_id_are_units_of_their_own_or_none(missing, tmp_path: Path) -> None:
    rows = [("", "rome", 1), ("NA", "rome", 1), ("u", "oslo", 1)]
    found = weighed(tmp_path, rows, PrivacyUnit("id", 2, missing=missing))
    assert found.get("rome", 0) == (2 << WEIGHT_BITS if missing == "own" else 0)


def test_units_that_are_set_aside_do_not_count(tmp_path: Path) -> None:
    rows = [(f"u{i}", f"city {i}", 1) for i in range(200)]
    for unit in (PrivacyUnit("id", 1), PrivacyUnit()):
        found = weighed(tmp_path, rows, unit, holdout=0.5)
        work = tmp_path / ("x" + str(unit.column))
        work.mkdir(mode=0o700)
        private = load_private(
            source(tmp_path / "table.csv"),
            scouting_schema(FACTS), unit, workdir=work, key=KEY, holdout=0.5,
        )  # fmt: skip
        assert private.aside is not None
        assert set(found) == {f"city {i}" for i in np.flatnonzero(~private.aside)} and 60 < len(found) < 140


def test_texts_that_no_list_can_hold_never_count() -> None:
    assert may_be_listed("São Paulo") and may_be_listed("a: b # c")
    for text in ("", " x", "x ", "a\nb", "a\tb", "x" * (MAX_TEXT + 1), "\ue000", "\u200b"):
        assert not may_be_listed(text)


@pytest.mark.parametrize(("bound", "norm", "power"), [(1, "l2", 2), (3, "l1", 1), (3, "l2", 2)])
def test_weights_of_neighbours_differ_by_no_more_than_is_charged(bound, norm, power, tmp_path: Path) -> None:
    others = [("v", "rome", 1), ("v", "oslo", 1), ("w", "rome", 1)]
    held = [[], ["rome"], ["bern"], ["rome"] * 3, ["oslo", "bern"], ["rome", "rome", "bern"], ["rome", "bern", "oslo"]]
    unit, found = PrivacyUnit("id", bound), []
    for cities in held:
        mine = [("u", city, 1) for city in cities]
        found.append(Counter(weighed(tmp_path, [*mine, *others], unit, norm)))
    reached = dict.fromkeys(Neighbouring, 0.0)
    without = found[0]
    for one, two in itertools.combinations(found, 2):
        moved = sum(abs(one[k] - two[k]) ** power for k in one.keys() | two.keys())
        relation = Neighbouring.ADD_REMOVE if one is without else Neighbouring.REPLACE
        reached[relation] = max(reached[relation], moved)
    for relation, moved in reached.items():
        charged = (union_sensitivity(norm, relation) * 2**WEIGHT_BITS) ** power
        assert 0.99 * charged < moved <= charged


def planned(unit: PrivacyUnit, epsilon=1.0, neighbouring=Neighbouring.ADD_REMOVE):
    budget = Budget(epsilon, 1e-6, "gdp", neighbouring, unit.max_records)
    return plan_discovery(questions_of(FACTS), budget, share=0.5, mechanism="auto")


def asked(tmp_path: Path, rows, seed=1, plan=None, folder="run"):
    path = csv(tmp_path, "id,city,n\n" + "".join(f"{i},{c},{n}\n" for i, c, n in rows))
    home, unit = tmp_path / folder, PrivacyUnit("id", 2)
    for name in ("p", "v"):
        (home / name).mkdir(parents=True, exist_ok=True, mode=0o700)
    private = load_private(source(path), scouting_schema(FACTS), unit, workdir=home / "p", key=KEY)
    plan = plan or planned(unit)
    ledger = Ledger.open(home / "ledger.jsonl", plan)

    def weights():
        return value_weights(
            source(path), [FACTS["city"]], unit, key=KEY, norm=plan.norm, holdout=None,
            workdir=home / "v",
        )  # fmt: skip

    return discover(private, weights, ledger, SeededNoise(seed), answers_dir=home / "answers"), ledger, home


def test_many_units_values_are_released_and_one_units_are_not(tmp_path: Path) -> None:
    rows = [(f"u{i}", "rome" if i % 2 else "oslo", i % 10) for i in range(4000)] + [("z", "lonely", 9)]
    answers, ledger, home = asked(tmp_path, rows)
    assert answers["city"] == ("oslo", "rome")
    assert list(ledger.events) == ["discovery:city", "discovery:n"]
    assert "lonely" not in "".join(p.read_text(errors="replace") for p in (home / "answers").iterdir())
    assert answers["n"].shape == questions_of(FACTS)[1].tree.query.answer(np.zeros(11)).shape


def test_kept_answers_are_taken_as_they_are_and_lost_ones_are_never_drawn_again(tmp_path: Path) -> None:
    rows = [(f"u{i}", "rome", 1) for i in range(4000)]
    first, _, home = asked(tmp_path, rows)
    again, ledger, _ = asked(tmp_path, rows[:10], seed=99)  # neither the rows nor other noise are looked at
    assert again["city"] == first["city"] and (again["n"] == first["n"]).all() and len(ledger.events) == 2
    (home / "answers" / "00000.json").unlink()
    lost, _, _ = asked(tmp_path, rows, seed=99)
    assert lost["city"] is None and (lost["n"] == first["n"]).all()
    (home / "answers" / "00000.json").write_text(json.dumps({"event": "discovery:other", "values": ["forged"]}))
    with pytest.raises(UserError, match="not what the ledger was charged for"):
        asked(tmp_path, rows)


def test_a_table_that_is_clipped_otherwise_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="clipped to 2 records, the plan says 3"):
        asked(tmp_path, ROWS, plan=planned(PrivacyUnit("id", 3)))


def test_only_what_reaches_the_threshold_is_released_and_noise_has_its_scale() -> None:
    plan = planned(PrivacyUnit())
    event = replace(plan.charges[0].event, sigma=20.0)
    texts = tuple(f"v{i:05}" for i in range(20_000))
    weights = ValueWeights(texts, np.full(len(texts), 100 << WEIGHT_BITS, np.int64))
    for gap in (-20.0, 0.0, 20.0):
        threshold = round((100 + gap) * 2**WEIGHT_BITS)
        share = len(released_values(weights, event, threshold, SeededNoise(int(gap) + 50))) / len(texts)
        assert share == pytest.approx({-20.0: 0.8413, 0.0: 0.5, 20.0: 0.1587}[gap], abs=0.015)
    nobody = ValueWeights((), np.zeros(0, np.int64))
    assert released_values(nobody, event, 1, SeededNoise(1)) == []
