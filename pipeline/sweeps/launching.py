"""How jobs start, by Hydra's public interface of plugins: one alone, or a sweep's by joblib or basic."""

from __future__ import annotations

import warnings
from typing import Any

from hydra import initialize_config_dir
from hydra.core.config_loader import ConfigLoader
from hydra.core.global_hydra import GlobalHydra
from hydra.core.plugins import Plugins
from hydra.core.utils import configure_log, run_job
from hydra.experimental.callback import Callback
from hydra.plugins.launcher import Launcher
from hydra.types import HydraContext, TaskFunction
from hydra.utils import instantiate
from omegaconf import DictConfig

from mechanisms.public.errors import UserError
from pipeline.conf_folder import CONF


class JobCallbacks(Callback):  # type: ignore[misc]  # Hydra has no types
    """Tells the callbacks of `hydra.callbacks` that a run or a job starts and ends; one that fails is a warning."""

    def __init__(self, config: DictConfig) -> None:
        self.each = [instantiate(settings) for settings in (config.hydra.callbacks or {}).values()]

    def on_run_start(self, config: DictConfig, **facts: Any) -> None:
        """Tell all of them, in their order."""
        self._tell(self.each, "on_run_start", config=config, **facts)

    def on_run_end(self, config: DictConfig, **facts: Any) -> None:
        """Tell all of them, the last one first."""
        self._tell(self.each[::-1], "on_run_end", config=config, **facts)

    def on_job_start(self, config: DictConfig, **facts: Any) -> None:
        """Tell all of them, in their order."""
        self._tell(self.each, "on_job_start", config=config, **facts)

    def on_job_end(self, config: DictConfig, job_return: Any, **facts: Any) -> None:
        """Tell all of them, the last one first."""
        self._tell(self.each[::-1], "on_job_end", config=config, job_return=job_return, **facts)

    def _tell(self, each: list[Any], what: str, **facts: Any) -> None:
        for callback in each:
            try:
                getattr(callback, what)(**facts)
            except Exception as error:
                warnings.warn(f"{type(callback).__name__}.{what} raised {type(error).__name__}: {error}", stacklevel=2)


def launcher_of(config: DictConfig, loader: ConfigLoader, task: TaskFunction) -> Launcher:
    """The launcher that the settings name, ready to launch.

    Args:
        config: of the whole sweep, with Hydra's own settings.
        task: what each job does with its settings.
    """
    context = HydraContext(config_loader=loader, callbacks=JobCallbacks(config))
    return Plugins.instance().instantiate_launcher(hydra_context=context, task_function=task, config=config)


def check_launcher(config: DictConfig, loader: ConfigLoader, task: TaskFunction) -> None:
    """The launcher is there, before anything is booked or made.

    Raises:
        UserError: it is not installed, or was given no job at a time.
    """
    if isinstance(own := config.hydra.launcher, str):
        raise UserError("a group of settings, not one", where="hydra.launcher", fix=f"hydra/launcher={own}")
    launcher = str(config.hydra.runtime.choices.get("hydra/launcher", config.hydra.launcher._target_))
    if config.hydra.launcher.get("n_jobs") == 0:
        raise UserError("got 0", where="hydra.launcher.n_jobs", fix="how many jobs at a time: 2; or -1 for all cores")
    try:
        launcher_of(config, loader, task)
    except Exception as error:
        what = f"cannot be used: {str(error).splitlines()[0]}"
        fix = "hydra/launcher=joblib, which runs on this machine"
        raise UserError(what, where=f"hydra/launcher={launcher}", fix=fix) from error


def run_alone(config: DictConfig, task: TaskFunction) -> None:
    """One job with the folder, logging, environment and callbacks of its settings: as `hydra.main` would.

    Args:
        config: composed, with Hydra's own settings.
        task: what the job does with its settings; it keeps its own errors.
    """
    callbacks = JobCallbacks(config)
    GlobalHydra.instance().clear()
    with initialize_config_dir(str(CONF), version_base="1.3", job_name="pipeline"):
        context = HydraContext(config_loader=GlobalHydra.instance().config_loader(), callbacks=callbacks)
        configure_log(config.hydra.hydra_logging, config.hydra.verbose)
        callbacks.on_run_start(config=config, config_name="config")
        done = run_job(task, config, job_dir_key="hydra.run.dir", job_subdir_key=None, hydra_context=context)
        callbacks.on_run_end(config=config, config_name="config", job_return=done)
