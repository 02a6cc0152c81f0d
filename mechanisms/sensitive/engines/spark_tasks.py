"""What Spark's executors make of slices of a table: codes, texts with their units, a sample. Arrow batches come out.

The work is done by the functions that the embedded engine uses. No error that leaves a task holds a value of a row.
"""

from __future__ import annotations

import hashlib
import io
import json
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from mechanisms.public.coded_table import CodedTable, code_dtype
from mechanisms.public.domain import Domain
from mechanisms.public.errors import UserError
from mechanisms.public.rules.engineering import Engineering, engineer, refuse_conflicts
from mechanisms.public.schema.column import Column
from mechanisms.public.schema.table_schema import Schema
from mechanisms.public.tables.codec import EncodingReport, coded_batch, refuse_marked, report_of, rows_per_text
from mechanisms.public.tables.encode import MARKS as ENCODING_MARKS
from mechanisms.public.tables.encode import encoding
from mechanisms.public.tables.scan import Source
from mechanisms.sensitive.contribution import PrivacyUnit, unit_forms
from mechanisms.sensitive.engines.duckdb_engine import CONTENT, UNIT, row_names

Batches = Iterator[Any]
#: Of a batch, in its first row: what encoding marked, and why a slice could not be read (alone, in a batch of its own).
MARKS, FAULT = "marks", "fault"
WEIGHT, ROWS = "weight", "rows"
BESIDE = [(UNIT, pa.string()), (CONTENT, pa.string()), (FAULT, pa.string())]


def signed(size: int) -> Any:
    """The Arrow type that holds codes 0 … size − 1 on an engine without unsigned numbers."""
    return {1: pa.int16(), 2: pa.int32()}.get(code_dtype(size).itemsize, pa.int64())


def code_name(place: int) -> str:
    """The column of the codes of an attribute, by its place in the domain."""
    return f"c{place:04}"


def code_fields(domain: Domain) -> list[tuple[str, Any]]:
    """The columns of encoded rows."""
    return [(code_name(i), signed(a.size)) for i, a in enumerate(domain.attributes)]


@dataclass(frozen=True)
class SliceTask:
    """Slices are read, one after the other, by the engine that reads tables everywhere.

    Attributes:
        source: as the driver opened it; the relation is each slice's own.
        unit: whose ids are read.
        contents: as of `Engine.encode`.
        memory_limit_bytes: of one task.
    """

    source: Source
    unit: PrivacyUnit
    contents: bytes | None = field(repr=False)
    memory_limit_bytes: int

    def __call__(self, batches: Batches) -> Batches:
        """A row per slice in, rows out."""
        for batch in batches:
            for part, relation in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                yield from self.slice(part, relation)

    def slice(self, part: str, relation: str) -> Batches:
        """The rows of a slice, in batches that have some; one that cannot be read gives a row that says why."""
        with tempfile.TemporaryDirectory(prefix="slice-") as folder:
            try:
                own = replace(
                    self.source, path=Path(part), parts=(Path(part),), relation=relation, workdir=Path(folder)
                )
                batches = self.rows(replace(own, memory_limit_bytes=self.memory_limit_bytes, threads=1))
                yield from (batch for batch in batches if batch.num_rows)
            except UserError as error:
                yield pa.RecordBatch.from_pylist([{FAULT: fault_of(error)}], schema=self.fields)
            except Exception as error:
                raise without_values(error) from None

    @property
    def fields(self) -> Any:
        """The columns that come out."""
        raise TypeError("a slice is read by a task of its own kind")

    def rows(self, source: Source) -> Batches:
        """The rows of one slice."""
        raise TypeError("a slice is read by a task of its own kind")

    @cached_property
    def beside(self) -> dict[str, str]:
        """What is read beside: name → SQL."""
        return row_names(self.source, self.unit, contents=self.contents)

    def beside_of(self, batch: Any) -> list[Any]:
        """Unit, content and no fault of each row of a batch, whose last columns they are."""
        ids, content = batch.columns[-2:]
        ids = ids if self.unit.column is None else unit_forms(ids, self.source, self.unit)
        return [ids.cast(pa.string()), content.cast(pa.string()), pa.nulls(batch.num_rows, pa.string())]


@dataclass(frozen=True)
class EncodeSlices(SliceTask):
    """Slices become codes of the measured domain."""

    schema: Schema

    @cached_property
    def fields(self) -> Any:
        """The columns of encoded rows, with the unit of each."""
        return pa.schema([*code_fields(self.schema.measured), (MARKS, pa.list_(pa.int64())), *BESIDE])

    def rows(self, source: Source) -> Batches:
        plan = encoding(source, self.schema, self.beside, fine=True)
        batches = source.batches(plan.select, first=plan.types)
        return (self._coded(batch) for batch in batches if batch.num_rows)

    def _coded(self, batch: Any) -> Any:
        columns, marks = coded_batch(batch, self.schema, apart=False, fine=True)
        held = rows_per_text(columns, self.schema)
        own, plan = len(self.schema.columns), steps_that_never_refuse(self.schema.engineering)
        conflicts: list[int] = []
        if plan.steps:
            engineered, by_rule = engineer(CodedTable(self.schema.domain, tuple(columns[:own])), plan)
            columns, conflicts = [*engineered.columns, *columns[own:]], [by_rule[s.rule] for s in plan.steps]
        facts = [batch.num_rows, *marks.ravel().tolist(), *conflicts, *held.tolist()]
        noted = pa.array([facts, *[None] * (batch.num_rows - 1)], pa.list_(pa.int64()))
        codes = [pa.array(c).cast(self.fields.field(i).type) for i, c in enumerate(columns)]
        return pa.RecordBatch.from_arrays([*codes, noted, *self.beside_of(batch)], schema=self.fields)


def report_of_slices(schema: Schema, notes: Sequence[Sequence[int]]) -> EncodingReport:
    """What encoding could not take, from the notes (`MARKS`) of all batches.

    Raises:
        UserError: a value that a column refuses, or a row that a rule refuses.
    """
    columns, rules = len(schema.columns), [step.rule for step in schema.engineering.steps]
    texts = sum(c.value_codes for c in schema.columns if c.listed)
    parts = [1, len(ENCODING_MARKS) * columns, len(rules), texts]
    total = np.array(notes, np.int64).sum(axis=0) if notes else np.zeros(sum(parts), np.int64)
    rows, flat, against, held = np.split(total, np.cumsum(parts[:-1]))
    marks = flat.reshape(columns, len(ENCODING_MARKS))
    refuse_marked(schema, marks)
    conflicts: Mapping[str, int] = dict(zip(rules, map(int, against), strict=True))
    refuse_conflicts(schema.engineering, conflicts)
    return replace(report_of(int(rows[0]), schema, marks, held), conflicts=conflicts)


def fault_of(error: UserError) -> str:
    """An error of the user's as text, for the driver."""
    return json.dumps([error.what, error.where, error.fix])


def refuse_faults(faults: Iterable[str | None]) -> None:
    """Ends the work where a slice found a fault; of several the first by text, so that retries name the same.

    Raises:
        UserError: a slice could not be read.
    """
    for fault in sorted(fault for fault in faults if fault is not None):
        problem, where, fix = json.loads(fault)
        raise UserError(problem, where=where, fix=fix)


def steps_that_never_refuse(plan: Engineering) -> Engineering:
    """The same steps; rows that contradict a rule are counted, and the driver refuses them."""
    steps = (replace(s, conflict="mapping") if s.conflict == "refuse" else s for s in plan.steps)
    return replace(plan, steps=tuple(steps))


@dataclass(frozen=True)
class EncodeTruth(SliceTask):
    """Slices become codes of the schema's own columns, with a code apart for what it has no place for: for scores."""

    schema: Schema

    @cached_property
    def fields(self) -> Any:
        """The columns that come out: one more code each than the schema has."""
        codes = [(code_name(i), signed(c.size + 1)) for i, c in enumerate(self.schema.columns)]
        return pa.schema([*codes, (FAULT, pa.string())])

    def rows(self, source: Source) -> Batches:
        plan = encoding(source, self.schema)
        for batch in source.batches(plan.select, first=plan.types):
            columns, _ = coded_batch(batch, self.schema, apart=True, fine=False)
            codes = [pa.array(c).cast(self.fields.field(i).type) for i, c in enumerate(columns)]
            yield pa.RecordBatch.from_arrays([*codes, pa.nulls(batch.num_rows, pa.string())], schema=self.fields)


@dataclass(frozen=True)
class SampleRows(SliceTask):
    """Slices give some of their rows, as the file has them, for scores: an Arrow stream in each row that comes out.

    Attributes:
        share: of the rows. Who reads a slice again draws the same rows: the draws follow from the slice.
    """

    share: float

    @cached_property
    def fields(self) -> Any:
        return pa.schema([(ROWS, pa.binary()), (FAULT, pa.string())])

    def rows(self, source: Source) -> Batches:
        """Rows of one slice, drawn at random: the same in every run of the task."""
        digest = hashlib.blake2b(source.relation.encode(), digest_size=8).digest()
        rng = np.random.default_rng(int.from_bytes(digest, "big"))
        names = ", ".join(f"c{i}" for i in range(len(source.names)))
        for batch in source.batches(f"SELECT {names} FROM {source.relation}"):
            drawn = batch.filter(pa.array(rng.random(batch.num_rows) < self.share))
            drawn = drawn.rename_columns(list(source.names))
            out = io.BytesIO()
            with pa.ipc.new_stream(out, drawn.schema) as writer:
                writer.write_batch(drawn)
            yield pa.RecordBatch.from_pydict({ROWS: [out.getvalue()], FAULT: [None]}, schema=self.fields)


@dataclass(frozen=True)
class ReadTexts(SliceTask):
    """Slices give the texts of some columns, named v0, v1, …, with the unit of each row."""

    columns: Sequence[Column]

    @cached_property
    def fields(self) -> Any:
        return pa.schema([*((f"v{i}", pa.string()) for i in range(len(self.columns))), *BESIDE])

    def rows(self, source: Source) -> Batches:
        texts = [source.text(source.declared(c.name)) for c in self.columns]
        named = [f"{sql} AS v{i}" for i, sql in enumerate(texts)]
        named += [f"{sql} AS {name}" for name, sql in self.beside.items()]
        for batch in source.batches(f"SELECT {', '.join(named)} FROM {source.relation}"):
            values = [batch.column(i).cast(pa.string()) for i in range(len(texts))]
            yield pa.RecordBatch.from_arrays([*values, *self.beside_of(batch)], schema=self.fields)


def without_values(error: Exception) -> RuntimeError:
    """An error of a task as it may be logged: its kind and its place in the code, and nothing of the rows."""
    last = error.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    place = "" if last is None else f" at {Path(last.tb_frame.f_code.co_filename).name}:{last.tb_lineno}"
    return RuntimeError(f"a task failed with {type(error).__name__}{place}")
