"""What the papers of a release say under each setting: no sentence is fixed text that a setting makes false."""

import dataclasses
from collections.abc import Sequence

import pytest
import yaml

from pipeline.settings.config import Config
from pipeline.statement.papers import _odds_of, render_statement
from pipeline.statement.signing import Manifest
from tests.pipeline.conftest import SCHEMA, TOWN, command, people, statement_of, worded
from tests.pipeline.formats import departures
from tests.pipeline.test_statement import Page, page

QUICK = [*TOWN, "evaluation.enabled=false", "selection=oneway", "synthesis=independent", "privacy.delta=1e-6"]
PERSON = ["privacy.unit=person", "privacy.max_records=3"]
OPEN = SCHEMA.replace("values: [baker, smith, clerk], other: other", "values: discover").replace(
    "min: 0, max: 99, bins: {count: 10}", "bounds: discover, within: [0, 1000], bins: {discover: 6}"
)
SIZES = SCHEMA + "unit_id: {name: person, records: measured}\n"
WHOLE = SCHEMA + "unit: {column: person, constant: sex, order: age, records: {max: 3}}\n"
PAPERS = ("page", "deployment", "croissant", "privacy")


class Row:
    """Settings, and what the papers have to say under them: `says` by their names, as page_deployment, and `never`."""

    def __init__(self, settings: list[str], *, never: Sequence[str] = (), **says: list[str]) -> None:
        assert {p for names in says for p in names.split("_")} <= {*PAPERS}
        self.settings, self.never = settings, never
        self.says = {p: [s for names, own in says.items() if p in names.split("_") for s in own] for p in PAPERS}


READ_OFF = "all from the schema, which a person confirmed as public; the run reads none off the rows"
DECLARED = "Bounds, bins and categories are declared in the schema."
LOOKED = "For this release no row is looked at again."
ALONE = "none in this release: synthesis is handed the noisy answers alone"
HANDED = "Rows are made by a synthesizer that is handed the noisy answers and the schema alone."
STARTED = "the public table 'known.csv', whose rows may stand in it as they are"
COMPARED = "The table that the run made was compared with the private rows: 1 noisy score, charged"
NOISY_ROWS = "as many as the noisy total says"
ALL_ROWS = "as many as the table has (a public fact)"
SMALL = "small groups"
BOUND = "C = 3 is declared"
FOUND = "follows from the noisy counts of units under discovery:(records per unit)"
CASE = "upper and lower case (full case folding: ß is ss)"
APART = f"Warning: ids that differ in {CASE} count as different units"
EXACT = "ids are one where their texts are equal. No id: blank text, NULL and NaN"
RECORDS, UNITS = (f"the number of {them} (before any were set aside)" for them in ("records", "units"))
REFUSES = "a unit with more records than declared refuses"
TRUSTED = "no unit has more than 60 records (privacy.clip=none)"
WITHOUT = "for every run (PRIVACY.md): that a run failed, its time and memory, correlated units"
JOBS = "age (bounds and bins), job (values), from noisy answers of this run"
#: Sentences that stood there whatever was set, and that some setting made false.
FORMER = [
    *("Bounds, bins and categories are declared.\n", "columns and values that the public schema"),
    *("a model of the noisy answers alone", "; no row is looked at again"),
    *("synthesis knows the noisy answers alone", "ε at three δ", "of those that were not set aside"),
    *("adds up all releases", "Government", "…"),
]

TABLE = {
    "declared": Row(
        [],
        page=[
            *(READ_OFF, ALONE, NOISY_ROWS, "C = 1: each unit has one record", WITHOUT, "3 charges, each with"),
            *("the operating system's secure source", "no budget ledger was kept", "(1 in 1,000,000)"),
            *("ε at δ = 1e-05, 1e-06, 1e-09 and the curve above", "(data.max_unplaced=0.2)", "that the schema lists"),
        ],
        deployment=[DECLARED, HANDED, LOOKED, WITHOUT, "privacy_loss"],
        croissant=[
            HANDED,
            LOOKED,
            f"Only what the measured marginals tell is alike; {SMALL}",
            "Differentially private",
        ],
        never=["as in the public table", "Warning", "(synthesis.rows)", "(selection.rows)"],
    ),
    "unconfirmed": Row(
        ["data.schema=unsure.yaml", "statement.confirmed_by=Alice"],
        page=["Confirmed by: nobody", "all from the schema, which nobody confirmed: they may be read off the rows"],
        croissant=["NOT private: nobody has confirmed"],
        never=["which a person confirmed as public", "Confirmed by: Alice"],
    ),
    "confirmed by a setting": Row(
        ["data.schema=unsure.yaml", "data.confirmed_public=true", "statement.confirmed_by=Alice"],
        page_deployment_privacy=["confirmed as public on the command line"],
        page=[READ_OFF, "Confirmed by: Alice"],
    ),
    "discovery": Row(
        [*PERSON, "data.schema=open.yaml", "privacy.epsilon=30", "privacy.discovery_share=0.2"],
        page=[f"discovered: {JOBS}", "all else from the schema, which a person", "ε at δ = 1e-05, 1e-06 and the curve"],
        deployment=[f"{DECLARED[:-1]}, but for {JOBS} (charged as discovery:age, discovery:job)."],
        privacy=[f"not declared, but discovered: {JOBS}"],
        never=[READ_OFF, DECLARED, "1e-09 and", "that the schema lists"],
    ),
    "discovered bound": Row(
        ["privacy.unit=person", "privacy.max_records=discover", "privacy.max_records_cap=64"],
        page_deployment=[FOUND],
        privacy=["64 (privacy.max_records_cap); C = ", "is not declared, but follows from noisy counts of this run"],
        never=[" is declared;", " is declared.", "C = 1: each unit has one record"],
    ),
    "replace": Row(
        ["privacy.neighbouring=replace"],
        page=[ALL_ROWS],
        deployment=["- the number of records\n"],
        privacy=["the number of records"],
        never=[NOISY_ROWS, "set aside)"],
    ),
    "replace, some set aside": Row(
        ["privacy.neighbouring=replace", "evaluation.holdout=0.3"],
        page_deployment_privacy=[RECORDS],
        page=[NOISY_ROWS],
        never=[ALL_ROWS],
    ),
    "replace, some units set aside": Row(
        [*PERSON, "privacy.neighbouring=replace", "evaluation.holdout=0.3"],
        page_deployment_privacy=[UNITS],
        page=[NOISY_ROWS],
        never=[ALL_ROWS, "the number of records"],
    ),
    "declared bound, all rules of ids, rows without one dropped": Row(
        PERSON,
        page=[
            *("without regard to: how Unicode writes", f"; {CASE}", "No id: blank text, NULL and NaN", "'N/A'"),
            *(f"{BOUND};", "rows without a unit id are dropped", "weighs min(1"),
        ],
        deployment_croissant_privacy=[CASE, "No id: blank text"],
        deployment=[f"{BOUND}.", "rows without a unit id are dropped", "weighs min(1"],
        never=["Warning", "ids are one where their texts are equal", FOUND, "is a unit of its own"],
    ),
    "ids, without case": Row(
        [*PERSON, "privacy.unit_id_rules=[trim,unicode,number]", "privacy.missing_unit_values=[nobody]"],
        page_deployment_croissant=[APART, "leading zeros", "'nobody'"],
        privacy=[APART.removeprefix("Warning: "), "leading zeros", "'nobody'"],
        never=[f"; {CASE}", "'N/A'"],
    ),
    "ids as they are": Row(
        [*PERSON, "privacy.unit_id_rules=[]", "privacy.missing_unit_values=[]"],
        page_deployment_croissant_privacy=[EXACT],
        page=["Warning: ids that differ in how Unicode"],
        never=["without regard to"],
    ),
    "rows without an id, own": Row(
        [*PERSON, "privacy.missing_unit=own", "privacy.clip=truncate"],
        page_deployment=["each row without a unit id is a unit of its own", "chosen at random with a secret key"],
        never=["rows without a unit id are dropped", "weighs min(1"],
    ),
    "a bound that is trusted": Row(
        ["privacy.unit=person", "privacy.max_records=60", "privacy.clip=none", "privacy.missing_unit=refuse"],
        page=[TRUSTED, REFUSES, "rows without a unit id refuse the run", WITHOUT],
        deployment=[TRUSTED, REFUSES, WITHOUT],
        privacy=[TRUSTED],
        never=["weighs min(1"],
    ),
    "a public start": Row(
        ["synthesis=gum", "synthesis.public=known.csv"],
        page=["synthesis is handed the noisy answers and the public table 'known.csv'", "(SHA-256 "],
        deployment=[STARTED, LOOKED, "(SHA-256 "],
        croissant=[STARTED, f"all else is as in the public table 'known.csv'; {SMALL}"],
        privacy=["(synthesis.public), from whose rows the synthetic ones were changed"],
        never=[ALONE, HANDED],
    ),
    "accepted": Row(
        ["accept=[{metric: l1, marginals: 1, at_most: 9e5}]", "accept_share=0.1"],
        page=[f"{ALONE}; the table that the run made was compared with the rows, with noise (1 charge)"],
        deployment_croissant=[f"{COMPARED}."],
        never=[LOOKED, "in each of several tries"],
    ),
    "the best of several, from a public start": Row(
        ["accept=[{metric: l1, marginals: 1}]", "accept_tries=2", "synthesis=gum", "synthesis.public=known.csv"],
        page=[
            "one of several tries",
            f"{WITHOUT}, how many tries there were",
            "known.csv'; the table that the run made was",
        ],
        deployment=[f"{COMPARED}, in each of several tries.", "Released: one of several tries", "how many tries there"],
        croissant=[f"{COMPARED}, in each of several tries.", STARTED],
        never=[LOOKED, ALONE, HANDED],
    ),
    "rows that are asked for": Row(
        ["synthesis.rows=77", "synthesis.seed=1", "data.max_unplaced=1"],
        page=["77 (from the settings)", "no column refuses the run for values that the schema cannot place"],
        deployment_privacy=["the number of synthetic rows, 77 (synthesis.rows), of the run's own table"],
        never=[NOISY_ROWS, "(data.max_unplaced=0.2)"],
    ),
    "rows that a selection is told": Row(
        ["selection=priview", "selection.rows=600"], privacy=["the number of records, about 600 (selection.rows)"]
    ),
    "units counted": Row(
        [*PERSON, "data.schema=sizes.yaml", "privacy.unit_id_share=0.2"],
        page=["noisy counts of 3 columns, and of no combination of them; of units by their number of records"],
    ),
    "whole persons": Row(
        [*PERSON, "data.schema=whole.yaml", "privacy.person_share=0.2", "release.tables=two"],
        page=[
            "histograms of units, of their records and of neighbours among these, in which one unit weighs 1 at most",
            "two synthetic tables, of persons and of their records, which join by “person”",
        ],
    ),
    "pure": Row(
        ["privacy.delta=0", "privacy.accountant=basic", "mechanism=laplace", "privacy.epsilon=20"],
        page=["none: δ = 0", "Warning: ε = 20"],
        deployment=["Pure DP", "Laplace noise: 3 charges", "Warning: ε = 20"],
        croissant=["Warning: ε = 20"],
        never=["(1 in"],
    ),
    "ledger, published": Row(
        [
            *("budget.ledger=l.json", "budget.limit={epsilon: 9, delta: 1e-5}"),
            *("statement.publisher=Office", "statement.publisher_type=Nonprofit", "release.format=parquet"),
        ],
        page=["adds up the releases that are booked in it"],
        deployment=["Nonprofit"],
        never=["no budget ledger was kept"],
    ),
    "seeded": Row(
        ["seed=3"],
        page=["NOT PRIVATE", "A FIXED SEED"],
        deployment=["Synthetic, NOT private table"],
        croissant=["NOT private: the noise seed is fixed"],
        never=["Differentially private", "the operating system", "privacy_loss"],
    ),
}
#: Settings on which no sentence rests, and why not.
UNSAID = {
    "data.name": "the schema's name stands on the page",
    **dict.fromkeys(("data.path", "data.delimiter", "data.units", "data.table", "data.query"), "of the rows"),
    "data.encoding": "of the rows",
    "data.unit": "the unit that is used is told",
    "data.rows_of_one_unit": "of a query of a database: test_where_data_lies reads the page",
    "release.dialect": "the released schema says how the table is written",
    "data.max_records": "the bound that is used is told",
    **dict.fromkeys(("data.rows", "data.seed"), "of the demo's rows"),
    "data.roles": "for scores alone",
    "privacy.noise_seed": "seed sets it",
    "selection": "receipts and marginals tell what was measured",
    "evaluation": "scores are not released; evaluation.holdout is switched above",
    "budget": "the sentence of the ledger is made from its numbers",
    "statement": "printed as given; what fits the page is another test's",
    "limits": "of time and memory",
    "engine": "a release is the same, byte for byte, whoever read the rows",
    "plan": "of `plan` alone",
    **dict.fromkeys(("console", "format", "quiet"), "of the terminal alone"),
    "experiment": "makes no release of its own",
    "smoke": "of experiments alone",
    "plugins": "another test's: what they bring is named in every paper",
    "resume": "another test's: test_attacks",
    "synthesis.kind": "every one is handed the same; synthesis.public is switched above",
}


def texts(node) -> list[str]:
    if isinstance(node, dict):
        return [t for k, v in node.items() for t in (str(k), *texts(v))]
    return [t for v in node for t in texts(v)] if isinstance(node, list) else [str(node)]


def papers_of(release) -> dict[str, str]:
    files = {"deployment": "deployment.yaml", "croissant": "croissant.json"}
    read = {n: yaml.safe_load((release / f).read_text(encoding="utf-8")) for n, f in files.items()}
    read["privacy"] = worded(release)
    return {"page": page(release).text, **{name: "\n".join(texts(content)) for name, content in read.items()}}


@pytest.fixture
def towns(town):
    unsure = SCHEMA.replace("confirmed_public: true", "confirmed_public: false")
    for name, text in {"unsure": unsure, "open": OPEN, "sizes": SIZES, "whole": WHOLE}.items():
        (town / f"{name}.yaml").write_text(text)
    people(500, seed=7).to_csv(town / "known.csv", index=False)
    return town


@pytest.mark.parametrize(
    ("delta", "failure"), [(1e-9, "1,000,000,000"), (1e-6, "1,000,000"), (3e-7, "3,333,333"), (2e-10, "5,000,000,000")]
)
def test_a_chance_is_one_in_a_number_that_is_not_above_it(delta, failure):
    """The default δ of 1e-9 stood as 1 in 1,000,000,001 on every statement."""
    assert _odds_of({"epsilon": 1.0, "delta": delta})["failure"] == failure


@pytest.mark.parametrize("name", TABLE)
def test_each_setting_has_its_sentences_and_none_that_it_makes_false(towns, name):
    assert command("run", *QUICK, "hydra.run.dir=out", *TABLE[name].settings) == 0
    read_papers(TABLE[name], towns / "out" / "release")


def read_papers(row: Row, release) -> None:
    """The papers say what they have to say under these settings, nothing that is false then, and verify agrees."""
    papers, statement = papers_of(release), worded(release)
    missing = [f"{p}: {s}" for p in PAPERS for s in row.says[p] if s not in papers[p]]
    assert not missing, "\n".join(missing)
    assert not [f"{p}: {s}" for p in PAPERS for s in (*row.never, *FORMER) if s in papers[p]]
    assert all(fact in papers["page"] for fact in (*statement["public_facts"], *statement["outside"]))
    assert departures(release) == []
    assert (command("verify", str(release)) == 0) is statement["private"]


def test_every_setting_is_switched_or_known_to_touch_no_sentence():
    def leaves(settings, before=""):
        for f in dataclasses.fields(settings):
            value = getattr(settings, f.name)
            inner = dataclasses.is_dataclass(value)
            yield from leaves(value, f"{before}{f.name}.") if inner else [f"{before}{f.name}"]

    switched = {s.partition("=")[0] for row in TABLE.values() for s in row.settings}
    switched |= {"synthesis.options", "mechanism.kind"}  # synthesis.public, mechanism
    names = {*leaves(Config())}
    unsaid = {n: {u for u in UNSAID if n == u or n.startswith(f"{u}.")} for n in names - switched}
    assert [n for n, reasons in unsaid.items() if not reasons] == []
    assert {*UNSAID} == set().union(*unsaid.values())


def test_what_a_setting_forbids_stands_under_another_one():
    stands = [s for row in TABLE.values() for p in PAPERS for s in row.says[p]]
    lost = [s for row in TABLE.values() for s in row.never if not any(s in one for one in stands)]
    assert lost == []


def test_a_part_of_the_table_is_called_so_in_every_paper_that_describes_it(towns):
    assert command("run", *QUICK, "hydra.run.dir=out", "synthesis=pgm", "privacy.neighbouring=replace") == 0
    assert command("synth", "from=out/release", "where={sex: f}", "output=part", "synthesis=pgm") == 0
    papers = papers_of(towns / "part" / "release")
    assert "as many as the noisy answers say satisfy this" in papers["page"] and ALL_ROWS not in papers["page"]
    assert "table of town, only rows with sex = f, with the noisy marginals" in papers["deployment"]
    assert "table of town, only rows with sex = f." in papers["croissant"]
    assert command("verify", "part/release") == 0


def test_a_table_that_was_made_later_is_not_called_the_one_that_the_run_compared_or_counted(town):
    """Its page said that it was compared with the private rows, and that it has as many rows as the run's own."""
    accept = "accept=[{metric: l1, marginals: 1, at_most: 9e5}]"
    assert command("run", *QUICK, accept, "synthesis.rows=77", "hydra.run.dir=out") == 0
    assert command("synth", "from=out/release", "rows=5", "output=again") == 0
    papers = papers_of(town / "again" / "release")
    assert "77 (synthesis.rows), of the run's own table" in papers["page"] and "5 (from the settings)" in papers["page"]
    assert f"{COMPARED}." in papers["deployment"] and "the table that the run made was compared" in papers["page"]
    assert command("verify", "again/release") == 0


def test_the_factor_of_a_large_epsilon_is_rounded_up():
    assert _odds_of({"epsilon": 30.001, "delta": 0.0})["factor"].startswith("e^30.01,")


def test_all_that_is_taken_as_public_or_outside_stands_on_the_page_in_full_length(town):
    assert command("run", *QUICK, "hydra.run.dir=out") == 0
    statement = statement_of(town / "out")
    facts = [f"fact {i}: {'as long as nine columns that were discovered ' * 9}end {i}" for i in range(18)]
    statement["public_facts"] += [{"fact": fact} for fact in facts[:9]]
    statement["outside"] = [{"stop": "rule", "rule": fact} for fact in facts[9:]]
    drawn = Page(render_statement(statement, Manifest("", None, None, {}), {}))
    assert all(fact in drawn.text for fact in facts)
