"""One try of a release: measured through the wall, synthesized, and kept until it is known whether it is accepted.

More synthetic rows than memory should hold are drawn from a model in chunks, which lie on disk as columns of codes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from evaluation.outcome import plain
from mechanisms.accounting.ledger import Ledger
from mechanisms.accounting.plan import Plan
from mechanisms.public.coded_table import CodedTable, code_dtype
from mechanisms.public.errors import UserError
from mechanisms.public.files import write_whole
from mechanisms.public.progress import Progress
from mechanisms.public.release import Measurements
from mechanisms.public.schema.table_schema import Schema
from mechanisms.public.tables.codec import mapped
from mechanisms.public.tables.scan import private_folder
from mechanisms.selection.selections import method_of
from mechanisms.sensitive.measurement import measure_persons
from mechanisms.sensitive.noise import NoiseSource
from pipeline.folders import RunFolder
from pipeline.measuring.selection_context import AdaptiveRun
from pipeline.run_context import Attempt, State, present
from pipeline.settings import memory
from pipeline.stage_bars import Stages
from synthesis.consistency.agree import default_rows
from synthesis.contract import RowModel, rows_of_model, synthesize
from synthesis.convergence import Convergence, FitRecord
from synthesis.numbers.value_shapes import as_columns, for_synthesis

#: Makes the parts of these numbers somewhere, and gives their columns in this order.
Spread: TypeAlias = Callable[[Callable[[int], CodedTable], range], Iterator[tuple[Any, ...]]]


def measured(state: State, attempt: Attempt, noise: NoiseSource) -> tuple[Measurements, Ledger]:
    """The noisy answers of a try, kept ones as they are, and what was charged for them.

    Guarantee: that of the plan.
    """
    before = None if state.discovered is None else state.discovered.plan
    with state.show.stage("measure") as report:
        ledger = state.opened_ledger(attempt.ledger, before or state.plan)
        if before is not None:
            ledger = ledger.continued(state.plan)
        spec, zeros, table = state.design.specs.synthesizer, state.schema.zeros, present(state.private)
        measurements = measure_plan(AdaptiveRun(table, ledger, noise, attempt.answers, spec, zeros, report))
    return measurements, ledger


def check_answers(measurements: Measurements, plan: Plan, ledger: Ledger, show: Stages) -> None:
    """Say what was charged and lost; without any answer there is nothing to release."""
    charged = sum(plan.buys_answers(event) for event in ledger.events.values())
    lost = charged - len(measurements.answers)
    problem = f"{lost} of {charged} measurements are spent without an answer (a crash between charge and draw)"
    if not measurements.answers:
        if not charged:
            raise UserError("it asked nothing, and nothing was charged", where="selection", fix="another selection")
        raise UserError(problem, where="resume", fix="a new run, with its own budget")
    if lost:
        show.warn([problem])
    if plan.histogram is not None and measurements.histogram is None:
        show.warn(["the histogram of records per unit is spent without an answer: synthetic rows get no unit ids"])
    asked, answered = [c.person_question.label for c in plan.of("persons")], {a.clique for a in measurements.persons}
    if gone := [", ".join(label) for label in asked if label not in answered]:
        problem = f"{len(gone)} of {len(asked)} questions about persons are spent without an answer"
        show.warn([f"{problem}: {'; '.join(gone)}"])


def synthesized(state: State, measurements: Measurements, rng: np.random.Generator) -> CodedTable:
    """Synthetic rows of the table's columns from the answers; no raw row is read."""
    config, schema, spec, rows = state.config, state.schema, state.design.specs.synthesizer, state.config.synthesis.rows
    check = partial(memory.check_rows, schema, measurements, spec, rows, config.limits)
    fixed, most = [c for c, _ in schema.zeros], memory.rows_at_once(spec, schema, config.accept)
    check(fixed=fixed, at_once=most)
    with state.show.stage("synthesize") as report:
        coarse = for_synthesis(measurements, schema)
        state.show.warn(memory.no_room(spec, coarse, fixed))
        count = default_rows(coarse) if rows is None else rows
        if most is not None and count > most:
            if (model := spec.model(coarse, zeros=schema.zeros, progress=report)) is not None:
                _keep_convergence(state.folder, model.fit)
                own = rng.spawn(-(-count // most))
                draw = DrawChunk(model, schema, coarse, measurements, count, most, tuple(own))
                return streamed_rows(draw, state.folder.temporary / "drawn", state.engine.spread, progress=report)
            check(fixed=fixed)  # rows that are changed until they fit are held all together
        result = synthesize(coarse, spec, rows=rows, rng=rng, zeros=schema.zeros, progress=report)
        _keep_convergence(state.folder, result.record or result.fit)
        return as_columns(result.table, schema, measurements, rng)


def _keep_convergence(folder: RunFolder, record: Convergence | FitRecord | None) -> None:
    """The synthesizer's record, for the report: it follows from noisy answers alone, but is not part of the release."""
    if record is not None:
        write_whole(folder.convergence, json.dumps(plain(record.to_json()), allow_nan=False), mode=0o600)


def measure_plan(run: AdaptiveRun) -> Measurements:
    """Measure what a plan says, in one round or in several.

    Guarantee: the answers and the choices together are (ε, δ)-DP for the plan's unit and neighbouring relation. Between
        rounds only kept answers and public facts are read, so that an interrupted run goes on with the same choices.
    """
    persons = measure_persons(run.table, run.ledger, run.source, answers_dir=run.folder)
    run.folder.mkdir(mode=0o700, exist_ok=True)
    method_of(run.plan.method).run(run)
    return replace(run.measurements, persons=persons)


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
