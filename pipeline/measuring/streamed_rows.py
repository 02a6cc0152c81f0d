"""More synthetic rows than memory should hold: drawn from a model in chunks, which lie on disk as columns of codes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from mechanisms.public.coded_table import CodedTable, code_dtype
from mechanisms.public.progress import Progress
from mechanisms.public.release import Measurements
from mechanisms.public.schema.table_schema import Schema
from mechanisms.public.tables.codec import mapped
from mechanisms.public.tables.scan import private_folder
from synthesis.contract import RowModel
from synthesis.numbers.value_shapes import as_columns
from synthesis.synthesize import rows_of_model

#: Makes the parts of these numbers somewhere, and gives their columns in this order.
Spread: TypeAlias = Callable[[Callable[[int], CodedTable], range], Iterator[tuple[Any, ...]]]


@dataclass(frozen=True, eq=False)
class DrawChunk:
    """Draws one chunk of a model's rows, wherever it is asked to; its generator follows from seed and number alone.

    Attributes:
        model: fitted to `coarse`, the answers about the columns that are synthesized.
        measurements: all answers.
        rows, chunk: of the whole table, and of a chunk; the last one is smaller.
        generators: one for each chunk, spawned from one seed.
    """

    model: RowModel
    schema: Schema
    coarse: Measurements
    measurements: Measurements
    rows: int
    chunk: int
    generators: tuple[np.random.Generator, ...]

    def __call__(self, number: int) -> CodedTable:
        own, size = self.generators[number], min(self.chunk, self.rows - number * self.chunk)
        drawn = rows_of_model(self.coarse, self.model, rows=size, rng=own, zeros=self.schema.zeros)
        return as_columns(drawn, self.schema, self.measurements, own)


def streamed_rows(draw: DrawChunk, folder: Path, spread: Spread, *, progress: Progress | None = None) -> CodedTable:
    """Rows of the table's columns; memory holds a chunk of them, and the table maps files.

    Guarantee: post-processing; costs no privacy.
    Args:
        folder: where the columns go; made with mode 0700.
        spread: where chunks are drawn; the rows are the same wherever that is.
    """
    private_folder(folder)
    domain, rows = draw.schema.domain, draw.rows
    paths = [folder / f"{i:04}.codes" for i in range(len(domain))]
    numbers = range(len(draw.generators))
    with ExitStack() as stack:
        files = [stack.enter_context(path.open("wb")) for path in paths]
        for number, part in zip(numbers, spread(draw, numbers), strict=True):
            for file, attribute, column in zip(files, domain.attributes, part, strict=True):
                file.write(np.ascontiguousarray(column, code_dtype(attribute.size)).data)
            if progress is not None:
                progress(min((number + 1) * draw.chunk, rows), rows, "rows drawn")
    columns = (mapped(path, code_dtype(a.size)) for path, a in zip(paths, domain.attributes, strict=True))
    return CodedTable(domain, tuple(columns))
