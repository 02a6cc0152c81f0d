"""What the numbers or days of a column may mean instead: per cents, cents, gaps. NOT private: for the operator."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import date
from typing import Any

import numpy as np

from mechanisms.public.arrays import Ints
from mechanisms.public.drafts.column_facts import COMPACT, DAYS_OF_GAPS, Look, who_sql
from mechanisms.public.drafts.mixed_guess import what_is_stripped
from mechanisms.public.drafts.rule_guess import is_amount
from mechanisms.public.drafts.seen import FEWEST_UNITS, ColumnFacts, Numbers
from mechanisms.public.schema.column import DATE_KINDS, Column
from mechanisms.public.schema.fine_cells import plain_edges
from mechanisms.public.schema.spellings import ISO, reader
from mechanisms.public.schema.table_schema import Schema
from mechanisms.public.tables.codec import EncodingReport, values_outside
from mechanisms.public.tables.doubts import (
    FEWEST_PARTS,
    LITTLE,
    NUMBERED_NAME,
    number_doubts,
    numbers_apart,
    numbers_of_others,
    short_years,
    shorter_codes,
)
from mechanisms.public.tables.encode import PLAIN, as_listed_sql, declared_gap, read_sql, text_sql
from mechanisms.public.tables.listed_gaps import days_among_ranges, usual
from mechanisms.public.tables.losses import percent
from mechanisms.public.tables.scan import OF_UTC, UTC, UTC_NS, Source, literal
from mechanisms.public.tables.text_forms import (
    AS_THEY_ARE,
    CODE_NAME,
    CODES_OF_GAPS,
    FAR_CODES,
    NumberForm,
    Texts,
    day_and_month,
    thousands_in_words,
)
from pipeline.look.bin_look import FEW_ROWS
from pipeline.look.column_look import listed, two_notations

#: Said of times of which each is a moment, whatever clock shows it.
ZONED = "times with a zone are read as UTC's clock shows them: are hours and days of another place meant? Write its "
ZONED += "clock, without a zone, in the table"
#: A number is asked about as a gap where it stands at least so often, apart from all others.
OFTEN = 3
#: Of texts that join a value so many are looked at; so many are shown, of so many values.
ALL_TEXTS, FEW_TEXTS, FEW_VALUES = 1_000_000, 4, 8
#: Who declares so many decimals says that 1.234 is not 1234.
THOUSANDTHS = 3
#: Codes of no answer in surveys, above a scale of at least so many answers; the first of a family alone may be one.
NO_ANSWERS, SCALE = ((7, 8, 9), (66, 77, 88, 99), (96, 97, 98, 99)), 2
#: Up to so many different numbers below 0 may each say why there is no answer.
FEW_CODES = 6
#: An end of so many different numbers is asked about, where at least this share of the rows holds it, or, so many times
#: the range of all others away, FEWEST_UNITS rows.
FEWEST_NUMBERS, FEW_OF_ALL, FAR_AWAY = 20, 0.01, 5
#: These codes among other numbers are asked about where a mean number in this part of the range around them has far
#: fewer rows, and where so many times those of each number that ends in the same digit, as prices do, are fewer too.
USUAL_CODES, AROUND = (*(code for code in FAR_CODES if code > 0), 1900), 0.1
ENDS_ALIKE = 1.5
#: Two units: the median of whole numbers is so many times that of numbers with decimals; where fewer than this share is
#: either, both quartiles are; and so many rows hold each.
UNITS, EITHER, FEWEST_EITHER = {(50, 200): "cents beside euros", (500, 2000): "thousands beside ones"}, 0.02, 10
#: A day of gaps, or an end apart from so many days, is asked about where so many times the rows of a mean day hold it.
FEWEST_DAYS, MUCH_MORE = 20, 10
#: Of at least so many times, those up to this hour are of the afternoon where a clock has twelve hours.
FEWEST_TIMES, EARLY = 50, 5
#: Two digits of a year are of 1969 to 2068.
LAST_OF_TWO_DIGITS = 2068
#: Bounds that are off by this factor are said to be.
FAR = 10


def read_wrongly(look: Look, column: Column, facts: ColumnFacts, report: EncodingReport) -> list[str]:
    """In which way the column may be read as something else than it means."""
    source, reading = look.source, NumberForm(column.strip, column.decimal)
    amounts, typed = is_amount(column), source.typed(index := source.declared(column.name))
    shapes = look.shapes(index) if column.width or (amounts and not typed) else {}
    warnings = shorter_codes(shapes, column.width) if column.width else two_notations(reading, shapes)
    warnings += dates_read_wrongly(source, column) + what_is_stripped(reading, shapes)
    warnings += mixed_units(source, column) if amounts and not typed else []
    warnings += clock_times(source, column, facts.plain) if amounts else []
    if not column.width and reading.plain and (column.decimals or 0) < THOUSANDTHS and reading.doubtful(shapes):
        warnings += [remark for remark in [thousands_in_words(reading, shapes)] if remark]
    if column.kind == "categorical":
        warnings += short_years(look.trimmed(index)) + days_among_ranges(look.trimmed(index))
    if column.numeric and not warnings:
        often, each = look.trimmed(index), facts.rows / max(facts.distinct, 1)
        others = [] if column.width else numbers_of_others(often, column.name, each) or numbers_apart(often, reading)
        warnings += number_doubts(often, column.name) or others
    if (rounded := report.rounded.get(column.name, 0) / max(facts.rows, 1)) > FEW_ROWS:
        rounding = f"{percent(rounded)} of the numbers are rounded to whole ones"
        warnings.append(f"{rounding}: kind: float, or is it a mark of thousands (strip)?")
    if column.kind != "integer" or column.width is not None:
        return warnings
    if CODE_NAME.search(column.name):
        return [*warnings, "called a code, declared as amounts: its mean says nothing; kind: categorical, or kind: zip"]
    if column.low >= 1 and reading.plain and NUMBERED_NAME.search(column.name):
        warnings.append("do its numbers stand for names, as it is called? Then kind: categorical")
    return warnings


def other_words(column: Column, texts: Texts) -> list[str]:
    """That a flag is written in other words than the table has.

    Args:
        texts: those that occur, the most frequent first.
    """
    code_of = reader(column)
    sides = dict(zip(("false", "true"), column.values, strict=True))
    held = {name: [t for t in texts if code_of(t) == (name == "true")] for name in ("true", "false")}
    others = {name: own[0] for name, own in held.items() if own and sides[name] not in own}
    if not others:
        return []
    fields = ", ".join(f'"{name}": {listed([text])}' for name, text in others.items())
    few = ", ".join(f"{text!r} as {sides[name]!r}" for name, text in others.items())
    return [f"a release writes {few}: {fields} keeps the table's words"]


def joined_cells(source: Source, schema: Schema, column: Column) -> list[str]:
    """How many cells each value of a listed column got by its spellings, capitals, spaces or beginning."""
    if column.kind != "categorical" or not (column.loose or column.beginning):
        return []
    every = values_outside(source, schema, column.name, most=ALL_TEXTS, mark=PLAIN)
    code_of, cells = reader(column), dict[str, dict[str, int]]()
    for text, n in every:
        code = code_of(text)
        if code is not None and code < column.value_codes and text != column.values[code]:
            cells.setdefault(column.values[code], {})[text] = n
    few = [
        f"{value!r} got {sum(texts.values()):,} ({', '.join(f'{t!r} {n:,}' for t, n in [*texts.items()][:FEW_TEXTS])}"
        f"{', …' if len(texts) > FEW_TEXTS else ''})"
        for value, texts in cells.items()
    ]
    whole = sum(n for texts in cells.values() for n in texts.values())
    more = f"; and {len(few) - FEW_VALUES} more values" if len(few) > FEW_VALUES else ""
    how = " or ".join(["spelling"] * (column.loose or not column.beginning) + ["beginning"] * (column.beginning > 0))
    return [f"{whole:,} cells joined a value by their {how}: {'; '.join(few[:FEW_VALUES])}{more}"] if few else []


def differ_in_case(texts: Collection[str]) -> list[str]:
    """That texts which a discovery may find differ in capitals alone: such a column has no spellings."""
    alike = Counter(text.casefold() for text in texts)
    if not (many := sum(n for n in alike.values() if n > 1)):
        return []
    why = "each is found, or lost in *other*, by itself"
    return [f"{many} of the {len(texts)} frequent texts differ from another in capitals alone: {why}; mend the table"]


def clock_times(source: Source, column: Column, seen: Numbers) -> list[str]:
    """That numbers are times, as 1740 or 17.40 are: most have hours, and the last two digits of these go to 59."""
    scale = 1 if column.kind == "integer" else 100
    if seen.low is None or seen.high is None or seen.low < 0 or not 100 < scale * seen.high < 2400:
        return []
    cells = f"round({scale} * {read_sql(source, column)})::BIGINT AS x, {text_sql(source, column)} AS t"
    held = f"SELECT x, t, x % 100 AS minute FROM (SELECT {cells} FROM {source.relation})"
    counts = "count(x), count(x) FILTER (x >= 100), count(DISTINCT minute), count(DISTINCT x)"
    times = "FILTER (x >= 100 AND minute < 60)"
    counts += f", count(*) FILTER (minute < 60), count(*) {times}, count(DISTINCT x // 100) {times}, mode(t) {times}"
    numbers, late, minutes, distinct, fit, of_late, hours, shown = source.lines(f"SELECT {counts} FROM ({held})")[0]
    if fit <= COMPACT * numbers or of_late <= COMPACT * late or 2 * late < numbers:
        return []  # numbers below 60 are minutes whatever they count
    if min(minutes, hours) < FEWEST_PARTS or distinct < FEWEST_NUMBERS:
        return []
    asked = f"are {fit:,} of {numbers:,} numbers times of the day, as {shown} is? Synthetic ones would often be none"
    return [f"{asked}: write minutes since midnight in the table"]


def mixed_units(source: Source, column: Column) -> list[str]:
    """That numbers without decimals are about 100 or 1000 times those with: cents beside euros, 31.5 for 31500."""
    parted = f"regexp_matches({text_sql(source, column)}, '[{column.decimal}][0-9]')"
    cells = f"SELECT abs({read_sql(source, column)}) AS x, {parted} AS parted FROM {source.relation}"
    whole, parts = (f"FILTER (x > 0 AND {no} parted)" for no in ("NOT", ""))
    sql = ", ".join(f"count(x) {w}, quantile_cont(x, [0.5, 0.25, 0.75]) {w}" for w in (whole, parts))
    n, own, others, of_others = source.lines(f"SELECT {sql} FROM ({cells})")[0]
    if min(n, others) < FEWEST_EITHER:
        return []
    times = [a / b for a, b in zip(own, of_others, strict=True)][: 3 if min(n, others) <= EITHER * (n + others) else 1]
    units = [words for (least, most), words in UNITS.items() if least <= min(times) and max(times) <= most]
    how = f"{n:,} numbers without decimals are about {times[0]:.0f} times the {others:,} with"
    return [f"{how}: two units, {words}? One unit in the table" for words in units]


def held_alone(source: Source, column: Column, texts: Collection[str], unit: str | None) -> set[str]:
    """Those texts that one unit alone holds, usual signs aside; a number in whatever form its cells have it."""
    texts = [t for t in texts if not usual(t.strip())]
    if unit is None or not texts:
        return set()
    text = as_listed_sql(source, replace(column, missing_texts=tuple(texts)))
    who = who_sql(source, source.index(unit, where="privacy.unit"))
    held = f"SELECT {text} AS t, {who} AS who FROM {source.relation}"
    each = f"SELECT t FROM ({held}) WHERE t IN ({', '.join(map(literal, texts))})"
    return {str(t) for (t,) in source.lines(f"{each} GROUP BY t HAVING count(DISTINCT who) = 1")}


def gaps_among_numbers(source: Source, column: Column, counts: Ints, seen: Numbers, unit: str | None) -> list[str]:
    """Numbers such as -999 or 9999999 that lie apart from all others, or 8 and 9 above answers from 1 to 5.

    Args:
        counts: rows per code.
        unit: the column of persons; what one of them alone holds is never offered for a list that is published.
    """
    apart = _numbers_apart(source, column) if is_amount(column) else []
    gaps = dict(apart) | dict(_codes_apart(column, seen))
    for value in held_alone(source, column, gaps, unit):
        gaps.pop(value)
    return _asked(column, gaps) + _answers(column, counts[: column.value_codes], gaps)


def _asked(column: Column, held: Mapping[Any, int], beside: str = "") -> list[str]:
    """The question whether values, with how often each occurs, stand for gaps.

    Args:
        beside: what makes them odd.
    """
    few = ", ".join(f"{value} ({n:,} times)" for value, n in held.items())
    cure = listed([*column.missing_texts, *map(str, held)])
    return [f"{few}{beside}: a gap? missing: {cure}"] if held else []


def _codes_apart(column: Column, seen: Numbers) -> list[tuple[str, int]]:
    """Codes of gaps beyond all other numbers, with how often each occurs."""
    codes, listed_gaps = seen.codes, [AS_THEY_ARE.number(t) for t in column.missing_texts]
    apart = [c for c in seen.apart if codes[c] >= OFTEN and c not in listed_gaps]
    digits = [f"{c:.15g}" if column.width is None or c < 0 else f"{c:0{column.width}.15g}" for c in apart]
    return [(text, codes[c]) for text, c in zip(digits, apart, strict=True)]


def _numbers_apart(source: Source, column: Column) -> list[tuple[str, int]]:
    """Numbers that many rows hold: an end that lies half the range of all others away, and usual codes among others."""
    number, text = read_sql(source, column), text_sql(source, column)
    cells = f"SELECT {number} AS x FROM {source.relation} WHERE NOT ({declared_gap(column, number, text)})"
    each = f"SELECT x, count(*) AS n FROM ({cells}) WHERE isfinite(x) GROUP BY x"
    others = f"FROM each o WHERE o.x NOT IN {USUAL_CODES} AND"
    around = f"n >= {MUCH_MORE} * coalesce((SELECT avg(n) {others} abs(o.x - e.x) <= {AROUND} * span), 0)"
    alike = f"n >= {ENDS_ALIKE} * coalesce((SELECT max(n) {others} o.x % 10 = e.x % 10), 0)"
    codes = f"ARRAY(SELECT (x, n) FROM each e, ends WHERE x IN {USUAL_CODES} AND {around} AND {alike} ORDER BY x)"
    rest = f"arg_min(n, x), arg_max(n, x), quantile_disc(x, [0.05, 0.95]), {codes}"
    span = "ends AS (SELECT max(x) - min(x) AS span FROM each)"
    sql = f"WITH each AS MATERIALIZED ({each}), {span} SELECT count(*), sum(n), min(x, 2), max(x, 2), {rest} FROM each"
    distinct, rows, lowest, highest, of_low, of_high, inner, among = source.lines(sql)[0]
    if distinct < FEWEST_NUMBERS:
        return []
    if inner[1] - inner[0] > LITTLE * (highest[0] - lowest[0]):
        inner = lowest[1], highest[1]  # else a bulk, whatever few numbers lie between it and the end
    away, often = (inner[1] - inner[0]) / 2, max(OFTEN, FEW_OF_ALL * rows, 2 * rows / distinct)
    ends = ((lowest[0], inner[0] - lowest[0], of_low), (highest[0], highest[0] - inner[1], of_high))
    least = {True: min(often, FEWEST_UNITS), False: often}
    alone = max(OFTEN, FEW_OF_ALL * rows)  # as far from all others as these are from each other
    held = [
        (x, n)
        for x, apart, n in ends
        if apart >= away and n >= min(least[apart > 2 * FAR_AWAY * away], often if apart < 2 * away else alone)
    ]
    return [(f"{x:.15g}", int(n)) for x, n in held + [(x, n) for x, n in among if n >= often]]


def far_bounds(source: Source, column: Column) -> list[str]:
    """Bounds of numbers that are ten times too narrow, or too wide, at either end: dollars declared, a year 0."""
    bound = max(abs(column.low), abs(column.high))
    if not (is_amount(column) and bound):
        return []
    cells = f"SELECT {read_sql(source, column)} AS x, {text_sql(source, column)} AS t FROM {source.relation}"
    inside = f"NOT ({declared_gap(column, 'x', 't')}) AND x NOT IN {CODES_OF_GAPS}"
    sql = f"SELECT quantile_cont(abs(x), 0.99), quantile_disc(x, [0.01, 0.99]) FROM ({cells}) WHERE {inside}"
    most, inner = source.lines(sql)[0]
    if not most:
        return []
    if most >= FAR * bound:
        how = f"the numbers go {most / bound:,.0f} times as far as min and max"
        return [f"{how}: are the bounds in another unit (cents for dollars), or the texts read wrongly?"]
    if bound >= FAR * most:
        how = f"min and max go {bound / most:,.0f} times as far as 99 % of the numbers"
        return [f"{how}: are they in another unit, or wider than need be?"]
    edges = plain_edges(column)
    if edges is None or len(edges) <= FAR:
        return []
    first, last = np.searchsorted(edges, inner, side="right").tolist()
    if first and last - first <= 1 and inner[1] > inner[0] and edges[min(first, len(edges) - 1)] - edges[first - 1] > 1:
        how = f"98 % of the numbers lie in {last - first + 1} of {len(edges) - 1} bins"
        return [f"{how}: are min and max wider than need be, or do they hold a code of a gap, as 0 for a year?"]
    return []


def _answers(column: Column, values: Ints, asked: Collection[str]) -> list[str]:
    """Codes of no answer beside a scale: 9, or 8 and 9, above 1 to 5; 77, 88 and 99 above 0 to 10; -1, -2 and -8."""
    edges = plain_edges(column) if column.kind == "integer" else None
    if edges is None or len(edges) != len(values) + 1 or np.any(np.diff(edges) > 1):
        return []
    held = {int(code): int(n) for code, n in zip(edges, values, strict=False) if n}
    below = sorted(code for code in held if code < 0)
    in_a_row = below == list(range(-len(below), 0)) and len(below) > 2
    if (
        1 < len(below) <= FEW_CODES and 2 * len(below) < len(held) - 1 and not in_a_row
    ):  # else the scale goes on below 0
        return _asked(column, {c: held[c] for c in below}, ", all others from 0 on")
    held = {code: n for code, n in held.items() if str(code) not in asked}
    for family in NO_ANSWERS:
        top = [code for code in family if code in held]
        while top and min(top) - 1 in held:  # 7 above 1 to 6 is an answer, whatever 9 is
            top.remove(min(top))
        scale = [code for code in held if code not in top]
        apart = top and len(scale) >= SCALE and min(top) > max(scale) + 1
        apart = apart and (len(scale) > SCALE or max(scale) == min(scale) + 1)
        if apart and max(top) != min(family) and min(held[c] for c in top) >= OFTEN:
            return _asked(column, {c: held[c] for c in top}, f", and no {min(top) - 1}")
    return []


def dates_read_wrongly(source: Source, column: Column) -> list[str]:
    """In which way the days or times of a column may be others than it means."""
    if column.kind not in DATE_KINDS:
        return []
    warnings = _days_of_gaps(source, column)
    if source.types[index := source.names.index(column.name)] in {UTC, UTC_NS}:
        warnings.append(ZONED)
    if source.typed(index):
        return warnings
    warnings += _day_or_month(source, column) + _short_years(source, column) + _clocks(source, column)
    return warnings + (_twelve_hours(source, column) if column.kind == "datetime" else [])


def _twelve_hours(source: Source, column: Column) -> list[str]:
    """Times of which none is after 12:59 or before 1:00, and both ends of that are frequent: 1:30 may be 13:30."""
    if any("%p" in form for form in (column.format or "", *column.more_formats)):
        return []
    hours = f"SELECT hour({read_sql(source, column)}) AS h FROM {source.relation}"
    facts = f"SELECT count(h), min(h), max(h), count(*) FILTER (h <= {EARLY}) FROM ({hours})"
    read, first, last, afternoon = source.lines(facts)[0]
    if read < FEWEST_TIMES or (first, last) != (1, 12) or not LITTLE <= afternoon / read <= 1 - LITTLE:
        return []
    return ["no time lies before 1:00 or after 12:59: is 1:30 at night, or 13:30? Clocks of 24 hours in the table"]


def _days_of_gaps(source: Source, column: Column) -> list[str]:
    """1900-01-01, or an end that lies half the range of the rest away, where many rows hold it; both: a few rows do."""
    text, gaps = text_sql(source, column), ", ".join(map(literal, ("", *column.missing_texts)))
    usual = ", ".join(map(literal, DAYS_OF_GAPS))
    cells = f"SELECT {text} AS t, CAST({read_sql(source, column)} AS DATE) AS d FROM {source.relation}"
    days = f"SELECT d, count(*) AS n, min(t) AS t FROM ({cells} WHERE {text} NOT IN ({gaps})) GROUP BY d"
    ends = "SELECT avg(n) AS mean, count(*) AS k, min(d, 2) AS a, max(d, 2) AS z FROM days WHERE d IS NOT NULL"
    first, last = "d = a[1] AND 2 * (a[2] - d) >= z[1] - a[2]", "d = z[1] AND 2 * (d - z[2]) >= z[2] - a[1]"
    listed_day, apart, many = f"CAST(d AS VARCHAR) IN ({usual})", f"({first} OR {last})", f"n >= {MUCH_MORE} * mean"
    asked = f"({listed_day} AND ({apart} OR {many})) OR (k >= {FEWEST_DAYS} AND {apart} AND {many})"
    sql = f"WITH days AS ({days}) SELECT t, n FROM days, ({ends}) WHERE n >= {OFTEN} AND ({asked}) ORDER BY t"
    return _asked(column, dict(source.lines(sql)))


def _short_years(source: Source, column: Column) -> list[str]:
    """Days of years to come, where years have two digits: births of 1931 as 2031."""
    if not any("%y" in form for form in (column.format or "", *column.more_formats)):
        return []
    year, text, today = f"year({read_sql(source, column)})", text_sql(source, column), date.today().year
    short = f"NOT contains({text}, CAST({year} AS VARCHAR))"
    sql = f"SELECT count(*), count(*) FILTER ({year} > {today}) FROM {source.relation} WHERE {short}"
    read, later = source.lines(sql)[0]
    late = f"{later:,} of {read:,} days lie after {today}: years of two digits are read as 1969 to {LAST_OF_TWO_DIGITS}"
    return [f"{late}; are they a hundred years too late? Years of four digits in the table"] if later else []


def _clocks(source: Source, column: Column) -> list[str]:
    """Times of UTC; or with several offsets or zones, which are not read: 10:00Z and 10:00 CEST are both 10:00."""
    if column.kind != "datetime" or ISO not in {column.format or ISO, *column.more_formats}:
        return []
    offset = f"regexp_extract({text_sql(source, column)}, ':[0-9.]+ ?([A-Z][A-Za-z_/]*|[-+][0-9][0-9:]*)? *$', 1)"
    sql = f"SELECT {offset} AS o, count({read_sql(source, column)}) AS n FROM {source.relation} GROUP BY o"
    offsets = source.lines(f"SELECT o, n FROM ({sql}) WHERE n > 0 ORDER BY n DESC, o")
    if len(offsets) < 2:
        return [ZONED] if any(o in OF_UTC for o, _ in offsets) else []
    few = ", ".join(f"{o or 'none'} ({n:,} times)" for o, n in offsets[:3])
    return [f"offsets from UTC are not read, and differ: {few}: one clock in the table"]


def _day_or_month(source: Source, column: Column) -> list[str]:
    """That every text which is a day as declared is one with day and month changed over too."""
    index = source.names.index(column.name)
    every = [None if form == ISO else form for form in (column.format, *column.more_formats)]
    if not any(twins := [day_and_month(form) if form else "" for form in every]):
        return []
    given, other = (
        source.moment(index, *every),
        source.moment(index, *(t or f for t, f in zip(twins, every, strict=True))),
    )
    sql = f"SELECT count({given}), count({other}) FILTER ({given} IS NOT NULL) FROM {source.relation}"
    read, both = source.lines(sql)[0]
    same = f"each of the {read:,} days is one as {listed([t for t in twins if t])} too"
    return [f"{same}: which comes first, the day or the month?"] if read and read == both else []
