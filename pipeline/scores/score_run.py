"""The scoring of a run: the rows that were not set aside against the synthetic table; NOT private."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from evaluation.metrics import ON_TOP, ScoreSpec
from evaluation.score import Scorecard
from evaluation.values.value_tables import Values
from mechanisms.public.coded_table import CodedTable
from mechanisms.public.files import JsonDict
from mechanisms.public.progress import Progress
from mechanisms.public.schema.table_schema import Schema
from mechanisms.public.tables.codec import encode_columns, together
from mechanisms.public.tables.losses import loss_lines, losses_of
from mechanisms.public.tables.scan import Source
from mechanisms.sensitive.contribution import unit_numbers
from mechanisms.sensitive.private_table import PrivateTable
from mechanisms.sensitive.shared_table import shared_truth
from pipeline.run_context import State, present
from pipeline.scores.first_look import first_look
from pipeline.scores.release_beside import facts_of
from pipeline.scores.score_files import write_scores
from pipeline.scores.scored_tables import ScoredTables, floors_file, keep_floors, over_one_schema
from pipeline.scores.table_sources import (
    file_facts,
    open_released,
    shared_schema,
    subject_texts,
    wants_values,
    with_schema,
)
from pipeline.settings.memory import MOST_CELLS
from pipeline.settings.scoring import affordable, roles_of, with_subjects

ON_CODES = "metrics of values read the schema's codes, in place of the files' values: "


def score_run(state: State, progress: Progress | None = None) -> Scorecard:
    """Score a run's table, of the rows that were not set aside; leaves scores.json, scores.csv and figures.json.

    Where the engine holds more rows than scores may read, what follows from counts takes its counts, and all else a
    sample, but where units were set aside: these are known by reading all rows.
    """
    design, folder, private, source = state.design, state.folder, present(state.private), present(state.source)
    schema, synthetic, file = design.schema, present(state.synthetic), source
    released = open_released(present(state.table), state.config.limits, folder.temporary)
    whole = None
    if private.aside is None:
        work = folder.temporary / "scored"
        seen = state.engine.scored(source, schema, private.encoding, workdir=work, progress=progress)
        source, whole = (source, None) if seen is None else (seen.sample, seen.whole)
    truth, aside = _truth(private, source, schema, folder.temporary)
    spec = replace(affordable(present(design.scoring), truth.rows), dive=True)
    answers = present(state.taken).measurements
    with ThreadPoolExecutor(1) as pool:  # in the context of the run, whose one engine serves both threads
        look = pool.submit(copy_context().run, first_look, source, released, schema, spec.groups, answers)
        values, notices = _values(private, (source, released), schema, (truth, synthetic, aside), spec)
        whole_units = spec.references or aside is not None
        unit, unit_aside = _unit_of_rows(private, source) if whole_units else (None, None)
        coded = {"real": truth, "synthetic": synthetic, "holdout": aside, "whole": whole}
        tables = over_one_schema(schema, coded, look.result, spec.options, notices=notices)
        stated = facts_of(present(state.statement).to_json())
        tables.add(values=values, unit=unit, holdout_unit=unit_aside, promise=stated.promise, private=stated.private)
        if spec.metrics != ON_TOP:
            _add_subjects(state, tables, private, source, released)
        if tables.options.subject is not None:
            spec = with_subjects(spec, state.config.evaluation.metrics)
        card = tables.score(spec, progress)
    about = file_facts({"real": file, "synthetic": released}, card.rows, f"{schema.name}, in release/schema.yaml")
    if aside is not None:
        about["tables"].append({**about["tables"][0], "table": "set aside", "rows": aside.rows})
    lost = loss_lines(losses_of(private.encoding, schema))
    drawn = tables.drawings(card, design.places) | {"units": _units(private), "lost": lost, "files": about}
    write_scores(folder, card.to_json(), drawn)
    return card


def share_floors(state: State, floors: Path) -> None:
    """The floors of a sweep's scores, measured by the first of its jobs that comes here.

    Args:
        floors: the sweep's folder of them.
    """
    private, source, schema = present(state.private), present(state.source), state.design.schema
    path = floors_file(floors, state.facts)
    if private.folder is not None and not path.exists():
        truth, _ = _truth(private, source, schema, state.folder.temporary)
        schema, tables = together(schema, {"real": truth})
        spec = affordable(present(state.design.scoring), truth.rows)
        spec = replace(spec, options=replace(spec.options, unit=_unit_of_rows(private, source)[0]))
        values = None
        if wants_values(spec.metrics) and truth.rows * len(schema.columns) <= MOST_CELLS:
            values = with_schema(only := {"real": source}, shared_schema(only, schema)[0], lambda *_: None)
        keep_floors(path, tables["real"], schema, spec, state.facts["settings"]["synthesis"]["rows"], values)


def _add_subjects(state: State, tables: ScoredTables, private: PrivateTable, source: Source, released: Source) -> None:
    """Whose each row is, where the released table has the column that tells it under the name of the real one."""
    roles = roles_of(state.config.evaluation, state.config.data.roles, tables.schema)
    column = roles.get("subject", private.unit.column)
    if column is None:
        return
    absent = [name for name, table in (("real", source), ("synthetic", released)) if column not in table.names]
    if absent:
        tables.lack("subject", f"the {absent[0]} table has no column {column!r}")
    elif tables.options.whole is not None:
        tables.lack("subject", "a sample of the real rows holds no whole subjects")
    else:
        texts = subject_texts({"real": source, "synthetic": released}, column, private.unit)
        texts["real"] = texts["real"] if private.aside is None else texts["real"][~private.aside]
        tables.add_subjects(texts, {**roles, "subject": column})


def _units(private: PrivateTable) -> JsonDict | None:
    """How many units have how many records; None where a record is a unit."""
    if private.sizes is None:
        return None
    unit = private.unit
    return {"column": unit.column, "max_records": unit.max_records, "clip": unit.clip, "sizes": private.sizes.tolist()}


def _unit_of_rows(private: PrivateTable, source: Source) -> tuple[NDArray[np.int64] | None, NDArray[np.int64] | None]:
    """The unit of each row of the truth, and of those set aside; None where a record is a unit."""
    if private.unit.column is None:
        return None, None
    numbers = unit_numbers(source, private.unit)
    return (numbers, None) if private.aside is None else (numbers[~private.aside], numbers[private.aside])


def _values(
    private: PrivateTable,
    sources: tuple[Source, Source],
    schema: Schema,
    tables: tuple[CodedTable, CodedTable, CodedTable | None],
    spec: ScoreSpec,
) -> tuple[Values | None, tuple[str, ...]]:
    """The rows that counted, the synthetic ones and those set aside as values, as `score` reads them; and what is said.

    None where nothing asks for values, or where they would be too many.

    Args:
        tables: real, synthetic and what was set aside, as codes.
    """
    aside = private.aside
    if aside is None and not wants_values(spec.metrics):
        return None, ()
    real, synthetic = tables[0].rows + (0 if tables[2] is None else tables[2].rows), tables[1].rows
    both = dict(zip(("real", "synthetic"), sources, strict=True))
    if (real + synthetic) * len(schema.columns) > MOST_CELLS:
        return None, (f"{ON_CODES}the tables have more than {MOST_CELLS:,} cells",)
    values = with_schema(both, shared_schema(both, schema)[0], lambda *_: None)
    if values.tables["real"].rows != real or values.tables["synthetic"].rows != synthetic:
        return None, (f"{ON_CODES}the file holds other rows than were counted",)
    return values.set_aside(aside), values.notices


def _truth(
    private: PrivateTable, source: Source, schema: Schema, temporary: Path
) -> tuple[CodedTable, CodedTable | None]:
    """All rows of the table, with all values: those that scores compare with, and those that were set aside."""
    if private.folder is not None:
        return shared_truth(private, source, schema), None
    if (plain := private.as_read(schema)) is not None:
        return plain, None
    whole, _ = encode_columns(source, schema, workdir=temporary / "truth", apart=True)
    return (whole, None) if private.aside is None else whole.parted(private.aside)
