"""The papers of a release: statement, registry record, metadata, and the manifest that binds all files."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

from jinja2 import TemplateError

from mechanisms.public.errors import UserError
from mechanisms.public.files import write_whole
from mechanisms.public.json_values import Json
from mechanisms.public.release import STATEMENT_VERSION
from mechanisms.public.schema.table_schema import Schema
from mechanisms.public.tables.formats import CSV, persons_of
from pipeline.statement.catalogue_records import croissant, registry_record
from pipeline.statement.digests import Manifest, file_digests
from pipeline.statement.document import render_statement
from pipeline.statement.format_2 import is_older
from pipeline.statement.signing import Signer, write_signature
from pipeline.version import __version__

#: Files whose digests stand on the page.
NAMED = ("measurements/answers.npz", "privacy.json")
#: What a statement that no run wrote may end in.
BROKEN = (
    *(ValueError, TypeError, AttributeError, LookupError, ArithmeticError, OSError, TemplateError),
    *(RecursionError, MemoryError),
)


def write_papers(
    folder: Path,
    statement: Json,
    schema: Schema,
    *,
    table: str,
    rows_asked: int | None,
    signer: Signer | None,
    given: Json | None = None,
) -> None:
    """Write statement.html, deployment.yaml, croissant.json, manifest.json and, with a key, signature.json.

    Guarantee: a function of the files that lie there, all of which crossed the wall, and of settings.
    Args:
        folder: the release with all its other files.
        statement: the content of its privacy.json; of an older format it has no papers but the manifest.
        schema: with which the synthetic table was written.
        table: the name of the synthetic table's file.
        rows_asked: how many synthetic rows the settings asked for, or None.
        given: what the rows were asked to satisfy (see `Manifest`), or None.
    """
    fingerprint = None if signer is None else signer.fingerprint
    bound = Manifest(__version__, rows_asked, fingerprint, file_digests(folder), given)
    texts = {} if is_older(statement) else texts_of(statement, schema, table, bound)
    for name, text in texts.items():
        write_whole(folder / name, text)
    more = {name: hashlib.sha256(text.encode()).hexdigest() for name, text in texts.items()}
    content = replace(bound, files=dict(sorted({**bound.files, **more}.items()))).write(folder)
    if signer is not None:
        write_signature(folder, signer, content)


def check_said(statement: Json, schema: Schema, release: Path) -> None:
    """UserError where no papers can be written of a statement: whoever made it may have bound it, too."""
    if statement.get("version") != STATEMENT_VERSION:
        return  # passed on without papers
    try:
        texts_of(statement, schema, CSV.released, Manifest("", None, None, dict.fromkeys((CSV.released, *NAMED), "")))
    except BROKEN as error:
        fix = f"python -m pipeline verify {release} says more; do not trust this one"
        what = f"privacy.json is not as a run writes it ({type(error).__name__})"
        raise UserError(what, where=str(release), fix=fix) from error


def texts_of(statement: Json, schema: Schema, table: str, bound: Manifest) -> dict[str, str]:
    """File → text of the papers that people and catalogues read; arguments as of `write_papers`.

    Args:
        bound: what the manifest says, with the digests of all other files.
    """
    digests, given = bound.files, bound.given
    tables = {name: digests[name] for name in (table, persons_of(table)) if name == table or name in digests}
    named = tables | {name: digests[name] for name in NAMED}
    return {
        "statement.html": render_statement(
            statement, rows_asked=bound.rows_asked, signer=bound.signer, digests=named, given=given
        ),
        "deployment.yaml": registry_record(statement, given=given),
        "croissant.json": croissant(statement, schema, tables=tables, given=given),
    }
