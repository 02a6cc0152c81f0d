"""Codes that lost zeros, one value in several spellings, homes, cents, and losses of one form: `check` tells each."""

from __future__ import annotations

import json
import random
import re

import numpy as np
import pytest

from mechanisms.public.schema.table_schema import parse_schema
from mechanisms.public.tables.doubts import numbers_apart
from mechanisms.public.tables.persons import said_persons
from mechanisms.public.tables.text_forms import NumberForm
from tests.pipeline.conftest import command
from tests.pipeline.looks import checked, drafted

pytestmark = pytest.mark.usefixtures("folder")
TOWNS = ["01001", "01002", "01003", "01017", "02001", "02005", "09120"]
N = 800


def of(texts, cell=lambda r, t: t):
    """N cells, each one of the texts."""
    rng = random.Random(1)
    return [cell(rng, rng.choice(texts)) for _ in range(N)]


def listing(cells):
    """A list of all texts of a column."""
    return {"kind": "categorical", "values": sorted(set(cells))}


@pytest.fixture(scope="module")
def spelled(tmp_path_factory):
    """Columns with one value in several spellings, and some without."""
    return {
        "town": of(TOWNS, lambda r, t: t if r.random() < 0.8 else t.lstrip("0")),
        "age": of(["45", "46", "47", "45 J", "46 J", "47 J", "5 Mo"]),
        "class": of(["1a", "2b", "3c", "1 A", "2.B", "3-c"]),
        "level": of(["I", "II", "III", "1", "2", "3"]),
        "name": of(["Weiß", "WEISS", "Braun"]),
        "stage": of(["1", "2", "1a", "1b", "2a"]),  # which are five stages
        "room": of(["A1", "A11", "B1", "B 2"]),
    }


def test_one_value_in_two_spellings_is_asked_about_and_no_code_is_invented(capsys, spelled):
    looks = checked(capsys, spelled, {name: listing(cells) for name, cells in spelled.items()})["columns"]
    asked = {n: " ".join(h for h in look["hints"] if "in several spellings" in h) for n, look in looks.items()}
    assert "kind: zip" not in asked["town"] and all(f'"{t}": ["{t[1:]}"]' in asked["town"] for t in TOWNS)
    pairs = {"age": '"47": ["47 J"]', "class": '"3-c": ["3c"]', "level": '"2": ["II"]', "name": '"WEISS": ["Weiß"]'}
    assert all(words in asked[name] for name, words in pairs.items()), asked
    assert not asked["stage"] and not asked["room"]


def test_a_cure_by_spellings_reads_the_table(capsys, spelled):
    """`spellings: common` was told of codes that lost zeros, and does not read them."""
    for name, values in (("town", TOWNS), ("class", ["1a", "2b", "3c"])):
        declared = {"kind": "categorical", "values": values, "missing": False}
        look = checked(capsys, {name: spelled[name]}, {name: declared}, "data.max_unplaced=1")["columns"][name]
        (hint,) = (h for h in look["hints"] if "spellings differ" in h)
        cure = json.loads(hint.split("spellings: ")[-1])
        look = checked(capsys, {name: spelled[name]}, {name: declared | {"spellings": cure}})["columns"][name]
        assert look["lost"] == 0


def test_the_digits_that_a_release_invents_are_said_and_all_may_be_measured(capsys):
    cells = {"plz": [f"{n:05d}" for n in np.random.default_rng(1).integers(1000, 99999, N)]}
    said = "the last 2 digits are drawn evenly: such codes need not exist"
    assert said in drafted(cells)[1]
    for prefix, hints in ((3, [said]), (4, ["the last digit is drawn evenly: such codes need not exist"]), (5, [])):
        look = checked(capsys, cells, f"plz: {{kind: zip, prefix: {prefix}}}")["columns"]["plz"]
        assert [h for h in look["hints"] if "drawn" in h] == hints
    facts = parse_schema({"name": "t", "columns": {"plz": {"kind": "zip", "prefix": 5}}}, where="t", folder=None)
    assert facts["plz"].size == 100_001 and "prefix: 5" in facts.to_yaml()


def test_a_rich_person_silences_no_question_about_two_units():
    rng = np.random.default_rng(2)
    pay = np.round(rng.lognormal(7, 0.3, 3000) * np.where(rng.random(3000) < 0.4, 12, 1))
    for rich in (0, 6, 60):
        texts = {f"{x:.0f}": 1 for x in pay[rich:]} | ({"1176000": rich} if rich else {})
        assert "two units?" in " ".join(numbers_apart(texts, NumberForm())), rich
    one = {f"{x:.0f}": 1 for x in rng.lognormal(7, 0.8, 3000)} | {"1176000": 60}
    assert not numbers_apart(one, NumberForm())


def test_few_cents_among_euros_are_asked_about(capsys):
    rng = np.random.default_rng(3)
    cells = {"due": [f"{x:.2f}" for x in rng.lognormal(6, 0.6, 3000)]}
    cells["paid"] = [t.replace(".", "") if i % 200 == 0 else t for i, t in enumerate(cells["due"])]
    cells["round"] = [f"{50 * (i % 7 + 1)}" if i % 200 == 0 else t for i, t in enumerate(cells["due"])]
    number = {"kind": "float", "min": 0, "max": 20000, "bins": {"count": 20}}
    looks = checked(capsys, cells, dict.fromkeys(cells, number), "data.max_unplaced=1")["columns"]
    assert [n for n, look in looks.items() if "cents beside euros" in str(look["hints"])] == ["paid"]


HOMES = {
    "adr": (["Am Anger", "Hauptstr.", "Kirchweg", "Lindenallee"], "{} {}"),
    "wo": (["Lange Straße", "Ring", "Gasse"], "{} {}a"),
    "at": (["High Street", "Mill Lane", "Station Rd"], "{1} {0}"),
    "strasse": (["Sonnfeld", "Oberau"], "{} {}/3"),
    "domicile": (["rue du Lac", "quai Sud"], "{1} {0}"),
}


def test_homes_are_left_out_by_a_draft_and_warned_of_where_they_are_listed(capsys):
    cells = {n: of(names, lambda r, t, f=form: f.format(t, r.randrange(1, 9))) for n, (names, form) in HOMES.items()}
    others = {"street": ["High Street", "Mill Lane", "Ring", "Am Anger", "Gasse"]}
    others |= {"ward": [f"Ward {i}" for i in range(9)], "route": [f"Route {i}" for i in range(9)]}
    others |= {"dose": [f"{i} mg" for i in range(9)], "place": [f"Gemeinde {i}" for i in range(9)]}
    others |= {"grade": ["1st grade", "2nd grade", "3 a", "4 b", "5 c"], "bed": [f"Zimmer {i} B" for i in range(9)]}
    cells |= {name: of(texts) for name, texts in others.items()}
    columns = drafted(cells)[0]
    assert not {*HOMES} & {*columns} and {*others} <= {*columns}
    looks = checked(capsys, cells, {name: listing(own) for name, own in cells.items()})["columns"]
    assert {n for n, look in looks.items() if "leave_out: [" in str(look["hints"])} == {*HOMES}
    assert "of the 5 listed" in said_persons("x", [f"Ring {i}" for i in range(5)], "listed")


def test_a_loss_of_all_numbers_below_zero_is_warned_of_and_marks_get_no_minus(capsys):
    cells = {"saldo": [f"{i}.50-" if i % 5 == 0 else f"{i}.50" for i in range(N)]}
    cells["mark"] = [("3-", "2-", "4+")[i % 3] if i % 20 == 0 else str(i % 6 + 1) for i in range(N)]
    declared = {"saldo": {"kind": "float", "min": -1000, "max": 1000, "bins": {"count": 20}}}
    declared |= {"mark": {"kind": "integer", "min": 1, "max": 6}, "plz": {"kind": "zip", "prefix": 1}}
    cells["plz"] = [f"{i * 7919 % 100_000:05d}" for i in range(N)]
    looks = checked(capsys, cells, declared, "data.max_unplaced=0.5")["columns"]
    assert "all that are written so are lost, and the mean rises; write it in front" in looks["saldo"]["hints"][0]
    assert "below 0" not in str(looks["mark"]) and "marks such as 3-" in str(looks["mark"]["hints"])
    settings = ["data=table", "data.path=t.csv", "data.schema=t.yaml", "data.max_unplaced=0.5", "synthesis=independent"]
    settings += ["console=always", "evaluation.enabled=false", "hydra.run.dir=out", "selection=pairs"]
    assert command("run", *settings) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "'plz': the last 4 digits are drawn evenly" in said
    assert re.search("lost column 'saldo' loses 20.0 % .* become missing: all that are written so are lost, and", said)
