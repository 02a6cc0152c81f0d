"""The choices of `indif`, from a public table of the same schema: free of cost, all of the budget measures."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from mechanisms.public.coded_table import CodedTable
from mechanisms.public.designs.dense import combined, dense, tradeoff
from mechanisms.public.designs.tree import pairs
from mechanisms.public.domain import Clique
from mechanisms.public.errors import UserError
from mechanisms.public.marginals import count_cliques
from mechanisms.public.rules.engineering import engineer
from mechanisms.public.schema.table_schema import Schema
from mechanisms.public.workload import Workload
from mechanisms.selection.base import Facts, Selection, large_pairs
from mechanisms.selection.papers.groups import grouped, within
from mechanisms.selection.papers.unit_noise import unit_noise, with_all_columns

#: Memory for reading a public table.
READING_BYTES = 1_000_000_000
#: A public table in which more than this part of a column's values has no place in the schema is of another schema.
MAX_OUTSIDE = 0.2


@dataclass(frozen=True)
class PublicTable:
    """A public table's file, and how many rows the private table has, about (None: as many)."""

    path: str | None
    delimiter: str
    rows: int | None


@dataclass(frozen=True)
class PublicSettings(Selection):
    """Settings.

    Attributes:
        public: the public table's file.
        delimiter: of that file.
        rows: how many rows the private table has, about; None: as many as the public table.
        max_cells: larger pairs are no candidates.
        combine_cells: overlapping pairs become marginals of at most so many cells, where noise allows; 0: never.
    """

    kind: ClassVar[str] = "public"
    public: str | None = None
    delimiter: str = ","
    rows: int | None = None
    max_cells: int = 20_000
    combine_cells: int = 1_000

    @property
    def public_table(self) -> str | None:
        return self.public

    @property
    def public_rows(self) -> int | None:
        return self.rows

    def passed_over(self, facts: Facts) -> tuple[Clique, ...]:
        return large_pairs(facts, self.max_cells)

    def workload(self, facts: Facts) -> Workload:
        """What the public table chooses."""
        table = PublicTable(self.public, self.delimiter, self.rows)
        return pairs_of_table(facts, table, self.max_cells, self.combine_cells, 0)

    def schedule(self, facts: Facts, workload: Workload) -> None:
        """One round."""
        return


def pairs_of_table(facts: Facts, table: PublicTable, max_cells: int, combine_cells: int, groups: int) -> Workload:
    """DenseMarg on the exact distances of a public table, which costs nothing.

    Args:
        groups: the most columns in a group; 0: no groups.
    Raises:
        UserError: no public table, or one of another schema; settings out of range.
    """
    refuse_mapped(facts)
    return with_all_columns(facts.domain, _chosen(facts, table, max_cells, combine_cells, groups))


def refuse_mapped(facts: Facts) -> None:
    """UserError where the schema has mapped columns, which are measured and not chosen."""
    if facts.schema.rules.mapped:
        fix = "selection=indif, or take mapped out of the schema"
        raise UserError("the schema's mapped columns are measured, not chosen", where="selection", fix=fix)


def _chosen(facts: Facts, given: PublicTable, max_cells: int, combine_cells: int, groups: int) -> list[Clique]:
    domain = facts.domain
    if given.path is None:
        fix = "selection.public=FILE, a table of the same columns that is public"
        raise UserError("no public table given", where="selection.public", fix=fix)
    candidates = pairs(domain, facts.joint, max_cells)
    if len(facts.joint) > 1 and not candidates:
        fix = "raise it, or use coarser bins in the schema"
        raise UserError("no pair of columns is small enough", where="selection.max_cells", fix=fix)
    with tempfile.TemporaryDirectory() as folder:
        table = read_public(given.path, given.delimiter, facts.schema, Path(folder))
        scale = (given.rows or table.rows) / table.rows
        sides = {
            n: c * scale for n, c in zip(domain.names, count_cliques(table, [(n,) for n in domain.names]), strict=True)
        }
        exact = [c * scale for c in count_cliques(table, candidates)]
    expected = [np.outer(sides[a], sides[b]).ravel() / (scale * table.rows) for a, b in candidates]
    gaps = np.array([np.abs(c - e).sum() for c, e in zip(exact, expected, strict=True)], np.float64)
    inside = list(range(len(candidates)))
    if groups:
        inside = within(candidates, grouped(domain.names, candidates, gaps.tolist(), groups))
    if not inside:
        return []
    pairs_chosen = dense(tradeoff(gaps[inside], [expected[i] for i in inside], unit_noise(facts, domain)))
    return combined(domain, [candidates[inside[i]] for i in pairs_chosen], combine_cells)


def read_public(
    path: str, delimiter: str, schema: Schema, folder: Path, *, where: str = "selection.public"
) -> CodedTable:
    """A public table as codes of what the private table's schema measures.

    Raises:
        UserError: it lacks a column, has no rows, or holds values for which the schema has no place.
    """
    from mechanisms.public.tables.codec import encode_columns
    from mechanisms.public.tables.scan import open_table

    try:
        source = open_table(
            Path(path).expanduser(), delimiter=delimiter, workdir=folder, memory_limit_bytes=READING_BYTES, threads=1
        )
        table, report = encode_columns(source, schema, workdir=folder / "public")
    except UserError as error:
        raise UserError(f"{error.what} ({error.where})", where=where, fix=error.fix) from None
    if not table.rows:
        raise UserError("the public table has no rows", where=where, fix="another table, or leave it out")
    for column in schema.columns:
        outside = report.outside[column.name] + report.unplaced[column.name]
        if outside > MAX_OUTSIDE * table.rows:
            raise UserError(
                f"{outside / table.rows:.0%} of the values of {column.name!r} have no place in the schema",
                where=where,
                fix="a public table of the same schema, coded in the same way",
            )
    return engineer(table, schema.engineering)[0]
