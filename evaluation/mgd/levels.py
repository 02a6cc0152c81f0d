"""Tables at the levels that target marginals ask for: leaves, or coarser nodes as columns of their own."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import cast

import numpy as np
from numpy.typing import NDArray

from evaluation.counts import Table, counted_over
from evaluation.mgd.geometry import Axis
from evaluation.mgd.targets import GROUPS, TargetMarginal, Weight, name_at
from mechanisms.public.coded_table import CodedTable, CountedTable, code_dtype
from mechanisms.public.domain import Attribute, Domain
from mechanisms.public.errors import UserError
from mechanisms.public.schema.column import Column
from mechanisms.public.schema.table_schema import Schema

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
    coarser: list[tuple[str, NDArray[np.int64]]] = []
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


def nodes_at(column: Column, level: int) -> tuple[tuple[str, ...], NDArray[np.int64]]:
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
