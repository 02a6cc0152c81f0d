"""The stages in the order in which the data flows: load, measure through the wall, synthesize, release, score."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import secrets
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from evaluation.score import Scorecard, score_tables
from mechanisms.accounting.ledger import Ledger
from mechanisms.accounting.plan import Plan
from mechanisms.public.codec import encode_table, write_table
from mechanisms.public.draft import draft_schema
from mechanisms.public.engine import Source, open_table
from mechanisms.public.errors import UserError
from mechanisms.public.files import write_whole
from mechanisms.public.release import Measurements, PrivacyStatement, load_measurements
from mechanisms.public.schema import Schema, load_schema
from mechanisms.public.table import CodedTable
from mechanisms.sensitive.measurement import measure
from mechanisms.sensitive.noise import noise_source
from mechanisms.sensitive.table import PrivateTable, fingerprint, load_private
from pipeline import build
from pipeline.config import Config, ScoreConfig, SynthConfig, schema_path
from pipeline.demo import write_demo
from pipeline.folders import RunFolder, bind, claimed, whole_folder
from pipeline.progress import Stages
from pipeline.statement import make_statement
from synthesis.model import synthesize as make_rows

LOG = logging.getLogger("pipeline")


@dataclass(frozen=True, eq=False)
class Run:
    """What a run left.

    Attributes:
        folder: its release and internal folders.
        statement: what was promised and spent.
        measurements: the noisy answers that crossed the wall.
        scores: the scorecard (NOT private), or None where evaluation.enabled=false.
        seconds: wall time of each stage.
    """

    folder: RunFolder
    statement: PrivacyStatement
    measurements: Measurements
    scores: Scorecard | None
    seconds: Mapping[str, float] = field(default_factory=dict)


def run(
    config: Config, root: Path | str, *, hydra_files: Mapping[str, str] | None = None, quiet: bool = False
) -> Run:
    """A table in; a private synthetic table, its privacy statement and its scores out.

    Guarantee: what lies in `release/` is (ε, δ)-differentially private for the unit and the neighbouring relation of
        its privacy.json, unless that file says that it is not private. `internal/` is not private.
    Args:
        config: from `load_config`.
        root: the run's folder.
    Raises:
        UserError: any mistake of the settings, the schema or the table's file; no release is left.
    """
    schema = build.build_schema(config)
    unit = build.build_unit(config)
    workload = build.build_workload(config, schema)
    plan = build.build_plan(config, workload, schema)
    spec = build.build_synthesizer(config.synthesis)
    build.check_memory(config, schema, plan)
    show = Stages(quiet=quiet)
    with claimed(Path(root), resume=config.resume) as folder, logged(folder):
        write_settings(folder, config, hydra_files or {})
        with show.stage("load") as report:
            path = _table(config, folder, report)
            first = bind(folder, _facts(config, schema, path))
            source = _open(path, config, folder.temporary)
            private = load_private(
                source, schema, unit, workdir=folder.temporary, key=bytes.fromhex(first["once"]["key"]), progress=report
            )
            LOG.info("%r; outside the domain: %s", private, private.encoding)
        with show.stage("measure") as report:
            ledger = Ledger.open(folder.ledger, plan)
            noise = noise_source(config.privacy.noise_seed)
            measurements = measure(private, plan, ledger, noise, answers_dir=folder.answers, progress=report)
        with show.stage("synthesize") as report:
            rng = np.random.default_rng(config.synthesis.seed)
            synthetic = make_rows(measurements, spec, rows=config.synthesis.rows, rng=rng, progress=report)
        with show.stage("release") as report:
            statement = make_statement(config, schema, unit, plan, ledger, measurements)
            write_release(folder.release, folder.temporary, config.release.format, schema, statement, measurements,
                          synthetic, rng)
        scores = None
        if config.evaluation.enabled:
            with show.stage("score") as report:
                truth = _truth(private, source, schema, folder)
                scores = score_tables(truth, synthetic, build.build_scores(config.evaluation), progress=report)
                write_whole(folder.scores, json.dumps(scores.to_json(), indent=1, allow_nan=False), mode=0o600)
        LOG.info("seconds: %s", show.seconds)
    done = Run(folder, statement, measurements, scores, dict(show.seconds))
    if not quiet:
        print(where_to_look(done))
    return done


def _table(config: Config, folder: RunFolder, report: Any) -> Path:
    """The table to read; the demo's is generated first, under internal/."""
    if config.data.name != "demo" or config.data.path:
        return build.data_path(config)
    path = folder.temporary / "demo.parquet"
    write_demo(path, rows=config.data.rows or 0, seed=config.data.seed, progress=report)
    return path


def _open(path: Path, config: Config | ScoreConfig, workdir: Path) -> Source:
    delimiter = config.data.delimiter if isinstance(config, Config) else config.delimiter
    return open_table(
        path,
        delimiter=delimiter,
        workdir=workdir,
        memory_limit_bytes=build.memory_limit_bytes(config.limits.memory_gb) // 2,
        threads=build.threads(config.limits.threads),
    )


def _facts(config: Config, schema: Schema, path: Path) -> dict[str, Any]:
    """What a resumed run must share with its beginning: settings, schema and data."""
    settings = asdict(config)
    for free in ("resume", "limits", "plan"):
        del settings[free]
    seed = config.privacy.noise_seed
    key = secrets.token_bytes(32) if seed is None else hashlib.blake2b(f"clip:{seed}".encode()).digest()[:32]
    return {
        "settings": settings,
        "schema": hashlib.blake2b(schema.to_yaml().encode(), digest_size=16).hexdigest(),
        "data": fingerprint(path),
        "once": {"key": key.hex()},
    }


def _truth(private: PrivateTable, source: Source, schema: Schema, folder: RunFolder) -> CodedTable:
    """All rows of the table, unclipped: what the scores compare with."""
    if private.complete:
        return CodedTable(private.coded.domain, private.coded.columns)
    return encode_table(source, schema, workdir=folder.temporary / "truth")


def write_release(target: Path, run: Mapping[str, Any], *, form: str, workdir: Path, report: Any = None) -> Path:
    """The release folder, whole or not at all; returns the path of the synthetic table.

    Args:
        target: the folder `release/`.
        run: schema, statement, measurements, synthetic (CodedTable) and rng.
        form: csv or parquet.
        workdir: a folder on the same file system for the parts.
    """
    form = build.one_of(form, ("csv", "parquet"), "release.format")
    schema: Schema = run["schema"]
    with whole_folder(target, workdir) as parts:
        write_table(parts / f"synthetic.{form}", run["synthetic"], schema, run["rng"], progress=report)
        run["measurements"].save(parts / "measurements")
        write_whole(parts / "schema.yaml", schema.to_yaml())
        write_whole(parts / "privacy.json", json.dumps(run["statement"].to_json(), indent=1, allow_nan=False) + "\n")
    return target / f"synthetic.{form}"
