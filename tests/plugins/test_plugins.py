"""Things of somebody else: found, checked and spelled like ours, named in the statement, not imported by a release."""

import hashlib
import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest

from mechanisms.accounting.events import NOISE_EVENTS, Laplace
from mechanisms.public.errors import UserError
from mechanisms.public.units import WEIGHT_BITS
from mechanisms.sensitive.exact_answers import ExactAnswers, noisy
from mechanisms.sensitive.noise import SAMPLERS, noise_source
from pipeline import stages
from pipeline.plugins import plugin_discovery
from pipeline.plugins.origins import _digest, _home, _named, origin
from pipeline.plugins.plugin_discovery import load_module
from pipeline.plugins.registries import REGISTRIES
from pipeline.release_folder import read_release
from tests.pipeline.conftest import TOWN, command, edit, rebound, reply, statement_of, worded
from tests.plugins.conftest import ROOT, install, plugin_modules
from tests.sensitive.lattice import lattice_noise

RAISES = "raise RuntimeError('imported')\n"
QUIET = ["evaluation.enabled=false", "synthesis=independent"]
NOISE = ["plugins=[logistic_noise,tight_zcdp]", "mechanism=logistic", "privacy.accountant=tight_zcdp"]
#: The modules of the pages.
ALL = f"plugins=[{','.join(plugin_modules())}]"


def mine(shelf: Path, text: str, *settings: str, plugin: str = "mine") -> list[str]:
    """A module of this text, and the run that names it: with these settings, else quick, in the folder out."""
    (shelf / f"{plugin}.py").write_text(text)
    return ["run", *TOWN, f"plugins=[{plugin}]", "selection=oneway", *QUIET, "hydra.run.dir=out", *settings]


def refused(capsys, *arguments: str) -> str:
    error = reply(capsys, *arguments, code=1).err
    assert "fault of the pipeline" not in error
    return error


def test_modules_of_the_current_folder_select_synthesize_and_score(shelf, capsys):
    given = ["plugins=[top_pairs,best_pair,largest_cell]", "selection=top_pairs", "selection.count=1"]
    given += ["synthesis=best_pair", "synthesis.order=1", "evaluation.metrics=[largest_cell,tvd]", "hydra.run.dir=out"]
    given += ["evaluation.bar_columns=[sex]", "console=always"]
    printed = reply(capsys, "run", *TOWN, *given).out
    assert "warning   not covered by our audit: selection 'top_pairs' of top_pairs" in printed
    assert re.search(r"largest_cell [01]\b", printed)
    said = statement_of("out")
    part, maker = said["not_ours"]
    assert (maker["kind"], maker["name"], maker["module"]) == ("synthesis", "best_pair", "best_pair")
    known = {"kind": "selection", "name": "top_pairs", "module": "top_pairs", "distribution": None, "version": None}
    assert part == known | {"audited": False, "sha256": part["sha256"]} and len(part["sha256"]) == 64
    assert said["private"], "private is what the ledger says"
    assert sum(e["mechanism"] == "exponential" for e in said["events"]) == 1, "selection.count"
    page = Path("out/release/statement.html").read_text()
    assert "Not covered by the audit of this software" in page
    assert "Its tests and audit do NOT cover: selection &#39;top_pairs&#39; of top_pairs" in page
    assert "&#39;best_pair&#39; is not ours, and may read any file: synthesis is handed the noisy answers alone" in page
    for paper in ("deployment.yaml", "croissant.json"):
        told = Path("out/release", paper).read_text(encoding="utf-8")
        assert "Not covered by the audit of this software: selection 'top_pairs'" in told
    named = json.loads(Path("out/internal/config.json").read_text())["plugins"]
    assert named == ["top_pairs", "best_pair", "largest_cell"]


def test_noise_and_an_accountant_of_others_are_charged_drawn_and_named(shelf, capsys):
    assert command("run", *TOWN, *NOISE, *QUIET, "selection=oneway", "hydra.run.dir=out") == 0
    said = statement_of("out")
    assert [(p["kind"], p["name"]) for p in said["not_ours"]] == [
        ("accountant", "tight_zcdp"),
        ("mechanism", "logistic"),
    ]
    assert {e["mechanism"] for e in said["events"]} == {"logistic"}
    assert said["events"][0]["stddev"] == pytest.approx(1.8138 * said["events"][0]["scale"], rel=1e-4)
    verdict = reply(capsys, "verify", "out/release", NOISE[0]).out
    assert "parts        not covered by our audit: mechanism 'logistic' of logistic_noise" in verdict
    assert "statement.html says what privacy.json says" in verdict


def test_an_engine_a_format_and_an_experiment_of_others_are_named(shelf, capsys):
    given = ["plugins=[pool_engine,feather,budget_halves]", "experiment=budget_halves", "engine=pool"]
    given += ["release.format=feather", "hydra.run.dir=out", "experiment.part=0.25", *TOWN]
    assert re.search(r"whole: epsilon 1,.*\npart: epsilon 0.25,", reply(capsys, "run", *given).out)
    for home in ("out/whole", "out/part"):
        said = statement_of(home)
        named = {(p["kind"], p["name"], p["module"]) for p in said["not_ours"]}
        assert named == {
            ("engine", "pool", "pool_engine"),
            ("format", "feather", "feather"),
            ("experiment", "budget_halves", "budget_halves"),
        }
        assert said["private"] and Path(home, "release", "synthetic.feather").is_file()
    assert command("run", *TOWN, *QUIET, given[0], "hydra.run.dir=plain", "selection=oneway") == 0
    assert "not_ours" not in statement_of("plain"), "an experiment is named while it runs"
    assert "Not covered" not in Path("plain/release/statement.html").read_text()
    given = ["plugins=[feather]", f"data.path={home}/release/synthetic.feather", "hydra.run.dir=again"]
    assert command("run", *TOWN, *given, *QUIET, "selection=oneway") == 0
    assert [(p["kind"], p["name"]) for p in statement_of("again")["not_ours"]] == [("reader", "feather")]


def test_releases_of_an_experiment_name_it_in_whatever_thread_they_are_made(shelf):
    text = (shelf / "budget_halves.py").read_text().replace("stages.run(", "ThreadPoolExecutor().submit(stages.run, ")
    text = text.replace("quiet=True)", "quiet=True).result()")
    later = "import annotations\nfrom concurrent.futures import ThreadPoolExecutor\n"
    (shelf / "budget_halves.py").write_text(text.replace("import annotations\n", later))
    assert command("run", "plugins=[budget_halves]", "experiment=budget_halves", "hydra.run.dir=out", *TOWN) == 0
    assert [p["name"] for p in statement_of("out/part")["not_ours"]] == ["budget_halves"]


def test_an_experiment_that_fails_says_that_what_its_runs_measured_stays_spent(shelf, capsys):
    edit(shelf / "budget_halves.py", "        widest =", "        raise KeyError\n        widest =")
    given = ["plugins=[budget_halves]", "experiment=budget_halves", "hydra.run.dir=out"]
    assert "stay spent: 1 below it" in refused(capsys, "run", *given, *TOWN)


def test_a_run_that_an_engine_of_others_began_is_resumed_with_it_alone(shelf, monkeypatch, capsys):
    """The answers were counted by it, and the statement named it no more."""
    given = [*TOWN, *QUIET, "plugins=[pool_engine]", "selection=oneway", "hydra.run.dir=out"]
    with monkeypatch.context() as m:
        m.setattr(stages, "STAGES", (*stages.STAGES[:4], lambda state: sys.exit(1)))
        assert "go on at no further cost" in refused(capsys, "run", *given, "engine=pool")
    assert "changed since the run began: settings.engine" in refused(capsys, "run", *given, "resume=true")
    assert command("run", *given, "engine=pool", "resume=true") == 0
    assert [p["name"] for p in statement_of("out")["not_ours"]] == ["pool"]


def test_a_release_in_a_format_of_others_is_read_when_its_module_is_named(shelf, capsys):
    given = ["plugins=[feather]", "release.format=feather", "selection=oneway", "hydra.run.dir=out"]
    assert command("run", *TOWN, *given, *QUIET) == 0
    del REGISTRIES["FORMATS"].things["feather"]
    plugin_discovery._loaded.discard("feather")
    assert "format 'feather'" in (said := refused(capsys, "verify", "out/release")) and "plugins=[feather]" in said
    assert command("verify", "out/release", "plugins=[feather]") == 0


def test_a_table_that_parts_of_others_make_again_names_them(shelf, capsys):
    """Its statement said that all of it is ours."""
    assert command("run", *TOWN, *QUIET, "selection=oneway", "hydra.run.dir=out") == 0
    given = ["plugins=[feather,best_pair]", "release.format=feather", "synthesis=best_pair", "output=again"]
    assert command("synth", "from=out/release", *given) == 0
    named = [("synthesis", "best_pair"), ("format", "feather")]
    assert [(p["kind"], p["name"]) for p in statement_of("again")["not_ours"]] == named
    assert "format 'feather' of feather" in reply(capsys, "verify", "again/release", given[0]).out
    assert command("synth", "from=again/release", *given[:3], "output=third") == 0
    assert statement_of("third")["not_ours"] == statement_of("again")["not_ours"], "each is named once"
    assert command("synth", "from=out/release", "output=plain") == 0
    assert Path("plain/release/privacy.json").read_bytes() == Path("out/release/privacy.json").read_bytes()


def test_help_and_messages_list_what_loaded_modules_offer(shelf, capsys):
    printed = reply(capsys, "run", "--help", "all", ALL).out
    for line in ("engine=duckdb|spark|pool", "logistic", "best_pair", "top_pairs", "budget_halves"):
        assert line in printed
    assert "did you mean 'pool'" in refused(capsys, "plan", *TOWN, ALL, "engine=pol")
    assert "budget_halves: " in refused(capsys, "run", ALL, "experiment=nothing_like_it")
    of_pool, of_halves = (
        reply(capsys, "run", "--help", ALL, f).out for f in ("engine=pool", "experiment=budget_halves")
    )
    assert re.search(r"^  engine.workers=2 +how many slices", of_pool, flags=re.MULTILINE)
    assert re.search(r"experiment.part=0.5 +of the budget", of_halves)
    assert "did you mean 'engine.workers'" in refused(capsys, "plan", *TOWN, ALL, "engine=pool", "engine.worker=3")
    assert "engine.workers" in refused(capsys, "plan", *TOWN, ALL, "engine=pool", "engine.workers=0")


def test_what_an_installed_package_offers_is_named_with_its_version(shelf, monkeypatch, capsys):
    site = install(shelf / "site", "shop-of-others", [*plugin_modules()])
    for name in plugin_modules():
        (shelf / f"{name}.py").rename(site / f"{name}.py")
    monkeypatch.syspath_prepend(str(site))
    given = ["plugins=[top_pairs,best_pair,largest_cell,logistic_noise,tight_zcdp]", "selection=top_pairs", *NOISE[1:]]
    given += ["synthesis=best_pair", "evaluation.metrics=[largest_cell]", "console=always", "hydra.run.dir=out"]
    assert re.search(r"largest_cell [01]\b", reply(capsys, "run", *TOWN, *given).out)
    parts = statement_of("out")["not_ours"]
    assert [p["name"] for p in parts] == ["top_pairs", "tight_zcdp", "logistic", "best_pair"]
    assert {(p["distribution"], p["version"]) for p in parts} == {("shop-of-others", "1.2")}


def test_settings_of_others_are_checked_and_spelled_like_ours(shelf, capsys):
    given = ["plan", *TOWN, "plugins=[top_pairs,best_pair,largest_cell]", "selection=top_pairs", "synthesis=best_pair"]
    assert command(*given) == 0
    assert "did you mean 'selection.count'" in refused(capsys, *given, "selection.cuont=2")
    assert "selection.count" in refused(capsys, *given, "selection.count=many")
    assert "synthesis.order" in refused(capsys, *given, "synthesis.order=two")
    assert "did you mean 'evaluation.bar_columns'" in refused(capsys, *given, "evaluation.bar_column=[sex]")
    assert "evaluation.bar_columns" in refused(capsys, *given, "evaluation.bar_columns=3")
    assert "did you mean 'top_pairs'" in refused(capsys, "plan", *TOWN, "plugins=[top_pairs]", "selection=top_pars")


def test_the_help_of_a_plugins_choice_says_what_its_class_says(shelf, capsys):
    given = ["run", "--help", "plugins=[top_pairs,best_pair]", "selection=top_pairs", "synthesis=best_pair"]
    printed = reply(capsys, *given).out
    assert re.search(r"^  selection.count=3 +how many pairs are measured", printed, flags=re.MULTILINE)
    helped = reply(capsys, "run", "--help", "all", "plugins=[largest_cell]").out
    assert re.search(r"^  evaluation.bar_columns=.* largest_cell: the columns", helped, flags=re.MULTILINE)
    assert re.search(r"^  synthesis.order=2 +the number of columns", printed, flags=re.MULTILINE)


def test_a_file_of_settings_beside_the_module_gives_the_defaults(shelf, capsys):
    beside = shelf / "conf" / "selection" / "top_pairs.yaml"
    beside.parent.mkdir(parents=True)
    own = ["plugins=[top_pairs]", "selection=top_pairs"]
    beside.write_text("kind: top_pairs\ncount: 1 # fewer\nmax_cells: 10000\nsplit: [1, 1, 3]\n")
    assert " 1 private choice" in reply(capsys, "plan", *TOWN, *own).out
    assert re.search(r"selection.count=1 +fewer", reply(capsys, "run", "--help", *own).out)
    beside.write_text("kind: aim\n")
    plugin_discovery._loaded.discard("top_pairs")
    REGISTRIES["SELECTIONS"].things.pop("top_pairs")
    assert "kind: top_pairs" in refused(capsys, "plan", *TOWN, *own)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("import no_such_library\n", "ModuleNotFoundError: No module named 'no_such_library'"),
        ("x = (\n", "SyntaxError"),
        ("raise SystemExit(3)\n", "SystemExit: 3"),
        ("x = 1\n", "the module mine offers nothing"),
        ("METRICS = []\n", "METRICS of the module mine is no dictionary"),
        ("METRICS = {'mine': 3}\n", "METRICS['mine'] of the module mine is no metric"),
        ("from largest_cell import LARGEST_CELL\nMETRICS = {'other': LARGEST_CELL}\n", "is no metric"),
        ("from top_pairs import TopPairs\nSELECTIONS = {'top_pairs': TopPairs}\n", "is no selection"),
        ("SYNTHESIZERS = {'mine': dict}\n", "is no synthesis"),
        ("ACCOUNTANTS = {'mine': dict}\n", "is no accountant"),
        ("from logistic_noise import Logistic\nNOISE_EVENTS = {'logistic': Logistic}\n", "has no sampler"),
        ("SAMPLERS = {'mine': print}\n", "has no event"),
        ("ENGINES = {'mine': dict}\n", "is no engine"),
        ("EXPERIMENTS = {'mine': print}\n", "is no experiment"),
        ("EXPERIMENTS = {'mine': 'budget_halves'}\n", "the experiment 'mine' of the module mine has no settings"),
        ("METRICS = {'largest_cell': 'largest_cell:NO_SUCH'}\n", "NO_SUCH"),
        ("FORMATS = {'mine': 3}\n", "is no format"),
        ("from feather import FEATHER, replace\nmine = replace(FEATHER, name='mine')\n", "a tuple with '.mine'"),
        ("from feather import FEATHER, replace\nmine = replace(FEATHER, magic='ARROW1')\n", "'ARROW1': bytes"),
    ],
)
def test_a_module_that_cannot_be_a_plugin_is_refused_in_one_line(shelf, text, said):
    (shelf / "mine.py").write_text(text)
    with pytest.raises(UserError, match=re.escape(said)) as error:
        load_module("mine")
    assert len(str(error.value).splitlines()) == 2


def test_nothing_stays_of_a_module_that_was_refused(shelf, capsys):
    (shelf / "mine.py").write_text("SAMPLERS = {'mine': print}\n")
    assert "has no event" in refused(capsys, "plan", *TOWN, "plugins=[mine]")
    assert command("plan", *TOWN, "selection=oneway") == 0


IMPORTS = "from dataclasses import dataclass, replace\nfrom typing import ClassVar\n"
COLLISIONS = {
    "a metric's setting": (
        "from evaluation.metric import MetricSettings\nfrom mechanisms.public.settings import setting\n"
        "from largest_cell import LARGEST_CELL\n"
        "@dataclass(frozen=True)\nclass Mine(MetricSettings):\n    buckets: str = setting('x', 'already ours')\n"
        "METRICS = {'mine': replace(LARGEST_CELL, name='mine', settings=Mine)}\n"
    ),
    "SELECTIONS": "from mechanisms.selection.aim import AimSettings\nSELECTIONS = {'aim': AimSettings}\n",
    "a ready choice": (
        "from top_pairs import TopPairsSettings\n"
        "@dataclass(frozen=True)\nclass Pairs(TopPairsSettings):\n    kind: ClassVar[str] = 'pairs'\n"
        "SELECTIONS = {'pairs': Pairs}\n"
    ),
    "METRICS": "from evaluation.metrics import METRICS as OURS\nMETRICS = {'tvd': OURS['tvd']}\n",
    "SYNTHESIZERS": "from best_pair import BestPairSpec\nSYNTHESIZERS = {'gum': BestPairSpec}\n",
    "ACCOUNTANTS": "from mechanisms.accounting.accountants.gdp import Gdp\nACCOUNTANTS = {'gdp': Gdp}\n",
    "SAMPLERS": "SAMPLERS = {'laplace': print}\n",
    "ENGINES": "from pool_engine import PoolSettings\nENGINES = {'spark': PoolSettings}\n",
    "EXPERIMENTS": "EXPERIMENTS = {'crc': 'budget_halves'}\n",
    "a file of an experiment": "EXPERIMENTS = {'nist_crc': 'budget_halves'}\n",
    "FORMATS": "from mechanisms.public.tables.formats import CSV\nFORMATS = {'csv': CSV}\n",
    "a method's kind": (
        "from top_pairs import TopPairs, TopPairsSettings\n"
        "@dataclass(frozen=True)\nclass Mst(TopPairs):\n    kind: ClassVar[str] = 'mst'\n"
        "@dataclass(frozen=True)\nclass Mine(TopPairsSettings):\n"
        "    kind: ClassVar[str] = 'mine'\n    methods: ClassVar[tuple] = (Mst,)\n"
        "SELECTIONS = {'mine': Mine}\n"
    ),
    "what a choice is called": (
        "from logistic_noise import LAW, Logistic, SAMPLERS\n"
        "@dataclass(frozen=True)\nclass Mine(Logistic):\n    law: ClassVar = replace(LAW, name='exponential')\n"
        "NOISE_EVENTS = {'exponential': Mine}\nSAMPLERS = {'exponential': SAMPLERS['logistic']}\n"
    ),
    "an event's class": (
        "from logistic_noise import Logistic, SAMPLERS\n"
        "Laplace = type('Laplace', (Logistic,), {'__module__': __name__})\n"
        "NOISE_EVENTS = {'logistic': Laplace}\n"
    ),
}


@pytest.mark.parametrize("what", COLLISIONS)
def test_a_name_that_is_taken_is_refused(shelf, what):
    (shelf / "mine.py").write_text(IMPORTS + COLLISIONS[what])
    before = {name: list(r.things) for name, r in REGISTRIES.items()}
    with pytest.raises(UserError, match=r"already|declares it otherwise"):
        load_module("mine")
    assert {name: list(r.things) for name, r in REGISTRIES.items()} == before


@pytest.mark.parametrize(
    ("given", "said"), [("[./mine.py]", "no name of a module"), ("[no.such]", "no module 'no.such'")]
)
def test_a_module_is_named_not_a_file(shelf, capsys, given, said):
    assert said in refused(capsys, "plan", *TOWN, f"plugins={given}")


def test_a_module_that_cannot_be_imported_is_named_before_anything_is_charged(shelf, capsys):
    (shelf / "mine.py").write_text(RAISES)
    first, second = refused(capsys, "run", *TOWN, "plugins=[mine]", "hydra.run.dir=out").splitlines()
    assert first == "error: plugins: the module mine cannot be imported: RuntimeError: imported"
    assert second == "  fix: python -c 'import mine' shows all of it"
    assert not Path("out").exists()


def test_no_module_is_imported_that_nobody_named(shelf, capsys):
    assert command("run", "--help") == 0
    assert "top_pairs" not in refused(capsys, "plan", *TOWN, "selection=top_pair")
    assert command("plan", *TOWN, "selection=oneway") == 0
    assert not set(plugin_modules()) & set(sys.modules)


def test_auto_never_takes_noise_of_others(shelf):
    given = ["plugins=[logistic_noise]", "selection=oneway", "privacy.accountant=basic", "privacy.delta=0"]
    assert command("run", *TOWN, *given, *QUIET, "hydra.run.dir=out") == 0
    assert {e["mechanism"] for e in statement_of("out")["events"]} == {"laplace"}


def test_an_accountant_of_others_counts_no_rounds_whose_number_depends_on_answers(shelf, capsys):
    given = ["plugins=[tight_zcdp]", "selection=aim", "privacy.accountant=tight_zcdp", "mechanism=gaussian"]
    assert "no sound accounting" in refused(capsys, "plan", *TOWN, *given)
    shared = ["budget.ledger=b.json", "budget.limit={epsilon: 2, delta: 1e-6}", "budget.accountant=tight_zcdp"]
    assert "which have a privacy filter" in refused(capsys, "run", *TOWN, given[0], *shared, "privacy.delta=1e-8")


def test_a_resumed_run_is_one_with_the_same_modules(shelf, capsys):
    given = [*TOWN, "plugins=[top_pairs]", "selection=top_pairs", *QUIET, "hydra.run.dir=out"]
    assert command("run", *given) == 0
    first = Path("out/release/privacy.json").read_bytes()
    assert command("run", *given, "resume=true") == 0
    assert Path("out/release/privacy.json").read_bytes() == first
    (shelf / "top_pairs.py").write_text((shelf / "top_pairs.py").read_text() + "\n# another version\n")
    assert command("run", *given, "resume=true") == 0, "this process imported the first one, and runs it"
    _digest.cache_clear()  # as of a new process
    assert "changed since the run began: plugins" in refused(capsys, "run", *given, "resume=true")


def test_a_resumed_run_is_one_with_the_same_package(shelf, capsys):
    package = shelf / "shop"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "pairs.py").write_text("from shop.work import SELECTIONS as SELECTIONS\n")
    (shelf / "top_pairs.py").rename(package / "work.py")
    given = [*TOWN, "plugins=[shop.pairs]", "selection=top_pairs", *QUIET, "hydra.run.dir=out"]
    assert command("run", *given) == 0
    assert [p["module"] for p in statement_of("out")["not_ours"]] == ["shop.work"]
    (package / "work.py").write_text((package / "work.py").read_text() + "\n# another version\n")
    _digest.cache_clear()
    assert "changed since the run began: plugins" in refused(capsys, "run", *given, "resume=true")


CHEAP = """
from dataclasses import dataclass
from typing import ClassVar
from mechanisms.accounting.accountants.accountant import PrivacyLoss
from mechanisms.accounting.accountants.zcdp import Zcdp
@dataclass(frozen=True)
class Cheap(Zcdp):
    kind: ClassVar[str] = "cheap"
    def loss(self, events):
        whole = super().loss(events)
        return PrivacyLoss(whole.epsilon / 100, whole.delta)
ACCOUNTANTS = {"cheap": Cheap}
"""


def test_a_shared_budget_is_counted_by_ours_and_says_what_rests_on_others(shelf, capsys):
    shared = ["budget.ledger=b.json", "budget.limit={epsilon: 4, delta: 1e-6}", "privacy.delta=1e-8"]
    cheap = mine(shelf, CHEAP, "privacy.accountant=cheap", "mechanism=laplace", *shared)
    assert "more than the ledger has left" in refused(capsys, *cheap)
    wrong = "what a plugin's accountant 'cheap' (module mine) claims does not hold"
    assert wrong in refused(capsys, *cheap, "mechanism=gaussian")
    ours = ["run", *TOWN, *QUIET, *shared, "selection=oneway"]
    noisy = ["plugins=[logistic_noise]", "mechanism=logistic", "privacy.epsilon=0.5"]
    assert command(*ours, *noisy, "hydra.run.dir=b") == 0
    assert command(*ours, "hydra.run.dir=c") == 0
    assert command(*ours, "plugins=[pool_engine]", "engine=pool", "privacy.epsilon=0.5", "hydra.run.dir=d") == 0
    said = statement_of("c")
    assert "not_ours" not in said and said["running_total"]["not_ours"] == 1
    assert "1 of them rest on parts of plugins" in worded(Path("c/release"))["running_total"]
    assert [b.get("others") for b in json.loads(Path("b.json").read_text())["bookings"]] == [True, None, True]
    assert "2 of the runs rest on parts of plugins" in reply(capsys, "budget", "b.json").out


COUNTING = """
import math
from dataclasses import dataclass
from typing import ClassVar
from mechanisms.accounting.accountants.accountant import PrivacyLoss
from mechanisms.accounting.accountants.gdp import Gdp
from mechanisms.accounting.accountants.zcdp import Zcdp
@dataclass(frozen=True)
class Mine({base}):
    kind: ClassVar[str] = "mine"
    {method}
ACCOUNTANTS = {{"mine": Mine}}
"""


@pytest.mark.parametrize(
    ("base", "method", "said"),
    [
        ("Zcdp", 'def cost(self, event): return {"rho": -1.0}', "is {'rho': -1.0}"),
        ("Zcdp", 'def cost(self, event): return {"rho": math.nan}', "is {'rho': nan}"),
        ("Zcdp", 'def cost(self, event): return {"rho": math.inf}', "is {'rho': inf}"),
        ("Zcdp", 'def cost(self, event): return {"rho": 0.0}', "less than its total"),
        ("Zcdp", 'def cost(self, event): return {"rho": 1 / 0}', "ZeroDivisionError"),
        ("Zcdp", "def loss(self, events): return PrivacyLoss(-1.0, self.delta)", "to calibrate"),
        ("Zcdp", "def loss(self, events): return PrivacyLoss(math.nan, self.delta)", "too small"),
        ("Zcdp", "def noise_strength(self, law, strength): return 0.0", "ZeroDivisionError"),
        (
            "Zcdp",
            "def loss(self, events): return super().loss(events) if not events[0].id else 1 / 0",
            "ZeroDivisionError",
        ),
        ("Gdp", "def mu(self, event): return -super().mu(event)", "is {'mu': -"),
        ("Gdp", "def mu(self, event): return 1e-300", "to calibrate"),
        ("Gdp", "def mu(self, event): return super().mu(event) * (1 - 1e-5)", "claims does not hold"),
    ],
)
def test_costs_of_others_that_are_no_costs_are_refused_before_any_charge_and_blamed_on_them(
    shelf, capsys, base, method, said
):
    """A cost below 0 would make a statement say ε = 0; one that is no number would fail after the charge."""
    text = COUNTING.format(base=base, method=method)
    error = refused(capsys, *mine(shelf, text, "privacy.accountant=mine", "mechanism=gaussian"))
    assert said in error and "a plugin's accountant 'mine' (module mine)" in error
    assert not Path("out").exists()


@pytest.mark.parametrize(
    ("does", "said"),
    [
        ("raise KeyError('delta')", "a fault of the plugin mine"),
        ("pass", "accountant 'mine' (module mine): of() gave NoneType"),
        ("return Zcdp(delta)", "accountant 'mine' (module mine): of() gave Zcdp"),
    ],
)
def test_what_an_accountant_of_others_fails_at_before_it_counts_is_called_its_own(shelf, capsys, does, said):
    text = COUNTING.format(base="Zcdp", method=f"@classmethod\n    def of(cls, delta, slots): {does}")
    given = mine(shelf, text, "privacy.accountant=mine", "mechanism=gaussian")
    assert said in refused(capsys, *given)


MAKER = """
from dataclasses import dataclass
from types import SimpleNamespace
from typing import ClassVar
import numpy as np
from mechanisms.public.coded_table import CodedTable
from synthesis.contract import Synthesizer
from synthesis.convergence import Synthesized
@dataclass(frozen=True)
class Mine(Synthesizer):
    kind: ClassVar[str] = "mine"
    def make(self, measurements, *, rows, rng, zeros=(), progress=None):
        domain, columns = measurements.domain, tuple(np.zeros(rows, np.uint8) for _ in measurements.domain.names)
        return {made}
    {method}
SYNTHESIZERS = {{"mine": Mine}}
"""
WHOLE = "Synthesized(CodedTable(domain, columns))"


@pytest.mark.parametrize(
    ("made", "method", "said"),
    [
        ("SimpleNamespace(table=CodedTable(domain, columns))", "", "Mine made no rows"),
        ("Synthesized(CodedTable(domain, columns), record=[1])", "", "Mine made a record of list"),
        ("Synthesized(CodedTable(domain, columns), fit='x')", "", "Mine made a fit of str"),
        ("Synthesized(CodedTable(domain, columns[:1]))", "", "or of the plugin mine"),
        (WHOLE, "def held(self, *given): return None", "or of the plugin mine"),
        (WHOLE, "def predicted_bytes(self, *given, **more): raise ValueError('x')", "of the plugin mine"),
        *(
            (WHOLE, f"def predicted_bytes(self, *given, **more): return {wrong}", "Mine of the module mine predicts no")
            for wrong in ("None", "float('nan')", "-1", "'9'", "np.float64('nan')", "1j")
        ),
    ],
)
def test_what_a_synthesizer_of_others_gives_wrongly_is_said_of_it(shelf, capsys, made, method, said):
    given = mine(shelf, MAKER.format(made=made, method=method), "synthesis=mine")
    assert said in reply(capsys, *given, code=1).err


ODD = """
import math
from dataclasses import dataclass, replace
from typing import ClassVar
from mechanisms.accounting.events import NoiseEvent
from mechanisms.public.noise_kinds import NoiseLaw
from mechanisms.sensitive.noise import SAMPLERS as OURS
LAW = NoiseLaw("odd", "l2", 1.0, 0.8, False, lambda rng, scale, size: rng.normal(0.0, scale, size))
@dataclass(frozen=True)
class Odd(NoiseEvent):
    id: str
    sensitivity: float
    scale: float
    law: ClassVar[NoiseLaw] = LAW
    epsilon_alone: ClassVar[float] = math.inf
    loss_range: ClassVar[float] = math.inf
    @property
    def mu(self): return {mu}
NOISE_EVENTS = {{"odd": Odd}}
SAMPLERS = {{"odd": OURS["gaussian"]}}
"""


@pytest.mark.parametrize("mu", ["1e-300", "0.0", "-self.sensitivity / self.scale", "math.nan"])
def test_noise_of_others_without_a_strength_is_refused_and_blamed_on_it(shelf, capsys, mu):
    error = refused(capsys, *mine(shelf, ODD.format(mu=mu), "privacy.accountant=gdp", "mechanism=odd"))
    assert "a plugin's noise Odd (module mine)" in error and not Path("out").exists()


@pytest.fixture
def noisy_release(shelf):
    """A release with a noise and an accountant of others; they are forgotten, and raise where they are imported."""
    assert command("run", *TOWN, *NOISE, *QUIET, "selection=oneway", "hydra.run.dir=out") == 0
    for name in ("logistic_noise", "tight_zcdp"):
        (shelf / f"{name}.py").write_text(RAISES)
        del sys.modules[name]
        plugin_discovery._loaded.discard(name)
    for registry, name in (("NOISE_EVENTS", "logistic"), ("SAMPLERS", "logistic"), ("ACCOUNTANTS", "tight_zcdp")):
        REGISTRIES[registry].things.pop(name)
    from mechanisms.public.noise_kinds import NOISE_KINDS

    del NOISE_KINDS["logistic"]
    return shelf / "out" / "release"


READERS = (
    ["synth", "from=out/release", "output=again"],
    ["query", "from=out/release", "marginal=[sex]"],
    ["verify", "out/release"],
)


def test_reading_a_release_imports_nothing_that_it_names(noisy_release, shelf, monkeypatch, capsys):
    for reader in READERS:
        error = refused(capsys, *reader)
        assert "mechanism 'logistic'" in error and "logistic_noise" in error and "plugins=[" in error
        assert "imported" not in error
        assert "cannot be imported: RuntimeError" in refused(capsys, *reader, "plugins=[logistic_noise]"), "asked for"


def test_a_release_that_hides_what_it_was_made_with_is_refused_too(noisy_release, capsys):
    said = json.loads((noisy_release / "privacy.json").read_text())
    for parts in (None, 3, "x", [3], [{"kind": "mechanism", "name": 3}], [{"kind": ["x"], "name": {}}]):
        (noisy_release / "privacy.json").write_text(json.dumps({**said, "not_ours": parts}))
        rebound(noisy_release)
        for reader in READERS[:2]:
            assert "plugins=[MODULE]" in refused(capsys, *reader), parts
        assert command("verify", "out/release") == 1
        capsys.readouterr()
    parts = [{**p, "module": "x;rm -rf ~"} for p in said["not_ours"]]
    (noisy_release / "privacy.json").write_text(json.dumps({**said, "not_ours": parts}))
    rebound(noisy_release)
    assert "rm -rf" not in refused(capsys, *READERS[0]), "a name is shown only where it is one of a module"


@pytest.mark.slow
def test_a_sweep_knows_modules_of_others(shelf):
    given = ["plugins=[top_pairs]", "selection=top_pairs,oneway", "evaluation.metrics=[tvd]", "hydra.sweep.dir=many"]
    assert command("run", "-m", *TOWN, *given) == 0
    assert "selection=top_pairs" in Path("many/internal/results.csv").read_text()
    mine, ours = (next(Path("many").glob(f"*selection={name}")) for name in ("top_pairs", "oneway"))
    assert [p["name"] for p in statement_of(str(mine))["not_ours"]] == ["top_pairs"]
    assert "not_ours" not in statement_of(str(ours))


def test_the_installed_command_looks_into_the_current_folder_last(shelf, monkeypatch):
    (shelf / "json.py").write_text(RAISES)
    monkeypatch.setattr(sys, "path", [p for p in sys.path if p not in {"", str(shelf)}] + [str(ROOT)])
    load_module("largest_cell")
    assert sys.path[-1] == str(shelf)


def test_a_digest_covers_the_modules_beside_a_plugin_that_it_is_made_of(shelf, capsys):
    """The class, the sampler and the module that offers both may be files of their own."""
    text = (shelf / "logistic_noise.py").read_text()
    (shelf / "shop.py").write_text(text.replace("SAMPLERS", "_SAMPLERS").replace("NOISE_EVENTS", "_NOISE_EVENTS"))
    late = "def sampler():\n    from shop import _SAMPLERS\n    return _SAMPLERS['logistic']\n"
    (shelf / "other.py").write_text(late)
    imports = "from shop import Logistic\nfrom other import sampler\n"
    offered = "NOISE_EVENTS = {'logistic': Logistic}\nSAMPLERS = {'logistic': sampler()}\n"
    given = mine(shelf, imports + offered, "mechanism=logistic")
    assert command(*given) == 0
    (part,) = statement_of("out")["not_ours"]
    assert part["module"] == "shop"
    (shelf / "other.py").write_text((shelf / "other.py").read_text() + "\n# another sampler\n")
    assert command(*given, "hydra.run.dir=then") == 0
    assert statement_of("then")["not_ours"][0] == part, "of the code that was imported, and ran"
    _digest.cache_clear()  # as of a new process
    assert "changed since the run began: plugins" in refused(capsys, *given, "resume=true")
    assert command(*given, "hydra.run.dir=again") == 0
    assert statement_of("again")["not_ours"][0]["sha256"] != part["sha256"]


#: A noise that moves nothing; its class is made by a function, as an author of good faith may do.
MADE = """
from dataclasses import dataclass, make_dataclass, replace
from typing import ClassVar
import numpy as np
from mechanisms.accounting.events import Laplace
from mechanisms.public.noise_kinds import LAPLACE, NoiseLaw
try:
    import shop
except SyntaxError:
    pass
LAW = replace(LAPLACE, name="made")
Made = make_dataclass("Made", [], bases=(Laplace,), frozen=True, namespace={"law": LAW})
def sample(reader, size, scale, split):
    return np.zeros(size, np.int64), np.zeros(size, np.int64)
NOISE_EVENTS, SAMPLERS = {"made": Made}, {"made": sample}
"""
LYING = """
Made = type("Made", (Laplace,), {"law": LAW, "__module__": Laplace.__module__, "__annotations__": {"law": ClassVar}})
NOISE_EVENTS = {"made": dataclass(frozen=True)(Made)}
"""


@pytest.mark.parametrize("more", ["", LYING], ids=["of types", "of ours, as it says"])
def test_a_noise_whose_class_names_another_module_is_named_with_the_module_that_offers_it(more, shelf):
    """One that named ours was taken for ours; of one of `types` the release that was paid for was lost."""
    (shelf / "shop.py").write_bytes(b'"b\xf6se"')  # no UTF-8, so that nothing can parse it
    assert command(*mine(shelf, MADE + more, "mechanism=made")) == 0
    (part,) = statement_of("out")["not_ours"]
    assert (part["kind"], part["name"], part["module"]) == ("mechanism", "made", "mine")
    files = {name: hashlib.sha256((shelf / name).read_bytes()).hexdigest() for name in ("mine.py", "shop.py")}
    assert part["sha256"] == hashlib.sha256("".join(f"{d}  {n}\n" for n, d in files.items()).encode()).hexdigest()
    (shelf / "shop.py").unlink()
    (shelf / "mine.py").unlink()
    assert origin("mine")["sha256"] == part["sha256"], "moved since it was imported"


def test_a_class_that_names_a_module_of_ours_which_does_not_hold_it_is_not_ours():
    """Its name need not be one that a plugin offers: a class may say that it is of a kind of ours."""
    assert _home(Laplace) == Laplace.__module__
    lying = type("Laplace", (Laplace,), {"kind": "laplace", "__module__": Laplace.__module__})
    (part,) = _named([("mechanism", "laplace", _home(lying))])
    assert (part["name"], part["module"], part["audited"]) == ("laplace", "unknown", False)
    assert not _named([("mechanism", "laplace", _home(Laplace))])


def test_what_a_sampler_of_others_fails_to_draw_was_charged_before_and_is_never_drawn_again(shelf, capsys):
    text = (shelf / "logistic_noise.py").read_text()
    begin = "SAMPLERS = {"
    assert begin in text
    failing = "_drawn = []\n\n\ndef _failing(*given):\n    _drawn.append(given)\n    if len(_drawn) == 2:\n"
    failing += "        raise ArithmeticError('the second draw fails')\n    return _whole(*given)\n\n\n"
    text = text.replace("symmetric(half_logistic)", "_failing").replace(
        begin, failing + "_whole = symmetric(half_logistic)\n" + begin
    )
    (shelf / "logistic_noise.py").write_text(text)
    given = [*TOWN, "plugins=[logistic_noise]", "mechanism=logistic", "selection=oneway", *QUIET, "hydra.run.dir=out"]
    assert command("run", *given) == 1
    ledger = Path("out/internal/ledger.jsonl")
    booked = [json.loads(line)["event"]["id"] for line in ledger.read_text().splitlines()[1:]]
    assert len(booked) == 2 and len(list(Path("out/internal/answers").iterdir())) == 1
    assert command("run", *given, "resume=true") == 0
    events = statement_of("out")["events"]
    assert [e["id"] for e in events if not e["answered"]] == [booked[1]], "spent, and not drawn again"
    assert len(ledger.read_text().splitlines()) == 1 + len(events)


TWIN = """
from dataclasses import dataclass
from typing import ClassVar
from mechanisms.accounting.plan import Reservation
from mechanisms.public.queries import query_matrices
from mechanisms.selection.base import GIVEN, Method, Schedule, Selection
class Identity(query_matrices.Identity):
    def answer_exact(self, marginal):
        return marginal[::-1].copy()
@dataclass(frozen=True)
class Turned(Method):
    kind: ClassVar[str] = "turned"
    def run(self, context):
        for slot in context.slots(GIVEN):
            clique = slot.clique
            context.ask([(slot, clique, Identity(context.domain.cells(clique)))])
@dataclass(frozen=True)
class TurnedSettings(Selection):
    kind: ClassVar[str] = "turned"
    methods: ClassVar[tuple[type[Method], ...]] = (Turned,)
    def schedule(self, facts, workload):
        return Schedule(Turned(), [Reservation(GIVEN, (a.name,), a.size, 1.0) for a in facts.domain.attributes])
SELECTIONS = {"turned": TurnedSettings}
"""


def test_a_query_of_others_that_a_file_would_take_for_ours_is_refused_before_its_charge(shelf, capsys):
    assert "is called 'Identity'" in refused(capsys, *mine(shelf, TWIN, "selection=turned"))
    assert len(Path("out/internal/ledger.jsonl").read_text().splitlines()) == 1, "nothing was charged"
    other = TWIN.replace("Identity(", "Backwards(").replace("turned", "backwards")
    given = mine(shelf, other, "selection=backwards", "hydra.run.dir=b", plugin="other")
    assert "it is not registered" in refused(capsys, *given)
    registered = other.replace("backwards", "turning") + "QUERIES = {'Backwards': Backwards.from_arrays}\n"
    assert command(*mine(shelf, registered, "selection=turning", "hydra.run.dir=c", plugin="shop")) == 0
    assert ("query", "Backwards") in [(p["kind"], p["name"]) for p in statement_of("c")["not_ours"]]


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("context.slots(GIVEN) * 2", "asked to pay twice"),
        ("[Slot(0, ('sex',))]", "pays for age, not sex"),
        ("[Slot(0, ('sex', 'age'))]", "pays for age, not sex × age"),
        ("[]", "it asked nothing, and nothing was charged"),
    ],
)
def test_a_selection_of_others_is_answered_nothing_that_its_charge_does_not_pay_for(shelf, capsys, asked, said):
    """Its release was paid for, and `verify` called it not sound: more answers than receipts, or other ones."""
    text = TWIN.replace("[(slot, clique, Identity(", "[(slot, clique, query_matrices.Identity(")
    text = "from mechanisms.selection.context import Slot\n" + text.replace("context.slots(GIVEN):", f"{asked}:")
    assert said in refused(capsys, *mine(shelf, text, "selection=turned")) and not Path("out/release").exists()


#: A query that says of itself that it hardly moves, and answers a hundred times what it is asked.
BOLD = TWIN.replace("Identity(", "Bold(").replace("turned", "bold") + "QUERIES = {'Bold': Bold.from_arrays}\n"
BOLD = BOLD.replace(
    "        return marginal[::-1].copy()",
    "        return 100 * marginal\n    def largest_column_norm(self, norm):\n        return 0.01",
)
UNPAID = """            free = NoisyMarginal(clique, Identity(9), np.zeros(9), "gaussian", 1.0, "9:free")
            context.answers_so_far.append(free)
"""


@pytest.mark.parametrize("factor", [100, 1])
def test_how_far_a_query_of_others_moves_is_computed_from_its_columns(shelf, capsys, factor):
    """Its own word is not asked: one that understates pays in full, and one that answers 100 records is refused."""
    given = mine(shelf, BOLD.replace("100 * marginal", f"{factor} * marginal"), "selection=bold")
    if factor > 1:
        error = refused(capsys, *given)
        assert "moves by 100 when one unit changes" in error and "plugins" in error
        assert len(Path("out/internal/ledger.jsonl").read_text().splitlines()) == 1, "nothing was charged"
        return
    assert command(*given) == 0
    assert {e["sensitivity"] for e in statement_of("out")["events"]} == {1.0}
    assert command("verify", "out/release", "plugins=[mine]") == 0


def test_a_query_of_others_counts_rows_by_its_columns_alone(shelf, monkeypatch):
    """What it would answer to a whole marginal, 7 records for each table whatever is in it, never leaves."""
    text = BOLD.replace("100 * marginal", "marginal if marginal.sum() == 1 else 0 * marginal + 7")
    assert command(*mine(shelf, text, "selection=bold", "privacy.epsilon=1000")) == 0
    answers = read_release(Path("out/release"))[2].answers
    assert [round(float(a.values.sum()), -1) for a in answers] == [600.0] * len(answers)


def test_a_query_of_others_is_counted_by_the_very_columns_that_its_sensitivity_was_computed_from(shelf):
    """A matrix that is made anew each time it is asked for, 1,000 times as large from its third time on."""
    text = BOLD.replace("100 * marginal", "self.times() * marginal")
    later = "class Bold(query_matrices.Identity):\n    asked = 0\n    def times(self):\n        Bold.asked += 1\n"
    later += "        return 1 if Bold.asked <= 2 * self.cells else 1000\n"
    text = text.replace("class Bold(query_matrices.Identity):\n", later).replace("slots(GIVEN):", "slots(GIVEN)[:1]:")
    assert command(*mine(shelf, text, "selection=bold")) == 0
    (answer,) = read_release(Path("out/release"))[2].answers
    assert statement_of("out")["events"][0]["sensitivity"] == 1
    assert abs(float(answer.values.sum()) - 600) < 6_000, "600 rows, not 600,000"


def test_a_query_of_others_that_is_marked_as_proved_is_refused(shelf, capsys):
    """The mark comes along where a class of ours is copied."""
    given = mine(shelf, BOLD.replace("class Bold", "@query_matrices.proved\nclass Bold"), "selection=bold")
    assert "only our own query matrices are marked as proved" in refused(capsys, *given)


@pytest.mark.parametrize(
    ("law", "wrong", "said"),
    [
        ('"l2", 1.0, 0.8', '"L1", 1.0, 0.8', "norm of the noise odd: got 'L1'"),
        ('"l2", 1.0, 0.8', '"l2", math.nan, 0.8', "stddev of the noise odd: got nan"),
        ('"l2", 1.0, 0.8', '"l2", 1.0, None', "mean_abs of the noise odd: got None"),
    ],
)
def test_a_law_of_others_without_a_norm_or_a_width_is_refused(shelf, law, wrong, said):
    """A norm in capitals had the sensitivity of the other one, and the release was called private and sound."""
    (shelf / "mine.py").write_text(ODD.format(mu="self.sensitivity / self.scale").replace(law, wrong))
    with pytest.raises(UserError, match=re.escape(said)):
        load_module("mine")


PART = np.zeros(2, np.int64)
NO_DRAWS = [None, (0, 0), (PART,), (PART, np.array([0, 1])), (np.full(1, 7), PART[:1]), (np.full(2, 7.5), PART[:1])]


@pytest.mark.parametrize("draws", NO_DRAWS)
def test_noise_of_others_that_is_no_draw_in_two_parts_for_each_answer_is_never_added(monkeypatch, draws):
    """One draw for all cells leaves their differences exact; a second part of 2**63 - 1 ran over, and its sign told."""
    monkeypatch.setitem(SAMPLERS, "laplace", lambda reader, size, scale, split: draws)
    with pytest.raises(UserError, match="does not give 2 draws"):
        lattice_noise(NOISE_EVENTS["laplace"]("0", 1.0, 1.0), 2, noise_source(None))


def test_draws_of_others_that_are_too_large_tell_nothing_of_the_answers(monkeypatch):
    """A sum that runs over has the other sign: where the draw is 2**63 - 1, one record more was told for certain."""
    draws, event = (np.array([2**63 - 1, -(2**63)]), np.zeros(2, np.int64)), NOISE_EVENTS["laplace"]("0", 1.0, 1.0)
    monkeypatch.setitem(SAMPLERS, "laplace", lambda reader, size, scale, split: draws)
    answers = (ExactAnswers(np.array([n, -n]), np.zeros(2, np.int64), 0) for n in (0, 1 << WEIGHT_BITS))
    one, other = (noisy(exact, event, noise_source(None)) for exact in answers)
    assert np.array_equal(one, other) and one[0] == -one[1] > 10**12


def test_a_selection_of_others_adds_no_answer_that_nobody_paid_for(shelf, capsys):
    text = TWIN.replace("[(slot, clique, Identity(", "[(slot, clique, query_matrices.Identity(")
    text = "import numpy as np\nfrom mechanisms.public.release import NoisyMarginal\n" + text
    settings = "@dataclass(frozen=True)\nclass TurnedS"
    given = mine(shelf, text.replace(settings, UNPAID + settings, 1), "selection=turned")
    assert "AttributeError in mine.py" in refused(capsys, *given) and not Path("out/release").exists()
    assert "has no attribute 'append'" in Path("out/internal/run.log").read_text(), "its words are kept back"


@pytest.mark.parametrize("kind", ["OSError", "open", "type('PanicException', (BaseException,), {})"])
def test_words_of_an_error_that_looks_like_the_system_s_or_is_no_exception_are_kept_back(shelf, capsys, kind):
    raised = QUOTES.replace('return {"weight": {}["Anna of Bern, 47 years"]}', f'raise {kind}("Anna of Bern")')
    given = mine(shelf, raised, "evaluation.enabled=true", "evaluation.metrics=[quotes]")
    printed = reply(capsys, *given, code=1)
    assert "Anna" not in printed.out + printed.err and " in mine.py, line 6" in printed.err


#: A metric that looks a text of the rows up in a table of its own, which lacks it.
QUOTES = """
from evaluation.metric import Metric
class Score:
    score = 0.5
    def to_json(self):
        return {"weight": {}["Anna of Bern, 47 years"]}
KNOWN = {"title": "quotes", "goal": "low", "low": 0, "high": 1, "perfect": 0, "reference": "", "source": ""}
METRICS = {"quotes": Metric(name="quotes", run=lambda inputs: Score(), **KNOWN)}
"""


@pytest.mark.parametrize("many", [False, True])
def test_an_error_of_others_that_quotes_a_row_stands_in_no_log(shelf, capsys, monkeypatch, many):
    """Its kind and its place are said; its words, and the errors behind it, are kept back with the log of the run."""
    monkeypatch.setenv("HYDRA_FULL_ERROR", "1")
    (shelf / "mine.py").write_text(QUOTES)
    where = ["-m", "hydra/launcher=basic", "hydra.sweep.dir=out"] if many else ["hydra.run.dir=out/one"]
    own = ["plugins=[mine]", "evaluation.metrics=[quotes]", "selection=oneway", "synthesis=independent"]
    given = ["run", *where, *TOWN, *own]
    printed = reply(capsys, *given, code=1)
    assert "Anna" not in printed.out + printed.err
    assert "KeyError in mine.py, line 6: a fault of the plugin mine" in printed.err
    assert "internal/run.log" in printed.err
    (log,) = Path("out").glob("*/internal/run.log")
    assert "Anna of Bern, 47 years" in log.read_text()
    assert "Anna of Bern, 47 years" in reply(capsys, *given, "resume=true", "console=always", code=1).err


#: Statements after which a metric goes on, and Python or logging prints words that may quote a row.
UNSEEN = {
    "a thread": "one = threading.Thread(target={}.__getitem__, args=('Anna of Bern',)); one.start(); one.join()",
    "a deletion": "type('Odd', (), {'__del__': lambda self: {}['Anna of Bern']})()",
    "a log": "logging.getLogger('theirs').warning('Anna of Bern')",
}


@pytest.mark.parametrize("way", UNSEEN)
def test_words_of_others_that_stop_no_run_stand_in_its_log_alone(shelf, capfd, way):
    """Python prints an error of a thread or of a deletion, and logging what a library warns of where nobody listens."""
    asks = f"def asks(inputs):\n    {UNSEEN[way]}\n    return Score()\n"
    text = QUOTES.replace('{}["Anna of Bern, 47 years"]', "0.5").replace("lambda inputs: Score()", "asks")
    (shelf / "mine.py").write_text(f"import logging, threading\n{asks}{text}")
    given = ["plugins=[mine]", "evaluation.metrics=[quotes]", "selection=oneway", "synthesis=independent"]
    assert command("run", *TOWN, *given, "hydra.run.dir=out") == 0
    printed = capfd.readouterr()
    assert "Anna" not in printed.out + printed.err and "Anna of Bern" in Path("out/internal/run.log").read_text()
