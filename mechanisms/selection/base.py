"""What every selection owes: its settings, the marginals or the slots that follow from them, its run and its bounds."""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar

from mechanisms.accounting.accountants.registered import check_filter, serves_as_filter
from mechanisms.accounting.budget import POWER, Budget, possible_pairs
from mechanisms.accounting.plan import Plan, Reservation
from mechanisms.accounting.planning import reserve
from mechanisms.public.designs.pair_view import forest_edges, pairs
from mechanisms.public.domain import Clique, Domain, subsets
from mechanisms.public.errors import UserError
from mechanisms.public.files import JsonDict
from mechanisms.public.noise_kinds import NoiseKind
from mechanisms.public.schema.table_schema import Schema
from mechanisms.public.settings import BoundedSettings
from mechanisms.public.workload import Workload, all_k_way, check_listed, without_joints
from mechanisms.selection.context import Context

#: Stages: the first measurements, the choices, and the measurements of what was chosen; and of fine columns.
SLOT_STAGES = ("given", "choose", "chosen", "scores", "pairs", "fine")
GIVEN, CHOOSE, CHOSEN, SCORES, PAIRS, FINE_STAGE = SLOT_STAGES
#: What the parts of the budget are for, where a tree is chosen.
TREE_STAGES = ("one-way", "choice", "measurement")
#: What the parts of the budget are for.
SCORED_STAGES = ("one-way", "scores", "measurement")
#: What a message says of `combine_cells`.
COMBINED = "0: pairs stay pairs"
#: How messages call thresholds.
DEVIATIONS, RECORDS = "a number of standard deviations", "a number of records"
#: The name of a marginal that is not known yet.
LATER = "a marginal chosen later"


@dataclass(frozen=True)
class Facts:
    """What a selection decides from before any row is read: public facts and the budget.

    Attributes:
        schema: columns, sizes and rules.
        mechanism: a kind of noise, or auto.
        budget: of all tries together; its accountant may be auto.
    """

    schema: Schema
    mechanism: str
    budget: Budget

    @property
    def domain(self) -> Domain:
        """What is measured."""
        return self.schema.measured

    @property
    def alone(self) -> frozenset[str]:
        """Columns that stand in no joint marginal."""
        return frozenset(self.schema.engineering.alone) | {a.name for a in self.schema.fine.values()}

    @property
    def joint(self) -> list[str]:
        """Columns that may stand in joint marginals."""
        alone = self.alone
        return [n for n in self.domain.names if n not in alone]


@dataclass(frozen=True)
class Method(ABC):
    """What decides between rounds, with all that it decides from: frozen words, part of the ledger's name for the plan.

    The fields are plain values: `description` and `selections.method_of` are inverse.
    """

    kind: ClassVar[str]
    #: Whether only accountants serve whose costs are squares of strengths.
    squares: ClassVar[bool] = False
    #: Whether its slots, at their largest, are all that a graphical model of the answers has to hold.
    slots_tell: ClassVar[bool] = False

    @property
    def description(self) -> JsonDict:
        """The method as plain values."""
        return {"kind": self.kind, **{f.name: getattr(self, f.name) for f in fields(self)}}

    @property
    def graphical(self) -> bool:
        """Whether the model between its rounds is a graphical one; else independent columns."""
        return False

    @property
    def max_cells_between(self) -> int | None:
        """The most cells of the graphical model between the rounds; None where the method limits none."""
        return None

    @property
    def in_words(self) -> str:
        """What `plan` says of it beside its charges; empty: nothing."""
        return ""

    @abstractmethod
    def run(self, context: Context) -> None:
        """Ask, choose and measure until the budget is spent."""

    def later_cells(self, domain: Domain, slots: Sequence[Reservation]) -> list[tuple[str, int]]:
        """Name and most cells of every marginal that is chosen later: those of slots, and those of the reserve."""
        return [(LATER, s.cells) for s in slots if s.cells and not s.clique]

    def grown_cells(self, slots: Sequence[Reservation]) -> int | None:
        """The most cells of a graphical model of all that may be measured; None where only the model's limit tells."""
        return sum(s.cells for s in slots) if self.slots_tell else self.max_cells_between

    @property
    def reported(self) -> Sequence[Clique]:
        """The marginals whose noise `plan` holds against the rows, where the reserve is shared out among them."""
        return ()


@dataclass(frozen=True)
class Schedule:
    """What a selection plans of several rounds: its method, its slots in order, and its reserve.

    Attributes:
        reserve: the relative part of the budget that is spent in rounds of no fixed number.
    """

    method: Method
    slots: list[Reservation]
    reserve: float = 0.0

    def with_power(self, power: float) -> Schedule:
        """The same stages; the slots of each share its part by another power of the same loads than that of squares."""
        if power == POWER:
            return self
        stages: dict[str, list[Reservation]] = {}
        for slot in self.slots:
            stages.setdefault(slot.stage, []).append(slot)
        factors = {
            stage: math.fsum(s.weight for s in slots) / math.fsum(s.weight ** (power / POWER) for s in slots)
            for stage, slots in stages.items()
        }
        slots = [replace(s, weight=factors[s.stage] * s.weight ** (power / POWER)) for s in self.slots]
        return replace(self, slots=slots)

    def plan(self, budget: Budget, *, noise: NoiseKind, **beside: Any) -> Plan:
        """Every charge that the rounds may make, calibrated; arguments as of `reserve`.

        Raises:
            UserError: as of `reserve`; an accountant that cannot count this method's reserve.
        """
        if self.reserve:
            check_filter(budget.accountant, noise, squares=self.method.squares)
        facts = {"method": self.method.description, "filter_share": self.reserve, **beside}
        return reserve(self.slots, budget, noise=noise, **facts)


@dataclass(frozen=True)
class Selection(BoundedSettings, ABC):
    """A frozen dataclass whose fields are the settings, named like the keys of its YAML file; `setting` bounds them.

    A selection either names its marginals from public facts alone (`schedule` is None: they are measured in one round),
    or plans several rounds.
    """

    settings_group: ClassVar[str] = "selection"
    kind: ClassVar[str]
    #: The methods that it may plan.
    methods: ClassVar[tuple[type[Method], ...]] = ()
    #: Whether it chooses among all small pairs of joint columns.
    of_pairs: ClassVar[bool] = False

    @property
    def whole_pairs(self) -> str | None:
        """The setting for which whole marginals of a mapped column and its source are not measured; None: they are."""
        return None

    @property
    def public_table(self) -> str | None:
        """The file of a public table that it looks at, or None."""
        return None

    @property
    def public_rows(self) -> int | None:
        """The number of rows that its settings take as public, about; or None."""
        return None

    @property
    def named(self) -> bool:
        """Whether a person named the marginals."""
        return False

    def fine_cells_of(self, facts: Facts) -> int:
        """About how many fine cells it measures of each column of numbers or dates; 0: it asks for none."""
        return 0

    def fits(self, graphical: bool) -> bool:
        """Whether marginals are dropped until a graphical model holds them.

        Args:
            graphical: whether the synthesizer is one.
        """
        return False

    def workload(self, facts: Facts) -> Workload:
        """The marginals that public facts give: to be measured, or for the method to look at.

        Raises:
            UserError: a setting that does not fit the schema; nothing to measure.
        """
        return without_joints(all_k_way(facts.domain, [1], max_cells=self.largest), facts.alone, False)

    def passed_over(self, facts: Facts) -> tuple[Clique, ...]:
        """Marginals that might be chosen if they had fewer cells, beside those that the workload names."""
        if not self.of_pairs:
            return ()
        check_listed(len(facts.joint), 2)
        return tuple(p for p in itertools.combinations(facts.joint, 2) if facts.domain.cells(p) > self.largest)

    @property
    def largest(self) -> int:
        """The most cells of a marginal of the workload."""
        return int(getattr(self, "max_cells", 2**62))

    def limit(self, facts: Facts) -> str:
        """The most cells of a marginal that is not left out for its size, in words."""
        return f"selection.max_cells={self.largest:,} cells"

    @abstractmethod
    def schedule(self, facts: Facts, workload: Workload) -> Schedule | None:
        """The plan of several rounds; None where public facts decide which marginals are measured.

        Raises:
            UserError: a setting that does not fit the schema; nothing to choose from.
        """


def one_way_slots(domain: Domain, part: float, stage: str = GIVEN) -> list[Reservation]:
    """A slot for each one-way marginal, that part of the budget shared out by cells^(2/3)."""
    loads = [float(domain[n].size) ** (2 / 3) for n in domain.names]
    total = math.fsum(loads)
    return [
        Reservation(stage, (n,), domain[n].size, part * load / total)
        for n, load in zip(domain.names, loads, strict=True)
    ]


@dataclass(frozen=True)
class ScoredPairs(Method):
    """One-way marginals, noisy distances of all candidates from independence, then a round out of the reserve.

    Attributes:
        candidates: the pairs that are scored; empty: the one-way marginals are measured twice.
        combine_cells: overlapping pairs become marginals of at most so many cells; 0: they stay pairs.
    """

    candidates: tuple[Clique, ...]
    combine_cells: int = 1_000

    def slots(self, domain: Domain, split: Sequence[float]) -> tuple[list[Reservation], float]:
        """One-way marginals, all distances from independence at once, and the part of the budget for what is chosen.

        Args:
            split: parts of the budget for the three stages; the first is shared out by cells^(2/3).
        """
        slots = one_way_slots(domain, split[0])
        if self.candidates:
            slots.append(Reservation(SCORES, None, 0, split[1], len(self.candidates)))
        return slots, split[2]

    def later_cells(self, domain: Domain, slots: Sequence[Reservation]) -> list[tuple[str, int]]:
        """Every candidate, at the size that it may be combined to."""
        bounds = super().later_cells(domain, slots)
        return bounds + [(" × ".join(c), max(domain.cells(c), self.combine_cells)) for c in self.candidates]

    @property
    def reported(self) -> Sequence[Clique]:
        return self.candidates


def edges(domain: Domain, names: Sequence[str], max_cells: int, targets: Clique = ()) -> tuple[Clique, ...]:
    """The pairs among which a tree or marginals are chosen; a table of one column has none.

    Raises:
        UserError: no pair is small enough.
    """
    check_listed(len(names), 2)
    every_pair = pairs(domain, names, max_cells, targets)
    if len(names) > 1 and not every_pair:
        fix = "raise it, name fewer targets, or use coarser bins in the schema"
        raise UserError("no pair of columns is small enough", where="selection.max_cells", fix=fix)
    return every_pair


def has_filter(facts: Facts) -> bool:
    """Whether the accountant counts charges whose sizes depend on answers, under noise that it may have."""
    pairs_left = possible_pairs(facts.mechanism, facts.budget, reserve=True)
    return any(serves_as_filter(p.accountant, p.noise) for p in pairs_left)


def check_floor(floor: float, merge: float | None) -> None:
    """UserError for `selection.floor` where no values are merged, of which it could say something."""
    if floor and merge is None:
        raise UserError("no values are merged", where="selection.floor", fix="selection.merge=4.5 with it, or 0")


def tree_slots(
    domain: Domain, candidates: Sequence[Clique], split: Sequence[float], targets: Clique = ()
) -> list[Reservation]:
    """One-way marginals (with the targets), then as many choices as the tree has edges, then its marginals.

    Args:
        split: parts of the budget for the three stages; equal within a stage.
    """
    whole = {domain.canonical(s) for n in domain.names for s in subsets(domain.canonical((n, *targets)))}
    first = sorted(whole, key=lambda c: (len(c), domain.axes(c)))
    count, new = forest_edges(candidates), [(), *subsets(targets)]
    largest = max((domain.cells(c) for c in candidates), default=0)
    slots = [Reservation(GIVEN, c, domain.cells(c), split[0] / len(first)) for c in first]
    slots += [Reservation(CHOOSE, None, 0, split[1] / count) for _ in range(count)]
    for extra in new if count else ():
        cells = largest * domain.cells(extra)
        slots += [Reservation(CHOSEN, None, cells, split[2] / count / len(new)) for _ in range(count)]
    return slots
