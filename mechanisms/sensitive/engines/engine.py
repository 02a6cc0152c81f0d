"""The interface of an engine, which reads rows left of the wall. Results do not depend on the engine."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from mechanisms.public.arrays import Flags
from mechanisms.public.coded_table import AnyTable, CodedTable, CountedTable
from mechanisms.public.progress import Progress
from mechanisms.public.schema.column import Column
from mechanisms.public.schema.table_schema import Schema
from mechanisms.public.settings import BoundedSettings
from mechanisms.public.tables.scan import Source
from mechanisms.sensitive.contribution import Aside, UnitRows, UnitSizes

if TYPE_CHECKING:  # loaded by the first table: a plan reads none
    from mechanisms.public.tables.codec import EncodingReport

#: A text, t, and how many units count it among t values of theirs.
ValueCount = tuple[str, int, int]


@dataclass(frozen=True, eq=False)
class Clipped:
    """Rows as they count.

    Attributes:
        rows: codes of the measured domain and weights, or the table that counts them elsewhere.
        complete: whether every row of the table is in it.
        aside: which rows of the file belong to units that were set aside; None where none were.
    """

    rows: AnyTable
    complete: bool
    aside: Flags | None


@dataclass(frozen=True, eq=False)
class Scored:
    """The input of the scores, if there are too many rows to read them all. NOT private.

    Attributes:
        sample: some rows of the table.
        whole: all rows, under the schema itself, with codes apart: counted where they are.
    """

    sample: Source
    whole: CountedTable


class Encoded(Protocol):
    """A table that an engine has encoded, with the unit of each row. NOT private."""

    @property
    def report(self) -> EncodingReport:
        """What encoding could not take as it was."""
        ...

    @property
    def plain(self) -> CodedTable | None:
        """All rows as codes of the schema's own columns, before its steps; None where they are elsewhere."""
        ...

    def unit_sizes(self, aside: Aside | None = None) -> UnitSizes:
        """How many records the units have, those apart that are set aside."""
        ...

    def clipped(self, key: bytes, aside: Aside | None) -> Clipped:
        """Which rows count, and how much. What is not needed for counting is deleted.

        Guarantee: the weights of one unit sum to at most C records, exactly.
        Args:
            key: secret; chooses the records that truncation keeps.
        """
        ...


class Engine(Protocol):
    """Who reads the rows.

    Guarantee: codes, sizes, weights and counts are whole numbers that follow from the rows, the settings and the key:
        every engine gives the same, however the rows are ordered and cut into parts.
    """

    def encode(self, table: UnitRows, schema: Schema, *, contents: bytes | None, progress: Progress | None) -> Encoded:
        """The rows as codes of the measured domain, after the schema's steps, with the unit of each.

        Args:
            contents: the secret key of the contents of rows; None: no coins of single records are wanted.
        Raises:
            UserError: a malformed file, an absent column, a full disk, or a value that a column refuses (quoting none).
        """
        ...

    def values(
        self, table: UnitRows, columns: Sequence[Column], *, key: bytes, aside: Aside | None
    ) -> dict[str, list[ValueCount]]:
        """Column → its texts with the weights of their units, for units that are not set aside.

        Of its distinct values in a column a unit counts at most C, those of least coin. Missing texts and *other* do
        not count; of numbers, days and times, the texts that are declared so count alone.
        """
        ...

    def scored(
        self, source: Source, schema: Schema, report: EncodingReport, *, workdir: Path, progress: Progress | None
    ) -> Scored | None:
        """What scores are computed from; None: from the rows, which this engine reads as fast as any.

        Args:
            report: of the same rows, encoded.
            workdir: where the sample goes; a folder with mode 0700.
        """
        ...

    def spread(self, make: Callable[[int], CodedTable], numbers: range) -> Iterator[tuple[NDArray[np.generic], ...]]:
        """The columns of the parts that `make` gives for these numbers, in their order, made where there are cores.

        No row of the private table is in reach: `make` holds a model that follows from noisy answers.

        Args:
            make: picklable; the same number gives the same part, wherever it is made.
        Raises:
            UserError: a part that cannot be made, or written where it waits.
        """
        ...


class EngineSettings(BoundedSettings, ABC):
    """A frozen dataclass whose fields are the settings of an engine, named like the keys of its YAML file."""

    settings_group: ClassVar[str] = "engine"

    @abstractmethod
    def opened(self, workdir: Path) -> AbstractContextManager[Engine]:
        """The engine while it is used; it leaves nothing behind.

        Args:
            workdir: of this run, mode 0700.
        Raises:
            UserError: this machine or its cluster cannot start it.
        """

    @property
    def most_scored(self) -> int | None:
        """Of a larger table scores read a sample of this many rows; None: they read every row."""
        return None
