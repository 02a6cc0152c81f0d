"""What a wrong setting is answered with: what the libraries say in our words, and what is allowed instead."""

from __future__ import annotations

import re

import yaml

from pipeline.conf_folder import CONF
from pipeline.help import meaning

#: What settings that are no single value look like.
ALLOWED = {
    "selection.marginals": "a list of lists of columns: 'selection.marginals=[[age,sex],[job]]'",
    "selection.closure": "a list of lists of columns: 'selection.closure=[[age,sex,job]]'",
    "selection.weights": "'selection.weights=[{marginal: [age, sex], weight: 2}]'",
    "plugins": "a list of modules: 'plugins=[my_module]'",
    "cluster": "'cluster={place: {coordinates: places.csv, levels: [5, 25]}}'",
    "experiment.columns": "three columns: 'experiment.columns=[time,place,category]'",
    "experiment.dpsyn": "a list of ε: 'experiment.dpsyn=[0.1,1]'",
    "experiment.laplace": "a list of ε: 'experiment.laplace=[0.25,1]'",
    "experiment.samples": "a list of shares: 'experiment.samples=[0.01,0.5]'",
    "selection.targets": "a list of columns: 'selection.targets=[income]'",
    "selection.split": "numbers above 0, one per stage: 'selection.split=[1,1,8]'",
    "selection.k": "a list of whole numbers: 'selection.k=[1,2]'",
    "limits.memory_gb": "gigabytes: a number above 0",
    "privacy.max_records": "a whole number C ≥ 1, from what is publicly known, or discover",
    "privacy.unit_id_rules": "a list of rules: 'privacy.unit_id_rules=[unicode,trim]'",
    "privacy.missing_unit_values": "a list of texts: 'privacy.missing_unit_values=[\"\",none]'",
    "budget.limit": "'budget.limit={epsilon: 3, delta: 1e-6}'",
    "limit": "'limit={epsilon: 5, delta: 1e-6}'",
    "engine.settings": "Spark's settings: 'engine.settings={spark.executor.memory: 8g}'",
    "accept": "a list of what must hold: 'accept=[{metric: l1, marginals: 2, at_most: 500}]'",
    "marginal": "a list of columns: 'marginal=[age,sex]'",
    "by": "a list of columns: 'by=[ward]'",
    "where": "'where={age: [20, 40], job: [clerk]}'",
}

#: Settings of one choice alone that are asked of others: what is wrong, and the way out.
OF_ONE = {
    "synthesis.public": (
        "a public start is for synthesis=gum alone",
        "synthesis=gum (or gum_paper) synthesis.public=FILE, or leave it out; "
        "selection=public selection.public=FILE chooses marginals by a public table for any synthesizer",
    ),
}

#: What OmegaConf calls the types of settings, in words.
KINDS = {
    "float": "a number",
    "integer": "a whole number",
    "int": "a whole number",
    "bool": "true or false",
    "boolean": "true or false",
    "string": "a text",
}

#: The command whose settings a file of conf/ holds, where the two have different names.
COMMANDS = {"config": "run", "budget_file": "budget", "schema_draft": "schema"}


def way_out(setting: str, config: str = "") -> str:
    """What a setting may be, by example where it is no single value.

    Args:
        setting: its name; an index in brackets is left aside.
        config: the file of conf/ that holds it; empty where that is not known.
    """
    command = f" {COMMANDS.get(config, config)}" if config else " COMMAND"
    name = setting.partition("[")[0]
    return ALLOWED.get(name) or meaning(name) or f"see `python -m pipeline{command} --help`"


def of_others(setting: str) -> tuple[str, str] | None:
    """What to say of a setting that other choices of its group have, and the way out; None where none has it."""
    if setting in OF_ONE:
        return OF_ONE[setting]
    group, _, name = setting.partition(".")
    files = sorted((CONF / group).glob("*.yaml")) if group and name else []
    having = [f.stem for f in files if name in (yaml.safe_load(f.read_text(encoding="utf-8")) or {})]
    if not having:
        return None
    more = [f"{len(having) - 5} more"] if len(having) > 6 else []
    names = [f"{group}={n}" for n in having[: 5 if more else None]]
    return f"not a setting of this {group}", f"{name} belongs to {', '.join([*names, *more])}"


def first_line(error: Exception) -> str:
    """What an error says, without what Hydra adds below and without its names of types."""
    text = str(error).strip().splitlines()[0]
    if match := re.search("^Value '(.*)' of type '.*' (?:could not be converted to|is not a valid) (.*)$", text):
        value, kind = match[1], match[2].rpartition(" ")[2].lower()
        return f"got {value!r}, not {KINDS[kind]}" if kind in KINDS else f"got {value!r}"
    if re.search("ListConfig|DictConfig|Error merging override|^Cannot assign", text):
        return "not of the form that this setting has"
    return text
