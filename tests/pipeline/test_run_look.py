"""What a run does with its look at the table before it spends: it changes nothing else, and stops nothing."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mechanisms.public.schema.dialect import Dialect
from mechanisms.public.schema.table_schema import load_schema, parse_schema
from mechanisms.public.tables.scan import open_table
from mechanisms.public.units import WEIGHT_BITS
from mechanisms.sensitive.contribution import PrivacyUnit
from mechanisms.sensitive.kept_table import kept_private
from pipeline.folders import RunFolder
from pipeline.look import run_look
from pipeline.look.run_look import look_before_spending, not_made
from pipeline.settings.config import Config
from pipeline.stage_bars import Stages
from tests.pipeline.conftest import TOWN, command, people
from tests.public.table_worlds import source

QUIET = ["data=table", "data.schema=town.yaml", "evaluation.enabled=false", "synthesis=independent"]


def test_a_look_that_cannot_be_made_stops_no_run_and_says_nothing_of_it(town, capsys, monkeypatch):
    """One text that is no UTF-8, in a column that the schema leaves out: no answer depends on it, nor does the run."""
    monkeypatch.setattr(run_look, "not_made", not_made)
    table = pa.Table.from_pandas(people(600), preserve_index=False)
    parts = [None, pa.py_buffer(np.arange(601, dtype=np.int32)), pa.py_buffer(b"\xff" + b"x" * 599)]
    odd = pa.Array.from_buffers(pa.string(), 600, parts)
    said = []
    for note in (table["note"], odd):
        pq.write_table(table.set_column(table.schema.get_field_index("note"), "note", note), town / "town.parquet")
        assert command("run", *QUIET, "data.path=town.parquet", f"hydra.run.dir=out{len(said)}") == 0
        text = re.sub(r"out\d|[\d.]+ (m?s|ms)", "", " ".join(capsys.readouterr().err.split()))
        said.append(text)
    assert "could not be looked at" in (town / "out1/internal/check.txt").read_text()
    assert "could not be looked at" not in (town / "out0/internal/check.txt").read_text()
    assert "what the schema does to the rows" in said[1] and "looked at" not in said[1]


def test_a_look_changes_no_file_of_the_table_that_the_jobs_of_a_sweep_share(town, tmp_path):
    table = people(600)
    table.loc[:9, "sex"] = "x"
    table.to_csv(town / "town.csv", index=False)
    schema = load_schema(town / "town.yaml")
    rows = source(town / "town.csv")
    private = kept_private(tmp_path / "shared", rows, schema, PrivacyUnit(), data="", key=bytes(32))
    assert private.as_read(schema) is None and private.kept is not None
    before = {p: p.stat().st_mtime_ns for p in private.kept.rglob("*.codes")}
    folder = RunFolder(tmp_path / "run")
    folder.internal.mkdir(parents=True)
    look_before_spending(private, rows, schema, Config(), folder, Stages(quiet=True))
    assert folder.look.read_text().startswith("town.csv: 600 rows") and before
    assert {p: p.stat().st_mtime_ns for p in private.kept.rglob("*.codes")} == before


def test_the_jobs_of_a_sweep_share_no_table_that_is_read_in_another_dialect(town, tmp_path):
    """É and é are one unit's id in one encoding, and other letters, of several units, in another."""
    rows = "".join(f"q{letter}{i},1\n" for i in range(9) for letter in "Éé")
    Path("ids.csv").write_bytes(f"person,age\n{rows}".encode("cp1252"))
    schema = load_schema(town / "town.yaml")
    ages = parse_schema({**schema.to_fields(), "columns": {"age": schema.to_fields()["columns"]["age"]}}, where="ages")
    unit, totals = PrivacyUnit("person", 1), []
    for encoding in ("cp437", "cp1252"):
        limits = {"workdir": tmp_path, "memory_limit_bytes": 1 << 28, "threads": 1}
        rows = open_table(Path("ids.csv"), dialect=Dialect(encoding=encoding), **limits)
        private = kept_private(tmp_path / "shared", rows, ages, unit, data="the same bytes", key=bytes(32))
        weights = private.coded.weights
        totals.append(private.coded.rows if weights is None else int(weights.sum()) / 2**WEIGHT_BITS)
    assert totals == [18, 9]


@pytest.mark.parametrize("text", ["\x9bJ", "\x7fx", "\u202ex", "\x1b[2J", "a\nb"])
def test_texts_of_a_table_neither_clear_a_terminal_nor_write_its_lines(text, town, capsys):
    table = people(600).astype({"age": object})
    table.loc[:9, "age"] = text
    table.to_csv(town / "town.csv", index=False)
    assert command("check", *TOWN[1:]) == 0
    assert all(line.isprintable() for line in capsys.readouterr().out.split("\n"))
