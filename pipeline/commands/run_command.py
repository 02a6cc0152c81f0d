"""`run`: one run, or one experiment, under Hydra."""

from __future__ import annotations

import sys
from pathlib import Path

from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig, OmegaConf

from pipeline import experiment_run, stages
from pipeline.console import tells
from pipeline.error_messages import say_what_is_safe, unquoted_unless
from pipeline.folder_lock import no_empty_folders
from pipeline.measuring.acceptance import Withheld
from pipeline.report.last_lines import where_to_look
from pipeline.settings.config import Config
from pipeline.sweeps.launching import run_alone


def run_once(config: Config, composed: DictConfig) -> int:
    """The run, or the experiment; says what is safe of one that fails."""
    failures: list[tuple[Path, Exception]] = []

    def job(resolved: DictConfig) -> None:
        root = Path(HydraConfig.get().runtime.output_dir)
        try:
            print(_done(config, root, _hydra_files(resolved)))
        except KeyboardInterrupt:
            say_what_is_safe(root)
            raise
        except Exception as error:  # Hydra would say it in its own way
            failures.append((root, error))

    with unquoted_unless(tells(sys.stderr, config.console)), no_empty_folders(Path(composed.hydra.run.dir)):
        run_alone(composed, job)
        for root, error in failures:
            if not isinstance(error, Withheld):
                say_what_is_safe(root, str(error))
            raise error
    return 0


def _done(config: Config, root: Path, hydra_files: dict[str, str]) -> str:
    """The last lines of the run, or of the experiment."""
    if config.experiment.kind or config.smoke:
        return experiment_run.run_experiment(config, root, hydra_files)
    done = stages.run(config, root, hydra_files=hydra_files)
    listed = not isinstance(config.evaluation.metrics, str)
    return where_to_look(done, tells=tells(sys.stdout, config.console), listed=listed)


def _hydra_files(resolved: DictConfig) -> dict[str, str]:
    """Hydra's own records of the job, kept under internal/ (they may name files and seeds)."""
    return {
        "config.yaml": OmegaConf.to_yaml(resolved, resolve=True),
        "hydra.yaml": OmegaConf.to_yaml(HydraConfig.instance().cfg),
        "overrides.yaml": OmegaConf.to_yaml(HydraConfig.get().overrides.task),
    }
