"""The noisy distance of a synthetic table: sensitivity by enumeration through the real loader, noise, cost."""

import itertools
import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from mechanisms.accounting.budget import Budget
from mechanisms.accounting.ledger import Ledger
from mechanisms.accounting.planning import Request, make_plan
from mechanisms.public.coded_table import CodedTable
from mechanisms.public.criterion import Criterion
from mechanisms.public.domain import Attribute, Domain
from mechanisms.public.errors import UserError
from mechanisms.public.schema.table_schema import parse_schema
from mechanisms.public.tables.scan import open_table
from mechanisms.public.units import WEIGHT_BITS, Neighbouring
from mechanisms.sensitive.closeness import exact_distance, noisy_distance
from mechanisms.sensitive.contribution import PrivacyUnit
from mechanisms.sensitive.noise import SeededNoise
from mechanisms.sensitive.private_table import PrivateTable, load_private

SCHEMA = parse_schema({"x": 2, "y": 2, "z": 2}, where="test")
DOMAIN = Domain(tuple(Attribute(n, 2) for n in "xyz"))
PAIRS = (("x", "y"), ("x", "z"), ("y", "z"))
CELLS = list(itertools.product(range(2), repeat=3))


def criterion(over="mean", cliques=PAIRS, at_most=None) -> Criterion:
    return Criterion(0, len(cliques[0]), cliques, 0, over, at_most, 0.05)


def synthetic(rows: list[tuple[int, ...]]) -> CodedTable:
    return CodedTable(DOMAIN, tuple(np.array(rows, np.uint8).reshape(-1, 3).T.copy()))


def loaded(folder: Path, rows: list[tuple[str, int, int, int]], bound: int) -> PrivateTable:
    folder.mkdir(exist_ok=True)
    path = folder / "t.csv"
    path.write_text("id,x,y,z\n" + "".join(f"{i},{x},{y},{z}\n" for i, x, y, z in rows))
    source = open_table(path, workdir=folder, memory_limit_bytes=10**9, threads=1)
    unit = PrivacyUnit(column="id", max_records=bound, clip="weight")
    return load_private(source, SCHEMA, unit, workdir=folder / "w", key=b"k" * 32)


def plan_of(wanted: Criterion, neighbouring=Neighbouring.ADD_REMOVE, *, mechanism="gaussian", bound=1):
    budget = Budget(1.0, 1e-6, "gdp" if mechanism == "gaussian" else "basic", neighbouring, bound)
    return make_plan(DOMAIN, [Request(p) for p in PAIRS], budget, mechanism=mechanism, beside=[wanted])


@pytest.mark.parametrize("bound", [1, 2])
def test_no_unit_moves_the_distance_by_more_than_the_sensitivity(tmp_path, bound):
    """The unit `p` has up to 3 records of any kind; `q` and rows without an id stay; weights are broken for C < R."""
    others = [("q", 0, 0, 0), ("q", 1, 0, 1), ("q", 1, 1, 1), ("", 0, 1, 1)]
    made = [synthetic([]), synthetic([(0, 0, 0)] * 3), synthetic([(0, 0, 0), (1, 1, 0), (0, 1, 1)])]
    tables = []
    for n in range(4):
        for mine in itertools.combinations_with_replacement([CELLS[0], CELLS[7]], n):
            tables.append(loaded(tmp_path / f"{len(tables)}", [*others, *(("p", *row) for row in mine)], bound))
    for over, neighbouring in itertools.product(("mean", "largest"), Neighbouring):
        worlds = [[exact_distance(t, m, criterion(over)) for m in made] for t in tables]
        claimed = criterion(over).sensitivity(norm="l1", neighbouring=neighbouring, max_records=bound) * 2**WEIGHT_BITS
        theirs = worlds if neighbouring is Neighbouring.REPLACE else worlds[:1]
        pairs = itertools.product(worlds, theirs)
        largest = max(abs(a - b) for one, two in pairs for a, b in zip(one, two, strict=True))
        assert largest <= claimed
        assert largest > 0.99 * claimed, "attained: no budget is wasted"


def test_a_mean_over_many_marginals_moves_no_further_after_it_is_rounded_down(tmp_path):
    """Seven marginals of mixed size: the sum of the distances does not divide evenly."""
    several = (*PAIRS, ("x",), ("y",), ("z",), ("x", "y", "z"))
    wanted = replace(criterion(), cliques=several)
    rows = [("a", 0, 0, 1), ("a", 0, 1, 1), ("a", 1, 1, 1), ("b", 1, 0, 0)]
    made = synthetic([(0, 0, 0), (1, 1, 1)])
    one, two = (exact_distance(loaded(tmp_path, r, 1), made, wanted) for r in (rows, rows[:3]))
    assert abs(one - two) <= 2**WEIGHT_BITS


def test_the_distance_is_the_mean_or_the_largest_l1_distance_in_records(tmp_path):
    table = loaded(tmp_path, [(f"u{i}", *c) for i, c in enumerate([(0, 0, 0), (0, 0, 1), (1, 1, 1)])], 1)
    made = synthetic([(0, 0, 0), (1, 0, 0)])
    each = [2 + 1 - 2 * 1 + 2, 3, 3]  # by hand: xy: |2-1| + |0-0| + |0-1| + |1-0|; xz and yz as below
    by_hand = []
    for a, b in ((0, 1), (0, 2), (1, 2)):
        real, fake = np.zeros((2, 2)), np.zeros((2, 2))
        for row in [(0, 0, 0), (0, 0, 1), (1, 1, 1)]:
            real[row[a], row[b]] += 1
        for row in [(0, 0, 0), (1, 0, 0)]:
            fake[row[a], row[b]] += 1
        by_hand.append(np.abs(real - fake).sum())
    assert by_hand == each
    assert exact_distance(table, made, criterion("mean")) == math.floor(sum(by_hand) / 3 * 2**WEIGHT_BITS)
    assert exact_distance(table, made, criterion("largest")) == max(by_hand) * 2**WEIGHT_BITS
    scaled = exact_distance(table, synthetic([(0, 0, 0), (0, 0, 1), (1, 1, 1)] * 2), criterion(), scale=0.5)
    assert scaled == 0, "twice the rows at half the weight are the same table"


@pytest.mark.parametrize("mechanism", ["gaussian", "laplace"])
def test_the_noise_is_that_of_the_event(tmp_path, mechanism):
    wanted = criterion()
    plan = plan_of(wanted, mechanism=mechanism)
    (planned,) = plan.scores
    exact, drawn = 7 << WEIGHT_BITS, []
    for seed in range(150):
        ledger = Ledger(tmp_path / f"{seed}.jsonl", plan)
        drawn.append(asked(planned, lambda: exact, ledger, SeededNoise(seed), tmp_path / f"{seed}.json"))
    values = np.array(drawn)
    assert values.mean() == pytest.approx(7, abs=5 * planned.event.stddev / math.sqrt(values.size))
    assert values.std() == pytest.approx(planned.event.stddev, rel=0.2)
    alone = wanted.sensitivity(norm=planned.event.norm, neighbouring=Neighbouring.ADD_REMOVE, max_records=1)
    assert planned.event.stddev > 4 * alone


def asked(planned, distance, ledger, source, path, bound=1):
    budget = replace(ledger.plan.budget, max_records=bound)
    return noisy_distance(planned, distance, ledger, source, budget=budget, path=path)


def test_a_distance_is_kept_charged_once_and_never_drawn_again(tmp_path):
    plan = plan_of(criterion(at_most=5.0))
    (planned,), path = plan.scores, tmp_path / "s.json"
    ledger = Ledger.open(tmp_path / "l.jsonl", plan)
    again = lambda p=planned: asked(p, lambda: 0, ledger, SeededNoise(1), path)  # noqa: E731
    first = again()
    assert first == again()
    assert list(ledger.events) == ["accept:0"]
    with pytest.raises(UserError, match="does not follow"):
        again(replace(planned, asked=criterion(at_most=6.0)))
    kept = json.loads(path.read_text())
    path.write_text(json.dumps({**kept, "value": None}))
    with pytest.raises(UserError, match="does not follow"):
        again()
    path.unlink()
    assert again() is None, "charged and lost"


def test_a_score_that_pays_for_less_than_it_moves_is_refused_before_anything_is_charged(tmp_path):
    plan = plan_of(criterion())
    ledger = Ledger.open(tmp_path / "l.jsonl", plan)
    with pytest.raises(RuntimeError, match="sensitivity"):
        asked(plan.scores[0], lambda: 0, ledger, SeededNoise(1), tmp_path / "s.json", bound=2)
    assert not ledger.events


@pytest.mark.parametrize("mechanism", ["gaussian", "laplace"])
def test_the_score_takes_its_share_of_the_budget_and_the_marginals_the_rest(mechanism):
    wanted = replace(criterion(), share=0.2)
    plan, without = plan_of(wanted, mechanism=mechanism), plan_of(replace(wanted, share=1e-4), mechanism=mechanism)
    assert plan.loss.epsilon <= 1.0
    assert plan.loss.epsilon > 0.999
    costs = [plan.accountant.cost(e) for e in plan.events]
    own = costs[-1]["mu"] ** 2 / sum(c["mu"] ** 2 for c in costs) if mechanism == "gaussian" else costs[-1]["epsilon"]
    assert own == pytest.approx(0.2, rel=1e-6)
    assert plan.measurements[0].event.scale > without.measurements[0].event.scale
    assert not plan.buys_answers(plan.scores[0].event)
