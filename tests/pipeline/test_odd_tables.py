"""Tables that do not fit together, or hold next to nothing, get a score or a reason: never a traceback, never NaN."""

import json
import math

import numpy as np
import pandas as pd
import pytest

from mechanisms.public.errors import UserError
from pipeline import score
from tests.pipeline.conftest import command, people


def plain(rows: int, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame({"x": rng.normal(size=rows), "n": rng.integers(0, 50, rows), "t": rng.choice(["a", "b"], rows)})


def with_column(column: object, rows: int = 60) -> pd.DataFrame:
    return plain(rows).assign(odd=column)


#: No ids: they do not count the rows.
HALVES = np.arange(60) / 2

ODD = {
    "one row": (plain(50), plain(1)),
    "one real row": (plain(1), plain(50)),
    "one row each": (plain(1), plain(1, 1)),
    "no rows": (plain(50), plain(0)),
    "no real rows": (plain(0), plain(50)),
    "no rows at all": (plain(0), plain(0)),
    "all missing": (with_column(None), with_column(None)),
    "all missing in one": (with_column(HALVES), with_column(None)),
    "constant": (with_column(7), with_column(7)),
    "constant in one": (with_column(7), with_column(HALVES)),
    "everything constant": (plain(60).assign(x=1, n=2, t="a"), plain(60).assign(x=1, n=2, t="a")),
    "numbers and words": (with_column(HALVES), with_column(["word"] * 60)),
    "words and numbers": (with_column(["word", "other"] * 30), with_column(HALVES)),
    "dates and numbers": (with_column(pd.date_range("2020-01-01", periods=60)), with_column(HALVES)),
    "infinite": (with_column([np.inf, -np.inf, 1.0] * 20), with_column([np.nan, 1e308, -1e308] * 20)),
    "flags and words": (with_column([True, False] * 30), with_column(["yes", "maybe"] * 30)),
}


def no_nan(value: object) -> None:
    if isinstance(value, dict):
        for v in value.values():
            no_nan(v)
    elif isinstance(value, list):
        for v in value:
            no_nan(v)
    else:
        assert not isinstance(value, float) or math.isfinite(value)


@pytest.mark.parametrize("kind", ODD)
def test_odd_tables_get_a_score_or_a_reason(kind):
    card = score(*ODD[kind]).to_json()
    no_nan(card)
    json.dumps(card, allow_nan=False)
    for name, metric in card["metrics"].items():
        assert metric["score"] is not None or metric["reason"], name
        assert "failed:" not in metric.get("reason", ""), (name, metric["reason"])


def test_tables_are_scored_on_what_they_share_and_what_is_missing_comes_first(town):
    real = people(300)
    made = people(200, seed=2).drop(columns="job").assign(invented=1)
    made.to_csv("made.csv", index=False)
    for schema in (None, "town.yaml"):
        card = score(real, "made.csv", schema)
        assert "'job' is not in synthetic" in card.notices[0]
        assert card.to_json()["first"] == list(card.notices)
        assert card.outcomes["tvd"].score is not None
    assert str(card).index("'job'") < str(card).index("metric")
    alone = made.drop(columns=["sex", "note"])
    assert score(real, alone).notices[0] == "not in synthetic, and not scored: 'sex', 'job', 'note'"


def test_values_of_another_kind_are_said(town):
    card = score(with_column(HALVES), with_column(["word"] * 60))
    assert any("'odd'" in line and "100%" in line for line in card.notices)


def test_tables_that_share_no_column_are_one_clear_error(town, capsys):
    people(20).rename(columns=str.upper).to_csv("other.csv", index=False)
    assert command("score", "real=town.csv", "synthetic=other.csv") == 1
    assert "no column in common" in capsys.readouterr().err
    with pytest.raises(UserError, match="every column is an id"):
        score(pd.DataFrame({"id": range(100)}), pd.DataFrame({"id": range(100)}))


@pytest.mark.slow
def test_ten_thousand_columns_are_scored():
    rng = np.random.default_rng(0)
    real, made = (pd.DataFrame(rng.integers(0, 3, (30, 10_000))).add_prefix("c") for _ in range(2))
    card = score(real, made)
    assert card.outcomes["anita_1way"].score > 0.5
    no_nan(card.to_json())
