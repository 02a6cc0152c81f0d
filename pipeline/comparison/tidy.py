"""Everything that scores.json holds as one CSV: a row per figure. NOT private."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from typing import Any

from mechanisms.public.json_values import Json

#: The columns; also how such a file begins.
HEAD = ("not_private", "table", "part", "of", "figure", "value")
#: What names an entry of a list, in this order; else its place does.
NAMES = ("column", "marginal", "attributes", "metric", "name")


def is_csv(path: str | None) -> bool:
    """Whether a file of scores is to be a CSV."""
    return path is not None and path.lower().endswith(".csv")


def tidy_text(scores: Json) -> str:
    """The CSV of a scores.json, of one table or of several; `of` is a metric, a column or a marginal."""
    tables = scores.get("tables", {"": scores})
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(HEAD)
    for table, card in tables.items():
        for part, content in card.items():
            if part not in ("format", "not_private"):
                writer.writerows(("NOT private", table, part, *row) for row in _figures(content))
    return text.getvalue()


def _figures(content: Any) -> Iterator[tuple[str, str, Any]]:
    """(of, figure, value) of every number, text and truth value below a part."""
    if not isinstance(content, Mapping | list):
        yield "", "", content
        return
    for name, inner in _entries(content):
        for figure, value in _flat(inner):
            yield name, figure, value


def _entries(content: Json | list[Any]) -> Iterator[tuple[str, Any]]:
    if isinstance(content, Mapping):
        yield from ((str(name), inner) for name, inner in content.items())
        return
    for place, inner in enumerate(content):
        named = [inner[n] for n in NAMES if isinstance(inner, Mapping) and inner.get(n) is not None][:1]
        name = named[0] if named else place
        yield (" × ".join(map(str, name)) if isinstance(name, list) else str(name)), inner


def _flat(content: Any) -> Iterator[tuple[str, Any]]:
    if not isinstance(content, Mapping | list):
        yield "", content
        return
    for name, inner in _entries(content):
        yield from ((f"{name}.{figure}".rstrip("."), value) for figure, value in _flat(inner))
