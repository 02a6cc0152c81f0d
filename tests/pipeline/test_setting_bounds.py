"""The bounds that stand beside settings hold, and a setting of which nothing depends is refused, by every command."""

import math
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from evaluation.metrics import METRICS
from evaluation.papers.ncript.ncript_rows import NcriptSpec
from mechanisms.public.errors import UserError
from mechanisms.public.settings import BoundedSettings, Setting, declared
from mechanisms.selection.selections import SELECTIONS
from mechanisms.sensitive.engines.engines import ENGINES
from pipeline.conf_folder import CONF
from pipeline.experiments.challenge_settings import ChallengeSettings
from pipeline.experiments.experiment_settings import MapSettings
from pipeline.experiments.nist_crc import CrcSettings
from pipeline.settings import config
from pipeline.settings.config import load_config
from pipeline.settings.read_where import TABLE
from pipeline.settings.specs import build_specs
from synthesis.synthesizers import SYNTHESIZERS
from tests.pipeline.conftest import TOWN, reply, write_town
from tests.pipeline.mistakes import faults, mistake

PLAN = ["plan", *TOWN]
#: Class of settings of a command → a command that takes them.
COMMANDS = {
    config.SynthConfig: ["synth", "from=R/release", "output=again"],
    config.ScoreConfig: ["score", "real=town.csv", "synthetic=R/release/synthetic.csv"],
    config.CheckConfig: ["check", "data.path=town.csv", "data.schema=town.yaml"],
    config.QueryConfig: ["query", "from=R/release", "marginal=[age]"],
    config.BudgetFileConfig: ["budget", "town.json"],
}
EXPERIMENTS = {"mgd_table1": MapSettings, "ncript_table2": MapSettings}
EXPERIMENTS |= {"dpsyn_acs": ChallengeSettings, "nist_crc": CrcSettings}


#: Choices that bring settings of their own, which a file of conf/ names.
CHOICES = {
    *(f"selection={name}" for name in (*SELECTIONS, "pairs")),
    *(f"synthesis={name}" for name in SYNTHESIZERS),
    *(f"experiment={name}" for name in EXPERIMENTS),
}


@dataclass(frozen=True)
class Held:
    """A setting with a bound, of a class of settings, and the command that takes it."""

    kind: type[Any]
    setting: Setting
    command: tuple[str, ...]

    @property
    def name(self) -> str:
        return f"{self.kind.settings_group}.{self.setting.name}".lstrip(".")

    def made(self, value: Any) -> None:
        self.kind(**{self.setting.name: value})


def classes() -> Iterator[tuple[type[Any], list[str]]]:
    """Every class of settings, with a command that takes its settings."""
    for kind in vars(config).values():
        if isinstance(kind, type) and issubclass(kind, BoundedSettings) and kind is not BoundedSettings:
            yield kind, COMMANDS.get(kind, PLAN)
    for name, selection in SELECTIONS.items():
        yield selection, [*PLAN, f"selection={'pairs' if name == 'fixed' else name}"]
    for name, synthesizer in SYNTHESIZERS.items():
        yield synthesizer, [*PLAN, f"synthesis={name}"]
    for metric in METRICS.values():
        yield metric.settings, PLAN
    for name, engine in ENGINES.items():
        yield engine, ["plan", *TOWN, f"engine={name}"]
    yield NcriptSpec, []  # a mapping in one setting: evaluation.ncript
    for name, experiment in EXPERIMENTS.items():
        yield experiment, ["run", "hydra.run.dir=out", f"experiment={name}"]


def bounded() -> list[Held]:
    """Every setting with a bound; those that classes share once for each selection, synthesizer and experiment."""
    held = {}
    for kind, command in classes():
        for each in declared(kind):
            if each.bounded or each.choices:
                own = Held(kind, each, tuple(command))
                held.setdefault((own.name, repr(each), own.command), own)
    return list(held.values())


def edges(each: Setting) -> Iterator[tuple[Any, Any]]:
    """For each bound: the value at it, which is allowed, and the next one, which is not."""
    whole = float not in each.kinds
    for bound, way in ((each.least, -1), (each.most, 1)):
        if bound is not None:
            yield bound, bound + way if whole else math.nextafter(bound, way * math.inf)
    for bound, way in ((each.above, 1), (each.below, -1)):
        if bound is not None:
            yield bound + way if whole else math.nextafter(bound, way * math.inf), bound
    for word in each.choices:
        yield word, f"{word}q"


def alone(each: Setting, value: Any) -> Any:
    """The value as the setting has it: in a list of its length where it is one."""
    return [value] * (len(each.parts) or 1) if each.several else value


def no_values(each: Setting) -> Iterator[Any]:
    """Values that are none at all, whatever the bounds are, and lists of another form."""
    if each.bounded:
        yield from (alone(each, "x"), alone(each, math.nan), alone(each, 10**400), alone(each, -(10**400)))
        yield from () if float not in each.kinds else (alone(each, math.inf), alone(each, -math.inf))
    if each.parts:
        yield [1.0] * (len(each.parts) + 1)
    if each.filled:
        yield []
    if each.distinct:
        yield [next(edges(each))[0]] * 2


HELD = bounded()


def asked() -> list[Held]:
    """One of them for each class of settings, of a choice whose file of conf/ has the setting."""
    first: dict[str, Held] = {}
    for held in (h for h in HELD if h.command):
        group, _, choice = held.command[-1].partition("=") if held.command[-1] in CHOICES else ("", "", "")
        path = CONF / group / f"{choice}.yaml"
        if not group or f"\n{held.setting.name}:" in path.read_text().replace("\n  ", "\n"):
            first.setdefault(held.kind.__name__, held)
    return list(first.values())


def test_hardly_a_number_among_the_settings_has_no_bound():
    """Any whole number seeds noise; `seed` sets two others; of a quantile the question itself is checked."""
    free = {
        f"{kind.settings_group}.{each.name}"
        for kind, _ in classes()
        for each in declared(kind)
        if {int, float} & each.kinds and not each.bounded
    }
    assert free == {"privacy.noise_seed", ".seed", ".quantile"}


@pytest.mark.parametrize("held", HELD, ids=lambda h: f"{h.kind.__name__}.{h.setting.name}")
def test_a_value_at_a_bound_is_taken_and_the_next_one_is_not(held):
    for inside, outside in edges(held.setting):
        held.made(alone(held.setting, inside))
        if not any(outside == a for a in held.setting.also):
            refused(held, alone(held.setting, outside))
    for value in no_values(held.setting):
        refused(held, value)
    for value in held.setting.also:
        held.made(value)


def test_a_number_as_a_text_is_the_number_for_every_setting():
    """Of Python's keywords epsilon="1" was taken, and max_records="3" refused."""
    for held in (h for h in HELD if h.setting.bounded and not h.setting.several):
        inside = next(edges(held.setting))[0]
        assert getattr(held.kind(**{held.setting.name: str(inside)}), held.setting.name) == inside
    assert load_config(['privacy.max_records="3"', 'seed="4"']).privacy == config.PrivacyConfig(
        max_records=3, noise_seed=4
    )


@pytest.mark.parametrize("name", ["synthesis.seed", "privacy.epsilon", "limits.threads", "data.rows"])
def test_a_value_of_another_type_is_answered_with_what_the_setting_may_be(name):
    with pytest.raises(UserError) as error:
        load_config([f"{name}=x"])
    assert error.value.where == name and " a number" in f" {error.value.fix}".replace("whole ", "")


def refused(held: Held, value: Any) -> None:
    with pytest.raises(UserError) as error:
        held.made(value)
    assert error.value.where == held.name and repr(value) in error.value.what and error.value.fix
    if each := [word for word in held.setting.choices if value == f"{word}q"]:
        assert f"did you mean '{each[0]}'" in str(error.value)


@pytest.fixture(scope="module")
def place(one_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = write_town(tmp_path_factory.mktemp("bounds"))
    shutil.copytree(one_run, folder / "R")
    return folder


def spelled(value: Any) -> str:
    return f"[{','.join(map(spelled, value))}]" if isinstance(value, list) else str(value)


@pytest.mark.some(3)
@pytest.mark.parametrize("held", asked(), ids=lambda h: h.name)
def test_a_command_answers_a_value_beyond_its_bound_with_the_setting_and_a_cure(held, place, monkeypatch):
    monkeypatch.chdir(place)
    outside = next(out for _, out in edges(held.setting) if out not in held.setting.also)
    end = mistake(place, *held.command, f"{held.name}={spelled(alone(held.setting, outside))}")
    assert not faults(end), end.err
    assert f"error: {held.name}: got" in end.err, end.err


@pytest.mark.parametrize("name", ["privacy.epsilon", "budget.slack", "accept", "budget.limit", "synthesis.rows"])
def test_a_number_that_no_float_holds_is_refused_by_its_setting(name, place, monkeypatch):
    """They ended as a fault of the pipeline, in an OverflowError."""
    monkeypatch.chdir(place)
    huge, ledger = "1" + "0" * 400, []
    values = {"accept": f"[{{metric: l1, marginals: 1, at_most: {huge}}}]"}
    if name.startswith("budget"):
        values["budget.limit"], ledger = f"{{epsilon: {huge}, delta: 1e-6}}", ["budget.ledger=people.json"]
    end = mistake(place, *PLAN, *ledger, f"{name}={values.get(name, huge)}")
    assert not faults(end), end.err
    assert f"error: {name}" in end.err, end.err


ALONE = [
    *("data.units.id=x", "data.rows=5", "data.seed=1", "data.rows_of_one_unit=true", "data.max_records=3"),
    *("privacy.clip=truncate", "privacy.missing_unit=own", "privacy.missing_unit_values=[none]"),
    *("privacy.unit_id_rules=[trim]", "privacy.unit_id_share=0.1", "privacy.person_share=0.2"),
    *("privacy.discovery_share=0.2", "privacy.max_records_cap=7", "accept_share=0.1", "accept_tries=2"),
    *("budget.limit={epsilon: 3, delta: 1e-6}", "budget.accountant=gdp", "budget.slack=0.1", "budget.table=mine"),
    *("evaluation.subject=nope", "evaluation.order=age", "evaluation.longitude=age", "evaluation.latitude=age"),
]
#: What metrics bring, unless these metrics are asked for; a map's columns, unless all three are known.
OF_METRICS = [
    *("evaluation.attacks=5", "evaluation.predict=[sex]", "evaluation.group=job", "evaluation.gini_index=usual"),
    *("evaluation.time=age", "evaluation.ways=6", "evaluation.distance=mixed"),
]
#: Of these the town does not say what would read them.
BESIDE = {"release.dialect": ["release.format=parquet", "release.dialect=plain"]}
BESIDE["data.delimiter"] = ["data.path=town.parquet", "data.delimiter=;"]
BESIDE["data.encoding"] = ["data.path=sqlite:///town.db", "data.table=t", "data.encoding=latin-1"]
BESIDE["seed"] = ["seed=3", "privacy.noise_seed=4", "synthesis.seed=5"]
SCORE = ["score", "real=town.csv", "synthetic=town.csv"]
OTHERS = {
    "units.id": ["schema", "town.csv", "units.id=x"],
    "delimiter": ["schema", "town.parquet", "delimiter=;"],
    "encoding": ["score", "real=town.parquet", "synthetic=town.parquet", "encoding=latin-1"],
    "delimiter ": [*SCORE, "delimiter=;"],
    "evaluation.attacks": [*SCORE, "evaluation.attacks=5", "report=r.html"],
}
#: Of scores, each with a value.
VALUES = {"holdout": "0.2", "enabled": "false", "subject": "nope", "order": "age", "longitude": "age"}
OTHERS |= {f"evaluation.{name}": [*SCORE, f"evaluation.{name}={value}"] for name, value in VALUES.items()}
READ = [
    ["evaluation.metrics=[singling_out,tstr]", "evaluation.attacks=5", "evaluation.predict=[sex]"],
    ["evaluation.metrics=all", "evaluation.ways=6", "evaluation.gini_index=usual", "evaluation.distance=mixed"],
    ["evaluation.time=age", "evaluation.segment=job", "evaluation.kind=sex", "evaluation.metrics=[tvd]"],
    ["evaluation.longitude=age", "evaluation.latitude=income", "evaluation.subject=job", "evaluation.order=age"],
    ["privacy.unit=person", "privacy.max_records=3", "evaluation.subject=person", "evaluation.order=age"],
    ["budget.ledger=b.json", "budget.table=mine", "budget.limit={epsilon: 3, delta: 1e-6}"],
    ["privacy.unit=person", "privacy.max_records=3", "privacy.clip=truncate", "privacy.unit_id_rules=[trim]"],
    ["privacy.unit=person", "privacy.max_records=discover", "privacy.max_records_cap=7", "privacy.discovery_share=0.2"],
    ["data.unit=person", "data.max_records=3", "accept=[{metric: l1, marginals: 1, at_most: 9}]", "accept_share=0.1"],
    ["data.delimiter=;", "release.dialect=plain", "seed=3", "synthesis.seed=4"],
]


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = write_town(tmp_path_factory.mktemp("read"))
    pd.read_csv(folder / "town.csv").to_parquet(folder / "town.parquet")
    return folder


def test_every_setting_of_the_table_is_tried() -> None:
    tried = {name.partition("=")[0].strip() for name in (*ALONE, *BESIDE, *OTHERS)} - {"seed"}
    tried -= {name.partition("=")[0] for name in OF_METRICS}
    assert tried == {name for names, _, _ in TABLE for name in names.split()}


@pytest.mark.some(3)
@pytest.mark.parametrize("given", [*ALONE, *BESIDE, *OF_METRICS])
def test_what_nothing_reads_is_refused(given: str, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(here)
    with pytest.raises(UserError, match=r"nothing .*reads it\n.*leave it out") as error:
        build_specs(load_config([*TOWN, *BESIDE.get(given, [given])]))
    assert error.value.where == given.partition("=")[0]


@pytest.mark.parametrize("name", OTHERS)
def test_so_it_is_by_other_commands(name, here, monkeypatch, capsys):
    monkeypatch.chdir(here)
    said = reply(capsys, *OTHERS[name], code=1).err
    assert f"error: {name.strip()}: got" in said and "nothing here reads it" in said


@pytest.mark.parametrize("given", READ, ids=lambda g: g[-1])
def test_what_is_read_is_taken(given: list[str], here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(here)
    build_specs(load_config([*TOWN, *given]))
