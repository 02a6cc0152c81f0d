"""`rehearse`: rows from a schema alone, and a whole run on them, before a real table is opened."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np

from mechanisms.public.arrays import Codes, Ints
from mechanisms.public.coded_table import CodedTable, code_dtype
from mechanisms.public.domain import Domain
from mechanisms.public.errors import UserError
from mechanisms.public.files import no_empty_folders
from mechanisms.public.rules.engineering import undo
from mechanisms.public.rules.unit_ids import UnitIds
from mechanisms.public.schema.dialect import PLAIN
from mechanisms.public.schema.table_schema import Schema
from mechanisms.public.tables.decode import Owned
from mechanisms.public.tables.write_table import write_table
from pipeline.folders import REHEARSAL as TABLE
from pipeline.folders import RunFolder, check_free
from pipeline.report.last_lines import rehearsed, run_facts
from pipeline.settings.build import build_schema
from pipeline.settings.config import Config
from pipeline.settings.specs import build_specs
from pipeline.stages import Run, run

#: Rows, where `plan.rows` says nothing.
ROWS = 1000
#: How often a value is missing, or other.
SPECIAL = 0.05
#: Records of a unit at most, where how many count is to be discovered.
MOST = 8
SEED = 0


def rehearse(config: Config, root: Path, *, has_folder: bool = True) -> Run:
    """A run on rows that are nobody's, with the settings of the real one; its release says that it is not private.

    The noise has a fixed seed, and no budget is booked.

    Args:
        has_folder: as of `run`.

    Raises:
        UserError: as of a run; the folder holds a run or a rehearsal already. The rows are deleted again where the
            rehearsal is refused before it begins.
    """
    check_free(root)
    table = root / TABLE
    if table.exists():
        raise UserError(f"{table} is there already", where="hydra.run.dir", fix="another folder, or move it away")
    rows = ROWS if config.plan.rows is None else config.plan.rows
    specs = build_specs(config)
    schema, unit = build_schema(specs), specs.unit
    most = MOST if specs.discovers_bound else unit.max_records
    most = most if schema.rules.unit is None else schema.rules.unit.max_records
    data = replace(config.data, path=str(table), delimiter=PLAIN.delimiter, encoding=PLAIN.encoding)
    # the accountant that the run itself would take: a shared budget may decide it
    privacy = replace(config.privacy, noise_seed=SEED, accountant=specs.budget.accountant)
    budget = replace(config.budget, ledger=None, limit=None, accountant=None, slack=None)
    statement = replace(config.statement, key=None)
    settings = replace(config, data=data, privacy=privacy, budget=budget, statement=statement)
    with no_empty_folders(root):
        try:
            write_rows(table, schema, rows, column=unit.column, most=most, rng=np.random.default_rng(SEED))
            return run(settings, root, has_folder=has_folder)
        except (UserError, KeyboardInterrupt):
            if not RunFolder(root).charged:
                table.unlink(missing_ok=True)
            raise


def write_rows(
    path: Path, schema: Schema, rows: int, *, column: str | None, most: int, rng: np.random.Generator
) -> None:
    """A table of a schema as a CSV file: no row breaks a rule; nothing in it comes from data.

    Args:
        column: the unit's, added where the schema does not hold it; None: a record is a unit.
        most: records per unit at most, for that column.

    Raises:
        UserError: the schema's rules leave no row possible; a folder that cannot be written.
    """
    coded, rules = undo(_drawn(schema, schema.synthesized, rows, rng), schema.engineering, rng), schema.rules
    table = replace(schema, dialect=PLAIN)
    if column is None or column in schema.domain.names:
        return write_table(path, coded, table, rng)
    owners = _owners(rows, most, rng)
    if rules.unit is None:
        table = replace(table, rules=replace(rules, unit_ids=UnitIds(column)))  # names the column of ids
    else:
        own = _drawn(schema, schema.domain.project(rules.unit.constant), rows, rng)
        columns = {n: np.asarray(own.column(n))[owners] for n in rules.unit.constant}
        coded = replace(coded, columns=tuple(columns.get(n, coded.column(n)) for n in coded.domain.names))
    ids = np.array([f"unit-{owner + 1:06}" for owner in owners.tolist()], object)
    return write_table(path, Owned(coded, ids), table, rng)


def _drawn(schema: Schema, domain: Domain, rows: int, rng: np.random.Generator) -> CodedTable:
    """Rows of what is synthesized, or of columns: values evenly, *other* and *missing* now and then."""
    columns: list[Codes] = []
    for attribute in domain.attributes:
        own = attribute.name in schema.domain.names and schema.domain[attribute.name].size == attribute.size
        values = schema[attribute.name].value_codes if own else attribute.size
        codes = rng.integers(0, values, rows)
        if attribute.size > values:
            special = rng.random(rows) < SPECIAL
            codes[special] = rng.integers(values, attribute.size, int(special.sum()))
        columns.append(codes.astype(code_dtype(attribute.size)))
    return CodedTable(domain, tuple(columns))


def _owners(rows: int, most: int, rng: np.random.Generator) -> Ints:
    """(rows,) numbers of units, of one to `most` records each."""
    sizes: list[int] = []
    left = rows
    while left > 0:
        sizes.append(int(rng.integers(1, min(most, 1000) + 1)))
        left -= sizes[-1]
    return np.repeat(np.arange(len(sizes), dtype=np.int64), sizes)[:rows]


def rehearse_once(config: Config, root: Path) -> int:
    """Rehearse, and print where to look."""
    rows, in_json = config.plan.rows or ROWS, config.format == "json"
    if not (in_json or config.quiet):
        print(f"a rehearsal on {rows:,} made-up rows: it tries the path, and says nothing about quality", flush=True)
    done = rehearse(config, root)
    if in_json or not config.quiet:
        print(json.dumps(run_facts(done, scored=True)) if in_json else rehearsed(done))
    return 0
