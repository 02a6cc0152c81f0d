"""The runs of a grid in a few processes that live as long as it does."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.bench.grid.cell import measured
from tests.bench.grid.methods import METHODS
from tests.bench.grid.peer_runs import peer_measured
from tests.bench.grid.results import Run
from tests.bench.grid.tables import grid_table

THREADS = ("NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")


@dataclass(frozen=True)
class Terms:
    """What holds for every run.

    Attributes:
        data: the folder of the real tables.
        root: the grid's own folder.
        peers: the folder of the peers' environments.
        seconds: after which a run is stopped: processor time of ours, wall time of a peer.
    """

    data: Path | None
    root: Path
    peers: Path
    seconds: float


def result(run: Run, terms: Terms) -> dict[str, Any]:
    """One run measured; whatever goes wrong is in the result."""
    method = next(m for m in METHODS if m.name == run.method)
    table = grid_table(run.table, run.seed, terms.data, terms.root / "tables")
    if method.peer:
        row = peer_measured(run.method, table, run.epsilon, seconds=terms.seconds, root=terms.peers)
    else:
        row = measured(method, table, run.epsilon, run.seed, seconds=terms.seconds)
    return {**run._asdict(), "drawn": table.drawn, **row}


def results(runs: Iterable[Run], terms: Terms, workers: int) -> Iterator[dict[str, Any]]:
    """The results as they come, each process with its share of the cores, and nicer than others on the machine."""
    cores = str(max(1, len(os.sched_getaffinity(0)) // workers))
    os.environ |= dict.fromkeys(THREADS, cores)  # read by each process when it starts
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=context, initializer=os.nice, initargs=(5,)) as pool:
        try:
            for done in as_completed([pool.submit(result, run, terms) for run in runs]):
                yield done.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
