"""Parts of a table that executors make from what is no private row: a synthetic table's, drawn from a model."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from mechanisms.public.coded_table import CodedTable, code_dtype
from mechanisms.public.errors import UserError
from mechanisms.sensitive.engines.spark_files import Note, new_path, not_written, own_file
from mechanisms.sensitive.engines.spark_session import spark_errors
from mechanisms.sensitive.engines.spark_tasks import code_name, fault_of, refuse_faults, without_values


@dataclass(frozen=True)
class MakeParts:
    """A task: numbers in, a note of each part out. A part of a task that was lost or repeated is read by nobody."""

    make: Callable[[int], CodedTable]
    folder: str

    def __call__(self, numbers: Iterable[int]) -> Iterator[Note]:
        """A part is one file of Parquet, with the columns of codes in the domain's order."""
        for number in numbers:
            try:
                yield Note((self._written(self.make(number)),))
            except UserError as error:
                yield Note(fault=fault_of(error))
            except OSError as error:
                yield not_written(error, self.folder)
            except Exception as error:
                raise without_values(error) from None

    def _written(self, part: CodedTable) -> str:
        sizes, path = [a.size for a in part.domain.attributes], new_path(self.folder)
        arrays = [pa.array(c.astype(code_dtype(s), copy=False)) for c, s in zip(part.columns, sizes, strict=True)]
        with own_file(path) as file:
            names = [code_name(i) for i in range(len(arrays))]
            pq.write_table(pa.Table.from_arrays(arrays, names=names), file, write_statistics=False)
        return path


def made_parts(
    session: Any, make: Callable[[int], CodedTable], numbers: range, folder: str
) -> Iterator[tuple[Any, ...]]:
    """The columns of codes of each part, in the order of the numbers; its file is deleted when the next one is asked.

    Args:
        make: picklable; the same number gives the same part, wherever it is made.
        folder: one that driver and executors share, not there yet.
    Raises:
        UserError: a part that cannot be made or written.
    """
    with spark_errors():
        given = session.sparkContext.parallelize(numbers, len(numbers))
        notes = given.mapPartitions(MakeParts(make, folder)).collect()
    refuse_faults(note.fault for note in notes)
    for path in (path for note in notes for path in note.files):  # collected in the order of the numbers
        with pq.ParquetFile(path) as file:
            table = file.read()
        yield tuple(column.to_numpy() for column in table.columns)
        Path(path).unlink()
