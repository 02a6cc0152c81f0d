"""The choices of `indif`, from a public table of the same schema: free of cost, all of the budget measures."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from mechanisms.public.designs.dense import combined, dense
from mechanisms.public.designs.tree import pairs
from mechanisms.public.domain import Clique
from mechanisms.public.errors import UserError
from mechanisms.public.marginals import count_cliques
from mechanisms.public.settings import setting
from mechanisms.public.tables.public_rows import read_public
from mechanisms.public.workload import Workload
from mechanisms.selection.base import COMBINED, Facts, Schedule, Selection, large_pairs
from mechanisms.selection.papers.groups import grouped, within
from mechanisms.selection.papers.unit_noise import unit_noise, with_all_columns


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
    rows: int | None = setting(None, least=1)
    max_cells: int = setting(20_000, least=1)
    combine_cells: int = setting(1_000, least=0, note=COMBINED)

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
        return self.chosen(facts, 0)

    def schedule(self, facts: Facts, workload: Workload) -> Schedule | None:
        return None

    def chosen(self, facts: Facts, groups: int) -> Workload:
        """DenseMarg on the exact distances of a public table, which costs nothing.

        Args:
            groups: the most columns in a group; 0: no groups.
        Raises:
            UserError: no public table, or one of another schema; settings out of range.
        """
        refuse_mapped(facts)
        return with_all_columns(facts.domain, self._pairs(facts, groups))

    def _pairs(self, facts: Facts, groups: int) -> list[Clique]:
        domain = facts.domain
        if self.public is None:
            fix = "selection.public=FILE, a table of the same columns that is public"
            raise UserError("no public table given", where="selection.public", fix=fix)
        candidates = pairs(domain, facts.joint, self.max_cells)
        if len(facts.joint) > 1 and not candidates:
            fix = "raise it, or use coarser bins in the schema"
            raise UserError("no pair of columns is small enough", where="selection.max_cells", fix=fix)
        with tempfile.TemporaryDirectory() as folder:
            table = read_public(self.public, self.delimiter, facts.schema, Path(folder))
            scale = (self.rows or table.rows) / table.rows
            sides = {
                n: c * scale
                for n, c in zip(domain.names, count_cliques(table, [(n,) for n in domain.names]), strict=True)
            }
            exact = [c * scale for c in count_cliques(table, candidates)]
        expected = [np.outer(sides[a], sides[b]).ravel() / (scale * table.rows) for a, b in candidates]
        gaps = np.array([np.abs(c - e).sum() for c, e in zip(exact, expected, strict=True)], np.float64)
        inside = list(range(len(candidates)))
        if groups:
            inside = within(candidates, grouped(domain.names, candidates, gaps.tolist(), groups))
        if not inside:
            return []
        pairs_chosen = dense(gaps[inside], [expected[i] for i in inside], unit_noise(facts, domain))
        return combined(domain, [candidates[inside[i]] for i in pairs_chosen], self.combine_cells)


def refuse_mapped(facts: Facts) -> None:
    """UserError where the schema has mapped columns, which are measured and not chosen."""
    if facts.schema.rules.mapped:
        fix = "selection=indif, or take mapped out of the schema"
        raise UserError("the schema's mapped columns are measured, not chosen", where="selection", fix=fix)
