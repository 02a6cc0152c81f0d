"""Apache Spark: slices are encoded and counted on its executors, units meet in its shuffle, sums come back."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import count
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from mechanisms.public.coded_table import CodedTable, CountedTable
from mechanisms.public.errors import UserError
from mechanisms.public.progress import Progress
from mechanisms.public.schema.column import Column
from mechanisms.public.schema.table_schema import Schema
from mechanisms.public.settings import setting
from mechanisms.public.tables.codec import EncodingReport, with_apart
from mechanisms.public.tables.scan import Source, open_table, private_folder
from mechanisms.public.units import WEIGHT_BITS
from mechanisms.sensitive.contribution import Aside, PrivacyUnit, UnitRows, UnitSizes, needs_content
from mechanisms.sensitive.engines import coins
from mechanisms.sensitive.engines.duckdb_engine import CONTENT, UNIT, aside_rows, counted_texts, not_values
from mechanisms.sensitive.engines.engine import Clipped, EngineSettings, Scored, ValueCount
from mechanisms.sensitive.engines.slices import slices
from mechanisms.sensitive.engines.spark_counts import counted
from mechanisms.sensitive.engines.spark_files import PATHS, StoredRows, coded_parts, keep, keep_frame, path_of
from mechanisms.sensitive.engines.spark_session import SCRATCH, lost_java, spark_errors, spark_session
from mechanisms.sensitive.engines.spark_tasks import (
    ROWS,
    WEIGHT,
    EncodeSlices,
    EncodeTruth,
    ReadTexts,
    SampleRows,
    SliceTask,
    code_fields,
    report_of_slices,
)

#: Up to so many units above the bound are sent to every executor; more meet their rows in a shuffle.
BROADCAST = 500_000
#: Scores that need rows take so many, about, of a larger table.
SCORE_ROWS = 1_000_000


@dataclass(frozen=True)
class SparkSettings(EngineSettings):
    """How Spark is reached; conf/engine/spark.yaml says what each setting is."""

    master: str | None = None
    scratch: str | None = None
    settings: dict[str, Any] | None = None
    score_rows: int | None = setting(SCORE_ROWS, least=1)

    @contextmanager
    def opened(self, workdir: Path) -> Iterator[SparkEngine]:
        """As of `EngineSettings`; private copies are deleted at the end."""
        own = {str(name): str(value) for name, value in (self.settings or {}).items()}
        with spark_session(self.master, own, workdir) as session:
            shared = self.scratch or str(workdir)
            with private_place(session, f"{shared.rstrip('/')}/engine-{secrets.token_hex(8)}") as place:
                yield SparkEngine(session, place, self.most_scored)

    @property
    def most_scored(self) -> int:
        return self.score_rows or SCORE_ROWS


@contextmanager
def private_place(session: Any, folder: str) -> Iterator[str]:
    """A folder for the owner alone, where the file system knows owners; deleted at the end."""
    java, context = session._jvm, session._jsc
    try:
        path = java.org.apache.hadoop.fs.Path(folder if "://" in folder else f"{PATHS}{Path(folder).resolve()}")
        files = path.getFileSystem(context.hadoopConfiguration())
        mode = java.org.apache.hadoop.fs.permission.FsPermission("700")
        there = files.mkdirs(path, mode)
        files.setPermission(path, mode)
    except Exception:
        there = False
    if not there:
        fix = f"{SCRATCH}=FOLDER that driver and executors can write in"
        raise UserError(f"cannot make a folder for private copies in {folder}", where=SCRATCH, fix=fix)
    try:
        yield str(path.toString())
    finally:
        own = path_of(str(path.toString()))
        with lost_java():
            files.delete(path, True)
        if own is not None:  # Java may be gone: a signal to the whole group ends it first
            shutil.rmtree(own, ignore_errors=True)


@dataclass(frozen=True, eq=False)
class SparkEngine:
    """A session, the folder for private copies and the numbers of places in it, and how many rows scores may read."""

    session: Any
    folder: str
    score_rows: int = SCORE_ROWS
    places: Iterator[int] = field(default_factory=count)

    def encode(
        self, table: UnitRows, schema: Schema, *, contents: bytes | None, progress: Progress | None
    ) -> EncodedRows:
        """As of `Engine`; codes are kept once as Parquet in the engine's folder."""
        memory = self.memory_of(table.source)
        rows = self.keep(EncodeSlices(table.source, table.unit, contents, memory, schema), "codes")
        return EncodedRows(self, table, schema, rows, report_of_slices(schema, rows.marks))

    def values(
        self, table: UnitRows, columns: Sequence[Column], *, key: bytes, aside: Aside | None
    ) -> dict[str, list[ValueCount]]:
        """As of `Engine.values`."""
        source, unit = table.source, table.unit
        contents = key if aside is not None and needs_content(replace(unit, clip="weight"), aside) else None
        texts = self.keep(ReadTexts(source, unit, contents, self.memory_of(source), columns), "texts")
        with spark_errors():
            left = texts.frame if aside is None else not_aside(texts.frame, unit, aside)
            return {c.name: _values(left, f"v{i}", c, unit, key) for i, c in enumerate(columns)}

    def scored(
        self, source: Source, schema: Schema, report: EncodingReport, *, workdir: Path, progress: Progress | None
    ) -> Scored | None:
        """As of `Engine`, by the executors; None for a table of no more rows than the sample would have."""
        if report.rows <= self.score_rows:
            return None
        if progress is not None:
            progress(0, 0, f"a sample of {self.score_rows:,} rows")
        unit, memory = PrivacyUnit(), self.memory_of(source)
        drawn = self.keep(SampleRows(source, unit, None, memory, self.score_rows / report.rows), "sample")
        with spark_errors():  # the driver holds what it writes of the sample, a batch at a time
            path = _written(drawn.column(ROWS), workdir / "sample.parquet")
        rows = self.keep(EncodeTruth(source, unit, None, memory, schema), "truth")
        domain = with_apart(schema, report.apart(schema)).domain
        whole = CountedTable(domain, report.rows, False, lambda asked: counted(rows, domain, asked, weighted=False))
        most, threads = source.memory_limit_bytes, source.threads
        return Scored(open_table(path, workdir=source.workdir, threads=threads, memory_limit_bytes=most), whole)

    def spread(self, make: Callable[[int], CodedTable], numbers: range) -> Iterator[tuple[NDArray[np.generic], ...]]:
        """As of `Engine`: on the executors; on the driver where the folder has no path."""
        folder = path_of(self.new_place("parts"))
        if folder is None:
            return (make(n).columns for n in numbers)
        return coded_parts(self.session, make, numbers, folder)

    def keep(self, task: SliceTask, name: str) -> StoredRows:
        """What the task makes of the slices of its table, in the engine's folder."""
        return keep(self.session, task, slices(task.source), self.new_place(name))

    def memory_of(self, source: Source) -> int:
        """What the reader of one slice may use."""
        return max(source.memory_limit_bytes // max(int(self.session.sparkContext.defaultParallelism), 1), 1 << 28)

    def new_place(self, name: str) -> str:
        """A path in the engine's folder that nothing has used."""
        return f"{self.folder}/{name}-{next(self.places)}"


@dataclass(frozen=True, eq=False)
class EncodedRows:
    """Codes on Spark, with the unit of each row.

    Attributes:
        rows: a data frame over the Parquet files that hold them.
    """

    engine: SparkEngine
    given: UnitRows
    schema: Schema
    rows: StoredRows
    report: EncodingReport
    plain: ClassVar[None] = None

    def unit_sizes(self, aside: Aside | None = None) -> UnitSizes:
        return self.all_sizes if aside is None else self._sizes(aside)

    @cached_property
    def all_sizes(self) -> UnitSizes:
        """The sizes of all units."""
        return self._sizes(None)

    def _sizes(self, aside: Aside | None) -> UnitSizes:
        from pyspark.sql import functions as f

        with spark_errors():
            rows = self.rows.frame if aside is None else not_aside(self.rows.frame, self.given.unit, aside)
            each = rows.groupBy(UNIT).agg(f.count(f.lit(1)).alias("size"))
            counted_sizes = each.groupBy("size", each[UNIT].isNull().alias("alone")).agg(f.count(f.lit(1))).collect()
        sizes = sorted((int(n), int(units)) for n, alone, units in counted_sizes if not alone)
        alone_rows = sum(int(n) for n, alone, _ in counted_sizes if alone)
        return UnitSizes(np.array(sizes, np.int64).reshape(-1, 2), alone_rows)

    def clipped(self, key: bytes, aside: Aside | None) -> Clipped:
        """As of `Encoded`; codes and weights are written once more where rows or weights change."""
        unit, weighted, complete = self.given.unit, False, aside is None
        if unit.column is None and complete:
            return Clipped(self._counted(self.rows, weighted=False), complete=True, aside=None)
        rows = self.rows.frame if aside is None else not_aside(self.rows.frame, unit, aside)
        held = None if aside is None else aside_rows(self.given, aside)
        if unit.column is not None:
            sizes = self.unit_sizes()
            heavy = sizes.sizes[sizes.sizes[:, 0] > unit.max_records, 1].sum()
            if unit.missing == "drop" and sizes.alone:
                rows, complete = rows.where(rows[UNIT].isNotNull()), False
            if heavy and unit.clip == "weight":
                rows, weighted = _weighted(self._with_sizes(rows, int(heavy)), unit), True
            elif heavy:
                rows, complete = _truncated(self._with_sizes(rows, int(heavy)), unit, key), False
        counting = self.rows if complete and not weighted else self._stored(rows, weighted)
        return Clipped(self._counted(counting, weighted), complete=complete, aside=held)

    def _with_sizes(self, rows: Any, heavy: int) -> Any:
        """The rows with `size`: how many records their unit has, where it has more than C; else null."""
        from pyspark.sql import functions as f

        frame = self.rows.frame
        large = frame.where(frame[UNIT].isNotNull()).groupBy(UNIT).agg(f.count(f.lit(1)).alias("size"))
        large = large.where(large["size"] > f.lit(self.given.unit.max_records))
        return rows.join(f.broadcast(large) if heavy <= BROADCAST else large, UNIT, "left")

    def _stored(self, rows: Any, weighted: bool) -> StoredRows:
        """The rows that count, without their units, in files of their own."""
        fields = pa.schema([*code_fields(self.schema.measured), *([(WEIGHT, pa.int32())] if weighted else [])])
        return keep_frame(self.engine.session, rows, fields, self.engine.new_place("kept"))

    def _counted(self, rows: StoredRows, weighted: bool) -> CountedTable:
        domain = self.schema.measured
        with spark_errors():
            total = self.report.rows if rows is self.rows else int(rows.frame.count())
        return CountedTable(domain, total, weighted, lambda cliques: counted(rows, domain, cliques, weighted=weighted))


def _written(streams: Iterable[Any], path: Path) -> Path:
    """The streams of `SampleRows` as one Parquet file; no more than one of them is held."""
    private_folder(path.parent)
    writer = None
    try:
        for streamed in streams:
            with pa.ipc.open_stream(bytes(streamed)) as stream:
                writer = writer or pq.ParquetWriter(path, stream.schema)
                writer.write_table(stream.read_all())
    finally:
        if writer is not None:
            writer.close()
    return path


def not_aside(rows: Any, unit: PrivacyUnit, aside: Aside) -> Any:
    """The rows of units that are not set aside."""
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    least = f.lit(coins.below(aside.share))
    with_id = rows.where(rows[UNIT].isNotNull())
    with_id = with_id.where(_coin(coins.of_unit_aside(aside.key), with_id[UNIT]) >= least)
    alone = rows.where(rows[UNIT].isNull())
    if unit.column is None or unit.missing == "own":
        copy = f.row_number().over(Window.partitionBy(CONTENT).orderBy(CONTENT))
        alone = alone.withColumn("copy", copy)
        mine = _coin(coins.of_row_aside(aside.key), alone[CONTENT], f.lit(":"), alone["copy"])
        alone = alone.where(mine >= least).drop("copy")
    return with_id.unionByName(alone)


def _coin(start: str, *parts: Any) -> Any:
    """A coin, as the embedded engine draws it."""
    from pyspark.sql import functions as f

    return f.left(f.sha2(f.concat(f.lit(start), *(part.cast("string") for part in parts)), 256), f.lit(coins.DIGITS))


def _weighted(rows: Any, unit: PrivacyUnit) -> Any:
    """The rows with weights in units of 2**-WEIGHT_BITS records, rounded down."""
    from pyspark.sql import functions as f

    share = f.expr(f"CAST({unit.max_records << WEIGHT_BITS} AS BIGINT) div size")
    return rows.withColumn(WEIGHT, f.coalesce(share, f.lit(1 << WEIGHT_BITS)).cast("int"))


def _truncated(rows: Any, unit: PrivacyUnit, key: bytes) -> Any:
    """The rows of each unit that truncation keeps: the C first in the order of their coins."""
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    light, heavy = rows.where(rows["size"].isNull()), rows.where(rows["size"].isNotNull())
    copy = f.row_number().over(Window.partitionBy(UNIT, CONTENT).orderBy(CONTENT))
    heavy = heavy.withColumn("copy", copy)
    colon = f.lit(":")
    coin = _coin(coins.of_truncation(key), heavy[CONTENT], colon, heavy["copy"], colon, heavy[UNIT])
    order = Window.partitionBy(UNIT).orderBy(coin, heavy[CONTENT], heavy["copy"])
    heavy = heavy.withColumn("place", f.row_number().over(order))
    return light.unionByName(heavy.where(heavy["place"] <= f.lit(unit.max_records)).drop("copy", "place"))


def _values(rows: Any, name: str, column: Column, unit: PrivacyUnit, key: bytes) -> list[ValueCount]:
    """The texts of one column, with how many units count each among so many of theirs."""
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    some, cell = counted_texts(column), rows[name]
    which = ~cell.isin(not_values(column)) if some is None else f.trim(cell).isin(some)
    mine = rows.where(which).select(cell.alias("v"), UNIT)
    counts = []
    if unit.column is None or unit.missing == "own":
        alone = mine.where(mine[UNIT].isNull()).groupBy("v").agg(f.count(f.lit(1)).alias("n"))
        counts += [(str(v), 1, int(n)) for v, n in alone.collect()]
    if unit.column is not None:
        each = mine.where(mine[UNIT].isNotNull()).distinct()
        units = Window.partitionBy(UNIT)
        coin = _coin(coins.of_value(key, column.name), each[UNIT], f.lit("\0"), each["v"])
        held = f.least(f.count(f.lit(1)).over(units), f.lit(unit.max_records).cast("bigint"))
        ranked = each.withColumn("t", held).withColumn("place", f.row_number().over(units.orderBy(coin, each["v"])))
        chosen = ranked.where(ranked["place"] <= ranked["t"]).groupBy("v", "t").agg(f.count(f.lit(1)).alias("n"))
        counts += [(str(v), int(t), int(n)) for v, t, n in chosen.collect()]
    return counts
