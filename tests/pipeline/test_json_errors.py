"""A mistake under format=json is one line of JSON, and all misspelt columns are told in one go."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import pipeline
from mechanisms.public.errors import UserError
from tests.pipeline.conftest import command

TOWN_PLAN = ["plan", "data=table", "data.schema=town.yaml"]


@pytest.mark.parametrize(
    ("given", "where"),
    [
        ([*TOWN_PLAN, "privacy.epsilon=-1"], "privacy.epsilon"),
        ([*TOWN_PLAN, "privacy.epsilo=1"], "override 'privacy.epsilo=1'"),
        (["check", "data.path=nope.csv", "data.schema=town.yaml"], "nope.csv"),
        (["plann"], "python -m pipeline"),
    ],
)
def test_an_error_is_json_where_that_is_asked_for(
    given: list[str], where: str, town: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command(*given, "format=json") == 1
    said = capsys.readouterr()
    told = json.loads(said.err)
    assert not said.out and said.err.count("\n") == 1
    assert told["where"] == where and told["error"] and told["fix"]


@pytest.mark.parametrize(
    "given",
    [
        ["selection.marginals=[[agee,sx]]"],
        ["data.roles={time: agee, kind: sx}"],
        ["selection.important=[agee,sx]"],
        ["evaluation.groups=[agee,sx]"],
        ["evaluation.pairs=[[agee,sx]]"],
        ["evaluation.attributes=[agee,sx]", "evaluation.preset=located"],
    ],
)
def test_all_misspelt_columns_are_told(given: list[str], town: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command("run", "data=table", "data.path=town.csv", "data.schema=town.yaml", *given) == 1
    said = capsys.readouterr().err
    assert all(word in said for word in ("'agee'", "'sx'", "did you mean 'age'?", "did you mean 'sex'?")), said
    assert given[0].partition("=")[0] in said


def test_all_absent_columns_of_a_table_are_told(town: Path) -> None:
    Path("few.csv").write_text("person,note\np,x\n")
    with pytest.raises(UserError, match=r"no columns 'age', 'sex', 'job' in few.csv"):
        pipeline.check("few.csv", "town.yaml")
