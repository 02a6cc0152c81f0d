"""The strongest relations of two columns that a release shows, and how much of each its synthetic table keeps."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from mechanisms.public.arrays import Floats
from mechanisms.public.coded_table import CodedTable, count_cliques
from mechanisms.public.designs.deviations import ABSOLUTE, by_chance
from mechanisms.public.domain import Clique
from mechanisms.public.errors import UserError
from mechanisms.public.queries.cell_sums import MergedQuery
from mechanisms.public.queries.query_matrices import Identity, QueryMatrix
from mechanisms.public.release import Measurements, NoisyDistances
from mechanisms.public.rules.fine_columns import varied_columns
from mechanisms.public.schema.table_schema import Schema, as_a_column
from pipeline.inference.marginal_estimates import ReleaseEvidence, distance_noise, marginal_estimate
from synthesis.consistency.agree import estimate_total
from synthesis.consistency.residual_parts import completed
from synthesis.independent import independent_marginals

#: Relations that are named, and that are looked at for these: those with the largest distances.
NAMED, SEEN = 3, 40
#: A relation is named where it moves at least this share of the records, beyond so many standard deviations of the
#: distance's own noise, and so many of the standard errors that `query distances=true` prints, which bound the noise of
#: the one-way counts too.
LEAST, CERTAIN, PRINTED = 0.02, 4.0, 2.0
#: Less than this part of a relation in the synthetic table: it is lost. Noise raised the largest of many distances:
#: where CERTAIN standard deviations are more than that part of one, the rest is said as a bound.
LOST, NOISY = 0.5, 0.1

#: Two columns, the share of the records that their dependence moves, what was asked of their cells (None: that is not
#: released), and whether it moves at least so much.
Pair = tuple[Clique, float, QueryMatrix | None, bool]


@dataclass(frozen=True)
class Relation:
    """Two columns that depend on each other.

    Attributes:
        pair: the columns.
        share: about which share of the records lies elsewhere than independent columns would place it, beyond chance
            and noise, in [0, 1].
        least: whether it is at least so much.
        in_rows: the same share in the synthetic table, of the same sums of cells; None where its columns, or the sums,
            are not those that were measured.
    """

    pair: Clique
    share: float
    least: bool
    in_rows: float | None


def strongest(measurements: Measurements, synthetic: CodedTable | None) -> tuple[Relation, ...]:
    """The NAMED strongest relations, by the noisy distances from independence, or by the noisy answers without them.

    Guarantee: post-processing of the release; costs no privacy.
    Args:
        synthetic: the rows that are released.
    """
    records, evidence = estimate_total(measurements), ReleaseEvidence(measurements)
    if records <= 0:
        return ()
    distances = measurements.distances
    every = _answered(evidence, records) if distances is None else _compared(evidence, distances, records)
    largest = sorted((f for f in every if f[1] >= LEAST), key=lambda f: -f[1])[:NAMED]
    return tuple(
        Relation(pair, share, least, _share_in_rows(measurements, synthetic, pair, query))
        for pair, share, query, least in largest
    )


def in_words(relations: Sequence[Relation]) -> str:
    """A sentence; empty where there is none."""
    if not relations:
        return ""
    first = next((r for r in relations if r.in_rows is not None), None)
    named = [f"{' × '.join(r.pair)} {'≥' * r.least}{r.share:.0%}{_in_words(r, first=r is first)}" for r in relations]
    seed = "; another synthesis.seed may keep more" * any(_is_lost(r) for r in relations)
    return f"{', '.join(named)} of the records beyond what unrelated columns have{seed}"


def _in_words(relation: Relation, *, first: bool) -> str:
    if relation.in_rows is None:
        return ""
    return f" ({'table: ' if first else ''}{relation.in_rows:.0%}{', lost' * _is_lost(relation)})"


def _is_lost(relation: Relation) -> bool:
    return relation.in_rows is not None and relation.in_rows < LOST * relation.share


def _compared(evidence: ReleaseEvidence, distances: NoisyDistances, records: float) -> Iterator[Pair]:
    """Of each released distance that is beyond chance and its standard error the whole distance that its law expects.

    Where sums of cells were compared, the distance itself, which is less. Where much of it may be noise, the rest.
    """
    noise = distance_noise(distances)
    for place in np.argsort(-distances.values, kind="stable")[:SEEN]:
        pair, value = distances.cliques[place], distances.values[place]
        if len(pair) != 2:
            continue
        cells = evidence.pair_cells(pair)
        if value - cells.base(distances.below) < max(CERTAIN * noise, PRINTED * evidence.distance_error(pair)):
            continue
        measured, whole = evidence.measurements, bool(distances.whole[place])
        query: QueryMatrix | None = Identity(measured.domain.cells(pair))
        both = [float(value) - CERTAIN * noise, float(value)]
        if whole:
            strengths = (cells.strength(distance, distances.below) for distance in both)
            both = [_beyond(cells.distance(strength), cells.distance(0.0)) for strength in strengths]
        else:  # of a pair that was measured the same sums
            own = (a.query for a in measured.answers if a.clique == pair)
            query = next((q for q in own if isinstance(q, MergedQuery)), None)
        noisy = both[0] < (1 - NOISY) * both[1]
        yield pair, min(both[0 if noisy else 1] / (2 * records), 1.0), query, noisy or not whole


def _answered(evidence: ReleaseEvidence, records: float) -> Iterator[Pair]:
    """Of each measured pair how far its answers are from independent columns, at least: less what their noise adds."""
    measurements = completed(evidence.measurements)
    by_columns, counted = independent_marginals(measurements), {a.clique for a in measurements.answers}
    for pair, query, values, errors in _pairs(measurements):
        if isinstance(query, Identity):  # by its own sides, which nobody may have asked for alone
            table = values.reshape(measurements.domain.shape(pair))
            sides = [np.maximum(table.sum(axis=axis), 0.0) for axis in (1, 0)]
            expected = np.outer(*sides).ravel() / max(float(np.sqrt(sides[0].sum() * sides[1].sum())), 1.0)
        elif all((n,) in counted for n in pair):
            expected = by_columns(pair)
        else:
            continue
        apart = float(np.abs(values - query.answer(expected)).sum())
        moved = apart - ABSOLUTE * float(errors.sum()) - CERTAIN * float(np.linalg.norm(errors))
        yield pair, min(moved / (2 * records), 1.0), query, True


def _pairs(measurements: Measurements) -> Iterator[tuple[Clique, QueryMatrix, Floats, Floats]]:
    """Each measured pair once: what was asked of its cells, the answers, and the noise of each."""
    varied, done = set(varied_columns(measurements.domain)), set[Clique]()
    whole = replace(measurements, answers=tuple(a for a in measurements.answers if isinstance(a.query, Identity)))
    for names in ([n for n in a.clique if n in varied] for a in whole.answers):
        for pair in itertools.combinations(names, 2):
            if pair not in done and (own := marginal_estimate(whole, pair)) is not None:
                done.add(pair)
                yield pair, Identity(own.values.size), own.values, own.errors
    for a in measurements.answers:
        if (
            len(a.clique) == 2
            and set(a.clique) <= varied
            and a.clique not in done
            and (a.query.transpose(np.ones(a.query.rows)) == 1).all()
        ):
            done.add(a.clique)
            yield a.clique, a.query, a.values, np.full(a.values.size, a.stddev)


def _share_in_rows(
    measurements: Measurements, synthetic: CodedTable | None, pair: Clique, query: QueryMatrix | None
) -> float | None:
    """The share of the synthetic rows that lie elsewhere than independent columns would place them, beyond chance."""
    if query is None or synthetic is None or not synthetic.rows:
        return None
    synthesized, measured = synthetic.domain, measurements.domain
    if any(n not in synthesized or synthesized[n].size != measured[n].size for n in pair):
        return None
    (counts,) = count_cliques(replace(synthetic, weights=None), [pair])
    table = counts.reshape([synthesized[n].size for n in pair]).astype(np.float64)
    independent = np.outer(table.sum(axis=1), table.sum(axis=0)) / synthetic.rows
    moved = np.abs(query.answer((table - independent).ravel())).sum()
    return _beyond(float(moved), float(by_chance(query.answer(independent.ravel())).sum())) / (2 * synthetic.rows)


def _beyond(moved: float, chance: float) -> float:
    """How much of a distance is more than chance: deviations of both kinds add up in squares."""
    return math.sqrt(max(moved**2 - chance**2, 0.0))


def distances(schema: Schema, measurements: Measurements) -> pd.DataFrame:
    """InDif of all pairs (Li et al. 2021b, section 5.2) as a table: a line per pair, the most dependent first.

    InDif is the L1 distance of a pair's counts from the product of its noisy one-way counts: 0 for independent columns,
    at most twice the records. The text of section 5.2 calls a low one "high correlation"; it is the other way round.

    As an estimate of the distance from the product of the true counts it errs by its own noise and by that of the
    one-way counts, which makes weak pairs look more dependent: a lot where columns have many values.

    Guarantee: post-processing; costs no privacy.
    Returns:
        marginal, cells, distance (records; may be negative), standard_error (of both), indif (the distance over
        the noisy number of records), cells_compared (all, or merged).
    Raises:
        UserError: the release has none.
    """
    released = measurements.distances
    if released is None:
        fix = "a run with selection=auto, indif or groups: these ask for the distances of all pairs"
        raise UserError("the release holds no distances from independence", where="distances", fix=fix)
    total = estimate_total(measurements)
    shown = [i for i, c in enumerate(released.cliques) if all(as_a_column(schema, n) for n in c)]
    values = released.values[shown]
    own = distance_noise(released)
    evidence = ReleaseEvidence(measurements)
    errors = [evidence.distance_error(released.cliques[i]) for i in shown]
    frame = pd.DataFrame(
        {
            "marginal": [" × ".join(released.cliques[i]) for i in shown],
            "cells": [measurements.domain.cells(released.cliques[i]) for i in shown],
            "distance": np.round(values, 2),
            "standard_error": np.round(errors, 2),
            "indif": np.round(values / max(total, 1.0), 5),
            "cells_compared": ["all" if released.whole[i] else "merged" for i in shown],
        }
    )
    frame = frame.sort_values("distance", ascending=False, kind="stable", ignore_index=True)
    frame.attrs["sources"] = []
    more = "that of the one-way counts, which makes weak pairs look more dependent than they are"
    frame.attrs["notes"] = [f"each distance has noise of ± {own:,.4g}; the standard error also holds {more}"]
    if released.below:
        frame.attrs["notes"].append(f"differences up to {released.below:.4g} records in a cell count as none")
    return frame
