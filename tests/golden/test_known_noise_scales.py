"""Noise scales and a query matrix that others published or that follow from a published formula; a source each."""

import math
from dataclasses import replace

import numpy as np
import pytest

from mechanisms.accounting.budget import Budget
from mechanisms.accounting.plan import Plan
from mechanisms.accounting.planning import Request, make_plan
from mechanisms.public.domain import Attribute, Domain
from mechanisms.public.errors import UserError
from mechanisms.public.queries.adaptive_grid import GridQuery, grid_query
from mechanisms.public.queries.query_matrices import Identity
from mechanisms.public.release import NoisyMarginal
from mechanisms.public.units import Neighbouring
from pipeline.experiments.challenge_settings import ChallengeSettings, variants_of
from pipeline.experiments.experiment_settings import settings_of
from pipeline.experiments.gallery.published import compared_scales, in_words
from pipeline.settings.config import load_config

COIN = Domain((Attribute("side", 2),))


def plan(k: int, mechanism: str, accountant: str, epsilon: float, delta: float, bound: int = 1) -> Plan:
    budget = Budget(epsilon, delta, accountant, Neighbouring.ADD_REMOVE, bound)
    return make_plan(COIN, [Request(("side",))] * k, budget, mechanism=mechanism)


#: Marginals, accountant, ε, δ, C → the scale, to its last digit.
SCALES = [
    # The exact dual (Balle & Wang 2018; McKenna 2021) and ρ + 2√(ρ ln 1/δ) (Li et al. 2021b, section 2.4).
    *((1, "gdp", 1, 2.5e-5, 1, 3.520615, 1e-6), (1, "zcdp", 1, 2.5e-5, 1, 4.709777, 1e-6)),
    *((1, "gdp", 10, 2.5e-5, 1, 0.482593, 1e-6), (1, "zcdp", 10, 2.5e-5, 1, 0.551091, 1e-6)),
    # McKenna 2021, noise calibration: C√66/μ; its printed 5739.36 and 895 are the zCDP figures.
    *((66, "zcdp", 1, 2.5e-5, 150, 5739.36, 5e-3), (66, "gdp", 1, 2.5e-5, 150, 4290.24, 5e-3)),
    *((66, "zcdp", 10, 2.5e-5, 200, 895.42, 5e-3), (66, "gdp", 10, 2.5e-5, 200, 784.12, 5e-3)),
    # A public DPSyn log.
    (465, "zcdp", 10, 3.4498908254380166e-11, 1, 16.386725928253217, 1.6e-7),
]


@pytest.mark.parametrize(("k", "accountant", "epsilon", "delta", "bound", "sigma", "digit"), SCALES)
def test_gaussian_noise_of_equal_marginals_has_the_published_scale(k, accountant, epsilon, delta, bound, sigma, digit):
    scales = {m.event.scale for m in plan(k, "gaussian", accountant, epsilon, delta, bound).measurements}
    assert len(scales) == 1
    assert scales.pop() == pytest.approx(sigma, abs=digit)


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 0.5, 0.99])
@pytest.mark.parametrize("delta", [1e-3, 1e-6, 1e-12])
def test_the_classic_bound_is_never_below_what_is_enough(epsilon, delta):
    """Li et al. 2021b, section 2.3: σ = √(2 ln(1.25/δ))/ε for ε < 1, sensitivity 1; ours is the exact dual."""
    classic = math.sqrt(2 * math.log(1.25 / delta)) / epsilon
    (m,) = plan(1, "gaussian", "gdp", epsilon, delta).measurements
    assert m.event.scale < classic
    if (epsilon, delta) == (0.5, 1e-6):
        assert (m.event.scale, classic) == (pytest.approx(8.058, abs=5e-4), pytest.approx(10.598, abs=5e-4))


def test_the_experiment_sets_both_printed_scales_beside_the_formula_of_the_text():
    """McKenna 2021, noise calibration, at δ = 2.5e-5; the note of each stands in the table of the experiment."""
    settings = settings_of(load_config(["experiment=nist2021_sprint3"]), ChallengeSettings)
    rows = compared_scales(settings.scales, 2.5e-5)
    assert [(r["printed"], round(r["formula"], 2), round(r["zcdp"], 2)) for r in rows] == [
        (5739.36, 4290.24, 5739.36),
        (895.0, 784.12, 895.42),
    ]
    assert "prints 5739.36; its own formula (gdp, as here) gives 4290.24" in in_words(rows[0])
    for wrong in ({"epsilon": 1}, {**settings.scales[0], "epsilon": -1}, {**settings.scales[0], "more": 1}):
        with pytest.raises(UserError, match=r"experiment\.scales"):
            compared_scales([wrong], 2.5e-5)


def test_the_clipping_value_follows_epsilon_as_in_the_text():
    """McKenna 2021, Noise calibration: "For ε = 1.0 … C = 150 … For ε = 10.0 … C = 200 (no clipping)"."""
    settings = settings_of(load_config(["experiment=nist2021_sprint3", "experiment.repeats=1"]), ChallengeSettings)
    chosen = [(v.epsilon, v.unit, v.max_records) for v in variants_of(settings)]
    assert chosen == [(1.0, None, 150), (1.0, "record", 1), (10.0, None, 200)]
    more = replace(settings, variants=[], epsilons=[0.5, 1.0, 2.0, 10.0])
    assert [v.max_records for v in variants_of(more)] == [150, 150, 200, 200]
    named = replace(settings, variants=[{"epsilon": 1, "max_records": 40}])
    assert variants_of(named)[0].max_records == 40
    for wrong in ({"one": 150}, {"1": 0}, {"-1": 150}):
        with pytest.raises(UserError, match=r"experiment\.bounds"):
            variants_of(replace(settings, bounds=wrong))


@pytest.mark.parametrize(
    ("epsilon", "delta", "last"), [(0.01, 1e-8, 18), (0.01, 1e-12, 27), (1, 1e-8, 18), (1, 1e-12, 28)]
)
def test_where_gaussian_noise_under_zcdp_beats_laplace_noise_under_basic_composition(epsilon, delta, last):
    """Li et al. 2021b, Figure 2 (it prints the crossings 18, 28, 19 and 28): Laplace wins to `last`, Gaussian after."""

    def wins(k: int) -> bool:
        laplace = plan(k, "laplace", "basic", epsilon, delta).measurements[0].event.stddev
        return plan(k, "gaussian", "zcdp", epsilon, delta).measurements[0].event.stddev < laplace

    assert not wins(last)
    assert wins(last + 1)


def test_auto_takes_the_noise_with_the_smaller_error():
    """Li et al. 2021b, section 2.5: few marginals, Laplace; many, Gaussian."""
    assert plan(1, "auto", "basic", 1, 1e-8).measurements[0].event.kind == "laplace"
    assert plan(200, "auto", "zcdp", 1, 1e-8).measurements[0].event.kind == "gaussian"


PAIR = Domain((Attribute("letter", 4), Attribute("digit", 3)))
KNOWN = [
    NoisyMarginal(("letter",), Identity(4), np.array([10000.0, 300.0, 5000.0, 6000.0]), "gaussian", 100.0, "0"),
    NoisyMarginal(("digit",), Identity(3), np.array([15000.0, 6100.0, 200.0]), "gaussian", 100.0, "1"),
]


@pytest.mark.parametrize(("norm", "aggregate"), [("l2", 0.5**0.5), ("l1", 0.5)])
def test_the_query_matrix_of_the_example(norm, aggregate):
    query = grid_query(PAIR, ("letter", "digit"), KNOWN, threshold=5.0, norm=norm)
    assert isinstance(query, GridQuery)
    matrix = np.column_stack([query.answer(column) for column in np.eye(12)])
    expected = np.zeros((13, 12))
    for row, cell in enumerate([0, 1, 6, 7, 9, 10]):  # {W, Y, Z} × {1, 2}
        expected[row, cell] = 1
    coarse = [2, 3, 4, 5, 8, 11]  # everything of X, everything of 3
    for row, cells in enumerate([[2], [3, 4, 5], [8], [11], [3], [4], [2, 5, 8, 11]]):
        assert set(cells) <= set(coarse)
        expected[6 + row, cells] = aggregate
    assert matrix == pytest.approx(expected, abs=2**-16)
    norms = np.linalg.norm(matrix, 2 if norm == "l2" else 1, axis=0)
    assert (norms <= 1).all()
    assert norms == pytest.approx(np.ones(12), abs=2**-15)
    assert query.largest_column_norm(norm) == 1
