"""The demo's schema: what is public about the generated city, whatever its rows."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from pipeline.demo.city import BOX, LONGEST, PRIORITIES, YEAR
from pipeline.demo.names import CHANNELS, GROUPS, NEIGHBOURHOODS, TYPES, WEEKDAYS

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
        neighbourhoods=_listed(NEIGHBOURHOODS),
        groups=_listed(GROUPS),
        types=_listed(TYPES),
        priorities=PRIORITIES,
        longest=LONGEST,
        channels=", ".join(CHANNELS),
    )


def _listed(values: Sequence[str]) -> str:
    """A column of listed texts, none missing, in lines of readable length."""
    texts = ", ".join(f'"{v}"' if "," in v else v for v in values)
    lines = textwrap.wrap(f"values: [{texts}]", width=114, break_long_words=False, break_on_hyphens=False)
    return textwrap.indent("\n".join(["kind: categorical", "missing: false", lines[0]]), " " * 4) + "".join(
        f"\n      {line}" for line in lines[1:]
    )
