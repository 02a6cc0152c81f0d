"""Questions to a release: marginals, ranges that cut bins, errors; pairs that were asked as residuals."""

import io
import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from mechanisms.public.domain import Attribute, Domain
from mechanisms.public.errors import UserError
from mechanisms.public.noise_kinds import NOISE_KINDS
from mechanisms.public.queries.cell_sums import ResidualQuery
from mechanisms.public.queries.query_matrices import Identity, SparseQuery
from mechanisms.public.release import Measurements, NoisyMarginal
from mechanisms.public.release_files import load_measurements
from mechanisms.public.rules.fine_columns import with_fine_columns
from mechanisms.public.schema.fine_cells import fine_codes, plain_edges
from mechanisms.public.schema.table_schema import parse_schema
from pipeline import Release, fit, load, query
from pipeline.inference.asked import answer as written_answer
from pipeline.inference.conditions import asked_ranges, code_weights, left_out
from pipeline.inference.decided import decided
from pipeline.inference.estimate_questions import EstimateQuestion as question
from pipeline.inference.estimates import estimate
from pipeline.inference.marginal_estimates import marginal_estimate
from pipeline.inference.noise_bounds import widest_reach
from pipeline.release_query import answer as query_answer
from pipeline.release_query import estimate_count, estimate_marginal
from pipeline.report.answer_noise import signal_to_noise
from pipeline.row_maker import RowMaker, build_condition
from pipeline.settings.config import QueryConfig
from pipeline.statement.verify import verify
from synthesis.independent import IndependentSpec
from synthesis.marginal_tables import marginal_tables
from tests.pipeline.conftest import PAIRS, TOWN, command, done_once, people, reply, statement_of

SHARP = [*TOWN, "privacy.epsilon=1000000", "privacy.delta=1e-3", "hydra.run.dir=out"]


def answer(clique, values, sigma, query=None):
    values = np.asarray(values, float)
    return NoisyMarginal(clique, query or Identity(values.size), values, "gaussian", sigma, "x")


TWO = Domain((Attribute("a", 2, 2), Attribute("b", 3)))


def test_a_marginal_is_the_mean_of_all_that_tell_by_precision_and_a_count_adds_cells_and_their_variances():
    known = Measurements(TWO, (answer(("a",), [10, 20], 1.0), answer(("a", "b"), [4, 4, 4, 6, 6, 6], 1.0)))
    found = estimate_marginal(known, ("a",))
    assert found.values == pytest.approx([(10 + 12 / 3) / (4 / 3), (20 + 18 / 3) / (4 / 3)])
    assert found.errors == pytest.approx([np.sqrt(3 / 4)] * 2)
    assert found.sources == (("a",), ("a", "b"))
    known = Measurements(TWO, (answer(("a", "b"), [1, 2, 3, 4, 5, 6], 2.0),))
    found = estimate_count(known, {"b": np.array([1.0, 0, 1]), "a": np.array([1.0, 0])})
    assert found[:2] == pytest.approx((4.0, 2.0 * np.sqrt(2)))


def test_other_queries_tell_what_their_answers_add_up_to_and_no_more():
    merged = SparseQuery.of(np.array([[1.0, 1.0, 0.0], [0.0, 0.0, 1.0]]))
    known = Measurements(TWO, (answer(("b",), [5, 7], 1.0, merged),))
    found = estimate_count(known, {"b": np.array([1.0, 1.0, 0.0])})
    assert found[:2] == pytest.approx((5.0, 1.0))
    with pytest.raises(UserError, match="no measured marginal tells b") as refused:
        estimate_marginal(known, ("b",))
    assert "b over coarser values" in str(refused.value)


def test_the_name_of_an_hour_is_that_hour_and_a_time_with_a_zone_is_read_as_its_clock_shows_it():
    hours = {"kind": "datetime", "min": "2024-01-01 00:00", "max": "2024-01-01 23:59", "bins": "hour"}
    schema = parse_schema({"columns": {"time": hours}, "confirmed_public": True}, where="t")
    nine = schema["time"].labels.index("2024-01-01 09")
    assert code_weights(schema, "time", "2024-01-01 09").nonzero()[0].tolist() == [nine]
    assert code_weights(schema, "time", ["2024-01-01 09", "2024-01-01 11"]).sum() == 2
    between = code_weights(schema, "time", ["2024-01-01 09:00", "2024-01-01 11:59:59"])
    assert between.sum() == pytest.approx(3, abs=0.01)
    hours |= {"bins": "hour_of_day"}
    schema = parse_schema({"columns": {"time": hours}, "confirmed_public": True}, where="t")
    for asked, held in (
        ([9, 11], [9, 10, 11]),
        ([22, 1], [0, 1, 22, 23]),
        (["9", "11"], [9, 11]),
        ([1, 3, 5], [1, 3, 5]),
    ):
        assert code_weights(schema, "time", asked).nonzero()[0].tolist() == held, "two numbers are a range"
    with pytest.raises(UserError, match="no value '25'"):
        code_weights(schema, "time", [9, 25])
    times = {"kind": "datetime", "min": "2016-01-01", "max": "2016-01-02", "bins": {"count": 4}}
    column = parse_schema({"columns": {"t": times}}, where="t")["t"]
    plain, zoned = (asked_ranges(column, [f"2016-01-01T0{h}:00{zone}" for h in (1, 2)], "t") for zone in ("", "+02:00"))
    assert plain == zoned and plain[0][1] - plain[0][0] == 3600


@pytest.mark.parametrize("kind", ["integer", "float"])
def test_a_number_that_no_float_holds_lies_beyond_every_bound(kind):
    schema = parse_schema({"columns": {"x": {"kind": kind, "min": 0, "max": 9, "bins": {"count": 5}}}}, where="t")
    for ends in ([0, 10**400], [-(10**400), 10**400]):
        assert code_weights(schema, "x", ends).sum() == 5
    with pytest.raises(UserError, match="column 'x'"):
        code_weights(schema, "x", 10**400)


def test_what_was_not_measured_is_refused_with_what_was_and_how_to_measure_it():
    known = Measurements(TWO, (answer(("a",), [1, 2], 1.0),))
    for asked, setting in ((("b",), '["b"]'), (("a", "b"), '["a","b"]')):
        with pytest.raises(UserError) as refused:
            estimate_marginal(known, asked)
        assert "ask for what was measured (a)" in str(refused.value)
        assert f"with {setting} in its list selection.marginals" in str(refused.value)


def test_standard_errors_of_both_kinds_are_those_of_repeated_noise():
    rng = np.random.default_rng(5)
    truth = np.array([400.0, 30.0, 5.0, 80.0, 300.0, 10.0])
    errors, stated = [], []
    for _ in range(60):
        drawn = Measurements(TWO, (answer(("a", "b"), truth + rng.normal(0, 8, 6), 8.0),))
        (table,) = marginal_tables(drawn)
        errors.append((table.consistent.ravel() - truth) ** 2)
        stated.append(table.consistent_error.ravel() ** 2)
    ratio = np.sqrt(np.mean(stated) / np.mean(errors))
    assert 0.7 < ratio < 1.4


def test_the_error_of_a_consistent_cell_covers_it_where_noise_is_larger_than_most_cells():
    rng = np.random.default_rng(6)
    fine = Domain((Attribute("a", 240), Attribute("b", 2)))
    covered, least = [], []
    for _ in range(8):
        shares = rng.gamma(0.3, size=240)
        truth = rng.multinomial(3000, shares / shares.sum()).astype(float)
        (table,) = marginal_tables(Measurements(fine, (answer(("a",), truth + rng.normal(0, 60, 240), 60.0),)))
        covered.append(np.abs(table.consistent - truth) <= 1.96 * table.consistent_error)
        least.append(table.consistent_error.min())
    assert 0.9 < np.mean(covered) < 0.99  # 0.80, with certain zeros, where noise is drawn around the consistent cells
    assert min(least) > 1


def test_a_release_holds_its_marginals_as_sealed_tables_and_answers_as_the_table_would(town, capsys):
    assert command("run", *SHARP) == 0
    folder = town / "out" / "release" / "marginals"
    index = pd.read_csv(folder / "index.csv")
    assert set(index["marginal"]) == {"age", "age (fine)", "sex", "job", "age × sex", "age × job", "sex × job"}
    table = pd.read_csv(folder / index.set_index("marginal").loc["sex × job", "file"])
    assert list(table.columns[2:]) == ["noisy", "noisy_standard_error", "consistent", "consistent_standard_error"]
    real = people(600).groupby(["sex", "job"]).size()
    for row in table.itertuples():
        assert (row.noisy, row.consistent) == pytest.approx([real.get((row.sex, row.job), 0)] * 2, abs=1)
    assert "marginals/index.csv" in json.loads((town / "out" / "internal" / "release.json").read_text())
    (town / "town.csv").unlink()
    shutil.rmtree(town / "out" / "internal")
    real = people(600)
    table = pd.read_csv(io.StringIO(reply(capsys, "query", "from=out/release", "marginal=[sex]").out)).set_index("sex")
    assert table["count"].to_dict() == pytest.approx(real["sex"].value_counts().to_dict(), abs=1)
    inside = real["age"].between(20, 49) & (real["sex"] == "f")
    assert command("query", "from=out/release", "where={age: [20, 49], sex: [f]}", "output=answer.csv") == 0
    (count,) = pd.read_csv("answer.csv")["count"]
    assert count == pytest.approx(inside.sum(), abs=1)
    half = query(town / "out" / "release", where={"age": [20, 24]})["count"][0]
    assert half == pytest.approx(real["age"].between(20, 24).sum(), abs=1), "by its fine cells"


@pytest.mark.parametrize(
    ("name", "form"),
    [("q.json", "csv"), ("q.csv.gz", "csv"), ("Q.PARQUET", "csv"), ("q.csv", "json"), ("q.csv.gz", "json")],
)
def test_an_answer_is_not_written_under_the_name_of_another_format(name: str, form: str, tmp_path: Path):
    """`output=q.csv.gz` was plain text, which no reader of such a name takes."""
    with pytest.raises(UserError, match=f"would hold {form}"):
        written_answer(tmp_path, QueryConfig(output=name, format=form))


def test_a_marginal_that_stands_in_no_measured_one_is_answered_by_each_solution(town, capsys):
    pairs = "selection.marginals=[[age,sex],[sex,job]]"
    off = ["evaluation.enabled=false", "synthesis=independent"]
    assert command("run", *SHARP, pairs, *off) == 0
    own = ["query", "from=out/release", "marginal=[age,sex,job]"]
    assert "solution=maxent" in reply(capsys, *own, code=1).err
    found = {}
    for word in ("maxent", "least_norm", "leastnorm", "linear"):
        told = reply(capsys, *own, f"solution={word}")
        assert "its error is not known" in told.err
        found[word] = pd.read_csv(io.StringIO(told.out))
        assert list(found[word].columns) == ["age", "sex", "job", "count", "how"]
        assert set(found[word]["how"]) == {word.replace("leastn", "least_n")}
        pair = query("out/release", marginal=["sex", "job"]).set_index(["sex", "job"])["count"]
        sides = found[word].groupby(["sex", "job"])["count"].sum()
        assert np.abs(sides - pair.reindex(sides.index)).max() < 2
    counts = {w: f["count"].to_numpy() for w, f in found.items()}
    assert (counts["leastnorm"] == counts["least_norm"]).all()
    assert np.abs(counts["maxent"] - counts["least_norm"]).sum() > 5
    assert np.abs(counts["maxent"] - counts["linear"]).sum() > 5
    release = load("out")
    same = release.marginal(["age", "sex", "job"], solution="maxent")
    assert same["count"].to_numpy() == pytest.approx(counts["maxent"], abs=0.01)
    for held, how in ((["age", "sex"], "measured"), (["age"], "inside a measured marginal")):
        answers = [release.marginal(held, solution=word) for word in ("maxent", "least_norm", "linear")]
        assert all(a.equals(answers[0].assign(how=a["how"])) and set(a["how"]) == {how} for a in answers), held
        assert answers[2].attrs["sources"] == ["age × sex"]
        assert "solution=linear is not needed" in answers[2].attrs["notes"][0]
    halves = SparseQuery.of(np.kron(np.eye(2), [[1.0, 1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 1.0, 1.0, 1.0]]))
    coarse = Measurements(release.schema.measured, (answer(("sex", "job"), [100, 200, 50, 250], 1.0, halves),))
    for asked, how in ((["sex", "job"], "measured over coarser values"), (["age", "sex"], "maxent")):
        found = query_answer(release.schema, coarse, marginal=asked, solution="maxent")
        assert set(found["how"]) == {how} and "its error is not known" in found.attrs["notes"][0]
        assert ("nothing was measured of age: spread evenly" in found.attrs["notes"]) == (how == "maxent")
    capsys.readouterr()
    for name, how in (("age,sex", "measured"), ("age,job", "linear")):
        assert command("query", "from=out/release", f"marginal=[{name}]", "solution=linear", "format=json") == 0
        facts = json.loads(capsys.readouterr().out)
        assert {row["how"] for row in facts["answer"]} == {how} and facts["sources"][0] == "age × sex"
        assert len(facts["notes"]) == 2 and ("is not needed" in facts["notes"][1]) == (how == "measured")


PAIR = ("age", "job")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    settings = ["selection=auto", "privacy.epsilon=20", "seed=3", "evaluation.enabled=false", "hydra.run.dir=out"]
    return done_once(tmp_path_factory.mktemp("residuals"), "run", *TOWN, *settings) / "out"


def test_a_residual_costs_its_part_and_has_less_noise(run):
    """The ledger booked μ = sensitivity / σ of each answer; all of them together are the stated ε."""
    known = load_measurements(run / "release" / "measurements")
    asked = [a for a in known.answers if isinstance(a.query, ResidualQuery)]
    assert any(a.clique == PAIR for a in asked)
    said = statement_of(run)
    events = {e["id"]: e for e in said["events"]}
    for answer in asked:
        event = events[answer.event]
        norm = answer.query.largest_column_norm("l2")
        assert norm <= event["sensitivity"] <= norm * (1 + 1e-12) < 1
        share = (event["sensitivity"] / event["scale"]) ** 2
        assert answer.query.noise(answer.stddev) < 0.9 / np.sqrt(share)  # of all cells for the same share
    assert said["spent"]["epsilon"] == pytest.approx(20, rel=1e-3)
    unsound = [c.name for c in verify(run / "release").checks if c.holds is False]
    assert unsound == ["private"]  # for its fixed seed alone


def test_the_release_tells_the_pair_like_any_other(run):
    release: Release = load(run / "release")
    table = release.marginal(PAIR)
    assert len(table) == 50 and table["count"].sum() == pytest.approx(600, abs=20)
    counted = release.estimate("count", by=PAIR)
    assert (counted["how"] == "measured").all()
    assert counted["standard_error"].to_numpy() == pytest.approx(table["standard_error"].to_numpy(), abs=0.006)
    assert len(release.sample(50, seed=1)) == 50
    bound = release.bounds(PAIR)
    assert bound["how"].tolist() == ["measured"]


AB = Domain((Attribute("a", 6), Attribute("b", 5)))
TRUTH = np.random.default_rng(1).integers(20, 400, (6, 5)).astype(float)
ASKED = [(("a",), Identity(6), TRUTH.sum(axis=1), 9.0), (("b",), Identity(5), TRUTH.sum(axis=0), 7.0)]
ASKED.append((("a", "b"), ResidualQuery((6, 5)), TRUTH.ravel(), 4.0))


def release_of(seed: int, factor: float = 1.0) -> Measurements:
    """A release whose noise is so many times what it says."""
    rng, made = np.random.default_rng(seed), []
    for clique, matrix, cells, sigma in ASKED:
        exact = matrix.answer(cells)
        values = exact + rng.normal(0, sigma * factor, exact.size)
        made.append(NoisyMarginal(clique, matrix, values, "gaussian", sigma, "x"))
    return Measurements(AB, tuple(made))


@pytest.mark.parametrize("large", [False, True])
def test_the_noise_of_all_cells_is_bounded_as_stated(monkeypatch, large):
    if large:
        monkeypatch.setattr("pipeline.inference.marginal_estimates.SIMULATED_CELLS", 1)
    bound = marginal_estimate(release_of(0), ("a", "b")).sum_bound(0.05)
    off = [np.abs(marginal_estimate(release_of(s), ("a", "b")).values - TRUTH.ravel()).sum() for s in range(1_000)]
    assert stats.binom.sf((np.array(off) > bound).sum() - 1, 1_000, 0.05) > 1e-4
    if not large:  # Cantelli's inequality stands above the quantile by design
        assert stats.binom.sf((1.3 * np.array(off) > bound).sum() - 1, 1_000, 0.05) < 1e-4
    assert bound < 2 * np.mean(off)


def test_each_cell_and_each_sum_has_the_error_that_is_told():
    known = marginal_estimate(release_of(0), ("a", "b"))
    rows = np.zeros((2, 30))
    rows[0, :5], rows[1, ::5] = 1.0, 1.0  # a row and a column of the pair: what its sides tell
    values = np.array([marginal_estimate(release_of(s), ("a", "b")).values for s in range(1_000)])
    assert values.std(axis=0).mean() == pytest.approx(known.errors[0], rel=0.05)
    sums = values @ rows.T
    assert sums.std(axis=0) == pytest.approx([known.spread(r) for r in rows], rel=0.1)
    assert np.cov(sums.T)[0, 1] == pytest.approx(known.covariance(rows)[0, 1], abs=0.1 * np.prod(sums.std(axis=0)))
    assert known.spread(rows[0]) < 9.0


def test_a_pair_whose_residual_was_asked_counts_as_measured_in_every_cell():
    found = decided(release_of(0))
    assert (found.pairs, found.measured, found.coarse) == (1, 1, 0) and found.noise is not None
    signal = {answer.clique: (answer, mean) for answer, mean, _ in signal_to_noise(release_of(0))}
    told, mean = signal["a", "b"]
    assert isinstance(told.query, Identity) and mean == pytest.approx(TRUTH.mean(), rel=0.1)


def test_ends_of_dates_may_be_written_as_the_column_is_and_years_as_numbers():
    """[1950, 1959] was these two years, a fifth of the persons that were meant; 01.01.1950 no value."""
    born = {"kind": "date", "min": "1948-01-01", "max": "1961-12-31", "format": "%d.%m.%Y", "bins": "year"}
    schema = parse_schema({"columns": {"born": born}}, where="a test")
    for ends in (["01.01.1950", "31.12.1959"], [1950, 1959], ["1950-01-01", "31.12.1959"]):
        assert code_weights(schema, "born", ends)[:14].tolist() == [0] * 2 + [1] * 10 + [0] * 2, ends
    assert code_weights(schema, "born", ["1950", "1959"]).sum() == 2, "names of bins are values"
    assert left_out(schema["born"], ["1950", "1959"]) == [
        "born: 1950 and 1959 are two bins; a range has two dates as its ends"
    ]
    assert left_out(schema["born"], [1950, 1959]) == left_out(schema["born"], "1950") == []


def test_two_names_of_bins_are_no_range_of_new_rows_either_and_digits_have_no_near_name(folder, capsys):
    days = {"kind": "date", "min": "2020-01-01", "max": "2020-12-31", "bins": "month", "missing": False}
    frame = pd.DataFrame({"day": pd.date_range("2020-01-01", "2020-12-31")})
    fit(frame, {"columns": {"day": days}, "confirmed_public": True}, epsilon=100, quiet=True).save("made")
    asked = ["from=made", "synthesis.rows=20"]
    said = reply(capsys, "synth", *asked, "where={day: [2020-03, 2020-07]}", "output=again")
    assert "day: 2020-03 and 2020-07 are two bins; a range has two dates as its ends" in said.out + said.err
    said = reply(capsys, "synth", *asked, "where={day: ['2020', '2021']}", "output=more", code=1)
    assert "did you mean" not in said.err and "[low, high], or values such as 2020-01" in said.err


def test_a_refused_range_of_times_says_how_its_column_writes_them():
    """08:00, where a table writes 08:00:00, was told to be [low, high], which it was."""
    clock = {"kind": "datetime", "min": "1900-01-01", "max": "1900-01-01", "format": "%H:%M:%S"}
    clocks = parse_schema({"columns": {"called": clock}}, where="clocks")
    assert code_weights(clocks, "called", ["08:00:00", "08:59:59"]).sum() == 1
    with pytest.raises(UserError) as refused:
        code_weights(clocks, "called", ["08:00", "12:00"])
    assert "[low, high] in the form %H:%M:%S, or values such as" in str(refused.value)


def test_days_in_the_wrong_order_are_refused_as_they_were_written():
    day = {"kind": "date", "min": "2024-01-01", "max": "2024-12-31", "bins": "month", "format": "%d/%m/%Y"}
    column = parse_schema({"columns": {"day": day}}, where="t")["day"]
    with pytest.raises(UserError, match=r"got \[31/12/2024, 2024-01-01\]"):
        asked_ranges(column, ["31/12/2024", "2024-01-01"], "day")


def test_a_range_up_to_a_multiple_on_an_edge_holds_a_part_of_the_bin_that_begins_there():
    x = {"kind": "float", "min": 0, "max": 1, "bins": {"count": 5}, "multiple_of": 0.05, "missing": False}
    schema = parse_schema({"columns": {"x": x}, "confirmed_public": True}, where="x.yaml")
    for asked, weights in (
        ([0.2, 0.4], [0, 1, 0.25, 0, 0]),
        ([0.4, 0.4], [0, 0, 0.25, 0, 0]),
        ([1, 1], [0] * 4 + [0.25]),
        ([0.2, 0.35], [0, 0.75, 0, 0, 0]),
    ):
        np.testing.assert_allclose(code_weights(schema, "x", asked), weights, atol=1e-12)
        assert left_out(schema["x"], asked) == []


def test_rows_hold_nothing_between_two_multiples_or_two_numbers_of_so_many_decimals():
    """A pay of 1004 was made where all are multiples of 10, and a mark of 6.5465 where two decimals are written."""
    pay = {"kind": "integer", "min": 0, "max": 1999, "bins": {"count": 4}, "multiple_of": 10, "missing": False}
    mark = {"kind": "float", "min": 0, "max": 10, "bins": {"count": 10}, "decimals": 2, "missing": False}
    at = {"kind": "datetime", "min": "2024-01-01", "max": "2024-02-29", "bins": "month", "multiple_of": 60}
    frame = pd.DataFrame({"pay": np.arange(200) * 10 % 2000, "mark": np.arange(200) / 20})
    frame["at"] = pd.date_range("2024-01-01", periods=200, freq="6h")
    columns = {"pay": pay, "mark": mark, "at": {**at, "missing": False}}
    release = fit(frame, {"columns": columns, "confirmed_public": True}, epsilon=100, quiet=True)
    between = {"pay": [1001, 1009], "mark": [6.543, 6.547], "at": ["2024-01-02 10:00:10", "2024-01-02 10:00:50"]}
    for where in [*({name: own} for name, own in between.items()), {"pay": 1004}, {"pay": [1004, 1005, 1006]}]:
        with pytest.raises(UserError, match="has no value there"):
            release.sample(3, where=where)
    with pytest.raises(UserError, match="'pay' has no value that is missing"):
        release.sample(pd.DataFrame({"pay": [500, None]}))
    assert set(release.sample(60, where={"pay": [491, 505]}).pay) == {500}, "none of the bin below, which ends at 499"
    assert set(release.sample(60, where={"pay": [500, 504, 510]}).pay) == {500, 510}
    assert set(release.sample(60, where={"mark": [6.543, 6.557]}).mark) == {6.55}


def test_a_number_is_asked_for_as_its_table_writes_it_too():
    """A release wrote 4,5, and where={mark: "4,5"} had no such value."""
    x = {"kind": "float", "bins": {"edges": [0, 4.5, 5, 1500]}, "decimals": 1, "decimal": ",", "strip": ["."]}
    schema = parse_schema({"columns": {"x": {**x, "missing": ["n,a"]}}, "confirmed_public": True}, where="x.yaml")
    for asked, same in ((["4,5", "4,9"], [4.5, 4.9]), (["0", "1.200,5"], [0, 1200.5]), ("n,a", None)):
        np.testing.assert_array_equal(code_weights(schema, "x", asked), code_weights(schema, "x", same))
    for text in ("4.5", "four"):
        with pytest.raises(UserError, match=f"no value '{text}'"):
            code_weights(schema, "x", text)


def test_a_bin_of_one_value_is_asked_for_by_this_value():
    """Of incomes with a bin for 0, as drafts have it, 0 had "no width", and [0, 0], which was advised, "no value"."""
    x = {"kind": "float", "bins": {"edges": [-5, 0, 0.01, 200]}, "decimals": 2, "missing": False}
    schema = parse_schema({"columns": {"x": x}, "confirmed_public": True}, where="x.yaml")
    for asked, weights in ((0, [0, 1, 0]), ([0, 0], [0, 1, 0]), ([-5, 0], [1, 1, 0]), ([-5, -1], [0.8, 0, 0])):
        np.testing.assert_allclose(code_weights(schema, "x", asked), weights, atol=1e-12)
        assert left_out(schema["x"], asked) == []
    for other in (7, -5):
        with pytest.raises(UserError, match="no width"):
            code_weights(schema, "x", other)


def test_a_range_of_floats_up_to_an_edge_says_that_it_leaves_out_what_lies_on_it(folder):
    x = {"kind": "float", "min": 0, "max": 1, "bins": {"count": 4}, "decimals": 2, "missing": False}
    schema = {
        "columns": {"x": x, "y": {"kind": "flag", "missing": False}},
        "confirmed_public": True,
        "source": "a form",
    }
    rows = pd.DataFrame({"x": np.tile([0.3, 0.5, 0.9], 200), "y": np.tile([True, False], 300)})
    release = fit(rows, schema, epsilon=9, delta=1e-6, selection="oneway", quiet=True)
    said = "x: a value of exactly 0.5 lies in the bin above, and is not counted"
    asked = release.estimate("proportion", "x", value=[0.25, 0.5]), release.count({"x": [0.25, 0.5]})
    assert all(said in answer.attrs["notes"] for answer in asked)
    for ends in ([0.25, 0.6], [0.25, 1]):
        assert said not in release.estimate("proportion", "x", value=ends).attrs["notes"]


AGES = parse_schema(
    {
        "columns": {
            "age": {"kind": "integer", "min": 0, "max": 119, "bins": {"count": 6}, "missing": False},
            "fare": {"kind": "float", "min": 0, "max": 100, "bins": {"edges": [0, 10, 100]}, "missing": False},
            "sex": {"kind": "categorical", "values": ["f", "m"], "missing": True},
        }
    },
    where="s",
)


def worded(ages, fares=(900.0, 100.0), sigma=5.0):
    """Noisy answers without luck: the counts themselves."""
    answers = [
        NoisyMarginal(("age",), Identity(6), np.array(ages, float), "gaussian", sigma, "x"),
        NoisyMarginal(("fare",), Identity(2), np.array(fares, float), "gaussian", sigma, "y"),
        NoisyMarginal(("sex",), Identity(3), np.array([40.0, 50, 10]), "gaussian", sigma, "z"),
    ]
    return Measurements(AGES.measured, tuple(answers))


NOISE = 1.96 * 5


def test_rows_of_a_condition_that_nobody_may_satisfy_are_called_guesses():
    known = worded([500.0, 300, 100, 60, 9, 11])
    maker = RowMaker(AGES, known, IndependentSpec(), np.random.default_rng(0))
    for ages, alone in (([80, 99], True), ([100, 119], False), ([0, 99], False)):
        notes = maker.notes(build_condition(AGES, {"age": ages}))
        assert bool(notes) == alone and all("so that there may be none" in note for note in notes)


@pytest.mark.parametrize(
    ("where", "count", "low", "high", "cut"),
    [
        # only the table knows how many of the 110 records from 100 to 119 are at most 110: all of them, or none
        ({"age": [80, 110]}, 60 + 110 * 11 / 20, 60 - NOISE, 170 + NOISE * np.sqrt(2), "age: 100 to 119"),
        ({"fare": [50, 60]}, None, 0, 100 + NOISE, "fare: 10 to 100"),
        ({"age": [20, 59]}, 600, 600 - NOISE * np.sqrt(2), 600 + NOISE * np.sqrt(2), ""),  # its noise alone
    ],
)
def test_a_range_that_cuts_a_bin_may_hold_all_of_it_and_one_of_whole_bins_has_the_interval_of_its_noise(
    where, count, low, high, cut
):
    row = query_answer(AGES, worded([300.0, 400, 200, 80, 60, 110]), where=where).iloc[0]
    assert row["cut"] == cut and (count is None or row["count"] == pytest.approx(count, abs=0.01))
    assert (row["low"], row["high"]) == pytest.approx((low, high), abs=0.02)


@pytest.mark.parametrize(("noise", "errors"), [("laplace", np.log(20) / np.sqrt(2)), ("gaussian", 1.96)])
def test_an_interval_holds_95_percent_of_its_noise_of_either_kind(noise, errors):
    answers = tuple(replace(a, noise=noise, scale=5.0) for a in worded([300.0, 400, 200, 80, 60, 110]).answers)
    asked = (
        query_answer(AGES, Measurements(AGES.measured, answers), marginal=["sex"]),
        query_answer(AGES, Measurements(AGES.measured, answers), where={"sex": "f"}),
        query_answer(AGES, Measurements(AGES.measured, answers), where={"fare": [10, 100]}),
    )
    for rows in asked:
        count, error, low, high = rows[["count", "standard_error", "low", "high"]].to_numpy(float).T
        assert high - count == pytest.approx(errors * error, abs=0.03)
        assert count - low == pytest.approx(errors * error, abs=0.03)


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_no_sum_of_noise_goes_beyond_the_widest_reach_more_often(noise):
    rng = np.random.default_rng(3)
    draws = NOISE_KINDS[noise].simulate(rng, 1.0, 3 * 400_000).reshape(3, -1)
    for weights in ((1, 0, 0), (1, 0.3, 0), (1, 1, 0), (1, -0.5, 0.2), (1, 1, 1)):
        sums = np.array(weights) @ draws
        for alpha in (0.05, 0.01):
            reach = widest_reach(noise, alpha) * NOISE_KINDS[noise].stddev * np.linalg.norm(weights)
            assert (np.abs(sums) > reach).mean() <= alpha * 1.03


def test_columns_called_as_figures_are_keep_their_values_in_brackets():
    names = ["count", "(count)", "low", "high", "standard_error", "cut", "how", "estimate"]
    flag = {"kind": "categorical", "values": ["p", "q"], "missing": False}
    schema = parse_schema({"columns": dict.fromkeys(names, flag)}, where="s")
    pairs = [("count", "(count)"), ("low", "high"), ("standard_error", "cut"), ("how", "estimate")]
    answers = tuple(answer(schema.measured.canonical(pair), [4.0, 3.0, 2.0, 1.0], 0.1) for pair in pairs)
    release = Measurements(schema.measured, answers)
    for pair in pairs:
        tables = [query_answer(schema, release, marginal=pair, solution=how) for how in (None, "maxent")]
        tables.append(estimate(schema, release, question("count", by=pair)))
        for table in tables:
            assert table.iloc[:, :2].to_numpy().tolist() == [["p", "p"], ["p", "q"], ["q", "p"], ["q", "q"]]
            assert table.columns.is_unique
        row = query_answer(schema, release, where={pair[0]: "p", pair[1]: "q"})
        assert row.iloc[0, :2].tolist() == ["p", "q"] and row["count"].item() == pytest.approx(3.0)
    assert [*query_answer(schema, release, marginal=["count", "(count)"])][:3] == ["(count)", "((count))", "count"]


def test_one_value_and_lists_of_values_are_asked_alike():
    known = worded([300.0, 400, 200, 80, 60, 110])
    assert query_answer(AGES, known, where={"age": 25})["count"][0] == 20
    assert query_answer(AGES, known, where={"age": [25, 26, 45]})["count"][0] == 50
    assert query_answer(AGES, known, where={"sex": None})["count"][0] == 10
    assert query_answer(AGES, known, where={"sex": ["f", "missing"]})["count"][0] == 50


def test_answers_of_merged_bins_tell_no_part_of_them():
    halves = SparseQuery.of(np.kron(np.eye(2), np.ones(3)))
    answers = (NoisyMarginal(("age",), halves, np.array([900.0, 250]), "gaussian", 5.0, "x"),)
    known = Measurements(AGES.measured, answers)
    assert query_answer(AGES, known, where={"age": [0, 59]})["count"][0] == 900
    with pytest.raises(UserError, match="over coarser values"):
        query_answer(AGES, known, where={"age": [0, 20]})


CHARGES = with_fine_columns(
    parse_schema(
        {
            "columns": {
                "charge": {"kind": "float", "min": 0, "max": 100_000, "bins": {"count": 20}, "decimals": 2},
                "stay": {"kind": "integer", "min": 0, "max": 199, "bins": {"count": 10}, "missing": False},
                "sex": {"kind": "categorical", "values": ["f", "m"], "missing": False},
            }
        },
        where="s",
    ),
    256,
)


def stays(rows=20_000):
    rng = np.random.default_rng(4)
    charge = np.where(rng.random(rows) < 0.1, 1_500.0, np.round(np.exp(rng.normal(7.5, 1.0, rows)), 2))
    stay = rng.geometric(0.08, rows).clip(0, 199)
    return pd.DataFrame({"charge": charge.clip(0, 100_000), "stay": stay, "sex": rng.integers(0, 2, rows)})


def noisy_answers(table, rng, sigma=15.0):
    """Answers about every column, its fine cells, and stay by sex, as a run would leave them."""
    cells, answers = {}, []
    for name, column in ((n, CHARGES[n]) for n in ("charge", "stay")):
        bins = np.searchsorted(plain_edges(column), table[name], side="right") - 1
        cells[name] = np.minimum(bins, column.value_codes - 1)
        cells[f"{name} (fine)"] = fine_codes(column, cells[name], table[name].to_numpy(float))
    cells["sex"] = table.sex.to_numpy()
    for clique in (("charge",), ("charge (fine)",), ("stay",), ("stay (fine)",), ("stay", "sex")):
        shape = CHARGES.measured.shape(clique)
        counts = np.bincount(np.ravel_multi_index([cells[n] for n in clique], shape), minlength=np.prod(shape))
        values = counts + sigma * rng.standard_normal(counts.size)
        answers.append(NoisyMarginal(clique, Identity(counts.size), values, "gaussian", sigma, "-".join(clique)))
    return Measurements(CHARGES.measured, tuple(answers))


@pytest.mark.slow
def test_a_range_that_cuts_bins_is_counted_by_fine_cells_and_its_interval_holds_the_truth():
    table, rng = stays(), np.random.default_rng(5)
    inside, widths, errors = [], [], []
    for _ in range(200):
        known = noisy_answers(table, rng)
        for name, top in (("charge", 20_000), ("stay", 60)):
            low, high = np.sort(rng.uniform(0, top, 2)).round(2 if name == "charge" else 0).tolist()
            row = query_answer(CHARGES, known, where={name: [low, high]}).iloc[0]
            truth = table[name].between(low, high).sum()
            inside.append(row["low"] <= truth <= row["high"])
            widths.append(row["high"] - row["low"])
            errors.append(abs(row["count"] - truth))
    assert np.mean(inside) >= 0.95
    assert np.median(widths) < 600 and np.median(errors) < 120, "bins alone: intervals of thousands of records"


@pytest.mark.parametrize(
    ("name", "value"), [("charge", [500.0, 7_000.0]), ("stay", [3, 11]), ("charge", [5_000.0, 10_000.0])]
)
def test_a_query_and_an_estimate_of_one_range_say_which_cells_each_counted_and_that_they_may_differ(name, value):
    known = noisy_answers(stays(), np.random.default_rng(7))
    finely = query_answer(CHARGES, known, where={name: value})
    by_bins = estimate(CHARGES, known, question("count", name, value=value))
    assert finely["count"][0] != by_bins["estimate"][0]
    (said,) = finely.attrs["notes"]
    assert f"fine cells of {name}; estimate=count" in said and "may give another answer" in said
    by_cells = f"where={{{name}: {value}}} counts by its fine cells"
    assert f"counted by the bins of {name}; {by_cells}" in by_bins.attrs["notes"][-1]


def test_of_one_way_to_count_nothing_is_said():
    known = noisy_answers(stays(), np.random.default_rng(7))
    whole = query_answer(CHARGES, known, where={"stay": [20, 39]})
    counted = estimate(CHARGES, known, question("count", "stay", value=[20, 39]))
    assert whole["count"][0] == pytest.approx(counted["estimate"][0], abs=0.01)
    assert "notes" not in whole.attrs and not any("another answer" in n for n in counted.attrs["notes"])


def test_a_range_of_whole_numbers_cuts_no_fine_cell_and_has_the_interval_of_its_noise():
    known = [noisy_answers(stays(), np.random.default_rng(seed)) for seed in range(60)]
    told = pd.concat([query_answer(CHARGES, k, where={"stay": [3, 11]}) for k in known])
    truth = stays().stay.between(3, 11).sum()
    assert (told["cut"] == "").all() and told.low.le(truth).mul(told.high.ge(truth)).mean() >= 0.9
    assert told["count"].std() == pytest.approx(told["standard_error"].iloc[0], rel=0.3)
    assert (told["high"] - told["low"]).iloc[0] == pytest.approx(3.92 * told["standard_error"].iloc[0], abs=0.1)


def test_an_end_on_a_peak_holds_the_peak_or_not():
    """2,000 charges are 1,500.00; whether a range that ends there has them, its fine cell does not tell."""
    table, known = stays(), noisy_answers(stays(), np.random.default_rng(6))
    for low, high in ((700, 1_500), (700, 1_499.99), (1_500, 2_600)):
        row = query_answer(CHARGES, known, where={"charge": [low, high]}).iloc[0]
        assert row["low"] <= table.charge.between(low, high).sum() <= row["high"]


def test_a_cut_bin_among_other_conditions_counts_by_the_columns_curve_and_keeps_the_wide_interval():
    table = stays()
    truth = ((table.stay <= 6) & (table.sex == 1)).sum()
    first = ((table.stay < 20) & (table.sex == 1)).sum()
    known = [noisy_answers(table, np.random.default_rng(seed)) for seed in range(40)]
    told = pd.concat([query_answer(CHARGES, k, where={"stay": [0, 6], "sex": "m"}) for k in known])
    assert (told["count"] - truth).abs().max() < 0.05 * first, "spread evenly it would be 35 % of the first bin"
    assert abs(0.35 * first - truth) > 0.1 * first
    assert (told["low"] <= 0).all() and (told["cut"] == "stay: 0 to 19").all()
    assert (told["high"] >= first).mean() >= 0.85 and (told["high"] < 1.05 * first).all(), "intervals of 95 %"


def test_a_part_of_a_bin_that_holds_none_by_the_fine_cells_is_counted_as_none_and_not_called_unmeasured():
    """Noise left no record in some parts of rare bins: "no measured marginal tells stay × sex", which was measured."""
    table, asked = stays(), {"stay": [77, 78], "sex": "m"}
    truth = (table.stay.between(77, 78) & (table.sex == 1)).sum()
    known = [noisy_answers(table, np.random.default_rng(seed)) for seed in range(20)]
    told = pd.concat([query_answer(CHARGES, k, where=asked) for k in known])
    assert (told["count"] == 0).any() and (told["low"] <= truth).all() and (told["high"] >= truth).mean() >= 0.9


def test_the_command_says_which_bins_are_cut(town, capsys):
    assert command("run", *TOWN, *PAIRS, "privacy.epsilon=1000", "evaluation.enabled=false", "hydra.run.dir=out") == 0
    said = reply(capsys, "query", "from=out/release", "where={age: [22, 45], sex: f}")
    row = pd.read_csv(io.StringIO(said.out)).iloc[0]
    real = people(600)
    truth = (real["age"].between(22, 45) & (real["sex"] == "f")).sum()
    assert row["cut"] == "age: 20 to 29; age: 40 to 49" and row["low"] <= truth <= row["high"]
    assert "cuts 2 bins" in said.err and "whatever lies inside" in said.err
