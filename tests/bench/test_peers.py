"""The harness of the benchmark against peers: limits, medians, resuming, and who is said to win."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.bench.peers.__main__ import main, needed, rounds, settings, wanted_again
from tests.bench.peers.catalogue import PEERS, chosen
from tests.bench.peers.document import Kept, Measured, Summary, document, machine, refreshed, summary, verdict
from tests.bench.peers.drivers.exchange import delta_of, zcdp
from tests.bench.peers.measure import DRIVERS, REQUIREMENTS, Limits, Terms, run_limited
from tests.bench.peers.tables import Table
from tests.bench.tables_apart import parted

CHILD = "import subprocess, sys; subprocess.run([sys.executable, '-c', {!r}])"
TERMS = Terms(1.0, 30.0, 20.0, Path("build"))


def run(code: str, tmp_path: Path, seconds: float = 30.0, megabytes: float = 1000.0):
    return run_limited([sys.executable, "-c", code], Limits(seconds, megabytes), log=tmp_path / "log", every=0.05)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are watched through /proc")
def test_time_memory_and_processor_time_are_those_of_a_process_with_its_children(tmp_path):
    slow = run(CHILD.format("import time; time.sleep(60)"), tmp_path, seconds=0.5)
    assert slow.stopped == "time" and slow.seconds < 10 and slow.code < 0
    hungry = run(CHILD.format("import time; x = b'1' * 10**8; time.sleep(60)"), tmp_path, megabytes=80.0)
    assert hungry.stopped == "memory" and hungry.peak_mb > 80
    busy = run(CHILD.format("import time\nwhile time.process_time() < 0.1: pass"), tmp_path)
    assert (busy.stopped, busy.code) == ("", 0) and busy.cpu_seconds > 0.05


def test_a_failing_command_tells_its_code_and_its_words(tmp_path):
    spent = run("print('no such table'); raise SystemExit(3)", tmp_path)
    assert (spent.code, spent.stopped) == (3, "")
    assert "no such table" in (tmp_path / "log").read_text(encoding="utf-8")


def measured(cpu: float, two: float = 0.04, repeat: int = 0, **more) -> Measured:
    values = {"1-way": 0.01, "2-way": two, "3-way": 2 * two}
    return Measured("mbi-mst", "adult_codes", repeat, 1.0, cpu * 2, cpu, 100.0, values, **more)


def test_medians_leave_out_what_was_stopped():
    found = summary([measured(3.0), measured(1.0, 0.06), measured(2.0, 0.05), measured(99.0, stopped="after 1 minute")])
    assert (found.runs, found.cpu, found.spans["2-way"]) == (3, 2.0, (0.04, 0.06))
    assert found.values["2-way"] == 0.05
    assert summary([measured(99.0, failed="exit code 1")]) is None


def one(cpu: float, two: float, runs: int = 3) -> Summary:
    values = {"2-way": two, "3-way": 2 * two}
    return Summary(runs, cpu, cpu, 100.0, values, {k: (v, v) for k, v in values.items()})


def test_a_peer_that_wins_is_said_to_win_in_bold():
    said = verdict(one(10.0, 0.05), one(20.0, 0.04), "MST of X")
    assert said.startswith("MST of X: **the peer wins in 2-way error, by a factor of 1.25 (0.0500, the peer 0.0400)**")
    assert "ours wins in processor time, by a factor of 2 (10.0 s, the peer 20.0 s)" in said
    assert "one run" not in said
    assert "**the peer wins in processor time" in verdict(one(20.0, 0.04), one(10.0, 0.04), "MST of X")


def test_overlapping_repeats_are_no_win():
    wide = replace(one(10.0, 0.05), spans={"2-way": (0.03, 0.06), "3-way": (0.1, 0.1)})
    said = verdict(wide, one(10.1, 0.04, runs=1), "X")
    assert "equal in 2-way error (0.0500, the peer 0.0400)" in said
    assert "equal in processor time" in said
    assert "one run: small differences mean nothing" in said


def test_no_result_is_said_plainly():
    assert verdict(one(1.0, 0.1), None, "X") == "X: came to no result."
    assert verdict(None, one(1.0, 0.1), "X").startswith("**X has a result")


def test_results_are_kept_and_measured_again_only_where_that_could_help(tmp_path):
    path = tmp_path / "results.json"
    Kept(path).add(measured(1.0))
    Kept(path).add(measured(2.0))
    kept = Kept(path)
    assert [m.cpu_seconds for m in kept.all] == [2.0]
    assert not wanted_again(kept.find("mbi-mst", "adult_codes", 0, 1.0), TERMS)
    assert wanted_again(kept.find("mbi-mst", "adult_codes", 1, 1.0), TERMS)
    assert wanted_again(measured(1.0, stopped="after 10 minutes", minutes=10.0, gigabytes=20.0), TERMS)
    assert not wanted_again(measured(1.0, stopped="after 30 minutes", minutes=30.0, gigabytes=20.0), TERMS)
    assert wanted_again(measured(1.0, failed="exit code 1: no room"), TERMS)
    assert Kept(path, fresh=True).all == []


def test_slow_peers_run_last_and_once_and_everyone_else_in_turn():
    table = Table("adult_codes", Path("a"), Path("b"), 100, 3, (Path("a"), Path("a"), Path("a")))
    order = [(c.name, repeat) for c, _, repeat in rounds(chosen(["mbi"]), [table], 2)]
    assert order == [*((n, r) for r in range(2) for n in ("ours-mst", "ours-aim", "mbi-mst")), ("mbi-aim", 0)]
    large = [replace(table, name="acs")]
    assert [c.name for c, *_ in rounds(chosen(["dpmm-mst"]), large, 1)] == ["ours-mst"]
    assert [c.name for c, *_ in rounds(chosen(["dpmm-mst"]), large, 1, anywhere=True)] == ["ours-mst", "dpmm-mst"]
    assert needed(None, TERMS, 60.0) == 1800
    assert needed(measured(10.0), TERMS, 60.0) == 30


def test_every_peer_has_its_requirements_its_driver_and_a_rival():
    for peer in PEERS:
        assert (REQUIREMENTS / f"{peer.environment}.txt").is_file()
        assert (DRIVERS / f"{peer.driver}.py").is_file()
        assert peer.rival in {c.name for c in chosen([peer.name])}


def test_unknown_peers_tables_and_settings_are_named(capsys, tmp_path):
    assert main(["--peers=nobody", f"--root={tmp_path}"]) == 2
    assert "no peer is called 'nobody'" in capsys.readouterr().err
    assert main(["--tables=nowhere", f"--root={tmp_path}"]) == 2
    assert "no table is called 'nowhere'" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        settings(["--repeats=0"])


def test_the_page_shows_medians_ratios_winners_and_failures(tmp_path):
    kept = Kept(tmp_path / "results.json")
    kept.add(replace(measured(5.0, 0.03), contestant="ours-mst", versions={"numba": "1"}))
    kept.add(measured(20.0, 0.04, note="a remark"))
    kept.add(replace(measured(1.0), contestant="dpmm-mst", failed="exit code 1: no room"))
    kept.add(replace(measured(1800.0), contestant="mbi-aim", stopped="stopped after 30 minutes (1,800 processor s)"))
    terms = {"epsilon": 1.0, "minutes": 30.0, "gigabytes": 20.0, "command": "c", "date": "today", "machine": machine()}
    page = document(kept, {"adult_codes": (48_842, 15)}, terms)
    assert "| MST on mbi 2 | 1 | 0.0100 | 0.0400 | 0.0800 | 20.0 | 40.0 | 100 | 0.75 | 0.75 | 0.25 |" in page
    assert "MST of dpmm: exit code 1: no room" in page
    assert "| AIM on mbi 2 | 0 | stopped after 30 minutes (1,800 processor s) |" in page
    assert "MST of OpenDP: not measured yet." in page


def test_a_call_on_some_peers_leaves_the_other_sections_and_versions_as_they_are():
    old = "# B\n\nold\n\n## Scoring of a\n\n| 1 |\n\n## Versions\n\n- X: one 1\n- Y: two 2\n\n## Our own cases\n\n1\n"
    new = "# B\n\nnew\n\n## Scoring of a\n\n| 2 |\n\n## Scoring of b\n\n| 3 |\n\n## Versions\n\n- X: one 9\n"
    assert refreshed(old, new) == (
        "# B\n\nnew\n\n## Scoring of b\n\n| 3 |\n\n## Scoring of a\n\n| 2 |\n\n"
        "## Versions\n\n- X: one 9\n- Y: two 2\n\n## Our own cases\n\n1\n"
    )
    assert refreshed(old, old) == old


def test_long_tables_are_files_and_others_stay(tmp_path):
    cells = "## Every cell\n\n| a | b |\n| --- | --- |\n| x, y | 1 ± 2 |\n\n"
    page = f"# B\n\n{cells}## Failed aims\n\n| c |\n| - |\n"
    made = parted(page, tmp_path / "data")
    assert (tmp_path / "data/cells.csv").read_text(encoding="utf-8") == 'a,b\n"x, y",1 ± 2\n'
    assert made == "# B\n\n## Every cell\n\n[1 lines](data/cells.csv)\n\n## Failed aims\n\n| c |\n| - |\n"


def test_of_scoring_everyone_runs_after_all_of_ours_on_both_tables():
    names = [c.name for c in chosen(["sdmetrics", "mostlyai"])]
    assert names == ["ours-score", "ours-first", "ours-report", "ours-all", "sdmetrics", "mostlyai-qa"]
    assert not any(c.once for c in chosen(["sdmetrics", "mostlyai"]))


def test_the_peers_budget_is_the_tight_zcdp_conversion():
    rho = zcdp(1.0, 1e-9)
    assert delta_of(rho, 1.0) <= 1e-9 < delta_of(rho * 1.001, 1.0)
    assert 1 / (4 * 20.73) < rho < 0.02  # better than ε²/(4 ln 1/δ)
