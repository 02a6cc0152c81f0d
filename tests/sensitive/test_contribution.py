"""The clipper: no unit counts more than C records, whatever the table and however its ids are written."""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mechanisms.public.errors import UserError
from mechanisms.public.units import NO_UNIT, WEIGHT_BITS
from mechanisms.sensitive.contribution import PrivacyUnit, unit_numbers
from mechanisms.sensitive.private_table import PrivateTable, load_private
from tests.conftest import few
from tests.public.table_worlds import csv, schema, source

ONE = 1 << WEIGHT_BITS
KEY = b"a secret of 32 bytes, at least..."
#: Ids, and the unit that each means.
IDS = {"a": "a", "A": "a", "a ": "a", " a": "a", "é": "é", "1": "1", "1.0": "1", "a,b": "a,b", 'a"b': 'a"b'}
ROW = {"kind": "integer", "min": 0, "max": 99_999, "missing": False}


def load(folder: Path, ids: list[str], key: bytes = KEY, **options: Any) -> PrivateTable:
    """A table whose rows are numbered, with one unit id each."""
    text = "id,row\n" + "".join('"' + unit.replace('"', '""') + f'",{i}\n' for i, unit in enumerate(ids))
    unit = PrivacyUnit(**{"column": "id", "max_records": 2, **options})
    return load_private(source(csv(folder, text)), schema(row=ROW), unit, workdir=folder / "work", key=key)


def kept(table: PrivateTable) -> list[int]:
    return table.coded.columns[0].tolist()


def test_weights_are_the_share_that_the_bound_allows(tmp_path: Path) -> None:
    table = load(tmp_path, ["ann"] * 3 + ["bob"] + ["cy"] * 2)
    assert table.coded.weights is not None
    assert table.coded.weights.tolist() == [2 * ONE // 3] * 3 + [ONE] * 3
    assert kept(table) == [0, 1, 2, 3, 4, 5] and table.complete


def test_weights_are_absent_where_every_record_counts_in_full(tmp_path: Path) -> None:
    assert load(tmp_path, ["ann", "bob", "ann"]).coded.weights is None


@given(
    ids=st.lists(st.sampled_from(list(IDS)), max_size=60),
    bound=st.integers(1, 5),
)
@few(12)
@pytest.mark.parametrize("clip", ["weight", "truncate"])
def test_no_unit_counts_more_than_the_bound(clip: str, ids: list[str], bound: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        table = load(Path(folder), ids, clip=clip, max_records=bound)
        rows = kept(table)
        weights = table.coded.weights.tolist() if table.coded.weights is not None else [ONE] * len(rows)
    total: Counter[str] = Counter()
    for row, weight in zip(rows, weights, strict=True):
        total[IDS[ids[row]]] += weight
    for unit, records in Counter(map(IDS.__getitem__, ids)).items():
        expected = min(records, bound) * ONE
        assert expected - records <= total[unit] <= expected
    assert rows == sorted(rows)


def test_truncation_keeps_records_uniformly_at_random(tmp_path: Path) -> None:
    units = 6_000
    rows = kept(load(tmp_path, [str(i % units) for i in range(4 * units)], clip="truncate"))
    pairs = Counter(tuple(group) for group in places(rows, units).values())
    assert len(pairs) == 6 and all(abs(n - 1_000) < 130 for n in pairs.values())


def places(rows: list[int], units: int) -> dict[int, list[int]]:
    """Which of its records each unit kept."""
    found: dict[int, list[int]] = {}
    for row in rows:
        found.setdefault(row % units, []).append(row // units)
    return found


def test_the_same_key_keeps_the_same_records(tmp_path: Path) -> None:
    ids = ["ann"] * 50 + ["bob"] * 50
    first, again = (kept(load(tmp_path, ids, clip="truncate")) for _ in range(2))
    assert first == again != kept(load(tmp_path, ids, clip="truncate", key=b"another secret, also long enough"))


def test_neither_the_order_of_the_file_nor_other_rows_change_what_truncation_keeps(tmp_path: Path) -> None:
    """Records are known by what they hold: those that are equal have coins of their own, and are interchangeable."""
    lines = [f"{unit},{row}" for unit in ("ann", "bob", "cy") for row in (1, 1, 1, 2, 3, 3, 4, 5)]
    unit, facts = PrivacyUnit("id", 4, clip="truncate"), schema(row=ROW)

    def kept_of(name: str, text: list[str]) -> Counter[int]:
        place = tmp_path / name
        place.mkdir()
        table = source(csv(place, "\n".join(["id,row", *text]) + "\n"))
        return Counter(kept(load_private(table, facts, unit, workdir=place / "work", key=KEY)))

    first = kept_of("first", lines)
    assert sum(first.values()) == 12 and len(first) > 1
    assert kept_of("turned", lines[::-1]) == first
    assert kept_of("longer", ["zed,9", *lines[8:], "zed,9", *lines[:8]]) == first + Counter({9: 2})


def test_a_short_key_is_no_key(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="at least 16 bytes"):
        load(tmp_path, ["ann"], key=b"short")


def test_rows_without_an_id_are_dropped_and_never_pooled(tmp_path: Path) -> None:
    table = load(tmp_path, ["ann", *NO_UNIT, "  ", " NaN ", "\t", "ann"])
    assert kept(table) == [0, len(NO_UNIT) + 4] and table.coded.weights is None and not table.complete


def test_rows_without_an_id_may_each_be_a_unit_of_their_own(tmp_path: Path) -> None:
    table = load(tmp_path, ["ann"] * 4 + [""] * 5, missing="own", max_records=1)
    assert table.coded.weights is not None
    assert table.coded.weights.tolist() == [ONE // 4] * 4 + [ONE] * 5 and table.complete


def test_rows_without_an_id_may_be_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"privacy\.missing_unit: a record has no unit id\n.*drop or own"):
        load(tmp_path, ["ann", ""], missing="refuse")
    assert kept(load(tmp_path, ["ann", "bob"], missing="refuse")) == [0, 1]


def test_the_texts_of_a_missing_id_can_be_set(tmp_path: Path) -> None:
    assert kept(load(tmp_path, ["0", "NA", "0", "bob", ""], missing_values=("0",))) == [1, 3]


def test_dropping_and_truncating_go_together(tmp_path: Path) -> None:
    rows = kept(load(tmp_path, ["", "ann", "ann", "ann", "", "bob"], clip="truncate"))
    assert len(rows) == 3 and 5 in rows and not {0, 4} & set(rows)


def test_a_declared_bound_is_enforced(tmp_path: Path) -> None:
    assert load(tmp_path, ["ann", "ann", "bob"], clip="none").coded.weights is None
    with pytest.raises(UserError, match=r"privacy\.clip=none, but a unit has more than 2 records") as caught:
        load(tmp_path, ["ann"] * 3, clip="none")
    assert "ann" not in str(caught.value)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"max_records": 0, "column": "id"}, "privacy.max_records: got 0"),
        ({"max_records": 1.5, "column": "id"}, "privacy.max_records: got 1.5"),
        ({"max_records": True, "column": "id"}, "privacy.max_records: got True"),
        ({"max_records": 2**40, "column": "id"}, "privacy.max_records: got"),
        ({"max_records": 3}, "privacy.max_records: one record is the unit, so it cannot hold 3"),
        ({"column": ""}, "privacy.unit: got an empty name"),
        ({"clip": "cut"}, "privacy.clip: got 'cut'"),
        ({"missing": "pool"}, "privacy.missing_unit: got 'pool'"),
    ],
)
def test_a_wrong_setting_is_named(options: dict[str, Any], says: str) -> None:
    with pytest.raises(UserError) as caught:
        PrivacyUnit(**options)
    assert says in str(caught.value) and "fix: " in str(caught.value)


def test_a_unit_column_that_the_table_lacks_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"privacy\.unit: no column 'idd' in table\.csv\n.*did you mean 'id'"):
        load(tmp_path, ["ann"], column="idd")


def test_rows_of_one_unit_have_one_number_and_rows_without_an_id_have_their_own(tmp_path: Path) -> None:
    ids = ["bob", "ann", "", "bob", "NaN", "ann ", "bob"]
    table = source(csv(tmp_path, "id\n" + "".join(f'"{x}"\n' for x in ids)))
    numbers = unit_numbers(table, PrivacyUnit("id", 2)).tolist()
    assert numbers[0] == numbers[3] == numbers[6]
    assert len(set(numbers)) == 4
    empty = source(csv(tmp_path, "id\n"))
    assert unit_numbers(empty, PrivacyUnit("id", 2)).size == 0
