"""One unit is one unit, however its id is written; and what means no id is told apart under the same rules."""

import re
import sys
import time
import unicodedata
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mechanisms.public.errors import UserError
from mechanisms.public.schema.table_schema import parse_schema
from mechanisms.public.tables.scan import open_table
from mechanisms.public.units import ID_RULES
from mechanisms.sensitive.contribution import Aside, PrivacyUnit, unit_numbers
from mechanisms.sensitive.engines.duckdb_engine import aside_rows
from mechanisms.sensitive.id_rules import _PLAIN, _decomposed, _once, normal_form
from mechanisms.sensitive.private_table import load_private

ONE = ["p1", "p1 ", "P1", "p1\u200b", " \u00a0p1", "\ufeffp1"]
ACCENT = ["\u00e9", "e\u0301", "\u00c9"]
DOTTED = ["\u0130", "I\u0307"]  # upper-case letters whose parts have other lower-case ones
IOTA = ["\u1fb3", "\u03b1\u0345"]
NUMBER = ["1", "1.0", "01", "+1", "1.", "1e0", "10E-1", "0.1e+1"]
LARGE = [
    f"1e{'0' * 5000}3",
    "1000",
    "1e3",
    "1E+03",
    "10e2",
    "1000.00",
    "0.001e6",
    "1e0000000000003",
    "\uff11\uff10\uff10\uff10",
]
SHARP = ["Straße", "STRASSE", "stra\u1e9ee", "\uff33trasse"]
WIDE = ["ab1", "\uff21\uff22\uff11", "\uff41b\uff11"]  # full-width letters and digits
LIGATURE = ["office", "o\ufb03ce", "OFFICE"]
SIGMA = ["ΟΔΟΣ", "οδος", "οδοσ"]
TURKISH = ["\u0130zmir", "izmir", "IZMIR", "\u0131zmir", "I\u0307zmir"]
FILLED = ["ann", "a\u034fnn", "ann\ufe0f", "ann\U000e0100", "\u3164ann", "ann\u180b", "\u2800ann", "\uffa0ann"]
#: A person → all the ways in which its id is written.
SAME = {"one": ONE, "accent": ACCENT, "dotted": DOTTED, "iota": IOTA, "number": NUMBER, "large": LARGE, "sharp": SHARP}
SAME |= {"wide": WIDE, "ligature": LIGATURE, "sigma": SIGMA, "turkish": TURKISH, "filled": FILLED}
WHO = list(SAME)
EVERY, OF = [i for ids in SAME.values() for i in ids], [who for who, ids in SAME.items() for _ in ids]
ALL = tuple(ID_RULES)
SCHEMA = {"name": "t", "confirmed_public": True, "columns": {"a": {"kind": "categorical", "values": ["x", "y"]}}}


def by_person(found):
    """What was found of each row, by the person whose row it is, of the rows of EVERY or of several times them."""
    persons = OF * (len(found) // len(OF))
    return {who: [f for f, w in zip(found, persons, strict=True) if w == who] for who in WHO}


def one_each(numbers):
    """Whether each person has one number, and no two have the same."""
    own = by_person(numbers)
    return all(len(set(n)) == 1 for n in own.values()) and len({n[0] for n in own.values()}) == len(WHO)


def source_of(ids, tmp_path, name="t.parquet", values=None):
    pq.write_table(pa.table({"uid": ids, "a": ["x"] * len(ids) if values is None else values}), tmp_path / name)
    work = tmp_path / "work"
    work.mkdir(mode=0o700, exist_ok=True)
    return open_table(tmp_path / name, workdir=work, memory_limit_bytes=10**9, threads=1)


def loaded(source, unit, tmp_path, values=("x", "y"), **further):
    columns = {"a": {"kind": "categorical", "values": list(values)}}
    schema = parse_schema({**SCHEMA, "columns": columns}, where="t.yaml")
    return load_private(source, schema, unit, workdir=tmp_path / "work", key=bytes(32), **further)


@pytest.mark.parametrize("clip", ["weight", "truncate"])
def test_one_person_written_in_many_ways_has_one_bound(clip, tmp_path):
    """Each person's rows have a value of their own, whose records together count as one."""
    source, unit = source_of(EVERY, tmp_path, values=OF), PrivacyUnit("uid", 1, clip=clip)
    coded = loaded(source, unit, tmp_path, values=WHO).coded
    weights = None if coded.weights is None else np.asarray(coded.weights, dtype=np.float64)
    totals = np.bincount(coded.column("a"), weights, minlength=len(WHO))[: len(WHO)]
    assert dict(zip(WHO, totals / (1 if weights is None else 2**20) <= 1, strict=True)) == dict.fromkeys(WHO, True)
    assert totals.all() and coded.rows >= len(WHO)


def test_bytes_that_are_text_are_read_as_text(tmp_path):
    source = source_of(pa.array([i.encode() for i in EVERY], pa.binary()), tmp_path)
    assert one_each(unit_numbers(source, PrivacyUnit("uid", 1)))
    odd = source_of(pa.array([b"\xff\x00", b"\xfe\x00", b"\xff\x00", None], pa.binary()), tmp_path, "odd.parquet")
    assert unit_numbers(odd, PrivacyUnit("uid", 1)).tolist() == [0, 1, 0, 2]


@pytest.mark.parametrize(
    "ids", [[[-0.0], [0.0]], [{"a": -0.0}, {"a": 0.0}], pa.array([[-0.0], [0.0]], pa.list_(pa.float64(), 1))]
)
def test_an_id_of_several_parts_is_refused(ids, tmp_path):
    """Two equal lists may be written in two ways, and would be two units."""
    source = source_of(pa.array(ids), tmp_path)
    with pytest.raises(UserError, match="holds lists, records or the like"):
        unit_numbers(source, PrivacyUnit("uid", 1))


def test_coins_numbers_and_the_histogram_know_the_same_units(tmp_path):
    source, unit = source_of(EVERY * 4, tmp_path), PrivacyUnit("uid", 40)
    assert one_each(unit_numbers(source, unit))
    aside = aside_rows(source, unit, Aside(bytes(32), 0.5), workdir=tmp_path / "work")
    assert {who: len(set(own)) for who, own in by_person(aside).items()} == dict.fromkeys(WHO, 1)
    histogram = loaded(source, unit, tmp_path, histogram=unit.max_records).histogram
    assert histogram.tolist() == np.bincount([4 * OF.count(w) - 1 for w in WHO], minlength=len(histogram)).tolist()


def test_different_people_stay_apart(tmp_path):
    ids = ["p1", "p2", "p11", "1", "10", "0.1", "-1", "0", "a b", "ab", "e", "\u00e9"]
    assert len(set(unit_numbers(source_of(ids, tmp_path), PrivacyUnit("uid", 1)))) == len(ids)


def test_what_means_no_id_is_read_under_the_same_rules(tmp_path):
    ids = ["NA", " na", "null\u200b", "Null ", "", "  ", "\u00a0", "p"]
    private = loaded(source_of(ids, tmp_path), PrivacyUnit("uid", 1), tmp_path)
    assert private.coded.rows == 1


def test_without_rules_ids_are_their_texts(tmp_path):
    unit = PrivacyUnit("uid", 1, rules=())
    assert len(set(unit_numbers(source_of(ONE + NUMBER, tmp_path), unit))) == len(ONE + NUMBER)


def test_a_rule_that_is_none_is_refused():
    with pytest.raises(UserError, match="unit_id_rules"):
        PrivacyUnit("uid", 1, rules=("trimm",))


NUMBERS = st.from_regex(r"[+-]?0{0,2}[0-9]{0,3}(\.[0-9]{0,3})?([eE][+-]?[0-9]{1,2})?", fullmatch=True)
TEXTS = st.text(max_size=8) | NUMBERS


@settings(max_examples=300, deadline=None)
@given(TEXTS)
def test_a_text_in_every_case_and_way_of_writing_it_in_unicode_is_one_id_whose_form_is_its_own(text):
    form = normal_form(text, ALL)
    written = [unicodedata.normalize(kind, text) for kind in ("NFC", "NFD", "NFKC", "NFKD")]
    written += [text.upper(), text.lower(), text.casefold(), text.swapcase(), form]
    assert {normal_form(each, ALL) for each in written} == {form}
    assert form == text or not re.fullmatch(_PLAIN, text), "what is not worked on is a normal form"


MARKS = st.sampled_from("\u0301\u0327\u0345\u0f71\u0f73\u0344\u00e9\ufdfa\u1e69\uac01a ")


@settings(max_examples=300, deadline=None)
@given(st.text(MARKS | st.characters(exclude_categories=["Cs"]), max_size=40))
def test_marks_are_ordered_as_the_library_does(text):
    assert _decomposed(text) == unicodedata.normalize("NFKD", text)


@pytest.mark.parametrize("marks", ["\u0301\u0327", "\u0f73", "\u0344\u0327"])
def test_an_id_of_many_marks_stops_no_run(marks):
    """The library took a time that grows with their square: hours for one row of 2 MB."""
    start = time.process_time()
    forms = {normal_form(f"a{text}", ALL) for text in (marks * 50_000, marks[::-1] * 50_000)}
    assert len(forms) == 1 and time.process_time() - start < 30


def test_every_character_keeps_its_id_in_any_case_and_composition():
    for code in range(sys.maxunicode + 1):
        c = chr(code)
        if unicodedata.category(c) in ("Cs", "Cn", "Co"):
            continue
        other = unicodedata.normalize("NFKC", c).casefold()
        assert normal_form(c, ALL) == normal_form(c.upper(), ALL) == normal_form(other, ALL), f"U+{code:04X}"


DECIMALS = st.from_regex(r"[+-]?[0-9]{1,4}([.][0-9]{0,3})?([eE][+-]?[0-9]{1,2})?", fullmatch=True)


@settings(max_examples=300, deadline=None)
@given(DECIMALS, DECIMALS, st.integers(0, 60))
def test_two_texts_of_numbers_are_one_id_where_the_numbers_are_equal(one, other, zeros):
    mantissa, _, power = one.lower().partition("e")
    point = "" if "." in mantissa else "."
    shifted = f"{mantissa}{point}{'0' * zeros}e{power or 0}"
    scaled = f"{Fraction(mantissa).numerator * 10**zeros}e{int(power or 0) - zeros}"
    assert normal_form(one, ("number",)) == normal_form(shifted, ("number",))
    if Fraction(mantissa).denominator == 1:
        assert normal_form(one, ("number",)) == normal_form(scaled, ("number",))
    assert (normal_form(one, ALL) == normal_form(other, ALL)) == (Fraction(one) == Fraction(other))


@settings(max_examples=300, deadline=None)
@given(st.text(st.characters(max_codepoint=127), max_size=8) | NUMBERS, st.sets(st.sampled_from(ALL)))
def test_texts_of_plain_characters_have_the_form_that_all_others_would_have(text, rules):
    slow = text
    while (form := _once(slow, rules)) != slow:
        slow = form
    assert normal_form(text, rules) == slow


def test_a_rule_that_is_taken_away_keeps_its_forms_apart(tmp_path):
    for ids, rule in ((NUMBER, "number"), (SHARP[:2], "case"), (WIDE[:2], "unicode")):
        unit = PrivacyUnit("uid", 1, rules=tuple(r for r in ALL if r != rule))
        assert len(set(unit_numbers(source_of(ids, tmp_path), unit))) > 1


@pytest.mark.parametrize("value", [-(2**63), -(2**63) + 1, 2**63 - 1, -(2**62)])
@pytest.mark.parametrize("zone", [None, "UTC"])
def test_odd_parquet_times_are_ids_or_none_and_never_a_crash(value, zone, tmp_path):
    times = pa.array(np.array([value, 0, 10**15], np.int64)).cast(pa.timestamp("us", tz=zone))
    assert loaded(source_of(times, tmp_path), PrivacyUnit("uid", 1), tmp_path).coded.rows in (2, 3)


@pytest.mark.parametrize("value", [-(2**63), -(2**63) + 1, 2**63 - 1, -(2**62), 10**17])
@pytest.mark.parametrize("kind", ["datetime", "date", "categorical"])
def test_odd_parquet_times_in_a_column_never_stop_a_run(value, kind, tmp_path):
    times = pa.array(np.array([value, 0], np.int64)).cast(pa.timestamp("us"))
    source = source_of(["p", "q"], tmp_path, values=times)
    facts = {"kind": kind, "min": "1960-01-01", "max": "2000-01-01", "bins": {"calendar": "year"}, "missing": True}
    column = {"kind": kind, "values": ["1970-01-01 00:00:00"], "missing": True} if kind == "categorical" else facts
    schema = parse_schema({**SCHEMA, "columns": {"a": column}}, where="t.yaml")
    private = load_private(source, schema, PrivacyUnit("uid", 1), workdir=tmp_path / "work", key=bytes(32))
    assert private.coded.rows == 2


@pytest.mark.parametrize("text", ["\x00", "\x01 \x7f", "\u200b"])
def test_a_text_that_nobody_sees_is_no_id_under_unicode_and_an_id_without(text):
    every = tuple(ID_RULES)
    assert normal_form(text, every) == "" and normal_form(f"{text}a", every) == "a"
    assert normal_form(text, tuple(r for r in every if r != "unicode")) != ""
