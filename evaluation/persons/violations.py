"""What no table of whole persons may show: constants that vary, rows apart or out of order, too many records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from evaluation.persons.person_rows import PersonRows
from evaluation.values.subjects import NOBODY
from mechanisms.public.json_values import JsonDict


@dataclass(frozen=True)
class Violations:
    """Those of one table; all are 0 where persons are whole.

    Attributes:
        nobody: rows without a person.
        apart: how often a person's rows go on behind rows of others.
        out_of_order: rows that lie before the one above them, of the same person; None without an order.
        varying: declared constant → share of the persons in whom it has several values; a gap is none.
        beyond: persons with more records than they may have; None where no bound is declared.
    """

    nobody: int
    apart: int
    out_of_order: int | None
    varying: Mapping[str, float]
    beyond: int | None

    def to_json(self) -> JsonDict:
        """JSON values."""
        out: JsonDict = {"nobody": self.nobody, "apart": self.apart, "out_of_order": self.out_of_order}
        return out | {"varying": dict(self.varying), "beyond": self.beyond}


def violations(rows: PersonRows, most: int | None = None) -> Violations:
    """Those of one table, whose rows are in the order of its file.

    Args:
        most: records that a person may have; None for no bound.
    """
    own, owner = rows.sorted, rows.owner
    above = owner[1:] == owner[:-1]
    begins = np.ones(len(owner), bool)
    begins[1:] = ~above
    runs = int(np.count_nonzero(begins & (owner != NOBODY)))
    late = None
    if rows.order is not None:
        late = int(np.count_nonzero((rows.order[1:] < rows.order[:-1]) & above & (owner[1:] != NOBODY)))
    varying = {}
    for column in (c for c in own.rows.columns if c.fixed):
        held = column.codes != column.gap if column.gap is not None else np.ones(len(column.codes), bool)
        person, codes = own.person[held], column.codes[held]
        changes = person[1:][(person[1:] == person[:-1]) & (codes[1:] != codes[:-1])]
        varying[column.name] = len(np.unique(changes)) / max(len(own.starts), 1)
    beyond = None if most is None else int(np.count_nonzero(own.sizes > most))
    return Violations(int(np.count_nonzero(owner == NOBODY)), runs - len(own.starts), late, varying, beyond)
