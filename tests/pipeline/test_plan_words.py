"""What `plan` says to expect at a number of rows, and of columns of too many cells: the figures are those of a run."""

from __future__ import annotations

import json
import math
import re

import numpy as np
import pytest

from mechanisms.public.persons.person_questions import by_label, questions_about_units
from mechanisms.public.release import Measurements, NoisyMarginal
from mechanisms.public.schema.table_schema import parse_schema
from pipeline.release_query import answer
from pipeline.report.answer_noise import said_cells
from pipeline.report.plan_words import expectations
from pipeline.settings import build
from pipeline.settings.config import load_config
from pipeline.settings.specs import build_specs
from tests.pipeline.conftest import TOWN, command, edit, people, reply

UNIT = ["privacy.unit=person", "privacy.max_records=4"]


def expected(capsys, *settings):
    return json.loads(reply(capsys, "plan", *TOWN, *settings, "plan.format=json").out)


def helped(facts):
    return {line["with"].partition(" ")[0]: line for line in facts["expected"]["what_would_help"]}


def test_expected_errors_are_those_of_the_planned_noise(town, capsys):
    facts = expected(capsys, "selection=pairs", "plan.rows=600")
    sigma = {tuple(m["clique"]): m["stddev"] for m in facts["measurements"]}
    cells = {tuple(m["clique"]): m["cells"] for m in facts["measurements"]}
    ones = [math.sqrt(2 / math.pi) * sigma[c] * cells[c] / 1200 for c in sigma if len(c) == 1]
    pairs = [math.sqrt(2 / math.pi) * sigma[c] * cells[c] / 1200 for c in sigma if len(c) == 2]
    planned = facts["expected"]["what_would_help"][0]
    assert planned["columns"] == pytest.approx(np.median(ones))
    assert planned["all_together"] == pytest.approx(np.median(pairs))
    assert planned["one_alone"] < planned["all_together"]
    assert expected(capsys)["expected"] is None, "without rows"


def test_twice_epsilon_and_half_of_c_are_planned_anew_and_half_of_the_bins_too(town, capsys):
    facts = expected(capsys, *UNIT, "selection=pairs", "plan.rows=600")
    lines = helped(facts)
    assert set(lines) == {"as", "privacy.epsilon=2", "privacy.max_records=2", "half"}
    now = lines["as"]["columns"]
    assert lines["privacy.max_records=2"]["columns"] == pytest.approx(now / 2, rel=1e-6)
    double = expected(capsys, *UNIT, "selection=pairs", "plan.rows=600", "privacy.epsilon=2")
    assert lines["privacy.epsilon=2"] == {**helped(double)["as"], "with": "privacy.epsilon=2"}
    edit(town / "town.yaml", "bins: {count: 10}", "bins: {count: 5}")
    coarser = helped(expected(capsys, *UNIT, "selection=pairs", "plan.rows=600"))["as"]
    for figure in ("columns", "one_alone", "all_together"):
        assert lines["half"][figure] == pytest.approx(coarser[figure], rel=1e-3)


@pytest.mark.parametrize("selection", ["auto", "pairs", "mst", "indif"])
def test_every_column_is_called_useful_rough_or_drowned_by_the_rows(town, capsys, selection):
    kinds = []
    for rows in (30, 600, 1_000_000):
        facts = expected(capsys, f"selection={selection}", f"plan.rows={rows}")["expected"]
        called = facts["columns"]
        assert sorted(n for names in called.values() for n in names) == ["age", "job", "sex"]
        kinds.append(len(called["useful"]))
        if selection != "mst":
            assert len({n for names in facts["larger"].values() for n in names}) == 3
    assert kinds[0] == 0 and kinds[-1] == 3
    text = reply(capsys, "plan", *TOWN, f"selection={selection}", "plan.rows=1000000").out
    assert "3 columns that are useful" in text and "what would help" in text and "  privacy.epsilon=2  " in text
    assert text.startswith("at 1,000,000 rows") and len(text.splitlines()) <= 40
    assert "Li et al." not in text and "noisiest marginals:" not in text


def test_planning_other_settings_leaves_the_asked_ones_as_they_are(town):
    config = load_config([*TOWN, *UNIT, "privacy.epsilon=1"])
    specs = build_specs(config)
    schema = build.build_schema(specs)
    plan = build.build_plan(specs, build.build_workload(specs, schema), schema)
    expectations(config, schema, plan, 600)
    assert (config.privacy.epsilon, config.privacy.max_records) == (1, 4)


def test_plan_tells_the_table_and_whether_delta_is_at_most_one_by_n_squared(town, capsys):
    own = ["plan", *TOWN, "selection=pairs", "plan.rows=20000", "privacy.delta=1e-9"]
    facts = json.loads(reply(capsys, *own, "plan.format=json").out)["theory"]
    assert facts["delta"] == {"delta": 1e-9, "one_by_n_squared": 2.5e-9, "holds": True}
    assert [r["rows"] for r in facts["marginals"]] == [n for n in (2_000, 20_000, 200_000, 2_000_000) for _ in range(2)]
    assert facts["marginals"][3]["pure"] == math.floor(20 / math.sqrt(2))
    assert 0 < facts["useful"]["plan"] < 0.05
    assert "δ = 1e-08 is above 1/n² = 2.5e-09" in reply(capsys, *own, "privacy.delta=1e-8", "plan.details=true").out
    assert command("plan", *TOWN, "selection=pairs", "plan.details=true") == 0
    assert "1/n²" not in capsys.readouterr().out, "without plan.rows nothing is known about n"


def table_below(text: str, start: str) -> list[list[str]]:
    """The rows of the table whose head begins so, split where two spaces are."""
    lines = [line.strip() for line in text.splitlines()]
    place = next(i for i, line in enumerate(lines) if line.startswith(start))
    return [re.split("  +", line) for line in lines[place:] if "  " in line]


@pytest.mark.parametrize("delta", ["1e-9", "0"])
def test_the_tables_of_plan_say_what_each_row_is_and_grow_as_n_and_as_n_squared(town, capsys, delta):
    """Li et al. 2021b, sections 4 and 6.1: ten times the rows, ten times the marginals, or a hundred times."""
    own = ["plan", *TOWN, "selection=pairs", "plan.rows=20000", f"privacy.delta={delta}"]
    own += ["mechanism=laplace", "privacy.accountant=basic"] if delta == "0" else []
    said = reply(capsys, *own, "plan.details=true").out
    rows = [row for row in table_below(said, "rows ") if "of the rows)" in row[1]]
    first = ["a tenth of it: 2,000", "this table: 20,000", "10 times it: 200,000", "100 times it: 2,000,000"]
    assert [row[0] for row in rows[::2]] == first
    assert [row[1] for row in rows[:2]] == ["0.02 (1e-05 of the rows)", "2 (0.001 of the rows)"]
    pure, other = ([row[i].replace(",", "") for row in rows[1::2]] for i in (2, 3))
    assert [float(p) for p in pure] == pytest.approx([1.41, 14.1, 141, 1414], abs=1), "as many as n"
    assert "noise / rows" not in said and "no method with" not in said
    if delta == "0":
        assert "marginals if δ > 0" in said and set(other) == {"–"} and "this plan has δ = 0: this binds it too" in said
    else:
        assert "marginals if δ = 1e-09" in said and "δ = 1e-09, so that this does not bind it" in said
        assert float(other[3]) / float(other[2]) == pytest.approx(100, rel=0.02), "as many as n²"


VISITS = {
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
    schema, rng = parse_schema(VISITS, where="stays"), np.random.default_rng(1)
    asked = by_label(questions_about_units(schema, 1))
    assert any(q.shape[0] < 12 and q.features[0].kind.name == "RECORDS" for q in asked.values())  # some are merged
    counts, errors = [], set()
    for _ in range(200):
        noise = {label: rng.normal(0, 3, q.shape).ravel() for label, q in asked.items()}
        answers = tuple(NoisyMarginal(n, q.query, noise[n], "gaussian", 3.0, q.event) for n, q in asked.items())
        told = answer(schema, Measurements(schema.domain, (), persons=answers), where={"sex": "f"}, level="persons")
        counts.append(told["count"][0])
        errors.add(told["standard_error"][0])
    (error,) = errors
    assert 0.8 < np.std(counts) / error < 1.2


SAID = "noise drowns 'home', 10,001 cells: prefix: 3 makes a tenth of them, or a larger privacy.epsilon"


def test_plan_run_and_bounds_tell_one_story_of_a_column_of_ten_thousand_cells(town, capsys):
    table = people(600)
    table["home"] = [f"{i * 7919 % 100_000:05}" for i in range(600)]
    table.to_csv("town.csv", index=False)
    edit(town / "town.yaml", "leave_out", "  home: {kind: zip, digits: 5, prefix: 4}\nleave_out")
    assert SAID in reply(capsys, "plan", *TOWN, "plan.rows=600").out
    fast = ["synthesis=independent", "evaluation.enabled=false", "hydra.run.dir=out"]
    assert SAID in " ".join(reply(capsys, "run", *TOWN, *fast).out.split())
    shown = reply(capsys, "query", "from=out/release", "bounds=true")
    assert SAID in " ".join((shown.out + shown.err).split())


@pytest.mark.parametrize(
    ("fields", "helps"),
    [
        ({"kind": "zip", "digits": 5, "prefix": 2}, "prefix: 1 makes a tenth"),
        ({"kind": "integer", "min": 0, "max": 499}, "coarser bins make fewer"),
        ({"kind": "categorical", "size": 300}, "a shorter list of values makes fewer"),
        ({"kind": "categorical", "size": 3}, None),
    ],
)
def test_what_helps_is_a_setting_of_the_columns_kind(fields, helps):
    said = said_cells(parse_schema({"columns": {"x": fields}}, where="t"), ["x", "no column of it"], None)
    assert said == [] if helps is None else helps in said[0]
    for line in said_cells(parse_schema({"columns": {"x": fields}}, where="t"), ["x"], "x"):  # the unit's own column
        assert line.endswith("it names the unit: leave_out: [x]") and "epsilon" not in line


def test_a_plan_of_ones_own_schema_is_no_plan_of_the_demo_s_callers(town, capsys):
    """`plan data.schema=FILE` took the demo's unit, of five records: five times the noise of what `check` looked at."""
    assert "unit: one record, at most 1 records" in reply(capsys, "plan", "data.schema=town.yaml").out
    assert "unit: caller_id, at most 5 records" in reply(capsys, "plan", "data.schema=demo").out
