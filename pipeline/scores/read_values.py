"""The values of tables that are scored: as a schema reads them, or by kinds read from the tables. NOT private."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from evaluation.metrics import METRICS
from evaluation.values.value_kinds import declared_kind, kind_of
from evaluation.values.value_tables import Values, bucketed, value_tables
from mechanisms.public.coded_table import CodedTable
from mechanisms.public.errors import UserError, first_few
from mechanisms.public.files import JsonDict
from mechanisms.public.progress import Progress
from mechanisms.public.schema.table_schema import Schema
from mechanisms.public.tables.codec import NO_RULES
from mechanisms.public.tables.encode import listed_numbers
from mechanisms.public.tables.scan import Source
from mechanisms.public.tables.value_dictionaries import (
    NAMED,
    Dictionary,
    dictionaries,
    raw_expressions,
    schema_expressions,
    shared_names,
    texts_of,
)
from mechanisms.sensitive.contribution import PrivacyUnit, unit_texts


def without_schema(
    sources: Mapping[str, Source], name: str, progress: Progress, *, subject: str | None = None
) -> tuple[Values, Schema, dict[str, CodedTable], list[JsonDict]]:
    """The tables on the columns that they share, with kinds read from the real one (from all, where it says nothing).

    Columns of ids are left out: no synthetic row shares them with a real one.

    Args:
        name: of the table.
        subject: the column that tells whose each row is; it is no id to leave out, and no column to compare.

    Returns:
        the tables as values; a schema that was made from the real table for scoring alone; the tables as its codes; and
        of each column of ids which shares of both tables' are distinct, and of the synthetic ones real.
    Raises:
        UserError: no column in common, or none but ids.
    """
    names, notices = shared_names(sources)
    read = {table: dictionaries(s, raw_expressions(s, names), progress) for table, s in sources.items()}
    kinds = {}
    for column in names:
        first = next((t[column] for t in read.values() if len(t[column].values)), read["real"][column])
        kinds[column] = kind_of(column, first)
    ids = [column for column, kind in kinds.items() if kind.kind == "id"]
    left = [column for column in ids if column != subject]
    if len(ids) == len(names):
        raise UserError("every column is an id: nothing can be compared", where="real", fix="columns with values")
    if left:
        notices.append(f"left out as ids: {first_few(map(repr, left), NAMED)}")
    compared = {column: kind for column, kind in kinds.items() if kind.kind != "id" and column != subject}
    values = value_tables(compared or kinds, read, notices)
    schema, tables = bucketed(values, name)
    keys = [_key(column, read["real"][column], read["synthetic"][column]) for column in left[:NAMED]]
    return values, schema, tables, keys


def _key(name: str, real: Dictionary, synthetic: Dictionary) -> JsonDict:
    """The shares of ids that are distinct, in both tables, and of the synthetic ones that are real."""
    texts = [d.values.cast(pa.string()) for d in (real, synthetic)]
    counts = [d.counts for d in (real, synthetic)]
    repeated = pc.is_in(texts[1], value_set=texts[0]).to_numpy(zero_copy_only=False)
    shares = [len(c) / max(int(c.sum()), 1) for c in counts]
    again = float(counts[1][repeated].sum() / max(int(counts[1].sum()), 1))
    return {"column": name, "real": shares[0], "synthetic": shares[1], "real_ones": again}


def subject_texts(
    sources: Mapping[str, Source], subject: str | None, unit: PrivacyUnit | None
) -> dict[str, NDArray[np.object_]]:
    """The text of each row's subject, of the tables that have the column; None for none.

    Args:
        unit: that of a release; real rows have the ids of its column by its rules, where that is the subject's.
    """
    texts = {}
    for name, source in sources.items() if subject is not None else ():
        if subject in source.names and name != "synthetic" and unit is not None and unit.column == subject:
            texts[name] = unit_texts(source, unit)
        elif subject in source.names:
            texts[name] = texts_of(dictionaries(source, raw_expressions(source, [subject]))[subject])
    return texts


def wants_values(metrics: Sequence[str]) -> bool:
    """Whether the definition of one of these metrics speaks of values."""
    return any(METRICS[name].on_values for name in metrics)


def with_schema(sources: Mapping[str, Source], schema: Schema, progress: Progress) -> Values:
    """The tables' values as the schema reads them; nothing is clipped, and nothing binned."""
    read = {table: dictionaries(s, schema_expressions(s, schema), progress) for table, s in sources.items()}
    for table, source in sources.items():
        for column in schema.columns:
            if column.spelled and source.typed(source.declared(column.name)):
                own, listed = read[table][column.name], listed_numbers(column)
                texts = pa.array([listed.get(t, t) for t in own.values.to_pylist()], pa.string())
                read[table][column.name] = replace(own, values=texts)
    return value_tables({c.name: declared_kind(c) for c in schema.columns}, read)


def shared_schema(sources: Mapping[str, Source], schema: Schema) -> tuple[Schema, list[str]]:
    """The schema of the columns that all tables have, and a line about each one that some lack.

    Raises:
        UserError: no column in common.
    """
    names, notices = shared_names(sources, [c.name for c in schema.held])
    if len(names) == len(schema.held):
        return schema, []
    return replace(schema, columns=tuple(c for c in schema.columns if c.cell in names), rules=NO_RULES), notices
