"""Leaves and files of a release, changed alone: `verify` finds each, or it stands in a short list."""

import json
import re
import shutil
from functools import cache, partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml

from mechanisms.public.domain import Attribute, Domain
from mechanisms.public.errors import UserError
from mechanisms.public.schema.schema_text import dump_yaml
from mechanisms.public.schema.table_schema import load_schema
from pipeline import fit
from pipeline.statement import other_files as compared_files
from pipeline.statement.other_files import other_files
from pipeline.statement.paid_answers import sensitivities
from pipeline.statement.papers import _Dumper
from pipeline.statement.restated import FROM_RUN, _last_candidates, _terms, _wrong_choices, restated
from pipeline.statement.statement import unit_of
from pipeline.statement.verify import _CHECKS, BROKEN, _private, verify
from pipeline.version import __version__
from tests.pipeline.conftest import TOWN, command, done_once, edit, rebound
from tests.pipeline.forgeries import forgeries
from tests.pipeline.formats import content_of
from tests.pipeline.test_contradictions import forged, read
from tests.pipeline.test_discovery_runs import OPEN

FAST = [*TOWN, "evaluation.enabled=false", "synthesis=independent"]
UNITS = ["privacy.unit=person", "privacy.epsilon=20"]
RELEASES = {
    "auto": ["selection=auto", "privacy.unit=person", "privacy.max_records=4"],
    "pairs": ["selection=pairs", "privacy.unit=person", "privacy.max_records=4", "statement.publisher=Town"],
    "tries": ["accept=[{metric: l1, marginals: 1, at_most: 10000}]", "accept_tries=3"],
    "mwem": ["selection=mwem", "selection.k=[2]"],
    "open": ["selection=pairs", "data.schema=open.yaml", *UNITS, "privacy.max_records=3", "privacy.delta=1e-6"],
    "units": ["selection=pairs", *UNITS, "privacy.max_records=discover", "privacy.max_records_cap=20"],
    "aim": ["selection=aim"],
    "advanced": ["selection=adagrid", "privacy.accountant=advanced", "mechanism=gaussian", "privacy.delta=1e-6"],
}
FILES = {"privacy": "privacy.json", "index": "measurements/index.json", "manifest": "manifest.json"}
FILES |= {"schema": "schema.yaml", "croissant": "croissant.json", "deployment": "deployment.yaml"}

#: What a forger adds to `public_facts`, and beside it.
FACTS = [{"fact": "units_table"}, {"fact": "public_table", "name": "x.csv"}]
FACTS += [{"fact": "query", "rows_of_one_unit": "stated"}]
FACTS += [{"fact": name, "rows": 5} for name in ("synthetic_rows", "selection_rows")]
PARTS = [{"kind": "engine", "name": "a", "module": "a.b", "distribution": None, "version": None, "sha256": "00" * 32}]

#: What may change and be called sound beside what `verify` says that the run alone tells (`TOLD`).
PROMISES_NOTHING = (
    r"told .*",
    r"privacy swapped events\.\d+ of scores",  # all of the budget counts, charged or not
    r"index deleted distances\.below",  # a selection of ours leaves nothing out, and none is named
    r"schema deleted columns\.\w+\.(outside|missing|min|max)",  # follows: read as it stood
    r"schema doubled number columns\.\w+\.fine",  # "about so many": each whole number has a cell of its own already
    r"schema (renamed|emptied|deleted|doubled|swapped) leave_out(\.\d+)?",  # columns that nobody read: named here alone
    r"index deleted (domain\.\d+\.ordered|histogram|distances)",  # read as what stood there, or as none
)


@pytest.fixture(scope="module")
def release_of(tmp_path_factory):

    @cache
    def make(name: str) -> Path:
        folder = tmp_path_factory.mktemp(name)
        (folder / "open.yaml").write_text(OPEN, encoding="utf-8")
        done_once(folder, "run", *FAST, *RELEASES[name], "hydra.run.dir=out")
        return folder / "out" / "release"

    return make


def fresh(release: Path, work: Path) -> Path:
    shutil.rmtree(work, ignore_errors=True)
    return shutil.copytree(release, work)


def called_sound(release: Path, work: Path, every: int, of=tuple(FILES)) -> list[str]:
    """Each `every`-th forgery of some files that `verify` calls sound; all papers and digests are made anew."""
    contents = {k: content_of(release / name) for k, name in FILES.items()}
    listed = [(k, *forgery) for k in of for forgery in forgeries(contents[k])]
    passed = []
    for which, what, place, new in listed[::every]:
        fresh(release, work)
        now = {**contents, which: new}
        try:
            if which in ("privacy", "index", "schema"):
                _forged(release, work, now)
            else:
                (work / FILES[which]).write_text(_text(which, new), encoding="utf-8")
            if which in ("croissant", "deployment"):
                rebound(work)
            if verify(work).sound:
                passed.append(name_of(which, what, place, contents["privacy"]))
        except UserError:  # no release at all
            continue
    assert len(listed) > 400
    return passed


def name_of(which: str, what: str, place, statement) -> str:
    """A forgery in words; a whole charge for scores is called so, a fact or a stop by its kind."""
    if which == "privacy" and told(place, statement):
        return f"told {'.'.join(map(str, place))}"
    whole = which == "privacy" and place[0] == "events" and len(place) == 2
    near = statement["events"][place[1] : place[1] + 2] if whole else ()
    return f"{which} {what} {'.'.join(map(str, place))}{' of scores' if any(e.get('scores') for e in near) else ''}"


def called_true(release: Path, work: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Each forgery of the statement and of the list of answers that every check calls true; papers follow from them."""
    shutil.copytree(release, work)
    for name in ("marginal_frames", "_wrong_marginals"):  # of the same answers the same marginals, in the same files
        monkeypatch.setattr(compared_files, name, _once_for_each_index(getattr(compared_files, name), work))
    said, index = read(release)
    assert holds(work, said, index)
    listed = [*forgeries(said), *added(said)]
    passed = [name_of("privacy", what, place, said) for what, place, new in listed if holds(work, new, index)]
    for what, place, new in forgeries(index):
        (work / FILES["index"]).write_text(_text("index", new), encoding="utf-8")
        passed += [name_of("index", what, place, said)] if holds(work, said, new) else []
    return passed


def _once_for_each_index(made, work: Path):
    """A function of what was measured, asked once for each list of answers in the folder."""
    kept = {}

    def once(*arguments):
        index = (work / FILES["index"]).read_bytes()
        if index not in kept:
            kept[index] = made(*arguments)
        return kept[index]

    return once


def added(said):
    """As `forgeries`, for facts and parts that are not there; each in its place among the facts."""
    for fact in FACTS:
        before = [i for i, f in enumerate(said["public_facts"]) if f["fact"] in ("query", "synthetic_rows")]
        places = {len(said["public_facts"]), *before}
        for place in places:
            facts = [*said["public_facts"][:place], fact, *said["public_facts"][place:]]
            stop = [{"stop": "public_table"}] if fact["fact"] == "public_table" else []
            new = {**said, "public_facts": facts, "outside": stop + said["outside"]}
            yield "added", ("public_facts", fact["fact"]), new
    yield "added", ("not_ours",), {**said, "not_ours": PARTS}
    with_rules = {**said["unit"], "ids": {**(said["unit"]["ids"] or {}), "rules": ["trim"]}}
    yield "cut", ("unit", "ids"), {**said, "unit": with_rules, "warnings": [*said["warnings"], "unit_id_rules"]}


def told(place, statement) -> bool:
    names = [k for k in place if not isinstance(k, int)]
    for list_of, kind in (("public_facts", "fact"), ("outside", "stop")):
        if names[0] == list_of and len(place) > 1 and isinstance(place[1], int):
            names.insert(1, statement[list_of][place[1]][kind])
    return any(names[: len(t.split("."))] == t.split(".") for t in FROM_RUN)


def holds(work: Path, said, index) -> bool:
    """Whether no check of `verify` but that of the papers contradicts them."""
    own = [*_CHECKS.values(), _private]
    own += [partial(check, work) for check in (sensitivities, restated, other_files)]
    try:
        same = said["versions"]["pipeline"] == __version__  # of another one nothing is called sound
        return same and all(check(said, index)[0] is not False for check in own)
    except (*BROKEN, UserError):
        return False


def _text(which: str, content) -> str:
    if which == "deployment":
        return yaml.dump(content, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=10**6)
    if which == "schema":
        return dump_yaml(content)
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def _forged(release: Path, work: Path, now) -> None:
    said, index, schema = (now[k] for k in ("privacy", "index", "schema"))
    try:
        (work / "schema.yaml").write_text(_text("schema", schema), encoding="utf-8")
        (work / "schema.yaml").write_text(load_schema(work / "schema.yaml").to_yaml(), encoding="utf-8")
        forged(work, said, index)
    except Exception:  # papers that nobody can write: those that were there, bound anew
        fresh(release, work)
        for which in ("privacy", "index", "schema"):
            (work / FILES[which]).write_text(_text(which, now[which]), encoding="utf-8")
        rebound(work)


def unexpected(passed: list[str]) -> list[str]:
    return [p for p in passed if not any(re.fullmatch(allowed, p) for allowed in PROMISES_NOTHING)]


SLOW = [pytest.param(name, marks=pytest.mark.slow) for name in RELEASES if name != "pairs"]


@pytest.mark.parametrize("name", ["pairs", *SLOW])
def test_every_leaf_of_the_statement_and_of_the_answers_is_held_to_the_rest(release_of, tmp_path, monkeypatch, name):
    passed = called_true(release_of(name), tmp_path / "work", monkeypatch)
    assert passed and unexpected(passed) == []


def test_a_sample_of_small_forgeries_of_every_file_is_refused(release_of, tmp_path):
    assert unexpected(called_sound(release_of("pairs"), tmp_path / "work", every=97)) == []
    assert unexpected(called_sound(release_of("open"), tmp_path / "work", every=97)) == []
    assert unexpected(called_sound(release_of("units"), tmp_path / "work", every=101)) == []


CUTS = {
    "auto": [r".*scores:", r".*distances-\d+"],
    "tries": [r".*distances-\d+", "accept:0"],
    "mwem": [".*choose:", "0003:choose:", "0005:choose:"],
    "aim": [".*:choose", "purse:0000:choose"],
    "advanced": [".*choose:", "0003:choose:"],
}


@pytest.mark.parametrize("name", CUTS)
def test_receipts_of_choices_and_scores_that_were_cut_out_are_missed(release_of, tmp_path, name):
    """They were called sound where what was spent was made anew, since all of the budget is promised in any case."""
    release, work = release_of(name), tmp_path / "work"
    said, index = read(release)
    for cut in CUTS[name]:
        events = [e for e in said["events"] if not re.fullmatch(cut, e["id"])]
        new = {**said, "events": events}
        if len(events) == len(said["events"]):  # a run's answers decide whether distances are asked a second time
            continue
        if any("scores" in e["id"] for e in said["events"]) and not any("scores" in e["id"] for e in events):
            index = {k: v for k, v in index.items() if k != "distances"}
        fresh(release, work)
        forged(work, new | json.loads(json.dumps(_terms(new, unit_of(said["unit"])))), index)
        assert not verify(work).sound, cut


@pytest.mark.parametrize(
    ("edges", "places", "rivals"),
    [
        (["ab", "bc"], "4 67", ["ac", "bc"]),
        (["ab", "ac", "ad"], "45 789", ["ad", "bd"]),  # c × d is larger than all that was chosen
        (["ac", "ab"], "45 67", None),  # its own receipt is there
        (["ac", "ab"], "4 57", None),  # rounds: what may be left in them the receipts do not tell
        (["ab", "bc", "de"], "45 789", ["de"]),  # free
        (["ab"], " 6", None),
    ],
)
def test_the_last_choice_of_a_tree_is_free_where_no_other_pair_joins_its_parts(edges, places, rivals):
    domain = Domain(tuple(Attribute(n, 30 if n == "c" else 4 if n == "d" else 3) for n in "abcde"))
    choices, chosen = ([f"000{p}" for p in part] for part in places.split(" "))
    slots = [{"id": f"{place}:choose:", "stage": "choose"} for place in choices]
    slots += [{"id": f"{p}:chosen:", "stage": "chosen", "clique": [*e]} for p, e in zip(chosen, edges, strict=False)]
    assert _last_candidates(slots, domain) == {tuple(r) for r in rivals or ()}
    slots = [*({"id": f"000{i}:{n}", "stage": "given"} for i, n in enumerate("abcd")), *slots]
    said = _wrong_choices([{"mechanism": "exponential", "answered": True, **e} for e in slots], domain, 0.1)
    assert ("last choice of a tree" in said) is (len(rivals or ()) > 1)


@pytest.mark.parametrize("name", ["pairs", "mwem"])
def test_no_receipt_and_no_list_of_answers_says_more_than_a_run_writes(release_of, tmp_path, name):
    """Exact counts beside a charge, or beside an answer, were called sound."""
    release, work = release_of(name), tmp_path / "work"
    said, index = read(release)
    assert verify(release).sound
    for which, holder in (("privacy", "events"), ("index", "answers"), ("index", None)):
        now = json.loads(json.dumps({"privacy": said, "index": index}))
        (now[which] if holder is None else now[which][holder][0])["exact"] = [1, 2, 3]
        fresh(release, work)
        forged(work, now["privacy"], now["index"])
        assert not verify(work).sound, (which, holder)


def test_the_level_of_distances_and_estimates_follow_whatever_is_said_of_libraries(release_of, tmp_path):
    """`below` was called sound at ± 10 %, and any estimate beside another version of a library."""
    release, work = release_of("auto"), tmp_path / "work"
    said, index = read(release)
    for factor, libraries in ((0.9, {}), (1.1, {}), (1, {"numpy": "9.9"})):
        fresh(release, work)
        now = {**index, "distances": {**index["distances"], "below": index["distances"]["below"] * factor}}
        if libraries:
            path = work / "marginals" / "0000_age.csv"
            table = pd.read_csv(path)
            table.assign(consistent=table["consistent"] + 5).to_csv(path, index=False, lineterminator="\n")
        forged(work, {**said, "versions": said["versions"] | libraries}, now)
        found = {c.name: c.finding for c in verify(work).checks if c.holds is False}
        expected = ("tables", "consistent does not follow") if libraries else ("terms", "distances.below")
        assert [*found] == [expected[0]] and expected[1] in found[expected[0]], found


def test_a_column_of_one_code_whose_answer_moves_less_changes_no_level(town):
    edit(town / "town.yaml", "columns:", "columns:\n  note: {kind: categorical, values: [x], missing: false}")
    edit(town / "town.yaml", "leave_out: [note]", "")
    assert command("run", *TOWN, "privacy.neighbouring=replace", "evaluation.enabled=false", "hydra.run.dir=out") == 0
    assert verify(town / "out" / "release").sound


def test_the_level_follows_where_every_column_has_one_code(tmp_path):
    columns = {n: {"kind": "categorical", "values": [n], "missing": False} for n in "ab"}
    schema = {"columns": columns, "confirmed_public": True, "source": "a form"}
    rows, replace = pd.DataFrame({n: [n] * 30 for n in "ab"}), {"neighbouring": "replace"}
    fit(rows, schema, quiet=True, folder=tmp_path / "out", privacy=replace, **{"evaluation.enabled": False})
    assert verify(tmp_path / "out" / "release").sound


def test_what_the_run_alone_tells_is_said_by_verify_and_by_the_docs(release_of):
    lines = verify(release_of("pairs")).as_text().splitlines()
    assert f"  --  told         by the run alone: {', '.join(FROM_RUN)}" in lines
    (row,) = [r for r in Path("docs/statement.md").read_text(encoding="utf-8").splitlines() if r.startswith("| `told`")]
    assert tuple(re.findall(r"`([\w.]+)`", row.partition("alone: ")[2].partition(". ")[0])) == FROM_RUN


def test_a_seed_that_the_papers_hide_is_among_what_the_run_alone_tells(tmp_path):
    done_once(tmp_path, "run", *FAST, "selection=oneway", "privacy.noise_seed=5", "hydra.run.dir=out")
    release = tmp_path / "out" / "release"
    said, index = read(release)
    forged(release, {**said, "private": True, "reasons_not_private": [], "noise_source": "system"}, index)
    assert verify(release).sound and "noise_source" in FROM_RUN


@pytest.mark.parametrize("at_most", ["0.2", "1"])
def test_what_may_stop_a_run_cannot_be_taken_out_of_the_papers(tmp_path, at_most):
    stops = ["privacy.unit=person", "privacy.max_records=200", "privacy.clip=none", "privacy.missing_unit=refuse"]
    done_once(tmp_path, "run", *FAST, *stops, f"data.max_unplaced={at_most}", "hydra.run.dir=out")
    release = tmp_path / "out" / "release"
    said, index = read(release)
    assert verify(release).sound and len(said["outside"]) == 3
    for kept in [[], *([s for s in said["outside"] if s != gone] for gone in said["outside"])]:
        work = fresh(release, tmp_path / "work")
        forged(work, {**said, "outside": kept}, index)
        assert not verify(work).sound, kept


@pytest.mark.slow
@pytest.mark.parametrize("name", RELEASES)
def test_every_small_forgery_of_the_other_papers_is_refused_but_of_words_that_promise_nothing(
    release_of, tmp_path, name
):
    """Those of the statement and of the answers are refused by fewer checks, each of them, in a test above."""
    assert verify(release_of(name)).sound
    papers = ("manifest", "schema", "croissant", "deployment")
    assert unexpected(called_sound(release_of(name), tmp_path / "work", every=1, of=papers)) == []


def edited(name, old, new):

    def change(release):
        text = (release / name).read_text(encoding="utf-8")
        assert re.search(old, text)
        (release / name).write_text(re.sub(old, new, text, count=1), encoding="utf-8")

    return change


def with_file(name):
    return lambda release: (release / name).write_text("age,count\n34,12\n", encoding="utf-8")


def answered(name, make):
    """An array of the answers is another, or one more."""

    def change(release):
        path = release / "measurements" / "answers.npz"
        with np.load(path) as arrays:
            held = {k: arrays[k] for k in arrays.files}
        np.savez(path, **{**held, name: make(held["0.values"])})

    return change


SEX = "marginals/0001_sex.csv"
TABLES = "NO  tables       "
OFF = TABLES + "age: answers that are not on"
CHANGES = {
    "a file more": (with_file("raw.csv"), TABLES + "no run writes raw.csv"),
    "a marginal more": (with_file("marginals/0009_exact.csv"), TABLES + "no run writes marginals/0009_exact.csv"),
    "a folder more": (lambda r: (r / "exact_600").mkdir(), TABLES + "no run writes exact_600"),
    "no marginals": (lambda r: shutil.rmtree(r / "marginals"), TABLES + "every run writes marginals"),
    "exact marginal": (edited(SEX, r"\nf,[^,]+", "\nf,240"), f"{TABLES}{SEX} does not say what was measured"),
    "other consistent counts": (
        edited(SEX, r"\nf,([^,]+),([^,]+),[^,]+", r"\nf,\1,\2,240"),
        f"{TABLES}{SEX}: consistent does not follow",
    ),
    "less noise in the list": (
        edited("marginals/index.csv", r"[0-9]+[.][0-9]+", "0.001"),
        f"{TABLES}marginals/index.csv does not say what was measured",
    ),
    "an array more": (answered("exact", lambda v: v), TABLES + "answers.npz holds arrays of no answer: exact"),
    "answers beyond the range": (answered("0.values", lambda v: 0 * v + 1e300), OFF),
    "answers off the lattice": (answered("0.values", lambda v: v + 1e-9), OFF),
    "a remark in the schema": (edited("schema.yaml", "^", "# epsilon: 0.001\n"), TABLES + "schema.yaml holds words"),
    "a table of others": (with_file("synthetic.csv"), TABLES + "synthetic.csv has the columns age, count"),
}


@pytest.fixture
def release(one_run, folder):
    return shutil.copytree(one_run / "release", folder / "release")


@pytest.mark.parametrize("name", CHANGES)
def test_a_file_that_contradicts_the_measurements_is_found_though_all_papers_were_made_anew(release, name):
    change, line = CHANGES[name]
    change(release)
    forged(release, *read(release))
    verdict = verify(release)
    assert not verdict.sound
    assert line in verdict.as_text()


@pytest.mark.parametrize("name", ["privacy.json", "measurements/index.json"])
def test_a_key_that_stands_there_twice_is_refused(release, name):
    edited(name, "{", '{"public_total": 600, "budget": {"epsilon": 0.001, "delta": 0}, "public_total": 600,')(release)
    rebound(release)
    with pytest.raises(Exception, match=f"{name} is damaged"):
        verify(release)
