"""Tables as offices have them, each column messy in a way of its own, and what a person would declare for it."""

import datetime
import random
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import yaml

ROWS = 6_000


@dataclass(frozen=True)
class Drafted:
    """What a draft says of a column.

    Attributes:
        fields: its declaration; None: it is left out.
        guess: the comment; rules: what is proposed below the columns.
    """

    fields: Mapping[str, Any] | None
    guess: str
    rules: str

    def of(self, *kinds: str) -> bool:
        return self.fields is not None and self.fields["kind"] in kinds

    def get(self, name: str) -> Any:
        return None if self.fields is None else self.fields.get(name)


@dataclass(frozen=True)
class Messy:
    """A column: its cells, and whether what a draft says of it is right."""

    cells: list[str]
    right: Callable[[Drafted], bool]


Table = Mapping[str, Messy]


def as_csv(table: Table, delimiter: str = ";") -> str:
    rows = zip(*(c.cells for c in table.values()), strict=True)
    quoted = (delimiter.join(f'"{cell}"' for cell in row) for row in rows)
    return "\n".join([delimiter.join(table), *quoted, ""])


def wrong_guesses(table: Table, text: str) -> list[str]:
    """The columns that a draft declares as no person would."""
    content, lines = yaml.safe_load(text), text.splitlines()
    rules = text.partition("# with these rules")[2]
    wrong = []
    for name, column in table.items():
        fields = content["columns"].get(name)
        key = next(i for i, line in enumerate(lines) if line.strip().lstrip("- ").strip("\"'").startswith(name))
        guess = lines[key - 1] if fields is not None else lines[key]
        wrong += [] if column.right(Drafted(fields, guess, rules)) else [name]
    return wrong


def left_out(drafted: Drafted) -> bool:
    return drafted.fields is None


def listed(*values: str, other: bool = False) -> Callable[[Drafted], bool]:
    """Each of these values once, in whatever spelling, and all cells placed."""

    def right(drafted: Drafted) -> bool:
        texts = [str(v).strip().casefold() for v in drafted.get("values") or ()]
        return drafted.of("categorical") and sorted(texts) == sorted(v.casefold() for v in values)

    return right


def flag(yes: str, no: str, *more: str) -> Callable[[Drafted], bool]:
    """Yes and no, written as here; `more` are texts that the schema reads too."""

    def right(drafted: Drafted) -> bool:
        sides = [(drafted.get(side) or drafted.get(side == "true") or [word]) for side, word in ANSWERS.items()]
        texts = {t for side in sides for t in side}
        return drafted.of("flag") and (sides[0][0], sides[1][0]) == (yes, no) and texts >= set(more)

    return right


ANSWERS = {"true": "yes", "false": "no"}


def dates(*forms: str, first: str = "", last: str = "") -> Callable[[Drafted], bool]:
    def right(drafted: Drafted) -> bool:
        own = drafted.get("formats") or [drafted.get("format") or "ISO"]
        inside = str(drafted.get("min")) >= first and (not last or str(drafted.get("max")) <= last)
        return drafted.of("date", "datetime") and set(own) == set(forms) and inside

    return right


def numbers(low: float, high: float, *gaps: str, growing: bool = False) -> Callable[[Drafted], bool]:
    """Bounds within these, with short digits; growing bins; these texts for gaps."""

    def right(drafted: Drafted) -> bool:
        if not drafted.of("integer", "float"):
            return False
        own, bins = (drafted.get("min"), drafted.get("max")), drafted.get("bins") or {}
        missing = drafted.get("missing")
        gaps_read = set(gaps) <= set(missing if isinstance(missing, list) else ())
        short = all(len(repr(x).strip("0").replace(".", "").replace("-", "")) <= 7 for x in own)
        return low <= own[0] and own[1] <= high and short and gaps_read and (not growing or "edges" in bins)

    return right


def coded(length: int) -> Callable[[Drafted], bool]:
    """By the first characters, or digits; or a list of codes."""
    return lambda drafted: drafted.get("prefix") == length or drafted.of("categorical")


def both(*each: Callable[[Drafted], bool]) -> Callable[[Drafted], bool]:
    return lambda drafted: all(right(drafted) for right in each)


def said(*words: str) -> Callable[[Drafted], bool]:
    return lambda drafted: all(w in drafted.guess + drafted.rules for w in words)


def picked(rng: random.Random, texts: Iterable[str], weights: Iterable[float] | None = None) -> list[str]:
    return rng.choices(list(texts), None if weights is None else list(weights), k=ROWS)


def days(rng: random.Random, first: str, count: int) -> list[datetime.date]:
    start = datetime.date.fromisoformat(first)
    return [start + datetime.timedelta(rng.randrange(count)) for _ in range(ROWS)]


def in_forms(rng: random.Random, moments: Iterable[datetime.date], forms: list[str]) -> list[str]:
    return [m.strftime(rng.choice(forms)) for m in moments]


def tail(count: int, power: float = 1.0) -> list[float]:
    """Weights of a long list: the k-th text has 1/k of the first."""
    return [1 / (k + 2) ** power for k in range(count)]


WARDS = ("Chirurgie", "Innere", "Kardiologie", "Onkologie", "Intensiv", "Geburtshilfe", "Kinder", "Psychiatrie")
YES_NO = "ja,Ja,JA,j,J,y,Y,yes,Yes,WAHR,wahr,1,nein,Nein,NEIN,n,N,no,No,FALSCH,falsch,0,true,false,x,unbekannt"


def hospital(seed: int = 1) -> dict[str, Messy]:
    """Seventeen columns of a German hospital."""
    rng = random.Random(seed)
    wards = picked(rng, [s for w in WARDS for s in (w, f"{w} ", w.upper())], [6, 2, 1] * 8)
    start = days(rng, "2022-01-01", 720)
    stays = [int(rng.expovariate(0.2)) for _ in range(ROWS)]
    end = [a + datetime.timedelta(n) for a, n in zip(start, stays, strict=True)]
    forms = ["%Y-%m-%d", "%d.%m.%Y", "%d/%m/%Y", "%d-%b-%Y", "%Y%m%d"]
    costs = [rng.lognormvariate(8, 1.3) for _ in range(ROWS)]
    money = [f"{c:,.2f} €".translate(str.maketrans(",.", ".,")) if i % 2 else f"€ {c:.2f}".replace(".", ",")
             for i, c in enumerate(costs)]  # fmt: skip
    money = [f"{c:.2f} EUR" if i % 10 == 3 else "k.A." if i % 50 == 9 else m
             for i, (c, m) in enumerate(zip(costs, money, strict=True))]  # fmt: skip
    weights = ["-999" if rng.random() < 0.03 else f"{rng.gauss(75, 14):.1f}" for _ in range(ROWS)]
    zips = sorted({f"{rng.randrange(1_000, 99_999):05}" for _ in range(287)})
    ends = ["hausen", "dorf", "berg", "stadt", "feld", "kirchen", "heim", "bach", "au", "wald"]
    ends += [f"{c}ingen" for c in "abcdefghijklmnopqrstuvwxyzäöüß"]
    towns = [a + b for a in ("Alt", "Neu", "Ober", "Unter", "Bad ", "Gross", "Klein", "Hohen") for b in ends]
    towns += [f"St. {t}" for t in towns[:80]]  # fmt: skip
    codes = [f"{c}{n:02}.{k}" for c in "ACEFGIJKMNRSZ" for n in (0, 10, 20, 21, 35, 48, 50, 69) for k in range(9)]
    return {
        "Fallnummer": Messy([str(700_000 + i) for i in range(ROWS)], left_out),
        "Mandant": Messy(["KH1"] * ROWS, lambda d: d.of("constant")),
        "Patient": Messy([f"P{rng.randrange(2_500):05}" for _ in range(ROWS)], left_out),
        "Geschlecht": Messy(picked(rng, ["F", "f", " F", "Female", "M", "m", "M ", "Male"]), _sexes),
        "Station": Messy(wards, listed(*WARDS)),
        "Station2": Messy(wards, lambda d: left_out(d) or '"Station2": {from' in d.rules),
        "Raucher": Messy(picked(rng, YES_NO.split(","), [9] * 4 + [3] * 20 + [1, 1]), _smokers),
        "Notfall": Messy(picked(rng, ["ja", "nein"]), flag("ja", "nein")),
        "Aufnahme": Messy(in_forms(rng, start, forms),
                          dates("ISO", *forms[1:], first="2021-12-01", last="2024-01-31")),
        "Entlassung": Messy([d.isoformat() for d in end], both(dates("ISO"), said('"Entlassung": {"from": "Aufn'))),
        "Kosten": Messy(money, both(numbers(0, 2 * max(costs), growing=True), said("written the other way"))),
        "Gewicht": Messy(weights, numbers(0, 150, "-999")),
        "PLZ": Messy(picked(rng, zips, tail(len(zips))), lambda d: d.of("categorical") or "of such codes" in d.guess),
        "Melder": Messy(picked(rng, [f"{7 * i:04}" for i in range(1, 140)]), coded(3)),
        "Wohnort": Messy(picked(rng, towns[:384], tail(384)), lambda d: d.of("categorical") and "other" in d.fields),
        "Diagnose": Messy(picked(rng, codes, tail(len(codes), 0.5)), lambda d: d.get("prefix") == 3),
        "Laenge": Messy([f"{rng.uniform(-122.484, -122.37):.7f}" for _ in range(ROWS)], numbers(-122.6, -122.3)),
    }  # fmt: skip


def _sexes(drafted: Drafted) -> bool:
    """Two values, and nothing goes elsewhere."""
    spelled = drafted.get("spellings")
    values = drafted.get("values") or ()
    return drafted.of("categorical") and len(values) == 2 and isinstance(spelled, dict) and len(spelled) == 2


def _smokers(drafted: Drafted) -> bool:
    words = {str(t) for t in drafted.get("missing") or ()} if isinstance(drafted.get("missing"), list) else set()
    return flag("ja", "nein", "x")(drafted) and "unbekannt" in words


def library(seed: int = 2) -> dict[str, Messy]:
    """Loans of an American library."""
    rng = random.Random(seed)
    genres = ("Fiction", "History", "Science", "Children", "Comics")
    branches = {1: "Main", 2: "North", 3: "Harbor", 4: "Airport"}
    branch = [rng.choice(list(branches)) for _ in range(ROWS)]
    lent = days(rng, "2023-01-01", 364)
    due = [d + datetime.timedelta(21) for d in lent]
    fines = [0.0 if rng.random() < 0.6 else 0.25 * round(rng.lognormvariate(1, 1.4) * 4) for _ in range(ROWS)]
    renewed = picked(rng, ["Y", ""], [1, 3])
    genre = picked(rng, [s for g in genres for s in (g, g.lower(), f"{g} ", f" {g.upper()}")], [8, 3, 2, 1] * 5)
    return {
        "loan": Messy([f"L-{i:06}" for i in range(ROWS)], left_out),
        "borrower_id": Messy([str(rng.randrange(10_000, 12_500)) for _ in range(ROWS)], left_out),
        "genre": Messy(genre, listed(*genres)),
        "genre_norm": Messy([g.strip().title() for g in genre], left_out),
        "branch": Messy([str(b) for b in branch], lambda d: d.of("integer", "categorical")),
        "branch_name": Messy([branches[b] for b in branch], both(listed(*branches.values()), said('"branch_name": {'))),
        "lent": Messy(in_forms(rng, lent, ["%m/%d/%Y", "%m/%d/%y"]), dates("%m/%d/%Y", "%m/%d/%y")),
        "due": Messy([f"{d:%b %d, %Y}" for d in due], both(dates("%b %d, %Y"), said('"due": {"from": "lent"'))),
        "fine": Messy([f"${f:,.2f}" if f else "" for f in fines], numbers(0, 2 * max(fines), growing=True)),
        "renewed": Messy(renewed, lambda d: d.of("flag")),
        "title": Messy([f"The {rng.choice(genres)} of {rng.getrandbits(40):x}" for _ in range(ROWS)], left_out),
        "age_group": Messy(picked(rng, ["0-5", "6-12", "13-17", "18-64", "65+", "n/a"]),
                           lambda d: d.of("categorical") and d.get("missing") == ["n/a"] and len(d.get("values")) == 5),
        "rating": Messy(picked(rng, ["1", "2", "3", "4", "5", "9"], [1, 2, 4, 5, 4, 2]),
                        lambda d: d.of("integer", "categorical")),
        "postal": Messy([f"K{rng.randrange(1, 4)}{rng.choice('AB')} {rng.randrange(9)}B{rng.randrange(9)}"
                         for _ in range(ROWS)], lambda d: d.of("categorical", "zip")),
        "email": Messy([f"reader{rng.randrange(2_000)}@mail.example" for _ in range(ROWS)], left_out),
        "pages": Messy([str(int(rng.gauss(320, 90))) for _ in range(ROWS)], numbers(-100, 800)),
    }  # fmt: skip


def energy(seed: int = 3) -> dict[str, Messy]:
    """Readings of a French supplier."""
    rng = random.Random(seed)
    french = str.maketrans(",.", " ,")
    reads = days(rng, "2021-03-01", 900)
    index = [rng.uniform(1_000, 90_000) for _ in range(ROWS)]
    amounts = [rng.lognormvariate(4.5, 1.2) for _ in range(ROWS)]
    insee = [f"{d:02}{n:03}" for d in (1, 2, 3, 75, 69) for n in range(1, 30)]
    return {
        "releve": Messy([str(i) for i in rng.sample(range(10**6), ROWS)], left_out),
        "compteur_no": Messy([f"{rng.randrange(2_000):08}" for _ in range(ROWS)], left_out),
        "date_releve": Messy(in_forms(rng, reads, ["%d/%m/%Y", "%d-%m-%Y"]), dates("%d/%m/%Y", "%d-%m-%Y")),
        "index_kwh": Messy([f"{x:,.1f}".translate(french) for x in index], numbers(0, 100_000)),
        "tarif": Messy(picked(rng, ["HP", "HC", "hp", "HC ", "Base", "BASE"]), listed("HP", "HC", "Base")),
        "actif": Messy(picked(rng, ["oui", "non", "Oui ", "NON", "n/a"], [8, 5, 3, 2, 1]), flag("oui", "non")),
        "code_insee": Messy(picked(rng, insee), coded(3)),
        "puissance": Messy(picked(rng, ["3 kVA", "6 kVA", "9 kVA", "12 kVA", "36 kVA"]),
                           lambda d: d.of("integer", "categorical")),
        "montant": Messy([f"{a:,.2f} €".translate(french) for a in amounts],
                         numbers(0, 4 * max(amounts), growing=True)),
        "temperature": Messy(["" if rng.random() < 0.1 else f"{rng.gauss(14, 5):.1f} °C".replace(".", ",")
                              for _ in range(ROWS)], numbers(-20, 50)),
        "iban": Messy([f"FR76{rng.randrange(10**22):023}" for _ in range(ROWS)], left_out),
        "commentaire": Messy([f"passage {rng.getrandbits(32):x}" if rng.random() < 0.2 else "" for _ in range(ROWS)],
                             left_out),
        "pays": Messy(["FR"] * ROWS, lambda d: d.of("constant")),
    }  # fmt: skip


def school(seed: int = 4) -> dict[str, Messy]:
    """A survey in schools."""
    rng = random.Random(seed)
    agree = ("Strongly agree", "Agree", "Neutral", "Disagree", "Strongly disagree")
    born = days(rng, "2006-09-01", 2_000)
    absent = [int(rng.lognormvariate(1, 1.3)) for _ in range(ROWS)]
    district = [f"D{rng.randrange(1, 13):02}" for _ in range(ROWS)]
    return {
        "row_id": Messy([f"{rng.getrandbits(128):032x}" for _ in range(ROWS)], left_out),
        "teacher": Messy([f"Ms {rng.choice('ABCDEFG')}{rng.choice(['dams', 'oyle', 'urie'])}" for _ in range(ROWS)],
                         left_out),
        "gender": Messy(picked(rng, ["Male", "male", "MALE ", "Female", "female", "Other"], [5, 2, 1, 5, 2, 1]),
                        listed("Male", "Female", "Other")),
        "q1": Messy(picked(rng, [s for a in agree for s in (a, a.lower(), f"{a} ")]), listed(*agree)),
        "score": Messy([f"{rng.randrange(30, 101)}%" for _ in range(ROWS)], numbers(0, 100)),
        "born": Messy([f"{d:%d-%m-%Y}" for d in born], dates("%d-%m-%Y", first="2006-01-01", last="2012-12-31")),
        "free_meal": Messy(picked(rng, ["TRUE", "FALSE", ""], [2, 5, 1]), flag("TRUE", "FALSE")),
        "absent": Messy([str(a) for a in absent], numbers(0, 2.5 * max(absent), growing=True)),
        "year": Messy(picked(rng, ["2021/22", "2022/23", "2023/24"]), listed("2021/22", "2022/23", "2023/24")),
        "district": Messy(district, lambda d: d.of("categorical") and len(d.get("values")) == 12),
        "county": Messy([f"County {int(x[1:]) % 4}" for x in district], said('"county": {from: "district"')),
        "lat": Messy([f"{rng.uniform(40.123, 40.987):.6f}" for _ in range(ROWS)], numbers(40, 41.1)),
        "grade": Messy(picked(rng, ["A", "B", "C", "D", "F", ""], [2, 4, 4, 2, 1, 1]), listed(*"ABCDF")),
        "age": Messy([str(18 - (d.year - 2006)) for d in born], numbers(0, 20)),
    }  # fmt: skip


TABLES: dict[str, Callable[[], Table]] = {make.__name__: make for make in (hospital, library, energy, school)}
