"""`experiment=mgd_table1`: the rows of Table 1 and the curves of Figure 3 of Li et al. 2021a on a temporal map."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from mechanisms.public.errors import UserError
from mechanisms.public.files import write_whole
from mechanisms.public.progress import Progress
from mechanisms.public.schema.table_schema import Schema
from mechanisms.public.tables.codec import encode_columns
from pipeline import stages
from pipeline.budget import admission
from pipeline.budget.admission import PlannedRelease
from pipeline.demo import write_demo
from pipeline.experiments import table1_histograms as tables
from pipeline.experiments.experiment_settings import RowSpec, map_settings, rows_of
from pipeline.experiments.figure import draw_figure
from pipeline.experiments.table1_histograms import Maker
from pipeline.experiments.table1_report import Report as Findings
from pipeline.experiments.table1_report import as_csv, as_json, as_markdown, summary
from pipeline.experiments.table1_scores import Yardstick, make_yardstick, own, score_row
from pipeline.experiments.temporal_map import TemporalMap, histogram, map_schema
from pipeline.folders import RunFolder, bind, claimed, logged
from pipeline.settings import build, inputs
from pipeline.settings.config import Config, PrivacyConfig
from pipeline.stage_bars import Stages, misfits

#: What `smoke=true` leaves: so many generated rows, and of each list of ε or shares its last values.
SMOKE_ROWS = 4_000
SMOKE_VALUES = {"dpsyn": 1, "laplace": 2, "samples": 2}
SMOKE_PASSES = 3
#: How many rows the demo has where data.rows is not set.
DEMO_ROWS = 290_000


@dataclass(frozen=True)
class Outcome:
    """What an experiment left, all of it NOT private.

    Attributes:
        folder: its folder; the results lie under internal/.
        findings: the rows and what they say about the paper's claim.
    """

    folder: RunFolder
    findings: Findings

    def __repr__(self) -> str:
        return f"Outcome({str(self.folder.root)!r}, {len(self.findings.rows)} rows)"


def run(
    config: Config, root: Path | str, *, hydra_files: Mapping[str, str] | None = None, quiet: bool = False
) -> Outcome:
    """Make every synthetic table, score it, and write the table, the figure and the check of the paper's claim.

    Nothing of it may be published: the scores and the samples saw the raw rows. Rows that are finished are kept in the
    folder and not made again when the experiment is resumed.

    Raises:
        UserError: an impossible setting, or a table that does not fit.
    """
    rows_of(own(config))
    _check(config)
    config = smaller(config) if config.smoke else config
    specs = rows_of(own(config))
    schema = map_schema(config, build.build_schema(config))
    admission.check(booked := tables.releases(config, schema, Path(root)))
    show = Stages(quiet=quiet)
    with claimed(Path(root), resume=config.resume) as folder, logged(folder.log):
        with show.stage("load") as report:
            path = demo_table(config, folder, report)
            facts = bind(folder, stages.run_facts(config, schema, path))
            stages.keep_settings(folder, config, hydra_files or {})
            write_whole(folder.internal / "map.yaml", schema.to_yaml(), mode=0o600)
            source = stages.open_source(path, config, folder)
            table, encoding = encode_columns(source, schema, workdir=folder.temporary, progress=report)
            world = TemporalMap(schema, table, histogram(table))
        show.warn(misfits(encoding))
        if not table.rows:
            raise UserError("the table has no rows: nothing to compare with", where="data.path", fix="another table")
        admission.book(booked)
        yard = make_yardstick(world, own(config))
        maker = Maker(
            config,
            world,
            path,
            folder.internal / "map.yaml",
            folder,
            bytes.fromhex(facts["once"]["key"]),
            lambda p: stages.open_source(p, config, folder),
        )
        rows = []
        for place, spec in enumerate(specs):
            with show.stage(spec.name) as report:
                report(place, len(specs), f"row {place + 1} of {len(specs)}")
                rows.append(_row(maker, yard, spec))
        findings = Findings(tuple(rows), _setting(config, schema, world, path, facts, yard))
        _write(folder, findings)
    return Outcome(folder, findings)


def _row(maker: Maker, yard: Yardstick, spec: RowSpec) -> dict[str, Any]:
    """One row, from its file if it was finished before."""
    kept = maker.folder.internal / "rows" / f"{spec.name}.json"
    if kept.exists():
        row: dict[str, Any] = json.loads(kept.read_text(encoding="utf-8"))
        return row
    start = time.perf_counter()
    made = maker.make(spec)
    middle = time.perf_counter()
    row = {"dataset": spec.name, "method": spec.method, "value": spec.value, **score_row(yard, made.histogram)}
    row |= {"promise": made.promise}
    row |= {"seconds": {"make": round(middle - start, 3), "score": round(time.perf_counter() - middle, 3)}}
    write_whole(kept, json.dumps(row, indent=1, allow_nan=False), mode=0o600)
    return row


def releases(config: Config, root: Path) -> tuple[PlannedRelease, ...]:
    """What the experiment books: each of its noisy tables, all together.

    Raises:
        UserError: an impossible setting.
    """
    config = smaller(config) if config.smoke else config
    return tables.releases(config, map_schema(config, build.build_schema(config)), root)


def smaller(config: Config) -> Config:
    """The experiment in seconds: few generated rows, few tables, few passes of GUM."""
    settings = map_settings(config.experiment)
    lists = {name: getattr(settings, name)[-most:] for name, most in SMOKE_VALUES.items()}
    data, synthesis = config.data, config.synthesis
    if data.name == "demo":
        data = replace(data, rows=min(data.rows or SMOKE_ROWS, SMOKE_ROWS))
    if synthesis.kind == "gum":
        synthesis = replace(synthesis, options=synthesis.options | {"iterations": SMOKE_PASSES, "descents": 0})
    experiment = replace(config.experiment, options=config.experiment.options | lists)
    return replace(config, experiment=experiment, data=data, synthesis=synthesis)


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


def demo_table(config: Config, folder: RunFolder, report: Progress) -> Path:
    """The table's file; the demo's is generated once, under internal/."""
    if not inputs.generated(config):
        return inputs.data_path(config)
    path = folder.internal / "demo.parquet"
    if not path.exists():
        rows = DEMO_ROWS if config.data.rows is None else config.data.rows
        write_demo(path, rows=rows, seed=config.data.seed, progress=report)
        path.chmod(0o600)
    return path


def _setting(
    config: Config, schema: Schema, world: TemporalMap, path: Path, facts: Mapping[str, Any], yard: Yardstick
) -> dict[str, Any]:
    """What the rows were made from, and how."""
    generated = inputs.generated(config)
    return {
        "experiment": config.experiment.kind,
        "smoke": config.smoke,
        "data": {
            "name": config.data.name,
            "kind": f"generated (demo, data.seed={config.data.seed})" if generated else "a file of yours",
            "file": None if generated else path.name,
            "fingerprint": facts["data"],
            "records": world.table.rows,
            "columns": list(schema.domain.names),
            "shape": list(world.histogram.shape),
        },
        "privacy_unit": config.privacy.unit,
        "seeds": {
            "range queries": own(config).query_seed,
            "samples": own(config).sample_seed,
            "noise": config.privacy.noise_seed,
            "synthesis": config.synthesis.seed,
        },
        "range_queries": yard.queries.size,
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
    inside = done.folder.internal
    files = "\n".join(f"  {inside / n}" for n in ("table1.md", "table1.csv", "figure3.png", "experiment.json"))
    return f"\n{summary(done.findings)}\n\nNOT private, keep back:\n{files}"
