"""What a run says of marginals that it passes over, and of answers that drown in noise."""

import json
from types import SimpleNamespace

import numpy as np
import pytest

from mechanisms.public.domain import Attribute, Domain
from mechanisms.public.queries.query_matrices import Identity
from mechanisms.public.release import Measurements, NoisyMarginal
from pipeline.report.answer_noise import said_drowned
from tests.pipeline.conftest import TOWN, command

FAST = [*TOWN, "evaluation.enabled=false", "privacy.accountant=gdp", "privacy.epsilon=8"]


@pytest.mark.parametrize("selection", ["pairs", "indif", "mst", "mwem", "groups"])
def test_a_run_says_which_pairs_are_too_large_at_its_beginning_and_at_its_end(town, capsys, selection):
    settings = [*FAST, f"selection={selection}", "selection.max_cells=20", "synthesis=independent"]
    assert command("run", *settings, "hydra.run.dir=out") == 0
    shown = capsys.readouterr()
    line = "1 marginal left out: more than selection.max_cells=20 cells (50 to 50); see plan"
    assert line in " ".join(shown.err.split())  # in lines of 80 characters
    assert f"  left out  {line}" in shown.out
    assert command("plan", *settings) == 0
    shown = capsys.readouterr().out
    assert "left out (more than selection.max_cells cells): 1 marginals: age × job" in shown
    assert "no room" not in shown


def test_a_model_without_room_is_told_from_a_marginal_that_is_too_large(town, capsys):
    settings = [*FAST, "selection=pairs", "selection.max_cells=30", "synthesis=pgm", "synthesis.max_cells=29"]
    assert command("run", *settings, "hydra.run.dir=out") == 0
    shown = capsys.readouterr().out
    assert "  left out  1 marginal left out: more than selection.max_cells=30 cells" in shown
    assert (
        "  left out  1 of 5 marginals left out: no room in the graphical model of at most synthesis.max_cells=29"
        in shown
    )
    assert command("plan", *settings) == 0
    shown = capsys.readouterr().out
    assert "left out (more than selection.max_cells cells): 1 marginals: age × job" in shown
    assert "left out (no room in the graphical model): 1 marginals: age × sex" in shown
    assert command("plan", *settings, "plan.format=json") == 0
    plan = json.loads(capsys.readouterr().out)
    assert (plan["left_out"], plan["no_room"]) == ([["age", "job"]], [["age", "sex"]])


def test_a_run_that_leaves_nothing_out_says_nothing(town, capsys):
    assert command("run", *FAST, "selection=pairs", "synthesis=independent", "hydra.run.dir=out") == 0
    shown = capsys.readouterr()
    assert "left out" not in shown.out + shown.err
    assert "drowns" not in shown.out


def test_a_run_whose_noise_drowns_everything_says_so_and_what_helps(town, capsys):
    settings = [*FAST, "selection=pairs", "synthesis=independent", "privacy.epsilon=0.02"]
    assert command("run", *settings, "hydra.run.dir=out") == 0
    shown = capsys.readouterr().out
    assert "  warning   noise drowns " in shown
    assert "A larger privacy.epsilon, fewer marginals (selection=oneway) or coarser bins" in shown


def test_what_drowns_is_what_the_plan_counts():
    """Σ |noise| of at least twice the rows, by the noise's own mean; half of the answers or more."""
    domain = Domain((Attribute("a", 10), Attribute("b", 10)))

    def answers(*scales, noise="laplace"):
        values = np.full(10, 100.0)
        every = [NoisyMarginal((n,), Identity(10), values, noise, s, n) for n, s in zip("ab", scales, strict=True)]
        return said_drowned(Measurements(domain, tuple(every), 1000))

    assert answers(199.0, 1.0) == []
    (line,) = answers(200.0, 1.0)
    assert line.startswith("noise drowns 1 of the 2 marginals measured")
    assert "about 1,000 records" in line
    assert answers(200.0, 1.0, noise="gaussian") == []  # its mean is smaller at the same scale
    assert len(answers(251.0, 1.0, noise="gaussian")) == 1
    assert said_drowned(SimpleNamespace(answers=(), public_total=0)) == []
