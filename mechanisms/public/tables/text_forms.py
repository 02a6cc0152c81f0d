"""What texts look like: dates in several forms, numbers with a currency sign or a decimal comma, yes and no, gaps.

Guesses for a person who looks at a table, from some of its texts with how often each occurs; nothing here is released.
"""

from __future__ import annotations

import datetime
import json
import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from unicodedata import normalize

from mechanisms.public.schema.spellings import ISO, NO_ANSWER, moment_of, short_words

#: Texts that often stand for a missing value; the zeros are days that MySQL, SAP and forms write where there is none.
_ZEROS = "0000-00-00|0000-00-00 00:00:00|00000000|00.00.0000|00/00/0000"
GAPS = tuple(f"?|NA|N/A|n/a|NULL|null|None|nan|NaN|<NA>|NaT|-|--|.|#N/A|{_ZEROS}".split("|"))
#: Words for it, and one digit six times or more: 9999999999, 00000000.
NO_VALUE = re.compile(rf"(?i:{NO_ANSWER})|(?P<digit>[0-9])(?P=digit){{5,}}")
#: Answers in signs (+, ++, (+), +/-), and dashes: no value, or 0 in accounts, but answers where all others are signs.
SIGNS, DASHES = re.compile("[-+±()/]*[+±][-+±()/]*"), ("-", "--")
#: What boxes are ticked with.
CROSSES = ("x", "✓", "✔")
#: How `frame_files.sign_of` writes an object that no table holds.
OBJECT = re.compile(r"<\w+>")
#: Words that forms write for 0.
ZERO = re.compile("(?i:nil|zero|nought|free|gratis)")
#: A share of the rows that takes nothing from what all others say; the least share of a form of days.
HARDLY_ANY, LEAST_FORM = 0.02, 0.005
#: Numbers that often stand for a missing value, where they are the least or the largest one.
CODES_OF_GAPS = (-1, -2, -7, -8, -9, -99, -999, -9999, 99, 999, 9999, 99999, 999999)
#: Numbers that mean so where they lie apart from all others: these, and 66, 77, 88, 96 to 99 of up to eight digits.
_ENDS = [n for k in range(2, 9) for n in (*range(10**k - 4, 10**k), *(one * (10**k // 9) for one in (6, 7, 8)))]
FAR_CODES = tuple(sorted({*CODES_OF_GAPS, *_ENDS, *(-n for n in _ENDS)}))
#: How days are written, as strftime formats, the likeliest first; months with their English names too.
_DAYS = "%m/%d/%Y|%d/%m/%Y|%d.%m.%Y|%d-%m-%Y|%Y/%m/%d|%Y%m%d|%d.%m.%y|%m/%d/%y|%d/%m/%y"
_DAYS += "|%d %b %Y|%d-%b-%Y|%b %d, %Y|%d %b %y|%d-%b-%y|%d %B %Y|%B %d, %Y|%a %d.%m.%Y|%a %d/%m/%Y|%a, %d %b %Y"
_TIMES = ("", " %H:%M:%S", " %H:%M", " %I:%M:%S %p", " %I:%M %p")
#: How dates and times are written; ISO for 2016-12-31, with or without a time behind it. Months alone come last.
DATE_FORMS = (ISO, *(day + time for day in _DAYS.split("|") for time in _TIMES), *("%Y-%m-%d" + t for t in _TIMES[3:]))
DATE_FORMS += ("%m/%Y", "%m.%Y", "%b %Y", "%B %Y")
#: How times of the day alone are written, and how most texts of such a column begin.
CLOCK_FORMS = ("%H:%M", "%H:%M:%S", "%H:%M Uhr", "%H.%M Uhr", "%H.%M", "%Hh%M", "%I:%M %p", "%I:%M:%S %p", "%H%M")
CLOCK = " *[0-9]{1,2}[:h][0-9]{2}"
#: What stands beside an amount of money; 470,- has no cents.
CURRENCIES = ("$", "€", "£", "¥", "₹", "EUR", "USD", "GBP", "CHF", "Fr.", "kr.", "kr", "%", ",--", ".--", ",-", ".-")
#: What may part thousands: among the texts that are taken out, these only before exactly three digits each.
THOUSANDS = (",", ".", "'", "’", " ", "\xa0", "\u202f")
#: A word behind numbers is their unit where so large a share of these words is it.
SAME_UNIT = 0.95
SPACES = " \xa0\u202f"
#: A number, and the word behind it: 5 kg, 36.9 °C, 4,2 mmol/L, 60m2, 59 P., 14,20 €/Std, 110 € mtl.
MEASURED = re.compile(r"([-+]?\d[\d.,]*)\s*(°?(?:[$€£¥₹][/ ])?[^\W\d_]+\.?(?:/[^\W\d_]+\.?)?(?:(?<=m)[23])?)")
#: The sign of typesetters, as spreadsheets write it before negative numbers; and a sign apart from its number: - 5.
MINUS, SIGN_APART = "\u2212", rf"^\s*([-+])[{SPACES}]+([0-9.,])"
#: Whose numbers tables hold, in words before "number" or "nr" (klantnr): persons, and those who serve them.
PERSONS = "pa[ct]ient|person|customer|client|user|subject|member|citizen|employee|student|kunde|klant|klient|paziente"
PERSONS += "|ansatt|pacjent|versichert|mitglied|medlem|assur[eé]|adh[eé]rent|abonn|usager|afiliad|alumno|matricul"
PERSONS += "|pers(?:onal|oneel|.{0,2}n[ro])|medewerker|mitarbeiter|empleado|dipendente|pracownik|medarbetar|medarbejder"
STAFF = "dienst|officer|agent|staff|badge|beamte|operador|funcionario"
#: Numbers of persons that states and clinics give.
NUMBERS = "ssn|mrn|nhs|pid|bsn|nif|dni|pesel|cpf|curp|svnr|codice[_ ]?fiscale|cod[_ ]?fisc"
#: What columns of ids are called.
ID_NAME = re.compile(
    r"(^|[_\W])(id|ids|ID|IDS|uuid|guid|hash|pseudonym|key|hhid|HHID)$|(?i:^(patient|person|customer|client"
    r"|user|subject|member|citizen|employee|student|case|mitglied|kunde|klient|paciente|paziente)[_ ]?"
    r"(id|nr|no|number|key)?$)|(?i:(^|[_\W])(nr|no|number)\W*$)"
    rf"|[a-z](Id|Nr|No|Number)$|[A-Z]{{2}}id$|(?i:^e[-_ ]?mail([-_ ]?address)?$|(^|[_\W])({NUMBERS})$)"
    rf"|(?i:(^|[_\W])({PERSONS}|{STAFF}|pers)[einrs]{{0,3}}[-_ ]?(nr|num|nummer|number|no|numer|num[eé]ro)\W*$)"
    rf"|(?i:^(nr|num|num[eé]ro|n°)[-_ ]?(d[eiou]l?[_ ]|d['_])?({PERSONS}|{STAFF})[aeo]?$|(^|[_\W])(badge|matricule)$)"
)
#: What columns of ids of persons are called.
PERSON_ID_COLUMN = re.compile(rf"(?i){PERSONS}|ssn|mrn|nhs|pid|e[-_ ]?mail|(^|[_\W])({NUMBERS})$")
#: A word may be misspelt where another, an edit apart, has so many times its rows; shorter words have no edits.
RARER, SHORTEST_WORD, MISSPELT_SHOWN = 10, 4, 5
#: What columns of codes are called, whose digits are no amount.
CODE_NAME = re.compile(r"(?i)zip|postal|postcode|plz|(^|[_\W])(code|id)$")
#: With a value in more than this share of the rows ids number rows, not persons.
ROW_SHARE, RUNNING = 0.95, 0.5

Texts = Mapping[str, int]


@dataclass(frozen=True)
class NumberForm:
    """How the numbers of a column are written.

    Attributes:
        strip: texts that are taken out first, such as a currency sign; the mark of thousands where it parts thousands.
            1.245,86 is a number with the mark "." and a decimal comma, 702.49 is none: it is written another way.
        decimal: the decimal mark.
    """

    strip: tuple[str, ...] = ()
    decimal: str = "."

    @property
    def plain(self) -> bool:
        """Whether any program reads them as they are."""
        return not self.strip and self.decimal == "."

    def number(self, text: str) -> float | None:
        """The number that a text is, or None; as `Source.number` reads it."""
        text = without(text.replace(MINUS, "-"), self.signs)
        if any(mark in text for mark in self.marks):
            if not re.fullmatch(self.parted, text):
                return None
            text = "".join(c for c in text if c not in self.marks)
        if self.decimal != ".":
            text = "x" if "." in text else text.replace(self.decimal, ".")
        try:
            number = float(text) if text.isascii() and "_" not in text else math.nan
        except ValueError:
            return None
        return number if math.isfinite(number) else None

    def reads(self, text: str) -> bool:
        """Whether a text is a number."""
        return self.number(text) is not None

    def doubtful(self, texts: Texts) -> int:
        """In how many rows a text is a number, and another one with point and comma changed over."""
        both = ((self.number(t), self.other_way.number(t), n) for t, n in texts.items())
        return sum(n for a, b, n in both if a is not None and b is not None and a != b)

    @property
    def marks(self) -> tuple[str, ...]:
        """What parts thousands."""
        return tuple(s for s in self.strip if s in THOUSANDS)

    @property
    def dots(self) -> tuple[str, ...]:
        """The point or the comma, where it parts thousands."""
        return tuple(s for s in self.strip if s in {",", "."})

    @property
    def signs(self) -> tuple[str, ...]:
        """What stands beside the digits."""
        return tuple(s for s in self.strip if s not in THOUSANDS)

    @property
    def money(self) -> bool:
        """Whether a currency stands beside the digits: no price has three decimals."""
        return any(s in CURRENCIES and s != "%" for s in self.signs)

    @property
    def parted(self) -> str:
        """A number whose thousands are parted, all by one mark."""
        each = "|".join(rf"[1-9][0-9]{{0,2}}({re.escape(mark)}[0-9]{{3}})+" for mark in self.marks)
        return rf"[-+]?({each})({re.escape(self.decimal)}[0-9]*)?"

    @property
    def mark_name(self) -> str:
        """The decimal mark in words."""
        return "point" if self.decimal == "." else "comma"

    @property
    def other_way(self) -> NumberForm:
        """The same with point and comma changed over."""
        decimal = "," if self.decimal == "." else "."
        return NumberForm((*(s for s in self.strip if s not in {",", "."}), self.decimal), decimal)

    def fields(self) -> dict[str, object]:
        """As a column of a schema says it."""
        fields: dict[str, object] = {"strip": list(self.strip)} if self.strip else {}
        return fields | ({"decimal": self.decimal} if self.decimal != "." else {})


#: Numbers as any program reads them.
AS_THEY_ARE = NumberForm()


def few_words(texts: Collection[str]) -> bool:
    """Whether they are three words at most, without digits: such words among numbers or dates stand for something."""
    return len(texts) <= 3 and not any(c.isdigit() for text in texts for c in text)


def far_flung(values: int, span: float) -> bool:
    """Whether whole numbers, so few of them over so wide a range, are codes of categories."""
    return values <= 20 and span > 1000


def share_of(texts: Texts, reads: Callable[[str], bool]) -> float:
    """The share of the texts, each as often as it occurs, that a function says yes to."""
    total = sum(texts.values())
    return sum(n for t, n in texts.items() if reads(t)) / total if total else 0.0


#: What texts of a form look like, for each directive that our forms use.
_LOOKS = {
    "%Y": r"\d{4}",
    "%y": r"\d{2}",
    "%b": r"\w+\.?",
    **{f"%{c}": r"\w+" for c in "aBp"},
    **{f"%{c}": r"\d{1,2}" for c in "mdHIMS"},
}


def day_and_month(form: str) -> str:
    """The form with the day and the month changed over: 03/04/2020 is of both; empty where it has no such twin."""
    twin = re.sub("%([dm])([/.-])%([dm])", r"%\3\2%\1", form)
    return twin if twin != form else ""


@lru_cache
def _shape(form: str) -> re.Pattern[str] | None:
    """What any text of a form looks like; None where only reading tells."""
    parts = re.split("(%.)", form)
    if any(p.startswith("%") and p not in _LOOKS for p in parts):
        return None
    return re.compile("".join(_LOOKS.get(p) or r"\s+".join(map(re.escape, re.split(r"\s+", p))) for p in parts))


def _fits(text: str, form: str) -> bool:
    """Whether a text may be of a form, whatever its digits are."""
    if form == ISO:
        return "-" in text
    shape = _shape(form)
    return shape is None or shape.fullmatch(text) is not None


@lru_cache(1 << 16)
def as_moment(text: str, form: str) -> datetime.datetime | None:
    """The day or time that a text is in that form, or None."""
    if not _fits(text := text.strip(), form):
        return None  # nearly all texts are of another form, and reading takes far longer
    return moment_of(text, None if form == ISO else form)


def date_forms(texts: Texts) -> list[tuple[str, float]]:
    """The forms that together read most of the texts, each with the share that no form before it reads."""
    left, total = dict(texts), sum(texts.values())
    forms: list[tuple[str, float]] = []
    outlines = {re.sub(r"\d", "9", t.strip()) for t in left}
    every = CLOCK_FORMS if share_of(texts, lambda t: re.match(CLOCK, t) is not None) > 0.5 else DATE_FORMS
    possible = [f for f in every if any(_fits(o, f) for o in outlines)]
    while left and possible:
        reads = {f: sum(n for t, n in left.items() if as_moment(t, f)) for f in possible}
        best = max(reads, key=lambda f: reads[f])
        if reads[best] < max(LEAST_FORM * total, 1):
            break
        forms.append((best, reads[best] / total))
        left = {t: n for t, n in left.items() if not as_moment(t, best)}
    return forms


def number_reading(texts: Texts) -> tuple[NumberForm, float]:
    """How most of the texts can be read as numbers, and the share of them that are."""
    numeric = {t: n for t, n in texts.items() if re.search(r"\d", t)}
    signs = [c for c in CURRENCIES if any(_beside(t, c) for t in numeric)]
    signs += unit_of_measure(numeric)
    bare = {t: without(t, signs) for t in numeric}
    thousands, points = ([m] if _parts(m, bare.values()) else [] for m in ",.")
    spaces = [s for s in THOUSANDS[2:] if any(re.search(rf"\d{s}\d{{3}}", b) for b in bare.values())]
    dotted = NumberForm((*signs, *thousands, *spaces))
    comma = NumberForm((*signs, *points, *spaces), ",")
    each = [(r, share_of(texts, r.reads)) for r in (NumberForm(), dotted, comma)]
    return max(each, key=lambda e: (e[1], e[0].plain))


def unit_of_measure(texts: Texts) -> list[str]:
    """The word behind the numbers, where nearly all that have one have the same (m2 is m²): not 5 kg and 70 g."""
    words: Counter[str] = Counter()
    for text, n in texts.items():
        match = MEASURED.fullmatch(own := text.strip())
        if match and (len(match[2]) > 1 or own[-2].isspace() or not match[1].isdigit()):  # 7b is a class
            words[match[2]] += n
    usual = {normalize("NFKC", word) for word, _ in words.most_common(1) if word not in CURRENCIES}
    same = {word: n for word, n in words.items() if normalize("NFKC", word) in usual}
    return [*same] if sum(same.values()) >= SAME_UNIT * words.total() else []


def _beside(text: str, sign: str) -> bool:
    bare = text.strip().lstrip("+-" + SPACES)
    return bare.startswith(sign) or bare.endswith(sign)


def without(text: str, signs: Sequence[str]) -> str:
    """A text without currencies or units, and spaces around it or behind its sign."""
    for sign in signs:
        text = text.replace(sign, "")
    return re.sub(SIGN_APART, r"\1\2", text.strip())


def _parts(mark: str, texts: Collection[str]) -> bool:
    """Whether a point or a comma parts thousands, and no text contradicts it.

    1,234.50 and 1,234,567 show that a comma does. 1,234 may be 1.234: where it occurs, no text may have a decimal comma
    (12,5), and one must show the mark of thousands, unless none has a point.
    """
    other, group = ("." if mark == "," else ","), rf"[-+]?[1-9]\d{{0,2}}({re.escape(mark)}\d{{3}})"
    dot = re.escape(other)
    shown = any(re.fullmatch(rf"{group}+{dot}\d+|{group}{{2,}}", t) for t in texts)
    either = {t for t in texts if re.fullmatch(group, t)}
    decimal = rf"[-+]?(\d*|[1-9]\d{{0,2}}({dot}\d{{3}})+){re.escape(mark)}\d+"
    if not either:
        return shown
    if any(re.fullmatch(decimal, t) for t in texts if t not in either):
        return False
    return shown or not any(other in t for t in texts)


def either_way(reading: NumberForm, texts: Texts) -> int:
    """In how many rows a text such as 1.234 is one number with a mark of thousands, and another with a decimal one."""
    return NumberForm((*reading.signs, "."), ",").doubtful(texts)


def misspelt(texts: Texts) -> str:
    """Words that differ from a far more frequent one in capitals or by one edit, as a sentence; none: empty."""
    near: dict[str, list[str]] = {}
    for text in texts:
        for key in _one_edit_away(text):
            near.setdefault(key, []).append(text)
    pairs = []
    for text, n in texts.items():
        close = {o for key in _one_edit_away(text) for o in near[key] if texts[o] >= RARER * n and o != text}
        if n and close:
            pairs.append((text, max(close, key=lambda o: (texts[o], o))))
    few = ", ".join(f"{t!r} ({texts[t]:,} rows) for {o!r} ({texts[o]:,})" for t, o in pairs[:MISSPELT_SHOWN])
    return f"{len(pairs)} may be misspelt: {few}{', …' if len(pairs) > MISSPELT_SHOWN else ''}" if pairs else ""


def _one_edit_away(text: str) -> set[str]:
    """Patterns that a text shares with those that differ in capitals, by a letter, or by two that changed places.

    Of what is no word, but a code or short, only those that words with a letter more have.
    """
    folded = text.strip().casefold()
    word = len(folded) >= SHORTEST_WORD and not re.search(r"\d", folded)
    ends = [(folded[:i], folded[i:]) for i in range(len(folded) + 1)]
    patterns = {folded, *(f"{front}\0{back}" for front, back in ends)}
    for front, back in ends if word else ():
        patterns |= {f"{front}\0{back[1:]}", f"{front}\0{''.join(sorted(back[:2]))}\0{back[2:]}"}
    return patterns


def may_be_thousands(texts: Texts, mark: str = ".") -> int:
    """In how many rows numbers such as 1.234 stand, where hardly any others are not whole and below 1000.

    They may mean 1234 or 1.234, and a cell or two that are written otherwise say nothing of them.

    Args:
        mark: a comma is certain to part thousands where one number has two of them.
    """
    bare = {t.strip().lstrip("+-" + SPACES): n for t, n in texts.items() if re.search(r"\d", t)}
    if mark == "," and any(t.count(mark) > 1 for t in bare):
        return 0
    rows = sum(n for t, n in bare.items() if re.fullmatch(rf"[1-9]\d{{0,2}}({re.escape(mark)}\d{{3}})+", t))
    small = sum(n for t, n in bare.items() if re.fullmatch(r"\d{1,3}", t))
    return rows if sum(bare.values()) - rows - small <= HARDLY_ANY * rows else 0


def thousands_in_words(reading: NumberForm, texts: Texts) -> str:
    """That the numbers which so read may be others, with their mark as the other one; empty where that is certain.

    Money is: no price has three decimals.
    """
    mark = reading.dots[0] if reading.dots else reading.decimal
    bare = {without(t, reading.signs): n for t, n in texts.items()}
    if reading.money or not (rows := may_be_thousands(bare, mark)):
        return ""
    few = f"{rows:,} rows hold numbers such as 1{mark}234, and hardly any others 1000 or more: they may mean 1234"
    fields = (
        ", ".join(f"{k}: {json.dumps(v)}" for k, v in reading.other_way.fields().items()) or 'no strip, decimal: "."'
    )
    own = "1234" if reading.dots else "1.234, and decimals: 3 says that it is right"
    return f"{few} or 1.234; this reads {own}; else {fields}"


def may_number(low: float | None, high: float | None, distinct: int) -> bool:
    """Whether whole numbers have as many digits, four or more, or leave few out from 1 on: as ids, few amounts."""
    if low is None or high is None or low <= 0 or since_1970(low, high):
        return False
    return (low >= 1000 and len(f"{low:.0f}") == len(f"{high:.0f}")) or distinct >= RUNNING * (high + 1)


def since_1970(low: float, high: float) -> str:
    """The unit in which whole numbers may count from 1970 on: all are times of 2001 to 2030; empty: none."""
    return next((u for u, x in {"s": 1e9, "ms": 1e12}.items() if x <= low <= high < 1.9 * x), "")


def gap_words(texts: Texts, *, numbers: bool, frequent: Collection[str] | None = None) -> list[str]:
    """Texts among the given that may mean that a value is missing: well-known ones, or up to three words; none for 0.

    Args:
        frequent: signs such as NA aside it is one of these; None: any may be.
    """
    texts = {t: n for t, n in texts.items() if frequent is None or t in frequent or t.strip() in GAPS}
    codes = {str(c) for c in CODES_OF_GAPS if c < 0}
    short = [t for t in short_words(texts) if not t.strip().isalpha()]
    usual = [t for t in texts if t.strip() in {*GAPS, *codes} or NO_VALUE.fullmatch(t.strip()) or t in short]
    words = [t for t in texts if not (re.search(r"\d", t) or ZERO.fullmatch(t.strip()))]
    if numbers and len(words) <= 3:
        return sorted({*usual, *words})
    return sorted(usual)
