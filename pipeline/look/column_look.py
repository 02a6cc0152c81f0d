"""What a schema does to one column of a table, and the likely cures. NOT private: for the operator's eyes."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from mechanisms.public.arrays import Ints
from mechanisms.public.drafts.seen import ColumnFacts
from mechanisms.public.drafts.text_guess import BELOW, BELOW_ZERO, DAY_IN_WORDS
from mechanisms.public.errors import first_few
from mechanisms.public.schema.column import DATE_KINDS, ORDERED_KINDS, Column
from mechanisms.public.schema.spellings import ISO, NO, YES, digit_lines, spelled_yes_or_no, zip_fields
from mechanisms.public.schema.spellings import folded as loosely
from mechanisms.public.tables.doubts import SERIAL, limits_in_words
from mechanisms.public.tables.listed_gaps import listed_gaps
from mechanisms.public.tables.losses import ColumnLoss, declared_texts, one_unit, percent
from mechanisms.public.tables.persons import persons_in_words
from mechanisms.public.tables.text_forms import (
    CROSSES,
    ID_NAME,
    MEASURED,
    ZERO,
    NumberForm,
    date_forms,
    day_and_month,
    either_way,
    gap_words,
    misspelt,
    number_reading,
    share_of,
    since_1970,
    unit_of_measure,
    without,
)
from pipeline.look.bin_look import crowded_bin, empty_codes, wide_bins

#: A whole number with zeros in front, or with one behind a point.
WHOLE = re.compile(r"0*([0-9]+?)(\.0)?")
#: Numbers of the Romans, and stages of them: I is no short form of III, nor of IIIA.
ROMANS = re.compile("m{0,3}(cm|cd|d?c{0,3})(xc|xl|l?x{0,3})(ix|iv|v?i{0,3})[a-c]?")
#: Spaces and marks between a letter and a digit, or before the sign of a mark: 1 A is 1a, and 2 - is 2-.
BESIDE_DIGITS = re.compile(r"(?<=[^\W\d_])[ ._/-]+(?=\d)|(?<=\d)[ ._/-]+(?=[^\W\d_])|(?<=\d) (?=[-+]$)")
ROMAN = {"ii": "2", "iii": "3", "iv": "4", "vi": "6", "vii": "7", "viii": "8", "ix": "9"}
#: So many listed numbers stand there with their unit and without.
WITH_UNIT = 3
#: How formulas begin; a sign before a number is none.
FORMULA = re.compile(r"\s*([=@]|[-+][^\W\d_(]|[-+]\()")
#: Said where values of one form alone are lost.
ONE_SIDED = "all that are written so are lost, and the mean rises"


@dataclass(frozen=True)
class ColumnLook:
    """One column under its schema. NOT private.

    Attributes:
        lone: listed texts that one unit alone holds.
        beyond: readable numbers or days beyond the bounds (or not whole); `moved` says what becomes of them.
        other, missing: values that go to *other*, and that are declared missing.
        examples: some of the lost values, with how often each occurs.
        warnings: in which way the column may be read wrongly, or is no column to measure, in sentences.
        hints: likely cures, and questions; `read`: whether a run reads it, as it reads no column that is computed.
    """

    name: str
    kind: str
    loss: ColumnLoss
    beyond: int
    moved: str
    other: int
    missing: int
    lone: int = 0
    examples: tuple[tuple[str, int], ...] = ()
    warnings: tuple[str, ...] = ()
    hints: tuple[str, ...] = ()
    read: bool = True

    @property
    def status(self) -> str:
        """In a word or two."""
        if self.loss.lost:
            return f"loses {percent(self.loss.share)}"
        return "warning" if self.warnings or self.lone else "ok"


def moved(column: Column) -> str:
    """What becomes of a value beyond the bounds."""
    words = {"clip": "clipped", "other": f"sent to {column.other!r}", "missing": "set to missing"}
    return words.get(column.outside, "refused")


def cures_of_lost(
    column: Column, texts: Mapping[str, int], loss: ColumnLoss, shapes: Mapping[str, int], alone: Collection[str]
) -> list[str]:
    """Why values are lost, as far as some of them tell.

    Args:
        texts: lost values → how often each occurs.
        shapes: of numbers, what all values look like → how often each occurs.
        alone: texts that one unit alone holds: a list of gaps, which is published, would betray it.
    """
    hints: list[str] = []
    empty = sum(n for t, n in texts.items() if not t.strip())
    if empty:
        hints.append(f"{empty:,} cells are empty, and the column may not be missing: missing: true")
    words = {t: n for t, n in texts.items() if t.strip()}
    if not words:
        return hints
    if column.kind in DATE_KINDS:
        return hints + _dates(column, words, loss, alone)
    if column.gridded:
        return hints + _numbers(column, words, shapes, alone)
    return hints + _texts(column, words, alone)


def _dates(column: Column, words: Mapping[str, int], loss: ColumnLoss, alone: Collection[str]) -> list[str]:
    forms = date_forms(words)
    declared = [ISO if column.format is None else column.format, *column.more_formats]
    shares = [(form, loss.share * share) for form, share in forms]
    hints = []
    if forms:
        read = f"{percent(1 - loss.share)} are read as declared, or missing"
        more = ", ".join(f"{percent(share)} look like {form}" for form, share in shares)
        cure = f"formats: {listed([*declared, *(f for f, _ in forms)])}"
        if twins := [f for f, _ in forms if day_and_month(f) in declared]:
            others = [f for f in declared if f not in map(day_and_month, twins)]
            instead = f"formats: {listed([*others, *(f for f, _ in forms)])} instead?"
            cure = f"{instead} Beside each other, the first of the two reads each day that may be either"
        hints.append(f"{read}; {more}: {cure}")
    rest = {t: n for t, n in words.items() if not date_forms({t: n})} if sum(s for _, s in forms) < 1 else {}
    unread = (
        (SERIAL, "numbers such as 44789, days of a program for sheets: write 2022-08-16 in the table"),
        (DAY_IN_WORDS, "days with their months in words that are not read: write 2024-05-12 in the table"),
    )
    for form, remark in unread:
        if rows := sum(n for t, n in rest.items() if form.fullmatch(t.strip())):
            hints.append(f"{percent(loss.share * rows / sum(words.values()))} are {remark}")
    return hints + _gaps(column, rest, alone, numbers=True)


def _numbers(column: Column, words: Mapping[str, int], shapes: Mapping[str, int], alone: Collection[str]) -> list[str]:
    """The reading that reads most of the whole column, where it is another than declared; the rest is told alone."""
    hints: list[str] = []
    declared = reading = NumberForm(column.strip, column.decimal)
    lost = {t: n for t, n in shapes.items() if not declared.reads(t)}
    best, share = number_reading(shapes)
    strip = declared.strip if best.decimal == declared.decimal else declared.signs
    cure = NumberForm(tuple(dict.fromkeys((*strip, *best.strip))), best.decimal)
    plain = [(own.decimal, {unicodedata.normalize("NFKC", sign) for sign in own.strip}) for own in (declared, cure)]
    if share > share_of(shapes, declared.reads) and plain[0] != plain[1]:  # m2 beside m² is asked about below
        reading = cure
        given: dict[str, object] = {"strip": list(cure.strip) or None} if cure.strip or declared.strip else {}
        given |= {"decimal": cure.decimal} if cure.decimal != declared.decimal else {}
        fields = ", ".join(f"{k}: {json.dumps(v, ensure_ascii=False)}" for k, v in given.items())
        sign = "with a decimal comma" if cure.decimal == "," else "with signs beside or between the digits"
        read = share_of(lost, cure.reads)
        hints.append(f"{percent(read)} of what cannot be read are numbers {sign}: {fields}")
    rest = {t: n for t, n in lost.items() if not reading.reads(t)}
    if (share := share_of(rest, reading.other_way.reads)) > 0:
        of = "of the others" if hints else "of what cannot be read"
        wrong = f"{percent(share)} {of} are numbers written the other way, with a decimal {reading.other_way.mark_name}"
        either = f"; {n:,} of them, such as 1.234 or 1,234, may be either" if (n := either_way(reading, rest)) else ""
        hints.append(f"{wrong}{either}: a column has one notation; mend the table")
    if (below := share_of(rest, lambda t: _below_zero(t, reading))) > 0:
        of = f"{percent(below)} {'of the others' if hints else 'of what cannot be read'}"
        how = f"numbers {BELOW_ZERO}: {ONE_SIDED}; write it in front in the table"
        marks = all(re.fullmatch("[0-9]{1,2} ?-", t.strip()) for t in words if _below_zero(t, reading))
        hints.append(
            f"{of} are {'whole numbers with a minus behind: marks? kind: categorical lists them' if marks else how}"
        )
    words = {t: n for t, n in words.items() if not reading.reads(t) and not reading.other_way.reads(t)}
    hints += [limits] if (limits := limits_in_words(words, column.strip)) else []
    measured = {t: n for t, n in words.items() if (m := MEASURED.fullmatch(t.strip())) and reading.reads(m[1])}
    if units := unit_of_measure(measured):
        cured = json.dumps(sorted((*units, *reading.strip), key=len, reverse=True), ensure_ascii=False)
        hints.append(f"numbers with {' or '.join(map(repr, units))} beside them: the same unit? strip: {cured}")
    hints += _gaps(column, words, alone, numbers=True)
    if words and not hints:
        asked = f"{first_few(map(repr, words))}: results in words?"
        hints = [f"{asked} Write them into a column of their own; missing: […] is for those that mean a gap"]
    return hints


def _below_zero(text: str, reading: NumberForm) -> bool:
    """Whether a text is a number below 0 as accounts have it: 12.50- and (12.50), with signs beside or without."""
    match = BELOW.fullmatch(without(text, reading.signs))
    return match is not None and reading.number(match[1]) is not None


def _gaps(column: Column, rest: Mapping[str, int], alone: Collection[str], *, numbers: bool) -> list[str]:
    zeros = ", ".join(repr(t) for t in rest if numbers and ZERO.fullmatch(t.strip()))
    hints = [f"{zeros}: 0? Write it so in the table: as a gap it would raise the mean"] if zeros else []
    own = [t for t in rest if t.strip().lower().replace("_", " ") == column.name.lower().replace("_", " ")]
    hints += [f"{t!r}, as the column is called: a line of headers? It counts as a record: take it out" for t in own]
    gaps = [t for t in gap_words(rest, numbers=numbers) if t not in own and t not in alone]
    cure = f"{', '.join(map(repr, gaps))}: a gap? missing: {listed([*column.missing_texts, *gaps])}"
    return [*hints, cure] if gaps else hints


def _texts(column: Column, words: Mapping[str, int], alone: Collection[str] = ()) -> list[str]:
    folded = {_folded(t): t for t in column.values}
    hints = []
    if column.kind == "flag" and {t.strip().lower() for t in words} & {*YES, *NO}:
        hints.append("more spellings of yes and no: spellings: common reads them in any case")
    elif (variants := [t for t in words if _folded(t) in folded]) and column.kind == "categorical":
        few = ", ".join(f"{t!r} for {folded[_folded(t)]!r}" for t in variants[:3])
        how = "capitals, spaces, zeros, marks or their Unicode form alone"
        common = all(loosely(t) == loosely(folded[_folded(t)]) for t in variants)
        own = {v: [t for t in variants if folded[_folded(t)] == v] for v in (folded[_folded(t)] for t in variants)}
        cure = "common" if common else json.dumps(own, ensure_ascii=False)
        hints.append(f"{len(variants)} spellings differ from a listed value in {how} ({few}): spellings: {cure}")
    gaps = _gaps(column, words, alone, numbers=False)
    if column.kind == "categorical" and column.other is None and len(words) > len(gaps):
        hints.append(f"{len(words)} texts are not listed: list those that are public; other: Other takes the rest")
    return hints + gaps


def _folded(text: str) -> str:
    """A text but for capitals, spaces, marks beside digits, zeros, Roman digits, and ways to write a letter (ß, ss)."""
    bare = BESIDE_DIGITS.sub("", " ".join(unicodedata.normalize("NFKC", text).casefold().split())).rstrip(".")
    number = WHOLE.fullmatch(ROMAN.get(bare, bare))
    return number[1] if number else bare


def lone_hint(lone: int, unit: str | None) -> list[str]:
    """A question where one unit alone holds a listed text."""
    why = "is the list a public one? Read off this table, each betrays a person: values: discover, or take it out"
    return [f"{lone:,} of the listed texts are held by {one_unit(unit)} alone: {why}"] if lone else []


def persons_released(column: Column, facts: ColumnFacts, frequent: Sequence[str], unit: str | None) -> list[str]:
    """That names or addresses of persons are listed, or would be found; or ids, where a row is the unit.

    Those of persons with many rows would be released.

    Args:
        frequent: texts of many rows, which a discovery may find.
    """
    for which, texts in {"frequent": frequent, "listed": declared_texts(column)}.items():
        if remark := persons_in_words(column.name, texts, which):
            return [f"{remark}; leave_out: [{column.name}]"]
    asked = unit is None and column.discover is not None and column.discover.values
    if not asked or not (ID_NAME.search(column.name) or facts.may_be_id(column.name)):
        return []
    ids = f"{facts.distinct:,} values in {facts.rows:,} rows: does it name persons? Each row is protected alone"
    why = "a value of many rows, which may be one person's, is released as it is: leave_out, or privacy.unit"
    return [f"{ids}, so that {why}"]


def unlisted_hint(column: Column, texts: Mapping[str, int], share: float) -> list[str]:
    """That a list, or bounds, takes little of the column, and which texts it does not take.

    Args:
        texts: some of what goes to *other* → how often each occurs.
    """
    few = ", ".join(repr(t) for t in list(texts)[:3])
    loss = f"{percent(share)} of the values become {column.other!r}, such as {few}: is the list that of this column?"
    return [loss, *(h for h in _texts(column, texts) if "spellings" in h)]


def hints_on_values(column: Column, counts: Ints, facts: ColumnFacts, lost: int) -> list[str]:
    """Questions about values that are placed: constants, wide bins, spellings, ids.

    Args:
        counts: rows per code.
        lost: how many values are not placed.
    """
    values = counts[: column.value_codes]
    present = int(values.sum())
    hints: list[str] = []
    if not column.constant and facts.rows and not lost:
        others = column.other_code is not None and counts[column.other_code] > 0
        hints += _constant(column, values, present, facts.rows) if present or not others else []
    hints += empty_codes(column)
    hints += [] if column.width is None else digit_lines(zip_fields(column))
    if column.kind == "categorical" and len(column.values) > 2 and spelled_yes_or_no(column.values):
        hints.append(f"{len(column.values)} spellings of yes and no: kind: flag, spellings: common")
    elif column.kind == "categorical" and not column.constant:
        hints += _alike(column)
        listed_texts = dict(zip(column.values, values.tolist(), strict=True)) if column.values else {}
        spelled = misspelt(listed_texts)
        hints += [f"{spelled}: one spelling of each in the table"] if spelled else []
    gaps = listed_gaps(column.values) if column.kind == "categorical" and not column.constant else []
    empty = column.missing_code is not None and counts[column.missing_code] > 0  # such cells stay empty
    cure = listed([*(column.missing_texts or ([""] if empty else [])), *gaps])
    hints += [f"{', '.join(map(repr, gaps))} among the values: a gap? missing: {cure}"] if gaps else []
    if column.kind in ORDERED_KINDS and present:
        hints += crowded_bin(column, values, present)
        hints += wide_bins(column, values, present)
    several = column.kind not in {"float", *DATE_KINDS} and not since_1970(facts.plain.low or 0, facts.plain.high or 0)
    return hints + (facts.of_their_own if several else []) + _formulas(column)


def _formulas(column: Column) -> list[str]:
    """Texts of the schema that a spreadsheet computes where a person opens the release in it."""
    if not (texts := [repr(t) for t in declared_texts(column) if FORMULA.match(t)]):
        return []
    begins = "begins" if len(texts) == 1 else "begin"
    return [f"{first_few(texts)} {begins} as a formula does, and a spreadsheet computes it: other texts in the table"]


def _constant(column: Column, values: Ints, present: int, rows: int) -> list[str]:
    if not present:
        return ["empty throughout: kind: constant measures nothing and invents nothing"]
    top = int(values.argmax())
    if values[top] == present == rows and column.kind == "categorical":
        value = json.dumps(column.labels[top], ensure_ascii=False)
        return [f"one value in all rows: if that is public, kind: constant, value: {value} measures nothing"]
    return []


def two_notations(declared: NumberForm, shapes: Mapping[str, int]) -> list[str]:
    """Numbers that would be others with point and comma changed over, where the rest does not tell which is meant.

    Args:
        shapes: what the texts look like as numbers → in how many rows.
    """
    other = declared.other_way
    alone = {t: n for t, n in shapes.items() if re.search("[.,]", t) and declared.reads(t) and not other.reads(t)}
    parted = declared.money or any(m in t for t in alone for m in declared.dots)
    certain = parted if declared.dots else alone or declared.plain
    others = any(other.reads(t) and not declared.reads(t) for t in shapes)
    if not (alike := declared.doubtful(shapes)) or (certain and not others):
        return []
    example = "1.234" if "." in (declared.decimal, *declared.marks) else "1,234"
    doubtful = f"{alike:,} of the {alike + sum(alone.values()):,} numbers with a point or a comma, such as {example}"
    why = "others are written that way" if others else "no cell shows which way is meant"
    return [f"{doubtful}, would be others with a decimal {other.mark_name}: {why}"]


def _alike(column: Column) -> list[str]:
    """Listed values that may be one: of one `_folded`, or a word and its letter."""
    by_key: dict[str, list[str]] = {}
    for value in column.values:
        by_key.setdefault(_folded(value), []).append(value)
    for letter in [k for k in by_key if len(k) == 1 and k.isalpha()]:
        words = [k for k in by_key if len(k) > 2 and k.startswith(letter) and k.isalpha()]  # not n.b., nor H;L
        words = [k for k in words if not ROMANS.fullmatch(k)]
        if len(words) == 1:
            by_key[letter] += by_key.pop(words[0])
    measured = {k: m for k in by_key if (m := MEASURED.fullmatch(k)) and m[1] in by_key}
    if len(measured) >= WITH_UNIT and len({m[2] for m in measured.values()}) == 1:
        for key, m in measured.items():
            by_key[m[1]] += by_key.pop(key)
    alike = [values for values in by_key.values() if len(values) > 1]
    if not alike:
        return []
    few = "; ".join(", ".join(map(repr, values)) for values in alike[:3])
    spelled = json.dumps({own[0]: own[1:] for own in alike}, ensure_ascii=False)
    cure = f"one spelling of each in values, and spellings: {spelled}"
    yes, no = by_key.values() if len(by_key) == 2 else ([""], [""])
    answers = _answer(yes), _answer(no)
    if len(by_key) == 2 and (answers[0] != answers[1] or not answers[0]):
        yes, no = (no, yes) if answers == (-1, 1) else (yes, no)
        cure += f'; or kind: flag, "true": {listed(yes)}, "false": {listed(no)}'
    return [f"one value in several spellings? {few}: {cure}"]


def _answer(values: list[str]) -> int:
    """Whether spellings mean yes (1; a cross too), no (-1), or neither (0)."""
    words = {v.strip().casefold() for v in values}
    return (not words.isdisjoint({*YES, *CROSSES})) - (not words.isdisjoint(NO))


def listed(texts: list[str]) -> str:
    """A list as YAML, on one line."""
    return json.dumps(list(dict.fromkeys(texts)), ensure_ascii=False)
