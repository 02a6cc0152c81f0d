"""The demo's schema: what is public about the generated city, whatever its rows."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from scipy.spatial.distance import pdist, squareform

from mechanisms.public.schema.cluster import cluster
from mechanisms.public.schema.hierarchy import Hierarchy
from mechanisms.public.schema.hierarchy_fields import hierarchy_fields
from mechanisms.public.schema.hierarchy_paths import build_hierarchy
from pipeline.demo.city import BOX, LONGEST, PRIORITIES, YEAR, town_map
from pipeline.demo.names import CHANNELS, GROUPS, INCIDENTS, NEIGHBOURHOODS, TYPES, WEEKDAYS

#: Areas of the town and, inside them, districts: clusters of neighbourhoods by the places of their middles.
AREAS, DISTRICTS = 8, 40

TEXT = """\
# A generated city of emergency calls. Written by pipeline.demo.demo_schema from the generator's own constants.
name: demo
source: the generator of the demo city, whose names, bounds and codes are fixed before any call is made
confirmed_public: true
columns:
  received: {{kind: datetime, min: "{year}-01-01", max: "{year}-12-31", bins: {{calendar: month}}, missing: false}}
  weekday:
{weekdays}
  hour: {{kind: integer, min: 0, max: 23, missing: false}}
  neighbourhood:
{neighbourhoods}
  longitude: {{kind: float, min: {box[0]}, max: {box[1]}, bins: {{count: 14}}, decimals: 5}}
  latitude: {{kind: float, min: {box[2]}, max: {box[3]}, bins: {{count: 10}}, decimals: 5}}
  incident_group:
{groups}
  incident_type:
{types}
  priority: {{kind: integer, min: 1, max: {priorities}, missing: false}} # 1 is the most urgent
  response_minutes: # missing: nobody was sent
    kind: float
    bins: {{edges: [0, 4, 5, 6, 7, 8, 9, 10, 12, 15, 20, 25, 30, 40, 60, {longest}]}}
    decimals: 1
  channel: {{kind: categorical, values: [{channels}]}}
leave_out: [caller_id] # the unit of privacy
"""


def demo_schema() -> str:
    """The text of conf/schemas/demo.yaml."""
    return TEXT.format(
        year=YEAR,
        box=BOX,
        weekdays=_listed(WEEKDAYS),
        neighbourhoods=_listed(NEIGHBOURHOODS, _areas()),
        groups=_listed(GROUPS),
        types=_listed(TYPES, _groups()),
        priorities=PRIORITIES,
        longest=LONGEST,
        channels=", ".join(CHANNELS),
    )


def _areas() -> Hierarchy:
    """The neighbourhoods by where they lie."""
    _, km = town_map()
    names = ("area", "district", "neighbourhood")
    return cluster(NEIGHBOURHOODS, squareform(pdist(km)), (AREAS, DISTRICTS), level_names=names)


def _groups() -> Hierarchy:
    """The types of incident below their groups."""
    ways = [(group, kind) for group, kinds in INCIDENTS.items() for kind in kinds]
    names = ("incident_group", "incident_type")
    return build_hierarchy(ways, TYPES, ordered=False, where="demo", level_names=names)


def _listed(values: Sequence[str], tree: Hierarchy | None = None) -> str:
    """A column of listed texts, none missing, in lines of readable length."""
    lines = ["kind: categorical", "missing: false", *_wrapped("values: ", values, "  ")]
    if tree is not None:
        fields = hierarchy_fields(tree)
        lines += ["hierarchy:", f"  levels: [{', '.join(fields['levels'])}]", "  tree:", *_branches(fields["tree"], 2)]
    return textwrap.indent("\n".join(lines), " " * 4)


def _branches(node: dict[str, object], depth: int) -> list[str]:
    """The lines of nested nodes; leaves are listed."""
    lines, indent = [], "  " * depth
    for name, child in node.items():
        if isinstance(child, dict):
            lines += [f"{indent}{name}:", *_branches(child, depth + 1)]
        else:
            assert isinstance(child, list)
            lines += _wrapped(f"{indent}{name}: ", child, f"{indent}  ")
    return lines


def _wrapped(start: str, values: Sequence[str], indent: str) -> list[str]:
    texts = ", ".join(f'"{v}"' if "," in v else v for v in values)
    return textwrap.wrap(
        f"{start}[{texts}]", width=116, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )
