"""The gallery of experiments from what `experiment=all` left: python docs/make_experiments.py outputs/gallery [OTHER …]

Writes docs/experiments.md and docs/figures/experiments/*.svg. Of an experiment in several folders the last one counts;
one that is in none is named at the end. Only runs on published tables and on generated rows belong here.
"""

import json
import re
import shutil
import sys
from pathlib import Path

from pipeline.conf_folder import CONF
from pipeline.experiments.findings import runs_in_words
from pipeline.experiments.gallery.all_experiments import names_of_all, numbers_of, table_of
from pipeline.settings.config import load_config
from pipeline.version import __version__

DOCS = Path(__file__).parent
FIGURES = DOCS / "figures" / "experiments"
#: Lines of a table; what the source prints stands first.
MOST = 38
HEAD = f"""# Experiments

Every experiment of the papers and challenges: its command, what the source prints, what we get, and why they differ.
All in one command:

```text
python -m pipeline run experiment=all hydra.run.dir=outputs/gallery
python docs/make_experiments.py outputs/gallery
```

The second command makes this page from what the first one left (from several folders, where the experiments ran side by
side, as for this page); version {__version__}.
`experiment.files.NAME=FILE` gives the real tables (`run --help experiment=all`); which table was read stands with each.
Noise is fresh in every run: where an experiment was made several times, the figures are means, and ± is their standard
error (error bars in the pictures). *floor* is what fresh real records score: one sample of the real table, drawn with
replacement, against another. A better figure is no mistake: a table that follows the marginals has no sampling noise.
A rank correlation of 1 means the same order of quality. Processor time is that of all cores together, SECONDS s for all
experiments; wall times are of two cores that much other work shared, and mean little.

The sources are known in copies of different paging: a place is a table, figure or section, not a page.
The pictures say NOT private because a run cannot know that its table is published. All tables here are: they were
published, or nobody's rows were generated. What each source is and which file it needs stands in
[Sweeps and experiments](sweeps-and-experiments.md#experiments).
"""


def about(name: str) -> str:
    """The first sentence that the experiment's file says about itself, over as many lines as it takes."""
    lines = (CONF / "experiment" / f"{name}.yaml").read_text(encoding="utf-8").splitlines()
    comments = [x[1:].strip() for x in lines if x.startswith("#")]
    text = " ".join(c for c in comments if not c.startswith(("@package", "python -m")))
    return re.split(r"(?<=\.) (?=[A-Z])", text, maxsplit=1)[0]


def notes_of(name: str, facts: dict) -> list[str]:
    """The notes of the experiment's file as it is now, and those that the run added."""
    if "settings" not in facts or "notes" not in facts["settings"]:
        return facts.get("notes", [])
    written = facts["settings"]["notes"]
    return [*load_config([f"experiment={name}"]).experiment.options["notes"], *facts["notes"][len(written) :]]


def command(outcome: dict) -> str:
    """The command, with the names of files in the place of their paths."""
    text = " ".join(["python -m pipeline run", *outcome["arguments"]])
    return re.sub(r'data\.path="?(?:[^" ]*/)?([^"/ ]+)"?', r"data.path=\1", text)


def section(name: str, outcome: dict, folder: Path) -> list[str]:
    """One experiment; its picture is copied."""
    inside = folder / name / "internal"
    facts = json.loads((inside / "experiment.json").read_text(encoding="utf-8"))
    pictures = {name: next(iter(sorted(inside.glob("figure*.svg"))))}
    if (inside / "against.svg").exists():
        pictures[f"{name}-against"] = inside / "against.svg"
    FIGURES.mkdir(parents=True, exist_ok=True)
    for shown, picture in pictures.items():
        shutil.copyfile(picture, FIGURES / f"{shown}.svg")
        (FIGURES / f"{shown}.svg").chmod(0o644)
    source = facts.get("source") or facts.get("paper", {}).get("source", "")
    numbers = sorted(numbers_of(folder / name), key=lambda n: n["published"] is None)
    more = len(numbers) - MOST
    lines = [f"## {name}", "", about(name), "", "```text", command(outcome), "```", "", f"Source: {source}.", ""]
    if facts.get("source_says"):
        lines += [f"The source says: {facts['source_says']}.", ""]
    data = facts.get("data", {}).get("kind")
    table = facts.get("data", {}).get("file") or data
    runs = f" {runs_in_words(n['runs'] for n in numbers)}" if table else ""
    read = f"Table: {table}." if table else "No table is read."
    times = f"Processor time: {outcome['cpu_seconds']:.0f} s (wall time {outcome['seconds']:.0f} s)."
    lines += [f"{read} {times}{runs}", ""]
    lines += table_of(numbers[:MOST])
    lines += ["", f"{more} more numbers of ours stand in the experiment's own table."] if more > 0 else []
    notes = notes_of(name, facts)
    lines += ["", "Why they differ:", "", *(f"- {note}" for note in notes)] if notes else []
    return [*lines, *(line for shown in pictures for line in ("", f"![{shown}](figures/experiments/{shown}.svg)")), ""]


def main(folders: list[Path]) -> None:
    """Write the page and the pictures."""
    made: dict[str, tuple[dict, Path]] = {}
    for folder in folders:
        outcomes = json.loads((folder / "internal" / "outcomes.json").read_text(encoding="utf-8"))
        made |= {name: (o, folder) for name, o in outcomes.items() if o["status"] == "done"}
    seconds = sum(outcome["cpu_seconds"] for outcome, _ in made.values())
    lines = [HEAD.replace("SECONDS", f"{seconds:,.0f}")]
    for name in names_of_all():
        if name in made:
            lines += section(name, *made[name])
    absent = [f"`{name}`" for name in names_of_all() if name not in made]
    lines += [f"Not made for this page: {', '.join(absent)}.", ""] if absent else []
    (DOCS / "experiments.md").write_text("\n".join(lines), encoding="utf-8")
    print(f"{DOCS / 'experiments.md'}: {len(made)} experiments")


if __name__ == "__main__":
    main([Path(a) for a in sys.argv[1:]])
