"""N-CRiPT: its entry and its settings."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, NamedTuple

from evaluation.map_columns import MAP, MapColumns
from evaluation.metric import Inputs, Metric, Options
from mechanisms.public.errors import UserError, did_you_mean
from mechanisms.public.json_values import JsonDict
from mechanisms.public.settings import setting

if TYPE_CHECKING:
    from evaluation.papers.ncript.combined_loss import Ncript
    from evaluation.papers.ncript.ncript_spec import NcriptSpec
    from mechanisms.public.schema.table_schema import Schema

#: Record types whose losses a report shows.
TYPES = 10


@dataclass(frozen=True)
class NcriptSettings(MapColumns):
    """Settings.

    Attributes:
        regions: what the segments are added up to (N-CRiPT 2021, 3.5).
        ncript: fields of `NcriptSpec`.
    """

    regions: str | None = setting(None, "a level of the segment's hierarchy, instead of the segments themselves")
    ncript: dict[str, Any] | None = setting(
        None,
        "other parameters: weights (ω, five), delta, k, h, frequency_threshold (FT), bias_penalty (BP), places",
        example="'evaluation.ncript={weights: [0.2, 0.2, 0.2, 0.2, 0.2], delta: 0.1, places: [Remington]}'",
    )


class PreparedRows(NamedTuple):
    """The region of each segment by its label, or None for the segments themselves; the parameters."""

    regions: dict[str, str] | None
    spec: NcriptSpec


def prepared(own: NcriptSettings, schema: Schema | None, seed: int) -> PreparedRows:
    """Regions and parameters.

    Raises:
        UserError: no such level or parameter; a parameter out of range.
    """
    return PreparedRows(_regions(own, schema), _spec(own.ncript or {}))


def _regions(own: NcriptSettings, schema: Schema | None) -> dict[str, str] | None:
    if own.regions is None or own.segment is None or schema is None:
        return None
    tree = schema[own.segment].hierarchy
    nodes = tree.level(own.regions).nodes
    return {leaf: nodes[i] for leaf, i in zip(tree.leaves, tree.nodes_of(own.regions), strict=True)}


def _spec(given: JsonDict) -> NcriptSpec:
    from evaluation.papers.ncript.ncript_spec import NcriptSpec

    names = [f.name for f in fields(NcriptSpec)]
    for name in given:
        if name not in names:
            fix = did_you_mean(str(name), names) or f"one of {', '.join(names)}"
            raise UserError(f"no parameter {name!r}", where="evaluation.ncript", fix=fix)
    lists = {name: tuple(value) for name, value in given.items() if isinstance(value, list)}
    return NcriptSpec(**{**given, **lists})


def _losses(inputs: Inputs) -> Ncript:
    from evaluation.cube import map_cubes
    from evaluation.papers.ncript.combined_loss import ncript

    names = (inputs.column("time"), inputs.column("segment"), inputs.column("kind"))
    cubes = map_cubes(inputs.real, inputs.synthetic, inputs.schema, names)
    ready: PreparedRows = inputs.ready or prepared(inputs.own(NcriptSettings), None, 0)
    if ready.regions is not None:
        cubes = cubes.merged([ready.regions.get(str(s), str(s)) for s in cubes.segments])
    return ncript(cubes, ready.spec)


def _figures(result: Ncript, schema: Schema, options: Options) -> JsonDict:
    """The loss of each place and time, the six losses of some places, and what the worst record types add."""
    from evaluation.pictures.place_map import named

    own, prepared_before = options.own(NcriptSettings), options.ready.get(NCRIPT.name)
    if own.time is None or own.segment is None or own.kind is None:
        return {}
    courses = result.courses()
    places = named(schema[own.segment], tuple(c["segment"] for c in courses))
    frame = result.types.head(TYPES)
    types = frame.assign(type=named(schema[own.kind], tuple(frame["type"]))).to_dict(orient="records")
    map_of_losses = {
        "score": "N-CRiPT loss",
        "times": result.times,
        "segments": result.segments,
        "losses": result.total.T,
        "regions": (prepared_before.regions if prepared_before else None) or {},
        "temporal": [{**course, "segment": name} for course, name in zip(courses, places, strict=True)],
        "types": [{str(k): v for k, v in row.items()} for row in types],
    }
    return {"map": map_of_losses}


NCRIPT = Metric(
    name="ncript",
    title="N-CRiPT: mean loss of a place and time",
    says="a place and time lose {score:.1%} on average",
    goal="low",
    perfect=0,
    reference="rows of Table 2: 0.10 to 0.38 at ε = 4",
    source="N-CRiPT 2021, 2.2 to 2.4",
    run=_losses,
    settings=NcriptSettings,
    needs=MAP,
    prepare=prepared,
    figures=_figures,
)
