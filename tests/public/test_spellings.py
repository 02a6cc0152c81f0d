"""Spellings of one value are one: by a list, in any case, by the beginning of a code; each cell alone decides."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mechanisms.public.errors import UserError
from mechanisms.public.schema.spellings import folded, reader
from mechanisms.public.schema.table_schema import Schema, parse_schema
from mechanisms.public.tables.codec import encode_table
from mechanisms.public.tables.encode import encoding
from mechanisms.public.tables.write_table import write_table
from tests.public.table_worlds import coded, codes, csv, schema, source

SEX = {"kind": "categorical", "values": ["F", "M"], "spellings": {"F": ["Female", "w"], "M": [1]}, "missing": ["n/a"]}
CODE = {"kind": "categorical", "values": ["I21", "C18", "Z"], "prefix": 3, "other": "Rest", "missing": False}
WARD = {"kind": "categorical", "values": ["Icu", "m", "M"], "spellings": "common", "other": "Rest"}
SMOKES = {"kind": "flag", "spellings": "common", "true": ["Ja", "x"], "false": ["Nein"]}
COLUMNS = {"sex": SEX, "code": CODE, "ward": WARD, "smokes": SMOKES}


def test_spellings_are_read_back_and_each_is_its_value(tmp_path):
    facts = schema(**COLUMNS)
    again = parse_schema({"columns": facts.to_fields()["columns"]}, where="again")
    assert again.columns == facts.columns and "spellings: common" in facts.to_yaml()
    texts = {
        "sex": (["F", "f ", "FEMALE", "W", "\xa0m", "1", "N/A ", "", "Frau"], [0, 0, 0, 0, 1, 1, 2, 2, 2]),
        "code": (["I21.4", " I210", "I2", "C18", "Zwei", "Z", "", "Rest", "rest"], [0, 0, 3, 1, 3, 2, 3, 3, 3]),
        "ward": (["ICU", "icu ", "m", "M", " m", "µ", "rest", "?", ""], [0, 0, 1, 2, 1, 3, 3, 3, 4]),
        "smokes": (["yEs", "X", "ja", "NEIN", "falsch", "WAHR", "?", "", "n"], [1, 1, 1, 0, 0, 1, 2, 2, 0]),
    }
    rows = zip(*(cells for cells, _ in texts.values()), strict=True)
    path = csv(tmp_path, "sex,code,ward,smokes\n" + "".join(f"{','.join(row)}\n" for row in rows))
    assert codes(path, facts) == [found for _, found in texts.values()]


def test_a_release_writes_the_value_itself_and_reads_it_back(tmp_path):
    facts = schema(**COLUMNS)
    table = coded(facts, [[0, 1, 2], [0, 1, 2], [0, 1, 2], [0, 1, 1]])
    for name in ("t.csv", "t.parquet"):
        write_table(tmp_path / name, table, facts, np.random.default_rng(1))
        assert codes(tmp_path / name, facts) == [c.tolist() for c in table.columns]
    assert (tmp_path / "t.csv").read_text().splitlines()[1:3] == ["F,I21,Icu,Nein", "M,C18,m,Ja"]


def test_numbers_of_a_typed_column_are_read_by_their_spellings(tmp_path):
    import pandas as pd

    pd.DataFrame({"sex": [1, 2, 3]}).to_parquet(tmp_path / "t.parquet")
    facts = schema(sex={"kind": "categorical", "values": ["F", "M"], "spellings": {"F": ["2"], "M": ["01"]}})
    assert codes(tmp_path / "t.parquet", facts) == [[1, 0, 2]]


ALPHABET = "FfMmIiCcZz 128.İıßſΣςσÄäµKK\xa0\u2003\u3000\t'"
TEXTS = st.one_of(
    st.text(ALPHABET, max_size=6),
    st.sampled_from(["female", " W", "N/A", "I21.4", "rest", "ICU", "icu\t", "ja", "2.0", "TRUE"]),
)


@given(st.lists(TEXTS, min_size=1, max_size=80), st.permutations(sorted(COLUMNS)))
@settings(max_examples=12)
def test_every_cell_is_read_alone_and_as_the_schema_says_in_words(tmp_path_factory, texts, names):
    """The engine's codes are those of `reader`, whatever stands beside the cell, and in whatever order."""
    folder = tmp_path_factory.mktemp("cells")
    facts = schema(**{n: COLUMNS[n] for n in names})
    lines = ['"' + '","'.join([t.replace('"', "")] * len(names)) + '"\n' for t in texts]
    table = encode_table(source(csv(folder, f"{','.join(names)}\n{''.join(lines)}")), facts, workdir=folder / "work")
    for column, found in zip(facts.columns, table.columns, strict=True):
        outside = {"other": column.other_code, "missing": column.missing_code}.get(column.outside) or 0
        assert found.tolist() == [outside if (code := reader(column)(t)) is None else code for t in texts], column.name


def test_folding_is_that_of_the_engine_for_every_letter(tmp_path):
    letters = [chr(c) for c in range(0x20, 0x2FFF) if chr(c).isalpha() or chr(c).isspace()]
    path = csv(tmp_path, "a\nb\n")
    with source(path).connect() as engine:
        rows = engine.execute("SELECT t, lower(trim(t)) FROM (SELECT unnest(?) AS t)", [letters]).fetchall()
    differ = [t for t, low in rows if folded(t) != low]
    assert len(differ) < 40 and not set("äöüßÄÖÜéÉñÑøØçÇłŁžŽ \xa0Σσ") & set(differ), differ


def test_a_gap_of_all_columns_is_none_where_it_is_a_spelling():
    facts = parse_schema({"gaps": {"texts": ["w", "?"]}, "columns": {"sex": SEX | {"missing": True}}}, where="t")
    assert facts["sex"].missing_texts == ("?",) and reader(facts["sex"])("w") == 0


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"values": ["F"], "spellings": {"Q": ["q"]}}, "spellings: 'Q' is none of the values"),
        ({"values": ["F"], "spellings": ["f"]}, "spellings: got"),
        ({"values": ["F", "M"], "spellings": {"F": ["M"]}}, "given twice: 'M'"),
        ({"values": ["F"], "spellings": {"F": ["x"]}, "missing": ["x"]}, "given twice: 'x'"),
        ({"size": 3, "spellings": "common"}, "spellings or prefix without values"),
        ({"values": ["F"], "prefix": 0}, "prefix: got 0"),
        ({"values": "discover", "spellings": "common"}, "spellings beside values: discover"),
    ],
)
def test_spellings_of_no_value_of_two_and_of_values_that_nobody_knows_are_refused(fields, words):
    with pytest.raises(UserError, match=words):
        schema(a={"kind": "categorical", **fields})


def test_a_column_without_spellings_costs_what_it_did(tmp_path):
    """No look-up but the position in the engine's own enumeration."""
    plain: Schema = schema(a={"kind": "categorical", "values": ["x", "y"], "other": "z"})
    select = encoding(source(csv(tmp_path, "a\nx\n")), plain).select
    assert "[0" not in select and "trim" not in select
