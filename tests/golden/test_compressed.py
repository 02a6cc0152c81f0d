"""Li et al. 2021b, section 5.3: values below θ = max(4.5 σ, 800) are one value, or none where their sum is below it."""

import numpy as np
import pytest

from mechanisms.public.domain import Attribute, Domain
from mechanisms.public.queries.merged_cells import merged_query, rare_groups
from mechanisms.public.queries.query_matrices import Identity
from mechanisms.public.release import Measurements, NoisyMarginal
from synthesis.consistency.merged_values import merged_values, rare_zeros
from synthesis.gum.gum_settings import GumSpec
from synthesis.papers.mcf import McfSpec
from synthesis.synthesize import synthesize

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
