"""Exact counts and answers, left of the wall, and their noise: added in whole numbers, the sum clipped to a range."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from mechanisms.accounting.events import NoiseEvent
from mechanisms.public.arrays import Floats, Ints
from mechanisms.public.coded_table import AnyTable, count_cliques, in_batches
from mechanisms.public.domain import Clique
from mechanisms.public.files import Json, JsonDict
from mechanisms.public.queries.query_matrices import QueryMatrix, as_matrix, check_cells, too_many_records
from mechanisms.public.units import MAX_UNITS, WEIGHT_BITS, check_scale
from mechanisms.sensitive.deviates import SATURATED
from mechanisms.sensitive.exit import Exact, JsonAnswer
from mechanisms.sensitive.noise import NoiseSource, split_noise

#: Released answers lie within ± this many units of 2**-WEIGHT_BITS records: 1.1 · 10¹² records.
LIMIT = 1 << 60
#: Exact answers lie within ± this many units: noise that counts as SATURATED takes all of them beyond LIMIT.
LARGEST = SATURATED - LIMIT


def exact_marginals(table: AnyTable, cliques: Sequence[Clique], *, batch_cells: int) -> Iterator[Ints]:
    """Each clique's counts in units of 2**-WEIGHT_BITS records, flattened in C order, in the order asked. NOT private.

    Args:
        table: the rows of a private table, clipped.
        batch_cells: at most so many cells are counted in one pass over the rows (a single larger marginal goes alone).
    """
    shift = 0 if table.weighted else WEIGHT_BITS
    for batch in in_batches(table.domain, cliques, batch_cells):
        for counts in count_cliques(table, batch):
            yield counts << shift


@dataclass(frozen=True, eq=False)
class ExactAnswers:
    """Answers before the noise, NOT private: (whole + rest · 2**-bits) · 2**-WEIGHT_BITS records; the repr shows none.

    Attributes:
        rest: 0 ≤ rest < 2**bits.
        bits: by how many the answers' lattice is finer than that of the counts.
    Raises:
        UserError: answers beyond LARGEST.
    """

    whole: Ints
    rest: Ints
    bits: int

    def __post_init__(self) -> None:
        if self.whole.size and not -LARGEST <= int(self.whole.min()) <= int(self.whole.max()) < LARGEST:
            raise too_many_records(f"an answer is beyond {LARGEST / 2**WEIGHT_BITS:.3g} records")

    @classmethod
    def of(cls, query: QueryMatrix, marginal: Ints) -> ExactAnswers:
        """A query's answers to counts in units of 2**-WEIGHT_BITS records.

        Q(2ᵇ u + v) = 2ᵇ Q u + Q v: each part fits 63 bits where the product of the whole need not.

        Raises:
            UserError: the query is about a marginal of another size.
        """
        query = as_matrix(query)
        check_cells(query, marginal.size)
        bits = query.bits
        if not bits:
            return cls(query.answer_exact(marginal), np.zeros(query.rows, np.int64), 0)
        mask = (1 << bits) - 1
        low = query.answer_exact(marginal & mask)
        return cls(query.answer_exact(marginal >> bits) + (low >> bits), low & mask, bits)

    def __repr__(self) -> str:
        return f"ExactAnswers({self.whole.size} answers)"


def check_drawable(event: NoiseEvent) -> None:
    """Refuse noise that no answer holds, before its charge.

    Raises:
        UserError: a scale beyond MAX_UNITS.
    """
    check_scale(event.scale, MAX_UNITS * 2.0**-WEIGHT_BITS)


def noisy(exact: ExactAnswers, event: NoiseEvent, source: NoiseSource) -> Floats:
    """The answers with noise, in records. Charge the event before the call.

    Guarantee: a function of the rounded output of the continuous mechanism. Its sum with the answers is exact, and is
        clipped at ±LIMIT: a draw beyond SATURATED leads to the same clipped sum as the draw itself, since no exact
        answer is beyond SATURATED − LIMIT. The float nearest to what is left is post-processing.
    """
    bits = exact.bits
    whole, rest = split_noise(event, exact.whole.size, source, bits=WEIGHT_BITS + bits, split=bits)
    low = exact.rest + rest
    total = exact.whole + whole + (low >> bits)
    low &= (1 << bits) - 1
    low[(total >= LIMIT) | (total < -LIMIT)] = 0
    return np.asarray((np.clip(total, -LIMIT, LIMIT) + low * 2.0**-bits) * 2.0**-WEIGHT_BITS, np.float64)


@dataclass(frozen=True)
class NoisyNumbers(JsonAnswer):
    """Numbers in records that leave under one charge, kept beside the facts that say of what they are.

    Attributes:
        facts: JSON values; numbers that are kept beside others are refused.
        size: how many there are.
    """

    event: NoiseEvent
    label: str
    facts: JsonDict
    size: int

    def fits(self, answer: Json) -> bool:
        values, facts = answer.get("values"), {"event": self.event.id, **self.facts}
        numbers = isinstance(values, list) and [type(v) for v in values] == [float] * self.size
        return numbers and {k: answer.get(k) for k in facts} == facts

    def exact(self, whole: Ints, sensitivity: float) -> Exact[ExactAnswers]:
        """Numbers in units of 2**-WEIGHT_BITS records, and how far they move together, in the event's norm."""
        return Exact(ExactAnswers(whole, np.zeros_like(whole), 0), sensitivity)

    def check(self) -> None:
        check_drawable(self.event)

    def draw(self, exact: Exact[ExactAnswers], source: NoiseSource) -> JsonDict:
        return {"event": self.event.id, **self.facts, "values": noisy(exact.value, self.event, source).tolist()}
