"""What a run decided about pairs of columns, and with which expected error: in words, from its release alone."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist

import numpy as np

from mechanisms.public.designs.deviations import ABSOLUTE, by_chance, side_error
from mechanisms.public.domain import Clique, Domain
from mechanisms.public.errors import first_few
from mechanisms.public.persons.person_questions import Trait, by_label, questions_of
from mechanisms.public.queries.cell_sums import MergedQuery, ResidualQuery
from mechanisms.public.queries.query_matrices import Identity
from mechanisms.public.release import Measurements
from mechanisms.public.rules.fine_columns import varied_columns
from mechanisms.public.schema.table_schema import Schema
from pipeline.inference.marginal_estimates import ReleaseEvidence, distance_noise, marginal_estimate
from synthesis.consistency.agree import estimate_total
from synthesis.independent import independent_marginals

#: Noise that misplaces this share of a pair's records is worth a setting, and this one coarser pairs.
MISPLACED, DROWNED = 0.05, 0.2
#: A pair depends where chance and noise explain its distance at this level, for all pairs together; and the confidence
#: of the bound on the mean distance is 1 − LEVEL.
LEVEL = 0.05
#: Of so many records of a person this part is a better C for a start: decision 073.
LARGE_BOUND, LARGE_PART = 8, 4
#: Pairs that a sentence names; the rest is counted.
NAMED = 3


@dataclass(frozen=True)
class Decided:
    """What became of the pairs of columns.

    Attributes:
        pairs: how many there are of columns with more than one value.
        measured: how many lie in a measured marginal; `coarse` of these only by queries that merge cells.
        noise: the share of the records that the noise of the measured ones is expected to put into wrong cells, the
            mean over them, where no cell errs by more than independent columns place in it (as in the allocation of
            `selection=auto`), of merged cells where these were asked; None where none was measured so.
        judged: of how many others the distance from independence was released; `shown` of these depend beyond noise.
        left: an upper 95 % bound on the share of the records by which independent columns are off in these, on the
            mean over them; None where none was released.
        persons: the measured ones with a constant of persons, which answers about persons hold.
        never: the others with a constant.
    """

    pairs: int
    measured: int
    coarse: int
    noise: float | None
    judged: int
    shown: int
    left: float | None
    persons: tuple[Clique, ...] = ()
    never: tuple[Clique, ...] = ()

    def better(self, most: int) -> list[str]:
        """What would lower the noise of the pairs; a fact of the release, not of the rows.

        Args:
            most: C, the records for which a unit counts at most.
        """
        if self.noise is None or self.noise < MISPLACED:
            return []
        fine = self.noise >= DROWNED and self.coarse < self.measured
        coarse = "joint_bins: {count: 5} in ordered columns of many values, or " if fine else ""
        if most == 1:
            return [f"{coarse}a larger privacy.epsilon; `plan` shows the noise of each"]
        if self.persons and most >= LARGE_BOUND:
            fewer = f"privacy.max_records={most // LARGE_PART} (now {most:,})"
            return [f"{coarse}a larger privacy.epsilon, or {fewer}: persons keep records that do not count"]
        return [f"{coarse}a larger privacy.epsilon, or a smaller C (now {most:,} records a unit); `plan` shows both"]

    @property
    def in_words(self) -> str:
        """A sentence, whose shares are means over pairs; empty where there is no pair."""
        if not self.pairs:
            return ""
        line = f"{self.measured:,} of {self.pairs:,} measured"
        line += f" ({self.coarse:,} coarsened)" if self.coarse else ""
        line += f", {len(self.persons):,} of these as of persons: {named_pairs(self.persons)}" if self.persons else ""
        line += "" if self.noise is None else f"; noise misplaces about {self.noise:.1%} of a pair's records"
        others = self.pairs - self.measured - len(self.never)
        if others and self.left is None:
            line += f"; no answer holds the other {others:,}" if self.measured else "; no answer tells of any"
        elif others:
            depend = f"{self.shown:,} depend{'s' * (self.shown == 1)}" if self.shown else "none depends"
            judged = f"{self.judged:,} of the other {others:,}" if self.judged < others else f"the other {others:,}"
            line += f"; {judged} compared: {depend} beyond noise (mean at most {self.left:.1%} of records)"
        line += f"; never asked, and as unrelated: {named_pairs(self.never)}" if self.never else ""
        return line


def named_pairs(pairs: Sequence[Clique]) -> str:
    """The first pairs, and how many more there are."""
    return first_few((" × ".join(p) for p in pairs), NAMED)


def _pairs_of_persons(
    schema: Schema | None, domain: Domain, answered: Sequence[Clique]
) -> tuple[list[Clique], list[Clique]]:
    """The pairs with a constant of persons: those that an answer about persons holds, and those that none holds."""
    if schema is None or schema.rules.unit is None:
        return [], []
    asked, held = by_label(questions_of(schema)), set[frozenset[str]]()
    for label in answered:
        features = asked[label].features if label in asked else ()
        held.add(frozenset(f.column for f in features if f.kind in {Trait.CONSTANT, Trait.VALUE}))
    constants = [n for n in schema.rules.unit.constant if schema[n].size > 1]
    every = itertools.combinations([*constants, *varied_columns(domain)], 2)
    pairs = [p for p in every if p[0] in constants]
    return [p for p in pairs if frozenset(p) in held], [p for p in pairs if frozenset(p) not in held]


def pairs_of_columns(
    measurements: Measurements, schema: Schema | None
) -> tuple[list[Clique], set[Clique], list[Clique], list[Clique]]:
    """All pairs of columns of records, those of them in a measured marginal, and both as of `_pairs_of_persons`."""
    names = varied_columns(measurements.domain)
    cliques = {a.clique for a in measurements.answers}
    inside: set[Clique] = {p for c in cliques for p in itertools.combinations([n for n in c if n in set(names)], 2)}
    persons = _pairs_of_persons(schema, measurements.domain, [a.clique for a in measurements.persons])
    return list(itertools.combinations(names, 2)), inside, *persons


def never_asked(schema: Schema) -> list[Clique]:
    """The pairs with a constant of persons that no question of a run holds."""
    return _pairs_of_persons(schema, schema.measured, [*by_label(questions_of(schema))])[1]


def decided(measurements: Measurements, schema: Schema | None = None) -> Decided:
    """Computed from the noisy answers, and the noisy distances where the release has them.

    Args:
        schema: the released one, which tells of which pairs answers about persons are.
    """
    every, inside, held, never = pairs_of_columns(measurements, schema)
    records = max(estimate_total(measurements), 1.0)
    every_cell = tuple(a for a in measurements.answers if isinstance(a.query, Identity | ResidualQuery))
    cells = replace(measurements, answers=every_cell)
    whole = [t for p in inside if (t := marginal_estimate(cells, p)) is not None]
    expected = independent_marginals(measurements)
    asked = [(expected(t.clique), float(t.errors.mean())) for t in whole]
    merged = {a.clique: a for a in measurements.answers if isinstance(a.query, MergedQuery)}
    coarse = [merged[p] for p in inside - {t.clique for t in whole} if p in merged]
    asked += [(a.query.answer(expected(a.clique)), a.stddev) for a in coarse]
    noise = [side_error(cells, ABSOLUTE * stddev) / (2 * records) for cells, stddev in asked]
    judged, shown, left = _unmeasured(measurements, [p for p in every if p not in inside], records)
    mean = float(np.mean(noise)) if noise else None
    pairs, measured = len(every) + len(held) + len(never), len(inside) + len(held)
    return Decided(pairs, measured, len(inside) - len(whole), mean, judged, shown, left, tuple(held), tuple(never))


def _unmeasured(measurements: Measurements, pairs: list[Clique], records: float) -> tuple[int, int, float | None]:
    """How many of these pairs have a released distance, how many of them depend, and how far all are off."""
    evidence = ReleaseEvidence(measurements)
    placed = [place for c in pairs if (place := evidence.distance(c)) is not None]
    if not placed:
        return 0, 0, None
    distances, places = placed[0][0], [place for _, place in placed]
    expected = evidence.independent
    stddev = distance_noise(distances)
    least = NormalDist().inv_cdf(1 - LEVEL / len(distances.cliques)) * stddev
    values = distances.values[places]
    off = float(values.mean()) + NormalDist().inv_cdf(1 - LEVEL) * stddev / math.sqrt(len(places))
    if distances.below:
        base = [evidence.pair_cells(distances.cliques[i]).base(distances.below) for i in places]
        hidden = [np.minimum(expected(distances.cliques[i]), distances.below).sum() for i in places]
        missing = records - float(expected(distances.cliques[0]).sum())
        off = 2 * (max(off, 0.0) + float(np.mean(hidden))) + max(missing, 0.0)  # as in `scored_error`
    else:
        asked = [distances.cliques[i] for i in places]
        chance = [float(by_chance(expected(c)).sum()) for c in asked]  # the errors of the two sides may add up
        base = [math.hypot(a, sum(evidence.side_errors[n] for n in c)) for a, c in zip(chance, asked, strict=True)]
    return len(places), int((values - np.array(base) > least).sum()), min(max(off, 0.0) / (2 * records), 1.0)
