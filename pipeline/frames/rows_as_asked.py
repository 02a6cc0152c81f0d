"""New rows of a release: as many as asked, given a condition, or one for each row of a frame of conditions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from mechanisms.public.errors import UserError
from mechanisms.public.files import Json
from mechanisms.public.release import Measurements
from mechanisms.public.schema.table_schema import Schema
from mechanisms.public.tables.write_table import arrow_table
from pipeline.frames import frame_kinds
from pipeline.frames.frame_files import Frame, Kinds, opened_stream
from pipeline.measuring.public_tables import ready_again
from pipeline.row_maker import RowMaker, build_condition
from pipeline.settings.config import LimitsConfig, SynthesisConfig
from pipeline.settings.memory import check_rows
from pipeline.settings.methods import usable_synthesizer
from pipeline.settings.overrides import encoded
from synthesis.contract import RowModel
from synthesis.numbers.value_shapes import for_synthesis


@dataclass(frozen=True, eq=False)
class RowSource:
    """A release as it makes new rows; its model is fitted once."""

    schema: Schema
    measurements: Measurements
    statement: Mapping[str, Any]
    _kinds: Kinds = field(repr=False)
    _synthesis: SynthesisConfig = field(repr=False)

    @cached_property
    def _model(self) -> RowModel | None:
        spec = usable_synthesizer(self._synthesis)
        return spec.model(for_synthesis(self.measurements, self.schema), zeros=self.schema.zeros)

    def _rows(
        self, rows: int | None, where: Mapping[str, Any] | None, seed: int | None, rng: np.random.Generator
    ) -> tuple[Any, Json | None]:
        """An Arrow table of rows that satisfy a condition, as the schema makes them, and what is said of them.

        Raises:
            UserError: more rows than memory holds; as of `build_condition`.
        """
        schema, measurements = self.schema, self.measurements
        config = SynthesisConfig(self._synthesis.kind, rows, seed, self._synthesis.options)
        spec, condition = ready_again(config, schema, self.statement), build_condition(schema, where)
        try:
            check_rows(schema, measurements, spec, rows, LimitsConfig(), fixed=[c for c, _ in schema.zeros])
        except UserError as error:
            raise UserError(error.what, where="rows", fix="fewer rows at a time: each sample is a new draw") from None
        maker = RowMaker(schema, measurements, spec, rng, model=self._model)
        new, notes = maker.draw(rows, condition), maker.notes(condition)
        texts = frame_kinds.texts(new.drawn_by, self._kinds)
        given = new.given and {**new.given, **({"notes": notes} if notes else {})}
        return arrow_table(new.rows, new.drawn_by, rng, texts=texts), given

    def _row_for_each(
        self, conditions: Frame, where: Mapping[str, Any] | None, seed: int | None, rng: np.random.Generator
    ) -> tuple[Any, Json]:
        """One row for each row of a frame, with that row's values, in its order; a gap asks for a missing value.

        Rows of unequal conditions are of different units, whose ids go on from one condition to the next.

        Raises:
            UserError: no column or no row; a column that `where` names too; as of `_rows`.
        """
        asked = conditions if isinstance(conditions, pd.DataFrame) else opened_stream(conditions, "rows").read_pandas()
        names = [str(name) for name in asked.columns]
        if not len(asked) or not names:
            fix = "a row of conditions for each row that you want; or a number of rows"
            raise UserError("a frame of conditions with no row, or no column", where="rows", fix=fix)
        if len(set(names)) < len(names):
            raise UserError("columns named twice", where="rows", fix="give each column a name of its own")
        if twice := sorted(set(names) & set(where or {})):
            raise UserError(f"{', '.join(map(repr, twice))} stands in the frame too", where="where", fix="one of them")
        places: dict[tuple[Any, ...], list[int]] = defaultdict(list)
        for place, row in enumerate(asked.astype(object).itertuples(index=False, name=None)):
            places[tuple(map(_plain, row))].append(place)
        tables, units, effective, drawn = [], 0, 0.0, ""
        for values, rows in places.items():
            wish = {**(where or {}), **dict(zip(names, values, strict=True))}
            table, facts = self._rows(len(rows), wish, seed, rng)
            assert facts is not None
            table, units = _ids_from(table, self.schema.rules.id_column, units)
            tables.append(table)
            effective, drawn = effective + facts["effective_rows"], facts["rows"]
        order = np.argsort(np.concatenate([np.array(rows) for rows in places.values()]))
        facts_of_rows = {"where": f"{len(places):,} conditions", "rows": drawn, "effective_rows": round(effective, 1)}
        return pa.concat_tables(tables, promote_options="permissive").take(order), facts_of_rows


def _ids_from(table: Any, name: str, last: int) -> tuple[Any, int]:
    """The rows with numbers of units above the last one that was given, and the last one of these; names stay."""
    if not name or not pa.types.is_integer(table.schema.field(name).type):
        return table, last
    ids = pc.add(table[name], last)
    return table.set_column(table.schema.get_field_index(name), name, ids), int(pc.max(ids).as_py())


def plain_where(where: Any) -> dict[str, Any] | None:
    """Conditions in the values of a frame as the command has them: gaps of pandas as None, columns and ranges as lists.

    Names that are no texts (2020, True) are read as a schema reads them.

    Raises:
        UserError: no mapping; a name that none has.
    """
    if where is None:
        return None
    if not isinstance(where, Mapping):
        raise UserError(f"got {type(where).__name__}", where="where", fix='where={"sex": "f", "age": [25, 44]}')
    several = (list, tuple, range, np.ndarray, pd.Series, pd.Index)
    named = {name if isinstance(name, str) else encoded(name, "where"): v for name, v in where.items()}
    return {name: [*map(_none, v)] if isinstance(v, several) else _none(v) for name, v in named.items()}


def _none(value: Any) -> Any:
    value = value.item() if isinstance(value, np.integer | np.floating | np.bool_) else value
    return None if pd.api.types.is_scalar(value) and pd.isna(value) else value


def _plain(value: Any) -> Any:
    """A value of a frame as a condition has it: gaps as None, whole numbers without a point."""
    if not pd.api.types.is_scalar(value):
        raise UserError(f"got {type(value).__name__}", where="rows", fix="one value in each cell; ranges: where={…}")
    if pd.isna(value):
        return None
    value = value.item() if isinstance(value, np.generic) else value
    return int(value) if isinstance(value, float) and value.is_integer() else value
