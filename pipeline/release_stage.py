"""The stages through the wall and right of it: measured with noise, stated, synthesized and released."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from mechanisms.public.coded_table import CodedTable
from mechanisms.public.tables.codec import encode_columns
from mechanisms.public.tables.formats import FORMATS
from mechanisms.public.tables.losses import percent
from mechanisms.public.tables.value_summaries import rows_clipped
from mechanisms.sensitive.private_choice import stored_choices
from pipeline.measuring.acceptance import settle, table_of
from pipeline.plugins.origins import not_ours
from pipeline.release_folder import NewRows, check_seal, write_release
from pipeline.row_maker import linked
from pipeline.run_context import State, present
from pipeline.scores.table_sources import open_released
from pipeline.settings.specs import as_released, two_tables
from pipeline.statement.statement import declared, make_statement
from synthesis.numbers.value_shapes import as_written

#: Said of a run, and of one that is resumed.
EMPTY = "the noisy total is 0 or less: the synthetic table has no rows; set synthesis.rows or raise ε"
#: Said of a column that is computed.
CLIPPED = "{}: in {} of the synthetic rows it lies beyond min or max, and takes that: "
CLIPPED += "wider bounds keep the expression, and outside: missing leaves it empty"


def measure(state: State) -> State:
    """The noisy answers; with `accept`, those of the try that is released.

    Guarantee: that of the plan.
    Raises:
        Withheld: no try is accepted.
    """
    return replace(state, taken=settle(state))


def state_promise(state: State) -> State:
    """What was promised and spent, from the objects that were used."""
    taken, specs, discovered = present(state.taken), state.design.specs, state.discovered
    chosen = stored_choices(taken.attempt.answers) | (frozenset() if discovered is None else discovered.answered)
    statement = make_statement(
        state.schema,
        state.plan,
        declared(specs, state.start),
        replace(taken, chosen=chosen, bound=None if discovered is None else discovered.bound),
        publication=state.who,
        running_total=None if state.total is None else state.total.to_json(),
        not_ours=not_ours(specs, state.plan, present(state.source), taken.measurements, type(specs.synthesizer)),
    )
    return replace(state, statement=statement)


def release(state: State) -> State:
    """`release/` with the try that is taken: the synthetic table's file and its rows; no raw row is read."""
    config, schema, taken = state.config, state.schema, present(state.taken)
    form = FORMATS[config.release.format]
    table, persons = state.folder.release / form.released, None
    if table.parent.exists():  # a resumed run never changes what may be published already
        check_seal(state.folder)
        coded, persons = _reloaded(state, table)
    else:
        coded, rng = table_of(state, taken)
        written = as_written(schema, taken.measurements)
        owned = linked(coded, written, rng, state.show)
        with state.show.stage("release") as report:
            dialect, two = as_released(config.release, schema), two_tables(config.release, schema)
            measured = replace(schema, dialect=dialect), present(state.statement).to_json(), taken.measurements
            rows = NewRows(owned, replace(written, dialect=dialect), rng, config.synthesis.rows, two=two)
            write_release(state.folder, measured, rows, form, signer=state.signer, progress=report)
        if schema.rules.computed or schema.rules.unit:  # what is computed or linked has codes now
            coded, persons = _reloaded(state, table)
    state.show.warn([EMPTY] if coded.rows == 0 else [])
    return replace(state, table=table, synthetic=coded, persons=persons)


def _reloaded(state: State, table: Path) -> tuple[CodedTable, int | None]:
    """The rows of a released table as codes, and how many persons hold them; a warning per column that is clipped."""
    with state.show.stage("reload") as report:
        source = open_released(table, state.config.limits, state.folder.temporary)
        coded, _ = encode_columns(source, state.schema, workdir=state.folder.temporary / "released", progress=report)
    clipped = rows_clipped(source, state.schema).items()
    state.show.warn([CLIPPED.format(rule, percent(k / coded.rows)) for rule, k in clipped if k])
    if (unit := state.schema.rules.unit) is None:
        return coded, None
    ids = source.text(source.names.index(unit.column))
    ((persons,),) = source.lines(f"SELECT count(DISTINCT {ids}) FROM {source.relation}")
    return coded, int(persons)
