"""`experiment.kind=challenge`: releases at some ε, each scored with the challenge's own metrics."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import asdict, replace
from functools import partial
from itertools import product
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from evaluation.metric import Options
from evaluation.metrics import column_roles, find
from mechanisms.public.arrays import Flags, Ints
from mechanisms.public.coded_table import CodedTable
from mechanisms.public.errors import UserError
from mechanisms.public.files import JsonDict, stored_values, write_whole
from mechanisms.public.progress import Progress
from mechanisms.public.schema.table_schema import Schema, part_of
from mechanisms.public.tables.codec import encode_columns
from mechanisms.public.tables.scan import Source
from mechanisms.sensitive.contribution import Aside, PrivacyUnit, UnitRows, unit_numbers
from mechanisms.sensitive.engines.duckdb_engine import aside_rows
from pipeline import stages
from pipeline.budget import admission
from pipeline.budget.admission import PlannedRelease
from pipeline.demo import write_demo
from pipeline.experiments.challenge_scores import (
    World,
    compared,
    options_of,
    scores_of_anonymous,
    scores_of_sample,
    scores_of_table,
    synthesizers_of,
    values_of,
)
from pipeline.experiments.challenge_settings import (
    ChallengeSettings,
    Variant,
    anonymous_of,
    schema_at,
    stand_in,
    variants_of,
    write_coded,
)
from pipeline.experiments.experiment_settings import opened_table, run_seed, settings_of
from pipeline.experiments.findings import Findings, closing_text, setting_of, write_findings
from pipeline.experiments.gallery.published import beside_printed, compared_scales, in_words, published_of
from pipeline.experiments.scores_against import beside_pairs, pairs_of
from pipeline.experiments.table1_histograms import promise
from pipeline.folders import RunFolder
from pipeline.scores.table_sources import open_with
from pipeline.settings import build
from pipeline.settings.config import Config, schema_path
from pipeline.settings.experiment_list import ExperimentConfig
from pipeline.settings.methods import with_max_cells
from pipeline.settings.specs import RECORD, build_specs, build_unit, settled
from pipeline.stage_bars import Stages

#: What `smoke=true` leaves.
SMOKE_ROWS, SMOKE_EPSILONS = 1_500, 1
#: Larger pairs are no candidates then: so few rows tell nothing of them.
SMOKE_CELLS = 500


def run(config: Config, root: Path, hydra_files: Mapping[str, str] = MappingProxyType({})) -> Findings:
    """Make each release, score it, and write the table and the figure beside what the source reports.

    Each is an ordinary run with its own release and its own promise in `epsilon-…/`; the scores are NOT private.

    Raises:
        UserError: an impossible setting, or a table that does not fit.
    """
    admission.check(booked := releases(config, root))
    config, schema = _settled(config)
    show = Stages(quiet=config.quiet, console=config.console)
    with opened_table(config, schema, root, hydra_files, show, partial(_generate, config, schema)) as table:
        folder = table.folder
        config = _with_schema(config, schema, folder)
        world = World(schema, table.source, table.real, None, _subjects(config, table.source))
        admission.book(booked)
        rows: list[dict[str, Any]] = []
        settings = settings_of(config, ChallengeSettings)
        variants, runs, home = variants_of(settings), range(1, settings.repeats + 1), folder.internal / "rows"
        for place, variant in enumerate(variants):
            again = f"run {variant.run}" if settings.repeats > 1 else ""
            with show.stage(", ".join(filter(None, [f"ε = {variant.epsilon:g}", variant.label, again]))) as report:
                report(place, len(variants), "")
                rows += stored_values(home / f"{variant.name}.json", partial(_rows, config, world, folder, variant))
        for share, run in product(settings.samples, runs):
            with show.stage(f"sample {share:g}, run {run}"):
                make = partial(scores_of_sample, config, world, share, run)
                rows += stored_values(home / f"sample-{share:g}-run-{run}.json", make)
        for k, run in product(anonymous_of(settings), runs):
            with show.stage(f"{k}-anonymous, run {run}"):
                make = partial(scores_of_anonymous, config, world, folder, k, run)
                rows += stored_values(home / f"anonymous-{k}-run-{run}.json", make)
        scales = beside_printed(compared_scales(settings.scales, config.privacy.delta))
        setting, notes = _setting(config, world, table.facts), _notes(config)
        pairs = pairs_of(rows, settings.against)
        against = beside_pairs(pairs)
        findings = Findings(tuple(rows), setting, settings.source, settings.says, notes, against, scales).beside
        write_findings(findings, folder.internal, pairs)
    return findings


def run_and_tell(config: Config, root: Path, hydra_files: Mapping[str, str]) -> str:
    """Like `run`; returns the short table and where everything lies."""
    return closing_text(run(config, root, hydra_files), root / "internal", config.console)


def releases(config: Config, root: Path) -> tuple[PlannedRelease, ...]:
    """What the experiment books: each of its releases, all together.

    Raises:
        UserError: an impossible setting.
    """
    config, schema = _settled(config)
    if config.budget.ledger is None:
        return ()
    planned: list[PlannedRelease] = []
    settings = settings_of(config, ChallengeSettings)
    for variant in variants_of(settings):
        home = root / variant.name
        own = _release_config(config, None, home, variant)
        specs = build_specs(own)
        its = schema if schema_at(settings, variant.epsilon) is None else build.build_schema(specs)
        plan = build.build_plan(specs, build.build_workload(specs, its), its)
        planned += admission.planned_release(specs, its, plan, home)
    return tuple(planned)


def smaller(config: Config) -> Config:
    """The experiment in seconds, by its own method: few generated rows, one ε, one run, no large pairs, no floors."""
    settings, synthesis = settings_of(config, ChallengeSettings), config.synthesis
    lists: JsonDict = {name: getattr(settings, name)[-SMOKE_EPSILONS:] for name in ("epsilons", "variants", "samples")}
    lists["anonymous"] = anonymous_of(settings)[-1:]
    settings = replace(settings, **lists, rows=min(settings.rows, SMOKE_ROWS), repeats=1, floors=False)
    synthesis = replace(synthesis, rows=synthesis.rows or SMOKE_ROWS)
    selection = config.selection
    if selection.kind in ("mst", "indif"):  # the choice among all pairs is what takes long
        selection = with_max_cells(selection, lambda cells: min(cells, SMOKE_CELLS))
    experiment = replace(config.experiment, options=asdict(settings))
    return replace(config, experiment=experiment, synthesis=synthesis, selection=selection)


def _settled(config: Config) -> tuple[Config, Schema]:
    """The settings, checked and of a smoke run smaller, and the table's schema, cut down to `columns`.

    Raises:
        UserError: an impossible setting, or an unknown column.
    """
    _check(config)
    config = settled(smaller(config) if config.smoke else config)
    schema, names = build.build_schema(build_specs(config)), settings_of(config, ChallengeSettings).columns
    return config, part_of(schema, names, where="experiment.columns") if names else schema


def _with_schema(config: Config, schema: Schema, folder: RunFolder) -> Config:
    """Releases read the cut schema from its file."""
    if not settings_of(config, ChallengeSettings).columns:
        return config
    path = folder.internal / "columns.yaml"
    write_whole(path, schema.to_yaml(), mode=0o600)
    return replace(config, data=replace(config.data, schema=str(path)))


def _check(config: Config) -> None:
    settings = settings_of(config, ChallengeSettings)
    variants_of(settings)
    synthesizers_of(config.synthesis, settings.methods)
    compared_scales(settings.scales, config.privacy.delta)
    grouped = (*settings.rounds.values(), *settings.against.values())
    for name in (*settings.metrics, *settings.against, *(m for metrics in grouped for m in metrics)):
        find(name)
    published_of(settings.published)
    for name in settings.schemas.values():
        schema_path(name)
    if settings.schemas and settings.columns:
        fix = "one of the two"
        raise UserError("both are set", where="experiment.schemas, experiment.columns", fix=fix)
    for variant in variants_of(settings):
        schema_at(settings, variant.epsilon)
    if settings.samples and (settings.holdout or not settings.methods):
        fix = "experiment.methods, and no experiment.holdout: samples are scored on the codes of the whole table"
        raise UserError("samples have nothing to stand beside", where="experiment.samples", fix=fix)
    anonymous = anonymous_of(settings)
    if anonymous and (not settings.holdout or settings.methods):
        fix = "an experiment.holdout, and no experiment.methods"
        raise UserError("anonymized tables have nothing to stand beside", where="experiment.anonymous", fix=fix)
    if config.evaluation.holdout is not None:
        raise UserError("a challenge has its own", where="evaluation.holdout", fix="set experiment.holdout")


def _generate(config: Config, schema: Schema, path: Path, *, progress: Progress) -> None:
    """A table in the place of the user's."""
    settings, seed = settings_of(config, ChallengeSettings), config.data.seed
    if config.data.name == "demo":
        write_demo(path, rows=settings.rows, seed=seed, progress=progress)
        return
    unit = None if config.privacy.unit == RECORD else config.privacy.unit
    write_coded(stand_in(schema, settings.rows, seed), schema, path, seed, unit, settings.per_subject)


def _subjects(config: Config, source: Source) -> Ints | None:
    """A number per row for its unit, as a run tells units apart, where one column names it."""
    unit = config.privacy.unit
    return None if unit is None or unit == RECORD else unit_numbers(source, PrivacyUnit(unit))


def _rows(config: Config, world: World, folder: RunFolder, variant: Variant) -> list[dict[str, Any]]:
    """The scores of one release."""
    home, epsilon = folder.root / variant.name, variant.epsilon
    start = time.perf_counter()
    released = _release_config(config, world.source.path, home, variant)
    done = stages.run(released, home, quiet=True)
    seconds = time.perf_counter() - start
    aside = None
    if released.evaluation.holdout is not None:
        aside = _aside(released, world, done.folder, folder)
        world = world.without(aside)
    source = open_with(done.table, done.schema.dialect, config.limits, folder.temporary)
    coded = encode_columns(source, world.schema, workdir=folder.temporary / home.name)[0]
    options = _options(released, config, world, coded, source)
    name = ", ".join(filter(None, [config.synthesis.kind, variant.label]))
    facts: dict[str, Any] = {"dataset": name, "epsilon": epsilon, "run": variant.run, "seconds": round(seconds, 2)}
    facts |= {"promise": f"ε = {epsilon:g}: {promise(done.statement)}"}
    score = partial(scores_of_table, config, released, world)
    settings = settings_of(config, ChallengeSettings)
    if not settings.methods:
        values = values_of(world.source, source, world.schema, settings.metrics, aside)
        return score(replace(options, values=values), facts, coded)
    seed, rows = released.synthesis.seed, config.synthesis.rows
    methods, score = synthesizers_of(config.synthesis, settings.methods), partial(score, options, facts)
    return compared(world.schema, done.measurements, methods, rows=rows, seed=seed, score=score, facts=facts)


def _aside(released: Config, world: World, home: RunFolder, folder: RunFolder) -> Flags:
    """Which rows of the table a release set aside: its own coins again, from the secret key that it keeps."""
    key = bytes.fromhex(json.loads(home.manifest.read_text(encoding="utf-8"))["once"]["key"])
    unit, share = build_unit(released.privacy, released.data), float(released.evaluation.holdout or 0)
    return aside_rows(UnitRows(world.source, unit, folder.temporary), Aside(key, share))


def _release_config(config: Config, path: Path | None, home: Path, variant: Variant) -> Config:
    """An ordinary run on the experiment's table, whose file is not known before it was made; seeds follow the run."""
    privacy = replace(config.privacy, epsilon=variant.epsilon)
    privacy = replace(privacy, noise_seed=run_seed(privacy.noise_seed, variant.run))
    if variant.unit is not None:  # another unit has another bound
        privacy = replace(privacy, unit=variant.unit, max_records=None)
    if variant.max_records is not None:
        privacy = replace(privacy, max_records=variant.max_records)
    data = config.data if path is None else replace(config.data, path=str(path))
    settings = settings_of(config, ChallengeSettings)
    schema = schema_at(settings, variant.epsilon)
    return replace(
        config,
        data=data if schema is None else replace(data, schema=schema),
        privacy=privacy,
        synthesis=replace(config.synthesis, seed=run_seed(config.synthesis.seed, variant.run)),
        evaluation=replace(config.evaluation, enabled=False, holdout=settings.holdout or None),
        experiment=ExperimentConfig(),
        smoke=False,
        resume=(home / "internal" / "manifest.json").exists(),
    )


def _options(released: Config, config: Config, world: World, synthetic: CodedTable, source: Source) -> Options:
    """The roles of the columns, and subjects: those of the synthetic table, or `per_subject` rows each by chance.

    A release that protects single records promises nothing for subjects, and is not asked about them.
    """
    settings = settings_of(config, ChallengeSettings)
    for role in settings.roles.keys() - set(column_roles()):
        fix = f"one of: {', '.join(sorted(column_roles()))}"
        raise UserError("no such role", where=f"experiment.roles.{role}", fix=fix)
    options = replace(options_of(config), holdout=world.holdout)
    if world.subjects is None or released.privacy.unit == RECORD:
        return options
    units = world.schema.rules.unit_ids
    if units is not None and units.name == config.privacy.unit:
        return replace(options, subject=(world.subjects, unit_numbers(source, PrivacyUnit(units.name))))
    ids = np.random.default_rng(settings.sample_seed).permutation(synthetic.rows) // settings.per_subject
    return replace(options, subject=(world.subjects, ids))


def _setting(config: Config, world: World, facts: Mapping[str, Any]) -> dict[str, Any]:
    rows, file = world.real.rows, config.data.path
    kind = f"{Path(file).name}" if file else f"generated stand-in for {config.data.name}"
    domain = {a.name: a.size for a in world.schema.domain.attributes}
    return setting_of(
        config, settings_of(config, ChallengeSettings), f"{kind}, {rows:,} rows", facts, rows, domain=domain
    )


def _notes(config: Config) -> tuple[str, ...]:
    settings = settings_of(config, ChallengeSettings)
    scales = compared_scales(settings.scales, config.privacy.delta)
    notes = [*settings.notes, *map(in_words, scales)]
    if not config.data.path:
        notes.append(
            "The table is generated: its columns depend on each other through hidden kinds of records. The source's "
            "figures are about real people; only the way of measuring is the same. Give the real file: data.path=FILE."
        )
    return tuple(notes)
