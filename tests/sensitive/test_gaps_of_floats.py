"""How NaN is read follows from its own cell: neither other rows nor what a file states of them have a say in it."""

import math
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mechanisms.public.units import WEIGHT_BITS
from mechanisms.sensitive.contribution import PrivacyUnit
from mechanisms.sensitive.counting import exact_marginals
from mechanisms.sensitive.private_table import load_private
from tests.public.table_worlds import schema, source

KEY = b"k" * 32
FACTS = schema(
    listed={"kind": "categorical", "values": ["1", "2"], "other": "other"},
    whole={"kind": "integer", "min": 0, "max": 9},
    real={"kind": "float", "min": 0, "max": 9, "bins": {"count": 3}},
)
GAPS = 40
#: One more record of somebody: with each, a file states another least or largest value.
MORE = (math.inf, -math.inf, 1e16, -0.0, 0.5, 7.0)


def counts(path: Path, values: list[float], kind: pa.DataType, unit: PrivacyUnit) -> list[np.ndarray]:
    """The counts (records) of a table whose columns, the id too, all hold these numbers."""
    numbers = pa.array(np.array(values, kind.to_pandas_dtype()), kind)
    pq.write_table(pa.table(dict.fromkeys(("id", *FACTS.domain.names), numbers)), path)
    private = load_private(source(path), FACTS, unit, workdir=path.parent / path.stem, key=KEY)
    asked = exact_marginals(private, [(name,) for name in FACTS.domain.names], batch_cells=10**6)
    return [c / 2.0**WEIGHT_BITS for c in asked]


BY_ID = PrivacyUnit("id", 1, missing="own", missing_values=())


@pytest.mark.parametrize(
    ("kind", "unit"),
    [
        pytest.param(pa.float64(), PrivacyUnit(), id="double, records"),
        pytest.param(pa.float32(), BY_ID, id="float, ids"),
        pytest.param(pa.float32(), PrivacyUnit(), id="float, records", marks=pytest.mark.slow),
        pytest.param(pa.float64(), BY_ID, id="double, ids", marks=pytest.mark.slow),
    ],
)
def test_one_record_more_moves_no_other_record_that_holds_nan(kind, unit, tmp_path) -> None:
    rows = [0.25, 2.0, *[math.nan] * GAPS]
    without = counts(tmp_path / "without.parquet", rows, kind, unit)
    assert [c[a.missing_code] for c, a in zip(without, FACTS.columns, strict=True)] == [GAPS] * 3, "gaps are gaps"
    for place, value in enumerate(MORE):
        with_one = counts(tmp_path / f"{place}.parquet", [*rows, value], kind, unit)
        assert max(np.abs(a - b).sum() for a, b in zip(with_one, without, strict=True)) <= 1, value


@pytest.mark.parametrize("values", [[0.0, 5.0], [0.25, 0.5], [0.0, 1e16], [1e16, 1e17], [-math.inf, math.inf]])
def test_the_text_of_nan_is_empty_whatever_least_and_largest_value_are(values, tmp_path) -> None:
    pq.write_table(pa.table({"a": [*values, math.nan, math.nan]}), tmp_path / "t.parquet")
    table = source(tmp_path / "t.parquet")
    with table.connect() as engine:
        texts = [row[0] for row in engine.execute(f"SELECT {table.text(0)} FROM {table.relation}").fetchall()]
    assert texts[-2:] == ["", ""] and all(texts[:-2])
