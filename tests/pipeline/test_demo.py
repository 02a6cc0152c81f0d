"""The demo city keeps its promises: exact rows, few calls per caller, one table per seed, gaps, and structure."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet
import pytest

from mechanisms.public.errors import UserError
from mechanisms.public.schema.table_schema import load_schema
from mechanisms.public.tables.codec import encode_columns
from mechanisms.public.tables.scan import open_table
from pipeline.conf_folder import SCHEMAS
from pipeline.demo import write_demo
from pipeline.demo.write_city import CHUNK

ROWS = CHUNK + 30_000  # two chunks


@pytest.fixture(scope="module")
def city(tmp_path_factory: pytest.TempPathFactory) -> pd.DataFrame:
    path = tmp_path_factory.mktemp("city") / "demo.parquet"
    write_demo(path, rows=ROWS, seed=0)
    return pd.read_parquet(path)


def association(table: pd.DataFrame, a: str, b: str) -> float:
    """Total variation distance between the joint shares and the product of the single ones."""
    joint = pd.crosstab(table[a], table[b], normalize=True).to_numpy()
    return float(np.abs(joint - joint.sum(1, keepdims=True) * joint.sum(0, keepdims=True)).sum() / 2)


@pytest.mark.parametrize("rows", [0, 1, 2, 1000, CHUNK, CHUNK + 5])
def test_there_are_exactly_as_many_rows_as_asked_for_and_progress_ends_at_all(tmp_path: Path, rows: int) -> None:
    path, seen = tmp_path / "demo.parquet", []
    write_demo(path, rows=rows, seed=3, progress=lambda done, total: seen.append((done, total)))
    assert pyarrow.parquet.read_metadata(path).num_rows == rows
    assert seen == [(min(done, rows), rows) for done in range(CHUNK, rows + CHUNK, CHUNK)]


def test_callers_make_at_most_20_calls_mostly_one_or_two_scattered_within_one_chunk(city: pd.DataFrame) -> None:
    calls, ids = city.caller_id.value_counts(), city.caller_id.to_numpy()
    assert len(city) == ROWS and calls.max() == 20
    assert (calls <= 2).mean() > 0.5 and (calls == 1).mean() < 0.8
    assert not set(ids[:CHUNK]) & set(ids[CHUNK:])
    assert (ids[1:] == ids[:-1]).mean() < 0.001


@pytest.mark.parametrize("name", ["a.parquet", "a.csv", "a.csv.gz"])
def test_the_same_seed_gives_the_same_bytes_and_another_seed_other_calls(tmp_path: Path, name: str) -> None:
    for folder, seed in (("one", 5), ("two", 5), ("three", 6)):
        write_demo(tmp_path / folder / name, rows=2000, seed=seed)
    first, same, other = ((tmp_path / f / name).read_bytes() for f in ("one", "two", "three"))
    assert first == same != other


def test_csv_and_parquet_hold_the_same_table(tmp_path: Path) -> None:
    write_demo(tmp_path / "a.csv.gz", rows=500, seed=1)
    write_demo(tmp_path / "a.parquet", rows=500, seed=1)
    text = pd.read_csv(tmp_path / "a.csv.gz", parse_dates=["received"])
    typed = pd.read_parquet(tmp_path / "a.parquet")
    assert list(text) == list(typed)
    for name in text:
        assert (text[name].isna() == typed[name].isna()).all(), name
        assert (text[name].dropna().to_numpy() == typed[name].dropna().to_numpy()).all(), name


@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
def test_every_value_lies_inside_the_schema(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"demo{suffix}"
    write_demo(path, rows=30_000, seed=2)
    schema = load_schema(SCHEMAS / "demo.yaml")
    source = open_table(path, workdir=tmp_path, memory_limit_bytes=10**9, threads=1)
    table, report = encode_columns(source, schema, workdir=tmp_path / "coded")
    assert not report.marked
    assert set(source.names) == set(schema.domain.names) | set(schema.leave_out)
    for column in schema.columns:
        used = np.bincount(table.column(column.name), minlength=column.size) > 0
        assert used.mean() > 0.85, column.name


def test_gaps_are_where_nobody_wrote_anything_down(city: pd.DataFrame) -> None:
    share = city.isna().mean()
    assert set(share[share > 0].index) == {"longitude", "latitude", "response_minutes", "channel"}
    assert ((share == 0) | (share > 0.01)).all()
    assert (city.longitude.isna() == city.latitude.isna()).all()
    by_group = city.response_minutes.isna().groupby(city.incident_group, observed=True).mean()
    assert by_group["Service"] > 0.5 > 0.1 > by_group["Fire"]


def test_the_type_decides_its_group_and_the_corner_its_neighbourhood(city: pd.DataFrame) -> None:
    assert (city.groupby("incident_type", observed=True).incident_group.nunique() == 1).all()
    corners = city.dropna(subset="longitude").groupby(["longitude", "latitude"])
    assert (corners.neighbourhood.nunique() == 1).all()


def test_weekday_and_hour_are_those_of_the_time_received(city: pd.DataFrame) -> None:
    assert (city.hour == city.received.dt.hour).all()
    assert (city.weekday.astype(str) == city.received.dt.day_name()).all()
    assert city.received.min() >= pd.Timestamp("2023-01-01") and city.received.max() < pd.Timestamp("2024-01-01")


@pytest.mark.parametrize(
    ("a", "b", "least"),
    [
        ("incident_group", "hour", 0.06),
        ("incident_group", "weekday", 0.02),
        ("incident_group", "channel", 0.10),
        ("incident_type", "priority", 0.30),
        ("incident_type", "neighbourhood", 0.20),
        ("weekday", "hour", 0.02),
    ],
)
def test_columns_hang_together(city: pd.DataFrame, a: str, b: str, least: float) -> None:
    shuffled = city.assign(**{b: np.random.default_rng(0).permutation(city[b].to_numpy())})
    assert association(city, a, b) > association(shuffled, a, b) + least


def test_help_comes_sooner_when_it_is_urgent_and_later_when_it_is_far(city: pd.DataFrame) -> None:
    minutes = city.groupby("priority").response_minutes.median()
    assert all(a < b for a, b in itertools.pairwise(minutes))
    place = city[city.priority == 3].groupby("neighbourhood", observed=True).response_minutes.median()
    assert place.quantile(0.95) > 1.5 * place.quantile(0.05)


def test_seasons_differ(city: pd.DataFrame) -> None:
    rescues = city[city.incident_group == "Rescue"].received.dt.month.value_counts()
    assert rescues[7] > 1.5 * rescues[1]


@pytest.mark.parametrize(
    ("name", "rows", "seed", "message"),
    [
        ("a.xlsx", 10, 0, "ends in .parquet, .csv, .csv.gz"),
        ("a.csv", -1, 0, "data.rows: got -1"),
        ("a.csv", 10, -1, "data.seed: got -1"),
    ],
)
def test_mistakes_name_the_setting_and_leave_no_file(tmp_path, name, rows, seed, message):
    with pytest.raises(UserError, match=message):
        write_demo(tmp_path / name, rows=rows, seed=seed)
    assert list(tmp_path.iterdir()) == []


def test_an_interrupted_write_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("before")

    def interrupt(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_demo(path, rows=10, seed=0, progress=interrupt)
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]
