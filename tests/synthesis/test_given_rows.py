"""Rows under a condition, and rows that no rule forbids."""

import itertools
from functools import reduce

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mechanisms.public.coded_table import CodedTable
from mechanisms.public.domain import Attribute, Domain
from mechanisms.public.errors import UserError
from mechanisms.public.marginals import count_cliques
from mechanisms.public.release import Measurements
from mechanisms.public.rules.engineering import engineer, undo
from mechanisms.public.schema.table_schema import parse_schema
from synthesis.auto_model import AutoSpec
from synthesis.consistency.agree import consistent
from synthesis.given_rows import Wish, rows_given
from synthesis.gum.gum_settings import GumSpec
from synthesis.independent import IndependentSpec
from synthesis.pgm.graphical_model import GraphicalModel, fit_model
from synthesis.pgm.pgm_settings import PgmSpec
from synthesis.synthesize import synthesize
from synthesis.synthesizers import SYNTHESIZERS
from tests.synthesis.pgm_worlds import joint, noisy_counts, told

DOMAIN = Domain((Attribute("a", 3), Attribute("b", 2), Attribute("c", 4, 4), Attribute("d", 2)))
PAIRS = (("a", "b"), ("b", "c"), ("c", "d"))


def known(seed: int = 1, cliques=PAIRS, sigma: float = 1.0) -> Measurements:
    rng = np.random.default_rng(seed)
    return told(DOMAIN, [(c, None, 200 * rng.random(DOMAIN.cells(c)) + 5, sigma) for c in cliques])


def brute_force(model: GraphicalModel, weights: dict[str, np.ndarray]) -> np.ndarray:
    """The joint distribution, cell by cell, from the factors alone, times the weights."""
    ones = [weights.get(a.name, np.ones(a.size)) for a in DOMAIN.attributes]
    return joint(model.engine, model.potentials)[0] * reduce(np.multiply.outer, ones)


def shares(table: CodedTable) -> np.ndarray:
    counts = count_cliques(table, [table.domain.names])[0]
    return counts.reshape(table.domain.shape(table.domain.names)) / table.rows


@pytest.fixture(scope="module")
def model() -> GraphicalModel:
    return fit_model(known())


WEIGHTS = st.sampled_from([0.0, 0.25, 0.5, 1.0])


@settings(max_examples=40, deadline=None)
@given(asked=st.fixed_dictionaries({}, optional={a.name: st.lists(WEIGHTS, min_size=a.size, max_size=a.size)
                                                 for a in DOMAIN.attributes}))  # fmt: skip
def test_the_conditioned_model_is_the_one_of_brute_force(model, asked):
    weights = {n: np.array(w) for n, w in asked.items()}
    wanted, whole = brute_force(model, weights), brute_force(model, {})
    if wanted.sum() == 0:
        with pytest.raises(UserError, match="no row satisfies"):
            model.given(weights)
        return
    conditioned = model.given(weights)
    assert conditioned.marginal(DOMAIN.names) / conditioned.total == pytest.approx(
        (wanted / wanted.sum()).ravel(), abs=1e-9
    )
    assert conditioned.total == pytest.approx(model.total * wanted.sum() / whole.sum(), rel=1e-9)


def drawn(spec, weights, rows=4000, finish=lambda t: t, measured=("a", "b", "c", "d"), measurements=None, **more):
    answers = known() if measurements is None else measurements
    model = spec.model(answers, **more)
    rng = np.random.default_rng(3)
    return rows_given(answers, spec, model, Wish(weights, measured, finish, rows), rng=rng, **more)


def test_rows_of_the_model_are_exactly_so_many_and_follow_the_conditional_distribution(model):
    weights = {"c": np.array([0, 0.3, 1, 0]), "a": np.array([1.0, 1, 0])}
    made = drawn(PgmSpec(), weights)
    wanted = brute_force(model, weights)
    assert made.exact and made.table.rows == made.effective == 4000
    assert np.abs(shares(made.table) - wanted / wanted.sum()).sum() < 0.03
    assert shares(made.table)[wanted == 0].sum() == 0


def test_impossible_combinations_stay_impossible_under_a_condition():
    zeros = [(("a", "b"), np.array([[1, 0], [0, 0], [0, 0]], bool))]
    weights = {"d": np.array([0.0, 1]), "a": np.array([1.0, 0, 0])}
    made = drawn(PgmSpec(), weights, rows=500, zeros=zeros)
    assert (made.table.column("b") == 1).all() and (made.table.column("a") == 0).all()
    with pytest.raises(UserError, match="no row satisfies"):
        drawn(PgmSpec(), {"a": np.array([1.0, 0, 0]), "b": np.array([1.0, 0])}, zeros=zeros)


def test_a_column_that_was_not_measured_is_met_by_drawing_again(model):
    """`b` is made from `a` and `d` by a rule: the rows are still those of brute force."""

    def finish(table: CodedTable) -> CodedTable:
        b = ((table.column("a") == 2) & (table.column("d") == 1)).astype(np.uint8)
        return CodedTable(table.domain, tuple(b if n == "b" else table.column(n) for n in DOMAIN.names))

    weights = {"b": np.array([0.0, 1]), "c": np.array([1.0, 0.5, 0, 0])}
    made = drawn(PgmSpec(), weights, finish=finish, measured=("c",), rows=2000)
    wanted = brute_force(model, {"c": weights["c"]}).sum(axis=1)[2, :, 1]
    assert made.exact and made.table.rows == 2000
    assert (made.table.column("a") == 2).all() and (made.table.column("d") == 1).all()
    counts = np.bincount(made.table.column("c"), minlength=4) / 2000
    assert counts == pytest.approx(wanted / wanted.sum(), abs=0.03)


def test_without_a_number_there_are_as_many_rows_as_the_model_expects(model):
    weights = {"b": np.array([0.0, 1])}
    assert drawn(PgmSpec(), weights, rows=None).table.rows == round(model.given(weights).total)
    pool = drawn(GumSpec(), weights, rows=None).table
    assert pool.rows == pytest.approx(model.given(weights).total, rel=0.02) and (pool.column("b") == 1).all()


def test_weighed_rows_say_of_how_many_independent_ones_they_tell_as_much(model):
    """No more rows are made than POOL; of few that satisfy, the effective number is that of these few."""
    weights = {"a": np.array([0.0, 0, 1]), "c": np.array([0, 0.5, 1, 0])}
    wanted = brute_force(model, weights)
    many = drawn(GumSpec(), weights, rows=3000)
    assert not many.exact and many.table.rows == 3000 and 2500 < many.effective <= 3000
    assert np.abs(shares(many.table) - wanted / wanted.sum()).sum() < 0.12
    assert shares(many.table)[wanted == 0].sum() == 0


def test_few_rows_that_serve_often_count_as_few(monkeypatch):
    monkeypatch.setattr("synthesis.given_rows.POOL", 100)
    made = drawn(GumSpec(), {"a": np.array([0.0, 0, 1])}, rows=1000)
    assert made.table.rows == 1000 and made.effective < 100
    with pytest.raises(UserError, match="none of 100 made rows"):
        drawn(GumSpec(), {"a": np.zeros(3)}, rows=10)


def test_independent_columns_are_conditioned_exactly_and_mended_rows_are_weighed():
    columns = known(cliques=(("a",), ("b",), ("c",), ("d",)))
    made = drawn(IndependentSpec(), {"c": np.array([0, 1, 0.5, 0])}, measurements=columns, rows=3000)
    ratio = consistent(columns).one_way("c") * [0, 1, 0.5, 0]
    assert made.exact
    assert np.bincount(made.table.column("c"), minlength=4) / 3000 == pytest.approx(ratio / ratio.sum(), abs=1e-3)
    with pytest.raises(UserError, match="condition on 'c'"):
        drawn(IndependentSpec(), {"c": np.zeros(4)}, measurements=columns)
    assert IndependentSpec().model(columns, zeros=[(("a", "b"), np.eye(3, 2, dtype=bool))]) is None
    pairs = known(cliques=(*PAIRS, ("a", "d")), sigma=0.01)
    assert AutoSpec(max_cells=14).model(pairs).given({"a": np.ones(3)}) is None
    assert not drawn(AutoSpec(max_cells=14), {"a": np.array([1.0, 0, 0])}, measurements=pairs, rows=50).exact
    assert drawn(AutoSpec(), {"a": np.array([1.0, 0, 0])}, measurements=columns, rows=50).exact


@pytest.mark.parametrize("spec", [PgmSpec(), AutoSpec(), IndependentSpec()])
def test_the_rows_of_a_model_are_those_that_make_makes(spec):
    answers = known()
    made = spec.make(answers, rows=300, rng=np.random.default_rng(5)).table
    again = spec.model(answers).rows(300, np.random.default_rng(5))
    assert all(np.array_equal(a, b) for a, b in zip(made.columns, again.columns, strict=True))


DAY = {"kind": "date", "min": "2020-01-01", "max": "2020-01-04"}
SCHEMA = parse_schema(
    {
        "name": "calls",
        "columns": {
            "group": {"kind": "categorical", "values": ["fire", "medical"], "missing": False},
            "type": {"kind": "categorical", "values": ["alarm", "smoke", "heart"], "missing": False},
            "unit": {"kind": "categorical", "values": ["engine", "medic"], "missing": False},
            "sent": DAY,
            "seen": DAY,
            "first": {"kind": "integer", "min": 0, "max": 4, "missing": False},
            "last": {"kind": "integer", "min": 0, "max": 4, "missing": False},
        },
        "derive": {"group": {"from": "type", "map": {"alarm": "fire", "smoke": "fire", "heart": "medical"}}},
        "availability": {"there": {"columns": ["sent", "seen"], "shared": "when"}},
        "impossible": [{"group": "medical", "unit": "engine"}],
        "ordered": [["first", "last"]],
    },
    where="calls.yaml",
)


def noisy_pairs(rows=4_000, sigma=30.0):
    """Noisy two-way marginals of rows that keep to the rules."""
    rng = np.random.default_rng(2)
    table = SCHEMA.domain
    raw = CodedTable(table, tuple(rng.integers(0, a.size, rows).astype(np.uint8) for a in table.attributes))
    plan = SCHEMA.engineering
    kept = engineer(undo(engineer(raw, plan)[0], plan, rng), plan)[0]
    pairs = list(itertools.combinations(plan.measured.names, 2))
    return Measurements(plan.measured, noisy_counts(kept, pairs, sigma, seed=2))


def broken(table, zeros):
    counts = count_cliques(table, [clique for clique, _ in zeros])
    return sum(int(n[cells.ravel()].sum()) for n, (_, cells) in zip(counts, zeros, strict=True))


@pytest.mark.parametrize("spec", [kind() for name, kind in SYNTHESIZERS.items() if name != "mbi"])
def test_written_rows_of_every_synthesizer_keep_to_the_rules(spec):
    rng = np.random.default_rng(0)
    rows = synthesize(noisy_pairs(), spec, rows=3_000, rng=rng, zeros=SCHEMA.zeros).table
    assert broken(rows, SCHEMA.zeros) == 0, "also before the rules are brought back"
    made = undo(rows, SCHEMA.engineering, rng)
    assert made.rows == 3_000 and made.domain == SCHEMA.domain
    assert broken(engineer(made, SCHEMA.engineering)[0], SCHEMA.zeros) == 0
    assert not any(engineer(made, SCHEMA.engineering)[1].values())
    assert not ((made.column("group") == 1) & (made.column("unit") == 0)).any()
