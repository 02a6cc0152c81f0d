"""`run`: one run, or one experiment."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from omegaconf import DictConfig

from mechanisms.public.files import no_empty_folders, write_whole
from pipeline import experiment_run, stages
from pipeline.console import at_most, tells
from pipeline.error_messages import say_what_is_safe, unquoted_unless
from pipeline.measuring.acceptance import Withheld
from pipeline.report.last_lines import here, run_facts, where_to_look
from pipeline.settings.compose import records_of
from pipeline.settings.config import Config
from pipeline.version import __version__


def run_once(config: Config, composed: DictConfig) -> int:
    """The run, or the experiment; says what is safe of one that fails.

    Args:
        composed: the same settings as Hydra composed them, with its own.
    """
    root = Path(composed.hydra.run.dir).absolute()
    with unquoted_unless(tells(sys.stderr, config.console)), no_empty_folders(root):
        try:
            outcome = _done(config, root, records_of(composed))
            if config.format == "json" or not config.quiet:
                print(outcome)
        except BaseException as error:  # what a plugin raises may be no Exception
            if not isinstance(error, Withheld):
                say_what_is_safe(root, str(error))
            raise
    return 0


def _done(config: Config, root: Path, hydra_files: dict[str, str]) -> str:
    """The last lines of the run, or of the experiment; one line of JSON where it is asked for."""
    in_json = config.format == "json"
    if config.experiment.kind or config.smoke:
        outcome = experiment_run.run_experiment(config, root, hydra_files)
        facts = {"version": __version__, "experiment": config.experiment.kind, "folder": str(root)}
        return json.dumps(facts) if in_json else outcome
    done = stages.run(config, root, hydra_files=hydra_files)
    if in_json:
        return json.dumps(run_facts(done, scored=config.console == "always"), ensure_ascii=False, allow_nan=False)
    listed = not isinstance(config.evaluation.metrics, str)
    sentences, whole = where_to_look(done, tells=tells(sys.stdout, config.console), listed=listed), done.folder.summary
    write_whole(whole, "".join(f"{line}\n" for lines in sentences for line in lines), mode=0o600)
    return "\n".join(["", *at_most(sentences, f"{here(whole)} (NOT private)")])
