"""How far a synthetic table is off, counted in numpy alone: no code that made or scores a table is used."""

import itertools
import math
import zlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2, norm

from mechanisms.public.coded_table import CodedTable

Columns = tuple[str, ...]
#: So many pairs and triples are drawn where there are more; the same ones for every method and seed.
DRAWN = 300
#: Marginals of more cells are compared by the cells that occur.
DENSE = 1 << 20


def drawn_marginals(name: str, columns: Columns, size: int) -> list[Columns]:
    """All marginals of so many columns, or 300 that the table's name draws."""
    total = math.comb(len(columns), size)
    if total <= DRAWN:
        return list(itertools.combinations(columns, size))
    rng, found = np.random.default_rng([size, zlib.crc32(name.encode())]), set[Columns]()
    while len(found) < DRAWN:
        picked = np.sort(rng.choice(len(columns), size, replace=False))
        found.add(tuple(columns[i] for i in picked))
    return sorted(found)


def cells(table: CodedTable, names: Columns) -> NDArray[np.int64]:
    """The cell of every row in a marginal, the last column fastest."""
    index = np.zeros(table.rows, np.int64)
    for name in names:
        index = index * table.domain[name].size + table.column(name)
    return index


def distance(real: CodedTable, synthetic: CodedTable, names: Columns) -> float:
    """Total variation distance of a marginal's shares: half the sum of their absolute differences."""
    if synthetic.rows == 0:
        return 1.0
    one, two, size = cells(real, names), cells(synthetic, names), real.domain.cells(names)
    if size > DENSE:
        both, places = np.unique(np.concatenate([one, two]), return_inverse=True)
        one, two, size = places[: real.rows], places[real.rows :], len(both)
    shares = np.bincount(one, minlength=size) / real.rows - np.bincount(two, minlength=size) / synthetic.rows
    return float(np.abs(shares).sum() / 2)


@dataclass(frozen=True)
class Errors:
    """The errors of one synthetic table.

    Attributes:
        one, two, three: mean total variation distance of the 1-, 2- and 3-way marginals; None without triples.
        worst: of the worst pair; `worst_pair` names it.
        measured, unmeasured: the mean over pairs that a noisy answer holds, and over the others; None without any.
        covered: how many of the pairs are measured, as a share.
        kept: how much of the real dependence is left, in [0, 1].
    """

    one: float
    two: float
    three: float | None
    worst: float
    worst_pair: str
    measured: float | None
    unmeasured: float | None
    covered: float
    kept: float | None


def errors(name: str, real: CodedTable, synthetic: CodedTable, answered: Collection[Columns]) -> Errors:
    """All errors of a synthetic table.

    Args:
        name: of the table; it draws the marginals that are looked at.
        answered: the marginals that were measured.
    """
    pairs = drawn_marginals(name, real.domain.names, 2)
    by_size = [drawn_marginals(name, real.domain.names, k) for k in (1, 3)]
    one, three = ([distance(real, synthetic, m) for m in marginals] for marginals in by_size)
    two = {p: distance(real, synthetic, p) for p in pairs}
    sets = [set(a) for a in answered]
    held = {p for p in pairs if any(set(p) <= s for s in sets)}
    worst = max(two, key=lambda p: two[p])
    return Errors(
        one=float(np.mean(one)),
        two=float(np.mean(list(two.values()))),
        three=_mean(three),
        worst=two[worst],
        worst_pair=" × ".join(worst),
        measured=_mean([two[p] for p in held]),
        unmeasured=_mean([two[p] for p in pairs if p not in held]),
        covered=len(held) / len(pairs),
        kept=kept(real, synthetic, pairs),
    )


def _mean(values: Sequence[float]) -> float | None:
    return float(np.mean(values)) if values else None


def kept(real: CodedTable, synthetic: CodedTable, pairs: Sequence[Columns]) -> float | None:
    """How much of the dependence of the pairs is left: the mean of `kept_of_pair`, weighted by strength.

    None where nothing depends on anything.
    """
    total = left = 0.0
    for pair in pairs:
        strength, share = kept_of_pair(real, synthetic, pair)
        total, left = total + strength, left + strength * share
    return left / total if total else None


def kept_of_pair(real: CodedTable, synthetic: CodedTable, pair: Columns) -> tuple[float, float]:
    """The strength of a pair's real dependence, and the share of it that the synthetic table has; both in [0, 1].

    The strength is Pearson's contingency coefficient over that of a perfect dependence (Sakoda 1977).

    With the deviations from independence R and S of the two tables, the share is ⟨R, S⟩ / ⟨R, R⟩ within [0, 1]: all of
    it, or more, is 1; what points the other way is 0. Each cell weighs 1 over its expected share and that of one
    record; what noise of sampling adds to ⟨R, R⟩ is taken out. A dependence that sampling reaches as often as a normal
    distribution reaches three standard deviations is none.
    """
    if synthetic.rows == 0:
        return 1.0, 0.0
    shape, n = real.domain.shape(pair), real.rows
    p, q = (np.bincount(cells(t, pair), minlength=math.prod(shape)).reshape(shape) / t.rows for t in (real, synthetic))
    p, q = p[p.sum(axis=1) > 0][:, p.sum(axis=0) > 0], q[p.sum(axis=1) > 0][:, p.sum(axis=0) > 0]
    if min(p.shape) < 2 or n < 2:
        return 0.0, 1.0
    a, b = p.sum(axis=1), p.sum(axis=0)
    expected = np.outer(a, b)
    weights = 1 / (expected + 1 / n)
    by_chance = expected * np.outer(1 - a, 1 - b) / (n - 1) * weights
    real_part, synthetic_part = p - expected, q - np.outer(q.sum(axis=1), q.sum(axis=0))
    whole, chance = float((weights * real_part**2).sum()), float(by_chance.sum())
    degrees = max(n * chance, 1.0)
    if chi2.sf(whole / chance * degrees, degrees) >= norm.sf(3):
        return 0.0, 1.0
    phi2 = whole - chance
    share, codes = float((weights * real_part * synthetic_part).sum()) / phi2, min(p.shape)
    return math.sqrt(min(phi2 / (1 + phi2) * codes / (codes - 1), 1.0)), min(max(share, 0.0), 1.0)
