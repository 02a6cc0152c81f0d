"""Every example of docs/schema.md is what its schema makes of it, and every field and rule has one."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import yaml

from mechanisms.public.persons.person_unit import FIELDS as PERSON_FIELDS
from mechanisms.public.rules.computed import FIELD
from mechanisms.public.rules.rule_transforms import RULE_FIELDS
from mechanisms.public.rules.table_rules import RULES
from mechanisms.public.rules.unit_ids import FIELDS as UNIT_FIELDS
from mechanisms.public.schema.column_parse import COMMON, FIELDS
from mechanisms.public.schema.table_schema import load_schema
from mechanisms.public.tables.codec import encode_columns
from mechanisms.public.tables.losses import losses_of
from pipeline.look.rehearse import write_rows
from tests.public.table_worlds import source

PAGE = (Path(__file__).parents[2] / "docs" / "schema.md").read_text(encoding="utf-8")
#: Rows under an example.
ROWS = 4


@dataclass(frozen=True)
class Example:
    """A schema of the page with the rows beside it, which are made from it (rows) or read under it (table)."""

    title: str
    kind: str
    schema: str
    shown: str


def examples(page: str) -> list[Example]:
    made = re.compile(r"<!-- rows -->\n```yaml\n(.*?)```\n```csv\n(.*?)```", re.DOTALL)
    read = re.compile(r"<!-- table -->\n```csv\n(.*?)```\n```yaml\n(.*?)```", re.DOTALL)
    found = []
    for section in re.split(r"\n#+ ", page):
        title = section.partition("\n")[0]
        found += [Example(title, "rows", m[1], m[2]) for m in made.finditer(section)]
        found += [Example(title, "table", m[2], m[1]) for m in read.finditer(section)]
    return found


def rows_of(schema: str, folder: Path) -> str:
    """The rows that a rehearsal would make."""
    for name, text in re.findall(r"<!-- file: (.*?) -->\n```\w+\n(.*?)```", PAGE, re.DOTALL):
        (folder / name).write_text(text, encoding="utf-8")
    (folder / "s.yaml").write_text(schema, encoding="utf-8")
    facts = load_schema(folder / "s.yaml")
    write_rows(folder / "rows.csv", facts, ROWS, column=None, most=1, rng=np.random.default_rng(0))
    return (folder / "rows.csv").read_text(encoding="utf-8")


EXAMPLES = examples(PAGE)


@pytest.mark.parametrize("example", [e for e in EXAMPLES if e.kind == "rows"], ids=lambda e: e.title)
def test_the_rows_on_the_page_are_those_that_the_schema_makes(example, tmp_path):
    assert rows_of(example.schema, tmp_path) == example.shown and example.shown.count("\n") == ROWS + 1


@pytest.mark.parametrize("example", [e for e in EXAMPLES if e.kind == "table"], ids=lambda e: e.title)
def test_the_schema_places_every_value_of_the_table_on_the_page(example, tmp_path):
    (tmp_path / "s.yaml").write_text(example.schema, encoding="utf-8")
    (tmp_path / "t.csv").write_text(example.shown, encoding="utf-8")
    facts = load_schema(tmp_path / "s.yaml")
    _, report = encode_columns(source(tmp_path / "t.csv"), facts, workdir=tmp_path / "work")
    assert losses_of(report, facts) == () and report.rows == example.shown.count("\n") - 1


def test_every_section_has_an_example_and_every_field_and_rule_a_section(tmp_path):
    titles = [s.partition("\n")[0] for s in re.split(r"\n### ", PAGE)[1:]]
    assert {e.title for e in EXAMPLES} == set(titles)
    named = set(re.findall(r"`([a-z_]+)`", " ".join(titles)))
    assert {*RULES, "base", "gaps", *FIELDS} <= named
    first = re.search(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    (tmp_path / "first.yaml").write_text(first[1], encoding="utf-8")
    assert load_schema(tmp_path / "first.yaml")["age"].missing_texts == ("-999",)


def keys(content: object) -> set[str]:
    """All names of fields in a schema, at any depth."""
    inner = content.values() if isinstance(content, dict) else content if isinstance(content, list) else []
    return {str(k) for k in (content if isinstance(content, dict) else ())}.union(*map(keys, inner))


def test_every_field_of_columns_and_rules_stands_in_an_example_that_is_executed():
    of_units = {*UNIT_FIELDS, *PERSON_FIELDS}
    fields = {*COMMON, *of_units, *RULES, FIELD, *(f for own in (FIELDS, RULE_FIELDS) for k in own for f in own[k])}
    shown = set().union(*(keys(yaml.safe_load(e.schema)) for e in EXAMPLES))
    words = set(re.findall(r"\w+", " ".join(e.schema for e in EXAMPLES)))
    assert fields <= shown | {"True", "False", "true", "false"}, fields - shown
    assert {"discover", "month", "refuse", "missing", "common"} <= words
