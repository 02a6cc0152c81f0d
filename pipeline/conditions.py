"""Conditions on rows (`where=`): from what is asked to the weight of each code, and words for who reads the result."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechanisms.public.errors import UserError, known_columns
from mechanisms.public.json_values import Json, JsonDict
from mechanisms.public.schema.table_schema import Schema
from mechanisms.public.tables.decode import Owned
from pipeline.release_query import Weights, asked_ranges, code_weights
from synthesis.given_rows import GivenRows


@dataclass(frozen=True, eq=False)
class Condition:
    """What rows shall satisfy, all of it.

    Attributes:
        asked: column → a value, a list of values, or [low, high], as JSON values.
        weights: column → how much of each of its codes satisfies it, by the schema of the release.
        drawn_by: the schema by which values are drawn inside bins that the condition cuts.
    """

    schema: Schema
    asked: Json
    weights: Mapping[str, Weights]
    drawn_by: Schema

    @property
    def of_persons(self) -> bool:
        """Whether it asks for what is constant in a person, which is written when records are linked."""
        unit = self.schema.rules.unit
        return unit is not None and any(name in unit.constant for name in self.weights)


def build_condition(schema: Schema, where: Json | None) -> Condition | None:
    """The condition; None where nothing is asked.

    Raises:
        UserError: an unknown column or value; a range that holds nothing, or that cuts a bin of columns that the schema
            orders, whose values are exchanged inside a bin.
    """
    if not where:
        return None
    known_columns(where, schema.domain.names, where="where", of="")
    for name in where:
        if isinstance(where[name], list | tuple) and not len(where[name]):
            raise UserError(f"column {name!r}: an empty list", where="where", fix="values, or [low, high]")
        if sources := next((s.sources for s in schema.rules.computed if s.target == name), None):
            fix = f"conditions on {', '.join(sources)}; or more rows, of which you keep those"
            raise UserError(f"{name!r} is computed after rows are drawn, by derive", where="where", fix=fix)
    weights = {name: code_weights(schema, name, value) for name, value in where.items()}
    columns = list(schema.columns)
    for name, weight in weights.items():
        cut = (weight > 0) & (weight < 1)
        if not cut.any():
            continue
        if any(name in group.columns for group in schema.rules.ordered):
            fix = f"a range of whole bins; this one cuts {schema[name].labels[int(np.flatnonzero(cut)[0])]}"
            raise UserError(f"the schema orders the values of {name!r} inside its bins", where="where", fix=fix)
        place = schema.domain.index(name)
        ranges = asked_ranges(schema[name], where[name], name)
        columns[place] = replace(columns[place], within=None if ranges is None else tuple(ranges))
    asked = {name: _plain(value) for name, value in where.items()}
    return Condition(schema, asked, weights, replace(schema, columns=tuple(columns)))


def satisfying(owned: Owned, condition: Condition, rng: np.random.Generator) -> NDArray[np.int64]:
    """The places of linked rows that satisfy the condition; of a bin that it cuts as many as its part of the bin holds.

    What is constant in a person is decided once for all of its records.
    """
    schema, coded = condition.schema, owned.coded
    constant = () if schema.rules.unit is None else schema.rules.unit.constant
    if owned.ids is None:
        fix = "conditions on other columns; the run was charged for them, and they were lost"
        raise UserError("there are no answers about persons", where="where", fix=fix)
    of_row, of_person = np.ones(coded.rows), np.ones(coded.rows)
    for name, weights in condition.weights.items():
        codes, values = np.asarray(coded.column(name)), owned.values.get(name)
        ranges = None if values is None else asked_ranges(schema[name], condition.asked[name], name)
        chances = weights[codes]
        if ranges is not None and values is not None:  # its values are drawn already
            inside = np.any([(low <= values) & (values <= high) for low, high in ranges], axis=0)
            chances = np.where(codes < schema[name].value_codes, inside, chances)
        (of_person if name in constant else of_row)[:] *= chances
    coins = rng.random(int(owned.ids.max(initial=0)) + 1)[owned.ids]
    return np.flatnonzero((rng.random(coded.rows) < of_row) & (coins < of_person))


def facts_of(condition: Condition, rows: GivenRows) -> JsonDict:
    """What the manifest of a conditioned table says."""
    how = "drawn from the conditioned model, exact for it" if rows.exact else "chosen among synthetic rows by weight"
    return {"where": dict(condition.asked), "rows": how, "effective_rows": round(rows.effective, 1)}


def _plain(value: Any) -> Any:
    """The value in JSON's types: dates and times as texts."""
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(v) for v in value]
    if isinstance(value, np.generic):
        value = value.item()
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)
