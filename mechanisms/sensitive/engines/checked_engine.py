"""An engine of others behind checks: units are told apart and clipped here, from the ids in the table itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import numpy as np

from mechanisms.public.arrays import Flags, Ints
from mechanisms.public.coded_table import CodedTable, CountedTable
from mechanisms.public.domain import Clique, Domain
from mechanisms.public.errors import UserError
from mechanisms.public.progress import Progress
from mechanisms.public.schema.table_schema import Schema
from mechanisms.public.tables.codec import EncodingReport
from mechanisms.public.tables.scan import Source
from mechanisms.public.units import WEIGHT_BITS
from mechanisms.sensitive.contribution import Aside, UnitRows, UnitSizes, set_aside_units, unit_sizes
from mechanisms.sensitive.engines.duckdb_engine import CHUNK, DuckdbEngine, EncodedFiles, copy_units
from mechanisms.sensitive.engines.engine import Clipped, Encoded, Engine, Scored


@dataclass(frozen=True)
class CheckedEngine(DuckdbEngine):
    """An engine of others.

    The embedded one counts values, as noise is calibrated to how often a unit counts; and it draws what is released.

    Guarantee: whatever the engine says, units are told apart by this module's own pass over their ids; rows at hand
        (`EncodedFiles`) are clipped here; of rows elsewhere, every marginal sums to exactly what the clipped units
        weigh. Which code a row gets, and which rows elsewhere are kept, is the engine's word.

    Attributes:
        engine: of others; it is asked for codes and for a sample for scores, and for nothing else.
        module: it came from.
    """

    engine: Engine
    module: str

    def encode(self, table: UnitRows, schema: Schema, *, contents: bytes | None, progress: Progress | None) -> Encoded:
        """As of `Engine`; the ids are read once more.

        Raises:
            UserError: the engine gives other rows than the table has, or codes that its domain has not.
        """
        encoded = self.engine.encode(table, schema, contents=contents, progress=progress)
        path = table.workdir / "checked-units.parquet"
        self.check(isinstance(getattr(encoded, "report", None), EncodingReport), "gives no encoded rows with a report")
        rows = copy_units(table, path, contents=contents)
        self.check(encoded.report.rows == rows, f"gives {encoded.report.rows:,} rows of a table that has {rows:,}")
        if not isinstance(encoded, EncodedFiles):
            return CheckedRows(self, encoded, table, path, schema.measured)
        coded = encoded.coded
        self.check(coded.rows == rows and coded.domain == schema.measured and not coded.weighted, "gives other columns")
        self.check(_codes_fit(coded), "gives codes that its column has no value for")
        return EncodedFiles(table, coded, encoded.report, path)

    def check(self, holds: bool, wrong: str) -> None:
        """UserError where the engine does not keep its contract."""
        if not holds:
            fix = "engine=duckdb; mend the plugin: docs/adding/engine.md has its contract test"
            raise UserError(f"the engine of the module {self.module} {wrong}", where="engine", fix=fix)

    def scored(
        self, source: Source, schema: Schema, report: EncodingReport, *, workdir: Path, progress: Progress | None
    ) -> Scored | None:
        """As of `Engine`; what it gives stays beside the rows."""
        return self.engine.scored(source, schema, report, workdir=workdir, progress=progress)


def _codes_fit(coded: CodedTable) -> bool:
    """Whether every code is a whole number below its column's size."""
    return all(
        (isinstance(column, np.ndarray) and column.ndim == 1 and column.dtype.kind == "u")
        and all(int(column[i : i + CHUNK].max(initial=0)) < a.size for i in range(0, len(column), CHUNK))
        for column, a in zip(coded.columns, coded.domain.attributes, strict=True)
    )


@dataclass(frozen=True, eq=False)
class CheckedRows:
    """Rows that an engine of others holds elsewhere.

    Attributes:
        units: as of `clip_records`, of our own reading.
        domain: of the codes.
    """

    checked: CheckedEngine
    encoded: Encoded
    given: UnitRows
    units: Path
    domain: Domain

    plain: ClassVar[None] = None

    @property
    def report(self) -> EncodingReport:
        return self.encoded.report

    def unit_sizes(self, aside: Aside | None = None) -> UnitSizes:
        return unit_sizes(self.units, self.given.source, self.given.unit, aside)

    def clipped(self, key: bytes, aside: Aside | None) -> Clipped:
        """As of `Encoded`; what is counted has to sum to what the clipped units weigh."""
        held: Flags | None = None
        if aside is not None:
            source, unit, rows = self.given.source, self.given.unit, self.report.rows
            held = set_aside_units(self.units, source, unit, rows, aside.key, aside.share)
        weight = self._weight(held, aside)
        self.units.unlink()
        clipped, check = self.encoded.clipped(key, aside), self.checked.check
        table = clipped.rows
        check(isinstance(table, CountedTable), "clips rows at hand itself: it must give them as EncodedFiles")
        assert isinstance(table, CountedTable)
        check(table.domain == self.domain, "counts other columns")
        count, shift = table.count, 0 if table.weighted else WEIGHT_BITS

        def counted(cliques: Sequence[Clique]) -> list[Ints]:
            counts = count(cliques)
            check(len(counts) == len(cliques), "counts other marginals")
            for clique, cells in zip(cliques, counts, strict=True):
                whole = isinstance(cells, np.ndarray) and cells.dtype == np.int64
                check(whole and cells.shape == (self.domain.cells(clique),), "counts other cells")
                check(int(cells.min(initial=0)) >= 0, "counts below 0")
                check(int(cells.sum()) << shift == weight, "counts more or fewer records than the clipped units have")
            return counts

        complete = held is None and (self.given.unit.column is None or clipped.complete)
        return replace(clipped, rows=replace(table, count=counted), complete=complete, aside=held)

    def _weight(self, held: Flags | None, aside: Aside | None) -> int:
        """What the clipped units weigh together, in units of 2**-WEIGHT_BITS records."""
        unit = self.given.unit
        if unit.column is None:
            return (self.report.rows - (0 if held is None else int(held.sum()))) << WEIGHT_BITS
        sizes, most = self.unit_sizes(aside), unit.max_records
        total = (sizes.alone if unit.missing == "own" else 0) << WEIGHT_BITS
        for records, units in sizes.sizes.tolist():
            one = records << WEIGHT_BITS
            if records > most and unit.clip == "weight":
                one = records * ((most << WEIGHT_BITS) // records)
            elif records > most:
                one = most << WEIGHT_BITS
            total += units * one
        return total
