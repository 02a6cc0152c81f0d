"""Nobody but a person confirms that a schema is public knowledge: in its file, or on the command line."""

import time
from pathlib import Path

import pandas as pd
import pytest

from mechanisms.public.schema.sources import names_the_table
from mechanisms.public.schema.table_schema import load_schema
from pipeline.statement.verify import verify
from tests.pipeline.conftest import command, rebound, statement_of, worded

ROOT = Path(__file__).parents[2]
FORMS = {
    "sizes.json": '{"a": 2, "b": 3}',
    "kinds.json": '{"a": {"kind": "integer", "min": 0, "max": 1}, "b": {"kind": "integer", "min": 0, "max": 2}}',
    "kinds.yaml": "a: {kind: integer, min: 0, max: 1}\nb: {kind: integer, min: 0, max: 2}\n",
    "false.yaml": "confirmed_public: false\ncolumns: {a: {kind: categorical, size: 2}}\nleave_out: [b]\n",
}


@pytest.fixture
def codes(folder):
    pd.DataFrame({"a": [0, 1] * 60, "b": [0, 1, 2] * 40}).to_csv("codes.csv", index=False)
    for name, text in FORMS.items():
        (folder / name).write_text(text)
    return folder


def run(name, *further):
    table = ["data=table", "data.path=codes.csv", f"data.schema={name}", "hydra.run.dir=out"]
    return command("run", *table, "synthesis=independent", "evaluation.enabled=false", *further)


@pytest.mark.parametrize("name", FORMS)
def test_a_schema_that_nobody_confirmed_makes_no_private_release_until_the_command_line_confirms_it(name, codes):
    assert not load_schema(codes / name).confirmed_public
    assert run(name) == 0
    said = worded(codes / "out/release")
    assert said["private"] is False
    assert any("confirmed_public" in reason for reason in said["reasons_not_private"])
    assert "confirmed by nobody" in said["public_facts"][0]
    assert run(name, "data.confirmed_public=true", "hydra.run.dir=confirmed") == 0
    said = worded(codes / "confirmed/release")
    assert said["private"] is True
    assert "on the command line (data.confirmed_public=true), not in the schema's file" in said["public_facts"][0]
    assert "confirmed_public: false" in (codes / "confirmed/release/schema.yaml").read_text()  # no person wrote true


OWN = ["a draft from the table itself", "The data themselves.", "codes.csv", "/elsewhere/Codes.csv", "codes"]
OWN += ["min and max of each column", "this file", "ｃｏｄｅｓ．ｃｓｖ", "codes_csv", "codes csv, by hand"]
OWN += ["co\u200bdes.csv", "own data", "the table codes.csv", "values seen in the rows"]
OWN += ["codes.csv, looked through by hand"]


@pytest.mark.parametrize(("source", "how"), [(OWN[0], "in the file"), ("/elsewhere/Codes.csv", "on the command line")])
def test_a_schema_whose_source_is_the_table_itself_cannot_be_confirmed(source, how, codes, capsys):
    own = FORMS["false.yaml"].replace("columns:", f"source: {source}\ncolumns:")
    (codes / "own.yaml").write_text(own)
    assert run("own.yaml", "hydra.run.dir=unconfirmed") == 0
    assert statement_of(codes / "unconfirmed")["private"] is False
    if how == "in the file":
        (codes / "own.yaml").write_text(own.replace("false", "true"))
        assert command("check", "data.path=codes.csv", "data.schema=own.yaml") == 1
        assert "is the table itself" in capsys.readouterr().err
    assert run("own.yaml", "data.confirmed_public=true") == 1
    said = capsys.readouterr().err
    assert f"source: {source!r} is the table itself" in said and "min and max of each column, " in said
    assert "a codebook, a form, a law" in said
    assert not (codes / "out").exists(), "nothing was spent"


@pytest.mark.parametrize("how", ["in the file", "on the command line"])
def test_a_draft_under_a_schema_with_another_source_cannot_be_confirmed_either(how, codes, capsys):
    confirmed = f"confirmed_public: {'true' if how == 'in the file' else 'false'}\n"
    (codes / "draft.yaml").write_text(FORMS["false.yaml"][24:] + f"source: {OWN[0]}\n{confirmed}")
    (codes / "own.yaml").write_text(f"base: draft.yaml\nsource: a codebook\n{confirmed}")
    assert run("own.yaml", *([] if how == "in the file" else ["data.confirmed_public=true"])) == 1
    assert f"source: {OWN[0]!r} is the table itself" in capsys.readouterr().err and not (codes / "out").exists()


def test_a_source_is_the_table_itself_where_it_names_its_file_or_nothing_else():
    names = ("town", "/data/Town.csv.gz")
    own = [*OWN[:2], "Our own data.", "this table", "THE 'TOWN' TABLE", "town.csv", "./town.csv.gz"]
    own += ["file:///x/town.csv", "min and max of the columns", "town.csv's rows, and the clinic's form"]
    own += ["taken  from\nthe  raw file"]
    assert [s for s in own if not names_the_table(s, *names)] == []
    assert [s for s in OWN if not names_the_table(s, "codes", "codes.csv")] == []
    others = ["the town's register", "census data", "the data dictionary", "a codebook", "https://x.org/town.csv", ""]
    others += ["each town's register", "the Town-Hall's list", "the published domain of the data"]
    others += ["mytown.csv of the office", "open data portal", "values of the ICD-10"]
    shipped = [load_schema(path) for path in (ROOT / "conf" / "schemas").glob("*.yaml")]
    assert len(shipped) > 10 and [s.name for s in shipped if names_the_table(s.source, s.name, f"{s.name}.csv")] == []
    assert [s for s in others if names_the_table(s, *names)] == []
    names = ("town", "data/town_2020.csv.gz")  # marks between the words of its name are as good as any others
    own = ["town 2020", "Town-2020.csv", "town_2020 csv gz", "TOWN2020", "the file town.2020", "ＴＯＷＮ＿2020"]
    assert [s for s in [*own, "ﬁle town 2020"] if not names_the_table(s, *names)] == []
    others = ["town 20201", "the towns of 2020", "register of town 2020", "statistics office: 2020, town by town"]
    assert [s for s in others if names_the_table(s, *names)] == []


def test_a_release_that_claims_a_confirmed_draft_of_the_table_is_not_sound(codes):
    (codes / "kinds.yaml").write_text("source: a codebook\nconfirmed_public: true\n" + FORMS["false.yaml"][24:])
    assert run("kinds.yaml") == 0 and verify(codes / "out/release").sound
    assert "confirmed as public in the schema's file" in worded(codes / "out/release")["public_facts"][0]
    for path in (codes / "out/release").glob("*"):
        if path.suffix in {".json", ".yaml", ".html", ".csv"}:
            path.write_text(path.read_text().replace("a codebook", OWN[0]))
    rebound(codes / "out/release")
    verdict = verify(codes / "out/release")
    assert not verdict.sound and "private is True, and follows as False" in "\n".join(c.finding for c in verdict.checks)


def test_a_hostile_source_or_name_is_read_in_time_that_grows_with_its_length():
    begun = time.process_time()
    assert not names_the_table("a+" * 100_000 + "://", "p")
    assert not names_the_table("x " * 2_000, "a." * 10_000)
    assert time.process_time() - begun < 5
