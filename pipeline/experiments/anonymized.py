"""Classic anonymization beside synthetic data (ANITA's Figure 1): k-anonymous tables by generalization. No release."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from evaluation.metric import Options
from mechanisms.public.coded_table import CodedTable
from mechanisms.public.json_values import JsonDict
from mechanisms.public.schema.dialect import PLAIN
from pipeline.experiments.challenge_scores import World, scores_of_table, values_of
from pipeline.experiments.challenge_settings import settings_of_challenge
from pipeline.experiments.standin import write_coded
from pipeline.folders import RunFolder
from pipeline.scores.table_sources import declared_dialect, open_with
from pipeline.settings.config import Config

#: The dataset of a table, before its k.
KIND = "k-anonymous"


def scores_of_anonymous(config: Config, world: World, folder: RunFolder, k: int, run: int) -> list[JsonDict]:
    """The scores of a k-anonymous table of the rows that are not set aside, the same rows for all k of a run."""
    settings = settings_of_challenge(config)
    aside = np.random.default_rng([settings.sample_seed, run]).random(world.real.rows) < settings.holdout
    remaining = world.without(aside)
    rng = np.random.default_rng([settings.sample_seed, run, k])
    path = Path(folder.temporary) / f"{KIND}-{k}-{run}.parquet"
    anonymous = generalized(remaining.real, k, rng)
    write_coded(anonymous, world.schema, path, settings.sample_seed, None, 1)
    both = (
        open_with(world.path, declared_dialect(config.data, world.schema.dialect), config.limits, folder.temporary),
        open_with(path, PLAIN, config.limits, folder.temporary),
    )
    values = values_of(*both, world.schema, settings.metrics, aside, lambda *_: None)
    options = Options(settings={**config.evaluation.options, **settings.roles}, seed=settings.query_seed)
    options = replace(options, holdout=remaining.holdout, values=values)
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


def _lower_half(codes: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Codes up to the median, or below it where that parts them more evenly."""
    median = np.sort(codes)[(codes.size - 1) // 2]
    parts: list[NDArray[np.bool_]] = [codes <= median, codes < median]
    return min(parts, key=lambda part: abs(int(part.sum()) - codes.size / 2))
