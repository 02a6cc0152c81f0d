"""Bounds on the errors of a release's marginals, and estimates from its answers: a folder in, a table of lines out."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from mechanisms.public.arrays import Floats
from mechanisms.public.coded_table import CodedTable, count_cliques, in_batches
from mechanisms.public.domain import Clique
from mechanisms.public.errors import UserError
from mechanisms.public.files import Json
from mechanisms.public.release import Measurements
from mechanisms.public.schema.table_schema import Schema, as_a_column
from mechanisms.public.tables.codec import encode_columns
from mechanisms.public.tables.formats import released_table
from mechanisms.public.units import WEIGHT_BITS
from pipeline.inference import estimates
from pipeline.inference.coarse_answers import cell_limits
from pipeline.inference.estimate_questions import EstimateQuestion
from pipeline.inference.marginal_estimates import FRECHET, INSIDE, MEASURED, MarginalEstimate, ReleaseEvidence
from pipeline.inference.noise_bounds import NoiseTerm, tail
from pipeline.inference.person_level import LEVELS, at_level
from pipeline.inference.ratio_intervals import ALPHA
from pipeline.inference.relations import in_words, strongest
from pipeline.release_folder import check_columns, names_asked, read_release
from pipeline.report.answer_noise import cell_lines, coverage
from pipeline.scores.table_sources import open_released
from pipeline.settings.config import LimitsConfig
from pipeline.statement.signing import read_manifest
from pipeline.statement.words import as_fields, noted, refuse_part

#: Marginals of more cells are not counted for a bound.
MAX_CELLS = 4_000_000
#: Of wide tables, with more columns and pairs than these, pairs that no answer contains are bound on request alone.
MOST_BOUNDS = 50_000
#: Cells that are counted in one go.
BATCH = 20_000_000
#: Of a table of bounds, also of one that holds none.
COLUMNS = ["marginal", "how", "cells", "standard_error", "error_records", "error_tvd", "sources"]
#: What every table of bounds says of itself.
NOTES = (
    "each bound holds for its marginal with 95 % confidence over the noise",
    "against the table as clipping and the schema's bins left it, not against what these took away",
)
#: And estimates of a population, where units have several records.
TOGETHER = "a unit may have several records, which are no independent draws: the error of sampling is larger than that"


def bounds(release: Path, *, marginal: Sequence[str] = (), synthetic: CodedTable | None = None) -> pd.DataFrame:
    """A 95 % bound on the error of each 1- and 2-way marginal of a synthetic table, or of one marginal.

    Guarantee: post-processing of the release; costs no privacy.

    Args:
        release: the release folder of a run.
        marginal: columns of the one marginal; empty: every one and every pair.
        synthetic: the rows of its table, where they are at hand.
    Returns:
        marginal, how, cells, standard_error (of a cell, in records), error_records (Σ |error| at most), error_tvd (at
        most), sources; the worst last. `attrs` has notes, and the strongest relations (`related`) in words.
    Raises:
        UserError: no release, or one without its table, or whose table is a part of the whole; an unknown column; too
            many cells.
    """
    schema, statement, measurements = read_release(release)
    manifest = read_manifest(release)
    refuse_part(None if manifest is None else manifest.given, "bounds")
    table = release / released_table((p.name for p in release.iterdir()), release) if synthetic is None else synthetic
    return table_bounds(schema, statement, measurements, table, marginal=marginal)


def table_bounds(
    schema: Schema,
    statement: Json,
    measurements: Measurements,
    table: Path | CodedTable,
    *,
    marginal: Sequence[str] = (),
) -> pd.DataFrame:
    """`bounds` of a release that is loaded already; `table` is its synthetic table, or the file of that."""
    names = [c.name for c in schema.columns if as_a_column(schema, c.name) and schema.domain[c.name].size > 1]
    if one := names_asked(marginal, "marginal"):
        check_columns(schema, "marginal", one)
        asked = [schema.domain.canonical(one)]
        if schema.domain.cells(asked[0]) > MAX_CELLS:
            problem = f"{schema.domain.cells(asked[0]):,} cells"
            raise UserError(problem, where="marginal", fix=f"a marginal of at most {MAX_CELLS:,} cells")
        left = 0
    else:
        asked, left = _columns_and_pairs(schema, measurements, names)
    with tempfile.TemporaryDirectory(prefix="bounds-") as work:
        if isinstance(table, Path):
            source = open_released(table, LimitsConfig(), Path(work) / "scan", schema.dialect)
            table, _ = encode_columns(source, schema, workdir=Path(work) / "codes")
        lines = list(error_bounds(measurements, table, asked))
        related = in_words(strongest(measurements, table))
    frame = as_frame(schema, lines)
    changed = [c.name for c in schema.columns if not c.constant and not as_a_column(schema, c.name)]
    wide = [f"{left:,} pairs that no answer contains are left out: ask for one with `marginal=[a,b]`"] if left else []
    without = f"no bounds of {', '.join(changed)}: a rule of the schema made what was measured of them"
    frame.attrs["notes"] = [
        *NOTES,
        *cell_lines(schema, coverage(measurements).noisy, as_fields(statement)["unit"]["column"]),
        *wide,
        *([without] if changed else []),
    ]
    frame.attrs["related"] = related
    return noted(frame, statement)


def _columns_and_pairs(schema: Schema, measurements: Measurements, names: Sequence[str]) -> tuple[list[Clique], int]:
    """What is bound unasked: every column and pair that is not too large; and how many pairs are left out."""
    pairs = list(itertools.combinations(names, 2))
    some = pairs
    if len(names) + len(pairs) > MOST_BOUNDS:
        some = [p for p in pairs if measurements.answers_about(p)]
    every = [*((n,) for n in names), *some]
    return [c for c in every if schema.domain.cells(c) <= MAX_CELLS], len(pairs) - len(some)


def error_bounds(measurements: Measurements, synthetic: CodedTable, cliques: Sequence[Clique]) -> Iterable[ErrorBound]:
    """A bound for each marginal, in the order asked.

    Args:
        synthetic: rows over the table's columns; their names and codes are those of the measured ones.
    """
    evidence, rows = ReleaseEvidence(measurements), max(synthetic.rows, 1)
    scale = scale_of(evidence)
    for batch in in_batches(synthetic.domain, cliques, BATCH):
        for clique, counts in zip(batch, count_cliques(synthetic, batch), strict=True):
            shares: Floats = counts / rows
            yield error_bound(evidence, measurements.domain.canonical(clique), shares, scale)


def as_frame(schema: Schema, each_bound: Sequence[ErrorBound]) -> pd.DataFrame:
    """One line per bound, the smallest first."""
    lines = [
        (
            " × ".join(b.clique),
            b.how,
            schema.domain.cells(b.clique),
            np.nan if b.standard_error is None else round(b.standard_error, 2),
            round(b.records, 1),
            round(min(b.tvd + 5e-5, 1.0), 4),  # rounded up
            "; ".join(" × ".join(s) for s in b.sources),
        )
        for b in sorted(each_bound, key=lambda b: b.tvd)
    ]
    return pd.DataFrame(lines, columns=COLUMNS)


def estimate(
    schema: Schema,
    statement: Json,
    measurements: Measurements,
    question: EstimateQuestion,
) -> pd.DataFrame:
    """An estimate for each group from a release, as it was read: see `estimates.estimate`.

    Raises:
        UserError: an impossible question; no measured marginal tells it.
    """
    frame = estimates.estimate(*at_level(schema, measurements, question.level), question)
    together = question.sampling and question.level == LEVELS[0]
    if together and as_fields(statement)["unit"]["max_records"] != 1:
        frame.attrs["notes"].append(TOGETHER)
    return noted(frame, statement)


#: The part of ALPHA that pays for not knowing the number of records, where shares are compared.
TOTAL_PART = 0.1
#: How a bound was found, beside what marginals tell.
SCORED, UNKNOWN = "distance from independence", "nothing measured"
#: Of a marginal whose distance from independence was released, this part of α pays for the distance, the rest for
#: limits from its columns; the smaller bound is taken.
SCORE_PART = 0.8


@dataclass(frozen=True)
class ErrorBound:
    """One marginal's bound.

    Attributes:
        clique: the columns.
        how: MEASURED, INSIDE, SCORED, FRECHET or UNKNOWN.
        standard_error: of an unbiased estimate of a cell, the mean over cells, in records; None: there is no estimate.
        records: with 95 % confidence Σ over cells |true − synthetic| is at most so much, in records, where the
            synthetic table is scaled to the estimated number of records.
        tvd: with 95 % confidence the total variation distance of the shares is at most so much.
        sources: the marginals that it comes from.
    """

    clique: Clique
    how: str
    standard_error: float | None
    records: float
    tvd: float
    sources: tuple[Clique, ...]


@dataclass(frozen=True)
class ErrorScale:
    """The number of records, as the answers tell it.

    Attributes:
        records: the estimate, at least 0.
        low, high: with confidence 1 − α; `alpha` is that α, 0 where the number is public.
    """

    records: float
    low: float
    high: float
    alpha: float

    def tvd(self, error: float) -> float:
        """A bound on the distance of shares from one on the distance in records.

        With M the true counts, N their sum, N̂ the estimate and q the synthetic shares: ‖M/N − q‖₁ ≤ (‖M − N̂q‖₁ + |N −
        N̂|)/N̂, and |N − N̂| ≤ ‖M − N̂q‖₁.
        """
        if self.records <= 0:
            return 1.0
        off = min(max(self.high - self.records, self.records - self.low), error)
        return min((error + off) / (2 * self.records), 1.0)


def scale_of(evidence: ReleaseEvidence) -> ErrorScale:
    """The number of records with its interval; all zeros without any answer."""
    total = evidence.total
    if total is None:
        return ErrorScale(0.0, 0.0, 0.0, 0.0)
    alpha = 0.0 if not total.sources else ALPHA * TOTAL_PART
    reach = float(total.reach(alpha)[0]) if alpha else 0.0
    value = max(float(total.values[0]), 0.0)
    return ErrorScale(value, max(float(total.values[0]) - reach, 0.0), value + reach, alpha)


def error_bound(evidence: ReleaseEvidence, clique: Clique, shares: Floats, scale: ErrorScale) -> ErrorBound:
    """A 95 % bound on the error of one marginal of the synthetic table.

    Guarantee: post-processing; costs no privacy. The probability is that of the noise, over all that was drawn for
        this release; the true table is the clipped one whose answers were released, with its weights.
    Args:
        shares: the marginal of the synthetic table, adding up to 1 (all 0 for a table without rows).
        scale: from `scale_of`.
    """
    synthetic, alpha = shares * scale.records, ALPHA - scale.alpha
    most = scale.high + float(synthetic.sum())  # tables without anything in common
    marginal = evidence.estimate(clique)
    if marginal is not None:
        error = min(measured_error(marginal, synthetic, alpha), most)
        how = MEASURED if clique in marginal.sources else INSIDE
        return ErrorBound(clique, how, float(marginal.errors.mean()), error, scale.tvd(error), marginal.sources)
    scored = scored_error(evidence, clique, synthetic, alpha * SCORE_PART, scale.high)
    limits = cell_limits(evidence, clique, alpha if scored is None else alpha * (1 - SCORE_PART))
    if limits is None:
        return ErrorBound(clique, UNKNOWN, None, float("inf"), 1.0, ())
    error = limit_error(limits.low, limits.high, limits.total, synthetic)
    if scored is not None and scored < error:
        return ErrorBound(clique, SCORED, None, scored, scale.tvd(scored), limits.sources)
    how = FRECHET if limits.sources else UNKNOWN
    return ErrorBound(clique, how, None, error, scale.tvd(error), limits.sources)


def measured_error(marginal: MarginalEstimate, synthetic: Floats, alpha: float) -> float:
    """t with P(‖M − synthetic‖₁ > t) ≤ α, whatever the synthetic counts are, in records.

    ‖M − s‖₁ ≤ ‖s − y⁺‖₁ + ‖y⁺ − M‖₁, and ‖y⁺ − M‖₁ = ‖y − M‖₁ − Σ y⁻ as M ≥ 0: what the noise spent on negative
    answers it did not spend elsewhere. The synthetic counts may depend on the answers: only the noise's own sum is
    bounded.
    """
    negative = float(np.minimum(marginal.values, 0.0).sum())
    left = max(marginal.sum_bound(alpha) + negative, 0.0)
    return float(np.abs(synthetic - np.maximum(marginal.values, 0.0)).sum()) + left


def scored_error(
    evidence: ReleaseEvidence, clique: Clique, synthetic: Floats, alpha: float, most: float
) -> float | None:
    """t with P(‖M − synthetic‖₁ > t) ≤ α by the released distance from independence; None where there is none.

    ‖M − s‖₁ ≤ ‖M − E‖₁ + ‖E − s‖₁ (McKenna et al. 2022, section 5, for choices). E are independent columns by answers
    from before the distance was drawn: its noise owes nothing to E, and the synthetic counts may be fitted to both.

    Where differences d = M − E up to a level do not count, e = Σ max(|d| − level, 0) leaves Σ|d| ≤ e + cells · level;
    and as M ≥ 0, Σ d⁻ ≤ e + Σ min(E, level), so that Σ|d| = 2 Σ d⁻ + Σ d ≤ 2 (e + Σ min(E, level)) + Σ M − Σ E.

    Args:
        most: an upper bound on Σ M.
    """
    if (released := evidence.distance(clique)) is None:
        return None
    distances, place = released
    expected = evidence.independent(clique)
    rounded = expected.size * 2.0 ** -(WEIGHT_BITS + 1)  # the distance was taken on the lattice of counts
    reach = tail((NoiseTerm(distances.noise, distances.scale),), 2 * alpha)  # on one side only
    distance = max(float(distances.values[place]) + reach, 0.0) + rounded
    if distances.below:
        hidden = float(np.minimum(expected, distances.below).sum())
        more = max(most - float(expected.sum()), 0.0)
        distance = min(distance + expected.size * distances.below, 2 * (distance + hidden) + more)
    return distance + float(np.abs(expected - synthetic).sum())


def limit_error(low: Floats, high: Floats, total: tuple[float, float], synthetic: Floats) -> float:
    """The largest ‖M − synthetic‖₁ that limits of the cells and of their sum leave, in records, from above.

    The least of three bounds: cell by cell; by what both have in common, N + S − 2 Σ min(low, s); and by what M may
    have more of, S − N + 2 Σ (high − s)⁺, with S = Σ s.
    """
    own = float(synthetic.sum())
    cells = float(np.maximum(high - synthetic, synthetic - low).sum())
    common = total[1] + own - 2 * float(np.minimum(low, synthetic).sum())
    more = own - total[0] + 2 * float(np.maximum(high - synthetic, 0.0).sum())
    return min(cells, common, more)
