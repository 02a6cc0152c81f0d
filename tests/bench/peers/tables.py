"""The tables of the comparison as plain codes, the same files for everyone, under `build/peers/data`."""

import json
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from mechanisms.public.schema.table_schema import load_schema
from pipeline.demo import write_demo
from pipeline.settings.config import schema_path
from tests.bench.clock import data_file
from tests.bench.peers.catalogue import STAND_IN
from tests.evaluation.worlds import coded_files as coded

#: Name → the file of codes in $DATA_DIR, beside its domain JSON.
FILES = {"adult_codes": "adult-codes", "acs": "acs-il-oh"}
#: Rows of the generated stand-in.
STAND_IN_ROWS = 50_000


@dataclass(frozen=True)
class Table:
    """A table of codes as CSV, its domain (column → number of codes) as JSON, and the thirds of its rows."""

    name: str
    path: Path
    domain: Path
    rows: int
    columns: int
    thirds: tuple[Path, Path, Path]

    @property
    def delta(self) -> float:
        """1/n²: a public benchmark may tell the number of rows."""
        return 1 / self.rows**2


def tables(wanted: list[str], root: Path) -> list[Table]:
    """The wanted tables that are in $DATA_DIR; one generated stand-in for those that are not.

    Raises:
        ValueError: there is no such table.
    """
    known = [*FILES, STAND_IN]
    for name in wanted:
        if name not in known:
            raise ValueError(f"--tables: no table is called {name!r}; there are {', '.join(known)}")
    there = {n for n in FILES if data_file(f"{FILES[n]}.csv.gz")}
    names = list(dict.fromkeys(n if n in there else STAND_IN for n in wanted or FILES))
    return [_table(name, root) for name in names]


def _table(name: str, root: Path) -> Table:
    root.mkdir(parents=True, exist_ok=True)
    frame, sizes = _demo(root) if name == STAND_IN else _real(name)
    path, domain = root / f"{name}.csv", root / f"{name}.domain.json"
    frame.to_csv(path, index=False)
    domain.write_text(json.dumps(sizes), encoding="utf-8")
    third = len(frame) // 3
    parts = []
    for i, part in enumerate(("real", "synthetic", "holdout")):
        parts.append(root / f"{name}.{part}.csv")
        frame.iloc[i * third : (i + 1) * third].to_csv(parts[-1], index=False)
    return Table(name, path, domain, len(frame), len(sizes), (parts[0], parts[1], parts[2]))


def _real(name: str) -> tuple[pd.DataFrame, dict[str, int]]:
    path = data_file(f"{FILES[name]}.csv.gz")
    sizes = json.loads(path.with_name(f"{FILES[name]}.domain.json").read_text(encoding="utf-8"))
    return pd.read_csv(path)[list(sizes)], sizes


def _demo(root: Path) -> tuple[pd.DataFrame, dict[str, int]]:
    raw = root / "demo-raw.csv"
    write_demo(raw, rows=STAND_IN_ROWS, seed=0)
    (table,) = coded(load_schema(schema_path("demo", "schema")), raw)
    codes = {a.name: c for a, c in zip(table.domain.attributes, table.columns, strict=True)}
    return pd.DataFrame(codes), {a.name: a.size for a in table.domain.attributes}
