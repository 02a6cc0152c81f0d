"""Drafts from metadata: SDV, Frictionless, DDI, CREATE TABLE. They read no rows, and say what they could not use."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml

from mechanisms.public.drafts.metadata.metadata_files import is_metadata, metadata_draft
from mechanisms.public.errors import UserError
from mechanisms.public.schema.sources import names_the_table
from mechanisms.public.schema.table_schema import Schema, column_fields, load_schema
from tests.pipeline.conftest import command

SDV = {
    "METADATA_SPEC_VERSION": "V1",
    "tables": {
        "guests": {
            "primary_key": "email",
            "columns": {
                "email": {"sdtype": "email", "pii": True},
                "room": {"sdtype": "categorical"},
                "fee": {"sdtype": "numerical", "computer_representation": "Float"},
                "nights": {"sdtype": "numerical", "computer_representation": "UInt8"},
                "arrived": {"sdtype": "datetime", "datetime_format": "%d %b %Y"},
                "member": {"sdtype": "boolean"},
                "note": {"sdtype": "unknown"},
                "class": {"sdtype": "categorical", "order": ["A", "B"]},
            },
            "column_relationships": [],
        }
    },
}
FIELDS = [
    {"name": "id", "type": "integer"},
    {"name": "sex", "type": "string", "title": "Sex", "constraints": {"required": True, "enum": ["F", "M"]}},
    {"name": "age", "type": "integer", "constraints": {"minimum": 0, "maximum": 110, "pattern": "x"}},
    {"name": "stay", "type": "integer", "constraints": {"minimum": 0}},
    {"name": "cost", "type": "number", "decimalChar": ",", "groupChar": "."},
    {"name": "born", "type": "date", "format": "%d.%m.%Y", "constraints": {"minimum": "1900-01-01"}},
    {"name": "ok", "type": "boolean", "trueValues": ["ja"], "falseValues": ["nein"]},
    {"name": "mail", "type": "string", "format": "email"},
    {"name": "school", "type": "string", "categories": [{"value": "1", "label": "none"}], "categoriesOrdered": True},
    {"name": "wrong", "type": "integer", "constraints": {"minimum": 9, "maximum": 1}},
]
PEOPLE = {"fields": FIELDS, "missingValues": ["", "NA"], "primaryKey": "id"}
PACKAGE = {"resources": [{"name": "people", "schema": PEOPLE}]}
DDI = """<codeBook xmlns="ddi:codebook:2_5"><stdyDscr><citation><titlStmt><titl>Survey 2020</titl></titlStmt></citation>
</stdyDscr><dataDscr><var ID="V1" name="sex" intrvl="discrete"><labl>Sex</labl><varFormat type="numeric"/>
<catgry><catValu>1</catValu><labl>male</labl><catStat type="freq">120</catStat></catgry>
<catgry><catValu>2</catValu><labl>female</labl></catgry>
<catgry missing="Y"><catValu>9</catValu><labl>refused</labl></catgry></var>
<var name="age" intrvl="contin"><valrng><range min="0" max="99"/></valrng><invalrng><item VALUE="-1"/></invalrng>
<sumStat type="mean">45.25</sumStat><qstn>How old?</qstn><varFormat type="numeric"/></var>
<var name="income" dcml="2"><varFormat type="numeric"/></var><var name="town"><varFormat type="character"/></var>
</dataDscr></codeBook>"""
SQL = """CREATE TYPE mood AS ENUM ('sad', 'ok');
CREATE TABLE public.visits (
  id bigint NOT NULL PRIMARY KEY, patient integer REFERENCES patients(id), mood mood,
  sex character varying(1) NOT NULL CHECK (sex IN ('F', 'M')), ward varchar(20) DEFAULT 'icu',
  age smallint CHECK (age BETWEEN 0 AND 120), weight numeric(5,2) CHECK (weight > -0.5 AND weight < 500),
  ok boolean, came date, went date, noted timestamp, data jsonb, kind text,
  CONSTRAINT kinds CHECK (((kind)::text = ANY ((ARRAY['a'::character varying, 'b'::character varying])::text[]))),
  CHECK (came <= went), CHECK (length(ward) > 2), FOREIGN KEY (ward) REFERENCES wards(name));"""


def made(folder: Path, name: str, content: object) -> tuple[str, Schema]:
    """The draft of a file, and the schema once a person has confirmed it, its source line untouched."""
    path = folder / name
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    text = metadata_draft(path)
    confirmed = folder / "own.yaml"
    confirmed.write_text(text.replace("confirmed_public: false", "confirmed_public: true"), encoding="utf-8")
    return text, load_schema(confirmed)


def declared(facts: Schema) -> dict[str, dict[str, object]]:
    return {c.name: {k: v for k, v in column_fields(c).items() if k != "outside"} for c in facts.columns}


def test_metadata_of_sdv_says_kinds_and_forms_and_leaves_persons_out(tmp_path):
    text, facts = made(tmp_path, "metadata.json", SDV)
    columns = declared(facts)
    assert facts.leave_out == ("email", "note") and facts.confirmed_public and facts.name == "guests"
    assert columns["class"]["values"] == ["A", "B"] and columns["class"]["ordinal"] is True
    assert columns["nights"] == {"kind": "integer", "bounds": "discover", "within": [0, 255], "missing": True}
    assert (columns["arrived"]["kind"], columns["arrived"]["format"]) == ("date", "%d %b %Y")
    assert columns["room"]["values"] == "discover" and columns["member"]["kind"] == "flag"
    assert "Not used of it: column_relationships." in text and "read no rows" in text
    with pytest.raises(UserError, match="describes 2 tables"):
        made(tmp_path, "two.json", {**SDV, "tables": {"a": SDV["tables"], "b": {}}})


def test_the_example_of_the_docs_is_what_its_file_makes(tmp_path):
    page = (Path(__file__).parents[2] / "docs" / "schema.md").read_text(encoding="utf-8")
    ((name, content, shown),) = re.findall(
        r"<!-- draft: (.*?) -->\n```json\n(.*?)```\n```yaml\n(.*?)```", page, re.DOTALL
    )
    text, _ = made(tmp_path, name, content)
    assert text[text.index("columns:") :] == shown


@pytest.mark.parametrize("content", [PACKAGE, PEOPLE], ids=["package", "schema"])
def test_a_frictionless_schema_says_lists_bounds_gaps_and_marks(content, tmp_path):
    text, facts = made(tmp_path, "datapackage.json", content)
    columns = declared(facts)
    assert facts.leave_out == ("id", "mail", "wrong") and "min must lie below max" in text
    assert not names_the_table(facts.source, "people.csv", "datapackage.csv", facts.name)
    assert columns["sex"] == {"kind": "categorical", "values": ["F", "M"], "missing": False}
    assert (columns["age"]["min"], columns["age"]["max"], columns["age"]["missing"]) == (0, 110, ["NA"])
    assert columns["stay"]["within"] == [0, 10**9] and columns["born"]["within"] == ["1900-01-01", "2100-12-31"]
    assert (columns["cost"]["decimal"], columns["cost"]["strip"]) == (",", ["."])
    assert (columns["ok"]["true"], columns["ok"]["false"]) == (["ja"], ["nein"])
    assert columns["school"]["ordinal"] is True and "1 = none" in text and "age: pattern" in text


def test_a_code_that_means_a_gap_is_one_and_what_is_said_of_the_file_is_named(tmp_path):
    nine = {
        "categories": [{"value": 1, "label": "German"}, {"value": 9, "label": "No answer"}],
        "missingValues": ["", "9"],
    }
    fields = [
        {"name": "spoken", "type": "integer", **nine},
        {"name": "sure", "type": "string", "constraints": {"enum": ["1", "9"]}},
    ]
    table = {"name": "t", "dialect": {"delimiter": ";"}, "schema": {"fields": fields, "missingValues": ["9"]}}
    (tmp_path / "t.json").write_text(json.dumps({"resources": [table]}))
    text = metadata_draft(tmp_path / "t.json")
    columns = yaml.safe_load(text)["columns"]
    assert columns == {n: {"kind": "categorical", "values": [1], "missing": ["9"]} for n in ("spoken", "sure")}
    assert "# Not used of it: dialect.\n" in text and "9 = No answer" in text


def test_a_ddi_codebook_says_categories_and_ranges_and_no_figure_that_was_counted(tmp_path):
    text, facts = made(tmp_path, "book.xml", DDI)
    columns = declared(facts)
    assert facts.name == "Survey 2020" and columns["sex"]["values"] == [1, 2] and columns["sex"]["missing"] == ["9"]
    assert (columns["age"]["min"], columns["age"]["max"], columns["age"]["missing"]) == (0, 99, ["-1"])
    assert columns["income"] == {"kind": "float", "bounds": "discover", "decimals": 2, "missing": True}
    assert "45.25" not in text and "120" not in text and "what the rows show?" in text
    assert "catStat (counted from the rows); qstn; sumStat (counted from the rows)" in text


BOMB = '<!DOCTYPE z [<!ENTITY a "aaaaaaaaaa">' + "".join(
    f'<!ENTITY {b} "{f"&{a};" * 10}">' for a, b in zip("abcdefghi", "bcdefghij", strict=True)
) + "]><codeBook><dataDscr><var name='&j;'/></dataDscr></codeBook>"  # fmt: skip
OUTER = '<!DOCTYPE c [<!ENTITY x SYSTEM "file:///etc/passwd">]><codeBook><var name="a">&x;</var></codeBook>'


@pytest.mark.parametrize("text", [BOMB, OUTER, f'<?xml version="1.0" encoding="utf-7"?>{BOMB}'])
def test_entities_are_refused_before_anything_is_read(text, tmp_path):
    with pytest.raises(UserError, match="declares a document type"):
        made(tmp_path, "bomb.xml", text)


def test_xml_in_another_encoding_or_nested_without_end_is_refused(tmp_path):
    (tmp_path / "b.xml").write_bytes(BOMB.encode("utf-16"))
    with pytest.raises(UserError, match="not well formed"):
        metadata_draft(tmp_path / "b.xml")
    with pytest.raises(UserError, match="no variables"):
        made(tmp_path, "deep.xml", "<a>" * 100_000 + "</a>" * 100_000)


def test_a_create_table_says_types_lists_ranges_keys_and_what_comes_first(tmp_path):
    pytest.importorskip("sqlglot")
    text, facts = made(tmp_path, "visits.sql", SQL)
    columns = declared(facts)
    assert facts.leave_out == ("id", "patient", "data") and "privacy.unit=patient" in text
    assert columns["sex"] == {"kind": "categorical", "values": ["F", "M"], "missing": False}
    assert columns["mood"]["values"] == ["sad", "ok"] and columns["kind"]["values"] == ["a", "b"]
    assert (columns["age"]["min"], columns["age"]["max"]) == (0, 120)
    assert (columns["weight"]["min"], columns["weight"]["max"], columns["weight"]["decimals"]) == (-0.5, 500, 2)
    assert '#   - ["came", "went"]' in text and columns["noted"]["kind"] == "datetime"
    assert "CHECK (LENGTH(ward) > 2)" in text and "FOREIGN KEY (ward)" in text and "ward: DEFAULT 'icu'" in text
    columns = "(`id` int AUTO_INCREMENT, `s` enum('a','b') NOT NULL, `f` tinyint(1))"
    _, mysql = made(tmp_path, "my.ddl", f"CREATE TABLE `t` {columns} ENGINE=InnoDB")
    assert mysql.leave_out == ("id",) and mysql["s"].values == ("a", "b") and mysql["f"].kind == "flag"
    columns = "([s] NVARCHAR(9) NULL CHECK ([s] IN (N'a', N'b')), [d] DATETIME2)"
    _, server = made(tmp_path, "ts.sql", f"CREATE TABLE [dbo].[t] {columns}")
    assert server["s"].values == ("a", "b") and server["s"].missing and server["d"].kind == "datetime"


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("a.json", "[1]", "not well formed: no mapping"),
        ("a.json", '{"a": 1}', "JSON of a form that is not known"),
        ("a.json", '{"fields": [3]}', "not as its form says"),
        ("a.json", '{"METADATA_SPEC_VERSION": "V1"}', "not as its form says"),
        ("a.json", '{"resources": [{"name": "x", "schema": "other.json"}]}', "JSON of a form that is not known"),
        ("a.xml", "<codeBook>", "not well formed"),
        ("a.sql", "SELECT 1; DROP TABLE x", "no CREATE TABLE with columns"),
        ("a.sql", "CREATE TABLE a (b int); CREATE TABLE c (d int)", "2 CREATE TABLE"),
    ],
)
def test_what_is_no_metadata_of_one_table_is_refused_in_words(name, text, words, tmp_path):
    if name.endswith("sql"):
        pytest.importorskip("sqlglot")
    with pytest.raises(UserError, match=words):
        made(tmp_path, name, text)


def test_a_bound_of_thousands_of_digits_leaves_its_column_out_and_many_conditions_are_read(tmp_path):
    long = {"name": "a", "type": "integer", "constraints": {"minimum": 0, "maximum": 10**4_000 - 1}}
    text, facts = made(tmp_path, "long.json", {"fields": [long, {"name": "b", "type": "boolean"}]})
    assert facts.leave_out == ("a",) and "a whole number" not in text and max(map(len, text.splitlines())) < 200
    pytest.importorskip("sqlglot")
    many = " AND ".join(f"a >= {i}" for i in range(700))
    text, _ = made(tmp_path, "many.sql", f"CREATE TABLE t (a INTEGER, b DATE, CHECK ({many}))")
    assert "within: [699, " in text


def test_the_command_drafts_from_metadata_and_says_that_it_read_no_rows(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("book.xml").write_text(DDI)
    assert command("schema", "book.xml", "output=own.yaml") == 0
    assert "a draft (it read no rows;" in capsys.readouterr().out and is_metadata(Path("book.xml"))
    assert load_schema(Path("own.yaml")).source == "a DDI codebook, book.xml"
    assert command("schema", "book.xml", "privacy.unit=sex") == 1
    assert "privacy.unit: a draft from metadata looks at no rows" in " ".join(capsys.readouterr().err.split())
