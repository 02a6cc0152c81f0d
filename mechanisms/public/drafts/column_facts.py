"""What scans of a column see: counts of what its cells look like, and some of its texts. NOT private."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from mechanisms.public.schema.readings import ISO
from mechanisms.public.tables.scan import Source, literal
from mechanisms.public.tables.text_forms import CODES_OF_GAPS, GAPS, Reading

#: More distinct texts than this are not listed.
MAX_VALUES = 200
#: So many texts, with their counts, tell what the others look like.
SAMPLED = 1000
#: A number is taken for a gap where it stands at least so often, apart from all others.
OFTEN = 3


@dataclass(frozen=True)
class Numbers:
    """The numbers of a column, as one reading sees them.

    Attributes:
        count, wholes: cells that are numbers, and whole numbers.
        low, high: the least and the largest one, but for codes of gaps.
        decimals: the most decimals.
        codes: numbers that often stand for gaps → how often each occurs.
    """

    count: int
    wholes: int
    low: float | None
    high: float | None
    decimals: int
    codes: dict[float, int] = field(default_factory=dict)

    def gap_codes(self) -> tuple[float, ...]:
        """Codes of gaps that occur often, and lie apart from all other numbers."""
        if self.low is None or self.high is None:
            return ()
        low, high = self.low, self.high
        apart = {c: n for c, n in self.codes.items() if c < min(0, low) or c > max(1.5 * high, high + 1)}
        return tuple(sorted(c for c, n in apart.items() if n >= OFTEN))

    def bounds(self) -> tuple[float, float] | None:
        """The least and the largest number that is no gap."""
        values = [x for x in (self.low, self.high) if x is not None]
        values += [c for c in self.codes if c not in self.gap_codes()]
        return (min(values), max(values)) if values else None


@dataclass(frozen=True)
class Facts:
    """What one scan saw of a column.

    Attributes:
        rows, filled: cells, and cells with a value.
        gaps: listed texts of missing values that occur.
        empty: whether empty cells occur.
        distinct: about how many distinct values.
        padded, dated: cells that are numbers with leading zeros, or begin like dates.
        shortest, longest: characters of values that are digits alone; `digits` is how many of these there are.
        plain: its numbers, read as they are.
    """

    rows: int
    filled: int
    gaps: tuple[str, ...]
    empty: bool
    distinct: int
    padded: int
    dated: int
    digits: int
    shortest: int
    longest: int
    plain: Numbers

    @property
    def missing(self) -> list[str] | bool:
        """What the column's `missing` says, if nothing else means so."""
        return list(self.gaps) if self.gaps else self.empty


def column_facts(source: Source, engine: Any, index: int) -> Facts:
    """One scan of a column."""
    row = engine.execute(
        f"""SELECT count(*), count(*) FILTER (ok), list(DISTINCT t) FILTER (NOT ok AND trim(t) <> ''),
        coalesce(bool_or(trim(t) = ''), false), approx_count_distinct(t) FILTER (ok),
        count(*) FILTER (ok AND regexp_matches(t, '^-?0[0-9]')),
        count(*) FILTER (ok AND regexp_matches(t, '^ *[0-9]+[-/.][0-9]+[-/.]')),
        count(*) FILTER (ok AND d), coalesce(min(length(t)) FILTER (ok AND d), 0),
        coalesce(max(length(t)) FILTER (ok AND d), 0)
        FROM (SELECT t, {_filled("t")} AS ok, regexp_matches(t, '^[0-9]+$') AS d
              FROM (SELECT {source.text(index)} AS t FROM {source.relation}))"""
    ).fetchall()[0]
    plain = numbers(source, engine, index, Reading())
    rows, filled, gaps, empty, distinct, padded, dated, digits, shortest, longest = row
    gaps = tuple(sorted(gaps or ()))
    return Facts(rows, filled, gaps, empty, distinct, padded, dated, digits, shortest, longest, plain)


def _filled(text: str) -> str:
    """SQL for whether a cell holds a value."""
    return f"({text} NOT IN ({', '.join(map(literal, GAPS))}) AND trim({text}) <> '')"


def numbers(source: Source, engine: Any, index: int, reading: Reading) -> Numbers:
    """The numbers of a column, read so."""
    codes = ", ".join(f"{c}::DOUBLE" for c in CODES_OF_GAPS)
    number = source.number(index, strip=reading.strip, decimal=reading.decimal)
    row = engine.execute(
        f"""SELECT count(x), count(*) FILTER (x = round(x)),
        min(x) FILTER (x NOT IN ({codes})), max(x) FILTER (x NOT IN ({codes})),
        coalesce(max(length(regexp_extract(t, '\\{reading.decimal}([0-9]+)[^0-9]*$', 1))), 0),
        histogram(x) FILTER (x IN ({codes}))
        FROM (SELECT t, CASE WHEN isfinite(y) THEN y END AS x FROM (
              SELECT {source.text(index)} AS t, {number} AS y
              FROM {source.relation}) WHERE {_filled("t")})"""
    ).fetchall()[0]
    count, wholes, low, high, decimals, found = row
    return Numbers(count, wholes, low, high, decimals, dict(found or {}))


def moments(source: Source, engine: Any, index: int, forms: Sequence[str]) -> tuple[list[int], Any, Any, bool]:
    """Cells that the first form reads, the first two, …; the first and the last day; whether all are whole days."""
    every = [source.moment(index, None if form == ISO else form) for form in forms]
    together = [f"coalesce({', '.join([*every[: k + 1], 'NULL'])})" for k in range(len(every))]
    counts = ", ".join(f"count({m})" for m in together)
    *read, low, high, days = engine.execute(
        f"""SELECT {counts}, CAST(min(m) AS DATE), CAST(max(m) AS DATE), coalesce(bool_and(m = CAST(m AS DATE)), true)
        FROM (SELECT *, {together[-1]} AS m FROM {source.relation})"""
    ).fetchall()[0]
    return [int(n) for n in read], low, high, bool(days)


def sample(source: Source, engine: Any, index: int, where: str = "true", most: int = SAMPLED) -> dict[str, int]:
    """The most frequent values, equally frequent ones in the order of a hash, with how often each occurs.

    Args:
        where: SQL over `t`, the text, and `x`, the number that it is or NULL.
    """
    rows = engine.execute(
        f"""SELECT t, count(*) AS n FROM (SELECT t, TRY_CAST(t AS DOUBLE) AS x FROM (
            SELECT {source.text(index)} AS t FROM {source.relation})) WHERE {_filled("t")} AND ({where})
        GROUP BY t ORDER BY n DESC, hash(t), t LIMIT {most}"""
    ).fetchall()
    return {str(t): int(n) for t, n in rows}


def distinct_texts(source: Source, engine: Any, index: int) -> list[str]:
    """The values in order, at most one more than are listed."""
    rows = engine.execute(
        f"""SELECT DISTINCT t FROM (SELECT {source.text(index)} AS t FROM {source.relation})
        WHERE {_filled("t")} ORDER BY t LIMIT {MAX_VALUES + 1}"""
    ).fetchall()
    return [str(row[0]) for row in rows]
