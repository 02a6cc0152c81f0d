"""A submission to NIST's Collaborative Research Cycle: deidentified data and labels as in its archive, an abstract.

Written from releases alone. What the archive's form is was read off its public entries (release 1.1).
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from mechanisms.public.errors import UserError
from mechanisms.public.files import write_whole
from mechanisms.public.json_values import Json, JsonDict
from pipeline.statement.words import reasons_in_words

#: Under the experiment's folder.
FOLDER = "submission"
#: What `experiment.submission` may say.
SAYS = ("team", "library", "algorithm", "type", "detail", "papers", "code", "tuning")
#: How the archive calls a feature set of this name.
SETS = {"all": "all-features"} | {s: f"{s}-focused" for s in ("demographic", "industry", "family")}
SETS |= {"simple": "simple-features"}
#: The archive's text for a value that does not apply.
NONE = "N"


@dataclass(frozen=True)
class Entry:
    """One table of a submission.

    Attributes:
        feature_set: its columns, by name.
        epsilon: ε; run: which of several, from 1 on.
        home: the run's folder, with its release.
    """

    feature_set: str
    epsilon: float
    run: int
    home: Path


def check_words(words: Mapping[str, str]) -> None:
    """`experiment.submission` says nothing else.

    Raises:
        UserError: a word of an unknown name.
    """
    for name in words.keys() - set(SAYS):
        raise UserError(f"no such word {name!r}", where="experiment.submission", fix=f"one of {', '.join(SAYS)}")


def write_entry(inside: Path, entry: Entry, words: Mapping[str, str], *, real: bool) -> JsonDict:
    """The data and the labels of one table, beside each other; returns the labels.

    Args:
        inside: the submission's folder.
        words: what `experiment.submission` says.
        real: whether the table is NIST's; a generated stand-in is labelled as such.
    """
    statement = json.loads((entry.home / "release" / "privacy.json").read_text(encoding="utf-8"))
    text, columns = _with_n((entry.home / "release" / "synthetic.csv").read_text(encoding="utf-8"))
    budget, private = statement["budget"], statement["private"]
    detail = words.get("detail", "")
    if not private:
        detail = f"NOT private: {'; '.join(reasons_in_words(statement['reasons_not_private']))}"
    labels: JsonDict = {
        "team": words.get("team") or None,
        "submission timestamp": None,
        "target dataset": "national2019" if real else "generated rows, not national2019",
        "algorithm name": words.get("algorithm", ""),
        "variant label": f"run {entry.run}",
        "epsilon": _exact(budget["epsilon"]),
        "delta": _exact(budget["delta"]),
        "submission number": entry.run,
        "algorithm type": words.get("type", ""),
        "feature set name": SETS.get(entry.feature_set, entry.feature_set),
        "privacy category": "dp" if private else "non_dp",
        "library name": f"{words.get('library', '')} {statement['versions']['pipeline']}".strip(),
        "deid data id": hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest(),
        "features list": ", ".join(columns),
        "privacy label detail": detail,
        "research papers": words.get("papers", ""),
    }
    technique = "_".join(filter(None, [words.get("library", ""), words.get("algorithm", ""), words.get("team", "")]))
    place = inside / "deid_data" / technique.replace(" ", "-") / "national"
    place.mkdir(parents=True, exist_ok=True)
    name = f"{words.get('algorithm', 'data')}_e_{_exact(entry.epsilon)}_{entry.feature_set}_{entry.run}"
    name = name.replace(" ", "-")
    write_whole(place / f"{name}.csv", text)
    write_whole(place / f"{name}.json", json.dumps({"labels": labels}, indent=4))
    return labels


def _exact(number: float) -> str:
    """The number itself, never rounded down to fewer digits: 2.0000009 is not 2."""
    return f"{number:.0f}" if number == int(number) else repr(float(number))


def _with_n(text: str) -> tuple[str, list[str]]:
    """The released table with the archive's text where a value is missing, and its columns."""
    rows = list(csv.reader(io.StringIO(text)))
    text_out = io.StringIO()
    csv.writer(text_out, lineterminator="\n").writerows([[cell or NONE for cell in row] for row in rows])
    return text_out.getvalue(), rows[0]


def write_words(inside: Path, labels: Sequence[Json], words: Mapping[str, str], statement: Json, unit: str) -> None:
    """abstract.md: the answers of the submission form; no score stands in it, since scores saw the rows.

    Args:
        statement: what `statement.*` says of who publishes.
        unit: who is protected, in words.
    """
    wrong = [each for each in labels if each["privacy category"] != "dp"]
    lines = ["# Abstract", ""]
    if wrong:
        lines += [f"**NOT private: {len(wrong)} of {len(labels)} tables.** {wrong[0]['privacy label detail']}", ""]
    lines += [words.get("detail", ""), ""]
    budgets = sorted({(float(each["epsilon"]), each["delta"]) for each in labels})
    spent = "; ".join(f"ε = {_exact(e)}, δ = {d}" for e, d in budgets)
    sets = list(dict.fromkeys(each["feature set name"] for each in labels))
    lines += [
        f"- Tables: {len(labels)}, of the feature sets {', '.join(sets)}; each protects {unit} at {spent}.",
        "- Each table spends its own budget: whoever publishes several adds them up.",
        f"- Source code: {words.get('code') or 'to be filled in'}",
        "- Privacy proof and guide to the code: PRIVACY.md of the source, and privacy.json and statement.html of each "
        "release, which `verify` recomputes.",
        "- Execution: `python -m pipeline run experiment=nist_crc data.path=national2019.csv`",
        f"- Tuning: {words.get('tuning', '')}",
        f"- Contact: {statement.get('contact') or 'to be filled in (statement.contact)'}",
    ]
    write_whole(inside / "abstract.md", "\n".join(lines) + "\n")
