"""Results on disk, one line of JSON a run; and what they say together: means, regrets, where the aims fail."""

import json
import math
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, variance
from typing import Any, NamedTuple

from tests.bench.grid.methods import AUTO, BASELINE

#: seed → value, of one method in one cell.
Values = Mapping[int, float]
#: (table, ε).
Place = tuple[str, float]
#: What is shown and compared: name → whether low is good.
FIGURES = {"one": True, "two": True, "three": True, "kept": False, "worst": True, "measured": True, "unmeasured": True}


@dataclass(frozen=True)
class Estimate:
    """A number with its standard error; None where one run alone stands behind it."""

    value: float
    error: float | None = None

    def above(self, limit: float) -> bool:
        """Beyond two standard errors."""
        return self.value - 2 * (self.error or 0.0) > limit

    def below(self, limit: float) -> bool:
        """Beyond two standard errors."""
        return self.value + 2 * (self.error or 0.0) < limit


@dataclass(frozen=True)
class Cell:
    """A table at an ε: what every method got, figure → method → seed → value; `drawn` as of the table."""

    drawn: bool
    values: Mapping[str, Mapping[str, Values]]

    def mean(self, figure: str, method: str) -> Estimate | None:
        return mean(self.values[figure].get(method, {}))

    def best(self, figure: str) -> str | None:
        """The method with the best mean.

        Where each seed has its own table, means are compared as ratios to the method with most seeds, on shared seeds.
        """
        by_method = {m: v for m, v in self.values[figure].items() if v}
        if not by_method:
            return None
        yardstick = max(by_method, key=lambda m: len(by_method[m]))
        at = {m: ratio(v, by_method[yardstick], paired=self.drawn) for m, v in by_method.items()}
        sign = 1 if FIGURES[figure] else -1
        there = {m: r.value for m, r in at.items() if r is not None}
        return min(there, key=lambda m: sign * there[m], default=None)

    def against(self, figure: str, method: str, other: str | None) -> Estimate | None:
        """A method's mean over another's; None without both."""
        values = self.values[figure]
        if other is None or method not in values or other not in values:
            return None
        return Estimate(1.0, 0.0) if method == other else ratio(values[method], values[other], paired=self.drawn)

    def regret(self, figure: str, method: str) -> Estimate | None:
        return self.against(figure, method, self.best(figure))


def mean(values: Values) -> Estimate | None:
    if not values:
        return None
    numbers = list(values.values())
    spread = math.sqrt(variance(numbers) / len(numbers)) if len(numbers) > 1 else None
    return Estimate(fmean(numbers), spread)


def ratio(one: Values, other: Values, *, paired: bool) -> Estimate | None:
    """The ratio of two means, its standard error to the first order.

    Args:
        paired: the two are compared on the seeds that they share; else each has all its own.
    """
    if paired:
        shared = sorted(set(one) & set(other))
        one, other = {s: one[s] for s in shared}, {s: other[s] for s in shared}
    above, below = mean(one), mean(other)
    if above is None or below is None or below.value <= 0:
        return None
    quotient = above.value / below.value
    if paired:
        rest = mean({s: one[s] - quotient * other[s] for s in one})
        spread = None if rest is None or rest.error is None else rest.error / below.value
    elif above.error is None or below.error is None:
        spread = None
    else:
        spread = math.hypot(above.error, quotient * below.error) / below.value
    return Estimate(quotient, spread)


def cells(rows: Iterable[Mapping[str, Any]]) -> dict[Place, Cell]:
    """The results that came to their end, cell by cell."""
    values: dict[Place, dict[str, dict[str, dict[int, float]]]] = {}
    drawn: dict[Place, bool] = {}
    for row in rows:
        place = (row["table"], float(row["epsilon"]))
        here = values.setdefault(place, {f: {} for f in FIGURES})
        drawn[place] = bool(row["drawn"])
        for figure in FIGURES:
            if row.get(figure) is not None:
                here[figure].setdefault(row["method"], {})[int(row["seed"])] = float(row[figure])
    return {place: Cell(drawn[place], here) for place, here in values.items()}


def overall(estimates: Iterable[Estimate | None]) -> Estimate | None:
    """The mean of independent estimates; its standard error counts those that have one."""
    there = [e for e in estimates if e is not None]
    if not there:
        return None
    spreads = [e.error for e in there if e.error is not None]
    spread = math.sqrt(sum(s**2 for s in spreads)) / len(there) if spreads else None
    return Estimate(fmean(e.value for e in there), spread)


@dataclass(frozen=True)
class Failure:
    """An aim that a cell fails beyond two standard errors."""

    place: Place
    aim: str
    estimate: Estimate


def failures(found: Mapping[Place, Cell], method: str = AUTO) -> list[Failure]:
    """Where a method misses the aims of the default."""
    missed = []
    for place, cell in sorted(found.items()):
        for figure, title in (("two", "2-way"), ("three", "3-way")):
            regret, base = cell.regret(figure, method), cell.against(figure, method, BASELINE)
            if regret is not None and regret.above(1.10):
                missed.append(Failure(place, f"{title} regret at most 1.10 (best: {cell.best(figure)})", regret))
            if base is not None and base.above(1.02):
                missed.append(Failure(place, f"{title} at most 1.02 × independent", base))
        left = cell.regret("kept", method)
        if left is not None and left.below(0.9):
            missed.append(Failure(place, f"dependence at least 0.9 of the best ({cell.best('kept')})", left))
    return missed


class Run(NamedTuple):
    """One run: a method on a table, at an ε, with the seed of its noise (and of a drawn table)."""

    table: str
    method: str
    epsilon: float
    seed: int


class Results:
    """The file of results. A run that is measured again replaces the older line when the file is read."""

    def __init__(self, path: Path) -> None:
        self.path, self.rows = path, dict[Run, dict[str, Any]]()
        for row in _lines(path):
            self.rows[_key(row)] = row

    def add(self, row: Mapping[str, Any]) -> None:
        """Append one result; on disk when this returns."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
            file.flush()
            os.fsync(file.fileno())
        self.rows[_key(row)] = dict(row)


def _key(row: Mapping[str, Any]) -> Run:
    return Run(row["table"], row["method"], float(row["epsilon"]), int(row["seed"]))


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    """The lines of a file of results; half a line at its end, of an interrupted call, is cut off."""
    if not path.is_file():
        return
    text = path.read_text(encoding="utf-8")
    whole = text[: text.rfind("\n") + 1]
    if whole != text:
        path.write_text(whole, encoding="utf-8")
    for line in whole.splitlines():
        yield json.loads(line)
