"""Columns in groups that depend on each other weakly (Li et al. 2021b, section 5.4), then `indif` inside each group."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from mechanisms.public.domain import Domain
from mechanisms.public.errors import UserError
from mechanisms.public.settings import setting
from mechanisms.public.workload import Workload
from mechanisms.selection.base import Facts, Schedule
from mechanisms.selection.papers.indif import IndifSettings
from mechanisms.selection.papers.public_table import PublicTable, pairs_of_table


@dataclass(frozen=True)
class GroupsSettings(IndifSettings):
    """Settings: those of `indif`, and the size of the groups.

    Attributes:
        groups: the most columns in a group; None: a quarter of all columns.
        public: a public table's file, from which groups and choices are taken free of cost; None: noisy distances.
        delimiter: of that file.
        rows: with a public table: how many rows the private table has, about; None: as many as the public table.
    """

    kind: ClassVar[str] = "groups"
    public: str | None = None
    delimiter: str = ","
    rows: int | None = setting(None, least=1)

    @property
    def public_table(self) -> str | None:
        return self.public

    @property
    def public_rows(self) -> int | None:
        return self.rows

    def group_size(self, domain: Domain) -> int:
        """Without a setting there are about four groups."""
        return max(2, math.ceil(len(domain) / 4)) if self.groups is None else self.groups

    def workload(self, facts: Facts) -> Workload:
        """What the public table chooses, where there is one."""
        if self.public is None:
            return super().workload(facts)
        if self.merge is not None:
            fix = "null with selection.public: a public table chooses before there are noisy counts"
            raise UserError("nothing to merge by", where="selection.merge", fix=fix)
        table = PublicTable(self.public, self.delimiter, self.rows)
        size = self.group_size(facts.domain)
        return pairs_of_table(facts, table, self.max_cells, self.combine_cells, size)

    def schedule(self, facts: Facts, workload: Workload) -> Schedule | None:
        """That of `indif`, without a public table."""
        return super().schedule(facts, workload) if self.public is None else None
