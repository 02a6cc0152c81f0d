"""The three cards at the top of a report: privacy, accuracy and similarity, each with what it is to be read against."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from pipeline.pages.page import Gauge, HeadCard

#: What tells whether whole records look alike, the first one that has a score: a metric, and its words.
ANITA = {"anita_1way": "1-way", "anita_2way": "2-way", "anita_3way": "3-way"}
SAMPLE = "a second sample of as many real rows"
STYLES = {"passed": "passed", "failed": "failed", "not judged": "soft"}


def header_cards(scores: Mapping[str, Any]) -> list[HeadCard]:
    """From the content of scores.json; a card says where nothing was computed for it."""
    metrics = {name: m for name, m in scores["metrics"].items() if m.get("score") is not None}
    return [privacy_card(scores), accuracy_card(metrics), similarity_card(metrics)]


def accuracy_card(metrics: Mapping[str, Any]) -> HeadCard:
    """The mean accuracy of 1-, 2- and 3-way tables (Platzer 2020); where they lack, 1 − mean total variation."""
    of = [name for name in ANITA if name in metrics]
    odd = [ANITA[n] for n in of if _style(metrics[n].get("reading") or {})]
    if of:
        shares = [metrics[name]["score"] for name in of]
        words = "mean of " + ", ".join(f"{ANITA[name]} {s:.1%}" for name, s in zip(of, shares, strict=True))
        chance = [_value(metrics[name], "expected") for name in of]
        card = _share_card("Accuracy", shares, chance, f"{words} tables")
        if not odd:
            return card
        beneath = f"{card.beneath}; suspicious, better than an honest table can be: {', '.join(odd)}"
        return replace(card, style="failed", beneath=beneath)
    if "tvd" in metrics:
        own, sample = 1 - metrics["tvd"]["score"], _value(metrics["tvd"], "expected")
        words = "1 − mean total variation distance of 2-way marginals"
        return _share_card("Accuracy", [own], [None if sample is None else 1 - sample], words)
    return HeadCard("Accuracy", "not computed", "soft", "evaluation.metrics=quick has it")


def _share_card(title: str, shares: Sequence[float], chance: Sequence[float | None], words: str) -> HeadCard:
    share = sum(shares) / len(shares)
    known = [c for c in chance if c is not None]
    mark = sum(known) / len(known) if len(known) == len(shares) else None
    beneath = "" if mark is None else f"{SAMPLE} would get {mark:.1%}"
    return HeadCard(title, f"{share:.1%}", "", words, beneath, Gauge(share, mark))


def similarity_card(metrics: Mapping[str, Any]) -> HeadCard:
    """Whether a model tells synthetic from real records (Lopez-Paz & Oquab 2017); else how much dependence is kept."""
    if "two_sample_auc" in metrics:
        metric = metrics["two_sample_auc"]
        own, reading = metric["score"], metric.get("reading") or {}
        honest = reading.get("honest")
        words = "AUC of a model that tells synthetic from real records: 0.5 is guessing, 1 always told apart"
        beneath = "" if honest is None else f"{honest['note']}: {honest['value']:.3f}"
        gauge = Gauge(_alike(own), None if honest is None else _alike(honest["value"]))
        return HeadCard("Similarity", f"{own:.3f}", _style(reading), words, beneath, gauge)
    if "dependence" in metrics:
        metric = metrics["dependence"]
        kept, reading = metric["score"], metric.get("reading") or {}
        honest = reading.get("honest")
        words = "of the dependence between pairs of columns is kept"
        beneath = "all of it is perfect; independent columns keep none"
        beneath = beneath if honest is None else f"{honest['note']} would keep {honest['value']:.0%}"
        mark = None if honest is None else min(max(honest["value"], 0.0), 1.0)
        gauge = Gauge(min(max(kept, 0.0), 1.0), mark)
        return HeadCard("Similarity", f"{kept:.0%}", _style(reading), words, beneath, gauge)
    return HeadCard("Similarity", "not computed", "soft", "evaluation.metrics=quick has it")


def _alike(auc: float) -> float:
    """1 at an AUC of ½, 0 where all are told apart."""
    return min(max(2 * (1 - auc), 0.0), 1.0)


def _style(reading: Mapping[str, Any]) -> str:
    return "failed" if reading.get("label") == "suspicious" else ""


def privacy_card(scores: Mapping[str, Any]) -> HeadCard:
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


def _value(metric: Mapping[str, Any], name: str) -> float | None:
    """A reference of a metric: what was measured, before what a formula says."""
    reading = metric.get("reading") or {}
    for part in (metric.get("floor"), metric.get(name), reading.get("honest")):
        if isinstance(part, Mapping) and part.get("value") is not None:
            return float(part["value"])
    return None
