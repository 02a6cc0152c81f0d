"""The choices of `indif`, from a public table of the same schema: free of cost, all of the budget measures.

Also the groups of columns that it may choose within, and the noise of a marginal that takes the whole budget.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import numpy as np

from mechanisms.accounting.accountants.basic import Basic
from mechanisms.accounting.accountants.gdp import Gdp
from mechanisms.accounting.accountants.registered import accountant_class
from mechanisms.accounting.accountants.zcdp import Zcdp
from mechanisms.accounting.budget import possible_pairs
from mechanisms.accounting.plan import Plan
from mechanisms.accounting.planning import Request, make_plan
from mechanisms.public.arrays import Floats
from mechanisms.public.coded_table import count_cliques
from mechanisms.public.designs.dense import combined, dense
from mechanisms.public.designs.pair_view import pairs
from mechanisms.public.domain import Clique, Domain
from mechanisms.public.errors import UserError
from mechanisms.public.noise_kinds import AUTO, possible_kinds
from mechanisms.public.settings import setting
from mechanisms.public.tables.codec import read_public
from mechanisms.public.workload import Workload
from mechanisms.selection.base import COMBINED, Facts, Schedule, Selection


@dataclass(frozen=True)
class PublicSettings(Selection):
    """Settings; conf/selection/public.yaml says what each is."""

    kind: ClassVar[str] = "public"
    of_pairs: ClassVar[bool] = True
    public: str | None = None
    delimiter: str = ","
    rows: int | None = setting(None, least=1)
    max_cells: int = setting(20_000, least=1)
    combine_cells: int = setting(1_000, least=0, note=COMBINED)

    @property
    def public_table(self) -> str | None:
        return self.public

    @property
    def public_rows(self) -> int | None:
        return self.rows

    def workload(self, facts: Facts) -> Workload:
        """What the public table chooses."""
        return self.chosen(facts, 0)

    def schedule(self, facts: Facts, workload: Workload) -> Schedule | None:
        return None

    def chosen(self, facts: Facts, groups: int) -> Workload:
        """DenseMarg on the exact distances of a public table, which costs nothing.

        Args:
            groups: the most columns in a group; 0: no groups.
        Raises:
            UserError: no public table, or one of another schema; settings out of range.
        """
        refuse_mapped(facts)
        return with_all_columns(facts.domain, self._pairs(facts, groups))

    def _pairs(self, facts: Facts, groups: int) -> list[Clique]:
        domain = facts.domain
        if self.public is None:
            fix = "selection.public=FILE, a table of the same columns that is public"
            raise UserError("no public table given", where="selection.public", fix=fix)
        candidates = pairs(domain, facts.joint, self.max_cells)
        if len(facts.joint) > 1 and not candidates:
            fix = "raise it, or use coarser bins in the schema"
            raise UserError("no pair of columns is small enough", where="selection.max_cells", fix=fix)
        with tempfile.TemporaryDirectory() as folder:
            table = read_public(self.public, self.delimiter, facts.schema, Path(folder))
            scale = (self.rows or table.rows) / table.rows
            sides = {
                n: c * scale
                for n, c in zip(domain.names, count_cliques(table, [(n,) for n in domain.names]), strict=True)
            }
            exact = [c * scale for c in count_cliques(table, candidates)]
        expected = [np.outer(sides[a], sides[b]).ravel() / (scale * table.rows) for a, b in candidates]
        gaps = np.array([np.abs(c - e).sum() for c, e in zip(exact, expected, strict=True)], np.float64)
        inside = list(range(len(candidates)))
        if groups:
            inside = within(candidates, grouped(domain.names, candidates, gaps.tolist(), groups))
        if not inside:
            return []
        pairs_chosen = dense(gaps[inside], [expected[i] for i in inside], unit_noise(facts, domain))
        return combined(domain, [candidates[inside[i]] for i in pairs_chosen], self.combine_cells)


def refuse_mapped(facts: Facts) -> None:
    """UserError where the schema has mapped columns, which are measured and not chosen."""
    if facts.schema.rules.mapped:
        fix = "selection=indif, or take mapped out of the schema"
        raise UserError("the schema's mapped columns are measured, not chosen", where="selection", fix=fix)


def grouped(names: Sequence[str], pairs: Sequence[Clique], gaps: Sequence[float], largest: int) -> list[list[str]]:
    """Groups of at most `largest` attributes, by average linkage: the two groups nearest to each other join first.

    Nearness of two groups is the mean distance from independence over the pairs between them; pairs that are no
    candidates, and distances below 0, count as 0. Groups that nothing ties stay apart. (Linkage of a library, as in
    `schema/cluster.py`, knows no largest group: two groups that are too large together must let the next pair join.)

    Args:
        gaps: per pair its distance from independence, in records; noisy or from a public table.
    Returns:
        the groups, each in the order of `names`.
    """
    sums: dict[frozenset[int], float] = {}
    place = {n: i for i, n in enumerate(names)}
    for pair, gap in zip(pairs, gaps, strict=True):
        if gap > 0:
            sums[frozenset(place[n] for n in pair)] = float(gap)
    members = {i: [n] for i, n in enumerate(names)}
    while True:
        near = [
            (-total / (len(members[a]) * len(members[b])), a, b)
            for (a, b), total in ((sorted(k), t) for k, t in sums.items())
            if len(members[a]) + len(members[b]) <= largest
        ]
        if not near:
            return [sorted(m, key=place.__getitem__) for _, m in sorted(members.items())]
        _, a, b = min(near)
        members[a] += members.pop(b)
        del sums[frozenset((a, b))]
        for key in [k for k in sums if b in k]:
            (other,) = key - {b}
            both = frozenset((a, other))
            sums[both] = sums.get(both, 0.0) + sums.pop(key)


def within(pairs: Sequence[Clique], groups: Collection[Collection[str]]) -> list[int]:
    """The places of the pairs that lie in one group."""
    home = {n: i for i, group in enumerate(groups) for n in group}
    return [i for i, (a, b) in enumerate(pairs) if home[a] == home[b]]


def unit_noise(facts: Facts, domain: Domain) -> Callable[[Floats], Floats]:
    """The mean absolute noise of a marginal, in records, from its share of the whole budget.

    Where the accountant is left open: that of the best pair for as many equal shares.
    """
    plans = [_whole_budget(facts, domain, accountant) for accountant in _open_accountants(facts)]

    def noise(shares: Floats) -> Floats:
        every = [p.measurements[0].event.mean_abs / p.accountant.strength(shares) for p in plans]
        return np.asarray(np.minimum.reduce(every))

    return noise


def unit_stddev(facts: Facts, domain: Domain) -> float:
    """The standard deviation of a cell of one marginal that takes the whole budget, in records, by its noise's law.

    Where the accountant is left open: one of squares, as many marginals will have it, if there is any.
    """
    return _whole_budget(facts, domain, _open_accountants(facts)[0]).measurements[0].event.stddev


def _open_accountants(facts: Facts) -> list[str]:
    """The accountant that is named; where it is open, those that serve, one of squares first if any does."""
    if facts.budget.accountant != AUTO:
        return [accountant_class(facts.budget.accountant).kind]
    names = {p.accountant for p in possible_pairs(facts.mechanism, facts.budget)}
    return [a.kind for a in (Gdp, Zcdp, Basic) if a.kind in names]


def _whole_budget(facts: Facts, domain: Domain, kind: str) -> Plan:
    """One marginal alone."""
    accountant = accountant_class(kind)
    kinds = possible_kinds(facts.mechanism, delta=facts.budget.delta)
    noise = accountant.natural_noise if accountant.natural_noise in kinds else kinds[0]
    budget = replace(facts.budget, accountant=accountant.kind)
    return make_plan(domain, [Request((domain.names[0],))], budget, mechanism=noise)


def with_all_columns(domain: Domain, chosen: Collection[Clique]) -> Workload:
    """The chosen marginals, and the one-way marginals of the columns that are in none of them."""
    held = {n for c in chosen for n in c}
    cliques = sorted({*chosen, *((n,) for n in domain.names if n not in held)}, key=lambda c: (len(c), domain.axes(c)))
    return Workload(tuple(cliques), (1.0,) * len(cliques))
