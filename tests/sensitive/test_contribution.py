"""The clipper: no unit counts more than C records, nor moves a marginal further, however its ids are written."""

import itertools
import math
import re
import sys
import tempfile
import time
import unicodedata
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mechanisms.public.coded_table import count_cliques
from mechanisms.public.errors import UserError
from mechanisms.public.queries.query_matrices import Identity, sensitivity
from mechanisms.public.schema.table_schema import parse_schema
from mechanisms.public.tables.scan import open_table
from mechanisms.public.units import ID_RULES, NO_UNIT, WEIGHT_BITS, Neighbouring
from mechanisms.sensitive.contribution import Aside, PrivacyUnit, UnitRows, unit_numbers
from mechanisms.sensitive.engines.duckdb_engine import aside_rows
from mechanisms.sensitive.exact_answers import exact_marginals
from mechanisms.sensitive.id_rules import _PLAIN, _decomposed, _once, normal_form
from mechanisms.sensitive.private_table import PrivateTable, load_private
from tests.conftest import few
from tests.public.table_worlds import csv, schema, source

ONE = 1 << WEIGHT_BITS
KEY = b"a secret of 32 bytes, at least..."
#: Ids, and the unit that each means.
IDS = {"a": "a", "A": "a", "a ": "a", " a": "a", "é": "é", "1": "1", "1.0": "1", "a,b": "a,b", 'a"b': 'a"b'}
ROW = {"kind": "integer", "min": 0, "max": 99_999, "missing": False}


def load(folder: Path, ids: list[str], key: bytes = KEY, **options: Any) -> PrivateTable:
    """A table whose rows are numbered, with one unit id each."""
    text = "id,row\n" + "".join('"' + unit.replace('"', '""') + f'",{i}\n' for i, unit in enumerate(ids))
    unit = PrivacyUnit(**{"column": "id", "max_records": 2, **options})
    return load_private(source(csv(folder, text)), schema(row=ROW), unit, workdir=folder / "work", key=key)


def kept(table: PrivateTable) -> list[int]:
    return table.coded.columns[0].tolist()


def test_weights_are_the_share_that_the_bound_allows_and_absent_where_every_record_counts_in_full(tmp_path) -> None:
    table = load(tmp_path, ["ann"] * 3 + ["bob"] + ["cy"] * 2)
    assert table.coded.weights.tolist() == [2 * ONE // 3] * 3 + [ONE] * 3
    assert kept(table) == [0, 1, 2, 3, 4, 5] and table.complete
    assert load(tmp_path, ["ann", "bob", "ann"]).coded.weights is None


@given(ids=st.lists(st.sampled_from(list(IDS)), max_size=60), bound=st.integers(1, 5))
@few(12)
@pytest.mark.parametrize("clip", ["weight", "truncate"])
def test_no_unit_counts_more_than_the_bound(clip: str, ids: list[str], bound: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        table = load(Path(folder), ids, clip=clip, max_records=bound)
        rows = kept(table)
        weights = table.coded.weights.tolist() if table.coded.weights is not None else [ONE] * len(rows)
    total: Counter[str] = Counter()
    for row, weight in zip(rows, weights, strict=True):
        total[IDS[ids[row]]] += weight
    for unit, records in Counter(map(IDS.__getitem__, ids)).items():
        expected = min(records, bound) * ONE
        assert expected - records <= total[unit] <= expected
    assert rows == sorted(rows)


def test_truncation_keeps_records_uniformly_at_random(tmp_path: Path) -> None:
    units = 6_000
    rows = kept(load(tmp_path, [str(i % units) for i in range(4 * units)], clip="truncate"))
    pairs = Counter(tuple(group) for group in places(rows, units).values())
    assert len(pairs) == 6 and all(abs(n - 1_000) < 130 for n in pairs.values())


def places(rows: list[int], units: int) -> dict[int, list[int]]:
    """Which of its records each unit kept."""
    found: dict[int, list[int]] = {}
    for row in rows:
        found.setdefault(row % units, []).append(row // units)
    return found


def test_the_same_key_keeps_the_same_records(tmp_path: Path) -> None:
    ids = ["ann"] * 50 + ["bob"] * 50
    first, again = (kept(load(tmp_path, ids, clip="truncate")) for _ in range(2))
    assert first == again != kept(load(tmp_path, ids, clip="truncate", key=b"another secret, also long enough"))


def test_neither_the_order_of_the_file_nor_other_rows_change_what_truncation_keeps(tmp_path: Path) -> None:
    """Records are known by what they hold: those that are equal have coins of their own, and are interchangeable."""
    lines = [f"{unit},{row}" for unit in ("ann", "bob", "cy") for row in (1, 1, 1, 2, 3, 3, 4, 5)]
    unit, facts = PrivacyUnit("id", 4, clip="truncate"), schema(row=ROW)

    def kept_of(name: str, text: list[str]) -> Counter[int]:
        place = tmp_path / name
        place.mkdir()
        table = source(csv(place, "\n".join(["id,row", *text]) + "\n"))
        return Counter(kept(load_private(table, facts, unit, workdir=place / "work", key=KEY)))

    first = kept_of("first", lines)
    assert sum(first.values()) == 12 and len(first) > 1
    assert kept_of("turned", lines[::-1]) == first
    assert kept_of("longer", ["zed,9", *lines[8:], "zed,9", *lines[:8]]) == first + Counter({9: 2})


def test_a_short_key_is_no_key(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="at least 16 bytes"):
        load(tmp_path, ["ann"], key=b"short")


def test_rows_without_an_id_are_dropped_and_never_pooled_or_units_of_their_own_or_refused(tmp_path: Path) -> None:
    table = load(tmp_path, ["ann", *NO_UNIT, "  ", " NaN ", "\t", "ann"])
    assert kept(table) == [0, len(NO_UNIT) + 4] and table.coded.weights is None and not table.complete
    assert kept(load(tmp_path, ["0", "NA", "0", "bob", ""], missing_values=("0",))) == [1, 3]
    rows = kept(load(tmp_path, ["", "ann", "ann", "ann", "", "bob"], clip="truncate"))
    assert len(rows) == 3 and 5 in rows and not {0, 4} & set(rows)
    table = load(tmp_path, ["ann"] * 4 + [""] * 5, missing="own", max_records=1)
    assert table.coded.weights.tolist() == [ONE // 4] * 4 + [ONE] * 5 and table.complete
    with pytest.raises(UserError, match=r"privacy\.missing_unit: a record has no unit id\n.*drop or own"):
        load(tmp_path, ["ann", ""], missing="refuse")
    assert kept(load(tmp_path, ["ann", "bob"], missing="refuse")) == [0, 1]


def test_a_declared_bound_is_enforced(tmp_path: Path) -> None:
    assert load(tmp_path, ["ann", "ann", "bob"], clip="none").coded.weights is None
    with pytest.raises(UserError, match=r"privacy\.clip=none, but a unit has more than 2 records") as caught:
        load(tmp_path, ["ann"] * 3, clip="none")
    assert "ann" not in str(caught.value)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"max_records": 0, "column": "id"}, "privacy.max_records: got 0"),
        ({"max_records": 1.5, "column": "id"}, "privacy.max_records: got 1.5"),
        ({"max_records": True, "column": "id"}, "privacy.max_records: got True"),
        ({"max_records": 2**40, "column": "id"}, "privacy.max_records: got"),
        ({"max_records": 3}, "privacy.max_records: one record is the unit, so it cannot hold 3"),
        ({"column": ""}, "privacy.unit: got an empty name"),
        ({"clip": "cut"}, "privacy.clip: got 'cut'"),
        ({"missing": "pool"}, "privacy.missing_unit: got 'pool'"),
    ],
)
def test_a_wrong_setting_is_named(options: dict[str, Any], says: str) -> None:
    with pytest.raises(UserError) as caught:
        PrivacyUnit(**options)
    assert says in str(caught.value) and "fix: " in str(caught.value)


def test_a_unit_column_that_the_table_lacks_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"privacy\.unit: no column 'idd' in table\.csv\n.*did you mean 'id'"):
        load(tmp_path, ["ann"], column="idd")


def test_rows_of_one_unit_have_one_number_and_rows_without_an_id_have_their_own(tmp_path: Path) -> None:
    ids = ["bob", "ann", "", "bob", "NaN", "ann ", "bob"]
    table = source(csv(tmp_path, "id\n" + "".join(f'"{x}"\n' for x in ids)))
    numbers = unit_numbers(table, PrivacyUnit("id", 2)).tolist()
    assert numbers[0] == numbers[3] == numbers[6]
    assert len(set(numbers)) == 4
    empty = source(csv(tmp_path, "id\n"))
    assert unit_numbers(empty, PrivacyUnit("id", 2)).size == 0


ONES = ["p1", "p1 ", "P1", "p1\u200b", " \u00a0p1", "\ufeffp1"]
ACCENT = ["\u00e9", "e\u0301", "\u00c9"]
DOTTED = ["\u0130", "I\u0307"]  # upper-case letters whose parts have other lower-case ones
IOTA = ["\u1fb3", "\u03b1\u0345"]
NUMBER = ["1", "1.0", "01", "+1", "1.", "1e0", "10E-1", "0.1e+1"]
LARGE = [f"1e{'0' * 5000}3", "1000", "1e3", "1E+03", "10e2", "1000.00", "0.001e6", "1e0000000000003"]
LARGE += ["\uff11\uff10\uff10\uff10"]
SHARP = ["Straße", "STRASSE", "stra\u1e9ee", "\uff33trasse"]
WIDE = ["ab1", "\uff21\uff22\uff11", "\uff41b\uff11"]  # full-width letters and digits
LIGATURE = ["office", "o\ufb03ce", "OFFICE"]
SIGMA = ["ΟΔΟΣ", "οδος", "οδοσ"]
TURKISH = ["\u0130zmir", "izmir", "IZMIR", "\u0131zmir", "I\u0307zmir"]
FILLED = ["ann", "a\u034fnn", "ann\ufe0f", "ann\U000e0100", "\u3164ann", "ann\u180b", "\u2800ann", "\uffa0ann"]
#: A person → all the ways in which its id is written.
SAME = {"one": ONES, "accent": ACCENT, "dotted": DOTTED, "iota": IOTA, "number": NUMBER, "large": LARGE, "sharp": SHARP}
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
    aside = aside_rows(UnitRows(source, unit, tmp_path / "work"), Aside(bytes(32), 0.5))
    assert {who: len(set(own)) for who, own in by_person(aside).items()} == dict.fromkeys(WHO, 1)
    histogram = loaded(source, unit, tmp_path, histogram=unit.max_records).histogram
    assert histogram.tolist() == np.bincount([4 * OF.count(w) - 1 for w in WHO], minlength=len(histogram)).tolist()


def test_different_people_stay_apart_under_the_rules_no_id_is_read_by_them_and_without_them_ids_are_texts(tmp_path):
    unit, plain = PrivacyUnit("uid", 1), PrivacyUnit("uid", 1, rules=())
    ids = ["p1", "p2", "p11", "1", "10", "0.1", "-1", "0", "a b", "ab", "e", "\u00e9"]
    assert len(set(unit_numbers(source_of(ids, tmp_path), unit))) == len(ids)
    assert len(set(unit_numbers(source_of(ONES + NUMBER, tmp_path), plain))) == len(ONES + NUMBER)
    none = ["NA", " na", "null\u200b", "Null ", "", "  ", "\u00a0", "p"]
    assert loaded(source_of(none, tmp_path), unit, tmp_path).coded.rows == 1


def test_a_rule_that_is_none_is_refused():
    with pytest.raises(UserError, match="unit_id_rules"):
        PrivacyUnit("uid", 1, rules=("trimm",))


NUMBERS = st.from_regex(r"[+-]?0{0,2}[0-9]{0,3}(\.[0-9]{0,3})?([eE][+-]?[0-9]{1,2})?", fullmatch=True)
TEXTS = st.text(max_size=8) | NUMBERS


@settings(max_examples=300)
@given(TEXTS)
def test_a_text_in_every_case_and_way_of_writing_it_in_unicode_is_one_id_whose_form_is_its_own(text):
    form = normal_form(text, ALL)
    written = [unicodedata.normalize(kind, text) for kind in ("NFC", "NFD", "NFKC", "NFKD")]
    written += [text.upper(), text.lower(), text.casefold(), text.swapcase(), form]
    assert {normal_form(each, ALL) for each in written} == {form}
    assert form == text or not re.fullmatch(_PLAIN, text), "what is not worked on is a normal form"


MARKS = st.sampled_from("\u0301\u0327\u0345\u0f71\u0f73\u0344\u00e9\ufdfa\u1e69\uac01a ")


@settings(max_examples=300)
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


@settings(max_examples=300)
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


def test_an_exponent_has_nine_digits_at_most_leading_zeros_aside_or_the_text_is_compared():
    assert normal_form("10e999999998", ALL) == normal_form("1E+000999999999", ALL)
    texts = ["1e1000000000", "10e999999999", "1e01000000000", "1.0e1000000000"]
    assert [normal_form(text, ALL) for text in texts] == [texts[0], "1e1000000000", *texts[2:]]


@settings(max_examples=300)
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


TWO_BITS = parse_schema({"x": 2, "y": 2}, where="test")
CLIQUE = ("x", "y")
ROWS = [(0, 0), (0, 1), (1, 1)]


def exact(folder: Path, rows: list[tuple[str, int, int]], bound: int) -> np.ndarray:
    """The weighted marginal of a table (in records), read from a real file."""
    read = source(csv(folder, "id,x,y\n" + "".join(f"{i},{x},{y}\n" for i, x, y in rows)))
    unit = PrivacyUnit(column="id", max_records=bound, clip="weight")
    table = load_private(read, TWO_BITS, unit, workdir=folder / "w", key=b"k" * 32).coded
    scale = 1.0 if table.weights is None else 2.0**-WEIGHT_BITS
    return count_cliques(table, [CLIQUE])[0] * scale


@pytest.mark.parametrize("bound", [1, 2])
def test_no_unit_changes_a_marginal_by_more_than_the_sensitivity(tmp_path, bound):
    """`p` has up to one record more than the bound; `q` and rows without an id stay as they are in all tables."""
    others = [("q", 0, 0), ("q", 1, 0), ("q", 1, 1), ("", 0, 1), ("", 1, 1)]
    worlds = {}
    for n in range(bound + 2):
        for mine in itertools.combinations_with_replacement(ROWS, n):
            worlds[mine] = exact(tmp_path, [*others, *(("p", *row) for row in mine)], bound)
    for neighbouring in Neighbouring:
        pairs = itertools.product(worlds, worlds) if neighbouring is Neighbouring.REPLACE else ((w, ()) for w in worlds)
        changes = [worlds[a] - worlds[b] for a, b in pairs]
        for norm, order in (("l1", 1), ("l2", 2)):
            claimed = sensitivity(Identity(4), norm=norm, neighbouring=neighbouring, max_records=bound)
            found = max(float(np.linalg.norm(c, order)) for c in changes)
            assert found <= claimed
            assert found > 0.99 * claimed, "the claim is attained: no budget is wasted"


FACTS = schema(
    listed={"kind": "categorical", "values": ["1", "2"], "other": "other"},
    whole={"kind": "integer", "min": 0, "max": 9},
    real={"kind": "float", "min": 0, "max": 9, "bins": {"count": 3}},
)
GAPS = 40
#: One more record of somebody: with each, a file states another least or largest value.
MORE = (math.inf, -math.inf, 1e16, -0.0, 0.5, 7.0)


def counts(path: Path, values: list[float], kind: pa.DataType, unit: PrivacyUnit) -> list[np.ndarray]:
    """The counts (records) of a table whose columns, the id too, all hold these numbers."""
    numbers = pa.array(np.array(values, kind.to_pandas_dtype()), kind)
    pq.write_table(pa.table(dict.fromkeys(("id", *FACTS.domain.names), numbers)), path)
    private = load_private(source(path), FACTS, unit, workdir=path.parent / path.stem, key=KEY)
    asked = exact_marginals(private.coded, [(name,) for name in FACTS.domain.names], batch_cells=10**6)
    return [c / 2.0**WEIGHT_BITS for c in asked]


BY_ID = PrivacyUnit("id", 1, missing="own", missing_values=())


@pytest.mark.parametrize(
    ("kind", "unit"),
    [
        pytest.param(pa.float64(), PrivacyUnit(), id="double, records"),
        pytest.param(pa.float32(), BY_ID, id="float, ids"),
        pytest.param(pa.float32(), PrivacyUnit(), id="float, records", marks=pytest.mark.slow),
        pytest.param(pa.float64(), BY_ID, id="double, ids", marks=pytest.mark.slow),
    ],
)
def test_one_record_more_moves_no_other_record_that_holds_nan(kind, unit, tmp_path) -> None:
    rows = [0.25, 2.0, *[math.nan] * GAPS]
    without = counts(tmp_path / "without.parquet", rows, kind, unit)
    assert [c[a.missing_code] for c, a in zip(without, FACTS.columns, strict=True)] == [GAPS] * 3, "gaps are gaps"
    for place, value in enumerate(MORE):
        with_one = counts(tmp_path / f"{place}.parquet", [*rows, value], kind, unit)
        assert max(np.abs(a - b).sum() for a, b in zip(with_one, without, strict=True)) <= 1, value
