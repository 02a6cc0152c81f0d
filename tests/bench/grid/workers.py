"""The runs of a grid in a few processes that live as long as it does; a peer's in its own environment."""

import json
import multiprocessing
import os
import tempfile
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from pipeline.cli import ONE_THREAD
from tests.bench.grid.cell import Made, judged, measured
from tests.bench.grid.coded import GridTable, coded_table
from tests.bench.grid.methods import METHODS
from tests.bench.grid.regrets import Run
from tests.bench.grid.tables import grid_table
from tests.bench.peers.catalogue import PEERS
from tests.bench.peers.drivers import exchange
from tests.bench.peers.measure import InstallationFailed, Limits, driven, last_words, run_limited

THREADS = ("NUMBA_NUM_THREADS", "OMP_NUM_THREADS")


@dataclass(frozen=True)
class Terms:
    """What holds for every run.

    Attributes:
        data, root, peers: the folders of the real tables, of the grid, and of the peers' environments.
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
    os.environ |= dict.fromkeys(THREADS, cores) | dict([ONE_THREAD])  # as commands; read by processes that start
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=context, initializer=os.nice, initargs=(5,)) as pool:
        try:
            for done in as_completed([pool.submit(result, run, terms) for run in runs]):
                yield done.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


#: Megabytes after which a peer is stopped.
MEGABYTES = 16_000


def peer_measured(name: str, table: GridTable, epsilon: float, *, seconds: float, root: Path) -> dict[str, Any]:
    """One result of a peer, in the form of ours; its time holds its start and imports.

    Args:
        root: of the peers' environments.
    """
    peer = next(p for p in PEERS if p.name == name)
    sizes = {a.name: a.size for a in table.coded.domain.attributes}
    with tempfile.TemporaryDirectory() as work:
        folder = Path(work)
        files = {role: str(folder / f"{role}.csv") for role in ("real", "output")}
        files["domain"] = str(folder / "domain.json")
        frame = pd.DataFrame(dict(zip(sizes, table.coded.columns, strict=True)))
        frame.to_csv(files["real"], index=False)
        Path(files["domain"]).write_text(json.dumps(sizes), encoding="utf-8")
        try:
            command = driven(peer, root, folder, epsilon=epsilon, delta=table.delta, files=files)
        except InstallationFailed as error:
            return {"failed": f"not installed: {error}"}
        spent = run_limited(command, Limits(seconds, MEGABYTES), log=folder / "log.txt")
        used = {"seconds": spent.seconds, "cpu": spent.cpu_seconds, "peak_mb": round(spent.peak_mb)}
        if spent.stopped:
            return {"failed": f"stopped by the limit of {spent.stopped}", **used}
        if spent.code:
            return {"failed": last_words(folder / "log.txt", spent.code), **used}
        columns = exchange.read_codes(files["output"])
        made = coded_table({n: np.clip(columns[n], 0, s - 1) for n, s in sizes.items()}, sizes)
    return {**judged(table, Made(made, ())), **used, "measured": None, "unmeasured": None, "covered": None}
