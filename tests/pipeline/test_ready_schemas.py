"""Every ready data entry loads, names its source and has the published sizes; the demo city keeps its promises."""

import itertools
from dataclasses import asdict, fields
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet
import pytest
import yaml

from mechanisms.public.errors import UserError
from mechanisms.public.schema.column import DAYS
from mechanisms.public.schema.table_schema import Schema, load_schema, parse_schema, part_of
from mechanisms.public.tables.codec import encode_columns
from mechanisms.public.tables.scan import open_table
from pipeline.conf_folder import CONF, SCHEMAS
from pipeline.demo import city, write_demo
from pipeline.demo.write_city import CHUNK
from pipeline.settings.config import DataConfig, schema_path

READY = (
    *("demo", "adult", "adult_codes", "fire_calls", "dpsyn_fire", "pums1940", "fire15", "acs", "chicago_taxi"),
    *("drug_deaths", "baseball", "baseball_players", "national2019", "chicago_taxis", "fire_addresses"),
)
#: Of experiments that choose a schema by ε, without an entry of their own.
BY_EPSILON = ("dpsyn_fire_low", "dpsyn_fire_high", "pums1940_low")
#: Of an entry's table with whole persons: data.schema=…
OF_PERSONS = ("demo_callers",)
FIELDS = [f.name for f in fields(DataConfig)]
#: Settings of tables of one's own alone.
OWN = {"table", "query", "rows_of_one_unit", "delimiter", "encoding"}

#: Sizes of the published domains (columns of codes), in the order of the table.
ACS = [181, 7, 27, 7, 27, 2, 18, 6, 9, 6, 7, 9, 2, 2, 2, 2, 2, 12, 4, 15, 3, 4, 5, 4, 6, 4, 4] + [22] * 5 + [27, 97, 97]
ADULT_CODES = [32, 9, 32, 16, 16, 7, 15, 6, 5, 2, 32, 32, 32, 42, 2]
TAXI = [21, 57, 78, 78, 9] + [11] * 5
FIRE15 = [2, 2, 5, 8, 8, 9, 10, 11, 11, 12, 15, 28, 32, 42, 46]
FIRE = [*FIRE15, *[100] * 4, *[101] * 4, 100, 5, 101, 83, 100, 100, 742, 2089]


def entry(name: str) -> dict[str, object]:
    return yaml.safe_load((CONF / "data" / f"{name}.yaml").read_text(encoding="utf-8"))


def schema(name: str) -> Schema:
    return load_schema(SCHEMAS / f"{name}.yaml")


@pytest.mark.parametrize("name", [*READY, "table"])
def test_every_entry_has_all_fields_in_order(name: str) -> None:
    content = entry(name)
    assert list(content) == [f for f in FIELDS if name == "table" or f not in OWN]
    unused = {name: getattr(DataConfig(), name) for name in OWN}
    assert asdict(DataConfig(**content)) == unused | content  # type: ignore[arg-type]
    assert content["name"] == name


@pytest.mark.parametrize("name", READY)
def test_every_entry_has_a_confirmed_schema_of_a_named_source_and_a_unit_with_its_bound_that_is_not_released(name):
    found = load_schema(schema_path(str(entry(name)["schema"])))
    assert found.name == name
    assert found.confirmed_public
    assert len(found.source) > 20
    assert all(c.outside != "refuse" for c in found.columns)
    again = parse_schema(yaml.safe_load(found.to_yaml()), where="written.yaml")
    assert again.domain == found.domain and again.columns == found.columns
    data = DataConfig(**entry(name))  # type: ignore[arg-type]
    if data.unit == "record":
        assert data.max_records is None
    else:
        assert data.max_records is not None and data.max_records >= 1
        unit = schema(name).rules.unit
        assert data.unit in schema(name).leave_out if unit is None else unit.column == data.unit
        assert unit is None or unit.bound == data.max_records


def test_no_schema_is_without_an_entry_and_no_entry_without_a_test() -> None:
    assert sorted(p.stem for p in SCHEMAS.iterdir()) == sorted([*READY, *BY_EPSILON, *OF_PERSONS])
    assert sorted(p.stem for p in (CONF / "data").iterdir()) == sorted([*READY, "table"])


@pytest.mark.parametrize("name", OF_PERSONS)
def test_a_schema_of_persons_stands_on_that_of_its_entry_and_has_its_c(name: str) -> None:
    found, usual = schema(name), schema(name.partition("_")[0])
    data, unit = DataConfig(**entry(usual.name)), found.rules.unit  # type: ignore[arg-type]
    assert found.name == name and found.confirmed_public and found.columns == usual.columns
    assert unit is not None and (unit.column, unit.bound) == (data.unit, data.max_records)


@pytest.mark.parametrize("name", BY_EPSILON)
def test_a_schema_by_epsilon_has_the_columns_of_the_one_that_scores_are_counted_in(name: str) -> None:
    found, usual = load_schema(SCHEMAS / f"{name}.yaml"), schema(name.rpartition("_")[0])
    assert found.name == name and found.confirmed_public
    assert found.domain.names == usual.domain.names
    assert (found.measured, found.engineering.alone) != (usual.measured, usual.engineering.alone)
    assert parse_schema(yaml.safe_load(found.to_yaml()), where="written.yaml").columns == found.columns


@pytest.mark.parametrize(
    ("name", "expected"),
    [("acs", ACS), ("adult_codes", ADULT_CODES), ("chicago_taxi", TAXI), ("fire15", FIRE15), ("fire_calls", FIRE)],
)
def test_sizes_are_those_of_the_published_domain(name: str, expected: list[int]) -> None:
    assert [a.size for a in schema(name).domain.attributes] == expected


@pytest.mark.parametrize(
    ("name", "ordinal"),
    [
        ("acs", "YEAR HHWT PERWT AGE EDUC INCTOT INCWAGE INCWELFR INCINVST INCEARN POVERTY DEPARTS ARRIVES"),
        ("adult_codes", "age fnlwgt education-num capital-gain capital-loss hours-per-week"),
        ("chicago_taxi", "fare tips trip_total trip_seconds trip_miles"),
    ],
)
def test_coded_tables_say_which_codes_ascend(name: str, ordinal: str) -> None:
    found = schema(name)
    assert [a.name for a in found.domain.attributes if a.ordered] == ordinal.split()
    assert all(a.ordered in {0, a.size} for a in found.domain.attributes)
    assert not any(c.missing or c.other for c in found.columns)


def test_fire_calls_knows_empty_texts_as_values_and_times_as_gaps() -> None:
    fire = schema("fire_calls")
    assert fire["Call Type Group"].values[-1] == "" and not fire["Call Type Group"].missing
    assert "Extrication / Entrapped (Machinery, Vehicle)" in fire["Call Type"].values
    assert fire["ALS Unit"].values == ("false", "true")
    assert "None" in fire["Neighborhood"].values
    gaps = [c.name for c in fire.columns if c.missing]
    assert gaps == [f"{n} DtTm" for n in ("Response", "On Scene", "Transport", "Hospital", "Available")]
    assert fire.leave_out == ("Address",)
    part = schema("fire15")
    assert [fire[c.name] for c in part.columns] == list(part.columns)
    assert set(part.leave_out) | set(part.domain.names) == set(fire.leave_out) | set(fire.domain.names)


def test_adult_reads_both_spellings_of_income_and_question_marks_as_missing() -> None:
    adult = schema("adult")
    assert len(adult.columns) == 15
    assert [c.name for c in adult.columns if c.missing] == ["workclass", "occupation", "native-country"]
    assert adult["workclass"].missing_texts == ("?",)
    assert (adult["income"].values[1], *adult["income"].spellings[1:]) == (">50K", (">50K.", 1))
    assert (adult["workclass"].size, adult["education"].size, adult["native-country"].size) == (9, 16, 43)


def test_drug_deaths_has_40_columns_dates_by_month_and_flags() -> None:
    deaths = schema("drug_deaths")
    assert len(deaths.columns) + len(deaths.leave_out) == 40
    assert "Other Significant Conditions " in deaths.leave_out  # the blank is in the published header
    assert deaths["Date"].size == 13 * 12 + 1
    assert (deaths["Heroin"].spelled, deaths["Heroin"].size) == ((("", 0), ("Y", 1)), 2)
    assert "HISPANIC, WHITE" in deaths["Race"].values


def test_players_are_seasons_with_constants_of_a_second_table() -> None:
    players, seasons = schema("baseball_players"), schema("baseball")
    unit = players.rules.unit
    assert unit is not None and (unit.column, unit.order, unit.max_records) == ("players_id", ("year",), 20)
    assert unit.constant == ("country", "height", "weight")
    assert {c.name: c for c in players.columns if c.name not in unit.constant} == {c.name: c for c in seasons.columns}
    assert entry("baseball_players")["units"] == {"path": None, "id": "id"}
    assert (players["height"].low, players["height"].high) == (36, 96) and players["country"].other == "Other"


def test_baseball_bounds_lie_above_the_records_and_unknown_teams_are_other() -> None:
    baseball = schema("baseball")
    bounds = {"G": 170, "HR": 80, "AB": 750, "H": 280, "year": 2030}
    assert {c.name: c.high for c in baseball.columns if c.kind == "integer"} == bounds
    assert baseball["team"].other == "Other"
    assert {"NYA", "BOS", "CHN", "TRO"} <= set(baseball["team"].values)


def test_national2019_lists_the_dictionary_s_codes_and_what_follows_from_others() -> None:
    national = schema("national2019")
    assert len(national.columns) == 24 and len(national["PUMA"].values) == 20
    assert (national["NOC"].high, national["NPF"].high, national["PWGTP"].high) == (19, 20, 9999)
    assert len(national["INDP"].values) == 271 and national["INDP"].hierarchy.depth == 2
    assert {s.takes[0] for s in national.rules.steps if not s.gives} == {"INDP_CAT", "DENSITY"}
    part = part_of(national, ["PUMA", "AGEP", "SEX", "INDP_CAT", "MSP"], where="here")
    assert part.domain.names == ("PUMA", "AGEP", "SEX", "MSP", "INDP_CAT")
    assert part.synthesized == part.domain and len(part.zeros) == 2
    with pytest.raises(UserError, match="did you mean 'PINCP'"):
        part_of(national, ["PINCPP"], where="here")


def test_the_demo_schema_is_the_generator_s_own() -> None:
    fields = yaml.safe_load((SCHEMAS / "demo.yaml").read_text(encoding="utf-8"))["columns"]
    listed = {"weekday": DAYS, "channel": city.CHANNELS, "incident_group": city.GROUPS}
    for name, values in listed.items():
        assert tuple(fields[name]["values"]) == values, name
    places = fields["neighbourhood"]["values"]
    areas = fields["neighbourhood"]["hierarchy"]["tree"].values()
    assert sorted(n for area in areas for district in area.values() for n in district) == sorted(places)
    assert sum(city.QUARTERS.values()) == len(places)
    bounds = [(fields[name]["min"], fields[name]["max"]) for name in ("longitude", "latitude", "priority", "received")]
    year = (f"{city.YEAR}-01-01", f"{city.YEAR}-12-31")
    assert bounds == [city.BOX[:2], city.BOX[2:], (1, city.PRIORITIES), year]
    assert fields["response_minutes"]["bins"]["edges"][-1] == city.LONGEST
    demo = schema("demo")
    assert (demo["neighbourhood"].size, demo["incident_type"].size, demo["received"].size) == (278, 174, 12)
    types, places = demo["incident_type"].hierarchy, demo["neighbourhood"].hierarchy
    assert types.level("incident_group").nodes == demo["incident_group"].values
    assert types.leaves == demo["incident_type"].values and types.depth == 2
    assert {level.name: len(level) for level in places.levels} == {"area": 8, "district": 40, "neighbourhood": 278}


def test_no_file_that_lies_about_takes_the_place_of_a_ready_schema(folder):
    for stray in ("demo.yaml", "demo"):
        (folder / stray).write_text("columns: {mine: {kind: integer, min: 0, max: 1}}\n")
    for name in READY:
        assert schema_path(str(entry(name)["schema"])) == SCHEMAS / f"{name}.yaml"
    assert schema_path("./demo.yaml").resolve() == folder / "demo.yaml", "whoever writes a path means it"


def test_the_pairs_of_a_level_can_be_and_no_other() -> None:
    tree = {"levels": ["area", "city"], "tree": {"north": ["a", "b"], "south": ["c"]}}
    columns = {
        "city": {"kind": "categorical", "values": ["a", "b", "c"], "hierarchy": tree},
        "area": {"kind": "categorical", "values": ["south", "north"], "other": "abroad", "missing": False},
    }

    def read(level: str | int) -> Schema:
        rule = [{"columns": ["city", "area"], "possible": level}]
        return parse_schema({"columns": columns, "impossible": rule}, where="s.yaml")

    ((_, cells),) = read("area").rules.zeros
    impossible = np.argwhere(np.reshape(cells, (4, 3))).tolist()
    assert impossible == [[0, 0], [1, 0], [2, 1]], "a city lies in its area, or abroad; one that is missing anywhere"
    with pytest.raises(UserError, match="'land' is no level of 'city', and no file") as refused:
        read("land")
    assert "a level: area, city" in (refused.value.fix or "")
    tree = tree["tree"]
    columns["city"]["hierarchy"] = tree
    with pytest.raises(UserError, match="area") as refused:
        read("area")
    assert "a level: 1, 2" in (refused.value.fix or "") and len(read(1).rules.zeros) == 1, "levels without a name"


ROWS = CHUNK + 30_000  # two chunks


@pytest.fixture(scope="module")
def made_city(tmp_path_factory: pytest.TempPathFactory) -> pd.DataFrame:
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


def test_callers_make_at_most_20_calls_mostly_one_or_two_scattered_within_one_chunk(made_city: pd.DataFrame) -> None:
    calls, ids = made_city.caller_id.value_counts(), made_city.caller_id.to_numpy()
    assert len(made_city) == ROWS and calls.max() == 20
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


def test_gaps_are_where_nobody_wrote_anything_down(made_city: pd.DataFrame) -> None:
    share = made_city.isna().mean()
    assert set(share[share > 0].index) == {"longitude", "latitude", "response_minutes", "channel"}
    assert ((share == 0) | (share > 0.01)).all()
    assert (made_city.longitude.isna() == made_city.latitude.isna()).all()
    by_group = made_city.response_minutes.isna().groupby(made_city.incident_group, observed=True).mean()
    assert by_group["Service"] > 0.5 > 0.1 > by_group["Fire"]


def test_the_type_decides_its_group_and_the_corner_its_neighbourhood(made_city: pd.DataFrame) -> None:
    assert (made_city.groupby("incident_type", observed=True).incident_group.nunique() == 1).all()
    corners = made_city.dropna(subset="longitude").groupby(["longitude", "latitude"])
    assert (corners.neighbourhood.nunique() == 1).all()


def test_weekday_and_hour_are_those_of_the_time_received(made_city: pd.DataFrame) -> None:
    assert (made_city.hour == made_city.received.dt.hour).all()
    assert (made_city.weekday.astype(str) == made_city.received.dt.day_name()).all()
    assert made_city.received.min() >= pd.Timestamp("2023-01-01") and made_city.received.max() < pd.Timestamp(
        "2024-01-01"
    )


@pytest.mark.some(3)
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
def test_columns_hang_together(made_city: pd.DataFrame, a: str, b: str, least: float) -> None:
    shuffled = made_city.assign(**{b: np.random.default_rng(0).permutation(made_city[b].to_numpy())})
    assert association(made_city, a, b) > association(shuffled, a, b) + least


def test_help_comes_sooner_when_it_is_urgent_and_later_when_it_is_far(made_city: pd.DataFrame) -> None:
    minutes = made_city.groupby("priority").response_minutes.median()
    assert all(a < b for a, b in itertools.pairwise(minutes))
    place = made_city[made_city.priority == 3].groupby("neighbourhood", observed=True).response_minutes.median()
    assert place.quantile(0.95) > 1.5 * place.quantile(0.05)


def test_seasons_differ(made_city: pd.DataFrame) -> None:
    rescues = made_city[made_city.incident_group == "Rescue"].received.dt.month.value_counts()
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
