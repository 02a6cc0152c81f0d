"""Several synthetic tables against one real table: scored, sorted, with their ε where it is known, and their page."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd

from evaluation.metrics import ACCURACIES, METRICS
from evaluation.outcome import Outcome
from evaluation.readings.reading import figure
from evaluation.score import BANNER, Scorecard
from mechanisms.public.errors import UserError
from mechanisms.public.files import JsonDict, write_whole
from mechanisms.public.text_table import lined_up, notebook_table
from pipeline.report.charts import marks
from pipeline.report.page import LABELS, STYLES, Card, Cell, Gauge, HeadCard, Page, Section, Table, Words
from pipeline.scores import two_tables
from pipeline.scores.release_beside import with_own_schema
from pipeline.scores.table_sources import shown_name
from pipeline.settings.config import ScoreConfig
from pipeline.settings.inputs import NO_SCHEMA
from pipeline.sweeps.sweep_page import curves, method_colours

HONEST = "a second sample of the same people, as large as the largest of these tables"


@dataclass(frozen=True, repr=False)
class Comparison:
    """Scorecards of several synthetic tables, the most accurate first; NOT private.

    Attributes:
        real: the real table's name.
        cards: by the synthetic table's name.
    """

    real: str
    cards: Mapping[str, Scorecard]

    def frame(self) -> pd.DataFrame:
        """One row per table and metric.

        Columns: table, epsilon, delta, private, per (the unit's column, or "record"), privacy, rows, metric, goal,
        score, low, high (95 %), honest (the expected score of a second real sample), label, reason.
        """
        rows = []
        for name, card in self.cards.items():
            facts = {"table": name, **promise_of(card), "rows": card.rows["synthetic"]}
            facts["privacy"] = None if card.privacy is None else card.privacy.result
            for metric, outcome in card.outcomes.items():
                ends = None if outcome.reading is None else outcome.reading.ends
                rows.append(
                    {**facts, "metric": metric, "goal": outcome.metric.goal, "score": outcome.score}
                    | {k: None if ends is None else getattr(ends, k) for k in ("low", "high", "honest")}
                    | {"label": outcome.label, "reason": outcome.reason}
                )
        return pd.DataFrame(rows)

    def to_json(self) -> JsonDict:
        """The content of scores.json of each table, under its name, in order."""
        cards = {name: card.to_json() for name, card in self.cards.items()}
        for card in cards.values():
            for name in ("format", "not_private"):
                card.pop(name)
        return {"format": "scores/1", "not_private": BANNER, "real": self.real, "tables": cards}

    def lines(self) -> list[tuple[str, ...]]:
        """A head, and a line per table: name, ε, privacy, accuracy, and every metric that a table has a score of."""
        metrics = [n for n in next(iter(self.cards.values())).outcomes if any(self._score(t, n) for t in self.cards)]
        rows: list[tuple[str, ...]] = [("table", "ε", "privacy", "accuracy", *metrics)]
        for name, card in self.cards.items():
            own = accuracy(card)
            facts = (epsilon_of(card) or "-", "-" if card.privacy is None else card.privacy.result)
            scores = (figure(self._score(name, n)) for n in metrics)
            rows.append((name, *facts, "-" if own is None else f"{own:.1%}", *scores))
        return rows

    def _score(self, table: str, metric: str) -> float | None:
        return self.cards[table].outcomes[metric].score

    def __repr__(self) -> str:
        rows = self.lines()
        return "\n".join([*lined_up(rows, left=len(rows[0])), *self.notices()])

    def _repr_html_(self) -> str:
        head, *rows = self.lines()
        caption = f"{len(rows)} synthetic tables against {self.real}"
        return notebook_table(caption, head, rows, [BANNER], self.notices())

    def notices(self, *, promises: bool = True) -> list[str]:
        """What a reader must know first: each line once, behind the names of its tables.

        Args:
            promises: with what the statements of private releases say.
        """
        names = dict[str, list[str]]()
        for name, card in self.cards.items():
            promised = bool((card.release or {}).get("private"))  # by the first line
            for line in card.notices[promised and not promises :]:
                names.setdefault(line, []).append(name)
        return [f"{', '.join(own)}: {line}" for line, own in names.items()]


def promise_of(card: Scorecard) -> JsonDict:
    """epsilon, delta, private and per of the statement beside the table; None where none is known."""
    release = card.release or {}
    return {key: release.get(key) for key in ("epsilon", "delta", "private", "per")}


def epsilon_of(card: Scorecard) -> str:
    """ε with the unit that it protects, without which two of them do not compare; empty where none is known."""
    promise = promise_of(card)
    return "" if promise["epsilon"] is None else f"{promise['epsilon']:.4g} per {promise['per']}"


def accuracy(card: Scorecard) -> float | None:
    """The mean of the accuracies of single columns, pairs and triples (Platzer 2020), as far as they are known."""
    scores = [o.score for n in ACCURACIES if (o := card.outcomes.get(n)) is not None and o.score is not None]
    return sum(scores) / len(scores) if scores else None


def rank(card: Scorecard) -> tuple[float, float]:
    """What sorts the tables: the accuracy, the largest first; where it lacks, the mean total variation distance."""
    own = accuracy(card)
    distance = card.outcomes["tvd"].score if "tvd" in card.outcomes else None
    return (1.0 if own is None else -own, 1.0 if distance is None else distance)


def honest_accuracy(card: Scorecard) -> float | None:
    """What a second sample of the real records would have for `accuracy`, where it is known for each part."""
    readings = [o.reading for n in ACCURACIES if (o := card.outcomes.get(n)) is not None and o.score is not None]
    ends = [None if r is None else r.ends.honest for r in readings]
    shares = [e for e in ends if e is not None]
    return sum(shares) / len(shares) if shares and len(shares) == len(ends) else None


def with_one_reference(cards: Mapping[str, Scorecard]) -> dict[str, Scorecard]:
    """The scorecards with one reference per metric: a second sample as large as the largest of the tables.

    Each by a sample of its own size, a small table would be called good beside a better one that is called weak. The
    order of the words is that of the scores: intervals, which differ in width, do not count.
    """
    outcomes: dict[str, dict[str, Outcome]] = {name: dict(card.outcomes) for name, card in cards.items()}
    for metric in {m: None for own in outcomes.values() for m in own}:
        readings = {t: r for t, own in outcomes.items() if (r := own[metric].reading) and r.ends.honest is not None}
        if len(readings) < 2:
            continue
        most = max(readings, key=lambda t: cards[t].rows["synthetic"])
        ends = replace(readings[most].ends, honest_is=HONEST)
        for table in readings:
            private = bool((cards[table].release or {}).get("private"))
            own, largest = outcomes[table][metric], cards[most].outcomes[metric]
            outcomes[table][metric] = own.read_against(largest, ends, private=private)
    return {name: replace(card, outcomes=outcomes[name]) for name, card in cards.items()}


#: Tables at most: each is scored by itself.
MOST = 100


def score_several(config: ScoreConfig, tables: Mapping[str, str], *, quiet: bool = False) -> Comparison:
    """Score each synthetic table as `score` does, and sort them; writes the report, if one is asked for.

    Args:
        tables: name → path.
    Raises:
        UserError: as of `score`; names the table.
    """
    if len(tables) > MOST:
        raise UserError(f"{len(tables)} tables", where="synthetic", fix=f"at most {MOST} at once")
    config, own = with_own_schema(config, list(tables.values()))
    config = replace(config, schema=config.schema or NO_SCHEMA)  # the same for all tables
    cards = {}
    for name, path in tables.items():
        evaluation = replace(config.evaluation)
        cards[name] = two_tables.score(replace(config, synthetic=path, report=None, evaluation=evaluation), quiet=quiet)
    cards = with_one_reference(cards)
    if own:
        cards = {name: replace(card, notices=(*card.notices, own)) for name, card in cards.items()}
    comparison = Comparison(
        shown_name(Path(str(config.real))), {name: cards[name] for name in sorted(cards, key=lambda n: rank(cards[n]))}
    )
    if config.report:
        write_whole(Path(config.report), comparison_page(comparison, tables).as_html(), mode=0o600)
    return comparison


def named_tables(paths: Sequence[str]) -> dict[str, str]:
    """Name → path: the file's name, or where some are equal what tells the paths apart.

    Raises:
        UserError: a table is given twice.
    """
    if len(set(paths)) < len(paths):
        raise UserError("a table is given twice", where="synthetic", fix="each table once")
    names = [Path(p).name for p in paths]
    if len(set(names)) == len(names):
        return dict(zip(names, paths, strict=True))
    parts = [list(Path(p).parts) for p in paths]
    while all(len(p) > 1 for p in parts) and len({p[0] for p in parts}) == 1:
        parts = [p[1:] for p in parts]
    while all(len(p) > 1 for p in parts) and len({p[-1] for p in parts}) == 1:
        parts = [p[:-1] for p in parts]
    return {"/".join(p): path for p, path in zip(parts, paths, strict=True)}


def tables_by_name(tables: Sequence[Any] | Mapping[str, Any]) -> dict[str, Any]:
    """Name → table: paths by their names, frames by their places.

    Raises:
        UserError: no table; a table given twice.
    """
    if isinstance(tables, Mapping):
        by_name = {str(name): table for name, table in tables.items()}
    else:
        paths = [str(t) for t in tables if isinstance(t, Path | str)]
        names = {path: name for name, path in named_tables(paths).items()}
        places = (names.get(str(t)) if isinstance(t, Path | str) else f"table {i}" for i, t in enumerate(tables, 1))
        by_name = dict(zip(map(str, places), tables, strict=True))
    if not by_name:
        raise UserError("no table given", where="synthetic", fix="a table, or several: [a, b]")
    return by_name


#: Tables that are drawn in a chart, the most accurate ones; all of them stand in the table.
DRAWN = 20


def comparison_page(compared: Comparison, paths: Mapping[str, str]) -> Page:
    """The page of several scored tables.

    Args:
        paths: of the tables, by name.
    """
    frame = compared.frame()
    sections = [tables_section(compared, frame), ranked_section(frame)]
    private = frame[frame["epsilon"].notna() & frame["score"].notna() & frame["private"].fillna(False).astype(bool)]
    if private["epsilon"].nunique() > 1:
        curve_rows = private.assign(data=compared.real, method="ε per " + private["per"], floor=private["honest"])
        sections.append(
            Section("over-epsilon", "Scores over ε", {"cards": curves(curve_rows, method_colours(curve_rows))})
        )
    now = datetime.datetime.now(datetime.UTC)
    real = next(iter(compared.cards.values())).rows["real"]
    files: list[tuple[Cell, ...]] = [("real", compared.real, real)]
    files += [(name, paths.get(name, name), card.rows["synthetic"]) for name, card in compared.cards.items()]
    notices = compared.notices(promises=False)  # which stand in the table
    subtitle = f"{len(compared.cards)} synthetic tables, scored {now:%Y-%m-%d %H:%M} UTC"
    table = Table(("table", "file", "rows"), files)
    title = f"Scores against {compared.real}"
    cards = _most_accurate(compared)
    absent = [str(m) for m in frame["metric"].unique() if frame.loc[frame["metric"] == m, "score"].isna().all()]
    last = f"Not computed of any table: {', '.join(absent)}." if absent else ""
    return Page(title, subtitle, sections, cards, files=table, warnings=notices, last=last)


def _most_accurate(compared: Comparison) -> list[HeadCard]:
    """The first table beside the next one; nothing where no accuracy is known."""
    shares = [(name, own) for name, card in compared.cards.items() if (own := accuracy(card)) is not None]
    if not shares:
        return []
    (best, own), honest = shares[0], honest_accuracy(next(iter(compared.cards.values())))
    words = f"accuracy {own:.1%}" + "".join(f"; next: {name}, {share:.1%}" for name, share in shares[1:2])
    beneath = "" if honest is None else f"{HONEST} would get {honest:.1%}"
    return [HeadCard("Most accurate", best, words=words, beneath=beneath, gauge=Gauge(own, honest))]


def tables_section(compared: Comparison, frame: pd.DataFrame) -> Section:
    """The tables with their promises and verdicts, and how every score reads."""
    rows: list[tuple[Cell, ...]] = []
    for name, card in compared.cards.items():
        own, epsilon = accuracy(card), epsilon_of(card)
        verdict = "" if card.privacy is None else card.privacy.result
        remark = "" if not epsilon or promise_of(card)["private"] else "NOT private"
        promised, judged = Words(epsilon, remark), Words(verdict, style=STYLES.get(verdict, ""))
        honest = honest_accuracy(card)
        shares = ("" if share is None else f"{share:.1%}" for share in (own, honest))
        rows.append((name, promised, judged, *shares))
    shown = [m for m in frame["metric"].unique() if frame.loc[frame["metric"] == m, "score"].notna().any()]
    lines: list[tuple[Cell, ...]] = []
    for name, card in compared.cards.items():
        cells: list[Cell] = [name]
        for metric in shown:
            outcome = card.outcomes[metric]
            value = "" if outcome.score is None else f"{outcome.score:,.4g}"
            style = "failed" if LABELS.get(outcome.label) == "failed" else ""
            cells.append(Words(value, outcome.label, style))
        lines.append(tuple(cells))
    head = ("table", "ε", "privacy against a holdout", "accuracy", "a second sample's")
    parts = {"table": Table(head, rows), "scores": Table(("table", *shown), lines)}
    return Section("tables", "Tables, the most accurate first", parts)


def ranked_section(frame: pd.DataFrame) -> Section:
    """A chart per metric that some table has a score of, the best score first."""
    cards, most = [], frame["table"].nunique()
    for name, group in frame[frame["score"].notna()].groupby("metric", sort=False):
        metric = str(name)
        low_is_good = METRICS[metric].goal == "low"
        best = group.sort_values("score", ascending=low_is_good, kind="stable").head(DRAWN)
        scored = [
            (float(own), _number(low), _number(high))
            for own, low, high in zip(best["score"], best["low"], best["high"], strict=True)
        ]
        honest = _number(best["honest"].median())
        every = [v for three in scored for v in three if v is not None] + ([] if honest is None else [honest])
        low, high = min(every), max(every)
        margin = (high - low) * 0.05 or abs(high) * 0.05 or 1.0
        ends = (METRICS[metric].low, METRICS[metric].high)
        low = low - margin if ends[0] is None else max(low - margin, ends[0])
        high = high + margin if ends[1] is None else min(high + margin, ends[1])
        title = METRICS[metric].title
        chart = marks(
            list(best["table"]),
            [values[:1] for values in scored],
            [("lreal", "")],
            label=title,
            ends=(low, high),
            intervals=[values[1:] for values in scored],
            level=honest,
            form=".4g",
        )
        better = f"{'lower' if low_is_good else 'higher'} is better"
        note = better if honest is None else f"{better}; dotted: {HONEST}"
        cards.append(Card(title, chart, note))
    return Section("metrics", "Metric by metric", {"cards": cards, "shown": min(most, DRAWN), "tables": most})


def _number(value: Any) -> float | None:
    return None if value is None or pd.isna(value) else float(value)
