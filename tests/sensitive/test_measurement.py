"""The wall: nothing leaves without a charge before the draw, and what leaves carries the noise that was paid for."""

import json
import math
from dataclasses import dataclass, replace

import numpy as np
import pytest
from scipy import stats

from mechanisms.accounting.accountants import KINDS
from mechanisms.accounting.events import Gaussian, Laplace
from mechanisms.accounting.ledger import BudgetExceeded, Ledger
from mechanisms.accounting.plan import Plan, PlannedMeasurement, Request, make_plan
from mechanisms.public.domain import Attribute, Domain
from mechanisms.public.errors import UserError
from mechanisms.public.queries import MATRIX_BITS, SparseQuery
from mechanisms.public.table import CodedTable
from mechanisms.public.units import WEIGHT_BITS, Neighbouring
from mechanisms.sensitive.measurement import measure, through_the_wall
from mechanisms.sensitive.noise import SecureNoise, SeededNoise, lattice_noise, noise_source

TOWN = Domain((Attribute("a", 40), Attribute("b", 50)))
CLIQUES = (("a",), ("b",), ("a", "b"))


@dataclass(frozen=True)
class Town:
    """A private table of 300 rows."""

    max_records: int = 2

    @property
    def coded(self) -> CodedTable:
        rng = np.random.default_rng(5)
        columns = tuple(rng.integers(0, n.size, 300).astype(np.uint8) for n in TOWN.attributes)
        return CodedTable(TOWN, columns, np.full(300, 2**19, np.uint32))


def plan(mechanism: str = "gaussian", accountant: str = "gdp", neighbouring=Neighbouring.ADD_REMOVE) -> Plan:
    return make_plan(
        TOWN,
        [Request(c) for c in CLIQUES],
        mechanism=mechanism,
        accountant=accountant,
        epsilon=1.0,
        delta=1e-6,
        neighbouring=neighbouring,
        max_records=2,
    )


def measured(tmp_path, which: Plan, seed: int = 1):
    ledger = Ledger.open(tmp_path / "ledger.jsonl", which)
    return measure(Town(), which, ledger, SeededNoise(seed), answers_dir=tmp_path / "answers"), ledger


@pytest.mark.parametrize("accountant", KINDS)
@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
@pytest.mark.parametrize("neighbouring", list(Neighbouring))
def test_the_noise_added_has_the_scale_that_was_charged(tmp_path, accountant, mechanism, neighbouring):
    """Two-sided: the test fails when the scale is 30 % off in either direction."""
    which = plan(mechanism, accountant, neighbouring)
    known, ledger = measured(tmp_path, which)
    exact = np.zeros((40, 50))
    np.add.at(exact, tuple(Town().coded.columns), 0.5)
    answer = known.answers[2]
    noise = answer.values - exact.ravel()
    spread = np.abs(noise / answer.scale)
    mean, wide = (1.0, 1.0) if mechanism == "laplace" else (math.sqrt(2 / math.pi), math.sqrt(1 - 2 / math.pi))
    margin = 4 * wide / math.sqrt(noise.size)
    assert abs(spread.mean() - mean) < margin
    for wrong in (0.7, 1.3):
        assert abs(spread.mean() * wrong - mean) > margin
    law = stats.laplace if mechanism == "laplace" else stats.norm
    assert stats.kstest(noise / answer.scale, law.cdf).pvalue > 1e-3
    assert ledger.spent.epsilon <= 1.0
    assert ledger.spent.epsilon > 0.9999
    assert answer.scale == which.measurements[2].event.scale


def test_the_scale_charged_is_sensitivity_over_strength():
    for m in plan("laplace", "basic", Neighbouring.REPLACE).measurements:
        assert isinstance(m.event, Laplace)
        assert m.event.l1_sensitivity == 4
        assert m.event.scale == pytest.approx(4 / m.share, rel=1e-6)


def test_answers_lie_on_the_lattice_whatever_the_table():
    noise = lattice_noise(Gaussian("x", 1.0, 0.1), 1000, SeededNoise(0))
    assert noise.dtype == np.int64
    assert np.std(noise) == pytest.approx(0.1 * 2**WEIGHT_BITS, rel=0.15)


def test_no_bit_of_a_fractional_answer_stays_as_it_is():
    """Answers to entries in multiples of 2^-16 lie on a finer lattice: its lowest bits must be noise too."""
    query = SparseQuery.of(np.full((20_000, 1), 2.0**-MATRIX_BITS))  # each answer: one lowest bit
    planned = PlannedMeasurement(("a",), query, 1.0, Gaussian("x", 1.0, 5.0))
    which = replace(plan(), measurements=(planned,), max_records=1)
    answer = through_the_wall(np.array([1]), planned, which, Free(), SeededNoise(1))
    lowest = np.rint(answer.values * 2.0 ** (WEIGHT_BITS + MATRIX_BITS)).astype(np.int64) % 16
    counts = np.bincount(lowest, minlength=16)
    assert stats.chisquare(counts).pvalue > 1e-3


class Free:
    """A ledger that takes every charge."""

    def charge(self, event):
        self.event = event


def test_no_stream_serves_two_events():
    for source in (SecureNoise(), SeededNoise(3)):
        source.words("a", 4)
        with pytest.raises(RuntimeError, match="no stream serves two"):
            source.words("a", 4)
    one, two = SeededNoise(3), SeededNoise(3)
    assert not np.array_equal(one.words("a", 4), one.words("b", 4))
    assert np.array_equal(SeededNoise(3).words("b", 4), two.words("b", 4))
    assert not np.array_equal(SeededNoise(4).words("b", 4), SeededNoise(3).words("b", 4))


def test_without_a_seed_the_source_is_the_secure_one():
    assert isinstance(noise_source(None), SecureNoise)
    assert not np.array_equal(SecureNoise().words("a", 8), SecureNoise().words("a", 8))


def test_noise_beyond_the_lattice_is_a_clear_error():
    with pytest.raises(UserError, match=r"privacy\.epsilon"):
        lattice_noise(Laplace("x", 1.0, 1e12), 1, SecureNoise())


def test_the_tails_of_the_noise_are_those_of_its_law():
    draws = lattice_noise(Laplace("x", 1.0, 1.0), 400_000, SeededNoise(9)) * 2.0**-WEIGHT_BITS
    for far in (3.0, 6.0, 9.0):
        expected = 400_000 * math.exp(-far)
        assert abs((np.abs(draws) > far).sum() - expected) < 5 * math.sqrt(expected)


def test_an_interrupted_measurement_goes_on_and_equals_an_uninterrupted_one(tmp_path):
    whole, _ = measured(tmp_path / "whole" if (tmp_path / "whole").mkdir() is None else tmp_path, plan())
    part = tmp_path / "part"
    part.mkdir()
    measured(part, plan())
    (part / "answers" / "00001.npz").unlink()  # as if the machine had stopped before the second answer landed,
    lines = (part / "ledger.jsonl").read_text().splitlines(keepends=True)
    (part / "ledger.jsonl").write_text("".join(lines[:2] + lines[3:]))  # and before its charge
    again, ledger = measured(part, plan())
    assert len(ledger.charged) == 3
    for left, right in zip(whole.answers, again.answers, strict=True):
        assert np.array_equal(left.values, right.values)


def test_a_charge_without_an_answer_stays_spent_and_is_never_measured_again(tmp_path):
    measured(tmp_path, plan())
    (tmp_path / "answers" / "00001.npz").unlink()
    again, ledger = measured(tmp_path, plan())
    assert [a.clique for a in again.answers] == [("a",), ("a", "b")]
    assert len(ledger.charged) == 3
    assert ledger.spent.epsilon > 0.9999


def test_the_ledger_raises_before_it_overspends(tmp_path):
    which = plan()
    ledger = Ledger.open(tmp_path / "ledger.jsonl", which)
    with pytest.raises(BudgetExceeded, match="not in the plan"):
        ledger.charge(Gaussian("0000:a", 2.0, 1e-3))
    ledger.charge(which.events[0])
    with pytest.raises(BudgetExceeded, match="charged before"):
        ledger.charge(which.events[0])
    too_much = replace(which, epsilon=0.01)
    poor = Ledger.open(tmp_path / "poor.jsonl", too_much)
    with pytest.raises(BudgetExceeded, match="would spend"):
        for event in too_much.events:
            poor.charge(event)
    assert poor.spent.epsilon <= 0.01


def test_a_refused_charge_leaves_nothing_on_disk(tmp_path):
    ledger = Ledger.open(tmp_path / "ledger.jsonl", plan())
    before = (tmp_path / "ledger.jsonl").read_bytes()
    with pytest.raises(BudgetExceeded):
        ledger.charge(Laplace("x", 1.0, 1.0))
    assert (tmp_path / "ledger.jsonl").read_bytes() == before


def test_a_ledger_survives_a_torn_last_line_and_refuses_another_plan(tmp_path):
    which = plan()
    path = tmp_path / "ledger.jsonl"
    ledger = Ledger.open(path, which)
    ledger.charge(which.events[0])
    with path.open("ab") as file:
        file.write(b'{"event": {"id": "0001')
    assert Ledger.open(path, which).charged == [which.events[0].id]
    assert all(json.loads(line) for line in path.read_text().splitlines())
    with pytest.raises(UserError, match="another plan"):
        Ledger.open(path, plan("laplace", "basic"))


def test_a_table_clipped_to_another_bound_never_reaches_the_noise(tmp_path):
    ledger = Ledger.open(tmp_path / "ledger.jsonl", plan())
    with pytest.raises(RuntimeError, match="clipped to 3"):
        measure(Town(max_records=3), plan(), ledger, SecureNoise(), answers_dir=tmp_path / "answers")
    assert ledger.charged == []


def test_a_planned_sensitivity_below_that_of_the_matrix_never_reaches_the_noise(tmp_path):
    honest = plan()
    first = honest.measurements[0]
    event = replace(first.event, l2_sensitivity=1.0)
    lying = replace(honest, measurements=(replace(first, event=event), *honest.measurements[1:]))
    ledger = Ledger.open(tmp_path / "ledger.jsonl", lying)
    with pytest.raises(RuntimeError, match="above the planned"):
        measure(Town(), lying, ledger, SecureNoise(), answers_dir=tmp_path / "answers")
    assert ledger.charged == []


@pytest.mark.parametrize("law", [Gaussian, Laplace])
def test_noise_has_no_parity_even_at_the_largest_scale(law):
    """Rounding ties to even once told the lowest bit of the answer."""
    draws = lattice_noise(law("x", 1.0, 2.0**49), 400_000, SeededNoise(4), bits=0)
    for modulus in (2, 4, 16):
        assert stats.chisquare(np.bincount(draws % modulus, minlength=modulus)).pvalue > 1e-3
