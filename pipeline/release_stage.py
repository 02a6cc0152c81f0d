"""The stages through the wall and right of it: measured with noise, stated, synthesized and released."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from mechanisms.public.coded_table import CodedTable
from mechanisms.public.tables.codec import encode_table
from mechanisms.public.tables.formats import FORMATS
from mechanisms.sensitive.private_choice import kept_choices
from pipeline.made_rows import linked
from pipeline.measuring.acceptance import only_try, settle, table_of
from pipeline.measuring.attempts import Work
from pipeline.plugins.origins import not_ours
from pipeline.release_folder import NewRows, check_seal, write_release
from pipeline.run_context import RunContext, State, present
from pipeline.scores.table_sources import open_released
from pipeline.settings.policy import two_tables
from pipeline.settings.specs import as_released
from pipeline.statement.statement import Bought, declared, make_statement
from synthesis.numbers.value_shapes import as_written

#: Said of a run, and of one that is resumed.
EMPTY = "the noisy total is 0 or less: the synthetic table has no rows; set synthesis.rows or raise ε"


def measure(context: RunContext, state: State) -> State:
    """The noisy answers; with `accept`, those of the try that is released.

    Guarantee: that of the plan.
    Raises:
        Withheld: no try is accepted.
    """
    design, specs = state.design, state.design.specs
    work = Work(
        context.config,
        design.schema,
        specs.synthesizer,
        design.plan,
        present(state.private),
        context.folder,
        context.show,
        context.config.evaluation.holdout,
        state.discovered,
        context.engine.spread,
        state.note,
    )
    return replace(state, work=work, taken=settle(work) if design.plan.scores else only_try(work))


def state_promise(context: RunContext, state: State) -> State:
    """What was promised and spent, from the objects that were used."""
    work, taken, specs = present(state.work), present(state.taken), state.design.specs
    chosen = kept_choices(taken.attempt.answers) | work.answered
    bound = None if work.discovered is None or work.discovered.bound is None else work.discovered.bound.to_json()
    statement = make_statement(
        work.schema,
        work.plan,
        declared(specs, context.start),
        Bought(taken.ledger, taken.measurements, chosen, taken.scores, bound),
        publication=context.who,
        running_total=None if state.total is None else state.total.to_json(),
        not_ours=not_ours(specs, work.plan, present(state.source), taken.measurements, type(work.spec)),
    )
    return replace(state, statement=statement)


def release(context: RunContext, state: State) -> State:
    """`release/` with the try that is taken: the synthetic table's file and its rows; no raw row is read."""
    config, work, taken = context.config, present(state.work), present(state.taken)
    form = FORMATS[config.release.format]
    table, persons = work.folder.release / form.released, None
    if table.parent.exists():  # a resumed run never changes what may be published already
        check_seal(work.folder)
        coded = _reloaded(work, table)
    else:
        coded, rng = table_of(work, taken)
        written = as_written(work.schema, taken.measurements)
        owned = linked(coded, written, rng, context.show)
        persons = int(owned.ids[-1]) if written.rules.arranged and owned.ids is not None and coded.rows else None
        with context.show.stage("release") as report:
            dialect, two = as_released(config.release, work.schema), two_tables(config.release, work.schema)
            measured = replace(work.schema, dialect=dialect), present(state.statement).to_json(), taken.measurements
            rows = NewRows(owned, replace(written, dialect=dialect), rng, config.synthesis.rows, two=two)
            write_release(work.folder, measured, rows, form, signer=context.signer, progress=report)
        if work.schema.rules.computed or work.schema.rules.unit:  # what is computed or linked has codes now
            coded = _reloaded(work, table)
    context.show.warn([EMPTY] if coded.rows == 0 else [])
    return replace(state, table=table, synthetic=coded, persons=persons)


def _reloaded(work: Work, table: Path) -> CodedTable:
    """The rows of a released table as codes."""
    with work.show.stage("reload") as report:
        source = open_released(table, work.config.limits, work.folder.temporary)
        return encode_table(source, work.schema, workdir=work.folder.temporary / "released", progress=report)
