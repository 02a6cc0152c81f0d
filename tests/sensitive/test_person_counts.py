"""What is counted of persons: records, constants, orders; each once, and constants that are open."""

import random
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mechanisms.public.discovery.discovered_columns import scouting_schema
from mechanisms.public.persons.person_questions import questions_of
from mechanisms.public.persons.tally import WHOLE, by_question
from mechanisms.public.schema.table_schema import Schema, parse_schema
from mechanisms.sensitive.contribution import PrivacyUnit
from mechanisms.sensitive.private_table import PrivateTable, load_private
from tests.conftest import few
from tests.public.table_worlds import csv, source

KEY = b"a secret of 32 bytes, at least..."
COLUMNS: dict[str, Any] = {
    "sex": {"kind": "categorical", "values": ["f", "m"]},
    "day": {"kind": "integer", "min": 0, "max": 30, "bins": {"count": 3}},
    "ward": {"kind": "categorical", "values": [f"w{i}" for i in range(12)], "other": "else"},
    "cost": {"kind": "integer", "min": 0, "max": 39, "bins": {"count": 8}},
}
UNIT = {"column": "id", "constant": ["sex"], "order": "day", "records": {"max": 4}}
Row = tuple[str, str, str, str, str]


def stays(**unit: Any) -> Schema:
    return parse_schema({"name": "stays", "columns": COLUMNS, "unit": UNIT | unit}, where="stays", folder=Path())


def load(folder: Path, rows: list[Row], schema: Schema | None = None, key: bytes = KEY, **named: Any) -> PrivateTable:
    folder.mkdir(exist_ok=True)
    text = "id,sex,day,ward,cost\n" + "".join(",".join(row) + "\n" for row in rows)
    holdout = named.pop("holdout", None)
    unit = PrivacyUnit(**{"column": "id", "max_records": 4, **named})
    table = source(csv(folder, text))
    return load_private(table, schema or stays(), unit, workdir=folder / "work", key=key, holdout=holdout)


def counts(table: PrivateTable, label: str, schema: Schema | None = None) -> np.ndarray[Any, Any]:
    questions = questions_of(schema or stays())
    names = [" × ".join(q.label) for q in questions]
    at = names.index(label)
    return by_question(table.persons, questions)[at].reshape(questions[at].shape) / WHOLE


ANN: list[Row] = [("ann", "f", "3", "w1", "5"), ("ann", "f", "1", "w1", "15"), ("ann", "f", "9", "w2", "5")]
BOB: list[Row] = [("bob", "m", "4", "w3", "0")]


def test_a_person_counts_once_by_number_of_records(tmp_path: Path) -> None:
    table = load(tmp_path, [*ANN, *BOB])
    assert counts(table, "persons: records").tolist() == [1, 0, 1, 0]
    assert counts(table, "persons: records × sex").sum(axis=0).tolist() == [1, 1, 0]


def test_records_stand_in_the_declared_order_whatever_the_file_s(tmp_path: Path) -> None:
    for number, rows in enumerate((ANN, ANN[::-1], [ANN[2], ANN[0], ANN[1]])):
        steps = counts(load(tmp_path / str(number), rows), "steps: records × same ward × gap day")
        at = {tuple(map(int, c)): steps[tuple(c)] for c in np.argwhere(steps)}
        # days 1, 3, 9: w1 → w1 after 2 days, w1 → w2 after 6; a person of three records is in the third group of sizes
        assert at == {(2, 1, 2): 0.5, (2, 0, 5): 0.5}


def test_equal_times_keep_the_order_of_the_file_and_missing_ones_stand_last(tmp_path: Path) -> None:
    rows: list[Row] = [("ann", "f", "", "w1", "5"), ("ann", "f", "2", "w2", "15"), ("ann", "f", "2", "w3", "25")]
    following = counts(load(tmp_path, rows), "steps: cost × next cost")
    assert {tuple(map(int, c)) for c in np.argwhere(following)} == {(3, 5), (5, 1)}  # 15 → 25 → 5
    without = stays(order=[])
    following = counts(load(tmp_path, rows, without), "steps: cost × next cost", without)
    assert {tuple(map(int, c)) for c in np.argwhere(following)} == {(1, 3), (3, 5)}  # as in the file


def test_ids_are_told_apart_as_everywhere_and_rows_without_one_are_dropped_or_their_own(tmp_path: Path) -> None:
    rows: list[Row] = [(who, "f", "1", "w1", "5") for who in ("Ann", " ann", "", "NA", "  ", "NaN")]
    assert counts(load(tmp_path / "a", rows), "persons: records").tolist() == [0, 1, 0, 0]
    assert counts(load(tmp_path / "b", rows, missing="own"), "persons: records").tolist() == [4, 1, 0, 0]


def test_more_records_than_c_count_as_one_person(tmp_path: Path) -> None:
    rows: list[Row] = [("ann", "f", str(i % 30), "w1", "5") for i in range(50)]
    for clip in ("weight", "truncate"):
        table = load(tmp_path / clip, rows, clip=clip)
        assert counts(table, "persons: records").tolist() == [0, 0, 0, 1]
        assert all(c.sum() <= WHOLE for c in by_question(table.persons, questions_of(stays())))  # type: ignore[arg-type]


def test_of_contradicting_constants_one_is_taken_by_the_key_and_a_value_before_none(tmp_path: Path) -> None:
    rows: list[Row] = [("ann", sex, "1", "w1", "5") for sex in ("f", "m", "")]
    taken = set()
    for i in range(12):
        sexes = counts(load(tmp_path / str(i), rows, key=bytes([i]) * 32), "persons: records × sex").sum(axis=0)
        assert sexes.sum() == 1 and sexes[2] == 0
        taken.add(int(sexes.argmax()))
        if taken == {0, 1}:
            break
    assert taken == {0, 1}
    only_gaps: list[Row] = [("ann", "", "1", "w1", "5")] * 2
    assert counts(load(tmp_path / "gaps", only_gaps), "persons: records × sex").sum(axis=0).tolist() == [0, 0, 1]


def test_units_that_are_set_aside_are_not_among_them(tmp_path: Path) -> None:
    rows: list[Row] = [(f"p{i}", "f", "1", "w1", "5") for i in range(40)]
    table = load(tmp_path, rows, holdout=0.5)
    assert table.aside is not None and 0 < table.aside.sum() < 40
    assert counts(table, "persons: records")[0] == 40 - table.aside.sum()


def test_no_rows_and_no_unit(tmp_path: Path) -> None:
    assert not load(tmp_path / "none", []).persons.any()  # type: ignore[union-attr]
    plain = parse_schema({"name": "stays", "columns": COLUMNS}, where="stays", folder=Path())
    assert load(tmp_path / "plain", ANN, plain).persons is None


ROWS = st.lists(
    st.tuples(
        st.sampled_from(["ann", "ANN ", "bob", "cy", "", "NA", "1", "1.0"]),
        st.sampled_from(["f", "m", "x", ""]),
        st.sampled_from(["1", "2", "2", "30", "99", "", "no"]),
        st.sampled_from(["w1", "w2", "zzz", ""]),
        st.sampled_from(["0", "39", "-5", ""]),
    ),
    max_size=14,
)


@few(8)
@given(rows=ROWS, missing=st.sampled_from(["drop", "own"]), more=ROWS, at=st.integers(0, 14))
def test_one_person_more_moves_one_at_most(rows: list[Row], missing: str, more: list[Row], at: int) -> None:
    rows = [r for r in rows if r[0] != "cy"]
    own: list[Row] = [("cy", *r[1:]) for r in more]
    with tempfile.TemporaryDirectory() as folder:
        less = load(Path(folder) / "less", rows, missing=missing).persons
        whole = load(Path(folder) / "whole", [*rows[:at], *own, *rows[at:]], missing=missing).persons
    assert less is not None and whole is not None
    for question, moved in zip(questions_of(stays()), by_question(whole - less, questions_of(stays())), strict=True):
        assert (moved >= 0).all() and moved.sum() <= WHOLE, question.label
        if own and question.level == "persons":
            assert moved.sum() == WHOLE


FACTS: dict[str, Any] = {
    "name": "stays",
    "columns": {
        "born": {"kind": "integer", "bounds": "discover", "within": [0, 5]},
        "town": {"kind": "categorical", "values": "discover"},
        "day": {"kind": "integer", "bounds": "discover", "within": [0, 9]},
        "ward": {"kind": "categorical", "values": ["a", "b"]},
    },
    "unit": {"column": "id", "constant": ["born", "town"], "order": "day", "records": {"max": 3}},
}
Line = tuple[str, str]


def leaves(folder: Path, rows: list[Line], **unit: Any) -> np.ndarray[Any, Any]:
    """How many persons have each leaf of `born`: six numbers, and none of them."""
    folder.mkdir()
    text = "id,born,town,day,ward\n" + "".join(f"{who},{born},x,1,a\n" for who, born in rows)
    schema = scouting_schema(parse_schema(FACTS, where="stays"))
    table = source(csv(folder, text))
    return load_private(table, schema, PrivacyUnit("id", 2, **unit), workdir=folder / "work", key=KEY).persons


@pytest.mark.parametrize("seed", range(12))
def test_each_person_stands_at_one_of_its_own_leaves_whatever_others_have(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    names, values = ["ann", "bob", "cy", ""], ["0", "1", "2", "5", "99", ""]
    rows = [(rng.choice(names), rng.choice(values)) for _ in range(rng.randint(1, 9))]
    missing = rng.choice(["drop", "own"])
    whole = leaves(tmp_path / "whole", rows, missing=missing)
    held = {who: {min(int(v), 5) for w, v in rows if w == who and v} for who in {w for w, _ in rows if w}}
    alone = [{min(int(v), 5)} if v else set() for w, v in rows if not w] if missing == "own" else []
    assert whole.sum() == (len(held) + len(alone)) * WHOLE
    for name in held:
        moved = whole - leaves(tmp_path / f"without {name}", [r for r in rows if r[0] != name], missing=missing)
        assert sorted(moved)[-1] == WHOLE == moved.sum() and (moved >= 0).all()
        assert int(moved.argmax()) in (held[name] or {6})
