"""The page: the templates with their environment, and the parts that sections are made of; no script, no network.

A section is a template and the mapping that it shows, which leaves nothing to compute. All texts are escaped by Jinja2;
a chart alone is placed as it is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from mechanisms.public.files import Json
from mechanisms.public.units import rounded_up
from pipeline.report.charts import Drawing

#: The (class, name) of the two tables in a chart.
BOTH = (("lreal", "real"), ("lmade", "synthetic"))
#: Sections that most readers skip, which are closed at first.
FOLDED = frozenset(
    {"noise", "bounds", "convergence", "units", "axes", "densities", "pairs", "mgd", "distances", "sdnist", "validity"}
)
BANNER = "NOT PRIVATE. This report saw raw rows. Keep it back: what may be published lies in release/ alone."


@dataclass(frozen=True)
class Gauge:
    """A bar between the worst and the best.

    Attributes:
        share: of its length, 0 to 1.
        mark: where the mark of the reference lies, 0 to 1; None for no mark.
        poor: likewise, the mark of independent columns.
    """

    share: float
    mark: float | None = None
    poor: float | None = None


@dataclass(frozen=True)
class Words:
    """A text with a class of the stylesheet, and a softer line below it."""

    text: str
    note: str = ""
    style: str = ""


Cell = str | int | float | Gauge | Words | None


@dataclass(frozen=True)
class Table:
    """A table; columns of numbers stand right."""

    head: Sequence[str]
    rows: Sequence[Sequence[Cell]]

    def __post_init__(self) -> None:
        if any(len(row) != len(self.head) for row in self.rows):
            raise ValueError(f"a row is not as long as its head: {len(self.head)} columns")

    @cached_property
    def right(self) -> tuple[bool, ...]:
        """Which columns stand right."""
        return tuple(bool(self.rows) and all(_numeric(r[i]) for r in self.rows) for i in range(len(self.head)))

    def parted(self, first: int) -> tuple[Table, Table]:
        """The first rows, and the rest."""
        return Table(self.head, self.rows[:first]), Table(self.head, self.rows[first:])


@dataclass(frozen=True)
class Card:
    """A box with a heading, a chart or a table, and a note."""

    title: str
    body: Drawing | Table | None
    note: str = ""


@dataclass(frozen=True)
class HeadCard:
    """A card at the top of a page: one figure, and what it is to be read against.

    Attributes:
        value: in large letters.
        style: of the value and the word: a class of the stylesheet, or empty.
        words: what the figure is, in plain words.
        beneath: the reference.
        gauge: where the figure lies, with a mark where the reference lies.
        word: how the figure reads, beside it: good, fair, weak; empty where nothing tells.
    """

    title: str
    value: str
    style: str = ""
    words: str = ""
    beneath: str = ""
    gauge: Gauge | None = None
    word: str = ""


@dataclass(frozen=True)
class Section:
    """One part of a page.

    Attributes:
        name: its anchor, and its template in the folder sections/.
        title: its heading.
        shown: the mapping that its template sees as `section`.
        template: the template, where it is that of several sections.
    """

    name: str
    title: str
    shown: Json
    template: str = ""

    @property
    def folded(self) -> bool:
        """Whether it is closed until somebody asks for it."""
        return self.name in FOLDED


@dataclass(frozen=True)
class Page:
    """A page that saw raw rows.

    Attributes:
        cards: what stands on top.
        facts: further figures below them.
        files: the tables that the page is about.
        notes: what is good to know first.
        warnings: what must be read first.
        last: one line at the end.
    """

    title: str
    subtitle: str
    sections: Sequence[Section]
    cards: Sequence[HeadCard] = ()
    facts: Sequence[tuple[str, str]] = ()
    files: Table | None = None
    notes: Sequence[str] = ()
    warnings: Sequence[str] = ()
    last: str = ""
    banner: str = BANNER

    def as_html(self) -> str:
        """The whole file."""
        return rendered("seen_raw_rows.html.j2", page=self)


@cache
def environment() -> Environment:
    """The templates of all pages; whatever is put into one is text, unless it is a chart."""
    templates = Environment(
        loader=PackageLoader("pipeline.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    templates.filters |= {"number": number, "few_digits": few_digits, "rounded_up": rounded_up}
    templates.tests["gauge"] = lambda value: isinstance(value, Gauge)
    templates.tests["words"] = lambda value: isinstance(value, Words)
    templates.tests["table"] = lambda value: isinstance(value, Table)
    return templates


def rendered(template: str, **view: Any) -> str:
    """The text of a whole page: the same view gives the same bytes."""
    return environment().get_template(template).render(view)


def chart_style() -> str:
    """The stylesheet of charts alone, for an SVG file."""
    return rendered("charts.css")


def _numeric(value: Cell) -> bool:
    """Whether a cell stands right: a number, a share in per cent, or nothing."""
    return isinstance(value, int | float | None) or (isinstance(value, str) and value.endswith("%"))


def number(value: Cell) -> str:
    """A number in few digits; texts as they are; nothing for None and NaN."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    if isinstance(value, int):
        return f"{value:,}"
    if value != 0 and abs(value) < 1e-4:
        return f"{value:.2g}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def few_digits(value: float | None) -> str:
    """A bound of a privacy statement, never below it: four digits, with a power of ten where it is large or small."""
    if value is None:
        return "no bound"
    if value >= 1e5 or 0 < value < 1e-3:
        return rounded_up(value, 3).replace("e-0", "e-").replace("e+0", "e").replace("e+", "e")
    return rounded_up(value, 4)
