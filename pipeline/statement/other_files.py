"""What `verify` finds about the other files of a release: each says what measurements and schema say, and none is more.

Their digests say nothing of this: whoever edits a file makes them anew.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from io import StringIO
from pathlib import Path

import numpy as np
import pandas as pd

from mechanisms.public.files import Json
from mechanisms.public.plain_files import holds, open_arrays, open_plain, read_text
from mechanisms.public.queries.cell_sums import QUERIES
from mechanisms.public.release import Measurements
from mechanisms.public.release_files import (
    DISTANCES,
    index_of,
    load_measurements,
    load_released_schema,
    named_answers,
)
from mechanisms.public.schema.dialect import Dialect
from mechanisms.public.schema.table_schema import Schema
from mechanisms.public.tables.formats import FORMATS, TableFormat, persons_of
from pipeline.release_folder import ESTIMATED, marginal_frames
from pipeline.statement.paid_answers import Finding, off_lattice
from pipeline.statement.signing import MANIFEST, SIGNATURE
from synthesis.persons.person_sizes import with_records

#: What every release of this version holds, beside its synthetic table and marginals/.
FILES = frozenset(
    {
        *("privacy.json", "schema.yaml", "statement.html", "deployment.yaml", "croissant.json", MANIFEST),
        *("measurements/index.json", "measurements/answers.npz"),
    }
)
#: How far estimates of the same numbers may lie apart, where they are written with three digits.
RELATIVE, ABSOLUTE = 1e-6, 2e-3
#: A table of estimates may be twice as long as it is made again, and so many bytes.
ROOM = 2**12


def other_files(release: Path, statement: Json, index: Json) -> Finding:
    """Files, arrays, answers, marginals and columns are those that a run writes from these measurements.

    Raises:
        UserError: measurements or a schema that cannot be read.
    """
    schema, measurements, unknown = written_with(release, statement)
    if not holds(release / "schema.yaml", load_released_schema(release / "schema.yaml").to_yaml()):
        return False, "schema.yaml holds words that no run writes"
    if wrong := _wrong_columns(release, schema):
        return False, wrong
    if unknown:
        return None, f"marginals/ are not compared: queries {', '.join(sorted(unknown))} are not loaded"
    if index != index_of(measurements):
        return False, "measurements/index.json holds words that no run writes"
    if wrong := _wrong_answers(release, measurements):
        return False, wrong
    frames = marginal_frames(schema, measurements)
    wrong = _wrong_files(release, frames) or _wrong_marginals(release / "marginals", frames)
    right = "marginals are those of the measurements, tables have the schema's columns, and no file is foreign"
    return (False, wrong) if wrong else (True, right)


def written_with(release: Path, statement: Json) -> tuple[Schema, Measurements, Set[str]]:
    """The schema that rows were written with, the measurements, and queries whose answers are left out of them.

    Raises:
        UserError: measurements or a schema that cannot be read.
    """
    unknown = {p["name"] for p in statement.get("not_ours") or () if p["kind"] == "query"} - QUERIES.keys()
    measurements = load_measurements(release / "measurements", without=unknown)
    return with_records(load_released_schema(release / "schema.yaml"), measurements), measurements, unknown


def _wrong_files(release: Path, frames: Mapping[str, pd.DataFrame]) -> str:
    """Files and folders that no run writes, or that every run writes and that are lost; empty where all is right."""
    there = {p.relative_to(release).as_posix() for p in release.rglob("*")}
    tables = there & {f.released for f in FORMATS.values()}
    persons = there & {persons_of(t) for t in tables}
    expected = FILES | {f"marginals/{name}" for name in frames} | {"measurements", "marginals"} | tables | persons
    if foreign := sorted(there - expected - {SIGNATURE}):
        return f"no run writes {', '.join(foreign[:6])}"
    if len(tables) != 1:
        return f"there are {len(tables)} synthetic tables"
    lost = sorted(expected - there)
    return f"every run writes {', '.join(lost[:6])}" if lost else ""


def _wrong_answers(release: Path, measurements: Measurements) -> str:
    """Arrays that belong to no answer, or answers that no draw leads to; empty where there are none."""
    distances, named = measurements.distances, named_answers(measurements)
    arrays_of_answers = {f"{name}.{k}" for name, a in named for k in ("values", *a.query.arrays())}
    drawn = [(" × ".join(a.clique), a.values) for _, a in named]
    if distances is not None:
        arrays_of_answers |= {f"{DISTANCES}.values", f"{DISTANCES}.whole"}
        drawn.append(("distances", distances.values))
    for name, values in drawn:
        if off_lattice(values):
            return f"{name}: answers that are not on the lattice, or beyond the range of answers"
    with open_arrays(release / "measurements" / "answers.npz") as arrays:
        foreign = sorted(set(arrays) - arrays_of_answers)
    return f"answers.npz holds arrays of no answer: {', '.join(foreign[:6])}" if foreign else ""


def _wrong_marginals(folder: Path, frames: Mapping[str, pd.DataFrame]) -> str:
    """The first file that says other numbers than the measurements; empty where there is none."""
    for name, again in frames.items():
        text = again.to_csv(index=False, lineterminator="\n")
        texts = (read_text(folder / name, 2 * len(text.encode()) + ROOM), text)
        stated, expected = (pd.read_csv(StringIO(t), dtype=str, keep_default_na=False) for t in texts)
        if [*stated.columns] != [*expected.columns] or len(stated) != len(expected):
            return f"marginals/{name} has other lines or columns than what was measured"
        exact = [c for c in expected.columns if c not in ESTIMATED]
        if not stated[exact].equals(expected[exact]):
            return f"marginals/{name} does not say what was measured"
        for column in [c for c in expected.columns if c in ESTIMATED]:
            if not _near(stated[column], expected[column]):
                return f"marginals/{name}: {column} does not follow from what was measured"
    return ""


def _near(stated: pd.Series[str], expected: pd.Series[str]) -> bool:
    """Whether two columns of texts are the same numbers but for rounding; an empty text is none."""
    one, other = (pd.to_numeric(c.replace("", "nan")).to_numpy(np.float64) for c in (stated, expected))
    return bool(np.allclose(one, other, rtol=RELATIVE, atol=ABSOLUTE, equal_nan=True))


def _wrong_columns(release: Path, schema: Schema) -> str:
    """What columns the synthetic table has that no run with this schema writes; empty where they are right."""
    ids, names, unit = schema.rules.id_column, [c.name for c in schema.held], schema.rules.unit
    joined = [names, [*names, ids]] if ids and ids not in names else [names]
    for form in FORMATS.values():
        allowed = {form.released: joined}
        if unit is not None and (release / form.released_persons).is_file():
            parts = [[n for n in names if (n in unit.constant) == own] for own in (False, True)]
            allowed = {n: [[*p, ids]] for n, p in zip((form.released, form.released_persons), parts, strict=True)}
        for path, lists in ((release / name, lists) for name, lists in allowed.items()):
            if path.is_file() and (columns := _columns(path, form, schema.dialect)) not in lists:
                return f"{path.name} has the columns {', '.join(columns)[:200]}, and the schema others"
    return ""


def _columns(path: Path, form: TableFormat, dialect: Dialect) -> list[str]:
    """The names in the head of a table, of which no more is read; ValueError where it has none."""
    try:
        with open_plain(path) as file:
            return [*form.function("head")(file, dialect)]
    except ValueError as error:
        raise ValueError(f"{path.name}: {error}") from error
