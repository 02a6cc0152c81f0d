"""Releases whose own papers contradict each other: `verify` calls none of them sound, and honest ones are."""

import json
import shutil
import struct
import zipfile

import numpy as np
import pytest

from mechanisms.accounting.accountants.registered import accountant_class
from mechanisms.accounting.currencies import gaussian_mu
from mechanisms.accounting.events import booked_event
from mechanisms.accounting.restatements import Composition
from mechanisms.public.schema.table_schema import load_schema
from pipeline.statement.papers import write_papers
from pipeline.statement.verify import verify
from tests.pipeline.conftest import TOWN, command, done_once, edit, rebound, reply

FAST = ["evaluation.enabled=false", "synthesis=independent"]
TRIES = ["accept=[{metric: l1, marginals: 1, at_most: 10000}]", "accept_tries=3"]
UNITS = ["privacy.unit=person", "privacy.max_records=4"]
LEFT = "selection.combine_cells=0"
BASIC = ["privacy.accountant=basic", "mechanism=gaussian"]


@pytest.fixture(scope="module")
def made_once(tmp_path_factory):
    """A release of several tries, chosen by noisy distances; and one of pairs, whose units have up to four records."""
    folder = tmp_path_factory.mktemp("made")
    done_once(folder, "run", *TOWN, *FAST, *TRIES, "selection=auto", LEFT, "hydra.run.dir=tries")
    done_once(folder, "run", *TOWN, *FAST, "selection=auto", LEFT, "hydra.run.dir=reserve")
    done_once(folder, "run", *TOWN, *FAST, *UNITS, "selection=pairs", "hydra.run.dir=pairs")
    done_once(folder, "run", *TOWN, *FAST, "selection=oneway", *BASIC, "hydra.run.dir=basic")
    return folder


@pytest.fixture
def copied(made_once, folder):
    for name in ("tries", "reserve", "pairs", "basic"):
        shutil.copytree(made_once / name / "release", folder / name)
    return folder


def read(release):
    return [json.loads((release / n).read_text(encoding="utf-8")) for n in ("privacy.json", "measurements/index.json")]


def forged(release, said, index):
    """A careful forger's work: all papers made anew from changed numbers."""
    schema = load_schema(release / "schema.yaml")
    (release / "privacy.json").write_text(json.dumps(said), encoding="utf-8")
    (release / "measurements" / "index.json").write_text(json.dumps(index), encoding="utf-8")
    for name in ("statement.html", "deployment.yaml", "croissant.json", "manifest.json"):
        (release / name).unlink()
    write_papers(release, said, schema, table="synthetic.csv", rows_asked=None, signer=None)


def scored(said):
    return next(e for e in said["events"] if e.get("scores"))


def far(said):
    return next(e for e in said["events"] if "distances" in e["id"])


def accepted(said):
    return next(e for e in said["events"] if e.get("accept"))


def _answer_paid_by(find):
    """An answer whose charge has paid for scores already: its own receipt is gone."""

    def change(said, index):
        answer, paid = index["answers"][-1], find(said)
        said["events"] = [e for e in said["events"] if e["id"] != answer["event"]]
        answer |= {"event": paid["id"], "scale": paid["scale"], "noise": paid["mechanism"]}

    return change


def _paid_as_another_marginal(said, index):
    first, second = (next(e for e in said["events"] if e["id"] == a["event"]) for a in index["answers"][:2])
    first["clique"], second["clique"] = second["clique"], first["clique"]


def _booked_under_a_word_of_choices(said, index):
    """An ε that no noise has stands beside the numbers, and hides that what is booked moves less."""
    event = said["events"][0]
    event["booked"] = {"mechanism": event["mechanism"], "sensitivity": event["sensitivity"] / 50, "epsilon": 1.0}
    event["epsilon"] = 1.0


def _booked_for_less(said, index):
    """The noise is a hundredth of what is booked."""
    event, answer = said["events"][0], index["answers"][0]
    event["booked"] = {k: event[k] for k in ("mechanism", "sensitivity", "scale")}
    event["scale"] = answer["scale"] = event["scale"] / 100


def _paid_once_for_two(said, index):
    index["answers"][1]["event"], index["answers"][1]["scale"] = (index["answers"][0][k] for k in ("event", "scale"))


def _left_out(said, index):
    """The last charge and its answer were never there; the budget stays."""
    last = index["answers"].pop()["event"]
    said["events"] = [e for e in said["events"] if e["id"] != last]


def _cheap_answers(said, index):
    """All costs are as they were, with a tenth of the noise."""
    for numbers in (*said["events"], *index["answers"]):
        numbers["scale"] /= 10
        numbers |= {"sensitivity": numbers["sensitivity"] / 10} if "sensitivity" in numbers else {}


def _foreign_query_beside_cheap_answers(said, index):
    """One query is nobody's."""
    index["answers"][-1]["query"] = "Foreign"
    said["not_ours"] = [{"kind": "query", "name": "Foreign", "module": "foreign", "audited": False}]
    _cheap_answers(said, index)


def _distances_nobody_paid(said, index):
    index["distances"]["event"] = said["events"][0]["id"]


def _more_distances(said, index):
    """A charge for one distance is said to be one for four, which move twice as far."""
    paid = far(said)
    paid |= {"id": paid["id"].replace("distances-1", "distances-4"), "scores": 4}


def _no_threshold(said, index):
    """The best of several costs three times a try; the first accepted is said to cost twice."""
    accepted(said)["accept"]["at_most"] = None


def _stopped_at(share):
    """A stop that no run has stood in the statement, and on its page."""
    return lambda said, index: said["outside"][-1].update(max_unplaced=share)


def _original_of_tries(said, index):
    promise = said["guarantee"]
    said["original"] = {"mu": gaussian_mu(promise["epsilon"], promise["delta"])}


@pytest.mark.parametrize(
    ("name", "change", "line"),
    [
        ("tries", _answer_paid_by(scored), "was paid for by a charge that paid for scores"),
        ("tries", _answer_paid_by(accepted), "was paid for by a charge that paid for scores"),
        ("pairs", _paid_as_another_marginal, "is not what its receipt was paid for"),
        ("pairs", lambda said, index: said["events"][0].update(answered=False), "is not what its receipt was paid for"),
        ("pairs", _booked_under_a_word_of_choices, "was booked as something that costs less"),
        ("pairs", _booked_for_less, "was booked as something that costs less"),
        ("pairs", _left_out, "charges are left out of a plan that makes all of them"),
        ("pairs", _paid_once_for_two, "was paid for by a charge that paid for another answer"),
        ("pairs", _cheap_answers, "moves by 4 when one unit changes, not by 0.4"),
        ("pairs", lambda said, index: said.update(neighbouring="replace"), "moves by 5.65685 when one unit changes"),
        ("pairs", lambda said, index: said.update(noise_source="fixed_seed"), "NO  private      "),
        *(("pairs", _stopped_at(share), "NO  ") for share in (-1, 1.5, True)),
        ("pairs", _foreign_query_beside_cheap_answers, "moves by 4 when one unit changes, not by 0.4"),
        ("pairs", lambda said, index: index.update(public_total=600), "the number of records is there without noise"),
        ("basic", lambda said, index: said["group_privacy"][1].update(delta=1e-12), "a group of 5 has δ ="),
        ("tries", _original_of_tries, "of several tries (ε, δ) alone is known"),
        ("tries", lambda said, index: said["selection"]["total"].update(epsilon=0.1), "all tries are said to cost"),
        ("tries", lambda said, index: said["selection"].update(tries_expected_at_most=3.9), "got 3.9"),
        ("reserve", lambda said, index: index["distances"].update(scale=1.0), "other noise than their receipt"),
        ("reserve", lambda said, index: index["distances"].update(answers=2), "a model of other answers"),
        ("reserve", _distances_nobody_paid, "distances from independence were never paid for"),
        ("reserve", _more_distances, "moves by 2"),
        ("reserve", lambda said, index: far(said).update(scores=4), "does not stand where a plan would have it"),
        *(
            (
                "tries",
                lambda said, index, noisy=noisy: accepted(said).update(noisy=noisy),
                f"its noisy score is {noisy}",
            )
            for noisy in (10_001.0, None)
        ),
        ("tries", _no_threshold, "which its thresholds do not say"),
    ],
)
def test_a_release_that_its_own_receipts_contradict_is_not_sound(copied, capsys, name, change, line):
    said, index = read(copied / name)
    change(said, index)
    forged(copied / name, said, index)
    verdict = reply(capsys, "verify", name, code=1).out
    assert line in verdict
    assert verdict.count("  NO  ") <= 3, "all papers agree with the forged numbers"


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (lambda said: said.pop("guarantee"), "NO  promise      was lost"),
        (lambda said: said["unit"].update(max_records=4.9), "got 4.9 where a whole number stands"),
        (lambda said: said["published"].update(region=[None]), "NO  page         cannot be read"),
    ],
)
def test_a_statement_of_which_no_paper_can_be_written_is_not_sound(copied, capsys, change, line):
    said, _ = read(copied / "basic")
    change(said)
    (copied / "basic" / "privacy.json").write_text(json.dumps(said), encoding="utf-8")
    rebound(copied / "basic")
    assert line in reply(capsys, "verify", "basic", code=1).out


def test_another_marginal_in_the_place_of_the_records_per_unit_is_found(copied, capsys):
    """Its cells move by C, those of the records per unit by 1."""
    release = copied / "pairs"
    said, index = read(release)
    index["histogram"] = index["answers"].pop()
    place, answers = len(index["answers"]), release / "measurements" / "answers.npz"
    arrays = {k.replace(f"{place}.", "histogram.", 1): v for k, v in np.load(answers).items()}
    np.savez(answers, **arrays)
    receipt = next(e for e in said["events"] if e["id"] == index["histogram"]["event"])
    receipt["sensitivity"] /= 4
    receipt["scale"] /= 4
    index["histogram"]["scale"] = receipt["scale"]
    forged(release, said, index)
    assert "is nothing that the schema asks about persons" in reply(capsys, "verify", str(release), code=1).out


def test_what_was_charged_of_a_reserve_is_no_promise(copied, capsys):
    """Everything is stated from a part of the charges, as if the rest could not have been spent."""
    said, index = read(copied / "reserve")
    while _cut_down(said, budget=False) > 0.99 * said["budget"]["epsilon"]:
        last = index["answers"].pop()["event"]
        assert last.startswith("purse:")
        said["events"] = [e for e in said["events"] if e["id"] != last]
    forged(copied / "reserve", said, index)
    verdict = reply(capsys, "verify", "reserve", code=1).out
    assert "ok  receipts" in verdict and "ok  page" in verdict
    assert "NO  promise" in verdict and "a plan reserves all of it" in verdict


def _cut_down(said, budget):
    """All that is stated follows from the charges alone, as if nothing else had been reserved."""
    events, keeper = [booked_event(r) for r in said["events"]], accountant_class("gdp").of(said["budget"]["delta"], 0)
    loss, charged = keeper.loss(events), Composition(keeper, events)
    said["spent"] = said["guarantee"] = {"epsilon": loss.epsilon, "delta": loss.delta}
    said["original"] = charged.original
    said["epsilon_at"] = {at: charged.epsilon_at(float(at)) for at in said["epsilon_at"]}
    said["curve"] = [[at, charged.epsilon_at(at)] for at, _ in said["curve"]]
    for group in said["group_privacy"]:
        group["epsilon"] = charged.of_group(group["units"]).epsilon
    if budget:
        said["budget"]["epsilon"] = loss.epsilon
    return loss.epsilon


@pytest.mark.parametrize("method", ["mst", "adagrid", "mwem"])
def test_slots_that_were_reserved_and_not_charged_are_promised(town, capsys, method):
    """A choice that found nothing, or was not reached: whether it was charged may depend on answers."""
    assert command("run", *TOWN, *FAST, f"selection={method}", "hydra.run.dir=out") == 0
    release = town / "out" / "release"
    assert command("verify", str(release)) == 0
    said, index = read(release)
    lost = said["events"].pop()["id"]
    index["answers"] = [a for a in index["answers"] if a["event"] != lost]
    assert _cut_down(said, budget=False) < 0.95
    forged(release, said, index)
    assert "a plan reserves all of it, charged or not" in reply(capsys, "verify", str(release), code=1).out
    _cut_down(said, budget=True)
    forged(release, said, index)
    assert "of the budget, and its receipt says" in reply(capsys, "verify", str(release), code=1).out


def test_parts_of_a_reserve_stand_in_the_order_in_which_they_were_bought(town, capsys):
    assert command("run", *TOWN, *FAST, "selection=aim", "hydra.run.dir=out") == 0
    said, index = read(town / "out" / "release")
    first, second = (i for i, e in enumerate(said["events"]) if e["id"] in ("purse:0000:choose", "purse:0001:choose"))
    said["events"][first], said["events"][second] = said["events"][second], said["events"][first]
    forged(town / "out" / "release", said, index)
    assert "does not stand where a plan would have it" in reply(capsys, "verify", "out/release", code=1).out


@pytest.mark.parametrize(
    "settings",
    [
        ["selection=mwem", *TRIES],
        ["selection=groups", "privacy.epsilon=1e-4", "privacy.delta=0.5"],
        ["selection=oneway", "privacy.epsilon=1e-5", "privacy.delta=0.9"],
    ],
    ids=["δ of groups, tries and slots that were not used", "a small ε of a large δ", "the smallest of the largest"],
)
def test_figures_that_magnify_rounding_contradict_no_honest_release(town, settings):
    assert command("run", *TOWN, *FAST, *settings, "hydra.run.dir=out") == 0
    assert command("verify", "out/release") == 0


@pytest.mark.parametrize("where", ["privacy.json", "manifest.json", "both"])
def test_a_release_that_names_another_version_is_not_called_sound(copied, capsys, where):
    """Its papers cannot be made again; what does not depend on the version is compared all the same."""
    release = copied / "pairs"
    said, index = read(release)
    if where != "manifest.json":
        said["versions"]["pipeline"] = "9.1"
    forged(release, said, index)
    if where != "privacy.json":
        manifest = json.loads((release / "manifest.json").read_text(encoding="utf-8"))
        (release / "manifest.json").write_text(json.dumps(manifest | {"pipeline": "9.1"}), encoding="utf-8")
    verdict = reply(capsys, "verify", str(release), code=2).out
    assert verdict.splitlines()[-1].startswith("NOT compared: made by version 9.1; install it")
    assert "--  page         not compared: made by version 9.1" in verdict and "NO" not in verdict.replace("NOT c", "")
    said["guarantee"]["epsilon"] /= 2
    forged(release, said, index)
    assert "NO  promise" in reply(capsys, "verify", str(release), code=1).out


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("statement.html", "2.72 times", "1.02 times"),
        ("deployment.yaml", "epsilon: 0.99", "epsilon: 0.09"),
        ("croissant.json", "with ε = 1", "with ε = 0.1"),
        ("croissant.json", "A synthetic table of", "ε = 0.001. A synthetic table of"),
        ("croissant.json", '"sha256": "', '"sha256": "zzzz'),
        ("croissant.json", "{", '{"rai:dataLimitations": "ε = 0.001",'),
    ],
)
def test_a_paper_that_promises_more_is_found_and_a_lost_one_too(copied, capsys, name, old, new):
    paper = copied / "pairs" / name
    edit(paper, old, new)
    rebound(copied / "pairs")
    assert command("verify", "pairs") == 1
    assert f"NO  page         {name} does not say what privacy.json says" in capsys.readouterr().out
    paper.unlink()
    rebound(copied / "pairs")
    assert "NO  page         cannot be read" in reply(capsys, "verify", "pairs", code=1).out


def test_the_honest_ones_are_sound(copied, capsys):
    for name in ("tries", "reserve", "pairs", "basic"):
        assert command("verify", name) == 0, capsys.readouterr().out
    assert "every noisy score is within its threshold" in capsys.readouterr().out


@pytest.mark.parametrize("selection", [["selection=pairs"], ["selection=mwem", "selection.k=[2]"]])
def test_shares_of_laplace_noise_under_gdp_are_told_by_epsilon(town, capsys, selection):
    """A plan shares out ε² of such noise, and μ² adds up: the two are not in proportion."""
    laplace = ["mechanism=laplace", "privacy.accountant=gdp", "privacy.epsilon=3"]
    assert command("run", *TOWN, *FAST, *selection, *laplace, "hydra.run.dir=out") == 0
    release = town / "out" / "release"
    assert command("verify", str(release)) == 0, capsys.readouterr().out
    said, index = read(release)
    one, other = said["events"][0], said["events"][-1]
    one["share"], other["share"] = one["share"] * 1.01, other["share"] - one["share"] * 0.01
    forged(release, said, index)
    assert "of the budget, and its receipt says" in reply(capsys, "verify", str(release), code=1).out


@pytest.fixture(scope="module")
def booked(tmp_path_factory):
    """Two releases that booked in one ledger; the second one's says what both cost."""
    folder = tmp_path_factory.mktemp("booked")
    ledger = ["budget.ledger=people.json", "budget.limit={epsilon: 50, delta: 1e-3}"]
    for name in ("a", "b"):
        done = [*TOWN, *FAST, "selection=oneway", *ledger, "privacy.delta=1e-6", f"hydra.run.dir={name}"]
        done_once(folder, "run", *done)
    return folder / "b" / "release"


LESS_THAN_BOOKED = [
    *({"epsilon_composed": epsilon} for epsilon in (0, 0.4, False, -1.0)),
    {"limit": {"epsilon": 1.5, "delta": 1e-3}, "epsilon_composed": None},
    *({"runs": runs} for runs in (-1, 0, None, 2.5)),
    *({"not_private": runs} for runs in (-1, 3, None)),
]


@pytest.mark.parametrize("change", LESS_THAN_BOOKED, ids=str)
def test_a_ledgers_running_total_that_cannot_be_is_not_sound(booked, tmp_path, change):
    shutil.copytree(booked, tmp_path / "r")
    said, index = read(tmp_path / "r")
    total = said["running_total"]
    assert verify(booked).sound and total["runs"] == 2 and total["epsilon_composed"] > 0.8
    said["running_total"] |= change
    if said["running_total"]["limit"]["epsilon"] < 50:
        said["running_total"]["delta_composed"] = 0.5 * said["running_total"]["limit"]["delta"]
    forged(tmp_path / "r", said, index)
    assert not verify(tmp_path / "r").sound


@pytest.mark.some(3)
@pytest.mark.parametrize("kind", ["gdp", "zcdp", "basic"])
def test_honest_running_totals_of_every_ledger_are_sound(tmp_path, kind):
    ledger = ["budget.ledger=people.json", f"budget.accountant={kind}", "budget.limit={epsilon: 6, delta: 1e-4}"]
    for name, own, more in (("a", "zcdp", []), ("b", "zcdp", TRIES), ("c", "basic", []), ("d", "advanced", [])):
        accountant = [f"privacy.accountant={own}", "privacy.delta=1e-6", f"hydra.run.dir={name}"]
        done_once(tmp_path, "run", *TOWN, *FAST, "selection=oneway", *ledger, *accountant, *more)
        verdict = verify(tmp_path / name / "release")
        assert verdict.sound, verdict.as_text()


def _noted(path):
    with zipfile.ZipFile(path, "a") as arrays:
        arrays.comment = b"rows: 600"


def _said_twice(path):
    with zipfile.ZipFile(path, "a") as arrays, pytest.warns(UserWarning, match="Duplicate"):
        arrays.writestr("0.values.npy", arrays.read("0.values.npy"))


def _between(path):
    """Bytes before the list of members, to which no member leads: members behind them would be found as before."""
    content, mark = path.read_bytes(), b"600 rows"
    with zipfile.ZipFile(path) as arrays:
        place = arrays.start_dir
    end = bytearray(content[place:])
    end[-6:-2] = struct.pack("<I", place + len(mark))
    path.write_bytes(content[:place] + mark + bytes(end))


@pytest.mark.parametrize("change", [_noted, _said_twice, _between])
def test_arrays_with_more_than_a_run_writes_are_not_sound(copied, change):
    said, index = read(copied / "pairs")
    change(copied / "pairs" / "measurements" / "answers.npz")
    forged(copied / "pairs", said, index)
    with np.load(copied / "pairs" / "measurements" / "answers.npz") as arrays:
        assert arrays["0.values"].size
    assert not verify(copied / "pairs").sound
