"""The official scorers of the 2020-21 challenge against a row-by-row transcription of their definitions, in one run."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from evaluation.papers.challenges.kmarginal import PLACE, TIME
from evaluation.papers.challenges.range_query import pie_chart_counts
from tests.bench.clock import timed
from tests.evaluation import transcribed
from tests.evaluation.contest_frames import SURVEY_EDGES, TO, TRIP_EDGES, UNIT, sprint2_table, sprint3_table

CODES = 22


def _against(
    name: str, rows: int, columns: int, work: Callable[[], float], plain: Callable[[], float]
) -> dict[str, Any]:
    """Ours and the transcription, with equal results; ours once before, to compile."""
    assert abs(work() - plain()) < 1e-9
    ours, theirs = timed(work, repeats=3), timed(plain)
    times = theirs["cpu_seconds"] / ours["cpu_seconds"]
    said = f"aim: 10 times; row by row {theirs['cpu_seconds']:.3g} s of processor time, {times:.3g} times ours"
    return {"name": f"official scorer, {name}", "rows": rows, "columns": columns, **ours, "reference": said}


def sprint1() -> dict[str, Any]:
    """A map of 12 months and 278 neighbourhoods with 174 types, at one ε."""
    rng = np.random.default_rng(0)
    rate = np.multiply.outer(rng.pareto(1.2, 12 * 278) + 0.01, rng.pareto(0.8, 174) + 0.001)
    truth, made = (rng.poisson(rate / rate.sum() * 287_000) for _ in range(2))
    works = (lambda: float(pie_chart_counts(truth, made).score or 0), lambda: transcribed.sprint1(truth, made))
    return _against("sprint 1", len(truth), 174, *works)


def _survey(rows: int, seed: int) -> pd.DataFrame:
    """20 places in 3 years; 22 columns of codes and the 11 of numbers."""
    rng = np.random.default_rng(seed)
    numbers = {n: rng.integers(-10, int(e[-1]) + 10, rows) for n, e in SURVEY_EDGES.items()}
    frame = pd.DataFrame(numbers | {f"CODE{i:02}": rng.integers(0, 9, rows) for i in range(CODES)})
    places = np.array([f"17-{i:05}" for i in range(20)])
    return frame.assign(PUMA=places[rng.integers(0, 20, rows)], YEAR=rng.integers(2012, 2015, rows))


def sprint2() -> dict[str, Any]:
    truth, made = (_survey(10_000, seed) for seed in range(2))
    works = (lambda: sprint2_table(truth, made).score or 0.0, lambda: transcribed.sprint2_table(truth, made))
    return _against("sprint 2", 20_000, truth.shape[1], *works)


def _trips(rows: int, seed: int) -> pd.DataFrame:
    """Trips of 500 taxis that show all shifts and areas."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({n: rng.integers(-1, int(e[-1]), rows) for n, e in TRIP_EDGES.items()})
    frame = frame.assign(company_id=rng.integers(0, 60, rows), payment_type=rng.integers(-1, 7, rows))
    places = {TO: rng.integers(-1, 77, rows), PLACE: rng.integers(-1, 77, rows), TIME: rng.integers(0, 21, rows)}
    return frame.assign(**places, **{UNIT: rng.integers(0, 500, rows)})


def sprint3() -> dict[str, Any]:
    truth, made = (_trips(20_000, seed) for seed in range(2))

    def plain() -> float:
        return 1000 * sum(transcribed.sprint3_table(truth, made)) / 3

    return _against("sprint 3", 40_000, truth.shape[1], lambda: sprint3_table(truth, made).score or 0.0, plain)


CASES = {scorer.__name__: scorer for scorer in (sprint1, sprint2, sprint3)}
