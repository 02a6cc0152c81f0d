"""Settings → adaptive plans: which method decides between the rounds, and the slots that it may charge."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from mechanisms.accounting.accountants import accountant_class
from mechanisms.accounting.adaptive import AdaptivePlan, Reservation, reserve
from mechanisms.accounting.plan import Plan
from mechanisms.accounting.rounds import (
    aim_rounds,
    basis_rounds,
    given_rounds,
    indif_rounds,
    mwem_rounds,
    tree_rounds,
    view_rounds,
)
from mechanisms.public.adagrid import subsets
from mechanisms.public.criterion import Criterion
from mechanisms.public.domain import Clique, Domain
from mechanisms.public.errors import UserError, did_you_mean
from mechanisms.public.mapped import Mapped, in_pairs
from mechanisms.public.methods import Adagrid, Aim, Indif, Merge, Method, Mst, Mwem, PrivBasis, PriView
from mechanisms.public.noise_kinds import AUTO, NoiseKind, possible_kinds
from mechanisms.public.tree import pairs
from mechanisms.public.unit_sizes import RecordsPerUnit
from mechanisms.public.units import Neighbouring
from mechanisms.public.workload import Workload
from mechanisms.public.zeros import Zeros
from pipeline.choosing import designs, group_size
from pipeline.config import Config, SelectionConfig
from pipeline.fitted import IndependentFit, PgmFit
from pipeline.steps import Fit
from synthesis.model import SynthesizerSpec
from synthesis.pgm.model import PgmSpec

SELECTIONS = ("fixed", "adagrid", "mst", "mwem", "aim", "indif", "priview", "public", "groups", "privbasis")
#: AIM's first split of the budget, in rounds per column.
ROUNDS_PER_COLUMN = 2


def one_of(value: str, allowed: Sequence[str], where: str) -> str:
    """The value, if it is allowed."""
    if value not in allowed:
        fix = f"{did_you_mean(str(value), allowed)} one of: {', '.join(allowed)}".strip()
        raise UserError(f"got {value!r}", where=where, fix=fix)
    return value


def build_adaptive(
    config: Config,
    workload: Workload,
    domain: Domain,
    *,
    budget: tuple[float, float],
    max_records: int,
    items: Clique = (),
    alone: Collection[str] = (),
    histogram: RecordsPerUnit | None = None,
    mapped: Sequence[Mapped] = (),
    accept: Sequence[Criterion] = (),
) -> AdaptivePlan:
    """Every charge that the rounds may make, calibrated before any row is read.

    Args:
        workload: the given marginals (adagrid with marginals or closure), or the candidates (mwem).
        budget: ε and δ of all that the plan may charge.
        items: the binary columns (privbasis).
        alone: columns that stand in no joint marginal.
        histogram: of records per unit, if it is wanted.
        accept: what decides whether the release is accepted.
        mapped: columns whose first marginal is the one with the column that they follow from.
    Raises:
        UserError: a setting out of range; nothing to choose from.
    """
    selection, privacy = config.selection, config.privacy
    method, wanted, purse = _method(selection, workload, domain, items, frozenset(alone))
    wanted = [_with_source(w, domain, mapped) for w in wanted]
    accountant = accountant_class(privacy.accountant)

    def plan_of(noise: NoiseKind) -> AdaptivePlan:
        return reserve(
            wanted,
            method=method,
            noise=noise,
            accountant=accountant.kind,
            epsilon=budget[0],
            delta=budget[1],
            neighbouring=Neighbouring(one_of(privacy.neighbouring, tuple(Neighbouring), "privacy.neighbouring")),
            max_records=max_records,
            purse=purse,
            histogram=histogram,
            accept=accept,
        )

    kinds = possible_kinds(config.mechanism.kind, delta=budget[1])
    if purse and config.mechanism.kind == AUTO:
        return plan_of(accountant.natural_noise)
    return min(map(plan_of, kinds), key=_expected_error)


def _with_source(wanted: Reservation, domain: Domain, mapped: Sequence[Mapped]) -> Reservation:
    clique = wanted.clique and in_pairs(domain, mapped, wanted.clique)
    return wanted if clique == wanted.clique else replace(wanted, clique=clique, cells=domain.cells(clique or ()))


def _expected_error(plan: AdaptivePlan) -> float:
    """Σ over all cells of the noise's standard deviation, in records: what `auto` compares (Li et al. 2021b, 2.5)."""
    return sum(s.reservation.cells * s.event.stddev for s in plan.slots)


def _method(
    selection: SelectionConfig, workload: Workload, domain: Domain, items: Clique, alone: frozenset[str]
) -> tuple[Method, list[Reservation], float]:
    joint = [n for n in domain.names if n not in alone]
    floor = _threshold(selection.floor, "selection.floor", "records")
    if selection.merge is not None and selection.kind != "fixed":
        fix = "selection.rare for mst; the other methods measure grids, or whole marginals"
        raise UserError(f"not with selection.kind={selection.kind}", where="selection.merge", fix=fix)
    if selection.kind == "fixed":
        threshold = _threshold(0.0 if selection.merge is None else selection.merge, "selection.merge")
        return Merge(threshold, floor), given_rounds(domain, workload), 0.0
    if selection.kind == "adagrid":
        threshold = _threshold(selection.threshold, "selection.threshold")
        if selection.marginals is not None or selection.closure is not None:
            if selection.targets:
                fix = "name the targets' marginals among the others, or let a tree be chosen: selection.closure=null"
                raise UserError("targets and given marginals together", where="selection.targets", fix=fix)
            return Adagrid(threshold), given_rounds(domain, workload), 0.0
        targets = _targets(selection, domain)
        if targets and alone:
            fix = "selection.targets=[], or take one_way_only and joint_bins away"
            what = f"targets join every column, and the schema keeps {min(alone)!r} out of joint marginals"
            raise UserError(what, where="selection.targets", fix=fix)
        free = [n for n in joint if n not in targets]
        grids = Adagrid(threshold, _edges(domain, free, selection, targets), targets)
        return grids, tree_rounds(domain, grids, selection.split), 0.0
    if selection.kind == "mst":
        tree = Mst(_edges(domain, joint, selection), _threshold(selection.rare, "selection.rare"), floor)
        return tree, tree_rounds(domain, tree, selection.split), 0.0
    if selection.kind in ("indif", "groups"):
        size = group_size(selection, domain) if selection.kind == "groups" else 0
        found = Indif(_edges(domain, joint, selection), _cells(selection.combine_cells), size)
        return found, *indif_rounds(domain, found, selection.split)
    if selection.kind == "priview":
        together = Domain(tuple(domain[n] for n in joint))
        found_designs = designs(together, selection) if joint else (tuple((n,) for n in domain.names),)
        return PriView(found_designs), *view_rounds(domain, selection.split)
    if selection.kind == "privbasis":
        return _basis(selection, items)
    if selection.kind == "aim":
        return _aim(selection, workload, domain)
    candidates = tuple(dict.fromkeys(c for c in workload.cliques if len(c) > 1))
    rounds = len(domain) if selection.rounds is None else selection.rounds
    if rounds < 1:
        raise UserError(f"got {rounds}", where="selection.rounds", fix="a whole number of at least 1, or null")
    worst = Mwem(candidates, min(rounds, len(candidates)), selection.max_model_cells)
    return worst, mwem_rounds(domain, worst, selection.split), 0.0


def _basis(selection: SelectionConfig, items: Clique) -> tuple[PrivBasis, list[Reservation], float]:
    """As many items and pairs as wanted; by default 12 items, and twice as many pairs as items."""
    if not items:
        fix = "declare them as flags, or as categorical columns of two values, in the schema"
        raise UserError("no column is binary", where="selection=privbasis", fix=fix)
    wanted = min(12, len(items)) if selection.items is None else selection.items
    if not 1 <= wanted <= len(items):
        raise UserError(f"got {wanted}", where="selection.items", fix=f"1 to {len(items)}, the binary columns")
    every = wanted * (wanted - 1) // 2
    several = min(2 * wanted, every) if selection.pairs is None else selection.pairs
    if not 0 <= several <= every:
        raise UserError(f"got {several}", where="selection.pairs", fix=f"0 to {every}, the pairs of the items")
    if selection.view_cells < 3:
        raise UserError(f"got {selection.view_cells}", where="selection.view_cells", fix="a whole number of at least 3")
    method = PrivBasis(items, wanted, several, selection.view_cells)
    return method, *basis_rounds(method, selection.split)


def _aim(selection: SelectionConfig, workload: Workload, domain: Domain) -> tuple[Aim, list[Reservation], float]:
    """All subsets of the workload's marginals; a subset's weight is Σ of weight · |overlap| over the workload."""
    found = {s for c in workload.cliques for s in subsets(c)}
    order = sorted(found, key=lambda c: (len(c), domain.axes(c)))
    wanted = list(zip(map(set, workload.cliques), workload.weights, strict=True))
    useful = [sum(w * len(c & set(s)) for c, w in wanted) for s in order]
    rounds = ROUNDS_PER_COLUMN * len(domain) if selection.rounds is None else selection.rounds
    if rounds < len(domain):
        fix = f"at least the number of columns, {len(domain)}, or null"
        raise UserError(f"got {rounds}", where="selection.rounds", fix=fix)
    if not 0 < selection.measured < 1:
        raise UserError(f"got {selection.measured}", where="selection.measured", fix="a part between 0 and 1")
    largest = max(useful)
    weights = tuple(max(u / largest, 2.0**-16) for u in useful)
    aim = Aim(tuple(order), weights, selection.measured, rounds, selection.max_model_cells)
    return aim, *aim_rounds(domain, aim)


def _edges(
    domain: Domain, names: Sequence[str], selection: SelectionConfig, targets: Clique = ()
) -> tuple[Clique, ...]:
    """The pairs among which a tree is chosen; a table of one column has none."""
    found = pairs(domain, names, selection.max_cells, targets)
    if len(names) > 1 and not found:
        fix = "raise it, name fewer targets, or use coarser bins in the schema"
        raise UserError("no pair of columns is small enough", where="selection.max_cells", fix=fix)
    return found


def _targets(selection: SelectionConfig, domain: Domain) -> Clique:
    try:
        targets = domain.canonical(selection.targets)
    except UserError as error:
        raise UserError(error.what, where="selection.targets", fix=error.fix) from None
    for name in domain.names:
        cells = domain.cells(domain.canonical((name, *targets)))
        if targets and cells > selection.max_cells:
            raise UserError(
                f"{name} with the targets has {cells:,} cells, more than selection.max_cells={selection.max_cells:,}",
                where="selection.targets",
                fix="fewer or coarser targets, or raise selection.max_cells",
            )
    return targets


def _cells(value: int) -> int:
    if value < 0:
        fix = "a whole number of at least 0; 0: pairs stay pairs"
        raise UserError(f"got {value}", where="selection.combine_cells", fix=fix)
    return value


def _threshold(value: float, where: str, of: str = "standard deviations") -> float:
    if not 0 <= value < float("inf"):
        raise UserError(f"got {value}", where=where, fix=f"a number of {of} of at least 0")
    return float(value)


def build_fit(synthesis: SynthesizerSpec, plan: Plan | AdaptivePlan, zeros: tuple[Zeros, ...] = ()) -> Fit:
    """The model between rounds: independent columns where only one-way marginals are known, else a graphical model."""
    if isinstance(plan, Plan) or isinstance(plan.method, Mst | Merge | Indif | PriView | PrivBasis):
        return IndependentFit()
    if isinstance(plan.method, Adagrid) and not plan.method.targets:
        return IndependentFit()
    return PgmFit(synthesis if isinstance(synthesis, PgmSpec) else PgmSpec(), zeros)
