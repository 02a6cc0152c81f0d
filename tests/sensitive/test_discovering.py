"""What is discovered, and how many records units have: counted once for each unit."""

import itertools
import json
import math
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from mechanisms.accounting.accountants.registered import ACCOUNTANTS
from mechanisms.accounting.budget import Budget
from mechanisms.accounting.ledger import Ledger
from mechanisms.accounting.plan import Plan, Reservation
from mechanisms.accounting.planning import Request, make_plan, plan_discovery, reserve
from mechanisms.accounting.thresholds import weight_of
from mechanisms.public.discovery.discovered_columns import questions_of, scouting_schema
from mechanisms.public.discovery.discovery_questions import union_sensitivity
from mechanisms.public.domain import Attribute, Domain
from mechanisms.public.errors import UserError
from mechanisms.public.persons.person_questions import records_per_unit
from mechanisms.public.schema.table_schema import parse_schema
from mechanisms.public.units import WEIGHT_BITS, Neighbouring
from mechanisms.selection.fixed import Merge
from mechanisms.sensitive.contribution import PrivacyUnit, UnitRows
from mechanisms.sensitive.measurement import (
    MAX_TEXT,
    ValueWeights,
    discover,
    may_be_listed,
    measure_persons,
    released_values,
    value_weights,
)
from mechanisms.sensitive.noise import SeededNoise
from mechanisms.sensitive.private_table import load_private
from tests.public.table_worlds import csv, schema, source
from tests.sensitive.test_exit import follows_its_law

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
    found = value_weights(UnitRows(source(path), unit, work), facts, key=KEY, norm=norm, holdout=holdout)["city"]
    assert not list(work.glob("*.parquet")) and "rome" not in repr(found)
    return dict(zip(found.texts, found.units.tolist(), strict=True))


def test_each_record_or_unit_counts_once_per_value_and_gaps_and_other_do_not(tmp_path: Path) -> None:
    one, two = 1 << WEIGHT_BITS, weight_of(2, "l2")
    assert weighed(tmp_path, ROWS, PrivacyUnit()) == {"rome": 3 * one, "oslo": one}
    assert weighed(tmp_path, ROWS, PrivacyUnit("id", 3)) == {"rome": two + one, "oslo": two}
    assert weighed(tmp_path, ROWS, PrivacyUnit("id", 3), norm="l1")["oslo"] == one // 2


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
        table = UnitRows(source(path), unit, home / "v")
        return value_weights(table, [FACTS["city"]], key=KEY, norm=plan.norm, holdout=None)

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


SCHEMA = parse_schema({"x": 2}, where="test")
DOMAIN = Domain((Attribute("x", 2),))
SECRET = b"k" * 32


def counted(folder: Path, ids: list[str], bound: int, holdout: float | None = None, **unit: str) -> np.ndarray:
    """Units with 1 … C records, read from a real file with a row per id."""
    rows = source(csv(folder, "id,x\n" + "".join(f"{i},0\n" for i in ids)))
    who = PrivacyUnit(column="id", max_records=bound, **unit)  # type: ignore[arg-type]
    return load_private(rows, SCHEMA, who, workdir=folder / "w", key=SECRET, holdout=holdout, histogram=bound).histogram


def test_units_stand_under_their_number_of_records_and_large_ones_under_the_bound(tmp_path):
    ids = ["a"] * 5 + ["b"] * 2 + ["c"] + ["d"] * 3 + [""] * 4
    assert counted(tmp_path, ids, 3).tolist() == [1, 1, 2]
    assert counted(tmp_path, ids, 3, clip="truncate").tolist() == [1, 1, 2]
    assert counted(tmp_path, ids, 3, missing="own").tolist() == [5, 1, 2]
    assert counted(tmp_path, ids, 8).tolist() == [1, 1, 1, 0, 1, 0, 0, 0]


def test_units_that_were_set_aside_are_not_counted(tmp_path):
    ids = [f"u{i}" for i in range(400)]
    both = [counted(tmp_path, ids, 2, 0.25), counted(tmp_path, ["" for _ in ids], 2, 0.25, missing="own")]
    for found in both:
        assert 240 < found[0] < 360 and found[1] == 0


@pytest.mark.parametrize("bound", [1, 2, 3])
@pytest.mark.parametrize("missing", ["drop", "own"])
def test_no_unit_changes_the_histogram_by_more_than_the_sensitivity(tmp_path, bound, missing):
    """The unit `p` has 0 to 4 records; under missing=own a row without an id comes and goes too."""
    others = ["q", "q", "r", "", "s", "s", "s"]
    worlds = [counted(tmp_path, [*others, *["p"] * n], bound, missing=missing) for n in range(5)]
    if missing == "own":
        worlds.append(counted(tmp_path, [*others, ""], bound, missing=missing))
    wanted = records_per_unit("id", bound, 0.1)
    for neighbouring in Neighbouring:
        pairs = (
            itertools.product(worlds, worlds)
            if neighbouring is Neighbouring.REPLACE
            else ((w, worlds[0]) for w in worlds)
        )
        changes = [a - b for a, b in pairs]
        for norm, order in (("l1", 1), ("l2", 2)):
            found = max(float(np.linalg.norm(c, order)) for c in changes)
            claimed = wanted.sensitivity(norm=norm, neighbouring=neighbouring, max_records=bound)
            assert found <= claimed and found > 0.99 * claimed
    assert wanted.sensitivity(norm="l1", neighbouring=Neighbouring.ADD_REMOVE, max_records=bound) == 1
    if bound > 1:
        replaced = {"neighbouring": Neighbouring.REPLACE, "max_records": bound}
        assert wanted.sensitivity(norm="l1", **replaced) == 2
        assert wanted.sensitivity(norm="l2", **replaced) == pytest.approx(math.sqrt(2))


@dataclass(frozen=True)
class Fleet:
    """Stands for a private table of 3,000 cells of records per unit."""

    histogram: np.ndarray


def plan(mechanism: str, accountant: str, neighbouring: Neighbouring, bound: int, share: float = 0.25) -> Plan:
    budget, counted = Budget(1.0, 1e-6, accountant, neighbouring, bound), records_per_unit("id", bound, share)
    return make_plan(DOMAIN, [Request(("x",))], budget, mechanism=mechanism, beside=[counted])


@pytest.mark.parametrize("accountant", ACCOUNTANTS)
@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
@pytest.mark.parametrize("neighbouring", list(Neighbouring))
def test_the_noise_has_the_scale_that_was_charged_for_one_unit(tmp_path, accountant, mechanism, neighbouring):
    """Two-sided: the test fails when the scale is 20 % off in either direction, and C does not multiply it."""
    which = plan(mechanism, accountant, neighbouring, 3000)
    ledger, exact = Ledger.open(tmp_path / "l", which), np.arange(3000) % 7
    (answer,) = measure_persons(Fleet(exact), ledger, SeededNoise(4), answers_dir=tmp_path / "a")  # type: ignore[arg-type]
    follows_its_law((answer.values - exact) / answer.scale, mechanism, off=0.2)
    ratio = which.measurements[0].event.scale / answer.scale
    part = 3.0 if accountant == "basic" and mechanism == "laplace" else math.sqrt(3.0)
    if (accountant in ("zcdp", "gdp") and mechanism == "gaussian") or (
        accountant == "basic" and mechanism == "laplace"
    ):
        assert ratio == pytest.approx(3000 / part, rel=1e-6), "C for a marginal, 1 here; three quarters of the budget"
    assert which.loss.epsilon <= 1.0 and which.loss.delta <= 1e-6 and which.loss.epsilon > 0.99


def test_it_is_measured_once_and_kept_answers_must_be_those_that_were_charged(tmp_path):
    which, table = plan("gaussian", "gdp", Neighbouring.ADD_REMOVE, 4), Fleet(np.array([5, 0, 2, 1]))

    def measured(which: Plan = which) -> object:
        ledger = Ledger.open(tmp_path / "l", which)
        found = measure_persons(table, ledger, SeededNoise(4), answers_dir=tmp_path / "a")  # type: ignore[arg-type]
        return found[0].values.tolist() if found else None

    first = measured()
    assert measured() == first and len((tmp_path / "l").read_text().splitlines()) == 2
    (tmp_path / "a" / "units.npz").unlink()
    assert measured() is None, "spent without an answer, and not measured again"
    (tmp_path / "l").unlink()
    measured()
    (tmp_path / "l").write_text(
        json.dumps({"plan": json.loads((tmp_path / "l").read_text().splitlines()[0])["plan"]}) + "\n"
    )
    with pytest.raises(UserError, match="not what the ledger was charged for"):
        measured()


def test_rounds_share_what_the_histogram_leaves():
    wanted = [Reservation("given", ("x",), 2, 1.0), Reservation("choose", None, 0, 1.0)]
    budget, beside = Budget(1.0, 1e-6, "gdp", Neighbouring.ADD_REMOVE, 5), [records_per_unit("id", 5, 0.2)]
    found = reserve(wanted, budget, method=Merge(0.0, 0.0).description, noise="gaussian", beside=beside)
    assert sum(s.share for s in found.slots) == pytest.approx(0.8)
    assert 0.999 < found.loss.epsilon <= 1
    assert found.histogram is not None and found.histogram.event.scale < found.slots[0].event.scale / 2
    assert not found.buys_answers(found.histogram.event) and found.reserved(found.histogram.event) is not None
    assert found.receipts({found.histogram.event.id: found.histogram.event})[0]["clique"] == ["records per id"]
