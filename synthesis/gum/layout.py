"""How the work of GUM is laid out: what is appended at the end, and which parts are made apart (Appendix A.3)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from mechanisms.public.arrays import Codes, Floats, Ints
from mechanisms.public.coded_table import code_dtype
from mechanisms.public.domain import Clique, Domain
from synthesis.consistency.agree import ConsistentTargets, Target

Columns = dict[str, Codes]


@dataclass(frozen=True, eq=False)
class Appended:
    """Attributes drawn given others of one marginal: `lone` given `kept` (none: from the marginal itself)."""

    target: Target
    given: Clique
    lone: Clique


@dataclass(frozen=True, eq=False)
class Layout:
    """Groups of attributes whose rows are updated apart, then what is appended, in this order.

    Attributes:
        groups: attributes with the marginals inside, one-way ones included.
        appended: every other attribute that is in a marginal of two or more.
    """

    groups: tuple[tuple[Clique, tuple[Target, ...]], ...]
    appended: tuple[Appended, ...]


def lay_out(targets: ConsistentTargets, *, again: bool = True) -> Layout:
    """Take attributes that are in one marginal off, again and again; what is left falls into connected parts.

    A tree of marginals is taken off whole; without `again`, only what was in one marginal at first goes. Attributes
    that share a structural zero beyond one marginal stay together.
    """
    cliques = [c for c, _ in targets.zeros]
    bound = {n for c in cliques for n in c}
    outer = outermost([t for t in targets.marginals if len(t.clique) > 1 or t.clique[0] in bound])
    appended: list[Appended] = []
    first = frozenset(n for n, k in Counter(n for t in outer for n in t.clique).items() if k == 1)
    while (taken := _lone(outer, cliques, None if again else first)) is not None:
        appended.append(taken)
        outer = [t for t in outer if t is not taken.target]
        columns_used = set(taken.given)
        if (len(columns_used) > 1 or columns_used & bound) and not any(columns_used <= set(t.clique) for t in outer):
            own = taken.target
            variance = own.stddev**2 * own.values.size / targets.domain.cells(taken.given)
            outer.append(replace(own, clique=taken.given, values=own.sums(taken.given), stddev=variance**0.5))
    left = {n for t in outer for n in t.clique}
    links = [t.clique for t in outer] + [tuple(n for n in c if n in left) for c in cliques]
    inside = [t for t in targets.marginals if set(t.clique) <= left and not any(t is o for o in outer)]
    smaller = [t for t in inside if any(set(t.clique) < set(o.clique) for o in outer)]
    groups = []
    for names in components(left, links):
        inner = tuple(t for t in (*outer, *smaller) if set(t.clique) <= names)
        groups.append((targets.domain.canonical(names), inner))
    return Layout(tuple(groups), tuple(reversed(appended)))


def outermost(targets: Sequence[Target]) -> list[Target]:
    """Those that lie in no other."""
    return [t for t in targets if not any(set(t.clique) < set(o.clique) for o in targets)]


def _lone(outer: Sequence[Target], zeros: Sequence[Clique], allowed: frozenset[str] | None) -> Appended | None:
    """The first marginal with attributes that no other marginal, and no structural zero beyond it, has.

    Args:
        allowed: the only attributes that may be taken; None: all.
    """
    degree = Counter(n for t in outer for n in t.clique)
    for target in outer:
        pinned = {n for c in zeros if not set(c) <= set(target.clique) for n in c}
        free = [n for n in target.clique if allowed is None or n in allowed]
        lone = tuple(n for n in free if degree[n] == 1 and n not in pinned)
        if lone:
            return Appended(target, tuple(n for n in target.clique if n not in lone), lone)
    return None


def components(names: Iterable[str], links: Iterable[Clique]) -> list[set[str]]:
    """The connected parts of attributes that are linked."""
    parts = [{n} for n in sorted(names)]
    for link in links:
        meeting = [p for p in parts if p & set(link)]
        if meeting:
            parts = [p for p in parts if not p & set(link)] + [set.union(*meeting)]
    return sorted(parts, key=lambda p: min(p))


def draw_lone(domain: Domain, columns: Columns, appended: Appended, *, rows: int, rng: np.random.Generator) -> None:
    """Add the lone attributes' codes to the columns, given the kept ones: systematic within each kept cell.

    Rows of one kept cell are numbered at random, so that nothing else follows from the order of the rows. A kept cell
    in which the marginal has no records draws from the whole marginal.
    """
    clique = appended.target.clique
    order = [clique.index(n) for n in (*appended.given, *appended.lone)]
    conditions = domain.cells(appended.given)
    table = appended.target.values.transpose(order).reshape(conditions, -1)
    common = table.sum(axis=0) if table.sum() > 0 else np.ones(table.shape[1])
    table = np.where(table.sum(axis=1, keepdims=True) > 0, table, common)
    keys = np.zeros(rows, np.int64)
    for name in appended.given:
        keys = keys * domain[name].size + columns[name]
    cells = _drawn(table, keys, rng)
    for name in reversed(appended.lone):
        size = domain[name].size
        columns[name] = (cells % size).astype(code_dtype(size))
        cells //= size


def _drawn(table: Floats, keys: Ints, rng: np.random.Generator) -> Ints:
    """For each row a column of the table, in proportion to the entries of the row's own line."""
    counts = np.bincount(keys, minlength=len(table))
    mixed = rng.permutation(keys.size)
    mixed = mixed[np.argsort(keys[mixed], kind="stable")]
    mine = keys[mixed]
    place = np.arange(keys.size) - (np.cumsum(counts) - counts)[mine]
    shares = np.cumsum(table / table.sum(axis=1, keepdims=True), axis=1)
    shares[:, -1] = 1.0
    shares += np.arange(len(table))[:, None]
    spot = mine + (place + rng.random(len(table))[mine]) / counts[mine]
    drawn = np.searchsorted(shares.ravel(), spot, side="right") - mine * table.shape[1]
    cells = np.empty(keys.size, np.int64)
    cells[mixed] = np.clip(drawn, 0, table.shape[1] - 1)
    return cells


def tree_columns(
    targets: ConsistentTargets, names: Clique, own: Sequence[Target], *, rows: int, rng: np.random.Generator
) -> Columns:
    """First rows of a group: one attribute from its marginal, all others given another by a two-way marginal.

    The two-way marginals are a spanning tree of largest mutual information (Chow and Liu 1968).
    """
    pairs: dict[Clique, Target] = {}
    for target in sorted(own, key=lambda t: -t.variance):
        for i, one in enumerate(target.clique):
            for two in target.clique[i + 1 :]:
                pairs[one, two] = Target((one, two), target.sums((one, two)), target.stddev)
    by_information = sorted(pairs, key=lambda p: -information(pairs[p].values))
    columns: Columns = {}
    while len(columns) < len(names):
        link = next((p for p in by_information if (p[0] in columns) != (p[1] in columns)), None)
        if link is None:
            name = next(n for n in names if n not in columns)
            alone = Target((name,), targets.one_way(name), 1.0)
            draw_lone(targets.domain, columns, Appended(alone, (), (name,)), rows=rows, rng=rng)
            continue
        placed, lone = link if link[0] in columns else link[::-1]
        draw_lone(targets.domain, columns, Appended(pairs[link], (placed,), (lone,)), rows=rows, rng=rng)
    return columns


def information(values: Floats) -> float:
    """Mutual information of a two-way marginal, in nats."""
    total = float(values.sum())
    if total <= 0:
        return 0.0
    joint = values / total
    apart = np.outer(joint.sum(axis=1), joint.sum(axis=0))
    held = joint > 0
    return float((joint[held] * np.log(joint[held] / apart[held])).sum())
