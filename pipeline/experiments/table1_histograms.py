"""The synthetic histograms of the experiment: GUM through the pipeline, plain Laplace through the wall, samples."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from mechanisms.accounting.budget import Budget
from mechanisms.accounting.ledger import Ledger
from mechanisms.accounting.plan import Plan
from mechanisms.accounting.planning import Request, make_plan
from mechanisms.public.arrays import Floats
from mechanisms.public.errors import UserError
from mechanisms.public.files import write_whole
from mechanisms.public.release import Measurements, PrivacyStatement
from mechanisms.public.schema.table_schema import Schema
from mechanisms.public.tables.codec import encode_columns
from mechanisms.public.units import Neighbouring, bound_in_words
from mechanisms.sensitive.measurement import measure_some
from mechanisms.sensitive.noise import noise_source
from mechanisms.sensitive.private_table import PrivateTable, load_private
from pipeline import stages
from pipeline.budget import admission
from pipeline.budget.admission import PlannedRelease
from pipeline.experiments.experiment_settings import MapSettings, OpenTable, RowSpec, rows_of, settings_of
from pipeline.experiments.table1 import MAX_CELLS, TemporalMap
from pipeline.scores.table_sources import open_with
from pipeline.settings import build
from pipeline.settings.config import Config, ReleaseConfig
from pipeline.settings.experiment_list import ExperimentConfig
from pipeline.settings.inputs import DEMO
from pipeline.settings.methods import with_max_cells
from pipeline.settings.specs import RECORD, Specs, build_specs, build_unit
from pipeline.statement.statement import Bought, Declared, make_statement
from pipeline.statement.words import words_of

#: A synthetic histogram (months × places × categories, in records), and what was promised for this one table, in words.
NoisyMap = tuple[Floats, str]


@dataclass(eq=False)
class Maker:
    """Makes the rows of one experiment.

    Attributes:
        config: its settings.
        world: the truth.
        table: the experiment's table, in whose folder each row keeps its things under internal/rows.
        schema_path: the file of the map's schema.
    """

    config: Config
    world: TemporalMap
    table: OpenTable
    schema_path: Path

    def make(self, spec: RowSpec) -> NoisyMap:
        """The histogram of one row; what was measured for it before is not measured again."""
        return {"dpsyn": self._dpsyn, "lap": self._laplace, "sample": self._sample}[spec.method](spec)

    def _home(self, spec: RowSpec) -> Path:
        home = _home_of(self.table.folder.root, spec)
        home.mkdir(parents=True, exist_ok=True, mode=0o700)
        return home

    def _dpsyn(self, spec: RowSpec) -> NoisyMap:
        """One- and two-way marginals, noisy, made into rows by GUM: an ordinary run with its own release.

        Its rows are weighed up to the true total, as those of the samples are: what the bound on a person's records
        dropped is not printed as an error in Table 1.
        """
        home, config = self._home(spec), _release_config(self.config, self.table.folder.root, spec)
        path = str(self.table.source.path)
        config = replace(config, data=replace(config.data, path=path, schema=str(self.schema_path)))
        done = stages.run(config, home, quiet=True)
        folder = self.table.folder.temporary
        source = open_with(done.table, done.schema.dialect, self.config.limits, folder)
        coded = encode_columns(source, self.world.schema, workdir=folder / spec.name)[0]
        scaled = self.world.counted(coded) * (self.world.table.rows / max(coded.rows, 1))
        return scaled, promise(done.statement)

    def _laplace(self, spec: RowSpec) -> NoisyMap:
        """The whole histogram with Laplace noise of scale sensitivity / ε, rounded, negative cells set to 0."""
        plan = laplace_plan(self.config, self.world.schema, spec.value)
        home = self._home(spec)
        booked = admission.planned_release(_laplace_specs(self.config), self.world.schema, plan, home)
        ledger = Ledger.open(home / "ledger.jsonl", plan, note=booked[0].noting() if booked else None)
        noise = noise_source(spec.seed(self.config.privacy.noise_seed))
        planned, table = list(enumerate(plan.measurements)), self._clipped
        answers = measure_some(table, planned, ledger, noise, answers_dir=home / "answers")
        measurements = Measurements(table.coded.domain, tuple(answers))
        if not answers:
            fix = "start the experiment in another folder; the charge of this row stays spent"
            raise UserError(f"the noise of {spec.name} was charged, but its answer is lost", where="resume", fix=fix)
        seed = spec.seed(self.config.privacy.noise_seed)
        confirmed = self.config.data.confirmed_public
        own = Declared(self._clipped.unit, fixed=seed is not None, confirmed=confirmed)
        statement = make_statement(self.world.schema, plan, own, Bought(ledger, measurements))
        write_whole(home / "privacy.json", json.dumps(statement.to_json(), indent=1), mode=0o600)
        cells = np.maximum(np.rint(answers[0].values), 0.0).reshape(self.world.histogram.shape)
        size = settings_of(self.config, MapSettings).sensitivity
        group = f"; ε = {spec.value:g} for any {size} records together" if self._clipped.unit.column is None else ""
        return cells, promise(statement) + group

    @cached_property
    def _clipped(self) -> PrivateTable:
        """The private table, clipped for the Laplace rows; read once."""
        unit = _laplace_specs(self.config).unit
        work = self.table.folder.temporary / "clipped"
        key = bytes.fromhex(self.table.facts["once"]["key"])  # it chooses what clip=truncate keeps
        return load_private(self.table.source, self.world.schema, unit, workdir=work, key=key)

    def _sample(self, spec: RowSpec) -> NoisyMap:
        """Rows drawn without replacement, each counted 1 / share times, so that totals agree as in the paper."""
        table = self.world.table
        run = [spec.run] if spec.run > 1 else []
        rng = np.random.default_rng([settings_of(self.config, MapSettings).sample_seed, round(1e9 * spec.value), *run])
        rows = np.sort(rng.choice(table.rows, round(spec.value * table.rows), replace=False))
        scaled = self.world.counted(table.at(rows)) * round(1 / spec.value, 9)
        return scaled, "none: true rows as they are"


def releases(config: Config, schema: Schema, root: Path) -> tuple[PlannedRelease, ...]:
    """What an experiment on a map books: each of its noisy tables, all together (samples are no release)."""
    if config.budget.ledger is None:
        return ()
    planned: list[PlannedRelease] = []
    for spec in rows_of(settings_of(config, MapSettings)):
        home = _home_of(root, spec)
        if spec.method == "dpsyn":
            own = _release_config(config, root, spec)
            specs = build_specs(own)
            plan = build.build_plan(specs, build.build_workload(specs, schema), schema)
            planned += admission.planned_release(specs, schema, plan, home)
        elif spec.method == "lap":
            plan = laplace_plan(config, schema, spec.value)
            planned += admission.planned_release(_laplace_specs(config), schema, plan, home)
    return tuple(planned)


def _home_of(root: Path, spec: RowSpec) -> Path:
    return root / "internal" / "rows" / spec.name


def _release_config(config: Config, root: Path, spec: RowSpec) -> Config:
    """An ordinary run at the row's ε, on the experiment's table."""
    column, home = config.privacy.unit != RECORD, _home_of(root, spec)
    rows = config.data.rows if config.data.name == DEMO else None  # the experiment's file says how many of the city
    return replace(
        config,
        data=replace(config.data, rows=rows),
        privacy=replace(
            config.privacy,
            epsilon=spec.value,
            max_records=settings_of(config, MapSettings).max_records if column else None,
            clip=settings_of(config, MapSettings).clip if column else config.privacy.clip,
            noise_seed=spec.seed(config.privacy.noise_seed),
        ),
        selection=with_max_cells(config.selection, lambda cells: max(cells, MAX_CELLS)),
        synthesis=replace(config.synthesis, seed=spec.seed(config.synthesis.seed)),
        evaluation=replace(config.evaluation, enabled=False),
        release=ReleaseConfig("parquet"),
        experiment=ExperimentConfig(),
        resume=(home / "internal" / "manifest.json").exists(),
    )


def promise(statement: PrivacyStatement) -> str:
    """What one table's statement promises, in a line."""
    budget = bound_in_words(statement.budget["epsilon"], statement.budget["delta"])
    words, most = words_of(statement.to_json()), statement.unit["max_records"]
    bound = f", of which {most} count" if most > 1 else ""
    reasons = "" if statement.private else f"NOT private: {'; '.join(words['reasons_not_private'])}. Else: "
    return f"{reasons}{budget} for {words['unit']}{bound}"


def _laplace_specs(config: Config) -> Specs:
    """C is the sensitivity where a column names the unit."""
    column = config.privacy.unit != RECORD
    settings = settings_of(config, MapSettings)
    bound = settings.sensitivity if column else None
    privacy = replace(config.privacy, max_records=bound, clip=settings.clip)
    return replace(build_specs(config), unit=build_unit(privacy, config.data))


def laplace_plan(config: Config, schema: Schema, epsilon: float) -> Plan:
    """One charge: the 3-way histogram with Laplace noise of scale sensitivity / ε.

    Where a column names the unit, at most `sensitivity` records of each count, and ε is the unit's. Where the unit is
    one record, adding one changes the histogram by 1: the same scale is ε / sensitivity for one record, and by group
    privacy ε for any `sensitivity` records together.
    """
    record = config.privacy.unit == RECORD
    size = settings_of(config, MapSettings).sensitivity
    part, bound = (epsilon / size, 1) if record else (epsilon, size)
    budget = Budget(part, 0.0, "basic", Neighbouring.ADD_REMOVE, max_records=bound)
    return make_plan(schema.domain, [Request(schema.domain.names)], budget, mechanism="laplace")
