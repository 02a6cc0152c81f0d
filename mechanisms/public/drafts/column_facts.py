"""What a scan sees of columns: counts of what their cells look like, and some of their texts. NOT private.

A draft looks so, and `check` under a schema. Many columns are looked at together: a query of its own for each would
take a table of 10,000 columns minutes.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date
from functools import cached_property
from typing import Any

import numpy as np

from mechanisms.public.drafts.seen import (
    CLOCK_STEPS,
    FEWEST_UNITS,
    STEPS,
    ColumnFacts,
    Moments,
    Numbers,
    few_units,
    follow_each_other,
    outermost,
    reached,
    without_noise,
)
from mechanisms.public.schema.column import Column
from mechanisms.public.schema.spellings import ISO
from mechanisms.public.tables.doubts import (
    TOTALS,
    cut_short,
    number_doubts,
    numbers_apart,
    short_years,
    totals,
)
from mechanisms.public.tables.listed_gaps import days_among_ranges
from mechanisms.public.tables.persons import addresses, persons_in_words
from mechanisms.public.tables.scan import INTEGERS, Source, literal
from mechanisms.public.tables.text_forms import CLOCK, DASHES, FAR_CODES, GAPS, SIGNS, NumberForm

#: Days that programs and forms write where there is none: the first ones of calendars, of Unix and of sheets, far ones.
DAYS_OF_GAPS = ("0001-01-01", "1899-12-30", "1900-01-01", "1901-01-01", "1970-01-01", "2099-12-31", "9999-12-31")
#: More distinct texts than this are not listed.
MAX_VALUES = 200
#: So many texts, with their counts, tell what the others look like.
SAMPLED = 1000
#: So many of these tell whether they are numbers at all.
DOUBTED = 200
#: Ids of groups: nearly all have so many rows at most; there are so many pairs of rows, at least so many times those of
#: amounts, and at most this share of them has one last digit.
FEW_EACH, NEARLY_ALL, FEWEST_PAIRS, OFTENER, EVENLY = 5, 0.9, 25, 4, 0.3
#: A column is mostly empty where at most this share of its cells has a value.
MOSTLY_EMPTY = 0.1
#: So many cells, and so many columns at most, are looked at together.
BLOCK_CELLS, BLOCK_COLUMNS = 4_000_000, 500
#: A day in digits alone, as 20240229; whole numbers are days where a larger share than this can be.
COMPACT_DAY = "(19|20)[0-9][0-9](0[1-9]|1[0-2])(0[1-9]|[12][0-9]|3[01])"
COMPACT = 0.95
#: How texts begin that may be days or times.
DATED = (
    f"^ *([A-Za-z]{{3}} )?[0-9]+[-/.][0-9]+[-/.]|^{CLOCK}|^{COMPACT_DAY}$"
    "|^ *(([A-Za-z]{3}, )?[0-9]+[- ][A-Za-z]{3,9}[- ]|[A-Za-z]{3,9} [0-9]+, )[0-9]{2}"
    "|^ *([01][0-9][/.]|[A-Za-z]{3,9} )(19|20)[0-9]{2} *$"
)

#: Which texts are sampled, as SQL: all, words among numbers, and what is not digits alone.
ALL, WORDS, NO_DIGITS = "true", "y IS NULL", "NOT regexp_matches(t, '^[0-9]+$')"


def looks(
    source: Source, engine: Any, unit: str | None = None, gaps: Mapping[str, Sequence[str]] | None = None
) -> Iterator[tuple[Look, int]]:
    """Each column of a table by its place, in order, with the look at it and others: as many together as is good.

    Args:
        engine: where what is seen is kept while it is asked.
        unit: the column that names a person; None: rows are counted.
        gaps: column → texts that a schema says mean missing; None: there is no schema, and the usual signs do.
    """
    ((rows,),) = engine.execute(f"SELECT count(*) FROM {source.relation}").fetchall()
    width = min(max(BLOCK_CELLS // max(int(rows), 1), 1), BLOCK_COLUMNS)
    for first in range(0, len(source.names), width):
        look = Look(source, engine, range(first, min(first + width, len(source.names))), unit, gaps)
        yield from ((look, index) for index in look.columns)


class Look:
    """Some neighbouring columns of a table, and what was seen of them: each scan looks at all that may need it.

    Args:
        columns: their places; `unit` and `gaps` are as of `looks`.
    """

    def __init__(
        self, source: Source, engine: Any, columns: range, unit: str | None, gaps: Mapping[str, Sequence[str]] | None
    ) -> None:
        self.source, self.columns, self._engine, self.unit = source, columns, engine, unit
        #: The distinct texts of all columns under one name, so that SQL over one column serves for all.
        self._cells = replace(source, relation="seen", names=("t",), types=("VARCHAR",))
        self._samples: dict[tuple[str, str, int], dict[int, dict[str, int]]] = {}
        self._moments: dict[tuple[str, ...], dict[int, Moments]] = {}
        self._numbers: dict[tuple[NumberForm, int | None], dict[int, Numbers]] = {}
        self._bare = [i for i in columns if not source.typed(i)]
        dated = [source.typed(i) and source.types[i] not in {*INTEGERS, "FLOAT", "DOUBLE"} for i in columns]
        typed = [source.moment(i, None) if may_be else "NULL" for i, may_be in zip(columns, dated, strict=True)]
        times = map("CAST({} AS TIMESTAMP)".format, typed)
        parts = {"i": map(str, columns), "c0": map(source.text, columns), "m": times}
        lists = ", ".join(f"unnest([{', '.join(part)}]) AS {name}" for name, part in parts.items())
        who = "NULL" if unit is None else who_sql(source, source.index(unit, where="privacy.unit"))
        self._units = "count(*)" if unit is None else f"count(DISTINCT {who})"
        units = "count(*)" if unit is None else "count(DISTINCT who)"
        listed = ", ".join(literal(f"{i} {t}") for i in columns for t in (gaps or {}).get(source.names[i], ()))
        declared = "trim(c0) <> ''" + (f" AND i || ' ' || trim(c0) NOT IN ({listed})" if listed else "")
        held = filled("c0") if gaps is None else declared
        engine.execute(
            f"""CREATE OR REPLACE TEMP TABLE seen AS SELECT i, c0, c0 AS t, {self._cells.number(0)} AS y, m,
            count(*) AS n, {units} AS units, {held} AS ok
            FROM (SELECT {lists}, {who} AS who FROM {source.relation}) GROUP BY i, c0, m"""
        )
        if gaps is None:  # + and -, as of blood groups and tests
            dashes, alike = map(literal, DASHES), f"bool_and(regexp_full_match(trim(t), {literal(SIGNS.pattern)}))"
            signs = f"SELECT i FROM seen WHERE ok GROUP BY i HAVING {alike}"
            engine.execute(f"UPDATE seen SET ok = true WHERE trim(t) IN ({', '.join(dashes)}) AND i IN ({signs})")

    @cached_property
    def facts(self) -> dict[int, ColumnFacts]:
        """What one scan saw of each column."""
        day = f"CASE WHEN {_among(self._bare)} THEN regexp_matches(t, '{DATED}') ELSE false END"
        blank = "CASE WHEN ok THEN NULL ELSE trim(t) = '' END"
        rows = self._engine.execute(
            f"""SELECT i, sum(n), sum(n) FILTER (ok), list(DISTINCT CASE WHEN NOT {blank} THEN t END),
            coalesce(bool_or({blank}), false), count(*) FILTER (ok),
            sum(n) FILTER (ok AND regexp_matches(t, '^-?0[0-9]')),
            sum(n) FILTER (ok AND {day}),
            sum(n) FILTER (ok AND d), min(length(t)) FILTER (ok AND d), max(length(t)) FILTER (ok AND d),
            sum(n) FILTER (ok AND regexp_matches(t, '\\S(\\s+\\S+){{3}}') AND regexp_matches(t, '\\s[a-z0-9]'))
            FROM (SELECT *, regexp_matches(t, '^[0-9]+$') AS d FROM seen) GROUP BY i"""
        ).fetchall()
        plain = self._numbers_of("i IN (SELECT i FROM seen WHERE y IS NOT NULL)", "y", ".")
        facts = dict.fromkeys(self.columns, ColumnFacts())
        for i, rows_seen, filled, gaps, empty, distinct, *counts in rows:
            padded, dated, digits, shortest, longest, worded = (int(c or 0) for c in counts)
            gap_texts = tuple(sorted(g for g in gaps if g is not None))
            seen = int(rows_seen), int(filled or 0), gap_texts, bool(empty), int(distinct)
            facts[i] = ColumnFacts(*seen, padded, dated, digits, shortest, longest, worded, plain.get(i, Numbers()))
        return facts

    @cached_property
    def _odd(self) -> set[int]:
        """The columns that are not numbers as they stand."""
        return {i for i, f in self.facts.items() if f.padded or f.plain.count < f.filled}

    def numbers(self, index: int, reading: NumberForm, width: int | None = None) -> Numbers:
        """The numbers of a column, read so; of a width its codes of so many digits."""
        if width is None and (reading.plain or self.source.typed(index)):
            return self.facts[index].plain
        cached = self._numbers.setdefault((reading, width), {})
        if index not in cached:
            sql = self._cells.number(0, reading) if width is None else self._cells.digits(0, width)
            cached |= self._numbers_of(_among(self._odd | {index}), sql, reading.decimal)
        return cached.get(index, Numbers())

    def under(self, index: int, column: Column) -> ColumnFacts:
        """What was seen of a column, with its numbers as its schema reads them; of other kinds none."""
        numbers, reading = column.kind in {"integer", "float"}, NumberForm(column.strip, column.decimal)
        return replace(self.facts[index], plain=self.numbers(index, reading, column.width) if numbers else Numbers())

    def _numbers_of(self, columns: str, number: str, decimal: str) -> dict[int, Numbers]:
        """The numbers that SQL over a cell makes of some columns, as SQL tells these."""
        codes = ", ".join(f"{c}::DOUBLE" for c in FAR_CODES)
        read = f"(SELECT i, t, n, units, {number} AS x FROM seen WHERE ok AND {columns})"
        cells = f"(SELECT * REPLACE ({without_noise('t', 'x', decimal)} AS t) FROM {read})"
        each = f"(SELECT i, x, {'max(units)' if self.unit else 'sum(n)'} AS u, sum(n) AS m FROM {cells} GROUP BY i, x)"
        codes_seen = self._by_column(f"SELECT i, x, u FROM {each} WHERE x IN ({codes}) ORDER BY i, x", float)
        most = f"SELECT i, max_by(x, (m, -x)), max(m) FROM {each} WHERE x NOT IN ({codes}) AND u >= {FEWEST_UNITS}"
        often = self._by_column(f"{most} GROUP BY i", float)
        rank = "3 * k + CASE WHEN s >= 5 * pow(10, k) THEN 2 WHEN s >= 2 * pow(10, k) THEN 1 ELSE 0 END"
        sizes = f"SELECT *, abs(x) AS s, floor(log10(s))::INTEGER AS k FROM {cells} WHERE x <> 0 AND x NOT IN ({codes})"
        steps = self._by_column(f"SELECT i, {rank} AS r, sum(n) FROM ({sizes}) GROUP BY i, r", int)
        behind = f"regexp_extract(t, '\\{decimal}([0-9]+)[^0-9]*$', 1)"
        power = r"coalesce(TRY_CAST(regexp_extract(t, '\de([+-]?\d+)\D*$', 1, 'i') AS INTEGER), 0)"
        places = rf"greatest(length(regexp_extract(t, '\{decimal}(\d+)(e[+-]?\d+)?\D*$', 1, 'i')) - {power}, 0)"
        rows = self._engine.execute(
            f"""SELECT i, coalesce(sum(n) FILTER (x IS NOT NULL), 0), coalesce(sum(n) FILTER (x = round(x)), 0),
            coalesce(max({places}), 0),
            coalesce(min({places}) FILTER (x IS NOT NULL) = max({places}) AND bool_or({behind} LIKE '%0'), false),
            coalesce(sum(n) FILTER (x = 0), 0),
            min(x) FILTER (x NOT IN ({codes})), max(x) FILTER (x NOT IN ({codes})),
            {outermost("x", f"x NOT IN ({codes})")} FROM {cells} GROUP BY i"""
        ).fetchall()
        near = [f"sum(n) FILTER (abs(x / {s}) < 1e12 AND abs(x / {s} - round(x / {s})) < 1e-6)" for s in STEPS]
        whole = f"SELECT i, sum(n), {', '.join(near)} FROM {cells} WHERE x <> 0 AND x NOT IN ({codes}) GROUP BY i"
        stepped = self._engine.execute(whole).fetchall()
        of_steps = {i: dict(zip((0, *STEPS), (int(n or 0) for n in every), strict=True)) for i, *every in stepped}
        return {
            i: Numbers(
                a, b, (reached(p), reached(q)), codes_seen.get(i, {}), int(c), int(w), int(d),
                fixed and i in self._bare, int(zeros), steps.get(i, {}), of_steps.get(i, {}), often.get(i, {}),
            )
            for i, c, w, d, fixed, zeros, a, b, p, q in rows
        }  # fmt: skip

    def moments(self, index: int, forms: Sequence[str]) -> Moments:
        """The days and times of a column, each read by the first form that fits."""
        by_column = self._moments.setdefault(tuple(forms), {})
        if index not in by_column:
            dated = {i for i, f in self.facts.items() if f.dated or self.source.typed(i)} | {index}
            together = [self._moment(forms[: k + 1]) for k in range(len(forms))]
            counts = ", ".join(f"coalesce(sum(n) FILTER ({m} IS NOT NULL), 0)" for m in together)
            clocks = ", ".join(f"coalesce(sum(n) FILTER (epoch(w) % {s} = 0), 0)" for s in CLOCK_STEPS)
            far = f"CAST(d AS VARCHAR) IN ({', '.join(map(literal, DAYS_OF_GAPS))})"
            rows = self._engine.execute(
                f"""SELECT i, {counts}, min(d) FILTER (NOT {far}), max(d) FILTER (NOT {far}),
                coalesce(bool_and(w = d), true), {outermost("d", f"NOT {far}")}, [{clocks}],
                list((d, units)) FILTER ({far})
                FROM (SELECT *, {together[-1]} AS w, CAST(w AS DATE) AS d FROM seen WHERE {_among(dated)}) GROUP BY i"""
            ).fetchall()
            for i, *read, low, high, days, least, most, of_clocks, codes in rows:
                often: Counter[date] = Counter()
                for day, n in codes or ():
                    often[day] = max(often[day], int(n))
                ends = low, high, (reached(least), reached(most)), often
                by_column[i] = Moments(*ends, tuple(map(int, read)), bool(days), tuple(of_clocks))
        return by_column[index]

    def sample(self, index: int, which: str = ALL, most: int = SAMPLED) -> dict[str, int]:
        """The most frequent values, equally frequent ones in the order of a hash, with how often each occurs.

        Args:
            which: SQL over `t`, the text, and `y`, the number that it is or NULL.
        """
        return self._most_frequent(index, "t", which, most, "hash(s)")

    def trimmed(self, index: int) -> dict[str, int]:
        """The same of all, without blanks around them."""
        return self._most_frequent(index, self._bare_text, ALL, SAMPLED, "hash(s)")

    @cached_property
    def _bare_text(self) -> str:
        """SQL for a text without blanks around it: where none has any, what was sampled already."""
        return "trim(t)" if self._engine.execute("SELECT 1 FROM seen WHERE t <> trim(t) LIMIT 1").fetchall() else "t"

    def _most_frequent(self, index: int, of: str, which: str, most: int, tie: str) -> dict[str, int]:
        """What SQL makes of the texts, the most frequent first, with how often each occurs; of like ones by a tie."""
        samples = self._samples.setdefault((of, which, most), {})
        if index not in samples:
            columns = set(self.columns) if which == ALL else self._odd | {index}
            samples |= {i: {} for i in columns} | self._by_column(
                f"""SELECT i, e.s, -e.n FROM (SELECT i, unnest(min({{'n': -n, 'tie': {tie}, 's': s}}, {most})) AS e
                FROM (SELECT i, {of} AS s, sum(n) AS n FROM seen WHERE ok AND {_among(columns)} AND {which}
                GROUP BY i, s) GROUP BY i) ORDER BY i, e"""
            )
        return samples[index]

    def unread(self, index: int, forms: Sequence[str]) -> dict[str, int]:
        """The most frequent texts that no form reads as a day or time."""
        return self.sample(index, f"{self._moment(forms)} IS NULL")

    def _moment(self, forms: Sequence[str]) -> str:
        """SQL for a cell as the day or time that the first of the forms reads; none beyond the years 1 to 9999."""
        every = (self._cells.moment(0, None if form == ISO else form) for form in forms)
        read = f"coalesce(m, {', '.join(every)})"
        return f"CASE WHEN {read} >= TIMESTAMP '0001-01-01' AND {read} < TIMESTAMP '10000-01-01' THEN {read} END"

    @cached_property
    def _totals(self) -> dict[int, dict[str, int]]:
        which = f"{_among(self._bare)} AND regexp_full_match(lower(trim(t)), {literal(TOTALS)})"
        return self._by_column(f"SELECT i, t, sum(n) FROM seen WHERE {which} GROUP BY i, t ORDER BY i, t")

    def _by_column(self, sql: str, of: Callable[[Any], Any] = str) -> dict[int, dict[Any, int]]:
        """Column → what stands in the second place of the lines of a query's result → the number in the third."""
        remarks: dict[int, dict[Any, int]] = {}
        for i, key, n in self._engine.execute(sql).fetchall():
            remarks.setdefault(i, {})[of(key)] = int(n)
        return remarks

    def doubts(self, index: int, kind: str | None, reading: NumberForm) -> list[str]:
        """What a column's texts may mean instead, as sentences.

        Args:
            kind: as which it is drafted; None: it is left out.
            reading: how its numbers are drafted to be read.
        """
        texts, named = self.sample(index), self.source.names[index] == self.unit
        often = dict(itertools.islice(texts.items(), DOUBTED))
        remarks = number_doubts(often, self.source.names[index]) if kind in {None, "integer", "float", "zip"} else []
        remarks += numbers_apart(texts, reading) if not remarks and kind in {"integer", "float"} else []
        remarks += short_years(often) + days_among_ranges(often) if kind == "categorical" else []
        remarks += self.facts[index].of_their_own if not remarks and kind in {"integer", "zip", "float"} else []
        if kind in {"integer", "float"}:
            remarks += [f"{few_units(self.unit)} {few}" for few in [self.numbers(index, reading).few_beyond()] if few]
        where = self.source.names[index], texts, "frequent", "where a schema lists or discovers them"
        names = persons_in_words(*where) if kind in {"categorical", "flag"} else ""
        remarks += [f"{names}: leave it out where they name persons"] if names else []
        remarks += cut_short(texts, self.source.names[index], names=named)
        return remarks + self.of_totals(index)

    def of_totals(self, index: int) -> list[str]:
        """That some rows are sums of others, as a sentence."""
        return [words for words in [totals(self._totals.get(index, {}))] if words]

    def shapes(self, index: int) -> dict[str, int]:
        """What the most frequent values look like as numbers, as of `Source.shape`, with how often each occurs.

        All values of a column of numbers have few shapes: no text that contradicts the others is overlooked.
        """
        return self._most_frequent(index, self._cells.shape(0), ALL, SAMPLED, "0")

    @cached_property
    def _rare(self) -> set[tuple[int, str]]:
        """Texts of many rows, but of few units."""
        few = f"HAVING sum(n) >= {FEWEST_UNITS} AND sum(units) < {FEWEST_UNITS}"
        rows = self._engine.execute(f"SELECT i, t FROM seen WHERE ok GROUP BY i, t {few}").fetchall()
        return {(int(i), str(text)) for i, text in rows}

    def listable(self, index: int, texts: Mapping[str, int]) -> dict[str, int]:
        """Those of the texts that so many units hold that a draft may tell them, and that name nobody's address.

        A text with a zero byte is none: no schema can list it.

        Args:
            texts: each with how many rows hold it.
        """
        held = {t: n for t, n in texts.items() if n >= FEWEST_UNITS and (index, t) not in self._rare and "\0" not in t}
        return {t: n for t, n in held.items() if not addresses([t], self.source.names[index], texts)}

    def of_few(self, index: int) -> bool:
        """Whether the units that have a value of a mostly empty column are so few that bounds tell of them."""
        if self.facts[index].filled > MOSTLY_EMPTY * self.facts[index].rows:
            return False
        held = f"FROM {self.source.relation} WHERE {filled(self.source.text(index))}"
        ((units,),) = self._engine.execute(f"SELECT {self._units} {held}").fetchall()
        return int(units) < FEWEST_UNITS

    def begun(self, index: int, length: int) -> dict[str, int]:
        """How the texts begin, in so many characters, where enough units hold that; and in how many rows."""
        text = self.source.text(index)
        sql = (
            f"SELECT left(trim({text}), {length}) AS b, count(*) AS n FROM {self.source.relation} WHERE {filled(text)}"
        )
        held = f"n >= {FEWEST_UNITS} AND {self._units} >= {FEWEST_UNITS}"
        rows = self._engine.execute(f"{sql} GROUP BY b HAVING {held} ORDER BY n DESC, b LIMIT {MAX_VALUES}").fetchall()
        return {str(text): int(n) for text, n in rows if "\0" not in str(text)}

    def alike(self, index: int) -> tuple[int, int]:
        """How many values stand in two rows or more, and how many pairs of rows are alike."""
        each = f"SELECT sum(n) AS n FROM seen WHERE i = {index} AND ok GROUP BY t HAVING sum(n) > 1"
        ((count, pairs),) = self._engine.execute(f"SELECT count(*), sum(n * (n - 1) / 2) FROM ({each})").fetchall()
        return int(count), int(pairs or 0)

    @cached_property
    def grouped(self) -> list[str]:
        """Of these columns those of `follow_each_other`."""
        return follow_each_other(self.source, {self.source.names[i]: facts for i, facts in self.facts.items()})

    def of_groups(self, index: int) -> bool:
        """Whether whole numbers have few rows each, and far more pairs of rows than amounts that lie as far apart.

        Looked at are the second and the third quarter of the rows, in which amounts lie about evenly.
        """
        sql = f"SELECT {self.source.number(index)} AS x, count(*) AS n FROM {self.source.relation} GROUP BY x"
        x, n = self._engine.execute(f"{sql} HAVING x IS NOT NULL ORDER BY x").fetchnumpy().values()
        quarter = np.minimum(4 * np.cumsum(n) // n.sum(), 3)
        for own in (quarter == 1, quarter == 2):
            pairs = (n * (n - 1) / 2)[own]
            chance = n[own].sum() ** 2 / 2 / (np.ptp(x[own]) + 1) * np.diff(x[own]).min() if own.sum() > 1 else np.inf
            of_digit = np.bincount((x[own] % 10).astype(int), pairs).max(initial=0)
            enough = pairs.sum() >= max(OFTENER * chance, FEWEST_PAIRS) and of_digit <= EVENLY * pairs.sum()
            if not enough or (n[own] <= FEW_EACH).mean() < NEARLY_ALL:
                return False
        return True

    def beyond(self, index: int, texts: Sequence[str]) -> int:
        """How many distinct texts of a column are none of these, nor empty."""
        listed = ", ".join(map(literal, texts))
        sql = f"SELECT count(DISTINCT t) FROM seen WHERE i = {index} AND t NOT IN ({listed}) AND trim(t) <> ''"
        ((count,),) = self._engine.execute(sql).fetchall()
        return int(count)


def _among(columns: Sequence[int] | set[int]) -> str:
    return f"i IN ({', '.join(map(str, columns)) or 'NULL'})"


def who_sql(source: Source, index: int) -> str:
    """SQL for whom a row belongs to, about as a run reads ids; NULL where there is none."""
    text = f"lower(trim({source.text(index)}))"
    plain = f"regexp_replace(regexp_replace({text}, '^[+]?0+([0-9])', '\\1'), '[.]0+$', '')"
    return f"CASE WHEN {filled(source.text(index))} THEN hash({plain}) END"


def filled(text: str, gaps: Sequence[str] = ()) -> str:
    """SQL for whether a cell holds a value, which is none of these gaps either."""
    return f"({text} NOT IN ({', '.join(map(literal, (*GAPS, *gaps)))}) AND trim({text}) <> '')"
