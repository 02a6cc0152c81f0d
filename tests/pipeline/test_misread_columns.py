"""What a draft and `check` ask about columns: forms that were guessed or lost, persons of several ids."""

import json
import random
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml
from scipy.stats import norm

import pipeline
from mechanisms.public.tables.doubts import numbers_apart
from mechanisms.public.tables.text_forms import NumberForm
from mechanisms.sensitive.contribution import PrivacyUnit
from pipeline.look import unit_look
from tests.pipeline.conftest import command, reply
from tests.pipeline.looks import FORM, checked, drafted, guess_of

pytestmark = pytest.mark.usefixtures("folder")

N = 600
DAY = {"kind": "date", "min": "2022-01-01", "max": "2024-01-31", "bins": "month"}
RNG = np.random.default_rng(5)
DAYS = pd.Timestamp("2022-01-01") + pd.to_timedelta(RNG.integers(0, 700, N), "D")
NEAR, FAR, SWAPPED = RNG.normal(8.5, 0.2, N).round(5), RNG.normal(48.3, 0.2, N).round(5), np.arange(N) % 50 == 0


@pytest.mark.slow
def test_times_seconds_staff_and_codes_with_letters_are_drafted_as_what_they_are(capsys):
    times = [divmod(int(minute), 60) for minute in np.random.default_rng(1).integers(0, 1440, N)]
    forms = [*["{:02}:{:02}"] * 4, *["{:02}{:02}"] * 2, "{}.{:02} Uhr"]
    cells = {
        "at": ["{:02}:{:02}".format(*time) for time in times],
        "until": [forms[i % 7].format(*time) for i, time in enumerate(times)],
        "depart": [f"{hour // 3 + 7}h{minute:02}" for hour, minute in times],
        "read": [str(1_540_000_000 + 7919 * i) for i in range(N)],
        "read_ms": [str(1_540_000_000_000 + 7_919_001 * i) for i in range(N)],
        "Dienstnr": [f"{i % 40:04}" for i in range(N)],
        "officer_id_hash": [f"{0xB6D0A2FD + i % 40:08x}" for i in range(N)],
        "commune": [("2A0" if i % 20 == 0 else ("750", "130", "011")[i % 3]) + f"{i % 80:02}" for i in range(N)],
        "lon": np.where(np.arange(N) % 25 == 1, 0, np.where(SWAPPED, FAR, NEAR)),
        "lat": np.where(np.arange(N) % 25 == 1, 0, np.where(SWAPPED, NEAR, FAR)),
        "wide": [str(i % 90) for i in range(N)],
    }
    columns, text = drafted(cells)
    day = {"kind": "datetime", "min": "1900-01-01", "max": "1900-01-01", "missing": False}
    assert columns["at"] == day | {"format": "%H:%M"}
    assert columns["depart"] == day | {"format": "%Hh%M"} and "# calendar:" not in text, "bins of a clock are hours"
    assert columns["until"] == day | {"formats": ["%H:%M", "%H%M", "%H.%M Uhr"]}
    ids = set(re.findall(r'"(\w+)"  # \d+ distinct .*: an id, by its name', text))
    assert ids == {"Dienstnr", "officer_id_hash"}
    assert columns["commune"]["prefix"] == 3 and "2A0" in columns["commune"]["values"]
    for unit in ("seconds", "milliseconds"):
        assert text.count(f"the numbers are {unit} since 1970") == 1
    assert text.count("exchanged in these rows?") == 2 and text.count("does it name persons") == 1, "commune"
    facts = checked(capsys, cells)
    said = {name: " ".join(look["hints"]) for name, look in facts["columns"].items()}
    assert not said["at"] + said["until"] and all("since 1970" in said[n] for n in ("read", "read_ms"))
    assert all("an id?" not in line for line in said.values())
    assert all("exchanged" in said[n] and '0 (24 times): a gap? missing: ["0"]' in said[n] for n in ("lon", "lat"))
    wide = checked(capsys, cells, "wide: {kind: integer, min: 0, max: 90000, bins: {count: 9}}")
    assert wide["columns"]["wide"]["status"] == "warning" and "go 1,0" in wide["columns"]["wide"]["hints"][0]
    for hint in (*facts["hints"], *wide["hints"]):
        assert "names persons?" not in hint or "each value: 'commune':" in hint, "no measurement or time names persons"
        assert "privacy.unit=" not in hint or "commune" in hint, hint


def test_two_units_and_codes_with_zeros_behind_are_asked_about_whatever_the_factor_and_no_tail_is():
    """Amounts, a lone number, and one rich person with many rows are no second unit, and hide none."""

    def asked(numbers, decimals, most=1000):
        texts = Counter(f"{x:.{decimals}f}" for x in numbers).most_common(most)
        return " ".join(numbers_apart(dict(texts), NumberForm()))

    old = RNG.random(3000) < 0.3
    for small, large, spread in ((6, 108, 0.25), (13.5, 135, 0.1), (78, 172, 0.11), (5.6, 171, 0.05), (20, 600, 0.2)):
        numbers = np.where(old, large, small) * np.exp(RNG.normal(0, spread, old.size))
        assert ("kg beside lb?" if small == 78 else "two units?") in asked(numbers, 1), small
    pay, rich = RNG.lognormal(7, 0.3, 3000) * np.where(RNG.random(3000) < 0.4, 12, 1), [1_176_000] * 60
    assert all("two units?" in asked([*pay[n:], *rich[:n]], 0, 3000) for n in (0, 6, 60))
    one_unit = [NEAR, RNG.normal(50, 8, 3000), RNG.uniform(1, 99, 3000), RNG.pareto(1.5, 3000), [*NEAR, 99.0]]
    one_unit += [RNG.exponential(50, N) * (NEAR > 8.3), [*RNG.lognormal(7, 0.8, 3000), *rich]]
    one_unit += [RNG.lognormal(7, 1.2, N), RNG.lognormal(2, 1, 3000)]
    one_unit += [np.where(RNG.random(3000) < 0.5, 38.71, 38.77) + RNG.normal(0, 0.003, 3000)]  # latitudes of two towns
    fees = np.where(RNG.random(3000) < 0.6, 2.0, 4.0)  # of a packet and of two, but for cheaper ones
    one_unit += [np.where(RNG.random(3000) < 0.01, RNG.uniform(0.5, 1, 3000) * fees, fees)]
    assert not any(asked(numbers, 3) for numbers in one_unit)
    rooms = {f"{floor}.{room}": 9 for floor in range(1, 6) for room in range(1, 13)}
    assert "1.1 stands beside 1.10" in numbers_apart(rooms, NumberForm())[0]
    assert numbers_apart({f"{i / 100:.2f}": 3 for i in range(900)}, NumberForm()) == []


def test_whole_numbers_between_which_a_release_has_others_are_told(capsys):
    """Claims came out with the state 17, where a form knows 10, 20, 30 and 40, and the check called the column ok."""
    cells = {"state": np.array([10, 20, 30, 40])[np.arange(N) % 4], "fee": np.array([0, 9])[np.arange(N) % 2]}
    cells |= {"score": 1 + np.arange(N) % 5, "price": 10 * (np.arange(N) % 4)}
    columns = {n: {"kind": "integer", "min": 0, "max": 40} for n in cells}
    looks = checked(capsys, cells, columns, derive={"price": {"expression": "state - 10"}})["columns"]
    told = {name: sum("a release has others between" in hint for hint in look["hints"]) for name, look in looks.items()}
    assert told == {"state": 1, "fee": 0, "score": 0, "price": 0}


@pytest.mark.slow
def test_relations_that_rows_keep_and_no_rule_does_are_told(capsys):
    until = DAYS + pd.to_timedelta(120 + np.arange(N) % 30, "D")
    names = np.array(["Mo", "Di", "Mi", "Do", "Fr", "Sa", "So"])
    cells = {"start": DAYS.strftime("%Y-%m-%d"), "end": until.strftime("%Y-%m-%d"), "tag": names[DAYS.day_of_week]}
    cells["tag"][:3] = names[(DAYS[:3].day_of_week + 1) % 7]
    columns = {"start": DAY, "end": DAY, "tag": {"kind": "categorical", "values": [*names]}}
    lines = checked(capsys, cells, columns)["hints"]
    assert any("'start' ≤ 'end' in 600 of the 600 rows" in h and 'ordered: [["start", "end"]]' in h for h in lines)
    weekday = 'calendar: {"start": {"weekday": "tag"}}'
    assert any("'tag' is the weekday of 'start' in 597 of 600" in h and weekday in h for h in lines)
    ruled = checked(capsys, cells, columns, ordered=[["start", "end"]])["hints"]
    assert not any("'start' ≤ 'end'" in h for h in ruled)
    cells["gone"] = np.where(np.arange(N) % 60, "", cells["end"])  # nearly empty, beside a list of seven texts
    assert not any("weekday of 'gone'" in h for h in checked(capsys, cells, columns | {"gone": DAY})["hints"])
    twice = {"start": DAY, "day": {**DAY, "format": "%d.%m.%y"}}
    hints = checked(capsys, {"start": cells["start"], "day": DAYS.strftime("%d.%m.%y")}, twice)["hints"]
    assert any("'start' and 'day' are the same in 600 of the 600 rows that hold both" in h for h in hints)


@pytest.mark.slow
def test_questions_that_a_form_skips_without_a_rule_are_told_by_what_they_share(capsys):
    job = np.array(["jobless", "clerk", "nurse"])[np.arange(N) % 3]
    paid = {n: np.where(job == "jobless", "", "1200") for n in ("wage", "tax", "rest", "gift")}
    columns = {"job": {"kind": "categorical", "values": sorted({*job})}}
    columns |= {n: {"kind": "integer", "min": 0, "max": 9000, "bins": {"count": 9}} for n in paid}
    told = "empty in at least 200 of the 200 rows with 'job' = jobless"
    (hint,) = [h for h in checked(capsys, {"job": job, **paid}, columns)["hints"] if told in h]
    assert hint.startswith("'wage', 'tax', 'rest' and 1 more: ") and hint.endswith("as a draft writes it")
    three = [{"job": "jobless", n: {}} for n in ("wage", "tax", "rest")]
    (hint,) = [h for h in checked(capsys, {"job": job, **paid}, columns, impossible=three)["hints"] if told in h]
    assert hint.startswith("'gift': ") and hint.endswith('impossible: [{"job": ["jobless"], "gift": {}}]')
    code = {"job": np.array([1, 2, 3])[np.arange(N) % 3], "paid": np.array([1, 2, 2])[np.arange(N) % 3]}
    whole = {"kind": "integer", "min": 1, "missing": False}
    made = {"job": {**whole, "max": 3}, "paid": {**whole, "max": 2}, "wage": {"kind": "integer", "min": 0, "max": 9000}}
    derive = {"paid": {"from": "job", "map": [[1, 1], [2, 2], [3, 2]]}}
    asked = (capsys, {**code, "wage": paid["wage"]}, made)
    hints = checked(*asked, derive=derive, impossible=[{"paid": 1, "wage": {}}])["hints"]
    assert not any("only a rule keeps it" in h for h in hints), "a rule about what a map makes binds the map's source"
    assert any("'job' = 1, and" in h for h in checked(*asked, derive=derive)["hints"])
    persons = {"who": np.arange(N) // 2, "year": 2020 + np.arange(N) % 2}
    fixed = {"job": np.repeat(job[: N // 2], 2), "wage": np.repeat(paid["wage"][: N // 2], 2)}
    unit = {"column": "who", "constant": [*fixed], "records": {"max": 2}}
    own = {n: columns[n] for n in fixed} | {"year": {"kind": "integer", "min": 2020, "max": 2021}}
    for rules, there in (({}, True), ({"impossible": [{"job": "jobless", "wage": {}}]}, False)):
        hints = checked(capsys, persons | fixed, own, unit=unit, **rules)["hints"]
        assert any(h.startswith("'wage': empty in") for h in hints) is there, "a rule about constants alone is a rule"


def test_a_rule_about_a_skipped_date_names_the_length_that_is_proposed_in_its_place(capsys):
    came = pd.date_range("2021-01-01", periods=600, freq="1D")
    left = np.where(np.arange(600) % 3, (came + pd.Timedelta(3, "D")).strftime("%Y-%m-%d"), "")
    cells = {"came": came.strftime("%Y-%m-%d"), "left": left, "fate": np.where(np.arange(600) % 3, "done", "open")}
    hints = checked(capsys, cells)["hints"]
    assert any('derive: {"left": {"from": "came"' in h for h in hints)
    (hint,) = [h for h in hints if "'fate' = open" in h]
    assert hint.endswith('impossible: [{"fate": ["open"], "left_length": {}}], beside `derive` of \'left\'')


def test_values_that_never_stand_together_are_told_where_no_rule_says_so(capsys):
    i = np.arange(2 * N)
    own = {"fuel": np.where(i % 4 == 1, "electric", "diesel")}
    own["seats"] = np.where(i % 2, "four", np.where(i % 4, "two", "three"))
    rule = {"impossible": [{"fuel": ["electric"], "seats": ["three", "two"]}]}
    hints, ruled = (checked(capsys, own, listing(own), **rules)["hints"] for rules in ({}, rule))
    told = f"impossible: {json.dumps(rule['impossible'])}"
    assert any(h.endswith(told) and "unrelated columns would have" in h for h in hints)
    assert not any("unrelated" in h for h in ruled)


def test_records_of_a_person_that_never_overlap_are_told_where_no_rule_keeps_them_apart(capsys):
    start = pd.Timestamp("2022-01-01") + pd.to_timedelta(np.arange(N) // 100 * 100 + np.arange(N) % 7, "D")
    end = start + pd.to_timedelta(np.where(np.arange(N) == 3, 200, 20), "D")
    cells = {"who": np.arange(N) % 100, "start": start.strftime("%Y-%m-%d"), "end": end.strftime("%Y-%m-%d")}
    rules = {"ordered": [["start", "end"]], "unit": {"column": "who", "order": "start", "records": {"max": 6}}}
    told = "'start' comes before 'end' of the person's record before in 1 of 500 steps"
    assert sum(told in hint for hint in checked(capsys, cells, {"start": DAY, "end": DAY}, **rules)["hints"]) == 1
    cells["end"] = (start + pd.to_timedelta(np.where(np.arange(N) % 9, 20, 200), "D")).strftime("%Y-%m-%d")
    hints = checked(capsys, cells, {"start": DAY, "end": DAY}, **rules)["hints"]
    assert not any("record before" in hint for hint in hints)


def test_an_order_of_a_constant_and_a_column_with_other_bins_is_not_advised_for_no_rule_takes_it(capsys):
    born = pd.Timestamp("2021-01-01") + pd.to_timedelta(np.arange(N) % 100, "D")
    cells = {"who": np.arange(N) % 100, "day": DAYS.strftime("%Y-%m-%d"), "born": born.strftime("%Y-%m-%d")}
    day, unit = {**DAY, "min": "2020-01-01"}, {"column": "who", "order": "day", "records": {"max": 6}}
    for other, advised in (({"min": "1920-01-01", "bins": "year"}, False), ({}, True)):
        columns = {"day": day, "born": day | other}
        hints = checked(capsys, cells, columns, unit=unit | {"constant": ["born"]})["hints"]
        assert any('ordered: [["born", "day"]]' in h for h in hints) == advised


def test_a_number_that_never_falls_within_a_person_is_told(capsys):
    """A meter's reading rises from visit to visit: half of a release's steps fell, and nothing had said so."""
    meter, visit = np.arange(N) % 100, np.arange(N) // 100
    day = (pd.Timestamp("2022-01-01") + pd.to_timedelta(visit * 30 + meter % 7, "D")).strftime("%Y-%m-%d")
    cells = {"meter": meter, "day": day, "reading": 37 * meter % 500 + 60 * visit, "heat": 7 * meter * visit % 31}
    number = {"kind": "integer", "min": 0, "max": 999, "bins": {"count": 50}}
    unit = {"column": "meter", "order": "day", "records": {"max": 6}}
    hints = checked(capsys, cells, {"day": DAY, "reading": number, "heat": number}, unit=unit)["hints"]
    (hint,) = (h for h in hints if "falls from one record" in h)
    assert hint.startswith("unit: order: 'reading' falls from one record of a person to the next in 0 of 500 steps")


def test_a_state_that_says_again_the_one_of_the_record_before_is_told(capsys):
    """In a release the old grade was often not the new one of before; a state that stays hands nothing on."""
    person, visit = np.arange(N) % 100, np.arange(N) // 100
    day = (pd.Timestamp("2022-01-01") + pd.to_timedelta(visit * 30, "D")).strftime("%Y-%m-%d")
    new = np.random.default_rng(1).integers(0, 4, N)
    old = np.where(visit == 0, "", np.roll(new, 100).astype(str))
    cells = {"person": person, "day": day, "old": old, "new": [f"{n}.0" for n in new], "home": person % 4}
    cells["kin"] = np.where(person % 3, "n.a.", person % 4)  # of which a value is a gap in another column
    cells |= {"first": (visit == 0) * 1, "last": (visit == 5) * 1}  # 0 and 0 in each step, whoever it is
    columns = {n: {"kind": "integer", "min": 0, "max": 3} for n in ("old", "new", "home", "first", "last")}
    columns |= {"old": {**columns["old"], "missing": ["n.a."]}, "day": DAY}
    columns["kin"] = {"kind": "categorical", "values": ["0", "1", "n.a."]}
    hints = checked(capsys, cells, columns, unit={"column": "person", "order": "day", "records": {"max": 6}})["hints"]
    (hint,) = (h for h in hints if "of the person's record before" in h)
    assert hint.startswith("unit: order: 'old' is 'new' of the person's record before in 500 of 500 steps")


def test_a_balance_that_runs_on_is_told_where_a_rule_computes_it_too(capsys):
    """With the rule that a draft proposes, closing = opening + amount, nothing said that balances do not run on."""
    person, visit = np.arange(N) % 100, np.arange(N) // 100
    day = (pd.Timestamp("2022-01-01") + pd.to_timedelta(visit * 30, "D")).strftime("%Y-%m-%d")
    amount = np.random.default_rng(1).integers(-50, 51, N)
    closing = 400 + np.cumsum(amount.reshape(-1, 100), axis=0).ravel()
    cells = {"person": person, "day": day, "opening": closing - amount, "amount": amount, "closing": closing}
    balance = {"kind": "integer", "min": 0, "max": 999, "bins": {"count": 50}}
    columns = {"day": DAY, "opening": balance, "amount": {**balance, "min": -50, "max": 50}, "closing": balance}
    unit, rule = {"column": "person", "order": "day", "records": {"max": 6}}, {"expression": "opening + amount"}
    for extra, cure in (({}, "leave it out"), ({"derive": {"closing": rule}}, "leave both out")):
        hints = checked(capsys, cells, columns, unit=unit, **extra)["hints"]
        (hint,) = (h for h in hints if "of the person's record before" in h)
        assert hint.startswith("unit: order: 'opening' is 'closing' of the person's record before in 500 of 500 steps")
        assert cure in hint


def test_a_value_that_no_person_has_twice_is_told(capsys):
    """In a release of a study 41 % of the visits of a person were there twice, and nothing had said so."""
    person, visit = np.arange(N) // 4, np.arange(N) % 4
    day = (pd.Timestamp("2022-01-01") + pd.to_timedelta(visit * 30 + person % 7, "D")).strftime("%Y-%m-%d")
    cells = {"person": person, "day": day, "visit": [f"V{v}" for v in visit], "arm": [f"A{i % 3}" for i in range(N)]}
    cells |= {"nth": visit + 1, "odd": 2 * visit + 1}
    columns = listing({n: cells[n] for n in ("visit", "arm")})
    columns |= {"day": DAY} | {n: {"kind": "integer", "min": 0, "max": 9} for n in ("nth", "odd")}
    hints = checked(capsys, cells, columns, unit={"column": "person", "order": "day", "records": {"max": 4}})["hints"]
    hints = [h for h in hints if "two records of a person" in h]
    for name, hint in zip(("visit", "nth", "odd"), hints, strict=True):
        assert hint.startswith(f"unit: {name!r} has the same value in two records of a person 0 times")
        assert ("numbers them from 1 on: leave it out" in hint) == (name == "nth"), hint


def test_a_constant_that_counts_a_person_s_records_is_told(capsys):
    """Many households of a release had another size than members, and nothing had said so."""
    home = np.repeat(np.arange(N), np.arange(N) % 4 + 1)
    size, person = np.bincount(home)[home], np.arange(len(home))
    cells = {"home": home, "size": size, "rooms": home % 4 + 1 - (home % 3 == 0), "age": person % 90}
    columns = {n: {"kind": "integer", "min": 0, "max": 99, "missing": False} for n in ("size", "rooms", "age")}
    unit = {"column": "home", "constant": ["size", "rooms"], "records": {"max": 4}}
    (hint,) = (h for h in checked(capsys, cells, columns, unit=unit)["hints"] if "number of records of" in h)
    several = np.unique(home[size > 1]).size
    assert hint.startswith(f"unit: constant: 'size' is the number of records of {several} of {several} persons with")


def test_a_sum_without_a_rule_is_told_and_not_that_its_parts_are_below_it(capsys):
    a, b = np.arange(N) % 90, np.arange(N) * 7 % 31
    cells, rule = {"a": a, "b": b, "total": a + b}, {"total": {"expression": "a + b"}}
    columns = {n: {"kind": "integer", "min": 0, "max": 120} for n in cells}
    told = f"'total' is a + b in all {N:,} rows, and only a rule keeps it: derive: {json.dumps(rule)}"
    assert [h for h in checked(capsys, cells, columns)["hints"] if "total" in h] == [told]
    assert not any("total" in h for h in checked(capsys, cells, columns, derive=rule)["hints"])


@pytest.mark.slow
def test_a_column_that_follows_from_another_without_a_rule_is_told(capsys):
    sparse = {"name": np.array([*"abc"])[np.arange(N) % 3], "code": np.array([1, 7, 20])[np.arange(N) % 3]}
    own = {"name": {"kind": "categorical", "values": [*"abc"]}, "code": {"kind": "integer", "min": 1, "max": 20}}
    assert any("'code' follows from 'name' in" in hint for hint in checked(capsys, sparse, own)["hints"])
    cells = {"score": np.arange(N) % 11, "group": np.array([*"ddddddd", *"ppqq"])[np.arange(N) % 11]}
    columns = {"score": {"kind": "integer", "min": 0, "max": 10}, "group": {"kind": "categorical", "values": [*"dpq"]}}
    told = f"'group' follows from 'score' in {N:,} of the {N:,} rows that tell"
    assert any(told in hint for hint in checked(capsys, cells, columns)["hints"])
    pairs = sorted(set(zip(*(c.tolist() for c in cells.values()), strict=True)))
    possible = [{"columns": ["score", "group"], "possible": pairs}]
    for rule in ({"derive": {"group": {"from": "score", "map": pairs}}}, {"impossible": possible}):
        assert not any("follows from" in hint for hint in checked(capsys, cells, columns, **rule)["hints"])
    persons = {"who": np.arange(N) % 11 + 100 * (np.arange(N) % 5), **cells}
    unit = {"column": "who", "constant": ["group"], "records": {"max": 20}}
    assert any(told in hint for hint in checked(capsys, persons, columns, unit=unit)["hints"]), "a constant too"


@pytest.mark.parametrize(("days", "said"), [(3, True), (120, False)])
def test_lengths_that_an_order_alone_would_lose_are_measured_by_a_proposed_rule(days, said, capsys):
    """In a month both days are drawn anywhere, and scores, which read months, say nothing of stays."""
    came = pd.date_range("2021-01-01", periods=600, freq="1D")[::-1]
    apart = {"came": 0, "left": days, "paid": days + 90}
    cells = {name: [f"{d + pd.Timedelta(n, 'D'):%Y-%m-%d}" for d in came] for name, n in apart.items()}
    rule = '"left": {"from": "came", "length": {"max": 5}}'
    _, text = drafted(cells)
    assert (f"#   {rule}  # half take at most 3 days; without it a release loses that" in text) == said
    assert ('"left"' in "".join(line for line in text.splitlines() if line.startswith("#   - "))) != said
    assert ('#   "paid": {"from": "left", "length": {"max": 90}}' in text) == said, "`ordered` takes no sums"
    hints = checked(capsys, cells)["hints"]
    assert any(f"derive: {{{rule}}}, in place of `ordered`" in h for h in hints) == said
    assert any("'came' ≤ 'left'" in h for h in hints) != said, "one rule or the other"
    columns = {n: {**DAY, "min": "2021-01-01", "max": "2023-12-31"} for n in cells}
    unit = {"column": "who", "order": "left", "records": {"max": 3}}
    hints = checked(capsys, {"who": np.arange(600) // 3, **cells}, columns, unit=unit)["hints"]
    assert not any('"left": {"from"' in h for h in hints), "persons' records follow each other by it"


def test_limits_of_laboratories_are_told_with_what_reads_them(capsys):
    cells = {"crp": ["<0.5" if v < 60 else f"{v / 10:.1f}" for v in RNG.integers(10, 400, N)]}
    _, text = drafted(cells)
    assert "such as '<0.5': they become missing; limits such as <0.5? strip: [\"<\"] reads them as 0.5" in text
    many = {"crp": ["<0.5" if v < 200 else f"{v / 10:.1f}" for v in RNG.integers(10, 400, N)]}
    columns, text = drafted(many)
    assert columns["crp"]["strip"] == ["<"] and 'strip: ["<"] reads them as 0.5' in text
    assert columns["crp"]["min"] <= 0.5 and checked(capsys, many)["columns"]["crp"]["lost"] == 0
    own = "columns: {crp: {kind: float, min: 0, max: 50, strip: [mg]}}"
    assert any('strip: ["mg", "<"]' in hint for hint in checked(capsys, cells, own)["columns"]["crp"]["hints"])


@pytest.mark.parametrize("limits", [0.04, 0.2])
def test_a_word_beside_limits_is_told_and_drafted_as_a_gap(limits, capsys):
    """With `strip: ["<"]` and `missing: false` it counted as 0 to 19, and the draft said nothing of it."""
    cells = {"crp": [str(v) for v in RNG.integers(20, 900, N)], "sex": [*RNG.choice(["f", "m"], N)]}
    for text, share in {"<20": limits, "Not detected": 0.1}.items():
        cells["crp"] = [text if odd else v for v, odd in zip(cells["crp"], RNG.random(N) < share, strict=True)]
    columns, text = drafted(cells)
    assert columns["crp"]["missing"] == ["Not detected"] and "do 'Not detected' mean a gap?" in text
    assert (columns["crp"].get("strip") == ["<"]) == (limits > 0.1) and 'strip: ["<"] reads them as 0.5' in text


@pytest.mark.parametrize(("name", "asked"), [("admission_date", True), ("Aufnahmedatum", True), ("updates", False)])
def test_days_of_sheets_in_a_whole_column_are_asked_about_by_its_name(name, asked, capsys):
    """45000 to 45700 were drafted as whole numbers without a word, and called ok."""
    cells = {name: [str(v) for v in RNG.integers(45000, 45700, N)], "sex": [*RNG.choice(["f", "m"], N)]}
    question = "are the numbers days of a program for sheets, as 44789 is 2022-08-16?"
    assert (question in drafted(cells)[1]) == asked
    assert (question in str(checked(capsys, cells)["columns"][name]["hints"])) == asked


def test_a_unit_that_is_spelled_another_way_is_told_with_its_cure(capsys):
    """60m2 beside 60 m² was lost, and no cure was named."""
    cells = {"area": [f"{v}m2" if i % 5 == 0 else f"{v} m²" for i, v in enumerate(RNG.integers(40, 120, N))]}
    look = checked(capsys, cells, "columns: {area: {kind: integer, min: 40, max: 120, strip: [m²], missing: true}}")
    hints = look["columns"]["area"]["hints"]
    assert 'numbers with \'m2\' beside them: the same unit? strip: ["m2", "m²"]' in hints, hints
    cured = "columns: {area: {kind: integer, min: 40, max: 120, strip: [m2, m²]}}"
    assert checked(capsys, cells, cured)["columns"]["area"]["lost"] == 0


def test_limits_that_count_in_the_bin_above_them_are_warned_of(capsys):
    """Who declared an edge at the limit of 15 had all donors below it released as of 15 to 29, and was told ok."""
    cells = {"ferritin": ["<15" if v < 15 else ">300" if v > 300 else str(v) for v in RNG.integers(1, 400, N)]}
    form = "columns: {ferritin: {kind: integer, strip: ['<', '>'], bins: {edges: %s}}}"
    look = checked(capsys, cells, form % "[0, 15, 30, 300, 400]")["columns"]["ferritin"]
    rows = cells["ferritin"].count("<15")
    said = f"{rows} limits such as '<15' are read as 15, and count in the bin 15 to 29, above what they say"
    assert look["status"] == "warning" and any(said in hint and "[…, 15, 16, …]" in hint for hint in look["hints"])
    for edges in ("[0, 15, 16, 30, 300, 400]", "[0, 10, 30, 400]", "[15, 30, 400]"):
        assert "above what they say" not in str(checked(capsys, cells, form % edges)), edges
    for sign in ("≤", "<="):
        signed = {"ferritin": [t.replace("<", sign) for t in cells["ferritin"]]}
        own = (form % "[0, 15, 30, 300, 400]").replace("'<'", f"'{sign}'")
        assert f"such as '{sign}15' are read as 15, and count in the bin 15 to 29" in str(checked(capsys, signed, own))


@pytest.mark.parametrize(("form", "unit"), [("%d/%m/%Y %H:%M", "minutes"), ("%d/%m/%Y %H:%M:%S", "seconds")])
def test_lengths_of_times_without_seconds_are_of_minutes(form, unit, capsys):
    """Bins of seconds that grow had forty cells of which no time was in most."""
    taken = pd.Timestamp("2022-03-01 06:00:07") + pd.to_timedelta(RNG.integers(0, 30_000_000, N), "s")
    come = taken + pd.to_timedelta(RNG.integers(60, 9_000, N), "s")
    _, text = drafted({"taken": [*taken.strftime(form)], "come": [*come.strftime(form)]})
    assert f'"unit": "{unit}"}}' in text and "half take at most" in text


def test_rules_that_check_proposes_are_yaml_whatever_columns_are_called(capsys):
    """`ordered: [[low, net, high, gross]]` named four columns, of two that hold commas."""
    low = RNG.integers(0, 90, N)
    cells = {"low, net": low, "high, gross": low + RNG.integers(0, 20, N), "top: all": low + 20 + RNG.integers(0, 9, N)}
    (line,) = [h for h in checked(capsys, {n: list(map(str, v)) for n, v in cells.items()})["hints"] if " ≤ " in h]
    assert yaml.safe_load(line[line.index("ordered: ") :]) == {"ordered": [[*cells]]}


def of(texts, cell=lambda r, t: t):
    rng = random.Random(1)
    return [cell(rng, rng.choice(texts)) for _ in range(N)]


def listing(cells):
    return {name: {"kind": "categorical", "values": sorted(set(own))} for name, own in cells.items()}


def test_the_digits_that_a_release_invents_are_said_and_all_may_be_measured(capsys):
    cells = {"plz": [f"{n:05d}" for n in np.random.default_rng(1).integers(1000, 99999, N)]}
    said = "the last 2 digits are drawn evenly: such codes need not exist"
    assert said in drafted(cells)[1]
    for prefix, asked in ((3, True), (5, False)):
        assert asked == (said in str(checked(capsys, cells, f"plz: {{kind: zip, prefix: {prefix}}}")))


def test_homes_are_left_out_by_a_draft_and_warned_of_where_they_are_listed(capsys):
    homes = {"adr": (["Am Anger", "Hauptstr.", "Lindenallee"], "{} {}"), "strasse": (["Sonnfeld", "Au"], "{} {}/3")}
    homes |= {"wo": (["Lange Straße", "Ring", "Gasse"], "{} {}a"), "at": (["High Street", "Mill Lane"], "{1} {0}")}
    cells = {n: of(names, lambda r, t, f=form: f.format(t, r.randrange(1, 9))) for n, (names, form) in homes.items()}
    others = {"street": of(["High Street", "Mill Lane", "Ring", "Am Anger", "Gasse"])}
    others |= {w: of([f"{w} {i}" for i in range(9)]) for w in ("Ward", "Route", "Gemeinde", "Zimmer")}
    columns, cells = drafted(cells | others)[0], cells | others
    assert {*others} <= {*columns} <= {*cells} - {*homes}
    looks = checked(capsys, cells, listing(cells))["columns"]
    assert {n for n, look in looks.items() if "leave_out: [" in str(look["hints"])} == {*homes}


@pytest.mark.slow
def test_a_loss_of_all_numbers_below_zero_is_warned_of_and_marks_get_no_minus(capsys):
    cells = {"saldo": [f"{i}.50-" if i % 5 == 0 else f"{i}.50" for i in range(N)]}
    cells["mark"] = [("3-", "2-", "4+")[i % 3] if i % 20 == 0 else str(i % 6 + 1) for i in range(N)]
    cells["plz"] = [f"{i * 7919 % 100_000:05d}" for i in range(N)]
    declared = {"saldo": {"kind": "float", "min": -1000, "max": 1000, "bins": {"count": 20}}}
    declared |= {"mark": {"kind": "integer", "min": 1, "max": 6}, "plz": {"kind": "zip", "prefix": 1}}
    looks = checked(capsys, cells, declared)["columns"]
    assert "all that are written so are lost, and the mean rises; write it in front" in looks["saldo"]["hints"][0]
    assert "below 0" not in str(looks["mark"]) and "behind: marks?" in str(looks["mark"]["hints"])
    settings = "data=table data.path=t.csv data.schema=t.yaml synthesis=independent console=always selection=pairs"
    assert command("run", *settings.split(), "evaluation.enabled=false", "hydra.run.dir=out") == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "'plz': the last 4 digits are drawn evenly" in said
    assert re.search("lost column 'saldo' loses 20.0 % .* become missing: all that are written so are lost, and", said)


@pytest.mark.slow
def test_the_line_that_looks_like_the_header_is_named_and_a_footer_is_a_row_of_totals(capsys):
    rows = "Nr;Wert;Art\n" + "".join(f"{i};{i % 7},5;a{i % 3}\n" for i in range(N))
    head = "Auszug 2023;;\nPatient;;Befund\n\n"
    fixes = {
        head + rows: "line 4 looks like the header",
        "a,,\n1,2,\n": "empty columns",
        f"sep=;\n{rows}": "the next one",
    }
    for text, fix in fixes.items():
        Path("t.csv").write_text(text)
        assert command("schema", "t.csv") == 1 and fix in capsys.readouterr().err
    Path("t.csv").write_text(f"{rows}Summe;2400,0;\nAnzahl Befunde: {N};;\n")
    assert command("schema", "t.csv", "output=s.yaml") == 0
    assert f"'Anzahl Befunde: {N}' (1 times), 'Summe' (1 times): rows of totals?" in Path("s.yaml").read_text()
    Path("t.csv").write_text(
        "a;b;c;d\n" + "".join(f"{i % 7};{i % 5};x{i % 3};{i % 2}\n" for i in range(N)) + ";;;\n" * 40
    )
    assert command("schema", "t.csv", "output=e.yaml") == 0 and "# 40 rows hold nothing" in Path("e.yaml").read_text()
    assert "40 rows hold nothing in any column" in reply(capsys, "check", "data.path=t.csv", "data.schema=e.yaml").out
    own = {"birth_year": [*map(str, range(1950, 1990)), "Birth year"]}
    hints = checked(capsys, own, "birth_year: {kind: integer, min: 1900, max: 2020}")["columns"]["birth_year"]["hints"]
    assert hints == ["'Birth year', as the column is called: a line of headers? It counts as a record: take it out"]


@pytest.mark.parametrize("text", ["sep=;\nNr;Ort\n1;Köln\n", 'Nr;Ort\n1;"Köln\n2;Bonn\n'])
def test_a_message_names_the_file_and_no_copy_of_it_in_other_letters(text, capsys):
    Path("t.csv").write_text(text, encoding="cp1252")
    assert reply(capsys, "schema", "t.csv", code=1).err.startswith("error: t.csv: ")


@pytest.mark.parametrize(
    ("first", "told"), [("years;kg;", True), ("Age of pupil;Weight;Town", True), ("12;n.a.;a1", False)]
)
def test_a_second_line_of_headers_or_units_is_no_record(first, told, capsys):
    """Each label of such a line was asked about as a gap, and whole numbers were drafted as texts with an *other*."""
    Path("t.csv").write_text(f"age;weight;town\n{first}\n" + "".join(f"{i % 9};{i % 70};a{i % 3}\n" for i in range(N)))
    words = "the first row holds texts in 2 columns of numbers: a second line of headers, or units?"
    assert command("schema", "t.csv", "output=h.yaml") == 0 and (f"# {words}" in Path("h.yaml").read_text()) is told
    assert (words in reply(capsys, "check", "data.path=t.csv", "data.schema=h.yaml").out) is told


def test_units_with_a_point_and_of_money_by_the_hour_are_taken_out():
    """Points of an examination were listed as 200 texts, and wages left out as an id or free text."""
    cells = {"wage": [f"{12 + i % 700 / 100:.2f}".replace(".", ",") + " €/Std" for i in range(N)]}
    cells |= {"points": [f"{i % 101} P." for i in range(N)], "hours": [f"{i % 39 + 1} Std." for i in range(N)]}
    cells |= {"rate": [f"{i % 57 + 20} € mtl." for i in range(N)]}
    cells |= {
        "pay": [f"Fr. {i % 9}'{100 + i}.50" for i in range(N)],
        "lohn": [f"kr. {i % 9}.{100 + i},50" for i in range(N)],
    }
    cells["marks"] = [f"{i % 101}{(' P.', ' Pkt.', '')[i % 3]}" for i in range(N)]
    columns, text = drafted(cells)
    assert columns.pop("pay")["strip"] == ["Fr.", "'"] and columns.pop("lohn")["strip"] == ["kr.", "kr", "."]
    assert columns.pop("rate")["strip"] == ["€ mtl."]
    read = {name: (own["kind"], own["strip"]) for name, own in columns.items()}
    assert read == {"wage": ("float", ["€/Std"]), "points": ("integer", ["P."]), "hours": ("integer", ["Std."])}
    assert re.search(r'"marks"  # .* numbers in several units, (P|Pkt)\. \(', text)


@pytest.mark.parametrize(("zone", "told"), [("+00", True), ("Z", False), ("+02:00", False), ("", False)])
def test_times_that_show_the_clock_of_utc_are_told(zone, told, capsys):
    """A database hands over 17:30 in Vienna as 15:30+00, and neither a draft nor `check` said a word."""
    cells = {"lent": [f"{day:%Y-%m-%d} {i % 24:02}:{i % 60:02}:00{zone}" for i, day in enumerate(DAYS)]}
    assert ("read as UTC's clock shows them" in drafted(cells)[1]) is told
    hints = checked(capsys, cells)["columns"]["lent"].get("hints", [])
    assert any("read as UTC's clock shows them: are hours and days of another place" in h for h in hints) is told


@pytest.mark.slow
def test_days_of_sheets_units_beside_bare_numbers_wide_bins_and_what_differs_within_few_ids(capsys):
    cells = {"day": [str(44562 + i) if i % 10 == 0 else str(np.datetime64("2022-01-01") + i) for i in range(N)]}
    cells["value"] = [f"{i % 90 + 1},{i % 7}{('', ' mg/dL', 'mmol/L')[i % 3]}" if i % 9 else "<0,5" for i in range(N)]
    cells |= {n: [str(i % 100) if i % k else "9000" for i in range(N)] for n, k in (("pay", N), ("due", 50))}
    cells["person_id"] = [f"P{i // 4:04d}" for i in range(N)]
    cells["sex"] = ["m", *("fm"[i // 4 % 2] for i in range(1, N))]  # P0000 is two persons
    assert "numbers in several units, mg/dL (" in drafted(cells)[1]
    money = {"kind": "integer", "bins": {"edges": [0, 50, 100, 200, 10000]}}
    declared = {"day": {"kind": "date", "min": "2022-01-01", "max": "2025-12-31"}, "pay": money, "due": money}
    looks = checked(capsys, cells, declared)["columns"]
    assert any(h.startswith("10.0 % are numbers such as 44789, days of") for h in looks["day"]["hints"])
    assert ["spans" in str(looks[n]["hints"]) for n in ("pay", "due")] == [False, True]
    assert command("schema", "t.csv", "output=u.yaml", "privacy.unit=person_id") == 0
    text = Path("u.yaml").read_text()
    assert "# 'sex' differs within 0.7 % of ids" in text and "sex" in yaml.safe_load(text)["unit"]["constant"]


@pytest.mark.parametrize(
    ("ids", "says"),
    [
        (["1000014", "ID-1000014", "100 0014", "1000015"], "3 ids are 1 but for marks"),
        (["x-0071", "71", "72"], "2 ids are 1 but for marks"),
        (["12-3", "1-23", "A100", "B100", "1.0", "01", "1"], ""),
        (["anna@a.org", "bob@a.org", "7a", "7b", "-", "--"], ""),
    ],
)
def test_ids_of_one_person_in_several_forms_are_warned_of(ids, says, capsys):
    cells = {"who": ids * 20, "sex": ["F", "M"] * (10 * len(ids))}
    columns = "columns: {sex: {kind: categorical, values: [F, M], missing: false}}\nleave_out: [who]"
    looked = checked(capsys, cells, columns, "privacy.unit=who", "privacy.max_records=20")
    said = "\n".join(looked["hints"] + looked.get("warnings", []))
    assert (says in said) if says else "one person?" not in said, said


@pytest.mark.parametrize(
    ("ids", "rules", "says"),
    [
        (["aZ3", "AZ3", "b"], "case", "2 ids are 1 by privacy.unit_id_rules, as 'AZ3' and 'aZ3' are"),
        (["aZ3", "AZ3", "b"], "trim", ""),
        (["7", "07", "007", "b", "B", "c"], "number,case", "5 ids are 2 by"),
        (["", "na", "NA", "b"], "case", ""),
    ],
)
def test_ids_that_rules_join_are_told(ids, rules, says, capsys):
    cells = {"who": ids * 20, "sex": ["F", "M"] * (10 * len(ids))}
    columns = "columns: {sex: {kind: categorical, values: [F, M], missing: false}}\nleave_out: [who]"
    given = ("privacy.unit=who", "privacy.max_records=20", f"privacy.unit_id_rules=[{rules}]")
    hints = "\n".join(checked(capsys, cells, columns, *given)["hints"])
    assert (says in hints and "as a group of two" in hints) if says else "unit_id_rules" not in hints, hints


@pytest.mark.parametrize(("ids", "told"), [([2**60, 2**60 + 1, 3], 2), ([2**53 - 1, 7, 3], 0)])
def test_ids_that_a_gap_made_floats_of_are_told(ids, told):
    """pandas makes floats of whole numbers where one is missing, and the floats of the first two are one."""
    facts = {"columns": {"sex": {"kind": "categorical", "values": ["f"]}}, "leave_out": ["who"]}
    frame = pd.DataFrame({"who": pd.Series([*ids, None], dtype=float), "sex": "f"})
    said = str(pipeline.check(frame, facts, unit="who", max_records=1)["hints"])
    assert (f"the ids of {told} rows are floats of" in said) == (told > 0), said


def test_ids_of_which_no_two_are_one_are_not_grouped(monkeypatch):
    monkeypatch.setattr(unit_look.pa, "table", lambda columns: pytest.fail("the ids are grouped"))
    assert unit_look._one_person(unit_look.pa.array(["12-3", "124", "A100", "B100", "a1"]), PrivacyUnit("who")) == []


def test_words_and_one_digit_again_and_again_are_asked_about_as_no_id_and_no_day(capsys):
    """73 patients whose number was not known, or called TBC, were one person, and 00000000 was an unreadable day."""
    cells = {"who": [f"7{i % 90:09}" for i in range(300)] + ["NOT KNOWN", "9999999999", "TBC"] * 40}
    cells["day"] = [f"2021{1 + i % 12:02}{1 + i % 28:02}" if i % 9 else "00000000" for i in range(420)]
    columns = 'columns: {day: {kind: date, format: "%Y%m%d", min: 2021-01-01, max: 2021-12-31}}\nleave_out: [who]'
    unit = ("privacy.unit=who", "privacy.max_records=5")
    looked = checked(capsys, cells, columns, *unit)
    said = "\n".join(looked["hints"]).casefold()
    assert all(f"'{word}' is the id of 40 records" in said for word in ("not known", "9999999999", "tbc")), said
    names = cells | {"who": [("anna", "bob", "a1")[i % 3] for i in range(420)]}
    assert "is it none?" not in str(checked(capsys, names, columns, *unit)["hints"])
    assert "'00000000': a gap? missing: [\"00000000\"]" in looked["columns"]["day"]["hints"][0]


IN_DIGITS = {
    "%Y%m%d": (8, 'kind: date, format: "%Y%m%d"'),
    "%Y%m": (6, 'kind: date, format: "%Y%m"'),
    "%d%m%Y": (8, 'kind: date, format: "%d%m%Y"'),
    "%m%d%Y": (8, 'kind: date, format: "%m%d%Y"'),
    "%y%m%d": (6, 'kind: date, format: "%y%m%d" or "%d%m%y"'),
    "%d%m%y": (6, 'kind: date, format: "%d%m%y" or "%y%m%d"'),  # 1 to 31 are days and years
    "%Y%m%d%H%M": (12, 'kind: datetime, format: "%Y%m%d%H%M"'),
    "%Y%m%d%H%M%S": (14, 'kind: datetime, format: "%Y%m%d%H%M%S"'),
}


@pytest.mark.slow
def test_days_and_times_in_digits_of_any_form_are_warned_of_and_plain_ones_are_drafted_as_such(capsys):
    times = pd.date_range("2003-01-31 07:10:05", "2031-11-20", 900)
    cells, wide, codes, said = {}, {}, {}, {}
    for i, (form, (width, words)) in enumerate(IN_DIGITS.items()):
        cells[f"at{i}"], said[f"at{i}"] = [f"{t:{form}}" for t in times], words
        cells[f"pay{i}"] = [str(10 ** (width - 1) + 7 * k * 10 ** (width - 5)) for k in range(900)]
        number = {"kind": "integer", "min": 0, "max": 10**width - 1, "bins": {"count": 5}, "missing": False}
        wide |= {f"at{i}": number, f"pay{i}": number}
        if width < 9:
            codes[f"at{i}"] = {"kind": "zip", "digits": width, "prefix": 2, "missing": False}
    found = drafted(cells)[0]
    assert (found["at0"]["kind"], found["at0"]["format"]) == ("date", "%Y%m%d") and found["pay0"]["kind"] == "integer"
    for declared in (wide, wide | codes):
        columns = checked(capsys, cells, declared)["columns"]
        for name, look in columns.items():
            assert look["status"] == ("warning" if name in said else "ok"), (name, look)
            assert name not in said or look["hints"][0].endswith(said[name]), look


@pytest.mark.slow
def test_an_end_of_the_numbers_that_lies_apart_and_that_many_rows_hold_is_asked_about(capsys):
    """A mean income of 25,000 was released as 1,159,276, and the column was called ok."""
    ends = {
        "pay": (lambda i: 20_000 + 37 * (i * i % 1000), "8300000", True),
        "code": (lambda i: 20_000 + 37 * (i * i % 1000), "9999999", True),
        "low": (lambda i: f"{34 + i % 50 / 10:.1f}", "0", True),
        "high": (lambda i: f"{15 + i % 250 / 10:.1f}", "99.9", True),
        "near": (lambda i: i % 60, "75", False),
        "age": (lambda i: 18 + i % 70, "0", False),
        "steps": (lambda i: 5 * (i % 12), "100", False),
    }
    field = {"kind": "float", "bins": {"edges": [0, 50, 100, 1000, 99999, 10000001]}}
    for every in (10, 500):
        cells = {n: [odd if i % every == 0 else usual(i) for i in range(2000)] for n, (usual, odd, _) in ends.items()}
        columns = checked(capsys, cells, dict.fromkeys(ends, field))["columns"]
        for name, (_, odd, gap) in ends.items():
            often = gap and (every == 10 or name == "code")  # few rows of a usual code of gaps are asked about too
            asked = [f'{odd} ({2000 // every} times): a gap? missing: ["{odd}"]'] if often else []
            assert [h for h in columns[name]["hints"] if "a gap?" in h] == asked, "one of a thousand may be a tail"


def test_an_end_far_below_is_asked_about_and_so_are_bounds_that_leave_most_bins_empty(capsys):
    """Heights of 0 were called ok, and three years 0 made two bins of 32 of all others."""
    heights, years = norm.ppf((np.arange(2000) + 0.5) / 2000, 167, 11).round(), [1950 + i % 70 for i in range(2000)]
    heights[::50], years[:3] = 0, [0, 0, 0]
    field = {"kind": "integer", "min": 0, "max": 2030, "bins": {"count": 32}}
    columns = checked(capsys, {"cm": heights, "year": years}, {"cm": {**field, "max": 220}, "year": field})["columns"]
    assert columns["cm"]["hints"] == ['0 (40 times): a gap? missing: ["0"]']
    (hint,) = columns["year"]["hints"]
    assert hint.startswith("98 % of the numbers lie in 2 of 32 bins: are min and max wider than need be")


def test_cells_that_cannot_be_read_are_not_called_empty(capsys):
    """A court that files days as numbers of a sheet was said to leave the day empty, with a rule that keeps it so."""
    days = pd.date_range("2021-01-01", periods=900).strftime("%Y-%m-%d").tolist()
    cells = {"court": [f"court {i % 6}" for i in range(900)], "fine": [(i * 7) % 50 for i in range(900)]}
    cells["filed"] = ["" if i % 6 == 1 else str(44_000 + i) if i % 6 == 2 else day for i, day in enumerate(days)]
    _, text = drafted(cells)
    said = checked(capsys, cells)
    assert "cannot be read" in guess_of(text, "filed") and "empty in" not in text and "empty in" not in str(said)
    cells["filed"] = ["" if i % 6 < 3 else day for i, day in enumerate(days)]
    _, text = drafted(cells)
    assert "empty in 450 of 450 such rows" in text and "empty in at least 450" in str(checked(capsys, cells))


def test_numbers_below_zero_as_accounts_write_them_are_told_with_their_cure(capsys):
    cells = {"due": [("7.50-", "€3.20-", "(4.10)", "12.30")[i % 4] for i in range(400)]}
    cells["code"] = ["-" if i % 4 else "(a)" for i in range(400)]
    number = "{kind: float, min: -50, max: 50, bins: {count: 5}, strip: [€]}"
    columns = checked(capsys, cells, f"columns: {{due: {number}, code: {number}}}", "data.max_unplaced=1")["columns"]
    assert columns["due"]["hints"][0].startswith("100.0 % of what cannot be read are numbers below 0, with the minus")
    assert "below 0" not in str(columns["code"]["hints"])


def test_times_with_a_zone_are_warned_of_since_the_clock_of_utc_is_read(capsys):
    """An evening in Los Angeles stood in a release as 23 o'clock, and on the next day."""
    at = pd.to_datetime(["2024-01-31 15:30", "2024-06-30 16:30"] * 50)
    schema = {"columns": {"at": {"kind": "datetime", "min": "2024-01-01", "max": "2024-12-31", "bins": "hour_of_day"}}}
    for zone, status in (("America/Los_Angeles", "warning"), (None, "ok")):
        column = pipeline.check(pd.DataFrame({"at": at.tz_localize(zone)}), schema)["columns"]["at"]
        told = "as UTC's clock shows them" in str(column["hints"])
        assert (column["status"], told) == (status, zone is not None)


def test_cents_beside_euros_and_thousands_beside_ones_are_warned_of(capsys):
    many = [f"{x:.2f}" for x in RNG.lognormal(6, 0.6, 3000)]
    due = [f"{100 + i % 70}.50" for i in range(3000)]
    cells = {"due": due, "fee": [t.removesuffix(".50") if i % 3 == 0 else t for i, t in enumerate(due)], "rent": many}
    for name, own, every in (("paid", due, 3), ("lent", many, 200)):
        cells[name] = [t.replace(".", "") if i % every == 0 else t for i, t in enumerate(own)]
    cells["income"] = [f"{20 + i % 20}.5" if i % 9 == 0 else f"{20000 + 7 * i}" for i in range(3000)]
    bounds = {"due": 500, "fee": 500, "rent": 20000, "paid": 20000, "lent": 20000, "income": 50000}
    amounts = {name: {"kind": "float", "min": 0, "max": high, "bins": {"count": 20}} for name, high in bounds.items()}
    columns = checked(capsys, cells, amounts, "data.max_unplaced=1")["columns"]
    asked = "cents beside euros|two units, thousands beside ones"
    assert [n for n, c in columns.items() if re.search(asked, str(c["hints"]))] == ["paid", "lent", "income"]
    assert columns["paid"]["status"] == columns["income"]["status"] == "warning"
    assert "1,000 numbers without decimals are about 100 times the 2,000 with" in columns["paid"]["hints"][0]


def test_a_form_with_day_and_month_changed_over_is_named_instead_of_the_declared_one(capsys):
    """Both beside each other read 03/04 one way, whichever is meant, and nothing is lost any more."""
    days = [f"{m:02}/{d:02}/2021" for m in range(1, 13) for d in range(1, 29)]
    day = 'columns: {day: {kind: date, min: 2021-01-01, max: 2021-12-31, bins: month, format: "%d/%m/%Y"}}'
    hints = checked(capsys, {"day": days}, day, "data.max_unplaced=1")["columns"]["day"]["hints"]
    assert any('formats: ["%m/%d/%Y"] instead?' in hint for hint in hints), hints


def test_a_plan_names_an_id_that_is_left_out_the_person_s_before_a_case_s_where_rows_are_the_units(capsys):
    columns = "columns: {sex: {kind: categorical, values: [F, M], missing: false}}\nleave_out: [case_no, client]"
    Path("t.yaml").write_text(f"{FORM}{columns}\n")
    plan = ["plan", "data=table", "data.schema=t.yaml"]
    out = reply(capsys, *plan).out
    assert "'client' looks like an id: privacy.unit=client" in out and "case_no" not in out
    assert "looks like an id" not in reply(capsys, *plan, "privacy.unit=client", "privacy.max_records=1").out


def test_fit_without_a_folder_names_no_file_that_is_gone_and_shows_the_look_where_asked(capsys):
    frame = pd.DataFrame({"who": ["1000014", "ID-1000014", "7", "8"] * 50, "sex": ["F", "M"] * 100})
    columns = {"sex": {"kind": "categorical", "values": ["F", "M"], "missing": False}}
    schema = {"source": "a form", "confirmed_public": True, "columns": columns, "leave_out": ["who"]}
    for console, shown in (("terminal", False), ("always", True)):
        pipeline.fit(frame, schema, epsilon=1, unit="who", max_records=50, console=console)
        said = " ".join(capsys.readouterr().err.split())
        assert ("ids are 1 but for marks in them" in said) is shown, said
        assert ('console="always" shows the warnings' in said) is not shown, said
        assert "internal/check.txt (NOT private)" not in said
