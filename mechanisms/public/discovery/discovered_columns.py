"""How rows are read before anything is known, what is asked of them, and the schema that follows from the answers.

What follows from noisy answers is post-processing, which costs nothing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from mechanisms.public.arrays import Floats, Ints
from mechanisms.public.discovery.discovery_questions import DiscoveryQuestion, LeafTree
from mechanisms.public.errors import UserError
from mechanisms.public.noise_kinds import NoiseKind, upper_quantile
from mechanisms.public.rules.table_rules import parse_rules
from mechanisms.public.schema.bins import MAX_CODES
from mechanisms.public.schema.code_labels import written_bound
from mechanisms.public.schema.column import Column
from mechanisms.public.schema.discover_fields import ASSUMED_BINS, OTHER, FieldDict, Fields
from mechanisms.public.schema.fine_cells import scouting_column
from mechanisms.public.schema.table_schema import Schema, column_fields, parse_schema

#: How likely noise alone may be to widen the bounds of a column.
FALSE_ALARM = 1e-3
#: Bounds are not cut at a node where those beyond it hold together more than so many standard deviations of noise.
BEYOND = 2.0
#: A bin of equal mass holds at least so many standard deviations of the noise of a range.
SIGNAL = 4.0
#: No more values than these are listed, so that there is room for *other* and *missing*.
MAX_VALUES = MAX_CODES - 10


def scouting_schema(schema: Schema) -> Schema:
    """The schema with leaves for bins, and no listed values, in the columns of which something is discovered."""
    columns = tuple(c if c.discover is None else scouting_column(c) for c in schema.columns)
    declared = schema.rules.declared
    rules = parse_rules(declared, columns, where=schema.name, folder=Path())
    return replace(schema, columns=columns, rules=rules)


def questions_of(schema: Schema) -> tuple[DiscoveryQuestion, ...]:
    """What is asked about the rows, one question per column of which something is discovered."""
    questions, unit = [], schema.rules.unit
    for column in schema.to_discover:
        assert column.discover is not None
        scout = scouting_column(column)
        tree = None if column.discover.values else LeafTree(scout.value_codes, scout.size - scout.value_codes)
        once = unit is not None and column.name in unit.constant
        questions.append(DiscoveryQuestion(column.name, column.discover.what, tree, once=once))
    return tuple(questions)


def discovered_schema(
    schema: Schema,
    answers: Mapping[str, Floats | Sequence[str] | None],
    *,
    kind: NoiseKind,
    scales: Mapping[str, float],
) -> Schema:
    """The schema with what noisy answers say in the place of what was to be discovered.

    Args:
        answers: column → noisy counts of its leaf tree, or its values; None where they were charged and lost.
        kind, scales: of the noise, by column, in records.
    Raises:
        UserError: every column is one of values, and none was found.
    """
    content = schema.to_fields()
    for column in schema.to_discover:
        answer = answers[column.name]
        content["columns"][column.name] = (
            _with_values(column, [str(v) for v in answer or ()])
            if column.discover is not None and column.discover.values
            else _with_range(column, None if answer is None else np.asarray(answer), kind, scales[column.name])
        )
    if all(fields.get("kind") == "constant" for fields in content["columns"].values()):
        problem = f"no value of {', '.join(c.name for c in schema.to_discover)} was found beyond the noise"
        fix = "another run, out of a budget of its own, with a larger ε or a column that is publicly known"
        raise UserError(f"{problem}: nothing is left to measure; the charge stays spent", where=schema.name, fix=fix)
    return parse_schema(content, where=f"{schema.name}, as discovered")


def _with_values(column: Column, values: Sequence[str]) -> FieldDict:
    """The values that were released; where there is none, the column says nothing."""
    if not values:
        return {"kind": "constant", "value": column.other or OTHER, "discovered": ["values"]}
    return column_fields(column) | {"values": list(values)[:MAX_VALUES], "discovered": ["values"]}


def _with_range(column: Column, answers: Floats | None, kind: NoiseKind, scale: float) -> FieldDict:
    """Bounds around what stands out of the noise, and bins of equal mass between them."""
    scout, discover = scouting_column(column), column.discover
    tree, edges = LeafTree(scout.value_codes, scout.size - scout.value_codes), scout.grid.edges
    assert discover is not None and edges is not None
    first, last = 0, tree.leaves
    if discover.bounds and answers is not None:
        first, last = bounds_of(tree, answers, kind=kind, scale=scale)
    fields = {k: v for k, v in column_fields(column).items() if k not in ("bounds", "within", "bins")}
    fields["discovered"] = list(discover.what)
    if discover.bins:
        cuts = np.linspace(first, last, min(discover.bins, last - first) + 1).astype(int)
        if answers is not None:
            spread = scale * np.sqrt(tree.levels * tree.branching / 2)
            cuts = equal_mass(tree.estimates(answers), first, last, discover.bins, least=SIGNAL * float(spread))
        fields = {k: v for k, v in fields.items() if k not in ("min", "max")}
        fields["bins"] = {"edges": [written_bound(column, e) for e in edges[cuts]]}
        return possible(column, fields, [])
    step = 0 if column.kind == "float" else 1
    fields["min"] = written_bound(column, edges[first])
    fields["max"] = written_bound(column, edges[last] - step)
    return possible(column, fields, _bins_between(column, float(edges[last] - edges[first])))


def _bins_between(column: Column, span: float) -> list[FieldDict]:
    """Bins between discovered bounds, in the order in which they are tried."""
    assert column.discover is not None
    declared = column.discover.declared.get("bins")
    first_tried = [] if declared is None else [{"bins": declared}]
    if declared is None and (column.kind != "integer" or span <= ASSUMED_BINS):
        first_tried = [{}]
    fewer = ASSUMED_BINS if column.kind == "float" else int(min(ASSUMED_BINS, span))
    return [*first_tried, {"bins": {"count": max(fewer, 1)}}, {"bins": {"count": 1}}]


def possible(column: Column, fields: FieldDict, bins: Sequence[FieldDict]) -> FieldDict:
    """The first of several declarations that can be; coarse bins for joint marginals only where they are coarser."""
    joint = {} if column.joint_bins is None else {"joint_bins": fields["joint_bins"]}
    rest = {k: v for k, v in fields.items() if k not in joint}
    tries = [{**rest, **more, **extra} for more in (bins or [{}]) for extra in ([joint, {}] if joint else [{}])]
    return next((c for c in tries[:-1] if _can_be(column.name, c)), tries[-1])


def _can_be(name: str, declaration: Fields) -> bool:
    try:
        parse_schema({"columns": {name: declaration}}, where=name)
    except UserError:
        return False
    return True


def bounds_of(tree: LeafTree, answers: Floats, *, kind: NoiseKind, scale: float) -> tuple[int, int]:
    """The first leaf, and the one behind the last, of what stands out of the noise; all leaves where nothing does.

    From the top, the outermost node that is larger than noise alone explains; then likewise among its children, until
    none stands out, or those beyond the outermost hold together more than their noise: many values of few records each
    stand out in no leaf, and one leaf that does by chance would cut them off.

    Args:
        answers: noisy counts of all nodes, level after level.
        scale: of the noise, in records.
    """
    tests = 2 * tree.branching * tree.levels
    least = scale * upper_quantile(kind, FALSE_ALARM / tests)
    levels = tree.by_level(answers)
    if not (levels[0] > least).any():
        return 0, tree.leaves
    (first, _), (_, last) = (_outermost(tree, levels, least, BEYOND * scale, side) for side in (0, -1))
    return first, min(last, tree.leaves)


def _outermost(tree: LeafTree, levels: Sequence[Floats], least: float, beyond: float, side: int) -> tuple[int, int]:
    """The leaves under the outermost node that stands out on one side (0: the first, −1: the last)."""
    node, depth = 0, 0
    for level in levels:
        children = level[node * tree.branching : (node + 1) * tree.branching]
        large = np.flatnonzero(children > least)
        if not large.size:
            break
        rest = children[: large[0]] if side == 0 else children[large[-1] + 1 :]
        if depth and rest.sum() > beyond * math.sqrt(rest.size):
            break
        node, depth = node * tree.branching + int(large[side]), depth + 1
    return node * tree.width(depth), (node + 1) * tree.width(depth)


def equal_mass(leaves: Floats, first: int, last: int, count: int, *, least: float) -> Ints:
    """Where bins of nearly equal mass begin, and where the last one ends, as leaves: ascending.

    A leaf that holds the mass of a bin by itself is a bin of its own.

    Args:
        leaves: noisy counts.
        count: so many bins at most.
        least: fewer bins where each would hold less than that.
    """
    sums = np.concatenate([[0.0], np.cumsum(leaves[first:last])])
    rising = (np.maximum.accumulate(sums) + np.minimum.accumulate(sums[::-1])[::-1]) / 2
    rising -= rising[0]
    total = float(rising[-1])
    most = int(min(count, last - first, max(total / least, 1.0))) if total > 0 else 1
    for bins in range(most, 1, -1):
        heavy = np.flatnonzero(np.diff(rising) >= total / bins)
        cuts = np.searchsorted(rising, total * np.arange(1, bins) / bins, side="left")
        every = np.unique(np.concatenate([[0, last - first], cuts, heavy, heavy + 1]))
        if every.size <= count + 1:
            return np.asarray(first + every, np.int64)
    return np.array([first, last])
