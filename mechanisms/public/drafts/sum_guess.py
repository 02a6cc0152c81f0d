"""Numbers that are sums, products or fixed shares of others, as far as the first rows tell. NOT private."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from keyword import iskeyword
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

from mechanisms.public.arrays import Floats
from mechanisms.public.schema.column import Column
from mechanisms.public.tables.value_summaries import agree

#: Of so many numbers, in so many rows (fewer where the sum has gaps), sums are looked for; weights below that are none.
SUMMED, SUMMED_ROWS, SUMMED_FEW, NONE = 120, 2_000, 500, 1e-6
#: A sum of so many values, and of half as many as its largest part, has few.
FEW_TOTALS = 20
#: Scales of whole numbers are as long at most, where an answer may count the other way round.
SCALE = 10
#: Products are looked for among so many numbers, a third column added to one among fewer, in so many of the first rows
#: that could break one (first in the fewest), which nearly all hold it.
MULTIPLIED, ADDED = 60, 24
#: A product may be one of per cent: net * discount / 100.
PARTS = (1, 100)
FEW_FACTORS, FEWEST_FACTORS, MOST_FACTORS, NEARLY = 20, 50, 200, 0.95
#: What is divided and rounded lies so near what it is in few rows; a divisor's ends are so far apart at least.
ABOUT, VARIED = 0.05, 1.1
#: A share in fewer digits is as near where this share of the rows more disagree.
AS_NEAR = 0.01
#: What a rate is added to grows to so many times itself at most.
DOUBLE = 2

#: Whether most values of a share are rounded, and the words of what multiplies and adds, behind their length.
Share: TypeAlias = tuple[bool, int, str]
#: A column, the product that it is, and what that multiplies.
Product: TypeAlias = tuple[Column, str, tuple[Column, ...]]


def marked(column: Column) -> str:
    """A column's name as an expression has it."""
    word = column.name.isidentifier() and column.name.isascii() and not iskeyword(column.name)
    return column.name if word else f"`{column.name}`"


def guess_sums(held: Floats, columns: Sequence[Column]) -> list[tuple[Column, str]]:
    """Columns that are sums of others, and the sums: by non-negative least squares, parts first.

    An answer on a short scale may count the other way round: 6 - x of 1 to 5. Of a sum that has few values, or is the
    same number in all rows, the largest part is the rest: weekly hours of five days, parts of 100 per cent. Rows
    without the sum do not count.

    Args:
        held: (rows, columns) values of the table's first rows, NaN where they are missing.
    """
    rows, gaps = np.nan_to_num(held), np.isnan(held)
    turned = [i for i, c in enumerate(columns) if c.kind == "integer" and c.high - c.low <= SCALE and c.low >= 0]
    ends = {i: columns[i].low + columns[i].high for i in turned}
    words = [marked(c) for c in columns] + [f"({ends[i]:g} - {marked(columns[i])})" for i in turned]
    owners = np.array([*range(len(columns)), *turned])
    whole = np.hstack([rows, [ends[i] for i in turned] - rows[:, turned], np.ones((len(rows), 1))])
    every = np.asarray(np.linalg.qr(whole, mode="r"))  # as many rows as columns tell as much
    sizes, sums, taken = np.abs(rows).sum(axis=0), list[tuple[Column, str]](), set[int]()
    for i in [*np.argsort(sizes, kind="stable").tolist(), -1]:
        others = np.flatnonzero(~np.isin(owners if i >= 0 else owners[: len(columns)], [i, *taken]))
        own = i >= 0 and gaps[:, i].any()
        enough = max(SUMMED_FEW, 2 * whole.shape[1])  # what holds in these is tried in all rows
        design = np.asarray(np.linalg.qr(whole[~gaps[:, i]][:enough], mode="r")) if own else every
        weights, rest = nnls(design[:, others], design[:, i])
        used = weights > NONE
        share = weights[used].mean() if i < 0 and used.any() else 1.0
        if used.sum() < 2 or np.abs(weights[used] / share - 1).max() > NONE:
            continue
        if rest > NONE * np.linalg.norm(design[:, i]):
            continue
        parts = others[used].tolist()
        largest = max(owners[parts].tolist(), key=lambda j: sizes[j])
        few = i < 0 or len(np.unique(rows[:, i])) <= min(FEW_TOTALS, len(np.unique(rows[:, largest])) / 2)
        if few and max(parts) < len(columns):
            total = words[i] if i >= 0 else f"{1 / share:.10g}"
            sums.append((columns[largest], " - ".join([total, *(words[j] for j in parts if j != largest)])))
        elif i >= 0:
            sums.append((columns[i], " + ".join(words[j] for j in parts)))
        taken |= {*owners[parts].tolist()}
    return sums


def guess_products(rows: Floats, columns: Sequence[Column]) -> list[Product]:
    """Columns that are two others multiplied, or a fixed share of one; the product; and what it multiplies.

    A third column, or a fixed amount, may be added, and a factor may be per cent, or a rate that is added or taken off.
    Rows with 0 or 1 do not count: there a product is right by itself. Of two columns that are shares of each other the
    one that needs no rounding is taken, or that of fewer digits.

    Args:
        rows: (rows, columns) values of the table's first rows, NaN where they are missing.
    """
    telling = ~np.isnan(rows) & (rows != 0) & (rows != 1)
    some = np.flatnonzero(telling.any(axis=0))[:MULTIPLIED]  # yes and no in digits are no amounts
    columns, rows, telling = [columns[i] for i in some], rows[:, some], telling[:, some]
    products, shares = list[Product](), dict[frozenset[int], tuple[Share, int, int]]()
    for t, i in itertools.permutations(range(len(columns)), 2):
        own, target = np.flatnonzero(telling[:, t] & telling[:, i])[:MOST_FACTORS], columns[t]
        if own.size < FEWEST_FACTORS or len(np.unique(rows[own, t])) <= FEW_TOTALS:
            continue
        share = _share(rows[own, t], rows[own, i], target)
        if share and share[:2] <= shares.get(frozenset((t, i)), (share,))[0][:2]:
            shares[frozenset((t, i))] = share, t, i
        few = own[:FEW_FACTORS]  # nearly all that is tried fails there
        multiplied, enough = rows[few, i, None] * rows[few, i:], telling[few, i:].sum(axis=0) / 2
        alike = list[tuple[int, int, int, int]]()
        for parts in PARTS:
            right = _near(rows[few, t, None], multiplied / parts, target).sum(axis=0)
            alike += [(j + i, 0, i, parts) for j in np.flatnonzero(right >= np.maximum(enough, 1)).tolist()]
        for sign in (1, -1) if len(columns) <= ADDED else ():
            sums = multiplied[:, :, None] + sign * rows[few, None, :]
            right = _near(rows[few, t, None, None], sums, target).sum(axis=0)
            alike += [(j + i, sign, k, 1) for j, k in np.argwhere(right >= np.maximum(enough, 1)[:, None]).tolist()]
        for j, sign, k, parts in alike:
            both = own[telling[own, j]]
            varied = both.size >= FEWEST_FACTORS and min(len(np.unique(rows[both, f])) for f in (i, j)) > 1
            added = sign * rows[both, k]
            right = _near(rows[both, t], rows[both, i] * rows[both, j] / parts + added, target)
            if j == t or (sign and k in (t, i, j)) or not varied:
                continue
            if right.mean() >= NEARLY > _near(rows[both, t], added, target).mean():
                product = f"{marked(columns[i])} * {marked(columns[j])}"
                product += f" {'+' if sign > 0 else '-'} {marked(columns[k])}" if sign else f" / {parts}" * (parts > 1)
                products.append((target, _written(product, target), (columns[i], columns[j])))
    products += _rated(rows, telling, columns) + _divided(rows, telling, columns)
    for (*_, words), t, i in sorted(shares.values(), key=lambda own: own[0][:2]):
        products.append((columns[t], _written(f"{marked(columns[i])}{words}", columns[t]), (columns[i],)))
    return products


def _rated(rows: Floats, telling: NDArray[np.bool_], columns: Sequence[Column]) -> list[Product]:
    """Columns that are another with a rate added or taken off, as of a tax or a discount: net * (1 + tax / 100)."""
    products = list[Product]()
    for t, i in itertools.permutations(range(len(columns)), 2):
        own, target = np.flatnonzero(telling[:, t] & telling[:, i])[:MOST_FACTORS], columns[t]
        if own.size < FEWEST_FACTORS or len(np.unique(rows[own, t])) <= FEW_TOTALS:
            continue
        times = rows[own, t] / rows[own, i]
        if times.min() <= 0 or times.max() > DOUBLE:
            continue
        for sign, parts in itertools.product("+-", PARTS):
            rates = 1 + float(f"{sign}1") * rows[own] / parts
            right = _near(rows[own, t, None], rows[own, i, None] * rates, target) & telling[own]
            held = telling[own].sum(axis=0)
            for k in np.flatnonzero((held >= FEWEST_FACTORS) & (right.sum(axis=0) >= NEARLY * held)).tolist():
                both = own[telling[own, k]]
                same = _near(rows[both, t], rows[both, i], target).mean() >= NEARLY / 2  # a rate that rounding hides
                if k not in (t, i) and len(np.unique(rows[both, k])) > 1 and not same:
                    part = f" / {parts}" * (parts > 1)
                    product = f"{marked(columns[i])} * (1 {sign} {marked(columns[k])}{part})"
                    products.append((target, _written(product, target), (columns[i], columns[k])))
    return products


def _divided(rows: Floats, telling: NDArray[np.bool_], columns: Sequence[Column]) -> list[Product]:
    """Columns that are another divided by a third or by its square, in some unit: 10000 * weight / height ** 2."""
    quotients = list[Product]()
    for t, i in itertools.permutations(range(len(columns)), 2):
        own, target = np.flatnonzero(telling[:, t] & telling[:, i])[:MOST_FACTORS], columns[t]
        if own.size < FEWEST_FACTORS or len(np.unique(rows[own, t])) <= FEW_TOTALS:
            continue
        few = own[:FEW_FACTORS]
        for power in (1, 2):
            with np.errstate(divide="ignore", invalid="ignore"):
                times = (rows[few, t] / rows[few, i])[:, None] * np.where(telling[few], rows[few], np.nan) ** power
                right = np.abs(times / _middle(times) - 1) <= ABOUT
            for j in np.flatnonzero(right.sum(axis=0) >= np.maximum(telling[few].sum(axis=0) / 2, 1)).tolist():
                both = own[telling[own, j]]
                ends = np.quantile(np.abs(rows[both, j] ** power), [1 - NEARLY, NEARLY]) if both.size else [0, 0]
                if j in (t, i) or both.size < FEWEST_FACTORS or ends[1] < VARIED * ends[0]:
                    continue
                of = rows[both, i] / rows[both, j] ** power
                slope = float(np.median(rows[both, t] / of))
                divisor = marked(columns[j]) if power == 1 else f"({marked(columns[j])} * {marked(columns[j])})"
                for *_, times_words in _shortest(rows[both, t], of, slope, False, target):
                    quotient = f"{marked(columns[i])} / {divisor}{times_words}"
                    quotients.append((target, _written(quotient, target), (columns[i], columns[j])))
    return quotients


def _middle(values: Floats) -> Floats:
    """Medians of the columns of an array, NaN left out; NaN where nothing is left."""
    ordered, filled = np.sort(values, axis=0), np.isfinite(values).sum(axis=0)
    return np.asarray(ordered[np.maximum(filled - 1, 0) // 2, np.arange(values.shape[1])])


def _written(product: str, column: Column) -> str:
    return f"round({product})" if column.kind == "integer" else product


def _near(values: NDArray[np.float64], products: NDArray[np.float64], column: Column) -> NDArray[np.bool_]:
    return agree(values, np.round(products) if column.kind == "integer" else products, column)


def _share(values: NDArray[np.float64], of: NDArray[np.float64], column: Column) -> Share | None:
    """By what nearly all of `of` are multiplied, and what is added, in the fewest digits; None: there is nothing.

    Both are medians: of ratios of the largest values, or else of slopes between the halves.
    """
    largest = np.argsort(np.abs(values))[-FEWEST_FACTORS:]
    order, half = np.argsort(of), len(of) // 2
    low, high = order[:half], order[-half:]
    apart = of[high] > of[low]
    slopes = (values[high] - values[low])[apart] / (of[high] - of[low])[apart]
    tried = [(float(np.median(values[largest] / of[largest])), False)]
    tried += [(float(np.median(slopes)), True)] if apart.any() else []
    shares = list[Share]()
    for slope, fixed in tried:
        amount = float(np.median(values - of * slope)) if fixed else 0.0
        if _near(values, of * slope + amount, column)[largest].mean() >= 0.5:
            shares += _shortest(values, of, slope, fixed, column)
    best = min(shares, default=None)
    return best if best and best[2] else None  # a copy is no share


def _written_about(slope: float, digits: int) -> list[str]:
    """The slope in so many digits, and what lies beside it: that of rounded values is a few of its last digits off."""
    last = 10.0 ** (math.floor(math.log10(abs(slope))) - digits + 1) if slope else 0.0
    return [f"{slope + k * last:.{digits}g}" for k in (0, 1, -1, 2, -2)]


def _shortest(
    values: NDArray[np.float64], of: NDArray[np.float64], slope: float, fixed: bool, column: Column
) -> list[Share]:
    """The share in the fewest digits that nearly all agree with, as the only one; none where there is no such share."""
    fits = list[tuple[float, str, str]]()  # the best of each length
    for digits in range(1, 8):
        alike = list[tuple[float, str, str]]()
        for times in _written_about(slope, digits):
            rest = float(np.quantile(values - of * float(times), [1 - NEARLY, NEARLY]).mean()) if fixed else 0.0
            for more in dict.fromkeys(f"{rest:.{own}g}" for own in range(1, 8) if "e" not in times):
                right = float(_near(values, of * float(times) + float(more), column).mean())
                if "e" not in more and right >= NEARLY:
                    alike.append((right, times, more))
                    break
        fits += [max(alike, key=lambda fit: fit[0])] if alike else []
    if not fits:
        return []
    _, times, more = next(fit for fit in fits if fit[0] >= max(fits)[0] - AS_NEAR)
    own = "" if times == "1" else f" * {times}"
    own += f" {'-' if more.startswith('-') else '+'} {more.lstrip('-')}" if float(more) else ""
    rounded = np.median(np.abs(values - (of * float(times) + float(more)))) > NONE * np.abs(values).max()
    return [(bool(rounded), len(own), own)] if float(times) else []
