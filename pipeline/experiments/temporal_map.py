"""The temporal map: three columns of a table (month, place, category), and the true histogram over them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from evaluation.counts import cells_in_records
from mechanisms.public.coded_table import CodedTable
from mechanisms.public.domain import Domain
from mechanisms.public.errors import UserError, did_you_mean
from mechanisms.public.schema.bins import Bins
from mechanisms.public.schema.column import DATE_KINDS, Column
from mechanisms.public.schema.table_schema import Schema
from pipeline.experiments.experiment_settings import map_settings
from pipeline.settings.config import Config

#: Time, place and category of the tables that are known.
MAPS = {
    "demo": ("received", "neighbourhood", "incident_type"),
    "fire_calls": ("Received DtTm", "Neighborhood", "Call Type"),
}
#: Letters of the axes in the names of marginals, as in the paper: months, neighbourhood, incident type.
LETTERS = ("M", "N", "I")
#: Histograms of this size are held a few times in memory.
MAX_CELLS = 50_000_000


@dataclass(frozen=True, eq=False)
class TemporalMap:
    """The truth of an experiment. NOT private.

    Attributes:
        schema: three columns: time, place, category.
        table: the true rows, unclipped, in these columns.
    """

    schema: Schema
    table: CodedTable

    @cached_property
    def histogram(self) -> NDArray[np.float64]:
        """Months × places × categories, in records."""
        return self.counted(self.table)

    def counted(self, table: CodedTable) -> NDArray[np.float64]:
        """The same of another table over these columns."""
        return cells_in_records(table, self.domain.names)

    @property
    def domain(self) -> Domain:
        return self.schema.domain


def map_schema(config: Config, schema: Schema) -> Schema:
    """The schema cut down to time, place and category; a date or time becomes the month of the year.

    Raises:
        UserError: columns that are not known for this table, are not three, or have no order in time; a histogram with
            more than MAX_CELLS cells.
    """
    where = "experiment.columns"
    names = map_settings(config.experiment).columns or MAPS.get(config.data.name)
    if names is None or len(set(names)) != 3:
        fix = "three columns: 'experiment.columns=[time,place,category]'"
        raise UserError(f"which columns are time, place and category of data={config.data.name}?", where=where, fix=fix)
    for name in names:
        if name not in schema.domain:
            fix = did_you_mean(name, schema.domain.names) or f"one of {', '.join(schema.domain.names)}"
            raise UserError(f"no column {name!r} in the schema", where=where, fix=fix)
    time, place, category = (schema[n] for n in names)
    cut = replace(schema, name=f"{schema.name}_map", columns=(_monthly(time, where), place, category), leave_out=())
    if cut.domain.cells(cut.domain.names) > MAX_CELLS:
        fix = "coarser bins in the schema, or other columns"
        raise UserError(f"{' × '.join(names)} has more than {MAX_CELLS:,} cells", where=where, fix=fix)
    return cut


def _monthly(column: Column, where: str) -> Column:
    if column.kind in DATE_KINDS:
        return replace(column, bins=Bins(calendar="month_of_year"))
    if column.attribute.ordered < 2:
        fix = "a date, a time, or an ordered column first"
        raise UserError(f"{column.name!r} is not ordered, so it cannot be the time", where=where, fix=fix)
    return column
