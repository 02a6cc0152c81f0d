"""Tables at the levels that target marginals ask for: leaves, or coarser nodes as columns of their own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import overload

import numpy as np
from numpy.typing import NDArray

from evaluation.mgd.geometry import Axis
from evaluation.mgd.targets import GROUPS, TargetMarginal, Weight
from mechanisms.public.coded_table import AnyTable, CodedTable, CountedTable, code_dtype
from mechanisms.public.domain import Attribute, Clique, Domain
from mechanisms.public.errors import UserError
from mechanisms.public.schema.column import Column
from mechanisms.public.schema.table_schema import Schema

#: Groups of neighbours of an ordinal attribute, where its codes are too many for the cost.
MOST_GROUPS = 8


def clique_at(schema: Schema, target: TargetMarginal) -> Clique:
    """The names of a target marginal's columns in the table that `at_levels` makes."""
    return tuple(_name(schema, n, v) for n, v in zip(target.attributes, target.levels, strict=True))


@overload
def at_levels(table: CodedTable, schema: Schema, targets: Sequence[TargetMarginal]) -> CodedTable: ...


@overload
def at_levels(table: AnyTable, schema: Schema, targets: Sequence[TargetMarginal]) -> AnyTable: ...


def at_levels(table: AnyTable, schema: Schema, targets: Sequence[TargetMarginal]) -> AnyTable:
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
        attributes.append(Attribute(_name(schema, name, level), size, nodes if schema[name].hierarchy.ordered else 0))
        coarser.append((name, places))
    domain = Domain(tuple(attributes))
    if isinstance(table, CountedTable):
        return _counted(table, domain, coarser)
    sizes = [a.size for a in attributes[len(table.domain) :]]
    columns = [p.astype(code_dtype(n))[table.column(name)] for (name, p), n in zip(coarser, sizes, strict=True)]
    return CodedTable(domain, (*table.columns, *columns), table.weights, table.known)


def _counted(table: CountedTable, domain: Domain, coarser: Sequence[tuple[str, NDArray[np.int64]]]) -> CountedTable:
    """Rows that lie elsewhere, at these levels: the counts of leaves are summed.

    Args:
        domain: of the table, with the coarser columns behind its own.
        coarser: for each of these its column, and the node of each code.
    """
    own = table.domain
    of = {a.name: pair for a, pair in zip(domain.attributes[len(own) :], coarser, strict=True)}
    leaves = {n: (n, np.arange(own[n].size)) for n in own.names} | of

    def count(cliques: Sequence[Clique]) -> list[NDArray[np.int64]]:
        """The counts of each marginal at its levels: those of its leaves, summed."""
        fine = [tuple(leaves[n][0] for n in clique) for clique in cliques]
        sums = []
        for clique, leaf, counts in zip(cliques, fine, table.count(fine), strict=True):
            node = np.meshgrid(*(leaves[n][1] for n in clique), indexing="ij")
            places = np.ravel_multi_index([n.ravel() for n in node], domain.shape(clique))
            total = np.zeros(domain.cells(clique), np.int64)
            np.add.at(total, places, counts.reshape(own.shape(leaf)).ravel())
            sums.append(total)
        return sums

    return CountedTable(domain, table.rows, table.weighted, count)


class AxesOf:
    """How mass moves along the attributes of a schema's marginals; each axis is made once.

    Raises:
        UserError: as of `axes_at`.
    """

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._made: dict[tuple[str, int, Weight], Axis] = {}

    def __call__(self, target: TargetMarginal) -> tuple[Axis, ...]:
        return tuple(map(self.axis, target.attributes, target.levels, target.weights))

    def axis(self, name: str, level: int, weight: Weight) -> Axis:
        """That of one attribute at a level."""
        key = (name, level, weight)
        if key not in self._made:
            self._made[key] = _axis(self._schema, name, level, weight)
        return self._made[key]


def axes_at(schema: Schema, target: TargetMarginal) -> tuple[Axis, ...]:
    """How mass moves along each attribute of a target marginal, at its level and weight.

    Raises:
        UserError: a coarser level of an attribute whose distances are an explicit matrix.
    """
    return AxesOf(schema)(target)


def _axis(schema: Schema, name: str, level: int, weight: Weight) -> Axis:
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
        return Axis.matrix(size, column.distances.matrix, weight)
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


def _name(schema: Schema, name: str, level: int) -> str:
    hierarchy = schema[name].hierarchy
    if level == GROUPS:
        return f"{name} in groups"
    return name if level == hierarchy.depth else f"{name} at {hierarchy.level(level).name}"
