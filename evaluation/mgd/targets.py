"""Target marginals of MGD: given ones with levels and weights (Li et al. 2021a, 2.3.2), or random schemas of three.

Tables at the levels that they ask for: leaves, or coarser nodes as columns of their own.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any, cast

import numpy as np

from evaluation.counts import Table, counted_over
from evaluation.mgd.aemc_graph import Axis
from mechanisms.public.arrays import Ints
from mechanisms.public.coded_table import CodedTable, CountedTable, code_dtype
from mechanisms.public.domain import Attribute, Clique, Domain
from mechanisms.public.errors import UserError, check_names, did_you_mean
from mechanisms.public.files import is_number
from mechanisms.public.schema.column import Column
from mechanisms.public.schema.table_schema import Schema

#: ∞: no mass moves between values of the attribute.
INFINITE = None
Weight = Fraction | None

#: The level of an ordinal attribute whose codes are put together in a few groups of neighbours.
GROUPS = 0

FIELDS = ("attributes", "weights", "delta", "weight")


@dataclass(frozen=True)
class TargetMarginal:
    """One target marginal φ.

    Attributes:
        attributes: names of columns.
        levels: of each attribute the level of its hierarchy, 1 (coarsest) … depth (leaves); or GROUPS.
        weights: w_a of each attribute: a fraction in [0, 1], the finite ones summing to 1, or None for ∞.
        delta: tolerance Δ, in records.
        weight: ω, the marginal's share in the score.
    """

    attributes: tuple[str, ...]
    levels: tuple[int, ...]
    weights: tuple[Weight, ...]
    delta: float = 2.0
    weight: float = 1.0

    def columns(self, schema: Schema) -> Clique:
        """The names of its columns in the table that `at_levels` makes: `month`, `neighbourhood at district`."""
        return tuple(name_at(schema, n, v) for n, v in zip(self.attributes, self.levels, strict=True))

    def label(self, schema: Schema) -> str:
        """`month × neighbourhood at district`."""
        return " × ".join(self.columns(schema))


def name_at(schema: Schema, name: str, level: int) -> str:
    """What a column is called at a level of its hierarchy."""
    hierarchy = schema[name].hierarchy
    if level == GROUPS:
        return f"{name} in groups"
    return name if level == hierarchy.depth else f"{name} at {hierarchy.level(level).name}"


@dataclass(frozen=True)
class Targets:
    """The marginals to score, and how they were chosen.

    Attributes:
        marginals: the target marginals Φ.
        note: sentences that say how they were chosen and what was left out.
    """

    marginals: tuple[TargetMarginal, ...]
    note: tuple[str, ...] = ()


def target(
    schema: Schema,
    attributes: Sequence[str | Mapping[str, str | int]],
    *,
    weights: Mapping[str, Any] | None = None,
    delta: float = 2.0,
    weight: float = 1.0,
    where: str = "evaluation.targets",
) -> TargetMarginal:
    """A target marginal, with the paper's defaults: leaves; ∞ for categorical attributes, equal weights for ordinal.

    Args:
        attributes: names of columns, or {name: level} for a level of the hierarchy by name or number.
        weights: per attribute a number in [0, 1], a fraction such as "1/3", or "inf"; where some are given, the others
            weigh ∞.
    Raises:
        UserError: an unknown column or level; weights that do not sum to 1; Δ < 0; ω ≤ 0.
    """
    names, levels = _attributes(schema, attributes, where)
    if weights is None:
        ordinal = [n for n in names if schema.domain[n].ordered >= 2]
        chosen_weights = tuple(Fraction(1, len(ordinal)) if n in ordinal else INFINITE for n in names)
    else:
        for name in weights:
            if name not in names:
                fix = did_you_mean(str(name), names) or f"one of {', '.join(names)}"
                raise UserError(f"a weight for {name!r}, which is not in the marginal", where=where, fix=fix)
        chosen_weights = tuple(_weight(weights.get(n, "inf"), f"{where}: weight of {n!r}") for n in names)
    finite = [w for w in chosen_weights if w is not None]
    if finite and sum(finite) != 1:
        if abs(float(sum(finite)) - 1) > 1e-9:
            fix = 'finite weights that sum to 1 (write thirds as "1/3"), or inf'
            raise UserError(f"the finite weights sum to {float(sum(finite)):g}", where=where, fix=fix)
        chosen_weights = tuple(None if w is None else w / sum(finite) for w in chosen_weights)
    if not is_number(delta) or delta < 0:
        raise UserError(f"got delta {delta!r}", where=where, fix="a number of records of at least 0")
    if not is_number(weight) or weight <= 0:
        raise UserError(f"got weight {weight!r}", where=where, fix="a number above 0")
    return TargetMarginal(names, levels, chosen_weights, float(delta), float(weight))


def read_targets(schema: Schema, given: object, *, delta: float) -> Targets:
    """Target marginals from a list of mappings with `attributes`, and optionally `weights`, `delta` and `weight`.

    Raises:
        UserError: anything that `target` refuses, or an unknown field; names the entry.
    """
    where = "evaluation.targets"
    if not isinstance(given, Sequence) or isinstance(given, str) or not given:
        fix = "a list such as [{attributes: [age, sex], weights: {age: 1}, delta: 2, weight: 0.5}]"
        raise UserError(f"got {given!r}", where=where, fix=fix)
    marginals = []
    for number, entry in enumerate(given, start=1):
        place = f"{where}, entry {number}"
        if not isinstance(entry, Mapping):
            entry = {"attributes": entry}
        check_names(entry, FIELDS, "no field", where=place, fix=f"fields: {', '.join(FIELDS)}")
        weights = entry.get("weights")
        if weights is not None and not isinstance(weights, Mapping):
            raise UserError(f"got weights {weights!r}", where=place, fix="{column: 0.5, other: inf}")
        marginals.append(
            target(
                schema,
                entry.get("attributes", ()),
                weights=weights,
                delta=entry.get("delta", delta),
                weight=entry.get("weight", 1.0),
                where=place,
            )
        )
    return Targets(tuple(marginals), (f"{len(marginals)} marginals as listed in {where}",))


def subsets(attributes: Sequence[str], sizes: Sequence[int]) -> list[tuple[str, ...]]:
    """Every subset of these sizes, small ones first."""
    return [c for k in sizes for c in itertools.combinations(attributes, k)]


def _attributes(schema: Schema, given: object, where: str) -> tuple[tuple[str, ...], tuple[int, ...]]:
    if isinstance(given, str) or not isinstance(given, Sequence) or not given:
        raise UserError(f"got attributes {given!r}", where=where, fix="a list of columns, e.g. [age, sex]")
    names, levels = [], []
    for one in given:
        pairs = list(one.items()) if isinstance(one, Mapping) else [(str(one), None)]
        if len(pairs) != 1:
            raise UserError(f"got {one!r}", where=where, fix="a column, or {column: level}")
        name, level = pairs[0]
        schema.domain.index(name)
        hierarchy = schema[name].hierarchy
        if name in names:
            raise UserError(f"column {name!r} is in the marginal twice", where=where)
        names.append(name)
        levels.append(hierarchy.depth if level is None else hierarchy.number(level))
    return tuple(names), tuple(levels)


def _weight(given: Any, where: str) -> Weight:
    text = str(given).strip().lower()
    if text in {"inf", ".inf", "infinity", "∞", "none", "null"}:
        return INFINITE
    try:
        value = Fraction(text)
    except (ValueError, ZeroDivisionError):
        value = Fraction(-1)
    if isinstance(given, bool) or not 0 <= value <= 1:
        raise UserError(f"got {given!r}", where=where, fix='a number in [0, 1], a fraction such as "1/3", or inf')
    return value


#: Marginals that are drawn, and the columns of each (Li et al. 2021b, section 5.1).
SCHEMAS, WAYS = 300, 3


def draw_schemas(names: Sequence[str], *, schemas: int = SCHEMAS, seed: int = 0) -> list[Clique]:
    """`schemas` independent draws of WAYS different columns; all columns where there are fewer."""
    rng = np.random.default_rng(seed)
    ways = min(WAYS, len(names))
    return [tuple(names[i] for i in np.sort(rng.choice(len(names), ways, replace=False))) for _ in range(schemas)]


#: Groups of neighbours of an ordinal attribute, where its codes are too many for the cost.
MOST_GROUPS = 8


def at_levels(table: Table, schema: Schema, targets: Sequence[TargetMarginal]) -> Table:
    """The table with one further column per coarser level that a target asks for.

    The codes of *other* and *missing* come behind the nodes of the level, as they come behind the leaves.
    Cost: a pass over the rows per such column; memory: the new columns.
    """
    level_of = {
        (name, level): None
        for one in targets
        for name, level in zip(one.attributes, one.levels, strict=True)
        if level < schema[name].hierarchy.depth
    }
    attributes = list(table.domain.attributes)
    coarser: list[tuple[str, Ints]] = []
    for name, level in level_of:
        labels, above = nodes_at(schema[name], level)
        nodes, special = len(labels), table.domain[name].size - len(above)
        size = nodes + special
        places = np.concatenate([above, nodes + np.arange(special)])
        attributes.append(Attribute(name_at(schema, name, level), size, nodes if schema[name].hierarchy.ordered else 0))
        coarser.append((name, places))
    domain = Domain(tuple(attributes))
    if isinstance(table, CountedTable):
        leaves = [(a.name, np.arange(a.size)) for a in table.domain.attributes]
        return cast(Table, counted_over(table, domain, dict(zip(domain.names, [*leaves, *coarser], strict=True))))
    columns = [places.astype(code_dtype(int(places.max()) + 1))[table.column(name)] for name, places in coarser]
    return cast(Table, CodedTable(domain, (*table.columns, *columns), table.weights))


def axes_at(schema: Schema, target: TargetMarginal) -> tuple[Axis, ...]:
    """How mass moves along each attribute of a target marginal, at its level and weight.

    Raises:
        UserError: a coarser level of an attribute whose distances are an explicit matrix.
    """
    return tuple(map(partial(axis_at, schema), target.attributes, target.levels, target.weights))


def axis_at(schema: Schema, name: str, level: int, weight: Weight) -> Axis:
    """That of one attribute."""
    column, hierarchy = schema[name], schema[name].hierarchy
    labels, above = nodes_at(column, level)
    nodes, size = len(labels), len(labels) + column.size - len(above)
    if weight is None:
        return Axis.fixed(size)
    if column.distances is not None:
        if level < hierarchy.depth:
            fix = "the leaves, or a hierarchy instead of distances"
            raise UserError(
                f"{name!r} has explicit distances, which have no levels", where="evaluation.targets", fix=fix
            )
        return Axis.matrix(size, np.array(column.distances), weight)
    if hierarchy.ordered:
        return Axis.path(size, nodes, weight)
    return Axis.tree(size, [np.array(hierarchy.level(i).parents) for i in range(level, 0, -1)], weight)


def cell_labels(schema: Schema, name: str, level: int) -> tuple[str, ...]:
    """What each code of an attribute at a level means, in words."""
    return (*nodes_at(schema[name], level)[0], *schema[name].specials)


def grouped(column: Column) -> bool:
    """Whether the column has a level GROUPS: more than MOST_GROUPS codes on a line, without distances of their own."""
    return column.hierarchy.ordered and column.distances is None and len(column.hierarchy.leaves) > MOST_GROUPS


def nodes_at(column: Column, level: int) -> tuple[tuple[str, ...], Ints]:
    """The names of the nodes of a level of a column's hierarchy, and the node above each value code."""
    hierarchy = column.hierarchy
    if level != GROUPS:
        return hierarchy.level(level).nodes, hierarchy.nodes_of(level)
    leaves = hierarchy.leaves
    above = np.arange(len(leaves)) * min(MOST_GROUPS, len(leaves)) // len(leaves)
    starts = np.flatnonzero(np.diff(above, prepend=-1))
    ends = [*(starts[1:] - 1).tolist(), len(leaves) - 1]
    names = (leaves[a] if a == b else f"{leaves[a]} … {leaves[b]}" for a, b in zip(starts.tolist(), ends, strict=True))
    return tuple(names), above.astype(np.int64)
