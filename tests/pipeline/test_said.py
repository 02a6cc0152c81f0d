"""What a statement says beside the promise: public facts of the settings, lost choices, weak budgets."""

import json
import re
import shutil
from pathlib import Path

import pandas as pd
import pytest

import pipeline
from pipeline.scores.release_beside import release_beside
from pipeline.sweeps.results import total
from tests.pipeline.conftest import TOWN, command, reply, worded

FAST = [*TOWN, "evaluation.enabled=false", "synthesis=independent"]

LIMIT = "budget.limit={epsilon: 3, delta: 1e-6}"


def statement(folder):
    return worded(folder / "release")


@pytest.mark.parametrize("how", ["copied", "packed", "sorted", "parquet", "quoted"])
@pytest.mark.parametrize("public", [["selection=public", "selection.public"], ["synthesis=gum", "synthesis.public"]])
def test_a_copy_of_the_private_table_is_not_a_public_one(how, public, town, capsys):
    table = pd.read_csv(town / "town.csv")
    name = {"packed": "copy.csv.gz", "parquet": "copy.parquet"}.get(how, "copy.csv")
    if how == "parquet":
        table.to_parquet(town / name)
    else:
        made = table.sort_values(list(table.columns)) if how == "sorted" else table
        made.to_csv(town / name, index=False, quoting=1 if how == "quoted" else 0)
    kind, setting = public
    own = [kind, f"{setting}={name}", "hydra.run.dir=out", "budget.ledger=l.json", LIMIT]
    error = reply(capsys, "run", *FAST, *own, code=1).err
    assert "this is the private table itself" in error and setting in error
    assert not (town / "out" / "release").exists()
    assert not (town / "l.json").exists()  # nothing was booked


def test_another_table_with_as_many_rows_may_be_public_and_the_stop_is_listed(town):
    table = pd.read_csv(town / "town.csv")
    table.loc[0, "sex"] = "f" if table.loc[0, "sex"] == "m" else "m"
    table.to_csv(town / "other.csv", index=False)
    assert command("run", *FAST, "selection=public", "selection.public=other.csv", "hydra.run.dir=out") == 0
    said = statement(town / "out")
    assert "the table 'other.csv' (selection.public), which chose the marginals" in said["public_facts"]
    assert said["outside"] == [
        "a public table with the very rows of the private one refuses the run",
        "a column of which the schema cannot place more than 20 % of its cells that are not declared missing "
        "(data.max_unplaced=0.2) refuses the run, before any charge",
    ]


@pytest.mark.parametrize(("selection", "kind"), [("mst", "exponential"), ("indif", "scores")])
def test_a_choice_that_was_charged_and_lost_is_not_called_answered(selection, kind, town):
    own = [*FAST[:-1], f"selection={selection}", "synthesis=pgm", "synthesis.iterations=20", "hydra.run.dir=out"]
    assert command("run", *own) == 0

    def asked(event):
        return event["mechanism"] == "exponential" if kind == "exponential" else bool(event.get("scores"))

    before = [e["answered"] for e in statement(town / "out")["events"] if asked(e)]
    assert before and all(before)
    inside = town / "out" / "internal"
    lost = min((inside / "answers").glob("*.json"))
    event = json.loads(lost.read_text())["event"]
    lost.unlink()
    for later in (inside / "answers").iterdir():  # a run that was killed between charge and draw went no further
        if later.name > lost.name:
            later.unlink()
    charged = (inside / "ledger.jsonl").read_text().splitlines(keepends=True)
    last = next(i for i, line in enumerate(charged) if event in line)
    (inside / "ledger.jsonl").write_text("".join(charged[: last + 1]))
    shutil.rmtree(town / "out" / "release")
    assert command("run", *own, "resume=true") == 0
    after = {e["id"]: e["answered"] for e in statement(town / "out")["events"] if asked(e)}
    assert after[event] is False


def test_a_weak_budget_is_warned_about_everywhere_and_a_usual_one_nowhere(town, capsys):
    weak = ["privacy.epsilon=20", "privacy.delta=0.01", "plan.format=json"]
    planned = json.loads(reply(capsys, "plan", *FAST, *weak).out)["warnings"]
    assert len(planned) == 2
    assert reply(capsys, "plan", *FAST, *weak, "plan.format=text").out.count("warning: ") == 2
    printed = reply(capsys, "run", *FAST, *weak, "hydra.run.dir=out").out
    assert all(w in " ".join(printed.split()) for w in planned)
    assert statement(town / "out")["warnings"] == planned
    assert "  publish   release/synthetic.csv (" in printed
    usual = ["privacy.epsilon=10", "privacy.delta=1e-5", "hydra.run.dir=usual"]
    assert command("run", *FAST, *usual) == 0 and statement(town / "usual")["warnings"] == []
    assert "warning" not in capsys.readouterr().out


def test_a_release_that_is_not_private_is_not_to_be_published(town, capsys):
    lines = reply(capsys, "run", *FAST, "seed=1", "hydra.run.dir=out").out
    assert "  do NOT publish " in lines and "  publish  " not in lines


def test_scores_that_need_too_much_memory_are_foretold_before_the_run_spends(town, capsys):
    """On a terminal alone: the figure follows from the number of records. The run goes on."""
    said = "the scores are predicted to need"
    settings = ["limits.memory_gb=0.65", "selection=oneway", "synthesis=independent", "synthesis.rows=100"]
    for console, shown in (("always", True), ("never", False)):
        assert command("run", *TOWN, *settings, f"console={console}", f"hydra.run.dir={console}") == 0
        errors = " ".join(capsys.readouterr().err.split())
        assert (said in errors) is shown
        assert said not in (town / console / "internal" / "run.log").read_text(encoding="utf-8")
    assert command("run", *TOWN, *settings, "console=always", "evaluation.enabled=false", "hydra.run.dir=none") == 0
    assert said not in capsys.readouterr().err


def test_plan_foretells_the_memory_of_the_scores(town, capsys):
    few, many = ([*TOWN, "plan.format=json", f"plan.rows={rows}"] for rows in (1_000, 2_000_000))
    plans = [reply(capsys, "plan", *own).out for own in (few, many, [*many, "evaluation.enabled=false"])]
    needed = [json.loads(plan)["predicted_score_bytes"] for plan in plans]
    assert 0 == needed[2] < needed[0] < needed[1]
    assert " MB for the scores, of " in reply(capsys, "plan", *TOWN).out


#: What is promised, wherever it stands in words.
LOSS = re.compile(r"ε = ([0-9.e+-]+[0-9]), δ = ([0-9.e+-]+[0-9])")


def test_no_words_promise_less_than_the_numbers(town, capsys):
    """They were rounded to the nearest: ε = 0.33333348 and δ = 1.2344e-9 were said to be 0.333333 and 1.23e-09."""
    epsilon, delta = 0.33333348, 1.2344e-9
    fast = ["evaluation.enabled=false", "selection=oneway", "synthesis=independent", "budget.ledger=b.json"]
    fast += [f"privacy.epsilon={epsilon}", f"privacy.delta={delta}"]
    fast += ["budget.limit={epsilon: 2.0000034, delta: 1.2344e-6}"]
    assert command("run", *TOWN, *fast, "hydra.run.dir=out") == 0
    told = reply(capsys, "verify", "out/release").out
    release = pipeline.load("out")
    told += f"{release} {release._repr_html_()} {release_beside(Path('out/release/synthetic.csv'))[1]}"
    page = Path("out/release/statement.html").read_text(encoding="utf-8")
    last = re.findall(r"the plan spends: .*", reply(capsys, "plan", *TOWN, *fast).out)
    assert len(last) == 1 and len(LOSS.findall(told)) >= 5
    for e, d in LOSS.findall(told + last[0]):
        assert float(e) >= epsilon and float(d) >= delta, (e, d)
    booked, limit = LOSS.findall(re.search(r"booked .* unless", page)[0])
    assert float(booked[0]) >= epsilon and float(booked[1]) >= delta
    assert float(limit[0]) >= 2.0000034 and float(limit[1]) >= 1.2344e-6


def test_a_sweep_says_no_less_than_its_sum():
    rows = [{"job": n, "private": True, "seed": None, "epsilon": 1.0, "unit": "one record"} for n in "abc"]
    frame = pd.DataFrame(rows).assign(neighbouring="add_remove", spent_epsilon=0.33333348, spent_delta=1.0041e-9)
    assert total(frame) == "published together they spend at most ε = 1.00001, δ = 3.02e-09 on the same people"
