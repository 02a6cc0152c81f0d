"""Codes that lost zeros, one value in several spellings, homes, cents, and losses of one form: `check` tells each."""

import json
import random
import re
from pathlib import Path

import numpy as np
import pytest
import yaml

from mechanisms.public.tables.doubts import numbers_apart
from mechanisms.public.tables.text_forms import NumberForm
from tests.pipeline.conftest import command
from tests.pipeline.looks import checked, drafted

pytestmark = pytest.mark.usefixtures("folder")
TOWNS, N = ["01001", "01002", "01003", "01017", "02001", "02005", "09120"], 800


def of(texts, cell=lambda r, t: t):
    rng = random.Random(1)
    return [cell(rng, rng.choice(texts)) for _ in range(N)]


def listing(cells):
    return {name: {"kind": "categorical", "values": sorted(set(own))} for name, own in cells.items()}


def test_one_value_in_two_spellings_is_asked_about_and_no_code_is_invented(capsys):
    cells = {"town": of(TOWNS, lambda r, t: t if r.random() < 0.8 else t.lstrip("0"))}
    texts = {"age": ["45", "46", "47", "45 J", "46 J", "47 J", "5 Mo"], "class": ["1a", "2b", "1 A", "2.B"]}
    texts |= {"level": ["I", "II", "III", "1", "2", "3"], "name": ["Weiß", "WEISS", "Braun"]}
    texts |= {"stage": ["1", "2", "1a", "1b", "2a"], "room": ["A1", "A11", "B1", "B 2"]}  # which differ
    cells |= {name: of(own) for name, own in texts.items()}
    looks = checked(capsys, cells, listing(cells))["columns"]
    asked = {n: " ".join(h for h in look["hints"] if "in several spellings" in h) for n, look in looks.items()}
    assert "kind: zip" not in asked["town"] and all(f'"{t}": ["{t[1:]}"]' in asked["town"] for t in TOWNS)
    pairs = {"age": '"47": ["47 J"]', "class": '"2.B": ["2b"]', "level": '"2": ["II"]', "name": '"WEISS": ["Weiß"]'}
    assert all(words in asked[name] for name, words in pairs.items()) and not asked["stage"] + asked["room"], asked
    for name, values in (("town", TOWNS), ("class", ["1a", "2b"])):  # the cure reads the table; common would not
        declared = {"kind": "categorical", "values": values}
        look = checked(capsys, {name: cells[name]}, {name: declared}, "data.max_unplaced=1")["columns"][name]
        declared["spellings"] = json.loads(next(h for h in look["hints"] if "differ" in h).split("spellings: ")[-1])
        assert checked(capsys, {name: cells[name]}, {name: declared})["columns"][name]["lost"] == 0 < look["lost"]


def test_the_digits_that_a_release_invents_are_said_and_all_may_be_measured(capsys):
    cells = {"plz": [f"{n:05d}" for n in np.random.default_rng(1).integers(1000, 99999, N)]}
    said = "the last 2 digits are drawn evenly: such codes need not exist"
    assert said in drafted(cells)[1]
    for prefix, asked in ((3, True), (5, False)):
        assert asked == (said in str(checked(capsys, cells, f"plz: {{kind: zip, prefix: {prefix}}}")))


def test_a_rich_person_silences_no_question_about_two_units_and_few_cents_are_asked_about(capsys):
    rng = np.random.default_rng(2)
    pay = np.round(rng.lognormal(7, 0.3, 3000) * np.where(rng.random(3000) < 0.4, 12, 1))
    for rich in (0, 6, 60):
        texts = {f"{x:.0f}": 1 for x in pay[rich:]} | ({"1176000": rich} if rich else {})
        assert "two units?" in " ".join(numbers_apart(texts, NumberForm())), rich
    one = {f"{x:.0f}": 1 for x in rng.lognormal(7, 0.8, 3000)} | {"1176000": 60}
    assert not numbers_apart(one, NumberForm())
    cells = {"due": [f"{x:.2f}" for x in rng.lognormal(6, 0.6, 3000)]}
    cells["paid"] = [t.replace(".", "") if i % 200 == 0 else t for i, t in enumerate(cells["due"])]
    number = {"kind": "float", "min": 0, "max": 20000, "bins": {"count": 20}}
    looks = checked(capsys, cells, dict.fromkeys(cells, number), "data.max_unplaced=1")["columns"]
    assert [n for n, look in looks.items() if "cents beside euros" in str(look["hints"])] == ["paid"]


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


def test_the_line_that_looks_like_the_header_is_named_and_a_footer_is_a_row_of_totals(capsys):
    rows = "Nr;Wert;Art\n" + "".join(f"{i};{i % 7},5;a{i % 3}\n" for i in range(N))
    head = "Auszug 2023;;\nPatient;;Befund\n\n"
    for text, fix in ((head + rows, "line 4 looks like the header"), ("a,,\n1,2,\n", "a name of its own")):
        Path("t.csv").write_text(text)
        assert command("schema", "t.csv") == 1 and fix in capsys.readouterr().err
    Path("t.csv").write_text(f"{rows}Summe;2400,0;\nAnzahl Befunde: {N};;\n")
    assert command("schema", "t.csv", "output=s.yaml") == 0
    assert f"'Anzahl Befunde: {N}' (1 times), 'Summe' (1 times): rows of totals?" in Path("s.yaml").read_text()
    own = {"birth_year": [*map(str, range(1950, 1990)), "Birth year"]}
    hints = checked(capsys, own, "birth_year: {kind: integer, min: 1900, max: 2020}")["columns"]["birth_year"]["hints"]
    assert hints == ["'Birth year', as the column is called: a line of headers? It counts as a record: take it out"]


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
    assert "# 'sex' differs within 0.5 % of ids" in text and "sex" in yaml.safe_load(text)["unit"]["constant"]
