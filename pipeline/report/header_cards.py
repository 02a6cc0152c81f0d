"""The top of a report: cards for privacy, accuracy and similarity, each with its reference, and the tables' files."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from evaluation.metrics import ACCURACIES
from mechanisms.public.files import Json
from pipeline.report.page import Gauge, HeadCard, Table

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
    privacy, others = privacy_card(scores), [accuracy_card(metrics), similarity_card(metrics)]
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


def accuracy_card(metrics: Json) -> HeadCard:
    """The mean accuracy of 1-, 2- and 3-way tables (Platzer 2020), and beside it which of them are the worst, and how.

    Where they lack, the mean total variation distance stands there, under its own name.
    """
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
