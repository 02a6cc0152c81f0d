"""Which texts of a unit id mean the same unit: declared rules, applied wherever ids are read.

A rule that joins two units is safe: together they are held to one bound. One that leaves a unit split is not, since
each part then has the bound for itself; so all rules are on unless a setting takes some away.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from itertools import accumulate
from operator import itemgetter
from typing import Any

from mechanisms.public.tables.scan import INTEGERS, Source
from mechanisms.public.tables.unseen import seen

#: Texts that every rule leaves as they are, by far the most: they are not worked on. (`1e3` is a number.)
_PLAIN = "^([a-z0-9_-]*[a-df-z_][a-z0-9_-]*|[1-9][0-9]{0,29}|0)$"
_NUMBER = re.compile(r"([+-]?)(?:([0-9]+)(?:[.]([0-9]*))?|[.]([0-9]+))(?:[eE]([+-]?)0*([0-9]{1,9}))?")
_ENDS = frozenset("0123456789.")  # of a number; "" is none
#: Characters: the library orders the marks of longer texts in a time that grows with their square, hours for one id.
_LONG = 1_000
#: Numbers between 10^-MOST_DIGITS and 10^MOST_DIGITS are written without an exponent.
MOST_DIGITS = 40


def same_unit(texts: Any, source: Source, index: int, rules: Sequence[str]) -> Any:
    """The texts of a column of ids in their normal form; equal for all that mean the same unit.

    Args:
        texts: an Arrow array of strings; so is what comes back.
    Cost: one pass over the batch; each distinct text that is not plain is worked on once.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if not rules or source.types[index] in INTEGERS:
        return texts
    coded = texts.dictionary_encode()
    plain = pc.match_substring_regex(coded.dictionary, _PLAIN).to_pylist()
    if all(plain):
        return texts
    words = zip(coded.dictionary.to_pylist(), plain, strict=True)
    forms = [text if whole else normal_form(text, rules) for text, whole in words]
    return pa.array(forms, pa.string()).take(coded.indices)


def normal_form(text: str, rules: Sequence[str]) -> str:
    """A text under the rules: applied twice, it is what it is applied once.

    Unicode and case together are Unicode's compatibility caseless matching (Unicode Standard, section 3.13, D146).
    """
    if text.isascii() and text.isprintable():  # most texts: all characters are composed, and visible
        form = text.strip() if "trim" in rules else text
        form = form.lower() if "case" in rules else form
        return _shortest(form) if "number" in rules and form[-1:] in _ENDS else form
    while (form := _once(text, rules)) != text:
        text = form
    return form


def _once(text: str, rules: Sequence[str]) -> str:
    if "unicode" in rules:
        text = seen(text)
        text = unicodedata.normalize("NFKC", text if len(text) < _LONG else _decomposed(text))
    if "trim" in rules:
        text = text.strip()
    if "case" in rules:
        if "unicode" in rules:  # of what is composed, the case of the whole and that of its parts may differ
            text = unicodedata.normalize("NFKD", text)
        text = text.upper().casefold().replace("i\u0307", "i")  # İ, I, ı and i are one letter: who writes is unknown
    if "unicode" in rules:
        text = unicodedata.normalize("NFKC", text)
    return _shortest(text) if "number" in rules else text


def _decomposed(text: str) -> str:
    """The NFKD of a text, its marks sorted by their classes behind each character that is none."""
    parts = "".join(unicodedata.normalize("NFKD", c) for c in text)
    classes = [unicodedata.combining(c) for c in parts]
    placed = zip(accumulate(k == 0 for k in classes), classes, parts, strict=True)
    return "".join(c for *_, c in sorted(placed, key=itemgetter(0, 1)))


def _shortest(text: str) -> str:
    """A decimal number, with or without an exponent, in one way of writing; another text as it is."""
    number = _NUMBER.fullmatch(text)
    if number is None:
        return text
    sign, whole, part, fraction, turn, power = number.groups("")
    digits = (whole + part + fraction).lstrip("0")
    exponent = int(f"{turn}{power or 0}") - len(part + fraction)
    short = digits.rstrip("0")
    if not short:
        return "0"
    exponent += len(digits) - len(short)
    minus = "-" if sign == "-" else ""
    if not -MOST_DIGITS <= exponent + len(short) <= MOST_DIGITS:
        return f"{minus}{short}e{exponent}" if exponent else minus + short
    if exponent >= 0:
        return minus + short + "0" * exponent
    places = short.rjust(1 - exponent, "0")
    return f"{minus}{places[:exponent]}.{places[exponent:]}"
