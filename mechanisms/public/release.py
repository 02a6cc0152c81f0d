"""What crossed the wall: noisy answers, and the receipts that say what they cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import ClassVar, Literal

import numpy as np

from mechanisms.public.arrays import Flags, Floats
from mechanisms.public.domain import Clique, Domain
from mechanisms.public.files import Json, JsonDict
from mechanisms.public.noise_kinds import NOISE_KINDS, NoiseKind
from mechanisms.public.queries.query_matrices import Identity, QueryMatrix, sensitivity
from mechanisms.public.units import UNITS, Neighbouring, Norm, plain_digits


@dataclass(frozen=True, eq=False)
class NoisyMarginal:
    """Noisy answers to linear queries over one marginal.

    Attributes:
        clique: the attributes, in domain order.
        query: the query matrix over the flattened (C order) marginal; the identity for a whole marginal.
        values: the noisy answers, one per row of ``query``, in records.
        noise: the kind of noise.
        scale: the scale of the noise of each answer (σ of Gaussian, b of Laplace noise), in records.
        event: the ledger's name of the charge that paid for it.
    """

    clique: Clique
    query: QueryMatrix
    values: Floats
    noise: NoiseKind
    scale: float
    event: str

    def __post_init__(self) -> None:
        self.values.setflags(write=False)  # whoever reads them changes nothing of what is released

    @property
    def stddev(self) -> float:
        """Standard deviation of the noise of one answer, in records."""
        return NOISE_KINDS[self.noise].stddev * self.scale

    @property
    def mean_abs(self) -> float:
        """Mean absolute noise of one answer, in records."""
        return NOISE_KINDS[self.noise].mean_abs * self.scale


def averaged(answers: Sequence[NoisyMarginal]) -> tuple[Floats, float]:
    """The mean of answers to one query, weighed by 1/σ², and its standard deviation."""
    precision = np.array([a.stddev**-2 for a in answers])
    mean = sum(p * a.values for p, a in zip(precision, answers, strict=True)) / precision.sum()
    return np.asarray(mean), float(precision.sum() ** -0.5)


@dataclass(frozen=True, eq=False)
class NoisyDistances:
    """How far marginals are from those of independent columns, with noise; all under one charge.

    Attributes:
        cliques: the marginals, of several columns each, in the domain's order.
        whole: per marginal whether all of its cells were compared, or sums of them.
        values: Σ max(|counts − expected| − below, 0) over cells, with noise, in records.
        answers: the expected counts are `independent_marginals` of the first so many answers of the release.
        noise, scale, event: as of a `NoisyMarginal`.
        below: differences up to so many records in a cell do not count; 0: all count.
    """

    cliques: tuple[Clique, ...]
    whole: Flags
    values: Floats
    answers: int
    noise: NoiseKind
    scale: float
    event: str
    below: float = 0.0

    def __post_init__(self) -> None:
        self.values.setflags(write=False)


@dataclass(frozen=True, eq=False)
class Measurements:
    """Everything that synthesis may know.

    Attributes:
        domain: the public domain.
        answers: the noisy answers, in the order measured.
        public_total: the number of records where it is a public fact (``replace`` with one record per unit), else None.
        distances: noisy distances from independent columns, where the selection asked for them.
        persons: noisy answers to what was asked about persons, in persons.
        rows: how many rows stand for them, where persons have more records than count; else None.
    """

    domain: Domain
    answers: tuple[NoisyMarginal, ...]
    public_total: int | None = None
    distances: NoisyDistances | None = None
    persons: tuple[NoisyMarginal, ...] = ()
    rows: int | None = None

    @property
    def histogram(self) -> NoisyMarginal | None:
        """The noisy numbers of units with 1 … C records that a `unit_id` asked for."""
        return next((a for a in self.persons if a.event.startswith(UNITS)), None)

    def answers_about(self, clique: Clique) -> list[NoisyMarginal]:
        """The answers whose marginals contain these columns, in the order measured."""
        if not clique:
            return list(self.answers)
        fewest = min((self._having.get(name, []) for name in clique), key=len)
        return [a for a in fewest if set(clique) <= set(a.clique)]

    @cached_property
    def _having(self) -> dict[str, list[NoisyMarginal]]:
        having: dict[str, list[NoisyMarginal]] = {}
        for answer in self.answers:
            for name in answer.clique:
                having.setdefault(name, []).append(answer)
        return having


@dataclass(frozen=True)
class PrivacyStatement:
    """What was promised and spent: the content of `privacy.json`, JSON values only.

    Attributes:
        private: whether the folder's content is (ε, δ)-DP as stated.
        reasons_not_private: the settings that take the promise away: noise_seed, confirmed_public.
        budget, spent: {"epsilon", "delta"}.
        accountant: its name; `conversion` its formula.
        neighbouring: add_remove or replace.
        unit: {"column", "max_records", "clip", "missing", "ids"}: who is protected, C, how it was enforced, what
            happened to rows without an id, and which ids are one; `column` is None where a record is the unit.
        holdout: the share of units that was set aside before anything was counted; "none" where none was.
        events: every charge with sensitivity, scale and cost, and whether an answer exists.
        guarantee: {"epsilon", "delta"} of everything that the plan may charge: what holds, whatever was charged of it.
        original: {"mu"} or {"rho"} of the guarantee, before any δ is chosen; empty under other accountants.
        slots: over how many Gaussian events the accountant splits δ; 0 where it does not.
        epsilon_at: ε at other δ; `curve` the same as pairs (δ, ε); None where there is no bound.
        group_privacy: {"units", "epsilon", "delta"} for groups of units.
        table: the table's name; `published` who releases it and when, from the settings; None where nobody said so.
        running_total: what a budget ledger says about all releases of this table; None without one.
        public_facts: what was taken as public; `outside` what may stop a run, which the guarantee does not cover: each
            a mapping whose `fact` or `stop` names its kind.
        noise_source: system (the secure source) or fixed_seed.
        versions: of this package and of the libraries that matter.
        selection: how one of several tries was chosen, and what a try cost; None where there was one. Events are those
            of the try that is released; how many there were is not told.
        warnings: the settings that make the promise a weak one: epsilon, delta, unit_id_rules.
        not_ours: the selection, noise, accountant, query matrices and synthesizer of plugins: kind, name, module,
            package, version, digest; empty where all is ours, and then no key of privacy.json.
    """

    private: bool
    reasons_not_private: tuple[str, ...]
    budget: Mapping[str, float]
    spent: Mapping[str, float]
    accountant: str
    conversion: str
    neighbouring: str
    unit: Json
    holdout: str | float
    noise_source: str
    public_facts: tuple[Json, ...]
    outside: tuple[Json, ...]
    events: tuple[Json, ...]
    versions: Mapping[str, str]
    guarantee: Mapping[str, float]
    original: Mapping[str, float]
    slots: int
    epsilon_at: Mapping[str, float | None]
    curve: tuple[tuple[float, float | None], ...]
    group_privacy: tuple[Mapping[str, float | None], ...]
    table: str
    published: Mapping[str, str | None]
    running_total: Json | None = None
    selection: Json | None = None
    warnings: tuple[str, ...] = ()
    not_ours: tuple[Json, ...] = ()

    def to_json(self) -> JsonDict:
        """The statement as JSON values, the most important first."""
        content = {"version": STATEMENT_VERSION, **asdict(self)}
        return content if self.not_ours else {k: v for k, v in content.items() if k != "not_ours"}


#: Of privacy.json. Format 1 had no such key, and nothing bound it to the files beside it; format 2 had sentences in it.
STATEMENT_VERSION = 3


def not_ours_lines(parts: object) -> list[str]:
    """Each part in words, from the content of a statement, which may be anybody's."""
    entries = parts if isinstance(parts, list | tuple) else ()
    named = ((p, p.get("distribution") or p.get("module"), p.get("version")) for p in entries if isinstance(p, Mapping))
    return [f"{p.get('kind')} {p.get('name')!r} of {package}{f' {n}' if n else ''}" for p, package, n in named]


#: Ids of events that pay for the scores of criteria begin so.
ACCEPT = "accept:"
Over = Literal["mean", "largest"]


@dataclass(frozen=True)
class Criterion:
    """How far the synthetic table may lie from the private one, in records.

    The distance is the L1 distance between a marginal of the clipped, weighted private table and that of the synthetic
    one, over all marginals in `cliques`: their mean, or the largest.

    Attributes:
        place: its number among the criteria.
        marginals: k: columns per marginal.
        cliques: all k-way marginals that have few enough cells.
        left_out: how many have not.
        over: the mean of the distances, or the largest of them.
        at_most: a release with a larger noisy distance is not accepted; None: it is released with it, whatever it is.
        share: its part of a try's budget, in the accountant's additive currency.
    """

    purpose: ClassVar[Literal["accept"]] = "accept"
    place: int
    marginals: int
    cliques: tuple[Clique, ...]
    left_out: int
    over: Over
    at_most: float | None
    share: float

    @property
    def event(self) -> str:
        return f"{ACCEPT}{self.place}"

    @property
    def title(self) -> str:
        """What is compared, in words."""
        every = f"all {len(self.cliques)}" if not self.left_out else f"{len(self.cliques)} ({self.left_out} too large)"
        return f"{self.over} L1 distance of {every} {self.marginals}-way marginals"

    @property
    def shape(self) -> tuple[int, int]:
        """No cells of a marginal are told, but one answer."""
        return 0, 1

    def sensitivity(self, *, norm: Norm, neighbouring: Neighbouring, max_records: int) -> float:
        """The most by which the distance moves, in records: as far as one marginal does in L1, C or 2C.

        It is one number: in any norm.

        The synthetic table is fixed, so that no distance moves further than its marginal (triangle inequality), and
        neither do their mean and the largest of them.
        """
        return sensitivity(Identity(2), norm="l1", neighbouring=neighbouring, max_records=max_records)

    def to_json(self) -> JsonDict:
        """What is compared and what decides, as JSON values."""
        return {
            "metric": "l1",
            "marginals": self.marginals,
            "of": self.over,
            "compared": len(self.cliques),
            "left_out": self.left_out,
            "at_most": self.at_most,
        }


def compared(facts: Json) -> str:
    """What a score compares, in words, of the part `accept` of its event."""
    return f"{facts['of']} L1 distance of {facts['compared']:,} {facts['marginals']}-way marginals"


def answered_scores(events: Sequence[Json], *, limit: str = ", at most") -> list[tuple[str, str]]:
    """What each score compares that decided about a release, and its noisy figure; they are part of the release."""
    scores = [(e, e["accept"]) for e in events if "accept" in e and e["answered"]]
    return [
        (compared(own), noisy_figure(e["noisy"], e["standard_error"], own["at_most"], limit=limit)) for e, own in scores
    ]


def noisy_figure(score: float, stddev: float, at_most: float | None, *, limit: str = ", at most") -> str:
    """A noisy distance with its standard error, and what it had to be."""
    figure = f"{plain_digits(score)} ± {plain_digits(stddev)} records"
    return figure if at_most is None else f"{figure}{limit} {plain_digits(at_most)}"
