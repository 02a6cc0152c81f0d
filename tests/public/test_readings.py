"""How texts are read: formats, signs, gaps, spellings; a folder or a pattern is read as one table of its parts."""

import os
import time
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mechanisms.public.errors import UserError
from mechanisms.public.rules.engineering import engineer, undo
from mechanisms.public.schema.spellings import folded, reader, spelled_yes_or_no
from mechanisms.public.schema.table_schema import Schema, parse_schema
from mechanisms.public.tables.encode import encoding
from mechanisms.public.tables.inspect_file import check_unchanged, states
from mechanisms.public.tables.scan import Source
from mechanisms.public.tables.text_forms import ID_NAME, NumberForm, date_forms, gap_words, number_reading
from mechanisms.public.tables.write_table import write_table
from mechanisms.sensitive.engines.slices import slices
from mechanisms.sensitive.private_table import fingerprint
from tests.public.table_worlds import STEP, coded, codes, csv, decode_table, encoded, schema, source


def column_codes(folder: Path, fields: dict[str, Any], texts: list[str]) -> list[int]:
    """The codes of some texts; one row each."""
    quoted = "".join('"' + t.replace('"', '""') + '"\n' for t in texts)
    return codes(csv(folder, f"a\n{quoted}"), schema(a=fields))[0]


def test_the_first_format_that_reads_a_text_counts(tmp_path):
    fields = {"kind": "date", "min": "2024-01-01", "max": "2024-12-31", "bins": "month"}
    texts = ["2024-02-03", "03/04/2024", "04/03/2024", "13/05/2024", "5. Mai"]
    assert column_codes(tmp_path, fields | {"formats": ["ISO", "%d/%m/%Y"]}, texts) == [1, 3, 2, 4, 12]
    assert column_codes(tmp_path, fields | {"formats": ["ISO", "%m/%d/%Y", "%d/%m/%Y"]}, texts) == [1, 2, 3, 4, 12]
    assert column_codes(tmp_path, fields | {"format": "ISO"}, texts) == [1, 12, 12, 12, 12]


def test_hours_with_am_or_pm_are_read_by_a_format_of_their_own_and_never_as_iso(tmp_path):
    """The engine reads 01:30 PM as half past one in the morning, and `check` called the column ok."""
    fields = {"kind": "datetime", "min": "2024-01-01", "max": "2024-12-31", "bins": "hour_of_day"}
    texts = ["2024-02-03 01:30 PM", "2024-02-03 01:30:00 am ", "2024-02-03 01:30"]
    assert column_codes(tmp_path, fields, texts) == [24, 24, 1]
    assert date_forms({texts[0]: 1}) == [("%Y-%m-%d %I:%M %p", 1.0)]
    forms = ["ISO", "%Y-%m-%d %I:%M %p", "%Y-%m-%d %I:%M:%S %p"]
    assert column_codes(tmp_path, fields | {"formats": forms}, texts) == [13, 1, 1]


def test_words_that_the_engine_takes_for_times_are_none(tmp_path):
    """It reads epoch as the first day of 1970, and infinity as a time after all."""
    fields = {"kind": "date", "min": "1960-01-01", "max": "1979-12-31", "bins": "month"}
    texts = ["1970-02-03", "epoch", " Epoch", "infinity", "-infinity", "now", "today"]
    assert column_codes(tmp_path, fields, texts) == [121, *[240] * 6]


def test_bins_month_is_short_for_the_calendar():
    short, long = (
        schema(a={"kind": "date", "min": "2024-01-01", "max": "2024-12-31", "bins": bins})
        for bins in ("month", {"calendar": "month"})
    )
    assert short == long and short["a"].size == 13
    with pytest.raises(UserError, match="bins"):
        schema(a={"kind": "integer", "min": 0, "max": 9, "bins": "month"})


def test_signs_are_stripped_and_a_decimal_comma_is_never_a_thousand(tmp_path):
    money = {"kind": "float", "min": 0, "max": 2000, "bins": {"count": 20}}
    texts = ["$1,234.56", "€ 99", "1234.56", "$", "12 apples"]
    assert column_codes(tmp_path, money | {"strip": ["$", "€", ","]}, texts) == [12, 0, 12, 20, 20]
    german = ["1234,56", "1.234,56", "1.234", "0,5"]
    assert column_codes(tmp_path, money | {"decimal": ","}, german) == [12, 20, 20, 0]
    assert column_codes(tmp_path, money | {"decimal": ",", "strip": ["."]}, german) == [12, 12, 12, 0]
    for strip in (["1"], ["-"], ["."], [""], ["e"], ["2"], ["e2"], ["1m2"]):
        with pytest.raises(UserError, match="strip"):
            schema(a=money | {"strip": strip})


AMOUNTS = [
    *("1.245,86", "1,245.86", "702.49", "702,49", "1.234", "1,234", "1.234.567,8", "12.34.567", "1234.567,8"),
    "-1.000,5",
]
AMOUNTS += ["1'245.86", "1 245,86", "1\xa0245,86 €", "€ 1245,86", "1.2e3", "1,23,456", "0.123,4", ".5", "1.", "", "."]


CELLS = Source(Path("t.csv"), (), Path(), 1, 1, names=("a",), types=("VARCHAR",))


@given(
    sign=st.sampled_from("-+\u2212"),
    blanks=st.text(" \xa0\u202f", max_size=3),
    digits=st.from_regex("[0-9.,]{1,6}", fullmatch=True),
    around=st.sampled_from(("{}", " {} ", "{} -", "1 {}", "- {}", "€ {}", "{} €")),
    form=st.sampled_from([NumberForm(), NumberForm(("€", ".", " "), ","), NumberForm((), ","), NumberForm(("€", ","))]),
)
@settings(max_examples=150, deadline=None)
def test_a_sign_apart_from_its_number_is_its_sign_for_both_readers(sign, blanks, digits, around, form):
    """- 836,71 was no number: all amounts below 0 were lost, and the draft was `integer, min: 0, max: 0`."""
    text = around.format(sign + blanks + digits)
    with duckdb.connect() as engine:
        ((read,),) = engine.execute(f"SELECT {CELLS.number(0, form)} FROM (SELECT ? AS c0)", [text]).fetchall()
    assert read == form.number(text)
    assert read == form.number(around.format(sign + digits))
    if around in {"{} -", "1 {}", "- {}"}:
        assert read is None


@pytest.mark.parametrize("decimal", [".", ","])
@pytest.mark.parametrize(
    "strip", [(), (",",), (".",), ("€", "."), ("€", ","), ("'",), (" ", "\xa0", "€"), ("’", ".", " ")]
)
def test_thousands_are_parted_by_exactly_three_digits_and_both_readers_agree(strip, decimal, tmp_path):
    """What is written another way is no number: never one that is 100 times too large."""
    if decimal in strip:
        return
    path, reading = csv(tmp_path, "a\n" + "".join(f'"{a}"\n' for a in AMOUNTS)), NumberForm(strip, decimal)
    table = source(path)
    with table.connect() as engine:
        sql = f"SELECT {table.number(0, reading)} FROM {table.relation}"
        read = dict(zip(AMOUNTS, (row[0] for row in engine.execute(sql).fetchall()), strict=True))
    assert read == {a: reading.number(a) for a in AMOUNTS}
    point, comma = (",", ".") if decimal == "." else (".", ",")
    if point in strip:
        assert read[f"1{point}245{comma}86"] == 1245.86 and read[f"1{point}234"] == 1234
        wrong = [f"1{comma}245{point}86", f"702{point}49"]
        assert [read[t] for t in wrong] == [None, None]
    assert {round(x, 4) for x in read.values() if x is not None} <= {
        1245.86, 702.49, 1.234, 1234.0, 1234567.8, 1234.567, -1000.5, 1200.0, 0.5, 1.0
    }  # fmt: skip


def test_a_number_that_means_missing_is_one_in_any_form(tmp_path):
    fields = {"kind": "integer", "min": -1000, "max": 9, "bins": {"count": 2}, "missing": ["-999"]}
    assert column_codes(tmp_path, fields, ["-999", "-999.0", "-0999", "-998", ""]) == [2, 2, 2, 0, 2]


def test_common_spellings_of_yes_and_no_are_read_in_any_case_and_written_in_one(tmp_path):
    texts = ["yes", " YES ", "Y", "TRUE", "1", "oui", "No", "n", "FALSE", "0", "maybe", ""]
    found = column_codes(tmp_path, {"kind": "flag", "spellings": "common"}, texts)
    assert found == [1] * 6 + [0] * 4 + [2, 2]
    facts = schema(a={"kind": "flag", "spellings": "common", "true": ["Ja"], "false": ["Nein"]})
    frame = decode_table(coded(facts, [[1, 0, 2]]), facts, np.random.default_rng(1))
    assert frame["a"].tolist()[:2] == ["Ja", "Nein"] and "spellings: common" in facts.to_yaml()


def test_postal_codes_keep_their_zeros_and_are_measured_by_their_first_digits(tmp_path):
    facts = schema(a={"kind": "zip", "prefix": 2})
    texts = ["02134", "2134", "02134-1234", "99999", "021345", "x", ""]
    assert column_codes(tmp_path, {"kind": "zip", "prefix": 2}, texts) == [2, 2, 2, 99, 100, 100, 100]
    assert facts["a"].labels[2] == "02000 to 02999" and "kind: zip" in facts.to_yaml()
    for suffix in ("csv", "parquet"):
        path = tmp_path / f"out.{suffix}"
        write_table(path, coded(facts, [[2, 99, 100]]), facts, np.random.default_rng(1))
        assert codes(path, facts) == [[2, 99, 100]]
    written = (tmp_path / "out.csv").read_text().split()
    assert written[1].startswith("02") and len(written[1]) == 5


def test_gaps_by_kind_go_to_the_columns_that_can_be_missing_and_do_not_list_them():
    columns = {
        "age": {"kind": "integer", "min": 0, "max": 99},
        "own": {"kind": "integer", "min": 0, "max": 99, "missing": ["?"]},
        "never": {"kind": "integer", "min": 0, "max": 99, "missing": False},
        "word": {"kind": "categorical", "values": ["a", "NA"]},
    }
    facts = parse_schema({"gaps": {"numbers": ["-999"], "texts": ["NA", "-"]}, "columns": columns}, where="t")
    assert facts["age"].missing_texts == ("-999",) and facts["own"].missing_texts == ("?", "-999")
    assert not facts["never"].missing and facts["word"].missing_texts == ("-",)
    with pytest.raises(UserError, match="no kind 'digits'"):
        parse_schema({"gaps": {"digits": ["1"]}, "columns": columns}, where="t")


@pytest.mark.parametrize("value", ["General Hospital", 3, None])
def test_a_constant_column_is_not_measured_and_nothing_is_invented(value, tmp_path):
    constant = {"kind": "constant"} | ({} if value is None else {"value": value})
    facts = schema(a={"kind": "integer", "min": 0, "max": 3, "missing": False}, fax=constant)
    assert facts.measured.names == ("a",) and facts.domain["fax"].size == 1
    text = "" if value is None else str(value)
    table, report = encoded(csv(tmp_path, f"a,fax\n1,{text}\n2,{text}\n3,else\n"), facts)
    assert (report.outside["fax"], report.unplaced["fax"]) == (1, 0)
    measured, _ = engineer(table, facts.engineering)
    back = undo(measured, facts.engineering, np.random.default_rng(1))
    frame = decode_table(back, facts, np.random.default_rng(1))
    assert frame["a"].tolist() == [1, 2, 3]
    assert frame["fax"].isna().all() if value is None else frame["fax"].tolist() == [value] * 3


def test_derive_may_leave_unlisted_values_missing():
    columns = {"zip": {"kind": "categorical", "values": ["1", "2"]}, "city": {"kind": "categorical", "values": ["A"]}}
    rule = {"city": {"from": "zip", "map": {"1": "A"}, "otherwise": "missing"}}
    facts = parse_schema({"columns": columns, "derive": rule}, where="t")
    (step,) = facts.engineering.steps
    assert step.backward({"zip": np.array([0, 1, 2])}, np.random.default_rng(1))["city"].tolist() == [0, 1, 1]
    columns["city"]["missing"] = False
    with pytest.raises(UserError, match="never missing"):
        parse_schema({"columns": columns, "derive": rule}, where="t")


@pytest.mark.parametrize("fields", [{"formats": ["%d/%m/%Y", "%d/%m/%Y"]}, {"formats": ["day"]}, {"formats": []},
                                    {"format": "%d/%m/%Y", "formats": ["ISO"]}, {"formats": ["%Q"]},
                                    {"formats": ["%Y-%m-%d %Y"]}, {"format": "%Y-%m-%d %Y"}])  # fmt: skip
def test_formats_that_cannot_be_are_refused(fields):
    with pytest.raises(UserError, match="format"):
        schema(a={"kind": "date", "min": "2024-01-01", "max": "2024-12-31"} | fields)


@pytest.mark.parametrize("text", ["28.50", "28.5000", "2850.000", "0.500", "1.23.456", "1.234.56,7", "28500.5", ".500"])
def test_a_point_beside_a_decimal_comma_is_read_before_exactly_three_digits_alone(text, tmp_path):
    number = {"kind": "float", "min": 0, "max": 99_999, "bins": {"count": 2}, "strip": ["."], "decimal": ","}
    assert NumberForm((".",), ",").number(text) is None
    assert column_codes(tmp_path, number, [text, "28.500", "60.000,5"]) == [2, 0, 1]


def test_texts_are_recognised_by_what_most_of_them_are():
    dates = {"2024-01-13": 60, "13/02/2024": 25, "05/03/2024": 10, "n/a": 5}
    assert date_forms(dates) == [("ISO", 0.6), ("%d/%m/%Y", 0.35)]
    assert number_reading({"$1,234.50": 1, "€12": 1}) == (NumberForm(("$", "€", ",")), 1.0)
    assert number_reading({"1.234,50": 1, "12,5": 1, "x": 2}) == (NumberForm((".",), ","), 0.5)
    assert number_reading({"12,50": 1, "3,7": 1}) == (NumberForm((), ","), 1.0)
    assert number_reading({"1,234": 3, "12,500": 1})[0] == NumberForm((",",))
    assert number_reading({"1": 1, "2.5": 1}) == (NumberForm(), 1.0)
    assert number_reading({"28.500": 5, "296,97": 6})[0] == NumberForm((), ",")
    assert number_reading({"€28,500": 5, "€296.97": 6, "€0,250": 1})[0] == NumberForm(("€",))
    assert number_reading({"28.500": 5, "296,97": 6, "1.234,50": 1})[0] == NumberForm((".",), ",")
    assert number_reading({"28.500": 5, "296,97": 9, "1.234,50": 1, "12.5": 1})[0] == NumberForm((), ",")
    assert gap_words({"k.A.": 3, "NA": 1}, numbers=True) == ["NA", "k.A."]
    assert gap_words({"a": 1, "-999": 2}, numbers=False) == ["-999"]
    assert spelled_yes_or_no(["Yes", " n", "1"]) and not spelled_yes_or_no(["0", "1"]) and not spelled_yes_or_no(["a"])


@pytest.mark.parametrize(
    ("name", "called"),
    [("patient_nr", True), ("caseNo", True), ("Number", True), ("userId", True), ("inr", False), ("casino", False)]
    + [("LCLid", True), ("Covid", False), ("Aid", False)]
    + [(name, True) for name in ("Dienstnr", "dienstnummer", "badge", "klantnr", "Kundennummer", "numero_client")]
    + [(name, True) for name in ("Mitglied", "kunde", "member")]
    + [(name, False) for name in ("Dienst", "klant_type", "agent", "badges_sold", "personal", "kundenart")],
)
def test_a_name_is_that_of_an_id_by_its_last_word(name, called):
    assert bool(ID_NAME.search(name)) is called


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
    table, _ = encoded(csv(folder, f"{','.join(names)}\n{''.join(lines)}"), facts)
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


def test_a_column_without_spellings_costs_what_it_did(tmp_path):
    """No look-up but the position in the engine's own enumeration."""
    plain: Schema = schema(a={"kind": "categorical", "values": ["x", "y"], "other": "z"})
    select = encoding(source(csv(tmp_path, "a\nx\n")), plain).select
    assert "[0" not in select and "trim" not in select


FACTS = schema(city={"kind": "categorical", "values": ["x", "y"]}, n={"kind": "integer", "min": 0, "max": 9})
TEXT = "city,n\nx,1\ny,2\n"


def folder_of(place: Path, *texts: str) -> Path:
    folder = place / "parts"
    folder.mkdir()
    for i, text in enumerate(texts):
        csv(folder, text, f"part-{i}.csv")
    csv(folder, "", "_SUCCESS")
    csv(folder, "", ".hidden")
    return folder


def test_a_folder_and_a_pattern_are_the_table_of_their_parts_in_the_order_of_their_names(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, TEXT, "city,n\n", "city,n\ny,9\n")
    expected = codes(csv(tmp_path, TEXT + "y,9\n"), FACTS)
    assert codes(folder, FACTS) == expected == codes(folder / "part-*.csv", FACTS)
    assert len(slices(source(folder))) == 3
    assert fingerprint(folder) == fingerprint(folder / "*.csv") != fingerprint(tmp_path / "table.csv")


@pytest.mark.parametrize("link", [Path.symlink_to, Path.hardlink_to])
@pytest.mark.parametrize("way", ["parts", "parts/*.csv"])
def test_a_link_beside_its_target_is_refused_since_each_row_would_count_twice(link, way, tmp_path: Path) -> None:
    folder = folder_of(tmp_path, TEXT, TEXT)  # a copy of a part is one of its own
    assert codes(tmp_path / way, FACTS) == [[0, 1, 0, 1], [1, 2, 1, 2]]
    link(folder / "part-2.csv", folder / "part-1.csv")
    with pytest.raises(UserError, match=r"part-2\.csv: is one file with .*part-1\.csv: rows would count twice"):
        source(tmp_path / way)


def test_a_pattern_leaves_out_hidden_names_as_a_folder_does(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, TEXT)
    for aside in (".d.csv", "_e.csv", "_temporary/0/part-9.csv", ".old/part-9.csv"):
        (folder / aside).parent.mkdir(parents=True, exist_ok=True)
        csv(folder, TEXT, aside)
    assert codes(folder, FACTS) == codes(folder / "*.csv", FACTS) == codes(tmp_path / "**" / "*.csv", FACTS)
    assert codes(folder / ".old" / "*.csv", FACTS) == codes(folder, FACTS), "a folder that is named in full"
    with pytest.raises(UserError, match="no file matches this pattern but hidden ones"):
        source(folder / "_*.csv")


def test_a_file_that_takes_the_place_of_another_is_noticed_whatever_its_size_and_time(tmp_path: Path) -> None:
    """A link that led to another table of as many bytes, written at the same time, was the table as before."""
    one, other, link = (tmp_path / name for name in ("one.csv", "other.csv", "link.csv"))
    for path, text in ((one, "city,n\nx,1\n"), (other, "city,n\ny,2\n")):
        path.write_text(text)
        os.utime(path, ns=(10**18, 10**18))
    link.symlink_to(one)
    before = states([link])
    check_unchanged(before)
    link.unlink()
    link.symlink_to(other)
    with pytest.raises(UserError, match="changed while it was read"):
        check_unchanged(before)
    folder = tmp_path / "folder"
    folder.symlink_to(tmp_path)
    for turned, way in ((link, link), (folder, folder / "link.csv")):
        before = states([way])
        to = turned.readlink()
        time.sleep(STEP)
        turned.unlink()
        turned.symlink_to(to)  # away, and back: what was read between is not known
        with pytest.raises(UserError, match="changed while it was read"):
            check_unchanged(before)
    before = states([link])
    other.write_text("city,n\nx,2\n")
    os.utime(other, ns=(10**18, 10**18))
    with pytest.raises(UserError, match="changed while it was read"):
        check_unchanged(before)


@pytest.mark.parametrize("old_first", [True, False])
def test_times_of_two_writers_have_the_same_texts_in_slices_as_in_the_table(old_first: bool, tmp_path: Path) -> None:
    """Nanoseconds of INT96 are microseconds for the engine, and Arrow calls both by one name."""
    (tmp_path / "p").mkdir()
    ticks = pa.array([0, 1, 1_000, 500_000_000, 10**18], pa.int64()).cast(pa.timestamp("ns"))
    for i in range(2):
        old = {"use_deprecated_int96_timestamps": (i == 0) is old_first}
        pq.write_table(pa.table({"seen": ticks}), tmp_path / "p" / f"{i}.parquet", **old)
    same_texts_in_slices(tmp_path / "p")


@pytest.mark.parametrize("zones", [["", "TZ"], ["TZ", ""]])
def test_times_of_day_with_zones_beside_others_have_the_same_texts_in_slices(zones: list[str], tmp_path: Path) -> None:
    """Arrow calls both by one name; a unit whose id is such a time was two on Spark, one in each part."""
    (tmp_path / "p").mkdir()
    for i, zone in enumerate(zones):
        path = tmp_path / "p" / f"{i}.parquet"
        duckdb.sql(f"COPY (SELECT TIME{zone} '10:00:00.5' AS seen) TO '{path}' (FORMAT parquet)")
    same_texts_in_slices(tmp_path / "p")


def same_texts_in_slices(folder: Path) -> None:
    """The first column of a table in parts has the same texts however it is read."""
    table = source(folder)

    def texts(relation: str) -> list[str]:
        return [text for (text,) in table.lines(f"SELECT {table.text(0)} FROM {relation}")]

    assert [t for _, relation in slices(table, rows=3) for t in texts(relation)] == texts(table.relation)


def test_parts_of_parquet_are_one_table(tmp_path: Path) -> None:
    (tmp_path / "p").mkdir()
    for i, cities in enumerate((["x", "y"], ["y"])):
        pq.write_table(pa.table({"city": cities, "n": [i] * len(cities)}), tmp_path / "p" / f"{i}.parquet")
    assert codes(tmp_path / "p", FACTS) == [[0, 1, 1], [0, 0, 1]]
    pq.write_table(pa.table({"city": ["x"], "n": ["1"]}), tmp_path / "p" / "2.parquet")
    with pytest.raises(UserError, match=r"2\.parquet: its columns do not agree with 0\.parquet"):
        source(tmp_path / "p")


def test_a_damaged_part_is_named(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, TEXT, "city,n\nx,1\nsecret\n")
    with pytest.raises(UserError, match=r"part-1\.csv: malformed at line 3") as caught:
        codes(folder, FACTS)
    assert "secret" not in str(caught.value)
    content = pa.table({"city": ["x", "y"] * 50_000, "n": list(range(100_000))})
    (tmp_path / "p").mkdir()
    for name in ("a", "b"):
        pq.write_table(content, tmp_path / "p" / f"{name}.parquet")
    whole = (tmp_path / "p" / "b.parquet").read_bytes()
    (tmp_path / "p" / "b.parquet").write_bytes(whole[:200] + b"\xff" * 20_000 + whole[20_200:])
    with pytest.raises(UserError, match=r"b\.parquet"):
        codes(tmp_path / "p", FACTS)


@pytest.mark.parametrize(
    ("second", "says"), [("n,city\n1,x\n", "columns do not agree"), ("city\nx\n", "header"), ("", "the file is empty")]
)
def test_a_part_that_differs_is_named(second: str, says: str, tmp_path: Path) -> None:
    folder = folder_of(tmp_path, TEXT, second)
    with pytest.raises(UserError, match=r"part-1\.csv") as caught:
        source(folder)
    assert says in str(caught.value) or "columns do not agree" in str(caught.value)


def test_a_pattern_that_matches_nothing_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no file matches this pattern"):
        source(tmp_path / "*.csv")
