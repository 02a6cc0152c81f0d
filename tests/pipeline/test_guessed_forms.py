"""Times of the day, seconds since 1970, codes with letters, exchanged columns and relations: a draft and `check`."""

from __future__ import annotations

import re
from collections import Counter

import numpy as np
import pandas as pd
import pytest
import yaml

from mechanisms.public.tables.doubts import numbers_apart
from mechanisms.public.tables.text_forms import NumberForm
from tests.pipeline.looks import checked, drafted

pytestmark = pytest.mark.usefixtures("folder")
N = 600
RNG = np.random.default_rng(5)
DAYS = pd.Timestamp("2022-01-01") + pd.to_timedelta(RNG.integers(0, 700, N), "D")
NEAR, FAR, SWAPPED = RNG.normal(8.5, 0.2, N).round(5), RNG.normal(48.3, 0.2, N).round(5), np.arange(N) % 50 == 0


def test_times_seconds_staff_and_codes_with_letters_are_drafted_as_what_they_are(capsys):
    times = [divmod(int(minute), 60) for minute in RNG.integers(0, 1440, N)]
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
    ids = set(re.findall(r'"(\w+)"  # about \d+ distinct .*: an id, by its name', text))
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


@pytest.mark.parametrize(
    "numbers", [NEAR, RNG.lognormal(7, 1.2, N), RNG.exponential(50, N) * (NEAR > 8.3), [*NEAR, 99.0]]
)
def test_amounts_and_a_lone_number_are_no_exchanged_columns(numbers):
    assert not numbers_apart(Counter(f"{x:.3f}" for x in numbers), NumberForm())


def test_relations_that_rows_keep_and_no_rule_does_are_told(capsys):
    until = DAYS + pd.to_timedelta(1 + np.arange(N) % 30, "D")
    names = np.array(["Mo", "Di", "Mi", "Do", "Fr", "Sa", "So"])
    cells = {"start": DAYS.strftime("%Y-%m-%d"), "end": until.strftime("%Y-%m-%d"), "tag": names[DAYS.day_of_week]}
    cells["tag"][:3] = names[(DAYS[:3].day_of_week + 1) % 7]
    kind = "kind: date, min: 2022-01-01, max: 2024-01-31, bins: month"
    tags = f"kind: categorical, values: [{', '.join(names)}]"
    columns = f"columns: {{start: {{{kind}}}, end: {{{kind}}}, tag: {{{tags}}}}}"
    lines = checked(capsys, cells, columns)["hints"]
    assert any("'start' ≤ 'end' in 600 of the 600 rows" in h and 'ordered: [["start", "end"]]' in h for h in lines)
    weekday = 'calendar: {"start": {"weekday": "tag"}}'
    assert any("'tag' is the weekday of 'start' in 597 of 600" in h and weekday in h for h in lines)
    ruled = checked(capsys, cells, f"{columns}\nordered: [[start, end]]")["hints"]
    assert not any("'start' ≤ 'end'" in h for h in ruled)
    rare = f"{columns[:-1]}, gone: {{{kind}}}}}"  # empty in nearly all rows, beside a list of seven texts
    cells["gone"] = np.where(np.arange(N) % 60, "", cells["end"])
    assert not any("weekday of 'gone'" in h for h in checked(capsys, cells, rare)["hints"])
    twice = f"columns: {{start: {{{kind}}}, day: {{{kind}, format: '%d.%m.%y'}}}}"
    hints = checked(capsys, {"start": cells["start"], "day": DAYS.strftime("%d.%m.%y")}, twice)["hints"]
    assert any("'start' and 'day' are the same in 600 of the 600 rows that hold both" in h for h in hints)


def test_questions_that_a_form_skips_without_a_rule_are_told_by_what_they_share(capsys):
    job = np.array(["jobless", "clerk", "nurse"])[np.arange(N) % 3]
    paid = {n: np.where(job == "jobless", "", "1200") for n in ("wage", "tax", "rest", "gift")}
    columns = f"columns: {{job: {{kind: categorical, values: [{', '.join({*job})}]}}, "
    columns += ", ".join(f"{n}: {{kind: integer, min: 0, max: 9000, bins: {{count: 9}}}}" for n in paid) + "}"
    told = "empty in at least 200 of the 200 rows with 'job' = jobless"
    (hint,) = [h for h in checked(capsys, {"job": job, **paid}, columns)["hints"] if told in h]
    assert hint.startswith("'wage', 'tax', 'rest' and 1 more: ") and hint.endswith("as a draft writes it")
    one = ", ".join(f"{{job: jobless, {n}: {{}}}}" for n in ("wage", "tax", "rest"))
    hints = checked(capsys, {"job": job, **paid}, f"{columns}\nimpossible: [{one}]")["hints"]
    (hint,) = [h for h in hints if told in h]
    assert hint.startswith("'gift': ") and hint.endswith('impossible: [{"job": ["jobless"], "gift": {}}]')
    code = {"job": np.array([1, 2, 3])[np.arange(N) % 3], "paid": np.array([1, 2, 2])[np.arange(N) % 3]}
    whole = "kind: integer, min: 1, missing: false"
    made = (
        f"columns: {{job: {{{whole}, max: 3}}, paid: {{{whole}, max: 2}}, wage: {{kind: integer, min: 0, max: 9000}}}}"
    )
    made += "\nderive: {paid: {from: job, map: {1: 1, 2: 2, 3: 2}}}\n"
    hints = checked(capsys, {**code, "wage": paid["wage"]}, f"{made}impossible: [{{paid: 1, wage: {{}}}}]")["hints"]
    assert not any("without the rule" in h for h in hints), "a rule about what a map makes binds the map's source"
    assert any("'job' = 1, and" in h for h in checked(capsys, {**code, "wage": paid["wage"]}, made)["hints"])
    persons = {"who": np.arange(N) // 2, "year": 2020 + np.arange(N) % 2}
    fixed = {"job": np.repeat(job[: N // 2], 2), "wage": np.repeat(paid["wage"][: N // 2], 2)}
    unit = f"\nunit: {{column: who, constant: {[*fixed]}, records: {{max: 2}}}}\n"
    own = columns[: columns.index(", tax")] + ", year: {kind: integer, min: 2020, max: 2021}}" + unit
    for rule, there in (("", True), ("impossible: [{job: jobless, wage: {}}]", False)):
        hints = checked(capsys, persons | fixed, own + rule)["hints"]
        assert any(h.startswith("'wage': empty in") for h in hints) is there, "a rule about constants alone is a rule"


def test_records_of_a_person_that_never_overlap_are_told_where_no_rule_keeps_them_apart(capsys):
    start = pd.Timestamp("2022-01-01") + pd.to_timedelta(np.arange(N) // 100 * 100 + np.arange(N) % 7, "D")
    end = start + pd.to_timedelta(np.where(np.arange(N) == 3, 200, 20), "D")
    cells = {"who": np.arange(N) % 100, "start": start.strftime("%Y-%m-%d"), "end": end.strftime("%Y-%m-%d")}
    kind = "kind: date, min: 2022-01-01, max: 2024-01-31, bins: month"
    schema = f"columns: {{start: {{{kind}}}, end: {{{kind}}}}}\nordered: [[start, end]]\n"
    schema += "unit: {column: who, order: start, records: {max: 6}}"
    told = "'start' comes before 'end' of the person's record before in 1 of 500 steps"
    assert sum(told in hint for hint in checked(capsys, cells, schema)["hints"]) == 1
    cells["end"] = (start + pd.to_timedelta(np.where(np.arange(N) % 9, 20, 200), "D")).strftime("%Y-%m-%d")
    assert not any("record before" in hint for hint in checked(capsys, cells, schema)["hints"])


def test_a_column_that_follows_from_another_without_a_rule_is_told(capsys):
    sparse = {"name": np.array([*"abc"])[np.arange(N) % 3], "code": np.array([1, 7, 20])[np.arange(N) % 3]}
    own = "columns: {name: {kind: categorical, values: [a, b, c]}, code: {kind: integer, min: 1, max: 20}}"
    assert any("'code' follows from 'name' in" in hint for hint in checked(capsys, sparse, own)["hints"])
    cells = {"score": np.arange(N) % 11, "group": np.array([*"ddddddd", *"ppqq"])[np.arange(N) % 11]}
    columns = "columns: {score: {kind: integer, min: 0, max: 10}, group: {kind: categorical, values: [d, p, q]}}"
    told = f"'group' follows from 'score' in {N:,} of the {N:,} rows that tell"
    assert any(told in hint for hint in checked(capsys, cells, columns)["hints"])
    pairs = ", ".join(f"[{s}, {g}]" for s, g in sorted(set(zip(*(c.tolist() for c in cells.values()), strict=True))))
    derive = f"derive: {{group: {{from: score, map: [{pairs}]}}}}"
    for rule in (derive, f"impossible: [{{columns: [score, group], possible: [{pairs}]}}]"):
        assert not any("follows from" in hint for hint in checked(capsys, cells, f"{columns}\n{rule}")["hints"])
    persons = {"who": np.arange(N) % 11 + 100 * (np.arange(N) % 5), **cells}
    unit = "unit: {column: who, constant: [group], records: {max: 20}}"
    assert any(told in hint for hint in checked(capsys, persons, f"{columns}\n{unit}")["hints"]), "a constant too"


@pytest.mark.parametrize(("days", "said"), [(3, True), (40, False)])
def test_lengths_that_are_lost_inside_bins_are_told_of(days, said, capsys):
    """In a month both days are drawn anywhere, and scores, which read months, say nothing of stays."""
    came = pd.date_range("2021-01-01", periods=600, freq="1D")[::-1]
    apart = {"came": 0, "left": days, "paid": days + 90}
    cells = {name: [f"{d + pd.Timedelta(n, 'D'):%Y-%m-%d}" for d in came] for name, n in apart.items()}
    lost = "how long it was is lost inside bins, mostly less than half of one: came to left; "
    _, text = drafted(cells)
    assert (f"# {lost}" in text) == said == ("how long" in text)
    assert any(hint.startswith(lost) for hint in checked(capsys, cells)["hints"]) == said


def test_rules_that_check_proposes_are_yaml_whatever_columns_are_called(capsys):
    """`ordered: [[low, net, high, gross]]` named four columns, of two that hold commas."""
    low = RNG.integers(0, 90, N)
    cells = {"low, net": low, "high, gross": low + RNG.integers(0, 20, N), "top: all": low + 20 + RNG.integers(0, 9, N)}
    (line,) = [h for h in checked(capsys, {n: list(map(str, v)) for n, v in cells.items()})["hints"] if " ≤ " in h]
    assert yaml.safe_load(line[line.index("ordered: ") :]) == {"ordered": [[*cells]]}
