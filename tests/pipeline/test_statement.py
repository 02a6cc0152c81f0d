"""The statement of a release: one page in words, the numbers of privacy.json, public facts, lost choices, warnings."""

import dataclasses
import json
import math
import re
import shutil
import subprocess
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path

import pandas as pd
import pytest
import yaml

import pipeline
from mechanisms.accounting.accountants.accountant import PrivacyLoss
from mechanisms.accounting.accountants.registered import accountant_class
from mechanisms.accounting.currencies import gaussian_log_delta
from mechanisms.accounting.events import Exponential, Gaussian, Laplace
from mechanisms.accounting.restatements import DELTAS, Composition, all_of_budget
from mechanisms.public.schema.table_schema import parse_schema
from mechanisms.public.units import Neighbouring, rounded_up
from mechanisms.sensitive.contribution import PrivacyUnit
from pipeline.report.page import few_digits
from pipeline.scores.release_beside import release_beside
from pipeline.settings.config import load_config
from pipeline.statement.papers import registry_record, render_statement
from pipeline.statement.signing import FIELDS, Manifest, read_manifest
from pipeline.statement.statement import Declared, in_other_terms, public_facts
from pipeline.statement.words import sentence, words_of
from tests.pipeline.conftest import SCHEMA, TOWN, command, reply, worded
from tests.pipeline.formats import departures, problems

FAST = ["evaluation.enabled=false", "synthesis=independent"]
PERSON = ["privacy.unit=person", "privacy.max_records=4"]
PUBLISHED = ["statement.publisher='Office <b>of</b> & Town'", "statement.date=2027-03-01"]
PUBLISHED.append("statement.contact=a@b.example")


def release(town, *settings, folder="out"):
    assert command("run", *TOWN, *FAST, f"hydra.run.dir={folder}", *settings) == 0
    return town / folder / "release"


def said(folder):
    return json.loads((folder / "privacy.json").read_text())


#: Tags that nothing closes.
ALONE = {"br", "meta", "link", "path", "rect", "circle", "polyline"}


class Page(HTMLParser):
    """Tags and their number, what is still open, attributes that load or run something, and the text."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.open, self.loads, self.words = Counter(), [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags[tag] += 1
        self.loads += [v or "" for k, v in attrs if k in {"src", "href", "srcset", "action"} or k.startswith("on")]
        self.open += [] if tag in ALONE else [tag]

    def handle_endtag(self, tag):
        assert tag in ALONE or self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)

    @property
    def text(self):
        return " ".join(" ".join(self.words).split())


def page(folder):
    return Page((folder / "statement.html").read_text(encoding="utf-8"))


def test_the_page_says_who_what_and_how_much_in_words(town):
    made = release(town, *PUBLISHED, "privacy.unit=person", "privacy.max_records=4", "synthesis.rows=77")
    text = page(made).text
    facts = said(made)
    words = [
        *("Office <b>of</b> & Town", "2027-03-01", "a@b.example", "a synthetic table of “town”", "ε = 1, δ = 1e-9"),
        *("2.72 times", "73.2 %", "all records with the same value of 'person'", "not signed"),
        *("the table with and without one unit", "77 (from the settings)", "no budget ledger was kept"),
    ]
    assert [word for word in words if word not in text] == [], "names are texts, and no tags"
    assert f"μ = {rounded_up(facts['original']['mu'], 6)}" in text
    for number in (*facts["epsilon_at"].values(), *(g["epsilon"] for g in facts["group_privacy"])):
        assert few_digits(number) in text
    assert all(fact in text for fact in words_of(facts)["public_facts"])


@pytest.mark.parametrize("epsilon", [0.001, 0.004, 0.01, 0.7, 1.0, 1.2344, 3.3333333, 7.0000001])
@pytest.mark.parametrize("delta", [1.2345e-6, 3e-7, 1.2344e-14])
def test_no_page_promises_more_than_the_statement_by_rounding(one_run, epsilon, delta):
    """ε = 0.001 was "at most 1 times", even odds stayed at "50 %", and ε = 1.2344444 was 1.234."""
    facts = said(one_run / "release") | {"guarantee": {"epsilon": epsilon * 1.0000004, "delta": delta}}
    epsilon = facts["guarantee"]["epsilon"]
    text = render_statement(facts, Manifest("", None, None, {}), {})
    least = 1 - 2e-9
    said_so = (r"<b>(\S+) times</b>", r"most (\S+) %", r"1 in ([\d.e,]+)\)")
    factor, odds, one_in = (float(re.search(words, text)[1].replace(",", "")) for words in said_so)
    assert factor >= math.exp(epsilon) * least and odds >= 100 / (1 + math.exp(-epsilon)) * least
    assert one_in * delta <= 1 / least
    promised = re.findall(r"with ε = ([\d.e-]+), δ = ([\d.e-]+)", sentence("promise", facts))
    for stated in [*re.findall(r"ε = ([\d.e-]+), δ = ([\d.e-]+)\.", text), *promised]:
        assert float(stated[0]) >= epsilon * least and float(stated[1]) >= delta * least


def test_the_page_runs_and_loads_nothing_and_says_on_top_that_a_release_is_not_private(one_run):
    parsed = page(one_run / "release")
    assert not parsed.open and not {*parsed.tags} & {"script", "iframe", "object", "embed", "img", "form", "base"}
    assert parsed.loads == ["data:,"]
    assert not re.search(r"url\(|@import|https?://", (one_run / "release" / "statement.html").read_text())

    facts = said(one_run / "release") | {"private": False, "reasons_not_private": ["noise_seed"]}
    text = render_statement(facts, Manifest("", None, None, {}), {})
    assert text.index("NOT PRIVATE") < text.index("What is promised")


@pytest.mark.parametrize("delta", DELTAS)
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 2.0, 8.0])
@pytest.mark.parametrize("accountant", ["zcdp", "gdp"])
def test_the_promise_at_its_own_delta_is_no_larger_in_other_terms(accountant, epsilon, delta):
    """The loss of all that a ledger lets through is rounded up: ε = 2.0000000026 where 2 is promised."""
    promise, keeper = PrivacyLoss(epsilon, delta), accountant_class(accountant).of(delta, 1)
    charged = Composition(keeper, all_of_budget(keeper, promise))
    terms = in_other_terms(charged, promise)
    assert charged.epsilon_at(delta) >= epsilon * (1 - 1e-9)
    assert terms["epsilon_at"][f"{delta:g}"] == min(charged.epsilon_at(delta), epsilon)
    assert all(at < delta or value <= epsilon for at, value in terms["curve"])


@pytest.mark.parametrize("accountant", ["basic", "advanced", "zcdp", "gdp"])
def test_the_numbers_in_other_terms_hold_by_their_definitions(accountant):
    events = [Gaussian("a", 3.0, 40.0), Gaussian("b", 1.0, 9.0)]
    keeper = accountant_class(accountant).of(1e-7, 2)
    loss, charged = keeper.loss(events), Composition(keeper, events)
    known = [charged.epsilon_at(d) for d in (1e-5, 1e-6, 1e-9)]
    assert known == sorted(known)
    assert charged.epsilon_at(1e-7) == pytest.approx(loss.epsilon, rel=1e-9)
    mu = math.hypot(3 / 40, 1 / 9)
    for at, epsilon in zip((1e-5, 1e-6, 1e-9), known, strict=True):
        assert gaussian_log_delta(mu, epsilon) <= math.log(at) + 1e-9  # the exact δ of both events together
    for units in (2, 5, 10):
        group = charged.of_group(units)
        assert gaussian_log_delta(units * mu, group.epsilon) <= math.log(group.delta) + 1e-9
    if accountant == "gdp":
        assert charged.original["mu"] == pytest.approx(mu, rel=1e-9)
        assert gaussian_log_delta(5 * mu, 0.7 * charged.of_group(5).epsilon) > math.log(1e-7)


def test_a_group_under_pure_privacy_loses_its_sum():
    keeper = accountant_class("basic").of(0.0, 0)
    group = Composition(keeper, [Laplace("a", 1.0, 2.0), Exponential("b", 0.5)]).of_group(5)
    assert group.epsilon == pytest.approx(5.0)
    assert group.delta == 0
    assert Composition(keeper, [Laplace("a", 1.0, 2.0)]).original == {}


@pytest.mark.some(3)
@pytest.mark.parametrize(
    ("settings", "head"),
    [
        (["privacy.accountant=zcdp"], "ρ = "),
        (["privacy.accountant=advanced"], "with probability 1e-09 nothing is promised"),
        (["selection=mst", *PERSON], "What is promised"),
        (["selection=aim", "selection.max_cells=100"], "What is promised"),
        (["selection=mwem", *PERSON], "What is promised"),
        (["selection=adagrid", "selection.targets=[job]", *PERSON], "What is promised"),
        (["selection=indif", *PERSON, "privacy.accountant=basic"], "What is promised"),
        (["selection=groups", *PERSON, "privacy.accountant=zcdp"], "What is promised"),
        (["selection=priview", *PERSON, "privacy.accountant=basic"], "What is promised"),
        (["selection=privbasis", *PERSON], "What is promised"),
        (["accept=[{metric: l1, marginals: 1, at_most: 9e5}]", "accept_tries=2"], "one of several tries (the first"),
        (["accept=[{metric: l1, marginals: 1, at_most: 9e5}]", "privacy.accountant=zcdp"], "ρ = "),
    ],
)
def test_every_accountant_and_selection_has_its_page_and_is_sound(town, settings, head):
    made = release(town, *settings)
    assert head in page(made).text
    assert departures(made) == []
    assert command("verify", str(made)) == 0
    facts = said(made)
    assert facts["private"] and 0.9 < facts["spent"]["epsilon"] <= 1 and all(e["answered"] for e in facts["events"])
    assert (made / "synthetic.csv").read_text().startswith("age,sex,job")


def hazards(facts):
    """Each row of the page's table: its name → the answer, and the line to fill in."""
    html = render_statement(facts, Manifest("", None, None, {}), {})
    rows = re.findall(r"<tr><td>([^<]*)</td><td>([^<]*)(?:<i>([^<]*)</i>)?", html[html.index("<h2>Hazards") :])
    return {name: (answer, prompt) for name, answer, prompt in rows}


def test_what_software_cannot_know_is_a_prompt(one_run):
    rows = hazards(said(one_run / "release"))
    assert len(rows) == 17 and all(answer or prompt for answer, prompt in rows.values())
    asked = {"Other releases of the same data", "Trust in the curator", "Breach of the raw data", "Collection"}
    assert {name for name, (answer, _) in rows.items() if not answer} == asked


def test_the_record_for_the_registry_has_the_registrys_fields(town):
    made = release(town, "privacy.accountant=zcdp", *PUBLISHED)
    text = (made / "deployment.yaml").read_text(encoding="utf-8")
    record = yaml.safe_load(text)
    assert departures(made) == []
    styles = {t.style for t in yaml.scan(text) if isinstance(t, yaml.ScalarToken)}
    assert styles <= {None, "|", "'", '"'}  # a folded text would lose its lines in the registry
    assert record["deployment"]["dp_variant"]["variant_name"] == "Zero-concentrated DP"
    assert record["deployment"]["privacy_loss"]["privacy_parameters"]["rho"] > 0
    public = record["deployment"]["dp_variant"]["unprotected_quantities"].splitlines()
    assert public == ["Taken as public:", *(f"- {fact}" for fact in words_of(said(made))["public_facts"])]
    broken = {**record, "deployment": {**record["deployment"], "more": 1}}
    assert "'more' was unexpected" in problems("deployment", broken)[0]


def test_the_record_holds_any_text_as_it_is(one_run):
    facts, odd = said(one_run / "release"), "a: b\x85c\u2028d\x7f\ufeff \U0001f600 'x' \"y\" <&> # \\ {z}\tend"
    odd_ones = facts | {"table": odd, "published": facts["published"] | {"region": odd}}
    made = yaml.safe_load(registry_record(odd_ones, read_manifest(one_run / "release")))
    assert made["deployment"]["basic"]["name"] == f"Synthetic {odd}"
    assert made["deployment"]["basic"]["data_product_region"] == odd
    assert odd in made["deployment"]["dp_variant"]["data_domain"]


def test_the_metadata_name_every_column_and_the_tables_digest(one_run):
    made = one_run / "release"
    record = json.loads((made / "croissant.json").read_text())
    header = (made / "synthetic.csv").read_text().splitlines()[0].split(",")
    fields = record["recordSet"][0]["field"]
    assert [f["source"]["extract"]["column"] for f in fields] == header
    assert [f["dataType"] for f in fields] == ["sc:Integer", "sc:Text", "sc:Text"]
    manifest = json.loads((made / "manifest.json").read_text())
    assert record["distribution"][0]["sha256"] == manifest["files"]["synthetic.csv"]


def longest(facts):
    """The statement with more text than runs put on the page: public facts are never cut off."""
    words = "a declared fact about the table that is long enough to need more than one line of the page, " * 3
    return {
        **facts,
        "private": False,
        "reasons_not_private": ["noise_seed", "confirmed_public"],
        "budget": {"epsilon": 30.0, "delta": 0.01},
        "public_facts": [facts["public_facts"][0] | {"source": words}, *[{"fact": words}] * 9],
        "outside": [{"stop": "rule", "rule": words}] * 9,
        "published": {**facts["published"], "publisher": "W" * 160, "contact": "w" * 160, "confirmed_by": "c" * 160},
    }


@pytest.mark.slow
@pytest.mark.parametrize(("fill", "sheets"), [(dict, 1), (longest, 3)], ids=["as it is", "with the longest texts"])
def test_the_page_prints_on_one_sheet(town, fill, sheets):
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if browser is None:
        pytest.skip("no browser to print with")
    facts = said(release(town, "privacy.accountant=advanced"))
    digests = dict.fromkeys(("synthetic.csv", "measurements/answers.npz", "privacy.json"), "0" * 64)
    target = town / "page.html"
    target.write_text(render_statement(fill(facts), Manifest("", 10**9, "f" * 64, {}), digests))
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--no-pdf-header-footer"]
    line = [browser, *flags, f"--print-to-pdf={town / 'page.pdf'}", f"file://{target}"]
    subprocess.run(line, check=True, timeout=120)
    assert len(re.findall(rb"/Type\s*/Page\b", (town / "page.pdf").read_bytes())) <= sheets


def test_settings_of_the_statement_are_those_that_are_read():
    assert {f.name for f in dataclasses.fields(load_config().statement)} == {*FIELDS, "key"}


def test_bounds_and_bins_are_called_no_texts_and_the_cap_of_a_schema_is_called_its_own():
    """A page named each discovered column among the texts, and a setting that nobody gave."""
    found = [{"column": "paid", "what": ["bounds", "bins"], "release": "this"}]
    jobs = [*found, {"column": "job", "what": ["values"], "release": "this"}]
    said = {n: sentence("texts_released", {}, {"schema": {"discovered": d}}) for n, d in (("job", jobs), ("no", found))}
    assert said["job"].endswith("let them pass: job (values), from noisy answers of this run") and "lists" in said["no"]
    schema = parse_schema(yaml.safe_load(SCHEMA + "unit: {column: person, records: {max: 3}}\n"), where="whole")
    for cap, words in ((3, "3 (the records of the schema's unit)"), (2, "2 (privacy.max_records_cap)")):
        own, charged = Declared(PrivacyUnit("person", 2)), [{"discovery": {"column": "units", "cap": cap}}]
        facts = public_facts(schema, Neighbouring.ADD_REMOVE, own, charged)
        assert words in " ".join(sentence("public_fact", fact) for fact in facts)
    for relation in Neighbouring:
        two = {"neighbouring": str(relation), "unit": {"table": True}}
        for name in ("neighbours", "compared", "absent"):
            both, alone = sentence(name, two), sentence(name, {**two, "unit": {}})
            assert both.replace(" and its rows in the table of units", "") == alone != both


UNSCORED = [*TOWN, "evaluation.enabled=false", "synthesis=independent"]

LIMIT = "budget.limit={epsilon: 3, delta: 1e-6}"


def statement(folder):
    return worded(folder / "release")


@pytest.mark.parametrize("how", ["copied", "packed", "sorted", "parquet", "quoted"])
@pytest.mark.parametrize("public", [["selection=public", "selection.public"], ["synthesis=gum", "synthesis.public"]])
def test_a_copy_of_the_private_table_is_not_a_public_one(how, public, town, capsys):
    table = pd.read_csv(town / "town.csv")
    name = {"packed": "copy.csv.gz", "parquet": "copy.parquet"}.get(how, "copy.csv")
    if how == "parquet":
        table.to_parquet(town / name)
    else:
        made = table.sort_values(list(table.columns)) if how == "sorted" else table
        made.to_csv(town / name, index=False, quoting=1 if how == "quoted" else 0)
    kind, setting = public
    own = [kind, f"{setting}={name}", "hydra.run.dir=out", "budget.ledger=l.json", LIMIT]
    error = reply(capsys, "run", *UNSCORED, *own, code=1).err
    assert "this is the private table itself" in error and setting in error
    assert not (town / "out" / "release").exists()
    assert not (town / "l.json").exists()  # nothing was booked


def test_another_table_with_as_many_rows_may_be_public_and_the_stop_is_listed(town):
    table = pd.read_csv(town / "town.csv")
    table.loc[0, "sex"] = "f" if table.loc[0, "sex"] == "m" else "m"
    table.to_csv(town / "other.csv", index=False)
    assert command("run", *UNSCORED, "selection=public", "selection.public=other.csv", "hydra.run.dir=out") == 0
    said = statement(town / "out")
    assert "the table 'other.csv' (selection.public), which chose the marginals" in said["public_facts"]
    assert said["outside"] == [
        "a public table with the very rows of the private one refuses the run",
        "a column of which the schema cannot place more than 20 % of its cells that are not declared missing "
        "(data.max_unplaced=0.2) refuses the run, before any charge",
    ]


@pytest.mark.parametrize(("selection", "kind"), [("mst", "exponential"), ("indif", "scores")])
def test_a_choice_that_was_charged_and_lost_is_not_called_answered(selection, kind, town):
    own = [*UNSCORED[:-1], f"selection={selection}", "synthesis=pgm", "synthesis.iterations=20", "hydra.run.dir=out"]
    assert command("run", *own) == 0

    def asked(event):
        return event["mechanism"] == "exponential" if kind == "exponential" else bool(event.get("scores"))

    before = [e["answered"] for e in statement(town / "out")["events"] if asked(e)]
    assert before and all(before)
    inside = town / "out" / "internal"
    lost = min((inside / "answers").glob("*.json"))
    event = json.loads(lost.read_text())["event"]
    lost.unlink()
    for later in (inside / "answers").iterdir():  # a run that was killed between charge and draw went no further
        if later.name > lost.name:
            later.unlink()
    charged = (inside / "ledger.jsonl").read_text().splitlines(keepends=True)
    last = next(i for i, line in enumerate(charged) if event in line)
    (inside / "ledger.jsonl").write_text("".join(charged[: last + 1]))
    shutil.rmtree(town / "out" / "release")
    assert command("run", *own, "resume=true") == 0
    after = {e["id"]: e["answered"] for e in statement(town / "out")["events"] if asked(e)}
    assert after[event] is False


def test_a_weak_budget_is_warned_about_everywhere_and_a_usual_one_nowhere(town, capsys):
    weak = ["privacy.epsilon=20", "privacy.delta=0.01", *PERSON, "privacy.unit_id_rules=[trim]", "plan.format=json"]
    planned = json.loads(reply(capsys, "plan", *UNSCORED, *weak).out)["warnings"]
    assert len(planned) == 3
    assert reply(capsys, "plan", *UNSCORED, *weak, "plan.format=text").out.count("warning: ") == 3
    printed = reply(capsys, "run", *UNSCORED, *weak, "hydra.run.dir=out").out
    assert all(w in " ".join(printed.split()) for w in planned)
    assert statement(town / "out")["warnings"] == planned
    assert said(town / "out" / "release")["warnings"] == ["epsilon", "delta", "unit_id_rules"]
    assert "  publish   release/synthetic.csv (" in printed
    usual = ["privacy.epsilon=10", "privacy.delta=1e-5", *PERSON, "hydra.run.dir=usual"]
    assert command("run", *UNSCORED, *usual) == 0 and statement(town / "usual")["warnings"] == []
    assert "warning" not in capsys.readouterr().out


def test_a_release_that_is_not_private_is_not_to_be_published(town, capsys):
    lines = reply(capsys, "run", *UNSCORED, "seed=1", "hydra.run.dir=out").out
    assert "  do NOT publish " in lines and "  publish  " not in lines


@pytest.mark.slow
def test_scores_that_need_too_much_memory_are_foretold_before_the_run_spends(town, capsys):
    """On a terminal alone: the figure follows from the number of records. The run goes on."""
    said = "the scores are predicted to need"
    settings = ["limits.memory_gb=0.65", "selection=oneway", "synthesis=independent", "synthesis.rows=100"]
    for console, shown in (("always", True), ("never", False)):
        assert command("run", *TOWN, *settings, f"console={console}", f"hydra.run.dir={console}") == 0
        errors = " ".join(capsys.readouterr().err.split())
        assert (said in errors) is shown
        assert said not in (town / console / "internal" / "run.log").read_text(encoding="utf-8")
    assert command("run", *TOWN, *settings, "console=always", "evaluation.enabled=false", "hydra.run.dir=none") == 0
    assert said not in capsys.readouterr().err


def test_plan_foretells_the_memory_of_the_scores(town, capsys):
    few, many = ([*TOWN, "plan.format=json", f"plan.rows={rows}"] for rows in (1_000, 2_000_000))
    plans = [reply(capsys, "plan", *own).out for own in (few, many, [*many, "evaluation.enabled=false"])]
    needed = [json.loads(plan)["predicted_score_bytes"] for plan in plans]
    assert 0 == needed[2] < needed[0] < needed[1]
    assert " MB for the scores, of " in reply(capsys, "plan", *TOWN).out


#: What is promised, wherever it stands in words.
LOSS = re.compile(r"ε = ([0-9.e+-]+[0-9]), δ = ([0-9.e+-]+[0-9])")


def test_no_words_promise_less_than_the_numbers(town, capsys):
    """They were rounded to the nearest: ε = 0.33333348 and δ = 1.2344e-9 were said to be 0.333333 and 1.23e-09."""
    epsilon, delta = 0.33333348, 1.2344e-9
    fast = ["evaluation.enabled=false", "selection=oneway", "synthesis=independent", "budget.ledger=b.json"]
    fast += [f"privacy.epsilon={epsilon}", f"privacy.delta={delta}"]
    fast += ["budget.limit={epsilon: 2.0000034, delta: 1.2344e-6}"]
    assert command("run", *TOWN, *fast, "hydra.run.dir=out") == 0
    told = reply(capsys, "verify", "out/release").out
    release = pipeline.load("out")
    told += f"{release} {release._repr_html_()} {release_beside(Path('out/release/synthetic.csv'))[1]}"
    page = Path("out/release/statement.html").read_text(encoding="utf-8")
    last = re.findall(r"the plan spends: .*", reply(capsys, "plan", *TOWN, *fast).out)
    assert len(last) == 1 and len(LOSS.findall(told)) >= 5
    for e, d in LOSS.findall(told + last[0]):
        assert float(e) >= epsilon and float(d) >= delta, (e, d)
    booked, limit = LOSS.findall(re.search(r"booked .* unless", page)[0])
    assert float(booked[0]) >= epsilon and float(booked[1]) >= delta
    assert float(limit[0]) >= 2.0000034 and float(limit[1]) >= 1.2344e-6
