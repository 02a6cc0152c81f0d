"""Advice of a draft and of `check` that a careful steward follows, and values that nobody may see released."""

from __future__ import annotations

import json
import unicodedata
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from mechanisms.public.schema.table_schema import load_schema
from mechanisms.public.tables.decode import labels
from tests.pipeline.looks import checked, drafted

pytestmark = pytest.mark.usefixtures("folder")


def test_addresses_among_other_words_are_not_drafted_and_are_warned_of_where_they_are_listed(capsys):
    """'call j.smith@mail.example', of ten persons, was listed, called ok, and released in schema.yaml."""
    notes = ["call j.smith@mail.example", "IBAN GB29NWBK60161331926819", "paid", "3 pcs @ 4.50", "2@3.50"]
    cells = {"note": [*notes, *notes[2:], *notes[2:]] * 60}
    columns, text = drafted(cells)
    assert sorted(columns["note"]["values"]) == sorted(notes[2:])
    assert "smith" not in text and "NWBK" not in text and "or that hold names, e-mail addresses" in text
    look = checked(capsys, cells, f"note: {{kind: categorical, values: {json.dumps(notes)}}}")["columns"]["note"]
    assert look["status"] == "warning"
    assert look["hints"][0].startswith("2 of the 5 listed texts hold names, e-mail addresses")


WORD, DECOMPOSED = (unicodedata.normalize(form, "zurückgezogen") for form in ("NFC", "NFD"))
#: Texts of a list, and what is asked about them: the same value in several spellings, or nothing.
LISTED = {
    "sex": ("F f Female m M Male", 'kind: flag, "true": ["F", "f", "Female"], "false": ["m", "M", "Male"]'),
    "urgent": ("X x ja", "'X', 'x'"),  # yes is yes: ja is no answer to X
    "no": ("nein Nein X", '"true": ["X"], "false": ["nein", "Nein"]'),
    "noon": ("am AM pm", '"true": ["am", "AM"], "false": ["pm"]'),
    "at": ("0700 700 1930 0", "'0700', '700':"),  # a program dropped zeros of some rows
    "n": ("4 4.0 x", "'4', '4.0'"),
    "state": (f"{WORD} {DECOMPOSED} offen", f"'{WORD}', '{DECOMPOSED}'"),
    "half": ("1.·Hj. 1.Hj 2.·Hj. 2.Hj", "'1. Hj.', '1.Hj'; '2. Hj.', '2.Hj'"),
    "gender": ("F female M", "'F', 'female'"),
    "job": ("baker smith clerk", ""),
    "rate": ("07 10 100 7.5", ""),
    "stage": ("I II III IV", ""),
    "allergens": ("G H H;L M", ""),
}


def test_one_value_in_several_spellings_is_asked_about_and_values_that_differ_are_not(capsys):
    """X, x and ja: the cure said "true": ["X", "x"], "false": ["ja"], and who followed it released yes as no."""
    texts = {n: [t.replace("·", " ") for t in own.split()] for n, (own, _) in LISTED.items()}
    declared = {name: {"kind": "categorical", "values": own} for name, own in texts.items()}
    cells = {name: (own * 360)[:360] for name, own in texts.items()}
    looks = checked(capsys, cells, declared)["columns"]
    for name, (_, asked) in LISTED.items():
        hints = [hint for hint in looks[name]["hints"] if "one value in several spellings?" in hint or not asked]
        assert [asked in hint for hint in hints] == [True] * bool(asked), (name, looks[name])
    assert "kind: flag" not in str(looks["urgent"]["hints"])
    for name, own in {"sex": LISTED["sex"][1], "state": f"kind: categorical, values: [{WORD}, offen]"}.items():
        look = checked(capsys, {name: cells[name]}, f"{name}: {{{own}}}", "data.max_unplaced=1")["columns"][name]
        assert "several spellings" not in str(look) and (name == "sex" or "Unicode form alone" in str(look["hints"]))


def test_minus_one_beside_zero_is_yes_and_no_gap(capsys):
    """Yes of an office's database was drafted as a gap, and the column as 0 in all rows."""
    cells = {"paid": ["-1", "0", "-1"] * 100, "seen": ["-1", "FALSE", "True", "0"] * 75, "kids": ["-1", "0", "2"] * 100}
    columns, text = drafted(cells)
    assert (columns["paid"]["min"], columns["paid"]["max"], columns["paid"]["missing"]) == (-1, 0, False), text
    assert columns["kids"]["missing"] == ["-1"]
    listed = {"seen": ["-1", "0", "FALSE", "True"], "kids": ["-1", "0", "2"]}
    declared = [f"{n}: {{kind: categorical, values: {json.dumps(v)}}}" for n, v in listed.items()]
    look = checked(capsys, cells, ", ".join([*declared, "paid: {kind: integer, min: -1, max: 0}"]))["columns"]
    assert ["a gap?" in str(look[n]["hints"]) for n in ("seen", "kids", "paid")] == [False, True, False]


@pytest.mark.parametrize(
    ("odd", "every", "asked"), [("31.12.99", 30, True), ("01.01.00", 30, True), ("31.12.99", 300, False)]
)
def test_an_end_of_the_days_that_lies_apart_and_that_many_rows_hold_is_asked_about(odd, every, asked, capsys):
    """31.12.99 of payments of 2024 is 1999: it was called ok, and the draft's bounds went back 25 years."""
    days = [f"{d:%d.%m.%y}" for d in pd.date_range("2024-01-01", periods=360)] * 4
    cells = {"paid": [odd if i % every == 0 else day for i, day in enumerate(days)]}
    hints = checked(capsys, cells)["columns"]["paid"]["hints"]
    n = sum(day == odd for day in cells["paid"])
    assert ([h for h in hints if "a gap?" in h] == [f'{odd} ({n} times): a gap? missing: ["{odd}"]']) is asked, hints


def test_a_usual_code_of_no_answer_among_the_numbers_is_asked_about_but_no_price_that_ends_alike(capsys):
    """9999 for "don't know" among monthly incomes up to 30,000 stood in the mean as an income, and nothing asked."""
    coins = np.random.default_rng(0)
    income = np.where(coins.random(2000) < 0.04, 9999, coins.gamma(3, 3000, 2000).clip(0, 30_000).astype(int))
    price = np.where(coins.random(2000) < 0.5, coins.choice([99, 149, 199, 999], 2000), coins.integers(1, 1500, 2000))
    born = np.where(coins.random(2000) < 0.03, 1900, coins.triangular(1890, 1975, 2006, 2000).astype(int))
    cells = {"income": income, "price": price, "age": coins.integers(18, 100, 2000), "born": born}
    cells["lat"] = np.where(np.arange(2000) % 160 == 1, 0, coins.uniform(35, 35.2, 2000).round(4))
    looks = checked(capsys, {name: list(map(str, values)) for name, values in cells.items()})["columns"]
    asked = {name: [hint for hint in look["hints"] if "a gap?" in hint] for name, look in looks.items()}
    times = {name: int((cells[name] == code).sum()) for name, code in (("income", 9999), ("born", 1900))}
    assert asked == {
        "income": [f'9999 ({times["income"]} times): a gap? missing: ["9999"]'],
        "born": [f'1900 ({times["born"]} times): a gap? missing: ["1900"]'],
        "lat": ['0 (13 times): a gap? missing: ["0"]'],
        "price": [],
        "age": [],
    }


def test_words_for_zero_are_no_gaps_and_words_that_a_draft_takes_for_gaps_are_asked_about(capsys):
    """An income of NIL became a gap without a word, and the mean rose."""
    cells = {"pay": ["NIL" if i % 9 == 0 else f"£{50 + i % 70}.50" for i in range(900)]}
    cells |= {"days": ["zero" if i % 9 == 0 else str(i % 70) for i in range(900)]}
    cells |= {"fee": ["waived" if i % 9 == 0 else f"£{50 + i % 70}.50" for i in range(900)]}
    cells |= {"due": ["open" if i % 9 == 0 else f"{1 + i % 28:02}.05.2024" for i in range(900)]}
    columns, text = drafted(cells)
    assert [columns[n]["missing"] for n in cells] == [True, True, ["waived"], ["open"]]
    assert all(w in text for w in ("such as 'NIL': they become", "do 'waived' mean a gap?", "do 'open' mean a gap?"))
    look = checked(capsys, cells)["columns"]
    assert look["pay"]["lost"] == look["days"]["lost"] == 100
    assert "'NIL': 0? Write it so in the table: as a gap it would raise the mean" in look["pay"]["hints"]


def test_a_year_of_two_digits_is_none_of_four(capsys):
    """The engine took 06.07.65 for a day of the year 65: a draft failed, and a run clipped it to the first day."""
    cells = {"born": [f"{i % 28 + 1:02}.05.{1975 + i % 30 if i % 6 else 80 + i % 10}" for i in range(420)]}
    columns, text = drafted(cells)
    assert (columns["born"]["formats"], columns["born"]["min"]) == (["%d.%m.%Y", "%d.%m.%y"], "1976-01-01"), text
    declared = 'born: {kind: date, min: 1930-01-01, max: 2020-12-31, bins: year, formats: ["%d.%m.%Y"%s]}'
    assert checked(capsys, cells, declared.replace("%s", ""))["columns"]["born"]["lost"] == 70
    assert checked(capsys, cells, declared.replace("%s", ', "%d.%m.%y"'))["columns"]["born"]["lost"] == 0


def test_a_last_day_of_the_calendar_is_no_bound_however_few_days_there_are(capsys):
    """Contracts end on twelve days of a year, or on 31.12.9999: it was the bound, of other columns too, and ok."""
    ends = [f"28.{i % 12 + 1:02}.24" if i % 3 else "31.12.9999" for i in range(360)]
    cells = {"begin": [f"0{i % 9 + 1}.01.2023" for i in range(360)], "end": ends}
    columns, text = drafted(cells)
    assert columns["end"]["missing"] == ["31.12.9999"] and columns["end"]["max"] == "2024-12-31", text
    assert columns["begin"]["max"] == "2023-01-31" and "31.12.9999 taken for a gap: is it?" in text
    assert not any("too late" in hint for hint in checked(capsys, cells)["columns"]["end"]["hints"])
    declared = 'end: {kind: date, min: 2023-01-01, max: 9999-12-31, bins: year, formats: ["%d.%m.%Y", "%d.%m.%y"]}'
    look = checked(capsys, cells, declared)["columns"]["end"]
    assert look["status"] == "warning"
    assert look["hints"][0] == '31.12.9999 (120 times): a gap? missing: ["31.12.9999"]', look["hints"]


def test_days_with_the_names_of_months_are_drafted_as_days(capsys):
    """28-Nov-2023 and 12 March 2023 were free text, unless days in digits stood beside them."""
    days = pd.date_range("2022-01-01", periods=400)
    forms = ("%d-%b-%y", "%d %B %Y", "%B %d, %Y", "%d %b %Y %H:%M", "%d-%b-%Y")
    cells = {form: [f"{d:{form}}" for d in days] for form in forms}
    columns, text = drafted(cells)
    assert {name: (c["kind"], c["format"]) for name, c in columns.items()} == {f: ("date", f) for f in forms}, text
    assert not any(column["lost"] for column in checked(capsys, cells)["columns"].values())


def test_words_that_a_draft_takes_for_gaps_are_not_said_to_be_unreadable():
    """'4.7 % of the values cannot be read so, such as 'ruht'', and missing: ['ruht'] below it."""
    cells = {"pay": [f"1.{i % 900 + 100},50" if i % 10 else "ruht" if i % 20 else f"{i}.25" for i in range(1000)]}
    days = [f"{i % 28 + 1:02}.0{i % 9 + 1}.2024" for i in range(1000)]
    cells |= {"left": [day if i % 10 else "offen" if i % 20 else "x3" for i, day in enumerate(days)]}
    columns, text = drafted(cells)
    assert columns["pay"]["missing"] == ["ruht"] and columns["left"]["missing"] == ["offen"], text
    assert text.count("; 5.0 % of the values cannot be read so") == 2 and "such as 'ruht'" not in text, text
    assert "such as 'offen'" not in text


def test_a_draft_says_where_day_and_month_stand_in_either_order(capsys):
    days = pd.date_range("2022-01-01", periods=400)
    cells = {"seen": [f"{d:%m/%d/%Y}" if i % 8 else f"{d:%d/%m/%Y}" for i, d in enumerate(days)]}
    said = "the day stands first in some and the month in others"
    assert said in drafted(cells)[1]
    assert said not in drafted({"seen": [f"{d:%m/%d/%Y}" for d in days]})[1]


def test_ids_of_others_are_no_amounts_and_rows_that_were_entered_twice_are_told(capsys):
    """A prescriber's nine digits, many rows each, were drafted as amounts: made-up ones may be somebody's."""
    n = 800
    cells = {
        "patient": [f"p{i // 4}" for i in range(n)],
        "lanr": [f"{(i % 50) * 15790321 % 900000 + 100000}{i % 10}0{i % 3 + 1}" for i in range(n)],
        "site": [f"{(i % 40) * 2574991 % 9000000 + 1000000}00" for i in range(n)],
        "rent": [(i % 60) * 1370000 % 9000000 + 1000000 for i in range(n)],
        "cents": [i * i * 7907 % 9000000 + 1000000 for i in range(n)],
        "noted": [f"2024{i % 12 + 1:02}{i % 28 + 1:02}" for i in range(n)],
        "seconds": [1640995200 + 86400 * (i % 90) for i in range(n)],
        "northing": [5800000 + 7919 * (i % 30) for i in range(n)],
        "plz": [f"{(i % 70) * 1237 % 90000 + 10000}" for i in range(n)],
        "year": [1930 + i % 80 for i in range(n)],
    }
    columns, text = drafted(cells | {"lanr": ["unbekannt" if i % 97 == 0 else c for i, c in enumerate(cells["lanr"])]})
    kept = {"rent", "cents", "seconds", "northing", "plz", "year"}
    assert {"lanr", "site"}.isdisjoint(columns) and kept <= {*columns}
    assert text.count("ids of others") == 2 and "of 9 digits, about 20 rows each" in text
    twice = {name: [*values, *values[:3]] for name, values in cells.items()}
    number = {"kind": "integer", "min": 0, "max": 2_000_000_000, "bins": {"count": 20}}
    declared = {name: number for name in cells if name not in {"patient", "noted", "plz"}}
    said = checked(capsys, twice, declared, "privacy.unit=patient", "privacy.max_records=9")
    asked = {n: [h for h in c["hints"] if "ids of others" in h] for n, c in said["columns"].items()}
    assert {n for n, hints in asked.items() if hints} == {"lanr", "site"}
    assert [h for h in said["hints"] if h.startswith("3 rows are the same as another of their 'patient'")]


def test_lengths_of_time_are_asked_about_and_are_no_first_of_a_month(capsys):
    """Minutes as 00:12:45 were "all the first of a month"; that one bin of hours holds all was said after the run."""
    cells = {"drive": [f"00:{i % 50:02}:{i % 60:02}" for i in range(900)]}
    cells["drive"][7] = "15:40:00"  # one long one answers nothing
    cells["shift"] = [f"{6 + i % 14:02}:{i % 60:02}" for i in range(900)]
    _, text = drafted(cells)
    assert "first of a month" not in text and text.count("are they lengths of time?") == 1
    columns = checked(capsys, cells)["columns"]
    assert columns["shift"]["hints"] == [] and "one bin, 1900-01-01 00, holds 99.9 %" in columns["drive"]["hints"][0]
    cost = {"cost": [10.0 + i % 7 for i in range(900)]}
    edges = "cost: {kind: float, decimals: 2, bins: {edges: [0, 50, 5000]}, missing: false}"
    assert "one bin, 0 to 50," in str(checked(capsys, cost, edges)["columns"]["cost"]["hints"])
    count = "cost: {kind: float, decimals: 2, min: 0, max: 5000, bins: {count: 4}, missing: false}"  # a run cuts these
    assert "one bin" not in str(checked(capsys, cost, count)["columns"]["cost"]["hints"])


def test_a_declared_gap_is_not_asked_about_however_it_is_written(capsys):
    """missing: ["0"] beside latitudes of 0.0: `check` and each run asked whether 0 is a gap, with that very cure."""
    cells = {"lat": [0.0 if i % 40 == 0 else 47 + i % 97 / 100 for i in range(900)]}
    declared = 'lat: {{kind: float, min: 46, max: 49, decimals: 2, missing: ["{}"]}}'
    hints = [str(checked(capsys, cells, declared.format(gap))["columns"]["lat"]["hints"]) for gap in ("0", "-9")]
    assert "a gap?" not in hints[0] and "0 (23 times): a gap?" in hints[1]


def test_a_draft_says_that_ordered_and_calendar_move_one_time_each():
    days = pd.date_range("2024-01-01", periods=360)
    cells = {"begun": days.astype(str), "weekday": days.day_name(), "over": (days + pd.Timedelta(days=20)).astype(str)}
    _, text = drafted(cells)
    assert '- ["begun", "over"]' in text and 'calendar: {"begun"' in text
    assert "it needs bins of at least a week, and no `ordered`" in text


def test_a_draft_and_check_say_that_ordered_takes_the_hours_of_a_time(capsys):
    """Loans of a library that opens at 10, with the day they came back: synthetic ones were made at 3 in the night."""
    begun = pd.date_range("2024-01-01 10:00", periods=1200, freq="7h").floor("D") + pd.Timedelta(hours=10)
    cells = {"begun": begun.astype(str), "over": (begun + pd.Timedelta(days=20, hours=2)).astype(str)}
    columns, text = drafted(cells)
    assert 'loses its uneven hour: in place of it calendar: {"begun": ["hour"]}' in text
    schema = f"columns: {json.dumps(columns)}\nordered: [[begun, over]]\n"
    (said,) = [hint for hint in checked(capsys, cells, schema)["hints"] if hint.startswith("'begun'")]
    assert said.endswith('(hour): calendar: {"begun": ["hour"]}, in place of `ordered`')


def test_constants_of_persons_that_tell_each_other_are_told(capsys):
    """Number and name of a region, both constant: a tenth of the synthetic rows broke the pair, and nothing said so."""
    cells = {"who": [f"p{i // 2}" for i in range(900)], "nr": [i // 2 % 3 for i in range(900)]}
    cells |= {"name": [("north", "south", "west")[n] for n in cells["nr"]], "year": [2020 + i % 2 for i in range(900)]}
    names = "{kind: categorical, values: [north, south, west], missing: false}"
    declared = f"columns: {{nr: {{kind: categorical, size: 3, missing: false}}, name: {names}, year: {{kind: integer, "
    declared += "min: 2020, max: 2021, missing: false}}\nunit: {column: who, constant: [nr, name], records: {max: 2}}\n"
    told = str(checked(capsys, cells, declared)["hints"])
    assert "impossible: [{columns: [nr, name], possible: …}] keeps that" in told
    rule = "impossible: [{columns: [nr, name], possible: [[0, north], [1, south], [2, west]]}]\n"
    assert "tell each other" not in str(checked(capsys, cells, declared + rule)["hints"])


def test_codes_of_surveys_are_gaps_and_empty_cells_stay_empty(capsys):
    """-7 of those not asked was an income; those whom a form skips were released as "weiß nicht", 2,596 for 54."""
    numbers = [str(i * 7 % 900 + 100) for i in range(300)]
    cells = {
        "income": [*numbers, *["-7", "-8", "-9"] * 20],
        "days": [*["0", "1", "2", "5"] * 75, *["-7"] * 60],
        "heat": ["gas", "oil", "-8"] * 120,
        "warm": [*["ja", "nein", ""] * 115, *["weiß nicht"] * 15],
        "scale": [str(i % 19 - 9) for i in range(360)],
        "serial": range(100001, 100361),
    }
    columns, text = drafted(cells)
    gaps = {"income": ["-7", "-8", "-9"], "days": ["-7"], "heat": ["-8"], "warm": ["", "weiß nicht"], "scale": False}
    assert {name: columns[name]["missing"] for name in gaps} == gaps, text
    assert (columns["income"]["min"], columns["days"]["min"], columns["scale"]["min"]) == (100, 0, -9)
    assert "no two alike" in text and "about 360 values, 1.0 rows each" in text
    warm = load_schema(Path("s.yaml"))["warm"]
    assert labels(warm) == ("nein", "ja", None) and warm.codes_by_label["weiß nicht"] == warm.missing_code
    listed = "kind: categorical, values: [ja, nein, weiß nicht], missing:"
    for missing, cure in (("true", '["", "weiß nicht"]'), ("[k.A.]", '["k.A.", "weiß nicht"]')):
        (hint,) = checked(capsys, {"warm": cells["warm"]}, f"warm: {{{listed} {missing}}}")["columns"]["warm"]["hints"]
        assert hint.endswith(f"a gap? missing: {cure}")
    income = "income: {kind: integer, min: -9, max: 999, bins: {count: 20}, missing: ['-9']}"
    (hint,) = checked(capsys, {"income": cells["income"]}, income)["columns"]["income"]["hints"]
    assert hint == '-8 (20 times), -7 (20 times): a gap? missing: ["-9", "-8", "-7"]'
