"""How the texts of a column are read: spellings, codes by their beginning, forms of dates, signs beside numbers, gaps.

Locality: what a text stands for depends on the schema and on that text alone.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from mechanisms.public.errors import UserError, did_you_mean
from mechanisms.public.schema.bins import Bins
from mechanisms.public.schema.column import Column
from mechanisms.public.schema.discover_fields import FieldDict, Fields, as_text, text_list, whole_number

#: What stands for either side of a flag where its column says nothing.
TRUE, FALSE = ("true", "True", "TRUE", "1"), ("false", "False", "FALSE", "0")
#: Spellings of yes and of no, in small letters: `spellings: common` of a flag reads them in any case.
YES = ("yes", "y", "true", "t", "1", "1.0", "on", "ja", "j", "oui", "si", "sí", "sim", "da", "tak", "wahr", "vrai")
NO = ("no", "n", "false", "f", "0", "0.0", "off", "nein", "non", "não", "nao", "nie", "net", "falsch", "faux")
#: What stands for no answer, in languages of Europe, as a pattern.
NO_ANSWER = (
    "unknown|not known|none|missing|not stated|no answer|don.?t know|unbekannt|unbek\\.|keine angaben?|k\\. ?a\\."
    "|wei(ß|ss) nicht|verweigert|entf\\.|(on|niet )bekend|geen (antwoord|opgave)|weet niet|inconnue?s?"
    "|non (communiqu|renseign)ée?s?|ne sait pas|sans (réponse|objet)|no contesta|ns/nc|no sabe|sin (datos?|respuesta)"
    "|descon(oc|hec)id[oa]|não (sabe|responde)|sem resposta|non (noto|disponibile|risponde)"
    "|sconosciut[oa]|brak( danych| odpowiedzi)?|nie (wiem|dotyczy)|nieznan[aey]|okän[dt]|vet (ej|inte|ikke)"
    "|uppgift saknas|uken(d|dt)|ukjent|uoplyst|ved ikke|tuntematon|ei tiedossa|en osaa sanoa|teadmata|nezināms"
    "|nežinoma|nezn[aá]m[yýé]|neuveden[oéý]|nev(ím|iem)|ismeretlen|nincs adat|nem tudja|necunoscut[aă]?|nu știu"
    "|nepoznato|neznano|ne (vem|znam)|неизвестн[оа]|няма данни|άγνωστ[οη]|δεν (ξέρω|απαντώ)|mhux magħruf|anaithnid"
)
#: Two letters for it, as n.c., n.d., s/o and b.d.; ND and NC may be states.
SHORT_NO_ANSWER = re.compile(r"(?i:(n[./]? ?[cdr]|s[./]? ?[do]|b[./]? ?d)[.]?)")
#: The one word that lists no spelling.
COMMON = "common"
#: What the engine's trim takes away.
BLANKS = " \xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"
MAX_BEGINNING = 32
FIX = "spellings: common (capitals and spaces around do not count); or by value: spellings: {F: [Female, w]}"


def parse_flag(given: Fields, where: str) -> FieldDict:
    """The texts of either side of a flag; `spellings: common` adds the usual ones, in any case.

    Raises:
        UserError: another word than common; no list of texts.
    """
    spellings = given.get("spellings")
    if spellings is None:
        true, false = (text_list(given.get(s, own), s, where) for s, own in (("true", TRUE), ("false", FALSE)))
        return _sides(false, true)
    if spellings != COMMON:
        fix = 'spellings: common; or lists: "true": [yes, Y], "false": [no, N]'
        raise UserError(f"spellings: got {spellings!r}", where=where, fix=fix)
    own_true = text_list(given["true"], "true", where) if "true" in given else ()
    own_false = text_list(given["false"], "false", where) if "false" in given else ()
    return _sides(_with_common(own_false, NO, own_true), _with_common(own_true, YES, own_false)) | {"loose": True}


def _sides(false: tuple[str, ...], true: tuple[str, ...]) -> FieldDict:
    """The first text of either side as its value, the others as its spellings."""
    spellings = tuple((t, code) for code, own in enumerate((false, true)) for t in own[1:])
    return {"values": (false[0], true[0]), "spellings": spellings}


def _with_common(own: tuple[str, ...], common: tuple[str, ...], others: tuple[str, ...]) -> tuple[str, ...]:
    """The own texts, then the usual ones but for those of the other side."""
    return tuple(dict.fromkeys([*own, *(w for w in common if w not in map(folded, others))]))


def flag_fields(column: Column) -> FieldDict:
    """The declaration that `parse_flag` reads back."""
    yes, no = ([t for t, code in column.spelled if code == own] for own in (1, 0))
    if (yes, no) == ([*TRUE], [*FALSE]):
        return {}
    if not column.loose:
        return {"true": yes, "false": no}
    sides = {"true": (yes, YES, "yes"), "false": (no, NO, "no")}
    own = {s: [texts[0], *(t for t in texts[1:] if t not in common)] for s, (texts, common, _) in sides.items()}
    return {"spellings": COMMON} | {s: t for s, t in own.items() if t != [sides[s][2]]}


def parse_spellings(given: Fields, values: tuple[str, ...], where: str) -> FieldDict:
    """`spellings` and `prefix` of a column of listed texts.

    Raises:
        UserError: no list of values; a spelling of what is no value; no list of texts.
    """
    beginning, spellings = given.get("prefix"), given.get("spellings")
    parts: FieldDict = {}
    if beginning is not None:
        parts["beginning"] = whole_number(beginning, "prefix", where, low=1, high=MAX_BEGINNING)
    if spellings is not None and spellings != COMMON:
        if not isinstance(spellings, Mapping):
            raise UserError(f"spellings: got {spellings!r}", where=where, fix=FIX)
        texts = {as_text(v, "spellings", where): text_list(t, f"spellings: {v}", where) for v, t in spellings.items()}
        if unknown := [v for v in texts if v not in values]:
            fix = did_you_mean(unknown[0], values) or "each value as it stands in values, with what else is read as it"
            raise UserError(f"spellings: {unknown[0]!r} is none of the values", where=where, fix=fix)
        parts["spellings"] = tuple((text, values.index(v)) for v, own in texts.items() for text in own)
    parts |= {} if spellings is None else {"loose": True}
    if parts and not values:
        fix = "values: [a, b, …] that they are spellings of"
        raise UserError("spellings or prefix without values", where=where, fix=fix)
    return parts


def spelling_fields(column: Column) -> FieldDict:
    """The declaration that `parse_spellings` reads back."""
    fields: FieldDict = {"prefix": column.beginning} if column.beginning else {}
    if column.spellings:
        by_value: dict[str, list[str]] = {}
        for text, code in column.spellings:
            by_value.setdefault(column.values[code], []).append(text)
        return fields | {"spellings": by_value}
    return fields | ({"spellings": COMMON} if column.loose and column.kind == "categorical" else {})


def folded(text: str) -> str:
    """A text without capitals and without spaces around it, character by character as the engine does it."""
    return "".join(c.lower()[:1] for c in text.strip(BLANKS))


def loose_codes(column: Column) -> dict[str, int]:
    """Folded text → code, where all texts that are folded so have the same; none where the schema wants exact ones."""
    truths = column.kind == "categorical" and {folded(t) for t, _ in column.spelled} == {"true", "false"}
    meant: dict[str, set[int]] = {}
    for text, code in column.exact_codes.items() if column.loose or truths else ():
        meant.setdefault(folded(text), set()).add(code)
    return {text: next(iter(codes)) for text, codes in meant.items() if len(codes) == 1}


def reader(column: Column) -> Callable[[str], int | None]:
    """The code that a text of the table has, as encoding says it in SQL; None: it lies outside."""
    exact, loose = column.exact_codes, loose_codes(column)

    def code_of(text: str) -> int | None:
        attempts = [exact.get(text)]
        if column.kind == "categorical":  # 2.0 is the listed 2: other tools write whole numbers so beside gaps
            attempts.append(exact.get(re.sub(r"\.0+$", "", text)))
        bare = text.strip(BLANKS)
        for begun in (bare, bare[: column.beginning]) if column.beginning else (bare,):
            attempts += [exact.get(begun)] if loose or column.beginning or column.kind == "flag" else []
            attempts.append(loose.get(folded(begun)))
        return next((code for code in attempts if code is not None), None)

    return code_of


def spelled_yes_or_no(texts: Sequence[str]) -> bool:
    """Whether all texts are spellings of yes or no, of both or in several ways."""
    folded = {t.strip().lower() for t in texts}
    return bool(folded) and folded <= {*YES, *NO} and not folded <= {"0", "1"}


def short_words(texts: Collection[str]) -> list[str]:
    """The one text of two letters that may stand for no answer, where no other but yes and no has two."""
    bare = {t: "".join(filter(str.isalpha, t)).casefold() for t in texts}
    short = [t for t, word in bare.items() if len(word) == 2 and len(t.strip()) < 6 and word not in {*YES, *NO, "sì"}]
    return [t for t in short if len(short) == 1 and SHORT_NO_ANSWER.fullmatch(t.strip())]


#: The form of dates that has no strftime format: 2016-12-31, with or without a time behind it.
ISO = "ISO"
#: What `gaps` may name: a kind, or several at once.
GROUPS = {
    "numbers": ("integer", "float"),
    "dates": ("date", "datetime"),
    "texts": ("categorical", "flag"),
    "all": ("integer", "float", "date", "datetime", "categorical", "flag", "zip"),
}
MAX_DIGITS, MAX_PREFIX = 12, 5  # 10 ** 5 codes are as many as a column may have
SAMPLE = datetime.datetime(2016, 12, 31, 13, 14, 15)

Gaps = Mapping[str, tuple[str, ...]]


def parse_formats(given: Fields, where: str) -> tuple[str | None, tuple[str, ...]]:
    """The form that dates are written in (None: ISO), and further ones that are read.

    Raises:
        UserError: both `format` and `formats`; no strftime format.
    """
    if given.get("format") is not None and given.get("formats") is not None:
        raise UserError("both format and formats", where=where, fix="formats: its first one is written")
    if given.get("formats") is None:
        form = given.get("format")
        if form is not None and (not isinstance(form, str) or "%" not in form) and form != ISO:
            fix = 'for example format: "%Y-%m-%d"; several: formats: [ISO, "%d/%m/%Y"]'
            raise UserError(f"format: got {form!r}", where=where, fix=fix)
        return (None if form == ISO else form), ()
    forms = text_list(given["formats"], "formats", where)
    for form in forms:
        if form != ISO and ("%" not in form or moment_of(SAMPLE.strftime(form), form) is None):
            fix = 'strftime formats, and ISO for 2016-12-31: formats: [ISO, "%d/%m/%Y"]'
            raise UserError(f"formats: got {form!r}", where=where, fix=fix)
    if len(set(forms)) < len(forms):
        raise UserError("formats: one is there twice", where=where, fix="each once, in the order of the attempts")
    return (None if forms[0] == ISO else forms[0]), forms[1:]


def moment_of(text: str, form: str | None) -> datetime.datetime | None:
    """The day or time that a text is in a strftime format, or in ISO without one, but for its zone; None for others."""
    try:
        moment = datetime.datetime.strptime(text, form) if form else datetime.datetime.fromisoformat(text)
    except (ValueError, re.error):  # the same part twice, as in %Y %Y
        return None
    return moment.replace(tzinfo=None)


def parse_signs(given: Fields, where: str) -> FieldDict:
    """`strip` and `decimal` of a column of numbers.

    Raises:
        UserError: a sign that numbers need; another decimal mark than a point or a comma.
    """
    decimal = given.get("decimal", ".")
    if decimal not in (".", ","):
        raise UserError(f"decimal: got {decimal!r}", where=where, fix='decimal: "," or decimal: "."')
    strip = () if given.get("strip") is None else text_list(given["strip"], "strip", where)
    for sign in strip:
        no_digits = re.fullmatch("[.,]--?|[^0-9+-]*m[23]", sign)  # as 470,- and 60m2 write it
        if not sign or sign == decimal or (re.search(r"[0-9+-]", sign) and not no_digits) or sign in {"e", "E"}:
            fix = 'what stands beside the digits, or parts thousands: strip: ["$", ","]'
            raise UserError(f"strip: {sign!r} may be part of a number", where=where, fix=fix)
    return {"strip": strip, "decimal": decimal}


def parse_zip(given: Fields, where: str) -> FieldDict:
    """A postal code of so many digits, of which the first ones are measured.

    Raises:
        UserError: more digits than make sense.
    """
    digits = whole_number(given.get("digits", 5), "digits", where, low=1, high=MAX_DIGITS)
    prefix = whole_number(given.get("prefix", min(3, digits)), "prefix", where, low=1, high=min(digits, MAX_PREFIX))
    bins = None if prefix == digits else Bins(count=10**prefix)
    return {"kind": "integer", "low": 0, "high": 10**digits - 1, "bins": bins, "width": digits}


def zip_fields(column: Column) -> FieldDict:
    """The declaration that `parse_zip` reads back."""
    prefix = column.width if column.bins is None else len(str(column.bins.count)) - 1
    return {"kind": "zip", "digits": column.width, "prefix": prefix}


def digit_lines(fields: Fields) -> list[str]:
    """That the last digits of codes (`zip_fields`) are invented; none where all are measured."""
    drawn = int(fields["digits"]) - int(fields["prefix"])
    last = f"the last {drawn} digits are" if drawn > 1 else "the last digit is"
    return [f"{last} drawn evenly: such codes need not exist"] if drawn else []


def parse_constant(given: Fields, where: str) -> FieldDict:
    """A column that holds the same text in all rows, or nothing (no `value`): it is not measured."""
    value = "" if given.get("value") is None else as_text(given["value"], "value", where)
    whole = isinstance(given.get("value"), int) and not isinstance(given["value"], bool)
    return {"kind": "categorical", "values": (value,), "whole": whole, "constant": True}


def constant_fields(column: Column) -> FieldDict:
    """The declaration that `parse_constant` reads back."""
    value = column.values[0]
    return {"kind": "constant"} | ({} if value == "" else {"value": int(value) if column.whole else value})


def reading_fields(column: Column) -> FieldDict:
    """`strip`, `decimal` and the formats, as a column's declaration says them."""
    fields: FieldDict = {}
    if column.more_formats:
        fields["formats"] = [column.format or ISO, *column.more_formats]
    elif column.format is not None:
        fields["format"] = column.format
    fields |= {"strip": list(column.strip)} if column.strip else {}
    return fields | ({"decimal": column.decimal} if column.decimal != "." else {})


def parse_gaps(given: object, where: str) -> Gaps:
    """`gaps: {numbers: ["-999"], texts: [NA]}`: kind → texts that mean missing in all columns of it.

    Raises:
        UserError: another form, or an unknown kind.
    """
    if given is None:
        return {}
    fix = 'gaps: {numbers: ["-999"], texts: [NA], dates: [0000-00-00]}; or by kind: {integer: ["-9"]}'
    if not isinstance(given, Mapping):
        raise UserError(f"gaps: got {given!r}", where=where, fix=fix)
    gaps: dict[str, tuple[str, ...]] = {}
    for name, texts in given.items():
        kinds = GROUPS.get(str(name), (str(name),))
        if not set(kinds) <= set(GROUPS["all"]):
            raise UserError(f"gaps: no kind {str(name)!r}", where=where, fix=fix)
        for kind in kinds:
            gaps[kind] = tuple(dict.fromkeys((*gaps.get(kind, ()), *text_list(texts, f"gaps: {name}", where))))
    return gaps


def with_gaps(fields: Mapping[Any, Any], gaps: Gaps) -> Mapping[Any, Any]:
    """A column's declaration with the gaps of its kind, but for texts that it lists as values."""
    texts = gaps.get(str(fields.get("kind")), ())
    values = [v for name in ("values", "true", "false", True, False) for v in _list(fields.get(name))]
    spelled = fields.get("spellings")
    values += [t for own in spelled.values() for t in _list(own)] if isinstance(spelled, Mapping) else []
    listed = {str(v) for v in (*values, fields.get("other"))}
    missing = fields.get("missing", not ("" in listed or "size" in fields))
    more = [t for t in texts if t not in listed]
    if not more or missing is False:
        return fields
    return {**fields, "missing": list(dict.fromkeys([*map(str, _list(missing)), *more]))}


def _list(value: object) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else []
