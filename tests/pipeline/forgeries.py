"""Every small change of a JSON file of a release, one at a time: what a forger may try without reading it."""

import copy
import json
from collections.abc import Iterator
from typing import Any

from pipeline.statement.verify import verify
from tests.pipeline.conftest import rebound, statement_of

Place = tuple[str | int, ...]
#: Words of which a run writes one or another.
WORDS = (("weight", "truncate", "none"), ("drop", "own", "refuse"), ("settings", "schema"), ("this", "earlier"))
WORDS += (("system", "fixed_seed"), ("add_remove", "replace"))


def forgeries(content: Any) -> Iterator[tuple[str, Place, Any]]:
    """(what was done, where, the whole content after it), for each leaf, key and list entry."""
    for place in _places(content):
        holder, last = _at(content, place[:-1]), place[-1]
        value = holder[last]
        for name, new in _others(value):
            changed, held = _opened(content, place[:-1])
            held[last] = new
            yield name, place, changed
        cut, held = _opened(content, place[:-1])
        del held[last]
        yield "deleted", place, cut
        if isinstance(holder, list):
            doubled, held = _opened(content, place[:-1])
            held.insert(last, copy.deepcopy(value))
            yield "doubled", place, doubled
            if last + 1 < len(holder) and holder[last + 1] != value:
                swapped, held = _opened(content, place[:-1])
                held[last], held[last + 1] = held[last + 1], held[last]
                yield "swapped", place, swapped


def with_leaf(release, event, path, value):
    """The release with another value in one place of a receipt, or of its statement; its manifest made anew."""
    statement = statement_of(release.parent)
    place = next((e for e in statement["events"] if e["id"] == f"discovery:{event}"), statement)
    *outer, last = path.split(".")
    for key in outer:
        place = place[key]
    place[last] = value(place[last]) if callable(value) else value
    (release / "privacy.json").write_text(json.dumps(statement))
    rebound(release)
    return verify(release)


def _others(value: Any) -> list[tuple[str, Any]]:
    """What may stand in the place of a leaf; nothing for lists and mappings, whose parts are changed."""
    if isinstance(value, dict | list):
        return [] if value else [("filled", ["x"] if isinstance(value, list) else {"x": 1.0})]
    if isinstance(value, bool):
        return [("turned", not value)]
    if isinstance(value, int | float):
        return [("doubled number", value * 2 or 1), ("halved number", value / 2 or -1)]
    if value is None:
        return [("filled", "x"), ("filled with a number", 1.0)]
    others = [("exchanged", word) for words in WORDS if value in words for word in words if word != value]
    return [("renamed", f"{value}x"), *([("emptied", "")] if value else []), *others]


def _places(content: Any, before: Place = ()) -> Iterator[Place]:
    inner = content.items() if isinstance(content, dict) else enumerate(content) if isinstance(content, list) else ()
    for key, value in inner:
        yield (*before, key)
        yield from _places(value, (*before, key))


def _at(content: Any, place: Place) -> Any:
    for key in place:
        content = content[key]
    return content


def _opened(content: Any, place: Place) -> tuple[Any, Any]:
    """The content with a holder in it that may be changed, and that holder; the rest is shared, and stays."""
    opened = held = copy.copy(content)
    for key in place:
        held[key] = held = copy.copy(held[key])
    return opened, held
