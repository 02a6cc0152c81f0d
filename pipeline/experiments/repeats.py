"""An experiment made several times: a seed of its own for each run, means of the scores and their standard errors."""

from __future__ import annotations

import hashlib
import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from mechanisms.public.json_values import Json, JsonDict
from pipeline.experiments.gallery.published import Beside

#: Differences of runs below this part of the mean are rounding, not an error.
DUST = 1e-12


@dataclass(frozen=True)
class Mean:
    """One score over runs.

    Attributes:
        value: the mean of the runs that have one; None where none has.
        error: its standard error; None below two values.
        runs: how many runs have a value.
    """

    value: float | None
    error: float | None
    runs: int


def mean_of(values: Iterable[float | None]) -> Mean:
    """The mean of what is defined, and the standard deviation of the values over the square root of their number."""
    defined = [float(v) for v in values if v is not None]
    if not defined:
        return Mean(None, None, 0)
    mean = math.fsum(defined) / len(defined)
    if len(defined) == 1:
        return Mean(mean, None, 1)
    error = statistics.stdev(defined) / math.sqrt(len(defined))
    return Mean(mean, 0.0 if error < DUST * abs(mean) else error, len(defined))


def mean_rows(rows: Iterable[Json]) -> tuple[JsonDict, ...]:
    """A row for each table, ε and metric: the mean `score`, its standard `error`, how many `runs`; else as in run 1."""
    groups: dict[tuple[str, float | None, str], list[Json]] = {}
    for row in rows:
        groups.setdefault((row["dataset"], row["epsilon"], row["metric"]), []).append(row)
    means = []
    for group in groups.values():
        mean = mean_of(row["score"] for row in group)
        means.append({**group[0], "score": mean.value, "error": mean.error, "runs": mean.runs})
    return tuple(means)


def mean_beside(runs: Sequence[Sequence[Beside]]) -> tuple[Beside, ...]:
    """The same numbers of several runs: the mean of ours, with its standard error."""
    groups: dict[str, list[Beside]] = {}
    for numbers in runs:
        for number in numbers:
            groups.setdefault(number.what, []).append(number)
    means = []
    for group in groups.values():
        mean = mean_of(number.ours for number in group)
        means.append(replace(group[0], ours=mean.value, error=mean.error, runs=mean.runs))
    return tuple(means)


def run_seed(seed: int | None, run: int) -> int | None:
    """The seed of a run; the first one has the seed that was set."""
    return seed if run == 1 else own_seed(seed, f"run {run}")


def own_seed(seed: int | None, name: str) -> int | None:
    """A seed of its own for each name, so that no two share their randomness."""
    if seed is None:
        return None
    return int.from_bytes(hashlib.blake2b(f"{seed}|{name}".encode(), digest_size=6).digest(), "big")
