"""A commented draft of a schema, guessed from a table; it looked at the data, so a person must confirm it."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import yaml

from mechanisms.public.schema.hierarchy import Hierarchy
from mechanisms.public.schema.hierarchy_fields import hierarchy_fields
from mechanisms.public.schema.places import Places, place_fields
from mechanisms.public.schema.table_schema import dump_yaml
from mechanisms.public.tables.scan import Source, literal

#: More distinct texts than this are not listed; the column is left out.
MAX_VALUES = 200
#: Texts that often stand for a missing value.
GAPS = ("?", "NA", "N/A", "n/a", "NULL", "null", "None", "nan", "NaN", "<NA>", "NaT")
#: Numbers that often stand for a missing value, where they are the least or the largest one.
CODES_OF_GAPS = (-9, -99, -999, -9999, 99, 999, 9999, 99999, 999999)
#: The share of words in a column of numbers up to which they are taken for gaps.
FEW_WORDS = 0.2
FORMATS = (
    None,
    "%m/%d/%Y",
    "%m/%d/%Y %H:%M:%S",
    "%m/%d/%Y %H:%M",
    "%m/%d/%Y %I:%M:%S %p",
    "%d/%m/%Y",
    "%d/%m/%Y %H:%M:%S",
    "%d/%m/%Y %H:%M",
    "%d.%m.%Y",
    "%d.%m.%Y %H:%M:%S",
    "%d.%m.%Y %H:%M",
)
NOTICE = """\
# DRAFT, guessed by looking at the data: NOT private. Values, bounds and gaps below were read off rows of people.
# A release made with it says that it is not private, until a person has checked it and set confirmed_public: true.
# Check each column against what is publicly known (a codebook, a form, the law), never against this table:
#   - values: is this the public list? Values that only this table shows betray people; `other: Other` takes the rest.
#   - min and max: replace them by generous public bounds; values outside are clipped.
#   - bins: as coarse as the question allows; fewer cells, less noise.
#   - missing: may the column be empty at all? Which texts mean so?
#   - source: where the lists and bounds come from once you have checked them (a codebook, a form, a law).
#   - leave_out: free text and ids; the column that names the unit of privacy need not be released.
"""


@dataclass(frozen=True)
class Facts:
    """What one scan saw of a column.

    Attributes:
        filled: cells with a value.
        gaps: listed texts of missing values that occur.
        empty: whether empty cells occur.
        distinct: about how many distinct values.
        numbers, wholes, padded, dated: cells that are numbers, whole numbers, numbers with leading zeros, like dates.
        low, high: the least and the largest number.
        decimals: the most decimals.
    """

    filled: int
    gaps: tuple[str, ...]
    empty: bool
    distinct: int
    numbers: int
    wholes: int
    padded: int
    dated: int
    low: float | None
    high: float | None
    decimals: int


def draft_schema(
    source: Source,
    name: str,
    trees: Mapping[str, Hierarchy] | None = None,
    places: Mapping[str, Places] | None = None,
) -> str:
    """A schema in YAML, with the guess for each column and what a person must check as comments.

    Guarantee: none; the text holds values of rows. It carries `confirmed_public: false`.
    Args:
        name: the schema's name.
        trees: hierarchies of columns; their leaves are the values of the column.
        places: where those leaves lie on a map, where that is known.

    Raises:
        UserError: the table lacks a column that has a hierarchy.
    """
    trees = trees or {}
    for column in trees:
        source.index(column, where="cluster")
    parts: list[str] = []
    left_out: list[tuple[str, str]] = []
    with source.connect() as engine:
        engine.execute(f"CREATE TEMP TABLE seen AS SELECT * FROM {source.relation}")
        source = replace(source, relation="seen")
        for index, column in enumerate(source.names):
            tree = trees.get(column)
            fields, guess = _guess(source, engine, index) if tree is None else _listed(source, engine, index, tree)
            if fields is not None and column in (places or {}):
                fields |= place_fields((places or {})[column])
            if fields is None:
                left_out.append((column, guess))
            else:
                parts.append(_entry(column, fields, guess))
    if not parts:
        column, guess = left_out.pop(0)
        parts.append(_entry(column, {"kind": "categorical", "values": ["value"], "other": "Other"}, guess))
    head = yaml.safe_dump(
        {"name": name, "source": "a draft from the table itself", "confirmed_public": False}, sort_keys=False
    )
    text = f"{NOTICE}{head}columns:\n{''.join(parts)}"
    if left_out:
        text += "leave_out:\n"
        text += "".join(f"  - {json.dumps(column, ensure_ascii=False)}  # {why}\n" for column, why in left_out)
    return text


def _entry(column: str, fields: dict[str, Any], guess: str) -> str:
    return f"  # guess: {guess}\n{_indented(dump_yaml({column: fields}))}"


def _indented(text: str) -> str:
    return "".join(f"  {line}" for line in text.splitlines(keepends=True))


def _guess(source: Source, engine: Any, index: int) -> tuple[dict[str, Any] | None, str]:
    """The declaration of a column (None: leave it out), and the reason in words."""
    facts, words = _among_numbers(source, engine, index, _facts(source, engine, index))
    missing: Any = list(facts.gaps) if facts.gaps else facts.empty
    gap = {"missing": missing}
    if not facts.filled:
        return {"kind": "categorical", "values": ["value"], **gap}, "empty throughout; nothing is known of its values"
    if facts.numbers == facts.filled and not facts.padded and facts.low is not None and facts.high is not None:
        guess = _numbers(facts, facts.low, facts.high)
        if guess is not None:
            return guess[0] | gap, guess[1] + words
    moments = _moments(source, engine, index, facts)
    if moments is not None:
        return moments[0] | gap, moments[1]
    if facts.distinct > 2 * MAX_VALUES:
        return None, f"about {facts.distinct:,} distinct texts: free text, or an id"
    values = _distinct(source, engine, index)
    if len(values) > MAX_VALUES:
        return None, f"{len(values)} or more distinct texts"
    if len(values) == 1 and facts.empty and not facts.gaps:
        return {"kind": "flag", "true": values, "false": [""], "missing": False}, "one text or empty: a flag"
    return {"kind": "categorical", "values": values, **gap}, f"{len(values)} distinct texts; is the list complete?"


def _among_numbers(source: Source, engine: Any, index: int, facts: Facts) -> tuple[Facts, str]:
    """The facts with up to three words among many numbers taken for gaps, and the question whether they are."""
    odd = facts.filled - facts.numbers
    if not 0 < odd <= FEW_WORDS * facts.filled or facts.distinct <= 20:
        return facts, ""
    gaps = ", ".join(map(literal, GAPS))
    rows = engine.execute(
        f"""SELECT DISTINCT t FROM (SELECT {source.text(index)} AS t FROM {source.relation})
        WHERE t NOT IN ({gaps}) AND trim(t) <> '' AND TRY_CAST(t AS DOUBLE) IS NULL ORDER BY t LIMIT 4"""
    ).fetchall()
    words = [str(t) for (t,) in rows]
    if not words or len(words) > 3 or any(c.isdigit() for word in words for c in word):
        return facts, ""
    as_numbers = replace(facts, filled=facts.numbers, gaps=tuple(sorted({*facts.gaps, *words})))
    return as_numbers, f"; do {', '.join(map(repr, words))} mean a gap?"


def _listed(source: Source, engine: Any, index: int, tree: Hierarchy) -> tuple[dict[str, Any], str]:
    """The declaration of a column whose values are the leaves of a hierarchy."""
    facts = _facts(source, engine, index)
    gaps = [t for t in facts.gaps if t not in tree.leaves]
    values = ", ".join(map(literal, [*tree.leaves, *gaps]))
    ((beyond,),) = engine.execute(
        f"""SELECT count(DISTINCT t) FILTER (t NOT IN ({values}) AND trim(t) <> '')
        FROM (SELECT {source.text(index)} AS t FROM {source.relation})"""
    ).fetchall()
    fields: dict[str, Any] = {"kind": "categorical", "values": list(tree.leaves), "missing": gaps or facts.empty}
    if "" in tree.leaves:
        fields["missing"] = gaps or False
    fields["hierarchy"] = hierarchy_fields(tree)
    if not beyond:
        return fields, f"the {len(tree.leaves)} values of the file with the hierarchy; is the list complete?"
    label = next(t for t in ("Other", "Other value", "Other value (not listed)") if t not in tree.leaves)
    guess = f"the {len(tree.leaves)} values of the file with the hierarchy; {beyond} more texts of the table are Other"
    return fields | {"other": label}, guess


def _facts(source: Source, engine: Any, index: int) -> Facts:
    text = f"({source.text(index)})"
    gaps = ", ".join(map(literal, GAPS))
    row = engine.execute(
        f"""SELECT count(*) FILTER (ok), list(DISTINCT t) FILTER (t IN ({gaps})),
        coalesce(bool_or(trim(t) = ''), false),
        approx_count_distinct(t) FILTER (ok), count(x) FILTER (ok AND isfinite(x)),
        count(*) FILTER (ok AND x = round(x)), count(*) FILTER (ok AND regexp_matches(t, '^-?0[0-9]')),
        count(*) FILTER (ok AND regexp_matches(t, '^ *[0-9]+[-/.][0-9]+[-/.]')),
        min(x) FILTER (isfinite(x)), max(x) FILTER (isfinite(x)),
        coalesce(max(length(regexp_extract(t, '\\.([0-9]+)$', 1))) FILTER (ok AND x IS NOT NULL), 0)
        FROM (SELECT t, TRY_CAST(t AS DOUBLE) AS x, t NOT IN ({gaps}) AND trim(t) <> '' AS ok
              FROM (SELECT {text} AS t FROM {source.relation}))"""
    ).fetchall()[0]
    return Facts(row[0], tuple(sorted(row[1] or ())), *row[2:])


def _numbers(facts: Facts, low: float, high: float) -> tuple[dict[str, Any], str] | None:
    if facts.wholes == facts.filled and abs(low) <= 2**53 and abs(high) <= 2**53:
        if facts.distinct <= 20 and high - low > 1000:
            return None  # a few far-flung codes: a list
        fields: dict[str, Any] = {"kind": "integer", "min": int(low), "max": int(high)}
        doubt = "".join(f"; is {int(x)} a value, or a gap?" for x in (low, high) if x in CODES_OF_GAPS)
        if high - low < 100:
            return fields, f"whole numbers, one code each; bounds are the least and the largest seen{doubt}"
        step = 10 ** int(math.log10(high - low) - 1)
        fields |= {"min": int(low // step * step), "max": int(-(-high // step) * step), "bins": {"count": 32}}
        return fields, f"whole numbers in 32 bins; bounds are the least and the largest seen, rounded outwards{doubt}"
    if low == high:
        low, high = math.floor(low), math.floor(low) + 1
    step = 10.0 ** math.floor(math.log10(high - low) - 1)
    fields = {"kind": "float", "min": math.floor(low / step) * step, "max": math.ceil(high / step) * step}
    fields |= {"bins": {"count": 20}, "decimals": min(facts.decimals, 9)}
    return fields, "numbers in 20 bins; bounds are the least and the largest seen, rounded outwards"


def _moments(source: Source, engine: Any, index: int, facts: Facts) -> tuple[dict[str, Any], str] | None:
    if facts.dated < facts.filled and not source.typed(index):
        return None
    for form in FORMATS:
        moment = source.moment(index, form)
        n, low, high, days = engine.execute(
            f"""SELECT count(m), CAST(min(m) AS DATE), CAST(max(m) AS DATE), bool_and(m = CAST(m AS DATE))
            FROM (SELECT {moment} AS m FROM {source.relation})"""
        ).fetchall()[0]
        if n == facts.filled:
            fields: dict[str, Any] = {"kind": "date" if days else "datetime", "min": str(low), "max": str(high)}
            shown = "ISO" if form is None else form
            fields |= {} if form is None else {"format": form}
            return fields, f"dates or times ({shown}); bounds are the first and the last day seen"
    return None


def _distinct(source: Source, engine: Any, index: int) -> list[str]:
    gaps = ", ".join(map(literal, GAPS))
    rows = engine.execute(
        f"""SELECT DISTINCT t FROM (SELECT {source.text(index)} AS t FROM {source.relation})
        WHERE t NOT IN ({gaps}) AND trim(t) <> '' ORDER BY t LIMIT {MAX_VALUES + 1}"""
    ).fetchall()
    return [row[0] for row in rows]
