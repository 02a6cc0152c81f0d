"""Drafts from metadata, which read no rows; what a draft proposes about the unit, and how seldom it guesses wrong."""

import itertools
import json
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import yaml

from mechanisms.public.drafts import unit_guess
from mechanisms.public.drafts.draft import draft_schema
from mechanisms.public.drafts.metadata.metadata_files import is_metadata, metadata_draft
from mechanisms.public.drafts.unit_guess import GUESS, RECORD
from mechanisms.public.errors import UserError
from mechanisms.public.persons.person_unit import PersonUnit
from mechanisms.public.schema.dialect import Dialect
from mechanisms.public.schema.schema_text import names_the_table
from mechanisms.public.schema.table_schema import Schema, column_fields, load_schema
from tests.pipeline.conftest import command
from tests.public.messy_tables import TABLES, Table, as_csv, wrong_guesses
from tests.public.table_worlds import csv, encoded, source

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
    {"name": "age", "type": "integer", "constraints": {"minimum": "0", "maximum": "110", "pattern": "x"}},
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
  CHECK (came <= went), CHECK (went <= noted), CHECK (length(ward) > 2), FOREIGN KEY (ward) REFERENCES wards(name));"""


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
    table = {"name": "t", "dialect": {"delimiter": ";", "quoteChar": "'"}, "encoding": "windows-1252"}
    table["schema"] = {"fields": fields, "missingValues": ["9"]}
    (tmp_path / "t.json").write_text(json.dumps({"resources": [table]}))
    text = metadata_draft(tmp_path / "t.json")
    columns = yaml.safe_load(text)["columns"]
    assert columns == {n: {"kind": "categorical", "values": [1], "missing": ["9"]} for n in ("spoken", "sure")}
    assert "# Not used of it: dialect: quoteChar.\n" in text and "9 = No answer" in text
    assert yaml.safe_load(text)["dialect"] == {"delimiter": ";", "encoding": "windows-1252"}
    (tmp_path / "odd.json").write_text(json.dumps({"resources": [{**table, "encoding": "utf-7"}]}))
    odd = metadata_draft(tmp_path / "odd.json")
    assert "dialect" not in yaml.safe_load(odd) and "# Not used of it: dialect; encoding.\n" in odd


def test_a_ddi_codebook_says_categories_and_ranges_and_no_figure_that_was_counted(tmp_path):
    text, facts = made(tmp_path, "book.xml", DDI)
    columns = declared(facts)
    assert facts.name == "Survey 2020" and columns["sex"]["values"] == [1, 2] and columns["sex"]["missing"] == ["9"]
    assert (columns["age"]["min"], columns["age"]["max"], columns["age"]["missing"]) == (0, 99, ["-1"])
    assert columns["income"] == {"kind": "float", "bounds": "discover", "decimals": 2, "missing": True}
    assert "45.25" not in text and "120" not in text and "what the rows show?" in text
    assert "catStat (counted from the rows); qstn; sumStat (counted from the rows)" in text


ENDS = """<codeBook><dataDscr><var name="mood" nature="ordinal"><valrng><range min="1" max="5"/></valrng>
<catgry><catValu>1</catValu><labl>bad</labl></catgry><catgry><catValu>5</catValu><labl>good</labl></catgry>
</var><var name="sex"><valrng><range min="1" max="2"/></valrng><catgry><catValu>1</catValu></catgry>
<catgry><catValu>2</catValu></catgry></var></dataDscr></codeBook>"""


def test_a_scale_of_which_the_ends_alone_have_labels_is_asked_about(tmp_path):
    text, facts = made(tmp_path, "ends.xml", ENDS)
    assert facts["mood"].ordinal and not facts["sex"].ordinal
    assert text.count("a label?") == 1 and "good; has each value from 1 to 5 a label? if not: kind: integer" in text


def test_a_number_written_with_its_currency_is_named_as_not_used(tmp_path):
    text, _ = made(tmp_path, "fee.json", {"fields": [{"name": "fee", "type": "number", "bareNumber": False}]})
    assert "# Not used of it: fee: bareNumber.\n" in text


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
    assert "CHECK (went <= noted)" in text and text.count("#   - [") == 1, "no order takes a day and a time"
    assert "CHECK (LENGTH(ward) > 2)" in text and "FOREIGN KEY (ward)" in text and "ward: DEFAULT 'icu'" in text
    columns = "(`id` int AUTO_INCREMENT, `s` enum('a','b') NOT NULL, `f` tinyint(1))"
    _, mysql = made(tmp_path, "my.ddl", f"CREATE TABLE `t` {columns} ENGINE=InnoDB")
    assert mysql.leave_out == ("id",) and mysql["s"].values == ("a", "b") and mysql["f"].kind == "flag"
    columns = "([s] NVARCHAR(9) NULL CHECK ([s] IN (N'a', N'b')), [d] DATETIME2)"
    _, server = made(tmp_path, "ts.sql", f"CREATE TABLE [dbo].[t] {columns}")
    assert server["s"].values == ("a", "b") and server["s"].missing and server["d"].kind == "datetime"


DUMP = """\\restrict 8yiBwi15whncGsZVMqSYaUEvXR3R26hVt
SET row_security = off;
CREATE TABLE public.claim (id bigint NOT NULL, holder uuid, filed timestamp with time zone, claimed numeric(10,2),
  paid numeric(10,2), CONSTRAINT paid_check CHECK (((paid)::numeric <= claimed)), CHECK (claimed + paid <= filed));
ALTER TABLE public.claim OWNER TO owner;
ALTER TABLE ONLY public.claim ADD CONSTRAINT claim_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.claim ADD CONSTRAINT of_holder FOREIGN KEY (holder) REFERENCES public.holder(id);
ALTER TABLE ONLY public.claim ADD CONSTRAINT few CHECK (claimed >= 0);
\\unrestrict 8yiBwi15whncGsZVMqSYaUEvXR3R26hVt
"""


def test_a_dump_of_postgresql_says_its_keys_behind_the_table_and_which_of_two_columns_is_the_smaller(tmp_path):
    pytest.importorskip("sqlglot")
    text, facts = made(tmp_path, "claim.sql", DUMP)
    assert facts.leave_out == ("id", "holder") and "FOREIGN KEY (holder) REFERENCES public.holder (id)" in text
    assert facts["filed"].kind == "datetime" and "TIMESTAMPTZ; read as UTC's clock shows them" in text
    assert '#   - ["paid", "claimed"]' in text and text.count("#   - [") == 1 and "within: [0.0" in text


DOMAINS = """CREATE DOMAIN public.stars AS smallint CONSTRAINT few CHECK (((VALUE >= 1) AND (VALUE <= 5)));
CREATE DOMAIN sex varchar(1) NOT NULL CHECK (VALUE IN ('F', 'M'));
CREATE DOMAIN public."Own Age" AS integer CHECK (VALUE >= 0 AND VALUE <= 120);
CREATE DOMAIN adult AS "Own Age" CHECK (VALUE >= 18);
CREATE DOMAIN mark AS varchar(1) CHECK (VALUE IN (';', ','));
CREATE TABLE public.stays (rating public.stars NOT NULL, again STARS, guest sex, kind other, age adult, parted mark);"""


def test_columns_have_what_their_domain_says(tmp_path):
    pytest.importorskip("sqlglot")
    text, facts = made(tmp_path, "stays.sql", DOMAINS)
    columns = declared(facts)
    assert columns["rating"] == {"kind": "integer", "min": 1, "max": 5, "missing": False}
    assert columns["again"] == {**columns["rating"], "missing": True} and facts.name == "stays"
    assert columns["guest"] == {"kind": "categorical", "values": ["F", "M"], "missing": False}
    assert columns["kind"]["values"] == "discover" and "Not used" not in text
    assert (columns["age"]["min"], columns["age"]["max"]) == (18, 120) and columns["parted"]["values"] == [";", ","]


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


HEAD = "who,sex,born,visit,season,day,score,same\n"


def rows(persons: int = 60, each: int = 3) -> str:
    """Visits: sex and birth never change, once a sex is not told; ids have other forms of one number."""
    return "".join(
        f"{'0' * (k % 2)}{i},{'' if (i, k) == (7, 1) else 'fm'[i % 2]},{1940 + i % 50},{k},{2000 + i % 9 + k},"
        f"2021-0{1 + k}-{1 + i % 28:02},{(i * 7 + k * 3) % 40},x\n"
        for k in range(each)
        for i in range(persons)
    )


def drafted(folder: Path, text: str, unit: str = "who") -> str:
    return draft_schema(source(csv(folder, text)), "visits", unit=unit)


def test_a_named_unit_is_proposed_with_its_constants_and_its_order(tmp_path: Path) -> None:
    text = drafted(tmp_path, HEAD + rows())
    file = tmp_path / "visits.yaml"
    file.write_text(text)
    with pytest.raises(UserError, match=r"unit: records: got \{'max': None\}"):
        load_schema(file)
    assert "never the largest number of this table" in text
    assert "unit_id:" not in text and text.count("records: {max: }") == 1
    file.write_text(text.replace("{max: }", "{max: 5}"))
    schema = load_schema(file)
    assert schema.rules.unit == PersonUnit("who", 5, ("sex", "born"), ("day",))
    assert "who" not in schema.leave_out and schema.measured.names == ("visit", "season", "day", "score")


def test_a_code_of_gaps_makes_no_constant_vary(tmp_path: Path) -> None:
    """Of a birth year that is 9999 in one visit of four a person has one value, which that visit does not know."""
    years = [(i, k, 9999 if (i + k) % 4 == 0 else 1940 + i % 50) for i in range(60) for k in range(3)]
    text = drafted(tmp_path, HEAD + "".join(f"{i},{'fm'[i % 2]},{y},{k},2000,d,1,x\n" for i, k, y in years))
    assert "missing: ['9999']" in text and "constant: [sex, born]" in text and "empty in others" not in text


def test_one_value_in_two_forms_makes_no_constant_vary(tmp_path: Path) -> None:
    text = HEAD
    for i, k in ((i, k) for i in range(60) for k in range(3)):
        land, day = ("SYRIA ", f"2{i % 8}.05.1970") if k == i % 7 else ("Syria", f"1970-05-2{i % 8}")
        text += f"{i},{land},{day},{k},2000,d,1,x\n"
    assert "constant: [sex, born]" in drafted(tmp_path, text)


def test_of_constants_that_tell_each_other_pairs_are_proposed_and_no_map(tmp_path: Path) -> None:
    names = {0: ("n", "North"), 1: ("s", "South"), 2: ("w", "West")}
    lines = [f"p{i},{names[i % 3][0]},{names[i % 3][1]},{year}" for i in range(300) for year in (2020, 2021)]
    text = drafted(tmp_path, "\n".join(["who,region,called,year", *lines, ""]))
    assert "constant:" in text and "called" in text
    assert "{from:" not in text, "a unit's constants stand in no map"
    assert '{columns: ["region", "called"], possible: [["n", "North"], ["s", "South"], ["w", "West"]]}' in text


def test_constants_and_records_that_tell_each_other_are_proposed_as_rules_and_no_map(tmp_path: Path) -> None:
    """A student's programme follows from the code of each exam, and nobody of one sex is asked about births."""
    lines = [
        f"p{i},{'xyz'[i % 3]},{'fm'[i % 2]},{'xyz'[i % 3]}{k},{k if i % 2 else ''}" for i in range(300) for k in (1, 2)
    ]
    text = drafted(tmp_path, "\n".join(["who,programme,sex,exam,births", *lines, ""]))
    assert "constant: [programme, sex]" in text and "{from:" not in text
    assert '{columns: ["exam", "programme"], possible: [["x1", "x"], ["x2", "x"], ["y1", "y"]' in text
    assert '{"sex": ["f"], "births": {}}' in text


def test_a_year_orders_where_there_is_no_date(tmp_path: Path) -> None:
    lines = [",".join([*cells[:5], "d", *cells[6:]]) for cells in (r.split(",") for r in rows().splitlines())]
    assert "\n  order: season\n" in drafted(tmp_path, HEAD + "\n".join(lines) + "\n")


def test_nothing_is_proposed_where_no_id_repeats_nobody_is_named_or_rows_are_alike(tmp_path: Path) -> None:
    assert "\nunit:" not in drafted(tmp_path, HEAD + rows(each=1))
    assert "\nunit:" not in drafted(tmp_path, HEAD + rows(), RECORD)
    assert "\nunit:" not in drafted(tmp_path, HEAD.replace("who", "person_id") + rows(), GUESS)
    assert "\nunit:" not in drafted(tmp_path, "who,sex\n" + "1,f\n2,m\n3,f\n" * 40)


def test_columns_are_looked_at_some_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = drafted(tmp_path, HEAD + rows())
    monkeypatch.setattr(unit_guess, "TOGETHER", 2)
    assert drafted(tmp_path, HEAD + rows()) == whole


@pytest.mark.parametrize("drawings", [4, 1])
def test_of_results_soon_after_a_sample_the_sample_orders_and_the_length_is_proposed(drawings, tmp_path: Path) -> None:
    """Most persons have one sample and several results of it; without the length results come months after samples."""
    lines = []
    for i, k in itertools.product(range(120), range(3)):
        day = 1 + 7 * (i % 40) + (50 * k if i % 6 < drawings else 0)
        sample, result = (np.datetime64("2023-01-01") + np.timedelta64(d, "D") for d in (day, day + 1 + (i + k) % 5))
        lines.append(f"{i},{sample},{result},{(i + k) % 40}\n")
    text = drafted(tmp_path, "who,sample,result,value\n" + "".join(lines))
    ordered = "sample" if drawings > 1 else "result"
    assert f"\n  order: {ordered}\n" in text
    assert ('"result": {"from": "sample", "length": {"max": 5}}' in text) == (drawings > 1)


@pytest.mark.parametrize("form", ["{0}/{1:02}", "{0}-Q{2}", "{0}/{3}"])
def test_school_years_and_quarters_are_in_order_and_order_where_there_is_no_date(tmp_path: Path, form: str) -> None:
    terms = [form.format(2018 + k, 19 + k, 1 + k % 4, 2019 + k) for k in range(4)]
    lines = [f"{i},{'fm'[i % 2]},{1940 + i % 50},{terms[k]},{(i * 7 + k) % 90}" for k in range(4) for i in range(90)]
    text = drafted(tmp_path, "who,sex,born,term,score\n" + "\n".join(lines) + "\n")
    assert "ordinal: true" in text and "in the order of years" in text and "\n  order: term\n" in text
    postal = drafted(
        tmp_path, "who,postcode,score\n" + "".join(f"{i // 3},{19102 + i % 9},{i % 90}\n" for i in range(720))
    )
    assert "'19102'" in postal and "years" not in postal, "of one town"


def test_no_date_orders_that_differs_within_few_persons(tmp_path: Path) -> None:
    """A birth date with a typing error in one of sixty persons was the first date that varies: it ordered all."""
    lines = [
        f"{who},fm,{'1950-01-01' if (who, k) != ('7', '1') else '1905-01-01'},2021-0{1 + int(k)}-11,{k}"
        for who, _, _, k, *_ in (line.split(",") for line in rows().replace("\n0", "\n").splitlines())
    ]
    text = drafted(tmp_path, "who,sex,born,day,k\n" + "\n".join(lines) + "\n")
    assert "\n  order: day\n" in text
    alone = "".join(",".join([*line.split(",")[:3], "d", line[-1]]) + "\n" for line in lines)
    assert "order:" not in drafted(tmp_path, "who,sex,born,day,k\n" + alone)


def test_the_complete_id_of_one_row_each_is_taken_for_the_person_and_named_for_a_shell(tmp_path: Path) -> None:
    """The e-mail address, which one in ten lacks, had fewer values than the student's id."""
    each = [(f"S{i:04}", f"p{i}@school.org" if i % 10 else "", i % 4) for i in range(400)]
    text = drafted(tmp_path, "Email,Student ID,year\n" + "".join(f"{m},{s},{y}\n" for s, m, y in each), GUESS)
    assert "Counted by the column 'Student ID'" in text
    few = "".join(f"T{i % 150},{i % 4}\n" for i in range(600))
    assert "draft with 'privacy.unit=Reader Ticket'" in drafted(tmp_path, f"Reader Ticket,year\n{few}", GUESS)


def test_ids_of_other_persons_are_left_out_with_the_reason(tmp_path: Path) -> None:
    """Of patients with ids that lie close together a column of small numbers is no link, but by its name."""
    people = [f"P{i * 37:05}" for i in range(90)]
    lines = [(w, people[(i * 7) % 90] if i % 3 else f"X{i}", i % 80, k) for i, w in enumerate(people) for k in range(2)]
    text = drafted(tmp_path, "who,mother,age,day\n" + "".join(f"{w},{m},{a},{k}\n" for w, m, a, k in lines))
    assert "  - \"mother\"  # 60 of its 90 values are ids of 'who': who belongs to whom is not measured" in text
    assert "\n  age:" in text
    numbers = "".join(f"{w[1:]},{i},{a},{k}\n" for i, (w, _, a, k) in enumerate(lines))
    assert "belongs to whom" not in drafted(tmp_path, "who,mother_id,age,day\n" + numbers)
    close = "".join(f"{i // 2},{i // 4},{a},{k}\n" for i, (_, _, a, k) in enumerate(lines))
    text = drafted(tmp_path, "who,mother_id,age,day\n" + close)
    assert "45 of its 45 values are ids of 'who'" in text and "\n  age:" in text
    large = "".join(f"{100_000 + i // 2},{100_000 + i // 4 * 2},{a},{k}\n" for i, (_, _, a, k) in enumerate(lines))
    text = drafted(tmp_path, "who,Vorgesetzter,age,day\n" + large)
    assert "values are ids of 'who'" in text and "\n  age:" in text, "no amount lies among such ids by chance"


#: Bounds of days are whole months, which may be days of somebody.
DAYS = {"Aufnahme", "Entlassung", "lent", "due", "born", "date_releve"}


@pytest.fixture(scope="module", params=TABLES)
def guessed(request, tmp_path_factory) -> tuple[str, Table, str]:
    folder, name = tmp_path_factory.mktemp(request.param), request.param
    table = TABLES[name]()
    path = csv(folder, as_csv(table))
    text = draft_schema(source(path, dialect=Dialect(";")), name)
    (folder / "draft.yaml").write_text(text, encoding="utf-8")
    return name, table, str(path)


@pytest.mark.some(2)
def test_no_column_is_guessed_wrong(guessed):
    _, table, path = guessed
    text = Path(path).with_name("draft.yaml").read_text(encoding="utf-8")
    assert wrong_guesses(table, text) == [], "of the hospital's seventeen columns eight were once"
    facts = load_schema(Path(path).with_name("draft.yaml"))
    _, report = encoded(Path(path), facts, dialect=Dialect(";"))
    lost = {c: n for c, n in report.unplaced.items() if n > 0.101 * report.rows}
    assert not lost and not facts.confirmed_public


def test_no_text_of_few_units_stands_in_a_draft(guessed):
    """Neither as a value, nor as a spelling, a gap or a quotation."""
    name, table, path = guessed
    text = Path(path).with_name("draft.yaml").read_text(encoding="utf-8")
    who = {"hospital": "Patient", "library": "email", "energy": "compteur_no", "school": "row_id"}[name]
    for column in [c for n, c in table.items() if n not in DAYS]:
        pairs = {(cell, unit) for cell, unit in zip(column.cells, table[who].cells, strict=True)}
        few = [c for c, n in Counter(cell for cell, _ in pairs).items() if n < 10 and len(c.strip()) > 6]
        assert not [c for c in few if f"'{c}'" in text or f" {c}," in text or f" {c}]" in text]
