"""A public table from whose rows the synthetic ones start: which it was."""

from __future__ import annotations

from pathlib import Path

from mechanisms.public.errors import UserError
from mechanisms.public.files import Json
from pipeline.settings.config import SynthesisConfig
from pipeline.statement.digests import file_digest

#: The setting that names it.
START = "synthesis.public"


#: The table as its entry among the public facts of a statement: the name of its file, and the SHA-256 of its bytes.
Start = Json


def start_in(config: SynthesisConfig, *, discovering: bool = False) -> Start | None:
    """The table that the settings name.

    Args:
        discovering: whether bounds or values of the schema are open still.
    Raises:
        UserError: no file that can be read; a schema that is not whole before the run.
    """
    path = start_of(config)
    if path is None:
        return None
    if discovering:
        fix = "declare the bounds and values that are to be discovered, or leave it out"
        raise UserError("a public start needs a schema without discover", where=START, fix=fix)
    try:
        digest = file_digest(Path(path).expanduser())
    except OSError as error:
        fix = "a table of the same columns that is public; or leave it out"
        raise UserError(f"{path} cannot be read ({error.strerror})", where=START, fix=fix) from error
    return {"fact": "public_start", "name": Path(path).name, "sha256": digest}


def start_of(config: SynthesisConfig) -> str | None:
    """The file that the settings name, or None."""
    path = config.options.get("public")
    return str(path) if path else None
