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
from mechanisms.sensitive.engines.spark_files import KeptRows
from mechanisms.sensitive.engines.spark_session import spark_errors
from mechanisms.sensitive.engines.spark_tasks import ROWS, EncodeTruth, SampleRows, SliceTask


class Tasks(Protocol):
    """What scores need of the engine."""

    @property
    def score_rows(self) -> int: ...

    def keep(self, task: SliceTask, name: str) -> KeptRows:
        """What the task makes of the slices of its table, in the engine's folder."""
        ...

    def memory_of(self, source: Source) -> int:
        """What the reader of one slice may use."""
        ...


def scored_rows(engine: Tasks, source: Source, schema: Schema, report: EncodingReport, workdir: Path) -> Scored:
    """As of `Engine.scored`: the table is read twice more, by the executors; NOT private.

    The driver holds what it writes of the sample, a batch at a time.
    """
    unit, memory = PrivacyUnit(), engine.memory_of(source)
    share = engine.score_rows / report.rows
    drawn = engine.keep(SampleRows(source, unit, None, memory, share), "sample")
    with spark_errors():
        path = _written(drawn.column(ROWS), workdir / "sample.parquet")
    rows = engine.keep(EncodeTruth(source, unit, None, memory, schema), "truth")
    domain = with_apart(schema, report.apart(schema)).domain
    whole = CountedTable(domain, report.rows, False, lambda asked: counted(rows, domain, asked, weighted=False))
    sample = open_table(
        path, workdir=source.workdir, threads=source.threads, memory_limit_bytes=source.memory_limit_bytes
    )
    return Scored(sample, whole)


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
