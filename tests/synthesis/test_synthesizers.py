"""What every synthesizer owes, and what GUM owes besides."""

import dataclasses
import itertools
import json

import numpy as np
import pytest
import yaml

from mechanisms.public.coded_table import CodedTable, code_dtype, count_cliques
from mechanisms.public.domain import Attribute, Domain
from mechanisms.public.errors import UserError
from mechanisms.public.queries.query_matrices import Identity
from mechanisms.public.release import Measurements, NoisyMarginal
from pipeline.conf_folder import CONF
from pipeline.settings.config import load_config
from pipeline.settings.methods import build_synthesizer
from synthesis.consistency.agree import ConsistentTargets, Target, default_rows, estimate_total
from synthesis.contract import Synthesizer, synthesize
from synthesis.convergence import Synthesized
from synthesis.gum.gum_settings import GumSpec
from synthesis.rounding import systematic
from synthesis.synthesizers import SYNTHESIZERS
from tests.bench.grid.errors import distance
from tests.synthesis.pgm_worlds import noisy_counts

TOWN = Domain((Attribute("age", 6, 6), Attribute("sex", 2), Attribute("job", 4), Attribute("note", 1)))

OURS = tuple(name for name, kind in SYNTHESIZERS.items() if not kind.library)  # the optional extra has tests of its own


def people(rows: int = 4000, seed: int = 0) -> CodedTable:
    """Rows in which job follows from age and sex."""
    rng = np.random.default_rng(seed)
    age, sex = rng.integers(0, 6, rows), (rng.random(rows) < 0.3).astype(int)
    job = (age // 2 + sex) % 4
    columns = (age, sex, job, np.zeros(rows, int))
    return CodedTable(TOWN, tuple(c.astype(code_dtype(a.size)) for c, a in zip(columns, TOWN.attributes, strict=True)))


def noisy(table: CodedTable, sigma: float, cliques=None, seed: int = 1) -> Measurements:
    cliques = cliques or [c for k in (1, 2) for c in itertools.combinations(TOWN.names, k)]
    return Measurements(TOWN, noisy_counts(table, cliques, sigma, seed))


@pytest.mark.parametrize("name", OURS)
class TestEverySynthesizer:
    def rows_of(self, name, measurements, rows, seed=0):
        return synthesize(measurements, SYNTHESIZERS[name](), rows=rows, rng=np.random.default_rng(seed)).table

    def test_the_number_of_rows_is_exact_or_the_noisy_total_and_every_code_is_in_the_domain(self, name):
        assert abs(self.rows_of(name, noisy(people(), 3.0), None).rows - 4000) < 40
        with pytest.raises(UserError, match=r"synthesis\.rows"):
            self.rows_of(name, noisy(people(), 3.0), -1)
        for rows in (0, 1, 7, 1000):
            made = self.rows_of(name, noisy(people(), 5.0), rows)
            assert made.rows == rows
            for column, attribute in zip(made.columns, TOWN.attributes, strict=True):
                assert column.max(initial=0) < attribute.size

    def test_one_way_marginals_of_exact_answers_are_kept(self, name):
        made = self.rows_of(name, noisy(people(), 0.0), 4000)
        for attribute in TOWN.names:
            assert distance(made, people(), (attribute,)) < 0.02

    def test_the_same_seed_makes_the_same_table(self, name):
        one, two = (self.rows_of(name, noisy(people(), 5.0), 500, seed=4) for _ in range(2))
        assert all(np.array_equal(a, b) for a, b in zip(one.columns, two.columns, strict=True))
        other = self.rows_of(name, noisy(people(), 5.0), 500, seed=5)
        assert any(not np.array_equal(a, b) for a, b in zip(one.columns, other.columns, strict=True))

    def test_without_any_answer_the_rows_are_uniform(self, name):
        made = self.rows_of(name, Measurements(TOWN, ()), 6000)
        assert np.bincount(made.column("age"), minlength=6).std() < 150

    def test_answers_far_below_zero_still_make_rows(self, name):
        answer = NoisyMarginal(("sex",), Identity(2), np.array([-50.0, -70.0]), "laplace", 30.0, "0")
        assert self.rows_of(name, Measurements(TOWN, (answer,)), 10).rows == 10
        assert self.rows_of(name, Measurements(TOWN, (answer,)), None).rows == 0

    def test_other_rows_than_those_asked_for_are_refused(self, name, monkeypatch):
        make = SYNTHESIZERS[name].make
        monkeypatch.setattr(
            SYNTHESIZERS[name], "make", lambda own, m, *, rows, **more: make(own, m, rows=rows + 1, **more)
        )
        with pytest.raises(UserError, match=r"synthesis\.name: \w+ made 11 rows"):
            self.rows_of(name, noisy(people(), 3.0), 10)

    @pytest.mark.parametrize("made", [None, Synthesized(None), 3])
    def test_what_is_no_table_is_refused_in_the_name_of_who_made_it(self, name, monkeypatch, made):
        monkeypatch.setattr(SYNTHESIZERS[name], "make", lambda own, m, **more: made)
        with pytest.raises(UserError, match=r"synthesis\.name: \w+ made no rows"):
            self.rows_of(name, noisy(people(), 3.0), 10)

    @pytest.mark.parametrize("wrong", [lambda c: c + 200, lambda c: c - 0.5, lambda c: c[:, None], list])
    def test_what_is_no_code_of_the_domain_is_refused(self, name, monkeypatch, wrong):
        """Compiled loops would take it for a place in an array: a process ended by a signal, after its charges."""
        make = SYNTHESIZERS[name].make

        def made(own, m, **more):
            table = make(own, m, **more).table
            return Synthesized(CodedTable(TOWN, (wrong(table.columns[0]), *table.columns[1:])))

        monkeypatch.setattr(SYNTHESIZERS[name], "make", made)
        with pytest.raises(UserError, match="a column 'age' that is no array of whole numbers from 0 to 5"):
            self.rows_of(name, noisy(people(), 3.0), 10)

    def test_its_memory_is_predicted_and_grows_with_rows_and_cells(self, name):
        made = SYNTHESIZERS[name]()
        few, many = (made.predicted_bytes(TOWN, [("age", "job")], rows) for rows in (10**5, 10**6))
        assert many > 10**7 and few < many
        assert made.predicted_bytes(TOWN, [("age", "job")], 0) > made.predicted_bytes(TOWN, [("age",)], 0) > 0

    def test_no_row_has_an_impossible_combination(self, name):
        zeros = [(("age", "job"), np.arange(24).reshape(6, 4) % 3 == 0), (("sex", "job"), np.eye(2, 4, dtype=bool))]
        zeros.append((("age", "sex"), np.eye(6, 2, k=-4, dtype=bool)))
        rng = np.random.default_rng(2)
        for rows in (1, 800):
            made = synthesize(noisy(people(), 5.0), SYNTHESIZERS[name](), rows=rows, rng=rng, zeros=zeros).table
            assert made.rows == rows
            for clique, cells in zeros:
                assert not count_cliques(made, [clique])[0][cells.ravel()].any()

    def test_progress_stays_within_its_total_and_the_record_is_json(self, name):
        def progress(done, total, note):
            assert 0 <= done <= total

        spec, rng = SYNTHESIZERS[name](), np.random.default_rng(0)
        made = synthesize(noisy(people(), 5.0), spec, rows=200, rng=rng, progress=progress)
        assert (made.record is not None) == (name in ("gum", "mcf"))
        for record in (made.record, made.fit):
            assert record is None or json.dumps(record.to_json(), allow_nan=False)


@pytest.mark.parametrize("name", [n for n, s in SYNTHESIZERS.items() if s.__module__.startswith("synthesis.")])
def test_its_file_holds_its_own_settings(name):
    given = yaml.safe_load((CONF / "synthesis" / f"{name}.yaml").read_text(encoding="utf-8"))
    assert given["kind"] == name
    assert set(given) - {"kind", "rows", "seed"} == {f.name for f in dataclasses.fields(SYNTHESIZERS[name])}


@pytest.mark.parametrize("name", SYNTHESIZERS)
def test_its_choice_has_the_defaults_of_its_class(name):
    made = build_synthesizer(load_config([f"synthesis={name}"]).synthesis)
    assert made == SYNTHESIZERS[name](), "the defaults stand twice"


@pytest.mark.parametrize("name", SYNTHESIZERS)
def test_another_settings_name_or_type_is_refused(name):
    config = load_config([f"synthesis={name}"]).synthesis
    wrong = [{"no_such": 1}, *({f.name: True} for f in dataclasses.fields(SYNTHESIZERS[name]))]
    for options in wrong:
        with pytest.raises(UserError, match=rf"synthesis\.{next(iter(options))}"):
            build_synthesizer(dataclasses.replace(config, options=options))


@pytest.mark.parametrize("name", SYNTHESIZERS)
def test_a_model_between_rounds_has_settings_beside_every_synthesizer(name):
    spec = SYNTHESIZERS[name]()
    assert isinstance(spec, Synthesizer)
    limit = spec.max_model_cells
    assert limit is None or limit == spec.model_settings.max_cells
    assert spec.model_settings.iterations >= 1


def test_gum_creates_cells_that_no_row_has_yet():
    targets = ConsistentTargets(TOWN, 1000.0, (Target(("age", "job"), np.eye(6, 4) * 250.0, 1.0),))
    made = GumSpec(replace=0.0).follow(targets, rows=1000, rng=np.random.default_rng(3)).table
    assert np.mean(made.column("age") == made.column("job")) > 0.95


def test_the_total_weighs_every_marginal_by_its_precision_and_a_public_one_wins():
    exact = NoisyMarginal(("sex",), Identity(2), np.array([60.0, 40.0]), "gaussian", 0.1, "0")
    rough = NoisyMarginal(("age",), Identity(6), np.full(6, 100.0), "laplace", 50.0, "1")
    assert estimate_total(Measurements(TOWN, (exact, rough))) == pytest.approx(100, abs=0.1)
    assert default_rows(Measurements(TOWN, (rough,), public_total=123)) == 123
    assert estimate_total(Measurements(TOWN, ())) == 0


def test_systematic_rounding_is_unbiased_exact_in_sum_and_within_one():
    values = np.array([0.2, 3.7, 0.0, 1.1, 5.0])
    rng = np.random.default_rng(0)
    drawn = np.array([systematic(values, 10, rng) for _ in range(4000)])
    assert set(drawn.sum(axis=1)) == {10}
    assert np.abs(drawn - values).max() < 1 + 1e-9
    assert np.abs(drawn.mean(axis=0) - values).max() < 0.03
    assert (drawn[:, 2] == 0).all()
