"""What the audit runs: every selection × accountant × relation × clip that a plan admits."""

import importlib
import itertools
import pkgutil
import random
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, get_args

import yaml

import mechanisms
from mechanisms.accounting.accountants.registered import ACCOUNTANTS
from mechanisms.accounting.events import NOISE_EVENTS, Exponential
from mechanisms.public.errors import UserError
from mechanisms.public.noise_kinds import AUTO
from mechanisms.public.release import Over
from mechanisms.public.units import WORD, Clip, MissingUnit, Neighbouring
from mechanisms.selection.base import SLOT_STAGES
from mechanisms.selection.selections import SELECTIONS, registered_methods
from mechanisms.sensitive.exit import Question
from pipeline.conf_folder import CONF
from pipeline.settings import build
from pipeline.settings.config import Config, load_config
from pipeline.settings.specs import RECORD, build_specs
from synthesis.synthesizers import SYNTHESIZERS
from tests.audit.hooks import Broken
from tests.audit.worlds import (
    FINDS_C,
    OPENS,
    PERSONS_BOUND,
    SCHEMAS,
    Settings,
    World,
    make_world,
    write_schema,
    write_table,
)

#: Settings that make each selection do all that it can, by the case's name.
CHOICES: dict[str, list[str]] = {
    "oneway": ["selection=oneway"],
    "pairs": ["selection=pairs"],
    "merged": ["selection=pairs", "selection.merge=1.5"],
    "adagrid given": ["selection=adagrid", "selection.closure=[[a,c]]", "selection.threshold=1"],
    "adagrid tree": ["selection=adagrid", "selection.threshold=1"],
    "adagrid targets": ["selection=adagrid", "selection.targets=[e]", "selection.threshold=1"],
    "mst": ["selection=mst", "selection.rare=2"],
    "mwem": ["selection=mwem", "selection.rounds=2", "synthesis=pgm", "synthesis.iterations=20"],
    "aim": ["selection=aim", "selection.k=[2]", "selection.rounds=6", "synthesis=pgm", "synthesis.iterations=20"],
    "aim capped": [
        *("selection=aim", "selection.k=[2]", "selection.rounds=6", "synthesis=pgm", "synthesis.iterations=20"),
        *("selection.penalty=capped", "selection.per_round=7"),
    ],
    "mst views": ["selection=mst", "selection.view_cells=40"],
    "auto": ["selection=auto", "selection.combine_cells=50"],
    "auto even": ["selection=auto", "selection.fine_cells=0"],
    "auto coarse": ["selection=auto", "selection.combine_cells=0", "selection.max_cells=8"],
    "indif": ["selection=indif", "selection.combine_cells=50"],
    "indif merged": ["selection=indif", "selection.merge=2", "selection.floor=5"],
    "groups": ["selection=groups", "selection.groups=3"],
    "groups public": ["selection=groups", "selection.groups=3", "selection.public=PUBLIC"],
    "priview": ["selection=priview", "selection.view_cells=40"],
    "priview fixed": ["selection=priview", "selection.rows=50", "selection.view_cells=40"],
    "public": ["selection=public", "selection.public=PUBLIC"],
    "privbasis": ["selection=privbasis", "selection.items=2", "selection.pairs=1"],
    "privbasis pairs": ["selection=privbasis", "selection.items=3", "selection.pairs=1"],
    "auto residuals": [
        *("selection=auto", "selection.fine_cells=0", "selection.combine_cells=0"),
        *("selection.important=[b,c]", "selection.important_weight=50", "selection.split=[1,0.1,50]"),
    ],
}
#: Of each selection its first case, and those whose plans have methods and slots that these lack.
FEW = (
    *{settings[0]: name for name, settings in reversed(CHOICES.items())}.values(),
    *("merged", "auto coarse", "privbasis pairs"),
)
#: Selections that measure no whole marginal of a mapped column with its source.
PRIVBASIS = ("privbasis", "privbasis pairs")
NOT_MAPPED = (
    *("merged", "indif merged", "adagrid given", "adagrid tree", "adagrid targets", "priview", "priview fixed"),
    *PRIVBASIS,
)
#: How noisy distances decide: the expected number of tries, and what each of the criteria says.
ACCEPT: dict[str, tuple[int, list[dict[str, Any]]]] = {
    "once": (1, [{"metric": "l1", "marginals": 1, "at_most": 1000.0}]),
    "once, at times": (1, [{"metric": "l1", "marginals": 2, "at_most": 20.0, "of": "largest", "share": 0.3}]),
    "once, whatever it is": (1, [{"metric": "l1", "marginals": 1}]),
    "first": (3, [{"metric": "l1", "marginals": 1, "at_most": 15.0}]),
    "first of two": (2, [{"metric": "l1", "marginals": k, "at_most": 20.0, "of": "largest"} for k in (1, 2)]),
    "best": (2, [{"metric": "l1", "marginals": 1, "share": 0.2}]),
    "best, scaled": (3, [{"metric": "l1", "marginals": 2, "of": "largest", "share": 0.1}]),
}
#: What makes the synthetic rows: each on a part of the cases, fast.
SYNTHESIS: dict[str, list[str]] = {
    "independent": ["synthesis=independent"],
    "gum": ["synthesis=gum", "synthesis.iterations=2", "synthesis.descents=1"],
    "mcf": ["synthesis=mcf", "synthesis.iterations=2"],
    "maxent": ["synthesis=maxent"],
    "pgm": ["synthesis=pgm", "synthesis.iterations=20"],
    "auto": ["synthesis=auto", "synthesis.iterations=20", "synthesis.max_cells=60"],
}
#: How records count: whether a column names the unit, and the clip.
CLIPS = ((False, "weight"), *((True, clip) for clip in get_args(Clip)))
#: Accountants that are named, and the choice of a plan.
ASKED = (*ACCOUNTANTS, AUTO)
MECHANISMS = tuple(sorted(p.stem for p in (CONF / "mechanism").glob("*.yaml")))


@dataclass(frozen=True)
class Case:
    """One configuration on one world.

    Attributes:
        selection: a name in CHOICES; `schema` one in SCHEMAS; `synthesis` one in SYNTHESIS, unless the selection asks.
        seed: of the world, and of the noise.
        accept: how noisy distances decide whether the release is accepted: a name in ACCEPT; empty: they do not.
    """

    selection: str
    mechanism: str
    accountant: str
    settings: Settings
    schema: str
    epsilon: float
    seed: int
    accept: str = ""
    synthesis: str = "independent"

    @property
    def name(self) -> str:
        s = self.settings
        relation = "replace" if s.replace else "add_remove"
        clip = f"{s.clip}/{s.missing}/C={s.bound}" if s.column else "record"
        aside = "/holdout" if s.holdout else ""
        kind = f"{self.selection}/{self.mechanism}/{self.accountant}"
        accept = f"/accept {self.accept}" if self.accept else ""
        return f"{kind}/{relation}/{clip}{aside}/{self.schema}/ε={self.epsilon:g}/{self.synthesis}{accept}"


@cache
def _composed(choice: tuple[str, ...]) -> Config:
    return load_config([*choice, "data=table", "evaluation.enabled=false", "limits.threads=1", "synthesis.seed=7"])


def _overrides(case: Case, folder: Path) -> tuple[str, ...]:
    choice = [o.replace("PUBLIC", str(folder / "public.csv")) for o in CHOICES[case.selection]]
    return tuple(choice if any(o.startswith("synthesis=") for o in choice) else [*choice, *SYNTHESIS[case.synthesis]])


def config_of(case: Case, folder: Path, table: Path) -> Config:
    config, s = _composed(_overrides(case, folder)), case.settings
    pure = (case.mechanism, case.accountant) == ("laplace", "basic") and case.schema not in OPENS
    delta = 0.0 if pure else 1e-6
    privacy = replace(
        config.privacy,
        epsilon=case.epsilon,
        delta=delta,
        accountant=case.accountant,
        neighbouring="replace" if s.replace else "add_remove",
        unit="uid" if s.column else RECORD,
        max_records=WORD if case.schema in FINDS_C else s.bound if s.column else None,
        max_records_cap=FINDS_C.get(case.schema, config.privacy.max_records_cap),
        clip=s.clip,
        missing_unit=s.missing,
        noise_seed=None,
    )
    schema = str(folder / f"{case.schema}.yaml")
    data = replace(config.data, path=str(table), schema=schema, max_unplaced=1.0)  # no stop: the run is total
    aside = replace(config.evaluation, holdout=0.3 if s.holdout else None)
    kind = replace(config.mechanism, kind=case.mechanism)
    config = replace(config, privacy=privacy, data=data, evaluation=aside, mechanism=kind)
    if not case.accept:
        return config
    tries, criteria = ACCEPT[case.accept]
    rows = replace(config.synthesis, rows=40) if case.accept == "best, scaled" else config.synthesis
    return replace(config, accept=[dict(c) for c in criteria], accept_tries=tries, synthesis=rows)


def write_public(folder: Path) -> None:
    """Everything that the cases read besides their tables."""
    for name in SCHEMAS:
        write_schema(folder, name)
    words = ["yes", "yes", "no"]
    rows = [("", str(i % 4), "xxyy"[i % 4], str(i * 7 % 10), words[i % 3], str(i % 2)) for i in range(300)]
    write_table(folder / "public.csv", tuple(rows))


def plan_of(config: Config) -> Any | None:
    """The plan of a configuration; None where it is not admitted."""
    try:
        specs = build_specs(config)
        schema = build.build_schema(specs)
        return build.build_plan(specs, build.build_workload(specs, schema), schema)
    except UserError:
        return None


def every_case(
    folder: Path,
    *,
    most: int | None = None,
    seed: int = 1,
    part: tuple[int, int] = (0, 1),
    words: Collection[str] = (),
    choices: Collection[str] = CHOICES,
) -> Iterator[tuple[Case, World, Any]]:
    """All combinations that a plan admits, each with a world and its plan; or `most`, all selections alike.

    Args:
        part: (i, n): every n-th combination, from the i-th on.
        words: that the names of the cases hold.
        choices: of CHOICES, where `most` is given.
    """
    product = list(enumerate(itertools.product(CHOICES, ASKED, Neighbouring, CLIPS)))
    if most is None:
        yield from _admitted(product[part[0] :: part[1]], folder, words)
        return
    random.Random(seed).shuffle(product)
    turns = [_admitted([p for p in product if p[1][0] == s], folder, words) for s in choices]
    rounds = (found for round_ in itertools.zip_longest(*turns) for found in round_ if found is not None)
    yield from itertools.islice(rounds, most)


def _admitted(
    product: list[tuple[int, tuple[Any, ...]]], folder: Path, words: Collection[str]
) -> Iterator[tuple[Case, World, Any]]:
    """The combinations that a plan admits under some noise, with the rest drawn at random."""
    for number, (selection, accountant, relation, (column, clip)) in product:
        rng = random.Random(number)
        settings = Settings(
            column=column,
            replace=relation is Neighbouring.REPLACE,
            clip=clip,
            missing=rng.choice(("drop", "own")),
            bound=rng.randint(1, 3) if column else 1,
            holdout=rng.random() < 0.15,
        )
        fitting = [s for s in SCHEMAS if _fits(s, selection, column)]
        facts = {"epsilon": rng.choice((1.0, 8.0, 40.0)), "seed": number, "accept": rng.choice((*ACCEPT, *[""] * 20))}
        facts["synthesis"] = rng.choice((*SYNTHESIS, *["independent"] * 5))
        tries = itertools.product((rng.choice(fitting), "plain"), rng.sample(MECHANISMS, len(MECHANISMS)))
        for schema, mechanism in tries:
            own = replace(settings, bound=PERSONS_BOUND) if schema.startswith("persons") else settings
            case = Case(selection, mechanism, accountant, own, schema, **facts)
            if not all(w in case.name for w in words):
                continue
            plan = plan_of(config_of(case, folder, folder / "none.csv"))
            if plan is not None:
                yield case, make_world(own, number % 6), plan
                break


def _fits(schema: str, selection: str, column: bool) -> bool:
    if schema == "histogram" or schema.startswith("persons") or schema in FINDS_C:
        return column
    if selection in PRIVBASIS and schema in ("rules", "recode"):  # one binary column is left
        return False
    if selection == "adagrid targets" and schema == "rules":  # the target is derived, and not measured
        return False
    return schema != "mapped" or selection not in NOT_MAPPED


def registered() -> dict[str, set[str]]:
    """Everything that a release can be made with, from the code's own registries."""
    words = [yaml.safe_load(p.read_text(encoding="utf-8")) for p in (CONF / "selection").glob("*.yaml")]
    return {
        "selection": {*SELECTIONS, *(w.get("kind", Config().selection.kind) for w in words)},
        "method": set(registered_methods()),
        "slot": set(SLOT_STAGES),
        "event": {e.__name__ for e in (*NOISE_EVENTS.values(), Exponential)},
        "mechanism": set(MECHANISMS),
        "accountant": set(ASKED),
        "relation": set(map(str, Neighbouring)),
        "clip": set(get_args(Clip)),
        "missing unit": set(get_args(MissingUnit)) - {"refuse"},  # it stops the run, outside of the guarantee
        "question": questions(),
        "acceptance": {"of one try", "of the first try", "of the best try", *(f"by the {o}" for o in get_args(Over))},
        "schema": set(SCHEMAS),
        "synthesizer": {name for name in SYNTHESIZERS if name != "mbi"},  # another library's, on the same answers
    }


def questions() -> set[str]:
    """Classes of what may leave by the one exit: they are drawn, kept and compared with what was asked."""
    found = set()
    for here in pkgutil.walk_packages(mechanisms.__path__, "mechanisms."):
        module = importlib.import_module(here.name)
        for name, kind in vars(module).items():
            if isinstance(kind, type) and kind.__module__ == module.__name__ and kind is not Question:
                found |= {name} if all(hasattr(kind, a) for a in ("draw", "fits", "save", "check")) else set()
    return found


def ran(case: Case, plan: Any, folder: Path) -> dict[str, set[str]]:
    """What one case ran, in the words of `registered`; but for the questions, which its tape tells."""
    s, config, tries = case.settings, _composed(_overrides(case, folder)), plan.tries
    kind = "of one try" if tries.tries == 1 else f"of the {'first' if tries.threshold else 'best'} try"
    return {
        "selection": {config.selection.kind},
        "synthesizer": {config.synthesis.kind},
        "method": {plan.method["kind"]} if plan.method else set(),
        "slot": {s.reservation.stage for s in plan.slots},
        "event": {type(e).__name__ for e in plan.events},
        "mechanism": {case.mechanism},
        "accountant": {case.accountant, plan.accountant.kind},
        "relation": {"replace" if s.replace else "add_remove"},
        "clip": {s.clip} if s.column else set(),
        "missing unit": {s.missing} if s.column else set(),
        "schema": {case.schema},
        "acceptance": {f"by the {score.criterion.over}" for score in plan.scores} | ({kind} if plan.scores else set()),
    }


def check_registry(done: dict[str, set[str]], known: dict[str, set[str]] | None = None) -> None:
    for what, names in (known or registered()).items():
        if left := sorted(names - done.get(what, set())):
            raise Broken(f"no case of the audit ran the {what} {', '.join(left)}")
