"""PriView (Qardaji, Yang & Li 2014; Li et al. 2021b, section 3.2): few large views that hold every set of t columns."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from mechanisms.accounting.plan import Reservation
from mechanisms.public.arrays import Flags, Ints
from mechanisms.public.domain import Clique, Domain
from mechanisms.public.errors import UserError
from mechanisms.public.settings import setting
from mechanisms.public.workload import Workload
from mechanisms.selection.base import Facts, Method, Schedule, Selection, one_way_slots
from mechanisms.selection.context import Context
from mechanisms.selection.papers.public_table import refuse_mapped, unit_stddev, with_all_columns
from mechanisms.selection.questions import ask_given, share_out

#: t is 3 where a cell of a two-way marginal, summed out of a view, errs by at most this part of the rows; else 2.
PRECISE = 0.003
#: Greedy designs are made in so many random orders; the smallest is kept.
TRIES = 5

#: Prime powers p^k up to 13 → p and a monic polynomial, the constant last, that is irreducible over the integers modulo
#: p, so that its residues are a field of p^k elements: x² + x + 1, x³ + x + 1, x² + 1; of primes x.
FIELDS = {q: (q, (1, 0)) for q in (2, 3, 5, 7, 11, 13)} | {4: (2, (1, 1, 1)), 8: (2, (1, 0, 1, 1)), 9: (3, (1, 0, 1))}


@dataclass(frozen=True)
class PriView(Method):
    """Covering designs, one of them by the noisy number of rows.

    Attributes:
        designs: the views of each design, t = 2 first; the last one that is precise enough is measured.
    """

    kind: ClassVar[str] = "priview"
    designs: tuple[tuple[Clique, ...], ...]

    def slots(self, domain: Domain, split: Sequence[float]) -> tuple[list[Reservation], float]:
        """One-way marginals, shared out by cells^(2/3), and the part of the budget for the views."""
        return one_way_slots(domain, split[0]), split[1]

    def run(self, context: Context) -> None:
        """One-way marginals, whose total says which design is precise enough; then its views."""
        ask_given(context)
        rows = float(context.fit()((context.domain.names[0],)).sum())
        share_out(context, precise_design(context.domain, self.designs, context.reserve.event.stddev, rows))

    def later_cells(self, domain: Domain, slots: Sequence[Reservation]) -> list[tuple[str, int]]:
        """The views of the largest design."""
        design = max(self.designs, key=lambda d: sum(map(domain.cells, d)))
        return super().later_cells(domain, slots) + [(" × ".join(c), domain.cells(c)) for c in design]

    @property
    def reported(self) -> Sequence[Clique]:
        return self.designs[0]


def precise_design(
    domain: Domain, designs: Sequence[tuple[Clique, ...]], unit: float, rows: float
) -> tuple[Clique, ...]:
    """The design of the largest t whose noise is small against the rows (PriView's rule).

    Args:
        unit: standard deviation of one marginal that takes the whole budget, in records.
    """
    precise = [v for v in designs[1:] if strength(domain, v, unit, rows) <= PRECISE]
    return precise[-1] if precise else designs[0]


@dataclass(frozen=True)
class PriViewSettings(Selection):
    """Settings; conf/selection/priview.yaml says what each is."""

    kind: ClassVar[str] = "priview"
    whole_pairs: ClassVar[str] = "selection"
    methods: ClassVar[tuple[type[Method], ...]] = (PriView,)
    design: str = setting("greedy", choices=("greedy", "random"))
    t: int | None = setting(None, least=1, most=3)
    views: int | None = setting(None, least=1)
    view_cells: int = setting(256, least=2, note="256 for 8 binary columns")
    max_cells: int = setting(20_000, least=1)
    rows: int | None = setting(None, least=1)
    split: list[float] = setting([1.0, 9.0], above=0, parts=("one-way", "views"))

    @property
    def public_rows(self) -> int | None:
        return self.rows

    @property
    def decided(self) -> bool:
        """Whether public facts alone decide the views."""
        return self.design == "random" or self.t is not None or self.rows is not None

    def workload(self, facts: Facts) -> Workload:
        """The views, where public facts decide."""
        if not self.decided:
            return super().workload(facts)
        refuse_mapped(facts)
        joint = Domain(tuple(facts.domain[n] for n in facts.joint))
        return with_all_columns(facts.domain, self._views(facts, joint) if len(joint) else ())

    def schedule(self, facts: Facts, workload: Workload) -> Schedule | None:
        """Noisy one-way marginals first, where the number of rows is not public."""
        if self.decided:
            return None
        together = Domain(tuple(facts.domain[n] for n in facts.joint))
        designs = self._designs(together) if facts.joint else (tuple((n,) for n in facts.domain.names),)
        method = PriView(designs)
        return Schedule(method, *method.slots(facts.domain, self.split))

    def _designs(self, domain: Domain) -> tuple[tuple[Clique, ...], ...]:
        """The covering designs among which the number of rows decides, t = 2 first."""
        limits = {"view_cells": self.view_cells, "max_cells": self.max_cells}
        if self.t is not None:
            return (covering(domain, self.t, **limits),)
        if len(domain) < 2:
            return (covering(domain, 1, **limits),)
        two = covering(domain, 2, **limits)
        return (two, covering(domain, 3, **limits, tries=1)) if len(domain) > 2 else (two,)

    def _views(self, facts: Facts, domain: Domain) -> tuple[Clique, ...]:
        if self.design == "random":
            count = len(self._designs(domain)[0]) if self.views is None else self.views
            return random_views(domain, count, view_cells=self.view_cells)
        unit = unit_stddev(facts, domain)
        return precise_design(domain, self._designs(domain), unit, float(self.rows or 0))


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


def random_views(domain: Domain, count: int, *, view_cells: int) -> tuple[Clique, ...]:
    """`count` views of random attributes, each filled up to view_cells; attributes that were rare so far come first.

    Li et al. 2021b: random views do about as well as a design of the same number. Each attribute is in a view at least
    if there are enough of them.
    """
    rng = np.random.default_rng(0)
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


def _open_sets(sizes: Ints, t: int, max_cells: int) -> Flags:
    """A symmetric array of t axes: which sets are to be covered."""
    places = np.indices((len(sizes),) * t, sparse=True)
    open_ = np.asarray(math.prod(sizes[p] for p in places) <= max_cells)
    for one, two in itertools.combinations(places, 2):
        open_ &= one != two
    return open_


def _plane(sizes: Ints, view_cells: int, seed: int) -> list[tuple[int, ...]]:
    """The lines of the smallest plane whose lines fit, over the attributes by size (seed 0) or at random; else none.

    Attributes of one size stand on parallel lines then, so that all other lines have one of each.
    """
    order = np.argsort(sizes, kind="stable") if seed == 0 else np.random.default_rng(seed).permutation(len(sizes))
    for q in orders(len(sizes)):
        views = [tuple(sorted(order[list(line)].tolist())) for line in lines(q, len(sizes))]
        if all(math.prod(sizes[list(v)].tolist()) <= view_cells for v in views):
            return views
    return []


def _greedy(sizes: Ints, open_: Flags, t: int, view_cells: int, rng: np.random.Generator) -> list[tuple[int, ...]]:
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


def _grown(sizes: Ints, open_: Flags, start: list[int], t: int, view_cells: int, rank: NDArray[np.intp]) -> list[int]:
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


def lines(q: int, points: int) -> list[tuple[int, ...]]:
    """The lines of the plane over the field of q elements, less the points beyond the first `points` of it.

    Any two of its q² + q + 1 points lie on exactly one of as many lines of q + 1 points. Without the points of one line
    that is the affine plane: q² points on q² + q lines of q points, which hold every pair of q² attributes: 72 of 8
    attributes for 64, the covering design that Li et al. 2021b, section 3.2, name.

    The first q² points are those of the affine plane, (x, y) as x·q + y; then come those at infinity: of each slope,
    and of x = c. Lines are y = m·x + b, x = c, and that at infinity; of each what is left, where that is two points
    or more.

    Args:
        q: a key of FIELDS.
        points: at most q² + q + 1.
    """
    left = [tuple(p for p in line if p < points) for line in _whole(q)]
    return [line for line in left if len(line) > 1]


@cache
def _whole(q: int) -> tuple[tuple[int, ...], ...]:
    """All lines of the plane."""
    sloped = [(*(x * q + _on_line(q, m, x, b) for x in range(q)), q * q + m) for m, b in np.ndindex(q, q)]
    upright = [(*(c * q + y for y in range(q)), q * q + q) for c in range(q)]
    return (*sloped, *upright, tuple(range(q * q, q * q + q + 1)))


def orders(points: int) -> list[int]:
    """The orders of the planes with so many points or more, the smallest first."""
    return [q for q in sorted(FIELDS) if q * q + q + 1 >= points]


def _on_line(q: int, m: int, x: int, b: int) -> int:
    """m · x + b of the field: polynomials over the integers modulo p, less multiples of the irreducible one.

    An element is the number whose digits to the base p are its polynomial's coefficients.
    """
    prime, whole = FIELDS[q]
    slope, place, start = ([n // prime**i % prime for i in range(len(whole) - 2, -1, -1)] for n in (m, x, b))
    rest = np.polydiv(np.polyadd(np.polymul(slope, place), start), whole)[1]
    return int(np.polyval(rest % prime, prime))
