"""The registry: every metric computes or says why not, alone."""

import json
from dataclasses import replace

import numpy as np
import pytest

from evaluation.catalogue import METRICS
from evaluation.registry import NEEDS, Options, compute, find
from mechanisms.public.coded_table import CodedTable, code_dtype
from mechanisms.public.domain import Attribute, Domain
from mechanisms.public.errors import UserError
from mechanisms.public.schema.table_schema import parse_schema
from mechanisms.public.tables.out_of_schema import with_apart

SCHEMA = parse_schema(
    {
        "columns": {
            "month": {"kind": "integer", "min": 1, "max": 6},
            "place": {"kind": "categorical", "values": ["a", "b", "c"]},
            "kind": {"kind": "categorical", "values": list("stuvw"), "missing": False},
            "sex": {"kind": "categorical", "values": ["m", "f"]},
            "wage": {"kind": "integer", "min": 0, "max": 999, "bins": {"count": 10}},
        }
    },
    where="town.yaml",
)


def town(rows: int, seed: int, domain: Domain = SCHEMA.domain) -> CodedTable:
    rng = np.random.default_rng(seed)
    columns = tuple((rng.random(rows) ** 2 * a.size).astype(code_dtype(a.size)) for a in domain.attributes)
    return CodedTable(domain, columns)


def full_options(rows: int, other: int) -> Options:
    ids = tuple(np.random.default_rng(0).integers(0, 30, n) for n in (rows, other))
    return Options(
        time="month", segment="place", kind="kind", to="kind", group="place", sex="sex", income="wage",
        subject=ids, holdout=town(200, 9), targets=("sex",),
    )  # fmt: skip


@pytest.mark.parametrize("name", METRICS)
def test_every_metric_computes_and_is_described(name):
    metric = METRICS[name]
    outcome = compute(metric, town(400, 1), town(300, 2), SCHEMA, full_options(400, 300))
    assert outcome.reason == ""
    out = json.loads(json.dumps(outcome.to_json(), allow_nan=False))
    low, high = out["range"]
    assert low <= out["score"] <= (float("inf") if high is None else high)
    assert out["details"] and out["title"] and out["source"] and out["reference"]


@pytest.mark.parametrize("name", METRICS)
def test_every_metric_takes_values_outside_the_schema_as_cells(name):
    """A tenth of the codes of each synthetic column is the one apart; none of the real ones."""
    wide = with_apart(SCHEMA, SCHEMA.domain.names)
    real, held = (CodedTable(wide.domain, town(n, s).columns) for n, s in ((400, 1), (200, 9)))
    options = replace(full_options(400, 300), holdout=held)
    outcome = compute(METRICS[name], real, town(300, 2, wide.domain), wide, options)
    assert outcome.reason == ""
    assert outcome.score is not None


@pytest.mark.parametrize("name", [n for n, m in METRICS.items() if n not in ("anita_privacy", "tstr")])
def test_the_truth_itself_scores_perfect(name):
    real = town(400, 1)
    options = full_options(400, 400)
    options = replace(options, subject=(options.subject[0], options.subject[0]))
    outcome = compute(METRICS[name], real, real, SCHEMA, options)
    assert outcome.score == pytest.approx(METRICS[name].perfect, abs=1e-9)


@pytest.mark.parametrize("name", [n for n, m in METRICS.items() if m.needs])
def test_what_is_needed_and_absent_is_named(name):
    outcome = compute(METRICS[name], town(40, 1), town(30, 2), SCHEMA)
    assert outcome.score is None
    for need in METRICS[name].needs:
        assert NEEDS[need] in outcome.reason
    json.dumps(outcome.to_json(), allow_nan=False)


@pytest.mark.parametrize("name", METRICS)
@pytest.mark.parametrize(("rows", "other"), [(0, 20), (20, 0)])
def test_empty_tables_have_a_reason(name, rows, other):
    outcome = compute(METRICS[name], town(rows, 1), town(other, 2), SCHEMA, full_options(rows, other))
    if METRICS[name].empty:  # it speaks for itself; every record may be added, at MGD's cost
        assert outcome.reason or (name == "mgd" and rows)
    else:
        assert outcome.score is None and "no records" in outcome.reason


def test_wrong_columns_and_crashes_are_reasons():
    real, synthetic = town(40, 1), town(30, 2)
    wrong = replace(full_options(40, 30), segment="palce")
    assert "did you mean 'place'?" in compute(METRICS["ncript"], real, synthetic, SCHEMA, wrong).reason
    other = town(30, 2, Domain((Attribute("x", 2),)))
    assert "different columns" in compute(METRICS["density"], real, other).reason

    def crash(inputs):
        raise ZeroDivisionError("division by zero")

    assert "ZeroDivisionError" in compute(replace(METRICS["density"], run=crash), real, synthetic).reason
    with pytest.raises(UserError, match="did you mean 'gini'"):
        find("ginni", METRICS)


def test_references_come_with_a_sentence():
    outcome = compute(METRICS["anita_2way"], town(500, 1), town(300, 2), SCHEMA, references=True, repeats=2)
    out = outcome.to_json()
    assert out["independent"]["value"] < out["floor"]["value"] + 0.05
    assert "sample of the real rows" in out["as_good_as"]
    assert len(out["ladder"]) == 11
    json.dumps(out, allow_nan=False)


def test_labels_of_the_schema_reach_the_temporal_scores():
    outcome = compute(METRICS["ncript"], town(400, 1), town(300, 2), SCHEMA, full_options(400, 300))
    assert set(outcome.result.segments) == {"a", "b", "c", "missing"}
    north = replace(full_options(400, 300), regions={"a": "north", "b": "north"})
    merged = compute(METRICS["ncript"], town(400, 1), town(300, 2), SCHEMA, north).result
    assert merged.segments == ("north", "c", "missing")
    assert outcome.result.times == (1, 2, 3, 4, 5, 6, "missing")
    assert len(outcome.result.deep_dive("a")) == len(outcome.result.times)
