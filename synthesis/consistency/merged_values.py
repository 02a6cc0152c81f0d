"""Merged values: answers in which rare values count as one → whole marginals over fewer codes, and rows back again.

Li et al. 2021b, §5.3, compresses attributes so; GUM and the independent rows, which take whole marginals alone, can
then use what MST or `selection.merge` measured.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import replace

import numpy as np

from mechanisms.public.arrays import Codes, Flags, Floats, Ints
from mechanisms.public.coded_table import CodedTable, code_dtype
from mechanisms.public.domain import Attribute, Clique, Domain
from mechanisms.public.queries.cell_sums import MergedQuery
from mechanisms.public.queries.query_matrices import Identity, QueryMatrix
from mechanisms.public.release import Measurements, NoisyMarginal
from mechanisms.public.rules.transforms import spread_codes

#: Attribute → each code's group; only attributes of which values are merged.
Groups = Mapping[str, Ints]


def merged_values(measurements: Measurements, *, apart: Collection[str] = ()) -> Groups:
    """Which codes the answers merge, of all attributes but those that stay apart.

    Where two answers merge the values of one attribute differently, codes that either of them merges are one group.
    """
    groups: dict[str, Ints] = {}
    for answer in measurements.answers:
        if isinstance(answer.query, MergedQuery):
            for name, own in zip(answer.clique, answer.query.labels, strict=True):
                if name in apart:
                    continue
                groups[name] = _joined(groups.get(name, np.arange(own.size)), own)
    return {n: own for n, own in groups.items() if own.max() + 1 < own.size}


def alike_values(measurements: Measurements, *, apart: Collection[str] = ()) -> Groups:
    """Which codes no answer about several attributes tells apart, of all attributes but those that stay apart.

    Attributes of which all codes are told apart are absent; so are those with answers of their own that are no counts.
    """
    groups: dict[str, Ints] = {}
    single = set(apart)
    for answer in measurements.answers:
        merged = answer.query.labels if isinstance(answer.query, MergedQuery) else None
        if len(answer.clique) < 2:
            single |= set() if isinstance(answer.query, Identity) else set(answer.clique)
            continue
        for place, name in enumerate(answer.clique):
            size = measurements.domain[name].size
            own = np.arange(size) if merged is None else merged[place]
            both = groups.get(name, np.zeros(size, np.int64)) * size + own
            groups[name] = np.unique(both, return_inverse=True)[1].astype(np.int64)
    return {n: own for n, own in groups.items() if n not in single and own.max() + 1 < own.size}


def _joined(one: Ints, other: Ints) -> Ints:
    """The finest groups of codes that neither of two groupings cuts, numbered by their first codes."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components  # not loaded by a plan

    left, right = int(one.max()) + 1, int(other.max()) + 1
    tied = coo_array((np.ones(one.size, np.int8), (one, left + other)), shape=(left + right, left + right))
    home = connected_components(tied, directed=False)[1][one]
    _, first, group = np.unique(home, return_index=True, return_inverse=True)
    return np.asarray(np.argsort(np.argsort(first))[group], np.int64)


def compressed(measurements: Measurements, groups: Groups) -> Measurements:
    """The same answers over the merged codes: sums of noisy answers where they were measured finely.

    Answers that merge codes of an attribute that stays apart, or merge more of its codes, go on doing so.

    The standard deviation of a sum is taken as the same for all cells, from the mean number of answers in a sum: it
    weighs the answers against each other.

    Guarantee: post-processing; costs no privacy.
    """
    old = measurements.domain
    domain = merged_domain(old, groups)
    answers = tuple(_compressed(a, old, domain, groups) for a in measurements.answers)
    return Measurements(domain, answers, measurements.public_total)


def merged_domain(domain: Domain, groups: Groups) -> Domain:
    """The domain of merged codes, which lie on no line."""
    sizes = {name: int(own.max()) + 1 for name, own in groups.items()}
    return Domain(tuple(Attribute(a.name, sizes[a.name]) if a.name in sizes else a for a in domain.attributes))


def _compressed(answer: NoisyMarginal, old: Domain, new: Domain, groups: Groups) -> NoisyMarginal:
    whole = [np.arange(old[n].size) for n in answer.clique]
    if isinstance(answer.query, MergedQuery):
        asked = answer.query.labels
    elif isinstance(answer.query, Identity) and any(n in groups for n in answer.clique):
        asked = tuple(whole)
    else:
        return answer
    sums, left = [], []
    for name, own in zip(answer.clique, asked, strict=True):
        group = groups.get(name, own)
        coarser = own.max() < group.max()  # another answer tells codes of one of its groups apart
        sums.append(np.arange(int(own.max()) + 1) if coarser or name not in groups else _onto(own, group))
        left.append(_onto(group, own) if coarser else np.arange(new[name].size) if name in groups else own)
    fine = all(own.size == int(own.max()) + 1 for own in left)
    query: QueryMatrix = Identity(new.cells(answer.clique)) if fine else MergedQuery(tuple(left))
    values = MergedQuery(tuple(sums)).answer(answer.values)
    scale = answer.scale * math.sqrt(answer.values.size / values.size)
    return replace(answer, query=query, values=values, scale=scale)


def _onto(finer: Ints, coarser: Ints) -> Ints:
    """Each of the finer groups' coarser one, from both groups of each code."""
    place = np.empty(int(finer.max()) + 1, np.int64)
    place[finer] = coarser
    return place


def one_way_counts(measurements: Measurements, groups: Groups) -> dict[str, Floats]:
    """Of the grouped attributes what their codes are in proportion to: the noisy one-way answers, else all alike."""
    counts = {}
    for name in groups:
        best = _best_one_way(measurements, name)
        counts[name] = np.zeros(measurements.domain[name].size) if best is None else best.values
    return counts


def expanded(
    table: CodedTable, domain: Domain, groups: Groups, counts: Mapping[str, Floats], rng: np.random.Generator
) -> CodedTable:
    """Rows over merged codes as rows over the values of a domain, in proportion to the counts (`one_way_counts`)."""
    columns = [
        _expanded(codes, groups[name], counts[name], rng) if name in groups else codes
        for name, codes in zip(domain.names, table.columns, strict=True)
    ]
    return CodedTable(domain, tuple(columns), table.weights)


def rare_zeros(measurements: Measurements, groups: Groups, *, rare: float, floor: float) -> list[tuple[Clique, Flags]]:
    """Values that count as never occurring: those below θ, of an attribute where all of them together are below θ.

    θ = max(rare · σ, floor) with the σ of the attribute's noisy one-way counts (Li et al. 2021b, section 5.3: 4.5 σ and
    800 records; Appendix A.3: 3 σ). An attribute all of whose values are below θ keeps them.

    Guarantee: post-processing; costs no privacy.
    Returns:
        impossible cells of single attributes, over the merged codes where there are any.
    """
    zeros: list[tuple[Clique, Flags]] = []
    if max(rare, floor) <= 0:
        return zeros
    for name in measurements.domain.names:
        if (best := _best_one_way(measurements, name)) is None:
            continue
        least = max(rare * best.stddev, floor)
        low = best.values < least
        if not low.any() or low.all() or best.values[low].sum() >= least:
            continue
        group = groups.get(name, np.arange(low.size))
        gone = np.bincount(group, ~low, minlength=int(group.max()) + 1) == 0
        if gone.any():
            zeros.append(((name,), gone))
    return zeros


def _best_one_way(measurements: Measurements, name: str) -> NoisyMarginal | None:
    """The most precise noisy counts of an attribute's values; None where they were not measured."""
    own = [a for a in measurements.answers if a.clique == (name,) and isinstance(a.query, Identity)]
    return min(own, key=lambda a: a.stddev, default=None)


def _expanded(codes: Codes, groups: Ints, counts: Floats, rng: np.random.Generator) -> Codes:
    expanded_codes = np.empty(len(codes), code_dtype(groups.size))
    for group in range(int(groups.max()) + 1):
        members, rows = np.flatnonzero(groups == group), np.flatnonzero(codes == group)
        expanded_codes[rows] = members[spread_codes(np.maximum(counts[members], 0.0), rows.size, rng)]
    return expanded_codes
