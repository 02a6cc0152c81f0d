"""Small helpers to open, encode and write tables in tests."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from numpy.typing import ArrayLike

from mechanisms.public.coded_table import CodedTable, code_dtype
from mechanisms.public.domain import Domain
from mechanisms.public.errors import UserError
from mechanisms.public.schema.table_schema import Schema, parse_schema
from mechanisms.public.tables.codec import EncodingReport, encode_columns
from mechanisms.public.tables.decode import with_units
from mechanisms.public.tables.scan import Source, open_table
from mechanisms.public.tables.write_table import arrow_table

#: Seconds. File systems tell times in steps of up to 10 ms: what is written twice within one may look unchanged.
STEP = 0.02

GIGABYTE = 1_000_000_000


def source(path: Path, **options: Any) -> Source:
    workdir = path.parent / "work"
    return open_table(path, workdir=workdir, memory_limit_bytes=GIGABYTE, threads=2, **options)


def csv(folder: Path, text: str | bytes, name: str = "table.csv") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def schema(**columns: Mapping[str, Any]) -> Schema:
    return parse_schema({"name": "tiny", "columns": columns}, where="tiny.yaml")


def refusal(content: Mapping[str, Any], folder: Path = Path()) -> str:
    """The words with which a schema is refused, which name its file and a way out."""
    with pytest.raises(UserError) as caught:
        parse_schema(content, where="t.yaml", folder=folder)
    assert str(caught.value).startswith("t.yaml") and "\n  fix: " in str(caught.value)
    return str(caught.value)


def encoded(path: Path, facts: Schema, **options: Any) -> tuple[CodedTable, EncodingReport]:
    return encode_columns(source(path, **options), facts, workdir=path.parent / "work")


def codes(path: Path, facts: Schema, **options: Any) -> list[list[int]]:
    table, _ = encoded(path, facts, **options)
    return [column.tolist() for column in table.columns]


def coded(facts: Schema | Domain, columns: Iterable[ArrayLike]) -> CodedTable:
    """A table of these codes, a list for each column."""
    domain = facts.domain if isinstance(facts, Schema) else facts
    each = zip(columns, domain.attributes, strict=True)
    return CodedTable(domain, tuple(np.asarray(c).astype(code_dtype(a.size)) for c, a in each))


def uniform(domain: Domain, rows: int, seed: int) -> CodedTable:
    """A table in which all codes are as frequent, whatever the others are."""
    rng = np.random.default_rng(seed)
    return coded(domain, (rng.integers(0, a.size, rows) for a in domain.attributes))


def decode_table(table: CodedTable, facts: Schema, rng: np.random.Generator) -> pd.DataFrame:
    """Decoded rows as a frame; whole numbers may be absent, days are times."""
    arrow = arrow_table(with_units(table, facts, rng), facts, rng)
    frame: pd.DataFrame = arrow.to_pandas(types_mapper={pa.int64(): pd.Int64Dtype()}.get, date_as_object=False)
    return frame


def loosened(text: str) -> str:
    """A draft with its proposals taken: all comments below `leave_out` and the columns."""
    head, _, rules = text.partition("# with these rules")
    lines = [
        line.removeprefix("# ") if line.startswith(("# derive", "# imp", "# ord")) else line
        for line in rules.split("\n")
    ]
    return head + "# with these rules" + "\n".join(line[1:] if line.startswith("#   ") else line for line in lines)
