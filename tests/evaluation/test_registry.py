"""The registry: every metric computes or says why not, alone."""

import json
import math
import subprocess
import sys
from dataclasses import dataclass, replace
from types import SimpleNamespace

import numpy as np
import pytest

from evaluation.metric import Inputs, Metric, Options, TimeAndPlace
from evaluation.metrics import METRICS, check_metric, find
from evaluation.outcome import compute
from evaluation.papers.ncript.combined_loss import PreparedRows
from evaluation.papers.ncript.ncript_rows import NcriptSpec
from mechanisms.public.coded_table import CodedTable
from mechanisms.public.domain import Attribute, Domain
from mechanisms.public.errors import UserError
from mechanisms.public.schema.table_schema import parse_schema
from mechanisms.public.settings import column, columns, declared, setting
from mechanisms.public.tables.codec import with_apart
from pipeline.help import help_text
from pipeline.settings.compose import compose_config
from pipeline.settings.config import ScoreConfig, typed
from pipeline.settings.own_settings import typed_settings
from pipeline.settings.scoring import build_scores
from tests.public.table_worlds import coded

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
    """Low codes are frequent; of the wages most are low, and some far from these."""
    rng = np.random.default_rng(seed)
    skew = {a.name: 8 if a.name == "wage" else 2 for a in domain.attributes}
    return coded(domain, (rng.random(rows) ** skew[a.name] * a.size for a in domain.attributes))


def full_options(rows: int, other: int) -> Options:
    ids = tuple(np.random.default_rng(0).integers(0, 30, n) for n in (rows, other))
    map_roles = {"time": "month", "segment": "place", "kind": "kind", "to": "kind"}
    roles = map_roles | {"group": "place", "sex": "sex", "income": "wage"}
    return Options(settings=roles | {"predict": ["sex"]}, subject=ids, holdout=town(200, 9))


@pytest.mark.parametrize("name", METRICS)
def test_every_metric_computes_and_is_described(name):
    metric = METRICS[name]
    outcome = compute(metric, town(400, 1), town(300, 2), SCHEMA, full_options(400, 300))
    assert outcome.reason == ""
    out = json.loads(json.dumps(outcome.to_json(), allow_nan=False))
    low, high = out["range"]
    assert low <= out["score"] <= (float("inf") if high is None else high)
    assert out["details"] and out["title"] and out["source"] and out["reference"]
    assert metric.says and out["reading"]["words"].startswith(metric.says.format(score=out["score"]))


@pytest.mark.parametrize("name", METRICS)
def test_every_metric_takes_values_outside_the_schema_as_cells(name):
    """A tenth of the codes of each synthetic column is the one apart; none of the real ones."""
    wide = with_apart(SCHEMA, SCHEMA.domain.names)
    real, held = (CodedTable(wide.domain, town(n, s).columns) for n, s in ((400, 1), (200, 9)))
    options = replace(full_options(400, 300), holdout=held)
    outcome = compute(METRICS[name], real, town(300, 2, wide.domain), wide, options)
    assert outcome.reason == ""
    assert outcome.score is not None


@pytest.mark.parametrize("name", [n for n, m in METRICS.items() if m.library != "sklearn" and "holdout" not in m.needs])
def test_the_truth_itself_scores_perfect(name):
    real = town(400, 1)
    options = full_options(400, 400)
    options = replace(options, subject=(options.subject[0], options.subject[0]))
    outcome = compute(METRICS[name], real, real, SCHEMA, options)
    assert outcome.score == pytest.approx(METRICS[name].perfect, abs=1e-9)


def test_every_setting_of_a_metric_is_documented_and_fits_its_own_type():
    for name, metric in METRICS.items():
        assert metric.name == name
        for each in declared(metric.settings):
            assert each.doc and "\n" not in each.doc
            assert typed_settings({each.name: each.default})[each.name] == each.default


def test_the_entries_of_metrics_load_no_large_library():
    """Help and misspelt settings are answered from them."""
    work = [sys.executable, "-c", "import sys, evaluation.metrics; print(*sys.modules)"]
    loaded = subprocess.run(work, capture_output=True, text=True, check=True).stdout.split()
    assert not {*loaded} & {"numpy", "pandas", "numba", "scipy", "sklearn", "ortools", "yaml", "hydra"}


@pytest.mark.parametrize("name", [n for n, m in METRICS.items() if m.needs])
def test_what_is_needed_and_absent_is_named(name):
    outcome = compute(METRICS[name], town(40, 1), town(30, 2), SCHEMA)
    assert outcome.score is None
    for need in METRICS[name].needs:
        assert METRICS[name].words(need) in outcome.reason
    json.dumps(outcome.to_json(), allow_nan=False)


@pytest.mark.parametrize("name", METRICS)
@pytest.mark.parametrize(("rows", "other"), [(0, 20), (20, 0), (0, 0)])
def test_empty_tables_have_a_reason(name, rows, other):
    outcome = compute(METRICS[name], town(rows, 1), town(other, 2), SCHEMA, full_options(rows, other))
    json.dumps(outcome.to_json(), allow_nan=False)
    if METRICS[name].empty:  # it speaks for itself; every record may be added, at MGD's cost
        assert outcome.reason or (name == "mgd" and rows)
    else:
        assert outcome.score is None and "no records" in outcome.reason


def test_wrong_columns_and_crashes_are_reasons():
    real, synthetic = town(40, 1), town(30, 2)
    whole = full_options(40, 30)
    wrong = replace(whole, settings=whole.settings | {"segment": "palce"})
    assert "did you mean 'place'?" in compute(METRICS["ncript"], real, synthetic, SCHEMA, wrong).reason
    other = town(30, 2, Domain((Attribute("x", 2),)))
    assert "different columns" in compute(METRICS["density"], real, other).reason

    def crash(inputs):
        raise ZeroDivisionError("division by zero")

    assert "ZeroDivisionError" in compute(replace(METRICS["density"], run=crash), real, synthetic).reason
    nothing = replace(METRICS["density"], run=lambda inputs: SimpleNamespace(score=math.nan, to_json=dict))
    assert compute(nothing, real, synthetic).to_json()["reason"] == "undefined for these tables"
    with pytest.raises(UserError, match="did you mean 'gini'"):
        find("ginni")


def test_references_stand_beside_a_score():
    outcome = compute(METRICS["anita_2way"], town(500, 1), town(300, 2), SCHEMA, references=True)
    out = outcome.to_json()
    assert out["independent"]["value"] < out["floor"]["value"] + 0.05
    json.dumps(out, allow_nan=False)


def test_labels_of_the_schema_reach_the_temporal_scores():
    outcome = compute(METRICS["ncript"], town(400, 1), town(300, 2), SCHEMA, full_options(400, 300))
    assert set(outcome.result.segments) == {"a", "b", "c", "missing"}
    regions = PreparedRows({"a": "north", "b": "north"}, NcriptSpec())
    north = replace(full_options(400, 300), ready={"ncript": regions})
    merged = compute(METRICS["ncript"], town(400, 1), town(300, 2), SCHEMA, north).result
    assert merged.segments == ("north", "c", "missing")
    assert outcome.result.times == (1, 2, 3, 4, 5, 6, "missing")
    assert len(outcome.result.courses()[0]["Total"]) == len(outcome.result.times)


@dataclass(frozen=True)
class ShadeSettings(TimeAndPlace):
    """Settings of a metric that somebody else wrote."""

    colour: str | None = column("the column of the colours")
    shades: int = setting(3, "how many shades", least=2)
    tints: list[str] = columns("columns that are left out")


@dataclass(frozen=True)
class Shades:
    """What it was told."""

    score: float

    def to_json(self) -> dict[str, float]:
        return {"shades": self.score}


def shades(inputs: Inputs) -> Shades:
    own = inputs.own(ShadeSettings)
    return Shades(own.shades / 10 + 0 * inputs.real.column(inputs.column("colour")).size)


SHADES = Metric(
    "shades", "Shades", "high", 1, "none", "here", shades, settings=ShadeSettings, needs=("colour", "time")
)  # fmt: skip


@pytest.fixture
def with_shades(monkeypatch):
    """A metric from outside, with a role and settings of its own; nothing else knows of it."""
    monkeypatch.setitem(METRICS, "shades", SHADES)  # put away at the end
    del METRICS["shades"]
    check_metric(SHADES)
    METRICS[SHADES.name] = SHADES


def spec_of(*overrides, roles=None):
    return build_scores(typed(compose_config("score", overrides), ScoreConfig).evaluation, SCHEMA, roles)


def test_a_metric_brings_its_own_roles_and_settings(with_shades):
    spec = spec_of("evaluation.metrics=[shades]", "evaluation.shades=7", roles={"colour": "sex", "time": "month"})
    outcome = compute(METRICS["shades"], town(40, 1), town(30, 2), SCHEMA, spec.options)
    assert outcome.score == 0.7
    assert "evaluation.shades=3" in help_text("run", ["all"]) and "shades: how many shades" in help_text("score")
    absent = spec_of("evaluation.metrics=[shades]", "evaluation.time=month").options
    reason = compute(METRICS["shades"], town(40, 1), town(30, 2), SCHEMA, absent).reason
    assert reason == "needs colour: the column of the colours: evaluation.colour=COLUMN"
    with pytest.raises(UserError, match="there is a metric 'shades' already"):
        check_metric(SHADES)
    with pytest.raises(UserError, match="needs 'kind', which it does not declare"):
        check_metric(replace(SHADES, name="paint", needs=("kind",)))


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("evaluation.shads=7", "did you mean 'evaluation.shades'?"),
        ("evaluation.shades=many", "evaluation.shades: "),
        ("evaluation.shades=1", "a whole number of at least 2"),
        ("evaluation.colour=sxe", "did you mean 'sex'?"),
        ("evaluation.tints=[wag]", "did you mean 'wage'?"),
        ("evaluation.fixed=sex", "evaluation.fixed=[sex]"),
        ("evaluation.ncript={penalty: 1}", "no parameter 'penalty'"),
        ("evaluation.distance=hamimng", "did you mean 'hamming'?"),
    ],
)
def test_a_wrong_setting_of_a_metric_is_named_with_a_way_out(with_shades, override, said):
    with pytest.raises(UserError) as error:
        spec_of(override)
    assert said in str(error.value)


def test_parameters_of_n_cript_change_its_losses():
    spec = spec_of("evaluation.ncript={bias_penalty: 1, weights: [0,0,0,0,0]}")
    options = replace(full_options(400, 300), ready=spec.options.ready)
    outcome = compute(METRICS["ncript"], town(4000, 1), town(300, 2), SCHEMA, options)
    assert set(np.unique(outcome.result.total)) <= {0.0, 1.0}
