"""SDNist's k-marginal score (Collaborative Research Cycle): all pairs of columns, in each area where one is named."""

from __future__ import annotations

import math
from dataclasses import dataclass
from operator import itemgetter

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evaluation.counts import paired_cells, pairs_looked_at
from evaluation.metric import Inputs, ReadScore
from evaluation.papers.paper_metrics import AreaSettings
from evaluation.readings.reading import Ends
from evaluation.verdict.rare_matches import row_sums
from mechanisms.public.coded_table import CodedTable, code_dtype
from mechanisms.public.domain import Attribute, Domain
from mechanisms.public.files import JsonDict

Floats = NDArray[np.float64]

#: A number of more real values than this is put in so many bins of about equally many real records.
BINS = 20
#: Shares of the real rows whose random samples SDNist scores; the second is its baseline.
SUBSAMPLES = (0.1, 0.4, 0.9)
#: Columns in bins of fixed edges: those of the largest density in the data dictionary, 52,864.7, and 500.
EDGES = {"DENSITY": np.array([150.0, *np.geomspace(10.0, 53364.7, 21)[8:-1]])}
#: Columns that no pair has: their codes are too many.
LEFT_OUT = ("INDP",)


@dataclass(frozen=True)
class SdnistDistances:
    """Distances of all pairs of two tables.

    Attributes:
        score: 1000 · (1 − mean total variation distance).
        columns: column → the same mean over its pairs.
        areas: code of an area → the same inside of it, by the area's real records; at least 0.
        pairs: how many.
    """

    score: float
    columns: dict[str, float]
    areas: dict[int, float]
    pairs: int


def sdnist_of(inputs: Inputs) -> ReadScore:
    """The metric `sdnist_kmarginal`: SDNist's score, its floor, and who of the real records is seen again.

    The details are the tables of SDNist's report that are counted from rows: the worst column and area stand first.
    It is read against NIST's own baseline, and columns that know nothing of each other.
    Goal: every two columns, in every area, are distributed as in the real table. Range: [0, 1000]; 1000 is perfect.
    Reference: random samples of 10, 40 and 90 % of the real rows; independent columns.
    Edge cases: fewer than two columns beside the area make no pair; what is missing is a value.
    """
    real, synthetic, options = inputs.real, inputs.synthetic, inputs.options
    by = None if inputs.own(AreaSettings).area is None else inputs.column("area")
    values = options.values if inputs.schema is None else None
    rng, n = np.random.default_rng(options.seed), real.rows
    chosen = [np.sort(rng.choice(n, max(1, round(share * n)), replace=False)) for share in SUBSAMPLES]
    binned_real, binned = in_bins(inputs)
    if len(_features(binned_real.domain, by)) < 2:
        return ReadScore(None, {}, reason="fewer than two columns beside the area: no pairs")
    tables = [distances(binned_real, t, by) for t in (binned, *(binned_real.at(rows) for rows in chosen))]
    shuffled = CodedTable(binned_real.domain, tuple(rng.permutation(c) for c in binned_real.columns))
    mine, baseline = tables[0], tables[2]
    label = str if values is None or by is None else values[by].label
    independent = distances(binned_real, shuffled, by).score
    details = {
        "by": by or "",
        "pairs": mine.pairs,
        "subsamples": [{"share": s, "score": each.score} for s, each in zip(SUBSAMPLES, tables[1:], strict=True)],
        "independent": independent,
        "columns": [{"column": name, "score": s} for name, s in sorted(mine.columns.items(), key=itemgetter(1))],
        "areas": [
            {"area": label(code), "score": score, "baseline": baseline.areas[code]}
            for code, score in sorted(mine.areas.items(), key=itemgetter(1))
        ],
        "matches": matches(real, synthetic),
    }
    ends = Ends(baseline.score, None, independent, honest_is="40 % of the real rows")
    return ReadScore(mine.score, details, ends=ends)


def in_bins(inputs: Inputs) -> tuple[CodedTable, CodedTable]:
    """Both tables with numbers of many values in SDNist's bins."""
    real, synthetic, all_numbers = inputs.real, inputs.synthetic, {**_numbers_in_texts(inputs), **inputs.numbers}
    attributes, pairs = [], []
    for attribute, *codes in zip(real.domain.attributes, real.columns, synthetic.columns, strict=True):
        numbers = all_numbers.get(attribute.name)
        edges = None if numbers is None else _edges(attribute.name, numbers[codes[0]])
        if numbers is None or edges is None:
            attributes.append(attribute)
            pairs.append(codes)
            continue
        bins = np.where(np.isnan(numbers), len(edges) + 1, np.searchsorted(edges, numbers, side="left"))
        attributes.append(Attribute(attribute.name, len(edges) + 2))
        pairs.append([bins.astype(code_dtype(len(edges) + 2))[c] for c in codes])
    domain = Domain(tuple(attributes))
    one, other = (CodedTable(domain, tuple(pair[i] for pair in pairs)) for i in (0, 1))
    return one, other


def _numbers_in_texts(inputs: Inputs) -> dict[str, Floats]:
    """The number of each code of a column with fixed edges, where values are known: its text is read."""
    if inputs.options.values is None or inputs.schema is not None:
        return {}
    fixed = [a for a in inputs.real.domain.attributes if a.name in EDGES and not a.ordered]
    texts = {a.name: pd.Series([inputs.label(a.name, code) for code in range(a.size)], dtype=object) for a in fixed}
    return {name: np.asarray(pd.to_numeric(own, errors="coerce"), np.float64) for name, own in texts.items()}


def _edges(name: str, real: Floats) -> Floats | None:
    """The largest number of each bin but the last: parts of the real numbers' mean ranks; None where there are few."""
    if name in EDGES:
        return EDGES[name]
    distinct, counts = np.unique(real[~np.isnan(real)], return_counts=True)
    if len(distinct) <= BINS:
        return None
    ranks = np.cumsum(counts) - (counts - 1) / 2
    part = np.minimum((BINS * ranks / counts.sum()).astype(int), BINS - 1)
    return np.asarray(distinct[:-1][np.diff(part) > 0], np.float64)


def _features(domain: Domain, by: str | None) -> list[str]:
    return [n for n in sorted(domain.names) if n != by and n not in LEFT_OUT]


def distances(real: CodedTable, synthetic: CodedTable, by: str | None) -> SdnistDistances:
    """The distances of all pairs of columns (of more than 200 columns 20,000 seeded pairs), the area added to each."""
    domain, pairs = real.domain, pairs_looked_at(_features(real.domain, by))
    cliques = [domain.canonical(pair if by is None else (by, *pair)) for pair in pairs]
    per_column: dict[str, list[float]] = {}
    inside = np.zeros(1 if by is None else domain[by].size)
    for pair, clique, cells in zip(pairs, cliques, paired_cells(real, synthetic, cliques), strict=True):
        apart = np.abs(cells.p / cells.p.sum() - cells.q / cells.q.sum()) / 2
        for name in pair:
            per_column.setdefault(name, []).append(float(apart.sum()))
        if by is not None:
            area = np.unravel_index(cells.ids, cells.shape)[clique.index(by)]
            inside += np.bincount(area, apart, minlength=len(inside))
    total = math.fsum(math.fsum(each) for each in per_column.values()) / 2
    columns = {name: 1000 * (1 - math.fsum(each) / len(each)) for name, each in per_column.items()}
    shares = inside * 0 if by is None else np.bincount(real.column(by), minlength=len(inside)) / real.rows
    areas = {int(a): max(0.0, 1000 * (1 - inside[a] / shares[a] / len(pairs))) for a in np.flatnonzero(shares)}
    return SdnistDistances(1000 * (1 - total / len(pairs)), columns, areas, len(pairs))


#: What somebody may know of a person: SDNist's quasi-identifiers.
QUASI = ("SEX", "MSP", "RAC1P", "OWN_RENT", "EDU", "PUMA", "INDP_CAT", "HISP")


def matches(real: CodedTable, synthetic: CodedTable) -> JsonDict:
    """Real records that a synthetic table shows; no measure of privacy: a random sample of people has these, too.

    Returns:
        unique: real records that no other real record equals; exact: those of them that the synthetic table has; quasi:
        columns that make an apparent match; apparent: real records that are unique in these and meet a synthetic one
        that is, too; agreeing: the mean share of the other columns in which such a pair agrees, or None.
    """
    ours, theirs = row_sums(real), row_sums(synthetic)
    alone = _alone(ours)
    exact = int(np.isin(ours[alone], theirs).sum())
    quasi = [n for n in QUASI if n in real.domain]
    figures: JsonDict = {"unique": len(alone), "exact": exact, "quasi": quasi, "apparent": 0, "agreeing": None}
    if not quasi:
        return figures
    ours, theirs = (row_sums(t.over(real.domain.canonical(quasi))) for t in (real, synthetic))
    one, two = _alone(ours), _alone(theirs)
    _, i, j = np.intersect1d(ours[one], theirs[two], assume_unique=True, return_indices=True)
    others = [n for n in real.domain.names if n not in quasi]
    shares = [np.mean(real.column(n)[one[i]] == synthetic.column(n)[two[j]]) for n in others] if len(i) else []
    return figures | {"apparent": len(i), "agreeing": float(np.mean(shares)) if shares else None}


def _alone(key: NDArray[np.uint64]) -> NDArray[np.int64]:
    """The places of the keys that occur once."""
    _, places, counts = np.unique(key, return_index=True, return_counts=True)
    return np.asarray(places[counts == 1])
