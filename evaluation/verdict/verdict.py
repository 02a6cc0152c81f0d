"""Passed, failed or not judged: whether a synthetic table knows its training rows better than a holdout."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Literal

import numpy as np

from evaluation.metric import ROW_FACTS, Options
from evaluation.verdict.drift import Drift, at_least, drift, one_each
from evaluation.verdict.near_rows import affordable_rows, affordable_search, nearest_rows, places
from evaluation.verdict.rare_matches import (
    COPIES,
    LEVEL,
    REPEATS,
    TOLERATED,
    Excess,
    MatchTest,
    Pool,
    Share,
    Units,
    clopper_pearson,
    excess,
    least_noticed,
    match_test,
    per_unit,
    row_sums,
)
from mechanisms.public.arrays import Ints
from mechanisms.public.coded_table import CodedTable
from mechanisms.public.files import JsonDict

Result = Literal["passed", "failed", "not judged"]

#: Levels of the two tests of distances; with that of the matches they add up to 0.0015, so that of 400 exchangeable
#: tables more than two are flagged in at most one case of forty. Matches are few, and have most of it.
LEVEL_NEARER = LEVEL_OUTSTANDING = 0.00015
#: Without a control, pairs of equal rows must be so much likelier across than within the tables.
ACROSS = 2 / 3
NO_DRIFT = Drift()


@dataclass(frozen=True)
class Verdict:
    """The verdict on privacy, and what it rests on. Computed from raw rows: NOT private.

    Attributes:
        result: passed, failed or not judged.
        why: the verdict's reason, one clause.
        rows: of training, synthetic and holdout.
        matches: synthetic rows that equal a training row.
        repeats: holdout rows that equal a training row.
        reproduced: training rows, and holdout rows, that stand in the synthetic table.
        p_matches: of the reproduced rows, by a random split of the real units.
        noticed: the least share of copies that would have been noticed in 19 of 20 tables; None where none would, or
            where another reason came first.
        nearer: the share of synthetic rows whose nearest real row is a training row.
        outstanding: the same of rows that are at least twice as far from the next real row.
        compared: rows of training, synthetic and holdout in these two.
        drift: whether the holdout is like the training rows.
    """

    result: Result
    why: str
    rows: dict[str, int]
    matches: Share | None = None
    repeats: Share | None = None
    reproduced: tuple[Share, Share] | None = None
    p_matches: float | None = None
    noticed: float | None = None
    nearer: Excess | None = None
    outstanding: Excess | None = None
    compared: dict[str, int] | None = None
    drift: Drift = NO_DRIFT

    @property
    def headline(self) -> str:
        """The verdict and its reason."""
        if self.result == "failed":
            return f"failed ({self.why}): {self.evidence}"
        return f"{self.result}: {self.why}" + (f"; {self.evidence}" if self.evidence else "")

    @property
    def evidence(self) -> str:
        """The matches in one sentence; empty without a holdout."""
        if self.reproduced is None:
            return ""
        ours, theirs = self.reproduced
        both = f"{_percent(ours)} of the training rows and {_percent(theirs)} of the holdout's"
        return f"{both} stand in the synthetic table"

    @property
    def lines(self) -> list[str]:
        """What the console says first."""
        near, first = self.nearer, f"privacy: {self.headline}"
        if near is None:
            return [first]
        share = f"{near.share:.1%} ({near.low:.1%} to {near.high:.1%}) of the synthetic rows"
        against = f"{near.expected:.1%} by chance, up to {near.allowed:.1%} in a release of ε = {TOLERATED:g}"
        return [first, f"privacy: {share} are nearest to a training row, {against}"]

    def to_json(self) -> JsonDict:
        """JSON values; the verdict first."""
        out: JsonDict = {"verdict": self.result, "why": self.why, "words": self.headline, "rows": self.rows}
        if self.reproduced is None:
            return out
        assert self.matches is not None and self.repeats is not None
        return out | {
            "synthetic_rows_that_equal_a_training_row": self.matches.to_json(),
            "holdout_rows_that_equal_a_training_row": self.repeats.to_json(),
            "training_rows_in_the_synthetic_table": self.reproduced[0].to_json(),
            "holdout_rows_in_the_synthetic_table": self.reproduced[1].to_json(),
            "p_matches": self.p_matches,
            "copies_that_would_be_noticed": self.noticed,
            "nearest_to_a_training_row": self.nearer and asdict(self.nearer),
            "outstandingly_near_a_training_row": self.outstanding and asdict(self.outstanding),
            "rows_in_distances": self.compared,
            "levels": {"matches": LEVEL, "nearer": LEVEL_NEARER, "outstanding": LEVEL_OUTSTANDING},
            "drift": self.drift.to_json(),
        }


def _percent(share: Share) -> str:
    """A share with its interval and its count."""
    return f"{share.value:.2%} ({share.low:.2%} to {share.high:.2%}; {share.count:,} of {share.of:,})"


def verdict(
    training: CodedTable,
    synthetic: CodedTable,
    holdout: CodedTable,
    *,
    units: Units | None = None,
    seed: int = 0,
) -> Verdict:
    """Whether a synthetic table repeats, or lies nearer to, the rows that it was made from than those of a holdout.

    Goal: training units fare no worse than units that were set aside. A pass means that one per cent of verbatim copies
    would have been flagged in 19 of 20 tables, and that none of three tests at a joint level of 0.0015 rejects; it
    proves no privacy. Edge cases: a table without rows, a holdout that drifts or is too small, rows that
    repeat by nature: not judged, with the reason; copies are flagged even then, where they are beyond doubt.

    Args:
        training, synthetic, holdout: over one domain, of exact values as far as they are known.
        units: the privacy unit of each training and each holdout row; None where a row is a unit.
    """
    tables = {"training": training, "synthetic": synthetic, "holdout": holdout}
    rows = {name: table.rows for name, table in tables.items()}
    for name, table in tables.items():
        if not table.rows or not len(table.domain):
            return Verdict("not judged", f"the {name} table has no {'rows' if len(table.domain) else 'columns'}", rows)
    rng = np.random.default_rng(seed)
    pool = Pool.of(training, holdout)
    test = match_test(pool, synthetic, rng, units)
    nearer, outstanding, moved, compared = _distances(tables, pool, units, rng)
    parts = Verdict(
        "not judged",
        "",
        rows,
        matches=_matches(synthetic, training),
        repeats=_matches(holdout, training),
        reproduced=(_reproduced(test, pool.sides[0]), _reproduced(test, pool.sides[1])),
        p_matches=test.p,
        nearer=nearer,
        outstanding=outstanding,
        compared=compared,
        drift=moved,
    )
    return _judged(parts, test, synthetic, rng)


def _judged(parts: Verdict, test: MatchTest, synthetic: CodedTable, rng: np.random.Generator) -> Verdict:
    if parts.drift.reason:
        if _copies_without_control(test.pool, synthetic):
            return replace(parts, result="failed", why="copies of training rows")
        return replace(parts, why=parts.drift.reason)
    if test.flagged(test.matched, rng):
        return replace(parts, result="failed", why="copies of training rows")
    near = parts.nearer is not None and parts.nearer.p_beyond <= LEVEL_NEARER
    if near or (parts.outstanding is not None and parts.outstanding.p_beyond <= LEVEL_OUTSTANDING):
        return replace(parts, result="failed", why="synthetic rows are nearer to training rows than to the holdout")
    assert parts.repeats is not None
    if parts.repeats.value >= REPEATS:
        share = f"{parts.repeats.value:.1%} of the holdout's rows equal a training row"
        return replace(parts, why=f"rows repeat by nature ({share})")
    parts = replace(parts, noticed=least_noticed(test, synthetic.rows, rng))
    if parts.noticed is None or parts.noticed > COPIES:
        least = "no share of copies" if parts.noticed is None else f"only {parts.noticed:.0%} copies or more"
        return replace(parts, why=f"too few rows: {least} would be noticed")
    return replace(parts, result="passed", why=f"{COPIES:.0%} copies would have been noticed{_but(parts)}")


def _but(parts: Verdict) -> str:
    """What a pass keeps quiet about: more than a random split explains, less than a failure."""
    assert parts.p_matches is not None
    remarks = []
    if parts.p_matches <= LEVEL:
        least = f"less than {COPIES / 2:.1%} of the synthetic rows"
        remarks.append(
            f"training rows stand in it more often than the holdout's, by {least} (p = {parts.p_matches:.1g})"
        )
    if parts.nearer is not None and parts.nearer.p <= LEVEL_NEARER:
        remarks.append(f"it lies nearer to training rows than by chance, within what ε = {TOLERATED:g} allows")
    return "".join(f"; {remark}" for remark in remarks)


def _matches(asked: CodedTable, training: CodedTable) -> Share:
    return clopper_pearson(int(np.isin(row_sums(asked), row_sums(training)).sum()), asked.rows)


def _reproduced(test: MatchTest, side: slice) -> Share:
    matched = test.matched[side]
    return clopper_pearson(int(matched.sum()), matched.size)


def _copies_without_control(pool: Pool, synthetic: CodedTable) -> bool:
    """Copies beyond doubt where the holdout is of no use: too many pairs of equal rows across the two tables.

    Of a value with rate λ in the training table and μ in the synthetic one, two rows that have it are one of each with
    probability 2λμ / (λ + μ)² ≤ ½, whatever the two distributions are; ≤ ⅔ where neither table, or only one of them,
    has equal rows of its own.
    """
    training = pool.sums[: pool.training]
    synthetic_sums = row_sums(synthetic)
    values, value = np.unique(np.concatenate([training, synthetic_sums]), return_inverse=True)
    here = np.bincount(value[: training.size], minlength=values.size)
    there = np.bincount(value[training.size :], minlength=values.size)
    pairs = here + there == 2
    across = int((pairs & (here == 1)).sum())
    return at_least(across, int(pairs.sum()), ACROSS) <= LEVEL


def _distances(
    tables: dict[str, CodedTable], pool: Pool, units: Units | None, rng: np.random.Generator
) -> tuple[Excess | None, Excess | None, Drift, dict[str, int]]:
    """The two tests of distances, among all real rows where possible, and the drift, on samples of whole units."""
    width, real = len(pool.tables[0].domain), tables["training"].rows + tables["holdout"].rows
    searched, asked_rows = affordable_search(real, width)
    each: dict[str, Ints | None] = dict.fromkeys(tables)
    each |= {} if units is None else {"training": units[0], "holdout": units[1]}
    most = {n: -(-t.rows * searched // real) for n, t in tables.items()} | {"synthetic": asked_rows}
    chosen = {name: _sampled(table.rows, each[name], most[name], rng) for name, table in tables.items()}
    cut = {n: t.at(chosen[n]) for n, t in tables.items()}
    whole = places([cut[name] for name in ("training", "holdout", "synthetic")])
    split, real = cut["training"].rows, cut["training"].rows + cut["holdout"].rows
    asked, searched_rows = whole.only(np.arange(real, whole.rows)), whole.only(np.arange(real))
    neighbours = nearest_rows(asked, searched_rows)
    sides = [None if (u := each[n]) is None else u[chosen[n]] for n in ("training", "holdout")]
    results = []
    for weight in (neighbours.nearest_of, neighbours.outstanding_of):
        parts = (weight[:split], weight[split:])
        results.append(excess(*(per_unit(part, unit) for part, unit in zip(parts, sides, strict=True))))
    lone = [one_each(unit, cut[n].rows, rng) for n, unit in zip(("training", "holdout"), sides, strict=True)]
    lone = [rows[_sampled(rows.size, None, affordable_rows(width), rng)] for rows in lone]
    near = (searched_rows.only(np.concatenate([lone[0], split + lone[1]])), lone[0].size)
    moved = drift(tables["training"], tables["holdout"], pool, units, rng, near)
    return results[0], results[1], moved, {name: table.rows for name, table in cut.items()}


def _sampled(rows: int, unit: Ints | None, most: int, rng: np.random.Generator) -> Ints:
    """About so many rows at most: of whole units, in the order of the table."""
    if rows <= most:
        return np.arange(rows)
    if unit is None:
        return np.sort(rng.choice(rows, most, replace=False))
    names, number = np.unique(unit, return_inverse=True)
    chosen = rng.random(names.size) < most / rows
    return np.flatnonzero(chosen[number])


def judge(real: CodedTable, synthetic: CodedTable, options: Options) -> Verdict:
    """Privacy against the holdout; not judged, with the reason, where there is none or the tables do not fit.

    Units are those that the options name, else the subjects where those of the holdout are known.
    """
    holdout, rows = options.holdout, {"training": real.rows, "synthetic": synthetic.rows}
    if holdout is None:
        need = options.why.get("holdout", ROW_FACTS["holdout"])
        return Verdict("not judged", f"there is no holdout ({need})", rows)
    if not real.domain == synthetic.domain == holdout.domain:
        return Verdict("not judged", "the tables have different columns or codes", rows)
    units = None
    if options.unit is not None and options.holdout_unit is not None:
        units = (np.asarray(options.unit, np.int64), np.asarray(options.holdout_unit, np.int64))
    return verdict(real, synthetic, holdout, units=units, seed=options.seed)
