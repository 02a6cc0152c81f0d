"""`experiment.kind=crc`: NIST's Collaborative Research Cycle: feature sets × ε, SDNist's score, and the submission.

The submission is written from releases alone; its form was read off the archive's public entries (release 1.1).
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path

from mechanisms.public.errors import UserError, check_names
from mechanisms.public.files import Json, JsonDict, write_whole
from mechanisms.public.settings import setting
from pipeline.budget import admission
from pipeline.budget.admission import PlannedRelease
from pipeline.experiments import challenge
from pipeline.experiments.challenge_settings import ChallengeSettings, ReleasesSettings, Variant, variants_of
from pipeline.experiments.experiment_settings import settings_of
from pipeline.experiments.findings import Findings, closing_text, write_findings
from pipeline.folders import claimed
from pipeline.load_stage import keep_settings
from pipeline.run_log import logged
from pipeline.settings.config import Config
from pipeline.settings.experiment_list import ExperimentConfig
from pipeline.settings.specs import build_unit, settled
from pipeline.statement.statement import unit_fields
from pipeline.statement.words import reasons_in_words, sentence

#: Where the table is to be had; the experiment says so where it runs without.
WHERE = (
    "national2019.csv of NIST's Diverse Communities Data Excerpts, in the repository usnistgov/SDNist on GitHub and in "
    "the releases of usnistgov/privacy_collaborative_research_cycle"
)
#: What `smoke=true` leaves of the feature sets.
SMOKE_SETS = 2


@dataclass(frozen=True)
class CrcSettings(ReleasesSettings):
    """`experiment.*`; the comments stand in conf/experiment.

    Attributes:
        sets: name of a feature set → its columns; only: names of those that are made; empty: all.
        epsilons: a release of each set for each; roles: role → column, where a set has it.
        submission: what the labels and the abstract say of the method; see SAYS.
    """

    sets: dict[str, list[str]] = field(default_factory=dict)
    only: list[str] = field(default_factory=list)
    repeats: int = setting(5, least=1, noun="how often each is made: a whole number")
    submission: dict[str, str] = field(default_factory=dict)


def parts_of(config: Config) -> Iterator[tuple[str, Config]]:
    """Each feature set as a challenge of its own, with the roles and important columns that it has.

    Raises:
        UserError: an unknown set, or an impossible setting.
    """
    own = settings_of(config, CrcSettings)
    for word in own.submission.keys() - set(SAYS):
        raise UserError(f"no such word {word!r}", where="experiment.submission", fix=f"one of {', '.join(SAYS)}")
    if config.release.format != "csv":
        problem = f"got {config.release.format}, but the submission is made of released CSV files"
        raise UserError(problem, where="release.format", fix="release.format=csv")
    some = f"some of {', '.join(own.sets)}"
    check_names(own.only, own.sets, "no feature set", where="experiment.only", fix=some)
    shared = {f.name for f in fields(ChallengeSettings)} & {f.name for f in fields(own)} - {"published"}
    chosen_sets = [(n, columns) for n, columns in own.sets.items() if n in (own.only or own.sets)]
    for name, columns in chosen_sets[: SMOKE_SETS if config.smoke else None]:
        printed = [{k: v for k, v in p.items() if k != "dataset"} for p in own.published if p.get("dataset") == name]
        options = {k: v for k, v in asdict(own).items() if k in shared}
        options |= {"name": f"{own.name}: {name}", "columns": columns, "published": printed}
        options["roles"] = {role: column for role, column in own.roles.items() if column in columns}
        selection = replace(config.selection, options=_selected(config, columns, own.roles.get("area")))
        yield name, replace(config, experiment=ExperimentConfig("challenge", options), selection=selection)


def _selected(config: Config, columns: Sequence[str], area: str | None) -> JsonDict:
    """The selection's settings for some columns: where none are said to be important, the area is.

    The score has a pair with the area in as many triples as there are further columns, and any other pair in one.
    """
    options = dict(config.selection.options)
    if options.get("important"):
        options["important"] = [c for c in options["important"] if c in columns]
    elif "important" in options and area in columns:
        options |= {"important": [area], "important_weight": max(len(columns) - 2, 1)}
    return options


def run_and_tell(config: Config, root: Path, hydra_files: Mapping[str, str]) -> str:
    """Make and score each release of each feature set, and write the table beside the archive's and the submission.

    Each is an ordinary run with its own release and its own promise in `SET/epsilon-…/`; the scores are NOT private.

    Returns:
        the short table, where everything lies, and where the table is published.
    Raises:
        UserError: an impossible setting, or a table that does not fit.
    """
    own, parts = settings_of(config, CrcSettings), list(parts_of(config))
    admission.check(releases(config, root))
    findings_of: dict[str, Findings] = {}
    entries: list[tuple[str, Variant, Path]] = []
    with claimed(root, resume=config.resume) as folder, logged(folder.log):
        write_whole(folder.manifest, json.dumps({"experiment": own.name, "sets": list(dict(parts))}), mode=0o600)
        keep_settings(folder, config, hydra_files)
        for name, part in parts:
            home = folder.root / name
            part = replace(part, resume=(home / "internal" / "manifest.json").exists())
            findings_of[name] = challenge.run(part, home, hydra_files)
            small = challenge.smaller(part) if part.smoke else part
            for variant in variants_of(settings_of(small, ChallengeSettings)):
                entries.append((name, variant, home / variant.name))
        inside = folder.root / FOLDER
        labels = [_write_entry(inside, *entry, own.submission, real=bool(config.data.path)) for entry in entries]
        who = sentence("unit", unit_fields(build_unit(settled(config).privacy, config.data)))
        _write_words(inside, labels, own.submission, asdict(config.statement), who)
        rows = tuple(row | {"dataset": name} for name, own_findings in findings_of.items() for row in own_findings.rows)
        first = next(iter(findings_of.values()))
        setting = {**first.setting, "experiment": own.name, "settings": asdict(own)}
        notes = (*own.notes, *(() if config.data.path else (f"The table itself: {WHERE}.",)))
        findings = Findings(rows, setting, own.source, own.says, notes).beside
        write_findings(findings, folder.internal)
    text = closing_text(findings, root / "internal", config.console)
    text += f"\n\nthe submission, in the form of NIST's archive: {root / FOLDER}"
    return text if config.data.path else f"{text}\nmade from generated rows; the table itself (data.path=FILE): {WHERE}"


def releases(config: Config, root: Path) -> tuple[PlannedRelease, ...]:
    """What the experiment books: the releases of all feature sets.

    Raises:
        UserError: an impossible setting.
    """
    return tuple(each for name, part in parts_of(config) for each in challenge.releases(part, root / name))


#: Under the experiment's folder.
FOLDER = "submission"
#: What `experiment.submission` may say.
SAYS = ("team", "library", "algorithm", "type", "detail", "papers", "code", "tuning")
#: How the archive calls a feature set of this name.
SETS = {"all": "all-features"} | {s: f"{s}-focused" for s in ("demographic", "industry", "family")}
SETS |= {"simple": "simple-features"}
#: The archive's text for a value that does not apply.
NONE = "N"


def _write_entry(
    inside: Path, feature_set: str, variant: Variant, home: Path, words: Mapping[str, str], *, real: bool
) -> JsonDict:
    """The data and the labels of one table, `real` if it is NIST's, beside each other; returns the labels."""
    statement = json.loads((home / "release" / "privacy.json").read_text(encoding="utf-8"))
    text, columns = _with_n((home / "release" / "synthetic.csv").read_text(encoding="utf-8"))
    budget, private = statement["budget"], statement["private"]
    detail = words.get("detail", "")
    if not private:
        detail = f"NOT private: {'; '.join(reasons_in_words(statement['reasons_not_private']))}"
    labels: JsonDict = {
        "team": words.get("team") or None,
        "submission timestamp": None,
        "target dataset": "national2019" if real else "generated rows, not national2019",
        "algorithm name": words.get("algorithm", ""),
        "variant label": f"run {variant.run}",
        "epsilon": _exact(budget["epsilon"]),
        "delta": _exact(budget["delta"]),
        "submission number": variant.run,
        "algorithm type": words.get("type", ""),
        "feature set name": SETS.get(feature_set, feature_set),
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
    name = f"{words.get('algorithm', 'data')}_e_{_exact(variant.epsilon)}_{feature_set}_{variant.run}"
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


def _write_words(inside: Path, labels: Sequence[Json], words: Mapping[str, str], statement: Json, unit: str) -> None:
    """abstract.md: the answers of the submission form; no score stands in it, since scores saw the rows."""
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
