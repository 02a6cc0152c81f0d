"""ANITA's privacy (Platzer 2020, section 3): DCR and NNDR of synthetic against holdout records, matches, a verdict."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Literal

import numpy as np

from evaluation.accuracy.anita_accuracy import bucket_tables
from evaluation.learning.features import some_rows
from evaluation.metric import Inputs, Options
from evaluation.papers.anita.anita_compare import PrivacyComparison, RateEstimate, clustered_variance, compare, estimate
from evaluation.papers.paper_metrics import DistanceSettings
from evaluation.readings.reading import Ends
from evaluation.verdict.near_rows import NO_ROW, RowPlaces, nearest_rows
from evaluation.verdict.rare_matches import column_marks, row_sums
from mechanisms.public.arrays import Floats, Ints
from mechanisms.public.coded_table import CodedTable, check_same_domain
from mechanisms.public.files import Json, JsonDict
from mechanisms.public.schema.table_schema import Schema

#: A holdout with fewer records is not split for the real-against-real reference.
SPLIT_ROWS = 20
#: Points of a curve that a report draws.
POINTS = 51


@dataclass(frozen=True)
class Closer:
    """Is a synthetic record nearer to the training table or to a holdout of the same size?

    Attributes:
        closer_to_training, tie, closer_to_holdout: shares of the synthetic records; they add up to 1.
        share: the first and half of the ties, with interval and test against what real records score.
        real_against_real: the same share of one half of the holdout, nearer to training or to the other half; None if
            too small.
    """

    closer_to_training: float
    tie: float
    closer_to_holdout: float
    share: RateEstimate
    real_against_real: RateEstimate | None


@dataclass(frozen=True, eq=False)
class Privacy:
    """How near synthetic records come to the training records, beside how near unseen real ones come.

    Attributes:
        columns: the columns compared.
        kind: how distances are measured.
        rows: of training, synthetic and holdout, among which equal records are looked for.
        measured: the same for the distances.
        dcr, nndr: distances to the closest record, and ratios of the nearest to the second nearest.
        closer: shares nearer to training, tied, nearer to the holdout; None without a holdout.
        synthetic_matches, holdout_matches: records that equal a training record, wholly or but for one attribute.
        warnings: what the reader must know.
        reason: why nothing could be computed.
    """

    columns: tuple[str, ...]
    kind: Kind
    rows: dict[str, int]
    dcr: PrivacyComparison | None = None
    nndr: PrivacyComparison | None = None
    closer: Closer | None = None
    synthetic_matches: JsonDict | None = None
    holdout_matches: JsonDict | None = None
    warnings: tuple[str, ...] = ()
    reason: str = ""
    measured: dict[str, int] = field(default_factory=dict)

    @property
    def share(self) -> float | None:
        """The share of synthetic records that lie nearer to training than to the holdout."""
        return None if self.closer is None else self.closer.share.value

    @property
    def passed(self) -> bool | None:
        """The paper's verdict: neither DCR nor NNDR is systematically smaller than the holdout's.

        None if unknown, and where a warning says that the holdout is of no use.
        """
        if self.warnings:
            return None
        parts = [c.passed for c in (self.dcr, self.nndr) if c is not None and c.passed is not None]
        return all(parts) if parts else None

    @property
    def ends(self) -> Ends | None:
        """Of the share: real records in the place of the synthetic ones, and copies of training records."""
        if self.closer is None:
            return None
        share, real = self.closer.share, self.closer.real_against_real
        limits, of = (0.05, 0.2), "two halves of the holdout" if real is not None else "real records"
        honest, poor = share.null if real is None else real.value, "copies of training records"
        return Ends(honest, None, 1.0, share.low, share.high, limits=limits, honest_is=of, poor_is=poor)

    def drawn(self, schema: Schema, options: Options) -> JsonDict:
        """The curves of both distances, for a report."""
        parts = {name: part for name, part in (("dcr", self.dcr), ("nndr", self.nndr)) if part is not None}
        curves = {name: part.curve(POINTS).to_dict("list") for name, part in parts.items() if part.synthetic.size}
        about = {"passed": self.passed, "columns": len(self.columns), "rows": self.measured}
        return {"distances": curves | about} if curves else {}

    def to_json(self) -> JsonDict:
        """JSON values; the verdict first."""
        parts = {"dcr": self.dcr, "nndr": self.nndr}
        return {
            "passed": self.passed,
            **({"reason": self.reason} if self.reason else {}),
            "distance": self.kind,
            "columns": list(self.columns),
            "rows": self.rows,
            "distance_rows": self.measured,
            **{name: None if part is None else part.to_json() for name, part in parts.items()},
            "closer": None if self.closer is None else asdict(self.closer),
            "synthetic_matches": self.synthetic_matches,
            "holdout_matches": self.holdout_matches,
            "warnings": list(self.warnings),
        }


def privacy_of(inputs: Inputs) -> Privacy:
    """The metric `anita_privacy`: DCR, NNDR and matches of synthetic against training records, judged by a holdout.

    Goal: synthetic records are no nearer to training records than unseen real records are. Range: DCR from 0 to the
    number of columns, NNDR in [0, 1]. Reference: the holdout's own values; a share of ½ closer to training.
    Edge cases: zero distances are values (two zeros have ratio 1); ties are counted apart; one training record leaves
    NNDR undefined; without a holdout there is no verdict.
    """
    own, holdout, domain = inputs.own(DistanceSettings), inputs.options.holdout, inputs.real.domain
    names = domain.canonical(own.distance_columns or domain.names)
    kind: Kind = "mixed" if own.distance == "mixed" else "hamming"
    tables = {"training": inputs.real, "synthetic": inputs.synthetic}
    tables |= {} if holdout is None else {"holdout": holdout}
    rng = np.random.default_rng(inputs.options.seed)
    cut = {k: some_rows(t.over(names), own.max_rows or t.rows, rng) for k, t in tables.items()}
    rows = {k: t.rows for k, t in cut.items()}
    if min(rows.values()) == 0:
        return Privacy(names, kind, rows, reason="a table without records has no distances")
    matched = matches(cut["synthetic"], cut["training"])
    held = None if holdout is None else matches(cut["holdout"], cut["training"])
    warnings = () if held is None else overlap_warning(cut["training"], held)
    cut = {k: some_rows(t, own.distance_rows or t.rows, rng) for k, t in cut.items()}
    measured = {k: t.rows for k, t in cut.items()}
    if (m := own.distance_buckets) is not None:
        cut = dict(zip(cut, bucket_tables(cut["training"], list(cut.values())[1:], m=m), strict=True))
    nearest_records = nearest(cut["synthetic"], cut["training"], kind=kind)
    if holdout is None:
        parts = [compare(x, None) for x in (nearest_records.first, nearest_records.ratio)]
        return Privacy(names, kind, rows, parts[0], parts[1], None, matched, measured=measured)
    unseen = nearest(cut["holdout"], cut["training"], kind=kind)
    dcr = compare(nearest_records.first, unseen.first, clusters=nearest_records.index)
    nndr = compare(nearest_records.ratio, unseen.ratio, clusters=nearest_records.index)
    nearer = closer(
        cut["training"], cut["synthetic"], cut["holdout"], kind=kind, rng=rng, nearest_records=nearest_records
    )
    return Privacy(names, kind, rows, dcr, nndr, nearer, matched, held, warnings, measured=measured)


def closer(
    training: CodedTable,
    synthetic: CodedTable,
    holdout: CodedTable,
    *,
    kind: Kind,
    rng: np.random.Generator,
    nearest_records: Nearest,
) -> Closer:
    """The share of synthetic records nearer to training than to the holdout, both cut to the same size.

    Args:
        nearest_records: the nearest training records, used where training need not be cut.
    """
    size = min(training.rows, holdout.rows)
    seen, unseen = some_rows(training, size, rng), some_rows(holdout, size, rng)
    to_seen = nearest_records if seen.rows == training.rows else nearest(synthetic, seen, kind=kind)
    share, variance, parts = _share(to_seen, nearest(synthetic, unseen, kind=kind))
    if holdout.rows < SPLIT_ROWS:
        return Closer(*parts, estimate(share, variance), None)
    order = rng.permutation(holdout.rows)
    asked, other = (holdout.at(half) for half in np.array_split(order, 2))
    fair = min(other.rows, training.rows)
    distances = [nearest(asked, some_rows(t, fair, rng), kind=kind) for t in (training, other)]
    real, real_variance, _ = _share(*distances)
    test = estimate(share, variance, null=real, null_variance=real_variance)
    return Closer(*parts, test, estimate(real, real_variance))


def _share(seen: Nearest, unseen: Nearest) -> tuple[float, float, tuple[float, float, float]]:
    gap = np.asarray(unseen.first - seen.first)
    score = np.where(np.abs(gap) < 1e-9, 0.5, np.where(gap > 0, 1.0, 0.0))
    parts = tuple(float((score == x).mean()) for x in (1.0, 0.5, 0.0))
    # Records with the same nearest record on either side are not independent: clusters in two ways.
    one, two = (clustered_variance(score, x.index) for x in (seen, unseen))
    alone = clustered_variance(score, np.arange(score.size))
    return float(score.mean()), max(one + two - alone, alone), (parts[0], parts[1], parts[2])


def overlap_warning(training: CodedTable, held: Json) -> tuple[str, ...]:
    """A warning where far more holdout records than training records have an equal among the (other) training ones."""
    _, inverse, counts = np.unique(row_sums(training), return_inverse=True, return_counts=True)
    twins, share = float((counts[inverse] > 1).mean()), held["exact_share"]
    error = np.sqrt(max(twins * (1 - twins), 1e-4) * (1 / held["rows"] + 1 / training.rows))
    if share - twins > max(0.02, 6 * error):
        return (
            f"{share:.1%} of the holdout records equal a training record, where {twins:.1%} of the training records "
            "equal another one: the holdout seems to overlap the training table, and the verdict means nothing",
        )
    return ()


#: How far two records lie apart: by unequal columns, or also by steps of ordinal ones.
Kind = Literal["hamming", "mixed"]
#: Steps on the line of an ordinal attribute, whose distances are rounded to them.
LINE = 2**20


@dataclass(frozen=True, eq=False)
class Nearest:
    """For each record asked about: how far the two nearest reference records are.

    Attributes:
        first, second: distances in attributes, from 0 to the number of columns; second is inf for a single reference.
        index: the first of the nearest reference records.
    """

    first: Floats
    second: Floats
    index: Ints

    @property
    def ratio(self) -> Floats:
        """Nearest over second nearest, in [0, 1]: 1 where both are 0 (neither stands out), NaN without a second."""
        safe = np.where(self.second > 0, self.second, 1.0)
        ratio = np.where(self.second > 0, self.first / safe, 1.0)
        return np.asarray(np.where(np.isinf(self.second), np.nan, ratio))


def nearest(queries: CodedTable, reference: CodedTable, *, kind: Kind = "hamming") -> Nearest:
    """The two nearest reference records of every query record, compared with all of them.

    Hamming counts the attributes that differ. Mixed counts |i − j| / (k − 1) of ordinal attributes instead, and 1
    between *other*, *missing* and the values.
    Cost: that of `nearest_rows`; memory: the tables again.
    """
    check_same_domain(queries, reference)
    n = queries.rows
    if n == 0 or reference.rows == 0:
        return Nearest(np.full(n, np.inf), np.full(n, np.inf), np.full(n, -1, np.int64))
    both = _places((queries, reference), kind)
    near = nearest_rows(*(both.only(rows) for rows in np.split(np.arange(both.rows), [n])))
    second = np.where(near.second < NO_ROW, near.second / both.apart, np.inf)
    return Nearest(near.first / both.apart, second, near.index)


def _places(tables: tuple[CodedTable, CodedTable], kind: Kind) -> RowPlaces:
    """Both tables, one below the other: in bytes where columns only are equal or not and have few values."""
    ordered, others = [], []
    for attribute, *both in zip(tables[0].domain.attributes, *(t.columns for t in tables), strict=True):
        k, codes = attribute.ordered if kind == "mixed" else 0, np.concatenate(both).astype(np.int64)
        if k > 1:
            ordered.append(np.rint(np.where(codes < k, codes / (k - 1), codes - k + 2) * LINE))
        else:
            others.append(np.unique(codes, return_inverse=True)[1])
    rows = sum(t.rows for t in tables)
    lines, values = (np.array(part, np.uint32).reshape(len(part), rows) for part in (ordered, others))
    if ordered or values.max(initial=0) > 255:
        return RowPlaces(lines, values, LINE if ordered else 1)
    return RowPlaces(lines.astype(np.uint8), values.astype(np.uint8), 1)


def matches(queries: CodedTable, reference: CodedTable) -> JsonDict:
    """How many records equal a reference record in every attribute, and in all but one alone (Platzer 2020, section 3).

    As JSON values: rows, exact and all_but_one, and the shares of both (`exact_share` …).
    Cost: one sort of the reference per attribute; records are compared by 64-bit sums, whose chance to collide is
    about rows × rows × columns / 2⁶⁴.
    """
    check_same_domain(queries, reference)
    asked, stored = row_sums(queries), row_sums(reference)
    exact = np.isin(asked, stored)
    near, left = np.zeros(queries.rows, bool), np.flatnonzero(~exact)
    for i in range(len(queries.domain)) if len(queries.domain) > 1 else ():
        marks = column_marks(queries, i)
        near[left] |= np.isin(asked[left] - marks[queries.columns[i][left]], stored - marks[reference.columns[i]])
    figures: JsonDict = {"rows": queries.rows}
    for name, places in (("exact", exact), ("all_but_one", near)):
        count = int(places.sum())
        figures |= {name: count, f"{name}_share": count / queries.rows if queries.rows else None}
    return figures
