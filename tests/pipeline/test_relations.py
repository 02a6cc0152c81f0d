"""The end of a run names the strongest relations of the release, and how much of each the synthetic table keeps."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from mechanisms.public.coded_table import CodedTable
from mechanisms.public.designs.deviations import PairCells
from mechanisms.public.domain import Attribute, Domain
from mechanisms.public.queries.query_matrices import Identity
from mechanisms.public.release import Measurements, NoisyDistances, NoisyMarginal
from mechanisms.public.schema.table_schema import parse_schema
from pipeline.inference.relations import distances, in_words, strongest
from pipeline.inference.release_evidence import ReleaseEvidence
from synthesis.independent import independent_marginals
from tests.pipeline.test_decided import FOUR, TRUTH, answer, release


def rows(joint):
    codes = np.repeat(np.arange(TRUTH.size), np.rint(joint.ravel()).astype(int))
    columns = np.unravel_index(codes, TRUTH.shape)
    return CodedTable(FOUR, (*(c.astype(np.uint8) for c in columns), np.zeros(codes.size, np.uint8)))


#: ½ Σ |joint − product| of a and b, which are one: 1 − Σ p².
SHARE = 1 - (0.4**2 + 0.3**2 + 0.2**2 + 0.1**2)
UNRELATED = np.einsum("a,b,c->abc", [0.4, 0.3, 0.2, 0.1], [400.0, 300, 200, 100], [0.25, 0.75])


@pytest.mark.parametrize("distances", [True, False])
def test_a_strong_relation_is_named_with_its_share_and_independence_is_not(distances):
    measured = release(1, 2.0, answer(("a", "b"), 2.0, 1), answer(("a", "c"), 2.0, 2))
    (found,) = strongest(measured if distances else replace(measured, distances=None), rows(TRUTH))
    assert found.pair == ("a", "b") and found.least is not distances
    assert found.share == pytest.approx(SHARE, abs=0.05)
    assert found.kept == pytest.approx(SHARE, abs=0.03)


def test_columns_that_nobody_asked_for_alone_are_no_relation_by_being_uneven():
    known = release(1, 2.0, answer(("a", "b"), 2.0, 1), answer(("a", "c"), 2.0, 2))
    pairs = tuple(a for a in known.answers if len(a.clique) == 2)
    assert [r.pair for r in strongest(replace(known, answers=pairs, distances=None), rows(TRUTH))] == [("a", "b")]


def test_a_relation_that_the_synthetic_table_lacks_is_called_lost():
    measured = release(1, 2.0, answer(("a", "b"), 2.0, 1))
    (kept,), (lost,) = strongest(measured, rows(TRUTH)), strongest(measured, rows(UNRELATED))
    assert "(table: 70%)" in in_words([kept])
    assert "(table: 0%, lost)" in in_words([lost])


def test_a_relation_is_judged_by_the_standard_error_that_distances_are_printed_with():
    """The distance is at 1.9 and 2.1 of them beyond independent columns, whatever it is in its own noise alone."""
    columns = {a.name: {"kind": "categorical", "values": list(range(a.size))} for a in FOUR.attributes}
    schema, measured = parse_schema({"columns": columns}, where="four"), release(1, 20.0)
    error = ReleaseEvidence(measured).distance_error(("a", "b"))
    table = distances(schema, measured).set_index("marginal")
    assert table.loc["a × b", "standard_error"] == round(error, 2) > 4 * 20
    known = measured.distances
    independent = distances_of_nothing(measured)
    for errors, named in ((1.9, 0), (2.1, 1)):
        values = np.array([independent + errors * error, 0.0, 0.0])
        assert len(strongest(replace(measured, distances=replace(known, values=values)), None)) == named


def distances_of_nothing(measured):
    """How far a and b would be from their product by chance and by the noise of their one-way counts."""
    evidence = ReleaseEvidence(measured)
    sides = tuple(evidence.independent((n,)) for n in "ab")
    expected = evidence.independent(("a", "b"))
    return PairCells.of_pair(expected, sides, (20.0, 20.0), Identity(expected.size)).base(measured.distances.below)


def test_independent_columns_of_few_records_are_no_relation():
    """20 seeded releases of 6 columns that were drawn apart, with much noise in their one-way counts."""
    domain = Domain(tuple(Attribute(n, 12) for n in "abcdef"))
    pairs = tuple(itertools.combinations("abcdef", 2))
    for seed in range(20):
        drawn = np.random.default_rng(seed)
        codes = drawn.integers(0, 12, (6, 600))
        ones = [np.bincount(c, minlength=12) + drawn.normal(0, 15.0, 12) for c in codes]
        answers = tuple(
            NoisyMarginal((n,), Identity(12), v, "gaussian", 15.0, n) for n, v in zip("abcdef", ones, strict=True)
        )
        known = Measurements(domain, answers)
        expected = independent_marginals(known)
        codes_of = dict(zip("abcdef", codes, strict=True))
        exact = [
            np.abs(np.bincount(codes_of[a] * 12 + codes_of[b], minlength=144) - expected((a, b))).sum()
            for a, b in pairs
        ]
        noisy = np.array(exact) + drawn.normal(0, 10.0, len(pairs))
        scored = NoisyDistances(pairs, np.ones(len(pairs), np.bool_), noisy, 6, "gaussian", 10.0, "y")
        assert strongest(Measurements(domain, answers, distances=scored), None) == ()


def test_noise_alone_is_no_relation():
    """Four standard errors: red by chance in fewer than one of 10⁴ drawings, and these are seeded."""
    for seed in range(20):
        noisy = release(seed, 2_000.0, answer(("a", "b"), 2_000.0, seed), answer(("a", "c"), 2_000.0, seed))
        assert strongest(noisy, rows(TRUTH)) == ()
        assert strongest(replace(noisy, distances=None), rows(TRUTH)) == ()
