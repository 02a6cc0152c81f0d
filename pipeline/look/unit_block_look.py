"""What a table says of the whole persons that a schema declares. NOT private: for the operator's eyes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechanisms.public.coded_table import CodedTable
from mechanisms.public.drafts.unit_guess import IN_PART
from mechanisms.public.persons.person_unit import PersonUnit
from mechanisms.public.schema.column import ORDERED_KINDS
from mechanisms.public.schema.table_schema import Schema
from mechanisms.public.tables.computing import value_batches
from mechanisms.public.tables.losses import percent
from mechanisms.public.tables.scan import Source
from mechanisms.sensitive.contribution import PrivacyUnit, unit_numbers

#: A constant that contradicts itself in a larger share of the persons who could is asked about.
CONSTANT = 0.5
#: What becomes of the records of a person beyond C, by privacy.clip.
BEYOND = {
    "weight": "each of their records weighs less",
    "truncate": "as many of their records count, by chance",
    "none": "the run is refused",
}


def persons_look(source: Source, schema: Schema, unit: PrivacyUnit, coded: CodedTable) -> tuple[list[str], list[str]]:
    """Persons beyond the bound, constants that contradict, and ties and gaps in the order of a person's records.

    Args:
        coded: the rows as codes of the schema's columns.
    Returns:
        Hints, and warnings: of constants that are none, and of a table in which there is nothing to link.
    """
    declared = schema.rules.unit
    if declared is None or unit.column is None or not coded.rows:
        return [], []
    owners = unit_numbers(source, unit)
    sizes = np.bincount(owners)
    if sizes.max() == 1:
        return [], ["unit: no id repeats: one record a person, and nothing to link; leave unit out of the schema"]
    hints = []
    if beyond := int((sizes > declared.max_records).sum()):
        hints.append(
            f"unit: records: persons with more than {declared.max_records:,} records: {beyond:,}; {BEYOND[unit.clip]}, "
            "and no synthetic person has more"
        )
    contradicting, warnings = _of_constants(schema, declared, coded, owners, int((sizes > 1).sum()))
    if int((sizes > 0).sum()) == 1:
        warnings.append("unit: all rows are one person's: nothing is known of any other")
    return [*hints, *contradicting, *_of_order(source, schema, declared, coded, owners)], warnings


def _of_constants(
    schema: Schema, declared: PersonUnit, coded: CodedTable, owners: NDArray[np.int64], several: int
) -> tuple[list[str], list[str]]:
    """Persons whose records say several values of a constant; hints, and warnings."""
    hints, warnings = [], []
    by_person = np.argsort(owners, kind="stable")
    starts = np.flatnonzero(np.diff(owners[by_person], prepend=-1))
    for name in declared.constant:
        codes, values = np.asarray(coded.column(name))[by_person].astype(np.int64), schema[name].value_codes
        gaps = codes >= values  # beside a value they contradict nothing
        gaps |= (codes == 0) & ("" in schema[name].false)  # a flag that is empty where it is not true
        held, each = np.add.reduceat((~gaps).astype(np.int64), starts), np.diff(starts, append=codes.size)
        have, part = (held > 0) & (each > 1), (held > 0) & (held < each)
        if int(part.sum()) > IN_PART * int(have.sum()):
            warnings.append(
                f"unit: constant: {name!r} is filled in {int(held[have].sum()):,} of the {int(each[have].sum()):,} "
                "records of the persons who have it and several: a release fills all of them; take it out of unit: "
                "constant where it is true of a record alone"
            )
        least, most = np.where(gaps, values, codes), np.where(gaps, -1, codes)
        count = int((np.maximum.reduceat(most, starts) > np.minimum.reduceat(least, starts)).sum())
        said = (
            f"unit: constant: {name!r} has several values in {count:,} of the {several:,} persons with several records"
        )
        said += "; one of them is taken, by a keyed hash"
        if count > CONSTANT * several:
            warnings.append(f"{said}: is it constant? if not, take it out of unit: constant")
        elif count:
            hints.append(said)
    return hints, warnings


def _of_order(
    source: Source, schema: Schema, declared: PersonUnit, coded: CodedTable, owners: NDArray[np.int64]
) -> list[str]:
    """What the order of a person's records leaves to the order of the file."""
    if not declared.order:
        return ["unit: no order: the records of each person stand in the order of the file"]
    columns = [schema[n] for n in declared.order]
    numbers = [c for c in columns if c.kind in ORDERED_KINDS and c.width is None]
    read: list[dict[str, NDArray[np.float64]]] = list(value_batches(source, numbers)) if numbers else []
    keys: list[NDArray[Any]] = []
    hints = []
    for column in columns:
        values = np.asarray(coded.column(column.name)).astype(np.float64)
        if column in numbers:
            values = np.concatenate([batch[column.name] for batch in read])
        else:
            values[values >= column.value_codes] = np.nan
        alike = f" with the same {columns[0].name!r}" if keys else ""
        keys.append(np.where(np.isnan(values), np.inf, values))
        if gaps := int(np.isnan(values).sum()):
            hints.append(
                f"unit: order: {percent(gaps / coded.rows)} of the rows ({gaps:,}) have no value of {column.name!r}, "
                f"and stand behind the others of their person{alike}"
            )
    order = np.lexsort((*reversed(keys), owners))
    tied = np.diff(owners[order]) == 0
    for key in keys:
        tied &= key[order][1:] == key[order][:-1]
    if ties := int(tied.sum()):
        hints.append(
            f"unit: order: rows with the same place as the one before, by {', '.join(declared.order)}: {ties:,}; the "
            "order of the file decides, or a further column"
        )
    return hints
