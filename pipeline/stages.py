"""The stages in the order in which the data flows: load, measure through the wall, synthesize, release, score."""

from __future__ import annotations

import logging
import platform
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import yaml

from evaluation.score import Scorecard
from mechanisms.public.files import as_path
from mechanisms.public.release import Measurements, PrivacyStatement
from mechanisms.public.schema.table_schema import Schema
from mechanisms.public.tables.losses import ColumnLoss
from mechanisms.public.text_table import notebook_table
from mechanisms.sensitive.engines.engines import opened_engine
from pipeline.budget import admission
from pipeline.folders import RunFolder, claimed
from pipeline.inference.relations import Relation, strongest
from pipeline.load_stage import load
from pipeline.look.run_look import tell_place
from pipeline.measuring.discovery_stage import discover
from pipeline.plugins.plugin_discovery import load_used
from pipeline.release_stage import measure, release, state_promise
from pipeline.report.run_page import of_release, render_run
from pipeline.run_context import Stage, State, present
from pipeline.run_log import logged
from pipeline.scores.scored_tables import score_run
from pipeline.settings.config import Config
from pipeline.settings.design import ready, whole_design
from pipeline.settings.specs import as_released, run_warnings
from pipeline.stage_bars import Stages
from pipeline.statement.words import loss_in_words, words_of
from pipeline.version import __version__

LOG = logging.getLogger("pipeline")


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
        persons: how many hold the synthetic rows; None where rows have no persons.
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
    persons: int | None = None

    def __repr__(self) -> str:
        promise = "private" if self.statement.private else "NOT private"
        return f"Run({str(self.folder.root)!r}, {promise}, {self.rows} synthetic rows)"

    def _repr_html_(self) -> str:
        statement, facts = self.statement, self.statement.to_json()
        words = words_of(facts)
        promise = f"{loss_in_words(facts)} for {words['unit']}"
        rows = [("private", promise if statement.private else f"NO: {'; '.join(words['reasons_not_private'])}")]
        rows += [
            ("table", f"{self.table}, {self.rows:,} rows"),
            ("noisy marginals", f"{len(self.measurements.answers):,}"),
        ]
        rows += [("seconds", f"{sum(self.seconds.values()):.1f}")] if self.seconds else []
        own = notebook_table(f"Run in {self.folder.root}", ("", ""), rows)
        return own if self.scores is None else own + self.scores._repr_html_()


def book(state: State) -> State:
    """The run's booking in a shared budget, where one is set: before anything is charged.

    Only then is it said where the look is: a run that is refused leaves none.
    """
    total, note = admission.entered(state.booked)
    tell_place(state.folder, state.show, state.has_folder)
    return replace(state, total=total, note=note)


def score(state: State) -> State:
    """The scores, which are NOT private, and the report on them."""
    if state.design.scoring is None:
        return state
    with ThreadPoolExecutor(1) as pool:  # what the report says of the release needs no scores
        released = pool.submit(of_release, state.folder.release, present(state.synthetic))
        with state.show.stage("score") as report:
            scores = score_run(state, report)
        with state.show.stage("report"):
            render_run(state.folder, released=released.result)
    return replace(state, scores=scores)


STAGES: tuple[Stage, ...] = (load, book, discover, measure, state_promise, release, score)


def run(
    config: Config,
    root: Path | str,
    *,
    hydra_files: Mapping[str, str] | None = None,
    quiet: bool = False,
    shared: Path | None = None,
    has_folder: bool = True,
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
        has_folder: whether the folder stays; if not, no line names a file in `internal/`.
    Raises:
        UserError: any mistake of the settings, the schema or the table's file; no release is left.
    """
    load_used(asdict(config))
    root = as_path(root, "root")
    design = whole_design(config)
    specs = design.specs
    start, who, signer = ready(specs, design.schema, design.plan, root)
    admission.check(booked := admission.planned_release(specs, design.schema, design.plan, root))
    show = Stages(quiet=quiet or config.quiet, console=config.console)
    for line in (notes := (*design.left_out, *run_warnings(design.specs, design.schema))):
        show.note(line)
    with (
        claimed(root, resume=config.resume) as folder,
        logged(folder.log),
        opened_engine(specs.engine, folder.temporary) as engine,
    ):
        _log_beginning(config, notes, (hydra_files or {}).get("overrides.yaml", ""))
        state = State(
            config=specs.config,
            start=start,
            who=who,
            signer=signer,
            booked=booked,
            folder=folder,
            engine=engine,
            show=show,
            design=design,
            shared=shared,
            has_folder=has_folder,
            hydra_files=hydra_files or {},
        )
        for stage in STAGES:
            state = stage(state)
        LOG.info("seconds per stage: %s", show.seconds)
        LOG.info("the run ended: %s", present(state.table))
    return _done(state)


def _log_beginning(config: Config, notes: Sequence[str], overrides: str) -> None:
    """What is fixed before any row is read: the version, the command line's settings or else all, what was said."""
    LOG.info("version %s, Python %s on %s", __version__, platform.python_version(), platform.platform())
    LOG.info("settings: %s", yaml.safe_load(overrides) or asdict(config))
    for line in notes:
        LOG.info(line)


def _done(state: State) -> Run:
    answers, synthetic, design = present(state.taken).measurements, present(state.synthetic), state.design
    schema = replace(design.schema, dialect=as_released(state.config.release, design.schema))
    released = (state.folder, present(state.statement), answers, schema, present(state.table), state.scores)
    relations, seconds = strongest(answers, synthetic), dict(state.show.seconds)
    return Run(*released, synthetic.rows, seconds, state.losses, design.left_out, relations, state.persons)
