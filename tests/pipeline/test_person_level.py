"""Counts of persons: their stated errors are those of the noise."""

from __future__ import annotations

import numpy as np

from mechanisms.public.persons.asked_of_persons import questions_about_units
from mechanisms.public.persons.person_questions import by_label
from mechanisms.public.release import Measurements, NoisyMarginal
from mechanisms.public.schema.table_schema import parse_schema
from pipeline.release_query import answer

SCHEMA = {
    "name": "stays",
    "source": "invented for a test",
    "columns": {
        "sex": {"kind": "categorical", "values": ["f", "m"], "missing": False},
        "town": {"kind": "categorical", "values": ["A", "B", "C"], "missing": False},
        "day": {"kind": "date", "min": "2020-01-01", "max": "2020-12-31", "bins": {"count": 12}, "missing": False},
    },
    "unit": {"column": "person", "constant": ["sex", "town"], "order": "day", "records": {"max": 12}},
    "confirmed_public": True,
}


def test_a_stated_error_of_a_count_of_persons_is_the_noise_s() -> None:
    schema, rng = parse_schema(SCHEMA, where="stays"), np.random.default_rng(1)
    asked = by_label(questions_about_units(schema, 1))
    assert any(q.shape[0] < 12 and q.features[0].kind.name == "RECORDS" for q in asked.values())  # some are merged
    counts, errors = [], set()
    for _ in range(200):
        answers = tuple(
            NoisyMarginal(label, q.query, rng.normal(0, 3, q.shape).ravel(), "gaussian", 3.0, q.event)
            for label, q in asked.items()
        )
        told = answer(schema, Measurements(schema.domain, (), persons=answers), where={"sex": "f"}, level="persons")
        counts.append(told["count"][0])
        errors.add(told["standard_error"][0])
    (error,) = errors
    assert 0.8 < np.std(counts) / error < 1.2
