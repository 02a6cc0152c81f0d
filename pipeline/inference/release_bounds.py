"""Bounds on the errors of a release's marginals, and estimates from its answers: a folder in, a table of lines out."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from mechanisms.public.coded_table import CodedTable
from mechanisms.public.domain import Clique
from mechanisms.public.errors import UserError
from mechanisms.public.json_values import Json
from mechanisms.public.marginals import Values, count_cliques, in_batches
from mechanisms.public.release import Measurements
from mechanisms.public.schema.table_schema import Schema
from mechanisms.public.tables.codec import encode_table
from mechanisms.public.tables.formats import released_table
from pipeline.inference import estimates
from pipeline.inference.error_bounds import ErrorBound, error_bound, scale_of
from pipeline.inference.estimate_questions import EstimateQuestion
from pipeline.inference.marginal_estimates import ReleaseEvidence
from pipeline.inference.person_level import LEVELS, at_level
from pipeline.inference.relations import in_words, strongest
from pipeline.release_folder import as_a_column, check_columns, read_release
from pipeline.report.answer_noise import coverage, said_cells
from pipeline.scores.table_sources import open_released
from pipeline.settings.config import LimitsConfig
from pipeline.statement.digests import read_manifest
from pipeline.statement.format_2 import as_fields
from pipeline.statement.words import noted, refuse_part

#: Marginals of more cells are not counted for a bound.
MAX_CELLS = 4_000_000
#: Of wide tables, with more columns and pairs than these, pairs that no answer contains are bound on request alone.
MOST_BOUNDS = 50_000
#: Cells that are counted in one go.
BATCH = 20_000_000
#: What every table of bounds says of itself.
NOTES = (
    "each bound holds for its marginal with 95 % confidence over the noise",
    "against the table as clipping and the schema's bins left it, not against what these took away",
)
#: And estimates of a population, where units have several records.
TOGETHER = "a unit may have several records, which are no independent draws: the error of sampling is larger than that"


def bounds(release: Path, *, marginal: Sequence[str] = (), synthetic: CodedTable | None = None) -> pd.DataFrame:
    """A 95 % bound on the error of each 1- and 2-way marginal of a synthetic table, or of one marginal.

    Guarantee: post-processing of the release; costs no privacy.

    Args:
        release: the release folder of a run.
        marginal: columns of the one marginal; empty: every one and every pair.
        synthetic: the rows of its table, where they are at hand.
    Returns:
        marginal, how, cells, standard_error (of a cell, in records), error_records (Σ |error| at most), error_tvd (at
        most), sources; the worst last. `attrs` has notes, and the strongest relations (`related`) in words.
    Raises:
        UserError: no release, or one without its table, or whose table is a part of the whole; an unknown column; too
            many cells.
    """
    schema, statement, measurements = read_release(release)
    manifest = read_manifest(release)
    refuse_part(None if manifest is None else manifest.given, "bounds")
    table = release / released_table((p.name for p in release.iterdir()), release) if synthetic is None else synthetic
    return table_bounds(schema, statement, measurements, table, marginal=marginal)


def table_bounds(
    schema: Schema,
    statement: Json,
    measurements: Measurements,
    table: Path | CodedTable,
    *,
    marginal: Sequence[str] = (),
) -> pd.DataFrame:
    """`bounds` of a release that is loaded already; `table` is its synthetic table, or the file of that."""
    names = [c.name for c in schema.columns if as_a_column(schema, c.name) and schema.domain[c.name].size > 1]
    if marginal:
        check_columns(schema, "marginal", marginal)
        asked = [schema.domain.canonical(tuple(marginal))]
        if schema.domain.cells(asked[0]) > MAX_CELLS:
            problem = f"{schema.domain.cells(asked[0]):,} cells"
            raise UserError(problem, where="marginal", fix=f"a marginal of at most {MAX_CELLS:,} cells")
        left = 0
    else:
        asked, left = _columns_and_pairs(schema, measurements, names)
    with tempfile.TemporaryDirectory(prefix="bounds-") as work:
        synthetic = table if isinstance(table, CodedTable) else _encoded(table, schema, Path(work))
        lines = list(error_bounds(measurements, synthetic, asked))
        related = in_words(strongest(measurements, synthetic))
    frame = as_frame(schema, lines)
    changed = [c.name for c in schema.columns if not c.constant and not as_a_column(schema, c.name)]
    wide = [f"{left:,} pairs that no answer contains are left out: ask for one with `marginal=[a,b]`"] if left else []
    without = f"no bounds of {', '.join(changed)}: a rule of the schema made what was measured of them"
    frame.attrs["notes"] = [
        *NOTES,
        *said_cells(schema, coverage(measurements).noisy, as_fields(statement)["unit"]["column"]),
        *wide,
        *([without] if changed else []),
    ]
    frame.attrs["related"] = related
    return noted(frame, statement)


def _encoded(table: Path, schema: Schema, work: Path) -> CodedTable:
    return encode_table(
        open_released(table, LimitsConfig(), work / "scan", schema.dialect), schema, workdir=work / "codes"
    )


def _columns_and_pairs(schema: Schema, measurements: Measurements, names: Sequence[str]) -> tuple[list[Clique], int]:
    """What is bound unasked: every column and pair that is not too large; and how many pairs are left out."""
    pairs = list(itertools.combinations(names, 2))
    some = pairs
    if len(names) + len(pairs) > MOST_BOUNDS:
        some = [p for p in pairs if measurements.answers_about(p)]
    every = [*((n,) for n in names), *some]
    return [c for c in every if schema.domain.cells(c) <= MAX_CELLS], len(pairs) - len(some)


def error_bounds(measurements: Measurements, synthetic: CodedTable, cliques: Sequence[Clique]) -> Iterable[ErrorBound]:
    """A bound for each marginal, in the order asked.

    Args:
        synthetic: rows over the table's columns; their names and codes are those of the measured ones.
    """
    evidence, rows = ReleaseEvidence(measurements), max(synthetic.rows, 1)
    scale = scale_of(evidence)
    for batch in in_batches(synthetic.domain, cliques, BATCH):
        for clique, counts in zip(batch, count_cliques(synthetic, batch), strict=True):
            shares: Values = counts / rows
            yield error_bound(evidence, measurements.domain.canonical(clique), shares, scale)


def as_frame(schema: Schema, each_bound: Sequence[ErrorBound]) -> pd.DataFrame:
    """One line per bound, the smallest first."""
    lines = [
        {
            "marginal": " × ".join(b.clique),
            "how": b.how,
            "cells": schema.domain.cells(b.clique),
            "standard_error": np.nan if b.standard_error is None else round(b.standard_error, 2),
            "error_records": round(b.records, 1),
            "error_tvd": round(min(b.tvd + 5e-5, 1.0), 4),  # rounded up
            "sources": "; ".join(" × ".join(s) for s in b.sources),
        }
        for b in sorted(each_bound, key=lambda b: b.tvd)
    ]
    return pd.DataFrame(lines)


def estimate(
    schema: Schema,
    statement: Json,
    measurements: Measurements,
    question: EstimateQuestion,
) -> pd.DataFrame:
    """An estimate for each group from a release, as it was read: see `estimates.estimate`.

    Raises:
        UserError: an impossible question; no measured marginal tells it.
    """
    frame = estimates.estimate(*at_level(schema, measurements, question.level), question)
    together = question.sampling and question.level == LEVELS[0]
    if together and as_fields(statement)["unit"]["max_records"] != 1:
        frame.attrs["notes"].append(TOGETHER)
    return noted(frame, statement)
