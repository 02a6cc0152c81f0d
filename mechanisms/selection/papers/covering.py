"""Covering designs (PriView, Qardaji, Yang & Li 2014; Li et al. 2021b, §3.2): few views that hold every t-way set."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mechanisms.public.domain import Clique, Domain
from mechanisms.public.errors import UserError
from mechanisms.selection.papers.planes import lines, orders

#: t is 3 where a cell of a two-way marginal, summed out of a view, errs by at most this part of the rows; else 2.
PRECISE = 0.003
#: Greedy designs are made in so many random orders; the smallest is kept.
TRIES = 5


def covering(domain: Domain, t: int, *, view_cells: int, max_cells: int, tries: int = TRIES) -> tuple[Clique, ...]:
    """Views such that every set of t attributes lies in one; a function of public facts alone.

    For pairs, the lines of a plane over a finite field where they fit and are fewer; else greedily: a view starts from
    a set that no view holds yet, and takes in the attribute that covers most further sets, the one of fewer codes among
    equals, while it has at most `view_cells` cells. A set that alone has more cells than that is a view of its own, up
    to max_cells; larger ones are left out.

    Args:
        t: 1, 2 or 3; at most the number of attributes.
    Raises:
        UserError: t out of range; no set of t attributes within max_cells.
    """
    if not 1 <= t <= min(3, len(domain)):
        raise UserError(f"got {t}", where="selection.t", fix=f"1 to {min(3, len(domain))}, or null")
    sizes = np.array([a.size for a in domain.attributes], np.int64)
    open_ = _open_sets(sizes, t, max_cells)
    if not open_.any():
        smallest = math.prod(sorted(sizes.tolist())[:t])
        fix = f"at least {smallest:,}, or coarser bins in the schema"
        raise UserError(f"no marginal of {t} columns is small enough", where="selection.max_cells", fix=fix)
    designs = [_greedy(sizes, open_.copy(), t, view_cells, np.random.default_rng(i)) for i in range(tries)]
    if t == 2 and open_.sum() == len(sizes) * (len(sizes) - 1):
        designs += [views for i in range(tries) if (views := _plane(sizes, view_cells, i))]
    best = min(designs, key=lambda views: (len(views), sum(math.prod(sizes[list(v)].tolist()) for v in views)))
    return tuple(sorted({domain.canonical(domain.names[i] for i in v) for v in best}, key=lambda c: domain.axes(c)))


def random_views(domain: Domain, count: int, *, view_cells: int, seed: int = 0) -> tuple[Clique, ...]:
    """`count` views of random attributes, each filled up to view_cells; attributes that were rare so far come first.

    Li et al. 2021b: random views do about as well as a design of the same number. Each attribute is in a view at least
    if there are enough of them.
    """
    rng = np.random.default_rng(seed)
    used = np.zeros(len(domain), np.int64)
    views: list[Clique] = []
    for _ in range(count):
        order = np.lexsort((rng.random(len(domain)), used))
        view: list[int] = []
        cells = 1
        for i in order.tolist():
            if not view or cells * domain.attributes[i].size <= view_cells:
                view.append(i)
                cells *= domain.attributes[i].size
        used[view] += 1
        views.append(domain.canonical(domain.names[i] for i in view))
    return tuple(dict.fromkeys(views))


def strength(domain: Domain, views: Sequence[Clique], unit: float, rows: float) -> float:
    """The standard deviation of a cell of a two-way marginal that is summed out of the views, as a part of the rows.

    Args:
        unit: σ of one marginal that takes the whole budget, in records; m views have √m times that.
        rows: how many there are, as declared or from noisy answers.
    """
    cells = float(np.mean([domain.cells(v) for v in views]))
    pair = float(np.mean([domain.cells(v[:2]) for v in views]))
    return unit * math.sqrt(len(views) * max(cells / pair, 1.0)) / max(rows, 1.0)


def _open_sets(sizes: NDArray[np.int64], t: int, max_cells: int) -> NDArray[np.bool_]:
    """A symmetric array of t axes: which sets are to be covered."""
    d = len(sizes)
    cells = np.ones((1,) * t, np.int64)
    open_ = np.ones((d,) * t, np.bool_)
    for axis in range(t):
        cells = cells * sizes.reshape([d if i == axis else 1 for i in range(t)])
    for one, two in itertools.combinations(range(t), 2):
        places = np.arange(d)
        shape = [d if i in (one, two) else 1 for i in range(t)]
        open_ &= (places[:, None] != places[None, :]).reshape(shape)
    return np.asarray(open_ & (cells <= max_cells))


def _plane(sizes: NDArray[np.int64], view_cells: int, seed: int) -> list[tuple[int, ...]]:
    """The lines of the smallest plane whose lines fit, over the attributes by size (seed 0) or at random; else none.

    Attributes of one size stand on parallel lines then, so that all other lines have one of each.
    """
    order = np.argsort(sizes, kind="stable") if seed == 0 else np.random.default_rng(seed).permutation(len(sizes))
    for q in orders(len(sizes)):
        views = [tuple(sorted(order[list(line)].tolist())) for line in lines(q, len(sizes))]
        if all(math.prod(sizes[list(v)].tolist()) <= view_cells for v in views):
            return views
    return []


def _greedy(
    sizes: NDArray[np.int64], open_: NDArray[np.bool_], t: int, view_cells: int, rng: np.random.Generator
) -> list[tuple[int, ...]]:
    order = rng.permutation(len(sizes))
    rank = np.argsort(order)
    views = []
    while open_.any():
        left = open_.reshape(len(sizes), -1).sum(axis=1)
        first = int(np.lexsort((rank, -left))[0])
        rest = np.argwhere(open_[first])
        start = (
            [first, *rest[np.lexsort((rank[rest].sum(axis=1), -left[rest].sum(axis=1)))[0]].tolist()]
            if t > 1
            else [first]
        )
        view = _grown(sizes, open_, start, t, view_cells, rank)
        for s in itertools.product(view, repeat=t):
            open_[s] = False
        views.append(tuple(sorted(view)))
    return views


def _grown(
    sizes: NDArray[np.int64],
    open_: NDArray[np.bool_],
    start: list[int],
    t: int,
    view_cells: int,
    rank: NDArray[np.intp],
) -> list[int]:
    view, cells = list(start), int(np.prod(sizes[start]))
    while True:
        sides = [np.array(s, np.int64) for s in (range(len(sizes)), *[view] * (t - 1))]
        inside = open_[np.ix_(*sides)] if t > 1 else open_[:, None]
        gain = inside.reshape(len(sizes), -1).sum(axis=1)
        gain[view] = -1
        gain[cells * sizes > view_cells] = -1
        best = int(np.lexsort((rank, sizes, -gain))[0])
        if gain[best] <= 0:
            return view
        view.append(best)
        cells *= int(sizes[best])
