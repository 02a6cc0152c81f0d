"""Cells that hold several answers at once, as forms with boxes to tick write them. NOT private."""

from __future__ import annotations

import re
from collections import Counter

from mechanisms.public.drafts.column_facts import Look
from mechanisms.public.drafts.seen import FEWEST_UNITS
from mechanisms.public.schema.discover_fields import Fields

#: What stands between two answers.
BETWEEN = (re.compile(r"\s*;\s*"), re.compile(r"\s*\|\s*"), re.compile(r",\s+"))
#: A form has so many answers, which this share of all ticks is (others are written by hand), and this share of the rows
#: ticks two or more.
ANSWERS, TICKED, SEVERAL = range(3, 31), 0.9, 0.2


def several_answers(look: Look, index: int, fields: Fields | None) -> str:
    """That the texts of a column are several answers each, and what keeps all of them; empty: they are not.

    Args:
        fields: as which it is drafted; None: it is left out.
    """
    if fields is not None and fields["kind"] != "categorical":
        return ""
    texts = look.sample(index)
    rows = sum(texts.values())
    for between in BETWEEN:
        cells = {text: [part for part in between.split(text.strip()) if part] for text in texts}
        several = sum(n for text, n in texts.items() if len(cells[text]) > 1)
        lengths = Counter[int]()
        for text, n in texts.items():
            lengths[len(cells[text])] += n
        if several < max(SEVERAL * rows, FEWEST_UNITS) or sum(n >= FEWEST_UNITS for n in lengths.values()) < 2:
            continue  # two parts in all cells: a name and a first name
        ticks = Counter[str]()
        for text, n in texts.items():
            ticks.update(dict.fromkeys(cells[text], n))
        often = [part for part, n in ticks.items() if n >= FEWEST_UNITS]
        combined = {text for text, parts in cells.items() if len(parts) > 1 and set(parts) <= {*often}}
        once = all(len({*cells[text]}) == len(cells[text]) for text in combined)
        mostly = sum(ticks[part] for part in often) >= TICKED * sum(ticks.values())
        if once and mostly and len(often) in ANSWERS and len(combined) > len(often):
            sign = next(between_two[0] for text in combined if (between_two := between.search(text)))
            how = f"a column of yes and no for each, as pandas' str.get_dummies({sign!r}) makes, keeps all"
            return f"; cells hold several of {len(often)} answers, with {sign!r} between: {how}"
    return ""
