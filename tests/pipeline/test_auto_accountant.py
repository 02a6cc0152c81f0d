"""Runs whose plan chooses noise and accountant: what they say, and what they ask of a shared budget."""

import json

import numpy as np
import pytest

from mechanisms.accounting.bookings import load_book
from pipeline.settings import build
from pipeline.settings.config import load_config
from pipeline.settings.specs import build_specs
from tests.pipeline.conftest import TOWN, command, statement_of

FAST = ["synthesis=independent", "evaluation.enabled=false", "privacy.accountant=auto"]
LEDGER = ["budget.ledger=town.json", "budget.limit={epsilon: 3, delta: 1e-6}"]


def planned(*settings):
    config = load_config([*TOWN, *FAST, *settings])
    specs = build_specs(config)
    schema = build.build_schema(specs)
    return build.build_plan(specs, build.build_workload(specs, schema), schema)


@pytest.mark.parametrize("selection", ["oneway", "indif", "mst"])
def test_a_run_names_the_accountant_that_was_taken(town, selection):
    assert command("run", *TOWN, *FAST, f"selection={selection}", "hydra.run.dir=out") == 0
    statement, ledger = (
        statement_of(town / "out"),
        (town / "out" / "internal" / "ledger.jsonl").read_text(encoding="utf-8"),
    )
    assert (statement["accountant"], statement["guarantee"]["delta"]) == ("basic", 0)
    assert {e["mechanism"] for e in statement["events"]} <= {"laplace", "exponential"}
    for text in (json.dumps(statement), ledger, (town / "out" / "release" / "statement.html").read_text()):
        assert '"auto"' not in text and ">auto<" not in text
    assert command("verify", "out/release") == 0
    assert command("run", *TOWN, *FAST, f"selection={selection}", "hydra.run.dir=out", "resume=true") == 0


def test_the_plan_names_the_pair_and_the_next_best(town, capsys):
    assert command("plan", *TOWN, *FAST, "selection.marginals=[[age]]") == 0
    shown = capsys.readouterr().out
    assert "accountant: basic" in shown
    assert "least noise: laplace noise under basic, standard deviation 1.414 records" in shown
    assert "next: gaussian noise under gdp, standard deviation 5.495" in shown
    assert command("plan", *TOWN, *FAST, "selection=oneway", "plan.format=json") == 0
    compared = json.loads(capsys.readouterr().out)["compared"]
    assert [c["accountant"] for c in compared[:2]] == ["basic", "gdp"]
    assert sorted(c["stddev"] for c in compared) == [c["stddev"] for c in compared]


def test_pure_noise_is_shared_out_by_the_root_of_the_cells(town):
    plan = planned("selection=oneway", "privacy.delta=0")
    shares = {m.clique[0]: m.share for m in plan.measurements}
    sizes = {m.clique[0]: m.query.columns for m in plan.measurements}
    assert shares["age"] / shares["sex"] == pytest.approx((sizes["age"] / sizes["sex"]) ** 0.5)


def test_the_reserve_is_shared_out_by_the_same_power(town):
    """The charges of a run, as they were booked: ε of chosen marginals in proportion to the root of their cells."""
    pure = ["selection=indif", "privacy.delta=0", "privacy.epsilon=20", "selection.combine_cells=0"]
    assert command("run", *TOWN, *FAST, *pure, "hydra.run.dir=out") == 0
    statement = statement_of(town / "out")
    chosen = [e for e in statement["events"] if e["id"].startswith("purse:")]
    ratios = [(e["sensitivity"] / e["scale"]) / np.sqrt(e["answers"] if "answers" in e else e["cells"]) for e in chosen]
    assert len(chosen) > 1
    assert ratios == pytest.approx([ratios[0]] * len(ratios))
    assert sum(e["cost"]["epsilon"] for e in statement["events"]) <= 20


def test_a_run_counts_as_the_budget_that_it_books_in(town):
    """One pure run would cost the ledger's μ as much as dozens of Gaussian ones of the same ε."""
    for number in range(2):
        assert command("run", *TOWN, *FAST, *LEDGER, "selection=oneway", f"hydra.run.dir=r{number}") == 0
        assert statement_of(town / f"r{number}")["accountant"] == "gdp"
    assert planned("selection=oneway", *LEDGER).accountant.kind == "gdp"
    assert load_book(town / "town.json").filter.kind == "gdp"


@pytest.mark.parametrize(
    ("settings", "kind"),
    [
        (["budget.accountant=zcdp"], "zcdp"),
        (["budget.accountant=basic"], "basic"),  # it counts (ε, δ) alone: nothing speaks against a choice
        (["privacy.delta=0"], "basic"),
    ],
)
def test_a_budget_of_another_kind_is_heeded_too(town, settings, kind):
    assert planned("selection=oneway", *LEDGER, *settings).accountant.kind == kind
    assert command("run", *TOWN, *FAST, *LEDGER, *settings, "selection=oneway", "hydra.run.dir=out") == 0
    assert statement_of(town / "out")["accountant"] == kind


def test_several_tries_keep_to_the_budget(town):
    accept = "accept=[{metric: l1, marginals: 1, at_most: 1000}]"
    assert command("run", *TOWN, *FAST, "selection=oneway", accept, "accept_tries=2", "hydra.run.dir=out") == 0
    statement = statement_of(town / "out")
    assert statement["accountant"] == "basic"
    assert statement["guarantee"]["epsilon"] <= 1


def test_named_accountants_split_as_before(town):
    """Of squares for all, so that frozen releases and a split that a person named stay what they were."""
    plan = planned("selection=oneway", "mechanism=laplace", "privacy.accountant=basic")
    shares = {m.clique[0]: m.share / m.query.columns ** (2 / 3) for m in plan.measurements}
    assert len({round(s, 12) for s in shares.values()}) == 1
