"""Counts of marginals on Spark: each task counts the rows of its files, and blocks of counts are summed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from mechanisms.public.coded_table import STEP, CodedTable, add_counts, code_dtype
from mechanisms.public.domain import Clique, Domain
from mechanisms.sensitive.engines.spark_files import StoredRows
from mechanisms.sensitive.engines.spark_session import spark_errors
from mechanisms.sensitive.engines.spark_tasks import WEIGHT, code_name, without_values

#: Cells that travel together.
BLOCK = 1 << 16
#: The number of a block; its cells that are not 0, where these are few; their counts.
Block = tuple[int, tuple[bytes | None, bytes]]
#: Of blocks that come through Arrow.
BLOCK_FIELDS = pa.schema([("block", pa.int32()), ("cells", pa.binary()), ("counts", pa.binary())])
#: At most so many tasks count, each the rows of several files: what travels is bounded, however many the rows.
TASKS = 4096
#: Counts of so many bytes are summed by the driver; more of them meet in a shuffle first.
AT_ONCE = 1 << 26


def counted(rows: StoredRows, domain: Domain, cliques: Sequence[Clique], *, weighted: bool) -> list[NDArray[np.int64]]:
    """The counts of each clique, as of `count_cliques`.

    Only the columns that the marginals need are read; what travels are counts, never rows.
    """
    names = {name for clique in cliques for name in clique}
    places = [i for i, a in enumerate(domain.attributes) if a.name in names]
    columns = (*(code_name(i) for i in places), *([WEIGHT] if weighted else []))
    task = CountCodes(Domain(tuple(domain.attributes[i] for i in places)), tuple(cliques), columns, weighted)
    cells = [domain.cells(c) for c in cliques]
    number = -(-sum(cells) // BLOCK)
    flat = np.zeros(number * BLOCK, np.int64)
    with spark_errors():
        blocks = _blocks_of_tasks(rows, task)
        tasks = blocks.getNumPartitions()
        if tasks * flat.nbytes > AT_ONCE:
            blocks = blocks.partitionBy(min(number, tasks), int).mapPartitions(sum_blocks)
        for block, counts in summed(blocks.collect()).items():
            flat[block * BLOCK : (block + 1) * BLOCK] = counts
    return [part.copy() for part in np.split(flat[: sum(cells)], np.cumsum(cells)[:-1])]


def _blocks_of_tasks(rows: StoredRows, task: CountCodes) -> Any:
    """What each task counts."""
    if rows.files is not None:
        given = rows.session.sparkContext.parallelize(rows.files, min(len(rows.files), TASKS))
        return given.mapPartitions(task.of_files)
    from pyspark.sql.pandas.types import from_arrow_schema

    counts = rows.frame.select(*task.columns).mapInArrow(task.of_batches, from_arrow_schema(BLOCK_FIELDS))
    return counts.rdd.map(_block_of_row)


def _block_of_row(row: Any) -> Block:
    number, cells, counts = row
    return number, (None if cells is None else bytes(cells), bytes(counts))


@dataclass(frozen=True)
class CountCodes:
    """Rows of codes become counts of marginals: those of one task, in blocks of cells.

    Attributes:
        domain: of the columns that are read, in their order.
        columns: their names, and that of the weights behind them.
        weighted: whether there are weights.
    """

    domain: Domain
    cliques: tuple[Clique, ...]
    columns: tuple[str, ...]
    weighted: bool

    def of_files(self, files: Iterable[str]) -> Iterator[Block]:
        """Paths of Parquet in, blocks of counts out, without those that hold no count."""
        return self._counted(batch for path in files for batch in self._batches(path))

    def of_batches(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Batches of Arrow in, blocks of counts as batches out, of one block each."""
        for number, (cells, counts) in self._counted(batches):
            arrays = [pa.array([number], pa.int32()), pa.array([cells], pa.binary()), pa.array([counts], pa.binary())]
            yield pa.RecordBatch.from_arrays(arrays, schema=BLOCK_FIELDS)

    def _batches(self, path: str) -> Iterator[Any]:
        with pq.ParquetFile(path, memory_map=True) as file:
            yield from file.iter_batches(batch_size=STEP, columns=list(self.columns), use_threads=False)

    def _counted(self, batches: Iterable[Any]) -> Iterator[Block]:
        try:
            flat = np.zeros(sum(self.domain.cells(c) for c in self.cliques), np.int64)
            parts = np.split(flat, np.cumsum([self.domain.cells(c) for c in self.cliques])[:-1])
            for batch in batches:
                add_counts(parts, self._table(batch), self.cliques)
            yield from blocks_of(flat)
        except Exception as error:
            raise without_values(error) from None

    def _table(self, batch: Any) -> CodedTable:
        arrays = [batch.column(name).to_numpy(zero_copy_only=False) for name in self.columns]
        codes = [a.astype(code_dtype(b.size)) for a, b in zip(arrays, self.domain.attributes, strict=False)]
        weights = arrays[-1].astype(np.uint32) if self.weighted else None
        return CodedTable(self.domain, tuple(codes), weights)


def blocks_of(flat: NDArray[np.int64]) -> Iterator[Block]:
    """The blocks of a vector of counts that hold any: all counts of a block, or its cells that are not 0 if smaller."""
    for number in range(-(-flat.size // BLOCK)):
        counts = flat[number * BLOCK : (number + 1) * BLOCK]
        cells = np.flatnonzero(counts).astype(np.int32)
        if 12 * cells.size >= 8 * counts.size:
            yield number, (None, counts.tobytes())
        elif cells.size:
            yield number, (cells.tobytes(), counts[cells].tobytes())


def sum_blocks(blocks: Iterable[Block]) -> Iterator[Block]:
    """Blocks of counts from several tasks → each block once, with the sum of its counts."""
    try:
        for number, counts in summed(blocks).items():
            yield from ((number, block) for _, block in blocks_of(counts))
    except Exception as error:
        raise without_values(error) from None


def summed(blocks: Iterable[Block]) -> dict[int, NDArray[np.int64]]:
    """The sums of blocks of counts, by their numbers."""
    sums: dict[int, NDArray[np.int64]] = {}
    for number, (cells, counts) in blocks:
        total = sums.setdefault(number, np.zeros(BLOCK, np.int64))
        values = np.frombuffer(counts, np.int64)
        if cells is None:
            total[: values.size] += values
        else:
            total[np.frombuffer(cells, np.int32)] += values
    return sums
