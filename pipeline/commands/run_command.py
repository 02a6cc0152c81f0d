"""`run`: one run, or one experiment."""

from __future__ import annotations

import sys
from pathlib import Path

from omegaconf import DictConfig

from pipeline import experiment_run, stages
from pipeline.console import tells
from pipeline.error_messages import say_what_is_safe, unquoted_unless
from pipeline.folder_lock import no_empty_folders
from pipeline.measuring.acceptance import Withheld
from pipeline.report.last_lines import where_to_look
from pipeline.settings.compose import records_of
from pipeline.settings.config import Config


def run_once(config: Config, composed: DictConfig) -> int:
    """The run, or the experiment; says what is safe of one that fails.

    Args:
        composed: the same settings as Hydra composed them, with its own.
    """
    root = Path(composed.hydra.run.dir).absolute()
    with unquoted_unless(tells(sys.stderr, config.console)), no_empty_folders(root):
        try:
            print(_done(config, root, records_of(composed)))
        except KeyboardInterrupt:
            say_what_is_safe(root)
            raise
        except Exception as error:
            if not isinstance(error, Withheld):
                say_what_is_safe(root, str(error))
            raise
    return 0


def _done(config: Config, root: Path, hydra_files: dict[str, str]) -> str:
    """The last lines of the run, or of the experiment."""
    if config.experiment.kind or config.smoke:
        return experiment_run.run_experiment(config, root, hydra_files)
    done = stages.run(config, root, hydra_files=hydra_files)
    listed = not isinstance(config.evaluation.metrics, str)
    return where_to_look(done, tells=tells(sys.stdout, config.console), listed=listed)
