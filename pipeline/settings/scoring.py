"""Settings of the scores → a spec: which metrics, which columns play which role, what else they may use."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from evaluation.metric import ROW_FACTS, Options, check_columns, unmet
from evaluation.metrics import METRICS, ON_TOP, ScoreSpec, column_roles, declared_settings
from mechanisms.public.errors import UserError, one_of, require_columns
from mechanisms.public.members import absent_extra, need_extra
from mechanisms.public.schema.table_schema import Schema
from pipeline.conf_folder import CONF, SCHEMAS
from pipeline.settings.config import Config, EvaluationConfig

#: In a run on more rows than this, the quick metrics are those on top alone: the others cost many times the synthesis.
MANY_ROWS = 5_000_000
#: A column with more values makes no groups that anybody would read.
MOST_GROUPS = 50
#: Pairs that a report is asked to draw, at most.
MOST_PAIRS = 20
#: Columns of the schema in roles that no single metric declares.
SHARED_ROLES = ("order", "longitude", "latitude")


def role_names() -> tuple[str, ...]:
    """Every role that a column may play; the subject is a column of the file, and may be left out of the schema."""
    return (*column_roles(), *SHARED_ROLES, "subject")


def ready_roles(schema: Schema, path: Path) -> dict[str, str]:
    """The roles that the ready table of this schema declares in conf/data; none for a schema of one's own."""
    entry = CONF / "data" / f"{schema.name}.yaml"
    if path.resolve().parent != SCHEMAS or not entry.is_file():
        return {}
    return dict(yaml.safe_load(entry.read_text(encoding="utf-8")).get("roles") or {})


def roles_of(config: EvaluationConfig, declared: Mapping[str, str] | None, schema: Schema | None) -> dict[str, str]:
    """Role → column: the settings', else the declared ones as far as the schema has their columns, else its unit's.

    Raises:
        UserError: a declared role that is none.
    """
    declared, names = declared or {}, role_names()
    for name in declared:
        one_of(name, names, "data.roles")
    there = {r: column for r, column in declared.items() if r == "subject" or not schema or column in schema.domain}
    given = {**config.options, **{role: getattr(config, role) for role in (*SHARED_ROLES, "subject")}}
    unit = None if schema is None else schema.rules.unit
    own = {} if unit is None else {"subject": unit.column} | ({"order": unit.order[0]} if unit.order else {})
    named = {role: given.get(role) or there.get(role) or own.get(role) for role in names}
    return {role: column for role, column in named.items() if column}


def asked_metrics(chosen: Any, met: Collection[str] = (), *, report: bool = False) -> tuple[str, ...]:
    """The metrics' names: quick, all, or a list; of quick those whose needs are met.

    Args:
        report: of two tables, which adds metrics to the quick ones: they take long on samples of declared size.
    Raises:
        UserError: an unknown metric, with a suggestion.
    """
    if chosen == "quick":
        added = {n for n, m in METRICS.items() if report and m.reported and not absent_extra(m.library)}
        return tuple(n for n, m in METRICS.items() if (m.quick or n in added) and {*m.needs} <= {*met})
    if chosen == "all":
        return tuple(METRICS)
    names = [chosen] if isinstance(chosen, str) else chosen
    if not isinstance(names, list) or not names:
        fix = "quick, all, or a list: 'evaluation.metrics=[mgd,tvd]'"
        raise UserError(f"got {chosen!r}", where="evaluation.metrics", fix=fix)
    return tuple(METRICS[one_of(str(name), METRICS, "evaluation.metrics")].name for name in names)


def quick_metrics() -> tuple[str, ...]:
    """Those that are computed without being asked for, where the table has their columns."""
    return tuple(name for name, metric in METRICS.items() if metric.quick)


def with_subjects(spec: ScoreSpec, chosen: Any) -> ScoreSpec:
    """The same, for tables that tell the subject of each row: the quick metrics that need it join the other quick ones.

    Args:
        chosen: `evaluation.metrics`.
    """
    if chosen != "quick":
        return spec
    more = (n for n in quick_metrics() if unmet(METRICS[n], spec.options) == ["subject"] and n not in spec.metrics)
    return replace(spec, metrics=(*spec.metrics, *more))


def _build_options(
    config: EvaluationConfig, schema: Schema, roles: Mapping[str, str], *, prepare: bool = True
) -> Options:
    """What the metrics may use, from the settings alone: those of every metric are checked, asked for or not."""
    for role in roles.keys() - {"subject"}:
        require_columns([roles[role]], schema.domain.names, where=f"evaluation.{role}")
    unit = schema.rules.unit
    persons = {} if unit is None else {"fixed": [*unit.constant], "most_records": unit.max_records}
    settings = (
        config.options
        | {k: v for k, v in persons.items() if not config.options.get(k)}
        | {role: roles[role] for role in column_roles() if role in roles}
    )
    options = Options(settings=settings, why=_ways(), seed=config.seed)
    ready = {}
    for metric in METRICS.values():
        check_columns(options.own(metric.settings), schema)
        if prepare and metric.prepare is not None:
            ready[metric.name] = metric.prepared(options, schema)
    return replace(options, ready=ready)


def _ways() -> dict[str, str]:
    """What each need is, and the setting that meets it."""
    columns = {role: declared_settings()[role].doc for role in column_roles()}
    ways = {role: f"{doc}: evaluation.{role}=COLUMN" for role, doc in columns.items()}
    ways["subject"] = f"{ROW_FACTS['subject']}: evaluation.subject=COLUMN"
    ways["holdout"] = f"{ROW_FACTS['holdout']}: holdout=TABLE, or evaluation.holdout=0.2 of a run"
    return ways


def build_places(
    config: EvaluationConfig, declared: Mapping[str, str] | None, schema: Schema
) -> tuple[str, str] | None:
    """The columns of longitude and latitude, if both are known."""
    roles = roles_of(config, declared, schema)
    return (roles["longitude"], roles["latitude"]) if {"longitude", "latitude"} <= roles.keys() else None


def affordable(spec: ScoreSpec, rows: int) -> ScoreSpec:
    """The same, or on a very large table, where the metrics are the quick ones, those on top alone."""
    quick = quick_metrics()
    always = {name for name in quick if not METRICS[name].needs}
    if rows <= MANY_ROWS or not always <= set(spec.metrics) <= set(quick):
        return spec
    return replace(spec, metrics=ON_TOP)


def build_scores(
    config: EvaluationConfig,
    schema: Schema,
    roles: Mapping[str, str] | None = None,
    *,
    report: Collection[str] | None = None,
    prepare: bool = True,
) -> ScoreSpec:
    """What to score.

    Args:
        prepare: also what metrics list before they compute, such as all marginals.
        roles: which columns are the time, the segment …, where the settings name none.
        report: for a report of two tables, what they meet of the metrics' needs; it adds metrics to the quick ones.

    Raises:
        UserError: settings that cannot be, or that do not fit the schema.
    """
    options = _build_options(config, schema, roles_of(config, roles, schema), prepare=prepare)
    met = {n for m in METRICS.values() for n in m.needs if n not in unmet(m, options)} | {*(report or ())}
    names = asked_metrics(config.metrics, met, report=report is not None)
    for name in () if config.metrics == "all" else names:  # of all metrics it is left out, and says why
        if METRICS[name].library:
            need_extra(METRICS[name].library, f"evaluation.metrics, {name}")
    groups = _check_groups(config.groups, schema)
    options = replace(options, pairs=_check_pairs(config.pairs, schema))
    return ScoreSpec(metrics=names, options=options, references=config.references, groups=groups)


def scores_of_run(
    config: Config, schema: Schema, *, prepare: bool = True
) -> tuple[ScoreSpec | None, tuple[str, str] | None]:
    """What a run scores, None where it does not, and the columns of longitude and latitude; as of `build_scores`."""
    own, roles = config.evaluation, config.data.roles
    return build_scores(own, schema, roles, prepare=prepare) if own.enabled else None, build_places(own, roles, schema)


def _check_groups(names: Any, schema: Schema) -> tuple[str, ...]:
    """The columns of `evaluation.groups`."""
    where, fix = "evaluation.groups", "a list of columns with few values: 'evaluation.groups=[department]'"
    names = [names] if isinstance(names, str) else names
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise UserError(f"got {names!r}", where=where, fix=fix)
    require_columns(names, schema.domain.names, where=where)
    for name in names:
        if schema[name].size > MOST_GROUPS:
            problem = f"column {name!r} has {schema[name].size:,} values, and groups of at most {MOST_GROUPS} are shown"
            raise UserError(problem, where=where, fix=fix)
    return tuple(dict.fromkeys(names))


def _check_pairs(pairs: Any, schema: Schema) -> tuple[tuple[str, str], ...]:
    """The pairs of `evaluation.pairs`, each once."""
    where, fix = "evaluation.pairs", "a list of pairs of columns: 'evaluation.pairs=[[age,income]]'"
    if not isinstance(pairs, list | tuple) or len(pairs) > MOST_PAIRS:
        raise UserError(f"got {pairs!r}", where=where, fix=f"{fix}, at most {MOST_PAIRS}")
    if not pairs:
        return ()
    from evaluation.pictures.pair_maps import COUNTED  # pictures load what settings alone do not need

    for pair in pairs:
        if not isinstance(pair, list | tuple) or len(pair) != 2 or not all(isinstance(n, str) for n in pair):
            raise UserError(f"got {pair!r}", where=where, fix=fix)
        require_columns(pair, schema.domain.names, where=where)
        if pair[0] == pair[1]:
            raise UserError(f"{pair[0]!r} with itself is no pair", where=where, fix=fix)
        if (cells := schema.domain.cells(tuple(pair))) > COUNTED:
            problem = f"{' × '.join(pair)} has {cells:,} cells, and pairs of at most {COUNTED:,} are drawn"
            raise UserError(problem, where=where, fix="columns of fewer values")
    return tuple(dict.fromkeys((pair[0], pair[1]) for pair in pairs))
