"""How a score reads: its interval, a line of plain words, and a label against what an honest table would score."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from mechanisms.public.files import JsonDict

#: good: as a second sample of the same people, or nearly. weak: nearer to independent columns. worse than unrelated
#: columns: beyond these. suspicious: better than a second sample can be. Empty: nothing to compare with.
Label = Literal["good", "fair", "weak", "worse than unrelated columns", "suspicious", ""]

#: A score is good up to this share of the way from an honest table's to that of independent columns, and then fair.
LIMITS = (0.2, 0.5)
#: So many standard deviations may lie between two honest scores; beyond the second number a score is too good.
NEAR, BEYOND = 2.0, 4.0
#: What most scores are read against, and the share of the way to them beyond which a score is worse.
INDEPENDENT, WORSE = "independent columns", 1.05
#: 95 % of a normal distribution lie within so many standard deviations.
Z = 1.959964


@dataclass(frozen=True)
class Ends:
    """What a metric's result tells about its score, besides the score.

    Attributes:
        honest: what a second sample of the same people, as large as the synthetic table, would score; None if unknown.
        spread: the standard deviation of that score; None if unknown.
        poor: what a table scores that keeps nothing of what is measured: independent columns, or guessing.
        low, high: 95 % interval of the score; None if there is none.
        limits: the label is good, then fair up to these shares of the way from `honest` to `poor`.
        honest_is, poor_is, interval_is: where the figures come from.
    """

    honest: float | None = None
    spread: float | None = None
    poor: float | None = None
    low: float | None = None
    high: float | None = None
    limits: tuple[float, float] = LIMITS
    honest_is: str = "a second sample of the same people"
    poor_is: str = INDEPENDENT
    interval_is: str = "95 %"


def ends_around(score: float, moved: float, honest: tuple[float, float], poor: float, most: float = 1.0) -> Ends:
    """Of a mean, whose standard deviation is `moved` had other rows been drawn; `honest` is a mean and its spread."""
    low, high = max(score - Z * moved, 0.0), min(score + Z * moved, most)
    return Ends(*honest, poor, low, high, interval_is="95 %, had other rows been drawn for both tables")


def mean_ends(parts: Sequence[Ends]) -> Ends:
    """Of a mean of scores; they move together, so that no spread is less than the mean of theirs."""

    def mean(name: str) -> float | None:
        values = [getattr(p, name) for p in parts]
        return math.fsum(values) / len(values) if values and None not in values else None

    if not parts:
        return Ends()
    by, poor_is = parts[0].interval_is, parts[-1].poor_is
    middle, end = (mean("honest"), mean("spread")), (mean("low"), mean("high"))
    return Ends(*middle, mean("poor"), *end, interval_is=by, poor_is=poor_is)


@dataclass(frozen=True)
class Reading:
    """A score in words, beside its own references.

    Attributes:
        label: as of Label; empty where nothing is known to compare with.
        words: one line: what the number says, and what it stands between.
        ends: the references and the interval.
        share: of the way from the honest score (0) to the poor one (1); below 0 where it is better; None if unknown.
    """

    label: Label
    words: str
    ends: Ends
    share: float | None = None

    def to_json(self) -> JsonDict:
        """JSON values: label, words, share, interval, and both references with where they come from."""
        e = self.ends
        interval = None if e.low is None else {"low": e.low, "high": e.high, "note": e.interval_is}
        honest = None if e.honest is None else {"value": e.honest, "spread": e.spread, "note": e.honest_is}
        poor = None if e.poor is None else {"value": e.poor, "note": e.poor_is}
        out = {"label": self.label, "words": self.words, "share": self.share}
        return out | {"interval": interval, "honest": honest, "poor": poor}


def reading(score: float, ends: Ends, says: str, *, low_is_good: bool, private: bool = False) -> Reading:
    """The reading of a score.

    Args:
        says: what the number says, in plain words.
        private: whether a statement says that the synthetic table is a private release: it was measured with noise,
            and may follow its rows more closely than a second sample would.
    """
    share = _share(score, ends)
    label = _label(score, ends, share, low_is_good=low_is_good)
    parts = [f"{ends.honest_is}: {figure(ends.honest)}"] if ends.honest is not None else []
    parts += [f"{ends.poor_is}: {figure(ends.poor)}"] if ends.poor is not None else []
    words = says + (f" ({'; '.join(parts)})" if parts else "")
    if label == "suspicious" and private:
        return Reading("good", f"{words}; closer than a second sample: what was measured allows that", ends, share)
    if label == "suspicious":
        words += "; better than an honest table can be: does it repeat its training rows?"
    return Reading(label, words, ends, share)


def figure(score: float | None) -> str:
    """A score in few digits; a dash for none."""
    if score is None:
        return "-"
    return f"{score:,.0f}" if abs(score) >= 1000 else f"{score:.4f}"


def _share(score: float, ends: Ends) -> float | None:
    if ends.honest is None or ends.poor is None or ends.honest == ends.poor:
        return None
    return (score - ends.honest) / (ends.poor - ends.honest)


def _label(score: float, ends: Ends, share: float | None, *, low_is_good: bool) -> Label:
    if ends.honest is None:
        return ""
    worse = (score - ends.honest) * (1 if low_is_good else -1)
    if ends.spread is not None and worse < -max(BEYOND * ends.spread, 1e-12):
        return "suspicious"
    reaches = ends.low is not None and ends.high is not None and ends.low <= ends.honest <= ends.high
    if worse <= NEAR * (ends.spread or 0.0) or (reaches and (share is None or share <= ends.limits[1])):
        return "good"
    span = 0.0 if ends.poor is None else (ends.poor - ends.honest) * (1 if low_is_good else -1)
    if share is None or span <= 0:  # so few rows that nothing could be told from independent columns
        return ""
    if ends.poor_is == INDEPENDENT and share > WORSE and worse - span > NEAR * (ends.spread or 0.0):
        return "worse than unrelated columns"
    return "good" if share <= ends.limits[0] else "fair" if share <= ends.limits[1] else "weak"
