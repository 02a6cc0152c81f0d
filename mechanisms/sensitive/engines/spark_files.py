"""Rows that executors keep as Parquet: by tasks of ours, or by Spark where the folder is an address of Hadoop's.

A table passes through Java only where units meet in a shuffle, and where the folder has no path: what a task reads,
encodes, writes and counts stays in its own process.
"""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from mechanisms.public.coded_table import CodedTable, code_dtype
from mechanisms.public.errors import UserError
from mechanisms.public.tables.scan import private_folder
from mechanisms.sensitive.engines import slices
from mechanisms.sensitive.engines.spark_session import SCRATCH, spark_errors
from mechanisms.sensitive.engines.spark_tasks import (
    FAULT,
    MARKS,
    SliceTask,
    code_name,
    fault_of,
    refuse_faults,
    without_values,
)

#: A path and the relation that reads it, as of `slices`.
Slice = tuple[str, str]
#: How paths of the machine begin in addresses of Hadoop's.
PATHS = "file:"


@dataclass(frozen=True)
class Note:
    """What became of one slice: the files that hold its rows, the sum of its batches' marks, or why it has none."""

    files: tuple[str, ...] = ()
    marks: tuple[list[int], ...] = ()
    fault: str | None = None


def not_written(error: OSError, folder: str) -> Note:
    """The note of a slice, or part, whose file could not be written."""
    problem, fix = f"cannot write: {error.strerror}", f"free some space there, or another {SCRATCH}"
    return Note(fault=fault_of(UserError(problem, where=folder, fix=fix)))


def new_path(folder: str) -> str:
    """A path of a file that is not there yet, also where a task runs twice; the folder is made."""
    private_folder(Path(folder))
    return f"{folder}/part-{secrets.token_hex(8)}.parquet"


def own_file(path: str) -> BinaryIO:
    """A new file that its owner alone may read, open for writing."""
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")


@dataclass(frozen=True)
class KeepRows:
    """What a task makes of its slices goes to files: slices in, a note of each out.

    The driver reads the files that notes name, and no others: those of tasks that were lost or repeated count nowhere.
    """

    task: SliceTask
    folder: str

    def __call__(self, parts: Iterable[Slice]) -> Iterator[Note]:
        """No error that leaves it holds a value of a row."""
        for part in parts:
            try:
                yield self._stored(self.task.slice(*part))
            except OSError as error:
                yield not_written(error, self.folder)
            except Exception as error:
                raise without_values(error) from None

    def _stored(self, batches: Iterable[Any]) -> Note:
        """Files of SLICE_ROWS rows, about, so that several tasks share what one slice has; at least one, of no rows."""
        fields, rows = stored_fields(self.task), 0
        files: list[str] = []
        marks: list[list[int]] = []
        with ExitStack() as stack:
            writer = self._file(stack, fields, files)
            for batch in batches:
                if (fault := batch.column(FAULT)[0].as_py()) is not None:
                    return Note(fault=fault)
                if MARKS in batch.schema.names:
                    marks = [np.sum([*marks, batch.column(MARKS)[0].as_py()], axis=0).tolist()]
                if rows >= slices.SLICE_ROWS:
                    stack.close()
                    writer, rows = self._file(stack, fields, files), 0
                writer.write_batch(batch.select(fields.names))
                rows += batch.num_rows
        return Note(tuple(files), tuple(marks))

    def _file(self, stack: ExitStack, fields: Any, files: list[str]) -> Any:
        files.append(new_path(self.folder))
        file = stack.enter_context(own_file(files[-1]))
        return stack.enter_context(pq.ParquetWriter(file, fields, write_statistics=False))


def stored_fields(task: SliceTask) -> Any:
    """The columns that are kept: marks and faults go to the driver."""
    return pa.schema([field for field in task.fields if field.name not in {MARKS, FAULT}])


@dataclass(frozen=True, eq=False)
class StoredRows:
    """Rows as Parquet in the engine's folder. NOT private.

    Attributes:
        fields: their columns, as Arrow has them.
        place: the folder, as Spark knows it.
        files: paths that every executor can open; None where Spark alone reads the folder.
        marks: what was marked in each slice, or batch, that was read.
    """

    session: Any
    fields: Any
    place: str
    files: tuple[str, ...] | None
    marks: Sequence[Sequence[int]] = ()

    @cached_property
    def frame(self) -> Any:
        """The rows as Spark reads them."""
        from pyspark.sql.pandas.types import from_arrow_schema

        places = [self.place] if self.files is None else [f"{PATHS}{file}" for file in self.files]
        return self.session.read.schema(from_arrow_schema(self.fields)).parquet(*map(no_glob, places))

    def column(self, name: str) -> Iterator[Any]:
        """The values of one column, one after the other, on the driver."""
        if self.files is None:
            yield from (row[0] for row in self.frame.select(name).toLocalIterator())
            return
        for path in self.files:
            with pq.ParquetFile(path) as file:
                for batch in file.iter_batches(batch_size=1, columns=[name]):
                    yield from batch.column(0).to_pylist()


def keep(session: Any, task: SliceTask, parts: Sequence[Slice], place: str) -> StoredRows:
    """What a task makes of slices, a partition for each, in a folder that is not there yet.

    Raises:
        UserError: a slice that cannot be read; a folder that cannot be written.
    """
    folder = path_of(place)
    with spark_errors():
        if folder is None:
            return _stored_by_spark(session, task, parts, place)
        given = session.sparkContext.parallelize(parts, len(parts))
        notes = given.mapPartitions(KeepRows(task, folder)).collect()
    refuse_faults(note.fault for note in notes)
    files = tuple(file for note in notes for file in note.files)
    return StoredRows(session, stored_fields(task), place, files, [m for note in notes for m in note.marks])


def _stored_by_spark(session: Any, task: SliceTask, parts: Sequence[Slice], place: str) -> StoredRows:
    from pyspark.sql.pandas.types import from_arrow_schema

    given = session.createDataFrame(session.sparkContext.parallelize(parts, len(parts)), "part string, relation string")
    given.mapInArrow(task, from_arrow_schema(task.fields)).write.parquet(place)
    rows = session.read.parquet(no_glob(place))
    noted = rows.where(rows[FAULT].isNotNull())
    refuse_faults(row[0] for row in noted.select(FAULT).collect())
    marks = []
    if MARKS in rows.columns:
        marks = [row[0] for row in rows.where(rows[MARKS].isNotNull()).select(MARKS).collect()]
    return StoredRows(session, stored_fields(task), place, None, marks)


def keep_frame(session: Any, frame: Any, fields: Any, place: str) -> StoredRows:
    """A data frame with these columns, in a folder that is not there yet."""
    with spark_errors():
        frame.select(*fields.names).write.parquet(place)
    folder = path_of(place)
    files = None if folder is None else tuple(str(path) for path in sorted(Path(folder).glob("*.parquet")))
    return StoredRows(session, fields, place, files)


def path_of(place: str) -> str | None:
    """A folder as a path that tasks open themselves; None where it is an address of Hadoop's."""
    return re.sub("^/+", "/", place.removeprefix(PATHS)) if place.startswith(PATHS) else None


def no_glob(place: str) -> str:
    """The address with Hadoop's wildcards taken literally."""
    return re.sub(r"([*?\[\]{}\\])", r"\\\1", place)


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


def coded_parts(
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
