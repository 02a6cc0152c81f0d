"""The tables of the grid: real ones from a folder of data, as codes by public-looking bins, and generated families."""

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mechanisms.public.coded_table import CodedTable
from mechanisms.public.schema.table_schema import load_schema
from pipeline.settings.config import schema_path
from tests.bench.grid.coded import GridTable, coded_table, drawn_rows
from tests.bench.grid.families import FAMILIES, PREFIX, derived, derived_names, family_table
from tests.bench.grid.packaged import DRAFTED, drafted, packaged, packaged_names
from tests.bench.grid.packaged import PREFIX as PACKAGED

#: A column of more labels is left out, unless its values are numbers or times, which are put into bins.
MOST_CODES, BINS = 500, 100
#: Ten columns of the American Community Survey that people ask about.
ACS_10 = ("PUMA", "YEAR", "SEX", "AGE", "MARST", "RACE", "EDUC", "EMPSTAT", "INCTOT", "POVERTY")
#: File of codes → the ready schema of its table.
READY = {"adult-codes.csv.gz": "adult_codes", "acs-il-oh.csv.gz": "acs", "chicago-taxi.csv.gz": "chicago_taxi"}


@dataclass(frozen=True)
class RealTable:
    """A real table: the file that must be there, how it becomes codes, and how many of its rows are taken."""

    file: str
    load: Callable[[Path], CodedTable]
    rows: int | None = None


def codes_with_domain(path: Path) -> CodedTable:
    """A file that holds codes already, beside a JSON of column → number of codes; other columns are left out.

    Which columns lie on a line is what the ready schema of the table says.
    """
    sizes = json.loads(path.with_name(path.name.replace(".csv.gz", ".domain.json")).read_text(encoding="utf-8"))
    frame = pd.read_csv(path, usecols=list(sizes))
    facts = load_schema(schema_path(READY[path.name], "schema")).domain
    return coded_table({n: frame[n].to_numpy() for n in sizes}, sizes, [n for n in sizes if facts[n].ordered])


def ten_columns(path: Path) -> CodedTable:
    return codes_with_domain(path).over(ACS_10)


def fire_calls(path: Path) -> CodedTable:
    """The calls: labels as they are, times and coordinates in a hundred bins; boxes and addresses are too many."""
    return _from_labels(_texts(path))


def drug_deaths(path: Path) -> CodedTable:
    """The deaths: dates by month; without the id and free text."""
    frame = _texts(path).drop(columns=["ID", "Other", "Other Significant Conditions "])
    frame["Date"] = frame["Date"].str.slice(6) + "-" + frame["Date"].str.slice(0, 2)
    return _from_labels(frame)


def baseball(path: Path) -> CodedTable:
    """A row per season of a player, with what is known of the player; without ids."""
    players = _texts(path.with_name("baseball-players.csv.gz"))
    seasons = _texts(path).merge(players, left_on="players_id", right_on="id")
    return _from_labels(seasons.drop(columns=["players_id", "id"]))


def labels(path: Path) -> CodedTable:
    return _from_labels(_texts(path))


def _texts(path: Path) -> pd.DataFrame:
    return pd.read_csv(path, dtype=str, keep_default_na=False)


def _from_labels(frame: pd.DataFrame) -> CodedTable:
    """Every usable column of a table of texts as codes."""
    columns, sizes, line = {}, {}, []
    for name in frame:
        found = _column(frame[name])
        if found is not None:
            columns[str(name)], sizes[str(name)], on_line = found
            line += [str(name)] * on_line
    return coded_table(columns, sizes, line)


def _column(texts: pd.Series) -> tuple[NDArray[np.int64], int, bool] | None:
    """Codes, how many, and whether they lie on a line; None for a column of too many labels.

    An empty text among binned values has the last code.
    """
    labels = np.sort(texts.unique().astype(str))
    if len(labels) <= MOST_CODES:
        numbers = pd.to_numeric(pd.Series(labels), errors="coerce")
        if numbers.notna().all():
            labels = labels[np.argsort(numbers, kind="stable")]
        return pd.Index(labels).get_indexer(texts), len(labels), bool(numbers.notna().all())
    values = pd.to_numeric(texts, errors="coerce").to_numpy(float)
    if np.isnan(values[texts != ""]).any():
        times = pd.to_datetime(texts.where(texts != ""), format="%Y-%m-%d %H:%M:%S", errors="coerce")
        values = np.where(times.isna(), np.nan, times.astype("int64").to_numpy(float))
    if np.isnan(values[texts != ""]).any():
        return None
    low, high, absent = np.nanmin(values), np.nanmax(values), np.isnan(values)
    bins = np.minimum((np.where(absent, low, values) - low) / (high - low) * BINS, BINS - 1).astype(np.int64)
    return np.where(absent, BINS, bins), BINS + int(absent.any()), not absent.any()


REAL = {
    "adult": RealTable("adult-codes.csv.gz", codes_with_domain),
    "adult_5000": RealTable("adult-codes.csv.gz", codes_with_domain, 5_000),
    "adult_1000": RealTable("adult-codes.csv.gz", codes_with_domain, 1_000),
    "acs": RealTable("acs-il-oh.csv.gz", codes_with_domain),
    "acs_20000": RealTable("acs-il-oh.csv.gz", codes_with_domain, 20_000),
    "acs_2000": RealTable("acs-il-oh.csv.gz", codes_with_domain, 2_000),
    "acs_10_columns": RealTable("acs-il-oh.csv.gz", ten_columns, 50_000),
    "fire": RealTable("fire-calls.csv.gz", fire_calls),
    "fire_30000": RealTable("fire-calls.csv.gz", fire_calls, 30_000),
    "taxi_all": RealTable("chicago-taxi.csv.gz", codes_with_domain),
    "taxi": RealTable("chicago-taxi.csv.gz", codes_with_domain, 50_000),
    "drug_deaths": RealTable("drug-deaths.csv", drug_deaths),
    "baseball_all": RealTable("baseball-seasons.csv.gz", baseball),
    "national2019": RealTable("national2019.csv.gz", labels),
    "baseball": RealTable("baseball-seasons.csv.gz", baseball, 40_000),
}


#: The public tables out of which `derived` cuts its own.
WHOLE = ("adult", "acs", "fire", "taxi_all", "drug_deaths", "baseball_all", "national2019")
#: Those of them that are no tables of the grid by themselves.
BESIDE = ("taxi_all", "baseball_all", "national2019")


def table_names(wanted: Sequence[str], data: Path | None, draw: int | None = None) -> list[str]:
    """The tables whose name is wanted (all where none is), without those whose file is not in `data`.

    Args:
        draw: of the tables that nobody chose; `derived`, `packaged` and `drafted` mean all of a kind. None: none.

    Raises:
        ValueError: a name that no table has, or a wanted one whose file is absent.
    """
    drawn = [] if draw is None else derived_names(draw)
    packages = {p.removesuffix("_"): p for p in (PACKAGED, DRAFTED) if any(n.startswith(p[:-1]) for n in wanted)}
    groups = {} if draw is None else {n: packaged_names(draw, p) for n, p in packages.items()}
    others = [n for names in groups.values() for n in names]  # of a package that may be absent
    known = [*(n for n in REAL if n not in BESIDE), *FAMILIES, *drawn, *others]
    needs = {n: [REAL[r].file for r in (WHOLE if n in drawn else [n])] for n in known if n not in {*FAMILIES, *others}}
    there = [n for n in known if n not in needs or (data is not None and all((data / f).is_file() for f in needs[n]))]
    groups["derived"] = drawn
    wanted = [n for name in wanted for n in (groups.get(name) or [name])]
    for name in wanted:
        if name not in known:
            raise ValueError(f"--tables: no table is called {name!r}; there are {', '.join(known)}")
        if name not in there:
            raise ValueError(f"--tables: {name} needs {', '.join(needs[name])} in the folder of --data")
    return [n for n in known if n in (wanted or there)]


@lru_cache(maxsize=2)
def grid_table(name: str, seed: int, data: Path | None, keep: Path) -> GridTable:
    """A table by name; real ones are kept as codes in `keep`, so that every worker reads them fast."""
    if name in FAMILIES:
        return GridTable(name, family_table(name, seed), drawn=True)
    if name.startswith(PACKAGED):
        return GridTable(name, packaged(name, _from_labels))
    if name.startswith(DRAFTED):
        return drafted(name, keep)
    if name.startswith(PREFIX):
        return GridTable(name, derived(name, WHOLE, lambda n: _real(n, data, keep)))
    return GridTable(name, _real(name, data, keep))


def _real(name: str, data: Path | None, keep: Path) -> CodedTable:
    path = keep / f"{name}.npz"
    if not path.is_file():
        if data is None:
            raise ValueError(f"--data: {name} needs the folder with {REAL[name].file}")
        real = REAL[name]
        table = real.load(data / real.file)
        table = table if real.rows is None else drawn_rows(table, real.rows)
        facts = {a.name: (a.size, a.ordered) for a in table.domain.attributes}
        keep.mkdir(parents=True, exist_ok=True, mode=0o700)
        part = keep / f"{name}.{os.getpid()}.part.npz"
        arrays = {f"{i:04}": c for i, c in enumerate(table.columns)}
        np.savez(part, facts=np.array(json.dumps(facts)), **arrays)  # type: ignore[arg-type]
        part.replace(path)
        return table
    with np.load(path) as kept:
        facts = json.loads(str(kept["facts"]))
        columns = {n: kept[f"{i:04}"] for i, n in enumerate(facts)}
    return coded_table(columns, {n: s for n, (s, _) in facts.items()}, [n for n, (_, line) in facts.items() if line])
