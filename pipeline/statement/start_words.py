"""A public table from whose rows the synthetic ones start: which it was, in the words of the statement."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from mechanisms.public.errors import UserError
from pipeline.settings.config import SynthesisConfig
from pipeline.statement.digests import file_digest

#: The setting that names it.
START = "synthesis.public"


@dataclass(frozen=True)
class Start:
    """The table.

    Attributes:
        name: of its file; digest: SHA-256 of its bytes.
    """

    name: str
    digest: str

    @classmethod
    def of(cls, path: str) -> Start:
        """The table in this file.

        Raises:
            UserError: no file that can be read.
        """
        try:
            return cls(Path(path).name, file_digest(Path(path).expanduser()))
        except OSError as error:
            fix = "a table of the same columns that is public; or leave it out"
            raise UserError(f"{path} cannot be read ({error.strerror})", where=START, fix=fix) from error

    @property
    def sentence(self) -> str:
        """What the statement lists among the public facts."""
        return (
            f"the table {self.name!r} ({START}), from whose rows the synthetic ones were changed: nothing protects "
            f"what it holds (SHA-256 {self.digest})"
        )


#: A sentence of `Start`, with the quoted name and the digest.
SENTENCE = re.compile(
    r"the table ('.*'|\".*\") \(synthesis\.public\), from whose rows .* it holds \(SHA-256 ([0-9a-f]{64})\)"
)


def start_named(public_facts: Iterable[str]) -> str | None:
    """The file that a statement names as the start of the rows, or None."""
    named = [match[1] for fact in public_facts if (match := SENTENCE.fullmatch(fact))]
    return str(ast.literal_eval(named[0])) if named else None


def start_in(config: SynthesisConfig, *, discovering: bool = False) -> Start | None:
    """The table that the settings name.

    Args:
        discovering: whether bounds or values of the schema are open still.
    Raises:
        UserError: no file that can be read; a schema that is not whole before the run.
    """
    path = start_of(config)
    if path is not None and discovering:
        fix = "declare the bounds and values that are to be discovered, or leave it out"
        raise UserError("a public start needs a schema without discover", where=START, fix=fix)
    return None if path is None else Start.of(path)


def start_of(config: SynthesisConfig) -> str | None:
    """The file that the settings name, or None."""
    path = config.options.get("public")
    return str(path) if path else None
