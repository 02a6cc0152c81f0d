"""Tables in parts: a folder or a pattern is read as one table, and a part that is damaged or differs is named."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mechanisms.public.errors import UserError
from mechanisms.public.tables.inspect_file import check_unchanged, states
from mechanisms.sensitive.engines.slices import slices
from mechanisms.sensitive.private_table import fingerprint
from tests.public.table_worlds import codes, csv, schema, source

FACTS = schema(city={"kind": "categorical", "values": ["x", "y"]}, n={"kind": "integer", "min": 0, "max": 9})
TEXT = "city,n\nx,1\ny,2\n"


def folder_of(place: Path, *texts: str) -> Path:
    folder = place / "parts"
    folder.mkdir()
    for i, text in enumerate(texts):
        csv(folder, text, f"part-{i}.csv")
    csv(folder, "", "_SUCCESS")
    csv(folder, "", ".hidden")
    return folder


def test_a_folder_and_a_pattern_are_the_table_of_their_parts_in_the_order_of_their_names(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, TEXT, "city,n\n", "city,n\ny,9\n")
    expected = codes(csv(tmp_path, TEXT + "y,9\n"), FACTS)
    assert codes(folder, FACTS) == expected == codes(folder / "part-*.csv", FACTS)
    assert len(slices(source(folder))) == 3
    assert fingerprint(folder) == fingerprint(folder / "*.csv") != fingerprint(tmp_path / "table.csv")


@pytest.mark.parametrize("link", [Path.symlink_to, Path.hardlink_to])
@pytest.mark.parametrize("way", ["parts", "parts/*.csv"])
def test_a_link_beside_its_target_is_refused_since_each_row_would_count_twice(link, way, tmp_path: Path) -> None:
    folder = folder_of(tmp_path, TEXT, TEXT)  # a copy of a part is one of its own
    assert codes(tmp_path / way, FACTS) == [[0, 1, 0, 1], [1, 2, 1, 2]]
    link(folder / "part-2.csv", folder / "part-1.csv")
    with pytest.raises(UserError, match=r"part-2\.csv: is one file with .*part-1\.csv: rows would count twice"):
        source(tmp_path / way)


def test_a_pattern_leaves_out_hidden_names_as_a_folder_does(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, TEXT)
    for aside in (".d.csv", "_e.csv", "_temporary/0/part-9.csv", ".old/part-9.csv"):
        (folder / aside).parent.mkdir(parents=True, exist_ok=True)
        csv(folder, TEXT, aside)
    assert codes(folder, FACTS) == codes(folder / "*.csv", FACTS) == codes(tmp_path / "**" / "*.csv", FACTS)
    assert codes(folder / ".old" / "*.csv", FACTS) == codes(folder, FACTS), "a folder that is named in full"
    with pytest.raises(UserError, match="no file matches this pattern but hidden ones"):
        source(folder / "_*.csv")


def test_a_file_that_takes_the_place_of_another_is_noticed_whatever_its_size_and_time(tmp_path: Path) -> None:
    """A link that led to another table of as many bytes, written at the same time, was the table as before."""
    one, other, link = (tmp_path / name for name in ("one.csv", "other.csv", "link.csv"))
    for path, text in ((one, "city,n\nx,1\n"), (other, "city,n\ny,2\n")):
        path.write_text(text)
        os.utime(path, ns=(10**18, 10**18))
    link.symlink_to(one)
    before = states([link])
    check_unchanged(before)
    link.unlink()
    link.symlink_to(other)
    with pytest.raises(UserError, match="changed while it was read"):
        check_unchanged(before)
    folder = tmp_path / "folder"
    folder.symlink_to(tmp_path)
    for turned, way in ((link, link), (folder, folder / "link.csv")):
        before = states([way])
        to = turned.readlink()
        turned.unlink()
        turned.symlink_to(to)  # away, and back: what was read between is not known
        with pytest.raises(UserError, match="changed while it was read"):
            check_unchanged(before)
    before = states([link])
    other.write_text("city,n\nx,2\n")
    os.utime(other, ns=(10**18, 10**18))
    with pytest.raises(UserError, match="changed while it was read"):
        check_unchanged(before)


@pytest.mark.parametrize("old_first", [True, False])
def test_times_of_two_writers_have_the_same_texts_in_slices_as_in_the_table(old_first: bool, tmp_path: Path) -> None:
    """Nanoseconds of INT96 are microseconds for the engine, and Arrow calls both by one name."""
    (tmp_path / "p").mkdir()
    ticks = pa.array([0, 1, 1_000, 500_000_000, 10**18], pa.int64()).cast(pa.timestamp("ns"))
    for i in range(2):
        old = {"use_deprecated_int96_timestamps": (i == 0) is old_first}
        pq.write_table(pa.table({"seen": ticks}), tmp_path / "p" / f"{i}.parquet", **old)
    table = source(tmp_path / "p")

    def texts(relation: str) -> list[str]:
        with table.connect() as engine:
            return [row[0] for row in engine.execute(f"SELECT {table.text(0)} FROM {relation}").fetchall()]

    assert [t for _, relation in slices(table, rows=3) for t in texts(relation)] == texts(table.relation)


def test_parts_of_parquet_are_one_table(tmp_path: Path) -> None:
    (tmp_path / "p").mkdir()
    for i, cities in enumerate((["x", "y"], ["y"])):
        pq.write_table(pa.table({"city": cities, "n": [i] * len(cities)}), tmp_path / "p" / f"{i}.parquet")
    assert codes(tmp_path / "p", FACTS) == [[0, 1, 1], [0, 0, 1]]
    pq.write_table(pa.table({"city": ["x"], "n": ["1"]}), tmp_path / "p" / "2.parquet")
    with pytest.raises(UserError, match=r"2\.parquet: its columns do not agree with 0\.parquet"):
        source(tmp_path / "p")


def test_a_damaged_part_is_named(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, TEXT, "city,n\nx,1\nsecret\n")
    with pytest.raises(UserError, match=r"part-1\.csv: malformed at line 3") as caught:
        codes(folder, FACTS)
    assert "secret" not in str(caught.value)
    content = pa.table({"city": ["x", "y"] * 50_000, "n": list(range(100_000))})
    (tmp_path / "p").mkdir()
    for name in ("a", "b"):
        pq.write_table(content, tmp_path / "p" / f"{name}.parquet")
    whole = (tmp_path / "p" / "b.parquet").read_bytes()
    (tmp_path / "p" / "b.parquet").write_bytes(whole[:200] + b"\xff" * 20_000 + whole[20_200:])
    with pytest.raises(UserError, match=r"b\.parquet"):
        codes(tmp_path / "p", FACTS)


@pytest.mark.parametrize(
    ("second", "says"), [("n,city\n1,x\n", "columns do not agree"), ("city\nx\n", "header"), ("", "the file is empty")]
)
def test_a_part_that_differs_is_named(second: str, says: str, tmp_path: Path) -> None:
    folder = folder_of(tmp_path, TEXT, second)
    with pytest.raises(UserError, match=r"part-1\.csv") as caught:
        source(folder)
    assert says in str(caught.value) or "columns do not agree" in str(caught.value)


def test_a_pattern_that_matches_nothing_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no file matches this pattern"):
        source(tmp_path / "*.csv")
