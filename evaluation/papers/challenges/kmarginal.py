"""k-marginal scores: the L1 distance of marginals inside each place and time (2020-21), or in each area (SDNist)."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import itemgetter

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evaluation.counts import paired_cells, pairs_looked_at
from evaluation.metric import Inputs, OneScore, ReadScore
from evaluation.outcome import plain
from evaluation.papers.paper_metrics import AreaSettings
from evaluation.readings.reading import Ends
from evaluation.values.value_tables import NOBODY
from evaluation.verdict.rare_matches import row_sums
from mechanisms.public.arrays import Floats, Ints
from mechanisms.public.coded_table import CodedTable, code_dtype
from mechanisms.public.domain import Attribute, Domain
from mechanisms.public.files import JsonDict
from mechanisms.public.text_table import apart

#: Columns of each marginal, the draw of these, and by how many records a place and time may be off.
WAYS, SEED, DRAWS, CUTOFF = 2, 123456, 50, 250


def draw_marginals(columns: Iterable[str]) -> tuple[tuple[str, ...], ...]:
    """DRAWS independent draws of WAYS different columns out of the sorted ones, as the scorer of sprint 2 draws them.

    Fewer columns: the one marginal of all of them.
    """
    names = sorted(columns)
    if len(names) <= WAYS:
        return (tuple(names),) if names else ()
    rng = np.random.RandomState(SEED)
    return tuple(tuple(str(c) for c in rng.choice(names, size=WAYS, replace=False)) for _ in range(DRAWS))


def k_marginal(
    real: CodedTable, synthetic: CodedTable, by: Sequence[str], draws: Sequence[tuple[str, ...]]
) -> OneScore:
    """The k-marginal score of the challenge's scorers: 1000 is perfect, 0 is no overlap at all.

    For each draw and each group of `by` (a place and time) that occurs in either table: the L1 distance of the shares
    within the group, 2 where one table has no such record. Their mean over the draws is the group's distance; 2 where
    the numbers of records differ by CUTOFF or more. The score is the unweighted mean over the groups.
    Edge cases: groups that one table invents or loses count as 2; two empty tables have no score.
    In `frame` each group has its labels, the records of either table, its distance, and whether it was penalised.
    """
    domain, own = real.domain, real.domain.canonical(by)
    (groups,) = paired_cells(real, synthetic, [own])
    lost, (p, q) = (groups.p == 0) | (groups.q == 0), (np.where(x > 0, x, 1.0) for x in (groups.p, groups.q))
    total, drawn = np.zeros(len(groups.ids)), Counter(domain.canonical((*by, *draw)) for draw in draws)
    for (clique, times), cells in zip(drawn.items(), paired_cells(real, synthetic, [*drawn]), strict=True):
        codes = dict(zip(clique, cells.codes, strict=True))
        group = np.searchsorted(groups.ids, np.ravel_multi_index([codes[n] for n in own], groups.shape))
        total += times * np.bincount(group, np.abs(cells.q / q[group] - cells.p / p[group]), len(total))
    penalised = np.abs(groups.q - groups.p) >= CUTOFF
    distance = np.where(penalised | (lost & bool(draws)), 2.0, total / max(len(draws), 1))
    labels = dict(zip(own, groups.codes.tolist(), strict=True))
    counts = {"real": groups.q, "synthetic": groups.p, "distance": distance, "penalised": penalised}
    groups_by = dict(zip(apart(by, counts), (labels[n] for n in by), strict=True))
    frame = pd.DataFrame(groups_by | counts).sort_values([*groups_by], kind="stable", ignore_index=True)
    worst = frame.sort_values("distance", ascending=False, kind="stable").head(10).drop(columns="penalised")
    details = {"groups": len(frame), "penalised": int(penalised.sum()), "marginals": len(draws)}
    details |= {"worst": plain(worst.to_dict(orient="records"))}
    if not len(frame) or not draws:
        return OneScore(None, details, frame, "no rows in either table" if draws else "no columns to draw from")
    return OneScore(1000 * (2 - math.fsum(distance) / len(distance)) / 2, details, frame)


#: What a submission carries besides the schema.
NOT_SCORED = ("epsilon", "sim_individual_id")


def sprint2_of(inputs: Inputs) -> OneScore:
    """The metric `sprint2`: the official score, of codes: their discretization stands for the scorer's bins.

    Goal: every two-way mix right in every PUMA and year. Range: [0, 1000]; 1000 is perfect. Reference: 1 %, 10 % and
    50 % of the contest's rows score 572-590, 831-839 and 940-944.
    """
    by = (inputs.column("segment"), inputs.column("time"))
    features = [n for n in inputs.real.domain.names if n not in (*by, *NOT_SCORED)]
    return k_marginal(inputs.real, inputs.synthetic, by, draw_marginals(features))


#: Columns as the original names them; counts of numbers that are both a shift and an area are dropped there.
PLACE, TIME = "pickup_community_area", "shift"
#: A number per row.
Numbers = NDArray[np.integer]
#: Which kind of column, and its code → the trips of each taxi.
Profile = dict[tuple[str, int], NDArray[np.int32]]
NO_UNIT = "the third part, the conjunction, needs the subject of every row"
WIDTHS = (5, 51)


def sprint3_of(inputs: Inputs) -> OneScore:
    """The metric `sprint3`: the official score, of codes: their discretization stands for the scorer's bins.

    Goal: the mix of trips at every place and time, the flows, and the kinds of taxis. Range: [0, 1000]; 1000 is
    perfect. Reference: 1 %, 10 % and 50 % of the real rows score 472-547, 703-721 and 887-889.
    Edge cases: an empty table scores 0 in all parts (the original divides by zero in the last). Rows without a subject
    take part in all but the conjunction, as there; without subjects there is no conjunction and no total. The order of
    subjects is that of the original's ids: centres are drawn in it.
    """
    names = (inputs.column("segment"), inputs.column("time"), inputs.column("to"))
    features = [n for n in inputs.real.domain.names if n not in names[:2]]
    return sprint3_parts(inputs.real, inputs.synthetic, inputs.options.subject, names, features)


def sprint3_parts(
    real: CodedTable,
    synthetic: CodedTable,
    subject: tuple[Numbers, Numbers] | None,
    names: tuple[str, str, str],
    features: Sequence[str],
) -> OneScore:
    """1000 times the mean of the three parts, each in [0, 1]; None where one is undefined.

    Args:
        subject: a number per row of either table; NOBODY for none.
        names: of the columns that stand for pickup area, shift and dropoff area.
    """
    place, time, to = names
    pairs = tuple(itertools.combinations(features, 2))
    marginal = k_marginal(real, synthetic, (place, time), pairs)
    k = None if marginal.score is None else marginal.score / 1000

    def scored(score: float | None, flows: float | None, kinds: float | None, reason: str = "") -> OneScore:
        parts = {"k_marginal": k, "pickup_dropoff": flows, "higher_order_conjunction": kinds}
        return OneScore(score, {**parts, "details": marginal.to_json()}, marginal.frame, reason)

    if not real.rows:
        return scored(None, None, None, "the true table is empty")
    if not synthetic.rows:
        return scored(0.0, 0.0, 0.0)
    (flows,) = paired_cells(real, synthetic, [real.domain.canonical((place, to))])
    spatial = 1 - float(np.abs(flows.q / flows.q.sum() - flows.p / flows.p.sum()).sum()) / 2
    if subject is None:
        return scored(None, spatial, None, NO_UNIT)
    both = [_profile(t, s, place, time) for t, s in zip((real, synthetic), subject, strict=True)]
    if not both[0]:
        return scored(None, spatial, None, "no true row has a subject")
    h = higher_order_conjunction(*_aligned(both[0], both[1]))
    scores = (0.0 if k is None else k, spatial, h)
    return scored(1000 * math.fsum(scores) / 3, spatial, h)


def _aligned(truth: Profile, other: Profile) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """The counts of each taxi, true and synthetic, in the columns of the truth (sorted)."""
    nothing = np.zeros(len(next(iter(other.values()), ())), np.int32)
    return np.stack([*truth.values()], axis=1), np.stack([other.get(name, nothing) for name in truth], axis=1)


def _profile(table: CodedTable, subject: Numbers, place: str, time: str) -> Profile:
    """Trips of each taxi per shift, then per area; a number that is both is told apart by its name."""
    rows = np.asarray(subject) != NOBODY
    ids, taxis = np.unique(np.asarray(subject)[rows], return_inverse=True)
    codes = {name: np.asarray(table.column(name))[rows].astype(np.int64) for name in (time, place)}
    times, places = (set(np.unique(c).tolist()) for c in codes.values())
    shared = times & places if (place, time) == (PLACE, TIME) else times | places
    profile: Profile = {}
    for name, suffix in ((time, ""), (place, "p")):
        size = table.domain[name].size
        counts = np.bincount(taxis * size + codes[name], minlength=len(ids) * size).reshape(len(ids), size)
        for code in np.unique(codes[name]).tolist():
            profile[f"shared{suffix}" if code in shared else "alone", code] = counts[:, code].astype(np.int32)
    return profile


def higher_order_conjunction(real: NDArray[np.int32], synthetic: NDArray[np.int32]) -> float:
    """1 − the mean difference of the shares of subjects near a random true one; 1 is perfect.

    Args:
        real, synthetic: counts, one row per subject, with the same columns.
    """
    rng = np.random.RandomState(SEED)
    (low, high), apart = WIDTHS, []
    for _ in range(DRAWS):
        centre = real[rng.randint(0, len(real))]
        widths = np.asarray(rng.randint(low, high, size=real.shape[1]))
        near = [(np.abs(t - centre) <= widths).all(axis=1).mean() for t in (real, synthetic)]
        apart.append(float(abs(near[0] - near[1])))
    return 1 - math.fsum(apart) / DRAWS


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


def _alone(key: NDArray[np.uint64]) -> Ints:
    """The places of the keys that occur once."""
    _, places, counts = np.unique(key, return_index=True, return_counts=True)
    return np.asarray(places[counts == 1])
