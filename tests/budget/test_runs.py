"""Runs, sweeps, experiments and plans that share a budget, as a user starts them."""

import json
import re
import shutil
import signal
from pathlib import Path

import pytest

from mechanisms.accounting.bookings import Book, load_book
from mechanisms.accounting.events import Event
from mechanisms.accounting.ledger import NONE, Ledger, marks_of
from mechanisms.public.errors import UserError
from mechanisms.sensitive.measurement import MarginalQuestion
from pipeline.budget import admission
from pipeline.budget.admission import check
from pipeline.experiment_run import planned_releases
from pipeline.settings.config import load_config
from pipeline.sweeps import planned_jobs
from tests.budget.book_worker import said_by
from tests.pipeline.conftest import (
    SCHEMA,
    TOWN,
    command,
    done_once,
    keep,
    people,
    put_back,
    reply,
    statement_of,
    town,
    worded,
)

__all__ = ["town"]  # the fixture
FAST = [*TOWN, "selection=oneway", "synthesis=independent", "evaluation.enabled=false"]
LIMIT = "budget.limit={epsilon: 3, delta: 1e-6}"
BASIC = ["budget.ledger=people.json", LIMIT, "budget.accountant=basic"]  # plain sums alone: figures at a glance


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The town with a run "a" that booked ε = 2."""
    (place := tmp_path_factory.mktemp("begun") / "town").mkdir()
    return keep(done_once(place, "run", *FAST, "hydra.run.dir=a", *BASIC, "privacy.epsilon=2"))


@pytest.fixture
def spent(begun: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return put_back(begun, monkeypatch)


def asked(root: str, *settings: str) -> list[str]:
    return ["run", *FAST, f"hydra.run.dir={root}", *BASIC, *settings]


def run(root: str, *settings: str) -> int:
    return command(*asked(root, *settings))


def book() -> Book:
    return load_book(Path("people.json"))


def epsilons() -> list[float]:
    return [b.spend.epsilon for b in book().bookings]


def test_runs_add_up_and_the_one_that_does_not_fit_leaves_nothing(spent, capsys):
    said = reply(capsys, *asked("b", "privacy.epsilon=1.5"), code=1).err
    assert "Nothing was booked" in said
    assert "ε = 1, δ = 4.99e-07" in said  # what is left
    assert not (spent / "b" / "release").exists()
    assert not (spent / "b" / "internal").exists()
    assert epsilons() == [2]
    assert "a privacy.epsilon within what is left; or a higher limit" in said
    booked = "  budget    as booked: 2 runs that named this ledger (declared table: 'table'), booked ε = 3, "
    assert booked in reply(capsys, *asked("b", "privacy.epsilon=1")).out
    assert epsilons() == [2, 1]
    told = [statement_of(spent / r)["running_total"] for r in ("a", "b")]
    assert [(t["runs"], t["epsilon_sum"]) for t in told] == [(1, 2), (2, 3)]


def test_a_mistyped_name_is_told_as_a_new_ledger(town, capsys):
    said = reply(capsys, *asked("a", "privacy.epsilon=2"))
    assert "budget.ledger=people.json is a NEW ledger for 'table'" in said.err
    assert "NEW ledger" not in reply(capsys, *asked("b", "privacy.epsilon=0.5")).err
    said = reply(capsys, *asked("c", "privacy.epsilon=2", "budget.ledger=poeple.json"))
    assert "budget.ledger=poeple.json is a NEW ledger" in said.err
    told = [worded(town / r / "release")["running_total"] for r in "abc"]
    assert ["the first in this ledger" in t for t in told] == [True, False, True]


def test_the_epsilon_that_is_said_to_be_left_fits_and_hardly_more_would(town, capsys):
    settings = [*FAST, "budget.ledger=people.json", LIMIT, "budget.accountant=gdp", "privacy.accountant=gdp"]
    assert command("run", *settings, "hydra.run.dir=a", "privacy.epsilon=2.5") == 0
    assert command("run", *settings, "hydra.run.dir=b", "privacy.epsilon=50") == 1
    (left,) = map(float, re.findall(r"\(ε = (\S+) at δ", capsys.readouterr().err))
    assert "does NOT fit" in reply(capsys, "plan", *settings, f"privacy.epsilon={left * 1.02}").out
    assert command("run", *settings, "hydra.run.dir=c", f"privacy.epsilon={left * 0.999}") == 0


def test_a_resumed_run_books_nothing_again_even_after_the_limit_was_changed(spent, capsys):
    assert command("run", *FAST, "hydra.run.dir=a", "privacy.epsilon=2", "resume=true") == 1
    assert "settings.budget.ledger" in capsys.readouterr().err, "nor does it go on without its ledger"
    before = Path("people.json").read_bytes()
    assert run("a", "privacy.epsilon=2", "resume=true") == 0
    assert Path("people.json").read_bytes() == before
    assert command("budget", "people.json", "limit={epsilon: 1, delta: 1e-6}", "reason=too much, by 5:3 votes") == 0
    assert book().limits[-1].reason == "too much, by 5:3 votes"
    rest = ["budget.ledger=people.json", "privacy.epsilon=2"]
    assert command("run", *FAST, "hydra.run.dir=a", *rest, "budget.accountant=basic", "resume=true") == 0
    assert epsilons() == [2]


def test_a_measured_run_whose_booking_is_gone_goes_no_further(spent, capsys):
    Path("people.json").unlink()
    assert "holds no booking of it" in reply(capsys, *asked("a", "privacy.epsilon=2", "resume=true"), code=1).err
    assert run("b", "privacy.epsilon=2") == 0
    assert run("a", "privacy.epsilon=2", "resume=true") == 1  # a new file of that name is not the one it booked in


def test_a_copy_of_a_run_does_not_draw_on_its_booking(spent, capsys):
    shutil.rmtree("a/release")
    shutil.copytree("a", "b")
    for path in [Path("b/internal/ledger.jsonl"), *Path("b/internal/answers").iterdir()]:
        path.unlink()  # as copied right after its booking
    assert "is a copy of the run in" in reply(capsys, *asked("b", "privacy.epsilon=2", "resume=true"), code=1).err
    assert not Path("b/release").exists()
    assert run("a", "privacy.epsilon=2", "resume=true") == 0
    Path("a").rename("c")
    assert run("c", "privacy.epsilon=2", "resume=true") == 0, "a folder may move"


@pytest.mark.parametrize("resume", [[], ["resume=true"]])
@pytest.mark.parametrize("epsilon", [2, 1])
def test_a_copy_is_called_a_copy_before_all_else_whatever_its_settings(spent, capsys, resume, epsilon):
    shutil.copytree("a", "b")
    said = reply(capsys, *asked("b", f"privacy.epsilon={epsilon}", *resume), code=1).err
    assert said.splitlines()[0].startswith(f"error: hydra.run.dir: {spent / 'b'} is a copy of the run in ")
    assert f"hydra.run.dir={spent / 'a'} resume=true" in said and "no further cost" not in said


def test_a_run_that_is_resumed_at_another_cost_names_the_settings_and_the_way_out(spent, capsys):
    before = Path("people.json").read_bytes()
    said = reply(capsys, *asked("a", "privacy.epsilon=0.5", "evaluation.enabled=false", "resume=true"), code=1).err
    assert said.splitlines()[0].startswith(f"error: hydra.run.dir: the run in {spent / 'a'} booked another cost; ")
    assert "changed since it began: privacy.epsilon (was 2.0, is 0.5)." in said
    assert "the old values with resume=true" in said and "another hydra.run.dir" in said and "older copy" not in said
    assert Path("people.json").read_bytes() == before
    assert run("b", "privacy.epsilon=0.5") == 0, "the way out"
    assert run("a", "privacy.epsilon=2", "resume=true") == 0, "and the other one"


GONE = ["release", "internal/answers", "internal/ledger.jsonl"]


def tidied(root: str, *parts: str) -> None:
    for part in parts:
        path = Path(root, part)
        shutil.rmtree(path) if path.is_dir() else path.unlink()


def test_a_run_that_was_tidied_away_books_again_before_it_draws_again(spent, capsys):
    first = Path("a/release/measurements/answers.npz").read_bytes()
    tidied("a", *GONE)
    assert "more than the ledger has left" in reply(capsys, *asked("a", "privacy.epsilon=2"), code=1).err
    assert command("budget", "people.json", "limit={epsilon: 5, delta: 1e-6}", "reason=a vote") == 0
    assert command("run", *FAST, "hydra.run.dir=a", "budget.ledger=people.json", "privacy.epsilon=2") == 0
    assert epsilons() == [2, 2] and all(b.charged.charges for b in book().bookings)
    assert Path("a/release/measurements/answers.npz").read_bytes() != first
    assert "2 runs that named this ledger (declared table: 'table')" in worded(Path("a/release"))["running_total"]


@pytest.mark.parametrize(
    "parts", [GONE, GONE[1:], GONE[2:], GONE[::2]], ids=["all", "kept out", "ledger", "answers kept"]
)
def test_a_run_whose_record_of_its_charges_is_gone_is_not_resumed(spent, capsys, parts):
    tidied("a", *parts)
    said = reply(capsys, *asked("a", "privacy.epsilon=2", "resume=true"), code=1).err
    assert "was measured, but its record of that (internal/ledger.jsonl) is gone" in said and "another folder" in said
    assert epsilons() == [2]


def test_each_charge_is_noted_after_it_is_in_the_run_s_own_ledger_and_before_its_noise_is_drawn(town, monkeypatch):
    seen = []
    append, draw = Ledger._append, MarginalQuestion.draw

    def see(what: str) -> None:
        own = Path("a/internal/ledger.jsonl")
        seen.append((what, own.read_bytes().count(b'{"event"') if own.exists() else 0, book().bookings[0].charged))

    monkeypatch.setattr(
        Ledger, "_append", lambda self, r: (see("charge" if "event" in r else "plan"), append(self, r))[1]
    )
    monkeypatch.setattr(MarginalQuestion, "draw", lambda self, *a: (see("draw"), draw(self, *a))[1])
    assert run("a", "privacy.epsilon=2") == 0
    own = marks_of([Path("a/internal/ledger.jsonl")])
    assert seen == [
        ("plan", 0, own[0]),
        *(("charge", 0, own[0]), ("draw", 1, own[1])),
        *(("charge", 1, own[1]), ("draw", 2, own[2])),
        *(("charge", 2, own[2]), ("draw", 3, own[3])),
    ]


@pytest.mark.parametrize("charges", [0, 1])
def test_a_run_whose_record_was_cut_draws_nothing_anew_whatever_it_kept(spent, capsys, charges):
    """With no charge left it is one of before all of them, as a backup has it."""
    lines = Path("a/internal/ledger.jsonl").read_bytes().splitlines(keepends=True)
    Path("a/internal/ledger.jsonl").write_bytes(b"".join(lines[: 1 + charges]))
    for answer in sorted(Path("a/internal/answers").iterdir())[charges:]:
        answer.unlink()
    tidied("a", "release")
    assert "is gone, or older, or was cut" in reply(capsys, *asked("a", "privacy.epsilon=2", "resume=true"), code=1).err
    assert not Path("a/release").exists() and epsilons() == [2]
    Path("a/internal/manifest.json").unlink()  # whoever starts anew in the same folder pays anew
    assert "more than the ledger has left" in reply(capsys, *asked("a", "privacy.epsilon=2"), code=1).err


def stopped_after_one_draw(monkeypatch: pytest.MonkeyPatch, root: str, *settings: str) -> None:
    """A run that ends right before its second charge."""
    charge = Ledger.charge

    def once(self: Ledger, event: Event) -> None:
        if self.events:
            raise KeyboardInterrupt
        charge(self, event)

    with monkeypatch.context() as m:
        m.setattr(Ledger, "charge", once)
        assert run(root, *settings) != 0


def test_a_folder_copied_in_the_middle_draws_on_no_booking_on_which_the_first_one_went_on(town, monkeypatch, capsys):
    half = ("privacy.epsilon=2",)
    stopped_after_one_draw(monkeypatch, "a", *half)
    shutil.copytree("a", "b")
    shutil.copytree("a", "c")
    Path("a").rename("d")
    assert run("d", *half, "resume=true") == 0, "an honest one goes on, be it elsewhere"
    assert len(list(Path("d/internal/answers").iterdir())) == 3
    shutil.rmtree("d")
    assert "is gone, or older, or was cut" in reply(capsys, *asked("b", *half, "resume=true"), code=1).err
    assert not Path("b/release").exists() and epsilons() == [2]
    shutil.rmtree("b")
    assert run("c", *half, "resume=true") == 1


def test_of_two_processes_that_draw_on_one_booking_one_ends_before_it_draws(town, monkeypatch, capsys):
    """The folder of a run at work is moved away, a copy of it goes on in its place, and then so does the run."""
    half = ("privacy.epsilon=2",)
    stopped_after_one_draw(monkeypatch, "a", *half)
    charge, draws = Ledger.charge, []

    def copy_goes_first(self: Ledger, event: Event) -> None:
        if self.path.is_relative_to("b") or "b" in self.path.parts or draws:
            return charge(self, event)
        draws.append(event.id)
        shutil.copytree("a", "b")
        Path("a/internal/booking.json").rename("away")
        assert run("b", *half, "resume=true") == 0
        Path("away").rename("a/internal/booking.json")
        return charge(self, event)

    monkeypatch.setattr(Ledger, "charge", copy_goes_first)
    assert run("a", *half, "resume=true") == 1
    assert "another process draws on the booking of this run" in capsys.readouterr().err
    assert len(list(Path("a/internal/answers").iterdir())) == 1 and not Path("a/release").exists()


@pytest.mark.parametrize("tries", [[], ["accept=[{metric: l1, marginals: 1, at_most: 100000}]", "accept_tries=3"]])
def test_every_charge_of_discovery_of_tries_and_of_scores_is_noted(town, tries):
    (town / "open.yaml").write_text(SCHEMA.replace("values: [f, m]", "values: discover, other: x"), encoding="utf-8")
    schema = [] if tries else ["data.schema=open.yaml", "privacy.delta=1e-6", "budget.limit={epsilon: 3, delta: 1e-5}"]
    assert run("a", "privacy.epsilon=2", *schema, *tries) == 0
    own = sorted(Path("a/internal").glob("tries/*/ledger.jsonl")) or [Path("a/internal/ledger.jsonl")]
    marks = marks_of(own)
    assert book().bookings[0].charged == marks[-1] and marks[-1].charges > 2


def test_an_older_copy_of_the_ledger_is_refused_by_all_who_would_book_in_it(town, capsys):
    assert run("a", "privacy.epsilon=1") == 0
    old = Path("people.json").read_bytes()
    assert run("b", "privacy.epsilon=1") == 0
    newest = Path("people.json").read_bytes()
    Path("people.json").write_bytes(old)
    for tried in (lambda: run("c", "privacy.epsilon=2"), lambda: command("budget", "people.json")):
        assert tried() == 1
        said = capsys.readouterr().err
        older, last = json.loads(old)["bookings"], json.loads(newest)["bookings"]
        held = [1 + len(entries) + sum(b["charged"]["charges"] for b in entries) for entries in (older, last)]
        was = f"an older or another copy, of {held[0]} entries: it held {held[1]} when it was last written here"
        assert was in said and "the newest copy" in said
    assert not Path("c/internal").exists() and Path("people.json").read_bytes() == old
    Path("people.json").write_bytes(newest)
    assert run("c", "privacy.epsilon=1") == 0
    other = Path("people.json").read_text()
    Path(".people.json.lock").write_text(Path(".people.json.lock").read_text()[:-8] + "0000000\n")
    assert run("d", "privacy.epsilon=0.1") == 1
    assert "an older or another copy" in capsys.readouterr().err and Path("people.json").read_text() == other
    Path("people.json").unlink()
    assert "the one of this name before it is gone, with " in reply(capsys, *asked("d", "privacy.epsilon=0.1")).err


def test_another_unit_relation_or_table_is_refused_and_another_bound_is_not(town, capsys):
    person = ["privacy.unit=person", "privacy.max_records=5", "privacy.epsilon=0.5"]
    assert run("a", *person) == 0
    for other, word in (
        (["privacy.epsilon=0.5"], "privacy unit"),
        ([*person, "privacy.neighbouring=replace"], "neighbouring relation"),
        ([*person, "privacy.missing_unit=own"], "privacy unit"),
        ([*person, "budget.table=village"], "table"),
        ([*person, "budget.accountant=gdp"], "accountant"),
    ):
        assert word in reply(capsys, *asked("b", *other), code=1).err
        assert not (town / "b" / "release").exists() and epsilons() == [0.5]
    assert run("b", *person, "privacy.max_records=9", "privacy.clip=truncate") == 0
    assert epsilons() == [0.5, 0.5]


def test_the_ledger_speaks_of_those_that_named_it_not_of_one_file(town, capsys):
    """With data=table two files have one declared name: they count as the same people, and nothing calls them one."""
    shutil.copy("town.csv", "other.csv")
    assert run("a", "privacy.epsilon=1") == 0 and run("b", "privacy.epsilon=1", "data.path=other.csv") == 0
    capsys.readouterr()
    assert command("budget", "people.json") == 0
    assert "runs that named this ledger; declared table 'table', unit one record" in capsys.readouterr().out
    assert run("c", "privacy.epsilon=0.5", "data.path=other.csv", "budget.table=other") == 1
    assert "its table is 'table', not 'other'" in capsys.readouterr().err


def test_a_ledger_of_another_unit_says_what_differs_alone(town, capsys):
    person = ["privacy.unit=person", "privacy.max_records=2", "privacy.epsilon=0.1"]
    assert run("a", *person) == 0
    capsys.readouterr()
    for other, words in (
        (['privacy.missing_unit_values=["",NA,zero]', *person], "(missing_values) is ['nan', 'NaN', 'N/A', "),
        (["privacy.unit_id_rules=[unicode,trim,number]", *person], "(rules) is ['case'], not ['unicode', "),
        (["privacy.epsilon=0.1"], "(column) is 'person', not one record"),
    ):
        said = reply(capsys, *asked("b", *other), code=1).err
        assert f"its privacy unit {words}" in said and len(said.splitlines()[0]) < 250


def test_a_run_that_is_not_private_books_too_and_the_ledger_says_so(town, capsys):
    said = " ".join(reply(capsys, *asked("a", "privacy.epsilon=1", "seed=1")).err.split())
    assert "the release will be NOT private, and ε = 1 is booked all the same: the noise seed is fixed" in said
    Path("unsure.yaml").write_text(SCHEMA.replace("confirmed_public: true", "confirmed_public: false"))
    said = " ".join(reply(capsys, *asked("b", "privacy.epsilon=0.5", "data.schema=unsure.yaml")).err.split())
    told = "the release will be NOT private, and ε = 0.5 is booked all the same: nobody has confirmed"
    assert 0 <= said.find(told) < said.find("measure ")
    assert [b.private for b in book().bookings] == [False, False]
    sweep = ["hydra.sweep.dir=sweep", *BASIC, "privacy.epsilon=0.25,0.5", "data.schema=town.yaml,unsure.yaml"]
    assert command("run", "-m", *FAST, *sweep) == 0
    assert "2 of 4 releases will be NOT private, and ε = 0.75 is booked" in " ".join(capsys.readouterr().err.split())
    said = reply(capsys, "budget", "people.json").out
    assert "4 of the runs say that they are not private" in said


def test_a_booking_is_of_a_release_as_private_as_it_says(town, monkeypatch, capsys):
    """One that stopped before its first charge lent its booking to the same run with a fixed seed."""
    with monkeypatch.context() as m:
        m.setattr(Ledger, "open", lambda *given, **named: (_ for _ in ()).throw(KeyboardInterrupt))
        assert run("a", "privacy.epsilon=1") != 0
    assert [b.private for b in book().bookings] == [True]
    assert "the release will be NOT private" in " ".join(
        reply(capsys, *asked("a", "privacy.epsilon=1", "seed=1")).err.split()
    )
    assert [(b.private, b.charged == NONE) for b in book().bookings] == [(True, True), (False, False)]
    assert worded(town / "a" / "release")["running_total"].count("1 of them not private") == 1


def test_of_runs_that_begin_one_ledger_at_once_the_first_alone_says_that_it_is_new(spent, monkeypatch, capsys):
    Path("people.json").rename("other.json")

    def meanwhile(path: Path) -> None:
        Path("other.json").rename(path)

    monkeypatch.setattr(admission, "recorded", meanwhile)
    assert "NEW ledger" not in reply(capsys, *asked("b", "privacy.epsilon=0.5")).err
    assert epsilons() == [2, 0.5]


@pytest.mark.parametrize(
    "of", [["run", "budget.ledger=circle"], ["plan", "budget.ledger=circle"], ["budget", "circle"]]
)
def test_links_in_a_circle_are_no_fault_of_the_pipeline(town, capsys, of):
    Path("circle").symlink_to("circle")
    said = reply(capsys, of[0], *([*FAST, LIMIT] if of[0] != "budget" else []), of[1], code=1).err
    assert "cannot be read" in said and "fault of the pipeline" not in said


def test_a_ledger_where_nobody_can_write_is_one_clear_line_and_leaves_no_release(town, capsys):
    said = reply(capsys, "run", *FAST, "hydra.run.dir=a", "budget.ledger=/proc/nowhere/people.json", LIMIT, code=1).err
    assert "cannot write" in said and "Traceback" not in said and "fault of the pipeline" not in said
    assert not (town / "a" / "release").exists()
    assert "internal/" not in said and not (town / "a").exists(), "no line names a file that is gone, and none is left"


def test_plan_says_what_would_be_left_and_books_nothing(town, capsys):
    assert command("plan", *TOWN, *BASIC, "privacy.epsilon=2", "plan.format=json") == 0
    said = json.loads(capsys.readouterr().out)["shared_budget"]
    assert said["fits"]
    assert said["left"]["epsilon_sum"] == 3
    assert said["left_after"]["epsilon_sum"] == 1
    assert not Path("people.json").exists()
    assert run("a", "privacy.epsilon=2") == 0
    before = Path("people.json").read_bytes()
    assert "does NOT fit" in reply(capsys, "plan", *TOWN, *BASIC, "privacy.epsilon=2").out
    assert Path("people.json").read_bytes() == before


def test_nothing_is_left_where_the_sum_is_beyond_a_limit_that_was_lowered(spent, capsys):
    """'left: ε = 0, δ = 0 by the plain sums', and all runs stayed within a limit that they had passed."""
    assert command("budget", "people.json", "limit={epsilon: 1, delta: 1e-7}", "reason=a vote") == 0
    assert "left:  nothing\n" in capsys.readouterr().out
    assert "all runs stay within" not in reply(capsys, "budget", "people.json", "format=json").out


def test_the_command_shows_who_spent_it_for_people_and_for_programs(spent, capsys):
    said = reply(capsys, "budget", "people.json").out
    assert str(spent / "a") in said
    assert "left:  ε = 1," in said
    facts = json.loads(reply(capsys, "budget", "people.json", "format=json").out)
    assert facts["left"]["epsilon_sum"] == 1
    assert facts["total"]["runs"] == 1
    for wrong in (["nowhere.json"], [], ["town.csv"], ["people.json", "format=xml"], ["people.json", "reason=x"]):
        assert command("budget", *wrong) == 1
    assert command("budget", "people.json", "limit={epsilon: 0, delta: 0}", "reason=x") == 1
    assert command("budget", "people.json", "limit={epsilon: 5, delta: 1e-6}") == 1
    assert [c.limit.epsilon for c in book().limits] == [3]


class TestSweeps:
    def test_a_sweep_books_all_of_its_jobs_or_none_and_they_do_not_book_again(self, town, capsys):
        grid = ["hydra.sweep.dir=sweep", *BASIC]
        assert command("run", "-m", *FAST, *grid, "privacy.epsilon=1,1.5,2") == 1
        assert "3 releases of ε = 4.5 in all" in capsys.readouterr().err
        assert not Path("people.json").exists()
        assert not list((town / "sweep").glob("*/release"))
        assert command("run", "-m", *FAST, *grid, "privacy.epsilon=1,2") == 0
        assert sorted(epsilons()) == [1, 2] and all(b.charged.charges for b in book().bookings)
        assert len(list((town / "sweep").glob("*/release"))) == 2
        before = Path("people.json").read_bytes()
        assert command("run", "-m", *FAST, *grid, "privacy.epsilon=1,2", "resume=true") == 0
        assert Path("people.json").read_bytes() == before


MAP = ["experiment=mgd_table1", "smoke=true", "data.rows=500", "privacy.unit=record"]
MAP += ["experiment.dpsyn=[0.5]", "experiment.laplace=[1,2]", "budget.ledger=people.json", "budget.accountant=basic"]


class TestExperiments:
    def test_an_experiment_is_refused_whole_before_its_first_table(self, town, capsys):
        assert command("run", *MAP, "hydra.run.dir=e", "budget.limit={epsilon: 0.6, delta: 1e-6}") == 1
        assert "3 releases of ε = 0.65" in capsys.readouterr().err
        assert not Path("people.json").exists()
        assert not list((town / "e").glob("**/release"))

    @pytest.mark.slow
    def test_an_experiment_books_each_of_its_noisy_tables_once(self, town):
        settings = [*MAP, "hydra.run.dir=e", "budget.limit={epsilon: 0.7, delta: 1e-6}"]
        assert command("run", *settings) == 0
        assert epsilons() == [0.5, 1 / 20, 2 / 20]
        assert command("run", *settings, "resume=true") == 0
        assert epsilons() == [0.5, 1 / 20, 2 / 20]

    @pytest.mark.parametrize("name", ["anita_tradeoff", "nist2021_sprint1", "dpsyn_figure2"])
    def test_every_kind_of_experiment_says_what_it_books(self, name):
        settings = [f"experiment={name}", "data=demo", "budget.ledger=people.json", LIMIT]
        settings += [] if name == "dpsyn_figure2" else ["experiment.repeats=2"]
        asked = load_config(settings)
        asks = {"anita_tradeoff": ["epsilons"], "nist2021_sprint1": ["dpsyn", "laplace"], "dpsyn_figure2": []}[name]
        every = [epsilon for lists in asks for epsilon in asked.experiment.options[lists]]
        found = planned_releases(asked, Path("e"))
        assert len({r.root for r in found}) == len(found) == 2 * len(every), "each run is a release of its own"

    def test_a_challenge_with_several_units_shares_no_ledger(self):
        variants = "experiment.variants=[{epsilon: 1, unit: record}, {epsilon: 1, unit: taxi_id, max_records: 5}]"
        settings = ["experiment=nist2021_sprint3", "data=chicago_taxi", variants, "budget.ledger=people.json", LIMIT]
        with pytest.raises(UserError, match="share no ledger"):
            check(planned_releases(load_config(settings), Path("e")))


class TestProcesses:
    def test_of_three_runs_at_once_one_fits(self, town):
        codes = said_by("run_worker", "together", *FAST, *BASIC[1:], "privacy.epsilon=2")
        assert sorted(codes) == [0, 1, 1]  # type: ignore[call-overload]
        assert epsilons() == [2]
        assert len(list(town.glob("together-*/release"))) == 1

    def test_a_kill_around_the_first_charge_costs_no_more_than_its_answer(self, town):
        found = said_by("run_worker", "killed-charging", *FAST, *BASIC[1:], "privacy.epsilon=0.5")
        for moment, each in found.items():
            assert each == [-signal.SIGKILL, 1, True, 0, 0, 1, True], moment
        assert [b.charged.charges for b in book().bookings] == [3, 3, 3, 3, 2], "noted where it is drawn"
        answers = [len(list(Path(f"run-{place}/internal/answers").iterdir())) for place in range(5)]
        assert answers == [3, 2, 2, 2, 2], "what was charged is drawn once, or never"

    @pytest.mark.slow
    def test_a_kill_at_any_moment_of_a_run_loses_no_booking_and_books_none_twice(self, town):
        common = [*(s for s in FAST if s != "selection=oneway"), *BASIC[1:], "privacy.epsilon=0.3"]
        found = said_by("run_worker", "killed", *common)
        booked_before_charge = []
        for moment, (first, left, charged, again, once, total, released) in found.items():
            assert first == -signal.SIGKILL, moment
            assert not charged or left == 1, moment  # what was charged was booked
            assert (again, once) == (0, 0), moment
            assert total == 1 and released, moment
            booked_before_charge.append(left)
        assert booked_before_charge == [0, 0, 0, *[1] * 7]


def test_a_sweep_looks_at_each_table_once_and_books_nothing_where_a_job_would_be_refused(town, capsys, monkeypatch):
    looked = []
    real = planned_jobs.encode_columns
    monkeypatch.setattr(planned_jobs, "encode_columns", lambda *a, **k: looked.append(1) or real(*a, **k))
    table = people(600)
    table.loc[:179, "sex"] = "?"
    table.to_csv(town / "town.csv", index=False)
    grid = ["run", "-m", *FAST, *BASIC, "hydra.sweep.dir=grid", "privacy.epsilon=0.5,0.75", "console=always"]
    said = reply(capsys, *grid, "data.max_unplaced=1,0.2", code=1).err
    assert "the job privacy.epsilon=0.5 data.max_unplaced=0.2 would be refused: column 'sex' loses 30.0 %" in said
    assert "Nothing was booked" in said and "'?'" not in said
    assert not (town / "people.json").exists() and not list((town / "grid").glob("*/internal/booking.json"))
    assert not list((town / "grid").rglob("*.codes")) and len(looked) == 1
    assert command(*grid, "data.max_unplaced=1,0.4") == 0
    assert epsilons() == [0.5, 0.5, 0.75, 0.75] and len(looked) == 2
