"""Selections that public facts decide: covering designs, and the choices that a public table suggests."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mechanisms.accounting.accountants import accountant_class
from mechanisms.accounting.plan import Request, make_plan
from mechanisms.public.codec import encode_columns
from mechanisms.public.covering import PRECISE, covering, random_views, strength
from mechanisms.public.dense import combined, dense, tradeoff
from mechanisms.public.domain import Clique, Domain
from mechanisms.public.engine import open_table
from mechanisms.public.engineering import engineer
from mechanisms.public.errors import UserError, did_you_mean
from mechanisms.public.groups import grouped, within
from mechanisms.public.marginals import count_cliques
from mechanisms.public.noise_kinds import possible_kinds
from mechanisms.public.schema import Schema
from mechanisms.public.table import CodedTable
from mechanisms.public.tree import pairs
from mechanisms.public.units import Neighbouring
from mechanisms.public.workload import Workload
from pipeline.config import Config, SelectionConfig

#: Memory for reading a public table.
READING_BYTES = 1_000_000_000
#: A public table in which more than this part of a column's values has no place in the schema is of another schema.
STRANGE = 0.2


def decided(selection: SelectionConfig) -> bool:
    """Whether public facts alone decide which marginals are measured."""
    if selection.kind == "priview":
        return selection.design == "random" or selection.t is not None or selection.rows is not None
    return selection.kind in ("fixed", "public") or (selection.kind == "groups" and selection.public is not None)


def chosen_workload(config: Config, schema: Schema, *, max_records: int) -> Workload:
    """The marginals that public facts choose; every column is in one of them where its size allows.

    Raises:
        UserError: settings out of range, no public table, or one of another schema.
    """
    domain, selection = schema.measured, config.selection
    if selection.kind == "priview":
        joint = Domain(tuple(a for a in domain.attributes if a.name not in schema.engineering.alone))
        chosen = list(_views(config, joint, max_records)) if len(joint) else []
    else:
        chosen = _from_table(config, schema, max_records)
    held = {n for c in chosen for n in c}
    cliques = sorted({*chosen, *((n,) for n in domain.names if n not in held)}, key=lambda c: (len(c), domain.axes(c)))
    return Workload(tuple(cliques), (1.0,) * len(cliques))


def designs(domain: Domain, selection: SelectionConfig) -> tuple[tuple[Clique, ...], ...]:
    """The covering designs among which the number of rows decides, t = 2 first."""
    if selection.design not in ("greedy", "random"):
        fix = f"{did_you_mean(selection.design, ['greedy', 'random'])} one of: greedy, random".strip()
        raise UserError(f"got {selection.design!r}", where="selection.design", fix=fix)
    if selection.view_cells < 2:
        fix = "a whole number of at least 2; 256 for 8 binary columns"
        raise UserError(f"got {selection.view_cells}", where="selection.view_cells", fix=fix)
    limits = {"view_cells": selection.view_cells, "max_cells": selection.max_cells}
    if selection.t is not None:
        return (covering(domain, selection.t, **limits),)
    if len(domain) < 2:
        return (covering(domain, 1, **limits),)
    two = covering(domain, 2, **limits)
    return (two, covering(domain, 3, **limits, tries=1)) if len(domain) > 2 else (two,)


def precise_design(
    domain: Domain, found: tuple[tuple[Clique, ...], ...], unit: float, rows: float
) -> tuple[Clique, ...]:
    """The design of the largest t whose noise is small against the rows (PriView's rule)."""
    precise = [v for v in found[1:] if strength(domain, v, unit, rows) <= PRECISE]
    return precise[-1] if precise else found[0]


def _views(config: Config, domain: Domain, max_records: int) -> tuple[Clique, ...]:
    selection = config.selection
    if selection.rows is not None and selection.rows < 1:
        raise UserError(f"got {selection.rows}", where="selection.rows", fix="the number of rows, about, or null")
    if selection.design == "random":
        count = len(designs(domain, selection)[0]) if selection.views is None else selection.views
        return random_views(domain, count, view_cells=selection.view_cells)
    unit = float(unit_noise(config, domain, max_records)(np.ones(1))[0]) * math.sqrt(math.pi / 2)
    return precise_design(domain, designs(domain, selection), unit, float(selection.rows or 0))


def unit_noise(
    config: Config, domain: Domain, max_records: int
) -> Callable[[NDArray[np.float64]], NDArray[np.float64]]:
    """The mean absolute noise of a marginal, in records, from its share of the whole budget."""
    privacy, accountant = config.privacy, accountant_class(config.privacy.accountant)
    kinds = possible_kinds(config.mechanism.kind, delta=privacy.delta)
    plan = make_plan(
        domain,
        [Request((domain.names[0],))],
        mechanism=accountant.natural_noise if accountant.natural_noise in kinds else kinds[0],
        accountant=accountant.kind,
        epsilon=privacy.epsilon,
        delta=privacy.delta,
        neighbouring=Neighbouring(privacy.neighbouring),
        max_records=max_records,
    )
    mean = plan.measurements[0].event.mean_abs
    return lambda shares: np.asarray(mean / plan.accountant.strength(shares))


def _from_table(config: Config, schema: Schema, max_records: int) -> list[Clique]:
    """DenseMarg on the exact distances of a public table, which costs nothing."""
    selection, domain = config.selection, schema.measured
    if selection.public is None:
        fix = "selection.public=FILE, a table of the same columns that is public"
        raise UserError("no public table given", where="selection.public", fix=fix)
    joint = [n for n in domain.names if n not in schema.engineering.alone]
    candidates = pairs(domain, joint, selection.max_cells)
    if len(joint) > 1 and not candidates:
        fix = "raise it, or use coarser bins in the schema"
        raise UserError("no pair of columns is small enough", where="selection.max_cells", fix=fix)
    with tempfile.TemporaryDirectory() as folder:
        table = public_table(selection.public, selection.delimiter, schema, Path(folder))
        scale = (selection.rows or table.rows) / table.rows
        sides = {
            n: c * scale for n, c in zip(domain.names, count_cliques(table, [(n,) for n in domain.names]), strict=True)
        }
        exact = [c * scale for c in count_cliques(table, candidates)]
    expected = [np.outer(sides[a], sides[b]).ravel() / (scale * table.rows) for a, b in candidates]
    gaps = np.array([np.abs(c - e).sum() for c, e in zip(exact, expected, strict=True)], np.float64)
    inside = list(range(len(candidates)))
    if selection.kind == "groups":
        inside = within(candidates, grouped(domain.names, candidates, gaps.tolist(), group_size(selection, domain)))
    if not inside:
        return []
    noise = unit_noise(config, domain, max_records)
    found = dense(tradeoff(gaps[inside], [expected[i] for i in inside], noise))
    return combined(domain, [candidates[inside[i]] for i in found], selection.combine_cells)


def group_size(selection: SelectionConfig, domain: Domain) -> int:
    """The most columns in a group; without a setting there are about four groups, as in Li et al. 2021b, §5.4."""
    size = max(2, math.ceil(len(domain) / 4)) if selection.groups is None else selection.groups
    if size < 1:
        raise UserError(f"got {size}", where="selection.groups", fix="the most columns in one group, or null")
    return size


def public_table(path: str, delimiter: str, schema: Schema, folder: Path) -> CodedTable:
    """A public table as codes of what the private table's schema measures.

    Raises:
        UserError: it lacks a column, has no rows, or holds values for which the schema has no place.
    """
    where = "selection.public"
    try:
        source = open_table(
            Path(path).expanduser(), delimiter=delimiter, workdir=folder, memory_limit_bytes=READING_BYTES, threads=1
        )
        table, report = encode_columns(source, schema, workdir=folder / "public")
    except UserError as error:
        raise UserError(f"{error.what} ({error.where})", where=where, fix=error.fix) from None
    if not table.rows:
        raise UserError("the public table has no rows", where=where, fix="another table, or selection=indif")
    for column in schema.columns:
        strange = report.outside[column.name] + report.unplaced[column.name]
        if strange > STRANGE * table.rows:
            raise UserError(
                f"{strange / table.rows:.0%} of the values of {column.name!r} have no place in the schema",
                where=where,
                fix="a public table of the same schema, coded in the same way",
            )
    return engineer(table, schema.engineering)[0]
