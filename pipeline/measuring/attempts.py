"""One try of a release: measured through the wall, synthesized, and kept until it is known whether it is accepted."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from evaluation.outcome import plain
from mechanisms.accounting.ledger import Ledger
from mechanisms.accounting.plan import Plan
from mechanisms.public.coded_table import CodedTable
from mechanisms.public.errors import UserError
from mechanisms.public.files import write_whole
from mechanisms.public.release import Measurements
from mechanisms.public.schema.table_schema import Schema
from mechanisms.selection.selections import method_of
from mechanisms.sensitive.measurement import measure_persons
from mechanisms.sensitive.noise import NoiseSource
from mechanisms.sensitive.private_table import EMBEDDED, PrivateTable
from pipeline.folders import Below, RunFolder
from pipeline.measuring.discovered import Discovered, ledger_facts
from pipeline.measuring.fitted_models import build_fit
from pipeline.measuring.selection_context import AdaptiveRun
from pipeline.measuring.streamed_rows import DrawChunk, Spread, streamed_rows
from pipeline.settings import memory
from pipeline.settings.config import Config
from pipeline.stage_bars import Stages
from synthesis.consistency.total import default_rows
from synthesis.contract import Synthesizer
from synthesis.convergence import Convergence, FitRecord
from synthesis.numbers.value_shapes import as_columns, for_synthesis
from synthesis.synthesize import synthesize_recorded


@dataclass(frozen=True, eq=False)
class Work:
    """What every try of a run shares.

    Attributes:
        aside: the probability with which units were set aside; None: none were.
        discovered: what was found out before the plan; None: nothing was asked.
        spread: where chunks of a model's rows are drawn.
        note: what notes each charge in a shared budget; None: none is kept.
    """

    config: Config
    schema: Schema
    spec: Synthesizer
    plan: Plan
    private: PrivateTable
    folder: RunFolder
    show: Stages
    aside: float | None
    discovered: Discovered | None = None
    spread: Spread = EMBEDDED.spread
    note: Callable[[bytes], None] | None = None

    @property
    def answered(self) -> frozenset[str]:
        """Ids of the charges for what was discovered that were not lost."""
        return frozenset() if self.discovered is None else self.discovered.answered


@dataclass(frozen=True)
class Attempt:
    """One try: where it keeps its ledger, its answers, its table and its scores; NOT private.

    Attributes:
        root: internal/, or a folder of its own where there may be several.
        number: from 1; None where there is only one.
    """

    root: Path
    number: int | None = None

    ledger = Below("ledger.jsonl")
    answers = Below("answers")
    table = Below("candidate.npz")
    scores = Below("scored.json")

    def seed(self, given: int | None) -> int | None:
        """A noise seed of its own, where one is given; such a release is not private."""
        if given is None or self.number is None:
            return given
        return int(np.random.SeedSequence([given, self.number]).generate_state(1, np.uint64)[0])


def measured(work: Work, attempt: Attempt, noise: NoiseSource) -> tuple[Measurements, Ledger]:
    """The noisy answers of a try, kept ones as they are, and what was charged for them.

    Guarantee: that of the plan.
    """
    facts, before = ledger_facts(work.aside), None if work.discovered is None else work.discovered.plan
    with work.show.stage("measure") as report:
        ledger = Ledger.open(attempt.ledger, before or work.plan, facts, note=work.note)
        if before is not None:
            ledger = ledger.continued(work.plan)
        fit = build_fit(work.spec, work.plan, work.schema.zeros)
        measurements = measure_plan(AdaptiveRun(work.private, ledger, noise, attempt.answers, fit, report))
    return measurements, ledger


def check_answers(measurements: Measurements, plan: Plan, ledger: Ledger, show: Stages) -> None:
    """Say what was charged and lost; without any answer there is nothing to release."""
    charged = sum(plan.buys_answers(event) for event in ledger.events.values())
    lost = charged - len(measurements.answers)
    problem = f"{lost} of {charged} measurements are spent without an answer (a crash between charge and draw)"
    if not measurements.answers:
        raise UserError(problem, where="resume", fix="a new run, with its own budget")
    if lost:
        show.warn([problem])
    if plan.histogram is not None and measurements.histogram is None:
        show.warn(["the histogram of records per unit is spent without an answer: synthetic rows get no unit ids"])
    if gone := len(asked := plan.of("persons")) - len(measurements.persons):
        show.warn([f"{gone} of {len(asked)} questions about persons are spent without an answer"])


def synthesized(work: Work, measurements: Measurements, rng: np.random.Generator) -> CodedTable:
    """Synthetic rows of the table's columns from the answers; no raw row is read."""
    config, schema, rows = work.config, work.schema, work.config.synthesis.rows
    check = partial(memory.check_rows, schema, measurements, work.spec, rows, config.limits)
    fixed, most = [c for c, _ in schema.zeros], memory.rows_at_once(work.spec, schema, config.accept)
    check(fixed=fixed, at_once=most)
    with work.show.stage("synthesize") as report:
        coarse = for_synthesis(measurements, schema)
        count = default_rows(coarse) if rows is None else rows
        if most is not None and count > most:
            if (model := work.spec.model(coarse, zeros=schema.zeros, progress=report)) is not None:
                _keep_convergence(work.folder, model.fit)
                own = rng.spawn(-(-count // most))
                draw = DrawChunk(model, schema, coarse, measurements, count, most, tuple(own))
                return streamed_rows(draw, work.folder.temporary / "drawn", work.spread, progress=report)
            check(fixed=fixed)  # rows that are changed until they fit are held all together
        result = synthesize_recorded(coarse, work.spec, rows=rows, rng=rng, zeros=schema.zeros, progress=report)
        _keep_convergence(work.folder, result.record or result.fit)
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
