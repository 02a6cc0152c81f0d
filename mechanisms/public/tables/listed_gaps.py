"""Which values of a list may mean that there is none, or another one: what a draft and `check` ask."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping

from mechanisms.public.schema.spellings import NO, YES, short_words
from mechanisms.public.tables.text_forms import CODES_OF_GAPS, CROSSES, DASHES, FAR_CODES, GAPS, NO_VALUE, SIGNS

#: Listed numbers that may stand for gaps: those that often do, years that programs write where there is none, zeros.
CODED = re.compile(f"{'|'.join(map(str, CODES_OF_GAPS))}|1900|2099|00+")
#: A range, and a day as which programs for sheets read one, in the languages of these: 5-9 is 05-Sep, 09-mai or Sep 05.
RANGE, _DAY = re.compile("[0-9]+ ?[-–] ?[0-9]+"), "(0?[1-9]|[12][0-9]|3[01])"
_MONTH = (
    "(jan|ene|gen|f[eé][bv]|m[aäe][rgiy]|mr[tz]|a[bpv]r|giu|lug|ju[inl]|ao[uû]|a[gu][go]|se[pt]|o[ckt]t|nov|d[eéi][cz])"
)
DAY_OF_RANGE = re.compile(rf"(?i){_DAY}[-. ]+{_MONTH}[a-zé]?\.?|{_MONTH}[a-zé]?\.?[-. ]+([0-9]{{2}}|{_DAY})")
#: Signs of gaps, answers, and labels of *other*, in small letters: they name nobody, and who holds one alone is hidden.
USUAL = frozenset((*(t.lower() for t in GAPS), *map(str, FAR_CODES), *YES, *NO, "other", "other value"))


def usual(text: str) -> bool:
    """Whether a text without blanks around it is a usual sign or answer, whatever its column is called."""
    return text.lower() in USUAL or NO_VALUE.fullmatch(text) is not None


def listed_gaps(values: Collection[str]) -> list[str]:
    """Listed values that may mean a gap: signs and words for it, codes, years and zeros, and a cross beside numbers.

    A number is none where numbers beside it are listed too, nor -1 beside 0 alone: databases of offices write yes so.
    But those that mean so where they lie apart, as 97 to 99 do, are asked about together above all others.
    """
    bare = {v: v.strip() for v in values}
    numbers = {int(t) for t in bare.values() if re.fullmatch("-?[0-9]{1,9}", t)}
    short, most = short_words(bare.values()), max(numbers.difference(FAR_CODES), default=math.inf)
    apart = {n for n in numbers.intersection(FAR_CODES) if n > max(1.5 * most, most + 1)}

    def asked(text: str) -> bool:
        if text.isdecimal() and int(text) in apart:
            return True
        if not CODED.fullmatch(text):
            word = text in GAPS or NO_VALUE.fullmatch(text) is not None or text in short
            return word or (text in CROSSES and bool(numbers))
        number = int(text)
        beside = [{number - k, number - k // 2} if number else {1} for k in (2, -2)]
        return len(bare) > 1 and numbers != {0, -1} and (number < 0 or not any(some <= numbers for some in beside))

    others = {*bare.values()}.difference(DASHES)
    return [] if others and all(map(SIGNS.fullmatch, others)) else [v for v, t in bare.items() if asked(t)]


def days_among_ranges(texts: Mapping[str, int]) -> list[str]:
    """That a program for sheets made days of ranges, as a sentence, where most of the other values are ranges."""
    days = {t: n for t, n in texts.items() if DAY_OF_RANGE.fullmatch(t.strip())}
    ranges = sum(RANGE.fullmatch(t.strip()) is not None for t in texts)
    if not days or ranges < max(2, (len(texts) - len(days)) / 2):
        return []
    rows = f"{sum(days.values()):,} rows hold a day without a year, as 05-Sep, beside ranges"
    return [f"{rows}: a program for sheets makes it of 5-9; write the range in the table, in a column of texts"]
