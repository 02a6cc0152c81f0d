"""All pictures of a report that read rows: computed from samples of declared size, and bounded; NOT private."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evaluation.metric import Options
from evaluation.outcome import plain
from evaluation.pictures.densities import densities
from evaluation.pictures.pair_maps import chosen_pairs, pair_maps
from evaluation.pictures.principal_axes import principal_axes
from evaluation.pictures.sequence_look import sequence_look
from evaluation.pictures.validity import broken_rules, valid_columns
from evaluation.score import Scorecard
from evaluation.tvd import Tvd
from mechanisms.public.coded_table import CodedTable
from mechanisms.public.schema.table_schema import Schema


def pictures(
    card: Scorecard,
    tables: tuple[CodedTable, CodedTable],
    schema: Schema,
    options: Options,
    *,
    declared: Schema,
    names: Sequence[str] = (),
    values: tuple[NDArray[np.float64], NDArray[np.float64]] | None = None,
) -> dict[str, Any]:
    """What there is to draw of the two tables, by the name of the picture.

    Args:
        card: the scores, which tell the pairs.
        tables: real and synthetic, over the schema's domain.
        declared: the schema before codes for values outside joined it, with its rules.
        names, values: columns of numbers and dates, and values of some records of both tables.
    """
    real, synthetic = tables
    parts: dict[str, Any] = {
        "axes": _axes(real, synthetic, options),
        "pair_maps": _pairs(card, options.whole or real, synthetic, schema, options.pairs),
        "densities": None if values is None else densities(names, values),
        "valid": None if options.values is None else valid_columns(options.values),
        "rules": broken_rules(declared.rules, declared.domain, real, synthetic),
        "sequences": _sequences(real, synthetic, options),
    }
    return dict(plain({name: part for name, part in parts.items() if part}))


def _axes(real: CodedTable, synthetic: CodedTable, options: Options) -> dict[str, Any] | None:
    tables: Mapping[str, CodedTable | None]
    tables = {"real": real, "synthetic": synthetic, "holdout": options.holdout}
    if options.values is not None:
        tables = options.values.tables
    same = {n: t for n, t in tables.items() if t is not None and t.domain == tables["real"].domain}  # type: ignore[union-attr]
    return principal_axes(same, seed=options.seed)


def _pairs(
    card: Scorecard, real: Any, synthetic: CodedTable, schema: Schema, asked: Sequence[tuple[str, str]]
) -> list[dict[str, Any]]:
    outcome = card.outcomes.get("tvd")
    distances = outcome.result.marginals if outcome is not None and isinstance(outcome.result, Tvd) else ()
    strong = card.correlations.get("cramers_v", {"names": [], "real": []})
    return pair_maps(chosen_pairs(distances, strong["names"], strong["real"], asked), real, synthetic, schema)


def _sequences(real: CodedTable, synthetic: CodedTable, options: Options) -> dict[str, Any] | None:
    if options.subject is None:
        return None
    tables = (real, synthetic)
    if options.values is not None:
        tables = (options.values.tables["real"], options.values.tables["synthetic"])
    return sequence_look(tables, options.subject, options.order, seed=options.seed)
