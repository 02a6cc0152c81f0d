"""The declaration of a column that its values suggest, and the reason in words. NOT private."""

from __future__ import annotations

import math
import re
from calendar import monthrange
from collections.abc import Iterable, Mapping
from shlex import quote

from mechanisms.public.drafts.bin_guess import FEW_CODES, guess_bins
from mechanisms.public.drafts.column_facts import COMPACT, MAX_VALUES, NO_DIGITS, SAMPLED, WORDS, Look
from mechanisms.public.drafts.mixed_guess import what_is_stripped
from mechanisms.public.drafts.seen import FEWEST_UNITS, OWN, ColumnFacts, Numbers, few_units
from mechanisms.public.drafts.text_guess import FEW_IDS, LETTERED, Guess, guess_numbered, guess_texts
from mechanisms.public.schema.discover_fields import FieldDict
from mechanisms.public.schema.spellings import ISO, digit_lines
from mechanisms.public.tables.doubts import (
    POSTAL_NAME,
    SOMEBODYS_NAME,
    limit_signs,
    limits_in_words,
    numbers_of_others,
    shorter_codes,
)
from mechanisms.public.tables.losses import percent
from mechanisms.public.tables.scan import DURATION, OF_UTC, UTC, UTC_NS
from mechanisms.public.tables.text_forms import (
    AS_THEY_ARE,
    CLOCK_FORMS,
    CODE_NAME,
    CODES_OF_GAPS,
    CURRENCIES,
    DASHES,
    ID_NAME,
    LEAST_FORM,
    OBJECT,
    NumberForm,
    as_moment,
    date_forms,
    day_and_month,
    either_way,
    far_flung,
    few_words,
    gap_words,
    may_be_thousands,
    number_reading,
    share_of,
    thousands_in_words,
)

#: A column is of a kind where at least this share of its values can be read so.
MOSTLY = 0.5
#: The share of words in a column of numbers up to which a few of them, or one alone, are taken for gaps.
FEW_WORDS, ONE_WORD = 0.2, 0.9
#: What is said of numbers and days, few of which differ.
OTHERS = "different ones: a release has others between; kind: categorical, ordinal: true lists them"
#: With fewer rows than this nothing is called constant.
FEW_ROWS = 20
#: Bounds of dates that lie so many years apart are whole years; of others whole months.
MANY_YEARS = 5
#: Months alone have a bin each where they span fewer, and no bins of weeks.
MONTHS = 100
#: What is said of days.
DAYS_GUESSED = "dates or times ({}); bounds are those seen, rounded outwards"
#: Hours and minutes, perhaps seconds; and how those of more than a day begin.
LENGTH = re.compile("[0-9]{1,3}:[0-5][0-9](:[0-5][0-9])?")
LONG = re.compile("(?!24:00)(2[4-9]|[3-9][0-9]|[1-9][0-9]{2}):")
#: Of so many lengths some have fewer than ten minutes.
MANY_LENGTHS = 50
#: Whole numbers are ids where of amounts in their range so many times as many pairs, and one, would be alike by chance.
PAIRS = 10


def guess_column(look: Look, index: int) -> Guess:
    """The declaration of a column (None: leave it out), and the reason in words."""
    if look.source.types[index] == DURATION:
        return None, "lengths of time: written as seconds, they can be read"
    fields, words = _guess(look, index, look.facts[index])
    kind, name = None if fields is None else str(fields["kind"]), look.source.names[index]
    if kind in {"integer", "float", "date", "datetime", "zip"} and look.of_few(index):
        return None, f"{few_units(look.unit)} any value: bounds would tell of them, unless a public fact says them"
    each = look.facts[index].filled / max(look.facts[index].distinct, 1)
    numbers = kind in {"integer", "float", "zip"} or ("prefix" in (fields or {}) and SOMEBODYS_NAME.search(name))
    if numbers and (others := numbers_of_others(look.sample(index), name, each)):
        return None, others[0]
    if kind == "integer":
        fields, words = guess_numbered(look, index, look.facts[index], (fields, words))
        kind = None if fields is None else str(fields["kind"])
    reading = NumberForm(tuple((fields or {}).get("strip", ())), (fields or {}).get("decimal", "."))
    nines = _ends_of_answers(look, index, reading) if kind == "integer" else []
    return fields, "; ".join([words, *nines, *look.doubts(index, kind, reading)])


def _ends_of_answers(look: Look, index: int, reading: NumberForm) -> list[str]:
    """Whether 9, and 7 and 8 behind a number that is left out, are refused, not known and not asked, as a sentence."""
    bounds, distinct = look.numbers(index, reading).bounds(), look.facts[index].distinct
    if bounds is None or bounds[1] != 9 or not 2 < distinct <= 9 - bounds[0]:
        return []
    texts = look.sample(index)
    held, often = ({reading.number(t) for t in each} for each in (texts, look.listable(index, texts)))
    least = min(n for n in (7, 8, 9) if n - 1 not in held or n == 9)
    codes = [str(n) for n in range(least, 9) if n in often]
    return [f"are {', '.join(codes)} and 9 values, or gaps?" if codes else "is 9 a value, or a gap?"]


def _guess(look: Look, index: int, facts: ColumnFacts) -> Guess:
    """The same, of what can be read."""
    if look.source.names[index] == look.unit:
        return None, f"it may name persons; without {quote(f'privacy.unit={look.unit}')} each row is protected alone"
    if not facts.filled:
        return _empty(facts)
    if facts.distinct == 1 and OBJECT.fullmatch(next(iter(look.sample(index)), "")):
        return None, "one sign in all rows, as of objects that no table holds: make texts or numbers of them first"
    full = facts.rows >= FEW_ROWS and facts.filled == facts.rows
    values = [*look.sample(index)] if full and facts.distinct <= 2 else []
    if len(values) == 1 and look.listable(index, {values[0]: facts.rows}):
        whole = re.fullmatch(r"0|-?[1-9][0-9]{0,15}", values[0])
        fields = {"kind": "constant", "value": int(values[0]) if whole else values[0]}
        return fields, "the same value in all rows: not measured; is it public?"
    for attempt in (_ids, _plain_numbers, _lengths, _dates, _digits, _signed_numbers):
        guess = attempt(look, index, facts)
        if guess is not None:
            return guess
    return guess_texts(look, index, facts)


def _empty(facts: ColumnFacts) -> Guess:
    if len(facts.gaps) > 1 or (facts.gaps and facts.empty):
        return None, "nothing but gaps"
    if facts.rows < FEW_ROWS:
        return {"kind": "categorical", "values": ["value"], "missing": facts.missing}, "empty, in a few rows"
    value = {"value": facts.gaps[0]} if facts.gaps else {}
    return {"kind": "constant", **value}, "empty throughout: not measured, and nothing is invented"


def _ids(look: Look, index: int, facts: ColumnFacts) -> Guess | None:
    """Whole numbers, but for a word in 100: called ids, hardly two alike, or common to groups of a few rows."""
    seen, name = facts.plain, look.source.names[index]
    others = seen.wholes < max(seen.count, 0.99 * facts.filled)
    if others or seen.low is None or seen.high is None or facts.distinct <= FEW_IDS:
        return None
    if ID_NAME.search(name):
        return None, f"{facts.distinct:,} distinct numbers: an id, by its name"
    if facts.dated > COMPACT * facts.filled and not look.source.typed(index):
        return None  # days in digits
    if not CODE_NAME.search(name) and facts.may_be_id(name) and look.of_groups(index):
        return None, "whole numbers with gaps, few rows each, far oftener alike than amounts: ids, as of households"
    _, alike = look.alike(index)
    few = facts.filled**2 < 2 * PAIRS * (1 + alike) * (seen.high - seen.low + 1)
    if few or facts.distinct < OWN * facts.filled:
        return None
    return None, f"whole numbers, {'hardly' if alike else 'no'} two alike: a running number, or an id"


def _plain_numbers(look: Look, index: int, facts: ColumnFacts) -> Guess | None:
    """Numbers as they are, with a few words among them."""
    odd = facts.filled - facts.plain.count
    days = facts.dated > COMPACT * facts.filled and not look.source.typed(index)
    if facts.padded or odd > ONE_WORD * facts.filled or days:
        return None
    if CODE_NAME.search(look.source.names[index]) and facts.plain.wholes == facts.plain.count:
        return None
    shapes = {} if look.source.typed(index) else look.shapes(index)
    if not odd:
        reading = NumberForm((".",), ",") if may_be_thousands(shapes) and _comma_elsewhere(look) else AS_THEY_ARE
        return _of_numbers(look.numbers(index, reading), reading, facts, [], "", shapes)
    if facts.distinct <= 20 or not number_reading(look.shapes(index))[0].plain:
        return None
    words = look.sample(index, WORDS, 4)
    limits, many = limit_signs(words), odd > FEW_WORDS * facts.filled
    if limits and many:  # a run refuses a column that loses so many
        reading, remark = NumberForm(tuple(limits)), f"; {limits_in_words(words)}"
    elif (many and (len(words) > 1 or not gap_words(words, numbers=True))) or (
        facts.distinct <= MAX_VALUES and not (limits or few_words(words))
    ):
        return None
    else:
        reading, remark = AS_THEY_ARE, _other_way(AS_THEY_ARE, look.shapes(index))
    seen, rest = look.numbers(index, reading), {t: n for t, n in words.items() if not reading.reads(t)}
    gaps, doubt = _gaps(look, index, rest, facts.filled - seen.count)
    return _of_numbers(seen, reading, facts, gaps, doubt + remark, shapes)


def _comma_elsewhere(look: Look) -> bool:
    """Whether numbers of other columns have a decimal comma and none a decimal point: points part thousands then."""
    texts = [look.shapes(i) for i in look.columns if not look.source.typed(i)]
    points = any(re.fullmatch(r"[-+]?[0-9]+\.([0-9]{1,2}|[0-9]{4,})", t) for own in texts for t in own)
    return not points and any(form.decimal == "," and share >= MOSTLY for form, share in map(number_reading, texts))


def _unread(odd: int, facts: ColumnFacts, examples: Iterable[str]) -> str:
    texts = [*examples]
    few = ", ".join([*map(repr, texts)][:3])
    limits = limits_in_words(dict.fromkeys(texts, 1))
    shown = f", such as {few}" if few else ""
    lost = f"; {percent(odd / facts.filled)} of the values cannot be read so{shown}: they become missing"
    return f"{lost}; {limits}" if limits else lost


def unread(guesses: Mapping[str, str]) -> set[str]:
    """The columns of which a per cent or more cannot be read: they become missing, and are not empty."""
    lost = {name: re.search(r"([0-9.]+) % of the values cannot be read so", words) for name, words in guesses.items()}
    return {name for name, share in lost.items() if share and float(share[1]) >= 1}


def _gaps(look: Look, index: int, texts: Mapping[str, int], odd: int) -> tuple[list[str], str]:
    """Those of the odd cells' texts that are taken for gaps; and that they are, and that others cannot be read."""
    listed = look.listable(index, texts)
    gaps = gap_words(texts, numbers=True, frequent=listed)
    doubt = f"; do {', '.join(map(repr, gaps))} mean a gap?" if gaps else ""
    unread = odd - sum(texts[g] for g in gaps)
    left = [t for t in listed if t not in gaps]
    return gaps, doubt + (_unread(unread, look.facts[index], left) if unread > 0 else "")


def _of_numbers(
    seen: Numbers, reading: NumberForm, facts: ColumnFacts, gaps: list[str], doubt: str, shapes: Mapping[str, int]
) -> Guess | None:
    """A column of numbers, as one code each or in bins."""
    bounds, codes = seen.bounds(), seen.gaps
    if bounds is None:
        return None
    low, high = bounds
    if seen.wholes == seen.count and far_flung(facts.distinct, high - low):
        return None  # a list
    if (size := max(abs(low), abs(high))) >= 2**52 and not (size <= 1e20 and (high - low) / 20 > 16 * math.ulp(size)):
        return None, "numbers too large, or too close together, for bins of their own: ids, or is one a gap?"
    taken = [f"{c:.15g}" for c in codes]
    doubt += f"; {', '.join(taken)} taken for a gap: is it?" if taken else ""
    doubt += "".join(f"; {t!r} taken for a gap: is it one, or 0?" for t in facts.gaps if t in DASHES)
    doubt += "".join(f"; is {x:g} a value, or a gap?" for x in (low, high) if x in CODES_OF_GAPS and abs(x) > 2)
    sparse = seen.wholes == seen.count and high - low >= 10 * facts.distinct * (seen.multiple_of or 1)
    few = facts.distinct <= (MAX_VALUES if sparse else FEW_CODES)
    fields, words = guess_bins(seen, low, high)
    step = fields.get("multiple_of", 1 if seen.wholes == seen.count else 0)
    if few and not high - low < (2 * facts.distinct - 1) * step:
        doubt += f"; only {facts.distinct} {OTHERS}"
    missing = sorted({*facts.gaps, *gaps, *taken})
    if exponents := sum(n for t, n in shapes.items() if re.fullmatch(r"[-+]?[0-9]+[eE][0-9]+", t.strip())):
        doubt += f"; {exponents:,} are written as 2E2, and read as 200: are they codes?"
    if remark := thousands_in_words(reading, shapes):
        for name in ("decimals", "multiple_of", "fixed"):
            fields.pop(name, None)  # who writes it decides
        doubt += f"; {remark}"
    return {**fields, **reading.fields(), "missing": missing or facts.empty or "cannot be read" in doubt}, words + doubt


def _lengths(look: Look, index: int, facts: ColumnFacts) -> Guess | None:
    """Hours and minutes of which some are more than a day, so that they are no times of the day."""
    if look.source.typed(index) or facts.plain.count > FEW_WORDS * facts.filled:
        return None
    texts = look.trimmed(index)
    lengths = {t: n for t, n in texts.items() if LENGTH.fullmatch(t)}
    rows, long = (sum(each.values()) for each in (texts, {t: n for t, n in lengths.items() if LONG.match(t)}))
    if sum(lengths.values()) < (1 - FEW_WORDS) * rows or long < max(LEAST_FORM * rows, FEWEST_UNITS):
        return None
    if len(lengths) >= MANY_LENGTHS and not any(":0" in t for t in lengths):
        return None, "two numbers in each, as 36:15 of a game: write them in two columns of the table"
    return None, "lengths of time, some of more than 24 hours: write numbers (of minutes) into the table"


def _dates(look: Look, index: int, facts: ColumnFacts) -> Guess | None:
    """Days or times in the forms that most values have."""
    if facts.dated < MOSTLY * facts.filled and not look.source.typed(index):
        return None
    texts = look.sample(index)
    forms = [ISO] if look.source.typed(index) else [form for form, _ in date_forms(texts)]
    if not forms:
        return None
    others = look.unread(index, forms)  # days in a rarer form are hardly ever among the most frequent texts
    odd, texts = facts.filled - look.moments(index, forms).read[-1], texts | others
    clock, least = forms[0] in CLOCK_FORMS, LEAST_FORM * facts.filled  # a time of the day is no day, and none is a time
    forms += [f for f, share in date_forms(others) if share * odd >= least and (f in CLOCK_FORMS) is clock]
    rest, seen = look.unread(index, forms), look.moments(index, forms)
    read, n = seen.read, seen.read[-1]
    listable = clock and facts.distinct <= FEW_CODES  # beside 1:64 and 1:128 also 1:16 and 1:32 are no times
    enough = 1 - FEW_WORDS if listable else MOSTLY
    if n < enough * facts.filled or (bounds := seen.bounds()) is None:
        return None
    low, high = (str(bounds[0]),) * 2 if clock else outwards(*map(str, bounds))  # the first of 1900 for a clock
    fields: FieldDict = {"kind": "date" if seen.days and not clock else "datetime", "min": low, "max": high}
    fields |= {"formats": forms} if len(forms) > 1 else {} if forms == [ISO] else {"format": forms[0]}
    written = any(f == ISO or "%S" in f for f in forms) or (seen.multiple_of or 0) > 60
    if fields["kind"] == "datetime" and seen.multiple_of is not None and written:
        fields["multiple_of"] = seen.multiple_of  # seconds that are not written need no step
    words, doubt = _gaps(look, index, rest, facts.filled - n)
    taken = [
        t for t in look.listable(index, texts) if any((m := as_moment(t, f)) and m.date() in seen.gaps for f in forms)
    ]
    gaps = sorted({*facts.gaps, *words, *taken})
    doubt += f"; {', '.join(taken)} taken for a gap: is it?" if taken else ""
    of_utc = share_of(texts, lambda t: ":" in t and t.rstrip().endswith(OF_UTC)) > MOSTLY
    zoned = look.source.types[index] in {UTC, UTC_NS} or (of_utc and not look.source.typed(index))
    doubt += "; read as UTC's clock shows them" if zoned else ""
    doubt += f"; {few_units(look.unit)} {few}" if (few := seen.few_beyond()) else ""
    exact_days = not clock and (ISO in forms or "%d" in forms[0])
    few_days = exact_days and 1 < facts.distinct <= min(FEW_CODES, n / FEW_CODES)
    doubt += f"; only {facts.distinct} {OTHERS}" if few_days else ""
    each = zip(forms, read, (0, *read), strict=False)
    shares = [f"{percent((both - before) / facts.filled)} {form}" for form, both, before in each]
    shown = forms[0] if len(forms) == 1 else ", ".join(shares)
    twins = [t for f in forms if (t := day_and_month(f)) and all(as_moment(x, t) for x in texts if as_moment(x, f))]
    doubt += f"; all are days in the form {twins[0]} too: which comes first, the day or the month?" if twins else ""
    firsts = forms[0].replace(ISO, "%Y-%m-%d").replace("%d", "01")
    days = [t for t in texts if t not in rest] if len(forms) == 1 and len(texts) < SAMPLED else []
    late = sum(n for t, n in texts.items() if clock and (m := as_moment(t, forms[0])) and m.hour >= 12)
    if clock and late < LEAST_FORM * sum(texts.values()):
        doubt += "; hardly any after noon: are they lengths of time? Then write numbers (of minutes) into the table"
    elif "%d" not in forms[0] and not clock and ISO not in forms:  # months alone
        fields |= {"bins": "month"} if (bounds[1] - bounds[0]).days < MONTHS * 31 else {}
    elif not clock and len(days) > 2 and all(as_moment(t, firsts) for t in days):
        doubt += f'; all are the first of a month, and synthetic ones lie anywhere in it: format: "{firsts}" keeps that'
    if any(day_and_month(f) in forms for f in forms):
        doubt += "; the day stands first in some and the month in others: the first form reads those that may be either"
    guess = "times of the day ({}), read as of the day below; bins are hours" if clock else DAYS_GUESSED
    return {**fields, "missing": gaps or facts.empty or n < facts.filled}, guess.format(shown) + doubt


def outwards(low: str, high: str) -> tuple[str, str]:
    """The first and the last day seen, to whole years where many lie between, else to whole months.

    A bound is nobody's birthday then.
    """
    if int(high[:4]) - int(low[:4]) >= MANY_YEARS:
        return f"{low[:4]}-01-01", f"{high[:4]}-12-31"
    return f"{low[:7]}-01", f"{high[:7]}-{monthrange(int(high[:4]), int(high[5:7]))[1]}"


def _digits(look: Look, index: int, facts: ColumnFacts) -> Guess | None:
    """Codes of digits with leading zeros, too many to list: postal codes and the like."""
    named = bool(POSTAL_NAME.search(look.source.names[index]))
    texts = look.sample(index, NO_DIGITS, 4)
    gaps = sorted({*facts.gaps, *gap_words(look.listable(index, texts), numbers=False)})
    many = facts.distinct > MAX_VALUES and (named or facts.distinct <= MOSTLY * facts.rows)
    mostly = facts.digits >= 0.9 * facts.filled and (facts.padded > 0 or named)
    if not many or not mostly or facts.longest > 9 or (facts.shortest < facts.longest and not named):
        return None
    first = min(3, facts.longest)
    fields: FieldDict = {"kind": "zip", "digits": facts.longest, "prefix": first}
    words = "; ".join([f"codes of {facts.longest} digits, measured by the first {first}", *digit_lines(fields)])
    possible = len(look.begun(index, first)) * 10 ** (facts.longest - first)
    if facts.distinct < MOSTLY * possible:
        words += f"; about {percent(facts.distinct / possible)} of such codes do: "
        words += "where others would be wrong, list the public ones (kind: categorical)"
    odd = facts.filled - facts.digits
    if odd > FEW_ROWS and any(LETTERED.fullmatch(t) and len(t) == facts.longest for t in texts):
        return None  # by their beginnings nobody is lost
    doubt = _unread(odd, facts, look.listable(index, texts)) if odd and not set(texts) <= set(gaps) else ""
    doubt += "".join(f"; {remark}" for remark in shorter_codes(look.shapes(index), facts.longest))
    return {**fields, "missing": gaps or facts.empty or odd > 0}, words + doubt


def _signed_numbers(look: Look, index: int, facts: ColumnFacts) -> Guess | None:
    """Numbers with a currency sign, marks of thousands, or a decimal comma."""
    texts, shapes = look.sample(index), look.shapes(index)
    reading, share = number_reading(shapes)
    rest = {t: n for t, n in texts.items() if not reading.reads(t)}
    unread = {t: n for t, n in shapes.items() if not reading.reads(t)}
    mixed = share_of(unread, reading.other_way.reads) >= MOSTLY
    money = not {*CURRENCIES}.isdisjoint(reading.strip)
    if facts.padded or share < MOSTLY or (reading.plain and not mixed):
        return None
    if facts.distinct <= 20 and share < 1 and not (mixed or money):
        return None
    limits, remark = limit_signs(rest), ""
    if limits and facts.filled - look.numbers(index, reading).count > FEW_WORDS * facts.filled:
        reading, remark = NumberForm((*reading.strip, *limits), reading.decimal), f"; {limits_in_words(rest)}"
        rest = {t: n for t, n in rest.items() if not reading.reads(t)}
    seen = look.numbers(index, reading)
    if seen.count < MOSTLY * facts.filled:
        return None
    gaps, doubt = _gaps(look, index, rest, facts.filled - seen.count)
    doubt += remark + _other_way(reading, shapes)
    doubt += "".join(f"; {words}" for words in what_is_stripped(reading, shapes))
    signs = " ".join(sign.strip() or "a space" for sign in reading.strip)
    how = [f"{signs} taken out"] if signs else []
    how += ["with a decimal comma"] if reading.decimal == "," else []
    return _of_numbers(
        seen, reading, facts, gaps, "".join(f"; {part}" for part in [", ".join(how)] if part) + doubt, shapes
    )


def _other_way(reading: NumberForm, shapes: Mapping[str, int]) -> str:
    """That some cells are written another way than the rest, and that some may be either."""
    unread = {t: n for t, n in shapes.items() if not reading.reads(t)}
    if not any(reading.other_way.reads(t) for t in unread):
        return ""
    doubt = f"; some of these are written the other way, with a decimal {reading.other_way.mark_name}"
    if not (doubtful := either_way(reading, shapes)):
        return doubt
    fate = "none is read as 1234" if not reading.dots else "they are read as 1234"
    fate = "none is read" if either_way(reading, unread) == doubtful else fate
    return f"{doubt}; {doubtful:,} rows hold numbers such as 1.234 or 1,234, which may mean 1.234 or 1234: {fate}"
