"""An experiment made several times: a seed of its own for each run, means of the scores and their standard errors."""

from __future__ import annotations

import hashlib
import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import replace

from mechanisms.public.files import Json, JsonDict
from pipeline.experiments.gallery.published import Beside

#: Differences of runs below this part of the mean are rounding, not an error.
DUST = 1e-12


def mean_of(values: Iterable[float | None]) -> tuple[float | None, float | None, int]:
    """The mean of what is defined, its standard error, and how many values there are; None where nothing is defined.

    The error is the standard deviation of the values over the square root of their number; None below two values.
    """
    defined = [float(v) for v in values if v is not None]
    if not defined:
        return None, None, 0
    mean = math.fsum(defined) / len(defined)
    if len(defined) == 1:
        return mean, None, 1
    error = statistics.stdev(defined) / math.sqrt(len(defined))
    return mean, 0.0 if error < DUST * abs(mean) else error, len(defined)


def mean_rows(rows: Iterable[Json]) -> tuple[JsonDict, ...]:
    """A row for each table, ε and metric: the mean `score`, its standard `error`, how many `runs`; else as in run 1."""
    groups: dict[tuple[str, float | None, str], list[Json]] = {}
    for row in rows:
        groups.setdefault((row["dataset"], row["epsilon"], row["metric"]), []).append(row)
    means = []
    for group in groups.values():
        mean, error, count = mean_of(row["score"] for row in group)
        means.append({**group[0], "score": mean, "error": error, "runs": count})
    return tuple(means)


def mean_beside(runs: Sequence[Sequence[Beside]]) -> tuple[Beside, ...]:
    """The same numbers of several runs: the mean of ours, with its standard error."""
    groups: dict[str, list[Beside]] = {}
    for numbers in runs:
        for number in numbers:
            groups.setdefault(number.what, []).append(number)
    means = []
    for group in groups.values():
        mean, error, count = mean_of(number.ours for number in group)
        means.append(replace(group[0], ours=mean, error=error, runs=count))
    return tuple(means)


def run_seed(seed: int | None, run: int) -> int | None:
    """The seed of a run; the first one has the seed that was set."""
    return seed if run == 1 else own_seed(seed, f"run {run}")


def own_seed(seed: int | None, name: str) -> int | None:
    """A seed of its own for each name, so that no two share their randomness."""
    if seed is None:
        return None
    return int.from_bytes(hashlib.blake2b(f"{seed}|{name}".encode(), digest_size=6).digest(), "big")
