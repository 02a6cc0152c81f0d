"""Constants of which bounds or values are open: one person moves one leaf, or one value, by one."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mechanisms.public.discovery.scouting import scouting_schema
from mechanisms.public.persons.tally import WHOLE
from mechanisms.public.schema.table_schema import parse_schema
from mechanisms.sensitive.contribution import PrivacyUnit
from mechanisms.sensitive.private_table import load_private
from tests.public.table_worlds import csv, source

KEY = b"a secret of 32 bytes, at least..."
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
Row = tuple[str, str]


def leaves(folder: Path, rows: list[Row], **unit: Any) -> np.ndarray[Any, Any]:
    """How many persons have each leaf of `born`: six numbers, and none of them."""
    folder.mkdir()
    text = "id,born,town,day,ward\n" + "".join(f"{who},{born},x,1,a\n" for who, born in rows)
    schema = scouting_schema(parse_schema(FACTS, where="stays"))
    table = source(csv(folder, text))
    found = load_private(table, schema, PrivacyUnit("id", 2, **unit), workdir=folder / "work", key=KEY)
    assert found.persons is not None
    return found.persons


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
