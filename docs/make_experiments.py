"""The gallery of experiments, from what `experiment=all` left: python docs/make_experiments.py outputs/all [OTHER …]

Writes docs/experiments.md and docs/figures/experiments/*.svg. Of an experiment in several folders the last one counts;
one that is in none is named at the end. Only runs on published tables and on generated rows belong here.
"""

import json
import re
import shutil
import sys
from pathlib import Path

from pipeline.conf_folder import CONF
from pipeline.experiments.gallery.all_experiments import names_of_all
from pipeline.experiments.gallery.summary_page import numbers_of, table_of
from pipeline.version import __version__

DOCS = Path(__file__).parent
FIGURES = DOCS / "figures" / "experiments"
#: Lines of a table; what the source prints stands first.
MOST = 24
HEAD = f"""# Experiments

Every experiment of the papers and challenges: its command, what the source prints, what we get, and why they differ.
All in one command:

```text
python -m pipeline run experiment=all hydra.run.dir=outputs/all
python docs/make_experiments.py outputs/all
```

The second command made this page from what the first one left, with version {__version__}.
`experiment.files.NAME=FILE` gives the real tables (`run --help experiment=all`); which table was read stands with each.
Noise is fresh in every run, so the last digits differ. Wall times are of two cores that other work shared.

The sources are known in copies of different paging: a place is a table, figure or section, not a page.
The pictures say NOT private because a run cannot know that its table is published. All tables here are: they were
published, or nobody's rows were generated. What each source is and which file it needs stands in
[Sweeps and experiments](sweeps-and-experiments.md#experiments).
"""


def about(name: str) -> str:
    """What the experiment's file says first about itself."""
    lines = (CONF / "experiment" / f"{name}.yaml").read_text(encoding="utf-8").splitlines()
    comments = [x[1:].strip() for x in lines if x.startswith("#")]
    return next(c for c in comments if not c.startswith(("@package", "python -m")))


def command(outcome: dict) -> str:
    """The command, with the names of files in the place of their paths."""
    text = " ".join(["python -m pipeline run", *outcome["arguments"]])
    return re.sub(r'data\.path="?(?:[^" ]*/)?([^"/ ]+)"?', r"data.path=\1", text)


def section(name: str, outcome: dict, folder: Path) -> list[str]:
    """One experiment; its picture is copied."""
    inside = folder / name / "internal"
    facts = json.loads((inside / "experiment.json").read_text(encoding="utf-8"))
    picture = next(iter(sorted(inside.glob("figure*.svg"))))
    FIGURES.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(picture, FIGURES / f"{name}.svg")
    (FIGURES / f"{name}.svg").chmod(0o644)
    source = facts.get("source") or facts.get("paper", {}).get("source", "")
    numbers = sorted(numbers_of(folder / name), key=lambda n: n["published"] is None)
    more = len(numbers) - MOST
    lines = [f"## {name}", "", about(name), "", "```text", command(outcome), "```", "", f"Source: {source}.", ""]
    if facts.get("source_says"):
        lines += [f"The source says: {facts['source_says']}.", ""]
    data = facts.get("data", {}).get("kind")
    table = facts.get("data", {}).get("file") or data
    lines += [f"Table: {table}." if table else "No table is read.", f"Wall time: {outcome['seconds']:.0f} s.", ""]
    lines += table_of(numbers[:MOST])
    lines += ["", f"{more} more numbers of ours stand in the experiment's own table."] if more > 0 else []
    notes = facts.get("notes", [])
    lines += ["", "Why they differ:", "", *(f"- {note}" for note in notes)] if notes else []
    return [*lines, "", f"![{name}](figures/experiments/{name}.svg)", ""]


def main(folders: list[Path]) -> None:
    """Write the page and the pictures."""
    made: dict[str, tuple[dict, Path]] = {}
    for folder in folders:
        outcomes = json.loads((folder / "internal" / "outcomes.json").read_text(encoding="utf-8"))
        made |= {name: (o, folder) for name, o in outcomes.items() if o["status"] == "done"}
    lines = [HEAD]
    for name in names_of_all():
        if name in made:
            lines += section(name, *made[name])
    absent = [f"`{name}`" for name in names_of_all() if name not in made]
    lines += [f"Not made for this page: {', '.join(absent)}.", ""] if absent else []
    (DOCS / "experiments.md").write_text("\n".join(lines), encoding="utf-8")
    print(f"{DOCS / 'experiments.md'}: {len(made)} experiments")


if __name__ == "__main__":
    main([Path(a) for a in sys.argv[1:]])
