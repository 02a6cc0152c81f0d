"""What a run may say about the runs before it: the total that its shared ledger held when it booked."""

from __future__ import annotations

import math
from dataclasses import dataclass

from mechanisms.accounting.accountants.registered import accountant_class
from mechanisms.accounting.bookings import Book
from mechanisms.accounting.filters import Limit, Totals
from mechanisms.public.files import JsonDict
from mechanisms.public.units import bound_in_words, rounded_up

#: An accountant's total was rounded up: beyond its limit by no more than this factor, it is at the limit.
ROUNDED = 1 + 1e-6


@dataclass(frozen=True)
class RunningTotal:
    """The total right after a run's booking; it follows from settings alone, so that it may be published.

    Guarantee: as long as no larger limit is set, all booked runs together are (ε, δ)-DP with the ε and δ of the largest
        limit so far, but for those that are not private.

    Attributes:
        table: the declared name of the table; which file a run read, no ledger knows.
        accountant: of the ledger; slack: the part of the limit's δ that it keeps for runs known by (ε, δ) alone.
        runs: how many are booked, this one included; not_private: of these, how many say that they are not private.
        others: how many rest on parts of plugins.
        totals: by both filters.
        limit: what all runs together may cost; for one booking, the largest limit until then.
    """

    table: str
    accountant: str
    slack: float
    runs: int
    not_private: int
    totals: Totals
    limit: Limit
    others: int = 0

    @property
    def sentence(self) -> str:
        """The total in words."""
        booked, limit = bound_in_words(self.totals.epsilon, self.totals.delta), self.limit
        runs = "1 run, the first in this ledger" if self.runs == 1 else f"{self.runs} runs that named this ledger"
        words = f"{runs} (declared table: {self.table!r}), booked {booked} in all by plain sums"
        if accountant_class(self.accountant).currency is not None and math.isfinite(self.totals.composed):
            composed = f"ε = {rounded_up(self.totals.composed, 6)} at δ = {rounded_up(self.delta_composed, 3)}"
            words += f", {composed} by {self.accountant}"
        most = bound_in_words(limit.epsilon, limit.delta)
        within = f"all runs stay within {most} unless that limit is raised"
        words += f"; {within}" if self.fits else f"; that is beyond the limit of today, {most}, which was lowered"
        if self.not_private:
            words += f"; {self.not_private} of them not private: for these no total holds"
        if self.others:
            words += f"; {self.others} of them rest on parts of plugins, and are as right as these"
        return words

    @property
    def fits(self) -> bool:
        """Whether one of the filters keeps to the limit: not, where that was lowered below what is booked."""
        totals, limit = self.totals, self.limit
        plain = totals.epsilon if totals.delta <= limit.delta else math.inf
        return min(plain, totals.composed / ROUNDED) <= limit.epsilon

    @property
    def delta_composed(self) -> float:
        """The δ of the accountant's total."""
        return (0.5 - self.slack) * self.limit.delta

    def to_json(self) -> JsonDict:
        """The fields of `running_total` in privacy.json."""
        return {
            "sentence": self.sentence,
            "table": self.table,
            "accountant": self.accountant,
            "slack": self.slack,
            "runs": self.runs,
            "not_private": self.not_private,
            **({"not_ours": self.others} if self.others else {}),
            **self.totals.to_json(),
            "delta_composed": self.delta_composed,
            "limit": self.limit.to_json(),
        }


def running_total(book: Book, name: str | None = None) -> RunningTotal:
    """The total of a book as it stands; or, to be published, right after the booking of that id.

    A limit that was lowered since (below what was booked, or because of what was released) bounds nothing that went
    before it: a release names the largest one.
    """
    seen = book if name is None else book.until(name)
    limit = seen.limit if name is None else seen.largest
    lost = sum(not b.private for b in seen.bookings)
    others = sum(b.others for b in seen.bookings)
    kind, slack, runs = seen.filter.kind, seen.filter.slack, len(seen.bookings)
    totals = seen.filter.totals(seen.spends, limit)
    return RunningTotal(seen.scope.table, kind, slack, runs, lost, totals, limit, others)
