"""What the numbers of a column may mean instead: per cents, days, cents. NOT private: for the operator's eyes."""

from __future__ import annotations

from mechanisms.public.drafts.column_facts import COMPACT
from mechanisms.public.schema.column import Column
from mechanisms.public.tables.encode import number_sql
from mechanisms.public.tables.scan import Source, literal
from pipeline.look.column_look import Seen

#: Numbers between these may be days, as 20240229 is.
FIRST_DAY, LAST_DAY = 19000101, 21001231
DAY = "%Y%m%d"
#: Whole numbers are cents where their median is so many times that of numbers with decimals, and either are so many.
CENTS, EITHER = (50, 200), 0.02


def per_cent(source: Source, column: Column) -> list[str]:
    """That some numbers have a per cent sign, which is taken out, and others have none."""
    if "%" not in column.strip or source.typed(index := source.names.index(column.name)):
        return []
    number, marked = number_sql(source, index, column), f"contains({source.text(index)}, '%')"
    with source.connect() as engine:
        sql = f"SELECT count({number}) FILTER ({marked}), count({number}) FILTER (NOT {marked}) FROM {source.relation}"
        signed, bare = engine.execute(sql).fetchall()[0]
    return [f"{bare:,} of {signed + bare:,} numbers have no %: are they per cent too?"] if signed and bare else []


def compact_days(source: Source, column: Column, seen: Seen) -> list[str]:
    """That all numbers are days, as 20240229 is: between them lie numbers that are none."""
    if seen.low is None or seen.high is None or not FIRST_DAY <= seen.low < seen.high <= LAST_DAY:
        return []
    index = source.names.index(column.name)
    gaps = ", ".join(map(literal, ("", *column.missing_texts)))
    number, day = number_sql(source, index, column), source.moment(index, DAY)
    with source.connect() as engine:
        sql = f"SELECT count({number}), count({day}) FROM {source.relation} WHERE {source.text(index)} NOT IN ({gaps})"
        numbers, days = engine.execute(sql).fetchall()[0]
    said = f"{days:,} of {numbers:,} numbers are days, and synthetic ones would often be none"
    return [f'{said}: kind: date, format: "{DAY}"'] if days > COMPACT * numbers else []


def mixed_units(source: Source, column: Column) -> list[str]:
    """That numbers without decimals are about a hundred times those with: cents beside euros."""
    if column.kind not in {"integer", "float"} or column.width is not None:
        return []
    if source.typed(index := source.names.index(column.name)):
        return []
    number = f"abs({number_sql(source, index, column)})"
    parted = f"regexp_matches({source.text(index)}, '[{column.decimal}][0-9]')"
    whole, parts = (f"FILTER ({number} > 0 AND {no} {parted})" for no in ("NOT", ""))
    sql = ", ".join(f"count({number}) {w}, quantile_cont({number}, 0.5) {w}" for w in (whole, parts))
    with source.connect() as engine:
        n, median, others, of_others = engine.execute(f"SELECT {sql} FROM {source.relation}").fetchall()[0]
    if min(n, others) <= EITHER * (n + others) or not CENTS[0] <= median / of_others <= CENTS[1]:
        return []
    how = f"{n:,} numbers without decimals are about {median / of_others:.0f} times the {others:,} with"
    return [f"{how}: two units, cents beside euros? One unit in the table"]
