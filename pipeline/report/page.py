"""The page: the templates with their environment, the parts and cards that sections are made of; no script, no network.

A section is a template and the mapping that it shows, which leaves nothing to compute. All texts are escaped by Jinja2;
a chart alone is placed as it is.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from evaluation.metrics import ACCURACIES
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


SAMPLE = "a second sample of as many real rows"
INDEPENDENT = "independent columns"
NOT_COMPUTED = ("not computed", "soft", "evaluation.metrics=quick has it")
#: The class of the stylesheet of each label, the worst first.
LABELS = {
    "suspicious": "failed",
    "worse than unrelated columns": "failed",
    "weak": "failed",
    "fair": "",
    "good": "passed",
}
STYLES = {"passed": "passed", "failed": "failed", "not judged": "soft"}
#: The three farthest columns, and the farthest pair, are named where at least so many of its records lie elsewhere.
MISPLACED = {"anita_1way": (3, 0.1), "anita_2way": (1, 0.25)}
#: So many relations at most are named that lost such a strength, and keep no larger share of it.
LOST = 3, 0.25, 2 / 3
#: A setting that a reason asks for.
ASKED = re.compile(r"(?:evaluation\.\w+|holdout)=\w+")


def header_cards(scores: Json) -> list[HeadCard]:
    """From the content of scores.json; a card says where nothing was computed for it."""
    metrics = {name: m for name, m in scores["metrics"].items() if m.get("score") is not None}
    privacy, others = privacy_card(scores), [_accuracy_card(metrics), similarity_card(metrics)]
    return [*others, privacy] if privacy.value == "not judged" else [privacy, *others]


def in_short(scores: Json) -> str:
    """How good the table is in words, and what is farthest from the real one; empty where nothing tells."""
    labels = {w: (scores["metrics"].get(n, {}).get("reading") or {}).get("label") for n, w in ACCURACIES.items()}
    each = {label: [w for w, own in labels.items() if own == label] for label in LABELS}
    lists = {label: " and ".join(own).replace(" and ", ", ", len(own) - 2) for label, own in each.items() if own}
    sentences = [f"{words} are {label}" for label, words in lists.items()]
    text = f"In short: {', '.join(reversed(sentences))}." if sentences else ""
    details = {name: metric.get("details") or {} for name, metric in scores["metrics"].items()}
    worst, gone = farthest(details), lost_relations(details)
    text += f" Farthest from the real table: {', '.join(worst)}." if worst else ""
    return text + (f" Relations of which much is lost: {', '.join(gone)}." if gone else "")


def farthest(metrics: Mapping[str, Json]) -> list[str]:
    """Columns and pairs of which many records lie elsewhere than in the real table, in words; the farthest first.

    Args:
        metrics: the details of each, as in scores.json.
    """
    tops = [(metrics.get(name, {}).get("worst", [])[:few], least) for name, (few, least) in MISPLACED.items()]
    far = [w for own, least in tops for w in own if w["tvd"] >= least]
    return [f"{' × '.join(w['attributes'])} ({w['tvd']:.0%} of its records misplaced)" for w in far]


def lost_relations(metrics: Mapping[str, Json]) -> list[str]:
    """Pairs of columns of which much of the relation is lost, in words; the one that lost most first; as `farthest`."""
    few, least, share = LOST
    gone = [w for w in metrics.get("dependence", {}).get("lost", []) if w["lost"] >= least and w["kept"] <= share]
    return [f"{w['a']} × {w['b']} ({w['kept']:.0%} kept)" for w in gone[:few]]


def _accuracy_card(metrics: Json) -> HeadCard:
    """The mean accuracy of 1-, 2- and 3-way tables (Platzer 2020), or the distance of pairs; which is worst."""
    of = [name for name in ACCURACIES if name in metrics]
    if not of:
        return _distance_card(metrics["tvd"]) if "tvd" in metrics else HeadCard("Accuracy", *NOT_COMPUTED)
    readings = [metrics[name].get("reading") or {} for name in of]
    shares, labels = [metrics[name]["score"] for name in of], [r.get("label") or "" for r in readings]
    chance = [_value(metrics[name], "expected") for name in of]
    poor = [c if (p := _independent(r)) is None else p for r, c in zip(readings, chance, strict=True)]
    each = (f"{ACCURACIES[n]} {s:.1%}{f' ({x})' if x else ''}" for n, s, x in zip(of, shares, labels, strict=True))
    share, mark, alone = sum(shares) / len(shares), _mean(chance), _mean(poor)
    alone = None if alone == mark else alone
    ends = [] if mark is None else [f"{SAMPLE} would get {mark:.1%}"]
    ends += [] if alone is None else [f"{INDEPENDENT} {alone:.1%}"]
    word = next((x for x in LABELS if x in labels), "")
    ends += ["suspicious: better than an honest table can be"] if word == "suspicious" else []
    words, gauge = f"mean of {', '.join(each)}", Gauge(share, mark, alone)
    worst = " and ".join(ACCURACIES[n] for n, x in zip(of, labels, strict=True) if x == word)
    label = word if len({*labels}) == 1 else f"{worst}: {word}"
    return HeadCard("Mean accuracy", f"{share:.1%}", LABELS.get(word, ""), words, ", ".join(ends), gauge, label)


def _distance_card(metric: Json) -> HeadCard:
    """The mean total variation distance of pairs, which is another measure than the accuracy."""
    own, sample, reading = metric["score"], _value(metric, "expected"), metric.get("reading") or {}
    word, poor = reading.get("label") or "", _independent(reading)
    ends = [] if sample is None else [f"{SAMPLE} would get {sample:.4f}"]
    ends += [] if poor is None else [f"{INDEPENDENT} {poor:.4f}"]
    gauge = Gauge(1 - own, None if sample is None else 1 - sample, None if poor is None else 1 - poor)
    words = "mean total variation distance of 2-way marginals: 0 is perfect, 1 no overlap"
    return HeadCard("Distance of pairs", f"{own:.4f}", LABELS.get(word, ""), words, ", ".join(ends), gauge, word)


def _independent(reading: Json) -> float | None:
    """What independent columns would score, where they are what the score is read against."""
    poor = reading.get("poor")
    return float(poor["value"]) if poor and poor["note"] == INDEPENDENT and poor["value"] is not None else None


def _mean(parts: Sequence[float | None]) -> float | None:
    defined = [p for p in parts if p is not None]
    return sum(defined) / len(defined) if len(defined) == len(parts) else None


def similarity_card(metrics: Json) -> HeadCard:
    """Whether a model tells synthetic from real records (Lopez-Paz & Oquab 2017); else how much dependence is kept."""
    name = next((name for name in ("two_sample_auc", "dependence") if name in metrics), None)
    if name is None:
        return HeadCard("Similarity", *NOT_COMPUTED)
    own, reading = metrics[name]["score"], metrics[name].get("reading") or {}
    honest, label = reading.get("honest"), reading.get("label") or ""
    if name == "two_sample_auc":
        value, ends = f"{own:.3f}", [2 * (1 - v) for v in (own, *([honest["value"]] if honest else []))]
        words = "AUC of a model that tells synthetic from real records: 0.5 is guessing, 1 always told apart"
        beneath = f"{honest['note']}: {honest['value']:.3f}" if honest else ""
    else:
        value, ends = f"{own:.0%}", [own, *([honest["value"]] if honest else [])]
        words = "of the dependence between pairs of columns is kept"
        beneath = "all of it is perfect; independent columns keep none"
        beneath = f"{honest['note']} would keep {honest['value']:.0%}" if honest else beneath
    gauge = Gauge(*(min(max(end, 0.0), 1.0) for end in ends))
    return HeadCard("Similarity", value, LABELS.get(label, ""), words, beneath, gauge, label)


def privacy_card(scores: Json) -> HeadCard:
    """The verdict against a holdout, with the shares of copies."""
    privacy = scores.get("privacy")
    if not privacy:
        return HeadCard("Privacy", "not judged", "soft", "no holdout was given")
    verdict = privacy["verdict"]
    words, beneath = privacy["why"], ""
    if "training_rows_in_the_synthetic_table" in privacy:
        ours, theirs = (privacy[f"{side}_rows_in_the_synthetic_table"]["share"] for side in ("training", "holdout"))
        words = f"{privacy['why']}; {ours:.2%} of the training rows stand in the synthetic table"
        beneath = f"{theirs:.2%} of the holdout's rows do"
    if (near := privacy.get("nearest_to_a_training_row")) is not None:
        share = f"{near['share']:.1%} of synthetic rows lie nearest to a training row"
        beneath += f"; {share}, {near['expected']:.1%} by chance"
    return HeadCard("Privacy against a holdout", verdict, STYLES[verdict], words, beneath)


def _value(metric: Json, name: str) -> float | None:
    """A reference of a metric: what was measured, before what a formula says."""
    reading = metric.get("reading") or {}
    for part in (metric.get("floor"), metric.get(name), reading.get("honest")):
        if isinstance(part, Mapping) and part.get("value") is not None:
            return float(part["value"])
    return None


def files_table(files: Json | None) -> Table | None:
    """A line per table: its file, rows and columns."""
    if not files:
        return None
    rows = [(each["table"], each["file"], each["rows"], each["columns"]) for each in files["tables"]]
    return Table(("table", "file", "rows", "columns"), rows)


def not_computed(metrics: Json) -> str:
    """One line: the metrics without a score, by what they lack; empty where all have one."""
    by_reason: dict[str, list[str]] = {}
    for name, metric in metrics.items():
        if metric.get("score") is None:
            reason = str(metric.get("reason", ""))
            asked = ", ".join(dict.fromkeys(ASKED.findall(reason))) if "needs" in reason else ""
            by_reason.setdefault(f"needs {asked}" if asked else reason, []).append(name)
    parts = [f"{', '.join(names)} ({reason})" if reason else ", ".join(names) for reason, names in by_reason.items()]
    return f"Not computed: {'; '.join(parts)}." if parts else ""
