"""`run -m`: every job on its own, what they share deleted, one table and one page of all of them."""

import io
import multiprocessing
import os
import re
import resource
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
from contextlib import redirect_stdout
from pathlib import Path

import pandas as pd
import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser

from pipeline.scores.scored_tables import metric_rows
from pipeline.settings.compose import safe_name
from pipeline.settings.config import load_config
from pipeline.sweeps import job_process, planned_jobs
from pipeline.sweeps.job_process import JobOutcome, outcome_of
from pipeline.sweeps.planned_jobs import Job, longest_first, side_by_side
from pipeline.sweeps.results import efficiency, results_table, total
from pipeline.sweeps.sweep import _opened
from pipeline.sweeps.sweep_page import render
from tests.pipeline.conftest import TOWN, command, done_once, keep, people, put_back, reply

FAST = [*TOWN, "selection=oneway", "synthesis=independent", "evaluation.enabled=false", "hydra.sweep.dir=sweep"]


def jobs_of(folder):
    return sorted(p for p in folder.iterdir() if p.name != "internal")


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    """A sweep of four jobs in a folder of its own, and what it said; whoever reads it changes nothing."""
    grid = ["privacy.epsilon=0.5,2", "synthesis=independent,gum", "hydra.sweep.dir=sweep", "console=always"]
    grid += ["synthesis.rows=600"]  # of a table with far fewer or more rows MGD has no formula for a floor
    with redirect_stdout(io.StringIO()) as out:
        folder = done_once(tmp_path_factory.mktemp("swept"), "run", "-m", *TOWN, *grid)
    return folder / "sweep", out.getvalue()


SWEEP = ["run", "-m", *FAST, "privacy.epsilon=1,2"]


@pytest.fixture(scope="module")
def twice(tmp_path_factory):
    (place := tmp_path_factory.mktemp("twice") / "town").mkdir()
    return keep(done_once(place, *SWEEP))


@pytest.fixture
def done(twice, monkeypatch):
    return put_back(twice, monkeypatch)


@pytest.mark.slow
def test_a_sweep_leaves_a_tidy_table_and_a_page_and_nothing_of_the_rows(swept):
    sweep, out = swept
    inside = sweep / "internal"
    assert stat.S_IMODE(inside.stat().st_mode) == 0o700 and not (inside / "shared").exists()
    table = pd.read_parquet(inside / "results.parquet")
    assert (table.groupby("job").size() == len(table) / 4).all()  # every job has every metric
    assert set(table["method"]) == {"independent", "gum"} and set(table["epsilon"]) == {0.5, 2}
    assert {"MGD", "1-way TVD", "2-way TVD", "3-way TVD"} <= set(table["metric"])
    assert (table[["seconds", "cpu_seconds"]] > 0).all(axis=None)
    assert (table.loc[table["metric"].isin(["MGD", "2-way TVD"]), "floor"] > 0).all()  # by a formula
    assert (table["memory_mb"] > 50).all()
    assert len(pd.read_csv(inside / "results.csv")) == len(table)
    page = (inside / "sweep.html").read_text()
    for words in ("NOT private", "Best method", "Error against time", "<svg", "at most ε = 5"):
        assert words in page, words
    own = {"http://www.w3.org", "http://purl.org", "http://creativecommons.org", "https://matplotlib.org"}
    assert {*re.findall(r"https?://[\w.]+", page)} <= own
    assert "at most ε = 5" in out
    assert re.search(r"wall .* s; jobs .* efficiency .*%; peak memory at most .* MB", out)


@pytest.mark.slow
def test_what_cannot_run_is_named_before_anything_starts_and_the_rest_runs(town, capsys):
    assert command("run", "-m", *FAST, "privacy.delta=0,1e-6", "privacy.accountant=basic,gdp", "mechanism=laplace") == 1
    said = capsys.readouterr().err
    before = said[: said.index("sweep  ")]
    assert "cannot run privacy.delta=0 privacy.accountant=gdp" in before
    assert "3 of 4 jobs start" in before
    assert len(list((town / "sweep").glob("*/release"))) == 3
    assert "1 of the sweep's 4 jobs failed" in said and "\n3 are done; again: hydra.sweep.dir=sweep" in said


@pytest.mark.slow
def test_a_sweep_that_is_to_go_on_begins_nothing_in_its_place(done, capsys):
    assert command(*SWEEP, "resume=true", "hydra.sweep.dir=other") == 1
    assert "none of these jobs was begun there" in capsys.readouterr().err and not (done / "other").exists()
    before = jobs_of(done / "sweep")
    assert command(*SWEEP, "resume=true", "statement.publisher=Town") == 1
    assert "none of these jobs was begun there" in capsys.readouterr().err and jobs_of(done / "sweep") == before
    assert command(*SWEEP, "resume=true", "privacy.epsilon=1,2,3") == 0, "more of them beside those that were begun"
    assert "which this total leaves out" not in capsys.readouterr().out
    assert command("run", *FAST[:-1], "hydra.run.dir=sweep/alone") == 0
    assert command(*SWEEP, "resume=true", "privacy.epsilon=1,2,3") == 0
    assert "releases of other jobs in sweep, which this total leaves out: 1" in capsys.readouterr().out


def test_a_sweep_whose_jobs_all_failed_may_be_started_again(town, capsys):
    table = (town / "town.csv").read_bytes()
    (town / "town.csv").write_bytes(table.replace(b"age", b"old", 1))
    assert "\n0 are done; again: " in reply(capsys, *SWEEP, code=1).err
    (town / "town.csv").write_bytes(table)
    assert command(*SWEEP) == 0


def test_a_sweep_in_the_folder_of_another_replaces_no_results(done, capsys):
    before = {p: p.read_bytes() for p in (done / "sweep").rglob("*") if p.is_file()}
    for again in ([], ["privacy.epsilon=3,4"], ["privacy.epsilon=2,3", "resume=true"], None):
        if again is None:  # as a sweep leaves them that was killed: the next one's total left out what they released
            for outcome in [p for p in before if p.name == "outcome.json"]:
                outcome.unlink()
                del before[outcome]
            again = ["privacy.epsilon=3,4"]
        said = reply(capsys, *SWEEP, *again, code=1).err
        assert said.count("error: ") == 1 and "sweep holds a sweep" in said and "are done" not in said
        assert "resume=true" in said and "hydra.sweep.dir=" in said
        assert {p: p.read_bytes() for p in (done / "sweep").rglob("*") if p.is_file()} == before


def test_a_sweep_that_is_started_again_skips_what_is_done_and_goes_on_with_the_rest(done, capsys, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(done / "none"))  # a row that is fetched lies in the sweep's folder
    first, second = (job / "internal" for job in jobs_of(done / "sweep"))
    (second / "outcome.json").unlink()
    when, ledger = (first / "outcome.json").stat().st_mtime_ns, (second / "ledger.jsonl").read_bytes()
    assert "1 of 2 jobs were done before" in reply(capsys, *SWEEP, "resume=true").err
    assert (first / "outcome.json").stat().st_mtime_ns == when
    assert outcome_of(second.parent).status == "done" and len(jobs_of(done / "sweep")) == 2
    assert (second / "ledger.jsonl").read_bytes() == ledger
    text = (done / "town.yaml").read_text()
    (done / "town.yaml").write_text(text.replace("max: 99", "max: 109"))
    assert "changed since the run began: schema" in reply(capsys, *SWEEP, "resume=true", code=1).err
    (done / "town.yaml").write_text(text)
    people(599).to_csv(done / "town.csv", index=False)
    assert "changed since the run began: data" in reply(capsys, *SWEEP, "resume=true", code=1).err


def test_jobs_with_several_bounds_of_whole_persons_are_done_once(town, capsys):
    """One file is a schema for each bound: the first job's stood for all, and the others were read and scored again."""
    unit = "unit: {column: person, order: age, records: {max: 3}}\n"
    (town / "town.yaml").write_text((town / "town.yaml").read_text() + unit)
    bounds = ["run", "-m", *FAST, "privacy.max_records=2,3"]
    assert command(*bounds) == 0
    assert "2 of 2 jobs were done before" in reply(capsys, *bounds, "resume=true").err


@pytest.mark.slow
def test_a_job_that_is_killed_takes_no_other_down(town, capsys, monkeypatch):
    """The first job's folder holds a pipe where its lock should be: it waits until it is killed."""
    assert command("run", "-m", *FAST, "privacy.epsilon=1,2", "limits.threads=1") == 0
    capsys.readouterr()
    first, second = jobs_of(town / "sweep")
    for folder in (first, second):
        (folder / "internal" / "outcome.json").unlink()
    lock = first / "internal" / "lock"
    lock.unlink()
    os.mkfifo(lock)
    again = [sys.executable, "-m", "pipeline", "run", "-m", *FAST, "privacy.epsilon=1,2", "resume=true"]
    process = subprocess.Popen(again, stderr=subprocess.PIPE, text=True)
    assert _in_time((second / "internal" / "outcome.json").exists) and _in_time(lambda: _at_work(first))
    for pid in _at_work(first):
        os.kill(pid, 9)
    _, error = process.communicate(timeout=300)
    assert process.returncode == 1
    assert "ended by signal 9" in error
    assert "1 of the sweep's 2 jobs failed" in error
    assert outcome_of(second).status == "done"


def waits_for_ever(town, name):
    """The folder of a job that waits at a pipe in the place of its lock."""
    (inside := town / "sweep" / name / "internal").mkdir(parents=True, mode=0o700)
    os.mkfifo(inside / "lock")
    return inside.parent


@pytest.mark.slow
def test_a_sweep_that_is_ended_deletes_what_was_shared_and_goes_on_where_it_was(town):
    waiting = waits_for_ever(town, "at-2")
    scored = [*TOWN, "synthesis=independent", "evaluation.metrics=[tvd]", "hydra.sweep.dir=sweep"]
    asked = ["run", "-m", *scored, "privacy.epsilon=1,2", "hydra.sweep.subdir=at-${privacy.epsilon}"]
    process = subprocess.Popen([sys.executable, "-m", "pipeline", *asked], stderr=subprocess.PIPE, text=True)
    shared = town / "sweep" / "internal" / "shared"
    assert _in_time(lambda: any(outcome_of(job) for job in jobs_of(town / "sweep")), 600)
    tables = [path.parent for path in shared.rglob("table.json")]
    assert tables and {stat.S_IMODE(p.stat().st_mode) for p in (shared, *tables)} == {0o700}
    process.send_signal(signal.SIGTERM)
    _, error = process.communicate(timeout=120)
    assert process.returncode == 143
    assert "interrupted" in error
    assert not shared.exists()
    (waiting / "internal" / "lock").unlink()
    assert command(*asked, "resume=true") == 0
    assert all(outcome_of(job).status == "done" for job in jobs_of(town / "sweep"))


@pytest.mark.slow
def test_no_job_outlives_a_sweep_that_is_killed(town):
    waiting = waits_for_ever(town, "at-1")
    asked = ["run", "-m", *FAST, "privacy.epsilon=1,2", "hydra.sweep.subdir=at-${privacy.epsilon}"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "start_new_session": True}
    process = subprocess.Popen([sys.executable, "-m", "pipeline", *asked], **quiet)

    try:
        assert _in_time(lambda: _at_work(waiting))
        process.kill()
        process.wait()
        assert _in_time(lambda: not _at_work(waiting))
    finally:
        os.killpg(process.pid, signal.SIGKILL)  # what waits there for other jobs


def _in_time(happens, seconds: float = 300.0) -> bool:
    until = time.monotonic() + seconds
    while not (found := happens()) and time.monotonic() < until:
        time.sleep(0.1)
    return found


def test_what_a_killed_sweep_left_is_deleted_when_it_is_resumed(tmp_path):
    left = tmp_path / "internal" / "shared" / "rows"
    left.mkdir(parents=True)
    with _opened(tmp_path):
        assert not left.exists()
    assert not left.parent.exists()


def test_a_part_of_others_that_ends_a_job_is_named_in_its_outcome(town, monkeypatch):
    """The job ended without an outcome, and the sweep did not know why."""
    monkeypatch.setattr(job_process, "_run", lambda *_: sys.exit(3))
    given = (load_config(TOWN), town, {}, town, os.getpid())
    job = multiprocessing.get_context("fork").Process(target=job_process._work, args=given)
    job.start()
    job.join()
    assert (outcome := outcome_of(town)) and "a plugin ended the command" in outcome.error


@pytest.mark.slow
def test_a_full_disk_fails_the_job_that_meets_it_and_no_other(town):
    def little_room():
        resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, 400_000))

    rows = "synthesis.rows=50,60000"
    sweep = [sys.executable, "-m", "pipeline", "run", "-m", *FAST, rows]
    ended = subprocess.run(sweep, preexec_fn=little_room, capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert "1 of the sweep's 2 jobs failed" in ended.stderr
    assert "cannot write synthetic.csv" in ended.stderr
    assert "resume=true" in ended.stderr
    assert len(list((town / "sweep").glob("*/release/synthetic.csv"))) == 1


def _at_work(folder: Path) -> list[int]:
    """The processes that write their output into the job's folder."""

    def works(process: Path) -> bool:
        try:
            return (process / "fd" / "1").readlink() == folder / "internal" / "output.log"
        except OSError:
            return False

    return [int(p.name) for p in Path("/proc").iterdir() if p.name.isdigit() and works(p)]


def test_a_shared_table_gives_the_same_release_as_a_run_of_its_own(town):
    same = [*TOWN, "seed=5", "privacy.unit=person", "privacy.max_records=2", "evaluation.enabled=false"]
    assert command("run", *same, "hydra.run.dir=alone") == 0
    assert command("run", "-m", *same, "privacy.epsilon=1,2", "hydra.sweep.dir=sweep") == 0
    alone = (town / "alone" / "release" / "synthetic.csv").read_bytes()
    assert alone in [(f / "release" / "synthetic.csv").read_bytes() for f in jobs_of(town / "sweep")]


def combined(*overrides):
    return planned_jobs.combinations(OverridesParser.create().parse_overrides(list(overrides)))


def test_a_sweep_is_the_product_of_its_values_and_the_last_setting_varies_fastest():
    product = [(f"a={a}", "b.c=x", f"d={d}") for a in (1, 2) for d in (0, 1)]
    assert combined("a=1,2", "b.c=x", "d=range(2)") == product
    assert combined("a=1,2", "b=3", "a=4") == [("a=4", "b=3")]
    product = [(f"+a={a}", "~b=null", "c={d:1}") for a in ("[x,y]", "k\\,\\ l")]
    assert combined("+a=choice([x,y],'k, l')", "~b", "c={d: 1}") == product
    assert combined() == [()]


def test_a_long_name_of_a_folder_begins_with_what_varies_and_differs_with_all():
    """Of folders whose names were cut, each looked like the next: only a digest differed."""
    fixed = f"data.path=/srv/{'long' * 40}.csv"
    names = [safe_name(f"{fixed},privacy.epsilon={e}", f"privacy.epsilon={e}") for e in (1, 2)]
    assert [n.rpartition("-")[0] for n in names] == ["privacy.epsilon=1", "privacy.epsilon=2"]
    assert safe_name(f"{fixed},privacy.epsilon=1,seed=3", "privacy.epsilon=1") not in names
    assert safe_name("privacy.epsilon=1,seed=3", "privacy.epsilon=1") == "privacy.epsilon=1,seed=3"


def test_memory_bounds_how_many_jobs_run_side_by_side_dear_ones_first_and_equal_ones_in_their_order(tmp_path):
    jobs = [Job((), {}, tmp_path, memory=m) for m in (3, 4, 2)]
    for cores, memory, together in ((8, 100, 3), (8, 9, 2), (8, 3, 1), (2, 100, 2)):
        assert side_by_side(jobs, cores=cores, memory=memory) == together
    jobs = [Job((), {"n": str(i)}, tmp_path, memory=m) for i, m in enumerate((1, 4, 1, 4))]
    assert [j.varied["n"] for j in longest_first(jobs)] == ["1", "3", "0", "2"]


def test_the_time_of_a_sweep_is_set_beside_that_of_its_jobs():
    jobs = [JobOutcome("done", "", seconds=s, cpu_seconds=s / 2, memory_mb=100 * s) for s in (4.0, 3.0, 1.0)]
    said = efficiency(jobs, wall=5.0, cores=2)
    assert "wall 5.0 s; jobs 8.0 s (processor 4.0 s) on 2 cores: efficiency 80%" in said
    assert "at most 700 MB" in said


def spent(jobs, folder=None, **further):
    """A line of results per (job, metric, ε), in a sweep's folder if one is given."""
    names, metrics, epsilons = (list(part) for part in zip(*jobs, strict=True))
    facts = {"job": names, "metric": metrics, "epsilon": epsilons, "spent_epsilon": epsilons, "spent_delta": 0.0}
    facts |= {"private": True, "seed": None, "status": "done", "data": "d", "method": "gum", "goal": "low"}
    facts |= {"score": [0.1 if m else None for m in metrics], "floor": None, "seconds": 1.0, "memory_mb": 1.0}
    table = pd.DataFrame(facts | {"error": ""} | further)
    if folder is not None:
        (folder / "internal").mkdir(parents=True)
        table.to_parquet(folder / "internal" / "results.parquet")
    return table


def test_a_sweep_says_no_less_than_its_sum_and_a_seed_is_named_as_what_gives_the_truth_away():
    jobs = [(job, "MGD", 1.0) for job in "abc"]
    said = total(spent(jobs, spent_epsilon=0.33333348, spent_delta=1.0041e-9, unit="one", neighbouring="add_remove"))
    assert said == "published together they spend at most ε = 1.00001, δ = 3.02e-09 on the same people"
    said = total(spent([("a", "MGD", 0.5), ("b", "MGD", 1.0)], private=False, seed=1))
    assert "2 of 2 are NOT private" in said and "at most" not in said
    assert "equal noise at two ε gives the truth away" in said


@pytest.mark.parametrize("kind", ["unit", "unit_rules", "neighbouring"])
def test_releases_that_promise_different_things_have_no_total(kind):
    said = total(spent([("a", "MGD", 1.0), ("b", "MGD", 1.0)], **{kind: ["one", "other"]}))
    assert "no total holds" in said and "one; other" in said and "at most" not in said
    assert "at most ε = 2" in total(spent([("a", "MGD", 1.0), ("b", "MGD", 1.0)], **{kind: ["one", "one"]}))


@pytest.mark.parametrize("rule", ["privacy.unit_id_rules=[case],[case,trim]", "privacy.missing_unit=drop,own"])
def test_jobs_that_tell_units_apart_by_other_rules_have_no_total(town, capsys, rule):
    """A ledger refuses to add them up: whoever is one unit under one rule may be two, or a part of one, elsewhere."""
    said = reply(capsys, "run", "-m", *FAST, "privacy.unit=person", "privacy.max_records=2", rule).out
    assert "no total holds" in said and "at most" not in said


def test_a_page_of_one_metric_or_of_folders_of_one_name_states_what_all_jobs_spent(tmp_path):
    folders = [tmp_path / "a" / "sweep", tmp_path / "b" / "sweep"]
    for folder, jobs in zip(folders, ([("x", "MGD", 1.0), ("y", None, 2.0)], [("x", "MGD", 4.0)]), strict=True):
        spent(jobs, folder)
    for metric in (None, "MGD"):
        assert "at most ε = 3," in render(folders[:1], metric=metric).read_text()
        assert "at most ε = 7," in render(folders, metric=metric).read_text()


def test_scores_of_either_form_become_rows_and_a_failed_job_has_one_with_its_reason(tmp_path):
    card = {"mgd": {"score": 0.1}, "tvd": {"rows": 3, "2-way": {"mean": 0.2}}}
    card |= {"metrics": {"density": {"score": 9.0, "goal": "high", "floor": {"value": 10.0}}, "gini": {"score": None}}}
    card["metrics"]["tvd"] = {"expected": {"value": 0.05}}  # by a formula, of pairs
    rows = {r["metric"]: r for r in metric_rows(card)}
    assert rows.keys() == {"MGD", "2-way TVD", "density"}
    assert (rows["2-way TVD"]["floor"], rows["MGD"]["floor"]) == (0.05, None)
    assert rows["density"] == {"metric": "density", "goal": "high", "score": 9.0, "floor": 10.0}
    job = Job((), {"privacy.epsilon": "1"}, tmp_path, load_config([]))
    table = results_table([(job, JobOutcome("failed", "", "out of memory\n  fix: less"))])
    assert table["error"].tolist() == ["out of memory"] and table["score"].isna().all()


def test_equal_settings_have_one_digest_whatever_a_continuation_changes():
    one, other = load_config([]), load_config(["resume=true", "limits.threads=1"])
    assert planned_jobs.digest(one) == planned_jobs.digest(other)
    assert planned_jobs.digest(one) != planned_jobs.digest(load_config(["privacy.epsilon=2"]))


def test_report_renders_a_sweep_again(swept, folder, capsys):
    shutil.copytree(swept[0], "sweep")
    page = folder / "sweep" / "internal" / "sweep.html"
    page.unlink()
    assert "NOT private" in reply(capsys, "report", "sweep").out
    assert page.exists()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["privacy.epsilon=1,2", "hydra.sweep.subdir=same"], "hydra.sweep.subdir: "),
        (["limits.threads=1,2"], "hydra.sweep.subdir: "),
        (["statement.publisher='A B','A_B'"], "hydra.sweep.subdir: "),
        (["statement.publisher='A',A"], "two jobs are statement.publisher=A"),
        (["hydra.sweep.subdir=${statement.publisher}", "statement.publisher=a,a/release"], "hydra.sweep.subdir: "),
        (["privacy.epsilon=1,2", "hydra.job.chdir=true"], "hydra.job.chdir: "),
        (["seed=1,2", "budget.ledger=out/internal/shared/a"], "lies in the sweep's internal/"),
        (["seed=1,2", "hydra.sweep.subdir=internal/shared/${seed}"], "lies in the sweep's internal/"),
    ],
)
def test_jobs_and_ledgers_in_a_folder_of_others_are_refused_before_anything_is_booked(town, capsys, given, said):
    """The second job of one folder was called done, with the release of the first; each booked a budget it never used.

    What lay in the sweep's internal/ was deleted at its end: bookings, and releases that were paid for.
    """
    ledger = ["budget.ledger=people.json", "budget.limit={epsilon: 9, delta: 1e-6}"]
    assert said in reply(capsys, "run", "-m", *FAST, *ledger, *given, "hydra.sweep.dir=out", code=1).err
    assert not Path("out").exists() and not Path("people.json").exists()
