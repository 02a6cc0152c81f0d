"""Columns that were read in one way, mean another, and were called ok: draft and `check` ask about each."""

import datetime
import json
import random
import unicodedata
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from mechanisms.public.schema.table_schema import load_schema
from mechanisms.public.tables.decode import labels
from mechanisms.public.tables.persons import addresses, may_be_names, persons_in_words
from tests.pipeline.conftest import command, reply
from tests.pipeline.looks import checked, drafted, guess_of

pytestmark = pytest.mark.usefixtures("folder")

N = 600


def made(cell, seed=1):
    rng = random.Random(seed)
    return [cell(rng, i) for i in range(N)]


def parted(texts):
    """The texts between bars."""
    return texts.split("|")


def days(form):
    """Days of two years, as a function of one writes them."""
    return made(lambda rng, _: form(pd.Timestamp("2023-01-01") + pd.Timedelta(days=rng.randrange(700))))


MAY_MEAN = [
    (made(lambda r, _: f"{r.randrange(1, 10)}.{r.randrange(100, 1000)}"), "they may mean 1234 or 1.234"),
    (days(lambda d: f"{d.month}{d.day:02}{d.year}"), "days without a zero in front, as 8292024"),
    (days(lambda d: f"{d.day}{d.month:02}{d.year}"), "days without a zero in front, as 8292024"),
    (days(lambda d: f"{d.month}{d.day}{d.year}"), "days without a zero in front, as 8292024"),
    (days(lambda d: f"{d.day}{d.month:02}{d.year % 100}"), "days without a zero in front, as 70524"),
    (days(lambda d: f"{d.month}.{d.year}"), "are months, as 5.2021"),
    (days(lambda d: f"{d.year}.{d.month:02}"), "are months, as 5.2021"),
    (made(lambda r, i: str(r.randrange(30, 100) + 1900 * (i % 4 > 0))), "years of two digits, as 58"),
    (made(lambda r, i: f"{r.uniform(36, 40):.1f}" if i % 3 else f"{r.uniform(97, 104):.1f}"), "°C beside °F?"),
    (made(lambda r, i: f"{r.uniform(150, 200):.0f}" if i % 3 else f"{r.uniform(59, 79):.0f}"), "inches beside cm?"),
    (made(lambda r, i: f"{r.gauss(75, 11):.0f}" if i % 3 else f"{r.gauss(165, 24):.0f}"), "kg beside lb?"),
]
MAY_MEAN.append((made(lambda r, i: f"{i % 90}.5%" if i % 3 else f"0.{i % 90 + 10}"), "no %: are they per cent too?"))
MAY_MEAN.append((made(lambda r, i: f"{r.randrange(50, 300)}{'' if i % 9 else ' lb'}"), "no lb: do they mean the same?"))
MAY_MEAN.append(([t.replace(".", ",") for t in next(c for c, words in MAY_MEAN if "°C" in words)], "°C beside °F?"))
PLAIN = [
    made(lambda r, _: str(r.randrange(1_000_000, 32_000_000))),  # sums of money
    made(lambda r, _: str(r.randrange(10_000, 400_000))),
    made(lambda r, _: f"{r.uniform(1, 13):.4f}"),
    made(lambda r, _: f"{r.uniform(0, 2):.3f}"),  # 0.123 has no thousands
    made(lambda r, _: str(r.randrange(1900, 2024))),
    made(lambda r, _: str(r.randrange(0, 100))),
    made(lambda r, _: str(r.randrange(100, 2400))),
    made(lambda r, _: f"{r.gauss(90, 25):.1f}"),  # weights in one unit, and of all ages
    made(lambda r, _: f"{r.uniform(30, 180):.0f}"),
]


def test_numbers_that_may_mean_something_else_are_asked_about_by_the_draft_and_by_check_and_plain_ones_are_not(capsys):
    table = {f"x{i}": cells for i, (cells, _) in enumerate(MAY_MEAN)}
    looks = checked(capsys, table | {f"plain{i}": cells for i, cells in enumerate(PLAIN)})["columns"]
    text = Path("s.yaml").read_text()
    for name, (_, words) in zip(table, MAY_MEAN, strict=True):
        assert words in guess_of(text, name) and words in " ".join(looks[name]["hints"]), (name, looks[name])
    assert [n for n, look in looks.items() if look["status"] == "warning"] == [*table], looks


def test_times_in_digits_with_a_zero_in_front_and_numbers_of_two_units_are_left_out_with_the_reason(capsys):
    cells = {
        "n": made(lambda r, _: r.randrange(9)),
        "at": made(lambda r, _: f"{r.randrange(24):02}{r.randrange(60):02}"),
        "degrees": made(lambda r, i: f"{r.uniform(36, 40):.1f} °C" if i % 3 else f"{r.uniform(97, 104):.1f} °F"),
        "weight": made(lambda r, i: f"{r.uniform(50, 110):.1f}kg" if i % 3 else f"{r.uniform(110, 240):.1f}lb"),
    }
    _, text = drafted(cells)
    lines = {line.split('"')[1]: line for line in text.splitlines() if line.startswith('  - "')}
    assert "times of the day, as 0930 is?" in lines["at"]
    assert "in several units, °C (400 rows), °F (200 rows): one unit" in lines["degrees"]
    assert "kg" in lines["weight"] and "in several units" in lines["weight"]
    assert "kg (400 rows), lb (200 rows)" in lines["weight"], "all are counted, not the most frequent texts alone"
    same = {"degrees": made(lambda r, _: f"{r.uniform(36, 40):.1f} °C")}
    assert drafted(same)[0]["degrees"]["strip"] == ["°C"]
    cells["at"] = made(lambda r, _: f"{r.randrange(24):02}{r.randrange(60):02}")
    look = checked(capsys, {"at": cells["at"]}, "at: {kind: zip, digits: 4}")["columns"]["at"]
    assert look["status"] == "warning" and "times of the day" in look["hints"][0]


@pytest.mark.slow
def test_thousands_are_decided_by_who_declares_three_decimals_and_by_money(capsys):
    """All cells as 2.345: the draft said nothing, and `check` called it ok."""
    cells = {"x": made(lambda r, _: f"{r.randrange(1, 10)}.{r.randrange(100, 1000)}")}
    cells |= {"y": [c.replace(".", ",") for c in cells["x"]], "fee": ["$" + c.replace(".", ",") for c in cells["x"]]}
    columns, text = drafted(cells)
    assert "decimals" not in columns["x"] and text.count("they may mean 1234 or 1.234") == 2
    assert columns["fee"]["strip"] == ["$", ","], "no price has three decimals"
    declared = "x: {kind: float, min: 0, max: 10, bins: {count: 5}, decimals: 3}"
    assert checked(capsys, cells, declared)["columns"]["x"]["status"] == "ok"


def test_years_of_two_digits_that_are_clipped_are_counted_and_the_cure_is_named(capsys):
    """'58' under min: 1920 was born in 1920."""
    cells = {"born": made(lambda r, i: str(r.randrange(30, 100) + 1900 * (i % 8 > 0)))}
    look = checked(capsys, cells, "born: {kind: integer, min: 1920, max: 2010}")["columns"]["born"]
    assert look["lost"] == N // 8 and "75 years of two digits, as 58" in look["hints"][0]


STAFF = [f"{a} {b}" for a in ("Anna", "Paul", "Omar") for b in ("Meier", "O'Brien", "van der Berg", "Özdemir", "Weiß")]
CITIES = parted("New York|Los Angeles|San Jose|Fort Worth|Las Vegas|San Diego|El Paso|Long Beach|Saint Paul")
WARDS = ["Intensive Care", "Emergency Room", "General Surgery", "Internal Medicine", "Day Clinic", "Labor Ward"]


@pytest.mark.parametrize(
    ("column", "texts"),
    [
        ("city", ["Baden Baden", "Monte Carlo", "Abu Dhabi", "Tel Aviv", "Kuala Lumpur"]),
        ("finding", ["Heart Failure", "Renal Failure", "Liver Failure", "Atrial Flutter", "Septic Shock"]),
        ("x", ["Heart failure", "Renal colic", "Liver abscess", "Atrial flutter", "Septic shock"]),
        ("x", ["Anna Meier", "Paul Weber", "Heart failure", "none", "Omar Koch", "Stroke", "other"]),
        ("x", STAFF[:4]),
        ("x", ["HARTFORD, CT", "BOSTON, MA", "ALBANY, NY", "DENVER, CO", "AUSTIN, TX"]),
    ],
)
def test_places_things_and_few_texts_are_no_names(column, texts):
    assert may_be_names(column, texts) == []


TITLED = ["Rücksprache Dr. Meier", "see Dr Smith", "Überw. Dr. med. Lindqvist", "Überweisung: Prof. Braun"]
TITLED += ["Praxis Dr. Meier, Pirna", "Kiwi – since 2019 (Dr. von Ruhr)", "Penicillin (OA Sauer)", "Nurse Kelly"]
TITLED += ["Schwester Beate", "Frau Özdemir", "Dr.-Ing. Weber", "Müller Tel. 0351-248445", "+49 351 248445"]
TITLED += ["ask 555-123-4567", "OA Sauer weiß"]


def test_texts_with_a_name_after_a_title_or_a_telephone_number_are_never_listed_and_are_warned_of(capsys):
    """A title counted as the first word of a text alone: all of these were listed, and ok."""
    plain = [*(f"finding {letter}" for letter in "abcdefghijklmnopqrst"), "Penicillin", "Penicillin (new)"]
    plain += ["Korea (South)", "Dose (Weekly)"]  # no name: nothing says so, or the text without it is no value
    cells = {"note": [*TITLED, "Penicillin (Sauer)"] * 10 + plain * 40}
    columns, text = drafted(cells)
    assert sorted(columns["note"]["values"]) == sorted(plain) and "Meier" not in text and "16 that fewer" in text
    assert "Sauer" not in text
    declared = f"note: {{kind: categorical, other: O, values: {json.dumps([*TITLED, 'follow-up'])}}}"
    look = checked(capsys, cells, declared)["columns"]["note"]
    assert f"{len(TITLED)} of the {len(TITLED) + 1} listed texts hold names" in look["hints"][0]
    assert look["status"] == "warning"


TELEPHONES = ["0171 2345678", "(555) 123-4567", "030/1234567", "(0351) 24 84 45", "044 668 18 00", "06 12345678"]
TELEPHONES += ["01 23 45 67 89", "020 7946 0958", "555 123 4567", "030 / 123 45 67"]
NAMED = parted(
    "Maria Huber|HUBER, MARIA|Anna-Lena van der Berg|Jan K.|see Maria Huber|bitte an Jan Kuhn|MR J SMITH|Mr J Smith|"
    "DR PATEL|DR. PATEL|dr. keller|FRAU HUBER|HERR KELLER|Fr. Huber|MUDr. Šimek|Dr. Šimek|Dr Ørsted|Dr Łukasz|"
    "Hr. Žák|Sr. Monika|Schw. Monika|PD Frei|med. pract. Frei|RN Jones|Sister Mary|Matron Jones|Rev Smith|"
    "Mme Dupont|M. Dupont|Dott. Rossi|Sig. Rossi|s/w daughter Priya Nair|mother (Joan Whitlock)|"
    "tel. contact met dhr. de Vries|mevr. van den Berg|mw. Bakker|De heer Smit|de heer de Boer|mevrouw Bakker|"
    "fam. de Boer|Fam. Medina|P. Stuart|Pani Nowak|syn pani Wójcik|u p. Kamińskiego|Madame Durand|Monsieur Petit|"
    "Señora García|Fru Åberg"
)
HARMLESS = {
    "scan": "MR ANGIOGRAPHY|MR Scan|MRI|M. Crohn|near MISS EVENT|M. bovis|sr. cardiac|HR Manager",
    "where": "OCEAN DR NORTH|DR CONGO|Sister Ward|mother|Mother Tongue|FRAU|dr.|HR Manager",
    "user": "yes|no",
    "colour": "Light Blue|Navy Blue|Rose|dark red",
    "city": "New York|San Jose|Port Elizabeth|Maria Alm|Boston|Virginia Beach",
    "x": "New York|St. Louis|Santa Maria|Charlotte|Prince George|Jordan River|HARTFORD, CT",
    "job": "Sales Representative|Registered Nurse|Teacher|Head Of Sales|Will Writer",
    "icd": "I21.4|E11.9|01.23|F32",
    "postcode": "01067|01067-01069|SW1A 1AA|10115|12345-6789",
    "code": "0173-0682-20|0815/4711|978-3-16-148410-0|A12-3456|01 02 2020|01.02.20 10.15|1 234 567",
    "range": "0700-1500|01000 02000|0.5 - 1.5|100 000 000|2024/2025|0986 494 653x",
    "brand": "Hugo Boss|Martin Baker|John Deere",
    "duty": "Nurse Practitioner|Nurse Station|Doctor Visit|nurse on duty|Prof-specialty|OA",
    "part": "01067-01069|2024-01-05|12345-6789|0100-0199|0002-1433-80|pH 7.35-7.45|Phone 1",
    "note": "12.10.2020 10:15|100-200|Penicillin (since 2019)|D.R.|Lakeview Dr",
    "plant": "10 MW|MW Nord|mw/h|fam. history|Fam. intolerance|fru fru|Madame|panic|Panini Bar",
    "dish": "Pani Puri|Pani Poori|Masala Dosa|Idli|Vada Pav",
    "seguro_medico": "Seguro Popular|IMSS|Privado",
    "bank": "J.P. Morgan|V.P. Sales|Fam. Med.|Fam. Practice|Fam. Hx|Fam. Rosaceae|fam. Felidae",
    "language_arts": "Proficient|Basic|Advanced",
    "germs": "P. AERUGINOSA|P. Mirabilis|P. Falciparum|P. JIROVECII|P. VULGARIS",
}


@pytest.mark.parametrize("column", HARMLESS)
def test_ordinary_lists_staff_streets_hours_and_codes_hold_no_telephone_and_no_name(column):
    assert persons_in_words(column, parted(HARMLESS[column]), "listed") == ""


REGISTERED = {
    "svnr": "1234 010160|1235 311299",
    "cpr": "010160-1234|190101-123X|19600131-1234|600131+1234",
    "ssn": "123-45-6789",
    "ahv": "756.1234.5678.97|RSSMRA85T10A562S",
    "orcid": "0000-0002-1825-0097|0000-0002-1694-233X|4111 1111 1111 1111|https://orcid.org/0000-0002-1825-0097",
    "rrn": "85.07.30-033.28|40.05.02-985.14",
    "cpf": "123.456.789-09",
    "nino": "QQ 12 34 56 C|AB123456D|verzekerd als AB 12 34 56 A",
    "nir": "1 85 07 75 116 001 42|2 61 11 2A 304 534",
    "rodne": "600131/1234|605131/123|010160 12345",
    "seen from": "192.168.0.17|host 10.1.12.87|00:1A:2B:3C:4D:5E|00-1a-2b-3c-4d-5e",
    "file": "C:\\Users\\anna\\x|/home/anna|@anna_huber|by @franz.b",
}
UNREGISTERED = parted(
    "202401-0012|2024-01-05|1234 5678|123-456-789|1.2.3.4|12.345.678.901|10.1.2.3.4|85.13.30-033.28|123.456.789-0|"
    "AB 12 34 56 E|1 85 13 75 116 001|603131/1234|320160 12345|@home|away @work|12:30:45|0002-1433-80|"
    "12.10.2020 10:15|1000-2000-3000|R2.0.1"
)


@pytest.mark.parametrize("column", REGISTERED)
def test_numbers_of_persons_and_addresses_of_their_computers_are_never_drafted(column, capsys):
    """Numbers of insured persons, ORCIDs, and addresses of computers, of 15 persons, were listed and called ok."""
    texts = parted(REGISTERED[column])
    assert [t for t in texts if not addresses([t])] == []
    cells = {column: (texts * N)[:N], "sex": ["f", "m"] * (N // 2)}
    columns, text = drafted(cells)
    assert {*columns} == {"sex"} and "homes, numbers or computers" in guess_of(text, column)
    listed = {name: {"kind": "categorical", "values": sorted({*own})} for name, own in cells.items()}
    assert checked(capsys, cells, listed)["columns"][column]["status"] == "warning"


def test_pages_of_persons_are_addresses_of_persons_and_pages_of_groups_are_none():
    pages = parted(
        "https://www.linkedin.com/in/janjansen|facebook.com/anna.huber|https://x.com/anna|m.facebook.com/jan|"
        "see instagram.com/anna_h/|http://twitter.com/@jan|https://nl.linkedin.com/in/jan-jansen-12b/"
    )
    assert addresses(pages) == pages
    others = ["linkedin.com/company/x", "facebook.com/groups/12", "netflix.com/title", "x.com", "instagram.com/p/Cx1/"]
    others += ["facebook.com", "https://facebook.com/events/7", "linux.com/jan", "x.com/search?q=a", "twitter.com/i/1"]
    assert addresses(others) == []


def test_versions_batches_and_amounts_are_no_numbers_of_persons():
    assert [t for t in UNREGISTERED if addresses([t])] == []
    assert addresses(["1.1.1." + "1" * 5000, "a@b.de"]) == ["a@b.de"], "Python reads no number of so many digits"


def _of_sweden(rng, year):
    """A number of a person born then, with its check digit."""
    digits = f"{year}{rng.randint(1, 12):02}{rng.randint(1, 28):02}{rng.randint(0, 999):03}"
    each = [int(c) * (2 - k % 2) for k, c in enumerate(digits)]
    return f"{digits[:6]}-{digits[6:]}{-sum(n // 10 + n % 10 for n in each) % 10}"


#: Numbers of things, by the others of their column: sections, versions, builds, lots of a few years, seasons.
THINGS = {
    "paragraph": ["11", "12", "12.5", "12.5.1", "12.5.1.2", "12.5.2", "13.1.4", "13.1.4.2"],
    "firmware_version": ["12.5.1.2", "12.5.1.3", "12.6.0.1"],
    "software": [f"{a}.{b}.0.{c}" for a in (8, 9, 10, 12, 14) for b in range(4) for c in (1, 2)],
    "windows": [f"10.0.{build}.{c}" for build in (22, 19041, 22621) for c in range(1, 9)],
    "charge": [f"{y}{m:02}15-{k:04}" for y in (23, 24) for m in range(1, 13) for k in (1, 2, 12)],
    "lot": [f"2024{m:02}15-{k:04}" for m in range(1, 13) for k in (1, 2, 12)],
    "seasons": ["2023 2024 2025 2026", "2020-2021-2022-2023", "2020 2021"],
}
#: Numbers of persons, and of their computers, that look alike.
PERSONS_BESIDE = {
    "inner network": made(lambda rng, i: f"10.{rng.randint(0, 9)}.12.{rng.randint(1, 99)}"),
    "network": made(lambda rng, i: f"62.48.{rng.randint(1, 60)}.{rng.randint(1, 99)}"),
    "dissection": made(lambda rng, i: f"62.48.{rng.randint(1, 60)}.{rng.randint(1, 99)}"),
    "visitors": made(lambda rng, i: ".".join(str(rng.randint(11, 255)) for _ in range(4))),
    "mistyped": [*(f"192.168.0.{i}" for i in range(10, 40)), *(f"81.5.7.{i}" for i in range(10, 40))],
    "Denmark": made(lambda rng, i: f"{rng.randint(1, 28):02}{rng.randint(1, 12):02}24-{rng.randint(0, 9999):04}"),
    "Denmark, days not known": made(lambda rng, i: f"0101{rng.randint(50, 99)}-{rng.randint(0, 9999):04}"),
    "Sweden, a cohort": made(lambda rng, i: _of_sweden(rng, 24)),
    "Finland": made(
        lambda rng, i: f"{rng.randint(1, 28):02}0724-{rng.randint(2, 899):03}{rng.choice('0123456789ABC')}"
    ),
    "few": ["240115-0012", "240115-0013", "240301-0001"],
    "card": ["4111 1111 1111 1111", "2221 0000 0000 0009", "0000-0002-1825-0097", "2023 4024 2025 2026"],
}


@pytest.mark.parametrize("column", THINGS)
def test_sections_versions_lots_and_seasons_name_nobody_by_the_others_of_their_column(column):
    """Each was an address of a computer, or the number of a person in Denmark, or a payment card."""
    assert addresses(THINGS[column], column) == []
    assert [t for t in THINGS[column] if addresses([t], column, THINGS[column])] == []
    beside = [*THINGS[column], "192.168.0.17", "600131-1232", "4111 1111 1111 1111"]
    assert {*beside[-3:]} <= {*addresses(beside, column)}, "what is of somebody is warned of beside them"


@pytest.mark.parametrize("column", PERSONS_BESIDE)
def test_addresses_of_computers_and_numbers_of_persons_are_such_whatever_stands_beside_them(column):
    texts = [*dict.fromkeys(PERSONS_BESIDE[column])]
    assert addresses([*texts, "192.168.0.999", "12.5.1"], column) == texts
    assert [t for t in texts if not addresses([t], column, texts)] == []


def test_one_name_and_telephones_of_a_country_among_ordinary_values_are_warned_of_and_never_drafted(capsys):
    """'Maria Huber' among states and 0171 2345678 were listed, called ok, and released as they are."""
    assert [t for t in [*TELEPHONES, *NAMED] if not addresses([t])] == []
    assert persons_in_words("contact", ["phone", "e-mail"], "listed")
    cells = {"status": [*["open", "closed"] * 2, "Maria Huber"] * (N // 5), "reach": (TELEPHONES * N)[:N]}
    columns, text = drafted(cells)
    assert {*columns} == {"status"} and columns["status"]["values"] == ["closed", "open"] and "Huber" not in text
    declared = {name: {"kind": "categorical", "values": sorted({*texts})} for name, texts in cells.items()}
    looks = checked(capsys, cells, declared)["columns"]
    assert "1 of the 3 listed texts hold names" in looks["status"]["hints"][0]
    assert {look["status"] for look in looks.values()} == {"warning"}


SURNAMES = ["Meier", "Sauer", "Özdemir", "Kowalski"]
OF_STAFF = parted(
    "Arzt|Hausarzt|Ärztin|Pflegekraft|Sachbearbeiter|Klassenlehrerin|doctor|assigned_nurse|Beamter|Beamtin|"
    "assignedNurse|OFFICER|signed_by|Case Worker|Sachbearb|sachbearbeitung|Kontoinhaber|Geburtsname|mädchenname|"
    "prénom|cognome|achternaam|Voornaam|nazwisko|imię|sobrenome|efternamn|huisarts|behandelaar|mantelzorger|lekarz|"
    "pielęgniarka|médecin|medecin_traitant|infirmière|médico|enfermera|läkare"
)
OF_THINGS = parted("artsenbezoek|medical|name|product_name|agent_type|nurses|station|paid_by|Pflegegrad")
CAPITALS = ["MRI Brain", "MRI Knee", "MRI Spine", "COVID Ward", "COVID Vaccine", "HIV Positive", "EDTA Plasma"]
OF_PERSONS = {
    "plain": STAFF,
    "turned": [", ".join(reversed(t.split(" ", 1))) for t in STAFF],
    "upper": [t.upper() for t in STAFF],
    "nom_prenom": [f"{a} {b}" for a in ("DURAND", "LE GOFF", "PETIT-ROUX", "MOREAU") for b in ("Luc", "Zoé", "Anaïs")],
    "wie": ["Luc DURAND", "Zoé PETIT", "Anaïs ROUX", "Marc VAN DEN BERG", "Jeanne D'ARC"],
    "landlord": ["John Smith", "A Patel"],
    "Surname": ["Smith", "Patel"],
    "seen by": ["Dr. Meier", "Mrs A. Patel"],
    "interpreter": ["Mr Haddad (BSL)", "yes - Mrs Öz"],
    "Vorgesetzt": ["Weber, S.", "Özdemir, A.-K.", "Weber, Sabine"],
    "referrer": ["A. Whitfield", "C. de la Cruz", "B Okonjo"],
    "seen_with": ["Sabine W.", "Anna-Lena K."],
    "sent by": ["a.wu@city.gov", "B.Day@city.gov"],
    "paid to": ["DE89370400440532013000", "GB29 NWBK 6016 1331 9268 19"],
    **dict.fromkeys(OF_STAFF, SURNAMES),
}
OF_OTHERS = {
    "ward": WARDS,
    "place": CITIES,
    "scans": CAPITALS,
    "station name": ["Mill Hill", "Dr"],
    "force": ["U.S. Army", "U.S. Navy"],
    "germ": ["E. coli", "S. aureus"],
    "wing": ["A Wing", "B Wing"],
    "handle": ["@home", "away @work"],
    **dict.fromkeys(OF_THINGS, SURNAMES),
}


@pytest.mark.slow
def test_columns_of_persons_are_left_out_of_a_draft_and_warned_of_where_they_are_listed_and_others_are_not(capsys):
    """Nurses, landlords and accounts with many records each were listed, called ok, and released as they are."""
    texts = OF_PERSONS | OF_OTHERS
    cells = {name: made(lambda r, _, own=own: r.choice(own), seed) for seed, (name, own) in enumerate(texts.items())}
    columns, text = drafted(cells)
    assert {*columns} == {*OF_OTHERS} and {columns[name]["kind"] for name in OF_THINGS} == {"categorical"}
    assert text.count("15 of 15 texts may be names of persons") == 3 and "values: discover" in text
    by_name = "4 distinct texts: names of persons, by its name"
    assert all(f'"{name}"  # {by_name}' in text for name in OF_STAFF) and "anna meier" not in text.lower()
    looks = checked(capsys, cells, {n: {"kind": "categorical", "values": own} for n, own in texts.items()})["columns"]
    said = {name: " ".join(look["hints"]) for name, look in looks.items()}
    for name, own in texts.items():
        warned = f"{len(own)} of the {len(own)} listed texts hold names, e-mail addresses, telephones or accounts"
        assert (warned in said[name]) == ("listed texts hold" in said[name]) == (name in OF_PERSONS), name
        assert name not in OF_PERSONS or looks[name]["status"] == "warning"
    assert "would be released as they are; leave_out: [sent by]" in said["sent by"]


def test_columns_that_are_called_after_who_sent_or_signed_something_are_asked_about():
    """Surnames of doctors who refer, and signs of who released a result, were listed without a word."""
    asked = ["Zuweiser", "zuweiserin", "Einsender", "Kuerzel", "Kürzel", "validiert_durch", "geprüft von", "Angehörige"]
    for column in [*asked, "referrer", "LastPrescriber"]:
        assert persons_in_words(column, SURNAMES, "listed").startswith("called as columns of persons' names"), column
    for column in parted(
        "collected_by|verified by|afgenomen_door|Prescrit par|assigned_to|issuedBy|conjoint|instructeur"
    ):
        assert persons_in_words(column, ["JdV", "MB"], "listed").startswith("called as columns of persons' names"), (
            column
        )
    for column in ["initials", "Kfz", "Kennzeichen", "licence_plate", "kenteken", "immatriculation", "targa"]:
        assert persons_in_words(column, ["IL 100 AA", "I-47H"], "listed").startswith("called as columns of persons'")
    for column in parted("Zuweisung|plate|validiert_am|Kontaktart|Weiser|prescribed|geprüft|paid_by|caused by"):
        assert not persons_in_words(column, SURNAMES, "listed"), column
    assert addresses(["Apotheke Mag. Huber", "Mag. phos.", "Magnesium"]) == ["Apotheke Mag. Huber"]


def test_answers_in_a_column_of_staff_are_no_names(capsys):
    cells = {"doctor": ["Yes", "No"] * 300}
    assert drafted(cells)[0]["doctor"]["kind"] == "flag"
    declared = "doctor: {kind: categorical, values: ['Yes', 'No', Unknown]}"
    (hint,) = checked(capsys, cells, declared)["columns"]["doctor"]["hints"]
    assert hint == "'Unknown' among the values: a gap? missing: [\"Unknown\"]", "and no name"


ANSWERS = ["99", "-999", "k.A.", "N/A", "unbekannt", "--", "missing", "refused", "Refused", "verweigert"]


@pytest.mark.parametrize("answer", ANSWERS)
def test_signs_and_words_of_answers_name_nobody_whatever_their_column_is_called(answer, capsys):
    """But for yes, no and words such as unknown, which names of places hold too, each was taken for a name."""
    for column in ["doctor", "Kürzel"]:
        assert persons_in_words(column, ["Yes", "No", answer], "listed") == ""
    cells, values = {"doctor": ["Yes", "No"] * 300}, ["Yes", "No", "Unknown", answer]
    hints = [
        " ".join(
            checked(capsys, cells, {"doctor": {"kind": "categorical", "values": own}})["columns"]["doctor"]["hints"]
        )
        for own in (values, [*values, "Kowalski"])
    ]
    assert ["1 of the 5 listed texts hold names" in hint for hint in hints] == [False, True], "a surname is one"
    assert "names" not in hints[0]


def test_ids_that_a_program_for_sheets_cut_short_are_warned_of(capsys):
    """4.55E+11 of eight persons was one unit, whose records were bounded together."""
    cells = {"patient_id": made(lambda r, _: f"{4.5 + 0.01 * r.randrange(30):.2f}E+11"), "sex": ["f", "m"] * 300}
    _, text = drafted(cells)
    assert "600 rows hold ids as 4.55E+11, cut short by a program for sheets" in text
    look = checked(capsys, cells, "sex: {kind: categorical, values: [f, m]}", "privacy.unit=patient_id")
    assert any("unit 'patient_id': 600 rows hold ids as 4.55E+11" in line for line in look["hints"]), look


def test_rows_of_totals_are_asked_about_in_any_column(capsys):
    words = {"a": "Summe", "b": "Total", "c": "Gesamt", "d": "All", "e": "Grand total:", "f": "RAZEM"}

    def months(word):
        return made(lambda r, i: word if i == 7 else r.choice(["Jan", "Feb"]))

    cells = {name: months(word) for name, word in words.items()} | {"n": made(lambda r, _: r.randrange(9))}
    _, text = drafted(cells)
    look = checked(capsys, cells, "n: {kind: integer, min: 0, max: 9}")
    for name, word in words.items():
        said = f"{word!r} (1 times): rows of totals?"
        assert said in text and [h for h in look["hints"] if h.startswith(f"column {name!r}: {said}")], name


@pytest.mark.slow
def test_answers_come_back_in_the_words_of_the_table(capsys):
    """Y and N came back as yes and no."""
    cells = {"a": ["Y", "N", "y"] * 200, "b": ["Ja", "Nein"] * 300, "c": ["yes", "no"] * 300, "d": ["Y", ""] * 300}
    cells["d"][1:41:2] = ["NO"] * 20  # a draft quotes no text of fewer than ten rows
    columns, _ = drafted(cells)
    words = {n: (c.get("true", ["yes"])[0], c.get("false", ["no"])[0]) for n, c in columns.items()}
    assert words == {"a": ("Y", "N"), "b": ("Ja", "Nein"), "c": ("yes", "no"), "d": ("Y", "NO")}
    assert command("run", "data=table", "data.path=t.csv", "data.schema=s.yaml", "privacy.epsilon=100", *FAST) == 0
    rows = pd.read_csv("out/release/synthetic.csv", keep_default_na=False)
    assert set(rows["a"]) == {"Y", "N"} and set(rows["b"]) == {"Ja", "Nein"} and set(rows["c"]) == {"yes", "no"}
    common = ", ".join(f"{n}: {{kind: flag, spellings: common}}" for n in "abc")
    look = checked(capsys, cells, common)["columns"]
    assert """'Y' as 'yes', 'N' as 'no': "true": ["Y"], "false": ["N"]""" in look["a"]["hints"][0]
    assert not look["c"]["hints"] and look["a"]["status"] == "ok"


FAST = ["synthesis=independent", "selection=oneway", "evaluation.enabled=false", "hydra.run.dir=out"]


@pytest.mark.slow
def test_minutes_of_travel_and_amounts_are_no_times_of_the_day_and_a_time_that_occurs_is_named(capsys):
    """Of minutes most are below 60 whatever they count; "as 1740 is" was said of tables without a 1740."""
    minutes = [480 + i * 7 % 840 for i in range(N)]
    clock = [f"{m // 60}{m % 60:02}" for m in minutes]
    cells = {"travel": made(lambda r, _: str(round(r.gammavariate(1.6, 16)))), "at": clock}
    cells |= {"heights": made(lambda r, _: str(r.randrange(100, 160))), "fee": [str(150 + m) for m in minutes]}
    cells |= {"until": [f"{m // 60}.{m % 60 // 15 * 15:02}" for m in minutes]}
    cells |= {"price": [f"{m % 20}.{m % 100:02}" for m in minutes]}
    cells |= {"hundreds": [str(100 * (m % 23 + 1)) for m in minutes]}
    look = checked(capsys, cells)["columns"]
    assert {n for n, c in look.items() if any("times of the day" in h for h in c["hints"])} == {"at", "until"}, look
    (shown,) = [h.split(" as ")[1].split(" is?")[0] for h in look["at"]["hints"] if "times of the day" in h]
    assert shown in clock


def test_a_flag_is_written_in_two_words_of_one_family():
    """N was the most frequent no, and yes the most frequent yes: a release held yes beside N."""
    cells = {"a": ["yes"] * 200 + ["N"] * 180 + ["no"] * 120 + ["Y"] * 60 + ["Yes"] * 40}
    cells |= {"b": ["N"] * 300 + ["yes"] * 200 + ["Yes"] * 60 + ["no"] * 40}
    cells |= {"c": ["J"] * 300 + ["Nein"] * 30 + ["N"] * 270, "d": ["Ja"] * 300 + ["nein"] * 200 + ["Nein"] * 100}
    words = {n: (c.get("true", ["yes"])[0], c.get("false", ["no"])[0]) for n, c in drafted(cells)[0].items()}
    assert words == {"a": ("yes", "no"), "b": ("yes", "no"), "c": ("J", "N"), "d": ("Ja", "Nein")}


@pytest.mark.slow
def test_many_lost_values_stand_before_all_that_may_be_left_out_and_the_lines_on_quality_stay(capsys):
    """Two lines of lost values took the place of those on columns and pairs; behind these nobody was told of them."""
    cells = {n: made(lambda r, _: str(r.randrange(9)), seed) for seed, n in enumerate("abcd")}
    checked(capsys, cells, ", ".join(f"{n}: {{kind: integer, min: 0, max: 7}}" for n in "abcd"))
    given = ["data=table", "data.path=t.csv", "data.schema=t.yaml", "evaluation.enabled=false", "console=always"]
    lines = reply(capsys, "run", *given, "privacy.epsilon=2", "hydra.run.dir=noisy").out.splitlines()
    labels = [line[2:11].strip() for line in lines]
    assert labels.index("publish") + 1 == labels.index("lost") < labels.index("columns") < labels.index("pairs"), lines
    assert labels.count("lost") == 1
    assert "; 3 more columns: python -m pipeline check" in " ".join(" ".join(lines).split())
    assert len(lines) <= 14 and max(map(len, lines)) <= 110


AMOUNTS = {
    "pay": lambda r, _: int(r.lognormvariate(10, 0.5)),
    "wealth": lambda r, _: int(r.lognormvariate(11, 2)),
    "hundreds": lambda r, i: int(r.lognormvariate(10, 0.5)) // (1 if i % 2 else 100) * (1 if i % 2 else 100),
    "grams": lambda r, _: int(r.gauss(3400, 500)),
    "dozens": lambda r, _: 12 * int(r.gauss(3400, 500)),
    "fee": lambda r, _: 100 * r.randrange(5, 400) - 1,
    "units": lambda r, i: int(r.lognormvariate(10, 0.5)) // (100 if i % 2 else 1),
}


@pytest.mark.slow
def test_weeks_beside_days_and_sparse_numbers_of_households_are_left_out_and_amounts_are_not():
    """Weeks were a second code of the same, and numbers of households whole numbers in 32 bins."""
    admitted = [datetime.date(2023, 11, 1) + datetime.timedelta(i % 300) for i in range(N)]
    weeks = [d.strftime("%G-W%V") for d in admitted]
    homes = random.Random(3).sample(range(700, 90_000), N // 2)
    cells = {"admitted": [d.isoformat() for d in admitted], "week": weeks, "short": [w.replace("-", "") for w in weeks]}
    day = datetime.date(2010, 1, 1)
    cells |= {"digits": made(lambda r, _: f"{day + datetime.timedelta(4 * r.randrange(N // 2)):%Y%m%d}")}
    cells |= {"off": ["2023-W01", *weeks[1:]], "household": made(lambda r, _: r.choice(homes))}
    cells |= {name: made(cell) for name, cell in AMOUNTS.items()}
    columns, text = drafted(cells)
    assert {*cells} - {*columns} == {"week", "short", "household"}
    assert "oftener alike than amounts: ids, as of households" in text
    assert text.count("the weeks of 'admitted' in all rows") == 2
    padded = [f"{i // 2:05d}" for i in range(N)]  # as postal codes are, and without gaps
    assert [*drafted({"hhid": padded, "n": made(lambda r, _: r.randrange(9))})[0]] == ["n"]


def test_parts_of_years_beside_days_are_left_out_or_computed():
    """A release had the fourth quarter beside a day in May: only weeks, weekdays and hours were looked for."""
    days = [datetime.date(2022, 3, 1) + datetime.timedelta(7 * i % 500) for i in range(300)]
    quarters = [f"{d.year}-Q{(d.month + 2) // 3}" for d in days]
    cells = {"read": [d.isoformat() for d in days], "quarter": quarters, "month": [f"{d:%Y-%m}" for d in days]}
    cells |= {"year": [str(d.year) for d in days], "nr": [str(d.month) for d in days]}
    columns, text = drafted(cells | {"late": ["2021-Q1", *quarters[1:]]})
    assert {*cells, "late"} - {*columns} == {"quarter", "month"}
    assert '"year": {expression: "year(read)"}' in text and '"nr": {expression: "month(read)"}' in text


def test_spellings_of_values_to_discover_and_two_digits_of_years_among_texts_are_told(capsys):
    cells = {
        "diet": made(lambda r, _: r.choice(["halal", "Halal", "HALAL", "vegan"])),
        "birth": made(lambda r, i: f"{r.randrange(2005, 2015)}" if i % 3 else f"{r.randrange(5, 15):02}"),
    }
    births = json.dumps(sorted({*cells["birth"]}))
    declared = "diet: {kind: categorical, values: discover, other: Other}"
    declared += f", birth: {{kind: categorical, values: {births}}}"
    looks = checked(capsys, cells, declared)["columns"]
    assert "3 of the 4 frequent texts differ from another in capitals alone" in looks["diet"]["hints"][0]
    assert "years of two digits" in looks["birth"]["hints"][0] and looks["birth"]["status"] == "warning"


@pytest.mark.parametrize("old", [900, 20])
def test_births_of_two_digits_that_lie_in_years_to_come_are_asked_about_and_stand_in_no_rule(old):
    """03.05.47 was read as 2047, and `ordered: [[admitted, born]]` was proposed."""
    years = [1930 + i % 38 if i < old else 1970 + i % 40 for i in range(920)]
    cells = {
        "born": [f"{i % 28 + 1:02}.{i % 12 + 1:02}.{year % 100:02}" for i, year in enumerate(years)],
        "admitted": [f"{i % 28 + 1:02}.{i % 11 + 1:02}.{2018 + i % 5}" for i in range(920)],
        "left": [f"{i % 28 + 1:02}.{i % 11 + 2:02}.{18 + i % 5}" for i in range(920)],
    }
    _, text = drafted(cells)
    assert text.count("a hundred years too late") == 1 and "admitted" in text.partition("derive:")[2]
    assert "born" not in text.partition("derive:")[2], text


@pytest.mark.parametrize(
    ("born", "others", "rule"),
    [
        (lambda age, i: 2023 - age - (i % 3 == 0), {}, '{"born": {"expression": "2023 - age"}}'),
        (
            lambda age, i: 2010 + i % 9 - age - i % 2,
            {"year": lambda i: 2010 + i % 9},
            '{"age": {"expression": "year - born"}}',
        ),
        (
            lambda age, i: 2010 + i % 9 - age - i % 2,
            {"seen": lambda i: f"{2010 + i % 9}-05-03"},
            '{"age": {"expression": "year(seen) - born"}}',
        ),
        (lambda age, i: 2010 + i % 9 - age, {}, None),
        (
            lambda age, i: f"{2023 - age - (i % 3 == 0)}-0{i % 9 + 1}-11",
            {},
            '{"age": {"expression": "2023 - year(born)"}}',
        ),
    ],
)
def test_births_beside_ages_are_asked_about(born, others, rule, capsys):
    """They were drawn apart, and said different things of one person."""
    ages = [18 + i * i % 71 for i in range(900)]
    cells = {"age": ages, "born": [born(age, i) for i, age in enumerate(ages)], "job": [i % 7 * 10 for i in range(900)]}
    cells |= {name: [make(i) for i in range(900)] for name, make in others.items()}
    asked, hints = guess_of(drafted(cells)[1], "born"), "\n".join(checked(capsys, cells)["hints"])
    assert "follows from 'age'" in asked and "'born': it nearly follows from 'age'" in hints
    assert (rule in asked and rule in hints) if rule else "derive" not in asked
    unrelated = cells | {"age": ages[1:] + ages[:1]}
    assert "follows from" not in guess_of(drafted(unrelated)[1], "born")


@pytest.mark.parametrize(("exact", "rule"), [(True, "years(born, seen)"), (False, "year(seen) - year(born)")])
def test_whole_years_are_proposed_where_they_fit_as_well_as_a_difference_of_years(exact, rule, capsys):
    """Every eighth age is a difference of years, or each: none is computed."""
    born = days(lambda d: d - pd.Timedelta(days=9000))
    seen = made(lambda r, _: pd.Timestamp("2024-01-01") + pd.Timedelta(days=r.randrange(9000)), seed=2)
    both = [*zip(born, seen, strict=True)]
    late = [(s.month, s.day) < (b.month, b.day) and exact and i % 8 > 0 for i, (b, s) in enumerate(both)]
    ages = [s.year - b.year - own for (b, s), own in zip(both, late, strict=True)]
    booked = [s - pd.Timedelta(days=i % 200) for i, s in enumerate(seen)]
    dates = {"born": born, "booked": booked, "seen": seen}
    cells = {name: [f"{d:%Y-%m-%d}" for d in own] for name, own in dates.items()} | {"age": ages}
    asked = drafted(cells)[1]
    assert f'derive: {{"age": {{"expression": "{rule}"}}}}' in asked
    assert rule in "\n".join(checked(capsys, cells)["hints"])


@pytest.mark.parametrize("day", ["05-Sep", "09-mai", "Oct-14", "05. Sep"])
def test_a_range_of_which_a_program_for_sheets_made_a_day_is_named(day, capsys):
    ranges = ["0-4", day, "15-19", "20-24", "65+"]
    cells = {"age": made(lambda r, _: r.choice(ranges)), "leave": made(lambda r, _: r.choice(["05-Sep", "3-Oct", "x"]))}
    looks = checked(capsys, cells)["columns"]
    words = f"{cells['age'].count(day)} rows hold a day without a year, as 05-Sep, beside ranges"
    assert words in guess_of(Path("s.yaml").read_text(), "age") and words in " ".join(looks["age"]["hints"])
    assert (looks["age"]["status"], looks["leave"]["status"]) == ("warning", "ok")


def test_days_with_their_months_in_words_of_another_language_are_left_out_with_the_way_out(capsys):
    dutch = "januari februari maart april mei juni juli augustus september oktober november december".split()  # noqa: SIM905
    french = "janv. févr. mars avr. mai juin juil. août sept. oct. nov. déc.".split()  # noqa: SIM905
    cells = {
        "nl": days(lambda d: f"{d.day} {dutch[d.month - 1]} {d.year}"),
        "fr": days(lambda d: f"{d.day}{'er' * (d.day == 1)} {french[d.month - 1]} {d.year}"),
        "street": made(
            lambda r, _: f"{r.randrange(1, 30)} {'abcdefghijklmnopqrstuvwxyz'[r.randrange(26)] * 4} 1{r.randrange(10)}"
        ),
        "car": made(
            lambda r, _: f"{r.randrange(2, 6)} {r.choice(['doors', 'seats', 'wheels'])} 20{r.randrange(10, 25)}"
        ),
        "n": made(lambda r, _: r.randrange(9)),
    }
    columns, text = drafted(cells)
    assert {*columns} & {"nl", "fr"} == set()
    assert all("write 2024-05-12 in the table" in guess_of(text, name) for name in ("nl", "fr"))
    assert "2024-05-12" not in guess_of(text, "street") + guess_of(text, "car")
    declared = {
        "nl": {"kind": "date", "min": "2022-01-01", "max": "2025-01-01"},
        "n": {"kind": "integer", "min": 0, "max": 8},
    }
    look = checked(capsys, {"nl": cells["nl"], "n": cells["n"]}, declared, "data.max_unplaced=1")["columns"]["nl"]
    assert any("% are days with their months in words" in h for h in look["hints"]), look["hints"]


@pytest.mark.parametrize("gap", ["", "x"])
def test_of_two_columns_that_say_the_same_a_rule_is_proposed_for_one(gap, capsys):
    """`check` proposed it for both, and so did a draft where both have a gap."""
    sex = made(lambda r, i: r.choice("mf") if i % 50 or not gap else gap)
    cells = {
        "sex": [s.replace("x", "") for s in sex],
        "gender": [{"m": "man", "f": "woman"}.get(s, "") for s in sex],
        "pregnant": [("no", "yes")[s == "f" and i % 3 == 0] for i, s in enumerate(sex)],
    }
    cells = {name: [*own] * 5 for name, own in cells.items()}
    hints = [h for h in checked(capsys, cells)["hints"] if "'pregnant': some values stand together" in h]
    rules = [line for line in Path("s.yaml").read_text().splitlines() if "#   - {" in line and "pregnant" in line]
    assert len(hints) == len(rules) == 1 and "sex" in hints[0] + rules[0], (hints, rules)


def test_codes_that_cannot_be_times_are_not_asked_about_as_times(capsys):
    """Nearly all rows held the first 59 of each hundred, as 0159, and others the rest, as 0175."""
    cells = [f"{100 * min(i % 9, 3) + min(int(random.Random(i).paretovariate(1.2)), 99):04}" for i in range(20_000)]
    assert "times of the day" not in str(checked(capsys, {"code": cells, "n": [i % 7 for i in range(20_000)]}))
    assert "times of the day" not in Path("s.yaml").read_text()


def test_listed_texts_that_a_spreadsheet_computes_are_told(capsys):
    texts = ["=1+1", "@home", "+up", "-down", "-5", "+", "a=b", "B-", "+3.5"]
    cells = {"t": made(lambda r, _: r.choice(texts)), "n": made(lambda r, _: r.randrange(-9, 9))}
    declared = {"t": {"kind": "categorical", "values": texts}, "n": {"kind": "integer", "min": -9, "max": 9}}
    looks = checked(capsys, cells, declared)["columns"]
    (told,) = [h for h in looks["t"]["hints"] if "formula" in h]
    assert told.startswith("'=1+1', '@home', '+up' and 1 more begin as a formula") and "-5" not in told
    assert "formula" not in str(looks["n"])


def test_numbers_of_several_things_in_one_column_are_asked_about(capsys):
    """Sodium's standard deviation of 3 came out as 11: its values filled one bin of all analytes' twenty."""
    analytes = {"sodium": (140, 3), "potassium": (4.2, 0.4), "crp": (30, 25), "glucose": (5.6, 1.4)}
    rng, tests = np.random.default_rng(1), [*analytes] * 300
    marks = rng.integers(0, 100, 1200)
    cells = {
        "test": tests,
        "value": [f"{max(rng.normal(*analytes[t]), 0.1):.1f}" for t in tests],
        "score": marks / 1,
        "grade": ["FFFFEDCBAA"[m // 10] for m in marks],  # where on one scale a number lies
        "step": [f"s{m // 5 % 4}" for m in marks],
        "price": [f"{10.0 ** (i % 4 + 1):.2f}" for i in range(1200)],  # of each thing one
    }
    text, hints = drafted(cells)[1], "\n".join(checked(capsys, cells)["hints"])
    assert "numbers of several things, by 'test'" in guess_of(text, "value") and text.count("several things") == 1
    assert "'value': numbers of several things, by 'test'" in hints and hints.count("several things") == 1


def test_a_zero_byte_stops_no_draft():
    cells = {"d": made(lambda r, _: r.choice("GHM")), "c": (["c\0"] + ["b"] * 9) * (N // 10)}
    assert drafted(cells)[0]["c"]["values"] == ["b"]


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
TOWNS = ["01001", "01002", "01003", "01017", "02001", "02005", "09120"]
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
    "age": ("45 46 47 45·J 46·J 47·J 5·Mo", '"47": ["47 J"]'),
    "class": ("1a 2b 1·A 2.B", '"2b": ["2.B"]'),
    "mark": ("2- 2·- 3+ 3·+ 1", "'2-', '2 -'; '3+', '3 +'"),
    "level": ("I II III 1 2 3", '"II": ["2"]'),
    "name": ("Weiß WEISS Braun", '"Weiß": ["WEISS"]'),
    "town": (" ".join([*TOWNS, *TOWNS, *(t[1:] for t in TOWNS)]), ", ".join(f'"{t}": ["{t[1:]}"]' for t in TOWNS)),
    "parts": ("1 2 1a 1b 2a", ""),
    "room": ("A1 A11 B1 B·2", ""),
    "job": ("baker smith clerk", ""),
    "rate": ("07 10 100 7.5", ""),
    "stage": ("I II III IV", ""),
    "cancer": ("I II IIIA IV", ""),  # the cure read stage IIIA as stage I
    "allergens": ("G H H;L M", ""),
    "dementia": ("J N n.b.", ""),  # not known: spelled as N it was released as no
    "fell": ("Y N not·asked", ""),
}


@pytest.mark.slow
def test_one_value_in_several_spellings_is_asked_about_and_values_that_differ_are_not(capsys):
    """X, x and ja: the cure said "true": ["X", "x"], "false": ["ja"], and who followed it released yes as no."""
    texts = {n: [t.replace("·", " ") for t in own.split()] for n, (own, _) in LISTED.items()}
    declared = {name: {"kind": "categorical", "values": [*dict.fromkeys(own)]} for name, own in texts.items()}
    cells = {name: (own * 360)[:360] for name, own in texts.items()}
    looks = checked(capsys, cells, declared)["columns"]
    for name, (_, asked) in LISTED.items():
        hints = [hint for hint in looks[name]["hints"] if "one value in several spellings?" in hint or not asked]
        assert [asked in hint for hint in hints] == [True] * bool(asked), (name, looks[name])
    assert "kind: flag" not in str(looks["urgent"]["hints"]) and "kind: zip" not in str(looks["town"]["hints"])
    for name, own in {"sex": LISTED["sex"][1], "state": f"kind: categorical, values: [{WORD}, offen]"}.items():
        look = checked(capsys, {name: cells[name]}, f"{name}: {{{own}}}", "data.max_unplaced=1")["columns"][name]
        assert "several spellings" not in str(look) and (name == "sex" or "Unicode form alone" in str(look["hints"]))
    for name, values in (("town", TOWNS), ("class", ["1a", "2b"])):  # the cure reads the table; common would not
        own = {"kind": "categorical", "values": values}
        look = checked(capsys, {name: cells[name]}, {name: own}, "data.max_unplaced=1")["columns"][name]
        own["spellings"] = json.loads(next(h for h in look["hints"] if "differ" in h).split("spellings: ")[-1])
        assert checked(capsys, {name: cells[name]}, {name: own})["columns"][name]["lost"] == 0 < look["lost"]


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


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
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


def test_what_two_rows_of_one_person_share_is_no_constant_of_persons(capsys):
    """One number that was entered twice: a draft told what both rows hold, and what one lacks, as of everybody."""
    cells = {"ward": [f"w{i % 7}" for i in range(600)], "sex": ["f", "m"] * 300}
    for ids, said in (([*range(599), 5], False), ([i // 4 * 2 + i % 2 for i in range(600)], True)):
        pd.DataFrame({"who": ids, **cells}).to_csv("t.csv", index=False)
        assert command("schema", "t.csv", "privacy.unit=who") == 0
        assert ("constant: [sex]" in (text := capsys.readouterr().out)) == ("unit:" in text) == said, text


def test_telephones_with_a_leading_zero_are_no_codes_to_be_released_by_their_first_digits():
    """073, 074, … of donors with several rows each were listed under phone, which a draft is said to leave out."""
    donors = [i * 7 % 6000 for i in range(20_000)]
    numbers = [f"07{i * 15790321 % 10**9:09}" for i in donors]
    columns, text = drafted({"patient_id": donors, "phone": numbers, "sex": ["f", "m"] * 10_000})
    assert {*columns} == {"sex"}, text
    spaced = [f"{500 + i % 397} {i * 7 % 1000:03} {i * 13 % 1000:03}" for i in range(600)]
    assert "phone" not in drafted({"phone": spaced, "sex": ["f", "m"] * 300})[0], "500 123 456 was an amount"
    dotted = [t.replace(" ", ".") for t in spaced]
    assert "phone" not in drafted({"phone": dotted, "sex": ["f", "m"] * 300})[0], "and so was 500.123.456"
    abroad = [f"+48 {t}" for t in spaced]
    assert "phone" not in drafted({"phone": abroad, "sex": ["f", "m"] * 300})[0], "and +48 500 123 456, by its plus"
    assert "whole numbers of 11 digits, about 3 rows each: ids of others" in guess_of(text, "phone")


@pytest.mark.slow
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


def test_hours_above_24_are_lengths_of_time_and_no_times_of_the_day():
    """A third of the stays became missing, since "36:15" is no time of the day, and the others clocks."""
    cells = {
        "stay": [f"{i * 7 % 150:02}:{i % 60:02}" for i in range(900)],
        "run": [f"{i * 7 % 26:02}:{i % 60:02}:{i % 60:02}" for i in range(900)],
        "shift": [f"{i % 24:02}:{i % 60:02}" for i in range(900)],
        "closes": ["24:00" if i % 9 == 0 else f"{18 + i % 6}:00" for i in range(900)],  # the end of a day
        "typed": [f"{77 if i == 5 else i % 24:02}:{i % 60:02}" for i in range(900)],
        "score": [f"{60 + i * 7 % 50}:{60 + i * 11 % 50}" for i in range(900)],
    }
    columns, text = drafted(cells)
    assert "stay" not in columns and "run" not in columns
    assert {columns[n]["kind"] for n in ("shift", "closes", "typed")} == {"datetime"}
    assert text.count("lengths of time, some of more than 24 hours: write numbers (of minutes)") == 2


def test_numbers_that_ascend_in_nearly_all_rows_are_told_with_their_share_and_numbers_of_another_unit_are_not(capsys):
    """No rule was drafted of 99 % of the rows, no line said so, and a quarter of the synthetic rows broke it."""
    rng = random.Random(7)
    claim = made(lambda r, i: round(rng.lognormvariate(8, 1.2), 2))
    awarded = [round(c * (1.2 if i % 120 == 7 else rng.betavariate(3, 1.5)), 2) for i, c in enumerate(claim)]
    cells = {"claim": claim, "awarded": awarded, "paid": [round(0.97 * c, 2) for c in reversed(claim)]}
    cells |= {"metres": made(lambda r, i: rng.randint(500, 4000)), "steps": made(lambda r, i: rng.randint(2000, 9000))}
    (hint,) = (h for h in checked(capsys, cells)["hints"] if "≤" in h)
    told = "'awarded' ≤ 'claim' in 99.2 % of the 600 rows that hold both, and a release breaks it in many more"
    assert hint == f'{told}: are the others mistakes? ordered: [["awarded", "claim"]] keeps it in all rows'
    columns = drafted(cells)[0]
    hints = checked(capsys, cells, columns, ordered=[["awarded", "claim"]])["hints"]
    (broken,) = (h for h in hints if "≤" in h)
    assert broken.startswith("awarded ≤ claim: 0.8 % of the rows break it"), "a rule is no more asked about"


def test_results_of_games_are_no_lengths_of_time_which_have_minutes_below_ten():
    results = made(lambda rng, i: f"{rng.randint(10, 45)}:{rng.randint(10, 45)}")
    played = made(lambda rng, i: f"{rng.randint(10, 45)}:{rng.randint(0, 59):02}")
    quarters = made(lambda rng, i: f"{rng.randint(10, 45)}:{rng.randint(0, 3) * 15:02}")
    columns, text = drafted({"result": results, "played": played, "quarters": quarters, "sex": ["f", "m"] * (N // 2)})
    assert "two numbers in each, as 36:15 of a game" in guess_of(text, "result") and {*columns} == {"sex"}
    assert all("lengths of time, some of more than" in guess_of(text, column) for column in ("played", "quarters"))


@pytest.mark.slow
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


@pytest.mark.parametrize("counted", [False, True])
def test_times_that_lie_lengths_after_one_time_stay_in_order_and_none_is_lost_with_an_empty_one(capsys, counted):
    """A docket: cases without a hearing lost their decision, or 650 of 4,769 were decided before they were heard."""
    days = pd.date_range("2019-01-01", periods=1_800)
    heard, took = [9 + i * 37 % 90 for i in range(1_800)], [i * 29 % 60 for i in range(1_800)]
    open_for = [took[i] + (heard[i] if i % 4 else 5) for i in range(1_800)]
    cells = {
        "filed": days.astype(str),
        "heard": [str(d.date()) if i % 4 else "" for i, d in enumerate(days + pd.to_timedelta(heard, "D"))],
        "decided": (days + pd.to_timedelta(open_for, "D")).astype(str),
    } | ({"open": open_for} if counted else {})
    columns, text = drafted(cells)
    assert ('"decided": {"from": "heard"' in text, '"heard": {"from": "filed", "length"' in text) == (False, True)
    pair = ["heard_length", "open" if counted else "decided_length"]
    assert f"# ordered:\n#   - {json.dumps(pair)}  # in 1,350 of the 1,350 rows that hold both\n" in text
    lengths = {"heard": {"from": "filed", "length": {"max": 100}}}
    last = {"expression": "filed + open"} if counted else {"from": "filed", "length": {"max": 200}}
    for rules in ({}, {"derive": lengths | {"decided": last}}):
        hints = checked(capsys, cells, columns, **rules)["hints"]
        assert sum(f"ordered: {json.dumps([pair])}" in hint for hint in hints) == 1
    ruled = checked(capsys, cells, columns, **rules, ordered=[pair])["hints"]
    assert not any("ordered" in hint or "≤" in hint for hint in ruled)
    fixed = checked(capsys, cells, columns, derive=lengths | {"decided": {"expression": "filed + 30"}})["hints"]
    assert not any("≤" in hint for hint in fixed)  # 30 is no column


def test_the_hour_of_an_office_that_sleeps_agrees_with_its_time_and_bins_hold_all_weekdays(capsys):
    """Hours from 8 to 17 were no hours, and the rule about the weekday was refused: the draft's bins were days."""
    days = pd.date_range("2023-01-01", periods=360).repeat(3)
    at = days + pd.to_timedelta([8 + i * 7 % 10 for i in range(len(days))], "h")
    cells = {"at": at.astype(str), "weekday": at.day_name().str[:3], "hour": at.hour, "month": at.month}
    columns, text = drafted(cells)
    rule = {"at": {"weekday": "weekday", "hour": "hour"}}
    assert f"# calendar: {json.dumps(rule)}\n" in text and columns["at"]["bins"] == "month"
    assert (columns["hour"]["min"], columns["hour"]["max"], columns["month"]["max"]) == (0, 23, 12)
    assert not any("calendar" in hint for hint in checked(capsys, cells, columns, calendar=rule)["hints"])
    hints = checked(capsys, cells, columns | {"hour": {"kind": "integer", "min": 8, "max": 17}})["hints"]
    assert any('calendar: {"at": {"hour": "hour"}}, with min: 0, max: 23' in hint for hint in hints)


def test_a_draft_says_that_ordered_and_calendar_move_one_time_each():
    days = pd.date_range("2024-01-01", periods=360)
    cells = {"begun": days.astype(str), "weekday": days.day_name(), "over": (days + pd.Timedelta(days=20)).astype(str)}
    _, text = drafted(cells)
    assert '- ["begun", "over"]' in text and 'calendar: {"begun"' in text
    assert "it needs bins of at least a week, and no `ordered`" in text


def test_a_draft_and_check_say_that_ordered_takes_the_hours_of_a_time(capsys):
    """Loans of a library that opens at 10, with the day they came back: synthetic ones were made at 3 in the night."""
    begun = pd.date_range("2024-01-01 10:00", periods=1200, freq="7h").floor("D") + pd.Timedelta(hours=10)
    cells = {"begun": begun.astype(str), "over": (begun + pd.Timedelta(days=90, hours=2)).astype(str)}
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


@pytest.mark.slow
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
    assert "no two alike" in text and "1.0 rows each" not in text
    warm = load_schema(Path("s.yaml"))["warm"]
    assert labels(warm) == ("nein", "ja", None) and warm.codes_by_label["weiß nicht"] == warm.missing_code
    listed = "kind: categorical, values: [ja, nein, weiß nicht], missing:"
    for missing, cure in (("true", '["", "weiß nicht"]'), ("[k.A.]", '["k.A.", "weiß nicht"]')):
        (hint,) = checked(capsys, {"warm": cells["warm"]}, f"warm: {{{listed} {missing}}}")["columns"]["warm"]["hints"]
        assert hint.endswith(f"a gap? missing: {cure}")
    income = "income: {kind: integer, min: -9, max: 999, bins: {count: 20}, missing: ['-9']}"
    (hint,) = checked(capsys, {"income": cells["income"]}, income)["columns"]["income"]["hints"]
    assert hint == '-8 (20 times), -7 (20 times): a gap? missing: ["-9", "-8", "-7"]'


def test_units_of_one_letter_few_numbers_with_units_and_limits_are_numbers_and_classes_and_stations_are_none(capsys):
    """Heights in "1.70 m" were 66 texts, "738 s" ids, kg and lb a list, and lab values with "<0.5" texts."""
    cells = {
        "height": made(lambda r, _: f"{r.gauss(1.7, 0.1):.2f}m"),
        "took": made(lambda r, _: f"{r.randrange(60, 4000)} s"),
        "weight": made(lambda r, i: f"{r.randrange(60, 80)} kg" if i % 3 else f"{r.randrange(130, 180)} lb"),
        "lab": made(lambda r, _: "<0.5" if (x := r.expovariate(0.5)) < 0.5 else f"{x:.1f}"),
        "form": made(lambda r, _: f"{r.randrange(5, 11)}{r.choice('abcd')}"),
        "stop": made(lambda r, _: f"{(k := r.randrange(24)):02} S{chr(97 + k)}x"),
    }
    columns, text = drafted(cells)
    kinds = {name: fields["kind"] for name, fields in columns.items()}
    assert kinds == {"height": "float", "took": "integer", "lab": "float", "form": "categorical", "stop": "categorical"}
    assert (columns["height"]["strip"], columns["took"]["strip"]) == (["m"], ["s"])
    assert 'strip: ["<"] reads them as 0.5' in guess_of(text, "lab")
    assert '"weight"  # 69 distinct texts: numbers in several units, kg (400 rows), lb (200 rows)' in text


def test_a_short_number_under_the_title_of_a_national_id_is_no_person_where_another_column_is():
    """Days (Polish: dni) were guessed to be the persons, beside pesel: texts of one person were counted by them."""
    cells = {"pesel": [f"{58041100000 + i // 3 * 7919}" for i in range(600)], "dni": [i * 7 % 40 for i in range(600)]}
    cells["plan"] = ["a", "b"] * 300
    assert "Counted by the column 'pesel' (guessed" in drafted(cells)[1]
    for name in ("PersNr", "Pers.-Nr", "pers_no"):
        staff = {name: [100_000 + i * 7 for i in range(300)], "dni": [i * 7 % 40 for i in range(300)]}
        assert f"Counted by the column '{name}' (guessed" in drafted(staff)[1]
    alone = {"dni": cells["dni"], "plan": cells["plan"]}
    assert "Counted by the column 'dni' (guessed" in drafted(alone)[1], "cut short, it may still be the person's"


def test_spellings_of_one_value_make_no_constant_of_persons_vary(capsys):
    """H, h and homme of one person were three values, and the sex stood in no draft's constants."""
    cells = {"who": [f"p{i // 4}" for i in range(600)], "ward": [f"w{i % 7}" for i in range(600)]}
    cells["sex"] = [(("H", "h", "homme", "H "), ("F", "f", "femme", "F"))[i // 4 % 2][i % 4] for i in range(600)]
    pd.DataFrame(cells).to_csv("t.csv", index=False)
    assert command("schema", "t.csv", "privacy.unit=who") == 0
    assert "constant: [sex]" in (text := capsys.readouterr().out), text


def test_numbers_and_days_that_few_persons_have_are_left_out_as_their_texts_are():
    """One person's award was drafted with bounds of 123457 and 123458, to be confirmed as public."""
    rows = range(600)
    cells = {"pid": [f"P{i // 2}" for i in rows], "sex": ["f", "m"] * 300}
    for name, of_one, of_many in (("award", "123457.89", "{}.5"), ("died", "2023-04-17", "2024-02-{:02}")):
        cells[name] = [of_one if i // 2 == 70 else "" for i in rows]
        cells[f"{name}_often"] = [of_many.format(i // 2 % 28 + 1) if i < 40 else "" for i in rows]
    columns, text = drafted(cells)
    assert {*columns} == {"sex", "award_often", "died_often"}, text
    assert "123457" not in text and "2023-04" not in text
    for name in ("award", "died"):
        assert "fewer than 10 values of 'pid' hold any value: bounds would tell" in guess_of(text, name)


def test_numbers_too_large_for_remainders_are_no_multiples():
    """Whole numbers near 2^62 seemed multiples of 1000, as doubles lie 1024 apart there: rows were rounded so."""
    cells = {"mass": [2**62 + (i + 1) ** 7 * 2862933555777941757 % 2**62 for i in range(600)], "sex": ["f", "m"] * 300}
    cells["rent"] = [50 * (i % 40) for i in range(600)]
    columns, text = drafted(cells)
    assert columns["rent"]["multiple_of"] == 50
    assert "multiple_of" not in columns["mass"] and "multiples of 1000" not in text, text


def test_a_clock_of_twelve_hours_is_asked_about(capsys):
    """1:30 for 13:30, in a table without AM and PM, was all right: half a day too early."""
    hours = [7 + i % 11 for i in range(600)]
    cells = {"a": [f"{(h - 1) % 12 + 1}:{i % 60:02}" for i, h in enumerate(hours)]}
    cells |= {
        "b": [f"{h}:{i % 60:02}" for i, h in enumerate(hours)],
        "c": [f"{7 + i % 6}:{i % 60:02}" for i in range(600)],
    }
    cells["d"] = [f"2024-03-0{i % 9 + 1} {t:0>5}" for i, t in enumerate(cells["a"])]
    cells["e"] = [f"{t} {'PM' if h >= 12 else 'AM'}" for t, h in zip(cells["a"], hours, strict=True)]
    time = {"kind": "datetime", "min": "1900-01-01", "max": "1900-01-01", "format": "%H:%M"}
    declared = {"a": time, "b": time, "c": time, "e": time | {"format": "%I:%M %p"}}
    declared["d"] = {"kind": "datetime", "min": "2024-03-01", "max": "2024-03-31"}
    said = checked(capsys, cells, declared)
    asked = {n for n, c in said["columns"].items() if any("is 1:30 at night, or 13:30?" in h for h in c["hints"])}
    assert asked == {"a", "d"}
