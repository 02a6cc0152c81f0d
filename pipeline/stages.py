"""The stages in the order in which the data flows: load, measure through the wall, synthesize, release, score."""

from __future__ import annotations

import hashlib
import json
import logging
import secrets
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from evaluation.score import Scorecard
from mechanisms.accounting.plan import Plan
from mechanisms.accounting.running_total import RunningTotal
from mechanisms.public.coded_table import CodedTable
from mechanisms.public.discovery.scouting import scouting_schema
from mechanisms.public.files import write_whole
from mechanisms.public.notebook_table import notebook_table
from mechanisms.public.progress import Progress
from mechanisms.public.release import Measurements, PrivacyStatement
from mechanisms.public.schema.table_schema import Schema
from mechanisms.public.tables.codec import encode_table
from mechanisms.public.tables.formats import FORMATS
from mechanisms.public.tables.losses import ColumnLoss, losses_of
from mechanisms.public.tables.scan import Source, open_table
from mechanisms.sensitive.contribution import PrivacyUnit
from mechanisms.sensitive.engines.engine import Engine
from mechanisms.sensitive.engines.engines import opened_engine
from mechanisms.sensitive.kept_counts import only_one
from mechanisms.sensitive.kept_table import kept_private
from mechanisms.sensitive.private_choice import kept_choices
from mechanisms.sensitive.private_table import EMBEDDED, PrivateTable, fingerprint, load_private
from pipeline.budget import admission
from pipeline.demo import write_demo
from pipeline.folders import RunFolder, bind, claimed, logged
from pipeline.inference.relations import Relation, strongest
from pipeline.look.run_look import look_before_spending
from pipeline.measuring.acceptance import Taken, only_try, settle, table_of
from pipeline.measuring.attempts import Work
from pipeline.measuring.discovery_stage import Discovered, discovered
from pipeline.measuring.public_tables import check_public, not_the_private, started
from pipeline.plugins.origins import not_ours, origin
from pipeline.plugins.plugin_discovery import load_used, used_modules
from pipeline.release_folder import check_seal, write_release
from pipeline.report.run_page import render_run
from pipeline.scores.floors import FLOORS
from pipeline.scores.score_run import score_run, share_floors
from pipeline.settings import build, machine_limits
from pipeline.settings.config import Config
from pipeline.settings.inputs import check_ready, data_path, generated
from pipeline.settings.policy import budget_warnings, id_warnings, unit_warnings
from pipeline.settings.post_processing import bound_settings, post_processing
from pipeline.settings.prepared import Prepared, prepared
from pipeline.settings.ready import ready
from pipeline.settings.selecting import replaced_choice, selection_of
from pipeline.settings.settled import settled
from pipeline.stage_bars import Stages, unplaced_lines
from pipeline.statement.publication import Publication
from pipeline.statement.signing import Signer
from pipeline.statement.start_table import start_in
from pipeline.statement.statement import declared, make_statement
from pipeline.statement.words import words_of
from pipeline.version import __version__

LOG = logging.getLogger("pipeline")
#: Said of a run, and of one that is resumed.
EMPTY = "the noisy total is 0 or less: the synthetic table has no rows; set synthesis.rows or raise ε"


@dataclass(frozen=True, eq=False, repr=False)
class Run:
    """What a run left.

    Attributes:
        folder: its release and internal folders.
        statement: what was promised and spent.
        measurements: the noisy answers that crossed the wall.
        schema: as it is released.
        table: the synthetic table's file.
        scores: the scorecard (NOT private), or None where evaluation.enabled=false.
        rows: how many synthetic rows there are.
        seconds: wall time of each stage.
        losses: columns with values that the schema does not place (NOT private), the worst first.
        left_out: which marginals nobody looked at, and why, in sentences.
        relations: the strongest ones that were measured, and how much of each the synthetic table keeps.
    """

    folder: RunFolder
    statement: PrivacyStatement
    measurements: Measurements
    schema: Schema
    table: Path
    scores: Scorecard | None
    rows: int
    seconds: Mapping[str, float] = field(default_factory=dict)
    losses: tuple[ColumnLoss, ...] = ()
    left_out: tuple[str, ...] = ()
    relations: tuple[Relation, ...] = ()

    def __repr__(self) -> str:
        promise = "private" if self.statement.private else "NOT private"
        return f"Run({str(self.folder.root)!r}, {promise}, {self.rows} synthetic rows)"

    def _repr_html_(self) -> str:
        said, words = self.statement, words_of(self.statement.to_json())
        kept = f"ε = {said.guarantee['epsilon']:.6g}, δ = {said.guarantee['delta']:.3g} for {words['unit']}"
        rows = [("private", kept if said.private else f"NO: {'; '.join(words['reasons_not_private'])}")]
        rows += [
            ("table", f"{self.table}, {self.rows:,} rows"),
            ("noisy marginals", f"{len(self.measurements.answers):,}"),
        ]
        rows += [("seconds", f"{sum(self.seconds.values()):.1f}")] if self.seconds else []
        own = notebook_table(f"Run in {self.folder.root}", ("", ""), rows)
        return own if self.scores is None else own + self.scores._repr_html_()


def run(
    config: Config,
    root: Path | str,
    *,
    hydra_files: Mapping[str, str] | None = None,
    quiet: bool = False,
    shared: Path | None = None,
    kept: bool = True,
) -> Run:
    """A table in; a private synthetic table, its privacy statement and its scores out.

    Guarantee: what lies in `release/` is (ε, δ)-differentially private for the unit and the neighbouring relation of
        its privacy.json, unless that file says that it is not private. `internal/` is not private.
    Args:
        config: from `load_config`.
        root: the run's folder.
        hydra_files: name → content, kept under internal/hydra.
        quiet: show no progress.
        shared: a closed folder where the jobs of a sweep keep the encoded table; who made it deletes it.
        kept: whether the folder stays; if not, no line names a file in `internal/`.
    Raises:
        UserError: any mistake of the settings, the schema or the table's file; no release is left.
    """
    load_used(asdict(config))
    schema, unit = build.build_schema(config), build.build_unit(config)
    made = prepared(config, schema)
    known = ready(config, schema, made.plan, Path(root))
    spec, aside, start = known.spec, known.aside, known.start
    admission.check(booked := admission.planned_release(config, schema, made.plan, Path(root)))
    show = Stages(quiet=quiet, console=config.console)
    for line in (*made.left_out, *_warnings(config, schema, unit)):
        show.note(line)
    with claimed(Path(root), resume=config.resume) as folder, logged(folder.log), _engine(config, folder) as engine:
        with show.stage("load") as report:
            path = _table(config, folder, report, shared)
            source = open_source(path, config, folder)
            check_ready(config, source.names)
            build.check_unit(unit, source.names)
            free = post_processing(config, made.plan, folder)
            facts = bind(folder, not_the_private(config, run_facts(config, schema, path)), may_change=free)
            keep_settings(folder, config, hydra_files or {})
            key = bytes.fromhex(facts["once"]["key"])
            read = partial(_private, source, folder=folder, engine=engine, key=key, data=facts["data"], aside=aside)
            first = schema if made.plan.discovery is None else scouting_schema(schema)
            private = read(first, made.plan, unit=unit, shared=shared, report=report)
            spec = started(spec, config.synthesis, first, start)
            opened = partial(open_source, config=config, folder=folder)
            check_public(config, first, source, private.encoding.rows, opened=opened, workdir=folder.temporary)
            losses = look_before_spending(private, source, first, config, folder, show, kept=kept)
        total, note = admission.entered(booked)
        ask = partial(discovered, source=source, engine=engine, folder=folder, show=show, key=key, holdout=aside)
        config, made, private, found = _concrete(config, made, private, partial(ask, note=note), read, show)
        schema, scoring, unit = made.schema, made.scoring, private.unit
        losses = losses if found is None else losses_of(private.encoding, schema)  # what discovered bounds cut off too
        work = Work(config, schema, spec, made.plan, private, folder, show, aside, found, start, engine.spread, note)
        taken = settle(work) if made.plan.scores else only_try(work)
        statement = _statement(work, unit, taken, known.who, total)
        table, synthetic = _released(work, statement, taken, known.signer)
        scores = None
        if scoring is not None:
            with show.stage("score") as report:
                score = partial(score_run, engine, private, (source, open_source(table, config, folder, ",")))
                score = partial(score, known=taken.known, places=made.places, statement=statement)
                scores = score(schema, folder, synthetic, scoring, progress=report)
        if scores is not None:
            with show.stage("report"):
                render_run(folder, synthetic=synthetic)
            if shared is not None and scoring is not None and made.plan.discovery is None:
                with show.stage("floor"):
                    share_floors(private, source, schema, folder, scoring, facts, shared.parent / FLOORS)
        LOG.info("seconds per stage: %s", show.seconds)
    told = (losses, made.left_out, strongest(taken.known, synthetic))
    return Run(folder, statement, taken.known, work.schema, table, scores, synthetic.rows, dict(show.seconds), *told)


def _concrete(
    config: Config,
    made: Prepared,
    private: PrivateTable,
    ask: Callable[..., Discovered],
    read: Callable[..., PrivateTable],
    show: Stages,
) -> tuple[Config, Prepared, PrivateTable, Discovered | None]:
    """The settings and the plan once nothing is open, the rows as they are read then, and what was found out."""
    discovery = made.plan.discovery
    if discovery is None:
        return config, made, private, None
    found = ask(made.schema, discovery, private, noise_seed=config.privacy.noise_seed)
    config, made, gave_way = settled(
        config, found.schema, discovery, None if found.bound is None else found.bound.max_records
    )
    show.warn(gave_way)
    with show.stage("load again") as report:
        unit = build.build_unit(config)
        private = read(made.schema, made.plan, unit=unit, shared=None, report=report, again=True)
    show.warn_privately(unplaced_lines(private.encoding))
    return config, made, private, found


def _warnings(config: Config, schema: Schema, unit: PrivacyUnit) -> tuple[str, ...]:
    """What a person should know before the run spends, a sentence each."""
    replaced = replaced_choice(config, schema, max_records=unit.max_records)
    spent = budget_warnings(config.privacy.epsilon, config.privacy.delta)
    return *replaced, *spent, *unit_warnings(unit), *id_warnings(schema, unit)


def _statement(
    work: Work, unit: PrivacyUnit, taken: Taken, who: Publication, total: RunningTotal | None
) -> PrivacyStatement:
    """What was promised and spent, from the objects that were used."""
    config, plan = work.config, work.plan
    return make_statement(
        work.schema,
        unit,
        plan,
        taken.ledger,
        taken.known,
        config.privacy.noise_seed,
        work.aside,
        taken=declared(config, work.start),
        chosen=kept_choices(taken.attempt.answers) | work.answered,
        found_bound=None if work.found is None or work.found.bound is None else work.found.bound.to_json(),
        scores=taken.scores,
        publication=who,
        running_total=None if total is None else total.to_json(),
        not_ours=not_ours(selection_of(config.selection), plan, taken.known, (config.synthesis.kind, type(work.spec))),
    )


def _released(work: Work, statement: PrivacyStatement, taken: Taken, signer: Signer | None) -> tuple[Path, CodedTable]:
    """`release/` with the try that is taken: the synthetic table's file and its rows; no raw row is read."""
    table = work.folder.release / FORMATS[work.config.release.format].released
    if work.folder.release.exists():  # a resumed run never changes what may be published already
        check_seal(work.folder)
        coded = _reloaded(work, table)
    else:
        coded = _written(work, statement, taken, signer)
        # computed columns have values now, and with them codes
        coded = _reloaded(work, table) if work.schema.rules.computed else coded
    work.show.warn([EMPTY] if coded.rows == 0 else [])
    return table, coded


def _written(work: Work, statement: PrivacyStatement, taken: Taken, signer: Signer | None) -> CodedTable:
    """The rows of the try that is taken, once `release/` is there."""
    config, (coded, rng) = work.config, table_of(work, taken)
    with work.show.stage("release") as report:
        write_release(
            work.folder,
            work.schema,
            statement.to_json(),
            taken.known,
            coded,
            form=FORMATS[config.release.format],
            rng=rng,
            rows_asked=config.synthesis.rows,
            signer=signer,
            progress=report,
        )
    return coded


def _reloaded(work: Work, table: Path) -> CodedTable:
    """The rows of a released table as codes."""
    with work.show.stage("reload") as report:
        source = open_source(table, work.config, work.folder, ",")
        return encode_table(source, work.schema, workdir=work.folder.temporary / "released", progress=report)


def _table(config: Config, folder: RunFolder, report: Progress, shared: Path | None) -> Path:
    """The table to read; the demo's is generated first, under internal/ (of the sweep, if there is one)."""
    if not generated(config):
        return data_path(config)
    rows = 290_000 if config.data.rows is None else config.data.rows
    name = f"demo-{rows}-{config.data.seed}"
    path = (shared or folder.temporary) / f"{name}.parquet"
    with only_one(path.parent, name):
        if not path.exists():
            write_demo(path, rows=rows, seed=config.data.seed, progress=report)
    return path


def _engine(config: Config, folder: RunFolder) -> AbstractContextManager[Engine]:
    """Who reads the rows, while the run lasts."""
    return opened_engine(config.engine.kind, asdict(config.engine), folder.temporary)


def _private(
    source: Source,
    schema: Schema,
    plan: Plan,
    *,
    unit: PrivacyUnit,
    folder: RunFolder,
    key: bytes,
    data: str,
    aside: float | None,
    engine: Engine,
    shared: Path | None,
    report: Progress,
    again: bool = False,
) -> PrivateTable:
    """The encoded and clipped rows: the run's own, or those that a sweep's jobs share (none where units go aside,
    where the schema follows from noisy answers, or where another engine than the embedded one holds the rows).

    Args:
        again: whether what was to be discovered is known by now.
    """
    counted = None if plan.histogram is None else unit.max_records
    if plan.discovery is not None and not again:
        counted = plan.discovery.cap
    if shared is None or aside is not None or plan.discovery is not None or engine != EMBEDDED:
        work = folder.temporary if again or plan.discovery is None else folder.temporary / "scout"
        load = partial(load_private, source, schema, unit, workdir=work, key=key, progress=report, engine=engine)
        return load(holdout=aside, histogram=counted)
    return kept_private(shared, source, schema, unit, data=data, key=key, histogram=counted, progress=report)


def open_source(path: Path, config: Config, folder: RunFolder, delimiter: str | None = None) -> Source:
    """A table's file within the limits of the settings; with data.delimiter, unless another one is given."""
    limits = config.limits
    memory = machine_limits.memory_limit_bytes(limits.memory_gb) // 2
    cores = machine_limits.threads(limits.threads)
    work = folder.temporary
    mark = config.data.delimiter if delimiter is None else delimiter
    return open_table(path, delimiter=mark, workdir=work, memory_limit_bytes=memory, threads=cores)


def run_facts(config: Config, schema: Schema, path: Path) -> dict[str, Any]:
    """What a resumed run must share with its beginning: settings, schema, data, and the version that measured."""
    seed = config.privacy.noise_seed
    key = secrets.token_bytes(32) if seed is None else hashlib.blake2b(f"clip:{seed}".encode(), digest_size=32).digest()
    start = start_in(config.synthesis)
    return {
        **({} if start is None else {"start": start.digest}),
        "settings": bound_settings(config),
        "pipeline": __version__,
        "schema": schema_print(schema),
        "data": fingerprint(path),
        **({"plugins": [origin(name) for name in modules]} if (modules := used_modules(asdict(config))) else {}),
        "once": {"key": key.hex()},
    }


def schema_print(schema: Schema) -> str:
    """What a schema with all that it takes from other files is known by."""
    return hashlib.blake2b(schema.to_yaml().encode(), digest_size=16).hexdigest()


def keep_settings(folder: RunFolder, config: Config, hydra_files: Mapping[str, str]) -> None:
    """The resolved settings and Hydra's own records, under internal/: they may name files and seeds."""
    write_whole(folder.internal / "config.json", json.dumps(asdict(config), indent=1), mode=0o600)
    for name, text in hydra_files.items():
        write_whole(folder.internal / "hydra" / name, text, mode=0o600)
