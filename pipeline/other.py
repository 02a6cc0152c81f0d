"""What needs no private run: new rows from a release, scores of any two tables, a draft of a schema."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from evaluation.score import Scorecard, score_tables
from mechanisms.public.cluster import cluster_from_settings
from mechanisms.public.codec import encode_columns
from mechanisms.public.draft import draft_schema
from mechanisms.public.engine import Source, open_table
from mechanisms.public.engineering import undo
from mechanisms.public.errors import UserError
from mechanisms.public.schema import Schema, load_schema
from mechanisms.public.table import CodedTable
from pipeline import build
from pipeline.config import LimitsConfig, ScoreConfig, SynthConfig, schema_path
from pipeline.folders import RunFolder, not_in_release
from pipeline.progress import Stages, misfits
from pipeline.release import read_release, write_release
from synthesis.model import synthesize as synthetic_rows


def synthesize(release: Path, config: SynthConfig, root: Path, *, quiet: bool = False) -> Path:
    """A new synthetic table from a release; returns the path of the table in `root`/release.

    Guarantee: post-processing of the release: no new privacy cost; its privacy.json is passed on as it is.
    Raises:
        UserError: no release there; the folder holds a release already; an impossible setting.
    """
    schema, statement, measurements = read_release(release)
    spec = build.build_synthesizer(config.synthesis)
    form = build.one_of(config.release.format, ("csv", "parquet"), "release.format")
    not_in_release(root, "output")
    folder = RunFolder(root)
    if folder.release.exists():
        raise UserError(f"{folder.release} is there already", where="output", fix="another folder, or move it away")
    build.check_rows(schema.measured, measurements, spec, config.synthesis.rows, config.limits)
    show = Stages(quiet=quiet)
    with show.stage("synthesize") as report:
        rng = np.random.default_rng(config.synthesis.seed)
        rows = config.synthesis.rows
        made = synthetic_rows(measurements, spec, rows=rows, rng=rng, zeros=schema.zeros, progress=report)
        made = undo(made, schema.engineering, rng)
    with show.stage("release") as report, _workdir(root) as work:
        return write_release(
            RunFolder(root), schema, statement, measurements, made, form=form, rng=rng, workdir=work, progress=report
        )


def score(config: ScoreConfig, *, quiet: bool = False) -> Scorecard:
    """Score a synthetic table against a real one; the numbers are NOT private.

    Raises:
        UserError: a table or the schema is missing or does not fit.
    """
    for name in ("real", "synthetic"):
        if not getattr(config, name):
            raise UserError("no table given", where=name, fix=f"{name}=TABLE")
    schema = load_schema(schema_path(config.schema, "schema"))
    spec = build.build_scores(config.evaluation, schema)
    spec = replace(spec, detail=config.detail, worst=config.worst, top=config.top)
    show = Stages(quiet=quiet)
    pair = {"real": Path(str(config.real)), "synthetic": Path(str(config.synthetic))}
    load = encoded(pair, schema, show, delimiter=config.delimiter, limits=config.limits)
    with load as tables, show.stage("score") as report:
        return score_tables(tables["real"], tables["synthetic"], schema, spec, progress=report)


@contextmanager
def encoded(
    tables: Mapping[str, Path | pd.DataFrame],
    schema: Schema,
    show: Stages,
    *,
    delimiter: str = ",",
    limits: LimitsConfig | None = None,
) -> Iterator[dict[str, CodedTable]]:
    """Tables as codes of the schema, while the block lasts; their columns are memory maps in a closed folder."""
    with tempfile.TemporaryDirectory(prefix="score-") as folder:  # mode 0700
        with show.stage("load") as report:
            result = {}
            for name, table in tables.items():
                work = Path(folder) / name
                work.mkdir(mode=0o700)
                if isinstance(table, pd.DataFrame):
                    table.to_parquet(work / "table.parquet")
                    table = work / "table.parquet"
                source = _open(table, delimiter, limits or LimitsConfig(), work)
                result[name], encoding = encode_columns(source, schema, workdir=work, progress=report)
                show.warn([f"{name}: {line}" for line in misfits(encoding)])
        yield result


def draft(table: str | None, *, delimiter: str, limits: LimitsConfig, clusters: Mapping[str, Any] | None = None) -> str:
    """A commented draft of a schema; it looked at the data and says so.

    Args:
        clusters: column → how its hierarchy is built by clustering (see `cluster_from_settings`).
    """
    if not table:
        raise UserError("no table given", where="schema", fix="python -m pipeline schema TABLE")
    trees = {c: cluster_from_settings(s, where=f"cluster: column {c!r}") for c, s in (clusters or {}).items()}
    with tempfile.TemporaryDirectory(prefix="schema-") as folder:
        source = _open(Path(table), delimiter, limits, Path(folder))
        return draft_schema(source, Path(table).name.split(".")[0], trees)


def _open(path: Path, delimiter: str, limits: LimitsConfig, workdir: Path) -> Source:
    return open_table(
        path.expanduser(),
        delimiter=delimiter,
        workdir=workdir,
        memory_limit_bytes=build.memory_limit_bytes(limits.memory_gb) // 2,
        threads=build.threads(limits.threads),
        setting="delimiter",
    )


@contextmanager
def _workdir(root: Path) -> Iterator[Path]:
    """A folder on the same file system as `root`, for parts of the release."""
    try:
        root.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".parts-", dir=root) as folder:
            yield Path(folder)
    except (FileExistsError, NotADirectoryError, PermissionError) as error:
        raise UserError(f"cannot write in {root} ({error.strerror})", where="output", fix="another folder") from error
