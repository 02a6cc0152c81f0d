"""Ready sets of target marginals (Li et al. 2021a, sections 2.3.2, 3.1, 3.2 and 3.3)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache, partial
from pathlib import Path

import numpy as np
import yaml

from evaluation.core_metrics import MgdSettings
from evaluation.metric import Inputs
from evaluation.mgd.aemc_graph import Axis, graph_size
from evaluation.mgd.marginal_difference import MGDResult, mgd
from evaluation.mgd.targets import (
    GROUPS,
    TargetMarginal,
    Targets,
    axis_at,
    draw_schemas,
    grouped,
    read_targets,
    subsets,
    target,
)
from mechanisms.public.domain import Clique
from mechanisms.public.errors import UserError, check_names, require_columns
from mechanisms.public.schema.table_schema import Schema

#: Sampled marginals whose min-cost flow would have more nodes are taken in groups of neighbours, or passed over.
MAX_FLOW_NODES = 5_000
#: Cells × nodes of a flow that take about a second at the worst (tables of another kind: 50 ns each; noise alone: a
#: tenth); of one marginal, and of the marginals of one order together.
SECOND = 20_000_000
MOST_WORK, ALL_WORK = SECOND, 3 * SECOND
#: A weight as it stands: one object, since fractions take long to compare.
WHOLE = Fraction(1)
#: Subsets of columns that are listed before a sample of them is drawn, and what is tried for one where they are not.
MOST_LISTED, TRIES = 2_000_000, 20


def _located(schema: Schema, own: MgdSettings, seed: int) -> Targets:
    """Section 3.1: marginals with at least one temporal or spatial attribute."""
    _needs(own, 1, "the temporal and spatial columns")
    description = f"marginals with {' or '.join(own.attributes)}"
    return _sampled(schema, own, seed, _Filter(anchors=frozenset(own.attributes)), description)


def _thirds(schema: Schema, own: MgdSettings, seed: int) -> Targets:
    """Section 3.2: 1/9 for each one- and two-way marginal of three attributes, 1/3 for the three-way one."""
    _needs(own, 3, "three columns, such as month, neighbourhood and incident type", exactly=True)
    marginals = [
        target(schema, c, delta=own.delta, weight=1 / 3 if len(c) == 3 else 1 / 9)
        for c in subsets(schema.domain.canonical(own.attributes), (1, 2, 3))
    ]
    return Targets(tuple(marginals), ("weights 1/9, 1/9 and 1/3 over " + " × ".join(own.attributes),))


def _pie(schema: Schema, own: MgdSettings, seed: int) -> Targets:
    """Section 3.2: one marginal, all weights ∞: the sense of the pie chart."""
    _needs(own, 1, "the columns of the marginal")
    one = target(schema, own.attributes, weights={}, delta=own.delta)
    return Targets((one,), ("one marginal, no mass moves: " + " × ".join(own.attributes),))


def _density(schema: Schema, own: MgdSettings, seed: int) -> Targets:
    """Sections 1.2 and 3.3: the density estimation of the 2018 challenge, on the counts as they are.

    The marginals are those that the metric `density` draws from the same seed; one drawn twice weighs twice. Between
    tables of as many records the score is the mean L1 distance of that metric.
    """
    drawn = Counter(draw_schemas(schema.domain.names, schemas=own.max_marginals, seed=seed))
    marginals = [target(schema, c, weights={}, delta=0.0, weight=float(n)) for c, n in drawn.items()]
    note = f"{own.max_marginals} random 3-way marginals (seed {seed}), no mass moves, Δ = 0: L1 distances"
    return Targets(tuple(marginals), (note,))


def _pums(schema: Schema, own: MgdSettings, seed: int) -> Targets:
    """Section 3.3: many 3-way marginals, and CITY × SEX × INCWAGE, which weighs as much as all of them together."""
    _needs(own, 3, "three columns: city, sex and income (ordinal)", exactly=True)
    income = own.attributes[-1]
    if not schema.domain[income].ordered:
        fix = "declare the column as integer, or as ordinal, in the schema"
        raise UserError(f"{income!r} is not ordinal", where="evaluation.attributes", fix=fix)
    rest = _sampled(schema, replace(own, k=[3]), seed, _Filter(without=frozenset(own.attributes)), "marginals")
    heavy = target(schema, own.attributes, delta=own.delta, weight=float(max(len(rest.marginals), 1)))
    description = f"{' × '.join(own.attributes)} weighs as much as all others together"
    return Targets((heavy, *rest.marginals), (*rest.note, description))


PRESETS: dict[str, Callable[[Schema, MgdSettings, int], Targets]] = {
    "kway": lambda schema, own, seed: _sampled(schema, own, seed, _Filter(), "marginals"),
    "thirds": _thirds,
    "located": _located,
    "pie": _pie,
    "density": _density,
    "pums": _pums,
}


def _needs(own: MgdSettings, count: int, columns: str, *, exactly: bool = False) -> None:
    needed = len(set(own.attributes))
    if needed < count or (exactly and len(own.attributes) != count):
        raise UserError(
            f"preset {own.preset!r} got {len(own.attributes)} columns",
            where="evaluation.attributes",
            fix=f"evaluation.attributes=[…]: {columns}",
        )


@dataclass(frozen=True)
class _Filter:
    """Which marginals a preset takes: those with one of the anchors, if there are any, and not this one."""

    anchors: frozenset[str] = frozenset()
    without: frozenset[str] = frozenset()

    def takes(self, clique: Clique) -> bool:
        return self.without != set(clique) and not (self.anchors and self.anchors.isdisjoint(clique))

    def count(self, columns: int, k: int) -> int:
        """How many of k attributes there are."""
        avoiding = math.comb(columns - len(self.anchors), k) if self.anchors else 0
        return math.comb(columns, k) - avoiding - (len(self.without) == k)

    def drawn(self, names: Sequence[str], k: int, most: int, rng: np.random.Generator) -> Iterator[tuple[int, Clique]]:
        """All marginals of k attributes in order where they are at most so many, else in random order; with places.

        Beyond MOST_LISTED they are not listed but drawn, each once, and no more than TRIES for one that is asked for:
        1,000 columns have 10⁸ marginals of three.
        """
        if math.comb(len(names), k) <= MOST_LISTED:
            every = [c for c in subsets(names, (k,)) if self.takes(c)]
            order = rng.permutation(len(every)) if len(every) > most else np.arange(len(every))
            yield from ((int(place), every[place]) for place in order)
            return
        near = [i for i, n in enumerate(names) if n in self.anchors]
        rest = [i for i, n in enumerate(names) if n not in self.anchors]
        ways = [math.comb(len(near), j) * math.comb(len(rest), k - j) for j in range(k + 1)]
        ways[0] *= not self.anchors
        seen: set[Clique] = set()
        for place in range(TRIES * most):
            j = int(rng.choice(k + 1, p=[w / sum(ways) for w in ways]))
            some = [*rng.choice(near, j, replace=False), *rng.choice(rest, k - j, replace=False)]
            clique = tuple(names[int(i)] for i in sorted(some))
            if clique not in seen and self.takes(clique):
                seen.add(clique)
                yield place, clique


def _sampled(schema: Schema, own: MgdSettings, seed: int, eligible: _Filter, description: str) -> Targets:
    """Of each order all wanted marginals, or a seeded sample of at most `max_marginals`.

    A marginal whose flow is predicted to take long, or that comes when the others of its order have taken all the work,
    is taken with its ordinal attributes in groups of neighbours; where that takes long too, it is left out.
    """
    rng = np.random.default_rng(seed)
    axis = cache(partial(axis_at, schema))  # each is made once
    marginals: list[TargetMarginal] = []
    notes = []
    for k in own.k:
        every = eligible.count(len(schema.domain), k)
        if not every:
            continue
        sample: dict[int, TargetMarginal] = {}
        left, work = 0, 0
        for place, clique in eligible.drawn(schema.domain.names, k, own.max_marginals, rng):
            if len(sample) == own.max_marginals:
                break
            levels, needed = _affordable(schema, axis, clique, ALL_WORK - work)
            if levels is None:
                left += 1
            else:
                one = target(schema, clique, delta=own.delta)
                sample[place], work = replace(one, levels=levels), work + needed
        chosen = [sample[i] for i in sorted(sample)]
        grouped_ones = sum(GROUPS in one.levels for one in chosen)
        coarse = f", {grouped_ones} with columns in groups of neighbours for their cost" if grouped_ones else ""
        large = f", {left} left out for the size of their flow" if left else ""
        notes.append(f"{k}-way: {len(chosen)} of {every} {description} (seed {seed}){coarse}{large}")
        marginals += chosen
    return Targets(tuple(marginals), tuple(notes))


def _affordable(
    schema: Schema, axis: Callable[..., Axis], clique: Clique, room: int
) -> tuple[tuple[int, ...] | None, int]:
    """The levels at which a marginal is affordable, its leaves or groups of them, or None; and the work that it takes.

    What the weights of ordinal attributes are plays no part.
    """
    leaves = tuple(schema[n].hierarchy.depth for n in clique)
    groups = tuple(GROUPS if grouped(schema[n]) else leaf for n, leaf in zip(clique, leaves, strict=True))
    weights = [WHOLE if schema.domain[n].ordered >= 2 else None for n in clique]
    for levels in (leaves, groups):
        work, nodes = predicted_work(tuple(map(axis, clique, levels, weights)))
        if nodes <= MAX_FLOW_NODES and work <= min(MOST_WORK, room):
            return levels, work
    return None, 0


def predicted_work(axes: tuple[Axis, ...]) -> tuple[int, int]:
    """Cells × nodes of the flow of a marginal with these axes, and its nodes; 0 where a path or a tree alone moves."""
    moving = [a for a in axes if a.moves]
    needed = len(moving) > 1 or any(a.kind == "matrix" for a in moving)
    nodes = graph_size(moving)[0] if needed else 0
    return math.prod(a.size for a in axes) * nodes, nodes


def chosen_targets(own: MgdSettings, schema: Schema, seed: int) -> Targets:
    """The marginals that the settings name.

    Raises:
        UserError: settings that cannot be, or that do not fit the schema.
    """
    if own.targets is not None and own.preset != "kway":
        fix = "drop evaluation.preset, or evaluation.targets"
        raise UserError("a preset and an own list of marginals", where="evaluation.targets", fix=fix)
    if own.targets is not None:
        given = _from_file(own.targets) if isinstance(own.targets, str) else own.targets
        return read_targets(schema, given, delta=own.delta)
    if min(own.k) > (columns := len(schema.domain)):
        fix = f"orders of at most {columns}, as many as the table has columns"
        raise UserError(f"got {own.k}", where="evaluation.k", fix=fix)
    check_names([own.preset], PRESETS, "no preset", where="evaluation.preset")
    require_columns(own.attributes, schema.domain.names, where="evaluation.attributes")
    return PRESETS[own.preset](schema, own, seed)


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


def mgd_of(inputs: Inputs) -> MGDResult:
    """The metric `mgd`."""
    if inputs.schema is None:
        raise UserError("no schema", where="mgd", fix="the schema that both tables were coded with")
    own, progress = inputs.own(MgdSettings), inputs.options.progress
    settings = {"alpha": own.alpha, "progress": progress, "deltas": own.deltas}
    return mgd(inputs.all_rows, inputs.synthetic, inputs.schema, inputs.ready, **settings)  # type: ignore[arg-type]
