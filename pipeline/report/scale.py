"""From values to places on a chart: scales, and axes with their ticks."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

#: So many ticks at most.
TICKS = 6


@dataclass(frozen=True)
class Scale:
    """A monotone map of [low, high] onto the places from `start` to `end`; what lies outside goes to the nearer end.

    Attributes:
        low, high: values; both above 0 where the scale is logarithmic.
        start, end: their places, in pixels or as strengths of a colour.
    """

    low: float
    high: float
    start: float
    end: float
    logarithmic: bool = False

    def at(self, value: float) -> float:
        """The place of a value."""
        if self.logarithmic:
            if value <= 0:
                return self.start
            share = math.log(value / self.low) / (math.log(self.high / self.low) or 1.0)
        else:
            share = (value - self.low) / ((self.high - self.low) or 1.0)
        return self.start + min(max(share, 0.0), 1.0) * (self.end - self.start)


@dataclass(frozen=True)
class ChartAxis:
    """The range of a chart in one direction, and what is written along it.

    Attributes:
        ticks: (value, name).
    """

    low: float
    high: float
    ticks: tuple[tuple[float, str], ...]
    title: str = ""
    logarithmic: bool = False

    def scale(self, start: float, end: float) -> Scale:
        """The axis between two places."""
        return Scale(self.low, self.high, start, end, self.logarithmic)

    @classmethod
    def linear(cls, values: Iterable[float], title: str = "", *, ground: bool = True) -> ChartAxis:
        """Round numbers that hold all values, from 0 on where `ground` is set and no value is below it."""
        finite = list(values) or [0.0]
        low, high = min(finite), max(finite)
        low = min(low, 0.0) if ground else low
        high = high if high > low else low + (abs(low) or 1.0)
        step = _round_step((high - low) / (TICKS - 2))
        first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
        ticks = tuple((i * step, f"{i * step:.6g}") for i in range(first, last + 1))
        return cls(first * step, last * step, ticks, title)

    @classmethod
    def named(cls, names: Sequence[str]) -> ChartAxis:
        """Places by number, about six of which get their name: of a range its beginning."""
        every = max(1, math.ceil(len(names) / TICKS))
        ticks = tuple((float(i), names[i].split(" to ")[0]) for i in range(0, len(names), every))
        return cls(0.0, max(len(names) - 1.0, 1.0), ticks)

    @classmethod
    def logarithmic_over(cls, values: Iterable[float], title: str = "", *, ticks: Sequence[float] = ()) -> ChartAxis:
        """As tight around values above 0 as a margin allows, with ticks at round values.

        Args:
            ticks: the values that get one, in place of these.
        """
        positive = [v for v in (*values, *ticks) if v > 0] or [1.0]
        margin = max((max(positive) / min(positive)) ** 0.06, 1.05 if ticks else 1.12)
        low, high = min(positive) / margin, max(positive) * margin
        ticks = ticks or _round_between(low, high)
        every = max(1, math.ceil(len(ticks) / (TICKS + 2)))
        return cls(low, high, tuple((v, f"{v:.6g}") for v in ticks[::every]), title, logarithmic=True)


def _round_step(least: float) -> float:
    """The smallest of 1, 2 and 5 times a power of ten that is no smaller than `least`."""
    power = 10.0 ** math.floor(math.log10(least))
    return next(m * power for m in (1, 2, 5, 10) if m * power >= least * (1 - 1e-9))


def _round_between(low: float, high: float) -> list[float]:
    """Powers of ten, or 1, 2 and 5 times these, or multiples of a step: the first of which at least two lie inside."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    inside = [v for v in (m * 10.0**p for p in powers for m in (1, 2, 5)) if low <= v <= high]
    tens = inside if len(inside) <= TICKS else [10.0**p for p in powers if low <= 10.0**p <= high]
    if len(inside) > 2:
        return tens if len(tens) > 1 else inside
    step = _round_step((high - low) / (TICKS - 2))
    return [i * step for i in range(math.ceil(low / step), math.floor(high / step) + 1)]


def short(text: str, length: int = 18) -> str:
    """The text, cut to so many characters."""
    return text if len(text) <= length else text[: length - 1] + "…"
