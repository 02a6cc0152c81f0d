"""The unit that a drafted schema may have: what never differs between the rows of one person, and what orders them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from shlex import quote

from mechanisms.public.drafts.age_guess import are_years
from mechanisms.public.drafts.column_facts import Look, filled, who_sql
from mechanisms.public.drafts.order_guess import guess_ordered, guess_times, of_one_day
from mechanisms.public.drafts.rule_guess import ByName, amounts, times_among
from mechanisms.public.drafts.seen import FEWEST_UNITS
from mechanisms.public.drafts.text_guess import FEW_IDS
from mechanisms.public.schema.column import Column
from mechanisms.public.schema.discover_fields import Fields
from mechanisms.public.schema.schema_text import dump_yaml
from mechanisms.public.schema.spellings import folded
from mechanisms.public.tables.doubts import LOOKED_AT, two_shapes
from mechanisms.public.tables.encode import read_sql
from mechanisms.public.tables.losses import percent
from mechanisms.public.tables.persons import STAFF_COLUMN
from mechanisms.public.tables.scan import Source, literal
from mechanisms.public.tables.text_forms import ID_NAME, PERSON_ID_COLUMN, ROW_SHARE, may_number

#: Records are ordered by what differs within this share of the persons with several, and within about the most persons.
FEWEST_ORDERED, ABOUT = 0.1, 0.9
#: A column holds ids of other units where more than so many of its values are some, and this share of them at least;
#: ids are close together where they are this share of the whole numbers between the first and the last.
FEWEST_KIN, KIN, CLOSE = 5, 0.2, 0.1
#: A column is true of a record alone where more than this share of the records of persons with several, and with a
#: value, lack it: a release would fill it in all of theirs.
IN_PART = 0.05
#: A column is proposed as constant where it differs within at most this share of the ids with several rows.
FEW = 0.01
#: In fewer columns a row may hold nothing by chance.
FEWEST_COLUMNS = 4
#: A first row is a line of labels or units where it holds a text in so many columns that hold numbers alone but for it.
FEWEST_LABELS = 2
#: So many columns are looked at in one pass.
TOGETHER = 100
#: What the setting says where each row is a unit, and where the column is guessed.
RECORD, GUESS = "record", "guess"
#: Ids that are no persons by their name are taken where they have at least this share of the rows as values.
SHARE = 0.02
#: Ids with up to so many times the values of another have about as many.
ALIKE = 1.1
#: Numbers that states give to persons have so many digits; shorter ones under such a name are others (dni: days).
STATE_NUMBER, STATE_DIGITS = re.compile(r"(?i)(^|[_\W])(ssn|bsn|nif|dni|pesel|cpf|curp|svnr)$"), 6
#: Kinds as which ids may be drafted; whole numbers that are called ids are left out, and others are amounts.
CODES = {"categorical", "zip"}
HEAD = """\
# whole persons: what is constant is measured once per person; without this block, synthetic rows have no owners
unit:
"""
#: What the draft says of C: no table tells it.
BOUND = """\
  # C: so many records of one person count, and a synthetic person has no more. Fill in what is publicly known (how
  # often can anybody stand in such a table?), never the largest number of this table: it tells of one person.
  # Noise grows with C: of a max above 7 a quarter is a good start, as in {max: 20, counted: 5}; rows come for all.
  records: {max: }
"""


def guess_unit(source: Source) -> str | None:
    """The column called a person's id, or any id that repeats: the fullest of those with about the fewest values.

    Values are counted as if no cell were empty: an e-mail address that some persons lack is no better id.
    """
    named = [i for i, name in enumerate(source.names) if ID_NAME.search(name) and not STAFF_COLUMN.search(name)]
    if not named:
        return None
    texts = [source.text(i) for i in named]
    facts = "count(DISTINCT {0}), count_if({1}), median(length({0})) FILTER ({1})"
    parts = ", ".join(facts.format(t, filled(t)) for t in texts)
    ((rows, *seen),) = source.lines(f"SELECT count(*), {parts} FROM {source.relation}")
    each = list(zip((source.names[i] for i in named), seen[::3], seen[1::3], seen[2::3], strict=True))
    ids = [(-full, n, name) for name, n, full, _ in each if n > FEW_IDS and full]
    short = {name for name, _, _, length in each if STATE_NUMBER.search(name) and (length or 0) < STATE_DIGITS}
    persons = [one for one in ids if PERSON_ID_COLUMN.search(one[2])]
    persons = [one for one in persons if one[2] not in short] or persons
    ids = persons or [one for one in ids if SHARE * rows <= one[1] <= ROW_SHARE * rows]
    fewest = min((n / -full for full, n, _ in ids), default=0)
    return min((one for one in ids if one[1] / -one[0] <= ALIKE * fewest), default=(0, 0, None))[2]


def counted(unit: str | None, *, guessed: bool) -> str:
    """What was counted, as a sentence of the draft."""
    if unit is None:
        if not guessed:
            return "Rows were counted (privacy.unit=record)."
        why = "no column is called a person's id. Where a person has several rows: privacy.unit=COLUMN."
        return f"Rows were counted: {why}"
    how = "guessed to be the person; privacy.unit=COLUMN says another" if guessed else "privacy.unit"
    return f"Counted by the column {unit!r} ({how}): rows without it do not count."


def of_whom(look: Look, index: int, fields: Fields | None) -> str:
    """A question where no column is known to name persons, and this one may, drafted or left out."""
    name, facts = look.source.names[index], look.facts[index]
    kind = fields["kind"] if fields is not None else "categorical"
    codes = kind in CODES or (kind == "integer" and may_number(facts.plain.low, facts.plain.high, facts.distinct))
    many = kind in CODES and not facts.wordy and facts.distinct > ROW_SHARE * facts.filled
    if many and (twice := look.alike(index)[0]):
        return f"; {twice:,} values stand in two rows or more: is it the person's? then draft with privacy.unit={name}"
    stepped, follow = fields is not None and "multiple_of" in fields, ""
    if not codes or not facts.may_be_id(name) or stepped:
        if kind not in {*CODES, "integer"} or stepped or name not in look.grouped:
            return ""
        follow = ", which follow each other"
    each = f"{facts.filled / facts.distinct:.1f} rows each{follow}"
    unit = quote(f"privacy.unit={name}")
    return f"; {facts.distinct:,} values, {each}: does it name persons? then draft with {unit}"


def guess_persons(source: Source, unit: str | None, columns: ByName) -> tuple[str, list[str], str | None]:
    """The block `unit` of a draft, for a person to complete; empty where no id has rows that differ. NOT private.

    Beside it the constants, which no rule names but an expression and `impossible`, and what orders a person's rows.

    Args:
        unit: None: nobody named it, and nothing is proposed.
    """
    if unit is None:
        return "", [], None
    names = [n for n, c in columns.items() if not c.constant]
    differing, in_part = _varying(source, unit, [columns[n] for n in names])
    varying = {n: share for n, share in differing.items() if share > FEW}
    if not varying and not in_part:
        return "", [], None
    ids = f"SELECT t FROM ({_texts(source, source.names.index(unit))}) ORDER BY hash(t) LIMIT {LOOKED_AT}"
    shapes = two_shapes([t for (t,) in source.lines(ids)])
    text = HEAD + _field("column", unit) + "".join(f"  # {remark}\n" for remark in shapes)
    if in_part := [n for n in in_part if n not in varying]:
        some = ", ".join(map(repr, in_part))
        text += f"  # filled in some records of a {unit!r} and empty in others, and so not constant here: {some}\n"
    if constant := [n for n in names if n not in varying and n not in in_part]:
        text += f"  # guess: the same in all rows of each {unit!r} of this table, gaps aside; is it so for everybody?\n"
        odd = [n for n in constant if n in differing]
        text += "".join(f"  # {n!r} differs within {percent(differing[n])} of ids with several rows\n" for n in odd)
        text += _field("constant", constant)
    if (order := _order(source, varying, columns)) is not None:
        text += f"  # guess: the rows of one {unit!r} follow each other by this; ties keep the order of the file\n"
        text += _field("order", order)
    return text + BOUND, constant, order


def ids_of_others(source: Source, unit: str, names: Sequence[str]) -> dict[str, str]:
    """Columns that hold ids of the unit, as that of a mother does → how many of their values are some, in words.

    Whole numbers that lie close together are ids of somebody by chance, unless they are large, as 100000 to 104000 are;
    then the column's name must say that it holds ids. NOT private.

    Args:
        names: the columns that are asked about.
    """
    own, held = source.index(unit, where="privacy.unit"), {}
    asked = [n for n in names if n != unit]
    if asked:
        number = f"TRY_CAST({source.text(own)} AS BIGINT)"
        facts = f"count(DISTINCT {number}), min({number})::DOUBLE, max({number})::DOUBLE"
        ((count, least, most),) = source.lines(f"SELECT {facts} FROM {source.relation}")
        close = count and count >= CLOSE * (1 + most - least) and least * CLOSE < most - least
        asked = [n for n in asked if not close or ID_NAME.search(n)]
    ids = f"WITH ids AS MATERIALIZED (SELECT t, true AS id FROM ({_texts(source, own)})) "
    for first in range(0, len(asked), TOGETHER):
        block = asked[first : first + TOGETHER]
        values = [_texts(source, source.names.index(name)) for name in block]
        queries = [f"SELECT {i}, count(*), count(id) FROM ({v}) LEFT JOIN ids USING (t)" for i, v in enumerate(values)]
        for i, every, some in source.lines(ids + " UNION ALL ".join(queries)):
            if some > FEWEST_KIN and some >= KIN * every:
                held[block[i]] = f"{some:,} of its {every:,} values are ids of {unit!r}"
    return {name: held[name] for name in asked if name in held}


def odd_rows(source: Source) -> list[str]:
    """What of the rows is no record: a line of labels or units, and rows that hold nothing. NOT private."""
    return [*_second_header(source), *_blank_rows(source)]


def _second_header(source: Source) -> list[str]:
    """That the first row holds texts in several columns of numbers, and a number in none, as a sentence."""
    texts = [source.text(i) for i in range(min(TOGETHER, len(source.names)))]
    number = "TRY_CAST({0} AS DOUBLE) IS NOT NULL"
    each = ", ".join(
        f"first({filled(t)}), first({number.format(t)}), count_if({filled(t)}), count_if({number.format(t)})"
        for t in texts
    )
    (seen,) = source.lines(f"SELECT {each} FROM (SELECT * FROM {source.relation} LIMIT {LOOKED_AT})")
    cells = list(zip(seen[::4], seen[1::4], seen[2::4], seen[3::4], strict=True))
    of_numbers = [
        (held, number) for held, number, n, numbers in cells if (n or 0) > FEWEST_COLUMNS and numbers >= n - 1
    ]
    labels = sum(held and not number for held, number in of_numbers)
    if labels < FEWEST_LABELS or any(number for _, number in of_numbers):
        return []
    words = f"the first row holds texts in {labels} columns of numbers: a second line of headers, or units"
    return [f"{words}? It counts as a record: take it out of the table"]


def _blank_rows(source: Source) -> list[str]:
    """That some rows of a table of several columns hold nothing at all, as a sentence."""
    if len(source.names) < FEWEST_COLUMNS:
        return []
    # one condition for each column: the engine asks those behind it of blank cells alone
    blank = " AND ".join(f"NOT coalesce({filled(source.text(i))}, false)" for i in range(len(source.names)))
    ((rows,),) = source.lines(f"SELECT count(*) FROM {source.relation} WHERE {blank}")
    counted = "1 row holds" if rows == 1 else f"{rows:,} rows hold"
    words = f"{counted} nothing in any column, as spreadsheets leave them behind a table; each is a record"
    return [f"{words}: delete them"] if rows else []


def with_ids(source: Source, unit: str) -> Source:
    """The rows that have an id: in a table that was joined elsewhere others lack the units' columns."""
    held = filled(source.text(source.index(unit, where="privacy.unit")))
    return replace(source, relation=f"(SELECT * FROM {source.relation} WHERE {held})")


def rows_of_each(source: Source, unit: str) -> float:
    """How many rows a person has on average, of those that have an id. NOT private."""
    who = who_sql(source, source.index(unit, where="privacy.unit"))
    ((rows, persons),) = source.lines(f"SELECT count({who}), count(DISTINCT {who}) FROM {source.relation}")
    return float(rows / max(persons, 1))


def _texts(source: Source, index: int) -> str:
    """SQL for the distinct texts of a column, but for gaps, capitals and blanks around them."""
    text = source.text(index)
    return f"SELECT DISTINCT lower(trim({text})) AS t FROM {source.relation} WHERE {filled(text)}"


def _field(name: str, value: str | list[str]) -> str:
    """A line of the block, or more."""
    text = dump_yaml({name: value})
    text = text if isinstance(value, list) else f"{text.strip()[1:-1]}\n"  # of one text the braces
    return "".join(f"  {line}" for line in text.splitlines(keepends=True))


def _varying(source: Source, unit: str, columns: Sequence[Column]) -> tuple[dict[str, float], list[str]]:
    """Columns of which some id has several values → the share of such ids among those with several rows.

    And the columns of which more than IN_PART of the rows of these ids that have a value are gaps. A drafted code of
    gaps is none: the person has a value, which is not known.
    """
    who = who_sql(source, source.index(unit, where="privacy.unit"))
    varying: dict[str, float] = {}
    in_part: list[str] = []
    for first in range(0, len(columns), TOGETHER):
        block = columns[first : first + TOGETHER]
        texts = [source.text(source.names.index(c.name)) for c in block]
        filled_texts = [filled(t, c.missing_texts) for c, t in zip(block, texts, strict=True)]
        same = [_as_read(source, t, c) for c, t in zip(block, texts, strict=True)]
        each = ", ".join(
            f"min({own}) FILTER ({value}) <> max({own}) FILTER ({value}) AS d{i}, count_if({filled(t)}) AS f{i}"
            for i, (t, value, own) in enumerate(zip(texts, filled_texts, same, strict=True))
        )
        rows = f"(SELECT *, {who} AS who FROM {source.relation}) WHERE who IS NOT NULL"
        sql = f"SELECT count(*) AS k, {each} FROM {rows} GROUP BY who"
        counts = "count_if(d{0}), sum(k) FILTER (k > 1 AND f{0} > 0), sum(k - f{0}) FILTER (f{0} > 0)"
        parts = ", ".join(counts.format(i) for i in range(len(block)))
        ((several, *seen),) = source.lines(f"SELECT count_if(k > 1), {parts} FROM ({sql})")
        if several < FEWEST_UNITS:  # of one person's two rows a draft would tell what they hold
            return {}, []
        varying |= {c.name: differs / several for c, differs in zip(block, seen[::3], strict=True) if differs}
        each_part = zip(block, seen[1::3], seen[2::3], strict=True)
        in_part += [c.name for c, k, gaps in each_part if gaps and gaps > IN_PART * k]
    return varying, in_part


def _as_read(source: Source, text: str, column: Column) -> str:
    """The text as SQL by which one value has one form: dates in several forms as days, spellings as their value."""
    if column.more_formats:
        return f"coalesce(CAST({read_sql(source, column)} AS VARCHAR), {text})"
    if not column.loose:
        return text
    bare, values = f"lower(trim({text}))", [literal(folded(t)) for t in column.values]
    meant = " ".join(f"WHEN {literal(folded(t))} THEN {values[code]}" for t, code in column.spellings)
    return f"CASE {bare} {meant} ELSE {bare} END" if meant else bare


def _order(source: Source, varying: Mapping[str, float], columns: ByName) -> str | None:
    """The first column of dates or times that differs within about as many persons as any, else of years, or of parts.

    None that differs within few persons: a birth date with typing errors orders nothing. In the place of a time that
    follows soon on one which differs within half as many, this one: what orders records is no length after another.
    """
    own = {n: columns[n] for n in varying}
    dates = [c.name for c in times_among(own) if not of_one_day(c)]
    years = [c.name for c in amounts(own, ("integer",)) if are_years(c)]
    parts = [n for n, c in own.items() if c.ordinal]  # school years, quarters: see `PERIOD`
    for names in (dates, years, parts):
        most = max((varying[n] for n in names), default=0)
        if most >= FEWEST_ORDERED:
            first = next(n for n in names if varying[n] >= ABOUT * most)
            often = {n: own[n] for n in dates if varying[n] >= most / 2}
            pairs = [pair[:2] for pair in guess_ordered(source, often)[0]]
            earlier = {one.later: one.earlier for one in guess_times(source, often, pairs, ())[0]}
            for _ in often:
                first = earlier.get(first, first)
            return first
    return None
