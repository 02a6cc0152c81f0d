"""How two ordered columns go together, by one number: a normal copula between the columns' own marginals."""

from __future__ import annotations

import numpy as np

from mechanisms.public.arrays import Flags, Floats
from synthesis.consistency.evidence import Evidence
from synthesis.consistency.projection import raked

#: Two codes have no order to speak of.
LEAST_CODES = 3
#: The largest correlation, and the largest score of an end: beyond them the density leaves what doubles can hold.
MOST_CORRELATION, MOST_SCORE = 0.97, 3.7
#: Cells of the largest pair that is looked at.
MOST_CELLS = 1 << 18
#: Corrections of the correlation (more move one of .9 over nine cells by .003), and rounds that restore the sides.
CORRECTIONS, ROUNDS = 3, 6


def associated(evidence: Evidence, base: Floats, ordered: tuple[int, ...]) -> Floats | None:
    """The marginal with the sides of `base` in which ordered codes go together as the answers say, by one correlation.

    Each column is taken as a normal score cut at its own quantiles; the pair of scores has that correlation at which
    the sum of their products is the one of the answers, over the answers' own cells, less what of it may be noise. So a
    pair that was asked in few large cells goes together within them too, and one whose every cell noise hides in sum.
    Cells of codes on no line, and impossible ones, stay as they are in `base`.

    Guarantee: post-processing; costs no privacy.
    Cost: some sixty passes over the cells.

    Args:
        base: shaped as the pair, in records.
        ordered: of each column, how many codes lie on its line.
    Returns:
        None where there are not two ordered columns, they have too few or too many codes, or answers overlap.
    """
    if len(ordered) != 2 or min(ordered) < LEAST_CODES or base.size > MOST_CELLS or not evidence.disjoint:
        return None
    line = tuple(slice(n) for n in ordered)
    block = base[line]
    sides, total = (block.sum(axis=1), block.sum(axis=0)), float(block.sum())
    if any(np.count_nonzero(side) < LEAST_CODES for side in sides):
        return None
    scores = [_normal_scores(side) for side in sides]
    products, even = np.zeros(base.shape), base.copy()
    products[line], even[line] = np.multiply.outer(*scores), np.multiply.outer(*sides) / total

    def answered(cells: Floats) -> Floats:
        return evidence.answer(cells) * evidence.stddev

    held = answered(even)
    moments = np.divide(answered(even * products), held, out=np.zeros_like(held), where=held > 0)
    moment, unit = float(moments @ evidence.values[0]), float(moments @ answered(even * products))
    if unit <= 0:
        return None
    noise = evidence.stddev**2 * float(moments @ moments)  # the moment's variance: one that noise makes is 0
    moment *= max(1 - noise / moment**2, 0.0) if moment else 0.0
    result, correlation = base.copy(), _limited(moment / unit)
    for _ in range(CORRECTIONS):
        result[line] = _copula(block > 0, sides, scores, correlation)
        reached = float(moments @ answered(result))
        correlation = _limited(correlation * moment / reached) if reached * moment > 0 else 0.0
    result[line] = _copula(block > 0, sides, scores, correlation)
    return result


def _limited(correlation: float) -> float:
    return max(-MOST_CORRELATION, min(correlation, MOST_CORRELATION))


def _normal_scores(side: Floats) -> Floats:
    """Of each code the normal quantile of its middle, less their mean over the records."""
    from scipy.special import ndtri  # not loaded by a plan

    middles = (np.cumsum(side) - side / 2) / side.sum()
    scores = np.clip(ndtri(middles), -MOST_SCORE, MOST_SCORE)
    return np.asarray(scores - scores @ side / side.sum())


def _copula(possible: Flags, sides: tuple[Floats, Floats], scores: list[Floats], correlation: float) -> Floats:
    """Records per cell: the density of two normal scores, multiplied until it has the sides."""
    one, other = np.ix_(*scores)
    exponent = correlation * one * other - correlation**2 * (one**2 + other**2) / 2
    density = np.exp(exponent / (1 - correlation**2))
    cells = np.where(possible, np.multiply.outer(*sides) * density, 0.0)
    for _ in range(ROUNDS):
        for axis, side in enumerate(sides):
            cells, _ = raked(cells, (axis,), side)
    return cells
