"""What a plan chooses, knows beforehand of what a run chooses later, and says to expect at a number of rows."""

import copy
import json
import math
import re
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest

from mechanisms.accounting.bookings import load_book
from mechanisms.public.errors import UserError
from mechanisms.public.persons.person_questions import by_label, questions_about_units
from mechanisms.public.release import Measurements, NoisyMarginal
from mechanisms.public.schema.table_schema import load_schema, parse_schema
from mechanisms.selection.base import LATER
from pipeline.release_query import answer
from pipeline.report.answer_noise import cell_lines
from pipeline.report.plan_words import expectations, in_words
from pipeline.run_context import present
from pipeline.settings import build, memory
from pipeline.settings.build import build_schema
from pipeline.settings.config import load_config
from pipeline.settings.design import design_of
from pipeline.settings.memory import later_cells
from pipeline.settings.specs import build_specs, settled
from pipeline.stages import STAGES
from synthesis.pgm.junction_tree import fit_cliques, junction_tree, model_cells
from tests.pipeline.conftest import SCHEMA, TOWN, command, edit, people, reply, statement_of
from tests.synthesis.pgm_worlds import cliques_of, world

FAST = ["synthesis=independent", "evaluation.enabled=false", "privacy.accountant=auto"]
LEDGER = ["budget.ledger=town.json", "budget.limit={epsilon: 3, delta: 1e-6}"]


def planned_of(*settings):
    specs = build_specs(load_config([*TOWN, *settings]))
    schema = build_schema(specs)
    return specs, schema, design_of(specs, schema).plan


def planned(*settings):
    return planned_of(*FAST, *settings)[2]


TRIES = ["selection=oneway", "accept=[{metric: l1, marginals: 1, at_most: 1000}]", "accept_tries=2"]


@pytest.mark.some(2)
@pytest.mark.parametrize("own", [["selection=oneway"], ["selection=indif"], ["selection=mst"], TRIES])
def test_a_run_names_the_accountant_that_was_taken_and_keeps_to_its_budget(town, own):
    assert command("run", *TOWN, *FAST, *own, "hydra.run.dir=out") == 0
    statement = statement_of("out")
    assert statement["accountant"] == "basic" and statement["guarantee"]["epsilon"] <= 1
    assert statement["guarantee"]["delta"] == 0
    assert {e["mechanism"] for e in statement["events"]} <= {"laplace", "exponential"}
    for path in (*Path("out/internal").rglob("ledger.jsonl"), *Path("out/release").glob("*.*")):
        assert '"auto"' not in path.read_text() and ">auto<" not in path.read_text()
    assert command("verify", "out/release") == 0
    assert command("run", *TOWN, *FAST, *own, "hydra.run.dir=out", "resume=true") == 0


def test_the_plan_names_the_pair_and_the_next_best(town, capsys):
    shown = reply(capsys, "plan", *TOWN, *FAST, "selection.marginals=[[age]]").out
    assert "accountant: basic" in shown
    assert "least noise: laplace noise under basic, standard deviation 1.414 records" in shown
    assert "next: gaussian noise under gdp, standard deviation 5.495" in shown
    compared = json.loads(reply(capsys, "plan", *TOWN, *FAST, "selection=oneway", "plan.format=json").out)["compared"]
    assert [c["accountant"] for c in compared[:2]] == ["basic", "gdp"]
    assert sorted(c["stddev"] for c in compared) == [c["stddev"] for c in compared]


@pytest.mark.parametrize(
    ("power", "settings"), [(1 / 2, ["privacy.delta=0"]), (2 / 3, ["mechanism=laplace", "privacy.accountant=basic"])]
)
def test_pure_noise_is_shared_out_by_the_root_of_the_cells_and_named_accountants_split_as_before(town, power, settings):
    plan = planned("selection=oneway", *settings)
    shares = [m.share / m.query.columns**power for m in plan.measurements]
    assert shares == pytest.approx([shares[0]] * len(shares))


def test_the_reserve_is_shared_out_by_the_same_power(town):
    pure = ["selection=indif", "privacy.delta=0", "privacy.epsilon=20", "selection.combine_cells=0"]
    assert command("run", *TOWN, *FAST, *pure, "hydra.run.dir=out") == 0
    statement = statement_of(town / "out")
    chosen = [e for e in statement["events"] if e["id"].startswith("purse:")]
    ratios = [(e["sensitivity"] / e["scale"]) / np.sqrt(e["answers"] if "answers" in e else e["cells"]) for e in chosen]
    assert len(chosen) > 1
    assert ratios == pytest.approx([ratios[0]] * len(ratios))
    assert sum(e["cost"]["epsilon"] for e in statement["events"]) <= 20


@pytest.mark.parametrize(
    ("settings", "kind"),
    [
        ([], "gdp"),
        (["budget.accountant=zcdp"], "zcdp"),
        (["budget.accountant=basic"], "basic"),  # it counts (ε, δ) alone: nothing speaks against a choice
        (["privacy.delta=0"], "basic"),
    ],
)
def test_a_run_counts_as_the_budget_that_it_books_in(town, settings, kind):
    """One pure run would cost a ledger's μ as much as dozens of Gaussian ones of the same ε."""
    assert planned("selection=oneway", *LEDGER, *settings).accountant.kind == kind
    for number in range(2 if kind == "gdp" else 1):
        own = [*LEDGER, *settings, "selection=oneway", f"hydra.run.dir=r{number}"]
        assert command("run", *TOWN, *FAST, *own) == 0
        assert statement_of(town / f"r{number}")["accountant"] == kind
    assert settings or load_book(town / "town.json").filter.kind == "gdp"


@pytest.mark.parametrize("selection", ["mst", "aim", "indif", "priview"])
def test_a_model_never_outgrows_what_was_predicted_for_it(town, selection):
    """Columns of 10, 2 and 5 values: no model of them has more than 100 cells."""
    few = ["selection.max_model_cells=55"] * (selection == "aim")
    specs, schema, plan = planned_of("privacy.delta=1e-6", f"selection={selection}", "synthesis=pgm", *few)
    grown = memory.model_sizes(specs.synthesizer, schema, plan)[1]
    assert grown is not None and grown <= (55 if few else 100)
    assert later_cells(plan, schema.measured)
    settings = [f"selection={selection}", "synthesis=pgm", "evaluation.enabled=false", "hydra.run.dir=out"]
    assert command("run", *TOWN, *settings, *few) == 0
    index = json.loads((town / "out" / "release" / "measurements" / "index.json").read_text())
    found = model_cells(schema.measured, [tuple(a["clique"]) for a in index["answers"]])
    assert found <= grown
    measured = sum(schema.measured.cells(tuple(a["clique"])) for a in index["answers"])
    assert measured <= sum(n for _, n in memory.planned_cells(plan, schema.measured))


@pytest.mark.slow
def test_a_model_leaves_out_what_was_chosen_and_finds_no_room_and_says_so(town, capsys):
    """The budget is spent by then: a model of 60 cells holds two of the three pairs, and no run ends without rows."""
    own = ["synthesis=pgm", "synthesis.max_cells=60", "hydra.run.dir=out", "evaluation.enabled=false"]
    chosen = ["selection=auto", "selection.fine_cells=0", "selection.combine_cells=0", "privacy.epsilon=1000"]
    assert command("run", *TOWN, *own, *chosen) == 0
    warned = "a graphical model of synthesis.max_cells=60 has no room for 1 of the 6 marginals measured"
    assert warned in " ".join(capsys.readouterr().err.split())
    assert warned in (town / "out" / "internal" / "run.log").read_text()
    assert command("synth", "from=out/release", *own[:2], "output=more", "rows=40") == 0
    assert warned in " ".join(capsys.readouterr().err.split())


def test_the_memory_of_what_a_reserve_buys_is_predicted(town):
    specs, schema, plan = planned_of("privacy.delta=1e-6", "selection=aim", "synthesis=pgm")
    assert [name for name, _ in later_cells(plan, schema.measured)] == [LATER] * plan.method["rounds"]
    base = memory.predicted_memory_bytes(specs, schema, plan)
    more = replace(plan, method={**plan.method, "rounds": 10**6})
    assert memory.predicted_memory_bytes(specs, schema, more) > base + 10**6 * 8 * 40
    specs.config.limits.memory_gb = base / 1e9 + 0.1
    with pytest.raises(UserError, match="a marginal chosen later"):
        memory.check_memory(specs, schema, more)


def test_plan_says_how_large_the_model_may_become(town, capsys):
    assert command("plan", *TOWN, "selection=aim", "synthesis=pgm", "selection.max_model_cells=60") == 0
    assert "at most 60 with those chosen later" in capsys.readouterr().out


def test_candidates_are_not_cut_to_those_that_fit_one_model_together(town):
    """A private choice is among all marginals; without one, those of a model too small for all are left out."""
    small = ["synthesis=pgm", "synthesis.max_cells=60"]
    config, schema = load_config([*TOWN, *small, "selection=aim", "selection.k=[2]"]), load_schema(town / "town.yaml")
    assert sum(len(c) == 2 for c in build.build_workload(build_specs(config), schema).cliques) == 3
    config = load_config([*TOWN, *small])
    assert sum(len(c) == 2 for c in build.build_workload(build_specs(config), schema).cliques) < 3


def test_impossible_combinations_count_in_the_size_of_the_model(town, capsys):
    """age × job is in every model of this schema (50 cells): with age × sex and job × sex it has all 100."""
    (town / "town.yaml").write_text(SCHEMA + "impossible: [{age: {min: 30}, job: baker}]\n")
    settings = ["synthesis=pgm", "selection.fit=true", "selection.marginals=[[age,sex],[sex,job]]"]
    specs, schema, plan = planned_of("privacy.delta=1e-6", *settings, "synthesis.max_cells=99")
    assert memory.model_sizes(specs.synthesizer, schema, plan)[0] <= 99
    assert len(plan.measurements) == 1
    specs, schema, plan = planned_of("privacy.delta=1e-6", *settings, "synthesis.max_cells=100")
    assert len(plan.measurements) == 2
    rest = ["synthesis=pgm", "selection.marginals=[[age,sex],[sex,job]]", "synthesis.max_cells=99"]
    said = reply(capsys, "plan", *TOWN, *rest, code=1).err
    assert "100 cells" in said and "selection.fit=true" in said and "leave out age × job" not in said
    assert command("plan", *TOWN, *settings, "synthesis.max_cells=30") == 1
    assert "impossible combinations alone" in capsys.readouterr().err


def test_rules_for_which_auto_has_no_model_are_told_before_the_run(town, capsys):
    """age × job, and sex: 52 cells, where 16 times max_cells are room."""
    (town / "town.yaml").write_text(SCHEMA + "impossible: [{age: {min: 30}, job: baker}]\n")
    told = " ".join(reply(capsys, "plan", *TOWN, "synthesis.max_cells=3").out.split())
    assert "a graphical model of 52 cells, more than 48: there is none" in told and "synthesis.max_cells to 4" in told
    assert "there is none" not in reply(capsys, "plan", *TOWN, "synthesis.max_cells=4").out


def test_what_is_fixed_is_in_every_tree_and_is_never_dropped():
    domain, ring = world([10] * 6), cliques_of(["ab", "bc", "cd"])
    fixed = cliques_of(["ad"])
    assert junction_tree(domain, ring, fixed=fixed).cells == model_cells(domain, [*ring, *fixed]) == 2 * 1000 + 20
    kept, dropped = fit_cliques(domain, ring, [3.0, 2.0, 1.0], 400, fixed=fixed)
    assert (kept, dropped) == (tuple(ring[:2]), (ring[2],))
    domain, ring = world([5, 100, 92, 87, 1, 1]), cliques_of(["ac", "ad", "bc", "bd"])
    assert fit_cliques(domain, [], [], 100_000, fixed=ring) == ((), ()), "89,500 cells, which no quick heuristic finds"


UNIT = ["privacy.unit=person"]
NAMED = "selection.marginals=[[age,sex],[sex,job],[job]]"
WEIGHTS = "selection.weights=[{marginal: [sex, job], weight: 2}, {marginal: [job], weight: 3}]"


def test_a_bound_that_was_discovered_gives_the_plan_of_one_that_is_declared(town: Path) -> None:
    config = load_config([*TOWN, *UNIT, "privacy.max_records=discover", "privacy.max_records_cap=8"])
    before = copy.deepcopy(asdict(config))
    open_specs = build_specs(config)
    schema = build_schema(open_specs)
    assert open_specs.discovers_bound and design_of(open_specs, schema).plan.discovery is not None
    found = open_specs.with_bound(3)
    declared = build_specs(load_config([*TOWN, *UNIT, "privacy.max_records=3"]))
    assert found.unit == declared.unit and not found.discovers_bound
    assert design_of(found, schema).plan.to_json() == design_of(declared, schema).plan.to_json()
    assert asdict(config) == before and found.config is open_specs.config == settled(config)


def test_columns_without_values_leave_the_selection_as_if_nobody_had_named_them(town: Path) -> None:
    config = load_config([*TOWN, NAMED, WEIGHTS])
    before = copy.deepcopy(asdict(config))
    left = "selection.weights=[{marginal: [job], weight: 2}, {marginal: [job], weight: 3}]"
    fewer = build_specs(load_config([*TOWN, "selection.marginals=[[age],[job]]", left]))
    assert build_specs(config).without_columns(["sex"]).selection == fewer.selection
    assert build_specs(config).without_columns([]).selection == build_specs(config).selection
    assert asdict(config) == before


def test_the_stages_stand_in_the_order_of_the_wall() -> None:
    names = [stage.__name__ for stage in STAGES]
    assert names == ["load", "book", "discover", "measure", "state_promise", "release", "score"]
    with pytest.raises(AssertionError, match="out of order"):
        present(None)


OF_FOUR = [*UNIT, "privacy.max_records=4"]


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
    facts = expected(capsys, *OF_FOUR, "selection=pairs", "plan.rows=600")
    lines = helped(facts)
    assert set(lines) == {"as", "privacy.epsilon=2", "privacy.max_records=2", "half"}
    now = lines["as"]["columns"]
    assert lines["privacy.max_records=2"]["columns"] == pytest.approx(now / 2, rel=1e-6)
    double = expected(capsys, *OF_FOUR, "selection=pairs", "plan.rows=600", "privacy.epsilon=2")
    assert lines["privacy.epsilon=2"] == {**helped(double)["as"], "with": "privacy.epsilon=2"}
    edit(town / "town.yaml", "bins: {count: 10}", "bins: {count: 5}")
    coarser = helped(expected(capsys, *OF_FOUR, "selection=pairs", "plan.rows=600"))["as"]
    for figure in ("columns", "one_alone", "all_together"):
        assert lines["half"][figure] == pytest.approx(coarser[figure], rel=1e-3)


@pytest.mark.some(2)
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


def test_one_marginal_alone_is_useful_even_if_all_are_measured():
    facts = {"columns": {key: [] for key in ("useful", "rough", "drown")}, "fewer_cells": [], "noisiest_cells": []}
    larger = {"useful": ["a × b"], "useful_if_few": ["c × d"], "rough": [], "drown": []}
    lines = in_words(facts | {"larger": larger, "what_would_help": []}, 600)
    assert lines[1] == "  1 larger marginal that is useful even if all are measured: a × b"
    assert lines[2] == "  1 larger marginal that is useful if few others are measured: c × d"


def test_planning_other_settings_leaves_the_asked_ones_as_they_are(town):
    config = load_config([*TOWN, *OF_FOUR, "privacy.epsilon=1"])
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


@pytest.mark.slow
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
    said = cell_lines(parse_schema({"columns": {"x": fields}}, where="t"), ["x", "no column of it"], None)
    assert said == [] if helps is None else helps in said[0]
    for line in cell_lines(parse_schema({"columns": {"x": fields}}, where="t"), ["x"], "x"):  # the unit's own column
        assert line.endswith("it names the unit: leave_out: [x]") and "epsilon" not in line


def test_a_plan_of_ones_own_schema_is_no_plan_of_the_demo_s_callers(town, capsys):
    """`plan data.schema=FILE` took the demo's unit, of five records: five times the noise of what `check` looked at."""
    assert "unit: one record, at most 1 records" in reply(capsys, "plan", "data.schema=town.yaml").out
    assert "unit: caller_id, at most 5 records" in reply(capsys, "plan", "data.schema=demo").out
