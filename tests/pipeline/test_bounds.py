"""Bounds on a release's errors: each holds as often as it says, and a smaller one would not."""

import io
import itertools
import math
import shutil
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from mechanisms.public.domain import Attribute, Domain
from mechanisms.public.noise_kinds import NOISE_KINDS
from mechanisms.public.queries.query_matrices import Identity, SparseQuery
from mechanisms.public.release import Measurements, NoisyDistances, NoisyMarginal
from pipeline import bounds
from pipeline.inference import release_bounds
from pipeline.inference.coarse_answers import cell_limits
from pipeline.inference.marginal_estimates import ReleaseEvidence, marginal_estimate
from pipeline.inference.noise_bounds import BLOCK, NoiseTerm, draws_of_sum, in_blocks, sum_bound, tail
from pipeline.inference.release_bounds import ALPHA, error_bound, error_bounds, scale_of, scored_error
from pipeline.release_folder import read_release
from synthesis.independent import independent_marginals
from tests.pipeline.conftest import TOWN, command, edit, people, reply
from tests.pipeline.test_estimates import often_enough
from tests.public.table_worlds import coded

THREE = Domain((Attribute("a", 3), Attribute("b", 4), Attribute("c", 2)))
TRUTH = np.array([90, 0, 30, 0, 5, 0, 200, 12, 0, 60, 0, 0, 45, 8, 0, 0, 70, 30, 0, 0, 2, 0, 0, 50.0]).reshape(3, 4, 2)
#: Which marginals are asked for, with the scale of their noise.
ASKED = ((("a",), 6.0), (("b",), 4.0), (("a", "b"), 9.0), (("a", "b", "c"), 5.0))


def marginal(clique, truth=TRUTH):
    return truth.sum(axis=tuple(i for i, n in enumerate(THREE.names) if n not in clique)).ravel()


def release(seed, asked=ASKED, noise="gaussian", scale=1.0, total=None):
    """A release of TRUTH; its receipts say `scale` times the noise that was drawn."""
    rng = np.random.default_rng(seed)
    answers = []
    for clique, sigma in asked:
        exact = marginal(clique)
        values = exact + NOISE_KINDS[noise].simulate(rng, sigma, exact.size)
        answers.append(NoisyMarginal(clique, Identity(exact.size), values, noise, sigma * scale, "x"))
    return Measurements(THREE, tuple(answers), total)


def with_distance(seed, stated=1.0, sigma=25.0, below=0.0):
    """A release of columns, and of the noisy distance of one pair from what they leave of it, beyond a level."""
    columns = release(seed, ASKED[:2])
    off = np.abs(marginal(("a", "b")) - independent_marginals(columns)(("a", "b")))
    distance = np.maximum(off - below, 0.0).sum()
    noisy = np.array([distance + np.random.default_rng([seed, 1]).normal(0, sigma)])
    scored = NoisyDistances((("a", "b"),), np.array([True]), noisy, 2, "gaussian", sigma * stated, "y", below)
    later = NoisyMarginal(("c",), Identity(2), marginal("c") + 1.0, "gaussian", 3.0, "z")
    return replace(columns, answers=(*columns.answers, later), distances=scored)


def noise_bounds_of(clique, noise):
    """The hardest table for a bound by noise meets the answers: its error is the noise itself."""

    def holds(seed, scale):
        known = release(seed, noise=noise, scale=scale)
        estimate = marginal_estimate(known, clique)
        synthetic = np.maximum(estimate.values, 0.0)
        return np.abs(synthetic - marginal(clique)).sum() <= release_bounds.measured_error(estimate, synthetic, ALPHA)

    return holds


def holds_for_the_cells(seed, scale):
    known = release(seed, ASKED[:2], scale=scale)
    limits = cell_limits(ReleaseEvidence(known), ("a", "b"), ALPHA)
    inside = {("a",): marginal("a").reshape(3, 1), ("b",): marginal("b").reshape(1, 4), (): TRUTH.sum().reshape(1, 1)}
    return all((limits.inside[n][0] <= m).all() and (m <= limits.inside[n][1]).all() for n, m in inside.items())


def holds_by_the_distance(seed, scale):
    known = with_distance(seed, scale)
    columns = independent_marginals(release(seed, ASKED[:2]))(("a", "b"))  # the table for which it is hardest
    error = scored_error(ReleaseEvidence(known), ("a", "b"), columns, ALPHA, most=np.inf)
    return np.abs(columns - marginal(("a", "b"))).sum() <= error


HOLD = {
    f"noise {'-'.join(clique)} {noise}": (noise_bounds_of(clique, noise), 200)
    for clique in (("a", "b"), ("b",), ("a", "c"))
    for noise in ("gaussian", "laplace")
} | {"limits from columns": (holds_for_the_cells, 200), "a released distance": (holds_by_the_distance, 500)}


@pytest.mark.parametrize(("holds", "seeds"), HOLD.values(), ids=HOLD)
def test_a_bound_holds_in_95_of_100_and_with_less_noise_it_would_not(holds, seeds):
    assert often_enough(sum(holds(seed, 1.0) for seed in range(seeds)), seeds)
    assert not often_enough(sum(holds(seed, 0.7) for seed in range(seeds)), seeds)


@given(st.integers(0, 2**32), st.sampled_from([0.5, 5.0, 40.0]), st.booleans())
def test_a_distance_beyond_a_level_bounds_all_of_it(seed, below, known_total):
    known = with_distance(seed, sigma=1e-9, below=below)
    columns = independent_marginals(release(seed, ASKED[:2]))(("a", "b"))
    most = float(TRUTH.sum()) if known_total else np.inf
    error = scored_error(ReleaseEvidence(known), ("a", "b"), columns, ALPHA, most=most)
    assert np.abs(columns - marginal(("a", "b"))).sum() <= error


def test_a_released_distance_is_used_where_it_says_more_than_the_columns():
    shares = np.full(12, 1 / 12)

    def bound_of(known):
        return error_bound(ReleaseEvidence(known), ("a", "b"), shares, scale_of(ReleaseEvidence(known)))

    for seed in range(20):
        known = with_distance(seed)
        scored, without = bound_of(known), bound_of(replace(known, distances=None))
        assert (without.how, scored.how) == ("Fréchet", "distance from independence")
        off = np.abs(shares * scale_of(ReleaseEvidence(known)).records - marginal(("a", "b"))).sum()
        assert off <= scored.records < without.records
    assert bound_of(replace(known, distances=replace(known.distances, whole=np.array([False])))).how == "Fréchet"


@pytest.mark.parametrize("seed", range(6))
def test_no_table_with_the_same_columns_is_farther_than_the_limits_say(seed):
    rng = np.random.default_rng(seed)
    rows, synthetic = rng.integers(0, 3, (6, 2)), rng.random(9) * 2
    low, high = np.zeros(9), np.zeros(9)
    ones = [np.bincount(rows[:, i], minlength=3) for i in (0, 1)]
    for i, (x, y) in enumerate(itertools.product(range(3), repeat=2)):
        low[i], high[i] = max(0, ones[0][x] + ones[1][y] - 6), min(ones[0][x], ones[1][y])
    farthest = 0.0
    for order in itertools.permutations(rows[:, 1].tolist()):
        table = np.bincount(3 * rows[:, 0] + np.array(order), minlength=9)
        assert (low <= table).all() and (table <= high).all()
        farthest = max(farthest, float(np.abs(table - synthetic).sum()))
    assert farthest <= release_bounds.limit_error(low, high, (6.0, 6.0), synthetic) + 1e-9


def test_exact_answers_leave_the_limits_of_frechet_and_nothing_else():
    exact = tuple(replace(a, values=marginal(a.clique)) for a in release(1, ASKED[:2], scale=1e-12).answers)
    limits = cell_limits(ReleaseEvidence(Measurements(THREE, exact)), ("a", "b"), ALPHA)
    a, b, n = marginal("a")[:, None], marginal("b")[None, :], TRUTH.sum()
    assert limits.low == pytest.approx(np.maximum(a + b - n, 0).ravel(), abs=1e-6)
    assert limits.high == pytest.approx(np.minimum(a, b).ravel(), abs=1e-6)


def test_three_columns_are_limited_by_the_pairs_that_are_known():
    pairs = ((("a", "b"), 1e-9), (("b", "c"), 1e-9))
    limits = cell_limits(ReleaseEvidence(release(3, pairs)), ("a", "b", "c"), ALPHA)
    ab, bc, b = marginal("ab").reshape(3, 4, 1), marginal("bc").reshape(1, 4, 2), marginal("b").reshape(1, 4, 1)
    assert limits.low == pytest.approx(np.maximum(ab + bc - b, 0).ravel(), abs=1e-6)
    assert limits.high == pytest.approx(np.minimum(ab, bc).ravel(), abs=1e-6)


@pytest.mark.parametrize(
    "terms", [(NoiseTerm("gaussian", 2.0),), (NoiseTerm("laplace", 2.0),), (NoiseTerm("laplace", 1.0, 7),)]
)
@pytest.mark.parametrize("cells", [1, 2, 50, 5_000])
def test_sums_of_noise_and_single_cells_are_bounded_as_stated(terms, cells):
    rng = np.random.default_rng(8)
    repeats = 400 if cells > 1_000 else 4_000
    noise = sum(t.draw(rng, repeats * cells) for t in terms).reshape(repeats, cells)
    above = (np.abs(noise).sum(axis=1) > sum_bound(cells, terms, 0.05)).sum()
    assert stats.binom.sf(above, repeats, 0.05) > 1e-4
    if cells < 1_000:  # beyond, Cantelli's inequality stands above the quantile by design
        below = (np.abs(noise).sum(axis=1) > 0.7 * sum_bound(cells, terms, 0.05)).sum()
        assert stats.binom.sf(below, repeats, 0.05) < 1e-2
    assert stats.binom.sf((np.abs(noise[:, 0]) > tail(terms, 0.05)).sum(), repeats, 0.05) > 1e-4


@pytest.mark.parametrize("cells", [700, 2_000, 4_000])
def test_a_sum_over_many_cells_is_bounded_by_fewer_draws_hardly_any_looser(cells):
    kept = next(in_blocks(lambda _, rows: np.zeros((rows, 1)), 1, draws_of_sum(cells)))
    assert len(kept) * cells <= max(BLOCK, 1_000 * cells) < 4_000 * cells
    mean, spread = cells * math.sqrt(2 / math.pi), math.sqrt(cells * (1 - 2 / math.pi))
    bound = sum_bound(cells, (NoiseTerm("gaussian", 1.0),), 0.05)
    assert stats.norm.isf(0.05) <= (bound - mean) / spread <= stats.norm.isf(0.02)


def test_answers_over_coarser_values_tell_what_they_add_up_to():
    merged = SparseQuery.of(np.kron(np.eye(3), np.ones((1, 4))))
    known = Measurements(THREE, (NoisyMarginal(("a", "b"), merged, marginal("a") + 1.0, "gaussian", 2.0, "x"),))
    told_a = marginal_estimate(known, ("a",))
    assert told_a.values == pytest.approx(marginal("a") + 1.0)
    assert told_a.errors == pytest.approx([2.0] * 3)
    assert marginal_estimate(known, ("b",)) is None
    assert told_a.sum_bound(0.05) == pytest.approx(sum_bound(3, (NoiseTerm("gaussian", 2.0),), 0.05), rel=0.03)


def test_shares_are_as_far_apart_as_their_bound_says_whatever_the_number_of_records():
    truth = marginal(("a", "b"))
    for seed in range(40):
        known = release(seed)
        shares = np.maximum(marginal_estimate(known, ("a", "b")).values, 0.0)
        shares /= shares.sum()
        bound = error_bound(ReleaseEvidence(known), ("a", "b"), shares, scale_of(ReleaseEvidence(known)))
        off = np.abs(shares * scale_of(ReleaseEvidence(known)).records - truth).sum()
        if off <= bound.records:
            assert 0.5 * np.abs(truth / truth.sum() - shares).sum() <= bound.tvd + 1e-12
    public = scale_of(ReleaseEvidence(release(1, total=602)))
    assert (public.low, public.records, public.high, public.alpha) == (602, 602, 602, 0)


def test_what_nobody_measured_is_bounded_by_the_number_of_records_and_marked():
    known = release(2, ASKED[:1])
    nothing, asked = coded(THREE, np.zeros((3, 10))), [("a",), ("b",), ("a", "b"), ("b", "c")]
    by = {b.clique: b for b in error_bounds(known, nothing, asked)}
    assert [b.how for b in by.values()] == ["measured", "nothing measured", "Fréchet", "nothing measured"]
    assert by["b",].tvd == 1.0 and by["b",].standard_error is None
    assert by["a",].records < by["a", "b"].records
    empty = list(error_bounds(Measurements(THREE, ()), nothing, [("a",)]))
    assert (empty[0].how, empty[0].tvd, empty[0].records) == ("nothing measured", 1.0, math.inf)


def test_query_gives_a_bound_for_every_column_and_pair_and_it_holds(one_run, capsys):
    said = reply(capsys, "query", f"from={one_run}/release", "bounds=true")
    table = pd.read_csv(io.StringIO(said.out)).set_index("marginal")
    assert set(table.index) == {"age", "sex", "job", "age × sex", "age × job", "sex × job"}
    assert set(table["how"]) == {"measured"} and "95 % confidence" in said.err and "clipping" in said.err
    real, synthetic = people(600), pd.read_csv(one_run / "release" / "synthetic.csv")
    for column in ("sex", "job"):
        shares = [t[column].value_counts(normalize=True) for t in (real, synthetic)]
        assert 0.5 * shares[0].sub(shares[1], fill_value=0).abs().sum() < table["error_tvd"][column]
    alone = bounds(one_run / "release", marginal=["age", "sex", "job"])
    assert alone["how"].tolist() == ["Fréchet"] and alone["error_tvd"][0] <= 1.0


def test_a_wide_table_gets_bounds_of_what_was_measured_and_of_the_rest_on_request(one_run, monkeypatch):
    monkeypatch.setattr("pipeline.inference.release_bounds.MOST_BOUNDS", 5)
    schema, statement, known = read_release(one_run / "release")
    some = replace(known, answers=tuple(a for a in known.answers if {*a.clique} != {"age", "job"}))
    table = release_bounds.table_bounds(schema, statement, some, one_run / "release" / "synthetic.csv")
    assert set(table["marginal"]) == {"age", "sex", "job", "age × sex", "sex × job"}
    assert any(note.startswith("1 pairs that no answer contains") for note in table.attrs["notes"])


def test_columns_made_by_rules_and_accepted_releases_are_told_apart(town, capsys):
    edit(town / "town.yaml", "count: 10}, missing", "count: 10}, joint_bins: {count: 5}, missing")
    accept = "accept=[{metric: l1, marginals: 1, at_most: 100000}]"
    settings = ["selection=pairs", "synthesis=independent", "evaluation.enabled=false", accept, "hydra.run.dir=out"]
    assert command("run", *TOWN, *settings) == 0
    assert command("verify", "out/release") == 0
    said = reply(capsys, "query", "from=out/release", "bounds=true")
    assert "no bounds of age: a rule of the schema made" in said.err and "accepted by its noisy score" in said.err
    assert set(pd.read_csv(io.StringIO(said.out))["marginal"]) == {"sex", "job", "sex × job"}


def test_a_run_ends_well_where_no_column_was_measured_as_it_stands(town, capsys):
    age = "{kind: integer, min: 0, max: 99, missing: false, joint_bins: {count: 5}}"
    (town / "town.yaml").write_text(f"confirmed_public: true\ncolumns: {{age: {age}}}\n", encoding="utf-8")
    assert command("run", *TOWN, "evaluation.metrics=[tvd]", "hydra.run.dir=out") == 0
    table = pd.read_csv(io.StringIO(reply(capsys, "query", "from=out/release", "bounds=true").out))
    assert table.empty and "error_tvd" in table


@pytest.mark.slow
def test_bounds_of_whole_runs_hold_in_95_of_100(town):
    real, seeds = people(600).assign(age=lambda t: t["age"] // 10), 200
    hits: dict[str, int] = {}
    for seed in range(seeds):
        settings = [*TOWN, "evaluation.enabled=false", "privacy.epsilon=2", f"seed={seed}", f"hydra.run.dir=o{seed}"]
        assert command("run", *settings) == 0
        synthetic = pd.read_csv(f"o{seed}/release/synthetic.csv").assign(age=lambda t: t["age"] // 10)
        for line in bounds(town / f"o{seed}" / "release").itertuples():
            names = line.marginal.split(" × ")
            shares = [t.value_counts(names, normalize=True, dropna=False) for t in (real, synthetic)]
            off = 0.5 * shares[0].sub(shares[1], fill_value=0).abs().sum()
            hits[line.marginal] = hits.get(line.marginal, 0) + (off <= line.error_tvd)
        shutil.rmtree(f"o{seed}")
    assert set(hits) == {"age", "sex", "job", "age × sex", "age × job", "sex × job"}
    assert all(often_enough(n, seeds) for n in hits.values()), hits
