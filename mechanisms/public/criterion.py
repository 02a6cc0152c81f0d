"""What a release must fulfil to be accepted: public facts alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from mechanisms.public.domain import Clique
from mechanisms.public.files import Json, JsonDict
from mechanisms.public.queries.query_matrices import Identity, sensitivity
from mechanisms.public.units import Neighbouring, Norm, plain_digits

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
