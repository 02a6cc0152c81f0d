"""One to a hundred million rows of 35 columns: encoded, all 595 pairs counted, and a whole run, on each engine.

Wall time, processor time and memory are those of all processes: of Spark also Java and its workers. Wall times mean
something where nothing else runs: each figure names the load that was there before it.

    python -m tests.bench bench_scale.duckdb_20_million_counts bench_scale.spark_local_2_20_million_counts
    python -m tests.bench bench_scale.two_cores_20_million
"""

import hashlib
import itertools
import json
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

from mechanisms.public.coded_table import BATCH_CELLS
from mechanisms.public.tables.scan import open_table
from mechanisms.sensitive.contribution import PrivacyUnit
from mechanisms.sensitive.engines.engines import opened_engine
from mechanisms.sensitive.exact_answers import exact_marginals
from mechanisms.sensitive.private_table import load_private
from pipeline.cli import main
from pipeline.settings.config import MethodConfig
from pipeline.settings.methods import engine_of
from tests.bench.processes import Watch
from tests.bench.wide_table import wide_facts, wide_schema, write_wide

ENGINES = {
    "duckdb": MethodConfig("duckdb"),
    "spark_local_1": MethodConfig("spark", {"master": "local[1]"}),
    "spark_local_2": MethodConfig("spark", {"master": "local[2]"}),
}
KEPT = Path("build/bench")
LIMIT = 4_000_000_000


def wide_file(millions: int) -> Path:
    """The generated table, kept for the next case."""
    KEPT.mkdir(parents=True, exist_ok=True)
    path = KEPT / f"wide-{millions}.parquet"
    if not path.exists():
        part = path.with_suffix(".part")
        write_wide(part, rows=millions * 1_000_000)
        part.replace(path)
    return path


def counts(engine: str, millions: int) -> dict[str, Any]:
    """Encoded once, and all pairs counted in one question."""
    schema = wide_schema()
    table = wide_file(millions)
    pairs = list(itertools.combinations(schema.domain.names, 2))
    threads = 1 if engine == "spark_local_1" else 2
    with tempfile.TemporaryDirectory() as name, Watch() as watch:
        work, laps = Path(name), [time.perf_counter()]
        with opened_engine(engine_of(ENGINES[engine]), work) as reader:
            laps.append(time.perf_counter())
            source = open_table(table, workdir=work, memory_limit_bytes=LIMIT, threads=threads)
            private = load_private(source, schema, PrivacyUnit(), workdir=work, key=b"k" * 32, engine=reader)
            laps.append(time.perf_counter())
            cells = sum(len(c) for c in exact_marginals(private.coded, pairs, batch_cells=BATCH_CELLS))
            laps.append(time.perf_counter())
            watch.end()
    steps = zip(("start", "load", "pairs"), itertools.pairwise(laps), strict=True)
    said = ", ".join(f"{step} {end - begin:.0f} s" for step, (begin, end) in steps)
    return _row(f"{engine}: load, 595 pairs", millions, watch, cells, said)


def whole_run(engine: str, millions: int) -> dict[str, Any]:
    """The default run to a release of 100,000 rows, without scores. Equal digests are equal releases."""
    kind, options = ENGINES[engine].kind, ENGINES[engine].options
    table = wide_file(millions).resolve()
    with tempfile.TemporaryDirectory() as name, Watch() as watch:
        schema = Path(name) / "wide.yaml"
        schema.write_text(json.dumps(wide_facts()), encoding="utf-8")
        given = ["data=table", f"data.path={table}", f"data.schema={schema}", f"hydra.run.dir={name}/out", "seed=1"]
        asked = ["synthesis.rows=100000", "evaluation.enabled=false", f"engine={kind}"]
        asked += [f"engine.{key}={value}" for key, value in options.items()]
        if main(["run", *given, *asked]) != 0:
            raise RuntimeError("the run failed")
        watch.end()
        digest = hashlib.blake2b(digest_size=8)
        for path in sorted(p for p in Path(name, "out/release").rglob("*") if p.is_file()):
            digest.update(path.name.encode() + path.read_bytes())
        said = _stages(Path(name) / "out")
    return _row(f"{engine}: run", millions, watch, 0, f"release {digest.hexdigest()}; {said}")


def _stages(folder: Path) -> str:
    log = (folder / "internal/run.log").read_text(encoding="utf-8")
    return log.rpartition("seconds per stage: ")[2].strip().splitlines()[0]


def demo_run(millions: int) -> dict[str, Any]:
    """Generated calls, the caller as the unit, to a release of 100,000 rows without scores, generation and all."""
    with tempfile.TemporaryDirectory() as name, Watch() as watch:
        given = [f"data.rows={millions * 1_000_000}", f"hydra.run.dir={name}/out", "synthesis.rows=100000"]
        if main(["run", "data=demo", *given, "evaluation.enabled=false"]) != 0:
            raise RuntimeError("the run failed")
        watch.end()
        said = _stages(Path(name) / "out")
    return {**_row("duckdb: run of the demo", millions, watch, 0, said), "columns": 11}


def two_cores(millions: int) -> dict[str, Any]:
    """How much faster two cores encode and count than one, each in a process of its own."""
    rows = []
    for engine in ("spark_local_1", "spark_local_2"):
        asked = f"json.dumps(bench.counts({engine!r}, {millions}))"
        work = f"import json; import tests.bench.bench_scale as bench; print({asked})"
        done = subprocess.run([sys.executable, "-c", work], stdout=subprocess.PIPE, text=True, check=True)
        rows.append(json.loads(done.stdout.splitlines()[-1]))
    one, two = (row["seconds"] for row in rows)
    faster = f"{one / two:.2f} times as fast; aim: 1.7; {rows[1]['reference']}"
    said = f"local[1] {one:.0f} s, local[2] {two:.0f} s: {faster}"
    return {**rows[1], "name": f"spark: two cores against one, {millions} million", "reference": said}


def _row(name: str, millions: int, watch: Watch, cells: int, said: str) -> dict[str, Any]:
    facts = {"name": f"{name}, {millions} million", "rows": millions * 1_000_000, "columns": 35, "cells": cells}
    spent = {"seconds": watch.seconds, "cpu_seconds": watch.cpu_seconds, "peak_mb": round(watch.peak_bytes / 1e6)}
    held = ", ".join(f"{kind} {size / 1e6:,.0f} MB" for kind, size in watch.peaks.items() if size)
    return {**facts, **spent, "reference": f"load {watch.load:.0f}; {held}; {said}"}


CASES = {
    f"{engine}_{millions}_million_{work.__name__}": partial(work, engine, millions)
    for millions in (1, 5, 20, 100)
    for engine in ENGINES
    for work in (counts, whole_run)
} | {f"two_cores_{millions}_million": partial(two_cores, millions) for millions in (5, 20, 100)}
CASES |= {f"demo_{millions}_million_run": partial(demo_run, millions) for millions in (10, 1000)}
