"""Which texts stand for a value: its spellings, in any case where the schema says so, and codes by their beginning.

Locality: what a text stands for depends on the schema and on that text alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from mechanisms.public.errors import UserError, did_you_mean
from mechanisms.public.schema.fields import FieldDict, Fields, as_text, text_list, whole_number

if TYPE_CHECKING:
    from mechanisms.public.schema.column import Column

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
