"""Nobody but a person confirms that a schema is public knowledge: in its file, or on the command line."""

import json

import pandas as pd
import pytest

from mechanisms.public.schema.table_schema import load_schema
from tests.pipeline.conftest import command

FORMS = {
    "sizes.json": '{"a": 2, "b": 3}',
    "kinds.json": '{"a": {"kind": "integer", "min": 0, "max": 1}, "b": {"kind": "integer", "min": 0, "max": 2}}',
    "kinds.yaml": "a: {kind: integer, min: 0, max: 1}\nb: {kind: integer, min: 0, max: 2}\n",
    "false.yaml": "confirmed_public: false\ncolumns: {a: {kind: categorical, size: 2}}\nleave_out: [b]\n",
}


@pytest.fixture
def codes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pd.DataFrame({"a": [0, 1] * 60, "b": [0, 1, 2] * 40}).to_csv("codes.csv", index=False)
    for name, text in FORMS.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def run(name, *further):
    table = ["data=table", "data.path=codes.csv", f"data.schema={name}", "hydra.run.dir=out"]
    return command("run", *table, "synthesis=independent", "evaluation.enabled=false", *further)


@pytest.mark.parametrize("name", FORMS)
def test_a_schema_that_nobody_confirmed_makes_no_private_release(name, codes):
    assert not load_schema(codes / name).confirmed_public
    assert run(name) == 0
    said = json.loads((codes / "out/release/privacy.json").read_text())
    assert said["private"] is False
    assert any("confirmed_public" in reason for reason in said["reasons_not_private"])
    assert "confirmed by nobody" in said["public_facts"][0]


@pytest.mark.parametrize("name", FORMS)
def test_the_command_line_confirms_any_schema_and_the_statement_says_who_did(name, codes):
    assert run(name, "data.confirmed_public=true") == 0
    said = json.loads((codes / "out/release/privacy.json").read_text())
    assert said["private"] is True
    assert "on the command line (data.confirmed_public=true), not in the schema's file" in said["public_facts"][0]
    assert "confirmed_public: false" in (codes / "out/release/schema.yaml").read_text()  # no person wrote true


def test_a_confirmation_in_the_file_is_said_to_come_from_there(codes):
    (codes / "kinds.yaml").write_text(FORMS["kinds.yaml"] + "confirmed_public: true\n")
    assert run("kinds.yaml") == 0
    said = json.loads((codes / "out/release/privacy.json").read_text())
    assert said["private"] is True
    assert "confirmed as public in the schema's file" in said["public_facts"][0]
