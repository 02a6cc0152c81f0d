"""What every registered selection owes: its own settings, its budget, the same after an interruption, its bounds."""

import dataclasses
import itertools
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml

from mechanisms.accounting.accountants.registered import ACCOUNTANTS
from mechanisms.accounting.budget import Budget
from mechanisms.accounting.ledger import Ledger
from mechanisms.public.coded_table import CodedTable
from mechanisms.public.domain import Domain
from mechanisms.public.errors import UserError
from mechanisms.public.noise_kinds import NOISE_KINDS
from mechanisms.public.schema.table_schema import Schema, load_schema
from mechanisms.public.units import Neighbouring
from mechanisms.selection.base import Facts
from mechanisms.selection.selections import SELECTIONS, method_of, registered_methods
from mechanisms.sensitive.noise import SeededNoise
from pipeline.conf_folder import CONF
from pipeline.measuring.attempts import measure_plan
from pipeline.measuring.selection_context import AdaptiveRun
from pipeline.settings.config import load_config
from pipeline.settings.methods import selection_of
from synthesis.pgm.pgm_settings import PgmSpec
from tests.public.table_worlds import coded

ROOT = Path(__file__).parents[2]
FORMS = {"age": 5, "job": 3, "tea": 2, "rum": 2}
BUDGETS = list(itertools.product(ACCOUNTANTS, NOISE_KINDS))


def schema_of(folder: Path, names: list[str]) -> Schema:
    values = {n: [f"{n}{i}" for i in range(FORMS[n])] for n in names}
    columns = {n: {"kind": "categorical", "values": v, "missing": False} for n, v in values.items()}
    facts = {"name": "tiny", "source": "invented", "confirmed_public": True, "columns": columns}
    path = folder / "tiny.yaml"
    path.write_text(yaml.safe_dump(facts, sort_keys=False))
    rng = np.random.default_rng(1)
    table = pd.DataFrame({n: rng.choice(v, 400) for n, v in values.items()})
    table.to_csv(folder / "public.csv", index=False)
    return load_schema(path)


@dataclass(frozen=True)
class Tiny:
    """Eight hundred rows; the last columns follow from the first."""

    domain: Domain
    max_records: int = 1

    @property
    def coded(self) -> CodedTable:
        rng = np.random.default_rng(3)
        first = rng.integers(0, 5, 800)
        columns = [np.where(rng.random(800) < 0.7, first % a.size, 0) for a in self.domain.attributes]
        return coded(self.domain, columns)

    def public_rows(self, neighbouring: Neighbouring) -> int | None:
        return 800 if neighbouring is Neighbouring.REPLACE else None


class World:
    """A selection with its default settings, and what it plans from public facts."""

    def __init__(self, folder: Path, kind: str, names: list[str], accountant: str, noise: str):
        self.schema = schema_of(folder, names)
        public = {"public": str(folder / "public.csv")} if kind == "public" else {}
        self.selection = SELECTIONS[kind](**public)
        self.facts = Facts(self.schema, noise, Budget(3.0, 1e-6, accountant, Neighbouring.ADD_REMOVE, 1))
        self.workload = self.selection.workload(self.facts)
        self.schedule = self.selection.schedule(self.facts, self.workload)

    def plan(self):
        return self.schedule.plan(self.facts.budget, noise=self.facts.mechanism)

    def run(self, folder: Path, plan):
        folder.mkdir(exist_ok=True)
        ledger = Ledger.open(folder / "ledger.jsonl", plan)
        rounds = AdaptiveRun(Tiny(self.facts.domain), ledger, SeededNoise(5), folder / "answers", PgmSpec())  # type: ignore[arg-type]
        return measure_plan(rounds), ledger


#: Those of the project; of a plugin's the settings are the class's own where no file lies beside it.
OWN = [kind for kind, s in SELECTIONS.items() if s.__module__.startswith("mechanisms.")]


@pytest.mark.parametrize("kind", OWN)
def test_its_file_holds_its_own_settings(kind):
    every = (CONF / "selection").glob("*.yaml")
    files = [p for p in every if yaml.safe_load(p.read_text(encoding="utf-8")).get("kind", "fixed") == kind]
    assert files, "a file in conf/selection makes it a choice of the command line"
    for path in files:
        text = path.read_text(encoding="utf-8")
        assert "of no account" not in text and "unused" not in text
        own = set(yaml.safe_load(text)) - {"kind"}
        assert own <= {f.name for f in dataclasses.fields(SELECTIONS[kind])}, path


@pytest.mark.parametrize("kind", SELECTIONS)
def test_its_choice_has_the_defaults_of_its_class(kind):
    choice = "pairs" if kind == "fixed" else kind
    made = selection_of(load_config([f"selection={choice}"]).selection)
    assert choice != kind or made == SELECTIONS[kind](), "the defaults stand twice, and are the same"


@pytest.mark.parametrize("kind", SELECTIONS)
def test_another_settings_name_or_type_is_refused(kind):
    config = load_config([]).selection
    for options in ({"max_cellz": 3}, {"max_cells": "many"}, {"split": [1, "much"]}):
        with pytest.raises(UserError, match=r"selection\."):
            selection_of(dataclasses.replace(config, kind=kind, options=options))


@pytest.mark.parametrize(("accountant", "noise"), BUDGETS)
@pytest.mark.parametrize("kind", SELECTIONS)
def test_it_spends_its_budget_and_never_more(kind, accountant, noise, tmp_path):
    world = World(tmp_path, kind, list(FORMS), accountant, noise)
    if world.schedule is None:
        assert world.workload.cliques
        return
    try:
        plan = world.plan()
    except UserError as error:
        assert world.schedule.reserve and "no sound accounting" in error.what
        return
    assert 2.999 < plan.loss.epsilon <= 3.0 and plan.loss.delta <= 1e-6
    known, ledger = world.run(tmp_path / "run", plan)
    assert 2.5 < ledger.spent.epsilon <= 3.0
    assert known.answers and all(plan.reserved(e) is not None for e in ledger.events.values())
    bound = method_of(plan.method).later_cells(world.facts.domain, world.schedule.slots)
    known_ahead = [s.clique for s in world.schedule.slots if s.clique]
    later = [a for a in known.answers if a.clique not in known_ahead]
    assert sum(a.query.columns for a in later) <= sum(cells for _, cells in bound)


@pytest.mark.parametrize("kind", SELECTIONS)
def test_it_asks_the_same_after_an_interruption(kind, tmp_path):
    world = World(tmp_path, kind, list(FORMS), "gdp", "gaussian")
    if world.schedule is None:
        return
    plan = world.plan()
    whole, ledger = world.run(tmp_path / "run", plan)
    again, resumed = world.run(tmp_path / "run", plan)
    assert [*resumed.events] == [*ledger.events]
    assert [a.clique for a in again.answers] == [a.clique for a in whole.answers]
    assert all(np.array_equal(a.values, b.values) for a, b in zip(whole.answers, again.answers, strict=True))


@pytest.mark.parametrize("kind", SELECTIONS)
def test_a_table_of_one_column_does_not_break_it(kind, tmp_path):
    try:
        world = World(tmp_path, kind, ["tea"], "gdp", "gaussian")
    except UserError as error:
        assert "1 columns" in error.what and error.fix, "one clear error, where pairs are asked for"
        return
    if world.schedule is not None:
        known, _ = world.run(tmp_path / "run", world.plan())
        assert {a.clique for a in known.answers} == {("tea",)}


@pytest.mark.parametrize("kind", SELECTIONS)
def test_its_method_is_found_by_its_description(kind, tmp_path):
    world = World(tmp_path, kind, list(FORMS), "gdp", "gaussian")
    if world.schedule is not None:
        method = world.schedule.method
        assert type(method) in SELECTIONS[kind].methods
        assert method_of(method.description) == method


def test_kinds_are_distinct_and_nobody_else_lists_them():
    methods = [m for s in SELECTIONS.values() for m in s.methods]
    assert len(registered_methods()) == len(set(methods))
    for path in (ROOT / "mechanisms" / "accounting").glob("*.py"):
        text = path.read_text(encoding="utf-8")
        assert not any(f'"{kind}"' in text for kind in {*SELECTIONS, *registered_methods()}), path
