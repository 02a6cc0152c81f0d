"""Structural zeros of a schema in the synthesizers: the graphical model never draws them, before anything is mended."""

import numpy as np
import pytest

from mechanisms.public.coded_table import CodedTable
from mechanisms.public.queries.query_matrices import Identity
from mechanisms.public.release import Measurements, NoisyMarginal
from mechanisms.public.rules.engineering import engineer, undo
from mechanisms.public.rules.transforms import cell_numbers
from mechanisms.public.schema.table_schema import parse_schema
from synthesis.pgm.pgm_settings import PgmSpec
from synthesis.synthesize import synthesize
from synthesis.synthesizers import SYNTHESIZERS

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
    names, answers = plan.measured.names, []
    for i, a in enumerate(names):
        for b in names[i + 1 :]:
            shape = plan.measured.shape((a, b))
            cells = cell_numbers({a: kept.column(a), b: kept.column(b)}, (a, b), shape)
            values = np.bincount(cells, minlength=shape[0] * shape[1]) + rng.normal(0, sigma, shape[0] * shape[1])
            answers.append(NoisyMarginal((a, b), Identity(values.size), values, "gaussian", sigma, f"{a},{b}"))
    return Measurements(plan.measured, tuple(answers))


def broken(table, zeros):
    found = 0
    for clique, cells in zeros:
        codes = {n: table.column(n) for n in clique}
        found += int(cells[cell_numbers(codes, clique, table.domain.shape(clique))].sum())
    return found


def test_the_graphical_model_never_draws_an_impossible_combination():
    known, rng = noisy_pairs(), np.random.default_rng(0)
    with_rules = synthesize(known, PgmSpec(), rows=5_000, rng=rng, zeros=SCHEMA.zeros)
    assert {c for c, _ in SCHEMA.zeros} == {("there", "when"), ("type", "unit"), ("first", "last")}
    assert broken(with_rules, SCHEMA.zeros) == 0
    assert broken(synthesize(known, PgmSpec(), rows=5_000, rng=rng), SCHEMA.zeros) > 0


@pytest.mark.parametrize("spec", [kind() for name, kind in SYNTHESIZERS.items() if name != "mbi"])
def test_written_rows_of_every_synthesizer_keep_to_the_rules(spec):
    rng = np.random.default_rng(0)
    made = undo(synthesize(noisy_pairs(), spec, rows=3_000, rng=rng, zeros=SCHEMA.zeros), SCHEMA.engineering, rng)
    assert made.rows == 3_000 and made.domain == SCHEMA.domain
    assert broken(engineer(made, SCHEMA.engineering)[0], SCHEMA.zeros) == 0
    assert not any(engineer(made, SCHEMA.engineering)[1].values())
    assert not ((made.column("group") == 1) & (made.column("unit") == 0)).any()
