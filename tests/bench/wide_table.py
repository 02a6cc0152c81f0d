"""A generated table of 35 columns that hang together, and its schema: texts, numbers and dates."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from mechanisms.public.schema.table_schema import Schema, parse_schema

CHUNK = 500_000
#: How many values the columns of texts have.
TEXTS = (2, 2, 3, 3, 4, 5, 5, 6, 7, 8, 9, 10, 12, 15, 20, 30, 50)
WHOLE, DECIMAL, DATES = 12, 4, 2
FIRST_DAY = 18_262  # 2020-01-01, in days from 1970-01-01


def wide_facts() -> dict[str, Any]:
    """The schema as a mapping: 35 columns, of 2 to 51 codes."""
    columns: dict[str, Any] = {
        f"t{i:02}": {"kind": "categorical", "values": [f"value {v}" for v in range(n)], "other": "other"}
        for i, n in enumerate(TEXTS)
    }
    columns |= {f"n{i:02}": {"kind": "integer", "min": 0, "max": 99, "bins": {"count": 20}} for i in range(WHOLE)}
    columns |= {f"f{i:02}": {"kind": "float", "min": 0, "max": 1000, "bins": {"count": 25}} for i in range(DECIMAL)}
    columns |= {
        f"d{i:02}": {"kind": "date", "min": "2020-01-01", "max": "2021-12-31", "bins": "month"} for i in range(DATES)
    }
    return {"name": "wide", "source": "generated for the benchmarks", "confirmed_public": True, "columns": columns}


def wide_schema() -> Schema:
    return parse_schema(wide_facts(), where="wide.yaml")


def write_wide(path: Path, *, rows: int, seed: int = 0) -> None:
    rng = np.random.default_rng(seed)
    writer = None
    try:
        for start in range(0, rows, CHUNK):
            table = _chunk(min(CHUNK, rows - start), rng)
            writer = writer or pq.ParquetWriter(path, table.schema, compression="zstd")
            writer.write_table(table)
    finally:
        if writer is not None:
            writer.close()


def _chunk(rows: int, rng: np.random.Generator) -> Any:
    kind = rng.integers(0, 10, rows)  # what all columns hang on

    def near(size: int) -> Any:
        """Whole numbers below `size`, around one that the kind of the row says."""
        return (kind * size // 10 + rng.geometric(0.4, rows) - 1) % size

    columns: dict[str, Any] = {
        f"t{i:02}": pa.DictionaryArray.from_arrays(pa.array(near(n), pa.int32()), [f"value {v}" for v in range(n)])
        for i, n in enumerate(TEXTS)
    }
    columns |= {f"n{i:02}": pa.array(near(100)) for i in range(WHOLE)}
    columns |= {f"f{i:02}": pa.array(np.round(near(1000) + rng.random(rows), 2)) for i in range(DECIMAL)}
    columns |= {f"d{i:02}": pa.array((FIRST_DAY + near(730)).astype(np.int32), pa.date32()) for i in range(DATES)}
    return pa.table({name: c.cast(pa.string()) if name[0] == "t" else c for name, c in columns.items()})
