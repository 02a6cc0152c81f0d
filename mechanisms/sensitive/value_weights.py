"""Which values the units of a table hold, and what each counts: each unit counts once per value. NOT private."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mechanisms.accounting.thresholds import weight_of
from mechanisms.public.schema.column import Column
from mechanisms.public.tables.inspect_file import check_unchanged
from mechanisms.public.units import Norm
from mechanisms.sensitive.contribution import Aside, UnitRows
from mechanisms.sensitive.engines.engine import Engine
from mechanisms.sensitive.private_table import EMBEDDED

#: Longer texts are not listed, nor are texts with characters that cannot be printed.
MAX_TEXT = 200


@dataclass(frozen=True, eq=False)
class ValueWeights:
    """The texts of one column, and the sum of their weights over all units; the repr shows none.

    Attributes:
        texts: distinct.
        units: per text, in units of 2**-WEIGHT_BITS: a unit that holds t of them counts w_t for each of these.
    """

    texts: tuple[str, ...]
    units: NDArray[np.int64]

    def __repr__(self) -> str:
        return f"ValueWeights({len(self.texts)} values)"


def value_weights(
    table: UnitRows,
    columns: Sequence[Column],
    *,
    key: bytes,
    norm: Norm,
    holdout: float | None,
    engine: Engine = EMBEDDED,
) -> dict[str, ValueWeights]:
    """The weights of the values of some columns, by column.

    Guarantee: what one unit adds to the weights of a column is a vector without negative entries of norm at most 1,
        which depends on no other unit: t of its distinct values count, at most C, chosen at random where it has more
        (by a keyed hash of the unit and the value); each weighs w_t, however many records hold it. Missing values,
        those that mean *other* and those that no list can hold do not count; nor does a unit that is set aside.
    Args:
        key, holdout: as of `load_private`: the same units are set aside.
        engine: who reads the rows.
    Raises:
        UserError: a malformed file; one that changed since it was opened.
    """
    aside = None if holdout is None else Aside(key, holdout)
    weights = {}
    counts = engine.values(table, columns, key=key, aside=aside)
    check_unchanged(table.source.states)
    for name, counted in counts.items():
        sums: dict[str, int] = {}
        for text, values, count in counted:
            if may_be_listed(text):
                sums[text] = sums.get(text, 0) + count * weight_of(values, norm)
        texts = tuple(sorted(sums))
        weights[name] = ValueWeights(texts, np.array([sums[t] for t in texts], np.int64))
    return weights


def may_be_listed(text: str) -> bool:
    """Whether a schema's file can hold the text: a rule about the text alone, whoever holds it."""
    return len(text) <= MAX_TEXT and text.isprintable() and text.strip() == text != ""
