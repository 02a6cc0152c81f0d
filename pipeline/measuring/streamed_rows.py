"""More synthetic rows than memory should hold: drawn from a model in chunks, which lie on disk as columns of codes."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

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


def streamed_rows(
    model: RowModel,
    schema: Schema,
    coarse: Measurements,
    measurements: Measurements,
    *,
    rows: int,
    chunk: int,
    rng: np.random.Generator,
    folder: Path,
    progress: Progress | None = None,
) -> CodedTable:
    """Rows of the table's columns; memory holds a chunk of them, and the table maps files.

    Guarantee: post-processing; costs no privacy.
    Args:
        model: fitted to `coarse`, the answers about the columns that are synthesized.
        measurements: all answers.
        chunk: rows that are drawn at a time; each chunk has a generator of its own, which follows from the seed of
            `rng` and the chunk's number alone.
        folder: where the columns go; made with mode 0700.
    """
    private_folder(folder)
    domain = schema.domain
    paths = [folder / f"{i:04}.codes" for i in range(len(domain))]
    starts = range(0, rows, chunk)
    with ExitStack() as stack:
        files = [stack.enter_context(path.open("wb")) for path in paths]
        for start, own in zip(starts, rng.spawn(len(starts)), strict=True):
            size = min(chunk, rows - start)
            drawn = rows_of_model(coarse, model, rows=size, rng=own, zeros=schema.zeros)
            part = as_columns(drawn, schema, measurements, own)
            for file, attribute in zip(files, domain.attributes, strict=True):
                file.write(np.ascontiguousarray(part.column(attribute.name), code_dtype(attribute.size)).data)
            if progress is not None:
                progress(start + size, rows, "rows drawn")
    columns = (mapped(path, code_dtype(a.size)) for path, a in zip(paths, domain.attributes, strict=True))
    return CodedTable(domain, tuple(columns))
