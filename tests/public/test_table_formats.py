"""What every file format owes."""

import io
import re
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

import numpy as np
import pytest

from mechanisms.public.errors import UserError
from mechanisms.public.schema.dialect import PLAIN, Dialect
from mechanisms.public.tables.format_trial import released_format
from mechanisms.public.tables.formats import CSV, FORMATS, TableFormat, format_of_file, format_of_name
from mechanisms.public.tables.inspect_file import csv_head
from mechanisms.public.tables.readers import open_csv
from mechanisms.public.tables.scan import Opening, Source
from mechanisms.public.tables.write_table import Chunks, write_csv, write_table
from pipeline.plugins.offers import offered_by
from pipeline.settings.config import load_config
from pipeline.stages import run
from tests.pipeline.conftest import PAIRS, TOWN, write_town
from tests.public.table_worlds import coded, codes, schema, source


@pytest.mark.parametrize("name", FORMATS)
def test_what_a_format_writes_it_reads(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Texts with marks, gaps, ids of units; the head of a file and its whole; by its name and its first bytes."""
    facts = schema(
        city={"kind": "categorical", "values": ["x", 'a, "b"\n'], "missing": [""]},
        n={"kind": "integer", "min": 0, "max": 9},
    )
    form = released_format(name)
    assert form.name == name and re.fullmatch(r"[a-z]+/[a-z0-9.+-]+", form.media)
    table = coded(facts, [[0, 1, 2, 1, 0], [9, 0, 3, 3, 1]])
    monkeypatch.setattr("mechanisms.public.tables.write_table.CHUNK_ROWS", 2)
    for suffix in form.suffixes:
        path = tmp_path / f"table{suffix}"
        write_table(path, table, facts, np.random.default_rng(0))
        assert format_of_name(path.name) is form
        assert format_of_file(path).reader == form.reader
        with path.open("rb") as file:
            assert form.function("head")(file, PLAIN) == ["city", "n"] == [*source(path).names]
        assert codes(path, facts) == [list(map(int, c)) for c in table.columns]
        assert (path.stat().st_size >= 2 * table.rows * 2) or form.compressed
        (bare := tmp_path / "bare").write_bytes(path.read_bytes())
        assert format_of_file(bare).reader == form.reader


def test_the_first_bytes_say_more_than_the_name_and_what_says_nothing_is_csv(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_bytes(b"PAR1....")
    (tmp_path / "x.dat").write_text("a,b\n1,2\n", encoding="utf-8")
    assert format_of_file(tmp_path / "x.csv") is FORMATS["parquet"]
    assert format_of_file(tmp_path / "x.dat") is CSV
    assert format_of_name("X.CSV.GZ") is FORMATS["csv.gz"] and format_of_name("x.txt") is None


def open_first_rows(opening: Opening) -> Source:
    whole = open_csv(opening)
    return replace(whole, relation=f"(SELECT * FROM {whole.relation} LIMIT 3)")


def head_of_one(file: IO[bytes], dialect: Dialect) -> list[str]:
    return csv_head(file, dialect)[:1]


def write_first_chunk(file: IO[bytes], chunks: Chunks) -> None:
    write_csv(file, replace(chunks, parts=[next(iter(chunks.parts))]))


HALF = {
    "a writer that takes the first chunk for all": (
        {"writer": f"{__name__}:write_first_chunk"},
        UserError,
        "does not read the table",
    ),
    "no writer": (
        {"writer": "mechanisms.public.tables.write_table:write_xlsx"},
        UserError,
        "half fails on .*write_xlsx",
    ),
    "a head that loses names": ({"head": f"{__name__}:head_of_one"}, UserError, "does not read the table that it"),
    "a reader that loses rows": ({"reader": f"{__name__}:open_first_rows"}, UserError, "does not read the table"),
}


def write_ten_rows(file: IO[bytes], chunks: Chunks) -> None:
    whole = io.BytesIO()
    write_csv(whole, chunks)
    file.writelines(whole.getvalue().splitlines(keepends=True)[:11])


def test_a_format_that_loses_rows_of_a_large_table_leaves_no_release_and_the_run_goes_on_in_another(
    tmp_path, monkeypatch
):
    """The run ended well, and its table had fewer rows than its statement said."""
    facts = {**vars(CSV), "name": "ten", "suffixes": (".ten",), "writer": f"{__name__}:write_ten_rows"}
    monkeypatch.setitem(FORMATS, "ten", TableFormat(**facts))
    monkeypatch.setitem(offered_by, ("format", "ten"), __name__)
    monkeypatch.chdir(write_town(tmp_path))
    with pytest.raises(UserError, match=r"ten keeps 10 of \d+ rows"):
        run(load_config([*TOWN, *PAIRS, "release.format=ten"]), Path("out"), quiet=True)
    assert not Path("out/release").exists()
    assert run(load_config([*TOWN, *PAIRS, "resume=true"]), Path("out"), quiet=True).table.name == "synthetic.csv"


@pytest.mark.parametrize("fault", HALF)
def test_a_half_made_format_ends_a_run_before_anything_is_there(fault, tmp_path, monkeypatch):
    functions, kind, said = HALF[fault]
    facts: dict[str, Any] = {**vars(CSV), "name": "half", "suffixes": (".half",), **functions}
    monkeypatch.setitem(FORMATS, "half", TableFormat(**facts))
    monkeypatch.chdir(write_town(tmp_path))
    with pytest.raises(kind, match=said):
        run(load_config([*TOWN, *PAIRS, "release.format=half"]), Path("out"), quiet=True)
    assert not Path("out").exists()
