"""What a plan chooses (noise, accountant), and knows beforehand of what a run chooses later."""

from __future__ import annotations

import copy
import json
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest

from mechanisms.accounting.bookings import load_book
from mechanisms.public.errors import UserError
from mechanisms.public.schema.table_schema import load_schema
from mechanisms.selection.base import LATER
from pipeline.run_context import present
from pipeline.settings import build, memory
from pipeline.settings.build import build_schema
from pipeline.settings.config import load_config
from pipeline.settings.design import design_of
from pipeline.settings.memory import later_cells
from pipeline.settings.specs import build_specs, settled
from pipeline.stages import STAGES
from synthesis.pgm.junction_tree import fit_cliques, junction_tree, model_cells
from tests.pipeline.conftest import SCHEMA, TOWN, command, reply, statement_of
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
    """age × job, and sex: 52 cells, where eight times max_cells are room."""
    (town / "town.yaml").write_text(SCHEMA + "impossible: [{age: {min: 30}, job: baker}]\n")
    told = " ".join(reply(capsys, "plan", *TOWN, "synthesis.max_cells=6").out.split())
    assert "a graphical model of 52 cells, more than 48: there is none" in told and "synthesis.max_cells to 7" in told
    assert "there is none" not in reply(capsys, "plan", *TOWN, "synthesis.max_cells=7").out


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
    assert names == ["load", "book", "discover", "measure", "state_promise", "release", "score", "share"]
    with pytest.raises(AssertionError, match="out of order"):
        present(None)
