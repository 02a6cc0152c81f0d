"""Fine cells within bins, and values that are merged."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mechanisms.public.domain import Attribute
from mechanisms.public.queries.cell_sums import coarse_groups
from mechanisms.public.rules.fine_columns import with_fine_columns
from mechanisms.public.schema.bins import Bins, FloatGrid, float_grid, integer_grid, within
from mechanisms.public.schema.fine_cells import cells_of_bins, fine_edges, finest, log_cut, plain_edges
from mechanisms.public.schema.table_schema import Schema, load_schema, parse_schema
from mechanisms.public.tables.codec import encode_columns
from mechanisms.public.tables.scan import open_table
from synthesis.numbers.fine_evidence import range_count

COLUMNS = {
    "n": {"kind": "integer", "min": -40, "max": 5000, "bins": {"count": 7}},
    "x": {"kind": "float", "min": 0, "max": 250_000, "bins": {"count": 9}, "decimals": 2, "other": "none"},
    "y": {"kind": "float", "bins": {"edges": [-1.5, -0.25, 0.7, 3]}, "missing": False},
    "day": {"kind": "date", "min": "2022-01-01", "max": "2023-12-31", "bins": "month"},
    "time": {"kind": "datetime", "min": "2022-01-01", "max": "2022-03-31", "bins": {"count": 4}},
    "hour": {"kind": "datetime", "min": "2022-01-01", "max": "2022-03-31", "bins": {"calendar": "hour_of_day"}},
    "grade": {"kind": "integer", "min": 1, "max": 6},
}
#: Of these columns and two more, with 64 fine cells.
CODES = {"n": 29, "x": 30, "y": 3, "day": 24, "time": 4, "hour": 24, "grade": 6, "amounts": 3, "tens": 101}
CELLS = {"n": 58, "x": 62, "y": 67, "day": 730, "time": 64, "amounts": 65}


def schema_of(columns: object = COLUMNS, **rules: object) -> Schema:
    return parse_schema({"columns": columns, "confirmed_public": True, **rules}, where="town.yaml")


def test_columns_whose_bins_hold_several_values_get_fine_cells_and_others_none():
    fine = with_fine_columns(schema_of(), 64).fine
    assert set(fine) == {"n", "x", "y", "day", "time"}, "not the hour, which lies on no line, nor single values"
    assert with_fine_columns(schema_of(), 0).fine == {} == schema_of().fine
    assert schema_of().measured == schema_of().synthesized == schema_of().domain


def test_codes_and_fine_cells_of_a_schema_never_change_since_releases_are_read_by_them():
    amounts = {"kind": "float", "bins": {"edges": [0, 0.01, 1, 500]}, "decimals": 2, "missing": False}
    tens = {"kind": "integer", "min": 0, "max": 100, "multiple_of": 10, "missing": False}
    schema = with_fine_columns(schema_of({**COLUMNS, "amounts": amounts, "tens": tens}), 64)
    assert {c.name: c.value_codes for c in schema.columns} == CODES
    assert {name: schema.finest[name].value_codes for name in schema.fine} == CELLS


def test_a_range_of_few_values_has_a_fine_cell_for_each():
    columns = {"hours": {"kind": "integer", "min": 1, "max": 99, "bins": {"count": 4}}}
    (hours,) = with_fine_columns(schema_of(columns), 16).finest.columns
    assert hours.value_codes == 99


@settings(max_examples=60)
@given(
    st.sampled_from(["integer", "float"]),
    st.integers(-(10**6), 10**6),
    st.integers(1, 10**6),
    st.integers(1, 40),
    st.integers(2, 300),
)
def test_fine_cells_refine_the_bins(kind, low, span, count, fine):
    bins = {"count": min(count, span)}
    column = schema_of({"v": {"kind": kind, "min": low, "max": low + span, "bins": bins, "fine": fine}})["v"]
    edges, cells = plain_edges(column), plain_edges(finest(column))
    assert set(edges) <= set(cells) and (np.diff(cells) > 0).all()
    assert (cells[cells_of_bins(column)] == edges).all()


def test_what_is_read_finely_falls_into_the_bins_that_it_would_be_read_into(tmp_path):
    schema = with_fine_columns(schema_of(), 24)
    rng = np.random.default_rng(3)
    n = 1500
    seconds = rng.integers(1_640_000_000, 1_690_000_000, n)
    frame = pd.DataFrame(
        {
            "n": np.where(rng.random(n) < 0.5, rng.integers(-60, 30, n), rng.integers(-60, 5100, n)),
            "x": rng.choice([0, 250_000, 249_999.99, 10, 1500, 1499.99, 3e5], n) * rng.choice([1, 1, 0.5], n),
            "y": rng.choice([-1.5, -0.25, 0.0, 0.7, 3, np.nextafter(0.7, 0), 0.3], n),
            "day": pd.to_datetime(seconds, unit="s").strftime("%Y-%m-%d"),
            "time": pd.to_datetime(seconds, unit="s").strftime("%Y-%m-%d %H:%M:%S"),
            "hour": pd.to_datetime(seconds, unit="s").strftime("%Y-%m-%d %H:%M:%S"),
            "grade": rng.integers(0, 9, n),
        }
    ).astype(object)
    frame.loc[rng.random(n) < 0.1, ["n", "x", "day"]] = ""
    frame.loc[::77, "x"] = "none"
    frame.to_csv(tmp_path / "t.csv", index=False)
    source = open_table(tmp_path / "t.csv", workdir=tmp_path, memory_limit_bytes=1 << 30, threads=1)
    whole = encode_columns(source, schema, workdir=tmp_path / "whole")[0]
    finely, _ = encode_columns(source, schema, workdir=tmp_path / "fine", fine=True)
    assert finely.domain == schema.measured
    alone = encode_columns(source, schema.finest, workdir=tmp_path / "finest")[0]
    for name in schema.domain.names:
        np.testing.assert_array_equal(finely.column(name), whole.column(name), err_msg=name)
    for name, fine in schema.fine.items():
        np.testing.assert_array_equal(finely.column(fine.name), alone.column(name), err_msg=name)


def test_equal_bins_of_a_wide_range_are_cut_by_ratios_and_chosen_edges_are_not():
    columns = {
        "charge": {"kind": "float", "min": 0, "max": 1_000_000, "bins": {"count": 20}},
        "chosen": {"kind": "integer", "bins": {"edges": [0, 1, 100_000]}},
        "narrow": {"kind": "float", "min": 0, "max": 100, "bins": {"count": 4}},
    }
    schema = schema_of(columns)
    edges = plain_edges(log_cut(schema["charge"]))
    assert {500, 1000, 5000, 50_000, 100_000} <= set(edges), "the bin up to 50,000 is told apart"
    large, small = edges[edges >= 500], edges[(edges > 1e-6) & (edges <= 500)]
    assert (large[1:] <= 2.5 * large[:-1]).all() and (small[1:] <= 4 * small[:-1]).all() and small[0] <= 0.1
    assert log_cut(schema["chosen"]) is schema["chosen"] and log_cut(schema["narrow"]) is schema["narrow"]


def test_zero_has_a_bin_of_its_own_where_a_wide_range_is_cut():
    columns = {
        "paid": {"kind": "float", "min": 0, "max": 1_000_000, "bins": {"count": 20}, "decimals": 2},
        "gain": {"kind": "integer", "min": -50_000, "max": 100_000, "bins": {"count": 7}},
    }
    schema = schema_of(columns)
    assert plain_edges(log_cut(schema["paid"]))[:2].tolist() == [0, 0.01]
    edges = plain_edges(log_cut(schema["gain"])).tolist()
    assert edges[edges.index(0) + 1] == 1 and {-1, -10, 10, -1000, 1000} <= set(edges)


def test_a_column_in_a_rule_keeps_its_bins():
    columns = {
        "charge": {"kind": "float", "min": 0, "max": 1_000_000, "bins": {"count": 20}},
        "sex": {"kind": "categorical", "values": ["f", "m"]},
    }
    rule = {"impossible": [{"charge": {"min": 0, "max": 1_000_000}, "sex": "f"}]}
    tied = with_fine_columns(schema_of(columns, **rule), 64)
    assert tied["charge"].bins.count == 20 and "charge" in tied.fine


def test_the_released_schema_reads_back_with_the_same_fine_columns(tmp_path):
    schema = with_fine_columns(schema_of(), 64)
    (tmp_path / "s.yaml").write_text(schema.to_yaml(), encoding="utf-8")
    back = load_schema(tmp_path / "s.yaml")
    assert back.measured == schema.measured and back.fine == schema.fine
    for one, other in zip(back.finest.columns, schema.finest.columns, strict=True):
        assert one.bins == other.bins


@settings(max_examples=200)
@given(st.integers(-3000, 0), st.integers(1_000, 300_000), st.integers(1, 900))
def test_narrow_bins_of_whole_numbers_are_cut_between_values(low, high, count):
    """A bin of ten whole numbers was cut at 0.15 and 1.5: bins without a value, in a schema that nothing could read."""
    columns = {"n": {"kind": "integer", "min": low, "max": high, "bins": {"count": count}}}
    schema = with_fine_columns(schema_of(columns), 256)
    edges = plain_edges(schema["n"])
    assert edges is not None and (np.diff(edges) >= 1).all()
    assert len(set(schema["n"].labels)) == schema["n"].value_codes
    assert parse_schema(schema.to_fields(), where="again") == schema


@given(st.integers(1, 60), st.integers(0, 3), st.integers(2, 20), st.integers(0, 2**32 - 1), st.booleans())
def test_groups_are_numbered_without_gaps_and_are_no_more_than_asked(line, behind, groups, seed, ordered):
    size = line + behind
    attribute = Attribute("x", size, line if ordered else 0)
    labels = coarse_groups(attribute, np.random.default_rng(seed).exponential(5, size), groups)
    assert labels.shape == (size,)
    assert set(labels.tolist()) == set(range(int(labels.max()) + 1))
    assert labels.max() + 1 <= max(groups, 2)
    if size <= groups:
        assert np.array_equal(labels, np.arange(size)), "nothing is merged where there is room for every code"


@given(st.integers(5, 60), st.integers(0, 2), st.integers(5, 20), st.integers(0, 2**32 - 1))
def test_codes_on_a_line_are_merged_with_their_neighbours_and_those_behind_stay_alone(line, behind, groups, seed):
    labels = coarse_groups(
        Attribute("x", line + behind, line), np.random.default_rng(seed).exponential(5, line + behind), groups
    )
    assert (np.diff(labels[:line]) >= 0).all() and (np.diff(labels[:line]) <= 1).all()
    assert len(set(labels[line:].tolist()) - set(labels[:line].tolist())) == behind


def test_groups_on_a_line_have_about_equal_mass():
    mass = np.random.default_rng(0).exponential(1, 400)
    labels = coarse_groups(Attribute("x", 400, 400), mass, 20)
    sums = np.bincount(labels, mass)
    assert sums.size == 20 and sums.max() < 1.5 * sums.mean() and sums.min() > 0.5 * sums.mean()


def test_the_most_frequent_values_of_a_category_stay_alone():
    labels = coarse_groups(Attribute("x", 6), np.array([5.0, 50.0, 1.0, 70.0, -3.0, 2.0]), 3)
    assert labels[1] != labels[3] and len({labels[i] for i in (0, 2, 4, 5)}) == 1
    assert len(set(labels.tolist())) == 3


@settings(max_examples=60)
@given(low=st.integers(-50, 50), width=st.integers(1, 60), count=st.integers(1, 9), data=st.data())
def test_whole_numbers_lie_in_the_ranges_and_in_their_bins(low, width, count, data):
    grid = integer_grid(low, low + width, Bins(count=min(count, width + 1)), kind="integer", where="x")
    first = data.draw(st.integers(low, low + width))
    last = data.draw(st.integers(first, low + width))
    ranges = [(first, last)] if data.draw(st.booleans()) else sorted({(first, first), (last, last)})
    allowed = {v for a, b in ranges for v in range(a, b + 1)}
    codes = {v: int(np.searchsorted(grid.starts, v, side="right")) - 1 for v in allowed}
    drawn_codes = np.array(sorted(codes.values()) * 40, dtype=np.uint8)
    values = within(grid, ranges).draw(drawn_codes, np.random.default_rng(1))
    assert {int(v) for v in values} <= allowed
    assert [codes[int(v)] for v in values] == drawn_codes.tolist()


def test_days_of_the_week_in_one_week_keep_their_dates():
    """Every code has one day left, of the many that it had: the day inside the range is drawn."""
    grid = integer_grid(0, 69, Bins(calendar="day_of_week"), kind="date", where="x")
    codes = np.arange(7, dtype=np.uint8)
    days = within(grid, [(14, 20)]).draw(codes, np.random.default_rng(1))
    assert sorted(days) == list(range(14, 21)) and ((days + 3) % 7).tolist() == codes.tolist()


def test_floats_are_uniform_in_what_is_left_of_a_bin():
    grid = float_grid(0, 100, Bins(count=4), decimals=1, where="x")
    cut = within(grid, [(30.0, 60.0)])
    assert isinstance(cut, FloatGrid)
    values = cut.draw(np.repeat(np.array([1, 2], np.uint8), 2000), np.random.default_rng(1))
    assert values[:2000].min() >= 30 and values[:2000].max() < 50 <= values[2000:].min() and values.max() <= 60
    assert values[:2000].mean() == pytest.approx(40, abs=0.5) and values[2000:].mean() == pytest.approx(55, abs=0.3)
    assert (values == values.round(1)).all()


@pytest.mark.parametrize(("low", "high", "held"), [(14.0, 14.1, {14.0, 14.1}), (13.2, 13.3, {13.2, 13.3})])
def test_both_ends_of_a_range_of_floats_are_drawn_and_no_digits_that_the_column_has_not(low, high, held):
    """Of 13.2 to 13.3 a third of the rows had 15 digits, where a bin began between, and none had 13.3."""
    grid = float_grid(10.3, 18.8, Bins(count=20), decimals=1, where="x")
    codes = np.searchsorted(grid.edges, sorted(held), side="right") - 1
    values = within(grid, [(low, high)]).draw(np.repeat(codes.astype(np.uint8), 200), np.random.default_rng(1))
    assert {*values.tolist()} == held


@pytest.mark.parametrize(
    ("declared", "asked", "cells"),
    [
        ({"kind": "integer", "bins": {"edges": [0, 5, 10, 20, 21]}, "multiple_of": 5}, (10, 12), [2]),
        ({"kind": "integer", "bins": {"edges": [0, 5, 10, 20, 21]}, "multiple_of": 5}, (6, 9), []),
        ({"kind": "float", "bins": {"edges": [0, 7.5, 15, 16]}, "multiple_of": 7.5}, (0, 7.5), [0, 1]),
    ],
)
def test_a_count_of_a_range_holds_the_multiples_in_it_whole(declared, asked, cells):
    """A discount of 10 per cent, beside 0, 5 and 20, counted a fifth of its records; fees up to 7.50 had none of it."""
    facts = parse_schema({"columns": {"x": {**declared, "missing": False}}}, where="t")
    column = with_fine_columns(facts, 256)["x"]
    counts = 10.0 ** np.arange(fine_edges(column).size - 1)
    counted = range_count(column, None, (counts, 1.0), None, [asked])
    assert counted.value == pytest.approx(counts[cells].sum())
    assert counted.least[0] <= counted.value <= counted.most[0], "a record that is no multiple may lie outside"
