"""Which marginals to measure, from public facts alone: explicit lists, downward closures, all k-way marginals."""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from mechanisms.public.domain import Clique, Domain, subsets
from mechanisms.public.errors import UserError, require_columns

#: More marginals than this are not listed: planning them would take minutes, and gigabytes.
MOST_LISTED = 200_000


@dataclass(frozen=True)
class Workload:
    """Cliques with their weights, and the cliques that were left out.

    Attributes:
        cliques: the marginals, smaller ones first; a clique may stand more than once (copies).
        weights: relative weight of each clique in the budget's split.
        left_out: marginals of the family that have more than the allowed number of cells.
        no_room: marginals that a graphical model of the allowed size cannot hold beside the others.
    """

    cliques: tuple[Clique, ...]
    weights: tuple[float, ...]
    left_out: tuple[Clique, ...] = ()
    no_room: tuple[Clique, ...] = ()


def explicit(domain: Domain, marginals: Sequence[Sequence[str]], *, max_cells: int) -> Workload:
    """Exactly these marginals; one with too many cells is an error."""
    cliques = tuple(_checked(domain, m) for m in marginals)
    for clique in cliques:
        if domain.cells(clique) > max_cells:
            raise UserError(
                f"{' × '.join(clique)} has {domain.cells(clique):,} cells, more than selection.max_cells={max_cells:,}",
                where="selection.marginals",
                fix="name fewer or coarser columns, or raise selection.max_cells",
            )
    return Workload(cliques, (1.0,) * len(cliques))


def without_joints(workload: Workload, alone: Collection[str], named: bool) -> Workload:
    """The workload without the joint marginals of columns that stand alone.

    Args:
        alone: columns with `one_way_only`, and the fine form of those with `joint_bins`.
        named: the marginals were given by name: one of these columns among others is an error.

    Raises:
        UserError: a given marginal joins such a column with others; nothing is left.
    """
    lonely = [c for c in workload.cliques if len(c) > 1 and not set(c).isdisjoint(alone)]
    if lonely and named:
        name = next(n for n in lonely[0] if n in alone)
        problem = f"{' × '.join(lonely[0])}: the schema keeps {name!r} out of joint marginals"
        fix = "leave it out (joint_bins: the column's own name stands for the coarse bins), or change the schema"
        raise UserError(problem, where="selection.marginals", fix=fix)
    weighted = [(c, w) for c, w in zip(workload.cliques, workload.weights, strict=True) if c not in set(lonely)]
    if not weighted:
        fix = "add 1 to selection.k, or take one_way_only away"
        raise UserError("every marginal joins columns that stand alone", where="selection.k", fix=fix)
    left_out = tuple(c for c in workload.left_out if len(c) == 1 or set(c).isdisjoint(alone))
    return Workload(tuple(c for c, _ in weighted), tuple(w for _, w in weighted), left_out)


def closure(domain: Domain, marginals: Sequence[Sequence[str]], *, max_cells: int) -> Workload:
    """The downward closure: every non-empty subset of the given marginals, once (McKenna 2021, marginal selection)."""
    return _sized(domain, {s for m in marginals for s in subsets(_checked(domain, m))}, max_cells)


def all_k_way(domain: Domain, orders: Sequence[int], *, max_cells: int) -> Workload:
    """All k-way marginals for each k in `orders`."""
    for k in orders:
        if not 1 <= k <= len(domain):
            raise UserError(
                f"no {k}-way marginals of {len(domain)} columns", where="selection.k", fix=f"1 to {len(domain)}"
            )
        check_listed(len(domain), k)
    cliques = {clique for k in orders for clique in itertools.combinations(domain.names, k)}
    return _sized(domain, cliques, max_cells)


def check_listed(columns: int, k: int) -> None:
    """UserError where all k-way marginals of so many columns are too many to be listed, weighed and planned."""
    count = math.comb(columns, k)
    if count > MOST_LISTED:
        fix = "selection=auto, which takes single columns there, and pairs of selection.important; or name marginals: "
        fix += "selection.marginals=[[a,b],[c]]"
        raise UserError(f"{count:,} {k}-way marginals of {columns:,} columns", where="selection", fix=fix)


def reweighted(domain: Domain, workload: Workload, weights: Sequence[tuple[Sequence[str], float]]) -> Workload:
    """The workload with the weights of some marginals replaced; a marginal that is not in it is an error."""
    new = dict(enumerate(workload.weights))
    for names, weight in weights:
        clique = _checked(domain, names, where="selection.weights")
        places = [i for i, c in enumerate(workload.cliques) if c == clique]
        if not places:
            raise UserError(
                f"{' × '.join(clique)} is not among the selected marginals",
                where="selection.weights",
                fix="add it to the selection, or take its weight away",
            )
        if not 0 < weight < float("inf"):
            raise UserError(f"got {weight}", where="selection.weights", fix="a finite weight above 0")
        new.update(dict.fromkeys(places, float(weight)))
    return Workload(workload.cliques, tuple(new[i] for i in range(len(new))), workload.left_out)


def _checked(domain: Domain, names: Sequence[str], where: str = "selection.marginals") -> Clique:
    if isinstance(names, str) or not names:
        raise UserError(f"got {names!r}", where=where, fix="a list of lists of columns, e.g. [[age,sex],[income]]")
    if len(set(names)) != len(names):
        raise UserError(f"a column stands twice in {list(names)}", where=where, fix="name each column once")
    require_columns(names, domain.names, where=where)
    return domain.canonical(names)


def _sized(domain: Domain, cliques: Collection[Clique], max_cells: int) -> Workload:
    order = sorted(cliques, key=lambda c: (len(c), domain.axes(c)))
    fitting = tuple(c for c in order if domain.cells(c) <= max_cells)
    if not fitting:
        smallest = min((domain.cells(c) for c in order), default=0)
        raise UserError(
            f"no marginal has at most {max_cells:,} cells (the smallest has {smallest:,})",
            where="selection.max_cells",
            fix="raise it, or use coarser bins in the schema",
        )
    left_out = tuple(c for c in order if domain.cells(c) > max_cells)
    return Workload(fitting, (1.0,) * len(fitting), left_out)
