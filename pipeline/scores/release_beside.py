"""The release that a synthetic table lies in: what its statement says, for the scores of that table."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from evaluation.attacks.promise_bounds import AttackPromise
from mechanisms.public.arrays import Ints
from mechanisms.public.errors import UserError
from mechanisms.public.files import Json, JsonDict
from mechanisms.public.plain_files import read_mapping
from mechanisms.public.release import STATEMENT_VERSION
from mechanisms.public.schema.table_schema import Schema, load_schema
from mechanisms.public.tables.formats import persons_of
from mechanisms.public.tables.scan import Source
from mechanisms.public.units import Neighbouring, bound_in_words
from mechanisms.sensitive.contribution import PrivacyUnit, numbers_of_units
from pipeline.settings.config import ScoreConfig
from pipeline.settings.inputs import NO_SCHEMA
from pipeline.statement.signing import MANIFEST, Manifest, file_digest, read_manifest

STATEMENT, SCHEMA = "privacy.json", "schema.yaml"


@dataclass(frozen=True)
class ReleaseFacts:
    """What the statement beside a synthetic table says; it is read, and not verified.

    Attributes:
        private: whether it says that the release is private as stated.
        neighbouring: of its guarantee.
        reasons: why it is not private.
        of: the unit; `unit` says it in words.
        pairs: (ε, δ) that hold, the stated one first.
        aside: the share of the units that it was made without.
    """

    private: bool
    unit: str
    neighbouring: str
    reasons: tuple[str, ...]
    of: PrivacyUnit
    pairs: tuple[tuple[float, float], ...]
    aside: float = 0.0

    @property
    def words(self) -> str:
        """One line for readers."""
        if not self.private:
            return f"the statement beside the synthetic table says NOT PRIVATE: {'; '.join(self.reasons)}"
        promise = f"{bound_in_words(*self.pairs[0])} for {self.unit} ({self.neighbouring})"
        return f"the statement beside the synthetic table says private: {promise}; `verify` checks it"

    @property
    def promise(self) -> AttackPromise | None:
        """What an attack on a unit may be held against: a promise about a unit more or less, which holds.

        Under `replace` the statement compares tables of equal size, and a unit that was set aside leaves a smaller one.
        """
        holds = self.private and self.neighbouring == Neighbouring.ADD_REMOVE
        return AttackPromise(self.pairs) if holds else None

    def to_json(self) -> JsonDict:
        """JSON values."""
        epsilon, delta = self.pairs[0]
        facts = {"private": self.private, "epsilon": epsilon, "delta": delta, "unit": self.unit}
        facts |= {"per": self.of.column or "record", "neighbouring": self.neighbouring}
        return facts | {"reasons_not_private": list(self.reasons), "verified": False}


def schema_of(path: Path) -> Schema:
    """The schema of a file, which may be that of a release.

    Raises:
        UserError: a column that a run has yet to discover: tables without a common value of it would have equal cells.
    """
    schema = load_schema(path)
    for name, asked in ((c.name, c.discover.what) for c in schema.columns if c.discover is not None):
        problem = f"column {name!r}: a run discovers its {' and '.join(asked)}"
        fix = f"schema=RELEASE/{SCHEMA}, which holds them; schema={NO_SCHEMA} reads the kinds from the tables"
        raise UserError(f"{problem}; until then no table can be read by it", where="schema", fix=fix)
    return schema


def release_beside(table: Path) -> tuple[ReleaseFacts | None, str]:
    """What the statement in the table's folder says about it, and a line for readers; nothing where there is none.

    Only a statement that a manifest binds to this very table is taken: another one says nothing about it.
    """
    folder = table.parent
    if not (folder / STATEMENT).is_file():
        return None, ""
    try:
        facts = _bound(table)
    except (UserError, OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        why = error.what if isinstance(error, UserError) else "damaged, or of another version"
        return None, f"{STATEMENT} beside the synthetic table is not taken for its statement: {why}"
    return facts, facts.words


def with_own_schema(config: ScoreConfig, tables: Sequence[str | Path]) -> tuple[ScoreConfig, str]:
    """The settings with the schema of the release that synthetic tables lie in, and a line for readers about it.

    Only a schema that a manifest binds to a table is taken, only where all that are found are one and the same, and
    only where the settings name none.
    """
    if config.schema is not None:
        return replace(config, schema=None if config.schema == NO_SCHEMA else config.schema), ""
    schemas: dict[str, Path] = {}
    for table in (Path(t).expanduser() for t in tables):
        with suppress(UserError, OSError, ValueError):
            schemas.setdefault(_check_bound(table, SCHEMA).files[SCHEMA], table.parent / SCHEMA)
    if len(schemas) > 1:
        return (
            config,
            "the releases have different schemas, and kinds are read from the tables: schema=FILE names one",
        )
    for path in schemas.values():
        line = f"read by the schema of the release, {path}; schema={NO_SCHEMA} reads the kinds from the tables"
        return replace(config, schema=str(path)), line
    return config, ""


def _check_bound(table: Path, *names: str) -> Manifest:
    """The manifest beside the table, which binds it and the files of these names.

    Raises:
        UserError: nothing binds them.
    """
    folder = table.parent
    manifest = read_manifest(folder)
    if manifest is None:
        raise UserError(f"no {MANIFEST} binds it")
    for name in (*names, table.name):
        if name not in manifest.files:
            raise UserError(f"the manifest does not list {name}")
        if file_digest(folder / name) != manifest.files[name]:
            raise UserError(f"{name} is not as the manifest lists it")
    return manifest


def _bound(table: Path) -> ReleaseFacts:
    """The facts of the statement that the folder's manifest binds to the table.

    Raises:
        UserError: nothing binds it. KeyError and others: it is no statement of this version.
    """
    folder = table.parent
    _check_bound(table, STATEMENT, *(n for n in [persons_of(table.name)] if n and (folder / n).is_file()))
    statement = read_mapping(folder / STATEMENT)
    if statement["version"] != STATEMENT_VERSION:
        raise UserError(f"of version {statement['version']!r}")
    facts = facts_of(statement)
    if not (facts.pairs[0][0] >= 0 and 0 <= facts.pairs[0][1] < 1):
        raise UserError("its guarantee is none")
    return facts


def facts_of(statement: Json) -> ReleaseFacts:
    """The same of the content of privacy.json, of this version."""
    from pipeline.statement.statement import NO_HOLDOUT, unit_of
    from pipeline.statement.words import protected, reasons_in_words  # slow to import; few tables lie in a release

    stated = (statement["guarantee"]["epsilon"], statement["guarantee"]["delta"])
    pairs = (stated, *((e, d) for d, e in statement["curve"] if e is not None))
    reasons, unit = tuple(reasons_in_words(statement["reasons_not_private"])), unit_of(statement["unit"])
    private = statement["private"] is True and not reasons
    held = tuple((float(e), float(d)) for e, d in pairs)
    aside = 0.0 if statement["holdout"] == NO_HOLDOUT else float(statement["holdout"])
    return ReleaseFacts(private, protected(statement), str(statement["neighbouring"]), reasons, unit, held, aside)


def units_of(release: ReleaseFacts, sources: Sequence[Source]) -> list[Ints] | None:
    """The unit of each row of tables of real records, in the same numbers; None where no column of all tells it."""
    unit = release.of
    if unit.column is None or any(unit.column not in source.names for source in sources):
        return None
    return numbers_of_units(sources, unit)
