"""A mistake, and a command at an odd moment or beside another: one message with a cure, and every file as it was."""

import io
import json
import logging
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
from contextlib import ExitStack, redirect_stdout, suppress
from functools import partial
from pathlib import Path

import pytest

import pipeline
from mechanisms.public.errors import UserError
from mechanisms.public.tables.inspect_file import check_file
from pipeline import folders
from pipeline.cli import main
from pipeline.folders import claimed
from pipeline.run_log import logged
from pipeline.settings.config import load_config
from pipeline.settings.overrides import overrides_of
from pipeline.sweeps import planned_jobs
from pipeline.sweeps.sweep import _opened
from tests.pipeline.conftest import PAIRS, TOWN, command, copy_of, done_once, reply, write_town
from tests.pipeline.mistakes import Ending, ending, faults, mistake
from tests.pipeline.random_mistakes import Mistake, nothing, random_mistake
from tests.pipeline.refused import PLAN, REFUSED, RUN, write_files

SWEEP = ["run", "-m", *TOWN, *PAIRS, "hydra.sweep.dir=swept"]


@pytest.fixture(scope="module")
def finished(one_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the town, a run R of it, and what is left of a sweep S."""
    place = write_town(tmp_path_factory.mktemp("finished"))
    (place / "S" / "internal").mkdir(parents=True)
    (place / "S" / "internal" / "results.parquet").write_bytes(b"x")
    shutil.copytree(one_run, place / "R")
    write_files(place)
    return place


@pytest.fixture
def unchanged(finished: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The same for commands that leave it as it is; it is the current folder."""
    monkeypatch.chdir(finished)
    return finished


@pytest.fixture
def finished_town(finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return copy_of(finished, tmp_path / "town", monkeypatch)


def answered(end: Ending, *words: str) -> None:
    assert not faults(end), end.err
    assert all(w in end.err for w in words), end.err


SCORE = ["score", "real=town.csv", "synthetic=R/release/synthetic.csv", "schema=town.yaml"]
OVER_A_TABLE = {
    "the report of a run": ["report", "R", "output=town.csv"],
    "the report of a run over the schema": ["report", "R", "output=town.yaml"],
    "the report of a sweep": ["report", "S", "output=town.csv"],
    "the curves of a sweep": ["report", "S", "output=town.csv", "metric=mgd"],
    "scores": [*SCORE, "output=town.csv"],
    "scores over the schema": [*SCORE, "output=town.yaml"],
    "scores over a paper of a run": [*SCORE, "output=R/internal/manifest.json"],
    "the report of scores": [*SCORE, "report=town.csv"],
    "an answer": ["query", "from=R/release", "marginal=[age]", "output=town.csv"],
    "bounds": ["query", "from=R/release", "bounds=true", "output=town.csv"],
    "an answer in a folder's place": ["query", "from=R/release", "marginal=[age]", "output=R"],
    "a draft": ["schema", "town.csv", "output=town.csv"],
    "a draft over a schema": ["schema", "town.csv", "output=town.yaml"],
    "a new table": ["synth", "from=R/release", "output=town.csv"],
    "a new table over a run": ["synth", "from=R/release", "output=R"],
    "a run": ["run", *TOWN, "hydra.run.dir=town.csv"],
    "a run below it": ["run", *TOWN, "hydra.run.dir=town.csv/out"],
    "a rehearsal": ["rehearse", "data.schema=town.yaml", "hydra.run.dir=town.csv"],
    "a sweep": ["run", "-m", *TOWN, *PAIRS, "hydra.sweep.dir=town.csv", "privacy.epsilon=1,2"],
    "another limit": ["budget", "town.csv", "limit={epsilon: 3, delta: 1e-6}", "reason=more"],
}


@pytest.mark.parametrize("arguments", OVER_A_TABLE.values(), ids=OVER_A_TABLE)
def test_nothing_is_written_over_a_table(unchanged, arguments):
    answered(mistake(unchanged, *arguments))


def test_what_a_command_wrote_before_it_may_write_again(finished_town):
    for again in (
        ["report", "R", "output=seen.html"],
        ["query", "from=R/release", "marginal=[age]", "output=age.csv"],
        [*SCORE, "output=scores.json", "report=scored.html", "evaluation.metrics=[tvd]"],
    ):
        assert command(*again) == 0
        assert command(*again) == 0


MISTAKES = {
    "several values for one run": ([*RUN, "privacy.epsilon=1,2"], "run -m"),
    "several tables to check": (["check", "data.path=town.csv,x.csv", "data.schema=town.yaml"], "data.path", "run -m"),
    "several budgets to plan": ([*PLAN, "privacy.epsilon=1,2"], "privacy.epsilon=1,2", "several values"),
    "several columns without brackets": (
        ["query", "from=R/release", "marginal=sex,age"],
        "marginal=[sex,age] for a list",
    ),
    "several numbers of rows to make": (["synth", "from=R/release", "synthesis.rows=5,9"], "synthesis.rows=5,9"),
    "several units of a draft": (["schema", "town.csv", "privacy.unit=age,sex"], "privacy.unit=age,sex"),
    "an unknown interpolation": ([*PLAN, "data.name=${nope}"], "data.name", "nope"),
    "an unknown interpolation in a folder": ([*RUN, "hydra.run.dir=${nope}"], "nope"),
    "a circle of interpolations": ([*PLAN, "data.name=${data.name}"], "data.name"),
    "a launcher that is not there": ([*SWEEP, "hydra/launcher=slurm"], "hydra/launcher/slurm", "run --help"),
    "a job of Hydra's own": ([*SWEEP, "+hydra.callbacks.mine._target_=a.B"], "hydra.callbacks", "starts no job"),
    "a folder of Hydra's own": ([*RUN, "hydra.output_subdir=.hydra"], "hydra.output_subdir", "leave it out"),
    "no job at a time": ([*SWEEP, "hydra/launcher=local", "hydra.launcher.n_jobs=0"], "n_jobs"),
    "a sweep of a million": ([*SWEEP, "privacy.epsilon=range(1,1000000)"], "2,000 runs", "fewer"),
    "a sweep of a billion billion": ([*SWEEP, "privacy.epsilon=range(1,1000000000000000000)"], "2,000 runs"),
    "a sweep of nothing": ([*SWEEP, "privacy.epsilon=range(1,1)"], "cannot be listed"),
    "names of files in a sweep": ([*SWEEP, "privacy.epsilon=glob(*)"], "cannot be listed"),
    "a range beyond the bounds": (["query", "from=R/release", "where={age: [200, 300]}"], "'age' has no value there"),
    "another synthesizer's settings": ([*PLAN, "synthesis.kind=pgm"], "synthesis=pgm, which brings its own"),
    "a synthesizer that is none": ([*RUN, "synthesis.kind=mine"], "one of: auto, gum"),
    "a role of no column": ([*PLAN, "data.roles={time: agee}"], "data.roles.time", "did you mean 'age'"),
    "a setting taken away": ([*PLAN, "~privacy.epsilon"], "cannot be taken away"),
    "an empty folder's name": (["run", *TOWN, "hydra.run.dir="], "hydra.run.dir"),
    "two tables for one draft": (["schema", "town.csv", "town.yaml"], "got 2"),
    "scores under a table's name": ([*SCORE, "output=new.parquet"], "output", "new.parquet would hold json"),
    "scores and their report in one file": ([*SCORE, "output=new.csv", "report=new.csv"], "new.csv would hold html"),
    "a draft under a table's name": (["schema", "town.csv", "output=new.csv"], "new.csv would hold yaml"),
    "a run and a sweep in one report": (["report", "R", "S"], "got 2"),
    "two releases at a time": (["verify", "R/release", "R"], "got 2"),
    "two ledgers at a time": (["budget", "a.json", "b.json"], "got 2"),
    "marginals, and all pairs": (
        [*PLAN, "selection.k=[1,2]", "selection.marginals=[[age,sex]]"],
        "selection.k, selection.marginals",
    ),
    "marginals, and all pairs, in a sweep": ([*SWEEP, "selection.k=[2]", "selection.marginals=[[age]]"], "each says"),
    "a word for ε": ([*PLAN, "privacy.epsilon=abc"], "not a number", "at least 1e-05"),
    "one's own table as the demo's": (["run", "data.path=town.csv"], "data=table data.path=town.csv"),
    "one's own table and schema as the demo's": (
        ["run", "data=demo", "data.path=town.csv", "data.schema=town.yaml", "hydra.run.dir=out"],
        "data=table data.path=town.csv",
    ),
    "a group of another command": (["schema", "town.csv", "data=table"], "this command takes no data", "schema --help"),
    "a setting of another command": (["schema", "data.path=town.csv"], "no such setting", "table"),
    "a table beside its database": (["schema", "sqlite:///town.db", "data.table=town"], "sqlite:///FILE.db#TABLE"),
    "a number for a choice": ([*PLAN, "selection=3"], "no selection called 3", "aim"),
    "a list for a choice": ([*PLAN, "privacy=[1,2]"], "no privacy called [1, 2]", "default"),
    "a list in a list of columns": (["query", "from=R/release", "marginal=[[age]]"], "marginal", "no name of a column"),
    "letters that are not UTF-8": ([*RUN, "statement.publisher=Z\udcfcrich"], "statement.publisher", "in UTF-8"),
    "half a record": ([*PLAN, "privacy.max_records=1.5"], "got '1.5', not a whole number", "C ≥ 1"),
    "no number at all": ([*PLAN, "privacy.epsilon=null"], "got 'None', not a number", "at least 1e-05"),
    "neither yes nor no": ([*PLAN, "plan.details=maybe"], "got 'maybe', not true or false"),
    "the home of nobody": (["check", "data.path=~no-such-person/t.csv", "data.schema=town.yaml"], "no home folder"),
    "help for no setting": (["run", "--help", "epsilno"], "epsilno", "--help all lists them"),
}


@pytest.mark.parametrize(("arguments", "words"), [(m[0], m[1:]) for m in MISTAKES.values()], ids=MISTAKES)
def test_a_mistake_is_one_message_with_a_cure(unchanged, arguments, words):
    answered(mistake(unchanged, *arguments), *words)


@pytest.mark.parametrize(("arguments", "word"), REFUSED, ids=[a[-1][:60] for a, _ in REFUSED])
def test_what_cannot_be_is_refused_before_anything_is_made(unchanged, arguments, word):
    end = mistake(unchanged, *arguments)
    answered(end, word)
    assert "Config" not in end.err.replace("DictConfig with ListConfig", ""), "no name of a class of ours"


GIVEN_TWICE = {
    "two budgets": ([*RUN, "privacy.epsilon=1", "++privacy.epsilon=2"], "privacy.epsilon: given twice: 1 and 2"),
    "two tables": ([*PLAN, "data.path=x.csv"], "data.path: given twice: town.csv and x.csv"),
    "two groups": (["plan", "data=adult", "data=table"], "data: given twice: adult and table"),
    "a value beside a sweep": ([*SWEEP, "privacy.epsilon=1", "privacy.epsilon=2,3"], "given twice: 1 and 2,3"),
    "two files of a sweep's report": (["report", "S", "output=a.html", "output=b.html"], "output: given twice"),
    "two ranges of a column": (
        ["query", "from=R/release", "where={age: [0, 9], age: [20, 29]}"],
        "where: given twice: age",
    ),
    "two ranges without blanks": (["query", "from=R/release", "where={age:3,age:4}"], "where: given twice: age"),
    "two keys in a list": ([*PLAN, "accept=[{metric: l1, marginals: 1, marginals: 2}]"], "given twice: marginals"),
    "two tables to compare": ([*SCORE, "real=x.csv"], "real: given twice: town.csv and x.csv"),
}


@pytest.mark.parametrize(("arguments", "words"), GIVEN_TWICE.values(), ids=GIVEN_TWICE)
def test_two_values_of_one_setting_are_refused(unchanged, arguments, words):
    """The last of them was taken, and nothing said so."""
    answered(ending(unchanged, lambda: main(arguments)), words)


def test_one_value_may_be_given_twice(finished_town, capsys):
    assert main(["query", "from=R/release", "marginal=[age]", "from=R/release", "+marginal=[age]"]) == 0


def test_a_sweep_counts_its_runs_before_it_lists_them(monkeypatch):
    monkeypatch.setattr(planned_jobs, "MOST_JOBS", 3)
    parsed = planned_jobs.OverridesParser.create().parse_overrides(["a=1,2", "b=1,2"])
    with pytest.raises(planned_jobs.UserError, match="more than 3 runs"):
        planned_jobs.combinations(parsed)


#: A figure that no float holds.
LONG = b'{"columns": [{"name": "a", "tvd": 1' + b"0" * 400 + b"}]}"

BROKEN = {
    "nothing": ("town.csv", b"", RUN, "empty"),
    "a column twice": ("town.csv", b"age,sex,sex,job\n1,f,f,baker\n", RUN, "sex"),
    "a column less": ("town.csv", b"age,gender,job\n1,f,baker\n", RUN, "sex"),
    "semicolons": ("town.csv", b"age;sex;job\n1;f;baker\n", RUN, "data.delimiter"),
    "a column's name of 200 KB": ("town.csv", b"a" * 200_000 + b",b\n1,2\n", RUN, "column name"),
    "a line of 5 MB": ("town.csv", b"age,sex,job\n1,f," + b"x" * 5_000_000 + b"\n", RUN, "line 2"),
    "a line that is too short": ("town.csv", b"age,sex,job\n1,f,baker\n2,f\n", RUN, "line 3"),
    "bytes": ("town.csv", bytes(range(128)) * 40, RUN, "not a text"),
    "another encoding": ("town.csv", "age,sex,job\n1,f,bäcker\n".encode("latin-1") * 500, RUN, "UTF-8"),
    "UTF-16": ("town.csv", "age,sex,job\n1,f,baker\n".encode("utf-16"), RUN, "likely utf-16"),
    "a schema in bytes": ("town.yaml", bytes(range(256)), RUN, "town.yaml"),
    "scores that are cut off": ("R/internal/scores.json", b'{"rows": ', ["report", "R"], "damaged"),
    "scores of something else": ("R/internal/scores.json", b"{}", ["report", "R"], "damaged"),
    "scores that are a list": ("R/internal/scores.json", b"[]", ["report", "R"], "damaged"),
    "figures that are nothing": ("R/internal/figures.json", b"null", ["report", "R"], "figures.json"),
    "figures of another form": ("R/internal/figures.json", b'{"pairs": 3}', ["report", "R"], "damaged"),
    "figures of 400 digits": ("R/internal/figures.json", LONG, ["report", "R"], "damaged"),
    "convergence that is cut off": ("R/internal/convergence.json", b"{", ["report", "R"], "convergence.json"),
    "results of a sweep": ("S/internal/results.parquet", b"PAR1", ["report", "S"], "results.parquet"),
}


@pytest.mark.parametrize(("name", "content", "arguments", "word"), BROKEN.values(), ids=BROKEN)
def test_a_broken_file_is_named(finished_town, name, content, arguments, word):
    (finished_town / name).write_bytes(content)
    answered(mistake(finished_town, *arguments), word)


@pytest.mark.parametrize("resume", ["false", "true"])
def test_a_run_that_was_killed_before_its_first_charge_can_be_started_again_whatever_changed_since(
    finished_town, resume
):
    folder = Path("out/internal")
    folder.mkdir(parents=True)
    (folder / "manifest.json").write_text(json.dumps({"data": "another", "once": {"key": "00"}}))
    assert command(*RUN, f"resume={resume}") == 0
    answered(mistake(finished_town, *RUN), "already holds a run")


def test_a_booking_is_kept_where_nothing_was_charged(finished_town, monkeypatch):
    """What is booked in a shared budget stays booked: the run that is started again finds it by its name."""
    budget = ["budget.ledger=town.json", "budget.limit={epsilon: 1, delta: 1e-6}"]
    monkeypatch.setattr("pipeline.release_stage.settle", _interrupted)
    assert command(*RUN, *budget) == 130
    assert [p.name for p in Path("out/internal").iterdir()] == ["booking.json"]
    monkeypatch.undo()
    monkeypatch.chdir(finished_town)
    assert command(*RUN, *budget) == 0
    assert len(json.loads(Path("town.json").read_text())["bookings"]) == 1


def _interrupted(work):
    raise KeyboardInterrupt


@pytest.mark.parametrize("accountant", ["advanced", "gdp"])
def test_an_accountant_that_takes_the_choices_from_the_default_is_warned_about(finished_town, capsys, accountant):
    settings = [*TOWN, f"privacy.accountant={accountant}"]
    assert ("as in selection=pairs" in reply(capsys, "plan", *settings).out) == (accountant == "advanced")
    assert command("run", *settings, "evaluation.enabled=false", "hydra.run.dir=out") == 0
    assert ("as in selection=pairs" in " ".join(capsys.readouterr().err.split())) == (accountant == "advanced")


def test_help_of_a_word_lists_the_settings_that_have_it_in_their_names(capsys):
    lines = reply(capsys, "run", "--help", "epsilon").out.splitlines()
    assert lines[0] == "settings:"
    assert any("privacy.epsilon=1.0" in line for line in lines)
    assert all("epsilon" in line.partition("=")[0] for line in lines[1:])


@pytest.mark.parametrize("encoding", ["ascii", "cp1252"])
def test_a_terminal_without_greek_letters_ends_no_run(finished_town, encoding):
    settings = [*TOWN, *PAIRS, "evaluation.enabled=false", "hydra.run.dir=out"]
    with redirect_stdout(io.TextIOWrapper(io.BytesIO(), encoding=encoding)) as terminal:
        assert command("run", *settings) == 0
    assert "private: ? = 1" in terminal.buffer.getvalue().decode(encoding)


def test_a_closed_output_is_no_fault(tmp_path):
    line = ["sh", "-c", 'exec "$@" >&-', "sh", sys.executable, "-m", "pipeline", "--version"]
    done = subprocess.run(line, cwd=tmp_path, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no full device here")
@pytest.mark.parametrize("arguments", [["run", "--help"], ["plan"]], ids=" ".join)
def test_a_full_disk_behind_the_output_is_one_message(tmp_path, arguments):
    line = [sys.executable, "-m", "pipeline", *arguments]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(line, cwd=tmp_path, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert "disk is full" in done.stderr


BUDGET = ["budget.ledger=town.json", "budget.limit={epsilon: 3, delta: 1e-6}", "evaluation.metrics=[tvd]"]


@pytest.fixture(scope="module")
def booked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return done_once(tmp_path_factory.mktemp("finished"), "run", *TOWN, *PAIRS, *BUDGET, "hydra.run.dir=R")


def wrong_answers(seeds: range, booked: Path, place: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is wrong with the answers to so many mistakes, each made where all files are as they were."""
    wrong, fresh = [], False
    for seed in seeds:
        if not fresh:
            monkeypatch.chdir(booked)
            shutil.rmtree(place, ignore_errors=True)
            shutil.copytree(booked, place)
            monkeypatch.chdir(place)
        made = random_mistake(random.Random(seed))
        made.files(place)
        end = ending(place, made.made)
        fresh = made.files is nothing and not end.changed
        wrong += [f"{seed}: {made.kind}: {' '.join(made.arguments)}: {fault}\n{end.err}" for fault in faults(end)]
    return wrong


PARTS = [range(40), *(pytest.param(range(1000 + n, 1050 + n), marks=pytest.mark.slow) for n in range(0, 500, 50))]


@pytest.mark.parametrize("seeds", PARTS, ids=lambda seeds: str(seeds.start))
def test_random_mistakes_end_in_one_message_with_a_cure(booked, tmp_path, monkeypatch, seeds):
    assert not wrong_answers(seeds, booked, tmp_path / "town", monkeypatch)


@pytest.mark.parametrize(
    "call",
    [
        *(partial(pipeline.load_config, given) for given in (5, None, "data=adult", [5])),
        *(partial(pipeline.itemsets, "R", least) for least in (None, "x", 2)),
    ],
)
def test_arguments_of_another_type_are_refused_before_anything_is_read(call):
    with pytest.raises(UserError):
        call()


def test_a_wrong_answer_is_seen(booked, tmp_path, monkeypatch):
    place = tmp_path / "town"
    shutil.copytree(booked, place)
    monkeypatch.chdir(place)
    good = Mistake("none", nothing, ("query", "from=R/release", "marginal=[age]", "output=age.csv"))
    assert faults(ending(place, good.made)) == ["exit code 0", "0 messages", "no cure", "changed: age.csv"]


INTERRUPTED_WHILE_LOADING = """
import os, runpy, signal, sys

signal.signal(signal.SIGINT, signal.default_int_handler)  # where the tests run behind, Ctrl-C is ignored

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == NAME:
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Finder())
sys.argv = ["pipeline", "run", "data.rows=100"]
runpy.run_module("pipeline", run_name="__main__", alter_sys=True)
"""


@pytest.mark.parametrize("name", ["pipeline.cli", "hydra", "duckdb"])
def test_ctrl_c_while_libraries_load_ends_with_130_and_no_traceback(name: str, tmp_path: Path) -> None:
    line = [sys.executable, "-c", f"NAME = {name!r}\n{INTERRUPTED_WHILE_LOADING}"]
    own = {"PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run(line, cwd=tmp_path, env=own, capture_output=True, text=True)
    assert done.returncode == 130 and "Traceback" not in done.stderr
    assert not list(tmp_path.rglob("release"))


@pytest.mark.parametrize(
    ("sent", "words", "code"),
    [
        (None, "Query interrupted", 130),
        (signal.SIGTERM, "Query interrupted", 143),
        (signal.SIGINT, "no compiled object yet", 130),
    ],
)
def test_a_signal_that_a_library_tells_of_or_breaks_off_at_ends_as_everywhere(monkeypatch, capsys, sent, words, code):
    """Where the compiler of counts was at work, Ctrl-C ended in "a fault of the pipeline" and exit code 1."""

    def work(arguments: list[str]) -> None:
        with suppress(KeyboardInterrupt):  # as a call out of C loses it
            if sent:
                os.kill(os.getpid(), sent)
        raise RuntimeError(words)

    monkeypatch.setattr("pipeline.commands.asked_commands.check", work)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        error = reply(capsys, "check", code=code).err
    finally:
        signal.signal(signal.SIGINT, before)
    assert "interrupted" in error and "fault" not in error


def test_a_dollar_and_a_brace_in_a_path_and_a_name_are_told_how_to_write(town, capsys, monkeypatch):
    Path("a${b}.csv").write_bytes(Path("town.csv").read_bytes())
    again = [*TOWN, *PAIRS, "evaluation.enabled=false", "hydra.run.dir=out"]
    for wrong in ("a${b}.csv", "a${b.csv"):
        assert "write \\${ for ${" in reply(capsys, "run", *again, f"data.path={wrong}", code=1).err
    assert command("run", *again, "data.path=a\\${b}.csv") == 0
    with pytest.raises(UserError, match=r"no column '\$\{b\}'"):
        pipeline.load("out").sample(1, where={"${b}": 1})
    assert load_config(overrides_of({"evaluation.order": "${b}"})).evaluation.order == "${b}"


def test_the_column_of_record_types_is_set_in_a_mapping_of_its_group_as_a_method_is() -> None:
    """`kind` in any mapping was taken for the choice of the group."""
    found = load_config(overrides_of({"evaluation": {"kind": "job"}, "selection": {"kind": "mst"}}))
    assert (found.evaluation.options["kind"], found.selection.kind) == ("job", "mst")


def test_a_log_takes_what_is_no_unicode_and_says_nothing_of_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half of a surrogate pair, as of a plugin's error or a file's name, put the line on standard error."""
    monkeypatch.setattr(logging.getLogger("pipeline"), "handlers", [])  # a report of the tests cannot hold the half
    with logged(tmp_path / "run.log"):
        logging.getLogger("pipeline").info("Zo\ud800")
    assert capsys.readouterr().err == "" and "Zo\\ud800" in (tmp_path / "run.log").read_text(encoding="utf-8")


def test_an_error_of_a_thread_that_ran_before_the_run_is_the_caller_s(tmp_path: Path, monkeypatch) -> None:
    """A program that calls `fit` hears of its own threads; those that begin in the run stand in its log."""
    heard: list[str] = []
    monkeypatch.setattr(threading, "excepthook", lambda failed: heard.append(failed.thread.name))
    go = threading.Event()
    theirs = threading.Thread(target=lambda: go.wait() and 1 / 0, name="theirs")
    theirs.start()
    with logged(tmp_path / "run.log"):
        ours = threading.Thread(target=lambda: 1 / 0, name="ours")
        ours.start()
        go.set()
        ours.join()
        theirs.join()
    assert heard == ["theirs"] and (tmp_path / "run.log").read_text().count("ZeroDivisionError:") == 1


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no full device here")
def test_a_log_on_a_full_disk_loses_lines_and_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with logged(Path("/dev/full")):
        logging.getLogger("pipeline").info("a line")
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    "setting", ["evaluation.metrics=[nonsense]", "evaluation.groups=[nowhere]", "evaluation.order=nowhere"]
)
def test_plan_refuses_settings_of_the_scores_that_run_refuses(town, setting, capsys):
    said = [reply(capsys, name, *TOWN, setting, code=1).err for name in ("plan", "run")]
    assert said[0] == said[1] and setting.split("=")[0] in said[0]
    assert command("plan", *TOWN, setting, "evaluation.enabled=false") == int("metrics" in setting)


def test_a_release_of_no_rows_can_be_read_verified_and_made_again(town, capsys):
    asked = ["run", *TOWN, "selection=oneway", "synthesis=independent", "seed=7", "privacy.epsilon=0.0001"]
    assert command(*asked, "synthesis.rows=0", "hydra.run.dir=out") == 1
    assert "synthesis.rows: got 0" in capsys.readouterr().err and not (town / "out").exists(), "nothing is spent on it"
    for resume in ("false", "true"):
        assert command(*asked, "hydra.run.dir=out", f"resume={resume}") == 0
        assert "the synthetic table has no rows" in " ".join("".join(capsys.readouterr()).split())
    for asked in (
        ["verify", "out/release"],
        ["query", "from=out/release", "marginal=[sex]"],
        ["synth", "from=out/release", "output=more", "synthesis.rows=20"],
        ["synth", "from=out/release", "output=none", "rows=0"],
        ["score", "real=town.csv", "synthetic=out/release/synthetic.csv", "schema=town.yaml"],
        ["report", "out"],
    ):
        code, (said, error) = command(*asked), capsys.readouterr()
        assert code in (0, 1) and "Traceback" not in error and "a fault of" not in error, (asked, error)
        seeded = asked[0] == "verify" and said.count("  NO  ") == 1 and "the noise seed is fixed" in said
        assert code == 0 or "fix: " in error or seeded, (asked, said, error)
        assert "rows=0" not in asked or said.rstrip().endswith("synthetic.csv (0 rows)")
    assert (town / "none/release/synthetic.csv").read_text().count("\n") == 1
    assert (town / "more/release/synthetic.csv").read_text().count("\n") > 1


def test_a_delta_of_a_half_is_planned_with_a_warning(town: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "with that probability nothing is promised" in reply(capsys, "plan", *TOWN, "privacy.delta=0.5").out


#: The beginnings of a run, and of a sweep.
BEGUN = [partial(claimed, resume=False), _opened]


@pytest.mark.parametrize("begun", BEGUN)
def test_a_command_that_is_refused_takes_nothing_away_from_the_one_at_work(begun, tmp_path, monkeypatch):
    """The second one looks into the folder, the first one begins, and only then the second one asks for the lock."""
    with ExitStack() as first:
        opened = folders._opened

        def late(path: Path, *args: int):
            if path.parent not in begins:
                begins.append(path.parent)
                first.enter_context(begun(tmp_path / "out"))
                (tmp_path / "out" / "internal" / "manifest.json").write_text("{}")
                held.update(p.name for p in path.parent.iterdir())
            return opened(path, *args)

        begins: list[Path] = []
        held: set[str] = set()
        monkeypatch.setattr(folders, "_opened", late)
        for _ in range(2):  # the lock is still there for the third one
            with pytest.raises(UserError, match="at work"), begun(tmp_path / "out"):
                pass
            assert {p.name for p in (tmp_path / "out" / "internal").iterdir()} == held
    assert {"lock", "manifest.json"} <= held


@pytest.mark.parametrize("begun", BEGUN)
def test_the_lock_of_a_command_that_ended_by_a_mistake_is_nobody_s_lock(begun, tmp_path, monkeypatch):
    """It takes its lock away with the rest: who opened that file before and locks it after holds nothing."""
    opened = folders._opened

    def early(path: Path, *args: int):
        lock = opened(path, *args)
        path.unlink()
        return lock

    monkeypatch.setattr(folders, "_opened", early)
    with pytest.raises(UserError, match="at work"), begun(tmp_path / "out"):
        pass
    monkeypatch.setattr(folders, "_opened", opened)
    with begun(tmp_path / "out"):
        pass


@pytest.mark.parametrize("begun", BEGUN)
def test_a_mistake_leaves_nothing_of_a_command_in_a_new_folder(begun, tmp_path):
    with pytest.raises(UserError, match="mine"), begun(tmp_path / "a" / "out"):
        raise UserError("mine", where="x", fix="y")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("suffix", ["yaml", "html"])
def test_a_file_that_cannot_be_written_leaves_no_new_folder(unchanged, suffix):
    made_of = {"yaml": ["schema", "town.csv"], "html": ["report", "R"]}[suffix]
    answered(mistake(unchanged, *made_of, f"output=new/deep/{'x' * 260}.{suffix}"), "too long")


def test_a_name_that_is_too_long_and_a_value_of_another_kind_have_a_way_out_of_their_own(town, capsys):
    assert "fix: a shorter name" in reply(capsys, "verify", "x" * 5_000, code=1).err
    said = reply(capsys, "run", *TOWN, "synthesis.rows=[1]", "hydra.run.dir=out", code=1).err
    assert "synthesis.rows" in said and "COMMAND" not in said


@pytest.mark.parametrize("target", ["gone.csv", "link.csv"])
def test_a_link_that_leads_to_no_file_is_not_offered_in_its_own_place(target, tmp_path):
    (tmp_path / "link.csv").symlink_to(tmp_path / target)
    with pytest.raises(UserError, match="this link leads to no file") as refused:
        check_file(tmp_path / "link.csv")
    assert "did you mean" not in str(refused.value)
