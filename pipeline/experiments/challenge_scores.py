"""The scores of one table of a challenge: each metric, its parts, its floor, and the rounds. NOT private.

Beside releases: classic anonymization (ANITA's Figure 1), k-anonymous tables by generalization; several synthesizers on
the noisy answers of one release.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path

import numpy as np

from evaluation.metric import Inputs, Metric, Options
from evaluation.metrics import METRICS
from evaluation.outcome import Outcome, compute, floor
from evaluation.values.value_tables import Values
from mechanisms.public.arrays import Flags, Ints
from mechanisms.public.coded_table import CodedTable
from mechanisms.public.errors import check_names
from mechanisms.public.files import Json, JsonDict
from mechanisms.public.release import Measurements
from mechanisms.public.schema.dialect import PLAIN
from mechanisms.public.schema.table_schema import Schema
from mechanisms.public.tables.scan import Source
from pipeline.experiments.challenge_settings import ChallengeSettings, rounds, write_coded
from pipeline.experiments.experiment_settings import settings_of
from pipeline.experiments.gallery.published import reported
from pipeline.folders import RunFolder
from pipeline.scores.table_sources import open_with, wants_values, with_schema
from pipeline.settings.config import Config, SynthesisConfig
from pipeline.settings.methods import build_synthesizer
from synthesis.contract import Synthesizer, synthesize
from synthesis.numbers.value_shapes import as_columns, for_synthesis
from synthesis.papers.multiplicative_weights import WeightsSpec

#: Scores that are means of parts.
PARTS = {"sprint3": ("k_marginal", "pickup_dropoff", "higher_order_conjunction")}


def scores_of_table(
    config: Config, released: Config, world: World, options: Options, facts: Json, coded: CodedTable
) -> list[JsonDict]:
    """The scores of one table.

    Args:
        facts: of all its rows, with `epsilon` and `run`; floors are measured beside run 1 alone.
    """
    rows, own, settings = [], config.privacy.unit, settings_of(config, ChallengeSettings)
    for name in settings.metrics:
        metric = METRICS[name]
        outcome = compute(metric, world.real, coded, world.schema, options)
        row = {**facts, "metric": name, "goal": metric.goal, "score": outcome.score, "reason": outcome.reason}
        row["floor"] = _floor(metric, world, coded, options) if settings.floors and facts["run"] == 1 else None
        numbers = settings.printed if released.privacy.unit == own else ()
        rows += [row | reported(numbers, name, facts["epsilon"]), *_parts(dict(facts), outcome)]
    return [*rows, *rounds(settings.rounds, rows, facts)]


def scores_of_sample(config: Config, world: World, share: float, run: int) -> list[JsonDict]:
    """The scores of a random sample of the real rows, on codes: a table of known quality, and no release."""
    settings = settings_of(config, ChallengeSettings)
    rng = np.random.default_rng([settings.sample_seed, round(1e9 * share), run])
    facts: JsonDict = {"dataset": f"sample {share:g}", "epsilon": None, "run": run, "seconds": None}
    facts |= {"promise": f"sample {share:g}: none, true rows as they are"}
    return scores_of_table(config, config, world, options_of(config), facts, sampled(world.real, share, rng))


def options_of(config: Config) -> Options:
    """The settings of the metrics, with the roles of the columns, and the seed."""
    settings = settings_of(config, ChallengeSettings)
    return Options(settings={**config.evaluation.options, **settings.roles}, seed=settings.query_seed)


def _parts(facts: Json, outcome: Outcome) -> list[JsonDict]:
    """The parts of a score that is a mean of several, each with its own number or the reason why it has none."""
    if outcome.result is None or outcome.metric.name not in PARTS:
        return []
    result = outcome.result.to_json()
    rest = {"goal": outcome.metric.goal, "part": True, "floor": None, "reported": None, "place": ""}
    return [
        {
            **facts,
            **rest,
            "metric": name,
            "score": result[name],
            "reason": "" if result[name] is not None else outcome.reason,
        }
        for name in PARTS[outcome.metric.name]
    ]


def _floor(metric: Metric, world: World, synthetic: CodedTable, options: Options) -> float | None:
    """What fresh real records would score, measured once; None where the metric needs more than the tables."""
    if not metric.referable:
        return None
    inputs = Inputs(metric, world.real, synthetic, world.schema, options).of_values()

    def score(a: CodedTable, b: CodedTable) -> float | None:
        return metric.computed(replace(inputs, real=a, synthetic=b))[0]

    return floor(score, inputs.real, synthetic.rows, repeats=1, seed=0, unit=world.subjects).value


@dataclass(frozen=True, eq=False)
class World:
    """The truth of an experiment. NOT private.

    Attributes:
        schema: the table's public facts.
        source: the table that the releases are made from.
        real: its rows in codes; holdout: of these, the rows that a release set aside.
        subjects: a number per row of `real` for its unit; None where every row is one.
    """

    schema: Schema
    source: Source
    real: CodedTable
    holdout: CodedTable | None
    subjects: np.ndarray | None

    def without(self, aside: Flags) -> World:
        """The truth of a release that set these rows aside."""
        rest, held = self.real.parted(aside)
        return replace(self, real=rest, holdout=held, subjects=None if self.subjects is None else self.subjects[~aside])


def values_of(
    real: Source, synthetic: Source, schema: Schema, metrics: Sequence[str], aside: Flags | None
) -> Values | None:
    """Both tables as values, the rows that were set aside as a holdout; None where no metric asks for values.

    Args:
        aside: of each real row, whether the release set it aside; None where it set none aside.
    """
    if not wants_values(metrics):
        return None
    return with_schema({"real": real, "synthetic": synthetic}, schema, lambda *_: None).set_aside(aside)


def sampled(table: CodedTable, share: float, rng: np.random.Generator) -> CodedTable:
    """A random share of the rows without replacement, repeated until the table has its size again. NOT private."""
    chosen = rng.choice(table.rows, max(round(share * table.rows), 1), replace=False)
    return table.at(np.resize(chosen, table.rows))


#: The dataset of a table, before its k.
KIND = "k-anonymous"


def scores_of_anonymous(config: Config, world: World, folder: RunFolder, k: int, run: int) -> list[JsonDict]:
    """The scores of a k-anonymous table of the rows that are not set aside, the same rows for all k of a run."""
    settings = settings_of(config, ChallengeSettings)
    aside = np.random.default_rng([settings.sample_seed, run]).random(world.real.rows) < settings.holdout
    remaining = world.without(aside)
    rng = np.random.default_rng([settings.sample_seed, run, k])
    path = Path(folder.temporary) / f"{KIND}-{k}-{run}.parquet"
    anonymous = generalized(remaining.real, k, rng)
    write_coded(anonymous, world.schema, path, settings.sample_seed, None, 1)
    source = open_with(path, PLAIN, config.limits, folder.temporary)
    values = values_of(world.source, source, world.schema, settings.metrics, aside)
    options = replace(options_of(config), holdout=remaining.holdout, values=values)
    facts: JsonDict = {"dataset": f"{KIND} {k}", "epsilon": None, "run": run, "seconds": None}
    facts |= {"promise": f"{KIND} {k}: that each row is like {k - 1} others; nothing about what somebody knows besides"}
    return scores_of_table(config, config, remaining, options, facts, anonymous)


def generalized(table: CodedTable, k: int, rng: np.random.Generator) -> CodedTable:
    """Rows in groups of at least k that have the same ranges, each row with any value of its group's ranges.

    Mondrian (LeFevre et al. 2006), all columns being quasi-identifiers: a group is split at the median of the column of
    the widest range, relative to all of its codes, that leaves k rows on either side.
    """
    columns = [np.asarray(c).astype(np.int64) for c in table.columns]
    sizes = np.array([max(a.size - 1, 1) for a in table.domain.attributes])
    anonymous = [np.empty_like(c) for c in columns]
    todo = [np.arange(table.rows)]
    while todo:
        group = todo.pop()
        if not group.size:
            continue
        ranges = np.array([(c[group].min(), c[group].max()) for c in columns])
        for place in np.argsort(-np.diff(ranges)[:, 0] / sizes, kind="stable"):
            low = _lower_half(columns[place][group])
            if k <= low.sum() <= group.size - k:
                todo += [group[low], group[~low]]
                break
        else:
            for own, (least, most) in zip(anonymous, ranges, strict=True):
                own[group] = rng.integers(least, most + 1, group.size)
    return CodedTable(table.domain, tuple(m.astype(c.dtype) for m, c in zip(anonymous, table.columns, strict=True)))


def _lower_half(codes: Ints) -> Flags:
    """Codes up to the median, or below it where that parts them more evenly."""
    median = np.sort(codes)[(codes.size - 1) // 2]
    parts: list[Flags] = [codes <= median, codes < median]
    return min(parts, key=lambda part: abs(int(part.sum()) - codes.size / 2))


#: Synthesizers that an experiment knows beside those that a run may use.
FURTHER: dict[str, type[Synthesizer]] = {"mwem": WeightsSpec}
#: The mean total variation distance of the rows from their own targets, the noisy marginals made consistent.
TARGETS = "targets"


def synthesizers_of(base: SynthesisConfig, methods: Mapping[str, Json]) -> dict[str, Synthesizer]:
    """Label → synthesizer; one without a kind has the settings of `synthesis`, but for what it names.

    Raises:
        UserError: an unknown kind or setting, or a value that does not fit.
    """
    synthesizers = {}
    for label, words in methods.items():
        own = {str(k): v for k, v in words.items() if k != "kind"}
        kind = str(words.get("kind", base.kind))
        options = own if "kind" in words else {**base.options, **own}
        if kind in FURTHER:
            names = [f.name for f in fields(FURTHER[kind])]
            fix = f"one of: {', '.join(names)}"
            check_names(own, names, "no setting", where=f"experiment.methods.{label}", fix=fix)
            synthesizers[label] = FURTHER[kind](**own)
        else:
            synthesizers[label] = build_synthesizer(SynthesisConfig(kind, base.rows, base.seed, options))
    return synthesizers


def compared(
    schema: Schema,
    measurements: Measurements,
    synthesizers: Mapping[str, Synthesizer],
    *,
    rows: int | None,
    seed: int | None,
    score: Callable[[CodedTable], list[JsonDict]],
    facts: Json,
) -> list[JsonDict]:
    """Each synthesizer's scores; of one that keeps a record of its passes also the distance from its targets.

    Args:
        score: a table → its rows of scores.
        facts: of all rows; `dataset` and `seconds` are each synthesizer's own.
    """
    scores = []
    for label, spec in synthesizers.items():
        start, rng = time.perf_counter(), np.random.default_rng(seed)
        coarse = for_synthesis(measurements, schema)
        result = synthesize(coarse, spec, rows=rows, rng=rng, zeros=schema.zeros)
        own = {"dataset": label, "seconds": round(time.perf_counter() - start, 2)}
        scores += [row | own for row in score(as_columns(result.table, schema, measurements, rng))]
        if result.record is not None:
            mean = float(np.mean(list(result.record.final.values())))
            scored = {"metric": TARGETS, "goal": "low", "score": mean, "floor": None, "reported": None, "place": ""}
            scores.append({**facts, **own, **scored})
    return scores
