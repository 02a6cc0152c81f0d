"""What the days and times of a column may mean instead. NOT private: for the operator's eyes."""

from __future__ import annotations

from datetime import date

from mechanisms.public.drafts.column_facts import OFTEN
from mechanisms.public.schema.column import DATE_KINDS, Column
from mechanisms.public.schema.readings import ISO
from mechanisms.public.tables.encode import moment_sql
from mechanisms.public.tables.scan import UTC, UTC_NS, Source, literal
from mechanisms.public.tables.text_forms import DAYS_OF_GAPS, day_and_month
from pipeline.look.column_look import listed

#: One of them, or an end apart from so many days, is asked about where so many times the rows of a mean day hold it.
FEWEST_DAYS, MUCH_MORE = 20, 10
#: Two digits of a year are of 1969 to 2068.
LAST_YEAR = 2068


def dates_read_wrongly(source: Source, column: Column) -> list[str]:
    """In which way the days or times of a column may be others than it means."""
    if column.kind not in DATE_KINDS:
        return []
    warnings = _days_of_gaps(source, column)
    if source.types[index := source.names.index(column.name)] in {UTC, UTC_NS}:
        why = "are hours and days of another place meant? Write its clock, without a zone, in the table"
        warnings.append(f"times with a zone are read as UTC's clock shows them: {why}")
    if source.typed(index):
        return warnings
    return warnings + _day_or_month(source, column) + _short_years(source, column) + _clocks(source, column)


def _days_of_gaps(source: Source, column: Column) -> list[str]:
    """1900-01-01, or an end that lies half the range of the rest away, where many rows hold it; both: a few rows do."""
    index = source.names.index(column.name)
    text, gaps = source.text(index), ", ".join(map(literal, ("", *column.missing_texts)))
    known = ", ".join(map(literal, DAYS_OF_GAPS))
    cells = f"SELECT {text} AS t, CAST({moment_sql(source, index, column)} AS DATE) AS d FROM {source.relation}"
    days = f"SELECT d, count(*) AS n, min(t) AS t FROM ({cells} WHERE {text} NOT IN ({gaps})) GROUP BY d"
    ends = "SELECT avg(n) AS mean, count(*) AS k, min(d, 2) AS a, max(d, 2) AS z FROM days WHERE d IS NOT NULL"
    first, last = "d = a[1] AND 2 * (a[2] - d) >= z[1] - a[2]", "d = z[1] AND 2 * (d - z[2]) >= z[2] - a[1]"
    told, apart, many = f"CAST(d AS VARCHAR) IN ({known})", f"({first} OR {last})", f"n >= {MUCH_MORE} * mean"
    asked = f"({told} AND ({apart} OR {many})) OR (k >= {FEWEST_DAYS} AND {apart} AND {many})"
    with source.connect() as engine:
        sql = f"WITH days AS ({days}) SELECT t, n FROM days, ({ends}) WHERE n >= {OFTEN} AND ({asked}) ORDER BY t"
        found = engine.execute(sql).fetchall()
    if not found:
        return []
    few = ", ".join(f"{t} ({n:,} times)" for t, n in found)
    return [f"{few}: a gap? missing: {listed([*column.missing_texts, *(t for t, _ in found)])}"]


def _short_years(source: Source, column: Column) -> list[str]:
    """Days of years to come, where years have two digits: births of 1931 as 2031."""
    if not any("%y" in form for form in (column.format or "", *column.more_formats)):
        return []
    index, this = source.names.index(column.name), date.today().year
    year, text = f"year({moment_sql(source, index, column)})", source.text(index)
    short = f"NOT contains({text}, CAST({year} AS VARCHAR))"
    with source.connect() as engine:
        sql = f"SELECT count(*), count(*) FILTER ({year} > {this}) FROM {source.relation} WHERE {short}"
        read, later = engine.execute(sql).fetchall()[0]
    said = f"{later:,} of {read:,} days lie after {this}: years of two digits are read as 1969 to {LAST_YEAR}"
    return [f"{said}; are they a hundred years too late? Years of four digits in the table"] if later else []


def _clocks(source: Source, column: Column) -> list[str]:
    """Times with several offsets from UTC, which are not read: 10:00Z and 10:00+02:00 are both 10:00."""
    if column.kind != "datetime" or ISO not in {column.format or ISO, *column.more_formats}:
        return []
    index = source.names.index(column.name)
    offset = f"regexp_extract({source.text(index)}, ':[0-9.]+ ?(Z|[-+][0-9][0-9:]*)? *$', 1)"
    with source.connect() as engine:
        sql = f"SELECT {offset} AS o, count({moment_sql(source, index, column)}) AS n FROM {source.relation} GROUP BY o"
        found = engine.execute(f"SELECT o, n FROM ({sql}) WHERE n > 0 ORDER BY n DESC, o").fetchall()
    if len(found) < 2:
        return []
    few = ", ".join(f"{o or 'none'} ({n:,} times)" for o, n in found[:3])
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
    with source.connect() as engine:
        read, both = engine.execute(sql).fetchall()[0]
    same = f"each of the {read:,} days is one as {listed([t for t in twins if t])} too"
    return [f"{same}: which comes first, the day or the month?"] if read and read == both else []
