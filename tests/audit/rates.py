"""What a release says of its own errors, by simulation: how often published bounds and intervals hold, over whole runs.

A table and a run per seed, both of it. Runs are independent of each other; the bounds of one run are not, and so the
share of a run's bounds that hold is what is looked at. Published tables leave bounds room; the hardest ones leave none.
"""

import math
from collections import defaultdict
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import t as student

from mechanisms.public.arrays import Floats
from mechanisms.public.coded_table import CodedTable, count_cliques
from mechanisms.public.domain import Clique
from mechanisms.public.errors import UserError
from mechanisms.public.tables.codec import encode_columns
from mechanisms.public.tables.scan import open_table
from pipeline import bounds, estimate, stages
from pipeline.inference.marginal_estimates import ReleaseEvidence
from pipeline.inference.relations import distances
from pipeline.inference.release_bounds import ALPHA, measured_error, scale_of, scored_error
from pipeline.release_folder import read_release
from pipeline.settings import build
from pipeline.settings.specs import build_specs
from tests.audit.cases import Case, config_of
from tests.audit.hooks import Broken, Summed, swapped
from tests.audit.sampling import RARE
from tests.audit.worlds import RECORDS, Row, fresh, write_table

#: What is published holds with this probability.
HOLDS = 0.95
#: Fewer runs say nothing.
FEWEST = 10
#: Selections with their noise: between them bounds of every kind, whole, merged, grid and residual answers.
KINDS = (
    ("oneway", "laplace", "basic"),
    ("merged", "gaussian", "gdp"),
    ("adagrid given", "gaussian", "gdp"),
    ("mst", "gaussian", "zcdp"),
    ("indif", "gaussian", "gdp"),
    ("auto", "gaussian", "gdp"),
    ("auto residuals", "gaussian", "gdp"),
)
#: Questions whose answer a whole table knows exactly, whatever lies inside bins; of two values a correlation too.
ASKED: tuple[dict[str, Any], ...] = (
    {"what": "count", "by": "b"},
    {"what": "mean", "column": "a"},
    {"what": "proportion", "column": "a", "value": 1, "by": "d"},
    {"what": "correlation", "column": "a", "other": "c", "within_bin": "midpoint"},
    {"what": "odds_ratio", "column": "d", "other": "e"},
)


@dataclass
class Rates(Summed):
    """How often what was published held: per kind a share of each run, and the distances' errors in their own unit.

    Attributes:
        held: kind → the share of each run's statements that held.
        off: the root mean square error of each run's distances from independence, in their own standard errors.
    """

    runs: int = 0
    held: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    off: list[float] = field(default_factory=list)


def people(seed: int, rows: int = 400) -> tuple[Row, ...]:
    """Records whose columns depend on each other, some values rare; all of them inside of the schema."""
    rng = np.random.default_rng([seed, 28])
    a = rng.choice(4, rows, p=rng.dirichlet([4, 3, 2, 0.5]))
    c = np.clip(2 * a + rng.integers(0, 5, rows), 0, 9)
    d, e = rng.random(rows) < 0.2 + 0.15 * a, rng.random(rows) < 0.3 + 0.04 * c
    b = rng.choice(["x", "y", "zzz"], rows, p=[0.6, 0.38, 0.02])
    words = zip(a, b, c, np.where(d, "yes", "no"), e.astype(int), strict=True)
    return tuple(("", *map(str, row)) for row in words)


def figures(table: CodedTable) -> Iterator[tuple[dict[str, Any], list[float]]]:
    """Each question with its true answers, from the codes of the real rows."""
    a, b, c, d, e = (table.column(n).astype(np.int64) for n in "abcde")
    first, second = (d == 0, e == 0)
    cross = [int((x & y).sum()) for x in (first, ~first) for y in (second, ~second)]
    yield ASKED[0], np.bincount(b, minlength=table.domain["b"].size).tolist()
    yield ASKED[1], [float(a.mean())]
    yield ASKED[2], [float((a[d == k] == 1).mean()) if (d == k).any() else math.nan for k in range(2)]
    yield ASKED[3], [float(np.corrcoef(a, c)[0, 1]) if np.ptp(a) and np.ptp(c) else math.nan]
    yield ASKED[4], [cross[0] * cross[3] / (cross[1] * cross[2]) if cross[1] * cross[2] else math.nan]


def published(folder: Path, kind: tuple[str, str, str], seed: int) -> tuple[Path, CodedTable, CodedTable]:
    """A release of one run, with noise from a seed of its own; the codes of the rows that it is of, and of its own."""
    selection, mechanism, accountant = kind
    case = Case(selection, mechanism, accountant, RECORDS, "plain", float((1, 2, 4)[seed % 3]), seed)
    home = fresh(folder, "rates")
    table = write_table(home / "t.csv", people(seed))
    config = config_of(case, folder, table)
    with swapped("source", lambda original: lambda given: original(9_000 + seed if given is None else given)):
        stages.run(config, home / "run", quiet=True)
    release, schema, codes = home / "run" / "release", build.build_schema(build_specs(config)), []
    for path in (table, release / "synthetic.csv"):
        source = open_table(path, workdir=home / "scan", memory_limit_bytes=1 << 28, threads=1)
        codes.append(encode_columns(source, schema, workdir=home / f"codes {path.stem}")[0])
    return release, codes[0], codes[1]


def hardest(evidence: ReleaseEvidence, clique: Clique, true: Floats) -> tuple[str, bool] | None:
    """Whether a bound holds for the synthetic marginal that it has least to spare for: the answers, or independence."""
    if (known := evidence.estimate(clique)) is not None:
        made = np.maximum(known.values, 0.0)
        return "by noise", bool(np.abs(true - made).sum() <= measured_error(known, made, ALPHA))
    made = evidence.independent(clique)
    least = scored_error(evidence, clique, made, ALPHA, math.inf)
    return None if least is None else ("by a distance", bool(np.abs(true - made).sum() <= least))


def of_one_run(folder: Path, kind: tuple[str, str, str], seed: int) -> Rates:
    """What one release says, held against its rows."""
    release, real, synthetic = published(folder, kind, seed)
    measurements = read_release(release)[2]
    found, evidence = Rates(runs=1), ReleaseEvidence(measurements)
    scale, hits = scale_of(evidence), defaultdict[str, list[bool]](list)
    for line in bounds(release).itertuples():
        clique = real.domain.canonical(tuple(str(line.marginal).split(" × ")))
        true, made = (count_cliques(codes, [clique])[0] for codes in (real, synthetic))
        made = made / max(synthetic.rows, 1)
        off = float(np.abs(true / true.sum() - made).sum()) / 2
        hits[f"bound, {line.how}"] += [float(np.abs(true - made * scale.records).sum()) <= line.error_records + 0.05]
        hits[f"bound, {line.how}"] += [off <= line.error_tvd]
        if (worst := hardest(evidence, clique, true)) is not None:
            hits[f"bound {worst[0]}, of the hardest table"].append(worst[1])
    for question, answers in figures(real):
        try:
            told = estimate(release, **question)
        except UserError as error:
            if "no measured marginal tells" not in error.what:
                raise
            continue
        for low, high, answer in zip(told["low"], told["high"], answers, strict=True):
            if not math.isnan(answer):
                hits[f"interval, {question['what']}"].append(low <= answer <= high)
    found.off = off_by(release, real)
    found.held = defaultdict(list, {k: [float(np.mean(v))] for k, v in hits.items()})
    return found


def off_by(release: Path, real: CodedTable) -> list[float]:
    """The root mean square error of the distances from independence, in their own standard errors; or nothing."""
    schema, _, measurements = read_release(release)
    if measurements.distances is None:
        return []
    squares, below = [], measurements.distances.below
    for line in distances(schema, measurements).itertuples():
        if line.cells_compared == "all":
            pair = tuple(str(line.marginal).split(" × "))
            cells, one, two = count_cliques(real, [pair, pair[:1], pair[1:]])
            gaps = np.abs(cells - np.outer(one, two).ravel() / real.rows)
            squares.append(((line.distance - np.maximum(gaps - below, 0.0).sum()) / line.standard_error) ** 2)
    return [math.sqrt(float(np.mean(squares)))] if squares else []


def rates(folder: Path, runs: int, *, part: tuple[int, int] = (0, 1), words: Collection[str] = ()) -> Rates:
    """Every n-th of so many runs of each kind of selection, from the i-th on; or of those with these names."""
    found = Rates()
    for kind in [k for k in KINDS if not words or k[0] in words]:
        for seed in range(runs)[part[0] :: part[1]]:
            found.add(of_one_run(folder, kind, seed))
    return found


def check_rates(found: Rates) -> list[tuple[str, int, float]]:
    """What was published, of how many runs, and how often it held: no kind less often than it says."""
    rows = []
    for kind, shares in sorted(found.held.items()):
        held, runs = float(np.mean(shares)), len(shares)
        rows.append((kind, runs, held))
        spread = max(float(np.std(shares, ddof=1)) if runs > 1 else 1.0, 0.05) / math.sqrt(runs)
        if runs >= FEWEST and student.cdf((held - HOLDS) / spread, runs - 1) < RARE:
            raise Broken(f"{kind}: holds in {held:.1%} of {runs} runs, and says {HOLDS:.0%}")
    if len(found.off) < FEWEST:
        return rows
    error, runs = float(np.mean(found.off)), len(found.off)
    spread = float(np.std(found.off, ddof=1)) / math.sqrt(runs)
    if student.sf((error - 1) / spread, runs - 1) < RARE:
        raise Broken(f"distances from independence are off by {error:.2f} of their standard errors")
    return [*rows, ("distances, root mean square error / standard error", runs, error)]
