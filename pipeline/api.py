"""The commands as Python functions; `pipeline.__all__` lists what is public."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Real
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeAlias, overload

import pandas as pd

from evaluation.mgd.aemc import aemc as aemc
from evaluation.score import Scorecard
from mechanisms.public.errors import UserError
from mechanisms.public.files import as_path
from mechanisms.public.members import needed
from mechanisms.public.schema.table_schema import load_schema
from pipeline import synth_again as other
from pipeline.comparison.compared_tables import Comparison as Comparison
from pipeline.comparison.compared_tables import score_several, tables_by_name
from pipeline.frames.fit import CommandResult as CommandResult
from pipeline.frames.fit import check as check
from pipeline.frames.fit import draft as draft
from pipeline.frames.fit import fit as fit
from pipeline.frames.fit import plan as plan
from pipeline.frames.fit import rehearse as rehearse
from pipeline.frames.frame_files import AnySchema, Table, schema_file, table_files
from pipeline.frames.release_object import Release as Release
from pipeline.frames.release_object import load as load
from pipeline.inference import release_bounds
from pipeline.inference.estimate_questions import EstimateQuestion
from pipeline.release_folder import read_release
from pipeline.release_query import query as query
from pipeline.scores import two_tables
from pipeline.settings.compose import compose_config
from pipeline.settings.config import ScoreConfig, SynthConfig, typed
from pipeline.settings.config import load_config as load_config
from pipeline.settings.inputs import NO_SCHEMA, check_release
from pipeline.settings.overrides import overrides_of
from pipeline.stages import Run as Run
from pipeline.stages import run as run
from synthesis.consistency.agree import estimate_total

#: Several tables, in a list or by name.
Tables: TypeAlias = "list[Table] | tuple[Table, ...] | Mapping[str, Table]"


def synthesize(source: Run | Path | str, output: Path | str, *overrides: str) -> Path:
    """A new synthetic table from a run or its release folder, at no new privacy cost; returns the table's path.

    Args:
        source: a Run, or the path of a release folder.
        output: the new folder.
        overrides: as on the command line, e.g. "synthesis=independent", "synthesis.rows=1000".
    """
    config = typed(compose_config("synth", overrides), SynthConfig)
    return other.synthesize(_folder(source), config, as_path(output, "output"), quiet=True)[0]


def _folder(source: Run | Path | str) -> Path:
    return source.folder.release if isinstance(source, Run) else check_release(source)


def bounds(source: Run | Path | str, *, marginal: Sequence[str] = ()) -> pd.DataFrame:
    """A 95 % bound on the error of each 1- and 2-way marginal of a synthetic table, or of one, at no privacy cost.

    Args:
        source: a Run, or the path of a release folder.
        marginal: columns of the one marginal.
    Returns:
        marginal, how, cells, standard_error and error_records (in records), error_tvd, sources.
    """
    return release_bounds.bounds(_folder(source), marginal=marginal)


def estimate(
    source: Run | Path | str,
    what: str,
    column: str | None = None,
    other: str | None = None,
    *,
    by: str | Sequence[str] = (),
    **more: Any,
) -> pd.DataFrame:
    """A count, share, mean, quantile, correlation, odds ratio or test, with 95 % intervals that include the noise.

    Args:
        source: a Run, or the path of a release folder.
        what: count, proportion, mean, median, quantile, equal_means; of two columns correlation or odds_ratio.
        by: columns: a line for each group of their values.
        more: value, quantile, within_bin (worst or midpoint), sampling, unmeasured (refuse or bounds), level (records,
            persons): as of `query`.
    Returns:
        the groups, estimate, standard_error, low, high, how; `.attrs["notes"]` says what the interval holds.
    Raises:
        UserError: an impossible question; no measured marginal tells it.
    """
    return release_bounds.estimate(*read_release(_folder(source)), EstimateQuestion(what, column, other, by, **more))


def itemsets(source: Run | Path | str, least: float, *, items: Sequence[str] | None = None) -> pd.DataFrame:
    """Frequent itemsets by a release's noisy answers, at no privacy cost (Li et al. 2021b, section 3.1).

    Args:
        source: a Run, or the path of a release folder.
        least: the part of the rows that an itemset needs, between 0 and 1.
        items: binary columns (their second value means that a row has the item); None: all of them.
    Returns:
        items, count and stddev (in records) of each itemset that some measured marginal holds, most frequent first.
    """
    if not isinstance(least, Real) or not 0 <= least <= 1:
        raise UserError(f"got {least}", where="least", fix="a part of the rows, between 0 and 1")
    places = ("itemsets", "marginals of the release (`query`)")
    frequent_itemsets = needed("mechanisms.selection.papers.privbasis:frequent_itemsets", "this answer", *places)
    schema, _, measurements = read_release(_folder(source))
    binary = [c.name for c in schema.columns if c.value_codes == 2]
    items_used = schema.domain.canonical(binary if items is None else items)
    frequent = frequent_itemsets(measurements, items_used, least=least * estimate_total(measurements))
    rows = [(list(i.items), i.count, i.stddev) for i in frequent]
    return pd.DataFrame(rows, columns=["items", "count", "stddev"])


@overload
def score(
    real: Table,
    synthetic: Table,
    schema: AnySchema | None = None,
    *overrides: str,
    holdout: Table | None = None,
    units: Table | None = None,
    **settings: Any,
) -> Scorecard: ...


@overload
def score(
    real: Table,
    synthetic: Tables,
    schema: AnySchema | None = None,
    *overrides: str,
    holdout: Table | None = None,
    units: Table | None = None,
    **settings: Any,
) -> Comparison: ...


def score(
    real: Table,
    synthetic: Table | Tables,
    schema: AnySchema | None = None,
    *overrides: str,
    holdout: Table | None = None,
    units: Table | None = None,
    **settings: Any,
) -> Scorecard | Comparison:
    """Scores of a synthetic table against a real one, or of several, sorted; NOT private.

    Args:
        real: a data frame, or the path of a CSV, compressed CSV or Parquet table.
        synthetic: the other table, likewise; or several, in a list or by name: they are compared.
        schema: a schema's path, the name of a ready one, or a mapping as in YAML; None: that of the release that the
            synthetic table lies in; else, or with "none", the kinds of the columns are read from the tables.
        holdout: real records that were set aside before the synthetic table was made, likewise.
        units: one row per person beside the real records, likewise; joined by the unit of the schema, or by the column
            of `evaluation={"subject": …}`. Its column of ids, where it has another name: `**{"units.id": "id"}`.
        overrides: as on the command line, e.g. "evaluation.max_marginals=50".
        settings: the same as keywords, e.g. metrics=["mgd", "tvd"]; or of one marginal metrics=["mgd"], detail="all",
            evaluation={"targets": [{"attributes": ["age", "job"]}]}: `card.mgd`, and what it is made of, `card.dives`.
    """
    config = typed(compose_config("score", [*overrides, *overrides_of(settings)]), ScoreConfig)
    several = tables_by_name(synthetic) if isinstance(synthetic, list | tuple | Mapping) else None
    tables = {"synthetic": synthetic}
    files = tables if several is None else {f"synthetic{i}": t for i, t in enumerate(several.values())}
    given: dict[str, Any] = {"real": real, **files, "holdout": holdout, "units": units}
    with TemporaryDirectory(prefix="schema-") as place:
        path = None if schema is None or schema == NO_SCHEMA else schema_file(schema, Path(place))
        config.schema = None if schema is None else str(path or NO_SCHEMA)
        facts = None if path is None else load_schema(path)
        with table_files(given, facts) as paths:
            config.real, config.holdout = paths["real"], paths.get("holdout")
            config.units.path = paths.get("units", config.units.path)
            if several is None:
                config.synthetic = paths["synthetic"]
                return two_tables.score(config, quiet=True)
            named = zip(several, files, strict=True)
            return score_several(config, {name: paths[file] for name, file in named}, quiet=True)
