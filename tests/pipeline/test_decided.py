"""What a run says of its own decision is what its answers and distances say."""

from dataclasses import replace

import numpy as np
import pytest

from mechanisms.public.domain import Attribute, Domain
from mechanisms.public.queries.merged_cells import MergedQuery
from mechanisms.public.queries.query_matrices import Identity
from mechanisms.public.release import Measurements, NoisyDistances, NoisyMarginal
from mechanisms.public.schema.table_schema import parse_schema
from pipeline.inference.decided import decided
from pipeline.inference.relations import distances
from synthesis.independent import independent_marginals
from tests.pipeline.conftest import TOWN, command

FOUR = Domain((Attribute("a", 4), Attribute("b", 4), Attribute("c", 2), Attribute("one", 1)))
#: a and b are one and the same; c is independent of both.
TRUTH = np.einsum("ab,c->abc", np.diag([400.0, 300, 200, 100]), [0.25, 0.75])


def answer(clique, sigma, seed, query=None):
    exact = TRUTH.sum(axis=tuple(i for i, n in enumerate("abc") if n not in clique)).ravel()
    query = query or Identity(exact.size)
    values = query.answer(exact)
    noisy = values + np.random.default_rng([seed, len(clique)]).normal(0, sigma, values.size)
    return NoisyMarginal(clique, query, noisy, "gaussian", sigma, "x")


def release(seed=1, sigma=2.0, *more):
    ones = tuple(answer((n,), sigma, seed) for n in "abc")
    known = Measurements(FOUR, ones)
    cliques = (("a", "b"), ("a", "c"), ("b", "c"))
    expected = independent_marginals(known)
    exact = [
        np.abs(TRUTH.sum(axis=tuple(i for i, n in enumerate("abc") if n not in c)).ravel() - expected(c)).sum()
        for c in cliques
    ]
    noisy = np.array(exact) + np.random.default_rng(seed).normal(0, sigma, 3)
    scored = NoisyDistances(cliques, np.ones(3, np.bool_), noisy, 3, "gaussian", sigma, "y")
    return Measurements(FOUR, (*ones, *more), distances=scored)


def test_dependence_that_is_left_is_told_and_independence_is_not_called_dependence():
    left = decided(release())
    assert (left.pairs, left.measured, left.judged, left.shown) == (3, 0, 3, 1)
    kept = decided(release(1, 2.0, answer(("a", "b"), 5.0, 1)))
    assert (kept.measured, kept.judged, kept.shown) == (1, 2, 0)
    assert kept.left < 0.05 < left.left
    assert kept.noise == pytest.approx(16 * 5 * np.sqrt(2 / np.pi) / 2000, rel=0.02)
    heavy = decided(release(1, 2.0, answer(("a", "b"), 5_000.0, 1)))
    assert 0.4 < heavy.noise <= 0.51  # the cells hold no more
    drowned = decided(release(1, 2_000.0))
    assert drowned.shown == 0


def test_words_about_pairs_that_were_not_measured_speak_of_those_that_were_compared():
    every = release()
    assert "; the other 3 compared: 1 depends beyond noise (mean at most " in decided(every).in_words
    given = every.distances
    fewer = replace(given, cliques=given.cliques[1:], whole=given.whole[1:], values=given.values[1:])
    said = decided(replace(every, distances=fewer)).in_words
    assert "; 2 of the other 3 compared: none depends beyond noise (mean at most " in said


def test_the_mean_distance_of_what_is_left_is_bounded_in_95_of_100():
    held = 0
    for seed in range(100):
        known = release(seed, 20.0)
        expected = independent_marginals(Measurements(FOUR, known.answers))
        true = []
        for c in known.distances.cliques:
            exact = TRUTH.sum(axis=tuple(i for i, n in enumerate("abc") if n not in c)).ravel()
            true.append(np.abs(exact - expected(c)).sum() / 2 / sum(known.answers[0].values))
        held += decided(known).left >= np.mean(true) * 0.98  # the number of records is known up to noise
    assert held >= 88


def test_the_standard_error_of_a_distance_holds_the_noise_of_the_columns_too():
    """Noisy one-way counts make weak pairs look dependent: nobody takes that for a finding."""
    columns = {a.name: {"kind": "categorical", "values": list(range(a.size))} for a in FOUR.attributes}
    schema = parse_schema({"columns": columns}, where="four")
    far = []
    for seed in range(100):
        answer = distances(schema, release(seed, 20.0)).set_index("marginal")
        for pair, true in (("a × b", 1400.0), ("a × c", 0.0), ("b × c", 0.0)):
            row = answer.loc[pair]
            far.append(abs(row["distance"] - true) / row["standard_error"])
    assert np.mean(np.array(far) > 2) < 0.05
    assert "noise of ± 20;" in distances(schema, release(1, 20.0)).attrs["notes"][0]


def test_coarser_queries_and_releases_without_distances_are_said_as_they_are():
    halves = MergedQuery((np.array([0, 0, 1, 1]), np.array([0, 0, 1, 1])))
    coarse = decided(release(1, 2.0, answer(("a", "b"), 5.0, 1, halves)))
    assert (coarse.measured, coarse.coarse, coarse.noise) == (1, 1, None)
    assert "coarsened" in coarse.in_words
    bare = decided(Measurements(FOUR, release().answers))
    assert (bare.judged, bare.left) == (0, None)
    assert bare.in_words == "0 of 3 measured; no answer tells of any"
    assert decided(Measurements(Domain((Attribute("a", 4),)), ())).in_words == ""


def test_the_last_lines_and_the_report_say_what_was_decided_and_how_wrong_it_may_be(town, capsys):
    own = ["selection=auto", "synthesis=independent", "privacy.epsilon=50", "hydra.run.dir=out"]
    assert command("run", *TOWN, *own) == 0
    said = capsys.readouterr().out
    assert "  pairs     " in said and " of 3 measured" in said and "  related   " in said
    page = (town / "out" / "internal" / "report.html").read_text(encoding="utf-8")
    assert "Strongest relations: " in page
    assert "Pairs of columns: " in page and "How wrong a marginal is at most" in page
    assert "age × sex" in page and "95 % confidence" in page
