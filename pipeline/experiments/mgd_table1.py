"""`experiment=mgd_table1`: the rows of Table 1 and the curves of Figure 3 of Li et al. 2021a on a temporal map."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from mechanisms.public.errors import UserError
from mechanisms.public.files import write_whole
from pipeline.experiments.experiment_settings import RowSpec, rows_of
from pipeline.experiments.findings import finished, setting_of, told
from pipeline.experiments.map_experiment import OpenMap, opened_map
from pipeline.experiments.map_experiment import releases as releases  # what is booked follows from the same settings
from pipeline.experiments.table1.figure import draw_figure
from pipeline.experiments.table1.table1_report import Table1Report as Findings
from pipeline.experiments.table1.table1_report import as_csv, as_json, as_markdown, summary
from pipeline.experiments.table1.table1_scores import Yardstick, make_yardstick, own, score_row
from pipeline.experiments.table1_histograms import Maker
from pipeline.folders import RunFolder
from pipeline.json_types import JsonDict
from pipeline.settings import inputs
from pipeline.settings.config import Config, PrivacyConfig
from pipeline.stage_bars import Stages

#: What is left for readers.
FILES = ("table1.md", "table1.csv", "figure3.png", "experiment.json")


@dataclass(frozen=True)
class Table1Outcome:
    """What an experiment left, all of it NOT private.

    Attributes:
        folder: its folder; the results lie under internal/.
        findings: the rows and what they say about the paper's claim.
    """

    folder: RunFolder
    findings: Findings

    def __repr__(self) -> str:
        return f"Table1Outcome({str(self.folder.root)!r}, {len(self.findings.rows)} rows)"


def run(
    config: Config, root: Path | str, *, hydra_files: Mapping[str, str] | None = None, quiet: bool = False
) -> Table1Outcome:
    """Make every synthetic table, score it, and write the table, the figure and the check of the paper's claim.

    What it tells may not be published: the scores and the samples saw the raw rows. The tables by GUM are releases of
    their own. Rows that are finished are kept in the folder and not made again when the experiment is resumed.

    Raises:
        UserError: an impossible setting, or a table that does not fit.
    """
    _check(config)
    show = Stages(quiet=quiet, console=config.console)
    with opened_map(config, Path(root), hydra_files, show) as opened:
        settings = own(opened.config)
        runs: list[list[JsonDict]] = [[] for _ in range(settings.repeats)]
        yardstick, specs = make_yardstick(opened.world, settings), rows_of(settings)
        for place, spec in enumerate(specs):
            with show.stage(spec.name) as report:
                report(place, len(specs), f"row {place + 1} of {len(specs)}")
                path = opened.folder.internal / "rows" / f"{spec.name}.json"
                runs[spec.run - 1].append(finished(path, partial(_row, opened.maker, yardstick, spec)))
        findings = Findings(tuple(map(tuple, runs)), _setting(opened, yardstick))
        _write(opened.folder, findings)
    return Table1Outcome(opened.folder, findings)


def _row(maker: Maker, yardstick: Yardstick, spec: RowSpec) -> JsonDict:
    """One row: what it was made of, its scores, its promise and its time."""
    start = time.perf_counter()
    noisy = maker.make(spec)
    middle = time.perf_counter()
    row = {"dataset": spec.dataset, "method": spec.method, "value": spec.value, **score_row(yardstick, noisy.histogram)}
    row |= {"promise": noisy.promise}
    row |= {"seconds": {"make": round(middle - start, 3), "score": round(time.perf_counter() - middle, 3)}}
    return row


def _check(config: Config) -> None:
    """Settings of an ordinary run that the experiment decides on its own are refused, not ignored."""
    plain = PrivacyConfig()
    for name, mine in (
        ("epsilon", "experiment.dpsyn and experiment.laplace"),
        ("max_records", "experiment.max_records"),
    ):
        if getattr(config.privacy, name) != getattr(plain, name):
            fix = f"set {mine}, and leave privacy.{name} out"
            raise UserError("an experiment has its own", where=f"privacy.{name}", fix=fix)


def _setting(opened: OpenMap, yardstick: Yardstick) -> JsonDict:
    """What the rows were made from, and how."""
    config, world = opened.config, opened.world
    generated = inputs.generated(config)
    kind = f"generated (demo, data.seed={config.data.seed})" if generated else "a file of yours"
    data = {"file": None if generated else opened.path.name, "columns": list(world.domain.names)}
    shape = list(world.histogram.shape)
    return {
        **setting_of(config, kind, opened.facts, world.table.rows, **data, shape=shape),
        "privacy_unit": config.privacy.unit,
        "seeds": {
            "range queries": own(config).query_seed,
            "samples": own(config).sample_seed,
            "noise": config.privacy.noise_seed,
            "synthesis": config.synthesis.seed,
        },
        "range_queries": yardstick.queries.size,
        "settings": asdict(own(config)),
        "privacy": asdict(config.privacy),
        "synthesis": asdict(config.synthesis),
    }


def _write(folder: RunFolder, findings: Findings) -> None:
    """The table, readable and for programs, the figure, and everything else."""
    write_whole(folder.internal / "table1.csv", as_csv(findings), mode=0o600)
    write_whole(folder.internal / "table1.md", as_markdown(findings), mode=0o600)
    write_whole(
        folder.internal / "experiment.json", json.dumps(as_json(findings), indent=1, allow_nan=False), mode=0o600
    )
    draw_figure(findings, folder.internal)


def run_and_tell(config: Config, root: Path, hydra_files: Mapping[str, str]) -> str:
    """Like `run`; returns the short table, the check of the claim, and where everything lies."""
    done = run(config, root, hydra_files=hydra_files)
    return told(summary(done.findings), done.folder.internal, config.console, FILES)
