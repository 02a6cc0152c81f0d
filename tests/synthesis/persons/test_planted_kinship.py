"""Kinship that was planted is kept, and none is invented where there is none, at the noise of ε = 3."""

import numpy as np
import pandas as pd
import pytest
import yaml

from mechanisms.public.coded_table import CodedTable
from mechanisms.public.domain import Domain
from mechanisms.public.persons.person_features import times_of
from mechanisms.public.persons.person_questions import asked_columns, questions_of, with_shares
from mechanisms.public.queries.query_matrices import Identity
from mechanisms.public.release import NoisyMarginal
from mechanisms.public.schema.code_labels import bin_bounds
from mechanisms.public.schema.column import Column
from mechanisms.public.schema.table_schema import parse_schema
from synthesis.persons.linking import linked_persons
from tests.bench.planted import FAMILIES, kinship
from tests.synthesis.persons.test_linking import exact_answers

#: Persons here, and those whose noise they have; μ of ε = 3 at δ = 1e-6.
PERSONS, AS_OF, MU = 1_000, 4_000, 0.6


def codes(rows: pd.DataFrame, column: Column) -> np.ndarray:
    values = rows[column.name].to_numpy()
    if column.kind != "integer":
        return np.array([[str(v) for v in column.values].index(str(v)) for v in values], np.uint8)
    return (np.searchsorted(bin_bounds(column)[0], values, side="right") - 1).astype(np.uint8)


def linked_again(name: str, strength: float, seed: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Records of persons, and the same after their owners were thrown away and linked from noisy answers."""
    family = FAMILIES[name]
    rows = family.make(strength, PERSONS, seed)
    schema = parse_schema(yaml.safe_load(family.schema), where="test")
    unit, columns, rng = schema.rules.unit, asked_columns(schema), np.random.default_rng(seed)
    assert unit is not None
    table = CodedTable(Domain(tuple(c.attribute for c in columns)), tuple(codes(rows, c) for c in columns))
    time = unit.times({c.name: c for c in columns})
    times = np.full(len(rows), -1) if time is None else times_of(rows[time.name].to_numpy(np.float64), time)
    questions = with_shares(questions_of(schema), None, 3.0)
    exact = exact_answers(table, times, rows[family.owner].to_numpy(), unit, questions)
    answers = []
    for question, counts in zip(questions, exact, strict=True):
        sigma = PERSONS / AS_OF / (MU * question.share**0.5)
        noisy = counts + rng.normal(0, sigma, counts.size)
        answers.append(NoisyMarginal(question.label, Identity(counts.size), noisy, "gaussian", sigma, question.event))
    linked = linked_persons(table, times, unit, columns, answers, seed=seed)
    made = rows.iloc[linked.members].copy()
    made[family.owner] = np.repeat(np.arange(linked.starts.size - 1), np.diff(linked.starts))
    return rows, made


@pytest.mark.parametrize("name", FAMILIES)
def test_planted_kinship_is_kept_and_none_is_invented(name):
    family = FAMILIES[name]
    real, made = linked_again(name, 0.5, seed=1)
    kept = [kinship(made, family.owner, c) / kinship(real, family.owner, c) for c in family.columns]
    assert np.mean(kept) > 0.65 and min(kept) > 0.4, kept
    assert made[family.owner].nunique() == pytest.approx(PERSONS, rel=0.02)
    if name == "waves":  # each wave of a person follows the one before
        assert (made.groupby(family.owner)["wave"].diff().dropna() == 1).mean() > 0.9
    made = linked_again(name, 0.0, seed=1)[1]
    invented = [kinship(made, family.owner, c) for c in family.columns]
    assert max(map(abs, invented)) < 0.06, invented
