"""Several synthetic tables against one real table: a scorecard each, sorted, with their ε where it is known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import pandas as pd

from evaluation.metrics import ACCURACIES
from evaluation.outcome import Outcome
from evaluation.readings.reading import figure
from evaluation.score import BANNER, Scorecard
from mechanisms.public.json_values import JsonDict
from mechanisms.public.notebook_table import notebook_table
from mechanisms.public.text_table import lined_up

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
                read = outcome.reading
                ends = None if read is None else read.ends
                rows.append(
                    {**facts, "metric": metric, "goal": outcome.metric.goal, "score": outcome.score}
                    | {k: None if ends is None else getattr(ends, k) for k in ("low", "high", "honest")}
                    | {"label": "" if read is None else read.label, "reason": outcome.reason}
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
        table = lined_up(rows, left=len(rows[0]))
        notices = [(line, name) for name, card in self.cards.items() for line in card.notices]
        names = {line: ", ".join(n for other, n in notices if other == line) for line, _ in notices}
        return "\n".join([*table, *(f"{name}: {line}" for line, name in names.items())])

    def _repr_html_(self) -> str:
        head, *rows = self.lines()
        return notebook_table(f"{len(rows)} synthetic tables against {self.real}", head, rows, notes=[BANNER])


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
        readings = {t: r for t, own in outcomes.items() if (r := own[metric].reading) is not None}
        readings = {t: r for t, r in readings.items() if r.ends.honest is not None}
        if len(readings) < 2:
            continue
        most = max(readings, key=lambda t: cards[t].rows["synthetic"])
        ends = replace(readings[most].ends, honest_is=HONEST)
        for table in readings:
            private = bool((cards[table].release or {}).get("private"))
            own, largest = outcomes[table][metric], cards[most].outcomes[metric]
            outcomes[table][metric] = own.read_against(largest, ends, private=private)
    return {name: replace(card, outcomes=outcomes[name]) for name, card in cards.items()}
