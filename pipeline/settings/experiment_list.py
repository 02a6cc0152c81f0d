"""The experiments that can be asked for: by name, and each with the line that its file says about itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from mechanisms.public.members import Members
from pipeline.conf_folder import CONF


@dataclass
class ExperimentConfig:
    """An experiment by name; its own settings stand with it."""

    kind: str | None = None
    options: dict[str, Any] = field(default_factory=dict)


class Experiment(Protocol):
    """An experiment: a module, or an object, with these two functions."""

    def releases(self, config: Any, root: Path) -> tuple[Any, ...]:
        """The releases (`PlannedRelease`) that it books in a shared ledger, from the settings and the main folder."""
        ...

    def run_and_tell(self, config: Any, root: Path, hydra_files: Mapping[str, str]) -> str:
        """Run it; returns the last lines for a reader.

        Args:
            config: the settings of the run (`Config`).
            root: the main folder.
            hydra_files: name → text of the files that record the settings.
        """
        ...


#: The experiments by name, each a module that is loaded when it is asked for, since plotting is slow to load.
EXPERIMENTS: Members[Experiment] = Members(
    "experiment.kind",
    {
        "dpsyn_figure2": "pipeline.experiments.dpsyn_figure2",
        "challenge": "pipeline.experiments.challenge",
        "crc": "pipeline.experiments.nist_crc",
        "maps": "pipeline.experiments.maps",
        "all": "pipeline.experiments.gallery.all_experiments",
    },
)


#: `experiment=NAME` → the file of its settings: ours, and those of plugins that are loaded.
FILES: dict[str, Path] = {path.stem: path for path in sorted((CONF / "experiment").glob("*.yaml"))}
#: The experiments that run, by their kinds; the releases that they make, in any thread, name those that are not ours.
running: list[str] = []


def described() -> str:
    """All experiments, each with the line that its file says about itself."""
    lines = []
    for name, path in FILES.items():
        comments = [x[1:].strip() for x in path.read_text(encoding="utf-8").splitlines() if x.startswith("#")]
        about = next((c for c in comments if not c.startswith(("@package", "python -m"))), "")
        lines.append(f"    {name}: {about}")
    return "\n".join(lines)
