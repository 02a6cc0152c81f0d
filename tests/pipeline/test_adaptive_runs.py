"""`plan` and `run` with adaptive selections: published figures, whole runs, refusals before anything is spent."""

import json

import pytest

from tests.pipeline.conftest import TOWN, command, statement_of

TAXI = ["data=chicago_taxi", "selection=taxi", "mechanism=gaussian", "privacy.delta=2.5e-5", "plan.format=json"]


@pytest.mark.parametrize(
    ("accountant", "epsilon", "bound", "sigma"),
    [("zcdp", 1, 150, 5739.36), ("gdp", 1, 150, 4290.24), ("zcdp", 10, 200, 895.42), ("gdp", 10, 200, 784.12)],
)
def test_plan_prints_the_scales_of_paper_003(capsys, accountant, epsilon, bound, sigma):
    """66 marginals, the copies as the weight of one: its noise is that of the mean of 8."""
    settings = [f"privacy.epsilon={epsilon}", f"privacy.max_records={bound}", f"privacy.accountant={accountant}"]
    assert command("plan", *TAXI, *settings) == 0
    facts = json.loads(capsys.readouterr().out)
    scales = [m["scale"] for m in facts["measurements"]]
    assert len(scales) == 59
    copied = facts["measurements"][scales.index(min(scales))]
    assert copied["clique"] == ["pickup_community_area", "dropoff_community_area"]
    assert min(scales) == pytest.approx(sigma / 8**0.5, abs=0.01)
    assert sorted(scales)[1:] == pytest.approx([sigma] * 58, abs=0.005)
    orders = [len(m["clique"]) for m in facts["measurements"]]
    assert orders == sorted(orders)
    assert sum(1 / s**2 for s in scales) == pytest.approx(66 / sigma**2, rel=1e-5)


def test_plan_prints_the_scale_for_people(capsys):
    assert command("plan", *TAXI[:-1], "privacy.max_records=150", "privacy.accountant=zcdp") == 0
    assert "5739.36" in capsys.readouterr().out


@pytest.mark.parametrize("selection", ["mst", "mwem", "aim", "adagrid"])
def test_plan_names_choices_and_what_is_chosen_later(town, capsys, selection):
    assert command("plan", *TOWN, f"selection={selection}") == 0
    text = capsys.readouterr().out
    assert ("rounds, in all" if selection == "aim" else "a private choice") in text
    assert "ε = 1" in text


def test_targets_stand_in_every_marginal(town):
    settings = ["synthesis=pgm", "hydra.run.dir=out", "selection.targets=[job]", "privacy.epsilon=20"]
    assert command("run", *TOWN, "selection=adagrid", *settings) == 0
    said = statement_of(town / "out")
    cliques = {tuple(e["clique"]) for e in said["events"] if e["mechanism"] != "exponential"}
    assert {("age", "job"), ("sex", "job"), ("age", "sex", "job")} <= cliques
