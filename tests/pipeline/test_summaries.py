"""The table that people look at first: numbers and dates of both tables, as the schema reads them."""

import json

import numpy as np
import pandas as pd
import pytest

from mechanisms.public.schema.table_schema import parse_schema
from mechanisms.public.tables.value_summaries import summaries
from tests.pipeline.conftest import TOWN, command, people
from tests.public.table_worlds import source


def test_a_summary_is_what_pandas_says_of_the_values_that_the_schema_places(tmp_path):
    columns = {
        "charge": {"kind": "float", "min": 0, "max": 1000, "bins": {"count": 4}, "strip": ["$"], "missing": ["-1"]},
        "grade": {"kind": "integer", "min": 1, "max": 6},
        "day": {"kind": "date", "min": "2024-01-01", "max": "2024-12-31", "bins": "month"},
        "ward": {"kind": "categorical", "values": ["a", "b"]},
    }
    rng = np.random.default_rng(1)
    charge = rng.gamma(1.5, 300, 500).round(2)
    grade, days = rng.integers(0, 8, 500), pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 300, 500), "D")
    gaps = rng.random(500) < 0.2
    frame = pd.DataFrame({"charge": charge, "grade": grade, "day": days.strftime("%Y-%m-%d"), "ward": "a"})
    frame["charge"] = np.where(gaps, "-1", [f"${c}" for c in charge])
    frame.to_csv(tmp_path / "t.csv", index=False)
    found = summaries(source(tmp_path / "t.csv"), parse_schema({"columns": columns}, where="t.yaml"))
    assert set(found) == {"charge", "grade", "day"}
    counted = pd.Series(charge[~gaps]).clip(0, 1000)
    assert found["charge"]["count"] == counted.size and found["charge"]["missing"] == pytest.approx(gaps.mean())
    for own, values in ((found["charge"], counted), (found["grade"], pd.Series(grade).clip(1, 6))):
        assert own["mean"] == pytest.approx(values.mean()) and own["stddev"] == pytest.approx(values.std())
        assert own["quantiles"] == pytest.approx(values.quantile([0.01, 0.25, 0.5, 0.75, 0.99]).tolist())
    assert found["day"]["quantiles"][2] == str(pd.Series(days).quantile(0.5).round("D").date())


def test_score_and_report_show_both_tables_side_by_side(town, capsys):
    assert command("run", *TOWN, "hydra.run.dir=out") == 0
    report = (town / "out" / "internal" / "report.html").read_text(encoding="utf-8")
    assert "Numbers and dates" in report and f"{people(600).age.mean():.4g}"[:4] in report
    (own,) = json.loads((town / "out" / "internal" / "scores.json").read_text(encoding="utf-8"))["numbers"]
    made = pd.read_csv(town / "out" / "release" / "synthetic.csv")
    assert own["real"]["mean"] == pytest.approx(people(600).age.mean())
    assert own["synthetic"]["mean"] == pytest.approx(made.age.mean()) and own["mean_standard_error"] > 0
    capsys.readouterr()
    paths = ["real=town.csv", "synthetic=out/release/synthetic.csv", "schema=town.yaml", "report=two.html"]
    assert command("score", *paths) == 0
    shown = capsys.readouterr()
    assert "std. dev." in shown.out + shown.err and "Numbers and dates" in (town / "two.html").read_text("utf-8")
