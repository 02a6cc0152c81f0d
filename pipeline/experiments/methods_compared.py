"""Several synthesizers on the noisy answers of one release, scored with the same metrics. NOT private."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import fields

import numpy as np

from mechanisms.public.coded_table import CodedTable
from mechanisms.public.errors import check_names
from mechanisms.public.json_values import Json, JsonDict
from mechanisms.public.release import Measurements
from mechanisms.public.schema.table_schema import Schema
from pipeline.settings.config import SynthesisConfig
from pipeline.settings.methods import build_synthesizer
from synthesis.contract import Synthesizer
from synthesis.numbers.value_shapes import as_columns, for_synthesis
from synthesis.papers.multiplicative_weights import WeightsSpec
from synthesis.synthesize import synthesize

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
