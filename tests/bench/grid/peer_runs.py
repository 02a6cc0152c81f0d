"""A peer on a table of the grid: in its own environment and process, as in `tests.bench.peers`."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from tests.bench.grid.cell import Made, judged
from tests.bench.grid.coded import GridTable, coded_table
from tests.bench.peers.catalogue import PEERS
from tests.bench.peers.drivers import exchange
from tests.bench.peers.environments import InstallationFailed, environment
from tests.bench.peers.limits import Limits, run_limited
from tests.bench.peers.measure import DRIVERS

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
        wanted = {"method": peer.method, "epsilon": epsilon, "delta": table.delta, "files": files}
        (folder / "request.json").write_text(json.dumps(wanted), encoding="utf-8")
        try:
            python = environment(peer.environment, root).absolute()
        except InstallationFailed as error:
            return {"failed": f"not installed: {error}"}
        command = [str(python), str(DRIVERS / f"{peer.driver}.py"), str(folder / "request.json")]
        spent = run_limited(command, Limits(seconds, MEGABYTES), log=folder / "log.txt")
        used = {"seconds": spent.seconds, "cpu": spent.cpu_seconds, "peak_mb": round(spent.peak_mb)}
        if spent.stopped:
            return {"failed": f"stopped by the limit of {spent.stopped}", **used}
        if spent.code:
            said = (folder / "log.txt").read_text(encoding="utf-8", errors="replace").strip().splitlines()
            return {"failed": said[-1] if said else f"exit code {spent.code}", **used}
        columns = exchange.read_codes(files["output"])
        made = coded_table({n: np.clip(columns[n], 0, s - 1) for n, s in sizes.items()}, sizes)
    return {**judged(table, Made(made, ())), **used, "measured": None, "unmeasured": None, "covered": None}
