"""Encoding and decoding of tiny tables of every kind, text and typed files alike; and the law that both hold."""

import datetime
import tempfile
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mechanisms.public.coded_table import CodedTable
from mechanisms.public.errors import UserError
from mechanisms.public.schema.fine_cells import finest
from mechanisms.public.schema.table_schema import Schema, load_schema, parse_schema
from mechanisms.public.tables.codec import encode_columns
from mechanisms.public.tables.decode import draw
from mechanisms.public.tables.encode import value_expressions
from mechanisms.public.tables.text_forms import NumberForm
from mechanisms.public.tables.value_summaries import value_batches
from mechanisms.public.tables.write_table import arrow_type, decode_column, text_column, write_table
from tests.conftest import few
from tests.public.table_worlds import coded, codes, csv, decode_table, encoded, schema, source

AGE = {"kind": "integer", "min": 0, "max": 9}


def test_values_take_their_place_in_the_list_then_other_then_missing(tmp_path: Path) -> None:
    facts = schema(a={"kind": "categorical", "values": ["x", "y"], "other": "else", "missing": ["?"]})
    path = csv(tmp_path, 'a,b\nx,1\ny,1\nz,1\nelse,1\n?,1\n,1\n"",1\n')
    assert codes(path, facts) == [[0, 1, 2, 2, 3, 3, 3]]


def test_a_listed_empty_text_is_that_value(tmp_path: Path) -> None:
    facts = schema(a={"kind": "categorical", "values": ["x", ""]}, b={"kind": "flag", "true": ["Y"], "false": [""]})
    assert codes(csv(tmp_path, "a,b\nx,Y\n,\n"), facts) == [[0, 1], [1, 0]]


def test_without_other_and_missing_a_strange_value_is_the_first_code_and_counted(tmp_path: Path) -> None:
    facts = schema(a={"kind": "categorical", "values": ["x", "y"], "missing": False})
    table, report = encoded(csv(tmp_path, "a,b\nz,1\ny,1\n,1\n"), facts)
    assert table.columns[0].tolist() == [0, 1, 0]
    assert (report.outside, report.unplaced) == ({"a": 1}, {"a": 1})


def test_numbers_are_read_as_numbers_and_clipped_to_the_bounds(tmp_path: Path) -> None:
    cells = ["3", "3.0", " 3 ", "+3", "3e0", "-5", "72.0", "2.6", "1e308", ""]
    table, report = encoded(csv(tmp_path, "a,b\n" + "".join(f"{c},\n" for c in cells)), schema(a=AGE))
    assert table.columns[0].tolist() == [3, 3, 3, 3, 3, 0, 9, 3, 9, 10]
    assert (report.outside["a"], report.unplaced.get("a", 0)) == (4, 0)


def test_values_are_read_without_their_bins(tmp_path: Path) -> None:
    facts = schema(a={"kind": "float", "min": 0, "max": 1, "bins": {"count": 7}})
    table = source(csv(tmp_path, "a,b\n0.5,\n2,\nx,\n"))
    _, (value,) = value_expressions(table, facts.columns)
    assert "floor" in facts.columns[0].grid.sql("x") and "floor" not in value
    (read,) = value_batches(table, facts.columns)
    assert read["a"].tolist() == pytest.approx([0.5, 1.0, np.nan], nan_ok=True)


NO_NUMBERS = [
    *("three", "inf", "-inf", "+Infinity", "nan", "-NaN", "1e400", "-1e400", "1.8e308", "1_000", "1.5e3_0", "0x10"),
    *("0x1p3", "0b11", "1d5", "1f", "१२", "１２", "1.000.000", "1 000", "12 kg", "∞", "1.2.3", "--5"),
]
PLAIN = {"min": 0, "max": 9, "bins": {"count": 3}}


@pytest.mark.parametrize(
    "way", [{"kind": "integer"}, {"kind": "float"}, {"kind": "float", "decimal": ","}, {"strip": ["€"]}]
)
def test_texts_that_are_no_finite_numbers_are_unreadable_and_counted(way, tmp_path: Path) -> None:
    """inf and 1e400 were the last bin, 1_000 was 1000, and nan an uncounted gap."""
    facts = schema(a={"kind": "float", **PLAIN, **way})
    table, report = encoded(csv(tmp_path, "a,b\n" + "".join(f'"{c}",\n' for c in NO_NUMBERS)), facts)
    assert set(table.columns[0].tolist()) == {facts["a"].missing_code}
    assert (report.unplaced["a"], report.outside["a"]) == (len(NO_NUMBERS), 0)
    form = NumberForm(facts["a"].strip, facts["a"].decimal)
    assert [c for c in NO_NUMBERS if form.number(c) is not None] == []


@pytest.mark.parametrize("kind", [pa.float16(), pa.float32(), pa.float64()])
def test_infinite_numbers_of_typed_columns_are_unreadable_too_and_nan_is_a_gap(kind, tmp_path: Path) -> None:
    values = pa.array(np.array([4.5, np.inf, -np.inf, np.nan], kind.to_pandas_dtype()), kind)
    pq.write_table(pa.table({"a": values}), tmp_path / "t.parquet")
    table, report = encoded(tmp_path / "t.parquet", schema(a={"kind": "float", **PLAIN}))
    assert table.columns[0].tolist() == [1, 3, 3, 3]
    assert (report.unplaced["a"], report.outside["a"], report.gaps["a"]) == (2, 0, 1)


@pytest.mark.parametrize(
    ("handling", "expected"),
    [({}, [0, 9, 11]), ({"outside": "other"}, [10, 10, 11]), ({"outside": "missing"}, [11, 11, 11])],
)
def test_numbers_outside_go_where_the_column_says(handling, expected, tmp_path):
    facts = schema(a={**AGE, "other": "else", **handling})
    assert codes(csv(tmp_path, "a,b\n-1,\n99,\nthree,\n"), facts) == [expected]


def test_a_column_that_is_never_missing_takes_the_nearest_code_it_has(tmp_path: Path) -> None:
    path = csv(tmp_path, "a,b\n,\nthree,\n12,\n")
    assert codes(path, schema(a={**AGE, "missing": False})) == [[0, 0, 9]]
    assert codes(path, schema(a={"kind": "categorical", "size": 10})) == [[0, 0, 9]]


@pytest.mark.parametrize("cell", ["12", "three", "2.5", "inf"])
def test_a_refusing_column_refuses_and_quotes_no_value(cell: str, tmp_path: Path) -> None:
    path = csv(tmp_path, f"a,b\n3,\n{cell},\n")
    with pytest.raises(UserError) as caught:
        codes(path, schema(a={**AGE, "outside": "refuse"}))
    assert "column 'a'" in str(caught.value) and cell not in str(caught.value)


def test_a_refusing_column_takes_gaps_only_if_it_may_be_missing(tmp_path: Path) -> None:
    path = csv(tmp_path, "a,b\n,\n  ,\n")
    assert codes(path, schema(a={**AGE, "outside": "refuse"})) == [[10, 10]]
    with pytest.raises(UserError, match="outside the domain"):
        codes(path, schema(a={**AGE, "outside": "refuse", "missing": False}))
    text = {"kind": "categorical", "values": ["x"], "outside": "refuse"}
    assert codes(csv(tmp_path, "a\nx\n\n"), schema(a=text)) == [[0, 1]]
    with pytest.raises(UserError, match="outside the domain"):
        codes(csv(tmp_path, "a\nx\ny\n"), schema(a=text))


def test_edges_are_left_closed_and_the_last_edge_of_floats_is_inside(tmp_path: Path) -> None:
    whole = schema(a={"kind": "integer", "bins": {"edges": [1, 20, 40, 100]}, "missing": False})
    assert codes(csv(tmp_path, "a\n0\n1\n19\n20\n39\n40\n99\n100\n"), whole) == [[0, 0, 0, 1, 1, 2, 2, 2]]
    real = schema(a={"kind": "float", "bins": {"edges": [0, 0.1, 0.5]}, "missing": False})
    table, report = encoded(csv(tmp_path, "a\n0\n0.09999999999999999\n0.1\n0.5\n0.6\n"), real)
    assert table.columns[0].tolist() == [0, 0, 1, 1, 1] and report.outside["a"] == 1


def test_equal_bins_agree_with_their_edges_to_the_last_bit(tmp_path: Path) -> None:
    facts = schema(a={"kind": "float", "min": 0.1, "max": 0.7, "bins": {"count": 7}, "missing": False})
    edges = facts.columns[0].grid.edges  # type: ignore[attr-defined]
    cells = np.concatenate([np.nextafter(edges, -1), edges, np.nextafter(edges, 1)])
    expected = np.clip(np.searchsorted(edges, cells, side="right") - 1, 0, 6)
    assert codes(csv(tmp_path, "a\n" + "".join(f"{c!r}\n" for c in cells.tolist())), facts) == [expected.tolist()]


MOMENTS = pd.date_range("2015-12-28 22:10:00", "2018-01-03 11:00:00", freq="17h13min")


@pytest.mark.parametrize(
    ("unit", "oracle"),
    [
        ("year", lambda t: t.year - 2015),
        ("month", lambda t: (t.year - 2015) * 12 + t.month - 12),
        ("week", lambda t: (t.date() - datetime.date(2015, 12, 28)).days // 7),
        ("day", lambda t: (t.date() - datetime.date(2015, 12, 28)).days),
        ("hour", lambda t: int((t - pd.Timestamp("2015-12-28 22:00:00")).total_seconds() // 3600)),
        ("month_of_year", lambda t: t.month - 1),
        ("day_of_week", lambda t: t.day_of_week),
        ("hour_of_day", lambda t: t.hour),
    ],
)
def test_calendar_units_agree_with_the_calendar(unit: str, oracle: Any, tmp_path: Path) -> None:
    bounds = {"min": "2015-12-28 22:05:00", "max": "2018-01-03 12:00:00"}
    facts = schema(t={"kind": "datetime", **bounds, "bins": {"calendar": unit}, "missing": False})
    path = csv(tmp_path, "t\n" + "".join(f"{m}\n" for m in MOMENTS))
    assert codes(path, facts) == [[oracle(m) for m in MOMENTS]]


def test_dates_in_a_format_of_their_own(tmp_path: Path) -> None:
    day = {"kind": "date", "format": "%m/%d/%Y", "min": "2012-01-01", "max": "2018-12-31", "bins": {"calendar": "year"}}
    path = csv(tmp_path, "d\n07/17/2012\n01/01/1999\n12/31/2030\n2013-01-01\n\n")
    table, report = encoded(path, schema(d=day))
    assert table.columns[0].tolist() == [0, 0, 6, 7, 7]
    assert (report.outside["d"], report.unplaced["d"]) == (2, 1)


def test_a_typed_file_encodes_as_its_text_form(tmp_path: Path) -> None:
    frame = {
        "flag": pa.array([True, False, None]),
        "whole": pa.array([2, 3, None], pa.int16()),
        "real": pa.array([2.0, 3.0, float("nan")]),
        "small": pa.array([0.1, 0.2, None], pa.float32()),
        "money": pa.array([Decimal("1.00"), Decimal("2.00"), None], pa.decimal128(10, 2)),
        "day": pa.array([datetime.date(2016, 1, 1), datetime.date(2016, 2, 1), None]),
        "time": pa.array(
            [datetime.datetime(2016, 1, 1, 5), datetime.datetime(2016, 2, 1, 7), None], pa.timestamp("ns")
        ),
        "zone": pa.array(
            [datetime.datetime(2016, 1, 1, 5), datetime.datetime(2016, 2, 1, 7), None], pa.timestamp("us", "UTC")
        ),
        "word": pa.array(["x", "", None]).dictionary_encode(),
    }
    two = {"kind": "categorical", "values": ["2", "3"]}
    clock = {"kind": "datetime", "min": "2016-01-01", "max": "2016-12-31", "bins": {"calendar": "hour_of_day"}}
    facts = schema(
        flag={"kind": "categorical", "values": ["false", "true"]},
        whole=two,
        real=two,
        small={"kind": "float", "bins": {"edges": [0, 0.1, 0.2, 0.3]}},
        money={"kind": "categorical", "values": ["1.00", "2"]},
        day={"kind": "date", "min": "2016-01-01", "max": "2016-12-31", "bins": {"calendar": "month"}},
        time=clock,
        zone=clock,
        word={"kind": "categorical", "values": ["x"]},
    )
    pq.write_table(pa.table(frame), tmp_path / "t.parquet")
    rows = ["true,2,2,0.1,1.00,2016-01-01,2016-01-01 05:00:00,2016-01-01 05:00:00,x"]
    rows += ["false,3,3.0,0.2,2,2016-02-01,2016-02-01 07:00:00,2016-02-01 07:00:00,", ",,nan,,,,,,"]
    text = codes(csv(tmp_path, ",".join(frame) + "\n" + "\n".join(rows).replace("nan", "")), facts)
    assert codes(tmp_path / "t.parquet", facts) == text
    assert text[:5] == [[1, 0, 2], [0, 1, 2], [0, 1, 2], [1, 2, 3], [0, 1, 2]]
    assert text[5:] == [[0, 1, 12], [5, 7, 24], [5, 7, 24], [0, 1, 1]]


def test_other_tools_ways_to_write_whole_numbers_and_truth_are_understood(tmp_path: Path) -> None:
    facts = schema(n={"kind": "categorical", "values": [2, 3]}, b={"kind": "categorical", "values": ["true", "false"]})
    assert codes(csv(tmp_path, "n,b\n2.0,True\n3.00,FALSE\n2.5,t\n"), facts) == [[0, 1, 2], [0, 1, 2]]


def test_thousands_of_values(tmp_path: Path) -> None:
    values = [f"{i} Block of 'O''Farrell' ST, \"{i}\"" for i in range(20_000)]
    facts = schema(a={"kind": "categorical", "values": values, "missing": False})
    table = coded(facts, [list(range(20_000))])
    write_table(tmp_path / "t.csv", table, facts, np.random.default_rng(0), chunk=20_000)
    assert codes(tmp_path / "t.csv", facts) == [list(range(20_000))]


def test_decoding_gives_the_original_kinds() -> None:
    facts = schema(
        age={**AGE, "missing": False},
        gap=AGE,
        fare={"kind": "float", "min": 0, "max": 1, "decimals": 2},
        city={"kind": "categorical", "values": ["x"], "missing": ["?"]},
        level={"kind": "categorical", "values": [1, 2], "missing": False},
        flag={"kind": "flag", "missing": False},
        yes={"kind": "flag", "true": ["Y"], "false": [""]},
        day={"kind": "date", "min": "2016-01-01", "max": "2016-12-31"},
        mixed={**AGE, "other": "old", "missing": False},
    )
    frame = decode_table(
        coded(facts, [[1], [10], [20], [1], [1], [1], [1], [53], [10]]), facts, np.random.default_rng(0)
    )
    kinds = [str(arrow_type(c)) for c in facts.columns]
    assert kinds == ["int64", "int64", "double", "string", "int64", "bool", "string", "date32[day]", "string"]
    assert frame.iloc[0].isna().tolist() == [False, True, True, False, False, False, False, True, False]
    assert (frame["city"][0], frame["yes"][0], frame["mixed"][0]) == ("?", "Y", "old")


def test_values_are_uniform_inside_their_bins() -> None:
    facts = schema(
        n={"kind": "integer", "bins": {"edges": [0, 4, 10]}, "missing": False},
        x={"kind": "float", "min": 0, "max": 2, "bins": {"count": 2}},
    )
    rng = np.random.default_rng(3)
    whole = decode_column(np.ones(60_000, dtype=np.uint8), facts.columns[0], rng).to_pandas()
    assert set(whole) == set(range(4, 10))
    assert whole.value_counts().between(9_600, 10_400).all()
    real = decode_column(np.ones(60_000, dtype=np.uint8), facts.columns[1], rng).to_pandas()
    assert real.between(1, 2).all() and np.allclose(np.histogram(real, 5, (1, 2))[0], 12_000, atol=450)


def test_a_month_of_the_year_is_drawn_from_every_year_in_the_range() -> None:
    column = schema(
        d={"kind": "date", "min": "2015-02-10", "max": "2017-02-09", "bins": {"calendar": "month_of_year"}}
    ).columns[0]
    drawn = decode_column(np.ones(5_000, dtype=np.uint8), column, np.random.default_rng(0))
    days = drawn.to_pandas(date_as_object=False)
    assert (days.dt.month == 2).all() and days.between("2015-02-10", "2017-02-09").all()
    shares = days.dt.year.value_counts(normalize=True)
    assert abs(shares[2016] - 29 / 57) < 0.03 and abs(shares[2015] - 19 / 57) < 0.03


def test_decimals_are_kept_where_the_bin_holds_such_a_number() -> None:
    column = schema(
        x={"kind": "float", "min": 0, "max": 1, "bins": {"edges": [0, 0.001, 0.26, 1]}, "decimals": 1}
    ).columns[0]
    drawn = decode_column(np.array([0, 1, 2] * 300), column, np.random.default_rng(0)).to_numpy().reshape(-1, 3)
    assert set(drawn[:, 0]) == {0.0} and set(drawn[:, 1]) == {0.1, 0.2}
    assert set(np.round(drawn[:, 2], 9)) == {0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0}


@pytest.mark.parametrize(("kind", "scale"), [("integer", 1), ("float", 1), ("float", 0.01)])
def test_every_multiple_in_a_bin_is_drawn_as_often_and_a_bin_without_one_keeps_its_values(
    kind: str, scale: float
) -> None:
    edges = [scale * x for x in (0, 30, 49, 160, 200 if kind == "float" else 201)]
    x = {"kind": kind, "bins": {"edges": edges}, "multiple_of": 50 * scale}
    drawn = decode_column(np.array([0, 1, 2, 3] * 9_000), schema(x=x).columns[0], np.random.default_rng(0))
    of_bin = drawn.to_numpy().reshape(-1, 4)
    assert set(of_bin[:, 0]) == {0} and (30 * scale <= of_bin[:, 1]).all() and (of_bin[:, 1] < 49 * scale).all()
    for values, multiples in ((of_bin[:, 2], (50, 100, 150)), (of_bin[:, 3], (200,))):
        assert values.tolist().count(round(multiples[0] * scale, 9)) == pytest.approx(9_000 / len(multiples), rel=0.05)
        assert set(values.tolist()) == {round(m * scale, 9) for m in multiples}


@pytest.mark.parametrize(("kind", "form"), [("date", "%Y-%m-01"), ("datetime", "%d.%m.%Y %H:%M")])
def test_typed_dates_are_those_that_the_format_writes(kind: str, form: str) -> None:
    """Frames and Parquet had any day of a month of which a CSV release had the first."""
    since = schema(x={"kind": kind, "min": "2020-01-01", "max": "2023-12-31", "bins": "year", "format": form}).columns[
        0
    ]
    drawn = decode_column(np.array([0, 1, 2, 3] * 50), since, np.random.default_rng(0)).to_pylist()
    assert len(set(drawn)) > 20
    for moment in drawn:
        assert datetime.datetime.strptime(moment.strftime(form), form).timetuple() == moment.timetuple()


@pytest.mark.parametrize(("decimal", "texts"), [(".", {"0.00", "0.25", "60.00"}), (",", {"0,00", "0,25", "60,00"})])
def test_a_column_of_fixed_decimals_is_written_with_its_zeros_and_read_back(decimal: str, texts: set[str]) -> None:
    edges = [0, 0.25, 0.26, 60, 61]
    x = {"kind": "float", "bins": {"edges": edges}, "multiple_of": 0.25, "fixed": 2, "decimal": decimal}
    few = {"kind": "integer", "min": 59, "max": 61, "fixed": 2, "decimal": decimal, "missing": ["none"]}
    facts = schema(x={**x, "missing": False}, few=few)
    drawn = draw(np.array([0, 1, 3] * 99, np.uint8), facts["x"], np.random.default_rng(0))
    assert texts <= set(text_column(drawn, facts["x"]).to_pylist())
    drawn = draw(np.array([0, 1, 3] * 99, np.uint8), facts["few"], np.random.default_rng(0))
    assert set(text_column(drawn, facts["few"]).to_pylist()) == {f"59{decimal}00", f"60{decimal}00", None}
    assert parse_schema(facts.to_fields(), where="again").columns == facts.columns, "the released schema says it too"


def test_bins_of_equal_width_begin_at_multiples_and_the_last_one_holds_its_upper_edge() -> None:
    x = {"kind": "float", "min": 0, "max": 1, "multiple_of": 0.05, "missing": False, "fine": 40}
    each = schema(x={**x, "bins": {"count": 20}}).columns[0]
    assert finest(each).grid.edges[:-2].tolist() == [round(0.05 * i, 2) for i in range(20)]
    for column, wanted in (
        (each, {0.15, 0.95, 1.0}),
        (schema(x={**x, "bins": {"edges": [0, 0.1, 0.9, 1]}})["x"], None),
    ):
        codes = np.array([3, 19] * 500 if wanted else [2] * 1000)
        drawn = decode_column(codes, column, np.random.default_rng(0)).to_numpy()
        assert set(drawn.tolist()) == (wanted or {0.9, 0.95, 1.0})
    pay = schema(x={**x, "min": -0.6, "max": 9.9, "multiple_of": 0.3, "bins": {"count": 5}})["x"]
    assert set(decode_column(np.array([4] * 500), pay, np.random.default_rng(0)).to_numpy()) == {
        round(0.3 * i, 1) for i in range(26, 34)
    }


def test_csv_quotes_only_what_needs_it_and_a_gap_that_would_be_an_empty_line(tmp_path: Path) -> None:
    both = schema(**{"a, b": {"kind": "categorical", "values": ["x", "y,z", 'q"']}, "n": AGE})
    for facts, rows, text in (
        (both, [[0, 1, 2, 3], [1, 2, 3, 10]], '"a, b",n\nx,1\n"y,z",2\n"q""",3\n,\n'),
        (schema(n=AGE), [[1, 10, 2]], 'n\n1\n""\n2\n'),
    ):
        write_table(tmp_path / "t.csv", coded(facts, rows), facts, np.random.default_rng(0))
        assert (tmp_path / "t.csv").read_text() == text


def test_an_unknown_suffix_and_a_fault_while_writing_leave_no_file(tmp_path: Path) -> None:
    def interrupted(done: int, total: int, note: str = "") -> None:
        raise KeyboardInterrupt

    facts, rng = schema(n=AGE), np.random.default_rng(0)
    with pytest.raises(UserError, match="cannot tell the format of"):
        write_table(tmp_path / "t.xlsx", coded(facts, [[1]]), facts, rng)
    with pytest.raises(KeyboardInterrupt):
        write_table(tmp_path / "t.csv", coded(facts, [[1] * 9]), facts, rng, progress=interrupted)
    assert list(tmp_path.iterdir()) == []


def test_encoding_reports_progress_and_keeps_the_order_of_the_file(tmp_path: Path) -> None:
    rows = 600_000
    path = csv(tmp_path, "n\n" + "\n".join(str(i % 10) for i in range(rows)))
    seen: list[int] = []
    table = encode_columns(
        source(path), schema(n=AGE), workdir=tmp_path / "w", progress=lambda d, t, note="": seen.append(d)
    )[0]
    assert isinstance(table, CodedTable) and seen[-1] == rows and len(seen) > 1
    assert (table.columns[0] == np.arange(rows) % 10).all()
    assert (tmp_path / "w").stat().st_mode & 0o777 == 0o700


TEXTS = st.one_of(
    st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), max_size=5),
    st.sampled_from(
        ["", " ", " lead", "a,b", 'say "so"', '"', "l\nm", "l\r\nm", "\r", "NA", "nan", "NULL", "null", "é", "2.0"]
    ),
)


@st.composite
def labels(draw: st.DrawFn) -> dict[str, Any]:
    """Listed values, with or without a label for others and texts for gaps."""
    texts = draw(st.lists(TEXTS, min_size=4, max_size=8, unique=True))
    fields: dict[str, Any] = {"kind": "categorical", "values": texts[:-2]}
    fields |= {"other": texts[-2]} if draw(st.booleans()) and texts[-2] else {}
    fields |= {"missing": [texts[-1]]} if draw(st.booleans()) and texts[-1] else {"missing": False}
    return fields if draw(st.booleans()) else {k: v for k, v in fields.items() if k != "missing" or v}


@st.composite
def numbers(draw: st.DrawFn) -> dict[str, Any]:
    low = draw(st.integers(-(2**40), 2**40))
    span = draw(st.integers(1, 3000))
    if draw(st.booleans()):
        bins = draw(st.one_of(st.none(), st.integers(1, span).map(lambda n: {"count": n})))
        fields: dict[str, Any] = {"kind": "integer", "min": low, "max": low + span}
        fields |= {} if bins is None else {"bins": bins}
        fields |= {"multiple_of": draw(st.integers(2, 600))} if draw(st.booleans()) else {}
        fields |= draw(st.sampled_from([{}, {"strip": ["$", ","]}, {"strip": [".", " EUR"], "decimal": ","}]))
        fields |= draw(st.sampled_from([{}, {"fixed": 2}]))
    else:
        scale = draw(st.sampled_from([1e-9, 0.01, 1.0, 1e9]))
        fields = {"kind": "float", "min": (low % 997) * scale, "max": (low % 997 + span) * scale}
        fields |= {"bins": {"count": draw(st.integers(1, 70))}}
        written = {"decimals": draw(st.integers(0, 6))}, {"multiple_of": draw(st.sampled_from([0.05, 0.3, 2.5, 1e-9]))}
        fields |= draw(st.sampled_from([{}, *written])) | draw(st.sampled_from([{}, {"fixed": 2}]))
        fields |= draw(st.sampled_from([{}, {"strip": ["$", ","]}, {"decimal": ","}, {"strip": ["."], "decimal": ","}]))
    return fields | draw(further())


@st.composite
def edges(draw: st.DrawFn) -> dict[str, Any]:
    kind = draw(st.sampled_from(["integer", "float"]))
    whole = st.integers(-1000, 1000)
    cuts = sorted(
        draw(st.lists(whole if kind == "integer" else st.floats(-1e6, 1e6), min_size=2, max_size=9, unique=True))
    )
    if kind == "float":
        cuts = sorted({round(c, 3) for c in cuts}) if len({round(c, 3) for c in cuts}) > 1 else [0.0, 1.0]
    return {"kind": kind, "bins": {"edges": cuts}} | draw(further())


@st.composite
def dates(draw: st.DrawFn) -> dict[str, Any]:
    kind = draw(st.sampled_from(["date", "datetime"]))
    low = np.datetime64("1899-12-01") + draw(st.integers(0, 60_000))
    high = low + draw(st.integers(370, 3000))
    units = ["year", "month", "week", "day", "month_of_year", "day_of_week"]
    units += ["hour", "hour_of_day"] if kind == "datetime" else []
    fields: dict[str, Any] = {"kind": kind, "min": str(low), "max": str(high)}
    fields["bins"] = draw(
        st.one_of(
            st.sampled_from(units).map(lambda u: {"calendar": u}),
            st.integers(1, 370).map(lambda n: {"count": n}),
            st.just({"edges": [str(low), str(low + 7), str(low + 300)]}),
        )
    )
    if "edges" in fields["bins"]:
        del fields["min"], fields["max"]
    form = draw(st.sampled_from([None, "%d.%m.%Y" if kind == "date" else "%d.%m.%Y %H:%M:%S", "%A, %d %B %Y %H:%M:%S"]))
    if draw(st.booleans()):
        return fields | {"formats": [form or "ISO", "%Y/%m/%d", *(["ISO"] if form else [])]} | draw(further())
    return fields | ({} if form is None else {"format": form}) | draw(further())


@st.composite
def postal(draw: st.DrawFn) -> dict[str, Any]:
    digits = draw(st.integers(1, 9))
    return {"kind": "zip", "digits": digits, "prefix": draw(st.integers(1, min(digits, 3)))} | draw(further())


@st.composite
def further(draw: st.DrawFn) -> dict[str, Any]:
    fields: dict[str, Any] = {"missing": draw(st.sampled_from([True, False, ["?", "none"]]))}
    return fields | draw(st.sampled_from([{}, {"other": "else, where"}]))


FLAGS = st.sampled_from(
    [
        {"kind": "flag"},
        {"kind": "flag", "true": ["Y", "y"], "false": [""]},
        {"kind": "flag", "missing": False, "other": "?"},
        {"kind": "flag", "spellings": "common"},
        {"kind": "flag", "spellings": "common", "true": ["Ja"], "false": ["Nein"], "missing": ["k. A."]},
    ]
)
CODES = st.integers(1, 300).map(lambda n: {"kind": "categorical", "size": n})
WHOLE = st.lists(st.integers(-50, 50), min_size=1, unique=True).map(lambda v: {"kind": "categorical", "values": v})
COLUMNS = st.one_of(labels(), numbers(), edges(), dates(), postal(), FLAGS, CODES, WHOLE)
CONSTANTS = st.sampled_from(
    [{}, {"constant": {"kind": "constant", "value": "a, b"}}, {"constant": {"kind": "constant"}}]
)
NAMES = st.text(st.characters(exclude_categories=("Cs", "Cc", "Zl", "Zp")), min_size=1, max_size=6)


@pytest.fixture(autouse=True, scope="module")
def few_rows_at_a_time() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mechanisms.public.tables.write_table.CHUNK_ROWS", 17)
        yield


@pytest.mark.parametrize("name", ["\ufeff", "\ufeffid"])
def test_a_name_that_begins_with_a_byte_order_mark_is_read_as_it_was_written(name: str, tmp_path: Path) -> None:
    facts = schema(**{name: {"kind": "flag", "missing": False}})
    write_table(tmp_path / "t.csv", coded(facts, [[0, 1]]), facts, np.random.default_rng(0))
    assert codes(tmp_path / "t.csv", facts) == [[0, 1]]


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".parquet"])
@given(data=st.data())
@few(30)
def test_written_codes_encode_to_themselves(suffix: str, data: st.DataObject) -> None:
    columns = data.draw(st.dictionaries(NAMES, COLUMNS, min_size=1, max_size=3)) | data.draw(CONSTANTS)
    facts = parse_schema({"name": "t", "columns": columns}, where="t.yaml")
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    rows = data.draw(st.sampled_from([0, 1, 40]))
    table = CodedTable(facts.domain, tuple(every_code(c.size, rows, rng) for c in facts.columns))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"table{suffix}"
        write_table(path, table, facts, rng)
        again, report = encoded(path, facts)
        for column, old, new in zip(facts.columns, table.columns, again.columns, strict=True):
            assert old.tolist() == new.tolist(), column
        assert not any(report.outside.values()) and not any(report.unplaced.values())
    frame = decode_table(table, facts, rng)
    assert list(frame.columns) == list(facts.domain.names) and len(frame) == rows


@given(data=st.data())
@settings(max_examples=60)
def test_every_schema_reads_back_from_its_yaml(data: st.DataObject) -> None:
    columns = data.draw(st.dictionaries(NAMES, COLUMNS, min_size=1, max_size=3)) | data.draw(CONSTANTS)
    facts: Schema = parse_schema({"name": "t", "columns": columns}, where="t.yaml")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.yaml"
        path.write_text(facts.to_yaml(), encoding="utf-8")
        assert load_schema(path) == facts


def every_code(size: int, rows: int, rng: np.random.Generator) -> np.ndarray[Any, np.dtype[np.unsignedinteger]]:
    """Random codes, the first and the last ones among them."""
    codes = rng.integers(0, size, rows)
    codes[: min(rows, 4)] = [0, size - 1, max(size - 2, 0), max(size - 3, 0)][: min(rows, 4)]
    return codes.astype(np.min_scalar_type(size))
