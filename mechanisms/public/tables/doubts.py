"""What the texts of a column may mean that no kind of column reads: days in digits, two units, ids cut short. Guesses.

A draft and `check` ask the same, of some of the texts with how often each occurs; nothing here is released.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Collection, Sequence

import numpy as np

from mechanisms.public.arrays import Floats, Ints
from mechanisms.public.tables.text_forms import (
    HARDLY_ANY,
    ID_NAME,
    MEASURED,
    NumberForm,
    Texts,
    as_moment,
    gap_words,
    share_of,
    since_1970,
)
from mechanisms.public.units import plain_digits

#: What columns of postal codes are called.
POSTAL_NAME = re.compile(r"(?i)zip|postal|postcode|plz")
#: How days and times are written in digits alone, as 20240229 is, and in how many of them.
COMPACT_FORMS = {"%Y%m%d": 8, "%d%m%Y": 8, "%m%d%Y": 8, "%y%m%d": 6, "%d%m%y": 6, "%m%d%y": 6, "%Y%m": 6, "%m%Y": 6}
COMPACT_FORMS |= {"%Y%m%d%H%M": 12, "%Y%m%d%H%M%S": 14}

_MONTH, _DAY, _YEAR = "(0?[1-9]|1[0-2])", "(0?[1-9]|[12][0-9]|3[01])", "(19|20)[0-9]{2}"
_TWO = {"m": "(0[1-9]|1[0-2])", "d": "(0[1-9]|[12][0-9]|3[01])", "y": "[0-9]{2}"}
#: A month of a year; of 10.2020 a program for sheets leaves 10.202.
MONTHS = re.compile(rf"{_MONTH}[./-](19|20)[0-9]{{1,2}}|{_YEAR}[./-]{_MONTH}")
#: Days in digits, with zeros in front or without, and days of years of two digits that lost the first zero.
DAYS = re.compile(f"({_MONTH}{_DAY}|{_DAY}{_MONTH}){_YEAR}")
SHORT_DAYS = re.compile(
    f"{_DAY}{_TWO['m']}{_TWO['y']}|{_MONTH}{_TWO['d']}{_TWO['y']}|[0-9]{{1,2}}{_TWO['m']}{_TWO['d']}"
)
#: A day of the years 1982 to 2064 as programs for sheets count it; and what columns of days are called.
SERIAL = re.compile(r"[3-5][0-9]{4}(\.[0-9]+)?")
DAY_NAME = re.compile(
    r"(?i)datum|fecha|(^|[_\W]|birth|start|end|(?-i:(?<=[a-z])(?=[A-Z])))(date|day|dob|data|tag|jour|dag)(?![^\W_])"
)
#: Days of these years are meant.
FIRST_YEAR, LAST_YEAR = 1900, 2100
#: Times of the day in digits.
TIMES = re.compile("([01]?[0-9]|2[0-3])([0-5][0-9])")
YEARS, SHORT_YEARS = re.compile("(18|19|20)[0-9]{2}"), re.compile("[0-9]{2}")
#: A number of twelve digits and more, as a program for sheets shows it: many are written alike.
CUT_SHORT = re.compile(r"[0-9]([.,][0-9]{1,5})?[eE][+]?(1[1-9]|[2-9][0-9])")
#: What stands in rows of totals.
TOTALS = (
    "((grand |sub-?)?totals?|sum|(gesamt|zwischen)?summe|(ins)?gesamt|gesamtergebnis|all|alle|overall|totale|totaal"
    "|suma|razem|ogółem|somme|total g[eé]n[eé]ral):?|(anzahl|number of|count|zahl der)[^:]*: *[0-9.,]+"
)
#: What stands behind numbers that tell a place in an order.
ORDINALS = frozenset(("st", "nd", "rd", "th"))
#: Texts are of a form where at least this share of the rows is; of two forms where each has more than HARDLY_ANY.
NEARLY_ALL = 0.95
#: Of fewer different texts nothing is said, and no word of fewer rows is told; times are of at least so many hours, and
#: of so many minutes.
FEWEST, FEWEST_PARTS = 20, 3
#: Two units of bodies: the larger number is so many times the smaller one and so much more, which lies between two.
SCALES = (
    (1.8, 32.0, (34, 42), "°C beside °F"),
    (2.54, 0.0, (15, 85), "inches beside cm"),
    (2.2046, 0.0, (45, 105), "kg beside lb"),
)
#: How far the middles of two such units may be off.
OFF = 0.06
#: Numbers may be in two units where their logarithms fall into two groups so many of their standard deviations apart
#: (Ashman's D: one bell has 2.7, an even spread 3.5), the middle third between these holds at most such a share, and
#: neither is so many times as wide as the other: a factor moves all logarithms alike; and of so many numbers each.
#: Units differ by such a factor at least (a yard beside a metre: 1.09); two places on a map may lie closer.
APART, VALLEY, AS_WIDE, FEWEST_OF_UNIT, LEAST_FACTOR = 5.0, 0.03, 2.5, 5, 1.05
#: A bulk is this share of the numbers; it fills little of their range where it lies within this share of that.
BULK, LITTLE = 0.9, 0.1
#: Of so many ids, those with the most records, texts that look like none are told; this share has the usual number.
LOOKED_AT, USUAL = 1000, 0.99
#: Ids hold digits where so large a share of them does, and are of a shape where this share is; zeros or nines alone,
#: with letters before them, are often nobody's; and so many times the usual number of records is hardly a person's.
NUMBERED, LARGE_PART, NO_NUMBER, FAR_MORE = 0.9, 0.1, re.compile(r"[^\W\d_]*(0+|9+)"), 10
#: Whole numbers may number others where at least this share has one length, and so many digits but for zeros behind, in
#: so many rows each, which a quarter of them has (most farms are small, and of amounts a few are frequent), or fewer
#: where the column is called after somebody's numbers; what columns of maps are called.
ALIKE, MANY_DIGITS, ROWS_EACH, OFTEN = 0.8, 7, 3, 0.75
SOMEBODYS_NAME = re.compile(
    r"(?i)(phone|telefon|(^|_)(tel|mobile?|handy|fax|msisdn|imei|bsn|svnr|licen[cs]e))([_ ]?(number|nummer|nr|no))?$"
    r"|(konto|steuer|pass(port)?|account|ausweis)[_ ]?(number|nummer|nr|no)$"
)
MAP_NAME = re.compile(r"(?i)latitude|longitude|easting|northing|coord|utm|rechtswert|hochwert|^(lat|lon|lng|long|x|y)$")
#: What columns of places, trades and the like are called; whole numbers from 1 on are names there, and 0 is an amount.
NUMBERED_NAME = re.compile(
    r"(?i)(^|[_\W])(country|county|state|province|canton|region|district|dep(artmen)?t|municipality|city|town|village"
    r"|precinct|ward|borough|parish|zone|sector|industry|occupation|profession|site|station|store|shop|branch|brand"
    r"|species|nationality|religion|language|ethnicity|hospital|clinic|cent(er|re)|school|university|cluster"
    r"|(bundes)?land|kanton|(land)?kreis|bezirk|gemeinde|ort|stadt|staat|branche|beruf|filiale|nationalität|sprache"
    r"|klinik|krankenhaus|schule|zentrum|pays|d[ée]partement|commune|ville|secteur|nationalit[ée]|langue|h[ôo]pital"
    r"|[ée]cole|pa[íi]s|provincia|municipio|ciudad|distrito|paese|regione|comune|citt[àa])([_\W]?fips)?$"
)
#: Letters and digits in groups, as of ear tags, vehicles and accounts: DE 09 309 60132.
LETTERS_AND_DIGITS = re.compile("(?=.*[A-Za-z])[A-Za-z0-9]+([ -][A-Za-z0-9]+)*")
#: A running number behind letters, with zeros before it: MAC000002.
PADDED = re.compile("[A-Za-z]+[ -]?0[0-9]{4,}")
#: What laboratories write of a value beyond what they can measure.
LIMIT_SIGNS = "<>≤≥"
LIMIT = re.compile(rf"([{LIMIT_SIGNS}]) ?[0-9][0-9.,]*")
#: Standard deviations of a bell between its first and its last tenth.
TENTHS = 2.563
#: So many pairs of texts are one number with a zero at the end and without.
CODES_PAIRS = 3


def number_doubts(texts: Texts, name: str) -> list[str]:
    """What numbers, or digits, may be instead: sentences, none where nothing is odd.

    Args:
        texts: without gaps; `name`: of the column.
    """
    bare = {t.strip().removesuffix(".0"): n for t, n in texts.items()}
    if DAY_NAME.search(name) and _share(bare, SERIAL) >= NEARLY_ALL:
        asked = "are the numbers days of a program for sheets, as 44789 is 2022-08-16?"
        return [f"{asked} Write 2022-08-16 in the table; kind: date"]
    return _in_digits(bare) or short_years(bare)


def numbers_apart(texts: Texts, reading: NumberForm) -> list[str]:
    """That numbers are in two units, or are codes: the more texts, the more is seen."""
    return _two_scales(texts, reading) or _far_rest(texts, reading) or _zeros_behind(texts)


def numbers_of_others(texts: Texts, name: str, each: float) -> list[str]:
    """That whole numbers may be ids of others: most have one length, many digits but for zeros behind, and many rows.

    Args:
        texts: the most frequent ones.
        name: of the column: no map's or postal service's.
        each: rows of each value, in the mean.
    """
    bare = ("".join(t.split()).removeprefix("+").removesuffix(".0") for t in texts)  # +48 500 123 456, 500.123.456 too
    digits = [d for t in bare if re.fullmatch("[0-9]+", d := t.replace(".", "") if t.count(".") > 1 else t)]
    width = Counter(map(len, digits)).most_common(1)[0][0] if digits else 0
    exact = sum(len(t) == width and len(t.rstrip("0")) >= MANY_DIGITS for t in digits)
    named, many = SOMEBODYS_NAME.search(name), len(texts) > FEWEST and exact >= ALIKE * len(texts)
    many = many and (named is not None or min(each, np.quantile([*texts.values()], OFTEN)) >= ROWS_EACH)
    if not many or POSTAL_NAME.search(name) or MAP_NAME.search(name):
        return []
    if not named and (all(int(t) % 60 == 0 for t in digits) or _in_digits({t: 1 for t in digits if len(t) == width})):
        return []  # times in seconds, or days
    rows = f"about {each:,.0f} rows" if each >= 1.5 else "one row"
    text = f"whole numbers of {width} digits, {rows} each: ids of others (telephones, prescribers, employers, meters)?"
    cure = "leave_out, or kind: categorical with a public list; amounts may stay"
    return [f"{text} Synthetic ones may be somebody's: {cure}"]


def codes_of_others(texts: Texts, name: str) -> bool:
    """Whether most texts hold letters and as many digits as ids of others do; arguments as of `numbers_of_others`."""

    def is_code(text: str) -> bool:
        digits = len(re.findall("[0-9]", text))
        many = digits >= MANY_DIGITS and LETTERS_AND_DIGITS.fullmatch(text) is not None
        return many or PADDED.fullmatch(text) is not None

    codes = [t for t in texts if is_code(t.strip())]
    return len(texts) > FEWEST and len(codes) >= ALIKE * len(texts) and not POSTAL_NAME.search(name)


def limit_signs(texts: Texts) -> list[str]:
    """The signs before limits, as of <0.5, where most of the texts that are no numbers are limits; else none."""
    limits = {t: match[1] for t in texts if (match := LIMIT.fullmatch(t.strip()))}
    return sorted({*limits.values()}) if 2 * sum(texts[t] for t in limits) > sum(texts.values()) else []


def limits_in_words(texts: Texts, strip: Sequence[str] = ()) -> str:
    """That most of the texts that are no numbers are limits, and what reads them; empty where they are not.

    Args:
        strip: what is taken out of numbers already.
    """
    if not (limits := limit_signs(texts)):
        return ""
    signs = json.dumps([*strip, *(s for s in limits if s not in strip)], ensure_ascii=False)
    return f"limits such as <0.5? strip: {signs} reads them as 0.5; as gaps they are lost"


def several_units(texts: Texts) -> str:
    """That nearly all of the texts are numbers with one of two or three units; empty where they are not.

    A letter that touches its number is no unit: 7a and 7b are classes, or houses.

    Args:
        texts: as of `Source.shape`, or some of them themselves.
    """
    units: Counter[str] = Counter()
    for text, n in texts.items():
        match = MEASURED.fullmatch(own := text.strip("<> "))
        if match and match[2].casefold() not in ORDINALS and (len(match[2]) > 1 or own[-2].isspace()):
            units[match[2]] += n
    usual = [unit for unit, n in units.most_common(3) if n >= max(FEWEST, HARDLY_ANY * units.total())]
    bare = sum(n for t, n in texts.items() if re.fullmatch(r"[-+]?\d[\d.,]*", t.strip("<> ")))
    if len(usual) < 2 or sum(units[unit] for unit in usual) + bare < NEARLY_ALL * sum(texts.values()):
        return ""
    few = ", ".join(f"{unit} ({units[unit]:,} rows)" for unit in usual)
    return f"numbers in several units, {few}: one unit in the table"


def cut_short(texts: Texts, column: str, *, names: bool) -> list[str]:
    """That ids are written as 4.55E+11: many of them are one then.

    Args:
        names: whether the column names units; else its name must say that it holds ids.
    """
    rows = sum(n for t, n in texts.items() if CUT_SHORT.fullmatch(t.strip()))
    if not rows or not (names or ID_NAME.search(column)):
        return []
    shown = f"{rows:,} rows hold ids as 4.55E+11, cut short by a program for sheets"
    return [f"{shown}: different ids are one then; export the table anew, with ids as texts"]


def shorter_codes(texts: Texts, width: int, *, listed: bool = False) -> list[str]:
    """That codes of digits have fewer than most: 4123 is read as 04123.

    Args:
        texts: codes, or their shapes.
        width: the digits of the declaration.
        listed: whether each text is a value of its own.
    """
    digits = {t.strip(): n for t, n in texts.items() if re.fullmatch("[0-9]+", t.strip())}
    shorter = {t: n for t, n in digits.items() if len(t) < width}
    if sum(shorter.values()) <= HARDLY_ANY * sum(digits.values()):
        return []
    usual = len(max(shorter, key=lambda t: shorter[t]))
    few = f"{sum(shorter.values()):,} of {sum(digits.values()):,} codes have {usual} digits or so, and are"
    fate = "listed beside those of {}" if listed else "read as {} is"
    whole = width if listed else "4123"[:usual].zfill(width)
    return [f"{few} {fate.format(whole)}: lost zeros, or another country's?"]


def ids_of_nobody(ids: Texts, usual: float) -> list[str]:
    """Ids that may be none: gaps by their words, and zeros or nines alone with far too many records.

    Args:
        ids: those with the most records, these first → how many each has.
        usual: so many records 99 % of the ids do not exceed.
    """
    numbers = sum(any(c.isdigit() for c in text) for text in ids) >= NUMBERED * len(ids)
    many = [t for t, n in ids.items() if n > FAR_MORE * usual / 2 and NO_NUMBER.fullmatch(t.strip())]
    return list(dict.fromkeys([*gap_words(ids, numbers=numbers), *many[:FEWEST]]))


def ids_of_many(ids: Texts, usual: float) -> list[str]:
    """A sentence of each other id with far more records than is usual; no setting to paste: it may be a person's."""
    nobody = ids_of_nobody(ids, usual)
    many = [t for t, n in ids.items() if n > FAR_MORE * usual and t not in nobody]
    warning = "is it one person's? What privacy.missing_unit_values lists is published, and must be no person's id"
    return [f"{t!r} is the id of {ids[t]:,} records, and hardly any has a tenth: {warning}" for t in many[:FEWEST]]


def two_shapes(ids: Collection[str]) -> list[str]:
    """That ids are of two shapes, which one person may have both of; the sentence quotes no id."""
    masked = [re.sub(r"[^\W\d_]", "A", re.sub("[0-9]", "0", text.strip())) for text in ids]
    shapes = {text: re.sub(r"(\w)\1+", r"\1", text) for text in {*masked}}
    (one, n), (other, m) = [*Counter(map(shapes.__getitem__, masked)).most_common(2), ("", 0), ("", 0)][:2]
    if m < max(FEWEST, LARGE_PART * len(masked)) or n + m < NEARLY_ALL * len(masked):
        return []
    examples = ", ".join(next(text for text in masked if shapes[text] == shape) for shape in (one, other))
    return [f"ids come in two shapes ({examples}): does one person have both? Each is protected alone"]


def totals(texts: Texts) -> str:
    """That some rows are sums of others, from their texts; empty where none are."""
    held = {t: n for t, n in texts.items() if re.fullmatch(TOTALS, t.strip().lower())}
    few = ", ".join(f"{t!r} ({n:,} times)" for t, n in held.items())
    return f"{few}: rows of totals? They would count as records: take them out of the table" if few else ""


def _share(texts: Texts, form: re.Pattern[str]) -> float:
    return share_of(texts, lambda t: form.fullmatch(t) is not None)


def _in_digits(texts: Texts) -> list[str]:
    """Months, days or times that are read as numbers."""
    lengths = {len(t) for t in texts}
    whole = [float(t) for t in texts if re.fullmatch("[0-9]{10}([0-9]{3})?", t)]
    if len(whole) == len(texts) >= FEWEST and (unit := since_1970(min(whole), max(whole))):
        text = f"the numbers are {'milli' * (unit == 'ms')}seconds since 1970, all of 2001 to 2030"
        return [f"{text}: write 2024-08-29 10:15 in the table (pandas.to_datetime(…, unit='{unit}')); kind: datetime"]
    if _share(texts, MONTHS) >= NEARLY_ALL:
        return ["nearly all numbers are months, as 5.2021: write a day of each, 2021-05-01, in the table; kind: date"]
    shares = [(-_of_days(texts, form), form) for form, width in COMPACT_FORMS.items() if width in lengths]
    if forms := [form for share, form in sorted(shares) if share <= -NEARLY_ALL]:  # 010203 is a day in three
        which = " or ".join(f'"{form}"' for form in forms)
        text = "nearly all numbers are days or times, and synthetic ones would often be none"
        return [f"{text}: kind: {'datetime' if '%H' in which else 'date'}, format: {which}"]
    days = _share(texts, DAYS) >= NEARLY_ALL
    if days or (lengths == {5, 6} and _share(texts, SHORT_DAYS) >= NEARLY_ALL and len(texts) >= FEWEST):
        asked = f"nearly all numbers are days without a zero in front, as {'8292024' if days else '70524'}"
        return [f"{asked}: write 2024-08-29 in the table; kind: date"]
    times = [match for t in texts if (match := TIMES.fullmatch(t))]
    parts = [{match[k] for match in times} for k in (1, 2)] if len(texts) >= FEWEST else [set()]
    share = min(_share(texts, TIMES), _share(dict.fromkeys(texts, 1), TIMES))  # of few codes 0001 to 0059 are most
    if min(map(len, parts)) >= FEWEST_PARTS and share >= NEARLY_ALL:
        asked = "are nearly all numbers times of the day, as 0930 is? Synthetic ones would often be none"
        return [f"{asked}: write minutes since midnight in the table"]
    return []


def _of_days(texts: Texts, form: str) -> float:
    """The share of the texts that are days of that form, of years that are meant."""
    read = {t: m for t in texts if len(t) == COMPACT_FORMS[form] and (m := as_moment(t, form))}
    return share_of(texts, lambda t: t in read and FIRST_YEAR <= read[t].year <= LAST_YEAR)


def short_years(texts: Texts) -> list[str]:
    """Years of two digits beside those of four: 58 lies far below 1958."""
    long, short = _share(texts, YEARS), _share(texts, SHORT_YEARS)
    if not short or long < 0.5 or long + short < NEARLY_ALL:
        return []
    rows = sum(n for t, n in texts.items() if SHORT_YEARS.fullmatch(t))
    return [f"{rows:,} years of two digits, as 58, beside those of four: write four in the table"]


def _in_order(texts: Texts, reading: NumberForm) -> tuple[Floats, Ints]:
    """The different numbers among the texts, ascending, and in how many rows each stands."""
    rows: Counter[float] = Counter()
    for text, n in texts.items():
        if (number := reading.number(text)) is not None:
            rows[number] += n
    numbers = sorted(rows)
    return np.array(numbers, np.float64), np.array([rows[x] for x in numbers], np.int64)


def _far_rest(texts: Texts, reading: NumberForm) -> list[str]:
    """Several numbers far from a bulk that fills little of the range, as where latitude and longitude are exchanged."""
    numbers, weights = _in_order(texts, reading)
    if numbers.size < FEWEST:
        return []
    if len(texts) == LOOKED_AT:  # there are more, and those that one row holds are too few here
        weights = np.minimum(weights, np.median(weights))
    summed, gaps = np.cumsum(weights), np.diff(numbers)
    last = np.searchsorted(summed, summed - weights + BULK * summed[-1])  # from each number on
    widths = np.where(last < numbers.size, numbers[np.minimum(last, numbers.size - 1)] - numbers, np.inf)
    first, cut, span = int(widths.argmin()), int(gaps.argmax()), numbers[-1] - numbers[0]
    far = numbers[: cut + 1] if first > cut else numbers[cut + 1 :]
    if widths[first] > LITTLE * span or gaps[cut] < span / 2 or far.size < FEWEST_OF_UNIT:
        return []
    low, high, others = (plain_digits(float(x)) for x in (numbers[first], numbers[last[first]], np.median(far)))
    bulk = f"nearly all numbers lie between {low} and {high}, and others about {others}"
    asked = "are two columns, as latitude and longitude, exchanged in these rows?"
    return [f"{bulk}: {asked} Mend the table: bins over both are wide, and one holds nearly all records"]


def _two_scales(texts: Texts, reading: NumberForm) -> list[str]:
    """Numbers in two groups apart, which are alike but for a factor: two units, as 37.2 beside 98.9."""
    numbers, weights = _in_order(texts, reading)
    numbers, weights = numbers[numbers > 0], weights[numbers > 0]
    if numbers.size < FEWEST:
        return []
    logs = np.log(numbers)
    below = np.array([np.cumsum(weights), np.cumsum(weights * logs)])
    above = below[:, -1:] - below[:, :-1]
    means = below[1, :-1] / below[0, :-1], above[1] / above[0]
    cut = int(np.argmax(below[0, :-1] * above[0] * (means[0] - means[1]) ** 2))  # most variance between (Otsu 1979)
    each = list(zip(np.split(numbers, [cut + 1]), np.split(weights, [cut + 1]), strict=True))
    tenths = [x[np.searchsorted(np.cumsum(k), np.array([0.1, 0.5, 0.9]) * k.sum())] for x, k in each]
    (first, low, last), (start, high, end) = np.log(tenths).tolist()  # a rich person moves no tenth
    narrow, wide = (max(far - near, 1e-6) / TENTHS for near, far in ((first, last), (start, end)))
    n, m = (int(k.sum()) for _, k in each)
    between = float(weights[np.abs(logs - (low + high) / 2) < (high - low) / 6].sum())
    apart = (high - low) * math.sqrt(2 / (narrow**2 + wide**2))
    few = min(n, m) <= HARDLY_ANY * (n + m) or min(cut + 1, numbers.size - cut - 1) < FEWEST_OF_UNIT
    few |= high - low < math.log(LEAST_FACTOR)
    few |= last == first and start == end  # two fees, as 2 and 4 are, and no amounts
    if apart < APART or max(narrow, wide) > AS_WIDE * min(narrow, wide) or few or between > VALLEY * (n + m):
        return []
    low, high = (float(t[1]) for t in tenths)
    fits = [w for t, more, (a, b), w in SCALES if a <= low <= b and abs((t * low + more) / high - 1) <= OFF]
    which = next(iter(fits), "two units")
    return [
        f"{n:,} numbers about {plain_digits(low)} and {m:,} about {plain_digits(high)}: {which}? One unit in the table"
    ]


def _zeros_behind(texts: Texts) -> list[str]:
    """That 3.1 stands beside 3.10: rooms, classes of diseases or versions, which are no amounts."""
    parted = {t.strip() for t in texts if re.fullmatch(r"[0-9]+\.[0-9]+", t.strip())}
    twice = sorted(t for t in parted if t.endswith("0") and re.sub("0$", "", t) in parted)
    if len(twice) < CODES_PAIRS:
        return []
    few = f"{twice[0][:-1]} stands beside {twice[0]}, and {len(twice) - 1:,} more so"
    return [f"{few}: codes, which are no numbers? kind: categorical keeps them apart"]
