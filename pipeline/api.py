"""The commands as Python functions."""

from __future__ import annotations

from pathlib import Path

from evaluation.score import Scorecard
from pipeline import other
from pipeline.config import ScoreConfig, SynthConfig, compose_config, load_config, typed
from pipeline.stages import Run, run

__all__ = ["Run", "load_config", "run", "score", "synthesize"]


def synthesize(source: Run | Path | str, output: Path | str, *overrides: str) -> Path:
    """A new synthetic table from a run or its release folder, at no new privacy cost; returns the table's path.

    Args:
        source: a Run, or the path of a release folder.
        output: the new folder.
        overrides: as on the command line, e.g. "synthesis=independent", "synthesis.rows=1000".
    """
    release = source.folder.release if isinstance(source, Run) else Path(source)
    return other.synthesize(release, typed(compose_config("synth", overrides), SynthConfig), Path(output), quiet=True)


def score(real: Path | str, synthetic: Path | str, schema: Path | str, *overrides: str) -> Scorecard:
    """Scores of a synthetic table against a real one; NOT private.

    Args:
        real, synthetic: paths of CSV, compressed CSV or Parquet tables.
        schema: a schema's path, or the name of a ready one.
        overrides: as on the command line, e.g. "evaluation.max_marginals=50".
    """
    config = typed(compose_config("score", overrides), ScoreConfig)
    config.real, config.synthetic, config.schema = str(real), str(synthetic), str(schema)
    return other.score(config, quiet=True)
