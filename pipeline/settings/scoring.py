"""Settings of the scores → a spec: which metrics, which columns play which role, what else they may use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import yaml

from evaluation.catalogue import MAP, METRICS
from evaluation.mgd.aemc import SOLVERS, Solver
from evaluation.mgd.presets import PresetSpec, preset_targets
from evaluation.mgd.targets import read_targets
from evaluation.registry import NEEDS, Options
from evaluation.score import ON_TOP, ScoreSpec
from mechanisms.public.errors import UserError, did_you_mean
from mechanisms.public.extras import need_extra
from mechanisms.public.schema.table_schema import Schema
from pipeline.conf_folder import CONF, SCHEMAS
from pipeline.measuring.adaptive_plans import one_of
from pipeline.settings.config import EvaluationConfig

#: Seconds on some hundred thousand rows, without any setting.
QUICK = ("mgd", "tvd", "anita_1way", "anita_2way", "anita_3way", "correlation", "density", "range_2018")
#: In a run on more rows than this, the quick metrics are those on top alone: the others cost many times the synthesis.
MANY_ROWS = 5_000_000
#: As quick, where time, segment and kind are known.
QUICK_MAP = ("range_query", "pie_chart")
#: Columns of the schema that play a role; the subject is a column of the file, and may be left out of the schema.
COLUMN_ROLES = ("time", "segment", "kind", "to", "group", "sex", "income", "order", "longitude", "latitude")
ROLES = (*COLUMN_ROLES, "subject")


def ready_roles(schema: Schema, path: Path) -> dict[str, str]:
    """The roles that the ready table of this schema declares in conf/data; none for a schema of one's own."""
    entry = CONF / "data" / f"{schema.name}.yaml"
    if path.resolve().parent != SCHEMAS or not entry.is_file():
        return {}
    return dict(yaml.safe_load(entry.read_text(encoding="utf-8")).get("roles") or {})


def known_roles(config: EvaluationConfig, declared: Mapping[str, str] | None, schema: Schema) -> dict[str, str]:
    """Role → column: the settings', else the declared ones, as far as the schema has their columns.

    Raises:
        UserError: a declared role that is none.
    """
    declared = declared or {}
    for name in declared:
        one_of(name, ROLES, "data.roles")
    there = {role: column for role, column in declared.items() if role == "subject" or column in schema.domain}
    named = {role: getattr(config, role) or there.get(role) for role in ROLES}
    return {role: column for role, column in named.items() if column}


def chosen_metrics(wanted: Any, options: Options) -> tuple[str, ...]:
    """The metrics' names: quick, all, or a list.

    Raises:
        UserError: an unknown metric, with a suggestion.
    """
    if wanted == "quick":
        return (*QUICK, *(QUICK_MAP if all(getattr(options, role) for role in MAP) else ()))
    if wanted == "all":
        return tuple(METRICS)
    names = [wanted] if isinstance(wanted, str) else wanted
    if not isinstance(names, list) or not names:
        fix = "quick, all, or a list: 'evaluation.metrics=[mgd,tvd]'"
        raise UserError(f"got {wanted!r}", where="evaluation.metrics", fix=fix)
    return tuple(one_of(str(name), tuple(METRICS), "evaluation.metrics") for name in names)


def need_libraries(names: Sequence[str]) -> None:
    """UserError where a metric needs an optional library that is not installed."""
    for name in names:
        if METRICS[name].library:
            need_extra(METRICS[name].library, f"evaluation.metrics, {name}")


def build_options(config: EvaluationConfig, schema: Schema, roles: Mapping[str, str]) -> Options:
    """What the metrics may use, from the settings alone.

    Raises:
        UserError: a column that the schema has not; a number out of range.
    """
    for role in COLUMN_ROLES:
        if role in roles:
            _check_column(roles[role], schema, f"evaluation.{role}")
    for setting in ("fixed", "predict", "distance_columns"):
        for name in getattr(config, setting):
            _check_column(name, schema, f"evaluation.{setting}")
    for setting, least in (("buckets", 2), ("max_rows", 1)):
        if getattr(config, setting) < least:
            fix = f"a whole number of at least {least}"
            raise UserError(f"got {getattr(config, setting)}", where=f"evaluation.{setting}", fix=fix)
    why = {n: f"{NEEDS[n]}: evaluation.{n}=COLUMN" for n in NEEDS if n in ROLES}
    return Options(
        **{role: roles.get(role) for role in ("time", "segment", "kind", "to", "group", "sex", "income")},  # type: ignore[arg-type]
        fixed=tuple(config.fixed),
        targets=tuple(config.predict) or None,
        columns=tuple(config.distance_columns) or None,
        regions=_regions(config.regions, schema, roles.get("segment")),
        buckets=config.buckets,
        max_rows=config.max_rows,
        why=why | {"holdout": f"{NEEDS['holdout']}: holdout=TABLE, or evaluation.holdout=0.2 of a run"},
        seed=config.seed,
    )


def build_places(
    config: EvaluationConfig, declared: Mapping[str, str] | None, schema: Schema
) -> tuple[str, str] | None:
    """The columns of longitude and latitude, if both are known."""
    roles = known_roles(config, declared, schema)
    return (roles["longitude"], roles["latitude"]) if {"longitude", "latitude"} <= roles.keys() else None


def build_holdout(config: EvaluationConfig) -> float | None:
    """The share of units that is set aside; None for none.

    Raises:
        UserError: no share.
    """
    share = config.holdout
    if share is not None and not 0 < share < 1:
        fix = "a share of the units between 0 and 1, or null"
        raise UserError(f"got {share}", where="evaluation.holdout", fix=fix)
    return share


def _check_column(name: str, schema: Schema, where: str) -> None:
    if name not in schema.domain:
        fix = did_you_mean(name, schema.domain.names) or f"one of {', '.join(schema.domain.names)}"
        raise UserError(f"no column {name!r} in the schema", where=where, fix=fix)


def _regions(level: str | None, schema: Schema, segment: str | None) -> dict[str, str] | None:
    """Each segment's node at a level of its hierarchy; None for the segments themselves."""
    if level is None or segment is None:
        return None
    tree = schema[segment].hierarchy
    nodes = tree.level(level).nodes
    return {leaf: nodes[i] for leaf, i in zip(tree.leaves, tree.nodes_of(level), strict=True)}


def affordable(spec: ScoreSpec, rows: int) -> ScoreSpec:
    """The same, or on a very large table, where the metrics are the quick ones, those on top alone."""
    if rows <= MANY_ROWS or not set(QUICK) <= set(spec.metrics) <= {*QUICK, *QUICK_MAP}:
        return spec
    return replace(spec, metrics=ON_TOP)


def build_scores(config: EvaluationConfig, schema: Schema, roles: Mapping[str, str] | None = None) -> ScoreSpec:
    """What to score.

    Args:
        roles: which columns are the time, the segment …, where the settings name none.

    Raises:
        UserError: settings that cannot be, or that do not fit the schema.
    """
    if config.targets is not None and config.preset != "kway":
        fix = "drop evaluation.preset, or evaluation.targets"
        raise UserError("a preset and an own list of marginals", where="evaluation.targets", fix=fix)
    if config.targets is not None:
        given = _from_file(config.targets) if isinstance(config.targets, str) else config.targets
        targets = read_targets(schema, given, delta=config.delta)
    else:
        preset = PresetSpec(
            config.preset, tuple(config.attributes), tuple(config.k), config.max_marginals, config.delta, config.seed
        )
        targets = preset_targets(schema, preset)
    solver = cast(Solver, one_of(config.solver, SOLVERS, "evaluation.solver"))
    options = build_options(config, schema, known_roles(config, roles, schema))
    names = chosen_metrics(config.metrics, options)
    need_libraries(names)
    return ScoreSpec(
        targets,
        alpha=config.alpha,
        solver=solver,
        metrics=names,
        options=options,
        references=config.references,
    )


def _from_file(path: str) -> object:
    """The content of a YAML file of target marginals."""
    try:
        return yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        fix = "a path of a YAML file, or a list"
        raise UserError(f"cannot read {path!r}: {error.strerror}", where="evaluation.targets", fix=fix) from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        fix = "a YAML list of target marginals in UTF-8"
        raise UserError(f"{path!r} is not well formed", where="evaluation.targets", fix=fix) from error
