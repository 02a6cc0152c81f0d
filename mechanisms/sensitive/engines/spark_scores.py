"""What scores of a table on Spark are computed from: counts of all rows, and a sample for those that need rows."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from mechanisms.public.coded_table import CountedTable
from mechanisms.public.schema.table_schema import Schema
from mechanisms.public.tables.codec import EncodingReport
from mechanisms.public.tables.out_of_schema import with_apart
from mechanisms.public.tables.scan import Source, open_table, private_folder
from mechanisms.sensitive.contribution import PrivacyUnit
from mechanisms.sensitive.engines.engine import Scored
from mechanisms.sensitive.engines.spark_counts import counted
from mechanisms.sensitive.engines.spark_session import spark_errors
from mechanisms.sensitive.engines.spark_tasks import FAULT, EncodeTruth, SampleRows, SliceTask, refuse_faults


class Tasks(Protocol):
    """What scores need of the engine."""

    @property
    def session(self) -> Any: ...

    @property
    def score_rows(self) -> int: ...

    def rows_of(self, task: SliceTask) -> Any:
        """A data frame of what the task makes of its slices."""
        ...

    def memory_of(self, source: Source) -> int:
        """What the reader of one slice may use."""
        ...

    def new_place(self, name: str) -> str:
        """A path that nothing has used."""
        ...


def scored_rows(engine: Tasks, source: Source, schema: Schema, report: EncodingReport, workdir: Path) -> Scored:
    """As of `Engine.scored`: the table is read twice more, by the executors; NOT private.

    The driver holds what it writes of the sample, a batch at a time.
    """
    unit, memory = PrivacyUnit(), engine.memory_of(source)
    truth, drawn = engine.new_place("truth"), engine.new_place("sample")
    share = engine.score_rows / report.rows
    with spark_errors():
        engine.rows_of(SampleRows(source, unit, False, memory, share)).write.parquet(drawn)
        path = _written(engine.session.read.parquet(drawn).toLocalIterator(), workdir / "sample.parquet")
        engine.rows_of(EncodeTruth(source, unit, False, memory, schema)).write.parquet(truth)
        rows = engine.session.read.parquet(truth)
        refuse_faults(row[0] for row in rows.where(rows[FAULT].isNotNull()).select(FAULT).collect())
    domain = with_apart(schema, report.apart(schema)).domain
    whole = CountedTable(domain, report.rows, False, lambda asked: counted(rows, domain, asked, weighted=False))
    sample = open_table(
        path, workdir=source.workdir, threads=source.threads, memory_limit_bytes=source.memory_limit_bytes
    )
    return Scored(sample, whole)


def _written(rows: Iterable[Any], path: Path) -> Path:
    """The rows of `SampleRows` as one Parquet file; no more than one stream of them is held."""
    private_folder(path.parent)
    writer = None
    try:
        for streamed, fault in rows:
            refuse_faults([fault])
            with pa.ipc.open_stream(bytes(streamed)) as stream:
                writer = writer or pq.ParquetWriter(path, stream.schema)
                writer.write_table(stream.read_all())
    finally:
        if writer is not None:
            writer.close()
    return path
