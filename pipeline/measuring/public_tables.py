"""Tables that the user declares public: never the private one itself, and named in the statement."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from mechanisms.public.coded_table import CodedTable
from mechanisms.public.errors import UserError
from mechanisms.public.files import Json, JsonDict, as_path
from mechanisms.public.rules.fine_columns import without_fine
from mechanisms.public.schema.dialect import Dialect
from mechanisms.public.schema.table_schema import Schema
from mechanisms.public.tables.codec import read_public
from mechanisms.public.tables.scan import Source
from mechanisms.selection.base import Selection
from mechanisms.sensitive.joined_units import same_rows
from mechanisms.sensitive.private_table import fingerprint
from pipeline.settings.config import SynthesisConfig
from pipeline.settings.methods import usable_synthesizer
from pipeline.statement.statement import START, Start, start_in, start_of
from pipeline.statement.words import starts_from
from synthesis.contract import Synthesizer
from synthesis.gum.gum_settings import GumSpec, StartedGum


@dataclass(frozen=True)
class PublicFile:
    """A table that is declared public.

    Attributes:
        setting: by which it is; delimiter: of its columns.
        instead: what would do without it.
    """

    setting: str
    path: Path
    delimiter: str
    instead: str

    def itself(self) -> UserError:
        """The error that it is the private table."""
        fix = f"another table, one that is public; or {self.instead}"
        return UserError("this is the private table itself", where=self.setting, fix=fix)


def public_files(selection: Selection, config: SynthesisConfig) -> tuple[PublicFile, ...]:
    """The tables that the settings declare public."""
    start, files = start_of(config), []
    if selection.public_table is not None:
        path, mark = as_path(selection.public_table, "selection.public"), getattr(selection, "delimiter", ",")
        files.append(PublicFile("selection.public", path, mark, "selection=indif, which chooses by noisy scores"))
    if start is not None:
        files.append(PublicFile(START, as_path(start, START), ",", "leave it out"))
    return tuple(files)


def not_the_private(files: Sequence[PublicFile], facts: JsonDict) -> JsonDict:
    """The same facts; a private table itself in the place of a public one is refused.

    Raises:
        UserError: the same bytes.
    """
    for public in files:
        if public.path.exists() and fingerprint(public.path) in str(facts["data"]).split("+"):
            raise public.itself()
    return facts


def check_public(
    files: Sequence[PublicFile],
    schema: Schema,
    source: Source,
    rows: int,
    *,
    opened: Callable[..., Source],
    workdir: Path,
) -> None:
    """A copy of the private table in the place of a public one is refused: a stop that the statement lists as outside.

    Args:
        rows: of the private table.
        opened: a file and its dialect → what reads it.
        workdir: for copies; closed to others.
    Raises:
        UserError: both hold the same rows.
    """
    for place, public in enumerate(files):
        other = opened(public.path, Dialect(public.delimiter))
        if same_rows(source, other, schema, rows, workdir=workdir / f"public-{place}"):
            raise public.itself()


def started(spec: Synthesizer, config: SynthesisConfig, schema: Schema, start: Start | None) -> Synthesizer:
    """The synthesizer, from the rows of the public table that its settings name, if they name one.

    Args:
        start: the table whose digest the statement names.
    Raises:
        UserError: no such file, another schema, no rows, or another file than that by now.
    """
    path = start_of(config)
    if path is None:
        return spec
    assert isinstance(spec, GumSpec)
    with tempfile.TemporaryDirectory() as folder:
        table = read_public(path, ",", schema, Path(folder), where=START)
        coarse = without_fine(table, schema)
        columns = tuple(np.array(coarse.column(n)) for n in schema.synthesized.names)
    if start_in(config) != start:
        raise UserError("the table changed while it was read", where=START, fix="a file that nobody writes to")
    return StartedGum(**(asdict(spec) | {"start": "oneway"}), public_rows=CodedTable(schema.synthesized, columns))


def ready_again(config: SynthesisConfig, schema: Schema, statement: Json) -> Synthesizer:
    """The synthesizer of new rows from a release; a public start has to be the table that its statement names.

    Rows of any other table would stand in what is made under a statement that knows nothing of them.

    Raises:
        UserError: the statement names no such table; as of `usable_synthesizer` and `started`.
    """
    spec, start = usable_synthesizer(config), start_in(config)
    if start is not None and not starts_from(statement, start):
        fix = "the very file that its privacy.json names under public_facts; or leave it out"
        raise UserError("the release was not made from this public table", where=START, fix=fix)
    return started(spec, config, schema, start)
