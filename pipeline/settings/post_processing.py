"""Which settings a resumed run may change: those of what follows from the answers alone, until there is a release."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict

from mechanisms.accounting.plan import Plan
from mechanisms.public.json_values import JsonDict
from mechanisms.selection.selections import method_of
from pipeline.folders import RunFolder
from pipeline.settings.config import Config

#: What may differ between a run and its continuation, whatever is there; a ledger's limit has a command of its own.
FREE = ("resume", "limits", "plan", "engine", "console", "format", "quiet")


def bound_settings(config: Config) -> JsonDict:
    """The settings that a run is known by, and that a continuation shares but for `post_processing`."""
    settings = asdict(config)
    for free in FREE:
        del settings[free]
    del settings["budget"]["limit"]
    return settings


def post_processing(config: Config, plan: Plan, folder: RunFolder) -> Callable[[str], bool]:
    """Whether a fact of a run's manifest, by its name, may be another one when the run goes on.

    Fixed stays whatever enters a charge or reads rows: who is set aside for scores, a public start (which is compared
    with the private table), the synthesizer's settings where its model is fitted between the rounds of a selection, and
    all of the synthesis where `accept` compares its rows with the private ones. Once there is a release, its rows were
    looked at: another one from the same answers would be a choice by scores, also where it is gone by now. Its papers
    stay as they are while it is there.
    """
    between = method_of(plan.method).graphical

    def may_change(name: str) -> bool:
        """Whether a setting enters no charge and reads no row."""
        group, _, setting = name.removeprefix("settings.").partition(".")
        if group == "evaluation":
            return setting != "holdout"
        if group == "statement":
            return not folder.release.exists()
        if folder.released or group not in ("release", "synthesis"):
            return False
        if group == "release" or config.accept:
            return group == "release"
        return setting in ("rows", "seed") if between else setting != "options.public"

    return may_change
