"""The official scorers of the 2020-21 challenge, transcribed from the reference's wording one row at a time.

Plain loops and dictionaries over records, no shared code with `evaluation`: what the fast scorers are held against, in
the tests and in the bench. Tables are data frames of raw values.
"""

import itertools
import math
import warnings
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence

import numpy as np
import pandas as pd
from scipy.spatial.distance import jensenshannon

INF = math.inf
#: Sprint 2: the ends of the intervals (lo, hi].
INCOMES = ("INCTOT", "INCWAGE", "INCWELFR", "INCINVST", "INCEARN")
QUARTERS = [hour * 100 + minute for hour in range(24) for minute in (0, 15, 30, 45)]
RIGHT: dict[str, list[float]] = {
    "AGE": [-INF, *range(20, 101, 5), INF],
    **{name: [-INF, *range(0, 100_001, 5000), INF] for name in INCOMES},
    **{name: [-INF, *range(0, 501, 20), INF] for name in ("POVERTY", "HHWT", "PERWT")},
    **{name: [-INF, *QUARTERS, INF] for name in ("DEPARTS", "ARRIVES")},
}
#: Sprint 3: the ends of the intervals [lo, hi).
LEFT: dict[str, list[float]] = {
    **{name: [-INF, *range(0, 91, 10), INF] for name in ("fare", "tips", "trip_total", "trip_miles")},
    "trip_seconds": [-INF, *range(0, 1801, 200), INF],
}
#: Sprint 2: what pairs are drawn from, the contest's own columns.
SURVEY = (
    *("ABSENT", "AGE", "ARRIVES", "AVAILBLE", "CITIZEN", "DEPARTS", "EDUC", "EMPSTAT", "EMPSTATD", "GQ", "HCOVANY"),
    *("HCOVPRIV", "HHWT", "HINSCAID", "HINSCARE", "HINSEMP", "HISPAN", "INCEARN", "INCINVST", "INCTOT", "INCWAGE"),
    *("INCWELFR", "LABFORCE", "LOOKING", "MARST", "PERWT", "POVERTY", "RACE", "SEX", "SPEAKENG", "WORKEDYR"),
    *("WRKLSTWK", "WRKRECAL"),
)
AREA, SHIFT, DROPOFF, TAXI = "pickup_community_area", "shift", "dropoff_community_area", "taxi_id"
TRIP = ("company_id", DROPOFF, "payment_type", "fare", "tips", "trip_total", "trip_seconds", "trip_miles")

Row = dict[str, Hashable]


def sprint1_row(a: Sequence[float], b: Sequence[float]) -> float:
    """One neighbourhood in one month at one ε."""
    if all(x == y for x, y in zip(a, b, strict=True)):
        return 1.0
    bias = 0.25 if abs(sum(a) - sum(b)) > 500 else 0.0
    kept = [[c if sum(r) > 0 and c / sum(r) >= 0.05 else 0.0 for c in r] for r in (a, b)]
    smooth = [np.array(r) + 1e-9 for r in kept]
    with np.errstate(invalid="ignore"):  # a radicand just below 0
        distance = np.nan_to_num(jensenshannon(smooth[0], smooth[1], base=2))
    misleading = 0.2 * sum(x == 0 and y > 0 for x, y in zip(*kept, strict=True))
    return float(np.clip(1 - distance - misleading - bias, 0, 1))


def sprint1(truth: np.ndarray, submitted: np.ndarray) -> float:
    """The sum over all rows and all ε."""
    pairs = zip(truth.astype(float).tolist(), submitted.astype(float).tolist(), strict=True)
    return math.fsum(sprint1_row(a, b) for a, b in pairs)


def l1(p: Counter, q: Counter) -> float:
    """Σ |p − q| of the shares over the union of the cells; 2 where one side has no record."""
    m, n = p.total(), q.total()
    if m == 0 or n == 0:
        return 2.0
    return math.fsum(abs(p[cell] / m - q[cell] / n) for cell in p.keys() | q.keys())


def rows_of(frame: pd.DataFrame, bins: dict[str, list[float]], right: bool) -> list[Row]:
    """The records, numbers replaced by the interval that holds them."""

    def interval(value: float, ends: list[float]) -> int:
        for i, (low, high) in enumerate(itertools.pairwise(ends)):
            if (low < value <= high) if right else (low <= value < high):
                return i
        return -1

    columns = {c: frame[c].tolist() for c in frame.columns}
    for name in bins.keys() & columns.keys():
        columns[name] = [interval(v, bins[name]) for v in columns[name]]
    return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]


def grouped(rows: Iterable[Row], by: Sequence[str]) -> dict[tuple[Hashable, ...], list[Row]]:
    groups: dict[tuple[Hashable, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row[c] for c in by), []).append(row)
    return groups


def k_marginal(truth: list[Row], sub: list[Row], by: Sequence[str], draws: Sequence[tuple[str, str]]) -> float:
    """The mean over places and times of either table of their mean distance over the draws; 2 where biased."""
    real, made = grouped(truth, by), grouped(sub, by)
    distances = []
    for key in real.keys() | made.keys():
        here, there = real.get(key, []), made.get(key, [])
        if abs(len(here) - len(there)) >= 250:
            distances.append(2.0)
            continue
        each = [l1(Counter((r[a], r[b]) for r in here), Counter((r[a], r[b]) for r in there)) for a, b in draws]
        distances.append(math.fsum(each) / len(each))
    return math.fsum(distances) / len(distances)


def sprint2_table(truth: pd.DataFrame, sub: pd.DataFrame) -> float:
    """One ε of sprint 2; a group that pandas makes has a PUMA and a year."""
    columns = sorted(SURVEY)
    truth, sub = (f[f["PUMA"].notna() & f["YEAR"].notna()] for f in (truth, sub))
    rng = np.random.RandomState(123456)
    draws = [tuple(rng.choice(columns, size=2, replace=False)) for _ in range(50)]
    real, made = (rows_of(f, RIGHT, right=True) for f in (truth, sub))
    return 1000 * (2 - k_marginal(real, made, ("PUMA", "YEAR"), draws)) / 2


def sprint3_table(truth: pd.DataFrame, sub: pd.DataFrame) -> tuple[float, float, float]:
    """One ε of sprint 3: k-marginal, spatial, higher-order conjunction."""
    real, made = (rows_of(f, LEFT, right=False) for f in (truth, sub))
    pairs = list(itertools.permutations(TRIP, 2))
    k = (2 - k_marginal(real, made, (AREA, SHIFT), pairs)) / 2
    flows = [Counter((r[AREA], r[DROPOFF]) for r in rows) for rows in (real, made)]
    return k, (2 - l1(*flows)) / 2, conjunction(truth, sub)


def conjunction(truth: pd.DataFrame, sub: pd.DataFrame) -> float:
    """Taxis like a random one in all 99 counts, by the join of pandas that the scorer used."""

    def profile(frame: pd.DataFrame) -> pd.DataFrame:
        shifts, areas = (pd.crosstab(frame[TAXI], frame[c]) for c in (SHIFT, AREA))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return shifts.join(areas, rsuffix="p")

    q = profile(truth)
    assert q.shape[1] == 99
    made = profile(sub).reindex(columns=q.columns).fillna(0).astype(int).to_numpy().tolist()
    real = q.to_numpy().tolist()
    rng = np.random.RandomState(123456)
    apart = []
    for _ in range(50):
        centre = real[rng.randint(0, len(real))]
        width = rng.randint(5, 51, size=99).tolist()
        shares = [sum(_near(taxi, centre, width) for taxi in taxis) / len(taxis) for taxis in (real, made)]
        apart.append(abs(shares[0] - shares[1]))
    return 1 - math.fsum(apart) / 50


def _near(taxi: list[int], centre: list[int], width: list[int]) -> bool:
    return all(abs(a - b) <= w for a, b, w in zip(taxi, centre, width, strict=True))
