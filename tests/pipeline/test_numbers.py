"""Numbers keep their shape, and times the weekday and hour of the row's own columns, in all that is made of a table."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

import pipeline
from mechanisms.public.drafts.seen import Numbers
from mechanisms.public.errors import UserError
from mechanisms.public.schema.table_schema import load_schema, parse_schema, part_of
from pipeline import release_folder
from pipeline.look.bin_look import empty_codes, spikes
from pipeline.release_folder import cells_frame, read_release
from pipeline.report.last_lines import scored_lines
from pipeline.report.page import in_short
from tests.conftest import few
from tests.evaluation.worlds import values_of
from tests.pipeline.conftest import TOWN, command, done_in, edit, reply, statement_of
from tests.pipeline.looks import checked, drafted
from tests.public.table_worlds import coded, decode_table

DAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
END = "2024-01-01"
TIME = {"kind": "datetime", "min": "2023-01-01", "max": "2023-12-31", "bins": {"calendar": "month"}}
COLUMNS = {"received": TIME, "weekday": {"kind": "categorical", "values": DAYS}}
COLUMNS["hour"] = {"kind": "integer", "min": 0, "max": 23}
RULE = {"received": {"weekday": "weekday", "hour": "hour"}}


def schema_of(time=TIME, rule=RULE, **columns):
    own = {**COLUMNS, "received": time, **columns}
    return parse_schema({"columns": own, "calendar": rule}, where="s.yaml")


def drawn(schema, seed, rows=500):
    rng = np.random.default_rng(seed)
    codes = coded(schema, (rng.integers(0, c.size, rows) for c in schema.columns))
    return codes, decode_table(codes, schema, rng)


BINS = st.one_of(
    st.just({"calendar": "month"}),
    st.integers(1, 40).map(lambda n: {"count": n}),
    st.integers(0, 86_399).map(lambda s: {"edges": ["2023-01-01", f"2023-02-03 {pd.Timestamp(s, unit='s'):%X}", END]}),
)


@given(BINS, st.sampled_from(["both", "weekday", "hour"]), st.permutations(DAYS), st.integers(0, 2**32))
def test_a_synthetic_time_lies_in_its_bin_and_has_the_weekday_and_the_hour_of_its_row(bins, parts, days, seed):
    rule = {"received": RULE["received"] if parts == "both" else {parts: parts}}
    schema = schema_of({**TIME, "bins": bins}, rule, weekday={"kind": "categorical", "values": days})
    codes, frame = drawn(schema, seed)
    times = frame["received"]
    there = times.notna()
    grid, own = schema["received"].grid, np.asarray(codes.column("received"))[there]
    seconds = times[there].to_numpy().astype("datetime64[s]").astype(np.int64)
    assert ((seconds >= grid.starts[own]) & (seconds < grid.ends[own])).all()
    if "weekday" in rule["received"]:
        both = there & frame["weekday"].notna()
        assert (times[both].dt.day_name() == frame["weekday"][both]).all()
    if "hour" in rule["received"]:
        both = there & frame["hour"].notna()
        assert (times[both].dt.hour == frame["hour"][both].astype(int)).all()


def test_hours_and_days_in_digits_are_read_as_numbers_whatever_their_order():
    hours, days = sorted(map(str, range(24))), ["7", "1", "2", "3", "4", "5", "6"]
    texts = {"kind": "categorical", "missing": False}
    schema = schema_of(hour={**texts, "values": hours}, weekday={**texts, "values": days})
    _, frame = drawn(schema, 3)
    times = frame["received"].dropna()
    assert (times.dt.hour == frame["hour"][times.index].astype(int)).all()
    assert (times.dt.day_of_week + 1 == frame["weekday"][times.index].astype(int)).all()


def test_a_date_agrees_with_its_weekday_and_a_condition_keeps_its_range():
    schema = schema_of({**TIME, "kind": "date"}, {"received": {"weekday": "weekday"}})
    _, frame = drawn(schema, 1)
    both = frame["received"].notna() & frame["weekday"].notna()
    assert (frame["received"][both].dt.day_name() == frame["weekday"][both]).all()
    first, last = (int(np.datetime64(day).astype(int)) for day in ("2023-03-06", "2023-03-07"))
    march = replace(schema["received"], within=((first, last),))
    rng = np.random.default_rng(2)
    codes = coded(schema, [np.full(500, 2), rng.integers(0, 7, 500), np.zeros(500)])
    named = replace(schema, columns=(march, *schema.columns[1:]))
    frame = decode_table(codes, named, rng)
    assert set(frame["received"].dt.day) == {6, 7}
    monday = frame["weekday"] == "Monday"
    assert (frame["received"][monday].dt.day == 6).all()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"rule": {"received": {"minute": "hour"}}}, "minute"),
        ({"rule": {"received": {}}}, "calendar: got"),
        ({"rule": {"recieved": RULE["received"]}}, "recieved"),
        ({"rule": {"received": {"hour": "weekday"}}}, "'weekday' has not the values of hour"),
        ({"rule": {"received": ["minute"]}}, "minute"),
        ({"rule": {"received": [["hour"]]}}, "['hour']"),
        ({"rule": {"received": ["hour"]}, "time": {**TIME, "multiple_of": 5400}}, "no multiples of 5400"),
        ({"rule": {"received": ["hour"]}, "received_hour": COLUMNS["hour"]}, "there is a column 'received_hour'"),
        ({"rule": {"received": ["weekday"]}, "time": {**TIME, "bins": {"calendar": "day"}}}, "is shorter"),
        ({"hour": {"kind": "integer", "min": 1, "max": 24}}, "'hour' has not the values of hour"),
        ({"weekday": {"kind": "categorical", "values": DAYS[:6]}}, "'weekday' has not the values of weekday"),
        ({"time": {**TIME, "bins": {"calendar": "day"}}}, "the bin '2023-01-01' is shorter"),
        ({"time": {**TIME, "bins": {"calendar": "month_of_year"}}}, "bins: month_of_year come again and again"),
        ({"time": {**TIME, "kind": "date"}}, "the column is of kind date"),
        ({"weekday": {"kind": "categorical", "values": "discover"}}, "something is to be discovered"),
        ({"time": {"kind": "datetime", "bounds": "discover", "within": ["2000-01-01", "2030-01-01"]}}, "discovered"),
    ],
)
def test_a_rule_that_cannot_hold_is_refused_by_name(change, words):
    with pytest.raises(UserError) as error:
        schema_of(**change)
    assert words in str(error.value)
    assert "fix" in str(error.value) or error.value.fix


def test_a_draft_puts_days_of_any_language_in_order_and_proposes_nothing_where_a_row_differs(folder):
    times = pd.Series(pd.date_range("2023-01-02", periods=700, freq="13h"))
    names = ["Montag", "Dienstag", "Mittwoch", "Donnerstag", "Freitag", "Samstag", "Sonntag"]
    frame = pd.DataFrame({"am": times, "tag": times.dt.day_of_week.map(dict(enumerate(names)))})
    rule = '# calendar: {"am": {"weekday": "tag"}}'
    for off, proposed in ((0, True), (1, False)):
        frame.loc[: off - 1, "tag"] = "Sonntag" if off else frame["tag"]
        text = drafted(frame)[1]
        assert (rule in text) is proposed and (f"[{', '.join(names)}]" in text) is proposed


def test_a_draft_proposes_it_and_check_counts_the_rows_that_differ(folder, capsys):
    times = pd.Series(pd.date_range("2023-01-02", periods=600, freq="13h"))
    frame = pd.DataFrame({"received": times, "weekday": times.dt.day_name().str.upper(), "hour": times.dt.hour})
    assert '# calendar: {"received": {"weekday": "weekday", "hour": "hour"}}' in drafted(frame)[1]
    frame.loc[:5, "hour"] = (frame.loc[:5, "hour"] + 1) % 24
    off = frame.assign(weekday=frame["weekday"].str.title())
    own = f"columns: {json.dumps(COLUMNS)}\ncalendar: {json.dumps(RULE)}\n"
    (said,) = [hint for hint in checked(capsys, off, own)["hints"] if hint.startswith("calendar")]
    assert said.startswith("calendar 'received' (from Monday, from midnight): 1.0 % of the rows break it")


def test_a_time_and_its_parts_are_missing_together_so_that_no_hour_is_free_of_a_rule():
    """Books came back at 3 in the night, which `impossible` said that none can: their hour was missing."""
    rule = {"calendar": {"received": ["weekday", "hour"]}, "impossible": [{"received_hour": [*range(10)]}]}
    rules = parse_schema({"columns": {"received": TIME | {"bins": "month"}}} | rule, where="s.yaml").rules
    cells = {names: ~zeros.reshape(13, -1) for names, zeros in rules.zeros if "received" in names}
    assert [*cells] == [("received", "received_weekday"), ("received", "received_hour")]
    for possible in cells.values():
        assert possible[:12, :-1].all() and possible[12, -1], "a time with its part, or neither"
        assert not possible[12, :-1].any() and not possible[:12, -1].any()
    assert rules.declared["impossible"] == rule["impossible"]
    derived = {"columns": {"received": TIME, "day": TIME}, "derive": {"received": {"expression": "day + 1"}}}
    with pytest.raises(UserError, match="calendar: 'received' is computed from other columns"):
        parse_schema(derived | {"calendar": {"received": ["hour"]}}, where="s.yaml")


def test_a_part_of_a_schema_keeps_the_rule_where_it_keeps_all_of_its_columns_and_the_parts_that_are_asked_for():
    rule = {"received": {"weekday": "day", "hour": "hour"}}
    own = {"received": TIME, "day": COLUMNS["weekday"], "hour": COLUMNS["hour"], "other": {"kind": "flag"}}
    schema = parse_schema({"columns": own, "calendar": rule}, where="s.yaml")
    assert part_of(schema, ["received", "day", "hour"], where="test").rules.calendar[0].columns == rule["received"]
    assert part_of(schema, ["received", "hour", "other"], where="test").rules.calendar == ()
    schema = schema_of(rule={"received": ["weekday", "hour"]})
    assert [c.name for c in schema.columns if c.cell_of] == ["received_weekday", "received_hour"]
    one = part_of(schema, asked := ("received", "received_hour"), where="test")
    assert one.rules.declared == {"calendar": {"received": ["hour"]}} and one.domain.names == asked


@pytest.mark.slow
def test_parts_that_no_column_holds_are_proposed_measured_and_kept_and_not_written(folder, capsys):
    rng, rows = np.random.default_rng(1), 4_000
    day = pd.Timestamp("2023-01-02") + pd.to_timedelta(7 * rng.integers(0, 50, rows) + rng.integers(0, 5, rows), "D")
    night = rng.random(rows) < 0.5
    hour = np.where(night, rng.integers(0, 3, rows), rng.integers(9, 12, rows))
    frame = pd.DataFrame({"came": day + pd.to_timedelta(60 * hour + 15 * rng.integers(0, 4, rows), "min")})
    frame["ward"] = np.where(night, "acute", "elective")
    text = drafted(frame)[1]
    rule = 'calendar: {"came": ["weekday", "hour"]}'
    assert f"# {rule}" in text and "multiple_of: 900" in text
    plain = text[text.index("columns:") :]
    own = plain.replace(f"# {rule}", rule)
    hints = [hint for hint in checked(capsys, frame, plain)["hints"] if hint.startswith("'came'")]
    assert hints[0].endswith('calendar: {"came": ["weekday", "hour"]}') and len(hints) == 1
    assert not [hint for hint in checked(capsys, frame, own)["hints"] if "came" in hint]
    later = pd.DataFrame({"came": frame.came, "gone": frame.came + pd.Timedelta(days=1)})
    both = {name: {**TIME, "missing": False} for name in later}
    hints = checked(capsys, later, both, ordered=[["came", "gone"]])["hints"]
    assert next(hint for hint in hints if hint.startswith("'came'")).endswith("in place of `ordered`")
    schema = yaml.safe_load(own) | {"name": "town", "source": "a form", "confirmed_public": True}
    release = pipeline.fit(frame, schema, epsilon=8, delta=1e-6, selection="pairs", quiet=True)
    made = release.sample()
    assert list(made.columns) == ["came", "ward"] and (made.came.dt.minute % 15 == 0).all()
    apart = made.came.dt.hour.isin([0, 1, 2]) == (made.ward == "acute")
    assert apart.mean() > 0.95 and (made.came.dt.day_of_week < 5).mean() > 0.95
    assert set(release.sample(50, where={"came_hour": 10}).came.dt.hour) == {10}
    scores = release.score(frame, metrics=["anita_1way"])
    assert [n["column"] for n in scores.numbers] == ["came"], "an hour has no mean day"
    late = frame.assign(came=frame.came.mask(frame.index == 0, pd.Timestamp("2031-01-01")))
    assert len(release.score(late, metrics=["tvd"]).frame()), "no column holds the hour of a time beyond the bounds"
    values = values_of(Path(), frame, made, release.schema)
    assert set(values["came_hour"].values) <= {*range(24)} and set(values["came_weekday"].values) <= {*range(7)}
    release.save("saved")
    assert reply(capsys, "verify", "from=saved").out.strip().endswith("sound")
    assert load_schema(Path("saved/schema.yaml")).to_yaml() == release.schema.to_yaml()


@pytest.mark.slow
def test_records_of_a_person_keep_their_distance_beside_the_hours_and_weekdays_of_their_rows():
    rng, rows = np.random.default_rng(2), []
    for person in range(1_500):
        day = pd.Timestamp("2022-01-03") + pd.Timedelta(days=int(rng.integers(0, 500)))
        for _ in range(rng.integers(1, 7)):
            day += pd.Timedelta(days=max(0, 7 - day.day_of_week) if day.day_of_week > 4 else 0)
            rows.append((person, day + pd.Timedelta(hours=int(rng.choice([8, 9, 14]))), rng.choice(["a", "b"])))
            day += pd.Timedelta(days=int(rng.choice([2, 3, 4, 60, 90])))
    frame = pd.DataFrame(rows, columns=["who", "came", "ward"])
    came = {"kind": "datetime", "min": "2022-01-01", "max": "2024-12-31", "bins": "month", "missing": False}
    schema = {"columns": {"came": came, "ward": {"kind": "categorical", "values": ["a", "b"]}}}
    schema |= {
        "unit": {"column": "who", "order": "came", "records": {"max": 8}},
        "calendar": {"came": ["weekday", "hour"]},
    }
    made = pipeline.fit(frame, schema, epsilon=20, delta=1e-6, seed=1, quiet=True).sample()
    soon = [(t.sort_values(["who", "came"]).groupby("who").came.diff().dt.days < 7).sum() for t in (frame, made)]
    assert soon[1] / len(made) > 0.85 * soon[0] / len(frame)
    assert made.came.dt.hour.isin([8, 9, 14]).mean() > 0.98 and (made.came.dt.day_of_week < 5).mean() > 0.98


def test_days_that_stand_for_gaps_make_no_weekday_and_no_hour_uneven(folder):
    times = pd.Series(pd.date_range("2023-01-02", periods=4_000, freq="143min")).astype(str)
    times[::3] = "1900-01-01 00:00:00"
    other = pd.Series(pd.date_range("2023-01-02", periods=4_000, freq="D", unit="s")).astype(str) + " 08:00:00"
    assert "# calendar:" not in drafted({"came": other, "came_hour": range(4_000)})[1], "a column has the part's name"
    text = drafted({"came": times})[1]
    assert "1900-01-01 00:00:00 taken for a gap" in text and "# calendar:" not in text


@pytest.mark.slow
def test_a_time_and_its_parts_are_missing_as_often_as_measured_where_columns_are_independent(folder, capsys):
    """The more frequent of the two grew: 11 % of missing times became none, and 46 % became 78 %."""
    rng, n = np.random.default_rng(3), 3_000
    own = {"columns": {"came": TIME}, "calendar": {"came": ["weekday", "hour"]}, "leave_out": ["came_hour"]}
    for share in (0.1, 0.5):
        came = pd.Series(pd.Timestamp("2023-01-01") + pd.to_timedelta(rng.integers(0, 8_000, n), "h"))
        frame = pd.DataFrame({"came": came.where(rng.random(n) >= share), "came_hour": 7})
        release = pipeline.fit(frame, own, epsilon=20, delta=1e-6, quiet=True, selection="oneway")
        assert abs(release.sample().came.isna().mean() - share) < 0.04
    assert "came_hour" not in release._repr_html_(), "a release has no such column"
    with pytest.raises(UserError, match="'came_hour' has no value '2023-03-01'"):  # rows of all the year came out
        release.sample(5, where={"came_hour": ["2023-03-01", "2023-03-03"]})
    with pytest.raises(UserError, match="'came_hour': an empty list"):
        release.estimate("proportion", "came_hour", value=[])
    cells = {
        "came": frame.came.astype(str).replace("NaT", "").where(frame.index % 20 > 0, "soon"),
        "came_hour": range(n),
    }
    rules = [f"{name}: {json.dumps(own[name])}" for name in ("columns", "calendar")]
    said = checked(capsys, cells, "\n".join(rules))
    assert "in neither columns nor leave_out, and not released: 'came_hour'" in said["hints"]
    table = ["run", "data=table", "data.path=t.csv", "data.schema=t.yaml", "data.max_unplaced=0.01"]
    assert "lost of column 'came' (NOT private)" in reply(capsys, *table, code=1).err
    parts = "experiment.columns=[came_hour,came_weekday,came]"  # it failed after it had spent
    assert "no columns 'came_hour'" in reply(capsys, *table, "experiment=mgd_table1", parts, code=1).err


@pytest.mark.slow
def test_a_time_whose_weekday_is_a_column_may_have_its_hour_made_and_a_draft_and_check_say_so(folder, capsys):
    """Hours were lost where a column held the weekday, and nothing said so."""
    rng, rows = np.random.default_rng(4), 3_000
    minutes = 1440 * rng.integers(0, 360, rows) + 60 * rng.choice([1, 9], rows) + rng.integers(0, 60, rows)
    frame = pd.DataFrame({"came": pd.Timestamp("2023-01-02") + pd.to_timedelta(minutes, "min")})
    frame["day"] = frame.came.dt.day_name()
    text = drafted(frame)[1]
    assert '# calendar: {"came": {"hour": "came_hour", "weekday": "day"}}' in text
    own = {"columns": {"came": {**TIME, "missing": False}, "day": COLUMNS["weekday"]}, "confirmed_public": True}
    rule = {"weekday": "day", "hour": "came_hour"}
    (said,) = checked(capsys, frame, own["columns"], calendar={"came": {"weekday": "day"}})["hints"]
    assert said.endswith('(hour): calendar: {"came": {"hour": "came_hour", "weekday": "day"}}')
    release = pipeline.fit(frame, own | {"calendar": {"came": rule}}, epsilon=20, delta=1e-6, quiet=True)
    made = release.sample()
    assert list(made.columns) == ["came", "day"] and made.came.dt.hour.isin([1, 9]).mean() > 0.95
    assert (made.came.dt.day_name() == made.day)[made.day.notna()].all()
    release.save("saved")
    assert reply(capsys, "verify", "from=saved").out.strip().endswith("sound")


def test_rows_of_one_id_come_in_the_order_of_their_hours():
    """An error of ours, after all charges: `list index out of range`."""
    ids = {"name": "who", "records": {40: 1.0}, "order_by": ["received_hour"]}
    own = {"columns": {"received": {**TIME, "missing": False}}, "calendar": {"received": ["hour"]}, "unit_id": ids}
    _, frame = drawn(parse_schema(own, where="s.yaml"), 3)
    hours = frame["received"].dt.hour
    assert all(group.is_monotonic_increasing for _, group in hours.groupby(frame["who"]))


def test_a_part_of_a_time_orders_no_records():
    own = {"columns": {"received": TIME, "ward": {"kind": "flag"}}, "calendar": {"received": ["hour"]}}
    unit = {"column": "who", "order": ["received_hour"], "records": {"max": 3}}
    with pytest.raises(UserError, match="no order that is known"):
        parse_schema({**own, "unit": unit}, where="s.yaml")


SCHEMA = """
name: hospital
source: invented for the tests
confirmed_public: true
columns:
  ward: {kind: categorical, values: [a, b, c], missing: false}
  charge: {kind: float, min: 0, max: 1000000, bins: {count: 20}, decimals: 2}
  stay: {kind: integer, min: 0, max: 200, bins: {count: 5}, missing: false}
"""
#: Below these levels half of a ward's charges lie: most of them in the first of 20 bins, which ends at 50,000.
LEVELS = {"a": 7.0, "b": 8.0, "c": 9.0}
HOSPITAL = ["data=table", "data.path=hospital.csv", "data.schema=hospital.yaml", "evaluation.enabled=false"]


def hospital(rows: int = 30_000) -> pd.DataFrame:
    rng = np.random.default_rng(2)
    ward = rng.choice(list(LEVELS), rows)
    charge = np.exp(rng.normal(pd.Series(ward).map(LEVELS).to_numpy(), 1.0)).clip(0, 1e6).round(2)
    stay = np.where(rng.random(rows) < 0.3, 0, rng.geometric(0.2, rows).clip(0, 200))
    return pd.DataFrame({"ward": ward, "charge": np.where(rng.random(rows) < 0.1, np.nan, charge), "stay": stay})


@pytest.fixture(scope="module")
def done(tmp_path_factory) -> Path:
    """The folder of a run of the default on the hospital, fixed noise."""
    folder = tmp_path_factory.mktemp("numbers")
    hospital().to_csv(folder / "hospital.csv", index=False)
    (folder / "hospital.yaml").write_text(SCHEMA, encoding="utf-8")
    return done_in(folder, "run", *HOSPITAL, "privacy.noise_seed=5", "synthesis.seed=5", "hydra.run.dir=out")


def assert_shape_kept(made: pd.DataFrame) -> None:
    real = hospital()
    assert made.charge.mean() == pytest.approx(real.charge.mean(), rel=0.05), "3.6 times as large from even bins"
    assert made.stay.mean() == pytest.approx(real.stay.mean(), rel=0.05)
    assert (made.stay == 0).mean() == pytest.approx((real.stay == 0).mean(), abs=0.02)
    assert made.charge.isna().mean() == pytest.approx(real.charge.isna().mean(), abs=0.02)
    for q in (0.25, 0.5, 0.75, 0.99):
        assert made.charge.quantile(q) == pytest.approx(real.charge.quantile(q), rel=0.1)
    means = pd.DataFrame({"real": real.groupby("ward").charge.mean(), "made": made.groupby("ward").charge.mean()})
    assert ((means.made / means.real - 1).abs() < 0.15).all()
    assert made.charge.dropna().map(lambda v: round(v, 2) == v).all()


def test_the_released_table_and_one_made_again_of_it_keep_means_quantiles_peaks_and_groups(done, monkeypatch):
    assert_shape_kept(pd.read_csv(done / "out" / "release" / "synthetic.csv"))
    monkeypatch.chdir(done)
    assert command("synth", "from=out/release", "output=again", "synthesis.seed=9") == 0
    assert_shape_kept(pd.read_csv(done / "again" / "release" / "synthetic.csv"))


@pytest.mark.slow
def test_zeros_stay_apart_from_small_amounts_in_every_pair_of_a_heavy_tailed_column(folder):
    """Nine of ten amounts lie in the first twentieth of a hundredth of the range, and half of all are 0."""
    rng = np.random.default_rng(12)
    region = rng.integers(0, 6, 30_000)
    amount = np.exp(rng.normal(7.2, 1.9, region.size)).clip(0.01, 16_500_000).round(2)
    amount[rng.random(region.size) < 0.4 + 0.04 * region] = 0.0
    real = pd.DataFrame({"region": region, "amount": amount, "paid": np.where(amount > 0, "yes", "no")})
    real.to_csv("paid.csv", index=False)
    Path("paid.yaml").write_text("""confirmed_public: true
columns:
  region: {kind: categorical, size: 6, missing: false}
  amount: {kind: float, min: 0, max: 17000000, bins: {count: 20}, decimals: 2, missing: false}
  paid: {kind: flag, "true": ["yes"], "false": ["no"], missing: false}
""")
    own = ["data.path=paid.csv", "data.schema=paid.yaml", "privacy.noise_seed=3", "synthesis.seed=3"]
    assert command("run", "data=table", *own, "evaluation.enabled=false", "hydra.run.dir=out") == 0
    made = pd.read_csv("out/release/synthetic.csv")
    assert ((made.amount == 0) != (made.paid == "no")).mean() < 0.01, "one in two without a bin of its own for 0"
    shares = [(d.amount == 0).groupby(d.region).mean() for d in (real, made)]
    assert (abs(shares[1] - shares[0]) < 0.03).all()
    for q in (0.6, 0.9):
        assert made.amount.quantile(q) == pytest.approx(real.amount.quantile(q), rel=0.15)


def test_fine_columns_are_paid_for_named_in_plan_and_statement_and_read_back_from_the_release(
    done, capsys, monkeypatch
):
    monkeypatch.chdir(done)
    said = statement_of(done / "out")
    fine = [e for e in said["events"] if e.get("stage") == "fine"]
    assert {tuple(e["clique"]) for e in fine} == {("charge (fine)",), ("stay (fine)",)}
    assert sum(e["share"] for e in fine) == pytest.approx(0.1) and all(e["answered"] for e in fine)
    assert said["spent"]["epsilon"] == pytest.approx(1.0, rel=1e-3) and said["spent"]["epsilon"] <= 1.0
    text = reply(capsys, "plan", *HOSPITAL, "plan.rows=30000", "plan.details=true").out
    assert "numbers and dates, each alone" in text and "charge (fine)" in text
    schema, _, measurements = read_release(done / "out" / "release")
    assert schema.measured == measurements.domain and set(schema.fine) == {"charge", "stay"}
    assert {"charge (fine)", "stay (fine)"} <= {n for a in measurements.answers for n in a.clique}
    declared = yaml.safe_load((done / "out" / "release" / "schema.yaml").read_text(encoding="utf-8"))["columns"]
    assert declared["charge"]["fine"] == 256 and "fine" not in declared["ward"]
    assert not any("shape" in fields for fields in declared.values()), "the released schema holds public facts alone"


def test_charges_stand_in_their_order_and_the_release_is_sound(town):
    assert command("run", *TOWN, "evaluation.enabled=false", "hydra.run.dir=out") == 0
    assert command("verify", "out/release") == 0
    said = statement_of(town / "out")
    stages = list(dict.fromkeys(e["stage"] for e in said["events"]))
    assert stages[:3] == ["given", "fine", "scores"], "though the slots of fine columns stand behind those of distances"
    assert json.loads((town / "out/release/measurements/index.json").read_text())["distances"]["answers"] > 0


@pytest.mark.parametrize("setting", ["selection=pairs", "selection.marginals=[[age]]", "selection.fine_cells=0"])
def test_where_no_fine_cells_are_wanted_a_column_may_ask_for_them_except_beside_listed_marginals(town, setting):
    own = ["run", *TOWN, setting, "synthesis=independent", "evaluation.enabled=false"]
    assert command(*own, "hydra.run.dir=none") == 0
    edit(town / "town.yaml", "bins: {count: 10}", "bins: {count: 10}, fine: 20")
    assert command(*own, "hydra.run.dir=own") == 0
    none, own = (read_release(town / name / "release") for name in ("none", "own"))
    asked = ("age (fine)",) in {a.clique for a in own[2].answers}
    assert not none[0].fine and asked != ("[[age]]" in setting)


def test_rows_given_a_range_follow_the_curve_inside_it(done, monkeypatch):
    monkeypatch.chdir(done)
    condition = ["where={charge: [1234, 4000]}", "rows=800"]
    assert command("synth", "from=out/release", "output=given", "synthesis.seed=3", *condition) == 0
    made, real = pd.read_csv(done / "given" / "release" / "synthetic.csv").charge, hospital().charge
    assert len(made) == 800 and made.between(1234, 4000).all()
    inside = real[real.between(1234, 4000)]
    assert made.mean() == pytest.approx(inside.mean(), rel=0.05)


@pytest.mark.slow
def test_narrow_bins_over_a_wide_range_are_measured_scored_and_read_again(folder):
    """Such a run was refused for its scores; without these it spent its budget on a release that nothing could read."""
    columns = {"fare": {"kind": "integer", "min": 0, "max": 1000, "bins": {"count": 100}, "missing": False}}
    Path("s.yaml").write_text(yaml.safe_dump({"columns": columns, "confirmed_public": True}), encoding="utf-8")
    rng = np.random.default_rng(4)
    pd.DataFrame({"fare": rng.geometric(0.02, 3000)}).to_csv("t.csv", index=False)
    assert command("run", "data=table", "data.path=t.csv", "data.schema=s.yaml", "hydra.run.dir=out") == 0
    assert command("verify", "out/release") == 0
    assert command("synth", "from=out/release", "output=again") == 0


def test_a_column_of_which_a_tenth_of_the_records_lies_elsewhere_is_named_beside_the_accuracy():
    """One column of fifteen held a third of its records in a value of a sixth, under "single columns fair"."""
    names = np.array(["a", "b", "c", "d"])
    real = pd.DataFrame({"one": names[np.arange(2000) % 4], "two": names[np.arange(2000) % 3]})
    made = real.assign(one=names[np.where(np.arange(2000) % 7 < 2, 0, np.arange(2000) % 4)])
    for own, said in ((made, ["farthest from the real table: one (21% of its records misplaced)"]), (real, [])):
        lines = scored_lines(pipeline.score(real, own, metrics=["anita_1way"]))
        assert [line for line in lines if line.startswith("farthest")] == said


def test_a_pair_of_which_a_quarter_of_the_records_lies_elsewhere_is_named_beside_good_columns():
    """Rents no longer followed areas (a correlation of 0.91 was 0.14), and "pairs good" was all that a run said."""
    real = pd.DataFrame({"area": np.arange(2000) % 100, "rent": np.arange(2000) % 100, "year": np.arange(2000) // 500})
    made = real.assign(rent=np.random.default_rng(0).permutation(real["rent"]))
    (line,) = [t for t in scored_lines(pipeline.score(real, made, metrics="quick")) if t.startswith("farthest")]
    assert line.startswith("farthest from the real table: area × rent (") and line.count("×") == 1


def test_relations_that_are_lost_are_said_beside_pairs_of_which_most_are_unrelated():
    """Of the marks in twelve subjects a fifth of what they tell was kept, under "pairs fair"."""
    rng, n = np.random.default_rng(0), 3000
    good = rng.normal(0, 1, n)
    marks = {f"m{i}": (2 * (good + rng.normal(0, 1, n))).astype(int).clip(-3, 3) for i in range(4)}
    real = pd.DataFrame({**marks, **{f"u{i}": rng.integers(0, 3, n) for i in range(8)}})
    made = real.assign(**{name: rng.permutation(real[name]) for name in ("m1", "m2", "m3")})
    lines = scored_lines(pipeline.score(real, made, metrics=["anita_2way", "dependence"]))
    assert not any("pairs" in t and "weak" in t for t in lines)
    assert any(t.startswith("of what columns tell about each other") and t.endswith("% is kept: weak") for t in lines)
    (named,) = [t for t in lines if t.startswith("relations of which much is lost: ")]
    assert named.count("% kept)") == 3 and "u" not in named.partition(": ")[2]
    card = pipeline.score(real, made, metrics=["anita_2way", "dependence"])
    assert named[1:] + "." in in_short(card.to_json()), "the report names the same, of scores.json as it is written"
    same = scored_lines(pipeline.score(real, real, metrics=["anita_2way", "dependence"]))
    assert not any(t.startswith(("of what", "relations")) for t in same)


@pytest.mark.slow
def test_means_far_from_the_real_ones_are_said_beside_the_accuracy_of_columns():
    """A total that binning had halved stood under "columns good": of amounts, few rows hold it."""
    rng = np.random.default_rng(0)
    n = 2000
    costs, ages = np.exp(rng.normal(5, 2, n)), rng.integers(18, 90, n)
    real = pd.DataFrame({"cost": costs, "age": ages, "off": rng.normal(0, 9, n)})
    made = real.assign(cost=real["cost"].clip(upper=real["cost"].quantile(0.97)), off=real["off"] + 0.5)
    made["age"] = rng.integers(18, 94, n)
    (line,) = pipeline.score(real, made, metrics=["anita_1way"]).notices
    cost, few = made["cost"].mean(), np.sort(costs)[-20:].sum() / costs.sum()
    said = f"cost {cost:,.0f} (real {costs.mean():,.0f}; 1% of the real rows hold {few:.0%} of the total)"
    assert line == f"means, and so totals, far from the real ones: {said}", "no word of age, nor of what lies around 0"
    rows, means = pipeline.score(real, pd.concat([made, made]), metrics=["anita_1way"]).notices
    assert rows == "rows, and so totals, far from the real ones: 4,000 (real 2,000)"
    assert means.startswith(f"means far from the real ones: {said}"), "this total is not so far as its mean"
    worse = real.assign(off=real["off"] + 3, age=real["age"] * 2)
    (line,) = pipeline.score(real, worse, metrics=["anita_1way"]).notices
    assert "off 3" in line and "age 10" in line and "cost" not in line
    fallen = real.assign(age=54)
    fallen.loc[:9, "age"] = 53  # all in one bin of a column with the right mean
    (line,) = pipeline.score(real, fallen, metrics=["anita_1way"]).notices
    assert line == "standard deviations, far from the real ones: age 0.0706 (real 20.8)"
    for seed in range(3):
        drawn = real.sample(n, replace=True, random_state=seed)
        assert not pipeline.score(real, drawn, metrics=["anita_1way"]).notices


def test_labels_of_many_codes_are_told_apart_without_comparing_all_with_all(monkeypatch):
    """A minute for 60,000 codes, in each of their marginals."""
    compared = []

    class Label(str):
        __hash__ = str.__hash__

        def __eq__(self, other):
            compared.append(other)
            return str(self) == str(other)

    monkeypatch.setattr(release_folder, "attribute_labels", lambda *_: [Label(k % 1999) for k in range(2000)])
    schema = parse_schema({"columns": {"c": {"kind": "categorical", "size": 2000, "missing": False}}}, where="s")
    labels = cells_frame(schema, ("c",))["c"]
    assert labels[1999] == "(0)" and len({*map(str, labels)}) == 2000 and len(compared) < 20_000


@pytest.mark.slow
def test_check_names_a_number_of_many_persons_that_an_even_bin_would_spread():
    """No debts of 69 % of the borrowers were 0.1 % in the release, and their mean twice as large; check said "ok"."""
    owed = np.arange(600) % 10 * (np.arange(600) % 10 > 6) * 1.5
    frame = pd.DataFrame({"person": np.arange(1200) // 2, "owed": np.repeat(owed, 2), "m": ["a", "b"] * 600})
    column = {"kind": "float", "decimals": 2, "missing": False}
    for bins, said in (([0, 5, 20], True), ([0, 0.01, 5, 20], False)):
        columns = {"owed": column | {"bins": {"edges": bins}}, "m": {"kind": "categorical", "values": ["a", "b"]}}
        unit = {"column": "person", "constant": ["owed"], "records": {"max": 2}}
        looks = pipeline.check(frame, {"columns": columns, "unit": unit, "confirmed_public": True})["columns"]
        assert any("lies with others in the bin 0 to 5" in hint for hint in looks["owed"]["hints"]) is said
    columns["owed"]["bins"] = {"edges": [0, 5, 20]}
    looks = pipeline.check(frame, {"columns": columns, "confirmed_public": True})["columns"]
    (hint,) = looks["owed"]["hints"]
    assert "no pair with another column" in hint, "fine cells of a record's column keep it"


def test_check_names_a_number_of_many_rows_that_fine_cells_would_spread():
    """The one amount of a tariff was any amount near it in a release; check said "ok"."""
    seen = Numbers(count=1000, zeros=100, often={332.0: 300})
    amounts = {"kind": "float", "bins": {"edges": [0, 300, 400, 500]}}
    alone, whole = {"decimals": 2, "bins": {"edges": [0, 332, 332.01, 500]}}, {"kind": "integer"}
    for more, spread in (({"decimals": 2}, True), (alone, False), (whole, False)):
        paid = parse_schema({"columns": {"paid": amounts | more}}, where="s")["paid"]
        hints = [h for h in spikes(paid, seen) if h.startswith("332")]
        assert len(hints) == spread, "nothing of what has a bin, or a fine cell of one number"
        assert all("lies with others in the bin 300 to 400, and values near it are drawn" in h for h in hints)


@few(20)
@given(st.integers(-500, 500), st.integers(2, 200), st.integers(2, 60))
def test_check_names_codes_that_no_multiple_has_and_bins_with_one_multiple_each(low, step, many):
    fields = {"kind": "integer", "min": low, "max": low + step * many, "multiple_of": step, "missing": False}
    (hint,) = empty_codes(parse_schema({"columns": {"x": fields}}, where="s")["x"])
    advised = yaml.safe_load(
        "{" + hint.partition(": noise falls into all; ")[2].removesuffix(" has one for each multiple") + "}"
    )
    column = parse_schema({"columns": {"x": fields | advised}}, where="s")["x"]
    assert not empty_codes(column)
    multiples = np.arange(advised["min"], advised["max"] + 1, step)
    assert low <= multiples[0] and multiples[-1] <= low + step * many and not multiples[0] % step
    assert np.searchsorted(column.grid.edges, multiples, side="right").tolist() == [*range(1, column.value_codes + 1)]


def test_check_says_where_codes_are_of_no_multiple():
    columns = {"paid": {"kind": "integer", "min": 0, "max": 100, "multiple_of": 20, "missing": False}}
    looks = pipeline.check(pd.DataFrame({"paid": np.arange(60) % 6 * 20}), {"columns": columns})["columns"]
    assert "of which 6 are multiples of 20" in " ".join(looks["paid"]["hints"])


@pytest.mark.parametrize(
    ("bins", "zeros", "is_told"),
    [
        ({"edges": [0, 50, 400]}, 0.1, True),
        ({"edges": [0, 0.01, 50, 400]}, 0.1, False),
        ({"edges": [0, 50, 400]}, 0.03, False),
        ({"count": 8}, 0.1, True),
    ],
)
def test_check_asks_for_a_bin_for_a_frequent_0_that_shares_one(bins, zeros, is_told):
    """Fine and prison exclude each other, and came together: 0 and small numbers lay in one bin of each pair."""
    rng = np.random.default_rng(4)
    fine = np.where(np.arange(2000) < zeros * 2000, 0.0, rng.uniform(1, 400, 2000).round(2))
    column = {"kind": "float", "min": 0, "max": 400, "decimals": 2, "missing": False, "bins": bins}
    schema = {"columns": {"fine": column}, "confirmed_public": True}
    hints = pipeline.check(pd.DataFrame({"fine": fine}), schema)["columns"]["fine"]["hints"]
    assert any("no pair with another column tells it from them" in h for h in hints) is is_told


@pytest.mark.slow
def test_of_a_day_that_never_comes_before_a_time_draft_and_check_propose_the_length():
    """Books were due before they were lent in 22 % of the rows: orders were looked for in one kind alone."""
    lent = pd.Timestamp("2024-01-01 09:00") + pd.to_timedelta(np.arange(900) * 457 % 400_000, unit="min")
    other = pd.Timestamp("2024-01-01") + pd.to_timedelta(np.arange(900) * 331 % 270, unit="D")
    due = (lent.normalize() + pd.Timedelta(days=14)).strftime("%Y-%m-%d")
    frame = pd.DataFrame({"lent": lent.strftime("%Y-%m-%d %H:%M"), "due": due, "other": other.strftime("%Y-%m-%d")})
    frame["asked"] = (lent.normalize() - pd.Timedelta(days=150)).strftime("%Y-%m-%d")
    rule = '"due": {"from": "lent", "length": {"max": 15}}'
    words = "'asked' ≤ 'lent' by days in 900 of the 900 rows that hold both; `ordered` takes no time beside a day"
    text = pipeline.draft(frame).text
    assert f"#   {rule}  # half take at most 14 days" in text
    assert text.count(words) == text.count("by days") == 1, "far apart: a length says no more than two columns"
    dates = {"min": "2023-01-01", "max": "2024-12-31", "bins": "month"}
    columns = {n: dates | {"kind": "datetime" if n == "lent" else "date"} for n in frame}
    hints = pipeline.check(frame, {"columns": columns, "confirmed_public": True})["hints"]
    assert [h.startswith(words) for h in hints if "by days" in h] == [True]
    assert sum("'due' after 'lent': half take at most 14 days" in h and rule in h for h in hints) == 1
    columns["lent"]["kind"] = "date"
    hints = pipeline.check(frame, {"columns": columns, "confirmed_public": True})["hints"]
    assert any("'due' after 'lent'" in h for h in hints) and not any("by days" in h for h in hints)
