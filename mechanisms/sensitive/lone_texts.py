"""Listed texts that one unit alone holds: a person of many rows betrays them as a single row does. NOT private."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

from mechanisms.public.schema.column import Column
from mechanisms.public.schema.table_schema import Schema
from mechanisms.public.tables.codec import EncodingReport
from mechanisms.public.tables.scan import Source
from mechanisms.public.units import MAX_RECORDS
from mechanisms.sensitive.contribution import PrivacyUnit
from mechanisms.sensitive.engines.engine import Engine


def lone_texts(
    engine: Engine,
    source: Source,
    schema: Schema,
    unit: PrivacyUnit,
    report: EncodingReport,
    *,
    largest: int,
    key: bytes,
    workdir: Path,
) -> EncodingReport:
    """The report with `lone` of units, those that are set aside among them; rows that do not count hold nothing.

    Cost: a pass over the columns in which one unit may hold all rows of a text.

    Args:
        unit: names a column.
        largest: no unit has more records.
        key: secret; orders the texts of a unit.
        workdir: for a copy of the ids and texts, deleted again; a folder with mode 0700.
    """
    asked = [c for c in schema.columns if 0 < report.fewest.get(c.name, 0) <= largest]
    if not asked:
        return replace(report, lone=dict.fromkeys(report.lone, 0))
    every = replace(unit, max_records=MAX_RECORDS)  # each of a unit's texts counts
    counts = engine.values(source, asked, every, key=key, aside=None, workdir=workdir)
    lone = dict.fromkeys(report.lone, 0)
    for column in asked:
        units: Counter[str] = Counter()
        for text, _, n in counts[column.name]:
            units[_listed(column, text)] += n
        lone[column.name] = sum(units[value] == 1 for value in column.values)
    return replace(report, lone=lone)


def _listed(column: Column, text: str) -> str:
    """The listed text that encoding takes a text for, where it is one."""
    return text if text in column.values else re.sub(r"\.0+$", "", text)
