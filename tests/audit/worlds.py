"""Tiny tables and their neighbours: odd unit ids in several forms, units of 0 to 3C records, odd values."""

import csv
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

import numpy as np

Row = tuple[str, ...]
HEAD = ("uid", "a", "b", "c", "d", "e")
#: Texts that are units of their own, however ids are normalised.
IDS = (
    *("Zoë", "a,b", 'q"u', "17", "2.50", "-3", "x  y", "Straße", "日本", "'; DROP TABLE t", "p" * 60, "[1]", "#N/D"),
    "$&*",
)
#: Texts that mean that there is no id.
NO_ID = ("", "NA", "null", "  ", "NaN")

COLUMNS = """name: town
source: invented for the audit
confirmed_public: true
columns:
  a: {kind: integer, min: 0, max: 3, missing: false}
  b: {kind: categorical, values: [x, y], other: other}
  c: {kind: integer, min: 0, max: 9, bins: {count: 5}, missing: falseJOINT}
  d: {kind: flag, "true": ["yes"], "false": ["no"], missing: false}
  e: {kind: flag, "true": ["1"], "false": ["0"], missing: false}
"""
#: The same table under a schema that leaves bounds, bins and values to be discovered; ids are values too, so that a
#: unit may hold several, and hardly any of them is held by another unit.
OPEN = """name: town
source: invented for the audit
confirmed_public: true
columns:
  uid: {kind: categorical, values: discover}
  a: {kind: integer, bounds: discover, within: [-5, 20], missing: false}
  b: {kind: categorical, values: discover}
  c: {kind: integer, min: 0, max: 9, bins: {discover: 4}, missing: false}
  d: {kind: flag, "true": ["yes"], "false": ["no"], missing: false}
  e: {kind: flag, "true": ["1"], "false": ["0"], missing: false}
"""
#: C where the schema declares it with the unit: settings that say another are refused.
PERSONS_BOUND = 2
#: What schemas declare beyond their columns, by name.
SCHEMAS = {
    "plain": "leave_out: [uid]\n",
    "mapped": "mapped: {b: {from: a}}\nleave_out: [uid]\n",
    "recode": "recode: {who: {columns: [b, d], combinations: all}}\nleave_out: [uid]\n",
    "joint_bins": "leave_out: [uid]\n",
    "fine": "leave_out: [uid]\n",
    "rules": "impossible: [{a: 3, b: y}]\nderive: {e: {from: d, map: e.csv, conflict: mapping}}\nleave_out: [uid]\n",
    "histogram": "unit_id: {name: uid, records: measured}\n",
    "persons": f"unit: {{column: uid, constant: [e], order: a, records: {{max: {PERSONS_BOUND}}}}}\n",
    "persons unordered": f"unit: {{column: uid, constant: [d, e], records: {{max: 3, counted: {PERSONS_BOUND}}}}}\n",
    "persons discover": f"unit: {{column: uid, constant: [b, c], order: a, records: {{max: {PERSONS_BOUND}}}}}\n",
    "persons records": "unit: {column: uid, constant: [e], order: a, records: {max: 4}}\n",
    "discover": "",
    "records": "leave_out: [uid]\n",
    "discover all": "",
}
#: Under these, how many records of a unit count is to be discovered, up to a cap.
FINDS_C = {"records": 4, "discover all": 3, "persons records": 4}
#: Under these, columns are open: of persons, all but the ids.
OPENS = {"discover": OPEN, "discover all": OPEN}
OPENS["persons discover"] = OPEN.replace("  uid: {kind: categorical, values: discover}\n", "")


def write_schema(folder: Path, name: str) -> Path:
    joint = {"joint_bins": ", joint_bins: {starts: [0, 2]}", "fine": ", fine: 6"}.get(name, "")
    (folder / "e.csv").write_text("d,e\nyes,1\nno,0\n", encoding="utf-8")
    path = folder / f"{name}.yaml"
    columns = OPENS.get(name) or COLUMNS.replace("JOINT", joint)
    path.write_text(columns + SCHEMAS[name], encoding="utf-8")
    return path


@dataclass(frozen=True)
class Settings:
    """What decides which tables are neighbours, and how records count.

    Attributes:
        column: whether a column names the unit, or each record is one.
        bound: C.
    """

    column: bool
    replace: bool
    clip: str
    missing: str
    bound: int
    holdout: bool = False

    @property
    def placed(self) -> bool:
        """Whether secret coins go by a row's place: only rows at the end leave all other coins as they are."""
        return self.holdout or (self.column and (self.clip == "truncate" or self.missing == "own"))


#: Each record is a unit; and a column names it.
RECORDS = Settings(column=False, replace=False, clip="weight", missing="drop", bound=1)
UNITS = Settings(column=True, replace=False, clip="weight", missing="drop", bound=2)


@dataclass(frozen=True)
class World:
    """A table and some of its neighbours, as rows."""

    settings: Settings
    table: tuple[Row, ...]
    neighbours: tuple[tuple[Row, ...], ...]


def make_world(settings: Settings, seed: int, neighbours: int = 3) -> World:
    """A table of some 20 rows, and tables that differ from it by one unit."""
    rng = np.random.default_rng(seed)
    base = _others(settings, rng)
    names = rng.permutation(IDS)
    if not settings.column:
        return _of_records(settings, base, neighbours, rng)
    if settings.missing == "own" and seed % 2 == 0:  # a row without an id is a unit
        mine = [[_row(str(rng.choice(NO_ID)), rng)] for _ in range(neighbours + 1)]
    else:
        most = settings.bound if settings.clip == "none" else 3 * settings.bound
        sizes = [int(rng.integers(1, most + 1)) for _ in range(neighbours + 1)]
        sizes[0] = most if seed % 2 else sizes[0]
        name = str(names[0])
        mine = [[_row(_form(name, rng), rng, lone=k == 0) for _ in range(n)] for k, n in enumerate(sizes)]
    if not settings.replace:
        mine[1] = []
        for k in range(2, neighbours + 1):  # another unit comes in beside the first one
            most = settings.bound if settings.clip == "none" else 3 * settings.bound
            mine[k] = [*mine[0], *(_row(str(names[k - 1]), rng) for _ in range(int(rng.integers(1, most + 1))))]
    places = np.sort(rng.integers(0, len(base) + 1, 6 * settings.bound))
    tables = [_placed(base, unit, None if settings.placed else places) for unit in mine]
    return World(settings, tables[0], tuple(tables[1:]))


def _of_records(settings: Settings, base: list[Row], neighbours: int, rng: np.random.Generator) -> World:
    """Neighbours where each record is a unit."""
    place = len(base) - 1 if settings.holdout else int(rng.integers(0, len(base)))
    if settings.replace:
        others = [[*base[:place], _row("z", rng), *base[place + 1 :]] for _ in range(neighbours)]
    else:
        others = [[*base[:place], *base[place + 1 :]]]
        more = len(base) if settings.holdout else place
        others += [[*base[:more], _row("z", rng), *base[more:]] for _ in range(neighbours - 1)]
    return World(settings, tuple(base), tuple(map(tuple, others)))


def _others(settings: Settings, rng: np.random.Generator) -> list[Row]:
    """Rows of units that stay as they are, and rows without an id."""
    most = settings.bound if settings.clip == "none" else 3 * settings.bound
    rows = [_row(f"u{i}", rng) for i in range(5) for _ in range(int(rng.integers(1, most + 1)))]
    rows += [_row(str(name), rng) for name in rng.choice(NO_ID, int(rng.integers(1, 4)))]
    return [rows[i] for i in rng.permutation(len(rows))]


def _row(uid: str, rng: np.random.Generator, lone: bool = False) -> Row:
    """One record, at times with odd values; `lone` ones stand where few others do."""
    a = "3" if lone else str(rng.choice(["0", "1", "1", "2", "7", ""]))
    b = "y" if lone else str(rng.choice(["x", "y", "zzz", ""], p=[0.5, 0.3, 0.1, 0.1]))
    c = str(9 if lone else int(rng.integers(0, 10)))
    return (uid, a, b, c, str(rng.choice(["yes", "no"])), str(rng.choice(["0", "1"])))


def _form(name: str, rng: np.random.Generator) -> str:
    """Another text of the same id, under the rules that hold by default."""
    other = {"17": "017.0", "2.50": "+2.5", "-3": "-30e-1", "Zoë": "\uff3aoe\u0308"}.get(name, name)
    return str(rng.choice([name, name, f" {name}\t", name.upper(), f"{name}\u200b", other]))


def _placed(base: list[Row], mine: list[Row], places: np.ndarray | None) -> tuple[Row, ...]:
    """The unit's rows among the others, which keep their order."""
    if places is None:
        return (*base, *mine)
    found, k = [], 0
    for i in range(len(base) + 1):
        while k < len(mine) and places[k] == i:
            found.append(mine[k])
            k += 1
        found += base[i : i + 1]
    return tuple(found + mine[k:])


def quick_disk() -> str | None:
    """A place in memory for thousands of small runs, where there is one."""
    memory = Path("/dev/shm")
    return str(memory) if memory.is_dir() and os.access(memory, os.W_OK) else None


def write_table(path: Path, rows: tuple[Row, ...]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows([HEAD, *rows])
    return path


def fresh(folder: Path, name: str = "beside") -> Path:
    """An empty folder of a check's own."""
    shutil.rmtree(folder / name, ignore_errors=True)
    (folder / name).mkdir(parents=True)
    return folder / name
