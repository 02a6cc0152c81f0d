"""MGD of two tables from Python, and what one of its marginals is made of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from evaluation.metric import Options
from evaluation.metrics import METRICS
from evaluation.mgd.deep_dive import DeepDive
from evaluation.mgd.deep_dive import deep_dive as dive
from evaluation.mgd.marginal_difference import MGDResult
from evaluation.mgd.marginal_difference import mgd as score_mgd
from evaluation.mgd.targets import Targets
from mechanisms.public.coded_table import CodedTable
from mechanisms.public.schema.table_schema import Schema, load_schema
from pipeline.frames.frame_files import AnySchema, Table, schema_file
from pipeline.scores import two_tables
from pipeline.settings.own_settings import typed_settings
from pipeline.stage_bars import Stages


def mgd(
    real: Table,
    synthetic: Table,
    schema: AnySchema,
    targets: Sequence[Mapping[str, Any]] | str = "kway",
    **settings: Any,
) -> MGDResult:
    """MGD of a synthetic table against the truth (Li et al. 2021a); 0 is perfect; NOT private.

    Args:
        real: a data frame, or the path of a CSV, compressed CSV or Parquet table.
        synthetic: the other table, likewise.
        schema: a schema's path, the name of a ready one, or a mapping as in YAML.
        targets: a preset (kway, thirds, located, pie, pums), or a list such as
            [{"attributes": ["month", {"city": "state"}], "weights": {"month": 1}, "delta": 2, "weight": 0.5}].
        settings: those of MGD (`MgdSettings`): attributes, k, max_marginals, delta, alpha, solver; and the seed.
    Returns:
        the score, and per marginal its AEMC; `.frame()` is a data frame, the worst marginal first.
    """
    with _opened(real, synthetic, schema, targets, settings) as (both, coded, own, marginals):
        return score_mgd(*both, coded, marginals, alpha=own["alpha"], solver=own["solver"])


def deep_dive(
    real: Table,
    synthetic: Table,
    schema: AnySchema,
    target: Mapping[str, Any],
    *,
    top: int = 10,
    **settings: Any,
) -> DeepDive:
    """What one marginal's AEMC is made of, as data frames: per attribute, slice and bin, and where mass went.

    Args:
        target: one entry of the list that `mgd` takes.
        top: how many bins and movements.
    """
    with _opened(real, synthetic, schema, [target], settings) as (both, coded, own, marginals):
        (chosen,) = marginals.marginals
        return dive(*both, coded, chosen, alpha=own["alpha"], top=top)


@contextmanager
def _opened(
    real: Table,
    synthetic: Table,
    schema: AnySchema,
    targets: Sequence[Mapping[str, Any]] | str,
    settings: Mapping[str, Any],
) -> Iterator[tuple[tuple[CodedTable, CodedTable], Schema, Mapping[str, Any], Targets]]:
    """The true and the synthetic table in codes, the schema of these, the settings of MGD and its marginals."""
    with TemporaryDirectory(prefix="schema-") as place:
        facts = load_schema(schema_file(schema, Path(place)))
    given = {**settings, **({"preset": targets} if isinstance(targets, str) else {"targets": list(targets)})}
    seed = given.pop("seed", 0)
    options = Options(settings=typed_settings(given), seed=seed)
    marginals = METRICS["mgd"].prepared(options, facts)
    with two_tables.encoded({"real": real, "synthetic": synthetic}, facts, Stages(quiet=True)) as (coded, tables):
        yield (tables["real"], tables["synthetic"]), coded, options.settings, marginals
